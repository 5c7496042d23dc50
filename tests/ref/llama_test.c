/* llama_test.c - the transformer: its bits against the letter of chapters 1 and 2; that they
 * depend on a row's path alone, whatever else is in the forward, was committed, or was once
 * there; the cache; limits and refusals. */
#include <math.h>
#include <string.h>

#include "ref/num/dense.h"
#include "ref/num/level.h"
#include "tests/random.h"
#include "tests/ref/no_memory.h"
#include "tests/ref/suite.h"
#include "tests/ref/tiny_llama.h"

enum { PATH = 150, ROWS = 400 };

static const as_llama_options plain = {.positions = 0, .rows = ROWS, .threads = 1};

/* n random tokens. */
static void random_tokens(uint64_t *seed, int32_t V, int32_t *token, int32_t n)
{
    for (int32_t i = 0; i < n; i++) token[i] = below(seed, V);
}

static int32_t open_one(as_lm *lm)
{
    int32_t s;
    ck_assert_int_eq(as_lm_open(lm, &s, NULL), AS_OK);
    return s;
}

/* Forward of a chain of n, all its rows wanted (or none); then commits the first `commit`. */
static void chain(as_lm *lm, int32_t sequence, const int32_t *token, int32_t n, float *logits,
                  int32_t commit)
{
    as_row row[ROWS];
    int32_t each[ROWS];
    as_error e = {.text = ""};
    for (int32_t i = 0; i < n; i++) {
        row[i] = (as_row){token[i], i - 1};
        each[i] = i;
    }
    const as_forward f = {sequence, n, logits ? n : 0, row, each, logits};
    ck_assert_msg(as_lm_forward(lm, &f, 1, &e) == AS_OK, "%s", e.text);
    ck_assert_int_eq(as_lm_commit(lm, sequence, each, commit, NULL), AS_OK);
}

static float *new_floats(size_t n)
{
    return malloc(n * sizeof(float));
}

