/* lm_script.c - see lm_script.h. */
#include "conformance/checks/model/lm_script.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Memory. --------------------------------------------------------------------------------- */

enum { STEPS, PARTS, NUMBERS };

void lm_script_free(lm_script *s)
{
    free(s->step);
    free(s->part);
    free(s->number);
    *s = (lm_script){0};
}

/* Room for n more of what `*items` holds. */
static bool reserve(lm_script *s, int which, void **items, int32_t used, int32_t n, size_t size)
{
    if (used + n <= s->room[which]) return true;
    const int32_t room = 2 * (used + n) + 16;
    void *more = realloc(*items, (size_t)room * size);
    if (!more) {
        s->failed = true;
        return false;
    }
    *items = more;
    s->room[which] = room;
    return true;
}

/* The three lists have other types: each goes through a void pointer of its own. */
static bool room_for_step(lm_script *s)
{
    void *items = s->step;
    const bool ok = reserve(s, STEPS, &items, s->steps, 1, sizeof *s->step);
    s->step = items;
    return ok;
}

static bool room_for_part(lm_script *s)
{
    void *items = s->part;
    const bool ok = reserve(s, PARTS, &items, s->parts, 1, sizeof *s->part);
    s->part = items;
    return ok;
}

static bool room_for_numbers(lm_script *s, int32_t n)
{
    void *items = s->number;
    const bool ok = reserve(s, NUMBERS, &items, s->numbers, n, sizeof *s->number);
    s->number = items;
    return ok;
}

bool lm_script_copy(lm_script *to, const lm_script *from)
{
    *to = (lm_script){.steps = from->steps, .parts = from->parts, .numbers = from->numbers};
    to->step = malloc(((size_t)from->steps + 1) * sizeof *to->step);
    to->part = malloc(((size_t)from->parts + 1) * sizeof *to->part);
    to->number = malloc(((size_t)from->numbers + 1) * sizeof *to->number);
    if (!to->step || !to->part || !to->number) {
        lm_script_free(to);
        return false;
    }
    to->room[STEPS] = from->steps, to->room[PARTS] = from->parts, to->room[NUMBERS] = from->numbers;
    if (from->steps) memcpy(to->step, from->step, (size_t)from->steps * sizeof *to->step);
    if (from->parts) memcpy(to->part, from->part, (size_t)from->parts * sizeof *to->part);
    if (from->numbers) memcpy(to->number, from->number, (size_t)from->numbers * sizeof *to->number);
    return true;
}

/* ---- Writing one. ---------------------------------------------------------------------------- */

void lm_add_step(lm_script *s, lm_kind kind)
{
    if (!s->failed && room_for_step(s)) s->step[s->steps++] = (lm_step){.kind = kind, .first = s->parts};
}

void lm_add_load(lm_script *s, int32_t sequences, int32_t positions, int32_t rows, uint32_t layout)
{
    lm_add_step(s, STEP_LOAD);
    if (s->failed) return;
    lm_step *load = &s->step[s->steps - 1];
    load->sequences = sequences, load->positions = positions, load->rows = rows, load->layout = layout;
}

static lm_part *add_part(lm_script *s, lm_part part)
{
    if (s->failed || !room_for_part(s)) return NULL;
    s->step[s->steps - 1].n++;
    s->part[s->parts] = part;
    return &s->part[s->parts++];
}

void lm_add_part(lm_script *s, int32_t sequence, int32_t at, int32_t layer)
{
    add_part(s, (lm_part){.sequence = sequence, .at = at, .layer = layer});
}

lm_part *lm_add_tree(lm_script *s, int32_t sequence, int32_t rows, int32_t wants)
{
    if (s->failed || !room_for_numbers(s, 2 * rows + wants)) return NULL;
    const int32_t at = s->numbers;
    lm_part *part = add_part(s, (lm_part){.sequence = sequence,
                                          .rows = rows,
                                          .wants = wants,
                                          .token = at,
                                          .parent = at + rows,
                                          .want = at + 2 * rows});
    if (part) s->numbers += 2 * rows + wants;
    return part;
}

/* ---- Playing one. ---------------------------------------------------------------------------- */

bool lm_state_open(lm_state *t, const lm_script *s)
{
    *t = (lm_state){0};
    for (int32_t i = 0; i < s->steps; i++)
        if (s->step[i].kind == STEP_LOAD && s->step[i].positions > t->longest) t->longest = s->step[i].positions;
    for (int32_t i = 0; i < LM_MOST_SEQUENCES; i++) {
        t->held[i].token = malloc(((size_t)t->longest + 1) * sizeof *t->held[i].token);
        if (!t->held[i].token) return false;
    }
    return true;
}

