/* client.c - see client.h. A call is: make sure that a process is there that has what the call needs,
 * send the request, read the reply. The reply's head is checked against what is due (layout.h)
 * before a byte of its tensors is read, and they are read straight into the caller's arrays.
 * Clauses CLM-04 and STA-02, and those of FRM. */
#define _POSIX_C_SOURCE 200809L
#include "conformance/wire/client.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "conformance/wire/claims.h"
#include "conformance/wire/clock.h"
#include "conformance/wire/frames.h"
#include "conformance/wire/kinds.h"
#include "conformance/wire/layout.h"
#include "conformance/wire/load.h"
#include "conformance/wire/process.h"
#include "conformance/wire/worker.h"

struct client {
    iut_api api; /* of client_open_table, with its instance; else instance is NULL */
    iut *instance;

    char *spec, *options, *assay, *stderr_log; /* how to start the process */
    double timeout;
    const stop *stop; /* may be NULL */
    bool stopped;     /* a call was CALL_STOPPED */
    process *process; /* NULL: to be started by the next call */
    bool has_panel, has_model; /* it was given the last ones, and took them */
    unsigned answered; /* bits of iut_op: it has answered such calls */
    unsigned slow;     /* bits of iut_op: the first such call of a process was too slow, and none was answered since */
    int exit_code;    /* of the last process that ended by itself; -1 if a signal ended it */
    int64_t id;       /* of the last request */
    int64_t version;  /* of frames, that a request for claims says */

    iut_claims claims;
    json_t *claims_args; /* keeps the strings of claims */
    unsigned ops;        /* bits of iut_op: claimed */
    int32_t processes;   /* or instances, so far */

    iut_panel *panel; /* copies of the last ones given; NULL: none yet */
    iut_model *model;
    int32_t shape[4]; /* of the model */

    struct brought *traces; /* NULL: it brings none */

    iut_status status;
    char text[720];
};

/* ---- What a call that went wrong says. ------------------------------------------- */

static const char *const result_names[] = {
    "ok",      "refused",       "crash",   "input written", "timeout",
    "garbage", "no such thing", "stopped", "suite fault"};

/* "verify: timeout: ...", on one line of printable ASCII. */
static call_result report_as(client *c, const char *when, call_result result, const char *what)
{
    c->stopped = c->stopped || result == CALL_STOPPED;
    snprintf(c->text, sizeof c->text, "%s: %s: %s", when, result_names[result], what);
    frame_text(c->text);
    return result;
}

static call_result report(client *c, iut_op op, call_result result, const char *what)
{
    return report_as(c, iut_op_name(op), result, what);
}

/* Does a request of the op carry arrays? */
static bool has_inputs(iut_op op)
{
    for (const layout_array *a = layout[op].array; a->name; a++)
        if (!layout_is_answer(a)) return true;
    return false;
}

/* The same for what ends the process: it is killed and reaped. Only a crash gets time to end by
 * itself, so that the text can tell how, and its exit code whether an input was written. */
static call_result end_process(client *c, iut_op op, call_result result, const char *what)
{
    char how[320], text[680];
    process_kill(c->process, result == CALL_CRASH ? 1.0 : 0.0, how, sizeof how);
    c->exit_code = process_exit_code(c->process);
    process_free(c->process);
    c->process = NULL;
    if (result == CALL_CRASH && c->exit_code == WORKER_INPUT_WRITTEN && has_inputs(op))
        result = CALL_INPUT_WRITTEN, what = "an input array was written to (INV-02)";
    snprintf(text, sizeof text, "%s (%s)", what, how);
    return report(c, op, result, text);
}

/* How long a call may take: the first of its operation in a process six times as long as others, for a start, a load
 * and what is compiled then; one of many requests longer, in proportion. Who took even that gets no more than others,
 * until it answers. */
static double seconds_for(const client *c, iut_op op, const layout_parts *parts)
{
    enum { FIRST = 6, REQUESTS = 256, MOST = 16 };
    if (c->slow >> op & 1) return c->timeout;
    return c->timeout * ((c->answered >> op & 1 ? 1 : FIRST) + fmin(MOST, (double)parts->value[VALUE_N] / REQUESTS));
}

