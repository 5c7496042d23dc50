/* metamorphic.c - what must not change when something irrelevant does (LAY-05).
 *
 * meta.equal: q = p, so every draft is accepted at every uniform. meta.draft: another draft
 * model, the same law, and the same tokens where that is promised. meta.batch: the same case in
 * another batch, at another place, alone or asked twice, the same answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/draw.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/checks/law/batch.h"
#include "conformance/checks/law/law_drawn.h"

/* -- meta.equal -------------------------------------------------------------------- */

static void equal_plan(check_plan *p, check_level level)
{
    static const int32_t V[] = {2, 8, 64, 1024}, gamma[] = {1, 4};
    static const int64_t n[] = {2048, 20480, 204800};
    for (int v = 0; v < 4; v++)
        for (int g = 0; g < 2; g++) {
            check_case *c = plan_case(p, &check_meta_equal, "V%d-g%d", V[v], gamma[g]);
            c->V = V[v], c->gamma = gamma[g];
            c->n = n[level];
            c->cost = cost_of_rows(c->n, c->V);
        }
}

static void equal_draw(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {1, 4, 20};
    for (int32_t i = 0; i < count[d->level]; i++)
        draw_rows(p, d, &check_meta_equal, "equal", 1 << 14, 64, 1024);
}

static bool equal_claimed(const check_case *c, const client *subject, char *why,
                          size_t why_size)
{
    const check_case within = case_within(c, subject);
    const iut_claims *m = client_claims(subject);
    const bool coarse = m->arithmetic > IUT_ARITH_F32;
    if (!law_claimed(&within, subject, LAW_VERIFY, why, why_size)) return false;
    if (m->rule != IUT_RULE_TOKEN && m->rule != IUT_RULE_BLOCK)
        snprintf(why, why_size, "its rule may reject a draft where q = p");
    else if (m->arithmetic != IUT_ARITH_CANONICAL && (coarse || m->input == IUT_FROM_LOGITS))
        snprintf(why, why_size, "equal rows may come out unequal: rounded to a half format, or served by itself");
    else
        return true;
    return false;
}

/* Are all drafts of case i emitted, and one token more? */
static bool all_accepted(const batch *b, int32_t i, check_result *r)
{
    const int32_t *draft = b->draft + i * b->gamma, *out = b->out + i * b->k;
    int32_t same = 0;
    while (same < b->gamma && out[same] == draft[same]) same++;
    if (same == b->gamma && b->out_len[i] == b->gamma + 1) return true;
    result_set(r, STATE_FAIL,
               "q = p, but draft %d of %d was not accepted (%d tokens out; panel state %d, "
               "draft %d, u = %.10g)",
               same + 1, b->gamma, b->out_len[i], b->state[i * (b->gamma + 1)],
               same < b->gamma ? draft[same] : -1,
               b->supplied ? b->u[i * (b->gamma + 2) + same] : -1.0);
    return false;
}

static void equal_run(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    const int32_t N = c->n < 1024 ? (int32_t)c->n : 1024;
    panel *a = batch_panel(
        x, &(panel_form){.V = c->V, .seed = check_seed(x, c, 0), .variant = PANEL_EQUAL}, r);
    batch b = {0};
    law_alias q = {0};
    law_random g;
    law_seed(&g, check_seed(x, c, 2));
    bool ok = a && batch_open(&b, x, a, OP_VERIFY, N, c->gamma, c->gamma + 1) &&
              law_alias_init(&q, a->q64, a->view.S, c->V);
    if (a && !ok) result_set(r, STATE_ERROR, "out of memory");
    b.seed = check_seed(x, c, 1);
    for (int64_t done = 0; ok && done < c->n; done += N, b.seed += (uint64_t)N) {
        batch_fill(&b, &q, &g, true);
        ok = batch_ask(&b, 0, N, false, r);
        for (int32_t i = 0; ok && i < N; i++) ok = all_accepted(&b, i, r), r->compared += ok;
    }
    if (ok)
        result_set(r, STATE_PASS, "%lld steps with q = p accepted every draft",
                   (long long)r->compared);
    batch_close(&b);
    law_alias_free(&q);
    panel_free(a);
}

