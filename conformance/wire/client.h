/* The suite's side of an implementation under test: opens it, calls it, survives it.
 *
 * Every IUT runs in a process of its own that speaks frames (FRM clauses): `exec:CMD` is the user's,
 * the others are `assay worker SPEC`. A crash, a hang or a senseless answer is a call_result; the
 * process is then gone and the next call starts a fresh one. A client belongs to one thread; several
 * clients may be open at once. Nothing here knows what the operations mean. */
#ifndef ASSAY_CONFORMANCE_WIRE_CLIENT_H
#define ASSAY_CONFORMANCE_WIRE_CLIENT_H

#include <stdbool.h>

#include "conformance/wire/claims.h"
#include "conformance/wire/operations.h"
#include "conformance/wire/stop.h"

typedef enum {
    CALL_OK,
    CALL_REFUSED,  /* the IUT answered a status other than ok: client_status(), client_text() */
    CALL_CRASH,    /* signal or early exit, at start or during the call */
    CALL_INPUT_WRITTEN, /* the process ended by the exit code that says so (INV-02, STA-02) */
    CALL_TIMEOUT,  /* no whole answer within the time limit */
    CALL_GARBAGE,  /* an answer that is no valid frame, or has wrong shapes (FRM-05) */
    CALL_NO_SUCH,  /* client_open: no implementation of that name or file, or no such option of it */
    CALL_STOPPED,  /* the run was stopped before the answer was whole (VER-10) */
    CALL_HARNESS   /* the suite's own fault: out of memory, cannot start a process */
} call_result;

typedef struct client client;

typedef struct {
    const char *spec;      /* of a kind of kinds.h */
    const char *options;   /* passed to iut_api.create; may be NULL */
    const char *assay;     /* path of the program that serves `worker`; NULL: this one */
    double timeout;        /* seconds a call of up to 256 requests, but for first ones; <= 0: 10 */
    const char *stderr_log; /* file that collects the IUT's standard error (appended); NULL: dropped */
    const stop *stop;      /* ends every call; must outlive the client; may be NULL */
} client_options;

/* Why there is no client. Decide by result and status alone: the text is for people. */
typedef struct {
    call_result result; /* never CALL_OK */
    iut_status status;  /* of CALL_REFUSED: what the IUT answered; else IUT_OK */
    char text[800];     /* one line that says what, where and what to do */
} client_failure;

/* Starts the IUT and asks for its claims. NULL, with *f filled, if it cannot be used
 * at all. CALL_NO_SUCH: the spec is malformed, names what is not there, or has wrong options, as far as
 * the suite can tell: those of `ref` and `gpu` are its own. */
client *client_open(const client_options *options, client_failure *f);

/* The same interface over a table in this process: for tests. Nothing is isolated. A table without
 * an instance is CALL_REFUSED with IUT_FAILED, claims that are not coherent CALL_GARBAGE, as from a
 * process. */
client *client_open_table(const iut_api *api, const char *options, client_failure *f);

/* Ends the process in order, by the end of its input (FRM-04). CALL_OK: with exit code 0 and without
 * another byte, or there was no process. Else CALL_CRASH, CALL_GARBAGE or, when it has not ended after
 * the time of a call (a second at least), CALL_TIMEOUT, or CALL_STOPPED; client_text() says how. */
call_result client_finish(client *c);

/* Ends the process in order, as client_finish does, and starts another one, which gets the panel or the
 * model before an operation that needs it. A table gets another instance. What comes next are the first calls of a
 * process. */
call_result client_restart(client *c);

/* Processes, or instances of a table, that it has had so far; 1 after client_open(). */
int32_t client_processes(const client *c);

/* Was a call of it CALL_STOPPED? What it then answered is no evidence. */
bool client_stopped(const client *c);

/* Frees the client; ends its process if client_finish did not, and does not look how. */
void client_close(client *c);

/* The traces that the implementation brings beside its operations (brought.h); the caller's. None
 * (NULL) unless they were given. */
struct brought;
void client_bring(client *c, struct brought *traces);
struct brought *client_brought(const client *c);

const iut_claims *client_claims(const client *c);
bool client_has(const client *c, iut_op op); /* is the operation claimed? */

/* Calls an operation with its batch. */
call_result client_call(client *c, iut_op op, void *batch);

/* The panel and the model are copied and kept by the client, for processes to come: the model with empty
 * sequences, and only if its load ended well. A shape with a number below 1, or beyond 2^20, is garbage. */
call_result client_panel(client *c, const iut_panel *panel);
call_result client_model(client *c, iut_model *model);

call_result client_served(client *c, int32_t n, const int32_t *state, int32_t of_draft, float *prob);
call_result client_residual(client *c, int32_t n, const int32_t *state, float *r);
call_result client_cache_poison(client *c);

/* client_call with a batch of the right type. */
static inline call_result client_draw(client *c, iut_draw_batch *b) { return client_call(c, OP_DRAW, b); }
static inline call_result client_verify(client *c, iut_verify_batch *b) { return client_call(c, OP_VERIFY, b); }
static inline call_result client_verify_greedy(client *c, iut_verify_batch *b) { return client_call(c, OP_VERIFY_GREEDY, b); }
static inline call_result client_stream(client *c, iut_stream_batch *b) { return client_call(c, OP_STREAM, b); }
static inline call_result client_forward(client *c, iut_forward_batch *b) { return client_call(c, OP_FORWARD, b); }
static inline call_result client_commit(client *c, iut_commit_batch *b) { return client_call(c, OP_COMMIT, b); }
static inline call_result client_truncate(client *c, iut_truncate_batch *b) { return client_call(c, OP_TRUNCATE, b); }
static inline call_result client_cache_read(client *c, iut_cache_batch *b) { return client_call(c, OP_CACHE_READ, b); }
static inline call_result client_generate(client *c, iut_generate_batch *b) { return client_call(c, OP_GENERATE, b); }
static inline call_result client_pool(client *c, iut_pool_batch *b) { return client_call(c, OP_POOL, b); }
static inline call_result client_verify_tree(client *c, iut_tree_batch *b) { return client_call(c, OP_VERIFY_TREE, b); }

iut_status client_status(const client *c);  /* of the last call that was CALL_REFUSED */
const char *client_text(const client *c);   /* of the last call that was not CALL_OK: one line, never NULL */

#endif
