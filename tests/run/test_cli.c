/* The program from outside: exit codes, usage errors, liars, replay, coverage. argv[1] is the
 * program `assay`, argv[2] the source folder. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "conformance/cli/clauses.h"
#include "conformance/suite/run.h"

static const char *program, *source;
static char output[1 << 18];

/* Runs a command through the shell; keeps what it prints. Returns its exit code. */
static int run_command(const char *command)
{
    char with_errors[4200];
    snprintf(with_errors, sizeof with_errors, "%s 2>&1", command);
    FILE *f = popen(with_errors, "r");
    assert_non_null(f);
    output[fread(output, 1, sizeof output - 1, f)] = '\0';
    const int status = pclose(f);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int assay(const char *arguments)
{
    char command[4096];
    snprintf(command, sizeof command, "'%s' %s", program, arguments);
    return run_command(command);
}

static void assert_says(const char *text)
{
    if (!strstr(output, text)) fail_msg("'%s' is missing in:\n%s", text, output);
}

/* -- Usage ------------------------------------------------------------------------------- */

static void usage_errors_exit_2_and_say_what_to_do(void **unused)
{
    static const struct {
        const char *arguments, *says;
    } list[] = {
        {"", "assay --help"},
        {"frobnicate", "unknown command frobnicate"},
        {"models export", "export needs a FOLDER"},
        {"models list here", "list takes no FOLDER"},
        {"models export /dev/null/models", "cannot make the folder /dev/null/models: Not a directory"},
        {"run --nonsense", "unknown option --nonsense"},
        {"run --levelsmoke", "unknown option"},
        {"run --level medium", "smoke, full or deep"},
        {"run --level", "LEVEL is missing; it must be smoke, full or deep"},
        {"run --seed tomorrow", "or today"},
        {"run --seed -1", "must be a whole number from 0"},
        {"run --seed 1x", "must be a whole number from 0"},
        {"run --seed 18446744073709551616", "must be a whole number from 0"},
        {"run --samples 999", "1000 to 1e9"},
        {"run --samples 2e3", "1000 to 1e9"},
        {"run --samples 1000000001", "1000 to 1e9"},
        {"run --alpha 0", "in (0, 1)"},
        {"run --alpha nan", "in (0, 1)"},
        {"run --timeout 0", "above 0, at most"},
        {"run --budget 0", "above 0, at most"},
        {"run --require lax", "hard-facts, replay, certificates, law, metamorphic, model-bits, "
                              "engine-tokens, engine-law, traces"},
        {"run --require engine", "engine-tokens"},
        {"run --jobs 0", "1 to 256"},
        {"run --iut ''", "SPEC must be one of ref gpu plugin:FILE.so"},
        {"run --iut nonsense", "SPEC must be one of ref gpu plugin:FILE.so"},
        {"run --iut plugin:", "SPEC must be one of ref gpu plugin:FILE.so"},
        {"run --iut mutant:", "SPEC must be one of ref gpu plugin:FILE.so"},
        {"run --iut exec:", "SPEC must be one of ref gpu plugin:FILE.so"},
        {"run --iut exec:true --iut-options x", "into the command itself"},
        {"run --iut-options x --iut exec:true", "into the command itself"},
        {"run --iut traces:", "SPEC must be one of ref gpu plugin:FILE.so"},
        {"run --iut traces:/no/such/file", "cannot read the traces /no/such/file"},
        {"run --traces /no/such/file", "cannot read the traces /no/such/file"},
        {"run --traces", "--traces: FILE is missing"},
        {"run --iut traces:a --traces b", "one file of traces is enough"},
        {"traces", "assay traces: COMMAND is missing; it must be write"},
        {"traces write", "assay traces: FILE is missing"},
        {"traces write /tmp/x --nonsense", "unknown option --nonsense"},
        {"traces write /tmp/x y", "a word too many: y"},
        {"traces write /tmp/x --iut mutant:NONE", "mutant:NONE has no traces"},
        {"run --waivers /no/such/file", "/no/such/file"},
        {"run --log /no/such/folder/log", "/no/such/folder/log"},
        {"run --json /no/such/folder/json", "/no/such/folder/json"},
        {"run --junit /no/such/folder/junit", "/no/such/folder/junit"},
        {"run --html /no/such/folder/html", "/no/such/folder/html"},
        {"ledger", "assay ledger: FILE is missing"},
        {"ledger /no/such/file", "cannot read the ledger"},
        {"ledger x --add y", "--add needs --digest TEXT"},
        {"ledger x --noise-is-new", "--noise-is-new belongs to --add REPORT"},
        {"ledger x --digest=", "--digest '': TEXT must be"},
        {"ledger x --digest '\t'", "1 to 200 printable ASCII characters"},
        {"ledger x --alpha 1", "in (0, 1)"},
        {"explain", "assay explain: WORD is missing"},
        {"explain NO-99", "NO-99"},
        {"bench", "it must be verify|cpu|speculative|lookahead|scaling|trees|ouroboros|gpu"},
        {"bench gpus", "gpus: PART must be verify|cpu"},
        {"bench speculative --seconds 1", "assay bench speculative: unknown option --seconds"},
        {"bench ouroboros --prompts 0", "P must be a whole number from 1 to 200"},
        {"bench ouroboros --only gamma", "methods|parts|switches|sizes|warm|matches"},
        {"bench trees --prompts 1", "P must be a whole number from 2 to 200"},
        {"bench verify --seconds 0", "above 0, at most"},
        {"bench cpu --seconds 0", "above 0, at most"},
        {"worker", "assay worker: SPEC is missing; it must be one of ref gpu"},
        {"coverage", "give one of --write FILE and --check FILE"},
        {"coverage --write a --check b", "give one of --write FILE and --check FILE"},
        {"interface --markup", "assay interface: unknown option --markup"},
        {"vectors", "it must be list|show|check|generate|flip"},
        {"vectors show", "show: ID is missing"},
        {"vectors list x", "list: a word too many: x"},
        {"vectors flip", "flip: --out FOLDER is missing"},
        {"mutants --look-alikes 3/3", "all or K/N with K < N"},
        {"mutants --level medium", "smoke, full or deep"},
        {"mutants --only=", "--only '': GLOB must be"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (assay(list[i].arguments) != EXIT_USAGE)
            fail_msg("%s: %s", list[i].arguments, output);
        assert_says(list[i].says);
    }
}

/* A copy of the program, beside which there is nothing, a stand-in, and what cannot be run. */
static void the_bench_of_a_gpu_is_another_program(void **unused)
{
    char folder[] = "/tmp/assay-bench-XXXXXX", command[4096];
    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "cp '%s' %s/assay && %s/assay bench gpu", program, folder,
             folder);
    assert_int_equal(run_command(command), EXIT_ERROR);
    assert_says("bench_gpu; it is built with nvcc");
    snprintf(command, sizeof command,
             "printf '#!/bin/sh\\necho given \"$@\"; exit 77' >%s/bench_gpu; "
             "%s/assay bench gpu",
             folder, folder);
    assert_int_equal(run_command(command), EXIT_ERROR);
    assert_says("cannot run");
    snprintf(command, sizeof command,
             "chmod +x %s/bench_gpu; %s/assay bench gpu --only rules --dry", folder, folder);
    assert_int_equal(run_command(command), 77);
    assert_says("given --only rules --dry\n");
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(run_command(command), 0);
}

/* A program without its plugins is a fault of the installation, not of what is tested. */
static void a_plugin_of_our_own_that_is_gone(void **unused)
{
    static const char *const specs[] = {"ref", "mutant:RESIDUAL_ABS", "mutant:NOBODY"};
    char folder[] = "/tmp/assay-alone-XXXXXX", command[4096];
    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "cp '%s' %s/assay", program, folder);
    assert_int_equal(run_command(command), 0);
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        snprintf(command, sizeof command, "%s/assay run --iut %s --level smoke", folder,
                 specs[i]);
        assert_int_equal(run_command(command), EXIT_ERROR);
        assert_says("the installation is not whole");
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(run_command(command), 0);
}

