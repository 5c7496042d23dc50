/* load.c - the strict reader of vector files: every key known, required and in range, or an
 * error that says where and what to do (STA-03). See vectors.h; schema.json says the same to
 * others. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vectors/read/operation.h"
#include "vectors/read/reader.h"
#include "vectors/read/trace.h"
#include "vectors/read/tree.h"

static bool name_like(const char *text, const char *allowed)
{
    return *text && strspn(text, allowed) == strlen(text) && strlen(text) < 64;
}

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"

/* A list of names, joined with blanks. */
static bool get_names(as_json *r, const json_t *object, const char *key, const char *allowed,
                      const char **joined)
{
    const json_t *v = json_object_get(object, key);
    if (!json_is_array(v)) return as_json_bad(r, key, "must be a list of names");
    char *text = reader_take(r, 64 * json_array_size(v) + 1, 1), *end = text;
    if (!text) return false;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = json_string_value(json_array_get(v, i));
        if (!name || !name_like(name, allowed))
            return as_json_bad(r, key, "[%zu] is no name", i);
        end += sprintf(end, "%s%s", i ? " " : "", name);
    }
    *joined = text;
    return true;
}

static bool get_clauses(as_json *r, const json_t *object, const char **clauses)
{
    if (!get_names(r, object, "clauses", "ABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789", clauses))
        return false;
    return **clauses || as_json_bad(r, "clauses", "must name at least one clause");
}

static bool get_flags(as_json *r, const json_t *object, const char **flags)
{
    const json_t *v = json_object_get(object, "flags");
    if (!get_names(r, object, "flags", LOWER "-", flags)) return false;
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *flag = json_string_value(json_array_get(v, i));
        if (!json_object_get(reader_of(r)->notes, flag))
            return as_json_bad(r, "flags", "\"%s\" has no note", flag);
    }
    return true;
}

/* An id: the group's own, or a test's, which starts with its group's. */
static bool get_id(as_json *r, const json_t *object, const char *group, const char **id)
{
    if (!reader_text(r, object, "id", id)) return false;
    if (!name_like(*id, LOWER ".-")) return as_json_bad(r, "id", "must consist of a-z 0-9 . -");
    const size_t length = group ? strlen(group) : 0;
    if (group && (strncmp(*id, group, length) || (*id)[length] != '.'))
        return as_json_bad(r, "id", "must start with \"%s.\"", group);
    return true;
}

/* -- Rows ---------------------------------------------------------------------------------- */

static bool read_units(as_json *r, const json_t *o, const vector_row *form, int32_t V,
                       float *value)
{
    const int32_t *n = NULL;
    if (!as_json_has_keys(r, o, "form k n", "") ||
        !reader_integers(r, o, "n", V, 0, (int64_t)1 << form->k, &n, NULL))
        return false;
    for (int32_t t = 0; t < V; t++) value[t] = ldexpf((float)n[t], -form->k);
    return true;
}

static bool read_bits(as_json *r, const json_t *o, bool logits, int32_t V, float *value)
{
    uint32_t *word = malloc((size_t)V * sizeof *word);
    if (!word) return as_json_no_memory(r);
    bool ok = as_json_has_keys(r, o, "form bits", "") && as_json_words(r, o, "bits", V, word);
    for (int32_t t = 0; ok && t < V; t++) {
        value[t] = float_of_bits(word[t]);
        if (!logits && !(value[t] >= 0.0f && value[t] <= 1.0f))
            ok = as_json_bad(r, "bits", "[%d] must be a probability", (int)t);
    }
    free(word);
    return ok;
}

static bool read_procedural(as_json *r, const json_t *o, vector_row *form, int32_t V,
                            float *value)
{
    const bool mix = form->form == ROW_MIX;
    int64_t row = 0, lambda = 0;
    if (!as_json_has_keys(r, o, mix ? "form seed row k sharp lambda" : "form seed row k sharp",
                          "") ||
        !as_json_hex64(r, o, "seed", &form->seed) ||
        !as_json_integer(r, o, "row", 0, UINT32_MAX, &row) ||
        !as_json_i32(r, o, "sharp", 0, 5, &form->sharp) ||
        (mix && !as_json_integer(r, o, "lambda", 0, 65536, &lambda)))
        return false;
    form->row = (uint32_t)row;
    form->lambda = (uint32_t)lambda;
    return row_expand(form, V, value) || as_json_no_memory(r);
}

