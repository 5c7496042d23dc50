/* lm.random and lm.long, against the reference, spoilt and right in other ways. Each spoilt one is wrong only where
 * several sequences, late positions, many rows or second loads meet; what it says of itself stays plausible. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/plan.h"
#include "conformance/checks/model/lm.h"
#include "conformance/checks/model/lm_script.h"
#include "conformance/subjects/ref/subject.h"

/* ---- The reference, spoilt. ---------------------------------------------------------------------- */

typedef enum {
    HONEST,
    /* Right in other ways. */
    OTHER_LAYOUT,   /* lays the cache out by another seed */
    OTHER_ORDER,    /* takes the sequences of a forward from the last to the first */
    OWN_BITS,       /* logits and entries of its own, the same however asked for */
    WITHOUT_CACHE,  /* neither cache_read nor cache_poison */
    /* Wrong. */
    FIRST_PATH,     /* commit: sequences with as many steps as the first get its path */
    FIRST_KEEP,     /* truncate: each sequence is cut to the first one's length, if it is that long */
    FIRST_READ,     /* cache_read: all of the first sequence, where that is long enough */
    FIRST_LAYER,    /* cache_read: all of the first layer asked for */
    FIRST_WANTS,    /* forward: rows that the first sequence wants are answered for all */
    FIRST_PARENTS,  /* forward: the first tree's parents hold for all */
    SECOND_LOST,    /* forward: the rows of other sequences' forwards before it are forgotten */
    EMPTY_IGNORED,  /* commit: a sequence with an empty path is left as it is, with its rows */
    WANTS_SORTED,   /* forward: logits in the order of the rows */
    WANTS_ONCE,     /* forward: a row that is wanted again gets the next row's logits */
    OLD_CAPACITY,   /* model: a second load keeps the capacities of the first */
    OLD_CONTENT,    /* model: a second load of the same capacities keeps the tokens */
    LATE_ANGLE,     /* a bit of the logits at positions from 2,048 on */
    LATE_PAGE,      /* a bit of the keys at positions from 2,048 on */
    LATE_ROW,       /* a bit of the logits of the rows from 130 on */
    LATE_ROW_300    /* the same from 300 on */
} way;

enum { SEQUENCES = 65, ROWS = 4096 };
static way spoilt;
static uint8_t arithmetic;
static iut_model loaded; /* the capacities that the reference has */
static char folder[400];
static int32_t V, layers;
static int32_t length[SEQUENCES], real[SEQUENCES]; /* as told, and as it is */
static bool waits[SEQUENCES];

static iut_status claims(iut *x, iut_claims *c)
{
    const iut_status s = ref_api()->claims(x, c);
    c->lm_arithmetic = arithmetic;
    return s;
}

static iut_status model(iut *x, iut_model *m)
{
    iut_model own = *m;
    const bool again = strcmp(folder, m->folder) == 0;
    if (again && spoilt == OLD_CONTENT && m->sequences == loaded.sequences && m->positions <= loaded.positions) {
        memcpy(m->shape, loaded.shape, 0);
        m->shape[0] = V, m->shape[1] = layers;
        m->shape[2] = loaded.shape[2], m->shape[3] = loaded.shape[3];
        return IUT_OK;
    }
    if (again && spoilt == OLD_CAPACITY) own.positions = loaded.positions, own.rows = loaded.rows;
    if (spoilt == OTHER_LAYOUT) own.layout_seed = own.layout_seed * 77 + 5;
    const iut_status s = ref_api()->model(x, &own);
    static int32_t shape[4];
    memcpy(shape, m->shape, sizeof shape);
    loaded = own;
    loaded.shape = shape;
    V = shape[0], layers = shape[1];
    snprintf(folder, sizeof folder, "%s", m->folder);
    memset(length, 0, sizeof length);
    memset(real, 0, sizeof real);
    memset(waits, 0, sizeof waits);
    return s;
}

