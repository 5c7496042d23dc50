/* mutants.c - the table of all mutants and the way from a name to an implementation
 * (mutants.h). */
#include "conformance/subjects/mutants/mutants.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "conformance/subjects/mutants/chain/subject.h"
#include "conformance/subjects/mutants/liars.h"
#include "conformance/subjects/mutants/model/engine_subject.h"
#include "conformance/subjects/mutants/model/lm_subject.h"
#include "conformance/subjects/mutants/model/pool_subject.h"
#include "conformance/subjects/mutants/model/trace_subject.h"
#include "conformance/subjects/mutants/tree/subject.h"

/* A name is a name for everything: the entry, the constructor, the option of the command line.
 */
#define FAULT(point, set, clause, check, provenance, text) ENTRY(point, point, set)
#define AGAIN(point, set, clause, check, text) ENTRY(point##_##set, point, set)
#define LOOKALIKE(name, set, provenance, text) ENTRY(name, NONE, set)
#define LIAR(name, clause, check, expected, text) ENTRY(name, NONE, SUPPLIED)

static iut *create(const char *name, variant v, char *error, size_t error_size)
{
    if (trace_setting(v.setting)) return trace_subject_create(name, v, error, error_size);
    return lm_setting(v.setting)       ? lm_subject_create(name, v, error, error_size)
           : pool_setting(v.setting)   ? pool_subject_create(name, v, error, error_size)
           : engine_setting(v.setting) ? engine_subject_create(name, v, error, error_size)
                                       : subject_create(name, v, error, error_size);
}

#define ENTRY(entry_name, point, set)                                                          \
    static iut *create_##entry_name(const char *options, char *error, size_t error_size)       \
    {                                                                                          \
        const variant v = {FAULT_##point, SETTING_##set};                                      \
        (void)options;                                                                         \
        return create(#entry_name, v, error, error_size);                                      \
    }
#include "conformance/subjects/mutants/faults/faults.def"
#include "conformance/subjects/mutants/faults/lookalikes.def"
#include "conformance/subjects/mutants/faults/liars.def"
#undef ENTRY

typedef iut *constructor(const char *, char *, size_t);

#define ENTRY(entry_name, point, set) create_##entry_name,
static constructor *const constructors[] = {
#include "conformance/subjects/mutants/faults/faults.def"
#include "conformance/subjects/mutants/faults/lookalikes.def"
#include "conformance/subjects/mutants/faults/liars.def"
};
#undef ENTRY
#undef FAULT
#undef AGAIN
#undef LOOKALIKE
#undef LIAR

typedef void deceiver(iut_api *);

static deceiver *const deceivers[] = {
#define LIAR(name, clause, check, expected, text) name,
#include "conformance/subjects/mutants/faults/liars.def"
#undef LIAR
};

const mutant mutant_table[] = {
#define FAULT(point, set, clause, check, provenance, text)                                     \
    {MUTANT_FAULT, #point, clause, check,                                                      \
     provenance,   text,   NULL,   {FAULT_##point, SETTING_##set}},
#define AGAIN(point, set, clause, check, text)                                                 \
    {MUTANT_FAULT, #point "_" #set,                                                            \
     clause,       check,                                                                      \
     "as " #point, text,                                                                       \
     NULL,         {FAULT_##point, SETTING_##set}},
#include "conformance/subjects/mutants/faults/faults.def"
#undef FAULT
#undef AGAIN
#define LOOKALIKE(name, set, provenance, text)                                                 \
    {MUTANT_LOOKALIKE, #name, "", "", provenance, text, NULL, {FAULT_NONE, SETTING_##set}},
#include "conformance/subjects/mutants/faults/lookalikes.def"
#undef LOOKALIKE
#define LIAR(name, clause, check, expected, text)                                              \
    {MUTANT_LIAR, #name, clause, check, "-", text, expected, {FAULT_NONE, SETTING_SUPPLIED}},
#include "conformance/subjects/mutants/faults/liars.def"
#undef LIAR
};
const size_t mutant_count = sizeof mutant_table / sizeof *mutant_table;
_Static_assert(sizeof mutant_table / sizeof *mutant_table <= MUTANTS_MOST,
               "more mutants than the commands have room for");

static bool same_name(const char *a, const char *b)
{
    for (; *a && *b; a++, b++) {
        const char x = *a == '-' ? '_' : *a, y = *b == '-' ? '_' : *b;
        if (toupper((unsigned char)x) != toupper((unsigned char)y)) return false;
    }
    return *a == *b;
}

const mutant *mutant_find(const char *name)
{
    for (size_t i = 0; i < mutant_count; i++)
        if (same_name(mutant_table[i].name, name)) return &mutant_table[i];
    return NULL;
}

static void list_names(const char *wrong)
{
    fprintf(stderr, "there is no mutant %s; there are\n", wrong);
    for (size_t i = 0; i < mutant_count; i++)
        fprintf(stderr, "%s%s", mutant_table[i].name,
                i % 3 == 2 || i + 1 == mutant_count ? "\n" : "  ");
}

const iut_api *mutant_api(const char *name)
{
    static iut_api tables[sizeof mutant_table / sizeof *mutant_table];
    const mutant *m = mutant_find(name);
    if (!m) {
        list_names(name);
        return NULL;
    }
    const size_t i = (size_t)(m - mutant_table), liars = sizeof deceivers / sizeof *deceivers;
    tables[i] = trace_setting(m->variant.setting)    ? trace_subject_operations
                : lm_setting(m->variant.setting)     ? lm_subject_operations
                : pool_setting(m->variant.setting)   ? pool_subject_operations
                : engine_setting(m->variant.setting) ? engine_subject_operations
                                                     : subject_operations;
    tables[i].create = constructors[i];
    if (tree_setting(setting_of(m->variant.setting)->manner)) tree_operations(&tables[i]);
    if (setting_of(m->variant.setting)->manner == MANNER_RELAXED) tables[i].verify_greedy = NULL;
    if (m->kind == MUTANT_LIAR) deceivers[i - (mutant_count - liars)](&tables[i]);
    return &tables[i];
}
