/* clock.h - the clock of the suite and its program. */
#ifndef ASSAY_CONFORMANCE_WIRE_CLOCK_H
#define ASSAY_CONFORMANCE_WIRE_CLOCK_H

/* Seconds of a clock that only goes forward. Async-signal-safe. */
double clock_now(void);

#endif
