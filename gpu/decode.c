/* decode.c - see decode.h. A step is a row of launches that follows ref/decode.c line by line:
 * propose, forward, verify, observe, commit. What the host decides, it decides between steps:
 * which requests run, in which sequences, and whether a step is launched, recorded or replayed.
 */
#include "gpu/decode.h"

#include <stdlib.h>
#include <string.h>
#include "gpu/decode_tree.h"
#include "gpu/verify/verify.h"

enum { MOST_TREE = 3072 /* rows that a walk takes */, MOST_SHARED = 1024 /* rows */ };

/* Steps with as many sequences alive, and the same bound of positions. */
typedef struct {
    ag_graph *graph; /* or NULL */
    bool met;        /* one has been launched */
} kind;

struct ag_decoder {
    ag_device device;
    ag_decoding o;
    ag_drafter drafter;
    ag_glue glue;
    ag_scratch scratch;
    int32_t drafts;       /* of a draft model, at most; 0: it is not asked */
    float *logits, *p;    /* [places][V]; p: not for the greedy rule */
    int32_t *row;         /* [B][R] of the chain rule: the place of each position's row */
    float *draft_logits;  /* [B][V] */
    float *q;             /* [drafts][B][V] for the chain rule, else [B][V] */
    int32_t *q_state;     /* [R][B] likewise */
    int32_t *ask_state;   /* [places] of rows whose argmax is asked for */
    int32_t *drawn;       /* [B] */
    int32_t *feed_number; /* [B] of the sequences in the draft model */
    ag_feed feed;
    ag_tree_decoding tree; /* of AG_TREE */
    ag_fault *fault;       /* [B] */
    /* On the host. */
    int32_t *number, *draft_number; /* [B] of the sequences in the models; -1: not open */
    ag_sequence *seen;              /* [B] */
    ag_generation **running;        /* [B] NULL: the sequence is idle */
    int32_t alive;                  /* of these, as the host knows */
    int32_t doubled;                /* all rows stand below position 64 * 2^doubled */
    int32_t bounds;                 /* such numbers, from 0 on */
    kind *kinds;                    /* [bounds][B] those with b + 1 alive */
    ag_graphs graphs;
};

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static bool samples(const ag_decoder *d)
{
    return d->o.rule != AS_RULE_GREEDY;
}

static bool is_chain(const ag_decoder *d)
{
    return d->o.rule == AS_RULE_CHAIN;
}

static bool is_tree(const ag_decoder *d)
{
    return d->o.drafting.method == AG_TREE;
}

/* The least `doubled` for rows of a request of so many tokens: its tree stands behind them, in
 * models that have no positions beyond theirs. */
static int32_t doubled_for(const ag_decoder *d, int64_t tokens)
{
    const as_lm *target = d->o.target, *draft = d->o.draft;
    int64_t bound = tokens + d->drafter.batch.R;
    int32_t most = target->positions, n = 0;
    if (draft && draft->positions > most) most = draft->positions;
    if (bound > most) bound = most;
    while ((int64_t)AS_POSITIONS << n < bound) n++;
    return n;
}

/* ---- Opening. ---------------------------------------------------------------------- */

static as_status check_draft_model(const ag_decoding *o, as_error *e)
{
    const bool tree = o->drafting.method == AG_TREE;
    if (o->drafting.method != AG_CHAIN && !tree) return AS_OK;
    if (!o->draft)
        return as_fail(e, AS_BAD_INPUT, "decode: a %s of a draft model, and there is none",
                       tree ? "tree" : "chain");
    const as_status s = as_check_sampling(&o->draft_sampling, e);
    if (s != AS_OK) return s;
    if (o->draft->V != o->target->V)
        return as_fail(e, AS_BAD_INPUT,
                       "decode: the drafter's vocabulary is %d, the target's %d",
                       (int)o->draft->V, (int)o->target->V);
    return AS_OK;
}

