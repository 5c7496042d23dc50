/* worker.c - see worker.h. */
#define _GNU_SOURCE /* memfd_create */
#include "conformance/wire/worker.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "conformance/wire/claims.h"
#include "conformance/wire/frames.h"
#include "conformance/wire/layout.h"
#include "conformance/wire/load.h"

enum { ALIGN = 64, GUARD = 64, GUARD_BYTE = 0xA5 };

/* Page-aligned memory that grows and is kept from call to call, mapped twice: what the worker
 * writes through the one view the implementation reads through the other, which is
 * write-protected. So no call changes a protection. */
typedef struct {
    uint8_t *base;       /* NULL: none yet */
    const uint8_t *view; /* the same memory */
    size_t size;
} region;

typedef struct {
    iut_api api;
    iut *instance; /* NULL: the IUT could not be made, `why` says why */
    char why[400];
    iut_status refusal;                     /* and what it is (FRM-03) */
    int32_t V, S;                           /* of the panel; V = 0: none yet */
    int32_t shape[4], sequences, positions; /* of the model; shape[0] = 0: none yet */
    int out;                                /* the real standard output */
    frame_reader in;                        /* standard input */
    region input, output;                   /* the output's view is not used */
} worker;

/* What the handler below looks at: the input of the running call; NULL: none. */
static const region *guarded;
static struct sigaction before_guard;

/* ---- Memory. --------------------------------------------------------------------- */

static void release(region *r)
{
    if (r->base) munmap(r->base, r->size);
    if (r->view) munmap((void *)(uintptr_t)r->view, r->size);
    *r = (region){0};
}

