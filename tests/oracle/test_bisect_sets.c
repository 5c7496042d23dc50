/* The bisection lane on the compiled verification of candidate sets: the one-hot rule with its
 * walk down the candidates on dyadic panels, then whole streams of lookahead and prompt lookup
 * with the rules one-hot and match. The reference's draw uniforms (RNG-05) come from the lane,
 * by their names, in place of Philox's (the linker's --wrap); those that fill windows stay the
 * seed's.
 *
 * Three statements about each law of the first k tokens. It is within k (V - 1) 2^-64 of the
 * target (words.h has the argument). It equals, in Q, the law of the oracle's rule over
 * uniforms that are multiples of 2^-64; and boundary by boundary, uniform by uniform, the
 * reference decides as the oracle does. Where every quotient of weights is a power of two, the
 * law is the target's. Clauses ONEH-01 to ONEH-05, LAH-19, LAH-21, LAH-28, LKP-07, LAW-01,
 * DRAW-06, RNG-06. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/arithmetic/words.h"
#include "conformance/oracle/law/chain.h"
#include "conformance/oracle/law/rules.h"
#include "conformance/oracle/methods/methods.h"
#include "conformance/oracle/methods/toy.h"
#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"
#include "ref/lm/table_lm.h"
#include "ref/num/rows.h"
#include "ref/num/uniform.h"
#include "tests/random.h"

enum { STATES = 3, CLASSES = 2, MOST_V = 5, MANY = 4000000, MOST_CUTS = 1 << 16 };
static const uint64_t SEED = 5;

/* ---- Uniforms of the lane --------------------------------------------------------- */

static oracle_words *words; /* who is asked; NULL: Philox */
static uint64_t nudge;      /* a fault: how far below its word an acceptance uniform is */

static uint64_t nudged(uint64_t U)
{
    return U > nudge ? U - nudge : 0;
}

as_words __real_as_philox(const uint32_t counter[4], const uint32_t key[2]);
as_words __wrap_as_philox(const uint32_t counter[4], const uint32_t key[2]);

as_words __wrap_as_philox(const uint32_t counter[4], const uint32_t key[2])
{
    const uint32_t purpose = counter[2];
    const bool draws = purpose == AS_DRAW || purpose == AS_ACCEPT || purpose == AS_RESIDUAL;
    if (!words || !draws) return __real_as_philox(counter, key);
    assert_true(counter[1] == 0 && key[0] == SEED && key[1] == 0);
    uint64_t U = oracle_word(words, lane_uniform(purpose, counter[0], counter[3]));
    if (purpose == AS_ACCEPT) U = nudged(U);
    return (as_words){{(uint32_t)(U >> 32), (uint32_t)U, 0, 0}};
}

/* ---- Laws ------------------------------------------------------------------------- */

typedef struct {
    int32_t n;
    uint32_t name[MOST_CUTS];
    uint64_t first[MOST_CUTS];
} boundaries;

static void note_cut(void *arg, uint32_t uniform, uint64_t first)
{
    boundaries *b = arg;
    assert_true(b->n < MOST_CUTS);
    b->name[b->n] = uniform;
    b->first[b->n++] = first;
}

/* The oracle's program, asking for words. */
typedef struct {
    lane_program program;
    void *arg;
} by_words;

static void ask_words(oracle_words *w, void *arg, int32_t *tokens, int32_t *count)
{
    const by_words *p = arg;
    oracle_word_lane l = oracle_lane_of_words(w);
    p->program(&l.base, p->arg, tokens, count);
}

static oracle_law *new_law(int32_t V, int32_t k)
{
    oracle_law *law = oracle_law_new(V, k);
    assert_non_null(law);
    return law;
}

/* k (V - 1) 2^-64 > TV, as a statement of rationals. */
static bool within_resolution(const oracle_law *law, const oracle_law *target)
{
    mpq_t tv, bound;
    mpq_inits(tv, bound, (mpq_ptr)0);
    oracle_law_tv(tv, law, target);
    mpq_set_ui(bound, (unsigned long)(law->k * (law->V - 1)), 1);
    mpq_div_2exp(bound, bound, 64);
    const bool within = mpq_cmp(tv, bound) < 0;
    mpq_clears(tv, bound, (mpq_ptr)0);
    return within;
}

