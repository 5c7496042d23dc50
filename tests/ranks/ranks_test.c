/* ranks_test.c - a lookahead whose steps ranks share (LAH-31 to LAH-36): the bits of D = 1, and the end of a run in
 * which a rank differs, lies or leaves. compare_methods.c has the traces. */
#include <stdio.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/lm/hash_lm.h"
#include "ref/num/digest.h"
#include "tests/ranks_in_turn.h"
#include "tests/ref/suite.h"
#include "tests/ref/tiny_llama.h"

enum { STEPS = 64, ROWS = 64, BUDGET = 40, W = 5, N = 4, G = 5, V = 5 };

/* Digests of logits, step by step and row by row; 0: not there. */
typedef struct {
    int32_t steps, tokens, out[BUDGET];
    int32_t rows[STEPS], evaluated[STEPS];
    uint64_t bits[STEPS][ROWS];
} seen;

typedef enum { NOTHING, POOL, MODEL, SEED, LEAVE, LIE_RUN, LIE_TOKEN, LIE_LENGTH, LIE_SILENCE } plant;

typedef struct {
    const tiny_llama *model; /* NULL: pseudo-random logits */
    plant plant;
    int32_t culprit, when; /* the rank, and the step from which on it does so */
    bool keeps_sequence;
    int32_t budget; /* 0: BUDGET */
    as_status status[RANKS_IN_TURN];
    as_error error[RANKS_IN_TURN];
    int32_t steps[RANKS_IN_TURN], length[RANKS_IN_TURN];
    seen seen[RANKS_IN_TURN];
} experiment;

/* One rank of it. Its gather may tell another thing than it was given. */
typedef struct {
    as_ranks base, *ranks;
    experiment *x;
    as_drafter *drafter;
    bool culprit;
} actor;

static as_status gather(as_ranks *base, int32_t step, const int32_t *mine, int32_t n, int32_t *all, as_error *e)
{
    const actor *a = (const actor *)base;
    int32_t told[512];
    ck_assert_int_lt(n, 512);
    memcpy(told, mine, (size_t)n * sizeof *told);
    /* In an exchange: two words of digest, the rows, the length, the walk. */
    if (n > 4 && a->culprit && step >= a->x->when) {
        if (a->x->plant == LIE_RUN) told[3] = 1, told[4] = (told[4] + 1) % V;
        if (a->x->plant == LIE_TOKEN) told[4] = V;
        if (a->x->plant == LIE_LENGTH) told[3] = N + 1;
    }
    if (n > 4 && a->x->plant == LIE_SILENCE && step >= a->x->when) told[3] = 0;
    return a->ranks->gather(a->ranks, step, told, n, all, e);
}

static void watch(void *data, const as_step *s)
{
    actor *a = data;
    experiment *x = a->x;
    const int32_t r = a->base.rank, width = x->model ? x->model->config.V : V;
    static const int32_t odd[N - 1] = {1, 2, 3};
    seen *to = &x->seen[r];
    ck_assert(s->step < STEPS && s->tree->rows <= ROWS);
    to->rows[s->step] = s->tree->rows;
    to->evaluated[s->step] = s->evaluated ? s->evaluated[r] : s->tree->rows;
    for (int32_t i = 0; i < s->tree->rows; i++)
        if (s->logits[i])
            to->bits[s->step][i] = as_digest(AS_DIGEST, s->logits[i], (size_t)width * sizeof(float));
    to->steps = s->step + 1;
    if (a->culprit && x->plant == POOL && s->step == x->when)
        ck_assert_int_eq(as_pool_insert(as_lookahead_pool(a->drafter), 0, odd, NULL), AS_OK);
}

static as_lm *model_of(const experiment *x, bool other)
{
    static const as_llama_options options = {.rows = ROWS, .threads = 1};
    const as_hash_law law = {.V = V, .levels = 256, .seed = other ? 2 : 1};
    as_lm *lm;
    if (x->model) return tiny_lm(x->model, &options);
    ck_assert_int_eq(as_hash_lm(&law, &lm, NULL), AS_OK);
    return lm;
}

