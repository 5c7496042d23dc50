/* lm.c - see lm.h. */
#include "conformance/checks/model/lm.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/model/lm_explain.h"
#include "conformance/checks/model/lm_small.h"

const char *const lm_prompts[LM_PROMPTS] = {
    "In the beginning God created the heaven and the earth. And the ear",
    "And it came to pass in those days, that there went out a decree fr",
    "The LORD is my shepherd; I shall not want. He maketh me to lie down",
    "And these are the names of the children of Israel, which came into ",
    "Blessed are the poor in spirit: for theirs is the kingdom of heaven",
    "Then answered Job and said, How long will ye vex my soul, and break"};

/* ---- Claims. --------------------------------------------------------------------- */

static bool serves(const client *tested, uint8_t architecture, int32_t V, char *why, size_t size)
{
    static const char *const name[] = {"Llama", "Qwen2", "Qwen3"};
    const iut_claims *m = client_claims(tested);
    if (!(CLAIMED(m, lm_architectures) & architecture))
        snprintf(why, size, "lm_architectures has no %s", name[architecture / 2]);
    else if (m->max_vocab > 0 && V > m->max_vocab)
        snprintf(why, size, "max_vocab is %d", (int)m->max_vocab);
    else
        return true;
    return false;
}

bool lm_serves_kind(const client *tested, uint8_t architecture, int32_t V, char *why, size_t size)
{
    if (client_claims(tested)->models != IUT_MODELS_EXPORTED) return serves(tested, architecture, V, why, size);
    snprintf(why, size, "models are those of `assay models export` alone");
    return false;
}

bool lm_serves(const client *tested, const char *model, char *why, size_t size)
{
    const lm_form *small = lm_small_form(model);
    if (!small) return serves(tested, IUT_LLAMA, LM_TRAINED, why, size);
    return small->flat ? serves(tested, small->architecture, small->V, why, size)
                       : lm_serves_kind(tested, small->architecture, small->V, why, size);
}

static bool has_operations(const client *tested, char *why, size_t size)
{
    static const iut_op all[] = {OP_MODEL, OP_FORWARD, OP_COMMIT, OP_TRUNCATE};
    for (int i = 0; i < 4; i++)
        if (!check_has(tested, all[i], why, size)) return false;
    return true;
}

static bool has(const client *tested, unsigned needs, char *why, size_t size)
{
    if ((needs & LM_BITS) && client_claims(tested)->lm_arithmetic == 0)
        return (void)snprintf(why, size, "lm_arithmetic is not said"), false;
    return (!(needs & LM_CACHE) || check_has(tested, OP_CACHE_READ, why, size)) &&
           (!(needs & LM_POISON) || check_has(tested, OP_CACHE_POISON, why, size));
}

bool lm_claimed(const client *tested, const char *model, unsigned needs, char *why, size_t size)
{
    return has_operations(tested, why, size) && lm_serves(tested, model, why, size) && has(tested, needs, why, size);
}

bool lm_claimed_kind(const client *tested, uint8_t architecture, int32_t V, unsigned needs, char *why, size_t size)
{
    return has_operations(tested, why, size) && lm_serves_kind(tested, architecture, V, why, size) &&
           has(tested, needs, why, size);
}

/* ---- Open and close. ------------------------------------------------------------- */

bool lm_folder(lm *m, const char *model)
{
    char why[300] = "";
    if (lm_small_form(model)) {
        m->folder = lm_small_folder(model, why, sizeof why);
        if (!m->folder) result_set(m->r, STATE_ERROR, "%s", why);
        return m->folder != NULL;
    }
    snprintf(m->trained, sizeof m->trained, "%.500s/models/%s/config.json",
             m->x->vectors ? m->x->vectors : "vectors", model);
    FILE *f = fopen(m->trained, "r");
    if (!f) {
        result_set(m->r, STATE_ERROR, "%s is missing; restore the folder of the vectors",
                   m->trained);
        return false;
    }
    fclose(f);
    *strrchr(m->trained, '/') = 0;
    m->folder = m->trained;
    return true;
}

