/* What is bet on what is accepted (STAT-14): its mean under every right implementation, by enumeration, and what is
 * evidence. What the suite tells and acquits as a whole is measured by speed_rates. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>

#include "conformance/checks/law/law_speed.h"

static panel *made(int32_t V, int32_t layers, int32_t classes, panel_variant variant)
{
    char why[200];
    panel *a = panel_make(&(panel_form){.V = V, .layers = layers, .classes = classes, .seed = 5, .variant = variant},
                          why, sizeof why);
    if (!a) fail_msg("%s", why);
    return a;
}

static void opened_by(law_speed *t, const panel *a, law_op op, uint8_t rule, int32_t drafts)
{
    assert_true(law_speed_known(a, op, rule, drafts));
    assert_true(law_speed_open(t, a, op, rule, drafts));
}

static void opened(law_speed *t, const panel *a, law_op op, uint8_t rule)
{
    opened_by(t, a, op, rule, 0);
}

/* -- Means ------------------------------------------------------------------------- */

enum { DRAFTS = 12, TOKENS = 7 };
static const int64_t request[DRAFTS] = {0, 1, 7, 8, 9, 63, 64, 65, 511, 512, 513, 9999};

/* Every answer to twelve drafts, in the states in turn and in all ranges of requests. */
static double mean_of_counts(const panel *a, uint8_t rule)
{
    double mean = 0;
    for (uint32_t all = 0; all < 1u << DRAFTS; all++) {
        law_speed t;
        double p = 1;
        opened(&t, a, LAW_VERIFY, rule);
        for (int32_t i = 0; i < DRAFTS; i++) {
            const int32_t state = i % a->view.S;
            const bool stood = all >> i & 1;
            p *= stood ? t.due[state] : 1 - t.due[state];
            law_speed_examined(&t, request[i], state, stood);
        }
        mean += p * exp(law_speed_log_e(&t));
        law_speed_close(&t);
    }
    return mean;
}

/* Every sequence of seven accepted drafts. Drafts that were refused make the other of the two e-values large. */
static double mean_of_tokens(const panel *a, uint8_t rule, int32_t drafts)
{
    const int32_t V = a->view.V;
    double mean = 0;
    int32_t sequences = 1;
    for (int32_t i = 0; i < TOKENS; i++) sequences *= V;
    for (int32_t all = 0; all < sequences; all++) {
        law_speed t;
        double p = 1;
        opened_by(&t, a, LAW_STREAM, rule, drafts);
        for (int32_t i = 0; i < 200; i++) law_speed_examined(&t, 0, 0, false);
        for (int32_t i = 0, left = all; i < TOKENS; i++, left /= V) {
            const int32_t state = i % a->view.S;
            p *= t.law[state * V + left % V];
            if (t.law[state * V + left % V] > 0) law_speed_accepted(&t, request[i], state, left % V);
        }
        if (p > 0) mean += p * exp(law_speed_log_e(&t));
        law_speed_close(&t);
    }
    return mean;
}

static void bets_on_speed_have_the_mean_one(void **unused)
{
    static const uint8_t rules[] = {IUT_RULE_TOKEN, IUT_RULE_MATCH, IUT_RULE_ONEHOT};
    (void)unused;
    panel *a = made(3, 2, 2, PANEL_PLAIN), *masked = made(4, 2, 1, PANEL_MASKED);
    for (int i = 0; i < 3; i++) assert_true(fabs(mean_of_counts(a, rules[i]) - 1) < 1e-9);
    assert_true(fabs(mean_of_tokens(a, IUT_RULE_TOKEN, 0) - 1) < 1e-9);
    assert_true(fabs(mean_of_tokens(masked, IUT_RULE_TOKEN, IUT_DRAFTS_SAMPLED) - 1) < 1e-9);
    assert_true(fabs(mean_of_tokens(a, IUT_RULE_MATCH, IUT_DRAFTS_SAMPLED) - 1) < 1e-9);
    assert_true(fabs(mean_of_tokens(masked, IUT_RULE_ONEHOT, IUT_DRAFTS_SAMPLED) - 1) < 1e-9);
    assert_true(fabs(mean_of_tokens(a, IUT_RULE_MATCH, IUT_DRAFTS_ARGMAX) - 1) < 1e-9);
    panel_free(a);
    panel_free(masked);
}

/* -- Evidence ---------------------------------------------------------------------- */

/* n steps in each state; of their drafts `share` is accepted, relative to what is due. */
static void count_steps(law_speed *t, int32_t n, double share)
{
    for (int32_t s = 0; s < t->a->view.S; s++)
        for (int32_t i = 0; i < n; i++) {
            const double rate = t->due[s] * share;
            law_speed_examined(t, i, s, floor((i + 1) * rate) > floor(i * rate));
        }
}

/* As many accepted drafts, by the law of the state `shift` further on. */
static void count_tokens(law_speed *t, int32_t n, int32_t shift)
{
    const int32_t S = t->a->view.S, V = t->a->view.V;
    for (int32_t s = 0; s < S; s++)
        for (int32_t x = 0; x < V; x++) {
            const double law = t->law[(s + shift) % S * V + x];
            for (int32_t i = 0; i < lround(n * law); i++) law_speed_accepted(t, 1000, s, x);
        }
}

static double verified(const panel *a, uint8_t rule, double share)
{
    law_speed t;
    opened(&t, a, LAW_VERIFY, rule);
    count_steps(&t, 2000, share);
    const double log_e = law_speed_log_e(&t);
    law_speed_close(&t);
    return log_e;
}