static call_result io_failed(client *c, iut_op op, const layout_parts *parts, io_result r)
{
    char what[80];
    if (r == IO_STOPPED) return end_process(c, op, CALL_STOPPED, "the run was stopped");
    if (r == IO_CLOSED) { /* whoever stops a run may end the processes, too */
        const call_result ended =
            end_process(c, op, CALL_CRASH, "it ended before its answer was whole");
        return stop_asked(c->stop) ? report(c, op, CALL_STOPPED, "the run was stopped") : ended;
    }
    snprintf(what, sizeof what, "no whole answer within %.3g s", seconds_for(c, op, parts));
    if (!(c->answered >> op & 1)) c->slow |= 1u << op;
    return end_process(c, op, CALL_TIMEOUT, what);
}

/* ---- One exchange of frames. ----------------------------------------------------- */

/* The reply that is due: its id and its arrays, those of the op that flow out. */
static bool reply_matches(const client *c, iut_op op, const layout_parts *parts, const frame *f,
                          char *why, size_t why_size)
{
    int32_t seen = 0;
    if (!f->status) {
        snprintf(why, why_size, "it is a request, where a reply is due");
        return false;
    }
    if (!frame_speaks(f, why, why_size)) return false;
    if (f->id != c->id) {
        snprintf(why, why_size, "it answers request %lld where %lld is due", (long long)f->id,
                 (long long)c->id);
        return false;
    }
    for (const layout_array *a = layout[op].array; a->name; a++) {
        if (!layout_is_due(a, parts->value)) continue;
        frame_tensor due;
        layout_tensor(a, parts->value, &due);
        if (seen == f->tensors) {
            snprintf(why, why_size, "tensor %s is missing", due.name);
            return false;
        }
        if (!layout_matches(&due, &f->tensor[seen++], why, why_size)) return false;
    }
    if (seen != f->tensors) snprintf(why, why_size, "it has more tensors than are due");
    return seen == f->tensors;
}

/* A status other than ok: FRM-03. */
static call_result refused(client *c, iut_op op, const frame *f)
{
    char text[680], line[200];
    iut_status s = IUT_OK;
    if (!iut_status_find(f->status, &s))
        return end_process(c, op, CALL_GARBAGE, "its status is none of those defined");
    if (f->tensors || !f->error)
        return end_process(c, op, CALL_GARBAGE,
                           "a status other than ok needs `error` and no tensors");
    c->status = s;
    process_last_words(c->process, f->error, line, sizeof line);
    snprintf(text, sizeof text, "%s: %.400s%s%s", f->status, f->error,
             *line ? PROCESS_LAST_WORDS : "", line);
    return report(c, op, CALL_REFUSED, text);
}

static call_result read_tensors(client *c, iut_op op, const layout_parts *parts,
                                double deadline)
{
    for (int i = 0; layout[op].array[i].name; i++) {
        frame_tensor t;
        if (!layout_is_due(&layout[op].array[i], parts->value)) continue;
        layout_tensor(&layout[op].array[i], parts->value, &t);
        const io_result r = process_read(c->process, parts->at[i], t.size, deadline);
        if (r != IO_OK) return io_failed(c, op, parts, r);
    }
    const io_result r = process_flush(c->process, deadline);
    if (r != IO_OK) return io_failed(c, op, parts, r);
    if (process_has_output(c->process))
        return end_process(c, op, CALL_GARBAGE, "bytes after the reply");
    return CALL_OK;
}

