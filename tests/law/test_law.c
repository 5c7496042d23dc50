/* The law and metamorphic checks: a correct sampler passes every case of the smoke level, and
 * each check fails the fault that it is for. Then the machinery: checkpoints, aliases,
 * tolerance. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/plan.h"
#include "conformance/checks/law/law.h"
#include "conformance/stats/eprocess.h"
#include "conformance/stats/tolerance.h"
#include "tests/law/sampler_iut.h"

static const check *const all_checks[] = {&check_law_verify,
                                          &check_law_stream,
                                          &check_law_draw,
                                          &check_law_calls,
                                          &check_law_coupling,
                                          &check_law_served,
                                          &check_meta_equal,
                                          &check_meta_draft,
                                          &check_meta_batch,
                                          &check_meta_panel,
                                          NULL};

typedef struct {
    int32_t count[STATE_COUNT];
    int64_t compared;
    double tables;    /* the figure of the last case */
    char detail[700]; /* of the last case that did not pass, or else of the last */
} tally;

/* The lines of the two gates; a test moves one out of the way to see the other work alone. */
static const double LINE = 18, NO_LINE = 1e300;
static double e_line = 18;
static int32_t tables_total = 500;

/* Runs the smoke cases whose id matches, V at most `most`, against the sampler as set. */
static tally run_cases(const char *glob, int32_t most, uint64_t seed)
{
    tally t = {.compared = 0};
    int32_t ran = 0;
    check_plan plan;
    char why[300];
    client_failure unopened;
    assert_true(plan_all(&plan, all_checks, LEVEL_SMOKE));
    client *c = client_open_table(sampler_api(), "", &unopened);
    assert_non_null(c);
    check_context x = {.iut = c,
                       .level = LEVEL_SMOKE,
                       .seed = seed,
                       .tables_total = tables_total,
                       .log_e_fail = e_line};
    for (size_t i = 0; i < plan.count; i++) {
        const check_case *e = plan.cases[i];
        check_result r = {.state = STATE_PASS};
        if (fnmatch(glob, e->id, 0) != 0 || e->V > most) continue;
        if (!e->check->claimed(e, c, why, sizeof why))
            r.state = STATE_NOT_CLAIMED;
        else
            e->check->run(e, &x, &r);
        t.count[r.state]++;
        t.compared += r.compared;
        if (r.state == STATE_PASS) assert_true(r.compared > 0 && r.detail[0]);
        ran++;
        for (int32_t f = 0; f < r.figures; f++)
            if (strcmp(r.figure[f].name, "tables") == 0) t.tables = r.figure[f].value;
        if (r.state != STATE_PASS || t.count[STATE_PASS] == ran)
            snprintf(t.detail, sizeof t.detail, "%s: %s", e->id, r.detail);
    }
    client_close(c);
    plan_free(&plan);
    return t;
}

static void become(sampler_fault fault, uint8_t uniforms, uint8_t rule, uint8_t input)
{
    sampler_settings =
        (struct sampler_settings){.fault = fault,
                                  .uniforms = uniforms,
                                  .rule = rule,
                                  .input = input,
                                  .arithmetic = IUT_ARITH_F64,
                                  .seed_identical =
                                      rule == IUT_RULE_MATCH && uniforms != IUT_UNIFORMS_OWN,
                                  .uniform_bits = 53};
}

/* -- The correct sampler passes ---------------------------------------------------- */

static void passes(uint8_t uniforms, uint8_t rule, uint8_t input, const char *glob,
                   int32_t most, int32_t least)
{
    become(RIGHT, uniforms, rule, input);
    tally t = run_cases(glob, most, 1);
    if (t.count[STATE_PASS] + t.count[STATE_NOT_CLAIMED] == 0) fail_msg("nothing ran");
    for (int s = STATE_ACCEPTABLE; s < STATE_COUNT; s++)
        if (s != STATE_NOT_CLAIMED && t.count[s] > 0) fail_msg("%s", t.detail);
    assert_true(t.count[STATE_PASS] >= least);
}

