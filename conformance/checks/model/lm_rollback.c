/* lm.rollback - the cache after every kind of step (KV-01 to KV-08): drafts kept and dropped,
 * committed and truncated, in every order; each state is held against a run that never drafted
 * anything: the length, the bits of every entry, and the logits that follow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm.h"

enum { STEPS, CROP, NESTED, ZERO, REUSE, POISON, SCATTER, DRAFTER, COMPANY, KINDS };
static const char *const kind_name[] = {"steps",  "crop",    "nested",  "zero",   "reuse",
                                        "poison", "scatter", "drafter", "company"};
static const char *const clause_of[KINDS] = {"KV-02", "KV-03", "KV-03", "KV-07", "KV-07",
                                             "KV-05", "KV-02", "KV-08", "TREE-07"};
static const char *const models[] = {"long", "normed", "draft", "target"};
enum { LONG, NORMED, DRAFT, TARGET, TOKENS = 200, ROWS = 120, POSITIONS = 256 };

/* How many drafts of each step are right. */
enum { NEVER, ALWAYS, ALTERNATING, ANY, THEN_NONE, HABITS };
static const char *const habit_name[] = {"never", "always", "alternating", "any", "then-none"};

static void plan_one(check_plan *p, int32_t m, int32_t kind, int32_t habit, int32_t gamma)
{
    const bool steps = kind == STEPS || kind == CROP || kind == POISON || kind == DRAFTER;
    check_case *c = steps
                        ? plan_case(p, &check_lm_rollback, "%s-%s-%s-g%d", models[m],
                                    kind_name[kind], habit_name[habit], (int)gamma)
                        : plan_case(p, &check_lm_rollback, "%s-%s", models[m], kind_name[kind]);
    c->model.folder = m;
    c->model.kind = kind;
    c->model.habit = habit;
    c->model.gamma = gamma;
    c->cost = 3e4;
}

/* Chain decoding by habit and gamma; the rest once a model. Trained models are for a few. */
static void plan(check_plan *p, check_level level)
{
    static const int32_t gammas[] = {1, 4, 8, 2, 3, 5, 6, 7};
    const int32_t per_habit = level == LEVEL_SMOKE ? 1 : level == LEVEL_FULL ? 3 : 8;
    for (int32_t m = 0; m < DRAFT; m++)
        for (int32_t kind = 0; kind < KINDS; kind++) {
            const bool steps =
                kind == STEPS || kind == CROP || kind == POISON || kind == DRAFTER;
            /* ALTERNATING has steps of NEVER and of ALWAYS. */
            const int32_t first = !steps || level > LEVEL_SMOKE ? 0 : m == NORMED ? ANY : ALTERNATING;
            for (int32_t habit = first; habit < (steps ? HABITS : 1); habit++)
                for (int32_t i = 0; i < (steps ? per_habit : 1); i++)
                    plan_one(p, m, kind, habit, gammas[(per_habit > 1 ? i : habit + kind) % 8]);
        }
    plan_one(p, DRAFT, STEPS, ANY, 4);
    for (int32_t kind = CROP; level > LEVEL_SMOKE && kind < KINDS; kind++)
        plan_one(p, DRAFT, kind, ANY, 5);
    if (level > LEVEL_SMOKE) plan_one(p, TARGET, STEPS, ANY, 4);
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return lm_claimed(tested, models[c->model.folder],
                      LM_BITS | (c->model.kind == POISON ? LM_POISON : 0), why, size);
}

/* Sequence 0 is under test; sequence 1 has walked the tokens one by one. */
typedef struct {
    lm m;
    uint64_t rng;
    int32_t gamma, habit, steps;
    int32_t token[TOKENS];
    float *plain, *got; /* [TOKENS][V], [ROWS][V] */
} job;

static int32_t other_than(job *j, int32_t token)
{
    return (token + 1 + probe_below(&j->rng, j->m.V - 1)) % j->m.V;
}

