/* `assay decode` and `assay logits` from outside, on the trained pair. argv[1] is the program
 * `assay`, argv[2] the page that shows what it prints. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <jansson.h>

#include "tests/run/command.h"
#include "tests/scale.h"

static const char *page;
static const char text_alone[] = "2>/dev/null", rest_alone[] = "2>&1 >/dev/null";

/* -- What is refused ----------------------------------------------------------------------- */

static void what_has_no_meaning_is_refused(void **unused)
{
    static const struct {
        const char *arguments, *says;
    } list[] = {
        {"decode", "one of --prompt, --prompt-file and --tokens"},
        {"decode --prompt a --tokens 1", "one of --prompt"},
        {"decode --prompt a --method medusa", "jacobi|lookahead|lookup"},
        {"decode --prompt a --rule lenient", "chain|match|onehot"},
        {"decode --prompt a --gamma 3", "--gamma has no meaning with --method ar"},
        {"decode --prompt a --draft x", "--draft has no meaning with --method ar"},
        {"decode --prompt a --top-k 5", "--top-k has no meaning at temperature 0"},
        {"decode --prompt a --seed 5", "--seed has no meaning at temperature 0"},
        {"decode --prompt a --temperature nan", "T must be a number from 0"},
        {"decode --prompt a --temperature", "T is missing"},
        {"decode --prompt a --gamma -1 --method speculative",
         "N must be a whole number from 0 to 255"},
        {"decode --prompt a --method jacobi --gamma 3",
         "--gamma has no meaning with --method jacobi"},
        {"decode --prompt a --method lookahead --block 3", "--block has no meaning with"},
        {"decode --prompt a --window 3", "--window has no meaning with --method ar"},
        {"decode --prompt a --method lookahead --preset vllm",
         "paper, lade, llamacpp and trtllm"},
        {"decode --prompt a --method lookup --preset paper", "original and hf"},
        {"decode --prompt a --method lookahead --switches bonus=no,key=wrong",
         "key=wrong is unknown"},
        {"decode --prompt a --method lookahead --switches key=stale", "key stale"},
        {"decode --prompt a --method lookup --switches bonus=no",
         "bonus=no is unknown; chapter 9"},
        {"decode --prompt a --method lookup --given 1", "--given has no meaning with"},
        {"decode --prompt a --method lookup --stop block", "--stop has no meaning with --method lookup"},
        {"decode --prompt a --method jacobi --init pad --given 1",
         "--init has no meaning with"},
        {"decode --prompt a --method jacobi --given 258", "--given: token 0 is \"258\""},
        {"decode --prompt a --method lookahead --given ,", "at least one id"},
        {"decode --prompt a --method lookahead --given 1 --switches init=constant",
         "init has no meaning with --given"},
        {"decode --prompt a --method lookahead --ngram 1", "N 1"},
        {"decode --prompt a --method jacobi --init zero", "pad, last, prompt and vocabulary"},
        {"decode --prompt a --method jacobi --temperature 1",
         "jacobi decodes at temperature 0 only"},
        {"decode --prompt a --method lookahead --preset trtllm --temperature 1",
         "accept_window decodes at temperature 0 only"},
        {"decode --prompt a --method lookahead --temperature 1 --rule match", "the rule match"},
        {"decode --prompt a --method speculative --tree 3", "--tree has no meaning with --method speculative"},
        {"decode --prompt a --method tree --gamma 3", "--gamma has no meaning with --method tree"},
        {"decode --prompt a --method tree --tree 3-x", "tree \"3-x\": give children a node by level"},
        {"decode --prompt a --method tree --tree 1,0", "node 1 has parent 1"},
        {"decode --prompt a --method tree --siblings some", "iid, without or top"},
        {"decode --prompt a --method tree --tree sequoia:9", "needs --rates"},
        {"decode --prompt a --method tree --tree sequoia:9 --rates 0.5,", "needs --rates"},
        {"decode --prompt a --method tree --tree sequoia:9 --rates 0.5,2", "rate 2 is 2"},
        {"decode --prompt a --method tree --tree sequoia:9.5 --rates 0.5", "sequoia:M or"},
        {"decode --prompt a --method tree --tree sequoia:9,2 --rates 0.5", "no tree of 2 levels"},
        {"decode --prompt a --method tree --tree 3 --rates 0.5", "--rates has no meaning with --tree 3"},
        {"decode --prompt a --method tree --tree dynamic:3,3", "dynamic:K,DEPTH,M"},
        {"decode --prompt a --method tree --tree dynamic:3,0,3", "0 levels"},
        {"decode --prompt a --method tree --tree dynamic:3,3,7 --siblings iid", "--siblings has no meaning with"},
        {"decode --prompt a --method tree --temperature 1 --tree dynamic:3,3,7 --rule recursive",
         "a dynamic tree (fixed, LAW-07) does not go with the rule recursive"},
        {"decode --prompt a --method tree --temperature 1 --siblings top --rule kseq",
         "a tree of fixed siblings (LAW-07) does not go with the rule kseq"},
        {"decode --prompt a --method tree --temperature 1 --siblings without --rule single",
         "a tree of siblings without replacement (LAW-07) does not go with the rule single"},
        {"decode --prompt a --method tree --temperature 1 --rule chain", "the rule chain"},
        {"decode --prompt a --suffixes 3", "--suffixes has no meaning with --method ar"},
        {"decode --prompt a --method lookahead --warm x", "--warm has no meaning with --method lookahead"},
        {"decode --prompt a --method ouroboros --pool 3", "--pool has no meaning with --method ouroboros"},
        {"decode --prompt a --method ouroboros --temperature 1 --rule match", "--rule has no meaning with"},
        {"decode --prompt a --method ouroboros --preset lade", "--preset lade is unknown; there are paper and code"},
        {"decode --prompt a --method ouroboros --switches inspire=tail,bonus=no", "bonus=no is unknown; chapter 11"},
        {"decode --prompt a --method ouroboros --switches init=given", "--given is init=given"},
        {"decode --prompt a --method ouroboros --given 1 --switches init=prompt", "init has no meaning with --given"},
        {"decode --prompt a --method ouroboros --given 258", "--given: token 0 is \"258\""},
        {"decode --prompt a --method ouroboros --given ,", "at least one id"},
        {"decode --prompt a --method ouroboros --ngram 1", "N 1"},
        {"decode --prompt a --method ouroboros --suffixes 4097", "K must be a whole number from 0 to 4096"},
        {"decode --prompt a --method ouroboros --draft /no/such/folder", "/no/such/folder"},
        {"decode --prompt a --method ouroboros --warm /no/such/file", "cannot read /no/such/file"},
        {"decode --tokens 1 --method ouroboros --warm /etc/passwd", "/etc/passwd: token 0 is"},
        {"decode --prompt a --nonsense", "unknown option --nonsense"},
        {"decode --tokens 1,x", "token 1 is \"x\""},
        {"decode --tokens 1,258", "an id from 0 to 257"},
        {"decode --tokens ,", "at least one id"},
        {"decode --prompt-file /no/such/file", "/no/such/file"},
        {"decode --prompt a --model /no/such/folder", "/no/such/folder"},
        {"decode --prompt a --max-new 1000000", "the model has"},
        {"decode --prompt a --max-new 4 --json /no/such/folder/x", "/no/such/folder/x"},
        {"logits", "assay logits: --tokens FILE is missing"},
        {"logits --tokens /no/such/file --output x", "/no/such/file"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (assay(list[i].arguments, both) != 2) fail_msg("%s: %s", list[i].arguments, output);
        assert_says(list[i].says);
    }
}

/* -- What is printed ----------------------------------------------------------------------- */

static void speculative_text_is_plain_text(void **unused)
{
    static char plain[sizeof output];
    (void)unused;
    assert_int_equal(assay("decode --prompt 'In the beginning' --max-new 60", text_alone), 0);
    assert_int_equal(strlen(output), 61); /* and the end of the line */
    strcpy(plain, output);
    for (int gamma = 0; gamma <= 5; gamma += 5) {
        char arguments[200];
        snprintf(arguments, sizeof arguments,
                 "decode --prompt 'In the beginning' --max-new 60 --method speculative "
                 "--gamma %d --threads 2",
                 gamma);
        assert_int_equal(assay(arguments, text_alone), 0);
        assert_string_equal(output, plain);
    }
}

/* Longer than a forward of either model. */
static void a_long_prompt_is_read_in_pieces(void **unused)
{
    static char plain[sizeof output];
    char arguments[200];
    (void)unused;
    FILE *f = fopen(temporary, "w");
    assert_non_null(f);
    for (int i = 0; i < 70; i++) fputs("In the beginning ", f);
    assert_int_equal(fclose(f), 0);
    snprintf(arguments, sizeof arguments, "decode --max-new 20 --prompt-file %s", temporary);
    assert_int_equal(assay(arguments, text_alone), 0);
    assert_int_equal(strlen(output), 21);
    strcpy(plain, output);
    strcat(arguments, " --method speculative");
    assert_int_equal(assay(arguments, text_alone), 0);
    assert_string_equal(output, plain);
}

/* Tokens of a text that is one of many. */
static int some_tokens(void)
{
    return only_paths() ? 12 : 60;
}

/* Nor does any method without a draft model change it, whatever its parameters. */
static void draft_free_text_is_plain_text(void **unused)
{
    static const char *const methods[] = {
        "jacobi",
        "jacobi --block 5 --init prompt --seed 3",
        "jacobi --block 5 --init vocabulary --seed 3",
        "jacobi --block 5 --given 32,116,104",
        "lookup --switches partial=no,cut_at_eos=no --gamma 4",
        "lookahead --given 32,116,104,101",
        "lookup",
        "lookup --preset original --gamma 3 --ngram 2",
        "lookahead",
        "lookahead --preset lade --window 3 --ngram 2 --pool 0",
        "lookahead --preset llamacpp",
        "lookahead --preset trtllm",
        "lookahead --switches shift=abspad,bonus=no,pool=ring"};
    static char plain[sizeof output];
    (void)unused;
    char arguments[200];
    snprintf(arguments, sizeof arguments, "decode --prompt 'In the beginning' --max-new %d", some_tokens());
    assert_int_equal(assay(arguments, text_alone), 0);
    strcpy(plain, output);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        snprintf(arguments, sizeof arguments,
                 "decode --prompt 'In the beginning' --max-new %d --method %s", some_tokens(), methods[i]);
        assert_int_equal(assay(arguments, text_alone), 0);
        assert_string_equal(output, plain);
    }
}

