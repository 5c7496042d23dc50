/* switches.h - --switches NAME=VALUE,... of a method, by the table of its chapter. */
#ifndef ASSAY_CONFORMANCE_CLI_ARGUMENTS_SWITCHES_H
#define ASSAY_CONFORMANCE_CLI_ARGUMENTS_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>

#include "ref/draft/switches.h"

/* The switches of a method, and the chapter that has them. */
typedef struct {
    const as_switch *list;
    int chapter;
    bool may_give; /* init=given is --given */
} switch_list;

/* Sets the switches of the parameters at `o` by their text; NULL: none. `given`: --given is there, and init has
 * no meaning. False, and `why`, where something is unknown. */
bool switches_set(void *o, const switch_list *of, const char *text, bool given, char *why, size_t why_size);

#endif
