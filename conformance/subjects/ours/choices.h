/* choices.h - what the options of our engines choose, and the claims that follow: the same for the reference and for
 * the GPU. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_OURS_CHOICES_H
#define ASSAY_CONFORMANCE_SUBJECTS_OURS_CHOICES_H

#include <stdbool.h>

#include "conformance/iut.h"
#include "ref/dist/served.h"
#include "ref/draft/lookahead.h"
#include "ref/draft/prompt_lookup.h"

typedef struct {
    uint8_t uniforms, rule, input; /* claims */
    const as_lookahead *lookahead; /* presets of `generate` */
    const as_lookup *lookup;
} choices;

/* Supplied uniforms, the token rule, from probabilities, the presets paper and hf. */
choices choices_default(void);

/* Takes one word of the options; false, and nothing is changed, if it is none of CHOICES_WORDS. */
bool choices_take(choices *x, const char *word);
#define CHOICES_WORDS                                                                           \
    "uniforms=supplied|seeded, rule=token|match, input=probs|logits, "                          \
    "lookahead=paper|lade|llamacpp|trtllm, lookup=original|hf"

/* Fills the claims of an engine whose bits are the reference's; name, version and device are the caller's. */
void choices_claim(const choices *x, iut_claims *c);

/* Fills the claims of rules on trees: `children` of a node at most; `coins`, a sum of IUT_COINS_*, where uniforms are
 * supplied. The claims must have room for those before `warm`. */
void choices_claim_trees(const choices *x, int32_t children, int32_t coins, iut_claims *c);

as_sampling choices_sampling(const iut_sampling *s);

#endif
