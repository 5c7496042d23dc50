/* lm_drive.c - see lm_drive.h. */
#include "conformance/checks/model/lm_drive.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/model/lm_explain.h"
#include "conformance/checks/model/lm_paths.h"

typedef struct {
    lm m;
    lm_paths paths;
    lm_state state;
    lm_found found; /* of the last failure */
    double work;    /* of all plays: rows by the positions that they see */
    bool plain;     /* it is one of the run without drafts, not of the script */
    char model[120]; /* what it is like */
} driver;

static bool short_of_memory(driver *d)
{
    result_set(d->m.r, STATE_ERROR, "the suite is short of memory");
    return false;
}

/* ---- What is due. ---------------------------------------------------------------------------- */

/* The path of a row of a sequence; -1: the memory is short. */
static int32_t path_of_row(driver *d, const lm_script *s, const lm_part *p, int32_t row)
{
    const lm_held *h = &d->state.held[p->sequence];
    int32_t *chain = malloc((size_t)p->rows * sizeof *chain);
    if (!chain) return -1;
    const int32_t n = lm_row_path(lm_numbers(s, p->token), lm_numbers(s, p->parent), row, chain);
    const int32_t prefix = lm_path_walk(&d->paths, lm_path_root(&d->paths), h->token, h->length);
    const int32_t path = lm_path_walk(&d->paths, prefix, chain, n);
    free(chain);
    return path;
}

/* The path that ends at a committed position. */
static int32_t path_of_position(driver *d, const lm_part *p)
{
    return lm_path_walk(&d->paths, lm_path_root(&d->paths), d->state.held[p->sequence].token, p->at + 1);
}

static void ask_part(driver *d, const lm_script *s, lm_kind kind, const lm_part *p)
{
    for (int32_t k = 0; kind == STEP_FORWARD && k < p->wants; k++)
        lm_path_ask(&d->paths, path_of_row(d, s, p, lm_numbers(s, p->want)[k]), PATH_LOGITS);
    if (kind == STEP_READ) lm_path_ask(&d->paths, path_of_position(d, p), PATH_ENTRIES);
}

/* Asks for everything that the script will be held against. */
static bool find_due(driver *d, const lm_script *s)
{
    for (int32_t i = 0; i < s->steps; i++) {
        for (int32_t k = 0; k < s->step[i].n; k++) {
            const lm_part *p = &s->part[s->step[i].first + k];
            ask_part(d, s, s->step[i].kind, p);
            d->work += (double)p->rows * (64 + d->state.held[p->sequence].length);
        }
        lm_state_do(&d->state, s, i);
    }
    d->plain = true;
    if (!lm_paths_fill(&d->paths, &d->m)) return false;
    d->plain = false;
    return true;
}

/* ---- Comparisons. ---------------------------------------------------------------------------- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* The first place where n numbers are not those that are due, or no numbers; n: there is none. */
static int32_t differ(const float *got, const float *due, int32_t n)
{
    int32_t i = 0;
    while (i < n && bits_of(got[i]) == bits_of(due[i]) && !isnan(got[i])) i++;
    return i;
}

static bool same_logits(driver *d, int32_t step, int32_t part, int32_t row, int32_t path, const float *got)
{
    if (path < 0) return short_of_memory(d);
    const float *due = d->paths.path[path].logits;
    const int32_t at = differ(got, due, d->m.V);
    d->m.r->compared++;
    if (at == d->m.V) return true;
    if (!lm_found_logits(&d->found, step, part, row, d->paths.path[path].length - 1, got, d->m.V))
        return short_of_memory(d);
    result_set(d->m.r, STATE_FAIL, "logit %d is %08x (%.9g) where %08x (%.9g) is due", (int)at, bits_of(got[at]),
               (double)got[at], bits_of(due[at]), (double)due[at]);
    return false;
}

