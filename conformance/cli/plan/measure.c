/* measure.c - see measure.h. */
#include "conformance/cli/plan/measure.h"

#include <math.h>
#include <stdlib.h>

#include "ref/decode.h"
#include "ref/dist/residual.h"
#include "ref/dist/served.h"

/* A window is a sequence of its own; its first places have too little before them to count. */
enum { WINDOW = 256, LEAD = 32, PLACES = WINDOW - LEAD, WINDOWS = 64, CHUNK = 64, PROMPT = 64, BUDGET = 128 };

/* ---- The first half: beta along the text. ---------------------------------------------- */

/* Logits and rows of both models over a chunk of a window. */
typedef struct {
    const measure_request *r;
    float *logits[2], *p, *q; /* [CHUNK][V], [V] */
    double beta[WINDOW];      /* after each token of the window */
} reader;

static as_status read_chunk(as_lm *lm, int32_t sequence, const int32_t *token, int32_t n, float *logits, as_error *e)
{
    as_row row[CHUNK];
    int32_t index[CHUNK];
    for (int32_t i = 0; i < n; i++) row[i] = (as_row){token[i], i - 1}, index[i] = i;
    const as_forward f = {sequence, n, n, row, index, logits};
    const as_status s = as_lm_forward(lm, &f, 1, e);
    return s == AS_OK ? as_lm_commit(lm, sequence, index, n, e) : s;
}

static as_status overlap(reader *a, int32_t i, double *beta, as_error *e)
{
    const int32_t V = a->r->target->lm->V;
    const as_sampling sampling = {a->r->temperature, 0, 1, 0};
    as_status s = as_serve(a->logits[0] + (size_t)i * (size_t)V, V, &sampling, a->p, e);
    if (s == AS_OK) s = as_serve(a->logits[1] + (size_t)i * (size_t)V, V, &sampling, a->q, e);
    if (s == AS_OK) *beta = as_overlap(a->p, a->q, V); /* THY-01; at T = 0 THY-02 */
    return s;
}

/* Fills beta: the token of a window that BOS begins, and WINDOW - 1 of the text. */
static as_status read_window(reader *a, const int32_t *text, as_error *e)
{
    as_lm *const lm[2] = {a->r->target->lm, a->r->draft->lm};
    const int32_t bos = a->r->target->info.bos;
    int32_t token[WINDOW], sequence[2] = {-1, -1};
    as_status s = AS_OK;
    for (int32_t i = 0; i < WINDOW; i++) token[i] = bos < 0 ? text[i] : i ? text[i - 1] : bos;
    for (int k = 0; k < 2 && s == AS_OK; k++) s = as_lm_open(lm[k], &sequence[k], e);
    for (int32_t at = 0; at < WINDOW && s == AS_OK; at += CHUNK) {
        for (int k = 0; k < 2 && s == AS_OK; k++)
            s = read_chunk(lm[k], sequence[k], token + at, CHUNK, a->logits[k], e);
        for (int32_t i = 0; i < CHUNK && s == AS_OK; i++) s = overlap(a, i, &a->beta[at + i], e);
    }
    for (int k = 0; k < 2; k++)
        if (sequence[k] >= 0) as_lm_close(lm[k], sequence[k]);
    return s;
}

/* Adds the window's products; returns its mean beta. All products begin at the same places. */
static double count_window(const double *beta /* [PLACES] */, int32_t gamma, measure_result *m)
{
    const int32_t starts = PLACES - gamma + 1;
    double sum = 0;
    for (int32_t i = 0; i < starts; i++) {
        double product = 1;
        for (int32_t k = 0; k < gamma; k++) m->product[k] += product *= beta[i + k];
        m->variance += beta[i] * beta[i];
        sum += beta[i];
    }
    m->places += starts;
    return sum / starts;
}

static measured mean_of(const double *x, int32_t n)
{
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < n; i++) sum += x[i];
    for (int32_t i = 0; i < n; i++) squares += (x[i] - sum / n) * (x[i] - sum / n);
    return (measured){sum / n, sqrt(squares / n / (n - 1))};
}

static as_status read_text(reader *a, measure_result *m, as_error *e)
{
    const int32_t half = a->r->n / 2, all = half / WINDOW, n = all < WINDOWS ? all : WINDOWS;
    double mean[WINDOWS];
    as_status s = AS_OK;
    for (int32_t i = 0; i < n && s == AS_OK; i++) {
        s = read_window(a, a->r->token + (int64_t)i * all / n * WINDOW, e);
        if (s == AS_OK) mean[i] = count_window(a->beta + LEAD, a->r->gamma, m);
    }
    if (s != AS_OK) return s;
    m->alpha = mean_of(mean, n);
    for (int32_t k = 0; k < a->r->gamma; k++) m->product[k] /= (double)m->places;
    m->variance = m->variance / (double)m->places - m->alpha.mean * m->alpha.mean;
    return AS_OK;
}