bool lm_reload(lm *m, uint32_t layout_seed)
{
    int32_t shape[4];
    iut_model load = {sizeof load, m->folder,   m->sequences, m->positions,
                      m->rows,     layout_seed, shape};
    if (!result_call(m->r, m->x, "model", client_model(m->x->iut, &load))) return false;
    m->V = shape[0], m->layers = shape[1], m->kv_heads = shape[2], m->head_dim = shape[3];
    lm_trail_load(m->trail, &load);
    return true;
}

void lm_begin(lm *m, const check_context *x, check_result *r)
{
    *m = (lm){.x = x,
              .r = r,
              .cache = client_has(x->iut, OP_CACHE_READ),
              .poison = client_has(x->iut, OP_CACHE_POISON)};
}

bool lm_open(lm *m, const check_context *x, check_result *r, const char *model,
             int32_t sequences, int32_t positions, int32_t rows)
{
    lm_begin(m, x, r);
    m->sequences = sequences, m->positions = positions, m->rows = rows;
    m->trail = calloc(1, sizeof *m->trail);
    return lm_folder(m, model) && lm_reload(m, 0);
}

void lm_close(lm *m)
{
    free(m->entries);
    m->entries = NULL;
    if (m->trail) lm_trail_free(m->trail);
    free(m->trail);
    m->trail = NULL;
}

void lm_conclude(lm *m)
{
    char text[sizeof m->r->detail];
    const lm_cause *c = &m->cause;
    if (m->r->state != STATE_FAIL || !m->clause) return;
    snprintf(text, sizeof text, "%s", m->r->detail);
    snprintf(m->r->detail, sizeof m->r->detail, "%s: %.440s%s%s", c->named ? c->clause : m->clause, text,
             c->text[0] ? "; " : "", c->text);
}

/* ---- Calls. ---------------------------------------------------------------------- */

call_result lm_call_forward(lm *m, iut_forward_batch *b)
{
    const call_result call = client_forward(m->x->iut, b);
    if (call == CALL_OK) lm_trail_forward(m->trail, b);
    return call;
}

call_result lm_call_commit(lm *m, iut_commit_batch *b)
{
    const call_result call = client_commit(m->x->iut, b);
    if (call == CALL_OK) lm_trail_commit(m->trail, b);
    return call;
}

call_result lm_call_truncate(lm *m, iut_truncate_batch *b)
{
    const call_result call = client_truncate(m->x->iut, b);
    if (call == CALL_OK) lm_trail_truncate(m->trail, b);
    return call;
}

/* ---- One sequence. --------------------------------------------------------------- */

enum { MOST_ROWS = 512 };

call_result lm_try_forward(lm *m, int32_t sequence, const int32_t *token, const int32_t *parent,
                           int32_t rows, const int32_t *want, int32_t wants, float *logits)
{
    int32_t chain[MOST_ROWS], all[MOST_ROWS];
    for (int32_t i = 0; i < rows && i < MOST_ROWS; i++) chain[i] = i - 1, all[i] = i;
    float nothing;
    if (!want) wants = rows;
    iut_forward_batch b = {sizeof b,
                           1,
                           rows,
                           wants,
                           &sequence,
                           &rows,
                           &wants,
                           token,
                           parent ? parent : chain,
                           want ? want : all,
                           logits ? logits : &nothing};
    return lm_call_forward(m, &b);
}

bool lm_forward(lm *m, int32_t sequence, const int32_t *token, const int32_t *parent,
                int32_t rows, const int32_t *want, int32_t wants, float *logits)
{
    return result_call(m->r, m->x, "forward",
                       lm_try_forward(m, sequence, token, parent, rows, want, wants, logits));
}

