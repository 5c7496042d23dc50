/* law_speed.c - see law_speed.h. */
#include "conformance/checks/law/law_speed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/stats/coupling.h"
#include "conformance/stats/eprocess.h"
#include "conformance/stats/logmath.h"

/* -- What is known ----------------------------------------------------------------- */

/* Which token of a row is the likeliest, by a thousandth of its probability at least; -1: it is not clear. */
static int32_t clear_best(const double *q, int32_t V)
{
    int32_t best = 0;
    for (int32_t x = 1; x < V; x++)
        if (q[x] > q[best]) best = x;
    for (int32_t x = 0; x < V; x++)
        if (x != best && q[x] > 0.999 * q[best]) return -1;
    return best;
}

static bool all_clear(const panel *a)
{
    for (int32_t s = 0; s < a->view.S; s++)
        if (clear_best(panel_q(a, s), a->view.V) < 0) return false;
    return true;
}

/* No clause says what block verification accepts. In `stream` the drafts of a match or a one-hot rule have the law that
 * `drafts` tells (CLM-30), and no claim says what becomes of a likeliest one under the token rule (STAT-05). */
bool law_speed_known(const panel *a, law_op op, uint8_t rule, int32_t drafts)
{
    const bool match = rule == IUT_RULE_MATCH || rule == IUT_RULE_ONEHOT;
    if (op == LAW_VERIFY) return rule == IUT_RULE_TOKEN || match;
    if (op != LAW_STREAM) return false;
    if (drafts == IUT_DRAFTS_ARGMAX) return match && all_clear(a);
    return rule == IUT_RULE_TOKEN || (match && drafts == IUT_DRAFTS_SAMPLED);
}

/* The chance that a draft is x and stands. ACC-01: a draft from q is x and stands with chance min(p, q)(x). MAT-01,
 * ONEH-01: a draft x stands with chance p(x). */
static double stands(const law_speed *t, int32_t state, int32_t best, int32_t x)
{
    const double p = panel_p(t->a, state)[x], q = panel_q(t->a, state)[x];
    if (t->argmax) return x == best ? p : 0;
    return t->rule == IUT_RULE_TOKEN ? fmin(p, q) : p * q;
}

static void fill(law_speed *t, int32_t state)
{
    const int32_t V = t->a->view.V, best = t->argmax ? clear_best(panel_q(t->a, state), V) : -1;
    double sum = 0;
    for (int32_t x = 0; x < V; x++) sum += stands(t, state, best, x);
    t->due[state] = fmin(1, sum);
    for (int32_t x = 0; !t->verify && x < V; x++)
        t->law[(size_t)state * (size_t)V + (size_t)x] =
            sum > 0 ? stands(t, state, best, x) / sum : panel_p(t->a, state)[x];
}

bool law_speed_open(law_speed *t, const panel *a, law_op op, uint8_t rule, int32_t drafts)
{
    const size_t S = (size_t)a->view.S, cells = S * (size_t)a->view.V;
    *t = (law_speed){.a = a, .verify = op == LAW_VERIFY, .rule = rule};
    t->argmax = !t->verify && drafts == IUT_DRAFTS_ARGMAX;
    t->due = malloc(S * sizeof *t->due);
    t->drafts = calloc(LAW_RANGES * S, sizeof *t->drafts);
    t->stood = calloc(LAW_RANGES * S, sizeof *t->stood);
    if (!t->verify) {
        t->law = malloc(cells * sizeof *t->law);
        t->tokens = calloc(LAW_RANGES * cells, sizeof *t->tokens);
    }
    if (!t->due || !t->drafts || !t->stood || (!t->verify && (!t->law || !t->tokens))) return false;
    for (int32_t s = 0; s < a->view.S; s++) fill(t, s);
    return true;
}

void law_speed_close(law_speed *t)
{
    free(t->due);
    free(t->law);
    free(t->drafts);
    free(t->stood);
    free(t->tokens);
}

/* -- Bets -------------------------------------------------------------------------- */

