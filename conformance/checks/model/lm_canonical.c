/* lm.canonical - the bits of chapter 1 through the network of chapter 2: logits, keys and
 * values of token paths, against the oracle's network, which walks the same paths over the same
 * folder with its own reader (oracle/arithmetic/transformer.h). From the full level on some paths are
 * walked in MPFR at 24 bits, which is the definition; the rest in the oracle's fast arithmetic,
 * which tests/oracle holds against it. The small models bring what the trained pair lacks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm.h"
#include "conformance/oracle/arithmetic/folder.h"

static const char *const models[] = {"long", "biased", "normed", "draft", "target"};
enum { MODELS = 5, TARGET = 4, ROWS = 33 };
enum { FAST, MPFR }; /* which of the oracle's arithmetics */

/* Positions of a case: three chunks of attention at least for the cheapest model, two for most.
 */
static int32_t length_of(int32_t model, check_level level)
{
    static const int32_t smoke[MODELS] = {25, 66, 150, 12, 4},
                         full[MODELS] = {130, 100, 200, 100, 30};
    return level == LEVEL_SMOKE  ? smoke[model]
           : level == LEVEL_FULL ? full[model]
                                 : 2 * full[model];
}

static void plan(check_plan *p, check_level level)
{
    for (int32_t m = 0; m < MODELS; m++)
        for (int32_t i = 0; i < (level == LEVEL_DEEP                   ? 6
                                 : m == TARGET && level == LEVEL_SMOKE ? 1
                                                                       : 2);
             i++) {
            check_case *c = plan_case(p, &check_lm_canonical, "%s-%d", models[m], (int)i);
            c->model.folder = m;
            c->model.kind = FAST;
            c->model.tokens = length_of(m, level);
            c->cost = 600.0 * c->model.tokens;
        }
    static const int32_t few[MODELS] = {12, 8, 70, 12, 2};
    for (int32_t m = 0; level > LEVEL_SMOKE && m < MODELS; m++) {
        check_case *c = plan_case(p, &check_lm_canonical, "%s-mpfr", models[m]);
        c->model.folder = m;
        c->model.kind = MPFR;
        c->model.tokens = few[m];
        c->cost = 4e5;
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    if (!lm_claimed(tested, models[c->model.folder], LM_BITS, why, size)) return false;
    if (client_claims(tested)->lm_arithmetic == IUT_LM_CANONICAL) return true;
    snprintf(why, size, "lm_arithmetic is not canonical");
    return false;
}

typedef struct {
    lm m;
    const oracle_ops *ops;
    int32_t n;
    int32_t *token; /* [n] */
    float *got;     /* [n][V] */
    float *row;     /* [V] */
    float *key, *value;
} job;

/* The cached entries of position t, against the oracle's. */
static bool right_entries(job *j, const oracle_path *path, int32_t t)
{
    lm *m = &j->m;
    const int32_t kv = m->kv_heads * m->head_dim;
    for (int32_t i = 0; i < m->layers * kv; i++) {
        const int32_t layer = i / kv, head = i % kv / m->head_dim, k = i % m->head_dim;
        const float key = oracle_path_key(path, layer, head, t)[k],
                    value = oracle_path_value(path, layer, head, t)[k];
        const int64_t at = (int64_t)t * m->layers * kv + i;
        m->r->compared += 2;
        if (memcmp(&key, &j->key[at], 4) == 0 && memcmp(&value, &j->value[at], 4) == 0)
            continue;
        const bool of_key = memcmp(&key, &j->key[at], 4) != 0;
        result_set(
            m->r, STATE_FAIL,
            "position %d, layer %d: the %s of KV head %d, entry %d, is %.9g where %.9g is "
            "due",
            (int)t, (int)layer, of_key ? "key" : "value", (int)head, (int)k,
            (double)(of_key ? j->key[at] : j->value[at]), (double)(of_key ? key : value));
        const int64_t first = ((int64_t)t * m->layers + layer) * kv;
        m->clause = "KV-02";
        lm_tell_entries(m, 0, t, layer, j->key + first, j->value + first);
        return false;
    }
    return true;
}

static bool read_entries(job *j)
{
    lm *m = &j->m;
    const int32_t count = j->n * m->layers;
    const size_t size = (size_t)count * (size_t)m->kv_heads * (size_t)m->head_dim;
    int32_t *index = calloc(3 * (size_t)count, sizeof *index);
    j->key = malloc(size * sizeof *j->key);
    j->value = malloc(size * sizeof *j->value);
    if (!index || !j->key || !j->value) {
        free(index);
        result_set(m->r, STATE_ERROR, "the suite is short of memory");
        return false;
    }
    for (int32_t i = 0; i < count; i++) {
        index[count + i] = i % m->layers;
        index[2 * count + i] = i / m->layers;
    }
    iut_cache_batch b = {sizeof b,          count,  index,   index + count,
                         index + 2 * count, j->key, j->value};
    const bool ok = result_call(m->r, m->x, "cache_read", client_cache_read(m->x->iut, &b));
    free(index);
    return ok;
}

static bool fits(job *j, const oracle_config *c)
{
    const lm *m = &j->m;
    if (m->V == c->V && m->layers == c->layers && m->kv_heads == c->kv_heads &&
        m->head_dim == c->head_dim)
        return true;
    result_set(m->r, STATE_FAIL,
               "model: V %d, %d layers, %d KV heads of %d, where the folder has %d, %d, %d, %d",
               (int)m->V, (int)m->layers, (int)m->kv_heads, (int)m->head_dim, (int)c->V,
               (int)c->layers, (int)c->kv_heads, (int)c->head_dim);
    return false;
}

static bool walk(job *j, oracle_path *path)
{
    for (int32_t t = 0; t < j->n; t++) {
        oracle_path_step(path, j->token[t], j->row);
        if (!lm_same_logits(&j->m, j->got + (int64_t)t * j->m.V, j->row, 1,
                            "the logits after %d tokens", (int)t + 1) ||
            (j->m.cache && !right_entries(j, path, t)))
            return false;
    }
    return true;
}

static bool judge(job *j)
{
    char why[400] = "the memory is too short";
    oracle_folder *folder = oracle_folder_open(j->m.folder, why, sizeof why);
    const oracle_model *model = folder ? oracle_folder_model(folder) : NULL;
    oracle_path *path = model ? oracle_path_new(j->ops, model, j->n) : NULL;
    bool ok = false;
    if (!path)
        result_set(j->m.r, STATE_ERROR, "oracle: %s", why);
    else
        ok = fits(j, &model->config) && walk(j, path);
    oracle_path_free(path);
    oracle_folder_close(folder);
    return ok;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    job j = {.n = c->model.tokens, .ops = c->model.kind == MPFR ? &oracle_mpfr : &oracle_fast};
    if (lm_open(&j.m, x, r, models[c->model.folder], 1, c->model.tokens, ROWS)) {
        j.m.clause = "LAY-06";
        j.token = malloc((size_t)j.n * sizeof *j.token);
        j.got = lm_floats(&j.m, j.n);
        j.row = lm_floats(&j.m, 1);
        if (!j.token) result_set(r, STATE_ERROR, "the suite is short of memory");
        if (j.token) lm_tokens(&j.m, &rng, j.token, j.n);
        if (j.token && j.got && j.row && lm_fill(&j.m, 0, 0, j.token, j.n, ROWS, j.got) &&
            (!j.m.cache || read_entries(&j)) && judge(&j))
            result_set(r, STATE_PASS, "%d positions, %lld logit rows and entries, all the bits",
                       (int)j.n, (long long)r->compared);
        lm_conclude(&j.m);
    }
    free(j.token);
    free(j.got);
    free(j.row);
    free(j.key);
    free(j.value);
    lm_close(&j.m);
}

const check check_lm_canonical = {
    .name = "lm.canonical",
    .clauses = "ARI-01 ARI-02 ARI-03 ARI-04 ARI-05 ARI-06 ARI-07 ARI-08 ARI-09 ARI-10 ARI-11 "
               "ARI-12 ARI-13 ARI-14 ARI-15 ARI-16 ARI-17 ARI-18 ARI-19 ARI-20 ARI-21 NET-01 "
               "NET-02 NET-03 KV-02 TREE-04 LAY-06",
    .summary = "logits, keys and values have the bits of chapters 1 and 2",
    .plan = plan,
    .claimed = claimed,
    .run = run,
};
