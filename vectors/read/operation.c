/* See operation.h. Right answers are the oracle's of MPFR, faulty ones faulty.c's. */
#include "vectors/read/operation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/arithmetic/faulty.h"
#include "conformance/oracle/law/philox.h"
#include "vectors/read/network.h"

#define ORDERS "unfused flat no-groups chunk-size from-end balanced split strided reversed wide"

static const operation operations[] = {
    {"fma", "n", "a b c", "unfused double-rounding flush"},
    {"divide", "n", "a b", "reciprocal flush"},
    {"root", "n", "a", "flush newton"},
    {"cos", "n", "x", "reduction nearly"},
    {"sin", "n", "x", "reduction nearly flush"},
    {"widen-bf16", "n", "x", "flush"},
    {"widen-f16", "n", "x", "flush f16-as-bf16"},
    {"dot", "K", "x w", ORDERS " double-rounding flush first-term"},
    {"product", "N K bias", "x W b", ORDERS " bias-first transposed"},
    {"norm", "n", "x gain eps",
     ORDERS " flush reciprocal rsqrt divides gain-first eps-outside norm-wide no-mean"},
    {"frequencies", "d llama3", "theta scaling",
     "frequency-float scaling-real contracted unscaled exponent"},
    {"turn", "pairs m", "f", "real-angle reduction off-by-one"},
    {"rotate", "d", "head c s", "unfused flush contracted interleaved backwards"},
    {"scale", "d", "", "scale-twice"},
    {"attention", "heads kv_heads d n unseen", "q k v k_unseen v_unseen",
     "unfused flush kv-head online one-chunk relative-chunks chunk-size score-chunks "
     "scale-query "
     "score-divided contracted reciprocal exp-approximate softmax-first global-maximum "
     "masked-maximum masked-term"},
    {"silu", "n", "g u", "flush sigmoid-product up-first stable swapped exp-approximate"},
    {"add", "n", "x y", "flush"},
    {"network", "V layers hidden heads kv_heads d ffn tied bias head_norm llama3 n",
     "theta eps tokens weights scaling",
     "unfused exp-approximate kv-head off-by-one unscaled swapped norm-after-rotation no-bias "
     "rotated-values heads-interleaved blind-to-itself norms-swapped parallel always-tied "
     "no-final-norm"},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

const operation *operation_find(const char *name)
{
    for (int i = 0; i < OPERATIONS; i++)
        if (!strcmp(operations[i].name, name)) return &operations[i];
    return NULL;
}

static bool is(const operation *op, const char *name)
{
    return !strcmp(op->name, name);
}

static bool within(int32_t x, int32_t least, int32_t most)
{
    return x >= least && x <= most;
}

/* The inputs of `count` times `words` words each. */
static int32_t several(int32_t count, int32_t words, int32_t *n)
{
    for (int32_t i = 0; i < count; i++) n[i] = words;
    return count;
}

static int32_t attention_shape(const int32_t *s, int32_t *n, int32_t *answer)
{
    const int32_t H = s[0], G = s[1], d = s[2], seen = s[3], unseen = s[4];
    if (!within(H, 1, 64) || !within(G, 1, H) || !within(d, 2, 512) || d % 2 ||
        !within(seen, 1, 1024) || !within(unseen, 0, 64))
        return -1;
    *answer = n[0] = H * d;
    n[1] = n[2] = seen * G * d;
    n[3] = n[4] = unseen * G * d;
    return unseen ? 5 : 3;
}

int32_t operation_shape(const operation *op, const int32_t *s, int32_t n[OPERATION_INPUTS],
                        int32_t *answer)
{
    *answer = s[0];
    if (is(op, "attention")) return attention_shape(s, n, answer);
    if (is(op, "network")) return network_shape(s, n, answer);
    if (!within(s[0], 1, 65536)) return -1;
    if (is(op, "fma")) return several(3, s[0], n);
    if (is(op, "divide") || is(op, "silu") || is(op, "add")) return several(2, s[0], n);
    if (is(op, "dot")) return *answer = 1, several(2, s[0], n);
    if (is(op, "product")) {
        if (!within(s[1], 1, 65536) || s[0] > 65536 / s[1] || !within(s[2], 0, 1)) return -1;
        n[0] = s[1], n[1] = s[0] * s[1], n[2] = s[0];
        return 2 + s[2];
    }
    if (is(op, "norm")) return n[2] = 1, several(2, s[0], n) + 1;
    if (is(op, "frequencies")) {
        if (s[0] % 2 || s[0] > 1024 || !within(s[1], 0, 1)) return -1;
        n[0] = 2, n[1] = 4;
        return *answer = s[0] / 2, 1 + s[1];
    }
    if (is(op, "turn")) {
        if (!within(s[1], 0, (1 << 20) - 1)) return -1;
        return *answer = 2 * s[0], several(1, s[0], n);
    }
    if (is(op, "rotate")) {
        if (s[0] % 2) return -1;
        n[0] = s[0], n[1] = n[2] = s[0] / 2;
        return 3;
    }
    if (is(op, "scale")) return *answer = 1, 0;
    return several(1, s[0], n); /* root, cos, sin, widen */
}

/* ---- Answers ---------------------------------------------------------------------- */

static void each1(float (*f)(float), const float *a, int32_t n, float *y)
{
    for (int32_t i = 0; i < n; i++) y[i] = f(a[i]);
}

/* theta: the two words of a binary64, the high one first. */
double operation_theta(const float *in)
{
    uint32_t w[2];
    double theta;
    memcpy(w, in, sizeof w);
    const uint64_t bits = (uint64_t)w[0] << 32 | w[1];
    memcpy(&theta, &bits, sizeof theta);
    return theta;
}

oracle_llama3 operation_scaling(const float *in)
{
    return (oracle_llama3){in[0], in[1], in[2], in[3]};
}

static void widen(const operation *op, const oracle_faulty *f, const float *in, int32_t n,
                  float *y)
{
    for (int32_t i = 0; i < n; i++) {
        uint32_t w;
        memcpy(&w, &in[i], sizeof w);
        y[i] = is(op, "widen-f16") ? oracle_faulty_widen_f16(f, (uint16_t)w)
                                   : oracle_faulty_widen_bf16(f, (uint16_t)w);
    }
}

static bool attend(const oracle_ops *o, const int32_t *s, const float *const *in, float *y)
{
    const int32_t H = s[0], G = s[1], d = s[2], n = s[3];
    const float **key = calloc((size_t)n, 2 * sizeof *key), **value = key + n;
    if (!key) return false;
    for (int32_t h = 0; h < H; h++) {
        const int32_t g = oracle_kv_head(h, H, G);
        for (int32_t t = 0; t < n; t++) {
            key[t] = in[1] + ((int64_t)t * G + g) * d;
            value[t] = in[2] + ((int64_t)t * G + g) * d;
        }
        oracle_attention(o, in[0] + (int64_t)h * d, d, key, value, n, y + (int64_t)h * d);
    }
    free(key);
    return true;
}

/* The unseen rows lie behind the last one. */
static bool attend_faulty(const oracle_faulty *f, const int32_t *s, const float *const *in,
                          float *y)
{
    const int32_t H = s[0], G = s[1], d = s[2], n = s[3], all = n + s[4];
    oracle_entry *e = calloc((size_t)all, sizeof *e);
    if (!e) return false;
    for (int32_t t = 0; t < all; t++) {
        const bool seen = t < n;
        const int64_t at = (int64_t)(seen ? t : t - n) * G * d;
        e[t] = (oracle_entry){.chunk = t / 64,
                              .seen = seen,
                              .key = in[seen ? 1 : 3] + at,
                              .value = in[seen ? 2 : 4] + at};
    }
    for (int32_t h = 0; h < H; h++)
        oracle_faulty_attention(f, in[0] + (int64_t)h * d, d, e, all,
                                oracle_faulty_kv_head(f, h, H, G), y + (int64_t)h * d);
    free(e);
    return true;
}

static bool answer(const operation *op, const oracle_faulty *f, const int32_t *s,
                   const float *const *in, float *y)
{
    const oracle_ops *o = &f->o;
    const int32_t n = s[0];
    const bool right = f->fault == ORACLE_NO_FAULT;
    if (is(op, "attention")) return right ? attend(o, s, in, y) : attend_faulty(f, s, in, y);
    if (is(op, "network"))
        return right ? network_right(o, s, in, y) : network_fault(f, s, in, y);
    if (is(op, "fma"))
        for (int32_t i = 0; i < n; i++) y[i] = o->fma(in[0][i], in[1][i], in[2][i]);
    else if (is(op, "divide"))
        for (int32_t i = 0; i < n; i++) y[i] = o->div(in[0][i], in[1][i]);
    else if (is(op, "root"))
        each1(o->root, in[0], n, y);
    else if (is(op, "cos"))
        each1(o->cos, in[0], n, y);
    else if (is(op, "sin"))
        each1(o->sin, in[0], n, y);
    else if (is(op, "dot"))
        y[0] = oracle_faulty_dot(f, in[0], in[1], n);
    else if (is(op, "product"))
        oracle_faulty_product(f, in[1], s[2] ? in[2] : NULL, in[0], n, s[1], y);
    else if (is(op, "norm"))
        oracle_faulty_norm(f, in[0], in[1], n, in[2][0], y);
    else if (is(op, "turn"))
        oracle_faulty_turn(f, in[0], n, s[1], y, y + n);
    else if (is(op, "scale"))
        y[0] = oracle_faulty_scale(f, n);
    else if (is(op, "silu"))
        oracle_faulty_silu(f, in[0], in[1], n, y);
    else if (is(op, "rotate"))
        memcpy(y, in[0], (size_t)n * sizeof *y), oracle_faulty_rotate(f, y, n, in[1], in[2]);
    else if (is(op, "add"))
        memcpy(y, in[0], (size_t)n * sizeof *y), oracle_faulty_add(f, y, in[1], n);
    else if (is(op, "frequencies")) {
        const oracle_llama3 l = s[1] ? operation_scaling(in[1]) : (oracle_llama3){0, 0, 0, 0};
        oracle_faulty_frequencies(f, operation_theta(in[0]), n, s[1] ? &l : NULL, y);
    } else
        widen(op, f, in[0], n, y);
    return true;
}

bool operation_answer(const vector_group *g, const vector_test *t, const char *fault,
                      uint32_t *word)
{
    const operation *op = operation_find(g->op);
    const oracle_faulty f = fault ? oracle_faulty_of(oracle_fault_named(fault), &oracle_fast)
                                  : oracle_faulty_of(ORACLE_NO_FAULT, &oracle_mpfr);
    const float *in[OPERATION_INPUTS] = {NULL};
    int32_t n[OPERATION_INPUTS], words;
    operation_shape(op, t->size, n, &words);
    size_t room = (size_t)words;
    for (int32_t i = 0; i < t->inputs; i++) room += (size_t)n[i];
    float *y = calloc(room, sizeof *y), *at = y + words;
    for (int32_t i = 0; y && i < t->inputs; at += n[i++])
        in[i] = memcpy(at, t->input[i].word, (size_t)n[i] * sizeof *at);
    const bool ok = y && answer(op, &f, t->size, in, y);
    if (ok) memcpy(word, y, (size_t)words * sizeof *y);
    free(y);
    return ok;
}

/* ---- Procedural inputs ------------------------------------------------------------ */

/* PAN-04: entry i from the words a and b of the counter (i, row, 17, 0): a 24-bit number in
 * [-1, 1), times 2^e, over 2^(b mod spread). */
void operation_uniform(const vector_input *form, uint32_t *word)
{
    const uint32_t key[2] = {(uint32_t)form->seed, (uint32_t)(form->seed >> 32)};
    for (int32_t i = 0; i < form->n; i++) {
        uint32_t w[4];
        oracle_philox((const uint32_t[4]){(uint32_t)i, form->row, 17, 0}, key, w);
        const float unit = (float)((int32_t)(w[0] >> 8) - (1 << 23)) * 0x1p-23f;
        word[i] = bits_of_float(ldexpf(unit, form->e - (int)(w[1] % (uint32_t)form->spread)));
    }
}
