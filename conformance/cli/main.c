/* The program `assay`: subcommands, and the glue of `assay run`. */
#include <errno.h>
#include <fnmatch.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "conformance/checks/frame/plan.h"
#include "conformance/cli/arguments/command_line.h"
#include "conformance/cli/bench/bench.h"
#include "conformance/cli/coverage.h"
#include "conformance/cli/decode.h"
#include "conformance/cli/explain.h"
#include "conformance/cli/interface.h"
#include "conformance/cli/ledger.h"
#include "conformance/cli/logits.h"
#include "conformance/cli/models.h"
#include "conformance/cli/mutants/main.h"
#include "conformance/cli/plan/plan.h"
#include "conformance/cli/traces/traces.h"
#include "conformance/cli/vectors.h"
#include "conformance/cli/traces/write_traces.h"
#include "conformance/suite/report/report.h"
#include "conformance/wire/clock.h"
#include "conformance/wire/kinds.h"
#include "conformance/wire/load.h"
#include "conformance/wire/process.h"
#include "conformance/wire/worker.h"
#include "vectors/read/vectors.h"

static const char *program; /* as it was called */

/* -- assay run --------------------------------------------------------------------------- */

typedef struct {
    double start, last; /* last: seconds from start to the last line */
} progress_state;

/* ", about 40 s left", or "" while nobody can tell. */
static const char *time_left(double seconds, char text[40])
{
    *text = '\0';
    if (seconds >= 120)
        snprintf(text, 40, ", about %.0f min left", seconds / 60);
    else if (seconds >= 0)
        snprintf(text, 40, ", about %.0f s left", seconds);
    return text;
}

/* In a log: a line now and then, so that a long run does not look hung. */
static void progress_lines(void *arg, const char *case_id, size_t done, size_t claimed,
                           double left)
{
    enum { PAUSE = 10 };
    char text[40];
    progress_state *p = arg;
    const double t = clock_now() - p->start;
    if (!*case_id || t < p->last + PAUSE) return;
    p->last = t;
    fprintf(stderr, "assay: %zu of %zu claimed cases done after %.0f s%s, now %s\n", done,
            claimed, t, time_left(left, text), case_id);
}

/* One line on the terminal that rewrites itself; cleared at the end. */
static void progress(void *arg, const char *case_id, size_t done, size_t claimed, double left)
{
    const progress_state *p = arg;
    char text[40];
    fprintf(stderr, "\r\033[K");
    if (*case_id) {
        fprintf(stderr, "%zu/%zu  %.0f s%s  %.60s", done, claimed, clock_now() - p->start,
                time_left(left, text), case_id);
    }
    fflush(stderr);
}

/* May drawn cases of the check be selected, which are not known before the IUT is? */
static bool may_draw(const command_line *c, const check *k)
{
    char any[80];
    bool found = c->run.only_count == 0;
    snprintf(any, sizeof any, "%s/drawn/", k->name);
    for (int32_t i = 0; i < c->run.only_count; i++)
        found = found || strstr(c->run.only[i], "drawn") || fnmatch(c->run.only[i], any, 0) == 0;
    return found && k->draw && glob_any(c->run.claims, c->run.claims_count, k->name);
}

static bool selected(const command_line *c, const check_case *k)
{
    return glob_any(c->run.claims, c->run.claims_count, k->check->name) &&
           glob_any(c->run.only, c->run.only_count, k->id);
}

static double seconds_of(const command_line *c, const check_case *k)
{
    const int64_t most = c->run.samples;
    const bool fewer = k->statistical && most > 0 && most < k->n;
    return k->cost / 1e6 * (fewer ? (double)most / (double)k->n : 1);
}

/* The seconds that the selected cases of each check declare, and their sum: of one core, for the reference. */
static void say_seconds(const command_line *c, const check_plan *plan)
{
    double sum = 0;
    fputs("assay: declared seconds of one core:", stderr);
    for (const check *const *at = check_list; *at; at++) {
        double seconds = 0;
        for (size_t i = 0; i < plan->count; i++)
            if (plan->cases[i]->check == *at && selected(c, plan->cases[i])) seconds += seconds_of(c, plan->cases[i]);
        if (seconds > 0) fprintf(stderr, " %s %.3g,", (*at)->name, seconds);
        sum += seconds;
    }
    fprintf(stderr, " all %.3g\n", sum);
}

