/* `assay bench ouroboros`: tokens a forward of the target, and a forward of the draft model, of Ouroboros on the
 * trained pair, beside the other methods; its parts and sizes one at a time; warm starts; and how drafts and answers
 * match.
 *
 * A forward of the draft model is a draft step (OUR-05), and of a chain a draft: what the draft model lacks of the text
 * goes into the next of these. `at c` are the tokens for the time of a target's forward, if rows cost nothing and a
 * forward of the draft model takes c of that time. All is counted: the tables are the same on every machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/arguments/ouroboros.h"
#include "conformance/cli/bench/bench.h"
#include "conformance/cli/bench/bench_measure.h"
#include "ref/decode.h"
#include "ref/num/uniform.h"

enum { BUDGET = 128, SHORT = 24, LONG_DRAFT = 20, MATCHES = 8, ALL = BENCH_TEXTS * BENCH_PROMPTS };
static const double cost = 0.1;

typedef struct {
    int prompts; /* 0: the usual number */
    double temperature;
    bool quick;
    const char *only; /* NULL: all parts */
} arguments;

static const option options[] = {
    {"--quick", NULL, "with short texts", OPTION_FLAG, .at = offsetof(arguments, quick)},
    {"--prompts", "P", "of each text", OPTION_INT, .at = offsetof(arguments, prompts), 1, BENCH_PROMPTS,
     .otherwise = "16, and 2 with --quick"},
    {"--temperature", "T", "0 is greedy", OPTION_NUMBER, .at = offsetof(arguments, temperature), 0, 1e6,
     .otherwise = "0"},
    {"--only", "PART", "of the tables", OPTION_CHOICE, .at = offsetof(arguments, only),
     .must = "methods|parts|switches|sizes|warm|matches"},
};

static const option_table table = {"bench ouroboros",
                                   "usage: assay bench ouroboros [options]\n\n"
                                   "Tokens a forward of Ouroboros, on the trained pair.\n",
                                   options, 4, NULL};

/* ---- Methods. -------------------------------------------------------------------------- */

typedef struct {
    const char *label, *method; /* ar, speculative, ouroboros, or one of methods.h */
    method_options options;     /* of methods.h; gamma of speculative */
    ouroboros_options ouroboros;
} method;

#define OUROBOROS(label, preset, switches, gamma, W, N, K)                          \
    {                                                                               \
        label, "ouroboros", {0}, { preset, switches, gamma, W, N, K, false } \
    }
#define USUAL(label, preset, switches) \
    OUROBOROS(label, preset, switches, OUROBOROS_GAMMA, OUROBOROS_W, OUROBOROS_N, OUROBOROS_K)

static as_status make(const bench_pair *b, const method *m, float T, as_drafter **d, as_rule *rule, as_error *e)
{
    const as_sampling s = {T, 0, 1, 0};
    *rule = AS_RULE_MATCH;
    if (strcmp(m->method, "ar") == 0) return as_draft_none(d, e);
    if (strcmp(m->method, "speculative") == 0) {
        *rule = AS_RULE_CHAIN;
        return as_draft_lm(b->draft.lm, &s, (int32_t)m->options.gamma, d, e);
    }
    const bool made = strcmp(m->method, "ouroboros") == 0
                          ? ouroboros_drafter(&m->ouroboros, NULL, b->draft.lm, d, e->text, sizeof e->text)
                          : method_drafter(m->method, &m->options, NULL, "match", b->target.lm->V, d, rule, e->text,
                                           sizeof e->text);
    return made ? AS_OK : AS_BAD_INPUT;
}

/* ---- Decoding. ------------------------------------------------------------------------- */

/* What each prompt gave, and the rounds of all of Ouroboros. */
typedef struct {
    double tokens[ALL], rows[ALL];       /* [n] */
    double forwards[ALL], drafting[ALL]; /* [n] of the target and of the draft model */
    double S[ALL];                       /* [n] tokens a forward of the target */
    int32_t n;
    ouroboros_tally rounds;
    double full[ALL], prefix[ALL], match[MATCHES + 1][ALL]; /* [n] rounds of LONG_DRAFT drafts; sums over these */
} measured;

