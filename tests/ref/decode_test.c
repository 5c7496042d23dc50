/* decode_test.c - the loop: speculative decoding against plain decoding, stop rules, the trace.
 * Clauses STOP-01 to STOP-04, GRD-03, MAT-02, LAW-03. */
#include <math.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/dist/draw.h"
#include "ref/draft/lookahead.h"
#include "ref/lm/hash_lm.h"
#include "ref/num/uniform.h"
#include "tests/random.h"
#include "tests/ref/record.h"
#include "tests/ref/repeat.h"
#include "tests/ref/suite.h"

enum { V = 12, BUDGET = 60 };
static const int32_t prompt[] = {3, 1, 4, 1, 5};
static const as_sampling warm = {3.0f, 0, 1.0f, 0.0f};

typedef struct {
    as_lm *target, *draft;
    as_drafter *none, *chain;
} models;

/* A target of few levels, so that ties are common, and a draft that differs by some noise. */
static models make(int32_t noise)
{
    models m;
    const as_hash_law target = {V, 6, 0, 21, 0}, draft = {V, 6, noise, 21, 99};
    ck_assert_int_eq(as_hash_lm(&target, &m.target, NULL), AS_OK);
    ck_assert_int_eq(as_hash_lm(&draft, &m.draft, NULL), AS_OK);
    ck_assert_int_eq(as_draft_none(&m.none, NULL), AS_OK);
    m.chain = NULL;
    return m;
}

static void drop(models *m)
{
    as_drafter_free(m->none);
    as_drafter_free(m->chain);
    as_lm_free(m->target);
    as_lm_free(m->draft);
}

/* With a chain of gamma drafts from now on. */
static as_request request(models *m, as_rule rule, int32_t gamma, uint64_t seed)
{
    as_drafter_free(m->chain);
    ck_assert_int_eq(as_draft_lm(m->draft, &warm, gamma, &m->chain, NULL), AS_OK);
    return (as_request){.target = m->target,
                        .drafter = m->chain,
                        .rule = rule,
                        .sampling = warm,
                        .seed = seed,
                        .prompt = prompt,
                        .prompts = 5,
                        .budget = BUDGET};
}

/* Plain decoding written out: no loop, no cache, no rule of the library. */
static void plain(as_lm *lm, int greedy, uint64_t seed, int32_t *out)
{
    int32_t history[5 + BUDGET], s;
    as_row row[5 + BUDGET];
    float logits[V], p[V];
    memcpy(history, prompt, sizeof prompt);
    for (int32_t n = 5; n < 5 + BUDGET; n++) {
        ck_assert_int_eq(as_lm_open(lm, &s, NULL), AS_OK);
        for (int32_t i = 0; i < n; i++) row[i] = (as_row){history[i], i - 1};
        const int32_t last = n - 1;
        as_lm_forward(lm, &(as_forward){s, n, 1, row, &last, logits}, 1, NULL);
        if (greedy)
            ck_assert_int_eq(as_argmax(logits, V, &history[n], NULL), AS_OK);
        else {
            ck_assert_int_eq(as_serve(logits, V, &warm, p, NULL), AS_OK);
            history[n] = as_draw(p, V, as_word64(as_random(seed, (uint64_t)n - 5, AS_DRAW, 0)));
        }
        as_lm_close(lm, s);
    }
    memcpy(out, history + 5, BUDGET * sizeof *out);
}

static as_result run(const as_request *r, int32_t *out)
{
    as_result result;
    as_error e = {.text = ""};
    ck_assert_msg(as_decode(r, out, &result, &e) == AS_OK, "%s", e.text);
    return result;
}

static void refused(as_request r, const char *word)
{
    int32_t out[BUDGET];
    as_result result;
    as_error e = {.text = ""};
    ck_assert_int_eq(as_decode(&r, out, &result, &e), AS_BAD_INPUT);
    ck_assert_msg(strstr(e.text, word), "\"%s\" does not name %s", e.text, word);
    ck_assert_int_eq(result.tokens, 0);
}