/* Are there cases that --claims and --only select? Prints their names if `list`. A selection of
 * none is a slip of the command line; a plan that cannot be made is not. */
static int select_cases(const command_line *c, bool list)
{
    check_plan plan;
    size_t count = 0;
    bool drawn = false;
    const bool sound = plan_all(&plan, check_list, c->run.level);
    for (size_t i = 0; sound && i < plan.count; i++) {
        const check_case *k = plan.cases[i];
        if (!selected(c, k)) continue;
        count++;
        if (list) puts(k->id);
    }
    for (const check *const *at = check_list; *at; at++) drawn = drawn || may_draw(c, *at);
    if (!sound) fprintf(stderr, "assay: %s\n", plan.error);
    if (sound && list && count > 0) say_seconds(c, &plan);
    plan_free(&plan);
    if (!sound) return EXIT_ERROR;
    if (list)
        fputs("assay: not listed: drawn cases, which the claims of an implementation limit (VER-11)\n", stderr);
    if (count || drawn) return EXIT_SUCCESS;
    fprintf(stderr,
            "assay: --only and --claims select no case of level %s; `assay run --list --level "
            "%s` names them all\n",
            level_name(c->run.level), level_name(c->run.level));
    return EXIT_USAGE;
}

typedef struct {
    const char *file;
    bool (*write)(const char *, const run_report *);
} wanted_report;
enum { REPORTS = 3 };

static void wanted_reports(const command_line *c, wanted_report list[REPORTS])
{
    list[0] = (wanted_report){c->json, report_json};
    list[1] = (wanted_report){c->junit, report_junit};
    list[2] = (wanted_report){c->html, report_html};
}

static bool cannot_write(const char *file)
{
    fprintf(stderr, "assay: cannot write %s: %s\n", file, strerror(errno));
    return false;
}

/* Appending nothing leaves an older file as it is. */
static bool can_be_written(const char *file)
{
    FILE *f = file ? fopen(file, "a") : NULL;
    if (file && !f) return cannot_write(file);
    if (f) fclose(f);
    return true;
}

/* A report that cannot be written is better known before the run than after it. */
static bool reports_can_be_written(const command_line *c)
{
    wanted_report list[REPORTS];
    bool good = can_be_written(c->iut_log);
    wanted_reports(c, list);
    for (int i = 0; i < REPORTS && good; i++) good = can_be_written(list[i].file);
    return good;
}

/* Every report that was asked for. False when one could not be written. */
static bool write_reports(const command_line *c, const run_report *report)
{
    wanted_report list[REPORTS];
    bool written = true;
    wanted_reports(c, list);
    for (int i = 0; i < REPORTS; i++) {
        if (!list[i].file || list[i].write(list[i].file, report)) continue;
        written = cannot_write(list[i].file);
    }
    return written;
}

static bool close_log(const command_line *c)
{
    if (!c->run.log || !(ferror(c->run.log) | fclose(c->run.log))) return true;
    fprintf(stderr, "assay: the event log %s is not whole: no space left?\n", c->log);
    return false;
}

static void print_report(const command_line *c, const run_report *report)
{
    char verdict[REPORT_VERDICT];
    if (!c->quiet) {
        report_terminal(stdout, report, isatty(STDOUT_FILENO));
        return;
    }
    report_verdict(report, verdict, sizeof verdict);
    puts(verdict);
}

static stop asked_to_stop;

/* The first SIGINT or SIGTERM lets the run end and report. Any later one, and any other signal,
 * ends the program at once, and every process of the implementation with it; a call that loses
 * its process then is stopped, not crashed. Two signals in one moment are one: timeout(1) sends
 * its signal to the program and to the program's group. */
