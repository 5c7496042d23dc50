/* file.h - whole files in memory, read-only. */
#ifndef ASSAY_REF_LOAD_FILE_H
#define ASSAY_REF_LOAD_FILE_H

#include <stddef.h>
#include "ref/status.h"

enum { AS_MAX_PATH = 4096 };

typedef struct {
    const unsigned char *bytes; /* [size] */
    size_t size;
} as_file;

/* Maps a file. A link is followed, since download caches are made of links; what it leads to
 * must be a regular file that is not empty. The file must not shrink while it is mapped.
 * AS_BAD_INPUT, naming the path. */
as_status as_file_map(const char *path, as_file *file, as_error *e);
void as_file_unmap(as_file *file);

/* Whether the folder has an entry of that name, be it only a link that leads nowhere. */
int as_file_exists(const char *path);

/* folder/name into path. AS_BAD_INPUT if it is too long. */
as_status as_file_join(const char *folder, const char *name, char path[AS_MAX_PATH],
                       as_error *e);

#endif
