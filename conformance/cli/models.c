/* models.c - see models.h. */
#include "conformance/cli/models.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conformance/checks/model/lm_small.h"
#include "conformance/cli/arguments/options.h"

typedef struct {
    const char *command, *folder, *vectors;
} arguments;

#define AT(field) .at = offsetof(arguments, field)
static const option options[] = {
    {"COMMAND", NULL, "what to do", OPTION_CHOICE, AT(command), .must = "list|export", .needed = true},
    {"FOLDER", NULL, "of export: what is written, a folder for each model", OPTION_TEXT, AT(folder)},
    {"--vectors", "FOLDER", "where the trained pair is", OPTION_TEXT, AT(vectors),
     .otherwise = "share/assay/vectors beside the program"},
};
#undef AT

static const option_table table = {
    "models",
    "usage: assay models list\n"
    "       assay models export FOLDER\n\n"
    "The models that the checks of engines ask about, as Hugging Face writes them. For engines that\n"
    "read other files, adapters/python/assay_models.py converts them.\n",
    options, 3, NULL};

static const struct {
    const char *name, *about;
} models[] = {
    {"few", "target of six tokens, 0 to 5; random, so that every token counts"},
    {"fewer", "its draft model, alike but not the same"},
    {"pruned", "the same with a vocabulary of its own, four of the six tokens"},
    {"target", "trained target: 258 tokens, bytes, 256 begins and 257 ends a text; two shards"},
    {"draft", "its draft model; target and draft of the pair `self`"},
};
enum { MODELS = sizeof models / sizeof *models, PATH = 1024 };

static bool copy_bytes(FILE *from, FILE *to)
{
    char piece[1 << 14];
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, from)) > 0)
        if (fwrite(piece, 1, n, to) != n) return false;
    return !ferror(from);
}

static bool copy_file(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
    bool ok = out && copy_bytes(in, out);
    if (out) ok = fclose(out) == 0 && ok;
    if (in) fclose(in);
    return ok;
}

static bool make_folder(const char *folder)
{
    return mkdir(folder, 0777) == 0 || errno == EEXIST;
}

/* The files of one folder into another. */
static bool copy_folder(const char *from, const char *to)
{
    char source[PATH + 300], copy[PATH + 300];
    DIR *all = opendir(from);
    bool ok = all && make_folder(to);
    for (struct dirent *entry; ok && (entry = readdir(all));) {
        if (entry->d_name[0] == '.') continue;
        snprintf(source, sizeof source, "%s/%s", from, entry->d_name);
        snprintf(copy, sizeof copy, "%s/%s", to, entry->d_name);
        ok = copy_file(source, copy);
    }
    const int why = errno;
    if (all) closedir(all);
    errno = why;
    return ok;
}

static bool export_one(const char *name, const char *vectors, const char *to)
{
    char from[PATH];
    if (lm_small_form(name)) return lm_small_write(name, to);
    if (snprintf(from, sizeof from, "%s/models/%s", vectors, name) >= (int)sizeof from) {
        errno = ENAMETOOLONG;
        return false;
    }
    return copy_folder(from, to);
}

static int export_all(const arguments *a)
{
    char share[PATH], to[PATH];
    share_folder("vectors", share, sizeof share);
    if (!make_folder(a->folder)) {
        options_refuse(&table, "cannot make the folder %s: %s", a->folder, strerror(errno));
        return EXIT_USAGE;
    }
    for (int i = 0; i < MODELS; i++) {
        const int n = snprintf(to, sizeof to, "%s/%s", a->folder, models[i].name);
        if (n >= (int)sizeof to) errno = ENAMETOOLONG;
        if (n >= (int)sizeof to || !export_one(models[i].name, a->vectors ? a->vectors : share, to)) {
            options_refuse(&table, "cannot write the model %s: %s", to, strerror(errno));
            return EXIT_USAGE;
        }
    }
    return EXIT_SUCCESS;
}

int models_main(int argc, char **argv)
{
    arguments a = {0};
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    const bool exports = strcmp(a.command, "export") == 0;
    if (exports != (a.folder != NULL)) {
        options_refuse(&table, exports ? "export needs a FOLDER" : "list takes no FOLDER");
        return EXIT_USAGE;
    }
    code = exports ? export_all(&a) : EXIT_SUCCESS;
    for (int i = 0; code == EXIT_SUCCESS && i < MODELS; i++)
        printf("%-7s %s\n", models[i].name, models[i].about);
    return code;
}
