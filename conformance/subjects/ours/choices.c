/* choices.c - see choices.h. */
#include "conformance/subjects/ours/choices.h"

#include <string.h>

#include "conformance/subjects/ours/engine_ops.h"
#include "ref/num/fixed.h"

choices choices_default(void)
{
    return (choices){IUT_UNIFORMS_SUPPLIED, IUT_RULE_TOKEN, IUT_FROM_PROBS,
                     as_lookahead_preset("paper"), as_lookup_preset("hf")};
}

/* A preset, if there is one of that name. */
static bool take_preset(choices *x, const char *word)
{
    const bool ahead = strncmp(word, "lookahead=", 10) == 0;
    const as_lookahead *lookahead = ahead ? as_lookahead_preset(word + 10) : NULL;
    const as_lookup *lookup =
        strncmp(word, "lookup=", 7) == 0 ? as_lookup_preset(word + 7) : NULL;
    if (lookahead) x->lookahead = lookahead;
    if (lookup) x->lookup = lookup;
    return lookahead || lookup;
}

bool choices_take(choices *x, const char *word)
{
    static const struct {
        const char *text;
        uint8_t uniforms, rule, input; /* 0: leaves it */
    } known[] = {{"uniforms=supplied", IUT_UNIFORMS_SUPPLIED, 0, 0},
                 {"uniforms=seeded", IUT_UNIFORMS_SEEDED, 0, 0},
                 {"rule=token", 0, IUT_RULE_TOKEN, 0},
                 {"rule=match", 0, IUT_RULE_MATCH, 0},
                 {"input=probs", 0, 0, IUT_FROM_PROBS},
                 {"input=logits", 0, 0, IUT_FROM_LOGITS}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(word, known[i].text) != 0) continue;
        if (known[i].uniforms) x->uniforms = known[i].uniforms;
        if (known[i].rule) x->rule = known[i].rule;
        if (known[i].input) x->input = known[i].input;
        return true;
    }
    return take_preset(x, word);
}

void choices_claim(const choices *x, iut_claims *c)
{
    c->uniforms = x->uniforms;
    c->input = x->input;
    c->map = IUT_MAP_CDF_BY_ID;
    c->rule = x->rule;
    c->arithmetic = IUT_ARITH_CANONICAL;
    c->uniform_bits = 29;
    c->tie = IUT_TIE_FIRST;
    c->q_zero = IUT_ACCEPT;
    c->bad_row = IUT_ERROR;
    c->bad_draft = IUT_ERROR;
    c->empty = IUT_EMPTY_FROM_P;
    c->seed_identical = x->rule == IUT_RULE_MATCH; /* MAT-02 */
    c->greedy_identical = 1;
    c->max_vocab = AS_MAX_VOCAB;
    c->lm_arithmetic = IUT_LM_CANONICAL;
    c->lm_architectures = IUT_LLAMA | IUT_QWEN2 | IUT_QWEN3;
    c->methods = IUT_JACOBI | IUT_LOOKAHEAD | IUT_LOOKUP;
    c->greedy_methods = engine_ops_greedy(x);
    c->pools = IUT_POOL_LRU | IUT_POOL_RING;
}

as_sampling choices_sampling(const iut_sampling *s)
{
    return (as_sampling){s->temperature, s->top_k, s->top_p, s->min_p};
}

void choices_claim_trees(const choices *x, int32_t children, int32_t coins, iut_claims *c)
{
    c->lossless_any = IUT_TREE_GREEDY | IUT_TREE_MATCH | IUT_TREE_TARGET | IUT_TREE_ONEHOT;
    c->lossless_drawn = IUT_TREE_RECURSIVE | IUT_TREE_SINGLE | IUT_TREE_KSEQ | IUT_TREE_BLOCK;
    c->tree_rules =
        c->lossless_any | c->lossless_drawn | IUT_TREE_TYPICAL | IUT_TREE_LENIENT | IUT_TREE_CONSTANT;
    c->tree_drawn = IUT_DRAWN_FIXED | IUT_DRAWN_IID | IUT_DRAWN_WITHOUT | IUT_DRAWN_MIXED;
    c->tree_bonus = IUT_BONUS_DRAWN | IUT_BONUS_GIVEN;
    c->max_children = children;
    c->tree_sampling = 1;
    if (x->uniforms == IUT_UNIFORMS_SUPPLIED) c->coins = c->tree_coins = coins;
}
