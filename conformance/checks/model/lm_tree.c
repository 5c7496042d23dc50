/* lm.tree - the tree of a forward (TREE-01 to TREE-04) and what must be refused (KV-01, KV-03,
 * KV-04, KV-06): positions, visibility, the order of what comes back, and that a refusal leaves
 * everything as it was. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm.h"

enum { PATHS, INVISIBLE, VISIBLE, WANTS, REFUSED, COMMITS, FORGOTTEN, CAPACITY, KINDS };
static const char *const kind_name[] = {"paths",   "invisible", "visible",   "wants",
                                        "refused", "commits",   "forgotten", "capacity"};
static const char *const clause_of[KINDS] = {"TREE-03", "TREE-03", "TREE-03", "TREE-04",
                                             "TREE-01", "KV-01",   "KV-04",   "KV-06"};
static const char *const models[] = {"long", "biased", "draft"};
enum { MODELS = 3, MOST = 24, PREFIX = 9, POSITIONS = 96, ROWS = 40, SEQUENCES = MOST + 2 };

static void plan(check_plan *p, check_level level)
{
    const int32_t repeats = level == LEVEL_SMOKE ? 1 : level == LEVEL_FULL ? 6 : 20;
    for (int32_t m = 0; m < MODELS; m++)
        for (int32_t kind = 0; kind < KINDS; kind++)
            for (int32_t i = 0; i < (kind <= WANTS ? repeats : 1); i++) {
                check_case *c =
                    plan_case(p, &check_lm_tree, kind <= WANTS ? "%s-%s-%d" : "%s-%s",
                              models[m], kind_name[kind], (int)i);
                c->model.folder = m;
                c->model.kind = kind;
                c->cost = 9e3;
            }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return lm_claimed(tested, models[c->model.folder], c->model.kind <= WANTS ? LM_BITS : 0,
                      why, size);
}

typedef struct {
    lm m;
    uint64_t rng;
    int32_t prefix[PREFIX];
    int32_t token[MOST], parent[MOST], depth[MOST]; /* a random tree */
    float *got, *want;                              /* [MOST][V] */
    char refusal[300]; /* of too many rows: for the reader (KV-06); "" in other kinds */
} job;

/* Rows with random parents: often the row before, sometimes the prefix. The first five are a
 * chain with a side branch, so that every relation occurs. */
static void random_tree(job *j)
{
    static const int32_t first[] = {-1, 0, 1, 0, 2};
    lm_tokens(&j->m, &j->rng, j->token, MOST);
    for (int32_t i = 0; i < MOST; i++) {
        const int32_t kind = probe_below(&j->rng, 8);
        j->parent[i] = i < 5       ? first[i]
                       : kind == 0 ? -1
                       : kind < 4  ? i - 1
                                   : probe_below(&j->rng, i);
        j->depth[i] = j->parent[i] < 0 ? 0 : j->depth[j->parent[i]] + 1;
    }
}

static bool sees(const job *j, int32_t row, int32_t other)
{
    while (row > other) row = j->parent[row];
    return row == other;
}

static bool ask(job *j, const int32_t *token, float *logits)
{
    return lm_forward(&j->m, 0, token, j->parent, MOST, NULL, 0, logits);
}

/* ---- What a row is and sees. ----------------------------------------------------- */

/* Every row against its path, walked on a sequence of its own: TREE-02, TREE-03. */
static bool ask_paths(job *j)
{
    if (!ask(j, j->token, j->got)) return false;
    for (int32_t i = 0; i < MOST; i++) {
        int32_t path[MOST], n = j->depth[i] + 1;
        for (int32_t row = i, k = n; k-- > 0; row = j->parent[row]) path[k] = j->token[row];
        if (!lm_plain(&j->m, 1 + i, 0, j->prefix, PREFIX, NULL) ||
            !lm_plain(&j->m, 1 + i, PREFIX, path, n, j->want) ||
            !lm_same_logits(&j->m, j->got + (int64_t)i * j->m.V,
                            j->want + (int64_t)(n - 1) * j->m.V, 1,
                            "row %d, with parent %d, against its path of %d tokens", (int)i,
                            (int)j->parent[i], (int)n))
            return false;
    }
    return true;
}

