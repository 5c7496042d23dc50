/* make_trees.c - vectors of chapter 10. Trees are random: chains, bushes and wide ones, with repeats and placeholders,
 * tokens from q and from anywhere. The uniforms are set on the way that the oracle goes: half of them stand at or
 * beside a boundary of the very decision that they take. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/siblings.h"
#include "vectors/make/make.h"
#include "vectors/read/tree.h"

/* ROWS: no more than a panel of tree.vectors has. */
enum { NODES = 128, ROWS = 12, LARGE_ROWS = 4, TRIES = 200 };

static const vector_row units12 = {.form = ROW_UNITS, .k = 12}, none = {.form = ROW_BITS};

/* ---- Rows: all sum to 1 ------------------------------------------------------------ */

/* 2^12 units thrown onto the ids that are not masked, `heavy` of them at once onto one id. */
static void thrown_row(maker *m, bool masked, int32_t heavy)
{
    const int32_t V = m->g->V, row = make_row(m, units12, none), whole = make_below(m, V);
    float *p = make_p(m, row);
    bool *open = calloc((size_t)V, sizeof *open);
    if (!open) abort();
    for (int32_t t = 0; t < V; t++) open[t] = !masked || make_below(m, 2);
    open[whole] = true;
    p[whole] = (float)heavy * 0x1p-12f;
    for (int32_t i = heavy; i < 4096; i++) {
        int32_t t = make_below(m, V);
        while (!open[t]) t = (t + 1) % V;
        p[t] += 0x1p-12f;
    }
    free(open);
}

/* lambda/256 of one row and the rest of another. */
static void mixed_row(maker *m, int32_t a, int32_t b, int32_t lambda)
{
    const int32_t V = m->g->V, row = make_row(m, units12, none);
    float *p = make_p(m, row), left = 1, most = 0;
    int32_t top = 0;
    for (int32_t t = 0; t < V; t++) {
        const double x = (double)make_p(m, a)[t] * lambda + (double)make_p(m, b)[t] * (256 - lambda);
        p[t] = (float)(floor(x * 16) * 0x1p-12);
        left -= p[t];
        if (p[t] > most) most = p[t], top = t;
    }
    p[top] += left;
}

static void small_rows(maker *m)
{
    thrown_row(m, false, 0);
    thrown_row(m, true, 0);
    thrown_row(m, false, 3000);
    thrown_row(m, true, 2000);
    thrown_row(m, false, 1000);
    thrown_row(m, true, 4095);
    while (m->g->rows < ROWS - 1) mixed_row(m, make_below(m, 6), make_below(m, 6), 64 + make_below(m, 128));
    thrown_row(m, false, 4096);
}

static void large_rows(maker *m)
{
    for (uint32_t i = 0; i < LARGE_ROWS; i++) {
        const bool mix = i % 2;
        const vector_row form = {mix ? ROW_MIX : ROW_ZIPF, 24, UINT64_C(0x243f6a8885a308d3), 1 + i / 2,
                                 mix ? 40000u : 0u,        (int32_t)(i / 2)};
        make_expand(m, make_row(m, form, none));
    }
}

