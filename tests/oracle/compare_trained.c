/* compare_trained.c - the reference with the trained model loaded (weights from files, a cache)
 * against the traces of trace_model.json, whose logits and steps are the oracle's: every entry
 * of every step, as compare_methods.c does it on models made from integers. So the two readers
 * of the folder, the two networks and the two implementations of each method must all agree.
 * The file in the folder must be what the oracle makes.
 *
 * usage: compare_trained VECTORS
 *
 * Exit code 0: no difference. Clauses JAC, LAH, POOL, ONEH, LKP, NET-01 to NET-03. */
#include <stdio.h>

#include "ref/load/model.h"
#include "tests/oracle/follow.h"
#include "vectors/make/make.h"
#include "vectors/read/answer.h"

enum { ROWS = 128 };

static bool agrees(as_lm *lm, const vector_test *t)
{
    static const follow_options plain = {NULL, NULL};
    oracle_trace got;
    char fault[160], why[320];
    follow(lm, t->request, t->method, &plain, &got, fault, sizeof fault);
    follow_compare(t->expected.trace, &got, why, sizeof why);
    const bool good = !*fault && !*why;
    if (!good) printf("%s: %s%s%s\n", t->id, why, *why && *fault ? "; " : "", fault);
    oracle_trace_free(&got);
    return good;
}

static int compare(const vector_set *set, const char *models)
{
    static const as_llama_options options = {.rows = ROWS, .threads = 1};
    char folder[1200];
    as_model_info info;
    as_error e;
    as_lm *lm;
    int32_t tests = 0, wrong = 0;
    snprintf(folder, sizeof folder, "%s/%s", models, vectors_group(set, 0)->toy->folder);
    if (as_load_model(folder, &options, &lm, &info, &e) != AS_OK) {
        fprintf(stderr, "compare_trained: %s\n", e.text);
        return 2;
    }
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t k = 0; k < g->tests; k++, tests++) wrong += !agrees(lm, &g->test[k]);
    }
    as_lm_free(lm);
    printf("%d traces, %d differ\n", (int)tests, (int)wrong);
    return wrong || !tests;
}

int main(int argc, char **argv)
{
    char models[1100], why[400];
    if (argc != 2) {
        fputs("usage: compare_trained VECTORS\n", stderr);
        return 2;
    }
    snprintf(models, sizeof models, "%s/models", argv[1]);
    vector_set *set = make_networks(models, why, sizeof why);
    if (!set || !networks_same(set, argv[1], why, sizeof why)) {
        fprintf(stderr, "compare_trained: %s\n", why);
        vectors_free(set);
        return 2;
    }
    const int code = compare(set, models);
    vectors_free(set);
    return code;
}