static int same(const float *a, const float *b, int32_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

/* Whether the cache of a sequence holds the bits of keys and values [layers][n][kv]. */
static void check_cache(as_lm *lm, const tiny_llama *t, int32_t sequence, int32_t n,
                        const float *keys, const float *values)
{
    const int32_t kv = t->config.kv_heads * t->config.head_dim;
    float k[64], v[64];
    for (int32_t l = 0; l < t->config.layers; l++)
        for (int32_t p = 0; p < as_lm_length(lm, sequence); p++) {
            const size_t at = ((size_t)l * (size_t)n + (size_t)p) * (size_t)kv;
            ck_assert_int_eq(as_llama_cache_read(lm, sequence, l, p, k, v, NULL), AS_OK);
            ck_assert_msg(same(k, keys + at, kv) && same(v, values + at, kv),
                          "layer %d, position %d", (int)l, (int)p);
        }
}

/* ---- (a) By the letter. ------------------------------------------------------------------ */

/* All at once, one at a time, and in pieces: the logits of every position and the cache. */
START_TEST(the_letter)
{
    static const int32_t piece[] = {PATH, 1, 7, 64, 63, 65};
    tiny_llama *t = tiny_new(_i, (uint64_t)_i + 1, 1);
    const int32_t n = t->config.hidden > 100 ? 70 : PATH, V = t->config.V;
    const size_t cache = (size_t)t->config.layers * (size_t)n * 64;
    int32_t token[PATH];
    uint64_t seed = 9;
    float *due = new_floats((size_t)n * (size_t)V), *got = new_floats((size_t)n * (size_t)V);
    float *keys = new_floats(cache), *values = new_floats(cache);
    random_tokens(&seed, V, token, n);
    tiny_path(t, token, n, due, keys, values);
    for (int32_t i = 0; i < n * V; i++) ck_assert(isfinite(due[i]));
    as_lm *lm = tiny_lm(t, &plain);
    const int32_t s = open_one(lm);
    for (size_t i = 0; i < sizeof piece / sizeof *piece; i++) {
        ck_assert_int_eq(as_lm_truncate(lm, s, 0, NULL), AS_OK);
        for (int32_t p = 0; p < n; p += piece[i]) {
            const int32_t m = n - p < piece[i] ? n - p : piece[i];
            chain(lm, s, token + p, m, got + (size_t)p * (size_t)V, m);
        }
        for (int32_t p = 0; p < n; p++)
            ck_assert_msg(same(got + (size_t)p * (size_t)V, due + (size_t)p * (size_t)V, V),
                          "pieces of %d, position %d", (int)piece[i], (int)p);
        check_cache(lm, t, s, n, keys, values);
    }
    as_lm_free(lm);
    tiny_free(t);
    free(due), free(got), free(keys), free(values);
}
END_TEST

/* A prompt of several tiles in one forward, against the letter at its end; then a step. */
START_TEST(long_prompt)
{
    enum { LONG = 299 };
    tiny_llama *t = tiny_new(0, 5, 1);
    const int32_t V = t->config.V;
    int32_t token[LONG];
    uint64_t seed = 3;
    float *due = new_floats(LONG * (size_t)V), *got = new_floats(LONG * (size_t)V);
    random_tokens(&seed, V, token, LONG);
    tiny_path(t, token, LONG, due, NULL, NULL);
    as_lm *lm = tiny_lm(t, &plain);
    const int32_t s = open_one(lm);
    chain(lm, s, token, LONG - 1, got, LONG - 1);
    chain(lm, s, token + LONG - 1, 1, got + (LONG - 1) * (size_t)V, 1);
    ck_assert(same(due, got, LONG * V));
    as_lm_free(lm);
    tiny_free(t);
    free(due), free(got);
}
END_TEST

/* ---- (b) One path, one result. --------------------------------------------------------- */

/* A forward with a chain of true tokens, scattered among rows that branch off it or stand
 * alone. */
typedef struct {
    as_row row[ROWS];
    int32_t rows;
    int32_t chain[ROWS], length; /* the rows of the chain */
} mixture;

static void mix(mixture *x, uint64_t *seed, const int32_t *token, int32_t length, int32_t rows,
                int32_t V)
{
    x->rows = rows;
    x->length = 0;
    for (int32_t r = 0; r < rows; r++) {
        const int32_t due = length - x->length, left = rows - r;
        const int32_t any = below(seed, r + 1) - 1;
        if (due == left || below(seed, left) < due) {
            x->row[r] = (as_row){token[x->length], x->length ? x->chain[x->length - 1] : -1};
            x->chain[x->length++] = r;
        } else {
            x->row[r] = (as_row){below(seed, V), any};
        }
    }
}

/* Every count of rows, the path's rows anywhere among them, behind prefixes on both sides of a
 * chunk's end, with and without another sequence before or behind, for one level, number of
 * threads, and layout of pages. */
START_TEST(any_rows_any_place)
{
    static const int32_t counts[] = {1, 2, 3, 8, 17, 32, 33, 64, 65, 120};
    static const int32_t prefixes[] = {0, 1, 20, 62, 63, 64, 65, 127};
    static const char *const levels[] = {"baseline", "v3", "v4"};
    static mixture a, b;
    if (as_set_level(levels[_i % 3], NULL) != AS_OK) return; /* this machine lacks it */
    const int variant = _i % 5;
    tiny_llama *t = tiny_new(variant, 77, 1);
    const int32_t V = t->config.V;
    int32_t token[2 * PATH];
    uint64_t seed = (uint64_t)_i;
    float *due = new_floats(2 * PATH * (size_t)V), *got = new_floats(2 * ROWS * (size_t)V);
    random_tokens(&seed, V, token, 2 * PATH);
    tiny_path(t, token, 2 * PATH, due, NULL, NULL);
    const as_llama_options o = {
        .rows = ROWS, .threads = 1 + _i % 2, .layout_seed = (uint32_t)_i};
    as_lm *lm = tiny_lm(t, &o);
    const int32_t s = open_one(lm), other = open_one(lm);
    int32_t from = 0, other_from = 0;
    for (int trial = 0; trial < 40; trial++) {
        const int32_t rows = counts[trial % 10];
        const int32_t prefix = prefixes[below(&seed, 8)];
        ck_assert_int_eq(as_lm_truncate(lm, s, prefix < from ? prefix : from, NULL), AS_OK);
        from = as_lm_length(lm, s);
        if (from < prefix) chain(lm, s, token + from, prefix - from, NULL, prefix - from);
        const int32_t most = 2 * PATH - prefix < rows ? 2 * PATH - prefix : rows;
        mix(&a, &seed, token + prefix, 1 + below(&seed, most), rows, V);
        mix(&b, &seed, token + other_from, 1, 1 + below(&seed, 40), V);
        const as_forward share = {s, a.rows, a.length, a.row, a.chain, got};
        const as_forward more = {other, b.rows, 1, b.row, b.chain, got + ROWS * (size_t)V};
        const as_forward f[] = {trial % 4 == 1 ? more : share, trial % 4 == 1 ? share : more};
        as_error e = {.text = ""};
        ck_assert_msg(as_lm_forward(lm, f, trial % 4 ? 2 : 1, &e) == AS_OK, "%s", e.text);
        for (int32_t i = 0; i < a.length; i++)
            ck_assert_msg(
                same(got + (size_t)i * (size_t)V, due + (size_t)(prefix + i) * (size_t)V, V),
                "%d rows behind %d: row %d of the path, at %d", (int)rows, (int)prefix, (int)i,
                (int)a.chain[i]);
        if (trial % 4) {
            ck_assert(same(more.logits, due + (size_t)other_from * (size_t)V, V));
            ck_assert_int_eq(as_lm_commit(lm, other, b.chain, 1, NULL), AS_OK);
            other_from++;
        }
        const int32_t keep = below(&seed, a.length + 1);
        ck_assert_int_eq(as_lm_commit(lm, s, a.chain, keep, NULL), AS_OK);
        from = as_lm_length(lm, s);
        ck_assert_int_eq(from, prefix + keep);
    }
    as_lm_free(lm);
    tiny_free(t);
    free(due), free(got);
}
END_TEST

/* Steps of one, a few and many rows, then two sequences in one forward; and the cache. */
static void ask_threads(const tiny_llama *t, int threads, const int32_t *token /* [PATH] */,
                        const float *due, const float *keys, const float *values)
{
    static const int32_t piece[] = {1, 8, 33, 120, PATH};
    static mixture a, b;
    const int32_t V = t->config.V;
    float *got = new_floats(PATH * (size_t)V);
    uint64_t seed = 6;
    const as_llama_options o = {.rows = ROWS, .threads = threads};
    as_lm *lm = tiny_lm(t, &o);
    const int32_t s = open_one(lm), other = open_one(lm);
    for (size_t i = 0; i < sizeof piece / sizeof *piece; i++) {
        ck_assert_int_eq(as_lm_truncate(lm, s, 0, NULL), AS_OK);
        for (int32_t p = 0; p < PATH; p += piece[i]) {
            const int32_t n = PATH - p < piece[i] ? PATH - p : piece[i];
            chain(lm, s, token + p, n, got + (size_t)p * (size_t)V, n);
        }
        ck_assert_msg(same(got, due, PATH * V), "%d threads, pieces of %d", threads,
                      (int)piece[i]);
        check_cache(lm, t, s, PATH, keys, values);
    }
    ck_assert_int_eq(as_lm_truncate(lm, s, 70, NULL), AS_OK);
    mix(&a, &seed, token + 70, PATH - 70, 120, V);
    mix(&b, &seed, token, 33, 33, V);
    const as_forward f[] = {{s, a.rows, a.length, a.row, a.chain, got + 70 * V},
                            {other, b.rows, b.length, b.row, b.chain, got}};
    memset(got, 0xff, PATH * (size_t)V * sizeof *got);
    ck_assert_int_eq(as_lm_forward(lm, f, 2, NULL), AS_OK);
    ck_assert(same(got, due, 33 * V) && same(got + 70 * V, due + 70 * V, (PATH - 70) * V));
    as_lm_free(lm);
    free(got);
}

/* One, two and three threads (TREE-08), on a model whose every forward is worth them. */
START_TEST(any_threads)
{
    tiny_llama *t = tiny_new(TINY_WIDE, 12, 1);
    const size_t V = (size_t)t->config.V,
                 kv = (size_t)(t->config.kv_heads * t->config.head_dim);
    float *due = new_floats(PATH * V), *keys = new_floats(PATH * kv),
          *values = new_floats(PATH * kv);
    int32_t token[PATH];
    uint64_t seed = 6;
    random_tokens(&seed, t->config.V, token, PATH);
    tiny_path(t, token, PATH, due, keys, values);
    for (int threads = 1; threads <= 3; threads++)
        ask_threads(t, threads, token, due, keys, values);
    tiny_free(t);
    free(due), free(keys), free(values);
}
END_TEST

/* ---- (a), (b), (c) together. ------------------------------------------------------------- */

enum { SEQUENCES = 4, MOST = 200 };

typedef struct {
    int32_t number, token[MOST], length; /* number -1: not open */
} script_sequence;

/* The path of tokens to a row, behind the prefix. */
static int32_t path_to(const script_sequence *q, const as_row *row, int32_t r, int32_t *path)
{
    int32_t depth = 0, n;
    for (int32_t at = r; at >= 0; at = row[at].parent) depth++;
    n = q->length + depth;
    memcpy(path, q->token, (size_t)q->length * sizeof *path);
    for (int32_t at = r, i = n; at >= 0; at = row[at].parent) path[--i] = row[at].token;
    return n;
}

/* Random rows: mostly a chain, so that chunks fill, with branches. */
static void random_tree(uint64_t *seed, int32_t V, as_row *row, int32_t n)
{
    for (int32_t r = 0; r < n; r++) {
        const int32_t any = below(seed, r + 1) - 1;
        row[r] = (as_row){below(seed, V), below(seed, 8) ? r - 1 : any};
    }
}

/* A random forward of all open sequences; three rows of each are held against the letter, then
 * the path to one of them is committed. */
static void script_forward(as_lm *lm, const tiny_llama *t, script_sequence *all, uint64_t *seed)
{
    static as_row row[SEQUENCES][MOST];
    static float logits[SEQUENCES][3 * 128], due[MOST * 128];
    int32_t want[SEQUENCES][3], path[2 * MOST], n = 0, V = t->config.V;
    as_forward f[SEQUENCES];
    as_error e = {.text = ""};
    for (int i = 0; i < SEQUENCES; i++) {
        script_sequence *q = &all[i];
        if (q->number < 0 || q->length >= MOST - 1) continue;
        const int32_t room = MOST - q->length < 90 ? MOST - q->length : 90;
        const int32_t rows = 1 + below(seed, room);
        random_tree(seed, V, row[i], rows);
        for (int w = 0; w < 3; w++) want[i][w] = below(seed, rows);
        f[n++] = (as_forward){q->number, rows, 3, row[i], want[i], logits[i]};
    }
    ck_assert_msg(as_lm_forward(lm, f, n, &e) == AS_OK, "%s", e.text);
    for (int i = 0, j = 0; i < SEQUENCES; i++) {
        script_sequence *q = &all[i];
        if (j == n || q->number != f[j].sequence) continue;
        j++;
        for (int w = 0; w < 3; w++) {
            const int32_t m = path_to(q, row[i], want[i][w], path);
            tiny_path(t, path, m, due, NULL, NULL);
            ck_assert_msg(same(logits[i] + w * V, due + (size_t)(m - 1) * (size_t)V, V),
                          "a path of %d tokens, %d of them committed", (int)m, (int)q->length);
        }
        const int32_t m = path_to(q, row[i], want[i][0], path), depth = m - q->length;
        int32_t rows[MOST];
        for (int32_t at = want[i][0], d = depth; at >= 0; at = row[i][at].parent)
            rows[--d] = at;
        const int32_t keep = below(seed, depth + 1);
        ck_assert_int_eq(as_lm_commit(lm, q->number, rows, keep, NULL), AS_OK);
        memcpy(q->token, path, (size_t)m * sizeof *path);
        q->length += keep;
        ck_assert_int_eq(as_lm_length(lm, q->number), q->length);
    }
}

/* Any order of opening, forward, commit, truncation, poisoning and closing. */
START_TEST(any_order)
{
    tiny_llama *t = tiny_new(_i % 5, 5 + (uint64_t)_i, 1);
    const as_llama_options o = {
        .rows = 4 * MOST, .threads = 1 + _i % 2, .layout_seed = (uint32_t)_i};
    as_lm *lm = tiny_lm(t, &o);
    static script_sequence all[SEQUENCES];
    static float keys[64 * MOST * 4], values[64 * MOST * 4];
    uint64_t seed = 1000 + (uint64_t)_i;
    for (int i = 0; i < SEQUENCES; i++) all[i].number = -1;
    for (int step = 0; step < 12; step++) {
        script_sequence *q = &all[below(&seed, SEQUENCES)];
        if (q->number < 0) {
            *q = (script_sequence){.number = open_one(lm)};
        } else if (below(&seed, 8) == 0) {
            as_lm_close(lm, q->number);
            q->number = -1;
        } else if (!coin(&seed)) {
            q->length = below(&seed, q->length + 1);
            ck_assert_int_eq(as_lm_truncate(lm, q->number, q->length, NULL), AS_OK);
        }
        if (below(&seed, 3) == 0) as_llama_cache_poison(lm);
        script_forward(lm, t, all, &seed);
        if (q->number < 0 || q->length == 0 || step % 2) continue;
        tiny_path(t, q->token, q->length, NULL, keys, values);
        check_cache(lm, t, q->number, q->length, keys, values);
    }
    as_lm_free(lm);
    tiny_free(t);
}
END_TEST

/* ---- (c) Commit and rollback. ------------------------------------------------------------ */

/* Steps of chain decoding with every accepted length and rollbacks, across the ends of chunks,
 * with poison between: the cache and the logits are those of a run without drafts. */
START_TEST(rollback)
{
    enum { GAMMA = 7 };
    tiny_llama *t = tiny_new(2, 8, 1);
    const int32_t V = t->config.V;
    int32_t token[PATH], draft[GAMMA + 1];
    uint64_t seed = 4;
    static float due[PATH * 40], got[(GAMMA + 1) * 40], keys[PATH * 32], values[PATH * 32];
    random_tokens(&seed, V, token, PATH);
    tiny_path(t, token, PATH, due, keys, values);
    as_lm *lm = tiny_lm(t, &plain);
    const int32_t s = open_one(lm);
    for (int round = 0; round < 2; round++) {
        for (int32_t n = 0, step = 0; n + GAMMA + 1 < PATH; step++) {
            /* The last token and GAMMA drafts, of which the first `right` are right. */
            const int32_t right = step % (GAMMA + 1);
            for (int32_t i = 0; i <= GAMMA; i++)
                draft[i] = i <= right ? token[n + i] : (token[n + i] + 1) % V;
            chain(lm, s, draft, GAMMA + 1, got, right + 1);
            ck_assert(same(got, due + (size_t)n * (size_t)V, (right + 1) * V));
            as_llama_cache_poison(lm);
            n += right + 1;
            ck_assert_int_eq(as_lm_length(lm, s), n);
            check_cache(lm, t, s, PATH, keys, values);
            /* Now and then further back, twice, and again. */
            if (step % 5 == 4) {
                ck_assert_int_eq(as_lm_truncate(lm, s, n - 5, NULL), AS_OK);
                ck_assert_int_eq(as_lm_truncate(lm, s, n - 9, NULL), AS_OK);
                n -= 9;
                as_llama_cache_poison(lm);
            }
        }
        /* A second request on a used state: by truncation, then by opening anew. */
        if (round == 0) ck_assert_int_eq(as_lm_truncate(lm, s, 0, NULL), AS_OK);
    }
    as_lm_close(lm, s);
    const int32_t again = open_one(lm);
    chain(lm, again, token, 5, got, 5);
    ck_assert(same(got, due, 5 * V));
    as_lm_free(lm);
    tiny_free(t);
}
END_TEST

/* A row of each of two sequences waits for a commit. */
static void two_wait(as_lm *lm, int32_t a, int32_t b)
{
    static const as_row one = {1, -1};
    const as_forward f[] = {{a, 1, 0, &one, NULL, NULL}, {b, 1, 0, &one, NULL, NULL}};
    ck_assert_int_eq(as_lm_forward(lm, f, 2, NULL), AS_OK);
}

static void nothing_waits(as_lm *lm, int32_t sequence, const char *after)
{
    const int32_t zero = 0;
    ck_assert_msg(as_lm_commit(lm, sequence, &zero, 1, NULL) == AS_BAD_INPUT, "%s", after);
    ck_assert_int_eq(as_lm_length(lm, sequence), 0);
}

/* Rows are forgotten by commit, truncation and poison, not by those that are refused. */
START_TEST(rows_are_forgotten)
{
    tiny_llama *t = tiny_new(0, 1, 1);
    as_lm *lm = tiny_lm(t, &plain);
    const int32_t a = open_one(lm), b = open_one(lm), zero = 0, bad = 7;
    two_wait(lm, a, b);
    ck_assert_int_eq(as_lm_commit(lm, a, NULL, 0, NULL), AS_OK);
    nothing_waits(lm, a, "an empty commit");
    ck_assert_int_eq(as_lm_truncate(lm, b, 0, NULL), AS_OK);
    nothing_waits(lm, b, "a truncation");
    two_wait(lm, a, b);
    as_llama_cache_poison(lm);
    nothing_waits(lm, a, "poison");
    two_wait(lm, a, b);
    ck_assert_int_eq(as_lm_commit(lm, a, &bad, 1, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_lm_truncate(lm, a, 1, NULL), AS_BAD_INPUT);
    ck_assert_int_eq(as_lm_commit(lm, a, &zero, 1, NULL), AS_OK);
    as_lm_free(lm);
    tiny_free(t);
}
END_TEST

/* Whatever a forward is refused for, in whichever of its sequences: none has rows to commit,
 * and one that it does not name keeps its own. */
START_TEST(a_refused_forward_forgets)
{
    static const as_row good[] = {{1, -1}, {1, 0}, {1, 1}, {1, 2}};
    static const as_row token[] = {{33, -1}}, parent[] = {{1, 5}};
    const int32_t want = 1, zero = 0;
    tiny_llama *t = tiny_new(0, 1, 1);
    const as_llama_options o = {.positions = 3, .rows = 4, .threads = 1};
    as_lm *lm = tiny_lm(t, &o);
    const int32_t a = open_one(lm), b = open_one(lm), other = open_one(lm);
    float x[40];
    const struct {
        const char *what;
        as_forward f;
        as_status status;
    } set[] = {{"a token", {b, 1, 0, token, NULL, NULL}, AS_BAD_INPUT},
               {"a parent", {b, 1, 0, parent, NULL, NULL}, AS_BAD_INPUT},
               {"a wanted row", {b, 1, 1, good, &want, x}, AS_BAD_INPUT},
               {"a sequence named twice", {a, 1, 0, good, NULL, NULL}, AS_BAD_INPUT},
               {"a sequence that is not open", {99, 1, 0, good, NULL, NULL}, AS_BAD_INPUT},
               {"too many rows", {b, 4, 0, good, NULL, NULL}, AS_LIMIT},
               {"too many positions", {b, 4, 0, good, NULL, NULL}, AS_LIMIT}};
    for (int i = 0; i < 2 * (int)(sizeof set / sizeof *set); i++) {
        const as_forward fine = {a, i / 2 == 6 ? 0 : 1, 0, good, NULL, NULL};
        const as_forward f[] = {i % 2 ? set[i / 2].f : fine, i % 2 ? fine : set[i / 2].f};
        two_wait(lm, b, other);
        two_wait(lm, a, b);
        ck_assert_int_eq(as_lm_forward(lm, f, 2, NULL), set[i / 2].status);
        nothing_waits(lm, a, set[i / 2].what);
        if (set[i / 2].f.sequence == b) nothing_waits(lm, b, set[i / 2].what);
        ck_assert_int_eq(as_lm_commit(lm, other, &zero, 1, NULL), AS_OK);
        ck_assert_int_eq(as_lm_truncate(lm, other, 0, NULL), AS_OK);
    }
    as_lm_free(lm);
    tiny_free(t);
}
END_TEST

/* ---- Limits and refusals. ------------------------------------------------------------------
 */

#define SAYS(status, call, part)                                                               \
    do {                                                                                       \
        as_error e = {.text = ""};                                                             \
        ck_assert_int_eq(call, status);                                                        \
        ck_assert_msg(strstr(e.text, part) != NULL, "it says: %s", e.text);                    \
    } while (0)

START_TEST(capacity)
{
    tiny_llama *t = tiny_new(0, 1, 1);
    const as_llama_options o = {.positions = 70, .rows = 6, .threads = 1};
    as_lm *lm = tiny_lm(t, &o);
    const int32_t s = open_one(lm), other = open_one(lm), zero = 0;
    int32_t token[70] = {1};
    float a[40], b[40];
    static const as_row rows[7] = {{1, -1}, {2, 0}, {3, 1}, {4, 2}, {5, -1}, {6, -1}, {7, -1}};
    for (int i = 0; i < 68; i += 4) chain(lm, s, token + i, 4, NULL, 4);
    ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 2, 1, rows, &zero, a}, 1, NULL), AS_OK);
    SAYS(AS_LIMIT, as_lm_forward(lm, &(as_forward){s, 3, 1, rows, &zero, b}, 1, &e),
         "at position 70; the capacity is 70 positions");
    SAYS(AS_LIMIT, as_lm_forward(lm, &(as_forward){s, 7, 1, rows, &zero, b}, 1, &e),
         "more than 6 rows");
    const as_forward two[] = {{s, 2, 0, rows, NULL, NULL}, {other, 5, 0, rows, NULL, NULL}};
    SAYS(AS_LIMIT, as_lm_forward(lm, two, 2, &e), "more than 6 rows");
    ck_assert_int_eq(as_lm_length(lm, s), 68);
    ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 2, 1, rows, &zero, b}, 1, NULL), AS_OK);
    ck_assert(same(a, b, t->config.V));
    ck_assert_int_eq(as_lm_commit(lm, s, (int32_t[]){0, 1}, 2, NULL), AS_OK);
    SAYS(AS_LIMIT, as_lm_forward(lm, &(as_forward){s, 1, 1, rows, &zero, b}, 1, &e),
         "at position 70");
    as_lm_free(lm);
    tiny_free(t);
}
END_TEST

