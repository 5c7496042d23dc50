/* llama_test.c - the transformer on the grid emulator against the reference, bit for bit:
 * whatever is done to one is done to the other, and logits, lengths, caches, refusals and their
 * texts are compared. Random models of every kind, random trees, several sequences, chains over
 * the ends of chunks, several orders of blocks and threads, work split among blocks and not. */
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/llama.h"
#include "tests/ref/suite.h"
#include "tests/ref/tiny_llama.h"

enum { ROWS = 150, SEQUENCES = 3 };

/* A model on both sides. */
typedef struct {
    tiny_llama *t;
    as_lm *ref, *gpu;
    int32_t V;
    float *wanted, *got; /* [logits][V] */
} both;

static ag_device device;
static as_error why;

static void ok(as_status s)
{
    ck_assert_msg(s == AS_OK, "%s", why.text);
}

static uint32_t below(uint64_t *seed, uint32_t n)
{
    return (uint32_t)((splitmix(seed) >> 32) % n);
}

static both start(int variant, int processors, int32_t positions, int32_t rows, uint32_t layout)
{
    both b = {.t = tiny_new(variant, 77 + (uint64_t)variant, 1)};
    emu_processors(processors);
    ok(ag_device_open(&device, 0, &why));
    b.ref =
        tiny_lm(b.t, &(as_llama_options){.positions = positions, .rows = rows, .threads = 1});
    ok(ag_llama(&device, &b.t->config, &b.t->weights,
                &(ag_llama_options){positions, rows, SEQUENCES, layout}, &b.gpu, &why));
    b.V = b.t->config.V;
    b.wanted = malloc(2 * ROWS * (size_t)b.V * sizeof *b.wanted);
    b.got = malloc(2 * ROWS * (size_t)b.V * sizeof *b.got);
    return b;
}

static void stop(both *b)
{
    as_lm_free(b->ref);
    as_lm_free(b->gpu);
    tiny_free(b->t);
    free(b->wanted);
    free(b->got);
    ag_device_close(&device);
}

/* The same status and, when it is an error, the same text. */
static as_status agree(as_status ref, as_status gpu, const as_error *text)
{
    ck_assert_msg(ref == gpu, "the reference says %d, the device %d: %s", ref, gpu, why.text);
    if (ref != AS_OK) ck_assert_str_eq(text->text, why.text);
    return ref;
}

/* ---- Everything on both sides. ----------------------------------------------------------- */

static as_status forward(both *b, as_forward *f, int32_t n)
{
    as_error text;
    size_t wants = 0;
    for (int32_t i = 0; i < n; wants += (size_t)f[i++].wants)
        f[i].logits = b->wanted + wants * (size_t)b->V;
    const as_status s = as_lm_forward(b->ref, f, n, &text);
    wants = 0;
    for (int32_t i = 0; i < n; wants += (size_t)f[i++].wants)
        f[i].logits = b->got + wants * (size_t)b->V;
    if (agree(s, as_lm_forward(b->gpu, f, n, &why), &text) != AS_OK) return s;
    for (size_t i = 0; i < wants * (size_t)b->V; i++)
        ck_assert_msg(memcmp(&b->got[i], &b->wanted[i], sizeof *b->got) == 0,
                      "want %zu, token %zu: %a, not %a", i / (size_t)b->V, i % (size_t)b->V,
                      (double)b->got[i], (double)b->wanted[i]);
    return AS_OK;
}

static as_status commit(both *b, int32_t sequence, const int32_t *path, int32_t n)
{
    as_error text;
    const as_status s = as_lm_commit(b->ref, sequence, path, n, &text);
    return agree(s, as_lm_commit(b->gpu, sequence, path, n, &why), &text);
}

static as_status truncate_to(both *b, int32_t sequence, int32_t length)
{
    as_error text;
    const as_status s = as_lm_truncate(b->ref, sequence, length, &text);
    return agree(s, as_lm_truncate(b->gpu, sequence, length, &why), &text);
}

static int32_t open_one(both *b)
{
    int32_t ref, gpu;
    ok(as_lm_open(b->ref, &ref, &why));
    ok(as_lm_open(b->gpu, &gpu, &why));
    ck_assert_int_eq(ref, gpu);
    return gpu;
}

static void check_cache(both *b, int32_t sequence)
{
    enum { MOST = 64 };
    const size_t n = (size_t)(b->t->config.kv_heads * b->t->config.head_dim);
    float k[2][MOST], v[2][MOST];
    const int32_t length = as_lm_length(b->ref, sequence);
    ck_assert_int_eq(as_lm_length(b->gpu, sequence), length);
    for (int32_t l = 0; l < b->t->config.layers; l++)
        for (int32_t p = 0; p < length; p++) {
            ok(as_llama_cache_read(b->ref, sequence, l, p, k[0], v[0], &why));
            ok(ag_llama_cache_read(b->gpu, sequence, l, p, k[1], v[1], &why));
            ck_assert_msg(memcmp(k[0], k[1], n * sizeof *k[0]) == 0 &&
                              memcmp(v[0], v[1], n * sizeof *v[0]) == 0,
                          "layer %d, position %d", (int)l, (int)p);
        }
}

static void poison(both *b)
{
    as_llama_cache_poison(b->ref);
    ok(ag_llama_cache_poison(b->gpu, &why));
}

/* ---- Chains. ----------------------------------------------------------------------------- */

