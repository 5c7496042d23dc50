/* pool.values - a pool of n-grams alone (POOL-06): after any sequence of insertions a look-up
 * gives the values of chapter 8 in their order, and changes nothing. The values due are those
 * of the oracle's lists, and for one text those that TensorRT-LLM's public unit test states.
 *
 * A call is one pool. Sequences are random, from so few n-grams that a pool is full and meets
 * most of them again, or made by hand: a full pool gets new values, its newest and an old one
 * again and again, and many keys that a table of 2^k places would confuse. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/oracle/methods/pool.h"

enum { GRID, IDS, TEXT };
enum { MANY_KEYS = 5000, OPERATIONS = 4096, RANDOM = 256, MOST_G = 15, MOST_REST = 4 }; /* of a call */
static const char *const kind_name[] = {[IUT_POOL_LRU] = "lru", [IUT_POOL_RING] = "ring"};

static check_case *plan_one(check_plan *p, check_level level, const char *name)
{
    static const int64_t sequences[] = {1, 20, 400}; /* random ones */
    check_case *c = plan_case(p, &check_pool_values, "%s", name);
    c->n = sequences[level];
    c->cost = 50 * (double)c->n;
    return c;
}

static void plan(check_plan *p, check_level level)
{
    static const int32_t N[] = {2, 3, MOST_REST + 1}, G[] = {0, 1, 2, 7, MOST_G};
    char name[40];
    for (int32_t kind = IUT_POOL_LRU; kind <= IUT_POOL_RING; kind++) {
        for (int32_t i = 0; i < 15; i++) {
            const int32_t n = N[i / 5], g = G[i % 5];
            snprintf(name, sizeof name, "%s-n%d-g%d", kind_name[kind], (int)n, (int)g);
            check_case *c = plan_one(p, level, name);
            c->pool.V = MANY_KEYS, c->pool.kind = kind, c->pool.N = n, c->pool.G = g;
            c->pool.what = GRID;
        }
        snprintf(name, sizeof name, "%s-ids", kind_name[kind]);
        check_case *c = plan_one(p, level, name);
        c->pool.V = 7, c->pool.kind = kind, c->pool.N = 3, c->pool.G = 2;
        c->pool.what = IDS;
    }
    check_case *c = plan_one(p, level, "lru-text");
    c->pool.V = 128, c->pool.kind = IUT_POOL_LRU, c->pool.N = 4, c->pool.G = 5;
    c->pool.what = TEXT;
}

/* Ids that need more than 16 bits, where no limit forbids them. */
static void draw(check_plan *p, check_draw *d)
{
    static const int32_t V[] = {(1 << 17) + 1, (1 << 20) - 1, 3 << 16, 151665};
    static const int32_t count[] = {2, 6, 40};
    const int32_t limit = client_claims(d->iut)->max_vocab;
    if (limit > 0 && limit < MANY_KEYS) return; /* the sequences have other ids than these */
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t kind = probe_below(&d->rng, 2) ? IUT_POOL_LRU : IUT_POOL_RING;
        const int32_t N = 2 + probe_below(&d->rng, MOST_REST), G = probe_below(&d->rng, MOST_G + 1);
        const int32_t size = V[probe_below(&d->rng, 4)];
        check_case *c = draw_case(p, d, &check_pool_values, "%s-ids%d-n%d-g%d", kind_name[kind],
                                  (int)(limit > 0 && size > limit ? limit : size), (int)N, (int)G);
        c->n = 1;
        c->cost = 1e3;
        c->pool.V = limit > 0 && size > limit ? limit : size;
        c->pool.kind = kind, c->pool.N = N, c->pool.G = G;
        c->pool.what = GRID;
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (!check_has(tested, OP_POOL, why, size)) return false;
    if (!(m->pools & c->pool.kind))
        snprintf(why, size, "pools has no %s", kind_name[c->pool.kind]);
    else if (m->max_vocab > 0 && c->pool.V > m->max_vocab)
        snprintf(why, size, "max_vocab is %d", (int)m->max_vocab);
    else
        return true;
    return false;
}

