/* claims.c - see claims.h. */
#include "conformance/wire/claims.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    size_t offset;
    int32_t most;
} claim_field;

#define FIELD(name, most)                                                                      \
    {                                                                                          \
#name, offsetof(iut_claims, name), most                                                \
    }
static const claim_field strings[] = {FIELD(name, 0), FIELD(version, 0), FIELD(device, 0)};
static const claim_field bytes[] = {
    FIELD(uniforms, IUT_UNIFORMS_OWN),
    FIELD(input, IUT_FROM_LOGITS),
    FIELD(map, IUT_MAP_OTHER),
    FIELD(rule, IUT_RULE_NOT_LOSSLESS),
    FIELD(arithmetic, IUT_ARITH_BF16),
    FIELD(uniform_bits, 64),
    FIELD(tie, IUT_TIE_ANY),
    FIELD(q_zero, IUT_REJECT),
    FIELD(bad_row, IUT_ERROR),
    FIELD(bad_draft, IUT_ERROR),
    FIELD(empty, IUT_EMPTY_OTHER),
    FIELD(seed_identical, 1),
    FIELD(greedy_identical, 1),
    FIELD(lm_arithmetic, IUT_LM_SELF_CONSISTENT),
    FIELD(lm_architectures, IUT_LLAMA | IUT_QWEN2 | IUT_QWEN3),
    FIELD(methods, IUT_JACOBI | IUT_LOOKAHEAD | IUT_LOOKUP),
    FIELD(greedy_methods, IUT_JACOBI | IUT_LOOKAHEAD | IUT_LOOKUP),
    FIELD(pools, IUT_POOL_LRU | IUT_POOL_RING)};
static const claim_field words[] = {FIELD(max_vocab, INT32_MAX), FIELD(max_gamma, INT32_MAX),
                                    FIELD(accepted_total, 1), FIELD(eos_always, 1)};
enum {
    STRINGS = 3,
    BYTES = sizeof bytes / sizeof *bytes,
    WORDS = sizeof words / sizeof *words
};

static void *at(const iut_claims *claims, const claim_field *f)
{
    return (char *)(uintptr_t)claims + f->offset;
}

static int64_t number(const iut_claims *claims, int i)
{
    return i < BYTES ? *(uint8_t *)at(claims, &bytes[i])
                     : *(int32_t *)at(claims, &words[i - BYTES]);
}

static const claim_field *number_field(int i)
{
    return i < BYTES ? &bytes[i] : &words[i - BYTES];
}

json_t *claims_encode(const iut_claims *claims, unsigned ops)
{
    json_t *args = json_object();
    int bad = 0;
    for (int i = 0; i < STRINGS; i++)
        bad |= json_object_set_new(args, strings[i].name,
                                   json_string(*(const char **)at(claims, &strings[i])));
    for (int i = 0; i < BYTES + WORDS; i++)
        bad |=
            json_object_set_new(args, number_field(i)->name, json_integer(number(claims, i)));
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

#define FAIL(...) (snprintf(why, why_size, __VA_ARGS__), false)

bool claims_check(const iut_claims *claims, char *why, size_t why_size)
{
    for (int i = 0; i < STRINGS; i++)
        if (!*(const char **)at(claims, &strings[i]))
            return FAIL("claims: %s is missing", strings[i].name);
    for (int i = 0; i < BYTES + WORDS; i++)
        if (number(claims, i) < 0 || number(claims, i) > number_field(i)->most)
            return FAIL("claims: %s = %lld; it must be 0 to %d", number_field(i)->name,
                        (long long)number(claims, i), (int)number_field(i)->most);
    if (claims->arithmetic == IUT_ARITH_CANONICAL && claims->uniform_bits < 29)
        return FAIL(
            "claims: canonical arithmetic with uniforms of %d bits; it needs 29 or more",
            claims->uniform_bits);
    if (claims->greedy_methods & ~claims->methods)
        return FAIL("claims: greedy_methods = %d names what is not in methods = %d",
                    claims->greedy_methods, claims->methods);
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

static bool decode_number(const json_t *args, int i, iut_claims *claims, char *why,
                          size_t why_size)
{
    const claim_field *f = number_field(i);
    const json_t *value = json_object_get(args, f->name);
    if (!value) return true; /* not said */
    const int64_t v = json_is_integer(value) ? json_integer_value(value) : -1;
    if (v < 0 || v > f->most)
        return FAIL("claims: %s must be an integer from 0 to %d", f->name, (int)f->most);
    if (i < BYTES)
        *(uint8_t *)at(claims, f) = (uint8_t)v;
    else
        *(int32_t *)at(claims, f) = (int32_t)v;
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
    bool known = strcmp(name, "ops") == 0;
    for (int i = 0; i < STRINGS; i++) known |= strcmp(name, strings[i].name) == 0;
    for (int i = 0; i < BYTES + WORDS; i++) known |= strcmp(name, number_field(i)->name) == 0;
    return known;
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
    for (int i = 0; i < STRINGS; i++)
        *(const char **)at(claims, &strings[i]) =
            json_string_value(json_object_get(args, strings[i].name));
    for (int i = 0; i < BYTES + WORDS; i++)
        if (!decode_number(args, i, claims, why, why_size)) return false;
    return decode_ops(args, ops, why, why_size) && claims_check_ops(*ops, why, why_size) &&
           claims_check(claims, why, why_size);
}
