/* mutants.h - implementations that the suite must judge rightly: faults that it must find,
 * liars that it must survive, and look-alikes that it must pass. Each is an IUT, `--iut
 * mutant:NAME`. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MUTANTS_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MUTANTS_H

#include "conformance/iut.h"
#include "conformance/subjects/mutants/faults/fault.h"

typedef enum {
    MUTANT_FAULT,    /* one clause violated: `check` must kill it */
    MUTANT_LIAR,     /* misbehaves towards the suite: `expected` must be among its states */
    MUTANT_LOOKALIKE /* unusual and right: must pass whatever it claims */
} mutant_kind;

typedef struct {
    mutant_kind kind;
    const char *name;
    const char
        *clause; /* faults: the one clause violated; liars: the clause that says its state */
    const char *check;      /* faults: what must kill it; liars: a check that meets the lie */
    const char *provenance; /* "-" when it is an obvious slip */
    const char *text;       /* one line */
    const char *expected;   /* liars: name of the state (STA-01); else NULL */
    variant variant;        /* of a liar: the honest part */
} mutant;

extern const mutant mutant_table[];
extern const size_t mutant_count; /* at most MUTANTS_MOST */
enum { MUTANTS_MOST = 1024 };

/* NULL, and a list of the names on standard error, when there is none of that name. Case does
 * not matter, and '-' reads as '_'. */
const iut_api *mutant_api(const char *name);

/* The entry, or NULL. */
const mutant *mutant_find(const char *name);

/* What libassay_mutants.so exports in place of iut_entry: mutant_api(name). */
IUT_EXPORT const iut_api *iut_entry_of(const char *name);

#endif
