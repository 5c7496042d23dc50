/* bench.h - what the benches share: opening the device, medians of repetitions timed on it,
 * sets of random matrices, and the report: a Markdown table on the standard output and JSON in
 * a file.
 *
 * A dry run (always, on the grid emulator) does everything once at tiny sizes, looks whether
 * all outputs were written, and reports no time: it keeps the benches from rotting.
 *
 * The report survives its program: after each member of each result the file is a whole JSON
 * document, and a line of a table is out when it is finished. A program that knows how long it
 * may take (--seconds, or GPU_PART_SECONDS in the environment) shares the time by the
 * measurements that are still to come, repeats less often when time gets short, and says so;
 * when there is none left, it ends by itself, and says that. What goes wrong in a case ends
 * that case alone. */
#ifndef ASSAY_GPU_BENCH_BENCH_H
#define ASSAY_GPU_BENCH_BENCH_H

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include "gpu/bench/kernels.h"
#include "gpu/num/dense.h"

enum {
    AG_REPETITIONS = 25, /* at most, */
    AG_FEW = 3,          /* and at least, where time is short */
    AG_MOST_JOBS = 5,
    AG_MOST_ROWS = 128,
    AG_NO_DEVICE = 77,    /* exit codes */
    AG_OUT_OF_TIME = 124, /* as timeout(1) has it */
};

typedef struct {
    ag_device device;
    ag_facts facts;
    ag_timer timer;
    int dry;
    FILE *json;    /* NULL without --json */
    long json_end; /* where its next member goes */
    int entries;
    as_error e;
    int repetitions;      /* of what is timed: AG_REPETITIONS, or what a part sets */
    double limit, begun;  /* seconds: that it may take, 0: any; by the clock */
    int timed, shortened; /* measurements; those with fewer repetitions than they should have */
    double read, rate;    /* ceilings: bytes and floating-point operations a second; 0 if dry */
    void *sink;           /* 16 bytes */
    const char *only;     /* of the parts, the one to run; NULL: all */
    int profile;          /* 1: a profiler looks, and nothing is timed */
    const char *models;   /* folder of the trained pair; NULL: it is not measured */
    int recorded;         /* 1: the last times are of a graph */
    int due;              /* measurements still to come, as far as the parts have said */
    int failed;           /* cases that went wrong */
    jmp_buf *leave;       /* out of the case that runs; NULL: there is none */
    int launched;         /* measurements that should have been, but could not, */
    as_error why_launched; /* and why the last of them could not */
} ag_bench;

/* Microseconds of one repetition, of n. */
typedef struct {
    double median, low, high;
    int n;
} ag_times;

/* Under a profiler (--profile) each line runs once, launched, and between marks that the
 * profiler waits for (ag_profile); fewer lines, of fewer layers, since each launch takes it a
 * second. No time is reported. */

/* Reads the options --dry, --profile, --json FILE, --seconds LIMIT, --only PART, one of `parts`
 * (ended by NULL), and --models FOLDER, opens the device, begins the report of the bench `name`
 * and measures the ceilings. Exits with AG_NO_DEVICE, and says so, where there is no device;
 * with 1 where there is one that cannot be opened; with 2 on other options. */
void ag_bench_open(ag_bench *b, const char *name, const char *const *parts, int argc,
                   char **argv);

/* Runs a part, unless another one alone is asked for. */
typedef void ag_part(ag_bench *b);
void ag_bench_part(ag_bench *b, const char *name, ag_part *run);

/* Measures the ceilings again, and ends the report; the exit code for main. */
int ag_bench_close(ag_bench *b);

/* Ends the case that runs with the error that a call left in b->e, if it left one; outside of a
 * case, or where the device itself works no more, report and program. */
void ag_bench_check(ag_bench *b, as_status s);

/* Runs a case: a line of a table, or what several lines share. 0: it ended with an error. Then
 * the report has a result `failed` with the error as `why`, what the case had allocated is
 * lost, the program's exit code will be 1, and the caller goes on with what does not need the
 * case. */
typedef void ag_case(ag_bench *b, void *with);
int ag_bench_case(ag_bench *b, ag_case *run, void *with);

