/* lm.h - what the checks of a language model share: a loaded model, calls on one sequence, runs
 * that never drafted anything, and comparisons of bits. Clauses TREE, KV, NET, ARI.
 *
 * Every function that calls the implementation returns false when the case is decided: the
 * result says why. */
#ifndef ASSAY_CONFORMANCE_CHECKS_MODEL_LM_H
#define ASSAY_CONFORMANCE_CHECKS_MODEL_LM_H

#include "conformance/checks/frame/check.h"
#include "conformance/checks/model/lm_trail.h"

extern const check check_lm_canonical, check_lm_rows, check_lm_tree, check_lm_rollback,
    check_lm_greedy, check_lm_random, check_lm_long;

/* Which mistake a failure looks like (lm_explain.h). */
typedef struct {
    const char *clause; /* that it disproves; NULL: unknown */
    bool named, due;    /* a mistake is named; the answer is as due, so the other one is wrong */
    char text[120];     /* the mistake */
} lm_cause;

typedef struct {
    const check_context *x;
    check_result *r;
    const char *folder;
    char trained[600]; /* where folder points, for a model of the vectors */
    int32_t V, layers, kv_heads, head_dim;
    int32_t sequences, positions, rows;
    bool cache, poison; /* claimed: reading and poisoning the cache */
    float *entries;     /* scratch of lm_same_cache */
    lm_trail *trail;    /* the calls since lm_open; NULL: they are not kept */
    const char *clause; /* that the case asks about, for lm_conclude */
    lm_cause cause;     /* of the failure */
} lm;

enum { LM_TRAINED = 258 }; /* ids of the trained pair: bytes, BOS, EOS */

enum { LM_CACHE = 1, LM_POISON = 2, LM_BITS = 4 };

/* Are the operations claimed, and models of this one's architecture (CLM-07) and size (VAR-10), and whatever else
 * of LM_* is needed? If not, `why` says. */
bool lm_claimed(const client *tested, const char *model, unsigned needs, char *why,
                size_t why_size);
/* CLM-07 and VAR-10 alone. */
bool lm_serves(const client *tested, const char *model, char *why, size_t why_size);
/* The same of an architecture, IUT_LLAMA ..., and V ids, for models without a name, which are not exported (CLM-28). */
bool lm_claimed_kind(const client *tested, uint8_t architecture, int32_t V, unsigned needs, char *why,
                     size_t why_size);
bool lm_serves_kind(const client *tested, uint8_t architecture, int32_t V, char *why, size_t why_size);

/* What the trained pair has learnt looks like these. */
enum { LM_PROMPTS = 6 };
extern const char *const lm_prompts[LM_PROMPTS];

/* What lm_open() begins with: the claims of the implementation, and no model yet. */
void lm_begin(lm *m, const check_context *x, check_result *r);

/* The folder of a model: "target" and "draft" are the trained pair, others small (lm_small.h).
 */
bool lm_folder(lm *m, const char *model);

/* Loads a model: each of the sequences is empty. lm_close() in either event. */
bool lm_open(lm *m, const check_context *x, check_result *r, const char *model,
             int32_t sequences, int32_t positions, int32_t rows);
/* The same model once more, with its cache laid out in another way. */
bool lm_reload(lm *m, uint32_t layout_seed);
void lm_close(lm *m);

/* Puts before a FAIL the clause, that of a mistake or the case's, and behind it the mistake. */
void lm_conclude(lm *m);

/* ---- One sequence. --------------------------------------------------------------- */

/* parent NULL: a chain on the prefix; want NULL: all rows in order, wants is then ignored. */
bool lm_forward(lm *m, int32_t sequence, const int32_t *token, const int32_t *parent,
                int32_t rows, const int32_t *want, int32_t wants,
                float *logits /* [wants][V] */);
/* The call alone, for what may be refused. */
call_result lm_try_forward(lm *m, int32_t sequence, const int32_t *token, const int32_t *parent,
                           int32_t rows, const int32_t *want, int32_t wants, float *logits);

