/* The golden vectors: every one against the compiled reference, every expectation proved to
 * bite, the strictness of the loader. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ref/dist/draw.h"
#include "ref/dist/residual.h"
#include "ref/dist/served.h"
#include "ref/num/exp.h"
#include "ref/num/level.h"
#include "ref/num/philox.h"
#include "ref/num/uniform.h"
#include "ref/verify/nodes.h"
#include "ref/verify/verify.h"
#include "tests/vectors/say_arithmetic.h"
#include "vectors/read/answer.h"
#include "vectors/read/operation.h"
#include "vectors/read/tree.h"

static vector_set *set; /* the folder, loaded once */

static int open_set(void **state)
{
    char why[400];
    (void)state;
    set = vectors_load(VECTORS_FOLDER, why, sizeof why);
    if (!set) print_error("%s\n", why);
    return set ? 0 : -1;
}

static int close_set(void **state)
{
    (void)state;
    vectors_free(set);
    return 0;
}

/* -- The reference's answers --------------------------------------------------------------- */

enum { MOST_V = 4096, ROWS = VECTORS_MAX_GAMMA + 1 };

/* What the reference says, in the form of an answer that points into these arrays. */
typedef struct {
    vector_answer answer;
    int32_t tokens[ROWS], nodes[ROWS];
    uint32_t bits[MOST_V];
} said;

static uint64_t word_of(double u)
{
    return (uint64_t)ldexp(u, 64); /* exact: u has 24 bits */
}

static void say_row(const vector_group *g, const vector_test *t, said *s)
{
    static float value[MOST_V];
    const float *row = g->p + (int64_t)t->row[0] * g->V;
    const as_sampling how = {t->temperature, t->top_k, t->top_p, t->min_p};
    if (g->kind == VECTOR_RESIDUAL) {
        as_residual(row, g->q + (int64_t)t->row[0] * g->V, g->V, value);
    } else if (as_check_sampling(&how, NULL) != AS_OK) {
        s->answer.error = "parameter";
    } else if (as_serve(row, g->V, &how, value, NULL) != AS_OK) {
        s->answer.error = "row";
    }
    for (int32_t i = 0; i < g->V; i++) s->bits[i] = bits_of_float(value[i]);
    s->answer.bits = s->answer.error ? NULL : s->bits;
}

static void say_draw(const vector_group *g, const vector_test *t, said *s)
{
    const float *row = g->p + (int64_t)t->row[0] * g->V;
    const uint64_t U = g->uniforms == UNIFORMS_UNITS ? word_of(t->u[0])
                       : g->uniforms == UNIFORMS_WORDS
                           ? t->U
                           : as_word64(as_random(t->seed, t->position, AS_DRAW, 0));
    s->tokens[0] = as_draw(row, g->V, U);
    s->answer.count = 1;
}

static int32_t say_chain(const vector_group *g, const vector_test *t, const float *const *p,
                         const float *const *q, int32_t *out)
{
    if (g->uniforms == UNIFORMS_SEED)
        return as_verify_chain_seeded(p, q, t->draft, t->len, g->V, t->seed, t->position, out);
    const as_chain_uniforms u = {t->u, word_of(t->u[t->len]), word_of(t->u[t->len + 1]), NULL};
    return as_verify_chain(p, q, t->draft, t->len, g->V, &u, out);
}

static int32_t say_match(const vector_group *g, const vector_test *t, const float *const *p,
                         int32_t *out)
{
    uint64_t U[ROWS];
    if (g->uniforms == UNIFORMS_SEED)
        return as_verify_match_seeded(p, t->draft, t->len, g->V, t->seed, t->position, out);
    for (int32_t i = 0; i <= t->len; i++) U[i] = word_of(t->u[i]);
    return as_verify_match(p, t->draft, t->len, g->V, U, out);
}

static void say_step(const vector_group *g, const vector_test *t, said *s)
{
    const float *p[ROWS], *q[ROWS];
    for (int32_t i = 0; i <= t->len; i++) {
        p[i] = g->p + (int64_t)t->row[i] * g->V;
        q[i] = g->q ? g->q + (int64_t)t->row[i] * g->V : NULL;
    }
    s->answer.count = g->kind == VECTOR_CHAIN ? say_chain(g, t, p, q, s->tokens)
                      : g->kind == VECTOR_MATCH
                          ? say_match(g, t, p, s->tokens)
                          : as_verify_greedy(p, t->draft, t->len, g->V, s->tokens);
    if (s->answer.count == 0)
        s->answer.error = as_draft_length(t->draft, t->len, g->V) < 0 ? "draft" : "row";
}

static as_tree_rule rule_of(const char *name)
{
    static const char *const names[AS_TREE_RULES] = {
        [AS_TREE_GREEDY] = "greedy",       [AS_TREE_MATCH] = "match",   [AS_TREE_TARGET] = "target",
        [AS_TREE_ONEHOT] = "onehot",       [AS_TREE_SINGLE] = "single", [AS_TREE_RECURSIVE] = "recursive",
        [AS_TREE_KSEQ] = "kseq",           [AS_TREE_BLOCK] = "block",   [AS_TREE_TYPICAL] = "typical",
        [AS_TREE_CONSTANT] = "constant",   [AS_TREE_LENIENT] = "lenient"};
    int32_t rule = 0;
    while (rule < AS_TREE_RULES && strcmp(names[rule], name) != 0) rule++;
    return (as_tree_rule)rule;
}

