/* panel.c - see panel.h. */
#include "conformance/panel/panel.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/law/philox.h"

__extension__ typedef unsigned __int128 wide;

enum { MAX_STATES = 4096 };

/* -- Rows -------------------------------------------------------------------------- */

bool panel_row_init(panel_row *r, int32_t V)
{
    *r = (panel_row){.V = V};
    r->n = malloc((size_t)V * sizeof *r->n);
    r->o = malloc((size_t)V * sizeof *r->o);
    r->order = malloc((size_t)V * sizeof *r->order);
    if (r->n && r->o && r->order) return true;
    panel_row_free(r);
    return false;
}

void panel_row_free(panel_row *r)
{
    free(r->n);
    free(r->o);
    free(r->order);
    r->n = r->o = NULL, r->order = NULL;
}

/* In ascending order of the upper 32 bits; of equal ones the earlier stays in front. `spare` has n places too. */
static void sort_by_upper(uint64_t *key, uint64_t *spare, int32_t n)
{
    enum { DIGIT = 8, DIGITS = 1 << DIGIT };
    for (int shift = 32; shift < 64; shift += DIGIT) {
        int32_t end[DIGITS + 1] = {0};
        for (int32_t i = 0; i < n; i++) end[(key[i] >> shift & (DIGITS - 1)) + 1]++;
        for (int d = 0; d < DIGITS; d++) end[d + 1] += end[d];
        for (int32_t i = 0; i < n; i++) spare[end[key[i] >> shift & (DIGITS - 1)]++] = key[i];
        uint64_t *const swap = key;
        key = spare, spare = swap;
    }
}

/* The ranking (a_t, t), sorted as one integer each, and the weights before sharpening. */
static void zipf_weights(uint64_t seed, uint32_t row, panel_row *r, uint64_t *key /* [2 V] */, uint64_t *w)
{
    const uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int32_t t = 0; t < r->V; t++) {
        uint32_t x[4];
        oracle_philox((const uint32_t[4]){(uint32_t)t, row, 16, 0}, k, x);
        key[t] = (uint64_t)x[0] << 32 | (uint32_t)t;
        w[t] = 65536 + (x[1] & 65535);
    }
    sort_by_upper(key, key + r->V, r->V);
    for (int32_t i = 0; i < r->V; i++) {
        int32_t t = (int32_t)(key[i] & 0xffffffffu);
        r->order[i] = t;
        w[t] = (((uint64_t)1 << 40) / (uint64_t)(i + 1)) * w[t] / 65536;
    }
}

static int32_t argmax(const uint64_t *w, int32_t V)
{
    int32_t top = 0;
    for (int32_t t = 1; t < V; t++)
        if (w[t] > w[top]) top = t;
    return top;
}

static void scale(const uint64_t *w, panel_row *r)
{
    uint64_t sum = 0, left = (uint64_t)1 << r->bits;
    for (int32_t t = 0; t < r->V; t++) sum += w[t];
    for (int32_t t = 0; t < r->V; t++) {
        r->n[t] = (uint32_t)(((wide)w[t] << r->bits) / sum);
        left -= r->n[t];
    }
    r->n[r->top] += (uint32_t)left;
    for (int32_t i = 0; i < r->V; i++) r->o[r->order[i]] = r->n[r->order[r->V - 1 - i]];
}

bool panel_zipf(uint64_t seed, uint32_t row, int32_t bits, int32_t sharp, panel_row *r)
{
    uint64_t *key = malloc(2 * (size_t)r->V * sizeof *key), *w = malloc((size_t)r->V * sizeof *w);
    bool ok = key && w;
    if (ok) {
        zipf_weights(seed, row, r, key, w);
        r->bits = bits;
        r->top = argmax(w, r->V);
        for (int32_t i = 0; i < sharp; i++) {
            uint64_t max = w[r->top];
            for (int32_t t = 0; t < r->V; t++) w[t] = (uint64_t)((wide)w[t] * w[t] / max);
        }
        r->top = argmax(w, r->V);
        scale(w, r);
    }
    free(key);
    free(w);
    return ok;
}