/* Greedy and match emit plain decoding's very tokens for every gamma and every draft. */
START_TEST(same_tokens_as_plain)
{
    for (int32_t noise = 0; noise <= 6; noise += 2) {
        models m = make(noise);
        for (uint64_t seed = 0; seed < 3; seed++)
            for (int greedy = 0; greedy < 2; greedy++) {
                int32_t expected[BUDGET], out[BUDGET];
                plain(m.target, greedy, seed, expected);
                for (int32_t gamma = 0; gamma < 7; gamma++) {
                    as_request r =
                        request(&m, greedy ? AS_RULE_GREEDY : AS_RULE_MATCH, gamma, seed);
                    const as_result result = run(&r, out);
                    ck_assert_mem_eq(out, expected, sizeof out);
                    ck_assert_int_eq(result.tokens, BUDGET);
                    ck_assert_int_eq(result.tokens, result.steps + result.accepted);
                    ck_assert(result.steps < BUDGET || gamma == 0 || !result.accepted);
                }
            }
        drop(&m);
    }
}
END_TEST

/* The recipe's drafter: plain decoding's tokens, from one chain of gamma drafts a step. */
START_TEST(drafter_of_the_recipe)
{
    models m = make(2);
    for (int greedy = 0; greedy < 2; greedy++) {
        int32_t expected[BUDGET], out[BUDGET];
        as_drafter *d;
        plain(m.target, greedy, 4, expected);
        ck_assert_int_eq(as_draft_repeat(3, &d, NULL), AS_OK);
        as_request r = request(&m, greedy ? AS_RULE_GREEDY : AS_RULE_MATCH, 0, 4);
        r.drafter = d;
        const as_result result = run(&r, out);
        ck_assert_mem_eq(out, expected, sizeof out);
        ck_assert_int_ge(result.drafted,
                         3 * result.steps - 6); /* the budget ends the last chains */
        ck_assert_int_le(result.drafted, 3 * result.steps);
        r.rule = AS_RULE_CHAIN;
        refused(r, "repeat does not go with the rule chain");
        as_drafter_free(d);
    }
    drop(&m);
}
END_TEST

/* A prompt longer than one prefill: the step sees all of it, in order. Both models' caches are
 * then past several growths. */
START_TEST(long_prompt)
{
    enum { LONG = 1300, TOKENS = 3 };
    static int32_t history[LONG + TOKENS];
    static as_row row[LONG + TOKENS];
    models m = make(2);
    uint64_t seed = 1;
    for (int32_t i = 0; i < LONG; i++) history[i] = below(&seed, V);
    as_request r = request(&m, AS_RULE_GREEDY, 2, 0);
    r.prompt = history;
    r.budget = TOKENS;
    for (r.prompts = LONG - 800; r.prompts <= LONG; r.prompts += 6 + r.prompts % 3 * 29) {
        int32_t s, out[TOKENS];
        float logits[V];
        run(&r, out);
        for (int32_t n = r.prompts, i = 0; i < TOKENS; n++, i++) {
            for (int32_t k = 0; k < n; k++)
                row[k] = (as_row){k < r.prompts ? history[k] : out[k - r.prompts], k - 1};
            const int32_t last = n - 1;
            int32_t best;
            ck_assert_int_eq(as_lm_open(m.target, &s, NULL), AS_OK);
            as_lm_forward(m.target, &(as_forward){s, n, 1, row, &last, logits}, 1, NULL);
            ck_assert_int_eq(as_argmax(logits, V, &best, NULL), AS_OK);
            ck_assert_int_eq(out[i], best);
            as_lm_close(m.target, s);
        }
    }
    drop(&m);
}
END_TEST

/* Without drafts the chain rule is plain decoding as well (BON-03, STOP-03). */
START_TEST(chain_without_drafts)
{
    models m = make(4);
    int32_t expected[BUDGET], out[BUDGET];
    plain(m.target, 0, 8, expected);
    as_request r = request(&m, AS_RULE_CHAIN, 0, 8);
    run(&r, out);
    ck_assert_mem_eq(out, expected, sizeof out);
    r.drafter = m.none;
    ck_assert_int_eq(run(&r, out).steps, BUDGET);
    ck_assert_mem_eq(out, expected, sizeof out);
    drop(&m);
}
END_TEST

