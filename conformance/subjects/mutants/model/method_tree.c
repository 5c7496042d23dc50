/* method_tree.c - the token tree of a step (method_tree.h). */
#include "conformance/subjects/mutants/model/method_tree.h"

#include <stdio.h>
#include <stdlib.h>

#include "conformance/subjects/mutants/model/lm_subject.h"
#include "conformance/subjects/mutants/model/method_toy.h"
#include "ref/num/fixed.h"

static const iut_api *lm(void)
{
    return &lm_subject_operations;
}

iut_status method_fail(method_job *j, iut_status s, const char *text)
{
    snprintf(j->error, sizeof j->error, "%s", text);
    return s;
}

bool method_tree_open(method_tree *t, int32_t V)
{
    *t = (method_tree){.V = V, .trusted = -1};
    t->logits = malloc((size_t)METHOD_ROWS * (size_t)V * sizeof *t->logits);
    t->p = malloc((size_t)V * sizeof *t->p);
    return t->logits && t->p;
}

void method_tree_close(method_tree *t)
{
    free(t->logits);
    free(t->p);
}

void method_tree_begin(method_tree *t, int32_t root)
{
    t->rows = 0, t->candidates = 0, t->trusted = -1;
    method_tree_add(t, root, -1);
}

int32_t method_tree_add(method_tree *t, int32_t token, int32_t parent)
{
    t->token[t->rows] = token;
    t->parent[t->rows] = parent;
    return t->rows++;
}

void method_tree_candidate(method_tree *t, const int32_t *token, int32_t n)
{
    const int32_t c = t->candidates++;
    t->first[c] = t->rows;
    t->length[c] = n;
    for (int32_t i = 0; i < n; i++) method_tree_add(t, token[i], i ? t->rows - 1 : 0);
}

/* The history, and the row's tokens behind it. */
static int32_t path_of(const method_job *j, const method_tree *t, int32_t row, int32_t *path)
{
    int32_t n = j->n;
    for (int32_t i = 0; i < n; i++) path[i] = j->history[i];
    for (int32_t r = row; r > 0; r = t->parent[r]) n++;
    for (int32_t r = row, at = n; r > 0; r = t->parent[r]) path[--at] = t->token[r];
    return n;
}

static iut_status toy_forward(const method_job *j, method_tree *t)
{
    int32_t path[METHOD_POSITIONS + METHOD_ROWS];
    for (int32_t r = 0; r < t->rows; r++) {
        const int32_t n = path_of(j, t, r, path);
        method_toy_logits(j->fault, j->toy, path, n, t->logits + (int64_t)r * t->V);
    }
    return IUT_OK;
}

iut_status method_tree_forward(method_job *j, method_tree *t)
{
    if (j->toy) return toy_forward(j, t);
    const int32_t sequence = 0;
    int32_t want[METHOD_ROWS];
    for (int32_t i = 0; i < t->rows; i++) want[i] = i;
    iut_forward_batch b = {sizeof b, 1,        t->rows,   t->rows, &sequence, &t->rows,
                           &t->rows, t->token, t->parent, want,    t->logits};
    const iut_status s = lm()->forward(j->lm, &b);
    return s == IUT_OK ? s : method_fail(j, s, lm()->last_error(j->lm));
}

iut_status method_tree_commit(method_job *j, const method_run *run, int32_t n)
{
    if (j->toy) return IUT_OK; /* it keeps nothing */
    const int32_t sequence = 0, steps = n + 1;
    int32_t length, path[METHOD_ROWS + 1] = {0};
    for (int32_t i = 0; i < n; i++) path[1 + i] = run->row[i];
    iut_commit_batch b = {sizeof b, 1, steps, &sequence, &steps, path, &length};
    const iut_status s = lm()->commit(j->lm, &b);
    return s == IUT_OK ? s : method_fail(j, s, lm()->last_error(j->lm));
}

static float *logits(const method_tree *t, int32_t row)
{
    return t->logits + (int64_t)row * t->V;
}

int32_t method_tree_argmax(const method_tree *t, int32_t row)
{
    const float *l = logits(t, row);
    int32_t best = 0;
    for (int32_t x = 1; x < t->V; x++)
        if (l[x] > l[best]) best = x;
    return best;
}

bool method_tree_serve(const method_job *j, method_tree *t, int32_t row)
{
    return as_serve(logits(t, row), t->V, &j->sampling, t->p, NULL) == AS_OK;
}

uint64_t method_word(const method_job *j, int32_t at, as_purpose purpose, int32_t index)
{
    return as_word64(as_random(j->seed, (uint64_t)at, purpose, (uint32_t)index));
}

int32_t method_drawn_from(const method_job *j, const int32_t *list, int32_t n, int32_t at,
                          as_purpose purpose, int32_t index)
{
    const uint64_t i = as_target(method_word(j, at, purpose, index), (uint64_t)n);
    return list ? list[i] : (int32_t)i;
}
