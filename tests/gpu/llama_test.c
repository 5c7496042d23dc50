/* llama_test.c - the transformer on the grid emulator against the reference, bit for bit:
 * whatever is done to one is done to the other, and logits, lengths, caches, refusals and their
 * texts are compared. Random models of every kind, random trees, several sequences, chains over
 * the ends of chunks, several orders of blocks and threads, work split among blocks and not. */
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/lm/llama.h"
#include "tests/gpu/on_device.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"
#include "tests/ref/tiny_llama.h"

enum { ROWS = 150, SEQUENCES = 3 };

/* A model on both sides. */
typedef struct {
    tiny_llama *t;
    as_lm *ref, *gpu;
    int32_t V;
    float *wanted, *got; /* [logits][V] */
} both;

/* The layout seed also decides on the tile, and on how much of it attention takes at a time. */
static both start(int variant, int processors, int32_t positions, int32_t rows, uint32_t layout)
{
    both b = {.t = tiny_new(variant, 77 + (uint64_t)variant, 1)};
    emu_processors(processors);
    ok(ag_device_open(&device, 0, &why));
    b.ref =
        tiny_lm(b.t, &(as_llama_options){.positions = positions, .rows = rows, .threads = 1});
    ok(ag_llama(&device, &b.t->config, &b.t->weights,
                &(ag_llama_options){.positions = positions,
                                    .rows = rows,
                                    .sequences = SEQUENCES,
                                    .layout_seed = layout,
                                    .tile = layout % 3 ? (int32_t)layout : 0,
                                    .attended = layout % 2 ? (int32_t)layout : 0},
                &b.gpu, &why));
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
        row[i] = (as_row){below(seed, b->V), i - 1};
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
    both b = start(_i, _i % 3 == 0 ? 1 : _i % 3 == 1 ? 4 : 40, 0, ROWS, 0);
    const int32_t s = open_one(&b);
    uint64_t seed = (uint64_t)_i;
    for (int32_t i = 0; i < pieces; i++) {
        emu_order((uint64_t)(i + _i) % 4);
        const int32_t want = piece[i] > 10 && piece[i] < 100 ? piece[i] - 10 : 0;
        chain(&b, s, &seed, piece[i], want, piece[i]);
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
    x->f = (as_forward){sequence, below(seed, n + 1), 0, x->row, x->want, NULL};
    for (int32_t r = 0; r < x->f.rows; r++) {
        const int32_t any = below(seed, r + 1) - 1;
        const int32_t parent = below(seed, 8) ? r - 1 : any;
        x->row[r] = (as_row){below(seed, b->V), parent};
        x->parent[r] = parent;
    }
    const int32_t wants = x->f.rows ? below(seed, 4) : 0;
    while (x->f.wants < wants) x->want[x->f.wants++] = below(seed, x->f.rows);
}

/* Commits the path to some row. */
static void random_commit(both *b, const share *x, uint64_t *seed)
{
    int32_t path[ROWS], n = 0, first = ROWS;
    int32_t row = x->f.rows ? below(seed, x->f.rows + 1) - 1 : -1;
    for (; row >= 0; row = x->parent[row], n++) path[--first] = row;
    if (below(seed, 10) == 0 && n > 1) path[first] = path[first + 1]; /* refused */
    commit(b, x->f.sequence, path + first, n);
}

static void random_forward(both *b, uint64_t *seed, const int32_t *sequence, int32_t open,
                           int32_t rows)
{
    static share x[SEQUENCES];
    as_forward f[SEQUENCES];
    int32_t n = 1 + below(seed, open), from = below(seed, SEQUENCES);
    for (int32_t i = 0; i < n; i++) {
        random_share(&x[i], b, seed, sequence[(i + from) % open], rows / n);
        f[i] = x[i].f;
    }
    const as_status s = forward(b, f, n); /* may be beyond the positions */
    for (int32_t i = 0; s == AS_OK && i < n; i++)
        if (below(seed, 6)) random_commit(b, &x[i], seed);
}

/* The rows of a sequence wait while others have their forwards. */
START_TEST(rows_wait)
{
    static share x[2];
    both b = start(1, 4, 210, ROWS, 5);
    uint64_t seed = 12;
    const int32_t s[] = {open_one(&b), open_one(&b)};
    for (int step = 0; step < 6; step++) {
        for (int i = 0; i < 2; i++) {
            do random_share(&x[i], &b, &seed, s[i], 12);
            while (x[i].f.rows < 3);
            ck_assert_int_eq(forward(&b, &x[i].f, 1), AS_OK);
        }
        for (int i = 0; i < 2; i++) random_commit(&b, &x[i], &seed);
    }
    for (int i = 0; i < 2; i++) check_cache(&b, s[i]);
    stop(&b);
}
END_TEST

START_TEST(random_lives)
{
    const int variant = _i % 5;
    both b = start(variant, _i % 2 ? 40 : 4, 210, ROWS, (uint32_t)_i);
    int32_t sequence[SEQUENCES];
    uint64_t seed = 1000 + (uint64_t)_i;
    for (int i = 0; i < SEQUENCES; i++) sequence[i] = open_one(&b);
    for (int step = 0; step < 24; step++) {
        const int32_t what = below(&seed, 10);
        const int32_t s = sequence[below(&seed, SEQUENCES)];
        emu_order(below(&seed, 6));
        if (what == 0) {
            as_lm_close(b.ref, s);
            as_lm_close(b.gpu, s);
            ck_assert_int_eq(open_one(&b), s);
        } else if (what == 1)
            truncate_to(&b, s, below(&seed, as_lm_length(b.ref, s) + 1));
        else if (what == 2)
            poison(&b);
        else
            random_forward(&b, &seed, sequence, SEQUENCES, what < 5 ? ROWS : 20);
    }
    for (int i = 0; i < SEQUENCES; i++) check_cache(&b, sequence[i]);
    stop(&b);
}
END_TEST

/* ---- Staying on the device. -------------------------------------------------------------- */

/* A step whose rows lie on the device, scattered over the sequences with absent ones between,
 * against the same rows as shares; then a commit and a truncation that only the device sees. */
typedef struct {
    int32_t rows, wants, token[ROWS], parent[ROWS], sequence[ROWS], want[ROWS];
    int32_t place[ROWS]; /* of a row in its share */
    share x[SEQUENCES];
} scattered;

static void scatter(scattered *s, const both *b, uint64_t *seed, int32_t rows)
{
    int32_t last[SEQUENCES] = {-1, -1, -1};
    s->rows = rows;
    s->wants = 0;
    for (int32_t i = 0; i < SEQUENCES; i++)
        s->x[i].f = (as_forward){i, 0, 0, s->x[i].row, s->x[i].want, NULL};
    for (int32_t n = 0; n < rows; n++) {
        const int32_t i = below(seed, SEQUENCES + 1) - 1;
        s->sequence[n] = i;
        s->token[n] = i < 0 ? -9 : below(seed, b->V);
        if (i < 0) continue;
        share *x = &s->x[i];
        s->place[n] = x->f.rows++;
        s->parent[n] = below(seed, 6) || last[i] < 0 ? last[i] : s->parent[last[i]];
        x->parent[s->place[n]] = s->parent[n] < 0 ? -1 : s->place[s->parent[n]];
        x->row[s->place[n]] = (as_row){s->token[n], x->parent[s->place[n]]};
        last[i] = n;
    }
    for (int32_t i = 0; i < SEQUENCES; i++) /* wants in the order of the shares */
        for (int32_t n = 0; n < rows; n++) {
            if (s->sequence[n] != i || below(seed, 3)) continue;
            s->want[s->wants++] = n;
            s->x[i].want[s->x[i].f.wants++] = s->place[n];
        }
}

static void step_device(both *b, const scattered *s)
{
    const size_t n = (size_t)s->rows * sizeof(int32_t);
    void *at[] = {on_device(s->token, n), on_device(s->parent, n), on_device(s->sequence, n),
                  on_device(s->want, n),
                  on_device(b->got, 2 * ROWS * (size_t)b->V * sizeof *b->got)};
    ok(ag_llama_step(
        b->gpu,
        &(ag_step){s->rows, at[0], at[1], at[2], 210, SEQUENCES, s->wants, at[3], at[4]},
        &why));
    ok(ag_download(&device, b->got, at[4], (size_t)s->wants * (size_t)b->V * sizeof *b->got,
                   &why));
    for (int i = 0; i < 5; i++) ag_free(at[i]);
}

static void step_reference(both *b, scattered *s)
{
    as_forward f[SEQUENCES];
    float *to = b->wanted;
    for (int32_t i = 0; i < SEQUENCES; i++) {
        f[i] = s->x[i].f;
        f[i].logits = to;
        to += (size_t)f[i].wants * (size_t)b->V;
    }
    ok(as_lm_forward(b->ref, f, SEQUENCES, &why));
}

/* The path to the last row of each sequence. */
static void commit_both(both *b, const scattered *s)
{
    int32_t sequence[SEQUENCES], count[SEQUENCES], row[SEQUENCES][ROWS];
    for (int32_t i = 0; i < SEQUENCES; i++) {
        int32_t last = -1, path[ROWS], n = 0;
        for (int32_t r = 0; r < s->rows; r++)
            if (s->sequence[r] == i) last = r;
        for (int32_t r = last; r >= 0; r = s->parent[r]) n++;
        sequence[i] = n ? i : -1;
        count[i] = n;
        for (int32_t r = last; r >= 0; r = s->parent[r]) {
            row[i][--n] = r;
            path[n] = s->place[r];
        }
        ok(as_lm_commit(b->ref, i, path, count[i], &why));
    }
    const ag_paths p = {SEQUENCES, ROWS, on_device(sequence, sizeof sequence),
                        on_device(count, sizeof count), on_device(row, sizeof row)};
    ok(ag_llama_commit(b->gpu, &p, &why));
    ok(ag_wait(&device, &why));
    ag_free((void *)p.sequence), ag_free((void *)p.rows), ag_free((void *)p.row);
}

START_TEST(on_the_device)
{
    static scattered s;
    both b = start(_i, 4, 210, ROWS, 9);
    uint64_t seed = 3 + (uint64_t)_i;
    for (int32_t i = 0; i < SEQUENCES; i++) {
        ck_assert_int_eq(open_one(&b), i);
        ok(ag_llama_reserve(b.gpu, i, 210, &why));
    }
    for (int step = 0; step < 5; step++) {
        emu_order((uint64_t)step);
        scatter(&s, &b, &seed, step == 2 ? ROWS : 30);
        step_device(&b, &s);
        step_reference(&b, &s);
        ck_assert_mem_eq(b.got, b.wanted, (size_t)s.wants * (size_t)b.V * sizeof *b.got);
        commit_both(&b, &s);
        const int32_t length = as_lm_length(b.ref, 1) * 2 / 3;
        ok(as_lm_truncate(b.ref, 1, length, &why));
        ok(ag_upload(&device, ag_llama_lengths(b.gpu) + 1, &length, sizeof length, &why));
    }
    ck_assert_int_eq(as_lm_length(b.gpu, 0), 0);
    ok(ag_llama_refresh(b.gpu, &why));
    for (int32_t i = 0; i < SEQUENCES; i++) check_cache(&b, i);
    chain(&b, 1, &seed, 20, 0, 20);
    stop(&b);
}
END_TEST

/* ---- Refusals. --------------------------------------------------------------------------- */

#define SAYS(status, call, part)                                                               \
    do {                                                                                       \
        ck_assert_int_eq(call, status);                                                        \
        ck_assert_msg(strstr(why.text, part) != NULL, "it says: %s", why.text);                \
    } while (0)

/* What the reference refuses is refused in the same words, and forgets the same rows. */
START_TEST(refusals)
{
    static const as_row good[] = {{1, -1}, {1, 0}, {1, 1}, {1, 2}, {1, -1}, {1, -1}, {1, -1}};
    static const as_row token[] = {{33, -1}}, parent[] = {{1, 5}};
    const int32_t want = 2, zero = 0;
    both b = start(0, 4, 70, 6, 0);
    uint64_t seed = 1;
    const int32_t s = open_one(&b), other = open_one(&b);
    as_forward wrong[][2] = {{{s, 1, 0, token, NULL, NULL}},
                             {{s, 1, 0, parent, NULL, NULL}},
                             {{s, 2, 1, good, &want, NULL}},
                             {{s, -1, 0, good, NULL, NULL}},
                             {{7, 1, 0, good, NULL, NULL}},
                             {{s, 7, 0, good, NULL, NULL}},
                             {{s, 3, 0, good, NULL, NULL}, {s, 3, 0, good, NULL, NULL}},
                             {{s, 4, 0, good, NULL, NULL}, {other, 3, 0, good, NULL, NULL}},
                             {{s, 4, 0, good, NULL, NULL}}};
    const int32_t last = sizeof wrong / sizeof *wrong - 1;
    for (int32_t i = 0; i < 68; i += 4)
        chain(&b, s, &seed, 4, 4, 4);     /* then none has room for */
    for (int32_t i = 0; i <= last; i++) { /* rows 3 deep */
        as_forward two[] = {{s, 2, 0, good, NULL, NULL}, {other, 2, 0, good, NULL, NULL}};
        ck_assert_int_eq(forward(&b, two, 2), AS_OK);
        ck_assert_int_ne(forward(&b, wrong[i], i == 6 || i == 7 ? 2 : 1), AS_OK);
        ck_assert_int_eq(commit(&b, s, &zero, 1), i == 4 ? AS_OK : AS_BAD_INPUT);
        ck_assert_int_eq(commit(&b, other, &want, 1), AS_BAD_INPUT);
        ck_assert_int_eq(commit(&b, other, &zero, 1), i == 7 ? AS_BAD_INPUT : AS_OK);
        ck_assert_int_eq(truncate_to(&b, s, 68), AS_OK);
        ck_assert_int_eq(truncate_to(&b, s, 69), AS_BAD_INPUT);
    }
    ck_assert_int_eq(truncate_to(&b, 9, 0), AS_BAD_INPUT);
    ck_assert_int_eq(commit(&b, 9, &zero, 1), AS_BAD_INPUT);
    ck_assert_int_eq(forward(&b, &(as_forward){s, 0, 0, NULL, NULL, NULL}, 1), AS_OK);
    chain(&b, s, &seed, 2, 0, 2);
    check_cache(&b, s);
    check_cache(&b, other);
    as_lm_close(b.gpu, 9);
    ck_assert_int_eq(as_lm_length(b.gpu, 9), -1);
    stop(&b);
}
END_TEST

START_TEST(refusals_of_its_own)
{
    both b = start(0, 4, 70, 6, 0);
    float k[64];
    int32_t s, more;
    for (int i = 0; i < SEQUENCES; i++) s = open_one(&b);
    SAYS(AS_LIMIT, as_lm_open(b.gpu, &more, &why), "more than 3 sequences");
    SAYS(AS_BAD_INPUT, ag_llama_cache_read(b.gpu, s, 0, 0, k, k, &why), "position 0");
    SAYS(AS_BAD_INPUT, ag_llama_cache_read(b.gpu, s, 2, 0, k, k, &why), "layer 2");
    SAYS(AS_BAD_INPUT, ag_llama_cache_read(b.gpu, 8, 0, 0, k, k, &why), "not open");
    SAYS(AS_LIMIT, ag_llama_reserve(b.gpu, s, 71, &why), "71 positions; the capacity is 70");
    SAYS(AS_BAD_INPUT, ag_llama_reserve(b.gpu, 8, 7, &why), "not open");
    SAYS(AS_LIMIT, ag_llama_step(b.gpu, &(ag_step){.rows = 7, .positions = 9}, &why), "6 rows");
    SAYS(AS_LIMIT, ag_llama_step(b.gpu, &(ag_step){.rows = 6, .positions = 71}, &why),
         "70 pos");
    SAYS(AS_BAD_INPUT, ag_llama_step(b.gpu, &(ag_step){.rows = 0, .positions = 9}, &why),
         "0 r");
    ck_assert_int_eq(ag_llama_weight_bytes(b.gpu) < as_llama_weight_bytes(b.ref), 1);
    stop(&b);
}
END_TEST

/* A model that cannot be made says why, as the reference does. */
START_TEST(bad_models)
{
    static const unsigned char nan[4] = {0, 0, 0xc0, 0x7f};
    tiny_llama *t = tiny_new(0, 1, 1);
    ag_llama_options o = {.rows = 4, .sequences = 1};
    as_llama_config c = t->config;
    as_lm *lm;
    ok(ag_device_open(&device, 0, &why));
    c.kv_heads = 3;
    SAYS(AS_BAD_INPUT, ag_llama(&device, &c, &t->weights, &o, &lm, &why), "no multiple of");
    c = t->config, c.tied = 0, c.draft_V = 5;
    SAYS(AS_BAD_INPUT, ag_llama(&device, &c, &t->weights, &o, &lm, &why), "draft vocabulary of 5 ids is not supp");
    ck_assert_ptr_null(lm);
    o.rows = 0;
    SAYS(AS_BAD_INPUT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why), "0 rows");
    o.rows = 4, o.sequences = 0;
    SAYS(AS_BAD_INPUT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why), "0 seq");
    o.sequences = 1, o.tile = 129;
    SAYS(AS_BAD_INPUT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why),
         "tiles of 129");
    o.tile = 0, o.attended = -1;
    SAYS(AS_BAD_INPUT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why),
         "attention of -1 rows");
    o.attended = 0, o.positions = 301;
    SAYS(AS_BAD_INPUT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why), "301 pos");
    o.positions = 0;
    device.shared = 1000;
    SAYS(AS_LIMIT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why), "heads of 4");
    device.shared = 100000;
    memcpy((char *)t->layer[1].up.data + 4 * (2 * t->config.hidden + 3), nan, 4);
    SAYS(AS_BAD_INPUT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why),
         "layer 1, up: weight at row 2, column 3");
    memcpy((char *)t->layer[0].norm_mlp.data + 4 * 5, nan, 4);
    SAYS(AS_BAD_INPUT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why),
         "layer 0, mlp norm: weight at row 0, column 5");
    t->layer[0].norm_attention.data = NULL;
    SAYS(AS_BAD_INPUT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why),
         "layer 0, attention norm: there are no weights");
    t->weights.embedding.data = NULL;
    SAYS(AS_BAD_INPUT, ag_llama(&device, &t->config, &t->weights, &o, &lm, &why),
         "embedding: there are no weights");
    tiny_free(t);
    ag_device_close(&device);
}
END_TEST

