/* toy.h - language models without weights, whose logits are small integers made from integers,
 * exact in binary32: what the traces of the decoding methods are made with. */
#ifndef ASSAY_CONFORMANCE_ORACLE_METHODS_TOY_H
#define ASSAY_CONFORMANCE_ORACLE_METHODS_TOY_H

#include <stdint.h>

/* The next row is pseudo-random in the last `order` tokens of the path (all that there are when
 * they are fewer), or in the whole path with order 0. With t_1 ... t_n these tokens, h_0 = seed
 * and h_i = words 0 (low) and 1 (high) of Philox with key h_{i-1} (low, high) and counter (t_i,
 * 0, 0, 0); logit t is floor(b * levels / 256), b being byte t mod 16 (from the least
 * significant byte of word 0 on) of Philox with key h_n and counter (floor(t / 16), 1, 0, 0).
 */
typedef struct {
    uint64_t seed;
    int32_t V, order, levels; /* levels 1 to 256 */
} oracle_hash;

/* A finite automaton: it begins in state `start`; token t leads from state s to
 * next[s][cls[t]]; the row after a path is that of the state it leads to. */
typedef struct {
    int32_t V, S, C, start;
    const int32_t *cls;    /* [V] */
    const int32_t *next;   /* [S][C] */
    const int32_t *logits; /* [S][V] below 2^24 in size */
} oracle_table;

/* The logits of the token that follows the path; `self` is an oracle_hash, an oracle_table. */
void oracle_hash_logits(const void *self, const int32_t *path /* [n] */, int32_t n,
                        float *logits /* [V] */);
void oracle_table_logits(const void *self, const int32_t *path /* [n] */, int32_t n,
                         float *logits /* [V] */);

#endif