START_TEST(bad_calls)
{
    tiny_llama *t = tiny_new(0, 1, 1);
    as_lm *lm = tiny_lm(t, &plain);
    const int32_t s = open_one(lm), want = 0, beyond = 2;
    float x[40], k[64], v[64];
    static const as_row bad[][2] = {
        {{33, -1}, {0, 0}}, {{-1, -1}, {0, 0}}, {{0, 0}, {0, 0}}, {{0, -2}, {0, 0}}};
    static const as_row good[] = {{0, -1}, {1, 0}};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 2, 1, bad[i], &want, x}, 1, NULL),
                         AS_BAD_INPUT);
    SAYS(AS_BAD_INPUT, as_lm_forward(lm, &(as_forward){s, 2, 1, good, &beyond, x}, 1, &e),
         "row 2 is wanted, but there are 2");
    SAYS(AS_BAD_INPUT, as_lm_forward(lm, &(as_forward){s + 1, 2, 1, good, &want, x}, 1, &e),
         "is not open");
    const as_forward twice[] = {{s, 2, 1, good, &want, x}, {s, 2, 1, good, &want, x}};
    SAYS(AS_BAD_INPUT, as_lm_forward(lm, twice, 2, &e), "named twice");
    ck_assert_int_eq(as_lm_forward(lm, &(as_forward){s, 0, 0, NULL, NULL, NULL}, 1, NULL),
                     AS_OK);
    chain(lm, s, (int32_t[]){1, 2}, 2, NULL, 2);
    SAYS(AS_BAD_INPUT, as_lm_truncate(lm, s, 3, &e), "truncate: to 3");
    SAYS(AS_BAD_INPUT, as_llama_cache_read(lm, s, 2, 0, k, v, &e), "layer 2");
    SAYS(AS_BAD_INPUT, as_llama_cache_read(lm, s, 0, 2, k, v, &e), "position 2");
    SAYS(AS_BAD_INPUT, as_llama_cache_read(lm, 9, 0, 0, k, v, &e), "not open");
    as_lm_close(lm, 9);
    ck_assert_int_eq(as_lm_length(lm, 9), -1);
    as_lm_free(lm);
    tiny_free(t);
}
END_TEST

