/* decoding.h - what the methods of methods.h have in common: the history, questions to the
 * model, the end of a step. */
#ifndef ASSAY_CONFORMANCE_ORACLE_METHODS_DECODING_H
#define ASSAY_CONFORMANCE_ORACLE_METHODS_DECODING_H

#include "conformance/oracle/law/candidates.h"
#include "conformance/oracle/methods/methods.h"

typedef struct {
    const oracle_lm *lm;
    const oracle_request *q;
    const oracle_method *method;
    oracle_trace *trace;
    oracle_list history; /* the prompt and all emitted tokens */
    bool ended;
    lane *lane; /* the uniforms of draws from rows */
} oracle_decoding;

/* Is the request at temperature 0? */
bool oracle_is_greedy(const oracle_decoding *d);

/* m: the stream position of the token that follows the history. */
int32_t oracle_position(const oracle_decoding *d);

/* Of the row after the history and `path`: the argmax; the served row's weights. */
int32_t oracle_path_argmax(oracle_decoding *d, const oracle_list *path);
void oracle_path_weights(oracle_decoding *d, const oracle_list *path, uint64_t *w /* [V] */);

/* Entry floor(U*n / 2^64) of n tokens (of 0, 1, ... n - 1 if t is NULL), by the seed's draw uniform (RNG-05) of that
 * name. */
int32_t oracle_drawn_from(const oracle_decoding *d, const int32_t *t, int32_t n,
                          uint32_t purpose, int32_t position, int32_t index);

/* Does a step with these rows fit into the model? */
bool oracle_fits(const oracle_decoding *d, const oracle_lists *rows);
/* The lesser of two numbers. */
int32_t oracle_at_most(int32_t n, int32_t limit);
/* The rows of one chain below the root, the root included. */
void oracle_chain_rows(const oracle_list *chain, oracle_lists *rows);

/* The next step of the trace, all empty; valid until the one after it. */
oracle_step *oracle_begin_step(oracle_decoding *d);
/* Verifies candidates (greedily, by one-hot or the match rule) into `accepted` and `run`. */
void oracle_verify_step(oracle_decoding *d, oracle_step *s, const oracle_lists *candidates,
                        bool match, bool bonus);
/* From run to emitted (STOP-01, STOP-02) and into the history. */
void oracle_emit(oracle_decoding *d, oracle_step *s);

/* Why a request must be refused, whatever its method: a name; NULL: it need not. */
const char *oracle_bad_request(const oracle_lm *lm, const oracle_request *q);

/* Lookahead step by step, before and after steps with the pool and the window that it has then.
 * A step goes on from the history, which may be another one than the last step left. */
typedef struct oracle_lookahead oracle_lookahead;
oracle_lookahead *oracle_lookahead_open(oracle_decoding *d);
oracle_step *oracle_lookahead_step(oracle_lookahead *a);
oracle_pool *oracle_lookahead_pool(oracle_lookahead *a);
void oracle_lookahead_show(const oracle_lookahead *a, oracle_lists *window); /* LAH-01 */
void oracle_lookahead_close(oracle_lookahead *a);

/* The loops; `ended` tells when they are done. */
void oracle_run_jacobi(oracle_decoding *d);
void oracle_run_lookahead(oracle_decoding *d);
void oracle_run_lookup(oracle_decoding *d);

#endif
