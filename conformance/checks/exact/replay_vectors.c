/* replay.vectors - the golden vectors that the claims allow, a case for each group (LAY-02). A
 * vector that is missing or malformed is an ERROR of the suite (STA-03).
 *
 * An answer is right if it is the expected one, or that of the alternative which the IUT
 * declares. For arithmetic with a tolerance another answer is right if the oracle finds it
 * within tau, unless the group is exact. What the IUT does not declare is not judged. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/exact/replay_vectors.h"
#include "conformance/checks/exact/served_values.h"
#include "conformance/checks/frame/coins.h"
#include "conformance/oracle/law/chain.h"

typedef struct {
    const check_context *x;
    const iut_claims *claims;
    const vector_group *g;
    check_result *r;
    int64_t not_judged, grey;
} replay;

/* -- Plan and claims --------------------------------------------------------------- */

static bool has_operation(vector_kind kind)
{
    return kind >= VECTOR_SERVED;
}

static void plan(check_plan *p, check_level level)
{
    (void)level;
    for (int32_t i = 0; i < vector_list_count; i++) {
        const vector_listed *listed = &vector_list[i];
        if (!has_operation(listed->kind)) continue;
        check_case *c = plan_case(p, &check_replay_vectors, "%s", listed->id);
        c->V = listed->V;
        c->cost = cost_of_rows(1000, c->V);
        c->gamma = listed->gamma;
        c->variant = i;
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    static const struct {
        iut_op op;
        uint8_t rule;
    } need[VECTOR_KINDS] = {[VECTOR_SERVED] = {OP_SERVED, 0},
                            [VECTOR_DRAW] = {OP_DRAW, 0},
                            [VECTOR_RESIDUAL] = {OP_RESIDUAL, 0},
                            [VECTOR_CHAIN] = {OP_VERIFY, IUT_RULE_TOKEN},
                            [VECTOR_MATCH] = {OP_VERIFY, IUT_RULE_MATCH},
                            [VECTOR_GREEDY] = {OP_VERIFY_GREEDY, 0}};
    const vector_kind kind = vector_list[c->variant].kind;
    const iut_claims *k = client_claims(tested);
    const bool draws = kind == VECTOR_DRAW || kind == VECTOR_CHAIN || kind == VECTOR_MATCH;
    const char *missing = NULL;
    if (!client_has(tested, need[kind].op))
        missing = "is not claimed";
    else if (need[kind].rule && k->rule != need[kind].rule)
        missing = "follows another rule";
    else if (kind == VECTOR_CHAIN && coins_race_alone(k, k->coins))
        missing = "ends a step with a race";
    else if (draws && replay_coarse_coins(k))
        missing = "has uniforms of fewer bits than those supplied";
    else if ((draws || kind == VECTOR_RESIDUAL) && k->input != IUT_FROM_PROBS)
        missing = "does not start from probabilities";
    else if (draws && k->map != IUT_MAP_CDF_BY_ID)
        missing = "does not map CDF by id";
    else if (draws && k->uniforms != IUT_UNIFORMS_SUPPLIED &&
             k->uniforms != IUT_UNIFORMS_SEEDED)
        missing = "uses uniforms of its own";
    else if (k->arithmetic == 0 || (draws && k->arithmetic > IUT_ARITH_F32))
        missing = "is of no arithmetic that fixes its answers";
    if (!missing) return replay_fits_whole(c, tested, why, size);
    snprintf(why, size, "%s %s", iut_op_name(need[kind].op), missing);
    return false;
}

/* -- Answers ----------------------------------------------------------------------- */

/* `policy` says which alternative a test has, if any. */
const vector_answer *replay_due(const iut_claims *claims, const vector_test *t)
{
    const struct {
        const char *policy;
        uint8_t declared, alternative;
    } policies[] = {{"q_zero=reject", claims->q_zero, IUT_REJECT},
                    {"bad_draft=ends", claims->bad_draft, IUT_REJECT},
                    {"empty=other", claims->empty, IUT_EMPTY_OTHER}};
    const char *error = t->expected.error;
    if (error && !strcmp(error, "row") && claims->bad_row != IUT_ERROR) return NULL;
    if (error && !strcmp(error, "draft") && claims->bad_draft == 0) return NULL;
    for (int32_t i = 0; i < 3; i++) {
        const vector_answer *other = vector_alternative(t, policies[i].policy);
        if (!other) continue;
        if (policies[i].declared == policies[i].alternative) return other;
        if (policies[i].declared == 0) return NULL;
    }
    return &t->expected;
}

static void wrong(replay *k, const vector_test *t, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void wrong(replay *k, const vector_test *t, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    result_set(k->r, STATE_FAIL, "vector %s (%s): %s", t->id, t->clauses, text);
}

/* An error is due: BAD_INPUT, from the panel or from the call. */
static void judge_error(replay *k, const vector_test *t, call_result call, const char *about)
{
    k->r->compared++;
    if (call == CALL_REFUSED && client_status(k->x->iut) == IUT_BAD_INPUT) return;
    if (call == CALL_OK || call == CALL_REFUSED)
        wrong(k, t, "an error about the %s is due; it %s", about,
              call == CALL_OK ? "answered" : client_text(k->x->iut));
    else
        result_call(k->r, k->x, t->id, call);
}

static double tolerance(const replay *k)
{
    return k->g->exact ? 0.0 : replay_tau(k->claims, k->g->V);
}

/* -- Panels: the rows of a group are states ---------------------------------------- */

static probe *panel_of(const vector_group *g)
{
    probe *m = probe_open(g->rows > g->gamma ? g->rows : g->gamma + 1, g->V);
    const size_t bytes = (size_t)g->rows * (size_t)g->V * sizeof(float);
    if (!m) return NULL;
    if (g->kind == VECTOR_SERVED || g->kind == VECTOR_GREEDY) {
        memcpy(m->p_logit, g->p, bytes);
        for (int32_t s = 0; s < g->rows; s++) {
            probe_one_hot(probe_p(m, s), g->V, 0); /* not looked at */
            probe_one_hot(probe_q(m, s), g->V, 0);
        }
        return m;
    }
    memcpy(m->p, g->p, bytes);
    memcpy(m->q, g->q ? g->q : g->p, bytes);
    return probe_finish(m, NULL) ? m : (probe_close(m), NULL);
}

/* -- served, residual, draw -------------------------------------------------------- */

/* Logits are handed over a test at a time, for a bad row may be refused with its panel: state i
 * is the test's i-th row. */
static call_result load_rows(const replay *k, const probe *m, const vector_test *t, int32_t n,
                             iut_sampling target, float *logit /* [n][V] */)
{
    static const int32_t next[4 * (STEPS_GAMMA + 1)]; /* every state is followed by state 0 */
    const size_t V = (size_t)k->g->V;
    iut_panel panel = m->view;
    for (int32_t i = 0; i < n; i++)
        memcpy(logit + (size_t)i * V, m->p_logit + (size_t)t->row[i] * V, V * sizeof *logit);
    panel.S = n;
    panel.next = next;
    panel.p_logit = panel.q_logit = logit;
    panel.target = target;
    return client_panel(k->x->iut, &panel);
}

/* Then the vector's own answer is not due (DIST-15, DIST-16). */
static bool serves_otherwise(const iut_claims *claims)
{
    return claims->order || claims->top_k_ties == IUT_TIES_KEPT;
}

static void run_served(replay *k, const probe *m, const vector_test *t, float *got, double *below)
{
    const int32_t V = k->g->V, zero = 0;
    const vector_answer *a = replay_due(k->claims, t);
    const iut_sampling s = {t->temperature, t->top_k, t->top_p, t->min_p};
    const oracle_sampling o = {t->temperature, t->top_k, t->top_p, t->min_p};
    const oracle_filters how = check_filters(k->x->iut);
    float *logit = m->p_logit + (int64_t)t->row[0] * V, *scratch = got + V, *want = got + 2 * V;
    double worst = 0.0;
    if (!a || (!a->error && !served_judged(k->x->iut, logit, V, &s, below))) {
        k->not_judged++;
        return;
    }
    call_result call = load_rows(k, m, t, 1, s, scratch);
    if (call == CALL_OK) call = client_served(k->x->iut, 1, &zero, 0, got);
    if (a->error) {
        judge_error(k, t, call, a->error);
        return;
    }
    if (!result_call(k->r, k->x, "served", call)) return;
    k->r->compared++;
    memcpy(want, a->bits, (size_t)V * sizeof *want);
    if (serves_otherwise(k->claims) && oracle_serve(logit, V, &o, &how, want, NULL, 0) != ORACLE_OK) {
        result_set(k->r, STATE_ERROR, "the oracle refused the row of %s", t->id);
        return;
    }
    const int32_t at = served_differs(k->claims, logit, V, &s, want, got, &worst);
    if (at >= 0)
        wrong(k, t, "token %d: expected %.9g (%a), got %.9g (%a)", (int)at, (double)want[at],
              (double)want[at], (double)got[at], (double)got[at]);
}

static void run_residual(replay *k, const probe *m, const vector_test *t, float *got)
{
    const int32_t V = k->g->V;
    const float *p = probe_p(m, t->row[0]), *q = probe_q(m, t->row[0]);
    float *want = got + V;
    if (!result_call(k->r, k->x, "residual", client_residual(k->x->iut, 1, t->row, got)))
        return;
    k->r->compared++;
    memcpy(want, t->expected.bits, (size_t)V * sizeof *want);
    for (int32_t i = 0; i < V; i++) {
        const double off = fabs((double)got[i] - (double)want[i]);
        if (off <= residual_bound(k->claims, V, p[i], q[i])) continue;
        wrong(k, t, "token %d: expected %.9g, got %.9g", (int)i, (double)want[i],
              (double)got[i]);
        return;
    }
}

static void run_draw(replay *k, const probe *m, const vector_test *t)
{
    const bool seeded = k->g->uniforms == UNIFORMS_SEED;
    int32_t token = -1;
    char why[200] = "";
    iut_draw_batch b = {sizeof b, 1,           t->row, seeded ? NULL : t->u,
                        t->seed,  t->position, &token};
    if (!result_call(k->r, k->x, "draw", client_draw(k->x->iut, &b))) return;
    k->r->compared++;
    if (token == t->expected.tokens[0]) return;
    if (!seeded && oracle_draw_judge(probe_p(m, t->row[0]), m->V, oracle_unit_of(t->u[0]),
                                     token, tolerance(k), why, sizeof why) == JUDGE_GREY)
        k->grey++;
    else
        wrong(k, t, "expected %d, got %d", (int)t->expected.tokens[0], (int)token);
}

/* -- chain, match, greedy ---------------------------------------------------------- */

static bool equals(const vector_answer *a, const steps *s, const probe *m, const vector_test *t)
{
    const int32_t n = a->count + a->then_any, *out = steps_out(s, 0);
    if (s->out_len[0] != n || memcmp(out, a->tokens, (size_t)a->count * sizeof *out))
        return false;
    for (int32_t j = n; j <= s->gamma; j++)
        if (out[j] != -1) return false;
    const int32_t last = out[n - 1];
    return !a->then_any || (last >= 0 && last < m->V && probe_p(m, t->row[n - 1])[last] > 0.0f);
}

/* Would uniforms within tau, or the declared choice among equal logits, give this answer? */
static bool tolerated(const replay *k, const steps *s, const probe *m, const vector_test *t)
{
    const float *p[STEPS_GAMMA + 1], *q[STEPS_GAMMA + 1];
    const int32_t *out = steps_out(s, 0), n = s->out_len[0], V = m->V;
    const unsigned flags = replay_flags(k->claims);
    char why[200];
    for (int32_t j = 0; j <= t->len; j++) {
        p[j] = (k->g->kind == VECTOR_GREEDY ? m->p_logit : m->p) + (int64_t)t->row[j] * V;
        q[j] = probe_q(m, t->row[j]);
    }
    if (k->g->kind == VECTOR_GREEDY)
        return k->claims->tie > IUT_TIE_FIRST &&
               oracle_greedy_judge(p, t->draft, t->len, V, k->claims->tie, flags, out, n, why,
                                   sizeof why) == JUDGE_EXACT;
    if (k->g->uniforms != UNIFORMS_UNITS || tolerance(k) == 0.0) return false;
    if (k->g->kind == VECTOR_MATCH)
        return oracle_match_judge(p, t->draft, t->len, V, t->u, flags, out, n, tolerance(k),
                                  why, sizeof why) == JUDGE_GREY;
    const double *last = steps_u(s, 0) + s->gamma;
    const oracle_uniforms u = {t->u, oracle_unit_of(last[0]), oracle_unit_of(last[1]), NULL};
    return oracle_chain_judge(p, q, t->draft, t->len, V, &u, flags, out, n, tolerance(k), why,
                              sizeof why) == JUDGE_GREY;
}

/* The vector's uniforms. Where one coin ends a step, it is that of the two which the vector's answer rests on. */
static void take_uniforms(const replay *k, const vector_test *t, const vector_answer *a, steps *s)
{
    const bool one = !(CLAIMED(k->claims, coins) & IUT_COINS_TWO);
    const int32_t drafts = oracle_draft_count(t->draft, t->len, k->g->V, replay_flags(k->claims));
    double *u = steps_u(s, 0), *last = u + s->gamma;
    if (k->g->kind == VECTOR_MATCH) {
        memcpy(u, t->u, (size_t)(t->len + 1) * sizeof *u);
        return;
    }
    memcpy(u, t->u, (size_t)t->len * sizeof *u);
    last[0] = t->u[t->len + (one && a->count > drafts)];
    last[1] = t->u[t->len + 1];
}

static void run_steps(replay *k, const probe *m, const vector_test *t, steps *s, float *rows)
{
    static const iut_sampling greedy = {0.0f, 0, 1.0f, 0.0f};
    const vector_answer *a = replay_due(k->claims, t);
    const bool by_logits = k->g->kind == VECTOR_GREEDY;
    call_result call = CALL_OK;
    if (!a || (k->g->kind == VECTOR_GREEDY && k->claims->tie == 0)) {
        k->not_judged++;
        return;
    }
    s->n = 0;
    steps_add(s, t->len);
    for (int32_t j = 0; j <= t->len; j++) s->state[j] = by_logits ? j : t->row[j];
    if (t->len) memcpy(s->draft, t->draft, (size_t)t->len * sizeof *s->draft);
    if (k->g->uniforms == UNIFORMS_UNITS && !by_logits) take_uniforms(k, t, a, s);
    iut_verify_batch b = steps_batch(s, k->x, t->seed, t->position);
    if (by_logits) call = load_rows(k, m, t, t->len + 1, greedy, rows);
    if (call == CALL_OK)
        call = by_logits ? client_verify_greedy(k->x->iut, &b) : client_verify(k->x->iut, &b);
    if (a->error) {
        judge_error(k, t, call, a->error);
        return;
    }
    if (!result_call(k->r, k->x, "verify", call)) return;
    k->r->compared++;
    if (equals(a, s, m, t)) return;
    if (tolerated(k, s, m, t)) {
        k->grey++;
        return;
    }
    char text[300] = "";
    replay_list(text, sizeof text, "expected", a->tokens, a->count);
    replay_list(text, sizeof text, ", got", steps_out(s, 0), s->gamma + 1);
    wrong(k, t, "%s%s, out_len %d", text, a->then_any ? " (expected one more, any)" : "",
          (int)s->out_len[0]);
}

/* -- The check --------------------------------------------------------------------- */

/* Do the group's uniforms come from where the IUT takes them? */
static const char *other_uniforms(const replay *k)
{
    const vector_kind kind = k->g->kind;
    if (kind == VECTOR_SERVED || kind == VECTOR_RESIDUAL || kind == VECTOR_GREEDY) return NULL;
    if (k->g->uniforms == UNIFORMS_WORDS) return "uniforms of 64 bits cannot be supplied";
    if (k->g->uniforms == UNIFORMS_UNITS)
        return k->claims->uniforms == IUT_UNIFORMS_SUPPLIED ? NULL
                                                            : "uniforms are not supplied";
    return k->claims->uniforms == IUT_UNIFORMS_SEEDED &&
                   k->claims->arithmetic == IUT_ARITH_CANONICAL
               ? NULL
               : "canonical seeded uniforms are not claimed";
}

static void run_tests(replay *k, const probe *m)
{
    const size_t height = k->g->gamma < 2 ? 3 : (size_t)k->g->gamma + 1;
    float *rows = malloc(height * (size_t)k->g->V * sizeof *rows);
    double *below = malloc((size_t)k->g->V * sizeof *below);
    steps s;
    bool going = steps_open(&s, k->g->gamma, 1, k->r) && rows && below;
    if (!rows || !below) result_set(k->r, STATE_ERROR, "the suite is short of memory");
    if (going && k->g->kind != VECTOR_SERVED && k->g->kind != VECTOR_GREEDY)
        going = probe_load(m, k->x, k->r);
    for (int32_t i = 0; going && i < k->g->tests && k->r->state == STATE_PASS; i++) {
        const vector_test *t = &k->g->test[i];
        if (k->g->kind == VECTOR_SERVED)
            run_served(k, m, t, rows, below);
        else if (k->g->kind == VECTOR_RESIDUAL)
            run_residual(k, m, t, rows);
        else if (k->g->kind == VECTOR_DRAW)
            run_draw(k, m, t);
        else
            run_steps(k, m, t, &s, rows);
    }
    steps_close(&s);
    free(rows);
    free(below);
}

void replay_group(const check_context *x, const vector_group *g, check_result *r)
{
    replay k = {x, client_claims(x->iut), g, r, 0, 0};
    const char *other = other_uniforms(&k);
    if (other) {
        result_set(r, STATE_NOT_CLAIMED, "%s", other);
        return;
    }
    probe *m = panel_of(g);
    if (m)
        run_tests(&k, m);
    else
        result_set(r, STATE_ERROR, "the suite is short of memory");
    result_figure(r, "grey", (double)k.grey);
    result_figure(r, "not_judged", (double)k.not_judged);
    if (r->state == STATE_PASS && r->compared == 0)
        result_set(r, STATE_NOT_CLAIMED, "what its tests turn on is not declared");
    result_set(r, STATE_PASS,
               "%lld vectors, %lld within tau, %lld left open by the declarations",
               (long long)r->compared, (long long)k.grey, (long long)k.not_judged);
    probe_close(m);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    char why[400] = "no folder of vectors was given; name one with --vectors";
    const vector_set *set = x->vectors ? vectors_once(x->vectors, why, sizeof why) : NULL;
    const vector_group *g = set ? vectors_find(set, vector_list[c->variant].id) : NULL;
    if (g)
        replay_group(x, g, r);
    else
        result_set(r, STATE_ERROR, "%s", set ? "the group is missing from its file" : why);
}

const check check_replay_vectors = {
    .name = "replay.vectors",
    .clauses =
        "ACC-01 ACC-02 ACC-03 ACC-04 ACC-05 ACC-06 ACC-07 ACC-08 RES-01 RES-02 RES-03 RES-04 "
        "BON-01 BON-02 BON-03 BON-04 MAT-01 MAT-02 GRD-01 GRD-02 RNG-01 RNG-02 RNG-03 RNG-05 "
        "RNG-06 DRAW-01 DRAW-02 DRAW-03 DRAW-04 DRAW-05 DRAW-06 DIST-01 DIST-02 DIST-03 "
        "DIST-04 "
        "DIST-05 DIST-06 DIST-07 DIST-08 DIST-09 DIST-10 DIST-11 DIST-12 DIST-13 LAY-02 "
        "STA-03",
    .summary = "the golden vectors that the claims allow",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
