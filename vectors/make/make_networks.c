/* make_networks.c - vectors of the decoding methods on the trained draft model: a file of its
 * own, trace_model.json, of trace.json's form. The logits are the oracle's network's (NET-01 to
 * NET-03), path by path. Clauses JAC, LAH, POOL, ONEH, LKP. */
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/arithmetic/folder.h"
#include "vectors/make/make.h"
#include "vectors/read/trace.h"

enum { NETWORK_POSITIONS = 256, REMEMBERED = 1 << 14, BOS = 256, TEXTS = 2 };

/* ---- The model -------------------------------------------------------------------- */

/* A row of logits that was asked for before: trees hold the same paths step after step. */
typedef struct {
    int32_t n; /* 0: free */
    int32_t *path;
    float *logits; /* [V] */
} known_row;

typedef struct {
    oracle_folder *folder;
    oracle_path *walk;
    int32_t V, at;
    int32_t walked[NETWORK_POSITIONS]; /* [at] */
    known_row *known;                  /* [REMEMBERED] */
} network;

static known_row *place_of(const network *w, const int32_t *path, int32_t n)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (int32_t i = 0; i < n; i++) h = (h ^ (uint32_t)path[i]) * UINT64_C(0x100000001b3);
    return &w->known[h >> 50];
}

/* Goes on from where the path before parts from this one. */
static void walk_to(network *w, const int32_t *path, int32_t n, float *logits)
{
    int32_t same = 0;
    if (n > NETWORK_POSITIONS) abort();
    while (same < w->at && same + 1 < n && w->walked[same] == path[same]) same++;
    oracle_path_cut(w->walk, same);
    for (w->at = same; w->at < n; w->at++)
        oracle_path_step(w->walk, w->walked[w->at] = path[w->at],
                         w->at + 1 == n ? logits : NULL);
}

static void remember(known_row *k, int32_t V, const int32_t *path, int32_t n,
                     const float *logits)
{
    free(k->path);
    if (!k->logits) k->logits = oracle_take((size_t)V, sizeof *k->logits);
    k->path = oracle_take((size_t)n, sizeof *k->path);
    k->n = n;
    memcpy(k->path, path, (size_t)n * sizeof *path);
    memcpy(k->logits, logits, (size_t)V * sizeof *logits);
}

static void network_logits(const void *self, const int32_t *path, int32_t n, float *logits)
{
    network *w = (network *)(uintptr_t)self;
    known_row *k = place_of(w, path, n);
    const size_t size = (size_t)n * sizeof *path;
    if (k->n == n && memcmp(k->path, path, size) == 0) {
        memcpy(logits, k->logits, (size_t)w->V * sizeof *logits);
        return;
    }
    walk_to(w, path, n, logits);
    remember(k, w->V, path, n, logits);
}

static bool network_open(network *w, const char *models, const char *name, char *why,
                         size_t why_size)
{
    char folder[1200];
    snprintf(folder, sizeof folder, "%s/%s", models, name);
    *w = (network){.folder = oracle_folder_open(folder, why, why_size)};
    if (!w->folder) return false;
    const oracle_model *m = oracle_folder_model(w->folder);
    w->V = m->config.V;
    w->walk = oracle_path_new(&oracle_fast, m, NETWORK_POSITIONS);
    w->known = oracle_take(REMEMBERED, sizeof *w->known);
    if (!w->walk) snprintf(why, why_size, "the memory is too short");
    return w->walk != NULL;
}

static void network_close(network *w)
{
    for (int32_t i = 0; w->known && i < REMEMBERED; i++) {
        free(w->known[i].path);
        free(w->known[i].logits);
    }
    free(w->known);
    oracle_path_free(w->walk);
    oracle_folder_close(w->folder);
}

/* ---- Tests ------------------------------------------------------------------------ */

/* Of the kind that the model was trained on; the second repeats itself. */
static const char *const text[TEXTS] = {
    "And it came to pass after these things, that",
    "His offering was one silver charger, one silver bowl, one golden spoon: one",
};

static oracle_request request_of(maker *m, int32_t which, bool warm, int32_t *prompt)
{
    oracle_request q = {.prompt = prompt,
                        .n = 1 + (int32_t)strlen(text[which]),
                        .budget = 24,
                        .eos = -1,
                        .sampling = {warm ? 0.75f : 0, 0, 1, 0},
                        .seed = make_random(m)};
    prompt[0] = BOS;
    for (int32_t i = 1; i < q.n; i++) prompt[i] = (unsigned char)text[which][i - 1];
    return q;
}

