/* set.c - the memory of a set and the questions it answers; see vectors.h. */
#include <stdlib.h>
#include <string.h>

#include "conformance/panel/panel.h"
#include "vectors/read/model.h"
#include "vectors/read/trace.h"
#include "vectors/read/tree.h"

const char *const vector_kind_name[VECTOR_KINDS] = {"philox", "uniform", "exp",   "arithmetic",
                                                    "trace",  "tree",    "served", "draw",
                                                    "residual", "chain", "match",  "greedy"};

const vector_listed vector_list[] = {
#define GROUP(kind, id, V, gamma, tests) {kind, id, V, gamma, tests},
#include "vectors/read/groups.def"
#undef GROUP
};
const int32_t vector_list_count = sizeof vector_list / sizeof *vector_list;

const vector_note vector_notes[] = {
#define NOTE(flag, bug_type, effect, link) {flag, bug_type, effect, link},
#include "vectors/read/notes.def"
#undef NOTE
};
const int32_t vector_notes_count = sizeof vector_notes / sizeof *vector_notes;

/* -- Memory -------------------------------------------------------------------------------- */

typedef struct block {
    struct block *next;
    max_align_t data[];
} block;

void *set_take(vector_set *set, size_t count, size_t size)
{
    if (size && count > ((size_t)1 << 40) / size) return NULL;
    block *b = calloc(1, sizeof *b + count * size);
    if (!b) return NULL;
    b->next = set->blocks;
    set->blocks = b;
    return b->data;
}

char *set_text(vector_set *set, const char *text, size_t length)
{
    char *copy = set_take(set, length + 1, 1);
    if (copy) memcpy(copy, text, length);
    return copy;
}

vector_group *set_group(vector_set *set)
{
    if (set->groups == set->room) {
        const int32_t room = set->room ? 2 * set->room : 16;
        vector_group *more = realloc(set->group, (size_t)room * sizeof *more);
        if (!more) return NULL;
        set->group = more;
        set->room = room;
    }
    vector_group *g = &set->group[set->groups++];
    memset(g, 0, sizeof *g);
    return g;
}

vector_set *vectors_new(void)
{
    return calloc(1, sizeof(vector_set));
}

void vectors_free(vector_set *set)
{
    if (!set) return;
    for (block *b = set->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(set->group);
    free(set);
}

/* -- Questions ----------------------------------------------------------------------------- */

int32_t vectors_groups(const vector_set *set)
{
    return set->groups;
}

const vector_group *vectors_group(const vector_set *set, int32_t i)
{
    return &set->group[i];
}

const vector_group *vectors_find(const vector_set *set, const char *group_id)
{
    for (int32_t i = 0; i < set->groups; i++)
        if (!strcmp(set->group[i].id, group_id)) return &set->group[i];
    return NULL;
}

bool list_names(const char *list, const char *word, size_t length)
{
    return as_json_names(list, word, length);
}

void list_add(char *list, const char *word)
{
    if (list_names(list, word, strlen(word))) return;
    if (*list) strcat(list, " ");
    strcat(list, word);
}

bool vectors_replayable(const vector_group *g)
{
    return kind_has_rows(g->kind) && g->uniforms != UNIFORMS_WORDS;
}

static bool is_asked_by(const vector_group *g, vector_check by)
{
    switch (by) {
    case VECTORS_OF_TRACES:
        return g->kind == VECTOR_TRACE;
    case VECTORS_OF_TREES:
        return g->kind == VECTOR_TREE;
    default:
        return vectors_replayable(g);
    }
}

size_t vectors_of_clause(const vector_set *set, const char *clause, vector_check by)
{
    size_t count = 0;
    for (int32_t i = 0; i < set->groups; i++) {
        const vector_group *g = &set->group[i];
        if (!is_asked_by(g, by)) continue;
        for (int32_t t = 0; t < g->tests; t++)
            count += list_names(g->test[t].clauses, clause, strlen(clause));
    }
    return count;
}

const vector_answer *vector_alternative(const vector_test *t, const char *policy)
{
    for (int32_t i = 0; i < t->alternatives; i++)
        if (!strcmp(t->alternative[i].policy, policy)) return &t->alternative[i];
    return NULL;
}

int32_t answer_words(const vector_group *g, const vector_answer *a)
{
    switch (g->kind) {
    case VECTOR_PHILOX:
    case VECTOR_UNIFORM:
        return 4;
    case VECTOR_EXP:
        return 1;
    case VECTOR_ARITHMETIC:
        return a->words;
    case VECTOR_TRACE:
    case VECTOR_TREE:
        return 0;
    default:
        return g->V;
    }
}

uint32_t bits_of_float(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

float float_of_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* -- Rows ---------------------------------------------------------------------------------- */

bool row_expand(const vector_row *form, int32_t V, float *value)
{
    panel_row r;
    if (!panel_row_init(&r, V)) return false;
    uint32_t *mixed = malloc((size_t)V * sizeof *mixed);
    const bool ok = mixed && panel_zipf(form->seed, form->row, form->k, form->sharp, &r);
    if (ok && form->form == ROW_MIX) panel_mix(&r, form->lambda, mixed);
    const uint32_t *n = form->form == ROW_MIX ? mixed : r.n;
    for (int32_t t = 0; ok && t < V; t++) value[t] = (float)n[t] / (float)(1 << form->k);
    free(mixed);
    panel_row_free(&r);
    return ok;
}

/* -- Flips --------------------------------------------------------------------------------- */

/* A refusal becomes a token, the last token its neighbour (no token, or no
 * neighbour: one more), bits lose or gain their last one. */
static bool flip_answer(vector_set *set, const vector_group *g, vector_answer *a)
{
    if (g->kind == VECTOR_TRACE) return trace_flip(set, g, a);
    if (g->kind == VECTOR_TREE) return tree_flip(set, g, a);
    const int32_t words = answer_words(g, a);
    int32_t *tokens = set_take(set, (size_t)a->count + 1, sizeof *tokens);
    uint32_t *bits = set_take(set, (size_t)words, sizeof *bits);
    if (!tokens || !bits) return false;
    if (a->tokens) memcpy(tokens, a->tokens, (size_t)a->count * sizeof *tokens);
    if (a->bits) memcpy(bits, a->bits, (size_t)words * sizeof *bits);
    if (a->count == 0 || g->V == 1)
        tokens[a->count++] = 0;
    else
        tokens[a->count - 1] = (tokens[a->count - 1] + 1) % g->V;
    bits[words - 1] ^= 1;
    if (g->kind == VECTOR_UNIFORM) a->accept ^= 1, a->draw ^= 1;
    if (a->bits || g->kind == VECTOR_SERVED) a->bits = bits;
    if (kind_has_drafts(g->kind) || g->kind == VECTOR_DRAW)
        a->tokens = tokens;
    else
        a->count = 0;
    a->error = NULL;
    return true;
}

bool vectors_flip(vector_set *set, int32_t group, int32_t test)
{
    const vector_group *g = &set->group[group];
    vector_test *t = &g->test[test];
    vector_answer *other = set_take(set, (size_t)t->alternatives + 1, sizeof *other);
    if (!other) return false;
    for (int32_t i = 0; i < t->alternatives; i++) {
        other[i] = t->alternative[i];
        if (!flip_answer(set, g, &other[i])) return false;
    }
    t->alternative = other;
    return flip_answer(set, g, &t->expected);
}
