/* shards.h - the tensors of a folder: one model.safetensors, or the shards that
 * model.safetensors.index.json names. */
#ifndef ASSAY_REF_LOAD_SHARDS_H
#define ASSAY_REF_LOAD_SHARDS_H

#include <jansson.h>
#include "ref/load/file.h"
#include "ref/load/safetensors.h"

typedef struct {
    char name[256]; /* of the file, in the folder */
    as_file file;
    as_safetensors tensors;
} as_shard;

typedef struct {
    size_t count;
    as_shard *shard; /* [count], by name */
} as_shards;

/* Reads the text of an index: its map from tensors to files, each a plain name. The caller
 * releases the map with json_decref; NULL and an error otherwise. */
json_t *as_index_parse(const void *text, size_t size, const char *file, as_error *e);

/* Opens the tensors of a folder. model.safetensors is taken if it is there, as transformers
 * does; otherwise the index, which must name every tensor of its shards in the right one and no
 * other. AS_BAD_INPUT, AS_NO_MEMORY. */
as_status as_shards_open(const char *folder, as_shards *shards, as_error *e);
void as_shards_close(as_shards *shards);

/* The tensor of that name and its data, or NULL. */
as_st_tensor *as_shards_find(const as_shards *shards, const char *name, const void **data);

#endif