/* path NULL: rows 0..n-1. `length` is what the prefix must then have; another answer is FAIL.
 */
bool lm_commit(lm *m, int32_t sequence, const int32_t *path, int32_t n, int32_t length);
call_result lm_try_commit(lm *m, int32_t sequence, const int32_t *path, int32_t n,
                          int32_t *length);
bool lm_truncate(lm *m, int32_t sequence, int32_t keep);
call_result lm_try_truncate(lm *m, int32_t sequence, int32_t keep, int32_t *length);
bool lm_poison(lm *m);

/* The same of several sequences. */
call_result lm_call_forward(lm *m, iut_forward_batch *b);
call_result lm_call_commit(lm *m, iut_commit_batch *b);
call_result lm_call_truncate(lm *m, iut_truncate_batch *b);

/* A call that had to be refused: with a reason, and as bad input or unsupported. True when it
 * was; a FAIL that names `what` otherwise. */
bool lm_refused(lm *m, const char *op, call_result call, const char *what);

/* ---- Runs without a draft. ------------------------------------------------------- */

/* Appends n tokens to an empty or longer sequence that holds `from`, one row a forward, each
 * committed. logits NULL: not asked for. */
bool lm_plain(lm *m, int32_t sequence, int32_t from, const int32_t *token, int32_t n,
              float *logits /* [n][V] */);
/* n tokens on top of `from` in forwards of `rows` rows, committed; logits as above. */
bool lm_fill(lm *m, int32_t sequence, int32_t from, const int32_t *token, int32_t n,
             int32_t rows, float *logits /* [n][V] */);

/* ---- Comparisons. ---------------------------------------------------------------- */

/* Rows of logits equal in all their bits, and numbers; else FAIL, which says where and, after
 * that, what `what` and the rest format. */
bool lm_same_logits(lm *m, const float *got, const float *want /* [rows][V] */, int32_t rows,
                    const char *what, ...) __attribute__((format(printf, 5, 6)));
/* After a FAIL: which mistake the row of a forward is, or the one that it was held against (NULL: of no forward). */
void lm_tell_logits(lm *m, const float *got, const float *want);
/* The same of the keys and values of one layer, [KV heads * head_dim] each. */
void lm_tell_entries(lm *m, int32_t sequence, int32_t position, int32_t layer, const float *key, const float *value);
/* Are they? Nothing is decided. */
bool lm_equal(const lm *m, const float *a, const float *b, int32_t rows);

/* The entries of one position, [layers][KV heads * head_dim] each: a call a layer. */
bool lm_read_position(lm *m, int32_t sequence, int32_t position, float *key, float *value);

/* How far apart the logits of two tokens are at most in a near-tie of the declared arithmetic (CLM-08). */
double lm_reach(const iut_claims *claims, const float *logits, int32_t V);
/* A near-tie: `r` is INCONCLUSIVE if only an arithmetic coarser than binary32 explains it, and none is said. */
void lm_near_tie(check_result *r, const iut_claims *claims, const float *logits, int32_t V, double apart);

/* The cache of two sequences holds the same bits for positions first .. first+n-1; true at once
 * when cache_read is not claimed. */
bool lm_same_cache(lm *m, int32_t got, int32_t want, int32_t first, int32_t n, const char *what,
                   ...) __attribute__((format(printf, 6, 7)));

/* Everything that can be seen of a sequence of n tokens: its cache is that of the prefix of
 * `plain`, and the token that follows there gives the logits seen there. */
bool lm_same_state(lm *m, int32_t got, int32_t plain, const int32_t *token /* [n+1] */,
                   const float *logits /* [n+1][V] */, int32_t n, const char *what, ...)
    __attribute__((format(printf, 7, 8)));

/* The lowest id of the largest logits (GRD-02). */
int32_t lm_argmax(const float *logit /* [V] */, int32_t V);

/* Random ids of the vocabulary. */
void lm_tokens(const lm *m, uint64_t *rng, int32_t *token, int32_t n);

/* Floats, or NULL with the result set to ERROR. */
float *lm_floats(lm *m, int64_t rows /* of V */);

#endif
