/* compare_methods.c - Jacobi decoding, lookahead and prompt lookup of the reference (one loop,
 * trees, a cache) against the oracle's (lists, full recomputation): every step of every
 * request, entry by entry: rows with their paths in the order of LAH-07, candidates, accepted
 * count, run, emitted tokens, window and pool after the step; and what is refused.
 *
 * usage: compare_methods vectors FOLDER       the reference against trace.json
 *        compare_methods live [COUNT]         against the oracle, random requests 0 ... COUNT-1;
 *                                             each event of the table at least once in 800
 *        compare_methods workers [COUNT]      of these the lookaheads, their steps shared by D ranks
 *        compare_methods one NUMBER           one of these, with its parameters
 *
 * Exit code 0: no difference. Clauses JAC, LAH, POOL, ONEH, LKP, STOP-01, STOP-02, STOP-05. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/methods/methods.h"
#include "conformance/oracle/methods/toy.h"
#include "conformance/subjects/ours/reference_traces.h"
#include "tests/oracle/follow.h"
#include "conformance/subjects/ours/path_lm.h"
#include "tests/oracle/random_request.h"
#include "tests/ranks_in_turn.h"
#include "tests/scale.h"
#include "vectors/read/vectors.h"

static const int32_t *prefix_of(const as_lm *lm, int32_t *n)
{
    const path_lm *m = (const path_lm *)lm;
    *n = m->length;
    return m->prefix;
}

/* Runs the reference on the model; false, and a line about it, unless it does what the oracle
 * does. */
static bool agrees_with(const char *name, as_lm *lm, const oracle_request *q,
                        const oracle_method *m, const follow_options *options,
                        const oracle_trace *want)
{
    oracle_trace got;
    char fault[160], why[320];
    follow(lm, q, m, options, &got, fault, sizeof fault);
    follow_compare(want, &got, why, sizeof why);
    const bool good = !*fault && !*why;
    if (!good) printf("%s: %s%s%s\n", name, why, *why && *fault ? "; " : "", fault);
    oracle_trace_free(&got);
    return good;
}

static bool agrees(const char *name, const vector_toy *toy, const oracle_request *q,
                   const oracle_method *m, const oracle_trace *want)
{
    static const follow_options plain = {NULL, prefix_of};
    path_lm *lm = path_lm_new(toy, q->positions, q->rows);
    const bool good = agrees_with(name, &lm->base, q, m, &plain, want);
    as_lm_free(&lm->base);
    return good;
}

/* ---- Vectors ---------------------------------------------------------------------- */

static bool agrees_with_pair(const vector_group *g, const vector_test *t)
{
    oracle_trace trace;
    ref_trace_vector(g, t, &trace);
    const bool same = t->expected.error ? strcmp(trace.error, t->expected.error) == 0
                                        : oracle_trace_alike(&trace, t->expected.trace);
    if (!same) printf("%s: the rounds differ %s\n", t->id, trace.error);
    oracle_trace_free(&trace);
    return same;
}

static bool agrees_with_vector(const vector_group *g, const vector_test *t)
{
    oracle_trace refusal = {.steps = 0};
    if (g->draft) return agrees_with_pair(g, t);
    if (t->expected.trace)
        return agrees(t->id, g->toy, t->request, t->method, t->expected.trace);
    snprintf(refusal.error, sizeof refusal.error, "%s", t->expected.error);
    return agrees(t->id, g->toy, t->request, t->method, &refusal);
}

static int compare_vectors(const char *folder)
{
    char why[400];
    int32_t tests = 0, wrong = 0;
    vector_set *set = vectors_load(folder, why, sizeof why);
    if (!set) {
        fprintf(stderr, "compare_methods: %s\n", why);
        return 2;
    }
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t k = 0; g->kind == VECTOR_TRACE && k < g->tests; k++, tests++)
            wrong += !agrees_with_vector(g, &g->test[k]);
    }
    printf("%d traces, %d differ\n", (int)tests, (int)wrong);
    vectors_free(set);
    return wrong || !tests;
}

/* ---- Random requests -------------------------------------------------------------- */

enum { MOST_N = 7, COUNTED_N = 5 }; /* longer n-grams are too rare to be counted */

