/* machine.h - loops that are compiled twice: with the operations that the caller names, and with the machine's fma and
 * addition in their place. Inside oracle/arithmetic alone. */
#ifndef ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_MACHINE_H
#define ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_MACHINE_H

#include "conformance/oracle/arithmetic/arithmetic.h"

#if defined(__x86_64__)
#define MACHINE_FMA __attribute__((target("fma")))
#else
#define MACHINE_FMA
#endif
#define TWICE static inline __attribute__((always_inline))

/* Has the machine an fma, and are it and its addition those that `o` names? */
bool oracle_by_machine(const oracle_ops *o);

/* `machine` is a constant wherever this is inlined. */
TWICE float fma_of(const oracle_ops *o, bool machine, float a, float b, float c)
{
    return machine ? __builtin_fmaf(a, b, c) : o->fma(a, b, c);
}

TWICE float add_of(const oracle_ops *o, bool machine, float a, float b)
{
    return machine ? a + b : o->add(a, b);
}

#endif