/* Rows whose refusals leave nothing: a child that its q cannot have drawn is refused, and this q takes the rest. */
static void empty_rows(maker *m)
{
    static const int32_t rows[][4] = {{2048, 2048, 0, 0}, {1024, 1024, 2048, 0}, {0, 0, 2048, 2048}, {4096, 0, 0, 0},
                                      {0, 4096, 0, 0},    {2048, 0, 0, 2048},    {1024, 1024, 1024, 1024}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        make_units(make_p(m, make_row(m, units12, none)), rows[i], 4, 12);
}

/* ---- Trees -------------------------------------------------------------------------- */

/* How a step goes: as it comes; FAR: nearly always on; NOWHERE: mostly not, so that more children are tried. */
typedef enum { ANYHOW, FAR, NOWHERE } direction;

typedef struct {
    const tree_rule *rule;
    int32_t nodes, drawn;
    direction way;
    int32_t parent[NODES], level[NODES], token[NODES], p[NODES], q[NODES];
    double parameter[2 * NODES], u[NODES + 2];
} drafted;

/* What a tree may be. FAR: it is one long path, and what is left of the nodes stands beside it. */
typedef struct {
    int32_t nodes, depth, children;
    direction way;
    int32_t below; /* so many children of the root come first */
} shape;

static bool goes_to_first_of_equal(oracle_tree_rule rule)
{
    return rule == ORACLE_TREE_TARGET || rule == ORACLE_TREE_MATCH || rule == ORACLE_TREE_GREEDY ||
           rule == ORACLE_TREE_ONEHOT;
}

static int32_t children_of(const drafted *d, int32_t node)
{
    int32_t n = 0;
    for (int32_t i = node + 1; i < d->nodes; i++) n += d->parent[i] == node;
    return n;
}

static void grow(maker *m, drafted *d, const shape *s)
{
    static const int32_t habits[] = {0, 1, 2, 2, 2, 2, 3, 3};
    const int32_t habit = s->way == FAR ? 0 : s->way == NOWHERE ? 2 : habits[make_below(m, 8)];
    d->nodes = 1;
    d->way = s->way;
    d->parent[0] = d->token[0] = d->q[0] = -1;
    d->level[0] = 0;
    for (int32_t tries = 0; d->nodes < s->nodes && tries < 8 * NODES; tries++) {
        const int32_t last = d->nodes - 1, recent = last - make_below(m, d->nodes < 3 ? d->nodes : 3),
                      parent = d->nodes <= s->below                           ? 0
                               : habit == 0 && d->level[last] < s->depth ? last
                               : habit == 1                              ? recent
                               : habit == 2                              ? make_below(m, (d->nodes + 3) / 4)
                                                                         : make_below(m, d->nodes);
        if (d->level[parent] >= s->depth || children_of(d, parent) >= s->children) continue;
        d->parent[d->nodes] = parent;
        d->level[d->nodes++] = d->level[parent] + 1;
    }
}

/* The first sibling with the token of a node; itself for placeholders and the root. */
static int32_t first_equal(const drafted *d, int32_t node)
{
    for (int32_t i = 1; i < node && d->token[node] >= 0; i++)
        if (d->parent[i] == d->parent[node] && d->token[i] == d->token[node]) return i;
    return node;
}

static double random_unit(maker *m)
{
    return make_below(m, 1 << 24) * 0x1p-24;
}

/* An id by the law of a row. */
static int32_t token_of(maker *m, int32_t row)
{
    const float *p = make_p(m, row);
    double at = random_unit(m);
    for (int32_t t = 0; t < m->g->V; t++)
        if ((at -= (double)p[t]) < 0) return t;
    return m->g->V - 1;
}

static int32_t largest_of(const maker *m, int32_t row)
{
    int32_t best = 0;
    for (int32_t t = 1; t < m->g->V; t++)
        if (make_p(m, row)[t] > make_p(m, row)[best]) best = t;
    return best;
}

/* From its row, from anywhere, a sibling's, or none. */
static int32_t some_token(maker *m, const drafted *d, int32_t node)
{
    const int32_t kind = make_below(m, 16), before = node - 1, own = d->p[d->parent[node]];
    const bool greedy = d->rule->rule == ORACLE_TREE_GREEDY;
    if (d->way == FAR && make_below(m, 16)) return greedy ? largest_of(m, own) : token_of(m, own);
    if (kind == 0) return -1;
    if (kind < 3 && before > 0 && d->parent[before] == d->parent[node]) return d->token[before];
    if (kind < 6) return make_below(m, m->g->V);
    if (greedy && kind < 12) return largest_of(m, own);
    return token_of(m, oracle_tree_uses_q(d->rule->rule) ? d->q[node] : own);
}

/* Tokens and rows. Nodes with equal paths have the same p; siblings drawn IID or WITHOUT have one q. */
static void fill(maker *m, drafted *d)
{
    const int32_t rows = m->g->rows;
    d->drawn = make_below(m, 4);
    const bool one_row = d->drawn == 1 || d->drawn == 2;
    for (int32_t i = 0; i < d->nodes; i++) {
        d->p[i] = make_below(m, rows);
        if (i == 0) continue;
        if (goes_to_first_of_equal(d->rule->rule)) d->parent[i] = first_equal(d, d->parent[i]);
        d->q[i] = make_below(m, rows);
        for (int32_t k = 1; k < i && one_row; k++)
            if (d->parent[k] == d->parent[i]) d->q[i] = d->q[k];
        d->token[i] = some_token(m, d, i);
        d->p[i] = d->p[first_equal(d, i)];
    }
}

static double some_share(maker *m)
{
    return make_below(m, 2) ? 1 : (double)(float)(1 - random_unit(m));
}

/* The p of a child, which a comparison must get right, or any. */
static double some_threshold(maker *m, const drafted *d, int32_t node)
{
    for (int32_t i = node + 1; i < d->nodes; i++) {
        if (d->parent[i] != node || d->token[i] < 0 || make_below(m, 2)) continue;
        const float p = make_p(m, d->p[node])[d->token[i]];
        if (p > 0) return (double)p;
    }
    return make_below(m, 6) ? (double)(float)(0.4 * random_unit(m) + 0x1p-24) : 2;
}

static void fill_parameters(maker *m, drafted *d)
{
    for (int32_t i = 0; i < d->nodes; i++) {
        double *x = d->parameter + 2 * i;
        int32_t K = 0;
        for (int32_t k = i + 1; k < d->nodes; k++) K += d->parent[k] == i && d->token[k] >= 0;
        x[0] = x[1] = 0;
        switch (d->rule->rule) {
        case ORACLE_TREE_TARGET:
            x[0] = some_share(m), x[1] = some_share(m);
            break;
        case ORACLE_TREE_KSEQ:
            if (K > 1 && make_below(m, 2)) x[0] = 65536 + make_below(m, (K - 1) * 65536 + 1);
            break;
        case ORACLE_TREE_TYPICAL:
        case ORACLE_TREE_CONSTANT:
            x[0] = some_threshold(m, d, i);
            break;
        case ORACLE_TREE_LENIENT:
            x[0] = some_share(m);
            break;
        default:
            break;
        }
    }
}

/* ---- Uniforms ----------------------------------------------------------------------- */

static double clamp(double k)
{
    return (k < 0 ? 0 : k >= 0x1p24 ? 0x1p24 - 1 : k) * 0x1p-24;
}

/* The grid point at or above x, or a neighbour. */
static double beside(maker *m, double x)
{
    return clamp(ceil(fmin(x, 2) * 0x1p24) + make_below(m, 3) - 1);
}

static double anywhere(maker *m)
{
    const int32_t kind = make_below(m, 12);
    return kind == 0 ? 0 : kind == 1 ? clamp(0x1p24) : random_unit(m);
}

/* For a question "is u below the bound?". */
static double at_bound(maker *m, double bound, direction way)
{
    enum { BESIDE, BESIDE_TOO, ANYWHERE, BELOW, ABOVE };
    const int32_t kind = way == FAR && make_below(m, 32)      ? BELOW
                         : way == NOWHERE && make_below(m, 4) ? ABOVE
                                                              : make_below(m, ABOVE);
    const double at = fmin(bound, 1) * 0x1p24, some = random_unit(m);
    if (kind <= BESIDE_TOO) return beside(m, bound);
    if (kind == ANYWHERE) return anywhere(m);
    return clamp(floor(kind == BELOW ? at * some : 0x1p24 - (0x1p24 - at) * some));
}

/* For a draw: beside an end of the stretch of a token that is drawn often, or of the one named. inside: at its
 * middle. */
static double at_token(maker *m, mpz_t *R, const mpz_t Z, int32_t token, bool inside)
{
    const double any = anywhere(m);
    if (mpz_sgn(Z) == 0 || (token < 0 && make_below(m, 4) == 0)) return any;
    if (token < 0) token = oracle_draw_z(R, Z, m->g->V, oracle_unit_of(any));
    mpz_t before;
    mpz_init(before);
    const int32_t end = token + (inside ? 0 : make_below(m, 2));
    for (int32_t x = 0; x < end; x++) mpz_add(before, before, R[x]);
    const double from = mpz_get_d(before), part = inside ? 0.5 * mpz_get_d(R[token]) : 0;
    mpz_clear(before);
    return inside ? clamp(floor((from + part) / mpz_get_d(Z) * 0x1p24)) : beside(m, from / mpz_get_d(Z));
}

/* The children of a node, placeholders apart. */
typedef struct {
    oracle_family f;
    int32_t node[NODES], token[NODES];
    const float *q[NODES];
} family;

static void family_of(family *k, const maker *m, const drafted *d, int32_t node)
{
    k->f = (oracle_family){.rule = d->rule->rule, .V = m->g->V, .p = make_p(m, d->p[node]), .without = d->drawn == 2,
                           .parameter = {d->parameter[2 * node], d->parameter[2 * node + 1]}, .token = k->token,
                           .q = k->q, .kept = -1};
    for (int32_t i = node + 1; i < d->nodes; i++) {
        if (d->parent[i] != node || d->token[i] < 0) continue;
        const int32_t n = k->f.n++;
        k->node[n] = i;
        k->token[n] = d->token[i];
        k->q[n] = make_p(m, d->q[i]);
    }
}

static int32_t child_with(const family *k, int32_t token)
{
    for (int32_t i = 0; i < k->f.n; i++)
        if (k->token[i] == token) return k->node[i];
    return -1;
}

/* MATCH: the token of a child with every second draw. */
static int32_t aim_match(maker *m, drafted *d, int32_t node, const family *k, oracle_trial *t)
{
    const int32_t wanted = k->f.n > 0 && (d->way == FAR || make_below(m, 2)) ? k->token[make_below(m, k->f.n)] : -1;
    d->u[node] = at_token(m, t->R, t->Z, wanted, d->way == FAR);
    return child_with(k, oracle_draw_z(t->R, t->Z, m->g->V, oracle_unit_of(d->u[node])));
}

/* The child that is gone to with the uniforms that are set here, or -1. TARGET has one coin for all its questions. */
static int32_t aim_trials(maker *m, drafted *d, int32_t node, const family *k, oracle_trial *t)
{
    const bool coin = d->rule->rule == ORACLE_TREE_TARGET;
    const int32_t aimed = k->f.n > 0 ? make_below(m, k->f.n) : 0;
    while (oracle_trial_ask(t)) {
        double *u = &d->u[coin ? node : k->node[t->child]];
        if (!coin || t->asked == aimed) *u = at_bound(m, mpq_get_d(t->below), d->way);
        if (coin && t->asked < aimed) continue;
        if (oracle_unit_below(oracle_unit_of(*u), t->below)) return k->node[t->child];
    }
    return -1;
}

/* What happens at a node; the node gone to, or -1. */
static int32_t aim_node(maker *m, drafted *d, int32_t node)
{
    static family k;
    oracle_trial t;
    int32_t to = -1;
    family_of(&k, m, d, node);
    oracle_trial_begin(&t, &k.f, false);
    const bool chooses = d->rule->rule == ORACLE_TREE_MATCH || d->rule->rule == ORACLE_TREE_GREEDY;
    if (chooses) oracle_trial_ask(&t);
    if (d->rule->rule == ORACLE_TREE_MATCH) to = aim_match(m, d, node, &k, &t);
    if (!chooses) to = aim_trials(m, d, node, &k, &t);
    if (!chooses && to < 0) d->u[d->nodes + (k.f.n == 0)] = at_token(m, t.R, t.Z, -1, false);
    oracle_trial_end(&t);
    return to;
}

static void aim_chain(maker *m, drafted *d)
{
    const float *p[NODES + 1], *q[NODES];
    int32_t node[NODES], tau;
    oracle_block b = {.V = m->g->V, .p = p, .q = q, .token = d->token + 1};
    mpq_t below;
    mpz_t Z, *R = oracle_row_new(m->g->V);
    mpq_init(below);
    mpz_init(Z);
    p[0] = make_p(m, d->p[0]);
    for (int32_t i = 1; i < d->nodes && d->token[i] >= 0; i++) {
        node[b.n] = i;
        q[b.n++] = make_p(m, d->q[i]);
        p[b.n] = make_p(m, d->p[i]);
    }
    oracle_block_begin(&b);
    for (tau = b.n; tau > 0; tau--) {
        oracle_block_bound(below, &b, tau);
        d->u[node[tau - 1]] = at_bound(m, mpq_get_d(below), d->way);
        if (oracle_unit_below(oracle_unit_of(d->u[node[tau - 1]]), below)) break;
    }
    if (tau < b.n) oracle_block_last(R, Z, &b, tau);
    if (tau == b.n || mpz_sgn(Z) == 0) oracle_row_z(R, Z, p[tau], b.V, false);
    d->u[d->nodes + (tau == b.n)] = at_token(m, R, Z, -1, false);
    oracle_block_end(&b);
    mpq_clear(below);
    mpz_clear(Z);
    oracle_row_free(R, m->g->V);
}

static void aim(maker *m, drafted *d)
{
    for (int32_t i = 0; i < d->nodes + 2; i++) d->u[i] = anywhere(m);
    if (d->rule->rule == ORACLE_TREE_BLOCK)
        aim_chain(m, d);
    else if (d->rule->rule != ORACLE_TREE_GREEDY && d->rule->rule != ORACLE_TREE_TYPICAL)
        for (int32_t node = 0; node >= 0;) node = aim_node(m, d, node);
}

/* ---- Tests -------------------------------------------------------------------------- */

static void *keep(maker *m, const void *from, size_t size)
{
    void *to = set_take(m->set, 1, size);
    if (!to) abort();
    return memcpy(to, from, size);
}

static void put(maker *m, vector_test *t, const drafted *d)
{
    const size_t n = (size_t)d->nodes, i = n * sizeof(int32_t);
    vector_tree tree = {.nodes = d->nodes, .drawn = tree_drawings[d->drawn]};
    tree.parent = keep(m, d->parent, i);
    tree.token = keep(m, d->token, i);
    tree.p = keep(m, d->p, i);
    tree.q = oracle_tree_uses_q(d->rule->rule) ? keep(m, d->q, i) : NULL;
    tree.parameter = keep(m, d->parameter, 2 * n * sizeof(double));
    double u[NODES + 2];
    for (int32_t k = 0; k < d->nodes + 2; k++) u[k] = (k < d->nodes ? d->rule->u : d->rule->last) ? d->u[k] : 0;
    t->u = keep(m, u, (n + 2) * sizeof *u);
    t->tree = keep(m, &tree, sizeof tree);
    t->len = 0;
    for (int32_t k = 0; k < d->nodes; k++)
        if (d->level[k] > t->len) t->len = d->level[k];
}

/* What the tree brings that others get wrong. */
static const char *flags_of(maker *m, const drafted *d, const vector_test *t)
{
    char list[160] = "";
    for (int32_t i = 1; i < d->nodes; i++) {
        if (d->token[i] < 0) {
            list_add(list, "placeholder");
            continue;
        }
        if (first_equal(d, i) != i) list_add(list, "sibling-repeat");
        if (make_p(m, d->p[d->parent[i]])[d->token[i]] == 0) list_add(list, "zero-p");
        if (oracle_tree_uses_q(d->rule->rule) && make_p(m, d->q[i])[d->token[i]] == 0) list_add(list, "zero-q");
    }
    if (d->rule->parameter[0]) list_add(list, "threshold");
    if (vector_alternative(t, "empty=other")) list_add(list, "empty-residual");
    return set_text(m->set, list, strlen(list));
}

/* A random test; a tree in which two policies meet gives way to another. `empties`: with every second one a refusal
 * leaves nothing. */
static void random_test(maker *m, const shape *s, bool empties)
{
    static drafted d;
    vector_test *t = make_test(m, "", "");
    const bool empty = empties && m->g->tests % 2;
    d.rule = tree_rule_find(m->g->rule);
    for (int32_t i = 0; i < TRIES && !m->failed; i++) {
        grow(m, &d, s);
        fill(m, &d);
        fill_parameters(m, &d);
        aim(m, &d);
        put(m, t, &d);
        if (!answer_test(m->set, m->g, t, m->why, m->why_size)) continue;
        if (empty && !vector_alternative(t, "empty=other")) continue;
        t->flags = flags_of(m, &d, t);
        t->clauses = tree_clauses(m->set, m->g, t);
        return;
    }
    make_done(m, t, "TRV-02");
}

static void start(maker *m, const char *rule, const char *what, const char *rationale)
{
    char id[64];
    snprintf(id, sizeof id, "tree.%s.%s", rule, what);
    make_group(m, id, rationale, false, UNIFORMS_UNITS, TREE_UNIFORM_BITS);
    m->g->rule = tree_rule_find(rule)->name;
}

static int32_t most_children(const maker *m, int32_t n)
{
    return strcmp(m->g->rule, "block") ? n : 1;
}

/* The root alone, small trees, and now and then a large one. */
static void random_tests(maker *m, int32_t count, int32_t large)
{
    for (int32_t i = 0; i < count; i++) {
        const int32_t nodes = i == 0 ? 1 : i >= count - large ? NODES : 2 + make_below(m, i % 4 ? 7 : 16);
        const shape s = {nodes, 6, most_children(m, 12), ANYHOW, 0};
        random_test(m, &s, false);
    }
    make_close(m);
}

static void of_size(maker *m, const char *rule, const char *what, int32_t count, int32_t large)
{
    start(m, rule, what, "sibling-residual");
    if (m->g->V < 1000)
        small_rows(m);
    else
        large_rows(m);
    random_tests(m, count, large);
}

static void wide(maker *m, const char *rule)
{
    start(m, rule, "wide.v64", "tree-wide");
    small_rows(m);
    for (int32_t i = 0; i < 8; i++)
        random_test(m, &(shape){41 + i, i < 4 ? 1 : 2, 40, i % 2 ? NOWHERE : ANYHOW, 40}, false);
    make_close(m);
}

static void siblings(maker *m, const char *rule)
{
    start(m, rule, "siblings.v8", "sibling-residual");
    small_rows(m);
    for (int32_t i = 0; i < 40; i++) random_test(m, &(shape){3 + i % 8, 1 + i % 2, 10, NOWHERE, 2}, false);
    make_close(m);
}

static void deep(maker *m, const char *rule)
{
    start(m, rule, "deep.v8", "tree-deep");
    small_rows(m);
    for (int32_t i = 0; i < 8; i++)
        random_test(m, &(shape){i < 4 ? 65 : 100, i < 4 ? 64 : 40, most_children(m, 3), FAR, 0}, false);
    make_close(m);
}

static void empty(maker *m, const char *rule)
{
    start(m, rule, "empty.v4", "empty-residual");
    empty_rows(m);
    for (int32_t i = 0; i < 30; i++)
        random_test(m, &(shape){2 + i % 5, 2, most_children(m, 4), ANYHOW, 0}, true);
    make_close(m);
}

/* ---- Refusals ----------------------------------------------------------------------- */

/* The root has two children, the first of which has one; under BLOCK it is a chain. One thing is wrong. */
typedef struct {
    const char *rule, *what, *clauses;
    enum { TOKEN, PARENT, Q, FIRST, SECOND } field;
    int32_t node;
    double value;
} flaw;

static const flaw flaws[] = {
    {"recursive", "a token of V", "TRV-01", TOKEN, 2, 4},
    {"recursive", "a token of -2", "TRV-01", TOKEN, 3, -2},
    {"recursive", "a token of the largest integer", "TRV-01", TOKEN, 1, INT32_MAX},
    {"recursive", "a parent behind its child", "TRV-01", PARENT, 2, 3},
    {"recursive", "a node that is its own parent", "TRV-01", PARENT, 3, 3},
    {"recursive", "a second root", "TRV-01", PARENT, 2, -1},
    {"recursive", "no row q", "TRV-01", Q, 2, -1},
    {"recursive", "siblings without replacement from two rows", "SIB-04", Q, 2, 0},
    {"target", "a token of V", "TRV-01", TOKEN, 2, 4},
    {"target", "alpha 0", "TGT-03", FIRST, 0, 0},
    {"target", "alpha above 1", "TGT-03", FIRST, 0, 1.5},
    {"target", "sigma 0", "TGT-03", SECOND, 1, 0},
    {"target", "sigma below 0", "TGT-03", SECOND, 0, -1},
    {"match", "a token of V", "TRV-01", TOKEN, 3, 4},
    {"match", "a second root", "TRV-01", PARENT, 2, -1},
    {"greedy", "a token of -2", "TRV-01", TOKEN, 1, -2},
    {"greedy", "a parent behind its child", "TRV-01", PARENT, 1, 2},
    {"kseq", "a factor below 1", "KSQ-01", FIRST, 0, 65535},
    {"kseq", "a factor above the number of children", "KSQ-01", FIRST, 0, 2 * 65536 + 1},
    {"kseq", "no row q", "TRV-01", Q, 1, -1},
    {"block", "a node of two children", "BLK-01", PARENT, 2, 0},
    {"block", "a token of V", "TRV-01", TOKEN, 2, 4},
    {"typical", "a threshold below 0", "TYP-01", FIRST, 0, -1},
    {"constant", "a threshold of 0", "CST-01", FIRST, 0, 0},
    {"constant", "a threshold below 0", "CST-01", FIRST, 1, -0.5},
    {"lenient", "a lenience of 0", "LEN-01", FIRST, 0, 0},
    {"lenient", "a lenience above 1", "LEN-01", FIRST, 1, 2},
};

static void good_tree(drafted *d, bool chain)
{
    d->nodes = 4;
    d->drawn = 2;
    for (int32_t i = 0; i < d->nodes; i++) {
        d->parent[i] = chain || i < 2 ? i - 1 : 3 - i == 1 ? 0 : 1;
        d->token[i] = i - 1;
        d->p[i] = i % 2;
        d->q[i] = i > 0 ? 1 : -1;
        d->parameter[2 * i] = d->rule->rule == ORACLE_TREE_KSEQ || !d->rule->parameter[0] ? 0 : 1;
        d->parameter[2 * i + 1] = d->rule->parameter[1] ? 1 : 0;
        d->level[i] = i > 0 && d->parent[i] >= 0 ? d->level[d->parent[i]] + 1 : 0;
        d->u[i] = 0.5;
    }
    d->u[4] = d->u[5] = 0.5;
}

static void spoil(drafted *d, const flaw *f)
{
    switch (f->field) {
    case TOKEN:
        d->token[f->node] = (int32_t)f->value;
        break;
    case PARENT:
        d->parent[f->node] = (int32_t)f->value;
        break;
    case Q:
        d->q[f->node] = (int32_t)f->value;
        break;
    case FIRST:
    case SECOND:
        d->parameter[2 * f->node + (f->field == SECOND)] = f->value;
        break;
    }
}

static void refused(maker *m, const char *rule)
{
    static const int32_t rows[][4] = {{1024, 1024, 1024, 1024}, {2048, 1024, 512, 512}};
    static drafted d;
    start(m, rule, "refused.v4", "bad-request");
    for (int32_t i = 0; i < 2; i++) make_units(make_p(m, make_row(m, units12, none)), rows[i], 4, 12);
    for (size_t i = 0; i < sizeof flaws / sizeof *flaws; i++) {
        if (strcmp(flaws[i].rule, rule)) continue;
        vector_test *t = make_test(m, "bad-request", flaws[i].what);
        d.rule = tree_rule_find(rule);
        good_tree(&d, !strcmp(rule, "block"));
        spoil(&d, &flaws[i]);
        put(m, t, &d);
        make_done(m, t, flaws[i].clauses);
    }
    make_close(m);
}

/* ---- Groups ------------------------------------------------------------------------- */

void make_trees(maker *m)
{
    static const struct {
        const char *rule, *large;
        bool siblings, wide, deep, empty, refused;
    } of[] = {
        {"recursive", "v32000", true, true, true, true, true},    {"target", "v32000", true, true, false, false, true},
        {"match", "v50257", false, true, true, false, true},      {"greedy", "v65536", false, false, true, false, true},
        {"kseq", "v32000", true, true, false, true, true},        {"block", "v32000", false, false, true, true, true},
        {"onehot", "v50257", true, true, false, false, false},    {"single", "v32000", true, true, false, false, false},
        {"typical", "v65536", false, false, false, false, true},  {"lenient", "v32000", true, true, false, true, true},
        {"constant", "v50257", false, false, false, false, true},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        of_size(m, of[i].rule, "v3", 45, 0);
        of_size(m, of[i].rule, "v8", 70, 2);
        of_size(m, of[i].rule, "v64", 45, 1);
        of_size(m, of[i].rule, of[i].large, 20, 1);
        if (of[i].siblings) siblings(m, of[i].rule);
        if (of[i].wide) wide(m, of[i].rule);
        if (of[i].deep) deep(m, of[i].rule);
        if (of[i].empty) empty(m, of[i].rule);
        if (of[i].refused) refused(m, of[i].rule);
    }
}
