/* lm_subject.c - see lm_subject.h. A sequence's cache is one array by position; the rows of its
 * last forward wait beside it until they are committed. */
#include "conformance/subjects/mutants/model/lm_subject.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/mutants/chain/subject.h"
#include "conformance/subjects/mutants/model/lm_net.h"
#include "ref/num/environment.h"

enum { FAR = 256, PAGE = 16 }; /* a position, and positions of a page, of faults */

typedef struct {
    int32_t length;      /* committed */
    int32_t high;        /* positions that were ever written: for the faults that look there */
    int32_t shift;       /* added to positions: KV_POSITION_GOES_ON */
    int32_t requests;    /* truncations to 0 */
    int32_t last_commit; /* rows of it; 0 after anything else */
    int32_t sealed;      /* position whose entry stays: KV_PAGE_SEALED; 0: none */
    float *key, *value;  /* [layers][positions][kv] */
    int32_t waiting;     /* rows of the last forward */
    int32_t *token, *parent, *position; /* [rows] */
    float *row_key, *row_value;         /* [layers][rows][kv] */
} sequence;

typedef struct {
    const char *name;
    net net;
    int32_t sequences, positions, rows, kv; /* kv = KV heads * head_dim */
    uint32_t layout_seed;
    sequence *seq; /* [sequences]; NULL: no model */
    char error[240];
} lm_subject;

static lm_subject *self(iut *x)
{
    return (lm_subject *)x;
}

