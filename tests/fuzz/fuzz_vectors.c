/* One vector file: STA-03. What is accepted is what vectors.h says of it: rows expanded,
 * indices and lists in range, so that a check may use them unseen; and its flips flip. */
#include <math.h>
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "vectors/read/operation.h"
#include "vectors/read/tree.h"
#include "vectors/read/vectors.h"

static volatile unsigned checksum;

static void touch(const void *array, size_t size)
{
    const uint8_t *bytes = array;
    for (size_t i = 0; array && i < size; i++) checksum += bytes[i];
}

static void check_answer(const vector_group *g, const vector_answer *a, const vector_test *t)
{
    const int words = g->kind == VECTOR_PHILOX || g->kind == VECTOR_UNIFORM ? 4 : 1;
    const bool row = g->kind == VECTOR_SERVED || g->kind == VECTOR_RESIDUAL;
    MUST(a->count >= 0 && a->count <= t->len + 1);
    for (int32_t i = 0; i < a->count; i++) MUST(a->tokens[i] >= 0 && a->tokens[i] < g->V);
    if (a->error) MUST(*a->error && a->count == 0 && !a->bits);
    if (a->bits && g->kind != VECTOR_ARITHMETIC)
        touch(a->bits, 4 * (size_t)(row ? g->V : words));
}

/* Inputs and answer have the words that the sizes ask for; optional inputs may be absent. */
static void check_operation(const vector_group *g, const vector_test *t)
{
    int32_t n[OPERATION_INPUTS], answer = -1;
    const operation *op = operation_find(g->op);
    MUST(op && t->inputs >= 0 && t->inputs <= OPERATION_INPUTS);
    MUST(operation_shape(op, t->size, n, &answer) >= t->inputs);
    for (int32_t i = 0; i < t->inputs; i++) {
        MUST(t->input[i].n == n[i]);
        touch(t->input[i].word, 4 * (size_t)n[i]);
    }
    MUST(t->expected.words == answer && t->expected.bits);
    touch(t->expected.bits, 4 * (size_t)answer);
}

static void check_list(const vector_group *g, const oracle_list *list)
{
    MUST(list->n >= 0);
    for (int32_t i = 0; i < list->n; i++) MUST(list->t[i] >= 0 && list->t[i] < g->V);
}

static void check_lists(const vector_group *g, const oracle_lists *lists)
{
    MUST(lists->n >= 0);
    for (int32_t i = 0; i < lists->n; i++) check_list(g, &lists->l[i]);
}

static void check_pool(const vector_group *g, const oracle_pool *pool)
{
    for (int32_t i = 0; i < pool->keys; i++) {
        MUST(pool->of[i].key >= 0 && pool->of[i].key < g->V);
        MUST(i == 0 || pool->of[i].key > pool->of[i - 1].key);
        check_lists(g, &pool->of[i].values);
    }
}

/* Tokens in range, switches that exist, and a refusal or a trace. */
static void check_trace(const vector_group *g, const vector_test *t)
{
    const oracle_trace *trace = t->expected.trace;
    int32_t n;
    const oracle_switch *s = oracle_method_switches(g->method, &n);
    MUST(g->toy && t->request && t->method && t->method->name == g->method);
    for (int32_t i = 0; i < n; i++)
        MUST(t->method->sw[i] >= 0 && t->method->sw[i] < oracle_switch_values(&s[i]));
    for (int32_t i = 0; i < t->request->n; i++)
        MUST(t->request->prompt[i] >= 0 && t->request->prompt[i] <= g->V);
    MUST(!trace == !!t->expected.error);
    if (!trace) return;
    MUST(trace->tokens.n > 0);
    check_list(g, &trace->tokens);
    check_lists(g, &trace->window0);
    check_pool(g, &trace->pool0);
    for (int32_t i = 0; i < trace->steps; i++) {
        const oracle_step *step = &trace->step[i];
        MUST(step->emitted.n > 0 && step->accepted >= 0);
        check_lists(g, &step->rows);
        check_lists(g, &step->candidates);
        check_list(g, &step->run);
        check_list(g, &step->emitted);
        check_lists(g, &step->window);
        check_pool(g, &step->pool);
    }
}

