/* tree_replay.c - tree.replay: drawn rows, trees and uniforms against the exact judge; tree.seeded: the same by the
 * uniforms of RNG-09 and RNG-10. GREEDY takes no uniforms and rounds nothing: tree.replay asks it of everyone. */
#include <stdio.h>

#include "conformance/checks/frame/draw.h"
#include "conformance/checks/tree/asked.h"

enum { SHARP = 4, SHARP_LARGE = 32, LARGE_V = 256 }; /* of so many requests one has a uniform next to a boundary */
enum { HOT_V = (1 << 16) + 5 };                      /* ids of more than 16 bits, asked of any rule that is claimed */

/* A rule, or 0: requests of all rules in one call. */
typedef struct {
    int32_t rule, V;
    probe_shape rows;
} cell;

static const cell cells[] = {
    {IUT_TREE_RECURSIVE, 3, PROBE_DENSE},  {IUT_TREE_RECURSIVE, 8, PROBE_MASKED}, {IUT_TREE_RECURSIVE, 129, PROBE_PEAKED},
    {IUT_TREE_TARGET, 8, PROBE_DENSE},     {IUT_TREE_TARGET, 65, PROBE_MASKED},   {IUT_TREE_MATCH, 8, PROBE_DENSE},
    {IUT_TREE_GREEDY, 8, PROBE_DENSE},     {IUT_TREE_ONEHOT, 8, PROBE_MASKED},    {IUT_TREE_KSEQ, 3, PROBE_DENSE},
    {IUT_TREE_KSEQ, 65, PROBE_MASKED},     {IUT_TREE_SINGLE, 8, PROBE_DENSE},     {IUT_TREE_BLOCK, 8, PROBE_DENSE},
    {IUT_TREE_BLOCK, 33, PROBE_PEAKED},    {IUT_TREE_TYPICAL, 8, PROBE_DENSE},    {IUT_TREE_CONSTANT, 8, PROBE_DENSE},
    {IUT_TREE_LENIENT, 8, PROBE_DENSE},    {0, 8, PROBE_MASKED},                  {0, 1024, PROBE_DENSE},
    {IUT_TREE_ONEHOT, 3, PROBE_DENSE},     {IUT_TREE_ONEHOT, 65, PROBE_DENSE},    {IUT_TREE_GREEDY, 65, PROBE_MASKED},
    {0, HOT_V, PROBE_DENSE},               {IUT_TREE_GREEDY, HOT_V, PROBE_DENSE},
};

static const char *const shape_name[PROBE_SHAPES] = {"dense", "peaked", "fine", "masked", "tail", "head"};

static void add_cells(check_plan *p, check_level level, const check *which, int64_t share)
{
    static const int64_t n[] = {800, 8000, 80000};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        const cell *e = &cells[i];
        int32_t rule = 0;
        while (e->rule && 1 << rule != e->rule) rule++;
        check_case *c = plan_case(p, which, "%s-V%d-%s", e->rule ? tree_rule_name[rule] : "mixed", (int)e->V,
                                  e->V == HOT_V ? "hot" : shape_name[e->rows]);
        c->tree.V = e->V, c->tree.gamma = ASKED_DEPTH, c->tree.rule = e->rule, c->tree.rows = (int32_t)e->rows;
        c->n = n[level] / share;
        c->n = e->V == HOT_V ? n[level] / 200 : c->n / (e->V > LARGE_V ? 10 : e->V > 64 ? 2 : 1);
        c->cost = 20 * cost_of_rows(c->n, e->V);
    }
}

static void plan_replay(check_plan *p, check_level level)
{
    add_cells(p, level, &check_tree_replay, 1);
}

static void plan_seeded(check_plan *p, check_level level)
{
    add_cells(p, level, &check_tree_seeded, 4);
}