/* ---- A call. --------------------------------------------------------------------- */

typedef struct {
    const check_context *x;
    check_result *r;
    int32_t kind, V, N, G, n; /* n: operations so far */
    int32_t ids;              /* V of play_keys() */
    bool zero;                /* whose keys then have 0, too */
    uint64_t rng;
    int32_t insert[OPERATIONS], key[OPERATIONS], value[OPERATIONS * MOST_REST];
    int32_t count[OPERATIONS], out[OPERATIONS * MOST_G * MOST_REST];
} job;

static int32_t rest(const job *j)
{
    return j->N - 1;
}

static void operation(job *j, int32_t insert, int32_t key, const int32_t *value)
{
    if (j->n == OPERATIONS) return; /* sequences are planned to fit; the rest is random */
    int32_t *to = j->value + j->n * rest(j);
    for (int32_t t = 0; t < rest(j); t++) to[t] = insert ? value[t] : -1;
    j->insert[j->n] = insert;
    j->key[j->n++] = key;
}

static void look_up(job *j, int32_t key)
{
    operation(j, 0, key, NULL);
}

/* Value number i: its digits to the base `digits`, the last token first. */
static void insert_numbered(job *j, int32_t key, int32_t i, int32_t digits)
{
    int32_t value[MOST_REST];
    const int32_t apart = j->V > digits ? j->V / digits : 1; /* they differ in their high bits */
    for (int32_t t = rest(j) - 1; t >= 0; t--, i /= digits) value[t] = i % digits * apart;
    operation(j, 1, key, value);
}

static call_result call(job *j)
{
    iut_pool_batch b = {.size = sizeof b,
                        .kind = j->kind,
                        .V = j->V,
                        .N = j->N,
                        .G = j->G,
                        .n = j->n,
                        .insert = j->insert,
                        .key = j->key,
                        .value = j->value,
                        .count = j->count,
                        .out = j->out};
    return client_pool(j->x->iut, &b);
}

/* "(3 1) (0 2)": as much of it as fits. */
static void describe(char *text, size_t size, const int32_t *value, int32_t n, int32_t length)
{
    size_t at = 0;
    text[0] = 0;
    for (int32_t i = 0; i < n * length && at + 16 < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%d%s",
                               i % length ? " "
                               : i        ? " ("
                                          : "(",
                               (int)value[i], (i + 1) % length ? "" : ")");
}

/* Operation i: its count, its values, and -1 in every place that it has no value for. */
static bool right(job *j, int32_t i, const oracle_lists *due)
{
    const int32_t length = rest(j), *got = j->out + i * j->G * length;
    int32_t want[MOST_G * MOST_REST];
    const int32_t n = due ? due->n : 0, count = due ? n : -1;
    memset(want, 0xff, sizeof want);
    for (int32_t v = 0; v < n; v++)
        memcpy(want + v * length, due->l[v].t, (size_t)length * sizeof *want);
    const size_t size = (size_t)(j->G * length) * sizeof *want;
    if (j->count[i] == count && memcmp(got, want, size) == 0) return true;
    char is[160], ought[160];
    describe(is, sizeof is, got, j->G, length);
    describe(ought, sizeof ought, want, j->G, length);
    result_set(j->r, STATE_FAIL,
               "N %d, G %d, operation %d of a pool, %s of key %d: count %d of %s where count "
               "%d of %s is due",
               (int)j->N, (int)j->G, (int)i, due ? "look-up" : "insertion", (int)j->key[i],
               (int)j->count[i], is, (int)count, ought);
    return false;
}

/* Sends the operations, and follows them with the oracle's pool. */
static bool play(job *j)
{
    oracle_pool pool = {.G = j->G, .ring = j->kind == IUT_POOL_RING};
    bool ok = result_call(j->r, j->x, "pool", call(j));
    for (int32_t i = 0; i < j->n && ok; i++) {
        oracle_list value = {rest(j), 0, j->value + i * rest(j)};
        if (j->insert[i]) oracle_pool_insert(&pool, j->key[i], &value);
        ok = right(j, i, j->insert[i] ? NULL : oracle_pool_values(&pool, j->key[i]));
        j->r->compared += !j->insert[i];
    }
    oracle_pool_free(&pool);
    return ok;
}

