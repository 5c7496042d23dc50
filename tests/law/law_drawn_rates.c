/* law_drawn_rates - what the drawn law cases find, whom they acquit, and how often they err, through
 * the runner itself.
 *
 *   law_drawn_rates [--seeds N] [--acquit N] [--runs N] [--samples N] [--only TEXT]
 *
 * seeds: of each fault (default 1), all of which must end in FAIL; acquit: seeds of each implementation
 * that is right (default 1); runs: at alpha 0.05 with few streams, for the rate of false alarms and the
 * mean of the e-values (default 10); samples: of the other cases (default 0: all). Exit 1 if anything is otherwise. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/law/law.h"
#include "conformance/stats/power.h"
#include "conformance/suite/run.h"
#include "tests/law/rates.h"
#include "tests/law/sampler_iut.h"

static const check *const checks[] = {&check_law_verify, &check_law_stream, &check_law_draw,
                                      &check_law_calls, &check_law_long, NULL};

/* ln E that fails a case of a run of 160 statistical ones, some of them pooled. */
static const double LINE = 19.6;

static rates_options asked = {.seeds = 1, .acquit = 1, .runs = 10, .only = ""};

static void become(sampler_fault fault, uint8_t uniforms, uint8_t rule, uint64_t noise)
{
    sampler_settings = (struct sampler_settings){.fault = fault,
                                                 .uniforms = uniforms,
                                                 .rule = rule,
                                                 .input = IUT_FROM_PROBS,
                                                 .arithmetic = IUT_ARITH_F64,
                                                 .uniform_bits = 53,
                                                 .rng = noise};
}

static void run(const char *glob, uint64_t seed, double alpha, int64_t samples, run_report *report)
{
    static run_options o;
    static const char *only[1];
    only[0] = glob;
    o = (run_options){.api = sampler_api(),
                      .checks = checks,
                      .level = LEVEL_SMOKE,
                      .seed = seed,
                      .alpha = alpha,
                      .samples = samples,
                      .jobs = 1,
                      .only = only,
                      .only_count = 1};
    run_suite(&o, report);
}

/* -- Faults ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    sampler_fault fault;
    const char *glob; /* of what runs */
    const char *part; /* of the ids of the cases that must see it; NULL: any */
} faults[] = {
    {"small batches, verify", SMALL_BATCHES, "law.verify/drawn/*", NULL},
    {"small batches, stream", SMALL_BATCHES, "law.stream/drawn/*", NULL},
    {"small batches, draw", SMALL_BATCHES, "law.draw/drawn/*", NULL},
    {"a batch of one, verify", ALONE, "law.verify/drawn/*", NULL},
    {"a batch of one, stream", ALONE, "law.stream/drawn/*", NULL},
    {"a batch of one, draw", ALONE, "law.draw/drawn/*", NULL},
    {"last row, verify", LAST_ROW, "law.verify/drawn/*", NULL},
    {"last row, stream", LAST_ROW, "law.stream/drawn/*", NULL},
    {"last row, draw", LAST_ROW, "law.draw/drawn/*", NULL},
    {"gamma 3, verify", GAMMA_3, "law.verify/drawn/*", NULL},
    {"gamma 3, stream", GAMMA_3, "law.stream/drawn/*", NULL},
    {"gamma 5, verify", GAMMA_5, "law.verify/drawn/*", NULL},
    {"gamma 5, stream", GAMMA_5, "law.stream/drawn/*", NULL},
    {"gamma 7, verify", GAMMA_7, "law.verify/drawn/*", NULL},
    {"gamma 7, stream", GAMMA_7, "law.stream/drawn/*", NULL},
    {"gamma above 8, verify", GAMMA_LARGE, "law.verify/drawn/*", NULL},
    {"gamma above 8, stream", GAMMA_LARGE, "law.stream/drawn/*", NULL},
    {"tail of 4, verify", TAIL_4, "law.verify/drawn/*", NULL},
    {"tail of 4, stream", TAIL_4, "law.stream/drawn/*", NULL},
    {"tail of 4, draw", TAIL_4, "law.draw/drawn/*", NULL},
    {"tail of 8, stream", TAIL_8, "law.stream/drawn/*", NULL},
    {"tail of 32, verify", TAIL_32, "law.verify/drawn/*", NULL},
    {"tail of 128, verify", TAIL_128, "law.verify/drawn/*", NULL},
    {"tail of 128, stream", TAIL_128, "law.stream/drawn/*", NULL},
    {"tail of 128, draw", TAIL_128, "law.draw/drawn/*", NULL},
    {"from position 6 on", LATE_6, "law.long/drawn/*", NULL},
    {"from position 64 on", LATE_64, "law.long/drawn/*", NULL},
    {"uniforms again after 37", REUSES_37, "law.long/drawn/*", NULL},
    {"the same, with drafts", REUSES_37, "law.long/drawn/*", "/1-stream-"},
    {"counter of 7 bits", WRAPS_128, "law.long/drawn/*", NULL},
    {"counter of 8 bits", WRAPS_256, "law.long/drawn/*", NULL},
    {"a window of 200", WINDOW, "law.long/drawn/*", NULL},
    {"uniforms slide by 5", SLIDES_5, "law.long/drawn/*", "/0-plain-stream-"},
    {"the same, with drafts", SLIDES_5, "law.long/drawn/*", "/1-stream-"},
    {"first uniform shared", FIRST_SHARED, "law.calls/drawn/*", NULL},
    {"every fourth copies", COPIES_SECOND, "law.calls/drawn/*", NULL},
    {"cold start, stream", COLD_START, "law.calls/drawn/*stream-*", "-cold-"},
    {"cold start, verify", COLD_START, "law.calls/drawn/*verify-*", "-cold-"},
    {"cold start, draw", COLD_START, "law.calls/drawn/*draw-*", "-cold-"},
    {"misses an end", MISSES_EOS, "law.stream/drawn/*", NULL},
    {"never ends", NEVER_ENDS, "law.stream/drawn/*", NULL},
};

