/* law_drawn.c - see law_drawn.h. */
#include "conformance/checks/law/law_drawn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/probe.h"
#include "conformance/checks/law/law_cause.h"
#include "conformance/checks/law/law_speed.h"
#include "conformance/checks/law/law_views.h"
#include "conformance/stats/logmath.h"
#include "conformance/stats/neighbours.h"
#include "conformance/stats/power.h"

/* -- Lists that are dealt out ------------------------------------------------------ */

/* Every number of a list comes once before one comes again. */
enum { CARDS = 160 };
typedef struct {
    int32_t card[CARDS], count, dealt;
    uint64_t rng;
} deck;

static void deck_add(deck *d, int32_t card, int32_t times)
{
    while (times-- > 0 && d->count < CARDS) d->card[d->count++] = card;
    d->dealt = d->count;
}

static int32_t deal(deck *d)
{
    if (d->dealt == d->count) {
        for (int32_t i = d->count - 1; i > 0; i--) {
            const int32_t j = probe_below(&d->rng, i + 1), card = d->card[i];
            d->card[i] = d->card[j], d->card[j] = card;
        }
        d->dealt = 0;
    }
    return d->card[d->dealt++];
}

/* -- The calls of a case ----------------------------------------------------------- */

typedef struct {
    law_shape shape;
    law_op op;
    const panel *a;
    int32_t gamma, k, n; /* of a call at most */
    bool likely;         /* most drafts are accepted */
    deck sizes, gammas;
    uint64_t rng;
} calls;

enum { COLD = 128, COLD_TOKENS = 16, LONG_TOKENS = 264, MOST_WORK = 1 << 25 };

/* Most calls are small, but most streams are of larger ones. */
static void fill_sizes(calls *d, check_level level)
{
    static const int32_t n[] = {1, 2, 3, 5, 17, 33, 65, 257, 4097};
    static const int32_t times[][9] = {[LAW_SHAPES] = {48, 16, 12, 10, 6, 4, 2, 1, 1},
                                       [LAW_LONG] = {3, 2, 2, 1, 1, 0, 0, 0, 0},
                                       [LAW_NEIGHBOURS] = {12, 6, 6, 5, 4, 3, 2, 2, 0},
                                       [LAW_COLD] = {2, 1, 1, 1, 1, 1, 1, 0, 0}};
    const bool largest = level != LEVEL_SMOKE;
    for (int i = 0; i < 8 + largest; i++) deck_add(&d->sizes, n[i], times[d->shape][i]);
    for (int i = 0; i < 8 + largest; i++)
        if (times[d->shape][i]) d->n = n[i];
}

/* Every number of drafts up to 8 is frequent, as are those on which code is specialised. */
static void fill_gammas(calls *d)
{
    enum { OFTEN = 8, USUAL = 17 };
    const bool one = d->shape == LAW_NEIGHBOURS || d->shape == LAW_COLD || d->op == LAW_DRAW;
    for (int32_t g = 0; !one && g < d->gamma && g <= USUAL; g++)
        deck_add(&d->gammas, g, g <= OFTEN ? 2 : 1);
    deck_add(&d->gammas, d->gamma, 1);
}

/* Tokens of a stream at most. Seeded uniforms of verify take a call a token. */
static int32_t most_tokens(const calls *d)
{
    if (d->shape == LAW_LONG) return LONG_TOKENS + 3;
    if (d->shape == LAW_SHAPES && d->likely && d->op != LAW_DRAW) return d->gamma + 3;
    return d->shape == LAW_COLD ? COLD_TOKENS : 4;
}

static int32_t draw_tokens(calls *d, int32_t gamma)
{
    if (d->shape == LAW_LONG) return LONG_TOKENS + probe_below(&d->rng, 4);
    if (d->shape == LAW_NEIGHBOURS) return 2;
    if (d->shape == LAW_COLD) return COLD_TOKENS;
    if (!d->likely || d->op == LAW_DRAW) return 1 + probe_below(&d->rng, 4);
    return probe_below(&d->rng, 4) == 0 ? 1 + probe_below(&d->rng, gamma + 2) : gamma + 3;
}