static as_status check_options(const ag_decoding *o, as_error *e)
{
    as_status s = ag_drafting_check(&o->drafting, o->target->V, o->rule, e);
    if (s == AS_OK) s = as_check_sampling(&o->sampling, e);
    if (s == AS_OK) s = check_draft_model(o, e);
    if (s == AS_OK && o->stride < 1)
        s = as_fail(e, AS_BAD_INPUT, "decode: a stride of %d steps; it must be at least 1",
                    (int)o->stride);
    return s;
}

/* Rows of a step of all sequences, in either model. */
static as_status check_rows(const ag_decoder *d, as_error *e)
{
    const ag_batch *b = &d->drafter.batch;
    const int64_t rows = (int64_t)b->B * b->R;
    if (rows > d->o.target->rows)
        return as_fail(e, AS_LIMIT,
                       "decode: %d sequences of %d rows; the model takes %d rows a forward",
                       (int)b->B, (int)b->R, (int)d->o.target->rows);
    const int64_t drafting = is_tree(d) ? ag_tree_model_rows(&d->drafter) : 2 * (int64_t)b->B;
    if (d->drafts > 0 && drafting > d->o.draft->rows)
        return as_fail(
            e, AS_LIMIT,
            "decode: %d sequences of %d rows; the draft model takes %d rows a forward",
            (int)b->B, (int)(drafting / b->B), (int)d->o.draft->rows);
    if (ag_rule_of_nodes(d->o.rule) && b->R > AG_TREE_CAPACITY)
        return as_fail(e, AS_LIMIT, "decode: trees of %d rows; the rule %s takes %d", (int)b->R,
                       as_rule_name(d->o.rule), AG_TREE_CAPACITY);
    if (!is_chain(d) && b->R > MOST_TREE)
        return as_fail(e, AS_LIMIT, "decode: trees of %d rows; a walk takes %d", (int)b->R,
                       MOST_TREE);
    return AS_OK;
}

enum { OWN = 34, ARRAYS = OWN + AG_TREE_ARRAYS };

/* Every array of a decoder. */
static void list_arrays(ag_decoder *d, ag_array *a /* [ARRAYS] */)
{
    enum { I = sizeof(int32_t), F = sizeof(float) };
    ag_glue *g = &d->glue;
    ag_feed *f = &d->feed;
    const size_t B = (size_t)d->o.sequences, R = (size_t)g->batch.R, V = (size_t)g->batch.V;
    const size_t H = (size_t)g->batch.H, places = B * (size_t)g->batch.wants;
    const size_t chain = is_chain(d) ? 1 : 0, drafts = (size_t)d->drafts;
    const size_t models = drafts > 0 ? B : 0, feeds = is_tree(d) ? 0 : models;
    const size_t laws = feeds * (chain ? drafts : 1);
    const size_t nodes = ag_rule_of_nodes(d->o.rule) ? B : 0;
    const ag_array all[OWN] = {{&g->want, places, I, "wanted rows"},
                               {&g->serve, places, I, "served rows"},
                               {&g->ask, places, I, "the drafter's questions"},
                               {&g->state, places, I, "the rows' states"},
                               {&g->answer, places, I, "answers"},
                               {&g->draft, chain * B * R, I, "drafts"},
                               {&g->drafts, B, I, "drafts"},
                               {&g->broken, B, I, "faults"},
                               {&g->nodes, nodes, I, "the trees' nodes"},
                               {&g->node, nodes * R, I, "the trees' nodes"},
                               {&g->run, B * R, I, "runs"},
                               {&g->path, B * R, I, "paths"},
                               {&g->length, B, I, "lengths"},
                               {&g->accepted, B, I, "accepted rows"},
                               {&g->lengths, B * H, I, "the log of steps"},
                               {&g->accepts, B * H, I, "the log of steps"},
                               {&g->piece, 4 * AG_PIECE + 1, I, "a piece of a prompt"},
                               {&d->fault, B, sizeof *d->fault, "faults"},
                               {&d->logits, places * V, F, "logits"},
                               {&d->p, samples(d) ? places * V : 0, F, "served rows"},
                               {&d->row, chain * B * R, I, "places"},
                               {&d->ask_state, places, I, "states"},
                               {&d->draft_logits, feeds * V, F, "the draft model's logits"},
                               {&d->q, laws * V, F, "the drafts' laws"},
                               {&d->q_state, feeds * R, I, "their states"},
                               {&d->drawn, feeds, I, "drawn tokens"},
                               {&d->feed_number, models, I, "the draft model's sequences"},
                               {&f->row_token, 2 * feeds, I, "the draft model's rows"},
                               {&f->row_parent, 2 * feeds, I, "the draft model's rows"},
                               {&f->row_of, 2 * feeds, I, "the draft model's rows"},
                               {&f->want, feeds, I, "the draft model's wanted rows"},
                               {&f->uniform, feeds, sizeof *f->uniform, "uniforms"},
                               {&f->kept, feeds, I, "the draft model's paths"},
                               {&f->path, 2 * feeds, I, "the draft model's paths"}};
    memcpy(a, all, sizeof all);
    ag_tree_arrays(&d->tree, a + OWN);
}

