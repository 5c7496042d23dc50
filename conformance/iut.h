/* iut.h - the C ABI of an implementation under test (IUT), version 1. Self-contained; C11 and C++17.
 *
 * A plugin is a shared object that exports one symbol, `iut_entry`. The suite never loads it into
 * itself: it starts `assay worker plugin:FILE.so`, a fresh process, and passes whole batches to it.
 * A signal is CRASH, a call longer than its time (--timeout) is TIMEOUT; either is a result and the run goes on.
 * A function pointer that is NULL is not claimed: reported NOT_CLAIMED, never PASS.
 *
 * Arrays are contiguous, row-major, in host memory, owned by the caller and valid during the call;
 * their sizes stand beside them. Only the arrays without `const` may be written. Tokens are
 * 0..V-1; -1 means none. One instance is called from one thread at a time; several instances may
 * live in several processes. What each operation must compute is in spec/ (clause ids below). */
#ifndef ASSAY_IUT_H
#define ASSAY_IUT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised on an incompatible change. Compatible ones add fields at the end of a struct; `size`
 * tells which fields the other side knows. */
#define IUT_ABI 1u

typedef struct iut iut; /* the implementation's own state */

typedef enum {
    IUT_OK,
    IUT_UNSUPPORTED, /* this case cannot be served (too large, not implemented): counts as FAIL of a claim */
    IUT_BAD_INPUT,   /* the input breaks a rule; the right answer to a hostile case */
    IUT_NO_DEVICE,   /* needs a device that is absent: reported UNAVAILABLE */
    IUT_NO_MEMORY,
    IUT_FAILED
} iut_status;

/* -- Claims (CLM clauses). A zero field is "not said": a check that needs it is NOT_CLAIMED. ------ */

enum { IUT_UNIFORMS_SUPPLIED = 1, IUT_UNIFORMS_SEEDED, IUT_UNIFORMS_OWN };
enum { IUT_FROM_PROBS = 1, IUT_FROM_LOGITS };
enum { IUT_MAP_CDF_BY_ID = 1, IUT_MAP_GUMBEL, IUT_MAP_OTHER };
enum {
    IUT_RULE_TOKEN = 1,   /* u*q < p, then the residual (chapter 5) */
    IUT_RULE_MATCH,       /* draw from p, go on while it equals the draft */
    IUT_RULE_BLOCK,       /* block verification */
    IUT_RULE_ONEHOT,      /* drafts are fixed candidates; q is not used */
    IUT_RULE_NOT_LOSSLESS /* declared; the law checks are then NOT_CLAIMED, and LAW-08 binds it */
};
enum { IUT_ARITH_CANONICAL = 1, IUT_ARITH_F64, IUT_ARITH_F32, IUT_ARITH_F16, IUT_ARITH_BF16 };
enum { IUT_ACCEPT = 1, IUT_REJECT, IUT_ERROR };          /* edge policies */
enum { IUT_EMPTY_FROM_P = 1, IUT_EMPTY_OTHER };          /* what an empty residual emits */
enum { IUT_TIE_FIRST = 1, IUT_TIE_LAST, IUT_TIE_ANY };   /* argmax among equal logits */
enum {
    IUT_LM_CANONICAL = 1,  /* forward and cache give the bits of chapter 1 */
    IUT_LM_SELF_CONSISTENT /* bits of its own, the same however they are asked for (TREE, KV) */
};
enum { IUT_LLAMA = 1, IUT_QWEN2 = 2, IUT_QWEN3 = 4 }; /* architectures, added up */
/* Methods of decoding besides a chain of a draft model's, which is 0; as claims, added up. OUROBOROS alone has a draft
 * model (CLM-25). */