/* Any token, or the likeliest of some state. */
static int32_t draw_end(calls *d)
{
    const double *p = panel_p(d->a, probe_below(&d->rng, d->a->view.S));
    int32_t best = 0;
    if (probe_below(&d->rng, 2) == 0) return probe_below(&d->rng, d->a->view.V);
    for (int32_t t = 1; t < d->a->view.V; t++)
        if (p[t] > p[best]) best = t;
    return best;
}

/* Streams of a drawn shape start anywhere, and one call in three has an end of sequence. */
static law_call draw_call(calls *d, int64_t left, int32_t *start)
{
    law_call b = {.n = deal(&d->sizes), .gamma = deal(&d->gammas), .eos = -1, .start = start};
    b.k = draw_tokens(d, b.gamma);
    /* As much work as a call of a fixed case at most, for slow implementations and for those that gather rows. */
    const int64_t fit = MOST_WORK / ((int64_t)b.k * d->a->view.V);
    if (b.n > fit) b.n = fit > 1 ? (int32_t)fit : 1;
    if (b.n > left) b.n = (int32_t)left;
    for (int32_t i = 0; i < b.n; i++)
        start[i] = d->shape == LAW_SHAPES ? probe_below(&d->rng, d->a->view.S) : 0;
    if (d->shape != LAW_SHAPES) return b;
    b.ragged = probe_below(&d->rng, 4) == 0;
    if (probe_below(&d->rng, 3) == 0) b.eos = draw_end(d);
    return b;
}

/* Tokens that n streams have at most. The calls do not depend on answers: the copy deals them once. */
static int64_t tokens_of(calls d, int64_t n, int32_t *start)
{
    int64_t tokens = 0;
    while (n > 0) {
        const law_call b = draw_call(&d, n, start);
        tokens += (int64_t)b.n * b.k;
        n -= b.n;
    }
    return tokens;
}

static void open_calls(calls *d, const check_case *c, const check_context *x)
{
    d->gamma = c->gamma, d->likely = c->acceptance > 0.6;
    d->rng = check_seed(x, c, 3);
    d->sizes.rng = check_seed(x, c, 4), d->gammas.rng = check_seed(x, c, 5);
    fill_sizes(d, x->level);
    fill_gammas(d);
    d->k = most_tokens(d);
}

/* -- The panel --------------------------------------------------------------------- */

static void exchange(panel *a, int32_t s, int32_t x, int32_t y)
{
    const size_t V = (size_t)a->view.V, i = (size_t)s * V + (size_t)x,
                 j = (size_t)s * V + (size_t)y;
    float *const row[] = {a->p, a->q, a->p_logit, a->q_logit};
    double *const law[] = {a->p64, a->q64};
    for (int r = 0; r < 4; r++) {
        const float t = row[r][i];
        row[r][i] = row[r][j], row[r][j] = t;
    }
    for (int r = 0; r < 2; r++) {
        const double t = law[r][i];
        law[r][i] = law[r][j], law[r][j] = t;
    }
}

/* In every other state, the first one included, the likeliest tokens are the last ids: kernels work
 * on whole blocks of ids, and what is wrong behind the last block must not be rare. */
static void load_the_tail(panel *a)
{
    static const int32_t back[] = {1, 2, 4, 8, 16, 32, 64, 100};
    for (int32_t s = 0; s < a->view.S; s += 2)
        for (int i = 0; i < 8 && back[i] < a->view.V / 2; i++) {
            const double *p = panel_p(a, s);
            int32_t best = -1;
            for (int32_t t = 0; t < a->view.V - (i ? back[i - 1] : 0); t++)
                if (best < 0 || p[t] > p[best]) best = t;
            exchange(a, s, best, a->view.V - back[i]);
        }
}

/* One state says enough of a wide row. */
static panel *open_panel(const check_case *c, const check_context *x, const panel_form *rows,
                         char *why, size_t size)
{
    enum { WIDE = 2048 };
    const panel_form form = {.V = c->V,
                             .acceptance = c->acceptance,
                             .layers = c->V > WIDE,
                             .classes = c->V > WIDE,
                             .seed = check_seed(x, c, 0),
                             .variant = rows->variant,
                             .target = rows->target,
                             .draft = rows->draft,
                             .filters = rows->filters};
    panel *a = panel_make(&form, why, size);
    if (a) load_the_tail(a);
    return a;
}

