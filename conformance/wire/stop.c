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
    return clock_now() < asked_at(s) ? STOP_NONE : (stop_cause)atomic_load(&s->cause);
}

double stop_deadline(const stop *s, double since)
{
    return fmax(asked_at(s), since) + STOP_GRACE;
}
