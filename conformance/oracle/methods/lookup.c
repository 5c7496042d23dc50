/* lookup.c - chapter 9, clause by clause; see methods.h. */
#include "conformance/oracle/methods/decoding.h"

/* Do the n tokens from place i equal the last n? */
static bool matches(const int32_t *t, int32_t L, int32_t n, int32_t i)
{
    for (int32_t j = 0; j < n; j++)
        if (t[i + j] != t[L - n + j]) return false;
    return true;
}

void oracle_lookup(const int32_t *t, int32_t L, int32_t longest, int32_t drafts, bool partial,
                   bool cut_at_eos, int32_t eos, oracle_list *found)
{
    for (int32_t n = longest; n >= 1; n--) {
        if (n >= L) continue;
        for (int32_t i = 0; i + n <= L; i++) {
            const int32_t s = i + n;
            if (!matches(t, L, n, i)) continue;
            if (partial ? s >= L : s > L - drafts || s >= L - n) continue; /* LKP-02, LKP-03 */
            for (int32_t j = s; j < L && j - s < drafts; j++) {
                if (cut_at_eos && t[j] == eos) break; /* LKP-04 */
                oracle_push(found, t[j]);
            }
            return;
        }
    }
}

/* LKP-05. Positions suffice for the whole budget (STOP-05). */
static void cut(const oracle_decoding *d, oracle_list *drafts)
{
    drafts->n = oracle_at_most(drafts->n, d->q->budget - oracle_position(d) - 1);
    if (d->q->rows) drafts->n = oracle_at_most(drafts->n, d->q->rows - 1);
}

void oracle_run_lookup(oracle_decoding *d)
{
    const oracle_method *m = d->method;
    while (!d->ended) {
        oracle_step *s = oracle_begin_step(d);
        oracle_list drafts = {0};
        oracle_lookup(d->history.t, d->history.n, m->size[0], m->size[1], m->sw[LKP_PARTIAL],
                      m->sw[LKP_CUT_AT_EOS], d->q->eos, &drafts);
        cut(d, &drafts);
        oracle_chain_rows(&drafts, &s->rows);
        if (drafts.n) oracle_add_copy(&s->candidates, &drafts);
        oracle_verify_step(d, s, &s->candidates, m->sw[LKP_RULE] == LKP_RULE_MATCH, true);
        oracle_emit(d, s);
        oracle_list_free(&drafts);
    }
}
