/* measure_cost.c - forwards by the clock. Whatever else the machine does meanwhile moves the ratios; their quartiles
 * say by how much. */
#include <stdlib.h>

#include "conformance/cli/plan/measure_parts.h"
#include "conformance/wire/clock.h"

enum { PREFIX = MEASURE_CHUNK, SINGLE = 0, DRAFT, SEVERAL, KINDS };

/* Forwards in turn, each behind the same prefix. */
typedef struct {
    as_lm *lm[KINDS];
    int32_t sequence[KINDS], rows[KINDS];
    float *logits; /* [PREFIX][V] */
    double seconds[KINDS][MEASURE_FORWARDS];
} clocked;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static measure_ratio ratio(const double *above, const double *below)
{
    double x[MEASURE_FORWARDS];
    for (int i = 0; i < MEASURE_FORWARDS; i++) x[i] = above[i] / below[i];
    qsort(x, MEASURE_FORWARDS, sizeof *x, by_value);
    const double *const last = x + MEASURE_FORWARDS - 1;
    return (measure_ratio){x[MEASURE_FORWARDS / 4], x[MEASURE_FORWARDS / 2], *(last - MEASURE_FORWARDS / 4)};
}

static as_status one_forward(clocked *c, const int32_t *token, int kind, double *seconds, as_error *e)
{
    const double start = clock_now();
    const as_status s = measure_forward(c->lm[kind], c->sequence[kind], token, c->rows[kind], c->logits, e);
    *seconds = clock_now() - start;
    return s == AS_OK ? measure_commit(c->lm[kind], c->sequence[kind], 0, e) : s;
}

/* The first round warms up. */
static as_status run(clocked *c, const int32_t *token, as_error *e)
{
    as_status s = AS_OK;
    for (int kind = 0; kind < KINDS && s == AS_OK; kind++) {
        s = as_lm_open(c->lm[kind], &c->sequence[kind], e);
        if (s == AS_OK) s = measure_forward(c->lm[kind], c->sequence[kind], token, PREFIX, c->logits, e);
        if (s == AS_OK) s = measure_commit(c->lm[kind], c->sequence[kind], PREFIX, e);
    }
    for (int i = -1; i < MEASURE_FORWARDS && s == AS_OK; i++)
        for (int kind = 0; kind < KINDS && s == AS_OK; kind++)
            s = one_forward(c, token + PREFIX, kind, &c->seconds[kind][i < 0 ? 0 : i], e);
    for (int kind = 0; kind < KINDS; kind++)
        if (c->sequence[kind] >= 0) as_lm_close(c->lm[kind], c->sequence[kind]);
    return s;
}

as_status measure_part_cost(const measure_request *r, measure_cost *m, as_error *e)
{
    as_lm *const target = r->target->lm, *const draft = r->draft->lm;
    clocked c = {.lm = {target, draft, target}, .sequence = {-1, -1, -1}, .rows = {1, 1, r->gamma + 1}};
    c.logits = malloc(PREFIX * (size_t)target->V * sizeof *c.logits);
    if (!c.logits) return as_fail(e, AS_NO_MEMORY, "no memory for %d rows of logits", PREFIX);
    const as_status s = run(&c, r->token, e);
    free(c.logits);
    if (s != AS_OK) return s;
    m->c = ratio(c.seconds[DRAFT], c.seconds[SINGLE]);
    m->rows = ratio(c.seconds[SEVERAL], c.seconds[SINGLE]);
    qsort(c.seconds[SINGLE], MEASURE_FORWARDS, sizeof *c.seconds[SINGLE], by_value);
    m->seconds = c.seconds[SINGLE][MEASURE_FORWARDS / 2];
    return AS_OK;
}
