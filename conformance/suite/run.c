/* The runner: plan, claims, threads. What a result means is verdict.c's business.
 *
 * Cases are independent (check.h), so they are handed out one by one to threads that own a
 * client each; whatever a client's process does, its thread goes on with the next case
 * (STA-02). */
#include "conformance/suite/run.h"

#include <math.h>
#include <mpfr.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/frame/plan.h"
#include "conformance/checks/traces/brought.h"
#include "conformance/suite/again.h"
#include "conformance/suite/events.h"
#include "conformance/suite/opening.h"
#include "conformance/suite/verdict.h"
#include "conformance/wire/clock.h"

typedef struct {
    run_report *report;
    run_case **order;     /* [claimed] in which cases are taken */
    pthread_mutex_t lock; /* guards all that follows, the report's cases included */
    size_t claimed, next, done, failed;
    int32_t seats; /* threads that have begun */
    double start, cost, cost_done; /* when the first case began; costs of claimed cases */
} shared;

/* -- The plan ---------------------------------------------------------------------------- */

static const check *const *checks_of(const run_options *o)
{
    return o->checks ? o->checks : check_list;
}

static bool selected(const run_options *o, const check_case *c)
{
    return glob_any(o->claims, o->claims_count, c->check->name) &&
           glob_any(o->only, o->only_count, c->id);
}

static bool plan_failed(run_report *r, const char *why)
{
    verdict_finding(r, STATE_ERROR, "%s", why);
    return false;
}

/* The cases that are the same for every IUT. */
static bool plan(run_report *r)
{
    const run_options *o = r->options;
    r->plan = calloc(1, sizeof *r->plan);
    if (!r->plan) return plan_failed(r, "out of memory while planning");
    return plan_all(r->plan, checks_of(o), o->level) || plan_failed(r, r->plan->error);
}

/* --samples */
static void take_fewer(const run_options *o, check_case *k)
{
    if (!k->statistical || o->samples <= 0 || k->n <= o->samples) return;
    k->cost *= (double)o->samples / (double)k->n;
    k->n = o->samples;
}

/* Adds what is drawn for this IUT; NULL: it did not open. Then the selection is made, in the order of the checks.
 */
static bool plan_rest(run_report *r, const client *c)
{
    const run_options *o = r->options;
    if (c && !o->hand_made && !plan_drawn(r->plan, checks_of(o), o->level, o->seed, c))
        return plan_failed(r, r->plan->error);
    r->cases = calloc(r->plan->count + 1, sizeof *r->cases);
    if (!r->cases) return plan_failed(r, "out of memory while planning");
    for (const check *const *of = checks_of(o); *of; of++)
        for (size_t i = 0; i < r->plan->count; i++) {
            check_case *k = r->plan->cases[i];
            if (k->check != *of || !selected(o, k)) continue;
            take_fewer(o, k);
            r->cases[r->planned++].plan = k;
        }
    return true;
}

/* -- The IUT ----------------------------------------------------------------------------- */

/* The traces that come with the IUT, if a case asks for them. */
static struct brought *bring(const run_report *r)
{
    const run_options *o = r->options;
    const char *spec = o->api ? NULL : o->iut ? o->iut : "ref";
    const brought_source from = {.file = o->traces,
                                 .spec = spec,
                                 .writes = spec && o->writes_traces && o->writes_traces(spec),
                                 .assay = o->assay,
                                 .vectors = o->vectors,
                                 .stderr_log = o->stderr_log,
                                 .timeout = o->timeout,
                                 .stop = r->stop};
    for (size_t i = 0; i < r->plan->count; i++) {
        const check_case *c = r->plan->cases[i];
        if (c->check == &check_trace_methods && selected(o, c)) return brought_open(&from);
    }
    return NULL;
}

/* What it means that an IUT cannot be opened. */
static check_state state_of_open(call_result result, iut_status status)
{
    switch (result) {
    case CALL_REFUSED:
        return status == IUT_NO_DEVICE ? STATE_UNAVAILABLE : STATE_FAIL;
    case CALL_CRASH:
        return STATE_CRASH;
    case CALL_TIMEOUT:
        return STATE_TIMEOUT;
    case CALL_GARBAGE:
        return STATE_FAIL;
    case CALL_STOPPED:
        return STATE_STOPPED;
    default:
        return STATE_ERROR;
    }
}

static void keep_claims(run_report *r, const client *c)
{
    const iut_claims *claims = client_claims(c);
    const char *const text[3] = {claims->name, claims->version, claims->device};
    r->claims = *claims;
    r->operations = operations_of(c);
    for (int i = 0; i < 3; i++) {
        snprintf(r->identity[i], sizeof r->identity[i], "%s", text[i] ? text[i] : "");
        make_printable(r->identity[i]);
    }
    r->claims.name = r->identity[0];
    r->claims.version = r->identity[1];
    r->claims.device = r->identity[2];
}

/* Nothing is asked of an IUT that did not open: one finding says why (VER-09). A run that was
 * stopped before it could answer is another matter. */
