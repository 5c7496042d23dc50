/* prompt_lookup.h - prompt lookup decoding: the drafts are what followed the last tokens when
 * they stood in the history before. Clauses LKP-01 to LKP-07. */
#ifndef ASSAY_REF_DRAFT_PROMPT_LOOKUP_H
#define ASSAY_REF_DRAFT_PROMPT_LOOKUP_H

#include "ref/draft/draft.h"

typedef struct {
    int32_t longest; /* n-gram looked for, at least 1 */
    int32_t drafts;  /* asked for, at least 1 */
    bool partial;    /* fewer drafts are taken, too */
    bool cut_at_eos; /* drafts end before an end-of-sequence token */
} as_lookup;

/* "original" or "hf", with its defaults; NULL: unknown. */
const as_lookup *as_lookup_preset(const char *name);

/* The lookup alone, without the cuts of LKP-05: drafts[0 ..] = what follows the place found in
 * the history; returns how many, 0 to o->drafts. */
int32_t as_lookup_find(const as_lookup *o, const int32_t *history /* [L] */, int32_t L,
                       const int32_t *eos /* [eoses] */, int32_t eoses, const int32_t **drafts);

/* For the rules greedy, match and onehot. */
as_status as_draft_lookup(const as_lookup *o, as_drafter **d, as_error *e);

#endif
