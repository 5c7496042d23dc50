/* draft_lm.c - a draft model that proposes a chain (draft.h). Clauses RNG-06 and LAW-03.
 *
 * Its cache may run ahead of the verified tokens: after proposing g drafts it holds the history
 * and the first g - 1 of them, since nothing was asked of the last. When a of them are accepted
 * it drops g - 1 - a entries; when all are, it lacks the last one, and the next proposal feeds
 * that and the token after it. So `propose` feeds whatever the cache lacks, and `observe` cuts
 * it. */
#include <stdlib.h>

#include "ref/dist/draw.h"
#include "ref/draft/draft.h"
#include "ref/num/uniform.h"

typedef struct {
    as_drafter base;
    as_lm *lm;
    as_sampling sampling;
    int32_t sequence;
    float *logits; /* [V] */
} draft_lm;

/* Commits n tokens and leaves the logits after the last in d->logits. */
static as_status feed(draft_lm *d, const int32_t *token, int32_t n, as_error *e)
{
    as_row *row = malloc((size_t)n * sizeof *row);
    int32_t *path = malloc((size_t)n * sizeof *path);
    as_status s =
        row && path ? AS_OK : as_fail(e, AS_NO_MEMORY, "no memory for %d draft rows", (int)n);
    if (s == AS_OK) {
        for (int32_t i = 0; i < n; i++) {
            row[i] = (as_row){token[i], i - 1};
            path[i] = i;
        }
        const int32_t last = n - 1;
        const as_forward f = {d->sequence, n, 1, row, &last, d->logits};
        s = as_lm_forward(d->lm, &f, 1, e);
        if (s == AS_OK) s = as_lm_commit(d->lm, d->sequence, path, n, e);
    }
    free(row);
    free(path);
    return s;
}

static as_status propose(as_drafter *base, const as_context *c, as_tree *tree, as_error *e)
{
    draft_lm *d = (draft_lm *)base;
    if (c->limit == 0) return AS_OK;
    const int32_t held = as_lm_length(d->lm, d->sequence);
    as_status s = feed(d, c->history + held, c->n - held, e);
    for (int32_t i = 0; i < c->limit && s == AS_OK; i++) {
        float *q = tree->q + (size_t)i * (size_t)d->base.V;
        s = as_serve(d->logits, d->base.V, &d->sampling, q, e);
        if (s != AS_OK) break;
        const as_words r = as_random(c->seed, c->position + (uint32_t)i, AS_DRAFT, 0);
        const int32_t token = as_draw(q, d->base.V, as_word64(r));
        tree->row[tree->rows] = (as_row){token, tree->rows - 1};
        tree->rows++;
        if (i + 1 < c->limit) s = feed(d, &token, 1, e);
    }
    return s;
}

static as_status observe(as_drafter *base, int32_t kept, as_error *e)
{
    draft_lm *d = (draft_lm *)base;
    if (as_lm_length(d->lm, d->sequence) <= kept) return AS_OK;
    return as_lm_truncate(d->lm, d->sequence, kept, e);
}

static as_status reset(as_drafter *base, as_error *e)
{
    return observe(base, 0, e);
}

static void free_drafter(as_drafter *base)
{
    draft_lm *d = (draft_lm *)base;
    as_lm_close(d->lm, d->sequence);
    free(d->logits);
    free(d);
}

static const as_drafter_ops operations = {reset, propose, observe, free_drafter};

as_status as_draft_lm(as_lm *lm, const as_sampling *s, as_drafter **drafter, as_error *e)
{
    int32_t sequence;
    as_status status = as_check_sampling(s, e);
    if (status == AS_OK) status = as_lm_open(lm, &sequence, e);
    if (status != AS_OK) return status;
    draft_lm *d = malloc(sizeof *d);
    float *logits = malloc((size_t)lm->V * sizeof *logits);
    if (!d || !logits) {
        free(d);
        free(logits);
        as_lm_close(lm, sequence);
        return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    }
    *d = (draft_lm){{&operations, lm->V}, lm, *s, sequence, logits};
    *drafter = &d->base;
    return AS_OK;
}
