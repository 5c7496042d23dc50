/* The table of mutants: complete, sound, and every entry can be made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/check.h"
#include "conformance/subjects/mutants/mutants.h"
#include "conformance/wire/claims.h"

enum { CHAPTERS = 11, ALGORITHMS = 5 };
static char *chapters[CHAPTERS];

static int read_spec(void **state)
{
    static const char *const names[CHAPTERS] = {"03-served-distribution",
                                                "04-uniforms-and-draws",
                                                "05-chain-speculative-decoding",
                                                "01-arithmetic",
                                                "02-language-model",
                                                "06-conformance",
                                                "07-jacobi",
                                                "08-lookahead",
                                                "09-prompt-lookup",
                                                "10-trees",
                                                "11-ouroboros"};
    (void)state;
    for (int i = 0; i < CHAPTERS; i++) {
        char path[1000];
        snprintf(path, sizeof path, "%s/%s.md", SPEC, names[i]);
        FILE *f = fopen(path, "r");
        snprintf(path, sizeof path, "%s/draft/%s.md", SPEC, names[i]);
        if (!f) f = fopen(path, "r");
        if (!f || !(chapters[i] = calloc(1, 100000))) return -1;
        if (fread(chapters[i], 1, 99999, f) == 0) return -1;
        fclose(f);
    }
    return 0;
}

static int free_spec(void **state)
{
    (void)state;
    for (int i = 0; i < CHAPTERS; i++) free(chapters[i]);
    return 0;
}

/* Of chapters 7 to 11 a clause may still be a draft. */
static bool is_clause(const char *clause)
{
    char must[40], draft[40];
    snprintf(must, sizeof must, "**%s** (MUST)", clause);
    snprintf(draft, sizeof draft, "**%s** (DRAFT)", clause);
    for (int i = 0; i < CHAPTERS; i++)
        if (strstr(chapters[i], must) || (i > ALGORITHMS && strstr(chapters[i], draft)))
            return true;
    return false;
}

static bool is_check(const char *name)
{
    for (int i = 0; check_list[i]; i++)
        if (strcmp(check_list[i]->name, name) == 0) return true;
    return false;
}

static void every_entry_names_a_clause_and_a_check(void **state)
{
    (void)state;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        if (m->kind == MUTANT_LOOKALIKE) continue;
        if (!is_clause(m->clause)) fail_msg("%s: no clause %s", m->name, m->clause);
        if (!is_check(m->check)) fail_msg("%s: no check %s", m->name, m->check);
    }
}

static void names_are_distinct_and_every_fault_is_there(void **state)
{
    bool seen[FAULT_POINTS] = {false};
    size_t faults = 0;
    (void)state;
    for (size_t i = 0; i < mutant_count; i++) {
        assert_ptr_equal(mutant_find(mutant_table[i].name), &mutant_table[i]);
        faults += mutant_table[i].kind == MUTANT_FAULT;
        seen[mutant_table[i].variant.fault] = true;
    }
    for (int f = 0; f < FAULT_POINTS; f++) assert_true(seen[f]);
    assert_true(faults >= 40);
}

/* Clauses of chapters 1 to 5 are violated by some fault each: nothing an implementation must do
 * is left to faith. KV-08 binds loops over two models, which the operations on one cannot
 * break. */
static void every_must_of_the_algorithms_has_a_fault(void **state)
{
    (void)state;
    for (int c = 0; c < ALGORITHMS; c++)
        for (const char *at = chapters[c]; (at = strstr(at, "** (MUST)")); at++) {
            const char *start = at;
            size_t i = 0, n;
            while (start[-1] != '*') start--;
            n = (size_t)(at - start);
            if (strncmp(start, "KV-08", n) == 0) continue;
            while (i < mutant_count && (strncmp(mutant_table[i].clause, start, n) != 0 ||
                                        mutant_table[i].clause[n] || mutant_table[i].kind))
                i++;
            if (i == mutant_count) fail_msg("no fault violates %.*s", (int)n, start);
        }
}