START_TEST(own_draft_is_always_accepted)
{
    models m = make(0);
    int32_t out[BUDGET];
    for (int32_t gamma = 1; gamma < 6; gamma++) {
        const as_request r = request(&m, AS_RULE_CHAIN, gamma, 5);
        const as_result result = run(&r, out);
        ck_assert_int_eq(result.accepted, result.drafted);
        ck_assert_int_eq(result.steps, (BUDGET + gamma) / (gamma + 1));
    }
    drop(&m);
}
END_TEST

/* What the chain emitted, step by step, against the rule applied to rows computed afresh: the
 * draft's cache and the target's are in step with the output, and q is the law of the
 * drafts. */
typedef struct {
    models *m;
    int32_t steps, tokens, accepted, drafted;
    int32_t history[5 + BUDGET];
} replay;

static void fresh_row(as_lm *lm, const int32_t *token, int32_t n, float *p)
{
    as_row row[5 + BUDGET];
    int32_t s;
    float logits[V];
    const int32_t last = n - 1;
    ck_assert_int_eq(as_lm_open(lm, &s, NULL), AS_OK);
    for (int32_t i = 0; i < n; i++) row[i] = (as_row){token[i], i - 1};
    as_lm_forward(lm, &(as_forward){s, n, 1, row, &last, logits}, 1, NULL);
    ck_assert_int_eq(as_serve(logits, V, &warm, p, NULL), AS_OK);
    as_lm_close(lm, s);
}

static void replay_step(void *data, const as_step *s)
{
    replay *y = data;
    float p[V], q[V];
    const int32_t n = 5 + y->tokens, drafts = s->tree->rows - 1;
    int32_t path[5 + BUDGET], i = 0;
    ck_assert_int_eq(s->step, y->steps++);
    ck_assert_uint_eq(s->position, (uint64_t)y->tokens);
    ck_assert_int_eq(s->tree->row[0].token, y->history[n - 1]);
    ck_assert_int_lt(drafts, BUDGET - y->tokens); /* no draft that the budget cannot use */
    memcpy(path, y->history, (size_t)n * sizeof *path);
    for (; i < drafts; i++) {
        const uint64_t at = s->position + (uint64_t)i;
        const int32_t x = s->tree->row[i + 1].token;
        fresh_row(y->m->target, path, n + i, p);
        fresh_row(y->m->draft, path, n + i, q);
        ck_assert_mem_eq(q, s->tree->q + i * V, sizeof q);
        ck_assert_int_eq(x, as_draw(q, V, as_word64(as_random(77, at, AS_DRAFT, 0))));
        double overlap = 0.0;
        for (int t = 0; t < V; t++) overlap += fmin((double)p[t], (double)q[t]);
        ck_assert(fabs(overlap - s->overlap[i]) < 1e-9);
        if (as_unit29(as_random(77, at, AS_ACCEPT, 0)) * (double)q[x] >= (double)p[x]) break;
        ck_assert_int_eq(s->run[i], x);
        path[n + i] = x;
    }
    ck_assert_int_eq(s->accepted, i);
    for (int32_t k = 0; k < s->emitted; k++) y->history[n + k] = s->run[k];
    y->tokens += s->emitted;
    y->accepted += s->accepted;
    y->drafted += drafts;
}

START_TEST(chain_step_by_step)
{
    models m = make(5);
    for (int32_t gamma = 1; gamma < 6; gamma++) {
        replay y = {.m = &m};
        int32_t out[BUDGET];
        memcpy(y.history, prompt, sizeof prompt);
        as_request r = request(&m, AS_RULE_CHAIN, gamma, 77);
        r.trace = replay_step;
        r.trace_data = &y;
        const as_result result = run(&r, out);
        ck_assert_mem_eq(out, y.history + 5, sizeof out);
        ck_assert_int_eq(result.steps, y.steps);
        ck_assert_int_eq(result.accepted, y.accepted);
        ck_assert_int_eq(result.drafted, y.drafted);
        ck_assert_int_gt(result.accepted, 0);
        ck_assert_int_lt(result.accepted, result.drafted);
    }
    drop(&m);
}
END_TEST

