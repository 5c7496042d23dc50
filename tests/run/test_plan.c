/* `assay plan` from outside: what is refused, its figures, its JSON and drawing, and the trained pair measured. argv[1]
 * is the program `assay`, argv[2] the source folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>
#include <libxml/parser.h>

#include "tests/run/command.h"

static const char *source;

static void what_has_no_meaning_is_refused(void **unused)
{
    static const struct {
        const char *arguments, *says;
    } list[] = {
        {"", "give --alpha, --tree, --p, --parameters or --measure"},
        {"--nonsense", "unknown option --nonsense"},
        {"--alpha 1.1", "--alpha 1.1: A must be a number from 0 to 1"},
        {"--alpha nan", "--alpha nan: A must be"},
        {"--alpha -0.1", "A must be a number from 0 to 1"},
        {"--alpha", "A is missing"},
        {"--alpha 0.5 --gamma 0", "N must be a whole number from 1 to 256"},
        {"--alpha 0.5 --gamma 257", "from 1 to 256"},
        {"--alpha 0.5 --cost inf", "C must be a number from 0 to 1000"},
        {"--alpha 0.5 --candidates 0", "from 1 to 4096"},
        {"--gamma 3", "--gamma needs --alpha|--measure beside it"},
        {"--cost 0.1 --parameters 1 --bandwidth 1", "--cost needs --alpha|--measure"},
        {"--alpha 0.5 --found 0.5 --rows 10", "F must be a number from 1 to 1000000"},
        {"--alpha 0.5 --found 2", "--found needs --rows|--window"},
        {"--found 2 --rows 8", "--found needs --alpha"},
        {"--alpha 0.5 --rows 8", "--rows needs --found|--measure"},
        {"--alpha 0.5 --found 2 --rows 1", "R must be a whole number from 2"},
        {"--alpha 0.5 --found 2 --window 3", "--window needs --ngram"},
        {"--alpha 0.5 --found 2 --rows 9 --window 3 --ngram 2", "leave one of them out"},
        {"--alpha 0.5 --found 2 --window 3 --ngram 1", "N must be a whole number from 2"},
        {"--tree 3-2-1", "--tree needs --rates|--measure"},
        {"--rates 0.5", "--rates needs --tree"},
        {"--tree 3-2-1 --rates 0.5,", "--rates 0.5,: P,... must be at most 64 numbers from 0 to 1"},
        {"--tree 3-2-1 --rates 0.5,1.5", "numbers from 0 to 1"},
        {"--tree 3-2-1 --rates nan", "numbers from 0 to 1"},
        {"--tree 3--1 --rates 0.5", "tree \"3--1\": give children a node by level"},
        {"--tree 2000 --rates 0.5", "tree \"2000\""},
        {"--p 0.5,0.5", "--p needs --q"},
        {"--p 0.5,0.5 --q 1", "--p has 2 numbers and --q 1; give as many"},
        {"--p 0.5,0.6 --q 0.5,0.5", "--p: the numbers must add up to 1"},
        {"--p 0.5,0.5 --q 0,0", "--q: the numbers must add up to 1"},
        {"--parameters 0 --bandwidth 1", "P must be a number above 0"},
        {"--parameters 1e9", "--parameters needs --bandwidth"},
        {"--bandwidth 1e9", "--bandwidth needs --parameters"},
        {"--measure a b", "--measure needs TEXT"},
        {"--measure a", "--measure needs DRAFT"},
        {"a b", "DRAFT needs --measure"},
        {"--measure a b c d", "a word too many: d"},
        {"--measure a b c --alpha 0.5", "--measure finds --alpha"},
        {"--measure a b c --gamma 17", "--gamma 17: with --measure it is at most 16"},
        {"--measure a b c --temperature -1", "T must be a number from 0"},
        {"--measure a b c --prompts 1", "P must be a whole number from 2"},
        {"--measure a b c --siblings 17", "--siblings 17: with --measure it is at most 16"},
        {"--measure a b c --window 3", "--window needs --ngram"},
        {"--measure a b c --window 32 --ngram 6",
         "--window 32 --ngram 6: a forward has 320 rows; with --measure it has at most 256"},
        {"--measure a b c --found 2", "--found needs --alpha"},
        {"--measure a b c --rates 0.5", "--rates needs --tree"},
        {"--siblings 2", "--siblings needs --p|--measure"},
        {"--measure /no/such b c", "/no/such"},
        {"--alpha 0.5 --json /no/such/folder/x", "cannot write /no/such/folder/x: No such file"},
        {"--alpha 0.5 --svg /no/such/folder/x", "cannot write /no/such/folder/x: No such file"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments, "plan %s", list[i].arguments);
        if (assay(arguments, both) != 2) fail_msg("%s: %s", arguments, output);
        assert_says(list[i].says);
    }
}

/* Runs a plan; its JSON, which the caller releases. */
static json_t *plan(const char *arguments)
{
    char line[1200];
    json_error_t why;
    snprintf(line, sizeof line, "plan %s --json %s", arguments, temporary);
    if (assay(line, both) != 0) fail_msg("%s: %s", line, output);
    json_t *all = json_load_file(temporary, 0, &why);
    if (!all) fail_msg("%s", why.text);
    return all;
}

