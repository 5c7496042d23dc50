/* tree_law.c - tree.law: the suite makes trees of drafts, the IUT verifies them, until k = depth + 2 tokens are out;
 * their joint law is the target's. Claims decide of which rules and siblings. A case's name says how siblings are drawn
 * (LAW-07). It says `any` of a rule that is lossless for any tree (LAW-06). Those trees are fixed, most of their drafts
 * the likeliest; where fixed ones are not claimed, siblings are drawn as claimed, and the result says how. BLOCK's
 * chains have no siblings, and their names no word for them. Rules that are not lossless have neutral parameters
 * (TRV-10). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/draw.h"
#include "conformance/checks/law/law.h"
#include "conformance/checks/tree/trees.h"

typedef struct {
    int32_t rule, drawn;
    const char *shape;
    int32_t V;
    double acceptance;
} cell;

typedef enum { AS_MADE, SHUFFLED, BEHIND_64, BEHIND_128 } order; /* of nodes; a case's kind */

static const cell smoke[] = {
    {IUT_TREE_RECURSIVE, IUT_DRAWN_IID, "2-2", 8, 0.5},   {IUT_TREE_RECURSIVE, IUT_DRAWN_IID, "6", 8, 0.5},
    {IUT_TREE_RECURSIVE, IUT_DRAWN_IID, "8", 16, 0.4},    {IUT_TREE_RECURSIVE, IUT_DRAWN_WITHOUT, "3-1", 8, 0.3},
    {IUT_TREE_RECURSIVE, IUT_DRAWN_WITHOUT, "4", 8, 0.5}, {IUT_TREE_RECURSIVE, IUT_DRAWN_MIXED, "3", 8, 0.3},
    {IUT_TREE_RECURSIVE, IUT_DRAWN_IID, "8-2", 8, 0.7},   {IUT_TREE_RECURSIVE, IUT_DRAWN_IID, "6-2", 16, 0.7},
    {IUT_TREE_ONEHOT, IUT_DRAWN_FIXED, "6-2", 8, 0.5},
    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "4-2", 8, 0.5},    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "6", 16, 0.5},
    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "3-2", 8, 0.5},    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "2-1", 4, 0.5},
    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "2", 3, 0.5},      {IUT_TREE_ONEHOT, IUT_DRAWN_FIXED, "3-2", 8, 0.5},
    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "3", 4, 0.5},      {IUT_TREE_ONEHOT, IUT_DRAWN_FIXED, "3", 4, 0.5},
    {IUT_TREE_ONEHOT, IUT_DRAWN_FIXED, "2", 3, 0.5},
    {IUT_TREE_MATCH, IUT_DRAWN_FIXED, "2-2", 8, 0.5},     {IUT_TREE_KSEQ, IUT_DRAWN_IID, "3-2", 4, 0.3},
    {IUT_TREE_KSEQ, IUT_DRAWN_IID, "2", 3, 0.5},          {IUT_TREE_KSEQ, IUT_DRAWN_IID, "4", 4, 0.5},
    {IUT_TREE_KSEQ, IUT_DRAWN_IID, "3-2", 16, 0.3},       {IUT_TREE_KSEQ, IUT_DRAWN_IID, "4-2", 8, 0.3},
    {IUT_TREE_SINGLE, IUT_DRAWN_IID, "2-2", 8, 0.7},      {IUT_TREE_SINGLE, IUT_DRAWN_IID, "3", 3, 0.7},
    {IUT_TREE_BLOCK, IUT_DRAWN_IID, "1-1-1", 8, 0.7},     {IUT_TREE_BLOCK, IUT_DRAWN_IID, "1-1", 4, 0.5},
    {IUT_TREE_OTHER, IUT_DRAWN_IID, "2-2", 8, 0.5},
};

