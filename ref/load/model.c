/* model.c - see model.h. */
#include "ref/load/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ref/load/config.h"
#include "ref/load/json.h"
#include "ref/load/shards.h"
#include "ref/num/environment.h"

/* ---- The texts of the folder. ------------------------------------------------------ */

typedef as_status parser(const void *, size_t, const char *, as_model_info *, as_error *);

static as_status read_text(const char *folder, const char *name, int optional, parser *parse,
                           as_model_info *info, as_error *e)
{
    char path[AS_MAX_PATH];
    as_file file;
    as_status s = as_file_join(folder, name, path, e);
    if (s != AS_OK || (optional && !as_file_exists(path))) return s;
    s = as_file_map(path, &file, e);
    if (s == AS_OK) s = parse(file.bytes, file.size, path, info, e);
    as_file_unmap(&file);
    return s;
}

/* ---- The tensors. ------------------------------------------------------------------ */

/* One reading of all tensors, with one error, as in json.h. */
typedef struct {
    const char *folder;
    as_model_files *files;
    as_model_info *info;
    as_status status;
    as_error *e;
} reading;

static int storage_of(const char *dtype, as_storage *storage)
{
    static const char *const name[] = {[AS_F32] = "F32", [AS_F16] = "F16", [AS_BF16] = "BF16"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(dtype, name[i]) != 0) continue;
        *storage = (as_storage)i;
        return 1;
    }
    return 0;
}

static void shape_text(const as_st_tensor *t, char *text, size_t size)
{
    size_t n = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < t->rank && n < size; i++)
        n +=
            (size_t)snprintf(text + n, size - n, i ? ", %lld" : "%lld", (long long)t->shape[i]);
    if (n < size) snprintf(text + n, size - n, "]");
}

/* The tensor has been looked for; without it, an error. */
static int is_there(reading *r, const as_st_tensor *t, const char *name)
{
    if (t) return 1;
    r->status =
        as_fail(r->e, AS_BAD_INPUT, "%s: tensor %s is missing", as_show_path(r->folder).text, name);
    return 0;
}

static void count(reading *r, as_st_tensor *t)
{
    t->used = 1;
    r->info->parameters += t->elements;
    r->info->bytes += (int64_t)(t->end - t->begin);
}

/* The tensor of that name, [rows][columns], or [columns] with rows = 0. */
static as_tensor take(reading *r, int64_t rows, int64_t columns, const char *format, ...)
    AS_PRINTF(4, 5);

static as_tensor take(reading *r, int64_t rows, int64_t columns, const char *format, ...)
{
    char name[96], has[64];
    as_tensor tensor = {NULL, AS_F32};
    va_list arguments;
    if (r->status != AS_OK) return tensor;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    as_st_tensor *t = as_shards_find(&r->files->shards, name, &tensor.data);
    const as_shown folder = as_show_path(r->folder);
    if (!is_there(r, t, name)) return tensor;
    shape_text(t, has, sizeof has);
    const int fits = rows ? t->rank == 2 && t->shape[0] == rows && t->shape[1] == columns
                          : t->rank == 1 && t->shape[0] == columns;
    if (!storage_of(t->dtype, &tensor.storage))
        r->status = as_fail(r->e, AS_BAD_INPUT,
                            "%s: tensor %s has dtype %s; F32, F16 and BF16 "
                            "are supported",
                            folder.text, name, t->dtype);
    else if (!fits && rows)
        r->status = as_fail(r->e, AS_BAD_INPUT,
                            "%s: tensor %s has shape %s; by config.json it "
                            "is [%lld, %lld]",
                            folder.text, name, has, (long long)rows, (long long)columns);
    else if (!fits)
        r->status = as_fail(r->e, AS_BAD_INPUT,
                            "%s: tensor %s has shape %s; by config.json it "
                            "is [%lld]",
                            folder.text, name, has, (long long)columns);
    count(r, t);
    return tensor;
}

