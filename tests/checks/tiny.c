/* tiny.c - see tiny.h. One fault at most is set; each is consulted where it lies. */
#include "tests/checks/tiny.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/num/uniform.h"

tiny_setup tiny;

enum { MOST = 64 };

struct iut {
    iut_claims claims;
    tiny_fault fault;
    int32_t V, S, C;
    int32_t *cls, *next;
    float *p, *q, *p_logit, *q_logit;
    iut_sampling target, draft;
    const char *error;
    uint64_t calls;
};

static bool has(const iut *x, tiny_fault f)
{
    return x->fault == f;
}

iut_claims tiny_claims(void)
{
    return (iut_claims){.size = sizeof(iut_claims),
                        .name = "tiny",
                        .version = "1",
                        .device = "cpu",
                        .uniforms = IUT_UNIFORMS_SUPPLIED,
                        .input = IUT_FROM_PROBS,
                        .map = IUT_MAP_CDF_BY_ID,
                        .rule = IUT_RULE_TOKEN,
                        .arithmetic = IUT_ARITH_CANONICAL,
                        .uniform_bits = 29,
                        .tie = IUT_TIE_FIRST,
                        .q_zero = IUT_ACCEPT,
                        .bad_row = IUT_ERROR,
                        .bad_draft = IUT_ERROR,
                        .empty = IUT_EMPTY_FROM_P,
                        .greedy_identical = 1,
                        .seed_bits = 64};
}

static iut *create(const char *options, char *error, size_t error_size)
{
    iut *x = calloc(1, sizeof *x);
    (void)options;
    if (!x) {
        snprintf(error, error_size, "out of memory");
        return NULL;
    }
    x->claims = tiny.claims;
    x->fault = tiny.fault;
    return x;
}

static void forget(iut *x)
{
    free(x->cls);
    free(x->next);
    free(x->p);
    free(x->q);
    free(x->p_logit);
    free(x->q_logit);
}

static void destroy(iut *x)
{
    forget(x);
    free(x);
}

static const char *last_error(iut *x)
{
    return x->error ? x->error : "";
}

static iut_status claims(iut *x, iut_claims *c)
{
    *c = x->claims;
    return IUT_OK;
}

static iut_status bad(iut *x, const char *why)
{
    x->error = why;
    return IUT_BAD_INPUT;
}

static void *copy(const void *from, size_t bytes)
{
    void *to = malloc(bytes);
    return to ? memcpy(to, from, bytes) : NULL;
}

static bool in_range(const iut_sampling *s)
{
    return s->temperature >= 0 && s->temperature < INFINITY && s->top_k >= 0 && s->top_p > 0 &&
           s->top_p <= 1 && s->min_p >= 0 && s->min_p <= 1;
}

static iut_status panel(iut *x, const iut_panel *m)
{
    const size_t V = (size_t)m->V, S = (size_t)m->S, rows = S * V * sizeof(float);
    if (!has(x, PARAMETERS_TAKEN) && (!in_range(&m->target) || !in_range(&m->draft)))
        return bad(x, "a sampling parameter is out of range");
    forget(x);
    x->V = m->V, x->S = m->S, x->C = m->C;
    x->cls = copy(m->cls, V * sizeof(int32_t));
    x->next = copy(m->next, S * (size_t)m->C * sizeof(int32_t));
    x->p = copy(m->p, rows);
    x->q = copy(m->q, rows);
    x->p_logit = copy(m->p_logit, rows);
    x->q_logit = copy(m->q_logit, rows);
    x->target = m->target;
    x->draft = m->draft;
    return x->cls && x->next && x->p && x->q && x->p_logit && x->q_logit ? IUT_OK
                                                                         : IUT_NO_MEMORY;
}

static float *row(const iut *x, float *rows, int32_t state)
{
    return rows + (int64_t)state * x->V;
}

/* -- Draws ------------------------------------------------------------------------- */

__extension__ typedef unsigned __int128 wide;

static uint64_t weight(float t)
{
    return t > 0 ? (uint64_t)nearbyint((double)t * 0x1p44) : 0;
}

static int32_t draw_row(const iut *x, const float *w, uint64_t U)
{
    uint64_t total = 0, sum = 0;
    int32_t last = 0;
    if (has(x, DRAW_24_BITS)) U = U >> 40 << 40;
    for (int32_t t = 0; t < x->V; t++) total += weight(w[t]);
    if (has(x, TOTAL_IS_1)) total = UINT64_C(1) << 44;
    const uint64_t target = (uint64_t)((wide)U * total >> 64);
    for (int32_t t = 0; t < x->V; t++) {
        sum += weight(w[t]);
        if (weight(w[t])) last = t;
        if (has(x, DRAW_LE) ? sum >= target : sum > target)
            return has(x, DRAW_V) && t == x->V - 1 ? x->V : t;
    }
    return last;
}

