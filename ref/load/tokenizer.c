/* tokenizer.c - see tokenizer.h. The ids of a tokenizer.json stand in `model.vocab`, an object
 * of ids by token or a list of [token, score] in the order of their ids, and in `added_tokens`,
 * which has the last word. */
#include "ref/load/tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "ref/load/file.h"
#include "ref/load/json.h"

enum { MOST = 1 << 28 };

typedef struct {
    json_t *file; /* which owns the texts */
    int32_t V;
    const char **text; /* [V], NULL: the id has no token */
} tokens;

static void place(tokens *t, int64_t id, const char *text)
{
    if (id >= 0 && id < t->V) t->text[id] = text;
}

static bool from_object(as_json *r, tokens *t, const json_t *vocab)
{
    const char *text;
    json_t *id;
    json_object_foreach((json_t *)vocab, text, id)
    {
        if (!json_is_integer(id)) return as_json_bad(r, "vocab", "ids must be integers");
        place(t, json_integer_value(id), text);
    }
    return true;
}

static bool from_list(as_json *r, tokens *t, const json_t *vocab)
{
    for (size_t i = 0; i < json_array_size(vocab); i++) {
        const json_t *text = json_array_get(json_array_get(vocab, i), 0);
        if (!json_is_string(text))
            return as_json_bad(r, "vocab", "entries must be lists of a text and a score");
        place(t, (int64_t)i, json_string_value(text));
    }
    return true;
}

static bool read_vocab(as_json *r, tokens *t)
{
    const json_t *model = json_object_get(t->file, "model"),
                 *vocab = json_object_get(model, "vocab");
    const size_t mark = as_json_enter_object(r, "model");
    const bool good = json_is_object(vocab) ? from_object(r, t, vocab)
                      : json_is_array(vocab)
                          ? from_list(r, t, vocab)
                          : as_json_bad(r, "vocab", "must be an object or a list");
    as_json_leave(r, mark);
    return good;
}

static bool read_added(as_json *r, tokens *t)
{
    const json_t *added = json_object_get(t->file, "added_tokens");
    bool good = !added || json_is_null(added) ||
                as_json_list(r, added, "added_tokens", 0, (size_t)INT32_MAX);
    for (size_t i = 0; good && i < json_array_size(added); i++) {
        const size_t mark = as_json_enter(r, "added_tokens", i);
        const json_t *one = json_array_get(added, i);
        const char *text;
        int64_t id;
        good = as_json_integer(r, one, "id", 0, INT32_MAX, &id) &&
               as_json_text(r, one, "content", &text);
        if (good) place(t, id, text);
        as_json_leave(r, mark);
    }
    return good;
}

static as_status read_tokens(const char *path, tokens *t, as_error *e)
{
    as_json r = as_json_into(path, e);
    as_file file;
    as_status s = as_file_map(path, &file, e);
    if (s != AS_OK) return s;
    if (file.size > MOST)
        as_json_bad(&r, "", "is larger than 256 MiB");
    else
        t->file = as_json_parse(&r, file.bytes, file.size, JSON_OBJECT);
    as_file_unmap(&file);
    if (t->file && read_vocab(&r, t)) read_added(&r, t);
    return r.status;
}

static const char *shown(const char *text, as_shown *room)
{
    if (!text) return "no token";
    *room = as_show(text);
    return room->text;
}

static as_status compare(const tokens *t, const tokens *d, as_error *e)
{
    as_shown room[2];
    for (int32_t i = 0; i < t->V; i++) {
        const char *a = t->text[i], *b = d->text[i];
        if (a == b || (a && b && !strcmp(a, b))) continue;
        return as_fail(
            e, AS_BAD_INPUT,
            "token %d is '%s' in the target's tokenizer.json, '%s' in the draft model's; the "
            "draft model must have the target's tokenizer",
            (int)i, shown(a, &room[0]), shown(b, &room[1]));
    }
    return AS_OK;
}

as_status as_tokenizers_match(const char *target, const char *draft, int32_t V, as_error *e)
{
    const char *const folder[2] = {target, draft};
    char path[2][AS_MAX_PATH];
    tokens t[2] = {{.V = V}, {.V = V}};
    as_status s = AS_OK;
    for (int i = 0; i < 2 && s == AS_OK; i++)
        s = as_file_join(folder[i], "tokenizer.json", path[i], e);
    if (s != AS_OK || !as_file_exists(path[0]) || !as_file_exists(path[1])) return s;
    for (int i = 0; i < 2 && s == AS_OK; i++) {
        t[i].text = calloc((size_t)V, sizeof *t[i].text);
        s = t[i].text ? read_tokens(path[i], &t[i], e)
                      : as_fail(e, AS_NO_MEMORY, "no memory for the tokens of a model");
    }
    if (s == AS_OK) s = compare(&t[0], &t[1], e);
    for (int i = 0; i < 2; i++) {
        json_decref(t[i].file);
        free(t[i].text);
    }
    return s;
}
