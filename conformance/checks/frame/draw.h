/* draw.h - what a drawn case is made of: sizes at which implementations change their code (VER-11). */
#ifndef ASSAY_CONFORMANCE_CHECKS_FRAME_DRAW_H
#define ASSAY_CONFORMANCE_CHECKS_FRAME_DRAW_H

#include "conformance/checks/frame/check.h"

/* Sizes are dealt as from a pack of cards: a check has had each before it has one again.
 *
 * A vocabulary of at most `most`, 2 or more, within the declared limit: a prime, a power of two plus or minus one, or
 * the size of a real tokenizer. Up to 63, to 1,023, to 32,769 and above are as frequent as one another. */
int32_t draw_vocab(check_draw *d, int32_t most);

/* Drafts of a step, from `least` (at most 17) to `most`, within the declared limit: 0 to 17, or 33. A check draws
 * from one `least`. */
int32_t draw_gamma(check_draw *d, int32_t least, int32_t most);

/* Adds a case "NAME-V65-g7" with such a V, of at most `most`, and gamma from 1 to `gamma_most`; where that is 0, gamma
 * is 0 and the id "NAME-V65". Its n is `n`, less where V is large: about as much work at any V. */
check_case *draw_rows(check_plan *plan, check_draw *d, const check *owner, const char *name,
                      int32_t most, int32_t gamma_most, int64_t n);

/* A place below n, at most 64, of one of two lists of the check's own. */
typedef enum { DRAW_FIRST, DRAW_SECOND } draw_list;
int32_t draw_place(check_draw *d, draw_list list, int32_t n);

/* Cases of a call, at most `most`: 1, 2, 3, 5, 17, 33, 65, 257 or 4097, each as often as any other. */
int32_t draw_batch(uint64_t *rng, int32_t most);
/* The same, dealt to the cases of a check. */
int32_t draw_cases(check_draw *d, int32_t most);

#endif