typedef struct {
    const method *m;
    as_drafter *d;
    measured *to;
    int32_t place; /* of the prompt being decoded */
    bool matches;  /* look at them */
} watcher;

/* Of the drafts those that the target answers, and runs of k of these. */
static void count_matches(watcher *w, const as_step *s, int32_t drafts)
{
    int32_t run = 0, answer, prefix = 0;
    if (drafts != LONG_DRAFT) return;
    for (int32_t i = 1; i <= drafts; i++) {
        if (as_argmax(s->logits[i - 1], w->d->V, &answer, NULL) != AS_OK) return;
        run = answer == s->tree->row[i].token ? run + 1 : 0;
        prefix += run == i;
        for (int32_t k = 1; k <= MATCHES; k++) w->to->match[k][w->place] += run >= k;
    }
    w->to->full[w->place]++;
    w->to->prefix[w->place] += prefix;
}

static void on_step(void *data, const as_step *s)
{
    watcher *w = data;
    measured *to = w->to;
    int32_t steps = 0, drafts = 0;
    to->rows[w->place] += s->tree->rows;
    if (strcmp(w->m->method, "ouroboros") == 0) {
        drafts = as_ouroboros_drafts(w->d, &steps);
        ouroboros_count(&to->rounds, w->d, s);
    } else if (strcmp(w->m->method, "speculative") == 0)
        steps = s->tree->rows - 1;
    to->drafting[w->place] += steps;
    if (w->matches) count_matches(w, s, drafts);
}

/* Prompt i of a text, and the place of its figures. */
typedef struct {
    int32_t text, i, place;
} turn;

static as_status decode_one(const bench_pair *b, as_rule rule, float T, const turn *t, watcher *w, as_error *e)
{
    const token_list *prompt = &b->text[t->text].prompt[t->i];
    int32_t out[BUDGET];
    as_result result;
    const as_request r = {.target = b->target.lm,
                          .drafter = w->d,
                          .rule = T == 0 ? AS_RULE_GREEDY : rule,
                          .sampling = {T, 0, 1, 0},
                          .seed = 1000 + (uint64_t)t->i,
                          .prompt = prompt->token,
                          .prompts = prompt->n,
                          .eos = b->target.info.eos,
                          .eoses = b->target.info.eos_count,
                          .budget = b->budget,
                          .trace = on_step,
                          .trace_data = w};
    w->place = t->place;
    const as_status s = as_decode(&r, out, &result, e);
    w->to->tokens[t->place] = result.tokens;
    w->to->forwards[t->place] = result.steps;
    w->to->S[t->place] = (double)result.tokens / result.steps;
    return s;
}

/* Decodes after the prompts in their turn, by one drafter. */
static bool decode(const bench_pair *b, const method *m, float T, const turn *t, int32_t n, bool matches, measured *to)
{
    as_rule rule;
    as_error e = {.text = ""};
    watcher w = {.m = m, .to = to, .matches = matches};
    *to = (measured){.n = n};
    as_status s = make(b, m, T, &w.d, &rule, &e);
    for (int32_t i = 0; i < n && s == AS_OK; i++) s = decode_one(b, rule, T, &t[i], &w, &e);
    as_drafter_free(w.d);
    if (s != AS_OK) fprintf(stderr, "assay bench: %s: %s\n", m->label, e.text);
    return s == AS_OK;
}

/* After the prompts of one text, in their order. */
static bool decode_text(const bench_pair *b, const method *m, float T, int text, bool matches, measured *to)
{
    turn t[BENCH_PROMPTS];
    const int32_t n = b->text[text].n;
    for (int32_t i = 0; i < n; i++) t[i] = (turn){text, i, i};
    return decode(b, m, T, t, n, matches, to);
}

/* ---- Figures. -------------------------------------------------------------------------- */

