/* See model.h. */
#include "conformance/cli/arguments/model.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cli/arguments/options.h"

enum { BYTES = 256, BYTE_BOS = 256, BYTE_EOS = 257, BYTE_VOCABULARY = 258 };

bool model_load(model *m, const char *folder, const char *part, const as_llama_options *options)
{
    char path[1100], share[1024];
    as_error e;
    share_folder("vectors", share, sizeof share);
    snprintf(path, sizeof path, "%s/models/%s", share, part);
    *m = (model){.folder = folder};
    if (as_load_model(folder ? folder : path, options, &m->lm, &m->info, &e) == AS_OK)
        return true;
    fprintf(stderr, "assay: %s model: %s\n", part, e.text);
    return false;
}

void model_free(model *m)
{
    as_lm_free(m->lm);
}

bool model_speaks_bytes(const model *m)
{
    const as_model_info *i = &m->info;
    return i->config.V == BYTE_VOCABULARY && i->bos == BYTE_BOS && i->eos_count == 1 &&
           i->eos[0] == BYTE_EOS;
}

bool tokens_of_text(const model *m, const char *text, size_t length, token_list *list)
{
    list->n = 0;
    list->token = malloc((length + 1) * sizeof *list->token);
    if (!list->token) return false;
    if (m->info.bos >= 0) list->token[list->n++] = m->info.bos;
    for (size_t i = 0; i < length; i++) list->token[list->n++] = (unsigned char)text[i];
    return true;
}

static const char *skip_separators(const char *s)
{
    while (*s == ',' || isspace((unsigned char)*s)) s++;
    return s;
}

bool tokens_of_ids(const char *text, const char *source, int32_t V, token_list *list, char *why,
                   size_t why_size)
{
    *list = (token_list){malloc((strlen(text) / 2 + 1) * sizeof *list->token), 0};
    if (!list->token) return snprintf(why, why_size, "out of memory"), false;
    for (const char *s = skip_separators(text); *s; s = skip_separators(s)) {
        char *end;
        errno = 0;
        const long id = strtol(s, &end, 10);
        const bool apart = *end == '\0' || *end == ',' || isspace((unsigned char)*end);
        if (errno || end == s || !apart || id < 0 || id >= V) {
            snprintf(why, why_size, "%s: token %d is \"%.20s\"; it must be an id from 0 to %d",
                     source, (int)list->n, s, (int)V - 1);
            free(list->token);
            *list = (token_list){NULL, 0};
            return false;
        }
        list->token[list->n++] = (int32_t)id;
        s = end;
    }
    return true;
}

char *read_whole(const char *file, size_t *length)
{
    FILE *f = fopen(file, "rb");
    char *text = NULL;
    size_t size = 0, used = 0;
    while (f && !feof(f) && !ferror(f)) {
        char *grown = used + 1 < size ? text : realloc(text, size = size ? 2 * size : 4096);
        if (!grown) break;
        text = grown;
        used += fread(text + used, 1, size - used - 1, f);
    }
    const bool whole = f && feof(f) && !ferror(f);
    const int saved = errno;
    if (f) fclose(f);
    if (!whole) {
        free(text);
        errno = saved ? saved : EIO;
        return NULL;
    }
    text[used] = '\0';
    *length = used;
    return text;
}

void print_token(FILE *out, const model *m, int32_t token)
{
    if (!model_speaks_bytes(m))
        fprintf(out, "%d ", (int)token);
    else if (token < BYTES)
        fputc(token, out);
}
