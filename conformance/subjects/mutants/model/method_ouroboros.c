/* method_ouroboros.c - see method_ouroboros.h. Each candidate is the drafts and a suffix: the drafts' rows stand in the
 * tree once for each of them. */
#include "conformance/subjects/mutants/model/method_ouroboros.h"

#include <string.h>

#include "conformance/oracle/methods/ouroboros.h"
#include "conformance/subjects/mutants/model/lm_subject.h"

enum { MOST_GAMMA = 16, MOST_K = 16 };

const char *method_rounds_refusal(int32_t gamma, const int32_t *sizes)
{
    const int32_t window[] = {sizes[0], sizes[1], sizes[0]}, N = sizes[1], K = sizes[2];
    const char *what = method_window_refusal(window);
    if (what) return what;
    if (K < 0 || K > MOST_K || gamma > MOST_GAMMA) return "ouroboros: gamma or K is not in 0..16";
    return 1 + (gamma + 2 * N) * (K > 0 ? K : 1) > METHOD_ROWS ? "ouroboros: a tree has 128 rows at most" : NULL;
}

static int32_t size_of(const method_job *j, int32_t i)
{
    return j->how->size[i];
}

static int32_t gamma_of(const method_job *j)
{
    return size_of(j, 0);
}

static int32_t suffix_length(const method_job *j)
{
    return size_of(j, 2) - 1;
}

/* ---- Before the first round. ----------------------------------------------------- */

bool method_rounds_open(method_rounds *a, method_job *j)
{
    const oracle_method *m = j->how;
    const bool stays = j->manner == MANNER_OUROBOROS_WARM;
    a->lookahead = (oracle_method){.name = ORACLE_LOOKAHEAD,
                                   .size = {m->size[1], m->size[2], m->size[1]},
                                   .given = m->given,
                                   .given_n = m->given_n};
    oracle_preset(&a->lookahead, "paper");
    a->lookahead.sw[LAH_BONUS] = m->sw[OUR_DRAFT_BONUS];
    a->lookahead.sw[LAH_INIT] = m->sw[OUR_INIT] == OUR_INIT_GIVEN ? LAH_INIT_GIVEN : LAH_INIT_PROMPT;
    a->lookahead.sw[LAH_POOL] = j->manner == MANNER_OUROBOROS_RING ? LAH_POOL_RING : LAH_POOL_LRU;
    a->lookahead.sw[LAH_FIRST_PLAIN] = fault(j->fault, OUR_FIRST_STEP_PLAIN);
    if (fault(j->fault, OUR_CAPACITY_K)) a->lookahead.size[2] = m->size[3];
    a->line = (method_job){.fault = j->fault,
                           .manner = stays ? MANNER_POOL_STAYS : MANNER_USUAL,
                           .lm = j->draft,
                           .toy = j->draft_toy,
                           .how = &a->lookahead,
                           .V = j->V,
                           .k = METHOD_POSITIONS,
                           .eos = j->eos,
                           .positions = METHOD_POSITIONS,
                           .rows = METHOD_ROWS,
                           .seed = j->seed,
                           .prompt = j->prompt,
                           .history = a->history,
                           .kept = j->kept};
    memcpy(a->history, j->history, (size_t)j->n * sizeof *a->history);
    a->line.n = j->n;
    if (!method_tree_open(&a->tree, j->V) || !method_window_open(&a->window, &a->line)) return false;
    for (int32_t key = 0; fault(j->fault, OUR_WARM_UNIFORMS) && key < j->V; key++) j->seed += (uint64_t)a->window.pool.count[key];
    return true;
}

void method_rounds_close(method_rounds *a, method_job *j)
{
    (void)j;
    method_window_close(&a->window, &a->line);
    method_tree_close(&a->tree);
}

/* ---- The draft model's cache. ---------------------------------------------------- */

/* Tokens of the line from `held` on, so many. */
static iut_status feed(method_rounds *a, method_job *j, int32_t n)
{
    iut_status s = IUT_OK;
    for (int32_t piece; s == IUT_OK && n > 0 && a->line.lm; n -= piece, a->held += piece) {
        piece = method_least(n, METHOD_ROWS);
        method_tree_begin(&a->tree, a->history[a->held]);
        for (int32_t i = 1; i < piece; i++) method_tree_add(&a->tree, a->history[a->held + i], i - 1);
        for (int32_t i = 1; i < piece; i++) a->run.row[i - 1] = i;
        s = method_tree_forward(&a->line, &a->tree);
        if (s == IUT_OK) s = method_tree_commit(&a->line, &a->run, piece - 1);
    }
    return s == IUT_OK ? s : method_fail(j, s, a->line.error);
}

