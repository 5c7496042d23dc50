/* speed_rates - which faults that keep the law and lose speed are told INEFFECTIVE, whom the suite acquits, and how
 * often it errs (STAT-14, STAT-15), through the runner itself.
 *
 *   speed_rates [--seeds N] [--acquit N] [--samples N] [--runs N] [--only TEXT]
 *
 * seeds: of each fault (default 1), each of which must be told; acquit: seeds of each implementation that is right
 * (default 1); samples: of a case of these (default 0: all); runs: at alpha 0.01 with few streams, for the rate of
 * false alarms and the mean of the e-values (default 10). Exit 1 if anything is otherwise. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/law/law.h"
#include "conformance/stats/power.h"
#include "conformance/suite/run.h"
#include "conformance/suite/verdict.h"
#include "tests/law/rates.h"
#include "tests/law/sampler_iut.h"
#include "tests/random.h"

static const check *const checks[] = {&check_law_verify, &check_law_stream,   &check_law_calls, &check_law_long,
                                      &check_meta_draft, &check_law_coupling, NULL};

/* -- An implementation without a law to lose ---------------------------------------- */

typedef enum {
    PLAIN,
    /* The verifier refuses drafts unseen, and draws from p instead. */
    EVERY_SECOND, AFTER_8, AFTER_512, BEFORE_512, FIRST_ONLY, BY_MATCH, LAST_PLACE,
    /* The drafter reads other rows than it should; what it draws from is what it is judged by. */
    STALE_AFTER_REFUSAL, START_STATE, ONE_BEHIND, FORGETS_TO_RESET, FLAT, START_AFTER_64, SWAPPED_LAYERS,
    /* Right: drafts less, on purpose. */
    ADAPTIVE, CONFIDENT, SMALL_CALLS, TIRED, ANY_LENGTH, NO_DRAFTS,
    /* Right: tells otherwise. */
    SILENT, TELLS_CUT, DRAFTS_BEYOND
} habit;

static struct {
    habit how;
    uint8_t rule;
    int32_t drafts; /* IUT_DRAFTS_*, as claimed; 0: sampled, and not claimed */
    uint64_t noise;
} is;

struct iut {
    const iut_panel *a; /* of the suite: it outlives the case */
    uint64_t rng;
    int64_t requests, drafts, steps; /* since the panel was loaded */
    int32_t last; /* state of the drafter behind the stream before */
    bool refused; /* the step before */
};

static iut *create(const char *options, char *error, size_t size)
{
    (void)options, (void)error, (void)size;
    iut *m = calloc(1, sizeof *m);
    if (m) m->rng = is.noise;
    return m;
}

static void destroy(iut *m)
{
    free(m);
}

static const char *last_error(iut *m)
{
    (void)m;
    return "planted";
}

static iut_status claims(iut *m, iut_claims *c)
{
    (void)m;
    *c = (iut_claims){.size = sizeof *c, .name = "speed", .version = "1", .device = "cpu",
                      .uniforms = IUT_UNIFORMS_OWN, .input = IUT_FROM_PROBS, .map = IUT_MAP_CDF_BY_ID,
                      .rule = is.rule, .arithmetic = IUT_ARITH_F64, .uniform_bits = 53, .max_vocab = 1023,
                      .drafts = is.drafts};
    return IUT_OK;
}

static iut_status panel_of(iut *m, const iut_panel *a)
{
    m->a = a;
    m->requests = m->drafts = m->steps = 0;
    m->last = 0, m->refused = false;
    return IUT_OK;
}

static const float *p_of(const iut *m, int32_t state)
{
    return m->a->p + (size_t)state * (size_t)m->a->V;
}

