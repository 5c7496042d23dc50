/* bench_chunks.c - what the grouping of chunk sums (ARI-06) costs or gains on a device: the
 * product with groups of 8 chunks, the spec's, against flat sums, at all shapes of the layers
 * of a model of 1.1 billion parameters and of one of 8 billion. It settles which of the two
 * version 1 of the arithmetic has, by a rule that the report states (chunk_rule.h). Needs no
 * package where it runs.
 *
 * Both are graphs of products whose weights no cache holds, repeated in turn: what is compared
 * is neither the time of a launch nor the device at two times. The products of a whole step are
 * not run as one: their time is added up from the products of each shape, repetition by
 * repetition. */
#include "gpu/bench/bench.h"
#include "gpu/bench/chunk_rule.h"
#include "gpu/bench/flat.h"
#include "gpu/bench/model.h"

#include <stdlib.h>
#include <string.h>

enum { GROUPED, FLAT, VARIANTS, MODELS = 2, STORAGES = 2 };

static const int32_t all_rows[] = {1, 2, 4, 8, 16, 32, 64, AG_MOST_ROWS};
enum { LINES = sizeof all_rows / sizeof *all_rows };
static const as_storage storages[STORAGES] = {AS_F32, AS_BF16};

typedef as_status product(const ag_device *d, const ag_matrix *w, const float *x,
                          int64_t x_step, int32_t R, float *y, int64_t y_step,
                          const ag_parts *p, as_error *e);

typedef struct {
    const ag_set *set;
    ag_parts parts;
    product *run;
    int32_t R;
} variant;

/* ---- One product. ----------------------------------------------------------------------- */

/* One repetition is a product with every matrix of the set. */
static as_status products(ag_bench *b, void *what)
{
    const variant *v = what;
    as_status s = AS_OK;
    for (int i = 0; i < v->set->n && s == AS_OK; i++) {
        const ag_matrix *m = &v->set->m[i];
        s = v->run(&b->device, m, v->set->x, m->K, v->R, v->set->y, m->N, &v->parts, &b->e);
    }
    return s;
}

static float *outputs(ag_bench *b, variant *v, const char *name)
{
    ag_set_poison(b, v->set, v->R);
    ag_bench_check(b, products(b, v));
    return ag_set_outputs(b, v->set, v->R, name);
}

/* How many of the outputs differ. None would say that both are one arithmetic, and that nothing
 * was compared. */
static size_t count_different(ag_bench *b, variant *v)
{
    const ag_matrix *m = &v->set->m[0];
    const size_t n = (size_t)v->R * (size_t)m->N;
    float *y = outputs(b, &v[GROUPED], "grouped"), *z = outputs(b, &v[FLAT], "flat");
    size_t different = 0;
    for (size_t i = 0; i < n; i++) different += memcmp(&y[i], &z[i], sizeof *y) != 0;
    free(y);
    free(z);
    if (different == 0)
        ag_bench_check(b,
                       as_fail(&b->e, AS_DEVICE,
                               "grouped and flat sums of %d inputs give the same bits", m->K));
    return different;
}

/* ---- The report. ------------------------------------------------------------------------ */

static ag_times ratios_of(const ag_samples *s)
{
    double ratio[AG_REPETITIONS];
    for (int i = 0; i < s->n; i++) ratio[i] = s->us[FLAT][i] / s->us[GROUPED][i];
    return ag_times_of(ratio, s->n);
}

/* Cells and members that a product and the products of a step have alike; the times are of n
 * products. */
static void report_times(ag_bench *b, const ag_samples *s, double bytes, int n)
{
    static const char *const name[VARIANTS][4] = {
        {"grouped_us", "grouped_us_least", "grouped_us_most", "grouped_share_of_read"},
        {"flat_us", "flat_us_least", "flat_us_most", "flat_share_of_read"}};
    for (int k = 0; k < VARIANTS; k++) {
        const ag_times t = ag_times_of_one(ag_times_of(s->us[k], s->n), n);
        const double share = ag_share(bytes * 1e6 / t.median, b->read);
        ag_cell(b, 2, t.median);
        ag_cell(b, 2, t.high - t.low);
        ag_cell(b, 3, share);
        ag_measured(b, name[k][0], t.median);
        ag_measured(b, name[k][1], t.low);
        ag_measured(b, name[k][2], t.high);
        ag_measured(b, name[k][3], share);
    }
    const ag_times ratio = ratios_of(s);
    ag_cell(b, 3, ratio.median);
    ag_cell(b, 3, ratio.low);
    ag_cell(b, 3, ratio.high);
    ag_number(b, "repetitions", s->n);
    ag_measured(b, "times_grouped", ratio.median);
    ag_measured(b, "times_grouped_least", ratio.low);
    ag_measured(b, "times_grouped_most", ratio.high);
}

