/* measure_ahead.c - the second half of the text: lookahead, whose candidates are counted one by one. */
#include <math.h>
#include <stdlib.h>

#include "conformance/cli/plan/measure_parts.h"
#include "ref/draft/lookahead.h"

typedef struct {
    int32_t length; /* N - 1 */
    measure_tally *now;
    measure_ahead *m;
    int64_t right, looked_at; /* tokens of candidates: THY-19 */
    double squares[MEASURE_ROWS];
} counter;

/* Tokens with which the candidate begins as the step's run does. */
static int32_t right_of(const as_step *s, const as_row *candidate, int32_t length)
{
    int32_t right = 0;
    while (right < length && right < s->length && candidate[right].token == s->run[right]) right++;
    return right;
}

/* Candidates are chains below the root, behind the rows of the window (LAH-07). */
static void on_step(void *data, const as_step *s)
{
    counter *c = data;
    const int32_t n = (s->tree->rows - s->plan->drafts) / c->length;
    for (int32_t i = 0; i < n; i++) {
        const int32_t right = right_of(s, s->tree->row + s->plan->drafts + i * c->length, c->length);
        c->right += right;
        c->looked_at += right < c->length ? right + 1 : right;
    }
    c->now->steps++, c->now->tokens += s->length;
    c->m->steps++, c->m->rows += s->tree->rows;
    c->m->with[n]++;
    c->m->tokens_with[n].mean += s->length;
    c->squares[n] += (double)s->length * s->length;
}

/* Sums become means. */
static void finish(const counter *c, int32_t G, measure_ahead *m)
{
    m->alpha = c->looked_at > 0 ? (double)c->right / (double)c->looked_at : 0;
    m->found = (double)m->steps / (double)(m->steps - m->with[0]);
    for (int32_t b = 0; b <= G; b++) {
        const double n = (double)m->with[b], mean = m->tokens_with[b].mean / n;
        m->tokens_with[b] = (measured){mean, sqrt(fmax(0, c->squares[b] / n - mean * mean) / (n - 1))};
    }
}

as_status measure_part_ahead(const measure_request *r, measure_ahead *m, as_error *e)
{
    as_lookahead o = *as_lookahead_preset("paper");
    as_drafter *d = NULL;
    counter c = {.length = r->N - 1, .m = m};
    measure_tally *t = calloc((size_t)r->prompts, sizeof *t);
    as_status s = t ? AS_OK : as_fail(e, AS_NO_MEMORY, "no memory for %d prompts", (int)r->prompts);
    o.W = r->W, o.N = r->N, o.G = r->G;
    *m = (measure_ahead){0};
    if (s == AS_OK) s = as_draft_lookahead(&o, r->target->lm->V, &d, e);
    for (int32_t i = 0; i < r->prompts && s == AS_OK; i++) {
        c.now = &t[i];
        s = measure_decode(r, i, d, o.rule, on_step, &c, e);
    }
    if (s == AS_OK) {
        m->tokens = measure_tokens(t, r->prompts);
        finish(&c, r->G, m);
    }
    as_drafter_free(d);
    free(t);
    return s;
}
