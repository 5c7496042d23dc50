/* Waiver files: a strict reader. Clause VER-04. */
#include "conformance/suite/waivers.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ref/load/json.h"

static bool is_date(const char *s)
{
    static const char shape[] = "dddd-dd-dd";
    if (strlen(s) != sizeof shape - 1) return false;
    for (size_t i = 0; i < sizeof shape - 1; i++) {
        const bool digit = s[i] >= '0' && s[i] <= '9';
        if (shape[i] == 'd' ? !digit : s[i] != '-') return false;
    }
    const int month = atoi(s + 5), day = atoi(s + 8);
    return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

/* A text that is not empty. */
static bool read_text(as_json *r, const json_t *o, const char *key, const char **text)
{
    return as_json_text(r, o, key, text) &&
           (**text || as_json_bad(r, key, "must not be empty"));
}

static bool read_waiver(as_json *r, const json_t *o, waiver *w)
{
    const char *expires;
    if (!as_json_has_keys(r, o, "case issue reason expires", "") ||
        !read_text(r, o, "case", &w->pattern) || !read_text(r, o, "issue", &w->issue) ||
        !read_text(r, o, "reason", &w->reason) || !as_json_text(r, o, "expires", &expires))
        return false;
    if (!is_date(expires))
        return as_json_bad(r, "expires", "must be a date written YYYY-MM-DD");
    memcpy(w->expires, expires, sizeof w->expires);
    return true;
}

static bool read_all(as_json *r, waiver_set *set)
{
    set->count = json_array_size(set->file);
    set->list = calloc(set->count + 1, sizeof *set->list);
    if (!set->list) return as_json_no_memory(r);
    for (size_t i = 0; i < set->count; i++) {
        const size_t mark = as_json_enter(r, "", i);
        if (!read_waiver(r, json_array_get(set->file, i), &set->list[i])) return false;
        as_json_leave(r, mark);
    }
    return true;
}

/* The waivers of the root, which the set keeps. */
static waiver_set *read_root(as_json *r, json_t *root)
{
    waiver_set *set = calloc(1, sizeof *set);
    if (!set) return as_json_no_memory(r), json_decref(root), NULL;
    set->file = root;
    if (root && read_all(r, set)) {
        const time_t now = time(NULL);
        struct tm utc;
        strftime(set->today, sizeof set->today, "%Y-%m-%d", gmtime_r(&now, &utc));
        return set;
    }
    waivers_free(set);
    return NULL;
}

static const char remedy[] =
    "a waiver file is a list of objects with case, issue, reason and expires";

waiver_set *waivers_parse(const char *text, size_t size, const char *name, char *why,
                          size_t why_size)
{
    as_json r = {name, remedy, why, why_size, AS_OK, ""};
    return read_root(&r, as_json_parse(&r, text, size, JSON_ARRAY));
}

waiver_set *waivers_load(const char *file, char *why, size_t why_size)
{
    as_json r = {file, remedy, why, why_size, AS_OK, ""};
    return read_root(&r, as_json_load(&r, JSON_ARRAY));
}

void waivers_free(waiver_set *set)
{
    if (!set) return;
    json_decref(set->file);
    free(set->list);
    free(set);
}

/* Dates written YYYY-MM-DD compare as texts. */
bool waiver_expired(const waiver_set *set, const waiver *w)
{
    return strcmp(w->expires, set->today) < 0;
}

bool waiver_matches(const waiver *w, const char *case_id)
{
    return fnmatch(w->pattern, case_id, 0) == 0;
}
