/* engine_law_rates - false alarms and detection of engine.law, through the check's own run().
 *
 *   engine_law_rates [--runs N] [--kills N]
 *
 * runs: of each cell, against an engine that draws from the target's law (default 50); kills:
 * of each copying engine (default 6). Exit 1 if a rate is out of bounds.
 *
 * The engine under test is a table of functions in this process. It walks the oracle's network
 * over every prefix once a run, and draws from these rows. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine/engine.h"
#include "conformance/checks/frame/plan.h"
#include "conformance/checks/law/law.h"
#include "conformance/oracle/arithmetic/folder.h"
#include "conformance/oracle/law/served.h"
#include "conformance/stats/power.h"

/* ---- The engine. ------------------------------------------------------------------ */

enum { WORDS = 6, MOST_K = 4, MOST_CONTEXTS = 64, BACK = 8 };

/* What it does wrong: with this probability a request gives the answer of the request `lag`
 * places before it; the temperature is so many times as high. */
static struct {
    double copies;
    int32_t lag;
    float warm;
} fault = {.warm = 1};

static struct {
    bool ready;
    int32_t k, contexts;
    double p[MOST_CONTEXTS][WORDS];
    int32_t next[MOST_CONTEXTS][WORDS];
} law;

static law_random noise;
static int32_t answer[BACK][MOST_K]; /* of request m at m mod 8 */
static int64_t requests;

static void fail(const char *what)
{
    fprintf(stderr, "engine_law_rates: %s\n", what);
    exit(3);
}

/* Walks every prefix behind `token`, the last one of `depth` tokens; its context. */
static int32_t walk(oracle_path *path, const oracle_sampling *s, int32_t at, int32_t token,
                    int32_t depth)
{
    const int32_t c = law.contexts++;
    float row[WORDS];
    if (c == MOST_CONTEXTS) fail("a cell has more prefixes than planned");
    oracle_path_step(path, token, row);
    if (oracle_served64(row, WORDS, s, NULL, law.p[c], NULL, 0) != ORACLE_OK) fail("a bad row");
    for (int32_t x = 0; depth + 1 < law.k && x < WORDS; x++) {
        if (law.p[c][x] == 0) continue;
        law.next[c][x] = walk(path, s, at + 1, x, depth + 1);
        oracle_path_cut(path, at + 1);
    }
    return c;
}

static void learn(const iut_generate_batch *b)
{
    char why[300];
    oracle_folder *folder = oracle_folder_open(b->target, why, sizeof why);
    if (!folder) fail(why);
    const int32_t n = b->prompt_count[0];
    const oracle_sampling s = {b->sampling.temperature * fault.warm, b->sampling.top_k, b->sampling.top_p,
                               b->sampling.min_p};
    oracle_path *path = oracle_path_new(&oracle_fast, oracle_folder_model(folder), n + b->k);
    if (!path || b->k > MOST_K) fail("a cell is larger than planned");
    for (int32_t i = 0; i + 1 < n; i++) oracle_path_step(path, b->prompt[i], NULL);
    law.k = b->k, law.contexts = 0;
    walk(path, &s, n - 1, b->prompt[n - 1], 0);
    law.ready = true;
    oracle_path_free(path);
    oracle_folder_close(folder);
}

static int32_t draw(const double *p)
{
    double u = law_unit(&noise, 53);
    int32_t last = 0;
    for (int32_t x = 0; x < WORDS; x++) {
        if (p[x] == 0) continue;
        if (u < p[x]) return x;
        u -= p[x];
        last = x;
    }
    return last;
}

static void decode(int32_t *out)
{
    for (int32_t i = 0, c = 0; i < law.k; c = law.next[c][out[i++]]) out[i] = draw(law.p[c]);
}

static iut_status generate(iut *x, iut_generate_batch *b)
{
    (void)x;
    if (!law.ready) learn(b); /* the check asks for one prompt in all calls */
    for (int32_t i = 0; i < b->n; i++, requests++) {
        int32_t *now = answer[requests % BACK];
        const size_t size = (size_t)law.k * sizeof *now;
        if (fault.copies > 0 && requests >= fault.lag && law_unit(&noise, 53) < fault.copies)
            memmove(now, answer[(requests - fault.lag) % BACK], size);
        else
            decode(now);
        memcpy(b->out + (int64_t)i * b->k, now, size);
        b->out_len[i] = b->k;
    }
    return IUT_OK;
}

