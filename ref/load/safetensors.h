/* safetensors.h - the header of a safetensors file: 8 bytes of length, little-endian, then JSON
 * that names each tensor's dtype, shape and place in the data behind it. */
#ifndef ASSAY_REF_LOAD_SAFETENSORS_H
#define ASSAY_REF_LOAD_SAFETENSORS_H

#include <stddef.h>
#include <stdint.h>
#include "ref/status.h"

enum { AS_MAX_RANK = 8, AS_MAX_HEADER = 100000000 /* the format's own limit, in bytes */ };

typedef struct {
    char *name;
    char dtype[8];
    int rank;
    int64_t shape[AS_MAX_RANK]; /* [rank] */
    int64_t elements;
    uint64_t begin, end; /* in data */
    int used;            /* for the caller, 0 at first */
} as_st_tensor;

typedef struct {
    size_t count;
    as_st_tensor *tensor; /* [count], by name */
    const unsigned char *data;
    uint64_t data_size;
} as_safetensors;

/* Reads the header of a whole file. What is accepted holds: no name twice, every dtype known,
 * shape, dtype and place of a tensor agree, and the tensors fill the data without overlap or
 * hole. st->data points into bytes. AS_BAD_INPUT, naming file and tensor; AS_NO_MEMORY. */
as_status as_safetensors_parse(const void *bytes, size_t size, const char *file,
                               as_safetensors *st, as_error *e);
void as_safetensors_free(as_safetensors *st);

/* The tensor of that name, or NULL. */
as_st_tensor *as_safetensors_find(const as_safetensors *st, const char *name);

#endif
