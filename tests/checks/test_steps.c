/* What the caches of a target and of its draft model hold in the reference's decoding loop
 * (KV-08): before every forward the target has the tokens emitted but the last, and the draft
 * model, when it starts to propose, the same tokens as far as it had evaluated them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/lm/hash_lm.h"

enum { PROMPT = 5, BUDGET = 60, MOST = PROMPT + BUDGET + 16 };

/* A model that passes everything on and keeps the tokens that it was told to commit. */
typedef struct {
    as_lm base;
    as_lm *inner;
    int32_t token[MOST], n; /* committed */
    int32_t row[MOST];      /* of the last forward */
    int32_t forwards;
    void (*before)(int32_t first_row); /* each forward */
} ledger;

static as_status ledger_open(as_lm *lm, int32_t *sequence, as_error *e)
{
    return as_lm_open(((ledger *)lm)->inner, sequence, e);
}

static void ledger_close(as_lm *lm, int32_t sequence)
{
    as_lm_close(((ledger *)lm)->inner, sequence);
}

static as_status ledger_forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e)
{
    ledger *k = (ledger *)lm;
    k->before(f->row[0].token);
    for (int32_t i = 0; i < f->rows; i++) k->row[i] = f->row[i].token;
    k->forwards++;
    return as_lm_forward(k->inner, f, n, e);
}

static as_status ledger_commit(as_lm *lm, int32_t s, const int32_t *path, int32_t n,
                               as_error *e)
{
    ledger *k = (ledger *)lm;
    for (int32_t i = 0; i < n; i++) k->token[k->n++] = k->row[path[i]];
    return as_lm_commit(k->inner, s, path, n, e);
}

static as_status ledger_truncate(as_lm *lm, int32_t s, int32_t length, as_error *e)
{
    ((ledger *)lm)->n = length;
    return as_lm_truncate(((ledger *)lm)->inner, s, length, e);
}

static int32_t ledger_length(const as_lm *lm, int32_t s)
{
    return as_lm_length(((const ledger *)lm)->inner, s);
}

static void ledger_free(as_lm *lm)
{
    as_lm_free(((ledger *)lm)->inner);
}

static const as_lm_ops operations = {ledger_open,   ledger_close,    ledger_forward,
                                     ledger_commit, ledger_truncate, ledger_length,
                                     ledger_free};

/* ---- The loop. ------------------------------------------------------------------- */

static ledger target, draft;
static int32_t stream[PROMPT + BUDGET]; /* the prompt and what greedy decoding emits */
static int32_t due; /* what the draft model must hold when it starts to propose; -1: started */
static int32_t started;

static int32_t common(const ledger *k)
{
    int32_t n = 0;
    while (n < k->n && n < PROMPT + BUDGET && k->token[n] == stream[n]) n++;
    return n;
}

static void nothing(int32_t first_row)
{
    (void)first_row;
}

/* The target is asked: the draft model has proposed, and keeps of it what will prove right. */
static void before_target(int32_t first_row)
{
    assert_int_equal(target.n, common(&target));
    assert_int_equal(first_row, stream[target.n]);
    due = common(&draft);
}

static void before_draft(int32_t first_row)
{
    if (due < 0) return;
    assert_int_equal(draft.n, due < target.n ? due : target.n);
    assert_int_equal(draft.n, common(&draft));
    assert_int_equal(first_row, stream[draft.n]);
    due = -1;
    started++;
}

static void open_ledger(ledger *k, const as_hash_law *law, void (*before)(int32_t))
{
    memset(k, 0, sizeof *k);
    assert_int_equal(as_hash_lm(law, &k->inner, NULL), AS_OK);
    k->base = (as_lm){.ops = &operations, .V = law->V};
    k->before = before;
}

static int32_t decode(as_drafter *d, int32_t *out)
{
    as_result result;
    as_error e = {.text = ""};
    const as_request r = {.target = &target.base,
                          .drafter = d,
                          .rule = AS_RULE_GREEDY,
                          .sampling = {0.0f, 0, 1.0f, 0.0f},
                          .prompt = stream,
                          .prompts = PROMPT,
                          .budget = BUDGET};
    if (as_decode(&r, out, &result, &e) != AS_OK) fail_msg("%s", e.text);
    return result.tokens;
}

static void caches_hold_what_was_emitted(void **unused)
{
    (void)unused;
    for (int32_t gamma = 1; gamma <= 8; gamma++)
        for (int32_t noise = 0; noise < 40; noise += 8) {
            const as_hash_law exact = {24, 40, 0, (uint64_t)gamma, 0},
                              near = {24, 40, noise, (uint64_t)gamma, 77};
            const as_sampling greedy = {0.0f, 0, 1.0f, 0.0f};
            int32_t out[BUDGET];
            as_drafter *none, *chain;
            for (int32_t i = 0; i < PROMPT; i++) stream[i] = (3 * i + gamma) % 24;
            open_ledger(&target, &exact, nothing);
            assert_int_equal(as_draft_none(&none, NULL), AS_OK);
            assert_int_equal(decode(none, stream + PROMPT), BUDGET);
            as_drafter_free(none);
            as_lm_free(&target.base);
            open_ledger(&target, &exact, before_target);
            open_ledger(&draft, &near, before_draft);
            due = -1;
            assert_int_equal(as_draft_lm(&draft.base, &greedy, gamma, &chain, NULL), AS_OK);
            assert_int_equal(decode(chain, out), BUDGET);
            assert_memory_equal(out, stream + PROMPT, sizeof out);
            as_drafter_free(chain);
            as_lm_free(&draft.base);
            as_lm_free(&target.base);
        }
    assert_true(started > 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(caches_hold_what_was_emitted)};
    return cmocka_run_group_tests_name("checks: caches of two models", tests, NULL, NULL);
}
