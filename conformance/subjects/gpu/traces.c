/* traces.c - writes down, step by step, what the device's drafters and rules make of the trace
 * vectors, in the form assay-traces-1 (TRC-01, TRC-03):
 *
 *   traces_gpu FILE VECTORS
 *
 * The models of these vectors are functions of a path, without weights, and no network of the
 * device's: their logits are the host's, for the paths that tree and history have on the
 * device. All else of a step happens there, by the launches of the loop (decode.c), and is read
 * back between them: rows, run, window, pool. Ends with 77 where no device can be opened. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/ours/reference_traces.h"
#include "gpu/draft/draft.h"
#include "gpu/verify/verify.h"
#include "vectors/read/trace.h"
#include "vectors/read/traces.h"

enum { NOT_RUN = 77, SCRATCH_ROWS = 256 };

static ag_device device;
static ag_scratch scratch;

/* Memory of one request on the device, for as many rows and slots as its trees have. */
typedef struct {
    float *logits, *p;                         /* [wants][V] */
    int32_t *run, *path, *length, *accepted;   /* [R], [R], 1, 1 */
    int32_t *ask, *answer, *state, *ask_state; /* [wants] */
    ag_fault *fault;                           /* 1 */
} memory;

/* One request in the middle. The first failure stays. */
typedef struct {
    const oracle_request *q;
    const oracle_method *m;
    oracle_lm lm;
    as_rule rule;
    as_sampling sampling;
    ag_drafter d;
    memory on;
    as_status status;
    as_error e;
    oracle_trace *trace;
} tracer;

static bool good(const tracer *t)
{
    return t->status == AS_OK;
}

static void down(tracer *t, void *to, const void *from, size_t bytes)
{
    if (good(t)) t->status = ag_download(&device, to, from, bytes, &t->e);
}

static void up(tracer *t, void *to, const void *from, size_t bytes)
{
    if (good(t)) t->status = ag_upload(&device, to, from, bytes, &t->e);
}

static void *room(tracer *t, size_t bytes)
{
    void *at = NULL;
    if (good(t)) t->status = ag_alloc(&device, &at, bytes, "a trace", &t->e);
    return at;
}

/* ---- Before the first step. ------------------------------------------------------------ */

static ag_drafting drafting_of(const oracle_method *m)
{
    ag_drafting o = {.method = m->name == ORACLE_JACOBI      ? AG_JACOBI
                               : m->name == ORACLE_LOOKAHEAD ? AG_LOOKAHEAD
                                                             : AG_LOOKUP};
    if (o.method == AG_JACOBI)
        o.jacobi = ref_jacobi_of(m);
    else if (o.method == AG_LOOKAHEAD)
        o.lookahead = ref_lookahead_of(m);
    else
        o.lookup = ref_lookup_of(m);
    return o;
}

static void begin(tracer *t)
{
    const oracle_request *q = t->q;
    const ag_drafting o = drafting_of(t->m);
    const ag_room most = {1, t->lm.V, q->n + q->budget, 1, q->positions, q->rows};
    const ag_request r = {.prompt = q->prompt,
                          .prompts = q->n,
                          .budget = q->budget,
                          .eos = &q->eos,
                          .eoses = q->eos >= 0,
                          .seed = q->seed,
                          .warm = t->rule != AS_RULE_GREEDY && t->sampling.temperature > 0.0f};
    t->status = ag_drafting_check(&o, t->lm.V, t->rule, &t->e);
    if (good(t)) t->status = as_check_sampling(&t->sampling, &t->e);
    if (good(t)) t->status = ag_drafter_open(&device, &o, &most, &t->d, &t->e);
    if (good(t)) t->status = ag_drafter_start(&t->d, 0, &r, &t->e);
    const size_t R = (size_t)t->d.batch.R * 4, wants = (size_t)t->d.batch.wants * 4;
    const size_t rows = wants * (size_t)t->lm.V;
    t->on = (memory){room(t, rows),
                     room(t, rows),
                     room(t, R),
                     room(t, R),
                     room(t, 4),
                     room(t, 4),
                     room(t, wants),
                     room(t, wants),
                     room(t, wants),
                     room(t, wants),
                     room(t, sizeof(ag_fault))};
}

