/* Faults at sizes that no hand-made case has: the drawn cases of each of two seeds notice them (VER-11). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/mutants/mutants.h"
#include "conformance/subjects/ref/subject.h"
#include "conformance/suite/run.h"

enum { SEEDS = 2 }; /* the first alone with the sanitizers */

/* ---- The reference, spoilt at one size. ------------------------------------------ */

static enum {
    NONE,
    BATCH_OF_ONE,  /* a step alone answers otherwise */
    SEVEN_DRAFTS,  /* so do steps of a call with gamma 7 */
    EIGHTH_DRAFT,  /* no step emits more than eight tokens */
    TAIL_OF_FOUR,  /* ids behind the last multiple of 4 are never drawn */
    SMALL_Q,       /* q is at least 2^-40 */
    TOP_K_1024,    /* top-k keeps 1,024 tokens at most */
    SHORT_IDS,     /* argmax, and the last token of a tree, in 16 bits */
    SHORT_NODES,   /* nodes in 8 bits */
    SIXTEEN,       /* children behind the sixteenth are not tried */
    SHORT_KEYS,    /* keys of a pool in 16 bits */
    LOW_SEED,      /* seeds in 32 bits */
    PAST_END,      /* where V is no multiple of 4, the first answer of a call ends on the id V */
    STREAM_OF_ONE, /* a greedy stream alone ends on another token */
    HOT_IS_TWO,    /* a temperature above 2 is taken for 2 */
    TOP_K_ALONE,   /* behind a top-k, top-p is lost */
    HEAD_OF_FOUR,  /* with a draft vocabulary of other than four ids, the temperature is halved */
    SAMPLING_STAYS, /* the third call of a temperature above 0, and later ones, are sampled as the second was */
    SHORT_ROWS,    /* residuals of ids beyond 16 bits are 0 */
    LATE_END,      /* with nine drafts or more, a stream runs on behind its end of sequence */
    PANEL_STAYS,   /* above 64 ids, a panel of the shape of the one before is not loaded */
    LUKEWARM,      /* where V is no multiple of 64, the target's temperature is 1 */
    NO_SIBLINGS    /* no fault: how siblings are drawn is not said */
} fault;
static int32_t V, S; /* of the panel */

/* Passes on a copy of the panel where the fault needs one. */
static iut_status panel(iut *x, const iut_panel *b)
{
    iut_panel copy = *b;
    const size_t cells = (size_t)b->V * (size_t)b->S;
    const bool same = b->V == V && b->S == S;
    if (fault == PANEL_STAYS && V > 64 && same) return IUT_OK;
    float *q = malloc(cells * sizeof *q);
    V = b->V, S = b->S;
    for (size_t i = 0; q && fault == SMALL_Q && i < cells; i++)
        q[i] = b->q[i] > 0 && b->q[i] < 0x1p-40f ? 0x1p-40f : b->q[i];
    if (q && fault == SMALL_Q) copy.q = q;
    if (fault == TOP_K_1024 && copy.target.top_k > 1024) copy.target.top_k = 1024;
    if (fault == LUKEWARM && V % 64) copy.target.temperature = 1;
    const iut_status s = ref_api()->panel(x, &copy);
    free(q);
    return s;
}

static void spoil_last(int32_t *out, int32_t n)
{
    out[n - 1] = (out[n - 1] + 1) % V;
}

static iut_status verify(iut *x, iut_verify_batch *b)
{
    iut_verify_batch to = *b;
    if (fault == LOW_SEED) to.seed = (uint32_t)b->seed;
    const iut_status s = ref_api()->verify(x, &to);
    for (int32_t i = 0; s == IUT_OK && i < b->n; i++) {
        int32_t *out = b->out + (int64_t)i * (b->gamma + 1), *n = &b->out_len[i];
        if (fault == BATCH_OF_ONE && b->n == 1) spoil_last(out, *n);
        if (fault == PAST_END && i == 0 && V % 4) out[*n - 1] = V;
        if (fault == SEVEN_DRAFTS && b->gamma == 7) spoil_last(out, *n);
        if (fault == TAIL_OF_FOUR && out[*n - 1] >= V - V % 4) out[*n - 1] = V - V % 4 - 1;
        if (fault != EIGHTH_DRAFT || *n <= 8) continue;
        for (int32_t j = 8; j < *n; j++) out[j] = -1;
        *n = 8;
    }
    return s;
}

