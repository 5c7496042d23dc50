/* ouroboros_request.h - requests of Ouroboros to small pairs of models, any number of them,
 * each from its number: presets and switches, the limits that a request can meet, pools that
 * are there before. */
#ifndef ASSAY_TESTS_ORACLE_OUROBOROS_REQUEST_H
#define ASSAY_TESTS_ORACLE_OUROBOROS_REQUEST_H

#include "conformance/oracle/methods/ouroboros.h"
#include "conformance/oracle/methods/toy.h"

enum { PAIR_V = 8, PAIR_STATES = PAIR_V * PAIR_V, PAIR_PROMPT = 8, PAIR_GIVEN = 6 };

/* A target whose states are the last one or two tokens, and a draft model that differs from it
 * in some states. */
typedef struct {
    int32_t V;
    int32_t cls[PAIR_V], next[PAIR_STATES * PAIR_V], logits[2][PAIR_STATES * PAIR_V];
    oracle_table table[2];
    oracle_lm lm[2];
} random_pair;

typedef struct {
    random_pair pair;
    oracle_pair both;
    oracle_ouroboros m;
    oracle_request q;
    int32_t prompt[PAIR_PROMPT], given[PAIR_GIVEN];
    uint64_t state; /* of the generator */
} ouroboros_request;

/* *pair points into itself. */
void random_pair_make(random_pair *pair, uint64_t *state);

/* Models, sizes and switches, and an instance, whose pool has something half of the time; it is
 * warm three times of four. *r points into itself. */
void ouroboros_request_make(uint64_t number, ouroboros_request *r, oracle_instance *x);

/* The next request to these models. */
void ouroboros_request_next(ouroboros_request *r);

/* A preset with these sizes; a greedy request without limits; a warm instance with an empty
 * pool before its first request. */
oracle_ouroboros ouroboros_method(const char *preset, int32_t gamma, int32_t W, int32_t N,
                                  int32_t K);
oracle_request greedy_request(const int32_t *prompt /* [n] */, int32_t n, int32_t budget);
oracle_instance warm_instance(const oracle_ouroboros *m, int32_t V);
void pool_value(oracle_pool *pool, int32_t key, int32_t n, const int32_t *value /* [n] */);

#endif
