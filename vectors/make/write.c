/* write.c - the canonical text of a file: fixed order of keys, one row and one test a line,
 * "\n". The same set gives the same bytes. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "vectors/read/answer.h"
#include "vectors/read/operation.h"
#include "vectors/read/trace.h"
#include "vectors/read/tree.h"

static void write_list(FILE *f, const char *key, const char *names)
{
    fprintf(f, "\"%s\": [", key);
    for (const char *at = names; *at; at += strspn(at, " ")) {
        const size_t length = strcspn(at, " ");
        fprintf(f, "%s\"%.*s\"", at == names ? "" : ", ", (int)length, at);
        at += length;
    }
    fputs("]", f);
}

static void write_integers(FILE *f, const char *key, const int32_t *list, int32_t n)
{
    fprintf(f, "\"%s\": [", key);
    for (int32_t i = 0; i < n; i++) fprintf(f, "%s%d", i ? ", " : "", (int)list[i]);
    fputs("]", f);
}

static void write_words(FILE *f, const char *key, const uint32_t *word, int32_t n)
{
    fprintf(f, "\"%s\": \"", key);
    for (int32_t i = 0; i < n; i++) fprintf(f, "%s%08x", i ? " " : "", (unsigned)word[i]);
    fputs("\"", f);
}

static void write_hex64(FILE *f, const char *key, uint64_t word)
{
    fprintf(f, "\"%s\": \"%016llx\"", key, (unsigned long long)word);
}

static void write_float(FILE *f, const char *key, float x)
{
    const uint32_t word = bits_of_float(x);
    write_words(f, key, &word, 1);
}

/* -- Rows ---------------------------------------------------------------------------------- */

static void write_row(FILE *f, const char *key, const vector_row *row, const float *value,
                      int32_t V)
{
    static const char *const form[] = {"bits", "units", "zipf", "mix"};
    fprintf(f, "\"%s\": {\"form\": \"%s\", ", key, form[row->form]);
    if (row->form == ROW_BITS) {
        fputs("\"bits\": \"", f);
        for (int32_t t = 0; t < V; t++)
            fprintf(f, "%s%08x", t ? " " : "", (unsigned)bits_of_float(value[t]));
        fputs("\"}", f);
        return;
    }
    if (row->form == ROW_UNITS) {
        fprintf(f, "\"k\": %d, \"n\": [", (int)row->k);
        for (int32_t t = 0; t < V; t++)
            fprintf(f, "%s%d", t ? "," : "", (int)ldexpf(value[t], row->k));
        fputs("]}", f);
        return;
    }
    write_hex64(f, "seed", row->seed);
    fprintf(f, ", \"row\": %u, \"k\": %d, \"sharp\": %d", (unsigned)row->row, (int)row->k,
            (int)row->sharp);
    if (row->form == ROW_MIX) fprintf(f, ", \"lambda\": %u", (unsigned)row->lambda);
    fputs("}", f);
}

static void write_rows(FILE *f, const vector_group *g)
{
    fputs("      \"rows\": [\n", f);
    for (int32_t i = 0; i < g->rows; i++) {
        const int64_t at = (int64_t)i * g->V;
        fputs("        {", f);
        write_row(f, kind_has_logits(g->kind) ? "logits" : g->kind == VECTOR_TREE ? "row" : "p", &g->p_form[i],
                  g->p + at, g->V);
        if (g->q) {
            fputs(", ", f);
            write_row(f, "q", &g->q_form[i], g->q + at, g->V);
        }
        fputs(i + 1 < g->rows ? "},\n" : "}\n", f);
    }
    fputs("      ],\n", f);
}

/* -- Tests --------------------------------------------------------------------------------- */

static int32_t units(const vector_group *g, double u)
{
    return (int32_t)ldexp(u, g->uniform_bits);
}

