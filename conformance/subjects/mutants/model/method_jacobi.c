/* method_jacobi.c - Jacobi decoding, chapter 7; see method_subject.h. */
#include "conformance/subjects/mutants/model/method_steps.h"

/* JAC-06: entry i of a fresh guess. */
static int32_t fresh(const method_job *j, int32_t i)
{
    const oracle_method *m = j->how;
    const int32_t at = fault(j->fault, JAC_INIT_AT_0) ? 0 : j->m;
    switch (m->sw[JACOBI_INIT]) {
    case JACOBI_PAD:
        return m->size[1];
    case JACOBI_LAST:
        return j->history[j->n - 1];
    case JACOBI_PROMPT:
        return method_drawn_from(j, j->history, j->prompt, at, AS_INIT, i);
    case JACOBI_VOCABULARY:
        return method_drawn_from(j, NULL, j->V - (fault(j->fault, JAC_VOCABULARY_SHORT) ? 1 : 0), at, AS_INIT, i);
    default:
        if (fault(j->fault, JAC_GIVEN_AGAIN)) return m->given[i % m->given_n];
        return m->given[method_least(i, m->given_n - 1)];
    }
}

/* JAC-04, JAC-05. */
static void begin_block(jacobi_state *a, const method_job *j)
{
    a->left = method_least(j->how->size[0], j->rows);
    if (!fault(j->fault, RUN_OVERRUN)) a->left = method_least(a->left, j->k - j->m);
    a->guessed = a->left - 1;
    if (fault(j->fault, JAC_GUESSES_ALL)) a->guessed = method_least(a->left, METHOD_ROWS - 1);
    for (int32_t i = 0; i < a->guessed; i++) a->guess[i] = fresh(j, i);
}

/* JAC-01. */
void jacobi_propose(jacobi_state *a, const method_job *j, method_tree *t)
{
    if (a->left == 0) begin_block(a, j);
    for (int32_t i = 0; i < a->guessed && fault(j->fault, JAC_ALWAYS_FRESH); i++)
        a->guess[i] = fresh(j, i);
    method_tree_begin(t, j->history[j->n - 1]);
    if (a->guessed > 0) method_tree_candidate(t, a->guess, a->guessed);
}

/* Faults that emit answers which the guess did not confirm. */
static void emit_unconfirmed(const jacobi_state *a, const method_job *j, const method_tree *t,
                             method_run *run)
{
    int32_t more = 0;
    if (fault(j->fault, JAC_C_PLUS_2)) more = 1;
    if (fault(j->fault, JAC_UNCONFIRMED) && a->left < j->how->size[0]) more = a->left;
    for (; more > 0 && run->count < a->left; more--) {
        const int32_t c = run->count++;
        run->token[c] = method_tree_argmax(t, c);
        run->hits = c;
    }
}

/* JAC-03. */
void jacobi_observe(jacobi_state *a, const method_job *j, const method_tree *t, method_run *run)
{
    const fault_point f = j->fault;
    const int32_t before = a->left;
    emit_unconfirmed(a, j, t, run);
    const int32_t first = run->count, off = fault(f, JAC_GUESS_LATE) ? 1 : 0;
    for (int32_t i = first; i < a->guessed; i++)
        a->guess[i - first] = method_tree_argmax(t, i - off);
    a->guessed = a->guessed > first ? a->guessed - first : 0;
    a->left = before > first ? before - first : 0;
    if (fault(f, JAC_BLOCK_LOSES) && a->left == 0 && before > 1 && first > 1) {
        run->count--; /* the block's last token, as the next one begins */
        run->token[run->count - 1] = run->token[run->count];
    }
}
