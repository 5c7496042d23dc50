/* shards.c - see shards.h. */
#include "ref/load/shards.h"

#include <stdlib.h>
#include <string.h>
#include "ref/load/json.h"

enum { MAX_SHARDS = 4096 };

/* ---- The index. -------------------------------------------------------------------- */

/* A file of the folder itself: nothing that leads elsewhere. */
static int is_plain(const char *name)
{
    return name && *name && *name != '.' && !strpbrk(name, "/\\") &&
           strlen(name) < sizeof((as_shard *)0)->name;
}

json_t *as_index_parse(const void *text, size_t size, const char *file, as_error *e)
{
    as_json r = as_json_into(file, e);
    json_t *root = as_json_parse(&r, text, size, JSON_OBJECT);
    json_t *map = json_object_get(root, "weight_map");
    const char *tensor;
    json_t *name;
    if (!json_object_size(map))
        as_json_bad(&r, "weight_map", "must be an object of files by tensor");
    json_object_foreach(map, tensor, name) if (!is_plain(json_string_value(name)))
        as_json_bad(&r, "", "tensor %s: the name of its file must be plain, without a path",
                    as_show(tensor).text);
    if (r.status == AS_OK) json_incref(map);
    json_decref(root);
    return r.status == AS_OK ? map : NULL;
}

/* ---- Opening. ---------------------------------------------------------------------- */

static as_shard *find_shard(const as_shards *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->shard[i].name, name) == 0) return &s->shard[i];
    return NULL;
}

/* Maps one more file and reads its header. */
static as_status add(const char *folder, const char *name, as_shards *s, as_error *e)
{
    char path[AS_MAX_PATH];
    as_status status = as_file_join(folder, name, path, e);
    if (status != AS_OK) return status;
    if (s->count == MAX_SHARDS)
        return as_fail(e, AS_LIMIT, "%s: more than %d shards", as_show_path(folder).text,
                       MAX_SHARDS);
    as_shard *grown = realloc(s->shard, (s->count + 1) * sizeof *grown);
    if (!grown) return as_fail(e, AS_NO_MEMORY, "no memory for a list of shards");
    s->shard = grown;
    as_shard *new = &s->shard[s->count++];
    *new = (as_shard){.name = ""};
    memcpy(new->name, name, strlen(name) + 1); /* is_plain bounds it */
    status = as_file_map(path, &new->file, e);
    if (status != AS_OK) return status;
    return as_safetensors_parse(new->file.bytes, new->file.size, path, &new->tensors, e);
}

/* Every tensor of the index is in its shard, and the shards hold no other. */
static as_status compare(const json_t *map, const as_shards *s, const char *index, as_error *e)
{
    const char *tensor;
    json_t *name;

    json_object_foreach((json_t *)map, tensor, name)
    {
        const as_shard *shard = find_shard(s, json_string_value(name));
        if (!as_safetensors_find(&shard->tensors, tensor))
            return as_fail(e, AS_BAD_INPUT, "%s: tensor %s is not in %s",
                           as_show_path(index).text, as_show(tensor).text,
                           as_show(shard->name).text);
    }
    for (size_t i = 0; i < s->count; i++)
        for (size_t t = 0; t < s->shard[i].tensors.count; t++) {
            const char *has = s->shard[i].tensors.tensor[t].name;
            const char *due = json_string_value(json_object_get(map, has));
            if (!due || strcmp(due, s->shard[i].name) != 0)
                return as_fail(e, AS_BAD_INPUT, "%s does not say that %s is in %s",
                               as_show_path(index).text, as_show(has).text,
                               as_show(s->shard[i].name).text);
        }
    return AS_OK;
}

static as_status open_index(const char *folder, const char *path, as_shards *s, as_error *e)
{
    as_file file;
    const char *tensor;
    json_t *name;
    as_status status = as_file_map(path, &file, e);
    if (status != AS_OK) return status;
    json_t *map = as_index_parse(file.bytes, file.size, path, e);
    as_file_unmap(&file);
    if (!map) return AS_BAD_INPUT;
    json_object_foreach(map, tensor, name)
    {
        const char *shard = json_string_value(name);
        if (status == AS_OK && !find_shard(s, shard)) status = add(folder, shard, s, e);
    }
    if (status == AS_OK) status = compare(map, s, path, e);
    json_decref(map);
    return status;
}

as_status as_shards_open(const char *folder, as_shards *s, as_error *e)
{
    static const char single[] = "model.safetensors", index[] = "model.safetensors.index.json";
    char path[AS_MAX_PATH];
    *s = (as_shards){0, NULL};
    as_status status = as_file_join(folder, single, path, e);
    if (status != AS_OK) return status;
    if (as_file_exists(path)) {
        status = add(folder, single, s, e);
    } else {
        status = as_file_join(folder, index, path, e);
        if (status == AS_OK && !as_file_exists(path))
            status = as_fail(e, AS_BAD_INPUT, "%s has neither %s nor %s",
                             as_show_path(folder).text, single, index);
        if (status == AS_OK) status = open_index(folder, path, s, e);
    }
    if (status != AS_OK) as_shards_close(s);
    return status;
}

void as_shards_close(as_shards *s)
{
    for (size_t i = 0; i < s->count; i++) {
        as_safetensors_free(&s->shard[i].tensors);
        as_file_unmap(&s->shard[i].file);
    }
    free(s->shard);
    *s = (as_shards){0, NULL};
}

as_st_tensor *as_shards_find(const as_shards *s, const char *name, const void **data)
{
    for (size_t i = 0; i < s->count; i++) {
        as_st_tensor *t = as_safetensors_find(&s->shard[i].tensors, name);
        if (!t) continue;
        *data = s->shard[i].tensors.data + t->begin;
        return t;
    }
    return NULL;
}
