/* The reference's transformer against the oracle's on models in folders: the bits of logits and
 * caches over many (prompt, position) pairs, each side reading the folder by its own loader;
 * and how far the bits are from the real numbers.
 *
 * usage: compare_model [--positions N] [--mpfr N] [--real N] FOLDER...
 *   --positions  pairs to compare (default 64), in prompts of up to 160 tokens
 *   --mpfr       how many of them also with MPFR's own operations (default 0; slow)
 *   --real       length of a path whose error is measured in 200 bits (default 0; slower)
 *
 * A prompt enters the reference as one forward for its first half, then as forwards of 1, 2, 3
 * ... rows. Its tokens are random, or (every other prompt) those that the model itself ranks
 * first, with a random one now and then. Exit code 0: all bits are the same. */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/oracle/arithmetic/folder.h"
#include "ref/load/model.h"
#include "tests/random.h"

enum { PROMPT = 160 };

typedef struct {
    int32_t positions, mpfr, real;
} settings;

typedef struct {
    oracle_folder *folder;
    const oracle_model *m;
    as_lm *lm;
    int32_t sequence;
    int32_t token[PROMPT];
    float *want, *got; /* [PROMPT][V] */
    int64_t pairs, numbers, entries, by_mpfr;
} both;

static uint64_t random_state = 1;

static void quit(const char *where, const char *what)
{
    fprintf(stderr, "compare_model: %s: %s\n", where, what);
    exit(2);
}

static int32_t first_of(const float *logits, int32_t V)
{
    int32_t best = 0;
    for (int32_t i = 1; i < V; i++)
        if (logits[i] > logits[best]) best = i;
    return best;
}

/* Draws the prompt and gives the oracle's logits for it. */
static oracle_path *oracle_side(both *b, int32_t n, bool follow)
{
    const int32_t V = b->m->config.V;
    oracle_path *p = oracle_path_new(&oracle_fast, b->m, n);
    if (!p) quit("oracle", "the memory is too short");
    for (int32_t t = 0; t < n; t++) {
        const bool drawn = !follow || t < 4 || below(&random_state, 8) == 0;
        b->token[t] =
            drawn ? below(&random_state, V) : first_of(b->want + (int64_t)(t - 1) * V, V);
        oracle_path_step(p, b->token[t], b->want + (int64_t)t * V);
    }
    return p;
}

static void forward(both *b, int32_t first, int32_t last)
{
    as_row row[PROMPT];
    int32_t want[PROMPT];
    as_error e;
    const int32_t n = last - first;
    for (int32_t i = 0; i < n; i++) row[i] = (as_row){b->token[first + i], i - 1}, want[i] = i;
    const as_forward f = {b->sequence, n, n, row, want, b->got + (int64_t)first * b->lm->V};
    if (as_lm_forward(b->lm, &f, 1, &e) != AS_OK ||
        as_lm_commit(b->lm, b->sequence, want, n, &e) != AS_OK)
        quit("reference", e.text);
}

static void reference_side(both *b, int32_t n)
{
    as_error e;
    if (as_lm_truncate(b->lm, b->sequence, 0, &e) != AS_OK) quit("reference", e.text);
    const int32_t half = (n + 1) / 2;
    forward(b, 0, half);
    for (int32_t t = half, rows = 1; t < n; t += rows, rows = rows % 5 + 1) {
        if (rows > n - t) rows = n - t;
        forward(b, t, t + rows);
    }
}

static bool same_cache(both *b, const oracle_path *p, int32_t n)
{
    const oracle_config *c = &b->m->config;
    const int32_t d = c->head_dim;
    float *key = calloc((size_t)(c->kv_heads * d), 2 * sizeof *key),
          *value = key + c->kv_heads * d;
    bool same = key != NULL;
    as_error e;
    for (int32_t layer = 0; same && layer < c->layers; layer++)
        for (int32_t t = 0; same && t < n; t++) {
            if (as_llama_cache_read(b->lm, b->sequence, layer, t, key, value, &e) != AS_OK)
                quit("reference", e.text);
            for (int32_t g = 0; same && g < c->kv_heads; g++) {
                const size_t size = (size_t)d * sizeof *key;
                same = !memcmp(key + g * d, oracle_path_key(p, layer, g, t), size) &&
                       !memcmp(value + g * d, oracle_path_value(p, layer, g, t), size);
                b->entries += 2 * d;
                if (!same)
                    printf("  cache differs: layer %d, position %d, KV head %d\n", (int)layer,
                           (int)t, (int)g);
            }
        }
    free(key);
    return same;
}

static bool same_logits(both *b, int32_t n)
{
    const int32_t V = b->m->config.V;
    for (int32_t t = 0; t < n; t++)
        for (int32_t i = 0; i < V; i++) {
            const int64_t at = (int64_t)t * V + i;
            if (!memcmp(&b->want[at], &b->got[at], sizeof *b->want)) continue;
            printf("  logits differ: position %d, token %d: reference %a, oracle %a\n", (int)t,
                   (int)i, (double)b->got[at], (double)b->want[at]);
            return false;
        }
    b->pairs += n;
    b->numbers += (int64_t)n * V;
    return true;
}

