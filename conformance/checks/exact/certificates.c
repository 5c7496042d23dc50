/* certify.boundaries - every decision boundary of a row at once (LAY-03, after the exact audits
 * of deterministic verifiers).
 *
 * Assumed: the IUT is deterministic, acceptance falls with its uniform, and the drawn token
 * grows with its own. Then an answer on either side of each expected boundary pins the whole
 * function of the uniform, hence its law: acceptance to delta, a draw from K tokens to K*delta
 * in total variation. replay.random bounds what escapes the assumption. The residual is
 * certified after two rejected drafts and under two acceptance uniforms, so that it depends on
 * neither. */
#include <math.h>
#include <stdio.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/frame/draw.h"
#include "conformance/oracle/law/chain.h"

/* Uniforms of the certificate: at the declared resolution within these limits; an acceptance
 * uniform of more than 29 bits has no exact product in binary64. */
enum { MIN_BITS = 24, MAX_BITS = 29 };

/* What certifies one row. delta = 2^-bits; for arithmetic with a tolerance the two uniforms
 * stand tau off the boundary, on the grid. */
typedef struct {
    steps *s;
    const probe *m;
    double size, tau; /* 2^bits */
    bool own;         /* rows are the implementation's own (LAY-10) */
    unsigned flags;   /* replay_flags: the fate of a draft with q = 0 is declared (VAR-04) */
    int64_t boundaries;
} certifier;

static void plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {4, 64, 1024, 32000};
    for (int32_t i = 0; i < (level == LEVEL_SMOKE ? 3 : 4); i++)
        for (int32_t masked = 0; masked < 2; masked++) {
            check_case *c = plan_case(p, &check_certify_boundaries, "V%d-%s", (int)V[i],
                                      masked ? "masked" : "dense");
            c->V = V[i];
            c->cost = cost_of_rows(20000, c->V);
            c->gamma = 1;
            c->variant = masked;
        }
}

static void draw(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {1, 4, 30}, most[] = {1025, 4097, 32769};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const bool masked = probe_below(&d->rng, 2) != 0;
        check_case *c = draw_rows(p, d, &check_certify_boundaries, masked ? "masked" : "dense",
                                  most[d->level], 0, 100);
        c->gamma = 1;
        c->variant = masked;
    }
}

/* The grid points next to a boundary: *above is the first whose answer lies beyond it, *below
 * the last whose answer does not. False where an end of [0, 1) leaves no such point. */
static bool sides(const certifier *t, double tau, double boundary, double *below, double *above)
{
    *above = ceil((boundary + tau) * t->size);
    *below = (tau > 0 ? floor((boundary - tau) * t->size) : *above) - 1.0;
    *above /= t->size;
    *below /= t->size;
    return *below >= 0.0 && *above < 1.0;
}

static void certify_accept(certifier *t, int32_t state, int32_t token, bool q_zero)
{
    const double p = (double)probe_p(t->m, state)[token],
                 q = (double)probe_q(t->m, state)[token];
    const double largest = 1.0 - 1.0 / t->size;
    double below, above;
    if (q == 0.0 && !q_zero) return;
    if (p < q && p > 0.0 && sides(t, t->tau, p / q, &below, &above)) {
        steps_add_one(t->s, state, token, below, 0.25, 0.625);
        steps_add_one(t->s, state, token, above, 0.625, 0.25);
    } else if (t->own && p > 0.0 && q > 0.0 && p / q <= 1.0 + t->tau) {
        return; /* p may come out below an equal q */
    } else /* nothing accepts p = 0, nothing but VAR-04 rejects p >= q */
        steps_add_one(t->s, state, token, p > 0.0 ? largest : 0.0, 0.5, 0.5);
    t->boundaries++;
}

/* tau of a draw from a table; of the residual of own rows it is tau/Z, Z being its share (LAY-10). */
static double tau_in(const certifier *t, int32_t state, const uint64_t *cum)
{
    const int32_t V = t->m->V;
    const uint64_t *whole = t->m->cum_p + (int64_t)state * V;
    return t->own && cum[V - 1] > 0 ? t->tau * (double)whole[V - 1] / (double)cum[V - 1] : t->tau;
}

