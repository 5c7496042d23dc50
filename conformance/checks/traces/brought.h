/* brought.h - the traces that an implementation brings beside its operations: a file that the
 * user names, or, of a built-in one, what it writes in a process of its own. Clauses TRC-01,
 * TRC-02. Read when first asked for; any thread may ask. */
#ifndef ASSAY_CONFORMANCE_CHECKS_TRACES_BROUGHT_H
#define ASSAY_CONFORMANCE_CHECKS_TRACES_BROUGHT_H

#include "conformance/wire/client.h"
#include "vectors/read/traces.h"

typedef struct brought brought;

typedef struct {
    const char *file;       /* NULL: none was named */
    const char *spec;       /* of the implementation; may be NULL */
    bool writes;            /* `assay traces write --iut SPEC` writes its traces */
    const char *assay;      /* program that serves `traces`; NULL: this one */
    const char *vectors;    /* folder */
    const char *stderr_log; /* of that process; may be NULL */
    double timeout;         /* seconds that it may take; <= 0: 10 */
    const stop *stop;       /* ends the wait for it; may be NULL */
} brought_source;

/* Starts the process where one is needed; the strings must outlive what is returned. NULL: the
 * implementation brings no traces. */
brought *brought_open(const brought_source *from);
void brought_close(brought *b); /* NULL is allowed */

/* Is there a trace of some vector of the group? True also when they cannot be read. */
bool brought_covers(brought *b, const char *group_id);

/* CALL_OK, and the traces. Or why there are none: CALL_GARBAGE, the file is malformed;
 * CALL_CRASH, CALL_TIMEOUT, CALL_STOPPED, the process that was to write it; CALL_HARNESS, the suite or its
 * vectors. */
call_result brought_traces(brought *b, const traces **t, char *why, size_t why_size);

#endif