static bench_ratio at_cost(const measured *m)
{
    double time[ALL];
    for (int32_t i = 0; i < m->n; i++) time[i] = m->forwards[i] + cost * m->drafting[i];
    return bench_ratio_of(m->tokens, time, m->n);
}

static void print_head(float T, const char *text, const char *noun)
{
    printf("\nT = %g, %s %s\n  %-36s %14s %16s %14s %6s %14s %9s\n", (double)T, text, noun, "method", "a forward",
           "against first", "a draft forward", "rows", "at c = 0.1", "suffixes");
}

/* Tokens a forward; of the tokens of Ouroboros those that were suffixes. */
static void print_line(const method *m, const measured *r, const measured *first)
{
    const bench_ratio target = bench_ratio_of(r->tokens, r->forwards, r->n),
                      drafting = bench_ratio_of(r->tokens, r->drafting, r->n),
                      rows = bench_ratio_of(r->rows, r->forwards, r->n), time = at_cost(r);
    double error;
    const double more = bench_more(r->S, first->S, r->n, &error);
    printf("  %-36s %6.3f(%.3f)  %+6.1f(%.1f) %%", m->label, target.value, target.error, more, error);
    if (drafting.over > 0)
        printf(" %7.3f(%.3f)", drafting.value, drafting.error);
    else
        printf(" %14s", "-");
    printf(" %6.1f %6.3f(%.3f)", rows.value, time.value, time.error);
    if (r->rounds.rounds)
        printf(" %6.1f %%", 100 * (double)r->rounds.suffix_tokens / (double)r->rounds.tokens);
    putchar('\n');
    fflush(stdout);
}

/* A line a method, each against the first. */
static bool lines(const bench_pair *b, const method *m, int32_t n, float T)
{
    measured *r = malloc(2 * sizeof *r);
    bool ok = r != NULL;
    if (!ok) fputs("assay bench: out of memory\n", stderr);
    for (int text = 0; text < BENCH_TEXTS && ok; text++) {
        print_head(T, b->text[text].name, "text");
        for (int32_t i = 0; i < n && ok; i++) {
            ok = decode_text(b, &m[i], T, text, false, &r[i > 0]);
            if (ok) print_line(&m[i], &r[i > 0], &r[0]);
        }
    }
    free(r);
    return ok;
}

/* ---- Tables. --------------------------------------------------------------------------- */

#define COUNT(list) (int32_t)(sizeof(list) / sizeof *(list))

static bool methods(const bench_pair *b, float T)
{
    static const method list[] = {
        {BENCH_AR, {0}},
        {BENCH_HF, {0}},
        {"lookahead paper (15,5,15)",
         "lookahead",
         {.preset = "paper", .switches = "rule=match", .window = 15, .pool = 15, .ngram = 5},
         {0}},
        {"draft model, 4", "speculative", {.gamma = 4}, {0}},
        {"draft model, 8", "speculative", {.gamma = 8}, {0}},
        {"draft model, 12", "speculative", {.gamma = 12}, {0}},
        USUAL("ouroboros paper, gamma 4", "paper", NULL),
        OUROBOROS("ouroboros paper, gamma 8", "paper", NULL, 8, OUROBOROS_W, OUROBOROS_N, OUROBOROS_K),
        OUROBOROS("ouroboros paper, gamma 12", "paper", NULL, 12, OUROBOROS_W, OUROBOROS_N, OUROBOROS_K),
        USUAL("ouroboros code, gamma 4", "code", NULL)};
    return lines(b, list, COUNT(list), T);
}

