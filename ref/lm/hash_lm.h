/* hash_lm.h - a language model without weights: its logits are pseudo-random small integers of
 * the whole path. Any token that is missing, stale, repeated or out of place in a cache changes
 * all later logits, which is what it is for. */
#ifndef ASSAY_REF_LM_HASH_LM_H
#define ASSAY_REF_LM_HASH_LM_H

#include "ref/lm/lm.h"

typedef struct {
    int32_t V;      /* 1 to AS_MAX_VOCAB */
    int32_t levels; /* 1 to 256: logits are 0 to levels-1; few levels, many ties */
    int32_t noise;  /* 0 to 256: adds 0 to noise-1 from noise_seed; 0 and 1 add nothing */
    uint64_t seed;  /* models of one seed agree up to their noise: a draft and its target */
    uint64_t noise_seed;
} as_hash_law;

/* The state after a path t_1 ... t_n is h_n: h_0 = seed, h_i = words 0 (low) and 1 (high) of
 * Philox with key h_{i-1} (low, high) and counter (t_i, 0, 0, 0). Logit t is byte t mod 16,
 * counted from the least significant, of the words of Philox with key h_n and counter (t / 16,
 * 1, 0, 0), times levels, divided by 256 and rounded down; plus, if noise > 1, the same of
 * noise under the key h_n xor noise_seed and counter (t / 16, 2, 0, 0). */
as_status as_hash_lm(const as_hash_law *law, as_lm **lm, as_error *e);

#endif