/* One array, all zeros; none of no entries. */
static as_status make(const ag_decoder *d, const ag_array *a, as_error *e)
{
    const size_t bytes = a->count * a->size;
    void *at = NULL;
    if (bytes == 0) return AS_OK;
    as_status s = ag_alloc(&d->device, &at, bytes, a->what, e);
    if (s != AS_OK) return s;
    memcpy(a->at, &at, sizeof at);
    return ag_fill(&d->device, at, 0, bytes, e);
}

static as_status allocate(ag_decoder *d, as_error *e)
{
    ag_array all[ARRAYS];
    const ag_batch *b = &d->drafter.batch;
    const int64_t places = (int64_t)b->B * b->wants;
    list_arrays(d, all);
    as_status s = AS_OK;
    for (int i = 0; i < ARRAYS && s == AS_OK; i++) s = make(d, &all[i], e);
    if (s != AS_OK) return s;
    return ag_scratch_reserve(&d->device, places < MOST_SHARED ? (int32_t)places : MOST_SHARED,
                              &d->scratch, e);
}

static as_status allocate_host(ag_decoder *d, as_error *e)
{
    const size_t B = (size_t)d->o.sequences;
    d->number = malloc(B * sizeof *d->number);
    d->draft_number = malloc(B * sizeof *d->draft_number);
    for (size_t b = 0; d->number && d->draft_number && b < B; b++)
        d->number[b] = d->draft_number[b] = -1;
    d->seen = malloc(B * sizeof *d->seen);
    d->running = calloc(B, sizeof *d->running);
    d->bounds = doubled_for(d, d->o.longest) + 1;
    d->kinds = calloc((size_t)d->bounds * B, sizeof *d->kinds);
    if (!d->number || !d->draft_number || !d->seen || !d->running || !d->kinds)
        return as_fail(e, AS_NO_MEMORY, "no memory for %zu sequences", B);
    return AS_OK;
}

/* Sequences in both models, and what the draft model is fed with. */
static as_status open_sequences(ag_decoder *d, as_error *e)
{
    const int32_t B = d->o.sequences;
    as_status s = AS_OK;
    for (int32_t b = 0; b < B && s == AS_OK; b++) s = as_lm_open(d->o.target, &d->number[b], e);
    if (d->drafts == 0) return s;
    for (int32_t b = 0; b < B && s == AS_OK; b++)
        s = as_lm_open(d->o.draft, &d->draft_number[b], e);
    d->feed.number = d->feed_number;
    d->feed.drawn = d->drawn;
    d->feed.length = ag_llama_lengths(d->o.draft);
    if (s != AS_OK) return s;
    return ag_upload(&d->device, d->feed_number, d->draft_number,
                     (size_t)B * sizeof *d->draft_number, e);
}