static void right_ones_pass(void **state)
{
    (void)state;
    const uint8_t p = IUT_FROM_PROBS, logits = IUT_FROM_LOGITS, token = IUT_RULE_TOKEN;
    passes(IUT_UNIFORMS_OWN, token, p, "law.verify/*", 1024, 16);
    passes(IUT_UNIFORMS_OWN, token, p, "*", 64, 40);
    passes(IUT_UNIFORMS_SUPPLIED, token, p, "*", 8, 25);
    passes(IUT_UNIFORMS_SEEDED, token, p, "*", 8, 25);
    passes(IUT_UNIFORMS_SEEDED, IUT_RULE_MATCH, p, "*", 64, 40);
    passes(IUT_UNIFORMS_OWN, token, logits, "law.served/*T*", 64, 8);
    passes(IUT_UNIFORMS_OWN, token, logits, "law.served/*topk-*", 64, 4);
}

/* -- Each check fails its fault ---------------------------------------------------- */

static void kills(sampler_fault fault, uint8_t uniforms, uint8_t input, const char *glob,
                  int32_t least)
{
    become(fault, uniforms, IUT_RULE_TOKEN, input);
    tally t = run_cases(glob, 64, 1);
    if (t.count[STATE_FAIL] < least)
        fail_msg("fault %d: %s killed it %d times, %d expected", fault, glob,
                 t.count[STATE_FAIL], least);
}

static void faults_are_killed(void **state)
{
    (void)state;
    const uint8_t own = IUT_UNIFORMS_OWN, given = IUT_UNIFORMS_SUPPLIED, p = IUT_FROM_PROBS;
    kills(CORRECTS_FROM_P, own, p, "law.verify/*", 2);
    kills(CORRECTS_FROM_P, given, p, "law.verify/*", 2);
    kills(BONUS_FROM_Q, own, p, "law.verify/*", 2);
    kills(BONUS_FROM_Q, IUT_UNIFORMS_SEEDED, p, "law.verify/*", 2);
    kills(DRAFTS_UNIFORMLY, own, p, "law.stream/*", 2);
    kills(DRAWS_FLAT, own, p, "law.draw/*", 2);
    kills(ACCEPTS_ALWAYS, own, p, "law.coupling/verify*", 2);
    kills(ACCEPTS_ALWAYS, own, p, "law.coupling/stream*", 2);
    kills(ACCEPTS_ALWAYS, own, p, "meta.draft/*onehot", 2);
    kills(ROWS_SHARE, own, p, "law.calls/*", 3);
    kills(CALLS_SHARE, own, p, "law.calls/verify*", 2);
    kills(IGNORES_T, own, IUT_FROM_LOGITS, "law.served/*T*", 4);
    kills(REJECTS_SOME, given, p, "meta.equal/*", 4);
    kills(REJECTS_SOME, own, p, "meta.equal/*", 4);
    kills(PLACE_MATTERS, given, p, "meta.batch/verify*", 1);
    kills(FORGETS, given, p, "meta.batch/verify*", 1);
    kills(LOADS_SHARE, own, p, "law.calls/*-reload-*", 3);
    kills(SUMS_STAY, given, p, "meta.panel/verify-V*", 2);
    kills(SUMS_STAY, given, p, "meta.panel/draw-V*", 2);
    kills(SUMS_STAY, IUT_UNIFORMS_SEEDED, p, "meta.panel/stream-V*", 2);
    kills(SUMS_STAY, own, p, "meta.panel/law-*", 6);
    kills(PANELS_STAY, given, p, "meta.panel/law-*", 6);
}

