/* example_plugin.c - a whole implementation under test, to copy. It needs iut.h and a C
 * compiler:
 *
 *     cc -std=c11 -O2 -fPIC -shared -I DIR_OF_IUT_H -o my_verifier.so example_plugin.c
 *     assay run --iut plugin:my_verifier.so
 *
 * Your code goes to the places marked ###. What you leave out of the table at the end is not
 * claimed, and not tested. This one computes in binary32 with running sums from left to right,
 * as much code out there does, and says so in its claims; the suite then allows for that
 * arithmetic. */
#include "iut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an instance remembers: a copy of the panel. ### Add your handles, streams, device
 * buffers. */
struct iut {
    int32_t V, S, C;
    int32_t *cls, *next;
    float *p, *q, *p_logit; /* [S][V] */
    float *work;            /* [V] */
    char error[160];
};

/* ---- Life. ### Open your device in create. If it is absent, let create succeed all the same
 * and return IUT_NO_DEVICE from the operations: the report then says UNAVAILABLE. NULL with a
 * text in `error` is for what nobody can test. */

static void forget(iut *x)
{
    free(x->cls);
    free(x->next);
    free(x->p);
    free(x->q);
    free(x->p_logit);
    free(x->work);
    memset(x, 0, sizeof *x);
}

static iut *create(const char *options, char *error, size_t error_size)
{
    iut *x = calloc(1, sizeof *x);
    if (x && *options == '\0') return x;
    snprintf(error, error_size, x ? "example: it has no options" : "example: out of memory");
    free(x);
    return NULL;
}

static void destroy(iut *x)
{
    forget(x);
    free(x);
}

static const char *last_error(iut *x)
{
    return x->error;
}

/* ### Say what your code does. A field that you leave at 0 is "not said". */
static iut_status claims(iut *x, iut_claims *c)
{
    (void)x;
    c->name = "example plugin";
    c->version = "1";
    c->device = "cpu";
    c->uniforms =
        IUT_UNIFORMS_SUPPLIED; /* verify and draw use the uniforms that the suite passes */
    c->input = IUT_FROM_PROBS;
    c->map = IUT_MAP_CDF_BY_ID;
    c->rule = IUT_RULE_TOKEN;
    c->arithmetic = IUT_ARITH_F32;
    c->uniform_bits = 24;
    c->tie = IUT_TIE_FIRST;
    c->q_zero = IUT_ACCEPT;
    c->bad_draft = IUT_ERROR;
    c->empty = IUT_EMPTY_FROM_P;
    c->greedy_identical = 1;
    if (c->size >= offsetof(iut_claims, warm)) { /* an older suite knows of no trees */
        c->tree_rules = c->lossless_any = IUT_TREE_MATCH;
        c->tree_drawn = IUT_DRAWN_FIXED | IUT_DRAWN_IID | IUT_DRAWN_WITHOUT | IUT_DRAWN_MIXED;
    }
    if (c->size >= sizeof *c) c->drafts = IUT_DRAFTS_SAMPLED;
    return IUT_OK;
}

/* ---- Panel: copy what you need. ### Upload it to your device. -------------------- */

static void *copy(const void *from, size_t bytes)
{
    void *to = malloc(bytes);
    return to ? memcpy(to, from, bytes) : NULL;
}

static iut_status panel(iut *x, const iut_panel *given)
{
    const size_t V = (size_t)given->V, S = (size_t)given->S, C = (size_t)given->C;
    forget(x);
    x->V = given->V, x->S = given->S, x->C = given->C;
    x->cls = copy(given->cls, V * sizeof(int32_t));
    x->next = copy(given->next, S * C * sizeof(int32_t));
    x->p = copy(given->p, S * V * sizeof(float));
    x->q = copy(given->q, S * V * sizeof(float));
    x->p_logit = copy(given->p_logit, S * V * sizeof(float));
    x->work = malloc(V * sizeof(float));
    return x->cls && x->next && x->p && x->q && x->p_logit && x->work ? IUT_OK : IUT_NO_MEMORY;
}

/* ---- The pieces. ### Your kernels. ----------------------------------------------- */

/* The first id whose running sum exceeds u times the total; a token of weight 0 is never drawn.
 */
static int32_t draw_from(const float *weight, int32_t V, float u)
{
    float total = 0, sum = 0;
    int32_t last = -1;
    for (int32_t i = 0; i < V; i++) total += weight[i];
    for (int32_t i = 0; i < V; i++) {
        if (weight[i] > 0) last = i;
        sum += weight[i];
        if (weight[i] > 0 && sum > u * total) return i;
    }
    return last; /* rounding can leave u * total at the end of the row */
}

