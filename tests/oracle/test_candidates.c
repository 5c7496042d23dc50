/* The exact law of sets of candidates: what one-hot and match verification emit, equal in Q to
 * the target's; then whole streams of lookahead and prompt lookup. And a law worked out by
 * hand, of the right rule and of two faults. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "conformance/oracle/law/candidates.h"
#include "conformance/oracle/law/chain.h"
#include "conformance/oracle/law/rules.h"
#include "conformance/oracle/methods/methods.h"
#include "conformance/oracle/methods/toy.h"

enum { MANY = 4000000, STATES = 3, CLASSES = 2, MOST_V = 4 };

/* ---- Panels ----------------------------------------------------------------------- */

/* Rows in units of 2^-5, a zero among them; rows differ by state and the state by token. */
static const int32_t units[STATES][MOST_V] = {{16, 8, 8, 0}, {2, 4, 6, 20}, {0, 31, 1, 0}};
static const int32_t units2[STATES][MOST_V] = {{24, 8}, {1, 31}, {16, 16}};
static const int32_t units3[STATES][MOST_V] = {{16, 9, 7}, {0, 28, 4}, {11, 10, 11}};

typedef struct {
    int32_t cls[MOST_V], next[STATES * CLASSES];
    float p[STATES * MOST_V];
    oracle_panel panel;
} small_panel;

static void make_panel(small_panel *m, int32_t V)
{
    const int32_t(*n)[MOST_V] = V == 2 ? units2 : V == 3 ? units3 : units;
    for (int32_t t = 0; t < V; t++) m->cls[t] = t % CLASSES;
    for (int32_t s = 0; s < STATES; s++) {
        for (int32_t t = 0; t < V; t++) m->p[s * V + t] = (float)n[s][t] / 32;
        for (int32_t c = 0; c < CLASSES; c++) m->next[s * CLASSES + c] = (s + 1 + c) % STATES;
    }
    m->panel = (oracle_panel){V, STATES, CLASSES, m->cls, m->next, m->p, m->p};
}

static oracle_law *law_of(lane_program program, void *arg, int32_t V, int32_t k)
{
    oracle_law *law = oracle_law_new(V, k);
    assert_non_null(law);
    assert_true(oracle_law_add_program(law, program, arg, 0, MANY));
    return law;
}

static oracle_law *target_of(const oracle_panel *panel, int32_t start, int32_t k)
{
    oracle_law *law = oracle_law_new(panel->V, k);
    assert_non_null(law);
    oracle_law_add_target(law, panel, start);
    return law;
}

/* ---- Candidates ------------------------------------------------------------------- */

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

/* ONEH-01 to ONEH-05, LAH-19, LAH-21: duplicates, shared prefixes, all tokens of the
 * vocabulary, tokens of weight 0, candidates of several lengths, none. The first N + 1 tokens.
 */
