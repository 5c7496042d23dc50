/* ledger_lines.h - the file of a ledger: a JSON object a line, a line a digest of an implementation. Clause STAT-13.
 *
 * `digest`, `name`, `version`, `options`, `claims` say whose runs they are. `runs` is the list of them, as they were
 * added: `seed` (a text, as in a report), `log_e` (ln of the run's e-value; infinities are texts), `nats`, `level`,
 * `noise` ("seeds": it follows from the seed; "stated": its owner says that it is new in each run), `added` (the
 * date, UTC). */
#ifndef ASSAY_CONFORMANCE_CLI_LEDGER_LINES_H
#define ASSAY_CONFORMANCE_CLI_LEDGER_LINES_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "conformance/stats/ledger.h"

enum { LEDGER_DIGEST = 200, LEDGER_RUNS = 10000, LEDGER_FILE = 1 << 24 /* bytes at most */ };

/* 1 to LEDGER_DIGEST printable ASCII characters. */
bool ledger_digest_good(const char *digest);

/* The lines as a list of objects, all of them checked. NULL: `why` names file, line and fault. `name` is the file's. */
json_t *ledger_parse(const char *text, size_t size, const char *name, char *why, size_t why_size);
json_t *ledger_load(const char *file, char *why, size_t why_size);

/* The line of a digest, borrowed; NULL: there is none. */
json_t *ledger_find(const json_t *lines, const char *digest);

/* The runs of a checked line, to be freed by the caller, and how many. NULL: no memory. */
st_run *ledger_runs(const json_t *line, size_t *n);

/* What a report of `assay run --json` brings: a line without digest, whose one run is of this date and may have noise
 * of its own if that is `stated`. NULL: `why` says why the run does not count. */
json_t *ledger_read_report(const char *file, bool stated, const char *date, char *why, size_t why_size);
json_t *ledger_parse_report(const char *text, size_t size, const char *name, bool stated, const char *date,
                            char *why, size_t why_size);

/* Adds the run of `report` to the line of the digest, which it makes if there is none. False, and nothing is changed:
 * `why` says what forbids it. */
bool ledger_add(json_t *lines, const char *digest, const json_t *report, char *why, size_t why_size);

/* Replaces the file as a whole: whatever ends the program, the file is the old or the new one. Call it with
 * ledger_lock. `why` on failure. */
bool ledger_save(const json_t *lines, const char *file, char *why, size_t why_size);

/* Waits until no other program holds the ledger; FILE.lock stays behind. -1: `why` says why not. */
int ledger_lock(const char *file, char *why, size_t why_size);
void ledger_unlock(int lock);

#endif
