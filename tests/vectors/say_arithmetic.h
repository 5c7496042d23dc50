/* say_arithmetic.h - what the reference answers to an operation of chapter 1. */
#ifndef ASSAY_TESTS_SAY_ARITHMETIC_H
#define ASSAY_TESTS_SAY_ARITHMETIC_H

#include "vectors/read/operation.h"

/* False: memory is short, or the reference refuses the inputs. */
bool say_arithmetic(const vector_group *g, const vector_test *t, uint32_t *word);

#endif
