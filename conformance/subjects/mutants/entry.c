/* entry.c - libassay_mutants.so: `--iut mutant:NAME`. */
#include "conformance/subjects/mutants/mutants.h"

const iut_api *iut_entry_of(const char *name)
{
    return mutant_api(name);
}
