/* random_request.h - requests to small models, any number of them, each from its number: all
 * methods, presets and switches, with the limits that a request can meet. */
#ifndef ASSAY_TESTS_ORACLE_RANDOM_REQUEST_H
#define ASSAY_TESTS_ORACLE_RANDOM_REQUEST_H

#include "vectors/read/vectors.h"

enum { REQUEST_PROMPT = 12, REQUEST_GIVEN = 12, REQUEST_V = 12 };
enum { REQUEST_STATES = REQUEST_V * REQUEST_V };

typedef enum { PAPER, LADE, LLAMACPP, TRTLLM, ANY, JACOBI, ORIGINAL, HF, KINDS } request_kind;
extern const char *const request_kind_name[KINDS];

typedef struct {
    request_kind kind; /* of lookahead up to ANY, which has any switches */
    vector_toy toy;
    oracle_request q;
    oracle_method m;
    int32_t prompt[REQUEST_PROMPT], given[REQUEST_GIVEN];
    int32_t cls[REQUEST_V], next[REQUEST_STATES * REQUEST_V],
        logits[REQUEST_STATES * REQUEST_V];
} random_request;

/* *r points into itself. */
void random_request_make(uint64_t number, random_request *r);

#endif