/* What the compiled program does, what the oracle's does, and where they should arrive. */
typedef struct {
    const char *name;
    oracle_word_program compiled;
    void *compiled_arg;
    by_words oracle;
    const oracle_panel *panel;
    int32_t start, k;
} comparison;

/* Entry by entry, so that a difference has a place. */
static void expect_same_boundaries(const comparison *c, const boundaries *a,
                                   const boundaries *b)
{
    for (int32_t i = 0; i < a->n && i < b->n; i++)
        if (a->name[i] != b->name[i] || a->first[i] != b->first[i])
            fail_msg("%s: boundary %d: purpose %u, position %u, index %u at %016llx; the "
                     "oracle's: %u, %u, %u at %016llx",
                     c->name, (int)i, lane_purpose(a->name[i]), lane_position(a->name[i]),
                     lane_index(a->name[i]), (unsigned long long)a->first[i],
                     lane_purpose(b->name[i]), lane_position(b->name[i]),
                     lane_index(b->name[i]), (unsigned long long)b->first[i]);
    assert_int_equal(a->n, b->n);
}

/* The distance of the compiled law from the target's, rounded; 0 only for equality. */
static double compare(const comparison *c)
{
    static boundaries mine, theirs;
    const int32_t V = c->panel->V;
    oracle_law *law = new_law(V, c->k), *due = new_law(V, c->k), *target = new_law(V, c->k);
    mine.n = theirs.n = 0;
    if (!oracle_law_add_words(law, c->compiled, c->compiled_arg, note_cut, &mine))
        fail_msg("%s: decisions are not monotone in their uniforms", c->name);
    assert_true(oracle_law_add_words(due, ask_words, (void *)&c->oracle, note_cut, &theirs));
    oracle_law_add_target(target, c->panel, c->start);
    if (!within_resolution(law, target))
        fail_msg("%s: %.3g from the target's law", c->name, oracle_law_distance(law, target));
    expect_same_boundaries(c, &mine, &theirs);
    assert_int_equal(oracle_law_differences(law, due), 0);
    oracle_law_free(due);
    due = new_law(V, c->k);
    assert_true(oracle_law_add_program(due, c->oracle.program, c->oracle.arg, 64, MANY));
    assert_int_equal(oracle_law_differences(law, due), 0);
    const double tv = oracle_law_distance(law, target);
    oracle_law_free(law);
    oracle_law_free(due);
    oracle_law_free(target);
    return tv;
}

/* ---- The lane itself -------------------------------------------------------------- */

/* Two tokens, each by a word of its own, or both by one, or the second by a word behind the
 * end. The others are not monotone: what they emit for each eighth of the words. */
typedef enum { TWO_WORDS, ONE_WORD, LATE, DENTED, SPIKED, REPEATED, PROGRAMS } program_kind;
static const int32_t eighths[PROGRAMS][8] = {[DENTED] = {0, 0, 0, 1, 1, 2, 0, 0},
                                             [SPIKED] = {0, 1, 1, 0, 1, 1, 2, 2},
                                             [REPEATED] = {0, 0, 1, 1, 1, 0, 2, 2}};

static int32_t third(uint64_t U)
{
    return (int32_t)(U / UINT64_C(0x5555555555555556));
}

static void small_program(oracle_words *w, void *arg, int32_t *tokens, int32_t *count)
{
    const program_kind kind = *(program_kind *)arg;
    const uint32_t place = kind == LATE ? 2 : kind == TWO_WORDS;
    const uint64_t U = oracle_word(w, lane_uniform(LANE_DRAW, 0, 0)),
                   next = oracle_word(w, lane_uniform(LANE_DRAW, place, 0));
    tokens[0] = kind >= DENTED ? eighths[kind][U >> 61] : third(U);
    tokens[1] = kind >= DENTED ? 0 : third(next);
    *count = 2;
}

