/* compression_plot.h - measured tokens a step and the model of them, as an SVG file. */
#ifndef ASSAY_CONFORMANCE_CLI_BENCH_COMPRESSION_PLOT_H
#define ASSAY_CONFORMANCE_CLI_BENCH_COMPRESSION_PLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "conformance/cli/bench/compression.h"

enum { PLOT_POINTS = 32, PLOT_LEVELS = 2 };

/* One set of axes: a curve for each N, the points measured beside it, and dashed levels. */
typedef struct {
    char title[80];
    compression_point point[PLOT_POINTS]; /* [n] */
    int32_t n;
    compression_model model;
    struct {
        const char *name;
        double S; /* tokens a step of another method */
    } level[PLOT_LEVELS];
} compression_axes;

/* Two axes a line. False, with errno: the file cannot be written. */
bool compression_plot(const char *file, const compression_axes *a /* [n] */, int32_t n);

#endif
