/* lm_long.c - lm.long: what only many positions and many rows show (LAY-17): a path beyond the positions at which
 * tables of angles, pages and chunks end; trees of more rows than a tile; a long text in one forward and in several;
 * trees, scattered commits and truncations across the ends of long pages. */
#include <stdio.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm_drive.h"

enum { PATH, TREE, PREFILL, TURNS, KINDS };
static const char *const kind_name[] = {"path", "tree", "prefill", "turns"};
enum { LENGTH = 2304, CHUNK = 192, TREE_PREFIX = 61, TREE_ROWS = 340, TEXT = 1100, TURNED = 1100 };

enum { FORMS = 3, VOCABULARY = 23 };

/* Small ones, so that thousands of positions cost little. */
static const lm_form forms[FORMS] = {{.name = "far-llama",
                                      .architecture = IUT_LLAMA,
                                      .stored = LM_F32,
                                      .V = VOCABULARY,
                                      .layers = 1,
                                      .hidden = 12,
                                      .heads = 3,
                                      .kv_heads = 3,
                                      .head_dim = 4,
                                      .ffn = 10,
                                      .positions = 4096,
                                      .eps = "1e-02",
                                      .theta = "10000.0",
                                      .seed = 1616},
                                     {.name = "far-qwen2",
                                      .architecture = IUT_QWEN2,
                                      .stored = LM_BF16,
                                      .V = VOCABULARY,
                                      .layers = 1,
                                      .hidden = 10,
                                      .heads = 3,
                                      .kv_heads = 1,
                                      .head_dim = 4,
                                      .ffn = 14,
                                      .positions = 4096,
                                      .tied = true,
                                      .eps = "1e-06",
                                      .theta = "1000000.0",
                                      .seed = 1617},
                                     {.name = "far-qwen3",
                                      .architecture = IUT_QWEN3,
                                      .stored = LM_F16,
                                      .V = VOCABULARY,
                                      .layers = 1,
                                      .hidden = 14,
                                      .heads = 2,
                                      .kv_heads = 2,
                                      .head_dim = 6,
                                      .ffn = 9,
                                      .positions = 4096,
                                      .eps = "1e-06",
                                      .theta = "100.0",
                                      .seed = 1618}};

static void plan(check_plan *p, check_level level)
{
    for (int32_t f = 0; f < FORMS; f += level == LEVEL_SMOKE ? 2 : 1)
        for (int32_t kind = level == LEVEL_SMOKE ? TURNS : 0; kind < KINDS; kind++) {
            check_case *c = plan_case(p, &check_lm_long, "%s-%s", forms[f].name, kind_name[kind]);
            c->model.folder = f;
            c->model.kind = kind;
            c->cost = kind == PATH ? 1.5e5 : kind == TURNS ? 8e4 : 6e4;
        }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return lm_claimed_kind(tested, forms[c->model.folder].architecture, VOCABULARY, LM_BITS, why, size);
}

/* A chain of n rows on a sequence, of tokens that `rng` gives; wants: those that `wanted` says, or all. */
static void add_chain(lm_script *s, int32_t sequence, int32_t from, int32_t n, uint64_t *rng,
                      bool (*wanted)(int32_t position))
{
    lm_part *p = lm_add_tree(s, sequence, n, n);
    int32_t kept = 0;
    if (!p) return;
    for (int32_t i = 0; i < n; i++) {
        lm_numbers(s, p->token)[i] = probe_below(rng, VOCABULARY);
        lm_numbers(s, p->parent)[i] = i - 1;
        if (wanted(from + i)) lm_numbers(s, p->want)[kept++] = i;
    }
    p->wants = kept;
}

/* Around the ends of pages, and the last of each 100. */
static bool near_an_end(int32_t position)
{
    for (int32_t end = 64; end <= LENGTH; end *= 2)
        if (position >= end - 2 && position <= end + 1) return true;
    return position % 100 == 99 || position == LENGTH - 1;
}

/* As a kernel takes a row at a time, or eight, or a tile. */
static bool near_a_row(int32_t row)
{
    return row % 64 < 2 || row % 64 > 62 || row % 37 == 0 || row >= TEXT - 2;
}

static void write_path(lm_script *s, uint64_t *rng)
{
    lm_add_load(s, 1, LENGTH, CHUNK, 0);
    for (int32_t at = 0; at < LENGTH; at += CHUNK) {
        lm_add_step(s, STEP_FORWARD);
        add_chain(s, 0, at, CHUNK, rng, near_an_end);
        lm_add_step(s, STEP_COMMIT);
        lm_add_part(s, 0, CHUNK - 1, 0);
    }
}

/* Branches on a prefix, beside a chain of another sequence. */
static void write_tree(lm_script *s, uint64_t *rng)
{
    lm_add_load(s, 2, 512, TREE_ROWS + 9, 5);
    lm_add_step(s, STEP_FORWARD);
    add_chain(s, 1, 0, TREE_PREFIX, rng, near_an_end);
    lm_add_step(s, STEP_COMMIT);
    lm_add_part(s, 1, TREE_PREFIX - 1, 0);
    lm_add_step(s, STEP_FORWARD);
    add_chain(s, 0, 0, 9, rng, near_an_end);
    lm_part *p = lm_add_tree(s, 1, TREE_ROWS, TREE_ROWS);
    for (int32_t i = 0; p && i < TREE_ROWS; i++) {
        lm_numbers(s, p->token)[i] = probe_below(rng, VOCABULARY);
        lm_numbers(s, p->parent)[i] = i < 3 || probe_below(rng, 4) == 0 ? probe_below(rng, i + 1) - 1 : i - 1 - i % 3;
        lm_numbers(s, p->want)[i] = TREE_ROWS - 1 - i;
    }
    lm_add_step(s, STEP_COMMIT);
    lm_add_part(s, 1, TREE_ROWS - 1, 0);
    lm_add_part(s, 0, -1, 0);
    lm_add_step(s, STEP_FORWARD);
    add_chain(s, 1, 0, 3, rng, near_an_end);
}