call_result lm_try_commit(lm *m, int32_t sequence, const int32_t *path, int32_t n,
                          int32_t *length)
{
    int32_t first[MOST_ROWS];
    for (int32_t i = 0; i < n && i < MOST_ROWS; i++) first[i] = i;
    iut_commit_batch b = {sizeof b, 1, n, &sequence, &n, path ? path : first, length};
    return lm_call_commit(m, &b);
}

static bool length_is(lm *m, const char *op, int32_t got, int32_t want)
{
    m->r->compared++;
    if (got == want) return true;
    result_set(m->r, STATE_FAIL, "%s: length %d where %d is due", op, (int)got, (int)want);
    m->cause.clause = op[0] == 'c' ? "KV-01" : "KV-03";
    m->cause.named = true;
    return false;
}

bool lm_commit(lm *m, int32_t sequence, const int32_t *path, int32_t n, int32_t length)
{
    int32_t got = -1;
    return result_call(m->r, m->x, "commit", lm_try_commit(m, sequence, path, n, &got)) &&
           length_is(m, "commit", got, length);
}

call_result lm_try_truncate(lm *m, int32_t sequence, int32_t keep, int32_t *length)
{
    iut_truncate_batch b = {sizeof b, 1, &sequence, &keep, length};
    return lm_call_truncate(m, &b);
}

bool lm_truncate(lm *m, int32_t sequence, int32_t keep)
{
    int32_t got = -1;
    return result_call(m->r, m->x, "truncate", lm_try_truncate(m, sequence, keep, &got)) &&
           length_is(m, "truncate", got, keep);
}

bool lm_poison(lm *m)
{
    const bool ok = result_call(m->r, m->x, iut_op_name(OP_CACHE_POISON), client_cache_poison(m->x->iut));
    if (ok) lm_trail_poison(m->trail);
    return ok;
}

bool lm_refused(lm *m, const char *op, call_result call, const char *what)
{
    const iut_status s = client_status(m->x->iut);
    m->r->compared++;
    if (call == CALL_OK) {
        result_set(m->r, STATE_FAIL, "%s: %s is not refused", op, what);
        return false;
    }
    if (call != CALL_REFUSED) return result_call(m->r, m->x, op, call);
    if (s == IUT_BAD_INPUT || s == IUT_UNSUPPORTED) return true;
    return result_call(m->r, m->x, op, call);
}

/* ---- Runs without a draft. ------------------------------------------------------- */

bool lm_fill(lm *m, int32_t sequence, int32_t from, const int32_t *token, int32_t n,
             int32_t rows, float *logits)
{
    for (int32_t at = 0; at < n; at += rows) {
        const int32_t now = rows < n - at ? rows : n - at, none = 0;
        float *out = logits ? logits + (int64_t)at * m->V : NULL;
        if (!lm_forward(m, sequence, token + at, NULL, now, out ? NULL : &none, 0, out) ||
            !lm_commit(m, sequence, NULL, now, from + at + now))
            return false;
    }
    return true;
}

bool lm_plain(lm *m, int32_t sequence, int32_t from, const int32_t *token, int32_t n,
              float *logits)
{
    return lm_fill(m, sequence, from, token, n, 1, logits);
}

/* ---- Comparisons. ---------------------------------------------------------------- */

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static void differs(lm *m, const char *where, float got, float want, const char *what,
                    va_list list)
{
    char text[300];
    vsnprintf(text, sizeof text, what, list);
    result_set(m->r, STATE_FAIL, "%s: %s is %08x (%.9g) where %08x (%.9g) is due", text, where,
               bits_of(got), (double)got, bits_of(want), (double)want);
}

bool lm_equal(const lm *m, const float *a, const float *b, int32_t rows)
{
    return memcmp(a, b, (size_t)rows * (size_t)m->V * sizeof *a) == 0;
}