/* One token after the other is changed: rows that do not see it stay as they are. */
static bool ask_invisible(job *j)
{
    if (!ask(j, j->token, j->want)) return false;
    for (int32_t k = 0; k < MOST; k++) {
        int32_t token[MOST];
        memcpy(token, j->token, sizeof token);
        token[k] = (token[k] + 1 + probe_below(&j->rng, j->m.V - 1)) % j->m.V;
        if (!ask(j, token, j->got)) return false;
        for (int32_t i = 0; i < MOST; i++)
            if (!sees(j, i, k) &&
                !lm_same_logits(
                    &j->m, j->got + (int64_t)i * j->m.V, j->want + (int64_t)i * j->m.V, 1,
                    "row %d after a change of row %d, which it does not see", (int)i, (int)k))
                return false;
    }
    return true;
}

static bool changed(job *j, int32_t row, const char *by, int32_t which)
{
    const int64_t at = (int64_t)row * j->m.V;
    j->m.r->compared++;
    if (!lm_equal(&j->m, j->got + at, j->want + at, 1)) return true;
    result_set(j->m.r, STATE_FAIL,
               "row %d: the logits stay the same, to the last bit, whatever token is %s %d",
               (int)row, by, (int)which);
    return false;
}

/* And those that see it change; a model whose last bits ignore a token has not been met. */
static bool ask_visible(job *j)
{
    if (!ask(j, j->token, j->want)) return false;
    for (int32_t k = 0; k < MOST; k++) {
        int32_t token[MOST];
        memcpy(token, j->token, sizeof token);
        token[k] = (token[k] + 1) % j->m.V;
        if (!ask(j, token, j->got)) return false;
        for (int32_t i = 0; i < MOST; i++)
            if (sees(j, i, k) && !changed(j, i, "in the row it sees,", k)) return false;
    }
    for (int32_t k = 0; k < PREFIX; k++) { /* sequence 1 has another token at k */
        int32_t prefix[PREFIX];
        memcpy(prefix, j->prefix, sizeof prefix);
        prefix[k] = (prefix[k] + 1) % j->m.V;
        if (!lm_fill(&j->m, 1 + k, 0, prefix, PREFIX, PREFIX, NULL) ||
            !lm_forward(&j->m, 1 + k, j->token, j->parent, MOST, NULL, 0, j->got))
            return false;
        for (int32_t i = 0; i < MOST; i++)
            if (!changed(j, i, "at position", k)) return false;
    }
    return true;
}

/* TREE-04: any list of wanted rows, in its order, repeats included. */
static bool ask_wants(job *j)
{
    if (!ask(j, j->token, j->want)) return false;
    for (int32_t round = 0; round < 12; round++) {
        int32_t want[MOST];
        const int32_t n = round == 0 ? 0 : 1 + probe_below(&j->rng, MOST);
        for (int32_t i = 0; i < n; i++)
            want[i] = round == 1 ? MOST - 1 - i : probe_below(&j->rng, MOST);
        if (!lm_forward(&j->m, 0, j->token, j->parent, MOST, want, n, j->got)) return false;
        j->m.r->compared++;
        for (int32_t i = 0; i < n; i++)
            if (!lm_same_logits(
                    &j->m, j->got + (int64_t)i * j->m.V, j->want + (int64_t)want[i] * j->m.V, 1,
                    "row %d, wanted as number %d of %d", (int)want[i], (int)i, (int)n))
                return false;
    }
    return true;
}

/* ---- Refusals. ------------------------------------------------------------------- */

/* After a refusal sequence 0 is what it was: PREFIX tokens, and what follows. */
static bool unharmed(job *j, const char *what)
{
    int32_t length = -1;
    if (!result_call(j->m.r, j->m.x, "commit", lm_try_commit(&j->m, 0, NULL, 0, &length)))
        return false;
    j->m.r->compared++;
    if (length != PREFIX) {
        result_set(j->m.r, STATE_FAIL, "after the refusal of %s: length %d where %d is due",
                   what, (int)length, (int)PREFIX);
        return false;
    }
    return lm_same_cache(&j->m, 0, 1, 0, PREFIX, "after the refusal of %s", what) &&
           lm_forward(&j->m, 0, j->token, NULL, 1, NULL, 0, j->got) &&
           (client_claims(j->m.x->iut)->lm_arithmetic == 0 ||
            lm_same_logits(&j->m, j->got, j->want, 1, "after the refusal of %s", what));
}