static bool read_row(as_json *r, const json_t *rows, const char *key, bool logits, int32_t V,
                     vector_row *form, float *value)
{
    static const char *const names[] = {"bits", "units", "zipf", "mix"};
    const json_t *o = json_object_get(rows, key);
    const size_t mark = as_json_enter_object(r, key);
    const char *name = json_string_value(json_object_get(o, "form"));
    int32_t f = ROW_BITS;
    while (f <= ROW_MIX && !(name && !strcmp(name, names[f]))) f++;
    if (f > ROW_MIX || (logits && f != ROW_BITS))
        return as_json_bad(r, "form", "must be %s",
                           logits ? "bits" : "bits, units, zipf or mix");
    form->form = (vector_form)f;
    if (f != ROW_BITS && !as_json_i32(r, o, "k", 1, 24, &form->k)) return false;
    const bool ok = f == ROW_BITS    ? read_bits(r, o, logits, V, value)
                    : f == ROW_UNITS ? read_units(r, o, form, V, value)
                                     : read_procedural(r, o, form, V, value);
    as_json_leave(r, mark);
    return ok;
}

static bool read_rows(as_json *r, const json_t *o, vector_group *g)
{
    const json_t *list = json_object_get(o, "rows");
    const size_t n = json_array_size(list);
    const bool logits = kind_has_logits(g->kind), has_q = kind_has_q(g->kind);
    const char *key = logits ? "logits" : g->kind == VECTOR_TREE ? "row" : "p";
    if (!as_json_list(r, list, "rows", 1, VECTORS_MAX_COUNT)) return false;
    if (n > (VECTORS_MAX_CELLS - reader_of(r)->set->cells) / (size_t)g->V)
        return as_json_bad(r, "rows", "bring the set beyond %d probabilities",
                           VECTORS_MAX_CELLS);
    reader_of(r)->set->cells += n * (size_t)g->V;
    float *p = reader_take(r, n * (size_t)g->V, sizeof *p);
    float *q = has_q ? reader_take(r, n * (size_t)g->V, sizeof *q) : NULL;
    vector_row *form = reader_take(r, 2 * n, sizeof *form);
    if (!p || (has_q && !q) || !form) return false;
    for (size_t i = 0; i < n; i++) {
        const json_t *row = json_array_get(list, i);
        const size_t mark = as_json_enter(r, "rows", i), at = i * (size_t)g->V;
        if (!as_json_has_keys(r, row,
                              has_q ? "p q" : key,
                              "") ||
            !read_row(r, row, key, logits, g->V, &form[i], p + at) ||
            (has_q && !read_row(r, row, "q", false, g->V, &form[n + i], q + at)))
            return false;
        as_json_leave(r, mark);
    }
    g->rows = (int32_t)n;
    g->p = p;
    g->q = q;
    g->p_form = form;
    g->q_form = has_q ? form + n : NULL;
    return true;
}

/* -- Answers ------------------------------------------------------------------------------- */

static bool read_bits_answer(as_json *r, const json_t *o, const char *key, int32_t count,
                             vector_answer *a)
{
    uint32_t *bits = reader_take(r, (size_t)count, sizeof *bits);
    if (!bits) return false;
    a->bits = bits;
    return as_json_words(r, o, key, count, bits);
}

static bool read_uniform_answer(as_json *r, const json_t *o, vector_answer *a)
{
    int64_t accept = 0;
    if (!as_json_has_keys(r, o, "words accept draw", "") ||
        !read_bits_answer(r, o, "words", 4, a) ||
        !as_json_integer(r, o, "accept", 0, (1 << 29) - 1, &accept) ||
        !as_json_hex64(r, o, "draw", &a->draw))
        return false;
    a->accept = (uint32_t)accept;
    return true;
}

