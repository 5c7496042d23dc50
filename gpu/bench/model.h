/* model.h - language models of the shapes of real ones, their weights random and made on the
 * device, for the benches that run whole steps. */
#ifndef ASSAY_GPU_BENCH_MODEL_H
#define ASSAY_GPU_BENCH_MODEL_H

#include "gpu/bench/bench.h"
#include "gpu/lm/llama.h"

typedef struct {
    const char *name;
    as_llama_config config;
} ag_shape;

/* Those of TinyLlama and of Llama 3, one for dry runs, and that of a draft model for the first.
 */
enum { AG_1B_SHAPE, AG_8B_SHAPE, AG_DRY_SHAPE, AG_DRAFT_SHAPE, AG_SHAPES };
extern const ag_shape ag_shapes[AG_SHAPES];

/* The caller frees it. */
as_lm *ag_model_make(ag_bench *b, const as_llama_config *c, as_storage s,
                     const ag_llama_options *o);

/* Whose products, in words. */
const char *ag_products_name(ag_products p);

/* Says in the report which library there is, or why there is none; 1: there is one. */
int ag_bench_library(ag_bench *b);

/* About the bytes that it needs: the weights, and one in eight and a gigabyte more. */
double ag_model_needs(const as_llama_config *c, as_storage s);

#endif