static call_result read_reply(client *c, iut_op op, const layout_parts *parts, double deadline,
                              frame *f)
{
    uint8_t prefix[FRAME_PREFIX];
    char head[FRAME_MAX_HEADER], why[320];
    size_t header, payload;
    io_result r = process_read(c->process, prefix, sizeof prefix, deadline);
    if (r != IO_OK) return io_failed(c, op, parts, r);
    if (!frame_prefix(prefix, &header, &payload, why, sizeof why))
        return end_process(c, op, CALL_GARBAGE, why);
    r = process_read(c->process, head, header, deadline);
    if (r != IO_OK) return io_failed(c, op, parts, r);
    if (!frame_head(head, header, payload, f, why, sizeof why))
        return end_process(c, op, CALL_GARBAGE, why);
    if (f->status && f->id == c->id && strcmp(f->status, "ok") != 0) return refused(c, op, f);
    if (!reply_matches(c, op, parts, f, why, sizeof why))
        return end_process(c, op, CALL_GARBAGE, why);
    return read_tensors(c, op, parts, deadline);
}

/* Fills the request and its parts: prefix and header, then each array. False beyond the limits.
 */
static bool build_request(client *c, iut_op op, const layout_parts *parts, frame *f,
                          struct iovec *part)
{
    const layout_op *l = &layout[op];
    /* Ids have gaps, so that counting the requests does not give them (FRM-03). */
    c->id += 1 + c->id % 3;
    *f = (frame){.id = c->id, .op = iut_op_name(op), .args = json_object()};
    if (op == OP_CLAIMS) {
        f->version = c->version;
        json_object_set_new(f->args, "since", json_integer(CLAIMS_SINCE));
    }
    for (const layout_number *i = l->number; i->name; i++)
        if (!i->is_optional || parts->value[i->value])
            json_object_set_new(f->args, i->name, json_integer(parts->value[i->value]));
    for (int t = 0; l->text[t].name; t++)
        if (json_object_set_new(f->args, l->text[t].name, json_string(parts->text[t])) != 0)
            return false; /* not UTF-8 */
    for (int i = 0; l->array[i].name; i++) {
        frame_tensor *t = &f->tensor[f->tensors];
        if (!layout_tensor(&l->array[i], parts->value, t)) return false;
        if (layout_is_answer(&l->array[i]) || !parts->at[i]) continue;
        part[++f->tensors] = (struct iovec){parts->at[i], t->size};
    }
    part[0].iov_base = frame_encode(f, &part[0].iov_len);
    return part[0].iov_base != NULL;
}

/* Request and reply. *reply is released by the caller, whatever the result. */
static call_result exchange(client *c, iut_op op, const layout_parts *parts, frame *reply)
{
    const double deadline = clock_now() + seconds_for(c, op, parts);
    frame request;
    struct iovec part[FRAME_MAX_TENSORS + 1] = {{0}};
    memset(reply, 0, sizeof *reply);
    call_result result;
    if (clock_now() >= stop_deadline(c->stop, 0))
        return report(c, op, CALL_STOPPED, "the run was stopped");
    if (!build_request(c, op, parts, &request, part))
        result = report(c, op, CALL_HARNESS, "the request is too large, or memory ran out");
    else if (process_has_output(c->process))
        result = end_process(c, op, CALL_GARBAGE, "bytes that answer no request");
    else {
        process_send(c->process, part, 1 + request.tensors);
        result = read_reply(c, op, parts, deadline, reply);
    }
    json_decref(request.args);
    /* After a status other than ok some of the request may be unwritten: it goes before its
     * arrays do. */
    if (result == CALL_REFUSED) {
        const io_result r = process_flush(c->process, deadline);
        if (r != IO_OK)
            result = io_failed(c, op, parts, r);
        else if (process_has_output(c->process))
            result = end_process(c, op, CALL_GARBAGE, "bytes after the reply");
    }
    free(part[0].iov_base);
    if (result == CALL_OK || result == CALL_REFUSED) {
        c->answered |= 1u << op;
        c->slow &= ~(1u << op);
    }
    return result;
}

/* ---- Start and restart. ---------------------------------------------------------- */

/* The shell runs the user's command. A simple one replaces the shell, so that its signals and
 * last words are seen as they are and not as the shell retells them. */
