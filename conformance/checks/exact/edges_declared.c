/* edges.declared - hostile and degenerate input against what the IUT declares about it (CLM-03,
 * VAR-04 to VAR-06): an error where it said error, the declared answer where it said one, and
 * never a crash. After every refusal the IUT must still serve a good case. What it does not
 * declare is NOT_CLAIMED. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/frame/coins.h"

enum { V = 16, STATES = 4, GAMMA = 3, BAD_STATE = 1 };

typedef struct {
    const char *name;
    void (*run)(const check_context *x, probe *m, int32_t argument, check_result *r);
    bool (*claimed)(const client *tested, char *why, size_t size);
    int32_t argument;
} edge;

/* -- Calls ------------------------------------------------------------------------- */

/* Drafts of a call: as many as the declared limit allows (VAR-10). */
static int32_t gamma_of(const check_context *x)
{
    const int32_t limit = client_claims(x->iut)->max_gamma;
    return limit > 0 && limit < GAMMA ? limit : GAMMA;
}

static iut_status call_verify(const check_context *x, iut_op op, int32_t state,
                              const int32_t *draft /* [GAMMA] */, int32_t len, int32_t *out,
                              int32_t *out_len, call_result *call)
{
    int32_t states[GAMMA + 1];
    double u[GAMMA + 2];
    for (int32_t i = 0; i <= GAMMA; i++) states[i] = state;
    for (int32_t i = 0; i < GAMMA + 2; i++) u[i] = 0.5;
    for (int32_t i = 0; i <= GAMMA; i++) out[i] = -1;
    *out_len = 0;
    const bool supplied = client_claims(x->iut)->uniforms == IUT_UNIFORMS_SUPPLIED;
    iut_verify_batch b = {.size = sizeof b,
                          .n = 1,
                          .gamma = gamma_of(x),
                          .len = &len,
                          .state = states,
                          .draft = draft,
                          .u = supplied ? u : NULL,
                          .seed = 1,
                          .out = out,
                          .out_len = out_len,
                          .coins = op == OP_VERIFY ? coins_of_verify(client_claims(x->iut)) : 0}; /* u are equal */
    *call = op == OP_VERIFY ? client_verify(x->iut, &b) : client_verify_greedy(x->iut, &b);
    return *call == CALL_REFUSED ? client_status(x->iut) : IUT_OK;
}

static call_result call_op(const check_context *x, iut_op op, int32_t state, bool of_draft)
{
    static const int32_t none[GAMMA] = {-1, -1, -1};
    const bool supplied = client_claims(x->iut)->uniforms == IUT_UNIFORMS_SUPPLIED;
    enum { BUDGET = 16 }; /* near the end of it some draft no more */
    int32_t token = -1, out[BUDGET], len = 0, accepted[BUDGET];
    float row[V];
    const double u = 0.5;
    call_result call = CALL_OK;
    iut_draw_batch draw = {sizeof draw, 1, &state, supplied ? &u : NULL, 1, 0, &token};
    iut_stream_batch stream = {sizeof stream, 1, 1, BUDGET, -1, &state, 1, out, &len, accepted};
    switch (op) {
    case OP_SERVED:
        return client_served(x->iut, 1, &state, of_draft, row);
    case OP_RESIDUAL:
        return client_residual(x->iut, 1, &state, row);
    case OP_DRAW:
        return client_draw(x->iut, &draw);
    case OP_STREAM:
        return client_stream(x->iut, &stream);
    default:
        call_verify(x, op, state, none, 0, out, &len, &call);
        return call;
    }
}

static const iut_op row_ops[] = {OP_SERVED, OP_DRAW, OP_VERIFY, OP_VERIFY_GREEDY, OP_STREAM};
enum { ROW_OPS = sizeof row_ops / sizeof *row_ops };

/* Does the IUT still work after what it was given? */
static bool still_serves(const check_context *x, const probe *good, check_result *r)
{
    if (!probe_load(good, x, r)) return false;
    for (int32_t i = 0; i < ROW_OPS; i++)
        if (check_asks(x->iut, row_ops[i]) &&
            !result_call(r, x, "a good case after an error", call_op(x, row_ops[i], 0, false)))
            return false;
    return true;
}

/* -- Rows (DIST-01) ---------------------------------------------------------------- */

