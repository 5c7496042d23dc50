/* record.h - a language model that passes everything on to another and remembers the logits of
 * what was committed: two methods of decoding are compared by bits, not by tokens alone. A test
 * may lower its positions and rows; nobody may then ask for more. */
#ifndef ASSAY_TESTS_REF_RECORD_H
#define ASSAY_TESTS_REF_RECORD_H

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "ref/lm/lm.h"

typedef struct {
    as_lm base;
    as_lm *inner;
    float *log; /* [rows][V] logits of committed rows that were wanted, in order */
    int32_t rows, capacity;
    int32_t *want; /* [wants] of the last forward, and their logits */
    float *logits; /* [wants][V] */
    int32_t wants;
} recorder;

static inline as_status record_open(as_lm *lm, int32_t *sequence, as_error *e)
{
    recorder *r = (recorder *)lm;
    r->rows = r->wants = 0;
    return as_lm_open(r->inner, sequence, e);
}

static inline void record_close(as_lm *lm, int32_t sequence)
{
    as_lm_close(((recorder *)lm)->inner, sequence);
}

/* A root alone that has no position is refused, as a model would; a larger tree should have
 * been cut. */
static inline as_status record_limits(const recorder *r, const as_forward *f, as_error *e)
{
    int32_t depth[4096];
    const int32_t held = as_lm_length(r->inner, f->sequence);
    ck_assert_msg(r->base.rows == 0 || f->rows <= r->base.rows, "%d rows asked of %d",
                  (int)f->rows, (int)r->base.rows);
    for (int32_t i = 0; r->base.positions && i < f->rows; i++) {
        ck_assert_int_lt(i, 4096);
        depth[i] = f->row[i].parent < 0 ? 0 : depth[f->row[i].parent] + 1;
        if (held + depth[i] < r->base.positions) continue;
        ck_assert_msg(f->rows == 1, "position %d asked of %d", (int)(held + depth[i]),
                      (int)r->base.positions);
        return as_fail(e, AS_LIMIT, "no position");
    }
    return AS_OK;
}

static inline as_status record_forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e)
{
    recorder *r = (recorder *)lm;
    ck_assert_int_eq(n, 1);
    as_status s = record_limits(r, f, e);
    if (s == AS_OK) s = as_lm_forward(r->inner, f, n, e);
    const size_t wants = (size_t)f->wants, row = (size_t)lm->V * sizeof *r->logits;
    r->wants = s == AS_OK ? f->wants : 0;
    if (r->wants == 0) return s;
    r->want = realloc(r->want, wants * sizeof *r->want);
    r->logits = realloc(r->logits, wants * row);
    ck_assert(r->want && r->logits);
    memcpy(r->want, f->want, wants * sizeof *r->want);
    memcpy(r->logits, f->logits, wants * row);
    return s;
}

static inline as_status record_commit(as_lm *lm, int32_t sequence, const int32_t *path,
                                      int32_t n, as_error *e)
{
    recorder *r = (recorder *)lm;
    const size_t V = (size_t)lm->V;
    for (int32_t i = 0; i < n; i++)
        for (int32_t w = 0; w < r->wants; w++) {
            if (r->want[w] != path[i]) continue;
            if (r->rows == r->capacity) {
                r->capacity = 2 * r->capacity + 64;
                r->log = realloc(r->log, (size_t)r->capacity * V * sizeof *r->log);
                ck_assert_ptr_nonnull(r->log);
            }
            memcpy(r->log + (size_t)r->rows++ * V, r->logits + (size_t)w * V,
                   V * sizeof *r->log);
            break;
        }
    r->wants = 0;
    return as_lm_commit(r->inner, sequence, path, n, e);
}

static inline as_status record_truncate(as_lm *lm, int32_t sequence, int32_t length,
                                        as_error *e)
{
    return as_lm_truncate(((recorder *)lm)->inner, sequence, length, e);
}

static inline int32_t record_length(const as_lm *lm, int32_t sequence)
{
    return as_lm_length(((const recorder *)lm)->inner, sequence);
}

static inline void record_free(as_lm *lm)
{
    recorder *r = (recorder *)lm;
    free(r->log);
    free(r->want);
    free(r->logits);
}

/* The inner model stays the caller's; record_free releases the rest. */
static inline recorder record(as_lm *inner)
{
    static const as_lm_ops ops = {record_open,     record_close,  record_forward, record_commit,
                                  record_truncate, record_length, record_free};
    return (recorder){.base = {&ops, inner->V, inner->positions, inner->rows}, .inner = inner};
}

#endif
