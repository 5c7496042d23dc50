/* fault.h - the operations of chapter 1 with one fault each: what plausible implementations
 * compute instead. The generator uses them to show that a vector catches a fault, by other
 * bits. */
#ifndef ASSAY_VECTORS_READ_FAULT_H
#define ASSAY_VECTORS_READ_FAULT_H

#include "conformance/oracle/arithmetic/arithmetic.h"
#include "vectors/read/operation.h"

/* The answer with the fault, a name of the operation's list. False: memory is short. A fault
 * that an operation does not have changes nothing. */
bool fault_answer(const char *fault, const operation *op, const int32_t *size,
                  const float *const *in, float *y);

/* What the words of two inputs of `frequencies` mean. */
double operation_theta(const float *in);
oracle_llama3 operation_scaling(const float *in);

#endif
