/* `assay bench trees`: tokens and rows a step of trees of drafts, of the trained pair on the held-out prompts, beside
 * chains of the same draft model; and acceptance by depth and rank.
 *
 * `formula` is the sum over the nodes of a shape of the product of the rates along the path (TDR-07). The rates, by
 * rank, come from the repetitive prompts, never from the text that the line measures. Sequoia's tree is made from them,
 * too. Steps whose last levels the budget cuts are left out. All is counted: the table is the same on every machine. */
#include <stdio.h>
#include <stdlib.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/cli/arguments/trees.h"
#include "conformance/cli/bench/bench.h"
#include "conformance/cli/bench/bench_measure.h"
#include "ref/decode.h"

enum { BUDGET = 128, DRAFTS = 15, PROBE_RANKS = TREE_RANKS - 1 };

typedef struct {
    int prompts;
} arguments;

static const option options[] = {
    {"--prompts", "P", "of each text", OPTION_INT, .at = offsetof(arguments, prompts), 2, BENCH_PROMPTS,
     .otherwise = "16"},
};

static const option_table table = {"bench trees",
                                   "usage: assay bench trees [options]\n\n"
                                   "Tokens and rows a step of trees of drafts, on the trained pair.\n",
                                   options, 1, NULL};

/* ---- Ways of drafting. ----------------------------------------------------------------- */

typedef enum { CHAIN, TREE, SEQUOIA, DYNAMIC } way;

typedef struct {
    const char *label;
    way way;
    const char *shape; /* of CHAIN and TREE */
    as_siblings siblings;
    as_rule rule;
} method;

static const method cold[] = {
    {"chain of 3", CHAIN, "1-1-1", AS_SIBLINGS_TOP, AS_RULE_GREEDY},
    {"chain of 15", CHAIN, "1-1-1-1-1-1-1-1-1-1-1-1-1-1-1", AS_SIBLINGS_TOP, AS_RULE_GREEDY},
    {"3-2-1 top, greedy", TREE, "3-2-1", AS_SIBLINGS_TOP, AS_RULE_GREEDY},
    {"sequoia:15 top, greedy", SEQUOIA, NULL, AS_SIBLINGS_TOP, AS_RULE_GREEDY},
    {"dynamic:4,6,15, greedy", DYNAMIC, NULL, AS_SIBLINGS_TOP, AS_RULE_GREEDY},
};
static const method hot[] = {
    {"chain of 3, chain", CHAIN, "1-1-1", AS_SIBLINGS_IID, AS_RULE_CHAIN},
    {"chain of 15, chain", CHAIN, "1-1-1-1-1-1-1-1-1-1-1-1-1-1-1", AS_SIBLINGS_IID, AS_RULE_CHAIN},
    {"3-2-1 iid, match", TREE, "3-2-1", AS_SIBLINGS_IID, AS_RULE_MATCH},
    {"3-2-1 iid, single", TREE, "3-2-1", AS_SIBLINGS_IID, AS_RULE_SINGLE},
    {"3-2-1 iid, kseq", TREE, "3-2-1", AS_SIBLINGS_IID, AS_RULE_KSEQ},
    {"3-2-1 iid, recursive", TREE, "3-2-1", AS_SIBLINGS_IID, AS_RULE_RECURSIVE},
    {"3-2-1 without, recursive", TREE, "3-2-1", AS_SIBLINGS_WITHOUT, AS_RULE_RECURSIVE},
    {"3-2-1 top, target", TREE, "3-2-1", AS_SIBLINGS_TOP, AS_RULE_TARGET},
    {"sequoia:15 without, recursive", SEQUOIA, NULL, AS_SIBLINGS_WITHOUT, AS_RULE_RECURSIVE},
    {"sequoia:15 top, target", SEQUOIA, NULL, AS_SIBLINGS_TOP, AS_RULE_TARGET},
    {"dynamic:4,6,15, target", DYNAMIC, NULL, AS_SIBLINGS_TOP, AS_RULE_TARGET},
};
enum { COLD = sizeof cold / sizeof *cold, HOT = sizeof hot / sizeof *hot };

static const as_dynamic dynamic = {4, 6, DRAFTS};

