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

enum {
    V = 5,
    S = 3,
    C = 2,
    N = 2,
    GAMMA = 2,
    K = 3,
    LAYERS = 2,
    HEAD = 2,
    ALL_OPS = (1 << OP_COUNT) - 1
};

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
    static const int32_t shape[4] = {V, LAYERS, 1, HEAD};
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

static call_result load_panel(client *c)
{
    static const int32_t cls[V] = {0, 1, 0, 1, 0}, next[S * C] = {0, 1, 2, 0, 1, 2};
    static const float row[S * V] = {0};
    const iut_panel panel = {.size = sizeof panel,
                             .V = V,
                             .S = S,
                             .C = C,
                             .cls = cls,
                             .next = next,
                             .p = row,
                             .q = row,
                             .p_logit = row,
                             .q_logit = row};
    return client_panel(c, &panel);
}

/* Every array has its exact size on the heap. */
static void *array(size_t count, size_t width)
{
    void *x = calloc(count, width);
    MUST(x);
    return x;
}

static call_result call_rows(client *c, const int32_t *state)
{
    float *out = array(N * V, sizeof *out);
    const call_result r = input_op == OP_SERVED ? client_served(c, N, state, 1, out)
                                                : client_residual(c, N, state, out);
    free(out);
    return r;
}

static call_result call_draw(client *c, const int32_t *state, const double *u)
{
    int32_t *token = array(N, sizeof *token);
    iut_draw_batch b = {.size = sizeof b, .n = N, .state = state, .u = u, .token = token};
    const call_result r = client_draw(c, &b);
    free(token);
    return r;
}

static call_result call_verify(client *c, const int32_t *state, const double *u)
{
    static const int32_t len[N] = {2, 1}, draft[N * GAMMA] = {0, 1, 4, -1};
    int32_t *out = array(N * (GAMMA + 1), sizeof *out), *out_len = array(N, sizeof *out_len);
    iut_verify_batch b = {.size = sizeof b,
                          .n = N,
                          .gamma = GAMMA,
                          .len = len,
                          .state = state,
                          .draft = draft,
                          .u = u,
                          .out = out,
                          .out_len = out_len};
    const call_result r =
        input_op == OP_VERIFY ? client_verify(c, &b) : client_verify_greedy(c, &b);
    free(out), free(out_len);
    return r;
}

static call_result call_stream(client *c, const int32_t *state)
{
    int32_t *out = array(N * K, 4), *out_len = array(N, 4), *accepted = array(N * K, 4);
    iut_stream_batch b = {.size = sizeof b,
                          .n = N,
                          .gamma = GAMMA,
                          .k = K,
                          .eos = -1,
                          .start = state,
                          .out = out,
                          .out_len = out_len,
                          .accepted = accepted};
    const call_result r = client_stream(c, &b);
    free(out), free(out_len), free(accepted);
    return r;
}

static call_result load_model(client *c)
{
    int32_t *shape = array(4, 4);
    iut_model m = {sizeof m, "folder", 2, 8, 4, 0, shape};
    const call_result r = client_model(c, &m);
    if (r == CALL_OK)
        for (int i = 0; i < 4; i++) MUST(shape[i] >= 1 && shape[i] <= 1 << 20);
    free(shape);
    return r;
}

/* The operations on a model of V, LAYERS, 1, HEAD. */
static call_result call_model_op(client *c)
{
    static const int32_t two[2] = {0, 1}, ones[2] = {1, 1}, roots[2] = {-1, -1};
    float *wide = array(2 * V, 4), *key = array(2 * HEAD, 4), *value = array(2 * HEAD, 4);
    int32_t *length = array(2, 4);
    iut_forward_batch f = {sizeof f, 2, 2, 2, two, ones, ones, two, roots, two, wide};
    iut_commit_batch m = {sizeof m, 2, 2, two, ones, two, length};
    iut_truncate_batch t = {sizeof t, 2, two, two, length};
    iut_cache_batch k = {sizeof k, 2, two, two, two, key, value};
    const call_result r = input_op == OP_FORWARD      ? client_forward(c, &f)
                          : input_op == OP_COMMIT     ? client_commit(c, &m)
                          : input_op == OP_TRUNCATE   ? client_truncate(c, &t)
                          : input_op == OP_CACHE_READ ? client_cache_read(c, &k)
                                                      : client_cache_poison(c);
    free(wide), free(key), free(value), free(length);
    return r;
}

