/* method_subject.c - see method_subject.h. A step is the same for all methods: a tree, its
 * forward, its verification, what the method learns of it, and what is emitted and kept. */
#include "conformance/subjects/mutants/model/method_subject.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/methods/ouroboros.h"
#include "conformance/subjects/mutants/model/method_ouroboros.h"
#include "conformance/subjects/mutants/model/method_steps.h"
#include "conformance/subjects/mutants/model/method_trace.h"
#include "conformance/subjects/mutants/model/penalties.h"

typedef struct {
    method_job *j;
    method_tree tree;
    method_run run;
    jacobi_state jacobi;
    method_window window;
    method_rounds rounds;
} state;

/* ---- Engines ------------------------------------------------------------------------- */

uint8_t method_claims(manner how)
{
    switch (how) {
    case MANNER_ENGINE:
    case MANNER_ENGINE_STALE:
    case MANNER_ENGINE_TOTAL:
    case MANNER_ENGINE_FEWER:
    case MANNER_ENGINE_SEED_32:
    case MANNER_ENGINE_STRIDED:
    case MANNER_ENGINE_PRUNED:
    case MANNER_ENGINE_PRUNED_FURTHER:
    case MANNER_ENGINE_PRUNED_DOUBLE:
    case MANNER_ENGINE_Q8:
    case MANNER_ENGINE_Q4:
    case MANNER_ENGINE_LLAMACPP:
    case MANNER_ENGINE_MLX:
    case MANNER_ENGINE_VLLM:
    case MANNER_ENGINE_TIES_KEPT:
    case MANNER_ENGINE_TIES_ANY:
    case MANNER_ENGINE_MIXED:
    case MANNER_ENGINE_PENALTY_OUTPUT:
    case MANNER_ENGINE_PENALTY_WINDOW:
    case MANNER_ENGINE_PENALTY_SOFT:
        return 0;
    case MANNER_ENGINE_OWN_END:
        return IUT_JACOBI | IUT_LOOKUP;
    case MANNER_METHODS:
        return IUT_JACOBI | IUT_LOOKAHEAD | IUT_LOOKUP;
    case MANNER_JACOBI:
    case MANNER_JACOBI_WARM:
        return IUT_JACOBI;
    case MANNER_OUROBOROS:
    case MANNER_OUROBOROS_CODE:
    case MANNER_OUROBOROS_WARM:
    case MANNER_OUROBOROS_RING:
    case MANNER_OUROBOROS_BARE:
        return IUT_OUROBOROS;
    case MANNER_LOOKUP:
    case MANNER_ORIGINAL:
    case MANNER_LOOKUP_MISSES:
        return IUT_LOOKUP;
    default:
        return IUT_LOOKAHEAD;
    }
}

uint8_t method_greedy_claims(manner how)
{
    if (how == MANNER_LOOKAHEAD_COLD) return IUT_LOOKAHEAD;
    return how == MANNER_JACOBI_WARM ? 0 : method_claims(how) & IUT_JACOBI;
}

const char *method_refusal(fault_point f, manner how, const iut_generate_batch *b)
{
    const bool cold = b->sampling.temperature == 0,
               greedy = method_greedy_claims(how) & (uint8_t)b->method;
    if (b->method == IUT_OUROBOROS) return *b->draft ? method_rounds_refusal(b->gamma, b->sizes) : "no draft model";
    if (b->gamma != 0) return "a method has no draft model: gamma is 0 then";
    if (greedy && !cold && !fault(f, JAC_WARM) && !fault(f, LAH_WARM))
        return "this method decodes greedily; the temperature has to be 0";
    if (b->method == IUT_JACOBI && b->sizes[0] < 1) return "jacobi: the block has no token";
    if (b->method == IUT_LOOKUP && (b->sizes[0] < 1 || b->sizes[1] < 1))
        return "the longest n-gram and the drafts have to be 1 or more";
    if (b->method == IUT_LOOKAHEAD) return method_window_refusal(b->sizes);
    return b->method == IUT_JACOBI || b->method == IUT_LOOKUP ? NULL
                                                              : "there is no such method";
}

/* The preset `paper` but for what the manner is about. */
static void choose_lookahead(manner how, int32_t *sw)
{
    const bool stale = how == MANNER_STALE_KEY;
    sw[LAH_WARMUP] = !stale && how != MANNER_NO_WARMUP;
    sw[LAH_POOL] = how == MANNER_RING_POOL ? LAH_POOL_RING : LAH_POOL_LRU;
    sw[LAH_KEY] = stale ? LAH_KEY_STALE : LAH_KEY_ROOT;
    sw[LAH_BONUS] = how != MANNER_NO_BONUS;
    sw[LAH_WINDOW] = stale ? LAH_WINDOW_SAMPLED : LAH_WINDOW_ARGMAX;
}