static double cell(const json_t *all, const char *table, size_t row, const char *column)
{
    const json_t *value = json_object_get(json_array_get(json_object_get(json_object_get(all, table), "rows"), row),
                                          column);
    if (!json_is_number(value)) fail_msg("%s, row %zu: no %s", table, row, column);
    return json_number_value(value);
}

static double fact(const json_t *all, const char *table, const char *name)
{
    const json_t *value = json_object_get(json_object_get(all, table), name);
    if (!json_is_number(value)) fail_msg("%s: no %s", table, name);
    return json_number_value(value);
}

static void near(double x, double y, double most)
{
    if (!(fabs(x - y) <= most)) fail_msg("%.9g and %.9g differ", x, y);
}

/* Values that the sources print (tests/theory/test_worked.c). */
static void figures_are_those_of_the_sources(void **unused)
{
    (void)unused;
    json_t *all = plan("--alpha 0.8 --cost 0.1 --gamma 5");
    near(cell(all, "chain", 5, "tokens"), 3.69, 0.005);
    near(cell(all, "chain", 5, "walltime"), 2.46, 0.005);
    near(cell(all, "chain", 5, "operations"), 6.5 / 3.68928, 1e-5);
    near(fact(all, "chain", "promised_by_corollary_3.9"), 1.8 / 1.1, 1e-9);
    assert_says("best gamma: 5");
    json_decref(all);
    all = plan("--alpha 0.8 --gamma 5 --cost 0.1 --operations 0 --row-cost 0.5 --candidates 2");
    near(cell(all, "chain", 5, "operations"), 1.63, 0.005);
    near(cell(all, "chain", 5, "with_rows"), 3.68928 / (0.5 + 3.5), 1e-5);
    near(cell(all, "chain", 1, "candidates"), 1 + 0.96, 1e-12);
    json_decref(all);
    all = plan("--p 0.4,0.5,0.1 --q 0.6,0.3,0.1");
    near(fact(all, "place", "D_LK"), 0.2, 1e-12);
    near(fact(all, "place", "overlap"), 0.8, 1e-12);
    near(fact(all, "place", "single"), 0.6, 1e-12);
    near(cell(all, "place", 0, "factor"), 1, 1e-12);
    near(cell(all, "place", 1, "top_onehot"), 0.9, 1e-12);
    near(cell(all, "lenience", 1, "alpha"), 1, 1e-12); /* min(.8, .6) + min(1, .3) + min(.2, .1) */
    json_decref(all);
    all = plan("--parameters 70e9 --bandwidth 3350e9 --speed 989e12");
    near(fact(all, "machine", "weights_ms"), 41.8, 0.05);
    near(cell(all, "machine", 0, "intensity"), 1, 0);
    near(fact(all, "machine", "free_rows"), 989e12 / 3350e9, 1e-6);
    near(cell(all, "machine", 0, "cost"), 1, 1e-12);
    near(cell(all, "machine", 10, "cost"), 1024 / (989e12 / 3350e9), 1e-6);
    json_decref(all);
}

