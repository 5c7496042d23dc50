/* panel.h - panels: language models whose law is known, made from integers (PAN clauses).
 *
 * A panel is an automaton with layers x classes states. State layer*classes + c stands for "the
 * previous token had class c, and so many tokens (modulo layers) came before"; token t has
 * class t mod classes. So rows differ by position and by previous token at any V, and the state
 * after a prefix follows from its length and its last token. Rows are multiples of 2^-bits,
 * hence exact in binary32, and their sums are exact in any order. Every decoding starts from
 * state 0. */
#ifndef ASSAY_CONFORMANCE_PANEL_PANEL_H
#define ASSAY_CONFORMANCE_PANEL_PANEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conformance/iut.h"
#include "conformance/oracle/law/served.h"

/* -- Rows (PAN-01 to PAN-03) ------------------------------------------------------- */

/* A row of integers n with sum 2^bits, and what `mix` needs to know about how it was made. */
typedef struct {
    int32_t V, bits;
    uint32_t *n; /* [V] */
    uint32_t *o; /* [V] n of the token with the opposite rank */
    int32_t
        *order; /* [V] the token of each rank; rank 0 has the largest mass but for the jitter */
    int32_t top; /* lowest id of largest weight: takes the units missing to 2^bits */
} panel_row;

/* Memory for a row; false and nothing to free when there is none. */
bool panel_row_init(panel_row *r, int32_t V);
void panel_row_free(panel_row *r);

/* PAN-01. 1 <= V < 2^20, 1 <= bits <= 24, sharp >= 0. False: no memory. */
bool panel_zipf(uint64_t seed, uint32_t row, int32_t bits, int32_t sharp, panel_row *r);

/* PAN-02: m[V], 0 <= lambda <= 65536. */
void panel_mix(const panel_row *r, uint32_t lambda, uint32_t *m /* [V] */);

/* PAN-03: the sharpened row, and the draft row with Sum min(n, m) >= acceptance * 2^bits.
 * 0 < acceptance <= 1. Returns lambda, or -1: no memory. */
int32_t panel_pair(uint64_t seed, uint32_t row, int32_t bits, double acceptance, panel_row *r,
                   uint32_t *m /* [V] */);

/* -- Panels ------------------------------------------------------------------------ */

typedef enum {
    PANEL_PLAIN,
    PANEL_MASKED,   /* target and draft each lack every fourth token or so, different ones */
    PANEL_EQUAL,    /* draft = target */
    PANEL_ONEHOT_P, /* the target's row has all its mass on one token */
    PANEL_ONEHOT_Q  /* the draft's row has */
} panel_variant;

/* What a panel is made from; zeros mean the defaults. */
typedef struct {
    int32_t V;
    int32_t layers, classes; /* 0: 4 and 3, or 3 and 2 from V = 4096 on; classes <= V */
    int32_t bits;            /* 0: 12 up to V = 8, 16 below 256, 20 below 1024, else 24 */
    double acceptance;       /* Sum min(p, q) of every state (PLAIN); 0: 0.7 */
    uint64_t seed;
    panel_variant variant;
    iut_sampling target, draft; /* temperature 0: none, p and q are the rows themselves */
    oracle_filters filters;     /* of both */
} panel_form;

typedef struct {
    panel_form form; /* defaults filled in */
    iut_panel view;  /* points into this panel: hand it to client_panel() or to an IUT */
    int32_t *cls, *next;
    float *p, *q, *p_logit, *q_logit; /* [S][V] logits are fl32(ln of the row), -inf for 0 */
    double *p64,
        *q64; /* [S][V] the laws: equal to p and q, or served from the logits in binary64 */
} panel;

/* NULL: `why` says what is wrong. With sampling parameters the rows are served from the logits
 * (DIST clauses, in binary64). A row with a cut closer than 1e-3 (in the logit for top-k, in its logarithm
 * for min-p, in cumulative mass for top-p), or between equal logits, is replaced by another: no legal rounding
 * and no legal choice makes an impossible token. */
panel *panel_make(const panel_form *form, char *why, size_t why_size);
void panel_free(panel *a);

static inline int32_t panel_next(const panel *a, int32_t state, int32_t token)
{
    return a->next[state * a->view.C + a->cls[token]];
}

static inline const double *panel_p(const panel *a, int32_t state)
{
    return a->p64 + (size_t)state * (size_t)a->view.V;
}

static inline const double *panel_q(const panel *a, int32_t state)
{
    return a->q64 + (size_t)state * (size_t)a->view.V;
}

/* -- Exact laws, in binary64 ------------------------------------------------------- */

/* Probability of each state before token i of a plain decoding from `start`, i = 0..k-1. */
void panel_states(const panel *a, int32_t start, int32_t k, double *state /* [k][S] */);

/* Law of token i, given the state probabilities before it. */
void panel_marginal(const panel *a, const double *state /* [S] */, double *law /* [V] */);

/* Sum min(p, q) of a state: what the token rule accepts, and LAW-04's bound for one token. */
double panel_overlap(const panel *a, int32_t state);

/* Sum min(P2, Q2) over two-token prefixes from a state (LAW-04). O(V^2). */
double panel_overlap2(const panel *a, int32_t state);

/* The largest p of a state, and of a two-token prefix from it: what a draft that is one certain
 * token, or two, can hope for. The second: O(V^2). */
double panel_peak(const panel *a, int32_t state);
double panel_peak2(const panel *a, int32_t state);

/* Accepted drafts of a token-rule step of gamma drafts from `start`: P(exactly j). */
void panel_accepts(const panel *a, int32_t start, int32_t gamma, double *law /* [gamma+1] */);

/* -- Prefix tree ------------------------------------------------------------------- */

/* Contexts of the first k tokens, fixed before sampling: the prefixes of length < k with
 * n * P >= 32, by descending P, `max_nodes` at most and closed under taking prefixes; then one
 * context for each state, where every other prefix is counted. Context c has law
 * panel_p(row[c]). */
typedef struct {
    int32_t k, nodes, contexts; /* contexts = nodes + S; node 0 is the empty prefix */
    int32_t V;
    int32_t *row;   /* [contexts] state */
    int32_t *child; /* [nodes][V] node after a token; -1: none, the state's context */
    int32_t *depth; /* [nodes] length of the prefix */
    double *mass;   /* [nodes] its probability */
} panel_trie;

/* False: no memory. */
bool panel_trie_init(panel_trie *t, const panel *a, int32_t start, int32_t k, double n,
                     int32_t max_nodes);
void panel_trie_free(panel_trie *t);

/* The context after `token`, the state after it being `state`. */
static inline int32_t panel_trie_step(const panel_trie *t, int32_t context, int32_t token,
                                      int32_t state)
{
    int32_t c =
        context < t->nodes ? t->child[(size_t)context * (size_t)t->V + (size_t)token] : -1;
    return c >= 0 ? c : t->nodes + state;
}

#endif
