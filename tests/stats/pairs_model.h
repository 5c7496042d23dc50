/* pairs_model.h - two sides for the tests of two samples: plain decoding, and chains of drafts with a fault.
 *
 * Both decoders are made of one table of laws. In the state z, behind j accepted drafts of a step, the next
 * token has the law pass + fix: it is an accepted draft with the mass pass, or a correction with the mass fix;
 * behind gamma accepted drafts it is a bonus. So one draw a token has the law of the whole algorithm. */
#ifndef TESTS_STATS_PAIRS_MODEL_H
#define TESTS_STATS_PAIRS_MODEL_H
#include <stdbool.h>
#include <stdint.h>

typedef enum {
    HONEST, ALWAYS, FROM_P, UPSIDE_DOWN, BONUS_Q, EXCHANGED, HOT, TOP_K, LENIENT, SIDES
} side_fault;
extern const char *const side_fault_name[SIDES];

typedef struct {
    int K, order;  /* tokens; tokens that a row depends on, 1 or 2 */
    int states;    /* K^order */
    int top_k;     /* of both sides; 0: none */
    double *p, *q; /* [states][K] logits of target and draft */
} pairs_model;

/* order 2: normal logits. order 1: Zipf 1.1 with normal noise, in an order of each state's own; the draft's
 * logits are the target's with more noise. `noise` is its standard deviation. */
pairs_model *model_new(int K, int order, int top_k, double noise, uint64_t seed);
void model_free(pairs_model *m);

enum { GAMMA = 2 };

typedef struct {
    const pairs_model *m;
    bool plain;                /* no drafts: `law` alone */
    double *law, *sum;         /* [states][K] of a token that is no bonus; cumulative */
    double *pass;              /* [states][K] share of `law` that is an accepted draft */
    double *bonus, *bonus_sum; /* [states][K] */
} side;

/* Plain decoding, or chains of two drafts with that fault. */
side *side_new(const pairs_model *m, bool plain, side_fault fault);
/* Plain decoding with rows that are `tv` away, each token up or down by a coin. tv is at most 0.3. */
side *side_bent(const pairs_model *m, double tv, uint64_t seed);
void side_free(side *s);
void side_draw(const side *s, int prompt, int L, uint64_t *g, int32_t *x /* [L] */);
/* Chance that x[0..L-1] are the first tokens. */
double side_mass(const side *s, int prompt, int L, const int32_t *x);
/* Plain decoding whose rows are not quite the model's. */
typedef struct {
    double T;       /* temperature */
    double sd;      /* of normal noise on the logits; 0: none */
    bool fixed;     /* the noise follows from prompt and prefix; else it is new at each token */
    double edge;    /* moved from a row's likeliest token to its least likely one: the row's total variation */
    bool mirrored;  /* draws from 1 - u instead of u: the same law, not independent of a side that draws from u */
} served;
enum { SERVED_MOST = 64 }; /* tokens of such a model */
void served_draw(const pairs_model *m, const served *how, int prompt, int L, uint64_t *g, int32_t *x /* [L] */);

/* Total variation of the first L tokens, mean over prompts: enumerated where K^L is at most 10,000, else an
 * estimate from 20,000 draws. */
double sides_tv(const side *a, const side *b, int prompts, int L);
#endif