static void sizes_fit_a_budget(void **unused)
{
    (void)unused;
    json_t *all = plan("--alpha 0.425 --found 3.106 --rows 120");
    near(cell(all, "lookahead", 3, "N"), 5, 0);
    near(cell(all, "lookahead", 3, "W"), 15, 0);
    near(cell(all, "lookahead", 3, "rows"), 120, 0);
    near(cell(all, "lookahead", 3, "S"), 1.979, 0.0005);
    near(cell(all, "lookahead", 3, "limit"), (3.106 - 1 + 5) / 3.106, 1e-9);
    near(fact(all, "lookahead", "best_N"), 5, 0);
    near(cell(all, "scaling", 6, "rows"), 120, 0); /* 2, 4, ..., 64, 120 */
    near(cell(all, "scaling", 6, "N5"), 1.979, 0.0005);
    near(cell(all, "scaling", 0, "N2"), 1 + 0.425 / 3.106, 1e-12);
    assert_null(json_object_get(all, "chain"));
    json_decref(all);
    all = plan("--alpha 0.425 --found 3.106 --window 15 --ngram 5");
    near(cell(all, "lookahead", 0, "S"), 1.979, 0.0005);
    json_decref(all);
    all = plan("--alpha 0.425 --found 3.106 --window 15 --ngram 5 --pool 0");
    near(cell(all, "lookahead", 0, "S"), 1, 0);
    near(cell(all, "lookahead", 0, "rows"), 60, 0);
    json_decref(all);
}

static void a_tree_stands_beside_its_chain(void **unused)
{
    (void)unused;
    json_t *all = plan("--tree 3-2-1 --rates 0.7,0.2,0.05");
    near(cell(all, "tree", 0, "tokens"), 1 + 0.95 * (1 + 0.9 * (1 + 0.7)), 1e-12);
    near(cell(all, "tree", 1, "tokens"), (1 - pow(0.7, 16)) / 0.3, 1e-9);
    assert_true(cell(all, "tree", 2, "tokens") >= cell(all, "tree", 0, "tokens"));
    assert_true(cell(all, "tree", 2, "tokens") >= cell(all, "tree", 1, "tokens"));
    for (size_t i = 0; i < 3; i++) near(cell(all, "tree", i, "rows"), 16, 0);
    json_decref(all);
    all = plan("--tree 300 --rates 0.5,0.25"); /* more drafts than Sequoia's recursion takes */
    near(cell(all, "tree", 0, "tokens"), 1.75, 1e-12);
    near(cell(all, "tree", 1, "tokens"), 2, 1e-12);
    assert_int_equal(json_array_size(json_object_get(json_object_get(all, "tree"), "rows")), 2);
    json_decref(all);
}

static int count_elements(const xmlNode *n, const char *name)
{
    int count = 0;
    for (; n; n = n->next) {
        count += n->type == XML_ELEMENT_NODE && strcmp((const char *)n->name, name) == 0;
        count += count_elements(n->children, name);
    }
    return count;
}

/* Four curves of the chain, two of the sizes, six of the scaling: a disc a value, and one for each name. */
static void curves_have_a_disc_a_value(void **unused)
{
    char line[200];
    (void)unused;
    snprintf(line, sizeof line, "plan --alpha 0.5 --gamma 6 --found 2 --rows 24 --svg %s", temporary);
    assert_int_equal(assay(line, both), 0);
    xmlDoc *doc = xmlReadFile(temporary, NULL, 0);
    assert_non_null(doc);
    /* gamma 0 to 6; N from 2 to 13; budgets 2, 4, 8, 16, 24, of which N = 2 to 7 fit 5, 4, 3, 3, 2 and 2. */
    assert_int_equal(count_elements(xmlDocGetRootElement(doc), "circle"), 4 * 7 + 4 + 2 * 12 + 2 + 19 + 6);
    xmlFreeDoc(doc);
}

/* A quarter of the held-out prompts as one text; its name in `path`. */
static void make_text(char *path)
{
    char prompts[1000];
    json_error_t why;
    size_t i;
    json_t *prompt;
    snprintf(prompts, sizeof prompts, "%s/vectors/models/prompts.json", source);
    json_t *all = json_load_file(prompts, 0, &why);
    assert_non_null(all);
    const int f = mkstemp(path);
    FILE *text = fdopen(f, "w");
    assert_non_null(text);
    json_array_foreach(all, i, prompt)
        if (i < json_array_size(all) / 4) fputs(json_string_value(prompt), text);
    assert_int_equal(fclose(text), 0);
    json_decref(all);
}

static json_t *measured_of(const char *target, const char *draft, const char *text, const char *options)
{
    char line[1000];
    snprintf(line, sizeof line, "--measure %s %s %s --prompts 4 %s", target, draft, text, options);
    return plan(line);
}

static json_t *measured(const char *text, const char *options)
{
    char target[400], draft[400];
    snprintf(target, sizeof target, "%s/vectors/models/target", source);
    snprintf(draft, sizeof draft, "%s/vectors/models/draft", source);
    return measured_of(target, draft, text, options);
}

