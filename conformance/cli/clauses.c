/* Look-ups in the clauses that embed_spec wrote. */
#include "conformance/cli/clauses.h"

#include <string.h>

const clause *clause_find(const char *id)
{
    for (const clause *c = clause_list; c->id; c++) {
        if (strcmp(c->id, id) == 0) return c;
    }
    return NULL;
}

bool clause_named(const char *list, const char *id)
{
    const size_t length = strlen(id);
    for (const char *at = list; length > 0 && at && (at = strstr(at, id)); at += length) {
        const bool starts = at == list || at[-1] == ' ';
        if (starts && (at[length] == ' ' || at[length] == '\0')) return true;
    }
    return false;
}
