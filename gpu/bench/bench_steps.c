/* bench_steps.c - whole steps of the language model at the shapes of real ones: a chain of 1 to
 * 128 rows, all of their logits wanted, on a prefix of 512 positions. The weights are random
 * and made on the device. A step stands beside T(R) (bench.h) for the weights that it reads:
 * what attention reads of the prefix is not in T(R); and beside the same step with a library's
 * products (fast.h), where that is installed. */
#include "gpu/bench/model.h"
#include "gpu/bench/parts.h"

#include <stdlib.h>
#include <string.h>

enum { PREFIX = 512, DRY_PREFIX = 70, SHAPE = 32 /* of a fixed one */ };

typedef struct {
    const ag_shape *of;
    as_storage storage;
    ag_products products;
    as_lm *lm;
    int32_t *rows; /* [4][AG_MOST_ROWS] token, parent, sequence; each row itself */
    float *logits; /* [AG_MOST_ROWS][V] */
    int32_t prefix, R;
    double bytes;   /* of weights that a step reads */
    double one_row; /* the time of one row, 0 before it is known, */
    double *ours;   /* and [LINES] those with our products: written or, for a library, read */
    int line;
} steps;

/* ---- The model. ------------------------------------------------------------------------- */

/* The prefix, in pieces, and the rows of a step on top of it. */
static void start(ag_bench *b, steps *p)
{
    as_row row[AG_MOST_ROWS];
    int32_t rows[4 * AG_MOST_ROWS], *each = rows + 3 * AG_MOST_ROWS, sequence;
    ag_bench_check(b, as_lm_open(p->lm, &sequence, &b->e));
    for (int32_t i = 0; i < AG_MOST_ROWS; i++) {
        row[i] = (as_row){(int32_t)((i * 7919 + 17) % p->of->config.V), i - 1};
        rows[i] = row[i].token;
        rows[AG_MOST_ROWS + i] = row[i].parent;
        rows[2 * AG_MOST_ROWS + i] = sequence;
        each[i] = i;
    }
    for (int32_t at = 0, n; at < p->prefix; at += n) {
        n = p->prefix - at < AG_MOST_ROWS ? p->prefix - at : AG_MOST_ROWS;
        const as_forward f = {sequence, n, 0, row, NULL, NULL};
        ag_bench_check(b, as_lm_forward(p->lm, &f, 1, &b->e));
        ag_bench_check(b, as_lm_commit(p->lm, sequence, each, n, &b->e));
    }
    p->rows = ag_bench_memory(b, sizeof rows, "rows");
    ag_bench_check(b, ag_upload(&b->device, p->rows, rows, sizeof rows, &b->e));
}

static void open_model(ag_bench *b, steps *p)
{
    const as_llama_config *c = &p->of->config;
    const ag_llama_options o = {.rows = AG_MOST_ROWS,
                                .sequences = 1,
                                .tile = p->products == AG_FIXED_SHAPE ? SHAPE : 0,
                                .products = p->products};
    p->lm = ag_model_make(b, c, p->storage, &o);
    const size_t logits = AG_MOST_ROWS * (size_t)c->V * sizeof(float);
    p->logits = ag_bench_memory(b, logits, "logits");
    p->bytes = (double)ag_llama_weight_bytes(p->lm);
    start(b, p);
}

static void close_model(steps *p)
{
    as_lm_free(p->lm);
    ag_free(p->rows);
    ag_free(p->logits);
}

/* ---- Steps. ----------------------------------------------------------------------------- */

enum { LAUNCHED = 7 /* repetitions of what is not a graph: no share is of it */, WAYS = 3 };

/* The rows of the step before are replaced: every step is the same. */
static as_status one_step(ag_bench *b, void *what)
{
    const steps *p = what;
    const ag_step s = {.rows = p->R,
                       .token = p->rows,
                       .parent = p->rows + AG_MOST_ROWS,
                       .sequence = p->rows + 2 * AG_MOST_ROWS,
                       .positions = p->prefix + p->R,
                       .sequences = 1,
                       .wants = p->R,
                       .want = p->rows + 3 * AG_MOST_ROWS,
                       .logits = p->logits};
    return ag_llama_step(p->lm, &s, &b->e);
}

static as_status step_with(ag_bench *b, void *what, int overlap)
{
    const steps *p = what;
    ag_llama_overlap(p->lm, overlap);
    const as_status s = one_step(b, what);
    ag_llama_overlap(p->lm, b->device.overlap);
    return s;
}

/* The same, where no launch begins before the one before it has ended. */
static as_status step_apart(ag_bench *b, void *what)
{
    return step_with(b, what, AG_APART);
}

