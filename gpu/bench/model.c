/* model.c - see model.h. */
#include "gpu/bench/model.h"

const ag_shape ag_shapes[AG_SHAPES] = {
    {"1.1B",
     {.V = 32000,
      .layers = 22,
      .hidden = 2048,
      .heads = 32,
      .kv_heads = 4,
      .head_dim = 64,
      .ffn = 5632,
      .max_positions = 1024,
      .eps = 1e-5f,
      .rope = {.theta = 10000}}},
    {"8B",
     {.V = 128256,
      .layers = 32,
      .hidden = 4096,
      .heads = 32,
      .kv_heads = 8,
      .head_dim = 128,
      .ffn = 14336,
      .max_positions = 1024,
      .eps = 1e-5f,
      .rope = {.theta = 500000}}},
    {"dry",
     {.V = 40,
      .layers = 2,
      .hidden = 24,
      .heads = 4,
      .kv_heads = 2,
      .head_dim = 8,
      .ffn = 36,
      .max_positions = 300,
      .eps = 1e-5f,
      .rope = {.theta = 10000}}},
    {"draft",
     {.V = 32000,
      .layers = 4,
      .hidden = 512,
      .heads = 8,
      .kv_heads = 2,
      .head_dim = 64,
      .ffn = 1536,
      .max_positions = 1024,
      .eps = 1e-5f,
      .rope = {.theta = 10000}}},
};

typedef struct {
    ag_bench *b;
    uint64_t seed; /* of the next weights */
} filling;

static as_status fill(void *with, void *at, size_t bytes, as_storage storage, as_error *e)
{
    filling *f = with;
    return ag_fill_weights(&f->b->device, at, bytes, storage, f->seed++, e);
}

as_lm *ag_model_make(ag_bench *b, const as_llama_config *c, as_storage s,
                     const ag_llama_options *o)
{
    as_lm *lm;
    filling f = {b, 1};
    const ag_llama_maker maker = {s, fill, &f};
    ag_bench_check(b, ag_llama_make(&b->device, c, &maker, o, &lm, &b->e));
    return lm;
}

double ag_model_needs(const as_llama_config *c, as_storage s)
{
    const double H = c->hidden, q = (double)c->heads * c->head_dim,
                 kv = (double)c->kv_heads * c->head_dim;
    const double layer = H * (2 * q + 2 * kv) + 3 * H * c->ffn;
    return 1.125 * (c->layers * layer + 2 * H * c->V) * (double)as_storage_size(s) + 1e9;
}

const char *ag_products_name(ag_products p)
{
    return p == AG_CANONICAL ? "ours" : p == AG_FREE ? "cuBLAS, free" : "cuBLAS, fixed shape";
}

int ag_bench_library(ag_bench *b)
{
    ag_cublas *c;
    if (ag_cublas_open(&b->device, AS_F32, &c, &b->e) != AS_OK) {
        printf("cuBLAS: not run: %s\n\n", b->e.text);
        return 0;
    }
    const int version = ag_cublas_version(c);
    if (version > 0)
        printf("cuBLAS %d.%d.%d.\n\n", version / 10000, version / 100 % 100, version % 100);
    else
        printf("cuBLAS: the emulator's twin stands for it.\n\n");
    ag_cublas_close(c);
    return 1;
}
