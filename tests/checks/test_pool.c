/* pool.values against a pool that is right, or wrong in one way each that the kill matrix does
 * not have: what is written where nothing is due, answers of a shape of their own, refusals of
 * what is good; and what is claimed of it. POOL-01 to POOL-06, CLM-10. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/frame/plan.h"
#include "conformance/subjects/ref/subject.h"

typedef enum {
    HONEST,
    COUNTS_INSERTIONS, /* an insertion gets a count */
    SHOWS_INSERTIONS,  /* and a value */
    SILENT,            /* answers nothing */
    GARBAGE_BEHIND,    /* a token behind the last value */
    COUNT_ONE_MORE,
    COUNT_ONE_LESS,
    LAST_TOKEN,    /* of the last value is another */
    REFUSES_EMPTY, /* a look-up that finds nothing */
    OTHER_STATUS,  /* for what is to be refused */
    TAKES_MINIMUM  /* of the ids that are to be refused, one */
} spoil;

static spoil spoilt;
static uint8_t pools;
static int32_t max_vocab;

static iut_status claims(iut *x, iut_claims *c)
{
    const iut_status s = ref_api()->claims(x, c);
    c->pools = pools;
    c->max_vocab = max_vocab;
    return s;
}

static bool has_minimum(const iut_pool_batch *b)
{
    bool has = false;
    for (int32_t i = 0; i < b->n; i++) has |= b->key[i] == INT32_MIN;
    return has;
}

static iut_status pool(iut *x, iut_pool_batch *b)
{
    const int32_t length = b->N - 1;
    if (spoilt == SILENT || (spoilt == TAKES_MINIMUM && has_minimum(b))) return IUT_OK;
    const iut_status s = ref_api()->pool(x, b);
    if (s != IUT_OK) return spoilt == OTHER_STATUS ? IUT_FAILED : s;
    for (int32_t i = 0; i < b->n; i++) {
        int32_t *out = b->out + i * b->G * length, *count = &b->count[i], n = *count;
        if (b->insert[i]) {
            if (spoilt == COUNTS_INSERTIONS) *count = 1;
            if (spoilt == SHOWS_INSERTIONS && b->G > 0) out[0] = b->value[i * length];
            continue;
        }
        if (spoilt == REFUSES_EMPTY && n == 0) return IUT_BAD_INPUT;
        if (spoilt == GARBAGE_BEHIND && n > 0 && n < b->G) out[n * length] = 0;
        if (spoilt == COUNT_ONE_MORE && n > 0) ++*count;
        if (spoilt == COUNT_ONE_LESS && n > 0) --*count;
        if (spoilt == LAST_TOKEN && n > 0) out[n * length - 1] ^= 1;
    }
    return IUT_OK;
}

typedef struct {
    int32_t count[STATE_COUNT];
    char text[STATE_COUNT][700]; /* the first of each */
} tally;

static client *open_spoilt(spoil how, uint8_t kinds, int32_t vocabulary)
{
    static iut_api table;
    client_failure f;
    spoilt = how, pools = kinds, max_vocab = vocabulary;
    table = *ref_api();
    table.claims = claims, table.pool = pool;
    client *c = client_open_table(&table, "", &f);
    if (!c) fail_msg("%s", f.text);
    return c;
}

/* The cases whose id the pattern fits. */
static tally run(client *c, const char *pattern)
{
    const check *const list[] = {&check_pool_values, NULL};
    const check_context x = {.iut = c, .level = LEVEL_SMOKE, .seed = 1};
    check_plan plan;
    tally t = {0};
    assert_true(plan_all(&plan, list, LEVEL_SMOKE));
    for (size_t i = 0; i < plan.count; i++) {
        check_result r = {0};
        if (fnmatch(pattern, plan.cases[i]->id, 0) != 0) continue;
        if (!check_pool_values.claimed(plan.cases[i], c, r.detail, sizeof r.detail))
            r.state = STATE_NOT_CLAIMED;
        else
            check_pool_values.run(plan.cases[i], &x, &r);
        if (r.state == STATE_PASS && r.compared == 0) r.state = STATE_ERROR;
        if (t.count[r.state]++ == 0)
            snprintf(t.text[r.state], sizeof t.text[0], "%s: %s", plan.cases[i]->id, r.detail);
    }
    plan_free(&plan);
    client_close(c);
    return t;
}