static iut_status fail(lm_subject *a, iut_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static iut_status fail(lm_subject *a, iut_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(a->error, sizeof a->error, format, list);
    va_end(list);
    return status;
}

bool lm_setting(setting_name name)
{
    const manner how = setting_of(name)->manner;
    return how >= MANNER_LM && how <= MANNER_LM_Q4;
}

/* ---- Life ---------------------------------------------------------------------------- */

iut *lm_subject_create(const char *name, variant v, char *error, size_t error_size)
{
    lm_subject *a = calloc(1, sizeof *a);
    if (!a) {
        snprintf(error, error_size, "mutant %s: out of memory", name);
        return NULL;
    }
    a->name = name;
    a->net.fault = v.fault;
    a->net.manner = setting_of(v.setting)->manner;
    return (iut *)a;
}

static void unload(lm_subject *a)
{
    for (int32_t i = 0; a->seq && i < a->sequences; i++) {
        sequence *q = &a->seq[i];
        free(q->key), free(q->value), free(q->token), free(q->parent), free(q->position);
        free(q->row_key), free(q->row_value);
    }
    free(a->seq);
    a->seq = NULL;
    net_close(&a->net);
}

static void destroy(iut *x)
{
    unload(self(x));
    free(x);
}

static const char *last_error(iut *x)
{
    return self(x)->error;
}

static iut_status claims(iut *x, iut_claims *c)
{
    const bool own = self(x)->net.manner == MANNER_LM_SELF;
    const iut_claims all = {.size = sizeof all,
                            .name = self(x)->name,
                            .version = "1",
                            .device = "cpu",
                            .greedy_identical = 1,
                            .lm_arithmetic = own ? IUT_LM_SELF_CONSISTENT : IUT_LM_CANONICAL};
    *c = all;
    return IUT_OK;
}

static bool open_sequence(lm_subject *a, sequence *q)
{
    const size_t layers = (size_t)a->net.m->config.layers, kv = (size_t)a->kv,
                 cache = layers * (size_t)a->positions * kv, rows = (size_t)a->rows + 1;
    q->key = calloc(cache, sizeof *q->key);
    q->value = calloc(cache, sizeof *q->value);
    q->token = calloc(rows, sizeof *q->token);
    q->parent = calloc(rows, sizeof *q->parent);
    q->position = calloc(rows, sizeof *q->position);
    q->row_key = calloc(layers * rows * kv, sizeof *q->row_key);
    q->row_value = calloc(layers * rows * kv, sizeof *q->row_value);
    return q->key && q->value && q->token && q->parent && q->position && q->row_key &&
           q->row_value;
}

static iut_status load_model(iut *x, iut_model *b)
{
    lm_subject *a = self(x);
    char why[200] = "out of memory";
    unload(a);
    if (!net_open(&a->net, b->folder, why, sizeof why)) {
        net_close(&a->net);
        return fail(a, IUT_BAD_INPUT, "model: %s", why);
    }
    const oracle_config *c = &a->net.m->config;
    a->kv = c->kv_heads * c->head_dim;
    a->sequences = b->sequences, a->positions = b->positions, a->rows = b->rows;
    a->layout_seed = b->layout_seed;
    a->seq = calloc((size_t)b->sequences, sizeof *a->seq);
    bool ok = a->seq != NULL;
    for (int32_t i = 0; ok && i < b->sequences; i++) ok = open_sequence(a, &a->seq[i]);
    if (!ok) {
        unload(a);
        return fail(a, IUT_NO_MEMORY, "model: out of memory");
    }
    b->shape[0] = c->V, b->shape[1] = c->layers;
    b->shape[2] = c->kv_heads, b->shape[3] = c->head_dim;
    return IUT_OK;
}

/* ---- The tree (TREE-01 to TREE-03) --------------------------------------------------- */

/* The rows of one sequence's share. */
typedef struct {
    sequence *q;
    int32_t rows, wants;
    const int32_t *token, *parent, *want;
    float *logits;
    net_setting setting;
    int32_t offset; /* LM_OTHERS_POSITION */
    int32_t first_rows, first_wants; /* LM_FIRST_PARENTS, LM_FIRST_WANTS: of the first share */
    const int32_t *first_parent, *first_want;
} share;

static int32_t clamp(int32_t x, int32_t low, int32_t high)
{
    return x < low ? low : x > high ? high : x;
}

static iut_status take_row(lm_subject *a, const share *h, int32_t r)
{
    const fault_point f = a->net.fault;
    const int32_t V = a->net.m->config.V;
    int32_t token = h->token[r], parent = h->parent[r];
    if (fault(f, LM_FIRST_PARENTS)) parent = r < h->first_rows ? h->first_parent[r] : r - 1;
    if (fault(f, LM_TOKEN_CLAMPED)) token = clamp(token, 0, V - 1);
    if (fault(f, LM_PARENT_UNCHECKED) && (parent < -1 || parent >= r)) parent = -1;
    if (token < 0 || token >= V)
        return fail(a, IUT_BAD_INPUT, "row %d: token %d, give 0 to %d", (int)r, (int)token,
                    (int)V - 1);
    if (parent < -1 || parent >= r)
        return fail(a, IUT_BAD_INPUT, "row %d: parent %d, give -1 or an earlier row", (int)r,
                    (int)parent);
    h->q->token[r] = token;
    h->q->parent[r] = parent;
    h->q->position[r] =
        parent < 0 ? h->q->length + h->q->shift + h->offset : h->q->position[parent] + 1;
    if (fault(f, LM_POSITION_BY_ROW)) h->q->position[r] = h->q->length + r;
    if (h->q->position[r] >= a->positions && !fault(f, KV_WRAPS) && h->q->shift == 0 &&
        h->offset == 0)
        return fail(a, IUT_UNSUPPORTED,
                    "forward: row %d is beyond the capacity of %d positions", (int)r,
                    (int)a->positions);
    return IUT_OK;
}

static iut_status take_rows(lm_subject *a, const share *h)
{
    for (int32_t r = 0; r < h->rows; r++) {
        const iut_status s = take_row(a, h, r);
        if (s != IUT_OK) return s;
    }
    for (int32_t i = 0; i < h->wants; i++)
        if ((h->want[i] < 0 || h->want[i] >= h->rows) && !fault(a->net.fault, LM_WANT_CLAMPED))
            return fail(a, IUT_BAD_INPUT, "wanted row %d, give 0 to %d", (int)h->want[i],
                        (int)h->rows - 1);
    h->q->waiting = h->rows;
    return IUT_OK;
}

/* ---- What a row sees (TREE-03, ARI-19) ----------------------------------------------- */

static float *cached(const lm_subject *a, float *cache, int32_t layer, int32_t at)
{
    return cache + ((int64_t)layer * a->positions + at % a->positions) * a->kv;
}

static float *waiting(const lm_subject *a, float *rows, int32_t layer, int32_t row)
{
    return rows + ((int64_t)layer * (a->rows + 1) + row) * a->kv;
}

static bool is_ancestor(const sequence *q, int32_t row, int32_t of)
{
    while (of > row) of = q->parent[of];
    return of == row;
}

/* The nearest earlier row of the same depth: the same place of the chain before. */
static bool is_cousin(const sequence *q, int32_t row, int32_t of)
{
    int32_t r = of - 1;
    while (r >= 0 && q->position[r] != q->position[of]) r--;
    return row == r;
}

static bool is_chain(const share *h)
{
    for (int32_t r = 0; r < h->rows; r++)
        if (h->parent[r] != r - 1) return false;
    return true;
}

static bool sees_row(const lm_subject *a, const sequence *q, int32_t r, int32_t other)
{
    const fault_point f = a->net.fault;
    if (fault(f, LM_SEES_SIBLINGS) || (fault(f, LM_FAR_SIBLINGS) && q->length >= FAR)) return other <= r;
    if (fault(f, LM_SEES_PARENT_ONLY)) return other == r || other == q->parent[r];
    if (fault(f, LAH_SEES_SPINE) && other == 1) return true;
    if (fault(f, LAH_SEES_ROW_BEFORE) && other == r - 1) return true;
    if (fault(f, LAH_SEES_COUSIN) && is_cousin(q, other, r)) return true;
    return is_ancestor(q, other, r);
}

/* Which committed positions count: all, without a fault. */
static int32_t committed(const lm_subject *a, const share *h)
{
    const sequence *q = h->q;
    if (fault(a->net.fault, KV_STALE_TAIL) && q->high > q->length) return q->high;
    if (fault(a->net.fault, KV_FAR_TAIL) && q->high > FAR && q->length < FAR) return FAR;
    if (fault(a->net.fault, KV_SKIPPED_STEP) && h->rows == 1 && q->last_commit > 1)
        return q->length - 1;
    if (fault(a->net.fault, LAH_ONE_POSITION_MORE) && !is_chain(h)) return q->length + 1;
    if (fault(a->net.fault, LAH_ONE_POSITION_LESS) && !is_chain(h)) return q->length - 1;
    return q->length;
}

/* What lies in the cache at a position, as a row meets it. */
static oracle_entry in_cache(const lm_subject *a, const share *h, int32_t layer, int32_t t,
                             bool seen)
{
    return (oracle_entry){.chunk = net_chunk(&a->net, &h->setting, t),
                          .seen = seen,
                          .key = cached(a, h->q->key, layer, t),
                          .value = cached(a, h->q->value, layer, t)};
}

/* The row whose entry stands for that of row k: where branches share a position's slot, the last one written. */
static int32_t slot(const lm_subject *a, const share *h, int32_t k)
{
    int32_t last = h->rows - 1;
    if (!fault(a->net.fault, LM_BRANCHES_SHARE)) return k;
    while (h->q->position[last] != h->q->position[k]) last--;
    return last;
}

/* The entries of row r, ascending by position; how many. */
static int32_t gather(const lm_subject *a, const share *h, int32_t layer, int32_t r,
                      oracle_entry *met)
{
    sequence *q = h->q;
    const fault_point f = a->net.fault;
    const bool zeros = fault(f, KV_MASK_BY_ZERO), all = fault(f, ARI_MASKED_MAXIMUM);
    const int32_t length = committed(a, h);
    int32_t n = 0;
    for (int32_t t = 0; t < length; t++) met[n++] = in_cache(a, h, layer, t, true);
    for (int32_t k = 0; k < (all ? h->rows : r + 1); k++) {
        const bool seen = k <= r && sees_row(a, q, r, k);
        if (!seen && !(all && q->position[k] > q->position[r])) continue;
        met[n++] = (oracle_entry){.chunk = net_chunk(&a->net, &h->setting, q->position[k]),
                                  .seen = seen,
                                  .key = waiting(a, q->row_key, layer, slot(a, h, k)),
                                  .value = waiting(a, q->row_value, layer, slot(a, h, k))};
    }
    /* The tail of the page, masked by a weight of 0. */
    for (int32_t t = q->position[r] + 1; zeros && t % 64 && t < a->positions; t++)
        met[n++] = in_cache(a, h, layer, t, false);
    return n;
}

/* LM_LAYOUT_ORDER: another layout turns the order within each page around. */
static void reorder(const lm_subject *a, oracle_entry *met, int32_t n)
{
    if (!fault(a->net.fault, LM_LAYOUT_ORDER) || a->layout_seed == 0) return;
    for (int32_t from = 0, to; from < n; from = to) {
        to = from + 1;
        while (to < n && met[to].chunk == met[from].chunk) to++;
        for (int32_t i = from, j = to - 1; i < j; i++, j--) {
            const oracle_entry swap = met[i];
            met[i] = met[j], met[j] = swap;
        }
    }
}

/* ---- The network (NET-01 to NET-03) -------------------------------------------------- */

typedef struct {
    float *x, *normed, *q, *k, *v, *out, *y, *gate, *up; /* [rows][...] */
    oracle_entry *met;
} scratch;

static bool open_scratch(const lm_subject *a, int32_t rows, scratch *t)
{
    const oracle_config *c = &a->net.m->config;
    const size_t n = (size_t)rows, h = (size_t)c->hidden, d = (size_t)c->head_dim,
                 wide = (size_t)c->heads * d, kv = (size_t)c->kv_heads * d, f = (size_t)c->ffn,
                 total = n * (3 * h + 2 * wide + 2 * kv + 2 * f);
    t->x = malloc(total * sizeof *t->x);
    t->met = malloc(((size_t)a->positions + n + 64) * 2 * sizeof *t->met);
    if (!t->x || !t->met) return false;
    t->normed = t->x + n * h, t->y = t->normed + n * h, t->q = t->y + n * h;
    t->out = t->q + n * wide, t->k = t->out + n * wide, t->v = t->k + n * kv;
    t->gate = t->v + n * kv, t->up = t->gate + n * f;
    return true;
}

static void attention(const lm_subject *a, const share *h, int32_t layer, scratch *t)
{
    const oracle_config *c = &a->net.m->config;
    const oracle_layer *w = &a->net.m->layer[layer];
    const net_layer *l = &a->net.layer[layer];
    const int32_t wide = c->heads * c->head_dim;
    const size_t kv_bytes = (size_t)a->kv * sizeof(float);
    net_norm(&a->net, &h->setting, t->x, w->norm_attention, h->rows, c->hidden, t->normed);
    net_product(&a->net, &h->setting, &l->q, w->q_bias, t->normed, h->rows, t->q);
    net_product(&a->net, &h->setting, &l->k, w->k_bias, t->normed, h->rows, t->k);
    net_product(&a->net, &h->setting, &l->v, w->v_bias, t->normed, h->rows, t->v);
    for (int32_t r = 0; r < h->rows; r++) {
        net_turn(&a->net, w, h->q->position[r], t->q + (int64_t)r * wide,
                 t->k + (int64_t)r * a->kv);
        memcpy(waiting(a, h->q->row_key, layer, r), t->k + (int64_t)r * a->kv, kv_bytes);
        memcpy(waiting(a, h->q->row_value, layer, r), t->v + (int64_t)r * a->kv, kv_bytes);
    }
    for (int32_t r = 0; r < h->rows; r++) {
        const int32_t n = gather(a, h, layer, r, t->met);
        reorder(a, t->met, n);
        net_attend(&a->net, t->q + (int64_t)r * wide, t->met, n, t->out + (int64_t)r * wide);
    }
    net_product(&a->net, &h->setting, &l->o, NULL, t->out, h->rows, t->y);
}

static void mlp(const lm_subject *a, const share *h, int32_t layer, scratch *t)
{
    const oracle_config *c = &a->net.m->config;
    const net_layer *l = &a->net.layer[layer];
    net_norm(&a->net, &h->setting, t->x, a->net.m->layer[layer].norm_mlp, h->rows, c->hidden,
             t->normed);
    net_product(&a->net, &h->setting, &l->gate, NULL, t->normed, h->rows, t->gate);
    net_product(&a->net, &h->setting, &l->up, NULL, t->normed, h->rows, t->up);
    oracle_faulty_silu(&a->net.faulty, t->gate, t->up, h->rows * c->ffn, t->gate);
    net_product(&a->net, &h->setting, &l->down, NULL, t->gate, h->rows, t->y);
}

/* TREE-04: the wanted rows, in their order. */
static void answer(const lm_subject *a, const share *h, scratch *t)
{
    const oracle_config *c = &a->net.m->config;
    const fault_point f = a->net.fault;
    net_norm(&a->net, &h->setting, t->x, a->net.m->final_norm, h->rows, c->hidden, t->normed);
    for (int32_t i = 0; i < h->wants; i++) {
        int32_t row = h->want[i], below = 0;
        if (fault(f, LM_FIRST_WANTS) && h->first_wants > 0)
            row = h->first_want[i % h->first_wants] % h->rows;
        if (fault(f, LM_WANT_CLAMPED)) row = clamp(row, 0, h->rows - 1);
        if (fault(f, LM_WANTS_SORTED)) { /* the i-th smallest of them */
            for (row = 0; row < h->rows; row++) {
                for (int32_t k = 0; k < h->wants; k++) below += h->want[k] == row;
                if (below > i) break;
            }
        }
        if (fault(f, LM_LAST_LOGITS)) row = clamp(h->rows - h->wants + i, 0, h->rows - 1);
        net_product(&a->net, &h->setting, &a->net.output, NULL,
                    t->normed + (int64_t)row * c->hidden, 1, h->logits + (int64_t)i * c->V);
        oracle_place(a->net.m, h->logits + (int64_t)i * c->V);
    }
}

static iut_status compute(lm_subject *a, const share *h)
{
    const oracle_config *c = &a->net.m->config;
    scratch t = {0};
    const bool ok = open_scratch(a, h->rows, &t);
    for (int32_t r = 0; ok && r < h->rows; r++)
        memcpy(t.x + (int64_t)r * c->hidden,
               a->net.m->embedding + (int64_t)h->q->token[r] * c->hidden,
               (size_t)c->hidden * sizeof *t.x);
    for (int32_t layer = 0; ok && layer < c->layers; layer++) {
        attention(a, h, layer, &t);
        oracle_faulty_add(&a->net.faulty, t.x, t.y, h->rows * c->hidden);
        mlp(a, h, layer, &t);
        oracle_faulty_add(&a->net.faulty, t.x, t.y, h->rows * c->hidden);
    }
    if (ok) answer(a, h, &t);
    free(t.x);
    free(t.met);
    return ok ? IUT_OK : fail(a, IUT_NO_MEMORY, "forward: out of memory");
}

/* ---- Operations ---------------------------------------------------------------------- */

static iut_status no_model(lm_subject *a)
{
    return fail(a, IUT_BAD_INPUT, "there is no model; load one first");
}

static iut_status one_share(lm_subject *a, const iut_forward_batch *b, int32_t i, int64_t row,
                            int64_t want)
{
    sequence *q = &a->seq[b->sequence[i]];
    const share h = {.q = q,
                     .rows = b->row_count[i],
                     .wants = b->want_count[i],
                     .token = b->token + row,
                     .parent = b->parent + row,
                     .want = b->want + want,
                     .logits = b->logits + want * a->net.m->config.V,
                     .setting = {b->row_count[i], b->n, q->length},
                     .offset = fault(a->net.fault, LM_OTHERS_POSITION)
                                   ? a->seq[b->sequence[0]].length - q->length
                                   : 0,
                     .first_rows = b->row_count[0],
                     .first_wants = b->want_count[0],
                     .first_parent = b->parent,
                     .first_want = b->want};
    iut_status s = take_rows(a, &h);
    if (s == IUT_OK) s = compute(a, &h);
    if (s != IUT_OK && fault(a->net.fault, KV_REFUSAL_CLEARS)) q->length = 0;
    q->last_commit = 0;
    return s;
}

/* KV-04: nothing to commit, of any sequence of the forward. */
static void forget_rows(lm_subject *a, const iut_forward_batch *b)
{
    for (int32_t i = 0; i < b->n && !fault(a->net.fault, KV_REFUSAL_KEEPS_ROWS); i++)
        a->seq[b->sequence[i]].waiting = 0;
}

static iut_status forward(iut *x, iut_forward_batch *b)
{
    lm_subject *a = self(x);
    int64_t row = 0, want = 0;
    if (!a->seq) return no_model(a);
    forget_rows(a, b);
    if (b->rows > a->rows)
        return fail(a, IUT_UNSUPPORTED, "forward: %d rows, the capacity is %d", (int)b->rows,
                    (int)a->rows);
    const as_environment before = as_enter();
    iut_status s = IUT_OK;
    for (int32_t i = 0; s == IUT_OK && i < b->n; i++) {
        s = one_share(a, b, i, row, want);
        row += b->row_count[i], want += b->want_count[i];
    }
    if (s != IUT_OK) forget_rows(a, b);
    as_leave(before);
    return s;
}

/* KV-01: a chain from the prefix down. */
static bool is_path(const lm_subject *a, const sequence *q, const int32_t *path, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        if (path[i] < 0 || path[i] >= q->waiting) return false;
        if (fault(a->net.fault, KV_PATH_UNCHECKED)) continue;
        if (q->parent[path[i]] != (i ? path[i - 1] : -1)) return false;
    }
    return true;
}

