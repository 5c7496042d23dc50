/* run.h - the runner: plans, runs every case on its own client, keeps the tally, gives the
 * verdict.
 *
 * `assay run`, `assay mutants` and the tests call the same function. It prints nothing: a
 * report/ function turns the run_report into text. Clauses CLM-01, STA, VER, STAT-02. */
#ifndef ASSAY_CONFORMANCE_SUITE_RUN_H
#define ASSAY_CONFORMANCE_SUITE_RUN_H

#include <stddef.h>
#include <stdio.h>

#include "conformance/checks/frame/check.h"
#include "conformance/suite/waivers.h"
#include "conformance/wire/stop.h"

#define ASSAY_VERSION "0.1.0"
#define ASSAY_ARITHMETIC 1 /* version of the bit rules (spec/README.md) */

/* VER-01. */
enum { EXIT_CONFORMANT, EXIT_NOT_CONFORMANT, EXIT_USAGE, EXIT_ERROR, EXIT_UNDECIDED };

typedef struct {
    const char *iut;         /* of a kind of kinds.h; NULL: ref */
    const char *iut_options; /* may be NULL */
    const char *traces;      /* file that it brings (TRC-01); NULL: what a built-in one writes */
    const char *assay;       /* program that serves `worker`; NULL: this one */
    const char *program;     /* as it was called, for replay lines; NULL: "assay" */
    const char *stderr_log;  /* collects what the IUT writes on standard error; may be NULL */
    const char *vectors;     /* folder of the golden vectors */
    bool vectors_given;      /* it was asked for: commands that replay name it */
    check_level level;
    int64_t samples; /* of a statistical case at most, for slow implementations; 0: the level's */
    uint64_t seed;
    double alpha;            /* <= 0: 1e-6 */
    double timeout;          /* seconds a call; <= 0: the client's default */
    int jobs;                /* threads, each with a client of its own; <= 0: one a processor */
    size_t enough; /* failed cases that stop the run, for mutants; 0: all run */
    double budget; /* seconds after which the run is stopped; <= 0: none */
    stop *stop;    /* what else may stop it, from any thread or signal handler; may be NULL */
    unsigned required;       /* bits of the layers that must be judged (layers.h, VER-08) */
    const char *const *only; /* [only_count] globs on case ids; none: all */
    int32_t only_count;
    const char *const *claims; /* [claims_count] globs on check names; none: all */
    int32_t claims_count;
    const waiver_set *waivers; /* may be NULL */
    const char *waiver_file;   /* where they were read; may be NULL */
    FILE *log;                 /* event log (VER-06), flushed case by case; may be NULL */
    /* Does `assay traces write --iut SPEC` write traces of that implementation? NULL: of none. */
    bool (*writes_traces)(const char *spec);
    const iut_api *api; /* not NULL: this table, in this process, instead of `iut`; for tests */
    const check *const *checks; /* NULL: check_list */
    bool hand_made;             /* plans no drawn cases (VER-11): for the kill matrix */
    /* Called from any thread, one at a time, before a case starts and once at the end,
     * with the id "". Counts claimed cases; `left`: seconds that they may still take, < 0: unknown.
     */
    void (*progress)(void *arg, const char *case_id, size_t done, size_t claimed, double left);
    void *progress_arg;
} run_options;

/* VER-12. */
typedef enum { AGAIN_NOT_ASKED, AGAIN_UNSAID, AGAIN_STATE, AGAIN_ARITHMETIC } again_word;

typedef struct {
    const check_case *plan;
    check_result result;
    again_word again;      /* what a failed case is, asked again */
    const char *again_why; /* NULL: it was not asked */
    check_state before_waiver; /* what result.state was; the same where no waiver applied */
    const waiver *waived_by;   /* NULL if none did */
    double seconds;
    int32_t seat, process; /* its thread, and which process of that thread, from 0 on */
    bool claimed, reported;
} run_case;

/* A fact about the run as a whole that weighs like a case: the averaged e-value, a waiver, the
 * accounting, how the IUT ended. */
typedef struct {
    check_state state; /* STATE_FAIL, STATE_CRASH, STATE_TIMEOUT or STATE_ERROR */
    char text[800];
} run_finding;

enum { RUN_FINDINGS = 64 };

/* The parts of the run's e-value (STAT-02, STAT-07), as logarithms, and what they rest on. */
typedef struct {
    double average, dictionary, pit;
    size_t cases, left_out; /* that the pool holds; that it does not, though they are pooled ones */
    double nats;            /* what rounding may earn on the pool's tokens */
    st_pool sum;
    bool caused;            /* the pool alone is convincing: then `cause` says by what */
    st_cause cause;
} run_pool;

typedef struct {
    const run_options *options; /* the caller's; must outlive the report */
    iut_claims claims;     /* strings point into `identity`; zero if the IUT never opened */
    unsigned operations;   /* bits of iut_op that are claimed */
    char identity[3][120]; /* name, version, device: printable */
    struct check_plan *plan;
    struct brought *traces; /* during the run; NULL: no case asks for them, or there are none */
    run_case *cases; /* [planned] in the order of the checks */
    size_t planned, reported;
    int32_t seats;             /* threads at most, each with processes of its own */
    bool unopened, no_such;    /* the IUT could not be opened; because there is none such (VER-09) */
    stop *stop, own_stop;      /* the caller's, or else its own */
    stop_cause stopped;        /* why there are cases that are STOPPED (VER-10) */
    bool greedy_only;          /* conformant, and an engine's sampled law was not judged (VER-07) */
    size_t tally[STATE_COUNT]; /* of the reported cases */
    run_finding finding[RUN_FINDINGS];
    size_t findings;
    int32_t tables;     /* T of STAT-01 */
    size_t statistical; /* cases whose e-values are averaged, with equal weights */
    size_t pooled;      /* of them, cases whose tokens the pool takes if their rounding allows */
    run_pool pool;
    double nats;        /* what rounding may earn in the run's e-value at most (STAT-13) */
    bool own_noise;     /* that e-value rests on noise that may be the implementation's own (STAT-13) */
    double log_e,
        log_e_fail; /* of the run: ln of the average, and the line it must stay under */
    double alpha, seconds;
    int exit_code;
} run_report;

/* Runs the suite and returns the exit code, which is also report->exit_code. The report is
 * always valid and must be freed. */
int run_suite(const run_options *options, run_report *report);
void run_report_free(run_report *report);

const char *state_name(check_state state); /* "PASS" */
const char *level_name(check_level level); /* "smoke" */
const char *again_name(again_word word);   /* "state"; NULL: it was not asked */
const char *verdict_name(const run_report *report); /* "CONFORMANT" */
bool state_stands(check_state state);      /* needs no replay line: PASS, NOT_CLAIMED ... */

/* VER-05: the command that replays exactly this case. Truncated if it does not fit. */
void replay_line(const run_report *report, const run_case *c, char *line, size_t size);

/* The command that repeats the whole run: what replays a finding, which no case alone can show.
 */
void run_line(const run_report *report, char *line, size_t size);

/* The program as it was called, quoted for a shell where that is needed. */
void program_name(const run_options *o, char *name, size_t size);

/* Replaces what is no printable UTF-8 by '?': an IUT's text goes into JSON and XML. */
void make_printable(char *text);

#endif