/* Sequence 0 and 1 hold the prefix; want is what the row token[0] has on it. */
static bool prepare(job *j)
{
    return lm_plain(&j->m, 1, 0, j->prefix, PREFIX, NULL) &&
           lm_forward(&j->m, 1, j->token, NULL, 1, NULL, 0, j->want);
}

static bool ask_refused(job *j)
{
    const int32_t V = j->m.V;
    const struct {
        const char *what;
        int32_t token[3], parent[3], want;
    } set[] = {
        {"token -1", {1, -1, 2}, {-1, 0, 1}, 0},
        {"token V", {1, 2, V}, {-1, 0, 1}, 2},
        {"the least token", {INT32_MIN, 1, 2}, {-1, 0, 1}, 2},
        {"the greatest token", {1, INT32_MAX, 2}, {-1, 0, 1}, 1},
        {"a row that is its own parent", {1, 2, 3}, {-1, 1, 0}, 2},
        {"a parent that comes later", {1, 2, 3}, {-1, 2, 0}, 2},
        {"a parent that does not exist", {1, 2, 3}, {-1, 0, 7}, 2},
        {"parent -2", {1, 2, 3}, {-1, -2, 0}, 2},
        {"the wanted row -1", {1, 2, 3}, {-1, 0, 1}, -1},
        {"a wanted row beyond the last", {1, 2, 3}, {-1, 0, 1}, 3},
    };
    if (!prepare(j)) return false;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        const call_result call =
            lm_try_forward(&j->m, 0, set[i].token, set[i].parent, 3, &set[i].want, 1, j->got);
        if (!lm_refused(&j->m, "forward", call, set[i].what) || !unharmed(j, set[i].what))
            return false;
    }
    return true;
}

/* Rows of the tree of five: 0-1-2-4, and 3 under 0. */
static bool ask_commits(job *j)
{
    static const struct {
        const char *what;
        int32_t n, path[4];
    } set[] = {{"a path that starts inside the tree", 2, {1, 2}},
               {"a path that leaves out a row", 2, {0, 2}},
               {"a path upwards", 3, {0, 1, 0}},
               {"a path over two branches", 3, {0, 3, 1}},
               {"a row twice", 2, {0, 0}},
               {"row -1", 1, {-1}},
               {"a row that does not exist", 2, {0, 40}},
               {"a path that ends in a row that does not exist", 3, {0, 1, 5}}};
    static const int32_t good[] = {0, 1, 2, 4};
    if (!prepare(j)) return false;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        int32_t length;
        if (!lm_forward(&j->m, 0, j->token, j->parent, 5, NULL, 0, j->got) ||
            !lm_refused(&j->m, "commit",
                        lm_try_commit(&j->m, 0, set[i].path, set[i].n, &length), set[i].what) ||
            !unharmed(j, set[i].what))
            return false;
    }
    return lm_forward(&j->m, 0, j->token, j->parent, 5, NULL, 0, j->got) &&
           lm_commit(&j->m, 0, good, 4, PREFIX + 4) && lm_truncate(&j->m, 0, PREFIX) &&
           unharmed(j, "bad paths and a good one");
}

static bool commit_refused(job *j, int32_t sequence, const char *what)
{
    int32_t length;
    return lm_refused(&j->m, "commit", lm_try_commit(&j->m, sequence, NULL, 1, &length), what);
}

/* A forward of two rows, then one that is refused: the two are gone. */
static bool gone(job *j, int32_t sequence, const int32_t *token, const int32_t *parent,
                 int32_t rows, int32_t want, const char *what)
{
    char text[100];
    snprintf(text, sizeof text, "a row from before the refusal of %s", what);
    return lm_forward(&j->m, sequence, j->token, NULL, 2, NULL, 0, j->got) &&
           lm_refused(&j->m, "forward",
                      lm_try_forward(&j->m, sequence, token, parent, rows, &want, 1, j->got),
                      what) &&
           commit_refused(j, sequence, text);
}