/* The place of each row of a chain (decode.h). */
static as_status place_chain(ag_decoder *d, as_error *e)
{
    const int32_t B = d->o.sequences, R = d->drafter.batch.R;
    if (!is_chain(d)) return AS_OK;
    int32_t *row = malloc((size_t)B * (size_t)R * sizeof *row);
    if (!row) return as_fail(e, AS_NO_MEMORY, "no memory for %d chains", (int)B);
    for (int32_t i = 0; i < B * R; i++) row[i] = i % R * B + i / R;
    const as_status s =
        ag_upload(&d->device, d->row, row, (size_t)B * (size_t)R * sizeof *row, e);
    free(row);
    return s;
}

static as_status build(ag_decoder *d, as_error *e)
{
    const ag_decoding *o = &d->o;
    const ag_room room = {.sequences = o->sequences,
                          .V = o->target->V,
                          .longest = o->longest,
                          .eoses = o->eoses,
                          .positions = o->target->positions,
                          .rows = o->rows};
    as_status s = check_options(o, e);
    if (s == AS_OK) s = ag_drafter_open(&d->device, &o->drafting, &room, &d->drafter, e);
    if (s != AS_OK) return s;
    d->drafts = o->drafting.method == AG_CHAIN || is_tree(d) ? d->drafter.batch.R - 1 : 0;
    d->glue = (ag_glue){.device = &d->device, .batch = d->drafter.batch, .chain = is_chain(d)};
    s = check_rows(d, e);
    if (s == AS_OK) s = allocate_host(d, e);
    if (s == AS_OK) s = allocate(d, e);
    if (s == AS_OK) s = open_sequences(d, e);
    d->tree.number = d->feed_number;
    d->tree.broken = d->glue.broken;
    if (s == AS_OK && is_tree(d)) s = ag_tree_ready(&d->tree, e);
    return s == AS_OK ? place_chain(d, e) : s;
}

as_status ag_decoder_open(const ag_device *device, const ag_decoding *o, ag_decoder **decoder,
                          as_error *e)
{
    *decoder = NULL;
    ag_decoder *d = calloc(1, sizeof *d);
    if (!d) return as_fail(e, AS_NO_MEMORY, "no memory for a decoder");
    d->device = *device;
    d->o = *o;
    d->tree = (ag_tree_decoding){.device = &d->device,
                                 .drafter = &d->drafter,
                                 .draft = o->draft,
                                 .sampling = o->draft_sampling,
                                 .rule = o->rule};
    const as_status s = build(d, e);
    if (s == AS_OK)
        *decoder = d;
    else
        ag_decoder_close(d);
    return s;
}

static void free_arrays(ag_decoder *d)
{
    ag_array all[ARRAYS];
    list_arrays(d, all);
    for (int i = 0; i < ARRAYS; i++) {
        void *at;
        memcpy(&at, all[i].at, sizeof at);
        ag_free(at);
    }
    ag_scratch_free(&d->scratch);
}

static void free_graphs(ag_decoder *d)
{
    const int64_t kinds = (int64_t)d->bounds * d->o.sequences;
    for (int64_t i = 0; d->kinds && i < kinds; i++) ag_graph_free(d->kinds[i].graph);
    free(d->kinds);
}

void ag_decoder_close(ag_decoder *d)
{
    if (!d) return;
    free_graphs(d);
    for (int32_t b = 0; d->number && d->draft_number && b < d->o.sequences; b++) {
        if (d->number[b] >= 0) as_lm_close(d->o.target, d->number[b]);
        if (d->draft_number[b] >= 0) as_lm_close(d->o.draft, d->draft_number[b]);
    }
    free_arrays(d);
    if (d->drafter.device) ag_drafter_close(&d->drafter);
    free(d->number);
    free(d->draft_number);
    free(d->seen);
    free(d->running);
    free(d);
}

/* ---- A step. ----------------------------------------------------------------------- */

