/* tree_look_alikes.c - the checks of trees, at smoke, against every look-alike that verifies trees and against the
 * reference, by many seeds: each run must end CONFORMANT.
 *
 *   tree_look_alikes SEEDS */
#include <stdio.h>
#include <stdlib.h>

#include "conformance/subjects/mutants/mutants.h"
#include "conformance/subjects/ref/subject.h"
#include "conformance/suite/run.h"

/* Runs that are not CONFORMANT. A run judges something, or is none. */
static int refused(const char *name, const iut_api *api, uint64_t seeds)
{
    const char *claims = "tree.*";
    int wrong = 0;
    size_t cases = 0;
    double seconds = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run_report r;
        const run_options o = {.api = api,
                               .iut = "tested",
                               .vectors = VECTORS,
                               .level = LEVEL_SMOKE,
                               .seed = seed,
                               .jobs = 1,
                               .claims = &claims,
                               .claims_count = 1};
        const int code = run_suite(&o, &r);
        for (size_t i = 0; i < r.planned; i++)
            if (r.cases[i].result.state > STATE_NOT_CLAIMED)
                printf("%s, seed %d: %s: %s: %s\n", name, (int)seed, state_name(r.cases[i].result.state),
                       r.cases[i].plan->id, r.cases[i].result.detail);
        wrong += code != EXIT_CONFORMANT || r.tally[STATE_PASS] == 0;
        cases += r.tally[STATE_PASS];
        seconds += r.seconds;
        run_report_free(&r);
    }
    printf("%s: %d of %d runs conformant, %zu cases passed, %.0f s\n", name, (int)seeds - wrong, (int)seeds, cases,
           seconds);
    fflush(stdout);
    return wrong;
}

int main(int argc, char **argv)
{
    const uint64_t seeds = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int wrong = refused("ref", ref_api(), seeds), tested = 1;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (m->kind != MUTANT_LOOKALIKE || !mutant_api(m->name)->verify_tree) continue;
        wrong += refused(m->name, mutant_api(m->name), seeds);
        tested++;
    }
    printf("%d implementations, %d runs, %d of them not conformant\n", tested, tested * (int)seeds, wrong);
    return wrong > 0 || tested < 14 || seeds == 0;
}
