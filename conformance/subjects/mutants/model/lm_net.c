/* See lm_net.h. */
#include "conformance/subjects/mutants/model/lm_net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Arithmetic -------------------------------------------------------------------- */

/* The mutants' names of the oracle's faults. */
static const struct {
    fault_point point;
    oracle_fault fault;
} names[] = {
    {FAULT_ARI_FLUSH, ORACLE_FAULT_FLUSH},
    {FAULT_ARI_UNFUSED, ORACLE_FAULT_UNFUSED},
    {FAULT_ARI_EXP_FAST, ORACLE_FAULT_EXP_APPROXIMATE},
    {FAULT_ARI_ONE_CHAIN, ORACLE_FAULT_FLAT},
    {FAULT_ARI_FLAT, ORACLE_FAULT_NO_GROUPS},
    {FAULT_ARI_BALANCED, ORACLE_FAULT_BALANCED},
    {FAULT_ARI_BIAS_FIRST, ORACLE_FAULT_BIAS_FIRST},
    {FAULT_ARI_NORM_DIVIDES, ORACLE_FAULT_DIVIDES},
    {FAULT_ARI_NORM_GAIN_FIRST, ORACLE_FAULT_GAIN_FIRST},
    {FAULT_ARI_FREQUENCY_FLOAT, ORACLE_FAULT_FREQUENCY_FLOAT},
    {FAULT_ARI_UNSCALED, ORACLE_FAULT_UNSCALED},
    {FAULT_ARI_REAL_ANGLE, ORACLE_FAULT_REAL_ANGLE},
    {FAULT_ARI_ROTATION_UNFUSED, ORACLE_FAULT_ROTATION_UNFUSED},
    {FAULT_ARI_INTERLEAVED, ORACLE_FAULT_INTERLEAVED},
    {FAULT_ARI_QUERY_SCALED, ORACLE_FAULT_SCALE_QUERY},
    {FAULT_ARI_HEADS_MODULO, ORACLE_FAULT_KV_HEAD},
    {FAULT_ARI_ONE_CHUNK, ORACLE_FAULT_ONE_CHUNK},
    {FAULT_ARI_DESCENDING, ORACLE_FAULT_DESCENDING},
    {FAULT_ARI_ONLINE, ORACLE_FAULT_ONLINE},
    {FAULT_ARI_RECIPROCAL, ORACLE_FAULT_OUTPUT_RECIPROCAL},
    {FAULT_ARI_MASKED_MAXIMUM, ORACLE_FAULT_MASKED_MAXIMUM},
    {FAULT_ARI_SIGMOID_PRODUCT, ORACLE_FAULT_SIGMOID_PRODUCT},
    {FAULT_ARI_STREAM_BF16, ORACLE_FAULT_STREAM_BF16},
    {FAULT_NET_TIED, ORACLE_FAULT_ALWAYS_TIED},
    {FAULT_NET_NORM_AFTER_ROTATION, ORACLE_FAULT_NORM_AFTER_ROTATION},
    {FAULT_NET_HEADS_REVERSED, ORACLE_FAULT_HEADS_REVERSED},
    {FAULT_KV_MASK_BY_ZERO, ORACLE_FAULT_MASKED_BY_ZERO},
};

static lm_format format_of(manner how)
{
    return how == MANNER_LM_BF16  ? FORMAT_BF16
           : how == MANNER_LM_F16 ? FORMAT_F16
           : how == MANNER_LM_Q8  ? FORMAT_Q8
           : how == MANNER_LM_Q4  ? FORMAT_Q4
                                  : FORMAT_F32;
}

static void choose_arithmetic(net *a)
{
    a->format = format_of(a->manner);
    oracle_ops right = oracle_fast;
    oracle_fault fault = a->manner == MANNER_LM_SELF ? ORACLE_FAULT_STRIDED : ORACLE_NO_FAULT;
    right.fma = fmaf; /* the same value, faster */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].point == a->fault) fault = names[i].fault;
    a->faulty = oracle_faulty_of(fault, &right);
    a->strided = oracle_faulty_of(ORACLE_FAULT_STRIDED, &right);
}

/* ---- Weights --------------------------------------------------------------------- */

static bool pack(lm_format format, net_map *w, const float *rows, int32_t N, int32_t K, char *why, size_t size)
{
    as_error e;
    lm_format_weights(format, (float *)(uintptr_t)rows, N, K); /* the folder's own copy */
    w->rows = rows, w->N = N, w->K = K, w->faint = false;
    for (int64_t i = 0; i < (int64_t)N * K; i++)
        w->faint |= fpclassify(rows[i]) == FP_SUBNORMAL;
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
    return pack(a->format, &l->q, w->q, q, h, why, size) && pack(a->format, &l->k, w->k, kv, h, why, size) &&
           pack(a->format, &l->v, w->v, kv, h, why, size) && pack(a->format, &l->o, w->o, h, q, why, size) &&
           pack(a->format, &l->gate, w->gate, c->ffn, h, why, size) &&
           pack(a->format, &l->up, w->up, c->ffn, h, why, size) &&
           pack(a->format, &l->down, w->down, h, c->ffn, why, size);
}

