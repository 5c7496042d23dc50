/* law_draw.c - law.draw: plain draws, made into streams of two tokens, have the target's law.
 * DRAW-04 to DRAW-06, RNG-07. */
#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_drawn.h"

static const law_cell cells[] = {
    {2, 0.7, 0, 0},
    {8, 0.7, 0, 0},
    {64, 0.7, 0, 0},
    {1024, 0.7, 0, 0},
    {64, 0.7, 0, PANEL_MASKED},
};
static const law_cell large[] = {{32000, 0.7, 0, 0}};

static void plan(check_plan *p, check_level level)
{
    law_plan(p, &check_law_draw, level, cells, sizeof cells / sizeof *cells);
    if (level != LEVEL_SMOKE) law_plan(p, &check_law_draw, level, large, 1);
}

static void draw(check_plan *p, check_draw *d)
{
    law_draw_shapes(p, d, &check_law_draw, LAW_DRAW);
}

static bool claimed(const check_case *c, const client *subject, char *why, size_t why_size)
{
    return law_claimed(c, subject, LAW_DRAW, why, why_size);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const panel_form form = law_form(c, x);
    if (c->drawn)
        law_drawn_case(c, x, LAW_DRAW, LAW_SHAPES, &form, r);
    else
        law_case(c, x, &form, LAW_DRAW, r);
}

const check check_law_draw = {
    .name = "law.draw",
    .clauses = "DRAW-04 DRAW-05 DRAW-06 RNG-07 LAY-04 STAT-01 STAT-02 STAT-03 STAT-04 STAT-07 "
               "STAT-08 STAT-10 STAT-11",
    .summary = "plain draws, one after the other, have the target's law",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