static bool read_operation_answer(as_json *r, const vector_group *g, const vector_test *t,
                                  const json_t *o, vector_answer *a)
{
    int32_t n[OPERATION_INPUTS];
    operation_shape(operation_find(g->op), t->size, n, &a->words);
    return as_json_has_keys(r, o, "y", "") && read_bits_answer(r, o, "y", a->words, a);
}

static bool read_error(as_json *r, const vector_group *g, const json_t *o, vector_answer *a)
{
    const char *allowed = g->kind == VECTOR_SERVED   ? "row parameter"
                          : g->kind == VECTOR_GREEDY ? "draft row"
                          : kind_has_drafts(g->kind) ? "draft"
                                                     : "";
    if (!reader_text(r, o, "error", &a->error)) return false;
    if (list_names(allowed, a->error, strlen(a->error))) return true;
    return as_json_bad(r, "error", "must be one of: %s", allowed);
}

static bool read_tokens(as_json *r, const vector_group *g, const vector_test *t,
                        const json_t *o, vector_answer *a)
{
    const bool open = a->policy && !strcmp(a->policy, "empty=other");
    const char *then = "";
    if (!as_json_has_keys(r, o,
                          open        ? "tokens policy then"
                          : a->policy ? "tokens policy"
                                      : "tokens",
                          "") ||
        !reader_integers(r, o, "tokens", -1, 0, g->V - 1, &a->tokens, &a->count))
        return false;
    if (open && (!reader_text(r, o, "then", &then) || strcmp(then, "any")))
        return as_json_bad(r, "then", "must be \"any\"");
    a->then_any = open;
    const int32_t emitted = a->count + open;
    if (emitted < 1 || emitted > t->len + 1)
        return as_json_bad(r, "tokens", "must be 1 to %d tokens", (int)t->len + 1);
    return true;
}

static bool read_answer(as_json *r, const vector_group *g, const vector_test *t,
                        const json_t *o, bool alternative, vector_answer *a)
{
    const char *policy = alternative ? "policy" : "";
    if (!json_is_object(o)) return as_json_bad(r, "", "must be an object");
    if (alternative && !reader_text(r, o, "policy", &a->policy)) return false;
    if (alternative &&
        !list_names("q_zero=reject bad_draft=ends empty=other", a->policy, strlen(a->policy)))
        return as_json_bad(r, "policy", "is not known");
    if (g->kind == VECTOR_TRACE) return trace_read_answer(r, g, t, o, a);
    if (g->kind == VECTOR_TREE) return tree_read_answer(r, g, t, o, a);
    if (json_object_get(o, "error"))
        return as_json_has_keys(r, o, "error", policy) && read_error(r, g, o, a);
    switch (g->kind) {
    case VECTOR_PHILOX:
        return as_json_has_keys(r, o, "words", "") && read_bits_answer(r, o, "words", 4, a);
    case VECTOR_UNIFORM:
        return read_uniform_answer(r, o, a);
    case VECTOR_EXP:
        return as_json_has_keys(r, o, "y", "") && read_bits_answer(r, o, "y", 1, a);
    case VECTOR_ARITHMETIC:
        return read_operation_answer(r, g, t, o, a);
    case VECTOR_SERVED:
    case VECTOR_RESIDUAL:
        return as_json_has_keys(r, o, "row", "") && read_bits_answer(r, o, "row", g->V, a);
    default:
        return read_tokens(r, g, t, o, a);
    }
}

static bool read_answers(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    const json_t *list = json_object_get(o, "alternatives");
    const size_t n = json_array_size(list);
    vector_answer *other = reader_take(r, n + 1, sizeof *other);
    if (!other || (list && !as_json_list(r, list, "alternatives", 1, 8))) return false;
    if (list && !kind_has_drafts(g->kind) && g->kind != VECTOR_TREE)
        return as_json_bad(r, "alternatives", "are those of a step with drafts alone");
    const size_t mark = as_json_enter_object(r, "expected");
    if (!read_answer(r, g, t, json_object_get(o, "expected"), false, &t->expected))
        return false;
    as_json_leave(r, mark);
    for (size_t i = 0; i < n; i++) {
        const size_t here = as_json_enter(r, "alternatives", i);
        if (!read_answer(r, g, t, json_array_get(list, i), true, &other[i])) return false;
        as_json_leave(r, here);
    }
    t->alternatives = (int32_t)n;
    t->alternative = other;
    return true;
}

