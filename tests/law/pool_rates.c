/* pool_rates.c - the pool of a run (STAT-07, STAT-08), measured through the whole suite.
 *
 *   pool_rates null RUNS [SEED]    an exact sampler: alarms at 0.05 and mean e, of the run and of each part
 *   pool_rates faults RUNS [SEED]  an IUT that serves `stream` alone: how often the smoke of the law checks
 *                                  fails each planted fault, and how often the run names it
 *   pool_rates nights N [SEED]     faults that a smoke seldom sees, from the first night on: the night after which
 *                                  the ledger fails them (STAT-13), and how many nights do so alone
 *
 * The sampler shares no code with the reference; it draws by cumulative sums in binary64. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/ledger.h"
#include "conformance/suite/run.h"
#include "tests/random.h"

/* -- The faults -------------------------------------------------------------------- */

typedef enum {
    NONE, LENIENCE, TEMPERATURE, FROM_P, ABSOLUTE, ALWAYS, SWAPPED, BONUS_Q, STALE, ACCEPT_CORRECTION, DRAFT_ACCEPT,
    DRAFT_CORRECTION, LOW_IDS,
    EVEN_IDS
} kind;

static const struct fault {
    kind kind;
    double size;      /* of a lenience, of a temperature */
    double share;     /* of the streams that have it */
    const char *name; /* that the suite should give; "": it is not in the dictionary */
    double least;     /* share of runs that must fail */
} faults[] = {
    {LENIENCE, 1.01, 1, "lenience", 0},
    {LENIENCE, 1.02, 1, "lenience", 0.4},
    {LENIENCE, 1.03, 1, "lenience", 0.9},
    {LENIENCE, 1.05, 1, "lenience", 0.9},
    {LENIENCE, 1.1, 1, "lenience", 0.9},
    {LENIENCE, 1.3, 1, "lenience", 0.9},
    {LENIENCE, 0.95, 1, "lenience", 0.9},
    {TEMPERATURE, 1.01, 1, "temperature", 0.9},
    {TEMPERATURE, 0.99, 1, "temperature", 0.9},
    {TEMPERATURE, 1.03, 1, "temperature", 0.9},
    {TEMPERATURE, 0.97, 1, "temperature", 0.9},
    {TEMPERATURE, 1.1, 1, "temperature", 0.9},
    {TEMPERATURE, 0.9, 1, "temperature", 0.9},
    {FROM_P, 1, 1, "corrections drawn from p", 0.9},
    {FROM_P, 1, 0.1, "corrections drawn from p", 0.9},
    {ABSOLUTE, 1, 1, "corrections drawn from |p - q|", 0.9},
    {ALWAYS, 1, 1, "every draft accepted", 0.9},
    {SWAPPED, 1, 1, "acceptance by q/p", 0.9},
    {BONUS_Q, 1, 1, "bonus drawn from q", 0.9},
    {BONUS_Q, 1, 0.2, "bonus drawn from q", 0.9},
    {STALE, 1, 1, "the row of the state before", 0.9},
    {STALE, 1, 0.05, "the row of the state before", 0.9},
    {ACCEPT_CORRECTION, 1, 1, "one uniform for acceptance and correction", 0.9},
    {ACCEPT_CORRECTION, 1, 0.1, "one uniform for acceptance and correction", 0.9},
    {DRAFT_ACCEPT, 1, 1, "one uniform for draft and acceptance", 0.9},
    {DRAFT_CORRECTION, 1, 1, "one uniform for draft and correction", 0.9},
    {DRAFT_CORRECTION, 1, 0.1, "one uniform for draft and correction", 0.9},
    {LOW_IDS, 1.05, 1, "", 0.9},
    {EVEN_IDS, 1.1, 1, "", 0},
};

static struct fault planted;

/* -- The sampler ------------------------------------------------------------------- */

struct iut {
    int32_t V, S, C;
    const int32_t *cls, *next;
    double *p, *q, *sum_p, *sum_q, *sum_r; /* [S][V] rows of target and draft; cumulative sums */
    uint64_t rng;
};

static uint64_t first_word;

static iut *create(const char *options, char *error, size_t size)
{
    (void)options, (void)error, (void)size;
    iut *m = calloc(1, sizeof *m);
    if (m) m->rng = first_word;
    return m;
}