static void report(ag_bench *b, const variant *v, const ag_samples *s, size_t different)
{
    const ag_matrix *m = &v->set->m[0];
    const char *storage = ag_storage_name(m->storage);
    ag_entry(b);
    ag_text(b, "what", "chunk sums");
    ag_text(b, "storage", storage);
    ag_number(b, "outputs", m->N);
    ag_number(b, "inputs", m->K);
    ag_number(b, "rows", v->R);
    ag_number(b, "different_outputs", (double)different);
    ag_text(b, "timed", b->dry ? "not" : b->recorded ? "graph" : "launches");
    printf("| %d | %d | %s | %d |", m->N, m->K, storage, v->R);
    report_times(b, s, (double)v->set->bytes, v->set->n);
    printf("\n");
}

/* ---- The products of a step. ------------------------------------------------------------ */

/* Microseconds and bytes of all products of a step. One may not have been measured, or by its
 * launches, which decide nothing. */
typedef struct {
    ag_samples s;
    double bytes;
    int missing, launched;
} step;

typedef struct {
    int32_t N, K;
    int times; /* in a step */
} shape;

/* Those that a step of the model has (llama.h): [q; k; v], o, [gate; up], down, output. */
enum { SHAPES = 5 };
static void shapes_of(const as_llama_config *c, shape *to /* [SHAPES] */)
{
    const int32_t q = c->heads * c->head_dim, kv = c->kv_heads * c->head_dim;
    to[0] = (shape){q + 2 * kv, c->hidden, c->layers};
    to[1] = (shape){c->hidden, q, c->layers};
    to[2] = (shape){2 * c->ffn, c->hidden, c->layers};
    to[3] = (shape){c->hidden, c->ffn, c->layers};
    to[4] = (shape){c->V, c->hidden, 1};
}

static void add_to_step(step *to, const ag_samples *s, const ag_set *set, int times)
{
    if (to->bytes == 0 || s->n < to->s.n) to->s.n = s->n;
    to->bytes += (double)set->bytes * times;
    for (int k = 0; k < VARIANTS; k++)
        for (int i = 0; i < s->n; i++) to->s.us[k][i] += s->us[k][i] / set->n * times;
}

static void compare(ag_bench *b, const shape *of, as_storage storage, step *to /* [LINES] */)
{
    ag_set set;
    variant v[VARIANTS] = {{.set = &set, .run = ag_product},
                           {.set = &set, .run = flat_product}};
    const ag_job job[VARIANTS] = {{products, &v[GROUPED]}, {products, &v[FLAT]}};
    if (!ag_set_make(b, of->N, of->K, storage, &set)) {
        printf("| %d | %d | %s | not run: the device's memory is too small "
               "| | | | | | | | | |\n",
               of->N, of->K, ag_storage_name(storage));
        for (int i = 0; i < LINES; i++) to[i].missing = 1;
        return;
    }
    ag_bench_check(
        b, ag_parts_reserve(&b->device, &set.m[0], AG_MOST_ROWS, &v[GROUPED].parts, &b->e));
    ag_bench_check(
        b, flat_parts_reserve(&b->device, &set.m[0], AG_MOST_ROWS, &v[FLAT].parts, &b->e));
    for (int i = 0; i < LINES; i++) {
        ag_samples s;
        v[GROUPED].R = v[FLAT].R = all_rows[i];
        const size_t different = count_different(b, v);
        ag_bench_time_graphs(b, job, VARIANTS, &s);
        report(b, v, &s, different);
        to[i].launched |= !b->recorded;
        add_to_step(&to[i], &s, &set, of->times);
    }
    ag_parts_free(&v[GROUPED].parts);
    flat_parts_free(&v[FLAT].parts);
    ag_set_free(&set);
}

/* ---- The rule. -------------------------------------------------------------------------- */

static int winner(const step *of)
{
    return chunk_winner(of->s.us[GROUPED], of->s.us[FLAT], of->s.n);
}

/* Whether a step of so many rows has a voice. */
static int decides(int32_t rows)
{
    return rows == 1 || rows == 8 || rows == 32 || rows == AG_MOST_ROWS;
}

