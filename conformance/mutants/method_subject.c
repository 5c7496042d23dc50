/* method_subject.c - see method_subject.h. A step is the same for all methods: a tree, its
 * forward, its verification, what the method learns of it, and what is emitted and kept. */
#include "conformance/mutants/method_subject.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/mutants/method_window.h"
#include "ref/num/fixed.h"

typedef struct {
    method_job *j;
    method_tree tree;
    method_run run;
    method_window window;
    int32_t left;               /* tokens of a Jacobi block that are not final */
    int32_t guess[METHOD_ROWS]; /* left - 1 of them */
} state;

uint8_t method_claims(manner how)
{
    switch (how) {
    case MANNER_ENGINE:
    case MANNER_ENGINE_STALE:
        return 0;
    case MANNER_METHODS:
        return IUT_JACOBI | IUT_LOOKAHEAD | IUT_LOOKUP;
    case MANNER_JACOBI:
    case MANNER_JACOBI_WARM:
        return IUT_JACOBI;
    case MANNER_LOOKUP:
    case MANNER_ORIGINAL:
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
    if (b->gamma != 0) return "a method has no draft model: gamma is 0 then";
    if (greedy && !cold && !fault(f, JAC_WARM) && !fault(f, LAH_WARM))
        return "this method decodes greedily; the temperature has to be 0";
    if (b->method == IUT_JACOBI && b->sizes[0] < 1) return "jacobi: the block has no token";
    if (b->method == IUT_LOOKUP && (b->sizes[0] < 1 || b->sizes[1] < 1))
        return "lookup: n-gram and drafts have to be 1 or more";
    if (b->method == IUT_LOOKAHEAD) return method_window_refusal(b->sizes);
    return b->method == IUT_JACOBI || b->method == IUT_LOOKUP ? NULL
                                                              : "there is no such method";
}

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* ---- Jacobi -------------------------------------------------------------------------- */

/* JAC-04 to JAC-06, the initialisation `prompt`. */
static void begin_block(state *a)
{
    const method_job *j = a->j;
    int32_t most = METHOD_ROWS;
    if (!fault(j->fault, RUN_OVERRUN)) most = least(most, j->k - j->m);
    a->left = least(j->sizes[0], most);
    for (int32_t i = 0; i + 1 < a->left; i++) {
        const uint64_t U = method_word(j, j->m, AS_INIT, i);
        a->guess[i] = j->history[as_target(U, (uint64_t)j->prompt)];
    }
}

static void propose_jacobi(state *a)
{
    if (a->left == 0) begin_block(a);
    method_tree_begin(&a->tree, a->j->history[a->j->n - 1]);
    if (a->left > 1) method_tree_candidate(&a->tree, a->guess, a->left - 1);
}

/* Faults that emit answers which the guess did not confirm. */
static void emit_unconfirmed(state *a)
{
    const fault_point f = a->j->fault;
    int32_t more = 0;
    if (fault(f, JAC_C_PLUS_2)) more = 1;
    if (fault(f, JAC_UNCONFIRMED) && a->left < a->j->sizes[0]) more = a->left; /* 2nd time */
    for (; more > 0 && a->run.count < a->left; more--) {
        const int32_t c = a->run.count++;
        a->run.token[c] = method_tree_argmax(&a->tree, c);
        a->run.hits = c;
    }
}

/* JAC-03. */
static void observe_jacobi(state *a)
{
    const int32_t before = a->left;
    emit_unconfirmed(a);
    const int32_t first = a->run.count;
    for (int32_t i = first; i + 1 < before; i++)
        a->guess[i - first] = method_tree_argmax(&a->tree, i);
    a->left = before > first ? before - first : 0;
    if (fault(a->j->fault, JAC_BLOCK_LOSES) && a->left == 0 && before > 1 && first > 1) {
        a->run.count--; /* the block's last token, as the next one begins */
        a->run.token[a->run.count - 1] = a->run.token[a->run.count];
    }
}

/* ---- Prompt lookup ------------------------------------------------------------------- */

/* LKP-01, LKP-02 or LKP-03: where the drafts begin; L: nowhere. */
static int32_t find(const method_job *j, int32_t *length)
{
    const int32_t L = j->n, n = least(j->sizes[0], L - 1);
    const int32_t *t = j->history;
    for (int32_t l = n; l >= 1; l--)
        for (int32_t i = 0; i + l < L; i++) {
            const int32_t s = i + l;
            if (memcmp(t + i, t + L - l, (size_t)l * sizeof *t) != 0) continue;
            if (j->manner == MANNER_ORIGINAL && (s + j->sizes[1] > L || s >= L - l)) continue;
            *length = l;
            return s;
        }
    return L;
}

/* LKP-03 to LKP-05. */
static void propose_lookup(state *a)
{
    const method_job *j = a->j;
    method_tree *t = &a->tree;
    int32_t l = 0, s = find(j, &l), n = least(j->sizes[1], j->n - s);
    bool sure = fault(j->fault, LKP_LONGEST_TRUSTED) && l == j->sizes[0];
    if (fault(j->fault, LKP_SELF_MATCH) && s == j->n && j->m > 0) {
        l = least(j->sizes[0], j->n - 1); /* "found": the last tokens themselves */
        s = j->n - l;
        n = least(j->sizes[1], l);
        sure = true;
    }
    if (!fault(j->fault, RUN_OVERRUN)) n = least(n, j->k - j->m - 1);
    n = least(n, METHOD_ROWS - 1);
    for (int32_t i = 0; i < n && j->manner != MANNER_ORIGINAL; i++)
        if (j->history[s + i] == j->eos && !fault(j->fault, RUN_EOS_INSIDE)) n = i;
    method_tree_begin(t, j->history[j->n - 1]);
    if (n < 1) return;
    method_tree_candidate(t, j->history + s, n);
    if (sure) t->trusted = 0, t->trusted_hits = 1;
}

/* ---- A step -------------------------------------------------------------------------- */

static void propose(state *a)
{
    if (a->j->method == IUT_JACOBI)
        propose_jacobi(a);
    else if (a->j->method == IUT_LOOKUP)
        propose_lookup(a);
    else
        method_window_propose(&a->window, a->j, &a->tree);
}

static iut_status observe(state *a)
{
    if (a->j->method == IUT_JACOBI)
        observe_jacobi(a);
    else if (a->j->method == IUT_LOOKAHEAD)
        return method_window_observe(&a->window, a->j, &a->tree, &a->run);
    return IUT_OK;
}

/* STOP-01, STOP-02: how many tokens of the run are emitted; true when the stream ends. */
static bool emit(state *a, int32_t *out, int32_t *emitted)
{
    method_job *j = a->j;
    const int32_t count = least(a->run.count, METHOD_POSITIONS - j->n);
    for (*emitted = 0; *emitted < count;) {
        const int32_t i = (*emitted)++, x = a->run.token[i];
        if (j->m < j->k) out[j->m] = x;
        j->m++;
        j->history[j->n++] = x;
        if (x == j->eos && !(fault(j->fault, RUN_EOS_INSIDE) && i + 1 < count)) return true;
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
    int32_t emitted = 0;
    propose(a);
    iut_status s = method_tree_forward(a->j, &a->tree);
    if (s == IUT_OK) s = method_verify(a->j, &a->tree, &a->run);
    if (s == IUT_OK) s = observe(a);
    if (s != IUT_OK) return s;
    if (a->j->manner != MANNER_NO_BONUS) *told = a->run.count - 1;
    *ended = emit(a, out, &emitted);
    return keep(a, emitted);
}

/* Tokens of a step. */
static int32_t longest(const method_job *j)
{
    return j->method == IUT_JACOBI      ? j->sizes[0]
           : j->method == IUT_LOOKAHEAD ? j->sizes[1]
                                        : j->sizes[1] + 1;
}

iut_status method_decode(method_job *j, int32_t *out, int32_t *told)
{
    state *a = calloc(1, sizeof *a);
    bool ended = false;
    iut_status s = IUT_OK;
    if (!a) return method_fail(j, IUT_NO_MEMORY, "out of memory");
    a->j = j;
    bool ok = method_tree_open(&a->tree, j->V);
    if (j->method == IUT_LOOKAHEAD) ok = method_window_open(&a->window, j) && ok;
    if (!ok) s = method_fail(j, IUT_NO_MEMORY, "out of memory");
    while (s == IUT_OK && !ended) {
        if (fault(j->fault, RUN_WHOLE_STEPS) && j->m > 0 && j->m + longest(j) > j->k) break;
        s = step(a, out, told++, &ended);
    }
    if (j->method == IUT_LOOKAHEAD) method_window_close(&a->window, j);
    method_tree_close(&a->tree);
    free(a);
    return s;
}