static void every_entry_but_some_liars_can_be_made(void **state)
{
    (void)state;
    for (size_t i = 0; i < mutant_count; i++) {
        const mutant *m = &mutant_table[i];
        char why[300] = "";
        iut_claims c = {.size = sizeof c};
        if (m->kind == MUTANT_LIAR) continue;
        const iut_api *api = mutant_api(m->name);
        iut *x = api->create("", why, sizeof why);
        assert_non_null(x);
        assert_int_equal(api->claims(x, &c), IUT_OK);
        if (!claims_check(&c, why, sizeof why)) fail_msg("%s: %s", m->name, why);
        assert_string_equal(c.name, m->name);
        api->destroy(x);
    }
}

/* -- What the look-alikes declare -------------------------------------------------- */

/* Written down from the specification (CLM-01, ACC-03, ACC-08, RES-03, GRD) and what each
 * stands for: a claim that changes by accident takes checks away from a look-alike in silence.
 */
typedef struct {
    const char *name;
    uint8_t uniforms, bits, input, map, rule, arithmetic, tie, q_zero, bad_draft, empty;
    uint8_t seed_identical;
    int32_t max_gamma, max_vocab;
    uint8_t lm_arithmetic; /* a model or an engine: nothing is said of panels */
    uint8_t methods, greedy_methods, pools;
} declaration;

enum { G = 64 }; /* drafts that its arrays hold */
enum { GIVEN = IUT_UNIFORMS_SUPPLIED, SEEDED = IUT_UNIFORMS_SEEDED, OWN = IUT_UNIFORMS_OWN };
enum { PROBS = IUT_FROM_PROBS, LOGITS = IUT_FROM_LOGITS };
enum { CDF = IUT_MAP_CDF_BY_ID, RACE = IUT_MAP_GUMBEL };
enum { TOKEN = IUT_RULE_TOKEN, MATCH = IUT_RULE_MATCH, LOSSY = IUT_RULE_NOT_LOSSLESS };
enum { BITS = IUT_ARITH_CANONICAL, F64 = IUT_ARITH_F64, F32 = IUT_ARITH_F32 };
enum { ANY = IUT_JACOBI | IUT_LOOKAHEAD | IUT_LOOKUP };
enum { KINDS = IUT_POOL_LRU | IUT_POOL_RING };
enum { FIRST = IUT_TIE_FIRST, LAST = IUT_TIE_LAST };
enum { TAKES = IUT_ACCEPT, ENDS = IUT_REJECT, ERR = IUT_ERROR };
enum { FROM_P = IUT_EMPTY_FROM_P, OTHER = IUT_EMPTY_OTHER };

