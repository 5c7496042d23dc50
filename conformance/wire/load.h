/* load.h - finds the table of operations behind a spec of any kind but exec: (kinds.h). For the worker:
 * a plugin's code runs in the calling process. */
#ifndef ASSAY_CONFORMANCE_WIRE_LOAD_H
#define ASSAY_CONFORMANCE_WIRE_LOAD_H

#include <stdbool.h>

#include "conformance/iut.h"
#include "conformance/wire/kinds.h"

/* Copies what this version knows of a table into *table; fields that the other side does not
 * have are NULL. False, with the reason, for another ABI version or without create, destroy,
 * last_error, claims. */
bool load_table(const iut_api *api, iut_api *table, char *why, size_t why_size);

/* How the device in the claims of `gpu` begins where no GPU was found; why follows. */
#define LOAD_EMULATOR "grid emulator"

/* The table of a spec. A plugin stays loaded until the process ends. False, with the reason, and with
 * *status IUT_BAD_INPUT: there is nothing of that name; IUT_NO_DEVICE: what it needs is absent;
 * IUT_FAILED: what is there cannot be used. */
bool load_spec(const char *spec, iut_api *table, iut_status *status, char *why, size_t why_size);

/* Is the library of this kind beside this program? True for a kind that has none. False, with the
 * reason: the installation is not whole. */
bool load_is_whole(spec_kind kind, char *why, size_t why_size);

#endif
