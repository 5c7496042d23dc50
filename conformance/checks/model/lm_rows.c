/* lm.rows - one path, one result (TREE-05 to TREE-08): the logits of a token path are the same
 * bits however they are asked for. What they are is the implementation's own: each case first
 * walks its paths row by row, committing each, and holds every other way against that.
 *
 * Row counts stand on both sides of the sizes at which kernels change: 2, 8, 32, 64. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm.h"

enum { CHAIN, PLACE, PREFILL, CACHED, LAYOUT, OTHERS, SIBLINGS, KINDS };
static const char *const kind_name[] = {"chain",  "place",  "prefill", "cached",
                                        "layout", "others", "siblings"};
static const char *const clause_of[KINDS] = {"TREE-05", "TREE-05", "TREE-06", "TREE-06",
                                             "TREE-08", "TREE-07", "TREE-05"};

static const int32_t counts[] = {1, 2, 3, 8, 17, 32, 33, 64, 65, 120};
enum { COUNTS = sizeof counts / sizeof *counts, MOST = 120, TOKENS = 260 };

/* V holds the place of the model in `models`, gamma the prefix. */
static const char *const models[] = {"long", "biased", "normed", "draft", "target"};
enum { LONG, BIASED, NORMED, DRAFT, TARGET, MODELS };

static void plan(check_plan *p, check_level level)
{
    static const int32_t prefixes[] = {40, 0, 63, 64, 100, 127};
    for (int32_t m = 0; m < MODELS; m++)
        for (int32_t kind = 0; kind < KINDS; kind++)
            for (int32_t i = 0; i < (level == LEVEL_SMOKE || m == TARGET ? 1 : 6); i++) {
                const bool has_prefix = kind == CHAIN || kind == PLACE || kind == SIBLINGS;
                if ((i > 0 && !has_prefix) || (m >= DRAFT && kind > PREFILL)) continue;
                if (m == TARGET && kind == PLACE) continue;
                check_case *c = plan_case(p, &check_lm_rows, has_prefix ? "%s-%s-p%d" : "%s-%s",
                                          models[m], kind_name[kind], (int)prefixes[i]);
                c->model.folder = m;
                c->model.kind = kind;
                c->model.tokens = prefixes[i];
                c->cost = m == TARGET ? 6e4 : 2e4;
            }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return lm_claimed(tested, models[c->model.folder], LM_BITS, why, size);
}

typedef struct {
    lm m;
    int32_t token[TOKENS];
    uint64_t rng;
    float *plain, *got; /* [TOKENS][V] */
    int32_t prefix;
    int32_t stride; /* 1: every count; 2: every other one, for a large model */
} job;

/* ---- The ways to ask. ------------------------------------------------------------ */

/* Chains of every length on top of one prefix. */
static bool ask_chain(job *j)
{
    const int32_t P = j->prefix;
    if (!lm_plain(&j->m, 0, 0, j->token, P + MOST, j->plain) ||
        !lm_fill(&j->m, 1, 0, j->token, P, MOST, NULL))
        return false;
    for (int32_t i = COUNTS - 1; i >= 0; i -= j->stride)
        if (!lm_forward(&j->m, 1, j->token + P, NULL, counts[i], NULL, 0, j->got) ||
            !lm_same_logits(&j->m, j->got, j->plain + (int64_t)P * j->m.V, counts[i],
                            "a chain of %d rows on a prefix of %d", (int)counts[i], (int)P))
            return false;
    return true;
}

/* One row among others, at the ends and inside. */
static bool ask_place(job *j)
{
    const int32_t P = j->prefix;
    int32_t token[MOST], parent[MOST];
    if (!lm_plain(&j->m, 0, 0, j->token, P + 1, j->plain) ||
        !lm_fill(&j->m, 1, 0, j->token, P, MOST, NULL))
        return false;
    for (int32_t i = 0; i < MOST; i++) parent[i] = -1;
    for (int32_t i = 0; i < COUNTS; i++) {
        const int32_t R = counts[i], places[] = {0, R / 2, R - 1, probe_below(&j->rng, R)};
        for (int32_t k = 0; k < 4; k++) {
            lm_tokens(&j->m, &j->rng, token, R);
            token[places[k]] = j->token[P];
            if (!lm_forward(&j->m, 1, token, parent, R, &places[k], 1, j->got) ||
                !lm_same_logits(&j->m, j->got, j->plain + (int64_t)P * j->m.V, 1,
                                "row %d of %d siblings on a prefix of %d", (int)places[k],
                                (int)R, (int)P))
                return false;
        }
    }
    return true;
}

/* A whole text in forwards of every size. */
static bool ask_prefill(job *j)
{
    static const int32_t chunks[] = {2, 3, 7, 8, 17, 32, 33, 64, 65, 120};
    const int32_t n = j->stride > 1 ? 70 : 150;
    if (!lm_plain(&j->m, 0, 0, j->token, n, j->plain)) return false;
    for (int32_t i = 0; i < (int32_t)(sizeof chunks / sizeof *chunks); i += j->stride)
        if (!lm_fill(&j->m, 1 + i, 0, j->token, n, chunks[i], j->got) ||
            !lm_same_logits(&j->m, j->got, j->plain, n, "a text in forwards of %d rows",
                            (int)chunks[i]))
            return false;
    return true;
}

