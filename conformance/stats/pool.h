/* pool.h - the evidence that the tokens of all cases give together. Clauses STAT-07, STAT-08;
 * docs/statistics.md, "The pool".
 *
 * Two kinds of bets. The dictionary bets on the laws of named faults: each is fixed before the
 * first token, so the products over tokens, positions and cases are e-values. The transform (PIT)
 * puts every token, by its place in its row, into one of 16 cells that are equally likely under
 * the null whatever the row is; the cells of all cases are counted together.
 *
 * A sum is filled case by case, sums add up, and the e-values are computed from them at the end. */
#ifndef ASSAY_STATS_POOL_H
#define ASSAY_STATS_POOL_H
#include <stdbool.h>
#include <stdint.h>

enum {
    ST_POOL_LAWS = 21,
    ST_POOL_SIZES = 4, /* shares of the fault: 1, 1/2, 1/4, 1/16 */
    ST_POOL_CELLS = 16
};

/* What kind of token the place in the stream makes likely: before gamma tokens each is a draft or
 * its correction; then comes the bonus of a step that accepted all, or one more draft; what is
 * behind that is mixed. Without drafts a token is plain. */
typedef enum { ST_DRAFTED, ST_BONUS, ST_BEHIND, ST_PLAIN, ST_PLACES } st_place;

/* Orders of a row's tokens: by q/p, by p, by id; and by q/p for each place apart. */
enum { ST_POOL_RATIO, ST_POOL_RANK, ST_POOL_ID, ST_POOL_PLACED, ST_POOL_KEYS };

typedef struct {
    double term[ST_POOL_LAWS][ST_POOL_SIZES]; /* ln of the product of the bets; -INFINITY: lost */
    int64_t cell[ST_POOL_PLACED][ST_POOL_CELLS];
    int64_t placed[ST_PLACES][ST_POOL_CELLS]; /* of ST_POOL_PLACED */
    int64_t n;                                /* tokens */
} st_pool;

/* What one token was drawn from, as the null and the dictionary see it. */
typedef struct {
    int V;
    const double *p, *q;   /* [V] normalised */
    const double *before;  /* [V] the law that the token before was drawn from; NULL: none */
    st_place place;
    double drafted, bonus; /* chances that it is a draft or its correction, and that it is a bonus */
} st_pool_row;

/* Counts count[x] tokens x of that row. word: 64 random bits, independent of the tokens. False,
 * and the sum is spoilt: no memory, or a token with p = 0. */
bool st_pool_add(st_pool *sum, const st_pool_row *row, const int32_t *count /* [V] */,
                 uint64_t (*word)(void *), void *arg);

/* Adds up disjoint sets of tokens. */
void st_pool_join(st_pool *sum, const st_pool *other);

/* ln of the two e-values: the mean over the dictionary, by weight; the plain mean over the keys. */
double st_pool_dictionary(const st_pool *sum);
double st_pool_pit(const st_pool *sum);

/* ln of the e-value of one key of the PIT. */
double st_pool_key(const st_pool *sum, int key);

/* The likeliest fault. */
typedef struct {
    const char *name; /* "lenience", "temperature", ...; NULL: none is listed */
    double size;      /* of a lenience or a temperature that number; else the share of tokens */
    double chance;    /* its share of the dictionary's evidence, all sizes together */
    double log_e;     /* ln of the product of its best bet */
    int key, cell;    /* of the PIT: the cell whose count is furthest off its expectation */
    double excess;    /* of that cell: count / expectation - 1 */
    bool even;        /* the PIT has an e-value below 20: no cell says anything */
} st_cause;

/* log_e: evidence that others have on the same tokens. A fault is listed if the dictionary has an
 * e-value of 20, and the fault's best bet three quarters of that evidence and of the PIT's. */
st_cause st_pool_cause(const st_pool *sum, double log_e);

/* "lenience 1.03 (posterior 0.98)"; or where tokens are too many or too few, or that they are so nowhere. */
void st_cause_text(const st_cause *cause, char *text, int size);

#endif
