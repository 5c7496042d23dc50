/* verify_tree_test.c - the rules on trees of drafts on the grid emulator against the reference: fault, tokens and
 * nodes of drawn requests, of all rules in one call. Trees are chains, stars and bushes of up to 128 nodes, with
 * placeholders and siblings that repeat; rows have zeros, few tokens, equal partners or more mass than 1; uniforms
 * lie on the borders of acceptance. A request has a block, or the blocks of a cluster. What has to occur is counted.
 * Clauses TRV, SIB, REC, TGT, MAT-03, GRD-04, ONEH-07, NIR, KSQ, BLK, TYP, CST, LEN, RNG-09, RNG-10. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/verify/verify_tree.h"
#include "ref/dist/draw.h"
#include "ref/num/fixed.h"
#include "tests/gpu/on_device.h"
#include "tests/gpu/rows.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"

enum { CAPACITY = 128, MOST = 16 /* requests of a call */, RULES = AS_TREE_RULES };

static void open_device(int processors, int clusters)
{
    emu_processors(processors);
    emu_clusters(clusters);
    ok(ag_device_open(&device, 0, &why));
}

/* ---- Rows. ------------------------------------------------------------------------------ */

enum { GOOD = 12, BAD = GOOD, HEAVY, ROWS };

/* Rows of target and draft, logits of the target, on both sides; the last two are to be refused. */
typedef struct {
    int32_t V;
    float *p, *q, *logits;
    float *d_p, *d_q, *d_logits;
    int32_t *p_state, *q_state, *logit_state;
    uint64_t *p_total, *q_total;
} table;

static float *row_of(float *rows, int32_t V, int32_t row)
{
    return rows + (size_t)row * (size_t)V;
}

/* One of few tokens, far from each other. */
static int32_t common(int32_t V, uint64_t *seed)
{
    const int32_t k = below(seed, 4);
    return k == 3 ? V - 1 : k * V / 4;
}

/* Eighths on few tokens: borders that uniforms can meet, residuals without mass, rows in proportion. `mass` may be more
 * than 8. */
static void few_tokens(float *p, int32_t V, int32_t mass, uint64_t *seed)
{
    for (int32_t left = mass; left > 0;) {
        const int32_t t = common(V, seed), n = 1 + below(seed, left);
        if (p[t] > 0) {
            if (below(seed, 8) == 0) return;
            continue;
        }
        p[t] = (float)(n > 8 ? 8 : n) * 0.125f;
        left -= n;
    }
}

static void some_row(float *p, int32_t V, uint64_t *seed)
{
    const as_sampling how = {1.0f, below(seed, 3) ? 0 : 3, 1.0f, 0.0f};
    const int32_t kind = below(seed, 10);
    memset(p, 0, (size_t)V * sizeof *p);
    if (kind == 0) {
        p[common(V, seed)] = 1.0f;
    } else if (kind < 5 || V < 4) {
        few_tokens(p, V, kind == 1 ? 12 : 8, seed);
    } else if (kind == 5) { /* probabilities without weight */
        for (int32_t i = 0; i < V; i++) p[i] = 0x1p-47f * (float)below(seed, 3);
        p[common(V, seed)] = 1.0f;
    } else {
        float *x = malloc((size_t)V * sizeof *x);
        some_logits(x, V, (form)below(seed, FORMS), seed);
        ok(as_serve(x, V, &how, p, &why));
        free(x);
    }
}

static table make_table(int32_t V, uint64_t seed)
{
    const size_t bytes = (size_t)ROWS * (size_t)V * sizeof(float), v = (size_t)V * sizeof(float);
    table x = {.V = V, .p = malloc(bytes), .q = malloc(bytes), .logits = malloc(bytes)};
    for (int32_t i = 0; i < ROWS; i++) {
        some_row(row_of(x.p, V, i), V, &seed);
        some_row(row_of(x.q, V, i), V, &seed);
        some_logits(row_of(x.logits, V, i), V, (form)(i % FORMS), &seed);
        if (i % 4 == 1) memcpy(row_of(x.q, V, i), row_of(x.p, V, i), v);
        /* A good child of the greedy rule is not rare. */
        row_of(x.logits, V, i)[common(V, &seed)] = 1000.0f;
    }
    row_of(x.p, V, BAD)[V / 2] = NAN;
    row_of(x.q, V, BAD)[V - 1] = 1.5f;
    row_of(x.logits, V, BAD)[V / 2] = INFINITY;
    for (int32_t i = 0; i < V; i++) row_of(x.p, V, HEAVY)[i] = row_of(x.q, V, HEAVY)[i] = i < 2 ? 1.0f : 0.0f;
    x.d_p = on_device(x.p, bytes), x.d_q = on_device(x.q, bytes), x.d_logits = on_device(x.logits, bytes);
    x.p_state = on_device(NULL, ROWS * 4), x.q_state = on_device(NULL, ROWS * 4);
    x.logit_state = on_device(NULL, ROWS * 4);
    x.p_total = on_device(NULL, ROWS * 8), x.q_total = on_device(NULL, ROWS * 8);
    int32_t *top = on_device(NULL, ROWS * 4);
    ok(ag_check_rows(&device, x.d_p, NULL, ROWS, V, x.p_state, &why));
    ok(ag_check_rows(&device, x.d_q, NULL, ROWS, V, x.q_state, &why));
    ok(ag_argmax(&device, x.d_logits, NULL, ROWS, V, top, x.logit_state, &(ag_scratch){0}, &why));
    ok(ag_totals(&device, x.d_p, NULL, NULL, ROWS, V, x.p_total, &why));
    ok(ag_totals(&device, x.d_q, NULL, NULL, ROWS, V, x.q_total, &why));
    ag_free(top);
    return x;
}

