/* lm_paths.h - what token paths are due: the logits after a path, and the entries of its last position. A path is asked
 * for first, and known after lm_paths_fill(). The values are those of the oracle's network for an implementation that
 * claims the bits of chapter 1, else those of its own plain run: row by row, each committed (LAY-06). */
#ifndef ASSAY_CONFORMANCE_CHECKS_MODEL_LM_PATHS_H
#define ASSAY_CONFORMANCE_CHECKS_MODEL_LM_PATHS_H

#include "conformance/checks/model/lm.h"

enum { PATH_LOGITS = 1, PATH_ENTRIES = 2 };

/* One path: that of `parent`, and a token. Path 0 is empty. */
typedef struct {
    int32_t parent, token, length;
    int32_t child, sibling; /* the first path that is longer by one, and the next of the same parent; -1: none */
    unsigned asked;         /* PATH_*; and those that are known */
    unsigned known;
    bool on_the_way; /* of lm_paths_fill(): some path through here is asked for */
    float *logits;   /* [V] */
    float *key, *value; /* [layers][KV heads * head_dim] */
} lm_path;

typedef struct {
    int32_t count, room;
    lm_path *path; /* [count] */
    bool failed;   /* the memory was short */
} lm_paths;

void lm_paths_free(lm_paths *p);

/* The empty path; -1: the memory is short. */
int32_t lm_path_root(lm_paths *p);
/* The path that is longer by one token; -1, and for -1: the memory is short. */
int32_t lm_path_step(lm_paths *p, int32_t from, int32_t token);
/* The same for n tokens. */
int32_t lm_path_walk(lm_paths *p, int32_t from, const int32_t *token, int32_t n);
/* `what` is a sum of PATH_*. */
void lm_path_ask(lm_paths *p, int32_t path, unsigned what);

/* Makes everything known that was asked for. `m` has told its shape; where the plain run is needed, it has one sequence
 * afterwards. False: the result of `m` says why. */
bool lm_paths_fill(lm_paths *p, lm *m);

#endif
