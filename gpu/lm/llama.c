/* llama.c - the life of a model on the device: its options checked, its weights packed and
 * carried over or made there, everything allocated that its steps will need, its end. */
#include "gpu/lm/llama.h"

#include <stdlib.h>
#include <string.h>
#include "gpu/lm/llama_model.h"
#include "gpu/lm/layer.h"
#include "ref/num/rope.h"

enum {
    SOME = 4096,        /* positions whose cosines and sines are computed at a time */
    LEAST_ATTENDED = 8, /* rows that attention has room for in any case, up to a tile */
    MOST_SEQUENCES =
        65535,          /* and panels of a matrix: what a grid has in its second dimension */
    KERNELS = 32 << 20, /* bytes that loading all kernels takes at most */
};
static const size_t MOST_SUMS = (size_t)256
                                << 20; /* bytes for attention's sums, if that is enough */

static as_status check_options(const as_llama_config *c, const ag_llama_options *o, as_error *e)
{
    if (o->positions < 0 || o->positions > c->max_positions)
        return as_fail(e, AS_BAD_INPUT, "model: %d positions; it has been made for 1 to %d",
                       (int)o->positions, (int)c->max_positions);
    if (o->rows < 1 || o->rows > INT32_MAX / 8)
        return as_fail(e, AS_BAD_INPUT, "model: %d rows a forward; it must be 1 to %d",
                       (int)o->rows, INT32_MAX / 8);
    if (o->tile < 0 || o->tile > AG_TILE)
        return as_fail(e, AS_BAD_INPUT, "model: tiles of %d rows; it must be 1 to %d",
                       (int)o->tile, AG_TILE);
    if (o->attended < 0)
        return as_fail(e, AS_BAD_INPUT, "model: attention of %d rows; it must be 1 or more",
                       (int)o->attended);
    if (o->sequences < 1 || o->sequences > MOST_SEQUENCES)
        return as_fail(e, AS_BAD_INPUT, "model: %d sequences; it must be 1 to %d",
                       (int)o->sequences, MOST_SEQUENCES);
    if ((uint32_t)o->products > AG_FIXED_SHAPE || (uint32_t)o->storage > AS_BF16)
        return as_fail(e, AS_BAD_INPUT, "model: products %d of storage %d are unknown",
                       (int)o->products, (int)o->storage);
    return AS_OK;
}

/* ---- Weights. ---------------------------------------------------------------------------- */

/* One loading of all weights: the first failure stays and names the tensor. */
typedef struct {
    model *m;
    const ag_llama_maker *maker; /* NULL: the weights are on the host */
    int32_t layer;               /* -1: outside of the layers */
    as_status status;
    as_error *e;
} loading;

/* A matrix, or its rows from some output on. */
typedef struct {
    const char *name;
    as_tensor t;
    int32_t N;
} part;

static void blame(loading *p, const char *name, as_status s, const as_error *why)
{
    p->status = s;
    if (p->layer < 0)
        as_fail(p->e, s, "%s: %s", name, why->text);
    else
        as_fail(p->e, s, "layer %d, %s: %s", (int)p->layer, name, why->text);
}

/* Packs a part alone: what is wrong with its weights is said of it. */
static bool pack_part(loading *p, const part *a, int32_t K, as_matrix *m)
{
    as_error why;
    const as_status s = a->t.data ? as_matrix_pack(m, a->t.data, a->N, K, a->t.storage, &why)
                                  : as_fail(&why, AS_BAD_INPUT, "there are no weights");
    if (s != AS_OK) blame(p, a->name, s, &why);
    return s == AS_OK;
}

/* The rows of a part, widened to binary32 if it is not stored as `storage`. */
static void copy_part(loading *p, const part *a, int32_t K, as_storage storage, char *to)
{
    const size_t row = (size_t)K * as_storage_size(storage);
    as_matrix m = {.panel = NULL};
    if (a->t.data && a->t.storage == storage)
        memcpy(to, a->t.data, (size_t)a->N * row);
    else if (pack_part(p, a, K, &m))
        for (int32_t n = 0; n < a->N; n++)
            as_matrix_row(&m, n, (float *)(void *)(to + (size_t)n * row));
    as_matrix_free(&m);
}

