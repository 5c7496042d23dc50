/* lm_net.c - see lm_net.h. Each fault stands beside the line that it breaks. */
#include "conformance/subjects/mutants/model/lm_net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/num/exp.h"
#include "ref/num/rope.h"

/* A subnormal is 0, before and after an operation. */
static float flushed(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* ---- Weights --------------------------------------------------------------------- */

static bool pack(net_map *w, const float *rows, int32_t N, int32_t K, char *why, size_t size)
{
    as_error e;
    w->rows = rows, w->N = N, w->K = K, w->faint = false;
    for (int64_t i = 0; i < (int64_t)N * K; i++)
        w->faint |= rows[i] != 0 && flushed(rows[i]) == 0;
    if (as_matrix_pack(&w->packed, rows, N, K, AS_F32, &e) == AS_OK) return true;
    snprintf(why, size, "%.200s", e.text);
    w->packed.panel = NULL;
    return false;
}

/* Has every number of the tensor the mantissa of F16, and some one that BF16 has not? */
static bool stored_as_f16(const float *rows, int64_t n)
{
    uint32_t all = 0;
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &rows[i], sizeof bits);
        all |= bits;
    }
    return (all & 0x1fff) == 0 && (all & 0xffff) != 0;
}

/* The smallest numbers of F16 are lost on the way. */
static void lose_subnormals(const float *rows, int64_t n)
{
    float *w = (float *)(uintptr_t)rows; /* the folder's own copy */
    const bool half = stored_as_f16(rows, n);
    for (int64_t i = 0; half && i < n; i++)
        if (fabsf(w[i]) < 0x1p-14f) w[i] = 0;
}

static bool pack_layer(net *a, int32_t i, char *why, size_t size)
{
    const oracle_config *c = &a->m->config;
    const oracle_layer *w = &a->m->layer[i];
    net_layer *l = &a->layer[i];
    const int32_t h = c->hidden, q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    if (fault(a->fault, ARI_HALF_SUBNORMALS)) lose_subnormals(w->gate, (int64_t)c->ffn * h);
    return pack(&l->q, w->q, q, h, why, size) && pack(&l->k, w->k, kv, h, why, size) &&
           pack(&l->v, w->v, kv, h, why, size) && pack(&l->o, w->o, h, q, why, size) &&
           pack(&l->gate, w->gate, c->ffn, h, why, size) &&
           pack(&l->up, w->up, c->ffn, h, why, size) &&
           pack(&l->down, w->down, h, c->ffn, why, size);
}

/* ARI-10 and ARI-11. */
static bool fill_frequencies(net *a, char *why, size_t size)
{
    const oracle_config *c = &a->m->config;
    const as_rope rope = {.theta = c->theta,
                          .llama3 = c->llama3 && !fault(a->fault, ARI_UNSCALED),
                          .factor = c->scaling.factor,
                          .low = c->scaling.low,
                          .high = c->scaling.high,
                          .original = c->scaling.original};
    as_error e;
    a->frequency = malloc((size_t)c->head_dim / 2 * sizeof *a->frequency);
    if (!a->frequency || as_rope_frequencies(&rope, c->head_dim, a->frequency, &e) != AS_OK) {
        snprintf(why, size, "no frequencies: out of memory, or theta out of range");
        return false;
    }
    const bool rough = fault(a->fault, ARI_FREQUENCY_FLOAT) && !c->llama3;
    for (int32_t i = 0; rough && i < c->head_dim / 2; i++)
        a->frequency[i] = 1.0f / powf((float)c->theta, 2.0f * (float)i / (float)c->head_dim);
    return true;
}

bool net_open(net *a, const char *folder, char *why, size_t why_size)
{
    a->folder = oracle_folder_open(folder, why, why_size);
    if (!a->folder) return false;
    a->m = oracle_folder_model(a->folder);
    a->layer = calloc((size_t)a->m->config.layers, sizeof *a->layer);
    bool ok = a->layer != NULL;
    for (int32_t i = 0; ok && i < a->m->config.layers; i++)
        ok = pack_layer(a, i, why, why_size);
    const float *output = fault(a->fault, NET_TIED) ? a->m->embedding : a->m->output;
    return ok && pack(&a->output, output, a->m->config.V, a->m->config.hidden, why, why_size) &&
           fill_frequencies(a, why, why_size);
}

void net_close(net *a)
{
    for (int32_t i = 0; a->layer && i < a->m->config.layers; i++) {
        net_map *all[] = {&a->layer[i].q,    &a->layer[i].k,  &a->layer[i].v,   &a->layer[i].o,
                          &a->layer[i].gate, &a->layer[i].up, &a->layer[i].down};
        for (int k = 0; k < 7; k++)
            if (all[k]->packed.panel) as_matrix_free(&all[k]->packed);
    }
    if (a->output.packed.panel) as_matrix_free(&a->output.packed);
    free(a->layer);
    free(a->frequency);
    oracle_folder_close(a->folder);
    const net empty = {.fault = a->fault, .manner = a->manner};
    *a = empty;
}

