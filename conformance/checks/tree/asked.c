/* asked.c - see asked.h. */
#include "conformance/checks/tree/asked.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/coins.h"

enum {
    LARGE = 128, /* nodes */
    WIDE = 40,   /* children */
    TRIES = 4,   /* places in which a boundary is sought; draws of a sibling that is like no other */
    SHAKES = 12  /* draws of the other uniforms, so that a step gets to a place */
};

/* Rules that go to the first of equal siblings. None but the first of them has children: so an
 * implementation that merges equal siblings does the same. */
enum { FIRST_OF_EQUAL = IUT_TREE_TARGET | IUT_TREE_MATCH | IUT_TREE_GREEDY | IUT_TREE_ONEHOT };

/* The two largest entries of a row, of multiples of 2^-24. */
static void find_largest(const float *row, int32_t V, int32_t *first, int32_t *second)
{
    *first = 0, *second = 1;
    if (row[1] > row[0]) *first = 1, *second = 0;
    for (int32_t x = 2; x < V; x++)
        if (row[x] > row[*first])
            *second = *first, *first = x;
        else if (row[x] > row[*second])
            *second = x;
}

/* The two largest become equal; an odd unit goes to a third entry, which stays below. */
static void tie(float *row, int32_t V)
{
    int32_t a, b;
    find_largest(row, V, &a, &b);
    const double sum = ((double)row[a] + (double)row[b]) * 0x1p24, half = floor(sum / 2);
    const bool odd = sum > 2 * half;
    int32_t third = 0;
    while (odd && third < V && (third == a || third == b || row[third] >= (float)((half - 1) * 0x1p-24))) third++;
    if (third == V || half < 1) return;
    row[a] = row[b] = (float)(half * 0x1p-24);
    if (odd) row[third] += 0x1p-24f;
}

/* The largest entry stands alone. */
static void untie(float *row, int32_t V)
{
    int32_t a, b;
    find_largest(row, V, &a, &b);
    if (row[a] == row[b]) row[a] += 0x1p-24f, row[b] -= 0x1p-24f;
}

probe *asked_probe(const client *tested, int32_t S, int32_t V, probe_shape shape, uint64_t *rng)
{
    probe *m = probe_general(S, V, shape, rng);
    const bool pruned = m && V > 2 && (client_claims(tested)->draft_vocab & IUT_VOCAB_PANEL);
    const bool first = client_claims(tested)->tie == IUT_TIE_FIRST, coarse = shape != PROBE_FINE && V > 1;
    for (int32_t s = 3; m && s < S; s += 4) memcpy(probe_q(m, s), probe_p(m, s), (size_t)V * sizeof *m->q);
    for (int32_t s = 1; m && coarse && first && s < S; s += 4) tie(probe_p(m, s), V);
    for (int32_t s = 0; m && coarse && !first && s < S; s++) untie(probe_p(m, s), V);
    if (pruned && !probe_prune(m)) return probe_close(m), NULL;
    for (int32_t s = 3; pruned && s < S; s += 4) memcpy(probe_p(m, s), probe_q(m, s), (size_t)V * sizeof *m->q);
    return m;
}

void asked_rows_of(asked_rows *to, const probe *m)
{
    for (int32_t s = 0; s < ASKED_STATES; s++) {
        const int32_t row = s < m->S ? s : 0; /* the others are in no request */
        to->p[s] = probe_p(m, row), to->q[s] = probe_q(m, row);
        to->logit[s] = m->p_logit + (int64_t)row * m->V;
    }
}

/* ---- Requests. ------------------------------------------------------------------------ */

static int32_t least(int32_t a, int32_t b)
{
    return b > 0 && b < a ? b : a;
}

int32_t asked_drawing(const client *tested, uint64_t *rng)
{
    int32_t drawn;
    do {
        drawn = 1 << probe_below(rng, TREE_DRAWN);
    } while (!(client_claims(tested)->tree_drawn & drawn));
    return drawn;
}

int32_t asked_rule(const client *tested, uint64_t *rng)
{
    const int32_t claimed = client_claims(tested)->tree_rules & (IUT_TREE_OTHER - 1);
    int32_t rule = 0;
    while (claimed && !(claimed & rule)) rule = 1 << probe_below(rng, TREE_RULES);
    return rule;
}

static double some_uniform(uint64_t *rng)
{
    const int32_t kind = probe_below(rng, 16);
    return kind == 0 ? 0.0 : kind == 1 ? 1.0 - 0x1p-24 : probe_u24(rng);
}