START_TEST(bad_models)
{
    static const struct {
        size_t field;
        int32_t value;
        const char *says;
    } wrong[] = {
#define FIELD(name) offsetof(as_llama_config, name)
        {FIELD(V), 0, "V is 0"},
        {FIELD(layers), 0, "layers is 0"},
        {FIELD(hidden), 1 << 21, "hidden is 2097152"},
        {FIELD(heads), 3, "kv_heads is 4; it must be 1 to 3"},
        {FIELD(kv_heads), 3, "no multiple of kv_heads"},
        {FIELD(head_dim), 5, "head_dim 5 is odd"},
        {FIELD(head_dim), 1026, "head_dim is 1026"},
        {FIELD(ffn), -1, "ffn is -1"},
        {FIELD(max_positions), (1 << 20) + 1, "max_positions is 1048577"},
        {FIELD(tied), 2, "tied is 2"},
#undef FIELD
    };
    tiny_llama *t = tiny_new(0, 1, 1);
    as_lm *lm;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        as_llama_config c = t->config;
        memcpy((char *)&c + wrong[i].field, &wrong[i].value, sizeof wrong[i].value);
        SAYS(AS_BAD_INPUT, as_llama(&c, &t->weights, &plain, &lm, &e), wrong[i].says);
        ck_assert_ptr_null(lm);
    }
    as_llama_config c = t->config;
    c.eps = 0;
    SAYS(AS_BAD_INPUT, as_llama(&c, &t->weights, &plain, &lm, &e), "eps");
    as_llama_options o = {.positions = 301, .rows = 1};
    SAYS(AS_BAD_INPUT, as_llama(&t->config, &t->weights, &o, &lm, &e), "301 positions");
    o = (as_llama_options){.rows = 0};
    SAYS(AS_BAD_INPUT, as_llama(&t->config, &t->weights, &o, &lm, &e), "0 rows");
    /* A weight that is not finite is named by its tensor and place. */
    static const unsigned char nan[4] = {0, 0, 0xc0, 0x7f};
    memcpy((char *)t->layer[1].down.data + 4 * (2 * t->config.ffn + 3), nan, 4);
    SAYS(AS_BAD_INPUT, as_llama(&t->config, &t->weights, &plain, &lm, &e),
         "layer 1, down: weight at row 2, column 3");
    t->layer[0].v.data = NULL;
    SAYS(AS_BAD_INPUT, as_llama(&t->config, &t->weights, &plain, &lm, &e), "layer 0, v:");
    tiny_free(t);
}
END_TEST

