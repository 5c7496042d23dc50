/* draft_cache.h - what the drafters with a draft model share: one sequence in it, whose cache may
 * run ahead of the verified tokens or lag behind them, and the tokens that it holds. Inside
 * ref/draft alone. */
#ifndef ASSAY_REF_DRAFT_DRAFT_CACHE_H
#define ASSAY_REF_DRAFT_DRAFT_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "ref/lm/lm.h"
#include "ref/status.h"

typedef struct {
    as_lm *lm;
    int32_t sequence;
    int32_t *token; /* [room] that the cache holds, as far as its length goes */
    size_t room;
    bool begins;   /* the cache is that of the sequence before */
    float *logits; /* [V] after the last token that as_cache_feed was given */
} as_draft_cache;

/* The model is the caller's and must outlive the cache. */
as_status as_cache_open(as_draft_cache *c, as_lm *lm, as_error *e);
void as_cache_close(as_draft_cache *c);

/* A new sequence: the cache keeps what its tokens have in common with the history [n], but for
 * the last of these, which is evaluated in any case. Does nothing unless `begins`, and clears
 * it. */
as_status as_cache_begin(as_draft_cache *c, const int32_t *history, int32_t n, as_error *e);

/* Commits n tokens, in pieces that a forward has room for, and leaves the logits after the last
 * in c->logits. */
as_status as_cache_feed(as_draft_cache *c, const int32_t *token /* [n] */, int32_t n,
                        as_error *e);

/* Commits a path of the last forward, whose rows have these tokens. */
as_status as_cache_follow(as_draft_cache *c, const int32_t *path /* [n] */,
                          const int32_t *token /* [n] */, int32_t n, as_error *e);

/* Cuts the cache to so many tokens, if it has more. */
as_status as_cache_keep(as_draft_cache *c, int32_t tokens, as_error *e);

#endif
