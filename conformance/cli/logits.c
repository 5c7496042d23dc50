/* `assay logits`: the canonical logits of every position of one token sequence, as raw
 * binary32. For whoever wants to hold a kernel of their own against the specified bits. */
#include "conformance/cli/logits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cli/arguments/model.h"
#include "conformance/cli/arguments/options.h"

enum { ROWS = 64 };

typedef struct {
    const char *model, *tokens, *output;
} arguments;

#define AT(field) .at = offsetof(arguments, field)
static const option options[] = {
    {"--tokens", "FILE", "decimal ids separated by white space or commas", OPTION_TEXT,
     AT(tokens), .needed = true},
    {"--output", "FILE", "what is written", OPTION_TEXT, AT(output), .needed = true},
    {"--model", "FOLDER", "a Hugging Face folder", OPTION_TEXT, AT(model),
     .otherwise = "the trained target that came with assay"},
};
#undef AT

static const option_table table = {
    "logits",
    "usage: assay logits --tokens FILE --output FILE [--model FOLDER]\n\n"
    "Writes the logits after each token of a sequence: little-endian binary32, [tokens][V].\n",
    options, 3, NULL};

/* Evaluates and commits the sequence in chunks; the bits do not depend on how (TREE-06). */
static as_status write_logits(as_lm *lm, const token_list *list, FILE *out, as_error *e)
{
    as_row row[ROWS];
    int32_t index[ROWS], sequence;
    float *logits = malloc(ROWS * (size_t)lm->V * sizeof *logits);
    if (!logits) return as_fail(e, AS_NO_MEMORY, "no memory for %d rows of logits", ROWS);
    as_status s = as_lm_open(lm, &sequence, e);
    for (int32_t at = 0; at < list->n && s == AS_OK;) {
        const int32_t n = list->n - at < ROWS ? list->n - at : ROWS;
        for (int32_t i = 0; i < n; i++) {
            row[i] = (as_row){list->token[at + i], i - 1};
            index[i] = i;
        }
        const as_forward f = {sequence, n, n, row, index, logits};
        s = as_lm_forward(lm, &f, 1, e);
        if (s == AS_OK) s = as_lm_commit(lm, sequence, index, n, e);
        if (s == AS_OK) fwrite(logits, sizeof *logits * (size_t)lm->V, (size_t)n, out);
        at += n;
    }
    free(logits);
    return s;
}

static int run(const arguments *a, const char *text)
{
    const as_llama_options capacity = {.rows = ROWS};
    model m;
    token_list list;
    char why[200];
    as_error e;
    if (!model_load(&m, a->model, "target", &capacity)) return EXIT_USAGE;
    if (!tokens_of_ids(text, a->tokens, m.info.config.V, &list, why, sizeof why)) {
        fprintf(stderr, "assay: %s\n", why);
        model_free(&m);
        return EXIT_USAGE;
    }
    FILE *out = fopen(a->output, "wb");
    const as_status s = out ? write_logits(m.lm, &list, out, &e) : AS_OK;
    const bool written = out && !(ferror(out) | fclose(out));
    if (s != AS_OK)
        fprintf(stderr, "assay: %s\n", e.text);
    else if (!written)
        fprintf(stderr, "assay: cannot write %s: %s\n", a->output, strerror(errno));
    free(list.token);
    model_free(&m);
    return s == AS_OK && written ? EXIT_SUCCESS : EXIT_USAGE;
}

int logits_main(int argc, char **argv)
{
    arguments a = {0};
    size_t length;
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    char *text = read_whole(a.tokens, &length);
    if (!text) {
        options_refuse(&table, "cannot read %s: %s", a.tokens, strerror(errno));
        return EXIT_USAGE;
    }
    code = run(&a, text);
    free(text);
    return code;
}