static bool kills(size_t i, int32_t seeds)
{
    int32_t dead = 0;
    double least = INFINITY;
    for (int32_t seed = 1; seed <= seeds; seed++) {
        run_report report;
        double most = -INFINITY;
        become(faults[i].fault, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, (uint64_t)seed * 7919);
        run(faults[i].glob, (uint64_t)seed, 1e-300, asked.samples, &report);
        for (size_t k = 0; k < report.planned; k++) {
            const run_case *c = &report.cases[k];
            if (faults[i].part && !strstr(c->plan->id, faults[i].part)) continue;
            most = fmax(most, c->result.log_e);
            if (c->result.state == STATE_FAIL) most = fmax(most, 1e3); /* a hard fact */
        }
        dead += most >= LINE;
        least = fmin(least, most);
        if (report.tally[STATE_ERROR] > 0) printf("%s\n", report.cases[0].result.detail);
        run_report_free(&report);
    }
    printf("%-26s %3d of %3d die, least ln E %.1f%s\n", faults[i].name, (int)dead, (int)seeds,
           least, dead == seeds ? "" : "  TOO FEW");
    return dead == seeds;
}

/* -- Right ones -------------------------------------------------------------------- */

static const struct {
    const char *name;
    uint8_t uniforms, rule, arithmetic, bits;
    int32_t max_vocab, max_gamma;
    bool argmax;
} right[] = {
    {"own uniforms", IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_ARITH_F64, 53, 0, 0, false},
    {"supplied uniforms", IUT_UNIFORMS_SUPPLIED, IUT_RULE_TOKEN, IUT_ARITH_F64, 53, 0, 0, false},
    {"seeded uniforms", IUT_UNIFORMS_SEEDED, IUT_RULE_TOKEN, IUT_ARITH_F64, 53, 0, 0, false},
    {"match rule", IUT_UNIFORMS_SEEDED, IUT_RULE_MATCH, IUT_ARITH_F64, 53, 0, 0, false},
    {"match rule, argmax", IUT_UNIFORMS_OWN, IUT_RULE_MATCH, IUT_ARITH_F64, 53, 0, 0, true},
    {"one-hot rule", IUT_UNIFORMS_OWN, IUT_RULE_ONEHOT, IUT_ARITH_F64, 53, 1023, 0, true},
    {"binary32", IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_ARITH_F32, 24, 0, 0, false},
    {"bfloat16 rows", IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_ARITH_BF16, 24, 0, 0, false},
    {"max_gamma 2, max_vocab 64", IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_ARITH_F64, 53, 64, 2, false},
};

