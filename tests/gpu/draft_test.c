/* draft_test.c - the drafters on the grid emulator against those of ref/draft, step by step:
 * the tree, the uniforms, the rows of the forward, what is emitted and committed, the window,
 * every key of the pool, and what a request counted.
 *
 *   draft_test [BATCHES]
 *
 * A batch has one method with random options and several sequences, each with a model, a
 * prompt, a budget, ends and a seed of its own; when a sequence is over, another request takes
 * its place. as_decode decodes each request first, and its trace is what the device is fed with
 * and compared to. Clauses JAC-01 to JAC-08, LAH-01 to LAH-17, LAH-23 to LAH-30, POOL-01 to
 * POOL-05, LKP-01 to LKP-05, STOP-01, STOP-02, RNG-06. */
#include <stdio.h>
#include <string.h>

#include "gpu/draft/draft.h"
#include "gpu/emu/control.h"
#include "ref/decode.h"
#include "ref/dist/draw.h"
#include "ref/lm/hash_lm.h"
#include "ref/lm/table_lm.h"
#include "tests/gpu/on_device.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"

enum {
    MOST_V = 3000,
    SMALL_V = 12,
    ROW = 100,
    PROMPT = 24,
    BUDGET = 40,
    GIVEN = 60,
    REQUESTS = 6,
    BATCHES = 120
};
enum { ENDS = 3, POISON = -99 };
enum { PAPER, LADE, LLAMACPP, TRTLLM, ANY, JACOBI, ORIGINAL, HF, CHAIN, PLAIN, KINDS };
static const char *const kind_name[KINDS] = {
    "paper", "lade", "llamacpp", "trtllm", "any", "jacobi", "original", "hf", "chain", "plain"};

static int batches;

/* ck_assert writes to a file at each call; this one when it fails. */
#define MUST(x)                                                                                \
    do {                                                                                       \
        if (!(x)) ck_assert(x);                                                                \
    } while (0)

/* ---- What a step of the reference was. --------------------------------------------- */

typedef struct {
    ag_tree tree;
    ag_asked asked;
    int32_t *token, *parent, *answer; /* [rows] */
    int32_t *run;                     /* [length] */
    int32_t *path;                    /* [accepted + 1] */
    int32_t length, accepted, emitted, kept;
    int32_t from;    /* the column of the first answer asked for */
    int32_t filled;  /* rows of the window after the step */
    int32_t *window; /* its rows, one behind the other */
    int32_t *pool;   /* for every key: count, values */
    int32_t pool_words, window_words;
    int32_t held; /* tokens in the draft model's cache */
} record;

typedef struct {
    as_lm *lm, *draft_lm;
    int32_t prompt[PROMPT], eos[ENDS], out[BUDGET];
    int32_t prompts, budget, eoses;
    uint64_t seed;
    as_rule rule;
    as_sampling sampling;
    int32_t *next; /* of the automaton, if it is one */
    float *logits;
    as_drafter *twin;
    as_result result;
    record *step;   /* [result.steps] */
    int32_t length; /* of the target's cache */
} request;

typedef struct {
    uint64_t number;
    int kind;
    ag_drafting o;
    int32_t V, positions, rows, sequences, requests;
    int32_t given[GIVEN];
    request r[REQUESTS];
} batch;

static bool is_warm(const request *r)
{
    return r->rule != AS_RULE_GREEDY && r->sampling.temperature > 0.0f;
}

static int32_t *words(int32_t n)
{
    int32_t *to = malloc((size_t)n * sizeof *to);
    ck_assert_ptr_nonnull(to);
    return to;
}

/* ---- The reference's side. --------------------------------------------------------- */

typedef struct {
    const batch *c;
    request *r;
} watcher;

static int32_t argmax_of(const float *logits, int32_t V)
{
    int32_t id = POISON;
    ck_assert_int_eq(as_argmax(logits, V, &id, &why), AS_OK);
    return id;
}

/* LAH-14, from the clause: column i of the step at this position. */
static int32_t drawn(const watcher *w, const float *logits, uint64_t position, int32_t i)
{
    float p[MOST_V];
    const as_words u = as_random(w->r->seed, position, AS_WINDOW, (uint32_t)i);
    ck_assert_int_eq(as_serve(logits, w->c->V, &w->r->sampling, p, &why), AS_OK);
    return as_draw(p, w->c->V, as_word64(u));
}

/* Which answers the drafter may ask for: in lookahead those of the window's last row, in its
 * last W columns where the window fills these alone. */
static void note_answers(const watcher *w, const as_step *s, int32_t columns, record *to)
{
    const as_lookahead *o = &w->c->o.lookahead;
    const int32_t rows = s->tree->rows, window = s->plan->drafts;
    if (w->c->kind == JACOBI) to->asked.rows = rows;
    if (w->c->kind <= ANY && columns > 0) {
        to->from = o->fill_last ? columns - o->W : 0;
        to->asked.first = window - columns + to->from;
        to->asked.rows = columns - to->from;
        to->asked.drawn = is_warm(w->r) && o->sampled;
    }
    for (int32_t i = 0; i < rows; i++) {
        const int32_t column = i - to->asked.first;
        to->answer[i] = POISON;
        if (column < 0 || column >= to->asked.rows) continue;
        MUST(s->logits[i]);
        to->answer[i] = to->asked.drawn ? drawn(w, s->logits[i], s->position, to->from + column)
                                        : argmax_of(s->logits[i], w->c->V);
    }
}

static void note_window(const watcher *w, record *to)
{
    int32_t n;
    while (as_lookahead_row(w->r->twin, to->filled, &n)) to->filled++;
    for (int32_t l = 0; l < to->filled; l++) {
        const int32_t *row = as_lookahead_row(w->r->twin, l, &n);
        to->window = realloc(to->window, (size_t)(to->window_words + n) * sizeof *row);
        memcpy(to->window + to->window_words, row, (size_t)n * sizeof *row);
        to->window_words += n;
    }
}

static void note_pool(const watcher *w, record *to)
{
    const as_pool *p = as_lookahead_pool(w->r->twin);
    for (int32_t t = 0; t < w->c->V; t++) {
        int32_t count;
        const int32_t *v = as_pool_find(p, t, &count), words = count * as_pool_length(p);
        const size_t room = (size_t)(to->pool_words + 1 + words) * sizeof *v;
        to->pool = realloc(to->pool, room);
        to->pool[to->pool_words++] = count;
        if (words) memcpy(to->pool + to->pool_words, v, (size_t)words * sizeof *v);
        to->pool_words += words;
    }
}

