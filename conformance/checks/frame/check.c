/* What check.h offers to the checks: planning, seeds, results. Clauses STA-01, STA-02, VER-02.
 */
#include "conformance/checks/frame/check.h"

#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/coins.h"
#include "conformance/checks/frame/plan.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/wire/claims.h"

/* -- Seeds ------------------------------------------------------------------------------- */

/* A number of its own for every text. */
static uint64_t hash_text(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *s; s++) h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return h;
}

/* The first number after a state. */
static uint64_t first(uint64_t state)
{
    return probe_next(&state);
}

uint64_t check_seed(const check_context *x, const check_case *c, uint64_t purpose)
{
    return first(first(first(hash_text(c->id)) ^ x->seed) ^ purpose);
}

/* -- Planning ---------------------------------------------------------------------------- */

static check_case *plan_failed(check_plan *plan, const char *what, const char *id)
{
    if (!plan->error[0]) snprintf(plan->error, sizeof plan->error, "%s: %s", what, id);
    memset(&plan->spare, 0, sizeof plan->spare);
    return &plan->spare;
}

static bool plan_grow(check_plan *plan)
{
    if (plan->count < plan->capacity) return true;
    const size_t capacity = plan->capacity ? 2 * plan->capacity : 64;
    check_case **cases = realloc(plan->cases, capacity * sizeof *cases);
    if (!cases) return false;
    plan->cases = cases;
    plan->capacity = capacity;
    return true;
}

/* The id is `start` and the formatted text. */
static check_case *add_case(check_plan *plan, const check *owner, const char *start,
                            const char *format, va_list arguments)
{
    check_case *c = plan_grow(plan) ? calloc(1, sizeof *c) : NULL;
    if (!c) return plan_failed(plan, "out of memory while planning", owner->name);
    c->check = owner;
    int used = snprintf(c->id, sizeof c->id, "%s/%s", owner->name, start);
    if (used >= 0 && used < (int)sizeof c->id) {
        const int tail =
            vsnprintf(c->id + used, sizeof c->id - (size_t)used, format, arguments);
        used = tail < 0 ? (int)sizeof c->id : used + tail;
    }
    if (used < 0 || used >= (int)sizeof c->id) {
        plan_failed(plan, "case id longer than 95 characters", c->id);
    }
    plan->cases[plan->count++] = c;
    return c;
}

check_case *plan_case(check_plan *plan, const check *owner, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    check_case *c = add_case(plan, owner, "", format, arguments);
    va_end(arguments);
    return c;
}

check_case *draw_case(check_plan *plan, check_draw *d, const check *owner, const char *format,
                      ...)
{
    char start[64];
    va_list arguments;
    snprintf(start, sizeof start, "drawn/%llu/%d-", (unsigned long long)d->seed,
             (int)d->count++);
    va_start(arguments, format);
    check_case *c = add_case(plan, owner, start, format, arguments);
    va_end(arguments);
    c->drawn = true;
    return c;
}

/* Fitted on the law checks: a token costs about as much as 1000 entries of a row that is read whole. */
double cost_of_rows(int64_t n, int32_t V)
{
    return (double)n * ((double)V + 1000) / 2000;
}

int32_t gamma_within(int32_t gamma, const client *tested)
{
    const int32_t limit = client_claims(tested)->max_gamma;
    return limit > 0 && gamma > limit ? limit : gamma;
}

check_case case_within(const check_case *c, const client *tested)
{
    check_case within = *c;
    within.gamma = gamma_within(c->gamma, tested);
    return within;
}

bool glob_any(const char *const *globs, int32_t glob_count, const char *text)
{
    if (glob_count <= 0) return true;
    for (int32_t i = 0; i < glob_count; i++) {
        if (fnmatch(globs[i], text, 0) == 0) return true;
    }
    return false;
}

static int by_id(const void *a, const void *b)
{
    const check_case *const *x = a, *const *y = b;
    return strcmp((*x)->id, (*y)->id);
}

/* Two cases of one id could not be told apart in a report, a waiver or a replay line. */
static void refuse_duplicates(check_plan *plan)
{
    check_case **sorted = malloc((plan->count + 1) * sizeof *sorted);
    if (!sorted) {
        plan_failed(plan, "out of memory while planning", "all cases");
        return;
    }
    if (plan->count) memcpy(sorted, plan->cases, plan->count * sizeof *sorted);
    qsort(sorted, plan->count, sizeof *sorted, by_id);
    for (size_t i = 1; i < plan->count; i++) {
        if (strcmp(sorted[i - 1]->id, sorted[i]->id) == 0) {
            plan_failed(plan, "two cases have the id", sorted[i]->id);
        }
    }
    free(sorted);
}

bool plan_all(check_plan *plan, const check *const *list, check_level level)
{
    memset(plan, 0, sizeof *plan);
    for (; *list; list++) (*list)->plan(plan, level);
    refuse_duplicates(plan);
    return !plan->error[0];
}

