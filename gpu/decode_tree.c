/* decode_tree.c - see decode_tree.h. */
#include "gpu/decode_tree.h"

#include <stdlib.h>
#include <string.h>

/* As in ref/decode.c; the others walk. */
static const as_tree_rule nodes_rule[AS_RULES] = {[AS_RULE_TARGET] = AS_TREE_TARGET,
                                                  [AS_RULE_RECURSIVE] = AS_TREE_RECURSIVE,
                                                  [AS_RULE_SINGLE] = AS_TREE_SINGLE,
                                                  [AS_RULE_KSEQ] = AS_TREE_KSEQ};

bool ag_rule_of_nodes(as_rule rule)
{
    return (unsigned)rule < AS_RULES && nodes_rule[rule] != AS_TREE_GREEDY;
}

/* ---- Memory. ----------------------------------------------------------------------- */

static bool makes_trees(const ag_drafter *d)
{
    return d->method == AG_TREE && d->batch.R > 1;
}

/* The most of a sequence on any level: slots, and rows of the draft model's forward; and all
 * laws. */
typedef struct {
    int64_t slots, share, laws;
} sizes;

static sizes sizes_of(const ag_drafter *d)
{
    sizes s = {0};
    for (int32_t l = 1; makes_trees(d) && l <= d->growth.levels; l++) {
        ag_level level;
        ag_tree_size(d, l, &level);
        if (level.wide > s.slots) s.slots = level.wide;
        if (level.share > s.share) s.share = level.share;
        s.laws = level.laws + (int64_t)d->batch.B * level.wide;
    }
    return s;
}

int64_t ag_tree_model_rows(const ag_drafter *d)
{
    return d->batch.B * sizes_of(d).share;
}

void ag_tree_arrays(ag_tree_decoding *t, ag_array *a)
{
    enum { I = sizeof(int32_t), F = sizeof(float), U = sizeof(uint64_t) };
    const ag_batch *b = &t->drafter->batch;
    const sizes of = sizes_of(t->drafter);
    const size_t B = (size_t)b->B, V = (size_t)b->V, slots = B * (size_t)of.slots,
                 share = B * (size_t)of.share, laws = (size_t)of.laws;
    const bool whole = t->drafter->method == AG_TREE && ag_rule_of_nodes(t->rule);
    const size_t cases = whole ? B : 0, nodes = cases * (size_t)b->R;
    const bool copies = t->drafter->growth.siblings != AS_SIBLINGS_IID;
    ag_level *l = &t->level;
    const ag_array all[AG_TREE_ARRAYS] = {
        {&l->row_token, share, I, "the draft model's rows"},
        {&l->row_parent, share, I, "the draft model's rows"},
        {&l->row_of, share, I, "the draft model's rows"},
        {&l->want, slots, I, "the draft model's wanted rows"},
        {&l->serve, slots, I, "the draft model's served rows"},
        {&l->count, slots, I, "the drafts of a node"},
        {&l->pick, slots, I, "the nodes that get drafts"},
        {&l->uniform, slots, U, "uniforms"},
        {&t->logits, slots * V, F, "the draft model's logits"},
        {&t->q, laws * V, F, "the drafts' laws"},
        {&t->left, copies ? slots * V : 0, F, "what is left of the drafts' laws"},
        {&t->state, laws, I, "their states"},
        {&t->drawn, slots, I, "drawn tokens"},
        {&t->argmax_state, slots, I, "states"},
        {&t->q_total, whole ? laws : 0, U, "the laws' totals"},
        {&t->p_total, nodes, U, "the rows' totals"},
        {&t->without, nodes, I, "how siblings were drawn"},
        {&t->verified, cases, I, "rules"},
        {&t->work, t->rule == AS_RULE_RECURSIVE ? 2 * cases * V : 0, U, "residuals"},
        {&t->fault, cases, sizeof *t->fault, "faults"}};
    memcpy(a, all, sizeof all);
}

/* The same for every node and every request, for good. */
static as_status fill_words(const ag_device *d, int32_t *at, size_t n, int32_t value,
                            as_error *e)
{
    int32_t *words = malloc((n + 1) * sizeof *words);
    if (!words) return as_fail(e, AS_NO_MEMORY, "no memory for %zu nodes", n);
    for (size_t i = 0; i < n; i++) words[i] = value;
    const as_status s = ag_upload(d, at, words, n * sizeof *words, e);
    free(words);
    return s;
}

as_status ag_tree_ready(ag_tree_decoding *t, as_error *e)
{
    const ag_batch *b = &t->drafter->batch;
    const size_t B = (size_t)b->B;
    t->level.number = t->number;
    t->level.broken = t->broken;
    t->level.drawn = t->drawn;
    if (!ag_rule_of_nodes(t->rule)) return AS_OK;
    const as_status s = fill_words(t->device, t->verified, B, nodes_rule[t->rule], e);
    if (s != AS_OK || t->drafter->growth.siblings != AS_SIBLINGS_WITHOUT) return s;
    return fill_words(t->device, t->without, B * (size_t)b->R, 1, e);
}