/* The preset `paper`, or `code`; a bare one neither inspires nor refines. */
static oracle_method ouroboros_of(fault_point f, manner how, const iut_generate_batch *b)
{
    oracle_method m = {.name = ORACLE_OUROBOROS, .size = {b->gamma, b->sizes[0], b->sizes[1], b->sizes[2]}};
    if (fault(f, OUR_N_IS_K) && b->sizes[2] >= 2) m.size[2] = b->sizes[2], m.size[3] = b->sizes[1];
    if (fault(f, OUR_GAMMA_IN_PHRASES)) m.size[0] = method_least(b->gamma * b->sizes[1], 10); /* a tree has METHOD_ROWS rows */
    oracle_preset(&m, how == MANNER_OUROBOROS_CODE ? "code" : "paper");
    if (how == MANNER_OUROBOROS_BARE) m.sw[OUR_INSPIRE] = OUR_INSPIRE_NONE, m.sw[OUR_REFINE] = OUR_REFINE_NONE;
    return m;
}

oracle_method method_of_engine(fault_point f, manner how, const iut_generate_batch *b)
{
    if (b->method == IUT_OUROBOROS) return ouroboros_of(f, how, b);
    oracle_method m = {.name = b->method == IUT_JACOBI      ? ORACLE_JACOBI
                               : b->method == IUT_LOOKAHEAD ? ORACLE_LOOKAHEAD
                                                            : ORACLE_LOOKUP};
    for (int i = 0; i < 3; i++) m.size[i] = b->sizes[i];
    if (m.name == ORACLE_JACOBI) m.sw[JACOBI_INIT] = JACOBI_PROMPT;
    if (m.name == ORACLE_LOOKAHEAD) choose_lookahead(how, m.sw);
    if (m.name == ORACLE_LOOKUP)
        m.sw[LKP_PARTIAL] = m.sw[LKP_CUT_AT_EOS] = how != MANNER_ORIGINAL;
    return m;
}

/* ---- A step -------------------------------------------------------------------------- */

static bool has_window(const state *a)
{
    return a->j->how->name == ORACLE_LOOKAHEAD;
}

static bool has_rounds(const state *a)
{
    return a->j->how->name == ORACLE_OUROBOROS;
}

/* The window, and whose it is; NULL: there is none. */
static const method_window *window_of(const state *a)
{
    return has_rounds(a) ? &a->rounds.window : has_window(a) ? &a->window : NULL;
}

static const method_job *owner_of(const state *a)
{
    return has_rounds(a) ? &a->rounds.line : a->j;
}

/* CLM-18: each row by the tokens before it, those of the tree included. */
static bool penalise_tree(const method_job *j, const method_tree *t)
{
    int32_t path[METHOD_POSITIONS + METHOD_ROWS];
    if (!j->processors) return true;
    memcpy(path, j->history, (size_t)j->n * sizeof *path);
    for (int32_t r = 0; r < t->rows; r++) {
        int32_t n = j->n, depth = 0;
        for (int32_t up = r; up > 0; up = t->parent[up]) depth++;
        for (int32_t up = r, at = n + depth; up > 0; up = t->parent[up]) path[--at] = t->token[up];
        const bool late = fault(j->fault, ENGINE_PENALTY_LATE) && depth > 0;
        if (!fault(j->fault, ENGINE_PENALTY_ROOT)) n += depth - late;
        if (!penalise(j->manner, j->processors, path, j->prompt, n, t->logits + (int64_t)r * t->V, t->V)) return false;
    }
    return true;
}

static iut_status propose(state *a)
{
    if (has_rounds(a)) return method_rounds_propose(&a->rounds, a->j, &a->tree);
    if (has_window(a))
        method_window_propose(&a->window, a->j, &a->tree);
    else if (a->j->how->name == ORACLE_JACOBI)
        jacobi_propose(&a->jacobi, a->j, &a->tree);
    else
        lookup_propose(a->j, &a->tree);
    return IUT_OK;
}

static iut_status verify(state *a)
{
    const bool paths = has_window(a) && method_window_verifies_paths(&a->window, a->j);
    iut_status s = method_verify(a->j, &a->tree, paths, &a->run);
    if (s == IUT_OK && a->j->how->name == ORACLE_JACOBI)
        jacobi_observe(&a->jacobi, a->j, &a->tree, &a->run);
    if (s == IUT_OK && has_rounds(a)) method_rounds_decide(&a->rounds, a->j, &a->tree, &a->run);
    if (s == IUT_OK && has_window(a))
        s = method_window_answer(&a->window, a->j, &a->tree, &a->run);
    return s;
}

