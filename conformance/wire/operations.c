/* operations.c - see operations.h. */
#include "conformance/wire/operations.h"

#include <string.h>

#define NAME(number, name, batch, parameters) [OP_##number] = #name,
static const char *const names[OP_COUNT] = {[OP_CLAIMS] = "claims", IUT_OPERATIONS(NAME)};

const char *iut_op_name(iut_op op)
{
    return names[op];
}

iut_op iut_op_find(const char *name)
{
    iut_op op = 0;
    while (op < OP_COUNT && strcmp(names[op], name) != 0) op++;
    return op;
}

static const char *const status_names[] = {[IUT_OK] = "ok",
                                           [IUT_UNSUPPORTED] = "unsupported",
                                           [IUT_BAD_INPUT] = "bad_input",
                                           [IUT_NO_DEVICE] = "no_device",
                                           [IUT_NO_MEMORY] = "no_memory",
                                           [IUT_FAILED] = "failed"};
enum { STATUSES = sizeof status_names / sizeof *status_names };

const char *iut_status_name(iut_status status)
{
    return (unsigned)status < STATUSES ? status_names[status] : "undefined status";
}

bool iut_status_find(const char *name, iut_status *status)
{
    int32_t s = 0;
    while (s < STATUSES && strcmp(status_names[s], name) != 0) s++;
    if (s < STATUSES) *status = (iut_status)s;
    return s < STATUSES;
}

unsigned iut_ops_of(const iut_api *api)
{
#define HAS(number, name, batch, parameters) | (api->name ? 1u << OP_##number : 0)
    return 1u << OP_CLAIMS IUT_OPERATIONS(HAS);
}

#define CALL(number, name, batch_type, parameters)                                             \
    static iut_status call_##name(const iut_api *api, iut *x, void *batch)                     \
    {                                                                                          \
        batch_type *b = batch;                                                                 \
        (void)b;                                                                               \
        return api->name parameters;                                                           \
    }
IUT_OPERATIONS(CALL)

iut_status iut_op_call(const iut_api *api, iut *x, iut_op op, void *batch)
{
#define FUNCTION(number, name, batch, parameters) [OP_##number] = call_##name,
    static iut_status (*const call[OP_COUNT])(const iut_api *, iut *,
                                              void *) = {IUT_OPERATIONS(FUNCTION)};
    return call[op](api, x, batch);
}