bool net_open(net *a, const char *folder, char *why, size_t why_size)
{
    choose_arithmetic(a);
    a->folder = oracle_folder_open(folder, why, why_size);
    if (!a->folder) return false;
    a->m = oracle_folder_model(a->folder);
    a->layer = calloc((size_t)a->m->config.layers, sizeof *a->layer);
    bool ok = a->layer != NULL;
    for (int32_t i = 0; ok && i < a->m->config.layers; i++)
        ok = pack_layer(a, i, why, why_size);
    a->frequency = malloc((size_t)a->m->config.head_dim / 2 * sizeof *a->frequency);
    if (!ok || !a->frequency) return false;
    const oracle_config *c = &a->m->config;
    oracle_faulty_frequencies(&a->faulty, c->theta, c->head_dim, c->llama3 ? &c->scaling : NULL,
                              a->frequency);
    return pack(a->format, &a->output, oracle_faulty_output(&a->faulty, a->m), oracle_rows(a->m), c->hidden, why,
                why_size);
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
    const net empty = {.fault = a->fault, .manner = a->manner, .company = a->company};
    *a = empty;
}

/* ---- Operations -------------------------------------------------------------------- */

/* Where the circumstances choose the kernel. */
static bool leaks(const net *a, const net_setting *s, int32_t r)
{
    if (a->format != FORMAT_F32) return s->rows > 1 || a->company > 1; /* no fault: no bits are promised */
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
        return false;
    }
}

/* Must the fault be carried out? Elsewhere it leaves the bits alone, and the fast way has
 * them. */
static bool literal(const net *a, const net_map *w, bool bias)
{
    return oracle_faulty_products(&a->faulty, w->K, bias) &&
           (w->faint || !oracle_has(&a->faulty, FLUSH));
}

void net_product(const net *a, const net_setting *s, const net_map *w, const float *bias,
                 const float *x, int32_t rows, float *y)
{
    const bool slow = literal(a, w, bias);
    if (!slow) as_dense()->product(&w->packed, 0, (w->N + AS_PANEL - 1) / AS_PANEL, x, rows, y);
    for (int32_t r = 0; r < rows; r++) {
        const bool strided = leaks(a, s, r);
        float *out = y + (int64_t)r * w->N;
        if (strided || slow)
            oracle_faulty_product(strided ? &a->strided : &a->faulty, w->rows, bias,
                                  x + (int64_t)r * w->K, w->N, w->K, out);
        else if (bias)
            oracle_add(&a->faulty.o, out, bias, w->N);
    }
    lm_format_results(a->format, y, (int64_t)rows * w->N);
}

void net_norm(const net *a, const net_setting *s, const float *x, const float *gain,
              int32_t rows, int32_t n, float *y)
{
    /* LM_NORM_BY_ROWS: a smaller block, and so another order, from 64 rows on. */
    const bool strided = fault(a->fault, LM_NORM_BY_ROWS) && s->rows >= 64;
    for (int32_t r = 0; r < rows; r++)
        oracle_faulty_norm(strided ? &a->strided : &a->faulty, x + (int64_t)r * n, gain, n,
                           a->m->config.eps, y + (int64_t)r * n);
    lm_format_results(a->format, y, (int64_t)rows * n);
}

enum { TURNED = 64 }; /* numbers of a head, of the fault */

void net_turn(const net *a, const oracle_layer *w, int32_t position, float *q, float *k)
{
    const oracle_config *m = &a->m->config;
    const int32_t d = m->head_dim;
    float c[ORACLE_MAX_HEAD / 2], s[ORACLE_MAX_HEAD / 2];
    oracle_faulty_turn(&a->faulty, a->frequency, d / 2, position, c, s);
    for (int32_t i = TURNED / 2; fault(a->fault, LM_HEAD_HALF_TURNED) && i < d / 2; i++) c[i] = 1, s[i] = 0;
    for (int32_t h = 0; h < m->heads; h++)
        oracle_faulty_head(&a->faulty, q + h * d, d, w->q_norm, m->eps, c, s);
    for (int32_t h = 0; h < m->kv_heads; h++)
        oracle_faulty_head(&a->faulty, k + h * d, d, w->k_norm, m->eps, c, s);
}

int32_t net_chunk(const net *a, const net_setting *s, int32_t position)
{
    if (fault(a->fault, LM_SPLIT_KV)) return position / (s->rows > 8 ? 32 : 64);
    if (fault(a->fault, LM_CHUNK_RELATIVE) && position >= s->prefix)
        return 1000 + (position - s->prefix) / 64;
    return position / 64;
}

void net_attend(const net *a, const float *q, oracle_entry *met, int32_t n, float *out)
{
    const oracle_config *c = &a->m->config;
    const int32_t d = c->head_dim;
    float head[ORACLE_MAX_HEAD];
    for (int32_t h = 0; h < c->heads; h++) {
        const int32_t g = oracle_faulty_kv_head(&a->faulty, h, c->heads, c->kv_heads);
        oracle_faulty_attention(&a->faulty, q + h * d, d, met, n, g, head);
        oracle_faulty_join(&a->faulty, head, d, h, c->heads, out);
    }
    lm_format_results(a->format, out, (int64_t)c->heads * d);
}
