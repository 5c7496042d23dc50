/* again.c - see again.h. A case is asked as it was, in a fresh process; if it fails once more, with each question in a
 * process of its own (alone.h). */
#include "conformance/suite/again.h"

#include <math.h>
#include <mpfr.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/suite/alone.h"
#include "conformance/suite/events.h"
#include "conformance/suite/opening.h"
#include "conformance/wire/clock.h"

typedef struct {
    run_report *report;
    run_case *k;
    check_case plan; /* the case, or less of it */
    double end;      /* of its time, by clock_now() */
    stop limit;      /* asked for before that end, or with the run's */
} asking;

/* ---- What a second result says. -------------------------------------------------------------- */

typedef enum { RIGHT, WRONG, UNCLEAR } outcome;

/* Of a law a pass says nothing if it has not lost its evidence: a sample may fall just short of the line. */
static bool is_quiet(const check_case *c, const check_result *x)
{
    return !c->statistical || (x->log_e <= 1 && x->log_p >= log(1e-4));
}

static outcome judge(const run_report *r, const check_case *c, const check_result *x)
{
    const bool convinced = c->statistical && x->log_e >= r->log_e_fail && x->state <= STATE_INCONCLUSIVE;
    if (x->state == STATE_FAIL || x->state == STATE_CRASH || convinced) return WRONG;
    return x->state <= STATE_ACCEPTABLE && x->compared > 0 && is_quiet(c, x) ? RIGHT : UNCLEAR;
}

static outcome run_with(const asking *a, client *c)
{
    const run_report *r = a->report;
    const check_context context = {.iut = c,
                                   .level = r->options->level,
                                   .seed = r->options->seed,
                                   .tables_total = r->tables,
                                   .log_e_fail = r->log_e_fail,
                                   .vectors = r->options->vectors,
                                   .again = true};
    check_result x = {.tested = c};
    a->plan.check->run(&a->plan, &context, &x);
    return client_stopped(c) ? UNCLEAR : judge(r, &a->plan, &x);
}

/* ---- Asking. --------------------------------------------------------------------------------- */

static double timeout_of(const run_options *o)
{
    return o->timeout > 0 ? fmin(o->timeout, AGAIN_SECONDS_OF_A_CASE) : AGAIN_SECONDS_OF_A_CASE;
}

static client *open_again(const asking *a)
{
    client_failure f;
    client *c = open_iut(a->report, timeout_of(a->report->options), &a->limit, &f);
    if (!c || !claims_otherwise(a->report, c)) return c;
    client_close(c);
    return NULL;
}

/* As it was, in a fresh process. */
static outcome in_fresh_process(const asking *a)
{
    client *c = open_again(a);
    const outcome o = c ? run_with(a, c) : UNCLEAR;
    if (c) client_close(c);
    return o;
}

/* Of an exact case its first questions may do: then each can be asked alone. */
static void ask_for_less(asking *a)
{
    for (int64_t n = 64; !a->plan.statistical && n <= ALONE_FEW && n < a->k->plan->n; n *= 4) {
        a->plan.n = n;
        if (in_fresh_process(a) == WRONG) return;
    }
    a->plan.n = a->k->plan->n;
}

static outcome in_many_processes(const asking *a, const char **spoilt)
{
    client *c = open_again(a);
    alone *each = c ? alone_open(c, a->plan.statistical, a->end) : NULL;
    const outcome o = each ? run_with(a, alone_client(each)) : UNCLEAR;
    *spoilt = each ? alone_spoilt(each) : NULL;
    alone_close(each);
    if (c) client_close(c);
    return *spoilt ? UNCLEAR : o;
}

static void say(run_case *k, again_word word, const char *why)
{
    k->again = word;
    k->again_why = why;
}

static void find_word(asking *a)
{
    run_case *k = a->k;
    const char *spoilt;
    outcome o = in_fresh_process(a);
    if (o == RIGHT)
        say(k, AGAIN_STATE, "it passes in a fresh process, where no other case comes before");
    else if (o == UNCLEAR)
        say(k, AGAIN_UNSAID, "in a fresh process it neither passes nor fails clearly");
    if (o != WRONG) return;
    ask_for_less(a);
    o = in_many_processes(a, &spoilt);
    if (o == RIGHT)
        say(k, AGAIN_STATE, "it passes where each question is the only one of a process");
    else if (o == WRONG)
        say(k, AGAIN_ARITHMETIC, "it fails where each question is the only one of a process");
    else
        say(k, AGAIN_UNSAID, spoilt ? spoilt : "question by question it neither passes nor fails clearly");
}

static void ask_case(run_report *r, run_case *k, double end)
{
    asking a = {.report = r, .k = k, .plan = *k->plan, .end = fmin(end, clock_now() + AGAIN_SECONDS_OF_A_CASE),
                .limit = {.also = r->stop}};
    stop_ask(&a.limit, STOP_BUDGET, a.end - STOP_GRACE);
    if (k->seconds > AGAIN_SECONDS_OF_A_CASE)
        say(k, AGAIN_UNSAID, "it takes too long to be asked again");
    else
        find_word(&a);
    event_again(r->options->log, k);
}

/* ---- Which. ---------------------------------------------------------------------------------- */

/* Traces are read from a file: nothing is asked of a process. */
static bool can_be_asked(const run_case *k)
{
    return k->claimed && k->reported && (k->result.state == STATE_FAIL || k->result.state == STATE_CRASH) &&
           k->plan->check != &check_trace_methods;
}

/* Of each check its next case, in the order of the report; how many. */
static int32_t ask_round(run_report *r, int32_t most, double end)
{
    const check *last = NULL;
    int32_t asked = 0;
    for (size_t i = 0; i < r->planned && asked < most; i++) {
        run_case *k = &r->cases[i];
        if (stop_asked(r->stop) || clock_now() >= end) break;
        if (k->again != AGAIN_NOT_ASKED || k->plan->check == last || !can_be_asked(k)) continue;
        ask_case(r, k, end);
        last = k->plan->check;
        asked++;
    }
    return asked;
}

void again_ask(run_report *r)
{
    const double end = clock_now() + AGAIN_SECONDS;
    if (r->unopened || r->options->hand_made || r->options->enough) return;
    for (int32_t round = 0, left = AGAIN_CASES; round < AGAIN_OF_A_CHECK; round++) left -= ask_round(r, left, end);
    mpfr_free_cache();
}
