/* machine.c - see machine.h. */
#include "conformance/theory/machine.h"

#include <math.h>

static double positive(double x)
{
    return x > 0 && isfinite(x) ? x : NAN;
}

double theory_intensity(double rows, double width)
{
    return 2 * positive(rows) / positive(width);
}

double theory_stream(double parameters, double width, double bandwidth)
{
    return positive(parameters) * positive(width) / positive(bandwidth);
}

double theory_free_rows(double speed, double width, double bandwidth)
{
    return positive(speed) * positive(width) / (2 * positive(bandwidth));
}
