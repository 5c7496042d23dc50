/* method_verify.c - which candidate stands, and how far (method_tree.h). Greedily by LAH-18, of
 * which GRD-01 is the case of one candidate, or by LAH-20; above T = 0 by ONEH-01 to ONEH-06 or
 * by LAH-21. */
#include "conformance/subjects/mutants/model/method_tree.h"
#include "ref/dist/draw.h"
#include "ref/num/fixed.h"

/* The row that decides the token behind i of the candidate's tokens. */
static int32_t row_behind(const method_tree *t, int32_t c, int32_t i)
{
    return i ? t->first[c] + i - 1 : 0;
}

/* ---- T = 0 --------------------------------------------------------------------------- */

static bool stands(const method_job *j, const method_tree *t, int32_t c, int32_t i)
{
    int32_t row = row_behind(t, c, i);
    if (fault(j->fault, RUN_OWN_ROW)) row = t->first[c] + i;
    if (fault(j->fault, RUN_ROOT_ROW)) row = 0;
    return t->token[t->first[c] + i] == method_tree_argmax(t, row);
}

/* h(g) of LAH-18. */
static int32_t hits_of(const method_job *j, const method_tree *t, int32_t c)
{
    int32_t h = 0;
    while (h < t->length[c] && stands(j, t, c, h)) h++;
    if (fault(j->fault, RUN_ANY_HITS)) /* not the leading ones alone */
        for (int32_t i = h + 1; i < t->length[c]; i++) h += stands(j, t, c, i);
    if (fault(j->fault, RUN_ONE_MORE) && h > 0 && h < t->length[c]) h++;
    return t->trusted == c && h < t->trusted_hits ? t->trusted_hits : h;
}

static void by_greedy(const method_job *j, const method_tree *t, method_run *run)
{
    const fault_point f = j->fault;
    run->hits = 0, run->winner = 0;
    for (int32_t c = 0; c < t->candidates; c++) {
        const int32_t h = hits_of(j, t, c);
        if (h > run->hits) run->hits = h, run->winner = c;
    }
    const int32_t h = run->hits, from = fault(f, LAH_RUN_OF_FIRST) ? 0 : run->winner;
    for (int32_t i = 0; i < h; i++) {
        const int32_t at = fault(f, LAH_LAST_HIT) ? h - 1 : i;
        run->token[i] = t->token[t->first[from] + at];
    }
    const bool full = h > 0 && h == t->length[run->winner];
    const bool before = full && fault(f, RUN_BONUS_ROW);
    run->token[h] = method_tree_argmax(t, row_behind(t, run->winner, h - before));
    run->count = h + 1;
    if (fault(f, RUN_DRAFT_STANDS) && !full && t->candidates > 0)
        run->token[h] = t->token[t->first[run->winner] + h];
}

/* The longest of the tree's paths of at most N - 1 tokens that are each the argmax of the row
 * before them; of several a candidate's, or else the one that stands first (LAH-20). */
static int32_t longest_path(const method_job *j, const method_tree *t)
{
    const int32_t drafts = t->candidates ? t->first[0] : t->rows, most = j->how->size[1] - 1;
    int32_t depth[METHOD_ROWS] = {0}, best = 0; /* -1: not right */
    for (int32_t r = 1; r < t->rows; r++) {
        const int32_t above = t->parent[r], d = depth[above];
        const bool right = d >= 0 && d < most && t->token[r] == method_tree_argmax(t, above);
        depth[r] = right ? d + 1 : -1;
        const bool drafted = r >= drafts && best < drafts;
        if (depth[r] > depth[best] || (depth[r] == depth[best] && drafted)) best = r;
    }
    return best;
}

static void by_paths(const method_job *j, const method_tree *t, method_run *run)
{
    const int32_t last = longest_path(j, t);
    run->hits = 0, run->winner = 0;
    for (int32_t r = last; r > 0; r = t->parent[r]) run->hits++;
    int32_t i = run->hits;
    for (int32_t r = last; r > 0; r = t->parent[r])
        run->row[--i] = r, run->token[i] = t->token[r];
    run->token[run->hits] = method_tree_argmax(t, last);
    run->count = run->hits + 1;
}

/* ---- Above it ------------------------------------------------------------------------ */

/* The candidates that have all accepted tokens. */
typedef struct {
    bool out[METHOD_ROWS];
    int32_t level;
} live;

/* The distinct tokens that the live candidates have at the level, by first appearance. */
static int32_t tokens_at(const method_job *j, const method_tree *t, const live *a,
                         int32_t *token)
{
    int32_t n = 0;
    for (int32_t c = 0; c < t->candidates; c++) {
        if (a->out[c] || t->length[c] <= a->level) continue;
        const int32_t x = t->token[t->first[c] + a->level];
        int32_t i = 0;
        while (i < n && (token[i] != x || fault(j->fault, ONEH_NOT_STRUCK))) i++;
        if (i == n) token[n++] = x;
    }
    return n;
}

static void keep_those_with(const method_tree *t, live *a, int32_t x)
{
    for (int32_t c = 0; c < t->candidates; c++)
        if (t->length[c] <= a->level || t->token[t->first[c] + a->level] != x) a->out[c] = true;
    a->level++;
}

static int32_t first_live(const method_tree *t, const live *a)
{
    int32_t c = 0;
    while (c < t->candidates && a->out[c]) c++;
    return c < t->candidates ? c : 0;
}

