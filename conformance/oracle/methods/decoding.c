/* decoding.c - see decoding.h, methods.h. */
#include "conformance/oracle/methods/decoding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/chain.h"
#include "conformance/oracle/law/philox.h"
#include "conformance/oracle/methods/ouroboros.h"

__extension__ typedef unsigned __int128 u128;

/* ---- Questions -------------------------------------------------------------------- */

bool oracle_is_greedy(const oracle_decoding *d)
{
    return d->q->sampling.temperature == 0;
}

int32_t oracle_position(const oracle_decoding *d)
{
    return d->history.n - d->q->n;
}

static void path_logits(const oracle_decoding *d, const oracle_list *path, float *logits)
{
    oracle_list whole = {0};
    oracle_append(&whole, d->history.t, d->history.n);
    oracle_append(&whole, path->t, path->n);
    d->lm->logits(d->lm->self, whole.t, whole.n, logits);
    oracle_list_free(&whole);
}

int32_t oracle_path_argmax(oracle_decoding *d, const oracle_list *path)
{
    float *logits = oracle_take((size_t)d->lm->V, sizeof *logits);
    path_logits(d, path, logits);
    const int32_t a = oracle_argmax(logits, d->lm->V);
    free(logits);
    return a;
}

void oracle_path_weights(oracle_decoding *d, const oracle_list *path, uint64_t *w)
{
    const int32_t V = d->lm->V;
    float *logits = oracle_take(2 * (size_t)V, sizeof *logits), *p = logits + V;
    path_logits(d, path, logits);
    char why[120];
    if (oracle_serve(logits, V, &d->q->sampling, NULL, p, why, sizeof why) != ORACLE_OK) {
        if (!*d->trace->error) snprintf(d->trace->error, sizeof d->trace->error, "%s", why);
        d->ended = true;
        for (int32_t t = 0; t < V; t++) p[t] = t == 0; /* the step that is under way ends */
    }
    for (int32_t t = 0; t < V; t++) w[t] = oracle_weight(p[t]);
    free(logits);
}

static uint64_t uniform_at(const oracle_decoding *d, uint32_t purpose, int32_t position,
                           int32_t index)
{
    uint32_t w[4];
    oracle_words(d->q->seed, (uint64_t)position, purpose, (uint32_t)index, w);
    return ((uint64_t)w[0] << 32) + w[1];
}

int32_t oracle_drawn_from(const oracle_decoding *d, const int32_t *t, int32_t n,
                          uint32_t purpose, int32_t position, int32_t index)
{
    const uint64_t U = uniform_at(d, purpose, position, index);
    const int32_t i = (int32_t)((u128)U * (uint64_t)n >> 64);
    return t ? t[i] : i;
}

/* TREE-02, KV-06: the root, last of the history, stands at position history.n - 1. */
bool oracle_fits(const oracle_decoding *d, const oracle_lists *rows)
{
    int32_t depth = 0;
    for (int32_t i = 0; i < rows->n; i++)
        if (rows->l[i].n > depth) depth = rows->l[i].n;
    return (!d->q->rows || rows->n <= d->q->rows) &&
           (!d->q->positions || d->history.n + depth <= d->q->positions);
}

int32_t oracle_at_most(int32_t n, int32_t limit)
{
    return n < limit ? n : limit;
}

void oracle_chain_rows(const oracle_list *chain, oracle_lists *rows)
{
    for (int32_t n = 0; n <= chain->n; n++) oracle_append(oracle_another(rows), chain->t, n);
}

/* ---- Steps ------------------------------------------------------------------------ */

oracle_step *oracle_begin_step(oracle_decoding *d)
{
    oracle_trace *t = d->trace;
    if (t->steps == t->room) {
        t->room = t->room ? 2 * t->room : 16;
        oracle_step *more = oracle_take((size_t)t->room, sizeof *more);
        for (int32_t i = 0; i < t->steps; i++) more[i] = t->step[i];
        free(t->step);
        t->step = more;
    }
    return &t->step[t->steps++];
}

static void rows_weights(void *arg, const oracle_list *run, uint64_t *w)
{
    oracle_path_weights(arg, run, w);
}

static int32_t rows_argmax(void *arg, const oracle_list *run)
{
    return oracle_path_argmax(arg, run);
}