static void discard_table(table *x)
{
    free(x->p), free(x->q), free(x->logits);
    ag_free(x->d_p), ag_free(x->d_q), ag_free(x->d_logits);
    ag_free(x->p_state), ag_free(x->q_state), ag_free(x->logit_state);
    ag_free(x->p_total), ag_free(x->q_total);
}

/* ---- Requests. -------------------------------------------------------------------------- */

/* The requests of a call, as ag_trees has them; and the faults that were planted. */
typedef struct {
    int32_t n;
    int32_t rule[MOST], nodes[MOST];
    int32_t token[MOST][CAPACITY], parent[MOST][CAPACITY], p_row[MOST][CAPACITY], q_row[MOST][CAPACITY],
        without[MOST][CAPACITY];
    double parameter[MOST][CAPACITY][2], u[MOST][CAPACITY];
    uint64_t last[MOST][2];
    bool given, work, plain; /* plain: neutral, no draws without replacement, all rows good */
    uint64_t seed, position;
    ag_tree_fault due[MOST];
} batch;

static bool uses_q(int32_t rule)
{
    return rule == AS_TREE_RECURSIVE || rule == AS_TREE_SINGLE || rule == AS_TREE_KSEQ || rule == AS_TREE_BLOCK ||
           rule == AS_TREE_LENIENT;
}

static int32_t children(const batch *b, int32_t r, int32_t at)
{
    int32_t n = 0;
    for (int32_t i = at + 1; i < b->nodes[r]; i++) n += b->parent[r][i] == at && b->token[r][i] >= 0;
    return n;
}

static bool is_present(const batch *b, int32_t r, int32_t i)
{
    while (i > 0 && b->token[r][i] >= 0) i = b->parent[r][i];
    return i == 0;
}

/* A multiple of 2^-29, often one of a few. */
static double some_uniform(uint64_t *seed)
{
    switch (below(seed, 6)) {
    case 0:
        return 0.125 * below(seed, 8);
    case 1:
        return 1.0 - 0x1p-29;
    case 2:
        return 0.0;
    default:
        return (double)(splitmix(seed) >> 35) * 0x1p-29;
    }
}

/* Where acceptance of a first child begins or ends, if there is such a place. */
static double border(float p, float q, uint64_t *seed)
{
    const double at = q > p ? (double)p / (double)q : 1.0;
    const double u = floor(at * 0x1p29) * 0x1p-29 + (double)(below(seed, 3) - 1) * 0x1p-29;
    return u < 0.0 ? 0.0 : u >= 1.0 ? 1.0 - 0x1p-29 : u;
}

static int32_t some_parent(int32_t rule, int32_t shape, int32_t i, uint64_t *seed)
{
    if (rule == AS_TREE_BLOCK || shape == 0) return i - 1;
    if (shape == 1) return 0;
    if (shape == 2) return (i - 1) / 3;
    return below(seed, 2) ? i - 1 : below(seed, i);
}

static void add_node(const table *x, batch *b, int32_t r, int32_t i, int32_t shape, uint64_t *seed)
{
    const int32_t V = x->V, up = some_parent(b->rule[r], shape, i, seed);
    int32_t before = -1; /* a sibling */
    for (int32_t k = 1; k < i; k++)
        if (b->parent[r][k] == up && b->token[r][k] >= 0) before = k;
    b->parent[r][i] = up;
    b->p_row[r][i] = below(seed, GOOD);
    const bool same = before > 0 && (b->without[r][up] || below(seed, 3) > 0);
    b->q_row[r][i] = same ? b->q_row[r][before] : below(seed, 5) ? below(seed, GOOD) : b->p_row[r][up];
    const float *p = row_of(x->p, V, b->p_row[r][up]), *q = row_of(x->q, V, b->q_row[r][i]);
    const int32_t kind = below(seed, 8);
    int32_t t = kind < 3    ? as_draw(q, V, splitmix(seed))
                : kind == 3 ? as_draw(p, V, splitmix(seed))
                : kind == 4 ? below(seed, V)
                            : common(V, seed);
    if (b->rule[r] == AS_TREE_GREEDY && kind < 4)
        (void)as_argmax(row_of(x->logits, V, b->p_row[r][up]), V, &t, NULL);
    if (before > 0 && below(seed, 6) == 0) t = b->token[r][before];
    b->token[r][i] = below(seed, 25) ? t : -1;
    b->u[r][i] = before < 0 && below(seed, 3) == 0 ? border(p[t], q[t], seed) : some_uniform(seed);
    b->without[r][i] = !b->plain && coin(seed);
}

