/* replay.c - see replay.h. */
#include "conformance/checks/exact/replay.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/coins.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/oracle/law/chain.h"

bool steps_open(steps *s, int32_t gamma, int32_t room, check_result *r)
{
    const size_t cases = (size_t)room, width = (size_t)gamma + 1;
    *s = (steps){.gamma = gamma, .room = room};
    s->len = malloc(cases * sizeof *s->len);
    s->state = malloc(cases * width * sizeof *s->state);
    s->draft = malloc(cases * width * sizeof *s->draft); /* one too many: gamma may be 0 */
    s->u = malloc(cases * (width + 1) * sizeof *s->u);
    s->out = malloc(cases * width * sizeof *s->out);
    s->out_len = malloc(cases * sizeof *s->out_len);
    if (s->len && s->state && s->draft && s->u && s->out && s->out_len) return true;
    result_set(r, STATE_ERROR, "the suite has no memory for %d cases", (int)room);
    return false;
}

void steps_close(steps *s)
{
    free(s->len);
    free(s->state);
    free(s->draft);
    free(s->u);
    free(s->out);
    free(s->out_len);
    free(s->noise);
    memset(s, 0, sizeof *s);
}

int32_t steps_add(steps *s, int32_t len)
{
    if (s->n == s->room) { /* the case is lost, the check will say so */
        s->overflow = true;
        s->n--;
    }
    const int32_t i = s->n++;
    s->len[i] = len;
    for (int32_t j = 0; j <= s->gamma; j++) steps_state(s, i)[j] = 0;
    for (int32_t j = 0; j < s->gamma; j++) steps_draft(s, i)[j] = -1;
    for (int32_t j = 0; j < s->gamma + 2; j++) steps_u(s, i)[j] = 0.0;
    return i;
}

void steps_beyond(steps *s, int32_t i, const probe *m)
{
    for (int32_t j = s->len[i]; j < s->gamma; j++) {
        steps_draft(s, i)[j] = probe_draw(m->cum_q + (int64_t)steps_state(s, i)[j] * m->V, m->V, &s->stale);
        steps_state(s, i)[j + 1] = probe_below(&s->stale, m->S);
    }
}

void steps_add_one(steps *s, int32_t state, int32_t draft, double accept, double residual,
                   double bonus)
{
    const int32_t i = steps_add(s, draft >= 0);
    steps_state(s, i)[0] = steps_state(s, i)[1] = state;
    steps_draft(s, i)[0] = draft;
    steps_u(s, i)[0] = accept;
    steps_u(s, i)[s->gamma] = residual;
    steps_u(s, i)[s->gamma + 1] = bonus;
}

/* Cases a call: few enough for an IUT of a millisecond a case of 32,000 tokens. */
static int32_t call_size(int32_t V)
{
    const int32_t n = (1 << 22) / V;
    return n < 64 ? 64 : n > 4096 ? 4096 : n;
}

/* Cases from..from+n-1, as the IUT gets them. */
static iut_verify_batch batch_of(const steps *s, const check_context *x, int32_t from,
                                 int32_t n)
{
    const iut_claims *claims = client_claims(x->iut);
    const bool supplied = claims->uniforms == IUT_UNIFORMS_SUPPLIED;
    return (iut_verify_batch){.size = sizeof(iut_verify_batch),
                              .n = n,
                              .gamma = s->gamma,
                              .len = s->len + from,
                              .state = steps_state(s, from),
                              .draft = steps_draft(s, from),
                              .u = supplied ? steps_u(s, from) : NULL,
                              .out = steps_out(s, from),
                              .out_len = s->out_len + from,
                              .coins = s->coins ? s->coins : coins_of_verify(claims)};
}

/* One uniform for both (CLM-20). */
static void join_coins(steps *s)
{
    for (int32_t i = 0; i < s->n; i++) steps_u(s, i)[s->gamma + 1] = steps_u(s, i)[s->gamma];
}

/* The cases of a batch from `from` on. */
static bool ask(iut_verify_batch *batch, const steps *s, const check_context *x, int32_t V, int32_t from,
                check_result *r)
{
    float *noise = batch->coins == IUT_COINS_RACE ? coins_noises(s->race, from, batch->n, V) : NULL;
    if (batch->coins == IUT_COINS_RACE && !noise) {
        result_set(r, STATE_ERROR, "the suite has no memory for %d races over %d tokens", (int)batch->n, (int)V);
        return false;
    }
    batch->noise = noise;
    const bool answered = result_call(r, x, iut_op_name(OP_VERIFY), client_verify(x->iut, batch));
    free(noise);
    return answered;
}

