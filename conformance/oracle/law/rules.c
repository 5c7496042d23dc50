/* rules.c - see rules.h. */
#include "conformance/oracle/law/rules.h"

#include "conformance/oracle/law/candidates.h"
#include "conformance/oracle/law/chain.h"

/* C > floor(u*W) iff u*W < C, for integers C. The last id of positive weight has C = W, which
 * every u satisfies, so a row with weight always yields an id. */
static int32_t draw_weights(lane *l, uint32_t uniform, const float *p, const float *q,
                            int32_t V, bool *empty)
{
    uint64_t W = 0, C = 0;
    for (int32_t t = 0; t < V; t++) {
        const float w = q ? p[t] - q[t] : p[t];
        W += w > 0 ? oracle_weight(w) : 0;
    }
    *empty = W == 0;
    for (int32_t t = 0; t < V && !*empty; t++) {
        const float w = q ? p[t] - q[t] : p[t];
        C += w > 0 ? oracle_weight(w) : 0;
        if (l->lt(l, uniform, (double)W, (double)C)) return t;
    }
    return -1;
}

int32_t oracle_lane_draw(lane *l, uint32_t uniform, const float *w, int32_t V)
{
    bool empty;
    return draw_weights(l, uniform, w, NULL, V, &empty);
}

/* RES-02 and RES-03. */
static int32_t draw_correction(lane *l, uint32_t uniform, const float *p, const float *q,
                               int32_t V)
{
    bool empty;
    const int32_t t = draw_weights(l, uniform, p, q, V, &empty);
    return empty ? oracle_lane_draw(l, uniform, p, V) : t;
}

/* Where a stream stands: `position` tokens are out, the model is in `state`. */
typedef struct {
    const oracle_stream *s;
    lane *l;
    int32_t *tokens;
    int32_t position, state, step;
} cursor;

static uint32_t uniform_of(const cursor *c, uint32_t purpose, int32_t position)
{
    return lane_uniform(purpose, (uint32_t)position, c->s->fresh ? (uint32_t)c->step : 0);
}

static const float *row(const float *rows, const cursor *c)
{
    return rows + (size_t)c->state * (size_t)c->s->panel->V;
}

static int32_t after(const oracle_panel *m, int32_t state, int32_t token)
{
    return m->next[(size_t)state * (size_t)m->C + (size_t)m->cls[token]];
}

static void emit(cursor *c, int32_t token)
{
    c->tokens[c->position++] = token;
    c->state = after(c->s->panel, c->state, token);
}

/* LAW-03: a chain of drafts, each from the q of the state that the ones before lead to. */
static void draw_drafts(const cursor *c, int32_t n, int32_t *draft)
{
    const oracle_panel *m = c->s->panel;
    int32_t state = c->state;
    for (int32_t i = 0; i < n; i++) {
        draft[i] = oracle_lane_draw(c->l, uniform_of(c, LANE_DRAFT, c->position + i),
                                    m->q + (size_t)state * (size_t)m->V, m->V);
        state = after(m, state, draft[i]);
    }
}

static void token_step(cursor *c, const int32_t *draft, int32_t n)
{
    const oracle_panel *m = c->s->panel;
    for (int32_t i = 0; i < n; i++) {
        const float *p = row(m->p, c), *q = row(m->q, c);
        const int32_t x = draft[i];
        if (!c->l->lt(c->l, uniform_of(c, LANE_ACCEPT, c->position), q[x], p[x])) {
            emit(c,
                 draw_correction(c->l, uniform_of(c, LANE_RESIDUAL, c->position), p, q, m->V));
            return;
        }
        emit(c, x);
    }
    if (c->position < c->s->k)
        emit(c,
             oracle_lane_draw(c->l, uniform_of(c, LANE_DRAW, c->position), row(m->p, c), m->V));
}

static void match_step(cursor *c, const int32_t *draft, int32_t n)
{
    for (int32_t i = 0; i <= n && c->position < c->s->k; i++) {
        const int32_t y = oracle_lane_draw(c->l, uniform_of(c, LANE_DRAW, c->position),
                                           row(c->s->panel->p, c), c->s->panel->V);
        emit(c, y);
        if (i < n && y != draft[i]) return;
    }
}

enum { MAX_DRAFTS = 16 };

/* STOP-03: drafts beyond the budget change nothing, so there are none. */
static void run_stream(lane *l, void *arg, int32_t *tokens, int32_t *count,
                       void (*step)(cursor *, const int32_t *, int32_t))
{
    const oracle_stream *s = arg;
    cursor c = {s, l, tokens, 0, s->start, 0};
    int32_t draft[MAX_DRAFTS];
    for (; c.position < s->k; c.step++) {
        int32_t n = s->k - c.position;
        if (n > s->gamma) n = s->gamma;
        if (n > MAX_DRAFTS) n = MAX_DRAFTS;
        draw_drafts(&c, n, draft);
        step(&c, draft, n);
    }
    *count = c.position;
}

void oracle_token_stream(lane *l, void *arg, int32_t *tokens, int32_t *count)
{
    run_stream(l, arg, tokens, count, token_step);
}

void oracle_match_stream(lane *l, void *arg, int32_t *tokens, int32_t *count)
{
    run_stream(l, arg, tokens, count, match_step);
}

/* ---- Sets of candidates ---------------------------------------------------------- */

/* The panel from a state on. */
typedef struct {
    const oracle_panel *panel;
    int32_t state;
} standing;

static void panel_weights(void *arg, const oracle_list *run, uint64_t *w)
{
    const standing *at = arg;
    int32_t s = at->state;
    for (int32_t i = 0; i < run->n; i++) s = after(at->panel, s, run->t[i]);
    for (int32_t t = 0; t < at->panel->V; t++)
        w[t] = oracle_weight(at->panel->p[(size_t)s * (size_t)at->panel->V + (size_t)t]);
}

void oracle_verify_stream(lane *l, void *arg, int32_t *tokens, int32_t *count)
{
    const oracle_candidate_stream *c = arg;
    standing at = {c->panel, c->start};
    const oracle_rows rows = {c->panel->V, panel_weights, NULL, &at};
    for (*count = 0; *count < c->k;) {
        const oracle_verification v = {&c->candidates[at.state], *count, c->bonus};
        oracle_list run = {0};
        if (c->match)
            oracle_verify_match(l, &rows, &v, &run);
        else
            oracle_verify_onehot(l, &rows, &v, &run);
        for (int32_t i = 0; i < run.n && *count < c->k; i++) {
            tokens[(*count)++] = run.t[i];
            at.state = after(c->panel, at.state, run.t[i]);
        }
        oracle_list_free(&run);
    }
}
