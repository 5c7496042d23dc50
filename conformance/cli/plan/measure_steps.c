/* measure_steps.c - the second half of the text: decoding with chains and trees of the draft model. */
#include <stdlib.h>

#include "conformance/cli/plan/measure_parts.h"
#include "ref/draft/draft_tree.h"

/* Steps with all their levels: the budget cuts the last ones short (STOP-03). */
typedef struct {
    measure_tally *now;
    int32_t depth;
    int64_t accepted[MEASURE_GAMMA]; /* steps that accept i + 1 drafts and more */
} counter;

static void on_step(void *data, const as_step *s)
{
    counter *c = data;
    if (MEASURE_BUDGET - (int64_t)s->position - 1 < c->depth) return;
    c->now->steps++;
    c->now->tokens += s->length;
    for (int32_t i = 0; i < s->accepted && i < MEASURE_GAMMA; i++) c->accepted[i]++;
}

static as_status decode_all(const measure_request *r, as_drafter *d, as_rule rule, counter *c, measured *tokens,
                            int64_t *steps, as_error *e)
{
    measure_tally *t = calloc((size_t)r->prompts, sizeof *t);
    as_status s = t ? AS_OK : as_fail(e, AS_NO_MEMORY, "no memory for %d prompts", (int)r->prompts);
    *steps = 0;
    for (int32_t i = 0; i < r->prompts && s == AS_OK; i++) {
        c->now = &t[i];
        s = measure_decode(r, i, d, rule, on_step, c, e);
        *steps += t[i].steps;
    }
    if (s == AS_OK) *tokens = measure_tokens(t, r->prompts);
    free(t);
    return s;
}

as_status measure_part_chains(const measure_request *r, measure_chains *m, as_error *e)
{
    const as_sampling sampling = {r->temperature, 0, 1, 0};
    as_status s = AS_OK;
    for (int32_t gamma = 1; gamma <= r->gamma && s == AS_OK; gamma++) {
        as_drafter *d = NULL;
        counter c = {.depth = gamma};
        s = as_draft_lm(r->draft->lm, &sampling, gamma, &d, e);
        if (s == AS_OK) s = decode_all(r, d, AS_RULE_CHAIN, &c, &m->tokens[gamma - 1], &m->steps, e);
        for (int32_t k = 0; k < gamma; k++) m->survival[k] = (double)c.accepted[k] / (double)m->steps;
        as_drafter_free(d);
    }
    return s;
}

/* At T = 0 the draft model ranks its tokens at temperature 1, for its served row would have one (TDR-02). */
as_status measure_part_trees(const measure_request *r, const double *rate, measure_tree *tree, as_error *e)
{
    const as_sampling ranking = {r->temperature > 0 ? r->temperature : 1, 0, 1, 0};
    as_status s = AS_OK;
    for (int i = 0; i < MEASURE_TREES && s == AS_OK; i++) {
        const int32_t drafts = 1 << i, depth = drafts < AS_SEQUOIA_LEVELS ? drafts : AS_SEQUOIA_LEVELS;
        as_drafter *d = NULL;
        int64_t steps;
        s = as_sequoia(rate, r->siblings, drafts, depth, &tree[i].shape, e);
        if (s != AS_OK) break;
        counter c = {.depth = as_shape_depth(&tree[i].shape)};
        s = as_draft_tree(r->draft->lm, &ranking, &tree[i].shape, AS_SIBLINGS_TOP, &d, e);
        if (s == AS_OK) s = decode_all(r, d, AS_RULE_TARGET, &c, &tree[i].tokens, &steps, e);
        as_drafter_free(d);
    }
    return s;
}
