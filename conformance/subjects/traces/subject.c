/* subject.c - see subject.h. */
#include "conformance/subjects/traces/subject.h"

static iut *create(const char *options, char *error, size_t error_size)
{
    static char itself;
    (void)options, (void)error, (void)error_size;
    return (iut *)&itself;
}

static void destroy(iut *x)
{
    (void)x;
}

static const char *last_error(iut *x)
{
    (void)x;
    return "";
}

static iut_status claims(iut *x, iut_claims *c)
{
    (void)x;
    *c = (iut_claims){
        .size = sizeof *c, .name = "a file of traces", .version = "", .device = ""};
    return IUT_OK;
}

const iut_api *traces_alone_api(void)
{
    static const iut_api api = {.abi = IUT_ABI,
                                .size = sizeof api,
                                .create = create,
                                .destroy = destroy,
                                .last_error = last_error,
                                .claims = claims};
    return &api;
}
