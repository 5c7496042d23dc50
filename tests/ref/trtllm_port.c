/* trtllm_port.c - see trtllm_port.h, which says what this is a port of and what is replaced.
 * Each function names the function of the engine that it ports. */
#include "tests/ref/trtllm_port.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The n-grams of one key. */
typedef struct {
    int32_t key, count;
    int32_t ngram[TRT_MAX * (TRT_MAX - 1)]; /* [count][N - 1], oldest first */
} key_set;

struct trt_port {
    int32_t W, N, G, end_id;
    int32_t filling; /* levels of the window that hold tokens */
    int32_t prefill[TRT_MAX];
    int32_t window[TRT_MAX][TRT_MAX]; /* [W][N - 1] */
    int32_t golden[2 * TRT_MAX];      /* the last N - 1 tokens, and room for a run */
    int32_t last;                     /* token of the sequence */
    bool prepared;
    int32_t count; /* of rows */
    trt_row row[TRT_MAX_ROWS];
    key_set *set;
    int32_t sets, set_room;
};

static void need(bool holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "trtllm_port: %s\n", what);
    abort();
}

/* ---- LookaheadPoolManager. ---------------------------------------------------------- */

static key_set *find_set(const trt_port *port, int32_t key)
{
    for (int32_t i = 0; i < port->sets; i++)
        if (port->set[i].key == key) return &port->set[i];
    return NULL;
}

static key_set *add_set(trt_port *port, int32_t key)
{
    if (port->sets == port->set_room) {
        const int32_t room = port->set_room ? 2 * port->set_room : 16;
        key_set *grown = realloc(port->set, (size_t)room * sizeof *grown);
        need(grown != NULL, "no memory for the pool");
        port->set = grown;
        port->set_room = room;
    }
    key_set *set = &port->set[port->sets++];
    set->key = key;
    set->count = 0;
    return set;
}

static void drop(key_set *set, int32_t i, int32_t length)
{
    int32_t *at = set->ngram + i * length;
    set->count--;
    memmove(at, at + length, (size_t)((set->count - i) * length) * sizeof *at);
}

/* insertOne: an n-gram that is there becomes the newest; a new one replaces the oldest of G. */
static void insert_one(trt_port *port, int32_t key, const int32_t *ngram)
{
    const int32_t length = port->N - 1;
    if (length == 0 || port->G == 0) return;
    const size_t bytes = (size_t)length * sizeof *ngram;
    key_set *set = find_set(port, key);
    if (!set) set = add_set(port, key);
    for (int32_t i = set->count; i-- > 0;)
        if (!memcmp(set->ngram + i * length, ngram, bytes)) drop(set, i, length);
    if (set->count == port->G) drop(set, 0, length);
    memcpy(set->ngram + set->count++ * length, ngram, bytes);
}

/* accept of the pool: each N consecutive tokens are a key and its n-gram, from left to right.
 */
static void pool_accept(trt_port *port, const int32_t *token, int32_t n)
{
    for (int32_t i = 0; i + port->N <= n; i++) insert_one(port, token[i], token + i + 1);
}

/* guess of the pool: the n-grams of a key, oldest first. The engine asks for at most G, and
 * more there are never. */
static int32_t pool_guess(const trt_port *port, int32_t key, const int32_t **ngrams)
{
    const key_set *set = find_set(port, key);
    *ngrams = NULL;
    if (!set) return 0;
    *ngrams = set->ngram;
    return set->count;
}

/* update of the pool: each column of the window is an n-gram. */
static void pool_update(trt_port *port, const int32_t *key)
{
    for (int32_t i = 0; i < port->W; i++) insert_one(port, key[i], port->window[i]);
}

/* ---- LookaheadAlgorithm. ------------------------------------------------------------ */

