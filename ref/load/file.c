/* file.c - see file.h. */
#define _POSIX_C_SOURCE 200809L
#include "ref/load/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ref/load/json.h"

static const char *kind(mode_t mode)
{
    return S_ISDIR(mode)    ? "a folder"
           : S_ISFIFO(mode) ? "a pipe"
           : S_ISCHR(mode)  ? "a device"
           : S_ISBLK(mode)  ? "a device"
                            : "no regular file";
}

static as_status map_open(int fd, const char *path, as_file *file, as_error *e)
{
    struct stat s;
    if (fstat(fd, &s) != 0)
        return as_fail(e, AS_BAD_INPUT, "%s: %s", as_show_path(path).text, strerror(errno));
    if (!S_ISREG(s.st_mode))
        return as_fail(e, AS_BAD_INPUT, "%s is %s; a file is needed", as_show_path(path).text,
                       kind(s.st_mode));
    if (s.st_size == 0) return as_fail(e, AS_BAD_INPUT, "%s is empty", as_show_path(path).text);
    void *bytes = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        return as_fail(e, AS_BAD_INPUT, "cannot map %s: %s", as_show_path(path).text,
                       strerror(errno));
    *file = (as_file){bytes, (size_t)s.st_size};
    return AS_OK;
}

as_status as_file_map(const char *path, as_file *file, as_error *e)
{
    *file = (as_file){NULL, 0};
    /* Without waiting for the other end of a pipe. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return as_fail(e, AS_BAD_INPUT, "cannot open %s: %s", as_show_path(path).text,
                       strerror(errno));
    const as_status s = map_open(fd, path, file, e);
    close(fd);
    return s;
}

void as_file_unmap(as_file *file)
{
    if (file->bytes) munmap((void *)file->bytes, file->size);
    *file = (as_file){NULL, 0};
}

int as_file_exists(const char *path)
{
    struct stat s;
    return lstat(path, &s) == 0;
}

as_status as_file_join(const char *folder, const char *name, char path[AS_MAX_PATH],
                       as_error *e)
{
    const int n = snprintf(path, AS_MAX_PATH, "%s/%s", folder, name);
    if (n > 0 && n < AS_MAX_PATH) return AS_OK;
    return as_fail(e, AS_BAD_INPUT, "%s: the path is longer than %d bytes",
                   as_show_path(folder).text, AS_MAX_PATH - 1);
}