static void not_opened(run_report *r, const client_failure *f)
{
    if (f->result == CALL_STOPPED) return;
    verdict_finding(r, state_of_open(f->result, f->status), "%s", f->text);
    r->unopened = true;
    r->no_such = f->result == CALL_NO_SUCH;
    r->planned = 0;
}

/* Opens the first client, completes the plan, and decides from its claims which cases will run. NULL: none can. */
static client *open_first(run_report *r)
{
    client_failure f;
    client *c = open_iut(r, r->options->timeout, r->stop, &f);
    const bool complete = plan_rest(r, c);
    if (!c || !complete) {
        if (!c) not_opened(r, &f);
        if (c) client_close(c);
        return NULL;
    }
    keep_claims(r, c);
    for (size_t i = 0; i < r->planned; i++) {
        run_case *k = &r->cases[i];
        char claim[sizeof k->result.detail] = "";
        k->claimed = k->plan->check->claimed(k->plan, c, claim, sizeof claim);
        if (!k->claimed) result_set(&k->result, STATE_NOT_CLAIMED, "%s", claim);
    }
    return c;
}

/* -- Cases ------------------------------------------------------------------------------- */

/* A failure that was found before the stop stays; nothing else that the case saw is a
 * judgement, and its figures rest on calls without an answer (VER-10). The pool keeps its tokens:
 * to leave some out by what came of them would be a choice (STAT-07). */
static void stop_case(run_case *k)
{
    const check_result seen = k->result;
    memset(&k->result, 0, sizeof k->result);
    k->result.pool = seen.pool;
    k->result.pool_own = seen.pool_own;
    k->result.nats = seen.nats;
    if (seen.state > STATE_STOPPED) {
        result_set(&k->result, seen.state, "%s", seen.detail);
        k->result.compared = seen.compared;
    } else {
        result_set(&k->result, STATE_STOPPED, "the run was stopped before the case had ended");
    }
}

/* False: the seat is empty or not the implementation that was planned for, as the result says. */
static bool take_seat(const run_report *r, run_case *k, client **seat)
{
    client_failure f;
    if (*seat) return true;
    *seat = open_iut(r, r->options->timeout, r->stop, &f);
    if (!*seat) {
        result_set(&k->result, state_of_open(f.result, f.status), "%s", f.text);
        return false;
    }
    const char *field = claims_otherwise(r, *seat);
    if (!field) return true;
    result_set(&k->result, STATE_FAIL,
               "a second process claims another `%s` than the first (CLM-13)", field);
    client_close(*seat); /* no case is planned for it */
    *seat = NULL;
    return false;
}

static void run_one(const run_report *r, run_case *k, client **seat)
{
    if (!take_seat(r, k, seat)) return;
    const check_context context = {.iut = *seat,
                                   .level = r->options->level,
                                   .seed = r->options->seed,
                                   .tables_total = r->tables,
                                   .log_e_fail = r->log_e_fail,
                                   .vectors = r->options->vectors};
    const double start = clock_now();
    k->result.tested = *seat;
    k->plan->check->run(k->plan, &context, &k->result);
    k->result.tested = NULL; /* it may be closed before the report is written */
    k->process = client_processes(*seat) - 1;
    k->seconds = clock_now() - start;
    if (client_stopped(*seat)) stop_case(k);
}

/* Seconds that the run may still take, by what its cases have taken so far; -1 while that is no
 * ground to tell. */
static double seconds_left(const shared *s)
{
    enum { GROUND = 5 }; /* seconds, and percent of the cost */
    const double elapsed = clock_now() - s->start;
    if (elapsed < GROUND || s->cost_done <= 0 || 100 * s->cost_done < GROUND * s->cost)
        return -1;
    return elapsed * (s->cost - s->cost_done) / s->cost_done;
}

/* The next case to run, or NULL after the last. */
static run_case *take(shared *s)
{
    const run_options *o = s->report->options;
    pthread_mutex_lock(&s->lock);
    const bool more = s->next < s->claimed && !stop_asked(s->report->stop);
    run_case *k = more ? s->order[s->next++] : NULL;
    if (k) {
        event_begin(o->log, k);
        if (o->progress)
            o->progress(o->progress_arg, k->plan->id, s->done, s->claimed, seconds_left(s));
    }
    pthread_mutex_unlock(&s->lock);
    return k;
}

static void report_case(const run_report *r, run_case *k)
{
    verdict_settle(r, k);
    k->reported = true;
    event_case(r->options->log, r, k);
}

static void hand_in(shared *s, run_case *k)
{
    const run_options *o = s->report->options;
    pthread_mutex_lock(&s->lock);
    report_case(s->report, k);
    s->failed += k->result.state == STATE_FAIL;
    s->done++;
    s->cost_done += k->plan->cost;
    if (o->enough && s->failed >= o->enough)
        stop_ask(s->report->stop, STOP_ENOUGH, clock_now());
    pthread_mutex_unlock(&s->lock);
}