/* All rows of a step in this model stand below it. */
static int32_t positions_of(const ag_decoder *d, const as_lm *lm)
{
    const int64_t bound = (int64_t)AS_POSITIONS << d->doubled;
    return bound < lm->positions ? (int32_t)bound : lm->positions;
}

/* From the tokens that draft model's caches lack to draft i of every chain. */
static as_status draw_draft(const ag_decoder *d, int32_t i, as_error *e)
{
    const int32_t B = d->o.sequences, V = d->o.draft->V;
    const size_t law = is_chain(d) ? (size_t)i * (size_t)B : 0;
    float *q = d->q + law * (size_t)V;
    int32_t *state = d->q_state + law;
    const ag_step step = {.rows = 2 * B,
                          .token = d->feed.row_token,
                          .parent = d->feed.row_parent,
                          .sequence = d->feed.row_of,
                          .positions = positions_of(d, d->o.draft),
                          .sequences = d->alive,
                          .wants = B,
                          .want = d->feed.want,
                          .logits = d->draft_logits};
    const ag_paths paths = {B, 2, d->feed.number, d->feed.kept, d->feed.path};
    as_status s = ag_llama_step(d->o.draft, &step, e);
    if (s == AS_OK)
        s = ag_serve(&d->device, d->draft_logits, NULL, B, V, &d->o.draft_sampling, q, state,
                     &d->scratch, e);
    if (s == AS_OK)
        s = ag_draw(&d->device, q, NULL, NULL, B, V, d->feed.uniform, NULL, AS_DRAFT, d->drawn,
                    &d->scratch, e);
    if (s != AS_OK) return s;
    ag_glue_drawn(&d->glue, &d->feed, state, d->drawn, i);
    s = ag_launched("glue_drawn", e);
    return s == AS_OK ? ag_llama_commit(d->o.draft, &paths, e) : s;
}

static as_status propose(const ag_decoder *d, as_error *e)
{
    as_status s = ag_propose(&d->drafter, e);
    if (is_tree(d)) {
        const ag_tree_bounds b = {d->alive, d->drafts > 0 ? positions_of(d, d->o.draft) : 0,
                                  &d->scratch};
        return s == AS_OK ? ag_tree_grow(&d->tree, &b, e) : s;
    }
    for (int32_t i = 0; d->drafts > 0 && i <= d->drafts && s == AS_OK; i++) {
        s = ag_chain_feed(&d->drafter, &d->feed, i, e);
        if (s == AS_OK && i < d->drafts) s = draw_draft(d, i, e);
    }
    return s;
}

/* The logits of all trees, and, for a rule that samples, what they serve. Rows of sequences
 * that are over are not counted. */
static as_status forward(const ag_decoder *d, as_error *e)
{
    const ag_batch *b = &d->drafter.batch;
    const int32_t places = b->B * b->wants;
    const ag_step step = {.rows = d->alive * b->R,
                          .token = b->row_token,
                          .parent = b->row_parent,
                          .sequence = b->row_of,
                          .positions = positions_of(d, d->o.target),
                          .sequences = d->alive,
                          .wants = places,
                          .want = d->glue.want,
                          .logits = d->logits};
    as_status s = ag_assemble(&d->drafter, e);
    if (s != AS_OK) return s;
    ag_glue_slots(&d->glue);
    s = ag_launched("glue_slots", e);
    if (s == AS_OK) s = ag_llama_step(d->o.target, &step, e);
    if (s != AS_OK || !samples(d)) return s;
    return ag_serve(&d->device, d->logits, d->glue.serve, places, b->V, &d->o.sampling, d->p,
                    d->glue.state, &d->scratch, e);
}

static as_status verify_chains(const ag_decoder *d, const ag_seeds *seeds, as_error *e)
{
    const ag_batch *b = &d->drafter.batch;
    const ag_glue *g = &d->glue;
    const ag_chains c = {.n = b->B,
                         .gamma = b->R - 1,
                         .V = b->V,
                         .p = d->p,
                         .q = d->q,
                         .p_state = g->state,
                         .q_state = d->q_state,
                         .state = d->row,
                         .len = g->drafts,
                         .draft = g->draft,
                         .seeds = *seeds,
                         .out = g->run,
                         .out_len = g->length,
                         .fault = d->fault};
    return ag_verify(&d->device, AS_RULE_CHAIN, &c, &d->scratch, e);
}