static call_result call_generate(client *c)
{
    static const int32_t count[N] = {1, 2}, prompt[3] = {0, 4, 1};
    static const iut_processors processors[N] = {{1.5F, 0, 1}, {1, 0, 0}};
    int32_t *out = array(N * K, 4), *out_len = array(N, 4), *accepted = array(N * K, 4);
    iut_generate_batch b = {.size = sizeof b,
                            .target = "target",
                            .draft = "",
                            .n = N,
                            .k = K,
                            .eos = -1,
                            .prompts = 3,
                            .prompt_count = count,
                            .prompt = prompt,
                            .out = out,
                            .out_len = out_len,
                            .accepted = accepted,
                            .processors = processors};
    const call_result r = client_generate(c, &b);
    free(out), free(out_len), free(accepted);
    return r;
}

static call_result call_pool(client *c)
{
    static const int32_t insert[N] = {1, 0}, key[N] = {4, 4}, value[N * 2] = {0, 1, -1, -1};
    int32_t *count = array(N, 4), *out = array(N * K * 2, 4);
    iut_pool_batch b = {.size = sizeof b,
                        .kind = IUT_POOL_RING,
                        .V = V,
                        .N = 3,
                        .G = K,
                        .n = N,
                        .insert = insert,
                        .key = key,
                        .value = value,
                        .count = count,
                        .out = out};
    const call_result r = client_pool(c, &b);
    free(count), free(out);
    return r;
}

static call_result call_verify_tree(client *c)
{
    static const int32_t count[N] = {2, 1}, token[3] = {-1, 4, -1}, parent[3] = {-1, 0, -1}, state[3] = {0, 1, 2};
    static const int32_t q_state[3] = {-1, 0, -1}, drawn[3] = {IUT_DRAWN_IID, 0, 0};
    static const int32_t rule[N] = {IUT_TREE_RECURSIVE, IUT_TREE_MATCH};
    int32_t *out = array(N * (GAMMA + 1), 4), *out_node = array(N * (GAMMA + 1), 4), *out_len = array(N, 4);
    iut_tree_batch b = {.size = sizeof b,
                        .n = N,
                        .nodes = 3,
                        .depth = GAMMA,
                        .node_count = count,
                        .token = token,
                        .parent = parent,
                        .state = state,
                        .q_state = q_state,
                        .drawn = drawn,
                        .rule = rule,
                        .out = out,
                        .out_node = out_node,
                        .out_len = out_len};
    const call_result r = client_verify_tree(c, &b);
    free(out), free(out_node), free(out_len);
    return r;
}

static call_result call_op(client *c)
{
    static const int32_t state[N * (GAMMA + 1)] = {0, 1, 2, 2, 1, 0};
    static const double u[N * (GAMMA + 2)] = {0};
    switch (input_op) {
    case OP_PANEL:
        return load_panel(c);
    case OP_SERVED:
    case OP_RESIDUAL:
        return call_rows(c, state);
    case OP_DRAW:
        return call_draw(c, state, u);
    case OP_STREAM:
        return call_stream(c, state);
    case OP_VERIFY:
    case OP_VERIFY_GREEDY:
        return call_verify(c, state, u);
    case OP_MODEL:
        return load_model(c);
    case OP_GENERATE:
        return call_generate(c);
    case OP_POOL:
        return call_pool(c);
    case OP_VERIFY_TREE:
        return call_verify_tree(c);
    default:
        return call_model_op(c);
    }
}

static void check_text(const char *text, call_result r)
{
    MUST(r >= CALL_OK && r < CALL_HARNESS);
    if (r != CALL_OK) MUST(*text);
    for (; *text; text++) MUST(*text >= ' ' && *text <= '~');
}

/* An answer that was taken is an ok frame with exactly the arrays of its op, written down here
 * anew. */
static void check_taken(void)
{
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const client_options options = {.spec = "ref"};
    client_failure f;
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
        MUST(input_op == OP_PANEL || load_panel(c) == CALL_OK);
        MUST(input_op < OP_FORWARD || load_model(c) == CALL_OK);
        for (int i = 0; i < 2; i++) {
            const call_result r = call_op(c);
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
