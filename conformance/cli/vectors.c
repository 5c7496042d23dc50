/* vectors.c - see vectors.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/vectors.h"
#include "vectors/make/make.h"

typedef struct {
    const char *command, *id, *out, *vectors;
} arguments;

#define AT(field) .at = offsetof(arguments, field)
static const option options[] = {
    {"COMMAND", NULL, "what to do", OPTION_CHOICE, AT(command),
     .must = "list|show|check|generate|flip", .needed = true},
    {"ID", NULL, "of the vector to show", OPTION_TEXT, AT(id)},
    {"--vectors", "FOLDER", "what is read", OPTION_TEXT, AT(vectors),
     .otherwise = "share/assay/vectors beside the program"},
    {"--out", "FOLDER", "what is written", OPTION_TEXT, AT(out),
     .otherwise = "of generate: vectors"},
};
#undef AT

static const option_table table = {
    "vectors", "usage: assay vectors COMMAND [options]\n\nThe golden vectors.\n", options, 4,
    "list      groups, their sizes and clauses\n"
    "show ID   one vector\n"
    "check     read, validate, recompute everything with the oracle\n"
    "generate  write all files anew, always the same bytes\n"
    "flip      a copy, in --out, in which every expectation is wrong, to test a harness\n"};

static int complain(const char *what, int code)
{
    options_refuse(&table, "%s", what);
    return code;
}

/* The folder to write to, made if it is not there. */
static bool make_folder(const char *folder, char *why, size_t why_size)
{
    if (mkdir(folder, 0777) == 0 || errno == EEXIST) return true;
    snprintf(why, why_size, "cannot make the folder %s: %s", folder, strerror(errno));
    return false;
}

/* The traces of the trained model, which are in a file of their own. */
static vector_set *networks(char *why, size_t why_size)
{
    char models[1024];
    share_folder("vectors/models", models, sizeof models);
    return make_networks(models, why, why_size);
}

static int generate(const char *folder)
{
    char why[400];
    if (!make_folder(folder, why, sizeof why)) return complain(why, EXIT_ERROR);
    vector_set *set = make_all(why, sizeof why),
               *trained = set ? networks(why, sizeof why) : NULL;
    const bool ok = trained && write_folder(set, folder, why, sizeof why) &&
                    write_networks(trained, folder, why, sizeof why);
    vectors_free(set);
    vectors_free(trained);
    return ok ? EXIT_CONFORMANT : complain(why, EXIT_ERROR);
}

static int list(const vector_set *set)
{
    int32_t total = 0;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        printf("%-24s %5d vectors  %s\n", g->id, (int)g->tests, g->clauses);
        total += g->tests;
    }
    printf("%d vectors in %d groups\n", (int)total, (int)vectors_groups(set));
    return EXIT_CONFORMANT;
}

static int show(const vector_set *set, const char *id)
{
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t t = 0; t < g->tests; t++) {
            if (strcmp(g->test[t].id, id)) continue;
            printf("%s: V %d, gamma %d\n", g->id, (int)g->V, (int)g->gamma);
            write_test(stdout, g, &g->test[t]);
            putchar('\n');
            return EXIT_CONFORMANT;
        }
    }
    options_refuse(&table,
                   "no vector %s; `assay vectors list` names the groups, and their vectors are "
                   "GROUP.0001 and on",
                   id);
    return EXIT_USAGE;
}

/* Does the oracle give the answers that the file has? */
static bool confirmed(vector_set *set, const vector_group *g, const vector_test *t, char *why,
                      size_t why_size)
{
    vector_test again = *t;
    if (!answer_test(set, g, &again, why, why_size)) return false;
    bool same =
        answer_same(g, &t->expected, &again.expected) && t->alternatives == again.alternatives;
    for (int32_t i = 0; same && i < t->alternatives; i++)
        same = !strcmp(t->alternative[i].policy, again.alternative[i].policy) &&
               answer_same(g, &t->alternative[i], &again.alternative[i]);
    if (!same) snprintf(why, why_size, "%s: the oracle answers otherwise", t->id);
    return same;
}

/* Is the file of the trained model's traces what the oracle makes, byte for byte? */
static bool networks_confirmed(const char *folder, char *why, size_t why_size)
{
    vector_set *set = networks(why, why_size);
    const bool same = set && networks_same(set, folder, why, why_size);
    vectors_free(set);
    return same;
}

static int check_all(vector_set *set, const char *folder)
{
    int32_t total = 0, wrong = 0;
    char why[400];
    if (!networks_confirmed(folder, why, sizeof why)) {
        wrong++;
        complain(why, EXIT_NOT_CONFORMANT);
    }
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t t = 0; t < g->tests; t++, total++)
            if (!confirmed(set, g, &g->test[t], why, sizeof why)) {
                wrong++;
                complain(why, EXIT_NOT_CONFORMANT);
            }
    }
    printf("%d vectors recomputed, %d differ\n", (int)total, (int)wrong);
    return wrong ? EXIT_NOT_CONFORMANT : EXIT_CONFORMANT;
}

static bool flip_all(vector_set *set)
{
    bool ok = true;
    for (int32_t i = 0; i < vectors_groups(set); i++)
        for (int32_t t = 0; t < vectors_group(set, i)->tests && ok; t++)
            ok = vectors_flip(set, i, t);
    return ok;
}

static int flip(vector_set *set, const char *folder)
{
    char why[400];
    if (!make_folder(folder, why, sizeof why)) return complain(why, EXIT_ERROR);
    vector_set *trained = networks(why, sizeof why);
    bool ok = trained != NULL;
    if (ok && !(flip_all(set) && flip_all(trained))) {
        snprintf(why, sizeof why, "the memory is too short");
        ok = false;
    }
    ok = ok && write_folder(set, folder, why, sizeof why) &&
         write_networks(trained, folder, why, sizeof why);
    vectors_free(trained);
    return ok ? EXIT_CONFORMANT : complain(why, EXIT_ERROR);
}

/* An ID belongs to show; flip would write over what is read. */
static bool agree(const arguments *a)
{
    const bool shows = !strcmp(a->command, "show");
    if (shows && !a->id) return options_refuse(&table, "show: ID is missing; name a vector");
    if (!shows && a->id)
        return options_refuse(&table, "%s: a word too many: %s", a->command, a->id);
    return strcmp(a->command, "flip") || a->out ||
           options_refuse(&table, "flip: --out FOLDER is missing; name where the copy goes");
}

static int on_set(const arguments *a)
{
    char why[400];
    vector_set *set = vectors_load(a->vectors, why, sizeof why);
    if (!set) return complain(why, EXIT_ERROR);
    const int code = !strcmp(a->command, "list")    ? list(set)
                     : !strcmp(a->command, "show")  ? show(set, a->id)
                     : !strcmp(a->command, "check") ? check_all(set, a->vectors)
                                                    : flip(set, a->out);
    vectors_free(set);
    return code;
}

int vectors_main(int argc, char **argv)
{
    char share[1024];
    arguments a = {.vectors = share};
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    if (!agree(&a)) return EXIT_USAGE;
    share_folder("vectors", share, sizeof share);
    if (!strcmp(a.command, "generate")) return generate(a.out ? a.out : "vectors");
    return on_set(&a);
}
