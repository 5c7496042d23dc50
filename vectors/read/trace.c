/* trace.c - see trace.h. */
#include "vectors/read/trace.h"

#include <string.h>

#include "conformance/oracle/methods/ouroboros.h"

/* ---- Memory of the set ------------------------------------------------------------ */

/* `ok` turns false when memory is short. */
static oracle_list keep_list(vector_set *set, const oracle_list *from, bool *ok)
{
    oracle_list to = {from->n, 0, set_take(set, (size_t)from->n + 1, sizeof *to.t)};
    if (!to.t) return *ok = false, (oracle_list){0};
    if (from->n) memcpy(to.t, from->t, (size_t)from->n * sizeof *to.t);
    return to;
}

static oracle_lists keep_lists(vector_set *set, const oracle_lists *from, bool *ok)
{
    oracle_lists to = {from->n, 0, set_take(set, (size_t)from->n + 1, sizeof *to.l)};
    if (!to.l) return *ok = false, (oracle_lists){0};
    for (int32_t i = 0; i < from->n; i++) to.l[i] = keep_list(set, &from->l[i], ok);
    return to;
}

static oracle_pool keep_pool(vector_set *set, const oracle_pool *from, bool *ok)
{
    oracle_pool to = *from;
    to.of = set_take(set, (size_t)from->keys + 1, sizeof *to.of);
    if (!to.of) return *ok = false, (oracle_pool){0};
    for (int32_t i = 0; i < from->keys; i++) {
        to.of[i] = from->of[i];
        to.of[i].values = keep_lists(set, &from->of[i].values, ok);
    }
    return to;
}

const oracle_trace *trace_keep(vector_set *set, const oracle_trace *from)
{
    bool ok = true;
    oracle_trace *to = set_take(set, 1, sizeof *to);
    if (!to) return NULL;
    *to = *from;
    to->tokens = keep_list(set, &from->tokens, &ok);
    to->window0 = keep_lists(set, &from->window0, &ok);
    to->pool0 = keep_pool(set, &from->pool0, &ok);
    to->step = set_take(set, (size_t)from->steps + 1, sizeof *to->step);
    for (int32_t i = 0; to->step && i < from->steps; i++) {
        const oracle_step *s = &from->step[i];
        oracle_step *copy = &to->step[i];
        copy->accepted = s->accepted;
        copy->rows = keep_lists(set, &s->rows, &ok);
        copy->candidates = keep_lists(set, &s->candidates, &ok);
        copy->drafts = keep_list(set, &s->drafts, &ok);
        copy->run = keep_list(set, &s->run, &ok);
        copy->emitted = keep_list(set, &s->emitted, &ok);
        copy->window = keep_lists(set, &s->window, &ok);
        copy->pool = keep_pool(set, &s->pool, &ok);
    }
    return ok && to->step ? to : NULL;
}

static const int32_t *keep_tokens(vector_set *set, const int32_t *t, int32_t n)
{
    int32_t *to = set_take(set, (size_t)n + 1, sizeof *to);
    if (to && n) memcpy(to, t, (size_t)n * sizeof *to);
    return to;
}

const oracle_request *trace_keep_request(vector_set *set, const oracle_request *q)
{
    oracle_request *to = set_take(set, 1, sizeof *to);
    if (!to) return NULL;
    *to = *q;
    to->prompt = keep_tokens(set, q->prompt, q->n);
    return to->prompt ? to : NULL;
}

const oracle_method *trace_keep_method(vector_set *set, const oracle_method *m)
{
    oracle_method *to = set_take(set, 1, sizeof *to);
    if (!to) return NULL;
    *to = *m;
    to->given = keep_tokens(set, m->given, m->given_n);
    return to->given ? to : NULL;
}

/* ---- Answers ---------------------------------------------------------------------- */

oracle_lm trace_model(const vector_group *g)
{
    return trace_toy_model(g->toy);
}

const oracle_lm *trace_keep_model(vector_set *set, const vector_toy *toy)
{
    oracle_lm *lm = set_take(set, 1, sizeof *lm);
    if (lm) *lm = trace_toy_model(toy);
    return lm;
}

oracle_lm trace_toy_model(const vector_toy *toy)
{
    if (toy->folder) return toy->network;
    if (toy->automaton) return (oracle_lm){toy->table.V, oracle_table_logits, &toy->table};
    return (oracle_lm){toy->hash.V, oracle_hash_logits, &toy->hash};
}

bool trace_differs(const vector_group *g, const vector_test *t, int32_t s, int32_t value)
{
    const oracle_lm lm = trace_model(g);
    oracle_method other = *t->method;
    oracle_trace wrong;
    other.sw[s] = value;
    oracle_decode(&lm, t->request, &other, &wrong);
    const bool differs = !*wrong.error && !oracle_trace_alike(t->expected.trace, &wrong);
    oracle_trace_free(&wrong);
    return differs;
}

void trace_flag(const oracle_switch *s, char *flag, size_t size)
{
    snprintf(flag, size, "switch-%s", s->name);
    for (char *c = flag; *c; c++)
        if (*c == '_') *c = '-';
}