static void add(maker *m, int32_t which, bool warm, const oracle_method *method)
{
    int32_t prompt[NETWORK_POSITIONS];
    const oracle_request q = request_of(m, which, warm, prompt);
    vector_test *t = make_test(m, "", "");
    t->request = trace_keep_request(m->set, &q);
    t->method = trace_keep_method(m->set, method);
    if (!t->request || !t->method) abort();
    make_done(m, t, NULL);
}

/* A group of `listed` tests on the network. */
static void group(maker *m, const char *id, oracle_method_name method, network *w,
                  const char *name, int32_t listed)
{
    const bool window = method == ORACLE_LOOKAHEAD;
    vector_toy *toy = set_take(m->set, 1, sizeof *toy);
    vector_group *g = set_group(m->set);
    if (!toy || !g) abort();
    toy->folder = set_text(m->set, name, strlen(name));
    toy->network = (oracle_lm){w->V, network_logits, w};
    *g = (vector_group){.kind = VECTOR_TRACE,
                        .id = set_text(m->set, id, strlen(id)),
                        .rationale = window ? "window" : "steps",
                        .V = w->V,
                        .toy = toy,
                        .method = method,
                        .test = set_take(m->set, MAKE_TESTS, sizeof *g->test)};
    if (!g->id || !g->test) abort();
    m->g = g;
    m->listed = listed;
    m->rng = UINT64_C(0xa55a) + (uint64_t)m->set->groups;
}

/* Each switch of the preset as it is; sizes that keep trees small. */
static void lookahead(maker *m, network *w, const char *name, const char *preset)
{
    static const int32_t size[TEXTS][3] = {{4, 3, 3}, {2, 4, 2}};
    const bool greedy_only = !strcmp(preset, "trtllm");
    char id[64];
    snprintf(id, sizeof id, "trace.lookahead.%s.%s", preset, name);
    group(m, id, ORACLE_LOOKAHEAD, w, name, greedy_only ? TEXTS : 2 * TEXTS);
    for (int32_t warm = 0; warm < (greedy_only ? 1 : 2); warm++)
        for (int32_t i = 0; i < TEXTS; i++) {
            oracle_method x = {.name = ORACLE_LOOKAHEAD,
                               .size = {size[i][0], size[i][1], size[i][2]}};
            oracle_preset(&x, preset);
            add(m, i, warm, &x);
        }
    make_close(m);
}

static void jacobi(maker *m, network *w, const char *name)
{
    char id[64];
    snprintf(id, sizeof id, "trace.jacobi.%s", name);
    group(m, id, ORACLE_JACOBI, w, name, TEXTS);
    for (int32_t i = 0; i < TEXTS; i++) {
        oracle_method x = {.name = ORACLE_JACOBI, .size = {8, ' ', 0}};
        x.sw[JACOBI_INIT] = i ? JACOBI_PROMPT : JACOBI_PAD;
        add(m, i, false, &x);
    }
    make_close(m);
}

static void from_history(maker *m, network *w, const char *name, const char *preset)
{
    char id[64];
    snprintf(id, sizeof id, "trace.%s.%s.%s", oracle_method_text(ORACLE_LOOKUP), preset, name);
    group(m, id, ORACLE_LOOKUP, w, name, 2 * TEXTS);
    for (int32_t k = 0; k < 2 * TEXTS; k++) {
        oracle_method x = {.name = ORACLE_LOOKUP};
        oracle_preset(&x, preset);
        x.sw[LKP_RULE] = k / TEXTS ? LKP_RULE_ONEHOT : x.sw[LKP_RULE];
        add(m, k % TEXTS, k / TEXTS, &x);
    }
    make_close(m);
}

vector_set *make_networks(const char *models, char *why, size_t why_size)
{
    static const char name[] = "draft";
    static const char *const preset[] = {"paper", "lade", "llamacpp", "trtllm"};
    maker m = {.set = vectors_new(), .why = why, .why_size = why_size};
    network w = {0};
    if (!m.set) return NULL;
    m.failed = !network_open(&w, models, name, why, why_size);
    if (!m.failed) {
        jacobi(&m, &w, name);
        for (int32_t i = 0; i < 4; i++) lookahead(&m, &w, name, preset[i]);
        from_history(&m, &w, name, "original");
        from_history(&m, &w, name, "hf");
    }
    for (int32_t i = 0; i < m.set->groups; i++)
        ((vector_toy *)(uintptr_t)m.set->group[i].toy)->network = (oracle_lm){0};
    network_close(&w);
    if (!m.failed) return m.set;
    vectors_free(m.set);
    return NULL;
}
