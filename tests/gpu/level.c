/* level.c - prints the machine level in force (ref/num/level.h): with ASSAY_LEVEL another one
 * only where this machine cannot run that. */
#include <stdio.h>

#include "ref/num/rows.h"

int main(void)
{
    return puts(as_rows()->name) < 0;
}