/* Rows in range, a rule, a way of drawing, and nodes for all but the last token. */
static void check_tree(const vector_group *g, const vector_test *t)
{
    const vector_tree *tree = t->tree;
    MUST(tree_rule_find(g->rule) && tree && tree->nodes >= 1 && tree->nodes <= TREE_MAX_NODES && *tree->drawn);
    for (int32_t i = 0; i < tree->nodes; i++) {
        MUST(tree->p[i] >= 0 && tree->p[i] < g->rows && tree->parent[i] >= -1 && tree->parent[i] < tree->nodes);
        if (tree->q) MUST(tree->q[i] >= -1 && tree->q[i] < g->rows);
    }
    for (int32_t i = 0; i < tree->nodes + 2; i++) MUST(t->u[i] >= 0 && t->u[i] < 1);
    for (int32_t i = 0; i < tree_gone(&t->expected); i++)
        MUST(t->expected.node[i] >= 1 && t->expected.node[i] < tree->nodes);
    touch(tree->token, 4 * (size_t)tree->nodes);
    touch(tree->parameter, 16 * (size_t)tree->nodes);
}

static void check_test(const vector_group *g, const vector_test *t)
{
    const bool has_rows = g->kind >= VECTOR_SERVED;
    MUST(t->id && t->clauses && t->comment && t->flags && t->len >= 0 && t->len <= g->gamma);
    for (int32_t i = 0; has_rows && i <= t->len; i++)
        MUST(t->row[i] >= 0 && t->row[i] < g->rows);
    touch(t->draft, 4 * (size_t)t->len);
    if (g->uniforms == UNIFORMS_UNITS && g->kind == VECTOR_CHAIN)
        for (int32_t i = 0; i < t->len + 2; i++) MUST(t->u[i] >= 0 && t->u[i] < 1);
    if (g->uniforms == UNIFORMS_UNITS && g->kind == VECTOR_MATCH)
        for (int32_t i = 0; i < t->len + 1; i++) MUST(t->u[i] >= 0 && t->u[i] < 1);
    if (g->uniforms == UNIFORMS_UNITS && g->kind == VECTOR_DRAW)
        MUST(t->u[0] >= 0 && t->u[0] < 1);
    if (g->kind == VECTOR_ARITHMETIC) check_operation(g, t);
    if (g->kind == VECTOR_TRACE) check_trace(g, t);
    if (g->kind == VECTOR_TREE) check_tree(g, t);
    check_answer(g, &t->expected, t);
    for (int32_t i = 0; i < t->alternatives; i++) {
        MUST(t->alternative[i].policy);
        MUST(vector_alternative(t, t->alternative[i].policy));
        check_answer(g, &t->alternative[i], t);
    }
}

static void check_group(const vector_set *set, const vector_group *g)
{
    const size_t cells = (size_t)g->rows * (size_t)g->V;
    MUST(g->kind < VECTOR_KINDS && g->id && *g->id && g->clauses && g->rationale);
    MUST(vectors_find(set, g->id) && g->rows >= 0 && g->V >= 0 && g->tests >= 0);
    touch(g->p, 4 * cells);
    touch(g->q, 4 * cells);
    vectors_replayable(g);
    for (int32_t i = 0; i < g->tests; i++) check_test(g, &g->test[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[600] = "";
    vector_set *set = vectors_new();
    MUST(set);
    if (vectors_parse(set, "vectors.json", (const char *)data, size, why, sizeof why)) {
        for (int32_t i = 0; i < vectors_groups(set); i++)
            check_group(set, vectors_group(set, i));
        vectors_of_clause(set, "ACC-01", VECTORS_OF_REPLAY);
        vectors_of_clause(set, "LAH-01", VECTORS_OF_TRACES);
        vectors_of_clause(set, "TRV-02", VECTORS_OF_TREES);
        for (int32_t i = 0; i < vectors_groups(set); i++)
            if (vectors_group(set, i)->tests) MUST(vectors_flip(set, i, 0));
    } else {
        MUST(strncmp(why, "vectors.json", 12) == 0);
    }
    vectors_free(set);
    return 0;
}