static void write_uniforms(FILE *f, const vector_group *g, const vector_test *t)
{
    int32_t list[VECTORS_MAX_GAMMA + 2];
    if (g->uniforms == UNIFORMS_NONE || g->kind == VECTOR_TREE) return;
    if (g->uniforms == UNIFORMS_WORDS) write_hex64(f, "U", t->U);
    if (g->uniforms == UNIFORMS_SEED) {
        write_hex64(f, "seed", t->seed);
        fputs(", ", f);
        write_hex64(f, "position", t->position);
    }
    if (g->uniforms == UNIFORMS_UNITS) {
        const int32_t n = g->kind == VECTOR_DRAW    ? 1
                          : g->kind == VECTOR_MATCH ? t->len + 1
                                                    : t->len + 2;
        for (int32_t i = 0; i < n; i++) list[i] = units(g, t->u[i]);
        if (g->kind == VECTOR_DRAW)
            fprintf(f, "\"u\": %d", (int)list[0]);
        else
            write_integers(f, g->kind == VECTOR_MATCH ? "u" : "accept", list,
                           g->kind == VECTOR_MATCH ? n : t->len);
        if (g->kind == VECTOR_CHAIN)
            fprintf(f, ", \"residual\": %d, \"bonus\": %d", (int)list[n - 2], (int)list[n - 1]);
    }
    fputs(", ", f);
}

/* "name": of the i-th word of a list. */
static void write_name(FILE *f, const char *list, int32_t i)
{
    const char *comma = i ? ", " : "";
    for (; i > 0; i--) {
        list += strcspn(list, " ");
        list += strspn(list, " ");
    }
    fprintf(f, "%s\"%.*s\": ", comma, (int)strcspn(list, " "), list);
}

static void write_operation(FILE *f, const vector_group *g, const vector_test *t)
{
    const operation *op = operation_find(g->op);
    const char *at = op->sizes;
    fputs("\"sizes\": {", f);
    for (int32_t i = 0; *at; i++, at += strcspn(at, " "), at += strspn(at, " ")) {
        write_name(f, op->sizes, i);
        fprintf(f, "%d", (int)t->size[i]);
    }
    fputs("}, \"inputs\": {", f);
    for (int32_t i = 0; i < t->inputs; i++) {
        const vector_input *in = &t->input[i];
        write_name(f, op->inputs, i);
        if (in->procedural) {
            fputs("{", f);
            write_hex64(f, "seed", in->seed);
            fprintf(f, ", \"row\": %u, \"e\": %d, \"spread\": %d}", (unsigned)in->row,
                    (int)in->e, (int)in->spread);
            continue;
        }
        fputs("\"", f);
        for (int32_t w = 0; w < in->n; w++)
            fprintf(f, "%s%08x", w ? " " : "", (unsigned)in->word[w]);
        fputs("\"", f);
    }
    fputs("}, ", f);
}

static void write_inputs(FILE *f, const vector_group *g, const vector_test *t)
{
    if (kind_has_drafts(g->kind)) {
        write_integers(f, "rows", t->row, t->len + 1);
        fputs(", ", f);
        write_integers(f, "draft", t->draft, t->len);
        fputs(", ", f);
    } else if (kind_has_rows(g->kind))
        fprintf(f, "\"row\": %d, ", (int)t->row[0]);
    write_uniforms(f, g, t);
    if (g->kind == VECTOR_PHILOX) {
        write_words(f, "counter", t->counter, 4);
        fputs(", ", f);
        write_words(f, "key", t->key, 2);
        fputs(", ", f);
    }
    if (g->kind == VECTOR_UNIFORM) {
        write_hex64(f, "seed", t->seed);
        fputs(", ", f);
        write_hex64(f, "position", t->position);
        fprintf(f, ", \"purpose\": %u, \"index\": %u, ", (unsigned)t->purpose,
                (unsigned)t->index);
    }
    if (g->kind == VECTOR_EXP) write_float(f, "x", t->x), fputs(", ", f);
    if (g->kind == VECTOR_ARITHMETIC) write_operation(f, g, t);
    if (g->kind == VECTOR_TRACE) trace_write_inputs(f, t);
    if (g->kind == VECTOR_TREE) tree_write_inputs(f, g, t);
    if (g->kind == VECTOR_SERVED) {
        write_float(f, "temperature", t->temperature);
        fprintf(f, ", \"top_k\": %d, ", (int)t->top_k);
        write_float(f, "top_p", t->top_p);
        fputs(", ", f);
        write_float(f, "min_p", t->min_p);
        fputs(", ", f);
    }
}

