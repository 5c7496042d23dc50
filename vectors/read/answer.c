/* answer.c - see answer.h. Chains, draws and residuals come from the GMP oracle, rows and exp
 * from MPFR, uniforms from the oracle's Philox. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/chain_gmp.h"
#include "conformance/oracle/law/lane.h"
#include "conformance/oracle/law/philox.h"
#include "conformance/oracle/law/served.h"
#include "vectors/read/answer.h"
#include "vectors/read/operation.h"
#include "vectors/read/trace.h"
#include "vectors/read/tree.h"

enum { ROWS = VECTORS_MAX_GAMMA + 1 };

/* The rows of a test, by position. */
typedef struct {
    const float *p[ROWS], *q[ROWS];
} step_rows;

static step_rows rows_of(const vector_group *g, const vector_test *t)
{
    step_rows r = {{NULL}, {NULL}};
    for (int32_t i = 0; i <= t->len; i++) {
        r.p[i] = g->p + (int64_t)t->row[i] * g->V;
        r.q[i] = g->q ? g->q + (int64_t)t->row[i] * g->V : NULL;
    }
    return r;
}

/* -- Rules --------------------------------------------------------------------------------- */

/* Which token is corrected is settled by the acceptance uniforms; so a first run with any draws
 * tells at which position the one draw of the step takes place (RNG-06). */
static int32_t seeded_chain(const vector_group *g, const vector_test *t, unsigned flags,
                            int32_t *out)
{
    const step_rows r = rows_of(g, t);
    double accept[ROWS];
    oracle_uniforms u = {accept, oracle_unit_word(0), oracle_unit_word(0), NULL};
    for (int32_t i = 0; i < t->len; i++)
        accept[i] = oracle_accept_uniform(t->seed, t->position + (uint64_t)i);
    const int32_t n = oracle_gmp_chain(r.p, r.q, t->draft, t->len, g->V, &u, flags, out);
    if (n == 0) return 0;
    const uint64_t last = t->position + (uint64_t)n - 1;
    u.residual = oracle_unit_word(oracle_draw_uniform(t->seed, last, LANE_RESIDUAL));
    u.bonus = oracle_unit_word(oracle_draw_uniform(t->seed, last, LANE_DRAW));
    return oracle_gmp_chain(r.p, r.q, t->draft, t->len, g->V, &u, flags, out);
}

static int32_t chain(const vector_group *g, const vector_test *t, unsigned flags, int32_t *out)
{
    if (g->uniforms == UNIFORMS_SEED) return seeded_chain(g, t, flags, out);
    const step_rows r = rows_of(g, t);
    const oracle_uniforms u = {t->u, oracle_unit_of(t->u[t->len]),
                               oracle_unit_of(t->u[t->len + 1]), NULL};
    return oracle_gmp_chain(r.p, r.q, t->draft, t->len, g->V, &u, flags, out);
}

static int32_t seeded_match(const vector_group *g, const vector_test *t, unsigned flags,
                            int32_t *out)
{
    const step_rows r = rows_of(g, t);
    const int32_t n = oracle_draft_count(t->draft, t->len, g->V, flags);
    int32_t count = 0;
    while (count <= n) {
        const uint64_t at = t->position + (uint64_t)count;
        const oracle_unit u = oracle_unit_word(oracle_draw_uniform(t->seed, at, LANE_DRAW));
        const int32_t token = out[count] = oracle_gmp_draw(r.p[count], g->V, u);
        count++;
        if (count > n || token != t->draft[count - 1]) break;
    }
    return count;
}

/* Tokens of the kind's rule; 0 when an error is due. */
static int32_t run_rule(const vector_group *g, const vector_test *t, unsigned flags,
                        int32_t *out)
{
    const step_rows r = rows_of(g, t);
    switch (g->kind) {
    case VECTOR_CHAIN:
        return chain(g, t, flags, out);
    case VECTOR_MATCH:
        return g->uniforms == UNIFORMS_SEED
                   ? seeded_match(g, t, flags, out)
                   : oracle_gmp_match(r.p, t->draft, t->len, g->V, t->u, flags, out);
    default:
        return oracle_greedy(r.p, t->draft, t->len, g->V, flags, out);
    }
}

