/* lm.greedy - greedy decoding of a real model, drafted and plain (TREE-05, TREE-06, KV-02): the
 * suite itself steps through forward and commit, so what is tested is the model's arithmetic
 * and its cache under the load of decoding, not the loop.
 *
 * With an arithmetic claim tokens and logits must be the same bits. Without one the tokens must
 * be the same, and a difference is put to the control: the prefix of the token, scored once
 * more as just as many rows of one forward, all of them right and none of them drafted. If that
 * gives the other token too, or their logits are within reach of roundings (CLM-08), the model
 * itself is of two minds (a near-tie), unless it promised greedy identity. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm.h"

static const char *const models[] = {"long", "biased", "draft", "target"};
enum { RIGHT, NEVER, ALTERNATING, FIRST_WRONG, EOS_INSIDE, BUDGET_INSIDE, DRAFTS };
static const char *const draft_name[] = {"right",       "never",      "alternating",
                                         "first-wrong", "eos-inside", "budget-inside"};
enum { TARGET = 3, MODELS, PROMPT = 60, BUDGET = 48, GAMMAS = 8 };

static void plan(check_plan *p, check_level level)
{
    const int32_t count = level == LEVEL_SMOKE ? 1 : level == LEVEL_FULL ? 3 : LM_PROMPTS;
    for (int32_t m = 0; m < MODELS; m++)
        for (int32_t i = 0; i < (m == TARGET && level == LEVEL_FULL ? 2 : count); i++)
            for (int32_t d = 0; d < DRAFTS; d++) {
                if (m == TARGET && level == LEVEL_SMOKE && d != ALTERNATING) continue;
                check_case *c = plan_case(p, &check_lm_greedy, "%s-%s-%d", models[m],
                                          draft_name[d], (int)i);
                c->model.folder = m;
                c->model.kind = d;
                c->model.prompt = i;
                c->cost = 6e4;
            }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return lm_claimed(tested, models[c->model.folder], 0, why, size);
}

typedef struct {
    lm m;
    int32_t drafts; /* RIGHT .. */
    bool bits;      /* an arithmetic is claimed */
    bool brief;     /* every third gamma */
    uint64_t rng;
    int32_t prompt[PROMPT], length; /* of the prompt */
    int32_t plain[BUDGET + 1];      /* the plain stream; one more, never emitted */
    float *logits, *got, *alone;    /* [BUDGET+1][V] those that gave it; [16][V]; [V] of the control */
    int32_t near_ties;
    char tie[200]; /* the first */
} job;

/* How far the largest logit stands above the next. */
static double top_gap(const float *logit, int32_t V)
{
    const int32_t best = lm_argmax(logit, V);
    double next = -INFINITY;
    for (int32_t t = 0; t < V; t++)
        if (t != best && (double)logit[t] > next) next = (double)logit[t];
    return (double)logit[best] - next;
}

static bool numbers(job *j, const float *logit, int64_t rows)
{
    for (int64_t i = 0; i < rows * j->m.V; i++)
        if (isnan(logit[i])) {
            result_set(j->m.r, STATE_FAIL, "a logit is NaN");
            return false;
        }
    return true;
}

/* ---- The two ways to decode. ----------------------------------------------------- */

/* The prompt without its last token, committed: both ways start from this. */
static bool start(job *j, int32_t sequence)
{
    return lm_fill(&j->m, sequence, 0, j->prompt, j->length - 1, 16, NULL);
}

static bool decode_plain(job *j)
{
    int32_t token = j->prompt[j->length - 1];
    if (!start(j, 0)) return false;
    for (int32_t i = 0; i <= BUDGET; i++) {
        float *row = j->logits + (int64_t)i * j->m.V;
        if (!lm_forward(&j->m, 0, &token, NULL, 1, NULL, 0, row) || !numbers(j, row, 1) ||
            !lm_commit(&j->m, 0, NULL, 1, j->length + i))
            return false;
        token = j->plain[i] = lm_argmax(row, j->m.V);
    }
    return true;
}

