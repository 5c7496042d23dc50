/* law_stream.c - law.stream: the IUT draws its own drafts; the first k = gamma+2 tokens have
 * the target's joint law. Sees what verify cannot: drafts from another law than q, and noise
 * shared between draft and correction. LAW-01 to LAW-03, LAW-05, RNG-07, STOP-03, STOP-04. */
#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_drawn.h"

static const law_cell smoke[] = {
    {3, 0.7, 1, 0},  {8, 0.7, 0, 0},  {8, 0.3, 1, 0},   {8, 0.7, 2, 0},    {64, 0.7, 0, 0},
    {64, 0.3, 1, 0}, {64, 0.7, 2, 0}, {64, 0.95, 4, 0}, {1024, 0.7, 1, 0}, {2, 0.7, 4, 0},
    {3, 0.7, 4, 0},  {3, 0.3, 4, 0},  {8, 0.7, 4, 0},
};
static const law_cell variants[] = {
    {8, 0.7, 2, PANEL_MASKED},
    {64, 0.7, 1, PANEL_MASKED},
    {64, 0.7, 1, PANEL_ONEHOT_Q},
};
/* What full adds: every acceptance with every gamma where V is small, a diagonal where it is
 * not. */
static const law_cell wide[] = {
    {2, 0.7, 2, 0},    {3, 0.3, 2, 0},     {3, 0.95, 4, 0},    {2, 0.7, 4, 0},
    {3, 0.7, 4, 0},    {3, 0.3, 4, 0},     {1024, 0.7, 0, 0},  {1024, 0.3, 1, 0},
    {1024, 0.7, 2, 0}, {1024, 0.95, 4, 0}, {32000, 0.3, 1, 0}, {32000, 0.7, 2, 0},
    {8, 0.7, 0, 0},    {64, 0.7, 0, 0},
};

static void plan(check_plan *p, check_level level)
{
    law_plan(p, &check_law_stream, level, variants, sizeof variants / sizeof *variants);
    if (level == LEVEL_SMOKE) {
        law_plan(p, &check_law_stream, level, smoke, sizeof smoke / sizeof *smoke);
        return;
    }
    law_plan(p, &check_law_stream, level, wide, sizeof wide / sizeof *wide);
    law_grid(p, &check_law_stream, level, 8);
    law_grid(p, &check_law_stream, level, 64);
}

static void draw(check_plan *p, check_draw *d)
{
    law_draw_shapes(p, d, &check_law_stream, LAW_STREAM);
}

static bool claimed(const check_case *c, const client *subject, char *why, size_t why_size)
{
    return law_claimed(c, subject, LAW_STREAM, why, why_size);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const panel_form form = law_form(c, x);
    if (c->drawn)
        law_drawn_case(c, x, LAW_STREAM, LAW_SHAPES, &form, r);
    else
        law_case(c, x, &form, LAW_STREAM, r);
}

const check check_law_stream = {
    .name = "law.stream",
    .clauses =
        "LAW-01 LAW-02 LAW-03 LAW-05 RNG-07 RNG-08 STOP-01 STOP-02 STOP-03 STOP-04 BON-02 LAY-04 "
        "STAT-01 STAT-02 STAT-03 STAT-04 STAT-07 STAT-08 STAT-10 STAT-11 STAT-14 STAT-15",
    .summary = "own drafts: the first gamma+2 tokens of a stream have the target's joint law",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
