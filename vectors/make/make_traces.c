/* make_traces.c - vectors of the decoding methods: every step of requests to small models.
 * Clauses JAC, LAH, POOL, ONEH, LKP, OUR.
 * A test's flags are the switches that give another trace when they are set otherwise; each
 * value of each switch must show in some test, or nothing is made. */
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/methods/ouroboros.h"
#include "vectors/make/make.h"
#include "vectors/read/trace.h"

enum { MOST_VALUES = 4, LONGEST = 32 };

typedef struct {
    maker *m;
    /* Values that some test tells from another value of the switch. */
    bool shown[ORACLE_METHODS][ORACLE_SWITCHES][MOST_VALUES];
    const oracle_lm *draft; /* of the group under way */
} tracer;

/* ---- Models ----------------------------------------------------------------------- */

static vector_toy *toy_of(tracer *c)
{
    vector_toy *toy = set_take(c->m->set, 1, sizeof *toy);
    if (!toy) abort();
    c->m->g->toy = toy;
    return toy;
}

static void group(tracer *c, const char *id, oracle_method_name method)
{
    const char *rationale = method == ORACLE_LOOKAHEAD   ? "window"
                            : method == ORACLE_OUROBOROS ? "rounds"
                                                         : "steps";
    make_group(c->m, id, rationale, false, UNIFORMS_NONE, 0);
    c->m->g->method = method;
}

static void hash_group(tracer *c, const char *id, oracle_method_name method, int32_t order,
                       int32_t levels)
{
    group(c, id, method);
    toy_of(c)->hash = (oracle_hash){make_random(c->m), c->m->g->V, order, levels};
}

/* After t comes t + 1, most likely; states are last tokens. */
static void cyclic_group(tracer *c, const char *id, oracle_method_name method)
{
    group(c, id, method);
    const int32_t V = c->m->g->V;
    int32_t *cls = set_take(c->m->set, (size_t)(V + 2 * V * V), sizeof *cls);
    if (!cls) abort();
    int32_t *next = cls + V, *logits = next + V * V;
    for (int32_t t = 0; t < V; t++) {
        cls[t] = t;
        for (int32_t u = 0; u < V; u++) next[t * V + u] = u;
        logits[t * V + (t + 1) % V] = 3;
    }
    vector_toy *toy = toy_of(c);
    toy->automaton = true;
    toy->table = (oracle_table){V, V, V, 0, cls, next, logits};
}

/* One row for all paths. */
static void constant_group(tracer *c, const char *id, oracle_method_name method)
{
    static const int32_t cls[4], next[1], logits[4] = {0, 1, 3, 3};
    group(c, id, method);
    vector_toy *toy = toy_of(c);
    toy->automaton = true;
    toy->table = (oracle_table){4, 1, 1, 0, cls, next, logits};
}

/* ---- Tests ------------------------------------------------------------------------ */

static void note_values(tracer *c, const vector_test *t)
{
    int32_t n;
    const oracle_switch *s = oracle_method_switches(t->method->name, &n);
    for (int32_t i = 0; i < n; i++)
        for (int32_t v = 0; v < oracle_switch_values(&s[i]); v++) {
            bool *shown = c->shown[t->method->name][i];
            if (v != t->method->sw[i] && trace_differs(c->m->g, t, i, v))
                shown[v] = shown[t->method->sw[i]] = true;
        }
}

static void add(tracer *c, const char *comment, const oracle_request *q, const oracle_method *x)
{
    maker *m = c->m;
    if (m->failed) return;
    vector_test *t = make_test(m, "", comment);
    t->request = trace_keep_request(m->set, q);
    t->method = trace_keep_method(m->set, x);
    if (!t->request || !t->method) abort();
    const oracle_lm lm = trace_model(m->g);
    oracle_trace trace;
    oracle_decode(&lm, q, x, &trace);
    if (!*trace.error) {
        t->expected.trace = trace_keep(m->set, &trace);
        if (!t->expected.trace) abort();
        t->flags = trace_flags(m->set, m->g, t);
        if (!t->flags) abort();
        note_values(c, t);
    }
    oracle_trace_free(&trace);
    make_done(m, t, NULL);
}

/* A prompt and a budget. */
static oracle_request request(tracer *c, int32_t *prompt, bool warm)
{
    maker *m = c->m;
    const int32_t V = m->g->V;
    oracle_request q = {.prompt = prompt, .eos = -1, .sampling = {0, 0, 1, 0}};
    q.n = 1 + make_below(m, 12);
    q.budget = 12 + make_below(m, 20);
    for (int32_t i = 0; i < q.n; i++) prompt[i] = make_below(m, V);
    q.seed = make_random(m);
    if (warm) {
        q.sampling.temperature = make_below(m, 2) ? 1.0f : 0.5f;
        q.sampling.top_k = make_below(m, 3) ? 0 : 3;
        if (make_below(m, 4) == 0) q.sampling.top_p = 0.875f;
    }
    return q;
}