static int32_t correction(const iut *x, const float *p, const float *q, uint64_t U)
{
    float r[4096];
    float mass = 0;
    for (int32_t t = 0; t < x->V; t++) {
        const float d = p[t] - q[t];
        r[t] = d > 0 ? d : has(x, RESIDUAL_ABS) ? -d : 0;
        mass += r[t];
    }
    if (mass == 0 && has(x, EMPTY_IS_0)) return 0;
    return draw_row(x, mass == 0 || has(x, RESIDUAL_IS_P) ? p : r, U);
}

/* -- Uniforms ---------------------------------------------------------------------- */

/* Where a step takes its uniforms from: `u` as iut_verify_batch has it, or the seed. */
typedef struct {
    const double *u;
    int32_t gamma;
    uint64_t seed, position;
} noise;

static uint64_t word(const iut *x, const noise *n, int32_t i, as_purpose purpose)
{
    if (has(x, WRONG_PURPOSE) && purpose == AS_DRAW && i) purpose = AS_DRAFT;
    const bool cut = (purpose == AS_RESIDUAL && has(x, SEED_CUT_RESIDUAL)) ||
                     (purpose == AS_DRAW && has(x, SEED_CUT_DRAW));
    const uint64_t seed = has(x, ONE_ANSWER) ? 0 : cut ? (uint32_t)n->seed : n->seed;
    const as_words w = as_random(seed, n->position + (uint64_t)i, purpose, 0);
    return has(x, WORDS_SWAPPED) ? (uint64_t)w.w[1] << 32 | w.w[0] : as_word64(w);
}

static double accept_uniform(const iut *x, const noise *n, int32_t i)
{
    if (n->u) return n->u[i];
    const uint64_t seed = has(x, ONE_ANSWER) ? 0 : has(x, SEED_CUT_ACCEPT) ? (uint32_t)n->seed : n->seed;
    const double u = as_unit29(as_random(seed, n->position + (uint64_t)i, AS_ACCEPT, 0));
    return has(x, ACCEPT_24_BITS) ? floor(u * 0x1p24) * 0x1p-24 : u;
}

static uint64_t supplied(double u)
{
    return (uint64_t)(u * 0x1p64);
}

static uint64_t residual_uniform(const iut *x, const noise *n, int32_t i)
{
    if (has(x, REUSES_ACCEPT)) return supplied(accept_uniform(x, n, i));
    return n->u ? supplied(n->u[n->gamma]) : word(x, n, i, AS_RESIDUAL);
}

static uint64_t draw_uniform(const iut *x, const noise *n, int32_t i)
{
    if (!n->u) return word(x, n, i, AS_DRAW);
    return supplied(n->u[x->claims.rule == IUT_RULE_MATCH ? i : n->gamma + 1]);
}

/* -- Rules ------------------------------------------------------------------------- */

static bool accepts(const iut *x, double p, double q, double u)
{
    if (q == 0 && has(x, Q_ZERO_REJECTS)) return false;
    if (has(x, ACCEPT_LE)) return u * q <= p;
    return has(x, ACCEPT_SWAPPED) ? u * p < q : u * q < p;
}

/* Returns the tokens emitted; state[i] has the rows of position i. */
static int32_t step(iut *x, const int32_t *state, const int32_t *draft, int32_t n,
                    const noise *u, int32_t *out)
{
    for (int32_t i = 0;; i++) {
        float *p = row(x, x->p, has(x, ROW_0) ? state[0] : state[i]);
        const float *q = row(x, x->q, has(x, ROW_0) ? state[0] : state[i]);
        if (x->claims.rule == IUT_RULE_MATCH || i == n) {
            if (has(x, NO_BONUS) && i && i == n) return i;
            out[i] = draw_row(x, p, draw_uniform(x, u, i));
            if (has(x, MASK_EMITTED) && out[i] == x->V / 2) out[i] = 0;
            if (has(x, ROWS_WRITTEN) && out[i] >= 0) p[out[i]] = 0;
            if (i == n || out[i] != draft[i]) return i + 1;
        } else if (accepts(x, (double)p[draft[i]], (double)q[draft[i]],
                           accept_uniform(x, u, i)))
            out[i] = draft[i];
        else {
            out[i] = correction(x, p, q, residual_uniform(x, u, i));
            for (int32_t j = i + 1; j < n && has(x, TAIL_KEPT); j++) out[j] = draft[j];
            return i + 1;
        }
    }
}

static bool good_row(iut *x, const float *p)
{
    bool valid = true, finite = true;
    uint64_t total = 0;
    for (int32_t t = 0; t < x->V; t++) {
        valid = valid && p[t] >= 0 && p[t] <= 1;
        finite = finite && isfinite(p[t]);
        total += valid ? weight(p[t]) : 0;
    }
    if ((valid && total > 0) || (finite && has(x, FINITE_TAKEN))) return true;
    bad(x, "a row of probabilities is invalid");
    return false;
}