static void set_parameter(batch *b, int32_t r, int32_t i, uint64_t *seed)
{
    static const double neutral[RULES][2] = {
        [AS_TREE_TARGET] = {1, 1}, [AS_TREE_TYPICAL] = {1}, [AS_TREE_CONSTANT] = {2}, [AS_TREE_LENIENT] = {1}};
    static const double alpha[] = {1, 1, 0.75, 0x1.99999ap-4, 0x1p-140}, sigma[] = {1, 1, 0.5, 0.125, 0x1p-47};
    const int32_t n = children(b, r, i), rule = b->rule[r];
    double *to = b->parameter[r][i];
    memcpy(to, neutral[rule], sizeof neutral[rule]);
    if (b->plain) return;
    if (rule == AS_TREE_TYPICAL || rule == AS_TREE_CONSTANT) to[0] = coin(seed) ? sigma[1 + below(seed, 4)] : 0x1p-12;
    if (rule == AS_TREE_TYPICAL && below(seed, 4) == 0) to[0] = 0;
    if (rule == AS_TREE_LENIENT) to[0] = alpha[below(seed, 4)];
    if (b->rule[r] == AS_TREE_TARGET) to[0] = alpha[below(seed, 5)], to[1] = sigma[below(seed, 5)];
    if (b->rule[r] == AS_TREE_KSEQ && n > 1 && coin(seed)) to[0] = 65536 + below(seed, (n - 1) * 65536 + 1);
}

static void make_request(const table *x, batch *b, int32_t r, int32_t most, uint64_t *seed)
{
    const int32_t shape = below(seed, 4), rule = below(seed, RULES + 5);
    b->rule[r] = rule < RULES ? rule : rule < RULES + 3 ? AS_TREE_RECURSIVE : AS_TREE_LENIENT; /* they keep most */
    b->nodes[r] = below(seed, 8) ? 1 + below(seed, most < 12 ? most : 12) : 1 + below(seed, most);
    b->token[r][0] = b->parent[r][0] = -1;
    const bool none = b->plain && b->rule[r] == AS_TREE_GREEDY && below(seed, 8) == 0;
    b->p_row[r][0] = none ? BAD : below(seed, GOOD), b->q_row[r][0] = -1;
    b->without[r][0] = !b->plain && coin(seed);
    b->u[r][0] = some_uniform(seed);
    for (int32_t i = 1; i < b->nodes[r]; i++) add_node(x, b, r, i, shape, seed);
    for (int32_t i = 0; i < b->nodes[r]; i++) {
        set_parameter(b, r, i, seed);
        if (b->plain || b->token[r][i] < 0 || is_present(b, r, i)) continue;
        b->p_row[r][i] = b->q_row[r][i] = coin(seed) ? -1 : BAD; /* nobody looks at them (TRV-04) */
        b->parameter[r][i][0] = -1;
    }
    b->last[r][0] = splitmix(seed), b->last[r][1] = splitmix(seed);
    b->due[r] = (ag_tree_fault){AG_TREE_GOOD, 0};
}

/* ---- Faults. ---------------------------------------------------------------------------- */

/* Spoils a request at some present node, if the fault can be there, and says which fault is due. */
static bool plant(const table *x, batch *b, int32_t r, ag_tree_fault_kind kind, uint64_t *seed)
{
    const int32_t i = below(seed, b->nodes[r]), rule = b->rule[r], n = children(b, r, i);
    const bool root = i == 0, has_q = !root && uses_q(rule);
    bool can = is_present(b, r, i);
    ag_tree_fault due = {kind, i};
    switch (can ? kind : AG_TREE_GOOD) {
    case AG_TREE_RULE:
        b->rule[r] = coin(seed) ? AS_TREE_RULES : -1, due.at = 0;
        break;
    case AG_TREE_NODES:
        b->nodes[r] = coin(seed) ? 0 : CAPACITY + 1, due.at = 0;
        break;
    case AG_TREE_PARENT:
        b->parent[r][i] = root ? 0 : coin(seed) ? i : -1;
        break;
    case AG_TREE_TOKEN:
        b->token[r][i] = root ? 0 : coin(seed) ? x->V : -2;
        break;
    case AG_TREE_NO_P:
        b->p_row[r][i] = -1;
        break;
    case AG_TREE_BAD_P:
        b->p_row[r][i] = BAD;
        break;
    case AG_TREE_HEAVY_P:
        can = rule != AS_TREE_GREEDY && x->V > 1;
        if (can) b->p_row[r][i] = HEAVY;
        break;
    case AG_TREE_NO_Q:
    case AG_TREE_BAD_Q:
    case AG_TREE_HEAVY_Q:
        can = has_q && !b->without[r][b->parent[r][i]] && (kind != AG_TREE_HEAVY_Q || x->V > 1);
        if (can) b->q_row[r][i] = kind == AG_TREE_NO_Q ? -1 : kind == AG_TREE_BAD_Q ? BAD : HEAVY;
        break;
    case AG_TREE_CHILDREN:
        can = rule == AS_TREE_BLOCK && n == 1 && b->nodes[r] < CAPACITY;
        if (!can) break;
        const int32_t k = b->nodes[r]++;
        b->token[r][k] = 0, b->parent[r][k] = i, b->p_row[r][k] = b->q_row[r][k] = 0, b->without[r][k] = 0;
        break;
    case AG_TREE_ROWS:
        can = uses_q(rule) && rule != AS_TREE_BLOCK && b->without[r][i] && n > 1;
        for (int32_t c = b->nodes[r] - 1, done = !can; !done; c--)
            if (b->parent[r][c] == i && b->token[r][c] >= 0)
                b->q_row[r][c] = (b->q_row[r][c] + 1) % GOOD, done = true;
        break;
    case AG_TREE_PARAMETER:
        can = n > (rule == AS_TREE_KSEQ) && (rule == AS_TREE_TARGET || rule == AS_TREE_KSEQ || rule >= AS_TREE_TYPICAL);
        if (can && rule == AS_TREE_TYPICAL) b->parameter[r][i][0] = -0x1p-140;
        if (can && rule == AS_TREE_CONSTANT) b->parameter[r][i][0] = coin(seed) ? 0 : -1;
        if (can && rule == AS_TREE_LENIENT) b->parameter[r][i][0] = coin(seed) ? 0 : 1.0 + 0x1p-20;
        if (can && rule == AS_TREE_TARGET) b->parameter[r][i][below(seed, 2)] = coin(seed) ? 0.0 : 1.0 + 0x1p-20;
        if (can && rule == AS_TREE_KSEQ)
            b->parameter[r][i][0] = below(seed, 3) ? (coin(seed) ? 65535 : n * 65536 + 1) : 65536.5;
        break;
    default:
        can = false;
    }
    if (can) b->due[r] = due;
    return can;
}