/* Accepted drafts of the next step. */
static int32_t accepted(job *j)
{
    const int32_t step = j->steps++;
    return j->habit == NEVER         ? 0
           : j->habit == ALWAYS      ? j->gamma
           : j->habit == ALTERNATING ? (step % 2 ? j->gamma : 0)
           : j->habit == THEN_NONE   ? (step % 3 == 0   ? j->gamma
                                        : step % 3 == 1 ? 1
                                                        : 0)
                                     : probe_below(&j->rng, j->gamma + 1);
}

/* The last token emitted and `drafts` after it, of which the first `right` are right. */
static void fill_step(job *j, int32_t at, int32_t drafts, int32_t right, int32_t *row)
{
    for (int32_t i = 0; i <= drafts; i++)
        row[i] = i <= right ? j->token[at + i] : other_than(j, j->token[at + i]);
}

static bool state_is(job *j, int32_t n, const char *what)
{
    return lm_same_state(&j->m, 0, 1, j->token, j->plain, n, "%s, %d tokens committed", what,
                         (int)n);
}

static bool right_logits(job *j, int32_t at, int32_t rows, const char *what)
{
    return lm_same_logits(&j->m, j->got, j->plain + (int64_t)at * j->m.V, rows,
                          "%s, rows after %d tokens", what, (int)at);
}

/* ---- Chain decoding. ------------------------------------------------------------- */

/* Every step commits what it accepts: the state is held against the plain run each time it has
 * passed a boundary of 64, and at the end. In a step without drafts (habit then-none) the root
 * goes alone, as in plain decoding. */
static bool walk(job *j, bool poison, bool crop, const char *what)
{
    int32_t at = 0, seen = 0;
    while (at + j->gamma + 2 < TOKENS - 40) {
        int32_t row[16];
        const int32_t a = accepted(j);
        const int32_t drafts = j->habit == THEN_NONE && j->steps % 3 == 0 ? 0 : j->gamma;
        fill_step(j, at, drafts, a, row);
        const int32_t kept = 1 + (a < drafts ? a : drafts);
        if (poison && !lm_poison(&j->m)) return false;
        if (!lm_forward(&j->m, 0, row, NULL, drafts + 1, NULL, 0, j->got) ||
            !right_logits(j, at, kept, what))
            return false;
        if (crop ? !lm_commit(&j->m, 0, NULL, drafts + 1, at + drafts + 1) ||
                       !lm_truncate(&j->m, 0, at + kept)
                 : !lm_commit(&j->m, 0, NULL, kept, at + kept))
            return false;
        at += kept;
        if (at / 64 != seen / 64 || at + j->gamma + 2 >= TOKENS - 40) {
            if (poison && !lm_poison(&j->m)) return false;
            if (!state_is(j, at, what)) return false;
            seen = at;
        }
    }
    return true;
}

static bool does_steps(job *j)
{
    return walk(j, false, false, "after steps that commit what they accept");
}

static bool does_crop(job *j)
{
    return walk(j, false, true, "after steps that commit all and truncate");
}

/* Rows of a forward before the poison are gone: none of them can be committed. */
static bool forgets_rows(job *j)
{
    int32_t length;
    return lm_truncate(&j->m, 0, 1) &&
           lm_forward(&j->m, 0, j->token + 1, NULL, 2, NULL, 0, j->got) && lm_poison(&j->m) &&
           lm_refused(&j->m, "commit", lm_try_commit(&j->m, 0, NULL, 1, &length),
                      "a row from before the poison");
}

/* KV-05: whatever is not committed holds NaN before every forward. */
static bool does_poison(job *j)
{
    return lm_poison(&j->m) && walk(j, true, j->habit % 2, "with all free slots poisoned") &&
           forgets_rows(j);
}

/* KV-08: a draft model evaluates row by row what it proposes, the last token and gamma-1
 * drafts, and drops gamma-1-a of them; after a full run it lacks the last accepted draft. */