const check check_meta_equal = {
    .name = "meta.equal",
    .clauses = "ACC-03 LAY-05 BON-01",
    .summary = "with q = p every draft is accepted at every uniform",
    .plan = equal_plan,
    .draw = equal_draw,
    .claimed = equal_claimed,
    .run = equal_run,
};

/* -- meta.draft -------------------------------------------------------------------- */

/* The draft model is the target, or knows one token only: the two ends of its quality. */
static const struct {
    law_op op;
    const char *name;
    int32_t V, gamma;
    panel_variant variant;
} lanes[] = {
    {LAW_VERIFY, "verify-equal", 8, 2, PANEL_EQUAL},
    {LAW_VERIFY, "verify-onehot", 64, 2, PANEL_ONEHOT_Q},
    {LAW_STREAM, "stream-equal", 8, 2, PANEL_EQUAL},
    {LAW_STREAM, "stream-onehot", 64, 2, PANEL_ONEHOT_Q},
};
enum { LANES = sizeof lanes / sizeof *lanes };

static void draft_plan(check_plan *p, check_level level)
{
    for (int32_t i = 0; i < LANES; i++) {
        const char *of = strchr(lanes[i].name, '-');
        check_case *c = plan_case(p, &check_meta_draft, "%.*s-V%d%s", (int)(of - lanes[i].name), lanes[i].name,
                                  (int)lanes[i].V, of);
        c->V = lanes[i].V, c->gamma = lanes[i].gamma, c->variant = i;
        c->n = law_samples(level, c->V) / (level == LEVEL_SMOKE ? 1 : 2);
        c->cost = cost_of_rows(c->n, c->V);
        c->tables = law_tables(c->gamma + 2);
        c->statistical = c->pooled = true;
    }
    for (int32_t V = 8; V <= 64; V *= 8) {
        check_case *c = plan_case(p, &check_meta_draft, "seeded-V%d", V);
        c->V = V, c->gamma = 3, c->variant = LANES;
        c->n = 512;
        c->cost = cost_of_rows(c->n, c->V);
    }
}

/* Of any vocabulary and gamma (VER-11): a law, or the tokens under one seed. */
static void draft_draw(check_plan *p, check_draw *d)
{
    static const int32_t V[] = {2, 3, 7, 17, 33, 63, 65, 129, 255, 257, 1001};
    static const int32_t count[] = {1, 4, 20};
    static const int64_t streams[] = {4000, 20000, 100000};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t lane = draw_place(d, DRAW_FIRST, LANES + 1);
        check_case *c = lane == LANES
                            ? draw_rows(p, d, &check_meta_draft, "seeded", 1 << 14, 64, 128)
                            : law_draw_case(p, d, &check_meta_draft, lanes[lane].name, V, sizeof V / sizeof *V, 33,
                                            streams[d->level]);
        if (c) c->variant = lane;
    }
}

static bool draft_claimed(const check_case *c, const client *subject, char *why,
                          size_t why_size)
{
    const check_case within = case_within(c, subject);
    if (c->variant < LANES)
        return law_claimed(&within, subject, lanes[c->variant].op, why, why_size);
    if (!law_claimed(&within, subject, LAW_STREAM, why, why_size)) return false;
    if (client_claims(subject)->seed_identical) return true;
    snprintf(why, why_size, "seed_identical is not claimed");
    return false;
}