static as_status walk_trees(const ag_decoder *d, const ag_seeds *seeds, as_error *e)
{
    const ag_batch *b = &d->drafter.batch;
    const ag_glue *g = &d->glue;
    const ag_walks w = {.n = b->B,
                        .V = b->V,
                        .capacity = b->R,
                        .wants = b->wants,
                        .tree = b->tree,
                        .token = b->token,
                        .parent = b->parent,
                        .row = samples(d) ? d->p : d->logits,
                        .row_state = samples(d) ? g->state : NULL,
                        .seeds = *seeds,
                        .run = g->run,
                        .path = g->path,
                        .length = g->length,
                        .accepted = g->accepted,
                        .fault = d->fault};
    return ag_walk(&d->device, d->o.rule, &w, &d->scratch, e);
}

static as_status verify(const ag_decoder *d, as_error *e)
{
    const ag_seeds seeds = {.seed = d->drafter.batch.seed,
                            .position = d->drafter.batch.position};
    const as_status s = is_chain(d)     ? verify_chains(d, &seeds, e)
                        : d->glue.nodes ? ag_tree_verify(&d->tree, d->p, &d->glue, e)
                                        : walk_trees(d, &seeds, e);
    if (s != AS_OK) return s;
    ag_glue_verdict(&d->glue);
    return ag_launched("glue_verdict", e);
}

/* Whether the drafter's answers are drawn, by every sequence of this decoder (step.h). */
static bool draws_answers(const ag_decoder *d)
{
    return d->o.drafting.method == AG_LOOKAHEAD && d->o.drafting.lookahead.sampled &&
           samples(d) && d->o.sampling.temperature > 0.0f;
}

static as_status answer(const ag_decoder *d, as_error *e)
{
    const ag_batch *b = &d->drafter.batch;
    const ag_glue *g = &d->glue;
    const int32_t places = b->B * b->wants;
    if (d->o.drafting.method != AG_JACOBI && d->o.drafting.method != AG_LOOKAHEAD) return AS_OK;
    ag_glue_asks(g);
    const as_status s = ag_launched("glue_asks", e);
    if (s != AS_OK) return s;
    if (!draws_answers(d))
        return ag_argmax(&d->device, d->logits, g->ask, places, b->V, g->answer, d->ask_state,
                         &d->scratch, e);
    return ag_draw(&d->device, d->p, NULL, g->ask, places, b->V, b->uniform, NULL, AS_WINDOW,
                   g->answer, &d->scratch, e);
}

/* What a graph has: all arguments but d->alive and d->doubled are the same in every step. */
static as_status launch_step(const ag_decoder *d, as_error *e)
{
    const ag_batch *b = &d->drafter.batch;
    const ag_glue *g = &d->glue;
    const ag_answers answers = {g->run, g->path, g->length, g->accepted, g->answer};
    const ag_paths paths = {b->B, b->R, b->number, b->kept, b->path};
    as_status s = propose(d, e);
    if (s == AS_OK) s = forward(d, e);
    if (s == AS_OK) s = verify(d, e);
    if (s == AS_OK) s = answer(d, e);
    if (s == AS_OK) s = ag_observe(&d->drafter, &answers, e);
    if (s == AS_OK && is_tree(d)) s = ag_tree_follow(&d->tree, e);
    return s == AS_OK ? ag_llama_commit(d->o.target, &paths, e) : s;
}

static as_status launch_recorded(void *decoder, as_error *e)
{
    return launch_step(decoder, e);
}