static int32_t likeliest(const probe *m, int32_t state)
{
    const float *logit = m->p_logit + (int64_t)state * m->V;
    int32_t best = 0;
    for (int32_t x = 1; x < m->V; x++)
        if (logit[x] > logit[best]) best = x;
    return best;
}

/* Where V is beyond 16 bits, the id that is due at the parent: the one that is drawn there, or under GREEDY the
 * likeliest; or one that has the low 16 bits of it. */
static int32_t due_or_like(const trees *t, const probe *m, int32_t at, uint64_t *rng)
{
    const int32_t above = t->first[t->n - 1] + t->parent[at], state = t->state[above],
                  due = t->rule[t->n - 1] == IUT_TREE_GREEDY
                            ? likeliest(m, state)
                            : oracle_draw(probe_p(m, state), m->V, oracle_unit_of(t->u[above])),
                  other = due ^ 1 << 16;
    return other < m->V && probe_below(rng, 2) ? other : due;
}

/* A token of V that has the low bits of another, five at least; up to 32 tokens there is none, and it is the same. */
static int32_t alike(int32_t token, int32_t V, uint64_t *rng)
{
    int32_t bits = 0;
    while (32 << bits < V) bits++;
    const int32_t like = bits > 0 ? token ^ 32 << probe_below(rng, bits) : token;
    return like < V ? like : token;
}

/* A token from q, from anywhere, the likeliest, one due or like it, a sibling's or like one, or none. q_zero: it may be
 * one that q does not have. */
static int32_t some_token(const trees *t, const probe *m, int32_t at, int32_t row, bool q_zero, uint64_t *rng)
{
    const int32_t kind = probe_below(rng, 16),
                  any = kind == 3 ? likeliest(m, t->state[t->first[t->n - 1] + t->parent[at]])
                        : kind < 7 && m->V > 1 << 16 ? due_or_like(t, m, at, rng)
                                                     : probe_below(rng, m->V);
    if (kind == 0) return -1;
    if (kind < 3 && t->parent[at - 1] == t->parent[at] && t->token[at - 1] >= 0) {
        const int32_t sibling = t->token[at - 1], like = kind == 2 ? alike(sibling, m->V, rng) : sibling;
        return q_zero || probe_q(m, row)[like] > 0 ? like : sibling;
    }
    if (kind < 8 && (q_zero || probe_q(m, row)[any] > 0)) return any;
    return probe_draw(m->cum_q + (int64_t)row * m->V, m->V, rng);
}

/* The same for a child that is to be refused, so that others are tried behind it: where p has less than q. */
static int32_t hard_token(const trees *t, const probe *m, int32_t at, int32_t row, uint64_t *rng)
{
    const float *p = probe_p(m, t->state[t->first[t->n - 1] + t->parent[at]]), *q = probe_q(m, row);
    int32_t token = -1;
    for (int32_t tries = 0; tries < 8 && (token < 0 || p[token] >= q[token]); tries++)
        token = probe_draw(m->cum_q + (int64_t)row * m->V, m->V, rng);
    return token;
}

/* All that p has behind a node stands among its children, in order, as far as there are so many. -1: none is left. */
static int32_t next_of_support(const trees *t, const probe *m, int32_t at, bool q_zero)
{
    const int32_t first = t->first[t->n - 1];
    const float *p = probe_p(m, t->state[first + t->parent[at]]), *q = probe_q(m, t->q_state[at]);
    int32_t token = -1;
    for (int32_t i = first + 1; i < at; i++)
        if (t->parent[i] == t->parent[at] && t->token[i] > token) token = t->token[i];
    for (token++; token < m->V; token++)
        if (p[token] > 0 && (q_zero || q[token] > 0)) return token;
    return -1;
}

/* A threshold, or now and then the p of a child itself, where the implementation has the same p; in one of 16 an end of
 * what the rule allows: everything passes, or nothing but certainty, or nothing. */
static double some_threshold(const trees *t, const probe *m, int32_t first, int32_t k, bool own_rows, uint64_t *rng)
{
    const int32_t n = t->node_count[t->n - 1], child = k + 1 + probe_below(rng, n - k);
    const double u = 0.5 * (double)(float)probe_u24(rng), end = t->rule[t->n - 1] == IUT_TREE_TYPICAL ? 0 : 2;
    if (u < 0x1p-5) return u < 0x1p-6 ? end : 1;
    if (!own_rows && child < n && t->parent[first + child] == k && t->token[first + child] >= 0) {
        const float p = probe_p(m, t->state[first + k])[t->token[first + child]];
        if (p > 0) return (double)p;
    }
    return u > 0 ? u : 0.5;
}

