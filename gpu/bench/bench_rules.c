/* bench_rules.c - the acceptance rules and the served transform: microseconds of one call at
 * the vocabularies of real models, for one case and for 64. A call is one of many recorded as a
 * graph, each on rows of its own, together more than caches hold: the rows come from memory.
 *
 * What a rule has to do depends on its input, so each gets the most that it can: greedy accepts
 * all drafts; a chain accepts all but the last, whose place is drawn from the residual; the
 * walk refuses all candidates but the last, which it accepts whole; a rule on a tree refuses all
 * siblings, block verification all drafts of a chain. */
#include "gpu/bench/parts.h"
#include "gpu/verify/verify.h"
#include "gpu/verify/verify_tree.h"

#include <stdlib.h>
#include <string.h>

enum {
    GAMMA = 8,
    ROWS = GAMMA + 1,
    CANDIDATES = 15,
    DEPTH = 4,
    TREE = 1 + CANDIDATES * DEPTH,
    NODES = 1 + GAMMA,
    MOST_SETS = 256
};
static const size_t ENOUGH = (size_t)512 << 20; /* bytes that no cache holds */

/* Logits uniform in [-1, 1] over this temperature are served: 20 between the ends. */
static const as_sampling flat = {0.1f, 0, 1.0f, 0.0f}, cut = {0.1f, 50, 0.9f, 0.0f},
                         top = {0.0f, 0, 1.0f, 0.0f};

/* What the calls on one vocabulary and number of cases share. */
typedef struct {
    int32_t V, n, sets;
    float *logits, *p;         /* [sets][n][ROWS][V] */
    float *q;                  /* [sets][n][GAMMA][V] */
    int32_t *likely, *drawn;   /* [sets][n][GAMMA] argmax of the logits, and of q */
    double *u;                 /* [n][GAMMA + 2] */
    float *row;                /* [sets][n][TREE][V] of walks */
    int32_t *token, *parent;   /* [sets][n][TREE] */
    ag_tree *tree;             /* [n] */
    int32_t *state;            /* [n][ROWS] */
    int32_t *out, *path;       /* [n][TREE], larger than [n][ROWS] */
    int32_t *length, *taken;   /* [n] */
    ag_fault *fault;           /* [n] */
    ag_trees *step;            /* [sets] on the host, their memory in `nodes`; of the first rule */
    const int32_t *chain;      /* [n][NODES] the parents of a chain */
    int on_tree;               /* the rule of a call, one of tree_rules */
    void *nodes;
    const as_sampling *served; /* by the transform */
    ag_scratch scratch;
} rules;

static size_t at_set(const rules *r, int set, int rows)
{
    return (size_t)set * (size_t)r->n * (size_t)rows;
}

/* ---- Calls. ----------------------------------------------------------------------------- */

static ag_chains chains_of(const rules *r, int set)
{
    return (ag_chains){.n = r->n,
                       .gamma = GAMMA,
                       .V = r->V,
                       .out = r->out,
                       .out_len = r->length,
                       .fault = r->fault,
                       .draft = r->likely + at_set(r, set, GAMMA)};
}

static as_status greedy(ag_bench *b, void *what)
{
    const rules *r = what;
    as_status s = AS_OK;
    for (int i = 0; i < r->sets && s == AS_OK; i++) {
        ag_chains c = chains_of(r, i);
        c.p = r->logits + at_set(r, i, ROWS) * (size_t)r->V;
        s = ag_verify(&b->device, AS_RULE_GREEDY, &c, &r->scratch, &b->e);
    }
    return s;
}

static as_status chain(ag_bench *b, void *what)
{
    const rules *r = what;
    as_status s = AS_OK;
    for (int i = 0; i < r->sets && s == AS_OK; i++) {
        ag_chains c = chains_of(r, i);
        c.p = r->p + at_set(r, i, ROWS) * (size_t)r->V;
        c.q = r->q + at_set(r, i, GAMMA) * (size_t)r->V;
        c.draft = r->drawn + at_set(r, i, GAMMA);
        c.u = r->u;
        s = ag_verify(&b->device, AS_RULE_CHAIN, &c, &r->scratch, &b->e);
    }
    return s;
}

static as_status serve(ag_bench *b, void *what)
{
    const rules *r = what;
    as_status s = AS_OK;
    for (int i = 0; i < r->sets && s == AS_OK; i++) {
        const size_t at = at_set(r, i, ROWS) * (size_t)r->V;
        s = ag_serve(&b->device, r->logits + at, NULL, r->n * ROWS, r->V, r->served, r->p + at,
                     r->state, &r->scratch, &b->e);
    }
    return s;
}

