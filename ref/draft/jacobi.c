/* jacobi.c - see jacobi.h. An iteration is a greedy verification of the guess, so the rule of
 * the loop does the accepting; what is left here is to make the rows' own answers the next
 * guess. */
#include "ref/draft/jacobi.h"

#include <assert.h>
#include <stdlib.h>

typedef struct {
    as_drafter base;
    as_jacobi o;
    int32_t r;      /* tokens of the block that are not final yet; 0: a block begins */
    int32_t *guess; /* [r - 1] */
    int32_t capacity;
} jacobi;

/* JAC-06. */
static int32_t fresh(const jacobi *d, const as_context *c, int32_t j)
{
    const int32_t prompts = c->n - (int32_t)c->position, last = d->o.givens - 1;
    switch (d->o.init) {
    case AS_GUESS_PAD:
        return d->o.pad;
    case AS_GUESS_LAST:
        return c->history[c->n - 1];
    case AS_GUESS_PROMPT:
        return as_guess(c->history, prompts, c->seed, c->position, AS_INIT, (uint32_t)j);
    case AS_GUESS_VOCABULARY: /* JAC-11 */
        return as_guess(NULL, d->base.V, c->seed, c->position, AS_INIT, (uint32_t)j);
    default:
        return d->o.given[j < last ? j : last];
    }
}

/* JAC-05, JAC-06. */
static as_status begin_block(jacobi *d, const as_context *c, as_error *e)
{
    const int32_t limit = as_chain_limit(c), guesses = d->o.m - 1 < limit ? d->o.m - 1 : limit;
    if (guesses > d->capacity) {
        int32_t *grown = realloc(d->guess, (size_t)guesses * sizeof *grown);
        if (!grown) return as_fail(e, AS_NO_MEMORY, "no memory for %d guesses", (int)guesses);
        d->guess = grown;
        d->capacity = guesses;
    }
    for (int32_t j = 0; j < guesses; j++) d->guess[j] = fresh(d, c, j);
    d->r = guesses + 1;
    return AS_OK;
}

/* JAC-01. */
static as_status propose(as_drafter *base, const as_context *c, as_tree *tree, as_plan *plan,
                         as_error *e)
{
    jacobi *d = (jacobi *)base;
    as_status s = d->r > 0 ? AS_OK : begin_block(d, c, e);
    plan->whole = d->o.whole;
    for (int32_t i = 0; i < d->r - 1 && s == AS_OK; i++)
        s = as_tree_add(tree, d->guess[i], i, e);
    return s;
}

/* JAC-03: a_{c+1} to a_{r-2}; JAC-12: all of a_0 to a_{m-2}, if nothing was emitted. */
static as_status observe(as_drafter *base, const as_context *c, const as_step *step,
                         as_error *e)
{
    jacobi *d = (jacobi *)base;
    const int32_t final = step->length;
    as_status s = AS_OK;
    (void)c;
    assert(step->tree->rows == d->r && final <= d->r && (final == step->accepted + 1 || d->o.whole));
    for (int32_t i = final; i < d->r - 1 && s == AS_OK; i++)
        s = as_argmax(step->logits[i], d->base.V, &d->guess[i - final], e);
    d->r -= final;
    return s;
}

static as_status reset(as_drafter *base, as_error *e)
{
    (void)e;
    ((jacobi *)base)->r = 0;
    return AS_OK;
}

static void free_drafter(as_drafter *base)
{
    free(((jacobi *)base)->guess);
    free(base);
}

static as_status check(const as_jacobi *o, int32_t V, as_error *e)
{
    if (o->m < 1)
        return as_refuse(e, AS_BAD_INPUT, "block", "jacobi: m %d must be at least 1",
                         (int)o->m);
    if ((unsigned)o->init > AS_GUESS_VOCABULARY)
        return as_refuse(e, AS_BAD_INPUT, "init", "jacobi: init %d is unknown", (int)o->init);
    if (o->init == AS_GUESS_PAD && (o->pad < 0 || o->pad >= V))
        return as_refuse(e, AS_BAD_INPUT, "pad", "jacobi: pad %d must be 0 to %d", (int)o->pad,
                         (int)V - 1);
    if (o->init != AS_GUESS_GIVEN) return AS_OK;
    if (o->givens < 1)
        return as_refuse(e, AS_BAD_INPUT, "given",
                         "jacobi: init given needs at least one token");
    return as_check_tokens(o->given, o->givens, V, "jacobi: given", "given", e);
}

as_status as_draft_jacobi(const as_jacobi *o, int32_t V, as_drafter **drafter, as_error *e)
{
    static const as_drafter_ops operations = {reset, propose, observe, free_drafter, NULL};
    const jacobi made = {{&operations, "jacobi", 1u << AS_RULE_GREEDY, V, NULL}, *o, 0, NULL, 0};
    const as_status s = check(o, V, e);
    return s == AS_OK ? as_drafter_make(&made, sizeof made, drafter, e) : s;
}