/* Is place i of the run one of a suffix's tokens, or behind them? */
static bool in_suffix(const state *a, int32_t i)
{
    return has_rounds(a) && a->rounds.suffixes > 0 && i >= a->rounds.drafts;
}

/* STOP-01, STOP-02. */
static bool emit(state *a, int32_t *out, int32_t *emitted)
{
    method_job *j = a->j;
    const int32_t count = method_least(a->run.count, METHOD_POSITIONS - j->n);
    for (*emitted = 0; *emitted < count;) {
        const int32_t i = (*emitted)++, x = a->run.token[i];
        if (j->m < j->k) out[j->m] = x;
        j->m++;
        j->history[j->n++] = x;
        const bool passed = fault(j->fault, RUN_EOS_INSIDE) || (fault(j->fault, OUR_SUFFIX_RUNS_ON) && in_suffix(a, i));
        if (x == j->eos && !(passed && i + 1 < count)) return true;
        if (j->m == j->k && !fault(j->fault, RUN_OVERRUN)) return true;
    }
    return j->m >= j->k;
}

/* LAH-30, JAC-10: the root and the rows of the emitted tokens but the last. */
static iut_status keep(state *a, int32_t emitted)
{
    const fault_point f = a->j->fault;
    int32_t n = emitted - 1;
    const bool more = a->tree.candidates > 0 && n < a->tree.length[a->run.winner];
    if (fault(f, RUN_REFUSED_KEPT) && n == a->run.hits && more) n++;
    if (fault(f, RUN_KEPT_SHORT) && n > 0) n--;
    return method_tree_commit(a->j, &a->run, n);
}

static iut_status step(state *a, int32_t *out, int32_t *told, bool *ended)
{
    method_job *j = a->j;
    method_outcome o = {.before = j->n, .m = j->m};
    iut_status s = propose(a);
    if (s == IUT_OK) s = method_tree_forward(j, &a->tree);
    if (s == IUT_OK && !penalise_tree(j, &a->tree)) s = method_fail(j, IUT_NO_MEMORY, "out of memory");
    if (s == IUT_OK) s = verify(a);
    if (s != IUT_OK) return s;
    if (j->manner != MANNER_NO_BONUS && j->manner != MANNER_LOOKUP_MISSES) *told = a->run.count - 1;
    *ended = o.ended = emit(a, out, &o.emitted);
    if (has_window(a)) method_window_observe(&a->window, j, &a->tree, &a->run, &o);
    if (has_rounds(a)) s = method_rounds_observe(&a->rounds, j, &a->tree, &a->run, &o);
    method_trace_step(j, &a->tree, &a->run, &o, window_of(a), owner_of(a));
    if (has_rounds(a) && j->trace)
        oracle_append(&j->trace->step[j->trace->steps - 1].drafts, a->rounds.draft, a->rounds.drafts);
    return s == IUT_OK ? keep(a, o.emitted) : s;
}

/* Tokens of a step. */
static int32_t longest(const method_job *j)
{
    const int32_t *z = j->how->size;
    return j->how->name == ORACLE_JACOBI      ? z[0]
           : j->how->name == ORACLE_OUROBOROS ? z[0] + 2 * z[2] - 1
           : j->how->name == ORACLE_LOOKAHEAD ? z[1]
                                              : z[1] + 1;
}

iut_status method_decode(method_job *j, int32_t *out, int32_t *told)
{
    state *a = calloc(1, sizeof *a);
    bool ended = j->k == 0; /* STOP-08 */
    iut_status s = IUT_OK;
    if (!a) return method_fail(j, IUT_NO_MEMORY, "out of memory");
    a->j = j;
    bool ok = method_tree_open(&a->tree, j->V);
    if (has_window(a)) ok = method_window_open(&a->window, j) && ok;
    if (has_rounds(a)) ok = method_rounds_open(&a->rounds, j) && ok;
    if (!ok) s = method_fail(j, IUT_NO_MEMORY, "out of memory");
    if (ok && !ended) method_trace_start(j, window_of(a), owner_of(a));
    while (s == IUT_OK && !ended) {
        if (fault(j->fault, RUN_WHOLE_STEPS) && j->m > 0 && j->m + longest(j) > j->k) break;
        s = step(a, out, told++, &ended);
    }
    if (has_window(a)) method_window_close(&a->window, j);
    if (has_rounds(a)) method_rounds_close(&a->rounds, j);
    method_tree_close(&a->tree);
    free(a);
    return s;
}
