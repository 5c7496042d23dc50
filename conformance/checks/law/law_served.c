/* law_served.c - law.served: an IUT that starts from logits samples the served law, whatever
 * the temperature and the filters, at every position, the bonus included. DIST-02, DIST-05 to
 * DIST-14.
 *
 * The null is served from the logits in binary64; rows with a cut so close that a legal
 * rounding could move it are not used (panel.h). */
#include <stdio.h>

#include "conformance/checks/frame/draw.h"
#include "conformance/checks/law/law_drawn.h"

typedef struct {
    const char *name;
    iut_sampling target, draft;
} processing;

/* The last rows serve the draft otherwise than the target: legal, as q is told. */
static const processing rows[] = {
    {"T0.7", {0.7f, 0, 1, 0}, {0.7f, 0, 1, 0}},
    {"T1.3", {1.3f, 0, 1, 0}, {1.3f, 0, 1, 0}},
    {"topk", {1, 20, 1, 0}, {1, 20, 1, 0}},
    {"topp", {1, 0, 0.6f, 0}, {1, 0, 0.6f, 0}},
    {"minp", {1, 0, 1, 0.1f}, {1, 0, 1, 0.1f}},
    {"all", {0.7f, 20, 0.8f, 0.02f}, {0.7f, 20, 0.8f, 0.02f}},
    {"all-hot", {1.3f, 40, 0.8f, 0.1f}, {1, 0, 1, 0}},
    {"plain-draft-cut", {1, 0, 1, 0}, {0.7f, 20, 1, 0}},
};
enum { ROWS = sizeof rows / sizeof *rows };

static const struct {
    law_op op;
    const char *name;
    int32_t gamma;
} lanes[] = {{LAW_VERIFY, "verify", 2},
             {LAW_VERIFY, "verify", 1},
             {LAW_STREAM, "stream", 1},
             {LAW_DRAW, "draw", 0}};
enum { LANES = sizeof lanes / sizeof *lanes };

/* top-p alone leaves no room between its cuts at V = 1024. */
static bool too_fine(int32_t row, int32_t V)
{
    return V > 64 && rows[row].target.top_p < 1 && rows[row].target.top_k == 0;
}

static void plan_one(check_plan *p, check_level level, int32_t lane, int32_t row, int32_t V)
{
    check_case *c = plan_case(p, &check_law_served, "%s-%s-V%d-g%d", lanes[lane].name,
                              rows[row].name, V, lanes[lane].gamma);
    c->V = V, c->gamma = lanes[lane].gamma, c->acceptance = 0.7;
    c->variant = lane * ROWS + row;
    c->n = law_samples(level, V);
    c->cost = cost_of_rows(c->n, c->V);
    c->tables = law_tables(c->gamma + 2);
    c->statistical = c->pooled = true;
}

static void plan(check_plan *p, check_level level)
{
    for (int32_t lane = 0; lane < LANES; lane++)
        for (int32_t row = 0; row < ROWS; row++) {
            plan_one(p, level, lane, row, 64);
            if (level != LEVEL_SMOKE && !too_fine(row, 1024))
                plan_one(p, level, lane, row, 1024);
        }
}

/* Of any vocabulary and gamma (VER-11). */
static void draw(check_plan *p, check_draw *d)
{
    enum { DEEPEST = 33, CUT_FINELY = 6 };
    static const int32_t V[] = {5, 8, 17, 33, 63, 65, 129, 255, 257, 1001};
    static const int32_t count[] = {1, 4, 16};
    static const int64_t streams[] = {4000, 20000, 100000};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t lane = draw_place(d, DRAW_FIRST, LANES), row = draw_place(d, DRAW_SECOND, ROWS);
        const bool finely = rows[row].target.top_p < 1;
        char name[40];
        snprintf(name, sizeof name, "%s-%s", lanes[lane].name, rows[row].name);
        check_case *c = law_draw_case(p, d, &check_law_served, name, V, finely ? CUT_FINELY : sizeof V / sizeof *V,
                                      lanes[lane].op == LAW_DRAW ? 0 : DEEPEST, streams[d->level]);
        if (c) c->variant = lane * ROWS + row;
    }
}

static bool claimed(const check_case *c, const client *subject, char *why, size_t why_size)
{
    const iut_claims *m = client_claims(subject);
    const iut_sampling *row = &rows[c->variant % ROWS].target;
    const bool coarse = m->arithmetic > IUT_ARITH_F32;
    if (m->input != IUT_FROM_LOGITS)
        snprintf(why, why_size, "it does not start from logits");
    else if (coarse && (row->top_p < 1 || row->min_p > 0))
        snprintf(why, why_size, "shares rounded to a half format may move a cut of top-p or min-p");
    else
        return law_claimed(c, subject, lanes[c->variant / ROWS].op, why, why_size);
    return false;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const processing *row = &rows[c->variant % ROWS];
    panel_form form = {.filters = check_filters(x->iut),
                       .V = c->V,
                       .acceptance = c->acceptance,
                       .seed = check_seed(x, c, 0),
                       .target = row->target,
                       .draft = row->draft};
    if (c->drawn)
        law_drawn_case(c, x, lanes[c->variant / ROWS].op, LAW_SHAPES, &form, r);
    else
        law_case(c, x, &form, lanes[c->variant / ROWS].op, r);
}

const check check_law_served = {
    .name = "law.served",
    .clauses = "DIST-02 DIST-05 DIST-06 DIST-08 DIST-09 DIST-10 DIST-11 DIST-12 DIST-13 "
               "DIST-14 LAW-01 "
               "LAW-03 LAW-05 STAT-01 STAT-02 STAT-03 STAT-04 STAT-07 STAT-08 "
               "STAT-14 STAT-15",
    .summary =
        "from logits: temperature, top-k, top-p, min-p give the served law at every position",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
