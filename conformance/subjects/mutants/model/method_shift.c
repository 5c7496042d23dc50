/* method_shift.c - how the window of lookahead decoding moves on after a steady step: LAH-23 to
 * LAH-27; see method_window.h. */
#include <string.h>

#include "conformance/subjects/mutants/model/method_window.h"

typedef int32_t row[WINDOW_COLUMNS];

/* A token drawn from the history before the step. */
static int32_t from_history(const method_job *j, const method_outcome *o, int32_t index)
{
    const int32_t n = fault(j->fault, LAH_PADS_PROMPT) ? j->prompt : o->before;
    return method_drawn_from(j, j->history, n, o->m, AS_WINDOW, index);
}

/* LAH-27. */
static void filter(method_window *w, const method_job *j, const method_outcome *o)
{
    for (int32_t i = 0; i < w->W; i++)
        if (w->new[i] == j->eos) w->new[i] = from_history(j, o, w->N * w->W + i);
}

/* LAH-24: of A_l. */
static void pad(const method_window *w, const method_job *j, const method_outcome *o, int32_t k,
                int32_t l, row A)
{
    const int32_t lost = method_least(k, w->W), kept = w->W - lost;
    memmove(A, A + lost, (size_t)kept * sizeof *A);
    for (int32_t i = 0; i < lost; i++) A[kept + i] = from_history(j, o, (1 + l) * w->W + i);
}

/* LAH-25, once. */
static void rotate(const method_window *w, const method_job *j, row *A)
{
    const int32_t last = w->N - 2;
    row first;
    memcpy(first, A[0], sizeof first);
    memmove(A, A + 1, (size_t)last * sizeof *A);
    memcpy(A[last], fault(j->fault, LAH_ROTATES_OLD) ? first : A[0], sizeof first);
}

/* LAH-23: row 0 becomes A_0, of which column 0 is stored only (LAH-26). */
static void move_on(method_window *w, row *A)
{
    for (int32_t l = 0; l < w->N - 1; l++)
        memcpy(w->token[l], A[l], (size_t)w->W * sizeof **w->token);
}

/* A_l is the row below R_l, and the answers the last. */
static void gather(const method_window *w, row *A)
{
    memcpy(A, w->token + 1, (size_t)(w->N - 2) * sizeof *A);
    memcpy(A[w->N - 2], w->new, sizeof *A);
}

static void shift_again(method_window *w)
{
    row A[WINDOW_N];
    gather(w, A);
    move_on(w, A);
}

void method_shift(method_window *w, const method_job *j, int32_t k, const method_outcome *o)
{
    const fault_point f = j->fault;
    const int32_t *sw = j->how->sw;
    row A[WINDOW_N];
    if (sw[LAH_EOS_FILTER] && method_is_warm(j) && !fault(f, LAH_EOS_STAYS)) filter(w, j, o);
    gather(w, A);
    const int32_t stored = A[0][0];
    for (int32_t l = 0; l < w->N - 1 && sw[LAH_SHIFT] == LAH_SHIFT_ABSPAD; l++)
        pad(w, j, o, k, l, A[l]);
    for (int32_t i = 0; i < k && sw[LAH_SHIFT] == LAH_SHIFT_ROWROT; i++) rotate(w, j, A);
    move_on(w, A);
    if (fault(f, LAH_STORED_EARLY)) w->token[0][0] = stored;
    const bool by_k = j->manner == MANNER_SHIFTS_TWICE || fault(f, LAH_SHIFTS_BY_K);
    const int32_t more = by_k ? k : fault(f, LAH_SHIFTS_TWICE) ? 1 : 0;
    for (int32_t i = 0; i < more; i++) shift_again(w);
}