/* ---- The reference. --------------------------------------------------------------------- */

typedef struct {
    as_status status;
    int32_t out[CAPACITY + 1], path[CAPACITY + 1], length, node; /* node: of the refusal */
} answer;

static answer ask(const table *x, const batch *b, int32_t r)
{
    as_node node[CAPACITY + 1];
    as_error e = {0};
    answer a = {.node = -1};
    for (int32_t i = 0; i < b->nodes[r] && i < CAPACITY; i++) {
        const int32_t p = b->p_row[r][i], q = b->q_row[r][i];
        node[i] = (as_node){.token = b->token[r][i],
                            .parent = b->parent[r][i],
                            .p = p < 0 ? NULL : row_of(b->rule[r] == AS_TREE_GREEDY ? x->logits : x->p, x->V, p),
                            .q = q < 0 ? NULL : row_of(x->q, x->V, q),
                            .without = b->without[r][i],
                            .parameter = {b->parameter[r][i][0], b->parameter[r][i][1]}};
    }
    const as_tree_step s = {.rule = (as_tree_rule)b->rule[r],
                            .V = x->V,
                            .nodes = b->nodes[r],
                            .node = node,
                            .u = b->given ? b->u[r] : NULL,
                            .residual = b->last[r][0],
                            .bonus = b->last[r][1],
                            .seed = b->seed + (uint64_t)r,
                            .position = b->position};
    a.status = as_verify_nodes(&s, a.out, a.path, &a.length, &e);
    if (a.status != AS_OK) (void)sscanf(e.text, "node %d", &a.node);
    return a;
}

/* ---- What occurs. ------------------------------------------------------------------------ */

/* Events, by rule; `depth` by the depth that was reached. */
typedef struct {
    long requests[RULES], bonus[RULES], refused[RULES], sibling[RULES], repeat[RULES], again[RULES], depth[6];
    long empty_first, empty_later, without, given, seeded, large, faults[AG_TREE_WORK + 1];
} events;

/* Of a node all of whose children RECURSIVE refused: the child whose refusal left nothing; -1: none did. By the
 * clauses, without the powers of two, which decide no emptiness here: the rows are eighths, or the answer is -1. */
static int32_t emptied_by(const table *x, const batch *b, int32_t r, int32_t at)
{
    const int32_t V = x->V;
    const float *p = row_of(x->p, V, b->p_row[r][at]);
    double *R = malloc((size_t)V * sizeof *R), Z = 0;
    int32_t nth = 0, found = -1;
    for (int32_t v = 0; v < V; v++) R[v] = (double)p[v], Z += R[v];
    for (int32_t i = at + 1; i < b->nodes[r] && found < 0; i++) {
        if (b->parent[r][i] != at || b->token[r][i] < 0) continue;
        const float *q = row_of(x->q, V, b->q_row[r][i]);
        double W = 0, left = 0;
        for (int32_t v = 0; v < V; v++) W += (double)q[v];
        for (int32_t v = 0; v < V; v++) {
            const double rest = R[v] - (double)q[v] * (nth ? Z / W : 1);
            left += R[v] = rest > 0 ? rest : 0;
        }
        Z = left;
        if (left == 0) found = nth;
        nth++;
    }
    free(R);
    return found;
}

static void count(const table *x, const batch *b, int32_t r, const answer *a, events *seen)
{
    const int32_t rule = b->rule[r], kept = a->length - 1, end = kept ? a->path[kept - 1] : 0;
    const int32_t n = children(b, r, end);
    seen->requests[rule]++;
    seen->depth[kept < 5 ? kept : 5]++;
    seen->large += x->V >= 32000;
    seen->given += b->given, seen->seeded += !b->given;
    seen->bonus[rule] += n == 0, seen->refused[rule] += n > 0;
    if (rule == AS_TREE_RECURSIVE && n > 0) {
        const int32_t by = emptied_by(x, b, r, end);
        seen->empty_first += by == 0, seen->empty_later += by > 0;
    }
    for (int32_t k = 0; k < kept; k++) {
        const int32_t node = a->path[k], up = k ? a->path[k - 1] : 0;
        int32_t before = 0, same = 0;
        for (int32_t i = up + 1; i < node; i++)
            if (b->parent[r][i] == up && b->token[r][i] >= 0) before++, same += b->token[r][i] == b->token[r][node];
        seen->sibling[rule] += before > 0;
        seen->again[rule] += same > 0;
        seen->without += rule == AS_TREE_RECURSIVE && before > 1 && b->without[r][up];
    }
}