static bool does_drafter(job *j)
{
    int32_t at = 0, held = 0; /* emitted but the last; evaluated */
    while (at + j->gamma + 2 < TOKENS - 40) {
        int32_t row[16];
        const int32_t a = accepted(j), right = a < j->gamma ? a : j->gamma;
        fill_step(j, at, j->gamma, right, row);
        if (held < at && !lm_fill(&j->m, 0, held, j->token + held, at - held, 1, NULL))
            return false;
        for (int32_t i = 0; i < j->gamma; i++)
            if (!lm_forward(&j->m, 0, row + i, NULL, 1, NULL, 0, j->got) ||
                !(i > right || right_logits(j, at + i, 1, "a draft model's own row")) ||
                !lm_commit(&j->m, 0, NULL, 1, at + i + 1))
                return false;
        held = at + j->gamma;
        at += right + 1;
        if (held > at && !lm_truncate(&j->m, 0, at)) return false;
        if (held > at) held = at;
    }
    return state_is(j, held, "after the steps of a draft model");
}

/* ---- Truncations. ---------------------------------------------------------------- */

/* Rows of other tokens on top, committed, and cut off again: to `keep`. */
static bool detour(job *j, int32_t from, int32_t rows, int32_t keep)
{
    int32_t token[ROWS];
    lm_tokens(&j->m, &j->rng, token, rows);
    return lm_fill(&j->m, 0, from, token, rows, rows, NULL) && lm_truncate(&j->m, 0, keep);
}

/* Repeated, nested and second rollbacks, on both sides of position 64 and onto it. */
static bool does_nested(job *j)
{
    static const int32_t lengths[] = {10, 63, 64, 65, 100, 128, 130};
    int32_t at = 0;
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int32_t n = lengths[i];
        if (!lm_fill(&j->m, 0, at, j->token + at, n - at, 50, NULL)) return false;
        if (!detour(j, n, 9, n) || !detour(j, n, 70, n + 66) || !lm_truncate(&j->m, 0, n + 3) ||
            !detour(j, n + 3, 64, n + 64) || !lm_truncate(&j->m, 0, n) ||
            !lm_truncate(&j->m, 0, n) || !state_is(j, n, "after nested rollbacks") ||
            !detour(j, n, 1, n) || !state_is(j, n, "after a second rollback"))
            return false;
        at = n;
    }
    /* Back over the boundaries, each shorter than the last. */
    for (size_t i = sizeof lengths / sizeof *lengths; i-- > 0;)
        if (!lm_truncate(&j->m, 0, lengths[i]) ||
            !state_is(j, lengths[i], "after rollbacks to ever shorter prefixes"))
            return false;
    return true;
}

static bool does_zero(job *j)
{
    for (int32_t round = 0; round < 3; round++)
        if (!detour(j, 0, 70 - 30 * round, 0) ||
            !lm_forward(&j->m, 0, j->token, NULL, 40, NULL, 0, j->got) ||
            !right_logits(j, 0, 40, "after a rollback to 0") ||
            !lm_commit(&j->m, 0, NULL, 40, 40) || !state_is(j, 40, "after a rollback to 0") ||
            !lm_truncate(&j->m, 0, 0))
            return false;
    return true;
}

/* KV-07: a second and a third request on a state that served a longer and a shorter one. */
static bool does_reuse(job *j)
{
    static const int32_t before[] = {150, 5, 90};
    for (int32_t i = 0; i < 3; i++)
        if (!detour(j, 0, before[i] > ROWS ? ROWS : before[i], 0) ||
            !lm_plain(&j->m, 0, 0, j->token, 70, j->got) ||
            !right_logits(j, 0, 70, "in a second request") ||
            !state_is(j, 70, "in a second request") || !lm_truncate(&j->m, 0, 0))
            return false;
    return true;
}

/* ---- Wide trees, and other sequences. -------------------------------------------- */

