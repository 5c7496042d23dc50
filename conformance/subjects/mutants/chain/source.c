/* source.c - numeric uniforms (source.h). */
#include "conformance/subjects/mutants/chain/source.h"

#include <math.h>

#include "conformance/iut.h"

typedef struct {
    uint32_t w[4];
} words;

/* Philox4x32 of Salmon et al. (SC 2011); RNG-01 asks for ten rounds. */
static words philox(const uint32_t counter[4], uint32_t key0, uint32_t key1, int rounds)
{
    words x = {{counter[0], counter[1], counter[2], counter[3]}};
    for (int r = 0; r < rounds; r++, key0 += 0x9E3779B9u, key1 += 0xBB67AE85u) {
        const uint64_t a = UINT64_C(0xD2511F53) * x.w[0], b = UINT64_C(0xCD9E8D57) * x.w[2];
        x = (words){{(uint32_t)(b >> 32) ^ x.w[1] ^ key0, (uint32_t)b,
                     (uint32_t)(a >> 32) ^ x.w[3] ^ key1, (uint32_t)a}};
    }
    return x;
}

/* DRAW-01 and the layout of `u` in iut.h: accept 0..gamma-1, residual, bonus; the match rule
 * has one draw a position. A plain draw has one uniform, which stands for both. */
static void supplied(source *s)
{
    const uint32_t purpose = lane_purpose(s->id), i = lane_position(s->id);
    const uint32_t gamma = (uint32_t)s->gamma;
    s->wide = false;
    s->unit = s->u[purpose == LANE_ACCEPT || s->match ? i
                   : purpose == LANE_RESIDUAL         ? gamma
                                                      : gamma + 1];
}

/* RNG-02, RNG-03, RNG-06. */
static void seeded(source *s)
{
    const fault_point f = s->fault;
    const uint64_t position = s->position + lane_position(s->id);
    uint32_t purpose = lane_purpose(s->id), low = (uint32_t)s->seed, high = s->seed >> 32;
    const bool accept = purpose == LANE_ACCEPT;
    if (accept && fault(f, SEED_CUT_ACCEPT)) high = 0;
    if (fault(f, PURPOSES_SWAPPED) && (accept || purpose == LANE_RESIDUAL))
        purpose = LANE_ACCEPT + LANE_RESIDUAL - purpose;
    if (fault(f, KEY_SWAPPED)) {
        const uint32_t swap = low;
        low = high, high = swap;
    }
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), purpose,
                                 fault(f, INDEX_COUNTS) ? (uint32_t)position : 0};
    const words r = philox(counter, low, high, fault(f, ROUNDS_7) ? 7 : 10);
    const int first = fault(f, WORDS_SWAPPED) ? 1 : 0;
    s->wide = !accept;
    s->word = (uint64_t)r.w[first] << 32 | r.w[1 - first]; /* RNG-05 */
    s->unit = accept ? (double)(r.w[0] >> 3) * 0x1p-29     /* RNG-04 */
                     : (double)(s->word >> 11) * 0x1p-53;
    if (accept && fault(f, ACCEPT_LOW_BITS)) s->unit = (double)(r.w[0] & 0x1fffffff) * 0x1p-29;
}

/* Words of its own: a pure function of (call, case, position, purpose), hence independent as
 * RNG-07 asks. `lot` numbers blocks of four words. */
static words own_words(const source *s, uint32_t id, uint32_t lot)
{
    const uint32_t call = fault(s->fault, CALLS_SHARE) ? 0 : (uint32_t)s->seed;
    const uint32_t row = fault(s->fault, ROWS_SHARE) ? 0 : s->row;
    const uint32_t counter[4] = {id, row, lot, 0x6d757461u};
    return philox(counter, call, 0x6e740000u, 10);
}

static void own(source *s)
{
    const words r = own_words(s, s->id, 0);
    const uint64_t word = (uint64_t)r.w[0] << 32 | r.w[1];
    s->wide = false;
    s->unit = ldexp((double)(word >> (64 - s->bits)), -s->bits);
}

uint64_t source_seeded_word(uint64_t seed, uint64_t position, uint32_t purpose, uint32_t index)
{
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), purpose, index};
    const words r = philox(counter, (uint32_t)seed, (uint32_t)(seed >> 32), 10);
    return (uint64_t)r.w[0] << 32 | r.w[1];
}

uint64_t source_own_word(uint32_t call, uint32_t row, uint32_t id)
{
    const source s = {.seed = call, .row = row};
    const words r = own_words(&s, id, 0);
    return (uint64_t)r.w[0] << 32 | r.w[1];
}

__extension__ typedef unsigned __int128 u128;

/* Exact: a product of two binary64 is its rounding plus an fma's remainder; a 64-bit uniform
 * meets integers only (a draw), except under faults that lend it to an acceptance test. */
static bool lt(lane *self, uint32_t id, double a, double b)
{
    source *s = (source *)self;
    if (!s->known || s->id != id) {
        s->id = id;
        s->known = true;
        if (s->uniforms == IUT_UNIFORMS_SUPPLIED)
            supplied(s);
        else if (s->uniforms == IUT_UNIFORMS_SEEDED)
            seeded(s);
        else
            own(s);
    }
    if (!(b > 0)) return false;
    if (s->wide && a == floor(a) && b == floor(b))
        return (u128)s->word * (uint64_t)a < (u128)(uint64_t)b << 64;
    const double product = s->unit * a;
    return product < b || (product == b && fma(s->unit, a, -product) < 0);
}

void source_init(source *s)
{
    s->lane.lt = lt;
    s->known = false;
}

void source_forget(source *s)
{
    s->known = false;
}

int32_t source_race(const source *s, uint32_t id, const float *w, int32_t V)
{
    double first = INFINITY;
    int32_t winner = -1;
    words r = {{0}};
    for (int32_t t = 0; t < V; t++) {
        if (t % 4 == 0) r = own_words(s, id, 1 + (uint32_t)t / 4);
        if (!(w[t] > 0)) continue;
        const double arrival = -log(((double)r.w[t % 4] + 0.5) * 0x1p-32) / (double)w[t];
        if (arrival < first) first = arrival, winner = t;
    }
    return winner;
}