void oracle_verify_step(oracle_decoding *d, oracle_step *s, const oracle_lists *candidates,
                        bool match, bool bonus)
{
    const oracle_rows rows = {d->lm->V, rows_weights, rows_argmax, d};
    const oracle_verification v = {candidates, oracle_position(d), bonus};
    s->accepted = oracle_is_greedy(d) ? oracle_verify_greedy(&rows, &v, &s->run)
                  : match             ? oracle_verify_match(d->lane, &rows, &v, &s->run)
                                      : oracle_verify_onehot(d->lane, &rows, &v, &s->run);
}

void oracle_emit(oracle_decoding *d, oracle_step *s)
{
    for (int32_t i = 0; i < s->run.n && !d->ended; i++) {
        const int32_t token = s->run.t[i];
        oracle_push(&s->emitted, token);
        oracle_push(&d->history, token);
        oracle_push(&d->trace->tokens, token);
        d->ended = token == d->q->eos || d->trace->tokens.n == d->q->budget;
    }
}

/* ---- Methods ---------------------------------------------------------------------- */

static const oracle_switch jacobi_switch[] = {{"init", "pad last prompt given vocabulary"}};
static const oracle_switch lookahead_switch[] = {{"init", "prompt constant given vocabulary"},
                                                 {"first_plain", "no yes"},
                                                 {"warmup", "no yes"},
                                                 {"verify_filling", "no yes"},
                                                 {"fill_columns", "all last"},
                                                 {"pool_from_prompt", "no yes"},
                                                 {"pool_from_output", "no yes"},
                                                 {"pool", "lru ring"},
                                                 {"key", "root stale next"},
                                                 {"bonus", "no yes"},
                                                 {"accept_window", "no yes"},
                                                 {"shift", "rel1 abspad rowrot"},
                                                 {"window", "argmax sampled"},
                                                 {"rule", "onehot match none"},
                                                 {"eos_filter", "no yes"}};
static const oracle_switch lookup_switch[] = {
    {"partial", "no yes"}, {"cut_at_eos", "no yes"}, {"rule", "onehot match"}};

static const struct {
    const char *text, *sizes;
    const oracle_switch *sw;
    int32_t switches;
} method_table[] = {{"jacobi", "block pad", jacobi_switch, JACOBI_SWITCHES},
                    {"lookahead", "W N G", lookahead_switch, LAH_SWITCHES},
                    {"lookup", "longest drafts", lookup_switch, LKP_SWITCHES},
                    {"ouroboros", "gamma W N K", oracle_ouroboros_switch, OUR_SWITCHES}};

/* The table of chapter 8, a row a preset, in the order of the switches. */
static const struct {
    const char *name;
    int32_t sw[LAH_SWITCHES];
} lookahead_preset[] = {
    {"paper",
     {LAH_INIT_PROMPT, 0, 1, 0, LAH_FILL_ALL, 0, 0, LAH_POOL_LRU, LAH_KEY_ROOT, 1, 0,
      LAH_SHIFT_REL1, LAH_WINDOW_ARGMAX, LAH_RULE_ONEHOT, 0}},
    {"lade",
     {LAH_INIT_PROMPT, 0, 1, 0, LAH_FILL_ALL, 0, 0, LAH_POOL_LRU, LAH_KEY_ROOT, 0, 0,
      LAH_SHIFT_REL1, LAH_WINDOW_ARGMAX, LAH_RULE_ONEHOT, 1}},
    {"llamacpp",
     {LAH_INIT_CONSTANT, 1, 0, 0, LAH_FILL_ALL, 0, 0, LAH_POOL_RING, LAH_KEY_STALE, 1, 0,
      LAH_SHIFT_ROWROT, LAH_WINDOW_SAMPLED, LAH_RULE_MATCH, 0}},
    {"trtllm",
     {LAH_INIT_PROMPT, 1, 1, 1, LAH_FILL_LAST, 1, 1, LAH_POOL_LRU, LAH_KEY_NEXT, 1, 1,
      LAH_SHIFT_REL1, LAH_WINDOW_ARGMAX, LAH_RULE_NONE, 0}}};

static const struct {
    const char *name;
    int32_t longest, drafts, partial, cut_at_eos;
} lookup_preset[] = {{"original", 3, 10, 0, 0}, {"hf", 2, 10, 1, 1}};

