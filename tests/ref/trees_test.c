/* trees_test.c - drafts that are trees: shapes, Sequoia's optimum against all trees, steps against rows computed afresh,
 * the output against plain decoding, its law, and pairs that are refused. Clauses TDR-01 to TDR-08, LAW-07, RNG-09. */
#include <math.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/dist/draw.h"
#include "ref/draft/draft_tree.h"
#include "ref/lm/hash_lm.h"
#include "ref/num/uniform.h"
#include "ref/verify/nodes.h"
#include "tests/random.h"
#include "tests/ref/record.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"

enum { V = 10, BUDGET = 24, PROMPT = 5, LONGEST = PROMPT + BUDGET + 16, NODES = 24 };
static const int32_t prompt[PROMPT] = {3, 1, 4, 1, 5};
static const as_sampling warm = {3.0f, 0, 1.0f, 0.0f};

/* ---- Shapes. ----------------------------------------------------------------------- */

START_TEST(shapes)
{
    static const struct {
        const char *text;
        int32_t drafts, depth, width;
        const char *parents; /* as letters: a is the root */
    } good[] = {{"1", 1, 1, 1, "a"},
                {"0", 1, 1, 1, "a"},
                {"3-2-1", 15, 3, 3, "aaabbccddefghij"},
                {"0,0,1", 3, 2, 2, "aab"},
                {"1-1-1", 3, 3, 1, "abc"},
                {"0,1,1,3", 4, 3, 2, "abbd"}};
    static const char *const wrong[] = {"",    "-",     "3-",      "3--1", "0-2",  "1,0",  "0,2", "0,",
                                        "x",   "3-2 ",  "1025",    "0,1,0", "+1", "99999", "33-33"};
    as_shape shape;
    as_error e;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        ck_assert_int_eq(as_shape_read(good[i].text, &shape, &e), AS_OK);
        ck_assert_int_eq(shape.drafts, good[i].drafts);
        for (int32_t k = 0; k < shape.drafts; k++)
            ck_assert_int_eq(shape.parent[k], good[i].parents[k] - 'a');
        ck_assert_int_eq(as_shape_depth(&shape), good[i].depth);
        ck_assert_int_eq(as_shape_width(&shape), good[i].width);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_msg(as_shape_read(wrong[i], &shape, &e) == AS_BAD_INPUT, "\"%s\"", wrong[i]);
        ck_assert_str_eq(e.about, "tree");
    }
    /* By hand: 1 + (.5 + .25) + .5 * (.5) for 0,0,1; a third rank without a rate adds nothing. */
    static const double p[] = {0.5, 0.25};
    as_shape_read("0,0,1", &shape, NULL);
    ck_assert(as_shape_tokens(&shape, p, 2) == 2.0);
    as_shape_read("0,0,0", &shape, NULL);
    ck_assert(as_shape_tokens(&shape, p, 2) == 1.75);
}
END_TEST

/* All trees of `drafts` drafts, node by node; the test's own sum. -1: there is none. */
typedef struct {
    const double *p;
    int32_t ranks, drafts, depth;
    int32_t parent[NODES], rank[NODES], level[NODES];
    double reach[NODES], most;
    int64_t trees;
} all_trees;

static void every_tree(all_trees *a, int32_t n)
{
    if (n > a->drafts) {
        double sum = 0;
        for (int32_t i = 0; i < n; i++) sum += a->reach[i];
        a->trees++;
        if (sum > a->most) a->most = sum;
        return;
    }
    for (int32_t up = n > 1 ? a->parent[n - 1] : 0; up < n; up++) {
        const int32_t rank = n > 1 && a->parent[n - 1] == up ? a->rank[n - 1] + 1 : 0;
        if (rank == a->ranks || a->level[up] == a->depth) continue;
        a->parent[n] = up, a->rank[n] = rank, a->level[n] = a->level[up] + 1;
        a->reach[n] = a->reach[up] * a->p[rank];
        every_tree(a, n + 1);
    }
}