/* Of rows as many as a maker fills. */
static int64_t matrix_bytes(const ag_matrix *m)
{
    const int64_t panels = ((int64_t)m->N + AS_PANEL - 1) / AS_PANEL;
    const int64_t size = (int64_t)as_storage_size(m->storage);
    if (m->in_rows) return ((int64_t)m->N * m->K * size + 15) / 16 * 16;
    return panels * AS_PANEL * m->K * size;
}

/* Memory on the device that the maker fills. */
static as_status make(loading *p, void **at, size_t bytes, as_storage storage, as_error *why)
{
    const as_status s = ag_alloc(&p->m->device, at, bytes, "weights", why);
    return s == AS_OK ? p->maker->fill(p->maker->with, *at, bytes, storage, why) : s;
}

/* The matrix of the host, or with NULL the maker's, of the shape that `to` has. */
static void place(loading *p, const char *name, const as_matrix *m, ag_matrix *to)
{
    as_error why;
    as_status s = AS_OK;
    if ((int64_t)to->N > (int64_t)MOST_SEQUENCES * AS_PANEL)
        s = as_fail(&why, AS_LIMIT, "%d outputs; a grid has room for %d", (int)to->N,
                    MOST_SEQUENCES * AS_PANEL);
    if (s == AS_OK && !m)
        s = make(p, &to->panel, (size_t)matrix_bytes(to), to->storage, &why);
    else if (s == AS_OK)
        s = to->in_rows ? ag_fast_upload(&p->m->device, m, p->m->fast.storage, to, &why)
                        : ag_matrix_upload(&p->m->device, m, to, &why);
    if (s == AS_OK && !to->in_rows)
        s = ag_parts_reserve(&p->m->device, to, p->m->tile, &p->m->parts, &why);
    if (s != AS_OK) blame(p, name, s, &why);
}

static void upload(loading *p, const char *name, as_matrix *m, ag_matrix *to)
{
    *to = (ag_matrix){m->N, m->K, m->storage, NULL, p->m->fast.cublas != NULL};
    place(p, name, m, to);
    as_matrix_free(m);
}

static void make_matrix(loading *p, const char *name, int32_t N, int32_t K, ag_matrix *to)
{
    *to = (ag_matrix){N, K, p->maker->storage, NULL, p->m->fast.cublas != NULL};
    place(p, name, NULL, to);
}

static void load(loading *p, const char *name, as_tensor t, int32_t N, int32_t K, ag_matrix *to)
{
    as_matrix m = {.panel = NULL};
    if (p->status != AS_OK) return;
    if (p->maker)
        make_matrix(p, name, N, K, to);
    else if (pack_part(p, &(part){name, t, N}, K, &m))
        upload(p, name, &m, to);
}

/* Packs the rows of all parts. If that cannot be done, a part is to blame, or memory. */
static bool pack_parts(loading *p, const char *name, const part *a, int parts, const void *rows,
                       int32_t N, int32_t K, as_storage storage, as_matrix *m)
{
    as_error why;
    const as_status s = as_matrix_pack(m, rows, N, K, storage, &why);
    for (int i = 0; s != AS_OK && p->status == AS_OK && i < parts; i++) {
        as_matrix alone = {.panel = NULL};
        pack_part(p, &a[i], K, &alone);
        as_matrix_free(&alone);
    }
    if (s != AS_OK && p->status == AS_OK) blame(p, name, s, &why);
    return s == AS_OK;
}

/* Several matrices of the same input as one; their storage is kept if it is the same. */
static void load_together(loading *p, const char *name, const part *a, int parts, int32_t K,
                          ag_matrix *to)
{
    as_storage storage = a[0].t.storage;
    int32_t N = 0;
    if (p->status != AS_OK) return;
    for (int i = 0; i < parts; i++) {
        N += a[i].N;
        if (a[i].t.storage != storage) storage = AS_F32;
    }
    if (p->maker) {
        make_matrix(p, name, N, K, to);
        return;
    }
    const size_t row = (size_t)K * as_storage_size(storage), bytes = (size_t)N * row;
    as_error why;
    as_matrix m = {.panel = NULL};
    char *rows = malloc(bytes), *at = rows;
    if (!rows)
        blame(p, name, as_fail(&why, AS_NO_MEMORY, "no memory for %zu bytes", bytes), &why);
    for (int i = 0; p->status == AS_OK && i < parts; at += (size_t)a[i++].N * row)
        copy_part(p, &a[i], K, storage, at);
    if (p->status == AS_OK && pack_parts(p, name, a, parts, rows, N, K, storage, &m))
        upload(p, name, &m, to);
    free(rows);
}