static process *start_command(client *c, const char *command, char *why, size_t why_size)
{
    const bool simple = !command[strcspn(command, ";&|(){}=!`\n")];
    char shell[] = "/bin/sh", minus_c[] = "-c", text[4096];
    const int length = snprintf(text, sizeof text, "%s%s", simple ? "exec " : "", command);
    if (length >= (int)sizeof text) {
        snprintf(why, why_size, "the command is longer than %d bytes; put it into a file",
                 (int)sizeof text);
        return NULL;
    }
    char *const argv[] = {shell, minus_c, text, NULL};
    return process_start(argv, c->stderr_log, why, why_size);
}

static call_result start(client *c)
{
    char why[320], worker[] = "worker";
    const char *command = kind_rest(c->spec, KIND_EXEC);
    char *const argv[] = {c->assay, worker, c->spec, c->options, NULL};
    c->process = command ? start_command(c, command, why, sizeof why)
                         : process_start(argv, c->stderr_log, why, sizeof why);
    if (!c->process) /* a program that ends starts no more */
        return report(c, OP_CLAIMS, stop_asked(c->stop) ? CALL_STOPPED : CALL_HARNESS, why);
    process_obey(c->process, c->stop);
    c->has_panel = c->has_model = false;
    c->answered = 0;
    c->processes++;
    return CALL_OK;
}

/* FRM-07: who tells a version of frames refuses another one. Asked for claims in a version to
 * come, it must not answer as in today's. */
static call_result ask_another_version(client *c)
{
    const layout_parts none = {.value = {0}};
    frame reply;
    c->version = FRAME_VERSION + 1;
    const call_result r = exchange(c, OP_CLAIMS, &none, &reply);
    c->version = FRAME_VERSION;
    frame_release(&reply);
    if (r == CALL_REFUSED && c->status == IUT_UNSUPPORTED) return CALL_OK;
    return r == CALL_OK || r == CALL_REFUSED
               ? end_process(c, OP_CLAIMS, CALL_GARBAGE,
                             "a request of another version of frames is not refused as "
                             "unsupported (FRM-07)")
               : r;
}

/* The claims of a process to come, against those of the first: CLM-13. */
static bool claims_again(const client *c, const json_t *args, char *why, size_t why_size)
{
    iut_claims now;
    unsigned ops;
    if (!claims_decode(args, &now, &ops, why, why_size)) return false;
    const char *field = ops == c->ops ? claims_difference(&c->claims, &now) : "ops";
    if (field) snprintf(why, why_size, "another claim after a restart: %s (CLM-13)", field);
    return !field;
}

/* Asks for the claims. A restarted IUT must claim what it claimed at first. */
static call_result ask_claims(client *c)
{
    const layout_parts none = {.value = {0}};
    const bool first = !c->claims_args;
    frame reply;
    char why[320];
    call_result r = exchange(c, OP_CLAIMS, &none, &reply);
    const bool tells = r == CALL_OK && reply.version > 0;
    if (r == CALL_OK && c->claims_args) {
        if (!claims_again(c, reply.args, why, sizeof why)) r = end_process(c, OP_CLAIMS, CALL_GARBAGE, why);
    } else if (r == CALL_OK) {
        if (claims_decode(reply.args, &c->claims, &c->ops, why, sizeof why))
            c->claims_args = json_incref(reply.args);
        else
            r = end_process(c, OP_CLAIMS, CALL_GARBAGE, why);
    }
    frame_release(&reply);
    return r == CALL_OK && first && tells ? ask_another_version(c) : r;
}

/* The parts of a batch; their shapes may depend on the panel and the model. */
static void take_apart(const client *c, iut_op op, const void *batch, layout_parts *parts)
{
    *parts = (layout_parts){.value = {[PANEL_V] = c->panel ? c->panel->V : 0,
                                      [MODEL_V] = c->shape[0],
                                      [MODEL_KV_HEADS] = c->shape[2],
                                      [MODEL_HEAD_DIM] = c->shape[3]}};
    layout_take_apart(op, batch, parts);
}

