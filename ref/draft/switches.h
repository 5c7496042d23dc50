/* switches.h - the switches of chapters 8, 9 and 11 by the names that the specification gives them and their values. */
#ifndef ASSAY_REF_DRAFT_SWITCHES_H
#define ASSAY_REF_DRAFT_SWITCHES_H

#include <stdbool.h>
#include <stddef.h>

/* One value of one switch: the field of a method's parameters that it sets, and what it sets it to. */
typedef struct {
    const char *name, *value; /* name NULL: behind the last */
    size_t at;                /* of the field: an enum or an int32_t, or a bool */
    bool is_bool;
    unsigned number;
} as_switch;

extern const as_switch as_lookahead_switches[]; /* of as_lookahead; init=given also needs its tokens */
extern const as_switch as_lookup_switches[];    /* of as_lookup */
extern const as_switch as_ouroboros_switches[]; /* of as_ouroboros, but for init=given */

/* Sets the switch `name` of the parameters `o` to `value`; both are given with their lengths, without an end.
 * False if the list has no such switch or value. */
bool as_set_switch(void *o, const as_switch *list, const char *name, size_t name_length, const char *value,
                   size_t value_length);

#endif
