/* What a check is. One file a check; `check_list` names them all, in the order they run.
 *
 * A check plans cases before anything runs, and runs one case at a time against a client. Some it plans by hand, the
 * same for every IUT; others it draws from the run's seed, within what the IUT claims (VER-11).
 * Cases are independent: any subset, in any order, on any thread, gives the same results. */
#ifndef ASSAY_CONFORMANCE_CHECKS_FRAME_CHECK_H
#define ASSAY_CONFORMANCE_CHECKS_FRAME_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/oracle/law/served.h"
#include "conformance/stats/pool.h"
#include "conformance/wire/client.h"

/* STA-01, in ascending weight for the exit code (VER-01). */
typedef enum {
    STATE_PASS, STATE_ACCEPTABLE, STATE_WAIVED, STATE_NOT_CLAIMED, STATE_UNAVAILABLE, STATE_INCONCLUSIVE,
    STATE_STOPPED, STATE_FAIL, STATE_CRASH, STATE_TIMEOUT, STATE_ERROR, STATE_COUNT
} check_state;

typedef enum { LEVEL_SMOKE, LEVEL_FULL, LEVEL_DEEP } check_level;

struct check;

typedef struct {
    const struct check *check;
    char id[96];         /* "law.verify/V64-a0.7-g2": the check's name, a slash, the parameters */
    int64_t n;           /* samples, replays or comparisons declared in advance */
    double cost;         /* about, in microseconds of the suite and the reference: the order of a run */
    int32_t tables;      /* chi-square tables it will evaluate, fixed before sampling (STAT-01) */
    bool statistical;    /* contributes an e-value to the run (STAT-02) */
    bool pooled;         /* its tokens join the pool of the run (STAT-07); only of a statistical case */
    bool drawn;          /* by draw_case() */
    /* The parameters, by what the check asks: of rows, or of one of the others. */
    union {
        struct {
            int32_t V, gamma;  /* vocabulary of the rows, drafts at most */
            int32_t variant;   /* a row of the check's own table */
            double acceptance; /* of a panel (panel_form) */
        };
        struct {
            int32_t folder;        /* of the check's list of models */
            int32_t kind, habit;   /* of the check's own lists */
            int32_t gamma, tokens; /* drafts of a step; tokens of the path, or of its prefix */
            int32_t prompt;
        } model;
        struct {
            int32_t pair; /* engine_pair */
            int32_t kind; /* of the check's own list */
            int32_t gamma;
        } engine;
        struct {
            int32_t V, gamma; /* as of rows; gamma: levels of a tree */
            int32_t rule, drawn; /* IUT_TREE_*, IUT_DRAWN_* */
            double acceptance;   /* of a panel */
            char shape[16];      /* of the check's own list */
            int32_t rows;        /* probe_shape */
            int32_t nodes, children; /* of a request, of a node at most; 0: the check's own */
            int32_t kind;            /* of the check's own list */
        } tree;
        struct {
            int32_t V, temperature, top_p, min_p; /* of the check's own lists */
            int32_t top_k;
        } served;
        struct {
            int32_t V, kind, N, G, what; /* as of iut_pool_batch; `what` is asked */
        } pool;
    };
} check_case;

/* A named figure of a result: printed, and written to the JSON and the event log. */
typedef struct {
    char name[24];
    double value;
} check_figure;

enum { CHECK_FIGURES = 16 };

/* What a case saw of the speed that its claims make known (STAT-14). No state and no verdict rests on it. */
typedef struct {
    int64_t drafts; /* that were bet on; 0: nothing is known, or none were seen */
    double log_e;   /* ln of the e-value; at log_e_fail and above the case is INEFFECTIVE (STAT-15) */
    char text[200]; /* one line */
} check_speed;

typedef struct {
    check_state state;
    char detail[600];    /* one line: for PASS what was seen; else the first failing fact, expected and observed */
    check_figure figure[CHECK_FIGURES];
    int32_t figures;
    int64_t compared;    /* cases actually judged: 0 with STATE_PASS is turned into STATE_ERROR by the runner */
    double log_e;        /* statistical cases: ln of the e-value where the case stopped, that is at the first
                          * checkpoint that reached log_e_fail, else at the last; 0 when none was needed */
    double log_p;        /* ln of the smallest chi-square p of its tables; 0 when none */
    st_pool pool;        /* pooled cases: the tokens of every batch that was answered whole, however the case ended */
    bool pool_own;       /* their noise is the implementation's own: it may start alike in each process (STAT-07) */
    check_speed speed;
    double nats;         /* what rounding may earn on its tokens (STAT-07, STAT-13); INFINITY: a tolerance bounds it */
    const client *tested; /* once a call of it was stopped, result_set does nothing (VER-10); may be NULL */
} check_result;