/* The same, where launches overlap and no product asks for weights before its turn. */
static as_status step_in_turn(ag_bench *b, void *what)
{
    return step_with(b, what, AG_OVERLAP);
}

/* The logits of all are there, and ours the same bits. */
static void look(ag_bench *b, steps *p, const ag_job *job /* [WAYS] */)
{
    const size_t n = (size_t)p->R * (size_t)p->of->config.V;
    float *y = ag_bench_graph_outputs(b, &job[0], p->logits, n, "step");
    for (int way = 1; way < WAYS; way++) {
        float *other = ag_bench_graph_outputs(b, &job[way], p->logits, n, "step");
        if (p->products == AG_CANONICAL && memcmp(y, other, n * sizeof *y) != 0)
            ag_bench_check(b,
                           as_fail(&b->e, AS_DEVICE,
                                   "step: %d rows: launches that overlap leave other bits", p->R));
        free(other);
    }
    free(y);
}

/* How many times the time of a step another way takes, of pairs of repetitions. */
static double times_step(const ag_samples *s, int way)
{
    double ratio[AG_REPETITIONS];
    for (int i = 0; i < s->n; i++) ratio[i] = s->us[way][i] / s->us[0][i];
    return ag_times_of(ratio, s->n).median;
}

static void report_json(ag_bench *b, const steps *p, ag_times launched, ag_times t,
                        double one_row, double ours)
{
    const double seconds = t.median * 1e-6;
    ag_entry(b);
    ag_text(b, "what", "step");
    ag_text(b, "model", p->of->name);
    ag_text(b, "products", ag_products_name(p->products));
    ag_text(b, "storage", ag_storage_name(p->storage));
    ag_number(b, "weight_bytes", p->bytes);
    ag_number(b, "prefix", p->prefix);
    ag_number(b, "rows", p->R);
    ag_measured(b, "launched_us", launched.median);
    ag_graph_times(b, t);
    ag_measured(b, "times_one_row", ag_share(t.median, one_row));
    ag_measured(b, "share_of_read", ag_share(ag_share(p->bytes, seconds), b->read));
    if (p->products != AG_CANONICAL) {
        ag_measured(b, "times_ours", ag_share(t.median, ours));
        return;
    }
    ag_measured(b, "share_of_floor",
                ag_share(ag_floor(b, p->bytes, p->storage, p->R), seconds));
    ag_number(b, "target", p->R < 64 ? 0.80 : 0.70);
}

/* A line of the table. */
static void measure_rows(ag_bench *b, void *with)
{
    steps *p = with;
    double *one_row = &p->one_row, *ours = &p->ours[p->line];
    b->repetitions = LAUNCHED;
    const ag_times launched = b->profile ? (ag_times){0} : ag_bench_time(b, one_step, p);
    b->repetitions = AG_REPETITIONS;
    const ag_job job[WAYS] = {{one_step, p}, {step_apart, p}, {step_in_turn, p}};
    const int jobs = b->device.overlap != AG_EARLY ? 1 : p->products == AG_CANONICAL ? WAYS : WAYS - 1;
    ag_samples samples;
    look(b, p, job);
    ag_bench_time_graphs(b, job, jobs, &samples);
    const ag_times t = ag_times_of(samples.us[0], samples.n);
    const double seconds = t.median * 1e-6;
    if (p->R == 1) *one_row = t.median;
    if (p->products == AG_CANONICAL) *ours = t.median;
    printf("| %s | %s | %s | %d |", p->of->name, ag_products_name(p->products),
           ag_storage_name(p->storage), p->R);
    ag_cell(b, 1, launched.median);
    ag_cell(b, 1, t.median);
    ag_cell(b, 1, t.low);
    ag_cell(b, 1, t.high);
    for (int way = 1; way < WAYS; way++) {
        if (way < jobs)
            ag_cell(b, 3, times_step(&samples, way));
        else
            printf(" - |");
    }
    ag_cell(b, 3, ag_share(t.median, *one_row));
    ag_cell(b, 3, ag_share(ag_share(p->bytes, seconds), b->read));
    if (p->products == AG_CANONICAL) {
        ag_cell(b, 3, ag_share(ag_floor(b, p->bytes, p->storage, p->R), seconds));
        printf(" %.2f | - |\n", p->R < 64 ? 0.80 : 0.70);
    } else {
        printf(" - | - |");
        ag_cell(b, 3, ag_share(t.median, *ours));
        printf("\n");
    }
    report_json(b, p, launched, t, *one_row, *ours);
    if (jobs > 1) ag_measured(b, "without_overlap_times_ours", times_step(&samples, 1));
    if (jobs > 2) ag_measured(b, "without_early_times_ours", times_step(&samples, 2));
}