static void act(as_ranks *ranks, void *data)
{
    static const int32_t prompt[] = {1, 2, 3, 1, 2, 4};
    experiment *x = data;
    const int32_t r = ranks->rank, prompts = sizeof prompt / sizeof *prompt;
    actor a = {.base = {r, ranks->count, gather}, .ranks = ranks, .x = x, .culprit = r == x->culprit};
    as_lookahead o = *as_lookahead_preset("paper");
    int32_t sequence = 0;
    as_result result;
    o.W = W, o.N = N, o.G = G;
    if (a.culprit && x->plant == LEAVE) return;
    as_lm *lm = model_of(x, a.culprit && x->plant == MODEL);
    ck_assert_int_eq(as_draft_lookahead(&o, lm->V, &a.drafter, NULL), AS_OK);
    if (x->keeps_sequence) ck_assert_int_eq(as_lm_open(lm, &sequence, NULL), AS_OK);
    const as_request q = {.target = lm,
                          .sequence = x->keeps_sequence ? &sequence : NULL,
                          .drafter = a.drafter,
                          .rule = AS_RULE_GREEDY,
                          .sampling = {.top_p = 1},
                          .seed = a.culprit && x->plant == SEED ? 2 : 1,
                          .prompt = prompt,
                          .prompts = prompts,
                          .budget = x->budget ? x->budget : BUDGET,
                          .trace = watch,
                          .trace_data = &a,
                          .ranks = ranks->count > 1 ? &a.base : NULL};
    x->error[r] = (as_error){.text = ""};
    x->status[r] = as_decode(&q, x->seen[r].out, &result, &x->error[r]);
    x->seen[r].tokens = result.tokens;
    x->length[r] = as_lm_length(lm, sequence);
    x->steps[r] = result.steps;
    as_drafter_free(a.drafter);
    as_lm_free(lm);
}

static void run(experiment *x, int32_t D)
{
    memset(x->seen, 0, sizeof x->seen);
    run_as_ranks(D, act, x);
}

/* ---- The bits of D = 1. ------------------------------------------------------------ */

/* Every row that a rank has is that of D = 1, and every row of D = 1 is some rank's. */
static void compare(const experiment *one, const experiment *x, int32_t D)
{
    int32_t fewer = 0;
    for (int32_t s = 0; s < one->seen[0].steps; s++) {
        for (int32_t i = 0; i < one->seen[0].rows[s]; i++) {
            const uint64_t due = one->seen[0].bits[s][i];
            int32_t holders = 0;
            for (int32_t r = 0; r < D; r++) {
                const uint64_t bits = x->seen[r].bits[s][i];
                ck_assert(bits == 0 || bits == due);
                holders += bits != 0;
            }
            ck_assert_int_eq(due != 0, holders > 0);
        }
        for (int32_t r = 0; r < D; r++) fewer += x->seen[r].evaluated[s] < one->seen[0].rows[s];
    }
    ck_assert_int_gt(fewer, 0); /* it is a share indeed */
    for (int32_t r = 0; r < D; r++) {
        ck_assert_int_eq(x->status[r], AS_OK);
        ck_assert_int_eq(x->seen[r].steps, one->seen[0].steps);
        ck_assert_int_eq(x->seen[r].tokens, BUDGET);
        ck_assert_mem_eq(x->seen[r].out, one->seen[0].out, sizeof one->seen[0].out);
    }
}

START_TEST(logits_are_those_of_one_rank)
{
    tiny_llama *t = tiny_new(0, 7, 1);
    static experiment one, x;
    for (int pseudo = 0; pseudo < 2; pseudo++) {
        one = x = (experiment){.model = pseudo ? NULL : t};
        run(&one, 1);
        for (int32_t D = 2; D <= 4; D++) {
            run(&x, D);
            compare(&one, &x, D);
        }
    }
    tiny_free(t);
}
END_TEST

/* A rank that lacks accepted tokens has evaluated them when the decoding ends. */
START_TEST(a_sequence_that_stays_has_all_tokens_but_the_last)
{
    static experiment x;
    for (int32_t budget = 1; budget <= BUDGET; budget++)
        for (int32_t D = 1; D <= 4; D++) {
            x = (experiment){.keeps_sequence = true, .budget = budget};
            run(&x, D);
            for (int32_t r = 0; r < D; r++) ck_assert_int_eq(x.length[r], 6 + budget - 1);
        }
}
END_TEST

/* ---- Ranks that differ. ------------------------------------------------------------ */