/* Too few accepted is too many refused: the bets of the coupling bound, on the other event. All requests together, and
 * each range alone: a fault that comes late need not pay for what was right before. */
static double log_e_of_counts(const law_speed *t)
{
    const int32_t S = t->a->view.S;
    double refusal[LAW_STATES], log_e[LAW_RANGES + 1];
    int64_t refused[LAW_STATES] = {0}, all[LAW_STATES] = {0};
    for (int32_t s = 0; s < S; s++) refusal[s] = 1 - t->due[s];
    for (int32_t i = 0; i < LAW_RANGES; i++) {
        int64_t here[LAW_STATES];
        const int64_t *drafts = t->drafts + i * S;
        for (int32_t s = 0; s < S; s++) {
            here[s] = drafts[s] - t->stood[i * S + s];
            refused[s] += here[s], all[s] += drafts[s];
        }
        log_e[i] = st_coupling_log_e(refusal, here, drafts, S);
    }
    log_e[LAW_RANGES] = st_coupling_log_e(refusal, refused, all, S);
    return st_log_mean(log_e, NULL, LAW_RANGES + 1);
}

/* False: no memory. *proof: a token that q or p makes impossible was accepted as a draft. */
static bool count_tokens(const law_speed *t, st_ep *ep, bool *proof)
{
    const int32_t S = t->a->view.S, V = t->a->view.V;
    for (int32_t c = 0; c < LAW_RANGES * S; c++)
        for (int32_t x = 0; x < V; x++) {
            const int32_t n = t->tokens[(size_t)c * (size_t)V + (size_t)x];
            if (n == 0) continue;
            if (t->due[c % S] <= 0 || t->law[(size_t)(c % S) * (size_t)V + (size_t)x] <= 0)
                *proof = true;
            else if (!st_ep_add(ep, c, x, n))
                return false;
        }
    return true;
}

/* The states in each range are contexts. The tokens are ordered by p over their law, that is by q/p. */
static double log_e_of_tokens(const law_speed *t)
{
    const int32_t S = t->a->view.S;
    const double *law[LAW_STATES], *p[LAW_STATES];
    int32_t row[LAW_RANGES * LAW_STATES];
    bool proof = false;
    for (int32_t s = 0; s < S; s++)
        law[s] = t->law + (size_t)s * (size_t)t->a->view.V, p[s] = panel_p(t->a, s);
    for (int32_t c = 0; c < LAW_RANGES * S; c++) row[c] = c % S;
    st_ep *ep = st_ep_new(LAW_RANGES * S, row, S, t->a->view.V, law, p);
    double log_e = ep && count_tokens(t, ep, &proof) ? st_ep_log_e(ep) : NAN;
    st_ep_free(ep);
    return proof ? INFINITY : log_e;
}

double law_speed_log_e(const law_speed *t)
{
    const double counts = log_e_of_counts(t);
    if (t->verify || counts <= 0) return counts;
    const double tokens = log_e_of_tokens(t);
    return isnan(tokens) ? tokens : fmin(counts, tokens);
}

/* -- What is told ------------------------------------------------------------------ */

void law_tell_speed(const law_sampler *s, check_result *r)
{
    const law_speed *t = s->speed;
    check_speed to = {.drafts = 0};
    double stood = 0, due = 0;
    for (int32_t c = 0; t && c < LAW_RANGES * t->a->view.S; c++) {
        to.drafts += t->drafts[c], stood += (double)t->stood[c];
        due += (double)t->drafts[c] * t->due[c % t->a->view.S];
    }
    if (to.drafts == 0) return;
    to.log_e = law_speed_log_e(t);
    if (isnan(to.log_e)) return; /* short of memory: nothing is said */
    const double n = (double)to.drafts;
    snprintf(to.text, sizeof to.text, "it accepted %.4g of %s%lld drafts, %.4g expected; ln E = %.4g%s", stood / n,
             t->verify ? "" : "at most ", (long long)to.drafts, due / n, to.log_e,
             t->verify   ? ""
             : t->argmax ? ", also that they are not the likeliest of q"
                         : ", also that they are not from q");
    r->speed = to;
}
