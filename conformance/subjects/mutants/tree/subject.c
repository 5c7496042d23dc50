/* subject.c - see subject.h. Requests are checked here: TRV-01, TRV-07, and what the clauses of the rules refuse. */
#include "conformance/subjects/mutants/tree/subject.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/mutants/chain/subject.h"
#include "conformance/subjects/mutants/tree/walk.h"
#include "ref/num/fixed.h"

enum {
    ANY = IUT_TREE_TARGET | IUT_TREE_MATCH | IUT_TREE_GREEDY | IUT_TREE_ONEHOT,
    DRAWN = IUT_TREE_RECURSIVE | IUT_TREE_KSEQ | IUT_TREE_BLOCK | IUT_TREE_SINGLE,
    LOSSY = IUT_TREE_TYPICAL | IUT_TREE_LENIENT | IUT_TREE_CONSTANT,
    USES_Q = DRAWN | IUT_TREE_LENIENT | IUT_TREE_OTHER,
    MOST_CHILDREN = 4096,
    SMALL_NODES = 7
};

bool tree_setting(manner how)
{
    return how >= MANNER_TREE && how <= MANNER_TREE_IID;
}

static iut_status claims(iut *x, iut_claims *c)
{
    const iut_status st = subject_operations.claims(x, c);
    const model *m = subject_model((subject *)x);
    const manner how = m->set.manner;
    c->tree_rules = ANY | DRAWN | LOSSY;
    c->tree_drawn = IUT_DRAWN_FIXED | IUT_DRAWN_IID | IUT_DRAWN_WITHOUT | IUT_DRAWN_MIXED;
    if (how == MANNER_TREE_FIXED) c->tree_rules = ANY, c->tree_drawn = IUT_DRAWN_FIXED;
    if (how == MANNER_TREE_OTHER) c->tree_rules = IUT_TREE_OTHER, c->tree_drawn = IUT_DRAWN_IID;
    if (how == MANNER_TREE_OTHER_ANY) c->tree_rules = IUT_TREE_OTHER, c->tree_drawn = IUT_DRAWN_FIXED;
    if (how == MANNER_TREE_IID) c->tree_rules = ANY, c->tree_drawn = IUT_DRAWN_IID;
    if (how == MANNER_TREE_SMALL) c->max_nodes = SMALL_NODES, c->max_children = 2, c->max_gamma = 3;
    if (how == MANNER_TREE_ONE_COIN) c->tree_coins = IUT_COINS_ONE;
    if (how == MANNER_TREE_RACE) c->tree_coins = IUT_COINS_RACE;
    if (how == MANNER_TREE_GIVEN) c->tree_bonus = IUT_BONUS_GIVEN;
    if (how == MANNER_TREE_LAST_OF_EQUAL) c->tree_bonus |= IUT_BONUS_GIVEN;
    if (how == MANNER_TREE_VOCAB) c->draft_vocab = IUT_VOCAB_PANEL;
    c->tree_sampling = m->set.input == IUT_FROM_LOGITS || how == MANNER_TREE_SAMPLED;
    c->lossless_any = c->tree_rules & ANY;
    c->lossless_drawn = c->tree_rules & (DRAWN | IUT_TREE_OTHER);
    if (how == MANNER_TREE_OTHER_ANY) c->lossless_any = IUT_TREE_OTHER;
    if (fault(m->fault, TREE_RECURSIVE_FOR_ANY)) c->lossless_any |= IUT_TREE_RECURSIVE;
    return st;
}

/* ---- What a request may be. -------------------------------------------------------------- */

typedef struct {
    subject *a;
    walk w;
    int32_t *children, *first; /* [nodes] how many; the first */
} asked;

static iut_status refuse(const asked *q, int32_t node, const char *what, double value)
{
    return subject_fail(q->a, IUT_BAD_INPUT, "request %d, node %d: %s %g", (int)q->w.i, (int)node, what, value);
}

static bool in_unit(double x)
{
    return x > 0 && x <= 1;
}

static iut_status check_parameter(const asked *q, int32_t k)
{
    const walk *w = &q->w;
    const double x = walk_parameter(w, k, 0), y = walk_parameter(w, k, 1), K = q->children[k];
    const bool fine = w->rule == IUT_TREE_TARGET     ? in_unit(x) && in_unit(y)
                      : w->rule == IUT_TREE_LENIENT  ? in_unit(x)
                      : w->rule == IUT_TREE_TYPICAL  ? x >= 0
                      : w->rule == IUT_TREE_CONSTANT ? x > 0
                      : w->rule == IUT_TREE_KSEQ
                          ? x == 0 || K == 1 || (x >= 65536 && x <= K * 65536 && x == floor(x))
                          : true;
    return fine ? IUT_OK : refuse(q, k, "the parameter is", x);
}

/* TRV-07. */
static iut_status check_total(const asked *q, int32_t k, const float *row)
{
    uint64_t total = 0;
    for (int32_t x = 0; x < q->w.m->V; x++) total += as_weight(row[x]);
    return total >> 45 ? refuse(q, k, "the total of a row is", (double)total) : IUT_OK;
}

