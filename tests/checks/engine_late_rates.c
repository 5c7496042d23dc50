/* engine_late_rates - false alarms and detection of engine.late, through the check's own run().
 *
 *   engine_late_rates [--runs N]
 *
 * runs: of each cell, against an engine that draws from the target's law (default 20). Exit 1
 * if a rate or the mean of E is out of bounds, or a fault is not seen.
 *
 * The engine under test is a table of functions in this process. It walks the oracle's network
 * along every stream, and draws from its rows. */
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

enum { WORDS = 6, POSITIONS = 900, LENGTH = 200, LATE = 40, CYCLE = 24, SLIDE = 16 };

/* What it does wrong. */
typedef enum {
    NOTHING,
    LATE_TEMPERATURE, /* from the 41st token on T is 1.6 times what was asked */
    CYCLING_UNIFORMS, /* those of the position modulo 24 */
    NEIGHBOUR,        /* one request in two takes the uniforms of the request before */
    SLIDING,          /* each has those of the request before, from their 17th on, then its own */
    FAULTS
} fault;
static const char *const fault_name[FAULTS] = {"", "late temperature", "cycling uniforms",
                                               "the neighbour's uniforms", "sliding uniforms"};

static fault wrong;
static law_random noise;
static oracle_folder *folder;
static oracle_path *path;
static int32_t walked[POSITIONS], at; /* what the path holds */
static double uniform[LENGTH];        /* of the request before, then of this one */

static void fail(const char *what)
{
    fprintf(stderr, "engine_late_rates: %s\n", what);
    exit(3);
}

static void draw_uniforms(void)
{
    const bool stay = wrong == NEIGHBOUR && law_unit(&noise, 53) < 0.5;
    for (int32_t t = 0; t < LENGTH; t++) {
        const double fresh = law_unit(&noise, 53);
        if (wrong == SLIDING && t + SLIDE < LENGTH)
            uniform[t] = uniform[t + SLIDE];
        else if (!stay)
            uniform[t] = wrong == CYCLING_UNIFORMS && t >= CYCLE ? uniform[t - CYCLE] : fresh;
    }
}

static int32_t draw(const double *p, double u)
{
    int32_t last = 0;
    for (int32_t x = 0; x < WORDS; x++) {
        if (p[x] == 0) continue;
        if (u < p[x]) return x;
        u -= p[x];
        last = x;
    }
    return last;
}

/* The row behind a text, from where its path parts from the last one. */
static void row_behind(const int32_t *text, int32_t n, const oracle_sampling *s, double *p)
{
    float logits[WORDS];
    int32_t same = 0;
    while (same < at && same + 1 < n && walked[same] == text[same]) same++;
    oracle_path_cut(path, same);
    for (at = same; at < n; at++)
        oracle_path_step(path, walked[at] = text[at], at + 1 == n ? logits : NULL);
    if (oracle_served64(logits, WORDS, s, NULL, p, NULL, 0) != ORACLE_OK) fail("a bad row");
}

static void open_model(const char *name)
{
    char why[300];
    if (path) return;
    folder = oracle_folder_open(name, why, sizeof why);
    if (!folder) fail(why);
    path = oracle_path_new(&oracle_fast, oracle_folder_model(folder), POSITIONS);
    if (!path) fail("no memory");
}

static iut_status generate(iut *x, iut_generate_batch *b)
{
    int32_t text[POSITIONS], begin = 0;
    double p[WORDS];
    (void)x;
    open_model(b->target);
    for (int32_t i = 0; i < b->n; begin += b->prompt_count[i++]) {
        int32_t n = b->prompt_count[i], *out = b->out + (int64_t)i * b->k;
        memcpy(text, b->prompt + begin, (size_t)n * sizeof *text);
        draw_uniforms();
        for (int32_t t = 0; t < b->k; t++) {
            const bool warm = wrong == LATE_TEMPERATURE && t >= LATE;
            const oracle_sampling s = {b->sampling.temperature * (warm ? 1.6f : 1),
                                       b->sampling.top_k, b->sampling.top_p, b->sampling.min_p};
            row_behind(text, n, &s, p);
            text[n++] = out[t] = draw(p, uniform[t]);
        }
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
                      .arithmetic = IUT_ARITH_F64};
    return IUT_OK;
}