static bool same_entries(driver *d, int32_t step, int32_t part, const lm_part *p, const float *key, const float *value)
{
    const int32_t n = d->m.kv_heads * d->m.head_dim, path = path_of_position(d, p);
    if (path < 0) return short_of_memory(d);
    const lm_path *due = &d->paths.path[path];
    const float *due_key = due->key + (int64_t)p->layer * n, *due_value = due->value + (int64_t)p->layer * n;
    int32_t at = differ(key, due_key, n);
    const bool of_key = at < n;
    if (!of_key) at = differ(value, due_value, n);
    d->m.r->compared += 2;
    if (at == n) return true;
    const float got = of_key ? key[at] : value[at], want = of_key ? due_key[at] : due_value[at];
    if (!lm_found_entries(&d->found, step, part, key, value, n)) return short_of_memory(d);
    result_set(d->m.r, STATE_FAIL, "entry %d of the %s is %08x (%.9g) where %08x (%.9g) is due", (int)at,
               of_key ? "key" : "value", bits_of(got), (double)got, bits_of(want), (double)want);
    return false;
}

/* After the step the sequences of its parts have these lengths. */
static bool right_lengths(driver *d, const lm_script *s, int32_t i, const int32_t *length)
{
    const lm_step *step = &s->step[i];
    for (int32_t k = 0; k < step->n; k++) {
        const int32_t sequence = s->part[step->first + k].sequence, due = d->state.held[sequence].length;
        d->m.r->compared++;
        if (length[k] == due) continue;
        lm_found_length(&d->found, i, k);
        result_set(d->m.r, STATE_FAIL, "sequence %d has length %d where %d is due", (int)sequence, (int)length[k],
                   (int)due);
        return false;
    }
    return true;
}

/* ---- Calls. ---------------------------------------------------------------------------------- */

static bool do_load(driver *d, const lm_step *step)
{
    d->m.sequences = step->sequences, d->m.positions = step->positions, d->m.rows = step->rows;
    return lm_reload(&d->m, step->layout);
}

/* The lists of all parts behind each other. */
typedef struct {
    int32_t n, rows, wants;
    int32_t *sequence, *row_count, *want_count, *token, *parent, *want;
    float *logits;
} joint;

static void joint_free(joint *j)
{
    free(j->sequence);
    free(j->logits);
}

static bool joint_make(joint *j, const lm_script *s, const lm_step *step, int32_t V)
{
    *j = (joint){.n = step->n};
    for (int32_t k = 0; k < step->n; k++) {
        j->rows += s->part[step->first + k].rows;
        j->wants += s->part[step->first + k].wants;
    }
    const size_t n = (size_t)j->n, rows = (size_t)j->rows, wants = (size_t)j->wants;
    j->sequence = malloc((3 * n + 2 * rows + wants + 1) * sizeof *j->sequence);
    j->logits = malloc((wants * (size_t)V + 1) * sizeof *j->logits);
    if (!j->sequence || !j->logits) return false;
    j->row_count = j->sequence + n, j->want_count = j->row_count + n, j->token = j->want_count + n;
    j->parent = j->token + rows, j->want = j->parent + rows;
    for (size_t k = 0, row = 0, want = 0; k < n; k++) {
        const lm_part *p = &s->part[step->first + (int32_t)k];
        const size_t size = sizeof *j->token;
        j->sequence[k] = p->sequence, j->row_count[k] = p->rows, j->want_count[k] = p->wants;
        memcpy(j->token + row, lm_numbers(s, p->token), (size_t)p->rows * size);
        memcpy(j->parent + row, lm_numbers(s, p->parent), (size_t)p->rows * size);
        memcpy(j->want + want, lm_numbers(s, p->want), (size_t)p->wants * size);
        row += (size_t)p->rows, want += (size_t)p->wants;
    }
    return true;
}

static bool do_forward(driver *d, const lm_script *s, int32_t i)
{
    const lm_step *step = &s->step[i];
    joint j;
    bool ok = joint_make(&j, s, step, d->m.V) || short_of_memory(d);
    iut_forward_batch b = {sizeof b,     j.n,     j.rows,   j.wants, j.sequence, j.row_count,
                           j.want_count, j.token, j.parent, j.want,  j.logits};
    ok = ok && result_call(d->m.r, d->m.x, "forward", client_forward(d->m.x->iut, &b));
    for (int32_t k = 0, at = 0; ok && k < step->n; k++) {
        const lm_part *p = &s->part[step->first + k];
        for (int32_t w = 0; ok && w < p->wants; w++, at++) {
            const int32_t row = lm_numbers(s, p->want)[w];
            ok = same_logits(d, i, k, row, path_of_row(d, s, p, row), j.logits + (int64_t)at * d->m.V);
        }
    }
    joint_free(&j);
    return ok;
}

