/* method_collect.c - what enters the pool of lookahead decoding: LAH-13, LAH-15 to LAH-17; see
 * method_window.h. */
#include "conformance/subjects/mutants/model/method_window.h"

/* The n-gram that begins at that place of the history. */
void method_collect_ngram(method_window *w, const method_job *j, int32_t first)
{
    method_pool_add(&w->pool, j->history[first], j->history + first + 1);
}

/* LAH-16; column 0 of row 0 is what is stored there. */
static int32_t key_of_column_0(const method_window *w, const method_job *j,
                               const method_run *run, int32_t root)
{
    const fault_point f = j->fault;
    const int32_t key = j->how->sw[LAH_KEY];
    if (key == LAH_KEY_STALE || fault(f, LAH_KEY_STORED))
        return fault(f, LAH_STALE_IS_ROOT) ? root : w->token[0][0];
    return key == LAH_KEY_NEXT && !fault(f, LAH_NEXT_IS_ROOT) ? run->token[0] : root;
}

/* LAH-13. */
void method_collect_window(method_window *w, const method_job *j, const method_run *run,
                           int32_t root)
{
    const bool diagonal = j->manner == MANNER_DIAGONAL || fault(j->fault, LAH_DIAGONAL);
    for (int32_t i = 0; i < w->W; i++) {
        int32_t value[WINDOW_N] = {0};
        const int32_t column = diagonal ? (i + 1) % w->W : i; /* for all but key and answer */
        const int32_t key = i > 0 ? w->token[0][i] : key_of_column_0(w, j, run, root);
        for (int32_t l = 1; l < w->rows; l++) value[l - 1] = w->token[l][column];
        for (int32_t l = w->rows; l < w->N; l++) value[l - 1] = w->new[i];
        method_pool_add(&w->pool, key, value);
    }
}

/* LAH-17. */
void method_collect_output(method_window *w, const method_job *j, const method_outcome *o)
{
    for (int32_t n = o->before + 1; n <= j->n; n++) {
        const bool last = n == j->n && o->ended;
        if (last && !fault(j->fault, LAH_OUTPUT_END)) continue;
        if (n >= w->N) method_collect_ngram(w, j, n - w->N);
    }
}
