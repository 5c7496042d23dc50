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
    iut_status refusal;    /* and what it is (FRM-03) */
    int64_t known[VALUES]; /* of the panel and the model; their V is 0: none yet */
    int out;               /* the real standard output */
    frame_reader in;       /* standard input */
    region input, output;  /* the output's view is not used */
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

static bool reply_error(const worker *w, int64_t id, iut_status status, const char *text)
{
    char line[400];
    snprintf(line, sizeof line, "%s", text ? text : "the implementation gives no reason");
    frame_text(line);
    if ((unsigned)status > IUT_FAILED) status = IUT_FAILED;
    const frame reply = {.id = id, .status = iut_status_name(status), .error = line};
    return frame_write(w->out, &reply);
}

static bool reply_claims(const worker *w, const frame *request)
{
    const int64_t id = request->id;
    int64_t since = 0; /* not told: by a suite that knows no group */
    iut_claims claims = {.size = sizeof claims};
    const iut_status s = w->api.claims(w->instance, &claims);
    if (s != IUT_OK) /* bad_input says that there is no such IUT (load.h) */
        return reply_error(w, id, s == IUT_BAD_INPUT ? IUT_FAILED : s,
                           w->api.last_error(w->instance));
    frame_integer(request, "since", 0, INT32_MAX, &since);
    json_t *args = claims_encode(&claims, iut_ops_of(&w->api), (int32_t)since);
    if (!args)
        return reply_error(w, id, IUT_FAILED,
                           "claims: name, version or device is NULL, or a text is not UTF-8");
    const frame reply = {.id = id, .version = FRAME_VERSION, .status = "ok", .args = args};
    const bool ok = frame_write(w->out, &reply);
    json_decref(args);
    return ok;
}

/* ---- What a request must be before the IUT sees it. ------------------------------ */

#define FAIL(...) (snprintf(why, why_size, __VA_ARGS__), false)

static bool take_number(const frame *f, const layout_number *i, layout_parts *parts, char *why,
                        size_t why_size)
{
    const int64_t low = layout_number_of(i->low, parts->value),
                  high = layout_number_of(i->high, parts->value);
    if (frame_integer(f, i->name, low, high, &parts->value[i->value])) return true;
    if (i->is_optional && !json_object_get(f->args, i->name)) return true; /* 0 */
    if (i->at == LAYOUT_NOWHERE)
        return FAIL("%s: args.%s is not that of the panel or the model, %lld", f->op, i->name,
                    (long long)low);
    return FAIL("%s: args.%s must be an integer from %lld to %lld", f->op, i->name,
                (long long)low, (long long)high);
}

static bool take_args(const frame *f, iut_op op, layout_parts *parts, char *why,
                      size_t why_size)
{
    for (const layout_number *i = layout[op].number; i->name; i++)
        if (!take_number(f, i, parts, why, why_size)) return false;
    for (int t = 0; layout[op].text[t].name; t++) {
        const char *name = layout[op].text[t].name;
        parts->text[t] = json_string_value(json_object_get(f->args, name));
        if (!parts->text[t]) return FAIL("%s: args.%s must be a text", f->op, name);
    }
    return true;
}

static bool take_arrays(const frame *f, iut_op op, layout_parts *parts, char *why,
                        size_t why_size)
{
    int32_t seen = 0;
    for (int i = 0; layout[op].array[i].name; i++) {
        const layout_array *a = &layout[op].array[i];
        const frame_tensor *t = &f->tensor[seen];
        const bool more = seen < f->tensors;
        frame_tensor due;
        if (layout_is_answer(a)) continue;
        if (a->flow == FLOW_IN_OPTIONAL && !(more && strcmp(t->name, a->name) == 0)) continue;
        if (!more) return FAIL("%s: tensor %s is missing", f->op, a->name);
        if (!layout_tensor(a, parts->value, &due))
            return FAIL("%s: tensor %s is too large", f->op, a->name);
        if (!layout_matches(&due, t, why, why_size)) return false;
        parts->at[i] = (void *)(uintptr_t)t->data;
        seen++;
    }
    return seen == f->tensors || FAIL("%s: more tensors than it has", f->op);
}

static const void *array_of(iut_op op, const layout_parts *parts, const char *name)
{
    int i = 0;
    while (strcmp(layout[op].array[i].name, name) != 0) i++;
    return parts->at[i];
}

/* CLM-16, CLM-20, CLM-23, CLM-24: arrays of which none means anything without the others, or without their number. */
static bool are_together(const frame *f, iut_op op, const layout_parts *parts, char *why, size_t why_size)
{
    static const struct {
        iut_op op;
        const char *name, *with;
        int number; /* layout_value that says whether they are there; -1: none */
    } pairs[] = {{OP_GENERATE, "end_count", "ends", -1},
                 {OP_PANEL, "d2t", "draft_q", VALUE_DRAFT_V},
                 {OP_PANEL, "d2t", "draft_q_logit", VALUE_DRAFT_V},
                 {OP_VERIFY_TREE, "sampling", "draft_sampling", VALUE_SAMPLINGS},
                 {OP_VERIFY_TREE, "sampling", "sampling_of", VALUE_SAMPLINGS},
                 {OP_VERIFY_TREE, "u", "last", -1}};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (pairs[i].op != op) continue;
        const bool there = array_of(op, parts, pairs[i].name);
        if (there != (array_of(op, parts, pairs[i].with) != NULL))
            return FAIL("%s: %s and %s come together", f->op, pairs[i].name, pairs[i].with);
        if (pairs[i].number >= 0 && there != (parts->value[pairs[i].number] > 0))
            return FAIL("%s: %s comes with its number, and only with it", f->op, pairs[i].name);
    }
    return true;
}