/* Whether draft i of step `step` is right. */
static bool is_right(const job *j, int32_t step, int32_t i)
{
    switch (j->drafts) {
    case NEVER:
        return false;
    case ALTERNATING:
        return step % 2 == 0 || i % 2 == 0;
    case FIRST_WRONG:
        return i > 0;
    default:
        return true;
    }
}

static void propose(job *j, int32_t at, int32_t step, int32_t gamma, int32_t *row)
{
    row[0] = at ? j->plain[at - 1] : j->prompt[j->length - 1];
    for (int32_t i = 0; i < gamma; i++) {
        const int32_t right = j->plain[at + i];
        row[1 + i] = is_right(j, step, i)
                         ? right
                         : (right + 1 + probe_below(&j->rng, j->m.V - 1)) % j->m.V;
    }
}

/* The control: the tokens up to number `at` of the stream, the last `rows` of them as rows of
 * one forward, on a fresh sequence. Its last row's argmax; -1 when the call failed. */
static int32_t control(job *j, int32_t at, int32_t rows)
{
    const int32_t whole = j->length + at;
    int32_t token[PROMPT + BUDGET + 1];
    for (int32_t i = 0; i < whole; i++)
        token[i] = i < j->length ? j->prompt[i] : j->plain[i - j->length];
    if (rows > whole) rows = whole;
    const int32_t last = rows - 1;
    if (!lm_truncate(&j->m, 2, 0) || !lm_fill(&j->m, 2, 0, token, whole - rows, 16, NULL) ||
        !lm_forward(&j->m, 2, token + whole - rows, NULL, rows, &last, 1, j->alone))
        return -1;
    return lm_argmax(j->alone, j->m.V);
}

/* Token `at` of the stream came out otherwise: whose fault is it? True: near-tie, go on. */
static bool triage(job *j, int32_t at, int32_t rows, int32_t emitted)
{
    const double gap = top_gap(j->logits + (int64_t)at * j->m.V, j->m.V);
    const iut_claims *claims = client_claims(j->m.x->iut);
    if (j->bits || claims->greedy_identical) {
        result_set(
            j->m.r, STATE_FAIL,
            "token %d: %d where plain decoding has %d, from a forward of %d rows (gap of "
            "the two largest logits %.3g), though %s is claimed",
            (int)at, (int)emitted, (int)j->plain[at], (int)rows, gap,
            j->bits ? "lm_arithmetic" : "greedy_identical");
        return false;
    }
    const int32_t alone = control(j, at, rows);
    if (j->m.r->state != STATE_PASS) return false;
    const float *plain = j->logits + (int64_t)at * j->m.V;
    const double apart = (double)plain[j->plain[at]] - (double)plain[emitted];
    const bool near = apart <= lm_reach(claims, plain, j->m.V);
    if (alone != emitted && near) lm_near_tie(j->m.r, claims, plain, j->m.V, apart);
    if (alone == emitted || near) {
        if (j->near_ties++ == 0)
            snprintf(j->tie, sizeof j->tie, "token %d is %d or %d, %s (gap %.3g)", (int)at, (int)emitted,
                     (int)j->plain[at],
                     near ? "within the reach of roundings" : "also without drafts, by the number of rows", apart);
        return true;
    }
    result_set(
        j->m.r, STATE_FAIL,
        "token %d: %d where plain decoding has %d (gap %.3g), and the same prefix scored "
        "as %d rows without drafts has %d: the drafts did it",
        (int)at, (int)emitted, (int)j->plain[at], apart, (int)rows, (int)alone);
    return false;
}