/* The fault that verify cannot see is not blamed on it. */
static void clean_lanes_stay_clean(void **state)
{
    (void)state;
    become(DRAFTS_UNIFORMLY, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
    tally t = run_cases("law.verify/*", 64, 1);
    assert_int_equal(t.count[STATE_FAIL], 0);
    assert_true(t.count[STATE_PASS] > 10);
}

static void hard_facts_are_proof(void **state)
{
    (void)state;
    static const struct {
        sampler_fault fault;
        const char *glob, *says;
    } rows[] = {
        {EMITS_MASKED, "law.verify/V8-masked-g2", "impossible token"},
        {EMITS_MASKED, "law.stream/V8-masked-g2", "impossible token"},
        {OUT_OF_RANGE, "law.verify/V8-a0.7-g2", "is no id below V = 8"},
        {WRONG_COUNT, "law.verify/V8-a0.7-g2", "emitted 0 tokens"},
        {WRONG_COUNT, "law.stream/V8-a0.7-g2", "budget of 4 tokens has 3"},
        {REFUSES, "law.draw/V8*", "(CLM-02)"},
        {REFUSES, "meta.batch/verify-V8", "(CLM-02)"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t uniforms =
            strncmp(rows[i].glob, "meta", 4) ? IUT_UNIFORMS_OWN : IUT_UNIFORMS_SUPPLIED;
        become(rows[i].fault, uniforms, IUT_RULE_TOKEN, IUT_FROM_PROBS);
        tally t = run_cases(rows[i].glob, 64, 1);
        assert_int_equal(t.count[STATE_FAIL], 1);
        if (!strstr(t.detail, rows[i].says))
            fail_msg("%s does not say %s", t.detail, rows[i].says);
    }
}

/* What a seed promises: three draft models, the same tokens. */
static void seeded_drafts(void **state)
{
    (void)state;
    become(RIGHT, IUT_UNIFORMS_SEEDED, IUT_RULE_MATCH, IUT_FROM_PROBS);
    assert_int_equal(run_cases("meta.draft/seeded*", 64, 1).count[STATE_PASS], 2);
    become(FOLLOWS_DRAFTS, IUT_UNIFORMS_SEEDED, IUT_RULE_MATCH, IUT_FROM_PROBS);
    assert_int_equal(run_cases("meta.draft/seeded*", 64, 1).count[STATE_FAIL], 2);
}

static void unclaimed_is_not_tested(void **state)
{
    (void)state;
    become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_NOT_LOSSLESS, IUT_FROM_PROBS);
    tally t = run_cases("law.verify/*", 64, 1);
    assert_true(t.count[STATE_PASS] == 0 && t.count[STATE_NOT_CLAIMED] > 10);
    become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
    assert_int_equal(run_cases("law.served/*", 64, 1).count[STATE_PASS], 0);
    assert_int_equal(run_cases("meta.batch/*", 64, 1).count[STATE_PASS], 0);
    become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_MATCH, IUT_FROM_PROBS);
    assert_int_equal(run_cases("meta.equal/*", 64, 1).count[STATE_PASS], 0);
}