enum { IUT_JACOBI = 1, IUT_LOOKAHEAD = 2, IUT_LOOKUP = 4, IUT_OUROBOROS = 8 };
enum { IUT_POOL_LRU = 1, IUT_POOL_RING = 2 }; /* kinds of pool of n-grams (POOL-02, POOL-03), added up */
enum { IUT_TIES_CUT = 1, IUT_TIES_KEPT };     /* top-k among equal logits: DIST-09, or all of them (DIST-16) */
enum { IUT_MODELS_ANY = 1, IUT_MODELS_EXPORTED }; /* EXPORTED: those of `assay models export` alone (CLM-28) */
enum { IUT_WEIGHTS_FOLDER = 1, IUT_WEIGHTS_OWN }; /* OWN: made from the folder's, quantised say (CLM-15) */
/* What `generate` takes of each request, added up (CLM-16). */
enum { IUT_PER_SAMPLING = 1, IUT_PER_SEED = 2, IUT_PER_BUDGET = 4, IUT_PER_ENDS = 8 };
/* Log-probabilities: of the softmax of the logits as they are, or of the served row (CLM-17). */
enum { IUT_LOGPROB_RAW = 1, IUT_LOGPROB_SERVED };
/* Penalties of tokens that were there before, added up (CLM-18). */
enum { IUT_REPETITION = 1, IUT_PRESENCE = 2, IUT_FREQUENCY = 4 };
/* Where the draft may have a vocabulary of its own, added up (CLM-19, CLM-24). */
enum { IUT_VOCAB_PANEL = 1, IUT_VOCAB_FOLDER = 2 };
/* What supplied uniforms choose the last token of a step, added up (CLM-20): one for the correction and one for the
 * bonus; one for both; or a race of exponentials, one a token. */
enum { IUT_COINS_TWO = 1, IUT_COINS_ONE = 2, IUT_COINS_RACE = 4 };
/* Rules for the children of a node, added up (CLM-21, chapter 10). */
enum {
    IUT_TREE_TARGET = 1,      /* one coin a node against the running sum of p over its children; else p without them */
    IUT_TREE_RECURSIVE = 2,   /* the token rule a child; after a refusal p becomes the residual */
    IUT_TREE_MATCH = 4,       /* draws from p, and goes to the child that has the token */
    IUT_TREE_GREEDY = 8,      /* argmax of p_logit (GRD), whatever the sampling */
    IUT_TREE_KSEQ = 16,       /* K children against p divided by a factor */
    IUT_TREE_BLOCK = 32,      /* block verification, of chains */
    IUT_TREE_ONEHOT = 64,     /* children are fixed candidates; q is not used */
    IUT_TREE_SINGLE = 128,    /* non-iterative rejection: one trial a child, p unchanged */
    IUT_TREE_TYPICAL = 256,   /* all nodes of p above a threshold; the longest path */
    IUT_TREE_LENIENT = 512,   /* RECURSIVE with less of q */
    IUT_TREE_CONSTANT = 1024, /* the first child of p at or above a threshold */
    IUT_TREE_OTHER = 2048     /* its law alone is judged */
};
/* How the children of a node came, added up (CLM-22). */
enum {
    IUT_DRAWN_FIXED = 1,   /* chosen */
    IUT_DRAWN_IID = 2,     /* independently, from one row */
    IUT_DRAWN_WITHOUT = 4, /* from one row, without replacement */
    IUT_DRAWN_MIXED = 8    /* independently, each from a row of its own */
};
/* Where the token behind a node without children comes from, added up (CLM-22). */
enum { IUT_BONUS_DRAWN = 1, IUT_BONUS_GIVEN = 2 };
/* Drafts of `stream` and `generate` (CLM-30): drawn from the draft's row, none left out for what it is; its best. */
enum { IUT_DRAFTS_SAMPLED = 1, IUT_DRAFTS_ARGMAX };