/* LM_CACHE_BF16 keeps half of each number. */
static void copy_entries(const lm_subject *a, float *to, const float *from)
{
    for (int32_t k = 0; k < a->kv; k++) {
        uint32_t bits;
        memcpy(&bits, &from[k], sizeof bits);
        if (fault(a->net.fault, LM_CACHE_BF16)) bits &= 0xffff0000u;
        memcpy(&to[k], &bits, sizeof bits);
    }
}

static void keep_row(lm_subject *a, sequence *q, int32_t row, int32_t at)
{
    if (fault(a->net.fault, KV_PAGE_EDGE) && at % 64 == 0 && at > q->length) return;
    /* A prefix cache that takes the first entry of an earlier request for this one's. */
    if (fault(a->net.fault, KV_REUSE_DIRTY) && q->requests > 0 && at == 0) return;
    if (at > 0 && at == q->sealed) return;
    for (int32_t layer = 0; layer < a->net.m->config.layers; layer++) {
        copy_entries(a, cached(a, q->key, layer, at), waiting(a, q->row_key, layer, row));
        copy_entries(a, cached(a, q->value, layer, at), waiting(a, q->row_value, layer, row));
    }
}

/* KV_OVERLAP: the waiting rows lie behind the prefix, in the cache itself, and are moved from
 * the last to the first. */