/* Nor does any tree; and with the rule match none does under the seed of plain decoding. */
static void text_of_trees_is_plain_text(void **unused)
{
    static const char *const trees[] = {"",
                                        "--siblings iid --seed 5",
                                        "--siblings without",
                                        "--tree 0,0,1,1,2",
                                        "--tree sequoia:12,4 --rates 0.6,0.2,0.1 --siblings top",
                                        "--tree sequoia:12,4 --rates 0.6,0.2,0.1 --siblings iid",
                                        "--tree dynamic:3,4,9"};
    static char plain[2][sizeof output];
    char arguments[300];
    (void)unused;
    for (int T = 0; T < 2; T++) {
        const char *warm = T ? " --temperature 1 --seed 5" : "";
        snprintf(arguments, sizeof arguments, "decode --prompt 'In the beginning' --max-new %d%s", some_tokens(), warm);
        assert_int_equal(assay(arguments, text_alone), 0);
        strcpy(plain[T], output);
        for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
            snprintf(arguments, sizeof arguments,
                     "decode --prompt 'In the beginning' --max-new %d --method tree %s%s%s", some_tokens(), trees[i],
                     warm, T ? " --rule match" : "");
            assert_int_equal(assay(arguments, text_alone), 0);
            assert_string_equal(output, plain[T]);
        }
    }
}

