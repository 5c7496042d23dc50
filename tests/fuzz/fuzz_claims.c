/* The claims of a reply as JSON text: CLM-04, FRM-03. What is accepted is coherent and survives
 * the wire. */
#include <string.h>

#include "conformance/wire/claims.h"
#include "tests/fuzz/fuzz.h"

/* The ranges of iut.h, written down here anew, and the very numbers of the text. */
static void check_numbers(const json_t *args, const iut_claims *c)
{
    const struct {
        const char *name;
        int64_t value, most;
    } field[] = {{"uniforms", c->uniforms, 3},
                 {"input", c->input, 2},
                 {"map", c->map, 3},
                 {"rule", c->rule, 5},
                 {"arithmetic", c->arithmetic, 5},
                 {"uniform_bits", c->uniform_bits, 64},
                 {"tie", c->tie, 3},
                 {"q_zero", c->q_zero, 2},
                 {"bad_row", c->bad_row, 3},
                 {"bad_draft", c->bad_draft, 3},
                 {"empty", c->empty, 2},
                 {"seed_identical", c->seed_identical, 1},
                 {"max_vocab", c->max_vocab, INT32_MAX},
                 {"max_gamma", c->max_gamma, INT32_MAX},
                 {"greedy_identical", c->greedy_identical, 1},
                 {"lm_arithmetic", c->lm_arithmetic, 2},
                 {"lm_architectures", c->lm_architectures, 7},
                 {"methods", c->methods, 15},
                 {"greedy_methods", c->greedy_methods, 15},
                 {"pools", c->pools, 3}};
    for (size_t i = 0; i < sizeof field / sizeof *field; i++) {
        MUST(field[i].value >= 0 && field[i].value <= field[i].most);
        MUST(json_integer_value(json_object_get(args, field[i].name)) == field[i].value);
    }
    MUST(c->arithmetic != 1 || c->uniform_bits >= 29);
    MUST((c->methods | c->greedy_methods) == c->methods);
}

static void check_accepted(const iut_claims *c, unsigned ops)
{
    char why[300];
    iut_claims again;
    unsigned again_ops;
    MUST(claims_check(c, why, sizeof why));
    MUST(ops >> OP_CLAIMS & 1 && ops >> OP_COUNT == 0);
    json_t *args = claims_encode(c, ops, CLAIMS_SINCE);
    MUST(args && claims_decode(args, &again, &again_ops, why, sizeof why));
    MUST(ops == again_ops);
    MUST(strcmp(c->name, again.name) == 0 && strcmp(c->device, again.device) == 0);
    MUST(!claims_difference(c, &again));
    again.name = c->name, again.version = c->version, again.device = c->device, again.order = c->order;
    MUST(memcmp(c, &again, sizeof again) == 0);
    json_decref(args);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_error_t error;
    iut_claims claims;
    unsigned ops = 0;
    char why[300] = "";
    json_t *args = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(args)) {
        json_decref(args);
        return 0;
    }
    if (claims_decode(args, &claims, &ops, why, sizeof why))
        check_numbers(args, &claims), check_accepted(&claims, ops);
    else
        MUST(*why);
    json_decref(args);
    return 0;
}