/* ---- Calls. ----------------------------------------------------------------------------- */

typedef struct {
    int32_t out[MOST][CAPACITY], path[MOST][CAPACITY], length[MOST];
    ag_tree_fault fault[MOST];
} result;

static void check_request(const table *x, const batch *b, int32_t r, const result *got, events *seen)
{
    const ag_tree_fault due = b->due[r], is = got->fault[r];
    const bool ours = due.kind == AG_TREE_RULE || due.kind == AG_TREE_NODES || due.kind == AG_TREE_BAD_P ||
                      due.kind == AG_TREE_BAD_Q || due.kind == AG_TREE_WORK; /* no fault of the reference's */
    char what[160];
    snprintf(what, sizeof what, "V %d, request %d of %d, rule %d, %d nodes, given %d", (int)x->V, (int)r, (int)b->n,
             (int)b->rule[r], (int)b->nodes[r], b->given);
    ck_assert_msg(is.kind == due.kind && is.at == due.at, "%s: fault %d at %d, not %d at %d", what, (int)is.kind,
                  (int)is.at, (int)due.kind, (int)due.at);
    seen->faults[is.kind]++;
    if (is.kind != AG_TREE_GOOD) ck_assert_int_eq(got->length[r], 0);
    if (ours) return;
    const answer a = ask(x, b, r);
    ck_assert_msg((a.status == AS_OK) == (is.kind == AG_TREE_GOOD), "%s: status %d", what, (int)a.status);
    if (a.status != AS_OK) {
        ck_assert_msg(a.node == is.at, "%s: refused at %d, not %d", what, (int)is.at, (int)a.node);
        return;
    }
    ck_assert_msg(got->length[r] == a.length, "%s: length %d, not %d", what, (int)got->length[r], (int)a.length);
    for (int32_t k = 0; k < CAPACITY; k++) {
        const int32_t out = k < a.length ? a.out[k] : -1, path = k + 1 < a.length ? a.path[k] : -1;
        ck_assert_msg(got->out[r][k] == out, "%s: token %d is %d, not %d", what, (int)k, (int)got->out[r][k], (int)out);
        ck_assert_msg(got->path[r][k] == path, "%s: node %d is %d, not %d", what, (int)k, (int)got->path[r][k],
                      (int)path);
    }
    count(x, b, r, &a, seen);
}

/* One launch for the whole call. */
static void check_batch(const table *x, const batch *b, events *seen)
{
    const size_t n = (size_t)b->n;
    static result got;
    void *rule = on_device(b->rule, n * 4), *nodes = on_device(b->nodes, n * 4),
         *token = on_device(b->token, n * sizeof *b->token), *parent = on_device(b->parent, n * sizeof *b->parent),
         *p_row = on_device(b->p_row, n * sizeof *b->p_row), *q_row = on_device(b->q_row, n * sizeof *b->q_row),
         *without = on_device(b->without, n * sizeof *b->without),
         *parameter = on_device(b->parameter, n * sizeof *b->parameter), *u = on_device(b->u, n * sizeof *b->u),
         *last = on_device(b->last, n * sizeof *b->last), *work = on_device(NULL, n * 2 * (size_t)x->V * 8),
         *out = on_device(NULL, n * sizeof *got.out), *path = on_device(NULL, n * sizeof *got.path),
         *length = on_device(NULL, n * 4), *fault = on_device(NULL, n * sizeof *got.fault);
    const ag_trees t = {.n = b->n,
                        .capacity = CAPACITY,
                        .V = x->V,
                        .p = x->d_p,
                        .q = x->d_q,
                        .logits = x->d_logits,
                        .p_state = b->plain ? NULL : x->p_state,
                        .q_state = b->plain ? NULL : x->q_state,
                        .logit_state = b->plain ? NULL : x->logit_state,
                        .p_total = x->p_total,
                        .q_total = x->q_total,
                        .rule = rule,
                        .nodes = nodes,
                        .token = token,
                        .parent = parent,
                        .p_row = p_row,
                        .q_row = q_row,
                        .without = b->plain ? NULL : without,
                        .parameter = b->plain ? NULL : parameter,
                        .u = b->given ? u : NULL,
                        .last = last,
                        .seeds = {NULL, NULL, b->seed, b->position, NULL},
                        .work = b->work ? work : NULL,
                        .out = out,
                        .path = path,
                        .length = length,
                        .fault = fault};
    const uint64_t before = emu_launches();
    ok(ag_verify_trees(&device, &t, &why));
    ck_assert_uint_eq(emu_launches(), before + 1);
    fetch(got.out, out, n * sizeof *got.out);
    fetch(got.path, path, n * sizeof *got.path);
    fetch(got.length, length, n * 4);
    fetch(got.fault, fault, n * sizeof *got.fault);
    for (int32_t r = 0; r < b->n; r++) check_request(x, b, r, &got, seen);
    ag_free(rule), ag_free(nodes), ag_free(token), ag_free(parent), ag_free(p_row), ag_free(q_row), ag_free(without);
    ag_free(parameter), ag_free(u), ag_free(last), ag_free(work);
}

