/* load_trace.c - the strict reader of traces; see trace.h. */
#include <string.h>

#include "vectors/read/trace.h"

/* ---- Models ----------------------------------------------------------------------- */

static bool read_hash(as_json *r, const json_t *o, oracle_hash *m)
{
    return as_json_has_keys(r, o, "form V seed order levels", "") &&
           as_json_i32(r, o, "V", 2, TRACE_MAX_V, &m->V) &&
           as_json_hex64(r, o, "seed", &m->seed) &&
           as_json_i32(r, o, "order", 0, TRACE_MAX_TOKENS, &m->order) &&
           as_json_i32(r, o, "levels", 1, 256, &m->levels);
}

static bool read_automaton(as_json *r, const json_t *o, oracle_table *m)
{
    return as_json_has_keys(r, o, "form V S C start cls next logits", "") &&
           as_json_i32(r, o, "V", 2, TRACE_MAX_V, &m->V) &&
           as_json_i32(r, o, "S", 1, VECTORS_MAX_COUNT / m->V, &m->S) &&
           as_json_i32(r, o, "C", 1, m->V, &m->C) &&
           as_json_i32(r, o, "start", 0, m->S - 1, &m->start) &&
           reader_integers(r, o, "cls", m->V, 0, m->C - 1, &m->cls, NULL) &&
           reader_integers(r, o, "next", m->S * m->C, 0, m->S - 1, &m->next, NULL) &&
           reader_integers(r, o, "logits", m->S * m->V, 1 - (1 << 24), (1 << 24) - 1,
                           &m->logits, NULL);
}

/* The place of a name in a blank-separated list; -1: it is not there. */
static int32_t place_of(const char *list, const char *name)
{
    char word[32];
    for (int32_t i = 0; name && *reader_word(list, i, word, sizeof word); i++)
        if (!strcmp(word, name)) return i;
    return -1;
}

/* The model of that member. */
static bool read_toy(as_json *r, const json_t *o, const char *member, const vector_toy **to)
{
    const json_t *model = json_object_get(o, member);
    const int32_t place = place_of("hash automaton", json_string_value(json_object_get(model, "form")));
    vector_toy *toy = reader_take(r, 1, sizeof *toy);
    if (!toy) return false;
    if (place < 0) return as_json_bad(r, member, "must have form hash or automaton");
    toy->automaton = place == 1;
    *to = toy;
    const size_t mark = as_json_enter_object(r, member);
    if (!(place ? read_automaton(r, model, &toy->table) : read_hash(r, model, &toy->hash)))
        return false;
    as_json_leave(r, mark);
    return true;
}

bool trace_read_model(as_json *r, const json_t *o, vector_group *g)
{
    const char *method = json_string_value(json_object_get(o, "method"));
    oracle_method_name name = 0;
    while (name < ORACLE_METHODS && !(method && strcmp(method, oracle_method_text(name)) == 0))
        name++;
    if (name == ORACLE_METHODS)
        return as_json_bad(r, "method", "is none of those of chapters 7 to 9 and 11");
    const bool pair = name == ORACLE_OUROBOROS;
    g->method = name;
    if (!pair && json_object_get(o, "draft"))
        return as_json_bad(r, "draft", "belongs to groups of ouroboros alone");
    if (!read_toy(r, o, "model", &g->toy) || (pair && !read_toy(r, o, "draft", &g->draft))) return false;
    g->V = trace_toy_model(g->toy).V;
    return true;
}

/* ---- Inputs ----------------------------------------------------------------------- */

static bool read_request(as_json *r, const json_t *o, int32_t V, oracle_request *q)
{
    return reader_integers(r, o, "prompt", -1, 0, V, &q->prompt, &q->n) &&
           (q->n <= TRACE_MAX_TOKENS || as_json_bad(r, "prompt", "is too long")) &&
           as_json_i32(r, o, "budget", 0, TRACE_MAX_TOKENS, &q->budget) &&
           as_json_i32(r, o, "eos", -1, V - 1, &q->eos) &&
           as_json_i32(r, o, "positions", 0, 1 << 20, &q->positions) &&
           as_json_i32(r, o, "rows", 0, 1 << 20, &q->rows) &&
           as_json_float(r, o, "temperature", &q->sampling.temperature) &&
           as_json_i32(r, o, "top_k", 0, 1 << 20, &q->sampling.top_k) &&
           as_json_float(r, o, "top_p", &q->sampling.top_p) &&
           as_json_float(r, o, "min_p", &q->sampling.min_p) &&
           as_json_hex64(r, o, "seed", &q->seed);
}