static iut_status check_rows(const asked *q, int32_t k)
{
    const walk *w = &q->w;
    const iut_tree_batch *b = w->b;
    const int32_t at = w->from + k;
    const bool uses_q = k > 0 && (w->rule & USES_Q);
    const bool panels = !b->samplings && w->rule != IUT_TREE_GREEDY;
    if (b->state[at] < 0 || b->state[at] >= w->m->S) return refuse(q, k, "there is no state", b->state[at]);
    if (uses_q && (b->q_state[at] < 0 || b->q_state[at] >= w->m->S))
        return refuse(q, k, "there is no row q", b->q_state[at]);
    if (!panels) return IUT_OK;
    iut_status st = subject_check_state(q->a, b->state[at], false);
    if (st == IUT_OK) st = check_total(q, k, rule_row(w->m, w->m->p, b->state[at]));
    if (st == IUT_OK && uses_q) st = subject_check_state(q->a, b->q_state[at], true);
    if (st == IUT_OK && uses_q) st = check_total(q, k, rule_row(w->m, w->m->q, b->q_state[at]));
    return st;
}

static iut_status check_node(asked *q, int32_t k)
{
    walk *w = &q->w;
    const iut_tree_batch *b = w->b;
    const int32_t at = w->from + k, parent = b->parent[at], token = b->token[at], V = w->m->V;
    if (k == 0 ? parent != -1 : parent < 0 || parent >= k) return refuse(q, k, "the parent is", parent);
    if (token < -1 || token >= V || (k == 0 && token != -1)) return refuse(q, k, "the token is", token);
    if (walk_absent(w, k)) return IUT_OK;
    if (k > 0 && q->children[parent]++ == 0) q->first[parent] = k;
    if (k > 0 && q->children[parent] > MOST_CHILDREN) return refuse(q, parent, "too many children:", q->children[parent]);
    if (k > 0 && w->rule == IUT_TREE_BLOCK && q->children[parent] > 1 && !fault(w->m->fault, TREE_BLOCK_TAKES_BRANCHES))
        return refuse(q, parent, "block verification takes one child, not", q->children[parent]);
    if (k > 0 && (w->rule & USES_Q) && b->drawn[w->from + parent] == IUT_DRAWN_WITHOUT &&
        b->q_state[at] != b->q_state[w->from + q->first[parent]])
        return refuse(q, parent, "siblings without replacement have another row, of state", b->q_state[at]);
    return check_rows(q, k);
}

/* Under faults, a list that should be refused is put right. */
static iut_status mend(const asked *q)
{
    const walk *w = &q->w;
    int32_t *token = (int32_t *)w->b->token + w->from, *parent = (int32_t *)w->b->parent + w->from;
    for (int32_t k = 1; k < w->nodes; k++) {
        if (fault(w->m->fault, TREE_TOKEN_CLAMPED) && token[k] >= w->m->V) token[k] = w->m->V - 1;
        if (fault(w->m->fault, TREE_PARENT_UNCHECKED) && (parent[k] >= k || parent[k] < 0)) parent[k] = 0;
    }
    return IUT_OK;
}

static iut_status check(asked *q)
{
    walk *w = &q->w;
    if (fault(w->m->fault, TREE_LIMIT_ONE_SHORT) && w->nodes >= SMALL_NODES)
        return refuse(q, 0, "too many nodes:", w->nodes);
    iut_status st = mend(q);
    memset(q->children, 0, (size_t)w->nodes * sizeof *q->children);
    for (int32_t k = 0; k < w->nodes && st == IUT_OK; k++) st = check_node(q, k);
    for (int32_t k = 0; k < w->nodes && st == IUT_OK; k++)
        if (q->children[k] > 0) st = check_parameter(q, k);
    return st;
}

/* ---- A draft with ids of its own: VOC-01. ------------------------------------------------ */

/* A row over the draft's ids becomes one over the target's; the others have `none`. */
static void spread(subject *a, const iut_panel *panel, const float *own, float none, float *to)
{
    for (int32_t x = 0; x < panel->V; x++) to[x] = none;
    for (int32_t k = 0; k < panel->draft_V; k++)
        to[fault(subject_model(a)->fault, TREE_DRAFT_IDS_UNMAPPED) ? k : panel->d2t[k]] = own[k];
}

static iut_status load_panel(iut *x, const iut_panel *panel)
{
    subject *a = (subject *)x;
    iut_panel whole = *panel;
    if (subject_model(a)->set.manner != MANNER_TREE_VOCAB || panel->draft_V == 0)
        return subject_operations.panel(x, panel);
    const size_t V = (size_t)panel->V, S = (size_t)panel->S, own = (size_t)panel->draft_V;
    float *q = calloc(S * V, sizeof *q), *logit = calloc(S * V, sizeof *logit);
    for (size_t s = 0; q && logit && s < S; s++) {
        const size_t at = s * (fault(subject_model(a)->fault, TREE_DRAFT_ROWS_OF_V) ? V : own) % (S * own - own + 1);
        spread(a, panel, panel->draft_q + at, 0, q + s * V);
        spread(a, panel, panel->draft_q_logit + at, -INFINITY, logit + s * V);
    }
    whole.q = q, whole.q_logit = logit;
    const iut_status st = q && logit ? subject_operations.panel(x, &whole)
                                     : subject_fail(a, IUT_NO_MEMORY, "panel: out of memory");
    free(q), free(logit);
    return st;
}

