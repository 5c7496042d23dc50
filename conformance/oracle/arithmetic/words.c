/* words.c - see words.h. */
#include "conformance/oracle/arithmetic/words.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PIECES = 64 };

struct oracle_words {
    oracle_word_program program;
    void *arg;
    oracle_law *law;
    oracle_word_cut cut;
    void *cut_arg;
    int32_t fixed;                    /* words whose values are given */
    int32_t n;                        /* words asked for in this run, the given ones first */
    uint32_t name[ORACLE_WORD_NAMES]; /* [n] */
    uint64_t value[ORACLE_WORD_NAMES];
    bool fine;
};

/* What a run does: the words that it asks for beyond the given ones, and its tokens. */
typedef struct {
    int32_t names, count;
    uint32_t name[ORACLE_WORD_NAMES];
    int32_t token[ORACLE_WORD_TOKENS];
} outcome;

static int32_t place_of(const oracle_words *w, uint32_t uniform)
{
    int32_t i = 0;
    while (i < w->n && w->name[i] != uniform) i++;
    return i;
}

uint64_t oracle_word(oracle_words *w, uint32_t uniform)
{
    const int32_t i = place_of(w, uniform);
    if (i < w->n) return w->value[i];
    if (lane_position(uniform) >= (uint32_t)w->law->k) return 0;
    if (i == ORACLE_WORD_NAMES) return w->fine = false, 0;
    w->name[i] = uniform;
    w->value[i] = 0;
    w->n++;
    return 0;
}

uint64_t oracle_word_seen(const oracle_words *w, uint32_t uniform)
{
    const int32_t i = place_of(w, uniform);
    return i < w->n ? w->value[i] : 0;
}

static void run(oracle_words *w, outcome *o)
{
    w->n = w->fixed;
    memset(o, 0, sizeof *o);
    w->program(w, w->arg, o->token, &o->count);
    o->names = w->n - w->fixed;
    memcpy(o->name, w->name + w->fixed, (size_t)o->names * sizeof *o->name);
}

/* With the last given word at U. */
static void run_at(oracle_words *w, uint64_t U, outcome *o)
{
    w->value[w->fixed - 1] = U;
    run(w, o);
}

static bool alike(const outcome *a, const outcome *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The last word of the interval that begins at `first`, where the run has outcome o. */
static uint64_t end_of_piece(oracle_words *w, uint64_t first, const outcome *o)
{
    outcome at;
    uint64_t low = first, high = UINT64_MAX;
    run_at(w, high, &at);
    if (alike(o, &at)) return high;
    while (high - low > 1) { /* o at low, another at high */
        const uint64_t middle = low + (high - low) / 2;
        run_at(w, middle, &at);
        if (alike(o, &at))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Some words within the interval, against what would not be monotone. */
static bool same_within(oracle_words *w, uint64_t first, uint64_t last, const outcome *o)
{
    outcome at;
    for (uint64_t i = 1; i < 4; i++) {
        run_at(w, first + (last - first) / 4 * i + (last - first) % 4 * i / 4, &at);
        if (!alike(o, &at)) return false;
    }
    return true;
}

static void explore(oracle_words *w, mpq_srcptr weight);

/* Everything below one interval of the last given word. */
static void explore_piece(oracle_words *w, uint64_t first, uint64_t last, mpq_srcptr weight)
{
    mpq_t part;
    mpz_t size;
    mpq_init(part);
    mpz_init_set_ui(size, last - first);
    mpz_add_ui(size, size, 1);
    mpq_set_z(part, size);
    mpq_div_2exp(part, part, 64);
    mpq_mul(part, part, weight);
    w->value[w->fixed - 1] = first;
    explore(w, part);
    mpq_clear(part);
    mpz_clear(size);
}

/* Cuts the last given word into intervals. */
static void explore_word(oracle_words *w, mpq_srcptr weight)
{
    outcome *o = malloc(MOST_PIECES * sizeof *o);
    uint64_t first = 0;
    w->fine = w->fine && o;
    for (int32_t n = 0; w->fine; n++) {
        run_at(w, first, &o[n]);
        for (int32_t i = 0; i < n; i++) w->fine = w->fine && !alike(&o[i], &o[n]);
        const uint64_t last = end_of_piece(w, first, &o[n]);
        w->fine = w->fine && n + 1 < MOST_PIECES && same_within(w, first, last, &o[n]);
        if (w->fine) explore_piece(w, first, last, weight);
        if (last == UINT64_MAX) break;
        first = last + 1;
        if (w->cut) w->cut(w->cut_arg, w->name[w->fixed - 1], first);
    }
    free(o);
}

static void explore(oracle_words *w, mpq_srcptr weight)
{
    outcome o;
    run(w, &o);
    if (o.names == 0) {
        mpq_t *mass = &w->law->mass[oracle_law_cell(w->law, o.token, o.count)];
        mpq_add(*mass, *mass, weight);
        return;
    }
    w->fixed++;
    explore_word(w, weight);
    w->fixed--;
}

bool oracle_law_add_words(oracle_law *law, oracle_word_program program, void *arg,
                          oracle_word_cut cut, void *cut_arg)
{
    oracle_words w = {.program = program,
                      .arg = arg,
                      .law = law,
                      .cut = cut,
                      .cut_arg = cut_arg,
                      .fine = true};
    mpq_t one;
    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    explore(&w, one);
    mpq_clear(one);
    return w.fine;
}

__extension__ typedef unsigned __int128 u128;

/* U*a < b*2^64 for integers a, b below 2^53. */
static bool word_lt(lane *self, uint32_t uniform, double a, double b)
{
    oracle_words *w = ((oracle_word_lane *)self)->words;
    return (u128)oracle_word(w, uniform) * (uint64_t)a < (u128)(uint64_t)b << 64;
}

oracle_word_lane oracle_lane_of_words(oracle_words *w)
{
    return (oracle_word_lane){{word_lt}, w};
}
