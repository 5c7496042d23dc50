/* stop.rules - where a stream ends (STOP). The target is one-hot in every state, so every
 * implementation emits one known stream, whatever its rule and its uniforms (LAW-05, LAW-08): any
 * end of sequence, budget and gamma has one right answer. The drafts are all accepted, all
 * rejected, or mixed. */
#include <stdio.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/frame/draw.h"

enum { V = 32, STATES = 24, GAMMAS = 5, DEEPEST = 33, TOKENS = 2 * DEEPEST + 6 };
enum { ACCEPTING, REJECTING, MIXED, DRAFTS };

static const char *const drafts_name[DRAFTS] = {"accepting", "rejecting", "mixed"};

static void plan(check_plan *p, check_level level)
{
    static const int32_t gammas[GAMMAS] = {0, 1, 2, 4, 6};
    (void)level;
    for (int32_t d = 0; d < DRAFTS; d++)
        for (int32_t g = 0; g < GAMMAS; g++) {
            check_case *c = plan_case(p, &check_stop_rules, "%s-g%d", drafts_name[d], (int)gammas[g]);
            c->V = V;
            c->cost = cost_of_rows(1000, c->V);
            c->gamma = gammas[g];
            c->variant = d;
        }
}

/* Each state has a token of its own. */
static int32_t states_of(int32_t vocab)
{
    const int32_t most = vocab > 32768 ? 3 : vocab > 2048 ? 6 : STATES;
    return vocab < most ? vocab : most;
}

/* From one budget to the next: of long rows, a few. */
static int32_t budget_step(const check_case *c)
{
    return c->V > 2048 ? c->gamma + 1 : 1;
}

/* Of any vocabulary and gamma (VER-11): ids beyond 16 bits. */
static void draw(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {1, 6, 30};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t drafts = probe_below(&d->rng, DRAFTS);
        check_case *c = draw_rows(p, d, &check_stop_rules, drafts_name[drafts], 1 << 17, DEEPEST, 1);
        const int32_t S = states_of(c->V), longest = 2 * c->gamma + 2;
        c->variant = drafts;
        c->cost = cost_of_rows(S * longest * (longest / budget_step(c) + 2 * S), c->V);
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    return check_has(tested, OP_STREAM, why, size) && replay_fits_whole(c, tested, why, size);
}

/* The only token of a state: another one in every state, the first and the last id among them. */
static int32_t token_of(const probe *m, int32_t state)
{
    return m->S > 1 ? (int32_t)((int64_t)state * (m->V - 1) / (m->S - 1)) : 0;
}

static void fill(const probe *m, int32_t drafts)
{
    for (int32_t s = 0; s < m->S; s++) {
        const int32_t kind = drafts == MIXED ? s % 3 : drafts, own = token_of(m, s);
        const int32_t other = (own + 1 + m->V / 4) % m->V;
        probe_one_hot(probe_p(m, s), m->V, own);
        probe_one_hot(probe_q(m, s), m->V, kind == ACCEPTING ? own : other);
        if (kind == MIXED) probe_q(m, s)[other] = probe_q(m, s)[own] = 0.5f;
    }
}

/* What the stream from `state` must be: up to k tokens, ending after eos. */
static int32_t expected(const probe *m, int32_t state, int32_t k, int32_t eos, int32_t *out)
{
    for (int32_t i = 0;; i++) {
        if (i == k) return k;
        out[i] = token_of(m, state);
        if (out[i] == eos) return i + 1;
        state = m->next[(size_t)state * (size_t)m->view.C + (size_t)m->cls[out[i]]];
    }
}

static void judge(const probe *m, const iut_stream_batch *b, check_result *r)
{
    for (int32_t i = 0; i < b->n && r->state == STATE_PASS; i++) {
        int32_t want[TOKENS];
        const int32_t *out = b->out + (int64_t)i * b->k,
                      n = expected(m, b->start[i], b->k, b->eos, want);
        bool same = b->out_len[i] == n && memcmp(out, want, (size_t)n * sizeof *out) == 0;
        for (int32_t j = n; j < b->k; j++) same = same && out[j] == -1;
        r->compared++;
        if (same) continue;
        char text[400] = "";
        replay_list(text, sizeof text, "expected", want, n);
        replay_list(text, sizeof text, ", got", out, b->k);
        result_set(r, STATE_FAIL, "start %d, gamma %d, budget %d, eos %d: out_len %d, %s",
                   (int)b->start[i], (int)b->gamma, (int)b->k, (int)b->eos, (int)b->out_len[i],
                   text);
    }
}

static bool stream(const probe *m, const check_context *x, int32_t gamma, int32_t k,
                   int32_t eos, check_result *r)
{
    int32_t start[STATES], out[STATES * TOKENS], len[STATES], accepted[STATES * TOKENS];
    for (int32_t i = 0; i < m->S; i++) start[i] = i;
    memset(out, 0xff, sizeof out);
    memset(accepted, 0xff, sizeof accepted);
    iut_stream_batch b = {sizeof b, m->S, gamma, k, eos, start, 7, out, len, accepted};
    if (result_call(r, x, "stream", client_stream(x->iut, &b))) judge(m, &b, r);
    return r->state == STATE_PASS;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const int32_t longest = 2 * c->gamma + 2;
    probe *m = probe_open(states_of(c->V), c->V);
    if (m) fill(m, c->variant);
    if (probe_serve(m, x, r)) {
        /* Budgets up to two full runs (STOP-02, STOP-03: the first ones are below gamma);
         * an end at every place of the runs (STOP-01), with room after it and with none. */
        bool going = true;
        for (int32_t k = 1; going && k <= longest; k += budget_step(c))
            going = stream(m, x, c->gamma, k, -1, r);
        for (int32_t s = 0; going && s < m->S; s++)
            going = stream(m, x, c->gamma, longest + 4, token_of(m, s), r) &&
                    stream(m, x, c->gamma, c->gamma + 1, token_of(m, s), r);
    }
    result_set(r, STATE_PASS, "%lld streams end where they must", (long long)r->compared);
    probe_close(m);
}

const check check_stop_rules = {
    .name = "stop.rules",
    .clauses = "STOP-01 STOP-02 STOP-03 STOP-04 BON-02 LAW-05 LAW-08 LAY-01",
    .summary = "ends of sequence and budgets at every place of a run",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
