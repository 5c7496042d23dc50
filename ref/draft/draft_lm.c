/* draft_lm.c - a draft model that proposes a chain (draft.h). Clauses RNG-06 and LAW-03.
 *
 * Its cache may run ahead of the verified tokens: after proposing g drafts it holds the history
 * and the first g - 1 of them, since nothing was asked of the last. When a of them are accepted
 * it drops g - 1 - a entries; when all are, it lacks the last one, and the next proposal feeds
 * that and the token after it. So `propose` feeds whatever the cache lacks, and `observe` cuts
 * it. A new sequence begins with what its tokens have in common with those of the last one. */
#include <stdbool.h>
#include <stdlib.h>

#include "ref/dist/draw.h"
#include "ref/draft/draft.h"
#include "ref/draft/draft_cache.h"
#include "ref/num/uniform.h"

typedef struct {
    as_drafter base;
    as_draft_cache cache;
    as_sampling sampling;
    int32_t gamma;
} draft_lm;

static as_status propose(as_drafter *base, const as_context *c, as_tree *tree, as_plan *plan,
                         as_error *e)
{
    (void)plan;
    draft_lm *d = (draft_lm *)base;
    const int32_t limit = as_chain_limit(c), drafts = d->gamma < limit ? d->gamma : limit;
    as_status s = as_cache_begin(&d->cache, c->history, c->n, e);
    if (s != AS_OK || drafts == 0) return s;
    const int32_t held = as_lm_length(d->cache.lm, d->cache.sequence);
    s = as_cache_feed(&d->cache, c->history + held, c->n - held, e);
    for (int32_t i = 0; i < drafts && s == AS_OK; i++) {
        float *q;
        s = as_tree_law(tree, d->base.V, &q, e);
        if (s == AS_OK) s = as_serve(d->cache.logits, d->base.V, &d->sampling, q, e);
        if (s != AS_OK) break;
        const as_words r = as_random(c->seed, c->position + (uint32_t)i, AS_DRAFT, 0);
        const int32_t token = as_draw(q, d->base.V, as_word64(r));
        s = as_tree_add(tree, token, tree->rows - 1, e);
        if (s == AS_OK && i + 1 < drafts) s = as_cache_feed(&d->cache, &token, 1, e);
    }
    return s;
}

/* The last emitted token was evaluated by nobody. */
static as_status observe(as_drafter *base, const as_context *c, const as_step *s, as_error *e)
{
    return as_cache_keep(&((draft_lm *)base)->cache, c->n + s->emitted - 1, e);
}

static as_status reset(as_drafter *base, as_error *e)
{
    (void)e;
    ((draft_lm *)base)->cache.begins = true;
    return AS_OK;
}

static void free_drafter(as_drafter *base)
{
    as_cache_close(&((draft_lm *)base)->cache);
    free(base);
}

static const as_drafter_ops operations = {reset, propose, observe, free_drafter, NULL};

as_status as_draft_lm(as_lm *lm, const as_sampling *s, int32_t gamma, as_drafter **drafter,
                      as_error *e)
{
    if (gamma < 0)
        return as_refuse(e, AS_BAD_INPUT, "gamma", "draft model: gamma %d must be at least 0",
                         (int)gamma);
    as_status status = as_check_sampling(s, e);
    if (status != AS_OK) return status;
    draft_lm *d = malloc(sizeof *d);
    if (!d) return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    *d = (draft_lm){.base = {&operations, "a draft model", AS_EVERY_RULE, lm->V, NULL},
                    .sampling = *s,
                    .gamma = gamma};
    status = as_cache_open(&d->cache, lm, e);
    if (status == AS_OK)
        *drafter = &d->base;
    else
        free(d);
    return status;
}
