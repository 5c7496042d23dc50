/* siblings.h - what happens at one node of a tree (TRV-06): the questions that a rule asks there, in order, and the row
 * that its last token is drawn from. An answer, a judgement and a law are three ways to use them (tree.h).
 *
 * A question is "is u below this bound?", u being a uniform of the child's or, under TARGET, of the node's. */
#ifndef ASSAY_CONFORMANCE_ORACLE_LAW_SIBLINGS_H
#define ASSAY_CONFORMANCE_ORACLE_LAW_SIBLINGS_H

#include "conformance/oracle/law/tree.h"

/* A node and its children, placeholders apart. */
typedef struct {
    oracle_tree_rule rule; /* any but BLOCK */
    int32_t V;
    unsigned flags;
    const float *p; /* [V] */
    bool without;
    double parameter[2];
    int32_t n;
    const int32_t *token;  /* [n] */
    const float *const *q; /* [n][V], of the rules that use it */
    int32_t kept;          /* TYPICAL: the child on the path that it keeps, -1: none */
} oracle_family;

typedef struct {
    const oracle_family *f;
    bool exact;
    int32_t child; /* of the present question */
    int32_t asked; /* questions before it */
    mpq_t below;   /* the bound: from 1 on every uniform is below it */
    double left;   /* the share of the row's mass that the refusals left */
    bool empty;    /* a refusal left nothing (RES-03, SIB-05) */
    mpz_t *R, Z;   /* [V] the weights of the last token, and their total, once no question is left */
    /* private */
    mpz_t *Q, *next, W, S, number;
    bool *gone; /* [V] SIB-04, and the tokens that TARGET has looked at */
} oracle_trial;

bool oracle_tree_uses_q(oracle_tree_rule rule);

/* GREEDY and MATCH ask nothing: R has the token that they emit before they look for a child. */
void oracle_trial_begin(oracle_trial *t, const oracle_family *f, bool exact);
/* Refuses the child of the present question, if there is one, and asks the next. False: none is left. */
bool oracle_trial_ask(oracle_trial *t);
void oracle_trial_end(oracle_trial *t);

/* DRAW-02 from integers; -1 when Z = 0. */
int32_t oracle_draw_z(mpz_t *R, const mpz_t Z, int32_t V, oracle_unit u);
/* DRAW-07 alike; noises are above 0. */
int32_t oracle_race_z(mpz_t *R, int32_t V, const float *noise);
/* u < below */
bool oracle_unit_below(oracle_unit u, const mpq_t below);

/* TYP-01: the node at the end of the path that is kept. Node i has the row p[i]. */
int32_t oracle_typical_end(const oracle_tree_node *node, const bool *absent, const float *const *p, int32_t nodes);

/* ---- BLOCK, on a chain ---------------------------------------------------------- */

typedef struct {
    int32_t V, n;
    unsigned flags;
    const float *const *p; /* [n+1][V] */
    const float *const *q; /* [n][V] */
    const int32_t *token;  /* [n] */
    bool exact;
    mpq_t *c; /* [n+1] BLK-02 */
} oracle_block;

/* The caller sets all but c. */
void oracle_block_begin(oracle_block *b);
void oracle_block_end(oracle_block *b);
/* Draft i = 1 ... n stands iff its uniform is below the bound; returns the share (S + N) that the bound is a part of. */
double oracle_block_bound(mpq_t below, const oracle_block *b, int32_t i);
/* The weights of the last token when tau < n drafts are kept; returns their share, 0: nothing is left but the row
 * itself. R and Z arrive initialised. */
double oracle_block_last(mpz_t *R, mpz_t Z, const oracle_block *b, int32_t tau);

/* A row as integers: DIST-07, or exactly, in units of 2^-149. */
void oracle_row_z(mpz_t *n, mpz_t total, const float *row, int32_t V, bool exact);
mpz_t *oracle_row_new(int32_t V); /* zeros */
void oracle_row_free(mpz_t *n, int32_t V);

#endif
