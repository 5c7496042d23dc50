/* format.verify, format.draw, format.stream - hard facts (LAY-01), whatever the rule and the
 * source of uniforms: ids in range, masked tokens never emitted, counts exact, accepted drafts
 * first and in order, -1 beyond, inputs unwritten, and the same call twice the same answer. One
 * violation is FAIL. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/frame/draw.h"

enum { STATES = 8, STATES_WIDE = 2, WIDE = 4096, STREAM_TOKENS = 12 };
enum { HOT = PROBE_SHAPES }; /* beside the shapes of a probe: the target's rows are one-hot */

static const int32_t vocabularies[] = {2, 3, 17, 64, 1000, 32000};
enum { VOCABULARIES = sizeof vocabularies / sizeof *vocabularies };

static void plan_one(check_plan *p, const check *check_, check_level level, int64_t smoke)
{
    for (int32_t i = 0; i < VOCABULARIES; i++)
        for (int32_t masked = 0; masked < 2; masked++) {
            const int32_t V = vocabularies[i];
            check_case *c = plan_case(p, check_, "V%d-%s", (int)V, masked ? "masked" : "dense");
            c->V = V;
            c->gamma = masked ? 3 : 4;
            c->variant = masked ? PROBE_MASKED : PROBE_DENSE;
            c->n = smoke << 2 * (int)level >> (V > WIDE ? 5 : 0);
            c->cost = cost_of_rows(c->n, c->V);
        }
}

/* Of any size; a call has any number of cases (VER-11). */
static void draw_some(check_plan *p, check_draw *d, const check *check_, int32_t gamma_most)
{
    static const int32_t count[] = {2, 8, 60};
    for (int32_t i = 0; i < count[d->level]; i++) {
        static const char *const name[] = {"dense", "masked", "head"};
        static const probe_shape shape[] = {PROBE_DENSE, PROBE_MASKED, PROBE_HEAD};
        const int32_t kind = probe_below(&d->rng, 3);
        check_case *c = draw_rows(p, d, check_, name[kind], 1 << 18, gamma_most, 1000);
        c->variant = shape[kind];
        c->n = draw_cases(d, (int32_t)c->n);
    }
}

static probe *panel_of(const check_case *c, uint64_t *rng)
{
    const int32_t S = c->V > WIDE ? STATES_WIDE : STATES;
    const bool hot = c->variant == HOT;
    probe *m = probe_general(S, c->V, hot ? PROBE_DENSE : (probe_shape)c->variant, rng);
    for (int32_t s = 0; m && hot && s < S; s++) probe_one_hot(probe_p(m, s), c->V, probe_below(rng, c->V));
    return m;
}

/* May this row emit the token? LAW-05, whatever the rule (LAW-08). */
static bool emits(const probe *m, int32_t state, int32_t token, char *why, size_t size)
{
    if (token < 0 || token >= m->V) {
        snprintf(why, size, "%d is no id of the vocabulary of %d (DRAW-05)", (int)token,
                 (int)m->V);
        return false;
    }
    if (probe_p(m, state)[token] == 0.0f) {
        snprintf(why, size, "token %d is masked: p = 0 in state %d (LAW-05)", (int)token,
                 (int)state);
        return false;
    }
    return true;
}

/* -- verify ------------------------------------------------------------------------ */

static void plan_verify(check_plan *p, check_level level)
{
    enum { N = 2000 };
    plan_one(p, &check_format_verify, level, N);
    check_case *c = plan_case(p, &check_format_verify, "V3-hot");
    c->V = 3, c->gamma = 4, c->variant = HOT;
    c->n = N << 2 * (int)level;
    c->cost = cost_of_rows(c->n, c->V);
}

static void draw_verify(check_plan *p, check_draw *d)
{
    draw_some(p, d, &check_format_verify, STEPS_GAMMA);
}

static bool claimed_verify(const check_case *c, const client *tested, char *why, size_t size)
{
    return check_has(tested, OP_VERIFY, why, size) && replay_fits(c, tested, why, size);
}

/* A rejected draft never comes back as its own correction: under the token rule its residual is
 * 0, under the match rule it was accepted. Then a last token that is the draft lacks the one
 * after it. */
static bool lacks_last(const iut_claims *claims, int32_t token, int32_t draft)
{
    return token == draft && (claims->rule == IUT_RULE_TOKEN || claims->rule == IUT_RULE_MATCH);
}

