/* engine_rounding - what roundings do to the law of a token in the emulated engines: the figures behind the tolerances
 * of LAY-19.
 *
 *   engine_rounding [PROMPTS]  prompts of each pair (default 8); exit 1 if a tolerance is too small
 *
 * The emulated networks choose another kernel where a forward has several rows or a call several requests. Two copies
 * of a target go down the same prefixes: a plain one, alone, token by token; and one whose rows all come from the other
 * kernel, as with drafts or in company. "behind": the prompt is one forward in both. "all": its rows differ, too. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "conformance/checks/engine/engine.h"
#include "conformance/checks/engine/engine_rows.h"
#include "conformance/checks/frame/probe.h"
#include "conformance/subjects/mutants/model/lm_subject.h"

enum { DEEP = 4, MOST_PROMPT = 24, MOST_V = 258, POSITIONS = 64, WAYS = 2, SAMPLINGS = 6, COMPANY = 4 };

static const struct format {
    const char *name;
    setting_name setting;
    uint8_t arithmetic; /* as the engine claims it */
    double eps;
} formats[] = {
    {"BF16", SETTING_LM_BF16, IUT_ARITH_BF16, 0.02},
    {"F16", SETTING_LM_F16, IUT_ARITH_F16, 0.003},
    {"Q8", SETTING_LM_Q8, IUT_ARITH_F32, 0.0005},
    {"Q4", SETTING_LM_Q4, IUT_ARITH_F32, 0.0005},
};

/* As in the cells of engine.pairs. */
static const oracle_sampling sampling[SAMPLINGS] = {
    {0.7f, 0, 1, 0}, {1, 0, 1, 0}, {1.3f, 0, 1, 0}, {1, 3, 1, 0}, {1.3f, 0, 0.8f, 0}, {1, 0, 1, 0.1f},
};

typedef struct {
    double sum, most;
    int64_t rows;
} distance;

typedef struct {
    iut *lm[WAYS];
    int32_t V;
    iut_claims claims;
    uint64_t rng;
    distance of[SAMPLINGS];
} walk;

static void check_ok(bool ok, const char *what)
{
    if (ok) return;
    fprintf(stderr, "engine_rounding: %s\n", what);
    exit(3);
}

/* ---- Rows. ------------------------------------------------------------------------ */

/* Commits n tokens; logits of the last one. */
static void forward(iut *model, int32_t company, const int32_t *token, int32_t n, float *logits)
{
    const iut_api *f = &lm_subject_operations;
    const int32_t sequence = 0, one = 1, want = n - 1;
    int32_t parent[MOST_PROMPT], path[MOST_PROMPT], length;
    for (int32_t i = 0; i < n; i++) parent[i] = i - 1, path[i] = i;
    lm_subject_company(model, company);
    iut_forward_batch rows = {sizeof rows, 1, n, 1, &sequence, &n, &one, token, parent, &want, logits};
    iut_commit_batch all = {sizeof all, 1, n, &sequence, &n, path, &length};
    check_ok(f->forward(model, &rows) == IUT_OK && f->commit(model, &all) == IUT_OK, "a forward failed");
}

static void cut(iut *model, int32_t keep)
{
    const int32_t sequence = 0;
    int32_t length;
    iut_truncate_batch b = {sizeof b, 1, &sequence, &keep, &length};
    check_ok(lm_subject_operations.truncate(model, &b) == IUT_OK, "a cut failed");
}

/* ---- Laws. ------------------------------------------------------------------------ */

static void compare(walk *w, float logits[WAYS][MOST_V])
{
    for (int i = 0; i < SAMPLINGS; i++) {
        double p[WAYS][MOST_V], far = 0;
        const engine_rows row = {.V = w->V, .logits = logits[0]};
        const double reach = engine_reach(&w->claims, &row);
        const engine_margin margin = {reach, reach / fmin(1, (double)sampling[i].temperature), reach};
        if (!engine_rows_clear(&row, &sampling[i], margin)) continue;
        for (int k = 0; k < WAYS; k++)
            check_ok(oracle_served64(logits[k], w->V, &sampling[i], NULL, p[k], NULL, 0) == ORACLE_OK, "a bad row");
        for (int32_t t = 0; t < w->V; t++) far += 0.5 * fabs(p[0][t] - p[1][t]);
        distance *d = &w->of[i];
        d->sum += far, d->most = fmax(d->most, far), d->rows++;
    }
}