static void drop_rows(iut *m)
{
    double *all[] = {m->p, m->q, m->sum_p, m->sum_q, m->sum_r};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static void destroy(iut *m)
{
    drop_rows(m);
    free(m);
}

static const char *last_error(iut *m)
{
    (void)m;
    return "";
}

static iut_status claims(iut *m, iut_claims *c)
{
    (void)m;
    *c = (iut_claims){.size = sizeof *c,
                      .name = "sampler",
                      .version = "1",
                      .device = "cpu",
                      .uniforms = IUT_UNIFORMS_OWN,
                      .input = IUT_FROM_PROBS,
                      .map = IUT_MAP_CDF_BY_ID,
                      .rule = IUT_RULE_TOKEN,
                      .arithmetic = IUT_ARITH_F64,
                      .uniform_bits = 53};
    return IUT_OK;
}

/* The row that the sampler believes in. */
static void spoil_row(double *p, int32_t V)
{
    double total = 0;
    for (int32_t t = 0; t < V; t++) {
        if (planted.kind == TEMPERATURE) p[t] = p[t] > 0 ? pow(p[t], 1 / planted.size) : 0;
        if (planted.kind == LOW_IDS && 2 * t < V) p[t] *= planted.size;
        if (planted.kind == EVEN_IDS && t % 2 == 0) p[t] *= planted.size;
        total += p[t];
    }
    for (int32_t t = 0; t < V; t++) p[t] /= total;
}

static iut_status panel(iut *m, const iut_panel *a)
{
    const size_t n = (size_t)a->S * (size_t)a->V;
    drop_rows(m);
    m->V = a->V, m->S = a->S, m->C = a->C, m->cls = a->cls, m->next = a->next;
    m->p = malloc(n * sizeof *m->p);
    m->q = malloc(n * sizeof *m->q);
    m->sum_p = malloc(n * sizeof *m->sum_p);
    m->sum_q = malloc(n * sizeof *m->sum_q);
    m->sum_r = malloc(n * sizeof *m->sum_r);
    if (!m->p || !m->q || !m->sum_p || !m->sum_q || !m->sum_r) return IUT_NO_MEMORY;
    for (size_t i = 0; i < n; i++) m->p[i] = (double)a->p[i], m->q[i] = (double)a->q[i];
    for (size_t s = 0; s < n; s += (size_t)a->V) {
        double p = 0, q = 0, r = 0;
        spoil_row(m->p + s, a->V);
        for (size_t t = s; t < s + (size_t)a->V; t++) {
            const double excess = m->p[t] - m->q[t];
            m->sum_p[t] = p += m->p[t];
            m->sum_q[t] = q += m->q[t];
            m->sum_r[t] = r += planted.kind == ABSOLUTE && m->p[t] > 0 ? fabs(excess) : fmax(0, excess);
        }
    }
    return IUT_OK;
}

/* The first token whose cumulative sum is above u times the whole. */
static int32_t draw_from(const double *sum, int32_t V, double u)
{
    int32_t low = 0, high = V - 1;
    u *= sum[V - 1];
    while (low < high) {
        const int32_t middle = (low + high) / 2;
        if (u < sum[middle])
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static int32_t plain(iut *m, int32_t state)
{
    return draw_from(m->sum_p + (size_t)state * (size_t)m->V, m->V, unit(&m->rng));
}

/* Is it accepted? *u: the uniform that decided. */
static bool accepts(iut *m, kind f, int32_t state, int32_t x, double *u)
{
    const double p = m->p[(size_t)state * (size_t)m->V + (size_t)x],
                 q = m->q[(size_t)state * (size_t)m->V + (size_t)x];
    if (f != DRAFT_ACCEPT) *u = unit(&m->rng);
    if (f == ALWAYS) return p > 0;
    if (f == SWAPPED) return p > 0 && *u * p < q;
    return *u * q < (f == LENIENCE ? planted.size : 1) * p;
}

static int32_t correct(iut *m, kind f, int32_t state, double accept, double drew)
{
    const double *sum = m->sum_r + (size_t)state * (size_t)m->V;
    if (f == FROM_P || sum[m->V - 1] <= 0) return plain(m, state);
    return draw_from(sum, m->V, f == ACCEPT_CORRECTION ? accept : f == DRAFT_CORRECTION ? drew : unit(&m->rng));
}

/* One step from states[0]: drafts that are given, or, where they are -1, its own. rows: of the target at each
 * state. Returns the number of tokens. */
static int32_t step(iut *m, kind f, int32_t state, int32_t before, int32_t gamma, const int32_t *given, int32_t *out)
{
    for (int32_t i = 0; i < gamma; i++) {
        const int32_t row = f == STALE ? before : state;
        double drew = unit(&m->rng), u = drew;
        const int32_t x = given ? given[i] : draw_from(m->sum_q + (size_t)state * (size_t)m->V, m->V, drew);
        out[i] = x;
        if (f == STALE) { /* lossless, towards the row of the state before */
            out[i] = plain(m, row);
            return i + 1;
        }
        if (!accepts(m, f, row, x, &u)) {
            out[i] = correct(m, f, row, u, drew);
            return i + 1;
        }
        before = state;
        state = m->next[state * m->C + m->cls[x]];
    }
    if (f == BONUS_Q)
        out[gamma] = draw_from(m->sum_q + (size_t)state * (size_t)m->V, m->V, unit(&m->rng));
    else
        out[gamma] = plain(m, f == STALE ? before : state);
    return gamma + 1;
}

static iut_status verify(iut *m, iut_verify_batch *b)
{
    for (int32_t i = 0; i < b->n; i++)
        b->out_len[i] = step(m, NONE, b->state[i * (b->gamma + 1)], 0, b->len[i], b->draft + i * b->gamma,
                             b->out + i * (b->gamma + 1));
    return IUT_OK;
}

static iut_status draw(iut *m, iut_draw_batch *b)
{
    for (int32_t i = 0; i < b->n; i++) b->token[i] = plain(m, b->state[i]);
    return IUT_OK;
}

static iut_status stream(iut *m, iut_stream_batch *b)
{
    for (int32_t i = 0; i < b->n; i++) {
        const kind f = unit(&m->rng) < planted.share ? planted.kind : NONE;
        int32_t have = 0, steps = 0, at = b->start[i], before = at, out[64];
        while (have < b->k) {
            const int32_t len = step(m, f, at, before, b->gamma, NULL, out);
            b->accepted[i * b->k + steps++] = len - 1;
            for (int32_t j = 0; j < len && have < b->k; j++) {
                b->out[i * b->k + have++] = out[j];
                before = at;
                at = m->next[at * m->C + m->cls[out[j]]];
            }
        }
        b->out_len[i] = b->k;
    }
    return IUT_OK;
}

/* -- Runs -------------------------------------------------------------------------- */

static iut_api sampler = {.abi = IUT_ABI,
                          .size = sizeof sampler,
                          .create = create,
                          .destroy = destroy,
                          .last_error = last_error,
                          .claims = claims,
                          .panel = panel,
                          .stream = stream};

/* The generator starts at a hash of the seed: seeds that follow each other would give it the same words again. */
static void run_once(uint64_t seed, run_report *r)
{
    uint64_t state = seed;
    static const char *const law[] = {"law.*", "meta.draft"};
    static run_options o;
    o = (run_options){.api = &sampler, .vectors = "", .seed = seed, .jobs = 1, .claims = law, .claims_count = 2,
                      .hand_made = true}; /* drawn streams end at an `eos`, which this sampler does not know */
    first_word = splitmix(&state);
    run_suite(&o, r);
}

typedef struct {
    double sum, squares;
    int alarms;
} mean;

static void add(mean *m, double log_e)
{
    const double e = exp(log_e);
    m->sum += e, m->squares += e * e;
    m->alarms += log_e >= log(20);
}

/* Does the mean exceed 1, or the share of alarms 0.05, by more than three standard errors? */
static bool tell(const char *name, const mean *m, int runs)
{
    const double average = m->sum / runs, error = sqrt((m->squares / runs - average * average) / runs);
    const double share = (double)m->alarms / runs, error_share = sqrt(0.05 * 0.95 / runs);
    printf("%-12s mean e %.3f (s.e. %.3f), e >= 20 in %d of %d\n", name, average, error, m->alarms, runs);
    return average <= 1 + 3 * error && share <= 0.05 + 3 * error_share;
}

static bool null_runs(int runs, uint64_t seed)
{
    mean whole = {0}, average = {0}, dictionary = {0}, pit = {0};
    size_t failed = 0;
    planted = (struct fault){.kind = NONE, .share = 1};
    sampler.verify = verify;
    sampler.draw = draw;
    for (int i = 0; i < runs; i++) {
        run_report r;
        run_once(seed + (uint64_t)i, &r);
        add(&whole, r.log_e);
        add(&average, r.pool.average);
        add(&dictionary, r.pool.dictionary);
        add(&pit, r.pool.pit);
        failed += r.exit_code != EXIT_CONFORMANT;
        run_report_free(&r);
    }
    bool ok = tell("run", &whole, runs);
    ok &= tell("average", &average, runs);
    ok &= tell("dictionary", &dictionary, runs);
    ok &= tell("pit", &pit, runs);
    printf("runs that failed at 1e-6: %zu\n", failed);
    return ok && !failed;
}

static bool ends(const run_report *r, const char *name)
{
    return r->pool.caused && (r->pool.cause.name ? strcmp(r->pool.cause.name, name) == 0 : !*name);
}

static bool fault_runs(int runs, uint64_t seed)
{
    size_t rows = sizeof faults / sizeof *faults, seen = 0, well = 0;
    printf("%-44s %7s %7s %7s %7s %7s %8s %9s\n", "fault", "failed", "by run", "named", "average", "pit", "dictnry",
           "size");
    for (size_t f = 0; f < rows; f++) {
        int failed = 0, by_run = 0, named = 0;
        double average = 0, dictionary = 0, pit = 0, size = 0;
        planted = faults[f];
        for (int i = 0; i < runs; i++) {
            run_report r;
            run_once(seed + (uint64_t)i, &r);
            failed += r.exit_code == EXIT_NOT_CONFORMANT;
            by_run += r.log_e >= -log(r.alpha);
            named += ends(&r, planted.name);
            average += r.pool.average / runs, dictionary += r.pool.dictionary / runs, pit += r.pool.pit / runs;
            size += r.pool.cause.size / runs;
            run_report_free(&r);
        }
        char what[64];
        const char *unlisted = planted.kind == LOW_IDS ? "low ids more likely" : "even ids more likely";
        snprintf(what, sizeof what, "%s %g, share %g", *planted.name ? planted.name : unlisted, planted.size,
                 planted.share);
        printf("%-44s %7d %7d %7d %7.1f %7.1f %8.1f %9.3g\n", what, failed, by_run, named, average, pit, dictionary,
               size);
        fflush(stdout);
        seen += by_run >= planted.least * runs;
        well += by_run > 0 && 5 * named >= 4 * by_run;
    }
    printf("failed as often as they must: %zu of %zu; named in four runs of five that failed: %zu\n", seen, rows, well);
    return seen == rows && 5 * well >= 4 * rows;
}

static bool night_runs(int nights, uint64_t seed)
{
    static const struct fault small[] = {{LENIENCE, 1.01, 1, "", 0},     {LENIENCE, 1.007, 1, "", 0},
                                         {TEMPERATURE, 1.004, 1, "", 0}, {FROM_P, 1, 0.03, "", 0},
                                         {NONE, 1, 1, "", 0}};
    st_run *run = calloc((size_t)nights, sizeof *run);
    bool ok = run != NULL;
    for (size_t f = 0; ok && f < sizeof small / sizeof *small; f++) {
        st_evidence e = {0};
        int found = 0, alone = 0;
        double sum = 0;
        planted = small[f];
        for (int i = 0; ok && i < nights; i++) {
            run_report r;
            run_once(seed + (uint64_t)i, &r);
            run[i] = (st_run){r.log_e, r.nats};
            sum += r.log_e;
            alone += r.log_e >= -log(r.alpha);
            run_report_free(&r);
            ok = st_ledger_weigh(run, (size_t)i + 1, &e);
            if (!found && e.most >= 6 * log(10)) found = i + 1;
        }
        printf("kind %d, size %g, share %g: mean ln e %.2f, %d of %d nights fail alone; the ledger fails after %d\n",
               (int)planted.kind, planted.size, planted.share, sum / nights, alone, nights, found);
        fflush(stdout);
        ok = ok && (planted.kind == NONE) == (found == 0);
    }
    free(run);
    return ok;
}

int main(int argc, char **argv)
{
    const int runs = argc > 2 ? atoi(argv[2]) : 0;
    const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    if (runs < 1) {
        fputs("usage: pool_rates null|faults|nights RUNS [SEED]\n", stderr);
        return 2;
    }
    const bool ok = strcmp(argv[1], "null") == 0     ? null_runs(runs, seed)
                    : strcmp(argv[1], "nights") == 0 ? night_runs(runs, seed)
                                                     : fault_runs(runs, seed);
    return ok ? 0 : 1;
}
