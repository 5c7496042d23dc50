/* The claims of a reply as JSON text: CLM-04, FRM-03. What is accepted is coherent and survives the wire. */
#include <string.h>

#include "conformance/iut/claims.h"
#include "tests/fuzz/fuzz.h"

static void check_accepted(const iut_claims *c, unsigned ops)
{
    char why[300];
    iut_claims again;
    unsigned again_ops;
    MUST(claims_check(c, why, sizeof why));
    MUST(ops >> OP_CLAIMS & 1 && ops >> OP_COUNT == 0);
    json_t *args = claims_encode(c, ops);
    MUST(args && claims_decode(args, &again, &again_ops, why, sizeof why));
    MUST(ops == again_ops);
    MUST(strcmp(c->name, again.name) == 0 && strcmp(c->device, again.device) == 0);
    again.name = c->name, again.version = c->version, again.device = c->device;
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
        check_accepted(&claims, ops);
    else
        MUST(*why);
    json_decref(args);
    return 0;
}
