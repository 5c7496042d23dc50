/* lm_paths.c - see lm_paths.h. The paths are a tree by common prefixes; filling it walks every edge once. */
#include "conformance/checks/model/lm_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/arithmetic/folder.h"

void lm_paths_free(lm_paths *p)
{
    for (int32_t i = 0; i < p->count; i++) {
        free(p->path[i].logits);
        free(p->path[i].key);
    }
    free(p->path);
    *p = (lm_paths){0};
}

static int32_t add(lm_paths *p, int32_t parent, int32_t token)
{
    if (p->count == p->room) {
        const int32_t room = 2 * p->room + 256;
        lm_path *more = realloc(p->path, (size_t)room * sizeof *more);
        if (!more) {
            p->failed = true;
            return -1;
        }
        p->path = more;
        p->room = room;
    }
    p->path[p->count] = (lm_path){.parent = parent, .token = token, .child = -1, .sibling = -1};
    return p->count++;
}

int32_t lm_path_root(lm_paths *p)
{
    return p->count > 0 ? 0 : add(p, -1, -1);
}

int32_t lm_path_step(lm_paths *p, int32_t from, int32_t token)
{
    if (from < 0) return -1;
    for (int32_t i = p->path[from].child; i >= 0; i = p->path[i].sibling)
        if (p->path[i].token == token) return i;
    const int32_t i = add(p, from, token);
    if (i < 0) return -1;
    p->path[i].length = p->path[from].length + 1;
    p->path[i].sibling = p->path[from].child;
    p->path[from].child = i;
    return i;
}

int32_t lm_path_walk(lm_paths *p, int32_t from, const int32_t *token, int32_t n)
{
    for (int32_t i = 0; i < n; i++) from = lm_path_step(p, from, token[i]);
    return from;
}

void lm_path_ask(lm_paths *p, int32_t path, unsigned what)
{
    if (path > 0) p->path[path].asked |= what;
}

/* ---- Who walks. ------------------------------------------------------------------------------ */

/* A run without drafts, the oracle's or the implementation's own. */
typedef struct {
    lm *m;
    oracle_folder *folder;
    oracle_path *path; /* NULL: the implementation walks */
    int32_t length;
} walker;

static bool short_of_memory(lm *m)
{
    result_set(m->r, STATE_ERROR, "the suite is short of memory");
    return false;
}

/* The shape that the implementation told is the folder's. */
static bool right_shape(const lm *m, const oracle_config *c)
{
    if (m->V == c->V && m->layers == c->layers && m->kv_heads == c->kv_heads && m->head_dim == c->head_dim) return true;
    result_set(m->r, STATE_FAIL, "model: V %d, %d layers, %d KV heads of %d, where the folder has %d, %d, %d, %d",
               (int)m->V, (int)m->layers, (int)m->kv_heads, (int)m->head_dim, (int)c->V, (int)c->layers, (int)c->kv_heads,
               (int)c->head_dim);
    return false;
}

static bool oracle_opens(walker *w, int32_t longest)
{
    char why[400] = "the memory is too short";
    w->folder = oracle_folder_open(w->m->folder, why, sizeof why);
    const oracle_model *model = w->folder ? oracle_folder_model(w->folder) : NULL;
    w->path = model ? oracle_path_new(&oracle_fast, model, longest) : NULL;
    if (w->path) return right_shape(w->m, &model->config);
    result_set(w->m->r, STATE_ERROR, "oracle: %s", why);
    return false;
}

static bool walker_open(walker *w, lm *m, int32_t longest)
{
    *w = (walker){.m = m};
    if (client_claims(m->x->iut)->lm_arithmetic == IUT_LM_CANONICAL) return oracle_opens(w, longest);
    m->sequences = 1, m->positions = longest, m->rows = 1;
    return lm_reload(m, 0);
}

static void walker_close(walker *w)
{
    oracle_path_free(w->path);
    oracle_folder_close(w->folder);
}

