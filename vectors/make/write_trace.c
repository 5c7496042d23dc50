/* write_trace.c - the canonical text of traces; see vectors/read/trace.h. */
#include <string.h>

#include "vectors/read/trace.h"

static void write_list(FILE *f, const int32_t *t, int32_t n)
{
    fputc('[', f);
    for (int32_t i = 0; i < n; i++) fprintf(f, "%s%d", i ? "," : "", (int)t[i]);
    fputc(']', f);
}

static void write_member(FILE *f, const char *key, const int32_t *t, int32_t n)
{
    fprintf(f, "\"%s\": ", key);
    write_list(f, t, n);
}

static void write_lists(FILE *f, const oracle_lists *l)
{
    fputc('[', f);
    for (int32_t i = 0; i < l->n; i++) {
        if (i) fputc(',', f);
        write_list(f, l->l[i].t, l->l[i].n);
    }
    fputc(']', f);
}

static void write_pool(FILE *f, const oracle_pool *pool)
{
    fputs("\"pool\": [", f);
    for (int32_t i = 0; i < pool->keys; i++) {
        fprintf(f, "%s{\"key\": %d, \"values\": ", i ? ", " : "", (int)pool->of[i].key);
        write_lists(f, &pool->of[i].values);
        fputc('}', f);
    }
    fputc(']', f);
}

/* ---- Inputs ----------------------------------------------------------------------- */

static void write_toy(FILE *f, const char *member, const vector_toy *toy, int32_t V)
{
    fprintf(f, "      \"%s\": {", member);
    if (toy->folder) {
        fprintf(f, "\"form\": \"folder\", \"V\": %d, \"name\": \"%s\"},\n", (int)V, toy->folder);
        return;
    }
    if (!toy->automaton) {
        fprintf(f,
                "\"form\": \"hash\", \"V\": %d, \"seed\": \"%016llx\", \"order\": %d, "
                "\"levels\": %d},\n",
                (int)toy->hash.V, (unsigned long long)toy->hash.seed, (int)toy->hash.order,
                (int)toy->hash.levels);
        return;
    }
    const oracle_table *m = &toy->table;
    fprintf(f, "\"form\": \"automaton\", \"V\": %d, \"S\": %d, \"C\": %d, \"start\": %d, ",
            (int)m->V, (int)m->S, (int)m->C, (int)m->start);
    write_member(f, "cls", m->cls, m->V);
    fputs(", ", f);
    write_member(f, "next", m->next, m->S * m->C);
    fputs(", ", f);
    write_member(f, "logits", m->logits, m->S * m->V);
    fputs("},\n", f);
}

void trace_write_model(FILE *f, const vector_group *g)
{
    fprintf(f, "      \"method\": \"%s\",\n", oracle_method_text(g->method));
    write_toy(f, "model", g->toy, g->V);
    if (g->draft) write_toy(f, "draft", g->draft, g->V);
}

static void write_float(FILE *f, const char *key, float x)
{
    fprintf(f, "\"%s\": \"%08x\", ", key, (unsigned)bits_of_float(x));
}

static void write_method(FILE *f, const oracle_method *m)
{
    char word[32];
    int32_t n;
    const char *sizes = oracle_method_sizes(m->name);
    const oracle_switch *s = oracle_method_switches(m->name, &n);
    fputs("\"sizes\": {", f);
    for (int32_t i = 0; *reader_word(sizes, i, word, sizeof word); i++)
        fprintf(f, "%s\"%s\": %d", i ? ", " : "", word, (int)m->size[i]);
    fputs("}, ", f);
    write_member(f, "given", m->given, m->given_n);
    fputs(", \"switches\": {", f);
    for (int32_t i = 0; i < n; i++)
        if (m->sw[i] || !oracle_switch_later(m->name, i))
            fprintf(f, "%s\"%s\": \"%s\"", i ? ", " : "", s[i].name,
                    reader_word(s[i].values, m->sw[i], word, sizeof word));
    fputs("}, ", f);
}

void trace_write_inputs(FILE *f, const vector_test *t)
{
    const oracle_request *q = t->request;
    write_member(f, "prompt", q->prompt, q->n);
    fprintf(f, ", \"budget\": %d, \"eos\": %d, \"positions\": %d, \"rows\": %d, ",
            (int)q->budget, (int)q->eos, (int)q->positions, (int)q->rows);
    write_float(f, "temperature", q->sampling.temperature);
    fprintf(f, "\"top_k\": %d, ", (int)q->sampling.top_k);
    write_float(f, "top_p", q->sampling.top_p);
    write_float(f, "min_p", q->sampling.min_p);
    fprintf(f, "\"seed\": \"%016llx\", ", (unsigned long long)q->seed);
    write_method(f, t->method);
}

/* ---- Answers ---------------------------------------------------------------------- */

static void write_step(FILE *f, const oracle_step *s, bool rounds)
{
    fputc('{', f);
    if (rounds) write_member(f, "drafts", s->drafts.t, s->drafts.n);
    fputs(rounds ? ", \"rows\": " : "\"rows\": ", f);
    write_lists(f, &s->rows);
    fputs(", \"candidates\": ", f);
    write_lists(f, &s->candidates);
    fprintf(f, ", \"accepted\": %d, ", (int)s->accepted);
    write_member(f, "run", s->run.t, s->run.n);
    fputs(", ", f);
    write_member(f, "emitted", s->emitted.t, s->emitted.n);
    fputs(", \"window\": ", f);
    write_lists(f, &s->window);
    fputs(", ", f);
    write_pool(f, &s->pool);
    fputc('}', f);
}

void trace_write(FILE *f, const vector_group *g, const oracle_trace *t)
{
    write_member(f, "tokens", t->tokens.t, t->tokens.n);
    fputs(", \"window\": ", f);
    write_lists(f, &t->window0);
    fputs(", ", f);
    write_pool(f, &t->pool0);
    fputs(", \"steps\": [", f);
    for (int32_t i = 0; i < t->steps; i++) {
        if (i) fputs(", ", f);
        write_step(f, &t->step[i], g->method == ORACLE_OUROBOROS);
    }
    fputc(']', f);
}