static as_status walk(ag_bench *b, void *what)
{
    const rules *r = what;
    as_status s = AS_OK;
    for (int i = 0; i < r->sets && s == AS_OK; i++) {
        const ag_walks w = {.n = r->n,
                            .V = r->V,
                            .capacity = TREE,
                            .wants = TREE,
                            .tree = r->tree,
                            .token = r->token + at_set(r, i, TREE),
                            .parent = r->parent + at_set(r, i, TREE),
                            .row = r->row + at_set(r, i, TREE) * (size_t)r->V,
                            .run = r->out,
                            .path = r->path,
                            .length = r->length,
                            .accepted = r->taken,
                            .fault = r->fault};
        s = ag_walk(&b->device, AS_RULE_ONEHOT, &w, &r->scratch, &b->e);
    }
    return s;
}

/* At their neutral parameters: TYPICAL and CONSTANT then accept nothing. */
static const struct {
    as_tree_rule rule;
    const char *what;
} tree_rules[] = {
    {AS_TREE_GREEDY, "tree, greedy: 8 siblings, none the argmax, from logits"},
    {AS_TREE_MATCH, "tree, match: 8 siblings, none drawn, from served rows"},
    {AS_TREE_TARGET, "tree, target: 8 siblings refused, from served rows"},
    {AS_TREE_ONEHOT, "tree, one-hot: 8 siblings refused, from served rows"},
    {AS_TREE_RECURSIVE, "tree, recursive: 8 siblings refused, from served rows"},
    {AS_TREE_SINGLE, "tree, single: 8 siblings refused, from served rows"},
    {AS_TREE_KSEQ, "tree, kseq: 8 siblings refused, from served rows"},
    {AS_TREE_BLOCK, "tree, block: 8 drafts of a chain refused, from served rows"},
    {AS_TREE_TYPICAL, "tree, typical: 8 siblings refused, from served rows"},
    {AS_TREE_CONSTANT, "tree, constant: 8 siblings refused, from served rows"},
    {AS_TREE_LENIENT, "tree, lenient: 8 siblings refused, from served rows"}};
enum { TREE_RULES = sizeof tree_rules / sizeof *tree_rules };

static as_status on_tree(ag_bench *b, void *what)
{
    const rules *r = what;
    as_status s = AS_OK;
    for (int i = 0; i < r->sets && s == AS_OK; i++) {
        ag_trees t = r->step[i];
        t.rule += r->on_tree * r->n;
        if (tree_rules[r->on_tree].rule == AS_TREE_BLOCK) t.parent = r->chain;
        s = ag_verify_trees(&b->device, &t, &b->e);
    }
    return s;
}

/* ---- Input. ----------------------------------------------------------------------------- */

static void *memory(ag_bench *b, size_t n, size_t size)
{
    return ag_bench_memory(b, n * size, "rows and rules");
}

static void random_logits(ag_bench *b, float *at, size_t n, uint64_t seed)
{
    ag_bench_check(b, ag_fill_weights(&b->device, at, n * sizeof *at, AS_F32, seed, &b->e));
}

/* The argmax of GAMMA rows for each case: those that `row` names, or the first. */
static void argmax(ag_bench *b, const rules *r, const float *logits, const int32_t *row,
                   int32_t *id)
{
    ag_bench_check(b, ag_argmax(&b->device, logits, row, r->n * GAMMA, r->V, id, r->state,
                                &r->scratch, &b->e));
}

/* Rows of the drafts among those of all positions. */
static int32_t *rows_of_drafts(ag_bench *b, const rules *r)
{
    const size_t n = (size_t)r->n * GAMMA;
    int32_t *row = malloc(n * sizeof *row);
    if (!row) ag_bench_check(b, as_fail(&b->e, AS_NO_MEMORY, "no memory for rows"));
    for (size_t i = 0; i < n; i++) row[i] = (int32_t)(i / GAMMA * ROWS + i % GAMMA);
    int32_t *at = memory(b, n, sizeof *at);
    ag_bench_check(b, ag_upload(&b->device, at, row, n * sizeof *row, &b->e));
    free(row);
    return at;
}