/* Nor does Ouroboros, whatever its pool has from requests before; above T = 0 under the seed of plain decoding. */
static void text_of_ouroboros_is_plain_text(void **unused)
{
    static const char *const ways[] = {"",
                                       "--preset code",
                                       "--gamma 0",
                                       "--gamma 9 --window 3 --ngram 2 --suffixes 5",
                                       "--switches draft_bonus=no,overrun=no,refine=newest,refine_refused=few",
                                       "--switches inspire=none,refine=none --suffixes 0",
                                       "--given 32,116,104,101",
                                       "--warm WARM"};
    static char plain[2][sizeof output];
    char arguments[400];
    (void)unused;
    FILE *f = fopen(temporary, "w");
    assert_non_null(f);
    fputs("And the LORD said\n\nIn the beginning", f);
    assert_int_equal(fclose(f), 0);
    for (int T = 0; T < 2; T++) {
        const char *drawn = T ? " --temperature 1 --seed 5" : "";
        snprintf(arguments, sizeof arguments, "decode --prompt 'In the beginning' --max-new %d%s", some_tokens(),
                 drawn);
        assert_int_equal(assay(arguments, text_alone), 0);
        strcpy(plain[T], output);
        for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
            const bool warm = strstr(ways[i], "WARM") != NULL;
            snprintf(arguments, sizeof arguments,
                     "decode --prompt 'In the beginning' --max-new %d --method ouroboros %.*s%s%s",
                     some_tokens(), (int)strlen(ways[i]) - 4 * warm, ways[i], warm ? temporary : "", drawn);
            assert_int_equal(assay(arguments, text_alone), 0);
            assert_string_equal(output, plain[T]);
        }
    }
}

