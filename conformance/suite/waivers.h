/* waivers.h - known failures that a project lives with for a while. Clause VER-04.
 *
 * A waiver file is a JSON array of objects with exactly the keys `case` (a glob on case ids),
 * `issue`, `reason` and `expires` (YYYY-MM-DD, the last day on which it holds). */
#ifndef ASSAY_CONFORMANCE_SUITE_WAIVERS_H
#define ASSAY_CONFORMANCE_SUITE_WAIVERS_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *pattern, *issue, *reason;
    char expires[11];
} waiver;

typedef struct {
    waiver *list; /* [count] */
    size_t count;
    char today[11];      /* the date that `expires` is compared with: UTC at load */
    struct json_t *file; /* has the texts */
} waiver_set;

/* NULL, and `why` says what, where and what to do, when the text is not a waiver file. `name`
 * is what `why` calls it. */
waiver_set *waivers_parse(const char *text, size_t size, const char *name, char *why,
                          size_t why_size);
waiver_set *waivers_load(const char *file, char *why, size_t why_size);
void waivers_free(waiver_set *set);

bool waiver_expired(const waiver_set *set, const waiver *w);
bool waiver_matches(const waiver *w, const char *case_id);

#endif