static void watch(void *data, const as_step *s)
{
    const watcher *w = data;
    request *r = w->r;
    r->step = realloc(r->step, (size_t)(s->step + 1) * sizeof *r->step);
    record *to = &r->step[s->step];
    *to = (record){.length = s->length, .accepted = s->accepted, .emitted = s->emitted};
    const as_tree *t = s->tree;
    const as_plan *plan = s->plan;
    to->tree = (ag_tree){.rows = t->rows,
                         .wanted = plan->wanted,
                         .drafts = plan->drafts,
                         .all = plan->all,
                         .most = plan->most,
                         .bonus = plan->bonus};
    to->token = words(t->rows);
    to->parent = words(t->rows);
    to->answer = words(t->rows);
    to->run = words(s->length);
    memcpy(to->run, s->run, (size_t)s->length * sizeof *s->run);
    to->path = words(s->accepted + 1);
    memcpy(to->path, s->path, (size_t)(s->accepted + 1) * sizeof *s->path);
    for (int32_t i = 0; i < t->rows; i++)
        to->token[i] = t->row[i].token, to->parent[i] = t->row[i].parent;
    to->kept = as_lm_length(r->lm, 0) - r->length;
    r->length = as_lm_length(r->lm, 0);
    if (r->draft_lm) to->held = as_lm_length(r->draft_lm, 0);
    int32_t columns = 0;
    if (w->c->kind <= ANY) {
        /* A plain step has no window below its root; a window of one token looks like it, but
         * says how much the step may accept. */
        const as_lookahead *o = &w->c->o.lookahead;
        const int32_t before = s->step > 0 ? r->step[s->step - 1].filled
                               : o->warmup ? 1
                                           : o->N - 1;
        if (plan->most != INT32_MAX) columns = o->W + o->N - 1 - before;
        note_window(w, to);
        note_pool(w, to);
    }
    note_answers(w, s, columns, to);
}

static as_drafter *twin_of(const batch *c, const request *r)
{
    as_drafter *d = NULL;
    const as_sampling own = {1.0f, 0, 1.0f, 0.0f};
    switch (c->o.method) {
    case AG_LOOKAHEAD:
        ok(as_draft_lookahead(&c->o.lookahead, c->V, &d, &why));
        break;
    case AG_JACOBI:
        ok(as_draft_jacobi(&c->o.jacobi, c->V, &d, &why));
        break;
    case AG_LOOKUP:
        ok(as_draft_lookup(&c->o.lookup, &d, &why));
        break;
    case AG_CHAIN:
        ok(as_draft_lm(r->draft_lm, &own, c->o.gamma, &d, &why));
        break;
    default:
        ok(as_draft_none(&d, &why));
    }
    return d;
}

static void decode(const batch *c, request *r, bool traced)
{
    watcher w = {c, r};
    const as_request q = {.target = r->lm,
                          .drafter = r->twin,
                          .rule = r->rule,
                          .sampling = r->sampling,
                          .seed = r->seed,
                          .prompt = r->prompt,
                          .prompts = r->prompts,
                          .eos = r->eos,
                          .eoses = r->eoses,
                          .budget = r->budget,
                          .trace = traced ? watch : NULL,
                          .trace_data = &w};
    r->length = r->prompts - 1;
    ok(as_decode(&q, r->out, &r->result, &why));
}

static void forget(batch *c)
{
    for (int32_t i = 0; i < c->requests; i++) {
        request *r = &c->r[i];
        for (int32_t k = 0; k < r->result.steps; k++) {
            const record *s = &r->step[k];
            free(s->token), free(s->parent), free(s->answer), free(s->run);
            free(s->path);
            free(s->window), free(s->pool);
        }
        free(r->step);
        as_drafter_free(r->twin);
        as_lm_free(r->lm);
        as_lm_free(r->draft_lm);
        free(r->next);
        free(r->logits);
    }
}

/* ---- Random batches. --------------------------------------------------------------- */

/* An automaton over the last token, or the last two; or a cycle of the first tokens. */
static void make_automaton(batch *c, request *r, uint64_t *seed)
{
    static int32_t cls[MOST_V];
    const int32_t V = c->V, S = coin(seed) && V <= SMALL_V ? V * V : V;
    const int32_t period = below(seed, 3) ? 0 : 1 + below(seed, V), levels = 2 + below(seed, 6);
    r->next = malloc((size_t)(S * V) * sizeof *r->next);
    r->logits = malloc((size_t)(S * V) * sizeof *r->logits);
    for (int32_t s = 0; s < S; s++)
        for (int32_t t = 0; t < V; t++) {
            cls[t] = t;
            r->next[s * V + t] = S > V ? s % V * V + t : t;
            r->logits[s * V + t] =
                period ? 4.0f * (float)(t == (s + 1) % period) : (float)below(seed, levels);
        }
    const as_table_law law = {V, S, V, below(seed, S), cls, r->next, r->logits};
    ok(as_table_lm(&law, &r->lm, &why));
}

static void make_models(batch *c, request *r, uint64_t *seed)
{
    const as_hash_law law = {c->V, 1 + below(seed, 8), 0, splitmix(seed), 0};
    if (c->kind == CHAIN || c->V > 200 || below(seed, 4) == 0)
        ok(as_hash_lm(&law, &r->lm, &why));
    else
        make_automaton(c, r, seed);
    if (c->kind != CHAIN) return;
    as_hash_law near = law;
    near.noise = 2, near.noise_seed = 7;
    ok(as_hash_lm(&near, &r->draft_lm, &why));
}

static void any_switches(as_lookahead *o, uint64_t *seed)
{
    *o = (as_lookahead){.init = (as_fill)below(seed, 4),
                        .first_plain = coin(seed),
                        .warmup = coin(seed),
                        .verify_filling = coin(seed),
                        .pool_from_prompt = coin(seed),
                        .pool_from_output = coin(seed),
                        .pool = (as_pool_policy)below(seed, 2),
                        .key = (as_key)below(seed, 3),
                        .bonus = coin(seed),
                        .accept_window = coin(seed),
                        .shift = (as_shift)below(seed, 3),
                        .sampled = coin(seed),
                        .rule = coin(seed) ? AS_RULE_MATCH : AS_RULE_ONEHOT,
                        .eos_filter = coin(seed)};
    if (o->key == AS_KEY_STALE) o->warmup = false;
    if (o->warmup) o->fill_last = coin(seed);
}

/* Mostly small; now and then more columns than a block has warps, more values than a warp has
 * lanes, or longer n-grams than that. */
static void make_lookahead(batch *c, uint64_t *seed)
{
    as_lookahead *o = &c->o.lookahead;
    if (c->kind == ANY)
        any_switches(o, seed);
    else
        *o = *as_lookahead_preset(kind_name[c->kind]);
    const int32_t wide = below(seed, 12);
    o->W = wide == 3 ? 15 : 1 + below(seed, wide == 0 || wide == 2 ? 40 : 8);
    o->N = wide == 3 ? 5 : 2 + below(seed, wide == 1 ? 40 : 5);
    o->G = wide == 3 ? 15 : wide == 2 ? 50 : below(seed, 8) ? 1 + below(seed, 6) : 0;
    if (below(seed, 4) == 0) o->init = AS_FILL_GIVEN;
    o->given = c->given;
    o->givens = 1 + below(seed, GIVEN);
}

