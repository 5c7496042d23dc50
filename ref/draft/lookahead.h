/* lookahead.h - lookahead decoding: a window of guessed tokens keeps producing n-grams, a pool
 * keeps these, and each step verifies the n-grams that begin with the last token. Clauses
 * LAH-01 to LAH-37; the switches are those of chapter 8's table. */
#ifndef ASSAY_REF_DRAFT_LOOKAHEAD_H
#define ASSAY_REF_DRAFT_LOOKAHEAD_H

#include "ref/draft/draft.h"
#include "ref/draft/ngram_pool.h"

typedef enum { AS_FILL_PROMPT, AS_FILL_CONSTANT, AS_FILL_GIVEN, AS_FILL_VOCABULARY } as_fill;
typedef enum { AS_KEY_ROOT, AS_KEY_STALE, AS_KEY_NEXT } as_key;
typedef enum { AS_SHIFT_REL1, AS_SHIFT_ABSPAD, AS_SHIFT_ROWROT } as_shift;

typedef struct {
    int32_t W, N, G; /* 1 to AS_LOOKAHEAD_MOST, 2 to ..., 0 to ... */
    as_fill init;
    bool first_plain, warmup, verify_filling;
    bool fill_last; /* fill_columns: last rather than all */
    bool pool_from_prompt, pool_from_output;
    as_pool_policy pool;
    as_key key; /* of the n-gram of column 0 */
    bool bonus, accept_window;
    as_shift shift;
    bool sampled; /* window: sampled rather than argmax, above T = 0 */
    as_rule rule; /* above T = 0: ONEHOT, MATCH, or GREEDY for none */
    bool eos_filter;
    const int32_t *given; /* [givens] for AS_FILL_GIVEN; they must outlive the drafter */
    int32_t givens;
} as_lookahead;

enum { AS_LOOKAHEAD_MOST = 4096 };

/* The switches of "paper", "lade", "llamacpp" or "trtllm", W, N and G being 0; NULL:
 * unknown. */
const as_lookahead *as_lookahead_preset(const char *name);

/* For the rules greedy and o->rule. AS_BAD_INPUT, by name, for values out of range and for
 * pairs without a meaning. */
as_status as_draft_lookahead(const as_lookahead *o, int32_t V, as_drafter **d, as_error *e);

/* Forgets the window alone, as for a new sequence; the pool stays (OUR-04). */
void as_lookahead_forget_window(as_drafter *d);

/* ---- What a trace may look at, after each step. ------------------------------------ */

/* Row R_l of the window, from the first column that it has, and how many these are (LAH-10);
 * NULL if the row does not exist (yet). Column 0 of R_0 is the token stored there with
 * AS_KEY_STALE, otherwise -1: the root stands there. */
const int32_t *as_lookahead_row(const as_drafter *d, int32_t l,
                                int32_t *columns /* result: [columns] */);

/* The pool. Whatever is inserted into it, the output stays the same (LAH-28). */
as_pool *as_lookahead_pool(as_drafter *d);

/* Gives the drafter another pool, of the same V, G and length, and returns the one that it had,
 * which is the caller's then. NULL leaves it without one: it may then be freed, or given one. */
as_pool *as_lookahead_exchange_pool(as_drafter *d, as_pool *pool);

#endif