static void move_backwards(lm_subject *a, sequence *q, const int32_t *path, int32_t n)
{
    const size_t size = (size_t)a->kv * sizeof(float);
    for (int32_t layer = 0; layer < a->net.m->config.layers; layer++)
        for (int32_t i = n; i-- > 0;) {
            memmove(waiting(a, q->row_key, layer, i), waiting(a, q->row_key, layer, path[i]),
                    size);
            memmove(waiting(a, q->row_value, layer, i),
                    waiting(a, q->row_value, layer, path[i]), size);
        }
    for (int32_t i = 0; i < n; i++) keep_row(a, q, i, q->length + i);
}

/* KV_FAINT_STALE: of the first row that was refused. */
static void leave_a_trace(lm_subject *a, sequence *q, int32_t n)
{
    for (int32_t layer = 0; layer < a->net.m->config.layers; layer++) {
        float *kept = cached(a, q->value, layer, q->length + n - 1);
        const float *refused = waiting(a, q->row_value, layer, n);
        for (int32_t i = 0; i < a->kv; i++) kept[i] += 0.002f * (refused[i] - kept[i]);
    }
}

/* KV_PAGE_SEALED: the first row that was refused ended a page, which is then not written again. */
static void seal_page(lm_subject *a, sequence *q, int32_t n)
{
    const int32_t at = q->length + n;
    if (at % PAGE != PAGE - 1) return;
    keep_row(a, q, n, at);
    q->sealed = at;
}