/* Does the token end the stream late, and inside the run of a step if it must be there? */
static bool ends_late(const tracer *c, oracle_request q, const oracle_method *x, int32_t eos,
                      bool inside)
{
    const oracle_lm lm = trace_model(c->m->g);
    oracle_trace t;
    q.eos = eos;
    oracle_decode(&lm, &q, x, &t);
    const oracle_step *last = t.steps ? &t.step[t.steps - 1] : NULL;
    const bool late = last && t.tokens.n > 4 && t.tokens.t[t.tokens.n - 1] == eos &&
                      (!inside || last->emitted.n < last->run.n);
    oracle_trace_free(&t);
    return late;
}

/* Two of three streams may end by a token, one of them inside a run if any token does that. */
static void end(tracer *c, oracle_request *q, const oracle_method *x)
{
    const int32_t kind = make_below(c->m, 3), first = make_below(c->m, c->m->g->V);
    for (int32_t i = 0; i < c->m->g->V && kind && q->eos < 0; i++) {
        const int32_t eos = (first + i) % c->m->g->V;
        if (ends_late(c, *q, x, eos, kind == 1)) q->eos = eos;
    }
}

/* Positions that just suffice, or a few more; rows for some trees and not for others. */
static void limit(tracer *c, oracle_request *q, const oracle_method *x)
{
    maker *m = c->m;
    if (make_below(m, 4) == 0)
        q->positions = q->n + q->budget - 1 + make_below(m, 1 + x->size[1]);
    const int32_t tree = (x->size[0] + 2) * (x->size[1] - 1);
    if (make_below(m, 6) == 0 && x->name == ORACLE_LOOKAHEAD)
        q->rows = tree / 2 + make_below(m, tree);
}

/* ---- What an engine can bring (TRC-05) -------------------------------------------- */

/* Ends the request with a step that the budget leaves alone: it is not cut, and its pool is
 * that of a stream that goes on (LAH-17). False: it has no such step behind the first few that
 * comes with `gain` tokens more than steps. */
static bool end_with_a_step(const tracer *c, oracle_request *q, const oracle_method *x,
                            int32_t gain)
{
    const oracle_lm lm = trace_model(c->m->g);
    oracle_trace whole, cut;
    bool found = false;
    oracle_decode(&lm, q, x, &whole);
    q->budget = whole.tokens.n;
    for (int32_t i = whole.steps - 1; i > 5 && !found; i--) {
        q->budget -= whole.step[i].emitted.n;
        if (q->budget < i + gain) continue;
        oracle_decode(&lm, q, x, &cut);
        found = cut.steps == i && cut.tokens.n == q->budget &&
                oracle_alike(&cut.step[i - 1].run, &cut.step[i - 1].emitted) &&
                oracle_pool_alike(&cut.step[i - 1].pool, &whole.step[i - 1].pool);
        oracle_trace_free(&cut);
    }
    oracle_trace_free(&whole);
    return found;
}

/* Does a run accept a token in a column that fill_columns leaves out? */
static bool accepts_surplus(const tracer *c, const oracle_request *q, const oracle_method *x)
{
    const oracle_lm lm = trace_model(c->m->g);
    oracle_method other = *x;
    oracle_trace last, all;
    bool differs = false;
    other.sw[LAH_FILL_COLUMNS] = LAH_FILL_ALL;
    oracle_decode(&lm, q, x, &last);
    oracle_decode(&lm, q, &other, &all);
    for (int32_t i = 0; i < last.steps && i < all.steps; i++)
        differs |= !oracle_alike(&last.step[i].run, &all.step[i].run);
    oracle_trace_free(&last);
    oracle_trace_free(&all);
    return differs;
}

