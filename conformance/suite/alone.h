/* alone.h - an implementation each of whose questions is the only one that a process of it hears: what a failed case is
 * asked again of (VER-12).
 *
 * A question is a call, or of an exact case a case of the call. Panel and model are loaded before.
 * Of operations on models, `forward` and `cache_read` are asked, of sequences that were walked row by row to what they
 * hold. Commits, truncations and poison are not: the suite keeps account of them itself, as chapter 2 says. */
#ifndef ASSAY_CONFORMANCE_SUITE_ALONE_H
#define ASSAY_CONFORMANCE_SUITE_ALONE_H

#include "conformance/wire/client.h"

typedef struct iut alone;

enum { ALONE_FEW = 1024 }; /* cases of a call that are asked one by one */

/* Over a client, which stays the caller's and must outlive it. No question begins after the time `end` of clock_now().
 * Belongs to this thread, which has one at a time. NULL: the memory is short. */
alone *alone_open(client *inner, bool statistical, double end);
void alone_close(alone *a);

/* Whom to ask. It belongs to `a`. */
client *alone_client(alone *a);

/* Why a failure with these answers tells nothing; NULL: it does. Some question had no answer in time; or an exact case
 * has calls that are not few; or two processes answered the same question differently; or of a statistical case, their
 * noise starts alike in each process. */
const char *alone_spoilt(const alone *a);

#endif
