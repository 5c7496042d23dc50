/* fuzz.h - what the fuzz targets share. A target is one file with LLVMFuzzerTestOneInput, built
 * twice: with libFuzzer (clang, ASSAY_FUZZ), and with replay.c, which runs the committed corpus
 * in the plain tests. A target does more than not crash: where bytes are accepted, MUST states
 * what has to hold of the result. */
#ifndef ASSAY_TESTS_FUZZ_FUZZ_H
#define ASSAY_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MUST(condition)                                                                        \
    do {                                                                                       \
        if (!(condition)) {                                                                    \
            dprintf(2, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);          \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

#endif
