/* The command line of `assay run`: the words of the input are its lines. What is accepted is in
 * range, what is refused says why. */
#include <math.h>
#include <string.h>

#include "conformance/cli/arguments/command_line.h"
#include "tests/fuzz/fuzz.h"

enum { WORDS = 80 };

/* Cuts the text at line ends; each word is a copy of its own, so that a sanitizer sees its end.
 */
static int split(const uint8_t *data, size_t size, char **argv)
{
    int argc = 0;
    for (size_t at = 0; at < size && argc < WORDS;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        const size_t length = end ? (size_t)(end - data) - at : size - at;
        char *word = calloc(length + 1, 1);
        MUST(word);
        memcpy(word, data + at, length);
        argv[argc++] = word;
        at += length + 1;
    }
    return argc;
}

static void check_accepted(const command_line *c)
{
    const run_options *o = &c->run;
    MUST(o->iut && *o->iut);
    MUST(o->level >= LEVEL_SMOKE && o->level <= LEVEL_DEEP);
    MUST(o->alpha >= 0 && o->alpha < 1 && o->timeout >= 0 && o->timeout <= 86400);
    MUST(o->jobs >= 0 && o->jobs <= 256);
    MUST(o->only_count >= 0 && o->only_count <= OPTION_GLOBS);
    MUST(o->claims_count >= 0 && o->claims_count <= OPTION_GLOBS);
    for (int32_t i = 0; i < o->only_count; i++) MUST(o->only[i]);
    for (int32_t i = 0; i < o->claims_count; i++) MUST(o->claims[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    command_line c;
    char *argv[WORDS + 2] = {0}, why[900] = "", name[] = "run";
    argv[0] = name;
    const int argc = 1 + split(data, size, argv + 1);
    const options_result r = command_line_parse(&c, argc, argv, why, sizeof why);
    if (r == OPTIONS_READ) check_accepted(&c);
    MUST(*why ? r == OPTIONS_WRONG : r != OPTIONS_WRONG);
    for (int i = 1; i < argc; i++) free(argv[i]);
    return 0;
}