/* What is exported is what the suite itself asks about. */
static void models_are_exported(void **unused)
{
    static const char *const trained[] = {"target", "draft"};
    char folder[] = "/tmp/assay-test-XXXXXX", command[500];
    (void)unused;
    assert_non_null(mkdtemp(folder));
    snprintf(command, sizeof command, "models export %s", folder);
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(assay(command), 0);
        assert_says("six tokens");
    }
    for (int i = 0; i < 2; i++) {
        snprintf(command, sizeof command, "diff -r %s/vectors/models/%s %s/%s", source, trained[i],
                 folder, trained[i]);
        assert_int_equal(run_command(command), 0);
    }
    snprintf(command, sizeof command, "test -s %s/few/model.safetensors -a -s %s/fewer/config.json", folder, folder);
    assert_int_equal(run_command(command), 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    assert_int_equal(run_command(command), 0);
}

static void help_and_version_exit_0(void **unused)
{
    static const char *const commands[] = {
        "run",       "explain",       "decode",            "logits",
        "mutants",   "traces",        "vectors",           "bench",
        "bench cpu", "bench verify",  "bench speculative", "bench lookahead",
        "bench scaling", "plan", "bench trees", "bench ouroboros", "coverage",  "interface",     "worker",
        "ledger",    "models"};
    (void)unused;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        char arguments[100], usage[100];
        snprintf(arguments, sizeof arguments, "%s --help", commands[i]);
        snprintf(usage, sizeof usage, "usage: assay %s", commands[i]);
        if (assay(arguments) != 0) fail_msg("%s: %s", arguments, output);
        assert_says(usage);
    }
    assert_int_equal(assay("--help"), 0);
    assert_says("mutants");
    assert_int_equal(assay("run --help"), 0);
    assert_says("--waivers");
    assert_int_equal(assay("--version"), 0);
    assert_says("iut ABI 1");
}

