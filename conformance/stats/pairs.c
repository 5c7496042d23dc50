/* pairs.c - see pairs.h.
 *
 * A witness turns each token of a completion into a cell of a table. The weight of a cell is how much oftener A had
 * it than B in earlier blocks; the score of a completion is the sum of its weights. A bet pays 1 + lambda (z - drift)
 * once a block, where z is the mean over its rounds of half the difference of the clipped scores of the two sides. */
#include "conformance/stats/pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/stats/logmath.h"

typedef enum {
    TOKEN,  /* the token */
    PAIR,   /* with the token before it; with the prompt, if it is the first */
    PLACE,  /* with its place and prompt */
    PREFIX, /* with prompt and all tokens before it */
    RARITY, /* how rare it was so far behind the token before it, on both sides, by powers of two */
    WITNESSES
} witness;
static const char *const name_of[WITNESSES] = {
    "tokens", "pairs of tokens", "tokens by place and prompt", "prefixes by prompt", "rarity of tokens",
};

enum {
    CELLS = 1 << 18, /* of a table at most: where more are possible, they are hashed */
    RARE = 16,       /* classes of rarity */
    SPANS = 5, CLIPS = 2, SIZES = 7,
    BETS = WITNESSES * SPANS * CLIPS * SIZES
};
static const double SHRINK = 8;                /* counts that a weight is shrunk by */
static const double CLIP[CLIPS] = {3, 0.5};    /* in root mean squares of earlier scores */
static const double SIZE[SIZES] = {0.9, 0.45, 0.225, 0.1125, 0.05625, 0.028125, 0.0140625};

typedef struct {
    uint32_t a, b;
} cell;

typedef struct {
    double within[SIZES], strict[SIZES]; /* ln of the wealth */
    double sum, squares;                 /* of z, over the blocks */
    double open;                         /* z of the rounds since the last block, summed */
} account;

/* A side's completion as the witnesses see it. */
typedef struct {
    int prompt, places;
    uint32_t cell[WITNESSES][ST_PAIRS_LONGEST];
    uint32_t after[ST_PAIRS_LONGEST];
    uint32_t place[ST_PAIRS_LONGEST]; /* token, place and prompt as one number */
} completion;

struct st_pairs {
    int K, L, prompts, spans, block;
    int span[SPANS]; /* a bet is on this many first tokens */
    double eps;
    int64_t rounds, blocks;
    uint64_t possible[WITNESSES]; /* cells; 0: too many to be listed */
    cell *table[WITNESSES];
    uint32_t *after; /* tokens seen behind this one, or first after this prompt */
    uint32_t *owner; /* of each cell of PLACE: what it last counted */
    int64_t *of;     /* [prompts] rounds of earlier blocks */
    completion *open;                 /* [block][2] A's and B's, of the rounds since the last block */
    double squares[WITNESSES][SPANS]; /* of the scores of these rounds, summed */
    double square[WITNESSES][SPANS];  /* mean square of the scores of earlier blocks */
    account account[WITNESSES][SPANS][CLIPS];
};

/* -- Making -- */

void st_pairs_free(st_pairs *t)
{
    if (!t) return;
    for (int w = 0; w < WITNESSES; w++) free(t->table[w]);
    free(t->after);
    free(t->owner);
    free(t->of);
    free(t->open);
    free(t);
}

static uint64_t cells_of(uint64_t possible)
{
    return possible > 0 && possible <= CELLS ? possible : CELLS;
}

/* A prefix is a node of a tree: prompts are the nodes 0..prompts-1, and the next token of node v is the node
 * prompts + v B + token. With an odd B no token is lost where the number wraps. */
static uint64_t next_node(const st_pairs *t, uint64_t node, uint64_t token)
{
    return (uint64_t)t->prompts + node * (((uint64_t)t->K + 1) | 1) + token;
}