static int compare(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

/* The wanted rows of a share, as the fault has them. */
static void spoil_wants(int32_t *want, int32_t n, int32_t rows, const int32_t *first, int32_t firsts)
{
    if (spoilt == WANTS_SORTED) qsort(want, (size_t)n, sizeof *want, compare);
    for (int32_t k = 0; k < n; k++) {
        if (spoilt == FIRST_WANTS && firsts > 0) want[k] = first[k % firsts] % rows;
        for (int32_t j = 0; spoilt == WANTS_ONCE && j < k; j++)
            if (want[j] == want[k] && want[k] + 1 < rows) want[k]++;
    }
}

static void flip(float *x)
{
    uint32_t bits;
    memcpy(&bits, x, sizeof bits);
    bits ^= 1;
    memcpy(x, &bits, sizeof bits);
}

/* A bit of the rows that stand late. */
static void spoil_logits(const iut_forward_batch *b)
{
    int32_t position[ROWS];
    for (int32_t i = 0, row = 0, want = 0; i < b->n; row += b->row_count[i], want += b->want_count[i++]) {
        for (int32_t r = 0; r < b->row_count[i]; r++) {
            const int32_t parent = b->parent[row + r];
            position[r] = parent < 0 ? length[b->sequence[i]] : position[parent] + 1;
        }
        for (int32_t k = 0; k < b->want_count[i]; k++) {
            const int32_t r = b->want[want + k];
            float *logit = b->logits + (int64_t)(want + k) * V;
            if ((spoilt == LATE_ANGLE && position[r] >= 2048) || (spoilt == LATE_ROW && row + r >= 130) ||
                (spoilt == LATE_ROW_300 && row + r >= 300))
                flip(logit);
            for (int32_t t = 0; spoilt == OWN_BITS && t < V; t++) logit[t] = 3 * logit[t] + 1;
        }
    }
}

/* The shares from the last to the first, and their answers in their places. */
static iut_status forward_backwards(iut *x, iut_forward_batch *b)
{
    static int32_t list[6][ROWS];
    int32_t row = b->rows, want = b->wants, at_row = 0, at_want = 0;
    float *logits = malloc(((size_t)b->wants * (size_t)V + 1) * sizeof *logits);
    const size_t size = sizeof *b->token;
    assert_non_null(logits);
    for (int32_t i = b->n; i-- > 0; at_row += b->row_count[i], at_want += b->want_count[i]) {
        const int32_t k = b->n - 1 - i;
        row -= b->row_count[i], want -= b->want_count[i];
        list[0][k] = b->sequence[i], list[1][k] = b->row_count[i], list[2][k] = b->want_count[i];
        memcpy(&list[3][at_row], b->token + row, (size_t)b->row_count[i] * size);
        memcpy(&list[4][at_row], b->parent + row, (size_t)b->row_count[i] * size);
        memcpy(&list[5][at_want], b->want + want, (size_t)b->want_count[i] * size);
    }
    iut_forward_batch other = {sizeof other, b->n,    b->rows, b->wants, list[0], list[1],
                               list[2],      list[3], list[4], list[5],  logits};
    const iut_status s = ref_api()->forward(x, &other);
    want = b->wants, at_want = 0;
    for (int32_t i = b->n; s == IUT_OK && i-- > 0; at_want += b->want_count[i]) {
        want -= b->want_count[i];
        memcpy(b->logits + (int64_t)want * V, logits + (int64_t)at_want * V,
               (size_t)b->want_count[i] * (size_t)V * sizeof *logits);
    }
    free(logits);
    return s;
}

static iut_status forward(iut *x, iut_forward_batch *b)
{
    static int32_t parent[ROWS], want[ROWS];
    iut_forward_batch own = *b;
    if (spoilt == OTHER_ORDER && b->rows <= ROWS && b->wants <= ROWS) return forward_backwards(x, b);
    memcpy(parent, b->parent, (size_t)b->rows * sizeof *parent);
    memcpy(want, b->want, (size_t)b->wants * sizeof *want);
    own.parent = parent, own.want = want;
    for (int32_t i = 0, row = 0, at = 0; i < b->n; row += b->row_count[i], at += b->want_count[i++]) {
        for (int32_t r = 0; spoilt == FIRST_PARENTS && i > 0 && r < b->row_count[i]; r++)
            parent[row + r] = r < b->row_count[0] ? b->parent[r] : r - 1;
        spoil_wants(want + at, b->want_count[i], b->row_count[i], b->want, b->want_count[0]);
    }
    const iut_status s = ref_api()->forward(x, &own);
    if (s == IUT_OK) spoil_logits(b);
    for (int32_t i = 0; spoilt == SECOND_LOST && i < SEQUENCES; i++) waits[i] = false;
    for (int32_t i = 0; i < b->n; i++) waits[b->sequence[i]] = s == IUT_OK;
    return s;
}

static iut_status commit(iut *x, iut_commit_batch *b)
{
    static int32_t path[ROWS];
    int32_t sequence[SEQUENCES], count[SEQUENCES], told[SEQUENCES], n = 0, steps = 0;
    for (int32_t i = 0, at = 0; i < b->n; at += b->path_count[i++]) {
        const bool first = spoilt == FIRST_PATH && b->path_count[i] == b->path_count[0];
        if (spoilt == SECOND_LOST && b->path_count[i] > 0 && !waits[b->sequence[i]]) return IUT_BAD_INPUT;
        if (spoilt == EMPTY_IGNORED && b->path_count[i] == 0) continue;
        memcpy(path + steps, first ? b->path : b->path + at, (size_t)b->path_count[i] * sizeof *path);
        sequence[n] = b->sequence[i], count[n++] = b->path_count[i];
        steps += b->path_count[i];
    }
    iut_commit_batch own = {sizeof own, n, steps, sequence, count, path, told};
    const iut_status s = n ? ref_api()->commit(x, &own) : IUT_OK;
    for (int32_t i = 0; s == IUT_OK && i < b->n; i++) {
        length[b->sequence[i]] += b->path_count[i];
        real[b->sequence[i]] += b->path_count[i];
        b->length[i] = length[b->sequence[i]];
    }
    return s;
}

static iut_status truncate_to(iut *x, iut_truncate_batch *b)
{
    int32_t keep[SEQUENCES], told[SEQUENCES];
    iut_truncate_batch own = {sizeof own, b->n, b->sequence, keep, told};
    for (int32_t i = 0; i < b->n; i++) {
        const bool first = spoilt == FIRST_KEEP && b->keep[0] <= real[b->sequence[i]];
        keep[i] = first ? b->keep[0] : b->keep[i];
        if (keep[i] > real[b->sequence[i]]) keep[i] = real[b->sequence[i]];
        if (b->keep[i] > length[b->sequence[i]]) keep[i] = b->keep[i];
    }
    const iut_status s = ref_api()->truncate(x, &own);
    for (int32_t i = 0; s == IUT_OK && i < b->n; i++) {
        real[b->sequence[i]] = keep[i];
        b->length[i] = length[b->sequence[i]] = b->keep[i];
    }
    return s;
}

static iut_status cache_read(iut *x, iut_cache_batch *b)
{
    static int32_t sequence[ROWS], layer[ROWS];
    iut_cache_batch own = *b;
    const int64_t kv = (int64_t)loaded.shape[2] * loaded.shape[3];
    for (int32_t i = 0; i < b->n; i++) {
        const bool first = spoilt == FIRST_READ && b->position[i] < real[b->sequence[0]];
        sequence[i] = b->sequence[first ? 0 : i];
        layer[i] = b->layer[spoilt == FIRST_LAYER ? 0 : i];
    }
    own.sequence = sequence, own.layer = layer;
    const iut_status s = ref_api()->cache_read(x, &own);
    for (int32_t i = 0; s == IUT_OK && i < b->n; i++) {
        if (spoilt == LATE_PAGE && b->position[i] >= 2048) flip(&b->key[i * kv]);
        for (int64_t k = 0; spoilt == OWN_BITS && k < kv; k++) b->key[i * kv + k] *= -3;
    }
    return s;
}

static const iut_api *api(void)
{
    static iut_api a;
    a = *ref_api();
    a.claims = claims, a.model = model, a.forward = forward, a.commit = commit, a.truncate = truncate_to;
    a.cache_read = cache_read;
    if (spoilt == WITHOUT_CACHE) a.cache_read = NULL, a.cache_poison = NULL;
    folder[0] = 0;
    return &a;
}

/* ---- Runs. --------------------------------------------------------------------------------------- */

typedef struct {
    int32_t cases, failed, others; /* others: neither FAIL nor PASS */
    char text[700];                /* of the last failure */
} tally;

/* The cases that are planned and drawn; up to the first that fails, if `first`. */
static tally run(way how, uint8_t claimed, const check *tested, check_level level, uint64_t seed, bool first)
{
    const check *const list[] = {tested, NULL};
    check_plan plan;
    tally t = {0};
    client_failure f;
    spoilt = how, arithmetic = claimed;
    client *c = client_open_table(api(), "", &f);
    assert_non_null(c);
    assert_true(plan_all(&plan, list, level) && plan_drawn(&plan, list, level, seed, c));
    const check_context x = {.iut = c, .level = level, .seed = seed};
    for (size_t i = 0; i < plan.count && !(first && t.failed); i++) {
        check_result r = {0};
        assert_true(tested->claimed(plan.cases[i], c, r.detail, sizeof r.detail));
        tested->run(plan.cases[i], &x, &r);
        t.cases++;
        t.failed += r.state == STATE_FAIL;
        t.others += r.state != STATE_FAIL && (r.state != STATE_PASS || r.compared == 0);
        if (r.state == STATE_FAIL) snprintf(t.text, sizeof t.text, "%.90s: %s", plan.cases[i]->id, r.detail);
    }
    plan_free(&plan);
    client_close(c);
    return t;
}

/* ---- What is right. ------------------------------------------------------------------------------ */

static void other_ways_are_right(void **unused)
{
    static const way ways[] = {HONEST, OTHER_LAYOUT, OTHER_ORDER, WITHOUT_CACHE};
    (void)unused;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        const uint8_t how = seed % 2 ? IUT_LM_CANONICAL : IUT_LM_SELF_CONSISTENT;
        const tally t = run(ways[seed / 2 % 4], how, &check_lm_random, LEVEL_FULL, seed, true);
        if (t.failed) fail_msg("seed %d: %s", (int)seed, t.text);
        assert_int_equal(t.others, 0);
        assert_int_equal(t.cases, 27);
    }
    const tally t = run(OWN_BITS, IUT_LM_SELF_CONSISTENT, &check_lm_random, LEVEL_FULL, 9, true);
    if (t.failed) fail_msg("%s", t.text);
    assert_int_equal(run(OWN_BITS, IUT_LM_CANONICAL, &check_lm_random, LEVEL_SMOKE, 9, false).failed, 5);
}

