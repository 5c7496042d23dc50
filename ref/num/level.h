/* level.h - which compilation of the hot loops runs.
 *
 * The loops of rows.h and dense.h are compiled once per machine level: "baseline" (any machine;
 * fma by libm), "v3" (AVX2 and FMA), "v4" (AVX-512). All give the same bits; they differ in
 * speed alone. The level is chosen by the processor at first use; the environment variable
 * ASSAY_LEVEL or as_set_level forces one. */
#ifndef ASSAY_REF_NUM_LEVEL_H
#define ASSAY_REF_NUM_LEVEL_H

#include "ref/status.h"

/* Forces a level for the whole process from now on: "baseline", "v3", "v4", or "auto".
 * AS_BAD_INPUT for a name that is none of these, AS_LIMIT for one that this machine cannot
 * run. */
as_status as_set_level(const char *name, as_error *e);

#endif