static void report_step(ag_bench *b, const char *model, as_storage storage, int32_t rows,
                        const step *of)
{
    static const char *const word[] = {"grouped", "neither", "flat"};
    const int won = winner(of);
    if (of->missing) {
        printf("| %s | %s | %d | not run: memory | | | | | | | | | |\n", model,
               ag_storage_name(storage), rows);
        return;
    }
    ag_entry(b);
    ag_text(b, "what", "products of a step");
    ag_text(b, "model", model);
    ag_text(b, "storage", ag_storage_name(storage));
    ag_number(b, "rows", rows);
    ag_number(b, "decides", decides(rows));
    printf("| %s | %s | %d |", model, ag_storage_name(storage), rows);
    report_times(b, &of->s, of->bytes, 1);
    printf(" %s |\n", b->dry ? "-" : word[won + 1]);
    ag_measured(b, "times_won", won);
}

static void decide(ag_bench *b, step all[MODELS][STORAGES][LINES])
{
    int won = 0, lost = 0, missing = 0;
    for (int m = 0; m < MODELS; m++)
        for (int k = 0; k < STORAGES; k++)
            for (int i = 0; i < LINES; i++) {
                if (!decides(all_rows[i])) continue;
                won += winner(&all[m][k][i]) > 0;
                lost += winner(&all[m][k][i]) < 0;
                missing += all[m][k][i].missing || all[m][k][i].launched;
            }
    const char *sums = b->dry ? "undecided" : chunk_decision(won, lost, missing);
    printf(
        "\nThe rule: version 1 of the arithmetic has groups of 8 chunks, the default, unless "
        "flat sums win on a device: unless at 1, 8, 32 and 128 rows, in both models and "
        "storages, they win a line of the last table and lose none. A line is won by what "
        "takes less time by more than %.0f %% in three of four repetitions.\n\n"
        "By this rule: %s",
        100 * CHUNK_MARGIN, sums);
    if (!b->dry)
        printf("; of %d lines flat sums win %d and lose %d; %d were not measured, or not "
               "as graphs",
               MODELS * STORAGES * 4, won, lost, missing);
    printf(".\n\n");
    ag_entry(b);
    ag_text(b, "what", "version 1");
    ag_text(b, "sums", sums);
    ag_measured(b, "times_won", won);
    ag_measured(b, "times_lost", lost);
    ag_number(b, "missing", missing);
}

/* ---- All. ------------------------------------------------------------------------------- */

/* Of the dry model once is enough. */
static int models_of(const ag_bench *b)
{
    return b->dry ? 1 : MODELS;
}

static const ag_shape *model_of(const ag_bench *b, int i)
{
    return &ag_shapes[b->dry ? AG_DRY_SHAPE : i == 0 ? AG_1B_SHAPE : AG_8B_SHAPE];
}

static void measure_model(ag_bench *b, const as_llama_config *c, as_storage s, step *to)
{
    static const shape dry = {36, 2500, 1}; /* three groups, the last of them short */
    shape of[SHAPES];
    shapes_of(c, of);
    for (int i = 0; i < SHAPES && !b->dry; i++) compare(b, &of[i], s, to);
    if (b->dry) compare(b, &dry, s, to);
}

int main(int argc, char **argv)
{
    static step all[MODELS][STORAGES][LINES];
    ag_bench b;
    ag_bench_open(&b, "Grouped and flat chunk sums", NULL, argc, argv);
    printf("Microseconds of one product in a graph of products with other weights, median and "
           "spread (most less least); read: share of the read bandwidth; flat/grouped: of "
           "repetitions in turn, median, least and most.\n\n"
           "| outputs | inputs | weights | rows | grouped | spread | read | flat | spread | "
           "read | flat/grouped | least | most |\n"
           "|---:|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n");
    for (int m = 0; m < models_of(&b); m++)
        for (int k = 0; k < STORAGES; k++)
            measure_model(&b, &model_of(&b, m)->config, storages[k], all[m][k]);
    printf("\nThe products of a whole step, added up:\n\n"
           "| model | weights | rows | grouped | spread | read | flat | spread | "
           "read | flat/grouped | least | most | less time |\n"
           "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|\n");
    for (int m = 0; m < models_of(&b); m++)
        for (int k = 0; k < STORAGES; k++)
            for (int i = 0; i < LINES; i++)
                report_step(&b, model_of(&b, m)->name, storages[k], all_rows[i], &all[m][k][i]);
    decide(&b, all);
    return ag_bench_close(&b);
}
