/* trace_subject.c - see trace_subject.h. */
#include "conformance/subjects/mutants/model/trace_subject.h"

#include <stdio.h>
#include <stdlib.h>

#include "conformance/subjects/mutants/model/method_window.h"

typedef struct {
    const char *name;
    int32_t ranks;
} subject;

bool trace_setting(setting_name name)
{
    return name == SETTING_TRACES || name == SETTING_TRACES_RANKS;
}

iut *trace_subject_create(const char *name, variant v, char *error, size_t error_size)
{
    subject *a = calloc(1, sizeof *a);
    if (!a) {
        snprintf(error, error_size, "mutant %s: out of memory", name);
        return NULL;
    }
    a->name = name;
    a->ranks = v.setting == SETTING_TRACES_RANKS ? WINDOW_RANKS : 0;
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
    const subject *a = (const subject *)x;
    *c = (iut_claims){.size = sizeof *c, .name = a->name, .version = "1", .device = "cpu", .ranks = a->ranks};
    return IUT_OK;
}

const iut_api trace_subject_operations = {.abi = IUT_ABI,
                                          .size = sizeof(iut_api),
                                          .destroy = destroy,
                                          .last_error = last_error,
                                          .claims = claims};