/* ONEH-01, ONEH-02: the token that stands, or -1; t->p is then what is left of the row. */
static int32_t try_each(const method_job *j, method_tree *t, int32_t at, const int32_t *token,
                        int32_t n)
{
    const fault_point f = j->fault;
    uint64_t W = 0;
    for (int32_t x = 0; x < t->V; x++) W += as_weight(t->p[x]);
    for (int32_t i = 0; i < n; i++) {
        const uint64_t w = as_weight(t->p[token[i]]);
        if (as_target(method_word(j, at, AS_ACCEPT, i), W) < w) return token[i];
        if (fault(f, ONEH_NOT_STRUCK)) continue;
        W -= w;
        t->p[token[i]] = 0;
    }
    return -1;
}

/* ONEH-04, ONEH-05. */
static int32_t last_token(const method_job *j, method_tree *t, int32_t row, int32_t hits,
                          bool tried)
{
    const int32_t at = j->m + hits;
    const fault_point f = j->fault;
    if (tried && fault(f, ONEH_FROM_P) && !method_tree_serve(j, t, row)) return -1;
    if (!tried && hits > 0 && fault(f, ONEH_BONUS_GREEDY)) return method_tree_argmax(t, row);
    const as_purpose purpose = !tried                              ? AS_DRAW
                               : fault(f, ONEH_CORRECTION_UNIFORM) ? AS_ACCEPT
                                                                   : AS_RESIDUAL;
    return as_draw(t->p, t->V, method_word(j, at, purpose, 0));
}

static iut_status by_onehot(method_job *j, method_tree *t, method_run *run)
{
    live a = {.level = 0};
    int32_t token[METHOD_ROWS], accepted = 0, n = 0, row = 0, at = 0;
    for (bool on = true; on;) {
        const int32_t c = first_live(t, &a);
        row = row_behind(t, c, fault(j->fault, ONEH_ROOT_ROW) ? 0 : a.level);
        at = fault(j->fault, ONEH_STEP_POSITION) ? j->m : j->m + a.level;
        if (!method_tree_serve(j, t, row))
            return method_fail(j, IUT_FAILED, "a row of the target cannot be served");
        n = tokens_at(j, t, &a, token);
        accepted = n ? try_each(j, t, at, token, n) : -1;
        on = accepted >= 0;
        if (on) run->token[a.level] = accepted, keep_those_with(t, &a, accepted);
    }
    run->hits = a.level, run->winner = first_live(t, &a);
    run->token[a.level] = last_token(j, t, row, a.level, n > 0);
    run->count = a.level + 1;
    return IUT_OK;
}

/* LAH-21, MAT-01. */
static iut_status by_match(method_job *j, method_tree *t, method_run *run)
{
    live a = {.level = 0};
    for (bool on = true; on;) {
        const int32_t row = row_behind(t, first_live(t, &a), a.level), level = a.level;
        int32_t token[METHOD_ROWS];
        if (!method_tree_serve(j, t, row))
            return method_fail(j, IUT_FAILED, "a row of the target cannot be served");
        const int32_t n = tokens_at(j, t, &a, token),
                      x = as_draw(t->p, t->V, method_word(j, j->m + level, AS_DRAW, 0));
        run->token[level] = x;
        on = false;
        for (int32_t i = 0; i < n; i++) on |= token[i] == x;
        if (on && fault(j->fault, LAH_MATCH_ENDS) && level > 0) on = false;
        if (on) keep_those_with(t, &a, x);
    }
    run->hits = a.level, run->winner = first_live(t, &a);
    run->count = a.level + 1;
    return IUT_OK;
}

static bool by_match_rule(const method_job *j)
{
    const oracle_method *m = j->how;
    if (m->name == ORACLE_OUROBOROS) return true; /* OUR-15 */
    return m->name == ORACLE_LOOKUP ? m->sw[LKP_RULE] == LKP_RULE_MATCH
                                    : m->sw[LAH_RULE] == LAH_RULE_MATCH;
}

/* The rows of the winner, which the cache keeps. */
static void take_rows(const method_job *j, const method_tree *t, method_run *run)
{
    const int32_t from = fault(j->fault, LAH_WRONG_KV) ? 0 : run->winner;
    for (int32_t i = 0; i < METHOD_ROWS && t->candidates > 0; i++)
        run->row[i] = t->first[from] + i;
}

iut_status method_verify(method_job *j, method_tree *t, bool paths, method_run *run)
{
    iut_status s = IUT_OK;
    const oracle_method *m = j->how;
    if (paths && !method_is_warm(j)) {
        by_paths(j, t, run);
    } else {
        if (!method_is_warm(j) || fault(j->fault, OUR_GREEDY_ALWAYS))
            by_greedy(j, t, run);
        else
            s = by_match_rule(j) ? by_match(j, t, run) : by_onehot(j, t, run);
        take_rows(j, t, run);
    }
    /* LAH-19, and its like in ONEH-05 and LAH-21. */
    const bool whole = m->name == ORACLE_LOOKAHEAD && run->hits == m->size[1] - 1;
    const bool bonus = m->sw[LAH_BONUS] ? !fault(j->fault, LAH_BONUS_NEVER)
                                        : fault(j->fault, LAH_BONUS_ALWAYS);
    if (whole && !bonus) run->count = run->hits;
    return s;
}
