/* law_verify.c - law.verify: the suite draws drafts from q, the IUT verifies them, until k =
 * gamma+2 tokens are out; their joint law is the target's. LAW-01, LAW-02, LAW-05, RNG-07,
 * STAT-01 to 04. */
#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_drawn.h"

/* High acceptance hides faults of the residual, low acceptance hides leniency, and a bonus
 * needs a short gamma: every V meets several of them. What goes wrong at the third draft shows
 * only after two acceptances by chance: long chains on the smallest rows, and on small ones with
 * holes, where a residual of the token rule in a block shows. */
static const law_cell smoke[] = {
    {2, 0.7, 2, 0},    {3, 0.7, 1, 0},     {3, 0.3, 2, 0},  {8, 0.3, 1, 0},   {8, 0.7, 2, 0},
    {8, 0.95, 4, 0},   {64, 0.3, 2, 0},    {64, 0.7, 1, 0}, {64, 0.95, 2, 0}, {1024, 0.3, 1, 0},
    {1024, 0.7, 2, 0}, {32000, 0.3, 1, 0}, {2, 0.7, 4, 0},  {2, 0.3, 4, 0},   {3, 0.7, 4, 0},
    {3, 0.3, 4, 0},    {8, 0.7, 4, 0},     {4, 0.7, 4, PANEL_MASKED}, {6, 0.7, 4, PANEL_MASKED},
};
/* Rows with holes are the ones on which a residual of the wrong rule shows. */
static const law_cell variants[] = {
    {8, 0.7, 2, PANEL_MASKED},  {8, 0.7, 4, PANEL_MASKED},   {64, 0.7, 1, PANEL_MASKED},
    {64, 0.7, 2, PANEL_MASKED}, {8, 0.7, 2, PANEL_ONEHOT_P}, {64, 0.7, 1, PANEL_ONEHOT_Q},
};

/* A wide row costs as much as all others: the corners and the middle of the grid. */
static const law_cell wide[] = {
    {32000, 0.3, 1, 0},  {32000, 0.3, 4, 0},  {32000, 0.7, 2, 0},
    {32000, 0.95, 1, 0}, {32000, 0.95, 4, 0},
};

static void plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {2, 3, 8, 64, 1024};
    law_plan(p, &check_law_verify, level, variants, sizeof variants / sizeof *variants);
    if (level == LEVEL_SMOKE) {
        law_plan(p, &check_law_verify, level, smoke, sizeof smoke / sizeof *smoke);
        return;
    }
    law_plan(p, &check_law_verify, level, wide, sizeof wide / sizeof *wide);
    for (int v = 0; v < 5; v++) law_grid(p, &check_law_verify, level, V[v]);
}

static void draw(check_plan *p, check_draw *d)
{
    law_draw_shapes(p, d, &check_law_verify, LAW_VERIFY);
}

static bool claimed(const check_case *c, const client *subject, char *why, size_t why_size)
{
    return law_claimed(c, subject, LAW_VERIFY, why, why_size);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const panel_form form = law_form(c, x);
    if (c->drawn)
        law_drawn_case(c, x, LAW_VERIFY, LAW_SHAPES, &form, r);
    else
        law_case(c, x, &form, LAW_VERIFY, r);
}

const check check_law_verify = {
    .name = "law.verify",
    .clauses = "LAW-01 LAW-02 LAW-05 RNG-07 ACC-01 ACC-04 ACC-05 RES-02 BON-01 BON-02 DRAW-06 "
               "LAY-04 STAT-01 STAT-02 STAT-03 STAT-04 STAT-07 STAT-08 STAT-10 STAT-11 STAT-14 STAT-15",
    .summary = "verified drafts: the first gamma+2 tokens have the target's joint law",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