/* Of the usual sizes, and of longer drafts with shorter phrases, which inspire more. */
static bool parts(const bench_pair *b, float T)
{
#define PART(label, switches, K) OUROBOROS(label, "paper", switches, OUROBOROS_GAMMA, OUROBOROS_W, OUROBOROS_N, K)
#define LONG(label, switches, K) OUROBOROS(label ", gamma 12, N 3", "paper", switches, 12, OUROBOROS_W, 3, K)
    static const method usual[] = {PART("none", "inspire=none,refine=none", 0),
                                   PART("inspiration", "refine=none", 0),
                                   PART("suffixes", "inspire=none,refine=none", OUROBOROS_K),
                                   PART("suffixes, inspiration", "refine=none", OUROBOROS_K),
                                   PART("suffixes, refinement", "inspire=none", OUROBOROS_K),
                                   PART("all", NULL, OUROBOROS_K)};
    static const method longer[] = {LONG("none", "inspire=none,refine=none", 0),
                                    LONG("inspiration", "refine=none", 0),
                                    LONG("suffixes, refinement", "inspire=none", OUROBOROS_K),
                                    LONG("all", NULL, OUROBOROS_K)};
    return lines(b, usual, COUNT(usual), T) && lines(b, longer, COUNT(longer), T);
}

static bool switches(const bench_pair *b, float T)
{
    static const method list[] = {USUAL("paper", "paper", NULL),
                                  USUAL("draft_bonus=no", "paper", "draft_bonus=no"),
                                  USUAL("overrun=no", "paper", "overrun=no"),
                                  USUAL("suffix_bonus=no", "paper", "suffix_bonus=no"),
                                  USUAL("inspire=tail", "paper", "inspire=tail"),
                                  USUAL("inspire=none", "paper", "inspire=none"),
                                  USUAL("refine=newest", "paper", "refine=newest"),
                                  USUAL("refine=none", "paper", "refine=none"),
                                  USUAL("refine_refused=few", "paper", "refine_refused=few"),
                                  OUROBOROS("no suffixes", "paper", NULL, OUROBOROS_GAMMA, OUROBOROS_W, OUROBOROS_N, 0),
                                  USUAL("code", "code", NULL)};
    return lines(b, list, COUNT(list), T);
}

static bool sizes(const bench_pair *b, float T)
{
#define SIZES(label, gamma, W, N, K) OUROBOROS(label, "paper", NULL, gamma, W, N, K)
    static const method list[] = {
        SIZES("gamma 4, W 15, N 6, K 3", 4, 15, 6, 3), SIZES("gamma 2", 2, 15, 6, 3), SIZES("gamma 8", 8, 15, 6, 3),
        SIZES("gamma 12", 12, 15, 6, 3), SIZES("gamma 20", 20, 15, 6, 3), SIZES("W 1", 4, 1, 6, 3),
        SIZES("W 5", 4, 5, 6, 3), SIZES("W 10", 4, 10, 6, 3), SIZES("W 20", 4, 20, 6, 3), SIZES("N 2", 4, 15, 2, 3),
        SIZES("N 3", 4, 15, 3, 3), SIZES("N 4", 4, 15, 4, 3), SIZES("N 8", 4, 15, 8, 3), SIZES("K 0", 4, 15, 6, 0),
        SIZES("K 1", 4, 15, 6, 1), SIZES("K 5", 4, 15, 6, 5), SIZES("K 10", 4, 15, 6, 10)};
    return lines(b, list, COUNT(list), T);
}

/* Runs of `length` prompts of one text and of the other in turn; returns how many prompts. */
static int32_t order_in_runs(const bench_pair *b, int32_t length, turn *t)
{
    int32_t n = 0;
    for (int32_t from = 0; from < BENCH_PROMPTS; from += length)
        for (int text = 0; text < BENCH_TEXTS; text++)
            for (int32_t i = from; i < from + length && i < b->text[text].n; i++)
                t[n++] = (turn){text, i, text * b->text[0].n + i};
    return n;
}

static void shuffle(turn *t, int32_t n)
{
    for (int32_t i = n - 1; i > 0; i--) {
        const int32_t k = (int32_t)(as_word64(as_random(1, (uint64_t)i, AS_DRAW, 0)) % (uint64_t)(i + 1));
        const turn kept = t[i];
        t[i] = t[k], t[k] = kept;
    }
}

