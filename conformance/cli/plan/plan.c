/* plan.c - see plan.h. Which tables come follows from the options that are given. */
#include "conformance/cli/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/plan/forecasts.h"
#include "conformance/cli/plan/measure.h"
#include "conformance/cli/plan/outcomes.h"
#include "conformance/theory/acceptance.h"
#include "conformance/theory/lookahead.h"
#include "ref/load/tokenizer.h"

enum { VALUES = 64, ROWS = 512, LARGEST_N = 4096 };

/* ---- The command line. ----------------------------------------------------------------- */

/* Numbers from 0 to 1, separated by commas. */
typedef struct {
    double of[VALUES]; /* [n] */
    int32_t n;
} value_list;

static bool read_values(const char *text, void *to)
{
    value_list *list = to;
    char word[40];
    for (list->n = 0;; text++) {
        const size_t length = strcspn(text, ",");
        if (length >= sizeof word || list->n == VALUES) return false;
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        double *value = &list->of[list->n++];
        if (!option_double(word, value) || *value < 0 || *value > 1) return false;
        text += length;
        if (!*text) return true;
    }
}

typedef struct {
    double alpha, cost, operations, row_cost, found, parameters, width, bandwidth, speed, temperature;
    int gamma, candidates, budget, window, ngram, pool, siblings, prompts;
    value_list p, q, rates;
    const char *tree, *model, *draft, *text, *json, *svg;
    options_given given;
} arguments;

#define AT(field) .at = offsetof(arguments, field)
#define LIST_OF_VALUES "at most 64 numbers from 0 to 1, separated by commas"
static const option options[] = {
    {"--alpha", "A", "mean acceptance of a draft", OPTION_NUMBER, AT(alpha), 0, 1},
    {"--gamma", "N", "most drafts a step", OPTION_INT, AT(gamma), 1, FORECAST_GAMMA, .otherwise = "10; --measure: 8"},
    {"--cost", "C", "time of a draft forward, in target forwards of one row", OPTION_NUMBER, AT(cost), 0, 1000,
     .otherwise = "0; --measure: by the clock"},
    {"--operations", "C", "the same, of arithmetic operations", OPTION_NUMBER, AT(operations), 0, 1000,
     .otherwise = "--cost; --measure: by parameters"},
    {"--row-cost", "R", "time of each further row of the target, likewise", OPTION_NUMBER, AT(row_cost), 0, 1000,
     .otherwise = "0; --measure: by the clock"},
    {"--candidates", "B", "chains a step, of which the longest right one counts", OPTION_INT, AT(candidates), 1, 4096,
     .otherwise = "1"},
    {"--found", "F", "lookahead: one step in F finds candidates", OPTION_NUMBER, AT(found), 1, 1e6},
    {"--rows", "R", "lookahead: rows of a forward at most, for the best size", OPTION_INT, AT(budget), 2, 1000000,
     .otherwise = "--measure: those of W, N, G"},
    {"--window", "W", "lookahead: columns", OPTION_INT, AT(window), 1, 4096, .otherwise = "--measure: 15"},
    {"--ngram", "N", "lookahead: tokens of an n-gram", OPTION_INT, AT(ngram), 2, LARGEST_N,
     .otherwise = "--measure: 5"},
    {"--pool", "G", "lookahead: candidates a step", OPTION_INT, AT(pool), 0, 4096, .otherwise = "W"},
    {"--tree", "SHAPE", "children by level (3-2-1), or parents of the nodes (0,0,1)", OPTION_TEXT, AT(tree)},
    {"--rates", "P,...", "of the tree: how often the draft of each rank is gone to", OPTION_CUSTOM, AT(rates),
     .must = LIST_OF_VALUES, .otherwise = "--measure: its own", .set = read_values},
    {"--p", "P,...", "the target's row at one place", OPTION_CUSTOM, AT(p), .must = LIST_OF_VALUES,
     .set = read_values},
    {"--q", "P,...", "the draft's row there", OPTION_CUSTOM, AT(q), .must = LIST_OF_VALUES, .set = read_values},
    {"--siblings", "K", "most drafts at a place", OPTION_INT, AT(siblings), 1, 256, .otherwise = "4"},
    {"--parameters", "P", "of a model, 70e9", OPTION_ABOVE, AT(parameters), 0, 1e18},
    {"--width", "W", "bytes of a parameter", OPTION_ABOVE, AT(width), 0, 1024, .otherwise = "2"},
    {"--bandwidth", "B", "bytes a second that the machine reads, 3350e9", OPTION_ABOVE, AT(bandwidth), 0, 1e18},
    {"--speed", "F", "operations a second, 989e12", OPTION_ABOVE, AT(speed), 0, 1e24},
    {"--measure", "MODEL", "target, a Hugging Face folder; DRAFT and TEXT follow", OPTION_TEXT, AT(model)},
    {"DRAFT", NULL, "of --measure: draft model", OPTION_TEXT, AT(draft)},
    {"TEXT", NULL, "of --measure: file; bytes, or ids of a model that is not over bytes", OPTION_TEXT, AT(text)},
    {"--temperature", "T", "of --measure; 0 is greedy", OPTION_NUMBER, AT(temperature), 0, 1e6, .otherwise = "1"},
    {"--prompts", "P", "of --measure: places of the second half that are decoded behind", OPTION_INT, AT(prompts), 2,
     4096, .otherwise = "32"},
    {"--json", "FILE", "all figures, for programs", OPTION_TEXT, AT(json)},
    {"--svg", "FILE", "the tables as curves", OPTION_TEXT, AT(svg)},
};
#undef AT
enum { OPTIONS = sizeof options / sizeof *options };