typedef struct {
    client *iut;
    check_level level;
    uint64_t seed;        /* of the run; a case derives its own with check_seed() */
    int32_t tables_total; /* T of STAT-01: over all cases selected in this run */
    double log_e_fail;    /* a case FAILs when its log_e reaches this: ln(1/alpha) - ln(its weight) (STAT-02) */
    const char *vectors;  /* folder of the golden vectors */
    bool again;           /* it has failed already: whether it fails is asked, not how (VER-12) */
} check_context;

typedef struct check_plan check_plan;

/* What a check draws its cases from. */
typedef struct {
    uint64_t seed;     /* of the run */
    check_level level;
    const client *iut; /* open: its claims limit the draw */
    uint64_t rng;      /* of probe_next(): a function of the seed and of the check's name alone */
    int32_t count;     /* cases that the check has drawn so far */
    uint64_t dealt[9]; /* of the lists of draw.c, what they have had */
} check_draw;

typedef struct check {
    const char *name;    /* "law.verify" */
    const char *clauses; /* "LAW-01 LAW-02 RNG-07": what a failure of it disproves */
    const char *summary; /* one line */
    void (*plan)(check_plan *plan, check_level level);
    /* Adds cases by draw_case(); may be NULL. A drawn case that is not claimed is left out. */
    void (*draw)(check_plan *plan, check_draw *d);
    /* Is the case claimed? If not, `why` says which claim is missing; the case is then NOT_CLAIMED. */
    bool (*claimed)(const check_case *c, const client *iut, char *why, size_t why_size);
    void (*run)(const check_case *c, const check_context *x, check_result *r);
} check;

enum { CHECKS_MOST = 62 };                /* in the list: a table names each by a letter or a digit */
extern const check *const check_list[]; /* ends with NULL */

/* Adds a case; the id is the check's name, "/", and the formatted text. Used by plan(). */
check_case *plan_case(check_plan *plan, const check *check, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Adds a drawn case; the id is the check's name, "/drawn/", the run's seed, "/", the case's number, "-", and the
 * formatted text. Used by draw(). */
check_case *draw_case(check_plan *plan, check_draw *d, const check *check, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The cost of n samples, or comparisons, of rows of V entries. */
double cost_of_rows(int64_t n, int32_t V);

/* gamma, or the IUT's limit if that is less (VAR-10): for checks that say as much of shorter drafts. */
int32_t gamma_within(int32_t gamma, const client *tested);

/* The case of rows with such a gamma. Its id, and so its seeds, stay. */
check_case case_within(const check_case *c, const client *tested);

/* A seed of its own for every (run, case id, purpose). */
uint64_t check_seed(const check_context *x, const check_case *c, uint64_t purpose);

void result_figure(check_result *r, const char *name, double value);
/* Sets state and detail (keeps the first failure: a later call with a lighter state changes nothing).
 * Does nothing after a stop: what then is missing is no evidence. */
void result_set(check_result *r, check_state state, const char *format, ...) __attribute__((format(printf, 3, 4)));
/* Is the operation claimed? If not, `why` says so: for `claimed` of a check. */
bool check_offers(const client *tested, iut_op op, char *why, size_t size);
/* And can its last token be asked for by a uniform (CLM-20)? Where a race is all that is claimed, replays alone ask. */
bool check_has(const client *tested, iut_op op, char *why, size_t size);
bool check_asks(const client *tested, iut_op op);

/* How the IUT says that it serves rows (CLM-14). */
oracle_filters check_filters(const client *tested);

/* Turns a call that was not CALL_OK into the state it means (STA-02) and returns false; true on CALL_OK. */
bool result_call(check_result *r, const check_context *x, const char *op, call_result call);

/* A call that must be refused as bad input: counts it; anything else is what went wrong. `what` describes it. */
bool result_refused(check_result *r, const check_context *x, const char *what, call_result call);

#endif