/* The law in units of 2^-64 for a word, 2^-128 for two. */
static void expect_units(program_kind kind, int32_t a, int32_t b, uint64_t x, uint64_t y)
{
    const int32_t tokens[2] = {a, b};
    mpq_t want, factor;
    oracle_law *law = new_law(3, 2);
    assert_true(oracle_law_add_words(law, small_program, &kind, NULL, NULL));
    mpq_inits(want, factor, (mpq_ptr)0);
    mpq_set_ui(want, x, 1);
    mpq_set_ui(factor, y, 1);
    mpq_mul(want, want, factor);
    mpq_div_2exp(want, want, kind == TWO_WORDS ? 128 : 64);
    assert_true(mpq_equal(want, law->mass[oracle_law_cell(law, tokens, 2)]));
    mpq_clears(want, factor, (mpq_ptr)0);
    oracle_law_free(law);
}

static void words_are_counted(void **state)
{
    static const uint64_t most = UINT64_C(0x5555555555555556), least = most - 2;
    (void)state;
    expect_units(TWO_WORDS, 0, 2, most, least);
    expect_units(TWO_WORDS, 2, 2, least, least);
    expect_units(ONE_WORD, 2, 2, least, 1);
    expect_units(ONE_WORD, 0, 2, 0, 1);
    expect_units(LATE, 1, 0, most, 1); /* a word behind the last token is 0 */
    expect_units(LATE, 1, 1, 0, 1);
    for (program_kind kind = DENTED; kind < PROGRAMS; kind++) {
        oracle_law *law = new_law(3, 2);
        assert_false(oracle_law_add_words(law, small_program, &kind, NULL, NULL));
        oracle_law_free(law);
    }
}

/* ---- The rule on panels ----------------------------------------------------------- */

typedef struct {
    int32_t cls[MOST_V], next[STATES * CLASSES];
    float p[STATES * MOST_V];
    oracle_panel panel;
} small_panel;

/* Rows in units of 2^-`bits`. */
static void make_panel(small_panel *m, int32_t V, const int32_t units[STATES][MOST_V], int bits)
{
    for (int32_t t = 0; t < V; t++) m->cls[t] = t % CLASSES;
    for (int32_t s = 0; s < STATES; s++) {
        for (int32_t t = 0; t < V; t++)
            m->p[s * V + t] = (float)units[s][t] / (float)(1 << bits);
        for (int32_t c = 0; c < CLASSES; c++) m->next[s * CLASSES + c] = (s + 1 + c) % STATES;
    }
    m->panel = (oracle_panel){V, STATES, CLASSES, m->cls, m->next, m->p, m->p};
}

/* "01 02 01": candidates of digits. */
static oracle_lists candidates_of(const char *text)
{
    oracle_lists lists = {0};
    if (!*text) return lists;
    oracle_another(&lists);
    for (; *text; text++)
        if (*text == ' ')
            oracle_another(&lists);
        else
            oracle_push(&lists.l[lists.n - 1], *text - '0');
    return lists;
}

/* A walk of the reference, at its place in the stream. */
typedef struct {
    const oracle_candidate_stream *stream;
    const as_walk *walk;
    oracle_words *words;
    int32_t position, state;
} walker;

static int32_t after(const oracle_panel *m, int32_t state, int32_t token)
{
    return m->next[state * m->C + m->cls[token]];
}

/* as_onehot is given the words that as_onehot_seeded has asked for. */
static int32_t with_uniforms(const walker *w, const float *p, const int32_t *option, int32_t n,
                             uint32_t at, float *rest)
{
    uint64_t accept[MOST_V];
    for (int32_t i = 0; i < n; i++)
        accept[i] =
            nudged(oracle_word_seen(w->words, lane_uniform(LANE_ACCEPT, at, (uint32_t)i)));
    const as_onehot_uniforms u = {
        accept, oracle_word_seen(w->words, lane_uniform(LANE_RESIDUAL, at, 0)),
        oracle_word_seen(w->words, lane_uniform(LANE_DRAW, at, 0))};
    return as_onehot(p, w->stream->panel->V, option, n, &u, rest);
}

