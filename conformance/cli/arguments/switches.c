/* See switches.h. */
#include "conformance/cli/arguments/switches.h"

#include <stdio.h>
#include <string.h>

/* "NAME=VALUE" of length n. Tokens come by --given alone. */
static bool set_one(void *o, const switch_list *of, const char *text, size_t n)
{
    const size_t name = strcspn(text, "=");
    return name < n && strncmp(text, "init=given", 10) != 0 &&
           as_set_switch(o, of->list, text, name, text + name + 1, n - name - 1);
}

static bool is_init(const char *text)
{
    return strncmp(text, "init=", 5) == 0;
}

bool switches_set(void *o, const switch_list *of, const char *text, bool given, char *why, size_t why_size)
{
    while (text && *text) {
        const size_t n = strcspn(text, ",");
        if (!set_one(o, of, text, n)) {
            snprintf(why, why_size,
                     "--switches: %.*s is unknown; chapter %d of the specification has the "
                     "switches and their values%s",
                     (int)n, text, of->chapter, of->may_give ? "; --given is init=given" : "");
            return false;
        }
        if (given && is_init(text)) {
            snprintf(why, why_size, "--switches: init has no meaning with --given; leave it out");
            return false;
        }
        text += n + (text[n] == ',');
    }
    return true;
}