/* The same with sequences 0 and 1 in both forwards, the second refused for one of them. */
static bool gone_together(job *j, int32_t bad)
{
    const int32_t sequence[] = {0, 1}, one[] = {1, 1}, parent[] = {-1, -1}, want[] = {0, 0};
    int32_t token[] = {j->token[0], j->token[1]};
    iut_forward_batch b = {sizeof b, 2, 2, 2, sequence, one, one, token, parent, want, j->got};
    if (!result_call(j->m.r, j->m.x, "forward", lm_call_forward(&j->m, &b))) return false;
    token[bad] = j->m.V;
    return lm_refused(&j->m, "forward", lm_call_forward(&j->m, &b), "token V") &&
           commit_refused(j, 0, "a row of the first of two sequences of a refused forward") &&
           commit_refused(j, 1, "a row of the second of two sequences of a refused forward");
}

/* KV-04: whatever a forward is refused for, no row is left. */
static bool ask_refused_forgets(job *j)
{
    static const int32_t chain[] = {-1, 0, 1}, loop[] = {-1, 1, 0};
    const int32_t good[] = {1 % j->m.V, 0, 0}, bad[] = {0, j->m.V, 0};
    int32_t token[POSITIONS], parent[ROWS + 1];
    lm_tokens(&j->m, &j->rng, token, POSITIONS);
    for (int32_t i = 0; i <= ROWS; i++) parent[i] = -1;
    return gone(j, 0, bad, chain, 3, 0, "token V") &&
           gone(j, 0, good, loop, 3, 0, "a row that is its own parent") &&
           gone(j, 0, good, chain, 3, 3, "a wanted row beyond the last") &&
           gone(j, 0, token, parent, ROWS + 1, 0, "more rows than the capacity") &&
           lm_fill(&j->m, 2, 0, token, POSITIONS - 2, ROWS, NULL) &&
           gone(j, 2, good, chain, 3, 0, "more positions than the capacity") &&
           gone_together(j, 0) && gone_together(j, 1);
}

/* KV-04: rows are committed once, and only those of the last forward. */
static bool ask_forgotten(job *j)
{
    static const int32_t third[] = {0, 1, 2};
    const int32_t *t = j->token;
    return prepare(j) && commit_refused(j, 0, "a row before any forward") &&
           lm_forward(&j->m, 0, t, NULL, 2, NULL, 0, j->got) &&
           lm_commit(&j->m, 0, NULL, 1, PREFIX + 1) &&
           commit_refused(j, 0, "a row of a forward that was committed") &&
           lm_truncate(&j->m, 0, PREFIX) && lm_forward(&j->m, 0, t, NULL, 2, NULL, 0, j->got) &&
           lm_truncate(&j->m, 0, PREFIX) &&
           commit_refused(j, 0, "a row of a forward before a truncation") &&
           lm_forward(&j->m, 0, t, NULL, 3, NULL, 0, j->got) &&
           lm_forward(&j->m, 0, t, NULL, 2, NULL, 0, j->got) &&
           lm_refused(&j->m, "commit", lm_try_commit(&j->m, 0, third, 3, &(int32_t){0}),
                      "a row of the forward before the last") &&
           ask_refused_forgets(j) && unharmed(j, "forgotten rows");
}

static bool length_refused(job *j, int32_t keep, const char *what)
{
    int32_t length;
    return lm_refused(&j->m, "truncate", lm_try_truncate(&j->m, 0, keep, &length), what) &&
           unharmed(j, what);
}

/* KV-06: a row too many, of two sequences together. */
static bool too_many_together(job *j, const int32_t *token, const int32_t *parent)
{
    const int32_t sequence[] = {0, 1}, rows[] = {ROWS / 2, ROWS + 1 - ROWS / 2}, none[] = {0, 0};
    iut_forward_batch b = {sizeof b, 2, ROWS + 1, 0, sequence, rows, none, token, parent, none, j->got};
    return lm_refused(&j->m, "forward", lm_call_forward(&j->m, &b),
                      "more rows than the capacity, of two sequences");
}

