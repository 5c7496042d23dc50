/* prompt_lookup.c - see prompt_lookup.h. Nothing is kept between steps: the drafts are a
 * function of the history. */
#include "ref/draft/prompt_lookup.h"

#include <string.h>
#include "ref/draft/switches.h"

const as_lookup *as_lookup_preset(const char *name)
{
    static const as_lookup original = {3, 10, false, false}, hf = {2, 10, true, true};
    if (strcmp(name, "original") == 0) return &original;
    return strcmp(name, "hf") == 0 ? &hf : NULL;
}

const as_switch as_lookup_switches[] = {
    {"partial", "no", offsetof(as_lookup, partial), true, 0},
    {"partial", "yes", offsetof(as_lookup, partial), true, 1},
    {"cut_at_eos", "no", offsetof(as_lookup, cut_at_eos), true, 0},
    {"cut_at_eos", "yes", offsetof(as_lookup, cut_at_eos), true, 1},
    {0}};

/* LKP-02, LKP-03: whether the drafts may start at s after a match of n tokens. */
static bool allowed(const as_lookup *o, int32_t L, int32_t n, int32_t s)
{
    return o->partial ? s < L : o->drafts <= L - s && s < L - n;
}

/* LKP-01: where the drafts start; L if there is no such place. */
static int32_t search(const as_lookup *o, const int32_t *history, int32_t L)
{
    for (int32_t n = o->longest < L ? o->longest : L - 1; n >= 1; n--)
        for (int32_t s = n; s < L; s++) /* s = i + n */
            if (memcmp(history + s - n, history + L - n, (size_t)n * sizeof *history) == 0 &&
                allowed(o, L, n, s))
                return s;
    return L;
}

int32_t as_lookup_find(const as_lookup *o, const int32_t *history, int32_t L,
                       const int32_t *eos, int32_t eoses, const int32_t **drafts)
{
    const int32_t s = search(o, history, L), found = L - s < o->drafts ? L - s : o->drafts;
    *drafts = history + s;
    int32_t n = 0; /* LKP-04 */
    while (n < found && !(o->cut_at_eos && as_is_eos(eos, eoses, history[s + n]))) n++;
    return n;
}

typedef struct {
    as_drafter base;
    as_lookup o;
} lookup;

/* LKP-05, LKP-06. */
static as_status propose(as_drafter *base, const as_context *c, as_tree *tree, as_plan *plan,
                         as_error *e)
{
    (void)plan;
    const lookup *d = (const lookup *)base;
    const int32_t *drafts, limit = as_chain_limit(c);
    const int32_t n = as_lookup_find(&d->o, c->history, c->n, c->eos, c->eoses, &drafts);
    as_status s = AS_OK;
    for (int32_t i = 0; i < n && i < limit && s == AS_OK; i++)
        s = as_tree_add(tree, drafts[i], i, e);
    return s;
}

as_status as_draft_lookup(const as_lookup *o, as_drafter **drafter, as_error *e)
{
    static const as_drafter_ops operations = {.propose = propose};
    if (o->longest < 1 || o->drafts < 1)
        return as_refuse(e, AS_BAD_INPUT, o->longest < 1 ? "longest" : "drafts",
                         "prompt lookup: n-grams of %d tokens and %d drafts; both must be at "
                         "least 1",
                         (int)o->longest, (int)o->drafts);
    const lookup made = {{&operations, "prompt lookup", AS_RULES_WITHOUT_LAWS, 0, NULL}, *o};
    return as_drafter_make(&made, sizeof made, drafter, e);
}
