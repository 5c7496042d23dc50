/* no_memory_test.c - a model on the device for which some allocation there fails: an error that
 * says so, and nothing kept. */
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/llama.h"
#include "tests/ref/suite.h"
#include "tests/ref/tiny_llama.h"

static ag_device device;
static as_error why;

static void ok(as_status s)
{
    ck_assert_msg(s == AS_OK, "%s", why.text);
}

/* Calls of ag_alloc and ag_free come here first (--wrap). */
static long live, left = -1; /* allocations, and those to come that succeed; -1: all */

as_status __real_ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what,
                          as_error *e);
as_status __wrap_ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what,
                          as_error *e);
void __real_ag_free(void *at);
void __wrap_ag_free(void *at);

as_status __wrap_ag_alloc(const ag_device *d, void **at, size_t bytes, const char *what,
                          as_error *e)
{
    *at = NULL;
    if (left == 0) return as_fail(e, AS_NO_MEMORY, "GPU: no memory for %s", what);
    if (left > 0) left--;
    live++;
    return __real_ag_alloc(d, at, bytes, what, e);
}

void __wrap_ag_free(void *at)
{
    live -= at != NULL;
    __real_ag_free(at);
}

START_TEST(no_memory)
{
    tiny_llama *t = tiny_new(TINY_WIDE, 1, 1);
    const ag_llama_options o = {.rows = 4, .sequences = 2, .positions = 100};
    as_lm *lm;
    emu_processors(40);
    ok(ag_device_open(&device, 0, &why));
    const long before = live;
    as_status s = AS_NO_MEMORY;
    for (long n = 0; s != AS_OK; n++) {
        left = n;
        s = ag_llama(&device, &t->config, &t->weights, &o, &lm, &why);
        ck_assert(s == AS_OK || (s == AS_NO_MEMORY && strstr(why.text, "no memory")));
        ck_assert(s != AS_OK || n > 35);
        left = -1;
        as_lm_free(lm);
        ck_assert_int_eq(live, before);
    }
    tiny_free(t);
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("no memory");
    tcase_add_test(tests, no_memory);
    return suite_main("gpu no memory", tests);
}
