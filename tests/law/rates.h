/* rates.h - options of the programs that measure rates: what the suite finds, whom it acquits, how often it errs. */
#ifndef TESTS_LAW_RATES_H
#define TESTS_LAW_RATES_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    int32_t seeds;    /* of each fault */
    int32_t acquit;   /* seeds of each implementation that is right */
    int32_t runs;     /* for the rate of false alarms */
    int32_t samples;  /* of a case at most; 0: all */
    const char *only; /* names that have this text */
} rates_options;

/* False: an option is unknown or has no value, as a line of usage says. */
static inline bool rates_read(rates_options *o, int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0); /* many runs take long */
    for (int i = 1; i < argc; i += 2) {
        int32_t *number = strcmp(argv[i], "--seeds") == 0     ? &o->seeds
                          : strcmp(argv[i], "--acquit") == 0  ? &o->acquit
                          : strcmp(argv[i], "--runs") == 0    ? &o->runs
                          : strcmp(argv[i], "--samples") == 0 ? &o->samples
                                                              : NULL;
        if (i + 1 < argc && number) {
            *number = (int32_t)atoi(argv[i + 1]);
        } else if (i + 1 < argc && strcmp(argv[i], "--only") == 0) {
            o->only = argv[i + 1];
        } else {
            fprintf(stderr, "usage: %s [--seeds N] [--acquit N] [--runs N] [--samples N] [--only TEXT]\n", argv[0]);
            return false;
        }
    }
    return true;
}

static inline bool rates_chosen(const rates_options *o, const char *name)
{
    return strstr(name, o->only) != NULL;
}

#endif