typedef struct {
    uint32_t size;                       /* in: sizeof(iut_claims) of the caller */
    const char *name, *version, *device; /* never NULL; static or owned by the instance */
    uint8_t uniforms;     /* IUT_UNIFORMS_*: where verify and draw take their randomness from */
    uint8_t input;        /* IUT_FROM_*: does it start from probabilities or serve logits itself */
    uint8_t map;          /* IUT_MAP_*: how a uniform becomes a token */
    uint8_t rule;         /* IUT_RULE_* */
    uint8_t arithmetic;   /* IUT_ARITH_*: CANONICAL claims the bits of the specification; for `generate`
                             the coarsest of network and sampler (TF32 is F16) */
    uint8_t uniform_bits; /* resolution of its uniforms: 24, 29, 32, 53 ...; 0 = not said */
    uint8_t tie;          /* IUT_TIE_* */
    uint8_t q_zero;       /* draft with q = 0, p > 0: IUT_ACCEPT | IUT_REJECT */
    uint8_t bad_row;      /* a NaN, +inf or all -inf row: IUT_ERROR; 0 = undefined */
    uint8_t bad_draft;    /* an id below -1 or beyond V-1: IUT_ERROR | IUT_REJECT (ends the drafts) */
    uint8_t empty;        /* IUT_EMPTY_* */
    uint8_t seed_identical;   /* promise: same seed, same stream as its own plain decoding */
    uint8_t greedy_identical; /* promise: greedy stream equals its own plain greedy decoding */
    int32_t max_vocab, max_gamma; /* 0 = no limit known; larger cases are NOT_CLAIMED */
    uint8_t lm_arithmetic; /* IUT_LM_*: what the operations on a model promise */
    uint8_t lm_architectures; /* sum of IUT_LLAMA ...: models that it serves; 0: all of them */
    uint8_t methods;          /* sum of IUT_JACOBI ...: what `generate` offers besides chains of draft models */
    uint8_t greedy_methods;   /* sum of those of `methods` that it offers at temperature 0 alone, and
                                 refuses above it */
    uint8_t pools;            /* sum of IUT_POOL_LRU ...: what `pool` offers */
    /* Not of one byte: an older iut_claims ends before them, padding included. */
    int32_t accepted_total; /* 1: `generate` tells accepted drafts as a total a request (CLM-11) */
    int32_t eos_always;     /* 1: every stream of `generate` ends at the eos_token_id of the target's
                               config.json, which every request then has as `eos` (CLM-12) */
    /* Since 1: how rows are served, and from what. An older iut_claims, of 72 bytes, ends here. */
    const char *order;  /* temperature top_k top_p min_p as they are applied, or a word for it: transformers,
                           vllm, llamacpp, mlx (CLM-14); NULL: DIST-12's; static or owned by the instance */
    int32_t top_k_ties; /* IUT_TIES_*; 0: CUT */
    int32_t weights;    /* IUT_WEIGHTS_*; 0: FOLDER */
    /* Since 2: calls whose requests differ. An older iut_claims, of 88 bytes, ends here. */
    int32_t per_request; /* sum of IUT_PER_* */
    int32_t reserved;    /* 0 */
    /* Since 3: what it tells of its tokens. An older iut_claims, of 96 bytes, ends here. */
    int32_t logprobs;    /* IUT_LOGPROB_* */
    int32_t reserved_2;  /* 0 */
    /* Since 4: what it does to logits. An older iut_claims, of 104 bytes, ends here. */
    int32_t processors;  /* sum of IUT_REPETITION ... */
    int32_t reserved_3;  /* 0 */
    /* Since 5: an older iut_claims, of 112 bytes, ends here. */
    int32_t draft_vocab; /* sum of IUT_VOCAB_*; FOLDER: the draft's folder of `generate` may have `d2t` (VOC-03) */
    int32_t reserved_4;  /* 0 */
    /* Since 6, like IUT_VOCAB_PANEL: trees. An older iut_claims, of 120 bytes, ends here. */
    int32_t coins;          /* sum of IUT_COINS_*, of `verify`; 0: TWO */
    int32_t tree_rules;     /* sum of IUT_TREE_* */
    int32_t tree_drawn;     /* sum of IUT_DRAWN_* */
    int32_t tree_bonus;     /* sum of IUT_BONUS_*; 0: DRAWN */
    int32_t tree_coins;     /* sum of IUT_COINS_*, of `verify_tree`; 0: TWO */
    int32_t lossless_any;   /* sum of IUT_TREE_*: the law is p given any tree (LAW-06) */
    int32_t lossless_drawn; /* sum of IUT_TREE_*: the law is p averaged over trees that were drawn as told (LAW-07) */
    int32_t max_nodes;      /* of a request, the root included; 0: no limit known */
    int32_t max_children;   /* of a node; 1: chains alone; 0: no limit known */
    int32_t tree_sampling;  /* 1: `verify_tree` serves the logits of each request by a sampling of its own */
    /* Since 7, like IUT_OUROBOROS: methods. An older iut_claims, of 160 bytes, ends here. */
    int32_t warm;  /* 1: n-grams of one request may serve the next; its output does not depend on them (CLM-26) */
    int32_t ranks; /* workers that share the steps of lookahead (LAH-31); 0: one */
    /* Since 8: an older iut_claims, of 168 bytes, ends here. */
    int32_t models;      /* IUT_MODELS_*: folders that it loads; 0: ANY */
    int32_t reserved_5;  /* 0 */
    /* Since 9: what the judges may expect. An older iut_claims, of 176 bytes, ends here. */
    int32_t drafts;      /* IUT_DRAFTS_* */
    int32_t seed_bits;   /* low bits of a seed that matter, 1..64, if uniforms are seeded (CLM-29) */
} iut_claims;