static void say_tree(const vector_group *g, const vector_test *t, said *s)
{
    static as_node node[TREE_MAX_NODES];
    const vector_tree *tree = t->tree;
    const double *last = t->u + tree->nodes;
    for (int32_t i = 0; i < tree->nodes; i++)
        node[i] = (as_node){.token = tree->token[i],
                            .parent = tree->parent[i],
                            .p = g->p + (int64_t)tree->p[i] * g->V,
                            .q = tree->q && tree->q[i] >= 0 ? g->p + (int64_t)tree->q[i] * g->V : NULL,
                            .without = !strcmp(tree->drawn, "without"),
                            .parameter = {tree->parameter[2 * i], tree->parameter[2 * i + 1]}};
    const as_tree_step step = {.rule = rule_of(g->rule), .V = g->V, .nodes = tree->nodes, .node = node, .u = t->u,
                               .residual = word_of(last[0]), .bonus = word_of(last[1])};
    as_error error;
    const as_status status = as_verify_nodes(&step, s->tokens, s->nodes, &s->answer.count, &error);
    assert_true(status == AS_OK || status == AS_BAD_INPUT);
    s->answer.node = s->nodes;
    if (status == AS_OK) return;
    s->answer = (vector_answer){.error = "request"};
}

static void say_words(const vector_group *g, const vector_test *t, said *s)
{
    s->answer.bits = s->bits;
    if (g->kind == VECTOR_EXP) {
        s->bits[0] = bits_of_float(as_exp(t->x));
        return;
    }
    const as_words w = g->kind == VECTOR_PHILOX
                           ? as_philox(t->counter, t->key)
                           : as_random(t->seed, t->position, (as_purpose)t->purpose, t->index);
    memcpy(s->bits, w.w, sizeof w.w);
    if (g->kind == VECTOR_PHILOX) return;
    s->answer.accept = (uint32_t)ldexp(as_unit29(w), 29);
    s->answer.draw = as_word64(w);
}

static void say_operation(const vector_group *g, const vector_test *t, said *s)
{
    assert_true(t->expected.words <= MOST_V);
    s->answer.bits = s->bits;
    s->answer.words = t->expected.words;
    if (!say_arithmetic(g, t, s->bits)) fail_msg("%s is refused", t->id);
}

static void say(const vector_group *g, const vector_test *t, said *s)
{
    memset(&s->answer, 0, sizeof s->answer);
    s->answer.tokens = s->tokens;
    if (g->kind == VECTOR_TRACE) /* no function of the reference: what is expected */
        s->answer = t->expected;
    else if (g->kind == VECTOR_TREE)
        say_tree(g, t, s);
    else if (g->kind == VECTOR_ARITHMETIC)
        say_operation(g, t, s);
    else if (g->kind == VECTOR_SERVED || g->kind == VECTOR_RESIDUAL)
        say_row(g, t, s);
    else if (g->kind == VECTOR_DRAW)
        say_draw(g, t, s);
    else if (kind_has_drafts(g->kind))
        say_step(g, t, s);
    else
        say_words(g, t, s);
}

/* -- Tests of the data --------------------------------------------------------------------- */

static void the_reference_answers_every_vector(void **state)
{
    static said s;
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t t = 0; g->kind != VECTOR_TRACE && t < g->tests; t++) {
            say(g, &g->test[t], &s);
            if (!answer_same(g, &s.answer, &g->test[t].expected)) fail_msg("%s", g->test[t].id);
        }
    }
}

/* The operations of chapter 1 once more, at every machine level that this machine has. */
static void every_level_answers_alike(void **state)
{
    static const char *const level[] = {"baseline", "v3", "v4"};
    static uint32_t bits[MOST_V];
    (void)state;
    for (int32_t l = 0; l < 3; l++) {
        if (as_set_level(level[l], NULL) != AS_OK) continue;
        for (int32_t i = 0; i < vectors_groups(set); i++) {
            const vector_group *g = vectors_group(set, i);
            for (int32_t t = 0; g->kind == VECTOR_ARITHMETIC && t < g->tests; t++) {
                const vector_answer *a = &g->test[t].expected;
                if (!say_arithmetic(g, &g->test[t], bits) ||
                    memcmp(bits, a->bits, (size_t)a->words * sizeof *bits))
                    fail_msg("%s at level %s", g->test[t].id, level[l]);
            }
        }
    }
    assert_int_equal(as_set_level("auto", NULL), AS_OK);
}

/* The faulty operations differ from the right ones by their fault alone. */
static void an_unknown_fault_changes_nothing(void **state)
{
    static uint32_t bits[MOST_V];
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t t = 0; g->kind == VECTOR_ARITHMETIC && t < g->tests; t++) {
            const vector_answer *a = &g->test[t].expected;
            assert_true(operation_answer(g, &g->test[t], "unknown", bits));
            if (memcmp(bits, a->bits, (size_t)a->words * sizeof *bits))
                fail_msg("%s", g->test[t].id);
        }
    }
}

/* Every fault of every operation is caught: some vector of the operation has other bits then.
 */
static void every_fault_is_caught(void **state)
{
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        if (g->kind != VECTOR_ARITHMETIC) continue;
        for (const char *at = operation_find(g->op)->faults; *at; at += strspn(at, " ")) {
            const size_t length = strcspn(at, " ");
            bool caught = false;
            for (int32_t j = 0; j < vectors_groups(set); j++) {
                const vector_group *h = vectors_group(set, j);
                if (h->kind != VECTOR_ARITHMETIC || strcmp(h->op, g->op) != 0) continue;
                for (int32_t t = 0; t < h->tests; t++)
                    caught = caught || list_names(h->test[t].flags, at, length);
            }
            if (!caught) fail_msg("%s: %.*s", g->op, (int)length, at);
            at += length;
        }
    }
}

/* With its expectation changed no vector is satisfied any more, nor is any alternative. */
static void every_flip_is_noticed(void **state)
{
    static said s;
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t t = 0; t < g->tests; t++) {
            const vector_test before = g->test[t];
            assert_true(vectors_flip(set, i, t));
            say(g, &before, &s);
            if (answer_same(g, &s.answer, &g->test[t].expected)) fail_msg("%s", before.id);
            for (int32_t a = 0; a < before.alternatives; a++)
                if (answer_same(g, &before.alternative[a], &g->test[t].alternative[a]))
                    fail_msg("%s, alternative %d", before.id, (int)a);
            g->test[t] = before;
        }
    }
}