/* The constructor; which W, N and G are legal is isLegal of LookaheadDecodingConfig. */
trt_port *trt_open(int32_t W, int32_t N, int32_t G, int32_t end_id)
{
    if (W < 1 || N < 1 || G < 0 || W > TRT_MAX || N > TRT_MAX || G > TRT_MAX) return NULL;
    if (N == 1 && (W != 1 || G != 0)) return NULL;
    trt_port *port = calloc(1, sizeof *port);
    if (!port) return NULL;
    port->W = W;
    port->N = N;
    port->G = G;
    port->end_id = end_id;
    return port;
}

void trt_close(trt_port *port)
{
    if (!port) return;
    free(port->set);
    free(port);
}

int32_t trt_guesses(const trt_port *port)
{
    return port->N == 1 ? 0 : port->N - 2 + port->W;
}

/* setup */
void trt_setup(trt_port *port, const int32_t *prompt, int32_t n, const int32_t *guess,
               int32_t guesses)
{
    const int32_t N = port->N;
    need(n >= 1 && n >= N - 1, "the prompt is shorter than N - 1 tokens, or empty");
    need(guesses == trt_guesses(port), "the number of guesses is not that of trt_guesses");
    port->sets = 0;
    pool_accept(port, prompt, n);
    memset(port->window, -1, sizeof port->window);
    if (N > 1) {
        for (int32_t i = 0; i < N - 2; i++) port->prefill[i] = *guess++;
        for (int32_t i = 0; i < port->W; i++) port->window[i][0] = *guess++;
    }
    for (int32_t i = 0; i < N - 1; i++) port->golden[i] = prompt[n - (N - 1) + i];
    port->last = prompt[n - 1];
    port->filling = N > 1 ? 1 : 0;
    port->count = 0;
    port->prepared = false;
}

/* accept: every N consecutive tokens that end within the new ones go into the pool. */
void trt_accept(trt_port *port, const int32_t *token, int32_t length)
{
    const int32_t kept = port->N - 1;
    need(length >= 0 && length <= port->N, "more than N tokens are accepted");
    for (int32_t i = 0; i < length; i++) port->golden[kept + i] = token[i];
    pool_accept(port, port->golden, kept + length);
    for (int32_t i = 0; i < kept; i++) port->golden[i] = port->golden[length + i];
    if (length > 0) port->last = token[length - 1];
    port->prepared = false;
}

static void add_row(trt_port *port, trt_row row)
{
    need(port->count < TRT_MAX_ROWS, "more rows than the engine's draft has room for");
    port->row[port->count++] = row;
}

/* The prefills that are still drafted; -1: the window is full and the root stands in the place
 * of its first token. */
static int32_t prefills(const trt_port *port)
{
    return port->N - 2 - port->filling;
}

/* lookahead: while the window fills, the rest of the prefills and then every column as high as
 * it is; afterwards every column whole, but for the first token of the first. Column i begins i
 * positions after column 0. */
static void add_window(trt_port *port)
{
    const int32_t before = prefills(port), filling = port->filling;
    for (int32_t i = 0; i < before; i++)
        add_row(port, (trt_row){.token = port->prefill[filling + i],
                                .depth = 1 + i,
                                .candidate = -1,
                                .column = i - before});
    for (int32_t i = 0; i < port->W; i++)
        for (int32_t level = before < 0 && i == 0 ? 1 : 0; level < filling; level++)
            add_row(port, (trt_row){.token = port->window[i][level],
                                    .depth = 1 + before + i + level,
                                    .candidate = -1,
                                    .column = i,
                                    .level = level});
}

/* guess: the n-grams of the last token, each from the root on. */
static void add_candidates(trt_port *port)
{
    const int32_t *token;
    const int32_t count = pool_guess(port, port->last, &token);
    for (int32_t g = 0; g < count; g++)
        for (int32_t i = 0; i < port->N - 1; i++)
            add_row(port, (trt_row){.token = *token++,
                                    .depth = 1 + i,
                                    .candidate = g,
                                    .column = -1,
                                    .level = i});
}

/* posIdsToMask: a row sees the latest row at each smaller depth, back to the row where the
 * depth last began again below it. */