/* KV-06, and KV-03 about lengths that the prefix does not have. */
static bool ask_capacity(job *j)
{
    int32_t token[POSITIONS + 1], parent[ROWS + 1];
    const int32_t room = POSITIONS - PREFIX, wide = ROWS + 1;
    const char *const rows = "more rows than the capacity",
                      *const positions = "more positions than the capacity";
    j->m.clause = "KV-03";
    if (!prepare(j) || !length_refused(j, PREFIX + 1, "a truncation to more than there is") ||
        !length_refused(j, -1, "a truncation to -1 tokens"))
        return false;
    j->m.clause = "KV-06";
    lm_tokens(&j->m, &j->rng, token, POSITIONS + 1);
    for (int32_t i = 0; i < wide; i++) parent[i] = -1;
    if (!lm_refused(&j->m, "forward",
                    lm_try_forward(&j->m, 0, token, parent, wide, &wide, 0, j->got), rows))
        return false;
    snprintf(j->refusal, sizeof j->refusal, "; %s: %.200s", rows, client_text(j->m.x->iut));
    if (!unharmed(j, rows) || !too_many_together(j, token, parent) || !unharmed(j, rows)) return false;
    /* Sequence 2 is filled up to its last position; one more is refused, and it stays full. */
    int32_t none = 0, length = -1;
    if (!lm_fill(&j->m, 2, 0, token, POSITIONS, ROWS - 7, NULL) ||
        !lm_refused(&j->m, "forward",
                    lm_try_forward(&j->m, 2, token, NULL, 1, &none, 0, j->got), positions) ||
        !result_call(j->m.r, j->m.x, "commit", lm_try_commit(&j->m, 2, NULL, 0, &length)))
        return false;
    if (length != POSITIONS)
        result_set(j->m.r, STATE_FAIL, "after a refused forward: length %d where %d is due",
                   (int)length, (int)POSITIONS);
    if (!lm_plain(&j->m, 3, 0, token, POSITIONS, NULL) ||
        !lm_same_cache(&j->m, 2, 3, 0, POSITIONS, "after the refusal of %s", positions))
        return false;
    /* A chain that would end one position too far, on a prefix that stays. */
    return lm_fill(&j->m, 0, PREFIX, token, room - 10, ROWS, NULL) &&
           lm_refused(&j->m, "forward",
                      lm_try_forward(&j->m, 0, token, NULL, 11, &none, 0, j->got), positions) &&
           lm_truncate(&j->m, 0, PREFIX) && unharmed(j, positions);
}

/* ---- The case. ------------------------------------------------------------------- */

static void run(const check_case *c, const check_context *x, check_result *r)
{
    static bool (*const does[KINDS])(job *) = {ask_paths,     ask_invisible, ask_visible,
                                               ask_wants,     ask_refused,   ask_commits,
                                               ask_forgotten, ask_capacity};
    job j = {.rng = check_seed(x, c, 0)};
    if (lm_open(&j.m, x, r, models[c->model.folder], SEQUENCES, POSITIONS, ROWS)) {
        j.m.clause = clause_of[c->model.kind];
        lm_tokens(&j.m, &j.rng, j.prefix, PREFIX);
        random_tree(&j);
        j.got = lm_floats(&j.m, POSITIONS);
        j.want = lm_floats(&j.m, POSITIONS);
        if (j.got && j.want && lm_fill(&j.m, 0, 0, j.prefix, PREFIX, PREFIX, NULL) &&
            does[c->model.kind](&j))
            result_set(r, STATE_PASS, "%lld comparisons and refusals%s", (long long)r->compared,
                       j.refusal);
        lm_conclude(&j.m);
    }
    free(j.got);
    free(j.want);
    lm_close(&j.m);
}

const check check_lm_tree = {
    .name = "lm.tree",
    .clauses = "TREE-01 TREE-02 TREE-03 TREE-04 KV-01 KV-03 KV-04 KV-06 LAY-06",
    .summary = "positions, visibility, wanted rows, and what must be refused",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
