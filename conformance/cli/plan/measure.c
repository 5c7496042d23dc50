/* measure.c - see measure.h: the parts in their order, and what they share. */
#include "conformance/cli/plan/measure.h"

#include <math.h>
#include <stdio.h>

#include "conformance/cli/plan/measure_parts.h"

enum { PROMPT = 64 };

as_status measure_forward(as_lm *lm, int32_t sequence, const int32_t *token, int32_t n, float *logits, as_error *e)
{
    as_row row[MEASURE_CHUNK];
    int32_t index[MEASURE_CHUNK];
    for (int32_t i = 0; i < n; i++) row[i] = (as_row){token[i], i - 1}, index[i] = i;
    const as_forward f = {sequence, n, n, row, index, logits};
    return as_lm_forward(lm, &f, 1, e);
}

as_status measure_commit(as_lm *lm, int32_t sequence, int32_t n, as_error *e)
{
    int32_t index[MEASURE_CHUNK];
    for (int32_t i = 0; i < n; i++) index[i] = i;
    return as_lm_commit(lm, sequence, index, n, e);
}

measured measure_mean(const double *x, int32_t n)
{
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < n; i++) sum += x[i];
    for (int32_t i = 0; i < n; i++) squares += (x[i] - sum / n) * (x[i] - sum / n);
    return (measured){sum / n, sqrt(squares / n / (n - 1))};
}

measured measure_tokens(const measure_tally *t, int32_t n)
{
    double tokens = 0, steps = 0, squares = 0;
    for (int32_t i = 0; i < n; i++) tokens += (double)t[i].tokens, steps += (double)t[i].steps;
    for (int32_t i = 0; i < n; i++) {
        const double left = (double)t[i].tokens - tokens / steps * (double)t[i].steps;
        squares += left * left;
    }
    return (measured){tokens / steps, sqrt(squares * n / (n - 1)) / steps};
}

as_status measure_decode(const measure_request *r, int32_t i, as_drafter *d, as_rule rule,
                         void (*trace)(void *data, const as_step *), void *data, as_error *e)
{
    const int32_t half = r->n / 2, bos = r->target->info.bos;
    const int32_t *text = r->token + half + (int64_t)i * (r->n - half - PROMPT) / r->prompts;
    int32_t prompt[PROMPT + 1], out[MEASURE_BUDGET], n = 0;
    as_result result;
    if (bos >= 0) prompt[n++] = bos;
    for (int32_t k = 0; k < PROMPT; k++) prompt[n++] = text[k];
    const as_request q = {.target = r->target->lm,
                          .drafter = d,
                          .rule = r->temperature == 0 ? AS_RULE_GREEDY : rule,
                          .sampling = {r->temperature, 0, 1, 0},
                          .seed = 1000 + (uint64_t)i,
                          .prompt = prompt,
                          .prompts = n,
                          .eos = r->target->info.eos,
                          .eoses = r->target->info.eos_count,
                          .budget = MEASURE_BUDGET,
                          .trace = trace,
                          .trace_data = data};
    return as_decode(&q, out, &result, e);
}

bool measure(const measure_request *r, measure_result *m, char *why, size_t why_size)
{
    as_error e = {.text = ""};
    as_status s = measure_part_places(r, &m->places, &e);
    if (s == AS_OK) s = measure_part_chains(r, &m->chains, &e);
    if (s == AS_OK) s = measure_part_trees(r, m->places.rate, m->tree, &e);
    if (s == AS_OK) s = measure_part_ahead(r, &m->ahead, &e);
    if (s == AS_OK) s = measure_part_cost(r, &m->cost, &e);
    if (s != AS_OK) snprintf(why, why_size, "%s", e.text);
    return s == AS_OK;
}
