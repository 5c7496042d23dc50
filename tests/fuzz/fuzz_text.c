/* Small texts of many origins; the first byte chooses the reader. Names of mutants, options of
 * the reference, levels (ASSAY_LEVEL), numbers of options; an IUT's text made printable for the
 * reports; and the replay line (VER-05), which a shell must read as the very words that went
 * into it. */
#include <fnmatch.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/subjects/mutants/mutants.h"
#include "conformance/subjects/ref/subject.h"
#include "conformance/wire/load.h"
#include "ref/num/rows.h"
#include "tests/fuzz/fuzz.h"

/* A spec of the kinds that load no file. A mutant's name has one meaning. */
static void read_spec(const char *text)
{
    char why[400] = "", spec[4200];
    iut_api table;
    iut_status status;
    snprintf(spec, sizeof spec, "mutant:%s", text);
    if (load_spec(spec, &table, &status, why, sizeof why))
        MUST(mutant_find(text) && table.create && table.claims);
    else
        MUST(*why && !mutant_find(text) && status == IUT_BAD_INPUT);
    if (strncmp(text, "plugin:", 7) == 0) return;
    if (!load_spec(text, &table, &status, why, sizeof why)) MUST(*why);
}

static void read_ref_options(const char *text)
{
    char why[400] = "";
    iut_claims claims = {.size = sizeof claims};
    const iut_api *api = ref_api();
    iut *x = api->create(text, why, sizeof why);
    MUST(x || *why);
    if (!x) return;
    MUST(api->claims(x, &claims) == IUT_OK && claims.rule && claims.uniforms && claims.input);
    api->destroy(x);
}

static void read_level(const char *text)
{
    as_error e = {0};
    if (as_set_level(text, &e) != AS_OK)
        MUST(*e.text);
    else
        MUST(strcmp(text, "auto") == 0 || strcmp(as_rows()->name, text) == 0);
    as_set_level("auto", NULL);
}

static void read_numbers(const char *text)
{
    uint64_t n;
    double x;
    check_level level;
    char again[40];
    if (option_uint64(text, &n) && strncmp(text, "0x", 2) != 0 && *text != '0') {
        snprintf(again, sizeof again, "%llu", (unsigned long long)n);
        MUST(strcmp(again, text) == 0);
    }
    if (option_double(text, &x)) MUST(isfinite(x));
    if (option_level(text, &level)) MUST(strcmp(level_name(level), text) == 0);
}

/* jansson knows UTF-8 independently; XML 1.0 has no control characters. */
static void make_text(char *text)
{
    const size_t length = strlen(text);
    make_printable(text);
    MUST(strlen(text) == length);
    json_t *string = json_string(text);
    MUST(string);
    json_decref(string);
    for (; *text; text++) MUST((unsigned char)*text >= ' ' && *text != 0x7f);
}

/* Reads a word as a POSIX shell does: quotes and, outside of them, backslashes. */
static const char *shell_word(const char *line, char *word)
{
    bool quoted = false;
    for (; *line && (quoted || *line != ' '); line++) {
        if (*line == '\'')
            quoted = !quoted;
        else if (!quoted && *line == '\\' && line[1])
            *word++ = *++line;
        else
            *word++ = *line;
    }
    MUST(!quoted);
    *word = '\0';
    return *line ? line + 1 : line;
}

static void check_replay(const char *text)
{
    static char line[40000], word[40000];
    const run_options options = {.iut = *text ? text : "ref", .iut_options = text, .seed = 7};
    const run_report report = {.options = &options};
    check_case plan = {0};
    snprintf(plan.id, sizeof plan.id, "%s", text);
    const run_case c = {.plan = &plan};
    const char *const due[] = {"assay", "run", "--iut", options.iut, "--iut-options", text};
    replay_line(&report, &c, line, sizeof line);
    const char *at = line;
    for (size_t i = 0; i < (*text ? 6 : 4); i++) {
        at = shell_word(at, word);
        MUST(strcmp(word, due[i]) == 0);
    }
    at = shell_word(shell_word(at, word), word);
    MUST(fnmatch(word, plan.id, 0) == 0);
    char tiny[9];
    replay_line(&report, &c, tiny, sizeof tiny);
    MUST(strcmp(tiny, "assay ru") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    if (size < 1 || size > 4096) return 0;
    if (!nowhere) stderr = nowhere = fopen("/dev/null", "w"); /* the lists of names */
    MUST(nowhere);
    char *text = calloc(size, 1); /* the text and its end */
    MUST(text);
    memcpy(text, data + 1, size - 1);
    switch (data[0] % 6) {
    case 0:
        read_spec(text);
        break;
    case 1:
        read_ref_options(text);
        break;
    case 2:
        read_level(text);
        break;
    case 3:
        read_numbers(text);
        break;
    case 4:
        make_text(text);
        break;
    default:
        check_replay(text);
    }
    free(text);
    return 0;
}