static iut *create(const char *options, char *error, size_t error_size)
{
    (void)options, (void)error, (void)error_size;
    return (iut *)&noise;
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

static check_result run(const check_plan *plan, const char *id, int64_t n, uint64_t seed,
                        double line)
{
    check_result r = {.state = STATE_PASS};
    size_t i = 0;
    while (i < plan->count && strcmp(plan->cases[i]->id, id) != 0) i++;
    if (i == plan->count) fail(id);
    check_case c = *plan->cases[i];
    c.n = n;
    law_seed(&noise, seed ^ 0x6c617465);
    const check_context x = {.iut = tested,
                             .level = LEVEL_SMOKE,
                             .seed = seed,
                             .log_e_fail = line,
                             .vectors = VECTORS};
    check_engine_late.run(&c, &x, &r);
    if (r.state != STATE_PASS && r.state != STATE_FAIL) fail(r.detail);
    return r;
}

/* Alarms at a nominal rate, and the mean of E: at most 1, as far as that many runs can tell. */
static bool null_rates(const check_plan *plan, const char *id, int32_t runs)
{
    static const double alpha = 0.05;
    int32_t alarms = 0;
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < runs; i++) {
        const check_result r = run(plan, id, 2500, (uint64_t)i + 1, log(1 / alpha));
        alarms += r.state == STATE_FAIL;
        sum += exp(r.log_e), squares += exp(2 * r.log_e);
    }
    const double mean = sum / runs, error = sqrt((squares / runs - mean * mean) / runs);
    const bool ok = st_binom_log_sf(alarms, runs, alpha) > log(1e-4) && mean <= 1 + 3 * error;
    printf("%s: %d of %d alarms at %g, mean E %.3f, standard error %.3f%s\n", id, (int)alarms,
           (int)runs, alpha, mean, error, ok ? "" : "  TOO MANY");
    return ok;
}

/* At the line of a run of 90 cases; the cause is told, too (STAT-08). Uniforms that come again spoil no token's
 * law. */
static bool kills(const check_plan *plan, const char *id, fault f)
{
    wrong = f;
    const check_result r = run(plan, id, 20000, 1, log(1e6 * 90));
    wrong = NOTHING;
    const char *cause = f == LATE_TEMPERATURE ? "likeliest cause: temperature 1."
                                              : "none listed; all tokens together fall";
    const bool named = strstr(r.detail, cause) != NULL;
    printf("%s, %s: %s%s\n", id, fault_name[f], r.detail, named ? "" : "  WRONG CAUSE");
    return r.state == STATE_FAIL && named;
}

int main(int argc, char **argv)
{
    static const char *const plain = "engine.late/few-g0-T1.2", *const drafted =
                                                                    "engine.late/few-g5-top4";
    const check *const list[] = {&check_engine_late, NULL};
    client_failure unopened;
    check_plan plan;
    const int32_t runs = argc == 3 && strcmp(argv[1], "--runs") == 0 ? (int32_t)atoi(argv[2])
                         : argc == 1                                 ? 20
                                                                     : 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* many runs take long */
    if (runs < 1) {
        fprintf(stderr, "usage: engine_late_rates [--runs N]\n");
        return 2;
    }
    tested = client_open_table(&api, "", &unopened);
    if (!tested) fail(unopened.text);
    if (!plan_all(&plan, list, LEVEL_FULL)) fail("the cases cannot be planned");
    bool ok = null_rates(&plan, plain, runs);
    ok &= null_rates(&plan, drafted, runs);
    for (int f = LATE_TEMPERATURE; f < FAULTS; f++) ok &= kills(&plan, plain, (fault)f);
    plan_free(&plan);
    client_close(tested);
    oracle_path_free(path);
    oracle_folder_close(folder);
    return ok ? 0 : 1;
}
