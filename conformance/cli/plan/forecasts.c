/* forecasts.c - see forecasts.h. */
#include "conformance/cli/plan/forecasts.h"

#include <math.h>
#include <stdio.h>

#include "conformance/theory/acceptance.h"
#include "conformance/theory/chain.h"
#include "conformance/theory/lookahead.h"
#include "conformance/theory/machine.h"

/* ---- A chain. -------------------------------------------------------------------------- */

/* The gamma of the table with the largest time factor, the least of equals. */
static int32_t best_row(const table *t, int32_t column)
{
    int32_t best = 0;
    for (int32_t i = 1; i < t->rows; i++)
        if (t->cell[i][column] > t->cell[best][column]) best = i;
    return best;
}

void forecast_add_chain(table_list *list, const forecast_chain *c)
{
    table *t = table_new(list, "chain", "A chain of gamma drafts: alpha %.4g, a draft %.4g and a further row %.4g "
                         "forwards of one row", c->alpha, c->c, c->row);
    table_column_add(t, "gamma", "%.0f", false);
    table_column_add(t, "tokens", "%.3f", true);
    table_column_add(t, "walltime", "%.3f", true);
    table_column_add(t, "with_rows", "%.3f", true);
    table_column_add(t, "operations", "%.3f", true);
    if (c->b != 1) table_column_add(t, "candidates", "%.3f", true);
    for (int32_t gamma = 0; gamma <= c->most; gamma++) {
        double *row = table_row(t);
        row[0] = gamma;
        row[1] = theory_tokens(c->alpha, gamma);
        row[2] = theory_walltime(c->alpha, gamma, c->c, 1);
        row[3] = theory_walltime(c->alpha, gamma, c->c, 1 + gamma * c->row);
        row[4] = theory_operations(c->alpha, gamma, c->c_ops);
        if (c->b != 1) row[5] = theory_batch(c->alpha, gamma, c->b);
    }
    table_fact_add(t, "best_gamma", "%.0f", theory_best_gamma(c->alpha, c->c, c->most));
    table_fact_add(t, "best_gamma_with_rows", "%.0f", best_row(t, 3));
    table_fact_add(t, "promised_by_corollary_3.9", "%.4f", theory_promise(c->alpha, c->c));
}

/* ---- One place. ------------------------------------------------------------------------ */

/* The ids of the k largest entries, the lowest of equals first. */
static void largest(const double *row, int32_t V, int32_t *id, int32_t k)
{
    for (int32_t i = 0; i < k; i++) {
        id[i] = -1;
        for (int32_t x = 0; x < V; x++) {
            bool taken = false;
            for (int32_t j = 0; j < i; j++) taken = taken || id[j] == x;
            if (!taken && (id[i] < 0 || row[x] > row[id[i]])) id[i] = x;
        }
    }
}

static void add_lenience(table_list *list, const forecast_place *p)
{
    static const double l[] = {1, 0.5, 0.3, 0.1};
    table *t = table_new(list, "lenience", "Lenience l: alpha(l) = sum of min(p/l, q)");
    table_column_add(t, "l", "%.1f", false);
    table_column_add(t, "alpha", "%.4f", true);
    for (int i = 0; i < 4; i++) {
        double *row = table_row(t);
        row[0] = l[i];
        row[1] = theory_lenient(p->p, p->q, p->V, l[i]);
    }
}

void forecast_add_place(table_list *list, const forecast_place *p)
{
    int32_t id[TABLE_ROWS];
    table *t = table_new(list, "place", "One place: that one of K siblings is accepted");
    table_column_add(t, "siblings", "%.0f", false);
    table_column_add(t, "kseq", "%.4f", true);
    table_column_add(t, "factor", "%.4f", false);
    table_column_add(t, "kseq_at_K", "%.4f", true);
    table_column_add(t, "top_onehot", "%.4f", true);
    largest(p->q, p->V, id, p->siblings < p->V ? p->siblings : p->V);
    for (int32_t K = 1; K <= p->siblings; K++) {
        double *row = table_row(t);
        row[0] = K;
        row[2] = theory_kseq_factor(p->p, p->q, p->V, K);
        row[1] = theory_kseq(p->p, p->q, p->V, K, row[2]);
        row[3] = theory_kseq(p->p, p->q, p->V, K, K);
        row[4] = theory_onehot(p->p, p->V, id, K < p->V ? K : p->V);
    }
    table_fact_add(t, "overlap", "%.4f", theory_overlap(p->p, p->q, p->V));
    table_fact_add(t, "D_LK", "%.4f", theory_divergence(p->p, p->q, p->V));
    table_fact_add(t, "single", "%.4f", theory_single(p->p, p->q, p->V));
    add_lenience(list, p);
}

/* ---- Lookahead. ------------------------------------------------------------------------ */

static void size_row(table *t, const forecast_lookahead *l, int32_t W, int32_t N, int32_t G)
{
    double *row = table_row(t);
    row[0] = N, row[1] = W, row[2] = G;
    row[3] = (double)theory_lookahead_rows(W, N, G);
    row[4] = theory_lookahead(l->alpha, l->f, N, W < G ? W : G);
    row[5] = 1 + (N - 1) / l->f; /* THY-15's NOTE: what no size passes */
}

