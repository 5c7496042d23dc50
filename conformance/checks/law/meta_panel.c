/* meta_panel.c - meta.panel: answers depend on the panel loaded last, and on none before it
 * (INV-04, LAY-05).
 *
 * Two panels of one shape take turns, as a cache that is keyed by state number or by shape
 * would have it. Where uniforms are supplied or seeded the answers are compared with those
 * after a panel of another shape, which no such cache survives; a cache that does survive it
 * still meets the law cases, which judge every turn by the law of its own panel. They are all
 * that an implementation with its own uniforms can be asked. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/draw.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/checks/law/batch.h"
#include "conformance/stats/logmath.h"

enum { CASES = 96, GAMMA = 3, LAW_GAMMA = 2, TURNS = 3, MANY = 8 /* tokens: rows of fewer can be alike */ };

/* What panel B has of panel A besides its shape: a cache may be keyed by one row and forget the other. */
typedef enum { KEEPS_NOTHING, KEEPS_P, KEEPS_Q, KEEPS_ROWS } kept;

static const struct {
    iut_op op;
    const char *name;
    bool by_law;
    law_op law;
    kept keeps;
} rows[] = {
    {OP_VERIFY, "verify", false, LAW_VERIFY, KEEPS_NOTHING},
    {OP_VERIFY_GREEDY, "greedy", false, LAW_VERIFY, KEEPS_NOTHING},
    {OP_DRAW, "draw", false, LAW_DRAW, KEEPS_NOTHING},
    {OP_STREAM, "stream", false, LAW_STREAM, KEEPS_NOTHING},
    {OP_SERVED, "served", false, LAW_DRAW, KEEPS_NOTHING},
    {OP_RESIDUAL, "residual", false, LAW_DRAW, KEEPS_NOTHING},
    {OP_VERIFY, "law-verify", true, LAW_VERIFY, KEEPS_NOTHING},
    {OP_STREAM, "law-stream", true, LAW_STREAM, KEEPS_NOTHING},
    {OP_DRAW, "law-draw", true, LAW_DRAW, KEEPS_NOTHING},
    {OP_VERIFY, "verify-new-p", false, LAW_VERIFY, KEEPS_Q},
    {OP_VERIFY, "verify-new-q", false, LAW_VERIFY, KEEPS_P},
    {OP_STREAM, "stream-new-p", false, LAW_STREAM, KEEPS_Q},
    {OP_STREAM, "stream-new-q", false, LAW_STREAM, KEEPS_P},
    {OP_SERVED, "served-new-p", false, LAW_DRAW, KEEPS_Q},
    {OP_SERVED, "served-new-q", false, LAW_DRAW, KEEPS_P},
    {OP_RESIDUAL, "residual-new-p", false, LAW_DRAW, KEEPS_Q},
    {OP_RESIDUAL, "residual-new-q", false, LAW_DRAW, KEEPS_P},
    {OP_STREAM, "stream-new-states", false, LAW_STREAM, KEEPS_ROWS},
    {OP_STREAM, "law-stream-new-states", true, LAW_STREAM, KEEPS_ROWS},
};

/* c->variant is the row; c->n counts cases of a batch, or streams of a turn. */
static void plan(check_plan *p, check_level level)
{
    static const int64_t n[] = {2048, 20480, 204800};
    for (int32_t i = 0; i < (int32_t)(sizeof rows / sizeof *rows); i++)
        for (int32_t V = 8; V <= 64; V *= 8) {
            check_case *c = plan_case(p, &check_meta_panel, "%s-V%d", rows[i].name, V);
            c->V = V, c->variant = i;
            c->n = rows[i].by_law ? n[level] : CASES;
            c->cost = cost_of_rows(TURNS * c->n, V);
            c->gamma = rows[i].by_law ? LAW_GAMMA : GAMMA;
            if (rows[i].op == OP_DRAW) c->gamma = 0;
            if (rows[i].op == OP_SERVED || rows[i].op == OP_RESIDUAL) c->gamma = 0;
            c->tables = rows[i].by_law ? TURNS * law_tables(c->gamma + 2) : 0;
            c->statistical = rows[i].by_law;
        }
}