static iut_status residual(iut *x, int32_t n, const int32_t *state, float *row)
{
    const iut_status s = ref_api()->residual(x, n, state, row);
    for (int64_t i = 0; s == IUT_OK && fault == SHORT_ROWS && i < (int64_t)n * V; i++)
        if (i % V > UINT16_MAX) row[i] = 0;
    return s;
}

static iut_status draw(iut *x, iut_draw_batch *b)
{
    iut_draw_batch to = *b;
    if (fault == LOW_SEED) to.seed = (uint32_t)b->seed;
    const iut_status s = ref_api()->draw(x, &to);
    if (s == IUT_OK && fault == PAST_END && V % 4) b->token[0] = V;
    return s;
}

static iut_status stream(iut *x, iut_stream_batch *b)
{
    iut_stream_batch to = *b;
    if (fault == LOW_SEED) to.seed = (uint32_t)b->seed;
    if (fault == LATE_END && b->gamma >= 9) to.eos = -1;
    const iut_status s = ref_api()->stream(x, &to);
    if (s == IUT_OK && fault == PAST_END && V % 4) b->out[b->out_len[0] - 1] = V;
    if (s == IUT_OK && fault == STREAM_OF_ONE && b->n == 1) spoil_last(b->out, b->out_len[0]);
    return s;
}

static iut_status verify_greedy(iut *x, iut_verify_batch *b)
{
    const iut_status s = ref_api()->verify_greedy(x, b);
    for (int32_t i = 0; s == IUT_OK && fault == SHORT_IDS && i < b->n; i++) {
        int32_t *last = b->out + (int64_t)i * (b->gamma + 1) + b->out_len[i] - 1;
        *last &= 0xffff;
    }
    return s;
}

/* Has the node sixteen siblings before it? */
static bool is_late(const iut_tree_batch *b, int32_t root, int32_t k)
{
    int32_t before = 0;
    for (int32_t i = 1; i < k; i++) before += b->parent[root + i] == b->parent[root + k];
    return before >= 16;
}

static iut_status verify_tree(iut *x, iut_tree_batch *b)
{
    iut_tree_batch to = *b;
    if (fault == LOW_SEED) to.seed = (uint32_t)b->seed;
    const size_t size = (size_t)b->nodes * sizeof(int32_t);
    int32_t *parent = malloc(size), *token = malloc(size);
    if (!parent || !token) return free(parent), free(token), IUT_NO_MEMORY;
    memcpy(parent, b->parent, size);
    memcpy(token, b->token, size);
    for (int32_t i = 0, root = 0; i < b->n; root += b->node_count[i++])
        for (int32_t k = 1; k < b->node_count[i]; k++) {
            if (fault == SHORT_NODES) parent[root + k] &= 0xff;
            if (fault == SIXTEEN && is_late(b, root, k)) token[root + k] = -1;
        }
    to.parent = parent, to.token = token;
    const iut_status s = ref_api()->verify_tree(x, &to);
    for (int32_t i = 0; s == IUT_OK && fault == SHORT_IDS && i < b->n; i++)
        b->out[i * (b->depth + 1) + b->out_len[i] - 1] &= 0xffff;
    free(parent);
    free(token);
    return s;
}

static iut_status pool(iut *x, iut_pool_batch *b)
{
    iut_pool_batch to = *b;
    int32_t *key = malloc((size_t)b->n * sizeof *key);
    for (int32_t i = 0; key && i < b->n; i++)
        key[i] = fault == SHORT_KEYS && b->key[i] > 0 ? b->key[i] & 0xffff : b->key[i];
    if (key) to.key = key;
    const iut_status s = ref_api()->pool(x, &to);
    free(key);
    return s;
}