static void make_vector(loading *p, const char *name, int32_t n, float **to)
{
    as_error why;
    void *at;
    const as_status s = make(p, &at, (size_t)model_round4(n) * sizeof **to, AS_F32, &why);
    *to = at;
    if (s != AS_OK) blame(p, name, s, &why);
}

/* Vectors one after the other, widened: a vector is a matrix of one row. */
static void load_vectors(loading *p, const part *a, int parts, float **to)
{
    size_t n = 0, at = 0;
    as_error why;
    if (p->status != AS_OK) return;
    for (int i = 0; i < parts; i++) n += (size_t)a[i].N;
    if (p->maker) {
        make_vector(p, a[0].name, (int32_t)n, to);
        return;
    }
    float *x = malloc(n * sizeof *x);
    void *device = NULL;
    as_status s = x ? ag_alloc(&p->m->device, &device, n * sizeof *x, "a vector", &why)
                    : as_fail(&why, AS_NO_MEMORY, "no memory for %zu numbers", n);
    *to = device;
    for (int i = 0; s == AS_OK && p->status == AS_OK && i < parts; at += (size_t)a[i++].N) {
        as_matrix row = {.panel = NULL};
        if (pack_part(p, &(part){a[i].name, a[i].t, 1}, a[i].N, &row))
            as_matrix_row(&row, 0, x + at);
        as_matrix_free(&row);
    }
    if (s == AS_OK && p->status == AS_OK)
        s = ag_upload(&p->m->device, *to, x, n * sizeof *x, &why);
    if (s != AS_OK) blame(p, a[0].name, s, &why);
    free(x);
}

static void load_layer(loading *p, const as_llama_config *c, const as_llama_layer *w,
                       model_layer *l)
{
    const int32_t H = c->hidden, q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    load_vectors(p, &(part){"attention norm", w->norm_attention, H}, 1, &l->norm_attention);
    load_vectors(p, &(part){"mlp norm", w->norm_mlp, H}, 1, &l->norm_mlp);
    load_together(p, "q, k and v", (part[]){{"q", w->q, q}, {"k", w->k, kv}, {"v", w->v, kv}},
                  3, H, &l->qkv);
    load(p, "o", w->o, H, q, &l->o);
    load_together(p, "gate and up", (part[]){{"gate", w->gate, c->ffn}, {"up", w->up, c->ffn}},
                  2, H, &l->gate_up);
    load(p, "down", w->down, H, c->ffn, &l->down);
    if (c->qkv_bias)
        load_vectors(p,
                     (part[]){{"q bias", w->q_bias, q},
                              {"k bias", w->k_bias, kv},
                              {"v bias", w->v_bias, kv}},
                     3, &l->bias);
    if (!c->qk_norm) return;
    load_vectors(p, &(part){"q norm", w->q_norm, c->head_dim}, 1, &l->q_norm);
    load_vectors(p, &(part){"k norm", w->k_norm, c->head_dim}, 1, &l->k_norm);
}

/* The weights are those of the host, or the maker's, the other being NULL. */
static as_status load_all(model *m, const as_llama_weights *weights,
                          const ag_llama_maker *maker, as_error *e)
{
    static const as_llama_weights none;
    static const as_llama_layer no_layer;
    const as_llama_config *c = &m->config;
    const as_llama_weights *w = maker ? &none : weights;
    loading p = {m, maker, -1, AS_OK, e};
    load(&p, "embedding", w->embedding, c->V, c->hidden, &m->embedding);
    load_vectors(&p, &(part){"final norm", w->final_norm, c->hidden}, 1, &m->final_norm);
    if (!c->tied) load(&p, "output", w->output, c->V, c->hidden, &m->output);
    for (p.layer = 0; p.status == AS_OK && p.layer < c->layers; p.layer++)
        load_layer(&p, c, maker ? &no_layer : &w->layer[p.layer], &m->layer[p.layer]);
    return p.status;
}

