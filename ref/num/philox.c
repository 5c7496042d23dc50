/* philox.c - see philox.h. */
#include "ref/num/philox.h"

as_words as_philox(const uint32_t counter[4], const uint32_t key[2])
{
    return as_philox_core(counter, key);
}