/* VOC-03: the map of a draft vocabulary; its entries are as_llama's to judge. */
static const void *take_map(reading *r)
{
    const void *data = NULL;
    char has[64];
    if (r->status != AS_OK) return NULL;
    as_st_tensor *t = as_shards_find(&r->files->shards, "d2t", &data);
    const long long n = r->info->config.draft_V;
    if (!is_there(r, t, "d2t")) return NULL;
    shape_text(t, has, sizeof has);
    if (strcmp(t->dtype, "I64") != 0 || t->rank != 1 || t->shape[0] != n)
        r->status = as_fail(r->e, AS_BAD_INPUT, "%s: tensor d2t is %s %s; by draft_vocab_size it is I64 [%lld]",
                            as_show_path(r->folder).text, t->dtype, has, n);
    count(r, t);
    return data;
}

static void take_layer(reading *r, int i, as_llama_layer *l)
{
    const as_llama_config *c = &r->info->config;
    const int64_t H = c->hidden, q = (int64_t)c->heads * c->head_dim;
    const int64_t kv = (int64_t)c->kv_heads * c->head_dim;
    l->norm_attention = take(r, 0, H, "model.layers.%d.input_layernorm.weight", i);
    l->norm_mlp = take(r, 0, H, "model.layers.%d.post_attention_layernorm.weight", i);
    l->q = take(r, q, H, "model.layers.%d.self_attn.q_proj.weight", i);
    l->k = take(r, kv, H, "model.layers.%d.self_attn.k_proj.weight", i);
    l->v = take(r, kv, H, "model.layers.%d.self_attn.v_proj.weight", i);
    l->o = take(r, H, q, "model.layers.%d.self_attn.o_proj.weight", i);
    if (c->qkv_bias) {
        l->q_bias = take(r, 0, q, "model.layers.%d.self_attn.q_proj.bias", i);
        l->k_bias = take(r, 0, kv, "model.layers.%d.self_attn.k_proj.bias", i);
        l->v_bias = take(r, 0, kv, "model.layers.%d.self_attn.v_proj.bias", i);
    }
    if (c->qk_norm) {
        l->q_norm = take(r, 0, c->head_dim, "model.layers.%d.self_attn.q_norm.weight", i);
        l->k_norm = take(r, 0, c->head_dim, "model.layers.%d.self_attn.k_norm.weight", i);
    }
    l->gate = take(r, c->ffn, H, "model.layers.%d.mlp.gate_proj.weight", i);
    l->up = take(r, c->ffn, H, "model.layers.%d.mlp.up_proj.weight", i);
    l->down = take(r, H, c->ffn, "model.layers.%d.mlp.down_proj.weight", i);
}

/* A tied model may still carry its output matrix, if it is the embedding. */
static void check_tied_output(reading *r)
{
    const void *a, *b;
    as_st_tensor *output = as_shards_find(&r->files->shards, "lm_head.weight", &a);
    const as_st_tensor *embedding =
        as_shards_find(&r->files->shards, "model.embed_tokens.weight", &b);
    if (r->status != AS_OK || !output) return;
    const uint64_t size = output->end - output->begin;
    if (strcmp(output->dtype, embedding->dtype) != 0 ||
        output->elements != embedding->elements || memcmp(a, b, size) != 0)
        r->status = as_fail(r->e, AS_BAD_INPUT,
                            "%s: tie_word_embeddings, but lm_head.weight is not the embedding",
                            as_show_path(r->folder).text);
    output->used = 1;
}

