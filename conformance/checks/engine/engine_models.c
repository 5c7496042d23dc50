/* engine.models - an engine at temperature 0 on models of other shapes than the pairs' (LAY-07). Ids have more than
 * 16 bits, the largest logits are often equal, heads are wide and groups odd, and requests fill the context. Plain
 * decoding is held against the oracle's network, drafts against plain decoding. So is top_k = 1 above temperature 0,
 * where an engine sorts or sums its whole row (LAY-18). Weights are stored in binary32, for engines often compute in
 * what their folder has.
 *
 * Weights of an engine's own are not asked for: equal logits need not stay equal there, and few prompts decide nothing
 * (CLM-15). */
#include <stdio.h>
#include <string.h>

#include "conformance/checks/engine/engine_ties.h"
#include "conformance/checks/frame/probe.h"

enum { PROMPTS = 3, BUDGET = 16, FEW_DRAFTS = 3 };
enum { EQUALS = 8, FEWEST_PARTED = 2, MOST_TRIED = 64 }; /* equal requests; of them; first ids */

/* "wide" and "wider" have ids of more than 16 bits; "short" ends one position after a page of 64; "heads" has five for
 * each of three KV heads. The last two have wide heads, which turn fast. */
enum { FORMS = 4 };
static const lm_form forms[FORMS] = {{.name = "wide",
                                      .architecture = IUT_LLAMA,
                                      .stored = LM_F32,
                                      .V = LM_MANY,
                                      .layers = 1,
                                      .hidden = 16,
                                      .heads = 4,
                                      .kv_heads = 2,
                                      .head_dim = 16,
                                      .ffn = 40,
                                      .positions = 100,
                                      .crowded = true,
                                      .eps = "1e-05",
                                      .theta = "10000.0",
                                      .seed = 1620},
                                     {.name = "wider",
                                      .architecture = IUT_LLAMA,
                                      .stored = LM_F32,
                                      .V = LM_MOST,
                                      .layers = 1,
                                      .hidden = 12,
                                      .heads = 3,
                                      .kv_heads = 1,
                                      .head_dim = 8,
                                      .ffn = 24,
                                      .positions = 33,
                                      .crowded = true,
                                      .eps = "1e-05",
                                      .theta = "10000.0",
                                      .seed = 1650},
                                     {.name = "short",
                                      .architecture = IUT_LLAMA,
                                      .stored = LM_F32,
                                      .V = LM_FEW,
                                      .layers = 2,
                                      .hidden = 24,
                                      .heads = 3,
                                      .kv_heads = 3,
                                      .head_dim = 96,
                                      .ffn = 33,
                                      .positions = 65,
                                      .crowded = true,
                                      .eps = "1e-06",
                                      .theta = "50.0",
                                      .seed = 1630},
                                     {.name = "heads",
                                      .architecture = IUT_LLAMA,
                                      .stored = LM_F32,
                                      .V = LM_FEW,
                                      .layers = 1,
                                      .hidden = 30,
                                      .heads = 15,
                                      .kv_heads = 3,
                                      .head_dim = 128,
                                      .ffn = 48,
                                      .positions = 129,
                                      .crowded = true,
                                      .eps = "1e-05",
                                      .theta = "100.0",
                                      .seed = 1640}};

static double cost_of(const lm_form *f)
{
    return 2e4 + 5 * f->V + (double)f->heads * f->head_dim * f->positions;
}

static void plan(check_plan *p, check_level level)
{
    (void)level;
    for (int32_t i = 0; i < FORMS; i++) {
        check_case *c = plan_case(p, &check_engine_models, "%s", forms[i].name);
        c->engine.kind = i;
        c->cost = cost_of(&forms[i]);
    }
}

/* One of the architectures that are claimed, or of all (CLM-07). */
static uint8_t architecture(uint64_t *rng, const client *tested)
{
    const int32_t served = CLAIMED(client_claims(tested), lm_architectures);
    uint8_t one;
    do
        one = (uint8_t)(1 << probe_below(rng, 3));
    while (!(served & one));
    return one;
}

/* A case keeps what its form is drawn from; an even one has a large vocabulary. */
static lm_form drawn_form(int32_t seed, const client *tested)
{
    uint64_t rng = (uint64_t)(uint32_t)seed;
    const uint8_t one = architecture(&rng, tested);
    return lm_form_draw_target(&rng, one, seed % 2 == 0, client_claims(tested)->max_vocab);
}