/* ---- Models of two tokens. ------------------------------------------------------------- */

/* Chances of token 0 after token 0 and after token 1, for target and draft. */
typedef struct {
    double target[2], draft[2];
} coins;

enum { FILES = 5, FOLDERS = 2 };

/* A folder of a pair's; the text lies beside it. */
typedef struct {
    char root[40], folder[FOLDERS][60], text[60];
} pair;

/* Layers whose weights are 0 leave the embedding alone: (1, 0)·100 and (0, 1)·100, which the norm makes √2 long. */
static void make_model(const char *folder, const double first[2])
{
    static const char config[] =
        "{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"vocab_size\": 2, "
        "\"hidden_size\": 2, \"num_hidden_layers\": 1, \"intermediate_size\": 1, \"num_attention_heads\": 1, "
        "\"num_key_value_heads\": 1, \"head_dim\": 2, \"hidden_act\": \"silu\", \"rms_norm_eps\": 1e-12, "
        "\"rope_theta\": 10000.0, \"max_position_embeddings\": 512, \"tie_word_embeddings\": false}";
    static const struct {
        const char *name;
        int rows, columns; /* 0: a vector */
    } tensor[] = {{"model.embed_tokens.weight", 2, 2},
                  {"lm_head.weight", 2, 2},
                  {"model.norm.weight", 2, 0},
                  {"model.layers.0.input_layernorm.weight", 2, 0},
                  {"model.layers.0.post_attention_layernorm.weight", 2, 0},
                  {"model.layers.0.self_attn.q_proj.weight", 2, 2},
                  {"model.layers.0.self_attn.k_proj.weight", 2, 2},
                  {"model.layers.0.self_attn.v_proj.weight", 2, 2},
                  {"model.layers.0.self_attn.o_proj.weight", 2, 2},
                  {"model.layers.0.mlp.gate_proj.weight", 1, 2},
                  {"model.layers.0.mlp.up_proj.weight", 1, 2},
                  {"model.layers.0.mlp.down_proj.weight", 2, 1}};
    float data[64] = {100, 0, 0, 100};
    char path[120], header[2000] = "{";
    size_t at = 0, length = 1;
    for (int v = 0; v < 2; v++)
        for (int after = 0; after < 2; after++)
            data[4 + 2 * v + after] = (float)(log(v ? 1 - first[after] : first[after]) / sqrt(2));
    for (int i = 8; i < 14; i++) data[i] = 1;
    for (size_t i = 0; i < sizeof tensor / sizeof *tensor; i++) {
        const size_t n = (size_t)tensor[i].rows * (size_t)(tensor[i].columns ? tensor[i].columns : 1);
        char shape[20];
        snprintf(shape, sizeof shape, tensor[i].columns ? "%d,%d" : "%d", tensor[i].rows, tensor[i].columns);
        length += (size_t)snprintf(header + length, sizeof header - length,
                                   "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
                                   i ? "," : "", tensor[i].name, shape, 4 * at, 4 * (at + n));
        at += n;
    }
    header[length++] = '}';
    while (length % 8) header[length++] = ' ';
    assert_int_equal(mkdir(folder, 0700), 0);
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(config, f);
    assert_int_equal(fclose(f), 0);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    f = fopen(path, "w");
    assert_non_null(f);
    const uint64_t header_size = length;
    assert_int_equal(fwrite(&header_size, 8, 1, f) + fwrite(header, length, 1, f) + fwrite(data, 4 * at, 1, f), 3);
    assert_int_equal(fclose(f), 0);
}

/* The text is `word` again and again, 3,072 tokens. */
static void make_pair(pair *p, const coins *c, const char *word)
{
    char root[] = "/tmp/assay-plan-XXXXXX";
    assert_non_null(mkdtemp(root));
    strcpy(p->root, root);
    for (int i = 0; i < FOLDERS; i++) {
        snprintf(p->folder[i], sizeof p->folder[i], "%s/%s", root, i ? "draft" : "target");
        make_model(p->folder[i], i ? c->draft : c->target);
    }
    snprintf(p->text, sizeof p->text, "%s/text", root);
    FILE *f = fopen(p->text, "w");
    assert_non_null(f);
    for (size_t i = 0; i < 3072; i++) fprintf(f, "%c ", word[i % strlen(word)]);
    assert_int_equal(fclose(f), 0);
}

