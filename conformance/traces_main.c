/* traces_main.c - see traces_main.h. */
#include "conformance/traces_main.h"

#include <stdio.h>
#include <string.h>

#include "conformance/iut/write_traces.h"
#include "conformance/options.h"

static int usage(int argc, char **argv)
{
    return option_usage(
        argc, argv,
        "usage: assay traces write FILE [--iut SPEC] [--vectors FOLDER]\n"
        "  Decodes all trace vectors and writes every step down, in the form of "
        "assay-traces-1:\n"
        "  an example of what `assay run --traces FILE` judges.\n"
        "  SPEC is ref (default), or mutant:NAME of a mutant that has traces\n");
}

static int fail_with(const char *why, int code)
{
    fprintf(stderr, "assay traces: %s\n", why);
    return code;
}

static int write_file(const char *spec, const char *folder, const char *file)
{
    char why[400] = "the memory is too short";
    vector_set *set = vectors_new();
    const bool written = set && vectors_load_kind(set, folder, VECTOR_TRACE, why, sizeof why) &&
                         write_traces(spec, set, file, why, sizeof why);
    vectors_free(set);
    return written ? EXIT_CONFORMANT : fail_with(why, EXIT_ERROR);
}

int traces_main(int argc, char **argv)
{
    char vectors[4096], why[200];
    const char *spec = "ref", *folder = vectors, *value;
    share_folder("vectors", vectors, sizeof vectors);
    if (argc < 3 || strcmp(argv[1], "write") != 0) return usage(argc, argv);
    for (int i = 3; i < argc; i++) {
        if ((value = option_value(argc, argv, &i, "--iut")))
            spec = value;
        else if ((value = option_value(argc, argv, &i, "--vectors")))
            folder = value;
        if (!value || !*value) return usage(argc, argv);
    }
    if (writes_traces(spec)) return write_file(spec, folder, argv[2]);
    snprintf(why, sizeof why, "%.100s has no traces; `assay mutants --list` names the mutants",
             spec);
    return fail_with(why, EXIT_USAGE);
}