static void become_right(size_t i, uint64_t noise)
{
    become(RIGHT, right[i].uniforms, right[i].rule, noise);
    sampler_settings.arithmetic = right[i].arithmetic;
    sampler_settings.single = right[i].arithmetic != IUT_ARITH_F64;
    sampler_settings.uniform_bits = right[i].bits;
    sampler_settings.max_vocab = right[i].max_vocab;
    sampler_settings.max_gamma = right[i].max_gamma;
    sampler_settings.drafts_argmax = right[i].argmax;
}

static bool acquits(size_t i, int32_t seeds)
{
    int32_t passed = 0, cases = 0;
    for (int32_t seed = 1; seed <= seeds; seed++) {
        run_report report;
        become_right(i, (uint64_t)seed * 104729);
        run("law.*/drawn/*", (uint64_t)seed, 1e-6, asked.samples, &report);
        passed += report.exit_code == EXIT_CONFORMANT && report.tally[STATE_NOT_CLAIMED] == 0;
        cases += (int32_t)report.tally[STATE_PASS];
        for (size_t k = 0; k < report.planned; k++)
            if (report.cases[k].result.state != STATE_PASS)
                printf("    %s: %s\n", report.cases[k].plan->id, report.cases[k].result.detail);
        run_report_free(&report);
    }
    printf("%-26s %3d of %3d pass, %d cases%s\n", right[i].name, (int)passed, (int)seeds, (int)cases,
           passed == seeds ? "" : "  TOO FEW");
    return passed == seeds;
}

/* -- The null ---------------------------------------------------------------------- */

enum { KINDS = 40 };
typedef struct {
    char name[40]; /* check and kind of the case */
    int32_t runs, alarms;
    double sum, squares;
} kind;

/* "law.calls/drawn/7/0-plain-stream-V5-g0" is of the kind "law.calls plain-stream". */
static kind *kind_of_case(kind *list, const char *id)
{
    char name[40];
    const char *text = strchr(strstr(id, "/drawn/") + 7, '-') + 1;
    snprintf(name, sizeof name, "%.*s %.*s", (int)strcspn(id, "/"), id,
             (int)(strstr(text, "-V") - text), text);
    int i = 0;
    while (i < KINDS - 1 && list[i].name[0] && strcmp(list[i].name, name) != 0) i++;
    snprintf(list[i].name, sizeof list[i].name, "%s", name);
    return &list[i];
}

static bool null_rates(int32_t runs)
{
    enum { STREAMS = 150 };
    static const double alpha = 0.05;
    static kind list[KINDS];
    bool ok = true;
    for (int32_t n = 1; n <= runs; n++) {
        run_report report;
        become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, (uint64_t)n * 15485863);
        run("law.*/drawn/*", (uint64_t)n, alpha, STREAMS, &report);
        for (size_t k = 0; k < report.planned; k++) {
            const double e = exp(report.cases[k].result.log_e);
            kind *of = kind_of_case(list, report.cases[k].plan->id);
            of->runs++, of->alarms += e >= 1 / alpha, of->sum += e, of->squares += e * e;
        }
        run_report_free(&report);
    }
    for (int i = 0; i < KINDS && list[i].name[0]; i++) {
        const kind *of = &list[i];
        const double mean = of->sum / of->runs;
        const double error = sqrt(fmax(0, of->squares / of->runs - mean * mean) / of->runs);
        const bool fine = mean <= 1 + 3 * error &&
                          st_binom_log_sf(of->alarms, of->runs, alpha) > log(1e-4);
        printf("%-26s %4d runs: %d alarms at %g, mean E %.3f +- %.3f%s\n", of->name, (int)of->runs,
               (int)of->alarms, alpha, mean, error, fine ? "" : "  TOO MANY");
        ok &= fine;
    }
    return ok;
}

int main(int argc, char **argv)
{
    bool ok = true;
    if (!rates_read(&asked, argc, argv)) return 2;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (rates_chosen(&asked, faults[i].name) && asked.seeds > 0) ok &= kills(i, asked.seeds);
    for (size_t i = 0; i < sizeof right / sizeof *right; i++)
        if (rates_chosen(&asked, right[i].name) && asked.acquit > 0) ok &= acquits(i, asked.acquit);
    if (asked.runs > 0 && rates_chosen(&asked, "null")) ok &= null_rates(asked.runs);
    return ok ? 0 : 1;
}
