/* lm_trail.c - see lm_trail.h. */
#include "conformance/checks/model/lm_trail.h"

#include <stdlib.h>
#include <string.h>

void lm_trail_free(lm_trail *t)
{
    lm_script_free(&t->s);
    free(t->answer);
    *t = (lm_trail){0};
}

/* Where the logits of the last step are. */
static void note(lm_trail *t, const float *logits)
{
    if (t->s.failed) return;
    if (t->s.steps > t->room) {
        const int32_t room = 2 * t->s.steps + 16;
        const float **more = realloc(t->answer, (size_t)room * sizeof *more);
        if (!more) {
            t->s.failed = true;
            return;
        }
        t->answer = more;
        t->room = room;
    }
    t->answer[t->s.steps - 1] = logits;
}

void lm_trail_load(lm_trail *t, const iut_model *m)
{
    if (!t) return;
    lm_add_load(&t->s, m->sequences, m->positions, m->rows, m->layout_seed);
    note(t, NULL);
}

void lm_trail_forward(lm_trail *t, const iut_forward_batch *b)
{
    if (!t) return;
    lm_add_step(&t->s, STEP_FORWARD);
    for (int32_t i = 0, row = 0, want = 0; i < b->n; row += b->row_count[i], want += b->want_count[i++]) {
        const size_t rows = (size_t)b->row_count[i], wants = (size_t)b->want_count[i];
        const lm_part *p = lm_add_tree(&t->s, b->sequence[i], b->row_count[i], b->want_count[i]);
        if (!p) return;
        if (rows) memcpy(lm_numbers(&t->s, p->token), b->token + row, rows * sizeof *b->token);
        if (rows) memcpy(lm_numbers(&t->s, p->parent), b->parent + row, rows * sizeof *b->parent);
        if (wants) memcpy(lm_numbers(&t->s, p->want), b->want + want, wants * sizeof *b->want);
    }
    note(t, b->logits);
}

void lm_trail_commit(lm_trail *t, const iut_commit_batch *b)
{
    if (!t) return;
    lm_add_step(&t->s, STEP_COMMIT);
    for (int32_t i = 0, end = 0; i < b->n; i++) {
        end += b->path_count[i];
        lm_add_part(&t->s, b->sequence[i], b->path_count[i] ? b->path[end - 1] : -1, 0);
    }
    note(t, NULL);
}

void lm_trail_truncate(lm_trail *t, const iut_truncate_batch *b)
{
    if (!t) return;
    lm_add_step(&t->s, STEP_TRUNCATE);
    for (int32_t i = 0; i < b->n; i++) lm_add_part(&t->s, b->sequence[i], b->keep[i], 0);
    note(t, NULL);
}

void lm_trail_poison(lm_trail *t)
{
    if (!t) return;
    lm_add_step(&t->s, STEP_POISON);
    note(t, NULL);
}

int32_t lm_trail_read(lm_trail *t, int32_t sequence, int32_t position, int32_t layer)
{
    lm_add_step(&t->s, STEP_READ);
    lm_add_part(&t->s, sequence, position, layer);
    note(t, NULL);
    return t->s.failed ? -1 : t->s.steps - 1;
}

/* Which of the wanted rows of a step; -1: none. */
static int32_t number_of(const lm_trail *t, int32_t i, const float *logits, int32_t V)
{
    const uintptr_t first = (uintptr_t)t->answer[i], at = (uintptr_t)logits, size = (uintptr_t)V * sizeof *logits;
    uintptr_t wants = 0;
    for (int32_t k = 0; k < t->s.step[i].n; k++) wants += (uintptr_t)t->s.part[t->s.step[i].first + k].wants;
    return first && at >= first && at < first + wants * size ? (int32_t)((at - first) / size) : -1;
}

bool lm_trail_find(const lm_trail *t, const float *logits, int32_t V, int32_t *step, int32_t *part, int32_t *row)
{
    for (int32_t i = t->s.steps; i-- > 0;) {
        int32_t number = number_of(t, i, logits, V);
        if (number < 0) continue;
        const lm_part *p = &t->s.part[t->s.step[i].first];
        for (*part = 0; number >= p[*part].wants; number -= p[(*part)++].wants) continue;
        *step = i;
        *row = lm_numbers(&t->s, p[*part].want)[number];
        return true;
    }
    return false;
}