static int32_t children_of(const trees *t, int32_t first, int32_t k)
{
    int32_t n = 0;
    for (int32_t i = 1; i < t->node_count[t->n - 1]; i++) n += t->parent[first + i] == k && t->token[first + i] >= 0;
    return n;
}

static double some_share(uint64_t *rng)
{
    return probe_below(rng, 2) ? 1 : (double)(float)(1 - probe_u24(rng));
}

static void some_parameters(trees *t, const probe *m, int32_t first, bool own_rows, uint64_t *rng)
{
    for (int32_t k = 0; k < t->node_count[t->n - 1]; k++) {
        double *x = t->parameter + 2 * (first + k);
        const int32_t K = children_of(t, first, k);
        switch (t->rule[t->n - 1]) {
        case IUT_TREE_TARGET:
            x[0] = some_share(rng), x[1] = some_share(rng);
            break;
        case IUT_TREE_KSEQ:
            if (K > 1 && probe_below(rng, 2)) x[0] = 65536 + probe_below(rng, (K - 1) * 65536);
            if (K == 1) x[0] = 65536 * (k % 3); /* of no meaning there */
            break;
        case IUT_TREE_TYPICAL:
        case IUT_TREE_CONSTANT:
            x[0] = some_threshold(t, m, first, k, own_rows, rng);
            break;
        case IUT_TREE_LENIENT:
            x[0] = some_share(rng);
            break;
        default:
            break;
        }
    }
}

/* The first sibling that has the token of node `at`; itself for the root and placeholders. */
static int32_t first_equal(const trees *t, int32_t first, int32_t at)
{
    for (int32_t i = first + 1; i < at && t->token[at] >= 0; i++)
        if (t->parent[i] == t->parent[at] && t->token[i] == t->token[at]) return i;
    return at;
}

/* TRV-04; rows of such nodes are not looked at (TRV-01), so there need be none. */
static bool is_absent(const trees *t, int32_t first, int32_t k)
{
    while (k > 0 && t->token[first + k] >= 0) k = t->parent[first + k];
    return k > 0;
}

void asked_ways(trees *t, const client *tested, int32_t V, uint64_t *rng)
{
    const iut_claims *m = client_claims(tested);
    const int32_t bonus = IUT_BONUS_DRAWN | IUT_BONUS_GIVEN;
    if (t->coins && m->tree_coins) t->coins = coins_some(m->tree_coins, V, rng), t->race = probe_next(rng);
    if ((m->tree_bonus & bonus) == bonus) t->given = probe_below(rng, 2);
}

static bool has_children(const tree_shape *s, int32_t k)
{
    for (int32_t i = k + 1; i < s->nodes; i++)
        if (s->parent[i] == k) return true;
    return false;
}

/* Of a rule that is not the chapter's: a token as it is said to be drawn, or none. */
static int32_t as_drawn(trees *t, const probe *m, int32_t first, int32_t at, uint64_t *rng)
{
    const bool without = t->drawn[first + t->parent[at]] == IUT_DRAWN_WITHOUT;
    for (int32_t tries = 0; tries < TRIES; tries++) {
        t->token[at] = probe_draw(m->cum_q + (int64_t)t->q_state[at] * m->V, m->V, rng);
        if (!without || first_equal(t, first, at) == at) return t->token[at];
    }
    return -1;
}

/* What is claimed of these requests: with samplings of their own they are served from logits (CLM-23). */
static iut_claims claims_of(const trees *t, const check_context *x)
{
    iut_claims k = *client_claims(x->iut);
    if (t->samplings) k.input = IUT_FROM_LOGITS;
    return k;
}