static void make_method(batch *c, uint64_t *seed)
{
    static const ag_method method[KINDS] = {[JACOBI] = AG_JACOBI,
                                            [ORIGINAL] = AG_LOOKUP,
                                            [HF] = AG_LOOKUP,
                                            [CHAIN] = AG_CHAIN,
                                            [PLAIN] = AG_PLAIN};
    c->o.method = c->kind <= ANY ? AG_LOOKAHEAD : method[c->kind];
    for (int32_t i = 0; i < GIVEN; i++) c->given[i] = below(seed, c->V);
    if (c->kind <= ANY) make_lookahead(c, seed);
    c->o.jacobi =
        (as_jacobi){1 + below(seed, below(seed, 8) ? 12 : 45), (as_jacobi_init)below(seed, 5),
                    below(seed, c->V), c->given, 1 + below(seed, GIVEN), false};
    c->o.lookup = *as_lookup_preset(c->kind == HF ? "hf" : "original");
    if (c->kind <= HF && coin(seed)) {
        c->o.lookup.longest = 1 + below(seed, 5);
        c->o.lookup.drafts = 1 + below(seed, below(seed, 8) ? 6 : 40);
    }
    c->o.gamma = below(seed, 8);
}

/* A filter of ends is at work above T = 0 alone, and with an end to meet (LAH-27): such batches
 * have more of both. */
static bool filters(const batch *c)
{
    return c->kind <= ANY && c->o.lookahead.eos_filter;
}

static void make_rule(batch *c, request *r, uint64_t *seed)
{
    const as_lookahead *o = &c->o.lookahead;
    r->sampling = (as_sampling){0.25f * (float)below(seed, 9), below(seed, 4), 1.0f, 0.0f};
    r->rule = AS_RULE_GREEDY;
    if (below(seed, filters(c) ? 4 : 2) == 0 || c->kind == JACOBI) return;
    if (c->kind <= ANY)
        r->rule = o->accept_window ? AS_RULE_GREEDY : o->rule;
    else
        r->rule = coin(seed) ? AS_RULE_MATCH : AS_RULE_ONEHOT;
    if (c->kind == CHAIN && coin(seed)) r->rule = AS_RULE_CHAIN;
}

static void make_request(batch *c, request *r, uint64_t *seed)
{
    make_models(c, r, seed);
    r->seed = splitmix(seed);
    r->prompts = 1 + below(seed, PROMPT);
    r->budget = below(seed, BUDGET + 1);
    for (int32_t i = 0; i < PROMPT; i++) r->prompt[i] = below(seed, c->V);
    for (int32_t i = 0; i < ENDS; i++) r->eos[i] = below(seed, c->V);
    r->eoses = below(seed, 3) ? 0 : below(seed, ENDS + 1);
    if (filters(c) && coin(seed)) r->eoses = 1 + below(seed, ENDS);
    make_rule(c, r, seed);
}

/* Positions that just suffice for the longest request, and rows for a part of the trees. */
static void make_limits(batch *c, uint64_t *seed)
{
    int32_t positions = 1;
    for (int32_t i = 0; i < c->requests; i++) {
        const int32_t needed = c->r[i].prompts + c->r[i].budget - 1;
        positions = needed > positions ? needed : positions;
    }
    if (below(seed, 5) == 0) c->positions = positions + below(seed, 4);
    if (below(seed, 6) == 0) c->rows = 1 + below(seed, 60);
    for (int32_t i = 0; i < c->requests; i++) {
        c->r[i].lm->positions = c->positions;
        c->r[i].lm->rows = c->rows;
    }
}

/* What plain decoding says, often as the given tokens, so that they are good guesses; and one
 * of its tokens, so that it is met, as an end. */
static void improve(batch *c, uint64_t *seed)
{
    for (int32_t i = 0; i < c->requests; i++) {
        request *r = &c->r[i];
        const int32_t eoses = r->eoses;
        r->eoses = 0;
        ok(as_draft_none(&r->twin, &why));
        if (r->rule == AS_RULE_CHAIN) {
            r->rule = AS_RULE_MATCH;
            decode(c, r, false);
            r->rule = AS_RULE_CHAIN;
        } else
            decode(c, r, false);
        as_drafter_free(r->twin);
        r->eoses = eoses;
        if (r->budget && coin(seed)) r->eos[0] = r->out[below(seed, r->budget)];
        for (int32_t k = 0; i == 0 && k < r->budget && coin(seed); k++) c->given[k] = r->out[k];
    }
}

static void make_batch(batch *c, uint64_t number, int kind)
{
    uint64_t seed = number;
    memset(c, 0, sizeof *c);
    c->number = number;
    c->kind = kind;
    const int32_t size = below(&seed, 30); /* 3,000: more keys than the pool has buckets */
    c->V = size == 0 ? MOST_V : 2 + below(&seed, size < 5 ? 130 : SMALL_V - 1);
    make_method(c, &seed);
    c->sequences = 1 + below(&seed, 3);
    c->requests = c->sequences + below(&seed, REQUESTS - 3);
    for (int32_t i = 0; i < c->requests; i++) make_request(c, &c->r[i], &seed);
    make_limits(c, &seed);
    improve(c, &seed);
    for (int32_t i = 0; i < c->requests; i++) {
        c->r[i].twin = twin_of(c, &c->r[i]);
        decode(c, &c->r[i], true);
    }
}

/* ---- The device's side. ------------------------------------------------------------ */

typedef struct {
    int requests, steps, warm, plain_for_room, ended, cut, drawn, filtered;
    int values;      /* of a key, at most */
    int accepted[8]; /* steps that accepted so many; the last: so many or more */
} coverage;
static coverage met[KINDS];

typedef struct {
    const batch *c;
    ag_drafter d;
    ag_answers walks;
    int32_t *run, *path, *length, *accepted, *answer; /* the same, to be written */
    struct {
        const request *r; /* NULL: nothing */
        int32_t step;
    } slot[REQUESTS];
    int32_t next; /* request to begin */
    /* The draft model of each sequence. */
    ag_feed feed;
    int32_t *number, *drawn;
    int32_t cache[REQUESTS]; /* its sequence in the request's draft model */
} follower;

static int32_t *room(int32_t n)
{
    return on_device(NULL, (size_t)n * sizeof(int32_t));
}

static void open_follower(follower *f, const batch *c)
{
    const ag_room needed = {c->sequences, c->V, PROMPT + BUDGET, ENDS, c->positions, c->rows};
    *f = (follower){.c = c};
    ok(ag_drafter_open(&device, &c->o, &needed, &f->d, &why));
    const int32_t B = c->sequences, R = f->d.batch.R;
    f->run = room(B * R), f->path = room(B * R), f->answer = room(B * f->d.batch.wants);
    f->length = room(B), f->accepted = room(B);
    f->walks = (ag_answers){f->run, f->path, f->length, f->accepted, f->answer};
}

