/* law_coupling.c - law.coupling: no lossless rule emits its drafts more often than Sum min(P,
 * Q), in `stream` one with a drafter of its own no more often than max P. Needs accept counts
 * alone, so it names leniency for what it is. LAW-04, STAT-05. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_speed.h"
#include "conformance/stats/coupling.h"

typedef struct {
    law_op op;
    const char *name;
    law_cell cell;
} row;

static const row rows[] = {
    {LAW_VERIFY, "verify", {8, 0.3, 1, 0}},     {LAW_VERIFY, "verify", {64, 0.7, 2, 0}},
    {LAW_VERIFY, "verify", {1024, 0.95, 4, 0}}, {LAW_STREAM, "stream", {8, 0.3, 1, 0}},
    {LAW_STREAM, "stream", {64, 0.7, 2, 0}},    {LAW_STREAM, "stream", {1024, 0.95, 4, 0}},
};

/* c->variant is the operation. */
static void plan(check_plan *p, check_level level)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const law_cell *e = &rows[i].cell;
        check_case *c = plan_case(p, &check_law_coupling, "%s-V%d-a%g-g%d", rows[i].name, e->V,
                                  e->acceptance, e->gamma);
        c->V = e->V, c->gamma = e->gamma, c->acceptance = e->acceptance;
        c->variant = (int32_t)rows[i].op;
        c->n = law_samples(level, e->V) / (level == LEVEL_SMOKE ? 1 : 2);
        c->cost = cost_of_rows(c->n, c->V);
        c->statistical = true;
    }
}

static bool claimed(const check_case *c, const client *subject, char *why, size_t why_size)
{
    return law_claimed(c, subject, (law_op)c->variant, why, why_size);
}

static void report(const law_sampler *s, int64_t n, double log_e, check_result *r)
{
    double rate = s->trials[0] ? (double)s->first[0] / (double)s->trials[0] : 0;
    double bound = law_bound(s, 0), most[LAW_STATES];
    for (int32_t i = 0; i < s->a->view.S; i++) most[i] = law_bound(s, i);
    /* Two e-values share the weight. */
    const double seen = st_coupling_rate90(most, s->trials, s->a->view.S, s->x->log_e_fail + log(2));
    r->compared = n;
    r->log_e = log_e;
    result_figure(r, "n", (double)n);
    result_figure(r, "log_e", log_e);
    result_figure(r, "steps", (double)s->trials[0]);
    result_figure(r, "rate", rate);
    result_figure(r, "bound", bound);
    result_figure(r, "rate_power", seen);
    if (log_e >= s->x->log_e_fail)
        result_set(
            r, STATE_FAIL,
            "more accepted than any lossless rule can: ln E = %.4g >= %.4g after %lld "
            "streams; the first token was the first draft in %.5g of the steps from state "
            "0, at most %.5g allowed (LAW-04)",
            log_e, s->x->log_e_fail, (long long)n, rate, bound);
    else if (s->trials[0] == 0)
        result_set(r, STATE_NOT_CLAIMED, "stream does not tell its accept counts");
    else
        result_set(r, STATE_PASS,
                   "%lld streams: rate %.5g, bound %.5g, sees %.5g, ln E = %.3g (line %.3g)", (long long)n,
                   rate, bound, seen, log_e, s->x->log_e_fail);
}

static void sample(law_sampler *s, const check_case *c, int32_t *tokens, check_result *r)
{
    int64_t done = 0;
    double log_e = 0;
    while (done < c->n && log_e < s->x->log_e_fail) {
        int64_t until = law_checkpoint(done, c->n, s->x->level);
        while (done < until) {
            int32_t n = until - done < LAW_CHUNK ? (int32_t)(until - done) : LAW_CHUNK;
            if (!law_sample(s, n, tokens, r)) return;
            done += n;
        }
        log_e = law_coupling(s);
        if (s->trials[0] == 0) break;
    }
    report(s, done, log_e, r);
    law_tell_speed(s, r);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    char why[200];
    law_sampler s = {0};
    int32_t k = c->gamma + 2, *tokens = malloc((size_t)LAW_CHUNK * (size_t)k * sizeof *tokens);
    panel *a = panel_make(
        &(panel_form){.V = c->V, .acceptance = c->acceptance, .seed = check_seed(x, c, 0)}, why,
        sizeof why);
    if (!a || !tokens)
        result_set(r, STATE_ERROR, "%s (STA-03)", a ? "out of memory" : why);
    else if (law_sampler_open(&s, c, x, a, (law_op)c->variant, k, r) &&
             law_strict(&s, c->n * k, r))
        sample(&s, c, tokens, r);
    law_sampler_close(&s);
    panel_free(a);
    free(tokens);
}

const check check_law_coupling = {
    .name = "law.coupling",
    .clauses = "LAW-04 STAT-02 STAT-03 STAT-04 STAT-05 ACC-01 STAT-14 STAT-15",
    .summary = "drafts are accepted no more often than the coupling bound allows",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
