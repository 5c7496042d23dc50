/* enumerate.c - see enumerate.h. Depth-first search by decision replay: a run is determined by
 * its answers to the questions that cut an interval, so the program is simply run again for
 * every leaf, with the answers of the last run up to its last "yes" not yet denied. */
#include "conformance/oracle/law/enumerate.h"

#include <stdlib.h>
#include "conformance/oracle/law/chain.h"

/* One uniform of the present run: still anywhere in [low, high). */
typedef struct {
    uint32_t name;
    mpq_t low, high;
} interval;

typedef struct {
    lane lane; /* first, so that a lane* is a search* */
    uint32_t bits;
    interval *uniform; /* [known] initialised, the first `used` belong to this run */
    size_t used, known;
    bool *answer; /* [decided] of this run, [room] allocated */
    size_t decided, room;
    size_t replayed; /* how many of them this run has met */
    bool failed;     /* out of memory */
    mpq_t cut, divisor;
} search;

/* The interval of a uniform; [0, 1) when this run has not met it. NULL: no memory. */
static interval *find_uniform(search *s, uint32_t name)
{
    for (size_t i = 0; i < s->used; i++)
        if (s->uniform[i].name == name) return &s->uniform[i];
    if (s->used == s->known) {
        interval *more = realloc(s->uniform, (s->known + 1) * sizeof *more);
        if (!more) return NULL;
        s->uniform = more;
        mpq_inits(more[s->known].low, more[s->known].high, (mpq_ptr)0);
        s->known++;
    }
    interval *fresh = &s->uniform[s->used++];
    fresh->name = name;
    mpq_set_ui(fresh->low, 0, 1);
    mpq_set_ui(fresh->high, 1, 1);
    return fresh;
}

/* s->cut = b/a: u*a < b iff u < b/a. A uniform on a grid of 2^-bits is below b/a iff it is
 * below the next point of the grid that is not below b/a. */
static void set_cut(search *s, double a, double b)
{
    mpq_set_d(s->cut, b);
    mpq_set_d(s->divisor, a);
    mpq_div(s->cut, s->cut, s->divisor);
    if (!s->bits) return;
    mpq_mul_2exp(s->cut, s->cut, s->bits);
    mpz_cdiv_q(mpq_numref(s->cut), mpq_numref(s->cut), mpq_denref(s->cut));
    mpz_set_ui(mpq_denref(s->cut), 1);
    mpq_div_2exp(s->cut, s->cut, s->bits);
}

/* The answer to a question that could go either way: the one being replayed, or a new "yes". */
static bool decide(search *s)
{
    if (s->replayed == s->decided) {
        if (s->decided == s->room) {
            const size_t room = 2 * s->room + 64;
            bool *more = realloc(s->answer, room * sizeof *more);
            if (!more) return s->failed = true;
            s->answer = more;
            s->room = room;
        }
        s->answer[s->decided++] = true;
    }
    return s->answer[s->replayed++];
}

static bool search_lt(lane *self, uint32_t name, double a, double b)
{
    search *s = (search *)self;
    if (a == 0) return b > 0;
    interval *u = find_uniform(s, name);
    if (!u) return s->failed = true;
    set_cut(s, a, b);
    if (mpq_cmp(s->cut, u->high) >= 0) return true;
    if (mpq_cmp(s->cut, u->low) <= 0) return false;
    const bool below = decide(s);
    mpq_set(below ? u->high : u->low, s->cut);
    return below;
}

/* The share of all uniforms that take this run's way: the uniforms are independent, and each
 * question was about one of them, so it is the volume of a box. */
static void box_volume(mpq_t volume, search *s)
{
    mpq_set_ui(volume, 1, 1);
    for (size_t i = 0; i < s->used; i++) {
        mpq_sub(s->cut, s->uniform[i].high, s->uniform[i].low);
        mpq_mul(volume, volume, s->cut);
    }
}

/* Moves to the next leaf: the last "yes" becomes a "no", what came after it is forgotten. */
static bool backtrack(search *s)
{
    while (s->decided > 0 && !s->answer[s->decided - 1]) s->decided--;
    if (s->decided == 0) return false;
    s->answer[s->decided - 1] = false;
    return true;
}

static void search_clear(search *s)
{
    for (size_t i = 0; i < s->known; i++)
        mpq_clears(s->uniform[i].low, s->uniform[i].high, (mpq_ptr)0);
    mpq_clears(s->cut, s->divisor, (mpq_ptr)0);
    free(s->uniform);
    free(s->answer);
}

bool oracle_enumerate(lane_program program, void *arg, int32_t capacity, uint32_t bits,
                      uint64_t max_leaves, oracle_leaf leaf, void *leaf_arg)
{
    search s = {.lane = {search_lt}, .bits = bits};
    int32_t *tokens = malloc((size_t)(capacity > 0 ? capacity : 1) * sizeof *tokens);
    mpq_t volume;
    mpq_inits(volume, s.cut, s.divisor, (mpq_ptr)0);
    uint64_t leaves = 0;
    bool more = tokens != NULL;
    s.failed = !more;
    while (more && leaves < max_leaves) {
        int32_t count = 0;
        s.used = s.replayed = 0;
        program(&s.lane, arg, tokens, &count);
        if (s.failed) break;
        box_volume(volume, &s);
        leaf(leaf_arg, tokens, count, volume);
        leaves++;
        more = backtrack(&s);
    }
    search_clear(&s);
    mpq_clear(volume);
    free(tokens);
    return !more && !s.failed;
}