/* Random123's published answers, written down here by hand. */
static void philox_has_the_known_answers(void **state)
{
    static const uint32_t known[3][4] = {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
                                         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
                                         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}};
    const vector_group *g = vectors_find(set, "philox.random123");
    (void)state;
    assert_int_equal(g->tests, 3);
    for (int32_t t = 0; t < 3; t++)
        assert_memory_equal(g->test[t].expected.bits, known[t], sizeof known[t]);
}

/* PAN-04, from its text and the reference's Philox. */
static void procedural_inputs_are_as_defined(void **state)
{
    enum { N = 300 };
    const vector_input form = {true, UINT64_C(0x0123456789abcdef), 5, 3, 7, N, NULL};
    const uint32_t key[2] = {0x89abcdef, 0x01234567};
    uint32_t word[N];
    (void)state;
    operation_uniform(&form, word);
    for (uint32_t i = 0; i < N; i++) {
        const as_words r = as_philox((const uint32_t[4]){i, 5, 17, 0}, key);
        const double numerator = (double)(r.w[0] / 256) - 8388608;
        const float due = (float)ldexp(numerator, 3 - 23 - (int)(r.w[1] % 7));
        assert_memory_equal(&word[i], &due, sizeof due);
    }
}

static void chains_are_many_and_of_every_size(void **state)
{
    int32_t total = 0, least = INT32_MAX, most = 0;
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        if (g->kind != VECTOR_CHAIN) continue;
        total += g->tests;
        if (g->V < least) least = g->V;
        if (g->V > most) most = g->V;
    }
    assert_true(total >= 2000);
    assert_int_equal(least, 2);
    assert_int_equal(most, 4096);
}

/* What the trees must have met: every rule, size and way of drawing, ends in vain and at leaves, and what others get
 * wrong. */
static void trees_meet_everything(void **state)
{
    int32_t total = 0, large = 0, wide = 0, whole = 0, far = 0, refused = 0, leaf = 0, vain = 0, least = 0, most = 0;
    int32_t drawn[4] = {0}, repeat = 0, placeholder = 0, empty = 0, zero_p = 0, zero_q = 0;
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t k = 0; g->kind == VECTOR_TREE && k < g->tests; k++, total++) {
            const vector_test *t = &g->test[k];
            const vector_tree *tree = t->tree;
            for (int32_t d = 0; d < 4; d++) drawn[d] += !strcmp(tree->drawn, tree_drawings[d]);
            for (int32_t n = 0; n < tree->nodes + 2; n++) {
                least += t->u[n] == 0;
                most += t->u[n] == 1 - 0x1p-24;
            }
            large += g->V >= 32000 && g->p_form[0].form == ROW_ZIPF;
            wide += strstr(g->id, ".wide.") && tree->parent[40] == 0;
            whole += tree->nodes == 128;
            far += t->expected.count > 40;
            refused += t->expected.error != NULL;
            leaf += list_names(t->clauses, "TRV-05", 6);
            vain += !t->expected.error && !list_names(t->clauses, "TRV-05", 6);
            repeat += list_names(t->flags, "sibling-repeat", 14);
            placeholder += list_names(t->clauses, "TRV-04", 6);
            empty += vector_alternative(t, "empty=other") != NULL;
            zero_p += list_names(t->flags, "zero-p", 6);
            zero_q += list_names(t->flags, "zero-q", 6);
        }
    }
    assert_true(total >= 2000 && large >= 200 && wide >= 40 && whole >= 20 && far >= 10 && refused >= 20);
    assert_true(leaf >= 500 && vain >= 500 && repeat >= 200 && placeholder >= 200 && empty >= 40);
    assert_true(zero_p >= 200 && zero_q >= 200 && least >= 1000 && most >= 1000);
    for (int32_t d = 0; d < 4; d++) assert_true(drawn[d] >= 300);
}

static oracle_tree_verdict verdict_of(const vector_group *g, const vector_test *t, const int32_t *token, double tau)
{
    oracle_tree_request r;
    char why[300];
    assert_true(tree_request(set, g, t, 0, &r));
    return oracle_tree_judge(&r, token, t->expected.node, t->expected.count, tau, why, sizeof why);
}

/* The judge of the suite finds the expected answers exact, with and without tolerance, and the next last token wrong
 * without. */
static void the_judge_agrees_with_every_tree(void **state)
{
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t k = 0; g->kind == VECTOR_TREE && g->V <= 64 && k < g->tests; k++) {
            const vector_test *t = &g->test[k];
            const vector_answer *a = &t->expected;
            int32_t token[ROWS];
            if (a->error) continue;
            memcpy(token, a->tokens, (size_t)a->count * sizeof *token);
            assert_int_equal(verdict_of(g, t, token, 0), TREE_EXACT);
            assert_int_equal(verdict_of(g, t, token, 0x1p-48), TREE_EXACT);
            token[a->count - 1] = (token[a->count - 1] + 1) % g->V;
            if (verdict_of(g, t, token, 0) != TREE_WRONG) fail_msg("%s", t->id);
        }
    }
}

/* In exact numbers token 3 owns the residual up to 262/1024, which is the very uniform; in the specified integers a
 * little less far. An arithmetic of its own may draw 3 or 7 there, and canonical bits 7 alone. */
static void a_boundary_of_exact_numbers_is_tolerated(void **state)
{
    const vector_group *g = vectors_find(set, "tree.kseq.v8");
    const vector_test *t = &g->test[7];
    const int32_t three = 3, six = 6;
    (void)state;
    assert_true(t->expected.tokens[0] == 7 && t->u[t->tree->nodes] == 262.0 / 1024);
    assert_int_equal(verdict_of(g, t, &three, 0), TREE_WRONG);
    assert_int_equal(verdict_of(g, t, &three, 0x1p-48), TREE_GREY);
    assert_int_equal(verdict_of(g, t, &six, 0x1p-48), TREE_WRONG);
}

