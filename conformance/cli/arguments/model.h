/* Models and prompts of the small subcommands: a folder becomes a language model, a text
 * becomes tokens and back. Text needs the byte vocabulary of the trained pair (ids 0 to 255 are
 * the bytes, 256 begins, 257 ends); any other model is spoken to in ids. */
#ifndef ASSAY_CONFORMANCE_CLI_ARGUMENTS_MODEL_H
#define ASSAY_CONFORMANCE_CLI_ARGUMENTS_MODEL_H

#include <stdbool.h>
#include <stdio.h>

#include "ref/load/model.h"

typedef struct {
    const char *folder;
    as_lm *lm;
    as_model_info info;
} model;

/* Loads `folder`, or vectors/models/PART of those that came with assay when folder is NULL.
 * False, after a message on standard error, when it cannot be used. */
bool model_load(model *m, const char *folder, const char *part,
                const as_llama_options *options);
void model_free(model *m);

/* Is its vocabulary the bytes? */
bool model_speaks_bytes(const model *m);

typedef struct {
    int32_t *token; /* [n] */
    int32_t n;
} token_list;

/* BOS, if the model has one, and the bytes of the text. False: out of memory. */
bool tokens_of_text(const model *m, const char *text, size_t length, token_list *list);

/* Decimal ids separated by white space or commas, each 0 to V-1; `source` names them in an
 * error. */
bool tokens_of_ids(const char *text, const char *source, int32_t V, token_list *list, char *why,
                   size_t why_size);

/* The whole of a file, with a 0 after it. NULL, with errno set, when it cannot be read. */
char *read_whole(const char *file, size_t *length);

/* The byte of a byte token; nothing for BOS and EOS. */
void print_token(FILE *out, const model *m, int32_t token);

#endif
