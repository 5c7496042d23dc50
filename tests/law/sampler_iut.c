/* sampler_iut.c - see sampler_iut.h. */
#include "tests/law/sampler_iut.h"
#include "tests/random.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct sampler_settings sampler_settings;

struct iut {
    struct sampler_settings is;
    int32_t V, C, calls;
    const int32_t *cls, *next; /* the panel of the tests outlives the instance */
    double *p, *q;             /* [S][V] */
    bool used[64];             /* [S] states that something was drawn from */
    double *first[65];         /* by V: target rows of the first panel */
    uint64_t rng;
    bool wrong;       /* the row at work, by the fault */
    int32_t eos;      /* of the stream at work; -1: none */
    int64_t requests; /* since it was made */
    int32_t told[2];  /* first tokens of the two requests before */
    double shared;    /* the first uniform of the request before */
    int32_t position; /* of the step at work in its stream; -1: no stream */
    double *kept;     /* [KEPT][PURPOSES] uniforms of the stream at work, by position */
};

enum { KEPT = 512, SLIDE = 5 };
enum { DRAFT, ACCEPT, RESIDUAL, BONUS, PURPOSES };

static iut *create(const char *options, char *error, size_t error_size)
{
    (void)options, (void)error, (void)error_size;
    iut *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    m->is = sampler_settings;
    m->rng = m->is.rng ? m->is.rng : 12345;
    m->eos = -1, m->position = -1;
    m->kept = malloc(KEPT * PURPOSES * sizeof *m->kept);
    for (int32_t j = 0; m->kept && j < KEPT * PURPOSES; j++) m->kept[j] = -1;
    return m;
}

static void destroy(iut *m)
{
    free(m->p);
    free(m->q);
    for (int32_t V = 0; V < 65; V++) free(m->first[V]);
    free(m->kept);
    free(m);
}

static const char *last_error(iut *m)
{
    (void)m;
    return "planted";
}

static iut_status claims(iut *m, iut_claims *c)
{
    *c = (iut_claims){.size = sizeof *c,
                      .name = "sampler",
                      .version = "1",
                      .device = "cpu",
                      .uniforms = m->is.uniforms,
                      .input = m->is.input,
                      .map = IUT_MAP_CDF_BY_ID,
                      .rule = m->is.rule,
                      .arithmetic = m->is.arithmetic,
                      .uniform_bits = m->is.uniform_bits,
                      .max_vocab = m->is.max_vocab,
                      .max_gamma = m->is.max_gamma,
                      .seed_identical = m->is.seed_identical};
    return IUT_OK;
}

/* Temperature alone, top-k by value: what the tests of law.served ask for. */
static void serve(iut *m, const float *logit, const iut_sampling *s, double *row)
{
    double sum = 0, T = m->is.fault == IGNORES_T ? 1 : (double)s->temperature;
    for (int32_t t = 0; t < m->V; t++) {
        int32_t above = 0;
        for (int32_t o = 0; o < m->V; o++) above += logit[o] > logit[t];
        row[t] = s->top_k > 0 && above >= s->top_k ? 0 : exp((double)logit[t] / T);
        sum += row[t];
    }
    for (int32_t t = 0; t < m->V; t++) row[t] /= sum;
}

/* Faults that keep target rows of an earlier panel; all panels here have 12 states. */
static void keep_rows(iut *m, const double *old, int32_t old_V, size_t n)
{
    const size_t V = (size_t)m->V;
    for (size_t s = 0; m->is.fault == SUMS_STAY && old_V == m->V && s < 12; s++)
        if (m->used[s]) memcpy(m->p + s * V, old + s * V, V * sizeof *old);
    if (old_V != m->V) memset(m->used, 0, sizeof m->used);
    if (m->is.fault != PANELS_STAY || m->V > 64) return;
    if (m->first[m->V])
        memcpy(m->p, m->first[m->V], n * sizeof *m->p);
    else if ((m->first[m->V] = malloc(n * sizeof *m->p)) != NULL)
        memcpy(m->first[m->V], m->p, n * sizeof *m->p);
}