/* The one-hot rule likewise, on the candidates of a lookahead: lists of tokens, of which those
 * remain that begin with what was accepted. */
enum { NGRAM = 4, MOST = 8 };

static int32_t distinct(const as_tree *t, int32_t drafts, const bool *alive, int32_t at,
                        int32_t *option)
{
    int32_t n = 0;
    for (int32_t g = 0; at < NGRAM - 1 && drafts + g * (NGRAM - 1) < t->rows; g++) {
        const int32_t token = t->row[drafts + g * (NGRAM - 1) + at].token;
        int32_t k = 0;
        while (k < n && option[k] != token) k++;
        if (alive[g] && k == n) option[n++] = token;
    }
    return n;
}

static void replay_onehot(void *data, const as_step *s)
{
    replay *y = data;
    const int32_t n = 5 + y->tokens;
    int32_t path[5 + BUDGET + NGRAM], i = 0;
    bool alive[MOST], goes_on = true;
    memset(alive, true, sizeof alive);
    memcpy(path, y->history, (size_t)n * sizeof *path);
    for (; goes_on; i++) {
        float p[V], rest[V];
        int32_t option[MOST];
        const int32_t k = distinct(s->tree, s->plan->drafts, alive, i, option);
        fresh_row(y->m->target, path, n + i, p);
        const int32_t x =
            as_onehot_seeded(p, V, option, k, 77, s->position + (uint64_t)i, rest);
        ck_assert_int_lt(i, s->length);
        ck_assert_int_eq(s->run[i], x);
        path[n + i] = x;
        goes_on = false;
        for (int32_t c = 0; c < k; c++) goes_on |= option[c] == x;
        for (int32_t g = 0; g < MOST && s->plan->drafts + g * 3 + i < s->tree->rows; g++)
            alive[g] &= s->tree->row[s->plan->drafts + g * 3 + i].token == x;
        y->drafted += k > 1;
    }
    ck_assert_int_eq(s->length, i);
    ck_assert_int_eq(s->accepted, i - 1);
    for (int32_t k = 0; k < s->emitted; k++) y->history[n + k] = s->run[k];
    y->tokens += s->emitted;
    y->accepted += s->accepted;
}

START_TEST(onehot_step_by_step)
{
    models m = make(0);
    as_lookahead o = *as_lookahead_preset("paper");
    replay y = {.m = &m};
    o.W = 6, o.N = NGRAM, o.G = MOST;
    for (int32_t i = 0; i < 40; i++) {
        as_drafter *d;
        int32_t out[BUDGET];
        memcpy(y.history, prompt, sizeof prompt);
        y.tokens = 0;
        ck_assert_int_eq(as_draft_lookahead(&o, V, &d, NULL), AS_OK);
        as_request r = request(&m, AS_RULE_ONEHOT, 0, 77);
        r.drafter = d;
        r.trace = replay_onehot;
        r.trace_data = &y;
        o.key = (as_key)(i % 2 * AS_KEY_NEXT); /* other pools, other candidates */
        o.shift = (as_shift)(i % 3);
        o.W = 1 + i % 8;
        run(&r, out);
        ck_assert_mem_eq(out, y.history + 5, sizeof out);
        as_drafter_free(d);
    }
    ck_assert_int_gt(y.accepted, 100);
    ck_assert_int_gt(y.drafted, 100); /* levels with several candidates */
    drop(&m);
}
END_TEST

/* STOP-01, STOP-02: the output is a prefix of the unstopped one, and ends where it must. (The
 * chain rule's last tokens may be others under another budget: the note of STOP-03.) */
