/* From results to an exit code. Clauses STA-01, VER-01 to VER-04, VER-07, VER-08, STAT-02. */
#include "conformance/suite/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/plan.h"
#include "conformance/stats/floor.h"
#include "conformance/stats/logmath.h"
#include "conformance/suite/layers.h"

void verdict_finding(run_report *report, check_state state, const char *format, ...)
{
    if (report->findings == RUN_FINDINGS) return; /* the first ones already decide */
    run_finding *f = &report->finding[report->findings++];
    f->state = state;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
    make_printable(f->text);
}

/* -- One case ---------------------------------------------------------------------------- */

/* Written so that a NaN fails every test that it must. */
static void distrust(const run_report *report, run_case *c)
{
    check_result *r = &c->result;
    if ((unsigned)r->state >= STATE_COUNT) {
        r->state = STATE_PASS;
        result_set(r, STATE_ERROR, "the check gave no state");
    } else if (!(r->log_e <= INFINITY) || !(r->log_p <= 0)) {
        result_set(r, STATE_ERROR, "the check gave ln E = %g, ln p = %g: not numbers", r->log_e,
                   r->log_p);
    } else if (c->plan->statistical && r->log_e >= report->log_e_fail) {
        result_set(r, STATE_FAIL, "ln E = %.4g reaches %.4g (STAT-02)", r->log_e,
                   report->log_e_fail);
    } else if (r->state <= STATE_ACCEPTABLE && r->compared <= 0) {
        result_set(r, STATE_ERROR, "%s, but nothing was compared (VER-02)",
                   state_name(r->state));
    }
}

bool verdict_ineffective(const run_report *report, const run_case *c)
{
    return c->result.speed.drafts > 0 && c->result.speed.log_e >= report->log_e_fail;
}

static bool can_be_waived(check_state s)
{
    return s == STATE_INCONCLUSIVE || s == STATE_FAIL || s == STATE_CRASH || s == STATE_TIMEOUT;
}

static const waiver *live_waiver(const waiver_set *set, const char *id)
{
    for (size_t i = 0; set && i < set->count; i++) {
        const waiver *w = &set->list[i];
        if (waiver_matches(w, id) && !waiver_expired(set, w)) return w;
    }
    return NULL;
}

void verdict_settle(const run_report *report, run_case *c)
{
    distrust(report, c);
    make_printable(c->result.detail);
    c->before_waiver = c->result.state;
    if (!can_be_waived(c->result.state)) return;
    c->waived_by = live_waiver(report->options->waivers, c->plan->id);
    if (c->waived_by) c->result.state = STATE_WAIVED;
}

/* -- The run ----------------------------------------------------------------------------- */

double verdict_weight(const run_report *report)
{
    return report->pooled ? 0.5 : 1;
}

/* An average of stopped e-processes with fixed weights is an e-value (STAT-02). A case that was
 * claimed and gave none, because it crashed, counts with e = 1. A waived case keeps its weight
 * and counts with e = 0: what is known to fail says nothing about the rest (VER-04). */
static bool average_e(run_report *report)
{
    double *log_e = malloc((report->statistical + 1) * sizeof *log_e);
    size_t n = 0;
    if (!log_e) return false;
    for (size_t i = 0; i < report->planned; i++) {
        const run_case *c = &report->cases[i];
        if (!c->plan->statistical || !c->claimed) continue;
        log_e[n++] = c->waived_by ? -INFINITY : c->result.log_e;
    }
    report->pool.average = n ? st_log_mean(log_e, NULL, n) : 0;
    free(log_e);
    return true;
}