/* Forwards in the figures of the last run. */
static int forwards(void)
{
    const char *at = strstr(output, " tokens, ");
    int n = 0;
    assert_non_null(at);
    assert_int_equal(sscanf(at, " tokens, %d forwards", &n), 1);
    return n;
}

/* The same text twice: its phrases are in the pool the second time. */
static void a_warm_pool_saves_forwards(void **unused)
{
    static const char cold[] = "decode --prompt And --max-new 80 --method ouroboros --seed 3";
    char arguments[200];
    (void)unused;
    FILE *f = fopen(temporary, "w");
    assert_non_null(f);
    fputs("And\n", f);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(assay(cold, rest_alone), 0);
    const int due = forwards();
    snprintf(arguments, sizeof arguments, "%s --warm %s", cold, temporary);
    assert_int_equal(assay(arguments, rest_alone), 0);
    if (forwards() >= due) fail_msg("%d forwards cold, and %d warm", due, forwards());
}

/* Steps of the JSON, the trace and the last lines tell of the same rounds. */
static void the_rounds_of_ouroboros_add_up(void **unused)
{
    char arguments[300];
    json_error_t e;
    json_int_t sum[6] = {0}, printed[6];
    (void)unused;
    snprintf(arguments, sizeof arguments,
             "decode --prompt 'And it came to pass' --max-new 60 --method ouroboros --window 6 --ngram 4 --gamma 3 "
             "--trace --json %s",
             temporary);
    assert_int_equal(assay(arguments, both), 0);
    const char *at = strstr(output, "\ndrafts: ");
    assert_non_null(at);
    assert_int_equal(sscanf(at,
                            "\ndrafts: %" JSON_INTEGER_FORMAT " in %" JSON_INTEGER_FORMAT " draft steps, accepted %"
                            JSON_INTEGER_FORMAT "; n-grams inspired %" JSON_INTEGER_FORMAT ", suffixes refined %"
                            JSON_INTEGER_FORMAT "\nsuffixes: %" JSON_INTEGER_FORMAT,
                            &printed[0], &printed[1], &printed[2], &printed[3], &printed[4], &printed[5]),
                     6);
    json_t *root = json_load_file(temporary, 0, &e);
    assert_non_null(root);
    const json_t *steps = json_object_get(root, "steps");
    json_int_t position = 0;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        json_t *s = json_array_get(steps, i), *drafts = json_object_get(s, "drafts"),
               *suffixes = json_object_get(s, "suffixes"), *run = json_object_get(s, "run");
        const json_int_t n = (json_int_t)json_array_size(drafts),
                         accepted = json_integer_value(json_object_get(s, "accepted"));
        assert_int_equal(json_integer_value(json_object_get(s, "position")), position);
        position += json_integer_value(json_object_get(s, "emitted"));
        for (json_int_t k = 0; k < accepted && k < n; k++)
            assert_true(json_equal(json_array_get(drafts, (size_t)k), json_array_get(run, (size_t)k)));
        for (size_t k = 0; k < json_array_size(suffixes); k++)
            assert_int_equal(json_array_size(json_array_get(suffixes, k)), 3);
        assert_int_equal(json_array_size(json_object_get(s, "window")) > 0, i > 0 || n > 0);
        sum[0] += n, sum[1] += json_integer_value(json_object_get(s, "draft_steps"));
        sum[2] += accepted < n ? accepted : n;
        sum[3] += json_integer_value(json_object_get(s, "inspired"));
        sum[4] += json_integer_value(json_object_get(s, "refined"));
        sum[5] += (json_int_t)json_array_size(suffixes);
    }
    assert_int_equal(position, 60);
    for (int i = 0; i < 6; i++) assert_int_equal(sum[i], printed[i]);
    for (int i = 0; i < 6; i++) assert_true(sum[i] > 0 || i == 3);
    assert_says("draft steps\n  suffixes ");
    json_decref(root);
}