/* Queries, keys and values, gate and up, each stored in its own way: the values are the same.
 */
START_TEST(mixed_storage)
{
    static const char *const name[] = {"self_attn.k_proj", "mlp.up_proj"};
    both b = start(2, 4, 100, 50, 0);
    uint64_t seed = 8;
    as_lm_free(b.gpu);
    for (int i = 0; i < 2; i++) {
        char full[80];
        snprintf(full, sizeof full, "model.layers.1.%s.weight", name[i]);
        *(i ? &b.t->layer[1].up : &b.t->layer[1].k) =
            (as_tensor){tiny_find(b.t, full)->value, AS_F32};
    }
    ok(ag_llama(&device, &b.t->config, &b.t->weights,
                &(ag_llama_options){.positions = 100, .rows = 50, .sequences = SEQUENCES},
                &b.gpu, &why));
    chain(&b, open_one(&b), &seed, 40, 0, 40);
    stop(&b);
}
END_TEST

/* ---- Made on the device. ------------------------------------------------------------------
 */

/* What is to be filled, in the order that is promised: parts of one matrix stand together. */
typedef struct {
    const tiny_llama *t;
    int call;
} making;

static const char *const outer[] = {"model.embed_tokens.weight", "model.norm.weight",
                                    "lm_head.weight"};
