/* bench_shapes.c - what becomes of a row's logits when other rows stand beside it: the same
 * row, on the same prefix, alone and among k + 1 rows, with our products and with the library's
 * (fast.h), rows as they come and in a fixed shape. The rows of a forward are siblings: none is
 * the context of another, so that nothing but their number and place can make a difference. At
 * the shape of a model of 1.1 billion random parameters, and on the trained pair where there is
 * one.
 *
 * Logits of ours that change are an error. So is, in a dry run, where the library's twin is
 * known, what it must not do. */
#include "gpu/bench/model.h"
#include "gpu/bench/parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "ref/load/model.h"

enum { ROWS = 16, PREFIX = 64, STEP = 5, SEVERAL = 8, MANY = 32 };

/* Rows beside the one that is looked at, and whether they stand in reverse. */
typedef struct {
    int32_t beside, reversed;
} company;
static const company companies[] = {{1, 0}, {4, 0}, {7, 0}, {15, 0}, {15, 1}};
enum { COMPANIES = sizeof companies / sizeof *companies };

/* A model to make or to load. */
typedef struct {
    const char *name;
    const as_llama_config *config;
    const as_llama_weights *weights; /* NULL: random */
    int32_t contexts;
} subject;

typedef struct {
    int64_t logits, changed, ulp; /* ulp: the largest difference */
    int32_t rows, flips;
} tally;

typedef struct {
    ag_bench *b;
    const subject *of;
    ag_products products;
    as_storage storage;
    as_lm *lm;
    int32_t sequence, length;
    float *alone, *among; /* [ROWS][V] */
    tally t[COMPANIES];
} shapes;

/* ---- Rows. ------------------------------------------------------------------------------ */

/* Token i of the prefix. The trained pair reads bytes. */
static int32_t prefix_token(const shapes *x, int32_t i)
{
    static const char text[] =
        "In the beginning God created the heaven and the earth. And the earth was without "
        "form, and void; and darkness was upon the face of the deep. ";
    return x->of->weights ? text[i % (int32_t)(sizeof text - 1)]
                          : (i * 7919 + 17) % x->of->config->V;
}

/* Sibling i, each another token. */
static int32_t sibling_token(const shapes *x, int32_t i)
{
    static const char letter[ROWS + 1] = " etaoinshrdlucmf";
    return x->of->weights ? letter[i] : (i * 1543 + 5) % x->of->config->V;
}

static void extend(shapes *x, int32_t tokens)
{
    as_row row[ROWS];
    int32_t each[ROWS];
    for (int32_t n; tokens > 0; tokens -= n) {
        n = tokens < ROWS ? tokens : ROWS;
        for (int32_t i = 0; i < n; i++) {
            row[i] = (as_row){prefix_token(x, x->length++), i - 1};
            each[i] = i;
        }
        const as_forward f = {x->sequence, n, 0, row, NULL, NULL};
        ag_bench_check(x->b, as_lm_forward(x->lm, &f, 1, &x->b->e));
        ag_bench_check(x->b, as_lm_commit(x->lm, x->sequence, each, n, &x->b->e));
    }
}

/* Siblings first to first + n - 1, their logits in that order, in whichever they stand. */
static void evaluate(shapes *x, int32_t first, int32_t n, int32_t reversed, float *logits)
{
    as_row row[ROWS];
    int32_t want[ROWS];
    for (int32_t i = 0; i < n; i++) {
        want[i] = reversed ? n - 1 - i : i;
        row[want[i]] = (as_row){sibling_token(x, first + i), -1};
    }
    const as_forward f = {x->sequence, n, n, row, want, logits};
    ag_bench_check(x->b, as_lm_forward(x->lm, &f, 1, &x->b->e));
}

/* ---- Differences. ----------------------------------------------------------------------- */

/* Neighbours among the binary32 are one apart. */
static int64_t place_of(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >= 0 ? bits : (int64_t)INT32_MIN - bits;
}

static int32_t argmax(const float *logit, int32_t V)
{
    int32_t best = 0;
    for (int32_t v = 1; v < V; v++)
        if (logit[v] > logit[best]) best = v;
    return best;
}

static void compare(shapes *x, const float *alone, const float *among, tally *t)
{
    const int32_t V = x->of->config->V;
    for (int32_t v = 0; v < V; v++) {
        if (!isfinite(alone[v]) || !isfinite(among[v]))
            ag_bench_check(x->b, as_fail(&x->b->e, AS_DEVICE, "%s: logit %d is not finite",
                                         ag_products_name(x->products), (int)v));
        const int64_t apart = llabs(place_of(alone[v]) - place_of(among[v]));
        t->changed += memcmp(&alone[v], &among[v], sizeof *alone) != 0;
        if (apart > t->ulp) t->ulp = apart;
    }
    t->logits += V;
    t->rows++;
    t->flips += argmax(alone, V) != argmax(among, V);
}

static void measure_context(shapes *x)
{
    const size_t V = (size_t)x->of->config->V;
    for (int32_t i = 0; i < ROWS; i++) evaluate(x, i, 1, 0, x->alone + (size_t)i * V);
    for (int c = 0; c < COMPANIES; c++) {
        const int32_t n = companies[c].beside + 1;
        evaluate(x, 0, n, companies[c].reversed, x->among);
        for (size_t i = 0; i < (size_t)n; i++)
            compare(x, x->alone + i * V, x->among + i * V, &x->t[c]);
    }
}

/* ---- The report. ------------------------------------------------------------------------ */

