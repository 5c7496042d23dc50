/* What the worker makes of its standard input: FRM-01 to FRM-05, INV-02. The first byte chooses
 * the implementation behind it; the rest is what the suite's side writes. One is a table that
 * holds the worker to its word (worker.h): only checked requests arrive, with arrays of the
 * sizes that the frame had. The others are the reference, which must survive any rows and
 * drafts.
 *
 * Every whole request is answered in order by a valid reply of its id. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "conformance/subjects/ref/subject.h"
#include "conformance/wire/frames.h"
#include "conformance/wire/worker.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/parts.h"

enum { MEMORY = 1 << 18, CALLS = 256, STUB_V = 3 }; /* STUB_V: of its model */

/* ---- Memory: arrays beyond MEMORY bytes are refused, as on a machine that has no more. */

static bool memory_ran_out;

void *__real_mmap(void *, size_t, int, int, int, off_t);
void *__wrap_mmap(void *, size_t, int, int, int, off_t);

void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd, off_t offset)
{
    if (size <= MEMORY) return __real_mmap(at, size, protection, flags, fd, offset);
    memory_ran_out = true;
    errno = ENOMEM;
    return MAP_FAILED;
}

/* ---- The table that looks at what arrives. --------------------------------------- */

struct iut {
    int32_t V, S, sequences, positions;
};

static size_t consumed[CALLS]; /* bytes of input arrays of each call that went well */
static int calls;
static unsigned checksum;

static void took(const void *array, size_t count, size_t width)
{
    const uint8_t *bytes = array;
    for (size_t i = 0; i < count * width; i++) checksum += bytes[i];
    if (calls < CALLS) consumed[calls] += count * width;
}

static void took_integers(const int32_t *x, size_t count, int32_t low, int32_t high)
{
    for (size_t i = 0; i < count; i++) MUST(x[i] >= low && x[i] <= high);
    took(x, count, sizeof *x);
}

static void took_uniforms(const double *u, size_t count)
{
    if (!u) return;
    for (size_t i = 0; i < count; i++) MUST(u[i] >= 0 && u[i] < 1);
    took(u, count, sizeof *u);
}

static void fresh(const int32_t *out, size_t count)
{
    for (size_t i = 0; i < count; i++) MUST(out[i] == -1);
}

/* Some cases are refused, in the ways that an implementation may come up with. */
static iut_status done(int32_t n)
{
    const iut_status s = n == 7    ? IUT_FAILED
                         : n == 9  ? (iut_status)77
                         : n == 11 ? IUT_UNSUPPORTED
                                   : IUT_OK;
    if (s == IUT_OK)
        calls++;
    else if (calls < CALLS)
        consumed[calls] = 0;
    return s;
}

static iut *create(const char *options, char *error, size_t size)
{
    static iut one;
    (void)options, (void)error, (void)size;
    one = (iut){0};
    return &one;
}

static void destroy(iut *x)
{
    (void)x;
}

static const char *last_error(iut *x)
{
    return x->V % 3 == 0 ? NULL : x->V % 3 == 1 ? "\xff\n\x01 not UTF-8" : "a reason";
}

static iut_status claims(iut *x, iut_claims *c)
{
    (void)x;
    c->name = "stub", c->version = "1", c->device = "cpu";
    return IUT_OK;
}

static iut_status panel(iut *x, const iut_panel *p)
{
    const size_t V = (size_t)p->V, S = (size_t)p->S, C = (size_t)p->C;
    const iut_sampling *sampling[2] = {&p->target, &p->draft};
    MUST(p->V >= 1 && p->S >= 1 && p->C >= 1);
    took_integers(p->cls, V, 0, p->C - 1);
    took_integers(p->next, S * C, 0, p->S - 1);
    const float *const rows[4] = {p->p, p->q, p->p_logit, p->q_logit};
    for (int i = 0; i < 4; i++) took(rows[i], S * V, sizeof(float));
    for (int i = 0; i < 2; i++) {
        took(&sampling[i]->temperature, 1, 4), took(&sampling[i]->top_k, 1, 4);
        took(&sampling[i]->top_p, 1, 4), took(&sampling[i]->min_p, 1, 4);
    }
    MUST(p->draft_V >= 0 && p->draft_V <= p->V && !p->d2t == !p->draft_V);
    if (p->draft_V) {
        const size_t own = (size_t)p->draft_V;
        took_integers(p->d2t, own, 0, p->V - 1);
        for (size_t i = 1; i < own; i++) MUST(p->d2t[i] > p->d2t[i - 1]);
        took(p->draft_q, S * own, 4), took(p->draft_q_logit, S * own, 4);
    }
    x->V = p->V, x->S = p->S;
    return done(p->S);
}