static iut_status cut_to(method_rounds *a, method_job *j, int32_t keep)
{
    const int32_t sequence = 0;
    int32_t length;
    iut_truncate_batch b = {sizeof b, 1, &sequence, &keep, &length};
    if (!a->line.lm || keep >= a->held) return IUT_OK;
    a->held = keep;
    const iut_status s = lm_subject_operations.truncate(a->line.lm, &b);
    return s == IUT_OK ? s : method_fail(j, s, lm_subject_operations.last_error(a->line.lm));
}

/* ---- Drafts (OUR-05 to OUR-08). -------------------------------------------------- */

/* OUR-06: from the run to the line, up to an end. */
static void extend(method_rounds *a, method_outcome *o)
{
    method_job *line = &a->line;
    for (o->emitted = 0; o->emitted < a->run.count && !o->ended;) {
        const int32_t x = a->run.token[o->emitted++];
        line->history[line->n++] = x;
        line->m++;
        o->ended = x == line->eos && !fault(line->fault, OUR_BEHIND_END);
    }
}

static iut_status draft_step(method_rounds *a, bool *ended)
{
    method_job *line = &a->line;
    method_outcome o = {.before = line->n, .m = line->m};
    method_window_propose(&a->window, line, &a->tree);
    iut_status s = method_tree_forward(line, &a->tree);
    if (s == IUT_OK) s = method_verify(line, &a->tree, false, &a->run);
    if (s == IUT_OK) s = method_window_answer(&a->window, line, &a->tree, &a->run);
    if (s != IUT_OK) return s;
    extend(a, &o);
    if (!o.ended || !fault(line->fault, OUR_END_STANDS_STILL))
        method_window_observe(&a->window, line, &a->tree, &a->run, &o);
    *ended = o.ended;
    a->held += o.emitted;
    return method_tree_commit(line, &a->run, o.emitted - 1);
}

static iut_status make_drafts(method_rounds *a, method_job *j)
{
    const fault_point f = j->fault;
    method_job *line = &a->line;
    const int32_t left = j->k - j->m - (fault(f, OUR_ROOM_ALL) ? 0 : 1), room = method_least(left, j->rows - 1),
                  g = method_least(gamma_of(j), room);
    bool ended = false;
    memcpy(line->history, j->history, (size_t)j->n * sizeof *line->history);
    line->n = j->n, line->m = j->m;
    if (fault(f, OUR_DRAFT_ROLLED_TOO_FAR) && j->m > 0) {
        line->history[j->n - 2] = line->history[j->n - 1];
        line->n--;
    }
    const int32_t before = line->n;
    if (fault(f, OUR_WINDOW_ANEW) && j->m > 0) {
        method_pool pool = a->window.pool;
        a->window.pool = (method_pool){0};
        if (!method_window_open(&a->window, line)) return IUT_NO_MEMORY;
        method_pool_close(&a->window.pool);
        a->window.pool = pool;
    }
    for (int32_t i = 0; fault(f, OUR_CUT_STAYS) && i < a->spare && line->n - before < g; i++)
        line->history[line->n++] = a->cut[i], line->m++;
    iut_status s = g > 0 ? feed(a, j, line->n - 1 - a->held) : IUT_OK;
    while (s == IUT_OK && !ended && line->n - before < g + (fault(f, OUR_ONE_STEP_MORE) ? 1 : 0) && g > 0)
        s = draft_step(a, &ended);
    const bool whole = fault(f, OUR_OVERRUN_ALWAYS) || (j->how->sw[OUR_OVERRUN] && !fault(f, OUR_OVERRUN_NEVER));
    a->drafts = method_least(line->n - before, whole ? room : g);
    a->spare = line->n - before - a->drafts;
    memcpy(a->draft, line->history + before, (size_t)a->drafts * sizeof *a->draft);
    memcpy(a->cut, line->history + before + a->drafts, (size_t)a->spare * sizeof *a->cut);
    return s;
}

/* ---- The target's tree (OUR-09 to OUR-11). --------------------------------------- */

/* d_i; d_0 is the root, last of the history before the round. */
static int32_t draft(const method_rounds *a, const int32_t *history, int32_t before, int32_t i)
{
    return i > 0 ? a->draft[i - 1] : history[before - 1];
}

static int32_t fitting(const method_rounds *a, const method_job *j, int32_t count)
{
    const int32_t length = suffix_length(j), late = fault(j->fault, OUR_SUFFIX_POSITION_LATE) ? 1 : 0;
    const int32_t most = method_least(count, size_of(j, 3)), rows = (j->rows - 1 - a->drafts) / length;
    if (j->n + a->drafts + length > j->positions + late) return 0;
    return rows < most && fault(j->fault, OUR_SUFFIX_ROWS_ALL) ? 0 : method_least(most, rows);
}