static void values_may_follow_an_equals_sign(void **unused)
{
    (void)unused;
    assert_int_equal(assay("run --level=smoke --only='format.draw/*' --list"), 0);
    assert_says("assay: declared seconds of one core: format.draw 0.0142, all 0.0142\n");
    assert_says("format.draw/");
    assert_null(strstr(output, "format.verify/"));
}

const clause clause_list[] = {{0}}; /* nothing here looks a clause up */

static void a_clause_is_named_by_its_whole_id(void **unused)
{
    (void)unused;
    assert_true(clause_named("ACC-01 RES-02", "RES-02"));
    assert_false(clause_named("ACC-011 XRES-02", "ACC-01"));
    assert_false(clause_named("ACC-011 XRES-02", "RES-02"));
    assert_false(clause_named("ACC-01", "")); /* and it returns */
}

static void explain_knows_clauses_checks_cases_and_faults(void **unused)
{
    (void)unused;
    assert_int_equal(assay("explain ACC-02"), 0);
    assert_says("05-chain-speculative-decoding.md");
    assert_says("ACCEPT_LE");
    assert_int_equal(assay("explain ACC-01"), 0);
    assert_says("ref/verify/chain.c:");
    assert_says("conformance/oracle/law/chain_gmp.c:");
    assert_int_equal(assay("explain LAH-19"), 0); /* its heads say LAH-18 to LAH-21 */
    assert_says("ref/verify/walk.c");
    assert_int_equal(assay("explain 'GRD-*'"), 0);
    assert_says("GRD-03 (MUST)");
    assert_int_equal(assay("explain replay.edges"), 0);
    assert_says("kills");
    assert_int_equal(assay("explain replay.edges/dyadic-V3"), 0);
    assert_says("at level smoke");
    assert_int_equal(assay("explain ACCEPT_LE"), 0);
    assert_says("violates ACC-02");
}

/* -- Verdicts ---------------------------------------------------------------------------- */

static void the_reference_passes_and_a_fault_fails(void **unused)
{
    (void)unused;
    assert_int_equal(assay("run --level smoke --claims replay.edges"), EXIT_CONFORMANT);
    assert_says("CONFORMANT");
    assert_int_equal(assay("run --level smoke --claims replay.edges --iut mutant:ACCEPT_LE"),
                     EXIT_NOT_CONFORMANT);
    assert_says("NOT CONFORMANT");
}

/* The date of today stands in the replay line as a number. */
static void the_seed_of_today_is_a_date(void **unused)
{
    (void)unused;
    assay("run --level smoke --seed today --claims replay.edges --iut mutant:ACCEPT_LE");
    const char *seed = strstr(output, "--seed ");
    assert_non_null(seed);
    const long date = strtol(seed + strlen("--seed "), NULL, 10);
    assert_true(date > 20260000 && date < 30000000 && date % 100 >= 1 && date % 100 <= 31);
}