static batch make_batch(const table *x, int32_t n, int32_t most, bool spoil, uint64_t *seed)
{
    batch b = {.n = n,
               .given = coin(seed),
               .work = !spoil || below(seed, 4) > 0,
               .plain = !spoil && below(seed, 4) == 0};
    b.seed = splitmix(seed), b.position = UINT64_C(0xfffffffe) + (uint64_t)below(seed, 3);
    for (int32_t r = 0; r < n; r++) {
        make_request(x, &b, r, most, seed);
        for (int32_t i = 0; !b.work && i < b.nodes[r]; i++)
            if ((b.rule[r] == AS_TREE_RECURSIVE || b.rule[r] == AS_TREE_LENIENT) && b.due[r].kind == AG_TREE_GOOD &&
                is_present(&b, r, i) && children(&b, r, i) > 1)
                b.due[r] = (ag_tree_fault){AG_TREE_WORK, i};
        if (!spoil || !b.work || below(seed, 3) == 0) continue;
        for (int32_t i = 0; b.rule[r] == AS_TREE_KSEQ && i < b.nodes[r]; i++) b.parameter[r][i][0] = 0;
        const bool chain = b.rule[r] == AS_TREE_BLOCK && below(seed, 3) == 0;
        const int32_t kind = chain ? AG_TREE_CHILDREN : 1 + below(seed, AG_TREE_WORK - 1);
        for (int32_t tries = 0; tries < 30 && !plant(x, &b, r, (ag_tree_fault_kind)kind, seed); tries++) {}
    }
    return b;
}

/* Calls over rows of V, on a device with so many processors and blocks of a cluster. */
static void check_calls(int32_t V, int32_t calls, int32_t most, int processors, int clusters, bool spoil, uint64_t seed,
                        events *seen)
{
    open_device(processors, clusters);
    table x = make_table(V, seed);
    for (int32_t i = 0; i < calls; i++) {
        batch *b = malloc(sizeof *b);
        *b = make_batch(&x, V < 20000 ? 1 + below(&seed, MOST) : 3, most, spoil, &seed);
        emu_order((uint64_t)i);
        check_batch(&x, b, seen);
        free(b);
    }
    discard_table(&x);
    ag_device_close(&device);
}

/* Of the whole sample there have to be so many; of a part of it in proportion, less two standard deviations. */
static void at_least(long whole, long n, const char *what, int32_t which)
{
    const long least = least_events(whole, test_scale());
    ck_assert_msg(n >= least, "%s %d: %ld, not %ld", what, (int)which, n, least);
}

START_TEST(requests)
{
    static const struct {
        int32_t V, calls, most;
    } size[] = {{1, 6, 12},    {2, 10, 40},   {3, 12, 40},   {7, 20, 128},  {32, 40, 128}, {64, 30, 128},
                {128, 24, 60}, {1000, 8, 40}, {2100, 4, 24}, {4200, 4, 24}, {9001, 4, 24}};
    static const struct {
        int processors, clusters; /* blocks of a request: 1; 1 or, of few, 2; up to 8 */
    } on[] = {{1, 1}, {20, 8}, {400, 8}};
    events seen = {0};
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (size_t k = 0; k < sizeof on / sizeof *on; k++)
            check_calls(size[i].V, scaled(size[i].calls), size[i].most, on[k].processors, on[k].clusters, false,
                        100 * i + k, &seen);
    check_calls(32000, 2, 12, 400, 8, false, 7, &seen);
    check_calls(152064, 2, 6, 400, 8, false, 8, &seen);
    at_least(4000, seen.given + seen.seeded, "requests", 0);
    at_least(1500, seen.given, "requests with uniforms", 0);
    at_least(1500, seen.seeded, "requests with seeds", 0);
    at_least(12, seen.large, "requests over large vocabularies", 0);
    for (int32_t r = 0; r < RULES; r++) {
        at_least(220, seen.requests[r], "requests of rule", r);
        at_least(50, seen.bonus[r], "bonus tokens of rule", r);
        at_least(80, seen.refused[r], "nodes whose children were refused, of rule", r);
        if (r != AS_TREE_BLOCK) at_least(15, seen.sibling[r], "siblings accepted behind a refused one, of rule", r);
    }
    at_least(5, seen.again[AS_TREE_SINGLE], "refused tokens accepted later, of rule", AS_TREE_SINGLE);
    at_least(8, seen.again[AS_TREE_KSEQ], "refused tokens accepted later, of rule", AS_TREE_KSEQ);
    for (int32_t d = 0; d < 6; d++) at_least(30, seen.depth[d], "steps that keep so many nodes", d);
    at_least(20, seen.empty_first, "first refusals that leave nothing", 0);
    at_least(2, seen.empty_later, "later refusals that leave nothing", 0);
    at_least(8, seen.without, "children accepted without replacement behind two", 0);
}
END_TEST

/* ---- Borders. --------------------------------------------------------------------------- */

/* One uniform of a request as an integer: the word behind a choice in vain, that of the bonus, or of a test. */
static void set_uniform(batch *b, int32_t r, int32_t which, uint64_t word)
{
    const bool fine = b->rule[r] <= AS_TREE_ONEHOT; /* 53 bits; tests have 29 */
    if (which < 0)
        b->last[r][which + 2] = word;
    else
        b->u[r][which] = fine ? (double)(word >> 11) * 0x1p-53 : (double)(word >> 35) * 0x1p-29;
}

static bool same_answer(const answer *a, const answer *b)
{
    return a->length == b->length && memcmp(a->out, b->out, (size_t)a->length * 4) == 0 &&
           memcmp(a->path, b->path, (size_t)(a->length - 1) * 4) == 0;
}