/* -- Panel: a language model whose law is known. ------------------------------------------------
 * A finite automaton: after token t in state s comes state next[s*C + cls[t]]. Rows therefore differ
 * by position and by previous token, at any V. p and q are the served rows of target and draft, for
 * rules that start from probabilities; the logits are for greedy decisions (GRD-02), and for implementations that
 * serve them themselves, with `target` and `draft` as sampling parameters. It is loaded once and kept until the
 * next `panel` call; a batch then names rows by state. Copy what you keep. */
typedef struct {
    float temperature; /* 0: greedy */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 1: off */
    float min_p;       /* 0: off */
} iut_sampling;

typedef struct {
    uint32_t size; /* sizeof(iut_panel) of the caller */
    int32_t V, S, C;
    const int32_t *cls;   /* [V]    class of a token, 0..C-1 */
    const int32_t *next;  /* [S][C] state after a token of that class */
    const float *p;       /* [S][V] target, served: sums to 1 (tests of DRAW-03, RES-03: about 1), masked entries 0 */
    const float *q;       /* [S][V] draft, served */
    const float *p_logit; /* [S][V] target logits; -INFINITY is a mask */
    const float *q_logit; /* [S][V] draft logits */
    iut_sampling target, draft;
    /* Since 6, IUT_VOCAB_PANEL: a draft with ids of its own (VOC-01). An older iut_panel, of 96 bytes, ends here. `q` and
     * `q_logit` are then the same over V: 0 and -INFINITY where the draft lacks the token. */
    int32_t draft_V;            /* ids of the draft, 1..V; 0: it has the target's, and the arrays are NULL */
    int32_t reserved;           /* 0 */
    const int32_t *d2t;         /* [draft_V]    the target's id of each, strictly ascending */
    const float *draft_q;       /* [S][draft_V] served */
    const float *draft_q_logit; /* [S][draft_V] */
} iut_panel;

