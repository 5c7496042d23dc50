/* What the client makes of an answer: FRM-03, FRM-05, STA-02, CLM-04. Claims and panel are
 * answered well; the first byte chooses the operation that is answered with the rest of the
 * input, and whether a silent process has ended or hangs. The process is a fake in memory, in
 * the place of process.c and clock.c.
 *
 * Every answer ends in a result, with a line of text unless it is ok; arrays are written in
 * their sizes only, and a second call, after a restart if the process was replaced, behaves in
 * the same way. */
#include <string.h>

#include "conformance/wire/claims.h"
#include "conformance/wire/client.h"
#include "conformance/wire/clock.h"
#include "conformance/wire/frames.h"
#include "conformance/wire/process.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/parts.h"

enum { V = 5, ALL_OPS = (1 << OP_COUNT) - 1 };

/* The arrays of a right answer to each operation, written down here anew. */
static const char *const due[OP_COUNT] = {
    [OP_CLAIMS] = "",
    [OP_PANEL] = "",
    [OP_SERVED] = "prob f32 2 5;",
    [OP_RESIDUAL] = "r f32 2 5;",
    [OP_DRAW] = "token i32 2;",
    [OP_VERIFY] = "out i32 2 3;out_len i32 2;",
    [OP_VERIFY_GREEDY] = "out i32 2 3;out_len i32 2;",
    [OP_STREAM] = "out i32 2 3;out_len i32 2;accepted i32 2 3;",
    [OP_MODEL] = "shape i32 4;",
    [OP_FORWARD] = "logits f32 2 5;",
    [OP_COMMIT] = "length i32 2;",
    [OP_TRUNCATE] = "length i32 2;",
    [OP_CACHE_READ] = "key f32 2 1 2;value f32 2 1 2;",
    [OP_CACHE_POISON] = "",
    [OP_GENERATE] = "out i32 2 3;out_len i32 2;accepted i32 2 3;",
    [OP_POOL] = "count i32 2;out i32 2 3 2;",
    [OP_VERIFY_TREE] = "out i32 2 3;out_node i32 2 3;out_len i32 2;"};

/* ---- A process that answers from memory. ----------------------------------------- */

struct process {
    uint8_t *answer; /* [size] malloc'd: to the last request */
    size_t size, read;
};

static const uint8_t *input; /* [input_size]: the answer under test */
static size_t input_size;
static iut_op input_op;
static bool hangs;
static int sent; /* answers under test that were sent */
static bool rightly; /* in the place of the input the operation gets what is due */

double clock_now(void)
{
    return 0;
}

process *process_start(char *const argv[], const char *stderr_log, char *why, size_t why_size)
{
    (void)argv, (void)stderr_log, (void)why, (void)why_size;
    return calloc(1, sizeof(process));
}

static void answer_frame(process *p, const frame *f)
{
    p->answer = frame_encode(f, &p->size);
    MUST(p->answer);
}

static void answer_model(process *p, int64_t id)
{
    static const int32_t shape[4] = {V, PARTS_LAYERS, 1, PARTS_HEAD};
    answer_frame(p, &(frame){.id = id,
                             .status = "ok",
                             .tensors = 1,
                             .tensor = {{"shape", TENSOR_I32, 1, {4}, sizeof shape, shape}}});
    p->answer = realloc(p->answer, p->size + sizeof shape);
    MUST(p->answer);
    memcpy(p->answer + p->size, shape, sizeof shape);
    p->size += sizeof shape;
}

/* A proper answer to claims, panel or model. */
static void answer_well(process *p, const frame *request)
{
    if (strcmp(request->op, "model") == 0) {
        answer_model(p, request->id);
        return;
    }
    const iut_claims claims = {
        .size = sizeof claims, .name = "n", .version = "v", .device = "d"};
    const bool claim = strcmp(request->op, "claims") == 0;
    json_t *args = claim ? claims_encode(&claims, ALL_OPS, CLAIMS_SINCE) : NULL;
    answer_frame(p, &(frame){.id = request->id, .status = "ok", .args = args});
    json_decref(args);
}

/* The operation's answer as it is due, each word of it 1: a shape of that is possible. */
static void answer_duly(process *p, int64_t id)
{
    char name[FRAME_MAX_TENSORS][20], type[4];
    frame f = {.id = id, .status = "ok"};
    size_t payload = 0;
    for (const char *at = due[input_op]; *at; at++, payload += f.tensor[f.tensors++].size) {
        frame_tensor *t = &f.tensor[f.tensors];
        int used;
        MUST(sscanf(at, "%19s %3s%n", name[f.tensors], type, &used) == 2);
        for (at += used; *at == ' '; t->rank++) t->shape[t->rank] = strtol(at, (char **)&at, 10);
        while (strcmp(tensor_name(t->type), type) != 0) MUST(++t->type < TENSOR_TYPES);
        t->name = name[f.tensors];
        t->size = tensor_width(t->type);
        for (int32_t d = 0; d < t->rank; d++) t->size *= (size_t)t->shape[d];
    }
    answer_frame(p, &f);
    p->answer = realloc(p->answer, p->size + payload);
    MUST(p->answer);
    for (const int32_t one = 1; payload; payload -= sizeof one, p->size += sizeof one)
        memcpy(p->answer + p->size, &one, sizeof one);
}

/* What the client sends is checked on the way: it is a frame, in the layout of its op. */
void process_obey(process *p, const stop *s)
{
    (void)p, (void)s;
}