static void write_answer(FILE *f, const vector_group *g, const vector_answer *a)
{
    fputs("{", f);
    if (a->policy) fprintf(f, "\"policy\": \"%s\", ", a->policy);
    if (a->error)
        fprintf(f, "\"error\": \"%s\"", a->error);
    else if (g->kind == VECTOR_TRACE)
        trace_write(f, g, a->trace);
    else if (g->kind == VECTOR_TREE)
        tree_write(f, a);
    else if (g->kind == VECTOR_PHILOX)
        write_words(f, "words", a->bits, 4);
    else if (g->kind == VECTOR_EXP || g->kind == VECTOR_ARITHMETIC)
        write_words(f, "y", a->bits, answer_words(g, a));
    else if (g->kind == VECTOR_SERVED || g->kind == VECTOR_RESIDUAL)
        write_words(f, "row", a->bits, g->V);
    else if (g->kind == VECTOR_UNIFORM) {
        write_words(f, "words", a->bits, 4);
        fprintf(f, ", \"accept\": %u, ", (unsigned)a->accept);
        write_hex64(f, "draw", a->draw);
    } else
        write_integers(f, "tokens", a->tokens, a->count);
    if (a->then_any) fputs(", \"then\": \"any\"", f);
    fputs("}", f);
}

void write_test(FILE *f, const vector_group *g, const vector_test *t)
{
    fprintf(f, "{\"id\": \"%s\", ", t->id);
    write_list(f, "clauses", t->clauses);
    fprintf(f, ", \"comment\": \"%s\", ", t->comment);
    write_list(f, "flags", t->flags);
    fputs(", ", f);
    write_inputs(f, g, t);
    fputs("\"expected\": ", f);
    write_answer(f, g, &t->expected);
    for (int32_t i = 0; i < t->alternatives; i++) {
        fputs(i ? ", " : ", \"alternatives\": [", f);
        write_answer(f, g, &t->alternative[i]);
    }
    fputs(t->alternatives ? "]}" : "}", f);
}

/* -- Files --------------------------------------------------------------------------------- */

static void write_group(FILE *f, const vector_group *g)
{
    fprintf(f, "    {\n      \"id\": \"%s\",\n      ", g->id);
    write_list(f, "clauses", g->clauses);
    fprintf(f, ",\n      \"rationale\": \"%s\",\n", g->rationale);
    if (g->op) fprintf(f, "      \"op\": \"%s\",\n", g->op);
    if (g->kind == VECTOR_TRACE)
        trace_write_model(f, g);
    else if (g->kind == VECTOR_TREE)
        tree_write_group(f, g);
    else if (g->V)
        fprintf(f, "      \"V\": %d,\n", (int)g->V);
    if (kind_has_drafts(g->kind)) fprintf(f, "      \"gamma\": %d,\n", (int)g->gamma);
    if (kind_has_uniforms(g->kind)) {
        fprintf(f, "      \"exact\": %s,\n", g->exact ? "true" : "false");
        if (g->uniforms == UNIFORMS_UNITS)
            fprintf(f, "      \"uniforms\": {\"form\": \"units\", \"bits\": %d},\n",
                    (int)g->uniform_bits);
        else
            fprintf(f, "      \"uniforms\": {\"form\": \"%s\"},\n",
                    g->uniforms == UNIFORMS_WORDS ? "words" : "seed");
    }
    if (g->rows) write_rows(f, g);
    fputs("      \"tests\": [\n", f);
    for (int32_t i = 0; i < g->tests; i++) {
        fputs("        ", f);
        write_test(f, g, &g->test[i]);
        fputs(i + 1 < g->tests ? ",\n" : "\n", f);
    }
    fputs("      ]\n    }", f);
}