/* Each gate alone: the chi-square at the declared n, and the e-process before it. */
static void gates_alone(void **state)
{
    (void)state;
    static const char *const glob[] = {"law.verify/V8-a0.7-g2", "law.stream/V8-a0.7-g2",
                                       "law.calls/verify-V8-g2"};
    static const sampler_fault fault[] = {ACCEPTS_ALWAYS, ACCEPTS_ALWAYS, ROWS_SHARE};
    for (int i = 0; i < 3; i++) {
        become(fault[i], IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
        e_line = NO_LINE;
        tally t = run_cases(glob[i], 64, 1);
        assert_true(t.count[STATE_FAIL] == 1 && strstr(t.detail, "ln p") &&
                    t.compared >= 20000);
        e_line = LINE, tables_total = INT32_MAX;
        t = run_cases(glob[i], 64, 1);
        assert_true(t.count[STATE_FAIL] == 1 && strstr(t.detail, "ln E"));
        if (i < 2) assert_true(t.compared < 20000);
        tables_total = 500;
    }
}

/* law.calls evaluates its e-value once: a line that every sampler is over must fail a right
 * one. */
static void calls_gate_on_e(void **state)
{
    (void)state;
    become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
    assert_int_equal(run_cases("law.calls/draw-V8-g0", 64, 1).count[STATE_PASS], 1);
    e_line = -5;
    assert_int_equal(run_cases("law.calls/draw-V8-g0", 64, 1).count[STATE_FAIL], 1);
    e_line = LINE;
}

/* The accept length is a table of its own: a lossless rule that is not the declared one. */
static void accept_length(void **state)
{
    (void)state;
    become(MATCHES, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
    tally t = run_cases("law.verify/V8-a0.7-g2", 64, 1);
    assert_true(t.count[STATE_FAIL] == 1 && strstr(t.detail, "accept length"));
    become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_MATCH, IUT_FROM_PROBS);
    t = run_cases("law.verify/V8-a0.7-g2", 64, 1);
    assert_true(t.count[STATE_PASS] == 1 && t.tables == 7);
    become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
    t = run_cases("law.verify/V8-a0.7-g2", 64, 1);
    assert_true(t.count[STATE_PASS] == 1 && t.tables == law_tables(4));
    /* A stream may draft fewer than gamma: how many it accepts has no law of its own. */
    t = run_cases("law.stream/V8-a0.7-g2", 64, 1);
    assert_true(t.count[STATE_PASS] == 1 && t.tables == 7);
}

/* Uniforms of 8 bits: a fault where 53 are declared; where 8 are, within the tolerance null,
 * which a gross fault is not. A wide tolerance is no pass. */
static void tolerance(void **state)
{
    (void)state;
    become(COARSE, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
    assert_true(run_cases("law.verify/V64-a*", 64, 1).count[STATE_FAIL] >= 2);
    sampler_settings.uniform_bits = 8;
    tally t = run_cases("law.verify/V64-a*", 64, 1);
    assert_int_equal(t.count[STATE_INCONCLUSIVE], 3); /* a tolerance wider than 0.02 */
    t = run_cases("law.verify/V2-a*", 64, 1);
    if (t.count[STATE_PASS] != 3 || !strstr(t.detail, "tolerance null, eps = 0.0"))
        fail_msg("%d pass: %s", t.count[STATE_PASS], t.detail);
    assert_null(strstr(t.detail, "ln p")); /* of the strict null, which does not gate */
    sampler_settings.fault = ACCEPTS_ALWAYS;
    t = run_cases("law.verify/V64-a*", 64, 1);
    assert_true(t.count[STATE_FAIL] >= 2);
}

/* Three bits must not buy a pass: every tolerance is wide, or the check has none and says so. A
 * target of one certain token is exact on any grid. */
static void wide_tolerances_never_pass(void **state)
{
    (void)state;
    become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
    sampler_settings.uniform_bits = 3;
    tally t = run_cases("law.*", 64, 1);
    const int32_t certain = run_cases("law.verify/V8-onehot-p-g2", 64, 1).count[STATE_PASS];
    assert_int_equal(certain, 1);
    if (t.count[STATE_PASS] != certain || t.count[STATE_INCONCLUSIVE] < 20)
        fail_msg("%d pass, %d are undecided: %s", t.count[STATE_PASS],
                 t.count[STATE_INCONCLUSIVE], t.detail);
    t = run_cases("law.verify/V8-a0.7-g2", 64, 1);
    assert_int_equal(t.count[STATE_INCONCLUSIVE], 1);
    assert_non_null(strstr(t.detail, "allow a total variation of"));
}

/* Without a tolerance null of their own, law.calls and law.coupling judge fine uniforms alone.
 */
static void coarse_uniforms_are_not_judged_strictly(void **state)
{
    (void)state;
    static const char *const glob[] = {"law.calls/*", "law.coupling/*"};
    static const int32_t cases[] = {9, 4}; /* of V <= 64 */
    for (int i = 0; i < 2; i++) {
        become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
        assert_int_equal(run_cases(glob[i], 64, 1).count[STATE_PASS], cases[i]);
        sampler_settings.uniform_bits = 8;
        tally t = run_cases(glob[i], 64, 1);
        assert_int_equal(t.count[STATE_NOT_CLAIMED], cases[i]);
        if (!strstr(t.detail, "uniforms of 8 bits") || !strstr(t.detail, "too coarse for"))
            fail_msg("no reason: %s", t.detail);
    }
}

/* -- A suite short of memory ------------------------------------------------------- */

/* Counts that the e-processes still take; they refuse the next, as they do without memory. */
static int64_t counts_left = INT64_MAX;

bool __real_st_ep_add(st_ep *e, int context, int token, int64_t count);
bool __wrap_st_ep_add(st_ep *e, int context, int token, int64_t count);
bool __wrap_st_ep_add(st_ep *e, int context, int token, int64_t count)
{
    return counts_left-- > 0 && __real_st_ep_add(e, context, token, count);
}

bool __real_st_tol_add(st_tol *e, int state, int token, int64_t count);
bool __wrap_st_tol_add(st_tol *e, int state, int token, int64_t count);
bool __wrap_st_tol_add(st_tol *e, int state, int token, int64_t count)
{
    return counts_left-- > 0 && __real_st_tol_add(e, state, token, count);
}

/* A single count that is lost, early or late, leaves no verdict: not a pass, not a failure. */
static void lost_counts_are_errors(void **state)
{
    (void)state;
    static const struct {
        int64_t taken;
        uint8_t bits;
        const char *glob, *says;
    } rows[] = {
        {0, 53, "law.verify/V8-a0.7-g2", "counts were lost"},
        {1000, 53, "law.stream/V8-a0.7-g2", "counts were lost"},
        {1000, 53, "law.verify/V64-a0.7-g1", "counts were lost"},
        {40, 8, "law.verify/V2-a0.7-g2", "counts were lost"}, /* the tolerance null */
        {100, 53, "law.calls/draw-V8-g0", "could not be computed"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
        sampler_settings.uniform_bits = rows[i].bits;
        assert_int_equal(run_cases(rows[i].glob, 64, 1).count[STATE_PASS], 1);
        counts_left = rows[i].taken;
        tally t = run_cases(rows[i].glob, 64, 1);
        counts_left = INT64_MAX;
        if (t.count[STATE_ERROR] != 1 || !strstr(t.detail, rows[i].says))
            fail_msg("row %zu, %d errors: %s", i, t.count[STATE_ERROR], t.detail);
    }
}

/* -- Machinery --------------------------------------------------------------------- */

static void checkpoints(void **state)
{
    (void)state;
    int64_t n = 0, looks = 0;
    for (; n < 20000; looks++) n = law_checkpoint(n, 20000, LEVEL_SMOKE);
    assert_true(n == 20000 && looks == 8); /* 256 512 1024 2048 4096 8192 16384 20000 */
    assert_int_equal(law_checkpoint(0, 100, LEVEL_SMOKE), 100);
    for (n = 1000; n < 100000;) {
        int64_t next = law_checkpoint(n, 1000000, LEVEL_DEEP);
        assert_true(next > n && (double)next <= 1.11 * (double)n + 2);
        n = next;
    }
}

/* The arrays of a law case hold 64 states; a panel of more is refused, not written beyond. */
static void too_many_states(void **state)
{
    (void)state;
    static const int32_t layers[] = {16, 13}, classes[] = {4, 5};
    const check_case c = {.id = "states", .gamma = 1};
    char why[200];
    client_failure f;
    become(RIGHT, IUT_UNIFORMS_OWN, IUT_RULE_TOKEN, IUT_FROM_PROBS);
    client *subject = client_open_table(sampler_api(), "", &f);
    assert_non_null(subject);
    const check_context x = {.iut = subject};
    for (int i = 0; i < 2; i++) {
        law_sampler s = {0};
        check_result r = {.state = STATE_PASS};
        panel *a = panel_make(&(panel_form){.V = 8, .layers = layers[i], .classes = classes[i]},
                              why, sizeof why);
        assert_non_null(a);
        assert_int_equal(a->view.S, 64 + i);
        assert_int_equal(law_sampler_open(&s, &c, &x, a, LAW_VERIFY, 3, &r), i == 0);
        assert_int_equal(r.state, i == 0 ? STATE_PASS : STATE_ERROR);
        if (i == 0)
            assert_true(law_coupling(&s) == 0); /* nothing sampled: E = 1 */
        else
            assert_non_null(strstr(r.detail, "has 65 states"));
        law_sampler_close(&s);
        panel_free(a);
    }
    client_close(subject);
}

/* ln E of the accept counts of 20,000 streams on a panel. */
static double coupling_of(const panel *a, sampler_fault fault, uint8_t rule)
{
    static int32_t tokens[LAW_CHUNK * 4];
    client_failure unopened;
    become(fault, IUT_UNIFORMS_OWN, rule, IUT_FROM_LOGITS);
    sampler_settings.drafts_argmax = true;
    client *subject = client_open_table(sampler_api(), "", &unopened);
    const check_case c = {.id = "sharp", .gamma = 2};
    const check_context x = {.iut = subject, .seed = 1};
    law_sampler s = {0};
    check_result r = {.state = STATE_PASS};
    assert_true(law_sampler_open(&s, &c, &x, a, LAW_STREAM, 4, &r));
    for (int i = 0; i < 20; i++) assert_true(law_sample(&s, 1000, tokens, &r));
    const double log_e = law_coupling(&s);
    law_sampler_close(&s);
    client_close(subject);
    return log_e;
}

/* A sharp target, a flat draft: the argmax of q is the next token more often than Sum min(p, q)
 * allows to drafts of law q. A one-hot or match rule is right all the same; always to accept is
 * not. */
static void certain_drafts(void **state)
{
    (void)state;
    char why[200];
    panel *a = panel_make(&(panel_form){.V = 8,
                                        .acceptance = 0.95,
                                        .seed = 5,
                                        .target = {0.4f, 0, 1, 0},
                                        .draft = {2, 0, 1, 0}},
                          why, sizeof why);
    assert_non_null(a);
    int32_t above = 0;
    for (int32_t s = 0; s < a->view.S; s++) above += panel_peak(a, s) > panel_overlap(a, s);
    assert_true(above > a->view.S / 2);
    assert_true(coupling_of(a, RIGHT, IUT_RULE_ONEHOT) < 2);
    assert_true(coupling_of(a, RIGHT, IUT_RULE_MATCH) < 2);
    assert_true(coupling_of(a, RIGHT, IUT_RULE_TOKEN) > LINE); /* LAW-03 */
    assert_true(coupling_of(a, ACCEPTS_ALWAYS, IUT_RULE_ONEHOT) > LINE);
    panel_free(a);
}

/* The law of an alias table is exact: the masses of the columns that yield a token. */
static void aliases(void **state)
{
    (void)state;
    char why[200];
    panel *a = panel_make(&(panel_form){.V = 1000, .seed = 4, .variant = PANEL_MASKED}, why,
                          sizeof why);
    law_alias alias;
    assert_non_null(a);
    assert_true(law_alias_init(&alias, a->q64, a->view.S, 1000));
    for (int32_t s = 0; s < a->view.S; s++) {
        static double law[1000];
        memset(law, 0, sizeof law);
        for (int32_t t = 0; t < 1000; t++) {
            double keep = alias.keep[s * 1000 + t] * 0x1p-32 / 1000;
            law[t] += keep;
            law[alias.other[s * 1000 + t]] += 1e-3 - keep;
        }
        for (int32_t t = 0; t < 1000; t++) {
            assert_true(fabs(law[t] - panel_q(a, s)[t]) < 1e-9);
            if (panel_q(a, s)[t] == 0) assert_true(law[t] == 0);
        }
    }
    law_alias_free(&alias);
    panel_free(a);
}

static void uniforms(void **state)
{
    (void)state;
    law_random g;
    law_seed(&g, 0);
    double sum = 0;
    for (int32_t i = 0; i < 4000; i++) {
        double u = law_unit(&g, 24), scaled = u * 0x1p24;
        assert_true(u >= 0 && u < 1 && scaled == floor(scaled));
        sum += u;
    }
    assert_true(fabs(sum / 4000 - 0.5) < 0.03);
    const iut_claims f32 = {
        .uniforms = IUT_UNIFORMS_SUPPLIED, .arithmetic = IUT_ARITH_F32, .uniform_bits = 32};
    const iut_claims canonical = {.uniforms = IUT_UNIFORMS_SUPPLIED,
                                  .uniform_bits = 29,
                                  .arithmetic = IUT_ARITH_CANONICAL};
    assert_int_equal(law_bits(&f32), 24);
    assert_int_equal(law_bits(&canonical), 29);
    assert_int_equal(law_bits(&(iut_claims){.uniforms = IUT_UNIFORMS_OWN}), 24);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_ones_pass),
        cmocka_unit_test(faults_are_killed),
        cmocka_unit_test(clean_lanes_stay_clean),
        cmocka_unit_test(hard_facts_are_proof),
        cmocka_unit_test(seeded_drafts),
        cmocka_unit_test(unclaimed_is_not_tested),
        cmocka_unit_test(gates_alone),
        cmocka_unit_test(accept_length),
        cmocka_unit_test(calls_gate_on_e),
        cmocka_unit_test(tolerance),
        cmocka_unit_test(wide_tolerances_never_pass),
        cmocka_unit_test(coarse_uniforms_are_not_judged_strictly),
        cmocka_unit_test(lost_counts_are_errors),
        cmocka_unit_test(checkpoints),
        cmocka_unit_test(too_many_states),
        cmocka_unit_test(certain_drafts),
        cmocka_unit_test(aliases),
        cmocka_unit_test(uniforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
