/* lm_random.c - lm.random: drawn operations over several sequences of a drawn model, in any order, each answer held
 * against the paths alone (LAY-16). What is asked is drawn; what is due is not: a sequence is a list of tokens. */
#include <stdio.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm_drive.h"

static const char *const name[] = {"llama", "qwen2", "qwen3"}; /* 1 << i: as of iut.h */

/* One of each architecture, also where nothing may be drawn. */
static void plan(check_plan *p, check_level level)
{
    (void)level;
    for (int32_t a = 0; a < 3; a++) {
        check_case *c = plan_case(p, &check_lm_random, "%s", name[a]);
        c->model.kind = 1 << a;
        c->model.tokens = 140;
        c->cost = 2e4;
    }
}

static void draw(check_plan *p, check_draw *d)
{
    const int32_t cases = d->level == LEVEL_SMOKE ? 2 : d->level == LEVEL_FULL ? 24 : 120;
    const int32_t served = CLAIMED(client_claims(d->iut), lm_architectures), most = client_claims(d->iut)->max_vocab;
    if (most > 0 && most < LM_LEAST) return;
    const int32_t first = probe_below(&d->rng, 3);
    for (int32_t i = 0; i < cases; i++) {
        int32_t a = (first + i) % 3;
        for (int32_t k = 0; k < 3 && !(served & 1 << a); k++) a = (a + 1) % 3;
        check_case *c = draw_case(p, d, &check_lm_random, "%s", name[a]);
        c->model.kind = 1 << a;
        c->model.tokens = 30 + probe_below(&d->rng, 50);
        c->cost = 1e4;
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return lm_claimed_kind(tested, (uint8_t)c->model.kind, LM_LEAST, LM_BITS, why, size);
}

/* ---- A drawn script. ------------------------------------------------------------------------- */

typedef struct {
    lm_form form;
    lm_script script;
    lm_state state;
    uint64_t rng;
    bool cache, poison;
} job;

static int32_t below(job *j, int32_t n)
{
    return probe_below(&j->rng, n);
}

/* Some of the sequences, at least one, in any order; how many. */
static int32_t some(job *j, int32_t *out)
{
    const int32_t S = j->state.sequences, n = below(j, 2) ? S : 1 + below(j, S);
    for (int32_t i = 0; i < S; i++) out[i] = i;
    for (int32_t i = 0; i < S; i++) {
        const int32_t k = i + below(j, S - i), swap = out[i];
        out[i] = out[k], out[k] = swap;
    }
    return n;
}

/* The step that was just added, as it can be asked. */
static void play_last(job *j)
{
    lm_script *s = &j->script;
    if (s->failed) return;
    if (lm_state_fit(&j->state, s, s->steps - 1))
        lm_state_do(&j->state, s, s->steps - 1);
    else
        s->steps--;
}

/* Capacities at which pages and tiles end, and others; or those of the load before, in another layout. */
static void add_load(job *j)
{
    static const int32_t positions[] = {40, 65, 96, 128, 130, 200}, rows[] = {12, 31, 33, 64, 100, 150},
                         other[] = {1, 1, 17, 33, LM_MOST_SEQUENCES};
    const uint32_t layout = (uint32_t)probe_next(&j->rng);
    if (j->state.sequences > 0 && below(j, 3) == 0)
        lm_add_load(&j->script, j->state.sequences, j->state.positions, j->state.rows, layout);
    else
        lm_add_load(&j->script, below(j, 8) ? 2 + below(j, 4) : other[below(j, 5)],
                    positions[below(j, 6)], rows[below(j, 6)], layout);
    play_last(j);
}

/* A chain, siblings, or a tree that is deep or wide; tokens of few values make equal paths. */
static void add_tree(job *j, int32_t sequence, int32_t rows)
{
    enum { CHAIN, SIBLINGS, DEEP, WIDE, SHAPES };
    const int32_t shape = below(j, SHAPES), V = below(j, 4) ? j->form.V : 3;
    const int32_t room = j->state.positions - j->state.held[sequence].length;
    const int32_t wants = below(j, 5) == 0 ? 0 : 1 + below(j, rows < 12 ? rows : 12);
    int32_t depth[256];
    lm_part *p = rows > 0 && room > 0 ? lm_add_tree(&j->script, sequence, rows, wants) : NULL;
    if (!p) return;
    int32_t *token = lm_numbers(&j->script, p->token), *parent = lm_numbers(&j->script, p->parent),
            *want = lm_numbers(&j->script, p->want);
    for (int32_t r = 0; r < rows; r++) {
        token[r] = below(j, V);
        parent[r] = shape == CHAIN || (shape == DEEP && below(j, 3)) ? r - 1
                    : shape == SIBLINGS                              ? -1
                                                                     : below(j, r + 1) - 1;
        depth[r] = parent[r] < 0 ? 1 : depth[parent[r]] + 1;
        if (depth[r] > room) parent[r] = -1, depth[r] = 1;
    }
    for (int32_t k = 0; k < wants; k++) want[k] = below(j, 4) ? below(j, rows) : rows - 1;
}

static void add_forward(job *j)
{
    int32_t sequence[LM_MOST_SEQUENCES], left = j->state.rows;
    const int32_t n = some(j, sequence), size = below(j, 5), most = size == 0 ? left : size == 1 ? 1 : 9;
    lm_add_step(&j->script, STEP_FORWARD);
    for (int32_t i = 0; i < n && left > 0; i++) {
        const int32_t rows = 1 + below(j, most < left ? most : left);
        add_tree(j, sequence[i], rows);
        left -= rows;
    }
    play_last(j);
}

/* A sequence grows to about the end of a page. */
static void add_prefill(job *j)
{
    static const int32_t lengths[] = {31, 60, 63, 64, 65, 90, 126, 127, 128, 129};
    const int32_t sequence = below(j, j->state.sequences), from = j->state.held[sequence].length;
    int32_t n = lengths[below(j, (int32_t)(sizeof lengths / sizeof *lengths))] - from;
    if (n > j->state.rows) n = j->state.rows;
    if (n > j->state.positions - from) n = j->state.positions - from;
    if (n < 1) return;
    lm_add_step(&j->script, STEP_FORWARD);
    lm_part *p = lm_add_tree(&j->script, sequence, n, 1);
    for (int32_t r = 0; p && r < n; r++) {
        lm_numbers(&j->script, p->token)[r] = below(j, j->form.V);
        lm_numbers(&j->script, p->parent)[r] = r - 1;
    }
    if (p) lm_numbers(&j->script, p->want)[0] = n - 1;
    play_last(j);
    lm_add_step(&j->script, STEP_COMMIT);
    lm_add_part(&j->script, sequence, n - 1, 0);
    play_last(j);
}

static void add_one(job *j, lm_kind kind, int32_t sequence)
{
    lm_add_step(&j->script, kind);
    lm_add_part(&j->script, sequence, 0, 0);
    play_last(j);
}

/* A row of a sequence's last forward; if it can be found soon, one whose path is as long as `like`. */
static int32_t any_row(job *j, const lm_held *h, int32_t like)
{
    int32_t rows[256], row = below(j, h->rows);
    for (int32_t i = 0; i < 8 && lm_row_rows(lm_numbers(&j->script, h->parent_at), row, rows) != like; i++)
        row = below(j, h->rows);
    return row;
}

/* Of sequences that have rows, and of some that have none; a third of the paths are empty. Others are often of one
 * length: what belongs to one sequence then fits another. */
static void add_commit(job *j)
{
    int32_t sequence[LM_MOST_SEQUENCES];
    const int32_t n = some(j, sequence), like = 1 + below(j, 4);
    lm_add_step(&j->script, STEP_COMMIT);
    for (int32_t i = 0; i < n; i++) {
        const lm_held *h = &j->state.held[sequence[i]];
        lm_add_part(&j->script, sequence[i], !h->rows || below(j, 3) == 0 ? -1 : any_row(j, h, like), 0);
    }
    play_last(j);
    if (below(j, 3) == 0) add_one(j, STEP_STALE, sequence[below(j, n)]);
}

static void add_truncate(job *j)
{
    int32_t sequence[LM_MOST_SEQUENCES];
    const int32_t n = some(j, sequence);
    lm_add_step(&j->script, STEP_TRUNCATE);
    for (int32_t i = 0; i < n; i++) {
        const int32_t length = j->state.held[sequence[i]].length, few = length < 6 ? length : 6;
        lm_add_part(&j->script, sequence[i], below(j, 4) ? length - below(j, few + 1) : below(j, length + 1), 0);
    }
    play_last(j);
    if (below(j, 3) == 0) add_one(j, STEP_STALE, sequence[below(j, n)]);
}

/* Entries in any order, of several sequences; `most` of them at most. */
static void add_read(job *j, int32_t most)
{
    lm_add_step(&j->script, STEP_READ);
    for (int32_t i = 0; i < most; i++) {
        const int32_t sequence = below(j, j->state.sequences), length = j->state.held[sequence].length;
        if (length > 0) lm_add_part(&j->script, sequence, below(j, length), below(j, j->form.layers));
    }
    play_last(j);
}

static void add_poison(job *j)
{
    lm_add_step(&j->script, STEP_POISON);
    play_last(j);
}

/* What must be refused; after a forward too large no rows wait (KV-04). */
static void add_refused(job *j)
{
    const int32_t kind = below(j, 4), sequence = below(j, j->state.sequences);
    if (kind < 2) add_one(j, kind ? STEP_TOO_MANY : STEP_TOO_LONG, sequence);
    add_one(j, STEP_STALE, sequence);
}

/* Operations by how often they are drawn, in 32. */
static void add_any(job *j)
{
    const int32_t kind = below(j, 32);
    if (kind < 10)
        add_forward(j);
    else if (kind < 13)
        add_prefill(j);
    else if (kind < 20)
        add_commit(j);
    else if (kind < 24)
        add_truncate(j);
    else if (kind < 27 && j->cache)
        add_read(j, 10);
    else if (kind < 28 && j->poison)
        add_poison(j);
    else if (kind < 30)
        add_refused(j);
    else
        add_load(j);
}

static bool write_script(job *j, int32_t operations)
{
    /* The state's room is that of the largest load. */
    const lm_step largest = {.kind = STEP_LOAD, .positions = 256};
    const lm_script room = {.steps = 1, .step = (lm_step[]){largest}};
    if (!lm_state_open(&j->state, &room)) return false;
    add_load(j);
    for (int32_t i = 0; i < operations; i++) add_any(j);
    add_forward(j);
    if (j->cache) add_read(j, 40);
    return !j->script.failed;
}

/* ---- The case. ------------------------------------------------------------------------------- */

static void run(const check_case *c, const check_context *x, check_result *r)
{
    job j = {.rng = check_seed(x, c, 0),
             .cache = client_has(x->iut, OP_CACHE_READ),
             .poison = client_has(x->iut, OP_CACHE_POISON)};
    j.form = lm_form_draw(&j.rng, (uint8_t)c->model.kind, 256, client_claims(x->iut)->max_vocab);
    if (write_script(&j, c->model.tokens))
        lm_drive(x, r, &j.form, &j.script);
    else
        result_set(r, STATE_ERROR, "the suite is short of memory");
    lm_state_close(&j.state);
    lm_script_free(&j.script);
}

const check check_lm_random = {
    .name = "lm.random",
    .clauses = "TREE-01 TREE-02 TREE-03 TREE-04 TREE-05 TREE-06 TREE-07 TREE-08 KV-01 KV-02 KV-03 KV-04 KV-05 KV-06 "
               "KV-07 LAY-06 LAY-16",
    .summary = "drawn operations over several sequences of a drawn model give what the paths alone give",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