/* A draw from max(0, p - q); q may be NULL. */
static int32_t draw(iut *m, const float *p, const double *q)
{
    const double u = unit(&m->rng);
    double total = 0, sum = 0;
    int32_t last = 0;
    for (int32_t t = 0; t < m->a->V; t++) total += fmax(0, (double)p[t] - (q ? q[t] : 0));
    if (total <= 0) return draw(m, p, NULL);
    for (int32_t t = 0; t < m->a->V; t++) {
        const double w = fmax(0, (double)p[t] - (q ? q[t] : 0));
        if (w <= 0) continue;
        sum += w, last = t;
        if (u * total < sum) return t;
    }
    return last;
}

static bool refuses_unseen(const iut *m, int32_t place, int32_t n)
{
    switch (is.how) {
    case EVERY_SECOND:
        return m->drafts % 2 == 1;
    case AFTER_8:
        return m->requests >= 8;
    case AFTER_512:
        return m->requests >= 512 && m->drafts % 8 == 0;
    case BEFORE_512:
        return m->requests < 512;
    case FIRST_ONLY:
        return place > 0;
    case LAST_PLACE:
        return place + 1 == n && n > 1;
    default:
        return false;
    }
}

/* The row that a draft is judged by. */
static void judged_by(const iut *m, const float *q, int32_t x, double *row)
{
    for (int32_t t = 0; t < m->a->V; t++)
        row[t] = is.rule == IUT_RULE_ONEHOT ? t == x : (double)q[t];
}

static int32_t likeliest(const float *row, int32_t V)
{
    int32_t best = 0;
    for (int32_t t = 1; t < V; t++)
        if (row[t] > row[best]) best = t;
    return best;
}

/* n drafts, each with its state and the row it was drawn from. Returns the tokens emitted. */
static int32_t step(iut *m, const int32_t *state, const int32_t *draft, const float *const *q, int32_t n, int32_t *out)
{
    static double row[1024];
    int32_t i = 0;
    for (; i < n && draft[i] >= 0; i++) {
        const float *p = p_of(m, state[i]);
        const bool unseen = refuses_unseen(m, i, n);
        m->drafts++;
        m->refused = true;
        judged_by(m, q[i], draft[i], row);
        if (unseen || is.rule == IUT_RULE_MATCH || is.how == BY_MATCH) {
            out[i] = draw(m, p, NULL);
            if (!unseen && out[i] == draft[i]) continue;
            return i + 1;
        }
        out[i] = draft[i];
        if (unit(&m->rng) * row[draft[i]] < (double)p[draft[i]]) continue;
        out[i] = draw(m, p, row);
        return i + 1;
    }
    m->refused = false;
    out[i] = draw(m, p_of(m, state[i]), NULL);
    return i + 1;
}

static iut_status verify(iut *m, iut_verify_batch *b)
{
    const float *q[64];
    for (int32_t i = 0; i < b->n; i++, m->requests++) {
        const int32_t *state = b->state + i * (b->gamma + 1);
        for (int32_t d = 0; d < b->gamma; d++) q[d] = m->a->q + (size_t)state[d] * (size_t)m->a->V;
        b->out_len[i] = step(m, state, b->draft + i * b->gamma, q, b->len[i], b->out + i * (b->gamma + 1));
    }
    return IUT_OK;
}

/* The state whose row the drafter reads at a place: `state` is the right one, `before` that of the place before. */
static int32_t read_from(const iut *m, int32_t state, int32_t before, int32_t start, int32_t place, int32_t stale)
{
    switch (is.how) {
    case STALE_AFTER_REFUSAL:
        return place == 0 && stale >= 0 ? stale : state;
    case START_STATE:
        return start;
    case ONE_BEHIND:
        return before;
    case FORGETS_TO_RESET:
        return place == 0 ? m->last : state;
    case START_AFTER_64:
        return m->requests >= 64 ? start : state;
    case SWAPPED_LAYERS:
        return (state + m->a->C) % m->a->S;
    default:
        return state;
    }
}

static float largest(const float *row, int32_t V)
{
    float most = 0;
    for (int32_t t = 0; t < V; t++) most = fmaxf(most, row[t]);
    return most;
}