static as_status choose(void *data, int32_t row, int32_t depth, const int32_t *option,
                        int32_t n, int32_t *token, as_error *e)
{
    walker *w = data;
    const oracle_panel *m = w->stream->panel;
    float rest[MOST_V];
    (void)row, (void)e;
    if (depth > 0) w->state = after(m, w->state, w->walk->run[depth - 1]);
    const float *p = m->p + w->state * m->V;
    const int32_t at = w->position + depth;
    *token = as_onehot_seeded(p, m->V, option, n, SEED, (uint64_t)at, rest);
    assert_int_equal(*token, with_uniforms(w, p, option, n, (uint32_t)at, rest));
    return AS_OK;
}

/* The candidates one after the other, each a chain under the root. */
static void plant(as_tree *t, as_plan *plan, const oracle_lists *candidates, bool bonus)
{
    assert_int_equal(as_tree_plant(t, 0, NULL), AS_OK);
    *plan = as_plan_drafts();
    plan->bonus = bonus;
    plan->most = candidates->n && !bonus ? candidates->l[0].n : 16;
    for (int32_t i = 0; i < candidates->n; i++)
        for (int32_t k = 0; k < candidates->l[i].n; k++)
            assert_int_equal(as_tree_add(t, candidates->l[i].t[k], k ? t->rows - 1 : 0, NULL),
                             AS_OK);
}

/* oracle_verify_stream by the reference's walk and rule. */
static void compiled_stream(oracle_words *asked, void *arg, int32_t *tokens, int32_t *count)
{
    enum { ROWS = 17 };
    static as_tree tree;
    const oracle_candidate_stream *c = arg;
    int32_t run[ROWS], path[ROWS], option[ROWS], state = c->start;
    words = asked;
    for (*count = 0; *count < c->k;) {
        as_walk walk = {run, 0, path, 0, option};
        walker w = {c, &walk, asked, *count, state};
        as_plan plan;
        plant(&tree, &plan, &c->candidates[state], c->bonus);
        assert_in_range(tree.rows, 1, ROWS);
        assert_int_equal(as_walk_tree(&tree, &plan, choose, &w, &walk, NULL), AS_OK);
        for (int32_t i = 0; i < walk.length && *count < c->k; i++) {
            tokens[(*count)++] = run[i];
            state = after(c->panel, state, run[i]);
        }
    }
    words = NULL;
    as_tree_free(&tree);
    tree = (as_tree){0};
}

typedef struct {
    int32_t V, N;
    bool alike; /* candidates of one length, as without a bonus they must be */
    const char *of[STATES];
} candidate_case;

static double compare_case(const small_panel *m, const candidate_case *x, int32_t start,
                           bool bonus)
{
    oracle_lists sets[STATES];
    char name[100];
    for (int32_t s = 0; s < STATES; s++) sets[s] = candidates_of(x->of[s]);
    oracle_candidate_stream c = {&m->panel, start, x->N + 1, sets, false, bonus};
    snprintf(name, sizeof name, "V %d, N %d, \"%s\" \"%s\" \"%s\"%s", (int)x->V, (int)x->N,
             x->of[0], x->of[1], x->of[2], bonus ? "" : ", no bonus");
    const double tv = compare(&(comparison){
        name, compiled_stream, &c, {oracle_verify_stream, &c}, &m->panel, start, x->N + 1});
    for (int32_t s = 0; s < STATES; s++) oracle_lists_free(&sets[s]);
    return tv;
}

/* In units of 2^-12: tokens without weight, and one with all of it. */
static const int32_t dyadic[MOST_V + 1][STATES][MOST_V] = {
    [2] = {{3001, 1095}, {1, 4095}, {4096, 0}},
    [3] = {{2048, 1365, 683}, {0, 3000, 1096}, {0, 4096, 0}},
    [4] = {{2001, 1024, 1070, 1}, {300, 0, 3796, 0}, {0, 0, 0, 4096}},
    [5] = {{1111, 555, 2222, 0, 208}, {1, 2, 3, 4, 4086}, {0, 4096, 0, 0, 0}},
};

/* Duplicates, shared prefixes, prefixes of one another, tokens without weight and with all of
 * it, the whole vocabulary, no candidates; one to four of them, of 1 to N - 1 tokens. */