/* Nodes of the tree; 0: too many to be listed. */
static uint64_t prefixes(const st_pairs *t)
{
    uint64_t last = (uint64_t)t->prompts - 1;
    for (int j = 0; j < t->L && last < CELLS; j++) last = next_node(t, last, (uint64_t)t->K);
    return last < CELLS ? last + 1 : 0;
}

static bool allocate(st_pairs *t)
{
    const uint64_t tokens = (uint64_t)t->K + 1, contexts = tokens + (uint64_t)t->prompts;
    t->possible[TOKEN] = tokens;
    t->possible[PAIR] = contexts * tokens;
    t->possible[PLACE] = tokens * (uint64_t)t->L * (uint64_t)t->prompts;
    t->possible[PREFIX] = prefixes(t);
    t->possible[RARITY] = RARE;
    bool ok = true;
    for (int w = 0; w < WITNESSES; w++)
        ok = (t->table[w] = calloc(cells_of(t->possible[w]), sizeof *t->table[w])) && ok;
    t->after = calloc(cells_of(contexts), sizeof *t->after);
    t->owner = calloc(cells_of(t->possible[PLACE]), sizeof *t->owner);
    t->of = calloc((size_t)t->prompts, sizeof *t->of);
    t->open = calloc(2 * (size_t)t->block, sizeof *t->open);
    return ok && t->after && t->owner && t->of && t->open;
}

st_pairs *st_pairs_new(int K, int L, int prompts, int block, double eps)
{
    if (K < 2 || L < 1 || L > ST_PAIRS_LONGEST || prompts < 1 || !(eps >= 0) || !(L * eps < 1)) return NULL;
    if (block < 1 || block > ST_PAIRS_BLOCK || ((double)K + 1) * L * prompts >= 0x1p31) return NULL;
    st_pairs *t = calloc(1, sizeof *t);
    if (!t) return NULL;
    *t = (st_pairs){.K = K, .L = L, .prompts = prompts, .block = block, .eps = eps};
    for (int span = 1; span < L; span *= 2) t->span[t->spans++] = span;
    t->span[t->spans++] = L;
    if (allocate(t)) return t;
    st_pairs_free(t);
    return NULL;
}

/* -- Cells -- */

