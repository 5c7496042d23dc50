/* repeat.c - the drafter of docs/contributing.md: the last token comes again. */
#include "ref/draft/draft.h"
#include "tests/ref/repeat.h"

typedef struct {
    as_drafter base;
    int32_t gamma;
} repeat;

static as_status propose(as_drafter *base, const as_context *c, as_tree *tree, as_plan *plan,
                         as_error *e)
{
    (void)plan;
    const int32_t gamma = ((const repeat *)base)->gamma, limit = as_chain_limit(c);
    as_status s = AS_OK;
    for (int32_t i = 0; i < gamma && i < limit && s == AS_OK; i++)
        s = as_tree_add(tree, c->history[c->n - 1], i, e);
    return s;
}

as_status as_draft_repeat(int32_t gamma, as_drafter **drafter, as_error *e)
{
    static const as_drafter_ops operations = {.propose = propose};
    const repeat made = {{&operations, "repeat", AS_RULES_WITHOUT_LAWS, 0, NULL}, gamma};
    return as_drafter_make(&made, sizeof made, drafter, e);
}