static const option_table options_of_plan = {
    "plan",
    "usage: assay plan --alpha A [--cost C ...]           a chain of drafts\n"
    "       assay plan --alpha A --found F --rows R       lookahead\n"
    "       assay plan --tree SHAPE --rates P,...         a tree of drafts\n"
    "       assay plan --p P,... --q P,...                one place\n"
    "       assay plan --parameters P --bandwidth B       a machine\n"
    "       assay plan --measure MODEL DRAFT TEXT         a pair of models\n\n"
    "What a method is expected to give, by the formulas of chapter 12 of the specification.\n",
    options, OPTIONS,
    "--measure takes the acceptance from the first half of TEXT, and decodes behind places of the\n"
    "second half. The formulas are held against that. Costs are forwards by the clock.\n"};

#define refuse(...) options_refuse(&options_of_plan, __VA_ARGS__)

static bool given(const arguments *a, const char *name)
{
    return option_given(&options_of_plan, a->given, name);
}

/* The options of the chain beside its alpha. */
#define CHAIN "--gamma|--cost|--operations|--row-cost|--candidates"

/* An option needs one of others beside it. */
static const struct {
    const char *option, *needs;
} needs[] = {
    {"--gamma", "--alpha|--measure"},     {"--cost", "--alpha|--measure"}, {"--operations", "--alpha|--measure"},
    {"--row-cost", "--alpha|--measure"},  {"--candidates", "--alpha|--measure"},
    {"--found", "--alpha"},               {"--found", "--rows|--window"},  {"--rows", "--found|--measure"},
    {"--window", "--found|--measure"},    {"--window", "--ngram"},         {"--ngram", "--window"},
    {"--pool", "--window"},               {"--tree", "--rates|--measure"}, {"--rates", "--tree"},
    {"--p", "--q"},                       {"--q", "--p"},                  {"--siblings", "--p|--measure"},
    {"--parameters", "--bandwidth"},      {"--bandwidth", "--parameters"}, {"--width", "--parameters"},
    {"--speed", "--parameters"},          {"--measure", "DRAFT"},          {"--measure", "TEXT"},
    {"DRAFT", "--measure"},               {"--temperature", "--measure"},  {"--prompts", "--measure"},
};

static bool any_given(const arguments *a, const char *names)
{
    for (int k = 0; k < OPTIONS; k++)
        if (a->given >> k & 1 && option_among(options[k].name, names)) return true;
    return false;
}