/* Sets one uniform of request r at a place where the reference's answer changes, and of request r + 1 right behind
 * it, if there is such a place: a sum that is off by one unit gives another answer. */
static bool split(const table *x, batch *b, int32_t r, int32_t which)
{
    uint64_t low = 0, high = UINT64_MAX;
    set_uniform(b, r, which, low);
    const answer lowest = ask(x, b, r);
    set_uniform(b, r, which, high);
    const answer highest = ask(x, b, r);
    if (same_answer(&lowest, &highest)) return false;
    while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        set_uniform(b, r, which, middle);
        const answer a = ask(x, b, r);
        if (same_answer(&lowest, &a)) low = middle;
        else high = middle;
    }
    set_uniform(b, r, which, low);
    set_uniform(b, r + 1, which, high);
    return true;
}

static void copy_request(batch *b, int32_t to, int32_t from)
{
    b->rule[to] = b->rule[from], b->nodes[to] = b->nodes[from], b->due[to] = b->due[from];
    memcpy(b->token[to], b->token[from], sizeof *b->token), memcpy(b->parent[to], b->parent[from], sizeof *b->parent);
    memcpy(b->p_row[to], b->p_row[from], sizeof *b->p_row), memcpy(b->q_row[to], b->q_row[from], sizeof *b->q_row);
    memcpy(b->without[to], b->without[from], sizeof *b->without), memcpy(b->u[to], b->u[from], sizeof *b->u);
    memcpy(b->parameter[to], b->parameter[from], sizeof *b->parameter);
    memcpy(b->last[to], b->last[from], sizeof *b->last);
}

START_TEST(borders)
{
    static const int32_t V[] = {2, 3, 4, 7, 33, 100, 500};
    events seen = {0};
    long of_test = 0, of_draw = 0;
    uint64_t seed = 17;
    open_device(4, 8);
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        table x = make_table(V[i], 60 + i);
        batch *b = malloc(sizeof *b);
        for (int32_t calls = 0; calls < scaled(V[i] < 200 ? 30 : 6); calls++) {
            *b = (batch){.n = MOST, .given = true, .work = true};
            for (int32_t r = 0; r < MOST; r += 2) {
                make_request(&x, b, r, 12, &seed);
                copy_request(b, r + 1, r);
                for (int32_t tries = 0; tries < 6; tries++) {
                    const int32_t which = below(&seed, 3) ? below(&seed, b->nodes[r]) : -1 - below(&seed, 2);
                    const batch before = *b;
                    if (split(&x, b, r, which)) {
                        of_test += which >= 0, of_draw += which < 0;
                        break;
                    }
                    *b = before;
                }
            }
            check_batch(&x, b, &seen);
        }
        free(b);
        discard_table(&x);
    }
    at_least(200, of_test, "borders of tests", 0);
    at_least(300, of_draw, "borders of draws", 0);
    ag_device_close(&device);
}
END_TEST

/* Every fault but AG_TREE_GOOD is due, and told, some time. */
START_TEST(faults)
{
    static const int32_t V[] = {1, 2, 7, 64, 300};
    events seen = {0};
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) check_calls(V[i], 50, 40, 4, 8, true, 30 + i, &seen);
    for (int32_t k = 0; k <= AG_TREE_WORK; k++)
        ck_assert_msg(seen.faults[k] >= 5, "fault %d: %ld", (int)k, seen.faults[k]);
}
END_TEST

/* ---- By hand. --------------------------------------------------------------------------- */

enum { SMALL = 4, FEW = 4 };

/* A root and its children, child i with row i of q; RECURSIVE, or LENIENT if the root has a lenience. */
typedef struct {
    float p[SMALL], q[FEW][SMALL];
    int32_t nodes, token[FEW];
    double lenience, u[FEW];
    bool without;
    uint64_t residual;
    int32_t length; /* of the answer */
} small_tree;

/* The first token of the step. */
static int32_t first_token(small_tree *s)
{
    const int32_t rule = s->lenience > 0 ? AS_TREE_LENIENT : AS_TREE_RECURSIVE, parent[FEW] = {-1}, p_row[FEW] = {0};
    const int32_t q_row[] = {-1, 1, s->without ? 1 : 2, s->without ? 1 : 3}, without[] = {s->without, 0, 0, 0};
    const double parameter[FEW][2] = {{s->lenience}, {1}, {1}, {1}};
    const uint64_t last[] = {s->residual, 0};
    int32_t out[FEW];
    ag_tree_fault fault;
    ag_trees t = {.n = 1, .capacity = FEW, .V = SMALL};
    uint64_t *total = on_device(NULL, FEW * 8), *one = on_device(NULL, 8);
    t.p = on_device(s->p, sizeof s->p), t.q = on_device(s->q, sizeof s->q);
    ok(ag_totals(&device, t.p, NULL, NULL, 1, SMALL, one, &why));
    ok(ag_totals(&device, t.q, NULL, NULL, FEW, SMALL, total, &why));
    t.p_total = one, t.q_total = total;
    t.rule = on_device(&rule, 4), t.nodes = on_device(&s->nodes, 4);
    t.token = on_device(s->token, sizeof s->token), t.parent = on_device(parent, sizeof parent);
    t.without = on_device(without, sizeof without), t.parameter = on_device(parameter, sizeof parameter);
    t.p_row = on_device(p_row, sizeof p_row), t.q_row = on_device(q_row, sizeof q_row);
    t.u = on_device(s->u, sizeof s->u), t.last = on_device(last, sizeof last);
    t.work = on_device(NULL, 2 * SMALL * 8);
    t.out = on_device(NULL, sizeof out), t.path = on_device(NULL, sizeof out), t.length = on_device(NULL, 4);
    t.fault = on_device(NULL, sizeof fault);
    ok(ag_verify_trees(&device, &t, &why));
    fetch(out, t.out, sizeof out), fetch(&s->length, t.length, 4);
    fetch(&fault, t.fault, sizeof fault);
    ck_assert_int_eq(fault.kind, AG_TREE_GOOD);
    const void *const taken[] = {t.p,     t.q,     one, total,  t.rule, t.nodes, t.token,   t.parent,
                                 t.p_row, t.q_row, t.u, t.last, t.work, t.path,  t.without, t.parameter};
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) ag_free((void *)taken[i]);
    return out[0];
}