/* Draws requests until one serves; one that gains nothing does, when others are not found. */
static void engine_test(tracer *c, oracle_method x, bool surplus)
{
    maker *m = c->m;
    const bool window = x.name == ORACLE_LOOKAHEAD;
    const int32_t shortest = window ? x.size[1] - 1 : 1;
    int32_t prompt[LONGEST], given[LONGEST];
    oracle_request q;
    bool serves = false;
    for (int32_t tries = 0; !serves; tries++) {
        q = (oracle_request){.prompt = prompt,
                             .n = shortest + make_below(m, 10),
                             .budget = 24 + make_below(m, 24),
                             .eos = -1,
                             .sampling = {0, 0, 1, 0}};
        for (int32_t i = 0; i < q.n; i++) prompt[i] = make_below(m, m->g->V);
        x.given = given;
        for (int32_t i = 0; i < x.given_n; i++) given[i] = make_below(m, m->g->V);
        if (!window) x.size[1] = make_below(m, m->g->V); /* pad */
        serves = end_with_a_step(c, &q, &x, tries < 1000 ? 4 : 0) &&
                 (!surplus || accepts_surplus(c, &q, &x));
    }
    add(c, surplus ? "a column that is left out would be accepted" : "", &q, &x);
}

/* Sizes of all kinds, then the engine's own. */
static void lookahead_engine(tracer *c, const char *preset, const int32_t *own)
{
    static const int32_t size[][3] = {{2, 3, 1}, {4, 3, 4}, {7, 3, 2}, {2, 4, 7}, {4, 4, 1},
                                      {7, 4, 7}, {2, 5, 2}, {4, 5, 7}, {7, 5, 1}};
    enum { SIZES = sizeof size / sizeof *size };
    char id[64];
    snprintf(id, sizeof id, "trace.lookahead.%s.engine", preset);
    hash_group(c, id, ORACLE_LOOKAHEAD, 2, 4);
    for (int32_t k = 0; k <= SIZES; k++) {
        const int32_t *z = k < SIZES ? size[k] : own;
        oracle_method x = {.name = ORACLE_LOOKAHEAD, .size = {z[0], z[1], z[2]}};
        oracle_preset(&x, preset);
        if (x.sw[LAH_INIT] == LAH_INIT_PROMPT) x.sw[LAH_INIT] = LAH_INIT_GIVEN;
        x.given_n = x.sw[LAH_INIT] == LAH_INIT_GIVEN ? z[0] + z[1] - 3 : 0; /* LAH-03 */
        engine_test(c, x, false);
        if (x.sw[LAH_FILL_COLUMNS] == LAH_FILL_LAST && z[1] > 3) engine_test(c, x, true);
    }
    make_close(c->m);
}

static void jacobi_engine(tracer *c)
{
    static const int32_t init[] = {JACOBI_PAD, JACOBI_LAST, JACOBI_GIVEN};
    hash_group(c, "trace.jacobi.engine", ORACLE_JACOBI, 1, 3);
    for (int32_t i = 0; i < 6; i++) {
        oracle_method x = {.name = ORACLE_JACOBI, .size = {i < 3 ? 4 : 9, 0, 0}};
        x.sw[JACOBI_INIT] = init[i % 3];
        x.given_n = i % 3 == 2 ? x.size[0] - 1 : 0;
        engine_test(c, x, false);
    }
    make_close(c->m);
}

static void engines(tracer *c)
{
    jacobi_engine(c);
    lookahead_engine(c, "paper", (const int32_t[]){15, 5, 15});
    lookahead_engine(c, "lade", (const int32_t[]){7, 5, 7});
    lookahead_engine(c, "llamacpp", (const int32_t[]){15, 5, 15});
    lookahead_engine(c, "trtllm", (const int32_t[]){4, 3, 4});
}

/* ---- Jacobi ----------------------------------------------------------------------- */

/* `rows` of a forward, 0 for any number of them. */
static void jacobi_test(tracer *c, int32_t block, int32_t init, int32_t rows)
{
    int32_t prompt[LONGEST], given[5];
    oracle_request q = request(c, prompt, false);
    q.rows = rows;
    oracle_method x = {.name = ORACLE_JACOBI, .given = given};
    x.size[0] = block;
    x.size[1] = make_below(c->m, c->m->g->V);
    x.sw[JACOBI_INIT] = init;
    x.given_n = init == JACOBI_GIVEN ? 1 + make_below(c->m, 5) : 0;
    for (int32_t i = 0; i < x.given_n; i++) given[i] = make_below(c->m, c->m->g->V);
    end(c, &q, &x);
    add(c, "", &q, &x);
}