/* ---- A step. ----------------------------------------------------------------------- */

/* The laws of a level; its rows have been listed. */
static as_status serve_level(const ag_tree_decoding *t, const ag_level *l,
                             const ag_tree_bounds *b, float *q, int32_t *state, as_error *e)
{
    const ag_batch *batch = &t->drafter->batch;
    const int32_t slots = batch->B * l->wide, V = batch->V;
    const ag_step step = {.rows = batch->B * l->share,
                          .token = l->row_token,
                          .parent = l->row_parent,
                          .sequence = l->row_of,
                          .positions = b->positions,
                          .sequences = b->alive,
                          .wants = slots,
                          .want = l->want,
                          .logits = t->logits};
    as_status s = ag_llama_step(t->draft, &step, e);
    if (s == AS_OK)
        s = ag_serve(t->device, t->logits, l->serve, slots, V, &t->sampling, q, state,
                     b->scratch, e);
    if (s != AS_OK || !t->q_total) return s;
    return ag_totals(t->device, q, NULL, l->serve, slots, V, t->q_total + l->laws, e);
}

/* TDR-02: the children of a level, those of a rank at a time. */
static as_status draw_level(const ag_tree_decoding *t, const ag_level *l,
                            const ag_tree_bounds *b, as_error *e)
{
    const ag_growth *g = &t->drafter->growth;
    const int32_t slots = t->drafter->batch.B * l->wide, V = t->drafter->batch.V,
                  most = g->most[l->level];
    const float *from = g->siblings == AS_SIBLINGS_IID ? l->q : l->left;
    as_status s = ag_tree_open(t->drafter, l, e);
    for (int32_t k = 0; k <= most && s == AS_OK; k++) {
        s = ag_tree_child(t->drafter, l, k, e);
        if (s != AS_OK || k == most) break;
        s = g->siblings == AS_SIBLINGS_TOP
                ? ag_argmax(t->device, from, l->pick, slots, V, t->drawn, t->argmax_state,
                            b->scratch, e)
                : ag_draw(t->device, from, NULL, l->pick, slots, V, l->uniform, NULL, AS_DRAFT,
                          t->drawn, b->scratch, e);
    }
    return s;
}

static ag_paths paths_of(const ag_tree_decoding *t, int32_t most)
{
    const ag_drafter *d = t->drafter;
    return (ag_paths){d->batch.B, most, t->number, d->growth.kept, d->growth.path};
}

as_status ag_tree_grow(const ag_tree_decoding *t, const ag_tree_bounds *b, as_error *e)
{
    const ag_paths root = paths_of(t, 2);
    as_status s = AS_OK;
    for (int32_t i = 1; makes_trees(t->drafter) && i <= t->drafter->growth.levels && s == AS_OK;
         i++) {
        ag_level size, l = t->level;
        ag_tree_size(t->drafter, i, &size);
        l.level = i, l.wide = size.wide, l.share = size.share, l.laws = size.laws;
        float *q = t->q + (size_t)l.laws * (size_t)t->drafter->batch.V;
        int32_t *state = t->state + l.laws;
        l.q = q, l.left = t->left, l.state = state;
        s = ag_tree_rows(t->drafter, &l, e);
        if (s == AS_OK) s = serve_level(t, &l, b, q, state, e);
        if (s == AS_OK && i == 1) s = ag_llama_commit(t->draft, &root, e);
        if (s == AS_OK) s = draw_level(t, &l, b, e);
    }
    return s;
}

as_status ag_tree_verify(const ag_tree_decoding *t, const float *p, const ag_glue *g,
                         as_error *e)
{
    const ag_batch *b = &t->drafter->batch;
    const ag_trees trees = {.n = b->B,
                            .capacity = b->R,
                            .V = b->V,
                            .p = p,
                            .q = t->q,
                            .p_state = g->state,
                            .q_state = t->state,
                            .p_total = t->p_total,
                            .q_total = t->q_total,
                            .rule = t->verified,
                            .nodes = g->nodes,
                            .token = g->node,
                            .parent = b->parent,
                            .p_row = g->serve,
                            .q_row = t->drafter->growth.law,
                            .without = t->without,
                            .seeds = {.seed = b->seed, .position = b->position},
                            .work = t->work,
                            .out = g->run,
                            .path = g->path + 1, /* behind the root, which is 0 */
                            .length = g->length,
                            .fault = t->fault};
    as_status s = ag_totals(t->device, p, NULL, g->serve, b->B * b->wants, b->V, t->p_total, e);
    if (s == AS_OK) {
        ag_glue_nodes(g);
        s = ag_launched("glue_nodes", e);
    }
    return s == AS_OK ? ag_verify_trees(t->device, &trees, e) : s;
}

as_status ag_tree_follow(const ag_tree_decoding *t, as_error *e)
{
    const ag_paths paths = paths_of(t, t->drafter->growth.levels + 1);
    return makes_trees(t->drafter) ? ag_llama_commit(t->draft, &paths, e) : AS_OK;
}