static bool read_sizes(as_json *r, const json_t *o, oracle_method *m)
{
    const char *names = oracle_method_sizes(m->name);
    const json_t *sizes = json_object_get(o, "sizes");
    char word[32];
    const size_t mark = as_json_enter_object(r, "sizes");
    if (!as_json_has_keys(r, sizes, names, "")) return false;
    for (int32_t i = 0; *reader_word(names, i, word, sizeof word); i++)
        if (!as_json_i32(r, sizes, word, 0,
                         m->name == ORACLE_LOOKAHEAD || m->name == ORACLE_OUROBOROS ? TRACE_MAX_SIZE
                                                                                    : TRACE_MAX_TOKENS,
                         &m->size[i]))
            return false;
    as_json_leave(r, mark);
    return true;
}

static bool read_switches(as_json *r, const json_t *o, oracle_method *m)
{
    const json_t *switches = json_object_get(o, "switches");
    int32_t n;
    const oracle_switch *s = oracle_method_switches(m->name, &n);
    const size_t mark = as_json_enter_object(r, "switches");
    int32_t left_out = 0;
    for (int32_t i = 0; i < n; i++)
        left_out += oracle_switch_later(m->name, i) && !json_object_get(switches, s[i].name);
    if (json_object_size(switches) != (size_t)(n - left_out))
        return as_json_bad(r, "", "must be an object of %d switches", (int)n);
    for (int32_t i = 0; i < n; i++) {
        const json_t *value = json_object_get(switches, s[i].name);
        if (!value && oracle_switch_later(m->name, i)) continue; /* it has its first value */
        m->sw[i] = place_of(s[i].values, json_string_value(value));
        if (m->sw[i] < 0) return as_json_bad(r, s[i].name, "must be one of: %s", s[i].values);
    }
    as_json_leave(r, mark);
    return true;
}

bool trace_read_inputs(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    oracle_request *q = reader_take(r, 1, sizeof *q);
    oracle_method *m = reader_take(r, 1, sizeof *m);
    if (!q || !m) return false;
    t->request = q;
    t->method = m;
    m->name = g->method;
    if (g->draft && !(m->draft = trace_keep_model(reader_of(r)->set, g->draft))) return as_json_no_memory(r);
    return read_request(r, o, g->V, q) && read_sizes(r, o, m) &&
           reader_integers(r, o, "given", -1, 0, g->V - 1, &m->given, &m->given_n) &&
           read_switches(r, o, m);
}

/* ---- Answers ---------------------------------------------------------------------- */

/* The lists of a trace live with the set; they do not grow. */
static bool read_list(as_json *r, const vector_group *g, const json_t *value, const char *key,
                      oracle_list *list)
{
    const int32_t *t;
    if (!reader_list(r, value, key, -1, 0, g->V - 1, &t, &list->n)) return false;
    list->t = (int32_t *)(uintptr_t)t;
    return true;
}

static bool read_tokens(as_json *r, const vector_group *g, const json_t *o, const char *key,
                        oracle_list *list)
{
    return read_list(r, g, json_object_get(o, key), key, list);
}

static bool read_lists(as_json *r, const vector_group *g, const json_t *o, const char *key,
                       oracle_lists *lists)
{
    const json_t *v = json_object_get(o, key);
    if (!as_json_list(r, v, key, 0, VECTORS_MAX_COUNT)) return false;
    lists->n = (int32_t)json_array_size(v);
    lists->l = reader_take(r, (size_t)lists->n + 1, sizeof *lists->l);
    for (size_t i = 0; lists->l && i < json_array_size(v); i++) {
        const size_t mark = as_json_enter(r, key, i);
        if (!read_list(r, g, json_array_get(v, i), "", &lists->l[i])) return false;
        as_json_leave(r, mark);
    }
    return lists->l;
}