START_TEST(sequoia_is_the_best_of_all_trees)
{
    uint64_t seed = 5;
    int32_t none = 0;
    int64_t trees = 0;
    for (int32_t i = 0; i < scaled(400); i++) {
        double p[4];
        as_shape shape;
        as_error e;
        all_trees a = {.p = p, .most = -1, .reach = {1}};
        a.ranks = 1 + below(&seed, 4), a.drafts = below(&seed, 11), a.depth = 1 + below(&seed, 5);
        for (int32_t k = 0; k < 4; k++) /* also 0, 1, equals, and rates that rise */
            p[k] = i % 3 ? unit(&seed) : below(&seed, 5) / 4.0;
        every_tree(&a, 1);
        trees += a.trees;
        const as_status s = as_sequoia(p, a.ranks, a.drafts, a.depth, &shape, &e);
        none += a.most < 0;
        ck_assert_int_eq(s, a.most < 0 ? AS_BAD_INPUT : AS_OK);
        if (s != AS_OK) continue;
        ck_assert_int_eq(as_shape_check(&shape, NULL), AS_OK);
        ck_assert_int_eq(shape.drafts, a.drafts);
        ck_assert_int_le(as_shape_depth(&shape), a.depth);
        ck_assert_int_le(as_shape_width(&shape), a.ranks);
        ck_assert(fabs(as_shape_tokens(&shape, p, a.ranks) - a.most) < 1e-12);
    }
    ck_assert_int_ge(none, least_events(20, test_scale()));
    ck_assert_int_ge(trees, only_paths() ? 1 : 20000 * test_scale());
    as_shape shape;
    ck_assert_int_eq(as_sequoia((double[]){0.6, 0.2}, 2, 255, 32, &shape, NULL), AS_OK);
    ck_assert_int_eq(as_sequoia((double[]){0.6, 1.2}, 2, 9, 3, &shape, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_sequoia((double[]){0.6, 0.2}, 2, 256, 3, &shape, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_sequoia((double[]){0.6, 0.2}, 2, 9, 33, &shape, NULL), AS_BAD_INPUT);
}
END_TEST

/* ---- Models and drafters. ---------------------------------------------------------- */

typedef enum { IID, WITHOUT, TOP, DYNAMIC, KINDS } kind;

typedef struct {
    as_lm *target, *draft;
    recorder seen, drafting; /* around them: what was committed, and what may be asked */
    as_drafter *none, *tree;
    kind kind;
    as_shape shape;
    as_dynamic dynamic;
} models;

static models *make(int32_t noise)
{
    models *m = calloc(1, sizeof *m);
    const as_hash_law target = {V, 8, 0, 21, 0}, draft = {V, 8, noise, 21, 99};
    ck_assert_ptr_nonnull(m);
    ck_assert_int_eq(as_hash_lm(&target, &m->target, NULL), AS_OK);
    ck_assert_int_eq(as_hash_lm(&draft, &m->draft, NULL), AS_OK);
    ck_assert_int_eq(as_draft_none(&m->none, NULL), AS_OK);
    m->seen = record(m->target);
    m->drafting = record(m->draft);
    return m;
}

static void drop(models *m)
{
    as_drafter_free(m->none);
    as_drafter_free(m->tree);
    record_free(&m->seen.base);
    record_free(&m->drafting.base);
    as_lm_free(m->target);
    as_lm_free(m->draft);
    free(m);
}

/* A tree of 1 to `most` nodes, any of its kind: parents do not fall. */
static void draw_shape(uint64_t *seed, int32_t most, as_shape *shape)
{
    shape->drafts = 1 + below(seed, most);
    for (int32_t i = 0, up = 0; i < shape->drafts; i++) {
        const int32_t step = below(seed, 3) == 0 ? 2 : below(seed, 2);
        up = up + step > i ? i : i ? up + step : 0;
        shape->parent[i] = up;
    }
    ck_assert_int_eq(as_shape_check(shape, NULL), AS_OK);
}

static void set_drafter(models *m, kind k)
{
    as_drafter_free(m->tree);
    m->kind = k;
    const as_status s =
        k == DYNAMIC ? as_draft_dynamic(&m->drafting.base, &warm, &m->dynamic, &m->tree, NULL)
                     : as_draft_tree(&m->drafting.base, &warm, &m->shape, (as_siblings)k, &m->tree, NULL);
    ck_assert_int_eq(s, AS_OK);
}

static void draw_drafter(models *m, uint64_t *seed)
{
    const kind k = (kind)below(seed, KINDS);
    draw_shape(seed, NODES - 1, &m->shape);
    m->dynamic = (as_dynamic){1 + below(seed, 4), 1 + below(seed, 5), 1 + below(seed, NODES - 1)};
    set_drafter(m, k);
}

static as_request request(models *m, as_rule rule, uint64_t seed)
{
    return (as_request){.target = &m->seen.base,
                        .drafter = m->tree,
                        .rule = rule,
                        .sampling = warm,
                        .seed = seed,
                        .prompt = prompt,
                        .prompts = PROMPT,
                        .budget = BUDGET};
}

static as_result run(const as_request *r, int32_t *out)
{
    as_result result;
    as_error e = {.text = ""};
    ck_assert_msg(as_decode(r, out, &result, &e) == AS_OK, "%s", e.text);
    return result;
}

/* ---- A step against rows computed afresh. ------------------------------------------ */

/* The served row behind these tokens, from a sequence of its own. */
static void fresh_row(as_lm *lm, const int32_t *token, int32_t n, float *p)
{
    as_row row[LONGEST];
    int32_t s;
    float logits[V];
    const int32_t last = n - 1;
    ck_assert_int_eq(as_lm_open(lm, &s, NULL), AS_OK);
    for (int32_t i = 0; i < n; i++) row[i] = (as_row){token[i], i - 1};
    as_lm_forward(lm, &(as_forward){s, n, 1, row, &last, logits}, 1, NULL);
    ck_assert_int_eq(as_serve(logits, V, &warm, p, NULL), AS_OK);
    as_lm_close(lm, s);
}

typedef struct {
    models *m;
    as_rule rule;
    uint64_t seed;
    int32_t tokens, history[LONGEST];
    int64_t accepted, refused, siblings; /* of all steps */
} replay;

/* The tokens up to a row, behind the history; returns how many. */
static int32_t path_to(const replay *y, const as_tree *t, int32_t row, int32_t *token)
{
    int32_t up[NODES + 1], depth = 0, n = PROMPT + y->tokens;
    memcpy(token, y->history, (size_t)n * sizeof *token);
    for (; row > 0; row = t->row[row].parent) up[depth++] = t->row[row].token;
    while (depth > 0) token[n++] = up[--depth];
    return n;
}

static int32_t depth_of(const as_tree *t, int32_t row)
{
    int32_t depth = 0;
    for (; row > 0; row = t->row[row].parent) depth++;
    return depth;
}

static int32_t rank_of(const as_tree *t, int32_t row)
{
    int32_t rank = 0;
    for (int32_t i = 1; i < row; i++) rank += t->row[i].parent == t->row[row].parent;
    return rank;
}

static void law_behind(const replay *y, as_lm *lm, const as_tree *t, int32_t row, float *p)
{
    int32_t token[LONGEST];
    const int32_t n = path_to(y, t, row, token);
    fresh_row(lm, token, n, p);
}

/* The token of largest weight that is not taken, the lowest of equals. */
static int32_t heaviest(const float *q, const bool *taken)
{
    int32_t best = -1;
    for (int32_t x = 0; x < V; x++)
        if (!taken[x] && q[x] > 0 && (best < 0 || q[x] > q[best])) best = x;
    return best;
}

/* TDR-02: what the children of a row are, drawn once more. */
static void check_token(const replay *y, const as_step *s, int32_t row)
{
    const as_tree *t = s->tree;
    const int32_t depth = depth_of(t, row);
    float q[V], left[V];
    bool taken[V] = {false};
    int32_t index = 0;
    law_behind(y, y->m->draft, t, t->row[row].parent, q);
    memcpy(left, q, sizeof left);
    for (int32_t i = 1; i < row; i++) {
        index += depth_of(t, i) == depth;
        if (t->row[i].parent != t->row[row].parent) continue;
        taken[t->row[i].token] = true;
        if (y->m->kind == WITHOUT) left[t->row[i].token] = 0;
    }
    if (y->m->kind == TOP) {
        ck_assert_int_eq(t->row[row].token, heaviest(q, taken));
        return;
    }
    const uint64_t at = s->position + (uint64_t)depth - 1;
    ck_assert_mem_eq(q, t->q + (row - 1) * V, sizeof q);
    ck_assert_int_eq(t->row[row].token,
                     as_draw(left, V, as_word64(as_random(y->seed, at, AS_DRAFT, (uint32_t)index))));
}

/* TDR-08, from lists of tokens: a node is a list, `at` its place among all. */
typedef struct {
    int32_t token[8], n, at;
    double value;
} leaf;

static int by_value(const void *a, const void *b)
{
    const leaf *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? 1 : -1;
    return x->at - y->at;
}

static int by_place(const void *a, const void *b)
{
    return ((const leaf *)a)->at - ((const leaf *)b)->at;
}

static int32_t children_of(const replay *y, const leaf *up, int32_t k, leaf *to)
{
    int32_t token[LONGEST], n = PROMPT + y->tokens, made = 0;
    bool taken[V] = {false};
    float q[V];
    memcpy(token, y->history, (size_t)n * sizeof *token);
    memcpy(token + n, up->token, (size_t)up->n * sizeof *token);
    fresh_row(y->m->draft, token, n + up->n, q);
    for (; made < k; made++) {
        const int32_t x = heaviest(q, taken);
        if (x < 0) break;
        taken[x] = true;
        to[made] = *up;
        to[made].token[to[made].n++] = x;
        to[made].value *= (double)q[x];
    }
    return made;
}

static void check_dynamic(const replay *y, const as_step *s)
{
    const as_dynamic *o = &y->m->dynamic;
    const int32_t allowed = BUDGET - y->tokens - 1, depth = o->depth < allowed ? o->depth : allowed;
    leaf all[200], level[64];
    int32_t n = 0, width;
    ck_assert(depth > 0 || s->tree->rows == 1);
    if (depth < 1) return;
    width = children_of(y, &(leaf){.value = 1}, o->expand, level);
    for (int32_t d = 1;; d++) {
        leaf best[64];
        for (int32_t i = 0; i < width; i++) level[i].at = n, all[n++] = level[i];
        if (d == depth) break;
        memcpy(best, level, (size_t)width * sizeof *best);
        qsort(best, (size_t)width, sizeof *best, by_value);
        const int32_t most = width < o->expand ? width : o->expand;
        qsort(best, (size_t)most, sizeof *best, by_place);
        width = 0;
        for (int32_t i = 0; i < most; i++) width += children_of(y, &best[i], o->expand, level + width);
    }
    qsort(all, (size_t)n, sizeof *all, by_value);
    const int32_t kept = o->drafts < n ? o->drafts : n;
    ck_assert_int_eq(s->tree->rows - 1, kept);
    for (int32_t i = 0; i < kept; i++) {
        int32_t token[LONGEST], found = 0;
        for (int32_t r = 1; r < s->tree->rows; r++) {
            const int32_t length = path_to(y, s->tree, r, token), from = PROMPT + y->tokens;
            found += length - from == all[i].n &&
                     memcmp(token + from, all[i].token, (size_t)all[i].n * sizeof *token) == 0;
        }
        ck_assert_int_eq(found, 1);
    }
}

/* TDR-05: the rule applied to fresh rows. */
static void check_verdict(replay *y, const as_step *s)
{
    static const as_tree_rule of[AS_RULES] = {
        [AS_RULE_TARGET] = AS_TREE_TARGET, [AS_RULE_RECURSIVE] = AS_TREE_RECURSIVE,
        [AS_RULE_SINGLE] = AS_TREE_SINGLE, [AS_RULE_KSEQ] = AS_TREE_KSEQ,
        [AS_RULE_ONEHOT] = AS_TREE_ONEHOT, [AS_RULE_MATCH] = AS_TREE_MATCH};
    const as_tree *t = s->tree;
    float p[NODES][V], q[NODES][V];
    as_node node[NODES];
    int32_t out[NODES + 1], path[NODES], length;
    as_error e;
    for (int32_t i = 0; i < t->rows; i++) {
        const double neutral = y->rule == AS_RULE_TARGET;
        const int32_t up = t->row[i].parent;
        law_behind(y, y->m->target, t, i, p[i]);
        if (t->laws) law_behind(y, y->m->draft, t, i, q[i]);
        node[i] = (as_node){i ? t->row[i].token : -1, up, p[i], i && t->laws ? q[up] : NULL,
                            y->m->kind == WITHOUT, {neutral, neutral}};
    }
    const as_tree_step step = {.rule = of[y->rule], .V = V, .nodes = t->rows, .node = node,
                               .seed = y->seed, .position = s->position};
    ck_assert_msg(as_verify_nodes(&step, out, path, &length, &e) == AS_OK, "%s", e.text);
    /* ONEHOT and MATCH may go on below a later node with the same path. */
    const bool merges = y->rule == AS_RULE_ONEHOT || y->rule == AS_RULE_MATCH;
    if (!merges) ck_assert_int_eq(s->length, length);
    ck_assert_int_ge(s->length, length);
    ck_assert_int_eq(s->accepted, s->length - 1);
    for (int32_t i = 0; i < length - merges; i++) ck_assert_int_eq(s->run[i], out[i]);
    for (int32_t i = 0; i < s->accepted; i++) {
        ck_assert_int_eq(t->row[s->path[i + 1]].token, s->run[i]);
        ck_assert_int_eq(t->row[s->path[i + 1]].parent, s->path[i]);
        if (!merges) ck_assert_int_eq(s->path[i + 1], path[i]);
    }
}

static void replay_step(void *data, const as_step *s)
{
    replay *y = data;
    ck_assert_uint_eq(s->position, (uint64_t)y->tokens);
    for (int32_t r = 1; r < s->tree->rows; r++) {
        if (y->m->kind != DYNAMIC) check_token(y, s, r);
        y->siblings += rank_of(s->tree, r) > 0;
    }
    if (y->m->kind == DYNAMIC) check_dynamic(y, s);
    check_verdict(y, s);
    for (int32_t i = 1; s->overlap && i < s->tree->rows; i++) {
        float p[V], q[V];
        double sum = 0;
        law_behind(y, y->m->target, s->tree, s->tree->row[i].parent, p);
        law_behind(y, y->m->draft, s->tree, s->tree->row[i].parent, q);
        for (int32_t x = 0; x < V; x++) sum += fmin((double)p[x], (double)q[x]);
        ck_assert(fabs(sum - s->overlap[i - 1]) < 1e-9);
    }
    memcpy(y->history + PROMPT + y->tokens, s->run, (size_t)s->emitted * sizeof *s->run);
    y->tokens += s->emitted;
    y->accepted += s->accepted;
    y->refused += s->accepted < depth_of(s->tree, s->tree->rows - 1);
}

/* Every kind of drafts under every rule that goes with it. */
START_TEST(steps_afresh)
{
    uint64_t seed = 11;
    replay y = {0};
    for (int32_t i = 0; i < scaled(400); i++) {
        models *m = make(1 + below(&seed, 6));
        int32_t out[BUDGET];
        draw_drafter(m, &seed);
        do y.rule = (as_rule)below(&seed, AS_RULES);
        while (y.rule == AS_RULE_GREEDY || !(m->tree->rules >> y.rule & 1));
        for (int twice = 0; twice < 2; twice++) { /* the second keeps what it can of the cache */
            y.m = m, y.seed = splitmix(&seed), y.tokens = 0;
            memcpy(y.history, prompt, sizeof prompt);
            as_request r = request(m, y.rule, y.seed);
            r.trace = replay_step, r.trace_data = &y;
            run(&r, out);
            ck_assert_mem_eq(out, y.history + PROMPT, sizeof out);
        }
        drop(m);
    }
    ck_assert_int_ge(y.accepted, scaled(1000));
    ck_assert_int_ge(y.refused, scaled(1000));
    ck_assert_int_ge(y.siblings, scaled(10000));
}
END_TEST

/* A chain is a tree of one child a node: the tokens of the chain's rule, to the last (TRV-09). */
START_TEST(chains)
{
    as_shape shape;
    ck_assert_int_eq(as_shape_read("1-1-1-1", &shape, NULL), AS_OK);
    for (uint64_t seed = 0; seed < 60; seed++) {
        models *m = make((int32_t)(seed % 6));
        as_drafter *chain;
        int32_t out[BUDGET], expected[BUDGET];
        m->shape = shape;
        set_drafter(m, seed % 2 ? IID : WITHOUT);
        ck_assert_int_eq(as_draft_lm(m->draft, &warm, 4, &chain, NULL), AS_OK);
        as_request r = request(m, AS_RULE_RECURSIVE, seed);
        const as_result tree = run(&r, out);
        r.drafter = chain, r.rule = AS_RULE_CHAIN;
        const as_result plain = run(&r, expected);
        ck_assert_mem_eq(out, expected, sizeof out);
        ck_assert_int_eq(tree.accepted, plain.accepted);
        as_drafter_free(chain);
        drop(m);
    }
}
END_TEST

/* One drafter for many prompts, each of which goes on from a part of the stream before, or from
 * another: the tokens of a drafter that keeps nothing. */
START_TEST(kept_prefix)
{
    enum { FIRST = 8, LONG = PROMPT + 3 * BUDGET };
    uint64_t seed = 29;
    models *m = make(4);
    int32_t stream[LONG], n = PROMPT, shared = 0;
    memcpy(stream, prompt, sizeof prompt);
    for (int32_t i = 0; i < scaled(600); i++) {
        int32_t out[FIRST], expected[FIRST];
        if (i % 20 == 0) draw_drafter(m, &seed);
        models *fresh = make(4);
        fresh->shape = m->shape, fresh->dynamic = m->dynamic;
        set_drafter(fresh, m->kind);
        const as_rule rule = m->kind == TOP || m->kind == DYNAMIC ? AS_RULE_TARGET : AS_RULE_RECURSIVE;
        as_request r = request(m, rule, (uint64_t)i);
        r.prompt = stream, r.prompts = n, r.budget = FIRST;
        const as_result kept = run(&r, out);
        r.target = &fresh->seen.base, r.drafter = fresh->tree;
        const as_result anew = run(&r, expected);
        ck_assert_mem_eq(out, expected, sizeof out);
        ck_assert_int_eq(kept.steps, anew.steps);
        ck_assert_int_eq(kept.accepted, anew.accepted);
        drop(fresh);
        if (n + FIRST >= LONG) n = PROMPT;
        memcpy(stream + n, out, sizeof out);
        n += below(&seed, FIRST + 1);
        const int32_t at = n - 2 - below(&seed, 3), other = coin(&seed) ? stream[at + 1] : below(&seed, V);
        if (coin(&seed)) stream[at] = other;
        else shared++;
    }
    ck_assert_int_ge(shared, scaled(200));
    drop(m);
}
END_TEST

/* ---- The output against plain decoding. -------------------------------------------- */

enum { DEPTHS = 4, RANKS = 3 };

/* How often each event came. */
typedef struct {
    int64_t full, leaf, repeat, budget, end, rows, positions;
    int64_t accepted[DEPTHS + 1][RANKS], refused[DEPTHS + 1][RANKS];
    const models *m;
    int32_t tokens, budget_of; /* of the request */
} events;

static void count_repeats(events *v, const as_step *s, int32_t row)
{
    const as_tree *t = s->tree;
    for (int32_t a = 1; a < t->rows; a++)
        for (int32_t b = 1; b < a; b++)
            if (t->row[a].parent == row && t->row[b].parent == row && t->row[a].token == t->row[b].token) {
                v->repeat++;
                return;
            }
}

static void count_step(void *data, const as_step *s)
{
    events *v = data;
    const as_tree *t = s->tree;
    const int32_t deepest = depth_of(t, t->rows - 1), last = s->path[s->accepted];
    bool is_leaf = true;
    for (int32_t i = 0; i <= s->accepted; i++) count_repeats(v, s, s->path[i]);
    for (int32_t r = 1; r < t->rows; r++) {
        const int32_t depth = depth_of(t, r), rank = rank_of(t, r);
        is_leaf &= t->row[r].parent != last;
        if (depth > DEPTHS || rank >= RANKS) continue;
        if (depth <= s->accepted && s->path[depth] == r) v->accepted[depth][rank]++;
        if (t->row[r].parent == last) v->refused[depth][rank]++;
    }
    v->full += s->accepted > 0 && s->accepted == deepest;
    v->leaf += is_leaf && s->accepted > 0 && s->accepted < deepest;
    v->end += s->emitted < s->length;
    v->budget += v->m->kind != DYNAMIC && t->rows > 1 && deepest < as_shape_depth(&v->m->shape) &&
                 deepest == v->budget_of - v->tokens - 1;
    v->tokens += s->emitted;
}

/* At T = 0 and under MATCH: the tokens of plain decoding, and the very logits of every row that
 * was committed, whatever the tree is and however far budget, ends, rows and positions go. */
START_TEST(plain_tokens)
{
    static float bits[BUDGET + PROMPT][V];
    uint64_t seed = 3;
    events v = {0};
    for (int32_t i = 0; i < scaled(20000); i++) {
        models *m = make(below(&seed, 7));
        int32_t out[BUDGET], expected[BUDGET], eos = below(&seed, V);
        draw_drafter(m, &seed);
        if (i % 5 == 0) { /* deep and wide, for the rare events */
            ck_assert_int_eq(as_shape_read("3-3-3-3", &m->shape, NULL), AS_OK);
            set_drafter(m, (kind)below(&seed, DYNAMIC));
        }
        as_request r = request(m, coin(&seed) ? AS_RULE_GREEDY : AS_RULE_MATCH, splitmix(&seed));
        r.budget = 1 + below(&seed, BUDGET);
        r.eos = &eos, r.eoses = below(&seed, 3) == 0;
        r.drafter = m->none;
        const as_result plain = run(&r, expected);
        const int32_t rows = m->seen.rows;
        memcpy(bits, m->seen.log, (size_t)rows * sizeof *bits);
        if (below(&seed, 4) == 0) m->seen.base.rows = 1 + below(&seed, 9), v.rows++;
        if (below(&seed, 4) == 0) m->drafting.base.rows = 1 + below(&seed, 9), v.rows++;
        if (below(&seed, 4) == 0) m->seen.base.positions = PROMPT + r.budget - 1, v.positions++;
        v.m = m, v.tokens = 0, v.budget_of = r.budget;
        r.drafter = m->tree;
        r.trace = count_step, r.trace_data = &v;
        const as_result result = run(&r, out);
        ck_assert_int_eq(result.tokens, plain.tokens);
        ck_assert_int_eq(result.ended, plain.ended);
        ck_assert_mem_eq(out, expected, (size_t)result.tokens * sizeof *out);
        ck_assert_int_eq(m->seen.rows, rows);
        ck_assert_mem_eq(m->seen.log, bits, (size_t)rows * sizeof *bits);
        drop(m);
    }
    const int64_t least = only_paths() ? 1 : scaled(100);
    ck_assert(v.full >= least && v.leaf >= least && v.repeat >= least && v.budget >= least);
    ck_assert(v.end >= least && v.rows >= least && v.positions >= least);
    for (int d = 1; d <= DEPTHS; d++)
        for (int k = 0; k < RANKS; k++)
            ck_assert_msg(v.accepted[d][k] >= least && v.refused[d][k] >= least,
                          "depth %d, rank %d: accepted %lld, refused %lld", d, k,
                          (long long)v.accepted[d][k], (long long)v.refused[d][k]);
}
END_TEST

/* ---- The law of the output. -------------------------------------------------------- */

enum { FEW = 3, TOKENS = 3, CELLS = FEW * FEW * FEW };

/* Of three tokens after the prompt, from the rows of the model. */
static void exact_law(as_lm *lm, double *law)
{
    for (int32_t cell = 0; cell < CELLS; cell++) {
        int32_t token[PROMPT + TOKENS] = {0, 1, 2, 1, 0}, left = cell;
        as_row row[PROMPT + TOKENS];
        law[cell] = 1;
        for (int32_t k = 0; k < TOKENS; k++, left /= FEW) {
            const int32_t n = PROMPT + k, last = n - 1;
            int32_t s;
            float logits[FEW], p[FEW];
            token[n] = left % FEW;
            for (int32_t i = 0; i < n; i++) row[i] = (as_row){token[i], i - 1};
            ck_assert_int_eq(as_lm_open(lm, &s, NULL), AS_OK);
            as_lm_forward(lm, &(as_forward){s, n, 1, row, &last, logits}, 1, NULL);
            ck_assert_int_eq(as_serve(logits, FEW, &warm, p, NULL), AS_OK);
            law[cell] *= (double)p[token[n]];
            as_lm_close(lm, s);
        }
    }
}

/* Pearson's statistic of `runs` decodings with seeds of their own. */
static double chi_square(as_lm *target, as_drafter *d, as_rule rule, int32_t runs, const double *law)
{
    static const int32_t begin[PROMPT] = {0, 1, 2, 1, 0};
    double count[CELLS] = {0}, sum = 0;
    for (int32_t i = 0; i < runs; i++) {
        int32_t out[TOKENS];
        const as_request r = {.target = target, .drafter = d, .rule = rule, .sampling = warm,
                              .seed = (uint64_t)i, .prompt = begin, .prompts = PROMPT, .budget = TOKENS};
        run(&r, out);
        count[out[0] + FEW * (out[1] + FEW * out[2])]++;
    }
    for (int32_t c = 0; c < CELLS; c++) {
        const double due = law[c] * runs;
        sum += (count[c] - due) * (count[c] - due) / due;
    }
    return sum;
}

/* 26 degrees of freedom: 65 is exceeded with probability 4e-5; seeds are fixed. */
START_TEST(law_of_the_output)
{
    static const struct {
        kind kind;
        as_rule rule;
    } pair[] = {{IID, AS_RULE_RECURSIVE}, {IID, AS_RULE_SINGLE},  {IID, AS_RULE_KSEQ},
                {IID, AS_RULE_TARGET},    {IID, AS_RULE_ONEHOT},  {WITHOUT, AS_RULE_RECURSIVE},
                {WITHOUT, AS_RULE_TARGET}, {TOP, AS_RULE_ONEHOT}, {TOP, AS_RULE_TARGET},
                {DYNAMIC, AS_RULE_TARGET}, {DYNAMIC, AS_RULE_ONEHOT}};
    const as_hash_law target = {FEW, 12, 0, 5, 0}, draft = {FEW, 12, 9, 5, 3};
    const as_dynamic dynamic = {2, 2, 3};
    as_lm *p, *q;
    as_shape shape;
    double law[CELLS];
    ck_assert_int_eq(as_hash_lm(&target, &p, NULL), AS_OK);
    ck_assert_int_eq(as_hash_lm(&draft, &q, NULL), AS_OK);
    ck_assert_int_eq(as_shape_read("2-2", &shape, NULL), AS_OK);
    exact_law(p, law);
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        as_drafter *d;
        ck_assert_int_eq(pair[i].kind == DYNAMIC
                             ? as_draft_dynamic(q, &warm, &dynamic, &d, NULL)
                             : as_draft_tree(q, &warm, &shape, (as_siblings)pair[i].kind, &d, NULL),
                         AS_OK);
        const double x = chi_square(p, d, pair[i].rule, scaled(40000), law);
        ck_assert_msg(x < 65, "%s, %s: chi-square %g", d->name, as_rule_name(pair[i].rule), x);
        as_drafter_free(d);
    }
    as_lm_free(p);
    as_lm_free(q);
}
END_TEST

/* ---- What is refused. -------------------------------------------------------------- */

START_TEST(wrong_pairs)
{
    static const char *const may[KINDS] = {
        [IID] = "greedy match onehot target recursive single kseq",
        [WITHOUT] = "greedy match onehot target recursive",
        [TOP] = "greedy match onehot target",
        [DYNAMIC] = "greedy match onehot target"};
    models *m = make(3);
    const as_dynamic wrong[] = {{0, 2, 3}, {2, 0, 3}, {2, 2, 0}, {65, 2, 3}, {2, 65, 3}, {2, 2, 1025}};
    as_drafter *d;
    as_error e;
    ck_assert_int_eq(as_shape_read("2-2", &m->shape, NULL), AS_OK);
    m->dynamic = (as_dynamic){2, 2, 4};
    for (int k = 0; k < KINDS; k++)
        for (int rule = 0; rule < AS_RULES; rule++) {
            const char *name = as_rule_name((as_rule)rule);
            int32_t out[BUDGET];
            as_result result;
            as_rule same;
            ck_assert(as_rule_named(name, &same) && (int)same == rule);
            set_drafter(m, (kind)k);
            const as_request r = request(m, (as_rule)rule, 1);
            const as_status s = as_decode(&r, out, &result, &e);
            ck_assert_int_eq(s, strstr(may[k], name) ? AS_OK : AS_BAD_INPUT);
            if (s == AS_OK) continue;
            ck_assert_str_eq(e.about, "rule");
            ck_assert(strstr(e.text, m->tree->name) && strstr(e.text, name));
        }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(as_draft_dynamic(m->draft, &warm, &wrong[i], &d, &e), AS_BAD_INPUT);
        ck_assert_str_eq(e.about, "tree");
    }
    m->shape.parent[2] = 3;
    ck_assert_int_eq(as_draft_tree(m->draft, &warm, &m->shape, AS_SIBLINGS_IID, &d, &e), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(e.text, "node 3 has parent 3"));
    drop(m);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("trees");
    tcase_add_test(t, shapes);
    tcase_add_test(t, sequoia_is_the_best_of_all_trees);
    tcase_add_test(t, steps_afresh);
    tcase_add_test(t, chains);
    tcase_add_test(t, kept_prefix);
    tcase_add_test(t, plain_tokens);
    tcase_add_test(t, law_of_the_output);
    tcase_add_test(t, wrong_pairs);
    return suite_main("ref/trees", t);
}
