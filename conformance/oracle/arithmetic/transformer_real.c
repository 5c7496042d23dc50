/* transformer_real.c - the network of chapter 2 as formulas over the real numbers, in MPFR with
 * many bits: plain sums, plain softmax, no chunks. See transformer.h. */
#include <stdlib.h>
#include <mpfr.h>

#include "conformance/oracle/arithmetic/transformer.h"

typedef struct {
    const oracle_model *m;
    const oracle_real_options *how;
    mpfr_t *key, *value; /* [layers][kv_heads][n][d] */
    mpfr_t *c, *s;       /* [d/2], of the position under way */
    mpfr_t *x, *y, *z, *q, *a, *gate, *up, *weight;
    mpfr_t t, u; /* scratch */
    int32_t n;   /* positions of the path */
    bool ok;
} real;

static mpfr_t *take(real *r, int64_t n)
{
    mpfr_t *v = malloc((size_t)n * sizeof *v);
    if (!v) return r->ok = false, NULL;
    for (int64_t i = 0; i < n; i++) {
        mpfr_init2(v[i], r->how->bits);
        mpfr_set_zero(v[i], 1);
    }
    return v;
}

static void give(mpfr_t *v, int64_t n)
{
    for (int64_t i = 0; v && i < n; i++) mpfr_clear(v[i]);
    free(v);
}

/* y = W x (+ bias). */
static void product(real *r, const float *W, const float *bias, mpfr_t *x, int32_t N, int32_t K,
                    mpfr_t *y)
{
    MPFR_DECL_INIT(w, 24);
    for (int32_t n = 0; n < N; n++) {
        mpfr_set_flt(r->t, bias ? bias[n] : 0.0f, MPFR_RNDN);
        for (int32_t k = 0; k < K; k++) {
            mpfr_set_flt(w, W[(int64_t)n * K + k], MPFR_RNDN);
            mpfr_fma(r->t, x[k], w, r->t, MPFR_RNDN);
        }
        mpfr_set(y[n], r->t, MPFR_RNDN);
    }
}

/* y_i = x_i g_i / sqrt(mean of squares + eps). */
static void norm(real *r, mpfr_t *x, const float *gain, int32_t n, mpfr_t *y)
{
    mpfr_set_zero(r->t, 1);
    for (int32_t i = 0; i < n; i++) mpfr_fma(r->t, x[i], x[i], r->t, MPFR_RNDN);
    mpfr_div_si(r->t, r->t, n, MPFR_RNDN);
    mpfr_add_d(r->t, r->t, (double)r->m->config.eps, MPFR_RNDN);
    mpfr_sqrt(r->t, r->t, MPFR_RNDN);
    for (int32_t i = 0; i < n; i++) {
        mpfr_mul_d(y[i], x[i], (double)gain[i], MPFR_RNDN);
        mpfr_div(y[i], y[i], r->t, MPFR_RNDN);
    }
}

/* The real frequency of pair i, Llama-3's scaling included. */
static void frequency(real *r, int32_t i, mpfr_t f)
{
    const oracle_config *c = &r->m->config;
    const oracle_llama3 *l = &c->scaling;
    mpfr_set_d(f, c->theta, MPFR_RNDN);
    mpfr_set_si(r->u, -2 * (long)i, MPFR_RNDN);
    mpfr_div_si(r->u, r->u, c->head_dim, MPFR_RNDN);
    mpfr_pow(f, f, r->u, MPFR_RNDN);
    if (!c->llama3) return;
    mpfr_const_pi(r->u, MPFR_RNDN); /* turns in the original context: n f / 2 pi */
    mpfr_mul_2ui(r->u, r->u, 1, MPFR_RNDN);
    mpfr_div(r->u, f, r->u, MPFR_RNDN);
    mpfr_mul_d(r->u, r->u, (double)l->original, MPFR_RNDN);
    if (mpfr_cmp_d(r->u, (double)l->high) > 0) return;
    if (mpfr_cmp_d(r->u, (double)l->low) < 0) {
        mpfr_div_d(f, f, (double)l->factor, MPFR_RNDN);
        return;
    }
    mpfr_sub_d(r->u, r->u, (double)l->low, MPFR_RNDN); /* s, and f (s + (1 - s)/F) */
    mpfr_div_d(r->u, r->u, (double)l->high - (double)l->low, MPFR_RNDN);
    mpfr_si_sub(r->t, 1, r->u, MPFR_RNDN);
    mpfr_div_d(r->t, r->t, (double)l->factor, MPFR_RNDN);
    mpfr_add(r->u, r->u, r->t, MPFR_RNDN);
    mpfr_mul(f, f, r->u, MPFR_RNDN);
}