static void *map(int memory, size_t size, int protection)
{
    void *at = mmap(NULL, size, protection, MAP_SHARED, memory, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool reserve(region *r, size_t size)
{
    if (size <= r->size) return true;
    release(r);
    size = (size + (1 << 16)) & ~(size_t)0xFFFF;
    const int memory = memfd_create("assay worker", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory >= 0 && ftruncate(memory, (off_t)size) == 0) {
        r->size = size;
        r->base = map(memory, size, PROT_READ | PROT_WRITE);
        /* Nobody can make the view writable. Where the kernel knows no such seal, a write still
         * faults. */
        fcntl(memory, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
        r->view = map(memory, size, PROT_READ);
    }
    if (memory >= 0) close(memory);
    if (r->base && r->view) return true;
    release(r);
    return false;
}

static size_t padded(size_t size)
{
    return (size + GUARD + ALIGN - 1) / ALIGN * ALIGN;
}

/* INV-02: a write to the input ends the process by the exit code that says so (STA-02). Any
 * other fault happens again as it would have without the handler; a signal that was sent, which
 * would not, is sent again. */
static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    static const char text[] =
        "assay worker: the implementation wrote to an input array (INV-02)\n";
    (void)context;
    const uintptr_t at = (uintptr_t)info->si_addr,
                    base = guarded ? (uintptr_t)guarded->view : 0;
    if (guarded && info->si_code == SEGV_ACCERR && at >= base && at - base < guarded->size) {
        const ssize_t written = write(2, text, sizeof text - 1);
        (void)written; /* the exit code says the same */
        _exit(WORKER_INPUT_WRITTEN);
    }
    sigaction(SIGSEGV, &before_guard, NULL);
    if (info->si_code <= 0) raise(signal_number); /* SI_USER, SI_TKILL ...: not by a fault */
}

/* Before each call: the implementation may have installed a handler of its own since the last
 * one, which then gets every other fault. */
static void watch_input(const region *input)
{
    const struct sigaction action = {.sa_sigaction = on_fault,
                                     .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction before;
    guarded = input;
    sigaction(SIGSEGV, NULL, &before);
    if (before.sa_sigaction == on_fault) return;
    before_guard = before;
    sigaction(SIGSEGV, &action, NULL);
}

static void watch_no_more(void)
{
    struct sigaction now;
    if (!guarded || sigaction(SIGSEGV, NULL, &now) != 0) return;
    if (now.sa_sigaction == on_fault) sigaction(SIGSEGV, &before_guard, NULL);
    guarded = NULL;
}

/* ---- Replies. -------------------------------------------------------------------- */

static const char *const status_names[] = {"ok",        "unsupported", "bad_input",
                                           "no_device", "no_memory",   "failed"};

static bool reply_error(const worker *w, int64_t id, iut_status status, const char *text)
{
    char line[400];
    snprintf(line, sizeof line, "%s", text ? text : "the implementation gives no reason");
    frame_text(line);
    if ((unsigned)status > IUT_FAILED) status = IUT_FAILED;
    const frame reply = {.id = id, .status = status_names[status], .error = line};
    return frame_write(w->out, &reply);
}

static bool reply_claims(const worker *w, int64_t id)
{
    iut_claims claims = {.size = sizeof claims};
    const iut_status s = w->api.claims(w->instance, &claims);
    if (s != IUT_OK) /* bad_input says that there is no such IUT (load.h) */
        return reply_error(w, id, s == IUT_BAD_INPUT ? IUT_FAILED : s,
                           w->api.last_error(w->instance));
    json_t *args = claims_encode(&claims, claims_ops(&w->api));
    if (!args)
        return reply_error(w, id, IUT_FAILED,
                           "claims: name, version or device is NULL or not UTF-8");
    const frame reply = {.id = id, .status = "ok", .args = args};
    const bool ok = frame_write(w->out, &reply);
    json_decref(args);
    return ok;
}

/* ---- What a request must be before the IUT sees it. ------------------------------ */

/* One request: its integers and its arrays in the order of layout.h. */
typedef struct {
    iut_op op;
    int64_t args[ARG_COUNT];
    void *at[FRAME_MAX_TENSORS];
    const char *texts[TEXT_COUNT];
} request;

#define FAIL(...) (snprintf(why, why_size, __VA_ARGS__), false)

static bool take_args(const worker *w, const frame *f, request *r, char *why, size_t why_size)
{
    const int64_t most = INT32_MAX, large = 1 << 20;
    const struct {
        int64_t low, high;
    } range[ARG_COUNT] = {[ARG_N] = {0, most},
                          [ARG_GAMMA] = {0, large},
                          [ARG_K] = {1, large},
                          [ARG_EOS] = {-1, r->op == OP_GENERATE ? most : w->V - 1},
                          [ARG_OF_DRAFT] = {0, 1},
                          [ARG_V] = {1, most},
                          [ARG_S] = {1, most},
                          [ARG_C] = {1, most},
                          [ARG_SEQUENCES] = {1, 4096},
                          [ARG_POSITIONS] = {1, large},
                          [ARG_ROWS] = {0, large},
                          [ARG_LAYOUT_SEED] = {0, UINT32_MAX},
                          [ARG_WANTS] = {0, large},
                          [ARG_STEPS] = {0, large},
                          [ARG_KV_HEADS] = {w->shape[2], w->shape[2]},
                          [ARG_HEAD_DIM] = {w->shape[3], w->shape[3]},
                          [ARG_PROMPTS] = {0, large},
                          [ARG_METHOD] = {0, IUT_LOOKUP},
                          [ARG_SIZE_0] = {0, large},
                          [ARG_SIZE_1] = {0, large},
                          [ARG_SIZE_2] = {0, large},
                          [ARG_KIND] = {IUT_POOL_LRU, IUT_POOL_RING},
                          [ARG_NGRAM] = {2, large},
                          [ARG_G] = {0, large}};
    for (int a = 0; a < ARG_COUNT; a++)
        if ((layout[r->op].args >> a & 1) &&
            !frame_integer(f, layout_arg_name[a], range[a].low, range[a].high, &r->args[a]))
            return FAIL("%s: args.%s must be an integer from %lld to %lld", f->op,
                        layout_arg_name[a], (long long)range[a].low, (long long)range[a].high);
    if ((r->op == OP_SERVED || r->op == OP_RESIDUAL) && r->args[ARG_V] != w->V)
        return FAIL("%s: args.V is not that of the panel, %d", f->op, (int)w->V);
    if (r->op == OP_FORWARD && r->args[ARG_V] != w->shape[0])
        return FAIL("%s: args.V is not that of the model, %d", f->op, (int)w->shape[0]);
    for (int t = 0; t < TEXT_COUNT; t++)
        if ((layout[r->op].texts >> t & 1) &&
            !(r->texts[t] = json_string_value(json_object_get(f->args, layout_text_name[t]))))
            return FAIL("%s: args.%s must be a text", f->op, layout_text_name[t]);
    return true;
}

static bool take_arrays(const frame *f, request *r, char *why, size_t why_size)
{
    int32_t seen = 0;
    const layout_op *l = &layout[r->op];
    for (int32_t i = 0; i < l->arrays; i++) {
        const layout_array *a = &l->array[i];
        const frame_tensor *t = &f->tensor[seen];
        const bool more = seen < f->tensors;
        frame_tensor due;
        if (a->flow == FLOW_OUT) continue;
        if (a->flow == FLOW_IN_OPTIONAL && !(more && strcmp(t->name, a->name) == 0)) continue;
        if (!more) return FAIL("%s: tensor %s is missing", f->op, a->name);
        if (!layout_tensor(a, r->args, &due))
            return FAIL("%s: tensor %s is too large", f->op, a->name);
        if (!layout_matches(&due, t, why, why_size)) return false;
        r->at[i] = (void *)(uintptr_t)t->data;
        seen++;
    }
    return seen == f->tensors || FAIL("%s: more tensors than it has", f->op);
}

static bool in_range(const int32_t *x, int64_t n, int32_t low, int32_t high, const char *name,
                     char *why, size_t why_size)
{
    for (int64_t i = 0; i < n; i++)
        if (x[i] < low || x[i] > high)
            return FAIL("%s[%lld] is %d; it must be %d to %d", name, (long long)i, (int)x[i],
                        (int)low, (int)high);
    return true;
}

/* Uniforms in [0, 1); NaN fails, too. No array is no error: the IUT then draws its own. */
static bool are_uniforms(const double *u, int64_t n, char *why, size_t why_size)
{
    for (int64_t i = 0; u && i < n; i++)
        if (!(u[i] >= 0.0 && u[i] < 1.0))
            return FAIL("u[%lld] is %g; it must be in [0, 1)", (long long)i, u[i]);
    return true;
}

/* Counts are from `low` on, and add up to the length of the array that they cut. */
static bool adds_up(const int32_t *count, int64_t n, int32_t low, int64_t total,
                    const char *name, char *why, size_t why_size)
{
    int64_t sum = 0;
    if (!in_range(count, n, low, 1 << 20, name, why, why_size)) return false;
    for (int64_t i = 0; i < n; i++) sum += count[i];
    return sum == total || FAIL("%s adds up to %lld; the array has %lld", name, (long long)sum,
                                (long long)total);
}

static bool are_distinct(const int32_t *sequence, int64_t n, char *why, size_t why_size)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < i; j++)
            if (sequence[i] == sequence[j])
                return FAIL("sequence %d is named twice", (int)sequence[i]);
    return true;
}

/* The structure alone: a bad token, parent, wanted row, path or length is the IUT's to refuse.
 */
static bool check_model_values(const worker *w, const request *r, char *why, size_t why_size)
{
    const int64_t n = r->args[ARG_N];
    if (r->op == OP_MODEL) return true;
    if (r->op == OP_GENERATE)
        return adds_up(r->at[GENERATE_PROMPT_COUNT], n, 1, r->args[ARG_PROMPTS], "prompt_count",
                       why, why_size);
    if (w->shape[0] == 0) return FAIL("%s: no model was loaded", layout[r->op].name);
    if (r->op == OP_CACHE_POISON) return true;
    if (n > w->sequences && r->op != OP_CACHE_READ)
        return FAIL("args.n is %lld; there are %d sequences", (long long)n, (int)w->sequences);
    if (!in_range(r->at[0], n, 0, w->sequences - 1, "sequence", why, why_size)) return false;
    if (r->op == OP_CACHE_READ)
        return in_range(r->at[CACHE_LAYER], n, 0, w->shape[1] - 1, "layer", why, why_size) &&
               in_range(r->at[CACHE_POSITION], n, 0, w->positions - 1, "position", why,
                        why_size);
    if (!are_distinct(r->at[0], n, why, why_size)) return false;
    if (r->op == OP_FORWARD)
        return adds_up(r->at[FORWARD_ROW_COUNT], n, 1, r->args[ARG_ROWS], "row_count", why,
                       why_size) &&
               adds_up(r->at[FORWARD_WANT_COUNT], n, 0, r->args[ARG_WANTS], "want_count", why,
                       why_size);
    return r->op == OP_TRUNCATE || adds_up(r->at[COMMIT_PATH_COUNT], n, 0, r->args[ARG_STEPS],
                                           "path_count", why, why_size);
}

static bool check_values(const worker *w, const request *r, char *why, size_t why_size)
{
    const int64_t n = r->args[ARG_N], gamma = r->args[ARG_GAMMA];
    if (r->op == OP_POOL) return in_range(r->at[POOL_INSERT], n, 0, 1, "insert", why, why_size);
    if (r->op >= OP_MODEL) return check_model_values(w, r, why, why_size);
    if (r->op != OP_PANEL && w->V == 0)
        return FAIL("%s: no panel was loaded", layout[r->op].name);
    switch (r->op) {
    case OP_PANEL:
        return in_range(r->at[PANEL_CLS], r->args[ARG_V], 0, (int32_t)r->args[ARG_C] - 1, "cls",
                        why, why_size) &&
               in_range(r->at[PANEL_NEXT], r->args[ARG_S] * r->args[ARG_C], 0,
                        (int32_t)r->args[ARG_S] - 1, "next", why, why_size);
    case OP_SERVED:
    case OP_RESIDUAL:
        return in_range(r->at[ROWS_STATE], n, 0, w->S - 1, "state", why, why_size);
    case OP_DRAW:
        return in_range(r->at[DRAW_STATE], n, 0, w->S - 1, "state", why, why_size) &&
               are_uniforms(r->at[DRAW_U], n, why, why_size);
    case OP_STREAM:
        return in_range(r->at[STREAM_START], n, 0, w->S - 1, "start", why, why_size);
    default:
        return in_range(r->at[VERIFY_LEN], n, 0, (int32_t)gamma, "len", why, why_size) &&
               in_range(r->at[VERIFY_STATE], n * (gamma + 1), 0, w->S - 1, "state", why,
                        why_size) &&
               are_uniforms(r->at[VERIFY_U], n * (gamma + 2), why, why_size);
    }
}

/* ---- The call. ------------------------------------------------------------------- */

static iut_status call_panel(worker *w, const request *r)
{
    const float *temperature = r->at[PANEL_TEMPERATURE], *top_p = r->at[PANEL_TOP_P],
                *min_p = r->at[PANEL_MIN_P];
    const int32_t *top_k = r->at[PANEL_TOP_K];
    const iut_panel panel = {.size = sizeof panel,
                             .V = (int32_t)r->args[ARG_V],
                             .S = (int32_t)r->args[ARG_S],
                             .C = (int32_t)r->args[ARG_C],
                             .cls = r->at[PANEL_CLS],
                             .next = r->at[PANEL_NEXT],
                             .p = r->at[PANEL_P],
                             .q = r->at[PANEL_Q],
                             .p_logit = r->at[PANEL_P_LOGIT],
                             .q_logit = r->at[PANEL_Q_LOGIT],
                             .target = {temperature[0], top_k[0], top_p[0], min_p[0]},
                             .draft = {temperature[1], top_k[1], top_p[1], min_p[1]}};
    const iut_status s = w->api.panel(w->instance, &panel);
    w->V = s == IUT_OK ? panel.V : 0;
    w->S = panel.S;
    return s;
}

static iut_status call_verify(worker *w, const request *r)
{
    iut_verify_batch b = {.size = sizeof b,
                          .n = (int32_t)r->args[ARG_N],
                          .gamma = (int32_t)r->args[ARG_GAMMA],
                          .len = r->at[VERIFY_LEN],
                          .state = r->at[VERIFY_STATE],
                          .draft = r->at[VERIFY_DRAFT],
                          .u = r->at[VERIFY_U],
                          .seed = *(const uint64_t *)r->at[VERIFY_SEED],
                          .position = *(const uint64_t *)r->at[VERIFY_POSITION],
                          .out = r->at[VERIFY_OUT],
                          .out_len = r->at[VERIFY_OUT_LEN]};
    return r->op == OP_VERIFY ? w->api.verify(w->instance, &b)
                              : w->api.verify_greedy(w->instance, &b);
}

static iut_status call_draw(worker *w, const request *r)
{
    iut_draw_batch b = {.size = sizeof b,
                        .n = (int32_t)r->args[ARG_N],
                        .state = r->at[DRAW_STATE],
                        .u = r->at[DRAW_U],
                        .seed = *(const uint64_t *)r->at[DRAW_SEED],
                        .position = *(const uint64_t *)r->at[DRAW_POSITION],
                        .token = r->at[DRAW_TOKEN]};
    return w->api.draw(w->instance, &b);
}

static iut_status call_stream(worker *w, const request *r)
{
    iut_stream_batch b = {.size = sizeof b,
                          .n = (int32_t)r->args[ARG_N],
                          .gamma = (int32_t)r->args[ARG_GAMMA],
                          .k = (int32_t)r->args[ARG_K],
                          .eos = (int32_t)r->args[ARG_EOS],
                          .start = r->at[STREAM_START],
                          .seed = *(const uint64_t *)r->at[STREAM_SEED],
                          .out = r->at[STREAM_OUT],
                          .out_len = r->at[STREAM_OUT_LEN],
                          .accepted = r->at[STREAM_ACCEPTED]};
    return w->api.stream(w->instance, &b);
}

/* The sequences of the model before are gone, whatever comes of it. */
static iut_status call_model(worker *w, const request *r)
{
    iut_model m = {.size = sizeof m,
                   .folder = r->texts[TEXT_FOLDER],
                   .sequences = (int32_t)r->args[ARG_SEQUENCES],
                   .positions = (int32_t)r->args[ARG_POSITIONS],
                   .rows = (int32_t)r->args[ARG_ROWS],
                   .layout_seed = (uint32_t)r->args[ARG_LAYOUT_SEED],
                   .shape = r->at[MODEL_SHAPE]};
    w->shape[0] = 0;
    const iut_status s = w->api.model(w->instance, &m);
    if (s != IUT_OK) return s;
    memcpy(w->shape, m.shape, sizeof w->shape);
    w->sequences = m.sequences;
    w->positions = m.positions;
    return s;
}

static iut_status call_forward(worker *w, const request *r)
{
    iut_forward_batch b = {.size = sizeof b,
                           .n = (int32_t)r->args[ARG_N],
                           .rows = (int32_t)r->args[ARG_ROWS],
                           .wants = (int32_t)r->args[ARG_WANTS],
                           .sequence = r->at[FORWARD_SEQUENCE],
                           .row_count = r->at[FORWARD_ROW_COUNT],
                           .want_count = r->at[FORWARD_WANT_COUNT],
                           .token = r->at[FORWARD_TOKEN],
                           .parent = r->at[FORWARD_PARENT],
                           .want = r->at[FORWARD_WANT],
                           .logits = r->at[FORWARD_LOGITS]};
    return w->api.forward(w->instance, &b);
}

static iut_status call_commit(worker *w, const request *r)
{
    iut_commit_batch b = {.size = sizeof b,
                          .n = (int32_t)r->args[ARG_N],
                          .steps = (int32_t)r->args[ARG_STEPS],
                          .sequence = r->at[COMMIT_SEQUENCE],
                          .path_count = r->at[COMMIT_PATH_COUNT],
                          .path = r->at[COMMIT_PATH],
                          .length = r->at[COMMIT_LENGTH]};
    return w->api.commit(w->instance, &b);
}

static iut_status call_truncate(worker *w, const request *r)
{
    iut_truncate_batch b = {.size = sizeof b,
                            .n = (int32_t)r->args[ARG_N],
                            .sequence = r->at[TRUNCATE_SEQUENCE],
                            .keep = r->at[TRUNCATE_KEEP],
                            .length = r->at[TRUNCATE_LENGTH]};
    return w->api.truncate(w->instance, &b);
}

static iut_status call_cache_read(worker *w, const request *r)
{
    iut_cache_batch b = {.size = sizeof b,
                         .n = (int32_t)r->args[ARG_N],
                         .sequence = r->at[CACHE_SEQUENCE],
                         .layer = r->at[CACHE_LAYER],
                         .position = r->at[CACHE_POSITION],
                         .key = r->at[CACHE_KEY],
                         .value = r->at[CACHE_VALUE]};
    return w->api.cache_read(w->instance, &b);
}

static iut_status call_generate(worker *w, const request *r)
{
    iut_generate_batch b = {.size = sizeof b,
                            .target = r->texts[TEXT_TARGET],
                            .draft = r->texts[TEXT_DRAFT],
                            .n = (int32_t)r->args[ARG_N],
                            .gamma = (int32_t)r->args[ARG_GAMMA],
                            .method = (int32_t)r->args[ARG_METHOD],
                            .sizes = {(int32_t)r->args[ARG_SIZE_0],
                                      (int32_t)r->args[ARG_SIZE_1],
                                      (int32_t)r->args[ARG_SIZE_2]},
                            .k = (int32_t)r->args[ARG_K],
                            .eos = (int32_t)r->args[ARG_EOS],
                            .prompts = (int32_t)r->args[ARG_PROMPTS],
                            .prompt_count = r->at[GENERATE_PROMPT_COUNT],
                            .prompt = r->at[GENERATE_PROMPT],
                            .sampling = {*(const float *)r->at[GENERATE_TEMPERATURE],
                                         *(const int32_t *)r->at[GENERATE_TOP_K],
                                         *(const float *)r->at[GENERATE_TOP_P],
                                         *(const float *)r->at[GENERATE_MIN_P]},
                            .seed = *(const uint64_t *)r->at[GENERATE_SEED],
                            .out = r->at[GENERATE_OUT],
                            .out_len = r->at[GENERATE_OUT_LEN],
                            .accepted = r->at[GENERATE_ACCEPTED]};
    return w->api.generate(w->instance, &b);
}

static iut_status call_pool(worker *w, const request *r)
{
    iut_pool_batch b = {.size = sizeof b,
                        .kind = (int32_t)r->args[ARG_KIND],
                        .V = (int32_t)r->args[ARG_V],
                        .N = (int32_t)r->args[ARG_NGRAM],
                        .G = (int32_t)r->args[ARG_G],
                        .n = (int32_t)r->args[ARG_N],
                        .insert = r->at[POOL_INSERT],
                        .key = r->at[POOL_KEY],
                        .value = r->at[POOL_VALUE],
                        .count = r->at[POOL_COUNT],
                        .out = r->at[POOL_OUT]};
    return w->api.pool(w->instance, &b);
}

static iut_status call_iut(worker *w, const request *r)
{
    const int32_t n = (int32_t)r->args[ARG_N];
    switch (r->op) {
    case OP_PANEL:
        return call_panel(w, r);
    case OP_SERVED:
        return w->api.served(w->instance, n, r->at[ROWS_STATE], (int32_t)r->args[ARG_OF_DRAFT],
                             r->at[ROWS_OUT]);
    case OP_RESIDUAL:
        return w->api.residual(w->instance, n, r->at[ROWS_STATE], r->at[ROWS_OUT]);
    case OP_DRAW:
        return call_draw(w, r);
    case OP_STREAM:
        return call_stream(w, r);
    case OP_MODEL:
        return call_model(w, r);
    case OP_FORWARD:
        return call_forward(w, r);
    case OP_COMMIT:
        return call_commit(w, r);
    case OP_TRUNCATE:
        return call_truncate(w, r);
    case OP_CACHE_READ:
        return call_cache_read(w, r);
    case OP_CACHE_POISON:
        return w->api.cache_poison(w->instance);
    case OP_GENERATE:
        return call_generate(w, r);
    case OP_POOL:
        return call_pool(w, r);
    default:
        return call_verify(w, r);
    }
}

/* The arrays that flow out, filled with bytes 0xFF: -1 for tokens, NaN for probabilities, so
 * that what is not written shows. Behind each lies a guard. */
static bool make_outputs(worker *w, request *r, frame *reply)
{
    size_t total = 0, at = 0;
    for (int32_t i = 0; i < layout[r->op].arrays; i++) {
        if (layout[r->op].array[i].flow != FLOW_OUT) continue;
        frame_tensor *t = &reply->tensor[reply->tensors++];
        if (!layout_tensor(&layout[r->op].array[i], r->args, t)) return false;
        total += padded(t->size);
    }
    if (!reserve(&w->output, total)) return false;
    for (int32_t i = 0, seen = 0; i < layout[r->op].arrays; i++) {
        if (layout[r->op].array[i].flow != FLOW_OUT) continue;
        frame_tensor *t = &reply->tensor[seen++];
        uint8_t *data = w->output.base + at;
        t->data = r->at[i] = data;
        memset(data, 0xFF, t->size);
        memset(data + t->size, GUARD_BYTE, GUARD);
        at += padded(t->size);
    }
    return true;
}

/* The name of an output whose guard was overwritten, or NULL. */
static const char *overrun(const frame *reply)
{
    for (int32_t i = 0; i < reply->tensors; i++) {
        const uint8_t *guard = (const uint8_t *)reply->tensor[i].data + reply->tensor[i].size;
        for (int j = 0; j < GUARD; j++)
            if (guard[j] != GUARD_BYTE) return reply->tensor[i].name;
    }
    return NULL;
}

static bool answer(worker *w, const frame *f)
{
    char why[400];
    request r = {.op = layout_find(f->op ? f->op : "")};
    if (!w->instance) return reply_error(w, f->id, w->refusal, w->why);
    if (r.op == OP_COUNT || !(claims_ops(&w->api) >> r.op & 1))
        return reply_error(w, f->id, IUT_UNSUPPORTED, "there is no such operation");
    if (r.op == OP_CLAIMS) return reply_claims(w, f->id);
    if (!take_args(w, f, &r, why, sizeof why) || !take_arrays(f, &r, why, sizeof why) ||
        !check_values(w, &r, why, sizeof why))
        return reply_error(w, f->id, IUT_BAD_INPUT, why);
    frame reply = {.id = f->id, .status = "ok"};
    if (!make_outputs(w, &r, &reply))
        return reply_error(w, f->id, IUT_NO_MEMORY, "worker: out of memory");
    watch_input(&w->input);
    const iut_status s = call_iut(w, &r);
    if (s != IUT_OK) return reply_error(w, f->id, s, w->api.last_error(w->instance));
    const char *smashed = overrun(&reply);
    if (smashed) {
        snprintf(why, sizeof why, "it wrote beyond the end of the output array %s", smashed);
        return reply_error(w, f->id, IUT_FAILED, why);
    }
    return frame_write(w->out, &reply);
}

/* ---- The loop. ------------------------------------------------------------------- */

/* The tensors of a frame, each aligned for any type. */
static bool read_tensors(worker *w, frame *f)
{
    size_t total = 0, at = 0;
    for (int32_t i = 0; i < f->tensors; i++) total += padded(f->tensor[i].size);
    if (!reserve(&w->input, total)) return false;
    for (int32_t i = 0; i < f->tensors; i++) {
        f->tensor[i].data = w->input.view + at;
        if (f->tensor[i].size &&
            frame_read_exact(&w->in, w->input.base + at, f->tensor[i].size) != 1)
            return false;
        at += padded(f->tensor[i].size);
    }
    return true;
}

/* Reads and answers one request. 1: done, 0: end of input, -1: the stream is broken. */
static int serve_one(worker *w)
{
    uint8_t prefix[FRAME_PREFIX];
    char head[FRAME_MAX_HEADER], why[400] = "end of input within a frame, or no memory for it";
    size_t header, payload;
    frame f;
    const int begun = frame_read_exact(&w->in, prefix, sizeof prefix);
    if (begun == 0) return 0;
    if (begun < 0 || !frame_prefix(prefix, &header, &payload, why, sizeof why) ||
        frame_read_exact(&w->in, head, header) != 1 ||
        !frame_head(head, header, payload, &f, why, sizeof why)) {
        fprintf(stderr, "assay worker: %s\n", why);
        return -1;
    }
    const bool whole = read_tensors(w, &f), ok = whole && answer(w, &f);
    if (!whole) fprintf(stderr, "assay worker: %s\n", why);
    frame_release(&f);
    return ok ? 1 : -1;
}

/* From now on what anybody prints on standard output goes to standard error. */
static int take_stdout(void)
{
    const int out = fcntl(1, F_DUPFD_CLOEXEC, 3);
    if (out >= 0) dup2(2, 1);
    return out;
}

static int serve(worker *w)
{
    int r;
    if (!w->instance) fprintf(stderr, "assay worker: %s\n", w->why);
    while ((r = serve_one(w)) == 1 && w->instance) continue;
    watch_no_more();
    release(&w->input);
    release(&w->output);
    if (!w->instance) return 1;
    w->api.destroy(w->instance);
    return r == 0 ? 0 : 3;
}

static void create(worker *w, const char *options)
{
    w->instance = w->api.create(options ? options : "", w->why, sizeof w->why);
    if (!w->instance && !*w->why)
        snprintf(w->why, sizeof w->why, "create failed and gave no reason");
}

int worker_main(const char *spec, const char *options)
{
    worker w = {.out = take_stdout()};
    if (load_spec(spec, &w.api, &w.refusal, w.why, sizeof w.why)) {
        create(&w, options);
        w.refusal = *options && load_is_own(spec) ? IUT_BAD_INPUT : IUT_FAILED;
    }
    return serve(&w);
}

int worker_serve(const iut_api *api, const char *options)
{
    worker w = {.out = take_stdout(), .refusal = IUT_FAILED};
    if (load_table(api, &w.api, w.why, sizeof w.why)) create(&w, options);
    return serve(&w);
}
