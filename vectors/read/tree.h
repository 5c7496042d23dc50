/* tree.h - the vectors of chapter 10: a tree of drafts, its rows and uniforms, and the tokens and nodes that a step
 * must give. The answers are conformance/oracle's (tree.h there). */
#ifndef ASSAY_VECTORS_READ_TREE_H
#define ASSAY_VECTORS_READ_TREE_H

#include "conformance/oracle/law/tree.h"
#include "vectors/read/reader.h"

/* Bounds on a test, so that hostile text costs little time. */
enum { TREE_MAX_NODES = 256 };

enum { TREE_PARAMETERS = 2, TREE_UNIFORM_BITS = 24 }; /* of a rule; uniforms are in units of 2^-24 */

/* What the tests of a rule bring beside the tree itself. */
typedef struct {
    const char *name; /* "target": the group's `rule` */
    oracle_tree_rule rule;
    bool u, last;                           /* uniforms of the nodes; those of the last token */
    const char *parameter[TREE_PARAMETERS]; /* names; "rho" has integers, the others binary32; NULL: none */
} tree_rule;

/* The rule of that name, or NULL. */
const tree_rule *tree_rule_find(const char *name);
extern const char *const tree_drawings[4]; /* "fixed", "iid", "without", "mixed" */

/* The oracle's request. Rows, nodes and uniforms are the set's; false: memory is short. */
bool tree_request(vector_set *set, const vector_group *g, const vector_test *t, unsigned flags, oracle_tree_request *r);

/* Fills expectation and alternatives. False: `why` says why there is no answer. */
bool tree_answer(vector_set *set, const vector_group *g, vector_test *t, char *why, size_t why_size);
/* The clauses that a wrong answer violates, from what happens in the test. */
const char *tree_clauses(vector_set *set, const vector_group *g, const vector_test *t);
/* Another last token, or one where a refusal is due. */
bool tree_flip(vector_set *set, const vector_group *g, vector_answer *a);

/* Nodes gone to: one less than the tokens emitted. */
static inline int32_t tree_gone(const vector_answer *a)
{
    return a->error ? 0 : a->count + a->then_any - 1;
}

/* Text: the members of a group and of a test that this kind has. */
#define TREE_GROUP_KEYS "rule V depth rows"
bool tree_read_group(as_json *r, const json_t *o, vector_group *g);
/* The names of a test's inputs. */
void tree_input_keys(const vector_group *g, char *keys, size_t size);
bool tree_read_inputs(as_json *r, const vector_group *g, const json_t *o, vector_test *t);
bool tree_read_answer(as_json *r, const vector_group *g, const vector_test *t, const json_t *o, vector_answer *a);
void tree_write_group(FILE *f, const vector_group *g);
void tree_write_inputs(FILE *f, const vector_group *g, const vector_test *t);
void tree_write(FILE *f, const vector_answer *a);

#endif