static bool claimed_row(const client *tested, char *why, size_t size)
{
    bool any = false;
    for (int32_t i = 0; i < ROW_OPS; i++) any = any || check_asks(tested, row_ops[i]);
    if (client_claims(tested)->bad_row != IUT_ERROR)
        snprintf(why, size, "bad_row is not said");
    else if (!any)
        snprintf(why, size, "no operation that uses target rows is claimed");
    else
        return true;
    return false;
}

static bool claimed_row_of_draft(const client *tested, char *why, size_t size)
{
    if (check_asks(tested, OP_SERVED) ||
        (check_asks(tested, OP_STREAM) && client_claims(tested)->rule == IUT_RULE_TOKEN))
        return claimed_row(tested, why, size);
    snprintf(why, size, "neither served nor stream by the token rule is claimed");
    return false;
}

/* Rows that are bad as probabilities only: nothing that uses logits meets them. */
static bool claimed_probabilities(const client *tested, char *why, size_t size)
{
    if (client_claims(tested)->input != IUT_FROM_PROBS)
        snprintf(why, size, "it does not start from probabilities");
    else if (!check_asks(tested, OP_DRAW) && !check_asks(tested, OP_VERIFY) &&
             !check_asks(tested, OP_STREAM))
        snprintf(why, size, "no operation that uses rows of probabilities is claimed");
    else
        return claimed_row(tested, why, size);
    return false;
}

static bool claimed_probabilities_of_draft(const client *tested, char *why, size_t size)
{
    if (check_asks(tested, OP_STREAM) && client_claims(tested)->rule == IUT_RULE_TOKEN)
        return claimed_probabilities(tested, why, size);
    snprintf(why, size, "stream by the token rule is not claimed");
    return false;
}

enum {
    BAD_NAN,
    BAD_NAN_LAST,
    BAD_INF,
    BAD_INF_LAST,
    BAD_EMPTY,
    /* From here on bad as probabilities only: every finite logit is good. */
    BAD_NEGATIVE,
    BAD_ABOVE_1,
    BAD_TINY,
    OF_DRAFT = 16
};

/* A row of probabilities and, where logits can be bad in that way, the same of logits. TINY
 * entries are half a unit of the weights each, which rounds to even, to 0 (DIST-07). */
static void spoil(float *p, float *logit, int32_t kind)
{
    const int32_t at = kind == BAD_NAN_LAST || kind == BAD_INF_LAST ? V - 1 : V / 2;
    if (kind == BAD_NAN || kind == BAD_NAN_LAST) p[at] = logit[at] = NAN;
    if (kind == BAD_INF || kind == BAD_INF_LAST) p[at] = logit[at] = INFINITY;
    if (kind == BAD_NEGATIVE) p[at] = -0x1p-24f;
    if (kind == BAD_ABOVE_1) p[at] = 0x1.000002p0f;
    for (int32_t t = 0; t < V && kind == BAD_TINY; t++) p[t] = 0x1p-45f;
    for (int32_t t = 0; t < V && kind == BAD_EMPTY; t++) {
        p[t] = 0.0f;
        logit[t] = -INFINITY;
    }
}

/* Which calls use the bad row? Of the target all; of the draft, `served` and what drafts from
 * it. `served` and `verify_greedy` use logits always. */
static bool uses(const check_context *x, iut_op op, int32_t kind, bool of_draft)
{
    if (!check_asks(x->iut, op)) return false;
    if (kind >= BAD_NEGATIVE && (op == OP_SERVED || op == OP_VERIFY_GREEDY)) return false;
    return !of_draft || op == OP_SERVED ||
           (op == OP_STREAM && client_claims(x->iut)->rule == IUT_RULE_TOKEN);
}

/* Either the panel is refused, or everything that uses its bad row is. */
static void run_row(const check_context *x, probe *m, int32_t argument, check_result *r)
{
    const bool of_draft = argument >= OF_DRAFT;
    float *p = of_draft ? probe_q(m, BAD_STATE) : probe_p(m, BAD_STATE);
    float *logit = (of_draft ? m->q_logit : m->p_logit) + BAD_STATE * V;
    spoil(p, logit, argument % OF_DRAFT);
    const call_result load = client_panel(x->iut, &m->view);
    if (load != CALL_OK) result_refused(r, x, "panel with a bad row", load);
    for (int32_t i = 0; load == CALL_OK && i < ROW_OPS && r->state == STATE_PASS; i++)
        if (uses(x, row_ops[i], argument % OF_DRAFT, of_draft))
            result_refused(r, x, iut_op_name(row_ops[i]), call_op(x, row_ops[i], BAD_STATE, of_draft));
}

