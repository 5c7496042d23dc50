/* engine.greedy - an engine at temperature 0: with drafts the tokens are those of its own plain
 * decoding, for every gamma, end and budget, and whatever else is in the call (LAY-07). Plain
 * decoding is done alone, request by request.
 *
 * A difference is put to the control of CLM-08: plain decoding once more, from the prompt and
 * the tokens before the difference, which the engine then reads as one prompt. If that gives
 * the other token too, the engine's arithmetic is of two minds there, unless it promised
 * better. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine.h"
#include "conformance/oracle/folder.h"

enum { GAMMA, END, LIMIT, BATCH, KINDS };
static const char *const kind_name[KINDS] = {"gamma", "eos", "budget", "batch"};
enum { PROMPTS = 6, BUDGET = 40, GAMMAS = 8 };

static void plan(check_plan *p, check_level level)
{
    static const int32_t smoke_kinds[PAIRS] = {KINDS, END + 1, GAMMA + 1};
    for (int32_t pair = 0; pair < PAIRS; pair++)
        for (int32_t kind = 0; kind < KINDS; kind++) {
            if (level == LEVEL_SMOKE && kind >= smoke_kinds[pair]) continue;
            check_case *c = plan_case(p, &check_engine_greedy, "%s-%s", engine_pair_name[pair],
                                      kind_name[kind]);
            c->V = pair;
            c->variant = kind;
            c->gamma = GAMMAS;
            c->n = pair == PAIR_TRAINED ? 6000 : 200;
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return engine_claimed(tested, (engine_pair)c->V, 0, why, size);
}

typedef struct {
    engine e;
    uint64_t rng;
    int32_t gammas, stride; /* 1, 1 + stride, ... to gammas */
    int32_t prompts;
    engine_prompt prompt[PROMPTS];
    int32_t plain[PROMPTS][BUDGET];
    int32_t out[PROMPTS * BUDGET], length[PROMPTS];
    int32_t near_ties;
    char tie[200]; /* the first */
} job;

/* ---- Triage. --------------------------------------------------------------------- */

/* How far the largest logit stands above the next after these tokens, by chapter 1; NaN: the
 * oracle cannot say. */
static double top_gap(const job *j, const engine_prompt *p)
{
    char why[200];
    const int32_t V = engine_pair_V[j->e.pair];
    oracle_folder *folder = oracle_folder_open(j->e.target.folder, why, sizeof why);
    const oracle_model *m = folder ? oracle_folder_model(folder) : NULL;
    oracle_path *path = m ? oracle_path_new(&oracle_fast, m, p->n) : NULL;
    float *row = malloc((size_t)V * sizeof *row);
    double best = NAN, next = NAN;
    if (path && row) {
        for (int32_t t = 0; t < p->n; t++)
            oracle_path_step(path, p->token[t], t + 1 == p->n ? row : NULL);
        best = next = -INFINITY;
        for (int32_t t = 0; t < V; t++)
            if ((double)row[t] > best)
                next = best, best = (double)row[t];
            else if ((double)row[t] > next)
                next = (double)row[t];
    }
    free(row);
    oracle_path_free(path);
    oracle_folder_close(folder);
    return best - next;
}

/* Token `at` of request i came out otherwise. True: a near-tie, go on. */
static bool triage(job *j, const char *what, int32_t i, int32_t at, int32_t got)
{
    const iut_claims *m = client_claims(j->e.x->iut);
    const engine_request q = {.k = 1, .eos = -1, .sampling = {0, 0, 1, 0}};
    const int32_t due = j->plain[i][at];
    int32_t alone, one;
    engine_prompt whole = j->prompt[i];
    memcpy(whole.token + whole.n, j->plain[i], (size_t)at * sizeof *whole.token);
    whole.n += at;
    const double gap = top_gap(j, &whole);
    if (m->lm_arithmetic || m->greedy_identical) {
        result_set(j->e.r, STATE_FAIL,
                   "%s: request %d, token %d: %d where plain decoding has %d (gap of the two "
                   "largest logits %.3g), though %s is claimed",
                   what, (int)i, (int)at, (int)got, (int)due, gap,
                   m->lm_arithmetic ? "lm_arithmetic" : "greedy_identical");
        return false;
    }
    if (!engine_generate(&j->e, &q, &whole, 1, &alone, &one)) return false;
    if (alone == got) {
        if (j->near_ties++ == 0)
            snprintf(j->tie, sizeof j->tie,
                     "%s: request %d, token %d is %d or %d, also without drafts (gap %.3g)",
                     what, (int)i, (int)at, (int)got, (int)due, gap);
        return true;
    }
    result_set(j->e.r, STATE_FAIL,
               "%s: request %d, token %d: %d where plain decoding has %d (gap %.3g), and plain "
               "decoding from the tokens before it has %d: the engine's logic did it",
               what, (int)i, (int)at, (int)got, (int)due, gap, (int)alone);
    return false;
}

