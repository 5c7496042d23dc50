/* Names, replay lines and printable text: what every report shares. Clauses STA-01, VER-05. */
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include "conformance/suite/layers.h"
#include "conformance/suite/run.h"

const char *state_name(check_state state)
{
    static const char *const name[STATE_COUNT] = {
        "PASS",    "ACCEPTABLE", "WAIVED", "NOT_CLAIMED", "UNAVAILABLE", "INCONCLUSIVE",
        "STOPPED", "FAIL",       "CRASH",  "TIMEOUT",     "ERROR"};
    return (unsigned)state < STATE_COUNT ? name[state] : "ERROR";
}

const char *level_name(check_level level)
{
    static const char *const name[] = {"smoke", "full", "deep"};
    return name[level];
}

const char *again_name(again_word word)
{
    static const char *const names[] = {NULL, "unsaid", "state", "arithmetic"};
    return names[word];
}

const char *verdict_name(const run_report *report)
{
    switch (report->exit_code) {
    case EXIT_CONFORMANT:
        return report->greedy_only ? "CONFORMANT (greedy tokens only)" : "CONFORMANT";
    case EXIT_NOT_CONFORMANT:
        return "NOT CONFORMANT";
    case EXIT_USAGE:
        return "USAGE";
    case EXIT_UNDECIDED:
        return report->stopped ? "STOPPED" : "UNDECIDED";
    default:
        return "ERROR";
    }
}

bool state_stands(check_state state)
{
    return state == STATE_PASS || state == STATE_ACCEPTABLE || state == STATE_NOT_CLAIMED;
}

/* -- Replay ------------------------------------------------------------------------------ */

typedef struct {
    char *at, *end;
} writer;

static void put(writer *w, const char *text)
{
    while (*text && w->at < w->end) *w->at++ = *text++;
    *w->at = '\0';
}

/* A word in single quotes, safe for a POSIX shell; in a glob, letters stand for themselves. */
static void put_quoted(writer *w, const char *text, bool as_glob)
{
    put(w, "'");
    for (; *text; text++) {
        if (*text == '\'') {
            put(w, "'\\''");
            continue;
        }
        if (as_glob && strchr("*?[]\\", *text)) put(w, "\\");
        put(w, (const char[]){*text, '\0'});
    }
    put(w, "'");
}

/* A program's path, quoted only if a shell would take it apart. */
static void put_program(writer *w, const char *path)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./+-";
    if (path[strspn(path, plain)] == '\0') {
        put(w, path);
    } else {
        put_quoted(w, path, false);
    }
}

void program_name(const run_options *o, char *name, size_t size)
{
    writer w = {name, name + size - 1};
    put_program(&w, o->program && *o->program ? o->program : "assay");
}

static void put_option(writer *w, const char *option, const char *value)
{
    if (!value || !*value) return;
    put(w, option);
    put_quoted(w, value, false);
}

static void put_number(writer *w, const char *format, double value)
{
    char text[64];
    snprintf(text, sizeof text, format, value);
    put(w, text);
}

static void put_globs(writer *w, const char *option, const char *const *globs, int32_t count)
{
    for (int32_t i = 0; i < count; i++) put_option(w, option, globs[i]);
}

/* What every command that repeats something of this run starts with ... */
static writer put_start(const run_options *o, char *line, size_t size)
{
    program_name(o, line, size);
    writer w = {line + strlen(line), line + size - 1};
    put(&w, " run");
    put_option(&w, " --iut ", o->iut ? o->iut : "ref");
    put_option(&w, " --iut-options ", o->iut_options);
    put_option(&w, " --traces ", o->traces);
    return w;
}

/* ... and, after the selection, ends with. */
static void put_settings(writer *w, const run_options *o)
{
    char seed[32];
    put(w, " --level ");
    put(w, level_name(o->level));
    snprintf(seed, sizeof seed, " --seed %llu", (unsigned long long)o->seed);
    put(w, seed);
    if (o->samples > 0) put_number(w, " --samples %.17g", (double)o->samples);
    if (o->alpha > 0) put_number(w, " --alpha %.17g", o->alpha);
    if (o->timeout > 0) put_number(w, " --timeout %.17g", o->timeout);
    if (o->vectors_given) put_option(w, " --vectors ", o->vectors);
}

void replay_line(const run_report *report, const run_case *c, char *line, size_t size)
{
    writer w = put_start(report->options, line, size);
    put(&w, " --only ");
    put_quoted(&w, c->plan->id, true);
    put_settings(&w, report->options);
}

void run_line(const run_report *report, char *line, size_t size)
{
    const run_options *o = report->options;
    writer w = put_start(o, line, size);
    put_globs(&w, " --only ", o->only, o->only_count);
    put_globs(&w, " --claims ", o->claims, o->claims_count);
    for (int i = 0; i < LAYERS; i++)
        if (o->required >> i & 1) put_option(&w, " --require ", layer_name((layer)i));
    put_settings(&w, o);
    put_option(&w, " --waivers ", o->waiver_file);
}

/* -- Printable text ---------------------------------------------------------------------- */

/* Bytes of the UTF-8 character at s, 0 if it is none or one that XML 1.0 cannot hold. */
static int utf8_length(const unsigned char *s)
{
    if (s[0] < 0x80) return s[0] >= 0x20 && s[0] != 0x7f;
    const int n = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
                  : (s[0] & 0xf0) == 0xe0       ? 3
                  : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                                : 0;
    for (int i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) return 0; /* the terminator ends this too */
    }
    const uint32_t second = n > 1 ? (uint32_t)s[0] << 8 | s[1] : 0;
    if (n == 3 && (second < 0xe0a0 || (second >= 0xeda0 && second < 0xee00))) return 0;
    if (n == 3 && s[0] == 0xef && s[1] == 0xbf && s[2] >= 0xbe) return 0;
    if (n == 4 && (second < 0xf090 || second >= 0xf490)) return 0;
    return n;
}

void make_printable(char *text)
{
    unsigned char *s = (unsigned char *)text;
    while (*s) {
        const int n = utf8_length(s);
        if (!n) *s = '?';
        s += n ? n : 1;
    }
}
