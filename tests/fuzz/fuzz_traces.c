/* One file of traces: TRC-01. What is accepted names trace vectors, none twice, with tokens of
 * their vocabulary; holding it against the vectors always ends in a sentence or in none. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "vectors/read/traces.h"

/* Two vectors of each of two groups are enough to be named. */
static const char vectors[] =
    "{\"schema\":\"assay-vectors-1\",\"kind\":\"trace\",\"arithmetic\":0,"
    "\"generator\":{\"name\":\"x\",\"version\":1},"
    "\"notes\":{\"n\":{\"bugType\":\"b\",\"effect\":\"e\",\"link\":\"l\"}},\"groups\":["
#define GROUP(id, tests)                                                                       \
    "{\"id\":\"" id "\",\"clauses\":[\"JAC-01\"],\"rationale\":\"n\",\"method\":\"jacobi\","   \
    "\"model\":{\"form\":\"hash\",\"V\":4,\"seed\":\"0000000000000001\",\"order\":1,"          \
    "\"levels\":4},\"tests\":[" tests "]}"
#define TEST(id, expected)                                                                     \
    "{\"id\":\"" id "\",\"clauses\":[\"JAC-01\"],\"comment\":\"\",\"flags\":[],"               \
    "\"prompt\":[1],\"budget\":2,\"eos\":-1,\"positions\":0,\"rows\":0,"                       \
    "\"temperature\":\"00000000\",\"top_k\":0,\"top_p\":\"3f800000\",\"min_p\":\"00000000\","  \
    "\"seed\":\"0000000000000000\",\"sizes\":{\"block\":1,\"pad\":0},\"given\":[],"            \
    "\"switches\":{\"init\":\"pad\"},\"expected\":" expected "}"
#define STEP                                                                                   \
    "{\"rows\":[[],[1],[1]],\"candidates\":[[1]],\"accepted\":1,\"run\":[1,2],"                \
    "\"emitted\":[1,2],\"window\":[[1]],\"pool\":[{\"key\":1,\"values\":[[2]]}]}"
    GROUP("trace.a",
          TEST("trace.a.0001",
               "{\"tokens\":[1,2],\"window\":[],\"pool\":[],"
               "\"steps\":[" STEP
               "]}") "," TEST("trace.a.0002",
                              "{\"error\":\"key\"}")) "," GROUP("trace.b",
                                                                TEST("trace.b.0001",
                                                                     "{\"error\":\"W\"}")) "]}";

static const vector_set *the_vectors(void)
{
    static vector_set *set;
    char why[400] = "";
    if (set) return set;
    set = vectors_new();
    MUST(set);
    if (!vectors_parse(set, "vectors.json", vectors, sizeof vectors - 1, why, sizeof why)) {
        dprintf(2, "%s\n", why);
        MUST(!"the vectors of this file");
    }
    return set;
}

static void check_list(const oracle_list *list)
{
    MUST(list->n >= 0);
    for (int32_t i = 0; i < list->n; i++) MUST(list->t[i] >= 0 && list->t[i] < 4);
}

static void check_lists(const oracle_lists *lists)
{
    for (int32_t i = 0; i < lists->n; i++) check_list(&lists->l[i]);
}

static void check_answer(const vector_answer *a)
{
    MUST(!a->trace == !!a->error);
    if (a->error) MUST(*a->error);
    for (int32_t i = 0; a->trace && i < a->trace->steps; i++) {
        const oracle_step *s = &a->trace->step[i];
        check_list(&s->run);
        check_list(&s->emitted);
        check_lists(&s->rows);
        check_lists(&s->candidates);
        check_lists(&s->window);
        for (int32_t k = 0; k < s->pool.keys; k++) {
            MUST(s->pool.of[k].key >= 0 && s->pool.of[k].key < 4);
            check_lists(&s->pool.of[k].values);
        }
    }
}

static void check_traces(const vector_set *set, const traces *t)
{
    char why[200] = "";
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        int32_t there = 0;
        for (int32_t k = 0; k < g->tests; k++) {
            const vector_answer *a = traces_observed(t, g, k);
            if (!a) continue;
            there++;
            check_answer(a);
            MUST(traces_differ(&g->test[k].expected, a, why, sizeof why) == (*why != 0));
            MUST(!traces_differ(a, a, why, sizeof why));
        }
        MUST(traces_of_group(t, g) == there);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[400] = "";
    const vector_set *set = the_vectors();
    traces *t = traces_parse(set, "traces.json", (const char *)data, size, why, sizeof why);
    if (t) {
        MUST(traces_name(t));
        check_traces(set, t);
    } else {
        MUST(strncmp(why, "traces.json", 11) == 0);
    }
    traces_free(t);
    return 0;
}