static const cell full[] = {
    {IUT_TREE_RECURSIVE, IUT_DRAWN_IID, "4-3-2", 3, 0.3},     {IUT_TREE_RECURSIVE, IUT_DRAWN_IID, "6", 64, 0.3},
    {IUT_TREE_RECURSIVE, IUT_DRAWN_WITHOUT, "4-2", 64, 0.5},  {IUT_TREE_RECURSIVE, IUT_DRAWN_WITHOUT, "2-2-2", 3, 0.3},
    {IUT_TREE_RECURSIVE, IUT_DRAWN_MIXED, "3-2", 64, 0.5},    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "8-2-1", 64, 0.5},
    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "2-2-2-2", 3, 0.5},    {IUT_TREE_ONEHOT, IUT_DRAWN_FIXED, "8-2-1", 64, 0.5},
    {IUT_TREE_MATCH, IUT_DRAWN_FIXED, "4-2-1", 64, 0.5},      {IUT_TREE_KSEQ, IUT_DRAWN_IID, "6-2", 64, 0.3},
    {IUT_TREE_KSEQ, IUT_DRAWN_IID, "2-2-2", 3, 0.5},          {IUT_TREE_SINGLE, IUT_DRAWN_MIXED, "3-2", 3, 0.7},
    {IUT_TREE_BLOCK, IUT_DRAWN_IID, "1-1-1-1-1-1", 3, 0.7},   {IUT_TREE_BLOCK, IUT_DRAWN_IID, "1-1-1-1", 64, 0.7},
    {IUT_TREE_RECURSIVE, IUT_DRAWN_IID, "12", 1024, 0.3},
};

/* Rules under claims that are rarer, and those that are not lossless at neutral parameters (TRV-10). */
static const cell others[] = {
    {IUT_TREE_RECURSIVE, IUT_DRAWN_FIXED, "3", 4, 0.5},   {IUT_TREE_RECURSIVE, IUT_DRAWN_FIXED, "3-2", 8, 0.5},
    {IUT_TREE_OTHER, IUT_DRAWN_FIXED, "3", 4, 0.5},       {IUT_TREE_OTHER, IUT_DRAWN_FIXED, "3-2", 8, 0.5},
    {IUT_TREE_OTHER, IUT_DRAWN_WITHOUT, "3-2", 8, 0.5},   {IUT_TREE_OTHER, IUT_DRAWN_MIXED, "3-2", 8, 0.5},
    {IUT_TREE_KSEQ, IUT_DRAWN_FIXED, "3-2", 8, 0.5},      {IUT_TREE_SINGLE, IUT_DRAWN_FIXED, "3-2", 8, 0.5},
    {IUT_TREE_SINGLE, IUT_DRAWN_MIXED, "3", 4, 0.7},      {IUT_TREE_BLOCK, IUT_DRAWN_FIXED, "1-1", 8, 0.5},
    {IUT_TREE_LENIENT, IUT_DRAWN_IID, "3", 4, 0.5},       {IUT_TREE_LENIENT, IUT_DRAWN_WITHOUT, "3-1", 8, 0.3},
    {IUT_TREE_LENIENT, IUT_DRAWN_MIXED, "3", 8, 0.3},     {IUT_TREE_TYPICAL, IUT_DRAWN_FIXED, "3", 4, 0.5},
    {IUT_TREE_TYPICAL, IUT_DRAWN_FIXED, "3-2", 8, 0.5},   {IUT_TREE_CONSTANT, IUT_DRAWN_FIXED, "3", 4, 0.5},
    {IUT_TREE_CONSTANT, IUT_DRAWN_FIXED, "3-2", 8, 0.5},  {IUT_TREE_LENIENT, IUT_DRAWN_FIXED, "3-2", 8, 0.5},
};

enum { SMOKE = sizeof smoke / sizeof *smoke, OTHERS = sizeof others / sizeof *others };

/* For rules that take any tree: siblings in a random order, where repeats of a token may stand apart. */
static const cell shuffled[] = {
    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "6", 8, 0.5},
    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "8", 16, 0.5},
    {IUT_TREE_ONEHOT, IUT_DRAWN_FIXED, "4-2", 8, 0.5},
};

/* Behind placeholders: the nodes gone to are 64 and above, 128 and above. */
static const cell late[] = {
    {IUT_TREE_TARGET, IUT_DRAWN_FIXED, "3-1", 4, 0.5},
    {IUT_TREE_RECURSIVE, IUT_DRAWN_IID, "3-1", 4, 0.5},
};

/* The bit of a rule, or of how siblings were drawn. */
static int32_t bit_of(int32_t flag)
{
    int32_t bit = 0;
    while (1 << bit != flag) bit++;
    return bit;
}

