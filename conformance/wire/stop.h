/* stop.h - the end of a run before its last case: asked for by a signal, by a budget of time or
 * by failures enough. The runner then begins no case, and whoever waits for a process waits no
 * longer than a short grace. Any thread and any signal handler may ask. Clause VER-10. */
#ifndef ASSAY_CONFORMANCE_WIRE_STOP_H
#define ASSAY_CONFORMANCE_WIRE_STOP_H

#include <stdatomic.h>

typedef enum { STOP_NONE, STOP_SIGNAL, STOP_BUDGET, STOP_ENOUGH } stop_cause;

/* All zero: nobody has asked. */
typedef struct stop {
    atomic_llong at; /* from when on, in nanoseconds of clock_now(); 0: never */
    atomic_int cause;
    const struct stop *also; /* whoever asks that one asks this one, too; may be NULL */
} stop;

enum { STOP_GRACE = 2 }; /* seconds that what is under way may still take */

/* From the time `at` of clock_now() on; the earliest time asked for holds. Async-signal-safe.
 */
void stop_ask(stop *s, stop_cause cause, double at);

/* Why no case may begin any more; STOP_NONE: one may. `s` may be NULL, which nobody asks. */
stop_cause stop_asked(const stop *s);

/* When what began at the time `since` must have ended; INFINITY unless a stop was asked for. */
double stop_deadline(const stop *s, double since);

#endif