/* One step at token `at`: how many tokens it emits, as plain decoding has them; 0: decided. */
static int32_t step(job *j, int32_t at, int32_t number, int32_t gamma, int32_t budget,
                    int32_t eos)
{
    int32_t row[GAMMAS + 1], n = 0;
    const int32_t g = gamma < budget - at - 1 ? gamma : budget - at - 1;
    propose(j, at, number, g, row);
    if (!lm_forward(&j->m, 1, row, NULL, g + 1, NULL, 0, j->got) || !numbers(j, j->got, g + 1))
        return 0;
    /* The rows up to the first wrong draft; their argmax continues the stream. */
    for (bool going = true; going; n++) {
        const float *logits = j->got + (int64_t)n * j->m.V;
        const int32_t token = lm_argmax(logits, j->m.V);
        j->m.r->compared++;
        if (token != j->plain[at + n]) {
            if (!triage(j, at + n, g + 1, token)) {
                lm_tell_logits(&j->m, logits, NULL);
                return 0;
            }
            /* The control may have taken the rows. Go on with the plain token. */
            if (!lm_forward(&j->m, 1, row, NULL, g + 1, NULL, 0, j->got)) return 0;
        } else if (j->bits &&
                   !lm_same_logits(&j->m, logits, j->logits + (int64_t)(at + n) * j->m.V, 1,
                                   "token %d, row %d of %d", (int)(at + n), (int)n, (int)g + 1))
            return 0;
        going = n < g && row[1 + n] == j->plain[at + n] && j->plain[at + n] != eos;
    }
    return lm_commit(&j->m, 1, NULL, n, j->length - 1 + at + n) ? n : 0;
}

static bool decode_drafted(job *j, int32_t gamma, int32_t budget, int32_t eos)
{
    int32_t at = 0;
    if (!lm_truncate(&j->m, 1, 0) || !start(j, 1)) return false;
    for (int32_t number = 0; at < budget && (at == 0 || j->plain[at - 1] != eos); number++) {
        const int32_t n = step(j, at, number, gamma, budget, eos);
        if (n == 0) return false;
        at += n;
    }
    return true;
}

/* ---- The case. ------------------------------------------------------------------- */

static void make_prompt(job *j, const check_case *c)
{
    const char *text = lm_prompts[c->model.prompt];
    const bool bytes = j->m.V == 258; /* the trained pair: bytes, and 256 to begin with */
    j->length = bytes ? PROMPT : 20 + probe_below(&j->rng, 30);
    for (int32_t i = 0; i < j->length; i++)
        j->prompt[i] = !bytes   ? probe_below(&j->rng, j->m.V)
                       : i == 0 ? 256
                                : (unsigned char)text[i - 1];
}

static bool all_gammas(job *j)
{
    if (!decode_plain(j)) return false;
    const int32_t stride = j->brief ? 3 : 1;
    for (int32_t gamma = GAMMAS; gamma >= 1; gamma -= stride) {
        const int32_t budget = j->drafts == BUDGET_INSIDE ? BUDGET - 1 - gamma % 3 : BUDGET;
        const int32_t eos = j->drafts == EOS_INSIDE ? j->plain[5 + 3 * gamma] : -1;
        if (!decode_drafted(j, gamma, budget, eos)) return false;
    }
    return true;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    job j = {.rng = check_seed(x, c, 0), .drafts = c->model.kind};
    j.brief = c->model.folder == TARGET && x->level == LEVEL_SMOKE;
    j.bits = client_claims(x->iut)->lm_arithmetic != 0;
    if (lm_open(&j.m, x, r, models[c->model.folder], 3, PROMPT + BUDGET + 8, 16)) {
        j.m.clause = "GRD-03";
        make_prompt(&j, c);
        j.logits = lm_floats(&j.m, BUDGET + 1);
        j.got = lm_floats(&j.m, 16);
        j.alone = lm_floats(&j.m, 1);
        if (j.logits && j.got && j.alone && all_gammas(&j)) {
            if (j.near_ties)
                result_set(r, STATE_ACCEPTABLE, "near-tie: %s", j.tie);
            else
                result_set(r, STATE_PASS, "gamma %s: %d tokens each, the same%s",
                           j.brief ? "2, 5, 8" : "1 to 8", (int)BUDGET, j.bits ? " bits" : "");
        }
        lm_conclude(&j.m);
    }
    free(j.logits);
    free(j.got);
    free(j.alone);
    lm_close(&j.m);
}

const check check_lm_greedy = {
    .name = "lm.greedy",
    .clauses = "TREE-03 TREE-05 TREE-06 KV-02 KV-03 KV-07 GRD-03 LAY-06",
    .summary = "greedy decoding of a model gives the same tokens and bits with drafts",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
