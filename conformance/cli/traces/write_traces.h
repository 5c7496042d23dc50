/* write_traces.h - what built-in implementations write down of the trace vectors, in the form
 * of traces.h. Clauses TRC-01, TRC-02. The reference's code and the mutants' run in the calling
 * process: for `assay traces`, never for the process of `assay run`. */
#ifndef ASSAY_CONFORMANCE_CLI_TRACES_WRITE_TRACES_H
#define ASSAY_CONFORMANCE_CLI_TRACES_WRITE_TRACES_H

#include "vectors/read/vectors.h"

/* Has the implementation of that spec traces of its own? ref, gpu, and the mutants of the
 * methods; those of gpu are written by a program of its own (conformance/subjects/gpu/traces.c), not here. */
bool writes_traces(const char *spec);

/* Decodes all trace vectors of the set. False, with the reason: the file cannot be written. */
bool write_traces(const char *spec, const vector_set *vectors, const char *file, char *why,
                  size_t why_size);

#endif