/* The rows of the table; those of the library are some of ours. */
enum { LINES = 9 };
static const int32_t all_rows[LINES] = {1, 2, 4, 8, 16, 32, 64, 120, AG_MOST_ROWS};

static int measures(const ag_bench *b, ag_products products, int32_t rows)
{
    if (b->profile) return rows == (b->dry ? 4 : 8) || rows == AG_MOST_ROWS;
    if (b->dry) return rows == 1 || rows == 4 || rows == 64;
    return products == AG_CANONICAL || rows == 1 || rows == 8 || rows == SHAPE ||
           (products == AG_FREE && rows == AG_MOST_ROWS);
}

static void measure_model(ag_bench *b, void *with)
{
    steps *p = with;
    const ag_shape *of = p->of;
    if (!b->dry && !ag_bench_fits(b, ag_model_needs(&of->config, p->storage))) {
        printf("| %s | %s | %s | not run: %.1f GB of memory are unused, about %.1f are needed "
               "| | | | | | | | | | | |\n",
               of->name, ag_products_name(p->products), ag_storage_name(p->storage),
               (double)b->facts.unused / 1e9, ag_model_needs(&of->config, p->storage) / 1e9);
        return;
    }
    open_model(b, p);
    for (p->line = 0; p->line < LINES; p->line++) {
        p->R = all_rows[p->line];
        if (measures(b, p->products, p->R)) (void)ag_bench_case(b, measure_rows, p);
    }
    close_model(p);
}

/* Each line has a time of launches and one of graphs. */
static int due(const ag_bench *b, int library)
{
    int n = 0;
    for (int i = 0; i < LINES; i++) {
        n += 2 * 2 * measures(b, AG_CANONICAL, all_rows[i]);
        if (!library) continue;
        n += 3 * 2 * measures(b, AG_FREE, all_rows[i]);
        n += 3 * 2 * measures(b, AG_FIXED_SHAPE, all_rows[i]);
    }
    return n;
}

/* F16 is the library's alone: of ours it has the times of BF16. */
static void measure_shape(ag_bench *b, const ag_shape *of, int library)
{
    static const as_storage storage[] = {AS_F32, AS_BF16, AS_F16};
    double ours[LINES] = {0};
    for (int k = 0; k < 3; k++) {
        for (int how = 0; how < 3; how++) {
            static const ag_products products[] = {AG_CANONICAL, AG_FREE, AG_FIXED_SHAPE};
            steps p = {.of = of,
                       .storage = storage[k],
                       .products = products[how],
                       .prefix = b->dry ? DRY_PREFIX : PREFIX,
                       .ours = ours};
            if (how == 0 ? k < 2 : library) (void)ag_bench_case(b, measure_model, &p);
        }
    }
}

/* One layer has every kernel. */
static void profile_steps(ag_bench *b)
{
    ag_shape one = ag_shapes[b->dry ? AG_DRY_SHAPE : AG_1B_SHAPE];
    double ours[LINES] = {0};
    one.config.layers = 1;
    steps p = {.of = &one,
               .storage = AS_BF16,
               .products = AG_CANONICAL,
               .prefix = b->dry ? DRY_PREFIX : PREFIX,
               .ours = ours};
    (void)ag_bench_case(b, measure_model, &p);
}

void ag_bench_steps(ag_bench *b)
{
    printf("#### Steps of the language model\n\n");
    const int library = ag_bench_library(b);
    printf(
        "Microseconds of a step of so many rows, a chain on a prefix of %d positions, all "
        "logits wanted: launched one by one, and as a graph (median, least, most; the rest "
        "is of these); apart: the time, in turn with it, when no launch begins before the one "
        "before it has ended, times that; in turn: the same, when launches overlap and no product asks for weights "
        "before its turn; x1: times the time of one row; read: the weights' "
        "bytes, share of the "
        "read bandwidth; T: share of the least time T(rows), and what is aimed at; ours: a "
        "library's time, times that of our products in the same storage (F16: in BF16), at "
        "least 1.0 being aimed at in F32. The fixed shape has %d rows.\n\n"
        "| model | products | weights | rows | launched | graph | least | most | apart | in turn | x1 | "
        "read | T | aim | ours |\n"
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
        b->dry ? DRY_PREFIX : PREFIX, SHAPE);
    const int first = b->dry ? AG_DRY_SHAPE : 0, end = b->dry ? AG_DRY_SHAPE + 1 : AG_DRY_SHAPE;
    ag_bench_due(b, (end - first) * due(b, library));
    if (b->profile) profile_steps(b);
    for (int i = first; i < end && !b->profile; i++) measure_shape(b, &ag_shapes[i], library);
    printf("\n");
}
