/* lm_script.h - what a random driver asks of a model, as data: operations over several sequences, each with its
 * arguments. A script can be copied, cut down and written out; it knows nothing of an implementation. Clauses TREE, KV.
 *
 * A script is lenient: `lm_state` plays it and leaves out what its own state cannot ask for, such as a row that a cut
 * has taken away. So any part of a script is a script, which is what shrinking needs. */
#ifndef ASSAY_CONFORMANCE_CHECKS_MODEL_LM_SCRIPT_H
#define ASSAY_CONFORMANCE_CHECKS_MODEL_LM_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    STEP_LOAD,     /* a model with these capacities, each sequence empty; every script starts so */
    STEP_FORWARD,  /* a tree for each part */
    STEP_COMMIT,   /* the path that ends in a row, for each part; row -1: the empty path */
    STEP_TRUNCATE, /* to `at` tokens, for each part */
    STEP_READ,     /* the cache of layer `layer` at position `at`, for each part */
    STEP_POISON,
    STEP_TOO_MANY, /* one part: a forward of one row more than the capacity; must be refused (KV-06) */
    STEP_TOO_LONG, /* one part: a chain of one position more than the capacity; must be refused (KV-06) */
    STEP_STALE     /* one part: a commit of row 0 where no rows wait; must be refused (KV-04) */
} lm_kind;

typedef struct {
    int32_t sequence;
    int32_t at, layer;            /* STEP_COMMIT: the row; STEP_TRUNCATE: the length; STEP_READ: the position */
    int32_t rows, wants;          /* STEP_FORWARD */
    int32_t token, parent, want;  /* where they stand among the script's numbers: [rows], [rows], [wants] */
} lm_part;

typedef struct {
    lm_kind kind;
    int32_t first, n; /* parts */
    int32_t sequences, positions, rows; /* STEP_LOAD: as of iut_model */
    uint32_t layout;
} lm_step;

typedef struct {
    int32_t steps, parts, numbers;
    lm_step *step;
    lm_part *part;
    int32_t *number;
    int32_t room[3]; /* of these three */
    bool failed;     /* the memory was short: what was to be added is missing */
} lm_script;

void lm_script_free(lm_script *s);
/* False: the memory is short. */
bool lm_script_copy(lm_script *to, const lm_script *from);

/* ---- Writing one. ---------------------------------------------------------------------------- */

void lm_add_load(lm_script *s, int32_t sequences, int32_t positions, int32_t rows, uint32_t layout);
/* A step, then its parts. */
void lm_add_step(lm_script *s, lm_kind kind);
void lm_add_part(lm_script *s, int32_t sequence, int32_t at, int32_t layer);
/* A part of a forward, with room for its rows and wants: the caller fills them in, by lm_numbers(). NULL: the memory is
 * short. */
lm_part *lm_add_tree(lm_script *s, int32_t sequence, int32_t rows, int32_t wants);
static inline int32_t *lm_numbers(const lm_script *s, int32_t at)
{
    return s->number + at;
}

/* ---- Playing one. ---------------------------------------------------------------------------- */

enum { LM_MOST_SEQUENCES = 65 };

/* What a sequence is after some steps. */
typedef struct {
    int32_t length;
    int32_t *token;  /* [positions] committed; behind them what was cut off */
    int32_t high;    /* how many of them were ever committed */
    int32_t rows;    /* of its last forward, while they can be committed */
    int32_t token_at, parent_at; /* of these rows, among the script's numbers */
} lm_held;

typedef struct {
    int32_t sequences, positions, rows; /* of the last load */
    int32_t longest;                    /* room of `token` */
    lm_held held[LM_MOST_SEQUENCES];
} lm_state;

/* Room for the longest sequence of the script. False: the memory is short. lm_state_close() in either event. */
bool lm_state_open(lm_state *t, const lm_script *s);
void lm_state_close(lm_state *t);

/* Takes out of step i what the state does not allow. False: nothing of the step is left. */
bool lm_state_fit(const lm_state *t, lm_script *s, int32_t i);
/* What a fitted step does. */
void lm_state_do(lm_state *t, const lm_script *s, int32_t i);

/* The tokens of the path to a row, after the prefix; how many. `parent` are those of its forward. */
int32_t lm_row_path(const int32_t *token, const int32_t *parent, int32_t row, int32_t *out);
/* The rows of the path to a row, from the prefix on; how many. */
int32_t lm_row_rows(const int32_t *parent, int32_t row, int32_t *out);

/* Leaves of every step what can be asked, and drops the steps of which nothing is left. False: the memory is short. */
bool lm_script_fit(lm_script *s);

/* ---- Cutting one down. ------------------------------------------------------------------------ */

typedef enum { LM_CUT_STEPS, LM_CUT_SEQUENCES, LM_CUT_PARTS, LM_CUT_ROWS, LM_CUT_WANTS, LM_CUTS } lm_cut;

/* How many there are of what can be cut. The first step stays. */
int32_t lm_cut_count(const lm_script *s, lm_cut what);
/* Takes out items first .. first+n-1, counted over the whole script. The children of a row that goes become those of
 * its parent; a path that ended in it ends there. */
void lm_cut_out(lm_script *s, lm_cut what, int32_t first, int32_t n);
/* Names the sequences 0, 1, ... in the order in which they are used, and loads no more of them. */
void lm_cut_names(lm_script *s);

/* ---- For the reader. --------------------------------------------------------------------------- */

/* The script, or its first load and its end, as fits. Forms: `load 2 seq, 40 pos, 24 rows, layout 7`;
 * `fwd 1:[5 7^-1 9^0]?2,0`, where ^ names a parent that is not the row before, and ? the wanted rows;
 * `commit 1:to row 2 0:-`; `cut 0:3`; `read 1@4.0`, position and layer; `poison`; `too many 0`, `too long 0` and
 * `stale 0`, which must be refused. */
void lm_script_text(const lm_script *s, char *text, size_t size);

#endif