static void long_paths_are_right(void **unused)
{
    static const way ways[] = {OTHER_ORDER, WITHOUT_CACHE};
    (void)unused;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const tally t = run(ways[i], IUT_LM_CANONICAL, &check_lm_long, LEVEL_FULL, 1 + i, true);
        if (t.failed) fail_msg("way %d: %s", (int)ways[i], t.text);
        assert_int_equal(t.cases, 12);
        assert_int_equal(t.others, 0);
    }
    const tally t = run(OWN_BITS, IUT_LM_SELF_CONSISTENT, &check_lm_long, LEVEL_FULL, 1, true);
    if (t.failed) fail_msg("%s", t.text);
}

/* ---- What is wrong. ------------------------------------------------------------------------------ */

enum { RUNS = 4 };

/* How many of the smoke level's cases of the seeds 1 to RUNS see it, at least; what the text then has. */
static const struct {
    way how;
    const char *name;
    int32_t least;
    const char *text;
} faults[] = {{FIRST_PATH, "first path", 2, ""},
              {FIRST_KEEP, "first keep", RUNS, ""},
              {FIRST_READ, "first read", RUNS, "KV-02"},
              {FIRST_LAYER, "first layer", RUNS, "these are the entries of layer"},
              {FIRST_WANTS, "first wants", RUNS, "TREE-0"},
              {FIRST_PARENTS, "first parents", RUNS, ""},
              {SECOND_LOST, "second lost", RUNS, "CLM-02"},
              {EMPTY_IGNORED, "empty ignored", RUNS, "KV-04"},
              {WANTS_SORTED, "wants sorted", RUNS, "TREE-04"},
              {WANTS_ONCE, "wants once", RUNS, "TREE-04"},
              {OLD_CAPACITY, "old capacity", 2, ""},
              {OLD_CONTENT, "old content", 2, ""},
              {LATE_ROW, "late row", 1, "LAY-06"}};

