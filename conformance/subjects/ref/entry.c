/* entry.c - libassay_ref.so: `--iut ref`. */
#include "conformance/subjects/ref/subject.h"

const iut_api *iut_entry(void)
{
    return ref_api();
}
