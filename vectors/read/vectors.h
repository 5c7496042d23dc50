/* vectors.h - the golden vectors: what they hold, how they are read, checked, written.
 *
 * A folder has one JSON file a kind (schema.json describes them for every language). A file has
 * groups; a group has one vocabulary size, rows shared by its tests, and tests that name rows
 * by index, exactly as a batch of iut.h names states of a panel. Binary32 travels as bits.
 * Expected answers come from conformance/oracle, the slow GMP version where there are two.
 *
 * A set owns everything it hands out; vectors_free() ends it. Nothing here includes ref/. */
#ifndef ASSAY_VECTORS_READ_VECTORS_H
#define ASSAY_VECTORS_READ_VECTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conformance/oracle/methods/methods.h"
#include "conformance/oracle/methods/toy.h"

typedef enum {
    VECTOR_PHILOX,     /* counter, key -> words (RNG-01) */
    VECTOR_UNIFORM,    /* seed, position, purpose, index -> words, u, U (RNG-02 to RNG-05) */
    VECTOR_EXP,        /* x -> exp(x) (DIST-06) */
    VECTOR_ARITHMETIC, /* an operation of chapter 1: inputs -> answer (ARI) */
    VECTOR_TRACE,      /* model, prompt, method -> every step (JAC, LAH, POOL, ONEH, LKP) */
    VECTOR_TREE,       /* tree, rows, uniforms -> tokens and nodes (TRV, SIB and the rules' own) */
    VECTOR_SERVED,     /* logits, sampling -> row (DIST) */
    VECTOR_DRAW,       /* row, uniform -> token (DRAW) */
    VECTOR_RESIDUAL,   /* p, q -> max(0, p - q) (RES-01) */
    VECTOR_CHAIN,      /* rows, drafts, uniforms -> tokens: the token rule (ACC, RES, BON) */
    VECTOR_MATCH,      /* rows, drafts, uniforms -> tokens: the match rule (MAT) */
    VECTOR_GREEDY,     /* logits, drafts -> tokens (GRD) */
    VECTOR_KINDS
} vector_kind;

extern const char *const vector_kind_name[VECTOR_KINDS]; /* "chain"; its file is chain.json */

/* Where the uniforms of a group's tests come from. */
typedef enum {
    UNIFORMS_NONE,
    UNIFORMS_UNITS, /* supplied: integers in units of 2^-bits (DRAW-01) */
    UNIFORMS_WORDS, /* U itself, 64 bits: finer than iut.h can supply (draw only) */
    UNIFORMS_SEED   /* seed and position of the first token (RNG-06) */
} vector_uniforms;

/* How a row is written down; its values are expanded in any case. */
typedef enum {
    ROW_BITS,  /* binary32 bits */
    ROW_UNITS, /* integers n: n * 2^-k */
    ROW_ZIPF,  /* PAN-01 */
    ROW_MIX    /* PAN-02 */
} vector_form;

typedef struct {
    vector_form form;
    int32_t k; /* UNITS, ZIPF, MIX */
    uint64_t seed;
    uint32_t row, lambda;
    int32_t sharp;
} vector_row;

/* An input of an operation, as words: binary32 unless the operation says otherwise. */
typedef struct {
    bool procedural; /* PAN-04, else bits */
    uint64_t seed;
    uint32_t row;
    int32_t e, spread;
    int32_t n;
    const uint32_t *word; /* [n], expanded in any case */
} vector_input;

/* A language model made from integers (toy.h); or, in no file that is read into a set, a trained
 * one (make_networks). */
typedef struct {
    bool automaton; /* else hash */
    oracle_hash hash;
    oracle_table table;
    const char *folder; /* of the trained one, in vectors/models; else NULL */
    oracle_lm network;  /* at hand while its traces are made */
} vector_toy;

/* A tree of drafts, the root first (chapter 10). Rows are rows of the group: a list that serves as p and as q. */
typedef struct {
    int32_t nodes;
    const char *drawn;       /* how siblings came: "fixed", "iid", "without", "mixed" */
    const int32_t *parent;   /* [nodes] */
    const int32_t *token;    /* [nodes] */
    const int32_t *p, *q;    /* [nodes]; q: -1 at the root, and NULL where the rule has none */
    const double *parameter; /* [nodes][2] as iut_tree_batch has them */
} vector_tree;

/* An answer: the fields that its kind uses are set, the others 0. */
typedef struct {
    /* Of an alternative: "q_zero=reject", "bad_draft=ends", "empty=other"; else NULL. */
    const char *policy;
    /* An error is due, about a "draft", "row" or "parameter", or what trace names; else NULL. */
    const char *error;
    int32_t count;     /* tokens emitted: draw, chain, match, greedy, tree */
    const int32_t *tokens; /* [count] */
    const int32_t *node;   /* tree: the nodes gone to, one less than tokens emitted */
    bool then_any;         /* one more token follows: any id with p > 0 (VAR-06) */
    const uint32_t *bits;  /* [V] served, residual; [4] philox, uniform; [1] exp; [words] */
    int32_t words;         /* arithmetic */
    uint32_t accept;       /* uniform: u in units of 2^-29 (RNG-04) */
    uint64_t draw;         /* uniform: U (RNG-05) */
    const oracle_trace *trace; /* trace, unless an error is due */
} vector_answer;