/* What happened in a chain step that emitted `count` tokens. */
typedef struct {
    int32_t drafts; /* that counted */
    bool rejected, empty;
} story;

static story story_of(const vector_group *g, const vector_test *t, int32_t count)
{
    story s = {oracle_draft_count(t->draft, t->len, g->V, 0), false, false};
    s.rejected = s.drafts >= 0 && count <= s.drafts;
    if (s.rejected && g->kind == VECTOR_CHAIN) {
        const step_rows r = rows_of(g, t);
        float *residual = malloc((size_t)g->V * sizeof *residual);
        s.empty = residual &&
                  oracle_gmp_residual(r.p[count - 1], r.q[count - 1], g->V, residual) != 0;
        free(residual);
    }
    return s;
}

/* -- One test ------------------------------------------------------------------------------ */

static bool set_tokens(vector_set *set, vector_answer *a, const int32_t *tokens, int32_t count)
{
    int32_t *copy = set_take(set, (size_t)count + 1, sizeof *copy);
    if (!copy) return false;
    memcpy(copy, tokens, (size_t)count * sizeof *copy);
    a->tokens = copy;
    a->count = count;
    return true;
}

/* One more alternative, if the other policy answers otherwise. */
static bool set_policy(vector_set *set, const vector_group *g, vector_test *t,
                       vector_answer *other, const char *policy, unsigned flags)
{
    int32_t out[ROWS];
    vector_answer a = {.policy = policy};
    const int32_t n = run_rule(g, t, flags, out);
    if (n == 0) return true;
    if (!set_tokens(set, &a, out, n)) return false;
    if (!answer_same(g, &a, &t->expected)) other[t->alternatives++] = a;
    return true;
}

static bool answer_step(vector_set *set, const vector_group *g, vector_test *t, char *why,
                        size_t why_size)
{
    int32_t out[ROWS];
    const int32_t n = run_rule(g, t, 0, out);
    const bool refused = oracle_draft_count(t->draft, t->len, g->V, 0) < 0;
    vector_answer *other = set_take(set, 3, sizeof *other);
    t->alternatives = 0;
    t->alternative = other;
    if (!other) return false;
    for (int32_t i = 0; i < n; i++)
        if (out[i] < 0)
            return (void)snprintf(why, why_size, "%s: a row has no weight", t->id), false;
    if (n == 0)
        t->expected.error = refused ? "draft" : "row";
    else if (!set_tokens(set, &t->expected, out, n))
        return false;
    if (refused && !set_policy(set, g, t, other, "bad_draft=ends", ORACLE_BAD_DRAFT_ENDS))
        return false;
    if (g->kind == VECTOR_CHAIN && !refused &&
        !set_policy(set, g, t, other, "q_zero=reject", ORACLE_Q_ZERO_REJECTS))
        return false;
    if (n > 0 && story_of(g, t, n).empty) {
        vector_answer *a = &other[t->alternatives++];
        *a = (vector_answer){.policy = "empty=other", .then_any = true};
        if (!set_tokens(set, a, out, n - 1)) return false;
    }
    if (t->alternatives <= 1) return true;
    return (void)snprintf(why, why_size, "%s: two policies meet in it", t->id), false;
}