/* -- Tests --------------------------------------------------------------------------------- */

/* Integers in units of 2^-bits from several members, as binary64. */
static bool read_units_of(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    const int64_t most = ((int64_t)1 << g->uniform_bits) - 1;
    const int32_t *list = NULL;
    const int32_t n = g->kind == VECTOR_MATCH   ? t->len + 1
                      : g->kind == VECTOR_CHAIN ? t->len
                                                : 0;
    int64_t one[2] = {0, 0};
    double *u = reader_take(r, (size_t)n + 2, sizeof *u);
    if (!u) return false;
    if (n && !reader_integers(r, o, g->kind == VECTOR_MATCH ? "u" : "accept", n, 0, most, &list,
                              NULL))
        return false;
    if (g->kind == VECTOR_CHAIN && (!as_json_integer(r, o, "residual", 0, most, &one[0]) ||
                                    !as_json_integer(r, o, "bonus", 0, most, &one[1])))
        return false;
    if (g->kind == VECTOR_DRAW && !as_json_integer(r, o, "u", 0, most, &one[0])) return false;
    for (int32_t i = 0; i < n; i++) u[i] = ldexp((double)list[i], -g->uniform_bits);
    u[n] = g->kind == VECTOR_MATCH ? u[n] : ldexp((double)one[0], -g->uniform_bits);
    if (g->kind == VECTOR_CHAIN) u[n + 1] = ldexp((double)one[1], -g->uniform_bits);
    t->u = u;
    return true;
}

static bool read_uniforms_of(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    switch (g->uniforms) {
    case UNIFORMS_UNITS:
        return read_units_of(r, g, o, t);
    case UNIFORMS_WORDS:
        return as_json_hex64(r, o, "U", &t->U);
    case UNIFORMS_SEED:
        return as_json_hex64(r, o, "seed", &t->seed) &&
               as_json_hex64(r, o, "position", &t->position);
    default:
        return true;
    }
}

static bool read_one_row(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    int32_t *row = reader_take(r, 1, sizeof *row);
    if (!row) return false;
    t->row = row;
    return as_json_i32(r, o, "row", 0, g->rows - 1, row);
}

static bool read_step(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    if (!reader_integers(r, o, "draft", -1, INT32_MIN, INT32_MAX, &t->draft, &t->len))
        return false;
    if (t->len > g->gamma)
        return as_json_bad(r, "draft", "has more than gamma = %d entries", (int)g->gamma);
    return reader_integers(r, o, "rows", t->len + 1, 0, g->rows - 1, &t->row, NULL);
}

static bool read_sampling(as_json *r, const json_t *o, vector_test *t)
{
    return as_json_float(r, o, "temperature", &t->temperature) &&
           as_json_i32(r, o, "top_k", INT32_MIN, INT32_MAX, &t->top_k) &&
           as_json_float(r, o, "top_p", &t->top_p) && as_json_float(r, o, "min_p", &t->min_p);
}

static bool read_uniform_inputs(as_json *r, const json_t *o, vector_test *t)
{
    int64_t purpose = 0, index = 0;
    if (!as_json_hex64(r, o, "seed", &t->seed) ||
        !as_json_hex64(r, o, "position", &t->position) ||
        !as_json_integer(r, o, "purpose", 0, 5, &purpose) ||
        !as_json_integer(r, o, "index", 0, UINT32_MAX, &index))
        return false;
    t->purpose = (uint32_t)purpose;
    t->index = (uint32_t)index;
    return true;
}

static bool read_sizes(as_json *r, const operation *op, const json_t *o, vector_test *t)
{
    const json_t *sizes = json_object_get(o, "sizes");
    int32_t *size = reader_take(r, OPERATION_SIZES, sizeof *size);
    char name[32];
    if (!size) return false;
    t->size = size;
    const size_t mark = as_json_enter_object(r, "sizes");
    bool ok = as_json_has_keys(r, sizes, op->sizes, "");
    for (int32_t i = 0; ok && *reader_word(op->sizes, i, name, sizeof name); i++)
        ok = as_json_i32(r, sizes, name, 0, 1 << 20, &size[i]);
    if (ok) as_json_leave(r, mark);
    return ok;
}