/* Drafts of this step, of `most`. */
static int32_t length_of(iut *m, int32_t most, int32_t calls, const float *q)
{
    switch (is.how) {
    case ADAPTIVE:
        return most - (most > 0 && m->steps % 2 == 1);
    case CONFIDENT:
        return largest(q, m->a->V) < 0.4f ? 0 : most;
    case SMALL_CALLS:
        return calls > 64 ? 0 : most;
    case TIRED:
        return m->requests > 256 ? 0 : most;
    case ANY_LENGTH:
        return (int32_t)(unit(&m->rng) * (most + 1));
    case NO_DRAFTS:
        return 0;
    default:
        return most;
    }
}

static void stream_one(iut *m, const iut_stream_batch *b, int32_t i)
{
    static float flat[1024];
    const float *q[64];
    int32_t state[64], draft[64], out[64], have = 0, at = b->start[i], before = at, stale = -1;
    int32_t *to = b->out + (size_t)i * (size_t)b->k, *told = b->accepted + (size_t)i * (size_t)b->k;
    for (int32_t t = 0; t < m->a->V; t++) flat[t] = 1 / (float)m->a->V;
    for (int32_t s = 0; have < b->k; s++, m->steps++) {
        const int32_t room = is.how == DRAFTS_BEYOND ? b->gamma : b->k - have - 1;
        const float *first = m->a->q + (size_t)at * (size_t)m->a->V;
        const int32_t n = length_of(m, room < b->gamma ? room : b->gamma, b->n, first);
        bool ends = false;
        state[0] = at;
        for (int32_t d = 0; d < n; d++) {
            const int32_t from = read_from(m, state[d], d > 0 ? state[d - 1] : before, b->start[i], d, stale);
            q[d] = is.how == FLAT ? flat : m->a->q + (size_t)from * (size_t)m->a->V;
            draft[d] = is.drafts == IUT_DRAFTS_ARGMAX ? likeliest(q[d], m->a->V) : draw(m, q[d], NULL);
            state[d + 1] = m->a->next[state[d] * m->a->C + m->a->cls[draft[d]]];
        }
        const int32_t len = step(m, state, draft, q, n, out);
        stale = len <= n ? state[len] : -1; /* behind the draft that was refused */
        int32_t emitted = 0;
        while (emitted < len && have < b->k && !ends) {
            ends = b->eos >= 0 && out[emitted] == b->eos;
            to[have++] = out[emitted++];
            before = at;
            at = m->a->next[at * m->a->C + m->a->cls[to[have - 1]]];
        }
        if (is.how != SILENT) told[s] = is.how == TELLS_CUT && emitted < len ? emitted - 1 : len - 1;
        if (ends) break;
    }
    m->last = at;
    b->out_len[i] = have;
}

static iut_status stream(iut *m, iut_stream_batch *b)
{
    for (int32_t i = 0; i < b->n; i++, m->requests++) stream_one(m, b, i);
    return IUT_OK;
}

static const iut_api api = {.abi = IUT_ABI, .size = sizeof api, .create = create, .destroy = destroy,
                            .last_error = last_error, .claims = claims, .panel = panel_of, .verify = verify,
                            .stream = stream};

/* -- Runs -------------------------------------------------------------------------- */

static rates_options asked = {.seeds = 1, .acquit = 1, .runs = 10, .only = ""};

static void run(const iut_api *of, const char *glob, uint64_t seed, double alpha, int64_t samples, run_report *report)
{
    static run_options o;
    static const char *only[1];
    only[0] = glob;
    o = (run_options){.api = of, .checks = checks, .level = LEVEL_SMOKE, .seed = seed, .alpha = alpha,
                      .samples = samples, .jobs = 1, .only = only, .only_count = 1};
    run_suite(&o, report);
}

/* -- Faults ------------------------------------------------------------------------ */

