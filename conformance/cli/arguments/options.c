/* The command line of `assay run`: one table gives the parser and the help. */
#include "conformance/cli/arguments/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/suite/layers.h"
#include "conformance/wire/beside.h"
#include "conformance/wire/kinds.h"

typedef struct {
    const char *name, *value, *help;
    bool (*set)(command_line *c, const char *value);
} option;

/* -- Values ------------------------------------------------------------------------------ */

bool option_uint64(const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9') return false;
    *value = strtoull(text, &end, strncmp(text, "0x", 2) == 0 ? 16 : 10);
    return errno == 0 && *end == '\0';
}

bool option_double(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value);
}

bool option_level(const char *text, check_level *level)
{
    for (int i = LEVEL_SMOKE; i <= LEVEL_DEEP; i++) {
        *level = (check_level)i;
        if (strcmp(text, level_name(*level)) == 0) return true;
    }
    return false;
}

static bool add_glob(const char **globs, int32_t *count, const char *glob)
{
    if (*count == OPTION_GLOBS) return false;
    globs[(*count)++] = glob;
    return true;
}

/* -- Options ----------------------------------------------------------------------------- */

#define TEXT_OPTION(function, field)                                                           \
    static bool function(command_line *c, const char *value)                                   \
    {                                                                                          \
        c->field = value;                                                                      \
        return *value != '\0';                                                                 \
    }
TEXT_OPTION(set_vectors, run.vectors)
TEXT_OPTION(set_traces, run.traces)
TEXT_OPTION(set_log, log)
TEXT_OPTION(set_json, json)
TEXT_OPTION(set_junit, junit)
TEXT_OPTION(set_html, html)
TEXT_OPTION(set_waivers, waivers)
TEXT_OPTION(set_iut_log, iut_log)

/* A kind and what it needs; whether that exists is found out when it is opened. */
static bool set_iut(command_line *c, const char *value)
{
    c->run.iut = value;
    return kind_of(value) != KIND_NONE;
}

static bool set_iut_options(command_line *c, const char *value)
{
    c->run.iut_options = value;
    return true;
}

static bool set_level(command_line *c, const char *value)
{
    c->level_given = true;
    return option_level(value, &c->run.level);
}

static bool set_only(command_line *c, const char *value)
{
    return add_glob(c->only, &c->run.only_count, value);
}

static bool set_claims(command_line *c, const char *value)
{
    return add_glob(c->claims, &c->run.claims_count, value);
}

static bool set_seed(command_line *c, const char *value)
{
    return option_uint64(value, &c->run.seed);
}

static bool set_samples(command_line *c, const char *value)
{
    uint64_t n;
    const bool good = option_uint64(value, &n) && n >= 1000 && n <= 1000000000;
    if (good) c->run.samples = (int64_t)n;
    return good;
}

static bool set_alpha(command_line *c, const char *value)
{
    return option_double(value, &c->run.alpha) && c->run.alpha > 0 && c->run.alpha < 1;
}

static bool set_timeout(command_line *c, const char *value)
{
    return option_double(value, &c->run.timeout) && c->run.timeout > 0 &&
           c->run.timeout <= 86400;
}

static bool set_budget(command_line *c, const char *value)
{
    return option_double(value, &c->run.budget) && c->run.budget > 0 && c->run.budget <= 1e9;
}

static bool set_require(command_line *c, const char *value)
{
    const layer l = layer_find(value);
    if (l == LAYERS) return false;
    c->run.required |= 1u << l;
    return true;
}

static bool set_jobs(command_line *c, const char *value)
{
    uint64_t jobs;
    if (!option_uint64(value, &jobs) || jobs < 1 || jobs > 256) return false;
    c->run.jobs = (int)jobs;
    return true;
}

static bool set_list(command_line *c, const char *value)
{
    (void)value;
    return c->list = true;
}

static bool set_quiet(command_line *c, const char *value)
{
    (void)value;
    return c->quiet = true;
}

static bool set_help(command_line *c, const char *value)
{
    (void)value;
    return c->help = true;
}

