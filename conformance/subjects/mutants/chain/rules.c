/* rules.c - acceptance rules and the stream, with their fault points (rules.h). */
#include "conformance/subjects/mutants/chain/rules.h"

#include <math.h>
#include <string.h>

#include "conformance/subjects/mutants/chain/draw.h"

const float *rule_row(const model *m, const float *rows, int32_t state)
{
    size_t offset = (size_t)state * (size_t)m->V;
    if (fault(m->fault, ROW_OFFSET_OVERFLOW)) offset &= (1u << 13) - 1;
    return rows + offset;
}

static const float *p_row(const step *s, int32_t i)
{
    return rule_row(s->m, s->m->p, s->state[i]);
}

static const float *q_row(const step *s, int32_t i)
{
    return rule_row(s->m, s->m->q, s->state[i]);
}

/* A position that is drafted again may use its uniforms again when nothing emitted depended on
 * them (chapter 4, note). Block verification looks at later drafts before it rejects an earlier
 * one, so there each step has uniforms of its own. */
static uint32_t name(const step *s, uint32_t purpose, int32_t i)
{
    const bool looks_ahead = s->m->set.rule == IUT_RULE_BLOCK; /* RNG-08 */
    const int32_t fresh = looks_ahead && !fault(s->m->fault, BLOCK_REUSES) ? s->round : 0;
    return lane_uniform(purpose, (uint32_t)(s->at + i), (uint32_t)fresh);
}

/* ACC-07: drafts up to the first -1. */
static int32_t drafts_of(const step *s)
{
    int32_t n = 0;
    while (n < s->n && s->draft[n] != -1) n++;
    return n;
}

/* ---- Token rule ---------------------------------------------------------------------- */