/* How the siblings of a case are called; they are those of siblings_of(). */
static const char *siblings_name(int32_t rule, int32_t drawn)
{
    static const char *const name[TREE_DRAWN] = {"-any", "-iid", "-without", "-mixed"};
    return rule == IUT_TREE_BLOCK && drawn != IUT_DRAWN_FIXED ? "" : name[bit_of(drawn)];
}

/* Placeholders that stand first among the root's children. */
static int32_t placeholders(order kind)
{
    return kind == BEHIND_64 ? 63 : kind == BEHIND_128 ? 127 : 0;
}

static void shape_of(tree_shape *s, const char *text, order kind)
{
    const int32_t pad = placeholders(kind);
    tree_shape_of(s, text);
    for (int32_t k = s->nodes - 1; k > 0 && pad > 0; k--)
        s->level[k + pad] = s->level[k], s->parent[k + pad] = s->parent[k] > 0 ? s->parent[k] + pad : 0;
    for (int32_t k = 1; k <= pad; k++) s->level[k] = 1, s->parent[k] = 0;
    s->nodes += pad;
}

static void set_case(check_case *c, const cell *e, order kind, int64_t n)
{
    tree_shape s;
    shape_of(&s, e->shape, kind);
    c->tree.V = e->V, c->tree.gamma = s.depth, c->tree.rule = e->rule, c->tree.drawn = e->drawn;
    c->tree.acceptance = e->acceptance, c->tree.kind = kind;
    snprintf(c->tree.shape, sizeof c->tree.shape, "%s", e->shape);
    c->n = n;
    c->cost = 4 * cost_of_rows(c->n, e->V) * s.nodes;
    c->tables = law_tables(s.depth + 2);
    c->statistical = true;
}

/* Where siblings are many and rows wide, a stream costs as much as thousands of others. At smoke the least
 * vocabularies, where a fault shows soonest, get more streams than the others. Each has one of `share`. */
static void plan_cells(check_plan *p, check_level level, const cell *cells, size_t count, order kind, int64_t share)
{
    enum { WIDE_V = 256, SHARE = 4, SMALL_V = 4, FEW = 7000 };
    static const int64_t samples[] = {12000, 60000, 10000000};
    static const char *const suffix[] = {"", "-shuffled", "-behind-64", "-behind-128"};
    for (size_t i = 0; i < count; i++) {
        const cell *e = &cells[i];
        const int64_t n = (level == LEVEL_SMOKE && e->V > SMALL_V ? FEW : samples[level]) / share;
        set_case(plan_case(p, &check_tree_law, "%s%s-%s-V%d%s", tree_rule_name[bit_of(e->rule)],
                           siblings_name(e->rule, e->drawn), e->shape, e->V, suffix[kind]),
                 e, kind, e->V > WIDE_V ? n / SHARE : n);
    }
}

static void plan(check_plan *p, check_level level)
{
    enum { SHARE_OF_OTHERS = 4, SHARE_OF_LATE = 20, LATE = sizeof late / sizeof *late };
    plan_cells(p, level, smoke, SMOKE, AS_MADE, 1);
    plan_cells(p, level, shuffled, sizeof shuffled / sizeof *shuffled, SHUFFLED, 1);
    plan_cells(p, level, others, OTHERS, AS_MADE, SHARE_OF_OTHERS);
    for (order kind = BEHIND_64; kind <= BEHIND_128; kind++) plan_cells(p, level, late, LATE, kind, SHARE_OF_LATE);
    if (level > LEVEL_SMOKE) plan_cells(p, level, full, sizeof full / sizeof *full, AS_MADE, 1);
}

/* The siblings for which LAW-07 binds a rule. Whether OTHER takes those of another rule is not said. */
static int32_t drawings_of(const iut_claims *m, int32_t rule)
{
    const bool beside = rule == IUT_TREE_OTHER && m->tree_rules != IUT_TREE_OTHER;
    return rule == IUT_TREE_KSEQ || beside ? IUT_DRAWN_IID
           : rule == IUT_TREE_SINGLE ? IUT_DRAWN_IID | IUT_DRAWN_MIXED
                                     : IUT_DRAWN_IID | IUT_DRAWN_WITHOUT | IUT_DRAWN_MIXED;
}