static bool answer_row(vector_set *set, const vector_group *g, vector_test *t, char *why,
                       size_t why_size)
{
    const float *row = g->p + (int64_t)t->row[0] * g->V;
    const oracle_sampling s = {t->temperature, t->top_k, t->top_p, t->min_p};
    float *value = set_take(set, (size_t)g->V, sizeof *value);
    uint32_t *bits = set_take(set, (size_t)g->V, sizeof *bits);
    oracle_status status = ORACLE_OK;
    if (!value || !bits) return false;
    if (g->kind == VECTOR_SERVED)
        status = oracle_serve(row, g->V, &s, NULL, value, why, why_size);
    else
        oracle_gmp_residual(row, g->q + (int64_t)t->row[0] * g->V, g->V, value);
    if (status == ORACLE_NO_MEMORY) return false;
    if (status != ORACLE_OK)
        return t->expected.error = status == ORACLE_BAD_ROW ? "row" : "parameter", true;
    for (int32_t i = 0; i < g->V; i++) bits[i] = bits_of_float(value[i]);
    t->expected.bits = bits;
    return true;
}

static bool answer_draw(vector_set *set, const vector_group *g, vector_test *t, char *why,
                        size_t why_size)
{
    const oracle_unit u =
        g->uniforms == UNIFORMS_UNITS ? oracle_unit_of(t->u[0])
        : g->uniforms == UNIFORMS_WORDS
            ? oracle_unit_word(t->U)
            : oracle_unit_word(oracle_draw_uniform(t->seed, t->position, LANE_DRAW));
    const int32_t token = oracle_gmp_draw(g->p + (int64_t)t->row[0] * g->V, g->V, u);
    if (token < 0)
        return (void)snprintf(why, why_size, "%s: a row has no weight", t->id), false;
    return set_tokens(set, &t->expected, &token, 1);
}

static bool answer_numbers(vector_set *set, const vector_group *g, vector_test *t)
{
    uint32_t *word = set_take(set, 4, sizeof *word);
    if (!word) return false;
    t->expected.bits = word;
    if (g->kind == VECTOR_PHILOX) oracle_philox(t->counter, t->key, word);
    if (g->kind == VECTOR_EXP) word[0] = bits_of_float(oracle_exp(t->x));
    if (g->kind == VECTOR_UNIFORM) {
        oracle_words(t->seed, t->position, t->purpose, t->index, word);
        t->expected.accept = word[0] >> 3;
        t->expected.draw = (uint64_t)word[0] << 32 | word[1];
    }
    return true;
}

/* Every flag is a fault that this vector catches: with it the oracle's answer is another. */
static bool answer_operation(vector_set *set, const vector_group *g, vector_test *t, char *why,
                             size_t why_size)
{
    int32_t n[OPERATION_INPUTS];
    vector_answer *a = &t->expected;
    if (operation_shape(operation_find(g->op), t->size, n, &a->words) != t->inputs)
        return (void)snprintf(why, why_size, "%s: its sizes and inputs differ", t->id), false;
    uint32_t *right = set_take(set, (size_t)a->words, sizeof *right);
    uint32_t *wrong = malloc((size_t)a->words * sizeof *wrong);
    bool ok = right && wrong && operation_answer(g, t, NULL, right);
    a->bits = right;
    for (const char *at = t->flags; ok && *at; at += strspn(at, " ")) {
        char fault[40];
        const size_t length = strcspn(at, " ");
        snprintf(fault, sizeof fault, "%.*s", (int)length, at);
        at += length;
        if (!(ok = operation_answer(g, t, fault, wrong))) break;
        ok = memcmp(right, wrong, (size_t)a->words * sizeof *right) != 0;
        if (!ok) snprintf(why, why_size, "%s: does not catch %s", t->id, fault);
    }
    free(wrong);
    return ok;
}