/* Whatever allocation fails: an error that says so and names the tensor that was being packed,
 * nothing kept, nothing lost. */
START_TEST(no_memory_for_a_model)
{
    static const char *const says[] = {"embedding: no memory for a matrix of 70 x 140",
                                       "final norm: no memory for a matrix of 1 x 140",
                                       "final norm: no memory for 140 numbers",
                                       "output: no memory for a matrix of 70 x 140",
                                       "layer 0, mlp norm: no memory for 140 numbers",
                                       "layer 0, k: no memory for a matrix of 36 x 140",
                                       "layer 0, down: no memory for a matrix of 140 x 3760",
                                       "layer 0, q bias: no memory for 36 numbers",
                                       "layer 0, k norm: no memory for a matrix of 1 x 18"};
    enum { SAYS = sizeof says / sizeof *says };
    tiny_llama *t = tiny_new(TINY_WIDE, 1, 1);
    as_lm *lm;
    int said[SAYS] = {0};
    for (int failed = 1, n = 0; failed; n++) {
        as_error e = {.text = ""};
        const long before = memory_live();
        memory_fails_after(n, _i);
        const as_status s = as_llama(&t->config, &t->weights, &plain, &lm, &e);
        failed = memory_fails_no_more();
        as_lm_free(lm);
        ck_assert_int_eq(memory_live(), before);
        ck_assert_int_eq(s, failed ? AS_NO_MEMORY : AS_OK);
        ck_assert(!failed || strstr(e.text, "no memory"));
        for (int i = 0; i < SAYS; i++)
            said[i] += strncmp(e.text, says[i], strlen(says[i])) == 0;
    }
    for (int i = 0; i < SAYS; i++)
        ck_assert_msg(said[i] == 1, "said %d times: %s", said[i], says[i]);
    tiny_free(t);
}
END_TEST