void asked_add(trees *t, const probe *m, const check_context *x, int32_t rule, asked_sizes most, uint64_t *rng)
{
    const iut_claims own = claims_of(t, x), *k = &own;
    const bool q_zero = k->q_zero == IUT_ACCEPT || k->q_zero == IUT_REJECT;
    const bool large = probe_below(rng, most.nodes > LARGE ? 2 : 4) == 0;
    const int32_t kind = probe_below(rng, 16);
    const bool one_state = probe_below(rng, 4) == 0; /* what refusals leave of a row is not the next node's */
    const bool whole = kind == 0, wide = kind == 1,
               hard = wide || (most.children > ASKED_USUAL.children && probe_below(rng, 2));
    const int32_t children = rule == IUT_TREE_BLOCK ? 1 : wide && most.children < WIDE ? WIDE : most.children,
                  nodes = least(least(large || wide ? most.nodes : 12, most.nodes), k->max_nodes);
    tree_shape s;
    tree_shape_draw(&s, large && nodes > LARGE ? nodes - nodes / 8 : 1, nodes, least(t->depth, k->max_gamma),
                    least(children, k->max_children), rng);
    const int32_t i = t->n, first = trees_add(t, &s, rule, 0);
    for (int32_t j = 0; j < s.nodes; j++) {
        const int32_t at = first + j;
        t->state[at] = one_state && j > 0 ? t->state[first] : probe_below(rng, m->S);
        t->u[at] = (hard || whole) && probe_below(rng, 16) ? 1.0 - 0x1p-24 : some_uniform(rng);
        t->bonus[at] = probe_below(rng, m->V);
        if (j == 0) continue;
        const int32_t above = first + t->parent[at];
        if (!t->drawn[above]) t->drawn[above] = asked_drawing(x->iut, rng);
        const bool one_row = t->drawn[above] == IUT_DRAWN_IID || t->drawn[above] == IUT_DRAWN_WITHOUT;
        t->q_state[at] = one_row ? t->state[above] : probe_below(rng, m->S);
        t->token[at] = rule == IUT_TREE_OTHER          ? as_drawn(t, m, first, at, rng)
                       : whole                         ? next_of_support(t, m, at, q_zero)
                       : hard && probe_below(rng, 8) ? hard_token(t, m, at, t->q_state[at], rng)
                                                     : some_token(t, m, at, t->q_state[at], q_zero, rng);
        if ((rule & FIRST_OF_EQUAL) && first_equal(t, first, at) != at && has_children(&s, j)) t->token[at] = -1;
        t->state[at] = t->state[first_equal(t, first, at)];
        t->bonus[at] = t->bonus[first_equal(t, first, at)];
    }
    some_parameters(t, m, first, replay_own_rows(k), rng);
    for (int32_t j = 1; j < s.nodes; j++)
        if (is_absent(t, first, j) && probe_below(rng, 2)) t->q_state[first + j] = -1;
    t->last[2 * i] = some_uniform(rng);
    t->last[2 * i + 1] = t->coins == IUT_COINS_ONE ? t->last[2 * i] : some_uniform(rng);
}

/* ---- Judgement. ----------------------------------------------------------------------- */

static const oracle_tree_rule oracle_rule[TREE_RULES - 1] = {
    ORACLE_TREE_TARGET, ORACLE_TREE_RECURSIVE, ORACLE_TREE_MATCH,   ORACLE_TREE_GREEDY,  ORACLE_TREE_KSEQ,    ORACLE_TREE_BLOCK,
    ORACLE_TREE_ONEHOT, ORACLE_TREE_SINGLE,    ORACLE_TREE_TYPICAL, ORACLE_TREE_LENIENT, ORACLE_TREE_CONSTANT};

/* A request as the oracle reads it. */
typedef struct {
    const float *row[2 * ASKED_STATES];
    oracle_tree_node node[TREE_NODES];
    oracle_unit u[TREE_NODES];
    float *noise; /* of a race, else NULL */
    oracle_tree_request request;
} question;

/* TRV-08. */
static oracle_tree_rule rule_of(const trees *t, int32_t i)
{
    int32_t rule = 0;
    if (t->samplings && t->sampling[t->sampling_of[i]].temperature == 0) return ORACLE_TREE_GREEDY;
    while (1 << rule != t->rule[i]) rule++;
    return oracle_rule[rule];
}