/* A note that no vector has explains nothing. */
static void every_note_is_of_some_vector(void **state)
{
    (void)state;
    for (int32_t n = 0; n < vector_notes_count; n++) {
        const char *flag = vector_notes[n].flag;
        bool used = false;
        for (int32_t i = 0; i < vectors_groups(set) && !used; i++) {
            const vector_group *g = vectors_group(set, i);
            used = !strcmp(g->rationale, flag);
            for (int32_t t = 0; t < g->tests && !used; t++)
                used = list_names(g->test[t].flags, flag, strlen(flag));
        }
        if (!used) fail_msg("%s", flag);
    }
}

/* What traces must have met: sizes of every kind, accepted lengths, ends inside runs, trees that
 * do not fit, and for each method a refusal. */
static void traces_meet_everything(void **state)
{
    int32_t accepted[5] = {0}, cut = 0, cut_by_token = 0, refused = 0, plain = 0, hits = 0;
    bool W[16] = {false}, N[6] = {false}, G[16] = {false};
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        for (int32_t k = 0; g->kind == VECTOR_TRACE && k < g->tests; k++) {
            const vector_test *t = &g->test[k];
            const int32_t *size = t->method->size;
            const oracle_trace *trace = t->expected.trace;
            refused += t->expected.error != NULL;
            if (g->method == ORACLE_LOOKAHEAD && trace)
                W[size[0]] = N[size[1]] = G[size[2]] = true;
            for (int32_t s = 0; trace && s < trace->steps; s++) {
                const oracle_step *step = &trace->step[s];
                if (g->method != ORACLE_LOOKAHEAD) continue;
                accepted[step->accepted]++;
                hits += step->candidates.n > 1;
                plain += s > 0 && step->rows.n == 1 && size[0] * (size[1] - 1) > 1;
                if (step->emitted.n == step->run.n) continue;
                cut++;
                cut_by_token += trace->tokens.n < t->request->budget;
            }
        }
    }
    for (int32_t n = 0; n < 5; n++) assert_true(accepted[n] >= 50);
    assert_true(cut >= 40 && cut_by_token >= 10 && refused >= 7 && plain >= 50 && hits >= 100);
    assert_true(W[1] && W[2] && W[5] && W[15] && N[2] && N[3] && N[4] && N[5]);
    assert_true(G[0] && G[1] && G[2] && G[15]);
}

static bool power_of_two_or_zero(double x)
{
    int e;
    return x == 0.0 || frexp(x, &e) == 0.5;
}

/* What `exact` promises: rows and uniforms in units of 2^-12, sums and residual sums that a
 * normalising implementation divides by without rounding. */
static void exact_groups_are_exact(void **state)
{
    (void)state;
    for (int32_t i = 0; i < vectors_groups(set); i++) {
        const vector_group *g = vectors_group(set, i);
        if (!g->exact) continue;
        assert_int_equal(g->uniforms, UNIFORMS_UNITS);
        assert_true(g->uniform_bits <= 12);
        for (int32_t r = 0; r < g->rows; r++) {
            double p = 0.0, rest = 0.0;
            for (int32_t t = 0; t < g->V; t++) {
                const double pt = (double)g->p[(int64_t)r * g->V + t];
                const double qt = g->q ? (double)g->q[(int64_t)r * g->V + t] : 0.0;
                assert_true(pt * 4096.0 == floor(pt * 4096.0) &&
                            qt * 4096.0 == floor(qt * 4096.0));
                p += pt;
                rest += fmax(0.0, pt - qt);
            }
            if (!power_of_two_or_zero(p)) fail_msg("%s row %d sums to %g", g->id, (int)r, p);
            if (g->q && !power_of_two_or_zero(rest))
                fail_msg("%s row %d has a residual of %g", g->id, (int)r, rest);
        }
    }
}

/* -- Tests of the text --------------------------------------------------------------------- */

static char *text_of(const char *file, size_t *size)
{
    FILE *f = fopen(file, "rb");
    char *text = malloc(1 << 23);
    assert_non_null(f);
    assert_non_null(text);
    *size = fread(text, 1, 1 << 23, f);
    fclose(f);
    return text;
}

static void writing_what_was_read_gives_the_same_bytes(void **state)
{
    (void)state;
    for (int32_t k = 0; k < VECTOR_KINDS; k++) {
        char file[1200], *written = NULL;
        size_t size, written_size;
        snprintf(file, sizeof file, "%s/%s.json", VECTORS_FOLDER, vector_kind_name[k]);
        char *text = text_of(file, &size);
        FILE *f = open_memstream(&written, &written_size);
        write_kind(f, set, (vector_kind)k);
        fclose(f);
        assert_int_equal(size, written_size);
        assert_memory_equal(text, written, size);
        free(text);
        free(written);
    }
}

#define CHAIN_TEST                                                                             \
    "{\"id\":\"chain.a.0001\",\"clauses\":[\"ACC-01\"],\"comment\":\"\",\"flags\":[\"n\"],"    \
    "\"rows\":[0,0],\"draft\":[1],\"accept\":[3],\"residual\":1,\"bonus\":2,"                  \
    "\"expected\":{\"tokens\":[1,0]}}"
#define CHAIN_FILE                                                                             \
    "{\"schema\":\"assay-vectors-1\",\"kind\":\"chain\",\"arithmetic\":0,"                     \
    "\"generator\":{\"name\":\"x\",\"version\":1},"                                            \
    "\"notes\":{\"n\":{\"bugType\":\"b\",\"effect\":\"e\",\"link\":\"\"}},"                    \
    "\"groups\":[{\"id\":\"chain.a\",\"clauses\":[\"ACC-01\"],\"rationale\":\"n\",\"V\":2,"    \
    "\"gamma\":1,"                                                                             \
    "\"exact\":false,\"uniforms\":{\"form\":\"units\",\"bits\":2},"                            \
    "\"rows\":[{\"p\":{\"form\":\"units\",\"k\":1,\"n\":[1,1]},"                               \
    "\"q\":{\"form\":\"bits\",\"bits\":\"3f000000 3f000000\"}}],"                              \
    "\"tests\":[" CHAIN_TEST "]}]}"