/* What cannot be recorded can still be launched: it is no error, but why is kept. */
static void record_step(ag_decoder *d, kind *k)
{
    if (ag_record(&d->device, launch_recorded, d, &k->graph, &d->graphs.why) == AS_OK)
        d->graphs.recorded++;
    else
        d->graphs.refused = true;
}

static as_status step(ag_decoder *d, as_error *e)
{
    kind *k = &d->kinds[d->doubled * d->o.sequences + d->alive - 1];
    if (k->met && !k->graph && !d->o.launched && !d->graphs.refused) record_step(d, k);
    k->met = true;
    if (k->graph) {
        d->graphs.replayed++;
        return ag_replay(&d->device, k->graph, e);
    }
    d->graphs.launched++;
    return launch_step(d, e);
}

ag_graphs ag_decoder_graphs(const ag_decoder *d)
{
    return d->graphs;
}

/* ---- Requests. --------------------------------------------------------------------- */

/* An empty cache for sequence b, with pages for so many positions, and in it the prompt without
 * its last token, which is the first root. `device_number` is where the device has `number`. */
static as_status prefill(const ag_decoder *d, as_lm *lm, int32_t b, int32_t number,
                         const int32_t *device_number, int32_t tokens, int32_t positions,
                         as_error *e)
{
    int32_t *piece = d->glue.piece;
    const int32_t most = least(AG_PIECE, lm->rows);
    as_status s = as_lm_truncate(lm, number, 0, e);
    if (s == AS_OK) s = ag_llama_reserve(lm, number, positions, e);
    for (int32_t at = 0; at < tokens && s == AS_OK; at += most) {
        const int32_t n = least(tokens - at, most);
        const ag_step step = {.rows = n,
                              .token = piece,
                              .parent = piece + AG_PIECE,
                              .sequence = piece + 2 * AG_PIECE,
                              .positions = at + n,
                              .sequences = 1};
        const ag_paths path = {1, n, device_number, piece + 4 * AG_PIECE, piece + 3 * AG_PIECE};
        ag_glue_prompt(&d->glue, b, number, at, n);
        s = ag_launched("glue_prompt", e);
        if (s == AS_OK) s = ag_llama_step(lm, &step, e);
        if (s == AS_OK) s = ag_llama_commit(lm, &path, e);
    }
    return s;
}

/* A budget of n tokens commits all but the last to the target; the draft model, which is not
 * asked for a single token, holds one less. */
static as_status fill_caches(const ag_decoder *d, int32_t b, const ag_generation *g,
                             as_error *e)
{
    const int32_t tokens = g->prompts + g->budget;
    const as_status s = prefill(d, d->o.target, b, d->number[b], d->drafter.batch.number + b,
                                g->prompts - 1, tokens - 1, e);
    if (s != AS_OK || d->drafts == 0 || g->budget < 2) return s;
    return prefill(d, d->o.draft, b, d->draft_number[b], d->feed_number + b, g->prompts - 1,
                   tokens - 2, e);
}

static as_status begin(ag_decoder *d, int32_t b, ag_generation *g)
{
    const ag_request r = {.prompt = g->prompt,
                          .prompts = g->prompts,
                          .budget = g->budget,
                          .eos = g->eos,
                          .eoses = g->eoses,
                          .seed = g->seed,
                          .warm = samples(d) && d->o.sampling.temperature > 0.0f,
                          .number = d->number[b]};
    as_status s = ag_drafter_start(&d->drafter, b, &r, &g->error);
    if (s != AS_OK || g->budget == 0) return s;
    s = fill_caches(d, b, g, &g->error);
    if (s != AS_OK) {
        ag_drafter_stop(&d->drafter, b, NULL);
        return s;
    }
    const int32_t doubled = doubled_for(d, (int64_t)g->prompts + g->budget);
    if (doubled > d->doubled) d->doubled = doubled;
    d->running[b] = g;
    d->alive++;
    return AS_OK;
}

/* The next requests take the places of those that are over. One that cannot begin says so, and
 * is over; AS_DEVICE and AS_NO_MEMORY are everybody's. */
