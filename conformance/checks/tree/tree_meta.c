/* tree_meta.c - tree.meta: two requests that differ in what must not matter have one answer (LAY-05).
 *
 * order: siblings in another order, with all below them, under MATCH and GREEDY. refused: other nodes below children
 * that were not gone to, and other rows, parameters and uniforms behind them (TRV-06). absent: other placeholders, and
 * other nodes below them (TRV-04). Rules whose law alone is the same in any order of siblings are asked by tree.law.
 *
 * Answers are held against answers alone. So an arithmetic that no tolerance is known for is asked too, and so is,
 * under GREEDY, an implementation with uniforms of its own. */
#include <stdio.h>
#include <string.h>

#include "conformance/checks/frame/coins.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/checks/tree/asked.h"

enum { ORDER, REFUSED, ABSENT, KINDS };
static const char *const kind_name[] = {"order", "refused", "absent"};
static const char *const otherwise[] = {"with its siblings in another order (MAT-03, GRD-04)",
                                        "with other nodes below those refused (TRV-06)",
                                        "with other placeholders (TRV-04)"};
enum { CHOOSING = IUT_TREE_MATCH | IUT_TREE_GREEDY, PATHS = IUT_TREE_BLOCK | IUT_TREE_TYPICAL };

/* ---- Cases. ---------------------------------------------------------------------------- */

/* A rule, or 0: all that the kind is for, in one call. */
typedef struct {
    int32_t kind, rule, V;
    probe_shape rows;
} cell;

static const cell cells[] = {
    {ORDER, IUT_TREE_MATCH, 8, PROBE_DENSE},       {ORDER, IUT_TREE_GREEDY, 8, PROBE_DENSE},
    {ORDER, IUT_TREE_MATCH, 65, PROBE_PEAKED},     {ORDER, IUT_TREE_GREEDY, 65, PROBE_PEAKED},
    {REFUSED, IUT_TREE_RECURSIVE, 8, PROBE_DENSE}, {REFUSED, IUT_TREE_TARGET, 8, PROBE_DENSE},
    {REFUSED, IUT_TREE_KSEQ, 8, PROBE_DENSE},      {REFUSED, IUT_TREE_GREEDY, 8, PROBE_DENSE},
    {REFUSED, 0, 8, PROBE_MASKED},                 {REFUSED, 0, 65, PROBE_DENSE},
    {ABSENT, IUT_TREE_KSEQ, 8, PROBE_DENSE},       {ABSENT, IUT_TREE_RECURSIVE, 8, PROBE_DENSE},
    {ABSENT, 0, 8, PROBE_DENSE},                   {ABSENT, 0, 65, PROBE_PEAKED},
};

static int32_t bit_of(int32_t rule)
{
    int32_t bit = 0;
    while (1 << bit != rule) bit++;
    return bit;
}

static const char *name_of(int32_t rule)
{
    return rule ? tree_rule_name[bit_of(rule)] : "any";
}

static void plan(check_plan *p, check_level level)
{
    static const int64_t n[] = {400, 4000, 40000};
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        const cell *e = &cells[i];
        check_case *c = plan_case(p, &check_tree_meta, "%s-%s-V%d", kind_name[e->kind], name_of(e->rule), (int)e->V);
        c->tree.V = e->V, c->tree.gamma = ASKED_DEPTH, c->tree.rule = e->rule, c->tree.rows = (int32_t)e->rows;
        c->tree.kind = e->kind;
        c->n = n[level];
        c->cost = 20 * cost_of_rows(c->n, e->V);
    }
}

/* Trees of any size, at any V (VER-11). */
static void draw(check_plan *p, check_draw *d)
{
    enum { DEEPEST = 33, WIDEST_V = 1 << 14 };
    static const int32_t count[] = {3, 12, 60}, nodes[] = {17, 65, 300, TREE_NODES}, children[] = {3, 9, 33, 129};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t kind = i % KINDS;
        char name[40];
        snprintf(name, sizeof name, "%s-any", kind_name[kind]);
        check_case *c = draw_rows(p, d, &check_tree_meta, name, WIDEST_V, DEEPEST, 200);
        c->tree.kind = kind, c->tree.rows = PROBE_DENSE;
        c->cost = 20 * cost_of_rows(c->n, c->tree.V);
        c->tree.nodes = nodes[draw_place(d, DRAW_FIRST, 4)], c->tree.children = children[draw_place(d, DRAW_SECOND, 4)];
    }
}

/* Does the same request, asked again, have the same answer under every rule? GREEDY takes no uniforms. */
static bool is_determined(const iut_claims *m)
{
    return m->uniforms == IUT_UNIFORMS_SUPPLIED ||
           (m->uniforms == IUT_UNIFORMS_SEEDED && m->arithmetic == IUT_ARITH_CANONICAL); /* RNG-09 */
}