/* -- verify: the acceptance rule alone; the suite chose the drafts (chapter 5). ------------------ */
typedef struct {
    uint32_t size;
    int32_t n;     /* cases */
    int32_t gamma; /* drafts of a case at most */
    const int32_t *len;   /* [n]          drafts of the case, 0..gamma; states and drafts behind them mean nothing */
    const int32_t *state; /* [n][gamma+1] position i uses rows p[state] and q[state] */
    const int32_t *draft; /* [n][gamma]   a -1 ends the drafts of its case (ACC-07) */
    const double *u;      /* [n][gamma+2] in [0,1): accept 0..gamma-1, residual, bonus; IUT_UNIFORMS_SUPPLIED
                             only, else NULL. The match rule uses u[i] for the draw at position i, 0..gamma. */
    uint64_t seed;        /* IUT_UNIFORMS_SEEDED: case i has seed `seed + i`, modulo 2^64 as in all batches ... */
    uint64_t position;    /* ... and its first draft stands at this stream position (RNG-02) */
    int32_t *out;         /* [n][gamma+1] arrives filled with -1; what is not emitted stays -1 */
    int32_t *out_len;     /* [n]          tokens emitted, 1..len+1 */
    /* Since 6: an older iut_verify_batch, of 80 bytes, ends here. */
    int32_t coins;      /* with u: the claimed IUT_COINS_* that holds; 0: TWO. ONE: u[gamma+1] is u[gamma]. RACE: the
                           last token is argmax(weight / noise), the lowest id of equals, and has no u */
    int32_t reserved;   /* 0 */
    const float *noise; /* [n][V] RACE: exponentials of rate 1, above 0; else NULL */
} iut_verify_batch;

/* -- verify_tree: steps with several drafts a place; the suite chose them (chapter 10). -----------
 * The lists of the requests stand one after the other; nodes are counted from 0 within their request. Tokens and
 * parents are passed on unchecked: refusing bad ones is the implementation's (TRV-01). */
typedef struct {
    uint32_t size;
    int32_t n;                  /* requests */
    int32_t nodes;              /* of all requests */
    int32_t depth;              /* drafts of a path at most, placeholders counted; max_gamma limits it */
    int32_t samplings;          /* 0: those of the panel hold, and the three arrays of samplings are NULL */
    int32_t coins;              /* as in iut_verify_batch, of tree_coins, for `last` */
    const int32_t *node_count;  /* [n] 1 or more: node 0 is the root; parents before children, siblings as tried */
    const int32_t *token;       /* [nodes] the root's is -1; elsewhere -1 is a placeholder: never gone to (TRV-04) */
    const int32_t *parent;      /* [nodes] the root's is -1; else an earlier node of the request */
    const int32_t *state;       /* [nodes] the row p behind this node */
    const int32_t *q_state;     /* [nodes] the row q that its token was drawn from; -1: none, and at the root */
    const int32_t *drawn;       /* [nodes] one of the claimed IUT_DRAWN_*: how its children came; 0: it has none */
    const double *parameter;    /* [nodes][2] of the tests of a node's children; NULL: neutral for all. TARGET: alpha
                                   and sigma (TGT-03). KSEQ: rho * 2^16, or 0 (KSQ-01). TYPICAL, CONSTANT: theta.
                                   LENIENT: l. All but KSEQ's are binary32; what a rule does not use is 0 */
    const int32_t *rule;        /* [n] one of the claimed IUT_TREE_* */
    const iut_sampling *sampling;       /* [samplings] of p_logit; temperature 0: decided by GREEDY (TRV-08) */
    const iut_sampling *draft_sampling; /* [samplings] of q_logit */
    const int32_t *sampling_of; /* [n] 0..samplings-1 */
    const double *u;            /* [nodes] in [0,1), IUT_UNIFORMS_SUPPLIED only, else NULL: of the test of this node.
                                   TARGET: of the choice among its children. MATCH: of the draw behind it */
    const double *last;         /* [n][2] with u: of the token after a choice in vain, and of the bonus (TRV-05) */
    const float *noise;         /* [n][V] RACE: as in iut_verify_batch; else NULL */
    const int32_t *bonus;       /* [nodes] GIVEN: emitted in place of the draw behind a node without children; else
                                   NULL */
    uint64_t seed, position;    /* IUT_UNIFORMS_SEEDED: as in iut_verify_batch; the root's row decides `position`
                                   (RNG-09, RNG-10) */
    int32_t *out;               /* [n][depth+1] arrives filled with -1 */
    int32_t *out_node;          /* [n][depth+1] the node of each accepted token; arrives -1, and stays so behind */
    int32_t *out_len;           /* [n] tokens emitted, 1..depth+1 */
} iut_tree_batch;

