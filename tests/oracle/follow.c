/* follow.c - see follow.h. */
#include "tests/oracle/follow.h"

#include <stdio.h>
#include <string.h>

#include "conformance/subjects/ours/reference_traces.h"
#include "vectors/read/traces.h"

/* What a run of the reference is held against. */
typedef struct {
    const as_lm *lm;
    const oracle_request *q;
    const oracle_method *m;
    const follow_options *options;
    int32_t emitted, accepted;
    char *fault;
    size_t fault_size;
} spy;

static void blame(spy *s, const char *what, int32_t step)
{
    if (!*s->fault) snprintf(s->fault, s->fault_size, "step %d: %s", (int)step, what);
}

/* ---- What must hold of a step ----------------------------------------------------- */

/* The last row of the accepted path: of the first candidate that has these tokens, or else the
 * first row. Rows of the window rank behind all candidates (LAH-20). */
static int32_t winner(const spy *s, const as_step *step, const oracle_lists *rows)
{
    const oracle_list run = {step->accepted, 0, (int32_t *)(uintptr_t)step->run};
    const int32_t drafts = step->plan->drafts;
    int32_t found = -1;
    for (int32_t r = 1; r < rows->n && step->accepted > 0; r++) {
        const bool better = found < 0 || (found < drafts && r >= drafts),
                   open = r >= drafts || s->m->sw[LAH_ACCEPT_WINDOW];
        if (better && open && oracle_alike(&rows->l[r], &run)) found = r;
    }
    return step->accepted > 0 ? found : 0;
}

static void check_path(spy *s, const as_step *step, const oracle_lists *rows)
{
    for (int32_t i = step->accepted; i > 0; i--)
        if (step->tree->row[step->path[i]].parent != step->path[i - 1])
            blame(s, "the accepted rows are no path", step->step);
    if (step->path[0] != 0 || step->path[step->accepted] != winner(s, step, rows))
        blame(s, "the accepted rows are not the winner's", step->step);
}

/* The i-th token emitted. */
static int32_t token_at(const oracle_trace *t, int32_t i)
{
    const oracle_step *s = t->step;
    for (; i >= s->emitted.n; s++) i -= s->emitted.n;
    return s->emitted.t[i];
}

/* LAH-30, JAC-10: the history but for its last token. */
static void check_prefix(spy *s, int32_t step, const oracle_trace *t)
{
    int32_t n;
    if (!s->options->prefix) return;
    const int32_t *prefix = s->options->prefix(s->lm, &n);
    const int32_t due = s->q->n + s->emitted - 1;
    bool same = s->options->ranks ? n <= due : n == due;
    for (int32_t i = 0; same && i < n; i++)
        same = prefix[i] == (i < s->q->n ? s->q->prompt[i] : token_at(t, i - s->q->n));
    if (!same) blame(s, "the model holds other tokens than the history's", step);
}

static void look(void *data, const as_step *step, const oracle_trace *t)
{
    spy *s = data;
    s->emitted += step->emitted;
    s->accepted += step->accepted;
    check_path(s, step, &t->step[t->steps - 1].rows);
    check_prefix(s, step->step, t);
}

/* What was given out is what the steps emitted. */
static void check_result(spy *s, const oracle_trace *t, const as_result *r)
{
    bool same = r->tokens == s->emitted && r->steps == t->steps && r->accepted == s->accepted;
    for (int32_t i = 0; same && i < r->tokens; i++) same = t->tokens.t[i] == token_at(t, i);
    if (!same) blame(s, "the result does not agree with the steps", r->steps);
}

/* ---- A request -------------------------------------------------------------------- */

static bool same_lookahead(const as_lookahead *a, const as_lookahead *b)
{
    return a->W == b->W && a->N == b->N && a->G == b->G && a->init == b->init &&
           a->first_plain == b->first_plain && a->warmup == b->warmup &&
           a->verify_filling == b->verify_filling && a->fill_last == b->fill_last &&
           a->pool_from_prompt == b->pool_from_prompt &&
           a->pool_from_output == b->pool_from_output && a->pool == b->pool &&
           a->key == b->key && a->bonus == b->bonus && a->accept_window == b->accept_window &&
           a->shift == b->shift && a->sampled == b->sampled && a->rule == b->rule &&
           a->eos_filter == b->eos_filter;
}

static bool same_lookup(const as_lookup *a, const as_lookup *b)
{
    return a->longest == b->longest && a->drafts == b->drafts && a->partial == b->partial &&
           a->cut_at_eos == b->cut_at_eos;
}

bool follow_preset(const oracle_method *m, const char *name)
{
    if (m->name == ORACLE_LOOKAHEAD) {
        const as_lookahead *has = as_lookahead_preset(name), due = ref_lookahead_of(m);
        return has && same_lookahead(has, &due);
    }
    const as_lookup *has = as_lookup_preset(name), due = ref_lookup_of(m);
    return has && same_lookup(has, &due);
}

/* Twice with one drafter and one model: nothing of the first run may be left in the second
 * (LAH-02, KV-07). */
void follow(as_lm *lm, const oracle_request *q, const oracle_method *m,
            const follow_options *options, oracle_trace *trace, char *fault, size_t fault_size)
{
    as_error e = {.text = ""};
    as_drafter *d = NULL;
    as_result result;
    *trace = (oracle_trace){.steps = 0};
    *fault = 0;
    if (ref_drafter_of(m, lm->V, &d, &e) != AS_OK) {
        ref_refuse(q, &e, trace);
        return;
    }
    for (int run = 0; run < 2; run++) {
        spy s = {lm, q, m, options, 0, 0, fault, fault_size};
        const ref_trace_watch watch = {look, &s};
        oracle_trace_free(trace);
        ref_trace(lm, d, q, m, options->ranks, &watch, trace, &result);
        if (!*trace->error) check_result(&s, trace, &result);
    }
    as_drafter_free(d);
}

/* ---- Comparing -------------------------------------------------------------------- */

void follow_compare(const oracle_trace *want, const oracle_trace *got, char *why, size_t size)
{
    const vector_answer due = {.error = *want->error ? want->error : NULL, .trace = want},
                        seen = {.error = *got->error ? got->error : NULL, .trace = got};
    traces_differ(&due, &seen, why, size);
}