static void end(tracer *t)
{
    const memory *m = &t->on;
    void *const all[] = {m->logits, m->p,      m->run,   m->path,      m->length, m->accepted,
                         m->ask,    m->answer, m->state, m->ask_state, m->fault};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ag_free(all[i]);
    if (t->d.device) ag_drafter_close(&t->d);
}

/* ---- What the device holds. ------------------------------------------------------------ */

static void show_window(tracer *t, oracle_lists *window)
{
    const bool stale = t->m->sw[LAH_KEY] == LAH_KEY_STALE;
    int32_t *row = oracle_take((size_t)t->m->size[0] + (size_t)t->m->size[1], sizeof *row);
    for (int32_t l = 0, n = 1; good(t) && n > 0; l++) {
        const int32_t hidden = l == 0 && !stale;
        t->status = ag_drafter_window(&t->d, 0, l, row, &n, &t->e);
        if (good(t) && n > 0) oracle_append(oracle_another(window), row + hidden, n - hidden);
    }
    free(row);
}

static void show_pool(tracer *t, oracle_pool *pool)
{
    const int32_t length = t->m->size[1] - 1, V = t->lm.V;
    int32_t *value = oracle_take((size_t)t->m->size[2] * (size_t)length + 1, sizeof *value);
    pool->of = oracle_take((size_t)V, sizeof *pool->of);
    for (int32_t key = 0, count; good(t) && key < V; key++) {
        t->status = ag_drafter_pool(&t->d, 0, key, value, &count, &t->e);
        if (!good(t) || count == 0) continue;
        struct oracle_pool_key *to = &pool->of[pool->keys++];
        to->key = key;
        ref_show_values(value, count, length, &to->values);
    }
    free(value);
}

/* LAH-06: with `first_plain` the window is made after the first step, of `steps`. On the device
 * it lies ready before, where nobody looks at it. */
static void show_state(tracer *t, int32_t steps, oracle_lists *window, oracle_pool *pool)
{
    if (t->m->name != ORACLE_LOOKAHEAD) return;
    if (steps > 0 || !t->m->sw[LAH_FIRST_PLAIN]) show_window(t, window);
    show_pool(t, pool);
}

/* ---- A step. ---------------------------------------------------------------------------- */

/* Of the proposal, on the host. */
typedef struct {
    ag_tree tree;
    ag_asked asked;
    ag_sequence sequence;
    int32_t *token, *parent; /* [R] */
    int32_t *path;           /* [H + R] the history, then the rows down to one */
} proposal;

/* Tokens from the first of the prompt to row r; how many. */
static int32_t path_to(const proposal *p, int32_t r)
{
    int32_t depth = 0;
    for (int32_t above = r; above > 0; above = p->parent[above]) depth++;
    const int32_t n = p->sequence.n + depth;
    for (int32_t above = r, at = n; above > 0; above = p->parent[above])
        p->path[--at] = p->token[above];
    return n;
}

/* The model's part: a row of logits for each wanted row, in its slot (step.h). */
static void evaluate(tracer *t, const proposal *p)
{
    float *logits = oracle_take((size_t)t->lm.V, sizeof *logits);
    int32_t slot = 0;
    for (int32_t r = 0; good(t) && r < p->tree.rows; r++) {
        if (r > 0 && r < p->tree.wanted) continue;
        const int32_t n = path_to(p, r);
        if (t->q->positions > 0 && n > t->q->positions)
            t->status = as_fail(&t->e, AS_LIMIT, "forward: position %d of %d", (int)n - 1,
                                (int)t->q->positions);
        t->lm.logits(t->lm.self, p->path, n, logits);
        const size_t bytes = (size_t)t->lm.V * sizeof *logits;
        up(t, t->on.logits + (size_t)slot++ * (size_t)t->lm.V, logits, bytes);
    }
    free(logits);
}