static as_status measure_text(const measure_request *r, measure_result *m, as_error *e)
{
    const size_t V = (size_t)r->target->lm->V;
    reader *a = calloc(1, sizeof *a);
    float *rows = malloc((2 * CHUNK + 2) * V * sizeof *rows);
    as_status s = AS_NO_MEMORY;
    if (a && rows) {
        *a = (reader){.r = r, .logits = {rows, rows + CHUNK * V}, .p = rows + 2 * CHUNK * V,
                      .q = rows + (2 * CHUNK + 1) * V};
        s = read_text(a, m, e);
    } else {
        as_fail(e, s, "no memory for %d rows of logits", 2 * CHUNK + 2);
    }
    free(rows);
    free(a);
    return s;
}

/* ---- The second half: steps. ----------------------------------------------------------- */

/* Steps with all their drafts: the budget cuts the last ones short (STOP-03). */
typedef struct {
    int32_t gamma;
    int64_t steps, tokens;
    int64_t accepted[MEASURE_GAMMA]; /* steps that accept i + 1 drafts and more */
} tally;

static void on_step(void *data, const as_step *s)
{
    tally *t = data;
    if (s->tree->rows - 1 != t->gamma) return;
    t->steps++;
    t->tokens += s->length;
    for (int32_t i = 0; i < s->accepted; i++) t->accepted[i]++;
}

static as_status decode_one(const measure_request *r, as_drafter *d, int32_t i, tally *t, as_error *e)
{
    const int32_t half = r->n / 2, bos = r->target->info.bos;
    const int32_t *text = r->token + half + (int64_t)i * (r->n - half - PROMPT) / r->prompts;
    int32_t prompt[PROMPT + 1], out[BUDGET], n = 0;
    as_result result;
    if (bos >= 0) prompt[n++] = bos;
    for (int32_t k = 0; k < PROMPT; k++) prompt[n++] = text[k];
    const as_request q = {.target = r->target->lm,
                          .drafter = d,
                          .rule = r->temperature == 0 ? AS_RULE_GREEDY : AS_RULE_CHAIN,
                          .sampling = {r->temperature, 0, 1, 0},
                          .seed = 1000 + (uint64_t)i,
                          .prompt = prompt,
                          .prompts = n,
                          .eos = r->target->info.eos,
                          .eoses = r->target->info.eos_count,
                          .budget = BUDGET,
                          .trace = on_step,
                          .trace_data = t};
    return as_decode(&q, out, &result, e);
}

/* Tokens a step, a ratio of sums over prompts, with its standard error. */
static measured ratio_of(const tally *t, int32_t n)
{
    double tokens = 0, steps = 0, squares = 0;
    for (int32_t i = 0; i < n; i++) tokens += (double)t[i].tokens, steps += (double)t[i].steps;
    for (int32_t i = 0; i < n; i++) {
        const double left = (double)t[i].tokens - tokens / steps * (double)t[i].steps;
        squares += left * left;
    }
    return (measured){tokens / steps, sqrt(squares * n / (n - 1)) / steps};
}

static void survivors(const tally *t, int32_t n, int32_t gamma, measure_result *m)
{
    m->steps = 0;
    for (int32_t i = 0; i < n; i++) m->steps += t[i].steps;
    for (int32_t k = 0; k < gamma; k++) {
        int64_t sum = 0;
        for (int32_t i = 0; i < n; i++) sum += t[i].accepted[k];
        m->survival[k] = (double)sum / (double)m->steps;
    }
}

static as_status measure_steps(const measure_request *r, int32_t gamma, tally *t, measure_result *m, as_error *e)
{
    const as_sampling sampling = {r->temperature, 0, 1, 0};
    as_drafter *d = NULL;
    as_status s = as_draft_lm(r->draft->lm, &sampling, gamma, &d, e);
    for (int32_t i = 0; i < r->prompts && s == AS_OK; i++) {
        t[i] = (tally){.gamma = gamma};
        s = decode_one(r, d, i, &t[i], e);
    }
    as_drafter_free(d);
    if (s != AS_OK) return s;
    m->tokens[gamma - 1] = ratio_of(t, r->prompts);
    survivors(t, r->prompts, gamma, m); /* the largest gamma comes last */
    return AS_OK;
}

bool measure(const measure_request *r, measure_result *m, char *why, size_t why_size)
{
    as_error e = {.text = ""};
    tally *t = malloc((size_t)r->prompts * sizeof *t);
    *m = (measure_result){0};
    as_status s = t ? measure_text(r, m, &e) : as_fail(&e, AS_NO_MEMORY, "no memory for %d prompts", (int)r->prompts);
    for (int32_t gamma = 1; gamma <= r->gamma && s == AS_OK; gamma++) s = measure_steps(r, gamma, t, m, &e);
    free(t);
    if (s != AS_OK) snprintf(why, why_size, "%s", e.text);
    return s == AS_OK;
}