/* The law is the target's for such trees: LAW-06, LAW-07, and TRV-10 at neutral parameters. */
static bool is_lossless(const iut_claims *m, int32_t rule, int32_t drawn)
{
    const int32_t any = m->lossless_any | IUT_TREE_TYPICAL | IUT_TREE_CONSTANT,
                  averaged = m->lossless_drawn | IUT_TREE_LENIENT;
    return (any & rule) || ((averaged & rule) && (drawings_of(m, rule) & drawn));
}

/* GREEDY is bound at temperature 0 alone. */
static bool is_bound(const iut_claims *m, int32_t rule, int32_t drawn)
{
    return rule != IUT_TREE_GREEDY && (m->tree_rules & rule) && (m->tree_drawn & drawn) && is_lossless(m, rule, drawn);
}

static const cell *cell_at(size_t i)
{
    return i < SMOKE ? &smoke[i] : &others[i - SMOKE];
}

/* The siblings of a cell: its own. One for any tree, and one of chains, has the first that are claimed where no cell of
 * the rule has claimed ones. 0: it is not asked. */
static int32_t siblings_of(const iut_claims *m, int32_t rule, int32_t drawn)
{
    bool other = drawn != IUT_DRAWN_FIXED && rule != IUT_TREE_BLOCK;
    if (is_bound(m, rule, drawn)) return drawn;
    for (size_t i = 0; i < SMOKE + OTHERS; i++)
        other |= cell_at(i)->rule == rule && is_bound(m, rule, cell_at(i)->drawn);
    for (int32_t i = 0; !other && i < TREE_DRAWN; i++)
        if (is_bound(m, rule, 1 << i)) return 1 << i;
    return 0;
}

/* One that is asked; any, if none is. */
static const cell *some_cell(check_draw *d)
{
    enum { TRIES = 100 };
    const iut_claims *m = client_claims(d->iut);
    const cell *e = &smoke[probe_below(&d->rng, SMOKE)];
    for (int32_t t = 0; t < TRIES && !siblings_of(m, e->rule, e->drawn); t++)
        e = cell_at((size_t)probe_below(&d->rng, SMOKE + OTHERS));
    return e;
}

/* Trees of any width and depth, at any V (VER-11). */
static void draw(check_plan *p, check_draw *d)
{
    enum { WIDEST_V = 300 };
    static const int32_t count[] = {2, 8, 40}, wide[] = {2, 3, 5, 9, 17, 33};
    static const int64_t samples[] = {4000, 20000, 400000};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const cell *like = some_cell(d);
        char shape[16];
        const int32_t first = wide[draw_place(d, DRAW_FIRST, 6)], levels = 1 + probe_below(&d->rng, 3);
        if (like->rule == IUT_TREE_BLOCK)
            snprintf(shape, sizeof shape, "%.*s", 2 * (levels + 1) + 1, "1-1-1-1-1");
        else
            snprintf(shape, sizeof shape, "%d%.*s", (int)first, 2 * (levels - 1),
                     probe_below(&d->rng, 2) ? "-2-1" : "-1-2");
        const cell e = {like->rule, like->drawn, shape, draw_vocab(d, WIDEST_V), 0.3 + 0.2 * probe_below(&d->rng, 3)};
        set_case(draw_case(p, d, &check_tree_law, "%s%s-%s-V%d", tree_rule_name[bit_of(e.rule)],
                           siblings_name(e.rule, e.drawn), e.shape, (int)e.V),
                 &e, AS_MADE, samples[d->level]);
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    const int32_t drawn = siblings_of(m, c->tree.rule, c->tree.drawn);
    tree_shape s;
    shape_of(&s, c->tree.shape, (order)c->tree.kind);
    if (!trees_claimed(tested, c->tree.rule, drawn ? drawn : c->tree.drawn, &s, why, size)) return false;
    if (!drawn || (c->tree.kind == SHUFFLED && !(m->lossless_any & c->tree.rule)))
        snprintf(why, size, "the rule is declared not lossless for such trees");
    else if (m->max_vocab > 0 && c->tree.V > m->max_vocab)
        snprintf(why, size, "max_vocab is %d", (int)m->max_vocab);
    else
        return true;
    return false;
}

