/* kinds.h - the kinds of implementations under test: what a spec may say (`--iut SPEC`). */
#ifndef ASSAY_CONFORMANCE_WIRE_KINDS_H
#define ASSAY_CONFORMANCE_WIRE_KINDS_H

/* KIND(id, how the spec begins, what stands after it, our own plugin that serves it). */
#define KINDS_OF_WORKER(KIND)                                                                  \
    KIND(REF, "ref", "", "lib/assay/libassay_ref.so")                                          \
    KIND(GPU, "gpu", "", "")                                                                   \
    KIND(PLUGIN, "plugin:", "FILE.so", "")                                                     \
    KIND(MUTANT, "mutant:", "NAME", "lib/assay/libassay_mutants.so")                           \
    KIND(TRACES, "traces:", "FILE", "lib/assay/libassay_traces.so")
#define KINDS(KIND) KINDS_OF_WORKER(KIND) KIND(EXEC, "exec:", "CMD", "")

/* For messages and help: all of them, and those that `assay worker` serves. */
#define KIND_TEXT(id, begins, rest, library) " " begins rest
#define KINDS_TEXT "one of" KINDS(KIND_TEXT)
#define KINDS_OF_WORKER_TEXT "one of" KINDS_OF_WORKER(KIND_TEXT)

typedef enum {
#define KIND_ID(id, begins, rest, library) KIND_##id,
    KINDS(KIND_ID)
#undef KIND_ID
    KIND_NONE
} spec_kind;

/* KIND_NONE: no kind begins like this, or what must stand after it is missing. */
spec_kind kind_of(const char *spec);

/* What stands after the beginning of this kind: "" for ref and gpu. NULL: a spec of another kind. */
const char *kind_rest(const char *spec, spec_kind kind);

/* The plugin that comes with the program for this kind, or "". */
const char *kind_library(spec_kind kind);

#endif