static bool read_procedural_input(as_json *r, const json_t *o, vector_input *in, uint32_t *word)
{
    int64_t row = 0;
    if (!as_json_has_keys(r, o, "seed row e spread", "") ||
        !as_json_hex64(r, o, "seed", &in->seed) ||
        !as_json_integer(r, o, "row", 0, UINT32_MAX, &row) ||
        !as_json_i32(r, o, "e", -100, 100, &in->e) ||
        !as_json_i32(r, o, "spread", 1, 64, &in->spread))
        return false;
    if (in->e - in->spread < -127) return as_json_bad(r, "spread", "reaches below 2^-126");
    in->procedural = true;
    in->row = (uint32_t)row;
    operation_uniform(in, word);
    return true;
}

static bool read_input(as_json *r, const json_t *inputs, const char *name, int32_t n,
                       vector_input *in)
{
    const json_t *o = json_object_get(inputs, name);
    if ((size_t)n > VECTORS_MAX_CELLS - reader_of(r)->set->cells)
        return as_json_bad(r, name, "brings the set beyond %d numbers", VECTORS_MAX_CELLS);
    reader_of(r)->set->cells += (size_t)n;
    uint32_t *word = reader_take(r, (size_t)n, sizeof *word);
    if (!word) return false;
    in->n = n;
    in->word = word;
    if (json_is_string(o)) return as_json_words(r, inputs, name, n, word);
    const size_t mark = as_json_enter_object(r, name);
    const bool ok = read_procedural_input(r, o, in, word);
    if (ok) as_json_leave(r, mark);
    return ok;
}

static bool read_operation(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    const operation *op = operation_find(g->op);
    const json_t *inputs = json_object_get(o, "inputs");
    int32_t n[OPERATION_INPUTS], words;
    char name[32];
    if (!read_sizes(r, op, o, t)) return false;
    t->inputs = operation_shape(op, t->size, n, &words);
    if (t->inputs < 0) return as_json_bad(r, "sizes", "are out of range for %s", op->name);
    vector_input *in = reader_take(r, OPERATION_INPUTS, sizeof *in);
    if (!in) return false;
    t->input = in;
    if (json_object_size(inputs) != (size_t)t->inputs)
        return as_json_bad(r, "inputs", "must be an object of %d inputs", (int)t->inputs);
    const size_t mark = as_json_enter_object(r, "inputs");
    for (int32_t i = 0; i < t->inputs; i++)
        if (!read_input(r, inputs, reader_word(op->inputs, i, name, sizeof name), n[i], &in[i]))
            return false;
    as_json_leave(r, mark);
    return true;
}

static bool read_inputs(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    switch (g->kind) {
    case VECTOR_PHILOX:
        return as_json_words(r, o, "counter", 4, t->counter) &&
               as_json_words(r, o, "key", 2, t->key);
    case VECTOR_UNIFORM:
        return read_uniform_inputs(r, o, t);
    case VECTOR_EXP:
        return as_json_float(r, o, "x", &t->x);
    case VECTOR_ARITHMETIC:
        return read_operation(r, g, o, t);
    case VECTOR_TRACE:
        return trace_read_inputs(r, g, o, t);
    case VECTOR_TREE:
        return tree_read_inputs(r, g, o, t);
    case VECTOR_SERVED:
        return read_one_row(r, g, o, t) && read_sampling(r, o, t);
    case VECTOR_DRAW:
        return read_one_row(r, g, o, t) && read_uniforms_of(r, g, o, t);
    case VECTOR_RESIDUAL:
        return read_one_row(r, g, o, t);
    default:
        return read_step(r, g, o, t) && read_uniforms_of(r, g, o, t);
    }
}

