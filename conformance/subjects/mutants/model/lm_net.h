/* lm_net.h - the network of the model mutants: chapter 2's layers over the oracle's operations
 * with one fault (faulty.h). It knows rows and what each sees; trees, caches and refusals are
 * lm_subject.c's. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_LM_NET_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_MODEL_LM_NET_H

#include "conformance/oracle/arithmetic/faulty.h"
#include "conformance/oracle/arithmetic/folder.h"
#include "conformance/subjects/mutants/faults/fault.h"
#include "conformance/subjects/mutants/model/lm_format.h"
#include "ref/num/dense.h"

/* A matrix twice: packed for the plain case, as rows for the faulty one. */
typedef struct {
    as_matrix packed;
    const float *rows; /* [N][K] */
    int32_t N, K;
    bool faint; /* some weight is subnormal */
} net_map;

typedef struct {
    net_map q, k, v, o, gate, up, down;
} net_layer;

typedef struct {
    fault_point fault;
    manner manner;
    lm_format format;
    int32_t company;       /* requests that its kernels are chosen for */
    oracle_faulty faulty;  /* the fault of arithmetic, or none */
    oracle_faulty strided; /* another kernel's sums */
    oracle_folder *folder; /* who reads the weights */
    const oracle_model *m;
    net_layer *layer; /* [layers] */
    net_map output;
    float *frequency; /* [d/2] */
} net;

/* The circumstances of a forward, which must not matter: what leaks look at. */
typedef struct {
    int32_t rows, sequences, prefix; /* rows and prefix of the sequence at hand */
} net_setting;

/* False: `why` says why. net_close() in either event. */
bool net_open(net *a, const char *folder, char *why, size_t why_size);
void net_close(net *a);

/* y[r] = W x[r] for the rows of a forward. */
void net_product(const net *a, const net_setting *s, const net_map *w, const float *bias,
                 const float *x, int32_t rows, float *y);
void net_norm(const net *a, const net_setting *s, const float *x, const float *gain,
              int32_t rows, int32_t n, float *y);

/* Query and key of one row, from the products: norms of the heads, then the rotation. */
void net_turn(const net *a, const oracle_layer *w, int32_t position, float *q, float *k);

/* The chunk of a position (ARI-16). */
int32_t net_chunk(const net *a, const net_setting *s, int32_t position);

/* All heads of one row; the chunks of what it meets ascend. */
void net_attend(const net *a, const float *q, oracle_entry *met, int32_t n,
                float *out /* [heads d] */);

#endif