/* Every rule of drawn trees decodes; depths and ranks add up to what was accepted. */
static void a_tree_shows_depths_and_ranks(void **unused)
{
    static const char *const rules[] = {"recursive", "single", "kseq", "target", "onehot"};
    (void)unused;
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        char arguments[200];
        double share, sum = 0;
        int drafted = 0, accepted = 0, reached, read;
        snprintf(arguments, sizeof arguments,
                 "decode --prompt And --max-new 60 --method tree --siblings iid --temperature 1 --rule %s --trace",
                 rules[i]);
        assert_int_equal(assay(arguments, rest_alone), 0);
        assert_says("step 0 at 0: root 'd', 16 rows\n");
        const char *at = strstr(output, "drafts: ");
        assert_non_null(at);
        assert_int_equal(sscanf(at, "drafts: %d, accepted %d", &drafted, &accepted), 2);
        for (int d = 1; d <= 3; d++) {
            char depth[20];
            snprintf(depth, sizeof depth, "depth %2d:", d);
            at = strstr(at, depth);
            assert_non_null(at);
            int ranks = 0;
            for (at += strlen(depth); sscanf(at, " %lf of %d%n", &share, &reached, &read) == 2; at += read)
                sum += share * reached, ranks++;
            assert_int_equal(ranks, 4 - d);
        }
        if (accepted < 10 || !(sum > accepted - 0.5 && sum < accepted + 0.5))
            fail_msg("%d accepted, %g by depth and rank, in:\n%s", accepted, sum, output);
    }
}

static void a_seed_gives_its_text_again(void **unused)
{
    static char first[sizeof output];
    static const char arguments[] = "decode --prompt And --max-new 40 --method speculative "
                                    "--temperature 1 --seed ";
    char line[300];
    (void)unused;
    for (int i = 0; i < 3; i++) {
        snprintf(line, sizeof line, "%s%d", arguments, i == 2 ? 8 : 7);
        assert_int_equal(assay(line, text_alone), 0);
        if (i == 0) strcpy(first, output);
        assert_int_equal(strcmp(first, output) == 0, i < 2);
    }
}

static void figures_and_steps_go_to_standard_error(void **unused)
{
    (void)unused;
    assert_int_equal(assay("decode --prompt And --max-new 20 --method speculative "
                           "--temperature 1 --trace",
                           rest_alone),
                     0);
    assert_says("step 0 at 0: drafts");
    assert_says("20 tokens");
    assert_says("mean of sum min(p, q)");
}

/* On one terminal: all steps, each a line of its own, then the whole text, then the figures. */
static void a_trace_leaves_the_text_in_one_piece(void **unused)
{
    static char text[sizeof output];
    static const char arguments[] = "decode --prompt 'In the beginning' --max-new 60 --trace "
                                    "--method speculative";
    (void)unused;
    assert_int_equal(assay(arguments, text_alone), 0);
    strcpy(text, output);
    assert_int_equal(strlen(text), 61);
    assert_int_equal(assay(arguments, both), 0);
    char *at = output;
    for (int step = 0; strncmp(at, "step ", 5) == 0; step++) {
        assert_int_equal(atoi(at + 5), step);
        at = strchr(at, '\n') + 1;
    }
    assert_true(at > output);
    assert_memory_equal(at, text, 61);
    assert_memory_equal(at + 61, "60 tokens, ", 11);
    assert_int_equal(assay("decode --prompt And --max-new 1", both), 0);
    assert_says("1 token, 1 forward, ");
}

/* docs/models.md: each line "$ build/assay COMMAND" and what it prints, to the last byte. */
static void the_page_shows_what_is_printed(void **unused)
{
    static const char prompt[] = "$ build/assay ";
    static char whole[1 << 16];
    char arguments[400];
    int shown = 0;
    (void)unused;
    FILE *f = fopen(page, "r");
    assert_non_null(f);
    whole[fread(whole, 1, sizeof whole - 1, f)] = '\0';
    fclose(f);
    for (char *at = strstr(whole, prompt); at; at = strstr(at, prompt), shown++) {
        at += strlen(prompt);
        snprintf(arguments, sizeof arguments, "%.*s", (int)strcspn(at, "\n"), at);
        assert_int_equal(assay(arguments, text_alone), 0);
        at = strchr(at, '\n') + 1;
        const size_t n = strlen(output);
        if (strncmp(at, output, n) || (at[n] != '$' && at[n] != '`'))
            fail_msg("%s prints:\n%s", arguments, output);
    }
    assert_int_equal(shown, 3);
}