typedef struct {
    const char *id;       /* "chain.dyadic.v4.0007": stable, never given to another test */
    const char *clauses;  /* ids with blanks between: what a wrong answer violates */
    const char *comment;  /* may be empty */
    const char *flags;    /* names of notes, with blanks between; may be empty */
    int32_t len;          /* drafts */
    const int32_t *row;   /* [len+1] rows of the group; [1] served, draw, residual */
    const int32_t *draft; /* [len] */
    /* UNITS: chain [len+2] accept.., residual, bonus; match [len+1]; draw [1] */
    const double *u;
    uint64_t U;                  /* WORDS */
    uint64_t seed, position;     /* SEED, and uniform */
    uint32_t purpose, index;     /* uniform */
    uint32_t counter[4], key[2]; /* philox */
    float x;                     /* exp */
    const int32_t *size;         /* arithmetic: by the operation's names of sizes */
    int32_t inputs;
    const vector_input *input;       /* [inputs] */
    float temperature, top_p, min_p; /* served */
    int32_t top_k;
    const oracle_request *request; /* trace */
    const oracle_method *method;   /* trace */
    const vector_tree *tree;       /* tree; u: [nodes+2] of the nodes, after a choice in vain, bonus; `len`: depth */
    vector_answer expected;
    int32_t alternatives; /* answers that other declared policies give */
    const vector_answer *alternative;
} vector_test;

typedef struct {
    vector_kind kind;
    const char *id;        /* "chain.dyadic.v4" */
    const char *clauses;   /* of all its tests, ids with blanks between */
    const char *rationale; /* name of the note that says why the group exists */
    int32_t V, gamma;      /* 0 where the kind has none; of trees, gamma is the depth at most */
    bool exact; /* dyadic: every correct float implementation gives these very tokens, in any
                   order of summation, so that no tolerance is granted */
    const char *op; /* arithmetic: operation.h lists them; else NULL */
    const char *rule; /* tree: "target" and so on (tree.h); else NULL */
    const vector_toy *toy;     /* trace: the model of its tests; else NULL */
    const vector_toy *draft;   /* trace of Ouroboros: the draft model; else NULL */
    oracle_method_name method; /* trace */
    vector_uniforms uniforms;
    int32_t uniform_bits; /* UNITS */
    int32_t rows;
    const float *p, *q; /* [rows][V] probabilities; p holds logits in served and greedy; NULL
                           where the kind has none */
    const vector_row *p_form, *q_form; /* [rows] */
    int32_t tests;
    vector_test *test;
} vector_group;

typedef struct vector_set vector_set;

/* The groups that a whole folder has, and how many tests each: the same list makes the files
 * and plans the checks, so that a missing vector is an error and never an omission. */
typedef struct {
    vector_kind kind;
    const char *id;
    int32_t V, gamma, tests;
} vector_listed;
extern const vector_listed vector_list[];
extern const int32_t vector_list_count;

/* Reads a folder: every kind's file must be there, well formed, and hold the listed groups
 * with their numbers of tests, no others. NULL: `why` says what is wrong, in which file and
 * where in it, and what to do. */
vector_set *vectors_load(const char *folder, char *why, size_t why_size);
void vectors_free(vector_set *set); /* NULL is allowed */

/* The same folder's vectors, read once and kept to the end of the process or until another
 * folder is asked for: for the checks of a run, from any thread. A folder that cannot be read
 * is not read again either. NULL: `why` as above. */
const vector_set *vectors_once(const char *folder, char *why, size_t why_size);

/* Adds the groups of one kind's file in a folder. False: `why` as above. */
bool vectors_load_kind(vector_set *set, const char *folder, vector_kind kind, char *why,
                       size_t why_size);

/* An empty set; NULL when memory is short. */
vector_set *vectors_new(void);

/* Adds the groups of one file from its text; `name` is used in messages. No group need be
 * listed. False: `why` as above, and the set is good for nothing but vectors_free(). */
bool vectors_parse(vector_set *set, const char *name, const char *text, size_t size, char *why,
                   size_t why_size);

int32_t vectors_groups(const vector_set *set);
const vector_group *vectors_group(const vector_set *set, int32_t i);
const vector_group *vectors_find(const vector_set *set, const char *group_id); /* or NULL */

/* Who puts the tests of a group to an implementation. */
typedef enum { VECTORS_OF_REPLAY, VECTORS_OF_TRACES, VECTORS_OF_TREES } vector_check;
/* Tests that name the clause, of those that replay.vectors, trace.methods or tree.vectors judges by. */
size_t vectors_of_clause(const vector_set *set, const char *clause, vector_check by);
/* Does replay.vectors put the tests of this group to an operation of iut.h? */
bool vectors_replayable(const vector_group *g);

/* Changes what the test expects, alternatives included, into something wrong: for showing that
 * a comparison bites. False: memory is short. */
bool vectors_flip(vector_set *set, int32_t group, int32_t test);

/* The alternative of that policy, or NULL. */
const vector_answer *vector_alternative(const vector_test *t, const char *policy);

#endif