/* All prompts of both texts, one after the other. */
static bool warm(const bench_pair *b, float T)
{
    static const struct {
        const char *label;
        int32_t run; /* prompts of one text before those of the other */
        bool warm, shuffled;
    } list[] = {{"cold", 1, false, false},
                {"warm, shuffled", 1, true, true},
                {"warm, in turn", 1, true, false},
                {"warm, runs of 4", 4, true, false},
                {"warm, text after text", BENCH_PROMPTS, true, false}};
    turn t[ALL];
    measured *r = malloc(2 * sizeof *r);
    bool ok = r != NULL;
    if (!ok) return fputs("assay bench: out of memory\n", stderr), false;
    print_head(T, "both", "texts");
    for (int32_t i = 0; i < COUNT(list) && ok; i++) {
        method m = USUAL(list[i].label, "paper", NULL);
        m.ouroboros.warm = list[i].warm;
        const int32_t n = order_in_runs(b, list[i].run, t);
        if (list[i].shuffled) shuffle(t, n);
        ok = decode(b, &m, T, t, n, false, &r[i > 0]);
        if (ok) print_line(&m, &r[i > 0], &r[0]);
    }
    free(r);
    return ok;
}

/* Places of LONG_DRAFT drafts where k in a row are the target's answers. */
static bool matches(const bench_pair *b, float T)
{
    static const method m =
        OUROBOROS("gamma 20", "paper", "overrun=no", LONG_DRAFT, OUROBOROS_W, OUROBOROS_N, OUROBOROS_K);
    measured *r = malloc(sizeof *r);
    bool ok = r != NULL;
    if (!ok) fputs("assay bench: out of memory\n", stderr);
    for (int text = 0; text < BENCH_TEXTS && ok; text++) {
        ok = decode_text(b, &m, T, text, true, r);
        if (!ok) break;
        const bench_ratio prefix = bench_ratio_of(r->prefix, r->full, r->n);
        printf("\nT = %g, %s text, %.0f rounds of %d drafts: common prefix %.2f(%.2f); in a row 1 to %d:", (double)T,
               b->text[text].name, prefix.over, LONG_DRAFT, prefix.value, prefix.error, MATCHES);
        for (int32_t k = 1; k <= MATCHES; k++) {
            const bench_ratio match = bench_ratio_of(r->match[k], r->full, r->n);
            printf(" %.2f(%.2f)", match.value, match.error);
        }
        putchar('\n');
    }
    free(r);
    return ok;
}

/* ---- Command line. --------------------------------------------------------------------- */

static const struct {
    const char *name, *title;
    bool (*part)(const bench_pair *, float T);
} tables[] = {
    {"methods", "Methods; above T = 0 by the rule match, and chains by the rule chain", methods},
    {"parts", "Parts of Ouroboros", parts},
    {"switches", "Other switches, one at a time from paper", switches},
    {"sizes", "Sizes, one at a time from the first line", sizes},
    {"warm", "A pool that stays from one request to the next", warm},
    {"matches", "Drafts and the target's answers to them, a round", matches},
};

int bench_ouroboros(int argc, char **argv)
{
    arguments a = {0};
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    bench_pair *b = malloc(sizeof *b);
    if (!b) return fputs("assay bench: out of memory\n", stderr), EXIT_ERROR;
    bool ok = bench_open(b, a.prompts ? a.prompts : a.quick ? 2 : 16, a.quick ? SHORT : BUDGET);
    if (ok)
        printf("Ouroboros on the trained pair: %d held-out and %d repetitive prompts, %d tokens after each; standard\n"
               "errors in parentheses\n",
               (int)b->text[0].n, (int)b->text[1].n, (int)b->budget);
    for (int i = 0; i < COUNT(tables) && ok; i++) {
        if (a.only && strcmp(a.only, tables[i].name) != 0) continue;
        printf("\n%s\n", tables[i].title);
        ok = tables[i].part(b, (float)a.temperature);
    }
    bench_close(b);
    free(b);
    return ok ? EXIT_SUCCESS : EXIT_ERROR;
}