/* Greedy decisions have no coins. */
static bool ask_greedy(iut_verify_batch *batch, const check_context *x, check_result *r)
{
    batch->coins = 0;
    return result_call(r, x, iut_op_name(OP_VERIFY_GREEDY), client_verify_greedy(x->iut, batch));
}

iut_verify_batch steps_batch(steps *s, const check_context *x, uint64_t seed, uint64_t position)
{
    for (int32_t i = 0; i < s->n * (s->gamma + 1); i++) s->out[i] = -1;
    memset(s->out_len, 0, (size_t)s->n * sizeof *s->out_len);
    iut_verify_batch batch = batch_of(s, x, 0, s->n);
    if (batch.coins == IUT_COINS_ONE) join_coins(s);
    batch.seed = seed;
    batch.position = position;
    return batch;
}

static bool verify_all(steps *s, const check_context *x, int32_t V, bool greedy, uint64_t seed,
                       uint64_t position, check_result *r)
{
    if (s->overflow) {
        result_set(r, STATE_ERROR, "the suite planned room for %d cases only", (int)s->room);
        return false;
    }
    const iut_verify_batch all = steps_batch(s, x, seed, position);
    for (int32_t from = 0, n; from < s->n; from += n) {
        n = s->n - from < call_size(V) ? s->n - from : call_size(V);
        if (s->sizes) n = draw_batch(s->sizes, n);
        iut_verify_batch batch = batch_of(s, x, from, n);
        batch.seed = all.seed + (uint64_t)from;
        batch.position = all.position;
        if (!(greedy ? ask_greedy(&batch, x, r) : ask(&batch, s, x, V, from, r))) return false;
    }
    return true;
}

bool steps_verify(steps *s, const check_context *x, int32_t V, uint64_t seed, uint64_t position,
                  check_result *r)
{
    return verify_all(s, x, V, false, seed, position, r);
}

bool steps_verify_greedy(steps *s, const check_context *x, int32_t V, check_result *r)
{
    return verify_all(s, x, V, true, 0, 0, r);
}

bool replay_fits(const check_case *c, const client *tested, char *why, size_t why_size)
{
    const iut_claims *k = client_claims(tested);
    if (k->max_vocab > 0 && c->V > k->max_vocab)
        return (void)snprintf(why, why_size, "max_vocab is %d", (int)k->max_vocab), false;
    return true;
}

bool replay_fits_whole(const check_case *c, const client *tested, char *why, size_t why_size)
{
    const iut_claims *k = client_claims(tested);
    if (k->max_gamma > 0 && c->gamma > k->max_gamma)
        return (void)snprintf(why, why_size, "max_gamma is %d", (int)k->max_gamma), false;
    return replay_fits(c, tested, why, why_size);
}

bool replay_claimed(const check_case *c, const client *tested, char *why, size_t why_size)
{
    if (CLAIMED(client_claims(tested), coins) & IUT_COINS_TWO) return replay_claimed_by_any(c, tested, why, why_size);
    return (void)snprintf(why, why_size, "coins are not two"), false;
}

bool replay_claimed_by_any(const check_case *c, const client *tested, char *why, size_t why_size)
{
    const iut_claims *k = client_claims(tested);
    const char *missing = NULL;
    if (!check_offers(tested, OP_VERIFY, why, why_size)) return false;
    if (k->uniforms != IUT_UNIFORMS_SUPPLIED)
        missing = "uniforms are not supplied";
    else if (k->map != IUT_MAP_CDF_BY_ID && !coins_race_alone(k, k->coins))
        missing = "map is not CDF by id";
    else if (k->rule != IUT_RULE_TOKEN && k->rule != IUT_RULE_MATCH)
        missing = "rule is neither token nor match";
    else if (k->arithmetic != IUT_ARITH_CANONICAL && k->arithmetic != IUT_ARITH_F64 &&
             k->arithmetic != IUT_ARITH_F32)
        missing = "arithmetic is none of canonical, F64, F32";
    else if (replay_coarse_coins(k))
        missing = "its uniforms have fewer bits than those supplied";
    if (!missing && coins_too_large(k, k->coins, c->V, why, why_size)) return false;
    if (missing) return (void)snprintf(why, why_size, "%s", missing), false;
    return replay_fits(c, tested, why, why_size);
}

bool replay_coarse_coins(const iut_claims *claims)
{
    enum { SUPPLIED_BITS = 24 };
    return claims->uniforms == IUT_UNIFORMS_SUPPLIED && claims->uniform_bits > 0 && claims->uniform_bits < SUPPLIED_BITS;
}