/* Drafts that were likely in q are accepted by 0 and, rarely else, refused by almost 1. */
static void give_uniforms(ag_bench *b, const rules *r)
{
    const size_t n = (size_t)r->n * (GAMMA + 2);
    double *u = calloc(n, sizeof *u);
    if (!u) ag_bench_check(b, as_fail(&b->e, AS_NO_MEMORY, "no memory for uniforms"));
    for (size_t i = 0; i < n; i += GAMMA + 2) {
        u[i + GAMMA - 1] = 1 - 0x1p-24;
        u[i + GAMMA] = u[i + GAMMA + 1] = 0.5;
    }
    ag_bench_check(b, ag_upload(&b->device, r->u, u, n * sizeof *u, &b->e));
    free(u);
}

/* q and its drafts come from other logits, which lie where those of p will. */
static void make_chains(ag_bench *b, rules *r)
{
    const size_t V = (size_t)r->V, n = at_set(r, r->sets, ROWS), m = at_set(r, r->sets, GAMMA);
    r->logits = memory(b, n * V, sizeof *r->logits);
    r->p = memory(b, n * V, sizeof *r->p);
    r->q = memory(b, m * V, sizeof *r->q);
    r->likely = memory(b, m, sizeof *r->likely);
    r->drawn = memory(b, m, sizeof *r->drawn);
    r->u = memory(b, (size_t)r->n * (GAMMA + 2), sizeof *r->u);
    int32_t *row = rows_of_drafts(b, r);
    give_uniforms(b, r);
    random_logits(b, r->logits, n * V, 2);
    for (int i = 0; i < r->sets; i++) {
        const float *logits = r->logits + at_set(r, i, ROWS) * V;
        const size_t at = at_set(r, i, GAMMA);
        argmax(b, r, logits, NULL, r->drawn + at);
        ag_bench_check(b, ag_serve(&b->device, logits, NULL, r->n * GAMMA, r->V, &flat,
                                   r->q + at * V, r->state, &r->scratch, &b->e));
    }
    random_logits(b, r->logits, n * V, 3);
    for (int i = 0; i < r->sets; i++)
        argmax(b, r, r->logits + at_set(r, i, ROWS) * V, row, r->likely + at_set(r, i, GAMMA));
    r->served = &flat;
    ag_bench_check(b, serve(b, r));
    ag_bench_check(b, ag_wait(&b->device, &b->e));
    ag_free(row);
}

/* A tree whose last candidate follows the argmaxima of its rows; the first tokens of the others
 * are refused. */
static void plant(const int32_t *best /* [TREE] */, int32_t V, int32_t *token, int32_t *parent)
{
    token[0] = 0, parent[0] = -1;
    for (int32_t c = 0; c < CANDIDATES; c++)
        for (int32_t k = 0; k < DEPTH; k++) {
            const int32_t row = 1 + c * DEPTH + k, above = k > 0 ? row - 1 : 0;
            parent[row] = above;
            token[row] = c < CANDIDATES - 1 ? (best[0] + 1 + c) % V : best[above];
        }
}

/* Served rows with all mass on their argmax, a tree's at a time. */
static void make_trees(ag_bench *b, rules *r)
{
    const size_t V = (size_t)r->V, n = at_set(r, r->sets, 1), rows = n * TREE;
    float *logits = memory(b, TREE * V, sizeof *logits);
    int32_t *best = memory(b, rows, sizeof *best), *host = malloc(3 * rows * sizeof *host);
    if (!host) ag_bench_check(b, as_fail(&b->e, AS_NO_MEMORY, "no memory for trees"));
    r->row = memory(b, rows * V, sizeof *r->row);
    for (size_t i = 0; i < n; i++) {
        random_logits(b, logits, TREE * V, 4 + i);
        ag_bench_check(b, ag_argmax(&b->device, logits, NULL, TREE, r->V, best + i * TREE,
                                    r->state, &r->scratch, &b->e));
        ag_bench_check(b, ag_serve(&b->device, logits, NULL, TREE, r->V, &top,
                                   r->row + i * TREE * V, r->state, &r->scratch, &b->e));
    }
    ag_bench_check(b, ag_download(&b->device, host, best, rows * sizeof *host, &b->e));
    for (size_t i = 0; i < rows; i += TREE)
        plant(host + i, r->V, host + rows + i, host + 2 * rows + i);
    r->token = memory(b, rows, sizeof *r->token);
    r->parent = memory(b, rows, sizeof *r->parent);
    ag_bench_check(b, ag_upload(&b->device, r->token, host + rows, rows * sizeof *host, &b->e));
    ag_bench_check(
        b, ag_upload(&b->device, r->parent, host + 2 * rows, rows * sizeof *host, &b->e));
    ag_free(logits);
    ag_free(best);
    free(host);
}

