/* draft_lookahead.cu - lookahead decoding (draft.h). The twin of ref/draft/lookahead.c. Clauses
 * LAH-01 to LAH-17 and LAH-23 to LAH-27.
 *
 * The window has two places: a step reads one and writes the other, so that every token of the
 * new window is a function of the old one, of the answers and of the history, and no thread
 * waits for another. In particular the k rotations of LAH-25 are one formula: with
 * A_0 ... A_{N-2} continued by A_j = A_{j-(N-2)} for j > N-2, k rotations take A_l to A_{l+k}.
 * (One rotation drops A_0 and appends the new first, which is A_1: it moves along this
 * continuation by one.) As in the reference, R_l[i] stands at place i of row l, and what lies
 * before the first column of a row behind R_0 is never read.
 *
 * What the reference does in its first proposal, the window and the prompt's n-grams, is done
 * when a sequence starts: both are functions of the prompt alone.
 *
 * Time. At (W, N, G) = (15, 5, 15) a proposal is two dependent loads (the key's number, its
 * bucket) and 120 rows, one a thread. An observation is one warp for each of the 15 n-grams,
 * all at once when their keys differ, each a chain of five dependent accesses to the L2 cache
 * (number, bucket, its values, the move, the write), and 60 tokens of the new window. By the
 * latency of these chains that is some microseconds each with its launch, and as much for the
 * list of rows (draft_assemble.cu); a step of a model of 1.1e9 weights of 4 bytes reads 4.4 GB,
 * more than half a millisecond at 8 TB/s. So reckoned, all three stay about 2 % of a step of
 * that model on the fastest of devices, and below it elsewhere; nobody has measured it. */
#include "gpu/draft/draft_pool.h"

