/* graph_test.c - recording and replaying (gpu/device/device.h): nothing runs while it is recorded,
 * everything at each replay, from what then lies in memory; what a recording must not contain
 * is refused, and leaves the device as it was. */
#include <string.h>

#include "gpu/emu/control.h"
#include "gpu/num/rows.h"
#include "tests/ref/suite.h"

enum { V = 3000 /* blocks share a row */, ROWS = 3 };

static ag_device device;
static as_error why;

static void ok(as_status s)
{
    ck_assert_msg(s == AS_OK, "%s", why.text);
}

static void *memory(size_t bytes)
{
    void *at;
    ok(ag_alloc(&device, &at, bytes, "test data", &why));
    return at;
}

/* Rows, the same elsewhere, and where each is greatest. */
typedef struct {
    float *from, *to; /* [ROWS][V] */
    int32_t *id;      /* [2 ROWS] the last ones filled, not computed */
    int32_t *state;   /* [ROWS] */
    ag_scratch scratch;
    int calls;
} work;

static work open_work(void)
{
    const size_t bytes = ROWS * V * sizeof(float), ids = ROWS * sizeof(int32_t);
    emu_processors(4);
    ok(ag_device_open(&device, 0, &why));
    work w = {memory(bytes), memory(bytes), memory(2 * ids), memory(ids), {0}, 0};
    ok(ag_scratch_reserve(&device, ROWS, &w.scratch, &why));
    return w;
}

static void close_work(work *w)
{
    ag_free(w->from);
    ag_free(w->to);
    ag_free(w->id);
    ag_free(w->state);
    ag_scratch_free(&w->scratch);
    ag_device_close(&device);
}

/* A copy, a kernel and a fill; the arguments are gone when it returns. */
static as_status enqueue(void *with, as_error *e)
{
    work *w = with;
    const size_t ids = ROWS * sizeof(int32_t);
    ag_scratch scratch = w->scratch;
    w->calls++;
    as_status s = ag_copy(&device, w->to, w->from, ROWS * V * sizeof(float), e);
    if (s == AS_OK) s = ag_argmax(&device, w->to, NULL, ROWS, V, w->id, w->state, &scratch, e);
    if (s == AS_OK) s = ag_fill(&device, w->id + ROWS, 0x11, ids, e);
    memset(&scratch, 0xff, sizeof scratch);
    return s;
}

/* Row r is greatest at `at` + r. */
static void set_rows(const work *w, int32_t at)
{
    static float x[ROWS][V];
    memset(x, 0, sizeof x);
    for (int32_t r = 0; r < ROWS; r++) x[r][at + r] = 1.0f;
    ok(ag_upload(&device, w->from, x, sizeof x, &why));
    ok(ag_fill(&device, w->id, 0xff, 2 * ROWS * sizeof(int32_t), &why));
}

static void expect(const work *w, int32_t first, int32_t filled)
{
    int32_t id[2 * ROWS];
    ok(ag_download(&device, id, w->id, sizeof id, &why));
    for (int32_t r = 0; r < ROWS; r++) {
        ck_assert_int_eq(id[r], first < 0 ? -1 : first + r);
        ck_assert_int_eq(id[ROWS + r], filled);
    }
}

START_TEST(nothing_runs_before_the_replay_and_all_at_each)
{
    work w = open_work();
    ag_graph *graph;
    set_rows(&w, 5);
    ok(enqueue(&w, &why));
    expect(&w, 5, 0x11111111);
    set_rows(&w, 17);
    const uint64_t before = emu_launches();
    ok(ag_record(&device, enqueue, &w, &graph, &why));
    ck_assert_int_eq(w.calls, 2);
    expect(&w, -1, -1);
    for (int32_t at = 17; at < 2900; at += 800) { /* each time other rows */
        set_rows(&w, at);
        ok(ag_replay(&device, graph, &why));
        expect(&w, at, 0x11111111);
    }
    ck_assert_int_eq(w.calls, 2);
    ck_assert(emu_launches() > before);
    ag_graph_free(graph);
    close_work(&w);
}
END_TEST

/* ---- What is refused. ---------------------------------------------------------------- */

static as_status allocate(void *with, as_error *e)
{
    void *at;
    (void)with;
    return ag_alloc(&device, &at, 16, "a recording", e);
}