static void see(trt_port *port)
{
    int32_t latest[2 * TRT_MAX], height = 0; /* latest[d]: the row at depth 1 + d */
    for (int32_t r = 0; r < port->count; r++) {
        trt_row *row = &port->row[r];
        need(row->depth <= height + 1, "a row skips a position");
        height = row->depth;
        latest[height - 1] = r;
        row->parent = height > 1 ? latest[height - 2] : -1;
    }
}

/* treeEncode: rows with equal tokens and merged parents are one. */
static void merge(trt_port *port)
{
    for (int32_t r = 0; r < port->count; r++) {
        trt_row *row = &port->row[r];
        const int32_t above = row->parent < 0 ? -1 : port->row[row->parent].same;
        int32_t s = 0;
        for (; s < r; s++) {
            const trt_row *other = &port->row[s];
            const int32_t beside = other->parent < 0 ? -1 : port->row[other->parent].same;
            if (other->token == row->token && beside == above) break;
        }
        row->same = s;
    }
}

/* prepare */
int32_t trt_prepare(trt_port *port, const trt_row **rows)
{
    port->count = 0;
    if (port->N > 1) {
        add_window(port);
        add_candidates(port);
        see(port);
        merge(port);
    }
    port->prepared = true;
    *rows = port->row;
    return port->count;
}

/* The answer after a row, which is that of the row it merges with; after the root for -1. */
static int32_t answer_after(const trt_port *port, const int32_t *answer, int32_t r)
{
    return answer[r < 0 ? 0 : 1 + port->row[r].same];
}

/* verify: of all rows, those of the window too, the deepest whose path repeats the answers.
 * More than N - 1 of its rows are not accepted. */
static int32_t verify(const trt_port *port, const int32_t *answer, int32_t *run)
{
    bool match[TRT_MAX_ROWS];
    int32_t best = -1, depth = 0;
    for (int32_t r = 0; r < port->count; r++) {
        const trt_row *row = &port->row[r];
        match[r] = (row->parent < 0 || match[row->parent]) && row->token != port->end_id &&
                   row->token == answer_after(port, answer, row->parent);
        if (match[r] && row->depth > depth) {
            best = r;
            depth = row->depth;
        }
    }
    const int32_t hits = depth < port->N - 1 ? depth : port->N - 1;
    for (; depth > 0; depth--) {
        if (depth <= hits) run[depth] = answer_after(port, answer, best);
        best = port->row[best].parent;
    }
    run[0] = answer[0];
    return hits + 1;
}

/* update: the answer after the last row of each column goes on its top. While the window fills
 * that is all. Afterwards each column loses its first token, which keys what remains; but the
 * first column is keyed by the answer after the root. The pool takes the window before the run.
 */
int32_t trt_update(trt_port *port, const int32_t *answer, int32_t *run)
{
    need(port->prepared, "trt_update without trt_prepare before it");
    const int32_t top = port->N - 2, filling = port->filling;
    if (port->N > 1) {
        int32_t key[TRT_MAX];
        for (int32_t i = 0; i < port->W; i++) {
            const int32_t final = prefills(port) + (i + 1) * filling - 1;
            const int32_t token = answer_after(port, answer, final);
            int32_t *column = port->window[i];
            if (filling <= top) {
                column[filling] = token;
            } else {
                key[i] = i == 0 ? answer[0] : column[0];
                memmove(column, column + 1, (size_t)top * sizeof *column);
                column[top] = token;
            }
        }
        if (filling > top) pool_update(port, key);
    }
    const int32_t length = verify(port, answer, run);
    trt_accept(port, run, length);
    if (filling <= top) port->filling++;
    return length;
}

/* ---- The state. --------------------------------------------------------------------- */

int32_t trt_filling(const trt_port *port)
{
    return port->filling;
}

int32_t trt_window(const trt_port *port, int32_t column, int32_t level)
{
    need(column >= 0 && column < port->W && level >= 0 && level <= port->N - 2,
         "no such place in the window");
    return port->window[column][level];
}

int32_t trt_pool(const trt_port *port, int32_t key, const int32_t **ngrams)
{
    return pool_guess(port, key, ngrams);
}