/* A draft model on the device would have these. */
static void open_draft_models(follower *f)
{
    const int32_t B = f->c->sequences;
    int32_t *number = words(B);
    uint64_t *uniform = on_device(NULL, (size_t)B * sizeof *uniform);
    f->number = room(B), f->drawn = room(B);
    f->feed = (ag_feed){f->number,   f->drawn, room(B), room(2 * B), room(2 * B),
                        room(2 * B), room(B),  uniform, room(B),     room(2 * B)};
    for (int32_t b = 0; b < B; b++) number[b] = B - 1 - b;
    ok(ag_upload(&device, f->number, number, (size_t)B * sizeof *number, &why));
    free(number);
}

static void close_draft_models(follower *f)
{
    ag_free(f->number), ag_free(f->drawn), ag_free(f->feed.length), ag_free(f->feed.want);
    ag_free(f->feed.row_token), ag_free(f->feed.row_parent), ag_free(f->feed.row_of);
    ag_free(f->feed.uniform), ag_free(f->feed.kept), ag_free(f->feed.path);
}

static void close_follower(follower *f)
{
    if (f->number) close_draft_models(f);
    ag_free(f->run), ag_free(f->path), ag_free(f->length), ag_free(f->accepted),
        ag_free(f->answer);
    ag_drafter_close(&f->d);
}

/* Its cache holds the prompt without its last token. */
static void prefill(follower *f, int32_t b)
{
    const request *r = f->slot[b].r;
    ok(as_lm_open(r->draft_lm, &f->cache[b], &why));
    for (int32_t i = 0; i + 1 < r->prompts; i++) {
        const as_row row = {r->prompt[i], -1};
        const as_forward one = {f->cache[b], 1, 0, &row, NULL, NULL};
        const int32_t path = 0;
        ok(as_lm_forward(r->draft_lm, &one, 1, &why));
        ok(as_lm_commit(r->draft_lm, f->cache[b], &path, 1, &why));
    }
}

static void begin(follower *f, int32_t b)
{
    const request *r = &f->c->r[f->next++];
    const ag_request q = {r->prompt, r->prompts, r->budget,  r->eos,
                          r->eoses,  r->seed,    is_warm(r), 99 + f->next};
    ok(ag_drafter_start(&f->d, b, &q, &why));
    f->slot[b].r = r;
    f->slot[b].step = 0;
    if (f->c->kind == CHAIN) prefill(f, b);
}

/* The step's record, or NULL when the sequence is over. */
static const record *record_of(const follower *f, int32_t b)
{
    const request *r = f->slot[b].r;
    return r && f->slot[b].step < r->result.steps ? &r->step[f->slot[b].step] : NULL;
}

#define SAME(f, b, got, wanted, what)                                                          \
    do {                                                                                       \
        if ((got) != (wanted)) differ(f, b, (long long)(got), (long long)(wanted), what);      \
    } while (0)

static void differ(const follower *f, int32_t b, long long got, long long wanted,
                   const char *what)
{
    ck_abort_msg("batch %llu, %s, sequence %d, step %d: %s: %lld, not %lld",
                 (unsigned long long)f->c->number, kind_name[f->c->kind], (int)b,
                 (int)f->slot[b].step, what, got, wanted);
}

static void same_tokens(const follower *f, int32_t b, const int32_t *got, const int32_t *wanted,
                        int32_t n, const char *what)
{
    for (int32_t i = 0; i < n; i++) SAME(f, b, got[i], wanted[i], what);
}

/* Where a wanted row stands among those of its tree. */
static int32_t slot_of(const record *s, int32_t row)
{
    return row == 0 ? 0 : row - s->tree.wanted + 1;
}

/* LAH-14, RNG-06: from the clauses. */
static void check_uniforms(const follower *f, int32_t b, const record *s, uint64_t position)
{
    const request *r = f->slot[b].r;
    const size_t wants = (size_t)f->d.batch.wants;
    uint64_t *u = malloc(wants * sizeof *u), at;
    ok(ag_download(&device, u, f->d.batch.uniform + (size_t)b * wants, wants * sizeof *u,
                   &why));
    ok(ag_download(&device, &at, f->d.batch.position + b, sizeof at, &why));
    SAME(f, b, at, position, "the position");
    for (int32_t i = 0; s->asked.drawn && i < s->asked.rows; i++)
        SAME(f, b, u[slot_of(s, s->asked.first + i)],
             as_word64(as_random(r->seed, position, AS_WINDOW, (uint32_t)(s->from + i))),
             "a uniform");
    for (int32_t i = 1; f->c->kind == CHAIN && i < s->tree.rows; i++)
        SAME(f, b, u[i], as_word64(as_random(r->seed, position + (uint64_t)i - 1, AS_DRAFT, 0)),
             "a draft's uniform");
    free(u);
}

static void check_tree(follower *f, int32_t b)
{
    const int32_t R = f->d.batch.R;
    const record *s = record_of(f, b);
    int32_t *token = words(R), *parent = words(R);
    ag_tree t;
    ag_asked asked;
    ag_sequence q;
    ok(ag_download(&device, &asked, f->d.batch.asked + b, sizeof asked, &why));
    ok(ag_drafter_tree(&f->d, b, &t, token, parent, &why));
    ok(ag_drafter_sequence(&f->d, b, &q, &why));
    SAME(f, b, t.rows, s ? s->tree.rows : 0, "rows");
    if (s) {
        SAME(f, b, t.wanted, s->tree.wanted, "wanted");
        SAME(f, b, t.drafts, s->tree.drafts, "drafts");
        SAME(f, b, t.all, s->tree.all, "all");
        SAME(f, b, t.most, s->tree.most, "most");
        SAME(f, b, t.bonus, s->tree.bonus, "bonus");
        SAME(f, b, asked.rows, s->asked.rows, "rows asked for");
        SAME(f, b, asked.drawn, s->asked.drawn, "drawn");
        if (asked.rows) SAME(f, b, asked.first, s->asked.first, "first row asked for");
        same_tokens(f, b, parent, s->parent, t.rows, "a parent");
        same_tokens(f, b, token, s->token, t.rows, "a token");
        check_uniforms(f, b, s, (uint64_t)(q.n - q.prompts));
    }
    free(token), free(parent);
}

/* n words from the device. */
static int32_t *fetch_words(const int32_t *from, int32_t n)
{
    int32_t *to = words(n > 0 ? n : 1);
    ok(ag_download(&device, to, from, (size_t)n * sizeof *to, &why));
    return to;
}

/* A batch's array of `size` words a sequence. */
static int32_t *fetch_batch(const follower *f, const int32_t *from, int32_t size)
{
    return fetch_words(from, f->c->sequences * size);
}

/* Row i of sequence b stands behind those of the sequences before it; what is left is nobody's;
 * every wanted row is asked for in its slot. */