static iut_sampling kept;
static int32_t sampled; /* calls */

/* Has the draft a vocabulary of its own of other than four ids? */
static bool another_head(const iut_generate_batch *b)
{
    char path[400], text[2000];
    snprintf(path, sizeof path, "%s/config.json", b->draft);
    FILE *f = *b->draft ? fopen(path, "rb") : NULL;
    text[f ? fread(text, 1, sizeof text - 1, f) : 0] = 0;
    if (f) fclose(f);
    return strstr(text, "draft_vocab_size") && !strstr(text, "\"draft_vocab_size\": 4,");
}

static iut_status generate(iut *x, iut_generate_batch *b)
{
    iut_sampling *const s = &b->sampling;
    const iut_sampling asked = *s;
    sampled += s->temperature > 0;
    if (sampled <= 2) kept = *s;
    if (fault == SAMPLING_STAYS && s->temperature > 0) *s = kept;
    if (fault == HOT_IS_TWO && s->temperature > 2) s->temperature = 2;
    if (fault == HEAD_OF_FOUR && another_head(b)) s->temperature /= 2;
    if (fault == TOP_K_ALONE && s->top_k > 0) s->top_p = 1;
    const iut_status status = ref_api()->generate(x, b);
    *s = asked;
    return status;
}

static iut_status claims(iut *x, iut_claims *c)
{
    const iut_status s = ref_api()->claims(x, c);
    if (fault == NO_SIBLINGS) c->tree_drawn = 0;
    return s;
}

/* Runs the cases that `only` names against the fault; the exit code. */
static int run(int which, const char *only, const char *options, check_level level, uint64_t seed)
{
    static iut_api api;
    run_report r;
    api = *ref_api();
    api.claims = claims;
    api.panel = panel;
    api.verify = verify;
    api.draw = draw;
    api.stream = stream;
    api.residual = residual;
    api.verify_greedy = verify_greedy;
    api.verify_tree = verify_tree;
    api.pool = pool;
    api.generate = generate;
    fault = which;
    sampled = V = S = 0;
    const run_options o = {.api = &api,
                           .iut = "ref",
                           .iut_options = options,
                           .vectors = VECTORS,
                           .level = level,
                           .seed = seed,
                           .jobs = 1,
                           .enough = 1,
                           .only = &only,
                           .only_count = 1};
    const int code = run_suite(&o, &r);
    run_report_free(&r);
    return code;
}

static const struct {
    int fault;
    const char *check, *options;
} planted[] = {
    {BATCH_OF_ONE, "replay.random", ""},
    {SEVEN_DRAFTS, "replay.random", ""},
    {EIGHTH_DRAFT, "replay.random", ""},
    {TAIL_OF_FOUR, "replay.random", ""},
    {SMALL_Q, "replay.random", ""},
    {TOP_K_1024, "served.values", ""},
    {SHORT_IDS, "greedy.verify", ""},
    {SHORT_KEYS, "pool.values", ""},
    {LOW_SEED, "canonical.seeded", "uniforms=seeded"},
    {STREAM_OF_ONE, "greedy.stream", ""},
    {STREAM_OF_ONE, "match.seeded", "rule=match,uniforms=seeded"},
    {TAIL_OF_FOUR, "certify.boundaries", ""},
    {EIGHTH_DRAFT, "meta.equal", ""},
    {BATCH_OF_ONE, "meta.batch", ""},
    {PAST_END, "format.verify", ""},
    {PAST_END, "format.draw", ""},
    {PAST_END, "format.stream", ""},
    {SHORT_IDS, "tree.replay", ""},
    {SHORT_NODES, "tree.replay", ""},
    {SIXTEEN, "tree.replay", ""},
    {SHORT_NODES, "tree.meta", ""},
    {SIXTEEN, "tree.meta", ""},
    {HOT_IS_TWO, "engine.law", ""},
    {TOP_K_ALONE, "engine.law", ""},
    {HEAD_OF_FOUR, "engine.law", ""},
    {SAMPLING_STAYS, "engine.late", ""},
    {SHORT_ROWS, "residual.values", ""},
    {LATE_END, "stop.rules", ""},
    {PANEL_STAYS, "meta.panel", ""},
    {LUKEWARM, "law.served", "input=logits"},
    {TAIL_OF_FOUR, "meta.draft", ""},
};