const char *oracle_method_text(oracle_method_name name)
{
    return method_table[name].text;
}

const char *oracle_method_sizes(oracle_method_name name)
{
    return method_table[name].sizes;
}

const oracle_switch *oracle_method_switches(oracle_method_name name, int32_t *n)
{
    *n = method_table[name].switches;
    return method_table[name].sw;
}

bool oracle_switch_later(oracle_method_name name, int32_t s)
{
    return name == ORACLE_LOOKAHEAD && s == LAH_FILL_COLUMNS;
}

int32_t oracle_switch_values(const oracle_switch *s)
{
    int32_t n = 1;
    for (const char *c = s->values; *c; c++) n += *c == ' ';
    return n;
}

bool oracle_preset(oracle_method *m, const char *preset)
{
    oracle_ouroboros o;
    if (m->name == ORACLE_OUROBOROS && oracle_ouroboros_preset(&o, preset)) {
        memcpy(m->sw, o.sw, sizeof o.sw);
        return true;
    }
    for (size_t i = 0; m->name == ORACLE_LOOKAHEAD && i < 4; i++)
        if (!strcmp(lookahead_preset[i].name, preset)) {
            memcpy(m->sw, lookahead_preset[i].sw, sizeof lookahead_preset[i].sw);
            return true;
        }
    for (size_t i = 0; m->name == ORACLE_LOOKUP && i < 2; i++)
        if (!strcmp(lookup_preset[i].name, preset)) {
            m->size[0] = lookup_preset[i].longest;
            m->size[1] = lookup_preset[i].drafts;
            m->sw[LKP_PARTIAL] = lookup_preset[i].partial;
            m->sw[LKP_CUT_AT_EOS] = lookup_preset[i].cut_at_eos;
            return true;
        }
    return false;
}

/* ---- Requests --------------------------------------------------------------------- */

/* Why the sizes or switches make no method; NULL: they do. */
static const char *bad_method(const oracle_method *m)
{
    const int32_t *z = m->size, *sw = m->sw;
    int32_t n;
    const oracle_switch *s = oracle_method_switches(m->name, &n);
    for (int32_t i = 0; i < n; i++)
        if (sw[i] < 0 || sw[i] >= oracle_switch_values(&s[i])) return s[i].name;
    switch (m->name) {
    case ORACLE_JACOBI:
        if (z[0] < 1) return "block";
        return sw[JACOBI_INIT] == JACOBI_GIVEN && m->given_n < 1 ? "given" : NULL;
    case ORACLE_LOOKAHEAD:
        if (z[0] < 1) return "W";
        if (z[1] < 2) return "N";
        if (z[2] < 0) return "G";
        if (sw[LAH_INIT] == LAH_INIT_GIVEN && m->given_n < 1) return "given";
        return sw[LAH_KEY] == LAH_KEY_STALE && sw[LAH_WARMUP] ? "key" : NULL;
    default:
        return z[0] < 1 ? "longest" : z[1] < 1 ? "drafts" : NULL;
    }
}

/* What of a method is refused above temperature 0. */
static const char *greedy_only(const oracle_method *m)
{
    if (m->name == ORACLE_JACOBI) return "temperature"; /* JAC-07 */
    if (m->name == ORACLE_LOOKUP) return NULL;
    if (m->sw[LAH_RULE] == LAH_RULE_NONE) return "temperature"; /* LAH-22 */
    return m->sw[LAH_ACCEPT_WINDOW] ? "accept_window" : NULL;
}

static bool tokens_in_range(const int32_t *t, int32_t n, int32_t V)
{
    for (int32_t i = 0; i < n; i++)
        if (t[i] < 0 || t[i] >= V) return false;
    return true;
}

const char *oracle_bad_request(const oracle_lm *lm, const oracle_request *q)
{
    if (q->n < 1 || !tokens_in_range(q->prompt, q->n, lm->V))
        return "prompt"; /* STOP-06, STOP-07 */
    if (q->budget < 0) return "budget";
    const bool needs = q->positions && q->budget > 0; /* STOP-05, STOP-08 */
    return needs && q->n + q->budget - 1 > q->positions ? "positions" : NULL;
}