/* The same path with its first part committed in one forward and the rest as rows. */
static bool ask_cached(job *j)
{
    static const int32_t kept[] = {0, 1, 31, 40, 62, 63, 64, 65, 90};
    const int32_t n = 100;
    if (!lm_plain(&j->m, 0, 0, j->token, n, j->plain)) return false;
    for (int32_t i = 0; i < (int32_t)(sizeof kept / sizeof *kept); i++) {
        const int32_t k = kept[i];
        if (!lm_fill(&j->m, 1 + i, 0, j->token, k, MOST, NULL) ||
            !lm_forward(&j->m, 1 + i, j->token + k, NULL, n - k, NULL, 0, j->got) ||
            !lm_same_logits(&j->m, j->got, j->plain + (int64_t)k * j->m.V, n - k,
                            "%d rows of which %d positions were cached", (int)(n - k), (int)k))
            return false;
    }
    return true;
}

static bool ask_layout(job *j)
{
    static const uint32_t seeds[] = {1, 2, 77, UINT32_MAX};
    const int32_t n = 200, batch = 50;
    if (!lm_plain(&j->m, 0, 0, j->token, n, j->plain)) return false;
    for (int32_t i = 0; i < 4; i++) {
        j->m.sequences = 1 + i;
        if (!lm_reload(&j->m, seeds[i]) || !lm_fill(&j->m, i, 0, j->token, n, batch, j->got) ||
            !lm_same_logits(&j->m, j->got, j->plain, n, "with layout seed %u", seeds[i]))
            return false;
    }
    return true;
}

/* ---- Several sequences in one forward. ------------------------------------------- */

/* Sequences s, MANY + s and 2 * MANY + s have the same text, whose plain rows start WALK apart.
 * MANY together have more than 128 rows, ALL together fewer. */
enum { MANY = 4, ALL = 3 * MANY, SHARE = 33, SHARE_OF_ALL = 8, WALK = 64, ROWS = 140 };
static const int32_t lengths[MANY] = {30, 3, 17, 0}; /* of the texts, that the prefixes have */

/* Sequence s has the tokens s*40 ..; it holds lengths[s] of them and gets `share` rows more, in
 * a forward with `n` sequences in that order. */
static bool ask_together(job *j, const int32_t *sequence, int32_t n, int32_t share)
{
    int32_t count[ALL], token[ROWS], parent[ROWS], want[ROWS];
    for (int32_t i = 0; i < n * share; i++) {
        const int32_t s = sequence[i / share] % MANY, k = i % share;
        count[i / share] = share;
        token[i] = j->token[s * 40 + lengths[s] + k];
        parent[i] = k - 1;
        want[i] = k;
    }
    iut_forward_batch b = {sizeof b, n,     n * share, n * share, sequence, count,
                           count,    token, parent,    want,      j->got};
    if (!result_call(j->m.r, j->m.x, "forward", lm_call_forward(&j->m, &b))) return false;
    for (int32_t i = 0; i < n; i++) {
        const int32_t s = sequence[i] % MANY;
        const int64_t at = (int64_t)(s * WALK + lengths[s]) * j->m.V;
        if (!lm_same_logits(&j->m, j->got + (int64_t)i * share * j->m.V, j->plain + at, share,
                            "sequence %d, number %d of %d in the forward", (int)sequence[i],
                            (int)i, (int)n))
            return false;
    }
    return true;
}

/* Their lengths are the prefixes', and so many tokens more. */
static bool have_lengths(job *j, const char *op, const int32_t *sequence, int32_t n,
                         const int32_t *length, const int32_t *more)
{
    for (int32_t i = 0; i < n; i++) {
        const int32_t due = lengths[sequence[i] % MANY] + (more ? more[i] : 0);
        j->m.r->compared++;
        if (length[i] == due) continue;
        result_set(j->m.r, STATE_FAIL,
                   "%s of %d sequences: sequence %d has length %d where %d is due", op, (int)n,
                   (int)sequence[i], (int)length[i], (int)due);
        j->m.clause = more ? "KV-01" : "KV-03";
        return false;
    }
    return true;
}

/* Commits another number of rows of each, and takes them off again: in the order of the
 * forward, and all in one call. */
static bool keep_and_cut(job *j, const int32_t *sequence, int32_t n, int32_t share)
{
    int32_t count[ALL], path[ROWS], keep[ALL], length[ALL], steps = 0;
    for (int32_t i = 0; i < n; i++) {
        count[i] = (3 * i + 1) % share;
        keep[i] = lengths[sequence[i] % MANY];
        for (int32_t k = 0; k < count[i]; k++) path[steps++] = k;
    }
    iut_commit_batch c = {sizeof c, n, steps, sequence, count, path, length};
    iut_truncate_batch t = {sizeof t, n, sequence, keep, length};
    return result_call(j->m.r, j->m.x, "commit", lm_call_commit(&j->m, &c)) &&
           have_lengths(j, "commit", sequence, n, length, count) &&
           result_call(j->m.r, j->m.x, "truncate", lm_call_truncate(&j->m, &t)) &&
           have_lengths(j, "truncate", sequence, n, length, NULL);
}