/* Keeps of the cases from `from` on those that are claimed. */
static void keep_claimed(check_plan *plan, size_t from, const client *tested)
{
    char why[600];
    size_t kept = from;
    for (size_t i = from; i < plan->count; i++) {
        check_case *c = plan->cases[i];
        if (c->check->claimed(c, tested, why, sizeof why))
            plan->cases[kept++] = c;
        else
            free(c);
    }
    plan->count = kept;
}

bool plan_drawn(check_plan *plan, const check *const *list, check_level level, uint64_t seed,
                const client *tested)
{
    for (; *list; list++) {
        if (!(*list)->draw) continue;
        const size_t from = plan->count;
        check_draw d = {.seed = seed,
                        .level = level,
                        .iut = tested,
                        .rng = first(first(hash_text((*list)->name)) ^ seed)};
        (*list)->draw(plan, &d);
        keep_claimed(plan, from, tested);
    }
    refuse_duplicates(plan);
    return !plan->error[0];
}

void plan_free(check_plan *plan)
{
    for (size_t i = 0; i < plan->count; i++) free(plan->cases[i]);
    free(plan->cases);
    memset(plan, 0, sizeof *plan);
}

/* -- Results ----------------------------------------------------------------------------- */

/* What a status other than ok means when the suite asked for something that is claimed. */
static const char *refusal(iut_status status)
{
    switch (status) {
    case IUT_UNSUPPORTED:
        return "a case inside the declared limits is not served (CLM-02)";
    case IUT_BAD_INPUT:
        return "a valid input is refused (CLM-02)";
    case IUT_NO_DEVICE:
        return "the device or server that it needs is absent";
    case IUT_NO_MEMORY:
        return "it ran out of memory (CLM-02)";
    case IUT_OK:
    case IUT_FAILED:
        break;
    }
    return "it reports a failure of its own (CLM-02)";
}

/* The client's text without the name of the operation, if it starts with that. */
static const char *after_op(const char *text, const char *op)
{
    const size_t length = strlen(op);
    if (strncmp(text, op, length) != 0 || strncmp(text + length, ": ", 2) != 0) return text;
    return text + length + 2;
}

bool check_offers(const client *tested, iut_op op, char *why, size_t size)
{
    if (client_has(tested, op)) return true;
    snprintf(why, size, "%s is not claimed", iut_op_name(op));
    return false;
}

bool check_asks(const client *tested, iut_op op)
{
    const iut_claims *k = client_claims(tested);
    const int32_t coins = op == OP_VERIFY ? k->coins : op == OP_VERIFY_TREE ? k->tree_coins : 0;
    return client_has(tested, op) && !coins_race_alone(k, coins);
}

bool check_has(const client *tested, iut_op op, char *why, size_t size)
{
    if (!check_offers(tested, op, why, size)) return false;
    if (check_asks(tested, op)) return true;
    snprintf(why, size, "%s is a race", op == OP_VERIFY ? "coins" : "tree_coins");
    return false;
}

oracle_filters check_filters(const client *tested)
{
    _Static_assert(ORACLE_TEMPERATURE == 1 && ORACLE_MIN_P == 4, "the steps have the numbers of claims_order");
    oracle_filters how = {.ties_kept = client_claims(tested)->top_k_ties == IUT_TIES_KEPT};
    claims_order(client_claims(tested)->order, how.step);
    return how;
}

bool result_call(check_result *r, const check_context *x, const char *op, call_result call)
{
    const char *text = call == CALL_OK ? "" : after_op(client_text(x->iut), op);
    switch (call) {
    case CALL_OK:
        return true;
    case CALL_REFUSED: {
        const iut_status s = client_status(x->iut);
        result_set(r, s == IUT_NO_DEVICE ? STATE_UNAVAILABLE : STATE_FAIL, "%s: %s: %s", op,
                   text, refusal(s));
        break;
    }
    case CALL_CRASH:
        result_set(r, STATE_CRASH, "%s: %s", op, text);
        break;
    case CALL_TIMEOUT:
        result_set(r, STATE_TIMEOUT, "%s: %s", op, text);
        break;
    case CALL_INPUT_WRITTEN:
    case CALL_GARBAGE:
        result_set(r, STATE_FAIL, "%s: %s", op, text);
        break;
    case CALL_STOPPED:
        result_set(r, STATE_STOPPED, "%s: %s", op, text);
        break;
    case CALL_NO_SUCH: /* of a client that is open there is */
    case CALL_HARNESS:
        result_set(r, STATE_ERROR, "%s: %s", op, text);
        break;
    }
    return false;
}

bool result_refused(check_result *r, const check_context *x, const char *what, call_result call)
{
    r->compared++;
    if (call == CALL_REFUSED && client_status(x->iut) == IUT_BAD_INPUT) return true;
    if (call == CALL_OK)
        result_set(r, STATE_FAIL, "%s: accepted, though an error is declared", what);
    else if (call == CALL_REFUSED)
        result_set(r, STATE_FAIL, "%s: refused, but not as bad input: %s", what, client_text(x->iut));
    else
        result_call(r, x, what, call);
    return false;
}