static void sets_are_lossless(void **state)
{
    (void)state;
    static const struct {
        int32_t V, N;
        const char *of[STATES];
    } cases[] = {
        {2, 2, {"0", "1 0", ""}},
        {2, 3, {"00 01 00", "11 11", "10 01"}},
        {3, 2, {"0 0 1", "2 1 0", "2 2 2"}},
        {3, 3, {"01 02 11 01", "00 21 20", "12 10 12"}},
        {4, 2, {"3 0 3", "1 2", "0 3 2"}},
        {4, 3, {"01 02 03 01", "33 32 33", "11 12 10 11"}},
        {3, 4, {"010 012 010 122", "", "012 011"}},
        {2, 4, {"0 01 011", "10 1", "111 110"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        small_panel m;
        oracle_lists sets[STATES];
        make_panel(&m, cases[i].V);
        for (int32_t s = 0; s < STATES; s++) sets[s] = candidates_of(cases[i].of[s]);
        for (int32_t how = 0; how < 4; how++) {
            const int32_t k = cases[i].N + 1;
            if (how >= 2 && k > 4) continue; /* the match rule has many leaves */
            oracle_candidate_stream c = {&m.panel, (int32_t)i % STATES, k, sets, how >= 2,
                                         how % 2};
            oracle_law *law = law_of(oracle_verify_stream, &c, cases[i].V, k);
            oracle_law *target = target_of(&m.panel, c.start, k);
            assert_int_equal(oracle_law_differences(law, target), 0);
            oracle_law_free(law);
            oracle_law_free(target);
        }
        for (int32_t s = 0; s < STATES; s++) oracle_lists_free(&sets[s]);
    }
}

/* ---- By hand ---------------------------------------------------------------------- */

/* One token of p = (1/2, 1/4, 1/4), candidates 0, 0, 1. Right: 0 is accepted with 1/2; 1 with
 * (1/4) / (1/2) of the rest; and 2 is left. Where 0 stays in the row, its second copy is
 * another token of weight 1/2: 0 has 1/2 + 1/4; 1 has 1/4 of the remaining 1/4; the last 3/16
 * are drawn from p. Where a rejection is followed by a draw from p, 0 has 1/2 + 1/4*1/2. */
typedef struct {
    bool twice, from_p;
} fault;

static void one_token(lane *l, void *arg, int32_t *tokens, int32_t *count)
{
    const fault *f = arg;
    uint64_t w[3] = {2, 1, 1}, p[3] = {2, 1, 1};
    const int32_t tried[3] = {0, 0, 1};
    *count = 1;
    for (int32_t j = f->twice ? 0 : 1; j < 3; j++) {
        const double W = (double)(w[0] + w[1] + w[2]);
        const int32_t t = tokens[0] = tried[j];
        if (l->lt(l, lane_uniform(LANE_ACCEPT, 0, (uint32_t)j), W, (double)w[t])) return;
        if (!f->twice) w[t] = 0;
    }
    tokens[0] = oracle_lane_pick(l, lane_uniform(LANE_RESIDUAL, 0, 0),
                                 f->from_p || f->twice ? p : w, 3);
}

static void expect_mass(lane_program program, void *arg, const int want64[3])
{
    oracle_law *law = law_of(program, arg, 3, 1);
    mpq_t want;
    mpq_init(want);
    for (int t = 0; t < 3; t++) {
        mpq_set_si(want, want64[t], 64);
        mpq_canonicalize(want);
        assert_true(mpq_equal(want, law->mass[t]));
    }
    mpq_clear(want);
    oracle_law_free(law);
}

static void one_token_by_hand(void **state)
{
    (void)state;
    static const float p[3] = {0.5f, 0.25f, 0.25f};
    static const int32_t cls[3], next[1];
    const oracle_panel panel = {3, 1, 1, cls, next, p, p};
    oracle_lists set = candidates_of("0 0 1");
    oracle_candidate_stream c = {&panel, 0, 1, &set, false, true};
    fault right = {false, false}, twice = {true, false}, from_p = {false, true};
    expect_mass(oracle_verify_stream, &c, (int[]){32, 16, 16});
    expect_mass(one_token, &right, (int[]){32, 16, 16});
    /* 48/64 + 12/64 * 1/2; 4/64 + 12/64 * 1/4; 12/64 * 1/4 */
    expect_mass(one_token, &twice, (int[]){54, 7, 3});
    /* 32 + 16 * 1/2; 16 + 16 * 1/4; 16 * 1/4 */
    expect_mass(one_token, &from_p, (int[]){40, 20, 4});
    oracle_lists_free(&set);
}

/* The j-th distinct token asks about uniform j, a level about its own position; the rest of the
 * row is drawn by RESIDUAL, a row without candidates by DRAW. */
typedef struct {
    lane base;
    uint32_t asked[8];
    int32_t n;
} recorder;

static bool never(lane *self, uint32_t uniform, double a, double b)
{
    recorder *r = (recorder *)self;
    if (r->n == 0 || r->asked[r->n - 1] != uniform) r->asked[r->n++] = uniform;
    return a == b;
}

static void names_of_uniforms(void **state)
{
    (void)state;
    static const float p[3] = {0.5f, 0.25f, 0.25f};
    static const int32_t cls[3], next[1];
    const oracle_panel panel = {3, 1, 1, cls, next, p, p};
    oracle_lists sets[2] = {candidates_of("0 0 1"), {0}};
    const uint32_t want[2][3] = {{lane_uniform(LANE_ACCEPT, 0, 0),
                                  lane_uniform(LANE_ACCEPT, 0, 1),
                                  lane_uniform(LANE_RESIDUAL, 0, 0)},
                                 {lane_uniform(LANE_DRAW, 0, 0)}};
    for (int32_t i = 0; i < 2; i++) {
        oracle_candidate_stream c = {&panel, 0, 1, &sets[i], false, true};
        recorder r = {{never}, {0}, 0};
        int32_t token, count;
        oracle_verify_stream(&r.base, &c, &token, &count);
        assert_int_equal(r.n, i ? 1 : 3);
        assert_memory_equal(r.asked, want[i], sizeof *want[i] * (size_t)r.n);
        assert_int_equal(token, 2);
    }
    oracle_lists_free(&sets[0]);
}

/* ---- Whole streams ---------------------------------------------------------------- */

typedef struct {
    const oracle_lm *lm;
    const oracle_request *q;
    const oracle_method *m;
    int32_t accepted; /* tokens of candidates, over all runs */
} stream;

static void whole_stream(lane *l, void *arg, int32_t *tokens, int32_t *count)
{
    stream *s = arg;
    oracle_trace t;
    oracle_decode_by(l, s->lm, s->q, s->m, &t);
    assert_string_equal(t.error, "");
    *count = t.tokens.n;
    for (int32_t i = 0; i < t.tokens.n; i++) tokens[i] = t.tokens.t[i];
    for (int32_t i = 0; i < t.steps; i++) s->accepted += t.step[i].accepted;
    oracle_trace_free(&t);
}

/* An automaton whose state is the last token; its served rows make the panel. */
enum { LETTERS = 3 };
static const int32_t own[LETTERS] = {0, 1, 2};
static const int32_t last[LETTERS * LETTERS] = {0, 1, 2, 0, 1, 2, 0, 1, 2};
static const int32_t logits[LETTERS * LETTERS] = {0, 2, 1, 1, 0, 3, 2, 2, 0};
static const oracle_table letters = {LETTERS, LETTERS, LETTERS, 0, own, last, logits};

static void expect_lossless(const oracle_request *q, const oracle_method *m, int32_t *accepted)
{
    const oracle_lm lm = {LETTERS, oracle_table_logits, &letters};
    float p[LETTERS * LETTERS], row[LETTERS];
    for (int32_t t = 0; t < LETTERS; t++) {
        oracle_table_logits(&letters, &t, 1, row);
        assert_int_equal(oracle_serve(row, LETTERS, &q->sampling, NULL, p + t * LETTERS, NULL, 0),
                         ORACLE_OK);
    }
    const oracle_panel panel = {LETTERS, LETTERS, LETTERS, own, last, p, p};
    stream s = {&lm, q, m, 0};
    oracle_law *law = law_of(whole_stream, &s, LETTERS, q->budget);
    oracle_law *target = target_of(&panel, q->prompt[q->n - 1], q->budget);
    assert_int_equal(oracle_law_differences(law, target), 0);
    oracle_law_free(law);
    oracle_law_free(target);
    *accepted += s.accepted;
}

/* LAH-28, LKP-07: the law of the first N + 1 tokens, windows and pools and all. The n-grams of
 * the prompt are in the pool, so that there is something to accept from the first step on. */
static void streams_are_lossless(void **state)
{
    (void)state;
    static const int32_t prompt[] = {0, 1, 2, 0, 2, 1, 0, 1, 0};
    static const char *const preset[] = {"paper", "lade", "llamacpp"};
    oracle_request q = {
        .prompt = prompt, .n = 9, .eos = -1, .sampling = {1, 0, 1, 0}, .seed = 5};
    int32_t accepted = 0;
    for (int32_t i = 0; i < 3; i++)
        for (int32_t N = 2; N <= 3; N++)
            for (int32_t rule = LAH_RULE_ONEHOT; rule <= LAH_RULE_MATCH; rule++) {
                oracle_method m = {.name = ORACLE_LOOKAHEAD, .size = {2, N, 3}};
                assert_true(oracle_preset(&m, preset[i]));
                m.sw[LAH_POOL_FROM_PROMPT] = m.sw[LAH_POOL_FROM_OUTPUT] = 1;
                m.sw[LAH_VERIFY_FILLING] = 1;
                m.sw[LAH_RULE] = rule;
                m.sw[LAH_WINDOW] = N == 2 && i == 2;
                if (N == 3) m.sw[LAH_SHIFT] = i;
                q.budget = N + 1;
                expect_lossless(&q, &m, &accepted);
            }
    for (int32_t rule = 0; rule < 2; rule++) {
        oracle_method m = {.name = ORACLE_LOOKUP};
        assert_true(oracle_preset(&m, "hf"));
        m.sw[LKP_RULE] = rule;
        q.budget = 4;
        expect_lossless(&q, &m, &accepted);
    }
    assert_true(accepted > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sets_are_lossless),
        cmocka_unit_test(one_token_by_hand),
        cmocka_unit_test(names_of_uniforms),
        cmocka_unit_test(streams_are_lossless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