/* False, with an ERROR in `r`: memory is short. The caller frees the noise in either event. */
static bool question_of(question *w, const trees *t, int32_t i, int32_t V, const asked_rows *rows, unsigned flags,
                        check_result *r)
{
    w->noise = t->coins == IUT_COINS_RACE ? coins_noises(t->race, i, 1, V) : NULL;
    if (t->coins == IUT_COINS_RACE && !w->noise) {
        result_set(r, STATE_ERROR, "the suite has no memory for a race over %d tokens", (int)V);
        return false;
    }
    const int32_t first = t->first[i], n = t->node_count[i];
    const oracle_tree_rule rule = rule_of(t, i);
    const asked_rows *own = &rows[t->samplings ? t->sampling_of[i] : 0];
    for (int32_t s = 0; s < ASKED_STATES; s++) {
        w->row[s] = rule == ORACLE_TREE_GREEDY ? own->logit[s] : own->p[s];
        w->row[ASKED_STATES + s] = own->q[s];
    }
    for (int32_t k = 0; k < n; k++) {
        const int32_t at = first + k;
        w->node[k] = (oracle_tree_node){.token = t->token[at],
                                        .parent = t->parent[at],
                                        .p = t->state[at],
                                        .q = t->q_state[at] < 0 ? -1 : ASKED_STATES + t->q_state[at],
                                        .without = t->drawn[at] == IUT_DRAWN_WITHOUT,
                                        .parameter = {t->parameter[2 * at], t->parameter[2 * at + 1]}};
        w->u[k] = oracle_unit_of(t->u[at]);
    }
    w->request = (oracle_tree_request){.rule = rule,
                                       .V = V,
                                       .rows = 2 * ASKED_STATES,
                                       .nodes = n,
                                       .row = w->row,
                                       .node = w->node,
                                       .u = t->supplied ? w->u : NULL,
                                       .residual = oracle_unit_of(t->last[2 * i]),
                                       .bonus = oracle_unit_of(t->last[2 * i + 1]),
                                       .noise = w->noise,
                                       .seed = t->seed + (uint64_t)i,
                                       .position = t->position,
                                       .flags = flags};
    return true;
}

/* ---- Uniforms next to a boundary. ------------------------------------------------------ */

/* A uniform of the request, by its place: of a node, or behind the nodes those of the last token. */
static void put_uniform(question *w, int32_t place, double u)
{
    if (place < w->request.nodes)
        w->u[place] = oracle_unit_of(u);
    else
        w->request.residual = w->request.bonus = oracle_unit_of(u);
}

typedef struct {
    int32_t n, token[TREE_NODES], node[TREE_NODES];
} due_answer;

static due_answer due_at(question *w, int32_t place, double u)
{
    char why[100];
    due_answer a;
    put_uniform(w, place, u);
    a.n = oracle_tree(&w->request, a.token, a.node, why, sizeof why);
    return a;
}

static bool same_answer(const due_answer *a, const due_answer *b)
{
    return a->n == b->n && !memcmp(a->token, b->token, (size_t)a->n * sizeof *a->token) &&
           (a->n < 2 || !memcmp(a->node, b->node, (size_t)(a->n - 1) * sizeof *a->node));
}

/* A multiple of 2^-24 whose neighbour has another answer, or -1 where all have the same. */
static double boundary_of(question *w, int32_t place, bool above)
{
    int32_t low = 0, high = (1 << 24) - 1;
    const due_answer first = due_at(w, place, 0), last = due_at(w, place, (double)high * 0x1p-24);
    if (same_answer(&first, &last)) return -1;
    while (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        const due_answer a = due_at(w, place, (double)middle * 0x1p-24);
        if (same_answer(&a, &first))
            low = middle;
        else
            high = middle;
    }
    return (double)(above ? high : low) * 0x1p-24;
}

/* A child that others stand before, if there is one; any place in one of four. */
static int32_t some_place(const trees *t, int32_t places, uint64_t *rng)
{
    const int32_t i = t->n - 1, first = t->first[i];
    int32_t place = probe_below(rng, places);
    if (probe_below(rng, 4) == 0) return place;
    for (int32_t tries = 0; tries < places; tries++, place = (place + 1) % places)
        for (int32_t k = 1; k < place && place < t->node_count[i]; k++)
            if (t->token[first + place] >= 0 && t->parent[first + k] == t->parent[first + place]) return place;
    return place;
}