void lm_state_close(lm_state *t)
{
    for (int32_t i = 0; i < LM_MOST_SEQUENCES; i++) free(t->held[i].token);
    *t = (lm_state){0};
}

int32_t lm_row_rows(const int32_t *parent, int32_t row, int32_t *out)
{
    int32_t n = 0;
    for (int32_t r = row; r >= 0; r = parent[r]) n++;
    for (int32_t r = row, k = n; r >= 0; r = parent[r]) out[--k] = r;
    return n;
}

int32_t lm_row_path(const int32_t *token, const int32_t *parent, int32_t row, int32_t *out)
{
    const int32_t n = lm_row_rows(parent, row, out);
    for (int32_t i = 0; i < n; i++) out[i] = token[out[i]];
    return n;
}

/* Rows on the longest path of a tree. */
static int32_t depth_of(const int32_t *parent, int32_t rows)
{
    int32_t most = 0;
    for (int32_t r = 0; r < rows; r++) {
        int32_t n = 0;
        for (int32_t k = r; k >= 0; k = parent[k]) n++;
        if (n > most) most = n;
    }
    return most;
}

/* Can the part be asked, with `used` rows of the step before it? */
static bool allowed(const lm_state *t, const lm_script *s, lm_kind kind, lm_part *p, int32_t used)
{
    if (p->sequence >= t->sequences) return false;
    const lm_held *h = &t->held[p->sequence];
    const int32_t over = t->positions - h->length + 1;
    switch (kind) {
    case STEP_FORWARD:
        return p->rows > 0 && used + p->rows <= t->rows &&
               h->length + depth_of(lm_numbers(s, p->parent), p->rows) <= t->positions;
    case STEP_COMMIT:
        if (p->at >= h->rows) p->at = -1;
        return true;
    case STEP_TRUNCATE:
        if (p->at > h->length) p->at = h->length;
        return true;
    case STEP_READ:
        return p->at < h->length;
    case STEP_TOO_LONG:
        return over <= t->rows;
    case STEP_STALE:
        return h->rows == 0;
    default:
        return true;
    }
}

bool lm_state_fit(const lm_state *t, lm_script *s, int32_t i)
{
    lm_step *step = &s->step[i];
    if (step->kind == STEP_LOAD || step->kind == STEP_POISON) return true;
    lm_part *part = s->part + step->first;
    int32_t kept = 0, used = 0;
    for (int32_t k = 0; k < step->n; k++) {
        if (!allowed(t, s, step->kind, &part[k], used)) continue;
        used += part[k].rows;
        part[kept++] = part[k];
    }
    step->n = kept;
    return kept > 0;
}

static void load(lm_state *t, const lm_step *step)
{
    t->sequences = step->sequences, t->positions = step->positions, t->rows = step->rows;
    for (int32_t i = 0; i < LM_MOST_SEQUENCES; i++) t->held[i].length = t->held[i].rows = t->held[i].high = 0;
}

static void do_part(const lm_script *s, lm_kind kind, const lm_part *p, lm_held *h)
{
    switch (kind) {
    case STEP_FORWARD:
        h->rows = p->rows;
        h->token_at = p->token, h->parent_at = p->parent;
        return;
    case STEP_COMMIT:
        h->length += lm_row_path(lm_numbers(s, h->token_at), lm_numbers(s, h->parent_at), p->at,
                                 h->token + h->length);
        if (h->length > h->high) h->high = h->length;
        h->rows = 0;
        return;
    case STEP_TRUNCATE:
        h->length = p->at;
        h->rows = 0;
        return;
    case STEP_TOO_MANY:
    case STEP_TOO_LONG: /* KV-04: a refused forward leaves no rows */
        h->rows = 0;
        return;
    default:
        return;
    }
}

void lm_state_do(lm_state *t, const lm_script *s, int32_t i)
{
    const lm_step *step = &s->step[i];
    if (step->kind == STEP_LOAD) load(t, step);
    for (int32_t k = 0; step->kind == STEP_POISON && k < t->sequences; k++) t->held[k].rows = 0;
    for (int32_t k = 0; k < step->n; k++) {
        const lm_part *p = &s->part[step->first + k];
        do_part(s, step->kind, p, &t->held[p->sequence]);
    }
}

bool lm_script_fit(lm_script *s)
{
    lm_state t;
    int32_t kept = 0;
    const bool ok = lm_state_open(&t, s);
    for (int32_t i = 0; ok && i < s->steps; i++) {
        if (!lm_state_fit(&t, s, i)) continue;
        lm_state_do(&t, s, i);
        s->step[kept++] = s->step[i];
    }
    if (ok) s->steps = kept;
    lm_state_close(&t);
    return ok;
}

/* ---- Cutting one down. ------------------------------------------------------------------------ */