/* The nodes of a case: a root and its children, each with the likeliest token of a row of its
 * own, where p has little: they are refused by almost 1. */
typedef struct {
    double u[NODES];
    int32_t token[NODES], parent[NODES], chain[NODES], p_row[NODES], q_row[NODES];
} one_case;

static void grow(one_case *c, const int32_t *drawn, int32_t number)
{
    for (int32_t i = 0; i < NODES; i++) {
        c->u[i] = 1 - 0x1p-24;
        c->token[i] = i ? drawn[i - 1] : -1;
        c->parent[i] = i ? 0 : -1;
        c->chain[i] = i - 1;
        c->p_row[i] = number * ROWS + i;
        c->q_row[i] = i ? number * GAMMA + i - 1 : -1;
    }
}

/* Steps over the rows of the chains. */
static void make_steps(ag_bench *b, rules *r)
{
    enum { U, LAST, P_TOTAL, Q_TOTAL, TOKEN, PARENT, CHAIN, P_ROW, Q_ROW, RULE, COUNT, ARRAYS };
    const size_t n = (size_t)r->n, V = (size_t)r->V, all = n * NODES,
                 size[ARRAYS] = {8 * all, 16 * n,  8 * n * ROWS, 8 * n * GAMMA,      4 * all, 4 * all,
                                 4 * all, 4 * all, 4 * all,      4 * n * TREE_RULES, 4 * n};
    size_t at[ARRAYS + 1] = {0};
    for (int i = 0; i < ARRAYS; i++) at[i + 1] = at[i] + (size[i] + 15) / 16 * 16;
    char *host = calloc(1, at[ARRAYS]), *to;
    int32_t *drawn = malloc(n * GAMMA * 4);
    r->step = malloc((size_t)r->sets * sizeof *r->step);
    if (!host || !drawn || !r->step)
        ag_bench_check(b, as_fail(&b->e, AS_NO_MEMORY, "no memory for trees"));
    to = r->nodes = memory(b, (size_t)r->sets * at[ARRAYS] + 16 * n * V, 1);
    for (int i = 0; i < r->sets; i++, to += at[ARRAYS]) {
        const size_t drafts = at_set(r, i, GAMMA), rows = at_set(r, i, ROWS);
        ag_bench_check(b, ag_download(&b->device, drawn, r->drawn + drafts, n * GAMMA * 4, &b->e));
        for (int32_t c = 0; c < r->n; c++) {
            one_case one;
            const size_t first = (size_t)c * NODES;
            grow(&one, drawn + c * GAMMA, c);
            memcpy(host + at[U] + 8 * first, one.u, sizeof one.u);
            memcpy(host + at[TOKEN] + 4 * first, one.token, sizeof one.token);
            memcpy(host + at[PARENT] + 4 * first, one.parent, sizeof one.parent);
            memcpy(host + at[CHAIN] + 4 * first, one.chain, sizeof one.chain);
            memcpy(host + at[P_ROW] + 4 * first, one.p_row, sizeof one.p_row);
            memcpy(host + at[Q_ROW] + 4 * first, one.q_row, sizeof one.q_row);
            for (size_t k = 0; k < TREE_RULES; k++)
                ((int32_t *)(void *)(host + at[RULE]))[k * n + (size_t)c] = tree_rules[k].rule;
            ((int32_t *)(void *)(host + at[COUNT]))[c] = NODES;
        }
        ag_bench_check(b, ag_upload(&b->device, to, host, at[ARRAYS], &b->e));
        const float *p = r->p + rows * V, *q = r->q + drafts * V;
        r->chain = (void *)(to + at[CHAIN]); /* the same in every set */
        void *const p_total = to + at[P_TOTAL], *const q_total = to + at[Q_TOTAL];
        ag_bench_check(b, ag_totals(&b->device, p, NULL, NULL, r->n * ROWS, r->V, p_total, &b->e));
        ag_bench_check(b, ag_totals(&b->device, q, NULL, NULL, r->n * GAMMA, r->V, q_total, &b->e));
        r->step[i] = (ag_trees){.n = r->n,
                                .capacity = NODES,
                                .V = r->V,
                                .p = p,
                                .q = q,
                                .logits = r->logits + rows * V,
                                .p_total = p_total,
                                .q_total = q_total,
                                .rule = (void *)(to + at[RULE]),
                                .nodes = (void *)(to + at[COUNT]),
                                .token = (void *)(to + at[TOKEN]),
                                .parent = (void *)(to + at[PARENT]),
                                .p_row = (void *)(to + at[P_ROW]),
                                .q_row = (void *)(to + at[Q_ROW]),
                                .u = (void *)(to + at[U]),
                                .last = (void *)(to + at[LAST]),
                                .work = (void *)((char *)r->nodes + (size_t)r->sets * at[ARRAYS]),
                                .out = r->out,
                                .path = r->path,
                                .length = r->length,
                                .fault = (void *)r->fault};
    }
    free(host);
    free(drawn);
}