static void on_signal(int number)
{
    static const long long MOMENT = 100000000; /* nanoseconds */
    static atomic_llong first;                 /* when it came, in nanoseconds; 0: not yet */
    const double now = clock_now();
    const long long at = (long long)(now * 1e9);
    long long before = 0;
    const bool stops = number == SIGINT || number == SIGTERM;
    stop_ask(&asked_to_stop, STOP_SIGNAL, now);
    if (stops && (atomic_compare_exchange_strong(&first, &before, at) || at - before <= MOMENT))
        return;
    process_kill_all();
    signal(number, SIG_DFL);
    raise(number);
}

/* What nohup or a shell ignores stays ignored. */
static void stop_on_signals(run_options *o)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        sigaction(numbers[i], NULL, &before);
        if (before.sa_handler != SIG_IGN) sigaction(numbers[i], &action, NULL);
    }
    o->stop = &asked_to_stop;
}

/* Runs, writes, prints: the verdict comes last, so that it tells the exit code also when a
 * file turned out not to be whole. */
static int run_and_report(command_line *c)
{
    progress_state state = {.start = clock_now()};
    run_report report;
    if (!c->quiet) c->run.progress = isatty(STDERR_FILENO) ? progress : progress_lines;
    c->run.progress_arg = &state;
    stop_on_signals(&c->run);
    run_suite(&c->run, &report);
    const bool logged = close_log(c), written = write_reports(c, &report);
    if (!logged || !written) report.exit_code = EXIT_ERROR;
    print_report(c, &report);
    const int code = report.exit_code;
    run_report_free(&report);
    return code;
}

/* The event log is open from before the first case. */
static int run_with_log(command_line *c)
{
    char beside[1024];
    if (!reports_can_be_written(c)) return EXIT_USAGE;
    if (!c->log) return run_and_report(c);
    c->run.log = fopen(c->log, "w");
    if (!c->run.log) return cannot_write(c->log), EXIT_USAGE;
    snprintf(beside, sizeof beside, "%s.stderr", c->log);
    if (!c->run.stderr_log) c->run.stderr_log = beside;
    return run_and_report(c);
}

/* The file of traces that was named and cannot be read, or NULL. */
static const char *unreadable_traces(const run_options *o)
{
    const char *alone = kind_rest(o->iut, KIND_TRACES), *file = alone ? alone : o->traces;
    return file && access(file, R_OK) != 0 ? file : NULL;
}

/* Our own kernels without a GPU: what was not asked for is what the grid emulator does in
 * minutes, and a line says so. Another process finds out, as this one must not load CUDA. */
static void suit_emulator(command_line *c)
{
    enum { SAMPLES = 2000, SECONDS = 600 };
    const client_options how = {.spec = c->run.iut, .options = c->run.iut_options};
    const size_t length = strlen(LOAD_EMULATOR);
    client_failure why;
    char most[60] = "";
    if (kind_of(c->run.iut) != KIND_GPU) return;
    client *probe = client_open(&how, &why);
    if (!probe) return; /* the run will say why */
    if (strncmp(client_claims(probe)->device, LOAD_EMULATOR, length) == 0) {
        if (!c->level_given && c->run.samples == 0) c->run.samples = SAMPLES;
        if (!c->level_given) c->run.level = LEVEL_SMOKE;
        if (c->run.timeout <= 0) c->run.timeout = SECONDS;
        if (c->run.samples > 0)
            snprintf(most, sizeof most, ", at most %lld samples a case",
                     (long long)c->run.samples);
        if (!c->quiet)
            fprintf(stderr, "assay: no GPU, so on the %s: level %s%s, %g s a call\n",
                    client_claims(probe)->device, level_name(c->run.level), most,
                    c->run.timeout);
    }
    client_close(probe);
}