static iut_status commit_one(lm_subject *a, int32_t s, const int32_t *path, int32_t n,
                             int32_t *length)
{
    sequence *q = &a->seq[s];
    const fault_point f = a->net.fault;
    if (!is_path(a, q, path, n))
        return fail(a, IUT_BAD_INPUT, "commit: no path of rows of the last forward");
    q->last_commit = n;
    if (fault(f, KV_OVERLAP))
        move_backwards(a, q, path, n);
    else
        for (int32_t i = 0; i < n; i++)
            keep_row(a, q, fault(f, KV_WRONG_ROWS) ? i : path[i], q->length + i);
    if (fault(f, KV_FAINT_STALE) && n > 0 && n < q->waiting) leave_a_trace(a, q, n);
    if (fault(f, KV_PAGE_SEALED) && n < q->waiting) seal_page(a, q, n);
    if (fault(f, KV_NEIGHBOUR) && s > 0 && n > 0 && a->seq[s - 1].length > 0)
        for (int32_t layer = 0; layer < a->net.m->config.layers; layer++)
            copy_entries(a, cached(a, a->seq[s - 1].key, layer, a->seq[s - 1].length - 1),
                         waiting(a, q->row_key, layer, path[0]));
    q->length += n;
    if (q->length > q->high) q->high = q->length;
    if (!fault(f, KV_ROWS_KEPT)) q->waiting = 0;
    *length = q->length - (fault(f, KV_COUNT_SHORT) && n > 1);
    return IUT_OK;
}

