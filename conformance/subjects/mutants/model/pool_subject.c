/* pool_subject.c - see pool_subject.h. */
#include "conformance/subjects/mutants/model/pool_subject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/mutants/chain/subject.h"
#include "conformance/subjects/mutants/model/method_pool.h"

typedef struct {
    const char *name;
    fault_point fault;
    manner manner;
    method_pool pool; /* of the last batch: nothing a right implementation reads */
    char error[240];
} pool_subject;

static pool_subject *self(iut *x)
{
    return (pool_subject *)x;
}

bool pool_setting(setting_name name)
{
    const manner how = setting_of(name)->manner;
    return how == MANNER_POOL || how == MANNER_POOL_STAMPED;
}

/* ---- Life ---------------------------------------------------------------------------- */

iut *pool_subject_create(const char *name, variant v, char *error, size_t error_size)
{
    pool_subject *a = calloc(1, sizeof *a);
    if (!a) {
        snprintf(error, error_size, "mutant %s: out of memory", name);
        return NULL;
    }
    a->name = name;
    a->fault = v.fault;
    a->manner = setting_of(v.setting)->manner;
    return (iut *)a;
}

static void destroy(iut *x)
{
    method_pool_close(&self(x)->pool);
    free(x);
}

static const char *last_error(iut *x)
{
    return self(x)->error;
}

static iut_status claims(iut *x, iut_claims *c)
{
    const iut_claims all = {.size = sizeof all,
                            .name = self(x)->name,
                            .version = "1",
                            .device = "cpu",
                            .pools = IUT_POOL_LRU | IUT_POOL_RING};
    *c = all;
    return IUT_OK;
}

static iut_status no_memory(pool_subject *a)
{
    snprintf(a->error, sizeof a->error, "pool: out of memory");
    return IUT_NO_MEMORY;
}

/* ---- What is asked -------------------------------------------------------------------- */

static const int32_t *value_of(const iut_pool_batch *b, int32_t i)
{
    return b->value + (int64_t)i * (b->N - 1);
}

static int32_t *place_for(const iut_pool_batch *b, int32_t i, int32_t v)
{
    return b->out + ((int64_t)i * b->G + v) * (b->N - 1);
}

/* POOL-06: has operation i an id out of range? *id is then that. */
static bool bad_id(const iut_pool_batch *b, int32_t i, int32_t *id)
{
    *id = b->key[i];
    bool bad = *id < 0 || *id >= b->V;
    for (int32_t t = 0; t < b->N - 1 && b->insert[i] && !bad; t++) {
        *id = value_of(b, i)[t];
        bad = *id < 0 || *id >= b->V;
    }
    return bad;
}

static iut_status check(pool_subject *a, const iut_pool_batch *b)
{
    int32_t id;
    if (fault(a->fault, POOL_TAKES_ANY)) return IUT_OK;
    for (int32_t i = 0; i < b->n; i++) {
        if (!bad_id(b, i, &id)) continue;
        if (!b->insert[i] && fault(a->fault, POOL_LOOKS_UP_ANY)) continue;
        snprintf(a->error, sizeof a->error, "pool: operation %d: id %d, give 0 to %d", (int)i,
                 (int)id, (int)b->V - 1);
        return IUT_BAD_INPUT;
    }
    return IUT_OK;
}

/* ---- In a table ----------------------------------------------------------------------- */

static bool open_pool(pool_subject *a, const iut_pool_batch *b)
{
    method_pool *p = &a->pool;
    const bool ring = b->kind == IUT_POOL_RING, stays = fault(a->fault, POOL_LEAKS);
    int32_t G = b->G;
    if (fault(a->fault, POOL_ONE_MORE)) G++;
    if (fault(a->fault, POOL_ONE_LESS) && G > 0) G--;
    if (stays && p->V == b->V && p->G == G && p->length == b->N - 1 && p->ring == ring)
        return true;
    method_pool_close(p);
    const bool ok = method_pool_open(p, b->V, G, b->N - 1, ring);
    p->fault = a->fault;
    return ok;
}

static void insert(pool_subject *a, const iut_pool_batch *b, int32_t i)
{
    const int32_t *value = value_of(b, i);
    int32_t *shifted = malloc((size_t)b->N * sizeof *shifted);
    if (shifted && fault(a->fault, POOL_KEY_IN_VALUE)) {
        shifted[0] = b->key[i];
        memcpy(shifted + 1, value, (size_t)(b->N - 1) * sizeof *value);
        value = shifted;
    }
    method_pool_add(&a->pool, b->key[i], value);
    free(shifted);
}

/* Which of the n values of a key comes v-th (POOL-04). */
static int32_t in_order(const method_pool *p, int32_t key, int32_t v, int32_t n)
{
    const bool full = p->ring && n == p->G;
    if (fault(p->fault, POOL_NEWEST_FIRST)) return n - 1 - v;
    if (fault(p->fault, POOL_RING_BY_AGE) && full) return (p->inserted[key] + v) % n;
    return v;
}