bool lm_same_logits(lm *m, const float *got, const float *want, int32_t rows, const char *what,
                    ...)
{
    char where[80];
    m->r->compared += rows;
    for (int64_t i = 0; i < (int64_t)rows * m->V; i++) {
        if (bits_of(got[i]) == bits_of(want[i]) && !isnan(got[i])) continue;
        va_list list;
        va_start(list, what);
        snprintf(where, sizeof where, "row %d, logit %d", (int)(i / m->V), (int)(i % m->V));
        differs(m, where, got[i], want[i], what, list);
        va_end(list);
        lm_tell_logits(m, got + i / m->V * m->V, want + i / m->V * m->V);
        return false;
    }
    return true;
}

/* ---- Mistakes. ------------------------------------------------------------------- */

/* The case is decided: what is asked now is no part of its trail. */
static void tell(lm *m, lm_found *f)
{
    lm_trail *const trail = m->trail;
    lm_paths paths = {0};
    m->trail = NULL;
    m->cause = lm_explain(f, &trail->s, &paths, m);
    if (!m->cause.named)
        snprintf(m->cause.text, sizeof m->cause.text, "none of the usual mistakes gives these numbers");
    lm_paths_free(&paths);
    m->trail = trail;
}

static bool tells(const lm *m)
{
    return m->r->state == STATE_FAIL && m->trail && !m->trail->s.failed && !m->x->again;
}

void lm_tell_logits(lm *m, const float *got, const float *want)
{
    const float *const one[] = {got, want};
    lm_found f = {.step = -1};
    for (int i = 0; i < 2 && tells(m) && (i == 0 || m->cause.due); i++) {
        int32_t step, part, row;
        if (!one[i] || !lm_trail_find(m->trail, one[i], m->V, &step, &part, &row)) break;
        if (lm_found_logits(&f, step, part, row, -1, one[i], m->V)) tell(m, &f);
    }
    lm_found_none(&f);
}

void lm_tell_entries(lm *m, int32_t sequence, int32_t position, int32_t layer, const float *key, const float *value)
{
    lm_found f = {.step = -1};
    if (!tells(m)) return;
    const int32_t step = lm_trail_read(m->trail, sequence, position, layer);
    if (step >= 0 && lm_found_entries(&f, step, 0, key, value, m->kv_heads * m->head_dim)) tell(m, &f);
    lm_found_none(&f);
}

/* ---- The cache. ------------------------------------------------------------------ */

/* Keys, then values, of positions first.. of a sequence: [n][layers][kv]. */
static bool read_cache(lm *m, int32_t sequence, int32_t first, int32_t n, float *out)
{
    const int32_t count = n * m->layers;
    const int64_t size = (int64_t)count * m->kv_heads * m->head_dim;
    int32_t *index = malloc(3 * (size_t)count * sizeof *index);
    if (!index) {
        result_set(m->r, STATE_ERROR, "the suite is short of memory");
        return false;
    }
    int32_t *layer = index + count, *position = layer + count;
    for (int32_t i = 0; i < count; i++) {
        index[i] = sequence;
        layer[i] = i % m->layers;
        position[i] = first + i / m->layers;
    }
    iut_cache_batch b = {sizeof b, count, index, layer, position, out, out + size};
    memset(out, 0xFF, 2 * (size_t)size * sizeof *out);
    const bool ok = result_call(m->r, m->x, "cache_read", client_cache_read(m->x->iut, &b));
    free(index);
    return ok;
}

bool lm_read_position(lm *m, int32_t sequence, int32_t position, float *key, float *value)
{
    const int64_t kv = (int64_t)m->kv_heads * m->head_dim;
    for (int32_t layer = 0; layer < m->layers; layer++) {
        iut_cache_batch b = {sizeof b, 1, &sequence, &layer, &position, key + layer * kv, value + layer * kv};
        if (!result_call(m->r, m->x, "cache_read", client_cache_read(m->x->iut, &b))) return false;
    }
    return true;
}

