/* Ledgers of right samplers: how many ever reach 1/alpha at alpha = 0.01, by where their noise comes from.
 * `ledger_rates LEDGERS NIGHTS`. Fails if one whose noise is new each night alarms too often. docs/statistics.md has
 * the figures. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/stats/ledger.h"
#include "conformance/suite/run.h"
#include "tests/law/sampler_iut.h"
#include "tests/random.h"

enum { NIGHTS = 1000 };

typedef struct {
    const char *name;
    uint8_t uniforms;
    bool alike; /* its generator starts alike each night */
} source;

static st_run night(const source *of, int ledger, int n)
{
    static const char *const only[] = {"law.draw/V2-*"};
    run_report r;
    const run_options o = {.iut = "sampler", .api = sampler_api(), .level = LEVEL_SMOKE, .seed = (uint64_t)n + 1,
                           .samples = 2000, .jobs = 1, .only = only, .only_count = 1, .hand_made = true};
    uint64_t start = (uint64_t)ledger * NIGHTS + (of->alike ? 0 : (uint64_t)n);
    sampler_settings = (struct sampler_settings){.fault = RIGHT, .uniforms = of->uniforms, .rule = IUT_RULE_TOKEN,
                                                 .input = IUT_FROM_PROBS, .arithmetic = IUT_ARITH_F64,
                                                 .uniform_bits = 53, .rng = splitmix(&start)};
    run_suite(&o, &r);
    const st_run run = {r.log_e, r.nats};
    run_report_free(&r);
    return run;
}

/* The largest ln E of one ledger. */
static double ledger_most(const source *of, int ledger, int nights)
{
    st_run runs[NIGHTS];
    st_evidence e = {.most = NAN};
    for (int n = 0; n < nights; n++) runs[n] = night(of, ledger, n);
    st_ledger_weigh(runs, (size_t)nights, &e);
    return e.most;
}

int main(int argc, char **argv)
{
    static const source sources[] = {{"own noise, new each night", IUT_UNIFORMS_OWN, false},
                                     {"own noise, alike each night", IUT_UNIFORMS_OWN, true}};
    const int ledgers = argc == 3 ? atoi(argv[1]) : 0, nights = argc == 3 ? atoi(argv[2]) : 0;
    bool good = ledgers > 0 && nights > 0 && nights <= NIGHTS;
    if (!good) fputs("usage: ledger_rates LEDGERS NIGHTS\n", stderr);
    for (size_t i = 0; good && i < sizeof sources / sizeof *sources; i++) {
        int alarms = 0;
        double most = 0;
        for (int k = 0; k < ledgers; k++) {
            const double log_e = ledger_most(&sources[i], k, nights);
            alarms += !(log_e < log(100));
            most = fmax(most, log_e);
        }
        printf("%s: %d of %d ledgers of %d nights alarm; the largest ln E is %.2f\n", sources[i].name, alarms,
               ledgers, nights, most);
        good = sources[i].alike || alarms <= 0.01 * ledgers + 3 * sqrt(0.01 * ledgers);
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}
