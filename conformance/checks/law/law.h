/* law.h - is the law of a stream the target's? Counting and both gates (STAT clauses), shared
 * by the law checks; and the samplers that make streams out of verify, stream and draw.
 *
 * The unit is the first k tokens from state 0 of a panel; cases whose calls change in shape are
 * law_drawn.h's. Everything a verdict rests on (tables, contexts, checkpoints, n) is fixed before
 * the first sample. */
#ifndef ASSAY_CONFORMANCE_CHECKS_LAW_LAW_H
#define ASSAY_CONFORMANCE_CHECKS_LAW_LAW_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/checks/frame/check.h"
#include "conformance/panel/panel.h"
#include "conformance/stats/floor.h"

extern const check check_law_verify, check_law_stream, check_law_draw, check_law_calls;
extern const check check_law_coupling, check_law_served, check_law_long;
extern const check check_meta_equal, check_meta_draft, check_meta_batch, check_meta_panel;

/* -- The suite's own randomness: Philox, a function of the seed and a running number -- */
enum {
    LAW_WORDS = 16
}; /* made at a time, side by side: each of their rounds waits for the last */

typedef struct {
    uint32_t key[2];
    uint64_t word[LAW_WORDS];
    uint64_t block; /* the next one; it has two words */
    int32_t taken;  /* of the words */
} law_random;

void law_seed(law_random *g, uint64_t seed);
uint64_t law_word(law_random *g);
/* A multiple of 2^-bits in [0, 1), 1 <= bits <= 53. */
double law_unit(law_random *g, int32_t bits);

/* Resolution of the uniforms of this IUT: as declared, 24 bits where it does not say. Supplied
 * ones must not round up to 1, so formats narrower than binary64 get 24 at most (DRAW-01). */
int32_t law_bits(const iut_claims *claims);

/* The declared arithmetic, as floors name it; binary32 where it is not said. */
st_arith law_arith(const iut_claims *claims);

/* Draws from fixed rows in constant time (Walker's aliases). */
typedef struct {
    int32_t V;
    uint32_t *keep; /* [rows][V] chance to keep the column's own token, as a 32-bit fraction */
    int32_t *other; /* [rows][V] the token otherwise */
} law_alias;

bool law_alias_init(law_alias *a, const double *rows /* [count][V] */, int32_t count,
                    int32_t V);
void law_alias_free(law_alias *a);

static inline int32_t law_alias_draw(const law_alias *a, int32_t row, law_random *g)
{
    /* The product's high word is the column; its low word is uniform given the column. */
    __extension__ unsigned __int128 x = (unsigned __int128)law_word(g) * (uint64_t)a->V;
    size_t at = (size_t)row * (size_t)a->V + (size_t)(x >> 64);
    return (uint32_t)((uint64_t)x >> 32) < a->keep[at] ? (int32_t)(x >> 64) : a->other[at];
}

/* -- Samplers ---------------------------------------------------------------------- */

typedef enum { LAW_VERIFY, LAW_STREAM, LAW_DRAW, LAW_TREE } law_op;

/* One call with the streams, of n, that have so many tokens. False: `r` has the failing fact. */
typedef struct law_sampler law_sampler;
typedef bool law_round(law_sampler *s, int32_t n, int32_t position, int32_t *tokens, check_result *r);

/* Streams from one operation of an IUT. Accept counts are kept on the way. */
struct law_sampler {
    const check_context *x;
    const panel *a;
    law_op op;
    int32_t gamma, k, eos; /* eos: of streams; -1: none */
    bool drawn;            /* calls of a drawn shape */
    int32_t bits;          /* of supplied uniforms */
    int32_t coins;         /* of verify, as is usual for the IUT (coins.h) */
    uint64_t seed; /* of the next stream: every stream has its own */
    law_random g, stale; /* stale: of what stands behind a list of drafts */
    law_alias q;
    struct law_room *room; /* arrays of one call */
    /* Steps that began at state s, and those whose first token was their first draft. */
    int64_t *trials, *first; /* [S] */
    int64_t trials2, first2; /* the same for two tokens, steps from state 0 with gamma >= 2 */
    int64_t asked;           /* streams of the calls before this one */
    struct law_speed *speed; /* law_speed.h; NULL: it is not known what is accepted */
    int64_t *accepts;        /* [gamma+1] drafts accepted by the first step of a stream */
    law_round *round;        /* of what is no stream of one call */
    void *own;               /* of a round that is the caller's: LAW_TREE */
};

enum {
    LAW_CHUNK = 4096, /* streams a call at most */
    LAW_STATES = 64   /* states of a panel at most; the planned ones have 12 */
};

