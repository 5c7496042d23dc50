/* no_memory.h - allocations that fail on request, and a count of those that live. Whatever is
 * linked statically calls these in place of the C library's (the linker's --wrap); that may be
 * Check, too, so nothing is asserted until memory_fails_no_more. */
#ifndef ASSAY_TESTS_REF_NO_MEMORY_H
#define ASSAY_TESTS_REF_NO_MEMORY_H

/* After n more allocations one fails, and with `all` every one behind it. */
void memory_fails_after(long n, int all);

/* No failures from now on; whether there was one. */
int memory_fails_no_more(void);

/* Allocations that have not been freed. */
long memory_live(void);

#endif
