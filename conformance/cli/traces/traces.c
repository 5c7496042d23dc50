/* traces.c - see traces.h. */
#include "conformance/cli/traces/traces.h"

#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/traces/write_traces.h"
#include "conformance/wire/beside.h"
#include "conformance/wire/kinds.h"

extern char **environ;

static int usage(int argc, char **argv)
{
    return option_usage(
        argc, argv,
        "usage: assay traces write FILE [--iut SPEC] [--vectors FOLDER]\n"
        "  Decodes all trace vectors and writes every step down, in the form of "
        "assay-traces-1:\n"
        "  an example of what `assay run --traces FILE` judges.\n"
        "  SPEC is ref (default), gpu, or mutant:NAME of a mutant that has traces\n");
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

/* The exit code of a program with two arguments; -1: it did not run to its end. */
static int run_program(const char *path, const char *first, const char *second)
{
    char *const arguments[] = {(char *)(uintptr_t)path, (char *)(uintptr_t)first,
                               (char *)(uintptr_t)second, NULL};
    pid_t child;
    int status;
    if (posix_spawn(&child, path, NULL, NULL, arguments, environ) != 0) return -1;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* conformance/subjects/gpu/traces.c, built twice: for a device, and for the grid emulator where
 * there is none. */
static int write_device(const char *folder, const char *file)
{
    static const char *const program[] = {"traces_gpu", "traces_gpu_emu"};
    enum { NO_DEVICE = 77 };
    for (int i = 0; i < 2; i++) {
        char path[1100];
        if (!beside_program(program[i], path, sizeof path) || access(path, X_OK) != 0) continue;
        const int code = run_program(path, file, folder);
        if (code == 0) return EXIT_CONFORMANT;
        if (code != NO_DEVICE) return fail_with("gpu could not decode them", EXIT_ERROR);
    }
    return fail_with("there is no traces_gpu_emu beside the program: build with a C++ compiler",
                     EXIT_ERROR);
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
    if (kind_of(spec) == KIND_GPU) return write_device(folder, argv[2]);
    if (writes_traces(spec)) return write_file(spec, folder, argv[2]);
    snprintf(why, sizeof why, "%.100s has no traces; `assay mutants --list` names the mutants",
             spec);
    return fail_with(why, EXIT_USAGE);
}