/* ---- Comparisons. ---------------------------------------------------------------- */

/* One call for the requests order[0..n-1]; each must be its plain stream, up to its end. */
static bool same(job *j, const engine_request *q, const int32_t *order, int32_t n,
                 const char *what)
{
    engine_prompt ordered[PROMPTS] = {0};
    for (int32_t i = 0; i < n; i++) ordered[i] = j->prompt[order[i]];
    if (!engine_generate(&j->e, q, ordered, n, j->out, j->length)) return false;
    for (int32_t i = 0; i < n; i++)
        for (int32_t t = 0; t < j->length[i]; t++) {
            const int32_t got = j->out[i * q->k + t];
            if (got == j->plain[order[i]][t]) continue;
            if (!triage(j, what, order[i], t, got)) return false;
            break; /* another stream from here on */
        }
    return true;
}

static const int32_t in_order[PROMPTS] = {0, 1, 2, 3, 4, 5};

static bool batches(job *j, engine_request *q)
{
    static const int32_t reversed[PROMPTS] = {5, 4, 3, 2, 1, 0}, twins[PROMPTS] = {2, 2, 0, 2},
                         some[PROMPTS] = {3, 1};
    char what[60];
    q->eos = j->plain[0][BUDGET / 3]; /* some end early, some do not */
    for (q->gamma = 0; q->gamma <= 4 && q->gamma <= j->gammas; q->gamma += 4) {
        snprintf(what, sizeof what, "gamma %d, several requests", (int)q->gamma);
        if (!same(j, q, in_order, PROMPTS, what) || !same(j, q, reversed, PROMPTS, what) ||
            !same(j, q, twins, 4, what) || !same(j, q, some, 2, what))
            return false;
    }
    return true;
}

static bool with_gamma(job *j, engine_request *q, int32_t kind)
{
    char what[60];
    snprintf(what, sizeof what, "gamma %d", (int)q->gamma);
    if (kind == GAMMA) return same(j, q, in_order, j->prompts, what);
    if (kind == END) {
        q->eos = j->plain[q->gamma % j->prompts][3 + 3 * q->gamma];
        snprintf(what, sizeof what, "gamma %d, eos %d", (int)q->gamma, (int)q->eos);
        return same(j, q, in_order, j->prompts, what);
    }
    const int32_t budget[] = {1, q->gamma, q->gamma + 1, BUDGET - 1 - q->gamma % 3};
    for (int32_t i = 0; i < 4; i++) {
        q->k = budget[i];
        snprintf(what, sizeof what, "gamma %d, budget %d", (int)q->gamma, (int)q->k);
        if (!same(j, q, in_order, j->prompts, what)) return false;
    }
    return true;
}

static bool all(job *j, int32_t kind)
{
    engine_request q = {.k = BUDGET, .eos = -1, .sampling = {0, 0, 1, 0}};
    for (int32_t i = 0; i < j->prompts; i++) {
        engine_make_prompt(&j->e, i, &j->rng, &j->prompt[i]);
        if (!engine_generate(&j->e, &q, &j->prompt[i], 1, j->plain[i], j->length)) return false;
    }
    if (kind == BATCH) return batches(j, &q);
    for (q.gamma = j->gammas; q.gamma >= 1; q.gamma -= j->stride, q.k = BUDGET)
        if (!with_gamma(j, &q, kind)) return false;
    return true;
}

static void run(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    const bool brief = x->level == LEVEL_SMOKE && c->V != PAIR_FEW;
    job j = {.rng = check_seed(x, c, 0),
             .gammas = c->gamma,
             .stride = brief ? 5 : 1,
             .prompts = !brief              ? PROMPTS
                        : c->V == PAIR_SELF ? 3
                                            : 1};
    if (!engine_open(&j.e, x, r, (engine_pair)c->V) || !all(&j, c->variant)) return;
    if (j.near_ties)
        result_set(r, STATE_ACCEPTABLE, "near-tie: %s", j.tie);
    else
        result_set(r, STATE_PASS, "%d prompts, %lld streams: the tokens of plain decoding",
                   (int)j.prompts, (long long)r->compared);
}

const check check_engine_greedy = {
    .name = "engine.greedy",
    .clauses = "LAY-07 CLM-08 GRD-03 STOP-01 STOP-02 STOP-03 KV-08 LAY-01",
    .summary = "an engine's greedy tokens are its own plain decoding's, drafts or not",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