/* ---- Decoding. ------------------------------------------------------------------------- */

/* What each prompt of a text gave. */
typedef struct {
    tree_tally of[BENCH_PROMPTS]; /* [n] */
    int32_t n, depth;
    tree_tally *now;
} measured;

static void on_step(void *data, const as_step *s)
{
    measured *m = data;
    if (BUDGET - (int64_t)s->position - 1 >= m->depth) tree_count(m->now, s);
}

static as_status make(const bench_pair *b, const method *m, const as_shape *shape, float T, as_drafter **d,
                      as_error *e)
{
    const as_sampling hot_draft = {1, 0, 1, 0}, s = {T, 0, 1, 0};
    if (m->way == CHAIN) return as_draft_lm(b->draft.lm, &s, shape->drafts, d, e);
    if (m->way == DYNAMIC) return as_draft_dynamic(b->draft.lm, &hot_draft, &dynamic, d, e);
    return as_draft_tree(b->draft.lm, &hot_draft, shape, m->siblings, d, e);
}

/* Decodes after each prompt of the text. */
static bool decode(const bench_pair *b, const bench_text *text, const method *m, const as_shape *shape,
                   float T, measured *to)
{
    int32_t out[BUDGET];
    as_drafter *d = NULL;
    as_error e = {.text = ""};
    as_status s = make(b, m, shape, T, &d, &e);
    *to = (measured){.n = text->n, .depth = m->way == DYNAMIC ? dynamic.depth : as_shape_depth(shape)};
    for (int32_t i = 0; i < text->n && s == AS_OK; i++) {
        as_result result;
        const as_request r = {.target = b->target.lm,
                              .drafter = d,
                              .rule = m->rule,
                              .sampling = {T, 0, 1, 0},
                              .seed = 1000 + (uint64_t)i,
                              .prompt = text->prompt[i].token,
                              .prompts = text->prompt[i].n,
                              .eos = b->target.info.eos,
                              .eoses = b->target.info.eos_count,
                              .budget = BUDGET,
                              .trace = on_step,
                              .trace_data = to};
        to->now = &to->of[i];
        s = as_decode(&r, out, &result, &e);
    }
    as_drafter_free(d);
    if (s != AS_OK) fprintf(stderr, "assay bench: %s: %s\n", m->label, e.text);
    return s == AS_OK;
}

/* ---- Figures. -------------------------------------------------------------------------- */

/* Numerator and denominator of prompt i; `which` is theirs. */
typedef void part(const tree_tally *t, int32_t which, int64_t *above, int64_t *below);

static bench_ratio ratio_of(const measured *m, part *of, int32_t which)
{
    double above[BENCH_PROMPTS], below[BENCH_PROMPTS];
    for (int32_t i = 0; i < m->n; i++) {
        int64_t x, y;
        of(&m->of[i], which, &x, &y);
        above[i] = (double)x, below[i] = (double)y;
    }
    return bench_ratio_of(above, below, m->n);
}

static void tokens_a_step(const tree_tally *t, int32_t which, int64_t *above, int64_t *below)
{
    (void)which;
    *above = t->tokens, *below = t->steps;
}

static void rows_a_step(const tree_tally *t, int32_t which, int64_t *above, int64_t *below)
{
    (void)which;
    *above = t->rows, *below = t->steps;
}

static void accepted_at(const tree_tally *t, int32_t which, int64_t *above, int64_t *below)
{
    *above = t->accepted[which / TREE_RANKS][which % TREE_RANKS];
    *below = t->reached[which / TREE_RANKS][which % TREE_RANKS];
}

static void accepted_of_rank(const tree_tally *t, int32_t which, int64_t *above, int64_t *below)
{
    *above = *below = 0;
    for (int d = 0; d < TREE_DEPTHS; d++) *above += t->accepted[d][which], *below += t->reached[d][which];
}

static void print_depths(const measured *m)
{
    for (int32_t d = 0; d < TREE_DEPTHS; d++) {
        if (ratio_of(m, accepted_at, d * TREE_RANKS).over == 0) break;
        printf("    depth %2d%s", (int)d + 1, d == TREE_DEPTHS - 1 ? "+" : " ");
        for (int32_t k = 0; k < TREE_RANKS; k++) {
            const bench_ratio a = ratio_of(m, accepted_at, d * TREE_RANKS + k);
            if (a.over == 0) break;
            printf("  %.3f(%.3f) of %lld", a.value, a.error, (long long)a.over);
        }
        putchar('\n');
    }
}