/* -- Sampling ---------------------------------------------------------------------- */

enum { PROCESSES = 8 };

typedef struct {
    law_sampler s;
    law_views *views;
    law_kinds *kinds; /* for the cause of a FAIL; NULL without memory: no cause is told */
    neighbours *beside; /* LAW_NEIGHBOURS, else NULL */
    double ended[PROCESSES]; /* LAW_COLD: ln E of each process before this one */
    int32_t processes;
    const char *most; /* what shows most in the last of them */
    int32_t *tokens, *length, *start;
    int64_t done, tokens_seen, calls;
    bool lost;
} sample;

/* A generator that every process starts anew gives each the same noise, which is no fault: e-values of
 * processes are averaged, not multiplied. */
static bool next_process(sample *m, const calls *d, uint64_t seed, check_result *r)
{
    if (m->done > 0) m->ended[m->processes++] = law_views_log_e(m->views, &m->most);
    law_views_free(m->views);
    m->views = law_views_new(d->a, d->k, seed + (uint64_t)m->done);
    if (!m->views) result_set(r, STATE_ERROR, "out of memory");
    return m->views && result_call(r, m->s.x, "restart", client_restart(m->s.x->iut));
}

static bool open_beside(sample *m, const panel *a)
{
    const size_t S = (size_t)a->view.S;
    double *state = malloc(2 * S * sizeof *state);
    double *second = malloc((size_t)a->view.V * sizeof *second);
    m->beside = calloc(1, sizeof *m->beside);
    bool ok = state && second && m->beside;
    if (ok) {
        panel_states(a, 0, 2, state);
        panel_marginal(a, state + S, second);
        ok = neighbours_open(m->beside, a->view.V, panel_p(a, 0), second);
    }
    free(state);
    free(second);
    return ok;
}

static bool open_sample(sample *m, const calls *d, const check_case *c, const check_context *x)
{
    m->views = law_views_new(d->a, d->k, check_seed(x, c, 6));
    m->kinds = law_kinds_new(d->a, d->op);
    m->tokens = malloc((size_t)d->n * (size_t)d->k * sizeof *m->tokens);
    m->length = malloc((size_t)d->n * sizeof *m->length);
    m->start = malloc((size_t)d->n * sizeof *m->start);
    return m->views && m->tokens && m->length && m->start &&
           (d->shape != LAW_NEIGHBOURS || open_beside(m, d->a));
}

static void close_sample(sample *m)
{
    law_sampler_close(&m->s);
    law_views_free(m->views);
    law_kinds_free(m->kinds);
    if (m->beside) neighbours_close(m->beside);
    free(m->beside);
    free(m->tokens);
    free(m->length);
    free(m->start);
}

static void count_call(sample *m, const law_call *b, int64_t first)
{
    for (int32_t i = 0; i < b->n; i++) {
        const int32_t *token = m->tokens + (size_t)i * (size_t)b->k;
        const law_place place = {.n = b->n,
                                 .i = i,
                                 .gamma = b->gamma,
                                 .eos = m->s.eos,
                                 .request = first + i};
        law_views_add(m->views, &place, b->start[i], token, m->length[i]);
        law_kinds_add(m->kinds, b->gamma, b->start[i], token, m->length[i]);
        if (m->beside && !neighbours_add(m->beside, token[0], token[1])) m->lost = true;
        m->tokens_seen += m->length[i];
    }
    m->done += b->n;
    m->calls++;
}

/* As many streams as the case has, or the strict null allows: there is no tolerance null (STAT-03).
 * 0: it allows too few, and `r` says so. */
