/* ledger_lines.c - see ledger_lines.h. */
#include "conformance/cli/ledger_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "conformance/suite/run.h"
#include "ref/load/json.h"

static const char remedy[] = "`assay ledger --add` alone writes a ledger: bring back an older copy of it";

bool ledger_digest_good(const char *digest)
{
    const size_t n = strlen(digest);
    bool good = n >= 1 && n <= LEDGER_DIGEST;
    for (size_t i = 0; i < n; i++) good = good && digest[i] >= ' ' && digest[i] <= '~';
    return good;
}

/* -- Values ------------------------------------------------------------------------------ */

/* A whole number of 64 bits as it is printed, and nothing else. */
static bool read_seed(as_json *r, const json_t *o, const char **seed)
{
    char again[24];
    if (!as_json_text(r, o, "seed", seed)) return false;
    snprintf(again, sizeof again, "%" PRIu64, (uint64_t)strtoull(*seed, NULL, 10));
    return strcmp(again, *seed) == 0 || as_json_bad(r, "seed", "must be a whole number of 64 bits, as a text");
}

static bool read_log_e(as_json *r, const json_t *o, double *log_e)
{
    const char *text = json_string_value(json_object_get(o, "log_e"));
    *log_e = 0;
    if (!text) return as_json_number(r, o, "log_e", log_e);
    *log_e = *text == '-' ? -INFINITY : INFINITY;
    return strcmp(text, *text == '-' ? "-Infinity" : "Infinity") == 0 ||
           as_json_bad(r, "log_e", "must be a number, \"Infinity\" or \"-Infinity\"");
}

static bool read_nats(as_json *r, const json_t *o, double *nats)
{
    return as_json_number(r, o, "nats", nats) && (*nats >= 0 || as_json_bad(r, "nats", "must not be negative"));
}

static bool read_word(as_json *r, const json_t *o, const char *key, const char *words)
{
    const char *word;
    if (!as_json_text(r, o, key, &word)) return false;
    return (*word && as_json_names(words, word, strlen(word))) || as_json_bad(r, key, "must be one of: %s", words);
}

static bool read_date(as_json *r, const json_t *o)
{
    const char *s;
    int year, month, day, end = 0;
    if (!as_json_text(r, o, "added", &s)) return false;
    return (strlen(s) == 10 && strspn(s, "0123456789-") == 10 &&
            sscanf(s, "%4d-%2d-%2d%n", &year, &month, &day, &end) == 3 && end == 10 && month >= 1 && month <= 12 &&
            day >= 1 && day <= 31) ||
           as_json_bad(r, "added", "must be a date written YYYY-MM-DD");
}

/* -- Lines ------------------------------------------------------------------------------- */

static bool read_run(as_json *r, const json_t *o, st_run *run, const char **seed)
{
    return as_json_has_keys(r, o, "seed log_e nats level noise added", "") && read_seed(r, o, seed) &&
           read_log_e(r, o, &run->log_e) && read_nats(r, o, &run->nats) &&
           read_word(r, o, "level", "smoke full deep") && read_word(r, o, "noise", "seeds stated") && read_date(r, o);
}

/* Fills runs[], if it is not NULL. `seeds` gets the seeds as keys. */
static bool read_runs(as_json *r, const json_t *line, json_t *seeds, st_run *runs)
{
    const json_t *list = json_object_get(line, "runs");
    if (!as_json_list(r, list, "runs", 1, LEDGER_RUNS)) return false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const size_t mark = as_json_enter(r, "runs", i);
        const char *seed;
        st_run run;
        if (!read_run(r, json_array_get(list, i), &run, &seed)) return false;
        if (json_object_get(seeds, seed)) return as_json_bad(r, "seed", "another run has it");
        if (json_object_set_new(seeds, seed, json_true()) != 0) return as_json_no_memory(r);
        if (runs) runs[i] = run;
        as_json_leave(r, mark);
    }
    return true;
}

