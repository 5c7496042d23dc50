/* lm_small.c - see lm_small.h. A folder has config.json and model.safetensors: u64 length of
 * the header, the header (JSON), the data. */
#include "conformance/checks/model/lm_small.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm_files.h"
#include "conformance/iut.h"

enum { F32 = LM_F32, BF16 = LM_BF16, F16 = LM_F16 };
static const char *const dtype_name[] = {"F32", "BF16", "F16"};
static const char *const torch_name[] = {"float32", "bfloat16", "float16"};

typedef lm_form form;
enum { FORMS = 6, MOST_OWNS = 64 };

/* "long": sums over 1300 inputs have a second group of three chunks, the last one short
 * (ARI-06, ARI-07). "biased": a stream of 144, so that every product has two chunks. "normed":
 * heads of 4 x 16 on a stream of 24. "few" and "fewer" are target and draft over six tokens,
 * alike but not the same, whose joint laws can be written down. "pruned" is "fewer" with four rows of its output
 * matrix, a draft model with a vocabulary of its own. */
static const form forms[FORMS] = {
    {.name = "long",
     .architecture = IUT_LLAMA,
     .seed = 1611,
     .positions = 2048,
     .layers = 2,
     .stored = F32,
     .V = 61,
     .hidden = 16,
     .heads = 4,
     .kv_heads = 2,
     .head_dim = 8,
     .ffn = 1300,
     .llama3 = true,
     .faint = true,
     .eps = "1e-05",
     .theta = "10000.0"},
    {.name = "biased",
     .architecture = IUT_QWEN2,
     .seed = 1612,
     .positions = 2048,
     .layers = 2,
     .stored = BF16,
     .V = 40,
     .hidden = 144,
     .heads = 3,
     .kv_heads = 1,
     .head_dim = 48,
     .ffn = 40,
     .tied = true,
     .eps = "1e-06",
     .theta = "1000000.0"},
    {.name = "normed",
     .architecture = IUT_QWEN3,
     .seed = 1613,
     .positions = 2048,
     .layers = 2,
     .stored = F16,
     .V = 33,
     .hidden = 24,
     .heads = 4,
     .kv_heads = 4,
     .head_dim = 16,
     .ffn = 50,
     .eps = "1e-06",
     .theta = "5000.0"},
    {.name = "few",
     .architecture = IUT_LLAMA,
     .seed = 1614,
     .positions = 2048,
     .layers = 2,
     .stored = F32,
     .V = 6,
     .hidden = 32,
     .heads = 2,
     .kv_heads = 1,
     .head_dim = 32,
     .ffn = 48,
     .flat = true,
     .eps = "1e-05",
     .theta = "10000.0"},
    {.name = "fewer",
     .architecture = IUT_LLAMA,
     .seed = 1615,
     .positions = 2048,
     .layers = 2,
     .stored = F32,
     .V = 6,
     .hidden = 32,
     .heads = 2,
     .kv_heads = 1,
     .head_dim = 32,
     .ffn = 48,
     .flat = true,
     .noise = 0.25,
     .eps = "1e-05",
     .theta = "10000.0"},
    {.name = "pruned",
     .architecture = IUT_LLAMA,
     .seed = 1615,
     .positions = 2048,
     .layers = 2,
     .stored = F32,
     .V = 6,
     .hidden = 32,
     .heads = 2,
     .kv_heads = 1,
     .head_dim = 32,
     .ffn = 48,
     .flat = true,
     .noise = 0.25,
     .owns = 4,
     .own_seed = 1616,
     .eps = "1e-05",
     .theta = "10000.0"},
};

/* A folder that was written, in this run. */
typedef struct written {
    struct written *next;
    char name[sizeof((form *)0)->name], folder[LM_FOLDER];
} written;

static struct {
    pthread_mutex_t lock;
    written *first;
} made = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Weights --------------------------------------------------------------------- */

typedef struct {
    const form *form;
    uint64_t rng, own, crowd; /* own: of the noise; crowd: of the rows that are there twice */
    int32_t kept[MOST_OWNS]; /* [owns] rows of the output matrix, ascending */
    char header[16384];
    size_t used; /* of the header */
    uint8_t *data;
    size_t size, capacity;
} writer;

/* One weight in (-scale, scale), as the format stores it. Every eighth of F16 is a subnormal.
 */