/* Of any vocabulary and gamma (VER-11); the laws have the fixed ones. */
static void draw(check_plan *p, check_draw *d)
{
    enum { MOST = 2048, DEEPEST = 64, ROWS = sizeof rows / sizeof *rows };
    static const int32_t count[] = {1, 6, 30};
    for (int32_t i = 0; i < count[d->level]; i++) {
        int32_t row = probe_below(&d->rng, ROWS);
        while (rows[row].by_law) row = probe_below(&d->rng, ROWS);
        const bool drafts = rows[row].op != OP_DRAW && rows[row].op != OP_SERVED && rows[row].op != OP_RESIDUAL;
        draw_rows(p, d, &check_meta_panel, rows[row].name, MOST, drafts ? DEEPEST : 0, CASES)->variant = row;
    }
}

static bool claimed(const check_case *c, const client *subject, char *why, size_t why_size)
{
    const iut_claims *m = client_claims(subject);
    const iut_op op = rows[c->variant].op;
    const bool uses_uniforms = op == OP_VERIFY || op == OP_DRAW || op == OP_STREAM;
    const char *missing = NULL;
    const check_case within = case_within(c, subject);
    if (rows[c->variant].by_law)
        return law_claimed(&within, subject, rows[c->variant].law, why, why_size);
    if (!check_has(subject, op, why, why_size)) return false;
    if (uses_uniforms && m->uniforms != IUT_UNIFORMS_SUPPLIED &&
             m->uniforms != IUT_UNIFORMS_SEEDED)
        missing = "it draws its own uniforms: meta.panel/law tests its panels";
    else if (m->max_vocab > 0 && c->V > m->max_vocab)
        missing = "V is beyond max_vocab";
    else if (uses_uniforms && rows[c->variant].keeps == KEEPS_P && m->rule != IUT_RULE_TOKEN &&
             m->rule != IUT_RULE_BLOCK)
        missing = "its rule does not use q";
    if (missing) snprintf(why, why_size, "%s", missing);
    return !missing;
}

static panel *panel_number(const check_case *c, const check_context *x, int32_t which,
                           check_result *r)
{
    char why[200];
    const bool other = which == 2, least = c->V <= 2;
    panel *a = panel_make(&(panel_form){.V = c->V - (other && !least),
                                        .layers = other && least ? 2 : 0,
                                        .seed = check_seed(x, c, 16 + (uint64_t)which)},
                          why, sizeof why);
    if (!a) result_set(r, STATE_ERROR, "%s (STA-03)", why);
    return a;
}

/* Gives panel b the automaton of panel a, and its rows of one kind. */
static void keep(const panel *a, panel *b, kept what)
{
    const size_t V = (size_t)a->view.V, cells = (size_t)a->view.S * V;
    memcpy(b->cls, a->cls, V * sizeof *b->cls);
    memcpy(b->next, a->next, (size_t)(a->view.S * a->view.C) * sizeof *b->next);
    memcpy(what == KEEPS_P ? b->p : b->q, what == KEEPS_P ? a->p : a->q, cells * sizeof(float));
    memcpy(what == KEEPS_P ? b->p_logit : b->q_logit,
           what == KEEPS_P ? a->p_logit : a->q_logit, cells * sizeof(float));
}

/* Other tokens lead from a state to the next; unless a law is judged, whose tables need layers (panel.h), a class of
 * tokens leads elsewhere, too. */
static void link_otherwise(panel *a, bool by_law)
{
    for (int32_t t = 0; t < a->view.V; t++) a->cls[t] = (a->cls[t] + 1) % a->view.C;
    for (int32_t i = 0; !by_law && i < a->view.S * a->view.C; i++) a->next[i] = (a->next[i] + 1) % a->view.S;
}

/* Panels 0 and 1 have one shape; panel 2 lacks a token, or states where there are but two tokens. */
static panel *make_panel(const check_case *c, const check_context *x, int32_t which,
                         check_result *r)
{
    const kept what = rows[c->variant].keeps;
    panel *made = panel_number(c, x, which == 1 && what == KEEPS_ROWS ? 0 : which, r);
    if (which != 1 || what == KEEPS_NOTHING || !made) return made;
    if (what == KEEPS_ROWS) return link_otherwise(made, rows[c->variant].by_law), made;
    panel *first = panel_number(c, x, 0, r);
    if (first) keep(first, made, what);
    if (!first) panel_free(made), made = NULL;
    panel_free(first);
    return made;
}

