/* method_trace.c - see method_trace.h. */
#include "conformance/subjects/mutants/model/method_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "conformance/oracle/methods/ouroboros.h"
#include "conformance/subjects/mutants/model/method_ouroboros.h"
#include "conformance/subjects/mutants/model/method_subject.h"

/* ---- What a step shows ---------------------------------------------------------------- */

/* Row 0 without the root, but with what is stored before it if that is a key (LAH-01). */
static void show_window(const method_job *j, const method_window *w, oracle_lists *to)
{
    const int32_t hidden = j->how->sw[LAH_KEY] == LAH_KEY_STALE ? 0 : 1;
    for (int32_t l = 0; l < w->rows; l++) {
        const int32_t from = l == 0 ? hidden : method_window_from(w, j, l);
        oracle_append(oracle_another(to), w->token[l] + from, w->columns - from);
    }
}

static void show_pool(const method_pool *p, oracle_pool *to)
{
    to->of = oracle_take((size_t)p->V, sizeof *to->of);
    for (int32_t key = 0; key < p->V; key++) {
        if (p->count[key] == 0) continue;
        struct oracle_pool_key *entry = &to->of[to->keys++];
        entry->key = key;
        for (int32_t i = 0; i < p->count[key]; i++)
            oracle_append(oracle_another(&entry->values), method_pool_value(p, key, i),
                          p->length);
    }
}

static void show_rows(const method_tree *t, oracle_step *to)
{
    for (int32_t r = 0; r < t->rows; r++) {
        oracle_list *path = oracle_another(&to->rows);
        if (r == 0) continue;
        const oracle_list *above = &to->rows.l[t->parent[r]];
        oracle_append(path, above->t, above->n);
        oracle_push(path, t->token[r]);
    }
    for (int32_t c = 0; c < t->candidates; c++)
        oracle_append(oracle_another(&to->candidates), t->token + t->first[c], t->length[c]);
}

void method_trace_start(const method_job *j, const method_window *w, const method_job *of)
{
    if (!j->trace || !w) return;
    show_window(of, w, &j->trace->window0);
    show_pool(&w->pool, &j->trace->pool0);
}

void method_trace_step(const method_job *j, const method_tree *t, const method_run *run,
                       const method_outcome *o, const method_window *w, const method_job *of)
{
    oracle_trace *to = j->trace;
    if (!to) return;
    oracle_step *s = &to->step[to->steps++];
    s->accepted = run->hits;
    show_rows(t, s);
    oracle_append(&s->run, run->token, run->count);
    oracle_append(&s->emitted, run->token, o->emitted);
    oracle_append(&to->tokens, run->token, o->emitted);
    if (!w) return;
    show_window(of, w, &s->window);
    show_pool(&w->pool, &s->pool);
}

/* ---- Refusals ------------------------------------------------------------------------- */

/* LAH-01, LAH-04, LAH-22. */
static const char *refuse_lookahead(fault_point f, const oracle_method *m, bool warm)
{
    const int32_t *z = m->size, *sw = m->sw;
    if (z[0] < 1) return "W";
    if (z[1] < 2) return "N";
    if (z[2] < 0) return "G";
    if (sw[LAH_INIT] == LAH_INIT_GIVEN && m->given_n < 1) return "given";
    if (sw[LAH_KEY] == LAH_KEY_STALE && sw[LAH_WARMUP]) return "key";
    if (!warm) return NULL;
    if (sw[LAH_RULE] == LAH_RULE_NONE && !fault(f, LAH_NONE_DECODES)) return "temperature";
    return sw[LAH_ACCEPT_WINDOW] ? "accept_window" : NULL;
}

/* OUR-01. */
static const char *refuse_ouroboros(fault_point f, const oracle_method *m)
{
    if (m->size[1] < 1) return "W";
    if (m->size[2] < 2) return fault(f, OUR_N_IS_W) ? "W" : "N";
    return m->sw[OUR_INIT] == OUR_INIT_GIVEN && m->given_n < 1 ? "given" : NULL;
}