static void put_weight(writer *w, double scale, double shift)
{
    double u = 2 * probe_u24(&w->rng) - 1;
    if (w->form->noise > 0)
        u = (1 - w->form->noise) * u + w->form->noise * (2 * probe_u24(&w->own) - 1);
    const float x = (float)(shift + u * scale);
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (w->form->stored == F32) {
        memcpy(w->data + w->size, &bits, 4);
        w->size += 4;
        return;
    }
    uint16_t half = (uint16_t)(bits >> 16);
    if (w->form->stored == F16) {
        /* |x| < 2: exponent -112 to 15 of the binary32 becomes that of binary16, or 0. */
        const int exponent = (int)(bits >> 23 & 255) - 112;
        /* A draft that is like its target takes a random number wherever that does. */
        const bool draws = shift == 0 && (w->form->crowded || exponent >= 1),
                   faint = (draws && probe_below(&w->rng, 8) == 0) || exponent < 1;
        half = (uint16_t)((bits >> 16 & 0x8000) | (faint ? 0 : (uint32_t)exponent << 10) |
                          (bits >> 13 & 0x3ff));
    }
    memcpy(w->data + w->size, &half, 2);
    w->size += 2;
}

static bool reserve(writer *w, size_t more)
{
    if (w->size + more <= w->capacity) return true;
    w->capacity = 2 * w->capacity + more;
    uint8_t *data = realloc(w->data, w->capacity);
    if (data) w->data = data;
    return data != NULL;
}