/* What all calls write, and the trees' shape. */
static void make_answers(ag_bench *b, rules *r)
{
    const size_t n = (size_t)r->n;
    ag_tree *tree = malloc(n * sizeof *tree);
    if (!tree) ag_bench_check(b, as_fail(&b->e, AS_NO_MEMORY, "no memory for trees"));
    for (size_t i = 0; i < n; i++) tree[i] = (ag_tree){TREE, 1, 1, 0, DEPTH, 1};
    r->tree = memory(b, n, sizeof *tree);
    r->state = memory(b, n * TREE, sizeof *r->state);
    r->out = memory(b, n * TREE, sizeof *r->out);
    r->path = memory(b, n * TREE, sizeof *r->path);
    r->length = memory(b, n, sizeof *r->length);
    r->taken = memory(b, n, sizeof *r->taken);
    r->fault = memory(b, n, sizeof *r->fault);
    ag_bench_check(b, ag_upload(&b->device, r->tree, tree, n * sizeof *tree, &b->e));
    ag_bench_check(b, ag_scratch_reserve(&b->device, r->n * TREE, &r->scratch, &b->e));
    free(tree);
}

static void free_all(rules *r)
{
    void *const all[] = {r->logits, r->p,      r->q,      r->likely, r->drawn, r->u,
                         r->row,    r->token,  r->parent, r->tree,   r->state, r->out,
                         r->path,   r->length, r->taken,  r->fault, r->nodes};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) ag_free(all[i]);
    free(r->step);
    ag_scratch_free(&r->scratch);
}

/* ---- The report. ------------------------------------------------------------------------ */

/* The lengths that the last call left: `least` or one more; returns how many are `least`. */
static int32_t check_lengths(ag_bench *b, const rules *r, const char *what, int32_t least)
{
    const size_t n = (size_t)r->n;
    int32_t *length = malloc(n * sizeof *length), found = 0;
    if (!length) ag_bench_check(b, as_fail(&b->e, AS_NO_MEMORY, "no memory for lengths"));
    ag_bench_check(b, ag_download(&b->device, length, r->length, n * sizeof *length, &b->e));
    for (size_t i = 0; i < n; i++) {
        if (length[i] < least || length[i] > least + 1)
            ag_bench_check(b, as_fail(&b->e, AS_DEVICE, "%s: case %zu emits %d tokens, not %d",
                                      what, i, (int)length[i], (int)least));
        found += length[i] == least;
    }
    free(length);
    return found;
}

/* Of the last call's trees most have all drafts refused: a token may be likely in p, too. */
static void check_steps(ag_bench *b, const rules *r)
{
    const char *what = tree_rules[r->on_tree].what;
    const size_t n = (size_t)r->n;
    int32_t *length = malloc(n * sizeof *length), refused = 0;
    if (!length) ag_bench_check(b, as_fail(&b->e, AS_NO_MEMORY, "no memory for lengths"));
    ag_bench_check(b, ag_download(&b->device, length, r->length, n * sizeof *length, &b->e));
    for (size_t i = 0; i < n; i++) {
        if (length[i] < 1) ag_bench_check(b, as_fail(&b->e, AS_DEVICE, "%s: case %zu failed", what, i));
        refused += length[i] == 1;
    }
    if (n > 1 && 2 * refused < r->n)
        ag_bench_check(b, as_fail(&b->e, AS_DEVICE, "%s: only %d of %d refused", what, refused, r->n));
    free(length);
}