/* One text in one forward, and in several. */
static void write_prefill(lm_script *s, uint64_t *rng)
{
    const uint64_t text = probe_next(rng);
    lm_add_load(s, 2, TEXT + 1, TEXT, 9);
    *rng = text;
    lm_add_step(s, STEP_FORWARD);
    add_chain(s, 0, 0, TEXT, rng, near_a_row);
    *rng = text;
    for (int32_t at = 0, n = 257; at < TEXT; at += n) {
        n = TEXT - at < n ? TEXT - at : n;
        lm_add_step(s, STEP_FORWARD);
        add_chain(s, 1, at, n, rng, near_a_row);
        lm_add_step(s, STEP_COMMIT);
        lm_add_part(s, 1, n - 1, 0);
    }
    lm_add_step(s, STEP_COMMIT);
    lm_add_part(s, 0, TEXT - 1, 0);
    lm_add_step(s, STEP_FORWARD);
    for (int32_t i = 0; i < 2; i++) {
        *rng = text;
        add_chain(s, i, 0, 1, rng, near_a_row);
    }
}

/* A spine of every second row, from the first on, and a leaf beside each; all are wanted. */
enum { BUSH = 24 };
static void add_bush(lm_script *s, int32_t sequence, uint64_t *rng)
{
    lm_part *p = lm_add_tree(s, sequence, BUSH, BUSH);
    for (int32_t i = 0; p && i < BUSH; i++) {
        lm_numbers(s, p->token)[i] = probe_below(rng, VOCABULARY);
        lm_numbers(s, p->parent)[i] = i % 2 ? i - 1 : i - 2 < 0 ? -1 : i - 2;
        lm_numbers(s, p->want)[i] = i;
    }
}

/* Sequence 0 goes beyond an end of pages by a path of scattered rows, back, and beyond it again; the other one, which
 * is short, has a tree of its own beside it. */
static void turn(lm_script *s, int32_t end, uint64_t *rng)
{
    for (int32_t again = 0; again < 2; again++) {
        lm_add_step(s, STEP_FORWARD);
        add_bush(s, 0, rng);
        add_bush(s, 1, rng);
        lm_add_step(s, STEP_COMMIT);
        lm_add_part(s, 1, again ? 3 : -1, 0);
        lm_add_part(s, 0, BUSH - 2, 0);
        lm_add_step(s, STEP_FORWARD);
        add_chain(s, 0, end - 2, 2, rng, near_an_end);
        lm_add_step(s, STEP_TRUNCATE);
        lm_add_part(s, 0, again ? end + 1 : end - 3, 0);
    }
}

static void write_turns(lm_script *s, uint64_t *rng)
{
    lm_add_load(s, 2, TURNED, CHUNK, 3);
    lm_add_step(s, STEP_FORWARD);
    add_chain(s, 1, 0, TREE_PREFIX, rng, near_an_end);
    lm_add_step(s, STEP_COMMIT);
    lm_add_part(s, 1, TREE_PREFIX - 1, 0);
    for (int32_t at = 0, end = 256; end < TURNED; at = end + 1, end *= 2) {
        for (int32_t n; at < end - 5; at += n) {
            n = end - 5 - at < CHUNK ? end - 5 - at : CHUNK;
            lm_add_step(s, STEP_FORWARD);
            add_chain(s, 0, at, n, rng, near_an_end);
            lm_add_step(s, STEP_COMMIT);
            lm_add_part(s, 0, n - 1, 0);
        }
        turn(s, end, rng);
    }
}

static void add_reads(lm_script *s, int32_t sequence, int32_t n)
{
    lm_add_step(s, STEP_READ);
    for (int32_t at = 0; at < n; at++)
        if (near_an_end(at)) lm_add_part(s, sequence, at, 0);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    static void (*const writes[KINDS])(lm_script *, uint64_t *) = {write_path, write_tree, write_prefill, write_turns};
    static const int32_t sequence[KINDS] = {0, 1, 1, 0}, length[KINDS] = {LENGTH, TREE_PREFIX, TEXT, 1025};
    uint64_t rng = check_seed(x, c, 0);
    lm_script s = {0};
    writes[c->model.kind](&s, &rng);
    if (client_has(x->iut, OP_CACHE_READ)) add_reads(&s, sequence[c->model.kind], length[c->model.kind]);
    lm_drive(x, r, &forms[c->model.folder], &s);
    lm_script_free(&s);
}

const check check_lm_long = {
    .name = "lm.long",
    .clauses = "TREE-02 TREE-03 TREE-05 TREE-06 TREE-07 ARI-12 KV-01 KV-02 KV-03 LAY-06 LAY-17",
    .summary = "paths of thousands of positions and forwards of hundreds of rows are like short ones",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
