/* fault.h - the names of the faults, of the settings, and how a fault point is written:
 *
 *     if (fault(f, RESIDUAL_ROW_0)) i = 0;
 *
 * at the very place where the bug would be. FAULT_NONE is the plain implementation. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_FAULTS_FAULT_H
#define ASSAY_CONFORMANCE_SUBJECTS_MUTANTS_FAULTS_FAULT_H

#include <stdbool.h>
#include <stdint.h>

typedef enum {
    FAULT_NONE,
#define FAULT(point, setting, clause, check, provenance, text) FAULT_##point,
#define AGAIN(point, setting, clause, check, text)
#include "conformance/subjects/mutants/faults/faults.def"
#undef FAULT
#undef AGAIN
    FAULT_POINTS
} fault_point;

#define fault(f, point) ((f) == FAULT_##point)

typedef enum {
#define SETTING(name, uniforms, bits, input, map, rule, arithmetic, manner) SETTING_##name,
#include "conformance/subjects/mutants/faults/settings.def"
#undef SETTING
    SETTING_COUNT
} setting_name;

/* The declarations that change what the implementation does; values as in iut.h. */
/* A right way that is not the usual one; claims() declares it. */
typedef enum {
    MANNER_USUAL,
    MANNER_Q_ZERO_REJECT,
    MANNER_TIES_LAST,
    MANNER_BAD_DRAFT_REJECT,
    MANNER_EMPTY_OTHER,
    MANNER_MAX_GAMMA_1,
    MANNER_ADAPTIVE,
    MANNER_ONE_COIN, /* ends a step with one uniform */
    MANNER_RACE,     /* or with a race */
    MANNER_SEED_32,  /* keeps 32 bits of a seed, and says so */
    MANNER_VLLM_TIES,    /* min-p before top-k, which keeps ties */
    MANNER_TYPICAL,      /* rules that are declared not lossless: Medusa's threshold, */
    MANNER_CONSTANT,     /* a constant one, */
    MANNER_LENIENT,      /* a part of q in tests and corrections */
    MANNER_RELAXED,      /* CONSTANT that accepts more than the argmax at T = 0, and promises nothing there */
    MANNER_TREE,         /* verifies trees (tree/subject.h); and so the next twelve */
    MANNER_TREE_LAST_OF_EQUAL, /* names the last node of a path's tokens */
    MANNER_TREE_MERGED,   /* goes on below each node of a path's tokens, under MATCH and GREEDY */
    MANNER_TREE_SAMPLED,  /* starts from logits where requests have samplings */
    MANNER_TREE_FIXED,    /* has the rules for any tree alone */
    MANNER_TREE_SMALL,    /* takes small trees alone */
    MANNER_TREE_ONE_COIN, /* as MANNER_ONE_COIN and MANNER_RACE */
    MANNER_TREE_RACE,
    MANNER_TREE_GIVEN,    /* takes the bonus from its caller */
    MANNER_TREE_VOCAB,    /* takes drafts with ids of their own */
    MANNER_TREE_OTHER,    /* tries independent siblings from the last on, and says that its rule is its own */
    MANNER_TREE_OTHER_ANY, /* says that of ONEHOT, and claims it for any tree */
    MANNER_TREE_IID,      /* has the rules for any tree alone, of independent siblings */
    MANNER_POOL,         /* keeps pools of n-grams, and nothing else (pool_subject.h) */
    MANNER_POOL_STAMPED, /* the same in nodes with stamps */
    MANNER_LM,     /* serves models and no panels (lm_subject.h) */
    MANNER_LM_SELF, /* the same in an arithmetic of its own */
    MANNER_LM_BF16, /* in formats that promise no bits (lm_format.h), below an engine alone */
    MANNER_LM_F16,
    MANNER_LM_Q8,
    MANNER_LM_Q4,
    MANNER_TRACES,  /* has traces, and nothing else (trace_subject.h) */
    MANNER_TRACES_RANKS, /* and says that workers share the steps of lookahead */
    MANNER_ENGINE,  /* generates, and nothing else (engine_subject.h); and so all that follow */
    MANNER_ENGINE_STALE, /* never cleans its draft model's cache */
    MANNER_ENGINE_TOTAL, /* tells accepted drafts as a total */
    MANNER_ENGINE_OWN_END, /* ends at the model's own end of sequence, whatever is asked */
    MANNER_ENGINE_TIES_ANY, /* emits the last of equal logits behind drafts, and says so */
    MANNER_ENGINE_MIXED, /* takes sampling, seed, budget and ends of each request */
    MANNER_ENGINE_FEWER, /* drafts half as much on every other step */
    MANNER_ENGINE_SEED_32, /* keeps 32 bits of a seed, and says so */
    MANNER_ENGINE_STRIDED, /* sums in another order, in binary32, and promises no bits; and so the next nine */
    MANNER_ENGINE_PRUNED,   /* takes a draft model with a vocabulary of its own; and so the next three */
    MANNER_ENGINE_PRUNED_FURTHER, /* and leaves out the last of its ids */
    MANNER_ENGINE_PRUNED_DOUBLE,  /* and divides its rows in double */
    MANNER_ENGINE_Q8,       /* in binary32 with quantised weights */
    MANNER_ENGINE_Q4,
    MANNER_ENGINE_LLAMACPP, /* with filters in the order of that engine */
    MANNER_ENGINE_MLX,
    MANNER_ENGINE_VLLM,
    MANNER_ENGINE_TIES_KEPT, /* top-k keeps all that tie with the k-th */
    MANNER_ENGINE_PENALTY_OUTPUT, /* penalties see the output alone, and the draft model has none */
    MANNER_ENGINE_PENALTY_WINDOW, /* they see the last 20 tokens */
    MANNER_ENGINE_PENALTY_SOFT,   /* they are subtracted from the log-softmax */
    MANNER_METHODS,      /* offers every method besides */
    MANNER_JACOBI,       /* one method alone, and with a draft model one draft at most */
    MANNER_LOOKAHEAD,
    MANNER_LOOKUP,
    MANNER_JACOBI_WARM,    /* a Jacobi that samples above T = 0 */
    MANNER_LOOKAHEAD_COLD, /* lookahead at T = 0 alone */
    MANNER_OUROBOROS,      /* Ouroboros alone, as its paper has it */
    MANNER_OUROBOROS_CODE, /* as its code has it */
    MANNER_OUROBOROS_WARM, /* its pool stays from request to request */
    MANNER_OUROBOROS_RING, /* its pool overwrites slots in turn */
    MANNER_OUROBOROS_BARE, /* no answer of the target enters its pool */
    MANNER_ORIGINAL,     /* LKP as it was first published */
    MANNER_LOOKUP_MISSES, /* prompt lookup that finds nothing */
    MANNER_STALE_KEY,    /* lookahead with other switches, or with what costs speed alone */
    MANNER_RING_POOL,
    MANNER_NO_WARMUP,
    MANNER_NO_BONUS,
    MANNER_DIAGONAL,     /* n-grams from the wrong column */
    MANNER_SHIFTS_TWICE, /* the window moves on by every accepted token */
    MANNER_POOL_STAYS    /* from one request to the next */
} manner;

typedef struct {
    const char *name;
    uint8_t uniforms, bits, input, map, rule, arithmetic;
    manner manner;
} setting;

/* One way of being wrong (or, with FAULT_NONE, of being right) under one set of declarations.
 */
typedef struct {
    fault_point fault;
    setting_name setting;
} variant;

#endif
