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

typedef struct {
    const char *command, *file, *spec, *folder;
} arguments;

#define AT(field) .at = offsetof(arguments, field)
static const option options[] = {
    {"COMMAND", NULL, "what to do", OPTION_CHOICE, AT(command), .must = "write",
     .needed = true},
    {"FILE", NULL, "what is written", OPTION_TEXT, AT(file), .needed = true},
    {"--iut", "SPEC", "ref, gpu, or mutant:NAME of a mutant that has traces", OPTION_TEXT,
     AT(spec), .otherwise = "ref"},
    {"--vectors", "FOLDER", "golden vectors", OPTION_TEXT, AT(folder),
     .otherwise = "those that came with assay"},
};
#undef AT

static const option_table table = {
    "traces",
    "usage: assay traces write FILE [--iut SPEC] [--vectors FOLDER]\n\n"
    "Decodes all trace vectors and writes every step down, in the form of assay-traces-1:\n"
    "an example of what `assay run --traces FILE` judges.\n",
    options, 4, NULL};

static int fail_with(const char *why)
{
    options_refuse(&table, "%s", why);
    return EXIT_ERROR;
}

static int write_file(const char *spec, const char *folder, const char *file)
{
    char why[400] = "the memory is too short";
    vector_set *set = vectors_new();
    const bool written = set && vectors_load_kind(set, folder, VECTOR_TRACE, why, sizeof why) &&
                         write_traces(spec, set, file, why, sizeof why);
    vectors_free(set);
    return written ? EXIT_CONFORMANT : fail_with(why);
}

/* The exit code of a program with two arguments; -1: it did not run to its end. */
static int run_program(const char *path, const char *first, const char *second)
{
    char *const given[] = {(char *)(uintptr_t)path, (char *)(uintptr_t)first,
                           (char *)(uintptr_t)second, NULL};
    pid_t child;
    int status;
    if (posix_spawn(&child, path, NULL, NULL, given, environ) != 0) return -1;
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
        if (code != NO_DEVICE) return fail_with("gpu could not decode them");
    }
    return fail_with(
        "there is no traces_gpu_emu beside the program: build with a C++ compiler");
}

int traces_main(int argc, char **argv)
{
    char vectors[4096];
    arguments a = {.spec = "ref", .folder = vectors};
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    share_folder("vectors", vectors, sizeof vectors);
    if (kind_of(a.spec) == KIND_GPU) return write_device(a.folder, a.file);
    if (writes_traces(a.spec)) return write_file(a.spec, a.folder, a.file);
    options_refuse(&table, "%.100s has no traces; `assay mutants --list` names the mutants",
                   a.spec);
    return EXIT_USAGE;
}