static bool walker_cut(walker *w, int32_t length)
{
    if (length == w->length) return true;
    w->length = length;
    if (!w->path) return lm_truncate(w->m, 0, length);
    oracle_path_cut(w->path, length);
    return true;
}

static bool walker_step(walker *w, int32_t token, float *logits)
{
    if (!w->path) return lm_fill(w->m, 0, w->length++, &token, 1, 1, logits);
    oracle_path_step(w->path, token, logits);
    w->length++;
    return true;
}

/* The entries of the last position. */
static bool walker_read(walker *w, float *key, float *value)
{
    const lm *m = w->m;
    const int32_t last = w->length - 1, head = m->head_dim;
    if (!w->path) return lm_read_position(w->m, 0, last, key, value);
    for (int32_t i = 0; i < m->layers * m->kv_heads; i++) {
        const int32_t layer = i / m->kv_heads, h = i % m->kv_heads;
        memcpy(key + (int64_t)i * head, oracle_path_key(w->path, layer, h, last), (size_t)head * sizeof *key);
        memcpy(value + (int64_t)i * head, oracle_path_value(w->path, layer, h, last), (size_t)head * sizeof *value);
    }
    return true;
}

/* ---- Filling. -------------------------------------------------------------------------------- */

/* Marks the paths that lead to one that is asked for; the longest of those, 0: there is none. */
static int32_t mark(lm_paths *p)
{
    int32_t longest = 0;
    for (int32_t i = 0; i < p->count; i++) p->path[i].on_the_way = false;
    for (int32_t i = 1; i < p->count; i++) {
        if (!(p->path[i].asked & ~p->path[i].known)) continue;
        if (p->path[i].length > longest) longest = p->path[i].length;
        for (int32_t k = i; k > 0 && !p->path[k].on_the_way; k = p->path[k].parent) p->path[k].on_the_way = true;
    }
    return longest;
}

static bool room_for(const lm *m, lm_path *a, unsigned due)
{
    const size_t entries = (size_t)m->layers * (size_t)m->kv_heads * (size_t)m->head_dim;
    if ((due & PATH_LOGITS) && !a->logits) a->logits = malloc((size_t)m->V * sizeof *a->logits);
    if ((due & PATH_ENTRIES) && !a->key) a->key = malloc(2 * entries * sizeof *a->key);
    if (a->key) a->value = a->key + entries;
    return (!(due & PATH_LOGITS) || a->logits) && (!(due & PATH_ENTRIES) || a->key);
}

/* From the walker's place, its parent, to this path. */
static bool visit(walker *w, lm_path *a)
{
    const unsigned due = a->asked & ~a->known;
    if (!room_for(w->m, a, due)) return short_of_memory(w->m);
    if (!walker_cut(w, a->length - 1) || !walker_step(w, a->token, due & PATH_LOGITS ? a->logits : NULL) ||
        ((due & PATH_ENTRIES) && !walker_read(w, a->key, a->value)))
        return false;
    a->known |= due;
    a->on_the_way = false;
    return true;
}

/* A child that was not visited yet, or -1. */
static int32_t next_child(const lm_paths *p, int32_t at)
{
    int32_t i = p->path[at].child;
    while (i >= 0 && !p->path[i].on_the_way) i = p->path[i].sibling;
    return i;
}

bool lm_paths_fill(lm_paths *p, lm *m)
{
    walker w;
    if (p->failed) return short_of_memory(m);
    const int32_t longest = mark(p);
    if (longest == 0) return true;
    bool ok = walker_open(&w, m, longest);
    for (int32_t at = 0; ok && at >= 0;) {
        const int32_t next = next_child(p, at);
        if (next >= 0) ok = visit(&w, &p->path[next]);
        at = next >= 0 ? next : p->path[at].parent;
    }
    walker_close(&w);
    return ok;
}