/* -- draw: one token from the served target row of a state (DRAW clauses). ----------------------- */
typedef struct {
    uint32_t size;
    int32_t n;
    const int32_t *state; /* [n] */
    const double *u;      /* [n] in [0,1), IUT_UNIFORMS_SUPPLIED only, else NULL */
    uint64_t seed;        /* IUT_UNIFORMS_SEEDED: draw i has seed `seed + i` */
    uint64_t position;
    int32_t *token; /* [n] */
} iut_draw_batch;

/* -- stream: draft, verify, loop; the implementation draws its own drafts from q. ---------------- */
typedef struct {
    uint32_t size;
    int32_t n;     /* streams */
    int32_t gamma; /* drafts a step at most; 0 is plain decoding */
    int32_t k;     /* token budget: a stream ends after exactly k tokens (STOP-02) ... */
    int32_t eos;   /* ... or after this token; -1: none (STOP-01) */
    const int32_t *start; /* [n] state before the first token */
    uint64_t seed;        /* stream i has seed `seed + i`, its first token stands at position 0 */
    int32_t *out;         /* [n][k] arrives filled with -1 */
    int32_t *out_len;     /* [n] */
    int32_t *accepted;    /* [n][k] accepted drafts of step 0, 1, ...; arrives -1; leave -1 if not told. Where the
                             end cut the last step, its count may be that before the cut or after */
} iut_stream_batch;

/* -- Model: a real one, its key-value cache, and a tree of rows (chapters 1 and 2). ---------------
 * `model` loads it; it replaces whatever was known of the model before. Sequences 0 to sequences-1
 * then exist, each empty. The operations after it work on these sequences. A model is nothing that
 * panels know of, and a panel nothing that models know of. */
typedef struct {
    uint32_t size;
    const char *folder;   /* as Hugging Face writes it: config.json, model.safetensors or an index */
    int32_t sequences;    /* how many there are, 1 to 4096 */
    int32_t positions;    /* capacity of a sequence, in tokens */
    int32_t rows;         /* capacity of a forward, in rows of all its sequences */
    uint32_t layout_seed; /* chooses where the cache keeps its entries; no bit may change (TREE-08) */
    int32_t *shape;       /* [4] V, layers, KV heads, head_dim: what was found in the folder */
} iut_model;

/* Rows on top of the committed prefixes of n different sequences. The lists of the sequences stand
 * one after the other; rows are counted from 0 within their sequence. Tokens, parents and wanted
 * rows are passed on unchecked: refusing bad ones is the implementation's (TREE-01, KV-06). */
typedef struct {
    uint32_t size;
    int32_t n;
    int32_t rows, wants;        /* of all sequences */
    const int32_t *sequence;    /* [n] */
    const int32_t *row_count;   /* [n] at least 1 */
    const int32_t *want_count;  /* [n] 0 or more */
    const int32_t *token;       /* [rows] */
    const int32_t *parent;      /* [rows] -1: the prefix; else an earlier row */
    const int32_t *want;        /* [wants] */
    float *logits;              /* [wants][V], arrives filled with NaN */
} iut_forward_batch;

/* Paths of rows of each sequence's last forward become the end of its prefix (KV-01). */
typedef struct {
    uint32_t size;
    int32_t n;
    int32_t steps;             /* of all paths */
    const int32_t *sequence;   /* [n] */
    const int32_t *path_count; /* [n] 0 or more */
    const int32_t *path;       /* [steps] unchecked */
    int32_t *length;           /* [n] committed tokens after it */
} iut_commit_batch;

/* Prefixes are cut (KV-03). */
typedef struct {
    uint32_t size;
    int32_t n;
    const int32_t *sequence; /* [n] */
    const int32_t *keep;     /* [n] tokens that stay, unchecked */
    int32_t *length;         /* [n] committed tokens after it */
} iut_truncate_batch;