static void check_rows(const follower *f)
{
    const ag_batch *d = &f->d.batch;
    const int32_t *token = fetch_batch(f, d->row_token, d->R),
                  *of = fetch_batch(f, d->row_of, d->R);
    const int32_t *parent = fetch_batch(f, d->row_parent, d->R),
                  *want = fetch_batch(f, d->want, d->wants);
    const int32_t *offset = fetch_batch(f, d->offset, 1);
    int32_t at = 0;
    for (int32_t b = 0; b < f->c->sequences; b++) {
        const record *s = record_of(f, b);
        const int32_t rows = s ? s->tree.rows : 0;
        if (s) SAME(f, b, offset[b], at, "the place of a tree");
        for (int32_t i = 0; i < rows; i++) {
            const int32_t number = 100 + (int32_t)(f->slot[b].r - f->c->r);
            SAME(f, b, of[at + i], number, "the sequence of a row");
            SAME(f, b, parent[at + i], i ? at + s->parent[i] : -1, "the parent of a row");
            SAME(f, b, token[at + i], s->token[i], "the token of a row");
            if (i == 0 || i >= s->tree.wanted)
                SAME(f, b, want[b * d->wants + slot_of(s, i)], at + i, "a wanted row");
        }
        for (int32_t k = 0; k < d->wants; k++)
            MUST(want[b * d->wants + k] >= 0 && want[b * d->wants + k] < d->B * d->R);
        at += rows;
    }
    for (; at < d->B * d->R; at++) MUST(of[at] == -1 && parent[at] == -1 && token[at] == 0);
    free((void *)token), free((void *)of), free((void *)parent), free((void *)want);
    free((void *)offset);
}

/* What the rule said: of the reference; beyond it, nonsense. */
static void feed(follower *f, int32_t b)
{
    const int32_t R = f->d.batch.R, wants = f->d.batch.wants;
    const record *s = record_of(f, b);
    int32_t *run = words(R), *path = words(R), *answer = words(wants);
    for (int32_t i = 0; i < R; i++) {
        run[i] = s && i < s->length ? s->run[i] : POISON;
        path[i] = s && i <= s->accepted ? s->path[i] : POISON;
    }
    for (int32_t k = 0; k < wants; k++) answer[k] = POISON;
    for (int32_t i = 0; s && i < s->tree.rows; i++)
        if (i == 0 || i >= s->tree.wanted) answer[slot_of(s, i)] = s->answer[i];
    const int32_t length = s ? s->length : POISON, accepted = s ? s->accepted : POISON;
    const size_t at = (size_t)b * (size_t)R, bytes = (size_t)R * sizeof *run;
    ok(ag_upload(&device, f->run + at, run, bytes, &why));
    ok(ag_upload(&device, f->path + at, path, bytes, &why));
    ok(ag_upload(&device, f->answer + (size_t)b * (size_t)wants, answer,
                 (size_t)wants * sizeof *answer, &why));
    ok(ag_upload(&device, f->length + b, &length, sizeof length, &why));
    ok(ag_upload(&device, f->accepted + b, &accepted, sizeof accepted, &why));
    free(run), free(path), free(answer);
}

/* LAH-30: the rows that the model commits. */
static void check_path(const follower *f, int32_t b, const record *s)
{
    const ag_batch *d = &f->d.batch;
    int32_t *kept = fetch_batch(f, d->kept, 1), *offset = fetch_batch(f, d->offset, 1);
    SAME(f, b, kept[b], s ? s->kept : 0, "kept");
    int32_t *path = fetch_words(d->path + (size_t)b * (size_t)d->R, kept[b]);
    for (int32_t i = 0; s && i < s->kept; i++)
        SAME(f, b, path[i], offset[b] + s->path[i], "a row of the path");
    free(kept), free(path), free(offset);
}

static void check_window(const follower *f, int32_t b, const record *s)
{
    const as_lookahead *o = &f->c->o.lookahead;
    int32_t row[ROW], n, at = 0;
    MUST(o->W + o->N <= ROW);
    const int32_t all = o->W + o->N - 1 - s->filled;
    for (int32_t l = 0; l < s->filled; l++, at += n) {
        ok(ag_drafter_window(&f->d, b, l, row, &n, &why));
        SAME(f, b, n, l > 0 && o->fill_last ? o->W : all, "columns");
        same_tokens(f, b, row, s->window + at, n, "a token of the window");
    }
    ok(ag_drafter_window(&f->d, b, s->filled, row, &n, &why));
    SAME(f, b, n, 0, "columns of a row that does not exist");
}

/* A key as those see it who look at one. */
static void check_key(const follower *f, int32_t b, int32_t key, const int32_t *bucket)
{
    const as_lookahead *o = &f->c->o.lookahead;
    int32_t *values = words(o->G * (o->N - 1) + 1), count;
    ok(ag_drafter_pool(&f->d, b, key, values, &count, &why));
    SAME(f, b, count, bucket[0], "values of the key that is asked for");
    same_tokens(f, b, values, bucket + 1, count * (o->N - 1), "a token of its values");
    free(values);
}

static void check_pool(const follower *f, int32_t b, const record *s)
{
    const as_lookahead *o = &f->c->o.lookahead;
    const ag_pool *p = &f->d.pool;
    const int32_t V = f->c->V, asked = f->slot[b].step * 7 % V;
    int32_t *number = fetch_words(p->number + (size_t)b * (size_t)V, V), at = 0, used;
    ok(ag_download(&device, &used, p->buckets + b, sizeof used, &why));
    MUST(used <= p->capacity);
    const size_t first = (size_t)b * (size_t)p->capacity;
    for (int32_t t = 0; t < V; t++) {
        MUST(number[t] >= 0 && number[t] <= used);
        /* A bucket is written as far as it holds values. */
        const int32_t held = s->pool[at], words = number[t] ? 1 + held * (o->N - 1) : 0;
        const size_t of = (first + (size_t)number[t] - 1) * (size_t)p->size;
        int32_t *bucket = words ? fetch_words(p->bucket + of, words) : NULL;
        const int32_t count = !bucket ? 0 : bucket[0] < o->G ? bucket[0] : o->G;
        SAME(f, b, count, held, "values of a key");
        if (bucket)
            same_tokens(f, b, bucket + 1, s->pool + at + 1, words - 1, "a token of the pool");
        free(bucket);
        if (t == asked) check_key(f, b, t, s->pool + at);
        at += 1 + count * (o->N - 1);
        if (count > met[f->c->kind].values) met[f->c->kind].values = count;
    }
    SAME(f, b, at, s->pool_words, "words of the pool");
    free(number);
}