/* Every prefix of so many tokens behind those that are committed; of a large vocabulary one of each length. */
static void descend(walk *w, float logits[WAYS][MOST_V], int32_t committed, int depth)
{
    compare(w, logits);
    if (depth == DEEP - 1) return;
    for (int32_t i = 0; i < (w->V > 16 ? 1 : w->V); i++) {
        float next[WAYS][MOST_V];
        const int32_t token = w->V > 16 ? probe_below(&w->rng, w->V - 2) : i;
        forward(w->lm[0], 1, &token, 1, next[0]);
        forward(w->lm[1], COMPANY, &token, 1, next[1]);
        descend(w, next, committed + 1, depth + 1);
        for (int k = 0; k < WAYS; k++) cut(w->lm[k], committed);
    }
}

static void begin(walk *w, const engine_prompt *p, bool all)
{
    float logits[WAYS][MOST_V];
    forward(w->lm[1], COMPANY, p->token, p->n, logits[1]);
    for (int32_t t = 0; all && t < p->n; t++) forward(w->lm[0], 1, p->token + t, 1, logits[0]);
    if (!all) forward(w->lm[0], 1, p->token, p->n, logits[0]);
    descend(w, logits, p->n, 0);
    for (int k = 0; k < WAYS; k++) cut(w->lm[k], 0);
}

/* ---- Figures. --------------------------------------------------------------------- */

static bool within(const struct format *f, const char *model, const char *folder, engine_pair pair, int prompts)
{
    bool ok = true;
    for (int all = 0; all < 2; all++) {
        walk w = {.V = engine_pair_V[pair], .claims = {.arithmetic = f->arithmetic}, .rng = 1};
        const engine e = {.pair = pair, .V = w.V};
        char why[400];
        for (int k = 0; k < WAYS; k++) {
            int32_t shape[4];
            iut_model m = {sizeof m, folder, 1, POSITIONS, MOST_PROMPT, 0, shape};
            w.lm[k] = lm_subject_create("engine_rounding", (variant){FAULT_NONE, f->setting}, why, sizeof why);
            check_ok(w.lm[k] && lm_subject_operations.model(w.lm[k], &m) == IUT_OK, "a model cannot be loaded");
        }
        for (int i = 0; i < prompts; i++) {
            engine_prompt p;
            engine_fill_prompt(&e, i, 1 + probe_below(&w.rng, MOST_PROMPT), &w.rng, &p);
            begin(&w, &p, all);
        }
        printf("%-5s%-8s%-7s", f->name, model, all ? "all" : "behind");
        for (int i = 0; i < SAMPLINGS; i++) {
            const distance *d = &w.of[i];
            printf("  %.1e %.1e", d->rows ? d->sum / (double)d->rows : 0, d->most);
            ok = ok && d->most <= f->eps;
        }
        printf("\n");
        for (int k = 0; k < WAYS; k++) lm_subject_operations.destroy(w.lm[k]);
    }
    return ok;
}

int main(int argc, char **argv)
{
    const int prompts = argc > 1 ? atoi(argv[1]) : 8;
    char why[400];
    bool ok = prompts > 0;
    const char *few = lm_small_folder("few", why, sizeof why);
    check_ok(few, "no folder for a small model");
    printf("total variation of a token's law, mean and largest\n%-20s", "");
    for (int i = 0; i < SAMPLINGS; i++)
        printf("  T%-3g k%d p%g m%g  ", (double)sampling[i].temperature, (int)sampling[i].top_k,
               (double)sampling[i].top_p, (double)sampling[i].min_p);
    printf("\n");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        ok = within(&formats[i], "few", few, PAIR_FEW, prompts) && ok;
        ok = within(&formats[i], "trained", VECTORS "/models/target", PAIR_TRAINED, prompts) && ok;
    }
    return !ok;
}