static bool well_formed(const steps *s, int32_t i, const probe *m, const client *tested,
                        char *why, size_t size)
{
    const int32_t *draft = steps_draft(s, i), *out = steps_out(s, i), n = s->out_len[i];
    int32_t drafts = 0;
    while (drafts < s->len[i] && draft[drafts] >= 0) drafts++;
    if (n < 1 || n > drafts + 1) {
        snprintf(why, size, "%d tokens where %d drafts allow 1 to %d (BON-02)", (int)n,
                 (int)drafts, (int)drafts + 1);
        return false;
    }
    for (int32_t j = 0; j < n; j++)
        if (!emits(m, steps_state(s, i)[j], out[j], why, size)) return false;
    for (int32_t j = 0; j + 1 < n; j++)
        if (out[j] != draft[j]) {
            snprintf(why, size, "place %d is not the draft, yet more follows (BON-02)", (int)j);
            return false;
        }
    if (n <= drafts && lacks_last(client_claims(tested), out[n - 1], draft[n - 1])) {
        snprintf(why, size, "place %d is the draft, and no token follows (BON-02)", (int)n - 1);
        return false;
    }
    for (int32_t j = n; j <= s->gamma; j++)
        if (out[j] != -1) {
            snprintf(why, size, "place %d beyond the count is not -1 (BON-04)", (int)j);
            return false;
        }
    return true;
}

/* Drafts from q; in a quarter of the cases a -1 with something behind it. */
static void fill(steps *s, const probe *m, int64_t n, uint64_t *rng)
{
    for (int64_t c = 0; c < n; c++) {
        const int32_t i = steps_add(s, probe_below(rng, s->gamma + 1));
        for (int32_t j = 0; j <= s->len[i]; j++) {
            const int32_t state = steps_state(s, i)[j] = probe_below(rng, m->S);
            if (j < s->len[i])
                steps_draft(s, i)[j] = probe_draw(m->cum_q + (int64_t)state * m->V, m->V, rng);
        }
        if (s->len[i] && probe_below(rng, 4) == 0)
            steps_draft(s, i)[probe_below(rng, s->len[i])] = -1;
        steps_beyond(s, i, m);
        for (int32_t j = 0; j < s->gamma + 2; j++) {
            const double u = probe_u24(rng); /* and both ends of the range (DRAW-04) */
            steps_u(s, i)[j] = i % 8 == 0 ? 0 : i % 8 == 4 ? 1 - 0x1p-24 : u;
        }
    }
}

/* A copy of what the IUT may not write, and of its answers. */
typedef struct {
    int32_t *inputs, *answers;
    size_t states, drafts, outs; /* numbers of int32_t */
} snapshot;

static bool snap(snapshot *k, const steps *s)
{
    const size_t n = (size_t)s->n, width = (size_t)s->gamma + 1;
    k->states = n * width;
    k->drafts = n * (size_t)s->gamma;
    k->outs = n * width;
    k->inputs = malloc((k->states + k->drafts) * sizeof(int32_t));
    k->answers = malloc(k->outs * sizeof(int32_t));
    if (!k->inputs || !k->answers) return false;
    memcpy(k->inputs, s->state, k->states * sizeof(int32_t));
    memcpy(k->inputs + k->states, s->draft, k->drafts * sizeof(int32_t));
    return true;
}

static bool inputs_kept(const snapshot *k, const steps *s)
{
    return !memcmp(k->inputs, s->state, k->states * sizeof(int32_t)) &&
           !memcmp(k->inputs + k->states, s->draft, k->drafts * sizeof(int32_t));
}

/* INV-03, and INV-02 for the panel: an IUT that writes to its rows answers otherwise the second
 * time. In a process of its own that is all that can be seen of them. */
static bool repeats(steps *s, snapshot *k, const check_context *x, const probe *m,
                    uint64_t seed, check_result *r)
{
    memcpy(k->answers, s->out, k->outs * sizeof(int32_t));
    if (!steps_verify(s, x, m->V, seed, 0, r)) return false;
    if (!memcmp(k->answers, s->out, k->outs * sizeof(int32_t))) return true;
    result_set(r, STATE_FAIL,
               "the same call twice gives two answers: uniforms are not its own, so "
               "it keeps a state or writes to its rows (INV-02, INV-03)");
    return false;
}

