/* measure_places.c - the first half of the text: the laws of both models at its places. */
#include <math.h>
#include <stdlib.h>

#include "conformance/cli/plan/measure_parts.h"
#include "conformance/theory/acceptance.h"
#include "ref/dist/served.h"

/* A window is a sequence of its own; its first places have too little before them to count. */
enum { WINDOW = 256, LEAD = 32, PLACES = WINDOW - LEAD, WINDOWS = 64 };

const double measure_lenience[MEASURE_LENIENCES] = {1, 0.5, 0.3, 0.1};

/* Logits and rows of both models over a chunk of a window. */
typedef struct {
    const measure_request *r;
    measure_places *m; /* sums, until the end */
    int32_t V;
    float *logits[2], *served; /* [MEASURE_CHUNK][V], [V] */
    double *p, *q;             /* [V] */
    double beta[WINDOW];       /* after each token of the window */
} reader;

/* The places of a window at which a product of gamma betas begins; all means are over these. */
static int32_t starts_of(const reader *a)
{
    return PLACES - a->r->gamma + 1;
}

/* ---- One place. ------------------------------------------------------------------------ */

static as_status serve(reader *a, const float *logits, double *row, as_error *e)
{
    const as_sampling sampling = {a->r->temperature, 0, 1, 0};
    const as_status s = as_serve(logits, a->V, &sampling, a->served, e);
    for (int32_t x = 0; x < a->V; x++) row[x] = (double)a->served[x];
    return s;
}

/* The id of largest logit behind `last` (-1: of all), the lowest of equals; -1: the others are masked. */
static int32_t next_of(const float *logits, int32_t V, int32_t last)
{
    int32_t best = -1;
    for (int32_t x = 0; x < V; x++) {
        const bool behind = last < 0 || logits[x] < logits[last] || (logits[x] == logits[last] && x > last);
        if (behind && logits[x] > (best < 0 ? -INFINITY : logits[best])) best = x;
    }
    return best;
}

static void count_place(reader *a, const float *draft /* [V] logits */)
{
    measure_places *m = a->m;
    m->places++;
    m->divergence += theory_divergence(a->p, a->q, a->V);
    m->single += theory_single(a->p, a->q, a->V);
    for (int k = 0; k < MEASURE_LENIENCES; k++) m->lenient[k] += theory_lenient(a->p, a->q, a->V, measure_lenience[k]);
    for (int32_t k = 0, id = -1; k < a->r->siblings; k++) {
        const double factor = theory_kseq_factor(a->p, a->q, a->V, k + 1);
        m->factor[k] += factor;
        m->kseq[k] += theory_kseq(a->p, a->q, a->V, k + 1, factor);
        m->kseq_at_K[k] += theory_kseq(a->p, a->q, a->V, k + 1, k + 1);
        if (k == 0 || id >= 0) id = next_of(draft, a->V, id);
        if (id >= 0) m->rate[k] += theory_onehot(a->p, a->V, &id, 1); /* THY-20 */
    }
}

/* Place i of the window, of which `at` is the first of the chunk. */
static as_status read_place(reader *a, int32_t at, int32_t i, as_error *e)
{
    const float *const target = a->logits[0] + (size_t)(i - at) * (size_t)a->V,
                *const draft = a->logits[1] + (size_t)(i - at) * (size_t)a->V;
    as_status s = serve(a, target, a->p, e);
    if (s == AS_OK) s = serve(a, draft, a->q, e);
    if (s != AS_OK) return s;
    a->beta[i] = fmin(1, theory_overlap(a->p, a->q, a->V)); /* THY-01; at T = 0 THY-02; rows in binary32 round */
    if (i >= LEAD && i < LEAD + starts_of(a)) count_place(a, draft);
    return AS_OK;
}

/* ---- Windows. -------------------------------------------------------------------------- */