/* ---- The operation. ---------------------------------------------------------------------- */

/* TRV-08. */
static int32_t rule_of(const walk *w)
{
    const iut_tree_batch *b = w->b;
    int32_t i = fault(w->m->fault, TREE_RULE_OF_FIRST) ? 0 : w->i;
    if (fault(w->m->fault, TREE_REQUEST_BY_ROW)) i = w->from < b->n ? w->from : b->n - 1;
    const double T = b->samplings ? b->sampling[b->sampling_of[i]].temperature : w->m->target.temperature;
    const bool logits = b->samplings || w->m->set.input == IUT_FROM_LOGITS;
    const bool greedy = logits && T == 0 && !fault(w->m->fault, TREE_GREEDY_IS_DRAWN);
    return greedy || fault(w->m->fault, TREE_ALWAYS_GREEDY) ? IUT_TREE_GREEDY : b->rule[i];
}

static bool open_walk(asked *q, const model *m, const iut_tree_batch *b)
{
    const size_t V = (size_t)m->V, n = (size_t)b->nodes;
    walk *w = &q->w;
    *w = (walk){.m = m, .b = b, .call = subject_next_call(q->a)};
    w->R = calloc(V, sizeof *w->R), w->Q = calloc(V, sizeof *w->Q), w->next = calloc(V, sizeof *w->next);
    w->gone = calloc(V, sizeof *w->gone);
    w->served[0] = calloc(V, sizeof *w->served[0]), w->served[1] = calloc(V, sizeof *w->served[1]);
    w->child = calloc(n, sizeof *w->child);
    q->children = calloc(n, sizeof *q->children), q->first = calloc(n, sizeof *q->first);
    return w->R && w->Q && w->next && w->gone && w->served[0] && w->served[1] && w->child && q->children && q->first;
}

static void close_walk(asked *q)
{
    walk *w = &q->w;
    free(w->R), free(w->Q), free(w->next), free(w->gone), free(w->served[0]), free(w->served[1]), free(w->child);
    free(q->children), free(q->first);
}

/* Counts of tokens beyond the depth that was said are cut, so that a fault writes nowhere else. */
static iut_status answer(asked *q, iut_tree_batch *b, int32_t *token, int32_t *path)
{
    walk *w = &q->w;
    const int32_t width = b->depth + 1;
    w->rule = rule_of(w);
    const iut_status st = check(q);
    if (st != IUT_OK) return st;
    int32_t n = walk_step(w, token, path);
    if (w->bad) return subject_fail(q->a, IUT_BAD_INPUT, "request %d: a row is no distribution", (int)w->i);
    if (n > width) n = width;
    memcpy(b->out + (size_t)w->i * (size_t)width, token, (size_t)n * sizeof *token);
    memcpy(b->out_node + (size_t)w->i * (size_t)width, path, (size_t)(n - 1) * sizeof *path);
    b->out_len[w->i] = n;
    return IUT_OK;
}

static iut_status verify_tree(iut *x, iut_tree_batch *b)
{
    asked q = {.a = (subject *)x};
    const model *m = subject_model(q.a);
    iut_status st = IUT_OK;
    int32_t first = 0;
    if (b->n == 0) return IUT_OK;
    if (!m->p) return subject_fail(q.a, IUT_BAD_INPUT, "load a panel first");
    if (m->set.uniforms == IUT_UNIFORMS_SUPPLIED && !b->u)
        return subject_fail(q.a, IUT_BAD_INPUT, "verify_tree: uniforms are to be supplied");
    int32_t *token = calloc((size_t)b->nodes + 1, sizeof *token), *path = calloc((size_t)b->nodes + 1, sizeof *path);
    if (open_walk(&q, m, b) && token && path) {
        for (int32_t i = 0; i < b->n && st == IUT_OK; i++) {
            q.w.i = i, q.w.nodes = b->node_count[i], q.w.from = first;
            if (fault(m->fault, TREE_LISTS_OF_EQUAL_LENGTH) && i * b->node_count[0] + q.w.nodes <= b->nodes)
                q.w.from = i * b->node_count[0];
            st = answer(&q, b, token, path);
            first += q.w.nodes;
        }
    } else
        st = subject_fail(q.a, IUT_NO_MEMORY, "verify_tree: out of memory");
    close_walk(&q);
    free(token), free(path);
    return st;
}

void tree_operations(iut_api *api)
{
    api->residual = NULL, api->draw = NULL, api->verify_greedy = NULL, api->stream = NULL;
    api->claims = claims, api->panel = load_panel, api->verify_tree = verify_tree;
}