void panel_mix(const panel_row *r, uint32_t lambda, uint32_t *m)
{
    const uint64_t one = lambda, other = 65536 - lambda;
    uint64_t left = (uint64_t)1 << r->bits;
    for (int32_t t = 0; t < r->V; t++) {
        m[t] = (uint32_t)((one * r->n[t] + other * r->o[t]) >> 16);
        left -= m[t];
    }
    m[r->top] += (uint32_t)left;
}

static double mixed_overlap(const panel_row *r, uint32_t lambda, uint32_t *m)
{
    panel_mix(r, lambda, m);
    uint64_t s = 0;
    for (int32_t t = 0; t < r->V; t++) s += r->n[t] < m[t] ? r->n[t] : m[t];
    return (double)s;
}

/* A lambda at or below the least one that reaches `goal`. But for the missing units, fewer than
 * V, the overlap does not decrease in lambda (each entry moves from o_t towards n_t); so when a
 * lambda falls short of the goal by V or more, every smaller one falls short too. */
static uint32_t lower_lambda(const panel_row *r, double goal, uint32_t *m)
{
    uint32_t lo = 0, hi = 65536;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (mixed_overlap(r, mid, m) < goal - r->V)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int32_t panel_pair(uint64_t seed, uint32_t row, int32_t bits, double acceptance, panel_row *r,
                   uint32_t *m)
{
    double goal = ldexp(acceptance, bits);
    for (int32_t sharp = 0; sharp <= 5; sharp++) {
        if (!panel_zipf(seed, row, bits, sharp, r)) return -1;
        if (mixed_overlap(r, 0, m) < goal) break;
    }
    uint32_t lambda = lower_lambda(r, goal, m);
    while (mixed_overlap(r, lambda, m) < goal) lambda++;
    return (int32_t)lambda;
}

/* -- Panels ------------------------------------------------------------------------ */

void panel_free(panel *a)
{
    if (!a) return;
    free(a->cls);
    free(a->next);
    free(a->p);
    free(a->q);
    free(a->p_logit);
    free(a->q_logit);
    free(a->p64);
    free(a->q64);
    free(a);
}

static panel_form with_defaults(panel_form f)
{
    bool wide_rows = f.V >= 4096;
    if (f.layers == 0) f.layers = wide_rows ? 3 : 4;
    if (f.classes == 0) f.classes = wide_rows ? 2 : f.V < 3 ? f.V : 3;
    if (f.bits == 0) f.bits = f.V <= 8 ? 12 : f.V < 256 ? 16 : f.V < 1024 ? 20 : 24;
    if (f.acceptance == 0) f.acceptance = 0.7;
    return f;
}

static const char *form_error(const panel_form *f)
{
    if (f->V < 1 || f->V >= 1 << 20) return "V must be in 1 .. 2^20 - 1";
    if (f->layers < 1 || f->layers > 64) return "layers must be in 1 .. 64";
    if (f->classes < 1 || f->classes > f->V || f->classes > MAX_STATES / f->layers)
        return "classes must be in 1 .. V, and layers * classes at most 4096";
    if (f->bits < 1 || f->bits > 24) return "bits must be in 1 .. 24";
    if (!(f->acceptance > 0 && f->acceptance <= 1)) return "acceptance must be in (0, 1]";
    if (f->variant < PANEL_PLAIN || f->variant > PANEL_ONEHOT_Q) return "unknown variant";
    return NULL;
}

static panel *allocate(const panel_form *f)
{
    panel *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    size_t V = (size_t)f->V, S = (size_t)(f->layers * f->classes), C = (size_t)f->classes;
    a->form = *f;
    a->cls = malloc(V * sizeof *a->cls);
    a->next = malloc(S * C * sizeof *a->next);
    a->p = malloc(S * V * sizeof *a->p);
    a->q = malloc(S * V * sizeof *a->q);
    a->p_logit = malloc(S * V * sizeof *a->p_logit);
    a->q_logit = malloc(S * V * sizeof *a->q_logit);
    a->p64 = malloc(S * V * sizeof *a->p64);
    a->q64 = malloc(S * V * sizeof *a->q64);
    if (a->cls && a->next && a->p && a->q && a->p_logit && a->q_logit && a->p64 && a->q64)
        return a;
    panel_free(a);
    return NULL;
}

static void link_states(panel *a)
{
    int32_t D = a->form.layers, C = a->form.classes;
    for (int32_t t = 0; t < a->form.V; t++) a->cls[t] = t % C;
    for (int32_t s = 0; s < D * C; s++)
        for (int32_t c = 0; c < C; c++) a->next[s * C + c] = (s / C + 1) % D * C + c;
    a->view = (iut_panel){.size = sizeof a->view,
                          .V = a->form.V,
                          .S = D * C,
                          .C = C,
                          .cls = a->cls,
                          .next = a->next,
                          .p = a->p,
                          .q = a->q,
                          .p_logit = a->p_logit,
                          .q_logit = a->q_logit};
    /* "None" is served as temperature 1 without filters, which leaves the rows as they are. */
    const iut_sampling none = {1, 0, 1, 0};
    a->view.target = a->form.target.temperature > 0 ? a->form.target : none;
    a->view.draft = a->form.draft.temperature > 0 ? a->form.draft : none;
}

/* Takes the tokens of phase `phase` mod 4 away, but never `keep`, which gets their mass. */
static void mask_quarter(uint32_t *n, int32_t V, int32_t phase, int32_t keep)
{
    for (int32_t t = 0; t < V; t++) {
        if (t == keep || (t + phase) % 4 != 0) continue;
        n[keep] += n[t];
        n[t] = 0;
    }
}

static void make_onehot(uint32_t *n, int32_t V, int32_t token)
{
    uint32_t sum = 0;
    for (int32_t t = 0; t < V; t++) sum += n[t];
    memset(n, 0, (size_t)V * sizeof *n);
    n[token] = sum;
}

/* The one-hot token is of middle rank, so that the other row gives it some, not most, mass. */
static void apply_variant(panel_variant variant, int32_t s, panel_row *r, uint32_t *m)
{
    int32_t middle = r->order[(r->V - 1) / 2];
    switch (variant) {
    case PANEL_PLAIN:
        break;
    case PANEL_MASKED:
        mask_quarter(r->n, r->V, s, r->top);
        mask_quarter(m, r->V, s + 2, r->top);
        break;
    case PANEL_EQUAL:
        memcpy(m, r->n, (size_t)r->V * sizeof *m);
        break;
    case PANEL_ONEHOT_P:
        make_onehot(r->n, r->V, middle);
        break;
    case PANEL_ONEHOT_Q:
        make_onehot(m, r->V, middle);
        break;
    }
}

static void store(const uint32_t *n, int32_t V, int32_t bits, float *p, float *logit,
                  double *p64)
{
    for (int32_t t = 0; t < V; t++) {
        p64[t] = ldexp((double)n[t], -bits);
        p[t] = (float)p64[t];
        logit[t] = n[t] ? (float)log(p64[t]) : -INFINITY;
    }
}

/* -- Serving in binary64 (DIST-05 to DIST-13) -------------------------------------- */

typedef struct {
    float logit;
    int32_t id;
} ranked;

static int by_rank(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->logit != y->logit) return x->logit < y->logit ? 1 : -1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static const double NEAR = 1e-3;

typedef enum { SERVED, NEAR_CUT, NO_MEMORY } serve_result;

/* The row behind its filters; false: a cut is too close, or between equal logits, of which any may be kept. */
static bool serve_ranked(const ranked *r, double *below, int32_t V, const iut_sampling *s, const oracle_filters *how,
                         float *p, double *p64)
{
    const oracle_sampling sampling = {s->temperature, s->top_k, s->top_p, s->min_p};
    int32_t n = 0;
    double total = 0;
    for (; n < V && r[n].logit > -INFINITY; n++) below[n] = (double)r[n].logit - (double)r[0].logit;
    const oracle_cuts c = oracle_cut(below, n, &sampling, how);
    if (c.top_k < NEAR || c.top_p < NEAR || c.min_p_log < NEAR) return false;
    if (c.kept < n && r[c.kept].logit == r[c.kept - 1].logit) return false;
    memset(p64, 0, (size_t)V * sizeof *p64);
    for (int32_t i = 0; i < c.kept; i++) total += below[i] = exp(below[i] / (double)s->temperature);
    for (int32_t i = 0; i < c.kept; i++) p64[r[i].id] = below[i] / total;
    for (int32_t t = 0; t < V; t++) p[t] = (float)p64[t];
    return true;
}

static serve_result serve(const float *logit, int32_t V, const iut_sampling *s, const oracle_filters *how, float *p,
                          double *p64)
{
    ranked *r = malloc((size_t)V * sizeof *r);
    double *below = malloc((size_t)V * sizeof *below);
    serve_result done = NO_MEMORY;
    if (r && below) {
        for (int32_t t = 0; t < V; t++) r[t] = (ranked){logit[t], t};
        qsort(r, (size_t)V, sizeof *r, by_rank);
        done = serve_ranked(r, below, V, s, how, p, p64) ? SERVED : NEAR_CUT;
    }
    free(r);
    free(below);
    return done;
}

/* -- Making a panel ---------------------------------------------------------------- */

/* Fills state s from the procedural row `row`. */
static serve_result fill_state(panel *a, int32_t s, uint32_t row, panel_row *r, uint32_t *m)
{
    const panel_form *f = &a->form;
    size_t at = (size_t)s * (size_t)f->V;
    if (panel_pair(f->seed, row, f->bits, f->acceptance, r, m) < 0) return NO_MEMORY;
    apply_variant(f->variant, s, r, m);
    store(r->n, f->V, f->bits, a->p + at, a->p_logit + at, a->p64 + at);
    store(m, f->V, f->bits, a->q + at, a->q_logit + at, a->q64 + at);
    serve_result done = SERVED;
    if (f->target.temperature > 0)
        done = serve(a->p_logit + at, f->V, &f->target, &f->filters, a->p + at, a->p64 + at);
    if (done == SERVED && f->draft.temperature > 0)
        done = serve(a->q_logit + at, f->V, &f->draft, &f->filters, a->q + at, a->q64 + at);
    return done;
}

/* A state whose cuts are too close takes the next row that is not another state's. */
static const char *fill_states(panel *a, panel_row *r, uint32_t *m)
{
    enum { TRIES = 4000 };
    for (int32_t s = 0; s < a->view.S; s++) {
        serve_result done = NEAR_CUT;
        for (int32_t i = 0; i < TRIES && done == NEAR_CUT; i++)
            done = fill_state(a, s, (uint32_t)(s + i * a->view.S), r, m);
        if (done == NO_MEMORY) return "out of memory";
        if (done == NEAR_CUT)
            return "every row has a cut of top-k, top-p or min-p closer than "
                   "1e-3: choose a smaller V or other parameters";
    }
    return NULL;
}

panel *panel_make(const panel_form *form, char *why, size_t why_size)
{
    panel_form f = with_defaults(*form);
    const char *error = form_error(&f);
    panel *a = error ? NULL : allocate(&f);
    panel_row r = {0};
    uint32_t *m = a ? malloc((size_t)f.V * sizeof *m) : NULL;
    if (!error) error = m && panel_row_init(&r, f.V) ? NULL : "out of memory";
    if (!error) {
        link_states(a);
        error = fill_states(a, &r, m);
    }
    panel_row_free(&r);
    free(m);
    if (!error) return a;
    snprintf(why, why_size, "panel of V = %d, acceptance %g: %s", f.V, f.acceptance, error);
    panel_free(a);
    return NULL;
}

/* -- Exact laws -------------------------------------------------------------------- */

/* next[s'] += weight * sum of row over the tokens that lead from s to s'. */
static void advance(const panel *a, int32_t s, double weight, const double *row, double *next)
{
    for (int32_t t = 0; t < a->view.V; t++) next[panel_next(a, s, t)] += weight * row[t];
}

void panel_states(const panel *a, int32_t start, int32_t k, double *state)
{
    int32_t S = a->view.S;
    memset(state, 0, (size_t)k * (size_t)S * sizeof *state);
    state[start] = 1;
    for (int32_t i = 0; i + 1 < k; i++)
        for (int32_t s = 0; s < S; s++)
            if (state[i * S + s] > 0)
                advance(a, s, state[i * S + s], panel_p(a, s), state + (i + 1) * S);
}

void panel_marginal(const panel *a, const double *state, double *law)
{
    memset(law, 0, (size_t)a->view.V * sizeof *law);
    for (int32_t s = 0; s < a->view.S; s++) {
        const double *p = panel_p(a, s);
        if (state[s] > 0)
            for (int32_t t = 0; t < a->view.V; t++) law[t] += state[s] * p[t];
    }
}

double panel_overlap(const panel *a, int32_t state)
{
    const double *p = panel_p(a, state), *q = panel_q(a, state);
    double sum = 0;
    for (int32_t t = 0; t < a->view.V; t++) sum += fmin(p[t], q[t]);
    return sum;
}

double panel_overlap2(const panel *a, int32_t state)
{
    const double *p = panel_p(a, state), *q = panel_q(a, state);
    double sum = 0;
    for (int32_t x = 0; x < a->view.V; x++) {
        int32_t s = panel_next(a, state, x);
        const double *p2 = panel_p(a, s), *q2 = panel_q(a, s);
        for (int32_t y = 0; y < a->view.V; y++) sum += fmin(p[x] * p2[y], q[x] * q2[y]);
    }
    return sum;
}

double panel_peak(const panel *a, int32_t state)
{
    const double *p = panel_p(a, state);
    double most = 0;
    for (int32_t t = 0; t < a->view.V; t++) most = fmax(most, p[t]);
    return most;
}

double panel_peak2(const panel *a, int32_t state)
{
    const double *p = panel_p(a, state);
    double most = 0;
    for (int32_t x = 0; x < a->view.V; x++)
        most = fmax(most, p[x] * panel_peak(a, panel_next(a, state, x)));
    return most;
}

/* alive[s]: probability that the drafts so far were accepted and that s is the state after
 * them. */
void panel_accepts(const panel *a, int32_t start, int32_t gamma, double *law)
{
    int32_t S = a->view.S;
    double alive[MAX_STATES] = {0}, after[MAX_STATES];
    alive[start] = 1;
    double before = 1;
    for (int32_t j = 0; j < gamma; j++) {
        double mass = 0;
        memset(after, 0, (size_t)S * sizeof *after);
        for (int32_t s = 0; s < S; s++) {
            const double *p = panel_p(a, s), *q = panel_q(a, s);
            for (int32_t t = 0; alive[s] > 0 && t < a->view.V; t++)
                after[panel_next(a, s, t)] += alive[s] * fmin(p[t], q[t]);
        }
        for (int32_t s = 0; s < S; s++) mass += alive[s] = after[s];
        law[j] = before - mass;
        before = mass;
    }
    law[gamma] = before;
}

/* -- Prefix tree ------------------------------------------------------------------- */

typedef struct {
    double mass;
    int32_t parent, token, state, depth;
} prefix;

/* A heap of prefixes, the likeliest first; ties by parent, then token, so that the set of nodes
 * does not depend on how the heap is laid out. */
typedef struct {
    prefix *a;
    size_t n, room;
} heap;

static bool before(const prefix *x, const prefix *y)
{
    if (x->mass != y->mass) return x->mass > y->mass;
    if (x->parent != y->parent) return x->parent < y->parent;
    return x->token < y->token;
}

static void swap(prefix *x, prefix *y)
{
    prefix t = *x;
    *x = *y, *y = t;
}

static bool push(heap *h, prefix x)
{
    if (h->n == h->room) {
        size_t room = h->room ? 2 * h->room : 256;
        prefix *a = realloc(h->a, room * sizeof *a);
        if (!a) return false;
        h->a = a, h->room = room;
    }
    size_t i = h->n++;
    for (h->a[i] = x; i > 0 && before(&h->a[i], &h->a[(i - 1) / 2]); i = (i - 1) / 2)
        swap(&h->a[i], &h->a[(i - 1) / 2]);
    return true;
}

static prefix pop(heap *h)
{
    prefix top = h->a[0];
    h->a[0] = h->a[--h->n];
    for (size_t i = 0, c; (c = 2 * i + 1) < h->n; i = c) {
        if (c + 1 < h->n && before(&h->a[c + 1], &h->a[c])) c++;
        if (!before(&h->a[c], &h->a[i])) break;
        swap(&h->a[c], &h->a[i]);
    }
    return top;
}

static bool trie_allocate(panel_trie *t, int32_t max_nodes, int32_t S)
{
    size_t nodes = (size_t)max_nodes;
    t->row = malloc((nodes + (size_t)S) * sizeof *t->row);
    t->depth = malloc(nodes * sizeof *t->depth);
    t->mass = malloc(nodes * sizeof *t->mass);
    return t->row && t->depth && t->mass;
}

/* Makes x a node and offers its children of n * P >= 32 to the heap. */
static bool trie_grow(panel_trie *t, const panel *a, const prefix *x, double n, heap *h)
{
    int32_t me = t->nodes;
    size_t V = (size_t)t->V;
    int32_t *child = realloc(t->child, (size_t)(me + 1) * V * sizeof *child);
    if (!child) return false;
    t->child = child;
    memset(child + (size_t)me * V, 0xff, V * sizeof *child);
    if (x->parent >= 0) child[(size_t)x->parent * V + (size_t)x->token] = me;
    t->row[me] = x->state, t->depth[me] = x->depth, t->mass[me] = x->mass;
    t->nodes++;
    const double *p = panel_p(a, x->state);
    for (int32_t y = 0; x->depth + 1 < t->k && y < t->V; y++) {
        prefix c = {x->mass * p[y], me, y, panel_next(a, x->state, y), x->depth + 1};
        if (n * c.mass >= 32 && !push(h, c)) return false;
    }
    return true;
}

bool panel_trie_init(panel_trie *t, const panel *a, int32_t start, int32_t k, double n,
                     int32_t max_nodes)
{
    int32_t S = a->view.S;
    *t = (panel_trie){.k = k, .V = a->view.V};
    heap h = {0};
    bool ok = trie_allocate(t, max_nodes, S) && push(&h, (prefix){1, -1, -1, start, 0});
    while (ok && h.n > 0 && t->nodes < max_nodes) {
        prefix x = pop(&h);
        ok = trie_grow(t, a, &x, n, &h);
    }
    free(h.a);
    if (!ok) {
        panel_trie_free(t);
        return false;
    }
    for (int32_t s = 0; s < S; s++) t->row[t->nodes + s] = s;
    t->contexts = t->nodes + S;
    return true;
}

void panel_trie_free(panel_trie *t)
{
    free(t->row);
    free(t->child);
    free(t->depth);
    free(t->mass);
    *t = (panel_trie){0};
}
