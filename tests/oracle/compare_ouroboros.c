/* The reference's Ouroboros against the oracle's, round by round: drafts, suffixes, rows, run,
 * window and pool, and the tokens that both models have committed. Three requests on one
 * drafter each, whose pool may stay from one to the next.
 *
 *     compare_ouroboros [COUNT [FIRST]]
 *
 * Exit code 0: no difference. Clauses OUR, STOP-01, STOP-02. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/ours/path_lm.h"
#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/ouroboros.h"
#include "tests/oracle/ouroboros_request.h"
#include "tests/scale.h"

/* What a run of the reference is held against. */
typedef struct {
    const ouroboros_request *r;
    const oracle_rounds *want;
    const path_lm *target, *draft;
    as_drafter *d;
    int32_t rounds, drafted; /* done; rounds with a draft step */
    oracle_list history;
    char fault[280]; /* the first, or empty */
} spy;

static int32_t rounds_seen, suffixes_seen, inspired_seen;

static void blame(spy *s, const char *what)
{
    if (!*s->fault) snprintf(s->fault, sizeof s->fault, "round %d: %s", (int)s->rounds, what);
}

/* ---- One round -------------------------------------------------------------------- */

static bool same_list(const oracle_list *want, const int32_t *t, int32_t n)
{
    return want->n == n && (n == 0 || !memcmp(want->t, t, (size_t)n * sizeof *t));
}

/* The tokens from below the root to a row. */
static void path_of(const as_tree *t, int32_t row, oracle_list *path)
{
    if (t->row[row].parent >= 0) {
        path_of(t, t->row[row].parent, path);
        oracle_push(path, t->row[row].token);
    }
}

static bool same_rows(const oracle_lists *want, const as_tree *t)
{
    bool same = want->n == t->rows;
    for (int32_t i = 0; same && i < t->rows; i++) {
        oracle_list path = {0};
        path_of(t, i, &path);
        same = oracle_alike(&path, &want->l[i]);
        oracle_list_free(&path);
    }
    return same;
}

/* The accepted rows spell what was accepted, and each hangs under the one before it. */
static bool good_path(const as_step *step)
{
    bool good = step->path[0] == 0;
    for (int32_t i = 1; i <= step->accepted; i++) {
        const as_row *row = &step->tree->row[step->path[i]];
        good = good && row->parent == step->path[i - 1] && row->token == step->run[i - 1];
    }
    return good;
}

/* LAH-01 of the window; the reference has none before the first draft step. */
static bool same_window(const spy *s, const oracle_lists *want)
{
    const as_drafter *lookahead = as_ouroboros_lookahead(s->d);
    int32_t n, l = 0;
    if (s->drafted == 0) return oracle_lists_alike(want, &s->want->window0);
    for (; l < want->n; l++) {
        const int32_t *row = as_lookahead_row(lookahead, l, &n), root = l == 0;
        if (!row || !same_list(&want->l[l], row + root, n - root)) return false;
    }
    return !as_lookahead_row(lookahead, l, &n);
}

static bool same_pool(const spy *s, const oracle_pool *want)
{
    const as_pool *pool = as_lookahead_pool(as_ouroboros_lookahead(s->d));
    for (int32_t key = 0; key < s->r->pair.V; key++) {
        const oracle_lists *due = oracle_pool_values(want, key);
        int32_t count;
        const int32_t length = s->r->m.N - 1, *value = as_pool_find(pool, key, &count);
        if (count != due->n) return false;
        for (int32_t i = 0; i < count; i++)
            if (!same_list(&due->l[i], value + i * length, length)) return false;
    }
    return true;
}

/* OUR-24: the history but for its last token; a beginning of it. */
static bool good_caches(const spy *s)
{
    const int32_t n = s->history.n - 1;
    const path_lm *t = s->target, *d = s->draft;
    return t->length == n && !memcmp(t->prefix, s->history.t, (size_t)n * sizeof(int32_t)) &&
           d->length <= n &&
           !memcmp(d->prefix, s->history.t, (size_t)d->length * sizeof(int32_t));
}