static uint64_t mixed(uint64_t z)
{
    z += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint32_t cell_at(uint64_t what, uint64_t possible)
{
    return (uint32_t)(possible > 0 && possible <= CELLS ? what : mixed(what) % CELLS);
}

/* 0: nothing is known of what follows there; 1: never seen; then the rarer, the more. */
static uint32_t rarity(cell seen, uint32_t after)
{
    const uint64_t n = (uint64_t)seen.a + seen.b;
    uint32_t class = 2;
    if (after == 0 || n == 0) return after > 0;
    for (uint64_t part = 2 * n; part <= after && class < RARE - 1; part *= 2) class++;
    return class;
}

static void see(const st_pairs *t, int prompt, const int32_t *x, int length, completion *c)
{
    const uint64_t tokens = (uint64_t)t->K + 1, contexts = tokens + (uint64_t)t->prompts;
    uint64_t before = tokens + (uint64_t)prompt, prefix = (uint64_t)prompt;
    c->prompt = prompt;
    c->places = length < t->L ? length + 1 : t->L;
    for (int j = 0; j < c->places; j++) {
        const uint64_t token = j < length ? (uint64_t)x[j] : (uint64_t)t->K;
        const uint64_t place = ((uint64_t)prompt * (uint64_t)t->L + (uint64_t)j) * tokens + token;
        prefix = next_node(t, prefix, token);
        c->place[j] = (uint32_t)place;
        c->after[j] = cell_at(before, contexts);
        c->cell[TOKEN][j] = cell_at(token, t->possible[TOKEN]);
        c->cell[PAIR][j] = cell_at(before * tokens + token, t->possible[PAIR]);
        c->cell[PLACE][j] = cell_at(place, t->possible[PLACE]);
        c->cell[PREFIX][j] = cell_at(prefix, t->possible[PREFIX]);
        c->cell[RARITY][j] = rarity(t->table[PAIR][c->cell[PAIR][j]], t->after[c->after[j]]);
        before = token;
    }
}

static void count(st_pairs *t, const completion *c, bool is_a)
{
    t->of[c->prompt] += is_a;
    for (int j = 0; j < c->places; j++) {
        for (int w = 0; w < WITNESSES; w++) {
            cell *seen = &t->table[w][c->cell[w][j]];
            if (is_a)
                seen->a++;
            else
                seen->b++;
        }
        t->after[c->after[j]]++;
        t->owner[c->cell[PLACE][j]] = c->place[j];
    }
}

/* -- Bets -- */

static double weight(cell seen)
{
    return ((double)seen.a - seen.b) / ((double)seen.a + seen.b + SHRINK);
}

static void score(const st_pairs *t, witness w, const completion *c, double of[SPANS])
{
    double sum = 0;
    for (int s = 0, j = 0; s < t->spans; s++) {
        for (; j < t->span[s] && j < c->places; j++) sum += weight(t->table[w][c->cell[w][j]]);
        of[s] = sum;
    }
}

/* In [-1, 1]. */
static double clipped(double score, double clip)
{
    return score > clip ? 1 : score < -clip ? -1 : score / clip;
}

/* The payoff is at least 0.1 whatever z in [-1, 1] is. */
static void pay(double log_e[SIZES], double z, double drift)
{
    for (int i = 0; i < SIZES; i++) log_e[i] += log1p(SIZE[i] / (1 + drift) * (z - drift));
}

/* The scores of a round, by what earlier blocks have taught. */
static void take(st_pairs *t, witness w, const completion *x, const completion *y)
{
    double a[SPANS], b[SPANS];
    score(t, w, x, a);
    score(t, w, y, b);
    for (int s = 0; s < t->spans; s++) {
        t->squares[w][s] += 0.5 * (a[s] * a[s] + b[s] * b[s]);
        for (int c = 0; c < CLIPS && t->square[w][s] > 0; c++) {
            const double clip = CLIP[c] * sqrt(t->square[w][s]);
            t->account[w][s][c].open += 0.5 * (clipped(a[s], clip) - clipped(b[s], clip));
        }
    }
}

/* The bets of a block. */
static void bet(st_pairs *t, witness w)
{
    for (int s = 0; s < t->spans; s++) {
        for (int c = 0; c < CLIPS && t->square[w][s] > 0; c++) {
            account *at = &t->account[w][s][c];
            const double z = at->open / t->block;
            pay(at->within, z, t->eps * t->span[s]);
            pay(at->strict, z, 0);
            at->sum += z, at->squares += z * z;
            at->open = 0;
        }
        const double square = t->squares[w][s] / t->block;
        t->square[w][s] += 2 / ((double)t->blocks + 2) * (square - t->square[w][s]); /* later blocks weigh more */
        t->squares[w][s] = 0;
    }
}

static bool in_range(const st_pairs *t, const int32_t *x, int length)
{
    if (length < 0) return false;
    for (int j = 0; j < length && j < t->L; j++)
        if (x[j] < 0 || x[j] >= t->K) return false;
    return true;
}

bool st_pairs_add(st_pairs *t, int prompt, const int32_t *a, int a_length, const int32_t *b, int b_length)
{
    if (prompt < 0 || prompt >= t->prompts || !in_range(t, a, a_length) || !in_range(t, b, b_length)) return false;
    const int at = 2 * (int)(t->rounds % t->block);
    see(t, prompt, a, a_length, &t->open[at]);
    see(t, prompt, b, b_length, &t->open[at + 1]);
    for (int w = 0; w < WITNESSES; w++) take(t, (witness)w, &t->open[at], &t->open[at + 1]);
    t->rounds++;
    if (t->rounds % t->block > 0) return true;
    for (int w = 0; w < WITNESSES; w++) bet(t, (witness)w);
    for (int i = 0; i < 2 * t->block; i++) count(t, &t->open[i], i % 2 == 0);
    t->blocks++;
    return true;
}

/* -- E-values -- */

static double log_mean(const st_pairs *t, bool strict)
{
    double log_e[BETS];
    size_t n = 0;
    for (int w = 0; w < WITNESSES; w++)
        for (int s = 0; s < t->spans; s++)
            for (int c = 0; c < CLIPS; c++, n += SIZES) {
                const account *at = &t->account[w][s][c];
                memcpy(log_e + n, strict ? at->strict : at->within, sizeof at->within);
            }
    return st_log_mean(log_e, NULL, n);
}

int64_t st_pairs_rounds(const st_pairs *t)
{
    return t->rounds;
}

double st_pairs_log_e(const st_pairs *t)
{
    return log_mean(t, false);
}

double st_pairs_log_strict(const st_pairs *t)
{
    return log_mean(t, true);
}

/* -- For the reader -- */

/* exp(lambda z - psi z^2) <= 1 + lambda z for z in [-1, 1], psi = -ln(1 - lambda) - lambda. So the sum of z is within
 * (psi sum z^2 + l)/lambda of the sum of its means, but for a chance of exp(-l) a side and a lambda. */
static double half_width(const account *at, double blocks, double delta)
{
    const double l = log(2. * BETS / delta);
    double least = INFINITY;
    for (int i = 0; i < SIZES; i++)
        least = fmin(least, ((-log1p(-SIZE[i]) - SIZE[i]) * at->squares + l) / SIZE[i]);
    return least / blocks;
}

st_pairs_sight st_pairs_best(const st_pairs *t, double delta)
{
    st_pairs_sight best = {.witness = name_of[0], .span = 1, .log_e = -INFINITY, .least = -1, .most = 1};
    if (t->blocks == 0) best.log_e = 0;
    for (int w = 0; t->blocks > 0 && w < WITNESSES; w++)
        for (int s = 0; s < t->spans; s++)
            for (int c = 0; c < CLIPS; c++) {
                const account *at = &t->account[w][s][c];
                const double n = (double)t->blocks, here = st_log_mean(at->within, NULL, SIZES), mean = at->sum / n;
                if (!(here > best.log_e)) continue;
                const double half = half_width(at, n, delta);
                best = (st_pairs_sight){name_of[w], t->span[s], here, mean, fmax(-1, mean - half), fmin(1, mean + half)};
            }
    return best;
}

bool st_pairs_most(const st_pairs *t, st_pairs_token *most)
{
    const uint64_t cells = cells_of(t->possible[PLACE]), tokens = (uint64_t)t->K + 1;
    double largest = -1;
    uint64_t found = 0;
    for (uint64_t i = 0; i < cells; i++) {
        const cell c = t->table[PLACE][i];
        const double apart = fabs((double)c.a - c.b) / sqrt((double)c.a + c.b);
        if (apart > largest) largest = apart, found = i; /* an empty cell is NAN */
    }
    if (largest < 0) return false;
    const cell c = t->table[PLACE][found];
    const uint64_t what = t->owner[found], place = what / tokens;
    const int32_t prompt = (int32_t)(place / (uint64_t)t->L);
    const double n = (double)t->of[prompt];
    *most = (st_pairs_token){.token = (int32_t)(what % tokens),
                             .place = (int32_t)(place % (uint64_t)t->L),
                             .prompt = prompt,
                             .a = c.a / n,
                             .b = c.b / n,
                             .deviations = largest};
    return true;
}

double st_pairs_tv90(double rounds, double cells, int span, double eps, double line)
{
    const double cost = line + log(BETS);
    return fmin(1, span * eps + 0.8 * sqrt((2 * sqrt((cells - 1) * cost) + 2 * cost) / rounds));
}