double lm_reach(const iut_claims *claims, const float *logits, int32_t V)
{
    const bool fine = claims->arithmetic >= IUT_ARITH_CANONICAL && claims->arithmetic <= IUT_ARITH_F32;
    const double rho = fine ? 0x1p-16 : claims->arithmetic == IUT_ARITH_F16 ? 0x1p-7 : 0x1p-4;
    double largest = 1;
    for (int32_t t = 0; t < V; t++) largest = fmax(largest, fabs((double)logits[t]));
    return rho * largest;
}

void lm_near_tie(check_result *r, const iut_claims *claims, const float *logits, int32_t V, double apart)
{
    iut_claims fine = *claims;
    fine.arithmetic = IUT_ARITH_F32;
    if (claims->arithmetic == 0 && apart > lm_reach(&fine, logits, V))
        result_set(r, STATE_INCONCLUSIVE,
                   "two logits %.3g apart change places, as in a half format; say the arithmetic (CLM-08)", apart);
}

bool lm_same_cache(lm *m, int32_t got, int32_t want, int32_t first, int32_t n, const char *what,
                   ...)
{
    const bool bits = client_claims(m->x->iut)->lm_arithmetic != 0; /* else numbers alone are due */
    if (!m->cache || n < 1) return true;
    const int64_t kv = (int64_t)m->kv_heads * m->head_dim, half = n * m->layers * kv;
    float *a = realloc(m->entries, 4 * (size_t)half * sizeof *a);
    if (!a) {
        result_set(m->r, STATE_ERROR, "the suite is short of memory");
        return false;
    }
    m->entries = a;
    if (!read_cache(m, got, first, n, a) || !read_cache(m, want, first, n, a + 2 * half))
        return false;
    m->r->compared += 2 * n * m->layers;
    for (int64_t i = 0; i < 2 * half; i++) {
        if ((!bits || bits_of(a[i]) == bits_of(a[2 * half + i])) && !isnan(a[i])) continue;
        char where[120];
        const int64_t entry = i % half / kv;
        va_list list;
        va_start(list, what);
        snprintf(where, sizeof where, "the %s of position %d, layer %d, entry %d",
                 i < half ? "key" : "value", (int)(first + entry / m->layers),
                 (int)(entry % m->layers), (int)(i % kv));
        differs(m, where, a[i], a[2 * half + i], what, list);
        va_end(list);
        lm_tell_entries(m, got, (int32_t)(first + entry / m->layers), (int32_t)(entry % m->layers), a + entry * kv,
                        a + half + entry * kv);
        return false;
    }
    return true;
}

bool lm_same_state(lm *m, int32_t got, int32_t plain, const int32_t *token, const float *logits,
                   int32_t n, const char *what, ...)
{
    char text[300];
    va_list list;
    va_start(list, what);
    vsnprintf(text, sizeof text, what, list);
    va_end(list);
    float *row = lm_floats(m, 1);
    const bool ok = row && lm_same_cache(m, got, plain, 0, n, "%s", text) &&
                    lm_forward(m, got, token + n, NULL, 1, NULL, 0, row) &&
                    lm_same_logits(m, row, logits + (int64_t)n * m->V, 1,
                                   "%s, then token %d at %d", text, (int)token[n], (int)n);
    free(row);
    return ok;
}

int32_t lm_argmax(const float *logit, int32_t V)
{
    int32_t best = 0;
    for (int32_t t = 1; t < V; t++)
        if (logit[t] > logit[best]) best = t;
    return best;
}

void lm_tokens(const lm *m, uint64_t *rng, int32_t *token, int32_t n)
{
    for (int32_t i = 0; i < n; i++) token[i] = probe_below(rng, m->V);
}

float *lm_floats(lm *m, int64_t rows)
{
    float *a = malloc(((size_t)rows * (size_t)m->V + 1) * sizeof *a);
    if (!a) result_set(m->r, STATE_ERROR, "the suite is short of memory");
    return a;
}
