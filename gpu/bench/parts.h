/* parts.h - the parts of bench_gpu, each with tables of its own in the report. */
#ifndef ASSAY_GPU_BENCH_PARTS_H
#define ASSAY_GPU_BENCH_PARTS_H

#include "gpu/bench/bench.h"

/* The matrix product (bench_products.c). */
void ag_bench_products(ag_bench *b);

/* The acceptance rules and the served transform (bench_rules.c). */
void ag_bench_rules(ag_bench *b);

/* Whole steps of the language model (bench_steps.c). */
void ag_bench_steps(ag_bench *b);

/* A row alone and among others, ours and cuBLAS's (bench_shapes.c). */
void ag_bench_shapes(ag_bench *b);

/* Tokens a second (bench_decode.c). */
void ag_bench_decode(ag_bench *b);

#endif