/* Three draft models for one target: under the same seeds the tokens are the same. */
static void same_tokens(const check_case *c, const check_context *x, check_result *r)
{
    static const panel_variant draft[] = {PANEL_PLAIN, PANEL_EQUAL, PANEL_ONEHOT_Q};
    const int32_t n = (int32_t)c->n, k = 3 * c->gamma;
    size_t size = (size_t)n * (size_t)k;
    int32_t *first = malloc(size * sizeof *first);
    bool ok = first != NULL;
    if (!ok) result_set(r, STATE_ERROR, "out of memory");
    for (int32_t m = 0; ok && m < 3; m++) {
        batch b = {0};
        panel *a = batch_panel(
            x, &(panel_form){.V = c->V, .seed = check_seed(x, c, 0), .variant = draft[m]}, r);
        ok = a && batch_open(&b, x, a, OP_STREAM, n, c->gamma, k);
        if (a && !ok) result_set(r, STATE_ERROR, "out of memory");
        b.seed = check_seed(x, c, 1);
        ok = ok && batch_ask(&b, 0, n, false, r);
        if (ok && m == 0) memcpy(first, b.out, size * sizeof *first);
        if (ok && memcmp(b.out, first, size * sizeof *first) != 0) {
            result_set(
                r, STATE_FAIL,
                "under the same seeds draft model %d gives other tokens than draft model "
                "0, though seed_identical is claimed (MAT-02)",
                m);
            ok = false;
        }
        r->compared += ok ? n : 0;
        batch_close(&b);
        panel_free(a);
    }
    if (ok) result_set(r, STATE_PASS, "%d streams: the same tokens with three draft models", n);
    free(first);
}

static void draft_run(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    if (c->variant == LANES) {
        same_tokens(c, x, r);
        return;
    }
    panel_form form = {
        .V = c->V, .seed = check_seed(x, c, 0), .variant = lanes[c->variant].variant};
    if (c->drawn)
        law_drawn_case(c, x, lanes[c->variant].op, LAW_SHAPES, &form, r);
    else
        law_case(c, x, &form, lanes[c->variant].op, r);
}

const check check_meta_draft = {
    .name = "meta.draft",
    .clauses = "LAW-02 LAW-01 MAT-02 LAY-05 STAT-01 STAT-02 STAT-03 STAT-04 STAT-07 "
               "STAT-08 STAT-14 STAT-15",
    .summary = "another draft model changes neither the law nor what a seed promises",
    .plan = draft_plan,
    .draw = draft_draw,
    .claimed = draft_claimed,
    .run = draft_run,
};

/* -- meta.batch -------------------------------------------------------------------- */

static const struct {
    iut_op op;
    const char *name;
} ops[] = {{OP_VERIFY, "verify"},
           {OP_VERIFY_GREEDY, "greedy"},
           {OP_DRAW, "draw"},
           {OP_STREAM, "stream"}};
enum { OPS = sizeof ops / sizeof *ops };

static void batch_plan(check_plan *p, check_level level)
{
    (void)level;
    for (int32_t i = 0; i < OPS; i++)
        for (int32_t V = 8; V <= 1000; V = V == 8 ? 1000 : V + 1) {
            check_case *c = plan_case(p, &check_meta_batch, "%s-V%d", ops[i].name, V);
            c->V = V, c->variant = i;
            c->gamma = ops[i].op == OP_DRAW ? 0 : 3;
            c->n = 96;
            c->cost = cost_of_rows(c->n, c->V);
        }
}

static void batch_draw(check_plan *p, check_draw *d)
{
    static const int32_t count[] = {2, 8, 40};
    for (int32_t i = 0; i < count[d->level]; i++) {
        const int32_t row = probe_below(&d->rng, OPS);
        draw_rows(p, d, &check_meta_batch, ops[row].name, 1 << 14, ops[row].op == OP_DRAW ? 0 : 64, 96)->variant = row;
    }
}

static bool batch_claimed(const check_case *c, const client *subject, char *why,
                          size_t why_size)
{
    const iut_claims *m = client_claims(subject);
    iut_op op = ops[c->variant].op;
    const char *missing = NULL;
    if (!check_has(subject, op, why, why_size)) return false;
    if (op != OP_VERIFY_GREEDY && m->uniforms != IUT_UNIFORMS_SUPPLIED &&
             m->uniforms != IUT_UNIFORMS_SEEDED)
        missing = "it draws its own uniforms: law.calls tests its batches";
    else if (m->max_vocab > 0 && c->V > m->max_vocab)
        missing = "V is beyond max_vocab";
    if (missing) snprintf(why, why_size, "%s", missing);
    return !missing;
}