bool asked_sharpen(trees *t, const check_context *x, int32_t V, const asked_rows *rows, uint64_t *rng, check_result *r)
{
    const iut_claims own = claims_of(t, x), *k = &own;
    const int32_t i = t->n - 1, n = t->node_count[i], places = n + (t->coins != IUT_COINS_RACE);
    const bool above = probe_below(rng, 2), fine = replay_fine(k);
    double u = -1;
    question w;
    if (!t->supplied || !fine || t->rule[i] == IUT_TREE_GREEDY) return true;
    if (!question_of(&w, t, i, V, rows, replay_flags(k), r)) return false;
    for (int32_t tries = 0; u < 0 && tries < TRIES; tries++) {
        const int32_t place = some_place(t, places, rng);
        const oracle_unit before = place < n ? w.u[place] : w.request.residual, bonus = w.request.bonus;
        u = boundary_of(&w, place, above);
        if (u < 0 && place < n)
            w.u[place] = before;
        else if (u < 0)
            w.request.residual = before, w.request.bonus = bonus;
        else if (place < n)
            t->u[t->first[i] + place] = u;
        else
            t->last[2 * i] = t->last[2 * i + 1] = u;
    }
    free(w.noise);
    return true;
}

/* ---- Both sides of every boundary. ------------------------------------------------------- */

/* The request that is certified, and the place of the uniform that moves. */
typedef struct {
    trees *t;
    question *w;
    int32_t request, place, bits;
    int64_t found;
} certificate;

/* A copy of the request with that uniform. */
static void add_side(const certificate *c, double u)
{
    trees *t = c->t;
    const int32_t n = t->node_count[c->request], from = t->first[c->request], to = t->nodes, i = t->n++;
    const size_t whole = (size_t)n * sizeof(int32_t);
    t->first[i] = to, t->node_count[i] = n, t->rule[i] = t->rule[c->request], t->nodes += n;
    memcpy(t->token + to, t->token + from, whole), memcpy(t->parent + to, t->parent + from, whole);
    memcpy(t->state + to, t->state + from, whole), memcpy(t->q_state + to, t->q_state + from, whole);
    memcpy(t->drawn + to, t->drawn + from, whole), memcpy(t->bonus + to, t->bonus + from, whole);
    memcpy(t->parameter + 2 * to, t->parameter + 2 * from, 2 * (size_t)n * sizeof *t->parameter);
    memcpy(t->u + to, t->u + from, (size_t)n * sizeof *t->u);
    memcpy(t->last + 2 * i, t->last + 2 * c->request, 2 * sizeof *t->last);
    if (c->place < n)
        t->u[to + c->place] = u;
    else
        t->last[2 * i] = t->last[2 * i + 1] = u;
}

/* The boundaries between low and high, in units of 2^-bits. What is due does not come back once it has changed. */
static void add_between(certificate *c, int32_t low, int32_t high, const due_answer *at_low, const due_answer *at_high)
{
    const double step = ldexp(1, -c->bits);
    if (same_answer(at_low, at_high)) return;
    if (high - low > 1) {
        const int32_t middle = low + (high - low) / 2;
        const due_answer at_middle = due_at(c->w, c->place, middle * step);
        add_between(c, low, middle, at_low, &at_middle);
        add_between(c, middle, high, &at_middle, at_high);
    } else if (c->t->n + 2 <= c->t->room && c->t->nodes + 2 * c->w->request.nodes <= c->t->node_room) {
        add_side(c, low * step);
        add_side(c, high * step);
        c->found++;
    }
}

/* Draws the uniforms of the request anew. */
static void shake(certificate *c, uint64_t *rng)
{
    trees *t = c->t;
    for (int32_t k = 0; k < c->w->request.nodes; k++) {
        double *u = &t->u[t->first[c->request] + k];
        c->w->u[k] = oracle_unit_of(*u = probe_u24(rng));
    }
    t->last[2 * c->request] = t->last[2 * c->request + 1] = probe_u24(rng);
    c->w->request.residual = c->w->request.bonus = oracle_unit_of(t->last[2 * c->request]);
}

bool asked_certify(trees *t, const check_context *x, int32_t V, const asked_rows *rows, int32_t bits, uint64_t *rng,
                   int64_t *boundaries, check_result *r)
{
    question w;
    certificate c = {.t = t, .w = &w, .request = t->n - 1, .bits = bits};
    const int32_t n = t->node_count[c.request], places = n + (t->coins != IUT_COINS_RACE), high = (1 << bits) - 1;
    bool found[TREE_NODES + 1] = {false};
    const iut_claims k = claims_of(t, x);
    if (!question_of(&w, t, c.request, V, rows, replay_flags(&k), r)) return false;
    for (int32_t i = 0; i < SHAKES; i++) {
        shake(&c, rng);
        for (c.place = 0; c.place < places; c.place++) {
            const double own = c.place < n ? t->u[t->first[c.request] + c.place] : t->last[2 * c.request];
            const int64_t before = c.found;
            if (found[c.place]) continue;
            const due_answer first = due_at(&w, c.place, 0), last = due_at(&w, c.place, high * ldexp(1, -bits));
            add_between(&c, 0, high, &first, &last);
            found[c.place] = c.found > before;
            put_uniform(&w, c.place, own);
        }
    }
    *boundaries += c.found;
    free(w.noise);
    return true;
}

