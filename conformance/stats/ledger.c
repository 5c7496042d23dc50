/* ledger.c - see ledger.h. */
#include "conformance/stats/ledger.h"

#include <math.h>
#include <stdlib.h>

#include "conformance/stats/floor.h"

/* The runs from one start on: ln of weight times product, and what rounding may earn in it. */
typedef struct {
    double log_e, nats;
} product;

/* 0 times infinity is 0: an e-value of 0 ends a product for good. */
static void take(product *p, const st_run *run)
{
    if (!(p->nats < ST_STRICT_NATS)) return;
    p->nats += run->nats;
    p->log_e = fmin(p->log_e, run->log_e) == -INFINITY ? -INFINITY : p->log_e + run->log_e;
}

/* ln E after t runs. *start: the product with the largest share of it. */
static double mixture(const product *p, size_t t, size_t *start)
{
    const double rest = -log((double)t + 1);
    double top = rest, sum = 0;
    *start = 0;
    for (size_t s = 1; s <= t; s++)
        if (p[s - 1].log_e > top) top = p[s - 1].log_e, *start = s;
    if (isinf(top)) return top;
    for (size_t s = 1; s <= t; s++) sum += exp(p[s - 1].log_e - top);
    return top + log(sum + exp(rest - top));
}

bool st_ledger_weigh(const st_run *runs, size_t n, st_evidence *out)
{
    product *p = calloc(n + 1, sizeof *p);
    *out = (st_evidence){0};
    for (size_t t = 1; p && t <= n; t++) {
        size_t start;
        p[t - 1].log_e = -log((double)t) - log((double)t + 1);
        for (size_t s = 0; s < t; s++) take(&p[s], &runs[t - 1]);
        out->log_e = mixture(p, t, &start);
        if (out->log_e > out->most) out->most = out->log_e, out->when = t, out->start = start;
    }
    free(p);
    return p != NULL;
}