/* The structure alone: a bad token, parent, wanted row, path or length is the IUT's to refuse.
 */
static bool take_request(const worker *w, const frame *f, iut_op op, layout_parts *parts,
                         char *why, size_t why_size)
{
    if (layout[op].need == NEEDS_PANEL && w->known[PANEL_V] == 0)
        return FAIL("%s: no panel was loaded", f->op);
    if (layout[op].need == NEEDS_MODEL && w->known[MODEL_V] == 0)
        return FAIL("%s: no model was loaded", f->op);
    memcpy(parts->value, w->known, sizeof w->known);
    if (!take_args(f, op, parts, why, why_size) || !take_arrays(f, op, parts, why, why_size) ||
        !are_together(f, op, parts, why, why_size))
        return false;
    for (int i = 0; layout[op].array[i].name; i++)
        if (parts->at[i] &&
            !layout_holds(&layout[op].array[i], parts->value, parts->at[i], why, why_size))
            return false;
    return true;
}

/* ---- The call. ------------------------------------------------------------------- */

/* What later requests must fit. Whatever comes of a new panel or model, the one before is gone.
 */
static void forget(worker *w, iut_op op)
{
    if (op == OP_PANEL) w->known[PANEL_V] = 0;
    if (op == OP_MODEL) w->known[MODEL_V] = 0;
}

static void remember(worker *w, iut_op op, const layout_parts *parts)
{
    if (op == OP_PANEL) {
        w->known[PANEL_V] = parts->value[VALUE_V];
        w->known[PANEL_S] = parts->value[VALUE_S];
    }
    if (op == OP_MODEL) {
        const int32_t *shape = parts->at[0];
        for (int i = 0; i < 4; i++) w->known[MODEL_V + i] = shape[i]; /* in this order */
        w->known[MODEL_SEQUENCES] = parts->value[VALUE_SEQUENCES];
        w->known[MODEL_POSITIONS] = parts->value[VALUE_POSITIONS];
    }
}

static iut_status call_iut(worker *w, iut_op op, const layout_parts *parts)
{
#define MEMBER(number, name, batch, parameters) batch name;
    union {
        IUT_OPERATIONS(MEMBER)
    } batch;
    layout_put_together(op, parts, &batch);
    forget(w, op);
    const iut_status s = iut_op_call(&w->api, w->instance, op, &batch);
    if (s == IUT_OK) remember(w, op, parts);
    return s;
}

/* The arrays that flow out, as they arrive. Behind each lies a guard. */
static bool make_outputs(worker *w, iut_op op, layout_parts *parts, frame *reply)
{
    size_t total = 0, at = 0;
    for (const layout_array *a = layout[op].array; a->name; a++) {
        if (!layout_is_due(a, parts->value)) continue;
        frame_tensor *t = &reply->tensor[reply->tensors++];
        if (!layout_tensor(a, parts->value, t)) return false;
        total += padded(t->size);
    }
    if (!reserve(&w->output, total)) return false;
    for (int i = 0, seen = 0; layout[op].array[i].name; i++) {
        if (!layout_is_due(&layout[op].array[i], parts->value)) continue;
        frame_tensor *t = &reply->tensor[seen++];
        uint8_t *data = w->output.base + at;
        t->data = parts->at[i] = data;
        memset(data + t->size, GUARD_BYTE, GUARD);
        at += padded(t->size);
    }
    layout_clear(op, parts);
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
    const iut_op op = iut_op_find(f->op ? f->op : "");
    layout_parts parts = {.value = {0}};
    if (!frame_speaks(f, why, sizeof why)) return reply_error(w, f->id, IUT_UNSUPPORTED, why);
    if (!w->instance) return reply_error(w, f->id, w->refusal, w->why);
    if (op == OP_COUNT || !(iut_ops_of(&w->api) >> op & 1))
        return reply_error(w, f->id, IUT_UNSUPPORTED, "there is no such operation");
    if (op == OP_CLAIMS) return reply_claims(w, f);
    if (!take_request(w, f, op, &parts, why, sizeof why))
        return reply_error(w, f->id, IUT_BAD_INPUT, why);
    frame reply = {.id = f->id, .status = "ok"};
    if (!make_outputs(w, op, &parts, &reply))
        return reply_error(w, f->id, IUT_NO_MEMORY, "worker: out of memory");
    watch_input(&w->input);
    const iut_status s = call_iut(w, op, &parts);
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
        /* Our own implementations refuse nothing at their start but wrong options. */
        const bool own = kind_of(spec) == KIND_REF || kind_of(spec) == KIND_GPU;
        create(&w, options);
        w.refusal = *options && own ? IUT_BAD_INPUT : IUT_FAILED;
    }
    return serve(&w);
}

int worker_serve(const iut_api *api, const char *options)
{
    worker w = {.out = take_stdout(), .refusal = IUT_FAILED};
    if (load_table(api, &w.api, w.why, sizeof w.why)) create(&w, options);
    return serve(&w);
}