/* The operation, in the process that there is. */
static call_result ask(client *c, iut_op op, const void *batch)
{
    layout_parts parts;
    frame reply;
    take_apart(c, op, batch, &parts);
    const call_result r = exchange(c, op, &parts, &reply);
    frame_release(&reply);
    return r;
}

/* Sizes that everything after the model is allocated by. */
static bool shape_is_possible(const int32_t *shape /* [4] */)
{
    for (int i = 0; i < 4; i++)
        if (shape[i] < 1 || shape[i] > 1 << 20) return false;
    return (int64_t)shape[2] * shape[3] <= 1 << 20;
}

static call_result ask_for_model(client *c)
{
    const call_result r = ask(c, OP_MODEL, c->model);
    return r != CALL_OK || shape_is_possible(c->shape)
               ? r
               : end_process(c, OP_MODEL, CALL_GARBAGE, "its shape is no model's");
}

static call_result give_panel(client *c)
{
    const call_result r = ask(c, OP_PANEL, c->panel);
    c->has_panel = r == CALL_OK;
    return r;
}

static call_result give_model(client *c)
{
    const call_result r = ask_for_model(c);
    c->has_model = r == CALL_OK;
    return r;
}

/* A process that has what the operation needs, if it was given before. */
static call_result ready(client *c, iut_op op)
{
    call_result r = CALL_OK;
    if (!c->process) {
        r = start(c);
        if (r == CALL_OK) r = ask_claims(c);
        if (r == CALL_REFUSED) { /* of a process without claims nothing is asked */
            process_free(c->process);
            c->process = NULL;
        }
    }
    if (r == CALL_OK && layout[op].need == NEEDS_PANEL && c->panel && !c->has_panel) r = give_panel(c);
    if (r == CALL_OK && layout[op].need == NEEDS_MODEL && c->model && !c->has_model) r = give_model(c);
    return r;
}

/* ---- Open and close. ------------------------------------------------------------- */

static char *copy_text(const char *text)
{
    return text ? strdup(text) : NULL;
}

__attribute__((format(printf, 4, 5))) static client *
not_opened(client_failure *f, call_result result, iut_status status, const char *format, ...)
{
    va_list arguments;
    *f = (client_failure){.result = result, .status = status};
    va_start(arguments, format);
    vsnprintf(f->text, sizeof f->text, format, arguments);
    va_end(arguments);
    frame_text(f->text);
    return NULL;
}

/* Did the first request fail because nothing is there to answer it? Of a command a shell says
 * so by these exit codes; of the others our own worker does, by the status of its reply. */
static bool names_nothing(const client *c, call_result result)
{
    enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };
    if (kind_of(c->spec) == KIND_EXEC)
        return result == CALL_CRASH &&
               (c->exit_code == NOT_EXECUTABLE || c->exit_code == NOT_FOUND);
    return result == CALL_REFUSED && c->status == IUT_BAD_INPUT;
}

client *client_open(const client_options *options, client_failure *f)
{
    const spec_kind kind = kind_of(options->spec);
    if (kind == KIND_NONE)
        return not_opened(f, CALL_NO_SUCH, IUT_OK,
                          "iut: no such kind: %.100s; write " KINDS_TEXT, options->spec);
    const char *given = options->options ? options->options : "";
    if (*given && kind == KIND_EXEC)
        return not_opened(f, CALL_NO_SUCH, IUT_OK,
                          "iut: options (%.60s) with exec: write them into the command", given);
    char lacks[400];
    if (!options->assay && !load_is_whole(kind, lacks, sizeof lacks))
        return not_opened(f, CALL_HARNESS, IUT_OK, "%.60s: %s", options->spec, lacks);
    client *c = calloc(1, sizeof *c);
    if (!c) return not_opened(f, CALL_HARNESS, IUT_OK, "iut: out of memory");
    c->spec = copy_text(options->spec);
    c->options = copy_text(given);
    c->assay = copy_text(options->assay ? options->assay : "/proc/self/exe");
    c->stderr_log = copy_text(options->stderr_log);
    c->timeout = options->timeout > 0 ? options->timeout : 10;
    c->stop = options->stop;
    c->version = FRAME_VERSION;
    call_result result = c->spec && c->options && c->assay
                             ? ready(c, OP_CLAIMS)
                             : report(c, OP_CLAIMS, CALL_HARNESS, "out of memory");
    if (result == CALL_OK) return c;
    if (names_nothing(c, result)) result = CALL_NO_SUCH;
    not_opened(f, result, result == CALL_REFUSED ? c->status : IUT_OK, "%.60s: %s",
               options->spec, c->text);
    client_close(c);
    return NULL;
}

