/* operation.h - the operations of chapter 1 as vectors name them: what sizes and inputs each
 * takes, and its answer, carried out by the oracle, as it should be or with one fault. */
#ifndef ASSAY_VECTORS_READ_OPERATION_H
#define ASSAY_VECTORS_READ_OPERATION_H

#include "conformance/oracle/arithmetic/arithmetic.h"
#include "vectors/read/model.h"

enum { OPERATION_SIZES = 12, OPERATION_INPUTS = 5 };

typedef struct {
    const char *name;
    const char *sizes;  /* names with blanks between */
    const char *inputs; /* of all inputs; optional ones, which come last, included */
    const char *faults; /* that make sense for it */
} operation;

/* NULL: no operation has this name. */
const operation *operation_find(const char *name);

/* How many inputs these sizes ask for, the words of each, and of the answer; -1: a size is out
 * of range. */
int32_t operation_shape(const operation *op, const int32_t *size, int32_t n[OPERATION_INPUTS],
                        int32_t *answer);

/* The answer; `fault` NULL: the right one. A fault that the operation does not have changes
 * nothing. False: memory is short. */
bool operation_answer(const vector_group *g, const vector_test *t, const char *fault,
                      uint32_t *word);

/* What the words of two inputs of `frequencies` mean. */
double operation_theta(const float *in);
oracle_llama3 operation_scaling(const float *in);

/* Entries of a procedural input (PAN-04). */
void operation_uniform(const vector_input *form, uint32_t *word /* [n] */);

#endif