/* VER-05: the printed command, run as it stands, ends in the same failure of the same case. */
static void the_printed_command_replays_the_failure(void **unused)
{
    char detail[600], again[2048];
    (void)unused;
    assay("run --level smoke --seed 5 --claims replay.edges --iut mutant:ACCEPT_LE");
    char *replay = strstr(output, "\n    replay: ");
    assert_non_null(replay);
    *replay = '\0'; /* what stands before is the failing fact */
    snprintf(detail, sizeof detail, "%s", strrchr(output, '\n') + 1);
    replay += strlen("\n    replay: ");
    snprintf(again, sizeof again, "%.*s", (int)strcspn(replay, "\n"), replay);
    assert_int_equal(run_command(again), EXIT_NOT_CONFORMANT);
    assert_says("1 case, 0 passed, 1 fail");
    assert_says(detail);
}

/* Fewer samples see less, which is printed (STAT-04), and a replay takes as many. */
static void samples_are_as_many_as_asked(void **unused)
{
    (void)unused;
    assert_int_equal(assay("run --level smoke --only law.verify/V64-a0.3-g2"), EXIT_CONFORMANT);
    assert_says(" 20 k ");
    assert_null(strstr(output, "samples a case"));
    assert_int_equal(assay("run --level smoke --samples 2000 --only law.verify/V64-a0.3-g2"),
                     EXIT_CONFORMANT);
    assert_says(" 2000 ");
    assert_says("at most 2000 samples a case");
    assert_int_equal(assay("run --level smoke --samples 2000 --only 'law.verify/V64-*' "
                           "--iut mutant:RESIDUAL_FROM_P_OWN"),
                     EXIT_NOT_CONFORMANT);
    assert_says(" --samples 2000");
}

/* Its cases are not known before the IUT is (VER-11). */
static void a_check_of_drawn_cases_alone_is_selected(void **unused)
{
    (void)unused;
    assert_int_equal(assay("run --level smoke --claims law.long --quiet"), 0);
    assert_int_equal(assay("run --level smoke --only 'law.long/*' --quiet"), 0);
}

/* VER-01: a slip of whoever called it. That a run of no case is an ERROR: test_verdict.c. */
static void an_empty_selection_is_refused(void **unused)
{
    static const char *const list[] = {"run --only nothing-at-all",
                                       "run --only nothing-at-all --list",
                                       "run --level smoke --claims law.draw --only 'format.*'"};
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        if (assay(list[i]) != EXIT_USAGE) fail_msg("%s: %s", list[i], output);
        assert_says("select no case of level ");
        assert_says("`assay run --list --level ");
    }
}

/* VER-09: who started and then failed is not conformant; what is not there is a slip. */
static void what_does_not_open_has_its_exit_code(void **unused)
{
    static const struct {
        const char *iut;
        int code;
        const char *says;
    } list[] = {
        {"plugin:/no/such.so", EXIT_USAGE,
         "USAGE: the implementation did not open: plugin:/no/such.so"},
        {"mutant:NOBODY", EXIT_USAGE, "there is no mutant of the name NOBODY"},
        {"exec:/no/such/program", EXIT_USAGE, "/no/such/program"},
        {"exec:/dev/null", EXIT_USAGE, "/dev/null"},
        {"ref --iut-options colour=blue", EXIT_USAGE, "no option colour=blue"},
        {"plugin:/dev/null", EXIT_USAGE, "cannot load the plugin"},
        {"plugin:" PLUGINS "/plugin_refuses_claims.so", EXIT_NOT_CONFORMANT,
         "NOT CONFORMANT: the implementation did not open: "},
        {"mutant:LIAR_REFUSES_CREATE", EXIT_NOT_CONFORMANT, "the moon is not full"},
        {"mutant:LIAR_ABORT_CREATE", EXIT_NOT_CONFORMANT, "signal 6"},
        {"mutant:LIAR_CLAIMS", EXIT_NOT_CONFORMANT, "uniforms must be"},
        {"exec:true", EXIT_NOT_CONFORMANT, "exit code 0"},
        {"'exec:sleep 60' --timeout 0.2", EXIT_NOT_CONFORMANT, "within 1.2 s"},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char arguments[400];
        snprintf(arguments, sizeof arguments, "run --level smoke --iut %s", list[i].iut);
        if (assay(arguments) != list[i].code) fail_msg("%s: %s", list[i].iut, output);
        assert_says(list[i].says);
        assert_null(strstr(output, "FAIL "));
        assert_null(strstr(output, "check  ")); /* no table */
    }
}