static void residual_of(const float *p, const float *q, int32_t V, float *r)
{
    for (int32_t i = 0; i < V; i++) r[i] = p[i] > q[i] ? p[i] - q[i] : 0;
}

/* A draw from max(0, p - q), or from p where that is empty. */
static int32_t draw_residual(iut *x, const float *p, const float *q, float u)
{
    residual_of(p, q, x->V, x->work);
    const int32_t token = draw_from(x->work, x->V, u);
    return token >= 0 ? token : draw_from(p, x->V, u);
}

static const float *row(const iut *x, const float *rows, int32_t state)
{
    return rows + (size_t)state * (size_t)x->V;
}

static int32_t argmax(const float *logits, int32_t V)
{
    int32_t best = 0;
    for (int32_t i = 1; i < V; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Drafts before the first -1; -1 for an id outside the vocabulary. */
static int32_t count_drafts(iut *x, const int32_t *draft, int32_t len)
{
    for (int32_t i = 0; i < len && draft[i] != -1; i++)
        if (draft[i] < 0 || draft[i] >= x->V) {
            snprintf(x->error, sizeof x->error, "draft %d is %d; it must be 0 to %d", i,
                     draft[i], x->V - 1);
            return -1;
        }
    int32_t n = 0;
    while (n < len && draft[n] != -1) n++;
    return n;
}

/* One step over n drafts: rows by state, uniforms for acceptance, one for a correction, one for
 * the bonus token. Returns how many tokens it wrote, 1 to n + 1. */
static int32_t step(iut *x, const int32_t *state, const int32_t *draft, int32_t n,
                    const float *accept, float u_residual, float u_bonus, int32_t *out)
{
    int32_t i = 0;
    for (; i < n; i++) {
        const float *p = row(x, x->p, state[i]), *q = row(x, x->q, state[i]);
        if (!(accept[i] * q[draft[i]] < p[draft[i]])) {
            out[i] = draw_residual(x, p, q, u_residual);
            return i + 1;
        }
        out[i] = draft[i];
    }
    out[n] = draw_from(row(x, x->p, state[n]), x->V, u_bonus);
    return n + 1;
}

/* ---- The operations: walk over the cases of a batch. ----------------------------- */

enum { MAX_GAMMA = 64 };

static iut_status too_long(iut *x)
{
    snprintf(x->error, sizeof x->error, "more than %d drafts a step", MAX_GAMMA);
    return IUT_UNSUPPORTED;
}

static iut_status verify(iut *x, iut_verify_batch *b)
{
    const int32_t g = b->gamma;
    float accept[MAX_GAMMA];
    if (g > MAX_GAMMA) return too_long(x);
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t *draft = b->draft + (ptrdiff_t)i * g;
        const double *u = b->u + (ptrdiff_t)i * (g + 2);
        const int32_t n = count_drafts(x, draft, b->len[i]);
        if (n < 0) return IUT_BAD_INPUT;
        for (int32_t j = 0; j < n; j++) accept[j] = (float)u[j];
        b->out_len[i] = step(x, b->state + (ptrdiff_t)i * (g + 1), draft, n, accept,
                             (float)u[g], (float)u[g + 1], b->out + (ptrdiff_t)i * (g + 1));
    }
    return IUT_OK;
}

static iut_status verify_greedy(iut *x, iut_verify_batch *b)
{
    const int32_t g = b->gamma;
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t *draft = b->draft + (ptrdiff_t)i * g,
                      *state = b->state + (ptrdiff_t)i * (g + 1);
        int32_t *out = b->out + (ptrdiff_t)i * (g + 1);
        const int32_t n = count_drafts(x, draft, b->len[i]);
        if (n < 0) return IUT_BAD_INPUT;
        int32_t j = 0;
        do out[j] = argmax(row(x, x->p_logit, state[j]), x->V);
        while (j < n && out[j] == draft[j] && ++j <= n);
        b->out_len[i] = j + 1;
    }
    return IUT_OK;
}

/* ---- Trees: several drafts a place, by the match rule. ### Your rule for the children of a node. */

/* Every node hangs below an earlier one of its request. */
static iut_status check_tree(iut *x, const int32_t *token, const int32_t *parent, int32_t nodes)
{
    for (int32_t i = 0; i < nodes; i++) {
        const int good = i ? parent[i] >= 0 && parent[i] < i && token[i] >= -1 && token[i] < x->V
                           : parent[i] == -1 && token[i] == -1;
        if (good) continue;
        snprintf(x->error, sizeof x->error, "node %d has the token %d and the parent %d", i, token[i], parent[i]);
        return IUT_BAD_INPUT;
    }
    return IUT_OK;
}