/* Boundary after each token that has mass but the last. */
static void certify_draw(certifier *t, int32_t state, const uint64_t *cum,
                         const int32_t draft[2], const double accept[2])
{
    const uint64_t total = cum[t->m->V - 1];
    const double tau = tau_in(t, state, cum);
    uint64_t before = 0;
    for (int32_t i = 0; i < t->m->V && cum[i] < total; before = cum[i++]) {
        double below, above;
        if (cum[i] == before || !sides(t, tau, (double)cum[i] / (double)total, &below, &above))
            continue;
        for (int32_t k = 0; k < 2; k++) {
            const double u = k ? above : below;
            for (int32_t j = 0; j < 2; j++)
                if (j == 0 || draft[1] != draft[0])
                    steps_add_one(t->s, state, draft[j], draft[j] < 0 ? u : accept[j], u, u);
        }
        t->boundaries++;
    }
}

/* The first and the last token that can be rejected under two different uniforms: one just
 * above its own boundary, one the largest of all. */
static bool rejected_pair(const certifier *t, int32_t state, int32_t draft[2], double accept[2])
{
    const float *p = probe_p(t->m, state), *q = probe_q(t->m, state);
    draft[0] = draft[1] = -1;
    for (int32_t i = 0; i < t->m->V; i++) {
        double below;
        if (!(p[i] < q[i]) || !sides(t, t->tau, (double)p[i] / (double)q[i], &below, &accept[1]))
            continue;
        if (draft[0] < 0) {
            draft[0] = i;
            accept[0] = accept[1];
        }
        draft[1] = i;
    }
    accept[1] = 1.0 - 1.0 / t->size;
    return draft[0] >= 0 && draft[1] != draft[0];
}

static void certify_row(certifier *t, int32_t state, bool q_zero)
{
    const int64_t at = (int64_t)state * t->m->V;
    static const int32_t none[2] = {-1, -1};
    static const double any[2] = {0.0, 0.0};
    int32_t draft[2];
    double accept[2];
    for (int32_t i = 0; i < t->m->V; i++) certify_accept(t, state, i, q_zero);
    certify_draw(t, state, t->m->cum_p + at, none, any);
    if (rejected_pair(t, state, draft, accept))
        certify_draw(t, state, t->m->cum_r + at, draft, accept);
}

/* floor(u * total) for u a multiple of 2^-29: 29 + 64 bits. */
static uint64_t target_of(double u, uint64_t total)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)(uint64_t)ldexp(u, MAX_BITS) * total >> MAX_BITS);
}

/* Does u point at `token` in a table, to within tau? */
static bool points_at(const certifier *t, int32_t state, const uint64_t *cum, double u, int32_t token)
{
    if (token < 0 || token >= t->m->V) return false;
    const uint64_t low = token ? cum[token - 1] : 0, high = cum[token];
    const uint64_t total = cum[t->m->V - 1], target = target_of(u, total);
    if (low <= target && target < high) return true;
    const double near = tau_in(t, state, cum) * (double)total, at = u * (double)total;
    return near > 0.0 && high > low && at - near < (double)high && at + near >= (double)low;
}

enum { WHY = 240 };

/* The token that owns u in a table, and its interval. */
static void explain_draw(const certifier *t, const uint64_t *cum, double u, const char *name,
                         char *why)
{
    const uint64_t total = cum[t->m->V - 1], target = target_of(u, total);
    int32_t owner = 0;
    while (owner < t->m->V - 1 && cum[owner] <= target) owner++;
    const double low = owner ? (double)cum[owner - 1] / (double)total : 0.0;
    const double high = (double)cum[owner] / (double)total;
    snprintf(why, WHY,
             "the token is not the one on this side of the boundary %.10g: token %d owns "
             "[%.10g, %.10g), where the %s uniform %.10g lies",
             u - low < high - u ? low : high, (int)owner, low, high, name, u);
}

static void explain_accept(const certifier *t, int32_t state, int32_t draft, double u,
                           bool stands, char *why)
{
    const double p = (double)probe_p(t->m, state)[draft],
                 q = (double)probe_q(t->m, state)[draft];
    if (q == 0.0 && !stands)
        snprintf(why, WHY, "the draft should fall: its q is 0, its p is %.10g (ACC-03, VAR-04)",
                 p);
    else
        snprintf(
            why, WHY,
            "the draft should %s: its boundary p/q is %.10g / %.10g = %.10g, it is accepted "
            "below, and the accept uniform is %.10g",
            stands ? "stand" : "fall", p, q, p / q, u);
}