static int by_nats(const void *a, const void *b)
{
    const run_case *const *x = a, *const *y = b;
    const double nats_x = (*x)->result.nats, nats_y = (*y)->result.nats;
    if (nats_x != nats_y) return nats_x < nats_y ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

/* The tokens of one process whose noise is its own. */
typedef struct {
    int32_t seat, process;
    st_pool sum;
} own_pool;

/* Joins the case's tokens: to those of its process, or to `common`. */
static void join(const run_case *c, st_pool *common, own_pool *own, size_t *n)
{
    size_t i = 0;
    if (!c->result.pool_own) {
        st_pool_join(common, &c->result.pool);
        return;
    }
    while (i < *n && (own[i].seat != c->seat || own[i].process != c->process)) i++;
    if (i == *n) own[(*n)++] = (own_pool){.seat = c->seat, .process = c->process};
    st_pool_join(&own[i].sum, &c->result.pool);
}

/* Weights of the processes, fixed before sampling: the threads weigh alike, and process j of a thread has the share
 * 1/((j+1)(j+2)) of its. What is left is on the common tokens alone. */
static bool average_pools(run_pool *pool, int32_t seats, const st_pool *common, const own_pool *own, size_t n)
{
    double *e = malloc(3 * (n + 1) * sizeof *e), *pit = e + n + 1, *weight = pit + n + 1, rest = 1;
    if (!e) return false;
    pool->sum = *common;
    for (size_t i = 0; i < n; i++) {
        const double j = own[i].process;
        st_pool both = *common;
        st_pool_join(&both, &own[i].sum);
        st_pool_join(&pool->sum, &own[i].sum);
        e[i] = st_pool_dictionary(&both);
        pit[i] = st_pool_pit(&both);
        rest -= weight[i] = 1 / ((j + 1) * (j + 2) * seats);
    }
    e[n] = st_pool_dictionary(common);
    pit[n] = st_pool_pit(common);
    weight[n] = fmax(0, rest);
    pool->dictionary = st_log_mean(e, weight, n + 1);
    pool->pit = st_log_mean(pit, weight, n + 1);
    free(e);
    return true;
}

/* The cases that the pool may take, in the order in which it takes them; NULL: no memory. */
static const run_case **pool_order(run_report *report, size_t *n)
{
    const run_case **order = malloc((report->planned + 1) * sizeof *order);
    *n = 0;
    for (size_t i = 0; order && i < report->planned; i++) {
        const run_case *c = &report->cases[i];
        if (!c->plan->pooled || !c->claimed) continue;
        if (live_waiver(report->options->waivers, c->plan->id))
            report->pool.left_out++;
        else
            order[(*n)++] = c;
    }
    if (order) qsort(order, *n, sizeof *order, by_nats);
    return order;
}

/* STAT-07. Which cases the pool takes is settled before sampling: by the waivers, and by what
 * rounding may earn, in ascending order until the limit of the strict null is spent. */
static bool pool_tokens(run_report *report)
{
    run_pool *pool = &report->pool;
    size_t n, processes = 0;
    const run_case **order = pool_order(report, &n);
    own_pool *own = calloc(n + 1, sizeof *own);
    st_pool common = {.n = 0};
    bool ok = order && own;
    for (size_t i = 0; ok && i < n; i++) {
        const check_result *r = &order[i]->result;
        if (!(pool->nats + r->nats <= ST_STRICT_NATS)) {
            pool->left_out += n - i;
            break;
        }
        pool->nats += r->nats;
        pool->cases += r->pool.n > 0;
        join(order[i], &common, own, &processes);
    }
    ok = ok && average_pools(pool, report->seats > 0 ? report->seats : 1, &common, own, processes);
    free(order);
    free(own);
    pool->caused = fmax(pool->dictionary, pool->pit) >= -log(report->alpha);
    pool->cause = st_pool_cause(&pool->sum, 0);
    return ok;
}

/* What the run's e-value consists of, and what the tokens of all cases point at. */
static void tell_e(run_report *report)
{
    const run_pool *pool = &report->pool;
    const double line = -log(report->alpha), weight = verdict_weight(report);
    char cause[160] = "", parts[400] = "";
    if (pool->caused) st_cause_text(&pool->cause, cause, sizeof cause);
    if (report->pooled)
        snprintf(parts, sizeof parts,
                 ": half of the cases' average e^%.4g, a quarter each of the dictionary's e^%.4g "
                 "and the transform's e^%.4g over the tokens of %zu cases (STAT-07)%s%s%s",
                 pool->average, pool->dictionary, pool->pit, pool->cases,
                 pool->average + log(weight) < line
                     ? "; it takes all cases together to see it"
                     : "",
                 *cause ? "; likeliest cause: " : "", cause);
    verdict_finding(report, STATE_FAIL,
                    report->pooled ? "the run's e-value of %zu cases is e^%.4g and reaches "
                                     "1/alpha = %.4g (STAT-02)%s"
                                   : "the run's average of %zu e-values is e^%.4g and reaches "
                                     "1/alpha = %.4g (STAT-02)%s",
                    report->statistical, report->log_e, 1 / report->alpha, parts);
}

/* What rounding may earn in the run's e-value: that is a mean, so the most that it may in a part of it. What is above
 * the limit of the strict null is bounded by the tolerance null, or was not judged. */
static double run_nats(const run_report *report)
{
    double most = report->pool.nats;
    for (size_t i = 0; i < report->planned; i++) {
        const run_case *c = &report->cases[i];
        if (c->plan->statistical && c->claimed && c->result.nats <= ST_STRICT_NATS) most = fmax(most, c->result.nats);
    }
    return most;
}

/* Supplied uniforms and seeds are new under a new seed of the run. `generate` may draw its own where verify and draw
 * are supplied with uniforms. */
static bool has_own_noise(const run_report *report)
{
    layer_summary layers[LAYERS];
    count_layers(report, layers);
    return report->claims.uniforms != IUT_UNIFORMS_SEEDED &&
           (report->claims.uniforms != IUT_UNIFORMS_SUPPLIED || layers[LAYER_ENGINE_LAW].judged > 0);
}

static void weigh_e(run_report *report)
{
    run_pool *pool = &report->pool;
    const double weight = verdict_weight(report), rest = (1 - weight) / 2;
    if (!average_e(report) || !pool_tokens(report)) {
        verdict_finding(report, STATE_ERROR, "out of memory for the e-value of the run");
        return;
    }
    report->log_e = st_log_mean((double[]){pool->average, pool->dictionary, pool->pit},
                                (double[]){weight, rest, rest}, 3);
    report->nats = run_nats(report);
    report->own_noise = has_own_noise(report);
    if (report->statistical && !(report->log_e < -log(report->alpha))) tell_e(report);
}

static void account(run_report *report)
{
    for (size_t i = 0; i < report->planned; i++) {
        const run_case *c = &report->cases[i];
        if (!c->reported) {
            verdict_finding(report, STATE_ERROR, "%s was planned and never reported (VER-02)",
                            c->plan->id);
            continue;
        }
        report->reported++;
        report->tally[c->result.state]++;
    }
    if (report->planned == 0 && report->findings == 0) {
        verdict_finding(report, STATE_ERROR,
                        "no case was selected (VER-02); `assay run --list` names them all");
    } else if (report->planned && report->tally[STATE_NOT_CLAIMED] == report->planned) {
        verdict_finding(report, STATE_ERROR,
                        "nothing that was selected is claimed, so nothing was tested (VER-02)");
    }
}

typedef struct {
    size_t planned, selected, used, passed, unjudged;
    const char *passing;
} waiver_use;

static waiver_use use_of(const run_report *report, const waiver *w)
{
    waiver_use use = {0};
    for (size_t i = 0; i < report->plan->count; i++) {
        use.planned += waiver_matches(w, report->plan->cases[i]->id);
    }
    for (size_t i = 0; i < report->planned; i++) {
        const run_case *c = &report->cases[i];
        if (!waiver_matches(w, c->plan->id)) continue;
        use.selected++;
        use.used += c->result.state == STATE_WAIVED;
        use.unjudged += c->result.state == STATE_STOPPED || c->result.state == STATE_UNAVAILABLE;
        if (c->result.state > STATE_ACCEPTABLE) continue;
        use.passed++;
        use.passing = c->plan->id;
    }
    return use;
}

/* A waiver whose cases `--only`, `--claims` or a stop left out of this run is not judged. */
static void judge_waiver(run_report *report, const waiver *w)
{
    const waiver_use use = use_of(report, w);
    if (waiver_expired(report->options->waivers, w)) {
        verdict_finding(report, STATE_FAIL, "the waiver of %s (%s) expired on %s (VER-04)",
                        w->pattern, w->issue, w->expires);
    } else if (use.planned && !use.selected) {
        return;
    } else if (use.passed) {
        verdict_finding(
            report, STATE_FAIL,
            "%s passes although %s waives it (%s): remove or narrow the waiver (VER-04)",
            use.passing, w->pattern, w->issue);
    } else if (!use.used && !use.unjudged) {
        verdict_finding(report, STATE_FAIL,
                        "the waiver of %s (%s) waives nothing: remove it (VER-04)", w->pattern,
                        w->issue);
    }
}

/* VER-08. */
static void require_layers(run_report *report)
{
    layer_summary layers[LAYERS];
    count_layers(report, layers);
    for (int i = 0; i < LAYERS; i++) {
        if (!(report->options->required >> i & 1) || layers[i].judged) continue;
        verdict_finding(
            report, STATE_INCONCLUSIVE,
            "the layer %s is required, and no case of it was judged: %.200s (VER-08)",
            layers[i].name, layers[i].why);
    }
}

/* VER-07. */
static bool judged_greedy_only(const run_report *report)
{
    layer_summary layers[LAYERS];
    count_layers(report, layers);
    return layers[LAYER_ENGINE_TOKENS].judged && !layers[LAYER_ENGINE_LAW].judged;
}

static int exit_code(const run_report *report)
{
    size_t tally[STATE_COUNT];
    memcpy(tally, report->tally, sizeof tally);
    for (size_t i = 0; i < report->findings; i++) tally[report->finding[i].state]++;
    if (report->no_such) return EXIT_USAGE;
    if (tally[STATE_ERROR] || report->reported != report->planned) return EXIT_ERROR;
    if (tally[STATE_FAIL] || tally[STATE_CRASH] || tally[STATE_TIMEOUT]) {
        return EXIT_NOT_CONFORMANT;
    }
    return tally[STATE_INCONCLUSIVE] || tally[STATE_UNAVAILABLE] || tally[STATE_STOPPED]
               ? EXIT_UNDECIDED
               : EXIT_CONFORMANT;
}

/* What the cases together show. */
static void judge_run(run_report *report)
{
    const waiver_set *waivers = report->options->waivers;
    weigh_e(report);
    account(report);
    if (report->tally[STATE_STOPPED]) report->stopped = stop_asked(report->stop);
    for (size_t i = 0; waivers && i < waivers->count; i++) {
        judge_waiver(report, &waivers->list[i]);
    }
    require_layers(report);
}

void verdict_close(run_report *report)
{
    if (!report->unopened) judge_run(report);
    report->exit_code = exit_code(report);
    report->greedy_only = report->exit_code == EXIT_CONFORMANT && judged_greedy_only(report);
}