static bool uses(const vector_set *set, vector_kind kind, const char *flag)
{
    for (int32_t i = 0; i < set->groups; i++) {
        const vector_group *g = &set->group[i];
        if (g->kind != kind) continue;
        if (!strcmp(g->rationale, flag)) return true;
        for (int32_t t = 0; t < g->tests; t++)
            if (list_names(g->test[t].flags, flag, strlen(flag))) return true;
    }
    return false;
}

static void write_notes(FILE *f, const vector_set *set, vector_kind kind)
{
    bool first = true;
    fputs("  \"notes\": {", f);
    for (int32_t i = 0; i < vector_notes_count; i++) {
        const vector_note *n = &vector_notes[i];
        if (!uses(set, kind, n->flag)) continue;
        fprintf(f,
                "%s\n    \"%s\": {\"bugType\": \"%s\", \"effect\": \"%s\", \"link\": \"%s\"}",
                first ? "" : ",", n->flag, n->bug_type, n->effect, n->link);
        first = false;
    }
    fputs("\n  },\n", f);
}

void write_kind(FILE *f, const vector_set *set, vector_kind kind)
{
    bool first = true;
    fprintf(f,
            "{\n  \"schema\": \"assay-vectors-1\",\n  \"kind\": \"%s\",\n  \"arithmetic\": 1,\n"
            "  \"generator\": {\"name\": \"assay vectors generate\", \"version\": 1},\n",
            vector_kind_name[kind]);
    write_notes(f, set, kind);
    fputs("  \"groups\": [\n", f);
    for (int32_t i = 0; i < set->groups; i++) {
        if (set->group[i].kind != kind) continue;
        if (!first) fputs(",\n", f);
        first = false;
        write_group(f, &set->group[i]);
    }
    fputs("\n  ]\n}\n", f);
}

bool write_folder(const vector_set *set, const char *folder, char *why, size_t why_size)
{
    for (int32_t k = 0; k < VECTOR_KINDS; k++) {
        char file[1200];
        snprintf(file, sizeof file, "%s/%s.json", folder, vector_kind_name[k]);
        FILE *f = fopen(file, "wb");
        if (f) write_kind(f, set, (vector_kind)k);
        const bool written = f && !ferror(f);
        if (f && fclose(f) == 0 && written) continue;
        snprintf(why, why_size, "cannot write %s: %s", file, strerror(errno));
        return false;
    }
    return true;
}

static void networks_file(const char *folder, char *file, size_t size)
{
    snprintf(file, size, "%s/trace_model.json", folder);
}

bool write_networks(const vector_set *set, const char *folder, char *why, size_t why_size)
{
    char file[1200];
    networks_file(folder, file, sizeof file);
    FILE *f = fopen(file, "wb");
    if (f) write_kind(f, set, VECTOR_TRACE);
    const bool written = f && !ferror(f);
    if (f && fclose(f) == 0 && written) return true;
    snprintf(why, why_size, "cannot write %s: %s", file, strerror(errno));
    return false;
}

/* Does the file hold these bytes and no more? */
static bool holds(FILE *f, const char *bytes, size_t size)
{
    size_t i = 0;
    int c;
    while ((c = getc(f)) != EOF && i < size && c == (unsigned char)bytes[i]) i++;
    return c == EOF && i == size;
}

bool networks_same(const vector_set *set, const char *folder, char *why, size_t why_size)
{
    char file[1200], *bytes = NULL;
    size_t size = 0;
    networks_file(folder, file, sizeof file);
    FILE *due = open_memstream(&bytes, &size), *f = fopen(file, "rb");
    if (due) write_kind(due, set, VECTOR_TRACE);
    const bool made = due && fclose(due) == 0, same = made && f && holds(f, bytes, size);
    if (!f)
        snprintf(why, why_size, "cannot read %s: %s", file, strerror(errno));
    else if (!same)
        snprintf(why, why_size, "%s: the oracle writes other bytes", file);
    if (f) fclose(f);
    free(bytes);
    return same;
}
