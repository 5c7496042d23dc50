/* Runs a fuzz target over files and folders, without libFuzzer: `replay CORPUS...`. The bytes
 * of a file stand alone in memory of their exact size, so that a sanitizer sees a read beyond
 * them. No file at all is a failure, so that a lost corpus does not look like a passed test. */
#include <dirent.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        dprintf(2, "replay: cannot read %s\n", path);
        return -1;
    }
    const size_t size = (size_t)ftell(f);
    uint8_t *bytes = malloc(size ? size : 1);
    rewind(f);
    const int whole = bytes && fread(bytes, 1, size, f) == size;
    fclose(f);
    /* Named before it runs: the last name printed is the input that crashed. */
    printf("%s\n", path);
    fflush(stdout);
    if (whole) LLVMFuzzerTestOneInput(bytes, size);
    free(bytes);
    return whole ? 1 : -1;
}

/* The number of files that ran, -1 on an unreadable one. */
static int run_path(const char *path)
{
    char inner[4096];
    int count = 0;
    DIR *folder = opendir(path);
    if (!folder) return run_file(path);
    for (struct dirent *e; count >= 0 && (e = readdir(folder));) {
        if (e->d_name[0] == '.') continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        count = run_file(inner) < 0 ? -1 : count + 1;
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    int total = 0;
    for (int i = 1; i < argc; i++) {
        const int count = run_path(argv[i]);
        if (count < 0) return 1;
        total += count;
    }
    printf("%d inputs\n", total);
    return total ? 0 : 1;
}