/* ---- Streams of steps with trees. ------------------------------------------------------ */

typedef struct {
    trees t;
    tree_shape shape, root;
    int32_t rule, drawn, pad; /* pad: placeholders that stand first */
    bool shuffled;
    law_alias p;
    int32_t *who; /* [FOREST] stream of a request */
} forest;

/* Has an earlier sibling the token? A node's children stand side by side. */
static bool is_among(const trees *t, int32_t first, int32_t parent, int32_t token, int32_t end)
{
    for (int32_t i = end - 1; i > first && t->parent[i] == parent; i--)
        if (t->token[i] == token) return true;
    return false;
}

/* Has q a token that no sibling has? */
static bool any_is_left(const law_sampler *s, const trees *t, int32_t first, int32_t parent, int32_t end, int32_t row)
{
    const double *q = panel_q(s->a, row);
    for (int32_t x = 0; x < s->a->view.V; x++)
        if (q[x] > 0 && !is_among(t, first, parent, x, end)) return true;
    return false;
}

/* The likeliest token under q that no earlier sibling has; the first child of the tree when all are siblings. */
static int32_t best_of(const law_sampler *s, const trees *t, int32_t first, int32_t at, int32_t row)
{
    const double *q = panel_q(s->a, row);
    int32_t best = -1;
    for (int32_t x = 0; x < s->a->view.V; x++)
        if ((best < 0 || q[x] > q[best]) && !is_among(t, first, t->parent[at], x, at)) best = x;
    return best < 0 ? t->token[first + 1] : best;
}

/* The token of a node. Fixed trees mostly have the likeliest drafts, as EAGLE-2's and Medusa's do; at times a token from
 * anywhere, or a sibling's again, more often where others may stand between. */
static int32_t token_of(law_sampler *s, const forest *f, int32_t first, int32_t at, int32_t row)
{
    const trees *t = &f->t;
    const int32_t parent = t->parent[at], V = s->a->view.V;
    if (f->drawn == IUT_DRAWN_FIXED) {
        const uint64_t kind = law_word(&s->g) % 8;
        if (kind < (f->shuffled ? 4 : 2) && at > first + 1 && t->parent[at - 1] == parent) return t->token[at - 1];
        return kind < 3 ? (int32_t)(law_word(&s->g) % (uint64_t)V) : best_of(s, t, first, at, row);
    }
    int32_t token = law_alias_draw(&s->q, row, &s->g);
    if (f->drawn != IUT_DRAWN_WITHOUT) return token;
    if (!any_is_left(s, t, first, parent, at, row)) return -1;
    while (is_among(t, first, parent, token, at)) token = law_alias_draw(&s->q, row, &s->g);
    return token;
}

/* Swaps node `at`, the last so far, with one of its siblings or with itself. A node's children stand side by side. */
static void shuffle_in(law_sampler *s, trees *t, int32_t first, int32_t at)
{
    int32_t siblings = 1;
    while (at - siblings > first && t->parent[at - siblings] == t->parent[at]) siblings++;
    const int32_t other = at - (int32_t)(law_word(&s->g) % (uint64_t)siblings), token = t->token[at],
                  state = t->state[at];
    t->token[at] = t->token[other], t->state[at] = t->state[other];
    t->token[other] = token, t->state[other] = state;
}

static void fill(law_sampler *s, forest *f, int32_t first, int32_t start)
{
    trees *t = &f->t;
    const int32_t S = s->a->view.S;
    t->state[first] = start;
    for (int32_t k = 1 + f->pad; k < f->shape.nodes; k++) {
        const int32_t at = first + k, above = first + t->parent[at];
        if (t->token[above] < 0 && above != first) continue; /* below a placeholder */
        const int32_t state = t->state[above],
                      row = f->drawn == IUT_DRAWN_MIXED ? (int32_t)(law_word(&s->g) % (uint64_t)S) : state;
        t->token[at] = token_of(s, f, first, at, row);
        if (t->token[at] < 0) continue;
        t->q_state[at] = row;
        t->state[at] = panel_next(s->a, state, t->token[at]);
        if (f->shuffled) shuffle_in(s, t, first, at);
    }
    for (int32_t k = 0; k < t->node_count[t->n - 1]; k++) {
        t->u[first + k] = law_unit(&s->g, s->bits);
        t->bonus[first + k] = t->given ? law_alias_draw(&f->p, t->state[first + k], &s->g) : 0;
    }
    t->last[2 * (t->n - 1)] = law_unit(&s->g, s->bits);
    t->last[2 * (t->n - 1) + 1] = law_unit(&s->g, s->bits);
}

