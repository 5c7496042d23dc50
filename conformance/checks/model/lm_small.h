/* lm_small.h - small models that show what the trained pair does not: long inputs, biases,
 * norms of single heads, Llama-3 scaling, half formats and their subnormals, separate output
 * matrices, heads wider than the stream. Their weights are procedural and random, so that only
 * bits can be said of them. Written as folders that anybody's loader reads. */
#ifndef ASSAY_CONFORMANCE_CHECKS_MODEL_LM_SMALL_H
#define ASSAY_CONFORMANCE_CHECKS_MODEL_LM_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The folder of the small model of that name ("long", "biased", "normed", "few", "fewer"),
 * written at the first call and removed when the program ends. Thread-safe. NULL: `why` says
 * why. */
const char *lm_small_folder(const char *name, char *why, size_t why_size);

/* Is there a small model of that name? */
bool lm_small_is(const char *name);
/* IUT_LLAMA ... of a small model. */
uint8_t lm_small_architecture(const char *name);

#endif