static void remove_pair(const pair *p)
{
    static const char *const file[FILES] = {"target/config.json", "target/model.safetensors", "draft/config.json",
                                            "draft/model.safetensors", "text"};
    char path[120];
    for (int i = 0; i < FILES; i++) {
        snprintf(path, sizeof path, "%s/%s", p->root, file[i]);
        assert_int_equal(unlink(path), 0);
    }
    for (int i = 0; i < FOLDERS; i++) assert_int_equal(rmdir(p->folder[i]), 0);
    assert_int_equal(rmdir(p->root), 0);
}

/* Half of the places stand behind 0, with p = (3/4, 1/4) and q = (1/2, 1/2), half behind 1, with p = (1/4, 3/4) and
 * q = (3/4, 1/4). By hand: beta is 3/4 and 1/2. At K = 2 rho* solves rho^2 - 3/2 rho + 1/4 = 0 and
 * rho^2 - 7/4 rho + 1/4 = 0, and 1/2 rho + 1/4 and 1/4 rho + 1/4 are accepted there; at rho = 2 it is 3/4 and 39/64. */
static void places_have_the_values_of_a_hand(void **unused)
{
    static const coins c = {{0.75, 0.25}, {0.5, 0.75}};
    static const double lenient[] = {5.0 / 8, 7.0 / 8, 1, 1};
    const double rho[] = {(1.5 + sqrt(1.25)) / 2, (1.75 + sqrt(2.0625)) / 2};
    pair p;
    (void)unused;
    make_pair(&p, &c, "01");
    json_t *all = measured_of(p.folder[0], p.folder[1], p.text, "--gamma 1 --siblings 3 --window 2 --ngram 3");
    near(fact(all, "places", "alpha"), 5.0 / 8, 1e-6);
    near(fact(all, "places", "D_LK"), 3.0 / 8, 1e-6);
    near(fact(all, "places", "single"), (2.0 / 3 + 1.0 / 3) / 2, 1e-6);
    for (size_t k = 0; k < 4; k++) near(cell(all, "lenient", k, "alpha"), lenient[k], 1e-6);
    near(cell(all, "places", 0, "kseq"), 5.0 / 8, 1e-6);
    near(cell(all, "places", 0, "factor"), 1, 1e-6);
    near(cell(all, "places", 1, "factor"), (rho[0] + rho[1]) / 2, 1e-6);
    near(cell(all, "places", 1, "kseq"), (rho[0] / 2 + 0.25 + rho[1] / 4 + 0.25) / 2, 1e-6);
    near(cell(all, "places", 1, "kseq_at_K"), (3.0 / 4 + 39.0 / 64) / 2, 1e-6);
    /* The likeliest token of q is 0 in both: of equals the lowest id. */
    near(cell(all, "places", 0, "top_onehot"), 1.0 / 2, 1e-6);
    near(cell(all, "places", 1, "top_onehot"), 1, 1e-6);
    near(cell(all, "places", 1, "rate"), 1.0 / 2, 1e-6);
    near(cell(all, "places", 2, "rate"), 0, 0);
    near(fact(all, "measured", "variance_of_beta"), 1.0 / 64, 1e-6);
    json_decref(all);
    /* At temperature 0 the target goes on with 0 behind 0 and with 1 behind 1, the draft with 0 behind both. */
    all = measured_of(p.folder[0], p.folder[1], p.text, "--gamma 1 --siblings 2 --temperature 0");
    near(fact(all, "places", "alpha"), 0.5, 0);
    near(fact(all, "places", "D_LK"), 0.5, 0);
    near(cell(all, "places", 0, "rate"), 0.5, 0);
    near(cell(all, "places", 1, "rate"), 0.5, 0);
    near(cell(all, "trees", 1, "tree"), 2, 0); /* both tokens below the root, one of which is right */
    near(cell(all, "trees", 1, "measured"), 2, 0);
    for (size_t k = 0; k < 4; k++) near(cell(all, "lenient", k, "alpha"), 0.5, 0);
    json_decref(all);
    remove_pair(&p);
}

/* Rates of a half: two children a node are best, and a whole level of them is one token more. Measured the same, since
 * the children are all tokens that there are. */
