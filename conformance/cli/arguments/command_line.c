/* command_line.c - see command_line.h. */
#include "conformance/cli/arguments/command_line.h"

#include <string.h>
#include <time.h>

#include "conformance/suite/layers.h"
#include "conformance/wire/kinds.h"

/* A kind and what it needs; whether that exists is found out when it is opened. */
static bool set_iut(const char *text, void *to)
{
    *(const char **)to = text;
    return kind_of(text) != KIND_NONE;
}

static bool set_require(const char *text, void *to)
{
    const layer l = layer_find(text);
    if (l != LAYERS) *(unsigned *)to |= 1u << l;
    return l != LAYERS;
}

/* A number, or the date in UTC as yyyymmdd. */
static bool set_seed(const char *text, void *to)
{
    const time_t now = time(NULL);
    struct tm day;
    char date[16];
    if (strcmp(text, "today") != 0) return option_uint64(text, to);
    return gmtime_r(&now, &day) && strftime(date, sizeof date, "%Y%m%d", &day) == 8 &&
           option_uint64(date, to);
}

#define AT(field) .at = offsetof(command_line, field)
static const option options[] = {
    {"--iut", "SPEC", "what to test", OPTION_CUSTOM, AT(run.iut), .set = set_iut,
     .must = KINDS_TEXT, .otherwise = "ref"},
    {"--iut-options", "TEXT", "handed to the implementation as it is", OPTION_ANY,
     AT(run.iut_options)},
    {"--level", "LEVEL", "how much is asked", OPTION_CUSTOM, AT(run.level), .set = option_level,
     .must = OPTION_LEVELS, .otherwise = "full, and smoke for exec: and for gpu without a GPU"},
    {"--only", "GLOB", "cases whose id matches; may be repeated", OPTION_LIST, AT(only)},
    {"--claims", "GLOB", "checks whose name matches; may be repeated", OPTION_LIST, AT(claims)},
    {"--require", "LAYER", "exit code 4 unless a case of it was judged; may be repeated",
     OPTION_CUSTOM, AT(run.required), .set = set_require,
     .must = "one of hard-facts, replay, certificates, law, metamorphic, model-bits, "
             "engine-tokens, engine-law, traces"},
    {"--samples", "N", "of a statistical case at most: less power, as printed", OPTION_COUNT,
     AT(run.samples), 1000, 1e9, .must = "a whole number from 1000 to 1e9"},
    {"--seed", "N|today", "of every random choice of the suite; today: the date in UTC, yyyymmdd",
     OPTION_CUSTOM, AT(run.seed), .set = set_seed,
     .must = "a whole number from 0 to 18446744073709551615, or today", .otherwise = "1"},
    {"--alpha", "A", "false-alarm rate of the run's e-value", OPTION_ABOVE, AT(run.alpha), 0,
     1 - 0x1p-53, .must = "in (0, 1)", .otherwise = "1e-6"},
    {"--timeout", "SECONDS", "a call may take; the first of its operation in a process six times that, any one once "
                             "more for each 256 requests, sixteen times at most",
     OPTION_ABOVE, AT(run.timeout), 0, 86400,
     .otherwise = "10"},
    {"--budget", "SECONDS", "after which the run stops and reports what has ended",
     OPTION_ABOVE, AT(run.budget), 0, 1e9, .otherwise = "none"},
    {"--jobs", "N", "implementations at work at a time", OPTION_INT, AT(run.jobs), 1, 256,
     .otherwise = "processors"},
    {"--vectors", "FOLDER", "golden vectors", OPTION_TEXT, AT(run.vectors),
     .otherwise = "those that came with assay"},
    {"--traces", "FILE", "the implementation's traces of the trace vectors (assay-traces-1)",
     OPTION_TEXT, AT(run.traces)},
    {"--waivers", "FILE", "known failures: JSON [{case, issue, reason, expires}]", OPTION_TEXT,
     AT(waivers)},
    {"--log", "FILE", "event log, a JSON object a line, written case by case", OPTION_TEXT,
     AT(log)},
    {"--iut-log", "FILE", "what the implementation writes on standard error", OPTION_TEXT,
     AT(iut_log)},
    {"--json", "FILE", "the whole report for programs", OPTION_TEXT, AT(json)},
    {"--junit", "FILE", "the report for CI", OPTION_TEXT, AT(junit)},
    {"--html", "FILE", "the report for a browser, one file", OPTION_TEXT, AT(html)},
    {"--list", NULL, "names the cases and the seconds they declare, and runs none", OPTION_FLAG, AT(list)},
    {"--quiet", NULL, "prints the verdict alone", OPTION_FLAG, AT(quiet)},
};
#undef AT
enum { OPTIONS = sizeof options / sizeof *options };

const option_table run_table = {
    "run",
    "usage: assay run [options]\n\n"
    "Tests an implementation of speculative decoding against the specification.\n",
    options, OPTIONS,
    "exit code: 0 conformant, 1 not conformant, 2 usage, 3 fault of the suite or its data,\n"
    "4 undecided (inconclusive, unavailable, stopped, or a required layer not judged)\n"};

static bool agree(const command_line *c, char *why, size_t why_size)
{
    const spec_kind kind = kind_of(c->run.iut);
    if (kind == KIND_EXEC && c->run.iut_options && *c->run.iut_options)
        snprintf(why, why_size,
                 "--iut-options with exec: put the options into the command itself, exec:CMD");
    else if (kind == KIND_TRACES && c->run.traces)
        snprintf(why, why_size,
                 "--traces with --iut traces:FILE: one file of traces is enough");
    else
        return true;
    return false;
}

options_result command_line_parse(command_line *c, int argc, char **argv, char *why,
                                  size_t why_size)
{
    options_given given;
    *c = (command_line){.run = {.iut = "ref", .level = LEVEL_FULL, .seed = 1}};
    c->run.only = c->only.text;
    c->run.claims = c->claims.text;
    const options_result r = options_parse(&run_table, c, argc, argv, &given, why, why_size);
    if (r != OPTIONS_READ) return r;
    c->run.only_count = c->only.count;
    c->run.claims_count = c->claims.count;
    c->level_given = option_given(&run_table, given, "--level");
    if (!c->level_given && kind_of(c->run.iut) == KIND_EXEC) c->run.level = LEVEL_SMOKE;
    return agree(c, why, why_size) ? OPTIONS_READ : OPTIONS_WRONG;
}
