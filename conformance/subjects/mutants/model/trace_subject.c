/* trace_subject.c - see trace_subject.h. */
#include "conformance/subjects/mutants/model/trace_subject.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct {
    const char *name;
} subject;

bool trace_setting(setting_name name)
{
    return name == SETTING_TRACES;
}

iut *trace_subject_create(const char *name, char *error, size_t error_size)
{
    subject *a = calloc(1, sizeof *a);
    if (!a) {
        snprintf(error, error_size, "mutant %s: out of memory", name);
        return NULL;
    }
    a->name = name;
    return (iut *)a;
}

static void destroy(iut *x)
{
    free(x);
}

static const char *last_error(iut *x)
{
    (void)x;
    return "";
}

static iut_status claims(iut *x, iut_claims *c)
{
    *c = (iut_claims){
        .size = sizeof *c, .name = ((subject *)x)->name, .version = "1", .device = "cpu"};
    return IUT_OK;
}

const iut_api trace_subject_operations = {.abi = IUT_ABI,
                                          .size = sizeof(iut_api),
                                          .destroy = destroy,
                                          .last_error = last_error,
                                          .claims = claims};