client *client_open_table(const iut_api *api, const char *options, client_failure *f)
{
    client *c = calloc(1, sizeof *c);
    if (!c) return not_opened(f, CALL_HARNESS, IUT_OK, "iut: out of memory");
    *f = (client_failure){.result = CALL_REFUSED, .status = IUT_FAILED};
    if (load_table(api, &c->api, f->text, sizeof f->text))
        c->instance = c->api.create(options ? options : "", f->text, sizeof f->text);
    c->options = copy_text(options ? options : "");
    if (c->instance) {
        c->processes = 1;
        c->ops = iut_ops_of(&c->api);
        c->claims.size = sizeof c->claims;
        const iut_status s = c->api.claims(c->instance, &c->claims);
        if (s != IUT_OK)
            not_opened(f, CALL_REFUSED, s, "claims: %s", c->api.last_error(c->instance));
        else if (claims_check_ops(c->ops, f->text, sizeof f->text) &&
                 claims_check(&c->claims, f->text, sizeof f->text))
            return c;
        else
            f->result = CALL_GARBAGE, f->status = IUT_OK;
    }
    frame_text(f->text);
    client_close(c);
    return NULL;
}

/* The process is at rest: whatever it still writes answers nothing. */
call_result client_finish(client *c)
{
    char how[320], what[400];
    const double grace = c->timeout > 1 ? c->timeout : 1;
    if (!c->process) return CALL_OK;
    bool more = process_has_output(c->process);
    process_close_input(c->process);
    const process_ending end = process_kill(c->process, more ? 0 : grace, how, sizeof how);
    more = more || process_has_output(c->process);
    process_free(c->process);
    c->process = NULL;
    if (!more && end == ENDED_WELL) return CALL_OK;
    snprintf(what, sizeof what, "%s (%s)",
             more                  ? "bytes that answer no request"
             : end == ENDED_KILLED ? "the process does not end"
                                   : "every request was answered, then",
             how);
    return report_as(c, "end of input",
                     stop_asked(c->stop)   ? CALL_STOPPED
                     : more                ? CALL_GARBAGE
                     : end == ENDED_KILLED ? CALL_TIMEOUT
                                           : CALL_CRASH,
                     what);
}

bool client_stopped(const client *c)
{
    return c->stopped;
}

void client_close(client *c)
{
    if (!c) return;
    if (c->instance) c->api.destroy(c->instance);
    process_free(c->process);
    json_decref(c->claims_args);
    free(c->panel);
    free(c->model);
    free(c->spec);
    free(c->options);
    free(c->assay);
    free(c->stderr_log);
    free(c);
}

/* ---- The operations. ------------------------------------------------------------- */

void client_bring(client *c, struct brought *traces)
{
    c->traces = traces;
}

struct brought *client_brought(const client *c)
{
    return c->traces;
}

const iut_claims *client_claims(const client *c)
{
    return &c->claims;
}

bool client_has(const client *c, iut_op op)
{
    return c->ops >> op & 1;
}

iut_status client_status(const client *c)
{
    return c->status;
}

const char *client_text(const client *c)
{
    return c->text;
}

/* The result of a table's function in this process. */
static call_result from_table(client *c, iut_op op, iut_status s)
{
    char text[400];
    if (s == IUT_OK) return CALL_OK;
    c->status = s;
    snprintf(text, sizeof text, "%s: %s", iut_status_name(s), c->api.last_error(c->instance));
    return report(c, op, CALL_REFUSED, text);
}

