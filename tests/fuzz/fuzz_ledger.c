/* Ledgers, and reports as a ledger reads them: STAT-13. A line that is accepted has its seeds once each, and numbers;
 * an input that begins with '{"iut' is read as a report, whose run then joins a ledger of its own. */
#include <math.h>
#include <string.h>

#include "conformance/cli/ledger_lines.h"
#include "tests/fuzz/fuzz.h"

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static void check_run(const json_t *run, const st_run *x)
{
    const char *seed = text_of(run, "seed"), *level = text_of(run, "level"), *added = text_of(run, "added");
    MUST(seed && *seed && strlen(seed) <= 20 && strspn(seed, "0123456789") == strlen(seed));
    MUST(*seed != '0' || !seed[1]);
    MUST(level && (!strcmp(level, "smoke") || !strcmp(level, "full") || !strcmp(level, "deep")));
    MUST(added && strlen(added) == 10 && added[4] == '-' && added[7] == '-');
    MUST(!isnan(x->log_e) && x->nats >= 0 && isfinite(x->nats));
}

static void check_line(const json_t *line)
{
    const json_t *list = json_object_get(line, "runs");
    size_t n;
    st_evidence e;
    st_run *runs = ledger_runs(line, &n);
    MUST(runs && n == json_array_size(list) && n >= 1 && n <= LEDGER_RUNS);
    MUST(strlen(text_of(line, "digest")) <= 200 && *text_of(line, "digest"));
    for (size_t i = 0; i < n; i++) {
        check_run(json_array_get(list, i), &runs[i]);
        for (size_t j = 0; j < i; j++)
            MUST(strcmp(text_of(json_array_get(list, i), "seed"), text_of(json_array_get(list, j), "seed")) != 0);
    }
    MUST(st_ledger_weigh(runs, n, &e) && e.most >= 0 && e.most >= e.log_e && !isnan(e.log_e) && e.when <= n);
    free(runs);
}

static void check_lines(const json_t *lines)
{
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *line = json_array_get(lines, i);
        check_line(line);
        MUST(ledger_find(lines, text_of(line, "digest")) == line);
    }
}

/* Written and read again it is the same. */
static void check_again(const json_t *lines)
{
    char why[300], *text = calloc(1, 1);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        char *line = json_dumps(json_array_get(lines, i), JSON_COMPACT);
        MUST(line && (text = realloc(text, strlen(text) + strlen(line) + 2)));
        strcat(strcat(text, line), "\n");
        free(line);
    }
    json_t *again = ledger_parse(text, strlen(text), "again", why, sizeof why);
    MUST(again && json_equal(lines, again));
    json_decref(again);
    free(text);
}

static void check_report(const json_t *report)
{
    char why[600];
    json_t *lines = json_array();
    MUST(ledger_add(lines, "d", report, why, sizeof why));
    MUST(!ledger_add(lines, "d", report, why, sizeof why) && strstr(why, "already"));
    check_lines(lines);
    check_again(lines);
    json_decref(lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[600] = "";
    const char *text = (const char *)data;
    const int is_report = size > 5 && memcmp(text, "{\"iut", 5) == 0;
    json_t *read = is_report ? ledger_parse_report(text, size, "report.json", true, "2026-11-23", why, sizeof why)
                             : ledger_parse(text, size, "ledger", why, sizeof why);
    if (!read) {
        MUST(strncmp(why, is_report ? "report.json:" : "ledger:", is_report ? 12 : 7) == 0);
        return 0;
    }
    if (is_report)
        check_report(read);
    else {
        check_lines(read);
        check_again(read);
    }
    json_decref(read);
    return 0;
}