/* -- Parameters (DIST-03) ---------------------------------------------------------- */

static bool claimed_parameters(const client *tested, char *why, size_t size)
{
    return check_has(tested, OP_SERVED, why, size);
}

static void run_parameters(const check_context *x, probe *m, int32_t of_draft, check_result *r)
{
    static const iut_sampling bad[] = {
        {-0.5f, 0, 1.0f, 0.0f}, {NAN, 0, 1.0f, 0.0f},   {INFINITY, 0, 1.0f, 0.0f},
        {1.0f, -1, 1.0f, 0.0f}, {1.0f, 0, 0.0f, 0.0f},  {1.0f, 0, 1.5f, 0.0f},
        {1.0f, 0, NAN, 0.0f},   {1.0f, 0, 1.0f, -0.1f}, {1.0f, 0, 1.0f, 1.1f},
        {1.0f, 0, 1.0f, NAN},
    };
    iut_sampling *s = of_draft ? &m->view.draft : &m->view.target;
    const iut_sampling good = *s;
    for (size_t i = 0; i < sizeof bad / sizeof *bad && r->state == STATE_PASS; i++) {
        char what[120];
        float row[V];
        const int32_t state = 0;
        snprintf(what, sizeof what, "T %g, top_k %d, top_p %g, min_p %g",
                 (double)bad[i].temperature, (int)bad[i].top_k, (double)bad[i].top_p,
                 (double)bad[i].min_p);
        *s = bad[i];
        call_result call = client_panel(x->iut, &m->view);
        if (call == CALL_OK) call = client_served(x->iut, 1, &state, of_draft, row);
        result_refused(r, x, what, call);
        *s = good;
    }
}

/* -- Drafts (ACC-07, ACC-08) ------------------------------------------------------- */

static bool claimed_draft(const client *tested, char *why, size_t size)
{
    const iut_claims *k = client_claims(tested);
    if (!check_asks(tested, OP_VERIFY) && !check_asks(tested, OP_VERIFY_GREEDY))
        snprintf(why, size, "neither %s nor %s is claimed", iut_op_name(OP_VERIFY),
                 iut_op_name(OP_VERIFY_GREEDY));
    else if (k->bad_draft != IUT_ERROR && k->bad_draft != IUT_REJECT)
        snprintf(why, size, "bad_draft is not said");
    else
        return true;
    return false;
}

/* At most the drafts before `place` may stand, and the last token comes from the row. */
static void ends_at(const check_context *x, const char *what, iut_op op, int32_t place,
                    call_result call, const int32_t *out, int32_t out_len, check_result *r)
{
    if (!result_call(r, x, what, call)) return;
    r->compared++;
    bool fine = out_len >= 1 && out_len <= place + 1;
    for (int32_t j = 0; j <= GAMMA; j++)
        fine = fine && (j < out_len ? out[j] >= 0 && out[j] < V : out[j] == -1);
    char text[100] = "";
    replay_list(text, sizeof text, "got", out, GAMMA + 1);
    if (!fine)
        result_set(r, STATE_FAIL, "%s: %s should end the drafts at place %d: out_len %d, %s",
                   iut_op_name(op), what, (int)place, (int)out_len, text);
}

static void run_draft(const check_context *x, probe *m, int32_t id, check_result *r)
{
    const bool error = client_claims(x->iut)->bad_draft == IUT_ERROR && id != -1;
    const iut_op ops[] = {OP_VERIFY, OP_VERIFY_GREEDY};
    const int32_t gamma = gamma_of(x);
    if (!probe_load(m, x, r)) return;
    for (int32_t i = 0; i < 2; i++)
        for (int32_t place = 0; place < gamma && check_asks(x->iut, ops[i]); place++) {
            int32_t draft[GAMMA] = {0, 0, 0}, out[GAMMA + 1], out_len; /* 0: the likeliest */
            call_result call;
            char what[60];
            draft[place] = id;
            if (id == -1 && place + 1 < gamma) draft[place + 1] = INT32_MAX; /* not examined */
            snprintf(what, sizeof what, "id %d at place %d", (int)id, (int)place);
            call_verify(x, ops[i], 0, draft, gamma, out, &out_len, &call);
            if (r->state != STATE_PASS) return;
            if (error)
                result_refused(r, x, what, call);
            else
                ends_at(x, what, ops[i], place, call, out, out_len, r);
        }
}

