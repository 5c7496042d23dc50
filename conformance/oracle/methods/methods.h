/* methods.h - Jacobi decoding, lookahead and prompt lookup, step by step: an independent second
 * implementation, slow and without a trick, from the text of chapters 7 to 9. There is no tree
 * and no cache: a row is its logical path, and the model is asked for the row after it. Clauses
 * JAC, LAH, POOL, ONEH, LKP, STOP-01, STOP-02.
 *
 * Streams are short: positions and vocabularies within the names of lane.h. */
#ifndef ASSAY_CONFORMANCE_ORACLE_METHODS_METHODS_H
#define ASSAY_CONFORMANCE_ORACLE_METHODS_METHODS_H

#include "conformance/oracle/law/served.h"
#include "conformance/oracle/methods/pool.h"

struct lane; /* lane.h */

/* A model: the logits of the token that follows a path, prompt included. */
typedef struct {
    int32_t V;
    void (*logits)(const void *self, const int32_t *path /* [n] */, int32_t n,
                   float *logits /* [V] */);
    const void *self;
} oracle_lm;

typedef struct {
    const int32_t *prompt; /* [n], n >= 1 */
    int32_t n;
    int32_t budget;          /* tokens to emit, >= 1 */
    int32_t eos;             /* the end-of-sequence token, or -1 */
    int32_t positions, rows; /* what a forward of the model holds (KV-06); 0: no limit */
    oracle_sampling sampling;
    uint64_t seed;
} oracle_request;

/* ---- Methods ---------------------------------------------------------------------- */

typedef enum {
    ORACLE_JACOBI,
    ORACLE_LOOKAHEAD,
    ORACLE_LOOKUP,
    ORACLE_OUROBOROS, /* ouroboros.h */
    ORACLE_METHODS
} oracle_method_name;

/* A switch of chapters 7 to 9 and 11: its name, and its values by name, blanks between. The value of a
 * switch is the place of its name in the list. */
typedef struct {
    const char *name, *values;
} oracle_switch;

enum { JACOBI_INIT, JACOBI_SWITCHES };
enum { JACOBI_PAD, JACOBI_LAST, JACOBI_PROMPT, JACOBI_GIVEN, JACOBI_VOCABULARY };

enum {
    LAH_INIT,
    LAH_FIRST_PLAIN,
    LAH_WARMUP,
    LAH_VERIFY_FILLING,
    LAH_FILL_COLUMNS,
    LAH_POOL_FROM_PROMPT,
    LAH_POOL_FROM_OUTPUT,
    LAH_POOL,
    LAH_KEY,
    LAH_BONUS,
    LAH_ACCEPT_WINDOW,
    LAH_SHIFT,
    LAH_WINDOW,
    LAH_RULE,
    LAH_EOS_FILTER,
    LAH_SWITCHES
};
enum { LAH_INIT_PROMPT, LAH_INIT_CONSTANT, LAH_INIT_GIVEN, LAH_INIT_VOCABULARY };
enum { LAH_FILL_ALL, LAH_FILL_LAST };
enum { LAH_POOL_LRU, LAH_POOL_RING };
enum { LAH_KEY_ROOT, LAH_KEY_STALE, LAH_KEY_NEXT };
enum { LAH_SHIFT_REL1, LAH_SHIFT_ABSPAD, LAH_SHIFT_ROWROT };
enum { LAH_WINDOW_ARGMAX, LAH_WINDOW_SAMPLED };
enum { LAH_RULE_ONEHOT, LAH_RULE_MATCH, LAH_RULE_NONE };

enum { LKP_PARTIAL, LKP_CUT_AT_EOS, LKP_RULE, LKP_SWITCHES };
enum { LKP_RULE_ONEHOT, LKP_RULE_MATCH };

enum { ORACLE_SWITCHES = LAH_SWITCHES };

/* Sizes: block m, pad (a token) of Jacobi; W, N, G of lookahead; longest n, drafts K of lookup;
 * gamma, W, N, K of Ouroboros. `given` serves the inits of that name. Switches: 0 is no, 1 is
 * yes. */
typedef struct {
    oracle_method_name name;
    int32_t size[4];
    int32_t sw[ORACLE_SWITCHES];
    const int32_t *given; /* [given_n] */
    int32_t given_n;
    const oracle_lm *draft; /* the draft model of Ouroboros, without limits */
} oracle_method;

/* "jacobi", and the blank-separated names of its sizes; the switches and their number. */
const char *oracle_method_text(oracle_method_name name);
const char *oracle_method_sizes(oracle_method_name name);
const oracle_switch *oracle_method_switches(oracle_method_name name, int32_t *n);
/* Is switch s younger than the first vectors? A vector that leaves it out has its first value. */
bool oracle_switch_later(oracle_method_name name, int32_t s);
/* The number of values of a switch. */
int32_t oracle_switch_values(const oracle_switch *s);

/* Sets the switches of a preset: paper, lade, llamacpp, trtllm; original, hf (which have
 * longest and drafts too); paper, code of Ouroboros. False when the method has none of that name. */
bool oracle_preset(oracle_method *m, const char *preset);

/* ---- Traces ----------------------------------------------------------------------- */

/* One step. The window is R_0, R_1, ... as LAH-01 stores them: R_0 without the root, with a
 * token of its own before it if keys are stale; empty for the other methods, and until it is
 * made. */
typedef struct {
    oracle_lists rows;       /* the paths below the root, in order; the root's own is empty */
    oracle_lists candidates; /* verified in this step: values of the pool, drafts, guess */
    oracle_list drafts;      /* of a round of Ouroboros, which its candidates begin with */
    int32_t accepted;        /* tokens of the rows accepted, before the stop rules */
    oracle_list run;         /* the tokens of the step before the stop rules; k = run.n - 1 */
    oracle_list emitted;
    oracle_lists window; /* after the step */
    oracle_pool pool;    /* after the step */
} oracle_step;

typedef struct {
    char error[160];      /* why the request was refused; empty: it was not */
    oracle_list tokens;   /* emitted */
    oracle_lists window0; /* lookahead: window and pool before the first step */
    oracle_pool pool0;
    int32_t steps, room;
    oracle_step *step; /* [steps] */
} oracle_trace;

/* Runs a request to its end; the caller frees the trace. */
void oracle_decode(const oracle_lm *lm, const oracle_request *q, const oracle_method *m,
                   oracle_trace *trace);
/* The same with the uniforms of a lane for all draws from rows: with symbolic ones, the law of
 * the tokens. Those that draw from prompt or history (INIT, and WINDOW's padding) are the
 * seed's. */
void oracle_decode_by(struct lane *l, const oracle_lm *lm, const oracle_request *q,
                      const oracle_method *m, oracle_trace *trace);
/* Plain decoding, one token a step. */
void oracle_plain(const oracle_lm *lm, const oracle_request *q, oracle_trace *trace);
bool oracle_step_alike(const oracle_step *a, const oracle_step *b);
void oracle_step_free(oracle_step *step);
bool oracle_trace_alike(const oracle_trace *a, const oracle_trace *b);
void oracle_trace_free(oracle_trace *trace);

/* The drafts of LKP-01 to LKP-04 from a history. */
void oracle_lookup(const int32_t *history /* [L] */, int32_t L, int32_t longest, int32_t drafts,
                   bool partial, bool cut_at_eos, int32_t eos, oracle_list *found);

#endif
