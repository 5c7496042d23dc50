/* onehot.c - the one-hot rule at one level (verify.h). A candidate t that was fixed beforehand
 * stands for a draft law with all its mass on t, so it passes with probability p(t) and, once
 * refused, leaves p without t. The row is never normalised again: the mass that remains is an
 * integer, and t passes with probability w_t / W of it. So the token emitted has law p,
 * whatever the candidates are. */
#include "ref/verify/verify.h"

#include <stdbool.h>
#include <string.h>
#include "ref/dist/draw.h"
#include "ref/num/environment.h"
#include "ref/num/fixed.h"
#include "ref/num/rows.h"
#include "ref/num/uniform.h"
#include "ref/verify/branch.h"

static uint64_t total(const float *p, int32_t V)
{
    const as_environment before = as_enter();
    const uint64_t W = as_rows()->total(p, V);
    as_leave(before);
    return W;
}

/* ONEH-01, ONEH-02. */
static bool passes(float p, uint64_t U, uint64_t *W)
{
    const as_environment before = as_enter();
    const uint64_t w = as_weight(p);
    as_leave(before);
    if (as_target(U, *W) < w) return true;
    *W -= w;
    return false;
}

/* ONEH-04: all n were refused, and mass W remains. */
static int32_t draw_rest(const float *p, int32_t V, const int32_t *option, int32_t n,
                         uint64_t W, uint64_t U, float *rest)
{
    if (W == 0) return option[n - 1];
    memcpy(rest, p, (size_t)V * sizeof *rest);
    for (int32_t i = 0; i < n; i++) rest[option[i]] = 0.0f;
    return as_draw(rest, V, U);
}

/* Where the uniforms of a level come from: given, or else of a token of a sequence (RNG-06). */
typedef struct {
    const as_onehot_uniforms *given;
    uint64_t seed, position;
} source;

static uint64_t uniform(const source *s, as_purpose purpose, int32_t i)
{
    if (!s->given) return as_word64(as_random(s->seed, s->position, purpose, (uint32_t)i));
    return purpose == AS_ACCEPT     ? s->given->accept[i]
           : purpose == AS_RESIDUAL ? s->given->residual
                                    : s->given->draw;
}

static int32_t choose(const float *p, int32_t V, const int32_t *option, int32_t n,
                      const source *s, float *rest)
{
    if (n == 0) return as_draw(p, V, uniform(s, AS_DRAW, 0)); /* ONEH-05 */
    uint64_t W = total(p, V);
    for (int32_t i = 0; i < n; i++)
        if (passes(p[option[i]], uniform(s, AS_ACCEPT, i), &W)) return option[i];
    return draw_rest(p, V, option, n, W, uniform(s, AS_RESIDUAL, 0), rest);
}

int32_t as_onehot(const float *p, int32_t V, const int32_t *option, int32_t n,
                  const as_onehot_uniforms *u, float *rest)
{
    return choose(p, V, option, n, &(source){.given = u}, rest);
}

int32_t as_onehot_seeded(const float *p, int32_t V, const int32_t *option, int32_t n,
                         uint64_t seed, uint64_t position, float *rest)
{
    return choose(p, V, option, n, &(source){NULL, seed, position}, rest);
}

/* ONEH-07. */
int32_t as_branch_onehot(const as_branch *b, int32_t *last)
{
    const float *p = as_branch_node(b)->p;
    as_masses left = b->rest;
    as_masses_of(p, b->step->V, &left);
    for (int32_t i = 0, j = 0; i < b->n; i++) {
        const int32_t t = as_branch_child(b, i)->token;
        if (as_branch_with(b, t) < i) continue; /* a repeat */
        const uint64_t U = b->step->u ? as_unit_to_64(b->step->u[b->child[i]])
                                      : as_word64(as_branch_random(b->step, b->depth, AS_ACCEPT, j++));
        if (as_target(U, left.total) < left.w[t]) return i; /* ONEH-01 */
        left.total -= left.w[t];                            /* ONEH-02 */
        left.w[t] = 0;
    }
    *last = as_last_of_masses(b->step, &left, b->depth); /* ONEH-04 */
    return -1;
}