static const struct {
    const char *name;
    habit how;
    uint8_t rule;
    const char *glob;
    int32_t drafts;
} faults[] = {
    {"every second draft is refused, verify", EVERY_SECOND, IUT_RULE_TOKEN, "law.verify/*", 0},
    {"every second draft is refused, match", EVERY_SECOND, IUT_RULE_MATCH, "law.verify/*", 0},
    {"every second draft is refused, one-hot", EVERY_SECOND, IUT_RULE_ONEHOT, "law.verify/*", 0},
    {"refused from request 8 on, verify", AFTER_8, IUT_RULE_TOKEN, "law.verify/*", 0},
    {"refused from request 8 on, match", AFTER_8, IUT_RULE_MATCH, "law.verify/*", 0},
    {"one in eight refused from request 512 on", AFTER_512, IUT_RULE_MATCH, "law.verify/*", 0},
    {"refused before request 512", BEFORE_512, IUT_RULE_MATCH, "law.verify/*", 0},
    {"one draft a step stands at most", FIRST_ONLY, IUT_RULE_MATCH, "law.verify/*", 0},
    {"judged by the match rule", BY_MATCH, IUT_RULE_TOKEN, "law.verify/*", 0},
    {"the last draft of several is refused", LAST_PLACE, IUT_RULE_ONEHOT, "law.verify/*", 0},
    {"a stale row after a refusal", STALE_AFTER_REFUSAL, IUT_RULE_TOKEN, "law.stream/*", 0},
    {"drafts from the row of the start", START_STATE, IUT_RULE_TOKEN, "law.stream/*", 0},
    {"the draft cache is one behind", ONE_BEHIND, IUT_RULE_TOKEN, "law.stream/*", 0},
    {"the draft cache is not reset", FORGETS_TO_RESET, IUT_RULE_TOKEN, "law.stream/*", 0},
    {"drafts from no weights", FLAT, IUT_RULE_TOKEN, "law.stream/*", 0},
    {"drafts from the start from request 64 on", START_AFTER_64, IUT_RULE_TOKEN, "law.stream/*", 0},
    {"draft positions off by one", SWAPPED_LAYERS, IUT_RULE_TOKEN, "law.stream/*", 0},
    {"match, sampled from the start's row", START_STATE, IUT_RULE_MATCH, "law.stream/*", IUT_DRAFTS_SAMPLED},
    {"match, sampled one behind", ONE_BEHIND, IUT_RULE_MATCH, "law.stream/*", IUT_DRAFTS_SAMPLED},
    {"match, sampled from no weights", FLAT, IUT_RULE_MATCH, "law.stream/*", IUT_DRAFTS_SAMPLED},
    {"one-hot, sampled behind a stale row", STALE_AFTER_REFUSAL, IUT_RULE_ONEHOT, "law.stream/*", IUT_DRAFTS_SAMPLED},
    {"match, likeliest of the start's row", START_STATE, IUT_RULE_MATCH, "law.stream/*", IUT_DRAFTS_ARGMAX},
    {"match, likeliest one behind", ONE_BEHIND, IUT_RULE_MATCH, "law.stream/*", IUT_DRAFTS_ARGMAX},
    {"one-hot, likeliest of a stale row", STALE_AFTER_REFUSAL, IUT_RULE_ONEHOT, "law.stream/*", IUT_DRAFTS_ARGMAX},
};

static bool told(size_t f, int32_t seeds)
{
    int32_t seen = 0, lawful = 0;
    double least = INFINITY, share = 0;
    for (int32_t seed = 1; seed <= seeds; seed++) {
        run_report report;
        double most = -INFINITY;
        size_t ineffective = 0, bet = 0;
        is.how = faults[f].how, is.rule = faults[f].rule, is.drafts = faults[f].drafts;
        is.noise = (uint64_t)seed * 7919;
        run(&api, faults[f].glob, (uint64_t)seed, 1e-6, asked.samples, &report);
        for (size_t k = 0; k < report.planned; k++) {
            const run_case *c = &report.cases[k];
            ineffective += verdict_ineffective(&report, c), bet += c->result.speed.drafts > 0;
            if (c->result.speed.drafts > 0) most = fmax(most, c->result.speed.log_e);
        }
        seen += ineffective > 0, lawful += report.exit_code == EXIT_CONFORMANT;
        least = fmin(least, most), share += (double)ineffective / (double)bet / seeds;
        run_report_free(&report);
    }
    printf("%-42s told with %3d of %3d seeds, in %3.0f %% of the cases, least ln E %8.1f; %d conformant%s\n",
           faults[f].name, (int)seen, (int)seeds, 100 * share, least, (int)lawful, seen == seeds ? "" : "  TOO FEW");
    return seen == seeds;
}