static bool do_commit(driver *d, const lm_script *s, int32_t i)
{
    const lm_step *step = &s->step[i];
    int32_t sequence[LM_MOST_SEQUENCES], count[LM_MOST_SEQUENCES], length[LM_MOST_SEQUENCES], steps = 0;
    int32_t *path = malloc(((size_t)d->state.rows * LM_MOST_SEQUENCES + 1) * sizeof *path);
    if (!path) return short_of_memory(d);
    for (int32_t k = 0; k < step->n; k++) {
        const lm_part *p = &s->part[step->first + k];
        sequence[k] = p->sequence;
        count[k] = lm_row_rows(lm_numbers(s, d->state.held[p->sequence].parent_at), p->at, path + steps);
        steps += count[k];
        length[k] = -1;
    }
    iut_commit_batch b = {sizeof b, step->n, steps, sequence, count, path, length};
    const bool ok = result_call(d->m.r, d->m.x, "commit", client_commit(d->m.x->iut, &b));
    free(path);
    lm_state_do(&d->state, s, i);
    return ok && right_lengths(d, s, i, length);
}

static bool do_truncate(driver *d, const lm_script *s, int32_t i)
{
    const lm_step *step = &s->step[i];
    int32_t sequence[LM_MOST_SEQUENCES], keep[LM_MOST_SEQUENCES], length[LM_MOST_SEQUENCES];
    for (int32_t k = 0; k < step->n; k++) {
        sequence[k] = s->part[step->first + k].sequence;
        keep[k] = s->part[step->first + k].at;
        length[k] = -1;
    }
    iut_truncate_batch b = {sizeof b, step->n, sequence, keep, length};
    const bool ok = result_call(d->m.r, d->m.x, "truncate", client_truncate(d->m.x->iut, &b));
    lm_state_do(&d->state, s, i);
    return ok && right_lengths(d, s, i, length);
}

static bool do_read(driver *d, const lm_script *s, int32_t i)
{
    const lm_step *step = &s->step[i];
    const int32_t kv = d->m.kv_heads * d->m.head_dim;
    const size_t n = (size_t)step->n, size = n * (size_t)kv;
    int32_t *sequence = malloc(3 * n * sizeof *sequence), *layer = sequence + n, *position = layer + n;
    float *key = malloc(2 * size * sizeof *key);
    bool ok = (sequence && key) || short_of_memory(d);
    for (int32_t k = 0; ok && k < step->n; k++) {
        const lm_part *p = &s->part[step->first + k];
        sequence[k] = p->sequence, layer[k] = p->layer, position[k] = p->at;
    }
    if (ok) {
        iut_cache_batch b = {sizeof b, step->n, sequence, layer, position, key, key + size};
        memset(key, 0xFF, 2 * size * sizeof *key);
        ok = result_call(d->m.r, d->m.x, "cache_read", client_cache_read(d->m.x->iut, &b));
    }
    for (int32_t k = 0; ok && k < step->n; k++)
        ok = same_entries(d, i, k, &s->part[step->first + k], key + (int64_t)k * kv, key + size + (int64_t)k * kv);
    free(sequence);
    free(key);
    return ok;
}

/* KV-06: siblings on the prefix, or a chain that ends beyond the last position. */
static bool do_too_large(driver *d, const lm_script *s, int32_t i)
{
    const lm_step *step = &s->step[i];
    const int32_t sequence = s->part[step->first].sequence, none = 0;
    const bool many = step->kind == STEP_TOO_MANY;
    const int32_t rows = many ? d->state.rows + 1 : d->state.positions - d->state.held[sequence].length + 1;
    int32_t *token = calloc(2 * (size_t)rows, sizeof *token), *parent = token + rows;
    float nothing;
    if (!token) return short_of_memory(d);
    for (int32_t r = 0; r < rows; r++) parent[r] = many ? -1 : r - 1;
    iut_forward_batch b = {sizeof b, 1, rows, 0, &sequence, &rows, &none, token, parent, &none, &nothing};
    const call_result call = client_forward(d->m.x->iut, &b);
    free(token);
    return lm_refused(&d->m, "forward", call,
                      many ? "one row more than the capacity (KV-06)" : "one position more than the capacity (KV-06)");
}