static void jacobi(tracer *c)
{
    static const int32_t block[] = {1, 2, 5, 16};
    hash_group(c, "trace.jacobi.hash", ORACLE_JACOBI, 1, 64);
    for (int32_t i = 0; i < 16; i++) jacobi_test(c, block[i / 4], i % 4, 0);
    const oracle_request warm = {
        .prompt = block, .n = 2, .budget = 4, .eos = -1, .sampling = {1, 0, 1, 0}};
    const oracle_method x = {.name = ORACLE_JACOBI, .size = {4, 0, 0}};
    add(c, "above temperature 0", &warm, &x);
    for (int32_t i = 0; i < 4; i++) jacobi_test(c, 6, i, 1 + 2 * (i % 3)); /* JAC-05 */
    const oracle_request cold = {.prompt = block,
                                 .n = 2,
                                 .budget = 4,
                                 .eos = -1,
                                 .positions = 4,
                                 .sampling = {0, 0, 1, 0}};
    oracle_method empty = x;
    add(c, "one position too few", &cold, &x);
    empty.sw[JACOBI_INIT] = JACOBI_GIVEN;
    add(c, "an empty list",
        &(oracle_request){
            .prompt = block, .n = 2, .budget = 4, .eos = -1, .sampling = {0, 0, 1, 0}},
        &empty);
    make_close(c->m);
    cyclic_group(c, "trace.jacobi.cyclic", ORACLE_JACOBI);
    for (int32_t i = 0; i < 8; i++) jacobi_test(c, i < 4 ? 8 : 3, i % 4, 0);
    make_close(c->m);
}

/* JAC-11. An engine that lacks it still brings the other groups. */
static void jacobi_vocabulary(tracer *c)
{
    hash_group(c, "trace.jacobi.vocabulary.hash", ORACLE_JACOBI, 1, 64);
    for (int32_t i = 0; i < 4; i++) jacobi_test(c, 2 + 3 * i, JACOBI_VOCABULARY, 0);
    make_close(c->m);
    cyclic_group(c, "trace.jacobi.vocabulary.cyclic", ORACLE_JACOBI);
    for (int32_t i = 0; i < 4; i++) jacobi_test(c, 2 + 3 * i, JACOBI_VOCABULARY, 0);
    make_close(c->m);
}

/* ---- Lookahead -------------------------------------------------------------------- */

static const int32_t width[] = {1, 2, 5, 15}, length[] = {2, 3, 4, 5},
                     guesses[] = {0, 1, 2, 15};

static oracle_method sized(int32_t i, int32_t j)
{
    return (oracle_method){.name = ORACLE_LOOKAHEAD,
                           .size = {width[i], length[j], guesses[(i + j) % 4]}};
}

static void lookahead_test(tracer *c, oracle_method x, bool warm)
{
    int32_t prompt[LONGEST];
    oracle_request q = request(c, prompt, warm);
    limit(c, &q, &x);
    end(c, &q, &x);
    add(c, "", &q, &x);
}

/* Every pair of W and N, of W and G, of N and G, greedily and, if the preset can, sampled. */
static void lookahead_preset(tracer *c, const char *preset)
{
    char id[64];
    const bool greedy_only = !strcmp(preset, "trtllm");
    snprintf(id, sizeof id, "trace.lookahead.%s.hash", preset);
    hash_group(c, id, ORACLE_LOOKAHEAD, 1, 16);
    for (int32_t k = 0; k < (greedy_only ? 16 : 32); k++) {
        oracle_method pair = sized(k / 4 % 4, k % 4);
        oracle_preset(&pair, preset);
        lookahead_test(c, pair, k >= 16);
    }
    oracle_method x = {.name = ORACLE_LOOKAHEAD, .size = {15, 5, 15}};
    oracle_preset(&x, preset);
    lookahead_test(c, x, false);
    if (greedy_only) lookahead_test(c, x, true); /* refused */
    make_close(c->m);
    snprintf(id, sizeof id, "trace.lookahead.%s.cyclic", preset);
    cyclic_group(c, id, ORACLE_LOOKAHEAD);
    for (int32_t k = 0; k < 8; k++) {
        oracle_method next = sized(k % 4, (k + 1) % 4);
        oracle_preset(&next, preset);
        lookahead_test(c, next, k >= 4 && !greedy_only);
    }
    make_close(c->m);
    snprintf(id, sizeof id, "trace.lookahead.%s.constant", preset);
    constant_group(c, id, ORACLE_LOOKAHEAD);
    for (int32_t k = 0; k < 4; k++) {
        oracle_method other = sized(k % 3, 3 - k);
        oracle_preset(&other, preset);
        lookahead_test(c, other, k % 2 && !greedy_only);
    }
    make_close(c->m);
}

