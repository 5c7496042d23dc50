/* Waiver files: VER-04. What is accepted has all its fields and a date. */
#include <string.h>

#include "conformance/suite/waivers.h"
#include "tests/fuzz/fuzz.h"

static void check_date(const char *s)
{
    int year, month, day, end = 0;
    MUST(strlen(s) == 10 && sscanf(s, "%4d-%2d-%2d%n", &year, &month, &day, &end) == 3 &&
         end == 10);
    MUST(year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= 31);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[300] = "";
    waiver_set *set = waivers_parse((const char *)data, size, "waivers.json", why, sizeof why);
    if (!set) {
        MUST(strncmp(why, "waivers.json:", 13) == 0);
        return 0;
    }
    for (size_t i = 0; i < set->count; i++) {
        const waiver *w = &set->list[i];
        MUST(*w->pattern && *w->issue && *w->reason);
        check_date(w->expires);
        MUST(waiver_expired(set, w) == (strcmp(w->expires, set->today) < 0));
        waiver_matches(w, "law/verify/v64-a0.7-g4");
    }
    waivers_free(set);
    return 0;
}
