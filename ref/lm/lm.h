/* lm.h - the language-model interface: one forward over a tree of rows, one commit, one
 * truncate.
 *
 * A sequence holds a committed prefix of tokens. A forward evaluates rows {token, parent} on
 * top of it: parent -1 is the prefix itself, otherwise an earlier row of the same list. A row
 * sees the prefix, its ancestors and itself, nothing else, and its logits depend on that path
 * alone: not on the other rows, the other sequences, the number of threads, or what was once
 * committed and then truncated. Its logits rank the token that follows it.
 *
 * Commit turns a path of rows of the last forward into the end of the prefix; the other rows of
 * that forward are forgotten. A model is used by one thread at a time. */
#ifndef ASSAY_REF_LM_LM_H
#define ASSAY_REF_LM_LM_H

#include <stdint.h>
#include "ref/status.h"

typedef struct {
    int32_t token;  /* 0 to V-1 */
    int32_t parent; /* -1 or an earlier row */
} as_row;

/* One sequence's share of a forward. */
typedef struct {
    int32_t sequence;
    int32_t rows, wants;
    const as_row *row;   /* [rows] */
    const int32_t *want; /* [wants] the rows whose logits are asked for; repeats allowed */
    float *logits;       /* [wants][V] */
} as_forward;

typedef struct as_lm as_lm;

/* What an implementation provides; callers use the functions below. */
typedef struct {
    as_status (*open)(as_lm *, int32_t *sequence, as_error *);
    void (*close)(as_lm *, int32_t sequence);
    as_status (*forward)(as_lm *, const as_forward *f, int32_t n, as_error *);
    as_status (*commit)(as_lm *, int32_t sequence, const int32_t *path, int32_t n, as_error *);
    as_status (*truncate)(as_lm *, int32_t sequence, int32_t length, as_error *);
    int32_t (*length)(const as_lm *, int32_t sequence);
    void (*free)(as_lm *);
} as_lm_ops;

/* An implementation's own structure begins with this one. */
struct as_lm {
    const as_lm_ops *ops;
    int32_t V;         /* vocabulary, 1 to AS_MAX_VOCAB */
    int32_t positions; /* of a sequence, at most; 0: as memory allows */
    int32_t rows;      /* of a forward, at most; 0: as memory allows */
};

/* A new, empty sequence; its number stays valid until it is closed. */
static inline as_status as_lm_open(as_lm *lm, int32_t *sequence, as_error *e)
{
    return lm->ops->open(lm, sequence, e);
}

static inline void as_lm_close(as_lm *lm, int32_t sequence)
{
    lm->ops->close(lm, sequence);
}

/* Evaluates n shares, each of a different open sequence. AS_BAD_INPUT, with no logits written
 * and the earlier rows of all these sequences forgotten, for a sequence that is not open or
 * named twice, a token or parent out of range, or a wanted row that does not exist; AS_LIMIT
 * beyond the capacity of the model, in positions or in rows; AS_NO_MEMORY. */
static inline as_status as_lm_forward(as_lm *lm, const as_forward *f /* [n] */, int32_t n,
                                      as_error *e)
{
    return lm->ops->forward(lm, f, n, e);
}

/* Appends the tokens of path, rows of the sequence's last forward from a row with parent -1
 * downwards, each the parent of the next. n = 0 only forgets the rows. */
static inline as_status as_lm_commit(as_lm *lm, int32_t sequence, const int32_t *path /* [n] */,
                                     int32_t n, as_error *e)
{
    return lm->ops->commit(lm, sequence, path, n, e);
}

/* Cuts the prefix to its first `length` tokens, 0 <= length <= as_lm_length, and forgets the
 * rows of the last forward. What follows is as if the rest had never been committed. */
static inline as_status as_lm_truncate(as_lm *lm, int32_t sequence, int32_t length, as_error *e)
{
    return lm->ops->truncate(lm, sequence, length, e);
}

/* Committed tokens of an open sequence; -1 for one that is not open. */
static inline int32_t as_lm_length(const as_lm *lm, int32_t sequence)
{
    return lm->ops->length(lm, sequence);
}

static inline void as_lm_free(as_lm *lm)
{
    if (lm) lm->ops->free(lm);
}

#endif
