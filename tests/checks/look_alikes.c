/* look_alikes.c - the checks of trees or of engines at smoke, or those of chains but the laws at full, against every
 * look-alike that they ask and against the reference, by many seeds: each run must end CONFORMANT.
 *
 *   look_alikes chain|tree|engine SEEDS [K/N]    each N-th of these from number K on */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/mutants/mutants.h"
#include "conformance/subjects/ref/subject.h"
#include "conformance/suite/run.h"

typedef struct {
    const char *name;
    check_level level;
    const char *checks[12];
} kind;

static const kind kinds[] = {
    {"chain",
     LEVEL_FULL,
     {"format.*", "edges.*", "replay.*", "certify.*", "draw.*", "residual.*", "served.*", "stop.*", "greedy.*",
      "match.*", "canonical.*", "meta.*"}},
    {"tree", LEVEL_SMOKE, {"tree.*"}},
    {"engine", LEVEL_SMOKE, {"engine.*"}},
};
enum { CHAIN, TREE, ENGINE, KINDS };

typedef struct {
    const kind *of;
    uint64_t seeds;
    int tested, wrong;
} tally;

/* A run judges something, or is not conformant. */
static bool conforms(const tally *t, const char *name, const iut_api *api, uint64_t seed, size_t *cases)
{
    run_report r;
    size_t checks = 0;
    while (checks < sizeof t->of->checks / sizeof *t->of->checks && t->of->checks[checks]) checks++;
    const run_options o = {.api = api,
                           .iut = "tested",
                           .vectors = VECTORS,
                           .level = t->of->level,
                           .seed = seed,
                           .jobs = 1,
                           .claims = (const char **)t->of->checks,
                           .claims_count = checks};
    const int code = run_suite(&o, &r);
    for (size_t i = 0; i < r.planned; i++)
        if (r.cases[i].result.state > STATE_NOT_CLAIMED)
            printf("%s, seed %d: %s: %s: %s\n", name, (int)seed, state_name(r.cases[i].result.state),
                   r.cases[i].plan->id, r.cases[i].result.detail);
    const bool right = code == EXIT_CONFORMANT && r.tally[STATE_PASS] > 0;
    *cases += r.tally[STATE_PASS];
    run_report_free(&r);
    return right;
}

static void ask(tally *t, const char *name, const iut_api *api)
{
    size_t cases = 0;
    int wrong = 0;
    for (uint64_t seed = 1; seed <= t->seeds; seed++) wrong += !conforms(t, name, api, seed, &cases);
    printf("%s: %d of %d runs conformant, %zu cases passed\n", name, (int)t->seeds - wrong, (int)t->seeds, cases);
    fflush(stdout);
    t->tested++;
    t->wrong += wrong;
}

static bool is_asked(int which, const iut_api *api)
{
    return which == TREE ? api->verify_tree != NULL : which == ENGINE ? api->generate != NULL : api->verify != NULL;
}

int main(int argc, char **argv)
{
    int which = 0, first = 0, every = 1;
    while (which < KINDS && (argc < 2 || strcmp(argv[1], kinds[which].name) != 0)) which++;
    tally t = {.of = &kinds[which], .seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 0};
    if (which == KINDS || t.seeds == 0 ||
        (argc > 3 && (sscanf(argv[3], "%d/%d", &first, &every) != 2 || every < 1 || first < 0))) {
        fprintf(stderr, "usage: look_alikes chain|tree|engine SEEDS [K/N]\n");
        return 2;
    }
    if (first == 0) ask(&t, "ref", ref_api());
    for (size_t i = 0, place = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        const iut_api *api = mutant_api(m->name);
        if (m->kind != MUTANT_LOOKALIKE || !is_asked(which, api)) continue;
        if (place++ % (size_t)every == (size_t)first) ask(&t, m->name, api);
    }
    printf("%d implementations, %d runs, %d of them not conformant\n", t.tested, t.tested * (int)t.seeds, t.wrong);
    return t.wrong > 0 || t.tested < 14 / every;
}
