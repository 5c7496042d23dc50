/* See decode.h. The text goes to standard output as it is decoded; the figures, and with
 * --trace every step, go to standard error, so that the two can be told apart in a pipe. With
 * --trace the text comes whole, behind the steps, so that a terminal can show both. */
#include "conformance/cli/decode.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/cli/arguments/methods.h"
#include "conformance/cli/arguments/model.h"
#include "conformance/cli/arguments/options.h"
#include "conformance/cli/arguments/ouroboros.h"
#include "conformance/cli/arguments/trees.h"
#include "conformance/cli/ranks/figures.h"
#include "conformance/cli/ranks/ranks.h"
#include "conformance/wire/clock.h"
#include "ref/decode.h"
#include "ref/load/tokenizer.h"

enum { ROWS = 512, MAX_GAMMA = 255 };

/* -- The command line ---------------------------------------------------------------------- */

typedef struct {
    const char *method, *model, *draft, *prompt, *prompt_file, *tokens, *rule, *guesses, *warm, *json;
    method_options without_draft;
    tree_options tree;
    uint64_t gamma, suffixes, max_new, seed, threads, top_k;
    double temperature, top_p, min_p;
    bool trace;
    options_given given;
    as_ranks *ranks; /* NULL: alone */
} arguments;

#define AT(field) .at = offsetof(arguments, field)
#define OF_METHOD(field) .at = offsetof(arguments, without_draft.field)
#define OF_TREE(field) .at = offsetof(arguments, tree.field)
static const option options[] = {
    {"--method", "NAME", "how to decode", OPTION_CHOICE, AT(method),
     .must = "ar|speculative|tree|jacobi|lookahead|lookup|ouroboros", .otherwise = "ar"},
    {"--model", "FOLDER", "target, a Hugging Face folder", OPTION_TEXT, AT(model),
     .otherwise = "the trained target"},
    {"--draft", "FOLDER", "draft model", OPTION_TEXT, AT(draft),
     .otherwise = "the trained draft"},
    {"--prompt", "TEXT", "for models over bytes", OPTION_ANY, AT(prompt)},
    {"--prompt-file", "FILE", "the same, from a file", OPTION_TEXT, AT(prompt_file)},
    {"--tokens", "IDS", "the prompt as ids separated by commas, for any model", OPTION_TEXT,
     AT(tokens)},
    {"--max-new", "N", "tokens at most", OPTION_COUNT, AT(max_new), 0, 1 << 20,
     .otherwise = "256"},
    {"--gamma", "N", "drafts a step", OPTION_COUNT, AT(gamma), 0, MAX_GAMMA,
     .otherwise = "4; lookup: 10"},
    {"--rule", "NAME", "above temperature 0", OPTION_CHOICE, AT(rule),
     .must = "chain|match|onehot|target|recursive|single|kseq",
     .otherwise = "chain; lookup: match; lookahead: its preset's; tree: recursive, and target for "
                  "drafts that are not drawn"},
    {"--tree", "SHAPE", "tree: children by level, or parents of the nodes (0,0,1), or sequoia:M[,DEPTH], "
     "or dynamic:K,DEPTH,M", OPTION_TEXT, OF_TREE(tree), .otherwise = "3-2-1"},
    {"--siblings", "NAME", "tree: drawn iid or without replacement, or the top tokens", OPTION_TEXT,
     OF_TREE(siblings), .otherwise = "without; top at temperature 0"},
    {"--rates", "P,...", "tree sequoia: how often the draft of each rank is accepted", OPTION_TEXT,
     OF_TREE(rates)},
    {"--preset", "NAME", "lookahead: paper, lade, llamacpp or trtllm; lookup: original or hf; ouroboros: "
     "paper or code", OPTION_TEXT, OF_METHOD(preset), .otherwise = "paper; hf; paper"},
    {"--switches", "LIST", "lookahead, lookup, ouroboros: NAME=VALUE,... that differ from the preset",
     OPTION_TEXT, OF_METHOD(switches)},
    {"--window", "W", "lookahead, ouroboros: columns", OPTION_COUNT, OF_METHOD(window), 1, 4096,
     .otherwise = "5; 15"},
    {"--ngram", "N", "lookahead, ouroboros: tokens of an n-gram; lookup: longest match", OPTION_COUNT,
     OF_METHOD(ngram), 1, 4096, .otherwise = "4; 6; the preset's"},
    {"--pool", "G", "lookahead: n-grams a key and candidates a step", OPTION_COUNT,
     OF_METHOD(pool), 0, 4096, .otherwise = "W"},
    {"--suffixes", "K", "ouroboros: verified behind the drafts", OPTION_COUNT, AT(suffixes), 0, 4096,
     .otherwise = "3"},
    {"--warm", "FILE", "ouroboros: prompts, one a line, in the form of the prompt; they are decoded before, and what "
     "the pool then has stays", OPTION_TEXT, AT(warm)},
    {"--block", "M", "jacobi: tokens of a block", OPTION_COUNT, OF_METHOD(block), 1, 4096,
     .otherwise = "8"},
    {"--init", "NAME", "jacobi: first guesses, last, prompt, vocabulary or pad", OPTION_TEXT,
     OF_METHOD(init), .otherwise = "last"},
    {"--stop", "WHEN", "jacobi: each token when it stands, or a block when all of it does", OPTION_CHOICE,
     OF_METHOD(stop), .must = "token|block", .otherwise = "token"},
    {"--given", "IDS", "jacobi, lookahead, ouroboros: the first guesses, in the place of --init or init",
     OPTION_TEXT, AT(guesses)},
    {"--temperature", "T", "0 is greedy", OPTION_NUMBER, AT(temperature), 0, 1e6,
     .otherwise = "0"},
    {"--top-k", "N", "0 keeps all", OPTION_COUNT, AT(top_k), 0, 1 << 20, .otherwise = "0"},
    {"--top-p", "P", "1 keeps all", OPTION_NUMBER, AT(top_p), 0, 1, .otherwise = "1"},
    {"--min-p", "P", "0 keeps all", OPTION_NUMBER, AT(min_p), 0, 1, .otherwise = "0"},
    {"--seed", "N", "of the uniforms", OPTION_COUNT, AT(seed), .otherwise = "1"},
    {"--threads", "N", "1 is best on a busy machine", OPTION_COUNT, AT(threads), 1, 256,
     .otherwise = "processors"},
    {"--trace", NULL, "steps on standard error; the text comes after them", OPTION_FLAG,
     AT(trace)},
    {"--json", "FILE", "result and steps, for programs", OPTION_TEXT, AT(json)},
};
#undef AT
#undef OF_METHOD
#undef OF_TREE
enum { OPTIONS = sizeof options / sizeof *options };