static void verify(tracer *t)
{
    const ag_batch *b = &t->d.batch;
    const bool samples = t->rule != AS_RULE_GREEDY;
    const ag_walks w = {.n = 1,
                        .V = b->V,
                        .capacity = b->R,
                        .wants = b->wants,
                        .tree = b->tree,
                        .token = b->token,
                        .parent = b->parent,
                        .row = samples ? t->on.p : t->on.logits,
                        .row_state = samples ? t->on.state : NULL,
                        .seeds = {.seed = b->seed, .position = b->position},
                        .run = t->on.run,
                        .path = t->on.path,
                        .length = t->on.length,
                        .accepted = t->on.accepted,
                        .fault = t->on.fault};
    if (good(t) && samples)
        t->status = ag_serve(&device, t->on.logits, NULL, b->wants, b->V, &t->sampling, t->on.p,
                             t->on.state, &scratch, &t->e);
    if (good(t)) t->status = ag_walk(&device, t->rule, &w, &scratch, &t->e);
}

/* The rows that the drafter asks about, by their slots. */
static void answer(tracer *t, const proposal *p)
{
    const ag_batch *b = &t->d.batch;
    const ag_asked *a = &p->asked;
    int32_t *ask = oracle_take((size_t)b->wants, sizeof *ask);
    for (int32_t k = 0; k < b->wants; k++) {
        const int32_t row = k > 0 ? p->tree.wanted + k - 1 : 0;
        ask[k] = row >= a->first && row < a->first + a->rows ? k : -1;
    }
    up(t, t->on.ask, ask, (size_t)b->wants * sizeof *ask);
    free(ask);
    if (!good(t)) return;
    t->status = a->drawn ? ag_draw(&device, t->on.p, NULL, t->on.ask, b->wants, b->V,
                                   b->uniform, NULL, AS_WINDOW, t->on.answer, &scratch, &t->e)
                         : ag_argmax(&device, t->on.logits, t->on.ask, b->wants, b->V,
                                     t->on.answer, t->on.ask_state, &scratch, &t->e);
}

/* What the rule gave, and what the drafter made of it. */
static void note(tracer *t, const proposal *p)
{
    oracle_step *to = ref_another_step(t->trace);
    as_row *row = oracle_take((size_t)p->tree.rows, sizeof *row);
    int32_t *tokens = oracle_take((size_t)t->d.batch.R + 1, sizeof *tokens), length = 0;
    ag_sequence after = {0};
    for (int32_t r = 0; r < p->tree.rows; r++) row[r] = (as_row){p->token[r], p->parent[r]};
    const as_tree tree = {.rows = p->tree.rows, .row = row};
    ref_show_tree(t->m, &tree, p->tree.drafts, to);
    down(t, &length, t->on.length, sizeof length);
    down(t, &to->accepted, t->on.accepted, sizeof to->accepted);
    if (good(t) && length > 0) {
        down(t, tokens, t->on.run, (size_t)length * sizeof *tokens);
        oracle_append(&to->run, tokens, length);
    }
    if (good(t)) t->status = ag_drafter_sequence(&t->d, 0, &after, &t->e);
    if (good(t))
        t->status =
            ag_drafter_tokens(&t->d, 0, after.n - after.emitted, after.emitted, tokens, &t->e);
    if (good(t)) oracle_append(&to->emitted, tokens, after.emitted);
    show_state(t, after.steps, &to->window, &to->pool);
    free(row);
    free(tokens);
}

static void take_proposal(tracer *t, proposal *p)
{
    if (good(t)) t->status = ag_propose(&t->d, &t->e);
    if (good(t)) t->status = ag_assemble(&t->d, &t->e);
    if (good(t)) t->status = ag_drafter_tree(&t->d, 0, &p->tree, p->token, p->parent, &t->e);
    down(t, &p->asked, t->d.batch.asked, sizeof p->asked);
    if (good(t)) t->status = ag_drafter_tokens(&t->d, 0, 0, p->sequence.n, p->path, &t->e);
}

static void step(tracer *t, proposal *p)
{
    const ag_answers answers = {t->on.run, t->on.path, t->on.length, t->on.accepted,
                                t->on.answer};
    take_proposal(t, p);
    if (good(t)) evaluate(t, p);
    verify(t);
    answer(t, p);
    if (good(t)) t->status = ag_observe(&t->d, &answers, &t->e);
    if (good(t)) note(t, p);
    if (good(t)) t->status = ag_drafter_sequence(&t->d, 0, &p->sequence, &t->e);
}

