/* worker.h - the other end of client.h: serves a table of operations as frames on standard
 * input and output. Clauses INV-02 and STA-02, and those of FRM. */
#ifndef ASSAY_CONFORMANCE_WIRE_WORKER_H
#define ASSAY_CONFORMANCE_WIRE_WORKER_H

#include "conformance/iut.h"

/* The exit code of a process whose implementation wrote to an input (STA-02). */
enum { WORKER_INPUT_WRITTEN = 102 };

/* `assay worker SPEC [OPTIONS]`: serves any kind but exec: (kinds.h) until the end of input.
 * `options` may be NULL. An IUT that cannot be loaded answers the first request with the
 * reason. Returns the exit code: 0 at the end of input, 1 if the IUT could not be loaded or
 * created, 3 on a broken frame.
 *
 * What the IUT prints on its standard output goes to standard error. Requests are checked
 * before the IUT sees them: shapes, states, lengths and uniforms are in range; draft ids and
 * rows may be anything, and so may tokens, parents, wanted rows, paths and lengths.
 *
 * The arrays that the IUT gets lie in memory that it cannot write. An attempt ends the process
 * with the exit code WORKER_INPUT_WRITTEN and a line on standard error. The worker sees it by
 * its handler of SIGSEGV, installed before each call; every other fault goes to the handler
 * that was there before. An attempt within the very call that installs a handler of its own
 * goes to that one, and writes nothing. */
int worker_main(const char *spec, const char *options);

/* The same for a table that is linked in. This makes an `exec:` program out of a plugin. */
int worker_serve(const iut_api *api, const char *options);

#endif