/* The token of a window that BOS begins, and WINDOW - 1 of the text. */
static as_status read_window(reader *a, const int32_t *text, as_error *e)
{
    as_lm *const lm[2] = {a->r->target->lm, a->r->draft->lm};
    const int32_t bos = a->r->target->info.bos;
    int32_t token[WINDOW], sequence[2] = {-1, -1};
    as_status s = AS_OK;
    for (int32_t i = 0; i < WINDOW; i++) token[i] = bos < 0 ? text[i] : i ? text[i - 1] : bos;
    for (int k = 0; k < 2 && s == AS_OK; k++) s = as_lm_open(lm[k], &sequence[k], e);
    for (int32_t at = 0; at < WINDOW && s == AS_OK; at += MEASURE_CHUNK) {
        for (int k = 0; k < 2 && s == AS_OK; k++) {
            s = measure_forward(lm[k], sequence[k], token + at, MEASURE_CHUNK, a->logits[k], e);
            if (s == AS_OK) s = measure_commit(lm[k], sequence[k], MEASURE_CHUNK, e);
        }
        for (int32_t i = 0; i < MEASURE_CHUNK && s == AS_OK; i++) s = read_place(a, at, at + i, e);
    }
    for (int k = 0; k < 2; k++)
        if (sequence[k] >= 0) as_lm_close(lm[k], sequence[k]);
    return s;
}

/* Adds the window's products; returns its mean beta. */
static double count_window(const reader *a)
{
    const double *beta = a->beta + LEAD;
    const int32_t starts = starts_of(a);
    double sum = 0;
    for (int32_t i = 0; i < starts; i++) {
        double product = 1;
        for (int32_t k = 0; k < a->r->gamma; k++) a->m->product[k] += product *= beta[i + k];
        a->m->variance += beta[i] * beta[i];
        sum += beta[i];
    }
    return sum / starts;
}

static void divide(double *sum /* [n] */, int32_t n, int64_t places)
{
    for (int32_t k = 0; k < n; k++) sum[k] /= (double)places;
}

/* Sums become means. */
static void finish(const measure_request *r, measure_places *m)
{
    divide(m->product, r->gamma, m->places);
    divide(&m->variance, 1, m->places);
    divide(&m->divergence, 1, m->places);
    divide(&m->single, 1, m->places);
    divide(m->lenient, MEASURE_LENIENCES, m->places);
    divide(m->kseq, r->siblings, m->places);
    divide(m->factor, r->siblings, m->places);
    divide(m->kseq_at_K, r->siblings, m->places);
    divide(m->rate, r->siblings, m->places);
    m->variance -= m->alpha.mean * m->alpha.mean;
}

static as_status read_text(reader *a, as_error *e)
{
    const int32_t half = a->r->n / 2, all = half / WINDOW, n = all < WINDOWS ? all : WINDOWS;
    double mean[WINDOWS];
    as_status s = AS_OK;
    for (int32_t i = 0; i < n && s == AS_OK; i++) {
        s = read_window(a, a->r->token + (int64_t)i * all / n * WINDOW, e);
        if (s == AS_OK) mean[i] = count_window(a);
    }
    if (s != AS_OK) return s;
    a->m->alpha = measure_mean(mean, n);
    finish(a->r, a->m);
    return AS_OK;
}

as_status measure_part_places(const measure_request *r, measure_places *m, as_error *e)
{
    const size_t V = (size_t)r->target->lm->V;
    reader *a = calloc(1, sizeof *a);
    float *rows = malloc((2 * MEASURE_CHUNK + 1) * V * sizeof *rows);
    double *laws = malloc(2 * V * sizeof *laws);
    as_status s = AS_NO_MEMORY;
    *m = (measure_places){0};
    if (a && rows && laws) {
        *a = (reader){.r = r, .m = m, .V = r->target->lm->V, .logits = {rows, rows + MEASURE_CHUNK * V},
                      .served = rows + 2 * MEASURE_CHUNK * V, .p = laws, .q = laws + V};
        s = read_text(a, e);
    } else {
        as_fail(e, s, "no memory for %d rows of logits", 2 * MEASURE_CHUNK + 1);
    }
    free(laws);
    free(rows);
    free(a);
    return s;
}