int32_t lm_cut_count(const lm_script *s, lm_cut what)
{
    int32_t n = 0;
    if (what == LM_CUT_STEPS) return s->steps - 1;
    if (what == LM_CUT_SEQUENCES) return LM_MOST_SEQUENCES;
    for (int32_t i = 0; i < s->steps; i++)
        for (int32_t k = 0; k < s->step[i].n; k++) {
            const lm_part *p = &s->part[s->step[i].first + k];
            n += what == LM_CUT_PARTS ? 1 : what == LM_CUT_ROWS ? p->rows : p->wants;
        }
    return n;
}

static void cut_steps(lm_script *s, int32_t first, int32_t n)
{
    const int32_t from = 1 + first, to = from + n > s->steps ? s->steps : from + n;
    memmove(s->step + from, s->step + to, (size_t)(s->steps - to) * sizeof *s->step);
    s->steps -= to - from;
}

static bool within(int32_t x, int32_t first, int32_t n)
{
    return x >= first && x < first + n;
}

/* Parts by their number, or by their sequence. */
static void cut_parts(lm_script *s, bool by_sequence, int32_t first, int32_t n)
{
    int32_t number = 0;
    for (int32_t i = 0; i < s->steps; i++) {
        lm_step *step = &s->step[i];
        int32_t kept = 0;
        for (int32_t k = 0; k < step->n; k++, number++) {
            const lm_part p = s->part[step->first + k];
            if (!within(by_sequence ? p.sequence : number, first, n)) s->part[step->first + kept++] = p;
        }
        step->n = kept;
    }
}

/* The commit, after step i, of the rows of its part: it ended in row `at`. NULL: there is none. */
static lm_part *commit_of(const lm_script *s, int32_t i, int32_t sequence)
{
    for (int32_t u = i + 1; u < s->steps && s->step[u].kind != STEP_LOAD; u++)
        for (int32_t k = 0; k < s->step[u].n; k++) {
            lm_part *p = &s->part[s->step[u].first + k];
            if (p->sequence == sequence && s->step[u].kind != STEP_READ)
                return s->step[u].kind == STEP_COMMIT ? p : NULL;
        }
    return NULL;
}

/* Of the rows of a part those from `first` on, n of them; `commit` is theirs, or NULL. */
static void cut_rows_of(lm_script *s, lm_part *p, int32_t first, int32_t n, lm_part *commit)
{
    int32_t *token = lm_numbers(s, p->token), *parent = lm_numbers(s, p->parent), *want = lm_numbers(s, p->want);
    int32_t end = commit ? commit->at : -1, kept = 0, asked = 0;
    const int32_t gone = first + n > p->rows ? p->rows - first : n;
    /* Every name of a row that goes becomes that of its nearest ancestor that stays. */
    for (int32_t r = 0; r < p->rows; r++)
        while (within(parent[r], first, gone)) parent[r] = parent[parent[r]];
    while (within(end, first, gone)) end = parent[end];
    if (commit) commit->at = end >= first + gone ? end - gone : end;
    for (int32_t r = 0; r < p->rows; r++) {
        if (within(r, first, gone)) continue;
        token[kept] = token[r];
        parent[kept++] = parent[r] >= first + gone ? parent[r] - gone : parent[r];
    }
    for (int32_t k = 0; k < p->wants; k++)
        if (!within(want[k], first, gone)) want[asked++] = want[k] >= first + gone ? want[k] - gone : want[k];
    p->rows = kept;
    p->wants = asked;
}

static void cut_rows(lm_script *s, int32_t first, int32_t n)
{
    int32_t number = 0;
    for (int32_t i = 0; i < s->steps; i++)
        for (int32_t k = 0; k < s->step[i].n; k++) {
            lm_part *p = &s->part[s->step[i].first + k];
            const int32_t rows = p->rows, from = first > number ? first - number : 0,
                          to = first + n - number < rows ? first + n - number : rows;
            if (from < to) cut_rows_of(s, p, from, to - from, commit_of(s, i, p->sequence));
            number += rows;
        }
}

static void cut_wants(lm_script *s, int32_t first, int32_t n)
{
    int32_t number = 0;
    for (int32_t i = 0; i < s->steps; i++)
        for (int32_t k = 0; k < s->step[i].n; k++) {
            lm_part *p = &s->part[s->step[i].first + k];
            int32_t *want = lm_numbers(s, p->want), kept = 0;
            for (int32_t w = 0; w < p->wants; w++, number++)
                if (!within(number, first, n)) want[kept++] = want[w];
            p->wants = kept;
        }
}