/* Cosines and sines of all positions (ARI-10 to ARI-12). */
static as_status load_table(model *m, as_error *e)
{
    const int32_t pairs = m->config.head_dim / 2;
    const size_t floats = (size_t)SOME * (size_t)pairs;
    float *x = malloc(((size_t)pairs + 2 * floats) * sizeof *x), *c = x + pairs,
          *s = c + floats;
    if (!x) return as_fail(e, AS_NO_MEMORY, "no memory for rotary tables");
    as_status status = as_rope_frequencies(&m->config.rope, m->config.head_dim, x, e);
    for (int32_t first = 0; status == AS_OK && first < m->base.positions; first += SOME) {
        const int32_t n = model_least(m->base.positions - first, SOME);
        const size_t at = (size_t)first * (size_t)pairs;
        const size_t bytes = (size_t)n * (size_t)pairs * sizeof *x;
        as_rope_table(x, pairs, first, n, c, s);
        status = ag_upload(&m->device, m->cosine + at, c, bytes, e);
        if (status == AS_OK) status = ag_upload(&m->device, m->sine + at, s, bytes, e);
    }
    free(x);
    return status;
}

void ag_llama_overlap(as_lm *lm, int overlap)
{
    model_of(lm)->device.overlap = overlap;
}

int64_t ag_llama_weight_bytes(const as_lm *lm)
{
    const model *m = model_of(lm);
    int64_t sum = matrix_bytes(m->config.tied ? &m->embedding : &m->output);
    for (int32_t i = 0; i < m->config.layers; i++) {
        const model_layer *l = &m->layer[i];
        sum += matrix_bytes(&l->qkv) + matrix_bytes(&l->o) + matrix_bytes(&l->gate_up) +
               matrix_bytes(&l->down);
    }
    return sum;
}

/* ---- Memory. ----------------------------------------------------------------------------- */

/* How many sums of attention there is room for: one for each row, head and chunk. A row at the
 * end of the capacity needs `row` of them. */
static int64_t sums_of(const model *m, int32_t attended)
{
    const int64_t row = (int64_t)m->config.heads * m->cache.pages;
    const int64_t most = MOST_SUMS / ((2 + (size_t)m->cache.wide) * sizeof(float));
    const int64_t rows = attended                      ? attended
                         : most < LEAST_ATTENDED * row ? LEAST_ATTENDED
                                                       : most / row;
    return (rows < m->tile ? rows : m->tile) * row;
}

typedef struct {
    void *at; /* a pointer, to be set */
    const char *what;
    size_t bytes;
} buffer;

static as_status allocate(const model *m, const buffer *b, size_t n, as_error *e)
{
    for (size_t i = 0; i < n; i++) {
        void *at;
        const as_status s = ag_alloc(&m->device, &at, b[i].bytes, b[i].what, e);
        if (s != AS_OK) return s;
        memcpy(b[i].at, &at, sizeof at);
    }
    return AS_OK;
}

/* Whether the device has room for it, and for the kernels, which the driver loads when they are
 * first launched. */
static as_status check_room(const model *m, const buffer *b, size_t n, as_error *e)
{
    size_t bytes = KERNELS, left;
    for (size_t i = 0; i < n; i++) bytes += b[i].bytes;
    const as_status s = ag_memory(&m->device, &left, e);
    if (s != AS_OK || bytes <= left) return s;
    return as_fail(e, AS_LIMIT,
                   "model: %d sequences of %d positions and forwards of %d rows need %zu MiB "
                   "beside the weights; %.60s has %zu MiB left",
                   (int)m->cache.sequences, (int)m->base.positions, (int)m->base.rows,
                   (bytes >> 20) + 1, m->device.name, left >> 20);
}