/* ---- Sequences. ------------------------------------------------------------------ */

/* Fills a pool, and goes on with its newest value or an old one, and a new one; at times with
 * one that has long gone. Look-ups in between, at times two. */
static bool play_edges(job *j)
{
    const int32_t digits = MOST_G * 8; /* of every value the last token tells */
    j->V = j->ids > digits ? j->ids : digits;
    int32_t next = 0;
    j->n = 0;
    look_up(j, 0);
    for (; next <= j->G; next++) insert_numbered(j, 0, next, digits), look_up(j, 0);
    for (int32_t round = 0; round < 2 * j->G + 2; round++) {
        insert_numbered(j, 0, round % 2 ? next - j->G : next - 1, digits);
        look_up(j, round % 3 ? 0 : j->V - 1);
        if (round % 4 == 0) look_up(j, 0);
        insert_numbered(j, 0, next++, digits);
        look_up(j, 0);
        if (round % 5 == 4) insert_numbered(j, 0, 0, digits); /* long gone */
    }
    insert_numbered(j, j->V - 1, 0, digits);
    insert_numbered(j, j->V - 1, digits, digits); /* differs before its last token, if it can */
    look_up(j, j->V - 1);
    look_up(j, 0);
    return play(j);
}

/* Keys that agree in their lower bits, or in their upper ones. */
static bool play_keys(job *j)
{
    int32_t key[64], keys = 0;
    j->V = j->ids;
    for (int32_t bit = 1; bit < j->V; bit *= 2)
        key[keys++] = bit, key[keys++] = (bit + 5) % j->V, key[keys++] = j->V - bit;
    if (j->zero) key[keys++] = 0;
    j->n = 0;
    for (int32_t i = 0; i < 2 * keys; i++) insert_numbered(j, key[i % keys], j->zero ? j->V - 1 - i : i, j->V);
    for (int32_t i = 0; i < keys; i++) look_up(j, key[i]);
    look_up(j, 0);
    return play(j);
}

/* More keys than a table begins with room for, each with two values. */
static bool play_many(job *j)
{
    const int32_t keys = j->ids < OPERATIONS / 3 ? j->ids : OPERATIONS / 3, apart = j->ids / keys;
    j->V = j->ids;
    j->n = 0;
    for (int32_t i = 0; i < 2 * keys; i++) insert_numbered(j, i % keys * apart, i, j->V);
    for (int32_t i = 0; i < keys; i++) look_up(j, i * apart);
    return play(j);
}

/* Of each of three keys 2G + 2 different values or more; every third time a look-up. */
static bool play_random(job *j)
{
    const int32_t values = 2 * j->G + 2;
    int32_t digits = 2, different = 0;
    while (different < values) {
        different = 1;
        for (int32_t t = 0; t < rest(j); t++) different *= digits;
        digits += different < values;
    }
    j->V = j->ids > digits ? j->ids : digits;
    j->n = 0;
    for (int32_t key = 0; key < 3; key++) look_up(j, key);
    while (j->n < RANDOM - 3) {
        const int32_t key = probe_below(&j->rng, 3);
        if (probe_below(&j->rng, 3) == 0)
            look_up(j, key);
        else
            insert_numbered(j, key, probe_below(&j->rng, different), digits);
    }
    for (int32_t key = 0; key < 3; key++) look_up(j, key);
    return play(j);
}

/* The first twice, in pools of one shape: the second must not begin where the first ended. */
static bool play_all(job *j, int64_t sequences)
{
    bool ok = play_edges(j) && play_edges(j) && play_keys(j) && (j->N != 3 || play_many(j));
    for (int64_t i = 0; i < sequences && ok; i++) ok = play_random(j);
    return ok;
}

/* ---- Ids out of range. ----------------------------------------------------------- */

