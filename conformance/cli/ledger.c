/* `assay ledger`: shows the evidence of many runs together, and adds a run. Clause STAT-13. */
#include "conformance/cli/ledger.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/ledger_lines.h"
#include "ref/load/json.h"

typedef struct {
    const char *file, *add, *digest;
    double alpha;
    bool stated;
} arguments;

#define AT(field) .at = offsetof(arguments, field)
static const option options[] = {
    {"FILE", NULL, "the ledger, a JSON object a line; --add makes it if there is none", OPTION_TEXT, AT(file),
     .needed = true},
    {"--add", "REPORT", "a report of `assay run --json`, whose run is added", OPTION_TEXT, AT(add)},
    {"--digest", "TEXT", "names the build that was tested: a commit, the hash of a library. A new one starts anew",
     OPTION_TEXT, AT(digest)},
    {"--noise-is-new", NULL, "states that the implementation's own noise starts otherwise in each run", OPTION_FLAG,
     AT(stated)},
    {"--alpha", "A", "false-alarm rate of a digest", OPTION_ABOVE, AT(alpha), 0, 1 - 0x1p-53, .must = "in (0, 1)",
     .otherwise = "1e-6"},
};
#undef AT

static const option_table table = {
    "ledger",
    "usage: assay ledger FILE [--add REPORT --digest TEXT] [options]\n\n"
    "Multiplies the e-values of runs with different seeds (STAT-13). Add every run, whatever it said.\n",
    options, sizeof options / sizeof *options,
    "exit code: 0 below the line, 1 a digest's runs reach 1/alpha together, 2 usage, or a run that does not count,\n"
    "3 the ledger is damaged or cannot be written\n"};

static int complain(const char *why, int code)
{
    fprintf(stderr, "assay ledger: %s\n", why);
    return code;
}

/* -- Showing ----------------------------------------------------------------------------- */

static const char *date_of(const json_t *line, size_t run)
{
    return json_string_value(json_object_get(json_array_get(json_object_get(line, "runs"), run), "added"));
}

static void print_line(const json_t *line, const st_evidence *e, size_t n, double alpha)
{
    const char *name = json_string_value(json_object_get(line, "name")),
               *version = json_string_value(json_object_get(line, "version"));
    printf("%s (%s %s): %zu %s, added %s to %s\n", json_string_value(json_object_get(line, "digest")),
           as_show(name).text, as_show(version).text, n, n == 1 ? "run" : "runs", date_of(line, 0),
           date_of(line, n - 1));
    printf("  ln E = %.4g, line %.4g", e->log_e, -log(alpha));
    if (e->when) printf("; the largest, %.4g, after run %zu (%s)", e->most, e->when, date_of(line, e->when - 1));
    if (e->start) printf(", most of it from run %zu (%s) on", e->start, date_of(line, e->start - 1));
    putchar('\n');
}

/* Shows the line; *over: it reaches 1/alpha. False: no memory. */
static bool show(const json_t *line, double alpha, bool *over)
{
    size_t n;
    st_evidence e;
    st_run *runs = ledger_runs(line, &n);
    const bool ok = runs && st_ledger_weigh(runs, n, &e);
    free(runs);
    if (!ok) return false;
    print_line(line, &e, n, alpha);
    *over = *over || e.most >= -log(alpha);
    return true;
}

/* Shows one line, or all; the exit code. */
static int judge(const json_t *lines, const json_t *only, double alpha)
{
    bool over = false;
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const json_t *line = json_array_get(lines, i);
        if (only && line != only) continue;
        if (!show(line, alpha, &over)) return complain("there is no memory for the runs", EXIT_ERROR);
    }
    puts(over ? "NOT CONFORMANT: the runs together reach 1/alpha (STAT-13), exit code 1"
              : "No evidence: the runs together stay below 1/alpha (STAT-13), exit code 0");
    return over ? EXIT_NOT_CONFORMANT : EXIT_CONFORMANT;
}

static int show_file(const arguments *a)
{
    char why[1400];
    if (access(a->file, R_OK) != 0) return complain("cannot read the ledger; --add makes one", EXIT_USAGE);
    json_t *lines = ledger_load(a->file, why, sizeof why);
    if (!lines) return complain(why, EXIT_ERROR);
    const json_t *only = a->digest ? ledger_find(lines, a->digest) : NULL;
    const int code = a->digest && !only ? complain("the ledger has no line of this digest", EXIT_USAGE)
                                        : judge(lines, only, a->alpha);
    json_decref(lines);
    return code;
}

/* -- Adding ------------------------------------------------------------------------------ */

/* While the ledger is locked. */
static int add_locked(const arguments *a, const json_t *report)
{
    char why[1400];
    int code = EXIT_ERROR;
    const bool none = access(a->file, F_OK) != 0 && errno == ENOENT;
    json_t *lines = none ? json_array() : ledger_load(a->file, why, sizeof why);
    if (!lines)
        complain(why, code);
    else if (!ledger_add(lines, a->digest, report, why, sizeof why))
        code = complain(why, EXIT_USAGE);
    else if (!ledger_save(lines, a->file, why, sizeof why))
        complain(why, code);
    else
        code = judge(lines, ledger_find(lines, a->digest), a->alpha);
    json_decref(lines);
    return code;
}

static int add(const arguments *a)
{
    char why[1400] = "there is no memory for it", today[11];
    const time_t now = time(NULL);
    struct tm utc;
    strftime(today, sizeof today, "%Y-%m-%d", gmtime_r(&now, &utc));
    json_t *report = ledger_read_report(a->add, a->stated, today, why, sizeof why);
    if (!report) return complain(why, EXIT_USAGE);
    const int lock = ledger_lock(a->file, why, sizeof why);
    const int code = lock < 0 ? complain(why, EXIT_ERROR) : add_locked(a, report);
    if (lock >= 0) ledger_unlock(lock);
    json_decref(report);
    return code;
}

int ledger_main(int argc, char **argv)
{
    arguments a = {.alpha = 1e-6};
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    if (a.digest && !ledger_digest_good(a.digest))
        options_refuse(&table, "--digest: TEXT must have 1 to %d printable ASCII characters", LEDGER_DIGEST);
    else if (a.add && !a.digest)
        options_refuse(&table, "--add needs --digest TEXT, which names the build that was tested");
    else if (a.stated && !a.add)
        options_refuse(&table, "--noise-is-new belongs to --add REPORT");
    else
        return a.add ? add(&a) : show_file(&a);
    return EXIT_USAGE;
}