static iut_status rows(iut *x, int32_t n, const int32_t *state, float *out)
{
    MUST(x->V >= 1 && n >= 0);
    took_integers(state, (size_t)n, 0, x->S - 1);
    for (size_t i = 0; i < (size_t)n * (size_t)x->V; i++) out[i] = 0.5F;
    return done(n);
}

static iut_status served(iut *x, int32_t n, const int32_t *state, int32_t of_draft, float *prob)
{
    MUST(of_draft == 0 || of_draft == 1);
    return rows(x, n, state, prob);
}

static iut_status residual(iut *x, int32_t n, const int32_t *state, float *r)
{
    return rows(x, n, state, r);
}

static iut_status draw(iut *x, iut_draw_batch *b)
{
    const size_t n = (size_t)b->n;
    MUST(x->V >= 1 && b->n >= 0);
    took_integers(b->state, n, 0, x->S - 1);
    took_uniforms(b->u, n);
    took(&b->seed, 1, 8), took(&b->position, 1, 8);
    fresh(b->token, n);
    memset(b->token, 0, 4 * n);
    return done(b->n);
}

static iut_status verify(iut *x, iut_verify_batch *b)
{
    const size_t n = (size_t)b->n, gamma = (size_t)b->gamma;
    MUST(x->V >= 1 && b->n >= 0 && b->gamma >= 0);
    took_integers(b->len, n, 0, b->gamma);
    took_integers(b->state, n * (gamma + 1), 0, x->S - 1);
    took(b->draft, n * gamma, 4);
    took_uniforms(b->u, n * (gamma + 2));
    took(&b->seed, 1, 8), took(&b->position, 1, 8);
    MUST(b->coins >= 0 && b->coins <= IUT_COINS_RACE);
    if (b->noise) took(b->noise, n * (size_t)x->V, 4);
    fresh(b->out, n * (gamma + 1)), fresh(b->out_len, n);
    memset(b->out, 0, 4 * n * (gamma + 1));
    return done(b->n);
}

static iut_status stream(iut *x, iut_stream_batch *b)
{
    const size_t n = (size_t)b->n, k = (size_t)b->k;
    MUST(x->V >= 1 && b->n >= 0 && b->gamma >= 0 && b->k >= 1 && b->eos >= -1 && b->eos < x->V);
    took_integers(b->start, n, 0, x->S - 1);
    took(&b->seed, 1, 8);
    fresh(b->out, n * k), fresh(b->out_len, n), fresh(b->accepted, n * k);
    memset(b->out, 0, 4 * n * k);
    return done(b->n);
}

/* ---- Models. --------------------------------------------------------------------- */

static iut_status model(iut *x, iut_model *m)
{
    MUST(m->sequences >= 1 && m->positions >= 1 && m->rows >= 0 && m->folder);
    checksum += (unsigned)strlen(m->folder);
    fresh(m->shape, 4);
    const int32_t shape[4] = {STUB_V, PARTS_LAYERS, 1, PARTS_HEAD};
    memcpy(m->shape, shape, sizeof shape);
    x->sequences = m->sequences, x->positions = m->positions;
    return done(m->sequences);
}

/* Counts of the parts of an array of `total`. */
static void took_counts(const int32_t *count, int32_t n, int32_t low, int32_t total)
{
    int64_t sum = 0;
    took_integers(count, (size_t)n, low, total);
    for (int32_t i = 0; i < n; i++) sum += count[i];
    MUST(sum == total);
}