static const candidate_case cases[] = {
    {2, 2, true, {"0", "1 0", "1"}},
    {2, 3, true, {"00 01 00", "11 11", "10 01 00 11"}},
    {2, 4, false, {"0 01 011", "10 1", "111 110 00"}},
    {2, 4, true, {"010 011 000", "101 101", "000 111 001 010"}},
    {3, 2, true, {"0 0 1", "2 1 0", "2 0"}},
    {3, 3, true, {"01 02 11 01", "00 21 20", "12 10 12"}},
    {3, 3, false, {"0 00 1 12", "", "2 22 11"}},
    {3, 4, true, {"010 012 010 122", "211 212", "111 011"}},
    {4, 2, true, {"3 0 3 1", "1 2", "0 3 2"}},
    {4, 3, true, {"01 02 03 01", "33 32 33", "11 12 10 11"}},
    {4, 3, false, {"3 33 2 20", "13 2 1", "3"}},
    {5, 2, true, {"4 3 2 4", "0 1 2 3", "0 4"}},
    {5, 3, true, {"01 23 04 01", "44 43 42 44", "10 11"}},
    {5, 3, false, {"2 20 4 40", "3 34 0", ""}},
    {4, 4, false, {"000 33 1 330", "02 021 0", "3 30"}},
    {5, 4, true, {"012 021 400", "441 444 432 012", "111 101"}},
};
enum { CASES = sizeof cases / sizeof *cases };

static void sets_have_the_target_law(void **state)
{
    static const char *const levels[] = {"baseline", "v3", "v4"};
    (void)state;
    for (int32_t i = 0; i < CASES; i++)
        for (int32_t bonus = !cases[i].alike; bonus < 2; bonus++) {
            small_panel m;
            (void)as_set_level(levels[i % 3],
                               NULL); /* stays as it was without such a processor */
            make_panel(&m, cases[i].V, dyadic[cases[i].V], 12);
            for (int32_t start = 0; start < STATES; start++)
                if (cases[i].N < 4 || start == i % STATES)
                    compare_case(&m, &cases[i], start, bonus);
        }
    assert_int_equal(as_set_level("auto", NULL), AS_OK);
}

/* Few tokens share the 4096 units, now and then one has them all. */
static void random_units(int32_t *units, int32_t V, uint64_t *seed)
{
    const int32_t shares = 1 + below(seed, 2 * V);
    for (int32_t t = 0; t < MOST_V; t++) units[t] = 0;
    int32_t left = 4096;
    for (int32_t i = 1; i < shares; i++) {
        const int32_t some = below(seed, left);
        units[below(seed, V)] += some;
        left -= some;
    }
    units[below(seed, V)] += left;
}

/* "12 1 13" */
static void random_candidates(char *text, int32_t V, int32_t N, bool alike, uint64_t *seed)
{
    const int32_t count = below(seed, 5);
    for (int32_t i = 0; i < count; i++) {
        const int32_t n = alike ? N - 1 : 1 + below(seed, N - 1);
        if (i) *text++ = ' ';
        for (int32_t k = 0; k < n; k++) *text++ = (char)('0' + below(seed, V));
    }
    *text = 0;
}

static void random_sets_have_the_target_law(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (int32_t i = 0; i < 120; i++) {
        int32_t units[STATES][MOST_V];
        char text[STATES][20];
        const int32_t V = 2 + i % 4, N = 2 + below(&seed, V > 3 ? 2 : 3);
        const bool bonus = i % 3 > 0;
        small_panel m;
        for (int32_t s = 0; s < STATES; s++) {
            random_units(units[s], V, &seed);
            random_candidates(text[s], V, N, !bonus, &seed);
        }
        make_panel(&m, V, units, 12);
        compare_case(&m, &(candidate_case){V, N, !bonus, {text[0], text[1], text[2]}},
                     i % STATES, bonus);
    }
}

/* Tried from the largest weight down, 1/2, 1/4, 1/8 ... leave powers of two: no boundary is off
 * the grid. One word more of acceptance, and the law is another. */