/* All there is to say about a wrong answer. */
static void fail(const question *w, const trees *t, int32_t i, const char *why, check_result *r)
{
    const int32_t width = t->depth + 1, *out = t->out + i * width, *path = t->out_node + i * width, n = t->out_len[i];
    int32_t token[TREE_NODES], nodes[TREE_NODES];
    char text[500], error[100];
    const int32_t due = oracle_tree(&w->request, token, nodes, error, sizeof error);
    snprintf(text, sizeof text, "%.160s; a tree of %d nodes:", why, (int)w->request.nodes);
    replay_list(text, sizeof text, " tokens", t->token + t->first[i], w->request.nodes);
    replay_list(text, sizeof text, " parents", t->parent + t->first[i], w->request.nodes);
    replay_list(text, sizeof text, "; due", token, due);
    replay_list(text, sizeof text, " by nodes", nodes, due - 1);
    replay_list(text, sizeof text, "; got", out, n);
    replay_list(text, sizeof text, " by nodes", path, n - 1);
    result_set(r, STATE_FAIL, "request %d: %s", (int)i, text);
}

static bool is_leaf(const question *w, int32_t node)
{
    for (int32_t k = node + 1; k < w->request.nodes; k++)
        if (w->node[k].parent == node && w->node[k].token >= 0) return false;
    return true;
}

/* What is given as bonus is due in place of the token that would have been drawn (TRV-05). False, and why says it,
 * where the last token is another. */
static bool take_given(const question *w, trees *t, int32_t i, char *why, size_t size)
{
    const int32_t width = t->depth + 1, n = t->out_len[i], end = n > 1 ? t->out_node[i * width + n - 2] : 0;
    int32_t *last = &t->out[i * width + n - 1], token[TREE_NODES], nodes[TREE_NODES];
    const int32_t given = t->bonus[t->first[i] + end];
    if (!t->given || !is_leaf(w, end)) return true;
    if (*last != given) {
        snprintf(why, size, "the bonus is %d, and %d was given (TRV-05)", (int)*last, (int)given);
        return false;
    }
    if (oracle_tree(&w->request, token, nodes, why, size) == n) *last = token[n - 1];
    return true;
}

/* LAY-10: is a threshold so close to a child's p that the implementation's own rows may have it on the other side? */
static bool is_close(const question *w)
{
    const oracle_tree_rule rule = w->request.rule;
    const int32_t which = rule == ORACLE_TREE_TARGET ? 1 : 0;
    if (rule != ORACLE_TREE_TARGET && rule != ORACLE_TREE_TYPICAL && rule != ORACLE_TREE_CONSTANT) return false;
    for (int32_t k = 1; k < w->request.nodes; k++) {
        const oracle_tree_node *above = &w->node[w->node[k].parent];
        if (w->node[k].token < 0 || above->p < 0) continue;
        const double p = (double)w->row[above->p][w->node[k].token], x = above->parameter[which];
        if (fabs(p - x) <= p * 0x1p-10) return true;
    }
    return false;
}

/* An answer, held against what is due. */
static oracle_tree_verdict verdict_on(const question *w, const trees *t, int32_t i, const iut_claims *k, char *why, size_t size)
{
    const int32_t at = i * (t->depth + 1);
    if (replay_own_rows(k) && is_close(w)) return TREE_OPEN;
    return oracle_tree_judge(&w->request, t->out + at, t->out_node + at, t->out_len[i], replay_tau(k, w->request.V), why, size);
}

static oracle_tree_verdict verdict_as_named(const question *w, trees *t, int32_t i, const iut_claims *k, char *why,
                                            size_t size)
{
    return take_given(w, t, i, why, size) ? verdict_on(w, t, i, k, why, size) : TREE_WRONG;
}