/* A step that lacks memory changes nothing and can be done again: two sequences, several tiles
 * and chunks, several pages. */
START_TEST(no_memory_for_a_step)
{
    enum { N = 210 };
    tiny_llama *t = tiny_new(2, 1, 1);
    const int32_t V = t->config.V;
    static float due[N * 40], got[N * 40];
    int32_t token[N], each[N], s[2];
    as_row row[N];
    uint64_t seed = 1;
    random_tokens(&seed, V, token, N);
    tiny_path(t, token, N, due, NULL, NULL);
    for (int32_t i = 0; i < N; i++) {
        each[i] = i;
        row[i] = (as_row){token[i], i - 1};
    }
    int lacking = 0;
    for (int failures = 1, n = 0; failures; n++) {
        as_lm *lm = tiny_lm(t, &plain);
        failures = 0;
        for (int step = 0, again = 0; step < 6; step += !again) {
            int32_t *const which = &s[step / 3];
            as_status status = AS_OK;
            as_error e = {.text = ""};
            if (!again) memory_fails_after(n, _i);
            if (step % 3 == 0) status = as_lm_open(lm, which, &e);
            const as_forward f = {*which, N, N, row, each, got};
            if (step % 3 == 1) status = as_lm_forward(lm, &f, 1, &e);
            if (step % 3 == 2) status = as_lm_commit(lm, *which, each, N, &e);
            const int failed = memory_fails_no_more() && !again, lacks = status != AS_OK;
            /* Fewer pages than tried for are enough. */
            ck_assert(!lacks || (failed && status == AS_NO_MEMORY));
            ck_assert(!lacks || strstr(e.text, "no memory"));
            const int32_t due_length = step % 3 == 2 && !lacks ? N : 0;
            if (step % 3) ck_assert_int_eq(as_lm_length(lm, *which), due_length);
            if (step % 3 == 1 && !lacks) ck_assert(same(got, due, N * V));
            failures += failed;
            lacking += lacks;
            again = lacks;
        }
        as_lm_free(lm);
    }
    ck_assert_int_gt(lacking, 20);
    tiny_free(t);
}
END_TEST