static iut_status forward(iut *x, iut_forward_batch *b)
{
    MUST(b->n >= 0 && b->n <= x->sequences);
    took_integers(b->sequence, (size_t)b->n, 0, x->sequences - 1);
    took_counts(b->row_count, b->n, 1, b->rows);
    took_counts(b->want_count, b->n, 0, b->wants);
    took(b->token, (size_t)b->rows, 4), took(b->parent, (size_t)b->rows, 4);
    took(b->want, (size_t)b->wants, 4);
    for (size_t i = 0; i < STUB_V * (size_t)b->wants; i++) b->logits[i] = 0.5F;
    return done(b->n);
}

static iut_status commit(iut *x, iut_commit_batch *b)
{
    MUST(b->n >= 0 && b->n <= x->sequences);
    took_integers(b->sequence, (size_t)b->n, 0, x->sequences - 1);
    took_counts(b->path_count, b->n, 0, b->steps);
    took(b->path, (size_t)b->steps, 4);
    fresh(b->length, (size_t)b->n);
    return done(b->n);
}

static iut_status truncate_to(iut *x, iut_truncate_batch *b)
{
    MUST(b->n >= 0 && b->n <= x->sequences);
    took_integers(b->sequence, (size_t)b->n, 0, x->sequences - 1);
    took(b->keep, (size_t)b->n, 4);
    fresh(b->length, (size_t)b->n);
    return done(b->n);
}

static iut_status cache_read(iut *x, iut_cache_batch *b)
{
    const size_t n = (size_t)b->n;
    took_integers(b->sequence, n, 0, x->sequences - 1);
    took_integers(b->layer, n, 0, 1);
    took_integers(b->position, n, 0, x->positions - 1);
    for (size_t i = 0; i < 2 * n; i++) b->key[i] = b->value[i] = 0.5F;
    return done(b->n);
}

static iut_status cache_poison(iut *x)
{
    MUST(x->sequences >= 1);
    return done(0);
}

/* ---- Engines. -------------------------------------------------------------------- */

static iut_status generate(iut *x, iut_generate_batch *b)
{
    const size_t n = (size_t)b->n, k = (size_t)b->k;
    (void)x;
    MUST(b->target && b->draft && b->n >= 0 && b->gamma >= 0 && b->k >= 1 && b->eos >= -1);
    checksum += (unsigned)(strlen(b->target) + strlen(b->draft));
    took_counts(b->prompt_count, b->n, 1, b->prompts);
    took(b->prompt, (size_t)b->prompts, 4);
    MUST(!b->end_count == !b->ends);
    if (b->seeds) took(b->seeds, n, 8);
    if (b->samplings) took(b->samplings, n, sizeof *b->samplings);
    if (b->budgets) took_integers(b->budgets, n, 1, b->k);
    if (b->ends) took_counts(b->end_count, b->n, 0, b->end_total), took(b->ends, (size_t)b->end_total, 4);
    if (b->processors) took(b->processors, 3 * n, 4);
    took(&b->sampling.temperature, 1, 4), took(&b->sampling.top_k, 1, 4);
    took(&b->sampling.top_p, 1, 4), took(&b->sampling.min_p, 1, 4);
    took(&b->seed, 1, 8);
    fresh(b->out, n * k), fresh(b->out_len, n), fresh(b->accepted, n * k);
    memset(b->out, 0, 4 * n * k);
    return done(b->n);
}

/* ---- Pools. ---------------------------------------------------------------------- */

static iut_status pool(iut *x, iut_pool_batch *b)
{
    const size_t n = (size_t)b->n, length = (size_t)b->N - 1,
                 places = n * (size_t)b->G * length;
    (void)x;
    MUST(b->kind == IUT_POOL_LRU || b->kind == IUT_POOL_RING);
    MUST(b->n >= 0 && b->V >= 1 && b->N >= 2 && b->G >= 0);
    took_integers(b->insert, n, 0, 1);
    took(b->key, n, 4), took(b->value, n * length, 4);
    fresh(b->count, n), fresh(b->out, places);
    memset(b->count, 0, 4 * n), memset(b->out, 0, 4 * places);
    return done(b->n);
}

/* ---- Trees. ---------------------------------------------------------------------- */