typedef struct {
    int32_t requests, refused, steps, warm;
    int32_t accepted[MOST_N + 1][MOST_N]; /* [N][steps that accepted so many] */
    int32_t shared, full, eos, budget, wide, limit;
} events;
static events met[KINDS];

static bool shares_prefix(const oracle_lists *candidates)
{
    for (int32_t i = 0; i < candidates->n; i++)
        for (int32_t k = 0; k < i; k++)
            if (candidates->l[i].t[0] == candidates->l[k].t[0]) return true;
    return false;
}

static void count_step(const random_request *r, const oracle_trace *t, int32_t i)
{
    events *e = &met[r->kind];
    const oracle_step *s = &t->step[i];
    const int32_t *z = r->m.size, first = t->window0.n ? 0 : 1;
    const bool lookahead = r->kind <= ANY, cut = s->emitted.n < s->run.n,
               ends = r->q.eos >= 0 && s->emitted.t[s->emitted.n - 1] == r->q.eos;
    e->steps++;
    e->shared += shares_prefix(&s->candidates);
    e->eos += cut && ends;
    e->budget += cut && !ends;
    e->full += s->candidates.n > 0 && s->accepted == s->candidates.l[0].n;
    if (!lookahead) return;
    e->accepted[z[1]][s->accepted]++;
    e->wide += s->accepted >= z[0];
    e->limit += i >= first && s->rows.n == 1 && z[0] * (z[1] - 1) > 1;
}

static void count(const random_request *r, const oracle_trace *t)
{
    events *e = &met[r->kind];
    e->requests++;
    e->refused += *t->error != 0;
    e->warm += !*t->error && r->q.sampling.temperature != 0;
    for (int32_t i = 0; i < t->steps; i++) count_step(r, t, i);
}