/* ---- Dot products (ARI-05 to ARI-08) --------------------------------------------- */

static float step(const net *a, float x, float w, float c)
{
    if (fault(a->fault, ARI_FLUSH)) return flushed(fmaf(flushed(x), flushed(w), flushed(c)));
    if (fault(a->fault, ARI_UNFUSED)) {
        const float product = x * w;
        return product + c;
    }
    return fmaf(x, w, c);
}

static float chain(const net *a, const float *x, const float *w, int32_t n)
{
    float c = 0;
    for (int32_t k = 0; k < n; k++) c = step(a, x[k], w[k], c);
    return c;
}

/* ARI-05 to ARI-07, as the clauses have it. */
static float plain_dot(const net *a, const float *x, const float *w, int32_t K)
{
    const int32_t group = fault(a->fault, ARI_FLAT) ? INT32_MAX : 8;
    float t = 0, g = 0;
    int32_t in_group = 0;
    for (int32_t k = 0; k < K;) {
        int32_t n = K - k < 128 ? K - k : 128;
        if (fault(a->fault, ARI_ONE_CHAIN)) n = K;
        if (fault(a->fault, ARI_BALANCED) && K - k < 256 && K - k > 128) n = (K - k + 1) / 2;
        g += chain(a, x + k, w + k, n);
        k += n;
        if (++in_group == group || k >= K) t += g, g = 0, in_group = 0;
    }
    return t;
}

/* Sixteen sums side by side: the way of many a kernel, and another arithmetic. */
static float strided_dot(const float *x, const float *w, int32_t K)
{
    float lane[16] = {0}, sum = 0;
    int32_t k = 0;
    for (; k + 16 <= K; k += 16)
        for (int i = 0; i < 16; i++) lane[i] += x[k + i] * w[k + i];
    for (; k < K; k++) sum += x[k] * w[k];
    for (int i = 0; i < 16; i++) sum += lane[i];
    return sum;
}

/* Where the circumstances choose the kernel. */
static bool leaks(const net *a, const net_setting *s, int32_t r)
{
    switch (a->fault) {
    case FAULT_LM_SPLIT_BY_ROWS: /* split over K when there are too few rows to fill the machine
                                  */
        return s->rows < 4;
    case FAULT_LM_TILE_BY_ROWS:
        return s->rows > 32;
    case FAULT_LM_TAIL_ROWS: /* what is left of the last tile of 8 */
        return s->rows > 8 && r >= s->rows / 8 * 8;
    case FAULT_LM_PREFILL_PATH:
        return s->prefix == 0 && s->rows > 1;
    case FAULT_LM_BATCH_SIZE:
        return s->sequences > 1;
    default:
        return a->manner == MANNER_LM_SELF;
    }
}

/* Must the fault be carried out? Elsewhere it leaves the bits alone, and the fast way has them.
 */
static bool literal(const net *a, const net_map *w)
{
    return (fault(a->fault, ARI_FLUSH) && w->faint) || fault(a->fault, ARI_UNFUSED) ||
           (fault(a->fault, ARI_FLAT) && w->K > 9 * 128) ||
           (fault(a->fault, ARI_ONE_CHAIN) && w->K > 128) ||
           (fault(a->fault, ARI_BALANCED) && w->K > 128 && w->K % 128);
}

static void one_product(const net *a, const net_map *w, bool strided, const float *x, float *y)
{
    for (int32_t i = 0; i < w->N; i++) {
        const float *row = w->rows + (int64_t)i * w->K;
        y[i] = strided ? strided_dot(x, row, w->K) : plain_dot(a, x, row, w->K);
    }
}

void net_product(const net *a, const net_setting *s, const net_map *w, const float *bias,
                 const float *x, int32_t rows, float *y)
{
    if (!literal(a, w) && a->manner != MANNER_LM_SELF)
        as_dense()->product(&w->packed, 0, (w->N + AS_PANEL - 1) / AS_PANEL, x, rows, y);
    for (int32_t r = 0; r < rows; r++) {
        float *out = y + (int64_t)r * w->N;
        const bool strided = leaks(a, s, r);
        if (strided || literal(a, w)) one_product(a, w, strided, x + (int64_t)r * w->K, out);
        for (int32_t i = 0; bias && i < w->N; i++) {
            if (fault(a->fault, ARI_BIAS_FIRST)) { /* a chain that starts from the bias */
                float c = bias[i];
                for (int32_t k = 0; k < w->K; k++)
                    c = fmaf(x[(int64_t)r * w->K + k], w->rows[(int64_t)i * w->K + k], c);
                out[i] = c;
            } else {
                out[i] += bias[i];
            }
        }
    }
}