static iut_status claims(iut *x, iut_claims *c)
{
    (void)x;
    *c = (iut_claims){.size = sizeof *c,
                      .name = "null",
                      .version = "1",
                      .device = "cpu",
                      .uniforms = IUT_UNIFORMS_OWN,
                      .uniform_bits = 53,
                      .rule = IUT_RULE_TOKEN,
                      .arithmetic = IUT_ARITH_F64,
                      .methods = IUT_JACOBI};
    return IUT_OK;
}

static iut *create(const char *options, char *error, size_t error_size)
{
    (void)options, (void)error, (void)error_size;
    return (iut *)&law;
}

static void destroy(iut *x)
{
    (void)x;
}

static const char *last_error(iut *x)
{
    (void)x;
    return "";
}

static const iut_api api = {.abi = IUT_ABI,
                            .size = sizeof(iut_api),
                            .create = create,
                            .destroy = destroy,
                            .last_error = last_error,
                            .claims = claims,
                            .generate = generate};

/* ---- Runs. ------------------------------------------------------------------------ */

static client *tested;

static const check_case *planned(const check_plan *plan, const char *id)
{
    for (size_t i = 0; i < plan->count; i++)
        if (strcmp(plan->cases[i]->id, id) == 0) return plan->cases[i];
    fail(id);
    return NULL;
}

/* Ten seeds share the suite's seed, and so prompt and law; what the engine draws is each
 * one's own. */
enum { SHARED = 10 };

/* One run of n requests whose e-value fails at `line`. */
static check_result run(const check_case *plan, int64_t n, uint64_t seed, double line)
{
    check_case c = *plan;
    check_result r = {.state = STATE_PASS};
    c.n = n;
    static uint64_t world;
    static const check_case *cell;
    law.ready = law.ready && cell == plan && world == seed / SHARED;
    world = seed / SHARED, cell = plan;
    requests = 0;
    law_seed(&noise, seed ^ 0x6e756c6c);
    const check_context x = {.iut = tested,
                             .level = LEVEL_SMOKE,
                             .seed = world,
                             .tables_total = c.tables,
                             .log_e_fail = line,
                             .vectors = VECTORS};
    check_engine_law.run(&c, &x, &r);
    if (r.state != STATE_PASS && r.state != STATE_FAIL) fail(r.detail);
    if (r.log_e < line && r.compared != n) fail("a run ended early");
    return r;
}

/* Is the rate within nominal, as far as that many runs can tell? The seeds are fixed: what
 * passes once passes always. */
static bool within(const char *what, int32_t alarms, int32_t runs, double nominal)
{
    const bool ok = st_binom_log_sf(alarms, runs, nominal) > log(1e-4);
    printf("    %-22s %5d of %d: %.5f, nominal %g%s\n", what, (int)alarms, (int)runs,
           (double)alarms / runs, nominal, ok ? "" : "  TOO MANY");
    return ok;
}

/* Alarms of both gates at a nominal rate: E reaches 1/alpha at a checkpoint; the least of the
 * tables' p is below alpha/T. A run that crosses the lower line is run again to the next. */
static bool null_rates(const check_case *c, int64_t n, int32_t runs)
{
    static const double nominal[] = {0.01, 0.001};
    int32_t by_e[2] = {0}, by_table[2] = {0};
    double mean = 0;
    for (int32_t i = 0; i < runs; i++) {
        check_result r = run(c, n, (uint64_t)i + 1, log(1 / nominal[0]));
        for (int a = 0; a < 2 && r.log_e >= log(1 / nominal[a]); a++) {
            by_e[a]++;
            r = run(c, n, (uint64_t)i + 1, a == 0 ? log(1 / nominal[1]) : 1e300);
        }
        for (int a = 0; a < 2; a++) by_table[a] += r.log_p < log(nominal[a] / c->tables);
        mean += exp(r.log_e) / runs;
    }
    printf("%s, %lld requests: mean E %.3f\n", c->id, (long long)n, mean);
    bool ok = true;
    for (int a = 0; a < 2; a++) {
        ok &= within("e-process", by_e[a], runs, nominal[a]);
        ok &= within("chi-square, 4 tables", by_table[a], runs, nominal[a]);
    }
    return ok;
}