/* The drafts that count, into `list`; -1: one is no id. */
static int32_t drafts_of(iut *x, const int32_t *draft, int32_t len, int32_t *list)
{
    int32_t n = 0;
    for (int32_t i = 0; i < len; i++) {
        if (draft[i] == -1 && has(x, MINUS_1_SKIPPED)) continue;
        if (draft[i] == -1) break;
        const bool valid = draft[i] >= 0 && draft[i] < x->V;
        if (!valid && x->claims.bad_draft == IUT_REJECT) break;
        if (!valid && !has(x, BAD_DRAFT_TAKEN)) return (void)bad(x, "a draft is no id"), -1;
        list[n++] = valid ? draft[i] : 0;
    }
    return n;
}

static iut_status verify(iut *x, iut_verify_batch *b)
{
    for (int32_t i = 0; i < b->n; i++) {
        int32_t list[MOST];
        const int32_t *state = b->state + i * (b->gamma + 1);
        const int32_t n = drafts_of(x, b->draft + i * b->gamma, b->len[i], list);
        if (n < 0) return IUT_BAD_INPUT;
        for (int32_t j = 0; j <= n; j++)
            if (!has(x, ROWS_WRITTEN) && !good_row(x, row(x, x->p, state[j])))
                return IUT_BAD_INPUT;
        const noise u = {b->u ? b->u + i * (b->gamma + 2) : NULL, b->gamma,
                         b->seed + (uint64_t)i, b->position};
        b->out_len[i] = step(x, state, list, n, &u, b->out + i * (b->gamma + 1));
    }
    return IUT_OK;
}

static iut_status draw(iut *x, iut_draw_batch *b)
{
    for (int32_t i = 0; i < b->n; i++) {
        const noise u = {NULL, 0, b->seed + (uint64_t)i, b->position};
        if (!good_row(x, row(x, x->p, b->state[i]))) return IUT_BAD_INPUT;
        b->token[i] = draw_row(x, row(x, x->p, b->state[i]),
                               b->u ? supplied(b->u[i]) : word(x, &u, 0, AS_DRAW));
    }
    return IUT_OK;
}

/* -- Logits ------------------------------------------------------------------------ */

static int32_t argmax(const iut *x, const float *logit)
{
    int32_t best = has(x, ARGMAX_FROM_0) ? 0 : -1;
    float top = has(x, ARGMAX_FROM_0) ? 0.0f : -INFINITY;
    for (int32_t t = 0; t < x->V; t++) {
        if (isnan(logit[t]) || logit[t] == INFINITY) return -1;
        if (logit[t] > top || (best < 0 && logit[t] > -INFINITY) ||
            (has(x, TIE_LAST) && best >= 0 && logit[t] == top)) {
            top = logit[t];
            best = t;
        }
    }
    return best;
}

static iut_status verify_greedy(iut *x, iut_verify_batch *b)
{
    for (int32_t i = 0; i < b->n; i++) {
        int32_t list[MOST], *out = b->out + i * (b->gamma + 1);
        const int32_t n = drafts_of(x, b->draft + i * b->gamma, b->len[i], list);
        if (n < 0) return IUT_BAD_INPUT;
        for (int32_t j = 0;; j++) {
            out[j] = argmax(x, row(x, x->p_logit, b->state[i * (b->gamma + 1) + j]));
            b->out_len[i] = j + 1;
            if (out[j] < 0) return bad(x, "a row of logits is invalid");
            if (j == n || out[j] != list[j]) break;
        }
    }
    return IUT_OK;
}

static const float *sort_key;
static int by_rank(const void *a, const void *b)
{
    const int32_t i = *(const int32_t *)a, j = *(const int32_t *)b;
    return sort_key[i] != sort_key[j]
               ? (sort_key[i] < sort_key[j]) - (sort_key[i] > sort_key[j])
               : (i > j) - (i < j);
}