bool replay_own_rows(const iut_claims *claims)
{
    return claims->input == IUT_FROM_LOGITS && claims->arithmetic != IUT_ARITH_CANONICAL;
}

bool replay_fine(const iut_claims *claims)
{
    return claims->arithmetic == IUT_ARITH_CANONICAL ||
           (claims->arithmetic == IUT_ARITH_F64 && !replay_own_rows(claims));
}

double replay_tau(const iut_claims *claims, int32_t V)
{
    if (claims->arithmetic == IUT_ARITH_CANONICAL) return 0.0;
    return replay_fine(claims) ? 0x1p-48 : 0x1p-18 * (1.0 + V * 0x1p-10);
}

unsigned replay_flags(const iut_claims *claims)
{
    unsigned flags = 0;
    if (claims->q_zero == IUT_REJECT) flags |= ORACLE_Q_ZERO_REJECTS;
    if (claims->bad_draft == IUT_REJECT) flags |= ORACLE_BAD_DRAFT_ENDS;
    if (claims->empty != IUT_EMPTY_FROM_P) flags |= ORACLE_EMPTY_OTHER;
    if (replay_own_rows(claims)) flags |= ORACLE_OWN_ROWS;
    return flags;
}

/* The rows of one case, by position. */
enum { ROWS_MAX = STEPS_GAMMA + 1, HINT_GAMMA = 8, HINT_V = 1000 };
typedef struct {
    const float *p[ROWS_MAX], *q[ROWS_MAX];
    oracle_uniforms u;
} step_rows;

static void rows_of(const steps *s, int32_t i, const probe *m, step_rows *rows)
{
    const int32_t *state = steps_state(s, i);
    const double *u = steps_u(s, i);
    for (int32_t j = 0; j <= s->len[i]; j++) {
        rows->p[j] = probe_p(m, state[j]);
        rows->q[j] = probe_q(m, state[j]);
    }
    rows->u =
        (oracle_uniforms){u, oracle_unit_of(u[s->gamma]), oracle_unit_of(u[s->gamma + 1]), s->noise};
}

static judge judge_one(const steps *s, int32_t i, const probe *m, const iut_claims *claims,
                       double tau, char *why, size_t why_size)
{
    const int32_t *got = steps_out(s, i), got_len = s->out_len[i];
    const unsigned flags = replay_flags(claims);
    step_rows rows;
    rows_of(s, i, m, &rows);
    for (int32_t j = got_len < 0 ? 0 : got_len; j <= s->gamma; j++)
        if (got[j] != -1) {
            snprintf(why, why_size, "place %d reads %d beyond the count %d (BON-04)", (int)j,
                     (int)got[j], (int)got_len);
            return JUDGE_WRONG;
        }
    if (claims->rule == IUT_RULE_MATCH)
        return oracle_match_judge(rows.p, steps_draft(s, i), s->len[i], m->V, steps_u(s, i),
                                  flags, got, got_len, tau, why, why_size);
    return oracle_chain_judge(rows.p, rows.q, steps_draft(s, i), s->len[i], m->V, &rows.u,
                              flags, got, got_len, tau, why, why_size);
}

/* The specified answer, for the report. */
static int32_t expected_of(const steps *s, int32_t i, const probe *m, const iut_claims *claims,
                           int32_t *out)
{
    step_rows rows;
    rows_of(s, i, m, &rows);
    if (claims->rule == IUT_RULE_MATCH)
        return oracle_match(rows.p, steps_draft(s, i), s->len[i], m->V, steps_u(s, i),
                            replay_flags(claims), out);
    return oracle_chain(rows.p, rows.q, steps_draft(s, i), s->len[i], m->V, &rows.u,
                        replay_flags(claims), out);
}

void replay_list(char *text, size_t size, const char *head, const int32_t *value, int32_t n)
{
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, size - used, "%s", head);
    for (int32_t i = 0; i < n && i < 12 && used + 14 < size; i++)
        used += (size_t)snprintf(text + used, size - used, " %d", (int)value[i]);
}

/* Would the specified answer be the one that was given? */
static bool explains(const steps *s, int32_t i, const probe *m, const iut_claims *claims)
{
    int32_t answer[ROWS_MAX];
    const int32_t n = expected_of(s, i, m, claims, answer);
    return n > 0 && n == s->out_len[i] &&
           memcmp(answer, steps_out(s, i), (size_t)n * sizeof *answer) == 0;
}