/* S by budget of rows, for each N with the largest W = G that fits; the last budget is the one that was given. */
static void add_scaling(table_list *list, const forecast_lookahead *l)
{
    static const char *const name[] = {"N2", "N3", "N4", "N5", "N6", "N7"};
    enum { LENGTHS = sizeof name / sizeof *name };
    table *t = table_new(list, "scaling", "S by rows of a forward, W = G as large as fits");
    t->logarithmic = true;
    table_column_add(t, "rows", "%.0f", false);
    for (int32_t k = 0; k < LENGTHS; k++) table_column_add(t, name[k], "%.3f", true);
    for (int64_t rows = 2, last = 0; last < l->rows; rows *= 2) {
        double *row = table_row(t);
        last = rows < l->rows ? rows : l->rows;
        row[0] = (double)last;
        for (int32_t k = 0; k < LENGTHS; k++) {
            const int32_t W = theory_lookahead_fit(last, k + 2);
            if (W > 0) row[k + 1] = theory_lookahead(l->alpha, l->f, k + 2, W);
        }
    }
}

void forecast_add_lookahead(table_list *list, const forecast_lookahead *l)
{
    enum { LENGTHS = 15 };
    table *t = table_new(list, "lookahead", "Lookahead: alpha %.4g, one step in %.4g finds candidates", l->alpha,
                         l->f);
    table_column_add(t, "N", "%.0f", false);
    table_column_add(t, "W", "%.0f", false);
    table_column_add(t, "G", "%.0f", false);
    table_column_add(t, "rows", "%.0f", false);
    table_column_add(t, "S", "%.3f", true);
    table_column_add(t, "limit", "%.3f", true);
    if (l->W > 0) {
        size_row(t, l, l->W, l->N, l->G);
        return;
    }
    for (int32_t N = 2; N < 2 + LENGTHS; N++) {
        const int32_t W = theory_lookahead_fit(l->rows, N);
        if (W > 0) size_row(t, l, W, N, W);
    }
    const int32_t best = best_row(t, 4);
    table_fact_add(t, "best_N", "%.0f", t->cell[best][0]);
    table_fact_add(t, "best_W", "%.0f", t->cell[best][1]);
    add_scaling(list, l);
}

/* ---- A tree. --------------------------------------------------------------------------- */

static void tree_row(table *t, const as_shape *shape, const forecast_tree *of)
{
    double *row = table_row(t);
    row[0] = as_shape_depth(shape);
    row[1] = as_shape_width(shape);
    row[2] = shape->drafts + 1;
    row[3] = as_shape_tokens(shape, of->rate, of->ranks);
}

bool forecast_add_tree(table_list *list, const forecast_tree *of, char *why, size_t why_size)
{
    const int32_t drafts = of->shape->drafts;
    const int32_t depth = drafts < AS_SEQUOIA_LEVELS ? drafts : AS_SEQUOIA_LEVELS;
    as_error e = {.text = ""};
    as_shape chain = {.drafts = drafts}, best;
    for (int32_t i = 0; i < drafts; i++) chain.parent[i] = i;
    const as_status s = as_sequoia(of->rate, of->ranks, drafts, depth, &best, &e);
    if (s != AS_OK && s != AS_BAD_INPUT) return snprintf(why, why_size, "%s", e.text), false;
    table *t = table_new(list, "tree", "Tokens a step of the tree, of a chain%s of as many rows",
                         s == AS_OK ? " and of Sequoia's tree" : "");
    table_column_add(t, "depth", "%.0f", false);
    table_column_add(t, "width", "%.0f", false);
    table_column_add(t, "rows", "%.0f", false);
    table_column_add(t, "tokens", "%.3f", false);
    tree_row(t, of->shape, of);
    tree_row(t, &chain, of);
    if (s == AS_OK) tree_row(t, &best, of);
    return true;
}

/* ---- The machine. ---------------------------------------------------------------------- */

void forecast_add_machine(table_list *list, const forecast_machine *m)
{
    const double stream = theory_stream(m->parameters, m->width, m->bandwidth);
    table *t = table_new(list, "machine", "A forward of R rows: %.4g parameters of %.4g bytes, %.4g bytes/s",
                         m->parameters, m->width, m->bandwidth);
    t->logarithmic = true;
    table_column_add(t, "rows", "%.0f", false);
    table_column_add(t, "intensity", "%.4g", false);
    table_column_add(t, "weights_ms", "%.4g", true);
    table_column_add(t, "arithmetic_ms", "%.4g", true);
    table_column_add(t, "cost", "%.3f", false);
    for (int32_t rows = 1; rows <= 1024; rows *= 2) {
        const double arithmetic = m->speed > 0 ? 2 * m->parameters * rows / m->speed : NAN;
        double *row = table_row(t);
        row[0] = rows;
        row[1] = theory_intensity(rows, m->width);
        row[2] = 1e3 * stream;
        row[3] = 1e3 * arithmetic;
        if (m->speed > 0) row[4] = fmax(stream, arithmetic) / fmax(stream, 2 * m->parameters / m->speed);
    }
    table_fact_add(t, "weights_ms", "%.4g", 1e3 * stream);
    table_fact_add(t, "free_rows", "%.4g", m->speed > 0 ? theory_free_rows(m->speed, m->width, m->bandwidth) : NAN);
}