/* -- q = 0 (VAR-04) and the empty residual (VAR-06) -------------------------------- */

static bool claimed_q_zero(const client *tested, char *why, size_t size)
{
    const iut_claims *k = client_claims(tested);
    if (!check_has(tested, OP_VERIFY, why, size)) return false;
    if (k->rule != IUT_RULE_TOKEN)
        snprintf(why, size, "rule is not token");
    else if (k->q_zero == 0)
        snprintf(why, size, "q_zero is not said");
    else if (k->input == IUT_FROM_LOGITS && k->arithmetic != IUT_ARITH_CANONICAL &&
             k->arithmetic != IUT_ARITH_F64 && k->arithmetic != IUT_ARITH_F32)
        snprintf(why, size, "arithmetic is none of canonical, F64, F32");
    else
        return true;
    return false;
}

/* Every token: p > 0 = q. With one draft, two tokens tell an acceptance. */
static void run_q_zero(const check_context *x, probe *m, int32_t unused, check_result *r)
{
    const uint8_t policy = client_claims(x->iut)->q_zero;
    (void)unused;
    for (int32_t s = 0; s < STATES; s++) probe_one_hot(probe_q(m, s), V, s);
    if (!probe_serve(m, x, r)) return;
    for (int32_t t = 0; t < V && r->state == STATE_PASS; t++) {
        int32_t draft[GAMMA] = {t, -1, -1}, out[GAMMA + 1], out_len;
        call_result call;
        call_verify(x, OP_VERIFY, t < STATES ? (t + 1) % STATES : 0, draft, 1, out, &out_len,
                    &call);
        char what[60];
        snprintf(what, sizeof what, "draft %d with q = 0", (int)t);
        if (!result_call(r, x, what, call)) return;
        r->compared++;
        const bool stands = out_len == 2 && out[0] == t;
        if (stands != (policy == IUT_ACCEPT))
            result_set(r, STATE_FAIL, "%s and p = %g: %s, though the declaration is %s", what,
                       (double)probe_p(m, 0)[t], stands ? "accepted" : "rejected",
                       policy == IUT_ACCEPT ? "accept" : "reject");
    }
}

static bool claimed_empty(const client *tested, char *why, size_t size)
{
    const iut_claims *k = client_claims(tested);
    if (!check_has(tested, OP_VERIFY, why, size)) return false;
    if (k->rule != IUT_RULE_TOKEN)
        snprintf(why, size, "rule is not token");
    else if (k->input != IUT_FROM_PROBS)
        snprintf(why, size, "it serves its rows itself: the residual cannot be made empty");
    else if (k->empty == 0)
        snprintf(why, size, "empty is not said");
    else
        return true;
    return false;
}

/* p = q but for one token with p = 0 < q, which is drafted: it is rejected whatever the
 * uniform, and nothing is left. Mid-way through p's law stands token 7: with supplied uniforms
 * it must come. */
static void run_empty(const check_context *x, probe *m, int32_t unused, check_result *r)
{
    const iut_claims *k = client_claims(x->iut);
    const bool replays = k->uniforms == IUT_UNIFORMS_SUPPLIED && k->map == IUT_MAP_CDF_BY_ID;
    (void)unused;
    for (int32_t s = 0; s < STATES; s++) {
        float *p = probe_p(m, s), *q = probe_q(m, s);
        for (int32_t t = 0; t < V; t++) q[t] = p[t] = t == 7 ? 0.5f : t % 2 ? 0.0625f : 0.0f;
        q[1] = q[3] = p[1] = p[3] = 0.03125f;
        q[2 * s] = 0x1p-16f;
        q[9] += 0.0625f - 0x1p-16f;
        p[9] = q[9];
    }
    if (!probe_serve(m, x, r)) return;
    for (int32_t s = 0; s < STATES && r->state == STATE_PASS; s++) {
        int32_t draft[GAMMA] = {2 * s, -1, -1}, out[GAMMA + 1], out_len;
        call_result call;
        call_verify(x, OP_VERIFY, s, draft, 1, out, &out_len, &call);
        if (!result_call(r, x, "verify with an empty residual", call)) return;
        r->compared++;
        const bool emits =
            out_len == 1 && out[0] >= 0 && out[0] < V && probe_p(m, s)[out[0]] > 0;
        if (!emits)
            result_set(
                r, STATE_FAIL,
                "row %d, draft %d with p = 0, else p = q: out_len %d, token %d; one token "
                "with p > 0 is due (RES-03)",
                (int)s, (int)draft[0], (int)out_len, (int)out[0]);
        else if (replays && k->empty == IUT_EMPTY_FROM_P && out[0] != 7)
            result_set(r, STATE_FAIL,
                       "row %d, empty residual, u = 0.5: token %d, but p gives 7 (RES-03)",
                       (int)s, (int)out[0]);
    }
}

