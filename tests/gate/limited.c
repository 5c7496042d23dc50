/* limited.c - the reference's plugin, REFERENCE, as code with the limits that its options name,
 * "VOCAB-GAMMA". It claims them (VAR-10) and refuses whatever lies beyond: a question that is
 * too large fails the run. The models of `generate` are not seen here, so those are served. */
#include <stddef.h>
#include <stdio.h>

#include "tests/gate/reference.h"

/* A process has one instance. */
static struct {
    iut_api reference;
    int32_t vocab, gamma;
    char error[80]; /* the reason of a refusal of our own; else empty */
} self;

/* Is `size` beyond the limit `most`? The reason says so. */
static int beyond(const char *what, int32_t size, int32_t most)
{
    self.error[0] = 0;
    if (size <= most) return 0;
    snprintf(self.error, sizeof self.error, "%s is %d, and may be at most %d", what, (int)size,
             (int)most);
    return 1;
}

static const char *last_error(iut *x)
{
    return self.error[0] ? self.error : self.reference.last_error(x);
}

static iut *create(const char *options, char *error, size_t size)
{
    if (sscanf(options, "%d-%d", &self.vocab, &self.gamma) != 2) {
        snprintf(error, size, "options must be VOCAB-GAMMA, such as 3-2; they are \"%s\"",
                 options);
        return NULL;
    }
    return self.reference.create("", error, size);
}

static iut_status claims(iut *x, iut_claims *c)
{
    const iut_status s = self.reference.claims(x, c);
    c->max_vocab = self.vocab, c->max_gamma = self.gamma;
    return s;
}

static iut_status panel(iut *x, const iut_panel *p)
{
    return beyond("V", p->V, self.vocab) ? IUT_UNSUPPORTED : self.reference.panel(x, p);
}

static iut_status verify(iut *x, iut_verify_batch *b)
{
    return beyond("gamma", b->gamma, self.gamma) ? IUT_UNSUPPORTED
                                                 : self.reference.verify(x, b);
}

static iut_status verify_greedy(iut *x, iut_verify_batch *b)
{
    return beyond("gamma", b->gamma, self.gamma) ? IUT_UNSUPPORTED
                                                 : self.reference.verify_greedy(x, b);
}

static iut_status stream(iut *x, iut_stream_batch *b)
{
    return beyond("gamma", b->gamma, self.gamma) ? IUT_UNSUPPORTED
                                                 : self.reference.stream(x, b);
}

static iut_status verify_tree(iut *x, iut_tree_batch *b)
{
    return beyond("depth", b->depth, self.gamma) ? IUT_UNSUPPORTED
                                                 : self.reference.verify_tree(x, b);
}

static iut_status model(iut *x, iut_model *m)
{
    const iut_status s = self.reference.model(x, m);
    return s == IUT_OK && beyond("V", m->shape[0], self.vocab) ? IUT_UNSUPPORTED : s;
}

static iut_status generate(iut *x, iut_generate_batch *b)
{
    return beyond("gamma", b->gamma, self.gamma) ? IUT_UNSUPPORTED
                                                 : self.reference.generate(x, b);
}

static iut_status pool(iut *x, iut_pool_batch *b)
{
    return beyond("V", b->V, self.vocab) ? IUT_UNSUPPORTED : self.reference.pool(x, b);
}

const iut_api *iut_entry(void)
{
    static iut_api api;
    const iut_api *reference = reference_entry();
    if (!reference) return NULL;
    self.reference = api = *reference;
    api.create = create;
    api.last_error = last_error;
    api.claims = claims;
    api.panel = panel;
    api.verify = verify;
    api.verify_greedy = verify_greedy;
    api.stream = stream;
    api.verify_tree = verify_tree;
    api.model = model;
    api.generate = generate;
    api.pool = pool;
    return &api;
}
