/* say_arithmetic.h - what the reference answers to an operation of chapter 1. */
#ifndef ASSAY_TESTS_SAY_ARITHMETIC_H
#define ASSAY_TESTS_SAY_ARITHMETIC_H

#include "vectors/operation.h"

/* False: the reference has no entry of its own for the operation; its answer shows in others.
 */
bool say_arithmetic(const vector_group *g, const vector_test *t, uint32_t *word);

#endif