static int run_main(int argc, char **argv)
{
    command_line c;
    char why[600], vectors[1024];
    const options_result read = command_line_parse(&c, argc, argv, why, sizeof why);
    if (read != OPTIONS_READ) return options_end(&run_table, read, why);
    suit_emulator(&c);
    const int selected = select_cases(&c, c.list);
    if (c.list || selected != EXIT_SUCCESS) return selected;
    c.run.program = program;
    share_folder("vectors", vectors, sizeof vectors);
    c.run.vectors_given = c.run.vectors != NULL;
    if (!c.run.vectors) c.run.vectors = vectors;
    c.run.stderr_log = c.iut_log;
    c.run.writes_traces = writes_traces;
    const char *unread = unreadable_traces(&c.run);
    if (unread) {
        options_refuse(&run_table, "cannot read the traces %s: %s", unread, strerror(errno));
        return EXIT_USAGE;
    }
    waiver_set *waivers = NULL;
    if (c.waivers && !(waivers = waivers_load(c.waivers, why, sizeof why)))
        return options_end(&run_table, OPTIONS_WRONG, why);
    c.run.waivers = waivers;
    c.run.waiver_file = c.waivers;
    const int code = run_with_log(&c);
    waivers_free(waivers);
    return code;
}

/* -- The other subcommands --------------------------------------------------------------- */

typedef struct {
    const char *spec, *options;
} worker_words;

static const option worker_options[] = {
    {"SPEC", NULL, "the implementation", OPTION_TEXT, .at = offsetof(worker_words, spec),
     .must = KINDS_OF_WORKER_TEXT, .needed = true},
    {"OPTIONS", NULL, "its own options", OPTION_ANY, .at = offsetof(worker_words, options)},
};

static const option_table worker_table = {
    "worker",
    "usage: assay worker SPEC [OPTIONS]\n\n"
    "Serves an implementation on standard input and output, in frames. It is killed when the\n"
    "thread that started it ends.\n",
    worker_options, 2, NULL};

/* What the suite starts for every IUT but exec:. */
static int worker_command(int argc, char **argv)
{
    worker_words w = {.options = ""};
    int code;
    if (!options_read(&worker_table, &w, argc, argv, NULL, &code)) return code;
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* a call that hangs does not see the end of its input */
    return worker_main(w.spec, w.options);
}

static int version_command(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("assay %s, arithmetic %d, iut ABI %u\n", ASSAY_VERSION, ASSAY_ARITHMETIC, IUT_ABI);
    return EXIT_SUCCESS;
}

static int help_command(int argc, char **argv);

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;
} commands[] = {
    {"run", run_main, "test an implementation: `assay run --help`"},
    {"ledger", ledger_main, "the evidence of many runs of one implementation together"},
    {"explain", explain_main, "what a clause, a check, a case or a fault is about"},
    {"decode", decode_main, "run the reference's decoding methods on a prompt"},
    {"plan", plan_main, "what a method is expected to give, and formula against measurement"},
    {"logits", logits_main, "write the canonical logits of a token sequence"},
    {"models", models_main, "the models of the checks of engines, for an engine to load"},
    {"mutants", mutants_main, "the kill matrix: every known fault against every check"},
    {"traces", traces_main, "write an example of a file of traces"},
    {"vectors", vectors_main, "list, show, check or generate the golden vectors"},
    {"bench", bench_main, "how fast the reference verifies here, and gpu/ on a GPU"},
    {"coverage", coverage_main, "which clause is covered by what"},
    {"interface", interface_main, "the operations and claims on the wire"},
    {"worker", worker_command, "serve an implementation on standard input and output"},
    {"--version", version_command, "versions of the suite, the arithmetic and the ABI"},
    {"--help", help_command, "this text"},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static int help_command(int argc, char **argv)
{
    (void)argc, (void)argv;
    puts("usage: assay COMMAND [options]\n\n"
         "Gates implementations of speculative decoding.\n");
    for (int i = 0; i < COMMANDS; i++)
        printf("  %-10s %s\n", commands[i].name, commands[i].help);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    program = argv[0];
    if (argc < 2) {
        fputs("assay: a command is missing; `assay --help` lists them\n", stderr);
        return EXIT_USAGE;
    }
    for (int i = 0; i < COMMANDS; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].run(argc - 1, argv + 1);
    }
    fprintf(stderr, "assay: unknown command %s; `assay --help` lists them\n", argv[1]);
    return EXIT_USAGE;
}
