/* traces.c - reading and writing assay-traces-1; see traces.h. */
#include "vectors/read/traces.h"

#include <stdlib.h>
#include <string.h>

#include "vectors/read/trace.h"

struct traces {
    const vector_set *vectors;
    vector_set *memory; /* of everything read, this included */
    const char *name;
    const vector_answer **observed; /* one a vector, group after group; NULL: none */
};

/* ---- The place of a vector ------------------------------------------------------------------
 */

static int32_t tests_before(const vector_set *vectors, int32_t group)
{
    int32_t n = 0;
    for (int32_t i = 0; i < group; i++) n += vectors_group(vectors, i)->tests;
    return n;
}

static const vector_answer **place(const traces *t, const vector_group *g)
{
    return t->observed + tests_before(t->vectors, (int32_t)(g - vectors_group(t->vectors, 0)));
}

/* The trace vector of that id: its group, or NULL. */
static const vector_group *find(const vector_set *vectors, const char *id, int32_t *test)
{
    for (int32_t i = 0; i < vectors_groups(vectors); i++) {
        const vector_group *g = vectors_group(vectors, i);
        const size_t length = strlen(g->id);
        if (g->kind != VECTOR_TRACE || strncmp(g->id, id, length) || id[length] != '.')
            continue;
        for (*test = 0; *test < g->tests; ++*test)
            if (!strcmp(g->test[*test].id, id)) return g;
    }
    return NULL;
}

/* ---- Reading ------------------------------------------------------------------------------
 */

static bool read_entry(as_json *r, traces *t, const json_t *o)
{
    const char *id = "";
    int32_t test = 0;
    if (!as_json_has_keys(r, o, "id observed", "") || !reader_text(r, o, "id", &id))
        return false;
    const vector_group *g = find(t->vectors, id, &test);
    if (!g) return as_json_bad(r, "id", "\"%.60s\" is no trace vector", id);
    if (place(t, g)[test]) return as_json_bad(r, "id", "\"%.60s\" comes twice", id);
    vector_answer *a = reader_take(r, 1, sizeof *a);
    if (!a) return false;
    place(t, g)[test] = a;
    const size_t mark = as_json_enter_object(r, "observed");
    if (!trace_read_answer(r, g, &g->test[test], json_object_get(o, "observed"), a))
        return false;
    as_json_leave(r, mark);
    return true;
}

static bool read_file(as_json *r, traces *t, const json_t *o)
{
    const char *schema = "";
    const json_t *list = json_object_get(o, "traces");
    if (!as_json_has_keys(r, o, "schema name traces", "") ||
        !reader_text(r, o, "schema", &schema) || !reader_text(r, o, "name", &t->name))
        return false;
    if (strcmp(schema, "assay-traces-1"))
        return as_json_bad(r, "schema", "must be \"assay-traces-1\"");
    if (!as_json_list(r, list, "traces", 0, VECTORS_MAX_COUNT)) return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const size_t mark = as_json_enter(r, "traces", i);
        if (!read_entry(r, t, json_array_get(list, i))) return false;
        as_json_leave(r, mark);
    }
    return true;
}

/* Empty; NULL when memory is short. */
static traces *begin(const vector_set *vectors)
{
    vector_set *memory = vectors_new();
    traces *t = memory ? set_take(memory, 1, sizeof *t) : NULL;
    const size_t all = (size_t)tests_before(vectors, vectors_groups(vectors));
    if (t) *t = (traces){vectors, memory, "", set_take(memory, all + 1, sizeof *t->observed)};
    if (t && t->observed) return t;
    vectors_free(memory);
    return NULL;
}

/* The traces of the root, which it releases. */
static traces *read_root(reader *r, const vector_set *vectors, json_t *root)
{
    traces *t = root ? begin(vectors) : NULL;
    if (root && !t) as_json_no_memory(&r->json);
    if (t) r->set = t->memory;
    const bool ok = t && read_file(&r->json, t, root);
    json_decref(root);
    if (ok) return t;
    traces_free(t);
    return NULL;
}

static const char remedy[] =
    "`assay traces write FILE` writes an example, vectors/README.md says what it means";

traces *traces_parse(const vector_set *vectors, const char *name, const char *text, size_t size,
                     char *why, size_t why_size)
{
    reader r = {{name, remedy, why, why_size, AS_OK, ""}, NULL, NULL};
    return read_root(&r, vectors, as_json_parse(&r.json, text, size, JSON_OBJECT));
}

traces *traces_load(const vector_set *vectors, const char *file, char *why, size_t why_size)
{
    reader r = {{file, remedy, why, why_size, AS_OK, ""}, NULL, NULL};
    return read_root(&r, vectors, as_json_load(&r.json, JSON_OBJECT));
}

void traces_free(traces *t)
{
    if (t) vectors_free(t->memory);
}

/* ---- Questions ------------------------------------------------------------------------------
 */

const char *traces_name(const traces *t)
{
    return t->name;
}

int32_t traces_of_group(const traces *t, const vector_group *g)
{
    int32_t n = 0;
    for (int32_t i = 0; i < g->tests; i++) n += place(t, g)[i] != NULL;
    return n;
}

const vector_answer *traces_observed(const traces *t, const vector_group *g, int32_t test)
{
    return place(t, g)[test];
}

/* ---- Writing ------------------------------------------------------------------------------
 */

static void write_text(FILE *f, const char *text)
{
    json_t *s = json_string(text);
    if (!s || json_dumpf(s, f, JSON_ENCODE_ANY | JSON_ENSURE_ASCII)) fputs("\"?\"", f);
    json_decref(s);
}

void traces_write_head(FILE *f, const char *name)
{
    fputs("{\"schema\": \"assay-traces-1\", \"name\": ", f);
    write_text(f, name);
    fputs(", \"traces\": [\n", f);
}

void traces_write_one(FILE *f, bool first, const vector_group *g, const char *id, const oracle_trace *observed)
{
    fprintf(f, "%s{\"id\": \"%s\", \"observed\": {", first ? "" : ",\n", id);
    if (*observed->error) {
        fputs("\"error\": ", f);
        write_text(f, observed->error);
    } else {
        trace_write(f, g, observed);
    }
    fputs("}}", f);
}

void traces_write_end(FILE *f)
{
    fputs("\n]}\n", f);
}
