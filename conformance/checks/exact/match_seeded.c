/* match.seeded - the promise of `seed_identical`: under the same seed the stream with drafts is
 * the plain stream, token for token, whatever gamma, draft model and budget (MAT-02). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/exact/exact.h"
#include "conformance/checks/exact/replay.h"
#include "conformance/checks/frame/draw.h"

enum { TOKENS = 12, GAMMAS = 4 };

static void plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {3, 64, 1024};
    for (int32_t i = 0; i < 3; i++)
        for (int32_t masked = 0; masked < 2; masked++) {
            check_case *c = plan_case(p, &check_match_seeded, "V%d-%s", (int)V[i],
                                      masked ? "masked" : "dense");
            c->V = V[i];
            c->variant = masked ? PROBE_MASKED : PROBE_DENSE;
            c->n = (int64_t)200 << 2 * (int)level;
            c->cost = cost_of_rows(c->n, c->V);
        }
}

static void draw(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {3, 12, 80};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const bool masked = probe_below(&d->rng, 2) != 0;
        check_case *c = draw_rows(p, d, &check_match_seeded, masked ? "masked" : "dense", 1 << 18, STEPS_GAMMA, 200);
        c->variant = masked ? PROBE_MASKED : PROBE_DENSE;
        c->n = draw_cases(d, (int32_t)c->n);
    }
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    if (!check_has(tested, OP_STREAM, why, size)) return false;
    if (!client_claims(tested)->seed_identical)
        snprintf(why, size, "seed_identical is not promised");
    else
        return replay_fits_whole(c, tested, why, size);
    return false;
}

typedef struct {
    const check_context *x;
    int32_t n;
    uint64_t seed;
    int32_t *start, *len, *accepted; /* [n], [n], [n][TOKENS] */
} streams;

static bool stream(const streams *s, int32_t gamma, int32_t k, int32_t *out, check_result *r)
{
    memset(out, 0xff, (size_t)(s->n * k) * sizeof *out);
    memset(s->accepted, 0xff, (size_t)(s->n * k) * sizeof *out);
    iut_stream_batch b = {sizeof b, s->n,    gamma, k,      -1,
                          s->start, s->seed, out,   s->len, s->accepted};
    return result_call(r, s->x, "stream", client_stream(s->x->iut, &b));
}

/* `out` has k tokens a stream, `plain` TOKENS. */
static bool prefixes(const streams *s, const int32_t *out, const int32_t *plain, int32_t gamma,
                     int32_t k, check_result *r)
{
    for (int32_t i = 0; i < s->n; i++) {
        r->compared++;
        if (s->len[i] == k && !memcmp(out + i * k, plain + i * TOKENS, (size_t)k * sizeof *out))
            continue;
        char text[300] = "";
        replay_list(text, sizeof text, "plain", plain + i * TOKENS, k);
        replay_list(text, sizeof text, ", with drafts", out + i * k, k);
        result_set(r, STATE_FAIL, "seed %llu, start %d, gamma %d, budget %d: %s",
                   (unsigned long long)(s->seed + (uint64_t)i), (int)s->start[i], (int)gamma,
                   (int)k, text);
        return false;
    }
    return true;
}

static void compare(const check_case *c, const streams *s, int32_t *plain, int32_t *out,
                    check_result *r)
{
    const int32_t gammas[GAMMAS] = {1, 2, 4, c->drawn ? c->gamma : 8},
                  budgets[GAMMAS] = {TOKENS, TOKENS, 5, 3};
    const int32_t limit = client_claims(s->x->iut)->max_gamma;
    if (!stream(s, 0, TOKENS, plain, r)) return;
    for (int32_t g = 0; g < GAMMAS; g++) {
        if (limit > 0 && gammas[g] > limit) continue;
        for (int32_t k = TOKENS;; k = budgets[g]) {
            if (!stream(s, gammas[g], k, out, r) || !prefixes(s, out, plain, gammas[g], k, r))
                return;
            if (k == budgets[g]) break;
        }
    }
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    uint64_t rng = check_seed(x, c, 0);
    const size_t n = (size_t)c->n, tokens = n * TOKENS;
    probe *m = probe_general(c->V > 4096 ? 4 : 16, c->V, (probe_shape)c->variant, &rng);
    streams s = {x,
                 (int32_t)c->n,
                 check_seed(x, c, 1),
                 malloc(n * sizeof(int32_t)),
                 malloc(n * sizeof(int32_t)),
                 malloc(tokens * sizeof(int32_t))};
    int32_t *plain = malloc(tokens * sizeof *plain), *out = malloc(tokens * sizeof *out);
    if (!s.start || !s.len || !s.accepted || !plain || !out)
        result_set(r, STATE_ERROR, "the suite is short of memory");
    else if (probe_serve(m, x, r)) {
        for (int32_t i = 0; i < s.n; i++) s.start[i] = probe_below(&rng, m->S);
        compare(c, &s, plain, out, r);
    }
    result_set(r, STATE_PASS, "%lld streams equal plain decoding", (long long)r->compared);
    free(s.start);
    free(s.len);
    free(s.accepted);
    free(plain);
    free(out);
    probe_close(m);
}

const check check_match_seeded = {
    .name = "match.seeded",
    .clauses = "MAT-01 MAT-02 STOP-02 STOP-03 INV-03",
    .summary = "same seed, same tokens, with drafts and without",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
