/* `assay bench speculative`: how much faster the trained pair decodes with drafts than without,
 * beside what the formula says.
 *
 * The first figure is theorem 3.8 of Leviathan et al. 2023 (THY-08). It takes the rows of a
 * verification to be free. They are not where the weights sit in a cache; so the second figure
 * has the measured cost of gamma + 1 rows in the place of the 1. All parts are measured in the
 * same run, plain and drafted decoding in turn. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cli/arguments/model.h"
#include "conformance/cli/arguments/options.h"
#include "conformance/cli/bench/bench.h"
#include "conformance/cli/bench/bench_measure.h"
#include "conformance/theory/chain.h"
#include "conformance/wire/clock.h"
#include "ref/decode.h"

enum { TOKENS = 128, GAMMAS = 6, REPEATS = 5, PROMPTS = 4, ROWS = 256 };

static const char *const prompts[PROMPTS] = {
    "And it came to pass in those days, that ", "The LORD is my shepherd; I shall not ",
    "And these are the names of the children ", "Then answered Job and said, How long "};

typedef struct {
    model target, draft;
    token_list prompt[PROMPTS];
} pair;

/* One way of decoding, over all prompts. */
typedef struct {
    double seconds; /* of all steps but each request's first, which has the prompt in it */
    int64_t tokens; /* of these steps */
    int64_t steps, accepted, reached;
    bool first;
    double last;
} tally;

static void on_step(void *data, const as_step *s)
{
    tally *t = data;
    const double at = clock_now();
    const int32_t drafts = s->tree->rows - 1;
    if (!t->first) {
        t->seconds += at - t->last;
        t->tokens += s->emitted;
        t->steps++;
        t->accepted += s->accepted;
        t->reached += drafts > s->accepted ? s->accepted + 1 : drafts;
    }
    t->first = false;
    t->last = at;
}

/* ---- Decoding. ------------------------------------------------------------------------- */

static bool decode(as_lm *lm, as_drafter *drafter, const pair *p, float temperature,
                   uint64_t seed, tally *t)
{
    int32_t out[TOKENS];
    *t = (tally){0};
    for (int32_t i = 0; i < PROMPTS; i++) {
        as_result result;
        as_error e;
        const as_request r = {.target = lm,
                              .drafter = drafter,
                              .rule = temperature == 0 ? AS_RULE_GREEDY : AS_RULE_CHAIN,
                              .sampling = {temperature, 0, 1, 0},
                              .seed = seed + (uint64_t)i,
                              .prompt = p->prompt[i].token,
                              .prompts = p->prompt[i].n,
                              .budget = TOKENS,
                              .trace = on_step,
                              .trace_data = t};
        t->first = true;
        if (as_decode(&r, out, &result, &e) == AS_OK) continue;
        fprintf(stderr, "assay bench: %s\n", e.text);
        return false;
    }
    return true;
}

/* Seconds of a forward of so many rows on a sequence of 100 tokens. */
static double forward_time(as_lm *lm, int32_t rows)
{
    as_row row[100];
    int32_t index[100], id;
    as_error e;
    float *logits = malloc((size_t)rows * (size_t)lm->V * sizeof *logits);
    double best = INFINITY;
    for (int32_t i = 0; i < 100; i++) row[i] = (as_row){i % 90 + 32, i - 1}, index[i] = i;
    if (!logits || as_lm_open(lm, &id, &e) != AS_OK) {
        free(logits);
        return NAN;
    }
    const as_forward fill = {id, 100, 0, row, NULL, NULL},
                     step = {id, rows, rows, row, index, logits};
    bool ok = as_lm_forward(lm, &fill, 1, &e) == AS_OK &&
              as_lm_commit(lm, id, index, 100, &e) == AS_OK;
    for (int i = 0; ok && i < 30; i++) {
        const double start = clock_now();
        ok = as_lm_forward(lm, &step, 1, &e) == AS_OK;
        best = fmin(best, clock_now() - start);
    }
    as_lm_close(lm, id);
    free(logits);
    return ok ? best : NAN;
}

/* ---- The table. ------------------------------------------------------------------------ */

