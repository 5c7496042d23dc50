/* none.c - the drafter that makes no drafts (draft.h). */
#include "ref/draft/draft.h"

#include <stdlib.h>

as_status as_draft_none(as_drafter **d, as_error *e)
{
    static const as_drafter_ops operations = {0};
    *d = malloc(sizeof **d);
    if (!*d) return as_fail(e, AS_NO_MEMORY, "no memory for a drafter");
    **d = (as_drafter){&operations, "plain decoding", AS_EVERY_RULE, 0, NULL};
    return AS_OK;
}