static iut_status verify_tree(iut *x, iut_tree_batch *b)
{
    const size_t n = (size_t)b->n, nodes = (size_t)b->nodes, K = (size_t)b->samplings, places = n * ((size_t)b->depth + 1);
    MUST(x->V >= 1 && b->n >= 0 && b->nodes >= 0 && b->depth >= 0 && b->samplings >= 0);
    MUST(b->coins >= 0 && b->coins <= IUT_COINS_RACE);
    took_counts(b->node_count, b->n, 1, b->nodes);
    took(b->token, nodes, 4), took(b->parent, nodes, 4);
    took_integers(b->state, nodes, 0, x->S - 1), took_integers(b->q_state, nodes, -1, x->S - 1);
    took_integers(b->drawn, nodes, 0, IUT_DRAWN_MIXED), took_integers(b->rule, n, 1, IUT_TREE_OTHER);
    if (b->parameter) took(b->parameter, 2 * nodes, 8);
    MUST(!b->u == !b->last && !b->sampling == !b->samplings);
    MUST(!b->sampling == !b->draft_sampling && !b->sampling == !b->sampling_of);
    took_uniforms(b->u, nodes), took_uniforms(b->last, 2 * n);
    if (b->sampling) {
        took(b->sampling, K, sizeof *b->sampling), took(b->draft_sampling, K, sizeof *b->sampling);
        took_integers(b->sampling_of, n, 0, b->samplings - 1);
    }
    if (b->noise) took(b->noise, n * (size_t)x->V, 4);
    if (b->bonus) took_integers(b->bonus, nodes, 0, x->V - 1);
    took(&b->seed, 1, 8), took(&b->position, 1, 8);
    fresh(b->out, places), fresh(b->out_node, places), fresh(b->out_len, n);
    memset(b->out, 0, 4 * places);
    return done(b->n);
}

static const iut_api stub = {.abi = IUT_ABI,
                             .size = sizeof stub,
                             .create = create,
                             .destroy = destroy,
                             .last_error = last_error,
                             .claims = claims,
                             .panel = panel,
                             .served = served,
                             .residual = residual,
                             .draw = draw,
                             .verify = verify,
                             .verify_greedy = verify,
                             .stream = stream,
                             .model = model,
                             .forward = forward,
                             .commit = commit,
                             .truncate = truncate_to,
                             .cache_read = cache_read,
                             .cache_poison = cache_poison,
                             .generate = generate,
                             .pool = pool,
                             .verify_tree = verify_tree};

/* ---- Standard input and output in memory. ---------------------------------------- */

static int in, out, standard[2], next_fd;

/* The worker's own messages go nowhere; the sanitizers write to descriptor 2 themselves. */
static void prepare(void)
{
    if (in) return;
    in = memfd_create("in", 0), out = memfd_create("out", 0);
    standard[0] = dup(0), standard[1] = dup(1);
    next_fd = fcntl(1, F_DUPFD, 3); /* the number that the worker will take for its output */
    MUST(in >= 0 && out >= 0 && standard[0] >= 0 && standard[1] >= 0 && next_fd >= 0);
    close(next_fd);
    stderr = fopen("/dev/null", "w");
    MUST(stderr && fileno(stderr) == next_fd);
    next_fd = fcntl(1, F_DUPFD, 3);
    close(next_fd);
}

/* Serves the bytes; what it answered is then in `out`. The worker is made for one run a
 * process: the descriptors that it leaves to the end of the process are put back. */
static void serve(const iut_api *api, const char *options, const uint8_t *bytes, size_t size)
{
    prepare();
    MUST(ftruncate(in, 0) == 0 && ftruncate(out, 0) == 0);
    MUST(pwrite(in, bytes, size, 0) == (ssize_t)size);
    lseek(in, 0, SEEK_SET), lseek(out, 0, SEEK_SET);
    dup2(in, 0), dup2(out, 1);
    const int code = worker_serve(api, options);
    close(next_fd);
    dup2(standard[0], 0), dup2(standard[1], 1);
    MUST(code == 0 || code == 3);
}