static bool coherent(const arguments *a)
{
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (given(a, needs[i].option) && !any_given(a, needs[i].needs))
            return refuse("%s needs %s beside it; see `assay plan --help`", needs[i].option, needs[i].needs);
    if (!any_given(a, "--alpha|--tree|--p|--parameters|--measure"))
        return refuse("give --alpha, --tree, --p, --parameters or --measure; see `assay plan --help`");
    if (given(a, "--alpha") && given(a, "--measure")) return refuse("--measure finds --alpha; leave one of them out");
    if (given(a, "--found") && given(a, "--rows") && given(a, "--window"))
        return refuse("--rows finds --window; leave one of them out");
    if (given(a, "--measure") && a->gamma > MEASURE_GAMMA)
        return refuse("--gamma %d: with --measure it is at most %d", a->gamma, MEASURE_GAMMA);
    if (given(a, "--measure") && a->siblings > MEASURE_SIBLINGS)
        return refuse("--siblings %d: with --measure it is at most %d", a->siblings, MEASURE_SIBLINGS);
    if (given(a, "--measure") && theory_lookahead_rows(a->window, a->ngram, a->pool) > MEASURE_ROWS)
        return refuse("--window %d --ngram %d: a forward has %lld rows; with --measure it has at most %d", a->window,
                      a->ngram, (long long)theory_lookahead_rows(a->window, a->ngram, a->pool), MEASURE_ROWS);
    if (a->p.n != a->q.n) return refuse("--p has %d numbers and --q %d; give as many", (int)a->p.n, (int)a->q.n);
    if (given(a, "--p") && !theory_row(a->p.of, a->p.n)) return refuse("--p: the numbers must add up to 1");
    if (given(a, "--q") && !theory_row(a->q.of, a->q.n)) return refuse("--q: the numbers must add up to 1");
    return true;
}

/* ---- From numbers. --------------------------------------------------------------------- */

static void add_chain(const arguments *a, table_list *list)
{
    const forecast_chain c = {a->alpha, a->cost, a->operations, a->row_cost, a->gamma, a->candidates};
    forecast_add_chain(list, &c);
}

static bool add_tree(const arguments *a, const double *rate, int32_t ranks, table_list *list)
{
    as_shape shape;
    as_error e;
    char why[300];
    if (as_shape_read(a->tree, &shape, &e) != AS_OK) return refuse("%s", e.text);
    const forecast_tree t = {&shape, rate, ranks};
    return forecast_add_tree(list, &t, why, sizeof why) || refuse("%s", why);
}

static void add_lookahead(const arguments *a, table_list *list)
{
    const forecast_lookahead l = {a->alpha, a->found, a->window, a->ngram, a->pool, a->budget};
    forecast_add_lookahead(list, &l);
}

static bool add_forecasts(const arguments *a, table_list *list)
{
    const forecast_place place = {a->p.of, a->q.of, a->p.n, a->siblings};
    const forecast_machine machine = {a->parameters, a->width, a->bandwidth, a->speed};
    if (given(a, "--alpha") && (!given(a, "--found") || any_given(a, CHAIN))) add_chain(a, list);
    if (given(a, "--found")) add_lookahead(a, list);
    if (given(a, "--rates") && !add_tree(a, a->rates.of, a->rates.n, list)) return false;
    if (given(a, "--p")) forecast_add_place(list, &place);
    if (given(a, "--parameters")) forecast_add_machine(list, &machine);
    return true;
}

/* ---- From models. ---------------------------------------------------------------------- */

static bool read_text(const arguments *a, const model *m, token_list *tokens)
{
    char why[200];
    size_t length;
    char *text = read_whole(a->text, &length);
    if (!text) return refuse("cannot read %s: %s", a->text, strerror(errno));
    const bool bytes = model_speaks_bytes(m),
               read = bytes ? tokens_of_text(m, text, length, tokens)
                            : tokens_of_ids(text, a->text, m->info.config.V, tokens, why, sizeof why);
    free(text);
    if (!read) return refuse("%s", bytes ? "out of memory" : why);
    if (tokens->n - bytes >= MEASURE_TOKENS) return true;
    return refuse("%s has %d tokens; give at least %d", a->text, (int)tokens->n - bytes, MEASURE_TOKENS);
}