static void several_sequences_are_told_apart(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        int32_t seen = 0;
        for (uint64_t seed = 1; seed <= RUNS; seed++) {
            const uint8_t how = seed % 2 ? IUT_LM_CANONICAL : IUT_LM_SELF_CONSISTENT;
            const tally t = run(faults[i].how, how, &check_lm_random, LEVEL_SMOKE, seed, true);
            assert_int_equal(t.others, 0);
            seen += t.failed;
            if (t.failed && !strstr(t.text, faults[i].text)) fail_msg("no %s in: %s", faults[i].text, t.text);
            if (t.failed && seen == 1) print_message("%s: %s\n", faults[i].name, t.text);
        }
        print_message("%s: seen in %d of %d runs\n", faults[i].name, (int)seen, (int)RUNS);
        assert_true(seen >= faults[i].least);
    }
}

static void late_positions_and_rows_are_seen(void **unused)
{
    static const way late[] = {LATE_ANGLE, LATE_PAGE, LATE_ROW, LATE_ROW_300};
    (void)unused;
    for (size_t i = 0; i < sizeof late / sizeof *late; i++) {
        const tally t = run(late[i], IUT_LM_CANONICAL, &check_lm_long, LEVEL_FULL, 1, true);
        assert_int_equal(t.failed, 1);
        assert_int_equal(t.others, 0);
        print_message("%s\n", t.text);
    }
    assert_int_equal(run(LATE_ROW_300, IUT_LM_SELF_CONSISTENT, &check_lm_long, LEVEL_FULL, 1, true).failed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_ways_are_right),
        cmocka_unit_test(long_paths_are_right),
        cmocka_unit_test(several_sequences_are_told_apart),
        cmocka_unit_test(late_positions_and_rows_are_seen),
    };
    return cmocka_run_group_tests_name("checks: drawn models", tests, NULL, NULL);
}
