/* cheater_layout.c - the reference's plugin, REFERENCE, with a cache that only one layout reads right. Under every
 * layout seed but 0, the first wanted row of a sequence is wrong, except in the first sequence of a forward. With the
 * option "honest" it is right. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "tests/gate/reference.h"

/* A process has one instance. */
static struct {
    iut_api reference;
    int cheats;
    uint32_t layout;
    int32_t V;
} self;

static iut *create(const char *options, char *error, size_t size)
{
    self.cheats = strcmp(options, "honest") != 0;
    return self.reference.create("", error, size);
}

static iut_status model(iut *x, iut_model *m)
{
    const iut_status s = self.reference.model(x, m);
    self.layout = m->layout_seed;
    if (s == IUT_OK) self.V = m->shape[0];
    return s;
}

/* Wrong: the first two logits change places. */
static iut_status forward(iut *x, iut_forward_batch *b)
{
    const iut_status s = self.reference.forward(x, b);
    if (s != IUT_OK || !self.cheats || self.layout == 0) return s;
    for (int32_t i = 0, at = 0; i < b->n; at += b->want_count[i++]) {
        if (i == 0 || b->want_count[i] == 0) continue;
        float *logits = b->logits + (ptrdiff_t)at * self.V;
        const float kept = logits[0];
        logits[0] = logits[1], logits[1] = kept;
    }
    return s;
}

const iut_api *iut_entry(void)
{
    static iut_api api;
    const iut_api *reference = reference_entry();
    if (!reference) return NULL;
    self.reference = api = *reference;
    api.create = create;
    api.model = model;
    api.forward = forward;
    return &api;
}