float rule_bf16(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* A zero times the logarithm of zero counts as 0, or is left as it is: NaN. */
static double entropy(const float *p, int32_t V, bool zeros)
{
    double h = 0;
    for (int32_t t = 0; t < V; t++)
        if (p[t] > 0 || zeros) h -= (double)p[t] * log((double)p[t]);
    return h;
}

/* The numbers of the test: p, q and the name of the uniform, ACC-05. */
typedef struct {
    double p, q;
    uint32_t u;
} odds;

static odds odds_at(const step *s, int32_t i)
{
    const fault_point f = s->m->fault;
    const int32_t x = s->draft[i];
    odds o = {p_row(s, i)[x], q_row(s, i)[x], name(s, LANE_ACCEPT, i)};
    if (fault(f, Q_ROW_BEFORE) && i > 0) o.q = q_row(s, i - 1)[x];
    if (fault(f, ACCEPT_SWAPPED)) o = (odds){o.q, o.p, o.u};
    if (fault(f, ACCEPT_BF16)) o.p = rule_bf16((float)o.p), o.q = rule_bf16((float)o.q);
    if (fault(f, LENIENCE_102)) o.p *= 1.02;
    if (fault(f, LENIENCE_110)) o.p *= 1.10;
    if (fault(f, LENIENCE_2)) o.p *= 2;
    if (fault(f, MISSED_ACCEPT)) o.p = fmin(o.p, 0.98 * o.q);
    if (fault(f, POSITIONS_SHARE)) o.u = name(s, LANE_ACCEPT, 0);
    if (fault(f, THIRD_AS_SECOND) && i == 2) o.u = name(s, LANE_ACCEPT, 1);
    if (fault(f, ACCEPT_IS_DRAFT_NOISE)) o.u = name(s, LANE_DRAFT, i);
    if (fault(f, JOINT_ACCEPT)) {
        o.u = name(s, LANE_ACCEPT, 0);
        for (int32_t j = 0; j < i; j++)
            o.p *= p_row(s, j)[s->draft[j]], o.q *= q_row(s, j)[s->draft[j]];
    }
    return o;
}

static const float lenience = 0.5f;

/* The rules that are declared not lossless. */
static bool accepts_as_declared(const step *s, int32_t i, odds o)
{
    const manner how = s->m->set.manner;
    if (how == MANNER_LENIENT) return s->l->lt(s->l, o.u, (double)lenience * o.q, o.p);
    if (how != MANNER_TYPICAL) return o.p >= 0.3;
    const double likely = 0.3 * exp(-entropy(p_row(s, i), s->m->V, fault(s->m->fault, TYPICAL_NAN)));
    return !(o.p <= (likely > 0.09 ? 0.09 : likely));
}

/* ACC-01: u*q < p, strictly, in exact numbers. */
static bool accepts(const step *s, int32_t i)
{
    const fault_point f = s->m->fault;
    lane *l = s->l;
    const odds o = odds_at(s, i);
    if (fault(f, ACCEPT_ALWAYS)) return true;
    if (s->m->set.rule == IUT_RULE_NOT_LOSSLESS) return accepts_as_declared(s, i, o);
    if (fault(f, ACCEPT_U_ZERO)) return o.p > 0;
    if (fault(f, ACCEPT_CONSTANT)) return o.p > 0 && o.p >= 0.5 * o.q;
    if (fault(f, ACCEPT_TYPICAL))
        return o.p > fmin(0.09, 0.3 * exp(-entropy(p_row(s, i), s->m->V, false)));
    if (fault(f, ACCEPT_NAN) && o.p == 0 && o.q == 0) return true;
    if ((fault(f, Q_ZERO_REJECTED) || s->m->set.manner == MANNER_Q_ZERO_REJECT) && o.q == 0) return false;
    if (fault(f, ZERO_IS_ONE) && l->lt(l, o.u, 1, 0x1p-29)) return o.q < o.p;
    if (fault(f, LATER_DRAFT_DECIDES) && i + 1 < s->n && s->draft[i + 1] == s->draft[i])
        return false;
    if (fault(f, ACCEPT_16_BIT) && o.q > 0)
        return l->lt(l, o.u, 65536, ceil(65536 * o.p / o.q));
    if (fault(f, ACCEPT_LE)) return l->lt(l, o.u, o.q, nextafter(o.p, INFINITY));
    if (fault(f, ACCEPT_BY_LOGARITHMS) && o.p > 0 && log(o.p / o.q) + log(o.q) < log(o.p))
        return l->lt(l, o.u, o.q, nextafter(o.p, INFINITY));
    if (fault(f, ACCEPT_CLOSED_24))
        return l->lt(l, o.u, o.q / (1 - 0x1p-24), nextafter(o.p, INFINITY));
    return l->lt(l, o.u, o.q, o.p);
}

static int32_t first_largest(const float *w, int32_t V)
{
    int32_t best = 0;
    for (int32_t t = 1; t < V; t++)
        if (w[t] > w[best]) best = t;
    return best;
}

static void residual_misaligned(const float *p, const float *q, int32_t V, float *r)
{
    int32_t j = 0;
    for (int32_t t = 0; t < V; t++) {
        r[t] = 0;
        if (!(p[t] > 0)) continue;
        while (j < V && !(q[j] > 0)) j++;
        const float taken = j < V ? q[j++] : 0;
        r[t] = fmaxf(0, p[t] - taken);
    }
}

void rule_residual(const model *m, const float *p, const float *q, float *r)
{
    const fault_point f = m->fault;
    const int32_t V = m->V;
    if (fault(f, RESIDUAL_MISALIGNED)) {
        residual_misaligned(p, q, V, r);
        return;
    }
    if (fault(f, RESIDUAL_STALE)) {
        for (int32_t t = 0; t < V; t++)
            if (p[t] > q[t]) r[t] = p[t] - q[t];
        return;
    }
    for (int32_t t = 0; t < V; t++) r[t] = p[t] > q[t] ? p[t] - q[t] : 0; /* RES-01 */
    for (int32_t t = 0; fault(f, RESIDUAL_ABS) && t < V; t++) r[t] = fabsf(p[t] - q[t]);
    for (int32_t t = 0; fault(f, RESIDUAL_P_ABOVE_Q) && t < V; t++)
        if (r[t] > 0) r[t] = p[t];
    for (int32_t t = 0; fault(f, RESIDUAL_CLAMPED) && t < V; t++) r[t] = fmaxf(r[t], 1e-5f);
}

/* Cumulative sum of p - q as it stands: it may fall, and it ends near 0. */
static int32_t draw_unclamped(const step *s, uint32_t id, const float *p, const float *q,
                              double W)
{
    double C = 0;
    for (int32_t t = 0; t < s->m->V; t++) {
        C += draw_sum(s->m, 0, p + t, 1) - draw_sum(s->m, 0, q + t, 1);
        if (C > 0 && s->l->lt(s->l, id, W, C)) return t;
    }
    return s->m->V - 1;
}

/* RES-03: nothing is left of p; the same uniform draws from p. */
static int32_t draw_empty(const step *s, uint32_t id, const float *p)
{
    const fault_point f = s->m->fault;
    if (fault(f, EMPTY_LAST)) return s->m->V - 1;
    for (int32_t t = s->m->V; s->m->set.manner == MANNER_EMPTY_OTHER && t-- > 0;)
        if (p[t] > 0) return t;
    if (fault(f, EMPTY_FIRST)) return 0;
    if (fault(f, EMPTY_UNIFORM)) {
        for (int32_t t = 0; t < s->m->V; t++) s->m->scratch[t] = 0x1p-20f;
        return rule_draw(s->m, s->l, id, s->m->scratch);
    }
    return rule_draw(s->m, s->l, id, p);
}

/* Behind a threshold that a draft failed stands a draw from p. */
static bool draws_anew(const model *m)
{
    return m->set.rule == IUT_RULE_NOT_LOSSLESS && m->set.manner != MANNER_LENIENT;
}

/* RES-02: the token after a rejection at position i. */
static int32_t corrected(const step *s, int32_t i)
{
    const fault_point f = s->m->fault;
    const int32_t V = s->m->V;
    const int32_t row = fault(f, RESIDUAL_ROW_0) ? 0 : i;
    const float *p = p_row(s, fault(f, RESIDUAL_NEXT_ROW) ? i + 1 : row), *q = q_row(s, row);
    float *r = s->m->scratch;
    uint32_t id = name(s, LANE_RESIDUAL, i);
    if (fault(f, RESIDUAL_REUSES_ACCEPT)) id = name(s, LANE_ACCEPT, i);
    if (fault(f, SHARED_NOISE)) id = name(s, LANE_DRAFT, i);
    if (fault(f, RESIDUAL_FROM_P) || draws_anew(s->m)) return rule_draw(s->m, s->l, id, p);
    if (s->noise && fault(f, RACE_FROM_P)) return draw_race(s->m, p, s->noise);
    rule_residual(s->m, p, q, r);
    for (int32_t t = 0; s->m->set.manner == MANNER_LENIENT && t < V; t++) {
        const float left = p[t] - lenience * q[t];
        r[t] = fault(f, LENIENT_ABS) ? fabsf(left) : fmaxf(left, 0);
    }
    double W = draw_sum(s->m, 0, r, V);
    if (s->noise) return draw_race(s->m, W > 0 ? r : p, s->noise);
    if (W == 0) return draw_empty(s, id, p);
    if (fault(f, RESIDUAL_UNCLAMPED)) return draw_unclamped(s, id, p, q, W);
    if (fault(f, RESIDUAL_ARGMAX)) return first_largest(r, V);
    if (fault(f, RESIDUAL_UNNORMALISED)) W = 0x1p44;
    if (fault(f, RESIDUAL_FIRST_TILE)) W = draw_sum(s->m, 0, r, V < 512 ? V : 512);
    return draw_of_total(s->m, s->l, id, r, W);
}

/* BON-01, BON-03: the token after n accepted drafts, from row n. */
static int32_t bonus(const step *s, int32_t n)
{
    const fault_point f = s->m->fault;
    uint32_t id = name(s, LANE_DRAW, n);
    const float *row = rule_row(s->m, s->m->bonus, s->state[n]);
    if (fault(f, BONUS_AS_RESIDUAL)) id = name(s, LANE_RESIDUAL, n);
    if (n == 0 && fault(f, EMPTY_STEP_ARGMAX)) return first_largest(row, s->m->V);
    if (n > 0 && fault(f, BONUS_REUSES_ACCEPT)) id = name(s, LANE_ACCEPT, n - 1);
    if (n > 0 && fault(f, BONUS_ROW_BEFORE)) row = p_row(s, n - 1);
    if (n > 0 && fault(f, BONUS_FROM_Q)) row = q_row(s, n);
    if (n > 0 && fault(f, ONE_COIN_READ_AS_TWO)) id = name(s, LANE_ACCEPT, n - 1);
    if (s->noise && !fault(f, RACE_BY_UNIFORM)) return draw_race(s->m, row, s->noise);
    return rule_draw(s->m, s->l, id, row);
}

/* ACC-04, BON-02: accepted drafts up to the first rejection, then exactly one token. */
static int32_t rule_token(const step *s, int32_t *out, int32_t *accepted)
{
    const fault_point f = s->m->fault;
    const int32_t n = drafts_of(s);
    int32_t i = 0, count = 0;
    for (; i < n; i++) {
        if (accepts(s, i))
            out[count++] = s->draft[i];
        else if (fault(f, GO_ON_AFTER_REJECTION) && i + 1 < n)
            out[count++] = corrected(s, i);
        else
            break;
    }
    *accepted = count;
    if (i == n && n < s->n && fault(f, MINUS_ONE_REJECTED))
        out[count++] = corrected(s, n);
    else if (i < n)
        out[count++] = corrected(s, i);
    else if (n == 0 || !fault(f, BONUS_MISSING))
        out[count++] = bonus(s, n);
    if (i < n && fault(f, BONUS_AFTER_REJECTION)) out[count++] = bonus(s, n);
    return count;
}

/* ---- Match, one-hot and block rule --------------------------------------------------- */

/* MAT-01: what plain decoding draws is emitted; the step lasts while it agrees with the drafts.
 */
static int32_t rule_match(const step *s, int32_t *out, int32_t *accepted)
{
    const fault_point f = s->m->fault;
    const int32_t n = drafts_of(s);
    const bool wrong = fault(f, MATCH_WRONG_PURPOSE) && n > 0;
    for (int32_t i = 0;; i++) {
        const uint32_t id = name(s, wrong ? LANE_RESIDUAL : LANE_DRAW, i);
        *accepted = i;
        out[i] = rule_draw(s->m, s->l, id, p_row(s, i));
        if (i == n) return i + 1;
        if (out[i] == s->draft[i]) continue;
        if (fault(f, MATCH_KEEPS_DRAFT)) out[i] = s->draft[i];
        return i + 1;
    }
}

/* Drafts as fixed candidates: x stands with probability p(x) / total; else x is struck out of p
 * and the next token drawn from what remains. q is not looked at. */
static int32_t rule_onehot(const step *s, int32_t *out, int32_t *accepted)
{
    const int32_t n = drafts_of(s);
    float *r = s->m->scratch;
    int32_t i = 0;
    for (; i < n; i++) {
        const float *p = p_row(s, i);
        const int32_t x = out[i] = s->draft[i];
        const double W = draw_sum(s->m, 0, p, s->m->V), w = draw_sum(s->m, 0, p + x, 1);
        if (s->l->lt(s->l, name(s, LANE_ACCEPT, i), W, w)) continue;
        memcpy(r, p, (size_t)s->m->V * sizeof *r);
        r[x] = 0;
        *accepted = i;
        out[i] = rule_draw(s->m, s->l, name(s, LANE_RESIDUAL, i), r);
        return i + 1;
    }
    *accepted = n;
    out[n] = bonus(s, n);
    return n + 1;
}

/* r = max(0, rho*p - q) and its sum. */
static double block_residual(const step *s, int32_t i, double rho, float *r)
{
    const float *p = p_row(s, i), *q = q_row(s, i);
    double sum = 0;
    for (int32_t t = 0; t < s->m->V; t++) {
        const double d = rho * (double)p[t] - (double)q[t];
        r[t] = d > 0 ? (float)d : 0;
        sum += d > 0 ? d : 0;
    }
    return sum;
}

/* Block verification (Sun et al., arXiv 2403.10444): with rho_i = min(1, rho_{i-1} p/q) and M_i
 * the sum of max(0, rho_i p - q) at the next position, the longest prefix i stands for which
 * u_i < M_i / (M_i + 1 - rho_i), or u_n < rho_n for all of it; then a token from
 * max(0, rho p - q), or the bonus. It accepts at least as much as the token rule. */
static int32_t rule_block(const step *s, int32_t *out, int32_t *accepted)
{
    const int32_t n = drafts_of(s);
    double rho = 1, rho_stands = 1;
    int32_t stands = 0;
    for (int32_t i = 1; i <= n; i++) {
        const int32_t x = s->draft[i - 1];
        const double p = p_row(s, i - 1)[x], q = q_row(s, i - 1)[x];
        out[i - 1] = x;
        rho = rho * p < q ? rho * p / q : p > 0 && rho > 0 ? 1 : 0;
        const double M = i < n ? block_residual(s, i, rho, s->m->scratch) : rho;
        const double of = i < n ? M + 1 - rho : 1;
        if (s->l->lt(s->l, name(s, LANE_ACCEPT, i - 1), of, M)) stands = i, rho_stands = rho;
    }
    *accepted = stands;
    if (stands == n) {
        out[n] = bonus(s, n);
        return n + 1;
    }
    if (fault(s->m->fault, BLOCK_TOKEN_RESIDUAL)) rho_stands = 1;
    block_residual(s, stands, rho_stands, s->m->scratch);
    const uint32_t id = name(s, LANE_RESIDUAL, stands);
    out[stands] = draw_sum(s->m, 0, s->m->scratch, s->m->V) > 0
                      ? rule_draw(s->m, s->l, id, s->m->scratch)
                      : rule_draw(s->m, s->l, id, p_row(s, stands));
    return stands + 1;
}

/* The drafts without their -1 entries, and the states without the rows of these. */
static int32_t without_minus_ones(const step *s, int32_t *state, int32_t *draft)
{
    int32_t n = 0;
    for (int32_t i = 0; i < s->n; i++)
        if (s->draft[i] != -1) state[n] = s->state[i], draft[n++] = s->draft[i];
    state[n] = s->state[s->n];
    return n;
}

int32_t rule_step(const step *s, int32_t *out, int32_t *accepted)
{
    int32_t state[RULES_MAX_GAMMA + 1], draft[RULES_MAX_GAMMA];
    step skipped = *s;
    if (fault(s->m->fault, MINUS_ONE_SKIPPED)) {
        skipped.n = without_minus_ones(s, state, draft);
        skipped.state = state;
        skipped.draft = draft;
        s = &skipped;
    }
    switch (s->m->set.rule) {
    case IUT_RULE_MATCH:
        return rule_match(s, out, accepted);
    case IUT_RULE_ONEHOT:
        return rule_onehot(s, out, accepted);
    case IUT_RULE_BLOCK:
        return rule_block(s, out, accepted);
    default:
        return rule_token(s, out, accepted);
    }
}

/* ---- Greedy -------------------------------------------------------------------------- */

/* Does b beat a, which has the lower id? GRD-02: only if it is larger. */
static bool beats(fault_point f, float a, float b, bool speculative)
{
    if (fault(f, TIE_LAST) || (fault(f, TIE_LAST_SPECULATIVE) && speculative)) return b >= a;
    if (fault(f, ZERO_SIGN) && a == 0 && b == 0) return signbit(a) && !signbit(b);
    return b > a;
}

int32_t rule_argmax(const model *m, const float *logits, bool speculative)
{
    float largest = -INFINITY;
    for (int32_t t = 0; t < m->V; t++) {
        if (!(logits[t] < INFINITY)) return -1; /* NaN or +inf */
        largest = logits[t] > largest ? logits[t] : largest;
    }
    if (largest == -INFINITY) return -1;
    int32_t best = -1;
    for (int32_t t = 0; t < m->V; t++) {
        if (logits[t] == -INFINITY) continue;
        if (best < 0)
            best = t;
        else if (fault(m->fault, GREEDY_OF_SOFTMAX)) {
            const float a = expf(logits[best] - largest), b = expf(logits[t] - largest);
            best = b > a ? t : best;
        } else if (beats(m->fault, logits[best], logits[t], speculative) ||
                   (m->set.manner == MANNER_TIES_LAST && logits[best] == logits[t]))
            best = t;
    }
    return best;
}

/* Is the token among the ten likeliest? */
static bool is_likely(const float *logits, int32_t V, int32_t token)
{
    int32_t above = 0;
    for (int32_t t = 0; t < V; t++) above += logits[t] > logits[token];
    return above < 10;
}

int32_t rule_greedy(const step *s, int32_t *out, int32_t *accepted)
{
    const fault_point f = s->m->fault;
    const int32_t n = drafts_of(s);
    for (int32_t i = 0;; i++) {
        const float *logits = rule_row(s->m, s->m->p_logit, s->state[i]);
        const int32_t best = rule_argmax(s->m, logits, n > 0);
        *accepted = i;
        if (best < 0) s->m->row_bad = true;
        if (best < 0 || (i == n && n > 0 && fault(f, GREEDY_NO_BONUS))) return i;
        out[i] = best;
        if (i == n) return i + 1;
        if ((fault(f, GREEDY_RELAXED) || s->m->set.manner == MANNER_RELAXED) && is_likely(logits, s->m->V, s->draft[i]))
            out[i] = s->draft[i];
        if (fault(f, GREEDY_TIE_ACCEPTED) && logits[s->draft[i]] == logits[best])
            out[i] = s->draft[i];
        if (out[i] != s->draft[i]) return i + 1;
    }
}

/* ---- Stream -------------------------------------------------------------------------- */

/* A token outside the vocabulary, which only a fault emits, has the class of token 0. */
static int32_t after(const model *m, int32_t state, int32_t token)
{
    if (token < 0 || token >= m->V) token = 0;
    return m->next[(size_t)state * (size_t)m->C + (size_t)m->cls[token]];
}

/* LAW-03: drafts are drawn from q, each with its own uniform. */
static void propose(const step *s, int32_t *state, int32_t *draft)
{
    model *m = s->m;
    for (int32_t i = 0; i < s->n; i++) {
        const float *row = rule_row(m, m->drafted, state[i]);
        if (fault(m->fault, DRAFT_GREEDY))
            draft[i] = first_largest(row, m->V);
        else
            draft[i] = rule_draw(m, s->l, name(s, LANE_DRAFT, i), row);
        state[i + 1] = after(m, state[i], draft[i]);
    }
}

/* One step of a stream: drafts and verifies; returns the tokens of its run. */
static int32_t stream_step(step *s, int32_t *state, int32_t *draft, int32_t left, int32_t *run,
                           int32_t *accepted)
{
    model *m = s->m;
    propose(s, state, draft);
    if (m->target.temperature == 0) return rule_greedy(s, run, accepted);
    int32_t count = rule_step(s, run, accepted);
    if (fault(m->fault, UNVERIFIED_TAIL) && left <= s->n && s->n > 0) {
        memcpy(run, draft, (size_t)s->n * sizeof *run);
        *accepted = count = s->n;
    }
    return count;
}

/* STOP-01, STOP-02: how much of a run is emitted. */
static int32_t cut(const model *m, const int32_t *run, int32_t count, int32_t left, int32_t eos)
{
    const fault_point f = m->fault;
    for (int32_t i = fault(f, EOS_INSIDE_IGNORED) ? count - 1 : 0; i >= 0 && i < count; i++)
        if (run[i] == eos) count = i + 1;
    if (count > left) count = fault(f, BUDGET_SHORT) && left > 1 ? left - 1 : left;
    return count;
}

int32_t rule_stream(model *m, lane *l, int32_t start, int32_t gamma, int32_t k, int32_t eos,
                    int32_t *out, int32_t *accepted)
{
    int32_t state[RULES_MAX_GAMMA + 1] = {start}, draft[RULES_MAX_GAMMA];
    int32_t run[RULES_MAX_GAMMA + 3], now = start, done = 0, again = -1;
    if (fault(m->fault, NO_END_IS_LAST) && eos < 0) eos = m->V - 1;
    for (int32_t round = 0; done < k; round++) {
        const int32_t at = fault(m->fault, STEPS_SHARE) ? 0 : done;
        const bool fewer = m->set.manner == MANNER_ADAPTIVE && gamma > 1 && round % 2;
        step s = {m, l, state, draft, fewer ? gamma - 1 : gamma, at, round, NULL};
        int32_t stand = 0, first = 0;
        state[0] = now;
        if (again >= 0 && fault(m->fault, TOKEN_REPEATED)) run[first++] = again;
        int32_t count = first + stream_step(&s, state, draft, k - done, run + first, &stand);
        if (count == 0) break;
        /* STOP-04: the state follows the emitted tokens. */
        for (int32_t i = first; i < count; i++) now = after(m, now, run[i]);
        if (fault(m->fault, REJECTED_DRAFT_STAYS) && stand < gamma) now = state[stand + 1];
        if (fault(m->fault, TOKEN_LOST) && stand > 0) count--;
        const int32_t emitted = cut(m, run, count, k - done, eos);
        again = gamma > 0 ? run[count - 1] : -1;
        memcpy(out + done, run, (size_t)emitted * sizeof *out);
        if (accepted && round < k) accepted[round] = stand < emitted ? stand : emitted;
        done += emitted;
        if (eos >= 0 && out[done - 1] == eos) break;
        if (fault(m->fault, BUDGET_OVERRUN) && count > emitted) return done + count - emitted;
        if (emitted < count) break;
    }
    return done;
}