/* How the process ends weighs, too (VER-03). The clients of a run mostly end alike: one finding
 * tells it. */
static void finish(shared *s, client *seat)
{
    run_report *r = s->report;
    const call_result end = client_finish(seat);
    pthread_mutex_lock(&s->lock);
    if (end != CALL_OK && end != CALL_STOPPED && !r->findings) {
        verdict_finding(r, state_of_open(end, IUT_OK), "%s (VER-03, FRM-04)",
                        client_text(seat));
    }
    pthread_mutex_unlock(&s->lock);
    client_close(seat);
}

static void work(shared *s, client *seat)
{
    pthread_mutex_lock(&s->lock);
    const int32_t number = s->seats++;
    pthread_mutex_unlock(&s->lock);
    for (run_case *k = take(s); k; k = take(s)) {
        k->seat = number;
        run_one(s->report, k, &seat);
        hand_in(s, k);
    }
    if (seat) finish(s, seat);
    mpfr_free_cache(); /* the checks' judges compute with MPFR, which caches by thread */
}

static void *work_in_thread(void *arg)
{
    work(arg, NULL);
    return NULL;
}

/* Large cases first, so that no thread is left alone with one at the end; the order decides
 * nothing else. */
static int by_cost(const void *a, const void *b)
{
    const run_case *const *x = a, *const *y = b;
    const double cost_x = (*x)->plan->cost, cost_y = (*y)->plan->cost;
    if (cost_x != cost_y) return cost_x > cost_y ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

enum { JOBS_MAX = 256 };

static int thread_count(const shared *s)
{
    const int asked = s->report->options->jobs;
    long jobs = asked > 0 ? asked : sysconf(_SC_NPROCESSORS_ONLN);
    if (jobs > (long)s->claimed) jobs = (long)s->claimed;
    return jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : (int)jobs;
}

/* This thread works too, so that the run ends even when no other can be started. */
static void run_cases(run_report *r, client *first)
{
    shared s = {
        .report = r, .order = malloc(r->planned * sizeof *s.order), .start = clock_now()};
    pthread_t thread[JOBS_MAX];
    int started = 0;
    if (!s.order) { /* no case is reported, which is an ERROR of the run */
        if (first) client_close(first);
        return;
    }
    for (size_t i = 0; i < r->planned; i++) {
        run_case *k = &r->cases[i];
        if (first && !k->claimed) {
            report_case(r, k); /* open_first has set the result */
            continue;
        }
        s.order[s.claimed++] = k; /* of an IUT whose claims are not known, all */
        s.cost += k->plan->cost;
    }
    qsort(s.order, s.claimed, sizeof *s.order, by_cost);
    pthread_mutex_init(&s.lock, NULL);
    const int wanted = thread_count(&s) - 1;
    r->seats = wanted + 1;
    while (started < wanted &&
           pthread_create(&thread[started], NULL, work_in_thread, &s) == 0) {
        started++;
    }
    work(&s, first);
    for (int i = 0; i < started; i++) pthread_join(thread[i], NULL);
    while (s.next < s.claimed) { /* stopped */
        run_case *k = s.order[s.next++];
        result_set(&k->result, STATE_STOPPED, "the run was stopped before the case began");
        report_case(r, k);
    }
    pthread_mutex_destroy(&s.lock);
    free(s.order);
}

/* -- The weights ------------------------------------------------------------------------- */

/* T and the weights of the e-values, fixed before the first sample (STAT-01, STAT-02). */
static void divide_alpha(run_report *r)
{
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *k = &r->cases[i];
        if (!k->claimed) continue;
        r->tables += k->plan->tables;
        r->statistical += k->plan->statistical;
        r->pooled += k->plan->pooled;
    }
    r->log_e_fail = -log(r->alpha) + log((double)(r->statistical ? r->statistical : 1)) -
                    log(verdict_weight(r));
}

int run_suite(const run_options *options, run_report *report)
{
    const double start = clock_now();
    memset(report, 0, sizeof *report);
    report->options = options;
    report->alpha = options->alpha > 0 ? options->alpha : 1e-6;
    report->stop = options->stop ? options->stop : &report->own_stop;
    if (options->budget > 0) stop_ask(report->stop, STOP_BUDGET, start + options->budget);
    client *first = NULL;
    if (plan(report)) {
        report->traces = bring(report);
        first = open_first(report);
        divide_alpha(report);
    }
    event_start(options->log, report);
    run_cases(report, first);
    again_ask(report);
    brought_close(report->traces);
    verdict_close(report);
    report->seconds = clock_now() - start;
    if (options->progress) {
        options->progress(options->progress_arg, "", 0, 0, -1);
    }
    event_end(options->log, report);
    return report->exit_code;
}

void run_report_free(run_report *report)
{
    if (report->plan) plan_free(report->plan);
    free(report->plan);
    free(report->cases);
    memset(report, 0, sizeof *report);
}