static void powers_of_two_are_exact(void **state)
{
    static const int32_t units[STATES][MOST_V] = {
        {16, 8, 4, 2, 2}, {2, 2, 4, 8, 16}, {0, 16, 0, 8, 8}};
    static const candidate_case halves = {
        5, 3, true, {"04 03 11 24", "41 43 30 21", "03 14 13 40"}};
    small_panel m;
    (void)state;
    make_panel(&m, 5, units, 5);
    for (int32_t start = 0; start < STATES; start++)
        assert_true(compare_case(&m, &halves, start, true) == 0);
}

/* A law that is off by one word of 2^64 is told from the right one. */
static void one_word_shows(void **state)
{
    static const int32_t units[STATES][MOST_V] = {{16, 16}, {16, 16}, {16, 16}};
    oracle_lists sets[STATES] = {candidates_of("0"), {0}, {0}};
    small_panel m;
    mpq_t tv;
    (void)state;
    make_panel(&m, 2, units, 5);
    oracle_candidate_stream c = {&m.panel, 0, 1, sets, false, true};
    oracle_law *law = new_law(2, 1), *target = new_law(2, 1);
    nudge = 1;
    assert_true(oracle_law_add_words(law, compiled_stream, &c, NULL, NULL));
    nudge = 0;
    oracle_law_add_target(target, &m.panel, 0);
    mpq_init(tv);
    oracle_law_tv(tv, law, target);
    mpq_mul_2exp(tv, tv, 64);
    assert_int_equal(mpq_cmp_ui(tv, 1, 1), 0);
    assert_false(within_resolution(law, target));
    mpq_clear(tv);
    oracle_law_free(law);
    oracle_law_free(target);
    oracle_lists_free(&sets[0]);
}

/* ---- Whole streams ---------------------------------------------------------------- */

/* An automaton whose state is the last token; its served rows make the panel. */
enum { LETTERS = 3 };
static const int32_t own[LETTERS] = {0, 1, 2};
static const int32_t last[LETTERS * LETTERS] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
static const int32_t integers[LETTERS * LETTERS] = {0, 2, 1, 1, 0, 3, 2, 2, 0};
static const float logits[LETTERS * LETTERS] = {0, 2, 1, 1, 0, 3, 2, 2, 0};
static const oracle_table letters = {LETTERS, LETTERS, LETTERS, 0, own, last, integers};

/* A request to both. */
typedef struct {
    oracle_request q;
    oracle_method m;
    as_lm *lm;
    as_drafter *drafter;
    as_rule rule;
    int32_t accepted; /* by the reference, over all runs */
} stream;

static void oracle_decodes(lane *l, void *arg, int32_t *tokens, int32_t *count)
{
    static const oracle_lm lm = {LETTERS, oracle_table_logits, &letters};
    const stream *s = arg;
    oracle_trace t;
    oracle_decode_by(l, &lm, &s->q, &s->m, &t);
    assert_string_equal(t.error, "");
    *count = t.tokens.n;
    memcpy(tokens, t.tokens.t, (size_t)t.tokens.n * sizeof *tokens);
    oracle_trace_free(&t);
}

static void reference_decodes(oracle_words *asked, void *arg, int32_t *tokens, int32_t *count)
{
    stream *s = arg;
    const oracle_sampling *p = &s->q.sampling;
    const as_request r = {.target = s->lm,
                          .drafter = s->drafter,
                          .rule = s->rule,
                          .sampling = {p->temperature, p->top_k, p->top_p, p->min_p},
                          .seed = SEED,
                          .prompt = s->q.prompt,
                          .prompts = s->q.n,
                          .budget = s->q.budget};
    as_result result;
    words = asked;
    assert_int_equal(as_decode(&r, tokens, &result, NULL), AS_OK);
    words = NULL;
    *count = result.tokens;
    s->accepted += result.accepted;
}