static bool refused(job *j, const char *what, int32_t id)
{
    const call_result c = call(j);
    j->r->compared++;
    if (c == CALL_REFUSED && client_status(j->x->iut) == IUT_BAD_INPUT) return true;
    if (c != CALL_OK) return result_call(j->r, j->x, "pool", c);
    result_set(j->r, STATE_FAIL, "%s is %d, of a vocabulary of %d: it is not refused", what,
               (int)id, (int)j->V);
    return false;
}

/* Each alone among good operations, and a good call after it. */
static bool refuse_ids(job *j)
{
    static const char *const what[] = {"the key of a look-up", "the key of an insertion",
                                       "the first token of a value", "the last one of a value"};
    const int32_t bad[] = {-1, j->V, INT32_MAX, INT32_MIN};
    for (int32_t i = 0; i < 16; i++) {
        const int32_t id = bad[i % 4], place = i / 4, n = 1;
        j->n = 0;
        for (int32_t t = 0; t < 4; t++) insert_numbered(j, t % 2, t, j->V);
        look_up(j, 0), look_up(j, 1);
        if (place == 0) j->insert[n] = 0, j->value[n * 2] = j->value[n * 2 + 1] = -1;
        if (place <= 1)
            j->key[n] = id;
        else
            j->value[n * rest(j) + (place == 2 ? 0 : rest(j) - 1)] = id;
        if (!refused(j, what[place], id)) return false;
        j->n = 0;
        insert_numbered(j, 0, i, j->V);
        look_up(j, 0), look_up(j, j->V - 1);
        if (!play(j)) return false;
    }
    return true;
}

/* ---- A text. --------------------------------------------------------------------- */

static void insert_text(job *j, const char *ngram)
{
    const int32_t value[] = {ngram[1], ngram[2], ngram[3]};
    operation(j, 1, ngram[0], value);
}

/* The n-grams of a text, and some more: what the unit test of TensorRT-LLM's pool states. */
static bool play_text(job *j)
{
    static const char text[] = "hello world; hello world. live is life.";
    static const char *const due[] = {"lo o wd. iveife", "ve s lfe.",      "; h. l", "orl", "",
                                      "o wd. iveifeabc", "iveifedogcatabc"};
    static const char keys[] = "lidwx";
    j->n = 0;
    for (size_t i = 0; i + 4 < sizeof text; i++) insert_text(j, text + i);
    for (int32_t i = 0; i < 5; i++) look_up(j, keys[i]);
    insert_text(j, "labc");
    look_up(j, 'l');
    insert_text(j, "ldog"), insert_text(j, "lcat"), insert_text(j, "labc");
    look_up(j, 'l');
    if (!play(j)) return false;
    for (int32_t i = 0, seen = 0; i < j->n; i++) {
        char is[16] = "";
        if (j->insert[i]) continue;
        for (int32_t t = 0; t < 3 * j->count[i]; t++) is[t] = (char)j->out[i * 15 + t];
        if (strcmp(is, due[seen]) != 0)
            result_set(j->r, STATE_ERROR, "the oracle finds '%s' where '%s' is stated", is,
                       due[seen]);
        seen++;
    }
    return j->r->state == STATE_PASS;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const int32_t what = c->pool.what;
    job *j = calloc(1, sizeof *j);
    if (!j) {
        result_set(r, STATE_ERROR, "the suite is short of memory");
        return;
    }
    j->x = x, j->r = r;
    j->kind = c->pool.kind, j->N = c->pool.N, j->G = c->pool.G;
    j->V = j->ids = c->pool.V;
    j->zero = c->drawn;
    j->rng = check_seed(x, c, 0);
    if (what == GRID ? play_all(j, c->n) : what == IDS ? refuse_ids(j) : play_text(j))
        result_set(r, STATE_PASS, "%lld look-ups and refusals as specified",
                   (long long)r->compared);
    free(j);
}

const check check_pool_values = {
    .name = "pool.values",
    .clauses = "POOL-01 POOL-02 POOL-03 POOL-04 POOL-05 POOL-06 CLM-10",
    .summary = "a pool of n-grams, operation by operation, against lists",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
