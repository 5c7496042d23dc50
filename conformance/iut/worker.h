/* worker.h - the other end of client.h: serves a table of operations as frames on standard
 * input and output. Clauses FRM-01 to FRM-05 and INV-02. */
#ifndef ASSAY_CONFORMANCE_IUT_WORKER_H
#define ASSAY_CONFORMANCE_IUT_WORKER_H

#include "conformance/iut.h"

/* `assay worker SPEC [OPTIONS]`: serves ref | mutant:NAME | plugin:FILE until the end of input.
 * `options` may be NULL. An IUT that cannot be loaded answers the first request with the
 * reason. Returns the exit code: 0 at the end of input, 1 if the IUT could not be loaded or
 * created, 3 on a broken frame.
 *
 * What the IUT prints on its standard output goes to standard error. Requests are checked
 * before the IUT sees them: shapes, states, lengths and uniforms are in range; draft ids and
 * rows may be anything, and so may tokens, parents, wanted rows, paths and lengths. The arrays it gets lie in memory that it cannot write; an attempt ends
 * the process with a line on standard error that says so. */
int worker_main(const char *spec, const char *options);

/* The same for a table that is linked in. This makes an `exec:` program out of a plugin. */
int worker_serve(const iut_api *api, const char *options);

#endif