static const option_table table = {"decode",
                                   "usage: assay decode --prompt TEXT [options]\n\n"
                                   "Runs a decoding method of the reference on a prompt. "
                                   "`mpirun -n D assay decode\n--method lookahead ...` "
                                   "shares the rows of each step between D processes.\n",
                                   options, OPTIONS, NULL};

#define refuse(...) options_refuse(&table, __VA_ARGS__)

/* An option that would change nothing is refused: a run does what it says or does not run. */
static bool none_given(const arguments *a, const char *names, const char *but, const char *when)
{
    for (int k = 0; k < OPTIONS; k++)
        if (a->given >> k & 1 && option_among(options[k].name, names) &&
            !option_among(options[k].name, but))
            return refuse("%s has no meaning %s; leave it out", options[k].name, when);
    return true;
}

/* The options that only some methods have, and which. */
static const struct {
    const char *method, *when, *options;
} methods[] = {
    {"ar", "with --method ar", ""},
    {"speculative", "with --method speculative", "--draft|--gamma|--rule"},
    {"tree", "with --method tree", "--draft|--rule|--tree|--siblings|--rates"},
    {"jacobi", "with --method jacobi", "--block|--init|--stop|--given"},
    {"lookahead", "with --method lookahead",
     "--rule|--preset|--switches|--window|--ngram|--pool|--given"},
    {"lookup", "with --method lookup", "--gamma|--rule|--preset|--switches|--ngram"},
    {"ouroboros", "with --method ouroboros",
     "--draft|--gamma|--preset|--switches|--window|--ngram|--suffixes|--warm|--given"},
};
enum { METHODS = sizeof methods / sizeof methods[0] };