static void draw(check_plan *p, check_draw *d)
{
    const int32_t cases = d->level == LEVEL_SMOKE ? 1 : d->level == LEVEL_FULL ? 9 : 30;
    const int32_t most = client_claims(d->iut)->max_vocab;
    if (most > 0 && most < LM_LEAST) return;
    for (int32_t i = 0; i < cases; i++) {
        const int32_t any = probe_below(&d->rng, INT32_MAX / 2 - FORMS), seed = 2 * (FORMS + any) + (i % 3 != 1);
        const lm_form f = drawn_form(seed, d->iut);
        check_case *c = draw_case(p, d, &check_engine_models, "V%d-p%d-h%d", (int)f.V, (int)f.positions,
                                  (int)f.head_dim);
        c->engine.kind = seed;
        c->cost = cost_of(&f);
    }
}

static lm_form form_of(const check_case *c, const client *tested)
{
    return c->engine.kind < FORMS ? forms[c->engine.kind] : drawn_form(c->engine.kind, tested);
}

static bool claimed(const check_case *c, const client *tested, char *why, size_t size)
{
    const iut_claims *m = client_claims(tested);
    const lm_form f = form_of(c, tested);
    if (!check_has(tested, OP_GENERATE, why, size)) return false;
    if (c->drawn && !engine_is_fine(m))
        snprintf(why, size, "roundings of a half format, or of what is not said, can grow in a drawn model beyond CLM-08's reach");
    else if (m->weights == IUT_WEIGHTS_OWN)
        snprintf(why, size, "weights of its own need not have equal logits where the folder's have");
    else
        return lm_serves_kind(tested, f.architecture, f.V, why, size);
    return false;
}

typedef struct {
    engine e;
    uint64_t rng;
    int32_t positions;
    engine_prompt prompt[PROMPTS];
    int32_t plain[PROMPTS][BUDGET];
    int32_t out[EQUALS * BUDGET], length[EQUALS], again[EQUALS * BUDGET], lengths[EQUALS];
    engine_ties ties;
} job;

/* The first fills the context, the second leaves one position. Engines are asked for nothing longer: some count a
 * position for the last token, too (LAY-07). */
static void make_prompts(job *j)
{
    const int32_t whole = j->positions - BUDGET, tokens[PROMPTS] = {whole, whole - 1, 1};
    for (int32_t i = 0; i < PROMPTS; i++) engine_fill_prompt(&j->e, i, tokens[i], &j->rng, &j->prompt[i]);
}

/* The first n prompts in one call, each against its plain stream. */
static bool same(job *j, const engine_request *q, int32_t n)
{
    char what[100];
    snprintf(what, sizeof what, "gamma %d%s%s, %d of a call", (int)q->gamma, q->itself ? ", the target drafts" : "",
             q->sampling.temperature > 0 ? ", top_k 1 (LAY-18)" : "", (int)n);
    if (!engine_generate(&j->e, q, j->prompt, n, j->out, j->length)) return false;
    for (int32_t i = 0; i < n; i++) {
        const engine_beside b = {.what = what,
                                 .warm = q->sampling.temperature > 0,
                                 .i = i,
                                 .prompt = &j->prompt[i],
                                 .plain = j->plain[i]};
        if (!engine_ties_compare(&j->e, &j->ties, &b, j->out + i * q->k, j->length[i])) return false;
    }
    return true;
}

static bool decode_plainly(job *j, const engine_request *q)
{
    for (int32_t i = 0; i < PROMPTS; i++)
        if (!engine_generate(&j->e, q, &j->prompt[i], 1, j->plain[i], j->length) ||
            !engine_plain_is_right(&j->e, i, &j->prompt[i], j->plain[i], BUDGET))
            return false;
    return true;
}

/* Does top_k = 1 leave one token? Here the largest logits are often equal. */
static bool samples(const iut_claims *m)
{
    return m->rule && m->rule != IUT_RULE_NOT_LOSSLESS && m->top_k_ties != IUT_TIES_KEPT;
}

/* A prompt of one token, behind which the largest logits are equal. p->n = 0: there is none among the first ids. */
static bool find_equals(job *j, engine_prompt *p)
{
    engine_rows w;
    const bool ok = engine_rows_open(&w, &j->e, false, 1);
    p->n = 0;
    for (int32_t v = 0; ok && p->n == 0 && v < MOST_TRIED && v < w.V; v++) {
        int32_t largest = 0;
        engine_rows_cut(&w, 0);
        engine_rows_step(&w, ROWS_TARGET, v);
        const float most = w.logits[lm_argmax(w.logits, w.V)];
        for (int32_t t = 0; t < w.V; t++) largest += w.logits[t] == most;
        if (largest > 1) p->n = 1, p->token[0] = v;
    }
    engine_rows_close(&w);
    return ok;
}