/* -- Right ones -------------------------------------------------------------------- */

static const struct {
    const char *name;
    habit how;
    uint8_t rule;
    int32_t drafts;
} right[] = {
    {"the token rule", PLAIN, IUT_RULE_TOKEN, 0},
    {"the match rule", PLAIN, IUT_RULE_MATCH, 0},
    {"the one-hot rule", PLAIN, IUT_RULE_ONEHOT, 0},
    {"one draft fewer on every other step", ADAPTIVE, IUT_RULE_TOKEN, 0},
    {"no drafts where q is flat", CONFIDENT, IUT_RULE_TOKEN, 0},
    {"no drafts in calls of more than 64", SMALL_CALLS, IUT_RULE_TOKEN, 0},
    {"no drafts from request 257 on", TIRED, IUT_RULE_TOKEN, 0},
    {"any number of drafts", ANY_LENGTH, IUT_RULE_TOKEN, 0},
    {"never drafts", NO_DRAFTS, IUT_RULE_TOKEN, 0},
    {"tells nothing", SILENT, IUT_RULE_TOKEN, 0},
    {"tells a cut step as it was emitted", TELLS_CUT, IUT_RULE_TOKEN, 0},
    {"drafts beyond the budget", DRAFTS_BEYOND, IUT_RULE_TOKEN, 0},
    {"match, drafts from the start", START_STATE, IUT_RULE_MATCH, 0},
    {"match, any number of drafts", ANY_LENGTH, IUT_RULE_MATCH, 0},
    {"match, sampled", PLAIN, IUT_RULE_MATCH, IUT_DRAFTS_SAMPLED},
    {"one-hot, sampled", PLAIN, IUT_RULE_ONEHOT, IUT_DRAFTS_SAMPLED},
    {"match, sampled, any number", ANY_LENGTH, IUT_RULE_MATCH, IUT_DRAFTS_SAMPLED},
    {"match, sampled, none where q is flat", CONFIDENT, IUT_RULE_MATCH, IUT_DRAFTS_SAMPLED},
    {"match, likeliest", PLAIN, IUT_RULE_MATCH, IUT_DRAFTS_ARGMAX},
    {"one-hot, likeliest", PLAIN, IUT_RULE_ONEHOT, IUT_DRAFTS_ARGMAX},
    {"match, likeliest, none where q is flat", CONFIDENT, IUT_RULE_MATCH, IUT_DRAFTS_ARGMAX},
    {"match, likeliest, cut otherwise", TELLS_CUT, IUT_RULE_MATCH, IUT_DRAFTS_ARGMAX},
};

static const struct {
    const char *name;
    uint8_t uniforms, rule, arithmetic, bits;
} sampled[] = {
    {"supplied uniforms", IUT_UNIFORMS_SUPPLIED, IUT_RULE_TOKEN, IUT_ARITH_F64, 53},
    {"seeded uniforms", IUT_UNIFORMS_SEEDED, IUT_RULE_TOKEN, IUT_ARITH_F64, 53},
    {"seeded, the match rule", IUT_UNIFORMS_SEEDED, IUT_RULE_MATCH, IUT_ARITH_F64, 53},
    {"binary32", IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_ARITH_F32, 24},
    {"bfloat16 rows", IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_ARITH_BF16, 24},
};

enum { RIGHTS = sizeof right / sizeof *right, SAMPLED = sizeof sampled / sizeof *sampled };

static const char *right_name(size_t i)
{
    return i < RIGHTS ? right[i].name : sampled[i - RIGHTS].name;
}