static void a_tree_of_all_tokens_is_gone_down_to_its_leaves(void **unused)
{
    static const coins c = {{0.5, 0.5}, {0.5, 0.5}};
    static const double tree[] = {1.5, 2, 2.5, 3.25};
    pair p;
    (void)unused;
    make_pair(&p, &c, "0");
    json_t *all = measured_of(p.folder[0], p.folder[1], p.text, "--gamma 1 --siblings 2 --tree 2-2");
    for (size_t i = 0; i < 4; i++) {
        const double drafts = (double)(1 << i), got = cell(all, "trees", i, "measured");
        near(cell(all, "trees", i, "drafts"), drafts, 0);
        near(cell(all, "trees", i, "tree"), tree[i], 1e-6);
        near(cell(all, "trees", i, "top_chain"), 2 - pow(0.5, drafts), 1e-6);
        near(got, tree[i], i == 1 ? 0 : 5 * cell(all, "trees", i, "error"));
    }
    near(cell(all, "tree", 0, "tokens"), 3, 1e-6);
    near(cell(all, "tree", 1, "tokens"), 2 - pow(0.5, 6), 1e-6);
    json_decref(all);
    remove_pair(&p);
}

/* A draft model that is the target: each draft is accepted. */
static void a_draft_that_is_the_target_is_always_accepted(void **unused)
{
    static const char *const options[] = {"--gamma 3", "--gamma 3 --temperature 0"};
    static const coins c = {{0.75, 0.125}, {0.75, 0.125}};
    pair p;
    (void)unused;
    make_pair(&p, &c, "0110");
    for (int i = 0; i < 2; i++) {
        json_t *all = measured_of(p.folder[0], p.folder[1], p.text, options[i]);
        near(fact(all, "places", "alpha"), 1, 1e-6);
        near(fact(all, "places", "D_LK"), 0, 0);
        near(cell(all, "places", 2, "kseq"), 1, 1e-6);
        near(cell(all, "places", 2, "factor"), 1, 1e-6);
        for (size_t k = 0; k < 4; k++) near(cell(all, "lenient", k, "alpha"), 1, 1e-6);
        /* No step counts that the budget cuts. */
        for (size_t k = 0; k < 3; k++) near(cell(all, "measured", k, "measured"), (double)k + 2, 0);
        near(cell(all, "depths", 2, "measured"), 1, 0);
        near(cell(all, "chain", 3, "tokens"), 4, 1e-5);
        near(cell(all, "chain", 1, "operations"), 3.0 / 2, 1e-5); /* as many parameters: (1 + 2)/2 */
        json_decref(all);
    }
    remove_pair(&p);
}

/* Lookahead with N = 4 on a target that repeats one token: three steps fill the window and find nothing, and each later
 * one accepts three tokens: 131 tokens in 35 steps. Where the token is drawn with chance 3/4, a candidate has it
 * three times. */
static void lookahead_is_measured_with_its_f(void **unused)
{
    static const coins c = {{0.75, 0.75}, {0.5, 0.5}};
    pair p;
    (void)unused;
    make_pair(&p, &c, "001");
    json_t *all = measured_of(p.folder[0], p.folder[1], p.text, "--gamma 1 --window 3 --ngram 4 --temperature 0");
    near(fact(all, "found", "alpha_of_candidates"), 1, 0);
    near(fact(all, "found", "found"), 35.0 / 32, 1e-12);
    near(cell(all, "found", 0, "measured"), 131.0 / 35, 1e-12);
    near(cell(all, "found", 0, "by_found"), 131.0 / 35, 1e-12);
    near(cell(all, "found", 0, "by_candidates"), 131.0 / 35, 1e-12);
    near(cell(all, "batch", 0, "steps"), 3 * 4, 0);
    near(cell(all, "batch", 1, "steps"), 32 * 4, 0);
    near(cell(all, "lookahead", 2, "S"), 131.0 / 35, 1e-12); /* N = 4 within the same 18 rows */
    near(cell(all, "lookahead", 2, "rows"), 18, 0);
    json_decref(all);
    all = measured_of(p.folder[0], p.folder[1], p.text,
                      "--gamma 1 --window 3 --ngram 4 --pool 1 --prompts 32 --rows 40");
    const double alpha = fact(all, "found", "alpha_of_candidates"), f = fact(all, "found", "found");
    near(alpha, 0.75, 5 * sqrt(0.1875 / cell(all, "batch", 1, "steps")));
    near(cell(all, "batch", 1, "measured"), 1 + 0.75 + 0.5625 + 0.421875, 5 * cell(all, "batch", 1, "error"));
    near(cell(all, "found", 0, "by_candidates"), 1 + (alpha + pow(alpha, 2) + pow(alpha, 3)) / f, 1e-9);
    near(cell(all, "found", 0, "by_found"), cell(all, "found", 0, "by_candidates"), 1e-9); /* b = min(W, G) = 1 */
    near(cell(all, "found", 0, "measured"), cell(all, "found", 0, "by_candidates"),
         5 * cell(all, "found", 0, "error"));
    near(cell(all, "scaling", 5, "rows"), 40, 0);
    json_decref(all);
    remove_pair(&p);
}

