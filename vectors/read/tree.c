/* tree.c - answers of trees, from the oracle alone; see tree.h. */
#include "vectors/read/tree.h"

#include <string.h>
#include "conformance/oracle/law/siblings.h"

static const tree_rule rules[] = {
    {"target", ORACLE_TREE_TARGET, true, true, {"alpha", "sigma"}},
    {"recursive", ORACLE_TREE_RECURSIVE, true, true, {NULL}},
    {"match", ORACLE_TREE_MATCH, true, false, {NULL}},
    {"greedy", ORACLE_TREE_GREEDY, false, false, {NULL}},
    {"kseq", ORACLE_TREE_KSEQ, true, true, {"rho"}},
    {"block", ORACLE_TREE_BLOCK, true, true, {NULL}},
    {"onehot", ORACLE_TREE_ONEHOT, true, true, {NULL}},
    {"single", ORACLE_TREE_SINGLE, true, true, {NULL}},
    {"typical", ORACLE_TREE_TYPICAL, false, true, {"theta"}},
    {"lenient", ORACLE_TREE_LENIENT, true, true, {"l"}},
    {"constant", ORACLE_TREE_CONSTANT, false, true, {"theta"}},
};

const char *const tree_drawings[4] = {"fixed", "iid", "without", "mixed"};

const tree_rule *tree_rule_find(const char *name)
{
    for (size_t i = 0; name && i < sizeof rules / sizeof *rules; i++)
        if (!strcmp(rules[i].name, name)) return &rules[i];
    return NULL;
}

/* ---- The oracle's request ---------------------------------------------------------- */

bool tree_request(vector_set *set, const vector_group *g, const vector_test *t, unsigned flags, oracle_tree_request *r)
{
    const vector_tree *tree = t->tree;
    const tree_rule *rule = tree_rule_find(g->rule);
    const float **row = set_take(set, (size_t)g->rows, sizeof *row);
    oracle_tree_node *node = set_take(set, (size_t)tree->nodes, sizeof *node);
    oracle_unit *u = set_take(set, (size_t)tree->nodes + 2, sizeof *u);
    if (!row || !node || !u) return false;
    for (int32_t i = 0; i < g->rows; i++) row[i] = g->p + (int64_t)i * g->V;
    for (int32_t i = 0; i < tree->nodes; i++)
        node[i] = (oracle_tree_node){.token = tree->token[i],
                                     .parent = tree->parent[i],
                                     .p = tree->p[i],
                                     .q = tree->q ? tree->q[i] : -1,
                                     .without = !strcmp(tree->drawn, "without"),
                                     .parameter = {tree->parameter[2 * i], tree->parameter[2 * i + 1]}};
    for (int32_t i = 0; i < tree->nodes + 2; i++) u[i] = oracle_unit_of(t->u[i]);
    *r = (oracle_tree_request){.rule = rule->rule, .V = g->V, .rows = g->rows, .nodes = tree->nodes, .row = row,
                               .node = node, .u = u, .residual = u[tree->nodes], .bonus = u[tree->nodes + 1],
                               .flags = flags};
    return true;
}

/* ---- Answers ----------------------------------------------------------------------- */

/* False: memory is short. A refused request is an error of the answer. */
static bool ask(vector_set *set, const oracle_tree_request *r, vector_answer *a)
{
    int32_t *token = set_take(set, (size_t)r->nodes, sizeof *token);
    int32_t *node = set_take(set, (size_t)r->nodes, sizeof *node);
    char why[160];
    if (!token || !node) return false;
    a->count = oracle_tree(r, token, node, why, sizeof why);
    if (a->count == 0) return a->error = "request", true;
    a->tokens = token;
    a->node = node;
    return true;
}

/* Of two answers to a request that is served, or refused. */
static bool differ(const vector_answer *a, const vector_answer *b)
{
    return a->count != b->count || memcmp(a->tokens, b->tokens, (size_t)a->count * sizeof *a->tokens) ||
           memcmp(a->node, b->node, (size_t)tree_gone(a) * sizeof *a->node);
}

static bool has_child(const oracle_tree_request *r, int32_t node)
{
    for (int32_t i = node + 1; i < r->nodes; i++)
        if (r->node[i].parent == node && r->node[i].token >= 0) return true;
    return false;
}