static bool coherent_method(const arguments *a)
{
    int own = 0;
    while (strcmp(a->method, methods[own].method) != 0) own++;
    for (int m = 0; m < METHODS; m++)
        if (!none_given(a, methods[m].options, methods[own].options, methods[own].when))
            return false;
    return true;
}

static bool coherent(const arguments *a)
{
    if (!coherent_method(a)) return false;
    if (a->guesses && !none_given(a, "--init", "", "with --given")) return false;
    if (!a->prompt + !a->prompt_file + !a->tokens != 2)
        return refuse("give one of --prompt, --prompt-file and --tokens");
    /* Guesses, windows and trees are drawn at temperature 0 as well. */
    const bool draws = option_among(a->method, "jacobi|lookahead|tree|ouroboros");
    return a->temperature != 0 || none_given(a, "--rule|--top-k|--top-p|--min-p|--seed",
                                             draws ? "--seed" : "", "at temperature 0");
}

/* -- Steps -----------------------------------------------------------------------------------
 */

typedef struct {
    const arguments *a;
    const model *target;
    as_drafter *drafter;
    json_t *steps; /* NULL: not wanted */
    bool show_progress, out_of_memory;
    int32_t tokens, first_tokens; /* so far; after the first step */
    int64_t reached;              /* drafts that the rule looked at ... */
    double overlap;               /* ... and the sum of their sum of min(p, q) */
    tree_tally tree;              /* of trees */
    ouroboros_tally rounds;       /* of Ouroboros */
    ranks_figures shares;         /* of ranks */
    double start, first, last;    /* seconds: of the call, and of the ends of steps */
} watcher;

/* Of several ranks, the first tells what they have done. */
static bool speaks(const arguments *a)
{
    return !a->ranks || a->ranks->rank == 0;
}

static bool is_tree(const arguments *a)
{
    return strcmp(a->method, "tree") == 0;
}

static bool is_ouroboros(const arguments *a)
{
    return strcmp(a->method, "ouroboros") == 0;
}

static void show_token(const watcher *w, int32_t token)
{
    if (!model_speaks_bytes(w->target) || token > '~')
        fprintf(stderr, " %d", (int)token);
    else if (token >= ' ')
        fprintf(stderr, " '%c'", (char)token);
    else
        fprintf(stderr, " \\x%02x", (unsigned)token);
}

static void show_token_of(const void *data, int32_t token)
{
    show_token(data, token);
}

static void print_tokens(const watcher *w, const int32_t *token, int32_t n)
{
    for (int32_t i = 0; i < n; i++) print_token(stdout, w->target, token[i]);
    fflush(stdout);
}

/* Drafts up to the first that was refused, and what was emitted after the accepted ones. */
static void show_step(const watcher *w, const as_step *s)
{
    fprintf(stderr, "step %d at %llu: drafts", (int)s->step, (unsigned long long)s->position);
    for (int32_t i = 1; i < s->tree->rows; i++) {
        show_token(w, s->tree->row[i].token);
        fputs(i <= s->accepted ? "+" : i == s->accepted + 1 ? "-" : "", stderr);
        if (s->overlap) fprintf(stderr, "(%.2f)", s->overlap[i - 1]);
    }
    fputs(", emitted", stderr);
    for (int32_t i = 0; i < s->emitted; i++) show_token(w, s->run[i]);
    fputc('\n', stderr);
}

static bool on_path(const as_step *s, int32_t row)
{
    for (int32_t i = 0; i <= s->accepted; i++)
        if (s->path[i] == row) return true;
    return false;
}

/* The drafts level by level, siblings together: + was gone to, - was beside it. */
static void show_tree(const watcher *w, const as_step *s)
{
    const as_row *row = s->tree->row;
    fprintf(stderr, "step %d at %llu: root", (int)s->step, (unsigned long long)s->position);
    show_token(w, row[0].token);
    fprintf(stderr, ", %d row%s", (int)s->tree->rows, s->tree->rows == 1 ? "" : "s");
    for (int32_t r = 1, above = 0; r < s->tree->rows; r++) {
        const int32_t parent = row[r].parent;
        const bool level = r == 1 || parent > above;
        if (level) above = r - 1;
        fputs(level ? "\n ": parent != row[r - 1].parent ? " |" : "", stderr);
        show_token(w, row[r].token);
        fputs(on_path(s, r) ? "+" : on_path(s, parent) ? "-" : "", stderr);
    }
    fputs("\n  emitted", stderr);
    for (int32_t i = 0; i < s->emitted; i++) show_token(w, s->run[i]);
    fputc('\n', stderr);
}