/* The rules that a case asks. */
static int32_t rules_of(const check_case *c, const client *tested)
{
    const iut_claims *m = client_claims(tested);
    int32_t rules = m->tree_rules & (IUT_TREE_OTHER - 1);
    if (c->tree.kind == ORDER) rules &= CHOOSING;
    if (c->tree.kind == REFUSED) rules &= ~PATHS;
    if (c->tree.rule) rules &= c->tree.rule;
    return is_determined(m) ? rules : rules & IUT_TREE_GREEDY;
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    if (!check_offers(tested, OP_VERIFY_TREE, why, size)) return false;
    if (coins_too_large(m, m->tree_coins, c->tree.V, why, size)) return false;
    if (!m->tree_drawn || !m->uniforms)
        snprintf(why, size, "tree_drawn or uniforms are not declared");
    else if (!rules_of(c, tested))
        snprintf(why, size, "tree_rules has none whose answers are determined there");
    else if (m->max_vocab > 0 && c->tree.V > m->max_vocab)
        snprintf(why, size, "max_vocab is %d", (int)m->max_vocab);
    else
        return true;
    return false;
}

/* ---- The other request. ---------------------------------------------------------------- */

/* Its list, and what is wanted of it. */
typedef struct {
    const trees *t; /* the requests that were answered */
    int32_t i, first, n;
    bool loose[TREE_NODES];  /* of t: what is below the node is no matter */
    int32_t to[TREE_NODES];  /* of t: where it stands now; -1: it is left out */
    tree_shape s;
    int32_t from[TREE_NODES]; /* of s: the node of t; -1: it is new */
} twin;

static int32_t put(twin *w, int32_t parent, int32_t from)
{
    const int32_t k = w->s.nodes++;
    w->s.parent[k] = parent;
    w->s.level[k] = parent < 0 ? 0 : w->s.level[parent] + 1;
    w->from[k] = from;
    return k;
}

static void begin(twin *w, const trees *t, int32_t i)
{
    w->t = t, w->i = i, w->first = t->first[i], w->n = t->node_count[i];
    w->s = (tree_shape){0};
    memset(w->loose, 0, sizeof w->loose);
    for (int32_t k = 0; k < w->n; k++) w->to[k] = -1;
}

/* May the node stand next? Parents stand first, and equal siblings in their old order. */
static bool may_stand(const twin *w, int32_t k)
{
    const int32_t *parent = w->t->parent + w->first, *token = w->t->token + w->first;
    if (w->to[k] >= 0 || w->to[parent[k]] < 0) return false;
    for (int32_t j = 1; j < k && token[k] >= 0; j++)
        if (parent[j] == parent[k] && token[j] == token[k] && w->to[j] < 0) return false;
    return true;
}

static void reorder(twin *w, uint64_t *rng)
{
    w->to[0] = put(w, -1, 0);
    while (w->s.nodes < w->n) {
        int32_t k = 1 + probe_below(rng, w->n - 1);
        while (!may_stand(w, k)) k = 1 + k % (w->n - 1);
        w->to[k] = put(w, w->to[w->t->parent[w->first + k]], k);
    }
}

/* A node whose path has the tokens of the answer may have been gone to, whichever node was named (TRV-03). */
static void find_loose(twin *w, bool refused_too)
{
    const trees *t = w->t;
    const int32_t accepted = t->out_len[w->i] - 1, *out = t->out + w->i * (t->depth + 1);
    int32_t level[TREE_NODES] = {0};
    bool reached[TREE_NODES] = {true};
    for (int32_t k = 1; k < w->n; k++) {
        const int32_t parent = t->parent[w->first + k], token = t->token[w->first + k];
        level[k] = level[parent] + 1;
        reached[k] = reached[parent] && token >= 0 && level[k] <= accepted && out[level[k] - 1] == token;
        w->loose[k] = token < 0 || (refused_too && !reached[k]);
    }
}

static bool is_loose(const twin *w, int32_t k)
{
    return w->from[k] < 0 || w->loose[w->from[k]];
}

static int32_t children_of(const twin *w, int32_t k)
{
    int32_t n = 0;
    for (int32_t i = k + 1; i < w->s.nodes; i++) n += w->s.parent[i] == k && w->from[i] < 0;
    for (int32_t i = 1; i < w->n && !is_loose(w, k); i++) n += w->t->parent[w->first + i] == w->from[k];
    return n;
}

/* A new node somewhere: a placeholder, or below a loose one. */
static void grow(twin *w, const iut_claims *m, uint64_t *rng)
{
    const int32_t above = probe_below(rng, w->s.nodes), depth = w->t->depth;
    if (w->s.level[above] >= (m->max_gamma > 0 && m->max_gamma < depth ? m->max_gamma : depth)) return;
    if (m->max_children > 0 && children_of(w, above) >= m->max_children) return;
    if (is_loose(w, above) || probe_below(rng, 4) == 0) put(w, above, -1);
}

