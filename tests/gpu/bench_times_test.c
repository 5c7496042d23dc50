/* How the benches time (gpu/bench/bench.h), with work whose time is known, on the clock of the
 * grid emulator. What the benches themselves do there is dry. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "gpu/bench/bench.h"

#define EXPECT(condition)                                                                      \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            printf("line %d: %s\n", __LINE__, #condition);                                     \
            exit(1);                                                                           \
        }                                                                                      \
    } while (0)

typedef struct {
    long us;
    int calls;
    int *last; /* the job of the call before */
    int self, turns;
} sleeper;

static as_status work(ag_bench *b, void *what)
{
    sleeper *s = what;
    struct timespec begin, t;
    (void)b;
    s->calls++;
    s->turns += *s->last != s->self;
    *s->last = s->self;
    timespec_get(&begin, TIME_UTC);
    do timespec_get(&t, TIME_UTC);
    while ((t.tv_sec - begin.tv_sec) * 1000000 + (t.tv_nsec - begin.tv_nsec) / 1000 < s->us);
    return AS_OK;
}

static void start(ag_bench *b, double limit)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    b->begun = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    b->limit = limit;
    b->timed = b->shortened = 0;
}

/* ---- Cases. ------------------------------------------------------------------------------ */

/* How often a case was begun, and came to its end. */
typedef struct {
    int begun, ended;
    bool fails;
} calls;

static void run(ag_bench *b, void *with)
{
    calls *c = with;
    c->begun++;
    b->repetitions = 1;
    if (c->fails) ag_bench_check(b, as_fail(&b->e, AS_DEVICE, "the bits differ"));
    b->repetitions = AG_REPETITIONS;
    c->ended++;
}

static calls wrong = {.fails = true}, right;

static void several(ag_bench *b, void *with)
{
    EXPECT(ag_bench_case(b, run, &wrong) == 0);
    EXPECT(b->repetitions == AG_REPETITIONS);
    EXPECT(ag_bench_case(b, run, &right) == 1);
    run(b, with);
}

/* The file is one document, and has this. */
static int count(const char *file, const char *text)
{
    static char all[10000];
    FILE *from = fopen(file, "r");
    EXPECT(from != NULL);
    all[fread(all, 1, sizeof all - 1, from)] = '\0';
    fclose(from);
    const size_t length = strlen(all);
    EXPECT(length > 4 && strcmp(all + length - 4, "\n]}\n") == 0);
    int n = 0;
    for (const char *at = all; (at = strstr(at, text)); at++) n++;
    return n;
}

/* A part of which a case fails before its measurements, and one that has some left. */
static void fails(ag_bench *b)
{
    ag_bench_due(b, 3);
    (void)ag_bench_case(b, run, &wrong);
}

static void announces(ag_bench *b)
{
    ag_bench_due(b, 2);
}

/* What goes wrong ends its case and no other; the program has failed, and says of what. */
static void check_cases(char *file)
{
    static const char *const parts[] = {"cases", NULL};
    char program[] = "test", option[] = "--json";
    char *arguments[] = {program, option, file, NULL};
    ag_bench b;
    ag_bench_open(&b, "Cases", parts, 3, arguments);
    EXPECT(ag_bench_case(&b, several, &right) == 1 && b.failed == 1);
    EXPECT(right.begun == 2 && right.ended == 2 && wrong.begun == 1 && wrong.ended == 0);
    EXPECT(ag_bench_case(&b, several, &wrong) == 0 && b.failed == 3);
    EXPECT(right.ended == 3 && wrong.begun == 3 && wrong.ended == 0);
    EXPECT(count(file, "\"what\": \"failed\", \"why\": \"the bits differ\"") == 3);
    b.due = 0;
    ag_bench_part(&b, "cases", fails);
    EXPECT(b.failed == 4 && b.due == 0);
    ag_bench_part(&b, "cases", announces);
    EXPECT(b.failed == 4 && b.due == 2);
    EXPECT(ag_bench_close(&b) == EXIT_FAILURE);
    ag_bench_open(&b, "Cases", parts, 3, arguments);
    EXPECT(ag_bench_case(&b, run, &right) == 1 && ag_bench_close(&b) == EXIT_SUCCESS);
    EXPECT(count(file, "failed") == 0);
}

int main(int argc, char **argv)
{
    EXPECT(argc == 2);
    ag_bench b = {.repetitions = AG_REPETITIONS};
    int last = -1;
    EXPECT(ag_device_open(&b.device, 0, &b.e) == AS_OK);
    EXPECT(ag_timer_open(&b.timer, &b.e) == AS_OK);

    sleeper fast = {.us = 1000, .last = &last};
    ag_times t = ag_bench_time(&b, work, &fast);
    EXPECT(t.n == AG_REPETITIONS && t.low >= 900 && t.low <= t.median && t.median <= t.high);
    EXPECT(fast.calls > t.n && fast.calls <= t.n + 21); /* 20 ms of warming up */
    EXPECT(b.timed == 1 && b.shortened == 0);

    b.repetitions = 7;
    sleeper slow = {.us = 30000, .last = &last};
    EXPECT(ag_bench_time(&b, work, &slow).n == 7 && slow.calls == 8);

    start(&b, 1.5); /* of which a repetition may take 0.15 s less a little: 4 times */
    t = ag_bench_time(&b, work, &slow);
    EXPECT(t.n >= AG_FEW && t.n <= 4 && b.timed == 1 && b.shortened == 1);
    start(&b, 0);
    b.repetitions = AG_REPETITIONS;

    /* In turn; where there are graphs, the work is called to be recorded alone. */
    sleeper one = {.us = 100, .last = &last, .self = 1},
            two = {.us = 300, .last = &last, .self = 2};
    const ag_job job[] = {{work, &one}, {work, &two}};
    ag_samples s;
    ag_bench_time_graphs(&b, job, 2, &s);
    EXPECT(s.n == AG_REPETITIONS && b.launched == !b.recorded);
    if (!b.recorded) {
        EXPECT(one.turns + 1 >= one.calls && two.turns == two.calls);
        for (int i = 0; i < s.n; i++) EXPECT(s.us[0][i] >= 90 && s.us[1][i] >= 270);
    }

    /* As many others are to come, of which each may take its part: 0.8 x 6 s / 40, 4 times. */
    start(&b, 6);
    b.repetitions = 7, b.due = 0;
    ag_bench_due(&b, 40);
    EXPECT(ag_bench_time(&b, work, &slow).n <= 4 && b.shortened == 1 && b.due == 39);
    start(&b, 0);
    b.repetitions = AG_REPETITIONS;

    const double x[] = {3, 9, 1, 5, 2};
    t = ag_times_of(x, 5);
    EXPECT(t.median == 3 && t.low == 1 && t.high == 9 && t.n == 5 && x[0] == 3);
    t = ag_times_of_one(t, 2);
    EXPECT(t.median == 1.5 && t.low == 0.5 && t.high == 4.5 && t.n == 5);
    ag_timer_close(&b.timer);
    ag_device_close(&b.device);
    check_cases(argv[1]);
    printf("the benches' times: as they should be\n");
    return 0;
}