START_TEST(stop_rules)
{
    models m = make(2);
    for (int rule = AS_RULE_GREEDY; rule <= AS_RULE_MATCH; rule++)
        for (int32_t gamma = 0; gamma < 6; gamma++) {
            int32_t whole[BUDGET], out[BUDGET + 1];
            as_request r = request(&m, (as_rule)rule, gamma, 4);
            run(&r, whole);
            for (int32_t budget = 0; budget <= BUDGET; budget++) {
                r.budget = budget;
                out[budget] = -7;
                const as_result result = run(&r, out);
                ck_assert_int_eq(result.tokens, budget);
                ck_assert(!result.ended);
                ck_assert_int_eq(out[budget], -7);
                const int32_t same = rule == AS_RULE_CHAIN ? budget - gamma - 1 : budget;
                if (same > 0) ck_assert_mem_eq(out, whole, (size_t)same * sizeof *out);
            }
            for (int32_t eos = 0; eos < V; eos++) {
                const int32_t ids[] = {V + 5, eos};
                int32_t end = 0;
                while (end < BUDGET && whole[end] != eos) end++;
                r.eos = ids;
                r.eoses = 2;
                const as_result result = run(&r, out);
                ck_assert_int_eq(result.tokens, end < BUDGET ? end + 1 : BUDGET);
                ck_assert_int_eq(result.ended, end < BUDGET);
                ck_assert_mem_eq(out, whole, (size_t)result.tokens * sizeof *out);
            }
            r.eoses = 0;
        }
    drop(&m);
}
END_TEST

/* STOP-03: a gamma that the budget cannot use changes nothing. */
START_TEST(gamma_beyond_the_budget)
{
    models m = make(3);
    int32_t small[4], large[4];
    as_request r = request(&m, AS_RULE_CHAIN, 3, 9);
    r.budget = 4;
    run(&r, small);
    r = request(&m, AS_RULE_CHAIN, INT32_MAX, 9);
    r.budget = 4;
    const as_result result = run(&r, large);
    ck_assert_mem_eq(small, large, sizeof small);
    ck_assert_int_le(result.drafted, 3 + 2 + 1);
    drop(&m);
}
END_TEST

/* KV-03: one sequence of the target and one drafter for many prompts, each of which keeps what
 * it has in common with the one before: the tokens of a decoding that keeps nothing. */
START_TEST(kept_prefix)
{
    static const as_rule rule[] = {AS_RULE_GREEDY, AS_RULE_CHAIN, AS_RULE_MATCH};
    models m = make(3), other = make(3);
    int32_t other_prompt[] = {3, 1, 4, 1, 5}, last[] = {3, 1, 4, 1, 5}, sequence;
    ck_assert_int_eq(as_lm_open(m.target, &sequence, NULL), AS_OK);
    as_request kept = request(&m, AS_RULE_CHAIN, 3, 0);
    for (int32_t i = 0; i < 60; i++) {
        int32_t out[BUDGET], expected[BUDGET], shared = 0;
        other_prompt[i % 5] = i * 7 % V;
        while (i > 0 && shared < 4 && other_prompt[shared] == last[shared]) shared++;
        ck_assert_int_eq(as_lm_truncate(m.target, sequence, shared, NULL), AS_OK);
        as_request fresh = request(&other, rule[i % 3], 3, (uint64_t)i);
        fresh.prompt = other_prompt;
        fresh.budget = i % 4 == 3 ? 1 : BUDGET;
        run(&fresh, expected);
        kept.sequence = &sequence;
        kept.rule = fresh.rule, kept.seed = fresh.seed, kept.budget = fresh.budget;
        kept.prompt = other_prompt;
        run(&kept, out);
        ck_assert_mem_eq(out, expected, (size_t)fresh.budget * sizeof *out);
        ck_assert_int_eq(as_lm_length(m.target, sequence), 5 + fresh.budget - 1);
        memcpy(last, other_prompt, sizeof last);
    }
    drop(&m);
    drop(&other);
}
END_TEST

static as_status branch(as_drafter *d, const as_context *c, as_tree *tree, as_plan *plan,
                        as_error *e)
{
    (void)plan;
    (void)d, (void)c;
    as_tree_add(tree, 0, 0, e);
    return as_tree_add(tree, 1, 0, e);
}

static int32_t known[BUDGET]; /* what the target says */