/* Loose nodes lose what is below them, half of the placeholders are left out, and others grow. */
static void regrow(twin *w, const iut_claims *m, uint64_t *rng)
{
    const int32_t most = m->max_nodes > 0 && m->max_nodes < TREE_NODES ? m->max_nodes : TREE_NODES,
                  room = most - w->n < 24 ? most - w->n : 24;
    int32_t grown = 0;
    for (int32_t k = 0; k < w->n; k++) {
        const int32_t parent = w->t->parent[w->first + k];
        if (k > 0 && (w->to[parent] < 0 || w->loose[parent])) continue;
        if (k > 0 && w->t->token[w->first + k] < 0 && probe_below(rng, 2)) continue;
        w->to[k] = put(w, k > 0 ? w->to[parent] : -1, k);
        for (; grown < room && probe_below(rng, 3); grown++) grow(w, m, rng);
    }
}

static bool is_other(const twin *w)
{
    bool other = w->s.nodes != w->n;
    for (int32_t k = 0; k < w->n && !other; k++) other = w->from[k] != k || w->loose[k];
    return other;
}

/* ---- Its nodes. ------------------------------------------------------------------------ */

static void copy(trees *to, int32_t at, const trees *t, int32_t from)
{
    to->token[at] = t->token[from], to->state[at] = t->state[from], to->q_state[at] = t->q_state[from];
    to->drawn[at] = t->drawn[from], to->bonus[at] = t->bonus[from], to->u[at] = t->u[from];
    memcpy(to->parameter + 2 * at, t->parameter + 2 * from, 2 * sizeof *to->parameter);
}

/* Of a loose node, all but what its own test takes. Nodes of one path keep one row. */
static void copy_loose(trees *to, int32_t at, const trees *t, int32_t from, int32_t shift, const probe *m,
                       uint64_t *rng)
{
    const bool choice = to->rule[to->n - 1] & (IUT_TREE_TARGET | IUT_TREE_MATCH), absent = t->token[from] < 0;
    to->token[at] = t->token[from];
    to->state[at] = (t->state[from] + shift) % m->S;
    to->q_state[at] = absent ? probe_below(rng, m->S + 1) - 1 : t->q_state[from];
    to->u[at] = choice || absent ? probe_u24(rng) : t->u[from];
    to->bonus[at] = probe_below(rng, m->V);
}

/* Below a node that is not loose it is a placeholder. */
static void make(trees *to, int32_t at, int32_t above, bool absent, const probe *m, const client *tested, uint64_t *rng)
{
    if (!to->drawn[above]) to->drawn[above] = asked_drawing(tested, rng);
    const bool one_row = to->drawn[above] == IUT_DRAWN_IID || to->drawn[above] == IUT_DRAWN_WITHOUT;
    const int32_t row = one_row ? to->state[above] : probe_below(rng, m->S);
    absent |= probe_below(rng, 8) == 0;
    to->token[at] = absent ? -1 : probe_draw(m->cum_q + (int64_t)row * m->V, m->V, rng);
    to->state[at] = probe_below(rng, m->S);
    to->q_state[at] = absent ? -1 : row;
    to->u[at] = probe_u24(rng);
    to->bonus[at] = probe_below(rng, m->V);
}

static bool has_children(const twin *w, int32_t k)
{
    for (int32_t i = k + 1; i < w->s.nodes; i++)
        if (w->s.parent[i] == k) return true;
    return false;
}

static void add(trees *to, const twin *w, const probe *m, const client *tested, uint64_t *rng)
{
    const trees *t = w->t;
    const int32_t first = trees_add(to, &w->s, t->rule[w->i], 0), shift = 1 + probe_below(rng, m->S - 1);
    memcpy(to->last + 2 * w->i, t->last + 2 * w->i, 2 * sizeof *to->last);
    for (int32_t k = 0; k < w->s.nodes; k++) {
        const int32_t from = w->from[k], above = k > 0 ? w->s.parent[k] : 0;
        if (from < 0)
            make(to, first + k, first + above, !is_loose(w, above), m, tested, rng);
        else if (w->loose[from])
            copy_loose(to, first + k, t, w->first + from, shift, m, rng);
        else
            copy(to, first + k, t, w->first + from);
    }
    for (int32_t k = 0; k < w->s.nodes; k++)
        if (!has_children(w, k)) to->drawn[first + k] = 0;
}

/* ---- Calls. ---------------------------------------------------------------------------- */