/* Cached keys, after rotation, and values, of committed positions (KV-02). */
typedef struct {
    uint32_t size;
    int32_t n;
    const int32_t *sequence, *layer, *position; /* [n] each */
    float *key, *value;                         /* [n][KV heads][head_dim] each */
} iut_cache_batch;

/* Penalties of a request (CLM-18). */
typedef struct {
    float repetition; /* above 0, of tokens of prompt or output; 1: off */
    float presence;   /* of tokens of the output; 0: off */
    float frequency;  /* of tokens of the output, for each time; 0: off */
} iut_processors;

/* -- generate: a whole engine. --------------------------------------------------------------------
 * It loads both models itself (keep them: most calls name the same; the first call's time includes
 * it), decodes every request from an empty cache, and draws its own drafts as it likes, fewer than
 * gamma too: that must not be seen in the law of the output (LAY-07, LAY-08). Prompts are ids as they
 * are, without a begin-of-sequence token of yours; refuse ids and parameters out of range. Filters
 * apply in the order of chapter 3, or of the claim `order`. It knows nothing of `model` and its sequences.
 *
 * Penalties of a row depend on the tokens before it, drafts of the same step included. By which formula, and for which
 * of these tokens, is the engine's affair; what stands at iut_processors is usual.
 *
 * `accepted` may stay -1. If it is told, each step has emitted one token more than it says, and all
 * steps together the stream (the last may be cut): a token that comes from the prompt's forward is a
 * step with 0. A run that ends without a token of its own cannot be told so. With the claim
 * `accepted_total` accepted[i][0] is the total of request i instead. */
typedef struct {
    uint32_t size;
    const char *target; /* folder, as of iut_model */
    const char *draft;  /* folder of the draft model; "": there is none, and gamma is 0 */
    int32_t n;          /* requests */
    int32_t gamma;      /* drafts a step at most; 0 is plain decoding, but for OUROBOROS */
    int32_t method;     /* 0, or one of IUT_JACOBI ...; but for OUROBOROS, draft is "" and gamma 0 then */
    int32_t sizes[3];   /* jacobi: tokens of a block; lookahead: W, N, G; lookup: longest n-gram, drafts;
                           ouroboros: W, N, K, where gamma is the drafts that a round asks for (OUR-07) */
    int32_t k;          /* token budget: a stream ends after exactly k tokens (STOP-02) ... */
    int32_t eos;        /* ... or after this token; -1: none. The models' own ends do not count. */
    int32_t prompts;    /* tokens of all prompts */
    const int32_t *prompt_count; /* [n] at least 1 */
    const int32_t *prompt;       /* [prompts] one after the other */
    iut_sampling sampling;       /* of the target; temperature 0: greedy */
    uint64_t seed;               /* request i has seed `seed + i`, if it can be seeded */
    int32_t *out;                /* [n][k] arrives filled with -1 */
    int32_t *out_len;            /* [n] */
    int32_t *accepted;           /* [n][k] accepted drafts of step 0, 1, ...; leave -1 if not told */
    /* Since 2: of each request what `per_request` claims; NULL: what stands above holds for all of them. An older
     * iut_generate_batch ends here. */
    const iut_sampling *samplings; /* [n] of the target, in place of `sampling` */
    const uint64_t *seeds;         /* [n] in place of `seed` */
    const int32_t *budgets;        /* [n] 1..k, in place of k; `out` keeps k places a request */
    const int32_t *end_count;      /* [n] 0 or more: tokens that end the request, besides `eos` */
    const int32_t *ends;           /* [end_total] one request's after the other's */
    int32_t end_total;             /* of all requests */
    int32_t reserved;              /* 0 */
    /* Since 3: an older iut_generate_batch, of 176 bytes, ends here. */
    float *logprob;                /* [n][k] natural logarithm of the probability of each emitted token, as `logprobs`
                                      claims; arrives filled with NaN. NULL unless `tell` is 1 */
    int32_t tell;                  /* 1: logprob is asked for */
    int32_t reserved_2;            /* 0 */
    /* Since 4: an older iut_generate_batch, of 192 bytes, ends here. */
    const iut_processors *processors; /* [n] of each request; NULL: all are off. What is not claimed is off */
} iut_generate_batch;

