/* rules.c - the names of the rules of verify.h. */
#include "ref/verify/verify.h"

#include <stddef.h>
#include <string.h>

static const char *const names[AS_RULES] = {
    [AS_RULE_GREEDY] = "greedy", [AS_RULE_CHAIN] = "chain",         [AS_RULE_MATCH] = "match",
    [AS_RULE_ONEHOT] = "onehot", [AS_RULE_TARGET] = "target",       [AS_RULE_RECURSIVE] = "recursive",
    [AS_RULE_SINGLE] = "single", [AS_RULE_KSEQ] = "kseq"};

const char *as_rule_name(as_rule rule)
{
    return (unsigned)rule < AS_RULES ? names[rule] : NULL;
}

bool as_rule_named(const char *name, as_rule *rule)
{
    for (int i = 0; i < AS_RULES; i++)
        if (strcmp(names[i], name) == 0) return *rule = (as_rule)i, true;
    return false;
}
