/* lm_files.h - where the folders of small models lie, and how their files get there whole. */
#ifndef ASSAY_CONFORMANCE_CHECKS_MODEL_LM_FILES_H
#define ASSAY_CONFORMANCE_CHECKS_MODEL_LM_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { LM_FILES = 2, LM_FOLDER = 240 }; /* LM_FOLDER: room for the name of a folder */

/* A file of a model's folder. */
typedef struct {
    const char *name;
    const void *data;
    size_t size; /* bytes */
} lm_file;

/* Makes `folder`, with those above it, and the files in it. A file that is there with the same contents stays; any
 * other one is written under another name and renamed. So a reader sees a whole file or none, whoever writes beside.
 * False: errno says why. */
bool lm_files_write(const char *folder, const lm_file file[LM_FILES]);

/* The folder NAME-DIGEST of that contents, kept from run to run: in $ASSAY_CACHE, else in `assay` below
 * $XDG_CACHE_HOME or ~/.cache. False: errno says why, *chosen whether ASSAY_CACHE named the place. */
bool lm_files_keep(const char *name, const lm_file file[LM_FILES], char folder[LM_FOLDER], bool *chosen);

/* The folder NAME below a temporary one (TMPDIR), all of which is removed when the program ends. Not thread-safe.
 * False: errno says why. */
bool lm_files_lend(const char *name, const lm_file file[LM_FILES], char folder[LM_FOLDER]);

#endif