/* A time is not held against a number: it is there, with its spread, and moves no figure if costs are given. */
static void costs_are_measured_with_their_spread(void **unused)
{
    static const coins c = {{0.75, 0.25}, {0.5, 0.75}};
    pair p;
    (void)unused;
    make_pair(&p, &c, "01");
    json_t *all = measured_of(p.folder[0], p.folder[1], p.text, "--gamma 2");
    for (size_t i = 0; i < 2; i++) {
        assert_true(cell(all, "cost", i, "low") > 0);
        assert_true(cell(all, "cost", i, "low") <= cell(all, "cost", i, "median"));
        assert_true(cell(all, "cost", i, "median") <= cell(all, "cost", i, "high"));
    }
    assert_true(fact(all, "cost", "forward_ms") > 0);
    near(cell(all, "cost", 1, "rows"), 3, 0);
    const double alpha = fact(all, "places", "alpha"), tokens = 1 + alpha + alpha * alpha;
    near(cell(all, "chain", 2, "walltime"), tokens / (1 + 2 * cell(all, "cost", 0, "median")), 1e-9);
    assert_true(fact(all, "cost", "best_gamma_at_high") <= fact(all, "cost", "best_gamma"));
    assert_true(fact(all, "cost", "best_gamma") <= fact(all, "cost", "best_gamma_at_low"));
    json_decref(all);
    all = measured_of(p.folder[0], p.folder[1], p.text, "--gamma 2 --cost 0.25 --row-cost 0 --operations 0");
    near(cell(all, "chain", 2, "walltime"), tokens / 1.5, 1e-9);
    near(cell(all, "chain", 2, "with_rows"), tokens / 1.5, 1e-9);
    near(cell(all, "chain", 2, "operations"), 3 / tokens, 1e-9);
    json_decref(all);
    remove_pair(&p);
}

/* ---- The trained pair. ----------------------------------------------------------------- */

/* More siblings and more lenience accept more, at most all; rates fall with the rank; a tree is no worse than a chain
 * of its likeliest tokens. */
static void check_levels(const json_t *all)
{
    for (size_t k = 1; k < 4; k++) {
        assert_true(cell(all, "places", k, "kseq") >= cell(all, "places", k - 1, "kseq"));
        assert_true(cell(all, "places", k, "kseq") >= cell(all, "places", k, "kseq_at_K"));
        assert_true(cell(all, "places", k, "rate") < cell(all, "places", k - 1, "rate"));
        assert_true(cell(all, "lenient", k, "alpha") >= cell(all, "lenient", k - 1, "alpha"));
    }
    assert_true(cell(all, "places", 3, "top_onehot") < 1);
    for (size_t i = 0; i < 6; i++) {
        assert_true(cell(all, "trees", i, "tree") >= cell(all, "trees", i, "top_chain") - 1e-12);
        near(cell(all, "trees", i, "measured"), cell(all, "trees", i, "tree"), 0.25 * cell(all, "trees", i, "tree"));
    }
}

/* Steps by their candidates make up all steps: their number, their tokens, and f. */
static void check_candidates(const json_t *all)
{
    double steps = 0, tokens = 0;
    for (size_t b = 0; b <= 3; b++) {
        const double n = cell(all, "batch", b, "steps");
        steps += n, tokens += n > 0 ? n * cell(all, "batch", b, "measured") : 0;
    }
    near(cell(all, "found", 0, "measured"), tokens / steps, 1e-9);
    near(fact(all, "found", "found"), steps / (steps - cell(all, "batch", 0, "steps")), 1e-9);
    near(cell(all, "batch", 0, "measured"), 1, 0);
    near(cell(all, "found", 0, "measured"), cell(all, "found", 0, "by_candidates"), 0.5);
}