/* Every rank but one that left ends with AS_PEER and says so; the first steps were done. */
static void expect(plant p, int32_t culprit, int32_t when, int32_t D, const char *says, int32_t steps)
{
    static experiment x;
    x = (experiment){.plant = p, .culprit = culprit, .when = when};
    run(&x, D);
    for (int32_t r = 0; r < D; r++) {
        if (p == LEAVE && r == culprit) continue;
        ck_assert_int_eq(x.status[r], AS_PEER);
        ck_assert_msg(strstr(x.error[r].text, says), "rank %d of %d says: %s", (int)r, (int)D, x.error[r].text);
        ck_assert_int_eq(x.steps[r], steps);
    }
}

START_TEST(an_altered_pool_is_noticed_before_the_next_step)
{
    for (int32_t when = 0; when < 12; when += 5) {
        char says[80];
        snprintf(says, sizeof says, "step %d: rank 2 differs from rank 0 in its history", (int)when + 1);
        expect(POOL, 2, when, 4, says, when + 1);
    }
    expect(POOL, 0, 3, 3, "step 4: rank 0 differs from rank 1 in its history", 4);
    expect(POOL, 0, 3, 2, "step 4: rank 1 differs from rank 0 in its history", 4); /* nobody can tell which */
}
END_TEST

START_TEST(another_request_or_model_is_noticed_at_once)
{
    expect(SEED, 1, 0, 3, "step 0: rank 1 differs from rank 0 in its history", 0);
    expect(MODEL, 1, 0, 3, "step 0: rank 1 differs from rank 0 in the logits of the root", 0);
}
END_TEST

START_TEST(a_rank_that_leaves_ends_the_run)
{
    expect(LEAVE, 1, 0, 2, "step 0: rank 1 is gone", 0);
    expect(LEAVE, 0, 0, 4, "step 0: rank 0 is gone", 0);
}
END_TEST

START_TEST(lies_in_an_exchange_are_noticed)
{
    expect(LIE_RUN, 1, 6, 3, "step 6: rank 1 differs from rank 0 in the tokens", 6);
    expect(LIE_TOKEN, 1, 6, 3, "step 6: rank 1 tells of tokens that do not exist", 6);
    expect(LIE_LENGTH, 1, 6, 3, "step 6: rank 1 tells of tokens that do not exist", 6);
    expect(LIE_SILENCE, 1, 6, 3, "step 6: no rank has the rows of what is accepted", 6);
}
END_TEST

/* ---- What is refused. -------------------------------------------------------------- */

START_TEST(only_what_can_be_shared_is_shared)
{
    static const int32_t prompt[] = {1};
    as_ranks two = {0, 2, NULL};
    as_drafter *d;
    as_lm *lm;
    as_result result;
    as_error e;
    int32_t out[4];
    const as_hash_law law = {.V = V, .levels = 256, .seed = 1};
    ck_assert_int_eq(as_hash_lm(&law, &lm, NULL), AS_OK);
    ck_assert_int_eq(as_draft_none(&d, NULL), AS_OK);
    const as_request q = {.target = lm,
                          .drafter = d,
                          .rule = AS_RULE_GREEDY,
                          .sampling = {.top_p = 1},
                          .prompt = prompt,
                          .prompts = 1,
                          .budget = 4,
                          .ranks = &two};
    ck_assert_int_eq(as_decode(&q, out, &result, &e), AS_BAD_INPUT);
    ck_assert_str_eq(e.about, "ranks");
    ck_assert_msg(strstr(e.text, "plain decoding with the rule greedy cannot be shared by 2 ranks"), "%s", e.text);
    as_drafter_free(d);
    as_lm_free(lm);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("ranks");
    tcase_add_test(t, logits_are_those_of_one_rank);
    tcase_add_test(t, a_sequence_that_stays_has_all_tokens_but_the_last);
    tcase_add_test(t, an_altered_pool_is_noticed_before_the_next_step);
    tcase_add_test(t, another_request_or_model_is_noticed_at_once);
    tcase_add_test(t, a_rank_that_leaves_ends_the_run);
    tcase_add_test(t, lies_in_an_exchange_are_noticed);
    tcase_add_test(t, only_what_can_be_shared_is_shared);
    return suite_main("ranks", t);
}
