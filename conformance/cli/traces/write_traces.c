/* write_traces.c - see write_traces.h. */
#include "conformance/cli/traces/write_traces.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "conformance/subjects/mutants/model/method_trace.h"
#include "conformance/subjects/mutants/model/trace_subject.h"
#include "conformance/subjects/mutants/mutants.h"
#include "conformance/subjects/ours/reference_traces.h"
#include "conformance/wire/kinds.h"
#include "vectors/read/traces.h"

/* The entry of `mutant:NAME` where it has traces, or NULL. */
static const mutant *mutant_of(const char *spec)
{
    const char *name = kind_rest(spec, KIND_MUTANT);
    const mutant *m = name ? mutant_find(name) : NULL;
    return m && trace_setting(m->variant.setting) ? m : NULL;
}

bool writes_traces(const char *spec)
{
    return kind_of(spec) == KIND_REF || kind_of(spec) == KIND_GPU || mutant_of(spec);
}

static void write_group(FILE *f, const mutant *m, const vector_group *g, bool *first)
{
    for (int32_t i = 0; i < g->tests; i++) {
        oracle_trace trace;
        if (m)
            method_trace_vector(m->variant.fault, g, &g->test[i], &trace);
        else
            ref_trace_vector(g, &g->test[i], &trace);
        traces_write_one(f, *first, g, g->test[i].id, &trace);
        *first = false;
        oracle_trace_free(&trace);
    }
}

bool write_traces(const char *spec, const vector_set *vectors, const char *file, char *why,
                  size_t why_size)
{
    FILE *f = fopen(file, "w");
    bool first = true;
    if (f) {
        traces_write_head(f, spec);
        for (int32_t i = 0; i < vectors_groups(vectors); i++)
            if (vectors_group(vectors, i)->kind == VECTOR_TRACE)
                write_group(f, mutant_of(spec), vectors_group(vectors, i), &first);
        traces_write_end(f);
    }
    const bool whole = f && !ferror(f);
    if (f && fclose(f) == 0 && whole) return true;
    snprintf(why, why_size, "cannot write %s: %s", file, strerror(errno));
    return false;
}