/* The name of what is refused, or NULL. */
static const char *refused(fault_point f, int32_t V, const oracle_request *q,
                           const oracle_method *m)
{
    const bool warm = q->sampling.temperature != 0;
    const int32_t late = fault(f, RUN_LIMIT_LATE) ? 1 : 0;
    if (q->n < 1 && !fault(f, RUN_FROM_NOTHING)) return "prompt";
    for (int32_t i = 0; i < q->n && !fault(f, RUN_PROMPT_UNCHECKED); i++)
        if (q->prompt[i] < 0 || q->prompt[i] >= V) return "prompt";
    if (q->budget < 0) return "budget";
    if (q->positions && (q->budget > 0 || fault(f, RUN_ZERO_COUNTS)) &&
        q->n + q->budget - 1 > q->positions + late)
        return "positions";
    switch (m->name) {
    case ORACLE_JACOBI:
        if (m->size[0] < 1) return "block";
        if (m->sw[JACOBI_INIT] == JACOBI_GIVEN && m->given_n < 1) return "given";
        return warm ? "temperature" : NULL;
    case ORACLE_LOOKAHEAD:
        return refuse_lookahead(f, m, warm);
    case ORACLE_OUROBOROS:
        return refuse_ouroboros(f, m);
    default:
        return m->size[0] < 1 ? "longest" : m->size[1] < 1 ? "drafts" : NULL;
    }
}

/* ---- A vector ------------------------------------------------------------------------- */

/* What the subject's arrays do not hold is no vector's. */
static bool holds(const oracle_request *q, const oracle_method *m)
{
    const bool window = m->name == ORACLE_LOOKAHEAD   ? !method_window_refusal(m->size)
                        : m->name == ORACLE_OUROBOROS ? !method_rounds_refusal(m->size[0], m->size + 1)
                                                      : true;
    return window && q->n + q->budget + METHOD_ROWS < METHOD_POSITIONS;
}

static void decode(fault_point f, const vector_group *g, const vector_test *t,
                   oracle_trace *trace)
{
    const oracle_request *q = t->request;
    const oracle_sampling *p = &q->sampling;
    int32_t history[METHOD_POSITIONS], out[METHOD_POSITIONS], told[METHOD_POSITIONS];
    method_pool kept = {0};
    const int32_t n = q->n > 0 ? q->n : 1; /* from nothing, under RUN_FROM_NOTHING: token 0 */
    history[0] = 0;
    for (int32_t i = 0; i < q->n; i++) history[i] = q->prompt[i] % g->V;
    method_job j = {.fault = f,
                    .manner = MANNER_USUAL,
                    .toy = g->toy,
                    .draft_toy = g->draft,
                    .how = t->method,
                    .V = g->V,
                    .k = q->budget,
                    .eos = q->eos,
                    .positions = q->positions ? q->positions : METHOD_POSITIONS,
                    .rows = q->rows ? method_least(q->rows, METHOD_ROWS) : METHOD_ROWS,
                    .sampling = {p->temperature, p->top_k, p->top_p, p->min_p},
                    .seed = q->seed,
                    .prompt = n,
                    .n = n,
                    .history = history,
                    .kept = &kept,
                    .trace = trace};
    trace->step = oracle_take((size_t)q->budget + 1, sizeof *trace->step);
    if (method_decode(&j, out, told) != IUT_OK)
        snprintf(trace->error, sizeof trace->error, "%.150s", j.error);
    method_pool_close(&kept);
}

void method_trace_vector(fault_point f, const vector_group *g, const vector_test *t,
                         oracle_trace *trace)
{
    const char *what = refused(f, g->V, t->request, t->method);
    if (!what && !holds(t->request, t->method)) what = "a size that is beyond this program";
    *trace = (oracle_trace){.steps = 0};
    if (what)
        snprintf(trace->error, sizeof trace->error, "%s", what);
    else
        decode(f, g, t, trace);
}