static const char *input_keys(const vector_group *g)
{
    const bool units = g->uniforms == UNIFORMS_UNITS;
    switch (g->kind) {
    case VECTOR_PHILOX:
        return "counter key";
    case VECTOR_UNIFORM:
        return "seed position purpose index";
    case VECTOR_EXP:
        return "x";
    case VECTOR_ARITHMETIC:
        return "sizes inputs";
    case VECTOR_TRACE:
        return TRACE_INPUT_KEYS;
    case VECTOR_SERVED:
        return "row temperature top_k top_p min_p";
    case VECTOR_DRAW:
        return units ? "row u" : g->uniforms == UNIFORMS_WORDS ? "row U" : "row seed position";
    case VECTOR_RESIDUAL:
        return "row";
    case VECTOR_CHAIN:
        return units ? "rows draft accept residual bonus" : "rows draft seed position";
    case VECTOR_MATCH:
        return units ? "rows draft u" : "rows draft seed position";
    default:
        return "rows draft";
    }
}

static bool read_test(as_json *r, const vector_group *g, const json_t *o, vector_test *t)
{
    char inputs[120], keys[200];
    if (g->kind == VECTOR_TREE)
        tree_input_keys(g, inputs, sizeof inputs);
    else
        snprintf(inputs, sizeof inputs, "%s", input_keys(g));
    snprintf(keys, sizeof keys, "id clauses comment flags %s expected", inputs);
    return as_json_has_keys(r, o, keys, "alternatives") && get_id(r, o, g->id, &t->id) &&
           get_clauses(r, o, &t->clauses) && reader_text(r, o, "comment", &t->comment) &&
           get_flags(r, o, &t->flags) && read_inputs(r, g, o, t) && read_answers(r, g, o, t);
}

static bool read_tests(as_json *r, const json_t *o, vector_group *g)
{
    const json_t *list = json_object_get(o, "tests");
    const size_t n = json_array_size(list);
    if (!as_json_list(r, list, "tests", 1, VECTORS_MAX_COUNT)) return false;
    g->test = reader_take(r, n, sizeof *g->test);
    if (!g->test) return false;
    g->tests = (int32_t)n;
    for (size_t i = 0; i < n; i++) {
        const size_t mark = as_json_enter(r, "tests", i);
        if (!read_test(r, g, json_array_get(list, i), &g->test[i])) return false;
        as_json_leave(r, mark);
    }
    return true;
}

/* -- Groups -------------------------------------------------------------------------------- */

static bool read_source(as_json *r, const json_t *group, vector_group *g)
{
    const json_t *o = json_object_get(group, "uniforms");
    const char *form = json_string_value(json_object_get(o, "form"));
    if (!kind_has_uniforms(g->kind)) return true;
    if (form && !strcmp(form, "units")) {
        g->uniforms = UNIFORMS_UNITS;
        return as_json_i32(r, o, "bits", 1, 24, &g->uniform_bits);
    }
    if (form && !strcmp(form, "seed")) g->uniforms = UNIFORMS_SEED;
    if (form && !strcmp(form, "words") && g->kind == VECTOR_DRAW) g->uniforms = UNIFORMS_WORDS;
    if (g->uniforms == UNIFORMS_NONE)
        return as_json_bad(r, "uniforms", "must have form units, seed or (draw) words");
    return as_json_has_keys(r, o, "form", "");
}

static const char *shared_keys(vector_kind kind)
{
    switch (kind) {
    case VECTOR_ARITHMETIC:
        return "op";
    case VECTOR_TRACE:
        return "method model";
    case VECTOR_TREE:
        return TREE_GROUP_KEYS;
    case VECTOR_SERVED:
    case VECTOR_RESIDUAL:
        return "V rows";
    case VECTOR_DRAW:
        return "V exact uniforms rows";
    case VECTOR_CHAIN:
    case VECTOR_MATCH:
        return "V gamma exact uniforms rows";
    case VECTOR_GREEDY:
        return "V gamma rows";
    default:
        return "";
    }
}

