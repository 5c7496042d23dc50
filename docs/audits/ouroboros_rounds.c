/* ouroboros_rounds.c - the rounds of the oracle's Ouroboros, preset `code`, as JSON: what ouroboros_published.py
 * compares with the rounds of the authors' code (`ci/audit-ouroboros`, ouroboros.md).
 *
 *     ouroboros_rounds [SWITCH=VALUE]...     another value of a switch of chapter 11, for a control
 *
 * A request is a line of numbers on standard input, its answer a line on standard output:
 *
 *     V order surprise differ target draft  gamma W N K  budget eos  n prompt[n]  g given[g]  k pool[k]
 *
 * The pool before the request (OUR-04) is k entries, each a key and a value of N - 1 tokens, the older ones of a key
 * first. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/methods/ouroboros.h"

enum { LONGEST = 256, PARTS = 8 };

/* ---- Models ----------------------------------------------------------------------- */

/* A model answers by its last `order` tokens, in `surprise` of PARTS contexts by the whole of the context. The draft
 * model answers as the target, but in `differ` of PARTS contexts by a seed of its own. ouroboros_published.py has the
 * same functions. */
typedef struct {
    int32_t V, order, surprise, differ; /* differ 0: a target */
    uint64_t seed, own;
} hashed;

static uint64_t hash(uint64_t h, const int32_t *path, int32_t from, int32_t to)
{
    for (int32_t i = from; i < to; i++) {
        h = (h ^ ((uint64_t)(i - from) * 4096 + (uint64_t)path[i] + 1)) * UINT64_C(0x9e3779b97f4a7c15);
        h ^= h >> 29;
    }
    return h >> 8;
}

static int32_t answer(const hashed *m, const int32_t *path, int32_t n)
{
    const uint64_t own = hash(m->own, path, 0, n), whole = hash(m->seed, path, 0, n);
    if ((int32_t)(own % PARTS) < m->differ) return (int32_t)(own / PARTS % (uint64_t)m->V);
    if ((int32_t)(whole % PARTS) < m->surprise) return (int32_t)(whole / PARTS % (uint64_t)m->V);
    return (int32_t)(hash(m->seed, path, n > m->order ? n - m->order : 0, n) % (uint64_t)m->V);
}

static void logits(const void *self, const int32_t *path, int32_t n, float *row)
{
    const hashed *m = self;
    for (int32_t t = 0; t < m->V; t++) row[t] = 0;
    row[answer(m, path, n)] = 1;
}

/* ---- JSON ------------------------------------------------------------------------- */

static void print_list(const oracle_list *list)
{
    printf("[");
    for (int32_t i = 0; i < list->n; i++) printf("%s%" PRId32, i ? "," : "", list->t[i]);
    printf("]");
}

static void print_lists(const char *name, const oracle_lists *lists)
{
    printf("\"%s\":[", name);
    for (int32_t i = 0; i < lists->n; i++) {
        if (i) printf(",");
        print_list(&lists->l[i]);
    }
    printf("]");
}

static void print_named(const char *name, const oracle_list *list)
{
    printf("\"%s\":", name);
    print_list(list);
    printf(",");
}

static void print_round(const oracle_round *r)
{
    printf("{");
    print_named("drafts", &r->drafts);
    print_named("run", &r->step.run);
    print_named("emitted", &r->step.emitted);
    print_lists("suffixes", &r->suffixes);
    printf(",");
    print_lists("inspired", &r->inspired);
    printf(",");
    print_lists("window", &r->step.window);
    printf(",\"accepted\":%" PRId32 ",\"pool\":{", r->step.accepted);
    for (int32_t k = 0, some = 0; k < r->step.pool.keys; k++) {
        char key[16];
        snprintf(key, sizeof key, "%" PRId32, r->step.pool.of[k].key);
        printf("%s", some++ ? "," : "");
        print_lists(key, &r->step.pool.of[k].values);
    }
    printf("}}");
}

static void print_answer(const oracle_rounds *trace)
{
    printf("{\"error\":\"%s\",", trace->error);
    print_named("tokens", &trace->tokens);
    printf("\"rounds\":[");
    for (int32_t i = 0; i < trace->rounds; i++) {
        if (i) printf(",");
        print_round(&trace->round[i]);
    }
    printf("]}\n");
    fflush(stdout);
}