/* ---- The table. ------------------------------------------------------------------------ */

/* Sequoia's tree from the rates of a probe, seven children of the root and of each of these, on the repetitive text. */
static bool best_shape(const bench_pair *b, const method *m, float T, measured *scratch, as_shape *shape)
{
    const method probe = {m->label, TREE, "7-7", m->siblings, m->rule};
    double p[PROBE_RANKS];
    as_error e;
    if (as_shape_read(probe.shape, shape, &e) != AS_OK || !decode(b, &b->text[1], &probe, shape, T, scratch))
        return false;
    for (int32_t k = 0; k < PROBE_RANKS; k++) p[k] = ratio_of(scratch, accepted_of_rank, k).value;
    if (as_sequoia(p, PROBE_RANKS, DRAFTS, DRAFTS, shape, &e) == AS_OK) return true;
    fprintf(stderr, "assay bench: %s\n", e.text);
    return false;
}

static void print_shape(const as_shape *shape)
{
    fputs("    parents ", stdout);
    for (int32_t i = 0; i < shape->drafts; i++) printf("%s%d", i ? "," : "", (int)shape->parent[i]);
    putchar('\n');
}

static bool line(const bench_pair *b, const method *m, float T, measured *scratch)
{
    as_shape shape = {0};
    double p[TREE_RANKS];
    if (m->way == SEQUOIA && !best_shape(b, m, T, scratch, &shape)) return false;
    if (m->shape && as_shape_read(m->shape, &shape, NULL) != AS_OK) return false;
    if (!decode(b, &b->text[1], m, &shape, T, scratch)) return false;
    for (int32_t k = 0; k < TREE_RANKS; k++) p[k] = ratio_of(scratch, accepted_of_rank, k).value;
    const bench_ratio other = ratio_of(scratch, tokens_a_step, 0);
    if (!decode(b, &b->text[0], m, &shape, T, scratch)) return false;
    const bench_ratio tokens = ratio_of(scratch, tokens_a_step, 0), rows = ratio_of(scratch, rows_a_step, 0);
    printf("  %-30s %6.3f(%.3f) %6.2f ", m->label, tokens.value, tokens.error, rows.value);
    if (m->way == DYNAMIC)
        printf("%8s", "-");
    else
        printf("%8.3f", as_shape_tokens(&shape, p, TREE_RANKS));
    printf(" %6.3f(%.3f)\n", other.value, other.error);
    if (m->way == SEQUOIA) print_shape(&shape);
    print_depths(scratch);
    fflush(stdout);
    return true;
}

static bool lines(const bench_pair *b, const method *m, int count, float T, measured *scratch)
{
    bool ok = true;
    printf("\nT = %g, %s text\n  %-30s %13s %6s %8s %13s\n", (double)T, b->text[0].name, "drafts and rule",
           "tokens a step", "rows", "formula", b->text[1].name);
    for (int i = 0; ok && i < count; i++) ok = line(b, &m[i], T, scratch);
    return ok;
}

int bench_trees(int argc, char **argv)
{
    arguments a = {.prompts = 16};
    bench_pair pair;
    int code;
    if (!options_read(&table, &a, argc, argv, NULL, &code)) return code;
    measured *scratch = malloc(sizeof *scratch);
    if (!scratch) fputs("assay bench: out of memory\n", stderr);
    bool ok = scratch && bench_open(&pair, a.prompts, BUDGET);
    if (ok) {
        printf("Trees of drafts of the trained pair: %d prompts of each text, %d tokens after each; standard errors\n"
               "in parentheses\n",
               (int)pair.text[0].n, BUDGET);
        ok = lines(&pair, cold, COLD, 0, scratch) && lines(&pair, hot, HOT, 1, scratch);
    }
    if (scratch) bench_close(&pair);
    free(scratch);
    return ok ? EXIT_SUCCESS : EXIT_ERROR;
}