static int by_size(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

enum { MOST_KILLS = 300 };

/* How many runs a copying engine does not survive, at the line of a run of 82 cases, and the
 * median of the requests that they took; each run has a prompt of its own. Due: as many of 30
 * must die; 0: what is seen is told, not promised. */
static bool kills(const check_case *c, int64_t n, double copies, int32_t lag, int32_t runs,
                  int32_t due)
{
    int64_t took[MOST_KILLS];
    int32_t dead = 0;
    fault.copies = copies, fault.lag = lag;
    for (int32_t i = 0; i < runs; i++) {
        const check_result r = run(c, n, 1000000 + SHARED * (uint64_t)i, log(1e6 * 82));
        took[i] = r.state == STATE_FAIL ? r.compared : INT64_MAX;
        dead += r.state == STATE_FAIL;
    }
    fault.copies = 0;
    const bool ok = 30 * dead >= due * runs;
    qsort(took, (size_t)runs, sizeof *took, by_size);
    printf("%s, %lld requests, %g of them copy the one %d before: %d of %d die", c->id,
           (long long)n, copies, (int)lag, (int)dead, (int)runs);
    if (took[runs / 2] < INT64_MAX) printf(", median after %lld", (long long)took[runs / 2]);
    printf("%s\n", ok ? "" : "  TOO FEW");
    return ok;
}

/* Does the check tell the cause, and its worst cells (STAT-08)? */
static bool tells(const check_case *c, double copies, float warm, const char *cause)
{
    fault.copies = copies, fault.lag = 1, fault.warm = warm;
    const check_result r = run(c, 20000, 3000000, log(1e6 * 82));
    fault.copies = 0, fault.warm = 1;
    const bool ok = r.state == STATE_FAIL && strstr(r.detail, "; worst: token ") && strstr(r.detail, cause);
    printf("%s: %s%s\n", c->id, r.detail, ok ? "" : "  WRONG CAUSE");
    return ok;
}

int main(int argc, char **argv)
{
    client_failure unopened;
    int32_t runs = 50, dying = 6;
    setvbuf(stdout, NULL, _IOLBF, 0); /* many runs take long */
    check_plan plan;
    const check *const list[] = {&check_engine_law, NULL};
    for (int i = 1; i < argc; i += 2) {
        int32_t *option = strcmp(argv[i], "--runs") == 0    ? &runs
                          : strcmp(argv[i], "--kills") == 0 ? &dying
                                                            : NULL;
        if (option && i + 1 < argc) *option = (int32_t)atoi(argv[i + 1]);
        if (option && *option > 0 && dying <= MOST_KILLS) continue;
        fprintf(stderr, "usage: engine_law_rates [--runs N] [--kills N, at most %d]\n",
                (int)MOST_KILLS);
        return 2;
    }
    tested = client_open_table(&api, "", &unopened);
    if (!tested) fail(unopened.text);
    if (!plan_all(&plan, list, LEVEL_SMOKE)) fail("the cases cannot be planned");
    const check_case *six = planned(&plan, "engine.law/few-g0"),
                     *three = planned(&plan, "engine.law/few-jacobi-m3-top3");
    bool ok = null_rates(six, 6000, runs);
    ok &= null_rates(three, 6000, runs);
    for (int32_t lag = 1; lag <= 3; lag += 2) {
        ok &= kills(six, 20000, 0.05, lag, dying, 28);
        ok &= kills(three, 20000, 0.05, lag, dying, 28);
        ok &= kills(three, 20000, 0.08, lag, dying, 28);
        ok &= kills(six, 4000, 0.05, lag, dying, 0); /* smoke's largest n */
        ok &= kills(six, 4000, 0.15, lag, dying, 28);
    }
    ok &= tells(six, 0, 1.2f, "likeliest cause: temperature 1.");
    law.ready = false;
    ok &= tells(six, 0.2, 1, "likeliest cause: none listed; all tokens together fall");
    plan_free(&plan);
    client_close(tested);
    return ok ? 0 : 1;
}
