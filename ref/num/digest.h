/* digest.h - FNV-1a: a digest of 64 bits, for telling whether two processes hold the same. It is no
 * defence against whoever looks for equal digests. */
#ifndef ASSAY_REF_NUM_DIGEST_H
#define ASSAY_REF_NUM_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define AS_DIGEST UINT64_C(0xcbf29ce484222325) /* of nothing */

/* The digest of what h is the digest of, and `size` bytes more. */
static inline uint64_t as_digest(uint64_t h, const void *data, size_t size)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < size; i++) h = (h ^ byte[i]) * UINT64_C(0x100000001b3);
    return h;
}

#endif