void lm_cut_out(lm_script *s, lm_cut what, int32_t first, int32_t n)
{
    if (what == LM_CUT_STEPS) cut_steps(s, first, n);
    if (what == LM_CUT_SEQUENCES || what == LM_CUT_PARTS) cut_parts(s, what == LM_CUT_SEQUENCES, first, n);
    if (what == LM_CUT_ROWS) cut_rows(s, first, n);
    if (what == LM_CUT_WANTS) cut_wants(s, first, n);
}

void lm_cut_names(lm_script *s)
{
    int32_t name[LM_MOST_SEQUENCES], used = 0;
    for (int32_t i = 0; i < LM_MOST_SEQUENCES; i++) name[i] = -1;
    for (int32_t i = 0; i < s->steps; i++)
        for (int32_t k = 0; k < s->step[i].n; k++) {
            int32_t *sequence = &s->part[s->step[i].first + k].sequence;
            if (name[*sequence] < 0) name[*sequence] = used++;
            *sequence = name[*sequence];
        }
    for (int32_t i = 0; i < s->steps; i++)
        if (s->step[i].kind == STEP_LOAD && s->step[i].sequences > used) s->step[i].sequences = used > 0 ? used : 1;
}

/* ---- For the reader. --------------------------------------------------------------------------- */

typedef struct {
    char *text;
    size_t used, size;
} writer;

static void put(writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(writer *w, const char *format, ...)
{
    va_list list;
    if (w->used >= w->size) return;
    va_start(list, format);
    const int n = vsnprintf(w->text + w->used, w->size - w->used, format, list);
    va_end(list);
    w->used += n > 0 ? (size_t)n : 0;
}

static void put_tree(writer *w, const lm_script *s, const lm_part *p)
{
    enum { WHOLE = 24, SOME = 6 };
    const int32_t *token = lm_numbers(s, p->token), *parent = lm_numbers(s, p->parent), *want = lm_numbers(s, p->want);
    const int32_t rows = p->rows > WHOLE ? SOME : p->rows, wants = p->wants > WHOLE ? SOME : p->wants;
    put(w, " %d:[", (int)p->sequence);
    for (int32_t r = 0; r < rows; r++) {
        put(w, r ? " %d" : "%d", (int)token[r]);
        if (parent[r] != r - 1) put(w, "^%d", (int)parent[r]);
    }
    if (rows < p->rows) put(w, " ... %d rows", (int)p->rows);
    put(w, "]");
    for (int32_t k = 0; k < wants; k++) put(w, "%c%d", k ? ',' : '?', (int)want[k]);
    if (wants < p->wants) put(w, " ... %d wants", (int)p->wants);
}

static void put_part(writer *w, const lm_script *s, lm_kind kind, const lm_part *p)
{
    if (kind == STEP_FORWARD)
        put_tree(w, s, p);
    else if (kind == STEP_COMMIT && p->at < 0)
        put(w, " %d:-", (int)p->sequence);
    else if (kind == STEP_COMMIT)
        put(w, " %d:to row %d", (int)p->sequence, (int)p->at);
    else if (kind == STEP_TRUNCATE)
        put(w, " %d:%d", (int)p->sequence, (int)p->at);
    else if (kind == STEP_READ)
        put(w, " %d@%d.%d", (int)p->sequence, (int)p->at, (int)p->layer);
    else
        put(w, " %d", (int)p->sequence);
}

enum { MANY_PARTS = 16, SOME_PARTS = 4 };

/* The steps from `first` on. */
static void put_steps(writer *w, const lm_script *s, int32_t first)
{
    static const char *const name[] = {"load", "fwd", "commit", "cut", "read", "poison", "too many", "too long", "stale"};
    for (int32_t i = first; i < s->steps; i++) {
        const lm_step *step = &s->step[i];
        put(w, "%s%s", i > first ? "; " : "", name[step->kind]);
        if (step->kind == STEP_LOAD)
            put(w, " %d seq, %d pos, %d rows, layout %u", (int)step->sequences, (int)step->positions, (int)step->rows,
                (unsigned)step->layout);
        const int32_t n = step->n > MANY_PARTS ? SOME_PARTS : step->n;
        for (int32_t k = 0; k < n; k++) put_part(w, s, step->kind, &s->part[step->first + k]);
        if (n < step->n) put(w, " ... %d parts", (int)step->n);
    }
}

void lm_script_text(const lm_script *s, char *text, size_t size)
{
    for (int32_t left_out = 0; left_out < s->steps; left_out++) {
        lm_script load = *s;
        load.steps = 1;
        writer w = {text, 0, size};
        text[0] = 0;
        put_steps(&w, &load, 0);
        if (left_out) put(&w, "; %d operations", (int)left_out);
        if (left_out + 1 < s->steps) put(&w, "; ");
        put_steps(&w, s, left_out + 1);
        if (w.used < size) return;
    }
    if (size > 4) memcpy(text + size - 4, "...", 4);
}