/* What lies on the device beside the weights. */
static as_status allocate_all(model *m, as_error *e)
{
    enum { F = sizeof(float) };
    const as_llama_config *c = &m->config;
    const ag_cache *k = &m->cache;
    const size_t rows = (size_t)m->base.rows, T = (size_t)m->tile, d = (size_t)c->head_dim;
    const size_t shape = m->fast.shape > m->tile ? (size_t)m->fast.shape : T;
    const size_t H = (size_t)model_round4(c->hidden), q = (size_t)c->heads * d;
    const size_t qkv = q + 2 * (size_t)c->kv_heads * d, ffn = (size_t)c->ffn;
    const size_t y = (qkv > 2 * ffn ? qkv : 2 * ffn) + H, sums = (size_t)m->sums;
    const size_t inner = (q > ffn ? q : ffn) + 3;
    const size_t table = (size_t)k->sequences * (size_t)k->pages;
    const size_t angles = (size_t)m->base.positions * (d / 2);
    const buffer all[] = {
        {&m->cosine, "rotary tables", angles * F},
        {&m->sine, "rotary tables", angles * F},
        {&m->cache.pool, "the pages of the cache", table * (size_t)ag_page_floats(k) * F},
        {&m->cache.table, "the table of pages", table * sizeof(int32_t)},
        {&m->cache.length, "lengths", (size_t)k->sequences * sizeof(int32_t)},
        {&m->cache.waiting, "rows that wait", (size_t)ag_waiting_floats(k) * F},
        {&m->rows.position, "positions", rows * sizeof(int32_t)},
        {&m->rows.end, "ends of chunks", rows * sizeof(int32_t)},
        {&m->rows.seat, "seats", rows * AS_POSITIONS * sizeof(int32_t)},
        {&m->input, "rows", 3 * rows * sizeof(int32_t)},
        {&m->run, "runs", T * sizeof(ag_run)},
        {&m->runs, "runs", T * sizeof(int32_t)},
        {&m->x, "the stream", T * H * F},
        {&m->normed, "norms", T * H * F},
        {&m->y, "products", shape * y * F},
        {&m->inner, "inner products", T * inner * F},
        {&m->last, "final norms", rows * H * F},
        {&m->m, "sums of attention", sums * F},
        {&m->l, "sums of attention", sums * F},
        {&m->o, "sums of attention", sums * (size_t)k->wide * F},
        {&m->want, "wanted rows", T * sizeof(int32_t)},
        {&m->logits, "logits", shape * (size_t)c->V * F},
        {&m->path, "a path", (2 + rows) * sizeof(int32_t)},
        {&m->read, "a position", 2 * (size_t)k->kv_heads * (size_t)k->wide * F}};
    as_status s = check_room(m, all, sizeof all / sizeof *all, e);
    if (s == AS_OK) s = allocate(m, all, sizeof all / sizeof *all, e);
    if (s == AS_OK)
        s = ag_fill(&m->device, k->length, 0, (size_t)k->sequences * sizeof(int32_t), e);
    if (s == AS_OK) /* NaN: whoever reads what is not committed shows it */
        s = ag_fill(&m->device, k->pool, 0xff, table * (size_t)ag_page_floats(k) * F, e);
    if (s == AS_OK)
        s = ag_fill(&m->device, k->waiting, 0xff, (size_t)ag_waiting_floats(k) * F, e);
    return s;
}

/* What the host keeps. */
static as_status allocate_host(model *m, as_error *e)
{
    const size_t rows = (size_t)m->base.rows, sequences = (size_t)m->cache.sequences;
    const size_t pages = (size_t)m->cache.pages;
    m->layer = calloc((size_t)m->config.layers, sizeof *m->layer);
    m->host_rows = malloc(4 * rows * sizeof *m->host_rows);
    m->unused = malloc(sequences * pages * sizeof *m->unused);
    m->sequence = calloc(sequences, sizeof *m->sequence);
    bool all = m->layer && m->host_rows && m->unused && m->sequence;
    for (size_t i = 0; all && i < sequences; i++) {
        m->sequence[i].page = malloc(pages * sizeof(int32_t));
        m->sequence[i].parent = malloc(rows * sizeof(int32_t));
        all = m->sequence[i].page && m->sequence[i].parent;
    }
    if (!all) return as_fail(e, AS_NO_MEMORY, "no memory for a model");
    while (m->unused_pages < (int32_t)(sequences * pages))
        m->unused[m->unused_pages] = m->unused_pages, m->unused_pages++;
    return AS_OK;
}

/* What the products need, if they are not ours. */
static as_status open_fast(model *m, const ag_llama_options *o, as_storage storage, as_error *e)
{
    const int32_t q = m->config.heads * m->config.head_dim, H = m->config.hidden;
    const int32_t K = q > m->config.ffn ? q : m->config.ffn;
    const int32_t shape = o->tile ? o->tile : AG_TILE;
    return ag_fast_open(&m->device, o->products, storage,
                        o->products == AG_FIXED_SHAPE ? shape : m->tile, K > H ? K : H,
                        &m->fast, e);
}

