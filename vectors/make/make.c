/* make.c - see make.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "vectors/make/make.h"

static void fail(maker *m, const char *what)
{
    if (!m->failed && what != m->why) snprintf(m->why, m->why_size, "%s", what);
    m->failed = true;
}

static void *take(maker *m, size_t count, size_t size)
{
    void *memory = set_take(m->set, count, size);
    if (memory) return memory;
    fail(m, "the memory is too short");
    abort(); /* the generator is a tool of the maintainers; nothing of it can go on */
}

static uint64_t seed_of(const char *id)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *id; id++) h = (h ^ (unsigned char)*id) * UINT64_C(0x100000001b3);
    return h;
}

uint64_t make_random(maker *m)
{
    uint64_t z = m->rng += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

int32_t make_below(maker *m, int32_t n)
{
    return (int32_t)((make_random(m) >> 32) * (uint64_t)n >> 32);
}

void make_group(maker *m, const char *id, const char *rationale, bool exact,
                vector_uniforms uniforms, int32_t bits)
{
    vector_group *g = set_group(m->set);
    if (!g) abort();
    m->g = g;
    for (int32_t i = 0; i < vector_list_count; i++)
        if (!strcmp(vector_list[i].id, id)) {
            g->kind = vector_list[i].kind;
            g->id = vector_list[i].id;
            g->V = vector_list[i].V;
            g->gamma = vector_list[i].gamma;
            m->listed = vector_list[i].tests;
        }
    if (!g->id) fail(m, "a group is not in groups.def");
    g->rationale = rationale;
    g->exact = exact;
    g->uniforms = uniforms;
    g->uniform_bits = bits;
    g->test = take(m, MAKE_TESTS, sizeof *g->test);
    const size_t cells = (size_t)MAKE_ROWS * (size_t)g->V + 1;
    g->p = m->p = take(m, cells, sizeof(float));
    m->q = take(m, cells, sizeof(float));
    g->q = kind_has_q(g->kind) ? m->q : NULL;
    g->p_form = m->p_form = take(m, MAKE_ROWS, sizeof(vector_row));
    g->q_form = m->q_form = take(m, MAKE_ROWS, sizeof(vector_row));
    m->rng = seed_of(id);
}

void make_close(maker *m)
{
    vector_group *g = m->g;
    char list[800] = "";
    if (m->failed) return;
    for (int32_t i = 0; i < g->tests; i++)
        for (const char *at = g->test[i].clauses; *at; at += strspn(at, " ")) {
            const size_t length = strcspn(at, " ");
            if (!list_names(list, at, length)) {
                if (*list) strcat(list, " ");
                strncat(list, at, length);
            }
            at += length;
        }
    g->clauses = set_text(m->set, list, strlen(list));
    if (g->tests == m->listed) return;
    char what[160];
    snprintf(what, sizeof what, "%s: %d tests are made, groups.def lists %d; correct the list",
             g->id, (int)g->tests, (int)m->listed);
    fail(m, what);
}

int32_t make_row(maker *m, vector_row p, vector_row q)
{
    const int32_t row = m->g->rows++;
    if (row == MAKE_ROWS) abort();
    m->p_form[row] = p;
    m->q_form[row] = q;
    return row;
}

void make_units(float *row, const int32_t *n, int32_t V, int32_t k)
{
    for (int32_t t = 0; t < V; t++) row[t] = ldexpf((float)n[t], -k);
}

void make_expand(maker *m, int32_t row)
{
    if (!row_expand(&m->p_form[row], m->g->V, make_p(m, row))) abort();
    if (m->g->q && !row_expand(&m->q_form[row], m->g->V, make_q(m, row))) abort();
}

vector_test *make_test(maker *m, const char *flags, const char *comment)
{
    char id[96];
    if (m->g->tests == MAKE_TESTS) abort();
    vector_test *t = &m->g->test[m->g->tests++];
    snprintf(id, sizeof id, "%s.%04d", m->g->id, (int)m->g->tests);
    t->id = set_text(m->set, id, strlen(id));
    t->flags = set_text(m->set, flags, strlen(flags));
    t->comment = set_text(m->set, comment, strlen(comment));
    t->top_p = 1.0f;
    return t;
}

void make_step(maker *m, vector_test *t, int32_t len, const int32_t *row, const int32_t *draft,
               const double *u)
{
    int32_t *rows = take(m, (size_t)len + 1, sizeof *rows);
    int32_t *drafts = take(m, (size_t)len + 1, sizeof *drafts);
    double *uniforms = take(m, (size_t)len + 2, sizeof *uniforms);
    memcpy(rows, row, ((size_t)len + 1) * sizeof *rows);
    if (len) memcpy(drafts, draft, (size_t)len * sizeof *drafts);
    const int32_t n = m->g->kind == VECTOR_DRAW    ? 1
                      : m->g->kind == VECTOR_MATCH ? len + 1
                                                   : len + 2;
    if (u) memcpy(uniforms, u, (size_t)n * sizeof *uniforms);
    t->len = len;
    t->row = rows;
    t->draft = drafts;
    t->u = uniforms;
}

void make_done(maker *m, vector_test *t, const char *clauses)
{
    if (m->failed) return;
    if (!answer_test(m->set, m->g, t, m->why, m->why_size))
        fail(m, m->why);
    else
        t->clauses = clauses ? clauses : answer_clauses(m->set, m->g, t);
}

vector_set *make_all(char *why, size_t why_size)
{
    maker m = {.set = vectors_new(), .why = why, .why_size = why_size};
    if (!m.set) return NULL;
    make_numbers(&m);
    make_arithmetic(&m);
    make_traces(&m);
    make_trees(&m);
    make_rows(&m);
    make_chains(&m);
    make_others(&m);
    if (!m.failed && m.set->groups != vector_list_count)
        fail(&m, "groups.def lists groups that are not made");
    if (!m.failed) return m.set;
    vectors_free(m.set);
    return NULL;
}