/* The line of the header for the data from `begin` on. */
static bool name_tensor(writer *w, const char *name, const char *dtype, const char *shape, size_t begin)
{
    w->used += (size_t)snprintf(w->header + w->used, sizeof w->header - w->used,
                                "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                                w->used > 1 ? "," : "", name, dtype, shape, begin, w->size);
    return w->used < sizeof w->header;
}

static bool is_kept(const writer *w, int32_t id)
{
    for (int32_t i = 0; i < w->form->owns; i++)
        if (w->kept[i] == id) return true;
    return false;
}

/* Is the map the identity, or one number added to every own id? */
static bool is_plain_map(const writer *w)
{
    const int32_t n = w->form->owns;
    return n < w->form->V && w->kept[n - 1] - w->kept[0] == n - 1 && (n > 1 || w->kept[0] == 0);
}

/* The own ids of a draft vocabulary. */
static void draw_kept(writer *w)
{
    const int32_t V = w->form->V, n = w->form->owns;
    uint64_t rng = w->form->own_seed;
    do
        for (int32_t id = 0, i = 0; id < V && i < n; id++)
            if (probe_below(&rng, V - id) < n - i) w->kept[i++] = id;
    while (n > 0 && is_plain_map(w));
}

/* VOC-03. */
static bool put_map(writer *w)
{
    char shape[16];
    const int32_t n = w->form->owns;
    if (n == 0) return true;
    if (!reserve(w, 8 * (size_t)n)) return false;
    for (int32_t i = 0; i < n; i++)
        for (int b = 0; b < 8; b++) w->data[w->size++] = (uint8_t)((uint64_t)(w->kept[i] - i) >> 8 * b);
    snprintf(shape, sizeof shape, "%d", (int)n);
    return name_tensor(w, "d2t", "I64", shape, 0);
}

/* The last sixteenth of the ids. */
enum { LOUD = 16 };
static bool is_loud(const form *f, int32_t id)
{
    return f->crowded && id >= f->V - f->V / LOUD;
}

/* Of the rows since `begin` the last one is, as often as not, one of those before it once more. */
static void crowd(writer *w, size_t begin, int32_t rows)
{
    const size_t size = (w->size - begin) / (size_t)rows;
    const int32_t near = w->form->V / LOUD + 1, before = rows - 1 < near ? rows - 1 : near;
    uint8_t *last = w->data + w->size - size;
    if (before < 1 || probe_below(&w->crowd, 2)) return;
    memcpy(last, last - size * (size_t)(1 + probe_below(&w->crowd, before)), size);
}

/* A tensor [rows][columns], or [rows] with columns 0, named "part" of the model or of a layer.
 * Of the output matrix the rows of a draft vocabulary stay. */
static bool put(writer *w, int layer, const char *part, int rows, int columns, double scale,
                double shift)
{
    const size_t count = (size_t)rows * (size_t)(columns ? columns : 1), begin = w->size;
    char name[100], shape[32];
    if (!reserve(w, 4 * count)) return false;
    const bool output = strcmp(part, "lm_head.weight") == 0, pruned = output && w->form->owns;
    for (int32_t row = 0; row < rows; row++) {
        const size_t before = w->size;
        const bool faint = w->form->faint && output && row % 20 == 7;
        const double size = faint ? 0x1p-127 : output && is_loud(w->form, row) ? 1.15 * scale : scale;
        for (int32_t i = 0; i < (columns ? columns : 1); i++) put_weight(w, size, shift);
        if (pruned && !is_kept(w, row)) w->size = before;
        if (output && w->form->crowded) crowd(w, begin, row + 1);
    }
    if (layer < 0)
        snprintf(name, sizeof name, "%s", part);
    else
        snprintf(name, sizeof name, "model.layers.%d.%s", layer, part);
    snprintf(shape, sizeof shape, columns ? "%d,%d" : "%d", pruned ? (int)w->form->owns : rows, columns);
    return name_tensor(w, name, dtype_name[w->form->stored], shape, begin);
}

/* A matrix [out][in] whose outputs have about `size`, for inputs of size 1. */
static bool put_matrix(writer *w, int layer, const char *part, int out, int in, double size)
{
    return put(w, layer, part, out, in, size * sqrt(3.0 / in), 0);
}

static bool put_layer(writer *w, int i)
{
    const form *f = w->form;
    const int q = f->heads * f->head_dim, kv = f->kv_heads * f->head_dim;
    bool ok = put(w, i, "input_layernorm.weight", f->hidden, 0, 0.3, 1) &&
              put(w, i, "post_attention_layernorm.weight", f->hidden, 0, 0.3, 1) &&
              put_matrix(w, i, "self_attn.q_proj.weight", q, f->hidden, 1.5) &&
              put_matrix(w, i, "self_attn.k_proj.weight", kv, f->hidden, 1.5) &&
              put_matrix(w, i, "self_attn.v_proj.weight", kv, f->hidden, 1) &&
              put_matrix(w, i, "self_attn.o_proj.weight", f->hidden, q, 1) &&
              put_matrix(w, i, "mlp.gate_proj.weight", f->ffn, f->hidden, 1.2) &&
              put_matrix(w, i, "mlp.up_proj.weight", f->ffn, f->hidden, 1) &&
              put_matrix(w, i, "mlp.down_proj.weight", f->hidden, f->ffn, 1);
    if (f->architecture == IUT_QWEN2)
        ok = ok && put(w, i, "self_attn.q_proj.bias", q, 0, 1, 0) &&
             put(w, i, "self_attn.k_proj.bias", kv, 0, 1, 0) &&
             put(w, i, "self_attn.v_proj.bias", kv, 0, 1, 0);
    if (f->architecture == IUT_QWEN3)
        ok = ok && put(w, i, "self_attn.q_norm.weight", f->head_dim, 0, 0.4, 1) &&
             put(w, i, "self_attn.k_norm.weight", f->head_dim, 0, 0.4, 1);
    return ok;
}

static bool put_all(writer *w)
{
    const form *f = w->form;
    w->used = (size_t)snprintf(w->header, sizeof w->header, "{");
    draw_kept(w);
    bool ok = put_map(w) && put(w, -1, "model.embed_tokens.weight", f->V, f->hidden, 1, 0) &&
              put(w, -1, "model.norm.weight", f->hidden, 0, 0.3, 1);
    for (int i = 0; i < f->layers; i++) ok = ok && put_layer(w, i);
    if (!f->tied)
        ok = ok && put_matrix(w, -1, "lm_head.weight", f->V, f->hidden, f->flat ? 1 : 2);
    if (!ok || w->used + 9 > sizeof w->header) return false;
    w->header[w->used++] = '}';
    while (w->used % 8) w->header[w->used++] = ' ';
    return true;
}

/* ---- Files ----------------------------------------------------------------------- */

/* What config.json calls an architecture. */
static const char *class_of(const form *f)
{
    return f->architecture == IUT_QWEN2   ? "Qwen2ForCausalLM"
           : f->architecture == IUT_QWEN3 ? "Qwen3ForCausalLM"
                                          : "LlamaForCausalLM";
}

static const char *type_of(const form *f)
{
    return f->architecture == IUT_QWEN2 ? "qwen2" : f->architecture == IUT_QWEN3 ? "qwen3" : "llama";
}

/* Of config.json; its length, or 0 where it does not fit. */
static size_t make_config(const form *f, char *text, size_t size)
{
    char owns[50] = "";
    if (f->owns) snprintf(owns, sizeof owns, " \"draft_vocab_size\": %d,\n", (int)f->owns);
    const int n = snprintf(
        text, size,
        "{\"architectures\": [\"%s\"], \"model_type\": \"%s\", \"vocab_size\": %d,\n"
        " \"hidden_size\": %d, \"intermediate_size\": %d, \"num_hidden_layers\": %d,\n"
        " \"num_attention_heads\": %d, \"num_key_value_heads\": %d, \"head_dim\": %d,\n"
        " \"hidden_act\": \"silu\", \"max_position_embeddings\": %d, \"rms_norm_eps\": %s,\n"
        " \"rope_theta\": %s, \"tie_word_embeddings\": %s,\n%s%s"
        " \"bos_token_id\": 0, \"eos_token_id\": 1, \"torch_dtype\": \"%s\"}\n",
        class_of(f), type_of(f), (int)f->V, (int)f->hidden, (int)f->ffn, (int)f->layers, (int)f->heads,
        (int)f->kv_heads, (int)f->head_dim, (int)f->positions, f->eps, f->theta, f->tied ? "true" : "false",
        f->llama3 ? " \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 4.0,\n"
                    "  \"low_freq_factor\": 1.0, \"high_freq_factor\": 3.0,\n"
                    "  \"original_max_position_embeddings\": 128},\n"
                  : "",
        owns, torch_name[f->stored]);
    return n < (int)size ? (size_t)n : 0;
}

/* Both files of a form. `data` has the second and is the caller's to free; NULL: memory is short. */
static uint8_t *make_files(const form *f, char *config, size_t config_size, lm_file file[LM_FILES])
{
    const uint64_t base = f->noise > 0 ? f->seed - 1 : f->seed;
    writer w = {.form = f, .rng = base, .own = f->seed, .crowd = ~base};
    const size_t length = make_config(f, config, config_size);
    uint8_t *data = length && put_all(&w) ? malloc(8 + w.used + w.size) : NULL;
    if (data) {
        for (int i = 0; i < 8; i++) data[i] = (uint8_t)((uint64_t)w.used >> 8 * i);
        memcpy(data + 8, w.header, w.used);
        memcpy(data + 8 + w.used, w.data, w.size);
        file[0] = (lm_file){"config.json", config, length};
        file[1] = (lm_file){"model.safetensors", data, 8 + w.used + w.size};
    } else
        errno = ENOMEM;
    free(w.data);
    return data;
}

const lm_form *lm_small_form(const char *name)
{
    for (int i = 0; i < FORMS; i++)
        if (strcmp(forms[i].name, name) == 0) return &forms[i];
    return NULL;
}

enum { CONFIG = 1200 }; /* bytes of config.json, at most */

/* Drawn forms are used once; the others have engines that convert them, which takes time. */
static bool place(const form *f, const lm_file *file, char *folder, char *why, size_t why_size)
{
    bool chosen = false;
    if (lm_small_form(f->name) && lm_files_keep(f->name, file, folder, &chosen)) return true;
    if (!chosen && lm_files_lend(f->name, file, folder)) return true;
    snprintf(why, why_size, "the small model %s cannot be written: %s; set %s to a folder with room", f->name,
             strerror(errno), chosen ? "ASSAY_CACHE" : "TMPDIR");
    return false;
}

static const written *write_form(const form *f, char *why, size_t why_size)
{
    char config[CONFIG];
    lm_file file[LM_FILES];
    for (const written *w = made.first; w; w = w->next)
        if (strcmp(w->name, f->name) == 0) return w;
    written *w = calloc(1, sizeof *w);
    uint8_t *data = w ? make_files(f, config, sizeof config, file) : NULL;
    if (!data) snprintf(why, why_size, "the small model %s cannot be made: %s", f->name, strerror(ENOMEM));
    const bool ok = data && place(f, file, w->folder, why, why_size);
    free(data);
    if (!ok) {
        free(w);
        return NULL;
    }
    snprintf(w->name, sizeof w->name, "%s", f->name);
    w->next = made.first;
    return made.first = w;
}

const char *lm_form_folder(const lm_form *f, char *why, size_t why_size)
{
    pthread_mutex_lock(&made.lock);
    const written *w = write_form(f, why, why_size);
    pthread_mutex_unlock(&made.lock);
    return w ? w->folder : NULL;
}

const char *lm_small_folder(const char *name, char *why, size_t why_size)
{
    return lm_form_folder(lm_small_form(name), why, why_size);
}

bool lm_small_write(const char *name, const char *folder)
{
    char config[CONFIG];
    lm_file file[LM_FILES];
    uint8_t *data = make_files(lm_small_form(name), config, sizeof config, file);
    const bool ok = data && lm_files_write(folder, file);
    free(data);
    return ok;
}

/* ---- Drawn forms ----------------------------------------------------------------- */

static int32_t between(uint64_t *rng, int32_t least, int32_t most)
{
    return least + probe_below(rng, most - least + 1);
}

/* An even size, a multiple of the heads: some loaders ask that of Llama's. */
static void divide_by_heads(lm_form *f, int32_t each)
{
    f->hidden = f->heads * each;
    if (f->hidden % 2) f->hidden += f->heads;
}

lm_form lm_form_draw(uint64_t *rng, uint8_t architecture, int32_t positions, int32_t most_V)
{
    static const char *const eps[] = {"1e-02", "1e-03", "1e-05", "1e-06"};
    static const char *const theta[] = {"10.0", "100.0", "5000.0", "10000.0", "1000000.0"};
    static const int32_t head[] = {4, 6, 8, 10, 16, 20, 32, 64, 96, 128};
    lm_form f = {.architecture = architecture,
                 .positions = positions,
                 .stored = (uint8_t)probe_below(rng, 3),
                 .V = between(rng, LM_LEAST, 61),
                 .layers = between(rng, 1, 3),
                 .hidden = 2 * between(rng, 4, 24),
                 .kv_heads = between(rng, 1, 5),
                 .head_dim = head[probe_below(rng, (int32_t)(sizeof head / sizeof *head))],
                 .ffn = between(rng, 5, 90),
                 .tied = probe_below(rng, 2) != 0,
                 .llama3 = architecture == IUT_LLAMA && probe_below(rng, 3) == 0,
                 .eps = eps[probe_below(rng, 4)],
                 .theta = theta[probe_below(rng, 5)]};
    if (most_V > 0 && f.V > most_V) f.V = most_V;
    f.heads = f.kv_heads * between(rng, 1, f.kv_heads > 2 ? 3 : 7);
    if (architecture == IUT_LLAMA) divide_by_heads(&f, (f.hidden + f.heads - 1) / f.heads);
    f.seed = probe_next(rng);
    snprintf(f.name, sizeof f.name, "drawn-%016llx", (unsigned long long)f.seed);
    return f;
}

static int32_t one_of(uint64_t *rng, const int32_t *list, int32_t n)
{
    return list[probe_below(rng, n)];
}

lm_form lm_form_draw_target(uint64_t *rng, uint8_t architecture, bool wide, int32_t most_V)
{
    static const int32_t V[] = {6, LM_FEW, LM_FEW, 300, 1031, 32003}, wide_V[] = {LM_MANY, 100003, LM_MOST},
                         head[] = {8, 20, 64, 80, 96, 128, 256},
                         positions[] = {33, 64, 65, 96, 100, 128, 129, 200, 255, 257};
    lm_form f = lm_form_draw(rng, architecture, one_of(rng, positions, 10), most_V);
    f.V = wide ? one_of(rng, wide_V, 3) : one_of(rng, V, 6);
    if (most_V > 0 && f.V > most_V) f.V = most_V < LM_FEW ? most_V : LM_FEW;
    f.stored = LM_F32;
    f.head_dim = one_of(rng, head, 7);
    f.tied = f.V <= LM_FEW && f.tied;
    f.crowded = true;
    f.llama3 = false;
    if (f.V >= LM_MANY) f.layers = 1;
    divide_by_heads(&f, 12 / f.heads + between(rng, 1, f.V >= LM_MANY ? 1 : 3));
    return f;
}

lm_form lm_form_draft(const lm_form *target)
{
    lm_form f = *target;
    f.seed++;
    f.noise = 0.02;
    snprintf(f.name, sizeof f.name, "drawn-%016llx", (unsigned long long)f.seed);
    return f;
}

lm_form lm_form_pruned(uint64_t seed)
{
    lm_form f = *lm_small_form("pruned");
    uint64_t rng = seed;
    f.owns = between(&rng, 1, f.V - 1);
    f.own_seed = probe_next(&rng);
    snprintf(f.name, sizeof f.name, "pruned-%016llx", (unsigned long long)seed);
    return f;
}

void lm_form_text(const lm_form *f, char *text, size_t size)
{
    snprintf(text, size, "%s %s, V %d, layers %d, stream %d, heads %d/%d of %d, mlp %d, eps %s, theta %s%s%s", type_of(f),
             dtype_name[f->stored], (int)f->V, (int)f->layers, (int)f->hidden, (int)f->heads, (int)f->kv_heads,
             (int)f->head_dim, (int)f->ffn, f->eps, f->theta, f->tied ? ", tied" : "", f->llama3 ? ", llama3" : "");
}