static void compare_stream(stream *s, const char *name, int32_t *accepted)
{
    static const as_table_law law = {LETTERS, LETTERS, LETTERS, 0, own, last, logits};
    float p[LETTERS * LETTERS];
    for (int32_t t = 0; t < LETTERS; t++)
        assert_int_equal(oracle_serve(logits + t * LETTERS, LETTERS, &s->q.sampling, NULL,
                                      p + t * LETTERS, NULL, 0),
                         ORACLE_OK);
    const oracle_panel panel = {LETTERS, LETTERS, LETTERS, own, last, p, p};
    assert_int_equal(as_table_lm(&law, &s->lm, NULL), AS_OK);
    compare(&(comparison){name,
                          reference_decodes,
                          s,
                          {oracle_decodes, s},
                          &panel,
                          s->q.prompt[s->q.n - 1],
                          s->q.budget});
    as_lm_free(s->lm);
    as_drafter_free(s->drafter);
    *accepted += s->accepted;
}

/* The n-grams of the prompt are in the pool, so that there is something to accept from the
 * first step on. Windows take argmaxes: what a drawn guess decides would show too late. */
static stream lookahead_stream(const oracle_request *q, const char *preset, int32_t N,
                               as_rule rule)
{
    stream s = {.q = *q, .m = {.name = ORACLE_LOOKAHEAD, .size = {2, N, 3}}, .rule = rule};
    s.q.budget = N + 1;
    assert_true(oracle_preset(&s.m, preset));
    s.m.sw[LAH_POOL_FROM_PROMPT] = s.m.sw[LAH_POOL_FROM_OUTPUT] = 1;
    s.m.sw[LAH_VERIFY_FILLING] = 1;
    s.m.sw[LAH_RULE] = rule == AS_RULE_MATCH ? LAH_RULE_MATCH : LAH_RULE_ONEHOT;
    s.m.sw[LAH_WINDOW] = LAH_WINDOW_ARGMAX;
    as_lookahead o = *as_lookahead_preset(preset);
    o.W = 2, o.N = N, o.G = 3;
    o.pool_from_prompt = o.pool_from_output = o.verify_filling = true;
    o.rule = rule;
    o.sampled = false;
    assert_int_equal(as_draft_lookahead(&o, LETTERS, &s.drafter, NULL), AS_OK);
    return s;
}

static stream lookup_stream(const oracle_request *q, as_rule rule)
{
    stream s = {.q = *q, .m = {.name = ORACLE_LOOKUP}, .rule = rule};
    s.q.budget = 4;
    assert_true(oracle_preset(&s.m, "hf"));
    s.m.sw[LKP_RULE] = rule == AS_RULE_MATCH ? LKP_RULE_MATCH : LKP_RULE_ONEHOT;
    assert_int_equal(as_draft_lookup(as_lookup_preset("hf"), &s.drafter, NULL), AS_OK);
    return s;
}

static void streams_have_the_target_law(void **state)
{
    static const int32_t prompt[] = {0, 1, 2, 0, 2, 1, 0, 1, 0};
    static const char *const preset[] = {"paper", "lade", "llamacpp"};
    static const as_rule rules[] = {AS_RULE_ONEHOT, AS_RULE_MATCH};
    const oracle_request q = {
        .prompt = prompt, .n = 9, .eos = -1, .sampling = {1, 0, 1, 0}, .seed = SEED};
    char name[80];
    int32_t accepted = 0;
    (void)state;
    for (int32_t rule = 0; rule < 2; rule++) {
        for (int32_t i = 0; i < 3; i++) /* N = 4, which takes long, once for each rule */
            for (int32_t N = 2; N <= (i == rule ? 4 : 3); N++) {
                stream s = lookahead_stream(&q, preset[i], N, rules[rule]);
                snprintf(name, sizeof name, "lookahead %s, N %d, rule %d", preset[i], (int)N,
                         (int)rule);
                compare_stream(&s, name, &accepted);
            }
        stream s = lookup_stream(&q, rules[rule]);
        snprintf(name, sizeof name, "lookup, rule %d", (int)rule);
        compare_stream(&s, name, &accepted);
    }
    assert_true(accepted > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_counted),
        cmocka_unit_test(sets_have_the_target_law),
        cmocka_unit_test(random_sets_have_the_target_law),
        cmocka_unit_test(powers_of_two_are_exact),
        cmocka_unit_test(one_word_shows),
        cmocka_unit_test(streams_have_the_target_law),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
