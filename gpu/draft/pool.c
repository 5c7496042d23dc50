/* pool.c - see pool.h: ids checked, memory for one batch, the arrays there and back. */
#include "gpu/draft/pool.h"

#include "ref/num/fixed.h"

/* ---- What is refused. -------------------------------------------------------------- */

/* Buckets for all insertions, 1 at least: one for each, and no more than keys. */
static int32_t buckets_for(const ag_pool_batch *b)
{
    int32_t insertions = 1;
    for (int32_t i = 0; i < b->n && insertions < b->V; i++) insertions += b->insert[i] != 0;
    return insertions;
}

static as_status check_numbers(const ag_pool_batch *b, as_error *e)
{
    if (b->V < 1 || b->G < 0 || b->length < 1 || b->n < 0)
        return as_fail(e, AS_BAD_INPUT,
                       "pool: vocabulary %d, %d values a key of %d tokens, %d operations",
                       (int)b->V, (int)b->G, (int)b->length, (int)b->n);
    if (b->V > AS_MAX_VOCAB)
        return as_fail(e, AS_LIMIT, "vocabulary of %d; it must be 1 to %d", (int)b->V,
                       (int)AS_MAX_VOCAB);
    if ((int64_t)b->G * b->length >= INT32_MAX)
        return as_fail(e, AS_LIMIT, "pool: %d values of %d tokens for a key", (int)b->G,
                       (int)b->length);
    return AS_OK;
}

static as_status check_operation(const ag_pool_batch *b, int32_t i, as_error *e)
{
    const int32_t *value = b->value + (size_t)i * (size_t)b->length;
    if (!b->insert[i] && (b->key[i] < 0 || b->key[i] >= b->V))
        return as_fail(e, AS_BAD_INPUT,
                       "case %d: pool: the key %d is looked up; it must be 0 to %d", (int)i,
                       (int)b->key[i], (int)b->V - 1);
    for (int32_t t = -1; b->insert[i] && t < b->length; t++) {
        const int32_t token = t < 0 ? b->key[i] : value[t];
        if (token < 0 || token >= b->V)
            return as_fail(e, AS_BAD_INPUT,
                           "case %d: pool: token %d of an n-gram is %d; it must be 0 to %d",
                           (int)i, (int)t + 1, (int)token, (int)b->V - 1);
    }
    return AS_OK;
}

/* ---- There and back. --------------------------------------------------------------- */

/* An array of the host beside its twin on the device: what goes there, or else is filled there
 * with a byte and may come back. */
typedef struct {
    const void *from;
    void *to;
    size_t words;
    int fill;
    const char *what;
    void *at; /* on the device */
} array;

static as_status place(const ag_device *d, array *a, as_error *e)
{
    const size_t bytes = a->words * sizeof(int32_t);
    const as_status s = ag_alloc(d, &a->at, bytes, a->what, e);
    if (s != AS_OK) return s;
    return a->from ? ag_upload(d, a->at, a->from, bytes, e)
                   : ag_fill(d, a->at, a->fill, bytes, e);
}

as_status ag_pool_run(const ag_device *d, const ag_pool_batch *b, as_error *e)
{
    as_status s = check_numbers(b, e);
    for (int32_t i = 0; i < b->n && s == AS_OK; i++) s = check_operation(b, i, e);
    if (s != AS_OK || b->n == 0) return s;
    const size_t n = (size_t)b->n, length = (size_t)b->length, values = (size_t)b->G * length;
    enum { INSERT, KEY, VALUE, COUNT, OUT, NUMBER, BUCKET, BUCKETS, ARRAYS };
    array a[ARRAYS] = {
        [INSERT] = {.from = b->insert, .words = n, .what = "a pool's operations"},
        [KEY] = {.from = b->key, .words = n, .what = "a pool's operations"},
        [VALUE] = {.from = b->value, .words = n * length, .what = "a pool's operations"},
        [COUNT] = {.to = b->count, .words = n, .fill = 0xff, .what = "a pool's answers"},
        [OUT] = {.to = b->out, .words = n * values, .fill = 0xff, .what = "a pool's answers"},
        [NUMBER] = {.words = (size_t)b->V, .what = "a pool's keys"},
        [BUCKET] = {.words = (size_t)buckets_for(b) * (1 + values),
                    .fill = 0xff,
                    .what = "a pool's n-grams"},
        [BUCKETS] = {.words = 1, .what = "a pool's count"}};
    for (int i = 0; i < ARRAYS && s == AS_OK; i++) s = place(d, &a[i], e);
    ag_pool_batch there = *b;
    there.insert = a[INSERT].at, there.key = a[KEY].at, there.value = a[VALUE].at;
    there.count = a[COUNT].at, there.out = a[OUT].at;
    if (s == AS_OK) s = ag_pool_launch(d, &there, a[NUMBER].at, a[BUCKET].at, a[BUCKETS].at, e);
    for (int i = COUNT; i <= OUT && s == AS_OK; i++)
        s = ag_download(d, a[i].to, a[i].at, a[i].words * sizeof(int32_t), e);
    for (int i = 0; i < ARRAYS; i++) ag_free(a[i].at);
    return s;
}
