/* none.c - the drafter that makes no drafts (draft.h). */
#include "ref/draft/draft.h"

as_status as_draft_none(as_drafter **d, as_error *e)
{
    static const as_drafter_ops operations = {0};
    const as_drafter made = {&operations, "plain decoding", AS_EVERY_RULE, 0, NULL};
    return as_drafter_make(&made, sizeof made, d, e);
}