static json_t *integers(const int32_t *x, int32_t n)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < n; i++) json_array_append_new(list, json_integer(x[i]));
    return list;
}

static json_t *step_json(const as_step *s)
{
    json_t *drafts = json_array(), *overlap = json_array();
    for (int32_t i = 1; i < s->tree->rows; i++) {
        json_array_append_new(drafts, json_integer(s->tree->row[i].token));
        if (s->overlap) json_array_append_new(overlap, json_real(s->overlap[i - 1]));
    }
    return json_pack("{s:I, s:o, s:o, s:i, s:o}", "position", (json_int_t)s->position, "drafts",
                     drafts, "overlap", overlap, "accepted", (int)s->accepted, "emitted",
                     integers(s->run, s->emitted));
}

static json_t *json_of(const watcher *w, const as_step *s)
{
    if (is_ouroboros(w->a)) return ouroboros_json(w->drafter, s);
    if (is_tree(w->a) || method_known(w->a->method)) return method_json(w->a->method, w->drafter, s);
    return step_json(s);
}

static void show(const watcher *w, const as_step *s)
{
    if (is_ouroboros(w->a))
        ouroboros_show(w->drafter, s, show_token_of, w);
    else if (is_tree(w->a))
        show_tree(w, s);
    else if (method_known(w->a->method))
        method_show(w->a->method, w->drafter, s, show_token_of, w);
    else
        show_step(w, s);
}

/* A chain of drafts, each of which the rule looks at in its turn. */
static bool is_chain(const arguments *a)
{
    return option_among(a->method, "ar|speculative");
}

static void on_step(void *data, const as_step *s)
{
    watcher *w = data;
    const int32_t drafts = s->tree->rows - 1;
    const int32_t reached = !is_chain(w->a) ? 0 : drafts > s->accepted ? s->accepted + 1 : drafts;
    if (!speaks(w->a)) return;
    if (is_tree(w->a)) tree_count(&w->tree, s);
    if (is_ouroboros(w->a)) ouroboros_count(&w->rounds, w->drafter, s);
    if (w->a->ranks)
        ranks_count(&w->shares, w->a->ranks, s, as_pool_length(as_lookahead_pool(w->drafter)));
    w->last = clock_now();
    w->tokens += s->emitted;
    if (s->step == 0) w->first = w->last, w->first_tokens = w->tokens;
    w->reached += reached;
    for (int32_t i = 0; s->overlap && i < reached; i++) w->overlap += s->overlap[i];
    if (w->steps && json_array_append_new(w->steps, json_of(w, s))) w->out_of_memory = true;
    if (w->a->trace)
        show(w, s);
    else
        print_tokens(w, s->run, s->emitted);
    if (w->show_progress)
        fprintf(stderr, "\r\033[K%d of at most %llu tokens, %.1f s", (int)w->tokens,
                (unsigned long long)w->a->max_new, w->last - w->start);
}

/* -- Results ---------------------------------------------------------------------------------
 */

/* Tokens a second over all steps but the first, whose time has the prompt in it; 0: too few. */
static double speed(const watcher *w)
{
    return w->last > w->first ? (w->tokens - w->first_tokens) / (w->last - w->first) : 0;
}

static void summary(const watcher *w, const as_result *r)
{
    fprintf(stderr, "%s%d token%s%s, %d forward%s, %.2f tokens a forward",
            w->show_progress ? "\r\033[K" : "", (int)r->tokens, r->tokens == 1 ? "" : "s",
            r->ended ? " (ended by EOS)" : "", (int)r->steps, r->steps == 1 ? "" : "s",
            r->steps ? (double)r->tokens / r->steps : 0.0);
    if (speed(w) > 0) fprintf(stderr, ", %.1f tokens/s", speed(w));
    fprintf(stderr, "; prompt and first step %.3f s\n", w->first - w->start);
    if (is_ouroboros(w->a)) ouroboros_print(stderr, &w->rounds);
    if (!r->drafted || is_ouroboros(w->a)) return;
    fprintf(stderr, "drafts: %d, accepted %d", (int)r->drafted, (int)r->accepted);
    if (w->reached)
        fprintf(stderr, "; of those that the rule looked at %.3f",
                (double)r->accepted / (double)w->reached);
    if (w->overlap > 0)
        fprintf(stderr, " (mean of sum min(p, q) there: %.3f)",
                w->overlap / (double)w->reached);
    fputc('\n', stderr);
    if (w->a->ranks) ranks_print(stderr, &w->shares, w->a->ranks, w->drafter);
    if (is_tree(w->a)) {
        fputs("drafts gone to, of those reached, by depth (lines) and rank (columns):\n", stderr);
        tree_print(stderr, &w->tree);
    }
}

