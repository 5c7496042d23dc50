/* repeat.h - a chain of gamma drafts, each the last token again: the smallest drafter there is. */
#ifndef ASSAY_TESTS_REF_REPEAT_H
#define ASSAY_TESTS_REF_REPEAT_H

#include "ref/draft/draft.h"

as_status as_draft_repeat(int32_t gamma, as_drafter **drafter, as_error *e);

#endif