const char *trace_flags(vector_set *set, const vector_group *g, const vector_test *t)
{
    char list[600] = "", flag[40];
    int32_t n;
    const oracle_switch *s = oracle_method_switches(t->method->name, &n);
    for (int32_t i = 0; i < n; i++) {
        bool matters = false;
        if (oracle_switch_later(t->method->name, i) && t->method->sw[i] == 0) continue;
        for (int32_t v = 0; v < oracle_switch_values(&s[i]) && !matters; v++)
            matters = v != t->method->sw[i] && trace_differs(g, t, i, v);
        if (!matters) continue;
        trace_flag(&s[i], flag, sizeof flag);
        strcat(strcat(list, *list ? " " : ""), flag);
    }
    return set_text(set, list, strlen(list));
}

bool trace_answer(vector_set *set, const vector_group *g, vector_test *t, char *why,
                  size_t why_size)
{
    const oracle_lm lm = trace_model(g);
    oracle_trace trace;
    oracle_decode(&lm, t->request, t->method, &trace);
    if (*trace.error)
        t->expected.error = set_text(set, trace.error, strlen(trace.error));
    else
        t->expected.trace = trace_keep(set, &trace);
    oracle_trace_free(&trace);
    if (!t->expected.error && !t->expected.trace) return false;
    /* A trained model takes too long for one trace a switch and value. */
    const char *flags = t->expected.error || g->toy->folder ? "" : trace_flags(set, g, t);
    if (flags && !strcmp(flags, t->flags)) return true;
    snprintf(why, why_size, "%s: its flags are not the switches that matter: %s", t->id,
             flags ? flags : "");
    return false;
}

bool trace_flip(vector_set *set, const vector_group *g, vector_answer *a)
{
    static const oracle_trace none;
    oracle_trace *t = (oracle_trace *)(uintptr_t)trace_keep(set, a->trace ? a->trace : &none);
    if (!t) return false;
    if (t->steps == 0) {
        t->tokens.t[t->tokens.n++] = 0;
    } else {
        oracle_list *last = &t->step[t->steps - 1].emitted;
        last->t[last->n - 1] = (last->t[last->n - 1] + 1) % g->V;
    }
    a->error = NULL;
    a->trace = t;
    return true;
}

/* ---- Clauses ---------------------------------------------------------------------- */

typedef struct {
    const char *clauses;
    bool named;
} claim;

static void lookahead_clauses(const oracle_request *q, const oracle_method *m,
                              const oracle_trace *t, claim *c, int32_t *n)
{
    const int32_t *sw = m->sw;
    const bool warm = q->sampling.temperature != 0;
    const bool random = warm && sw[LAH_RULE] == LAH_RULE_ONEHOT;
    bool plain = false;
    for (int32_t i = 1; i < t->steps; i++) plain |= t->step[i].rows.n == 1 && m->size[0] > 1;
    const claim of[] = {
        {"LAH-01 LAH-07 LAH-08", true},
        {"LAH-03", sw[LAH_INIT] == LAH_INIT_PROMPT && sw[LAH_WARMUP]},
        {"LAH-04", sw[LAH_INIT] != LAH_INIT_PROMPT || !sw[LAH_WARMUP]},
        {"LAH-05", sw[LAH_POOL_FROM_PROMPT]},
        {"LAH-06", sw[LAH_FIRST_PLAIN]},
        {"LAH-09", plain},
        {"LAH-10 LAH-11 LAH-12", sw[LAH_WARMUP] && m->size[1] > 2},
        {"LAH-13 LAH-14 LAH-15 LAH-16", true},
        {"LAH-17", sw[LAH_POOL_FROM_OUTPUT]},
        {"LAH-18", !warm && !sw[LAH_ACCEPT_WINDOW]},
        {"LAH-19", !sw[LAH_BONUS]},
        {"LAH-20", sw[LAH_ACCEPT_WINDOW]},
        {"LAH-21", warm && sw[LAH_RULE] == LAH_RULE_MATCH},
        {"LAH-23", sw[LAH_SHIFT] == LAH_SHIFT_REL1},
        {"LAH-24", sw[LAH_SHIFT] == LAH_SHIFT_ABSPAD},
        {"LAH-25", sw[LAH_SHIFT] == LAH_SHIFT_ROWROT},
        {"LAH-26", sw[LAH_KEY] == LAH_KEY_STALE},
        {"LAH-27", warm && sw[LAH_EOS_FILTER]},
        {"LAH-29", true},
        {"LAH-37", sw[LAH_INIT] == LAH_INIT_VOCABULARY},
        {"ONEH-01 ONEH-02 ONEH-03 ONEH-04 ONEH-05", random},
        {"POOL-01", true},
        {"POOL-02", sw[LAH_POOL] == LAH_POOL_LRU},
        {"POOL-03", sw[LAH_POOL] == LAH_POOL_RING},
        {"POOL-04 POOL-05", true},
    };
    *n = sizeof of / sizeof *of;
    memcpy(c, of, sizeof of);
}

