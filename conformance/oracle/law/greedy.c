/* greedy.c - verification at temperature 0 (chain.h). Comparisons of binary32 are exact, and -0
 * equals +0 in them, so the clauses are the code. */
#include "conformance/oracle/law/chain.h"

#include <math.h>
#include <stdio.h>

int32_t oracle_argmax(const float *logits, int32_t V)
{
    int32_t best = -1;
    for (int32_t t = 0; t < V; t++) {
        if (isnan(logits[t]) || logits[t] == INFINITY) return -1;
        if (logits[t] != -INFINITY && (best < 0 || logits[t] > logits[best])) best = t;
    }
    return best;
}

int32_t oracle_greedy(const float *const *logits, const int32_t *draft, int32_t n, int32_t V,
                      unsigned flags, int32_t *out)
{
    const int32_t count = oracle_draft_count(draft, n, V, flags);
    if (count < 0) return 0;
    for (int32_t i = 0;; i++) {
        out[i] = oracle_argmax(logits[i], V);
        if (out[i] < 0) return 0;
        if (i == count || out[i] != draft[i]) return i + 1;
    }
}

/* May `t` be called the argmax under the declared tie policy? */
static int is_argmax(const float *logits, int32_t V, int tie, int32_t t)
{
    const int32_t first = oracle_argmax(logits, V);
    if (first < 0 || t < first || t >= V || logits[t] != logits[first]) return 0;
    if (tie == ORACLE_TIE_FIRST) return t == first;
    if (tie == ORACLE_TIE_ANY) return 1;
    for (int32_t later = t + 1; later < V; later++)
        if (logits[later] == logits[t]) return 0;
    return 1;
}

judge oracle_greedy_judge(const float *const *logits, const int32_t *draft, int32_t n,
                          int32_t V, int tie, unsigned flags, const int32_t *got,
                          int32_t got_len, char *why, size_t why_size)
{
    const int32_t count = oracle_draft_count(draft, n, V, flags);
    if (count < 0) {
        snprintf(why, why_size, "a draft is no id: an error is due");
        return JUDGE_WRONG;
    }
    if (got_len < 1 || got_len > count + 1) {
        snprintf(why, why_size, "%d tokens emitted; %d drafts allow 1 to %d", (int)got_len,
                 (int)count, (int)count + 1);
        return JUDGE_WRONG;
    }
    for (int32_t i = 0; i < got_len; i++) {
        const int last = i + 1 == got_len;
        if (is_argmax(logits[i], V, tie, got[i]) &&
            (last ? i == count || got[i] != draft[i] : got[i] == draft[i]))
            continue;
        snprintf(why, why_size, "position %d: %d %s; the argmax is %d", (int)i, (int)got[i],
                 last ? "ends the step" : "is emitted and the step goes on",
                 (int)oracle_argmax(logits[i], V));
        return JUDGE_WRONG;
    }
    return JUDGE_EXACT;
}