/* Any switches that are no nonsense together. */
static oracle_method random_switches(tracer *c, int32_t *given, bool warm)
{
    maker *m = c->m;
    int32_t n;
    const oracle_switch *s = oracle_method_switches(ORACLE_LOOKAHEAD, &n);
    oracle_method x = {.name = ORACLE_LOOKAHEAD,
                       .size = {1 + make_below(m, 5), 2 + make_below(m, 4), make_below(m, 5)},
                       .given = given};
    do
        for (int32_t i = 0; i < n; i++)
            if (!oracle_switch_later(x.name, i))
                x.sw[i] = make_below(m, oracle_switch_values(&s[i]));
    while ((x.sw[LAH_KEY] == LAH_KEY_STALE && x.sw[LAH_WARMUP]) ||
           (warm && (x.sw[LAH_ACCEPT_WINDOW] || x.sw[LAH_RULE] == LAH_RULE_NONE)));
    x.given_n = x.sw[LAH_INIT] == LAH_INIT_GIVEN ? 1 + make_below(m, 8) : 0;
    for (int32_t i = 0; i < x.given_n; i++) given[i] = make_below(m, m->g->V);
    return x;
}

static void lookahead_switches(tracer *c)
{
    int32_t given[8];
    hash_group(c, "trace.lookahead.switches", ORACLE_LOOKAHEAD, 1, 16);
    for (int32_t k = 0; k < 48; k++) lookahead_test(c, random_switches(c, given, k % 2), k % 2);
    make_close(c->m);
    hash_group(c, "trace.lookahead.whole-path", ORACLE_LOOKAHEAD, 0, 256);
    for (int32_t k = 0; k < 8; k++) lookahead_test(c, random_switches(c, given, k % 2), k % 2);
    make_close(c->m);
}

/* LAH-12: a window that fills does not verify, though the pool has the n-grams of a prompt of one token, repeated. */
static void lookahead_filling(tracer *c)
{
    static const int32_t size[][3] = {{2, 3, 4}, {5, 4, 2}, {2, 5, 1}, {7, 5, 15}};
    constant_group(c, "trace.lookahead.filling", ORACLE_LOOKAHEAD);
    for (int32_t k = 0; k < 4; k++) {
        int32_t prompt[LONGEST];
        oracle_request q = request(c, prompt, k % 2);
        oracle_method x = {.name = ORACLE_LOOKAHEAD, .size = {size[k][0], size[k][1], size[k][2]}};
        oracle_preset(&x, "paper");
        x.sw[LAH_VERIFY_FILLING] = 0, x.sw[LAH_POOL_FROM_PROMPT] = 1;
        q.n = LONGEST;
        for (int32_t i = 0; i < q.n; i++) prompt[i] = 2; /* the model's argmax */
        add(c, "", &q, &x);
    }
    make_close(c->m);
}

static void lookahead_refused(tracer *c)
{
    static const int32_t prompt[2] = {1, 2};
    const oracle_request q = {
        .prompt = prompt, .n = 2, .budget = 4, .eos = -1, .sampling = {0, 0, 1, 0}};
    oracle_request warm = q;
    oracle_method x = sized(1, 1);
    warm.sampling.temperature = 1.0f;
    cyclic_group(c, "trace.lookahead.refused", ORACLE_LOOKAHEAD);
    oracle_preset(&x, "trtllm");
    add(c, "rule none above temperature 0", &warm, &x);
    x.sw[LAH_RULE] = LAH_RULE_MATCH;
    add(c, "accept_window above temperature 0", &warm, &x);
    oracle_preset(&x, "paper");
    x.sw[LAH_KEY] = LAH_KEY_STALE;
    add(c, "key stale with warmup", &q, &x);
    oracle_preset(&x, "paper");
    x.size[0] = 0;
    add(c, "no column", &q, &x);
    x.size[0] = 1, x.size[1] = 1;
    add(c, "n-grams of one token", &q, &x);
    oracle_preset(&x, "paper");
    x.size[1] = 3;
    x.sw[LAH_INIT] = LAH_INIT_GIVEN;
    add(c, "an empty list", &q, &x);
    oracle_request few = q;
    few.positions = q.n + q.budget - 2;
    x.sw[LAH_INIT] = LAH_INIT_PROMPT;
    add(c, "one position too few", &few, &x);
    make_close(c->m);
}

/* ---- Prompt lookup ---------------------------------------------------------------- */

/* `rows` of a forward, 0 for any number of them. */
static void lookup_test(tracer *c, const char *preset, int32_t k, int32_t rows)
{
    int32_t prompt[LONGEST];
    oracle_method x = {.name = ORACLE_LOOKUP};
    oracle_preset(&x, preset);
    if (k % 4) x.size[0] = 1 + make_below(c->m, 4);
    if (k % 4) x.size[1] = 1 + make_below(c->m, 6);
    x.sw[LKP_RULE] = k / 2 % 2;
    oracle_request q = request(c, prompt, k % 2);
    q.budget += 8;
    limit(c, &q, &x);
    q.rows = rows;
    end(c, &q, &x);
    add(c, "", &q, &x);
}