static void print_events(request_kind kind)
{
    const events *e = &met[kind];
    printf("%-12s %d requests (%d sampled, %d refused), %d steps; shared prefix %d, full hit "
           "%d, end of sequence in a run %d, budget in a run %d",
           request_kind_name[kind], (int)e->requests, (int)e->warm, (int)e->refused,
           (int)e->steps, (int)e->shared, (int)e->full, (int)e->eos, (int)e->budget);
    if (kind <= ANY) printf(", accepted >= W %d, limit %d", (int)e->wide, (int)e->limit);
    printf("\n");
    for (int32_t N = 2; N <= COUNTED_N && kind <= ANY; N++) {
        printf("    N = %d, accepted 0 to %d:", (int)N, (int)N - 1);
        for (int32_t a = 0; a < N; a++) printf(" %d", (int)e->accepted[N][a]);
        printf("\n");
    }
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* The rarest event of the lookahead presets. */
static int32_t rarest(void)
{
    int32_t n = INT32_MAX;
    for (request_kind kind = PAPER; kind <= ANY; kind++) {
        const events *e = &met[kind];
        n = least(least(least(n, e->shared), least(e->full, e->eos)),
                  least(least(e->budget, e->wide), e->limit));
        for (int32_t N = 2; N <= COUNTED_N; N++)
            for (int32_t a = 0; a < N; a++) n = least(n, e->accepted[N][a]);
    }
    return n;
}

static void oracle_on(const random_request *r, oracle_trace *want)
{
    const vector_toy *toy = &r->toy;
    const oracle_lm lm = {toy->automaton ? toy->table.V : toy->hash.V,
                          toy->automaton ? oracle_table_logits : oracle_hash_logits,
                          toy->automaton ? (const void *)&toy->table : &toy->hash};
    oracle_decode(&lm, &r->q, &r->m, want);
}

static bool agrees_on(uint64_t number)
{
    static random_request r;
    char name[40];
    oracle_trace want;
    random_request_make(number, &r);
    snprintf(name, sizeof name, "request %" PRIu64 " (%s)", number, request_kind_name[r.kind]);
    oracle_on(&r, &want);
    const bool good = agrees(name, &r.toy, &r.q, &r.m, &want);
    count(&r, &want);
    oracle_trace_free(&want);
    return good;
}

/* The values of the presets are those of chapters 8 and 9 in both. */
static bool presets_agree(void)
{
    bool good = true;
    for (request_kind kind = PAPER; kind <= HF; kind++) {
        const char *name = request_kind_name[kind];
        oracle_method m = {.name = kind < ANY ? ORACLE_LOOKAHEAD : ORACLE_LOOKUP};
        if (!oracle_preset(&m, name) || follow_preset(&m, name)) continue;
        printf("preset %s: the reference has other values\n", name);
        good = false;
    }
    return good;
}

enum { WHOLE = 200000 };

static int compare_live(uint64_t requests)
{
    const int32_t floor = (int32_t)(requests / 800);
    int32_t wrong = !presets_agree();
    for (uint64_t i = 0; i < requests && wrong < 20; i++) wrong += !agrees_on(i);
    for (request_kind kind = PAPER; kind < KINDS; kind++) print_events(kind);
    printf("%" PRIu64 " requests, %d differ; the rarest event of lookahead happened %d times\n",
           requests, (int)wrong, (int)rarest());
    if (rarest() < floor) printf("that is less than %d\n", (int)floor);
    return wrong || rarest() < floor;
}

/* ---- Workers ---------------------------------------------------------------------- */

typedef struct {
    uint64_t number;
    const random_request *r;
    const oracle_trace *want;
    bool wrong[RANKS_IN_TURN];
} shared_run;

static void run_rank(as_ranks *ranks, void *data)
{
    shared_run *run = data;
    const follow_options shared = {ranks, prefix_of};
    char name[60];
    path_lm *lm = path_lm_new(&run->r->toy, run->r->q.positions, run->r->q.rows);
    snprintf(name, sizeof name, "request %" PRIu64 ", rank %d of %d", run->number, (int)ranks->rank,
             (int)ranks->count);
    run->wrong[ranks->rank] = !agrees_with(name, &lm->base, &run->r->q, &run->r->m, &shared, run->want);
    as_lm_free(&lm->base);
}

/* Every rank has the oracle's trace. */
static int compare_workers(uint64_t requests)
{
    static const int32_t D[] = {1, 2, 3, 5, 8};
    static random_request r;
    int32_t wrong = 0, runs = 0, window_shared = 0, candidates_shared = 0;
    for (uint64_t i = 0; i < requests && wrong < 20; i++) {
        oracle_trace want;
        random_request_make(i, &r);
        if (r.kind > ANY) continue;
        oracle_on(&r, &want);
        for (size_t k = 0; k < sizeof D / sizeof *D; k++, runs++) {
            shared_run run = {.number = i, .r = &r, .want = &want};
            run_as_ranks(D[k], run_rank, &run);
            for (int32_t d = 0; d < D[k]; d++) wrong += run.wrong[d];
            for (int32_t s = 0; D[k] > 1 && s < want.steps; s++) {
                window_shared += want.step[s].rows.n > 1;
                candidates_shared += want.step[s].candidates.n > 1;
            }
        }
        oracle_trace_free(&want);
    }
    printf("%d runs, %d differ; several ranks had columns in %d steps, candidates in %d\n", (int)runs,
           (int)wrong, (int)window_shared, (int)candidates_shared);
    return wrong || window_shared < 100 || candidates_shared < 100;
}

static int compare_one(uint64_t number)
{
    static random_request r;
    random_request_make(number, &r);
    int32_t n;
    const oracle_switch *s = oracle_method_switches(r.m.name, &n);
    printf("%s: sizes %d %d %d, prompt of %d, budget %d, eos %d, positions %d, rows %d, "
           "temperature %g\n",
           request_kind_name[r.kind], (int)r.m.size[0], (int)r.m.size[1], (int)r.m.size[2],
           (int)r.q.n, (int)r.q.budget, (int)r.q.eos, (int)r.q.positions, (int)r.q.rows,
           (double)r.q.sampling.temperature);
    for (int32_t i = 0; i < n; i++)
        printf("    %s: value %d of %s\n", s[i].name, (int)r.m.sw[i], s[i].values);
    return !agrees_on(number);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    if (!strcmp(mode, "live"))
        return compare_live(argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)scaled(WHOLE));
    if (!strcmp(mode, "workers"))
        return compare_workers(argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)scaled(WHOLE / 50));
    if (argc < 3) mode = "";
    if (!strcmp(mode, "vectors")) return compare_vectors(argv[2]);
    if (!strcmp(mode, "one")) return compare_one(strtoull(argv[2], NULL, 10));
    fputs("usage: compare_methods vectors FOLDER | live [COUNT] | workers [COUNT] | one "
          "NUMBER\n",
          stderr);
    return 2;
}
