/* entry.c - libassay_traces.so: `--iut traces:FILE`. */
#include "conformance/subjects/traces/subject.h"

const iut_api *iut_entry(void)
{
    return traces_alone_api();
}