static const char *const inner[][3] = {
    {"input_layernorm.weight"},
    {"post_attention_layernorm.weight"},
    {"self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight"},
    {"self_attn.o_proj.weight"},
    {"mlp.gate_proj.weight", "mlp.up_proj.weight"},
    {"mlp.down_proj.weight"},
    {"self_attn.q_proj.bias", "self_attn.k_proj.bias", "self_attn.v_proj.bias"},
    {"self_attn.q_norm.weight"},
    {"self_attn.k_norm.weight"}};

/* The parts of what call number `call` fills; a model has no tensors for some of the calls. */
static int parts_of(const making *x, int call, const tiny_tensor *part[3])
{
    enum { BIASES = 6, EACH = 9 };
    const int before = x->t->config.tied ? 2 : 3;
    int n = 0;
    if (call < before) {
        part[n++] = tiny_find(x->t, outer[call]);
        return n;
    }
    const int which = (call - before) % EACH;
    if ((which == BIASES && !x->t->config.qkv_bias) ||
        (which > BIASES && !x->t->config.qk_norm))
        return 0;
    for (; n < 3 && inner[which][n]; n++) {
        char name[80];
        snprintf(name, sizeof name, "model.layers.%d.%s", (call - before) / EACH,
                 inner[which][n]);
        part[n] = tiny_find(x->t, name);
    }
    return n;
}