/* The small file with one piece replaced; `why` must say `complaint`. */
typedef struct {
    const char *piece, *instead, *complaint;
} breakage;

static const breakage breakages[] = {
    {"assay-vectors-1", "assay-vectors-2", "schema: must be"},
    {"\"kind\":\"chain\"", "\"kind\":\"chairs\"", "kind: is not known"},
    {"\"arithmetic\":0", "\"arithmetic\":7", "arithmetic: must be an integer"},
    {"\"arithmetic\":0", "\"arithmetic\":2", "arithmetic: must be an integer"},
    {"\"arithmetic\":0,", "", "arithmetic: is missing"},
    {"\"version\":1", "\"version\":1,\"more\":2", "generator: unknown key \"more\""},
    {"\"link\":\"\"", "\"link\":7", "notes.n.link: must be a text"},
    {"\"rationale\":\"n\"", "\"rationale\":\"m\"", "rationale: \"m\" has no note"},
    {"\"flags\":[\"n\"]", "\"flags\":[\"o\"]", "flags: \"o\" has no note"},
    {"\"V\":2", "\"V\":0", "groups[0].V: must be an integer from 1"},
    {"\"V\":2", "\"V\":2.5", "groups[0].V: must be an integer"},
    {"\"V\":2", "\"V\":3", "groups[0].rows[0].p.n: must be a list of 3"},
    {"\"gamma\":1", "\"gamma\":0", "draft: has more than gamma"},
    {"\"gamma\":1", "\"gamma\":65", "gamma: must be an integer from 0 to 64"},
    {"\"exact\":false", "\"exact\":0", "exact: must be true or false"},
    {"\"form\":\"units\",\"bits\":2", "\"form\":\"units\",\"bits\":25",
     "bits: must be an integer from 1 to 24"},
    {"\"form\":\"units\",\"bits\":2", "\"form\":\"words\"", "uniforms: must have form"},
    {"\"n\":[1,1]", "\"n\":[1,3]", "rows[0].p.n[1]: must be an integer from 0 to 2"},
    {"3f000000 3f000000", "3f000000 3F000000", "rows[0].q.bits: must be a text of 2 words"},
    {"3f000000 3f000000", "3f000000 7fc00000", "rows[0].q.bits: [1] must be a probability"},
    {"3f000000 3f000000", "3f000000 bf000000", "rows[0].q.bits: [1] must be a probability"},
    {"\"form\":\"bits\"", "\"form\":\"bots\"", "q.form: must be bits, units, zipf or mix"},
    {"\"tests\":[" CHAIN_TEST "]", "\"tests\":[]", "tests: must be a list of 1 to 100000 entries"},
    {"chain.a.0001", "chain.b.0001", "tests[0].id: must start with \"chain.a.\""},
    {"\"rows\":[0,0]", "\"rows\":[0,1]", "tests[0].rows[1]: must be an integer from 0 to 0"},
    {"\"rows\":[0,0]", "\"rows\":[0]", "tests[0].rows: must be a list of 2"},
    {"\"accept\":[3]", "\"accept\":[4]", "accept[0]: must be an integer from 0 to 3"},
    {"\"accept\":[3]", "\"accept\":[]", "accept: must be a list of 1"},
    {"\"residual\":1", "\"residual\":-1", "residual: must be an integer from 0 to 3"},
    {"\"bonus\":2", "\"bonus\":\"2\"", "bonus: must be an integer"},
    {"\"tokens\":[1,0]", "\"tokens\":[1,2]",
     "expected.tokens[1]: must be an integer from 0 to 1"},
    {"\"tokens\":[1,0]", "\"tokens\":[]", "expected.tokens: must be 1 to 2 tokens"},
    {"\"tokens\":[1,0]", "\"tokens\":[1,0,1]", "expected.tokens: must be 1 to 2 tokens"},
    {"{\"tokens\":[1,0]}", "{\"error\":\"weather\"}", "expected.error: must be one of: draft"},
    {"{\"tokens\":[1,0]}", "{\"tokens\":[1,0],\"then\":\"any\"}", "unknown key \"then\""},
    {"{\"tokens\":[1,0]}", "{\"tokens\":[1,0]},\"alternatives\":[]",
     "alternatives: must be a list of 1 to 8"},
    {"{\"tokens\":[1,0]}",
     "{\"tokens\":[1,0]},\"alternatives\":[{\"policy\":\"x\",\"tokens\":[1]}]",
     "policy: is not known"},
    {"{\"tokens\":[1,0]}",
     "{\"tokens\":[1,0]},\"alternatives\":[{\"policy\":\"empty=other\",\"tokens\":[1]}]",
     "then: is missing"},
    {"\"comment\":\"\"", "\"comment\":\"\",\"comment\":\"\"", "duplicate"},
    {"\"clauses\":[\"ACC-01\"],\"comment\"", "\"clauses\":[],\"comment\"",
     "must name at least one clause"},
    {"]}]}", "]}]", "small.json:1:"},
};

#define NORM_FILE                                                                              \
    "{\"schema\":\"assay-vectors-1\",\"kind\":\"arithmetic\",\"arithmetic\":0,"                \
    "\"generator\":{\"name\":\"x\",\"version\":1},"                                            \
    "\"notes\":{\"n\":{\"bugType\":\"b\",\"effect\":\"e\",\"link\":\"\"}},"                    \
    "\"groups\":[{\"id\":\"arithmetic.a\",\"clauses\":[\"ARI-09\"],\"rationale\":\"n\","       \
    "\"op\":\"norm\",\"tests\":[{\"id\":\"arithmetic.a.0001\",\"clauses\":[\"ARI-09\"],"       \
    "\"comment\":\"\",\"flags\":[],\"sizes\":{\"n\":2},\"inputs\":{"                           \
    "\"x\":\"3f800000 40000000\",\"gain\":{\"seed\":\"0000000000000001\",\"row\":0,"           \
    "\"e\":0,\"spread\":1},\"eps\":\"00000000\"},\"expected\":{\"y\":\"00000000 00000001\"}"   \
    "}]}]}"