/* The path is rows first, first+stride, ... of ROWS; what is between are other tokens. */
static bool scatter(job *j, int32_t at, int32_t first, int32_t stride, int32_t n)
{
    int32_t token[ROWS], parent[ROWS], path[ROWS];
    lm_tokens(&j->m, &j->rng, token, ROWS);
    for (int32_t i = 0; i < ROWS; i++) parent[i] = probe_below(&j->rng, i + 1) - 1;
    for (int32_t i = 0; i < n; i++) {
        path[i] = first + i * stride;
        token[path[i]] = j->token[at + i];
        parent[path[i]] = i ? path[i - 1] : -1;
    }
    return lm_forward(&j->m, 0, token, parent, ROWS, path, n, j->got) &&
           right_logits(j, at, n, "on a path through 120 rows") &&
           lm_commit(&j->m, 0, path, n, at + n) &&
           state_is(j, at + n, "after a commit of scattered rows");
}

static bool does_scatter(job *j)
{
    static const struct {
        int32_t first, stride, n;
    } set[] = {{0, 2, 40}, {1, 1, 30}, {3, 29, 5}, {0, 17, 7}, {2, 2, 30}, {119, 1, 1}};
    int32_t at = 0;
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        if (!scatter(j, at, set[i].first, set[i].stride, set[i].n)) return false;
        at += set[i].n;
    }
    return true;
}

/* A sequence is not moved by what happens to its neighbours, on either side. */
static bool does_company(job *j)
{
    static const int32_t others[] = {0, 2, 4, 5};
    const int32_t n = 70, tested = 3;
    int32_t token[ROWS];
    if (!lm_fill(&j->m, tested, 0, j->token, n, 33, NULL)) return false;
    for (int32_t i = 0; i < 4; i++) {
        const int32_t s = others[i], kept = i == 1 ? 0 : 7 * i;
        lm_tokens(&j->m, &j->rng, token, ROWS);
        if (!lm_fill(&j->m, s, 0, token, 20 + 20 * i, 50, NULL) ||
            !lm_truncate(&j->m, s, kept) || !lm_fill(&j->m, s, kept, token, 30, 9, NULL) ||
            !lm_same_state(&j->m, tested, 1, j->token, j->plain, n,
                           "sequence %d, %d tokens committed, after steps of sequence %d",
                           (int)tested, (int)n, (int)s))
            return false;
    }
    return true;
}

/* ---- The case. ------------------------------------------------------------------- */

static void run(const check_case *c, const check_context *x, check_result *r)
{
    static bool (*const does[KINDS])(job *) = {does_steps,   does_crop,    does_nested,
                                               does_zero,    does_reuse,   does_poison,
                                               does_scatter, does_drafter, does_company};
    job j = {.rng = check_seed(x, c, 0), .gamma = c->model.gamma, .habit = c->model.habit};
    if (lm_open(&j.m, x, r, models[c->model.folder], 6, POSITIONS, ROWS)) {
        j.m.clause = clause_of[c->model.kind];
        lm_tokens(&j.m, &j.rng, j.token, TOKENS);
        j.plain = lm_floats(&j.m, TOKENS);
        j.got = lm_floats(&j.m, ROWS);
        if (j.plain && j.got && lm_plain(&j.m, 1, 0, j.token, TOKENS - 40, j.plain) &&
            does[c->model.kind](&j))
            result_set(r, STATE_PASS, "%lld rows, lengths and entries, all the same bits",
                       (long long)r->compared);
        lm_conclude(&j.m);
    }
    free(j.plain);
    free(j.got);
    lm_close(&j.m);
}

const check check_lm_rollback = {
    .name = "lm.rollback",
    .clauses = "KV-01 KV-02 KV-03 KV-04 KV-05 KV-07 KV-08 TREE-06 TREE-07 LAY-06",
    .summary = "cache, length and logits after rollbacks are those of a run without drafts",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