namespace
{

enum { MOST_WARPS = 16 };

__device__ __forceinline__ int32_t columns(const as_lookahead &o, int32_t filled)
{
    return o.W + o.N - 1 - filled;
}

/* LAH-10: the first column that the rows behind R_0 have. */
__device__ __forceinline__ int32_t first_column(const as_lookahead &o, int32_t filled)
{
    return o.fill_last ? columns(o, filled) - o.W : 0;
}

/* The window of a sequence; row l begins at l * step. */
struct window {
    int32_t *token;
    int32_t step;
};

__device__ __forceinline__ window window_of(const ag_drafter &d, int32_t q, int32_t side)
{
    const int32_t step = d.lookahead.W + d.lookahead.N;
    const int64_t place = static_cast<int64_t>(d.lookahead.N - 1) * step;
    return window{d.window + (2 * static_cast<int64_t>(q) + side) * place, step};
}

__device__ __forceinline__ int32_t &cell(const window &w, int32_t l, int32_t i)
{
    return w.token[static_cast<int64_t>(l) * w.step + i];
}

/* ---- Start. -------------------------------------------------------------------------------
 */

/* LAH-03, LAH-04: stored token j, in column i of its row. */
__device__ int32_t initial(const ag_drafter &d, const int32_t *history, const ag_sequence &s,
                           uint64_t seed, int32_t i, int32_t j)
{
    switch (d.lookahead.init) {
    case AS_FILL_PROMPT:
        return guess_from(history, s.prompts, seed, 0, AS_INIT, j);
    case AS_FILL_CONSTANT:
        return (100 + i) % d.batch.V;
    case AS_FILL_VOCABULARY: /* LAH-37 */
        return guess_from(nullptr, d.batch.V, seed, 0, AS_INIT, j);
    default:
        return d.lookahead.given[j % d.lookahead.givens];
    }
}

/* n n-grams that stand one token after the other. */
__device__ __forceinline__ void insert_text(const pool &p, const int32_t *text, int32_t n)
{
    insert_all(
        p, n, [&](int32_t i) { return text[i]; },
        [&](int32_t i, int32_t e) { return text[i + 1 + e]; });
}

__global__ void __launch_bounds__(32 * MOST_WARPS, 1)
    lookahead_start(const ag_drafter d, int32_t q)
{
    take_turn();
    const as_lookahead &o = d.lookahead;
    const ag_sequence &s = d.batch.sequence[q];
    const int32_t *history = piece(d.batch.history, q, d.batch.H);
    const window w = window_of(d, q, s.side);
    const int32_t n = columns(o, s.filled), root = o.key == AS_KEY_STALE ? 0 : 1;
    for (int32_t r = thread(); r < s.filled * n; r += threads())
        cell(w, r / n, r % n) =
            r < root ? -1 : initial(d, history, s, d.batch.seed[q], r % n, r - root);
    if (o.pool_from_prompt) insert_text(pool_of(d, q), history, s.n - o.N + 1); /* LAH-05 */
}

/* ---- The tree. ----------------------------------------------------------------------------
 */

/* What a step evaluates: LAH-06 to LAH-09. */
struct plan {
    int32_t columns, ribs; /* of R_0, and of each row behind it */
    int32_t window, candidates;
    const int32_t *candidate; /* [candidates][N - 1] */
    bool verifies, plain;
};

__device__ __forceinline__ plan plan_of(const ag_drafter &d, int32_t q, const ag_sequence &s,
                                        int32_t root)
{
    const as_lookahead &o = d.lookahead;
    const int32_t length = o.N - 1, n = columns(o, s.filled);
    const int32_t ribs = n - first_column(o, s.filled), window = n + (s.filled - 1) * ribs;
    plan p = {n, ribs, window, 0, nullptr, s.filled == length || o.verify_filling, false};
    if (p.verifies) p.candidates = find(pool_of(d, q), root, &p.candidate);
    /* The deepest rows are the last of the window and of a candidate. */
    const int32_t reach = n + s.filled - 2;
    const int32_t depth = p.candidates > 0 && length > reach ? length : reach;
    const bool deep = d.batch.positions > 0 && depth > d.batch.positions - s.n;
    p.plain = (o.first_plain && position_of(s) == 0) || deep ||
              p.window + p.candidates * length > d.batch.R;
    return p;
}

__device__ __forceinline__ ag_tree tree_of(const as_lookahead &o, const ag_sequence &s,
                                           const plan &p)
{
    const bool all = p.verifies && o.accept_window;
    ag_tree t;
    t.rows = p.window + p.candidates * (o.N - 1);
    t.wanted = s.filled > 1 && !all ? p.window - p.ribs : 1; /* R_{filled-1}, for its answers */
    t.drafts = p.window;
    t.all = all;
    t.most = o.N - 1;
    t.bonus = o.bonus;
    return t;
}

__global__ void __launch_bounds__(32 * MOST_WARPS, 1) lookahead_propose(const ag_drafter d)
{
    take_turn();
    const int32_t q = static_cast<int32_t>(blockIdx.x), length = d.lookahead.N - 1;
    const ag_sequence &s = d.batch.sequence[q];
    if (!alive(s)) return lay_nothing(d.batch, q);
    const int32_t root = piece(d.batch.history, q, d.batch.H)[s.n - 1];
    const plan p = plan_of(d, q, s, root);
    if (p.plain) return lay_chain(d.batch, q, s, 0, 0, [](int32_t) { return 0; });
    const window w = window_of(d, q, s.side);
    const ag_tree t = tree_of(d.lookahead, s, p);
    const ag_asked asked = {p.window - p.ribs, p.ribs, s.warm && d.lookahead.sampled};
    const int32_t n = p.columns, from = n - p.ribs;
    int32_t *token = piece(d.batch.token, q, d.batch.R);
    int32_t *parent = piece(d.batch.parent, q, d.batch.R);
    uint64_t *uniform = piece(d.batch.uniform, q, d.batch.wants);
    for (int32_t r = thread(); r < p.window; r += threads()) {
        const int32_t rib = r - n, l = 1 + rib / p.ribs, i = from + rib % p.ribs;
        token[r] = r == 0 ? root : r < n ? cell(w, 0, r) : cell(w, l, i);
        parent[r] = r < n ? r - 1 : l == 1 ? i : r - p.ribs;
    }
    for (int32_t j = thread(); j < p.candidates * length; j += threads()) {
        token[p.window + j] = p.candidate[j];
        parent[p.window + j] = j % length ? p.window + j - 1 : 0;
    }
    if (asked.drawn) /* LAH-14 */
        for (int32_t i = thread(); i < p.ribs; i += threads())
            uniform[slot_of(t, asked.first) + i] =
                as_word64(as_random(d.batch.seed[q], static_cast<uint64_t>(position_of(s)),
                                    AS_WINDOW, static_cast<uint32_t>(from + i)));
    if (thread() == 0) plant(d.batch, q, t, asked, position_of(s));
}

/* ---- The step is done. --------------------------------------------------------------------
 */

/* All that an observation reads; the history behind n is new. */
struct scene {
    const as_lookahead &o;
    const ag_sequence &s;
    uint64_t seed;
    const int32_t *history, *eos;
    window old;
    const int32_t *answer; /* from column `from` on */
    int32_t from;
};

/* LAH-23 to LAH-27: the new R_l[i], which is A_l[i] but for what the shift does to l and i; or,
 * from an index on, drawn from the history. */
__device__ __forceinline__ int32_t shifted(const scene &c, int32_t k, int32_t l, int32_t i)
{
    const int32_t W = c.o.W, last = c.o.N - 2;
    int32_t index = -1, token = -1;
    if (l + i == 0 && c.o.key != AS_KEY_STALE) return -1;
    if (c.o.shift == AS_SHIFT_ABSPAD) {
        const int32_t cut = least(k, W);
        if (i >= W - cut) index = (1 + l) * W + i - (W - cut);
        i += cut;
    }
    if (c.o.shift == AS_SHIFT_ROWROT && last > 0) {
        l += k;
        if (l > last) l = 1 + (l - 1) % last;
    }
    if (index < 0) {
        token = l < last ? cell(c.old, l + 1, i) : c.answer[i];
        const bool filter = l == last && c.s.warm && c.o.eos_filter;
        if (filter && is_eos(c.eos, c.s.eoses, token)) index = c.o.N * W + i;
    }
    if (index < 0) return token;
    return guess_from(c.history, c.s.n, c.seed, position_of(c.s), AS_WINDOW, index);
}

/* LAH-11: each column moves to the place before it, and the answers become a row. */
__device__ __forceinline__ int32_t filled_up(const scene &c, int32_t l, int32_t i)
{
    if (l + i == 0) return -1;
    return l < c.s.filled ? cell(c.old, l, i + 1) : c.answer[i + 1 - c.from];
}

/* LAH-13, LAH-16; next is the token that the step emitted first. */
__device__ __forceinline__ void insert_window(const ag_drafter &d, int32_t q, const scene &c,
                                              int32_t next)
{
    const int32_t last = c.o.N - 2;
    insert_all(
        pool_of(d, q), c.o.W,
        [&](int32_t i) {
            if (i > 0 || c.o.key == AS_KEY_STALE) return cell(c.old, 0, i);
            return c.o.key == AS_KEY_ROOT ? c.history[c.s.n - 1] : next;
        },
        [&](int32_t i, int32_t e) { return e < last ? cell(c.old, e + 1, i) : c.answer[i]; });
}

/* LAH-17: the history has n + 1, ..., n + emitted tokens in turn. Only the last of them can end
 * the stream. */
__device__ __forceinline__ void insert_output(const ag_drafter &d, int32_t q,
                                              const ag_sequence &s, const int32_t *history,
                                              const outcome &k)
{
    const int32_t N = d.lookahead.N, ends = k.ended || k.emitted == s.left ? 1 : 0;
    const int32_t from = s.n + 1 > N ? s.n + 1 : N, to = s.n + k.emitted - ends;
    insert_text(pool_of(d, q), history + from - N, to - from + 1);
}

/* Every warp finds the same. */
__device__ __forceinline__ bool all_answered(const int32_t *answer, int32_t n)
{
    bool good = true;
    for (int32_t i = lane(); i < n; i += 32) good &= answer[i] >= 0;
    return __all_sync(FULL, good);
}

/* The window's part of a step; k as LAH-23 counts. */
__device__ void advance(const ag_drafter &d, int32_t q, const scene &c, int32_t next, int32_t k)
{
    const bool full = c.s.filled == c.o.N - 1;
    const int32_t n = full ? c.o.W : columns(c.o, c.s.filled + 1);
    const int32_t rows = full ? c.s.filled : c.s.filled + 1;
    const int32_t from = full ? 0 : first_column(c.o, rows);
    const window to = window_of(d, q, 1 - c.s.side);
    for (int32_t r = thread(); r < rows * n; r += threads()) {
        const int32_t l = r / n, i = r % n;
        if (l == 0 || i >= from)
            cell(to, l, i) = full ? shifted(c, k, l, i) : filled_up(c, l, i);
    }
    if (full) insert_window(d, q, c, next);
}

__global__ void __launch_bounds__(32 * MOST_WARPS, 1)
    lookahead_observe(const ag_drafter d, const ag_answers w)
{
    take_turn();
    const int32_t q = static_cast<int32_t>(blockIdx.x);
    const as_lookahead &o = d.lookahead;
    const ag_sequence s = d.batch.sequence[q];
    if (!alive(s)) return rest(d.batch, q);
    const ag_tree tree = d.batch.tree[q];
    const ag_asked asked = d.batch.asked[q];
    const outcome k = cut(d.batch, w, q, s);
    const int32_t *answer = piece(w.answer, q, d.batch.wants) + slot_of(tree, asked.first);
    const int32_t *history = piece(d.batch.history, q, d.batch.H);
    const bool failed = k.length == 0 || !all_answered(answer, asked.rows);
    const bool moves = !failed && asked.rows > 0; /* else LAH-06, LAH-09 */
    const bool first = o.first_plain && position_of(s) == 0;
    emit(d.batch, w, q, s, k);
    __syncthreads();
    if (moves) {
        const scene c = {o,
                         s,
                         d.batch.seed[q],
                         history,
                         piece(d.batch.eos, q, d.batch.E),
                         window_of(d, q, s.side),
                         answer,
                         first_column(o, s.filled)};
        advance(d, q, c, history[s.n], k.length - 1);
    }
    if (o.pool_from_output && (moves || (first && !failed))) insert_output(d, q, s, history, k);
    __syncthreads();
    if (thread() > 0) return;
    ag_sequence next = after(s, tree, k);
    next.failed = failed;
    next.side = moves ? 1 - s.side : s.side;
    next.filled = moves ? least(s.filled + 1, o.N - 1) : s.filled;
    d.batch.sequence[q] = next;
}

/* A warp for each column, up to 16: an n-gram of the window each. */
unsigned threads_for(const ag_drafter *d)
{
    const int32_t W = d->lookahead.W;
    return 32u * static_cast<unsigned>(W < 2 ? 2 : W < MOST_WARPS ? W : MOST_WARPS);
}

} // namespace

extern "C" void ag_lookahead_start(const ag_drafter *d, int32_t b)
{
    LAUNCH(lookahead_start, 1, 32 * MOST_WARPS, 0, d->device, *d, b);
}

extern "C" void ag_lookahead_propose(const ag_drafter *d)
{
    LAUNCH(lookahead_propose, blocks_of(d), threads_for(d), 0, d->device, *d);
}

extern "C" void ag_lookahead_observe(const ag_drafter *d, const ag_answers *w)
{
    LAUNCH(lookahead_observe, blocks_of(d), threads_for(d), 0, d->device, *d, *w);
}