static void drawn_cases_notice_every_fault(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++)
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            char only[80];
            snprintf(only, sizeof only, "%s/drawn/*", planted[i].check);
            if (run(planted[i].fault, only, planted[i].options, LEVEL_FULL, seed) != EXIT_NOT_CONFORMANT)
                fail_msg("seed %d: %s does not notice fault %d", (int)seed, planted[i].check,
                         planted[i].fault);
        }
}

static void drawn_cases_acquit_the_reference(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        char only[80];
        snprintf(only, sizeof only, "%s/drawn/*", planted[i].check);
        assert_int_equal(run(NONE, only, planted[i].options, LEVEL_FULL, 1),
                         EXIT_CONFORMANT);
    }
}

/* CLM-29: hand-made cases, of trees. Look-alikes are asked, or claim no such seeds. Who does not say how siblings are
 * drawn is not asked. */
static void cut_seeds_of_trees_are_noticed(void **unused)
{
    const char *const only = "seeds.bits/verify_tree-*", *const options = "uniforms=seeded";
    int32_t asked = 0;
    (void)unused;
    assert_int_equal(run(LOW_SEED, only, options, LEVEL_SMOKE, 1), EXIT_NOT_CONFORMANT);
    assert_int_equal(run(NONE, only, options, LEVEL_SMOKE, 1), EXIT_CONFORMANT);
    assert_int_equal(run(NO_SIBLINGS, only, options, LEVEL_SMOKE, 1), EXIT_ERROR); /* nothing was asked */
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (m->kind != MUTANT_LOOKALIKE || !mutant_api(m->name)->verify_tree) continue;
        run_report r;
        const run_options o = {.api = mutant_api(m->name), .iut = m->name, .vectors = VECTORS, .level = LEVEL_SMOKE,
                               .seed = 1, .jobs = 1, .only = &only, .only_count = 1};
        run_suite(&o, &r);
        for (size_t k = 0; k < r.planned; k++) {
            const check_result *c = &r.cases[k].result;
            if (c->state != STATE_PASS && c->state != STATE_NOT_CLAIMED) fail_msg("%s: %s", m->name, c->detail);
            asked += c->state == STATE_PASS;
        }
        run_report_free(&r);
    }
    print_message("%d cases of look-alikes\n", (int)asked);
    assert_true(asked > 0);
}

static iut_status claims_no_fate(iut *x, iut_claims *c)
{
    const iut_status s = mutant_api("Q_ZERO_REJECT")->claims(x, c);
    c->q_zero = 0;
    return s;
}

/* VAR-04: who does not say what becomes of a draft with q = 0 is not asked, and may reject it. */
static void a_draft_of_unsaid_fate_is_not_asked(void **unused)
{
    const char *only = "replay.random/drawn/*";
    iut_api api = *mutant_api("Q_ZERO_REJECT");
    (void)unused;
    api.claims = claims_no_fate;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        run_report r;
        const run_options o = {.api = &api,
                               .iut = "mutant",
                               .vectors = VECTORS,
                               .level = LEVEL_FULL,
                               .seed = seed,
                               .jobs = 1,
                               .only = &only,
                               .only_count = 1};
        assert_int_equal(run_suite(&o, &r), EXIT_CONFORMANT);
        assert_true(r.planned > 0);
        run_report_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_cases_notice_every_fault),
        cmocka_unit_test(drawn_cases_acquit_the_reference),
        cmocka_unit_test(cut_seeds_of_trees_are_noticed),
        cmocka_unit_test(a_draft_of_unsaid_fate_is_not_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