static int64_t strict_streams(sample *m, const calls *d, int64_t n, check_result *r)
{
    enum { LEAST = 32 };
    int64_t tokens = tokens_of(*d, n, m->start);
    for (; n >= LEAST; n /= 2, tokens = tokens_of(*d, n, m->start)) {
        check_result none = {.state = STATE_PASS};
        const bool strict = law_strict(&m->s, tokens, &none);
        r->nats = none.nats;
        if (strict) return n;
        if (none.state != STATE_NOT_CLAIMED || n / 2 < LEAST) {
            result_set(r, none.state, "%s", none.detail);
            return 0;
        }
    }
    result_set(r, STATE_ERROR, "a case of %lld streams was drawn; the least is %d", (long long)n, LEAST);
    return 0;
}

/* False: `r` has the failing fact. */
static bool take(sample *m, calls *d, const check_case *c, int64_t n, check_result *r)
{
    int64_t first = 0; /* stream of the process, or of the case */
    while (m->done < n) {
        if (d->shape == LAW_COLD && m->done % COLD == 0) {
            if (!next_process(m, d, check_seed(m->s.x, c, 6), r)) return false;
            first = m->done;
        }
        const int64_t left = n - m->done, cold = first + COLD - m->done;
        const law_call b =
            draw_call(d, d->shape == LAW_COLD && cold < left ? cold : left, m->start);
        if (!law_sample_call(&m->s, &b, m->tokens, m->length, r)) return false;
        count_call(m, &b, m->done - first);
    }
    return true;
}

/* -- Judgement --------------------------------------------------------------------- */

/* The views, and what else this case bets on: plain mean. */
static double log_e_of(sample *m, law_shape shape)
{
    double log_e[PROCESSES + 1];
    const char *name[3] = {""};
    int n = 0, best = 0, lag;
    if (m->lost) return NAN;
    for (; n < m->processes; n++) log_e[n] = m->ended[n];
    log_e[n++] = law_views_log_e(m->views, &name[0]);
    m->most = name[0];
    if (shape == LAW_COLD) return st_log_mean(log_e, NULL, (size_t)n);
    if (m->s.op != LAW_DRAW && m->s.a->view.V <= 1024)
        log_e[n] = law_coupling(&m->s), name[n++] = "accepted drafts";
    if (m->beside) log_e[n] = neighbours_log_e(m->beside, &lag), name[n++] = "earlier requests";
    for (int i = 1; i < n; i++)
        if (log_e[i] > log_e[best]) best = i;
    m->most = name[best];
    return st_log_mean(log_e, NULL, (size_t)n);
}

static void judge(sample *m, const check_context *x, law_shape shape, check_result *r)
{
    enum { VIEWS = 9, ORDERS = 2 * 3, KAPPAS = 8 };
    const double log_e = log_e_of(m, shape);
    const int64_t tokens = m->tokens_seen;
    const st_tv tv = law_views_tv(m->views);
    r->compared = m->done;
    r->log_e = log_e;
    result_figure(r, "n", (double)m->done);
    result_figure(r, "tokens", (double)tokens);
    result_figure(r, "calls", (double)m->calls);
    result_figure(r, "log_e", log_e);
    result_figure(r, "tv", tv.tv);
    result_figure(r, "tv_lo", tv.lo);
    result_figure(r, "tv_hi", tv.hi);
    result_figure(r, "tv_power", fmin(1, st_view_tv90((double)tokens, 16,
                                                      x->log_e_fail +
                                                          log(VIEWS * ORDERS * KAPPAS))));
    if (isnan(log_e)) {
        r->log_e = 0;
        result_set(r, STATE_ERROR, "counts were lost: the suite is short of memory");
        return;
    }
    const bool fails = log_e >= x->log_e_fail;
    result_set(r, fails ? STATE_FAIL : STATE_PASS,
               "%s%lld streams in %lld calls, %lld tokens, ln E = %.4g (line %.4g)%s%s",
               fails ? "not the target's law: " : "", (long long)m->done, (long long)m->calls,
               (long long)tokens, log_e, x->log_e_fail, fails ? "; it shows most by " : "",
               fails ? m->most : "");
}

/* STAT-08: what the tokens of all calls say together. */
static void name_cause(const sample *m, const check_case *c, check_result *r)
{
    st_pool sum = {.n = 0};
    if (r->state == STATE_FAIL && law_kinds_pool(m->kinds, check_seed(m->s.x, c, 7), &sum))
        law_name_cause(&sum, r->log_e, r);
}

