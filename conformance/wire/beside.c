/* beside.c - see beside.h. */
#define _POSIX_C_SOURCE 200809L /* readlink */
#include "conformance/wire/beside.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool beside_program(const char *name, char *path, size_t size)
{
    char folder[4096];
    const ssize_t length = readlink("/proc/self/exe", folder, sizeof folder - 1);
    folder[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(folder, '/');
    if (slash) *slash = '\0';
    snprintf(path, size, "%s/%s", folder, name);
    if (access(path, F_OK) == 0) return true;
    const size_t n = strlen(folder);
    if (n < 4 || strcmp(folder + n - 4, "/bin") != 0) return false;
    snprintf(path, size, "%.*s/%s", (int)n - 4, folder, name);
    return access(path, F_OK) == 0;
}