static void judge_format(const steps *s, const probe *m, const check_context *x,
                         check_result *r)
{
    for (int32_t i = 0; i < s->n && r->state == STATE_PASS; i++) {
        char why[160];
        r->compared++;
        if (well_formed(s, i, m, x->iut, why, sizeof why)) continue;
        char text[300] = "";
        replay_list(text, sizeof text, "states", steps_state(s, i), s->len[i] + 1);
        replay_list(text, sizeof text, ", drafts", steps_draft(s, i), s->len[i]);
        replay_list(text, sizeof text, ", got", steps_out(s, i), s->gamma + 1);
        result_set(r, STATE_FAIL, "case %d: %s; %s", (int)i, why, text);
    }
}

static void run_verify(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    uint64_t rng = check_seed(x, c, 0);
    const uint64_t seed = check_seed(x, c, 1);
    probe *m = panel_of(c, &rng);
    snapshot kept = {0};
    steps s;
    if (steps_open(&s, c->gamma, (int32_t)c->n, r) && probe_serve(m, x, r)) {
        fill(&s, m, c->n, &rng);
        if (!snap(&kept, &s))
            result_set(r, STATE_ERROR, "the suite is short of memory");
        else if (steps_verify(&s, x, m->V, seed, 0, r)) {
            judge_format(&s, m, x, r);
            if (!inputs_kept(&kept, &s))
                result_set(r, STATE_FAIL, "states or drafts were written to (INV-02)");
            const uint8_t uniforms = client_claims(x->iut)->uniforms;
            if (r->state == STATE_PASS && (uniforms == IUT_UNIFORMS_SUPPLIED || uniforms == IUT_UNIFORMS_SEEDED))
                repeats(&s, &kept, x, m, seed, r);
        }
    }
    result_set(r, STATE_PASS, "%lld steps well formed", (long long)r->compared);
    free(kept.inputs);
    free(kept.answers);
    steps_close(&s);
    probe_close(m);
}

const check check_format_verify = {
    .name = "format.verify",
    .clauses = "BON-02 BON-04 LAW-05 LAW-08 DRAW-05 ACC-02 ACC-04 ACC-07 INV-02 INV-03 LAY-01",
    .summary = "verify: ids in range, masks respected, counts exact, inputs unwritten",
    .plan = plan_verify,
    .draw = draw_verify,
    .claimed = claimed_verify,
    .run = run_verify,
};

/* -- draw -------------------------------------------------------------------------- */

static void plan_draw(check_plan *p, check_level level)
{
    plan_one(p, &check_format_draw, level, 2000);
}

static void draw_draws(check_plan *p, check_draw *d)
{
    draw_some(p, d, &check_format_draw, 0);
}

static bool claimed_draw(const check_case *c, const client *tested, char *why, size_t size)
{
    return check_has(tested, OP_DRAW, why, size) && replay_fits(c, tested, why, size);
}

static void judge_draws(const int32_t *state, const int32_t *token, int32_t n, const probe *m,
                        check_result *r)
{
    for (int32_t i = 0; i < n && r->state == STATE_PASS; i++) {
        char why[160];
        r->compared++;
        if (!emits(m, state[i], token[i], why, sizeof why))
            result_set(r, STATE_FAIL, "draw %d: %s", (int)i, why);
    }
}

static void run_draw(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    const int32_t n = (int32_t)c->n;
    probe *m = panel_of(c, &rng);
    int32_t *state = malloc((size_t)n * sizeof *state),
            *token = malloc((size_t)n * sizeof *token);
    double *u = malloc((size_t)n * sizeof *u);
    if (!state || !token || !u)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else if (probe_serve(m, x, r)) {
        for (int32_t i = 0; i < n; i++) {
            state[i] = probe_below(&rng, m->S);
            u[i] = i == 0 ? 0.0 : i == 1 ? 1.0 - 0x1p-24 : probe_u24(&rng);
            token[i] = -1;
        }
        const bool supplied = client_claims(x->iut)->uniforms == IUT_UNIFORMS_SUPPLIED;
        iut_draw_batch batch = {sizeof batch,        n, state, supplied ? u : NULL,
                                check_seed(x, c, 1), 0, token};
        if (result_call(r, x, "draw", client_draw(x->iut, &batch)))
            judge_draws(state, token, n, m, r);
    }
    result_set(r, STATE_PASS, "%lld draws in range, none masked", (long long)r->compared);
    free(state);
    free(token);
    free(u);
    probe_close(m);
}

const check check_format_draw = {
    .name = "format.draw",
    .clauses = "DRAW-04 DRAW-05 LAW-05 DIST-02 LAY-01",
    .summary = "draw: ids in range, masks respected",
    .plan = plan_draw,
    .draw = draw_draws,
    .claimed = claimed_draw,
    .run = run_draw,
};

/* -- stream ------------------------------------------------------------------------ */

