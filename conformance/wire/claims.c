/* claims.c - see claims.h. */
#include "conformance/wire/claims.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* clang-format off */
#define COINS "two|one|race"
#define ARCHITECTURES "llama|qwen2|qwen3"
#define METHODS "jacobi|lookahead|lookup|ouroboros"
#define TREE_RULES "target|recursive|match|greedy|kseq|block|onehot|single|typical|lenient|constant|other"

#define ROW(name, kind, width, most, words, since, unsaid, question) \
    {#name, kind, width, offsetof(iut_claims, name), most, words, since, unsaid, question, 0, 0}
#define TEXT(name, question) ROW(name, CLAIM_TEXT, 8, 0, NULL, 0, NULL, question)
#define CHOICE(name, words, question) ROW(name, CLAIM_CHOICE, 1, 0, words, 0, NULL, question)
#define SET(name, words, unsaid, question) ROW(name, CLAIM_SET, 1, 0, words, 0, unsaid, question)
#define METHOD_SET(name, question) \
    {#name, CLAIM_SET, 1, offsetof(iut_claims, name), 0, METHODS, 0, NULL, question, IUT_OUROBOROS, 7}
#define NUMBER(name, width, most, question) ROW(name, CLAIM_NUMBER, width, most, NULL, 0, NULL, question)
#define ORDER(name, since, unsaid, question) ROW(name, CLAIM_ORDER, 8, 0, NULL, since, unsaid, question)
#define LATER_SET(name, words, since, unsaid, question) ROW(name, CLAIM_SET, 4, 0, words, since, unsaid, question)
#define LATER_NUMBER(name, most, since, unsaid, question) \
    ROW(name, CLAIM_NUMBER, 4, most, NULL, since, unsaid, question)
#define LATER_CHOICE(name, words, since, unsaid, question) ROW(name, CLAIM_CHOICE, 4, 0, words, since, unsaid, question)

const claim_row claim_table[] = {
    TEXT(name,
          "What is it called?"),
    TEXT(version,
          "Which version is judged?"),
    TEXT(device,
          "What does it run on?"),
    CHOICE(uniforms, "supplied|seeded|own",
          "Does it use the uniforms that the suite passes, a generator seeded by the suite, or its own? With "
          "supplied ones the suite compares every single token: if your kernel can take its uniforms as an "
          "argument, do that."),
    CHOICE(input, "probs|logits",
          "Does it start from probabilities, or from logits and sampling parameters?"),
    CHOICE(map, "cdf|gumbel|other",
          "Does a uniform pick a token by the running sum in id order, by a Gumbel or exponential race, or "
          "otherwise?"),
    CHOICE(rule, "token|match|block|onehot|not lossless",
          "By which rule does it accept: min(1, p/q) token by token, draws from p compared with the drafts, "
          "block verification, fixed candidates without q? Or does it not promise the law?"),
    CHOICE(arithmetic, "canonical|f64|f32|f16|bf16",
          "In what does it compute? The suite allows for the rounding of that type and no more. `canonical` "
          "claims the bits of the specification. The laws take f32 where it is not said."),
    NUMBER(uniform_bits, 1, 64,
          "How fine are its uniforms? A float in [0, 1) usually has 24 bits. The laws take these where it is not "
          "said."),
    CHOICE(tie, "first|last|any",
          "Which of equal logits is the greedy one?"),
    CHOICE(q_zero, "accept|reject",
          "What becomes of a draft that q gave nothing and p something?"),
    CHOICE(bad_row, "-|-|error",
          "What becomes of a row with a NaN, +inf, or nothing but -inf?"),
    CHOICE(bad_draft, "-|reject|error",
          "What becomes of a draft outside the vocabulary: does it end the drafts, or is it an error?"),
    CHOICE(empty, "from p|other",
          "What is emitted if the residual has no mass?"),
    NUMBER(seed_identical, 1, 1,
          "Does speculation promise, for the same seed, the very tokens of its own plain decoding?"),
    NUMBER(greedy_identical, 1, 1,
          "Does speculation at temperature 0 promise the very tokens of its own plain decoding?"),
    CHOICE(lm_arithmetic, "canonical|self consistent",
          "Do the operations on a model give the bits of chapter 1, or bits of their own that are the same "
          "however they are asked for?"),
    SET(lm_architectures, ARCHITECTURES, ARCHITECTURES,
          "Which models does it load?"),
    METHOD_SET(methods,
          "Which methods does `generate` offer besides chains of a draft model's?"),
    METHOD_SET(greedy_methods,
          "Which of these does it offer at temperature 0 alone?"),
    SET(pools, "lru|ring", NULL,
          "Which kinds of pool of n-grams does `pool` offer?"),
    NUMBER(max_vocab, 4, INT32_MAX,
          "What is the largest vocabulary? 0: no limit is known. Larger cases are not claimed."),
    NUMBER(max_gamma, 4, INT32_MAX,
          "How many drafts a step at most? 0: no limit is known. Larger cases are not claimed."),
    NUMBER(accepted_total, 4, 1,
          "Does `generate` tell accepted drafts as a total a request, and not step by step?"),
    NUMBER(eos_always, 4, 1,
          "Does every stream of `generate` end at the end of sequence of the target's config.json, so that no "
          "other can be asked for?"),
    ORDER(order, 1, "transformers",
          "If it serves logits itself: in which order do temperature, top_k, top_p and min_p apply, with a blank "
          "between? Or as in transformers, vllm, llamacpp or mlx? The order of chapter 3 is that of transformers."),
    LATER_CHOICE(top_k_ties, "cut|kept", 1, "cut",
          "Does top-k keep k tokens, or all whose logit equals the k-th?"),
    LATER_CHOICE(weights, "folder|own", 1, "folder",
          "Does it compute with the folder's weights, or with weights that it made from them, quantised say?"),
    LATER_SET(per_request, "sampling|seed|budget|ends", 2, NULL,
          "What may differ among the requests of one `generate` call? Ends are several a request."),
    LATER_CHOICE(logprobs, "raw|served", 3, NULL,
          "Does `generate` tell log-probabilities of its tokens: of the softmax of the logits, or of the served row?"),
    LATER_SET(processors, "repetition|presence|frequency", 4, NULL,
          "Which penalties of tokens that were there before does `generate` take, of each request its own?"),
    {"draft_vocab", CLAIM_SET, 4, offsetof(iut_claims, draft_vocab), 0, "panel|folder", 5, NULL,
          "May the draft have a vocabulary of its own: in a panel, with `d2t` and rows over it; in a folder of "
          "`generate`, with `draft_vocab_size` and `d2t`?", IUT_VOCAB_PANEL, 6},
    LATER_SET(coins, COINS, 6, "two",
          "From which supplied uniforms does `verify` choose its last token: one for a correction and one for a "
          "bonus, one for both, or exponentials, one a token?"),
    LATER_SET(tree_rules, TREE_RULES, 6, NULL,
          "By which rules does `verify_tree` try the children of a node (chapter 10)?"),
    LATER_SET(tree_drawn, "fixed|iid|without|mixed", 6, NULL,
          "How may the children of a node have come: chosen, drawn independently from one row, drawn from it without "
          "replacement, or each drawn from a row of its own?"),
    LATER_SET(tree_bonus, "drawn|given", 6, "drawn",
          "Does `verify_tree` draw the token behind a node without children, or take one that was drawn before?"),
    LATER_SET(tree_coins, COINS, 6, "two",
          "As `coins`, for `verify_tree`."),
    LATER_SET(lossless_any, TREE_RULES, 6, NULL,
          "Which of these rules have the law of the target for any tree?"),
    LATER_SET(lossless_drawn, TREE_RULES, 6, NULL,
          "Which have it on average over trees that were drawn as they are told to be?"),
    LATER_NUMBER(max_nodes, INT32_MAX, 6, NULL,
          "How many nodes a tree at most, the root included? 0: no limit is known. Larger cases are not claimed."),
    LATER_NUMBER(max_children, INT32_MAX, 6, NULL,
          "How many children a node at most? 1: chains alone. 0: no limit is known. Larger cases are not claimed."),
    LATER_NUMBER(tree_sampling, 1, 6, NULL,
          "Does `verify_tree` serve the logits of each request by a sampling of its own?"),
    LATER_NUMBER(warm, 1, 7, NULL,
          "May n-grams of one request serve the next? The output must not depend on them."),
    LATER_NUMBER(ranks, INT32_MAX, 7, "1",
          "How many workers share the steps of lookahead?"),
    LATER_CHOICE(models, "any|exported", 8, "any",
          "Does it load any folder of its architectures, or those of `assay models export` alone?"),
    LATER_CHOICE(drafts, "sampled|argmax", 9, NULL,
          "Do `stream` and `generate` draw their drafts from the draft's served row, and leave none out for what it is, "
          "or do they take the likeliest token of that row?"),
    LATER_NUMBER(seed_bits, 64, 9, NULL,
          "If uniforms are seeded: how many low bits of a seed matter? Seeds that differ in one of them must have "
          "streams that are independent. 0: it is not said, and nothing is asked."),
    {0}};
/* clang-format on */

static void *at(const iut_claims *claims, const claim_row *row)
{
    return (char *)(uintptr_t)claims + row->at;
}

static int64_t number(const iut_claims *claims, const claim_row *row)
{
    return row->width == 1 ? *(uint8_t *)at(claims, row) : *(int32_t *)at(claims, row);
}

static bool same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

const char *claims_difference(const iut_claims *a, const iut_claims *b)
{
    for (const claim_row *row = claim_table; row->name; row++) {
        if (row->kind == CLAIM_TEXT) continue;
        if (row->kind == CLAIM_ORDER ? !same_text(*(const char **)at(a, row), *(const char **)at(b, row))
                                     : number(a, row) != number(b, row))
            return row->name;
    }
    return NULL;
}

/* ---- The order of filters. CLM-14. ----------------------------------------------- */

static const char *const step_names[] = {"temperature", "top_k", "top_p", "min_p"};

static const char *spelled(const char *order)
{
    static const struct {
        const char *word, *order;
    } known[] = {{"transformers", "temperature top_k top_p min_p"},
                 {"vllm", "temperature min_p top_k top_p"},
                 {"llamacpp", "top_k top_p min_p temperature"},
                 {"mlx", "top_p min_p top_k temperature"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(order, known[i].word) == 0) return known[i].order;
    return order;
}

/* The number of the step that a text begins with; 0: it begins with none. */
static int step_at(const char *text, size_t length)
{
    for (int i = 0; i < 4; i++)
        if (strlen(step_names[i]) == length && memcmp(text, step_names[i], length) == 0) return i + 1;
    return 0;
}

static const char *unsaid_order(void)
{
    const claim_row *row = claim_table;
    while (row->kind != CLAIM_ORDER) row++;
    return row->unsaid;
}

bool claims_order(const char *text, uint8_t step[4])
{
    const char *at = spelled(text ? text : unsaid_order());
    unsigned seen = 0;
    for (int i = 0; i < 4; i++) {
        const size_t length = strcspn(at, " ");
        const int number = step_at(at, length);
        if (number == 0 || (seen >> number & 1)) return false;
        seen |= 1u << number;
        step[i] = (uint8_t)number;
        at += length;
        if (*at != (i < 3 ? ' ' : 0)) return false;
        at += i < 3;
    }
    return true;
}

static bool is_specified(const char *order)
{
    uint8_t specified[4], step[4];
    return claims_order(NULL, specified) && claims_order(order, step) && memcmp(specified, step, 4) == 0;
}

int32_t claim_words(const claim_row *row)
{
    int32_t n = 1;
    for (const char *c = row->words; *c; c++) n += *c == '|';
    return n;
}

int32_t claim_most(const claim_row *row)
{
    return row->kind == CLAIM_CHOICE ? claim_words(row)
           : row->kind == CLAIM_SET  ? (1 << claim_words(row)) - 1
                                     : row->most;
}

/* The number of the row's word `name`. */
static int32_t word_number(const claim_row *row, const char *name, size_t length)
{
    int32_t i = 0;
    for (const char *word = row->words; *word; word += strcspn(word, "|"), word += *word == '|', i++)
        if (strcspn(word, "|") == length && memcmp(word, name, length) == 0)
            return row->kind == CLAIM_SET ? 1 << i : i + 1;
    assert(!"a default is one of the row's words");
    return 0;
}

int32_t claim_unsaid(const claim_row *row)
{
    int32_t sum = 0;
    if (!row->unsaid || row->kind == CLAIM_ORDER) return 0;
    if (row->kind == CLAIM_NUMBER) return (int32_t)strtol(row->unsaid, NULL, 10);
    for (const char *word = row->unsaid; *word; word += *word == '|') {
        const size_t length = strcspn(word, "|");
        sum += word_number(row, word, length);
        word += length;
    }
    return sum;
}

int32_t claims_number(const iut_claims *claims, size_t field)
{
    const claim_row *row = claim_table;
    while (row->name && row->at != field) row++;
    assert(row->name);
    const int32_t said = (int32_t)number(claims, row);
    return said ? said : claim_unsaid(row);
}

static json_t *value_of(const iut_claims *claims, const claim_row *row, int32_t since)
{
    const bool text = row->kind == CLAIM_TEXT || row->kind == CLAIM_ORDER;
    const int32_t unknown = row->later_since > since ? row->later : 0;
    return text ? json_string(*(const char **)at(claims, row)) : json_integer(number(claims, row) & ~(int64_t)unknown);
}

json_t *claims_encode(const iut_claims *claims, unsigned ops, int32_t since)
{
    json_t *args = json_object();
    int bad = 0;
    for (const claim_row *row = claim_table; row->name; row++) {
        const bool missing = row->kind == CLAIM_ORDER && !*(const char **)at(claims, row);
        if (row->since <= since && !missing) bad |= json_object_set_new(args, row->name, value_of(claims, row, since));
    }
    char list[256] = "";
    for (iut_op op = OP_PANEL; op < OP_COUNT; op++)
        if (ops >> op & 1) {
            if (*list) strcat(list, " ");
            strcat(list, iut_op_name(op));
        }
    bad |= json_object_set_new(args, "ops", json_string(list));
    if (!bad) return args;
    json_decref(args);
    return NULL;
}

/* Has a set a bit whose word is "-"? */
static bool has_reserved(const claim_row *row, int64_t x)
{
    int32_t bit = 0;
    for (const char *word = row->kind == CLAIM_SET ? row->words : NULL; word; bit++) {
        const char *bar = strchr(word, '|');
        if ((x >> bit & 1) && *word == '-') return true;
        word = bar ? bar + 1 : NULL;
    }
    return false;
}

#define FAIL(...) (snprintf(why, why_size, __VA_ARGS__), false)

static bool check_row(const iut_claims *claims, const claim_row *row, char *why,
                      size_t why_size)
{
    uint8_t step[4];
    if (row->kind == CLAIM_TEXT)
        return *(const char **)at(claims, row) || FAIL("claims: %s is missing", row->name);
    if (row->kind == CLAIM_ORDER)
        return claims_order(*(const char **)at(claims, row), step) ||
               FAIL("claims: %s = \"%.60s\"; it must name temperature, top_k, top_p and min_p, each once, with a "
                    "blank between, or be transformers, vllm, llamacpp or mlx",
                    row->name, *(const char **)at(claims, row));
    const int64_t x = number(claims, row);
    if (x < 0 || x > claim_most(row))
        return FAIL("claims: %s = %lld; it must be 0 to %d", row->name, (long long)x, (int)claim_most(row));
    return !has_reserved(row, x) || FAIL("claims: %s = %lld has a reserved bit", row->name, (long long)x);
}

static bool check_canonical(const iut_claims *claims, char *why, size_t why_size)
{
    if (claims->uniform_bits < 29)
        return FAIL(
            "claims: canonical arithmetic with uniforms of %d bits; it needs 29 or more",
            claims->uniform_bits);
    if (claims->uniforms == IUT_UNIFORMS_SEEDED && claims->seed_bits > 0 && claims->seed_bits < 64)
        return FAIL("claims: canonical arithmetic with seeds of %d bits; they have 64 (RNG-02)",
                    (int)claims->seed_bits);
    if (!is_specified(claims->order))
        return FAIL("claims: canonical arithmetic with the order %s; it has that of DIST-12", claims->order);
    if (claims->top_k_ties == IUT_TIES_KEPT)
        return FAIL("claims: canonical arithmetic with ties that top-k keeps; it cuts them (DIST-09)");
    if (claims->weights == IUT_WEIGHTS_OWN)
        return FAIL("claims: canonical arithmetic with weights of its own; its bits are the folder's weights'");
    return true;
}

bool claims_check(const iut_claims *claims, char *why, size_t why_size)
{
    for (const claim_row *row = claim_table; row->name; row++)
        if (!check_row(claims, row, why, why_size)) return false;
    if (claims->arithmetic == IUT_ARITH_CANONICAL && !check_canonical(claims, why, why_size)) return false;
    if (claims->lm_arithmetic == IUT_LM_CANONICAL && claims->weights == IUT_WEIGHTS_OWN)
        return FAIL("claims: lm_arithmetic is canonical, with weights of its own; its bits are the folder's weights'");
    if (claims->greedy_methods & ~claims->methods)
        return FAIL("claims: greedy_methods = %d names what is not in methods = %d",
                    claims->greedy_methods, claims->methods);
    if ((claims->lossless_any | claims->lossless_drawn) & ~claims->tree_rules)
        return FAIL("claims: lossless_any = %d or lossless_drawn = %d names what is not in tree_rules = %d",
                    (int)claims->lossless_any, (int)claims->lossless_drawn, (int)claims->tree_rules);
    return true;
}

bool claims_check_ops(unsigned ops, char *why, size_t why_size)
{
    static const iut_op together[] = {OP_MODEL, OP_FORWARD, OP_COMMIT, OP_TRUNCATE};
    const unsigned cache = 1u << OP_CACHE_READ | 1u << OP_CACHE_POISON;
    unsigned all = 0;
    for (int i = 0; i < 4; i++) all |= 1u << together[i];
    if (!(ops & (all | cache)) || (ops & all) == all) return true;
    return FAIL("claims: of the operations on a model some are missing; model, forward, commit "
                "and truncate go together");
}

static bool decode_row(const json_t *args, const claim_row *row, iut_claims *claims, char *why,
                       size_t why_size)
{
    const json_t *value = json_object_get(args, row->name);
    if (row->kind == CLAIM_TEXT) {
        *(const char **)at(claims, row) = json_string_value(value);
        return true; /* claims_check looks whether it is there */
    }
    if (!value) return true; /* not said */
    if (row->kind == CLAIM_ORDER) {
        *(const char **)at(claims, row) = json_string_value(value);
        return json_is_string(value) || FAIL("claims: %s must be a text", row->name);
    }
    const int64_t v = json_is_integer(value) ? json_integer_value(value) : -1;
    if (v < 0 || v > claim_most(row))
        return FAIL("claims: %s must be an integer from 0 to %d", row->name,
                    (int)claim_most(row));
    if (row->width == 1)
        *(uint8_t *)at(claims, row) = (uint8_t)v;
    else
        *(int32_t *)at(claims, row) = (int32_t)v;
    return true;
}

static bool decode_ops(const json_t *args, unsigned *ops, char *why, size_t why_size)
{
    const char *word = json_string_value(json_object_get(args, "ops"));
    if (!word) return FAIL("claims: `ops`, the names of the operations, is missing");
    *ops = 1u << OP_CLAIMS;
    while (*(word += strspn(word, " "))) {
        const size_t length = strcspn(word, " ");
        char name[24] = "";
        if (length < sizeof name) memcpy(name, word, length);
        const iut_op op = iut_op_find(name);
        if (op == OP_COUNT)
            return FAIL("claims: unknown operation %.*s in `ops`", (int)length, word);
        *ops |= 1u << op;
        word += length;
    }
    return true;
}

static bool known_field(const char *name)
{
    const claim_row *row = claim_table;
    while (row->name && strcmp(name, row->name) != 0) row++;
    return row->name || strcmp(name, "ops") == 0;
}

bool claims_decode(const json_t *args, iut_claims *claims, unsigned *ops, char *why,
                   size_t why_size)
{
    *claims = (iut_claims){.size = sizeof *claims};
    if (!args) return FAIL("claims: the reply has no `args`");
    const char *key;
    json_t *value;
    json_object_foreach(
        (json_t *)(uintptr_t)args, key,
        value) if (!known_field(key)) return FAIL("claims: there is no field %.40s", key);
    for (const claim_row *row = claim_table; row->name; row++)
        if (!decode_row(args, row, claims, why, why_size)) return false;
    return decode_ops(args, ops, why, why_size) && claims_check_ops(*ops, why, why_size) &&
           claims_check(claims, why, why_size);
}