static iut_status commit(iut *x, iut_commit_batch *b)
{
    lm_subject *a = self(x);
    if (!a->seq) return no_model(a);
    int64_t at = 0;
    for (int32_t i = 0; i < b->n; i++) {
        const bool first = fault(a->net.fault, KV_FIRST_PATH) && b->path_count[i] == b->path_count[0];
        b->length[i] = a->seq[b->sequence[i]].length;
        if (fault(a->net.fault, KV_EMPTY_IGNORED) && b->path_count[i] == 0) continue;
        const iut_status s = commit_one(a, b->sequence[i], first ? b->path : b->path + at,
                                        b->path_count[i], &b->length[i]);
        if (s != IUT_OK) return s;
        at += b->path_count[i];
    }
    return IUT_OK;
}

static iut_status truncate_to(iut *x, iut_truncate_batch *b)
{
    lm_subject *a = self(x);
    const fault_point f = a->net.fault;
    if (!a->seq) return no_model(a);
    for (int32_t i = 0; i < b->n; i++) {
        sequence *q = &a->seq[b->sequence[i]];
        const int32_t keep = b->keep[i], cut = q->length - keep;
        if (keep < 0 || cut < 0)
            return fail(a, IUT_BAD_INPUT, "truncate: %d, give 0 to %d", (int)keep,
                        (int)q->length);
        if (fault(f, KV_POSITION_GOES_ON) && keep > 0) q->shift += cut > 0;
        if (keep == 0) q->requests++, q->shift = 0, q->sealed = 0;
        q->length = keep + (fault(f, KV_TRUNCATE_ONE_MORE) && cut > 0);
        if (fault(f, KV_FIRST_KEEP) && b->keep[0] <= keep + cut) q->length = b->keep[0];
        if (!fault(f, KV_ROWS_KEPT)) q->waiting = 0;
        q->last_commit = 0;
        b->length[i] = keep;
    }
    return IUT_OK;
}

