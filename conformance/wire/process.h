/* process.h - a child process that speaks over pipes, with deadlines. Clause STA-02.
 *
 * It is started with posix_spawn (never a bare fork: the caller may run threads), in a process
 * group of its own, and everything of the group dies with it. What is sent is queued and
 * written while waiting for an answer, so that neither side can block the other; its standard
 * error is drained at the same time. Nothing changes the caller's signal dispositions. A
 * process belongs to one thread. */
#ifndef ASSAY_CONFORMANCE_WIRE_PROCESS_H
#define ASSAY_CONFORMANCE_WIRE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>

#include "conformance/wire/stop.h"

enum { PROCESS_MAX_PARTS = 20 };

typedef struct process process;

typedef enum { IO_OK, IO_CLOSED, IO_TIMEOUT, IO_STOPPED } io_result;

/* argv[0] is a path. Standard error is appended to the file `stderr_log` unless that is NULL.
 * NULL on failure, with the reason in `why`. */
process *process_start(char *const argv[], const char *stderr_log, char *why, size_t why_size);

/* From now on nobody waits for it beyond the deadline of `s`, which may be NULL and must outlive it:
 * reads and writes are then IO_STOPPED. */
void process_obey(process *p, const stop *s);

/* Queues parts, at most PROCESS_MAX_PARTS, which must stay valid until process_flush or
 * process_free. */
void process_send(process *p, const struct iovec *parts, int count);

/* Reads exactly `size` bytes, writing what is queued meanwhile. IO_CLOSED: the other side
 * closed its output before. `deadline` is a time of clock_now. */
io_result process_read(process *p, void *to, size_t size, double deadline);

/* Writes what is queued. */
io_result process_flush(process *p, double deadline);

/* Is there output that nobody asked for? */
bool process_has_output(process *p);

/* What stands in a message before the last line of standard error. */
#define PROCESS_LAST_WORDS "; last line of its stderr: "

/* The last line that it has written on standard error since the last process_send, with or without a
 * newline, and that says more than `said`; "" if there is none. `line` gets printable ASCII ('?' for
 * any other byte), and of a line that is too long the end. A line that begins with a blank or a tab
 * continues the line above it, as frames of a traceback do, and is passed over. */
void process_last_words(process *p, const char *said, char *line, size_t size);

/* Closes its input: it is to end now. */
void process_close_input(process *p);

typedef enum { ENDED_WELL, ENDED_BADLY, ENDED_KILLED } process_ending;

/* Kills the group, after `grace` seconds in which it may end by itself, and reaps it. Well: by
 * itself, with exit code 0. `text` gets how it ended and the last line of its standard error.
 * What it wrote can still be read. */
process_ending process_kill(process *p, double grace, char *text, size_t size);

/* After process_kill: its exit code if it ended by itself, else -1. */
int process_exit_code(const process *p);

/* Kills the groups of all processes, which nobody then reaps, and lets none start any more: the
 * program ends now. Async-signal-safe; waits a second at most for what is being started. A process
 * that has left its group, and what it started since, escapes. */
void process_kill_all(void);

/* Ends a process in order: closes its input and waits, one second at most, before killing it.
 */
void process_free(process *p);

#endif