/* ---- Requests --------------------------------------------------------------------- */

static int32_t number(void)
{
    int32_t x;
    if (scanf("%" SCNd32, &x) == 1) return x;
    fprintf(stderr, "ouroboros_rounds: a request ends early, or has something else than numbers\n");
    exit(3);
}

static int32_t numbers(int32_t *t)
{
    const int32_t n = number();
    if (n < 0 || n > LONGEST) {
        fprintf(stderr, "ouroboros_rounds: a list of %" PRId32 " tokens; 0 to %d can be had\n", n, LONGEST);
        exit(3);
    }
    for (int32_t i = 0; i < n; i++) t[i] = number();
    return n;
}

/* As an instance has it after other requests; equal values of a key may be among them (OUR-19). */
static oracle_instance instance(const oracle_ouroboros *m, int32_t V)
{
    oracle_instance x = {.warm = true, .holds = true, .V = V, .W = m->W, .N = m->N, .pool.G = m->W};
    memcpy(x.sw, m->sw, sizeof x.sw);
    for (int32_t entries = number(); entries > 0; entries--) {
        oracle_list value = {0};
        const int32_t key = number();
        for (int32_t i = 1; i < m->N; i++) oracle_push(&value, number());
        oracle_lists *values = oracle_pool_key(&x.pool, key);
        if (values) oracle_add_copy(values, &value);
        if (!values) oracle_pool_insert(&x.pool, key, &value);
        oracle_list_free(&value);
    }
    return x;
}

static void decode(int32_t V, oracle_ouroboros m)
{
    int32_t prompt[LONGEST], given[LONGEST];
    const int32_t order = number(), surprise = number(), differ = number();
    const hashed target = {V, order, surprise, 0, (uint64_t)number(), 0};
    const hashed draft = {V, order, surprise, differ, target.seed, (uint64_t)number()};
    const oracle_lm lm[2] = {{V, logits, &target}, {V, logits, &draft}};
    const oracle_pair pair = {&lm[0], &lm[1], 0, 0};
    oracle_request q = {.prompt = prompt, .sampling = {0, 0, 1, 0}};
    oracle_rounds trace;
    m.gamma = number(), m.W = number(), m.N = number(), m.K = number();
    q.budget = number(), q.eos = number();
    q.n = numbers(prompt);
    m.given = given;
    m.given_n = numbers(given);
    oracle_instance x = instance(&m, V);
    oracle_ouroboros_decode(&x, &pair, &q, &m, &trace);
    print_answer(&trace);
    oracle_rounds_free(&trace);
    oracle_pool_free(&x.pool);
}

/* ---- Switches --------------------------------------------------------------------- */

/* The place of `value` among names with blanks between; -1: it is none of them. */
static int32_t place(const char *names, const char *value)
{
    const size_t length = strlen(value);
    for (int32_t i = 0; *names; i++) {
        const size_t n = strcspn(names, " ");
        if (n == length && !strncmp(names, value, n)) return i;
        names += n + (names[n] == ' ');
    }
    return -1;
}

static bool set(oracle_ouroboros *m, const char *argument)
{
    const char *equals = strchr(argument, '=');
    for (int32_t i = 0; equals && i < OUR_SWITCHES; i++) {
        const oracle_switch *s = &oracle_ouroboros_switch[i];
        if (strlen(s->name) != (size_t)(equals - argument)) continue;
        if (strncmp(s->name, argument, strlen(s->name))) continue;
        m->sw[i] = place(s->values, equals + 1);
        return m->sw[i] >= 0;
    }
    return false;
}

int main(int argc, char **argv)
{
    oracle_ouroboros m = {.gamma = 0};
    int32_t V;
    oracle_ouroboros_preset(&m, "code");
    m.sw[OUR_INIT] = OUR_INIT_GIVEN; /* chapter 11's note: the generator is Python's */
    for (int i = 1; i < argc; i++)
        if (!set(&m, argv[i])) {
            fprintf(stderr, "ouroboros_rounds: no SWITCH=VALUE of chapter 11: %s\n", argv[i]);
            return 3;
        }
    while (scanf("%" SCNd32, &V) == 1) decode(V, m);
    return 0;
}