static bool line(const pair *p, as_drafter *none, as_drafter *drafter, float temperature,
                 int32_t gamma, double c, double one)
{
    double ratio[REPEATS];
    tally plain, drafted = {0}, all = {0};
    for (int i = 0; i < REPEATS; i++) {
        if (!decode(p->target.lm, none, p, temperature, (uint64_t)(10 * i), &plain) ||
            !decode(p->target.lm, drafter, p, temperature, (uint64_t)(10 * i), &drafted))
            return false;
        ratio[i] =
            (double)drafted.tokens / drafted.seconds / ((double)plain.tokens / plain.seconds);
        all.tokens += drafted.tokens, all.steps += drafted.steps;
        all.accepted += drafted.accepted, all.reached += drafted.reached;
    }
    const double median = bench_quantile(ratio, REPEATS, 0.5);
    const double a = (double)all.accepted / (double)all.reached, e = theory_tokens(a, gamma),
                 rows = forward_time(p->target.lm, gamma + 1) / one;
    printf("%4.1f %6d %8.3f %8.2f %8.2f %8.2f %10.2f %10.2f %8.2fx (%.2f..%.2f)\n",
           (double)temperature, (int)gamma, a, (double)all.tokens / (double)all.steps, e, rows,
           theory_walltime(a, gamma, c, 1), theory_walltime(a, gamma, c, rows), median, ratio[0], ratio[REPEATS - 1]);
    return true;
}

static bool table(const pair *p, float temperature, double c, double one)
{
    const as_sampling s = {temperature, 0, 1, 0};
    as_drafter *none = NULL;
    as_error e;
    as_status made = as_draft_none(&none, &e);
    bool ok = made == AS_OK;
    for (int32_t gamma = 1; ok && gamma <= GAMMAS; gamma++) {
        as_drafter *drafter = NULL;
        made = as_draft_lm(p->draft.lm, &s, gamma, &drafter, &e);
        ok = made == AS_OK && line(p, none, drafter, temperature, gamma, c, one);
        as_drafter_free(drafter);
    }
    if (made != AS_OK) fprintf(stderr, "assay bench: %s\n", e.text);
    as_drafter_free(none);
    return ok;
}

static bool open_pair(pair *p)
{
    const as_llama_options options = {.rows = ROWS, .threads = 1};
    *p = (pair){0};
    bool ok = model_load(&p->target, NULL, "target", &options) &&
              model_load(&p->draft, NULL, "draft", &options);
    for (int32_t i = 0; ok && i < PROMPTS; i++)
        ok = tokens_of_text(&p->target, prompts[i], strlen(prompts[i]), &p->prompt[i]);
    return ok;
}

static const option_table no_options = {"bench speculative", "usage: assay bench speculative\n",
                                        NULL, 0, NULL};

int bench_speculative(int argc, char **argv)
{
    pair p;
    int code;
    if (!options_read(&no_options, NULL, argc, argv, NULL, &code)) return code;
    bool ok = open_pair(&p);
    const double one = ok ? forward_time(p.target.lm, 1) : NAN,
                 c = ok ? forward_time(p.draft.lm, 1) / one : NAN;
    if (ok && !isfinite(c)) fputs("assay bench: a forward failed, or memory ran out\n", stderr);
    ok = isfinite(c);
    if (ok) {
        printf("The trained pair, one thread: %d prompts of %d tokens, median of %d\n"
               "a target step %.0f us, a draft step %.0f us: c = %.3f\n\n"
               "%4s %6s %8s %8s %8s %8s %10s %10s %9s\n",
               PROMPTS, TOKENS, REPEATS, 1e6 * one, 1e6 * c * one, c, "T", "gamma", "accept",
               "tok/step", "expected", "rows x", "formula", "with rows", "measured");
        ok = table(&p, 0, c, one) && table(&p, 1, c, one);
    }
    for (int32_t i = 0; i < PROMPTS; i++) free(p.prompt[i].token);
    model_free(&p.target);
    model_free(&p.draft);
    return ok ? EXIT_SUCCESS : EXIT_ERROR;
}