/* The place of suffix i among the values of its key. */
static int32_t suffix_place(const method_rounds *a, const method_job *j, int32_t count, int32_t i)
{
    if (fault(j->fault, OUR_SUFFIX_OLDEST)) return i;
    return fault(j->fault, OUR_SUFFIX_REVERSED) ? count - 1 - i : count - a->suffixes + i;
}

static int32_t suffix_key(const method_rounds *a, const method_job *j)
{
    const bool early = fault(j->fault, OUR_SUFFIX_KEY_EARLY) && a->drafts > 0;
    return draft(a, j->history, j->n, a->drafts - (early ? 1 : 0));
}

iut_status method_rounds_propose(method_rounds *a, method_job *j, method_tree *t)
{
    const iut_status s = make_drafts(a, j);
    const int32_t n = a->drafts, length = suffix_length(j), key = suffix_key(a, j), count = a->window.pool.count[key];
    int32_t path[METHOD_ROWS];
    a->suffixes = fitting(a, j, count);
    method_tree_begin(t, draft(a, j->history, j->n, 0));
    memcpy(path, a->draft, (size_t)n * sizeof *path);
    for (int32_t i = 0; i < a->suffixes; i++) {
        memcpy(path + n, method_pool_value(&a->window.pool, key, suffix_place(a, j, count, i)),
               (size_t)length * sizeof *path);
        method_tree_candidate(t, path, n + length);
    }
    if (a->suffixes == 0 && n > 0) method_tree_candidate(t, path, n);
    if (fault(j->fault, OUR_TRUSTS_POOL) && a->suffixes > 0 && j->m == 0)
        t->trusted = t->candidates - 1, t->trusted_hits = n + 1;
    return s;
}

/* ---- Verification (OUR-13 to OUR-15). -------------------------------------------- */

void method_rounds_decide(const method_rounds *a, const method_job *j, const method_tree *t, method_run *run)
{
    const fault_point f = j->fault;
    const bool whole = a->suffixes > 0 && run->hits == t->length[run->winner],
               bonus = j->how->sw[OUR_SUFFIX_BONUS] ? !fault(f, OUR_BONUS_NEVER) : fault(f, OUR_BONUS_ALWAYS);
    if (whole && !bonus) run->count = run->hits;
}

/* ---- What the target says (OUR-12). ---------------------------------------------- */

/* Of the row behind i tokens of a candidate; without one, of the root. */
static int32_t answer(const method_tree *t, int32_t candidate, int32_t i)
{
    return method_tree_argmax(t, i > 0 ? t->first[candidate] + i - 1 : 0);
}

/* e_i, i from 1 on. */
static int32_t answer_to_draft(const method_tree *t, int32_t i)
{
    return answer(t, 0, i - 1);
}

/* ---- Inspiration (OUR-16). ------------------------------------------------------- */

static bool agrees(const method_rounds *a, const method_job *j, const method_tree *t, int32_t i)
{
    const bool tail = j->how->sw[OUR_INSPIRE] == OUR_INSPIRE_TAIL;
    for (int32_t k = tail && !fault(j->fault, OUR_TAIL_ASKS_KEY) ? i + 1 : i; k <= i + suffix_length(j) - 1; k++)
        if (a->draft[k - 1] != answer_to_draft(t, k)) return false;
    return true;
}

static void inspire_at(method_rounds *a, const method_job *j, const method_tree *t, int32_t i)
{
    int32_t value[METHOD_ROWS];
    const fault_point f = j->fault;
    if (!agrees(a, j, t, i) && !fault(f, OUR_INSPIRE_UNMATCHED)) return;
    for (int32_t k = 1; k <= suffix_length(j); k++) value[k - 1] = answer_to_draft(t, i + k);
    if (fault(f, OUR_INSPIRES_DRAFTS) && i + suffix_length(j) <= a->drafts) value[suffix_length(j) - 1] = a->draft[i + suffix_length(j) - 1];
    method_pool_add(&a->window.pool, fault(f, OUR_INSPIRE_KEY_ANSWER) ? answer_to_draft(t, i) : a->draft[i - 1],
                    value);
}

static void inspire(method_rounds *a, const method_job *j, const method_tree *t, const method_run *run)
{
    const fault_point f = j->fault;
    const int32_t how = j->how->sw[OUR_INSPIRE], l = method_least(run->hits, a->drafts),
                  last = a->drafts - size_of(j, 2) + 2 - (fault(f, OUR_INSPIRE_SHORT) ? 1 : 0);
    int32_t first = l + (how == OUR_INSPIRE_TAIL ? 1 : 2);
    if (fault(f, OUR_INSPIRES_ACCEPTED)) first = 1;
    if (fault(f, OUR_INSPIRE_LATE)) first++;
    if (how == OUR_INSPIRE_NONE) return;
    for (int32_t i = first; i <= last; i++)
        inspire_at(a, j, t, fault(f, OUR_INSPIRES_DOWNWARDS) ? first + last - i : i);
}