/* VER-07, VER-08. */
static void a_verdict_says_whether_a_law_was_judged(void **unused)
{
#define GREEDY "run --level smoke --only engine.greedy/few-eos\\*"
    (void)unused;
    assert_int_equal(assay(GREEDY), EXIT_CONFORMANT);
    assert_says("\nCONFORMANT (greedy tokens only): 1 case");
    assert_int_equal(assay(GREEDY " --require engine-tokens --require 'hard facts'"),
                     EXIT_CONFORMANT);
    assert_int_equal(assay(GREEDY " --require engine-law"), EXIT_UNDECIDED);
    assert_says("the layer engine law is required, and no case of it was judged: not selected");
    assert_says("\nUNDECIDED: ");
    assert_int_equal(assay(GREEDY " --only engine.law/few-g4-top3 --require engine-law"),
                     EXIT_CONFORMANT);
    assert_says("\nCONFORMANT: ");
    assert_int_equal(assay("run --level smoke --only 'format.draw/*' --require law"),
                     EXIT_UNDECIDED);
    assert_int_equal(assay("run --level smoke --only 'format.draw/*'"), EXIT_CONFORMANT);
    assert_says("\nCONFORMANT: ");
#undef GREEDY
}

/* The printed code is the code; /dev/full opens and takes nothing. */
static void a_report_that_fails_is_in_the_verdict(void **unused)
{
    static const char *const files[] = {"--json", "--junit", "--html", "--log"};
    (void)unused;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments,
                 "run --level smoke --only 'format.draw/*' --iut-log /dev/null %s /dev/full",
                 files[i]);
        if (assay(arguments) != EXIT_ERROR) fail_msg("%s: %s", arguments, output);
        assert_says("exit code 3");
    }
}

static void missing_vectors_are_an_error(void **unused)
{
    (void)unused;
    assert_int_equal(
        assay("run --level smoke --claims replay.vectors --vectors /no/such/folder"),
        EXIT_ERROR);
    assert_says("/no/such/folder");
}

/* VER-03: the process says that all went well. */
static void an_exit_code_of_0_changes_no_verdict(void **unused)
{
    (void)unused;
    assert_int_equal(assay("run --level smoke --claims residual.values --iut mutant:LIAR_EXIT"),
                     EXIT_NOT_CONFORMANT);
    assert_says("CRASH");
}

/* VER-03, FRM-04: every answer is right, and the end of the process is not. */
static void how_the_process_ends_can_only_make_it_worse(void **unused)
{
    static const struct {
        const char *ending, *says;
        int code;
    } list[] = {
        {"true", "CONFORMANT", EXIT_CONFORMANT},
        {"exit 3", "CRASH the run: end of input: crash: ", EXIT_NOT_CONFORMANT},
        {"exit 3", "exit code 3", EXIT_NOT_CONFORMANT},
        {"kill -9 $$", "signal 9", EXIT_NOT_CONFORMANT},
        {"echo more", "FAIL the run: end of input: garbage: ", EXIT_NOT_CONFORMANT},
        {"sleep 60", "TIMEOUT the run: end of input: timeout: ", EXIT_NOT_CONFORMANT},
    };
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char arguments[2048];
        snprintf(arguments, sizeof arguments,
                 "run --timeout 1 --claims format.draw --iut 'exec:\"%s\" worker ref; %s'",
                 program, list[i].ending);
        if (assay(arguments) != list[i].code) fail_msg("%s: %s", list[i].ending, output);
        assert_says(list[i].says);
        assert_says("14 cases, 14 passed");
    }
}

/* Whether an engine drafts is printed, or that it does not tell. */
static void accepted_drafts_are_printed(void **unused)
{
    static const char *const engine[][2] = {{"ref", " a step."},
                                            {"mutant:ENGINE_TELLS_TOTALS", " in all."}};
    (void)unused;
    for (int i = 0; i < 2; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments,
                 "run --level smoke --only engine.greedy/self-gamma --iut %s", engine[i][0]);
        assert_int_equal(assay(arguments), EXIT_CONFORMANT);
        assert_says("\nDrafts that the engine accepted: ");
        assert_says(engine[i][1]);
    }
    assay("run --level smoke --only engine.law/few-g0 --iut ref");
    assert_null(strstr(output, "Drafts that the engine accepted"));
}

