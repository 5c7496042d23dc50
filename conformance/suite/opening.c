/* opening.c - see opening.h. */
#include "conformance/suite/opening.h"

#include "conformance/checks/traces/brought.h"
#include "conformance/wire/claims.h"

static client *open_client(const run_report *r, double timeout, const stop *s, client_failure *f)
{
    const run_options *o = r->options;
    if (o->api) return client_open_table(o->api, o->iut_options, f);
    const client_options options = {.spec = o->iut ? o->iut : "ref",
                                    .options = o->iut_options,
                                    .assay = o->assay,
                                    .timeout = timeout,
                                    .stderr_log = o->stderr_log,
                                    .stop = s};
    return client_open(&options, f);
}

client *open_iut(const run_report *r, double timeout, const stop *s, client_failure *f)
{
    client *c = open_client(r, timeout, s, f);
    if (c) client_bring(c, r->traces);
    return c;
}

unsigned operations_of(const client *c)
{
    unsigned ops = 0;
    for (iut_op op = 0; op < OP_COUNT; op++) ops |= (unsigned)client_has(c, op) << op;
    return ops;
}

const char *claims_otherwise(const run_report *r, const client *c)
{
    const char *field = claims_difference(&r->claims, client_claims(c));
    return field ? field : operations_of(c) == r->operations ? NULL : "ops";
}