/* All of it, as far as it goes beyond the budget; with each draft a false one beside it. */
static as_status insist(as_drafter *d, const as_context *c, as_tree *tree, as_plan *plan,
                        as_error *e)
{
    (void)plan;
    (void)d;
    int32_t parent = 0;
    for (int32_t i = (int32_t)c->position; i < BUDGET; i++) {
        as_tree_add(tree, (known[i] + 1) % V, parent, e);
        as_tree_add(tree, known[i], parent, e);
        parent = tree->rows - 1;
    }
    return AS_OK;
}

/* STOP-02, LAH-30: what a run has beyond the budget is neither emitted nor kept. */
START_TEST(run_beyond_the_budget)
{
    models m = make(0);
    as_drafter_ops ops = *m.none->ops;
    ops.propose = insist;
    as_drafter drafter = {&ops, "all at once", AS_EVERY_RULE, V, NULL};
    int32_t out[BUDGET];
    plain(m.target, 1, 0, known);
    for (int32_t budget = 1; budget < BUDGET - 1; budget++) {
        recorder seen = record(m.target);
        as_request r = request(&m, AS_RULE_GREEDY, 2, 0);
        r.drafter = &drafter;
        r.target = &seen.base;
        r.budget = budget;
        const as_result result = run(&r, out);
        ck_assert_int_eq(result.tokens, budget);
        ck_assert_int_eq(result.steps, 1);
        ck_assert_int_eq(result.accepted, BUDGET);
        ck_assert_int_eq(seen.rows, budget);
        ck_assert_mem_eq(out, known, (size_t)budget * sizeof *out);
        record_free(&seen.base);
    }
    drop(&m);
}
END_TEST

START_TEST(bad_requests)
{
    models m = make(3), other = make(3);
    const as_request good = request(&m, AS_RULE_CHAIN, 3, 9);
    as_request r = good;
    as_drafter *bad;
    as_error e = {.text = ""};
    ck_assert_int_eq(as_draft_lm(m.draft, &warm, -1, &bad, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "gamma"));
    r.budget = -1;
    refused(r, "budget");
    r = good;
    r.prompts = 0;
    refused(r, "prompt");
    r = good;
    r.prompt = (int32_t[]){0, 1, 2, V, 0};
    refused(r, "prompt token 3");
    int32_t sequence = 7;
    r = good;
    r.sequence = &sequence;
    refused(r, "sequence 7 has -1 tokens");
    ck_assert_int_eq(as_lm_open(m.target, &sequence, NULL), AS_OK);
    r.budget = 1;
    run(&r, (int32_t[1]){0});
    refused(r, "has 5 tokens");
    r = good;
    r.rule = (as_rule)9;
    refused(r, "rule");
    r = good;
    r.sampling.top_p = 2.0f;
    refused(r, "top_p");
    as_lm *wide;
    ck_assert_int_eq(as_hash_lm(&(as_hash_law){V + 1, 2, 0, 0, 0}, &wide, NULL), AS_OK);
    r = good;
    r.target = wide;
    refused(r, "vocabulary");
    as_lm_free(wide);
    /* A tree that is no chain, from a drafter of another's making. */
    as_drafter_ops ops = *m.none->ops;
    ops.propose = branch;
    as_drafter tree = {&ops, "a branch", AS_EVERY_RULE, V, NULL};
    r = good;
    r.drafter = &tree;
    refused(r, "chain");
    /* A rule that the drafter does not go with, both by name. */
    tree.rules = 1u << AS_RULE_GREEDY;
    refused(r, "a branch does not go with the rule chain");
    drop(&m);
    drop(&other);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("decode");
    tcase_add_test(t, same_tokens_as_plain);
    tcase_add_test(t, drafter_of_the_recipe);
    tcase_add_test(t, long_prompt);
    tcase_add_test(t, chain_without_drafts);
    tcase_add_test(t, own_draft_is_always_accepted);
    tcase_add_test(t, chain_step_by_step);
    tcase_add_test(t, onehot_step_by_step);
    tcase_add_test(t, stop_rules);
    tcase_add_test(t, gamma_beyond_the_budget);
    tcase_add_test(t, run_beyond_the_budget);
    tcase_add_test(t, kept_prefix);
    tcase_add_test(t, bad_requests);
    return suite_main("ref/decode", t);
}