static iut_status cache_read(iut *x, iut_cache_batch *b)
{
    lm_subject *a = self(x);
    const size_t size = (size_t)a->kv * sizeof(float);
    if (!a->seq) return no_model(a);
    for (int32_t i = 0; i < b->n; i++) {
        const sequence *q = &a->seq[b->sequence[i]];
        if (fault(a->net.fault, KV_FIRST_READ) && b->position[i] < a->seq[b->sequence[0]].length)
            q = &a->seq[b->sequence[0]];
        if (b->position[i] >= q->length)
            return fail(a, IUT_BAD_INPUT, "cache_read: position %d of %d", (int)b->position[i],
                        (int)q->length);
        memcpy(b->key + (int64_t)i * a->kv, cached(a, q->key, b->layer[i], b->position[i]),
               size);
        memcpy(b->value + (int64_t)i * a->kv, cached(a, q->value, b->layer[i], b->position[i]),
               size);
        if (fault(a->net.fault, KV_KEY_SIGN)) /* stored for a kernel that subtracts */
            for (int32_t k = 0; k < a->kv; k++) b->key[(int64_t)i * a->kv + k] *= -1.0f;
    }
    return IUT_OK;
}

static iut_status cache_poison(iut *x)
{
    lm_subject *a = self(x);
    if (!a->seq) return no_model(a);
    for (int32_t i = 0; i < a->sequences; i++) {
        sequence *q = &a->seq[i];
        q->waiting = 0;
        for (int32_t layer = 0; layer < a->net.m->config.layers; layer++)
            for (int64_t k = (int64_t)q->length * a->kv; k < (int64_t)a->positions * a->kv; k++)
                q->key[(int64_t)layer * a->positions * a->kv + k] =
                    q->value[(int64_t)layer * a->positions * a->kv + k] = NAN;
    }
    return IUT_OK;
}

const iut_api lm_subject_operations = {.abi = IUT_ABI,
                                       .size = sizeof(iut_api),
                                       .destroy = destroy,
                                       .last_error = last_error,
                                       .claims = claims,
                                       .model = load_model,
                                       .forward = forward,
                                       .commit = commit,
                                       .truncate = truncate_to,
                                       .cache_read = cache_read,
                                       .cache_poison = cache_poison};

void lm_subject_company(iut *x, int32_t requests)
{
    self(x)->net.company = requests;
}