/* ---- A request. ------------------------------------------------------------------------- */

static void decode(tracer *t)
{
    const ag_batch *b = &t->d.batch;
    proposal p = {.token = oracle_take((size_t)b->R, sizeof *p.token),
                  .parent = oracle_take((size_t)b->R, sizeof *p.parent),
                  .path = oracle_take((size_t)b->H + (size_t)b->R, sizeof *p.path)};
    t->status = ag_drafter_sequence(&t->d, 0, &p.sequence, &t->e);
    show_state(t, 0, &t->trace->window0, &t->trace->pool0);
    while (good(t) && p.sequence.left > 0 && !p.sequence.ended && !p.sequence.failed)
        step(t, &p);
    if (good(t) && p.sequence.failed)
        t->status = as_fail(&t->e, AS_BAD_INPUT, "logits: a row cannot be served");
    if (good(t)) t->status = ag_drafter_tokens(&t->d, 0, 0, p.sequence.n, p.path, &t->e);
    if (good(t)) oracle_append(&t->trace->tokens, p.path + t->q->n, p.sequence.n - t->q->n);
    free(p.token), free(p.parent), free(p.path);
}

/* AS_DEVICE or AS_NO_MEMORY, with a sentence, or AS_OK: a refusal stands in the trace. */
static as_status take_down(const vector_group *g, const vector_test *v, oracle_trace *trace,
                           as_error *e)
{
    const oracle_sampling *s = &v->request->sampling;
    tracer t = {.q = v->request,
                .m = v->method,
                .lm = trace_model(g),
                .rule = ref_rule_of(v->request, v->method),
                .sampling = {s->temperature, s->top_k, s->top_p, s->min_p},
                .trace = trace};
    *trace = (oracle_trace){.steps = 0};
    begin(&t);
    if (good(&t) && t.q->budget > 0) decode(&t); /* STOP-08 */
    end(&t);
    *e = t.e;
    if (t.status == AS_DEVICE || t.status == AS_NO_MEMORY) return t.status;
    if (t.status != AS_OK) ref_refuse(t.q, &t.e, trace);
    return AS_OK;
}

static as_status write_all(FILE *f, const vector_set *set, as_error *e)
{
    as_status s = AS_OK;
    bool first = true;
    traces_write_head(f, device.name);
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        const bool ours = g->kind == VECTOR_TRACE && g->method != ORACLE_OUROBOROS; /* which no kernel drafts */
        for (int32_t k = 0; ours && s == AS_OK && k < g->tests; k++) {
            oracle_trace trace;
            s = take_down(g, &g->test[k], &trace, e);
            if (s == AS_OK) traces_write_one(f, first, g, g->test[k].id, &trace);
            first = false;
            oracle_trace_free(&trace);
        }
    }
    traces_write_end(f);
    return s;
}

static int fail(const char *why)
{
    fprintf(stderr, "traces_gpu: %s\n", why);
    return EXIT_FAILURE;
}

static int write_file(const char *name, const vector_set *set)
{
    as_error e;
    FILE *f = fopen(name, "w");
    if (!f) return fail(strerror(errno));
    as_status s = ag_scratch_reserve(&device, SCRATCH_ROWS, &scratch, &e);
    if (s == AS_OK) s = write_all(f, set, &e);
    ag_scratch_free(&scratch);
    const bool whole = !ferror(f);
    if (fclose(f) != 0 || !whole) return fail("the file cannot be written");
    return s == AS_OK ? EXIT_SUCCESS : fail(e.text);
}

int main(int argc, char **argv)
{
    char why[400] = "the memory is too short";
    as_error e;
    if (argc != 3) {
        fprintf(stderr, "usage: traces_gpu FILE VECTORS\n");
        return 2;
    }
    if (ag_device_open(&device, 0, &e) != AS_OK) {
        if (ag_has_device()) return fail(e.text);
        printf("not run: no GPU (%s)\n", e.text);
        return NOT_RUN;
    }
    vector_set *set = vectors_new();
    const int code = set && vectors_load_kind(set, argv[2], VECTOR_TRACE, why, sizeof why)
                         ? write_file(argv[1], set)
                         : fail(why);
    vectors_free(set);
    ag_device_close(&device);
    return code;
}
