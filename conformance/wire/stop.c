/* stop.c - see stop.h. */
#include "conformance/wire/stop.h"

#include <math.h>
#include <stddef.h>

#include "conformance/wire/clock.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "a signal handler must not take a lock");

void stop_ask(stop *s, stop_cause cause, double at)
{
    const long long wanted = (long long)(at * 1e9);
    long long before = atomic_load(&s->at);
    while (before == 0 || wanted < before) {
        if (!atomic_compare_exchange_weak(&s->at, &before, wanted)) continue;
        atomic_store(&s->cause, (int)cause);
        return;
    }
}

static double asked_at(const stop *s)
{
    const long long at = s ? atomic_load(&s->at) : 0;
    return at ? 1e-9 * (double)at : INFINITY;
}

stop_cause stop_asked(const stop *s)
{
    const double now = clock_now();
    for (; s; s = s->also)
        if (now >= asked_at(s)) return (stop_cause)atomic_load(&s->cause);
    return STOP_NONE;
}

double stop_deadline(const stop *s, double since)
{
    double at = INFINITY;
    for (; s; s = s->also) at = fmin(at, asked_at(s));
    return fmax(at, since) + STOP_GRACE;
}