static void look_up(pool_subject *a, const iut_pool_batch *b, int32_t i)
{
    method_pool *p = &a->pool;
    int32_t key = b->key[i];
    if (fault(a->fault, POOL_KEYS_COLLIDE)) key %= 1 << 10;
    const int32_t n = p->count[key] < b->G ? p->count[key] : b->G;
    const size_t size = (size_t)(b->N - 1) * sizeof *b->out;
    for (int32_t v = 0; v < n; v++)
        memcpy(place_for(b, i, v), method_pool_value(p, key, in_order(p, key, v, n)), size);
    b->count[i] = n;
    if (fault(a->fault, POOL_LOOKUP_REFRESHES) && n > 0)
        method_pool_add(p, key, place_for(b, i, 0));
    if (fault(a->fault, POOL_LOOKUP_TAKES)) p->count[key] = p->inserted[key] = 0;
}

static iut_status in_table(pool_subject *a, const iut_pool_batch *b)
{
    int32_t id;
    if (!open_pool(a, b)) return no_memory(a);
    for (int32_t i = 0; i < b->n; i++) {
        if (bad_id(b, i, &id)) /* for a fault */
            b->count[i] = b->insert[i] ? -1 : 0;
        else if (b->insert[i])
            insert(a, b, i);
        else
            look_up(a, b, i);
    }
    return IUT_OK;
}

/* ---- In nodes ------------------------------------------------------------------------- */

/* A value. Both kinds put a new one in the place of that with the lowest stamp: the oldest of
 * `lru`; and of `ring`, whose hits stamp nothing, the slot that is next. */
typedef struct node {
    struct node *next;
    int32_t key, slot;
    int64_t stamp;
    const int32_t *value; /* of the batch */
} node;

static bool has_value(const node *x, const int32_t *value, int32_t length)
{
    return memcmp(x->value, value, (size_t)length * sizeof *value) == 0;
}

/* The node that operation i stamps; NULL: none, or it has to be made. */
static node *find(node *list, const iut_pool_batch *b, int32_t i, int32_t *held, bool *had)
{
    node *lowest = NULL;
    *held = 0, *had = false;
    for (node *x = list; x; x = x->next) {
        if (x->key != b->key[i]) continue;
        ++*held;
        if (has_value(x, value_of(b, i), b->N - 1)) return *had = true, x;
        if (!lowest || x->stamp < lowest->stamp) lowest = x;
    }
    return *held < b->G ? NULL : lowest;
}

static bool stamp(node **list, const iut_pool_batch *b, int32_t i)
{
    int32_t held;
    bool had;
    if (b->G == 0) return true;
    node *x = find(*list, b, i, &held, &had);
    if (had && b->kind == IUT_POOL_RING) return true;
    if (!x) {
        x = malloc(sizeof *x);
        if (!x) return false;
        *x = (node){.next = *list, .key = b->key[i], .slot = held};
        *list = x;
    }
    x->stamp = i;
    x->value = value_of(b, i);
    return true;
}

/* The place of a value is the number of those before it. */
static void gather(const node *list, const iut_pool_batch *b, int32_t i)
{
    const bool ring = b->kind == IUT_POOL_RING;
    b->count[i] = 0;
    for (const node *x = list; x; x = x->next) {
        int32_t before = 0;
        if (x->key != b->key[i]) continue;
        for (const node *y = list; y; y = y->next)
            before += y->key == x->key && (ring ? y->slot < x->slot : y->stamp < x->stamp);
        memcpy(place_for(b, i, before), x->value, (size_t)(b->N - 1) * sizeof *x->value);
        b->count[i]++;
    }
}

static iut_status in_nodes(pool_subject *a, const iut_pool_batch *b)
{
    node *list = NULL;
    bool ok = true;
    for (int32_t i = 0; i < b->n && ok; i++)
        if (b->insert[i])
            ok = stamp(&list, b, i);
        else
            gather(list, b, i);
    while (list) {
        node *next = list->next;
        free(list);
        list = next;
    }
    return ok ? IUT_OK : no_memory(a);
}

static iut_status pool(iut *x, iut_pool_batch *b)
{
    pool_subject *a = self(x);
    const iut_status s = check(a, b);
    if (s != IUT_OK) return s;
    return a->manner == MANNER_POOL_STAMPED ? in_nodes(a, b) : in_table(a, b);
}

const iut_api pool_subject_operations = {.abi = IUT_ABI,
                                         .size = sizeof(iut_api),
                                         .destroy = destroy,
                                         .last_error = last_error,
                                         .claims = claims,
                                         .pool = pool};
