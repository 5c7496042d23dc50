/* See bench_measure.h. The clock is read around every call of the target and of the drafter, by
 * a model and a drafter that pass everything on. */
#include "conformance/cli/bench/bench_measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "conformance/cli/arguments/options.h"
#include "conformance/wire/clock.h"
#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/load/json.h"

enum { ROWS = 1024 }; /* the draft model reads a prompt at once */

/* Seconds that the processor has given to this program. */
static double processor(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- A model and a drafter with a clock. ----------------------------------------------- */

typedef struct {
    as_lm base;
    as_lm *lm;
    double seconds;
} timed_lm;

static as_status lm_open(as_lm *lm, int32_t *sequence, as_error *e)
{
    return as_lm_open(((timed_lm *)lm)->lm, sequence, e);
}

static void lm_close(as_lm *lm, int32_t sequence)
{
    as_lm_close(((timed_lm *)lm)->lm, sequence);
}

static as_status lm_forward(as_lm *lm, const as_forward *f, int32_t n, as_error *e)
{
    timed_lm *t = (timed_lm *)lm;
    const double start = processor();
    const as_status s = as_lm_forward(t->lm, f, n, e);
    t->seconds += processor() - start;
    return s;
}

static as_status lm_commit(as_lm *lm, int32_t sequence, const int32_t *path, int32_t n,
                           as_error *e)
{
    timed_lm *t = (timed_lm *)lm;
    const double start = processor();
    const as_status s = as_lm_commit(t->lm, sequence, path, n, e);
    t->seconds += processor() - start;
    return s;
}

static as_status lm_truncate(as_lm *lm, int32_t sequence, int32_t length, as_error *e)
{
    return as_lm_truncate(((timed_lm *)lm)->lm, sequence, length, e);
}

static int32_t lm_length(const as_lm *lm, int32_t sequence)
{
    return as_lm_length(((const timed_lm *)lm)->lm, sequence);
}

static const as_lm_ops lm_ops = {lm_open,     lm_close,  lm_forward, lm_commit,
                                 lm_truncate, lm_length, NULL};

typedef struct {
    as_drafter base;
    as_drafter *drafter;
    double seconds;
} timed_drafter;

static as_status drafter_reset(as_drafter *d, as_error *e)
{
    as_drafter *inner = ((timed_drafter *)d)->drafter;
    return as_drafter_reset(inner, e);
}

static as_status drafter_propose(as_drafter *d, const as_context *c, as_tree *tree,
                                 as_plan *plan, as_error *e)
{
    timed_drafter *t = (timed_drafter *)d;
    const double start = processor();
    const as_status s = as_drafter_propose(t->drafter, c, tree, plan, e);
    t->seconds += processor() - start;
    return s;
}

static as_status drafter_observe(as_drafter *d, const as_context *c, const as_step *step,
                                 as_error *e)
{
    timed_drafter *t = (timed_drafter *)d;
    const double start = processor();
    const as_status s = as_drafter_observe(t->drafter, c, step, e);
    t->seconds += processor() - start;
    return s;
}

static const as_drafter_ops drafter_ops = {drafter_reset, drafter_propose, drafter_observe,
                                           NULL, NULL};

/* ---- The pair and its prompts. --------------------------------------------------------- */

static bool pick(as_json *r, const model *m, const json_t *all, int32_t prompts, bench_text *t)
{
    const size_t n = json_array_size(all), wanted = (size_t)prompts;
    if (n == 0) return as_json_bad(r, "", "must not be empty");
    for (size_t i = 0; i < wanted && i < n; i++) {
        const size_t at = n > wanted ? i * n / wanted : i;
        const json_t *s = json_array_get(all, at);
        if (!json_is_string(s)) return as_json_bad(r, "", "[%zu] must be a text", at);
        if (!tokens_of_text(m, json_string_value(s), json_string_length(s), &t->prompt[i]))
            return as_json_no_memory(r);
        t->n = (int32_t)i + 1;
    }
    return true;
}

static bool load_text(const model *m, int32_t prompts, bench_text *t)
{
    char share[1024], path[1200], why[400];
    share_folder("vectors", share, sizeof share);
    snprintf(path, sizeof path, "%s/models/%s", share, t->file);
    as_json r = {path, "restore the file, a list of texts", why, sizeof why, AS_OK, ""};
    json_t *all = as_json_load(&r, JSON_ARRAY);
    const bool loaded = all && pick(&r, m, all, prompts, t);
    if (!loaded) fprintf(stderr, "assay bench: %s\n", why);
    json_decref(all);
    return loaded;
}

bool bench_open(bench_pair *b, int32_t prompts, int32_t budget)
{
    const as_llama_options options = {.rows = ROWS, .threads = 1};
    *b = (bench_pair){.budget = budget,
                      .text = {{.name = "held-out", .file = "prompts.json"},
                               {.name = "repetitive", .file = "repetitive.json"}}};
    if (!model_load(&b->target, NULL, "target", &options) ||
        !model_load(&b->draft, NULL, "draft", &options))
        return false;
    for (int i = 0; i < BENCH_TEXTS; i++)
        if (!load_text(&b->target, prompts, &b->text[i])) return false;
    return true;
}

void bench_close(bench_pair *b)
{
    for (int i = 0; i < BENCH_TEXTS; i++)
        for (int32_t j = 0; j < BENCH_PROMPTS; j++) free(b->text[i].prompt[j].token);
    model_free(&b->target);
    model_free(&b->draft);
}

/* ---- Decoding. ------------------------------------------------------------------------- */

/* One request at a time, into the result. */
typedef struct {
    timed_lm target;
    timed_drafter drafter;
    bench_result *r;
    bool first;
    double wall, cpu, model, drafted; /* the clocks after the last step */
} meter;

static void on_step(void *data, const as_step *s)
{
    meter *m = data;
    const double wall = clock_now(), cpu = processor();
    m->r->rows += s->tree->rows;
    if (!m->first) {
        m->r->wall += wall - m->wall;
        m->r->cpu += cpu - m->cpu;
        m->r->model += m->target.seconds - m->model;
        m->r->drafter += m->drafter.seconds - m->drafted;
        m->r->timed += s->emitted;
        m->r->timed_steps++;
    }
    m->first = false;
    m->wall = wall, m->cpu = cpu;
    m->model = m->target.seconds, m->drafted = m->drafter.seconds;
}

static void weigh_pool(as_drafter *d, bench_result *r)
{
    const as_pool *pool = as_lookahead_pool(d);
    int32_t keys = 0;
    for (int32_t key = 0; key < d->V; key++) {
        int32_t count;
        as_pool_find(pool, key, &count);
        keys += count > 0;
    }
    if (as_pool_bytes(pool) > r->pool) r->pool = as_pool_bytes(pool);
    if (keys > r->keys) r->keys = keys;
}

static as_status make_drafter(const bench_pair *b, const bench_method *m,
                              const as_sampling *sampling, as_drafter **d, as_rule *rule,
                              as_error *e)
{
    *rule = AS_RULE_MATCH;
    if (strcmp(m->method, "ar") == 0) return as_draft_none(d, e);
    if (strcmp(m->method, "speculative") == 0) {
        *rule = AS_RULE_CHAIN;
        return as_draft_lm(b->draft.lm, sampling, BENCH_GAMMA, d, e);
    }
    const bool made = method_drafter(m->method, &m->options, NULL, NULL, b->target.lm->V, d,
                                     rule, e->text, sizeof e->text);
    return made ? AS_OK : AS_BAD_INPUT;
}

static as_status decode_all(const bench_pair *b, const bench_text *text, int32_t prompts,
                            const as_request *pattern, meter *m, bool lookahead, as_error *e)
{
    as_status s = AS_OK;
    int32_t *out = malloc((size_t)b->budget * sizeof *out);
    if (!out) return as_fail(e, AS_NO_MEMORY, "no memory for %d tokens", (int)b->budget);
    for (int32_t i = 0; i < prompts && s == AS_OK; i++) {
        as_request q = *pattern;
        as_result result;
        q.seed = 1000 + (uint64_t)i;
        q.prompt = text->prompt[i].token, q.prompts = text->prompt[i].n;
        m->first = true;
        s = as_decode(&q, out, &result, e);
        if (s != AS_OK) break;
        m->r->tokens += result.tokens, m->r->steps += result.steps;
        m->r->accepted += result.accepted;
        m->r->S[i] = (double)result.tokens / (double)result.steps;
        if (lookahead) weigh_pool(m->drafter.drafter, m->r);
    }
    free(out);
    return s;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double bench_quantile(double *x, int32_t n, double q)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    return x[(int32_t)(q * (n - 1) + 0.5)];
}

bench_ratio bench_ratio_of(const double *above, const double *below, int32_t n)
{
    double sum = 0, over = 0, squares = 0;
    for (int32_t i = 0; i < n; i++) sum += above[i], over += below[i];
    if (over == 0) return (bench_ratio){0};
    const double value = sum / over;
    for (int32_t i = 0; i < n; i++) {
        const double left = above[i] - value * below[i];
        squares += left * left;
    }
    return (bench_ratio){value, n > 1 ? sqrt(squares * n / (n - 1)) / over : 0, over};
}

double bench_more(const double *x, const double *y, int32_t n, double *error)
{
    double sum = 0, squares = 0;
    for (int32_t i = 0; i < n; i++) {
        const double more = 100 * (x[i] / y[i] - 1);
        sum += more, squares += more * more;
    }
    const double mean = sum / n, variance = n > 1 ? (squares - n * mean * mean) / (n - 1) : 0;
    *error = sqrt(fmax(0, variance) / n);
    return mean;
}

static void quartiles(bench_result *r, int32_t n)
{
    double S[BENCH_PROMPTS];
    memcpy(S, r->S, sizeof S);
    r->low = bench_quantile(S, n, 0.25);
    r->high = bench_quantile(S, n, 0.75);
}

bench_outcome bench_measure(const bench_pair *b, const bench_method *method, float temperature,
                            const bench_text *text, int32_t prompts, bench_result *r)
{
    const int32_t n = prompts < text->n ? prompts : text->n;
    as_request q = {.sampling = {temperature, 0, 1, 0},
                    .eos = b->target.info.eos,
                    .eoses = b->target.info.eos_count,
                    .budget = b->budget};
    as_error e = {.text = ""};
    as_drafter *d = NULL;
    *r = (bench_result){0};
    as_status s = make_drafter(b, method, &q.sampling, &d, &q.rule, &e);
    if (s == AS_OK && temperature > 0 &&
        (q.rule == AS_RULE_GREEDY || !(d->rules & 1u << q.rule))) {
        as_drafter_free(d);
        return BENCH_NO_RULE;
    }
    if (s == AS_OK) {
        const as_lm *lm = b->target.lm;
        meter m = {.target = {{&lm_ops, lm->V, lm->positions, lm->rows}, b->target.lm, 0},
                   .drafter = {{&drafter_ops, d->name, d->rules, d->V, d->cold}, d, 0},
                   .r = r};
        if (temperature == 0) q.rule = AS_RULE_GREEDY;
        q.target = &m.target.base, q.drafter = &m.drafter.base;
        q.trace = on_step, q.trace_data = &m;
        s = decode_all(b, text, n, &q, &m, strcmp(method->method, "lookahead") == 0, &e);
    }
    as_drafter_free(d);
    if (s == AS_OK) return quartiles(r, n), BENCH_DONE;
    fprintf(stderr, "assay bench: %s: %s\n", method->label, e.text);
    return BENCH_FAILED;
}