static void count_step(const follower *f, const request *r, const record *s)
{
    coverage *m = &met[f->c->kind];
    m->steps++;
    m->warm += is_warm(r);
    m->accepted[s->accepted < 7 ? s->accepted : 7]++;
    m->plain_for_room += f->c->kind <= ANY && s->asked.rows == 0;
    m->cut += s->emitted < s->length;
    m->drawn += s->asked.drawn;
    for (int32_t i = 0; i < s->asked.rows && is_warm(r) && f->c->o.lookahead.eos_filter; i++)
        for (int32_t k = 0; k < r->eoses; k++)
            m->filtered += s->answer[s->asked.first + i] == r->eos[k];
}

static void check_step(follower *f, int32_t b)
{
    const record *s = record_of(f, b);
    const request *r = f->slot[b].r;
    int32_t tokens[BUDGET];
    ag_sequence q;
    ok(ag_drafter_sequence(&f->d, b, &q, &why));
    SAME(f, b, q.emitted, s ? s->emitted : 0, "emitted");
    check_path(f, b, s);
    SAME(f, b, q.failed, 0, "failed");
    if (!s) return;
    ok(ag_drafter_tokens(&f->d, b, q.n - q.emitted, q.emitted, tokens, &why));
    same_tokens(f, b, tokens, s->run, q.emitted, "an emitted token");
    if (f->c->kind <= ANY) check_window(f, b, s), check_pool(f, b, s);
    /* The reference's draft model is fed the prompt with its first draft. */
    if (f->c->kind == CHAIN && s->held > 0)
        SAME(f, b, q.held, s->held, "tokens that the draft model holds");
    count_step(f, r, s);
    f->slot[b].step++;
}

/* All of the request, once it is over. */
static void check_end(follower *f, int32_t b)
{
    const request *r = f->slot[b].r;
    int32_t tokens[PROMPT + BUDGET];
    ag_sequence q;
    ok(ag_drafter_sequence(&f->d, b, &q, &why));
    SAME(f, b, q.n, r->prompts + r->result.tokens, "tokens");
    SAME(f, b, q.steps, r->result.steps, "steps");
    SAME(f, b, q.drafted, r->result.drafted, "drafted");
    SAME(f, b, q.accepted, r->result.accepted, "accepted");
    SAME(f, b, q.ended, r->result.ended, "ended");
    SAME(f, b, q.left, r->budget - r->result.tokens, "left");
    ok(ag_drafter_tokens(&f->d, b, 0, q.n, tokens, &why));
    same_tokens(f, b, tokens, r->prompt, r->prompts, "a token of the prompt");
    same_tokens(f, b, tokens + r->prompts, r->out, r->result.tokens, "a token");
    met[f->c->kind].requests++;
    met[f->c->kind].ended += q.ended;
}

/* The draft model's part of a feed, on the host: its rows on what its cache holds, then the
 * draw. */
static int32_t answer_feed(follower *f, int32_t b, const as_row row[2], int32_t rows, int32_t i,
                           int32_t length, uint64_t U)
{
    static float logits[MOST_V], p[MOST_V];
    const as_sampling own = {1.0f, 0, 1.0f, 0.0f};
    as_lm *lm = f->slot[b].r->draft_lm;
    const int32_t path[] = {0, 1}, want = rows - 1;
    const as_forward all = {f->cache[b], rows, 1, row, &want, logits};
    if (i == 0 && length < as_lm_length(lm, f->cache[b]))
        ok(as_lm_truncate(lm, f->cache[b], length, &why));
    if (i == 0) SAME(f, b, length, as_lm_length(lm, f->cache[b]), "what the draft model holds");
    ok(as_lm_forward(lm, &all, 1, &why));
    ok(as_lm_commit(lm, f->cache[b], path, rows, &why));
    ok(as_serve(logits, f->c->V, &own, p, &why));
    return as_draw(p, f->c->V, U);
}

static void feed_draft_models(follower *f, int32_t i)
{
    const int32_t B = f->c->sequences;
    ok(ag_chain_feed(&f->d, &f->feed, i, &why));
    if (i == f->d.gamma) return;
    int32_t *token = fetch_batch(f, f->feed.row_token, 2),
            *parent = fetch_batch(f, f->feed.row_parent, 2);
    int32_t *of = fetch_batch(f, f->feed.row_of, 2), *path = fetch_batch(f, f->feed.path, 2);
    int32_t *want = fetch_batch(f, f->feed.want, 1), *kept = fetch_batch(f, f->feed.kept, 1);
    int32_t *length = fetch_batch(f, f->feed.length, 1), drawn[REQUESTS];
    uint64_t U[REQUESTS];
    ok(ag_download(&device, U, f->feed.uniform, (size_t)B * sizeof *U, &why));
    for (int32_t b = 0; b < B; b++) {
        const record *s = record_of(f, b);
        as_row row[2];
        drawn[b] = POISON;
        for (int32_t r = 0; r < 2; r++) {
            MUST(of[2 * b + r] == (r < kept[b] ? B - 1 - b : -1));
            MUST(parent[2 * b + r] == (r > 0 && r < kept[b] ? 2 * b : -1));
            MUST(path[2 * b + r] == 2 * b + r);
            row[r] = (as_row){token[2 * b + r], r - 1};
        }
        SAME(f, b, kept[b] > 0, s && i + 1 < s->tree.rows, "whether a draft is asked for");
        MUST(want[b] == 2 * b + (kept[b] > 1));
        if (kept[b] > 0) drawn[b] = answer_feed(f, b, row, kept[b], i, length[B - 1 - b], U[b]);
    }
    ok(ag_upload(&device, f->drawn, drawn, (size_t)B * sizeof *drawn, &why));
    free(token), free(parent), free(of), free(path), free(want), free(kept), free(length);
}

static void step_all(follower *f)
{
    const int32_t B = f->c->sequences;
    const uint64_t before = emu_launches();
    ok(ag_propose(&f->d, &why));
    const int32_t feeds = f->c->kind == CHAIN ? f->d.gamma + 1 : 0;
    for (int32_t i = 0; i < feeds; i++) feed_draft_models(f, i);
    ok(ag_assemble(&f->d, &why));
    for (int32_t b = 0; b < B; b++) check_tree(f, b);
    check_rows(f);
    for (int32_t b = 0; b < B; b++) feed(f, b);
    ok(ag_observe(&f->d, &f->walks, &why));
    MUST(emu_launches() == before + 3 + (uint64_t)feeds);
    for (int32_t b = 0; b < B; b++) check_step(f, b);
}

/* Requests take the place of those that are over, some a step or more later. */
static void follow(const batch *c)
{
    follower f;
    uint64_t seed = ~c->number;
    int32_t over = 0;
    open_follower(&f, c);
    if (c->kind == CHAIN) open_draft_models(&f);
    while (over < c->requests) {
        for (int32_t b = 0; b < c->sequences; b++)
            if (!f.slot[b].r && f.next < c->requests && below(&seed, 4)) begin(&f, b);
        step_all(&f);
        for (int32_t b = 0; b < c->sequences; b++)
            if (f.slot[b].r && !record_of(&f, b) && below(&seed, 4)) {
                check_end(&f, b);
                if (c->kind == CHAIN) as_lm_close(f.slot[b].r->draft_lm, f.cache[b]);
                f.slot[b].r = NULL;
                over++;
            }
    }
    close_follower(&f);
}

