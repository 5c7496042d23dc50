/* tokenizer.h - what ids stand for, by the tokenizer.json of a Hugging Face folder. Clause
 * VOC-05. */
#ifndef ASSAY_REF_LOAD_TOKENIZER_H
#define ASSAY_REF_LOAD_TOKENIZER_H

#include <stdint.h>
#include "ref/status.h"

/* Whether the ids 0 to V-1 stand for the same tokens in both folders. AS_OK, too, if one of the
 * folders has no tokenizer.json. AS_BAD_INPUT, naming the first id that differs and its two
 * tokens, or what of a file cannot be read. Files of up to 256 MiB are read. */
as_status as_tokenizers_match(const char *target, const char *draft, int32_t V, as_error *e);

#endif