/* n more measurements will come, each of which may take as large a part of the time that is
 * left as the others: a tenth at most. Those that a failed case leaves out count until its part
 * ends. */
void ag_bench_due(ag_bench *b, int n);

/* Times `work`, which launches one repetition: b->repetitions, after one or more, for 20 ms,
 * that do not count. */
typedef as_status ag_work(ag_bench *b, void *what);
ag_times ag_bench_time(ag_bench *b, ag_work *work, void *what);

/* The same for the launches of a repetition recorded as a graph, without the host's time for
 * each. The work must neither wait nor allocate. What cannot be recorded is launched, and that
 * is said at the end of the report. */
ag_times ag_bench_time_graph(ag_bench *b, ag_work *work, void *what);

/* Graphs of several jobs, to be compared: one repetition of each in turn, so that what changes
 * in the course of time, as clocks do, changes for all. If one cannot be recorded, none is. */
typedef struct {
    ag_work *work;
    void *what;
} ag_job;
typedef struct {
    double us[AG_MOST_JOBS][AG_REPETITIONS]; /* of the jobs, in the order of time */
    int n;
} ag_samples;
void ag_bench_time_graphs(ag_bench *b, const ag_job *job, int jobs, ag_samples *s);

/* Median, least and most of n numbers, which stay in their order. */
ag_times ag_times_of(const double *x /* [n] */, int n);

/* Each of the times divided by n. */
ag_times ag_times_of_one(ag_times t, int n);

/* The ceilings at a dry run are unknown; a share of one then is 0. */
double ag_share(double part, double whole);

/* One object of the report's list, one call for each of its members. */
void ag_entry(ag_bench *b);
void ag_text(ag_bench *b, const char *key, const char *value);
void ag_number(ag_bench *b, const char *key, double value);
/* A measured value: null in a dry run. */
void ag_measured(ag_bench *b, const char *key, double value);

/* What ag_bench_time_graph gave: median, least and most as `us`, `us_least` and `us_most`, of
 * how many `repetitions`, and how they were `timed`. */
void ag_graph_times(ag_bench *b, ag_times t);

/* A line of the table of ceilings and of the report: `amount` of units for each of the times,
 * in 1e9 a second. */
void ag_ceiling(ag_bench *b, const char *what, double amount, const char *unit, ag_times t);

/* A cell of the table: a measured value, or `-` in a dry run. */
void ag_cell(const ag_bench *b, int decimals, double value);

/* Device memory that is needed until the end of the part. */
void *ag_bench_memory(ag_bench *b, size_t bytes, const char *what);

/* Whether the device has so much memory now. */
int ag_bench_fits(ag_bench *b, double bytes);

/* n numbers from the device. A NaN, with which outputs are filled before, is one that nobody
 * wrote, and an error. The caller frees them. */
float *ag_bench_outputs(ag_bench *b, const float *at, size_t n, const char *what);

/* The same of what `work`, as a graph, leaves at `at`. */
float *ag_bench_graph_outputs(ag_bench *b, const ag_job *job, float *at, size_t n,
                              const char *what);

/* Equal-shaped random matrices that together exceed the caches, so that a product that takes
 * the next one each time reads it from memory. */
enum { AG_MOST_MATRICES = 64 };
typedef struct {
    ag_matrix m[AG_MOST_MATRICES];
    int n;
    size_t bytes; /* of one */
    float *x;     /* [AG_MOST_ROWS][K] */
    float *y;     /* [AG_MOST_ROWS][N] */
} ag_set;

/* 0 when the device's memory is too small for one. */
int ag_set_make(ag_bench *b, int32_t N, int32_t K, as_storage s, ag_set *set);
void ag_set_free(ag_set *set);

/* Before the first product of a kind: y = NaN; after it, ag_bench_outputs. */
void ag_set_poison(ag_bench *b, const ag_set *set, int32_t R);
float *ag_set_outputs(ag_bench *b, const ag_set *set, int32_t R, const char *what /* [R][N] */);

/* T(R): the least seconds that R rows can take that are multiplied with `bytes` of weights of
 * the storage, the weights read once and three quarters of the rate of multiply-adds reached.
 */
double ag_floor(const ag_bench *b, double bytes, as_storage s, int32_t R);

const char *ag_storage_name(as_storage s);

#endif