static int ends_with(const char *s, const char *end)
{
    const size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

/* What is left over would be computed with by somebody else. Older files carry the rotary
 * frequencies, which follow from the configuration. */
static void check_left_over(reading *r)
{
    const as_shards *shards = &r->files->shards;
    for (size_t i = 0; r->status == AS_OK && i < shards->count; i++) {
        const as_safetensors *st = &shards->shard[i].tensors;
        for (size_t t = 0; r->status == AS_OK && t < st->count; t++)
            if (!st->tensor[t].used && !ends_with(st->tensor[t].name, "rotary_emb.inv_freq"))
                r->status = as_fail(r->e, AS_BAD_INPUT,
                                    "%s: tensor %s has no place in a %s of this configuration",
                                    as_show_path(r->folder).text,
                                    as_show(st->tensor[t].name).text, r->info->architecture);
    }
}

/* Finds all tensors. */
static as_status read_weights(reading *r)
{
    const as_llama_config *c = &r->info->config;
    as_llama_weights *w = &r->files->weights;
    as_llama_layer *layer = calloc((size_t)c->layers, sizeof *layer);
    if (!layer) return as_fail(r->e, AS_NO_MEMORY, "no memory for %d layers", (int)c->layers);
    w->layer = r->files->layer = layer;
    w->embedding = take(r, c->V, c->hidden, "model.embed_tokens.weight");
    for (int i = 0; i < c->layers; i++) take_layer(r, i, &layer[i]);
    w->final_norm = take(r, 0, c->hidden, "model.norm.weight");
    if (c->tied)
        check_tied_output(r);
    else
        w->output = take(r, c->draft_V ? c->draft_V : c->V, c->hidden, "lm_head.weight");
    if (c->draft_V) w->d2t = take_map(r);
    check_left_over(r);
    return r->status;
}

static as_status open_weights(const char *folder, as_model_files *files, as_model_info *info,
                              as_error *e)
{
    *files = (as_model_files){.layer = NULL};
    as_status s = read_text(folder, "config.json", 0, as_config_parse, info, e);
    if (s == AS_OK)
        s = read_text(folder, "generation_config.json", 1, as_generation_parse, info, e);
    if (s == AS_OK) s = as_shards_open(folder, &files->shards, e);
    if (s != AS_OK) return s;
    s = read_weights(
        &(reading){.folder = folder, .files = files, .info = info, .status = AS_OK, .e = e});
    if (s != AS_OK) as_close_weights(files);
    return s;
}

as_status as_open_weights(const char *folder, as_model_files *files, as_model_info *info,
                          as_error *e)
{
    const as_environment before = as_enter(); /* decimals are rounded to nearest */
    const as_status s = open_weights(folder, files, info, e);
    as_leave(before);
    return s;
}

void as_close_weights(as_model_files *files)
{
    free(files->layer);
    as_shards_close(&files->shards);
}

as_status as_load_model(const char *folder, const as_llama_options *options, as_lm **lm,
                        as_model_info *info, as_error *e)
{
    as_model_files files;
    as_error inner;
    *lm = NULL;
    as_status s = as_open_weights(folder, &files, info, e);
    if (s != AS_OK) return s;
    s = as_llama(&info->config, &files.weights, options, lm, &inner);
    if (s != AS_OK) as_fail(e, s, "%s: %s", as_show_path(folder).text, inner.text);
    as_close_weights(&files);
    return s;
}

/* ---- Pairs. ------------------------------------------------------------------------ */

static int ends_at(const as_model_info *m, int32_t token)
{
    int32_t i = 0;
    while (i < m->eos_count && m->eos[i] != token) i++;
    return i < m->eos_count;
}

as_status as_models_match(const as_model_info *t, const as_model_info *d, as_error *e)
{
    if (t->config.V != d->config.V)
        return as_fail(e, AS_BAD_INPUT,
                       "the target's vocabulary has %d tokens, the draft "
                       "model's %d",
                       (int)t->config.V, (int)d->config.V);
    if (t->bos != d->bos)
        return as_fail(e, AS_BAD_INPUT,
                       "bos_token_id is %d in the target, %d in the draft model", (int)t->bos,
                       (int)d->bos);
    for (int32_t i = 0; i < t->eos_count; i++)
        if (!ends_at(d, t->eos[i]))
            return as_fail(e, AS_BAD_INPUT,
                           "eos_token_id %d of the target is none of the draft "
                           "model's",
                           (int)t->eos[i]);
    for (int32_t i = 0; i < d->eos_count; i++)
        if (!ends_at(t, d->eos[i]))
            return as_fail(e, AS_BAD_INPUT,
                           "eos_token_id %d of the draft model is none of the "
                           "target's",
                           (int)d->eos[i]);
    return AS_OK;
}