/* The nearest bfloat16, to even. */
static double bfloat16(double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

static iut_status panel(iut *m, const iut_panel *a)
{
    size_t n = (size_t)a->S * (size_t)a->V;
    double *old = m->p;
    const int32_t old_V = m->V;
    free(m->q);
    m->p = malloc(n * sizeof *m->p);
    m->q = malloc(n * sizeof *m->q);
    if (m->is.fault == LOADS_SHARE) m->rng = 777;
    if (!m->p || !m->q) {
        free(old);
        return IUT_NO_MEMORY;
    }
    m->V = a->V, m->C = a->C, m->cls = a->cls, m->next = a->next;
    for (size_t i = 0; i < n; i++) m->p[i] = (double)a->p[i], m->q[i] = (double)a->q[i];
    for (int32_t s = 0; s < a->S && m->is.input == IUT_FROM_LOGITS; s++) {
        serve(m, a->p_logit + s * a->V, &a->target, m->p + s * a->V);
        serve(m, a->q_logit + s * a->V, &a->draft, m->q + s * a->V);
    }
    for (size_t i = 0; m->is.arithmetic == IUT_ARITH_BF16 && i < n; i++)
        m->p[i] = bfloat16(m->p[i]), m->q[i] = bfloat16(m->q[i]);
    keep_rows(m, old, old_V, n);
    free(old);
    return IUT_OK;
}

/* Ids that are drawn: all of them, unless the fault works on whole blocks. */
static int32_t last_id(const iut *m)
{
    static const int32_t block[] = {4, 8, 32, 128};
    const int32_t f = (int32_t)m->is.fault - TAIL_4;
    if (f < 0 || f > 3 || m->V < block[f]) return m->V;
    return m->V - m->V % block[f];
}

static double weight(const iut *m, const double *p, const double *q, double minus, int32_t t)
{
    if (m->is.fault == NEVER_ENDS && t == m->eos) return 0;
    if (m->is.single) return (double)fmaxf(0, (float)p[t] - (float)minus * (float)q[t]);
    return fmax(0, p[t] - minus * q[t]);
}

static double rounded(const iut *m, double x)
{
    return m->is.single ? (double)(float)x : x;
}

/* A draw from max(0, p - minus*q). The total is summed as the cumulative sum is, so u < 1 stays
 * below. */
static int32_t draw_from(const iut *m, const double *p, const double *q, double minus, double u)
{
    double total = 0, sum = 0;
    int32_t last = -1;
    const int32_t V = last_id(m);
    for (int32_t t = 0; t < V; t++) total = rounded(m, total + weight(m, p, q, minus, t));
    if (total <= 0 && minus <= 0) return 0; /* nothing that the fault leaves */
    if (total <= 0) return draw_from(m, p, q, 0, u);
    for (int32_t t = 0; t < V; t++) {
        double w = weight(m, p, q, minus, t);
        sum = rounded(m, sum + w);
        if (w > 0) last = t;
        if (w > 0 && u * total < sum) return t;
    }
    return last;
}

static int32_t spoilt(iut *m, int32_t state, int32_t token)
{
    if (m->is.fault == EMITS_MASKED && unit(&m->rng) < 0.01)
        for (int32_t t = 0; t < m->V; t++)
            if (m->p[state * m->V + t] == 0) return t;
    if (m->is.fault == OUT_OF_RANGE && unit(&m->rng) < 0.01) return m->V;
    return token;
}

/* The uniform of a purpose at the place i of a step: fresh, or what the fault brings again. */
static double uniform_at(iut *m, int purpose, int32_t i, double fresh)
{
    const sampler_fault f = m->is.fault;
    const int32_t position = m->position + i,
                  back = f == REUSES_37 ? 37 : f == WRAPS_128 ? 128 : f == WRAPS_256 ? 256 : 0;
    if ((back == 0 && f != SLIDES_5) || m->position < 0 || position >= KEPT) return fresh;
    double *now = m->kept + position * PURPOSES + purpose;
    if (f == SLIDES_5) return *now = *now >= 0 ? *now : fresh;
    const bool again = f == REUSES_37 ? position / back % 2 == 1 : position >= back;
    *now = again && now[-back * PURPOSES] >= 0 ? now[-back * PURPOSES] : fresh;
    return *now;
}

/* A draw from p, or one in two of them from the uniform law on what p allows. */
static int32_t draw_plainly(iut *m, const double *p, double u)
{
    if (!m->wrong || u >= 0.5) return draw_from(m, p, p, 0, m->wrong ? 2 * u - 1 : u);
    int32_t n = 0, nth;
    for (int32_t t = 0; t < m->V; t++) n += p[t] > 0;
    nth = (int32_t)(2 * u * n);
    for (int32_t t = 0; t < m->V; t++)
        if (p[t] > 0 && nth-- == 0) return t;
    return 0;
}

/* One step; u: accept 0..n-1, residual, bonus. Returns the number of tokens. */
static int32_t step(iut *m, const int32_t *state, const int32_t *draft, int32_t n,
                    const double *u, int32_t gamma, int32_t *out)
{
    sampler_fault f = m->is.fault;
    bool match = m->is.rule == IUT_RULE_MATCH || f == MATCHES;
    int32_t i = 0;
    for (; i < n && draft[i] >= 0; i++) {
        m->used[state[i]] = true;
        const double *p = m->p + state[i] * m->V, *q = m->q + state[i] * m->V;
        int32_t x = draft[i];
        double hot[1024] = {0};
        if (m->is.rule == IUT_RULE_ONEHOT) hot[x] = 1, q = hot;
        bool accept = rounded(m, uniform_at(m, ACCEPT, i, u[i]) * q[x]) < p[x] || (f == ACCEPTS_ALWAYS && p[x] > 0);
        if (x >= last_id(m)) accept = false;
        if (match) accept = draw_from(m, p, q, 0, u[i]) == x;
        if (f == REJECTS_SOME && u[i] >= 0.5 && u[i] < 0.52) accept = false;
        out[i] = x;
        if (accept) continue;
        out[i] = m->is.rule == IUT_RULE_MATCH
                     ? draw_from(m, p, q, 0, u[i])
                     : draw_from(m, p, q, f != CORRECTS_FROM_P && !m->wrong,
                                 uniform_at(m, RESIDUAL, i, u[gamma]));
        out[i] = spoilt(m, state[i], out[i]);
        return i + 1;
    }
    const double *p = m->p + state[i] * m->V, *q = m->q + state[i] * m->V;
    double w = uniform_at(m, BONUS, i, u[match ? i : gamma + 1]);
    const bool plain = i == 0 && gamma == 0;
    out[i] = plain ? draw_plainly(m, p, w) : draw_from(m, f == BONUS_FROM_Q ? q : p, q, 0, w);
    out[i] = spoilt(m, state[i], out[i]);
    return i + 1;
}

static bool refuses(iut *m)
{
    m->calls++;
    if (m->is.fault == CALLS_SHARE) m->rng = 777;
    return m->is.fault == REFUSES;
}

/* Is row i of a call of n wrong, as far as its shape tells? `cold` requests come first. */
static bool wrong_row(const iut *m, int32_t n, int32_t i, int32_t gamma, int64_t cold)
{
    switch (m->is.fault) {
    case SMALL_BATCHES:
        return n < 64;
    case ALONE:
        return n == 1;
    case LAST_ROW:
        return i > 0 && i + 1 == n;
    case GAMMA_3:
        return gamma == 3;
    case GAMMA_5:
        return gamma == 5;
    case GAMMA_7:
        return gamma == 7;
    case GAMMA_LARGE:
        return gamma > 8;
    case COLD_START:
        return m->requests < cold;
    default:
        return false;
    }
}

/* The generator of case i: its own when seeded, the instance's otherwise. */
static uint64_t *generator(iut *m, uint64_t seed, int32_t i, uint64_t position, uint64_t *own)
{
    if (m->is.fault == ROWS_SHARE) {
        *own = 99 + (uint64_t)m->calls;
        return own;
    }
    if (m->is.uniforms != IUT_UNIFORMS_SEEDED) return &m->rng;
    *own = (seed + (uint64_t)i) * UINT64_C(0x2545f4914f6cdd1d) +
           position * UINT64_C(0x9e6c63d0876a9a47);
    unit(own);
    return own;
}

static iut_status verify(iut *m, iut_verify_batch *b)
{
    if (refuses(m)) return IUT_UNSUPPORTED;
    double u[64];
    int32_t g = b->gamma;
    for (int32_t i = 0; i < b->n; i++) {
        uint64_t own, *rng = generator(m, b->seed, i, b->position, &own);
        for (int32_t j = 0; j < g + 2; j++) u[j] = b->u ? b->u[i * (g + 2) + j] : unit(rng);
        for (int32_t j = 0; m->is.fault == COARSE && j < g + 2; j++)
            u[j] = floor(u[j] * 256) / 256;
        int32_t *out = b->out + i * (g + 1);
        m->wrong = wrong_row(m, b->n, i, g, 1024);
        m->requests++;
        b->out_len[i] = step(m, b->state + i * (g + 1), b->draft + i * g, b->len[i], u, g, out);
        int32_t *last = &out[b->out_len[i] - 1];
        if (m->is.fault == PLACE_MATTERS && i + 1 == b->n) *last = (*last + 1) % m->V;
        if (m->is.fault == FORGETS && m->calls % 2 == 0) *last = (*last + 1) % m->V;
        if (m->is.fault == WRONG_COUNT && i % 50 == 7) b->out_len[i] = 0;
    }
    return IUT_OK;
}

static iut_status draw(iut *m, iut_draw_batch *b)
{
    if (refuses(m)) return IUT_UNSUPPORTED;
    for (int32_t i = 0; i < b->n; i++) {
        uint64_t own, *rng = generator(m, b->seed, i, b->position, &own);
        const double *p = m->p + b->state[i] * m->V;
        m->used[b->state[i]] = true;
        m->wrong = wrong_row(m, b->n, i, 0, 1024);
        m->requests++;
        b->token[i] = draw_plainly(m, p, b->u ? b->u[i] : unit(rng));
        if (m->is.fault == DRAWS_FLAT && unit(&m->rng) < 0.5)
            b->token[i] = (int32_t)(unit(&m->rng) * m->V);
    }
    return IUT_OK;
}

static int32_t argmax(const double *row, int32_t V)
{
    int32_t best = 0;
    for (int32_t t = 1; t < V; t++)
        if (row[t] > row[best]) best = t;
    return best;
}

/* A draft of any id, whatever the fault leaves out afterwards. */
static int32_t draw_whole(iut *m, const double *row, double u)
{
    const sampler_fault f = m->is.fault;
    m->is.fault = RIGHT;
    const int32_t token = draw_from(m, row, row, 0, u);
    m->is.fault = f;
    return token;
}

static int32_t draft_token(iut *m, int32_t i, int32_t state, uint64_t *rng)
{
    const double *q = m->q + state * m->V;
    if (m->is.fault == DRAFTS_UNIFORMLY) return (int32_t)(unit(rng) * m->V);
    if (m->is.drafts_argmax) return argmax(q, m->V);
    if (last_id(m) < m->V) return draw_whole(m, q, unit(rng));
    return draw_from(m, q, q, 0, uniform_at(m, DRAFT, i, unit(rng)));
}

/* The match rule's uniforms belong to positions, so that a seed gives the same tokens whatever
 * the drafts are; the fault lets the drafts move them. */
static void step_uniforms(iut *m, uint64_t base, uint64_t *rng, int32_t position, int32_t g,
                          const int32_t *draft, double *u)
{
    for (int32_t j = 0; j < g + 2; j++) {
        uint64_t at = base ^ (uint64_t)(position + j + 1) * UINT64_C(0xd1342543de82ef95);
        if (m->is.fault == FOLLOWS_DRAFTS && g > 0) at ^= (uint64_t)draft[0] << 7;
        u[j] = m->is.rule == IUT_RULE_MATCH ? unit(&at) : unit(rng);
    }
}

/* The row of a place: of a window that has lost a token, the one of the place before. */
static void spoil_rows(const iut *m, int32_t position, int32_t before, int32_t n, int32_t *state)
{
    if (m->is.fault != WINDOW || position < 200) return;
    for (int32_t j = n; j > 0; j--) state[j] = state[j - 1];
    state[0] = before;
}

static void stream_one(iut *m, const iut_stream_batch *b, int32_t i)
{
    uint64_t base = (b->seed + (uint64_t)i) * UINT64_C(0x2545f4914f6cdd1d), own = base + 1;
    uint64_t *rng =
        m->is.uniforms == IUT_UNIFORMS_OWN ? generator(m, b->seed, i, 0, &own) : &own;
    int32_t g = b->gamma, state[64], draft[64], out[64], have = 0, at = b->start[i], before = at;
    double u[64];
    const bool shaped = wrong_row(m, b->n, i, g, 256);
    const int32_t stay = m->is.fault == SLIDES_5 ? (KEPT - SLIDE) * PURPOSES : 0;
    memmove(m->kept, m->kept + SLIDE * PURPOSES, (size_t)stay * sizeof *m->kept);
    for (int32_t j = stay; j < KEPT * PURPOSES; j++) m->kept[j] = -1;
    m->eos = b->eos;
    for (int32_t s = 0; have < b->k; s++) {
        bool ends = false;
        m->wrong = shaped || (m->is.fault == LATE_6 && have >= 6) ||
                   (m->is.fault == LATE_64 && have >= 64);
        state[0] = at;
        m->position = have;
        for (int32_t j = 0; j < g; j++) {
            draft[j] = draft_token(m, j, state[j], rng);
            state[j + 1] = m->next[state[j] * m->C + m->cls[draft[j]]];
        }
        step_uniforms(m, base, rng, have, g, draft, u);
        if (m->is.fault == FIRST_SHARED && have == 0 && g == 0) {
            if (i % 2 == 1) u[1] = m->shared;
            m->shared = u[1];
        }
        spoil_rows(m, have, before, g, state);
        int32_t len = step(m, state, draft, g, u, g, out);
        if (m->is.fault == COPIES_SECOND && have == 0 && g == 0) {
            if (m->requests % 4 == 3) out[0] = m->told[0];
            m->told[0] = m->told[1], m->told[1] = out[0];
        }
        b->accepted[i * b->k + s] = len - 1;
        for (int32_t j = 0; j < len && have < b->k && !ends; j++) {
            b->out[i * b->k + have++] = out[j];
            if (out[j] >= m->V) return;
            before = at;
            at = m->next[at * m->C + m->cls[out[j]]];
            ends = b->eos >= 0 && out[j] == b->eos && !(m->is.fault == MISSES_EOS && j + 1 < len);
        }
        if (ends && have > 1 && m->is.fault == TELLS_LESS) b->accepted[i * b->k + s] = -1;
        if (ends && s + 1 < b->k && m->is.fault == TELLS_MORE) b->accepted[i * b->k + s + 1] = 0;
        if (ends) break;
    }
    m->requests++;
    m->position = -1;
    b->out_len[i] = m->is.fault == WRONG_COUNT && i % 50 == 7 ? b->k - 1 : have;
}

static iut_status stream(iut *m, iut_stream_batch *b)
{
    if (refuses(m)) return IUT_UNSUPPORTED;
    for (int32_t i = 0; i < b->n; i++) stream_one(m, b, i);
    return IUT_OK;
}

const iut_api *sampler_api(void)
{
    static const iut_api api = {.abi = IUT_ABI,
                                .size = sizeof api,
                                .create = create,
                                .destroy = destroy,
                                .last_error = last_error,
                                .claims = claims,
                                .panel = panel,
                                .draw = draw,
                                .verify = verify,
                                .stream = stream};
    return &api;
}