/* Claims refused with no_device, in a frame of 4 + 60 bytes. */
static void an_absent_device_is_unavailable(void **unused)
{
    (void)unused;
    assert_int_equal(assay("run --claims format.draw --iut 'exec:head -c 1 >/dev/null; printf "
                           "\"\\100\\0\\0\\0\\0\\0\\0\\0\\074\\0\\0\\0"
                           "{\\\"id\\\":1,\\\"status\\\":\\\"no_device\\\",\\\"tensors\\\":[],"
                           "\\\"error\\\":\\\"no card\\\"}\"; cat >/dev/null'"),
                     EXIT_UNDECIDED);
    assert_says("no_device: no card");
    assert_says("UNDECIDED: the implementation did not open: ");
}

static void a_long_run_shows_that_it_lives(void **unused)
{
    char arguments[1100];
    (void)unused;
    snprintf(arguments, sizeof arguments,
             "run --timeout 30 --jobs 1 --claims format.draw --iut 'exec:sleep 10.5; exec "
             "\"%s\" worker ref'",
             program);
    assert_int_equal(assay(arguments), EXIT_CONFORMANT);
    assert_says("assay: 0 of 14 claimed cases done after 1");
}

static void liars_get_their_state_and_the_run_completes(void **unused)
{
    static const struct {
        const char *name, *state, *seconds;
    } list[] = {{"LIAR_SEGV", "CRASH", "60"}, {"LIAR_HANG", "TIMEOUT", "0.2"}, {"LIAR_NAN", "FAIL", "60"}};
    (void)unused;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        char arguments[200];
        snprintf(arguments, sizeof arguments,
                 "run --level smoke --timeout %s --claims 'residual.*' --iut mutant:%s", list[i].seconds,
                 list[i].name);
        assert_int_equal(assay(arguments), EXIT_NOT_CONFORMANT);
        assert_says(list[i].state);
    }
}

/* STAT-04. */
static void a_statistical_result_prints_what_it_saw(void **unused)
{
    static const char *const figures[] = {"\"n\"",     "\"log_e\"",    "\"x2\"",
                                          "\"log_p\"", "\"tv\"",       "\"tv_lo\"",
                                          "\"tv_hi\"", "\"tv_power\"", "\"tv_power_any\"", "\"tables\""};
    (void)unused;
    assert_int_equal(
        assay("run --level smoke --only law.verify/V8-a0.7-g2 --quiet --json /dev/stdout"),
        EXIT_CONFORMANT);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) assert_says(figures[i]);
}

/* STAT-04: whatever has an e-value says what it had power to see. */
static void every_statistical_result_tells_its_power(void **unused)
{
    static const char *const runs[] = {
        "ref --samples 2000 --only 'law.*'", "ref --samples 2000 --only 'meta.draft/*' --only 'meta.panel/law-*'",
        "ref --samples 2000 --only 'tree.law/*'",
        "ref --samples 1000 --only 'engine.law/few-g1' --only 'engine.late/few-g*'",
        "mutant:ENGINE_IN_BF16 --samples 1000 --only engine.pairs/few-g2"};
    (void)unused;
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        char arguments[200];
        int told = 0;
        snprintf(arguments, sizeof arguments, "run --level smoke --quiet --json /dev/stdout --iut %s", runs[i]);
        assert_int_equal(assay(arguments), EXIT_CONFORMANT);
        for (const char *at = output; (at = strstr(at, "\"figures\": {")); at++) {
            const char *end = strchr(at, '}'), *e = strstr(at, "\"log_e\""), *power = strstr(at, "_power\"");
            assert_non_null(end);
            if (!e || e > end) continue;
            if (!power || power > end) fail_msg("%.*s", (int)(end - at), at);
            told++;
        }
        assert_true(told > 0);
    }
}

/* LAY-03, STAT-04: a verdict without certificates says how small a fault it cannot see. */
static void the_report_says_which_layers_were_not_applied(void **unused)
{
#define LAYERED "run --level smoke --only 'certify.*' --only 'law.draw/V8-*' --iut-options "
    (void)unused;
    assert_int_equal(assay(LAYERED "uniforms=supplied"), EXIT_CONFORMANT);
    assert_says("certificates 7, law 1.");
    assert_says("not applied: hard facts, replay, metamorphic, model bits, engine tokens, "
                "engine law, traces (not selected).");
    assert_null(strstr(output, "out of sight"));
    assert_int_equal(assay(LAYERED "uniforms=seeded"), EXIT_CONFORMANT);
    assert_says("certificates 0 of 6, law 1.");
    assert_says("certificates (uniforms are not supplied)");
    assert_says("A fault below TV 0.0");
#undef LAYERED
}