static bool read_line(as_json *r, const json_t *line)
{
    const char *digest, *text;
    if (!as_json_has_keys(r, line, "digest name version options claims runs", "") ||
        !as_json_text(r, line, "digest", &digest) || !as_json_text(r, line, "name", &text) ||
        !as_json_text(r, line, "version", &text) || !as_json_text(r, line, "options", &text))
        return false;
    if (!ledger_digest_good(digest))
        return as_json_bad(r, "digest", "must have 1 to %d printable ASCII characters", LEDGER_DIGEST);
    if (!json_is_object(json_object_get(line, "claims"))) return as_json_bad(r, "claims", "must be an object");
    json_t *seeds = json_object();
    const bool good = read_runs(r, line, seeds, NULL);
    json_decref(seeds);
    return good;
}

json_t *ledger_find(const json_t *lines, const char *digest)
{
    for (size_t i = 0; i < json_array_size(lines); i++) {
        json_t *line = json_array_get(lines, i);
        if (strcmp(json_string_value(json_object_get(line, "digest")), digest) == 0) return line;
    }
    return NULL;
}

/* Reads a line and appends it. */
static bool append_line(json_t *lines, const char *text, size_t size, as_json *r)
{
    json_t *line = as_json_parse(r, text, size, JSON_OBJECT);
    if (!line) return false;
    if (!read_line(r, line) ||
        (ledger_find(lines, json_string_value(json_object_get(line, "digest"))) &&
         !as_json_bad(r, "digest", "another line has it"))) {
        json_decref(line);
        return false;
    }
    return json_array_append_new(lines, line) == 0 || as_json_no_memory(r);
}

json_t *ledger_parse(const char *text, size_t size, const char *name, char *why, size_t why_size)
{
    json_t *lines = json_array();
    bool good = lines != NULL;
    for (size_t at = 0, number = 1; good && at < size; number++) {
        char place[1100];
        const char *end = memchr(text + at, '\n', size - at);
        snprintf(place, sizeof place, "%s:%zu", name, number);
        as_json r = {place, remedy, why, why_size, AS_OK, ""};
        good = end ? append_line(lines, text + at, (size_t)(end - text) - at, &r)
                   : as_json_bad(&r, "", "the line does not end: it was cut");
        at = end ? (size_t)(end - text) + 1 : size;
    }
    if (good) return lines;
    if (!lines) snprintf(why, why_size, "%s: there is no memory for it", name);
    json_decref(lines);
    return NULL;
}

json_t *ledger_load(const char *file, char *why, size_t why_size)
{
    FILE *f = fopen(file, "rb");
    char *text = f ? malloc(LEDGER_FILE) : NULL;
    json_t *lines = NULL;
    const size_t size = text ? fread(text, 1, LEDGER_FILE, f) : 0;
    if (!f || (text && ferror(f)))
        snprintf(why, why_size, "cannot read %s: %s", file, strerror(errno));
    else if (!text || size == LEDGER_FILE)
        snprintf(why, why_size, "%s: %s", file, text ? "larger than 16 MiB" : "there is no memory for it");
    else
        lines = ledger_parse(text, size, file, why, why_size);
    if (f) fclose(f);
    free(text);
    return lines;
}

st_run *ledger_runs(const json_t *line, size_t *n)
{
    char why[300];
    as_json r = {"the ledger", NULL, why, sizeof why, AS_OK, ""};
    *n = json_array_size(json_object_get(line, "runs"));
    st_run *runs = malloc((*n + 1) * sizeof *runs);
    json_t *seeds = json_object();
    if (runs && !read_runs(&r, line, seeds, runs)) {
        free(runs);
        runs = NULL;
    }
    json_decref(seeds);
    return runs;
}

/* -- Reports ----------------------------------------------------------------------------- */

typedef struct {
    int64_t exit_code, statistical;
    bool own_noise;
    double log_e, nats;
    const char *seed, *level, *name, *version, *options;
    json_t *claims; /* borrowed */
} report_facts;