/* TRV-03: where the tokens gone to are those due, the nodes due may stand for those named: these have their paths. */
static oracle_tree_verdict verdict_of(const question *w, trees *t, int32_t i, const iut_claims *k, char *why,
                                      size_t size)
{
    const int32_t n = t->out_len[i];
    int32_t *out = t->out + i * (t->depth + 1), *path = t->out_node + i * (t->depth + 1), last = out[n - 1];
    int32_t token[TREE_NODES], nodes[TREE_NODES], named[TREE_NODES];
    const size_t gone = (size_t)(n - 1) * sizeof *path;
    if (n > 1 && oracle_tree(&w->request, token, nodes, why, size) == n && !memcmp(out, token, gone) &&
        memcmp(path, nodes, gone)) {
        memcpy(named, path, gone);
        memcpy(path, nodes, gone);
        const oracle_tree_verdict v = verdict_as_named(w, t, i, k, why, size);
        if (v != TREE_WRONG) return v;
        memcpy(path, named, gone);
        out[n - 1] = last;
    }
    return verdict_as_named(w, t, i, k, why, size);
}

static bool judge_one(const question *w, trees *t, int32_t i, const iut_claims *k, replay_tally *tally, check_result *r)
{
    char why[300] = "";
    switch (verdict_of(w, t, i, k, why, sizeof why)) {
    case TREE_EXACT:
        tally->exact++;
        break;
    case TREE_GREY:
        tally->grey++;
        break;
    case TREE_OPEN:
        return true;
    case TREE_WRONG:
        fail(w, t, i, why, r);
        return false;
    }
    r->compared++;
    return true;
}

oracle_tree_verdict asked_verdict(trees *t, int32_t i, const check_context *x, int32_t V, const asked_rows *rows,
                                  check_result *r)
{
    const iut_claims own = claims_of(t, x), *k = &own;
    question w;
    char why[300];
    oracle_tree_verdict v = TREE_WRONG;
    if (question_of(&w, t, i, V, rows, replay_flags(k), r)) v = verdict_of(&w, t, i, k, why, sizeof why);
    free(w.noise);
    return v;
}

int32_t asked_due(const trees *t, int32_t i, const check_context *x, int32_t V, const asked_rows *rows, int32_t *token,
                  int32_t *node, check_result *r)
{
    question w;
    char why[100] = "";
    int32_t n = 0;
    const iut_claims k = claims_of(t, x);
    if (question_of(&w, t, i, V, rows, replay_flags(&k), r)) {
        n = oracle_tree(&w.request, token, node, why, sizeof why);
        if (n == 0) result_set(r, STATE_ERROR, "the oracle refuses a request of the suite: %s", why);
    }
    free(w.noise);
    return n;
}

bool asked_judge(trees *t, const check_context *x, int32_t V, const asked_rows *rows, replay_tally *tally,
                 check_result *r)
{
    const iut_claims own = claims_of(t, x), *k = &own;
    for (int32_t i = 0; i < t->n; i++) {
        question w;
        const bool right = question_of(&w, t, i, V, rows, replay_flags(k), r) &&
                           judge_one(&w, t, i, k, tally, r);
        free(w.noise);
        if (!right) return false;
    }
    return true;
}

bool asked_claimed(const client *tested, int32_t V, int32_t uniforms, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    const bool race = coins_race_alone(m, m->tree_coins);
    const char *missing = NULL;
    if (!check_offers(tested, OP_VERIFY_TREE, why, size) || coins_too_large(m, m->tree_coins, V, why, size)) return false;
    if (uniforms ? m->uniforms != uniforms : !m->uniforms)
        missing = uniforms == IUT_UNIFORMS_SUPPLIED ? "uniforms are not supplied"
                  : uniforms                        ? "uniforms are not seeded"
                                                    : "the source of uniforms is not declared";
    else if (m->tree_drawn == 0)
        missing = "tree_drawn is not declared";
    else if (uniforms && m->map != IUT_MAP_CDF_BY_ID && !race)
        missing = "map is not CDF by id";
    else if (uniforms && m->arithmetic != IUT_ARITH_CANONICAL &&
             (uniforms == IUT_UNIFORMS_SEEDED || (m->arithmetic != IUT_ARITH_F64 && m->arithmetic != IUT_ARITH_F32)))
        missing = "arithmetic decides too little";
    else if (replay_coarse_coins(m))
        missing = "its uniforms have fewer bits than those supplied";
    else if (m->max_vocab > 0 && V > m->max_vocab)
        missing = "max_vocab is less";
    if (missing) snprintf(why, size, "%s", missing);
    return !missing;
}