/* The name of what is refused, or NULL. */
static const char *refused(const oracle_lm *lm, const oracle_request *q, const oracle_method *m)
{
    const char *what = oracle_bad_request(lm, q);
    if (what || !m) return what;
    what = bad_method(m);
    if (!what && q->sampling.temperature != 0) what = greedy_only(m);
    if (!what && !tokens_in_range(m->given, m->given_n, lm->V)) what = "given";
    if (!what && m->name == ORACLE_JACOBI && !tokens_in_range(&m->size[1], 1, lm->V))
        what = "pad";
    return what;
}

static oracle_decoding begin(lane *l, const oracle_lm *lm, const oracle_request *q,
                             const oracle_method *m, oracle_trace *trace)
{
    oracle_decoding d = {.lm = lm, .q = q, .method = m, .trace = trace, .lane = l};
    *trace = (oracle_trace){0};
    const char *what = refused(lm, q, m);
    if (what) snprintf(trace->error, sizeof trace->error, "%s", what);
    d.ended = what || q->budget == 0; /* STOP-08 */
    if (!d.ended) oracle_append(&d.history, q->prompt, q->n);
    return d;
}

void oracle_decode_by(lane *l, const oracle_lm *lm, const oracle_request *q,
                      const oracle_method *m, oracle_trace *trace)
{
    oracle_decoding d = begin(l, lm, q, m, trace);
    if (!d.ended && m->name == ORACLE_JACOBI) oracle_run_jacobi(&d);
    if (!d.ended && m->name == ORACLE_LOOKAHEAD) oracle_run_lookahead(&d);
    if (!d.ended && m->name == ORACLE_LOOKUP) oracle_run_lookup(&d);
    oracle_list_free(&d.history);
}

void oracle_decode(const oracle_lm *lm, const oracle_request *q, const oracle_method *m,
                   oracle_trace *trace)
{
    oracle_seeded_lane l = oracle_seeded(q->seed);
    if (m->name == ORACLE_OUROBOROS)
        oracle_ouroboros_trace(lm, q, m, trace);
    else
        oracle_decode_by(&l.base, lm, q, m, trace);
}

void oracle_plain(const oracle_lm *lm, const oracle_request *q, oracle_trace *trace)
{
    oracle_seeded_lane l = oracle_seeded(q->seed);
    oracle_decoding d = begin(&l.base, lm, q, NULL, trace);
    while (!d.ended) {
        oracle_step *s = oracle_begin_step(&d);
        oracle_another(&s->rows);
        oracle_verify_step(&d, s, &s->candidates, true, true);
        oracle_emit(&d, s);
    }
    oracle_list_free(&d.history);
}

bool oracle_step_alike(const oracle_step *a, const oracle_step *b)
{
    return a->accepted == b->accepted && oracle_lists_alike(&a->rows, &b->rows) &&
           oracle_lists_alike(&a->candidates, &b->candidates) && oracle_alike(&a->drafts, &b->drafts) &&
           oracle_alike(&a->run, &b->run) && oracle_alike(&a->emitted, &b->emitted) &&
           oracle_lists_alike(&a->window, &b->window) && oracle_pool_alike(&a->pool, &b->pool);
}

bool oracle_trace_alike(const oracle_trace *a, const oracle_trace *b)
{
    bool same = !strcmp(a->error, b->error) && a->steps == b->steps &&
                oracle_alike(&a->tokens, &b->tokens) &&
                oracle_lists_alike(&a->window0, &b->window0) &&
                oracle_pool_alike(&a->pool0, &b->pool0);
    for (int32_t i = 0; same && i < a->steps; i++)
        same = oracle_step_alike(&a->step[i], &b->step[i]);
    return same;
}

void oracle_step_free(oracle_step *s)
{
    oracle_lists_free(&s->rows);
    oracle_lists_free(&s->candidates);
    oracle_list_free(&s->drafts);
    oracle_list_free(&s->run);
    oracle_list_free(&s->emitted);
    oracle_lists_free(&s->window);
    oracle_pool_free(&s->pool);
}

void oracle_trace_free(oracle_trace *trace)
{
    for (int32_t i = 0; i < trace->steps; i++) oracle_step_free(&trace->step[i]);
    free(trace->step);
    oracle_lists_free(&trace->window0);
    oracle_pool_free(&trace->pool0);
    oracle_list_free(&trace->tokens);
    *trace = (oracle_trace){0};
}