/* Where the last token alone is wrong: appends the one substitution, of a uniform or of a
 * position's rows, that explains it. Only where chance seldom does, so not on short rows, and
 * not for a wrong acceptance, which half of all uniforms explain. */
static void add_hint(const steps *s, int32_t i, const probe *m, const iut_claims *claims,
                     const int32_t *expected, int32_t count, char *text, size_t size)
{
    double *u = steps_u(s, i);
    int32_t *state = steps_state(s, i), hits = 0;
    const int32_t U = s->gamma + 2, n = s->len[i] + 1;
    const size_t used = strlen(text), agree = (size_t)(count - 1) * sizeof *expected;
    char hint[80] = "";
    if (count != s->out_len[i] || m->V < HINT_V || s->gamma > HINT_GAMMA ||
        memcmp(expected, steps_out(s, i), agree) != 0)
        return;
    for (int32_t a = 0; a < U * U; a++) {
        const int32_t to = a / U, from = a % U;
        const double own_u = u[to];
        const int32_t own_state = state[to < n ? to : 0];
        u[to] = u[from];
        if (u[to] != own_u && explains(s, i, m, claims) && ++hits)
            snprintf(hint, sizeof hint, "u[%d] for u[%d]", (int)from, (int)to);
        u[to] = own_u;
        if (to >= n || from >= n || state[from] == own_state) continue;
        state[to] = state[from];
        if (explains(s, i, m, claims) && ++hits)
            snprintf(hint, sizeof hint, "the rows of position %d at %d", (int)from, (int)to);
        state[to] = own_state;
    }
    if (hits == 1) snprintf(text + used, size - used, " (would be right with %s)", hint);
}

void replay_fail(const steps *s, int32_t i, const probe *m, const check_context *x,
                 const char *why, check_result *r)
{
    const iut_claims *claims = client_claims(x->iut);
    int32_t expected[ROWS_MAX];
    const int32_t n = expected_of(s, i, m, claims, expected);
    const int32_t got = s->out_len[i];
    char text[400] = "";
    replay_list(text, sizeof text, "states", steps_state(s, i), s->len[i] + 1);
    replay_list(text, sizeof text, ", drafts", steps_draft(s, i), s->len[i]);
    replay_list(text, sizeof text, ", expected", expected, n);
    replay_list(text, sizeof text, ", got", steps_out(s, i),
                got < 0              ? 0
                : got > s->gamma + 1 ? s->gamma + 1
                                     : got);
    if (n > 0) add_hint(s, i, m, claims, expected, n, text, sizeof text);
    size_t used = strlen(text);
    used += (size_t)snprintf(text + used, sizeof text - used, ", u");
    for (int32_t j = 0; j < s->gamma + 2 && used + 26 < sizeof text; j++)
        used += (size_t)snprintf(text + used, sizeof text - used, " %a", steps_u(s, i)[j]);
    result_set(r, STATE_FAIL, "case %d of a batch of %d, V = %d: %s; %s", (int)i, (int)s->n,
               (int)m->V, why, text);
}

/* Its answer is judged next. */
static bool take_noise(steps *s, int32_t i, int32_t V, check_result *r)
{
    if (s->coins != IUT_COINS_RACE) return true;
    free(s->noise);
    s->noise = coins_noises(s->race, i, 1, V);
    if (!s->noise) result_set(r, STATE_ERROR, "the suite has no memory for a race over %d tokens", (int)V);
    return s->noise != NULL;
}

bool replay_run(steps *s, const probe *m, const check_context *x, double tau,
                replay_tally *tally, check_result *r)
{
    if (!steps_verify(s, x, m->V, 0, 0, r)) return false;
    const iut_claims *claims = client_claims(x->iut);
    for (int32_t i = 0; i < s->n; i++) {
        char why[200] = "";
        if (!take_noise(s, i, m->V, r)) return false;
        const judge verdict = judge_one(s, i, m, claims, tau, why, sizeof why);
        r->compared++;
        tally->exact += verdict == JUDGE_EXACT;
        tally->grey += verdict == JUDGE_GREY;
        if (verdict != JUDGE_WRONG) continue;
        replay_fail(s, i, m, x, why, r);
        return false;
    }
    return true;
}

void replay_report(const replay_tally *tally, check_result *r)
{
    result_figure(r, "exact", (double)tally->exact);
    result_figure(r, "grey", (double)tally->grey);
    result_set(r, STATE_PASS, "%lld answers as specified, %lld within tau of a boundary",
               (long long)tally->exact, (long long)tally->grey);
}