/* The first child of `at` with that token; 0: there is none. A placeholder has token -1, which is never drawn. */
static int32_t child_with(const int32_t *token, const int32_t *parent, int32_t nodes, int32_t at, int32_t wanted)
{
    for (int32_t i = at + 1; i < nodes; i++)
        if (parent[i] == at && token[i] == wanted) return i;
    return 0;
}

static iut_status verify_tree(iut *x, iut_tree_batch *b)
{
    for (int32_t i = 0, from = 0; i < b->n; from += b->node_count[i++]) {
        const int32_t *token = b->token + from, *parent = b->parent + from, nodes = b->node_count[i];
        int32_t *out = b->out + (ptrdiff_t)i * (b->depth + 1), *out_node = b->out_node + (ptrdiff_t)i * (b->depth + 1);
        if (check_tree(x, token, parent, nodes) != IUT_OK) return IUT_BAD_INPUT;
        int32_t at = 0, n = 0;
        do {
            out[n] = draw_from(row(x, x->p, b->state[from + at]), x->V, (float)b->u[from + at]);
            at = child_with(token, parent, nodes, at, out[n]);
            if (at) out_node[n] = at;
            n++;
        } while (at);
        b->out_len[i] = n;
    }
    return IUT_OK;
}

static iut_status draw(iut *x, iut_draw_batch *b)
{
    for (int32_t i = 0; i < b->n; i++)
        b->token[i] = draw_from(row(x, x->p, b->state[i]), x->V, (float)b->u[i]);
    return IUT_OK;
}

static iut_status residual(iut *x, int32_t n, const int32_t *state, float *r)
{
    for (int32_t i = 0; i < n; i++)
        residual_of(row(x, x->p, state[i]), row(x, x->q, state[i]), x->V,
                    r + (ptrdiff_t)i * x->V);
    return IUT_OK;
}

/* ---- Streams: this implementation drafts for itself, with a generator of its own. */

/* SplitMix64 (Steele, Lea, Flood 2014). ### Your generator. */
static float uniform(uint64_t *s)
{
    uint64_t z = *s += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return (float)((z ^ z >> 31) >> 40) * 0x1p-24f;
}

/* Neighbouring seeds are far apart on the generator's one orbit: the seed is scrambled first.
 */
static uint64_t scramble(uint64_t seed)
{
    seed = (seed ^ seed >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    seed = (seed ^ seed >> 32) * UINT64_C(0xD6E8FEB86659FD93);
    return seed ^ seed >> 32;
}

static int32_t stream_one(iut *x, const iut_stream_batch *b, int32_t now, uint64_t random,
                          int32_t *out, int32_t *accepted)
{
    int32_t state[MAX_GAMMA + 1], draft[MAX_GAMMA], run[MAX_GAMMA + 1], done = 0;
    float accept[MAX_GAMMA];
    for (int32_t s = 0; done < b->k; s++) {
        const int32_t room = b->k - done - 1, n = b->gamma < room ? b->gamma : room;
        state[0] = now;
        for (int32_t i = 0; i < n; i++) {
            draft[i] = draw_from(row(x, x->q, state[i]), x->V, uniform(&random));
            state[i + 1] = x->next[(ptrdiff_t)state[i] * x->C + x->cls[draft[i]]];
            accept[i] = uniform(&random);
        }
        const float u_residual = uniform(&random), u_bonus = uniform(&random);
        const int32_t tokens = step(x, state, draft, n, accept, u_residual, u_bonus, run);
        accepted[s] = tokens - 1;
        for (int32_t i = 0; i < tokens; i++) {
            out[done++] = run[i];
            if (run[i] == b->eos) return done;
            now = x->next[(ptrdiff_t)now * x->C + x->cls[run[i]]];
        }
    }
    return done;
}

static iut_status stream(iut *x, iut_stream_batch *b)
{
    if (b->gamma > MAX_GAMMA) return too_long(x);
    for (int32_t i = 0; i < b->n; i++)
        b->out_len[i] =
            stream_one(x, b, b->start[i], scramble(b->seed + (uint64_t)i),
                       b->out + (ptrdiff_t)i * b->k, b->accepted + (ptrdiff_t)i * b->k);
    return IUT_OK;
}

/* ### The table: what you leave out is not claimed. Here that is `served`. */
const iut_api *iut_entry(void)
{
    static const iut_api api = {.abi = IUT_ABI,
                                .size = sizeof api,
                                .create = create,
                                .destroy = destroy,
                                .last_error = last_error,
                                .claims = claims,
                                .panel = panel,
                                .residual = residual,
                                .draw = draw,
                                .verify = verify,
                                .verify_greedy = verify_greedy,
                                .stream = stream,
                                .verify_tree = verify_tree};
    return &api;
}