static bool ask_others(job *j)
{
    static const int32_t orders[][MANY] = {
        {0, 1, 2, 3}, {3, 2, 1, 0}, {1, 3, 0, 2}, {2, 0, 3, 1}};
    int32_t all[ALL];
    /* Sequences MANY.. walk alone; 0..MANY-1 are asked together, and then all. */
    for (int32_t s = 0; s < MANY; s++)
        if (!lm_plain(&j->m, MANY + s, 0, j->token + s * 40, lengths[s] + SHARE,
                      j->plain + (int64_t)s * WALK * j->m.V) ||
            !lm_truncate(&j->m, MANY + s, lengths[s]) ||
            !lm_fill(&j->m, s, 0, j->token + s * 40, lengths[s], MOST, NULL) ||
            !lm_fill(&j->m, 2 * MANY + s, 0, j->token + s * 40, lengths[s], MOST, NULL))
            return false;
    for (int32_t o = 0; o < 4; o++)
        for (int32_t n = 1; n <= MANY; n++)
            if (!ask_together(j, orders[o], n, SHARE) || !keep_and_cut(j, orders[o], n, SHARE))
                return false;
    for (int32_t i = 0; i < ALL; i++) all[i] = (5 * i + 7) % ALL; /* each once, in no order */
    return ask_together(j, all, ALL, SHARE_OF_ALL) && keep_and_cut(j, all, ALL, SHARE_OF_ALL) &&
           ask_together(j, all, ALL, SHARE_OF_ALL);
}

/* ---- Branches in one forward. ---------------------------------------------------- */

enum { BRANCHES = 6, DEPTH = 4 };

/* The rows of branch b are b*DEPTH .. of `at`: where they stand in this order. */
static void order_rows(int32_t order, int32_t *at)
{
    for (int32_t i = 0; i < BRANCHES * DEPTH; i++) {
        const int32_t b = i / DEPTH, d = i % DEPTH;
        at[i] = order == 0   ? i
                : order == 1 ? d * BRANCHES + b
                : order == 2 ? d * BRANCHES + (BRANCHES - 1 - b)
                             : (BRANCHES - 1 - b) * DEPTH + d;
    }
}

static bool ask_siblings(job *j)
{
    const int32_t P = j->prefix, R = BRANCHES * DEPTH;
    const int32_t *branch = j->token + 128; /* [BRANCHES][DEPTH] */
    for (int32_t b = 0; b < BRANCHES; b++)
        if (!lm_fill(&j->m, 1 + b, 0, j->token, P, MOST, NULL) ||
            !lm_plain(&j->m, 1 + b, P, branch + b * DEPTH, DEPTH,
                      j->plain + (int64_t)b * DEPTH * j->m.V))
            return false;
    if (!lm_fill(&j->m, 0, 0, j->token, P, MOST, NULL)) return false;
    for (int32_t order = 0; order < 4; order++) {
        int32_t at[BRANCHES * DEPTH], token[BRANCHES * DEPTH], parent[BRANCHES * DEPTH];
        order_rows(order, at);
        for (int32_t i = 0; i < R; i++) {
            token[at[i]] = branch[i];
            parent[at[i]] = i % DEPTH ? at[i - 1] : -1;
        }
        if (!lm_forward(&j->m, 0, token, parent, R, at, R, j->got) ||
            !lm_same_logits(&j->m, j->got, j->plain, R,
                            "%d branches of %d rows, in order %d of 4", (int)BRANCHES,
                            (int)DEPTH, (int)order))
            return false;
    }
    return true;
}

/* ---- The case. ------------------------------------------------------------------- */

static void run(const check_case *c, const check_context *x, check_result *r)
{
    static bool (*const ask[KINDS])(job *) = {ask_chain,  ask_place,  ask_prefill, ask_cached,
                                              ask_layout, ask_others, ask_siblings};
    job j = {.rng = check_seed(x, c, 0),
             .prefix = c->model.tokens,
             .stride = c->model.folder == TARGET ? 2 : 1};
    if (lm_open(&j.m, x, r, models[c->model.folder], ALL, 260, ROWS)) {
        j.m.clause = clause_of[c->model.kind];
        lm_tokens(&j.m, &j.rng, j.token, TOKENS);
        j.plain = lm_floats(&j.m, TOKENS);
        j.got = lm_floats(&j.m, TOKENS);
        if (j.plain && j.got && ask[c->model.kind](&j))
            result_set(r, STATE_PASS, "%lld rows, lengths and entries, all the same bits",
                       (long long)r->compared);
        lm_conclude(&j.m);
    }
    free(j.plain);
    free(j.got);
    lm_close(&j.m);
}

const check check_lm_rows = {
    .name = "lm.rows",
    .clauses = "TREE-05 TREE-06 TREE-07 TREE-08 LAY-06",
    .summary = "the bits of a path do not depend on rows, places, chunks, layout or company",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