static void report(const shapes *x, const company *c, const tally *t)
{
    ag_bench *b = x->b;
    const double changed = ag_share((double)t->changed, (double)t->logits);
    const double flipped = ag_share(t->flips, t->rows);
    printf("| %s | %s | %s | %d%s | %d |", x->of->name, ag_products_name(x->products),
           ag_storage_name(x->storage), (int)c->beside, c->reversed ? ", reversed" : "",
           (int)t->rows);
    ag_cell(b, 5, changed);
    ag_cell(b, 0, t->flips);
    ag_cell(b, 0, (double)t->ulp);
    printf("\n");
    ag_entry(b);
    ag_text(b, "what", "shapes");
    ag_text(b, "model", x->of->name);
    ag_text(b, "products", ag_products_name(x->products));
    ag_text(b, "storage", ag_storage_name(x->storage));
    ag_number(b, "beside", c->beside);
    ag_number(b, "reversed", c->reversed);
    ag_number(b, "rows", t->rows);
    ag_measured(b, "share_changed", changed);
    ag_measured(b, "share_flipped", flipped);
    ag_measured(b, "most_ulp", (double)t->ulp);
}

/* What is not a finding but a fault. */
static void judge(const shapes *x)
{
    int64_t changed = 0;
    for (int c = 0; c < COMPANIES; c++) changed += x->t[c].changed;
    if (x->products == AG_CANONICAL && changed > 0)
        ag_bench_check(x->b,
                       as_fail(&x->b->e, AS_DEVICE,
                               "%s, %s: %lld logits of ours depend on the rows beside "
                               "them",
                               x->of->name, ag_storage_name(x->storage), (long long)changed));
    if (x->b->device.emulated && (changed > 0) != (x->products == AG_FREE))
        ag_bench_check(x->b, as_fail(&x->b->e, AS_DEVICE, "%s, %s: %lld logits change",
                                     ag_products_name(x->products), ag_storage_name(x->storage),
                                     (long long)changed));
}

/* ---- Models. ---------------------------------------------------------------------------- */

static void open_model(shapes *x)
{
    ag_bench *b = x->b;
    const ag_llama_options o = {.positions = PREFIX + MANY * STEP + 1,
                                .rows = ROWS,
                                .sequences = 1,
                                .tile = ROWS,
                                .products = x->products,
                                .storage = x->storage};
    if (x->of->weights)
        ag_bench_check(b,
                       ag_llama(&b->device, x->of->config, x->of->weights, &o, &x->lm, &b->e));
    else
        x->lm = ag_model_make(b, x->of->config, x->storage, &o);
    ag_bench_check(b, as_lm_open(x->lm, &x->sequence, &b->e));
}

static void look(ag_bench *b, void *with)
{
    shapes x = *(const shapes *)with;
    const subject *of = x.of;
    const ag_products products = x.products;
    const as_storage storage = x.storage;
    const size_t bytes = ROWS * (size_t)of->config->V * sizeof(float);
    if (!b->dry && !ag_bench_fits(b, ag_model_needs(of->config, storage))) {
        printf("| %s | %s | %s | not run: the device's memory is too small | | | | |\n",
               of->name, ag_products_name(products), ag_storage_name(storage));
        return;
    }
    x.alone = malloc(bytes);
    x.among = malloc(bytes);
    if (!x.alone || !x.among)
        ag_bench_check(b, as_fail(&b->e, AS_NO_MEMORY, "no memory for logits"));
    open_model(&x);
    extend(&x, PREFIX);
    for (int32_t i = 0; i < (b->dry ? 1 : of->contexts); i++) {
        measure_context(&x);
        extend(&x, STEP);
    }
    as_lm_free(x.lm);
    for (int c = 0; c < COMPANIES; c++) report(&x, &companies[c], &x.t[c]);
    judge(&x);
    free(x.alone);
    free(x.among);
}

static void measure(ag_bench *b, const subject *of, ag_products products, as_storage storage)
{
    shapes x = {.b = b, .of = of, .products = products, .storage = storage};
    (void)ag_bench_case(b, look, &x);
}

/* Ours takes a model as it is stored, which of a random one is as one likes. */
static void measure_subject(ag_bench *b, const subject *of, int library)
{
    static const as_storage storage[] = {AS_F32, AS_BF16, AS_F16};
    for (int i = 0; i < 3; i++)
        if (!of->weights || of->weights->embedding.storage == storage[i])
            measure(b, of, AG_CANONICAL, storage[i]);
    for (int i = 0; library && i < 3; i++) {
        measure(b, of, AG_FREE, storage[i]);
        measure(b, of, AG_FIXED_SHAPE, storage[i]);
    }
}

static void measure_trained(ag_bench *b, const char *name, int library)
{
    char folder[1000];
    as_model_files files;
    as_model_info info;
    snprintf(folder, sizeof folder, "%s/%s", b->models, name);
    ag_bench_check(b, as_open_weights(folder, &files, &info, &b->e));
    measure_subject(b, &(subject){name, &info.config, &files.weights, MANY}, library);
    as_close_weights(&files);
}

void ag_bench_shapes(ag_bench *b)
{
    const ag_shape *shape = &ag_shapes[b->dry ? AG_DRY_SHAPE : AG_1B_SHAPE];
    printf("#### Rows beside a row\n\n");
    const int library = ag_bench_library(b);
    printf("The same row alone and among others, on the same prefix: rows looked at; the share "
           "of their logits whose bits change; rows whose greedy token changes; the largest "
           "difference in units in the last place of the logit itself, which near 0 are small. "
           "A fixed shape has %d rows.\n\n"
           "| model | products | weights | beside | rows | changed | flips | ulp |\n"
           "|---|---|---|---:|---:|---:|---:|---:|\n",
           ROWS);
    measure_subject(b, &(subject){shape->name, &shape->config, NULL, SEVERAL}, library);
    if (b->models && !b->dry) measure_trained(b, "target", library);
    if (b->models) measure_trained(b, "draft", library);
    printf("\n");
}
