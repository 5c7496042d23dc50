/* folder.h - the weights of a network for the oracle, read from a folder of config.json and
 * safetensors files (one, or shards with an index). A second reader, written apart from the
 * reference's, so that a fault of loading cannot cancel out. It is for the project's own
 * models: it checks what it needs to be safe and sure of its numbers, and refuses the rest. */
#ifndef ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_FOLDER_H
#define ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_FOLDER_H

#include "conformance/oracle/arithmetic/transformer.h"

typedef struct oracle_folder oracle_folder;

/* NULL: `why` names the file and what is wrong in it. */
oracle_folder *oracle_folder_open(const char *folder, char *why, size_t why_size);
void oracle_folder_close(oracle_folder *f); /* NULL is allowed */

/* The model; valid until the folder is closed. */
const oracle_model *oracle_folder_model(const oracle_folder *f);

#endif
