/* method_lookup.c - prompt lookup, chapter 9; see method_subject.h. */
#include <string.h>

#include "conformance/subjects/mutants/model/method_steps.h"

/* What was found: the drafts begin at s, after l tokens that match. */
typedef struct {
    int32_t s, l;
} place;

/* LKP-02, LKP-03. */
static bool allowed(const method_job *j, place p)
{
    const int32_t *sw = j->how->sw, K = j->how->size[1], L = j->n;
    const fault_point f = j->fault;
    if (fault(f, LKP_SEARCH_GOES_ON) && p.s < L && j->history[p.s] == j->eos) return false;
    if (sw[LKP_PARTIAL] || fault(f, LKP_PARTIAL_ALWAYS)) return p.s < L;
    return p.s + K <= L && p.s < L - p.l;
}

/* The place for a length; s = L: there is none. */
static place find_length(const method_job *j, int32_t l)
{
    const int32_t L = j->n, *t = j->history;
    place found = {L, l};
    for (int32_t i = 0; i + l <= L; i++) {
        const place p = {i + l, l};
        if (memcmp(t + i, t + L - l, (size_t)l * sizeof *t) != 0 || !allowed(j, p)) continue;
        found = p;
        if (!fault(j->fault, LKP_LAST_PLACE)) break;
    }
    return found;
}

/* LKP-01. */
static place find(const method_job *j)
{
    const int32_t n = method_least(j->how->size[0], j->n - 1);
    place p = {j->n, 0};
    if (j->manner == MANNER_LOOKUP_MISSES) return p;
    for (int32_t i = 0; i < n && p.s == j->n; i++)
        p = find_length(j, fault(j->fault, LKP_SHORTEST_FIRST) ? i + 1 : n - i);
    return p;
}

/* LKP-04, LKP-05: how many of n tokens from s on are drafts. */
static int32_t cut(const method_job *j, int32_t s, int32_t n)
{
    const bool at_eos = j->how->sw[LKP_CUT_AT_EOS] && !fault(j->fault, RUN_EOS_INSIDE);
    if (!fault(j->fault, RUN_OVERRUN)) n = method_least(n, j->k - j->m - 1);
    n = method_least(n, j->rows - 1);
    for (int32_t i = 0; i < n && at_eos; i++)
        if (j->history[s + i] == j->eos) n = i;
    return n;
}

void lookup_propose(const method_job *j, method_tree *t)
{
    const int32_t K = j->how->size[1];
    place p = find(j);
    int32_t n = method_least(K, j->n - p.s);
    bool sure = fault(j->fault, LKP_LONGEST_TRUSTED) && p.l == j->how->size[0];
    if (fault(j->fault, LKP_SELF_MATCH) && p.s == j->n && j->m > 0) {
        p.l = method_least(j->how->size[0], j->n - 1); /* "found": the last tokens themselves */
        p.s = j->n - p.l;
        n = method_least(K, p.l);
        sure = true;
    }
    n = cut(j, p.s, n);
    method_tree_begin(t, j->history[j->n - 1]);
    if (n < 1) return;
    method_tree_candidate(t, j->history + p.s, n);
    if (sure) t->trusted = 0, t->trusted_hits = 1;
}
