/* law_long.c - law.long: streams of hundreds of tokens. Given its state every token has the target's
 * law, at any position and behind any tokens up to 64 places back, and 128 and 256. Sees what goes wrong
 * from some position on, uniforms that come again, counters that wrap, windows. STAT-10, STAT-11. */
#include "conformance/checks/frame/probe.h"
#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_drawn.h"

static void plan(check_plan *p, check_level level)
{
    (void)p, (void)level;
}

/* c->variant is the operation. */
static void draw(check_plan *p, check_draw *d)
{
    static const int32_t V[] = {5, 7, 8, 9, 11, 13, 15, 16, 17, 31, 33, 65};
    static const struct {
        law_op op;
        const char *name;
        int32_t gamma;
    } row[] = {{LAW_STREAM, "plain-stream", 0},
               {LAW_STREAM, "stream", 8},
               {LAW_VERIFY, "verify", 5},
               {LAW_DRAW, "draw", 0}};
    static const int32_t rows[] = {2, 4, 4};
    static const int64_t streams[] = {192, 768, 4096};
    for (int32_t i = 0; i < rows[d->level]; i++) {
        check_case *c = law_draw_case(p, d, &check_law_long, row[i].name, V, sizeof V / sizeof *V,
                                      row[i].gamma, streams[d->level]);
        if (!c) continue;
        c->variant = (int32_t)row[i].op;
        c->cost *= 264;
    }
}

static bool claimed(const check_case *c, const client *subject, char *why, size_t why_size)
{
    return law_claimed(c, subject, (law_op)c->variant, why, why_size);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    law_drawn_case(c, x, (law_op)c->variant, LAW_LONG, &(panel_form){.variant = PANEL_PLAIN}, r);
}

const check check_law_long = {
    .name = "law.long",
    .clauses = "LAW-01 LAW-02 STOP-02 STOP-04 RNG-07 RNG-08 LAY-04 STAT-02 STAT-03 STAT-10 STAT-11 "
               "STAT-14 STAT-15",
    .summary = "streams of hundreds of tokens: every token has the target's law, whatever came before",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