/* Writes what is wrong with answer i; true: nothing is. The tables make this as fast as the IUT
 * at any V; replay.random judges by the oracle. */
static bool judge_one(const certifier *t, int32_t i, char *why)
{
    const steps *s = t->s;
    const int32_t state = steps_state(s, i)[0], draft = steps_draft(s, i)[0];
    const int32_t *out = steps_out(s, i), n = s->out_len[i];
    const double *u = steps_u(s, i);
    const int64_t at = (int64_t)state * t->m->V;
    const bool stands =
        draft >= 0 && oracle_accepts(probe_p(t->m, state)[draft], probe_q(t->m, state)[draft],
                                     u[0], t->flags);
    if (draft >= 0 && stands != (n == 2 && out[0] == draft)) {
        explain_accept(t, state, draft, u[0], stands, why);
        return false;
    }
    if (n != 1 + stands || (!stands && out[1] != -1)) {
        snprintf(why, WHY, "one token should come out, and -1 after it (BON-04)");
        return false;
    }
    const bool corrects = draft >= 0 && !stands && t->m->cum_r[at + t->m->V - 1] > 0;
    const uint64_t *cum = (corrects ? t->m->cum_r : t->m->cum_p) + at;
    if (points_at(t, state, cum, u[corrects ? 1 : 2], out[n - 1])) return true;
    explain_draw(t, cum, u[corrects ? 1 : 2], corrects ? "residual" : "bonus", why);
    return false;
}

static void judge_all(const certifier *t, const check_context *x, check_result *r)
{
    if (!steps_verify(t->s, x, t->m->V, 0, 0, r)) return;
    for (int32_t i = 0; i < t->s->n; i++) {
        char why[WHY];
        r->compared++;
        if (judge_one(t, i, why)) continue;
        replay_fail(t->s, i, t->m, x, why, r);
        return;
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t why_size)
{
    if (client_claims(tested)->rule == IUT_RULE_TOKEN)
        return replay_claimed(c, tested, why, why_size);
    snprintf(why, why_size, "rule is not token");
    return false;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const iut_claims *claims = client_claims(x->iut);
    const int32_t S = c->V <= 4 ? 16 : c->V <= 64 ? 4 : 1;
    const int32_t most = claims->arithmetic == IUT_ARITH_F32 ? MIN_BITS : MAX_BITS; /* of 24 bits */
    const int32_t bits = claims->uniform_bits < MIN_BITS ? MIN_BITS
                         : claims->uniform_bits > most   ? most
                                                         : claims->uniform_bits;
    uint64_t rng = check_seed(x, c, 0);
    probe *m = probe_open(S, c->V);
    const probe_shape shape = c->variant ? PROBE_MASKED : PROBE_DENSE;
    for (int32_t state = 0; m && state < S; state++) {
        probe_random(probe_p(m, state), c->V, 24, shape, &rng);
        probe_random(probe_q(m, state), c->V, 24, shape, &rng);
    }
    steps s;
    certifier t = {&s, m, ldexp(1.0, bits), replay_tau(claims, c->V),
                   replay_own_rows(claims), replay_flags(claims), 0};
    if (steps_open(&s, 1, S * 8 * c->V, r) && probe_serve(m, x, r)) {
        const bool q_zero = claims->q_zero == IUT_ACCEPT || claims->q_zero == IUT_REJECT;
        for (int32_t state = 0; state < S; state++) certify_row(&t, state, q_zero);
        judge_all(&t, x, r);
    }
    const double delta = t.tau + 1.0 / t.size;
    result_figure(r, "boundaries", (double)t.boundaries);
    result_figure(r, "delta", delta);
    result_figure(r, "tv_bound", fmin(1.0, delta * c->V));
    result_set(r, STATE_PASS, "%lld boundaries, both sides of each, %d calls",
               (long long)t.boundaries, (int)s.n);
    steps_close(&s);
    probe_close(m);
}

const check check_certify_boundaries = {
    .name = "certify.boundaries",
    .clauses = "ACC-01 ACC-02 ACC-03 RES-01 RES-02 RES-04 RNG-07 BON-01 BON-03 DRAW-02 DRAW-04 "
               "DRAW-06 LAY-03",
    .summary = "the answers on either side of every decision boundary of a row",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