/* Rules that do not use q have neither a q_zero nor an empty residual to declare. */
/* clang-format off */
static const declaration declarations[] = {
    {"NONE",              GIVEN,  29, PROBS,  CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"NONE_SEEDED",       SEEDED, 29, PROBS,  CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"NONE_SEEDED_F64",   SEEDED, 53, PROBS,  CDF, TOKEN, F64, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"SEEDED_32",         SEEDED, 53, PROBS,  CDF, TOKEN, F64, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"NONE_OWN",          OWN,    53, PROBS,  CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"NONE_LOGITS",       GIVEN,  29, LOGITS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"NONE_LOGITS_OWN",   OWN,    53, LOGITS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"MATCH_RULE",        GIVEN,  29, PROBS,  CDF, MATCH, BITS, FIRST, 0, ERR, 0, 1, G, 0, 0, 0, 0, 0},
    {"MATCH_RULE_SEEDED", SEEDED, 29, PROBS,  CDF, MATCH, BITS, FIRST, 0, ERR, 0, 1, G, 0, 0, 0, 0, 0},
    {"MATCH_RULE_OWN",    OWN,    53, PROBS,  CDF, MATCH, BITS, FIRST, 0, ERR, 0, 0, G, 0, 0, 0, 0, 0},
    {"BLOCK_RULE",        OWN,    53, PROBS,  CDF, IUT_RULE_BLOCK, F64, FIRST, 0, ERR, 0, 0, G, 0, 0, 0, 0, 0},
    {"ONEHOT_RULE",       OWN,    53, PROBS,  CDF, IUT_RULE_ONEHOT, BITS, FIRST, 0, ERR, 0, 0, G, 0, 0, 0, 0, 0},
    {"OWN_24_BIT",        OWN,    24, PROBS,  CDF, TOKEN, F32, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"GUMBEL_RACE",       OWN,    32, PROBS,  RACE, TOKEN, F64, FIRST, TAKES, ERR, FROM_P, 0, G, 1024, 0, 0, 0, 0},
    {"Q_ZERO_REJECT",     GIVEN,  29, PROBS,  CDF, TOKEN, BITS, FIRST, ENDS, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TIES_LAST",         GIVEN,  29, PROBS,  CDF, TOKEN, BITS, LAST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"BAD_DRAFT_REJECT",  GIVEN,  29, PROBS,  CDF, TOKEN, BITS, FIRST, TAKES, ENDS, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"EMPTY_OTHER",       GIVEN,  29, PROBS,  CDF, TOKEN, BITS, FIRST, TAKES, ERR, OTHER, 0, G, 0, 0, 0, 0, 0},
    {"MAX_GAMMA_1",       GIVEN,  29, PROBS,  CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, 1, 0, 0, 0, 0, 0},
    {"ADAPTIVE",          OWN,    53, PROBS,  CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"ONE_COIN",          GIVEN,  29, PROBS,  CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"RACES",             GIVEN,  29, PROBS,  CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"RACES_F32",         GIVEN,  24, PROBS,  CDF, TOKEN, F32, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"LOGITS_VLLM",       GIVEN,  29, LOGITS, CDF, TOKEN, F32, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"LOGITS_F64",        GIVEN,  29, LOGITS, CDF, TOKEN, F64, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"LOGITS_F32",        GIVEN,  24, LOGITS, CDF, TOKEN, F32, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"LOGITS_F16", GIVEN, 24, LOGITS, CDF, TOKEN, IUT_ARITH_F16, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"LOGITS_BF16", GIVEN, 24, LOGITS, CDF, TOKEN, IUT_ARITH_BF16, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"DECLARED_TYPICAL", OWN, 53, PROBS, CDF, LOSSY, BITS, FIRST, 0, ERR, 0, 0, G, 0, 0, 0, 0, 0},
    {"DECLARED_CONSTANT", OWN, 53, LOGITS, CDF, LOSSY, BITS, FIRST, 0, ERR, 0, 0, G, 0, 0, 0, 0, 0},
    {"DECLARED_LENIENT", GIVEN, 29, PROBS, CDF, LOSSY, BITS, FIRST, 0, ERR, 0, 0, G, 0, 0, 0, 0, 0},
    {"DECLARED_RELAXED", OWN, 53, LOGITS, CDF, LOSSY, BITS, FIRST, 0, ERR, 0, 0, G, 0, 0, 0, 0, 0},
    {"LM_PLAIN",          0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"LM_STRIDED",        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, IUT_LM_SELF_CONSISTENT, 0, 0, 0},
    {"ENGINE_PLAIN", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL, ANY, IUT_JACOBI, 0},
    {"ENGINE_SEED_32", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_STALE_DRAFT", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"ENGINE_TELLS_TOTALS", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"ENGINE_OWN_END", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL,
     IUT_JACOBI | IUT_LOOKUP, IUT_JACOBI, 0},
    {"ENGINE_TIES_ANY", SEEDED, 29, 0, 0, TOKEN, BITS, IUT_TIE_ANY, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"ENGINE_OWN_UNIFORMS", OWN, 53, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"ENGINE_MIXED_CALLS", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_FEWER_DRAFTS", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"ENGINE_STRIDED_SUMS", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_PRUNED_DRAFT", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_PRUNED_FURTHER", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_PRUNED_DOUBLE", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_IN_BF16", SEEDED, 24, 0, 0, TOKEN, IUT_ARITH_BF16, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_IN_F16", SEEDED, 24, 0, 0, TOKEN, IUT_ARITH_F16, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_IN_Q8", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_IN_Q4", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_ORDER_LLAMACPP", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_ORDER_MLX", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_ORDER_VLLM", SEEDED, 24, 0, 0, TOKEN, F32, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_TIES_KEPT", SEEDED, 24, 0, 0, TOKEN, IUT_ARITH_BF16, 0, 0, 0, 0, 0, 16, 0, 0, 0, 0, 0},
    {"ENGINE_MATCH_GREEDY", SEEDED, 29, 0, 0, MATCH, BITS, 0, 0, 0, 0, 1, 16, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"ENGINE_PENALTY_OUTPUT", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"ENGINE_PENALTY_WINDOW", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"ENGINE_PENALTY_SOFT", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 16, 0, IUT_LM_CANONICAL, 0, 0, 0},
    {"TREES", GIVEN, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_SEEDED", SEEDED, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_OWN", OWN, 53, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_LOGITS", GIVEN, 29, LOGITS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_LOGITS_F64", GIVEN, 29, LOGITS, CDF, TOKEN, F64, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_LOGITS_F32", GIVEN, 24, LOGITS, CDF, TOKEN, F32, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_F64", GIVEN, 29, PROBS, CDF, TOKEN, F64, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_F32", GIVEN, 24, PROBS, CDF, TOKEN, F32, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_SAMPLED_F32", GIVEN, 24, PROBS, CDF, TOKEN, F32, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_BF16", GIVEN, 24, PROBS, CDF, TOKEN, IUT_ARITH_BF16, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_OWN_F32", OWN, 24, PROBS, CDF, TOKEN, F32, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_LAST_OF_EQUAL", GIVEN, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_MERGED",        GIVEN, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_FIXED", GIVEN, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_SMALL", GIVEN, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, 3, 0, 0, 0, 0, 0},
    {"TREES_ONE_COIN", GIVEN, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_RACE", GIVEN, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_RACE_F32", GIVEN, 24, PROBS, CDF, TOKEN, F32, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_GIVEN", GIVEN, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_VOCAB", GIVEN, 29, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_OTHER", OWN, 53, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_OTHER_ANY", OWN, 53, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TREES_IID", OWN, 53, PROBS, CDF, TOKEN, BITS, FIRST, TAKES, ERR, FROM_P, 0, G, 0, 0, 0, 0, 0},
    {"TRACES_PLAIN", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"TRACES_OF_RANKS", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
    {"POOL_PLAIN",   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, KINDS},
    {"POOL_STAMPED", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, KINDS},
    {"ENGINE_SAMPLING_JACOBI", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_JACOBI, 0, 0},
    {"ENGINE_COLD_LOOKAHEAD", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKAHEAD, IUT_LOOKAHEAD, 0},
    {"ENGINE_ORIGINAL_LOOKUP", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKUP, 0, 0},
    {"ENGINE_LOOKUP_MISSES", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKUP, 0, 0},
    {"ENGINE_STALE_KEY", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKAHEAD, 0, 0},
    {"ENGINE_RING_POOL", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKAHEAD, 0, 0},
    {"ENGINE_NO_WARMUP", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKAHEAD, 0, 0},
    {"ENGINE_NO_BONUS", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKAHEAD, 0, 0},
    {"ENGINE_DIAGONAL", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKAHEAD, 0, 0},
    {"ENGINE_SHIFTS_TWICE", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKAHEAD, 0, 0},
    {"OUROBOROS_PAPER", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 6, 0, IUT_LM_CANONICAL, IUT_OUROBOROS, 0, 0},
    {"OUROBOROS_CODE", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 6, 0, IUT_LM_CANONICAL, IUT_OUROBOROS, 0, 0},
    {"OUROBOROS_WARM", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 6, 0, IUT_LM_CANONICAL, IUT_OUROBOROS, 0, 0},
    {"OUROBOROS_RING", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 6, 0, IUT_LM_CANONICAL, IUT_OUROBOROS, 0, 0},
    {"OUROBOROS_BARE", SEEDED, 29, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 6, 0, IUT_LM_CANONICAL, IUT_OUROBOROS, 0, 0},
    {"ENGINE_POOL_STAYS", OWN, 53, 0, 0, TOKEN, BITS, 0, 0, 0, 0, 0, 1, 0, IUT_LM_CANONICAL, IUT_LOOKAHEAD, 0, 0},
};
/* clang-format on */
enum { DECLARATIONS = sizeof declarations / sizeof *declarations };

/* What the entry of that name says of filters; NULL: nothing. */
static const char *order_of(const char *name)
{
    return strstr(name, "LLAMACPP") ? "llamacpp" : strstr(name, "_MLX") ? "mlx" : strstr(name, "_VLLM") ? "vllm" : NULL;
}

static declaration declared_by(const char *name)
{
    char why[300] = "";
    iut_claims c = {.size = sizeof c};
    const iut_api *api = mutant_api(name);
    iut *x = api->create("", why, sizeof why);
    assert_non_null(x);
    assert_int_equal(api->claims(x, &c), IUT_OK);
    api->destroy(x);
    const bool alone = c.pools || !strncmp(name, "TRACES_", 7); /* they claim nothing else */
    const char *order = order_of(name);
    const bool own_weights = strstr(name, "IN_Q") != NULL;
    const bool no_bits = strstr("ENGINE_STRIDED_SUMS ENGINE_MIXED_CALLS ENGINE_TIES_KEPT ENGINE_SEED_32", name) ||
                         strstr(name, "PRUNED") || strstr(name, "_IN_") ||
                         (order && !c.input); /* engines that promise none */
    assert_int_equal(c.bad_row, c.lm_arithmetic || alone || no_bits ? 0 : IUT_ERROR);
    assert_int_equal(c.greedy_identical, !alone && !no_bits && strcmp(name, "DECLARED_RELAXED") != 0);
    assert_int_equal(c.accepted_total, !strcmp(name, "ENGINE_TELLS_TOTALS"));
    assert_int_equal(c.eos_always, !strcmp(name, "ENGINE_OWN_END"));
    assert_int_equal(c.ranks, !strcmp(name, "TRACES_OF_RANKS") ? 3 : 0);
    const bool mixed = strstr("ENGINE_MIXED_CALLS ENGINE_IN_BF16 ENGINE_IN_Q8 ENGINE_TIES_KEPT", name) != NULL;
    assert_int_equal(c.logprobs, mixed ? IUT_LOGPROB_RAW : 0);
    const bool pruned = strstr(name, "PRUNED") || strstr("ENGINE_IN_BF16 ENGINE_IN_Q8 ENGINE_TIES_KEPT", name);
    assert_int_equal(c.draft_vocab, pruned ? IUT_VOCAB_FOLDER : !strcmp(name, "TREES_VOCAB") ? IUT_VOCAB_PANEL : 0);
    assert_int_equal(c.weights, own_weights ? IUT_WEIGHTS_OWN : 0);
    assert_int_equal(c.per_request, mixed ? 15 : 0);
    assert_int_equal(c.processors, mixed || strstr(name, "PENALTY") || !strcmp(name, "ENGINE_PLAIN") ? 7 : 0);
    assert_string_equal(c.order ? c.order : "", order ? order : "");
    assert_int_equal(c.top_k_ties, strstr("LOGITS_VLLM ENGINE_TIES_KEPT", name) ? IUT_TIES_KEPT : 0);
    const bool generates = c.uniforms && !alone, cut = !strcmp(name, "SEEDED_32") || !strcmp(name, "ENGINE_SEED_32");
    const bool greedy_drafts = !strcmp(name, "ENGINE_MATCH_GREEDY");
    assert_int_equal(c.drafts, greedy_drafts ? IUT_DRAFTS_ARGMAX : generates ? IUT_DRAFTS_SAMPLED : 0);
    assert_int_equal(c.seed_bits, !generates || c.uniforms == IUT_UNIFORMS_OWN ? 0 : cut ? 32 : 64);
    return (declaration){
        name,      c.uniforms,       c.uniform_bits, c.input,     c.map,
        c.rule,    c.arithmetic,     c.tie,          c.q_zero,    c.bad_draft,
        c.empty,   c.seed_identical, c.max_gamma,    c.max_vocab, c.lm_arithmetic,
        c.methods, c.greedy_methods, c.pools};
}

static void same(const char *name, const char *claim, int is, int due)
{
    if (is != due) fail_msg("%s declares %s = %d, the table says %d", name, claim, is, due);
}

static void look_alikes_declare_what_is_written_down(void **state)
{
    size_t seen = 0;
    (void)state;
    for (size_t i = 0; i < mutant_count; i++) {
        const char *name = mutant_table[i].name;
        if (mutant_table[i].kind != MUTANT_LOOKALIKE) continue;
        size_t at = 0;
        while (at < DECLARATIONS && strcmp(declarations[at].name, name) != 0) at++;
        if (at == DECLARATIONS) fail_msg("write down what %s declares", name);
        const declaration *due = &declarations[at], is = declared_by(name);
#define SAME(claim) same(name, #claim, is.claim, due->claim)
        SAME(uniforms), SAME(bits), SAME(input), SAME(map), SAME(rule), SAME(arithmetic);
        SAME(tie), SAME(q_zero), SAME(bad_draft), SAME(empty), SAME(seed_identical);
        SAME(max_gamma), SAME(max_vocab), SAME(lm_arithmetic), SAME(methods);
        SAME(greedy_methods), SAME(pools);
#undef SAME
        seen++;
    }
    assert_int_equal(seen, DECLARATIONS);
}

static void names_are_found_in_any_spelling(void **state)
{
    (void)state;
    assert_ptr_equal(mutant_find("liar-exit"), mutant_find("LIAR_EXIT"));
    assert_non_null(mutant_find("Residual-Row_0"));
    assert_null(mutant_find("residual_row"));
    assert_null(mutant_find(""));
    assert_null(mutant_api("no such thing"));
}

static iut_status status_of_panel(const iut_panel *panel, const char *said)
{
    char why[300] = "";
    const iut_api *api = mutant_api("NONE");
    iut *x = api->create("", why, sizeof why);
    assert_non_null(x);
    const iut_status status = api->panel(x, panel);
    if (status != IUT_OK) assert_non_null(strstr(api->last_error(x), said));
    api->destroy(x);
    return status;
}

/* A subject reads no array that is not there; the refusal names it. */
static void a_panel_without_one_of_its_arrays_is_refused(void **state)
{
    static const int32_t cls[2] = {0, 0}, next[1] = {0};
    static const float row[2] = {0.5f, 0.5f};
    const iut_sampling plain = {1.0f, 0, 1.0f, 0.0f};
    iut_panel whole = {.size = sizeof whole,
                       .V = 2,
                       .S = 1,
                       .C = 1,
                       .cls = cls,
                       .next = next,
                       .p = row,
                       .q = row,
                       .p_logit = row,
                       .q_logit = row,
                       .target = plain,
                       .draft = plain};
    iut_panel panel = whole;
    (void)state;
    assert_int_equal(status_of_panel(&panel, ""), IUT_OK);
    panel.cls = NULL;
    assert_int_equal(status_of_panel(&panel, " cls "), IUT_BAD_INPUT);
    panel = whole, panel.next = NULL;
    assert_int_equal(status_of_panel(&panel, " next "), IUT_BAD_INPUT);
    panel = whole, panel.p = NULL;
    assert_int_equal(status_of_panel(&panel, " p "), IUT_BAD_INPUT);
    panel = whole, panel.q = NULL;
    assert_int_equal(status_of_panel(&panel, " q "), IUT_BAD_INPUT);
    panel = whole, panel.p_logit = NULL;
    assert_int_equal(status_of_panel(&panel, " p_logit "), IUT_BAD_INPUT);
    panel = whole, panel.q_logit = NULL;
    assert_int_equal(status_of_panel(&panel, " q_logit "), IUT_BAD_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_entry_names_a_clause_and_a_check),
        cmocka_unit_test(names_are_distinct_and_every_fault_is_there),
        cmocka_unit_test(every_must_of_the_algorithms_has_a_fault),
        cmocka_unit_test(every_entry_but_some_liars_can_be_made),
        cmocka_unit_test(look_alikes_declare_what_is_written_down),
        cmocka_unit_test(names_are_found_in_any_spelling),
        cmocka_unit_test(a_panel_without_one_of_its_arrays_is_refused),
    };
    return cmocka_run_group_tests_name("mutants: table", tests, read_spec, free_spec);
}