/* DIST in binary64: what an honest implementation of arithmetic F64 does. */
static void serve(const iut *x, const float *logit, const iut_sampling *s, float *p)
{
    int32_t order[4096], kept = x->V;
    double e[4096], total = 0, sum = 0;
    const double T = has(x, TEMPERATURE_1) ? 1.0 : (double)s->temperature;
    for (int32_t t = 0; t < x->V; t++) order[t] = t;
    sort_key = logit;
    qsort(order, (size_t)x->V, sizeof *order, by_rank);
    for (int32_t t = 0; t < x->V; t++) p[t] = 0;
    while (kept > 0 && logit[order[kept - 1]] == -INFINITY) kept--;
    if (T == 0) {
        p[order[0]] = 1;
        return;
    }
    if (s->top_k && s->top_k < kept) kept = s->top_k + has(x, TOP_K_PLUS_1);
    for (int32_t i = 0; i < kept; i++)
        total += e[i] = exp(((double)logit[order[i]] - (double)logit[order[0]]) / T);
    for (int32_t i = 0; i < kept && s->top_p < 1; i++)
        if ((sum += e[i]) >= (double)s->top_p * total) kept = i + 1;
    while (s->min_p > 0 && !has(x, MIN_P_OFF) && e[kept - 1] < (double)s->min_p) kept--;
    total = 0;
    for (int32_t i = 0; i < kept; i++) total += e[i];
    for (int32_t i = 0; i < kept; i++) p[order[i]] = (float)(e[i] / total);
    for (int32_t t = 0; t < x->V && has(x, MASK_LEAKS); t++)
        if (logit[t] == -INFINITY) p[t] = 1e-9f;
}

static iut_status served(iut *x, int32_t n, const int32_t *state, int32_t of_draft, float *prob)
{
    for (int32_t i = 0; i < n; i++) {
        const float *logit = row(x, of_draft ? x->q_logit : x->p_logit, state[i]);
        if (!has(x, NAN_SERVED) && argmax(x, logit) < 0)
            return bad(x, "a row of logits is invalid");
        serve(x, logit, of_draft ? &x->draft : &x->target, prob + (int64_t)i * x->V);
    }
    return IUT_OK;
}

static iut_status residual(iut *x, int32_t n, const int32_t *state, float *r)
{
    for (int32_t i = 0; i < n; i++)
        for (int32_t t = 0; t < x->V; t++) {
            const float d = row(x, x->p, state[i])[t] - row(x, x->q, state[i])[t];
            r[(int64_t)i * x->V + t] = d > 0 ? d : has(x, RESIDUAL_ABS) ? -d : 0;
        }
    return IUT_OK;
}

/* -- Streams ----------------------------------------------------------------------- */

static int32_t after(const iut *x, int32_t state, int32_t token)
{
    return x->next[state * x->C + x->cls[token]];
}

static int32_t stream_one(iut *x, const iut_stream_batch *b, int32_t state, uint64_t seed,
                          int32_t *out, int32_t *accepted)
{
    const int32_t k = b->k + (has(x, BUDGET_OVERRUN) && b->gamma ? 1 : 0);
    int32_t m = 0;
    for (int32_t s = 0; m < k; s++) {
        int32_t states[MOST], draft[MOST], run[MOST];
        noise u = {NULL, b->gamma, seed, (uint64_t)m};
        const int32_t left = b->k - m - 1, n = b->gamma < left ? b->gamma : left < 0 ? 0 : left;
        states[0] = state;
        for (int32_t i = 0; i < n; i++) {
            if (!good_row(x, row(x, x->q, states[i]))) return -1;
            draft[i] = draw_row(x, row(x, x->q, states[i]), word(x, &u, i, AS_DRAFT));
            states[i + 1] = after(x, states[i], draft[i]);
        }
        if (!good_row(x, row(x, x->p, state))) return -1;
        const int32_t emitted = step(x, states, draft, n, &u, run);
        accepted[s] = emitted - 1;
        for (int32_t i = 0; i < emitted && m < b->k; i++) {
            out[m++] = run[i];
            if (run[i] == b->eos && !(has(x, EOS_IGNORED) && i + 1 < emitted)) return m;
            state = after(x, state, run[i]);
        }
        if (has(x, REJECTED_CONTEXT) && emitted <= n) state = states[emitted];
        if (has(x, TOKEN_REPEATED) && emitted > 1 && m < b->k) out[m++] = run[emitted - 1];
        if (m == b->k && has(x, BUDGET_OVERRUN) && b->gamma) return m + 1;
    }
    return m;
}

static iut_status stream(iut *x, iut_stream_batch *b)
{
    x->calls++;
    for (int32_t i = 0; i < b->n; i++) {
        /* Its own uniforms: no seed of the caller's. */
        const uint64_t own = x->claims.uniforms == IUT_UNIFORMS_OWN ? x->calls << 32 : 0;
        b->out_len[i] = stream_one(x, b, b->start[i], (own ? own : b->seed) + (uint64_t)i,
                                   b->out + (int64_t)i * b->k, b->accepted + (int64_t)i * b->k);
        if (b->out_len[i] < 0) return IUT_BAD_INPUT;
    }
    return IUT_OK;
}

const iut_api *tiny_api(void)
{
    static const iut_api api = {.abi = IUT_ABI,
                                .size = sizeof api,
                                .create = create,
                                .destroy = destroy,
                                .last_error = last_error,
                                .claims = claims,
                                .panel = panel,
                                .served = served,
                                .residual = residual,
                                .draw = draw,
                                .verify = verify,
                                .verify_greedy = verify_greedy,
                                .stream = stream};
    return &api;
}