/* Of any vocabulary, depth, width and number of nodes (VER-11): ids beyond 16 bits, nodes beyond 8. */
static void draw_cells(check_plan *p, check_draw *d, const check *which, int64_t n)
{
    enum { LARGE = 2048, LARGEST = 32768, DEEPEST = 33 };
    static const int32_t count[] = {6, 24, 200};
    static const int32_t nodes[] = {2, 17, 33, 65, 129, 300, 310, TREE_NODES}, children[] = {1, 2, 3, 9, 17, 33, 65, 129};
    const bool fine = replay_fine(client_claims(d->iut));
    for (int32_t i = 0; i < count[d->level]; i++) {
        char name[40];
        const int32_t chosen = asked_rule(d->iut, &d->rng);
        int32_t rule = 0, rows = probe_below(&d->rng, PROBE_SHAPES);
        while (chosen && 1 << rule != chosen) rule++;
        if (rows == PROBE_FINE && !fine) rows = PROBE_DENSE; /* as in replay.random */
        snprintf(name, sizeof name, "%s-%s", chosen ? tree_rule_name[rule] : "mixed", shape_name[rows]);
        check_case *c = draw_rows(p, d, which, name, 1 << 18, DEEPEST, n);
        c->tree.rule = chosen, c->tree.rows = rows;
        c->tree.nodes = nodes[draw_place(d, DRAW_FIRST, 8)], c->tree.children = children[draw_place(d, DRAW_SECOND, 8)];
        if (c->tree.V > LARGE) c->n = c->tree.V > LARGEST ? 6 : 24;
        c->cost = 20 * cost_of_rows(c->n, c->tree.V);
    }
}

static void draw_replay(check_plan *p, check_draw *d)
{
    draw_cells(p, d, &check_tree_replay, 200);
}

static void draw_seeded(check_plan *p, check_draw *d)
{
    draw_cells(p, d, &check_tree_seeded, 50);
}

/* Few states are enough where the ids are what is asked. */
static int32_t states_of(int32_t V)
{
    return V > 32768 ? 2 : V > 2048 ? 4 : ASKED_STATES;
}

static bool has_rule(const check_case *c, const client *tested, char *why, size_t size)
{
    const int32_t rules = client_claims(tested)->tree_rules & (IUT_TREE_OTHER - 1);
    const bool has = c->tree.rule          ? (rules & c->tree.rule) != 0
                     : c->tree.V == HOT_V ? rules != 0
                                           : (rules & (rules - 1)) != 0;
    if (!has) snprintf(why, size, c->tree.rule ? "tree_rules does not have it" : "tree_rules has too few");
    return has;
}

static bool claimed_replay(const check_case *c, const client *tested, char *why, size_t size)
{
    const int32_t uniforms = c->tree.rule == IUT_TREE_GREEDY ? 0 : IUT_UNIFORMS_SUPPLIED;
    return asked_claimed(tested, c->tree.V, uniforms, why, size) && has_rule(c, tested, why, size);
}

static bool claimed_seeded(const check_case *c, const client *tested, char *why, size_t size)
{
    return asked_claimed(tested, c->tree.V, IUT_UNIFORMS_SEEDED, why, size) && has_rule(c, tested, why, size);
}

/* A case's requests on one panel; the generators go on on the next. */
typedef struct {
    const check_case *c;
    const check_context *x;
    trees t;
    uint64_t rng, sharp;
    replay_tally tally;
} asking;