static void compare(uint64_t number, int kind)
{
    static batch c;
    make_batch(&c, number, kind);
    emu_order(number / 7 % 5);
    follow(&c);
    forget(&c);
}

static void print_coverage(int kind)
{
    const coverage *m = &met[kind];
    printf("%-9s %5d requests, %6d steps (%d sampled), %d plain for want of room, ends %d, "
           "cut runs %d, drawn answers %d, filtered %d, values of a key %d; accepted",
           kind_name[kind], m->requests, m->steps, m->warm, m->plain_for_room, m->ended, m->cut,
           m->drawn, m->filtered, m->values);
    for (int i = 0; i < 8; i++) printf(" %d", m->accepted[i]);
    printf("\n");
    fflush(stdout);
}

/* Every kind meets steps that accept, requests that end early, and what is its own. */
static void check_coverage(int kind)
{
    const coverage *m = &met[kind];
    const int least = batches / 30;
    print_coverage(kind);
    ck_assert_int_ge(m->ended, least);
    if (kind != PLAIN)
        for (int i = 1; i < 4; i++) ck_assert_int_ge(m->accepted[i], least);
    if (kind <= ANY) ck_assert_int_ge(m->plain_for_room, least);
    if (kind <= ANY) ck_assert_int_ge(m->cut, least);
    if ((kind == PAPER || kind == ANY) && batches >= BATCHES)
        ck_assert_int_gt(m->values, 32); /* more than a warp has lanes */
    if (kind == ANY || kind == LLAMACPP) ck_assert_int_ge(m->drawn, least);
    if (kind == ANY || kind == LADE) ck_assert_int_ge(m->filtered, only_paths() ? 0 : least + 1);
}

START_TEST(as_the_reference)
{
    const int kind = _i;
    for (int i = 0; i < batches; i++) compare((uint64_t)i * KINDS + (uint64_t)kind, kind);
    check_coverage(kind);
}
END_TEST

/* ---- What goes wrong. -------------------------------------------------------------- */

static const ag_room small = {2, 8, 20, 2, 0, 0};

static ag_drafting lookahead_of(int32_t W, int32_t N, int32_t G)
{
    ag_drafting o = {.method = AG_LOOKAHEAD, .lookahead = *as_lookahead_preset("paper")};
    o.lookahead.W = W, o.lookahead.N = N, o.lookahead.G = G;
    return o;
}

static void refused(const ag_drafting *o, ag_room room_, as_status s, const char *what)
{
    ag_drafter d;
    why.text[0] = 0;
    ck_assert_int_eq(ag_drafter_open(&device, o, &room_, &d, &why), s);
    ck_assert_msg(strstr(why.text, what), "%s", why.text);
    ck_assert_ptr_null(d.batch.sequence);
}

START_TEST(options_are_refused_by_name)
{
    ag_drafting o = lookahead_of(0, 3, 2);
    refused(&o, small, AS_BAD_INPUT, "W 0, N 3, G 2");
    o = lookahead_of(2, 4096, 4096);
    o.lookahead.key = AS_KEY_STALE;
    refused(&o, small, AS_BAD_INPUT, "key stale has no meaning");
    o = (ag_drafting){.method = AG_JACOBI, .jacobi = {.m = 0}};
    refused(&o, small, AS_BAD_INPUT, "m 0 must be at least 1");
    o = (ag_drafting){.method = AG_JACOBI, .jacobi = {.m = 1, .init = AS_GUESS_GIVEN}};
    refused(&o, small, AS_BAD_INPUT, "needs at least one token");
    o = (ag_drafting){.method = AG_JACOBI, .jacobi = {.m = 4, .init = AS_GUESS_LAST, .whole = true}};
    refused(&o, small, AS_BAD_INPUT, "on a GPU a block does not wait");
    o = (ag_drafting){.method = AG_LOOKUP, .lookup = {1, 0, false, false}};
    refused(&o, small, AS_BAD_INPUT, "0 drafts");
    o = (ag_drafting){.method = AG_CHAIN, .gamma = -1};
    refused(&o, small, AS_BAD_INPUT, "gamma -1");
    o = (ag_drafting){.method = (ag_method)9};
    refused(&o, small, AS_BAD_INPUT, "method 9");
    o.method = AG_PLAIN;
    refused(&o, (ag_room){0, 8, 20, 2, 0, 0}, AS_BAD_INPUT, "room for 0 sequences");
    refused(&o, (ag_room){1, 8, 20, 2, -1, 0}, AS_BAD_INPUT, "-1 positions");
}
END_TEST

START_TEST(requests_are_refused_by_name)
{
    static const struct {
        int32_t prompts, budget, eoses;
        as_status s;
        const char *what;
    } bad[] = {{0, 5, 0, AS_BAD_INPUT, "prompt is empty"},
               {3, -1, 0, AS_BAD_INPUT, "budget -1"},
               {4, 5, 0, AS_BAD_INPUT, "token 3 is 8; it must be 0 to 7"},
               {3, 18, 0, AS_LIMIT, "need 20 positions; the model has 19"},
               {3, 5, 3, AS_LIMIT, "room for 20 tokens and 2 ends"}};
    const int32_t prompt[] = {1, 2, 3, 8}, eos[] = {1, 2, 3};
    ag_room room_ = small;
    ag_drafter d;
    const ag_drafting o = lookahead_of(2, 3, 2);
    room_.positions = 19;
    ok(ag_drafter_open(&device, &o, &room_, &d, &why));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const ag_request r = {
            prompt, bad[i].prompts, bad[i].budget, eos, bad[i].eoses, 1, false, 0};
        ck_assert_int_eq(ag_drafter_start(&d, 0, &r, &why), bad[i].s);
        ck_assert_msg(strstr(why.text, bad[i].what), "%s", why.text);
    }
    const ag_request good = {prompt, 3, 17, eos, 2, 1, false, 0};
    ck_assert_int_eq(ag_drafter_start(&d, 2, &good, &why), AS_BAD_INPUT);
    ck_assert_int_eq(ag_drafter_stop(&d, -1, &why), AS_BAD_INPUT);
    ck_assert_int_eq(ag_chain_feed(&d, NULL, 0, &why), AS_BAD_INPUT);
    ok(ag_drafter_start(&d, 1, &good, &why));
    ag_drafter_close(&d);
}
END_TEST

/* What the rule says of a sequence: one token, or none; an answer everywhere, or one missing.
 */
