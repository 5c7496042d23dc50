/* load_tree.c - the strict reader of trees; see tree.h. */
#include <math.h>
#include <string.h>

#include "conformance/oracle/law/siblings.h"
#include "vectors/read/tree.h"

enum { MOST_RHO = 4096 << 16 };

bool tree_read_group(as_json *r, const json_t *o, vector_group *g)
{
    if (!reader_text(r, o, "rule", &g->rule)) return false;
    if (!tree_rule_find(g->rule)) return as_json_bad(r, "rule", "is none of chapter 10");
    g->uniforms = UNIFORMS_UNITS;
    g->uniform_bits = TREE_UNIFORM_BITS;
    return as_json_i32(r, o, "V", 2, VECTORS_MAX_V, &g->V) &&
           as_json_i32(r, o, "depth", 0, VECTORS_MAX_GAMMA, &g->gamma);
}

void tree_input_keys(const vector_group *g, char *keys, size_t size)
{
    const tree_rule *rule = tree_rule_find(g->rule);
    size_t used = (size_t)snprintf(keys, size, "parent token p drawn%s%s%s", oracle_tree_uses_q(rule->rule) ? " q" : "",
                                   rule->u ? " u" : "", rule->last ? " residual bonus" : "");
    for (int32_t i = 0; i < TREE_PARAMETERS && rule->parameter[i]; i++)
        used += (size_t)snprintf(keys + used, size - used, " %s", rule->parameter[i]);
}

/* A list with an entry of each node. */
static bool read_list(as_json *r, const json_t *o, const char *key, int32_t nodes, int64_t least, int64_t most,
                      const int32_t **list)
{
    return reader_integers(r, o, key, nodes, least, most, list, NULL);
}

static bool read_drawn(as_json *r, const json_t *o, vector_tree *tree)
{
    const char *word = json_string_value(json_object_get(o, "drawn"));
    for (int32_t i = 0; word && i < 4; i++)
        if (!strcmp(word, tree_drawings[i])) return tree->drawn = tree_drawings[i], true;
    return as_json_bad(r, "drawn", "must be one of: fixed iid without mixed");
}

static bool read_parameter(as_json *r, const json_t *o, const char *key, int32_t nodes, double *to)
{
    uint32_t word[TREE_MAX_NODES];
    const int32_t *list = NULL;
    const bool integers = !strcmp(key, "rho");
    if (integers ? !read_list(r, o, key, nodes, 0, MOST_RHO, &list) : !as_json_words(r, o, key, nodes, word))
        return false;
    for (int32_t i = 0; i < nodes; i++) {
        to[2 * i] = integers ? (double)list[i] : (double)float_of_bits(word[i]);
        if (isnan(to[2 * i])) return as_json_bad(r, key, "[%d] is no number", (int)i);
    }
    return true;
}

/* The last two are those of the last token. */
static bool read_uniforms(as_json *r, const json_t *o, const tree_rule *rule, int32_t nodes, double *u)
{
    const int64_t most = ((int64_t)1 << TREE_UNIFORM_BITS) - 1;
    const int32_t *list = NULL;
    int64_t last[2] = {0, 0};
    if (rule->u && !read_list(r, o, "u", nodes, 0, most, &list)) return false;
    if (rule->last && (!as_json_integer(r, o, "residual", 0, most, &last[0]) ||
                       !as_json_integer(r, o, "bonus", 0, most, &last[1])))
        return false;
    for (int32_t i = 0; i < nodes && rule->u; i++) u[i] = ldexp((double)list[i], -TREE_UNIFORM_BITS);
    for (int32_t i = 0; i < 2; i++) u[nodes + i] = ldexp((double)last[i], -TREE_UNIFORM_BITS);
    return true;
}

/* The depth of the deepest node; a parent that stands behind its child counts as the root. */
static int32_t depth_of(const vector_tree *tree)
{
    int32_t level[TREE_MAX_NODES] = {0}, deepest = 0;
    for (int32_t i = 1; i < tree->nodes; i++) {
        const int32_t parent = tree->parent[i];
        level[i] = 1 + (parent >= 0 && parent < i ? level[parent] : 0);
        if (level[i] > deepest) deepest = level[i];
    }
    return deepest;
}

bool tree_read_inputs(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    const tree_rule *rule = tree_rule_find(g->rule);
    const size_t n = json_array_size(json_object_get(o, "parent"));
    const int32_t nodes = (int32_t)n;
    if (!as_json_list(r, json_object_get(o, "parent"), "parent", 1, TREE_MAX_NODES)) return false;
    vector_tree *tree = reader_take(r, 1, sizeof *tree);
    double *parameter = reader_take(r, 2 * n, sizeof *parameter), *u = reader_take(r, n + 2, sizeof *u);
    if (!tree || !parameter || !u) return false;
    tree->nodes = nodes;
    tree->parameter = parameter;
    t->tree = tree;
    t->u = u;
    if (!read_list(r, o, "parent", nodes, -1, nodes - 1, &tree->parent) ||
        !read_list(r, o, "token", nodes, INT32_MIN, INT32_MAX, &tree->token) ||
        !read_list(r, o, "p", nodes, 0, g->rows - 1, &tree->p) || !read_drawn(r, o, tree))
        return false;
    if (oracle_tree_uses_q(rule->rule) && !read_list(r, o, "q", nodes, -1, g->rows - 1, &tree->q)) return false;
    for (int32_t i = 0; i < TREE_PARAMETERS && rule->parameter[i]; i++)
        if (!read_parameter(r, o, rule->parameter[i], nodes, parameter + i)) return false;
    t->len = depth_of(tree);
    if (t->len > g->gamma) return as_json_bad(r, "parent", "makes a tree deeper than depth = %d", (int)g->gamma);
    return read_uniforms(r, o, rule, nodes, u);
}

bool tree_read_answer(as_json *r, const vector_group *g, const vector_test *t, const json_t *o, vector_answer *a)
{
    const bool open = a->policy && !strcmp(a->policy, "empty=other");
    const char *then = "";
    if (json_object_get(o, "error"))
        return as_json_has_keys(r, o, "error", a->policy ? "policy" : "") && reader_text(r, o, "error", &a->error) &&
               (!strcmp(a->error, "request") || as_json_bad(r, "error", "must be \"request\""));
    if (!as_json_has_keys(r, o,
                          open        ? "tokens nodes policy then"
                          : a->policy ? "tokens nodes policy"
                                      : "tokens nodes",
                          "") ||
        !reader_integers(r, o, "tokens", -1, 0, g->V - 1, &a->tokens, &a->count))
        return false;
    if (open && (!reader_text(r, o, "then", &then) || strcmp(then, "any")))
        return as_json_bad(r, "then", "must be \"any\"");
    a->then_any = open;
    const int32_t emitted = a->count + open;
    if (emitted < 1 || emitted > t->len + 1)
        return as_json_bad(r, "tokens", "must be 1 to %d tokens", (int)t->len + 1);
    return reader_integers(r, o, "nodes", emitted - 1, 1, t->tree->nodes - 1, &a->node, NULL);
}