static void the_json_counts_what_the_text_shows(void **unused)
{
    char arguments[200];
    json_error_t e;
    (void)unused;
    snprintf(arguments, sizeof arguments,
             "decode --tokens 256,65,110,100 --max-new 30 --method speculative --json %s",
             temporary);
    assert_int_equal(assay(arguments, text_alone), 0);
    json_t *root = json_load_file(temporary, 0, &e);
    assert_non_null(root);
    const json_t *tokens = json_object_get(root, "tokens"),
                 *steps = json_object_get(root, "steps");
    assert_int_equal(json_array_size(tokens), 30);
    assert_int_equal(json_array_size(steps),
                     json_integer_value(json_object_get(root, "forwards")));
    for (size_t i = 0; i < 30; i++)
        assert_int_equal(json_integer_value(json_array_get(tokens, i)),
                         (unsigned char)output[i]);
    json_int_t accepted = 0;
    for (size_t i = 0; i < json_array_size(steps); i++)
        accepted += json_integer_value(json_object_get(json_array_get(steps, i), "accepted"));
    assert_int_equal(accepted, json_integer_value(json_object_get(root, "accepted")));
    json_decref(root);
}

/* Each step of the JSON: the run begins below the root, the window and the pool are there. */
static void the_json_of_a_lookahead_holds_together(void **unused)
{
    char arguments[300];
    json_error_t e;
    json_int_t position = 0;
    (void)unused;
    snprintf(arguments, sizeof arguments,
             "decode --prompt 'And it came to pass' --max-new 40 --method lookahead --window 4 "
             "--ngram 3 --trace --json %s",
             temporary);
    assert_int_equal(assay(arguments, both), 0);
    assert_says("pool hits");
    assert_says("  window  0   . ");
    json_t *root = json_load_file(temporary, 0, &e);
    assert_non_null(root);
    const json_t *steps = json_object_get(root, "steps");
    int hits = 0;
    for (size_t i = 0; i < json_array_size(steps); i++) {
        json_t *s = json_array_get(steps, i), *rows = json_object_get(s, "rows"),
               *run = json_object_get(s, "run"), *path = json_object_get(s, "path");
        assert_int_equal(json_integer_value(json_object_get(s, "position")), position);
        position += json_integer_value(json_object_get(s, "emitted"));
        for (size_t k = 1; k < json_array_size(path); k++, hits++) {
            const size_t row = (size_t)json_integer_value(json_array_get(path, k));
            assert_true(json_equal(json_array_get(json_array_get(rows, row), 0),
                                   json_array_get(run, k - 1)));
        }
        assert_int_equal(json_array_size(json_object_get(s, "window")), 2);
        if (i > 1) assert_true(json_object_size(json_object_get(s, "pool")) > 0);
    }
    assert_int_equal(position, 40);
    assert_true(hits > 0);
    json_decref(root);
}

/* The greatest logit after the prompt is the greedy token. */
static void logits_rank_the_greedy_token(void **unused)
{
    enum { V = 258, N = 4 };
    static float logits[N + 1][V];
    char command[300];
    (void)unused;
    snprintf(command, sizeof command, "logits --tokens /dev/stdin --output %s", temporary);
    assert_int_equal(assay(command, "2>&1 <<'END'\n256 65 110 100\nEND\n"), 0);
    FILE *f = fopen(temporary, "rb");
    assert_non_null(f);
    assert_int_equal(fread(logits, sizeof logits[0], N + 1, f), N);
    fclose(f);
    int best = 0;
    for (int t = 1; t < V; t++) best = logits[N - 1][t] > logits[N - 1][best] ? t : best;
    assert_int_equal(assay("decode --tokens 256,65,110,100 --max-new 1", text_alone), 0);
    assert_int_equal((unsigned char)output[0], best);
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    program = argv[1];
    page = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_meaning_is_refused),
        cmocka_unit_test(speculative_text_is_plain_text),
        cmocka_unit_test(a_long_prompt_is_read_in_pieces),
        cmocka_unit_test(draft_free_text_is_plain_text),
        cmocka_unit_test(text_of_trees_is_plain_text),
        cmocka_unit_test(text_of_ouroboros_is_plain_text),
        cmocka_unit_test(a_warm_pool_saves_forwards),
        cmocka_unit_test(the_rounds_of_ouroboros_add_up),
        cmocka_unit_test(a_tree_shows_depths_and_ranks),
        cmocka_unit_test(a_seed_gives_its_text_again),
        cmocka_unit_test(figures_and_steps_go_to_standard_error),
        cmocka_unit_test(a_trace_leaves_the_text_in_one_piece),
        cmocka_unit_test(the_page_shows_what_is_printed),
        cmocka_unit_test(the_json_counts_what_the_text_shows),
        cmocka_unit_test(the_json_of_a_lookahead_holds_together),
        cmocka_unit_test(logits_rank_the_greedy_token),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