static double streamed_by(const panel *a, uint8_t rule, int32_t drafts, double share, int32_t shift)
{
    law_speed t;
    opened_by(&t, a, LAW_STREAM, rule, drafts);
    count_steps(&t, 2000, share);
    count_tokens(&t, 500, shift);
    const double log_e = law_speed_log_e(&t);
    law_speed_close(&t);
    return log_e;
}

static double streamed(const panel *a, double share, int32_t shift)
{
    return streamed_by(a, IUT_RULE_TOKEN, 0, share, shift);
}

/* The first 64 of 20,000 requests accept nothing. */
static double cold(const panel *a)
{
    law_speed t;
    opened(&t, a, LAW_VERIFY, IUT_RULE_TOKEN);
    for (int32_t i = 0; i < 20000; i++)
        law_speed_examined(&t, i, 0, i >= 64 && floor((i + 1) * t.due[0]) > floor(i * t.due[0]));
    const double log_e = law_speed_log_e(&t);
    law_speed_close(&t);
    return log_e;
}

static void less_is_told_and_fewer_drafts_are_not(void **unused)
{
    static const uint8_t rules[] = {IUT_RULE_TOKEN, IUT_RULE_MATCH, IUT_RULE_ONEHOT};
    (void)unused;
    panel *a = made(8, 4, 3, PANEL_PLAIN);
    for (int i = 0; i < 3; i++) {
        assert_true(verified(a, rules[i], 1) < 1);
        assert_true(verified(a, rules[i], 1.1) < 1);
        assert_true(verified(a, rules[i], 0.8) > 20);
    }
    assert_true(cold(a) > 20);
    assert_true(streamed(a, 1, 0) < 1);
    assert_true(streamed(a, 0.5, 0) < 1);  /* drafts in every second step */
    assert_true(streamed(a, 1, 1) < 1);    /* other drafts that are as good */
    assert_true(streamed(a, 0.8, 1) > 20); /* other drafts that are worse */
    for (int32_t drafts = IUT_DRAFTS_SAMPLED; drafts <= IUT_DRAFTS_ARGMAX; drafts++)
        for (int i = 1; i < 3; i++) {
            assert_true(streamed_by(a, rules[i], drafts, 1, 0) < 1);
            assert_true(streamed_by(a, rules[i], drafts, 0.5, 0) < 1);
            assert_true(streamed_by(a, rules[i], drafts, 1, 1) < 1);
            assert_true(streamed_by(a, rules[i], drafts, 0.8, 1) > 20);
        }
    panel_free(a);
}

/* A draft that q never draws, and a sure draft that is refused, are proofs. */
static void proofs_are_infinite(void **unused)
{
    law_speed t;
    (void)unused;
    panel *a = made(8, 4, 3, PANEL_ONEHOT_Q), *equal = made(8, 4, 3, PANEL_EQUAL);
    int32_t never = 0;
    while (panel_q(a, 0)[never] > 0) never++;
    opened(&t, a, LAW_STREAM, IUT_RULE_TOKEN);
    count_steps(&t, 2000, 0);
    law_speed_accepted(&t, 0, 0, never);
    assert_true(law_speed_log_e(&t) > 0);
    law_speed_close(&t);
    opened(&t, equal, LAW_VERIFY, IUT_RULE_TOKEN);
    law_speed_examined(&t, 0, 0, false);
    assert_true(law_speed_log_e(&t) == INFINITY);
    law_speed_close(&t);
    panel_free(a);
    panel_free(equal);
}

static void what_no_clause_says_is_not_known(void **unused)
{
    static const uint8_t none[] = {0, IUT_RULE_BLOCK, IUT_RULE_NOT_LOSSLESS};
    (void)unused;
    panel *a = made(8, 4, 3, PANEL_PLAIN);
    for (int32_t drafts = 0; drafts <= IUT_DRAFTS_ARGMAX; drafts++)
        for (int i = 0; i < 3; i++) {
            assert_false(law_speed_known(a, LAW_VERIFY, none[i], drafts));
            assert_false(law_speed_known(a, LAW_STREAM, none[i], drafts));
        }
    assert_false(law_speed_known(a, LAW_STREAM, IUT_RULE_MATCH, 0));
    assert_false(law_speed_known(a, LAW_STREAM, IUT_RULE_ONEHOT, 0));
    assert_false(law_speed_known(a, LAW_STREAM, IUT_RULE_TOKEN, IUT_DRAFTS_ARGMAX));
    assert_false(law_speed_known(a, LAW_DRAW, IUT_RULE_TOKEN, 0));
    /* Two likeliest tokens that rounding may exchange. */
    double *q = (double *)(uintptr_t)panel_q(a, 1);
    int32_t best = 0;
    for (int32_t x = 1; x < 8; x++)
        if (q[x] > q[best]) best = x;
    q[(best + 1) % 8] = q[best] * 0.9995;
    assert_false(law_speed_known(a, LAW_STREAM, IUT_RULE_MATCH, IUT_DRAFTS_ARGMAX));
    assert_true(law_speed_known(a, LAW_STREAM, IUT_RULE_MATCH, IUT_DRAFTS_SAMPLED));
    panel_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bets_on_speed_have_the_mean_one),
        cmocka_unit_test(less_is_told_and_fewer_drafts_are_not),
        cmocka_unit_test(proofs_are_infinite),
        cmocka_unit_test(what_no_clause_says_is_not_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