static as_status upload(void *with, as_error *e)
{
    const int32_t one = 1;
    return ag_upload(&device, ((work *)with)->id, &one, sizeof one, e);
}

static as_status download(void *with, as_error *e)
{
    int32_t one;
    return ag_download(&device, &one, ((work *)with)->id, sizeof one, e);
}

static as_status wait(void *with, as_error *e)
{
    (void)with;
    return ag_wait(&device, e);
}

/* An error of the caller's own. */
static as_status beyond(void *with, as_error *e)
{
    const as_status s = enqueue(with, e);
    return s == AS_OK ? as_fail(e, AS_LIMIT, "too much") : s;
}

/* Nobody looks at an answer: the recording is none all the same. */
static as_status unseen(void *with, as_error *e)
{
    (void)ag_wait(&device, NULL);
    (void)enqueue(with, e);
    return AS_OK;
}

static const struct {
    as_status (*launch)(void *with, as_error *e);
    as_status status;
    const char *text;
} refused[] = {{allocate, AS_DEVICE, "GPU: no memory for a recording"},
               {upload, AS_DEVICE, "GPU: copying to the device while launches are recorded"},
               {download, AS_DEVICE, "GPU: copying from the device while launches are"},
               {wait, AS_DEVICE, "GPU: running: "},
               {beyond, AS_LIMIT, "too much"},
               {unseen, AS_DEVICE, "GPU: recording: "}};

START_TEST(what_has_no_place_in_a_graph)
{
    work w = open_work();
    ag_graph *graph = (ag_graph *)&w; /* to be overwritten */
    set_rows(&w, 5);
    ok(enqueue(&w, &why));
    set_rows(&w, 8);
    ck_assert_int_eq(ag_record(&device, refused[_i].launch, &w, &graph, &why),
                     refused[_i].status);
    ck_assert_msg(strncmp(why.text, refused[_i].text, strlen(refused[_i].text)) == 0, "%s",
                  why.text);
    ck_assert_ptr_null(graph);
    expect(&w, -1, -1);
    ok(enqueue(&w, &why)); /* the device is as it was */
    expect(&w, 8, 0x11111111);
    ok(ag_record(&device, enqueue, &w, &graph, &why));
    set_rows(&w, 9);
    ok(ag_replay(&device, graph, &why));
    expect(&w, 9, 0x11111111);
    ag_graph_free(graph);
    ag_graph_free(NULL);
    close_work(&w);
}
END_TEST

/* What fails once is told once: the next launch and the next copy are not to blame. */
START_TEST(a_replay_that_fails)
{
    work w = open_work();
    ag_graph *graph;
    set_rows(&w, 5);
    ok(enqueue(&w, &why));
    ok(ag_record(&device, enqueue, &w, &graph, &why));
    if (device.emulated) {
        emu_replays(0);
        ck_assert_int_eq(ag_replay(&device, graph, &why), AS_NO_MEMORY);
        ck_assert_str_eq(why.text, "GPU: running a graph: out of memory");
        emu_replays(-1);
    }
    set_rows(&w, 8);
    ok(enqueue(&w, &why));
    expect(&w, 8, 0x11111111);
    ag_graph_free(graph);
    close_work(&w);
}
END_TEST

/* Who uploaded may write to the source at once. */
START_TEST(an_upload_has_read_its_source)
{
    enum { N = 1000 };
    int32_t x[N], got[N];
    work w = open_work();
    for (int32_t i = 0; i < N; i++) x[i] = i;
    ok(ag_upload(&device, w.from, x, sizeof x, &why));
    memset(x, 0xff, sizeof x);
    ok(ag_download(&device, got, w.from, sizeof got, &why));
    for (int32_t i = 0; i < N; i++) ck_assert_int_eq(got[i], i);
    close_work(&w);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("graph");
    tcase_add_test(t, a_replay_that_fails);
    tcase_add_test(t, an_upload_has_read_its_source);
    tcase_add_test(t, nothing_runs_before_the_replay_and_all_at_each);
    tcase_add_loop_test(t, what_has_no_place_in_a_graph, 0,
                        (int)(sizeof refused / sizeof *refused));
    return suite_main("gpu graphs", t);
}