static void measure(ag_bench *b, rules *r, const char *what, ag_work *work, double target)
{
    const ag_times t = ag_times_of_one(ag_bench_time_graph(b, work, r), r->sets);
    printf("| %s | %d | %d |", what, r->V, r->n);
    ag_cell(b, 2, t.median);
    ag_cell(b, 2, t.low);
    ag_cell(b, 2, t.high);
    if (target > 0)
        printf(" %.0f |\n", target);
    else
        printf(" |\n");
    ag_entry(b);
    ag_text(b, "what", "rule");
    ag_text(b, "kernel", what);
    ag_number(b, "vocabulary", r->V);
    ag_number(b, "cases", r->n);
    ag_number(b, "calls", r->sets);
    ag_graph_times(b, t);
    if (target > 0) ag_number(b, "target_us", target);
}

/* So many sets that caches do not hold rows of `bytes` each; 0: not even one has room. */
static int sets_of(ag_bench *b, size_t bytes, double room)
{
    const size_t n = (ENOUGH + bytes - 1) / bytes;
    const int sets = b->profile ? 1 : b->dry ? 2 : n > MOST_SETS ? MOST_SETS : (int)n;
    return b->dry || ag_bench_fits(b, room * sets * (double)bytes + 1e8) ? sets : 0;
}

static void say_small(const char *what, const rules *r)
{
    printf("| %s | %d | %d | not run: the device's memory is too small | | | |\n", what, r->V,
           r->n);
}

static void measure_chains(ag_bench *b, void *with)
{
    rules r = *(const rules *)with;
    const int32_t V = r.V, n = r.n;
    const int aimed = n == 1 && V > 100000;
    r.sets = sets_of(b, (size_t)n * ROWS * (size_t)V * sizeof(float), 3);
    if (r.sets == 0) {
        say_small("rules of chains", &r);
        return;
    }
    make_answers(b, &r);
    make_chains(b, &r);
    measure(b, &r, "greedy, 8 drafts accepted, from logits", greedy, aimed ? 8 : 0);
    if (check_lengths(b, &r, "greedy", GAMMA) > 0)
        ag_bench_check(b, as_fail(&b->e, AS_DEVICE, "greedy: drafts were refused"));
    measure(b, &r, "chain, 7 of 8 accepted, residual, from served rows", chain, aimed ? 15 : 0);
    if (check_lengths(b, &r, "chain", GAMMA) == 0 && (b->dry || n > 1))
        ag_bench_check(b, as_fail(&b->e, AS_DEVICE, "chain: no draft was refused"));
    make_steps(b, &r);
    for (r.on_tree = 0; r.on_tree < TREE_RULES; r.on_tree++) {
        measure(b, &r, tree_rules[r.on_tree].what, on_tree, 0);
        check_steps(b, &r);
    }
    measure(b, &r, "served transform of 9 rows, temperature", serve, 0);
    r.served = &cut;
    measure(b, &r, "served transform of 9 rows, top-k 50, top-p 0.9", serve, 0);
    free_all(&r);
}

static void measure_walks(ag_bench *b, void *with)
{
    rules r = *(const rules *)with;
    const int32_t V = r.V, n = r.n;
    r.sets = sets_of(b, (size_t)n * TREE * (size_t)V * sizeof(float), 1.1);
    if (r.sets == 0) {
        say_small("one-hot walk", &r);
        return;
    }
    make_answers(b, &r);
    make_trees(b, &r);
    measure(b, &r, "one-hot walk, the last of 15 candidates of 4", walk, 0);
    if (check_lengths(b, &r, "one-hot walk", DEPTH + 1) < n)
        ag_bench_check(b, as_fail(&b->e, AS_DEVICE, "one-hot walk: it went too far"));
    free_all(&r);
}

void ag_bench_rules(ag_bench *b)
{
    static const int32_t real[] = {32000, 128256}, dry[] = {40, 300};
    ag_bench_due(b, 2 * 2 * (5 + TREE_RULES));
    printf("#### Acceptance rules and the served transform\n\n"
           "Microseconds of one call for so many cases, in a graph of calls on other rows, and "
           "what is aimed at.\n\n"
           "| kernel | vocabulary | cases | median | least | most | aim |\n"
           "|---|---:|---:|---:|---:|---:|---:|\n");
    for (int v = 0; v < 2; v++) {
        const int32_t V = b->dry ? dry[v] : real[v];
        for (int many = b->profile && v == 0 ? 2 : 0; many < (b->profile ? 1 : 2); many++) {
            const int32_t n = !many ? 1 : b->dry ? 3 : 64;
            rules r = {.V = V, .n = n};
            (void)ag_bench_case(b, measure_chains, &r);
            (void)ag_bench_case(b, measure_walks, &r);
        }
    }
    printf("\n");
}
