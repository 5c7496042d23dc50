/* none.c - the drafter that makes no drafts (draft.h). */
#include <stdlib.h>

#include "ref/draft/draft.h"

static as_status reset(as_drafter *d, as_error *e)
{
    (void)d, (void)e;
    return AS_OK;
}

static as_status propose(as_drafter *d, const as_context *c, as_tree *tree, as_error *e)
{
    (void)d, (void)c, (void)tree, (void)e;
    return AS_OK;
}

static as_status observe(as_drafter *d, const as_context *c, const as_step *s, as_error *e)
{
    (void)d, (void)c, (void)s, (void)e;
    return AS_OK;
}

static void free_drafter(as_drafter *d)
{
    free(d);
}

static const as_drafter_ops operations = {reset, propose, observe, free_drafter};

as_status as_draft_none(as_drafter **d, as_error *e)
{
    *d = malloc(sizeof **d);
    if (!*d) return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    **d = (as_drafter){&operations, "plain decoding", AS_EVERY_RULE, 0};
    return AS_OK;
}