static bool write_json(const watcher *w, const token_list *prompt, const int32_t *out,
                       const as_result *r)
{
    const arguments *a = w->a;
    json_t *root = json_pack(
        "{s:s, s:s, s:i, s:f, s:I, s:o, s:o, s:b, s:i, s:i, s:i, s:I, s:o, s:f, s:O}", "method",
        a->method, "architecture", w->target->info.architecture, "gamma", (int)a->gamma,
        "temperature", a->temperature, "seed", (json_int_t)a->seed, "prompt",
        integers(prompt->token, prompt->n), "tokens", integers(out, r->tokens), "ended",
        (int)r->ended, "forwards", (int)r->steps, "drafted", (int)r->drafted, "accepted",
        (int)r->accepted, "reached", (json_int_t)w->reached, "overlap",
        a->temperature == 0 ? json_null() : json_real(w->overlap), "seconds",
        w->last - w->start, "steps", w->steps);
    const bool written =
        root && !w->out_of_memory && json_dump_file(root, a->json, JSON_INDENT(1)) == 0;
    json_decref(root);
    return written || refuse("cannot write %s", a->json);
}

static bool tell(const watcher *w, const token_list *prompt, const int32_t *out, const as_result *r,
                 as_status s)
{
    if (w->a->trace) print_tokens(w, out, r->tokens);
    puts("");
    fflush(stdout);
    summary(w, r);
    return s != AS_OK || !w->a->json || write_json(w, prompt, out, r);
}

/* -- The run
 * ----------------------------------------------------------------------------------- */

static bool read_prompt(const arguments *a, const model *m, token_list *list)
{
    char why[200];
    if (a->tokens) {
        if (!tokens_of_ids(a->tokens, "--tokens", m->info.config.V, list, why, sizeof why))
            return refuse("%s", why);
        return list->n > 0 || refuse("--tokens: give at least one id");
    }
    if (!model_speaks_bytes(m))
        return refuse("%s is no model over bytes: give the prompt as ids, --tokens", m->folder);
    size_t length = a->prompt ? strlen(a->prompt) : 0;
    char *whole = a->prompt_file ? read_whole(a->prompt_file, &length) : NULL;
    if (a->prompt_file && !whole)
        return refuse("cannot read %s: %s", a->prompt_file, strerror(errno));
    const bool made = tokens_of_text(m, whole ? whole : a->prompt, length, list);
    free(whole);
    return made || refuse("out of memory");
}

/* A position of a draft that is refused is used, too. */
static bool fits(const arguments *a, const model *m, const token_list *prompt)
{
    const uint64_t need = (uint64_t)prompt->n + a->max_new;
    if (need <= (uint64_t)m->info.config.max_positions) return true;
    return refuse(
        "a prompt of %d tokens and --max-new %llu need %llu positions; the model has %d",
        (int)prompt->n, (unsigned long long)a->max_new, (unsigned long long)need,
        (int)m->info.config.max_positions);
}