static void lookup_preset(tracer *c, const char *preset)
{
    char id[64];
    for (int32_t cyclic = 0; cyclic < 2; cyclic++) {
        snprintf(id, sizeof id, "trace.lookup.%s.%s", preset, cyclic ? "cyclic" : "hash");
        if (cyclic)
            cyclic_group(c, id, ORACLE_LOOKUP);
        else
            hash_group(c, id, ORACLE_LOOKUP, 1, 16);
        for (int32_t k = 0; k < (cyclic ? 8 : 16); k++) lookup_test(c, preset, k, 0);
        for (int32_t k = 0; cyclic && k < 4; k++) lookup_test(c, preset, k, 1 + k); /* LKP-05 */
        make_close(c->m);
    }
}

/* ---- Ouroboros -------------------------------------------------------------------- */

/* A target whose states are the last two tokens, each with a favourite, and a draft model that has another row in
 * `differ` of eight of them. */
static void pair_group(tracer *c, const char *id, int32_t differ)
{
    group(c, id, ORACLE_OUROBOROS);
    maker *m = c->m;
    const int32_t V = m->g->V, S = V * V, cells = S * V;
    int32_t *cls = set_take(m->set, (size_t)(V + 3 * cells), sizeof *cls);
    vector_toy *toy = toy_of(c), *draft = set_take(m->set, 1, sizeof *draft);
    if (!cls || !draft) abort();
    int32_t *next = cls + V, *of_target = next + cells, *of_draft = of_target + cells;
    for (int32_t t = 0; t < V; t++) cls[t] = t;
    for (int32_t s = 0; s < S; s++) {
        const bool other = make_below(m, 8) < differ;
        const int32_t favourite = make_below(m, 3) ? (s + 1) % V : make_below(m, V);
        for (int32_t t = 0; t < V; t++) {
            next[s * V + t] = s % V * V + t;
            of_target[s * V + t] = make_below(m, 3) + 3 * (t == favourite);
            of_draft[s * V + t] = other ? make_below(m, 4) : of_target[s * V + t];
        }
    }
    toy->automaton = draft->automaton = true;
    toy->table = (oracle_table){V, S, V, 0, cls, next, of_target};
    draft->table = (oracle_table){V, S, V, 0, cls, next, of_draft};
    m->g->draft = draft;
    c->draft = trace_keep_model(m->set, draft);
    if (!c->draft) abort();
}

/* Sizes are drawn: three times of four such that a key has several values and several suffixes. */
static oracle_method rounds(tracer *c, const char *preset, const int32_t *given)
{
    maker *m = c->m;
    const bool rich = make_below(m, 4) > 0;
    const int32_t least[] = {rich ? 2 : 0, rich ? 2 : 1, 2, rich}, more[] = {6, 4, rich ? 2 : 4, 4};
    oracle_method x = {.name = ORACLE_OUROBOROS, .given = given, .draft = c->draft};
    for (int32_t i = 0; i < 4; i++) x.size[i] = least[i] + make_below(m, more[i]);
    oracle_preset(&x, preset);
    return x;
}

static void guess(tracer *c, oracle_method *x, int32_t *given, int32_t n)
{
    x->given_n = x->sw[OUR_INIT] == OUR_INIT_GIVEN ? n : 0;
    for (int32_t i = 0; i < x->given_n; i++) given[i] = make_below(c->m, c->m->g->V);
}

static void rounds_test(tracer *c, const oracle_method *x, bool warm)
{
    maker *m = c->m;
    int32_t prompt[LONGEST];
    oracle_request q = request(c, prompt, warm);
    q.budget += 12;
    if (make_below(m, 2)) q.positions = q.n + q.budget - 1 + make_below(m, 1 + x->size[2]);
    if (make_below(m, 3) == 0) q.rows = x->size[0] + x->size[2] + make_below(m, 2 * x->size[2]);
    if (make_below(m, 12) == 0) q.rows = 1 + make_below(m, 4);
    end(c, &q, x);
    add(c, "", &q, x);
}

/* Greedily, and every fourth sampled. */
static void rounds_preset(tracer *c, const char *preset)
{
    char id[64];
    snprintf(id, sizeof id, "trace.ouroboros.%s.pair", preset);
    pair_group(c, id, 2);
    for (int32_t k = 0; k < 16; k++) {
        const oracle_method x = rounds(c, preset, NULL);
        rounds_test(c, &x, k % 4 == 3);
    }
    make_close(c->m);
}

