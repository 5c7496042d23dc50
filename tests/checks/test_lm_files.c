/* The folders of small models: kept under a name of their contents, written whole however many write at once, mended
 * when they are damaged, lent where nothing can be kept. */
#define _POSIX_C_SOURCE 200809L
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>
#include "conformance/checks/model/lm_files.h"
#include "conformance/checks/model/lm_small.h"
#include "conformance/iut.h"

enum { WRITERS = 6, ROUNDS = 30, BYTES = 1000000 };

static char place[] = "/tmp/assay-test-XXXXXX", contents[BYTES];
static const lm_file files[LM_FILES] = {{"config.json", "{}\n", 3}, {"model.safetensors", contents, BYTES}};

static int set_up(void **state)
{
    (void)state;
    for (int i = 0; i < BYTES; i++) contents[i] = (char)(i * 7 / 5);
    return !mkdtemp(place) || setenv("ASSAY_CACHE", place, 1);
}

static int tear_down(void **state)
{
    char command[100];
    (void)state;
    snprintf(command, sizeof command, "rm -r %s", place);
    return system(command);
}

static const char *path_of(const char *folder, const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static bool whole(const char *folder)
{
    static char read[BYTES + 1];
    FILE *f = fopen(path_of(folder, "model.safetensors"), "rb");
    const size_t n = f ? fread(read, 1, sizeof read, f) : 0;
    if (f) fclose(f);
    return n == BYTES && memcmp(read, contents, BYTES) == 0 && access(path_of(folder, "config.json"), R_OK) == 0;
}

static void spoil(const char *folder, const char *mode)
{
    FILE *f = fopen(path_of(folder, "model.safetensors"), mode);
    assert_non_null(f);
    fputs("half", f);
    fclose(f);
}

static time_t written(const char *folder)
{
    struct stat s;
    assert_int_equal(stat(path_of(folder, "model.safetensors"), &s), 0);
    return s.st_mtim.tv_sec * 1000000 + s.st_mtim.tv_nsec / 1000;
}

static void is_kept_and_mended(void **state)
{
    static const char *const damage[] = {"w", "r+", "a"}; /* another file, changed, longer */
    char folder[LM_FOLDER], again[LM_FOLDER], other[LM_FOLDER];
    bool chosen;
    (void)state;
    assert_true(lm_files_keep("toy", files, folder, &chosen) && chosen);
    assert_memory_equal(folder, place, strlen(place));
    assert_true(whole(folder));
    const time_t at = written(folder);
    assert_true(lm_files_keep("toy", files, again, &chosen));
    assert_string_equal(again, folder);
    assert_int_equal(written(folder), at); /* not written again */
    for (int i = 0; i < 4; i++) {
        if (i < 3)
            spoil(folder, damage[i]);
        else
            assert_int_equal(truncate(path_of(folder, "model.safetensors"), BYTES / 2), 0);
        assert_false(whole(folder));
        assert_true(lm_files_keep("toy", files, again, &chosen) && whole(folder));
    }
    contents[BYTES - 1] ^= 1;
    assert_true(lm_files_keep("toy", files, other, &chosen));
    contents[BYTES - 1] ^= 1;
    assert_string_not_equal(other, folder);
    assert_true(whole(folder) && !whole(other));
}

/* Whoever has been told of the folder finds it whole, while the others write. */
static void is_whole_for_many(void **state)
{
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        pid_t child[WRITERS];
        int gate[2];
        char byte;
        assert_int_equal(pipe(gate), 0);
        contents[0] = (char)round; /* a folder that nobody has written yet */
        for (int i = 0; i < WRITERS; i++) {
            child[i] = fork();
            if (child[i] != 0) continue;
            char folder[LM_FOLDER];
            bool chosen;
            close(gate[1]);
            if (read(gate[0], &byte, 1) != 0) _exit(2); /* waits for the others */
            _exit(!(lm_files_keep("many", files, folder, &chosen) && whole(folder)));
        }
        close(gate[0]);
        close(gate[1]);
        for (int i = 0; i < WRITERS; i++) {
            int status = 1;
            assert_int_equal(waitpid(child[i], &status, 0), child[i]);
            assert_int_equal(status, 0);
        }
    }
}

/* In a process of its own: the environment, and then what a model says. 0: it is as it should be. */
static int model_of(const char *variable, const char *value, bool (*as_due)(const char *folder, const char *why))
{
    int status = -1;
    const pid_t child = fork();
    if (child == 0) {
        char why[300] = "";
        unsetenv("ASSAY_CACHE");
        unsetenv("XDG_CACHE_HOME");
        unsetenv("HOME");
        setenv("TMPDIR", place, 1);
        if (variable) setenv(variable, value, 1);
        const char *folder = lm_small_folder("few", why, sizeof why);
        exit(!as_due(folder, why)); /* so that what was lent is removed */
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static bool is_below(const char *folder, const char *part)
{
    return folder && strstr(folder, part) && access(path_of(folder, "model.safetensors"), R_OK) == 0;
}

static bool in_cache(const char *folder, const char *why)
{
    (void)why;
    return is_below(folder, "/assay/few-");
}

static bool in_home(const char *folder, const char *why)
{
    (void)why;
    return is_below(folder, "/.cache/assay/few-");
}

static bool lent(const char *folder, const char *why)
{
    (void)why;
    return is_below(folder, "/assay-models-");
}

static bool refused(const char *folder, const char *why)
{
    return !folder && strstr(why, "ASSAY_CACHE") && strstr(why, "few");
}

static int lent_folders(void)
{
    char command[200];
    snprintf(command, sizeof command, "test -z \"$(find %s -name 'assay-models-*')\"", place);
    return system(command);
}

static void has_its_places(void **state)
{
    char in_the_way[100];
    (void)state;
    snprintf(in_the_way, sizeof in_the_way, "%s/file", place);
    fclose(fopen(in_the_way, "w"));
    assert_int_equal(model_of("XDG_CACHE_HOME", place, in_cache), 0);
    assert_int_equal(model_of("HOME", place, in_home), 0);
    assert_int_equal(model_of("HOME", in_the_way, lent), 0);
    assert_int_equal(model_of(NULL, NULL, lent), 0);
    assert_int_equal(model_of("ASSAY_CACHE", in_the_way, refused), 0);
    assert_int_equal(lent_folders(), 0);
}

/* A form that was drawn is used once. */
static void drawn_forms_are_lent(void **state)
{
    uint64_t rng = 5;
    char why[300] = "";
    const lm_form f = lm_form_draw(&rng, IUT_QWEN3, 64, 0);
    const char *folder = lm_form_folder(&f, why, sizeof why);
    (void)state;
    assert_non_null(folder);
    assert_null(strstr(folder, place));
    assert_non_null(strstr(folder, "/assay-models-"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_kept_and_mended),
        cmocka_unit_test(is_whole_for_many),
        cmocka_unit_test(has_its_places),
        cmocka_unit_test(drawn_forms_are_lent),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