static bool read_shared(as_json *r, const json_t *o, vector_group *g)
{
    if (g->kind == VECTOR_ARITHMETIC)
        return reader_text(r, o, "op", &g->op) &&
               (operation_find(g->op) || as_json_bad(r, "op", "is not known"));
    if (g->kind == VECTOR_TRACE) return trace_read_model(r, o, g);
    if (g->kind == VECTOR_TREE) return tree_read_group(r, o, g) && read_rows(r, o, g);
    if (!kind_has_rows(g->kind)) return true;
    return as_json_i32(r, o, "V", 1, VECTORS_MAX_V, &g->V) &&
           (!kind_has_drafts(g->kind) ||
            as_json_i32(r, o, "gamma", 0, VECTORS_MAX_GAMMA, &g->gamma)) &&
           (!kind_has_uniforms(g->kind) || as_json_bool(r, o, "exact", &g->exact)) &&
           read_source(r, o, g) && read_rows(r, o, g);
}

static bool read_group(as_json *r, const json_t *o, vector_kind kind)
{
    char keys[160];
    vector_group *g = set_group(reader_of(r)->set);
    if (!g) return as_json_no_memory(r);
    g->kind = kind;
    snprintf(keys, sizeof keys, "id clauses rationale %s tests", shared_keys(kind));
    if (!as_json_has_keys(r, o, keys, kind == VECTOR_TRACE ? "draft" : "") || !get_id(r, o, vector_kind_name[kind], &g->id) ||
        !get_clauses(r, o, &g->clauses) || !reader_text(r, o, "rationale", &g->rationale))
        return false;
    if (!json_object_get(reader_of(r)->notes, g->rationale))
        return as_json_bad(r, "rationale", "\"%.40s\" has no note", g->rationale);
    return read_shared(r, o, g) && read_tests(r, o, g);
}

/* -- Files --------------------------------------------------------------------------------- */

static bool read_notes(as_json *r, const json_t *o)
{
    const char *flag, *text;
    json_t *note, *notes = json_object_get(o, "notes");
    if (!json_is_object(notes)) return as_json_bad(r, "notes", "must be an object");
    reader_of(r)->notes = notes;
    as_json_enter_object(r, "notes");
    json_object_foreach(notes, flag, note)
    {
        const size_t mark = as_json_enter_object(r, flag);
        if (!as_json_has_keys(r, note, "bugType effect link", "") ||
            !as_json_text(r, note, "bugType", &text) ||
            !as_json_text(r, note, "effect", &text) || !as_json_text(r, note, "link", &text))
            return false;
        as_json_leave(r, mark);
    }
    as_json_leave(r, 0);
    return true;
}

static bool read_head(as_json *r, const json_t *o, vector_kind *kind)
{
    const char *text;
    int64_t number = 0;
    const json_t *generator = json_object_get(o, "generator");
    if (!as_json_has_keys(r, o, "schema kind arithmetic generator notes groups", "") ||
        !as_json_text(r, o, "schema", &text))
        return false;
    if (strcmp(text, "assay-vectors-1"))
        return as_json_bad(r, "schema", "must be \"assay-vectors-1\"");
    if (!as_json_text(r, o, "kind", &text)) return false;
    *kind = VECTOR_PHILOX;
    while (*kind < VECTOR_KINDS && strcmp(text, vector_kind_name[*kind])) (*kind)++;
    if (*kind == VECTOR_KINDS) return as_json_bad(r, "kind", "is not known");
    if (!as_json_integer(r, o, "arithmetic", 0, 1, &number)) return false;
    as_json_enter_object(r, "generator");
    if (!as_json_has_keys(r, generator, "name version", "") ||
        !as_json_text(r, generator, "name", &text) ||
        !as_json_integer(r, generator, "version", 1, 1000000, &number))
        return false;
    as_json_leave(r, 0);
    return read_notes(r, o);
}

static bool read_file(as_json *r, const json_t *o, vector_kind *kind)
{
    if (!read_head(r, o, kind)) return false;
    const json_t *list = json_object_get(o, "groups");
    const size_t n = json_array_size(list);
    if (!as_json_list(r, list, "groups", 1, VECTORS_MAX_COUNT)) return false;
    for (size_t i = 0; i < n; i++) {
        const size_t mark = as_json_enter(r, "groups", i);
        if (!read_group(r, json_array_get(list, i), *kind)) return false;
        as_json_leave(r, mark);
    }
    return true;
}