static void add_twin(trees *to, twin *w, const trees *t, int32_t kind, const probe *m, const client *tested,
                     uint64_t *rng)
{
    begin(w, t, to->n);
    if (kind == ORDER) {
        reorder(w, rng);
    } else {
        find_loose(w, kind == REFUSED);
        regrow(w, client_claims(tested), rng);
    }
    add(to, w, m, tested, rng);
}

static void fail(const trees *t, const trees *other, int32_t i, int32_t kind, check_result *r)
{
    const int32_t width = t->depth + 1;
    char text[800] = "";
    replay_list(text, sizeof text, "tokens", t->token + t->first[i], t->node_count[i]);
    replay_list(text, sizeof text, " parents", t->parent + t->first[i], t->node_count[i]);
    replay_list(text, sizeof text, " give", t->out + i * width, t->out_len[i]);
    replay_list(text, sizeof text, "; otherwise tokens", other->token + other->first[i], other->node_count[i]);
    replay_list(text, sizeof text, " parents", other->parent + other->first[i], other->node_count[i]);
    replay_list(text, sizeof text, " give", other->out + i * width, other->out_len[i]);
    result_set(r, STATE_FAIL, "request %d, rule %s, answers otherwise %s: %s", (int)i, name_of(t->rule[i]),
               otherwise[kind], text);
}

static bool is_same(const trees *t, const trees *other, int32_t i)
{
    const int32_t *was = t->out + i * (t->depth + 1), *is = other->out + i * (t->depth + 1);
    return t->out_len[i] == other->out_len[i] && !memcmp(was, is, (size_t)t->out_len[i] * sizeof *was);
}

static int32_t some_rule(int32_t rules, const client *tested, uint64_t *rng)
{
    int32_t rule;
    do {
        rule = asked_rule(tested, rng);
    } while (!(rules & rule));
    return rule;
}

static bool is_limited(const iut_claims *m)
{
    return m->max_nodes > 0 || m->max_children > 0 || m->max_gamma > 0;
}

static void ask_all(const check_case *c, const check_context *x, const probe *m, trees *t, trees *other, uint64_t *rng,
                    check_result *r)
{
    const asked_sizes most = c->drawn ? (asked_sizes){c->tree.nodes, c->tree.children} : ASKED_USUAL;
    const int32_t rules = rules_of(c, x->iut);
    bool going = true;
    for (int64_t done = 0; going && done < c->n; done += t->n) {
        const int32_t call = 1 + probe_below(rng, ASKED_ROOM);
        const uint64_t seed = probe_next(rng), position = probe_next(rng) >> 16;
        bool differs[ASKED_ROOM];
        twin w;
        trees_clear(t), trees_clear(other);
        asked_ways(t, x->iut, c->tree.V, rng);
        other->coins = t->coins, other->race = t->race, other->given = t->given;
        while (t->n < call && done + t->n < c->n) asked_add(t, m, x, some_rule(rules, x->iut, rng), most, rng);
        if (!trees_ask(t, x, c->tree.V, seed, position, r)) return;
        while (other->n < t->n) {
            add_twin(other, &w, t, c->tree.kind, m, x->iut, rng);
            differs[other->n - 1] = is_other(&w);
        }
        if (!trees_ask(other, x, c->tree.V, seed, position, r)) return;
        for (int32_t i = 0; going && i < t->n; i++) {
            going = is_same(t, other, i);
            r->compared += going && differs[i];
            if (!going) fail(t, other, i, c->tree.kind, r);
        }
    }
    if (going && r->compared == 0 && is_limited(client_claims(x->iut)))
        result_set(r, STATE_NOT_CLAIMED, "within the limits of nodes, children and depth no request has another like it");
    else if (going)
        result_set(r, STATE_PASS, "%lld pairs of requests have one answer each", (long long)r->compared);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    enum { LARGE_V = 2048 };
    uint64_t rng = check_seed(x, c, 0);
    trees t = {0}, other = {0};
    probe *m = asked_probe(x->iut, c->tree.V > LARGE_V ? 4 : ASKED_STATES, c->tree.V, (probe_shape)c->tree.rows, &rng);
    if (trees_open(&t, x, ASKED_ROOM, ASKED_ROOM * TREE_NODES, c->tree.gamma, r) &&
        trees_open(&other, x, ASKED_ROOM, ASKED_ROOM * TREE_NODES, c->tree.gamma, r) && probe_serve(m, x, r))
        ask_all(c, x, m, &t, &other, &rng, r);
    trees_close(&t);
    trees_close(&other);
    probe_close(m);
}

const check check_tree_meta = {
    .name = "tree.meta",
    .clauses = "TRV-04 TRV-06 MAT-03 GRD-04 LAY-05",
    .summary = "other nodes below those refused, other placeholders, siblings in another order: one answer",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