static bool ask_some(asking *a, const probe *m, int64_t n, check_result *r)
{
    const check_case *c = a->c;
    const check_context *x = a->x;
    trees *t = &a->t;
    const asked_sizes most = c->drawn ? (asked_sizes){c->tree.nodes, c->tree.children} : ASKED_USUAL;
    const int32_t blunt = c->tree.V > LARGE_V ? SHARP_LARGE : SHARP;
    asked_rows rows;
    bool going = true;
    asked_rows_of(&rows, m);
    for (int64_t done = 0; going && done < n; done += t->n) {
        const int32_t call = 1 + probe_below(&a->rng, ASKED_ROOM);
        trees_clear(t);
        asked_ways(t, x->iut, c->tree.V, &a->rng);
        while (going && t->n < call && done + t->n < n) {
            asked_add(t, m, x, c->tree.rule ? c->tree.rule : asked_rule(x->iut, &a->rng), most, &a->rng);
            going = probe_below(&a->sharp, blunt) > 0 || asked_sharpen(t, x, c->tree.V, &rows, &a->sharp, r);
        }
        going = going && trees_ask(t, x, c->tree.V, probe_next(&a->rng), probe_next(&a->rng) >> 16, r) &&
                asked_judge(t, x, c->tree.V, &rows, &a->tally, r);
    }
    return going;
}

/* Rows of one id, and of four, of which two and two share their low 16 bits: what is due costs nothing to know. What p
 * has less of, q has more of. */
static void heat(probe *m)
{
    static const int32_t ids[] = {3, 0, 1 << 16, 3 + (1 << 16)}; /* all are also the draft's own */
    static const float few[] = {0.5f, 0.25f, 0.125f, 0.125f};
    for (int32_t s = 0; m && s < m->S; s++) {
        probe_one_hot(probe_p(m, s), m->V, ids[3]), probe_one_hot(probe_q(m, s), m->V, ids[3]);
        for (int32_t i = 0; s % 2 && i < 4; i++) probe_p(m, s)[ids[i]] = few[i], probe_q(m, s)[ids[i]] = few[3 - i];
    }
}

static bool ask_panel(asking *a, uint64_t *rows, int64_t n, check_result *r)
{
    const check_case *c = a->c;
    probe *m = asked_probe(a->x->iut, states_of(c->tree.V), c->tree.V, (probe_shape)c->tree.rows, rows);
    if (c->tree.V == HOT_V) heat(m);
    const bool going = probe_serve(m, a->x, r) && ask_some(a, m, n, r);
    probe_close(m);
    return going;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    asking a = {.c = c, .x = x, .rng = check_seed(x, c, 0), .sharp = check_seed(x, c, 1)};
    uint64_t other = check_seed(x, c, 2);
    /* INV-04: half of the requests find a second panel of the same shape. */
    const int64_t second = c->tree.V > LARGE_V ? 0 : c->n / 2;
    if (trees_open(&a.t, x, ASKED_ROOM, ASKED_ROOM * TREE_NODES, c->tree.gamma, r) &&
        ask_panel(&a, &a.rng, c->n - second, r) && (second == 0 || ask_panel(&a, &other, second, r)))
        replay_report(&a.tally, r);
    trees_close(&a.t);
}

const check check_tree_replay = {
    .name = "tree.replay",
    .clauses = "TRV-01 TRV-02 TRV-03 TRV-04 TRV-05 TRV-06 SIB-01 SIB-02 SIB-03 SIB-04 SIB-05 SIB-06 REC-01 REC-02 TGT-01 "
               "TGT-02 TGT-03 MAT-03 GRD-04 ONEH-07 NIR-01 KSQ-01 KSQ-02 KSQ-03 BLK-02 BLK-03 BLK-04 TYP-01 CST-01 LEN-01 "
               "TRV-08 VOC-01 VOC-02 DRAW-07 RNG-09 CLM-20 CLM-22 CLM-24 INV-04 LAY-02 LAY-10 LAY-23",
    .summary = "random rows, trees and uniforms give the specified tokens and nodes",
    .plan = plan_replay,
    .draw = draw_replay,
    .claimed = claimed_replay,
    .run = run,
};

const check check_tree_seeded = {
    .name = "tree.seeded",
    .clauses = "RNG-09 RNG-10 BLK-05 LAY-02",
    .summary = "the same by seeds: each uniform has the specified place",
    .plan = plan_seeded,
    .draw = draw_seeded,
    .claimed = claimed_seeded,
    .run = run,
};