/* As verify_round() of law_sampler.c: a call has one stream position, and seeded uniforms keep their places. */
static bool tree_round(law_sampler *s, int32_t n, int32_t position, int32_t *tokens, check_result *r)
{
    forest *f = s->own;
    trees *t = &f->t;
    const bool seeded = client_claims(s->x->iut)->uniforms == IUT_UNIFORMS_SEEDED;
    trees_clear(t);
    for (int32_t i = 0; i < n; i++) {
        const bool turn = law_have(s, i) == position;
        if (!turn && !seeded) continue;
        f->who[t->n] = i;
        const int32_t first = trees_add(t, turn ? &f->shape : &f->root, f->rule, f->drawn);
        if (turn) fill(s, f, first, law_at(s, i));
    }
    if (t->n == 0) return true;
    if (!trees_ask(t, s->x, s->a->view.V, s->seed, (uint64_t)position, r)) return false;
    for (int32_t j = 0; j < t->n; j++) {
        const int32_t i = f->who[j];
        if (law_have(s, i) != position) continue;
        for (int32_t k = 0; k < t->out_len[j] && law_have(s, i) < s->k; k++)
            if (!law_append(s, i, t->out[j * (t->depth + 1) + k], tokens, r)) return false;
    }
    return true;
}

/* Streams of a call: about as many nodes as fit into a frame at ease. */
static int32_t chunk_of(const check_case *c)
{
    return c->tree.V > 1024 ? LAW_CHUNK / 4 : LAW_CHUNK;
}

/* Those that stand for the ones of the case. */
static void say_siblings(const forest *f, check_result *r)
{
    const size_t used = strlen(r->detail);
    snprintf(r->detail + used, sizeof r->detail - used, "; siblings %s", tree_drawn_name[bit_of(f->drawn)]);
}

static void judge(const check_case *c, const check_context *x, const panel *a, check_result *r)
{
    law_sampler s = {0};
    forest f = {.rule = c->tree.rule,
                .drawn = siblings_of(client_claims(x->iut), c->tree.rule, c->tree.drawn),
                .pad = placeholders((order)c->tree.kind),
                .shuffled = c->tree.kind == SHUFFLED};
    const int32_t n = chunk_of(c);
    shape_of(&f.shape, c->tree.shape, (order)c->tree.kind);
    tree_shape_of(&f.root, "0");
    f.who = malloc((size_t)n * sizeof *f.who);
    bool ok = trees_open(&f.t, x, n, n * f.shape.nodes, f.shape.depth, r) && f.who &&
              law_alias_init(&f.p, a->p64, a->view.S, a->view.V);
    if (!ok) result_set(r, STATE_ERROR, "the suite is short of memory");
    if (ok && law_sampler_open(&s, c, x, a, LAW_TREE, f.shape.depth + 2, r)) {
        s.round = tree_round, s.own = &f;
        law_judge(&s, c, r);
        if (f.drawn != c->tree.drawn) say_siblings(&f, r);
    }
    law_sampler_close(&s);
    law_alias_free(&f.p);
    trees_close(&f.t);
    free(f.who);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    char why[200];
    const panel_form form = {.V = c->tree.V, .acceptance = c->tree.acceptance, .seed = check_seed(x, c, 0)};
    panel *a = panel_make(&form, why, sizeof why);
    if (a)
        judge(c, x, a, r);
    else
        result_set(r, STATE_ERROR, "%s", why);
    panel_free(a);
}

const check check_tree_law = {
    .name = "tree.law",
    .clauses = "LAW-06 LAW-07 LAW-05 TRV-10 TRV-01 TRV-02 TRV-03 TRV-05 RNG-07 LAY-04 STAT-01 STAT-02 STAT-03 STAT-04",
    .summary = "verified trees: the first depth+2 tokens have the target's joint law",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
