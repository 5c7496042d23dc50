/* config.h - what config.json and generation_config.json of a Hugging Face folder say about a
 * model, as transformers 4 and 5 write them. */
#ifndef ASSAY_REF_LOAD_CONFIG_H
#define ASSAY_REF_LOAD_CONFIG_H

#include <stddef.h>
#include "ref/load/model.h"

/* Reads the text of config.json: everything of info but parameters and bytes. Whatever would
 * change the computation and is not what llama.h computes is refused by name; so is a field
 * that is not known, since it could. AS_BAD_INPUT. */
as_status as_config_parse(const void *text, size_t size, const char *file, as_model_info *info,
                          as_error *e);

/* Reads the text of generation_config.json, whose bos_token_id and eos_token_id, if there,
 * stand in place of those of config.json: that is what transformers generates by. The rest of
 * it is about sampling, which is the caller's to choose. */
as_status as_generation_parse(const void *text, size_t size, const char *file,
                              as_model_info *info, as_error *e);

#endif