/* -- The same answers -------------------------------------------------------------- */

typedef struct {
    const check_context *x;
    iut_op op;
    bool told; /* panels A and B must have different answers; a stream need not show its drafts */
    panel *a[3];
    batch b;
    size_t size;     /* bytes of an answer */
    char *answer[3]; /* of panel 0, of panel 1, and the last one */
} turns;

static bool ask_rows(const turns *m, const panel *a, float *row, check_result *r)
{
    int32_t state[64];
    const int32_t S = a->view.S;
    const size_t cells = (size_t)S * (size_t)a->view.V;
    for (int32_t s = 0; s < S; s++) state[s] = s;
    if (m->op == OP_RESIDUAL)
        return result_call(r, m->x, "residual", client_residual(m->x->iut, S, state, row));
    return result_call(r, m->x, "served", client_served(m->x->iut, S, state, 0, row)) &&
           result_call(r, m->x, "served", client_served(m->x->iut, S, state, 1, row + cells));
}

/* Loads a panel, asks everything, keeps the answer at `to`. */
static bool take_turn(turns *m, int32_t which, char *to, check_result *r)
{
    const panel *a = m->a[which];
    if (!result_call(r, m->x, "panel", client_panel(m->x->iut, &a->view))) return false;
    r->compared++;
    if (m->op == OP_SERVED || m->op == OP_RESIDUAL) return ask_rows(m, a, (float *)to, r);
    if (!batch_ask(&m->b, 0, m->b.N, false, r)) return false;
    const size_t out = (size_t)m->b.N * (size_t)m->b.k * sizeof *m->b.out;
    memcpy(to, m->b.out, out);
    memcpy(to + out, m->b.out_len, m->size - out);
    return true;
}

/* The place of the first difference, for the report; SIZE_MAX: none. */
static size_t first_difference(const turns *m, const char *a, const char *b)
{
    size_t i = 0;
    while (i < m->size && a[i] == b[i]) i++;
    return i < m->size ? i / sizeof(int32_t) : SIZE_MAX;
}

static bool stays(const turns *m, int32_t which, const char *when, check_result *r)
{
    const size_t at = first_difference(m, m->answer[which], m->answer[2]);
    if (at == SIZE_MAX) return true;
    result_set(r, STATE_FAIL,
               "panel %c answers otherwise %s: the first difference is at element %zu of %zu; "
               "something of an earlier panel was kept (INV-04)",
               'A' + which, when, at, m->size / sizeof(int32_t));
    return false;
}

/* Shape C, then A, B, A of one shape, then C again and B. */
static void take_turns(turns *m, check_result *r)
{
    if (!take_turn(m, 2, m->answer[2], r) || !take_turn(m, 0, m->answer[0], r) ||
        !take_turn(m, 1, m->answer[1], r))
        return;
    if (m->told && first_difference(m, m->answer[0], m->answer[1]) == SIZE_MAX) {
        result_set(r, STATE_FAIL,
                   "panel B, of the shape of panel A but with other rows or states, gets the answers of "
                   "panel A (INV-04)");
        return;
    }
    if (!take_turn(m, 0, m->answer[2], r) || !stays(m, 0, "after panel B of its shape", r))
        return;
    if (!take_turn(m, 2, m->answer[2], r) || !take_turn(m, 1, m->answer[2], r) ||
        !stays(m, 1, "after a panel of another shape than after panel A of its own", r))
        return;
    result_set(r, STATE_PASS, "panels of one shape in turn, %lld times: each has its answers",
               (long long)r->compared);
}

/* The cases are drawn on panel 2, whose tokens every panel has. */
static bool open_turns(turns *m, const check_case *c, check_result *r)
{
    const int32_t k = m->op == OP_STREAM ? 3 * c->gamma : c->gamma + 1;
    const size_t cells = (size_t)m->a[0]->view.S * (size_t)c->V;
    law_alias q = {0};
    law_random g;
    law_seed(&g, check_seed(m->x, c, 2));
    bool ok = batch_open(&m->b, m->x, m->a[2], m->op, (int32_t)c->n, c->gamma, k) &&
              law_alias_init(&q, m->a[2]->q64, m->a[2]->view.S, m->a[2]->view.V);
    m->size = (size_t)c->n * ((size_t)k + 1) * sizeof(int32_t);
    if (m->op == OP_RESIDUAL) m->size = cells * sizeof(float);
    if (m->op == OP_SERVED) m->size = 2 * cells * sizeof(float);
    for (int32_t i = 0; ok && i < 3; i++) ok = (m->answer[i] = calloc(1, m->size)) != NULL;
    if (ok) batch_fill(&m->b, &q, &g, true);
    m->b.seed = check_seed(m->x, c, 1);
    law_alias_free(&q);
    if (!ok) result_set(r, STATE_ERROR, "out of memory");
    return ok;
}