static const option options[] = {
    {"--iut", "SPEC", "what to test (default: ref): " KINDS_TEXT, set_iut},
    {"--iut-options", "TEXT", "handed to the implementation as it is", set_iut_options},
    {"--level", "LEVEL",
     "smoke, full or deep (default: full, and smoke for exec: and for gpu without a GPU)",
     set_level},
    {"--only", "GLOB", "cases whose id matches; may be repeated", set_only},
    {"--claims", "GLOB", "checks whose name matches; may be repeated", set_claims},
    {"--require", "LAYER",
     "exit code 4 unless a case of it was judged; may be repeated: hard-facts, replay, "
     "certificates, law, metamorphic, model-bits, engine-tokens, engine-law, traces",
     set_require},
    {"--samples", "N", "of a statistical case at most, 1000 to 1e9: less power, as printed",
     set_samples},
    {"--seed", "N", "of every random choice of the suite (default 1)", set_seed},
    {"--alpha", "A", "false-alarm rate of the run's e-value, in (0, 1) (default 1e-6)",
     set_alpha},
    {"--timeout", "SECONDS", "a call may take, above 0 (default 10)", set_timeout},
    {"--budget", "SECONDS",
     "after which the run stops and reports what has ended, above 0 (default: none)",
     set_budget},
    {"--jobs", "N", "implementations at work at a time, 1 to 256 (default: processors)",
     set_jobs},
    {"--vectors", "FOLDER", "golden vectors (default: those that came with assay)",
     set_vectors},
    {"--traces", "FILE", "the implementation's traces of the trace vectors (assay-traces-1)",
     set_traces},
    {"--waivers", "FILE", "known failures: JSON [{case, issue, reason, expires}]", set_waivers},
    {"--log", "FILE", "event log, a JSON object a line, written case by case", set_log},
    {"--iut-log", "FILE", "what the implementation writes on standard error", set_iut_log},
    {"--json", "FILE", "the whole report for programs", set_json},
    {"--junit", "FILE", "the report for CI", set_junit},
    {"--html", "FILE", "the report for a browser, one file", set_html},
    {"--list", NULL, "names the cases and runs none", set_list},
    {"--quiet", NULL, "prints the last line of the report alone", set_quiet},
    {"--help", NULL, "this text", set_help},
};
enum { OPTIONS = sizeof options / sizeof *options };

const char *option_value(int argc, char **argv, int *i, const char *name)
{
    const size_t length = strlen(name);
    if (strncmp(argv[*i], name, length) != 0) return NULL;
    if (argv[*i][length] == '=') return argv[*i] + length + 1;
    if (argv[*i][length] != '\0') return NULL;
    *i += 1;
    return *i < argc ? argv[*i] : "";
}

bool option_help(int argc, char **argv)
{
    return argc == 2 && strcmp(argv[1], "--help") == 0;
}

int option_usage(int argc, char **argv, const char *text)
{
    const bool asked = option_help(argc, argv);
    fputs(text, asked ? stdout : stderr);
    return asked ? EXIT_CONFORMANT : EXIT_USAGE;
}

/* Handles argv[*i], and its value at argv[*i + 1] when it stands apart. */
static bool parse_one(command_line *c, int argc, char **argv, int *i, char *why,
                      size_t why_size)
{
    const char *given = argv[*i];
    for (int k = 0; k < OPTIONS; k++) {
        const option *o = &options[k];
        const char *value = o->value                      ? option_value(argc, argv, i, o->name)
                            : strcmp(given, o->name) == 0 ? ""
                                                          : NULL;
        if (!value) continue;
        if (*i < argc && o->set(c, value)) return true;
        snprintf(why, why_size, "%s %s: bad %s\n  %s %-9s %s", given,
                 *i < argc && value != given ? value : "(nothing)", o->value ? o->value : "use",
                 o->name, o->value ? o->value : "", o->help);
        return false;
    }
    snprintf(why, why_size, "unknown option %s; `assay run --help` lists them", given);
    return false;
}

bool options_parse(command_line *c, int argc, char **argv, char *why, size_t why_size)
{
    memset(c, 0, sizeof *c);
    c->run.iut = "ref";
    c->run.seed = 1;
    c->run.only = c->only;
    c->run.claims = c->claims;
    for (int i = 1; i < argc; i++) {
        if (!parse_one(c, argc, argv, &i, why, why_size)) return false;
    }
    const bool exec = kind_of(c->run.iut) == KIND_EXEC;
    if (!c->level_given) c->run.level = exec ? LEVEL_SMOKE : LEVEL_FULL;
    if (exec && c->run.iut_options && *c->run.iut_options) {
        snprintf(why, why_size,
                 "--iut-options with exec: put the options into the command itself, exec:CMD");
        return false;
    }
    if (c->run.traces && kind_of(c->run.iut) == KIND_TRACES) {
        snprintf(why, why_size,
                 "--traces with --iut traces:FILE: one file of traces is enough");
        return false;
    }
    return true;
}

void options_help(FILE *out)
{
    fputs("usage: assay run [options]\n\n"
          "Tests an implementation of speculative decoding against the specification.\n\n",
          out);
    for (int k = 0; k < OPTIONS; k++) {
        fprintf(out, "  %-14s %-8s %s\n", options[k].name,
                options[k].value ? options[k].value : "", options[k].help);
    }
    fputs("\nexit code: 0 conformant, 1 not conformant, 2 usage, 3 fault of the suite or its "
          "data,\n4 undecided (inconclusive, unavailable, stopped, or a required layer not "
          "judged)\n",
          out);
}

/* -- Folders ----------------------------------------------------------------------------- */

void share_folder(const char *part, char *path, size_t size)
{
    char name[100];
    snprintf(name, sizeof name, "share/assay/%s", part);
    beside_program(name, path, size);
}