/* The rows of a part into panels, from output `first` on. */
static void pack_rows(const tiny_tensor *t, int32_t first, unsigned char *panels)
{
    const size_t size = as_storage_size(t->storage), K = (size_t)t->columns;
    for (int32_t r = 0; r < t->rows; r++)
        for (size_t k = 0; k < K; k++) {
            const size_t n = (size_t)(first + r);
            memcpy(panels + ((n / AS_PANEL * K + k) * AS_PANEL + n % AS_PANEL) * size,
                   t->bytes + ((size_t)r * K + k) * size, size);
        }
}

/* Ends of panels and vectors hold other numbers. */
static as_status fill(void *with, void *at, size_t bytes, as_storage storage, as_error *e)
{
    making *x = with;
    const tiny_tensor *part[3];
    int n;
    while ((n = parts_of(x, x->call++, part)) == 0)
        ;
    unsigned char *host = malloc(bytes);
    memset(host, 0x3c, bytes);
    int32_t first = 0;
    for (int i = 0; i < n; i++) {
        const int32_t rows = part[i]->rows, columns = part[i]->columns;
        ck_assert_int_eq(storage, rows ? part[i]->storage : AS_F32);
        if (rows)
            pack_rows(part[i], first, host);
        else
            memcpy(host + 4 * (size_t)first, part[i]->value, 4 * (size_t)columns);
        first += rows ? rows : columns;
    }
    const size_t all = (size_t)(part[0]->rows ? (first + 31) / 32 * 32 : (first + 3) / 4 * 4);
    ck_assert_uint_eq(bytes, part[0]->rows
                                 ? all * (size_t)part[0]->columns * as_storage_size(storage)
                                 : all * 4);
    const as_status s = ag_upload(&device, at, host, bytes, e);
    free(host);
    return s;
}