static const breakage norm_breakages[] = {
    {"\"op\":\"norm\"", "\"op\":\"worm\"", "op: is not known"},
    {"\"op\":\"norm\",", "", "op: is missing"},
    {"\"op\":\"norm\"", "\"op\":\"dot\"", "sizes: unknown key \"n\""},
    {"\"n\":2", "\"n\":3", "inputs.x: must be a text of 3 words"},
    {"\"n\":2", "\"n\":0", "sizes: are out of range for norm"},
    {"\"n\":2", "\"n\":70000", "sizes: are out of range for norm"},
    {"\"n\":2", "\"n\":\"2\"", "must be an integer"},
    {"\"gain\":", "\"pain\":", "inputs.gain: must be"},
    {",\"eps\":\"00000000\"", "", "must be an object of 3 inputs"},
    {"\"spread\":1", "\"spread\":0", "inputs.gain.spread: must be an integer from 1"},
    {"\"e\":0,\"spread\":1", "\"e\":-100,\"spread\":40", "spread: reaches below"},
    {"\"seed\":\"0", "\"seed\":\"z", "seed: must be a text of 16"},
    {"00000000 00000001", "00000000", "expected.y: must be a text of 2 words"},
    {"{\"y\":\"00000000 00000001\"}", "{\"error\":\"row\"}", "error: must be one of"},
    {"]}]}", "]}]", "small.json:1:"},
};

#define TRACE_FILE                                                                             \
    "{\"schema\":\"assay-vectors-1\",\"kind\":\"trace\",\"arithmetic\":0,"                     \
    "\"generator\":{\"name\":\"x\",\"version\":1},"                                            \
    "\"notes\":{\"n\":{\"bugType\":\"b\",\"effect\":\"e\",\"link\":\"\"}},"                    \
    "\"groups\":[{\"id\":\"trace.a\",\"clauses\":[\"JAC-01\"],\"rationale\":\"n\","            \
    "\"method\":\"jacobi\",\"model\":{\"form\":\"automaton\",\"V\":2,\"S\":1,\"C\":1,"           \
    "\"start\":0,\"cls\":[0,0],\"next\":[0],\"logits\":[0,1]},\"tests\":["                      \
    "{\"id\":\"trace.a.0001\",\"clauses\":[\"JAC-01\"],\"comment\":\"\",\"flags\":[],"         \
    "\"prompt\":[0],\"budget\":1,\"eos\":-1,\"positions\":0,\"rows\":0,"                        \
    "\"temperature\":\"00000000\",\"top_k\":0,\"top_p\":\"3f800000\",\"min_p\":\"00000000\","  \
    "\"seed\":\"0000000000000001\",\"sizes\":{\"block\":1,\"pad\":0},\"given\":[],"             \
    "\"switches\":{\"init\":\"pad\"},\"expected\":{\"tokens\":[1],\"window\":[],\"pool\":["     \
    "{\"key\":1,\"values\":[[0]]}],\"steps\":[{\"rows\":[[]],\"candidates\":[],"               \
    "\"accepted\":0,\"run\":[1],\"emitted\":[1],\"window\":[],\"pool\":[]}]}}]}]}"

static const breakage trace_breakages[] = {
    {"\"method\":\"jacobi\"", "\"method\":\"cocoa\"", "method: is none of those"},
    {"\"method\":\"jacobi\"", "\"method\":\"lookup\"", "tests[0].sizes: unknown key"},
    {"automaton", "hash", "groups[0].model: unknown key"},
    {"automaton", "mash", "model: must have form hash or automaton"},
    {"\"cls\":[0,0]", "\"cls\":[0,1]", "model.cls[1]: must be an integer from 0 to 0"},
    {"\"next\":[0]", "\"next\":[]", "model.next: must be a list of 1"},
    {"\"logits\":[0,1]", "\"logits\":[0,16777216]", "model.logits[1]: must be"},
    {"\"prompt\":[0]", "\"prompt\":0", "prompt: must be a list"},
    {"\"budget\":1", "\"budget\":1025", "budget: must be an integer from 0 to 1024"},
    {"\"eos\":-1", "\"eos\":2", "eos: must be an integer from -1 to 1"},
    {"\"temperature\":\"0", "\"temperature\":\"z", "temperature: must be"},
    {"\"block\":1", "\"block\":-1", "sizes.block: must be an integer"},
    {"\"init\":\"pad\"", "\"init\":\"mad\"", "switches.init: must be one of: pad last"},
    {"{\"init\":\"pad\"}", "{}", "switches: must be an object of 1"},
    {"{\"tokens\":[1]", "{\"tokens\":[]", "expected.tokens: must not be empty"},
    {"{\"tokens\":[1]", "{\"tokens\":[2]", "expected.tokens[0]: must be an integer from 0"},
    {"\"values\":[[0]]", "\"values\":[[2]]", "pool[0].values[0][0]: must be an integer from 0 to 1"},
    {"\"values\":[[0]]", "\"values\":[0]", "pool[0].values[0]: must be a list"},
    {"\"key\":1", "\"key\":2", "pool[0].key: must be an integer from 0 to 1"},
    {"{\"key\":1,\"values\":[[0]]}", "{\"key\":1,\"values\":[]},{\"key\":1,\"values\":[]}",
     "pool[1].key: must be an integer from 2"},
    {"\"rows\":[[]]", "\"rows\":7", "steps[0].rows: must be a list of 0 to"},
    {"\"emitted\":[1]", "\"emitted\":[]", "steps[0].emitted: must not be empty"},
    {"\"accepted\":0,", "", "steps[0].accepted: is missing"},
    {"{\"tokens\":[1],", "{\"error\":\"rows\",", "expected: unknown key"},
    {"]}]}", "]}]", "small.json:1:"},
};