/* Finite weights, sums beyond binary32: the logits say so, and nothing else happens. */
START_TEST(overflow_is_quiet)
{
    tiny_llama *t = tiny_new(0, 1, 1e37f);
    as_lm *lm = tiny_lm(t, &plain);
    const int32_t s = open_one(lm);
    int32_t token[PATH];
    uint64_t seed = 1;
    float *x = new_floats(PATH * (size_t)t->config.V);
    random_tokens(&seed, t->config.V, token, PATH);
    chain(lm, s, token, PATH, x, PATH);
    int finite = 1;
    for (int32_t i = 0; i < PATH * t->config.V; i++) finite = finite && isfinite(x[i]);
    ck_assert(!finite);
    as_lm_free(lm);
    tiny_free(t);
    free(x);
}
END_TEST

/* A thread begins with the environment of the one that makes it: as_product makes its own
 * before it enters the environment of the project. */
static void start_hostile_workers(void)
{
    const float w[64] = {0}, x = 1;
    float y[64];
    as_matrix m;
    hostile_environment();
    ck_assert_int_eq(as_matrix_pack(&m, w, 64, 1, AS_F32, NULL), AS_OK);
    as_product(&m, NULL, &x, 1, y, 2);
    as_matrix_free(&m);
}

/* A host that rounds upwards and flushes subnormals changes no bit, in any thread, and keeps
 * its ways. */