static void plan_stream(check_plan *p, check_level level)
{
    plan_one(p, &check_format_stream, level, 500);
}

static void draw_stream(check_plan *p, check_draw *d)
{
    draw_some(p, d, &check_format_stream, STEPS_GAMMA);
}

static bool claimed_stream(const check_case *c, const client *tested, char *why, size_t size)
{
    return check_has(tested, OP_STREAM, why, size) && replay_fits(c, tested, why, size);
}

/* Accept counts, where told: one entry a step, in 0..gamma, and the steps end where the budget
 * does. The last run may have been cut. */
static bool counts_fit(const int32_t *accepted, int32_t gamma, int32_t k, char *why,
                       size_t size)
{
    int32_t told = 0, before_last = 0, tokens = 0;
    while (told < k && accepted[told] != -1) {
        if (accepted[told] < 0 || accepted[told] > gamma) {
            snprintf(why, size, "step %d accepts %d of at most %d drafts", (int)told,
                     (int)accepted[told], (int)gamma);
            return false;
        }
        before_last = tokens;
        tokens += accepted[told++] + 1;
    }
    if (told == 0 || (before_last < k && tokens >= k)) return true;
    snprintf(why, size, "%d steps account for %d tokens of %d (BON-02)", (int)told, (int)tokens,
             (int)k);
    return false;
}

static bool stream_fits(const probe *m, const iut_stream_batch *b, int32_t i, char *why, size_t size)
{
    const int32_t *out = b->out + (int64_t)i * b->k;
    int32_t state = b->start[i];
    if (b->out_len[i] != b->k) {
        snprintf(why, size, "%d tokens of a budget of %d (STOP-02)", (int)b->out_len[i],
                 (int)b->k);
        return false;
    }
    for (int32_t j = 0; j < b->k; j++) {
        if (!emits(m, state, out[j], why, size)) return false;
        state = m->next[state * m->view.C + m->cls[out[j]]];
    }
    return counts_fit(b->accepted + (int64_t)i * b->k, b->gamma, b->k, why, size);
}

static void judge_streams(const probe *m, const iut_stream_batch *b, check_result *r)
{
    for (int32_t i = 0; i < b->n && r->state == STATE_PASS; i++) {
        char why[160], text[200] = "";
        r->compared++;
        if (stream_fits(m, b, i, why, sizeof why)) continue;
        replay_list(text, sizeof text, "got", b->out + (int64_t)i * b->k, b->k);
        result_set(r, STATE_FAIL, "stream %d, gamma %d, start %d: %s; %s", (int)i,
                   (int)b->gamma, (int)b->start[i], why, text);
    }
}

static void run_stream(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    const int32_t gammas[] = {0, 1, 2, c->drawn && c->gamma > 2 ? c->gamma : 4};
    uint64_t rng = check_seed(x, c, 0);
    const int32_t n = (int32_t)c->n;
    const size_t tokens = (size_t)n * STREAM_TOKENS;
    probe *m = panel_of(c, &rng);
    int32_t *start = malloc((size_t)n * sizeof *start), *len = malloc((size_t)n * sizeof *len);
    int32_t *out = malloc(tokens * sizeof *out), *accepted = malloc(tokens * sizeof *accepted);
    if (!start || !len || !out || !accepted)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else if (probe_serve(m, x, r))
        for (int32_t g = 0; g < 4 && gammas[g] <= c->gamma && r->state == STATE_PASS; g++) {
            for (int32_t i = 0; i < n; i++) start[i] = probe_below(&rng, m->S);
            memset(out, 0xff, tokens * sizeof *out);
            memset(accepted, 0xff, tokens * sizeof *accepted);
            iut_stream_batch b = {sizeof b, n,       gammas[g],           STREAM_TOKENS,
                                  -1,       start,   check_seed(x, c, 1), out,
                                  len,      accepted};
            if (result_call(r, x, "stream", client_stream(x->iut, &b)))
                judge_streams(m, &b, r);
        }
    result_set(r, STATE_PASS, "%lld streams well formed", (long long)r->compared);
    free(start);
    free(len);
    free(out);
    free(accepted);
    probe_close(m);
}

const check check_format_stream = {
    .name = "format.stream",
    .clauses = "STOP-02 STOP-04 LAW-05 LAW-08 DRAW-05 BON-02 LAY-01 FRM-06",
    .summary = "stream: exact budgets, ids in range, masks respected, steps that add up",
    .plan = plan_stream,
    .draw = draw_stream,
    .claimed = claimed_stream,
    .run = run_stream,
};