static bool read_report(as_json *r, const json_t *root, report_facts *x)
{
    const json_t *identity = json_object_get(root, "identity");
    x->claims = json_object_get(identity, "claims");
    if (!as_json_integer(r, root, "exit_code", 0, 4, &x->exit_code) ||
        !as_json_integer(r, root, "statistical", 0, INT32_MAX, &x->statistical) ||
        !as_json_bool(r, root, "own_noise", &x->own_noise) || !read_seed(r, root, &x->seed) ||
        !read_word(r, root, "level", "smoke full deep") || !as_json_text(r, root, "level", &x->level) ||
        !as_json_text(r, root, "iut_options", &x->options))
        return false;
    if (!json_is_object(identity)) return as_json_bad(r, "identity", "must be an object");
    as_json_enter_object(r, "identity");
    return as_json_text(r, identity, "name", &x->name) && as_json_text(r, identity, "version", &x->version) &&
           (json_is_object(x->claims) || as_json_bad(r, "claims", "must be an object"));
}

/* STAT-13: what must not count, or cannot. */
static bool counts(as_json *r, const json_t *root, report_facts *x, bool stated)
{
    r->remedy = NULL;
    *r->path = '\0';
    if (x->exit_code == EXIT_USAGE || x->exit_code == EXIT_ERROR)
        return as_json_bad(r, "", "the run ended with exit code %d, a fault that is not the implementation's",
                           (int)x->exit_code);
    if (x->statistical == 0) return as_json_bad(r, "", "the run has no statistical cases, and so no e-value");
    if (x->own_noise && !stated)
        return as_json_bad(r, "", "the noise is the implementation's own; if it starts otherwise in each run, "
                                  "say --noise-is-new (docs/statistics.md)");
    return read_log_e(r, root, &x->log_e) && read_nats(r, root, &x->nats);
}

/* JSON has no infinities. */
static json_t *number(double x)
{
    return isfinite(x) ? json_real(x) : json_string(x > 0 ? "Infinity" : "-Infinity");
}

static json_t *line_of(const report_facts *x, const char *date)
{
    return json_pack("{s:s,s:s,s:s,s:O,s:[{s:s,s:o,s:o,s:s,s:s,s:s}]}", "name", x->name, "version", x->version,
                     "options", x->options, "claims", x->claims, "runs", "seed", x->seed, "log_e", number(x->log_e),
                     "nats", number(x->nats), "level", x->level, "noise", x->own_noise ? "stated" : "seeds", "added",
                     date);
}

static json_t *of_report(as_json *r, json_t *root, bool stated, const char *date)
{
    report_facts x;
    json_t *line = NULL;
    if (root && read_report(r, root, &x) && counts(r, root, &x, stated) && !(line = line_of(&x, date)))
        as_json_no_memory(r);
    json_decref(root);
    return line;
}

static const char report_remedy[] = "a report is written by `assay run --json` of this version";

json_t *ledger_read_report(const char *file, bool stated, const char *date, char *why, size_t why_size)
{
    as_json r = {file, report_remedy, why, why_size, AS_OK, ""};
    return of_report(&r, as_json_load(&r, JSON_OBJECT), stated, date);
}

json_t *ledger_parse_report(const char *text, size_t size, const char *name, bool stated, const char *date,
                            char *why, size_t why_size)
{
    as_json r = {name, report_remedy, why, why_size, AS_OK, ""};
    return of_report(&r, as_json_parse(&r, text, size, JSON_OBJECT), stated, date);
}

/* -- Adding ------------------------------------------------------------------------------ */

/* Is the run one of the implementation that the line is of, and not there yet? */
static bool fits(const json_t *line, const json_t *report, char *why, size_t why_size)
{
    static const char *const same[] = {"name", "version", "options", "claims"};
    const json_t *runs = json_object_get(line, "runs"), *run = json_array_get(json_object_get(report, "runs"), 0),
                 *seed = json_object_get(run, "seed");
    const char *digest = json_string_value(json_object_get(line, "digest"));
    *why = '\0';
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (!json_equal(json_object_get(line, same[i]), json_object_get(report, same[i])))
            snprintf(why, why_size, "the %s of the implementation is not that of the runs of %s: name a new digest",
                     same[i], digest);
    for (size_t i = 0; i < json_array_size(runs); i++)
        if (json_equal(json_object_get(json_array_get(runs, i), "seed"), seed))
            snprintf(why, why_size, "seed %s is in the line of %s already: the same questions count once",
                     json_string_value(seed), digest);
    if (json_array_size(runs) >= LEDGER_RUNS)
        snprintf(why, why_size, "the line of %s is full: it has %d runs", digest, LEDGER_RUNS);
    return !*why;
}