static void jacobi_clauses(const oracle_method *m, claim *c, int32_t *n)
{
    *n = 2;
    c[0] = (claim){m->size[0] > 1 ? "JAC-01 JAC-02 JAC-03 JAC-04 JAC-05 JAC-06 JAC-08"
                                  : "JAC-01 JAC-02 JAC-04 JAC-08",
                   true};
    c[1] = (claim){"JAC-11", m->size[0] > 1 && m->sw[JACOBI_INIT] == JACOBI_VOCABULARY};
}

static void lookup_clauses(const oracle_request *q, const oracle_method *m, claim *c,
                           int32_t *n)
{
    const bool warm = q->sampling.temperature != 0;
    const claim of[] = {{"LKP-01", true},
                        {m->sw[LKP_PARTIAL] ? "LKP-03" : "LKP-02", true},
                        {"LKP-04", m->sw[LKP_CUT_AT_EOS]},
                        {"LKP-05 LKP-06", true},
                        {"GRD-01", !warm},
                        {"MAT-01", warm && m->sw[LKP_RULE] == LKP_RULE_MATCH},
                        {"ONEH-01 ONEH-02 ONEH-03 ONEH-04 ONEH-05",
                         warm && m->sw[LKP_RULE] == LKP_RULE_ONEHOT}};
    *n = sizeof of / sizeof *of;
    memcpy(c, of, sizeof of);
}

static void ouroboros_clauses(const oracle_request *q, const oracle_method *m, const oracle_trace *t, claim *c,
                              int32_t *n)
{
    const int32_t *sw = m->sw, N = m->size[2];
    bool suffixes = false, whole = false, refused = false;
    for (int32_t i = 0; i < t->steps; i++) {
        const oracle_step *s = &t->step[i];
        const bool has = s->candidates.n > 0 && s->candidates.l[0].n > s->drafts.n;
        suffixes |= has;
        whole |= has && s->accepted == s->drafts.n + N - 1;
        refused |= s->accepted < s->drafts.n;
    }
    const bool warm = q->sampling.temperature != 0, inspires = refused && sw[OUR_INSPIRE] != OUR_INSPIRE_NONE;
    const claim of[] = {{"OUR-02 OUR-03 OUR-05 OUR-06 OUR-07 OUR-08 OUR-11 OUR-21 OUR-23", true},
                        {"OUR-09 OUR-10", suffixes},
                        {"OUR-13", !warm},
                        {"OUR-14", whole && !sw[OUR_SUFFIX_BONUS]},
                        {"OUR-15", warm},
                        {"OUR-16", inspires},
                        {"OUR-12 OUR-17", suffixes && sw[OUR_REFINE] != OUR_REFINE_NONE},
                        {"OUR-18", suffixes && sw[OUR_REFINE] == OUR_REFINE_VALUE},
                        {"OUR-19", suffixes && sw[OUR_REFINE] == OUR_REFINE_NEWEST},
                        {"OUR-25", true}};
    *n = sizeof of / sizeof *of;
    memcpy(c, of, sizeof of);
}

/* `n`: tokens of the prompt. */
static const char *refusal_clauses(const char *error, const oracle_method *m, int32_t n)
{
    const bool jacobi = m->name == ORACLE_JACOBI;
    if (!strcmp(error, "positions")) return "STOP-05";
    if (!strcmp(error, "prompt")) return n > 0 ? "STOP-07" : "STOP-06";
    if (m->name == ORACLE_OUROBOROS) return "OUR-01";
    if (m->name == ORACLE_LOOKAHEAD && strlen(error) == 1) return "LAH-32"; /* W, N, G */
    if (!strcmp(error, "temperature")) return jacobi ? "JAC-07" : "LAH-22";
    if (!strcmp(error, "given")) return jacobi ? "JAC-06" : "LAH-04";
    return jacobi ? "JAC-01" : m->name == ORACLE_LOOKUP ? "LKP-01" : "LAH-01";
}

const char *trace_clauses(vector_set *set, const vector_test *t)
{
    claim c[32];
    int32_t n = 0;
    char list[400] = "";
    if (t->expected.error)
        return refusal_clauses(t->expected.error, t->method, t->request->n);
    if (t->request->budget == 0) return "STOP-08";
    if (t->method->name == ORACLE_LOOKAHEAD)
        lookahead_clauses(t->request, t->method, t->expected.trace, c, &n);
    else if (t->method->name == ORACLE_OUROBOROS)
        ouroboros_clauses(t->request, t->method, t->expected.trace, c, &n);
    else if (t->method->name == ORACLE_JACOBI)
        jacobi_clauses(t->method, c, &n);
    else
        lookup_clauses(t->request, t->method, c, &n);
    for (int32_t i = 0; i < n; i++)
        if (c[i].named) strcat(strcat(list, *list ? " " : ""), c[i].clauses);
    const oracle_list *out = &t->expected.trace->tokens;
    strcat(list, out->t[out->n - 1] == t->request->eos ? " STOP-01" : " STOP-02");
    return set_text(set, list, strlen(list));
}