static bool do_stale(driver *d, const lm_script *s, int32_t i)
{
    const int32_t sequence = s->part[s->step[i].first].sequence, row = 0;
    int32_t length = -1;
    return lm_refused(&d->m, "commit", lm_try_commit(&d->m, sequence, &row, 1, &length),
                      "a row that was committed, cut off or given up (KV-04)");
}

/* The step, and what it does to the state. */
static bool do_step(driver *d, const lm_script *s, int32_t i)
{
    bool ok = true;
    switch (s->step[i].kind) {
    case STEP_COMMIT:
        return do_commit(d, s, i);
    case STEP_TRUNCATE:
        return do_truncate(d, s, i);
    case STEP_LOAD:
        ok = do_load(d, &s->step[i]);
        break;
    case STEP_FORWARD:
        ok = do_forward(d, s, i);
        break;
    case STEP_READ:
        ok = do_read(d, s, i);
        break;
    case STEP_POISON:
        ok = lm_poison(&d->m);
        break;
    case STEP_TOO_MANY:
    case STEP_TOO_LONG:
        ok = do_too_large(d, s, i);
        break;
    case STEP_STALE:
        ok = do_stale(d, s, i);
        break;
    }
    lm_state_do(&d->state, s, i);
    return ok;
}

/* A read is of a layer that the model says it has: one that computes otherwise than the folder says may have fewer. */
static void fit_layers(const driver *d, const lm_script *s)
{
    for (int32_t i = 0; i < s->parts; i++) s->part[i].layer %= d->m.layers;
}

/* The script on a fresh load; everything seen stands in `r`. */
static bool play(driver *d, lm_script *s, check_result *r)
{
    d->m.r = r;
    lm_found_none(&d->found);
    bool ok = (lm_script_fit(s) && lm_state_open(&d->state, s)) || short_of_memory(d);
    ok = ok && find_due(d, s);
    if (ok) fit_layers(d, s);
    for (int32_t i = 0; ok && i < s->steps; i++) {
        ok = do_step(d, s, i);
        if (!ok && d->found.step < 0) d->found.step = i;
    }
    lm_state_close(&d->state);
    return ok;
}

/* ---- Shrinking. ------------------------------------------------------------------------------ */

/* Of a case that fails: about two seconds of the reference. */
enum { MOST_PLAYS = 120, MOST_WORK = 12000000 };

typedef struct {
    driver *d;
    lm_script *s;       /* fails */
    check_result *last; /* of its last play */
    lm_found found;     /* in that play */
    int32_t plays;
} shrinking;

static bool worth_shrinking(const check_result *r)
{
    return r->state == STATE_FAIL || r->state == STATE_CRASH;
}

/* What was found belongs to the script from now on. */
static void take_found(shrinking *k)
{
    lm_found_none(&k->found);
    k->found = k->d->found;
    k->d->found = (lm_found){.step = -1};
}

/* Takes the candidate for the script if it fails too. The candidate is freed, or taken. */
static bool try_candidate(shrinking *k, lm_script *candidate)
{
    check_result seen = {.tested = k->d->m.x->iut};
    k->plays++;
    const bool fails = !play(k->d, candidate, &seen) && !k->d->plain && worth_shrinking(&seen);
    if (fails) {
        lm_script_free(k->s);
        *k->s = *candidate;
        *k->last = seen;
        take_found(k);
    } else {
        lm_script_free(candidate);
    }
    return fails;
}

static bool spent(const shrinking *k)
{
    return k->plays >= MOST_PLAYS || k->d->work >= MOST_WORK || client_stopped(k->d->m.x->iut);
}

/* Cuts out pieces of one kind: halves, then quarters, down to single ones. */
static bool cut_pieces(shrinking *k, lm_cut what)
{
    bool shorter = false;
    for (int32_t n = (lm_cut_count(k->s, what) + 1) / 2; n > 0; n /= 2)
        for (int32_t at = 0; at < lm_cut_count(k->s, what) && !spent(k);) {
            lm_script candidate;
            const int32_t before = lm_cut_count(k->s, what);
            if (!lm_script_copy(&candidate, k->s)) return shorter;
            lm_cut_out(&candidate, what, at, n);
            const bool cut = what == LM_CUT_SEQUENCES
                                 ? lm_cut_count(&candidate, LM_CUT_PARTS) < lm_cut_count(k->s, LM_CUT_PARTS)
                                 : lm_cut_count(&candidate, what) < before;
            if (cut && try_candidate(k, &candidate)) {
                shorter = true;
                if (what == LM_CUT_SEQUENCES) at += n;
                continue;
            }
            if (!cut) lm_script_free(&candidate);
            at += n;
        }
    return shorter;
}

