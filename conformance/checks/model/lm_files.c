/* lm_files.c - see lm_files.h. */
#include "conformance/checks/model/lm_files.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = LM_FOLDER + 60, PIECE = 4096 };

static bool make_folders(const char *folder)
{
    char path[PATH];
    struct stat s;
    if (snprintf(path, sizeof path, "%s", folder) >= (int)sizeof path) return errno = ENAMETOOLONG, false;
    for (char *at = path + 1; *at; at++) {
        if (*at != '/') continue;
        *at = 0;
        if (mkdir(path, 0777) != 0 && errno != EEXIST && stat(path, &s) != 0) return false;
        *at = '/';
    }
    if (mkdir(path, 0777) == 0) return true;
    if (errno != EEXIST || stat(path, &s) != 0) return false;
    if (!S_ISDIR(s.st_mode)) errno = ENOTDIR;
    return S_ISDIR(s.st_mode);
}

/* Has the file this contents? */
static bool is_there(const char *path, const lm_file *due)
{
    unsigned char piece[PIECE];
    size_t at = 0, n = 1;
    FILE *file = fopen(path, "rb");
    if (!file) return false;
    while (n > 0 && (n = fread(piece, 1, sizeof piece, file)) > 0) {
        if (n > due->size - at || memcmp((const char *)due->data + at, piece, n) != 0) break;
        at += n;
    }
    fclose(file);
    return n == 0 && at == due->size;
}

static bool write_file(const char *folder, const lm_file *due)
{
    char path[PATH], part[PATH + 40];
    if (snprintf(path, sizeof path, "%s/%s", folder, due->name) >= (int)sizeof path)
        return errno = ENAMETOOLONG, false;
    if (is_there(path, due)) return true;
    snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    FILE *file = fopen(part, "wb");
    if (!file) return false;
    const bool whole = fwrite(due->data, 1, due->size, file) == due->size;
    if (fclose(file) == 0 && whole && rename(part, path) == 0) return true;
    const int why = errno;
    remove(part);
    errno = why;
    return false;
}

bool lm_files_write(const char *folder, const lm_file file[LM_FILES])
{
    bool ok = make_folders(folder);
    for (int i = 0; ok && i < LM_FILES; i++) ok = write_file(folder, &file[i]);
    return ok;
}

/* ---- Kept. ----------------------------------------------------------------------- */

/* It tells contents apart that different versions of the suite make. It need not tell more: what lies there is
 * compared. */
static uint64_t digest(const lm_file file[LM_FILES])
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (int i = 0; i < LM_FILES; i++)
        for (size_t b = 0; b < file[i].size; b++)
            h = (h ^ ((const unsigned char *)file[i].data)[b]) * UINT64_C(0x100000001b3);
    return h;
}

bool lm_files_keep(const char *name, const lm_file file[LM_FILES], char folder[LM_FOLDER], bool *chosen)
{
    const char *own = getenv("ASSAY_CACHE"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const unsigned long long d = digest(file);
    int n = LM_FOLDER;
    *chosen = own && *own;
    if (*chosen)
        n = snprintf(folder, LM_FOLDER, "%s/%s-%016llx", own, name, d);
    else if (cache && *cache)
        n = snprintf(folder, LM_FOLDER, "%s/assay/%s-%016llx", cache, name, d);
    else if (home && *home)
        n = snprintf(folder, LM_FOLDER, "%s/.cache/assay/%s-%016llx", home, name, d);
    if (n >= LM_FOLDER) return errno = ENAMETOOLONG, false;
    return lm_files_write(folder, file);
}

/* ---- Lent. ----------------------------------------------------------------------- */

/* A folder that was lent. */
typedef struct lent {
    struct lent *next;
    char path[LM_FOLDER], file[LM_FILES][30];
} lent;

static struct {
    char root[200]; /* "": not made yet */
    lent *first;
} made;

static void remove_all(void)
{
    while (made.first) {
        lent *const l = made.first;
        char path[PATH];
        made.first = l->next;
        for (int i = 0; i < LM_FILES; i++) {
            snprintf(path, sizeof path, "%s/%s", l->path, l->file[i]);
            remove(path);
        }
        rmdir(l->path);
        free(l);
    }
    rmdir(made.root);
}

static bool make_root(void)
{
    const char *where = getenv("TMPDIR");
    if (made.root[0]) return true;
    snprintf(made.root, sizeof made.root, "%.150s/assay-models-XXXXXX", where && *where ? where : "/tmp");
    if (mkdtemp(made.root)) {
        atexit(remove_all);
        return true;
    }
    made.root[0] = 0;
    return false;
}

bool lm_files_lend(const char *name, const lm_file file[LM_FILES], char folder[LM_FOLDER])
{
    lent *l = make_root() ? calloc(1, sizeof *l) : NULL;
    if (!l) return false;
    snprintf(l->path, sizeof l->path, "%s/%.39s", made.root, name);
    for (int i = 0; i < LM_FILES; i++) snprintf(l->file[i], sizeof l->file[i], "%s", file[i].name);
    l->next = made.first, made.first = l;
    snprintf(folder, LM_FOLDER, "%s", l->path);
    return lm_files_write(folder, file);
}
