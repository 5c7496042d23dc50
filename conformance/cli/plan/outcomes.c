/* outcomes.c - see outcomes.h. */
#include "conformance/cli/plan/outcomes.h"

#include <math.h>

#include "conformance/cli/plan/forecasts.h"
#include "conformance/theory/chain.h"
#include "conformance/theory/lookahead.h"

/* ---- Places. --------------------------------------------------------------------------- */

/* THY-06, and THY-05 of the draft's likeliest tokens. */
static void add_places(table_list *list, const measure_places *m, int32_t siblings)
{
    double onehot = 0;
    table *t = table_new(list, "places", "Along the first half of the text, mean of %lld places: that one of K "
                         "siblings is accepted", (long long)m->places);
    table_column_add(t, "siblings", "%.0f", false);
    table_column_add(t, "kseq", "%.4f", true);
    table_column_add(t, "factor", "%.4f", false);
    table_column_add(t, "kseq_at_K", "%.4f", true);
    table_column_add(t, "top_onehot", "%.4f", true);
    table_column_add(t, "rate", "%.4f", false);
    for (int32_t k = 0; k < siblings; k++) {
        double *row = table_row(t);
        row[0] = k + 1;
        row[1] = m->kseq[k];
        row[2] = m->factor[k];
        row[3] = m->kseq_at_K[k];
        row[4] = onehot += m->rate[k];
        row[5] = m->rate[k];
    }
    table_fact_add(t, "alpha", "%.4f", m->alpha.mean);
    table_fact_add(t, "alpha_error", "%.4f", m->alpha.error);
    table_fact_add(t, "D_LK", "%.4f", m->divergence);
    table_fact_add(t, "single", "%.4f", m->single);
}

static void add_lenience(table_list *list, const measure_places *m)
{
    table *t = table_new(list, "lenient", "Lenience l there: mean of the sum of min(p/l, q)");
    table_column_add(t, "l", "%.1f", false);
    table_column_add(t, "alpha", "%.4f", true);
    for (int k = 0; k < MEASURE_LENIENCES; k++) {
        double *row = table_row(t);
        row[0] = measure_lenience[k];
        row[1] = m->lenient[k];
    }
}

/* ---- Chains. --------------------------------------------------------------------------- */

/* Tokens a step of gamma drafts: by alpha alone, by the products of neighbouring betas, and measured. */
static void add_steps(table_list *list, const measure_request *r, const measure_places *p, const measure_chains *c)
{
    table *t = table_new(list, "measured", "Tokens a step at T = %g: formula of the first half of the text, measured "
                         "behind the second", (double)r->temperature);
    table_column_add(t, "gamma", "%.0f", false);
    table_column_add(t, "formula", "%.3f", true);
    table_column_add(t, "with_covariance", "%.3f", true);
    table_column_add(t, "measured", "%.3f", true);
    table_column_add(t, "error", "%.3f", false);
    for (int32_t k = 0; k < r->gamma; k++) {
        double *row = table_row(t);
        row[0] = k + 1;
        row[1] = theory_tokens(p->alpha.mean, k + 1);
        row[2] = theory_survival(p->product, k + 1);
        row[3] = c->tokens[k].mean;
        row[4] = c->tokens[k].error;
    }
    table_fact_add(t, "alpha", "%.4f", p->alpha.mean);
    table_fact_add(t, "alpha_error", "%.4f", p->alpha.error);
    table_fact_add(t, "places", "%.0f", (double)p->places);
    table_fact_add(t, "variance_of_beta", "%.4f", p->variance);
    table_fact_add(t, "covariance_of_neighbours", "%.4f",
                   r->gamma > 1 ? p->product[1] - p->alpha.mean * p->alpha.mean : NAN);
}

/* The chance that the first i drafts are accepted, three times, and that of draft i where those before it are. */
static void add_depths(table_list *list, const measure_request *r, const measure_places *p, const measure_chains *c)
{
    table *t = table_new(list, "depths", "Steps of %d drafts, %lld of them: the first i are accepted", (int)r->gamma,
                         (long long)c->steps);
    table_column_add(t, "i", "%.0f", false);
    table_column_add(t, "formula", "%.4f", true);
    table_column_add(t, "with_covariance", "%.4f", true);
    table_column_add(t, "measured", "%.4f", true);
    table_column_add(t, "alpha_i", "%.4f", false);
    for (int32_t k = 0; k < r->gamma; k++) {
        const double before = k ? c->survival[k - 1] : 1;
        double *row = table_row(t);
        row[0] = k + 1;
        row[1] = pow(p->alpha.mean, k + 1);
        row[2] = p->product[k];
        row[3] = c->survival[k];
        if (before > 0) row[4] = c->survival[k] / before;
    }
}

/* ---- Trees. ---------------------------------------------------------------------------- */