static as_status build(model *m, const as_llama_weights *w, const ag_llama_maker *maker,
                       const ag_llama_options *o, as_error *e)
{
    as_status s = ag_attention_fits(&m->device, &m->cache, e);
    if (s == AS_OK) s = open_fast(m, o, maker ? maker->storage : o->storage, e);
    if (s == AS_OK) s = allocate_host(m, e);
    if (s == AS_OK) s = load_all(m, w, maker, e);
    if (s == AS_OK) s = allocate_all(m, e);
    return s == AS_OK ? load_table(m, e) : s;
}

/* ---- Life. ------------------------------------------------------------------------------- */

static const as_lm_ops operations = {
    model_open,     model_close,  model_forward, model_commit,
    model_truncate, model_length, model_free,
};

static void free_device(model *m)
{
    void *all[] = {m->final_norm,
                   m->cosine,
                   m->sine,
                   m->cache.pool,
                   m->cache.table,
                   m->cache.length,
                   m->cache.waiting,
                   m->rows.position,
                   m->rows.end,
                   m->rows.seat,
                   m->input,
                   m->run,
                   m->runs,
                   m->x,
                   m->normed,
                   m->y,
                   m->inner,
                   m->last,
                   m->m,
                   m->l,
                   m->o,
                   m->want,
                   m->logits,
                   m->path,
                   m->read};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ag_free(all[i]);
    ag_parts_free(&m->parts);
    ag_fast_free(&m->fast);
    ag_matrix_free(&m->embedding);
    ag_matrix_free(&m->output);
}

static void free_layer(model_layer *l)
{
    ag_matrix *matrix[] = {&l->qkv, &l->o, &l->gate_up, &l->down};
    float *vector[] = {l->norm_attention, l->norm_mlp, l->bias, l->q_norm, l->k_norm};
    for (size_t i = 0; i < sizeof matrix / sizeof *matrix; i++) ag_matrix_free(matrix[i]);
    for (size_t i = 0; i < sizeof vector / sizeof *vector; i++) ag_free(vector[i]);
}

void model_free(as_lm *lm)
{
    model *m = model_of(lm);
    ag_wait(&m->device, NULL);
    free_device(m);
    for (int32_t i = 0; m->layer && i < m->config.layers; i++) free_layer(&m->layer[i]);
    for (int32_t i = 0; m->sequence && i < m->cache.sequences; i++) {
        free(m->sequence[i].page);
        free(m->sequence[i].parent);
    }
    free(m->layer);
    free(m->sequence);
    free(m->host_rows);
    free(m->unused);
    free(m);
}

static as_status create(const ag_device *d, const as_llama_config *config,
                        const as_llama_weights *weights, const ag_llama_maker *maker,
                        const ag_llama_options *options, as_lm **lm, as_error *e)
{
    *lm = NULL;
    as_status s = as_llama_check(config, e);
    if (s == AS_OK && config->draft_V)
        s = as_fail(e, AS_BAD_INPUT, "model: a draft vocabulary of %d ids is not supported on the device",
                    (int)config->draft_V);
    if (s == AS_OK) s = check_options(config, options, e);
    if (s != AS_OK) return s;
    model *m = calloc(1, sizeof *m);
    if (!m) return as_fail(e, AS_NO_MEMORY, "no memory for a model");
    const int32_t positions = options->positions ? options->positions : config->max_positions;
    m->base = (as_lm){&operations, config->V, positions, options->rows};
    m->config = *config;
    m->device = *d;
    m->dice = options->layout_seed;
    m->cache = (ag_cache){.layers = config->layers,
                          .kv_heads = config->kv_heads,
                          .d = config->head_dim,
                          .wide = model_round4(config->head_dim),
                          .sequences = options->sequences,
                          .pages = model_chunks(positions),
                          .row_limit = options->rows};
    m->tile = model_least(options->tile ? options->tile : AG_TILE, options->rows);
    m->sums = sums_of(m, options->attended);
    s = build(m, weights, maker, options, e);
    if (s == AS_OK)
        *lm = &m->base;
    else
        model_free(&m->base);
    return s;
}

as_status ag_llama(const ag_device *d, const as_llama_config *config,
                   const as_llama_weights *weights, const ag_llama_options *options, as_lm **lm,
                   as_error *e)
{
    return create(d, config, weights, NULL, options, lm, e);
}

as_status ag_llama_make(const ag_device *d, const as_llama_config *config,
                        const ag_llama_maker *maker, const ag_llama_options *options,
                        as_lm **lm, as_error *e)
{
    return create(d, config, NULL, maker, options, lm, e);
}