static call_result not_claimed(client *c, iut_op op)
{
    c->status = IUT_UNSUPPORTED;
    return report(c, op, CALL_REFUSED, "unsupported: the operation is not claimed");
}

call_result client_call(client *c, iut_op op, void *batch)
{
    layout_parts parts;
    if (!client_has(c, op)) return not_claimed(c, op);
    if (c->instance) {
        take_apart(c, op, batch, &parts);
        layout_clear(op, &parts);
        return from_table(c, op, iut_op_call(&c->api, c->instance, op, batch));
    }
    const call_result r = ready(c, op);
    return r == CALL_OK ? ask(c, op, batch) : r;
}

/* ---- What is kept for a process to come. ----------------------------------------- */

call_result client_panel(client *c, const iut_panel *panel)
{
    if (!client_has(c, OP_PANEL)) return not_claimed(c, OP_PANEL);
    if (panel->V < 1 || panel->S < 1 || panel->C < 1)
        return report(c, OP_PANEL, CALL_HARNESS, "V, S and C must be at least 1");
    iut_panel *copy = layout_copy(OP_PANEL, panel);
    if (!copy) return report(c, OP_PANEL, CALL_HARNESS, "out of memory");
    free(c->panel);
    c->panel = copy;
    if (c->instance) return client_call(c, OP_PANEL, copy);
    const call_result r = ready(c, OP_PANEL);
    return r == CALL_OK ? give_panel(c) : r;
}

static call_result model_from_table(client *c)
{
    const call_result r = client_call(c, OP_MODEL, c->model);
    return r != CALL_OK || shape_is_possible(c->shape)
               ? r
               : report(c, OP_MODEL, CALL_GARBAGE, "its shape is no model's");
}

call_result client_model(client *c, iut_model *m)
{
    if (!client_has(c, OP_MODEL)) return not_claimed(c, OP_MODEL);
    iut_model *copy = layout_copy(OP_MODEL, m);
    if (!copy) return report(c, OP_MODEL, CALL_HARNESS, "out of memory");
    free(c->model);
    c->model = copy;
    copy->shape = c->shape;
    call_result r = c->instance ? model_from_table(c) : ready(c, OP_MODEL);
    if (r == CALL_OK && !c->instance) r = give_model(c);
    memcpy(m->shape, c->shape, sizeof c->shape);
    if (r != CALL_OK) { /* there is none to come back to */
        free(c->model);
        c->model = NULL;
    }
    return r;
}

/* ---- Another process. ------------------------------------------------------------ */

static call_result another_instance(client *c)
{
    char why[320] = "";
    c->api.destroy(c->instance);
    c->instance = c->api.create(c->options ? c->options : "", why, sizeof why);
    if (!c->instance) return report_as(c, "restart", CALL_CRASH, why);
    c->processes++;
    const call_result r = c->panel ? client_call(c, OP_PANEL, c->panel) : CALL_OK;
    return r == CALL_OK && c->model ? model_from_table(c) : r;
}

call_result client_restart(client *c)
{
    if (c->instance) return another_instance(c);
    const call_result r = client_finish(c);
    return r == CALL_OK ? ready(c, OP_CLAIMS) : r;
}

int32_t client_processes(const client *c)
{
    return c->processes;
}

/* ---- Operations without a batch in iut.h. ---------------------------------------- */

call_result client_served(client *c, int32_t n, const int32_t *state, int32_t of_draft,
                          float *prob)
{
    iut_row_batch b = {sizeof b, n, state, of_draft, prob};
    return client_call(c, OP_SERVED, &b);
}

call_result client_residual(client *c, int32_t n, const int32_t *state, float *r)
{
    iut_row_batch b = {sizeof b, n, state, 0, r};
    return client_call(c, OP_RESIDUAL, &b);
}

call_result client_cache_poison(client *c)
{
    iut_empty_batch b = {sizeof b};
    return client_call(c, OP_CACHE_POISON, &b);
}