/* The chain at the measured costs, unless others are given. */
static void add_measured_chain(const arguments *a, const model *target, const model *draft, const measure_result *m,
                               table_list *list)
{
    const double row = (m->cost.rows.median - 1) / a->gamma;
    arguments with = *a;
    with.alpha = m->places.alpha.mean;
    if (!given(a, "--cost")) with.cost = m->cost.c.median;
    if (!given(a, "--row-cost")) with.row_cost = row > 0 ? row : 0;
    if (!given(a, "--operations")) /* THY-21 */
        with.operations = (double)draft->info.parameters / (double)target->info.parameters;
    add_chain(&with, list);
}

static bool measure_pair(const arguments *a, const model *target, const model *draft, table_list *list)
{
    char why[300];
    token_list text = {0};
    as_error e;
    if (as_models_match(&target->info, &draft->info, &e) != AS_OK ||
        as_tokenizers_match(target->folder, draft->folder, target->info.config.V, &e) != AS_OK)
        return refuse("%s", e.text);
    if (!read_text(a, target, &text)) return free(text.token), false;
    const int32_t begin = model_speaks_bytes(target); /* read_text puts BOS before bytes */
    const measure_request r = {target, draft, text.token + begin, text.n - begin, (float)a->temperature, a->gamma,
                               a->prompts, a->siblings, a->window, a->ngram, a->pool};
    measure_result *m = malloc(sizeof *m);
    bool done = m || refuse("out of memory");
    done = done && (measure(&r, m, why, sizeof why) || refuse("%s", why));
    free(text.token);
    if (done) {
        add_measured_chain(a, target, draft, m, list);
        outcomes_add(list, &r, m, a->budget);
    }
    if (done && given(a, "--tree") && !given(a, "--rates")) done = add_tree(a, m->places.rate, a->siblings, list);
    free(m);
    return done;
}

static bool add_measured(const arguments *a, table_list *list)
{
    const as_llama_options capacity = {.rows = ROWS, .threads = 1}, drafting = {.rows = ROWS, .drafts = 1, .threads = 1};
    model target, draft;
    if (!model_load(&target, a->model, "target", &capacity)) return false;
    const bool loaded = model_load(&draft, a->draft, "draft", &drafting);
    const bool done = loaded && measure_pair(a, &target, &draft, list);
    if (loaded) model_free(&draft);
    model_free(&target);
    return done;
}

/* ---- The command. ---------------------------------------------------------------------- */

static bool write(const arguments *a, const table_list *list)
{
    tables_print(list);
    fflush(stdout);
    if (a->json && !tables_json(list, a->json)) return refuse("cannot write %s: %s", a->json, strerror(errno));
    if (a->svg && !tables_draw(list, a->svg)) return refuse("cannot write %s: %s", a->svg, strerror(errno));
    return true;
}

/* What follows from what was given; --measure takes the paper's size of lookahead. */
static void set_defaults(arguments *a)
{
    const bool measures = given(a, "--measure");
    if (measures && !given(a, "--gamma")) a->gamma = 8;
    if (measures && !given(a, "--window")) a->window = 15, a->ngram = 5;
    if (!given(a, "--pool")) a->pool = a->window;
    if (measures && !given(a, "--rows")) a->budget = (int)theory_lookahead_rows(a->window, a->ngram, a->pool);
    if (measures && a->budget < 2) a->budget = 2; /* of W = 1, N = 2, G = 0, whose S is 1 */
    if (!given(a, "--operations")) a->operations = a->cost;
}

int plan_main(int argc, char **argv)
{
    arguments a = {.gamma = 10, .candidates = 1, .siblings = 4, .width = 2, .temperature = 1, .prompts = 32};
    int code;
    if (!options_read(&options_of_plan, &a, argc, argv, &a.given, &code)) return code;
    set_defaults(&a);
    if (!coherent(&a)) return EXIT_USAGE;
    table_list *list = calloc(1, sizeof *list); /* much for a stack */
    if (!list) return refuse("out of memory"), EXIT_ERROR;
    const bool done = add_forecasts(&a, list) && (!given(&a, "--measure") || add_measured(&a, list)) && write(&a, list);
    free(list);
    return done ? EXIT_SUCCESS : EXIT_USAGE;
}