static void look(void *data, const as_step *step)
{
    spy *s = data;
    if (s->rounds >= s->want->rounds) {
        blame(s, "one more than the oracle's");
        return;
    }
    const oracle_round *due = &s->want->round[s->rounds];
    int32_t steps;
    const int32_t drafts = as_ouroboros_drafts(s->d, &steps), length = s->r->m.N - 1;
    s->drafted += steps > 0;
    oracle_append(&s->history, step->run, step->emitted);
    if (drafts != due->drafts.n || steps != due->draft_steps) blame(s, "number of drafts");
    if ((step->tree->rows - 1 - drafts) != due->suffixes.n * length) blame(s, "suffixes");
    if (!same_rows(&due->step.rows, step->tree)) blame(s, "rows");
    if (step->accepted != due->step.accepted) blame(s, "accepted");
    if (!same_list(&due->step.run, step->run, step->length)) blame(s, "run");
    if (!same_list(&due->step.emitted, step->run, step->emitted)) blame(s, "emitted");
    if (!same_pool(s, &due->step.pool)) blame(s, "pool");
    if (!same_window(s, &due->step.window)) blame(s, "window");
    if (!good_path(step)) blame(s, "path");
    if (!good_caches(s)) blame(s, "caches");
    s->rounds++;
    rounds_seen++;
    suffixes_seen += due->suffixes.n > 0;
    inspired_seen += due->inspired.n > 0;
}

/* ---- Requests --------------------------------------------------------------------- */

static as_ouroboros options_of(const ouroboros_request *r, bool warm)
{
    const oracle_ouroboros *m = &r->m;
    const bool given = m->sw[OUR_INIT] == OUR_INIT_GIVEN;
    return (as_ouroboros){.gamma = m->gamma,
                          .W = m->W,
                          .N = m->N,
                          .K = m->K,
                          .draft_bonus = m->sw[OUR_DRAFT_BONUS],
                          .overrun = m->sw[OUR_OVERRUN],
                          .suffix_bonus = m->sw[OUR_SUFFIX_BONUS],
                          .inspire = (as_inspire)m->sw[OUR_INSPIRE],
                          .refine = (as_refine)m->sw[OUR_REFINE],
                          .refine_few = m->sw[OUR_REFINE_REFUSED] == OUR_REFINE_FEW,
                          .warm = warm,
                          .given = given ? m->given : NULL,
                          .givens = given ? m->given_n : 0};
}

/* The next request on both sides; false, and a line about it, unless they agree. */
static bool agrees(uint64_t number, ouroboros_request *r, oracle_instance *x, path_lm *target,
                   path_lm *draft, as_drafter *d)
{
    oracle_rounds want;
    int32_t out[64];
    as_result result;
    as_error e = {.text = ""};
    ouroboros_request_next(r);
    oracle_ouroboros_decode(x, &r->both, &r->q, &r->m, &want);
    target->base.positions = r->q.positions, target->base.rows = r->q.rows;
    draft->base.positions = r->both.draft_positions, draft->base.rows = r->both.draft_rows;
    spy s = {.r = r, .want = &want, .target = target, .draft = draft, .d = d};
    oracle_append(&s.history, r->q.prompt, r->q.n);
    const bool greedy = r->q.sampling.temperature == 0;
    const as_request q = {.target = &target->base,
                          .drafter = d,
                          .rule = greedy ? AS_RULE_GREEDY : AS_RULE_MATCH,
                          .sampling = {r->q.sampling.temperature, 0, 1.0f, 0.0f},
                          .seed = r->q.seed,
                          .prompt = r->q.prompt,
                          .prompts = r->q.n,
                          .eos = &r->q.eos,
                          .eoses = r->q.eos >= 0,
                          .budget = r->q.budget,
                          .trace = look,
                          .trace_data = &s};
    if (as_decode(&q, out, &result, &e) != AS_OK) blame(&s, e.text);
    if (s.rounds != want.rounds) blame(&s, "number of rounds");
    if (!same_list(&want.tokens, out, result.tokens)) blame(&s, "output");
    if (*s.fault) printf("request %" PRIu64 ": %s\n", number, s.fault);
    oracle_list_free(&s.history);
    oracle_rounds_free(&want);
    return !*s.fault;
}

/* The reference's drafter begins with the pool of the oracle's instance. */
static void fill_pool(const oracle_pool *from, as_drafter *d)
{
    as_pool *pool = as_lookahead_pool(as_ouroboros_lookahead(d));
    for (int32_t k = 0; k < from->keys; k++)
        for (int32_t i = 0; i < from->of[k].values.n; i++)
            as_pool_insert(pool, from->of[k].key, from->of[k].values.l[i].t, NULL);
}