bool ledger_add(json_t *lines, const char *digest, const json_t *report, char *why, size_t why_size)
{
    json_t *line = ledger_find(lines, digest), *run = json_array_get(json_object_get(report, "runs"), 0);
    bool added;
    if (line) {
        if (!fits(line, report, why, why_size)) return false;
        added = json_array_append(json_object_get(line, "runs"), run) == 0;
    } else {
        line = json_pack("{s:s}", "digest", digest);
        json_t *rest = json_deep_copy(report);
        added = json_object_update(line, rest) == 0 && json_array_append(lines, line) == 0;
        json_decref(rest);
        json_decref(line);
    }
    if (!added) snprintf(why, why_size, "there is no memory for the ledger");
    return added;
}

/* -- The file ---------------------------------------------------------------------------- */

static bool write_lines(const json_t *lines, FILE *f)
{
    bool ok = true;
    for (size_t i = 0; ok && i < json_array_size(lines); i++)
        ok = json_dumpf(json_array_get(lines, i), f, JSON_COMPACT | JSON_PRESERVE_ORDER) == 0 && fputc('\n', f) != EOF;
    errno = ok && ftell(f) >= LEDGER_FILE ? EFBIG : errno; /* nobody could read it again */
    return ok && ftell(f) < LEDGER_FILE && fflush(f) == 0 && fsync(fileno(f)) == 0;
}

/* Writes beside the file what it is to be, with the rights that it has. */
static bool write_beside(const json_t *lines, const char *file, const char *next)
{
    struct stat old;
    FILE *f = fopen(next, "w");
    if (!f) return false;
    bool ok = stat(file, &old) != 0 || fchmod(fileno(f), old.st_mode & 0777) == 0;
    ok = ok && write_lines(lines, f);
    const int error = errno;
    if (fclose(f) != 0) return false;
    errno = error;
    return ok;
}

/* So that the new name, too, outlives a loss of power. */
static bool sync_folder(const char *file)
{
    char path[4096];
    snprintf(path, sizeof path, "%s", file);
    const int folder = open(dirname(path), O_RDONLY | O_DIRECTORY);
    const bool ok = folder >= 0 && fsync(folder) == 0;
    if (folder >= 0) close(folder);
    return ok;
}

/* FILE and an ending; false: it is too long. */
static bool name_beside(const char *file, const char *ending, char name[4096], char *why, size_t why_size)
{
    if (snprintf(name, 4096, "%s%s", file, ending) < 4096) return true;
    snprintf(why, why_size, "the name of the ledger is too long");
    return false;
}

bool ledger_save(const json_t *lines, const char *file, char *why, size_t why_size)
{
    char next[4096];
    if (!name_beside(file, ".new", next, why, why_size)) return false;
    if (write_beside(lines, file, next) && rename(next, file) == 0) {
        if (sync_folder(file)) return true;
        snprintf(why, why_size, "%s is written, but may not outlive a loss of power: %s", file, strerror(errno));
        return false;
    }
    snprintf(why, why_size, "cannot write %s: %s; %s is as it was", next, strerror(errno), file);
    remove(next);
    return false;
}

int ledger_lock(const char *file, char *why, size_t why_size)
{
    char name[4096];
    struct stat s;
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!name_beside(file, ".lock", name, why, why_size)) return -1;
    if (lstat(file, &s) == 0 && !S_ISREG(s.st_mode)) {
        snprintf(why, why_size, "%s is no regular file; name the file itself", file);
        return -1;
    }
    const int lock = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int held = lock < 0 ? -1 : fcntl(lock, F_SETLKW, &whole);
    while (lock >= 0 && held != 0 && errno == EINTR) held = fcntl(lock, F_SETLKW, &whole);
    if (held == 0) return lock;
    snprintf(why, why_size, "cannot lock %s: %s", name, strerror(errno));
    if (lock >= 0) close(lock);
    return -1;
}

void ledger_unlock(int lock)
{
    close(lock);
}