/* ---- RMSNorm (ARI-09) ------------------------------------------------------------ */

static void norm_row(const net *a, bool strided, const float *x, const float *gain, int32_t n,
                     float *y)
{
    const float ss = strided ? strided_dot(x, x, n) : plain_dot(a, x, x, n);
    const float s = sqrtf(ss / (float)n + a->m->config.eps), r = 1.0f / s;
    for (int32_t i = 0; i < n; i++)
        y[i] = fault(a->fault, ARI_NORM_DIVIDES)      ? x[i] / s * gain[i]
               : fault(a->fault, ARI_NORM_GAIN_FIRST) ? x[i] * (r * gain[i])
                                                      : x[i] * r * gain[i];
}

void net_norm(const net *a, const net_setting *s, const float *x, const float *gain,
              int32_t rows, int32_t n, float *y)
{
    /* LM_NORM_BY_ROWS: a smaller block, and so another order, from 64 rows on. */
    const bool strided =
        a->manner == MANNER_LM_SELF || (fault(a->fault, LM_NORM_BY_ROWS) && s->rows >= 64);
    for (int32_t r = 0; r < rows; r++)
        norm_row(a, strided, x + (int64_t)r * n, gain, n, y + (int64_t)r * n);
}

/* ---- Rotation (ARI-12, ARI-13) --------------------------------------------------- */

static void rotate(const net *a, float *head, int32_t d, const float *c, const float *s)
{
    for (int32_t i = 0; i < d / 2; i++) {
        const int32_t x = fault(a->fault, ARI_INTERLEAVED) ? 2 * i : i,
                      y = fault(a->fault, ARI_INTERLEAVED) ? 2 * i + 1 : i + d / 2;
        const float p = head[x], q = head[y], ps = p * s[i], qs = q * s[i];
        if (fault(a->fault, ARI_ROTATION_UNFUSED)) {
            const float pc = p * c[i], qc = q * c[i];
            head[x] = pc - qs, head[y] = qc + ps;
        } else {
            head[x] = fmaf(p, c[i], -qs), head[y] = fmaf(q, c[i], ps);
        }
    }
}

static void turns(const net *a, int32_t position, float *c, float *s)
{
    const int32_t pairs = a->m->config.head_dim / 2;
    as_rope_table(a->frequency, pairs, position, 1, c, s);
    for (int32_t i = 0; fault(a->fault, ARI_REAL_ANGLE) && i < pairs; i++) {
        const double angle = (double)position * (double)a->frequency[i];
        c[i] = (float)cos(angle), s[i] = (float)sin(angle);
    }
}

void net_turn(const net *a, const oracle_layer *w, int32_t position, float *q, float *k)
{
    const oracle_config *m = &a->m->config;
    const int32_t d = m->head_dim;
    float c[ORACLE_MAX_HEAD / 2], s[ORACLE_MAX_HEAD / 2];
    const bool late = fault(a->fault, NET_NORM_AFTER_ROTATION);
    turns(a, position, c, s);
    for (int32_t h = 0; h < m->heads + m->kv_heads; h++) {
        float *head = h < m->heads ? q + h * d : k + (h - m->heads) * d;
        const float *gain = h < m->heads ? w->q_norm : w->k_norm;
        if (late) rotate(a, head, d, c, s);
        if (gain) norm_row(a, false, head, gain, d, head);
        if (!late) rotate(a, head, d, c, s);
    }
}

/* ---- Attention (ARI-14 to ARI-19) ------------------------------------------------ */

enum { MOST_CHUNKS = 64 };

typedef struct {
    float m, l, o[ORACLE_MAX_HEAD];
} part;

static float score(const net *a, const float *q, const float *key, int32_t d)
{
    const float scale = (float)(1.0 / sqrt((double)d));
    float scaled[ORACLE_MAX_HEAD];
    if (!fault(a->fault, ARI_QUERY_SCALED)) return chain(a, q, key, d) * scale;
    for (int32_t i = 0; i < d; i++) scaled[i] = q[i] * scale;
    return chain(a, scaled, key, d);
}

/* ARI_EXP_FAST: the exponential of a fast approximation, wrong in the last bits. */
static float power(const net *a, float x)
{
    if (fault(a->fault, ARI_FLUSH)) return flushed(as_exp(flushed(x)));
    return fault(a->fault, ARI_EXP_FAST) ? exp2f(x * 0x1.715476p+0f) : as_exp(x);
}

/* Which chunk the entry at `i` belongs to (ARI-16). */
static int32_t chunk_of(const net *a, const net_setting *s, const net_seen *seen)
{
    const int32_t at = seen->position;
    if (fault(a->fault, ARI_ONE_CHUNK)) return 0;
    if (fault(a->fault, LM_SPLIT_KV)) return at / (s->rows > 8 ? 32 : 64);
    if (fault(a->fault, LM_CHUNK_RELATIVE) && at >= s->prefix)
        return 1000 + (at - s->prefix) / 64;
    return at / 64;
}