/* The first whole frame of the bytes; 0 if there is none. */
static size_t first_frame(const uint8_t *bytes, size_t size, frame *f)
{
    size_t header, payload;
    char why[200];
    if (size < FRAME_PREFIX || !frame_prefix(bytes, &header, &payload, why, sizeof why))
        return 0;
    if (size - FRAME_PREFIX < header || size - FRAME_PREFIX - header < payload) return 0;
    size = FRAME_PREFIX + header + payload;
    return frame_parse(bytes, size, f, why, sizeof why) ? size : 0;
}

static size_t payload_of(const frame *f)
{
    size_t size = 0;
    for (int32_t i = 0; i < f->tensors; i++) size += f->tensor[i].size;
    return size;
}

static void check_answers(const uint8_t *asked, size_t asked_size, bool counted)
{
    static uint8_t answers[CALLS * MEMORY];
    const ssize_t got = pread(out, answers, sizeof answers, 0);
    const uint8_t *a = answers;
    size_t left = got > 0 ? (size_t)got : 0, n;
    int call = 0;
    frame request, reply;
    while ((n = first_frame(asked, asked_size, &request))) {
        const size_t m = first_frame(a, left, &reply);
        if (!m) {
            MUST(memory_ran_out && left == 0);
            frame_release(&request);
            return;
        }
        MUST(reply.status && reply.id == request.id);
        if (counted && strcmp(reply.status, "ok") == 0 && strcmp(request.op, "claims") != 0) {
            MUST(call < calls);
            if (call < CALLS) MUST(consumed[call] == payload_of(&request));
            call++;
        }
        frame_release(&request), frame_release(&reply);
        asked += n, asked_size -= n, a += m, left -= m;
    }
    MUST(left == 0);
}

/* ---- A right request of each operation. ------------------------------------------ */

static uint8_t right[MEMORY];
static size_t right_size;

static void append(const void *bytes, size_t size)
{
    MUST(right_size + size <= sizeof right);
    memcpy(right + right_size, bytes, size);
    right_size += size;
}

static void append_request(iut_op op)
{
    layout_parts parts;
    frame f = {.id = op, .op = iut_op_name(op), .args = json_object()};
    const void *elements[LAYOUT_ARRAYS];
    size_t size;
    parts_make(op, STUB_V, &parts);
    for (const layout_number *i = layout[op].number; i->name; i++)
        json_object_set_new(f.args, i->name, json_integer(parts.value[i->value]));
    for (int t = 0; layout[op].text[t].name; t++)
        json_object_set_new(f.args, layout[op].text[t].name, json_string(parts.text[t]));
    for (int i = 0; layout[op].array[i].name; i++) {
        if (layout_is_answer(&layout[op].array[i]) || !parts.at[i]) continue;
        elements[f.tensors] = parts.at[i];
        MUST(layout_tensor(&layout[op].array[i], parts.value, &f.tensor[f.tensors++]));
    }
    uint8_t *head = frame_encode(&f, &size);
    MUST(head);
    append(head, size);
    for (int32_t i = 0; i < f.tensors; i++) append(elements[i], f.tensor[i].size);
    free(head);
    json_decref(f.args);
    parts_free(op, &parts);
}

/* Panel and model come first. */
static void every_operation_is_reached(void)
{
    append_request(OP_PANEL), append_request(OP_MODEL);
    for (iut_op op = OP_PANEL + 1; op < OP_COUNT; op++)
        if (op != OP_MODEL) append_request(op);
    calls = 0;
    serve(&stub, "", right, right_size);
    check_answers(right, right_size, true);
    MUST(calls == OP_COUNT - 1); /* a stub for each, and no call refused */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const options[] = {NULL, "", "rule=match,uniforms=seeded",
                                          "input=logits", "uniforms=seeded input=logits"};
    static bool reached;
    if (!reached) every_operation_is_reached();
    reached = true;
    if (size < 1) return 0;
    const char *chosen = options[data[0] % (sizeof options / sizeof *options)];
    memory_ran_out = false;
    memset(consumed, 0, sizeof consumed);
    calls = 0;
    serve(chosen ? ref_api() : &stub, chosen ? chosen : "", data + 1, size - 1);
    check_answers(data + 1, size - 1, !chosen);
    return 0;
}