void process_send(process *p, const struct iovec *parts, int count)
{
    frame request;
    char why[200];
    size_t size = 0;
    static uint8_t whole[1 << 16];
    for (int i = 0; i < count; size += parts[i++].iov_len)
        memcpy(whole + size, parts[i].iov_base, parts[i].iov_len);
    MUST(frame_parse(whole, size, &request, why, sizeof why));
    free(p->answer);
    p->answer = NULL;
    p->size = p->read = 0;
    if (strcmp(request.op, iut_op_name(input_op)) == 0) {
        sent++;
        if (rightly) {
            answer_duly(p, request.id);
            frame_release(&request);
            return;
        }
        p->answer = malloc(input_size ? input_size : 1);
        MUST(p->answer);
        memcpy(p->answer, input, input_size);
        p->size = input_size;
    } else {
        answer_well(p, &request);
    }
    frame_release(&request);
}

io_result process_read(process *p, void *to, size_t size, double deadline)
{
    (void)deadline;
    const size_t left = p->size - p->read, n = size < left ? size : left;
    if (n) memcpy(to, p->answer + p->read, n);
    p->read += n;
    return n == size ? IO_OK : hangs ? IO_TIMEOUT : IO_CLOSED;
}

io_result process_flush(process *p, double deadline)
{
    (void)p, (void)deadline;
    return IO_OK;
}

bool process_has_output(process *p)
{
    return p->read < p->size;
}

void process_close_input(process *p)
{
    (void)p;
}

process_ending process_kill(process *p, double grace, char *text, size_t size)
{
    (void)p, (void)grace;
    snprintf(text, size, "exit code 1");
    return ENDED_BADLY;
}

void process_last_words(process *p, const char *said, char *line, size_t size)
{
    (void)p, (void)said, (void)size;
    *line = '\0';
}

int process_exit_code(const process *p)
{
    (void)p;
    return -1;
}

void process_free(process *p)
{
    if (!p) return;
    free(p->answer);
    free(p);
}

/* ---- The calls. ------------------------------------------------------------------ */

/* A right call of any operation, by the table. */
static call_result call(client *c, iut_op op)
{
    layout_parts parts;
    void *batch = malloc(layout[op].size);
    MUST(batch);
    parts_make(op, V, &parts);
    layout_put_together(op, &parts, batch);
    const call_result r = op == OP_PANEL   ? client_panel(c, batch)
                          : op == OP_MODEL ? client_model(c, batch)
                                           : client_call(c, op, batch);
    const int32_t *shape = op == OP_MODEL && r == CALL_OK ? ((iut_model *)batch)->shape : NULL;
    for (int i = 0; shape && i < 4; i++) MUST(shape[i] >= 1 && shape[i] <= 1 << 20);
    parts_free(op, &parts);
    free(batch);
    return r;
}

static void check_text(const char *text, call_result r)
{
    MUST(r >= CALL_OK && r < CALL_HARNESS);
    if (r != CALL_OK) MUST(*text);
    for (; *text; text++) MUST(*text >= ' ' && *text <= '~');
}

/* An answer that was taken is an ok frame with exactly the arrays of its op. */
static void check_taken(void)
{
    char text[400] = "", why[200];
    size_t at = 0;
    frame f;
    MUST(frame_parse(input, input_size, &f, why, sizeof why));
    MUST(f.status && strcmp(f.status, "ok") == 0 && f.tensors <= 3);
    for (int32_t i = 0; i < f.tensors; i++) {
        const frame_tensor *t = &f.tensor[i];
        at += (size_t)sprintf(text + at, "%.20s %s", t->name, tensor_name(t->type));
        for (int32_t d = 0; d < t->rank; d++)
            at += (size_t)sprintf(text + at, " %lld", (long long)t->shape[d]);
        at += (size_t)sprintf(text + at, ";");
    }
    MUST(strcmp(text, due[input_op]) == 0);
    frame_release(&f);
}

static const client_options options = {.spec = "ref"};

/* With what the operation needs. */
static void prepare(client *c)
{
    MUST(input_op == OP_PANEL || call(c, OP_PANEL) == CALL_OK);
    MUST(input_op < OP_FORWARD || call(c, OP_MODEL) == CALL_OK);
}

/* Each operation of the table has a row of `due`, and what is due is taken. */
static void every_operation_is_reached(void)
{
    client_failure f;
    MUST(due[OP_CLAIMS]);
    rightly = true;
    for (input_op = OP_PANEL; input_op < OP_COUNT; input_op++) {
        MUST(due[input_op]);
        client *c = client_open(&options, &f);
        MUST(c);
        prepare(c);
        sent = 0;
        MUST(call(c, input_op) == CALL_OK && sent == 1);
        client_close(c);
    }
    rightly = false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool reached;
    client_failure f;
    if (!reached) every_operation_is_reached();
    reached = true;
    if (size < 1) return 0;
    input_op = (iut_op)(data[0] % OP_COUNT);
    hangs = data[0] & 0x80;
    input = data + 1, input_size = size - 1;
    sent = 0;
    client *c = client_open(&options, &f);
    MUST(input_op == OP_CLAIMS ? sent == 1 || sent == 2 : sent == 0); /* FRM-07 asks anew */
    if (!c) {
        MUST(f.result != CALL_OK && !f.status == (f.result != CALL_REFUSED));
        check_text(f.text, f.result);
    }
    if (c && input_op == OP_CLAIMS) check_taken();
    if (c && input_op != OP_CLAIMS) {
        prepare(c);
        for (int i = 0; i < 2; i++) {
            const call_result r = call(c, input_op);
            check_text(client_text(c), r);
            if (r == CALL_OK) check_taken();
            MUST(sent > i);
        }
        const call_result r = client_finish(c);
        if (r != CALL_OK) check_text(client_text(c), r);
    }
    client_close(c);
    return 0;
}