/* One chunk, seen[0..n-1] (ARI-17). */
static void chunk(const net *a, const float *score_of, const net_seen *seen, int32_t n,
                  int32_t g, part *p)
{
    const int32_t d = a->m->config.head_dim;
    p->m = -INFINITY, p->l = 0;
    memset(p->o, 0, (size_t)d * sizeof *p->o);
    for (int32_t t = 0; t < n; t++)
        if ((seen[t].visible || fault(a->fault, ARI_MASKED_MAXIMUM)) && score_of[t] > p->m)
            p->m = score_of[t];
    for (int32_t i = 0; i < n; i++) {
        const int32_t t = fault(a->fault, ARI_DESCENDING) ? n - 1 - i : i;
        if (!seen[t].visible && !fault(a->fault, KV_MASK_BY_ZERO)) continue;
        const float e = seen[t].visible ? power(a, score_of[t] - p->m) : 0;
        p->l += e;
        for (int32_t k = 0; k < d; k++) p->o[k] = step(a, e, seen[t].value[g * d + k], p->o[k]);
    }
}

/* ARI-18; with ARI_ONLINE the sums follow a running maximum. */
static void combine(const net *a, const part *p, int32_t n, float *out)
{
    const int32_t d = a->m->config.head_dim;
    float M = -INFINITY, L = 0;
    memset(out, 0, (size_t)d * sizeof *out);
    for (int32_t c = 0; c < n && !fault(a->fault, ARI_ONLINE); c++)
        if (p[c].m > M) M = p[c].m;
    for (int32_t c = 0; c < n; c++) {
        if (fault(a->fault, ARI_ONLINE) && p[c].m > M) {
            const float shrink = power(a, M - p[c].m);
            for (int32_t k = 0; k < d; k++) out[k] *= shrink;
            L *= shrink, M = p[c].m;
        }
        const float w = power(a, p[c].m - M);
        L = step(a, w, p[c].l, L);
        for (int32_t k = 0; k < d; k++) out[k] = step(a, w, p[c].o[k], out[k]);
    }
    for (int32_t k = 0; k < d; k++)
        out[k] = fault(a->fault, ARI_RECIPROCAL) ? out[k] * (1.0f / L) : out[k] / L;
}

static void attend_head(const net *a, const net_setting *s, const float *q,
                        const net_seen *seen, int32_t n, int32_t g, float *out)
{
    static _Thread_local part parts[MOST_CHUNKS];
    float score_of[4096];
    const int32_t d = a->m->config.head_dim;
    int32_t chunks = 0;
    for (int32_t t = 0; t < n && t < 4096; t++)
        score_of[t] = score(a, q, seen[t].key + g * d, d);
    for (int32_t from = 0, to; from < n && chunks < MOST_CHUNKS; from = to) {
        to = from + 1;
        while (to < n && chunk_of(a, s, &seen[to]) == chunk_of(a, s, &seen[from])) to++;
        chunk(a, score_of + from, seen + from, to - from, g, &parts[chunks]);
        if (parts[chunks].l > 0 || fault(a->fault, KV_MASK_BY_ZERO)) chunks++;
    }
    combine(a, parts, chunks, out);
}

void net_attend(const net *a, const net_setting *s, const float *q, const net_seen *seen,
                int32_t n, float *out)
{
    const oracle_config *c = &a->m->config;
    const int32_t d = c->head_dim;
    for (int32_t h = 0; h < c->heads; h++) {
        const int32_t g =
            fault(a->fault, ARI_HEADS_MODULO) ? h % c->kv_heads : h * c->kv_heads / c->heads;
        const int32_t to = fault(a->fault, NET_HEADS_REVERSED) ? c->heads - 1 - h : h;
        attend_head(a, s, q + h * d, seen, n, g, out + to * d);
    }
}

/* ---- The rest (ARI-20, ARI-21) --------------------------------------------------- */

void net_silu(const net *a, float *gate, const float *up, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        const float g = gate[i], below = 1.0f + power(a, -g);
        const float silu =
            fault(a->fault, ARI_SIGMOID_PRODUCT) ? g * (1.0f / below) : g / below;
        gate[i] = silu * up[i];
    }
}

void net_add(const net *a, float *x, const float *y, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        if (fault(a->fault, ARI_STREAM_BF16)) { /* a stream that is kept in half the bytes */
            const float sum = x[i] + y[i];
            uint32_t bits;
            memcpy(&bits, &sum, sizeof bits);
            bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
            memcpy(&x[i], &bits, sizeof bits);
        } else {
            x[i] = x[i] + y[i];
        }
    }
}