/* False: out of memory, or the panel was refused or has too many states: `r` says so. Loads the
 * panel. `s` may be closed in any case if it was zero. */
bool law_sampler_open(law_sampler *s, const check_case *c, const check_context *x,
                      const panel *a, law_op op, int32_t k, check_result *r);
/* The same for calls of at most n streams of at most k tokens, and of c->gamma drafts at most. */
bool law_sampler_open_for(law_sampler *s, const check_case *c, const check_context *x,
                          const panel *a, law_op op, int32_t n, int32_t k, check_result *r);
void law_sampler_close(law_sampler *s);

/* n <= LAW_CHUNK streams of k tokens from state 0. False: `r` has the failing fact. A token
 * that is no id, a count out of range or an impossible token is one (LAY-01, LAW-05). */
bool law_sample(law_sampler *s, int32_t n, int32_t *tokens /* [n][k] */, check_result *r);

/* For rounds: the tokens that stream i has, and the state behind them. Appends a token, or says why it cannot be one. */
int32_t law_have(const law_sampler *s, int32_t i);
int32_t law_at(const law_sampler *s, int32_t i);
bool law_append(law_sampler *s, int32_t i, int32_t token, int32_t *tokens, check_result *r);

/* A call of a drawn shape, within what the sampler was opened for. */
typedef struct {
    int32_t n, gamma, k;
    int32_t eos;          /* of streams; -1: none */
    bool ragged;          /* verify: steps of 0 to gamma drafts */
    const int32_t *start; /* [n] states */
} law_call;

/* The streams of such a call: of k tokens, but of fewer where they end with eos. Every request
 * keeps its place in the batch, whatever calls a stream takes. False: as law_sample(). */
bool law_sample_call(law_sampler *s, const law_call *call, int32_t *tokens /* [n][k] */,
                     int32_t *length /* [n] */, check_result *r);

/* How often at most the first token of a step from this state is its first draft (STAT-05), and
 * the first two tokens are the first two drafts. */
double law_bound(const law_sampler *s, int32_t state);
double law_bound2(const law_sampler *s, int32_t state);

/* ln E of the accept counts against LAW-04: one token at every state, two tokens at state 0
 * when V allows to enumerate its bound. */
double law_coupling(const law_sampler *s);

/* Is op claimed, with what a law check needs: a lossless rule, V and gamma within the limits?
 */
bool law_claimed(const check_case *c, const client *subject, law_op op, char *why,
                 size_t why_size);

/* -- The two gates ----------------------------------------------------------------- */

/* Tables of a law case of k tokens at most: k marginals, k-1 pairs, and the accept length of
 * verify under the token rule. */
static inline int32_t law_tables(int32_t k)
{
    return 2 * k;
}

/* Adds the tokens of a case to its sum; placed: counts at each position, in each state. seed: of the
 * cells of the PIT. False: no memory. */
bool law_pool(const law_sampler *s, const int32_t *placed /* [k][S][V] */, uint64_t seed,
              st_pool *sum);

/* Samples c->n streams and judges them by both gates; sets state, detail, figures, log_e,
 * log_p. */
void law_judge(law_sampler *s, const check_case *c, check_result *r);

/* Does the strict null hold for that many draws of the declared arithmetic and uniforms
 * (STAT-03)? If not, `r` says so: checks without a tolerance null leave the case at that. */
bool law_strict(const law_sampler *s, int64_t draws, check_result *r);

/* The whole of a law case: panel from the form, sampler, judgement. k = gamma + 2. */
void law_case(const check_case *c, const check_context *x, const panel_form *form, law_op op,
              check_result *r);

/* A row of a plan: what a law case is made of. */
typedef struct {
    int32_t V;
    double acceptance;
    int32_t gamma;
    panel_variant variant;
} law_cell;

/* Plans one case for each cell, its id "V64-a0.7-g2" or "V64-masked-g2"; c->variant is the
 * panel variant. */
void law_plan(check_plan *plan, const check *owner, check_level level, const law_cell *cells,
              size_t count);
/* Plans every acceptance (0.3, 0.7, 0.95) with every gamma (1, 2, 4) at one vocabulary. */
void law_grid(check_plan *plan, const check *owner, check_level level, int32_t V);
/* The form of a cell's panel; every case and every run seed has its own rows. */
panel_form law_form(const check_case *c, const check_context *x);

/* n draws of the next checkpoint after `done`: powers of two from 256, steps of 1.1 at deep. */
int64_t law_checkpoint(int64_t done, int64_t n, check_level level);

/* Declared samples of a level (design of the levels: docs/statistics.md). */
int64_t law_samples(check_level level, int32_t V);

#endif