void law_drawn_case(const check_case *c, const check_context *x, law_op op, law_shape shape,
                    const panel_form *rows, check_result *r)
{
    char why[200];
    calls d = {.shape = shape, .op = op};
    sample m = {.done = 0};
    panel *a = open_panel(c, x, rows, why, sizeof why);
    d.a = a;
    open_calls(&d, c, x);
    if (!a || !open_sample(&m, &d, c, x))
        result_set(r, STATE_ERROR, "%s (STA-03)", a ? "out of memory" : why);
    else if (law_sampler_open_for(&m.s, c, x, a, op, d.n, d.k, r)) {
        const int64_t n = strict_streams(&m, &d, c->n, r);
        if (n > 0 && take(&m, &d, c, n, r)) {
            judge(&m, x, shape, r);
            name_cause(&m, c, r);
            /* Cold processes may have the same noise: what they show is not independent. */
            if (shape != LAW_COLD) law_tell_speed(&m.s, r);
        }
    }
    close_sample(&m);
    panel_free(a);
}

/* -- What is drawn ----------------------------------------------------------------- */

/* No case is judged strictly on so few bits. */
static bool fine(const client *tested)
{
    return law_bits(client_claims(tested)) >= 24;
}

check_case *law_draw_case(check_plan *plan, check_draw *d, const check *owner, const char *name,
                          const int32_t *V, int32_t count, int32_t gamma, int64_t n)
{
    const int32_t limit = client_claims(d->iut)->max_vocab;
    int32_t fit = 0;
    while (fit < count && (limit == 0 || V[fit] <= limit)) fit++;
    const int32_t drawn = V[probe_below(&d->rng, fit > 0 ? fit : 1)];
    gamma = gamma_within(gamma, d->iut);
    if (fit == 0 || !fine(d->iut)) return NULL;
    check_case *c = draw_case(plan, d, owner, "%s-V%d-g%d", name, (int)drawn, (int)gamma);
    c->V = drawn, c->gamma = gamma, c->n = n;
    c->acceptance = 0.5;
    c->statistical = true;
    c->cost = 3 * cost_of_rows(n, drawn);
    return c;
}

/* Odd numbers, and the least: primes, powers of two plus or minus one, tokenizers. */
static const int32_t narrow[] = {2, 3, 5, 7, 8, 9, 11, 13, 15, 17, 31, 33};
static const int32_t middle[] = {63, 65, 67, 127};
static const int32_t wide[] = {129, 251, 255, 257, 509, 511, 513, 1001};
static const int32_t large[] = {4093, 4096, 8191, 8193, 32003, 32768, 50257, 65537, 131073, 151665, 262144};
#define LENGTH(list) ((int32_t)(sizeof(list) / sizeof *(list)))

void law_draw_shapes(check_plan *plan, check_draw *d, const check *owner, law_op op)
{
    enum { MOST = 33, SLOW = 4 }; /* SLOW: the last of `large`, a quarter of a second each */
    static const int64_t streams[] = {16000, 100000, 1000000};
    static const int32_t rounds[] = {1, 3, 12};
    const int32_t gamma = op == LAW_DRAW ? 0 : MOST;
    const int64_t n = op == LAW_STREAM ? 3 * streams[d->level] / 2 : streams[d->level];
    for (int32_t i = 0; i < rounds[d->level]; i++) {
        law_draw_case(plan, d, owner, "unlikely", narrow, LENGTH(narrow), gamma, n);
        check_case *c = law_draw_case(plan, d, owner, "likely", wide, LENGTH(wide), gamma, n / 10);
        if (c) c->acceptance = 0.9;
        c = law_draw_case(plan, d, owner, "masked", middle, LENGTH(middle), gamma, n / 20);
        if (c) c->acceptance = 0.7, c->variant = PANEL_MASKED;
        if (d->level == LEVEL_SMOKE && op != LAW_DRAW) continue;
        const int32_t size = d->level == LEVEL_SMOKE ? LENGTH(large) - SLOW : LENGTH(large);
        law_draw_case(plan, d, owner, "large", large, size, gamma ? 4 : 0, n / 250);
    }
}