/* Any switches; every third time such that inspiration drives suffixes out of a small pool. */
static void rounds_switches(tracer *c)
{
    static const int32_t small[] = {4, 2, 2, 2}, prompt[2] = {1, 2};
    int32_t given[6];
    pair_group(c, "trace.ouroboros.switches", 4);
    for (int32_t k = 0; k < 24; k++) {
        oracle_method x = rounds(c, k % 2 ? "code" : "paper", given);
        for (int32_t i = 0; i < OUR_SWITCHES; i++)
            if (make_below(c->m, 2)) x.sw[i] = make_below(c->m, oracle_switch_values(&oracle_ouroboros_switch[i]));
        if (k % 3 == 0) {
            memcpy(x.size, small, sizeof small);
            x.sw[OUR_INSPIRE] = OUR_INSPIRE_TAIL, x.sw[OUR_REFINE] = OUR_REFINE_VALUE;
        }
        guess(c, &x, given, 1 + make_below(c->m, 6));
        rounds_test(c, &x, k % 6 == 5);
    }
    oracle_method x = rounds(c, "code", NULL);
    x.size[2] = 1;
    add(c, "phrases of one token",
        &(oracle_request){.prompt = prompt, .n = 2, .budget = 4, .eos = -1, .sampling = {0, 0, 1, 0}}, &x);
    make_close(c->m);
}

/* Short phrases, refined by their values: in a small pool inspiration drives suffixes out, in a larger one several are
 * refined. */
static void rounds_short(tracer *c)
{
    pair_group(c, "trace.ouroboros.short", 5);
    for (int32_t k = 0; k < 16; k++) {
        oracle_method x = rounds(c, k % 2 ? "code" : "paper", NULL);
        x.size[0] = 3 + k % 5, x.size[1] = k % 4 < 2 ? 2 : 4, x.size[2] = 2 + k % 8 / 6, x.size[3] = k % 4 < 2 ? 2 : 3;
        x.sw[OUR_INSPIRE] = OUR_INSPIRE_TAIL, x.sw[OUR_REFINE] = OUR_REFINE_VALUE;
        rounds_test(c, &x, k % 5 == 4);
    }
    make_close(c->m);
}

/* Short phrases in pools of several suffixes a key, of which the target confirms older ones as they stand. */
static void rounds_confirmed(tracer *c)
{
    pair_group(c, "trace.ouroboros.confirmed", 4);
    for (int32_t k = 0; k < 12; k++) {
        oracle_method x = rounds(c, k % 2 ? "code" : "paper", NULL);
        x.size[0] = 2 + k % 3, x.size[1] = 6, x.size[2] = 3, x.size[3] = 5;
        x.sw[OUR_REFINE] = OUR_REFINE_VALUE, x.sw[OUR_INSPIRE] = OUR_INSPIRE_TAIL;
        rounds_test(c, &x, k % 4 == 3);
    }
    make_close(c->m);
}

static void rounds_refused(tracer *c)
{
    static const int32_t prompt[2] = {1, 2};
    const oracle_request q = {.prompt = prompt, .n = 2, .budget = 4, .eos = -1, .sampling = {0, 0, 1, 0}};
    oracle_request few = q, none = q;
    pair_group(c, "trace.ouroboros.refused", 2);
    const oracle_method x = rounds(c, "paper", NULL);
    oracle_method bad[] = {x, x, x};
    bad[0].size[1] = 0, bad[1].size[2] = 1, bad[2].sw[OUR_INIT] = OUR_INIT_GIVEN;
    add(c, "no column", &q, &bad[0]);
    add(c, "phrases of one token", &q, &bad[1]);
    add(c, "an empty list", &q, &bad[2]);
    few.positions = q.n + q.budget - 2;
    add(c, "one position too few", &few, &x);
    none.budget = 0;
    add(c, "a budget of 0", &none, &x);
    make_close(c->m);
}

/* Ends the request with a round whose drafts all stand, so that the budget cuts neither its drafts nor its run. False:
 * it has none behind the first few. */
static bool end_with_a_round(const tracer *c, oracle_request *q, const oracle_method *x)
{
    const oracle_lm lm = trace_model(c->m->g);
    oracle_trace whole, cut;
    bool found = false;
    oracle_decode(&lm, q, x, &whole);
    q->budget = whole.tokens.n;
    for (int32_t i = whole.steps - 1; i > 3 && !found; i--) {
        const oracle_step *last = &whole.step[i - 1];
        q->budget -= whole.step[i].emitted.n;
        if (last->accepted < last->drafts.n || last->drafts.n < x->size[0]) continue;
        oracle_decode(&lm, q, x, &cut);
        found = cut.steps == i && oracle_step_alike(&cut.step[i - 1], last);
        oracle_trace_free(&cut);
    }
    oracle_trace_free(&whole);
    return found;
}