/* -- pool: the n-grams of lookahead decoding, kept and looked up, without an engine. ---------------
 * n operations, one after the other, on a pool that is empty before the first and gone after the
 * last. Ids are passed on unchecked: refuse a batch with one out of range (IUT_BAD_INPUT). */
typedef struct {
    uint32_t size;
    int32_t kind; /* IUT_POOL_LRU or IUT_POOL_RING, as claimed */
    int32_t V;    /* tokens are 0..V-1 */
    int32_t N;    /* of an n-gram, at least 2: a key and a value of N-1 tokens */
    int32_t G;    /* values that the pool keeps of one key, 0 or more */
    int32_t n;    /* operations */
    const int32_t *insert; /* [n] 1: the value goes to the key; 0: the key is looked up */
    const int32_t *key;    /* [n] */
    const int32_t *value;  /* [n][N-1] of a look-up: -1 */
    int32_t *count;        /* [n] of a look-up: values that the key has; of an insertion -1 stays */
    int32_t *out;          /* [n][G][N-1] of a look-up: these, in order (POOL-04), -1 behind them;
                              count and out arrive filled with -1 */
} iut_pool_batch;

/* -- The table of operations. NULL: not claimed. -------------------------------------------------- */
typedef struct {
    uint32_t abi, size; /* IUT_ABI, sizeof(iut_api) */
    /* `options` is what the user wrote after `--iut-options`, or "". NULL on failure, with a text in
     * `error` that says what to do. It needs no device: where that is absent, claims says IUT_NO_DEVICE. */
    iut *(*create)(const char *options, char *error, size_t error_size);
    void (*destroy)(iut *);
    const char *(*last_error)(iut *); /* of the last call that did not return IUT_OK; never NULL */
    iut_status (*claims)(iut *, iut_claims *);
    iut_status (*panel)(iut *, const iut_panel *);
    /* served rows of the given states: of the target (of_draft = 0) or the draft, from the logits. */
    iut_status (*served)(iut *, int32_t n, const int32_t *state, int32_t of_draft, float *prob /* [n][V] */);
    /* max(0, p - q) of the given states, not normalised. */
    iut_status (*residual)(iut *, int32_t n, const int32_t *state, float *r /* [n][V] */);
    iut_status (*draw)(iut *, iut_draw_batch *);
    iut_status (*verify)(iut *, iut_verify_batch *);
    /* verification at temperature 0 from p_logit; `u` and `seed` are not used (GRD clauses). */
    iut_status (*verify_greedy)(iut *, iut_verify_batch *);
    iut_status (*stream)(iut *, iut_stream_batch *);
    iut_status (*model)(iut *, iut_model *);
    iut_status (*forward)(iut *, iut_forward_batch *);
    iut_status (*commit)(iut *, iut_commit_batch *);
    iut_status (*truncate)(iut *, iut_truncate_batch *);
    iut_status (*cache_read)(iut *, iut_cache_batch *);
    /* Fills everything in the cache that is not committed, of all sequences, with NaN (KV-05), and
     * forgets the rows of the last forwards. */
    iut_status (*cache_poison)(iut *);
    iut_status (*generate)(iut *, iut_generate_batch *);
    iut_status (*pool)(iut *, iut_pool_batch *);
    iut_status (*verify_tree)(iut *, iut_tree_batch *);
} iut_api;

#if defined(_WIN32)
#define IUT_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define IUT_EXPORT __attribute__((visibility("default")))
#else
#define IUT_EXPORT
#endif

/* The one symbol a plugin exports. The table stays valid as long as the library is loaded. */
IUT_EXPORT const iut_api *iut_entry(void);

#ifdef __cplusplus
}
#endif
#endif