/* Of equal requests of a call: how many part from the first, and how many of these at two tokens of equal logits? */
static bool count_parted(job *j, const engine_request *q, const engine_prompt *p, int32_t *parted, int32_t *at_equals)
{
    bool gone[EQUALS] = {false};
    engine_rows w;
    *parted = *at_equals = 0;
    if (!engine_repeat(&j->e, q, p, EQUALS, j->out, j->length)) return false;
    const bool ok = engine_rows_open(&w, &j->e, false, p->n + BUDGET);
    for (int32_t t = 0, token = p->token[0]; ok && t < j->length[0]; token = j->out[t++]) {
        engine_rows_step(&w, ROWS_TARGET, token);
        for (int32_t i = 1; i < EQUALS; i++) {
            const int32_t one = j->out[t], other = j->out[i * BUDGET + t];
            if (gone[i] || other == one) continue;
            gone[i] = true;
            ++*parted;
            *at_equals += other >= 0 && w.logits[other] == w.logits[one];
        }
    }
    engine_rows_close(&w);
    return ok;
}

/* Does the call give the same tokens once more? */
static bool repeats(job *j, const engine_request *q, const engine_prompt *p, bool *same)
{
    if (!engine_repeat(&j->e, q, p, EQUALS, j->again, j->lengths)) return false;
    *same = true;
    for (int32_t i = 0; i < EQUALS && *same; i++)
        *same = j->lengths[i] == j->length[i] &&
                memcmp(j->again + i * BUDGET, j->out + i * BUDGET, (size_t)j->length[i] * sizeof *j->out) == 0;
    return true;
}

/* A near-tie is a rounding, which does not follow the seed: an engine that draws among equal logits keeps ties without
 * saying so (LAY-18). In two calls some of the equal requests part there, and again by the same seed. In two at
 * temperature 0 none does. */
static bool no_seed_chooses(job *j)
{
    engine_request q = {.k = BUDGET, .eos = -1, .sampling = {0.8f, 1, 1, 0}};
    engine_prompt *p = &j->prompt[0];
    int32_t parted, drawn[2], at_equals;
    bool same;
    if (!find_equals(j, p)) return false;
    if (p->n == 0) return true;
    for (int32_t i = 0; i < 2; i++) {
        q.seed = probe_next(&j->rng);
        if (!count_parted(j, &q, p, &parted, &drawn[i])) return false;
        if (drawn[i] < FEWEST_PARTED) return true;
        if (!repeats(j, &q, p, &same)) return false;
        if (!same) return true;
    }
    q.sampling = (iut_sampling){0, 0, 1, 0};
    for (int32_t i = 0; i < 2; i++) {
        if (!count_parted(j, &q, p, &parted, &at_equals)) return false;
        if (parted) return true;
    }
    result_set(j->e.r, STATE_FAIL,
               "top_k 1: of %d equal requests %d, then %d part from the first between tokens of equal logits, and at "
               "temperature 0 none does: ties are kept, which `top_k_ties` does not say (LAY-18)",
               (int)EQUALS, (int)drawn[0], (int)drawn[1]);
    return false;
}

static bool all(job *j)
{
    engine_request q = {.k = BUDGET, .eos = -1, .sampling = {0, 0, 1, 0}};
    const bool wide = j->e.V >= LM_MANY;
    const int32_t last = wide && j->e.x->level == LEVEL_SMOKE ? 2 : 4;
    make_prompts(j);
    if (!decode_plainly(j, &q) || !same(j, &q, PROMPTS)) return false;
    for (int32_t i = 0; i <= last; i++) {
        q.gamma = engine_draw_gamma(j->e.x->iut, &j->rng);
        q.itself = i % 2;
        q.seed = probe_next(&j->rng);
        if (i == last && !samples(client_claims(j->e.x->iut))) break;
        if (i == last) q.sampling = (iut_sampling){0.8f, 1, 1, 0};
        if (i == last && wide && q.gamma > FEW_DRAFTS) q.gamma = FEW_DRAFTS; /* a row may be sorted whole */
        if (!same(j, &q, i % 3 == 0 || (i == last && !wide) ? PROMPTS : 1)) return false;
    }
    const iut_claims *m = client_claims(j->e.x->iut);
    return wide || m->lm_arithmetic || !samples(m) || no_seed_chooses(j);
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const lm_form target = form_of(c, x->iut), draft = lm_form_draft(&target);
    job j = {.rng = check_seed(x, c, 0), .positions = target.positions};
    if (!engine_open_forms(&j.e, x, r, &target, &draft) || !all(&j)) return;
    char form[200];
    lm_form_text(&target, form, sizeof form);
    engine_ties_conclude(&j.e, &j.ties);
    result_set(r, STATE_PASS, "%d prompts, up to the last of %d positions; %s", (int)PROMPTS, (int)target.positions,
               form);
}

const check check_engine_models = {
    .name = "engine.models",
    .clauses = "LAY-07 LAY-18 LAY-01 CLM-08 CLM-28 GRD-02 GRD-03 DIST-09 STOP-02 STOP-03 KV-08",
    .summary = "an engine's greedy tokens on models of other shapes, up to the end of their context",
    .plan = plan,
    .draw = draw,
    .claimed = claimed,
    .run = run,
};