/* Along a text alpha is that of docs/models.md within a few hundredths; each table agrees with the others. */
static void the_trained_pair_is_measured(void **unused)
{
    static const char *const options[] = {"--gamma 3 --window 3 --ngram 4",
                                          "--gamma 3 --window 3 --ngram 4 --temperature 0"};
    char text[] = "/tmp/assay-plan-XXXXXX";
    (void)unused;
    make_text(text);
    for (int i = 0; i < 2; i++) {
        json_t *all = measured(text, options[i]);
        const double alpha = fact(all, "measured", "alpha"), variance = fact(all, "measured", "variance_of_beta"),
                     s1 = cell(all, "depths", 0, "measured"), s2 = cell(all, "depths", 1, "measured"),
                     s3 = cell(all, "depths", 2, "measured");
        near(alpha, 0.74, 0.08);
        if (i == 1) near(variance, alpha * (1 - alpha), 1e-12); /* beta is 0 or 1 */
        if (i == 0) assert_true(variance > 0 && variance < alpha * (1 - alpha));
        near(cell(all, "measured", 2, "formula"), 1 + alpha + alpha * alpha + alpha * alpha * alpha, 1e-12);
        near(cell(all, "depths", 0, "with_covariance"), alpha, 1e-12);
        /* Neighbours are alike, but not the same: a correlation between 0 and a half; and so on behind them. */
        const double covariance = fact(all, "measured", "covariance_of_neighbours");
        assert_true(covariance > 0 && covariance < variance / 2);
        near(cell(all, "depths", 2, "with_covariance") / cell(all, "depths", 1, "with_covariance"), alpha + 0.03, 0.03);
        near(cell(all, "depths", 1, "with_covariance") - alpha * alpha,
             fact(all, "measured", "covariance_of_neighbours"), 1e-12);
        near(cell(all, "measured", 2, "measured"), 1 + s1 + s2 + s3, 1e-12);
        near(cell(all, "depths", 1, "alpha_i"), s2 / s1, 1e-12);
        near(cell(all, "chain", 3, "tokens"), cell(all, "measured", 2, "formula"), 1e-12);
        near(cell(all, "measured", 2, "measured"), cell(all, "measured", 2, "formula"), 0.4);
        near(fact(all, "places", "alpha"), alpha, 0);
        near(fact(all, "places", "D_LK"), 1 - alpha, 1e-6);
        near(cell(all, "lenient", 0, "alpha"), alpha, 1e-12);
        near(cell(all, "places", 0, "kseq"), alpha, 1e-12);
        check_levels(all);
        /* 2.4 and 0.1 million parameters. */
        near(cell(all, "chain", 1, "operations") * (1 + alpha) - 2, 0.05, 0.03);
        if (i == 1) near(cell(all, "places", 0, "rate"), alpha, 0); /* one draft, be it drawn or the likeliest */
        check_candidates(all);
        json_decref(all);
    }
    unlink(text);
}

static void a_pair_that_does_not_fit_is_refused(void **unused)
{
    char line[1000];
    (void)unused;
    snprintf(line, sizeof line, "plan --measure %s/vectors/models/target %s/vectors/models/draft %s", source, source,
             temporary);
    FILE *f = fopen(temporary, "w");
    assert_non_null(f);
    fputs("In the beginning", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(assay(line, both), 2);
    assert_says("has 16 tokens; give at least 2048");
    snprintf(line, sizeof line, "plan --measure %s/vectors/models/target %s/vectors/models/draft /no/such/text", source,
             source);
    assert_int_equal(assay(line, both), 2);
    assert_says("cannot read /no/such/text: No such file");
    snprintf(line, sizeof line, "plan --measure %s/vectors/models/target /no/such/draft %s", source, temporary);
    assert_int_equal(assay(line, both), 2);
    assert_says("/no/such/draft");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_meaning_is_refused),
        cmocka_unit_test(figures_are_those_of_the_sources),
        cmocka_unit_test(sizes_fit_a_budget),
        cmocka_unit_test(a_tree_stands_beside_its_chain),
        cmocka_unit_test(curves_have_a_disc_a_value),
        cmocka_unit_test(places_have_the_values_of_a_hand),
        cmocka_unit_test(a_tree_of_all_tokens_is_gone_down_to_its_leaves),
        cmocka_unit_test(a_draft_that_is_the_target_is_always_accepted),
        cmocka_unit_test(lookahead_is_measured_with_its_f),
        cmocka_unit_test(costs_are_measured_with_their_spread),
        cmocka_unit_test(the_trained_pair_is_measured),
        cmocka_unit_test(a_pair_that_does_not_fit_is_refused),
    };
    if (argc != 3) return 2;
    program = argv[1], source = argv[2];
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
