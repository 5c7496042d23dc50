/* Waiver files: a strict reader. Clause VER-04. */
#include "conformance/suite/waivers.h"

#include <fnmatch.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAIVER_FILE_MAX = 1 << 20 };

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

/* A required text, copied; NULL when it is missing, empty or no text. */
static char *text_of(const json_t *object, const char *key)
{
    const char *s = json_string_value(json_object_get(object, key));
    return s && *s ? strdup(s) : NULL;
}

static bool read_waiver(const json_t *object, waiver *w, char *why, size_t why_size)
{
    if (!json_is_object(object) || json_object_size(object) != 4) {
        snprintf(why, why_size, "needs exactly the keys case, issue, reason, expires");
        return false;
    }
    w->pattern = text_of(object, "case");
    w->issue = text_of(object, "issue");
    w->reason = text_of(object, "reason");
    if (!w->pattern || !w->issue || !w->reason) {
        snprintf(why, why_size, "%s must be a text that is not empty",
                 !w->pattern ? "case"
                 : !w->issue ? "issue"
                             : "reason");
        return false;
    }
    const char *expires = json_string_value(json_object_get(object, "expires"));
    if (!expires || !is_date(expires)) {
        snprintf(why, why_size, "expires must be a date written YYYY-MM-DD");
        return false;
    }
    memcpy(w->expires, expires, sizeof w->expires);
    return true;
}

static bool read_all(const json_t *array, waiver_set *set, const char *name, char *why,
                     size_t why_size)
{
    const size_t count = json_array_size(array);
    set->list = calloc(count + 1, sizeof *set->list);
    if (!set->list) {
        snprintf(why, why_size, "%s: out of memory", name);
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        char reason[160];
        set->count = i + 1;
        if (read_waiver(json_array_get(array, i), &set->list[i], reason, sizeof reason))
            continue;
        snprintf(why, why_size, "%s: waiver %zu: %s", name, i + 1, reason);
        return false;
    }
    return true;
}

waiver_set *waivers_parse(const char *text, size_t size, const char *name, char *why,
                          size_t why_size)
{
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_array(root)) {
        snprintf(why, why_size, "%s:%d: %s; a waiver file is a JSON array of objects", name,
                 root ? 1 : error.line, root ? "no array" : error.text);
        json_decref(root);
        return NULL;
    }
    waiver_set *set = calloc(1, sizeof *set);
    if (set && !read_all(root, set, name, why, why_size)) {
        waivers_free(set);
        set = NULL;
    } else if (set) {
        const time_t now = time(NULL);
        struct tm utc;
        strftime(set->today, sizeof set->today, "%Y-%m-%d", gmtime_r(&now, &utc));
    } else {
        snprintf(why, why_size, "%s: out of memory", name);
    }
    json_decref(root);
    return set;
}

waiver_set *waivers_load(const char *file, char *why, size_t why_size)
{
    FILE *f = fopen(file, "rb");
    char *text = malloc(WAIVER_FILE_MAX);
    waiver_set *set = NULL;
    if (!f) {
        snprintf(why, why_size, "cannot open waiver file %s", file);
    } else if (!text) {
        snprintf(why, why_size, "%s: out of memory", file);
    } else {
        const size_t size = fread(text, 1, WAIVER_FILE_MAX, f);
        if (size == WAIVER_FILE_MAX || ferror(f)) {
            snprintf(why, why_size, "%s: unreadable, or larger than 1 MiB", file);
        } else {
            set = waivers_parse(text, size, file, why, why_size);
        }
    }
    free(text);
    if (f) fclose(f);
    return set;
}

void waivers_free(waiver_set *set)
{
    if (!set) return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->list[i].pattern);
        free(set->list[i].issue);
        free(set->list[i].reason);
    }
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