#define TREE_FILE                                                                              \
    "{\"schema\":\"assay-vectors-1\",\"kind\":\"tree\",\"arithmetic\":0,"                      \
    "\"generator\":{\"name\":\"x\",\"version\":1},"                                            \
    "\"notes\":{\"n\":{\"bugType\":\"b\",\"effect\":\"e\",\"link\":\"\"}},"                    \
    "\"groups\":[{\"id\":\"tree.a\",\"clauses\":[\"TRV-02\"],\"rationale\":\"n\","             \
    "\"rule\":\"kseq\",\"V\":2,\"depth\":1,\"rows\":[{\"row\":{\"form\":\"units\",\"k\":1,"      \
    "\"n\":[1,1]}}],\"tests\":[{\"id\":\"tree.a.0001\",\"clauses\":[\"TRV-02\"],"              \
    "\"comment\":\"\",\"flags\":[],\"parent\":[-1,0],\"token\":[-1,1],\"p\":[0,0],"            \
    "\"q\":[-1,0],\"drawn\":\"iid\",\"rho\":[0,65536],\"u\":[5,3],\"residual\":1,"              \
    "\"bonus\":2,\"expected\":{\"tokens\":[1,0],\"nodes\":[1]}}]}]}"

static const breakage tree_breakages[] = {
    {"\"rule\":\"kseq\"", "\"rule\":\"speq\"", "groups[0].rule: is none of chapter 10"},
    {"\"rule\":\"kseq\"", "\"rule\":\"block\"", "tests[0]: unknown key \"rho\""},
    {"\"rule\":\"kseq\"", "\"rule\":\"single\"", "tests[0]: unknown key \"rho\""},
    {"\"rule\":\"kseq\"", "\"rule\":\"onehot\"", "tests[0]: unknown key"},
    {"\"V\":2", "\"V\":1", "groups[0].V: must be an integer from 2"},
    {"\"depth\":1", "\"depth\":0", "parent: makes a tree deeper than depth = 0"},
    {"\"depth\":1", "\"depth\":65", "depth: must be an integer from 0 to 64"},
    {"{\"row\":{", "{\"p\":{", "rows[0]: unknown key \"p\""},
    {"\"parent\":[-1,0]", "\"parent\":[-1,2]", "parent[1]: must be an integer from -1 to 1"},
    {"\"parent\":[-1,0]", "\"parent\":[]", "parent: must be a list of 1 to 256"},
    {"\"token\":[-1,1]", "\"token\":[-1]", "token: must be a list of 2"},
    {"\"p\":[0,0]", "\"p\":[0,1]", "p[1]: must be an integer from 0 to 0"},
    {"\"q\":[-1,0]", "\"q\":[-1,1]", "q[1]: must be an integer from -1 to 0"},
    {"\"drawn\":\"iid\"", "\"drawn\":\"out\"", "drawn: must be one of: fixed iid without mixed"},
    {"\"rho\":[0,65536]", "\"rho\":[0,-1]", "rho[1]: must be an integer from 0"},
    {"\"rho\":[0,65536],", "", "rho: is missing"},
    {"\"u\":[5,3]", "\"u\":[5,16777216]", "u[1]: must be an integer from 0 to 16777215"},
    {"\"residual\":1", "\"residual\":-1", "residual: must be an integer from 0"},
    {"\"bonus\":2,", "", "bonus: is missing"},
    {"\"tokens\":[1,0]", "\"tokens\":[1,2]", "expected.tokens[1]: must be an integer from 0 to 1"},
    {"\"tokens\":[1,0]", "\"tokens\":[1,0,1]", "expected.tokens: must be 1 to 2 tokens"},
    {"\"nodes\":[1]", "\"nodes\":[]", "expected.nodes: must be a list of 1"},
    {"\"nodes\":[1]", "\"nodes\":[2]", "expected.nodes[0]: must be an integer from 1 to 1"},
    {"{\"tokens\":[1,0],\"nodes\":[1]}", "{\"error\":\"row\"}", "expected.error: must be \"request\""},
    {"\"nodes\":[1]}", "\"nodes\":[1]},\"alternatives\":[{\"policy\":\"empty=other\",\"tokens\":[],\"nodes\":[]}]",
     "then: is missing"},
    {"]}]}", "]}]", "small.json:1:"},
};

/* The first occurrence of `piece` in the file, replaced; to be freed. */
static char *broken(const char *whole, const breakage *b)
{
    const char *at = strstr(whole, b->piece);
    assert_non_null(at);
    if (!strcmp(b->piece, "]}]}")) at = whole + strlen(whole) - 4;
    char *text = calloc(strlen(whole) + strlen(b->instead) + 1, 1);
    assert_non_null(text);
    memcpy(text, whole, (size_t)(at - whole));
    strcat(strcat(text, b->instead), at + strlen(b->piece));
    return text;
}

static void assert_named(const char *whole, const breakage *b)
{
    char why[400] = "";
    char *text = broken(whole, b);
    vector_set *s = vectors_new();
    if (vectors_parse(s, "small.json", text, strlen(text), why, sizeof why))
        fail_msg("accepted: %s", b->instead);
    if (!strstr(why, b->complaint)) fail_msg("\"%s\" instead of \"%s\"", why, b->complaint);
    assert_non_null(strstr(why, "small.json"));
    assert_non_null(strstr(why, "assay vectors generate"));
    vectors_free(s);
    free(text);
}

/* Each file as it is, which names version 0, and as version 1 of it. */
static void versions_0_and_1_are_read_alike(void **state)
{
    static const char *const whole[] = {CHAIN_FILE, NORM_FILE, TRACE_FILE, TREE_FILE};
    static const breakage one = {"\"arithmetic\":0", "\"arithmetic\":1", ""};
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++) {
        char why[400] = "";
        char *text = broken(whole[i], &one);
        vector_set *s = vectors_new();
        if (!vectors_parse(s, "small.json", whole[i], strlen(whole[i]), why, sizeof why) ||
            !vectors_parse(s, "small.json", text, strlen(text), why, sizeof why))
            fail_msg("file %zu: %s", i, why);
        vectors_free(s);
        free(text);
    }
}