static void turn(real *r, int32_t position)
{
    const oracle_config *c = &r->m->config;
    float f[ORACLE_MAX_HEAD / 2];
    if (r->how->binary32_angles)
        oracle_frequencies(&oracle_mpfr, c->theta, c->head_dim, c->llama3 ? &c->scaling : NULL,
                           f);
    for (int32_t i = 0; i < c->head_dim / 2; i++) {
        if (r->how->binary32_angles) {
            mpfr_set_flt(r->t, oracle_mpfr.mul((float)position, f[i]), MPFR_RNDN);
        } else {
            frequency(r, i, r->c[i]);
            mpfr_mul_si(r->t, r->c[i], position, MPFR_RNDN);
        }
        mpfr_sin_cos(r->s[i], r->c[i], r->t, MPFR_RNDN);
    }
}

/* (x, y) turned by the pair's angle: (x c - y s, y c + x s). */
static void rotate(real *r, mpfr_t *head)
{
    const int32_t half = r->m->config.head_dim / 2;
    for (int32_t i = 0; i < half; i++) {
        mpfr_t *x = &head[i], *y = &head[i + half];
        mpfr_mul(r->t, *x, r->s[i], MPFR_RNDN);
        mpfr_mul(r->u, *y, r->s[i], MPFR_RNDN);
        mpfr_mul(*x, *x, r->c[i], MPFR_RNDN);
        mpfr_mul(*y, *y, r->c[i], MPFR_RNDN);
        mpfr_sub(*x, *x, r->u, MPFR_RNDN);
        mpfr_add(*y, *y, r->t, MPFR_RNDN);
    }
}

static mpfr_t *entry(const real *r, mpfr_t *cache, int32_t layer, int32_t kv_head, int32_t t)
{
    const oracle_config *c = &r->m->config;
    return cache + (((int64_t)layer * c->kv_heads + kv_head) * r->n + t) * c->head_dim;
}

static void project(real *r, int32_t layer, int32_t t)
{
    const oracle_config *c = &r->m->config;
    const oracle_layer *w = &r->m->layer[layer];
    const int32_t d = c->head_dim;
    product(r, w->q, w->q_bias, r->y, c->heads * d, c->hidden, r->q);
    for (int32_t h = 0; h < c->heads; h++) {
        mpfr_t *head = r->q + (int64_t)h * d;
        if (w->q_norm) norm(r, head, w->q_norm, d, head);
        rotate(r, head);
    }
    for (int32_t g = 0; g < c->kv_heads; g++) {
        const int64_t first = (int64_t)g * d;
        mpfr_t *key = entry(r, r->key, layer, g, t);
        product(r, w->k + first * c->hidden, w->k_bias ? w->k_bias + first : NULL, r->y, d,
                c->hidden, key);
        if (w->k_norm) norm(r, key, w->k_norm, d, key);
        rotate(r, key);
        product(r, w->v + first * c->hidden, w->v_bias ? w->v_bias + first : NULL, r->y, d,
                c->hidden, entry(r, r->value, layer, g, t));
    }
}

/* softmax(q k / sqrt(d)) v of one head over positions 0..last. */
static void head(real *r, int32_t layer, int32_t h, int32_t last)
{
    const oracle_config *c = &r->m->config;
    const int32_t d = c->head_dim, group = c->heads / c->kv_heads;
    mpfr_t *q = r->q + (int64_t)h * d, *out = r->a + (int64_t)h * d;
    mpfr_set_si(r->u, d, MPFR_RNDN);
    mpfr_rec_sqrt(r->u, r->u, MPFR_RNDN);
    for (int32_t t = 0; t <= last; t++) {
        mpfr_t *key = entry(r, r->key, layer, h / group, t);
        mpfr_set_zero(r->t, 1);
        for (int32_t i = 0; i < d; i++) mpfr_fma(r->t, q[i], key[i], r->t, MPFR_RNDN);
        mpfr_mul(r->t, r->t, r->u, MPFR_RNDN);
        mpfr_exp(r->weight[t], r->t, MPFR_RNDN); /* MPFR's exponents do not overflow here */
    }
    mpfr_set_zero(r->u, 1);
    for (int32_t t = 0; t <= last; t++) mpfr_add(r->u, r->u, r->weight[t], MPFR_RNDN);
    for (int32_t i = 0; i < d; i++) {
        mpfr_set_zero(r->t, 1);
        for (int32_t t = 0; t <= last; t++)
            mpfr_fma(r->t, r->weight[t], entry(r, r->value, layer, h / group, t)[i], r->t,
                     MPFR_RNDN);
        mpfr_div(out[i], r->t, r->u, MPFR_RNDN);
    }
}