static const char remedy[] = "restore the file, or make it anew: assay vectors generate";

bool vectors_parse(vector_set *set, const char *name, const char *text, size_t size, char *why,
                   size_t why_size)
{
    vector_kind kind;
    reader r = {{name, remedy, why, why_size, AS_OK, ""}, set, NULL};
    json_t *root = as_json_parse(&r.json, text, size, JSON_OBJECT);
    const bool ok = root && read_file(&r.json, root, &kind);
    json_decref(root);
    return ok;
}

bool vectors_load_kind(vector_set *set, const char *folder, vector_kind wanted, char *why,
                       size_t why_size)
{
    char file[1200];
    vector_kind kind = wanted;
    snprintf(file, sizeof file, "%s/%s.json", folder, vector_kind_name[wanted]);
    reader r = {{file, remedy, why, why_size, AS_OK, ""}, set, NULL};
    json_t *root = as_json_load(&r.json, JSON_OBJECT);
    bool ok = root && read_file(&r.json, root, &kind);
    if (ok && kind != wanted)
        ok = as_json_bad(&r.json, "kind", "is another one, %s", vector_kind_name[kind]);
    json_decref(root);
    return ok;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every test id occurs once. */
static bool distinct(const vector_set *set, char *why, size_t why_size)
{
    size_t n = 0;
    for (int32_t i = 0; i < set->groups; i++) n += (size_t)set->group[i].tests;
    const char **id = malloc((n + 1) * sizeof *id);
    if (!id) return (void)snprintf(why, why_size, "the memory is too short"), false;
    n = 0;
    for (int32_t i = 0; i < set->groups; i++)
        for (int32_t t = 0; t < set->group[i].tests; t++) id[n++] = set->group[i].test[t].id;
    qsort(id, n, sizeof *id, by_id);
    bool ok = true;
    for (size_t i = 1; ok && i < n; i++)
        if (!strcmp(id[i - 1], id[i])) {
            snprintf(why, why_size, "two vectors have the id %s", id[i]);
            ok = false;
        }
    free(id);
    return ok;
}

/* What differs between a group and its line in the list; false: nothing. */
static bool differs(const vector_group *g, const vector_listed *l, char *what, size_t size)
{
    if (!g)
        snprintf(what, size, "is missing");
    else if (g->kind != l->kind || g->V != l->V || g->gamma != l->gamma)
        snprintf(what, size, "is of another kind, V or gamma than listed");
    else if (g->tests != l->tests)
        snprintf(what, size, "should have %d vectors, found %d", (int)l->tests, (int)g->tests);
    else
        return false;
    return true;
}

/* The groups are the listed ones, each once, with all of their tests and no more (STA-03). */
static bool complete(const vector_set *set, const char *folder, char *why, size_t why_size)
{
    char what[80];
    for (int32_t i = 0; i < vector_list_count; i++) {
        const vector_listed *l = &vector_list[i];
        if (!differs(vectors_find(set, l->id), l, what, sizeof what)) continue;
        snprintf(why, why_size,
                 "%s/%s.json: the group %s %s; restore the file, or make it anew: assay "
                 "vectors generate",
                 folder, vector_kind_name[l->kind], l->id, what);
        return false;
    }
    if (set->groups == vector_list_count) return true;
    snprintf(why, why_size, "%s: %d groups, but %d are listed: one is unknown or twice there",
             folder, (int)set->groups, (int)vector_list_count);
    return false;
}

vector_set *vectors_load(const char *folder, char *why, size_t why_size)
{
    vector_set *set = vectors_new();
    bool ok = set != NULL;
    if (!ok) snprintf(why, why_size, "the memory is too short for the vectors");
    for (int32_t k = 0; ok && k < VECTOR_KINDS; k++)
        ok = vectors_load_kind(set, folder, (vector_kind)k, why, why_size);
    ok = ok && complete(set, folder, why, why_size) && distinct(set, why, why_size);
    if (ok) return set;
    vectors_free(set);
    return NULL;
}
