/* jacobi.c - chapter 7, clause by clause; see methods.h. */
#include "conformance/oracle/law/lane.h"
#include "conformance/oracle/methods/decoding.h"

/* JAC-06: the m - 1 tokens that a block is guessed to begin with. */
static void fresh_guess(oracle_decoding *d, int32_t m, oracle_list *guess)
{
    const oracle_method *x = d->method;
    const int32_t s = oracle_position(d), root = d->history.t[d->history.n - 1];
    for (int32_t j = 0; j < m - 1; j++) switch (x->sw[JACOBI_INIT]) {
        case JACOBI_PAD:
            oracle_push(guess, x->size[1]);
            break;
        case JACOBI_LAST:
            oracle_push(guess, root);
            break;
        case JACOBI_PROMPT:
            oracle_push(guess, oracle_drawn_from(d, d->q->prompt, d->q->n, LANE_INIT, s, j));
            break;
        case JACOBI_VOCABULARY: /* JAC-11 */
            oracle_push(guess, oracle_drawn_from(d, NULL, d->lm->V, LANE_INIT, s, j));
            break;
        default:
            oracle_push(guess, x->given[j < x->given_n ? j : x->given_n - 1]);
        }
}

/* JAC-01 to JAC-03: from the guess to the next one, and the run. */
static void jacobi_step(oracle_decoding *d, oracle_list *guess)
{
    oracle_step *s = oracle_begin_step(d);
    oracle_list answer = {0};
    oracle_chain_rows(guess, &s->rows);
    if (guess->n) oracle_add_copy(&s->candidates, guess);
    for (int32_t i = 0; i < s->rows.n; i++)
        oracle_push(&answer, oracle_path_argmax(d, &s->rows.l[i]));
    int32_t c = 0;
    while (c < guess->n && answer.t[c] == guess->t[c]) c++;
    s->accepted = c;
    oracle_append(&s->run, answer.t, c + 1);
    oracle_list_free(guess);
    for (int32_t i = c + 1; i + 1 < answer.n; i++) oracle_push(guess, answer.t[i]);
    oracle_emit(d, s);
    oracle_list_free(&answer);
}

void oracle_run_jacobi(oracle_decoding *d)
{
    while (!d->ended) {
        const int32_t left = d->q->budget - oracle_position(d);
        int32_t m = oracle_at_most(d->method->size[0], left); /* JAC-05 */
        if (d->q->rows) m = oracle_at_most(m, d->q->rows);
        const int32_t end = d->history.n + m; /* JAC-04 */
        oracle_list guess = {0};
        fresh_guess(d, m, &guess);
        while (!d->ended && d->history.n < end) jacobi_step(d, &guess);
        oracle_list_free(&guess);
    }
}