/* TRC-05: no end, no limit, no drawn first token, and a last round that the budget does not limit. */
static void rounds_engine(tracer *c, const char *preset)
{
    enum { TRIES = 200 };
    char id[64];
    snprintf(id, sizeof id, "trace.ouroboros.%s.engine", preset);
    pair_group(c, id, 2);
    for (int32_t k = 0; k < 6; k++) {
        int32_t prompt[LONGEST], given[LONGEST];
        oracle_method x = {.name = ORACLE_OUROBOROS};
        oracle_request q = {.n = 0};
        bool serves = false;
        for (int32_t tries = 0; !serves && tries < TRIES; tries++) {
            x = rounds(c, preset, given);
            x.sw[OUR_INIT] = OUR_INIT_GIVEN;
            x.size[2] += x.size[2] == 2, x.size[3] += x.size[3] == 0;
            q = (oracle_request){.prompt = prompt,
                                 .n = x.size[2] - 1 + make_below(c->m, 8),
                                 .budget = 24 + make_below(c->m, 24),
                                 .eos = -1,
                                 .sampling = {0, 0, 1, 0}};
            for (int32_t i = 0; i < q.n; i++) prompt[i] = make_below(c->m, c->m->g->V);
            guess(c, &x, given, x.size[1] + x.size[2] - 2);
            serves = end_with_a_round(c, &q, &x);
        }
        if (!serves && !c->m->failed) {
            c->m->failed = true;
            snprintf(c->m->why, c->m->why_size, "%s: no request ends with a whole round", id);
        }
        add(c, "", &q, &x);
    }
    make_close(c->m);
}

static void ouroboros(tracer *c)
{
    rounds_preset(c, "paper");
    rounds_preset(c, "code");
    rounds_switches(c);
    rounds_short(c);
    rounds_confirmed(c);
    rounds_refused(c);
    rounds_engine(c, "paper");
    rounds_engine(c, "code");
}

/* ---- Requests that the claim traces alone is asked for ------------------------------ */

static void bounds(tracer *c, const char *id, oracle_method x)
{
    static const int32_t beyond[3] = {1, 8, 2}, within[3] = {1, 3, 2};
    oracle_request q = {.prompt = beyond, .budget = 4, .eos = -1, .sampling = {0, 0, 1, 0}};
    cyclic_group(c, id, x.name);
    add(c, "an empty prompt", &q, &x);
    q.n = 2;
    add(c, "a token beyond the vocabulary ends the prompt", &q, &x);
    q.n = 3;
    add(c, "a token beyond the vocabulary inside the prompt", &q, &x);
    q.prompt = within;
    q.budget = 0;
    add(c, "a budget of 0", &q, &x);
    q.positions = 1;
    add(c, "a budget of 0, and more prompt than positions", &q, &x);
    make_close(c->m);
}

/* ---- Everything ------------------------------------------------------------------- */

/* `rule none` is refused where it would matter. */
static void all_shown(tracer *c)
{
    maker *m = c->m;
    for (int32_t name = 0; name < ORACLE_METHODS; name++) {
        int32_t n;
        char word[32];
        const oracle_switch *s = oracle_method_switches((oracle_method_name)name, &n);
        for (int32_t i = 0; i < n; i++)
            for (int32_t v = 0; v < oracle_switch_values(&s[i]) && !m->failed; v++) {
                if (c->shown[name][i][v] ||
                    !strcmp(reader_word(s[i].values, v, word, sizeof word), "none"))
                    continue;
                m->failed = true;
                snprintf(m->why, m->why_size, "no trace of %s shows %s = %s",
                         oracle_method_text((oracle_method_name)name), s[i].name, word);
            }
    }
}

void make_traces(maker *m)
{
    tracer c = {.m = m};
    jacobi(&c);
    jacobi_vocabulary(&c);
    static const char *const preset[] = {"paper", "lade", "llamacpp", "trtllm"};
    for (int32_t i = 0; i < 4; i++) lookahead_preset(&c, preset[i]);
    lookahead_switches(&c);
    lookahead_refused(&c);
    lookahead_filling(&c);
    lookup_preset(&c, "original");
    lookup_preset(&c, "hf");
    engines(&c);
    bounds(&c, "trace.jacobi.bounds",
           (oracle_method){.name = ORACLE_JACOBI, .size = {4, 0, 0}});
    oracle_method x = {.name = ORACLE_LOOKAHEAD, .size = {2, 3, 2}};
    oracle_preset(&x, "paper");
    bounds(&c, "trace.lookahead.bounds", x);
    ouroboros(&c);
    all_shown(&c);
}