/* THY-16 with the rates of the places, beside chains of as many drafts: drawn from q, and likeliest tokens. */
static void add_trees(table_list *list, const measure_request *r, const measure_result *m)
{
    table *t = table_new(list, "trees", "Tokens a step of a chain and of Sequoia's tree, by the acceptance of the "
                         "first half by rank");
    table_column_add(t, "drafts", "%.0f", false);
    table_column_add(t, "depth", "%.0f", false);
    table_column_add(t, "width", "%.0f", false);
    table_column_add(t, "drawn_chain", "%.3f", true);
    table_column_add(t, "top_chain", "%.3f", true);
    table_column_add(t, "tree", "%.3f", true);
    table_column_add(t, "measured", "%.3f", true);
    table_column_add(t, "error", "%.3f", false);
    t->logarithmic = true;
    for (int i = 0; i < MEASURE_TREES; i++) {
        const as_shape *shape = &m->tree[i].shape;
        double *row = table_row(t);
        row[0] = shape->drafts;
        row[1] = as_shape_depth(shape);
        row[2] = as_shape_width(shape);
        row[3] = theory_tokens(m->places.alpha.mean, shape->drafts);
        row[4] = theory_tokens(m->places.rate[0], shape->drafts);
        row[5] = as_shape_tokens(shape, m->places.rate, r->siblings);
        row[6] = m->tree[i].tokens.mean;
        row[7] = m->tree[i].tokens.error;
    }
}

/* ---- Lookahead. ------------------------------------------------------------------------ */

static void add_found(table_list *list, const measure_request *r, const measure_ahead *m)
{
    double candidates = 0;
    for (int32_t b = 0; b <= r->G; b++) candidates += (double)b * (double)m->with[b] / (double)m->steps;
    table *t = table_new(list, "found", "Lookahead behind the second half, %lld steps: S by f, by the candidates of "
                         "each step, and measured", (long long)m->steps);
    table_column_add(t, "N", "%.0f", false);
    table_column_add(t, "W", "%.0f", false);
    table_column_add(t, "G", "%.0f", false);
    table_column_add(t, "rows", "%.1f", false);
    table_column_add(t, "by_found", "%.3f", false);
    table_column_add(t, "by_candidates", "%.3f", false);
    table_column_add(t, "measured", "%.3f", false);
    table_column_add(t, "error", "%.3f", false);
    double *row = table_row(t);
    row[0] = r->N, row[1] = r->W, row[2] = r->G;
    row[3] = (double)m->rows / (double)m->steps;
    row[4] = theory_lookahead(m->alpha, m->found, r->N, r->W < r->G ? r->W : r->G);
    row[5] = theory_candidates(m->alpha, r->N, m->with, r->G);
    row[6] = m->tokens.mean;
    row[7] = m->tokens.error;
    table_fact_add(t, "alpha_of_candidates", "%.4f", m->alpha);
    table_fact_add(t, "found", "%.3f", m->found);
    table_fact_add(t, "candidates_a_step", "%.2f", candidates);
}

/* THY-13 with the number of candidates that a step found. */
static void add_batch(table_list *list, const measure_request *r, const measure_ahead *m)
{
    table *t = table_new(list, "batch", "The same steps by their candidates of %d tokens: tokens a step",
                         (int)r->N - 1);
    table_column_add(t, "candidates", "%.0f", false);
    table_column_add(t, "steps", "%.0f", false);
    table_column_add(t, "formula", "%.3f", true);
    table_column_add(t, "measured", "%.3f", true);
    table_column_add(t, "error", "%.3f", false);
    for (int32_t b = 0; b <= r->G; b++) {
        double *row = table_row(t);
        row[0] = b;
        row[1] = (double)m->with[b];
        row[2] = theory_batch(m->alpha, r->N - 1, b);
        row[3] = m->tokens_with[b].mean;
        row[4] = m->tokens_with[b].error;
    }
}

/* ---- The clock. ------------------------------------------------------------------------ */

static void cost_row(table *t, double draft, double rows, const measure_ratio *x)
{
    double *row = table_row(t);
    row[0] = draft;
    row[1] = rows;
    row[2] = x->median;
    row[3] = x->low;
    row[4] = x->high;
}

static void add_cost(table_list *list, const measure_request *r, const measure_places *p, const measure_cost *m)
{
    table *t = table_new(list, "cost", "Forwards by the clock, in forwards of the target with one row: median of %d "
                         "and quartiles", MEASURE_FORWARDS);
    table_column_add(t, "draft", "%.0f", false);
    table_column_add(t, "rows", "%.0f", false);
    table_column_add(t, "median", "%.4f", false);
    table_column_add(t, "low", "%.4f", false);
    table_column_add(t, "high", "%.4f", false);
    cost_row(t, 1, 1, &m->c);
    cost_row(t, 0, r->gamma + 1, &m->rows);
    table_fact_add(t, "forward_ms", "%.4g", 1e3 * m->seconds);
    table_fact_add(t, "best_gamma", "%.0f", theory_best_gamma(p->alpha.mean, m->c.median, r->gamma));
    table_fact_add(t, "best_gamma_at_high", "%.0f", theory_best_gamma(p->alpha.mean, m->c.high, r->gamma));
    table_fact_add(t, "best_gamma_at_low", "%.0f", theory_best_gamma(p->alpha.mean, m->c.low, r->gamma));
}

/* ---- All. ------------------------------------------------------------------------------ */

void outcomes_add(table_list *list, const measure_request *r, const measure_result *m, int64_t rows)
{
    const forecast_lookahead ahead = {.alpha = m->ahead.alpha, .f = m->ahead.found, .rows = rows};
    add_places(list, &m->places, r->siblings);
    add_lenience(list, &m->places);
    add_steps(list, r, &m->places, &m->chains);
    add_depths(list, r, &m->places, &m->chains);
    add_trees(list, r, m);
    add_found(list, r, &m->ahead);
    add_batch(list, r, &m->ahead);
    forecast_add_lookahead(list, &ahead);
    add_cost(list, r, &m->places, &m->cost);
}