static void say(const follower *f, int32_t b, int32_t token, bool no_token, int32_t no_answer)
{
    const int32_t R = f->d.batch.R, wants = f->d.batch.wants;
    const int32_t length = !no_token, none = 0;
    int32_t answer[8] = {6, 6, 6, 6, 6, 6, 6, 6};
    ck_assert_int_le(wants, 8);
    if (no_answer >= 0) answer[no_answer] = -1;
    ok(ag_upload(&device, f->run + b * R, &token, sizeof token, &why));
    ok(ag_upload(&device, f->path + b * R, &none, sizeof none, &why));
    ok(ag_upload(&device, f->length + b, &length, sizeof length, &why));
    ok(ag_upload(&device, f->accepted + b, &none, sizeof none, &why));
    ok(ag_upload(&device, f->answer + b * wants, answer, (size_t)wants * sizeof *answer, &why));
}

/* Bad logits: a rule that gives no token, an answer that is none. The sequence is over, what
 * the step emitted stands, and its neighbour goes on. */
START_TEST(a_sequence_fails_alone)
{
    const bool no_token = _i & 1, jacobi = _i & 2;
    batch c = {.V = small.V, .sequences = 2, .o = lookahead_of(3, 2, 2)};
    if (jacobi) c.o = (ag_drafting){.method = AG_JACOBI, .jacobi = {.m = 4}};
    const int32_t prompt[] = {1, 2, 3}, emitted = !no_token;
    const ag_request r = {prompt, 3, 10, NULL, 0, 5, false, 0};
    follower f;
    ag_sequence q[2];
    open_follower(&f, &c);
    for (int32_t b = 0; b < 2; b++) ok(ag_drafter_start(&f.d, b, &r, &why));
    for (int32_t step = 0; step < 2; step++) {
        ok(ag_propose(&f.d, &why));
        ok(ag_assemble(&f.d, &why));
        say(&f, 0, 4 + step, false, -1);
        say(&f, 1, 4 + step, step == 0 && no_token, step > 0 || no_token ? -1 : 2);
        ok(ag_observe(&f.d, &f.walks, &why));
        int32_t *kept = fetch_batch(&f, f.d.batch.kept, 1);
        for (int32_t b = 0; b < 2; b++) ok(ag_drafter_sequence(&f.d, b, &q[b], &why));
        ck_assert(!q[0].failed && q[1].failed);
        ck_assert_int_eq(q[0].n, 4 + step);
        ck_assert_int_eq(kept[0], 1);
        ck_assert_int_eq(q[1].n, 3 + emitted);
        ck_assert_int_eq(q[1].emitted, step == 0 ? emitted : 0);
        ck_assert_int_eq(kept[1], step == 0 ? emitted : 0);
        ck_assert_int_eq(q[1].steps, emitted); /* as as_decode counts them */
        free(kept);
    }
    close_follower(&f);
}
END_TEST

/* More sequences than the block that assembles has threads, every third of them absent, with
 * trees of 1 to 4 rows. */
START_TEST(many_sequences_are_assembled)
{
    enum { MANY = 600 };
    const batch c = {.V = 8, .sequences = MANY, .o = {.method = AG_CHAIN, .gamma = 3}};
    const ag_room wide = {MANY, 8, 20, 0, 0, 0};
    const int32_t prompt[] = {5, 6};
    follower f = {.c = &c};
    int32_t at = 0;
    ok(ag_drafter_open(&device, &c.o, &wide, &f.d, &why));
    for (int32_t b = 0; b < MANY; b++) {
        const ag_request r = {prompt, 2, 1 + b % 5, NULL, 0, 1, false, 1000 + b};
        if (b % 3) ok(ag_drafter_start(&f.d, b, &r, &why));
    }
    emu_order((uint64_t)_i);
    ok(ag_propose(&f.d, &why));
    open_draft_models(&f);
    ok(ag_chain_feed(&f.d, &f.feed, 0, &why));
    int32_t *fed = fetch_batch(&f, f.feed.kept, 1);
    for (int32_t b = 0; b < MANY; b++) ck_assert_int_eq(fed[b], b % 3 > 0 && b % 5 > 0);
    free(fed);
    ok(ag_assemble(&f.d, &why));
    int32_t *of = fetch_batch(&f, f.d.batch.row_of, 4),
            *parent = fetch_batch(&f, f.d.batch.row_parent, 4);
    int32_t *want = fetch_batch(&f, f.d.batch.want, 4),
            *offset = fetch_batch(&f, f.d.batch.offset, 1);
    for (int32_t b = 0; b < MANY; b++) {
        const int32_t rows = b % 3 == 0 ? 0 : b % 5 < 3 ? 1 + b % 5 : 4;
        ck_assert_int_eq(offset[b], at);
        for (int32_t i = 0; i < rows; i++, at++) {
            ck_assert_int_eq(of[at], 1000 + b);
            ck_assert_int_eq(parent[at], i ? at - 1 : -1);
            ck_assert_int_eq(want[4 * b + i], at);
        }
        for (int32_t k = rows; k < 4; k++)
            ck_assert_int_eq(want[4 * b + k], rows ? at - rows : 0);
    }
    for (; at < 4 * MANY; at++) ck_assert_int_eq(of[at], -1);
    free(of), free(parent), free(want), free(offset);
    close_draft_models(&f);
    ag_drafter_close(&f.d);
}
END_TEST

/* The bound that the header states for what a sequence's pool holds. */
START_TEST(memory)
{
    const ag_room few = {1, 3000, 64, 1, 0, 0}, many = {3, 3000, 64, 1, 0, 0};
    const ag_drafting o = lookahead_of(4, 5, 7);
    ag_drafter a, b;
    ok(ag_drafter_open(&device, &o, &few, &a, &why));
    ok(ag_drafter_open(&device, &o, &many, &b, &why));
    const size_t pool = 4 * 3000 + 4 * (5 * 64) * (1 + 7 * 4);
    ck_assert_uint_ge(ag_drafter_bytes(&a), pool);
    ck_assert_uint_le(ag_drafter_bytes(&a), pool + 4096);
    ck_assert_uint_eq(ag_drafter_bytes(&b), 3 * ag_drafter_bytes(&a));
    ag_drafter_close(&a);
    ag_drafter_close(&b);
}
END_TEST

static void open_device(void)
{
    ok(ag_device_open(&device, 0, &why));
}

static void close_device(void)
{
    ag_device_close(&device);
}

int main(int argc, char **argv)
{
    batches = argc == 2 ? atoi(argv[1]) : scaled(BATCHES);
    if (argc > 2 || batches < 1) return 2;
    TCase *t = tcase_create("draft");
    tcase_add_checked_fixture(t, open_device, close_device);
    tcase_add_loop_test(t, as_the_reference, 0, KINDS);
    tcase_add_test(t, options_are_refused_by_name);
    tcase_add_test(t, requests_are_refused_by_name);
    tcase_add_loop_test(t, a_sequence_fails_alone, 0, 4);
    tcase_add_loop_test(t, many_sequences_are_assembled, 0, 3);
    tcase_add_test(t, memory);
    return suite_main_within("gpu draft", t, 300);
}