START_TEST(the_environment_is_kept)
{
    tiny_llama *t = tiny_new(TINY_WIDE, 6, 1);
    const int32_t V = t->config.V;
    static float due[PATH * 80], got[PATH * 80];
    int32_t token[PATH];
    uint64_t seed = 1;
    random_tokens(&seed, V, token, PATH);
    tiny_path(t, token, PATH, due, NULL, NULL);
    const as_llama_options o = {.rows = ROWS, .threads = 2};
    start_hostile_workers();
    as_lm *lm = tiny_lm(t, &o);
    int32_t s;
    as_lm_open(lm, &s, NULL);
    chain(lm, s, token, 100, got, 100);
    chain(lm, s, token + 100, PATH - 100, got + 100 * V, 0);
    ck_assert(still_hostile());
    ck_assert(same(got, due, PATH * V));
    as_lm_free(lm);
    tiny_free(t);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("llama");
    tcase_add_loop_test(t, the_letter, 0, TINY_VARIANTS);
    tcase_add_test(t, long_prompt);
    tcase_add_loop_test(t, any_rows_any_place, 0, 15);
    tcase_add_test(t, any_threads);
    tcase_add_loop_test(t, any_order, 0, 10);
    tcase_add_test(t, rollback);
    tcase_add_test(t, rows_are_forgotten);
    tcase_add_test(t, a_refused_forward_forgets);
    tcase_add_test(t, capacity);
    tcase_add_test(t, bad_calls);
    tcase_add_test(t, bad_models);
    tcase_add_loop_test(t, no_memory_for_a_model, 0, 2);
    tcase_add_loop_test(t, no_memory_for_a_step, 0, 2);
    tcase_add_test(t, overflow_is_quiet);
    tcase_add_test(t, the_environment_is_kept);
    return suite_main("ref/llama", t);
}
