/* write_tree.c - the canonical text of trees; see vectors/read/tree.h. */
#include <math.h>
#include <string.h>

#include "conformance/oracle/law/siblings.h"
#include "vectors/read/tree.h"

static void write_list(FILE *f, const char *key, const int32_t *list, int32_t n)
{
    fprintf(f, "\"%s\": [", key);
    for (int32_t i = 0; i < n; i++) fprintf(f, "%s%d", i ? "," : "", (int)list[i]);
    fputs("]", f);
}

static int32_t units(double u)
{
    return (int32_t)ldexp(u, TREE_UNIFORM_BITS);
}

static void write_parameter(FILE *f, const char *key, const double *x, int32_t nodes)
{
    const bool integers = !strcmp(key, "rho");
    fprintf(f, integers ? "\"%s\": [" : "\"%s\": \"", key);
    for (int32_t i = 0; i < nodes; i++) {
        if (integers)
            fprintf(f, "%s%d", i ? "," : "", (int)x[2 * i]);
        else
            fprintf(f, "%s%08x", i ? " " : "", (unsigned)bits_of_float((float)x[2 * i]));
    }
    fputs(integers ? "], " : "\", ", f);
}

void tree_write_group(FILE *f, const vector_group *g)
{
    fprintf(f, "      \"rule\": \"%s\",\n      \"V\": %d,\n      \"depth\": %d,\n", g->rule, (int)g->V, (int)g->gamma);
}

void tree_write_inputs(FILE *f, const vector_group *g, const vector_test *t)
{
    const tree_rule *rule = tree_rule_find(g->rule);
    const vector_tree *tree = t->tree;
    const int32_t n = tree->nodes;
    int32_t u[TREE_MAX_NODES];
    write_list(f, "parent", tree->parent, n);
    fputs(", ", f);
    write_list(f, "token", tree->token, n);
    fputs(", ", f);
    write_list(f, "p", tree->p, n);
    fputs(", ", f);
    if (oracle_tree_uses_q(rule->rule)) write_list(f, "q", tree->q, n), fputs(", ", f);
    fprintf(f, "\"drawn\": \"%s\", ", tree->drawn);
    for (int32_t i = 0; i < TREE_PARAMETERS && rule->parameter[i]; i++)
        write_parameter(f, rule->parameter[i], tree->parameter + i, n);
    for (int32_t i = 0; i < n; i++) u[i] = units(t->u[i]);
    if (rule->u) write_list(f, "u", u, n), fputs(", ", f);
    if (rule->last) fprintf(f, "\"residual\": %d, \"bonus\": %d, ", (int)units(t->u[n]), (int)units(t->u[n + 1]));
}

void tree_write(FILE *f, const vector_answer *a)
{
    write_list(f, "tokens", a->tokens, a->count);
    fputs(", ", f);
    write_list(f, "nodes", a->node, tree_gone(a));
}