/* The prompts of --warm, one a line, decoded in silence. */
static bool decode_before(const arguments *a, const model *target, as_request request, int32_t *out)
{
    size_t length = 0;
    char why[200], *whole = a->warm ? read_whole(a->warm, &length) : NULL;
    if (a->warm && !whole) return refuse("cannot read %s: %s", a->warm, strerror(errno));
    bool good = true;
    request.trace = NULL;
    for (size_t at = 0; at < length && good;) {
        const size_t n = strcspn(whole + at, "\n");
        token_list prompt = {0};
        as_result result;
        as_error e;
        whole[at + n] = 0;
        if (a->tokens)
            good = tokens_of_ids(whole + at, a->warm, target->info.config.V, &prompt, why, sizeof why) ||
                   refuse("%s", why);
        else
            good = tokens_of_text(target, whole + at, n, &prompt) || refuse("out of memory");
        good = good && fits(a, target, &prompt);
        request.prompt = prompt.token, request.prompts = prompt.n;
        if (good && n > 0 && as_decode(&request, out, &result, &e) != AS_OK) good = refuse("%s", e.text);
        free(prompt.token);
        at += n + 1;
    }
    free(whole);
    return good;
}

static int decode(const arguments *a, const model *target, as_drafter *drafter, as_rule rule,
                  const token_list *prompt)
{
    watcher w = {.a = a, .target = target, .drafter = drafter};
    as_result result;
    as_error e;
    const as_sampling sampling = {(float)a->temperature, (int32_t)a->top_k, (float)a->top_p,
                                  (float)a->min_p};
    int32_t *out = malloc(((size_t)a->max_new + 1) * sizeof *out);
    w.steps = a->json && speaks(a) ? json_array() : NULL;
    w.show_progress = !a->trace && isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO);
    if (!out || (a->json && speaks(a) && !w.steps)) {
        free(out);
        return refuse("out of memory"), EXIT_ERROR;
    }
    const as_request request = {.target = target->lm,
                                .drafter = drafter,
                                .rule = a->temperature == 0 ? AS_RULE_GREEDY : rule,
                                .sampling = sampling,
                                .seed = a->seed,
                                .prompt = prompt->token,
                                .prompts = prompt->n,
                                .eos = target->info.eos,
                                .eoses = target->info.eos_count,
                                .budget = (int32_t)a->max_new,
                                .trace = on_step,
                                .trace_data = &w,
                                .ranks = a->ranks};
    if (!decode_before(a, target, request, out)) {
        json_decref(w.steps);
        free(out);
        return EXIT_USAGE;
    }
    w.start = w.first = w.last = clock_now();
    const as_status s = as_decode(&request, out, &result, &e);
    if (s != AS_OK && a->ranks) fprintf(stderr, "rank %d: ", (int)a->ranks->rank);
    if (s != AS_OK) refuse("%s", e.text);
    const bool written = !speaks(a) || tell(&w, prompt, out, &result, s);
    json_decref(w.steps);
    free(out);
    return s == AS_PEER ? EXIT_ERROR : s == AS_OK && written ? EXIT_SUCCESS : EXIT_USAGE;
}

/* The tokens of --given. */
static bool read_guesses(const arguments *a, int32_t V, token_list *guesses)
{
    char why[300];
    if (!a->guesses) return true;
    if (!tokens_of_ids(a->guesses, "--given", V, guesses, why, sizeof why)) return refuse("%s", why);
    return guesses->n > 0 || refuse("--given: give at least one id");
}

static bool make_ouroboros(const arguments *a, as_lm *draft, const token_list *guesses, as_drafter **drafter,
                           as_rule *rule)
{
    const method_options *m = &a->without_draft;
    const ouroboros_options o = {m->preset,          m->switches,       (int32_t)a->gamma, (int32_t)m->window,
                                 (int32_t)m->ngram, (int32_t)a->suffixes, a->warm != NULL};
    const method_guesses given = {guesses->token, guesses->n};
    char why[300];
    *rule = AS_RULE_MATCH;
    return ouroboros_drafter(&o, a->guesses ? &given : NULL, draft, drafter, why, sizeof why) || refuse("%s", why);
}

/* The drafter with a draft model, or of plain decoding; `rule` is what was asked for, or else
 * becomes what goes with it. */
static bool make_drafter(const arguments *a, as_lm *draft, const token_list *guesses, as_drafter **drafter,
                         as_rule *rule)
{
    const as_sampling sampling = {(float)a->temperature, (int32_t)a->top_k, (float)a->top_p,
                                  (float)a->min_p};
    char why[300];
    as_error e = {.text = ""};
    if (is_ouroboros(a)) return make_ouroboros(a, draft, guesses, drafter, rule);
    *rule = AS_RULE_CHAIN;
    if (is_tree(a)) {
        if (!tree_drafter(&a->tree, draft, &sampling, drafter, rule, why, sizeof why))
            return refuse("%s", why);
    } else if ((draft ? as_draft_lm(draft, &sampling, (int32_t)a->gamma, drafter, &e)
                      : as_draft_none(drafter, &e)) != AS_OK)
        return refuse("%s", e.text);
    return !a->rule || as_rule_named(a->rule, rule);
}