/* A chain of n, its rows from `want` on wanted; the first `keep` are committed. */
static void chain(both *b, int32_t sequence, uint64_t *seed, int32_t n, int32_t want,
                  int32_t keep)
{
    as_row row[ROWS];
    int32_t each[ROWS];
    for (int32_t i = 0; i < n; i++) {
        row[i] = (as_row){(int32_t)below(seed, (uint32_t)b->V), i - 1};
        each[i] = i;
    }
    as_forward f = {sequence, n, n - want, row, each + want, NULL};
    ck_assert_int_eq(forward(b, &f, 1), AS_OK);
    ck_assert_int_eq(commit(b, sequence, each, keep), AS_OK);
}

/* In pieces that end before, at and behind the ends of chunks, and longer than a tile. */
START_TEST(chains)
{
    static const int32_t piece[] = {60, 3, 1, 1, 1, 5, 64, 1, 129, 2};
    const int32_t pieces = _i == TINY_WIDE ? 5 : (int32_t)(sizeof piece / sizeof *piece);
    both b = start(_i, _i % 3 == 0 ? 1 : _i % 3 == 1 ? 4 : 40, 300, ROWS, 0);
    const int32_t s = open_one(&b);
    uint64_t seed = (uint64_t)_i;
    for (int32_t i = 0; i < pieces; i++) {
        emu_order((uint64_t)(i + _i) % 4);
        chain(&b, s, &seed, piece[i], piece[i] > 10 ? piece[i] - 10 : 0, piece[i]);
    }
    check_cache(&b, s);
    stop(&b);
}
END_TEST

/* ---- Random lives. ----------------------------------------------------------------------- */

typedef struct {
    as_row row[ROWS];
    int32_t want[ROWS], parent[ROWS];
    as_forward f;
} share;

/* Up to n rows: mostly along a chain, some branching off it. */
static void random_share(share *x, const both *b, uint64_t *seed, int32_t sequence, int32_t n)
{
    x->f =
        (as_forward){sequence, (int32_t)below(seed, (uint32_t)n + 1), 0, x->row, x->want, NULL};
    for (int32_t r = 0; r < x->f.rows; r++) {
        const int32_t any = (int32_t)below(seed, (uint32_t)r + 1) - 1;
        const int32_t parent = below(seed, 8) ? r - 1 : any;
        x->row[r] = (as_row){(int32_t)below(seed, (uint32_t)b->V), parent};
        x->parent[r] = parent;
    }
    const int32_t wants = x->f.rows ? (int32_t)below(seed, 4) : 0;
    while (x->f.wants < wants)
        x->want[x->f.wants++] = (int32_t)below(seed, (uint32_t)x->f.rows);
}

/* Commits the path to some row. */
static void random_commit(both *b, const share *x, uint64_t *seed)
{
    int32_t path[ROWS], n = 0, first = ROWS;
    int32_t row = x->f.rows ? (int32_t)below(seed, (uint32_t)x->f.rows + 1) - 1 : -1;
    for (; row >= 0; row = x->parent[row], n++) path[--first] = row;
    if (below(seed, 10) == 0 && n > 1) path[first] = path[first + 1]; /* refused */
    commit(b, x->f.sequence, path + first, n);
}

static void random_forward(both *b, uint64_t *seed, const int32_t *sequence, int32_t open,
                           int32_t rows)
{
    static share x[SEQUENCES];
    as_forward f[SEQUENCES];
    int32_t n = 1 + (int32_t)below(seed, (uint32_t)open),
            from = (int32_t)below(seed, SEQUENCES);
    for (int32_t i = 0; i < n; i++) {
        random_share(&x[i], b, seed, sequence[(i + from) % open], rows / n);
        f[i] = x[i].f;
    }
    const as_status s = forward(b, f, n); /* may be beyond the positions */
    for (int32_t i = 0; s == AS_OK && i < n; i++)
        if (below(seed, 6)) random_commit(b, &x[i], seed);
}

START_TEST(random_lives)
{
    const int variant = _i % 5;
    both b = start(variant, _i % 2 ? 40 : 4, 210, ROWS, (uint32_t)_i);
    int32_t sequence[SEQUENCES];
    uint64_t seed = 1000 + (uint64_t)_i;
    for (int i = 0; i < SEQUENCES; i++) sequence[i] = open_one(&b);
    for (int step = 0; step < 24; step++) {
        const uint32_t what = below(&seed, 10);
        const int32_t s = sequence[below(&seed, SEQUENCES)];
        emu_order(splitmix(&seed) % 6);
        if (what == 0) {
            as_lm_close(b.ref, s);
            as_lm_close(b.gpu, s);
            ck_assert_int_eq(open_one(&b), s);
        } else if (what == 1)
            truncate_to(&b, s, (int32_t)below(&seed, (uint32_t)as_lm_length(b.ref, s) + 1));
        else if (what == 2)
            poison(&b);
        else
            random_forward(&b, &seed, sequence, SEQUENCES, what < 5 ? ROWS : 20);
    }
    for (int i = 0; i < SEQUENCES; i++) check_cache(&b, sequence[i]);
    stop(&b);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("llama");
    tcase_add_loop_test(tests, chains, 0, TINY_VARIANTS);
    tcase_add_loop_test(tests, random_lives, 0, 10);
    return suite_main("gpu llama", tests);
}
