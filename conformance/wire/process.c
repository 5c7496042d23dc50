/* process.c - see process.h. */
#define _GNU_SOURCE /* pipe2, F_SETPIPE_SZ */
#include "conformance/wire/process.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "conformance/wire/clock.h"

extern char **environ;

enum { TAIL = 1024, PIPE_BYTES = 1 << 20, AHEAD = 1 << 16 };

static const double SLICE = 0.1; /* seconds */

struct process {
    pid_t pid;          /* 0 once reaped */
    atomic_int *seat;   /* of its group in `groups`, until it is reaped */
    int exit_code;      /* -1: it did not end by itself */
    int in, out, error; /* our ends of its 0, 1 and 2; -1 when closed; non-blocking */
    const stop *stop;   /* ends every wait; NULL: none does */
    int log;            /* where its standard error is copied to; -1: nowhere */
    struct iovec part[PROCESS_MAX_PARTS];
    int first, count;           /* what of `part` is still to be written */
    char tail[TAIL];            /* the last bytes of its standard error */
    size_t tail_size, tail_new; /* tail_new: of them, those since the last process_send */
    char ahead[AHEAD]; /* output that was read before it was asked for, from ahead_at on */
    size_t ahead_at, ahead_end;
};

static void nap(double seconds)
{
    const struct timespec t = {0, (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

static void close_end(int *fd)
{
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

/* ---- Groups. --------------------------------------------------------------------- */

enum { GROUPS = 1024, STARTING = -1 };

_Static_assert(ATOMIC_INT_LOCK_FREE == 2, "a signal handler must not take a lock");

/* The groups of all processes, for process_kill_all. 0: a vacant seat; STARTING: its process is
 * being started. */
static atomic_int groups[GROUPS];
static atomic_bool ended; /* no process starts any more */

/* A seat for a process that starts now. NULL: all are taken, or the program ends. */
static atomic_int *take_seat(void)
{
    for (int i = 0; i < GROUPS; i++) {
        int vacant = 0;
        if (!atomic_compare_exchange_strong(&groups[i], &vacant, STARTING)) continue;
        if (!atomic_load(&ended)) return &groups[i];
        atomic_store(&groups[i], 0);
        return NULL;
    }
    return NULL;
}

void process_kill_all(void)
{
    enum { PAUSE = 10, PATIENCE = 100 }; /* milliseconds; pauses for all of what starts */
    int left = PATIENCE;
    atomic_store(&ended, true);
    for (int i = 0; i < GROUPS; i++) {
        int group = atomic_load(&groups[i]);
        for (; group == STARTING && left; left--) {
            poll(NULL, 0, PAUSE);
            group = atomic_load(&groups[i]);
        }
        if (group <= 0) continue;
        kill(-group, SIGKILL);
        kill(group, SIGKILL); /* as process_kill does */
    }
}

/* ---- Start. ---------------------------------------------------------------------- */

/* Three pipes: child end at [i][0], ours at [i][1]. All close on exec; ours do not block. */
static bool open_pipes(int end[3][2])
{
    for (int i = 0; i < 3; i++) {
        int fd[2];
        if (pipe2(fd, O_CLOEXEC) != 0) return false;
        end[i][0] = fd[i > 0]; /* the child reads from its 0 and writes to 1 and 2 */
        end[i][1] = fd[i == 0];
        fcntl(end[i][1], F_SETFL, O_NONBLOCK);
        fcntl(end[i][1], F_SETPIPE_SZ,
              PIPE_BYTES); /* fewer switches; the default serves, too */
    }
    return true;
}

static int spawn(pid_t *pid, char *const argv[], int end[3][2])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_init(&actions);
    if (error) return error;
    error = posix_spawnattr_init(&attributes);
    for (int i = 0; i < 3 && !error; i++)
        error = posix_spawn_file_actions_adddup2(&actions, end[i][0], i);
    if (!error) {
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                  POSIX_SPAWN_SETSIGDEF);
        posix_spawnattr_setpgroup(&attributes, 0);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        error = posix_spawn(pid, argv[0], &actions, &attributes, argv, environ);
    }
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Signals wait until the group has its seat: a handler that runs process_kill_all in this very
 * thread would wait for it in vain. */
static int spawn_seated(process *p, char *const argv[], int end[3][2])
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    p->seat = take_seat();
    const int error = p->seat ? spawn(&p->pid, argv, end) : EAGAIN;
    if (p->seat) atomic_store(p->seat, error ? 0 : p->pid);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

process *process_start(char *const argv[], const char *stderr_log, char *why, size_t why_size)
{
    int end[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
    process *p = calloc(1, sizeof *p);
    const int log =
        stderr_log ? open(stderr_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;
    int error = p ? 0 : ENOMEM;
    if (!error && ((stderr_log && log < 0) || !open_pipes(end))) error = errno;
    if (!error) error = spawn_seated(p, argv, end);
    for (int i = 0; i < 3; i++) close_end(&end[i][0]);
    if (!error) {
        p->in = end[0][1], p->out = end[1][1], p->error = end[2][1], p->log = log;
        return p;
    }
    snprintf(why, why_size, "cannot start %s%s%s: %s", argv[0], stderr_log ? " with log " : "",
             stderr_log ? stderr_log : "", strerror(error));
    for (int i = 0; i < 3; i++) close_end(&end[i][1]);
    if (log >= 0) close(log);
    free(p);
    return NULL;
}

/* ---- Input and output. ----------------------------------------------------------- */

/* Keeps the last TAIL bytes and copies all to the log. */
static void keep_error(process *p, const char *bytes, size_t size)
{
    for (size_t sent = 0; p->log >= 0 && sent < size;) {
        const ssize_t n = write(p->log, bytes + sent, size - sent);
        if (n <= 0) break; /* a full disk does not change a verdict */
        sent += (size_t)n;
    }
    if (size > TAIL) bytes += size - TAIL, size = TAIL;
    const size_t keep = p->tail_size + size > TAIL ? TAIL - size : p->tail_size;
    memmove(p->tail, p->tail + (p->tail_size - keep), keep);
    memcpy(p->tail + keep, bytes, size);
    p->tail_size = keep + size;
    p->tail_new = p->tail_new + size > TAIL ? TAIL : p->tail_new + size;
}

static void drain_error(process *p)
{
    char bytes[4096];
    while (p->error >= 0) {
        const ssize_t n = read(p->error, bytes, sizeof bytes);
        if (n > 0)
            keep_error(p, bytes, (size_t)n);
        else if (n == 0 || (errno != EAGAIN && errno != EINTR))
            close_end(&p->error);
        else
            return;
    }
}

/* writev without SIGPIPE: blocked in this thread for the call, and taken if the call raised it.
 */
static ssize_t write_quietly(int fd, const struct iovec *parts, int count)
{
    sigset_t pipe, before, pending;
    sigemptyset(&pipe);
    sigemptyset(&pending);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, &before);
    if (sigismember(&before, SIGPIPE)) sigpending(&pending); /* only then can it be */
    const ssize_t n = writev(fd, parts, count);
    const int error = errno;
    if (n < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE)) {
        const struct timespec now = {0, 0};
        while (sigtimedwait(&pipe, NULL, &now) < 0 && errno == EINTR) continue;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return n;
}

/* One write of what is queued. A side that reads no more is no error here: its answer may stand
 * in the pipe already, and its end shows when reading. */
static void push(process *p)
{
    ssize_t n = write_quietly(p->in, p->part + p->first, p->count - p->first);
    if (n < 0 && errno != EAGAIN && errno != EINTR) p->first = p->count;
    for (; n >= 0 && p->first < p->count; p->first++) {
        struct iovec *part = &p->part[p->first];
        if ((size_t)n < part->iov_len) {
            part->iov_base = (char *)part->iov_base + n;
            part->iov_len -= (size_t)n;
            return;
        }
        n -= (ssize_t)part->iov_len;
    }
}

/* Waits until something can move, and moves input and standard error. A signal may ask for a
 * stop while another thread waits here, so no wait is longer than a slice. */
static io_result turn(process *p, bool reading, double deadline)
{
    const double stopped = stop_deadline(p->stop, 0),
                 left = fmin(deadline, stopped) - clock_now();
    if (left <= 0) return stopped < deadline ? IO_STOPPED : IO_TIMEOUT;
    const bool writing = p->first < p->count;
    struct pollfd fds[3] = {{reading ? p->out : -1, POLLIN, 0},
                            {writing ? p->in : -1, POLLOUT, 0},
                            {p->error, POLLIN, 0}};
    poll(fds, 3, (int)(fmin(left, SLICE) * 1e3) + 1);
    if (fds[1].revents) push(p);
    if (fds[2].revents) drain_error(p);
    return IO_OK;
}

void process_obey(process *p, const stop *s)
{
    p->stop = s;
}

void process_send(process *p, const struct iovec *parts, int count)
{
    drain_error(p);
    p->tail_new = 0;
    memcpy(p->part, parts, (size_t)count * sizeof *parts);
    p->first = 0;
    p->count = count;
    push(p);
}

/* At most `size` bytes of what was read ahead. */
static size_t take_ahead(process *p, void *to, size_t size)
{
    const size_t there = p->ahead_end - p->ahead_at, n = there < size ? there : size;
    if (n) memcpy(to, p->ahead + p->ahead_at, n); /* `to` may be NULL where nothing is due */
    p->ahead_at += n;
    return n;
}

/* One read for the whole of a small answer, and none into the buffer of what is larger than it.
 */
io_result process_read(process *p, void *to, size_t size, double deadline)
{
    for (size_t got = take_ahead(p, to, size); got < size;) {
        char *const rest = (char *)to + got;
        const bool direct = size - got >= AHEAD;
        const ssize_t n = read(p->out, direct ? rest : p->ahead, direct ? size - got : AHEAD);
        if (n > 0 && direct) {
            got += (size_t)n;
        } else if (n > 0) {
            p->ahead_at = 0, p->ahead_end = (size_t)n;
            got += take_ahead(p, rest, size - got);
        } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            return IO_CLOSED;
        } else {
            const io_result r = turn(p, true, deadline);
            if (r != IO_OK) return r;
        }
    }
    return IO_OK;
}

io_result process_flush(process *p, double deadline)
{
    io_result r = IO_OK;
    while (r == IO_OK && p->first < p->count) r = turn(p, false, deadline);
    return r;
}

bool process_has_output(process *p)
{
    struct pollfd out = {p->out, POLLIN, 0};
    if (p->ahead_at < p->ahead_end) return true;
    return poll(&out, 1, 0) > 0 && (out.revents & POLLIN);
}

/* ---- End. ------------------------------------------------------------------------ */

/* Has it ended? It stays a zombie, so that its group keeps its number until reap. */
static bool has_ended(process *p)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

static bool wait_end(process *p, double grace)
{
    const double begun = clock_now();
    double pause = 1e-4;
    while (!has_ended(p)) {
        if (clock_now() >= fmin(begun + grace, stop_deadline(p->stop, begun))) return false;
        drain_error(p);
        nap(pause);
        if (pause < 0.01) pause *= 2;
    }
    return true;
}

/* The last line of text[0, end) that is not blank, in printable ASCII; of a line that is too
 * long, its last size - 1 bytes. Returns where the line starts. */
static size_t last_line(const char *text, size_t end, char *line, size_t size)
{
    while (end && (unsigned char)text[end - 1] <= ' ') end--;
    size_t start = end;
    while (start && text[start - 1] != '\n') start--;
    const size_t from = end - start < size ? start : end - size + 1;
    for (size_t i = from; i < end; i++) {
        const char c = text[i];
        line[i - from] = c < ' ' || c > '~' ? '?' : c;
    }
    line[end - from] = '\0';
    return start;
}

static bool adds_nothing(const char *line, const char *said)
{
    return strstr(said, line) || (*said && strstr(line, said));
}

/* Is the line at `at` of the last words a continuation? How a line began that lies only in part
 * in the tail, nobody knows. */
static bool is_indented(const process *p, const char *text, size_t at)
{
    const bool cut = at == 0 && p->tail_new == TAIL;
    return !cut && (text[at] == ' ' || text[at] == '\t');
}

void process_last_words(process *p, const char *said, char *line, size_t size)
{
    drain_error(p);
    const char *const text = p->tail + (p->tail_size - p->tail_new);
    size_t at = p->tail_new;
    do {
        at = last_line(text, at, line, size);
    } while (*line && (is_indented(p, text, at) || adds_nothing(line, said)));
}

/* How it ended, from the status of waitpid. A shell reports the signal of its command as 128 +
 * signal. */
static int describe_end(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        return snprintf(text, size, "ended by signal %d (%s)", WTERMSIG(status),
                        strsignal(WTERMSIG(status)));
    const int code = WEXITSTATUS(status), by_signal = code - 128;
    if (by_signal < 1 || by_signal >= SIGRTMIN)
        return snprintf(text, size, "exit code %d", code);
    return snprintf(text, size, "exit code %d: a shell says so of signal %d (%s)", code,
                    by_signal, strsignal(by_signal));
}

void process_close_input(process *p)
{
    p->first = p->count; /* what is queued goes nowhere */
    close_end(&p->in);
}

process_ending process_kill(process *p, double grace, char *text, size_t size)
{
    const bool by_itself = wait_end(p, grace);
    kill(-p->pid, SIGKILL);
    kill(p->pid, SIGKILL);    /* if the group is not its own any more */
    atomic_store(p->seat, 0); /* while the zombie keeps the number from others */
    int status = 0;
    while (waitpid(p->pid, &status, 0) < 0 && errno == EINTR) continue;
    p->pid = 0;
    p->exit_code = by_itself && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    drain_error(p);
    char line[200];
    last_line(p->tail, p->tail_size, line, sizeof line);
    const int at = by_itself ? describe_end(status, text, size)
                             : snprintf(text, size, "killed by the suite");
    if (*line && at >= 0 && (size_t)at < size)
        snprintf(text + at, size - (size_t)at, PROCESS_LAST_WORDS "%s", line);
    if (!by_itself) return ENDED_KILLED;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? ENDED_WELL : ENDED_BADLY;
}

int process_exit_code(const process *p)
{
    return p->exit_code;
}

void process_free(process *p)
{
    if (!p) return;
    char text[8];
    process_close_input(p);
    if (p->pid) process_kill(p, 1.0, text, sizeof text);
    close_end(&p->out);
    close_end(&p->error);
    close_end(&p->log);
    free(p);
}