/* SIB-05: the first child leaves (0, 1/2, 0, 0), of which the second takes all. So that is what is drawn from, and the
 * third is not tested, which would be accepted. */
START_TEST(nothing_left)
{
    small_tree s = {.p = {.5f, .5f},
                    .q = {{0}, {.5f, 0, .5f}, {0, 1}, {0, 0, .5f, .5f}},
                    .nodes = 4,
                    .token = {-1, 2, 3, 1}};
    open_device(1, 1);
    ck_assert_int_eq(first_token(&s), 1);
    ck_assert_int_eq(s.length, 1);
    ag_device_close(&device);
}
END_TEST

/* SIB-03: R = (3/8, 3/8, 2^-44, 0) and Z = 3 * 2^43 + 2. The second child takes a quarter of Z from the first token,
 * 3 * 2^41 and a half: so 3 * 2^41 of 9 * 2^41 + 2 are left there. The words are the last of token 0 and the first of
 * 1. */
START_TEST(quotients_are_rounded)
{
    const uint64_t part = UINT64_C(3) << 41, all = 3 * part + 2;
    small_tree s = {.p = {.375f, .375f, 0x1p-44f},
                    .q = {{0}, {0, 0, 0, 1}, {.25f, 0, 0, .75f}},
                    .nodes = 3,
                    .token = {-1, 3, 3, -1},
                    .residual = (uint64_t)((((as_u128)part << 64) + all - 1) / all)};
    open_device(1, 1);
    ck_assert_int_eq(first_token(&s), 1);
    s.residual--;
    ck_assert_int_eq(first_token(&s), 0);
    ck_assert_int_eq(s.length, 1);
    /* Three eighths: 9 * 2^40 and three quarters, which leaves 3 * 2^40 - 1 of 15 * 2^40 + 1. */
    const uint64_t unit = UINT64_C(1) << 40;
    s.q[2][0] = .375f, s.q[2][3] = .625f;
    s.residual = (uint64_t)((((as_u128)(3 * unit - 1) << 64) + 15 * unit) / (15 * unit + 1));
    ck_assert_int_eq(first_token(&s), 1);
    s.residual--;
    ck_assert_int_eq(first_token(&s), 0);
    ag_device_close(&device);
}
END_TEST

/* LEN-01: l = 1/2, p = (1/2, 1/2, 0, 0) and q = (1/4, 0, 3/4, 0). The refusal of token 2 leaves 3/8 and 1/2, and W is
 * 1/4. So token 0 is accepted iff u / 8 * 7/8 < 3/8 * 1/4, that is u < 6/7. */
START_TEST(lenience_leaves_w)
{
    small_tree s = {.p = {.5f, .5f},
                    .q = {{0}, {.25f, 0, .75f}},
                    .nodes = 3,
                    .token = {-1, 2, 0},
                    .lenience = .5,
                    .without = true,
                    .u = {0, 0, 0.85546875}};
    open_device(1, 1);
    ck_assert_int_eq(first_token(&s), 0);
    ck_assert_int_eq(s.length, 2);
    s.u[2] = 0.859375;
    ck_assert_int_eq(first_token(&s), 1);
    ck_assert_int_eq(s.length, 1);
    ag_device_close(&device);
}
END_TEST

START_TEST(errors)
{
    const ag_trees none = {.n = 1, .capacity = 0, .V = 8}, many = {.n = 1, .capacity = AG_TREE_CAPACITY + 1, .V = 8},
                   empty = {.n = 0, .capacity = 4, .V = 8}, wide = {.n = 1, .capacity = 4, .V = AS_MAX_VOCAB + 1};
    open_device(4, 8);
    ck_assert_int_eq(ag_verify_trees(&device, &none, &why), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(why.text, "0 nodes"));
    ck_assert_int_eq(ag_verify_trees(&device, &many, &why), AS_LIMIT);
    ck_assert_ptr_nonnull(strstr(why.text, "1025 nodes"));
    ck_assert_int_eq(ag_verify_trees(&device, &empty, &why), AS_BAD_INPUT);
    ck_assert_int_eq(ag_verify_trees(&device, &wide, &why), AS_BAD_INPUT);
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("verify_tree");
    tcase_add_test(tests, requests);
    tcase_add_test(tests, borders);
    tcase_add_test(tests, faults);
    tcase_add_test(tests, nothing_left);
    tcase_add_test(tests, quotients_are_rounded);
    tcase_add_test(tests, lenience_leaves_w);
    tcase_add_test(tests, errors);
    return suite_main_within("gpu verify_tree", tests, 600);
}