/* Where do the answers differ from the first ones? */
static bool same_answers(const batch *b, const int32_t *out, const int32_t *out_len,
                         const char *how, check_result *r)
{
    for (int32_t i = 0; i < b->N; i++) {
        const int32_t *now = b->out + i * b->k, *then = out + i * b->k;
        int32_t t = 0;
        while (t < b->k && now[t] == then[t]) t++;
        if (t == b->k && b->out_len[i] == out_len[i]) continue;
        result_set(r, STATE_FAIL,
                   "case %d answers otherwise %s: %d tokens instead of %d, first difference at "
                   "token %d (%s)",
                   i, how, b->out_len[i], out_len[i], t,
                   strcmp(how, "when asked again") ? "INV-01" : "INV-03");
        return false;
    }
    r->compared += b->N;
    return true;
}

/* All in one call, then in other ways; the answers of the first are the standard. */
static bool ask_all_ways(batch *b, int32_t *out, int32_t *out_len, check_result *r)
{
    bool seeded = b->op == OP_STREAM || (!b->supplied && b->op != OP_VERIFY_GREEDY);
    int32_t N = b->N, third = N / 3;
    if (!batch_ask(b, 0, N, false, r)) return false;
    memcpy(out, b->out, (size_t)N * (size_t)b->k * sizeof *out);
    memcpy(out_len, b->out_len, (size_t)N * sizeof *out_len);
    if (!batch_ask(b, 0, N, false, r) || !same_answers(b, out, out_len, "when asked again", r))
        return false;
    if (!batch_ask(b, third, N - third, false, r) || !batch_ask(b, 0, third, false, r) ||
        !same_answers(b, out, out_len, "in a batch of another size", r))
        return false;
    if (!seeded &&
        (!batch_ask(b, 0, N, true, r) || !same_answers(b, out, out_len, "in reverse order", r)))
        return false;
    for (int32_t i = 0; i < N; i++)
        if (!batch_ask(b, i, 1, false, r)) return false;
    return same_answers(b, out, out_len, "alone", r);
}

static void batch_run(const check_case *planned, const check_context *x, check_result *r)
{
    const check_case within = case_within(planned, x->iut), *c = &within;
    const iut_op op = ops[c->variant].op;
    const int32_t N = (int32_t)c->n, k = op == OP_STREAM ? 3 * c->gamma : c->gamma + 1;
    panel *a = batch_panel(x, &(panel_form){.V = c->V, .seed = check_seed(x, c, 0)}, r);
    batch b = {0};
    law_alias q = {0};
    law_random g;
    law_seed(&g, check_seed(x, c, 2));
    int32_t *out = malloc((size_t)N * (size_t)k * sizeof *out);
    int32_t *out_len = malloc((size_t)N * sizeof *out_len);
    bool ok = a && out && out_len && batch_open(&b, x, a, op, N, c->gamma, k) &&
              law_alias_init(&q, a->q64, a->view.S, c->V);
    if (a && !ok) result_set(r, STATE_ERROR, "out of memory");
    if (ok) batch_fill(&b, &q, &g, false);
    b.seed = check_seed(x, c, 1);
    if (ok && ask_all_ways(&b, out, out_len, r))
        result_set(r, STATE_PASS,
                   "%d cases: the same answers in %lld comparisons with other batches", N,
                   (long long)r->compared);
    batch_close(&b);
    law_alias_free(&q);
    panel_free(a);
    free(out);
    free(out_len);
}

const check check_meta_batch = {
    .name = "meta.batch",
    .clauses = "INV-01 INV-03 LAY-05 RNG-07",
    .summary = "a case answers the same in any batch, at any place, alone and twice",
    .plan = batch_plan,
    .draw = batch_draw,
    .claimed = batch_claimed,
    .run = batch_run,
};
