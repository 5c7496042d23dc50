/* beside.h - what belongs to the program, found from the program's own path. */
#ifndef ASSAY_CONFORMANCE_WIRE_BESIDE_H
#define ASSAY_CONFORMANCE_WIRE_BESIDE_H

#include <stdbool.h>
#include <stddef.h>

/* The path of `name` in the program's folder or, where that is a bin/, in the folder above it, as
 * it is once installed. False, and the last path tried for an error to name: it is in neither. */
bool beside_program(const char *name, char *path, size_t size);

#endif
