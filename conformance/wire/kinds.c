/* kinds.c - see kinds.h. */
#include "conformance/wire/kinds.h"

#include <string.h>

static const struct {
    const char *begins, *rest, *library;
} kinds[] = {
#define KIND(id, begins, rest, library) {begins, rest, library},
    KINDS(KIND)
#undef KIND
};

spec_kind kind_of(const char *spec)
{
    int k = 0;
    while (k < KIND_NONE && !kind_rest(spec, (spec_kind)k)) k++;
    return (spec_kind)k;
}

const char *kind_rest(const char *spec, spec_kind kind)
{
    const size_t length = strlen(kinds[kind].begins);
    if (strncmp(spec, kinds[kind].begins, length) != 0) return NULL;
    return (*kinds[kind].rest != '\0') == (spec[length] != '\0') ? spec + length : NULL;
}

const char *kind_library(spec_kind kind)
{
    return kinds[kind].library;
}