static void mlp(real *r, const oracle_layer *w)
{
    const oracle_config *c = &r->m->config;
    product(r, w->gate, NULL, r->y, c->ffn, c->hidden, r->gate);
    product(r, w->up, NULL, r->y, c->ffn, c->hidden, r->up);
    for (int32_t i = 0; i < c->ffn; i++) { /* g u / (1 + exp(-g)) */
        mpfr_neg(r->t, r->gate[i], MPFR_RNDN);
        mpfr_exp(r->t, r->t, MPFR_RNDN);
        mpfr_add_ui(r->t, r->t, 1, MPFR_RNDN);
        mpfr_mul(r->gate[i], r->gate[i], r->up[i], MPFR_RNDN);
        mpfr_div(r->gate[i], r->gate[i], r->t, MPFR_RNDN);
    }
    product(r, w->down, NULL, r->gate, c->hidden, c->ffn, r->z);
}

static void add(mpfr_t *x, mpfr_t *y, int32_t n)
{
    for (int32_t i = 0; i < n; i++) mpfr_add(x[i], x[i], y[i], MPFR_RNDN);
}

static void step(real *r, int32_t token, int32_t t)
{
    const oracle_model *m = r->m;
    const oracle_config *c = &m->config;
    for (int32_t i = 0; i < c->hidden; i++)
        mpfr_set_flt(r->x[i], m->embedding[(int64_t)token * c->hidden + i], MPFR_RNDN);
    turn(r, t);
    for (int32_t layer = 0; layer < c->layers; layer++) {
        const oracle_layer *w = &m->layer[layer];
        norm(r, r->x, w->norm_attention, c->hidden, r->y);
        project(r, layer, t);
        for (int32_t h = 0; h < c->heads; h++) head(r, layer, h, t);
        product(r, w->o, NULL, r->a, c->hidden, c->heads * c->head_dim, r->z);
        add(r->x, r->z, c->hidden);
        norm(r, r->x, w->norm_mlp, c->hidden, r->y);
        mlp(r, w);
        add(r->x, r->z, c->hidden);
    }
    norm(r, r->x, m->final_norm, c->hidden, r->y);
}

static void logits_of(real *r, double *logits)
{
    const oracle_config *c = &r->m->config;
    mpfr_t *out = take(r, c->V);
    if (!out) return;
    product(r, r->m->output, NULL, r->y, c->V, c->hidden, out);
    for (int32_t i = 0; i < c->V; i++) logits[i] = mpfr_get_d(out[i], MPFR_RNDN);
    give(out, c->V);
}

bool oracle_real(const oracle_model *m, const int32_t *token, int32_t n,
                 const oracle_real_options *how, double *logits)
{
    const oracle_config *c = &m->config;
    const int64_t cache = (int64_t)c->layers * c->kv_heads * n * c->head_dim;
    const int64_t heads = (int64_t)c->heads * c->head_dim;
    real r = {.m = m, .how = how, .n = n, .ok = true};
    struct {
        mpfr_t **at;
        int64_t n;
    } const all[] = {{&r.key, cache},         {&r.value, cache}, {&r.c, c->head_dim / 2},
                     {&r.s, c->head_dim / 2}, {&r.x, c->hidden}, {&r.y, c->hidden},
                     {&r.z, c->hidden},       {&r.q, heads},     {&r.a, heads},
                     {&r.gate, c->ffn},       {&r.up, c->ffn},   {&r.weight, n}};
    mpfr_inits2(how->bits, r.t, r.u, (mpfr_ptr)0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) *all[i].at = take(&r, all[i].n);
    for (int32_t t = 0; r.ok && t < n; t++) {
        step(&r, token[t], t);
        logits_of(&r, logits + (int64_t)t * c->V);
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) give(*all[i].at, all[i].n);
    mpfr_clears(r.t, r.u, (mpfr_ptr)0);
    return r.ok;
}
