/* draft_lm.c - a draft model that proposes a chain (draft.h). Clauses RNG-06 and LAW-03.
 *
 * Its cache may run ahead of the verified tokens: after proposing g drafts it holds the history
 * and the first g - 1 of them, since nothing was asked of the last. When a of them are accepted
 * it drops g - 1 - a entries; when all are, it lacks the last one, and the next proposal feeds
 * that and the token after it. So `propose` feeds whatever the cache lacks, and `observe` cuts
 * it. A new sequence begins with what its tokens have in common with those of the last one. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "ref/dist/draw.h"
#include "ref/draft/draft.h"
#include "ref/num/uniform.h"

typedef struct {
    as_drafter base;
    as_lm *lm;
    as_sampling sampling;
    int32_t gamma, sequence;
    int32_t *token; /* [room] that the cache holds, as far as its length goes */
    size_t room;
    bool begins;   /* the cache is that of the sequence before */
    float *logits; /* [V] */
} draft_lm;

enum { PIECE = 256 };

static as_status reserve(draft_lm *d, int32_t tokens, as_error *e)
{
    if ((size_t)tokens <= d->room) return AS_OK;
    const size_t room = (size_t)tokens + (size_t)tokens / 2;
    int32_t *token = realloc(d->token, room * sizeof *token);
    if (!token) return as_fail(e, AS_NO_MEMORY, "no memory for %zu tokens", room);
    d->token = token;
    d->room = room;
    return AS_OK;
}

/* Commits n tokens, in pieces that a forward has room for, and leaves the logits after the last
 * in d->logits. */
static as_status feed(draft_lm *d, const int32_t *token, int32_t n, as_error *e)
{
    const int32_t room = d->lm->rows > 0 && d->lm->rows < PIECE ? d->lm->rows : PIECE;
    const int32_t held = as_lm_length(d->lm, d->sequence);
    as_row row[PIECE];
    int32_t path[PIECE];
    as_status s = reserve(d, held + n, e);
    if (s == AS_OK) memcpy(d->token + held, token, (size_t)n * sizeof *token);
    for (int32_t at = 0; at < n && s == AS_OK; at += room) {
        const int32_t left = n - at, rows = left < room ? left : room, last = rows - 1;
        for (int32_t i = 0; i < rows; i++) {
            row[i] = (as_row){token[at + i], i - 1};
            path[i] = i;
        }
        const as_forward f = {d->sequence, rows, left == rows, row, &last, d->logits};
        s = as_lm_forward(d->lm, &f, 1, e);
        if (s == AS_OK) s = as_lm_commit(d->lm, d->sequence, path, rows, e);
    }
    return s;
}

static as_status keep(draft_lm *d, int32_t tokens, as_error *e)
{
    if (as_lm_length(d->lm, d->sequence) <= tokens) return AS_OK;
    return as_lm_truncate(d->lm, d->sequence, tokens, e);
}

/* Of the cache, what the history begins with; its last token is evaluated in any case. */
static as_status begin(draft_lm *d, const as_context *c, as_error *e)
{
    const int32_t held = as_lm_length(d->lm, d->sequence);
    int32_t same = 0;
    while (same < held && same < c->n - 1 && d->token[same] == c->history[same]) same++;
    d->begins = false;
    return keep(d, same, e);
}

static as_status propose(as_drafter *base, const as_context *c, as_tree *tree, as_plan *plan,
                         as_error *e)
{
    (void)plan;
    draft_lm *d = (draft_lm *)base;
    const int32_t limit = as_chain_limit(c), drafts = d->gamma < limit ? d->gamma : limit;
    as_status s = d->begins ? begin(d, c, e) : AS_OK;
    if (s != AS_OK || drafts == 0) return s;
    const int32_t held = as_lm_length(d->lm, d->sequence);
    s = feed(d, c->history + held, c->n - held, e);
    for (int32_t i = 0; i < drafts && s == AS_OK; i++) {
        float *q;
        s = as_tree_law(tree, d->base.V, &q, e);
        if (s == AS_OK) s = as_serve(d->logits, d->base.V, &d->sampling, q, e);
        if (s != AS_OK) break;
        const as_words r = as_random(c->seed, c->position + (uint32_t)i, AS_DRAFT, 0);
        const int32_t token = as_draw(q, d->base.V, as_word64(r));
        s = as_tree_add(tree, token, tree->rows - 1, e);
        if (s == AS_OK && i + 1 < drafts) s = feed(d, &token, 1, e);
    }
    return s;
}

/* The last emitted token was evaluated by nobody. */
static as_status observe(as_drafter *base, const as_context *c, const as_step *s, as_error *e)
{
    return keep((draft_lm *)base, c->n + s->emitted - 1, e);
}

static as_status reset(as_drafter *base, as_error *e)
{
    (void)e;
    ((draft_lm *)base)->begins = true;
    return AS_OK;
}

static void free_drafter(as_drafter *base)
{
    draft_lm *d = (draft_lm *)base;
    as_lm_close(d->lm, d->sequence);
    free(d->token);
    free(d->logits);
    free(d);
}

static const as_drafter_ops operations = {reset, propose, observe, free_drafter};

as_status as_draft_lm(as_lm *lm, const as_sampling *s, int32_t gamma, as_drafter **drafter,
                      as_error *e)
{
    int32_t sequence;
    if (gamma < 0)
        return as_refuse(e, AS_BAD_INPUT, "gamma", "draft model: gamma %d must be at least 0",
                         (int)gamma);
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
    *d = (draft_lm){.base = {&operations, "a draft model", AS_EVERY_RULE, lm->V, NULL},
                    .lm = lm,
                    .sampling = *s,
                    .gamma = gamma,
                    .sequence = sequence,
                    .logits = logits};
    *drafter = &d->base;
    return AS_OK;
}
