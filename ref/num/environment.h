/* environment.h - the floating-point environment that the bits assume: round to nearest even,
 * subnormals kept. Every public entry that computes enters it and leaves it as it was found, in
 * every worker thread; a host program may have changed either. (The switch for subnormals is
 * known for x86-64 alone; elsewhere the host must leave subnormals on.) */
#ifndef ASSAY_REF_NUM_ENVIRONMENT_H
#define ASSAY_REF_NUM_ENVIRONMENT_H

typedef struct {
    unsigned word;
} as_environment;

/* Enters the canonical environment and returns what was there. Not inline on purpose: no load,
 * and so no arithmetic on what is loaded, can be moved across a call that the compiler cannot
 * see. */
as_environment as_enter(void);

/* Restores what as_enter returned. */
void as_leave(as_environment before);

#endif