/* Weights made where they lie are those of the host. */
START_TEST(made)
{
    static const int variant[] = {0, 1, 3, TINY_WIDE};
    both b = start(variant[_i], 4, 100, 50, 0);
    uint64_t seed = 9;
    making x = {b.t, 0};
    const ag_llama_maker maker = {b.t->layer[0].q.storage, fill, &x};
    const int64_t bytes = ag_llama_weight_bytes(b.gpu);
    as_lm_free(b.gpu);
    ok(ag_llama_make(&device, &b.t->config, &maker,
                     &(ag_llama_options){.positions = 100, .rows = 50, .sequences = SEQUENCES},
                     &b.gpu, &why));
    ck_assert_int_eq(ag_llama_weight_bytes(b.gpu), bytes);
    chain(&b, open_one(&b), &seed, 40, 0, 40);
    stop(&b);
}
END_TEST

static as_status refuse(void *with, void *at, size_t bytes, as_storage storage, as_error *e)
{
    int *calls = with;
    (void)at, (void)bytes, (void)storage;
    return --*calls > 0 ? AS_OK : as_fail(e, AS_DEVICE, "not today");
}

START_TEST(not_made)
{
    tiny_llama *t = tiny_new(0, 5, 1);
    const ag_llama_options o = {.positions = 100, .rows = 50, .sequences = SEQUENCES};
    as_lm *lm;
    int calls = 1;
    const ag_llama_maker maker = {AS_F32, refuse, &calls};
    emu_processors(4);
    ok(ag_device_open(&device, 0, &why));
    ck_assert_int_eq(ag_llama_make(&device, &t->config, &maker, &o, &lm, &why), AS_DEVICE);
    ck_assert_str_eq(why.text, "embedding: not today");
    ck_assert_ptr_null(lm);
    calls = 6;
    ck_assert_int_eq(ag_llama_make(&device, &t->config, &maker, &o, &lm, &why), AS_DEVICE);
    ck_assert_str_eq(why.text, "layer 0, q, k and v: not today");
    tiny_free(t);
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("llama");
    tcase_add_loop_test(tests, chains, 0, TINY_VARIANTS);
    tcase_add_test(tests, rows_wait);
    tcase_add_loop_test(tests, random_lives, 0, scaled(10));
    tcase_add_loop_test(tests, on_the_device, 0, 5);
    tcase_add_test(tests, refusals);
    tcase_add_test(tests, refusals_of_its_own);
    tcase_add_test(tests, bad_models);
    tcase_add_test(tests, mixed_storage);
    tcase_add_loop_test(tests, made, 0, 4);
    tcase_add_test(tests, not_made);
    return suite_main("gpu llama", tests);
}