static void same_answers(const check_case *c, const check_context *x, check_result *r)
{
    const iut_op op = rows[c->variant].op;
    turns m = {.x = x, .op = op, .told = c->V >= MANY && (op != OP_STREAM || rows[c->variant].keeps != KEEPS_P)};
    bool ok = true;
    for (int32_t i = 0; ok && i < 3; i++) ok = (m.a[i] = make_panel(c, x, i, r)) != NULL;
    if (ok && open_turns(&m, c, r)) take_turns(&m, r);
    batch_close(&m.b);
    for (int32_t i = 0; i < 3; i++) {
        panel_free(m.a[i]);
        free(m.answer[i]);
    }
}

/* -- The law of each turn ---------------------------------------------------------- */

static double figure(const check_result *of, const char *name)
{
    for (int32_t i = 0; i < of->figures; i++)
        if (strcmp(of->figure[i].name, name) == 0) return of->figure[i].value;
    return -1;
}

/* STAT-04: the variation of the turn that is furthest off. All turns see alike: their n are equal. */
static void take_variation(check_result *most, const check_result *one)
{
    if (figure(one, "tv") > figure(most, "tv")) *most = *one;
}

static void tell_variation(const check_result *most, check_result *r)
{
    static const char *const name[] = {"tv", "tv_lo", "tv_hi", "eps", "tv_power", "tv_power_any"};
    for (size_t i = 0; i < sizeof name / sizeof *name; i++)
        if (figure(most, name[i]) >= 0) result_figure(r, name[i], figure(most, name[i]));
}

/* One turn, judged as a law case whose e-value has a third of the weight. */
static bool law_turn(const check_case *c, const check_context *x, const panel *a, int32_t turn,
                     double *log_e, check_result *most, check_result *r)
{
    static const char *const name[TURNS] = {"panel A", "panel B of its shape", "panel A again"};
    check_context third = *x;
    check_result one = {0};
    law_sampler s = {0};
    third.log_e_fail += log(TURNS);
    if (law_sampler_open(&s, c, &third, a, rows[c->variant].law, c->gamma + 2, &one))
        law_judge(&s, c, &one);
    law_sampler_close(&s);
    *log_e = one.log_e;
    r->compared += one.compared;
    r->nats = fmax(r->nats, one.nats);
    r->log_p = fmin(r->log_p, one.log_p);
    take_variation(most, &one);
    result_set(r, one.state, "%s: %s%s", name[turn], one.detail,
               one.state == STATE_FAIL ? " (INV-04)" : "");
    return one.state == STATE_PASS;
}

/* The average of e-values is one, whatever they have in common; a turn not taken stands at 1.
 */
static void law_of_turns(const check_case *c, const check_context *x, check_result *r)
{
    panel *a[2] = {make_panel(c, x, 0, r), make_panel(c, x, 1, r)};
    double log_e[TURNS] = {0};
    check_result most = {0};
    bool going = a[0] && a[1];
    for (int32_t i = 0; going && i < TURNS; i++)
        going = law_turn(c, x, a[i % 2], i, &log_e[i], &most, r);
    r->log_e = st_log_mean(log_e, NULL, TURNS);
    result_figure(r, "n", (double)r->compared);
    result_figure(r, "log_e", r->log_e);
    result_figure(r, "log_p", r->log_p);
    tell_variation(&most, r);
    panel_free(a[0]);
    panel_free(a[1]);
}

static void run(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    if (rows[c->variant].by_law)
        law_of_turns(c, x, r);
    else
        same_answers(c, x, r);
}

const check check_meta_panel = {
    .name = "meta.panel",
    .clauses = "INV-04 LAY-05 STAT-01 STAT-02 STAT-04",
    .summary = "answers depend on the panel loaded last, on none before it",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