/* -- Coverage ---------------------------------------------------------------------------- */

typedef struct {
    const char *clause, *file, *test;
} selftest;

static const selftest selftests[] = {
#define SELFTEST(clause, file, test, what) {clause, file, #test},
#include "conformance/cli/selftests.def"
#undef SELFTEST
};

/* Is the test defined in its file, and used again where tests are registered? */
static bool is_registered(const selftest *t)
{
    char path[1024], line[512];
    int uses = 0;
    snprintf(path, sizeof path, "%s/%s", source, t->file);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f)) {
        const char *at = strstr(line, t->test);
        const char after = at ? at[strlen(t->test)] : 'x';
        uses += after == '(' || after == ')' || after == ',';
    }
    if (f) fclose(f);
    return uses >= 2;
}

static void the_tests_that_coverage_names_exist(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof selftests / sizeof *selftests; i++) {
        if (is_registered(&selftests[i])) continue;
        fail_msg("selftests.def: %s is no test of %s", selftests[i].test, selftests[i].file);
    }
}

static char page[] = "/tmp/assay-test-XXXXXX";

/* Also after a failed assertion. */
static int remove_page(void **unused)
{
    (void)unused;
    unlink(page);
    return 0;
}

static void a_stale_page_is_noticed(void **unused)
{
    char arguments[200];
    const int fd = mkstemp(page);
    (void)unused;
    assert_true(fd >= 0);
    close(fd);
    snprintf(arguments, sizeof arguments, "coverage --check %s", page);
    assert_int_equal(assay(arguments), EXIT_NOT_CONFORMANT);
    assert_says("stale");
    snprintf(arguments, sizeof arguments, "coverage --write %s", page);
    assay(arguments);
    snprintf(arguments, sizeof arguments, "coverage --check %s", page);
    assay(arguments);
    assert_null(strstr(output, "stale"));
}

int main(int argc, char **argv)
{
    if (argc != 3) return EXIT_USAGE;
    program = argv[1];
    source = argv[2];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_errors_exit_2_and_say_what_to_do),
        cmocka_unit_test(the_bench_of_a_gpu_is_another_program),
        cmocka_unit_test(a_plugin_of_our_own_that_is_gone),
        cmocka_unit_test(models_are_exported),
        cmocka_unit_test(help_and_version_exit_0),
        cmocka_unit_test(values_may_follow_an_equals_sign),
        cmocka_unit_test(a_clause_is_named_by_its_whole_id),
        cmocka_unit_test(explain_knows_clauses_checks_cases_and_faults),
        cmocka_unit_test(the_reference_passes_and_a_fault_fails),
        cmocka_unit_test(the_seed_of_today_is_a_date),
        cmocka_unit_test(the_printed_command_replays_the_failure),
        cmocka_unit_test(samples_are_as_many_as_asked),
        cmocka_unit_test(a_check_of_drawn_cases_alone_is_selected),
        cmocka_unit_test(an_empty_selection_is_refused),
        cmocka_unit_test(what_does_not_open_has_its_exit_code),
        cmocka_unit_test(a_verdict_says_whether_a_law_was_judged),
        cmocka_unit_test(a_report_that_fails_is_in_the_verdict),
        cmocka_unit_test(missing_vectors_are_an_error),
        cmocka_unit_test(an_exit_code_of_0_changes_no_verdict),
        cmocka_unit_test(how_the_process_ends_can_only_make_it_worse),
        cmocka_unit_test(accepted_drafts_are_printed),
        cmocka_unit_test(an_absent_device_is_unavailable),
        cmocka_unit_test(a_long_run_shows_that_it_lives),
        cmocka_unit_test(liars_get_their_state_and_the_run_completes),
        cmocka_unit_test(a_statistical_result_prints_what_it_saw),
        cmocka_unit_test(every_statistical_result_tells_its_power),
        cmocka_unit_test(the_report_says_which_layers_were_not_applied),
        cmocka_unit_test(the_tests_that_coverage_names_exist),
        cmocka_unit_test_teardown(a_stale_page_is_noticed, remove_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