/* VAR-04 can matter where the q of a token is 0, from the start or by SIB-04. */
static bool may_lack_q(const oracle_tree_request *r)
{
    for (int32_t i = 1; i < r->nodes && oracle_tree_uses_q(r->rule); i++)
        if (r->node[i].token >= 0 && r->node[i].q >= 0 &&
            (r->node[i].without || r->row[r->node[i].q][r->node[i].token] == 0))
            return true;
    return false;
}

/* SIB-05, VAR-06: did a refusal leave nothing? Then the judge allows another last token, where the policy does. */
static bool met_empty(vector_set *set, oracle_tree_request r, const vector_answer *a)
{
    const int32_t last = a->count - 1, end = last > 0 ? a->node[last - 1] : 0;
    const float *p = r.row[r.node[end].p];
    int32_t *token = set_take(set, (size_t)a->count, sizeof *token), other = 0;
    char why[160];
    if (!oracle_tree_uses_q(r.rule) || !token || !has_child(&r, end)) return false;
    memcpy(token, a->tokens, (size_t)a->count * sizeof *token);
    while (other < r.V && (other == token[last] || p[other] == 0)) other++;
    if (other == r.V) return false;
    token[last] = other;
    r.flags |= ORACLE_EMPTY_OTHER;
    if (oracle_tree_judge(&r, token, a->node, a->count, 0, why, sizeof why) == TREE_WRONG) return false;
    r.flags &= ~(unsigned)ORACLE_EMPTY_OTHER;
    return oracle_tree_judge(&r, token, a->node, a->count, 0, why, sizeof why) == TREE_WRONG;
}

/* The answer of another policy, if it is another one. `met`: it leaves that of empty residuals open as well. */
static bool ask_policy(vector_set *set, oracle_tree_request r, vector_test *t, vector_answer *other, const char *policy,
                       unsigned flag, bool *met)
{
    vector_answer a = {.policy = policy};
    r.flags = flag;
    if (!ask(set, &r, &a)) return false;
    if (a.error || (!t->expected.error && !differ(&a, &t->expected))) return true;
    *met = *met || met_empty(set, r, &a);
    other[t->alternatives++] = a;
    return true;
}

bool tree_answer(vector_set *set, const vector_group *g, vector_test *t, char *why, size_t why_size)
{
    oracle_tree_request r;
    vector_answer *other = set_take(set, 3, sizeof *other);
    bool met = false;
    t->expected = (vector_answer){0};
    t->alternatives = 0;
    t->alternative = other;
    if (!other || !tree_request(set, g, t, 0, &r) || !ask(set, &r, &t->expected)) return false;
    const bool refused = t->expected.error != NULL;
    if (refused && !ask_policy(set, r, t, other, "bad_draft=ends", ORACLE_BAD_DRAFT_ENDS, &met)) return false;
    if (!refused && may_lack_q(&r) &&
        !ask_policy(set, r, t, other, "q_zero=reject", ORACLE_Q_ZERO_REJECTS, &met))
        return false;
    if (!refused && met_empty(set, r, &t->expected)) {
        vector_answer *a = &other[t->alternatives++];
        *a = t->expected;
        *a = (vector_answer){.policy = "empty=other", .tokens = a->tokens, .node = a->node, .count = a->count - 1,
                             .then_any = true};
    }
    if (t->alternatives + met <= 1) return true;
    return (void)snprintf(why, why_size, "%s: two policies meet in it", t->id), false;
}

bool tree_flip(vector_set *set, const vector_group *g, vector_answer *a)
{
    int32_t *token = set_take(set, (size_t)a->count + 1, sizeof *token), *node = set_take(set, 1, sizeof *node);
    if (!token || !node) return false;
    if (a->count > 0) {
        memcpy(token, a->tokens, (size_t)a->count * sizeof *token);
        token[a->count - 1] = (token[a->count - 1] + 1) % g->V;
    } else {
        a->count = *node = 1;
        a->node = node;
    }
    a->tokens = token;
    a->error = NULL;
    return true;
}

/* ---- Clauses ----------------------------------------------------------------------- */