bool answer_test(vector_set *set, const vector_group *g, vector_test *t, char *why,
                 size_t why_size)
{
    snprintf(why, why_size, "%s: the memory is too short", t->id);
    t->expected = (vector_answer){0};
    t->alternatives = 0;
    switch (g->kind) {
    case VECTOR_SERVED:
    case VECTOR_RESIDUAL:
        return answer_row(set, g, t, why, why_size);
    case VECTOR_DRAW:
        return answer_draw(set, g, t, why, why_size);
    case VECTOR_ARITHMETIC:
        return answer_operation(set, g, t, why, why_size);
    case VECTOR_TRACE:
        return trace_answer(set, g, t, why, why_size);
    case VECTOR_TREE:
        return tree_answer(set, g, t, why, why_size);
    case VECTOR_CHAIN:
    case VECTOR_MATCH:
    case VECTOR_GREEDY:
        return answer_step(set, g, t, why, why_size);
    default:
        return answer_numbers(set, g, t);
    }
}

/* -- Comparison ---------------------------------------------------------------------------- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

bool answer_same(const vector_group *g, const vector_answer *a, const vector_answer *b)
{
    const size_t words = (size_t)answer_words(g, a);
    if (!same_text(a->error, b->error) || a->count != b->count || a->then_any != b->then_any ||
        a->accept != b->accept || a->words != b->words || a->draw != b->draw ||
        !a->bits != !b->bits || !a->trace != !b->trace)
        return false;
    if (a->trace) return oracle_trace_alike(a->trace, b->trace);
    if (a->bits && memcmp(a->bits, b->bits, words * sizeof *a->bits)) return false;
    if (a->node && b->node && tree_gone(a) > 0 &&
        memcmp(a->node, b->node, (size_t)tree_gone(a) * sizeof *a->node))
        return false;
    return a->count == 0 || !memcmp(a->tokens, b->tokens, (size_t)a->count * sizeof *a->tokens);
}

/* -- Clauses ------------------------------------------------------------------------------- */

static void name_chain(char *list, const vector_group *g, const vector_test *t)
{
    const step_rows r = rows_of(g, t);
    const int32_t count = t->expected.count;
    const story s = story_of(g, t, count);
    for (int32_t i = 0; i < count && i < s.drafts; i++) {
        const float p = r.p[i][t->draft[i]], q = r.q[i][t->draft[i]];
        list_add(list, p == 0 ? "ACC-02" : p >= q ? "ACC-03" : "ACC-01");
    }
    if (s.drafts < t->len) list_add(list, "ACC-07");
    if (s.drafts > 1) list_add(list, "ACC-05"), list_add(list, "ACC-06");
    if (s.rejected && count < s.drafts) list_add(list, "ACC-04");
    if (s.rejected)
        list_add(list, "RES-01"), list_add(list, "RES-02"), list_add(list, s.empty ? "RES-03" : "RES-04");
    else
        list_add(list, s.drafts ? "BON-01" : "BON-03");
    list_add(list, "BON-02");
    list_add(list, "BON-04");
}

const char *answer_clauses(vector_set *set, const vector_group *g, const vector_test *t)
{
    char list[200] = "";
    if (g->kind == VECTOR_TRACE) return trace_clauses(set, t);
    if (g->kind == VECTOR_TREE) return tree_clauses(set, g, t);
    if (t->expected.error) {
        list_add(list, !strcmp(t->expected.error, "draft") ? "ACC-08" : "DIST-01");
    } else if (g->kind == VECTOR_CHAIN) {
        name_chain(list, g, t);
    } else {
        const bool greedy = g->kind == VECTOR_GREEDY;
        list_add(list, greedy ? "GRD-01" : "MAT-01");
        if (oracle_draft_count(t->draft, t->len, g->V, 0) < t->len) list_add(list, "ACC-07");
        list_add(list, "BON-04");
    }
    if (!t->expected.error && kind_has_uniforms(g->kind)) {
        list_add(list, "DRAW-02");
        if (g->uniforms == UNIFORMS_SEED)
            list_add(list, "RNG-01"), list_add(list, "RNG-02"), list_add(list, "RNG-03"),
                list_add(list, "RNG-06");
        else
            list_add(list, "DRAW-01");
    }
    return set_text(set, list, strlen(list));
}
