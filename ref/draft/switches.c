/* switches.c - see switches.h. */
#include "ref/draft/switches.h"

#include <string.h>

static bool is(const char *word, const char *text, size_t length)
{
    return strlen(word) == length && strncmp(word, text, length) == 0;
}

static void set(void *o, const as_switch *s)
{
    char *field = (char *)o + s->at;
    if (s->is_bool)
        *(bool *)field = s->number;
    else
        memcpy(field, &s->number, sizeof s->number);
}

bool as_set_switch(void *o, const as_switch *list, const char *name, size_t name_length,
                   const char *value, size_t value_length)
{
    for (const as_switch *s = list; s->name; s++) {
        if (!is(s->name, name, name_length) || !is(s->value, value, value_length)) continue;
        set(o, s);
        return true;
    }
    return false;
}