static const iut_api *become_right(size_t i, uint64_t noise)
{
    if (i < RIGHTS) {
        is.how = right[i].how, is.rule = right[i].rule, is.drafts = right[i].drafts, is.noise = noise;
        return &api;
    }
    i -= RIGHTS;
    sampler_settings = (struct sampler_settings){.fault = RIGHT, .uniforms = sampled[i].uniforms,
                                                 .rule = sampled[i].rule, .input = IUT_FROM_PROBS,
                                                 .arithmetic = sampled[i].arithmetic,
                                                 .uniform_bits = sampled[i].bits, .max_vocab = 1023,
                                                 .single = sampled[i].arithmetic != IUT_ARITH_F64, .rng = noise};
    return sampler_api();
}

static bool acquits(size_t i, int32_t seeds)
{
    size_t ineffective = 0, bet = 0, failed = 0;
    double most = -INFINITY;
    for (int32_t seed = 1; seed <= seeds; seed++) {
        run_report report;
        const iut_api *of = become_right(i, (uint64_t)seed * 104729);
        run(of, "*", (uint64_t)seed, 1e-6, asked.samples, &report);
        for (size_t k = 0; k < report.planned; k++) {
            const run_case *c = &report.cases[k];
            ineffective += verdict_ineffective(&report, c);
            if (c->result.speed.drafts == 0) continue;
            bet++, most = fmax(most, c->result.speed.log_e);
        }
        failed += report.exit_code == EXIT_NOT_CONFORMANT;
        run_report_free(&report);
    }
    printf("%-38s %d seeds, %4zu cases bet on, most ln E %5.2f: %zu told, %zu runs failed%s\n", right_name(i),
           (int)seeds, bet, most, ineffective, failed, ineffective + failed ? "  WRONG" : "");
    return ineffective + failed == 0;
}

/* -- The null ---------------------------------------------------------------------- */

/* Alarms of a case alone, at alpha: the line of a run is higher. */
static bool null_rates(size_t i, int32_t runs)
{
    enum { STREAMS = 500 };
    static const double alpha = 0.01;
    double sum = 0, squares = 0;
    int64_t cases = 0, alarms = 0;
    for (int32_t n = 1; n <= runs; n++) {
        run_report report;
        run(become_right(i, (uint64_t)n * 15485863), "*", (uint64_t)n + 1000, alpha, STREAMS, &report);
        for (size_t k = 0; k < report.planned; k++) {
            const check_speed *s = &report.cases[k].result.speed;
            if (s->drafts == 0) continue;
            const double e = exp(s->log_e);
            cases++, alarms += e >= 1 / alpha, sum += e, squares += e * e;
        }
        run_report_free(&report);
    }
    if (cases == 0) return true;
    const double n = (double)cases, mean = sum / n, error = sqrt(fmax(0, squares / n - mean * mean) / n);
    const bool fine = mean <= 1 + 3 * error && st_binom_log_sf(alarms, cases, alpha) > log(1e-4);
    printf("%-38s %d runs, %lld cases: %lld alarms at %g, mean e %.3f +- %.3f%s\n", right_name(i), (int)runs,
           (long long)cases, (long long)alarms, alpha, mean, error, fine ? "" : "  TOO MANY");
    return fine;
}

int main(int argc, char **argv)
{
    bool ok = true;
    if (!rates_read(&asked, argc, argv)) return 2;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        if (asked.seeds > 0 && rates_chosen(&asked, faults[i].name)) ok &= told(i, asked.seeds);
    for (size_t i = 0; i < RIGHTS + SAMPLED; i++)
        if (asked.acquit > 0 && rates_chosen(&asked, right_name(i))) ok &= acquits(i, asked.acquit);
    for (size_t i = 0; i < RIGHTS + SAMPLED; i++)
        if (asked.runs > 0 && rates_chosen(&asked, right_name(i))) ok &= null_rates(i, asked.runs);
    return ok ? 0 : 1;
}