static bool agrees_on(uint64_t number)
{
    static ouroboros_request r;
    oracle_instance x;
    as_drafter *d;
    as_error e = {.text = ""};
    vector_toy toy[2] = {{.automaton = true}, {.automaton = true}};
    ouroboros_request_make(number, &r, &x);
    for (int32_t k = 0; k < 2; k++) toy[k].table = r.pair.table[k];
    path_lm *target = path_lm_new(&toy[0], 0, 0), *draft = path_lm_new(&toy[1], 0, 0);
    const as_ouroboros o = options_of(&r, x.warm);
    bool good = as_draft_ouroboros(&draft->base, &o, &d, &e) == AS_OK;
    if (!good) printf("request %" PRIu64 ": %s\n", number, e.text);
    if (good) {
        fill_pool(&x.pool, d);
        for (int32_t i = 0; i < 3 && good; i++) good = agrees(number, &r, &x, target, draft, d);
        as_drafter_free(d);
    }
    as_lm_free(&target->base);
    as_lm_free(&draft->base);
    oracle_pool_free(&x.pool);
    return good;
}

/* ---- What must be refused, and presets -------------------------------------------- */

static bool refuses(as_ouroboros o, const char *about)
{
    const oracle_table table = {
        2, 1, 1, 0, (const int32_t[]){0, 0}, (const int32_t[]){0}, (const int32_t[]){0, 1}};
    const vector_toy toy = {.automaton = true, .table = table};
    path_lm *lm = path_lm_new(&toy, 0, 0);
    as_drafter *d;
    as_error e = {.text = ""};
    const as_status s = as_draft_ouroboros(&lm->base, &o, &d, &e);
    const bool good = s == AS_BAD_INPUT && e.about && !strcmp(e.about, about);
    if (!good) printf("%s is not refused by its name\n", about);
    if (s == AS_OK) as_drafter_free(d);
    as_lm_free(&lm->base);
    return good;
}

static bool refusals_agree(void)
{
    static const int32_t wrong[] = {2};
    const as_ouroboros o = {.gamma = 3, .W = 2, .N = 3, .K = 1};
    as_ouroboros bad[] = {o, o, o, o, o, o, o, o, o};
    static const char *const about[] = {"gamma", "gamma", "W", "W",    "N",
                                        "N",     "K",     "K", "given"};
    bool good = true;
    bad[0].gamma = -1, bad[1].gamma = AS_OUROBOROS_MOST + 1;
    bad[2].W = 0, bad[3].W = AS_OUROBOROS_MOST + 1;
    bad[4].N = 1, bad[5].N = AS_OUROBOROS_MOST + 1;
    bad[6].K = -1, bad[7].K = AS_OUROBOROS_MOST + 1;
    bad[8].given = wrong, bad[8].givens = 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) good &= refuses(bad[i], about[i]);
    return good;
}

static bool presets_agree(void)
{
    static const char *const name[] = {"paper", "code"};
    bool good = !as_ouroboros_preset("lade");
    for (size_t i = 0; i < 2; i++) {
        const ouroboros_request r = {.m = ouroboros_method(name[i], 0, 0, 0, 0)};
        const as_ouroboros due = options_of(&r, false), *has = as_ouroboros_preset(name[i]);
        good &= has && has->draft_bonus == due.draft_bonus && has->overrun == due.overrun &&
                has->suffix_bonus == due.suffix_bonus && has->inspire == due.inspire &&
                has->refine == due.refine && has->refine_few == due.refine_few && !has->warm &&
                has->givens == 0;
    }
    if (!good) printf("the presets differ\n");
    return good;
}

int main(int argc, char **argv)
{
    const uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 10) : (uint64_t)scaled(8000),
                   first = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    int32_t wrong = !presets_agree() + !refusals_agree();
    for (uint64_t i = first; i < first + count && wrong < 20; i++) wrong += !agrees_on(i);
    printf("%" PRIu64 " instances of 3 requests, %d differ; %d rounds, %d with suffixes, %d "
           "inspire\n",
           count, (int)wrong, (int)rounds_seen, (int)suffixes_seen, (int)inspired_seen);
    return wrong || rounds_seen == 0 || suffixes_seen == 0 || inspired_seen == 0;
}