/* `count` cases of the pattern end in the state, the others pass, and the first says so. */
static void expect(tally t, check_state state, int32_t count, const char *says)
{
    for (int s = 0; s < STATE_COUNT; s++)
        if (s != STATE_PASS && t.count[s] != (s == (int)state ? count : 0))
            fail_msg("%d cases in state %d: %s", (int)t.count[s], s, t.text[s]);
    if (!strstr(t.text[state], says))
        fail_msg("\"%s\" does not say \"%s\"", t.text[state], says);
}

enum { BOTH = IUT_POOL_LRU | IUT_POOL_RING, CASES = 33 };

static void the_reference_passes(void **unused)
{
    (void)unused;
    const tally t = run(open_spoilt(HONEST, BOTH, 0), "*");
    assert_int_equal(t.count[STATE_PASS], CASES);
    expect(t, STATE_PASS, 0, "look-ups and refusals as specified");
}

/* Of the grid 30 cases, 24 with room for a value. */
static void wrong_answers_fail(void **unused)
{
    static const struct {
        spoil how;
        int32_t fail;
        const char *says;
    } set[] = {{COUNTS_INSERTIONS, CASES,
                "N 2, G 0, operation 1 of a pool, insertion of key 0: count 1"},
               {SHOWS_INSERTIONS, 27,
                "insertion of key 0: count -1 of (0) where count -1 of (-1) is due"},
               {SILENT, CASES, "look-up of key 0: count -1 of  where count 0 of  is due"},
               {GARBAGE_BEHIND, 21,
                "look-up of key 0: count 1 of (0) (0) where count 1 of (0) (-1) is due"},
               {COUNT_ONE_MORE, 27, "count 2 of (0) where count 1 of (0) is due"},
               {COUNT_ONE_LESS, 27, "count 0 of (0) where count 1 of (0) is due"},
               {LAST_TOKEN, 27, "count 1 of (1) where count 1 of (0) is due"},
               {REFUSES_EMPTY, CASES, "a valid input is refused"},
               {OTHER_STATUS, 2, "it reports a failure of its own"},
               {TAKES_MINIMUM, 2,
                "the key of a look-up is -2147483648, of a vocabulary of 7: it is not"}};
    (void)unused;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++)
        expect(run(open_spoilt(set[i].how, BOTH, 0), "*"), STATE_FAIL, set[i].fail,
               set[i].says);
}

static void kinds_that_are_not_named_are_not_claimed(void **unused)
{
    (void)unused;
    expect(run(open_spoilt(HONEST, IUT_POOL_RING, 0), "*"), STATE_NOT_CLAIMED, 17,
           "pools has no lru");
    expect(run(open_spoilt(HONEST, IUT_POOL_LRU, 0), "*"), STATE_NOT_CLAIMED, 16,
           "pools has no ring");
    expect(run(open_spoilt(HONEST, 0, 0), "*"), STATE_NOT_CLAIMED, CASES, "pools has no");
    expect(run(open_spoilt(HONEST, BOTH, 4999), "*"), STATE_NOT_CLAIMED, 30,
           "max_vocab is 4999");
}

static void without_the_operation_nothing_is_claimed(void **unused)
{
    client_failure f;
    iut_api table = *ref_api();
    (void)unused;
    table.pool = NULL;
    client *c = client_open_table(&table, "", &f);
    assert_non_null(c);
    expect(run(c, "*"), STATE_NOT_CLAIMED, CASES, "pool is not claimed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_passes), cmocka_unit_test(wrong_answers_fail),
        cmocka_unit_test(kinds_that_are_not_named_are_not_claimed),
        cmocka_unit_test(without_the_operation_nothing_is_claimed)};
    return cmocka_run_group_tests_name("pool.values", tests, NULL, NULL);
}