/* ---- Laws ------------------------------------------------------------------------ */

enum { MAX_CELLS = 1 << 22 };

oracle_law *oracle_law_new(int32_t V, int32_t k)
{
    size_t words = 1;
    for (int32_t i = 0; i < k; i++) {
        words *= (size_t)V;
        if (V < 1 || words > MAX_CELLS) return NULL;
    }
    oracle_law *law = malloc(sizeof *law);
    mpq_t *mass = malloc((words + 1) * sizeof *mass);
    if (!law || !mass) {
        free(law);
        free(mass);
        return NULL;
    }
    *law = (oracle_law){V, k, words + 1, mass};
    for (size_t i = 0; i < law->cells; i++) mpq_init(mass[i]);
    return law;
}

void oracle_law_free(oracle_law *law)
{
    if (!law) return;
    for (size_t i = 0; i < law->cells; i++) mpq_clear(law->mass[i]);
    free(law->mass);
    free(law);
}

size_t oracle_law_cell(const oracle_law *law, const int32_t *tokens, int32_t count)
{
    size_t cell = 0;
    for (int32_t i = 0; i < law->k; i++) {
        if (count != law->k || tokens[i] < 0 || tokens[i] >= law->V) return law->cells - 1;
        cell = cell * (size_t)law->V + (size_t)tokens[i];
    }
    return count == law->k ? cell : law->cells - 1;
}

static void add_leaf(void *arg, const int32_t *tokens, int32_t count, mpq_srcptr weight)
{
    oracle_law *law = arg;
    mpq_ptr mass = law->mass[oracle_law_cell(law, tokens, count)];
    mpq_add(mass, mass, weight);
}

bool oracle_law_add_program(oracle_law *law, lane_program program, void *arg, uint32_t bits,
                            uint64_t max_leaves)
{
    /* One place to spare, so that a rule that emits a token too many is seen to. */
    return oracle_enumerate(program, arg, law->k + 1, bits, max_leaves, add_leaf, law);
}

/* Adds reach * (law of the tokens from `depth` on, in `state`) to the words that begin with
 * `prefix`, a number of `depth` digits. */
static void add_words(oracle_law *law, const oracle_panel *panel, int32_t state, int32_t depth,
                      size_t prefix, mpq_srcptr reach)
{
    if (depth == law->k) {
        mpq_add(law->mass[prefix], law->mass[prefix], reach);
        return;
    }
    const float *row = panel->p + (size_t)state * (size_t)panel->V;
    const uint64_t W = oracle_total(row, panel->V);
    mpq_t share;
    mpq_init(share);
    for (int32_t t = 0; t < panel->V; t++) {
        if (oracle_weight(row[t]) == 0) continue;
        mpq_set_ui(share, oracle_weight(row[t]), W);
        mpq_canonicalize(share);
        mpq_mul(share, share, reach);
        const size_t edge = (size_t)state * (size_t)panel->C + (size_t)panel->cls[t];
        add_words(law, panel, panel->next[edge], depth + 1, prefix * (size_t)law->V + (size_t)t,
                  share);
    }
    mpq_clear(share);
}

void oracle_law_add_target(oracle_law *law, const oracle_panel *panel, int32_t start)
{
    mpq_t one;
    mpq_init(one);
    mpq_set_ui(one, 1, 1);
    add_words(law, panel, start, 0, 0, one);
    mpq_clear(one);
}

void oracle_law_tv(mpq_t tv, const oracle_law *a, const oracle_law *b)
{
    mpq_t difference;
    mpq_init(difference);
    mpq_set_ui(tv, 0, 1);
    for (size_t i = 0; i < a->cells; i++) {
        mpq_sub(difference, a->mass[i], b->mass[i]);
        mpq_abs(difference, difference);
        mpq_add(tv, tv, difference);
    }
    mpq_div_2exp(tv, tv, 1);
    mpq_clear(difference);
}

double oracle_law_distance(const oracle_law *a, const oracle_law *b)
{
    mpq_t tv;
    mpq_init(tv);
    oracle_law_tv(tv, a, b);
    const double distance = mpq_get_d(tv);
    mpq_clear(tv);
    return distance;
}

size_t oracle_law_differences(const oracle_law *a, const oracle_law *b)
{
    size_t count = 0;
    for (size_t i = 0; i < a->cells; i++) count += !mpq_equal(a->mass[i], b->mass[i]);
    return count;
}

double oracle_program_tv(lane_program program, void *arg, const oracle_panel *panel,
                         int32_t start, int32_t k, uint32_t bits, uint64_t max_leaves)
{
    oracle_law *law = oracle_law_new(panel->V, k), *target = oracle_law_new(panel->V, k);
    double distance = -1;
    if (law && target && oracle_law_add_program(law, program, arg, bits, max_leaves)) {
        oracle_law_add_target(target, panel, start);
        distance = oracle_law_distance(law, target);
    }
    oracle_law_free(law);
    oracle_law_free(target);
    return distance;
}