/* -- The check --------------------------------------------------------------------- */

static const edge edges[] = {
    {"row-nan", run_row, claimed_row, BAD_NAN},
    {"row-nan-last", run_row, claimed_row, BAD_NAN_LAST},
    {"row-inf", run_row, claimed_row, BAD_INF},
    {"row-inf-last", run_row, claimed_row, BAD_INF_LAST},
    {"row-all-masked", run_row, claimed_row, BAD_EMPTY},
    {"row-negative", run_row, claimed_probabilities, BAD_NEGATIVE},
    {"row-above-1", run_row, claimed_probabilities, BAD_ABOVE_1},
    {"row-weightless", run_row, claimed_probabilities, BAD_TINY},
    {"draft-row-nan", run_row, claimed_row_of_draft, OF_DRAFT + BAD_NAN},
    {"draft-row-inf", run_row, claimed_row_of_draft, OF_DRAFT + BAD_INF},
    {"draft-row-all-masked", run_row, claimed_row_of_draft, OF_DRAFT + BAD_EMPTY},
    {"draft-row-negative", run_row, claimed_probabilities_of_draft, OF_DRAFT + BAD_NEGATIVE},
    {"draft-row-above-1", run_row, claimed_probabilities_of_draft, OF_DRAFT + BAD_ABOVE_1},
    {"draft-row-weightless", run_row, claimed_probabilities_of_draft, OF_DRAFT + BAD_TINY},
    {"parameters-target", run_parameters, claimed_parameters, 0},
    {"parameters-draft", run_parameters, claimed_parameters, 1},
    {"draft-minus-1", run_draft, claimed_draft, -1},
    {"draft-minus-2", run_draft, claimed_draft, -2},
    {"draft-V", run_draft, claimed_draft, V},
    {"draft-largest", run_draft, claimed_draft, INT32_MAX},
    {"draft-smallest", run_draft, claimed_draft, INT32_MIN},
    {"q-zero", run_q_zero, claimed_q_zero, 0},
    {"empty-residual", run_empty, claimed_empty, 0},
};

static void plan(check_plan *p, check_level level)
{
    (void)level;
    for (int32_t i = 0; i < (int32_t)(sizeof edges / sizeof *edges); i++) {
        check_case *c = plan_case(p, &check_edges_declared, "%s", edges[i].name);
        c->V = V;
        c->cost = cost_of_rows(100, c->V);
        c->gamma = GAMMA;
        c->variant = i;
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return replay_fits(c, tested, why, size) && edges[c->variant].claimed(tested, why, size);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    probe *m = probe_open(STATES, V), *good = probe_general(STATES, V, PROBE_DENSE, &rng);
    for (int32_t s = 0; m && s < STATES; s++) {
        for (int32_t t = 0; t < V; t++) /* token 0 is the argmax and always stands */
            probe_p(m, s)[t] = probe_q(m, s)[t] = t ? 1.0f / 32 : 17.0f / 32;
    }
    if (probe_serve(m, x, r) && probe_serve(good, x, r)) {
        edges[c->variant].run(x, m, edges[c->variant].argument, r);
        if (r->state == STATE_PASS) still_serves(x, good, r);
    }
    result_set(r, STATE_PASS, "%lld answers as declared, and it still serves",
               (long long)r->compared);
    probe_close(m);
    probe_close(good);
}

const check check_edges_declared = {
    .name = "edges.declared",
    .clauses = "ACC-03 ACC-07 ACC-08 DIST-01 DIST-03 RES-03 CLM-03",
    .summary = "hostile and degenerate input is met as declared",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