/* The oracle's fast operations against its MPFR ones, over the first n tokens of the prompt. */
static bool same_with_mpfr(both *b, int32_t n)
{
    const int32_t V = b->m->config.V;
    float *logits = calloc((size_t)V, sizeof *logits);
    oracle_path *p = oracle_path_new(&oracle_mpfr, b->m, n);
    if (!p || !logits) quit("oracle", "the memory is too short");
    bool same = true;
    for (int32_t t = 0; same && t < n; t++) {
        oracle_path_step(p, b->token[t], logits);
        same = !memcmp(logits, b->want + (int64_t)t * V, (size_t)V * sizeof *logits);
    }
    b->by_mpfr += n;
    oracle_path_free(p);
    free(logits);
    return same;
}

static void print_error(const both *b, int32_t n, const double *real, const char *against)
{
    const int32_t V = b->m->config.V;
    double worst = 0, squares = 0, largest = 0;
    int64_t flips = 0;
    for (int32_t t = 0; t < n; t++) {
        int32_t best = 0;
        for (int32_t i = 0; i < V; i++) {
            const int64_t at = (int64_t)t * V + i;
            const double error = fabs((double)b->want[at] - real[at]);
            worst = fmax(worst, error);
            squares += error * error;
            largest = fmax(largest, fabs(real[at]));
            if (real[at] > real[(int64_t)t * V + best]) best = i;
        }
        flips += best != first_of(b->want + (int64_t)t * V, V);
    }
    printf(
        "  error of %d positions against %s: greatest %.3g, root mean square %.3g; logits to "
        "%.3g; first token differs at %lld\n",
        (int)n, against, worst, sqrt(squares / ((double)n * V)), largest, (long long)flips);
}

static void measure(const both *b, int32_t n)
{
    const oracle_real_options whole = {200, false}, angles = {200, true};
    double *real = calloc((size_t)n * (size_t)b->m->config.V, sizeof *real);
    if (!real || !oracle_real(b->m, b->token, n, &angles, real)) quit("oracle", "no memory");
    print_error(b, n, real, "200 bits at the binary32 angles");
    if (!oracle_real(b->m, b->token, n, &whole, real)) quit("oracle", "no memory");
    print_error(b, n, real, "200 bits throughout");
    free(real);
}

static bool compare(both *b, const settings *s)
{
    bool same = true;
    for (int32_t done = 0, prompt = 0; same && done < s->positions; prompt++) {
        const int32_t left = s->positions - done, n = left < PROMPT ? left : PROMPT;
        oracle_path *p = oracle_side(b, n, prompt % 2);
        reference_side(b, n);
        same = same_logits(b, n) && same_cache(b, p, n);
        oracle_path_free(p);
        const int32_t due = s->mpfr - done; /* the first ones of all */
        if (due > 0) same = same_with_mpfr(b, due < n ? due : n) && same;
        if (prompt == 0 && s->real) measure(b, s->real < n ? s->real : n);
        done += n;
    }
    return same;
}

static bool compare_folder(const char *folder, const settings *s)
{
    char why[400] = "";
    as_error e;
    as_model_info info;
    const as_llama_options options = {.positions = PROMPT, .rows = PROMPT, .threads = 1, .layout_seed = 5};
    both b = {.folder = oracle_folder_open(folder, why, sizeof why)};
    if (!b.folder) quit(folder, why);
    b.m = oracle_folder_model(b.folder);
    if (as_load_model(folder, &options, &b.lm, &info, &e) != AS_OK ||
        as_lm_open(b.lm, &b.sequence, &e) != AS_OK)
        quit(folder, e.text);
    const size_t cells = PROMPT * (size_t)b.m->config.V;
    b.want = calloc(cells, 2 * sizeof *b.want);
    if (!b.want) quit(folder, "the memory is too short");
    b.got = b.want + cells;
    printf("%s\n", folder);
    const bool same = compare(&b, s);
    if (b.by_mpfr)
        printf("  %lld positions with MPFR's own operations: %s\n", (long long)b.by_mpfr,
               same ? "the same bits" : "OTHER BITS");
    printf("  %lld positions, %lld logits, %lld cache entries: %s\n", (long long)b.pairs,
           (long long)b.numbers, (long long)b.entries, same ? "the same bits" : "OTHER BITS");
    fflush(stdout);
    as_lm_free(b.lm);
    oracle_folder_close(b.folder);
    free(b.want);
    return same;
}

int main(int argc, char **argv)
{
    settings s = {64, 0, 0};
    int i = 1;
    for (; i + 1 < argc && !strncmp(argv[i], "--", 2); i += 2) {
        int32_t *n = !strcmp(argv[i], "--positions") ? &s.positions
                     : !strcmp(argv[i], "--mpfr")    ? &s.mpfr
                     : !strcmp(argv[i], "--real")    ? &s.real
                                                     : NULL;
        if (!n) quit(argv[i], "is not known");
        *n = atoi(argv[i + 1]);
    }
    if (i >= argc)
        quit("usage", "compare_model [--positions N] [--mpfr N] [--real N] FOLDER...");
    bool same = true;
    for (; i < argc; i++) same = compare_folder(argv[i], &s) && same;
    return !same;
}