/* Nothing after the step that failed is needed. */
static void cut_end(shrinking *k)
{
    const int32_t end = k->found.step + 1;
    lm_script candidate;
    if (end < 1 || end >= k->s->steps || !lm_script_copy(&candidate, k->s)) return;
    lm_cut_out(&candidate, LM_CUT_STEPS, end - 1, candidate.steps);
    try_candidate(k, &candidate);
}

/* The first load, where another follows at once. */
static void cut_first(shrinking *k)
{
    lm_script candidate;
    while (k->s->steps > 2 && k->s->step[1].kind == STEP_LOAD && !spent(k)) {
        if (!lm_script_copy(&candidate, k->s)) return;
        candidate.step[0] = candidate.step[1];
        lm_cut_out(&candidate, LM_CUT_STEPS, 0, 1);
        if (!try_candidate(k, &candidate)) return;
    }
}

static void shrink(shrinking *k)
{
    static const lm_cut order[] = {LM_CUT_SEQUENCES, LM_CUT_STEPS, LM_CUT_PARTS, LM_CUT_ROWS, LM_CUT_WANTS};
    lm_script candidate;
    cut_end(k);
    for (bool shorter = true; shorter && !spent(k);) {
        shorter = false;
        for (size_t i = 0; i < sizeof order / sizeof *order; i++) shorter = cut_pieces(k, order[i]) || shorter;
        cut_first(k);
    }
    if (spent(k) || !lm_script_copy(&candidate, k->s)) return;
    lm_cut_names(&candidate);
    try_candidate(k, &candidate);
}

/* ---- The verdict. ---------------------------------------------------------------------------- */

/* What failed, where, which clause, the model, and the script. */
static void tell(driver *d, const lm_script *s, const check_result *seen, bool again, check_result *r)
{
    char where[100], why[260] = "", text[300];
    const lm_cause c = again ? lm_explain(&d->found, s, &d->paths, &d->m) : (lm_cause){0};
    if (c.clause) {
        lm_found_text(&d->found, s, where, sizeof where);
        snprintf(why, sizeof why, "%s: %s%s%s: ", c.clause, where, c.text[0] ? ", " : "", c.text);
    }
    lm_script_text(s, text, sizeof text);
    result_set(r, seen->state, "%s%.180s%s: %s; %.110s", why, seen->detail,
               again ? "" : "; not again on a fresh load", text, d->model);
}

static void judge(driver *d, lm_script *s, check_result *r)
{
    check_result seen = {.tested = r->tested}, again = seen;
    const bool ok = play(d, s, &seen);
    r->compared = seen.compared;
    if (ok) {
        result_set(r, STATE_PASS, "%d operations, %lld answers, all as due; %s", (int)s->steps,
                   (long long)r->compared, d->model);
        return;
    }
    if (d->plain || !worth_shrinking(&seen)) {
        result_set(r, seen.state, "%s%s", d->plain ? "in the plain run, row by row: " : "", seen.detail);
        return;
    }
    const bool repeats = !d->m.x->again && !play(d, s, &again) && !d->plain && worth_shrinking(&again);
    if (repeats) {
        shrinking k = {.d = d, .s = s, .last = &again, .found = {.step = -1}};
        take_found(&k);
        shrink(&k);
        lm_found_none(&d->found);
        d->found = k.found;
    }
    tell(d, s, repeats ? &again : &seen, repeats, r);
}

void lm_drive(const check_context *x, check_result *r, const lm_form *form, lm_script *s)
{
    driver d = {0};
    char why[300] = "";
    lm_begin(&d.m, x, r);
    lm_form_text(form, d.model, sizeof d.model);
    d.m.folder = lm_form_folder(form, why, sizeof why);
    if (!d.m.folder)
        result_set(r, STATE_ERROR, "%s", why);
    else if (s->failed)
        short_of_memory(&d);
    else if (do_load(&d, &s->step[0])) /* tells the shape */
        judge(&d, s, r);
    lm_found_none(&d.found);
    lm_paths_free(&d.paths);
    lm_close(&d.m);
}