/* What happened at a node that was gone to, or at the root. */
typedef struct {
    int32_t children, tried; /* placeholders apart; tried: up to the one gone to */
    bool placeholder, repeat, in_vain;
} story;

/* Its child `to` was gone to; -1: none. */
static story story_of(const vector_tree *tree, int32_t node, int32_t to)
{
    story s = {.in_vain = true};
    for (int32_t i = node + 1; i < tree->nodes; i++) {
        if (tree->parent[i] != node) continue;
        s.placeholder = s.placeholder || tree->token[i] < 0;
        if (tree->token[i] < 0) continue;
        s.children++;
        if (!s.in_vain) continue;
        s.tried++;
        for (int32_t k = node + 1; k < i; k++)
            s.repeat = s.repeat || (tree->parent[k] == node && tree->token[k] == tree->token[i]);
        s.in_vain = i != to;
    }
    return s;
}

static void name_siblings(char *list, const story *s, bool without)
{
    if (s->tried > 0) list_add(list, "SIB-01");
    if (s->tried > 1) list_add(list, "SIB-02"), list_add(list, "SIB-03");
    if (s->tried > 1 && without) list_add(list, "SIB-04");
    if (s->tried > 0 && s->in_vain) list_add(list, "SIB-06");
    if (s->repeat) list_add(list, "REC-02");
}

static void name_kseq(char *list, const story *s)
{
    list_add(list, "KSQ-01");
    if (s->children > 1) list_add(list, "KSQ-02");
    if (s->children > 1 && s->in_vain) list_add(list, "KSQ-03");
}

static void name_target(char *list, const story *s, const double *parameter)
{
    list_add(list, "TGT-01");
    if (s->children > 0 && s->in_vain) list_add(list, "TGT-02");
    if (s->children > 0 && (parameter[0] < 1 || parameter[1] < 1)) list_add(list, "TGT-03");
}

static void name_block(char *list)
{
    list_add(list, "BLK-02");
    list_add(list, "BLK-03");
    list_add(list, "BLK-04");
}

static void name_node(char *list, oracle_tree_rule rule, const vector_tree *tree, int32_t node, const story *s)
{
    static const char *const own[] = {
        [ORACLE_TREE_GREEDY] = "GRD-04", [ORACLE_TREE_MATCH] = "MAT-03",    [ORACLE_TREE_ONEHOT] = "ONEH-07",
        [ORACLE_TREE_SINGLE] = "NIR-01", [ORACLE_TREE_RECURSIVE] = "REC-01", [ORACLE_TREE_TYPICAL] = "TYP-01",
        [ORACLE_TREE_LENIENT] = "LEN-01", [ORACLE_TREE_CONSTANT] = "CST-01"};
    if (s->placeholder) list_add(list, "TRV-04");
    if (rule == ORACLE_TREE_TARGET)
        name_target(list, s, tree->parameter + 2 * node);
    else if (rule == ORACLE_TREE_KSEQ)
        name_kseq(list, s);
    else if (rule == ORACLE_TREE_BLOCK)
        name_block(list);
    else
        list_add(list, own[rule]);
    if (rule == ORACLE_TREE_RECURSIVE || rule == ORACLE_TREE_LENIENT)
        name_siblings(list, s, !strcmp(tree->drawn, "without"));
    if (s->in_vain && s->children == 0) list_add(list, "TRV-05");
}

const char *tree_clauses(vector_set *set, const vector_group *g, const vector_test *t)
{
    const vector_answer *a = &t->expected;
    const oracle_tree_rule rule = tree_rule_find(g->rule)->rule;
    char list[200] = "";
    list_add(list, a->error ? "TRV-01" : "TRV-02");
    if (tree_gone(a) > 0) list_add(list, "TRV-03");
    for (int32_t i = 0; !a->error && i <= tree_gone(a); i++) {
        const int32_t node = i > 0 ? a->node[i - 1] : 0, to = i < tree_gone(a) ? a->node[i] : -1;
        const story s = story_of(t->tree, node, to);
        name_node(list, rule, t->tree, node, &s);
    }
    if (vector_alternative(t, "empty=other")) list_add(list, "SIB-05");
    if (!a->error && rule != ORACLE_TREE_GREEDY) list_add(list, "DRAW-02");
    return set_text(set, list, strlen(list));
}