/* ---- Refinement (OUR-17 to OUR-19). ---------------------------------------------- */

static int32_t *value_at(method_pool *p, int32_t key, int32_t at)
{
    return p->value + ((int64_t)key * p->G + at) * p->length;
}

static int32_t newest_place(method_pool *p, int32_t key, const int32_t *value)
{
    int32_t at = p->count[key] - 1;
    while (at >= 0 && memcmp(value_at(p, key, at), value, (size_t)p->length * sizeof *value) != 0) at--;
    return at;
}

static void take_out(method_pool *p, int32_t key, int32_t at)
{
    const int32_t left = --p->count[key] - at;
    memmove(value_at(p, key, at), value_at(p, key, at + 1), (size_t)(left * p->length) * sizeof *p->value);
}

/* OUR-18: c becomes r. */
static void refine_value(method_pool *p, fault_point f, int32_t key, const int32_t *c, const int32_t *r)
{
    const size_t size = (size_t)p->length * sizeof *c;
    const int32_t was = newest_place(p, key, c), is = newest_place(p, key, r);
    if (memcmp(c, r, size) == 0 && !fault(f, OUR_REFINE_SAME)) return;
    if (was < 0 && fault(f, OUR_REFINE_EVICTED)) {
        if (p->count[key] > 0) memcpy(value_at(p, key, 0), r, size);
        return;
    }
    if (was < 0 || fault(f, OUR_REFINE_NEWEST) || fault(f, OUR_REFINE_SAME)) {
        if (was >= 0) take_out(p, key, was);
        method_pool_add(p, key, r);
        return;
    }
    memcpy(value_at(p, key, was), r, size);
    if (is >= 0 && !fault(f, OUR_REFINE_BOTH_STAY))
        take_out(p, key, (was < is) != fault(f, OUR_REFINE_NEWER_GOES) ? was : is);
}

static int32_t refinements(const method_rounds *a, const method_job *j, const method_run *run)
{
    const fault_point f = j->fault;
    const bool refused = run->hits < a->drafts, few = j->how->sw[OUR_REFINE_REFUSED] == OUR_REFINE_FEW;
    if (fault(f, OUR_REFINE_ACCEPTED) && refused) return 0;
    return (few != fault(f, OUR_REFINE_FEW_ALL)) && refused ? a->suffixes / suffix_length(j) : a->suffixes;
}

static void refine(method_rounds *a, const method_job *j, const method_tree *t, const method_run *run, int32_t before)
{
    const fault_point f = j->fault;
    method_pool *p = &a->window.pool;
    const int32_t n = refinements(a, j, run), how = j->how->sw[OUR_REFINE], length = suffix_length(j),
                  key = draft(a, j->history, before, fault(f, OUR_REFINE_ROOT) ? 0 : a->drafts),
                  shifted = fault(f, OUR_REFINED_SHIFTED) ? 1 : 0;
    for (int32_t i = 0; i < n && how != OUR_REFINE_NONE; i++) {
        int32_t refined[WINDOW_N];
        const int32_t *suffix = t->token + t->first[i] + a->drafts;
        for (int32_t k = 0; k < length; k++)
            refined[k] = answer(t, i, method_least(a->drafts + k + shifted, t->length[i]));
        for (int32_t k = a->drafts; fault(f, OUR_ANSWERS_DRAWN) && run->hits >= a->drafts && k < run->count; k++)
            if (k < a->drafts + length && (k == a->drafts || i == run->winner)) refined[k - a->drafts] = run->token[k];
        if (how == OUR_REFINE_VALUE) {
            refine_value(p, f, key, suffix, refined);
            continue;
        }
        const int32_t at = fault(f, OUR_NEWEST_FROM_OLDEST) ? i : p->count[key] - n + i;
        if (at >= 0 && at < p->count[key]) memcpy(value_at(p, key, at), refined, (size_t)length * sizeof *refined);
    }
}

iut_status method_rounds_observe(method_rounds *a, method_job *j, const method_tree *t, const method_run *run,
                                 const method_outcome *o)
{
    const fault_point f = j->fault;
    const bool still = fault(f, OUR_LAST_ROUND_STILL) && o->ended;
    if (fault(f, OUR_REFINES_FIRST)) refine(a, j, t, run, o->before);
    if (!still) inspire(a, j, t, run);
    if (!still && !fault(f, OUR_REFINES_FIRST)) refine(a, j, t, run, o->before);
    return cut_to(a, j, o->before + method_least(run->hits, a->drafts));
}