/* With a draft model, or without one when it is plain decoding. */
static int with_drafter(const arguments *a, const model *target,
                        const as_llama_options *capacity, const token_list *prompt)
{
    model draft = {0};
    as_drafter *drafter = NULL;
    as_error e;
    as_rule rule;
    token_list guesses = {0};
    const bool ar = strcmp(a->method, "ar") == 0;
    as_llama_options drafting = *capacity;
    drafting.drafts = 1;
    if (!ar && !model_load(&draft, a->draft, "draft", &drafting)) return EXIT_USAGE;
    const bool match =
        ar || (as_models_match(&target->info, &draft.info, &e) == AS_OK &&
               as_tokenizers_match(target->folder, draft.folder, target->info.config.V, &e) ==
                   AS_OK);
    if (!match) refuse("%s", e.text);
    const int code = match && read_guesses(a, target->info.config.V, &guesses) &&
                             make_drafter(a, draft.lm, &guesses, &drafter, &rule)
                         ? decode(a, target, drafter, rule, prompt)
                         : EXIT_USAGE;
    as_drafter_free(drafter);
    free(guesses.token);
    model_free(&draft);
    return code;
}

/* Jacobi, lookahead, prompt lookup. */
static int without_draft(const arguments *a, const model *target, const token_list *prompt)
{
    as_drafter *drafter = NULL;
    as_rule rule;
    char why[300];
    token_list guesses = {0};
    method_options o = a->without_draft;
    const int32_t V = target->info.config.V;
    int code = EXIT_USAGE;
    o.gamma = option_given(&table, a->given, "--gamma") ? a->gamma : 0;
    if (!read_guesses(a, V, &guesses)) return free(guesses.token), EXIT_USAGE;
    const method_guesses given = {guesses.token, guesses.n};
    if (!method_drafter(a->method, &o, a->guesses ? &given : NULL, a->rule, V, &drafter,
                             &rule, why, sizeof why))
        refuse("%s", why);
    else if (a->temperature != 0 && rule == AS_RULE_GREEDY)
        refuse("%s decodes at temperature 0 only", drafter->name);
    else
        code = decode(a, target, drafter, rule, prompt);
    as_drafter_free(drafter);
    free(guesses.token);
    return code;
}

/* One thread a rank, unless told otherwise. */
static bool join(arguments *a)
{
    char why[300];
    if (!ranks_open(&a->ranks, why, sizeof why)) return refuse("%s", why);
    if (a->ranks && strcmp(a->method, "lookahead") != 0)
        return refuse("mpirun has started it; of the methods lookahead alone is shared by ranks");
    if (a->ranks && a->threads == 0) a->threads = 1;
    return true;
}

static int run(arguments *a)
{
    const as_llama_options capacity = {.rows = ROWS, .threads = (int)a->threads};
    model target;
    token_list prompt = {0};
    int code = EXIT_USAGE;
    if (!model_load(&target, a->model, "target", &capacity)) return EXIT_USAGE;
    if (read_prompt(a, &target, &prompt) && fits(a, &target, &prompt))
        code = method_known(a->method) ? without_draft(a, &target, &prompt)
                                       : with_drafter(a, &target, &capacity, &prompt);
    free(prompt.token);
    model_free(&target);
    return code;
}

int decode_main(int argc, char **argv)
{
    arguments a = {.method = "ar",
                   .without_draft = {.pool = UINT64_MAX},
                   .gamma = 4,
                   .suffixes = OUROBOROS_K,
                   .max_new = 256,
                   .seed = 1,
                   .top_p = 1};
    int code;
    if (!options_read(&table, &a, argc, argv, &a.given, &code)) return code;
    if (!coherent(&a)) return EXIT_USAGE;
    if (option_among(a.method, "ar|tree")) a.gamma = 0;
    code = join(&a) ? run(&a) : EXIT_USAGE;
    ranks_close(a.ranks, code);
    return code;
}