static void malformed_files_are_named_with_their_fault(void **state)
{
    char why[400] = "";
    (void)state;
    vector_set *sound = vectors_new();
    assert_true(
        vectors_parse(sound, "small.json", CHAIN_FILE, strlen(CHAIN_FILE), why, sizeof why));
    assert_true(
        vectors_parse(sound, "small.json", NORM_FILE, strlen(NORM_FILE), why, sizeof why));
    assert_true(
        vectors_parse(sound, "small.json", TRACE_FILE, strlen(TRACE_FILE), why, sizeof why));
    assert_true(
        vectors_parse(sound, "small.json", TREE_FILE, strlen(TREE_FILE), why, sizeof why));
    assert_int_equal(vectors_group(sound, 3)->test[0].expected.node[0], 1);
    assert_int_equal(vectors_group(sound, 2)->test[0].expected.trace->step[0].run.t[0], 1);
    assert_int_equal(vectors_group(sound, 0)->test[0].expected.tokens[0], 1);
    assert_int_equal(vectors_group(sound, 1)->test[0].input[0].word[1], 0x40000000);
    assert_int_equal(vectors_group(sound, 1)->test[0].expected.words, 2);
    vectors_free(sound);
    for (size_t i = 0; i < sizeof breakages / sizeof *breakages; i++)
        assert_named(CHAIN_FILE, &breakages[i]);
    for (size_t i = 0; i < sizeof norm_breakages / sizeof *norm_breakages; i++)
        assert_named(NORM_FILE, &norm_breakages[i]);
    for (size_t i = 0; i < sizeof trace_breakages / sizeof *trace_breakages; i++)
        assert_named(TRACE_FILE, &trace_breakages[i]);
    for (size_t i = 0; i < sizeof tree_breakages / sizeof *tree_breakages; i++)
        assert_named(TREE_FILE, &tree_breakages[i]);
}

/* Every prefix of a file is refused, and none crashes. */
static void truncated_files_are_refused(void **state)
{
    char why[400];
    (void)state;
    for (size_t size = 0; size < strlen(CHAIN_FILE); size++) {
        vector_set *s = vectors_new();
        assert_false(vectors_parse(s, "small.json", CHAIN_FILE, size, why, sizeof why));
        vectors_free(s);
    }
}

/* -- Tests of the folder ------------------------------------------------------------------- */

/* A copy of the folder without one kind's file (or whole: VECTOR_KINDS), `edit` done to the
 * set. */
static void copy_folder(const char *folder, vector_kind without)
{
    char why[400], file[1200];
    assert_true(mkdir(folder, 0777) == 0 || errno == EEXIST);
    assert_true(write_folder(set, folder, why, sizeof why));
    if (without == VECTOR_KINDS) return;
    snprintf(file, sizeof file, "%s/%s.json", folder, vector_kind_name[without]);
    assert_int_equal(unlink(file), 0);
}

static void assert_refused(const char *folder, const char *complaint)
{
    char why[400] = "";
    vector_set *s = vectors_load(folder, why, sizeof why);
    assert_null(s);
    if (!strstr(why, complaint)) fail_msg("\"%s\" instead of \"%s\"", why, complaint);
}

static void missing_and_surplus_are_errors(void **state)
{
    const char *folder = "vectors-copy";
    vector_group *g = &set->group[0];
    const vector_group before = *g;
    (void)state;
    assert_refused("no-such-folder", "no-such-folder/philox.json");
    for (int32_t k = 0; k < VECTOR_KINDS; k++) {
        copy_folder(folder, (vector_kind)k);
        assert_refused(folder, vector_kind_name[k]);
    }
    g->tests--;
    copy_folder(folder, VECTOR_KINDS);
    assert_refused(folder, "philox.json: the group philox.random123 should have 3 vectors, "
                           "found 2; restore the file");
    *g = before;
    g->id = "philox.unheard-of";
    for (int32_t t = 0; t < g->tests; t++) g->test[t].id = "philox.unheard-of.1";
    copy_folder(folder, VECTOR_KINDS);
    assert_refused(folder, "the group philox.random123 is missing");
    *g = before;
    for (int32_t t = 0; t < g->tests; t++) g->test[t].id = "philox.random123.0001";
    copy_folder(folder, VECTOR_KINDS);
    assert_refused(folder, "two vectors have the id philox.random123.0001");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_reference_answers_every_vector),
        cmocka_unit_test(every_level_answers_alike),
        cmocka_unit_test(an_unknown_fault_changes_nothing),
        cmocka_unit_test(every_fault_is_caught),
        cmocka_unit_test(every_flip_is_noticed),
        cmocka_unit_test(philox_has_the_known_answers),
        cmocka_unit_test(procedural_inputs_are_as_defined),
        cmocka_unit_test(chains_are_many_and_of_every_size),
        cmocka_unit_test(trees_meet_everything),
        cmocka_unit_test(the_judge_agrees_with_every_tree),
        cmocka_unit_test(a_boundary_of_exact_numbers_is_tolerated),
        cmocka_unit_test(every_note_is_of_some_vector),
        cmocka_unit_test(traces_meet_everything),
        cmocka_unit_test(exact_groups_are_exact),
        cmocka_unit_test(writing_what_was_read_gives_the_same_bytes),
        cmocka_unit_test(versions_0_and_1_are_read_alike),
        cmocka_unit_test(malformed_files_are_named_with_their_fault),
        cmocka_unit_test(truncated_files_are_refused),
        cmocka_unit_test(missing_and_surplus_are_errors),
    };
    return cmocka_run_group_tests(tests, open_set, close_set);
}
