/* vectors.c - see vectors.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/vectors.h"
#include "vectors/make/make.h"

enum { CONFORMANT = 0, WRONG = 1, USAGE = 2, SUITE_ERROR = 3 };

static int complain(const char *what, int code)
{
    fprintf(stderr, "assay vectors: %s\n", what);
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
    if (!make_folder(folder, why, sizeof why)) return complain(why, SUITE_ERROR);
    vector_set *set = make_all(why, sizeof why),
               *trained = set ? networks(why, sizeof why) : NULL;
    const bool ok = trained && write_folder(set, folder, why, sizeof why) &&
                    write_networks(trained, folder, why, sizeof why);
    vectors_free(set);
    vectors_free(trained);
    return ok ? CONFORMANT : complain(why, SUITE_ERROR);
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
    return CONFORMANT;
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
            return CONFORMANT;
        }
    }
    fprintf(stderr,
            "assay vectors: no vector %s; `assay vectors list` names the groups, and their "
            "vectors are GROUP.0001 and on\n",
            id);
    return USAGE;
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
        complain(why, WRONG);
    }
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t t = 0; t < g->tests; t++, total++)
            if (!confirmed(set, g, &g->test[t], why, sizeof why)) {
                wrong++;
                complain(why, WRONG);
            }
    }
    printf("%d vectors recomputed, %d differ\n", (int)total, (int)wrong);
    return wrong ? WRONG : CONFORMANT;
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
    if (!make_folder(folder, why, sizeof why)) return complain(why, SUITE_ERROR);
    vector_set *trained = networks(why, sizeof why);
    bool ok = trained != NULL;
    if (ok && !(flip_all(set) && flip_all(trained))) {
        snprintf(why, sizeof why, "the memory is too short");
        ok = false;
    }
    ok = ok && write_folder(set, folder, why, sizeof why) &&
         write_networks(trained, folder, why, sizeof why);
    vectors_free(trained);
    return ok ? CONFORMANT : complain(why, SUITE_ERROR);
}

static int usage(FILE *f, int code)
{
    fputs("usage: assay vectors COMMAND [--vectors FOLDER]\n"
          "  list                    groups, their sizes and clauses\n"
          "  show ID                 one vector\n"
          "  check                   read, validate, recompute everything with the oracle\n"
          "  generate [--out FOLDER] write all files anew (default: vectors), always the same "
          "bytes\n"
          "  flip --out FOLDER       a copy in which every expectation is wrong, to test a "
          "harness\n"
          "  FOLDER defaults to share/assay/vectors beside the program\n",
          f);
    return code;
}

typedef struct {
    const char *command, *id, *out, *vectors;
} arguments;

/* False when they make no sense. */
static bool parse(int argc, char **argv, arguments *a)
{
    for (int i = 1; i < argc; i++) {
        const bool last = i + 1 == argc;
        if (!strcmp(argv[i], "--out") && !last)
            a->out = argv[++i];
        else if (!strcmp(argv[i], "--vectors") && !last)
            a->vectors = argv[++i];
        else if (argv[i][0] == '-')
            return false;
        else if (!a->command)
            a->command = argv[i];
        else if (!a->id && !strcmp(a->command, "show"))
            a->id = argv[i];
        else
            return false;
    }
    return a->command != NULL;
}

static int on_set(const arguments *a)
{
    char why[400];
    vector_set *set = vectors_load(a->vectors, why, sizeof why);
    if (!set) return complain(why, SUITE_ERROR);
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
    share_folder("vectors", share, sizeof share);
    arguments a = {NULL, NULL, NULL, share};
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        return usage(stdout, CONFORMANT);
    if (!parse(argc, argv, &a)) return usage(stderr, USAGE);
    if (!strcmp(a.command, "generate")) return generate(a.out ? a.out : "vectors");
    const bool known = !strcmp(a.command, "list") || !strcmp(a.command, "check") ||
                       (!strcmp(a.command, "show") && a.id) ||
                       (!strcmp(a.command, "flip") && a.out);
    return known ? on_set(&a) : usage(stderr, USAGE);
}