static as_status admit(ag_decoder *d, ag_generation *g, int32_t n, int32_t *next, as_error *e)
{
    for (int32_t b = 0; b < d->o.sequences; b++)
        while (!d->running[b] && *next < n) {
            ag_generation *one = &g[(*next)++];
            one->status = begin(d, b, one);
            if (one->status == AS_DEVICE || one->status == AS_NO_MEMORY)
                return as_fail(e, one->status, "%s", one->error.text);
        }
    return AS_OK;
}

/* Why a sequence has failed. */
static as_status blame(const ag_decoder *d, int32_t b, as_error *why)
{
    int32_t broken;
    const as_status s =
        ag_download(&d->device, &broken, d->glue.broken + b, sizeof broken, why);
    if (s != AS_OK) return s;
    return as_fail(why, AS_BAD_INPUT,
                   "logits: the %s gave a NaN, a +infinity or masked every token; mend the "
                   "model that gave this row",
                   broken ? "draft model" : "target");
}

/* What became of a request that is over; one that failed has the tokens before. */
static as_status finish(ag_decoder *d, int32_t b, as_error *e)
{
    ag_generation *g = d->running[b];
    const ag_sequence *q = &d->seen[b];
    const size_t H = (size_t)d->drafter.batch.H, bytes = (size_t)q->steps * sizeof(int32_t);
    g->result =
        (as_result){q->n - q->prompts, q->steps, q->drafted, q->accepted, q->ended != 0};
    as_status s = ag_drafter_tokens(&d->drafter, b, q->prompts, g->result.tokens, g->out, e);
    if (s == AS_OK && g->length)
        s = ag_download(&d->device, g->length, d->glue.lengths + (size_t)b * H, bytes, e);
    if (s == AS_OK && g->accepted)
        s = ag_download(&d->device, g->accepted, d->glue.accepts + (size_t)b * H, bytes, e);
    if (s != AS_OK) return s;
    g->status = q->failed ? blame(d, b, &g->error) : AS_OK;
    d->running[b] = NULL;
    d->alive--;
    return AS_OK;
}

/* The one place where the host waits. */
static as_status look(ag_decoder *d, as_error *e)
{
    as_status s = ag_download(&d->device, d->seen, d->drafter.batch.sequence,
                              (size_t)d->o.sequences * sizeof *d->seen, e);
    for (int32_t b = 0; b < d->o.sequences && s == AS_OK; b++) {
        const ag_sequence *q = &d->seen[b];
        if (d->running[b] && (q->left == 0 || q->ended || q->failed)) s = finish(d, b, e);
    }
    return s;
}

/* The device has failed: so have all that are not over. */
static void abandon(ag_decoder *d, ag_generation *g, int32_t n, int32_t next, as_status s,
                    const as_error *why)
{
    for (int32_t b = 0; b < d->o.sequences; b++) {
        if (!d->running[b]) continue;
        d->running[b]->status = as_fail(&d->running[b]->error, s, "%s", why->text);
        d->running[b] = NULL;
        ag_drafter_stop(&d->drafter, b, NULL);
    }
    d->alive = 0;
    for (; next < n; next++) g[next].status = as_fail(&g[next].error, s, "%s", why->text);
}

as_status ag_decode(ag_decoder *d, ag_generation *g, int32_t n, as_error *e)
{
    int32_t next = 0;
    as_error why;
    as_status s = AS_OK;
    for (int32_t i = 0; i < n; i++) g[i].result = (as_result){0};
    d->doubled = 0;
    while (s == AS_OK) {
        s = admit(d, g, n, &next, &why);
        if (s != AS_OK || d->alive == 0) break;
        for (int32_t i = 0; i < d->o.stride && s == AS_OK; i++) s = step(d, &why);
        if (s == AS_OK) s = look(d, &why);
    }
    if (s == AS_OK) return s;
    abandon(d, g, n, next, s, &why);
    return as_fail(e, s, "%s", why.text);
}