static bool read_pool(as_json *r, const vector_group *g, const json_t *o, oracle_pool *pool)
{
    const json_t *v = json_object_get(o, "pool");
    if (!as_json_list(r, v, "pool", 0, VECTORS_MAX_COUNT)) return false;
    pool->keys = (int32_t)json_array_size(v);
    pool->of = reader_take(r, (size_t)pool->keys + 1, sizeof *pool->of);
    if (!pool->of) return false;
    for (int32_t i = 0; i < pool->keys; i++) {
        const json_t *entry = json_array_get(v, (size_t)i);
        const size_t mark = as_json_enter(r, "pool", (size_t)i);
        if (!as_json_has_keys(r, entry, "key values", "") ||
            !as_json_i32(r, entry, "key", i ? pool->of[i - 1].key + 1 : 0, g->V - 1,
                         &pool->of[i].key) ||
            !read_lists(r, g, entry, "values", &pool->of[i].values))
            return false;
        as_json_leave(r, mark);
    }
    return true;
}

static bool read_step(as_json *r, const vector_group *g, const json_t *o, oracle_step *s)
{
    const bool pair = g->method == ORACLE_OUROBOROS;
    const char *keys = "drafts rows candidates accepted run emitted window pool";
    return as_json_has_keys(r, o, pair ? keys : strchr(keys, ' ') + 1, "") &&
           (!pair || read_tokens(r, g, o, "drafts", &s->drafts)) &&
           read_lists(r, g, o, "rows", &s->rows) &&
           read_lists(r, g, o, "candidates", &s->candidates) &&
           as_json_i32(r, o, "accepted", 0, TRACE_MAX_TOKENS, &s->accepted) &&
           read_tokens(r, g, o, "run", &s->run) &&
           read_tokens(r, g, o, "emitted", &s->emitted) &&
           (s->emitted.n > 0 || as_json_bad(r, "emitted", "must not be empty")) &&
           read_lists(r, g, o, "window", &s->window) && read_pool(r, g, o, &s->pool);
}

/* An answer to `budget` tokens. */
static bool read_trace(as_json *r, const vector_group *g, int32_t budget, const json_t *o,
                       oracle_trace *trace)
{
    const json_t *steps = json_object_get(o, "steps");
    if (!as_json_has_keys(r, o, "tokens window pool steps", "") ||
        !read_tokens(r, g, o, "tokens", &trace->tokens) ||
        !read_lists(r, g, o, "window", &trace->window0) || !read_pool(r, g, o, &trace->pool0))
        return false;
    if (!as_json_list(r, steps, "steps", 0, VECTORS_MAX_COUNT)) return false;
    if (trace->tokens.n < 1 && budget > 0) /* STOP-08 */
        return as_json_bad(r, "tokens", "must not be empty");
    trace->steps = (int32_t)json_array_size(steps);
    trace->step = reader_take(r, (size_t)trace->steps + 1, sizeof *trace->step);
    if (!trace->step) return false;
    for (int32_t i = 0; i < trace->steps; i++) {
        const size_t mark = as_json_enter(r, "steps", (size_t)i);
        if (!read_step(r, g, json_array_get(steps, (size_t)i), &trace->step[i])) return false;
        as_json_leave(r, mark);
    }
    return true;
}

bool trace_read_answer(as_json *r, const vector_group *g, const vector_test *t, const json_t *o,
                       vector_answer *a)
{
    if (json_object_get(o, "error"))
        return as_json_has_keys(r, o, "error", "") && reader_text(r, o, "error", &a->error) &&
               (*a->error || as_json_bad(r, "error", "must not be empty"));
    oracle_trace *trace = reader_take(r, 1, sizeof *trace);
    if (!trace) return false;
    a->trace = trace;
    return read_trace(r, g, t->request->budget, o, trace);
}
