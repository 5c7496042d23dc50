/* rows.cu - see rows.h. What blocks do with rows is in row.cuh; here are the launches, and the
 * served distribution. */
#include "gpu/num/row.cuh"

#include "ref/num/exp_core.h"

namespace ag
{

as_status plan_launch(const ag_device *d, int32_t cases, int32_t slots, int32_t V,
                      const ag_scratch *s, launch *to, as_error *e)
{
    enum { SHORTEST = 128, OWN = 16, SHARED_BY = 8 /* warps */ };
    if (cases < 1 || slots < 1 || V < 1 || V > AS_MAX_VOCAB)
        return as_fail(e, AS_BAD_INPUT,
                       "GPU: %d cases of %d rows of %d; there must be some, and a vocabulary "
                       "has 1 to %d",
                       cases, slots, V, static_cast<int>(AS_MAX_VOCAB));
    const int32_t each = (V + 32 * STRETCHES - 1) / (32 * STRETCHES) * 32;
    const int32_t length = each < SHORTEST ? SHORTEST : each;
    const int32_t stretches = (V + length - 1) / length;
    const int64_t rows = static_cast<int64_t>(cases) * slots;
    const int64_t wanted = (2 * d->processors + rows - 1) / rows;
    const int64_t parts = wanted < stretches / SHARED_BY ? wanted : stretches / SHARED_BY;
    const bool shared =
        s && rows <= s->rows && cases < d->processors && parts > 0 && parts * slots > 1;
    to->l = layout{V, length, stretches};
    to->m = meeting{nullptr, nullptr, 1, 1};
    if (shared)
        to->m = meeting{reinterpret_cast<u64 *>(s->word), s->arrived, slots,
                        static_cast<int32_t>(parts)};
    const int32_t warps = shared ? SHARED_BY : OWN;
    to->blocks = static_cast<unsigned>(cases) * static_cast<unsigned>(to->m.slots) *
                 static_cast<unsigned>(to->m.parts);
    to->threads = static_cast<unsigned>(stretches < warps ? stretches : warps) * 32;
    to->shared = sizeof(room) + static_cast<size_t>(stretches) * sizeof(u64);
    return AS_OK;
}

} // namespace ag

namespace
{

using namespace ag;

enum { MOST_THREADS = 512 };

/* Rows that a launch is over. */
struct rows {
    const float *at; /* [][V] */
    const int32_t *row;
    layout l;
    __device__ bool none(int32_t i) const { return row && row[i] < 0; }
    __device__ const float *operator[](int32_t i) const
    {
        return at + static_cast<int64_t>(row ? row[i] : i) * l.V;
    }
};

/* ---- Argmax. ----------------------------------------------------------------------------- */

__global__ void __launch_bounds__(MOST_THREADS, 2)
    argmax(rows x, meeting m, int32_t *id, int32_t *state)
{
    take_turn();
    SHARED(room, r);
    const int32_t i = m.own_case();
    if (x.none(i)) return;
    if (m.word) block_leave_top(*r, x.l, m, 0, x[i]);
    if (!m.block_goes_on(*r)) return;
    const top t = top_of(block_top_of(*r, x.l, m, 0, x[i]));
    if (thread() != 0) return;
    id[i] = t.id;
    state[i] = t.state;
}

/* ---- Rows of probabilities. -------------------------------------------------------------- */

__global__ void __launch_bounds__(MOST_THREADS, 2) check_rows(rows p, int32_t *state)
{
    take_turn();
    SHARED(room, r);
    const int32_t i = static_cast<int32_t>(blockIdx.x);
    if (p.none(i)) return;
    u64 bad = 0, W = 0;
    each_entry(p[i], 0, p.l.V, [&](int32_t, float v) {
        const bool good = v >= 0.0f && v <= 1.0f; /* NaN is not */
        bad |= !good;
        W += good ? as_weight(v) : 0;
    });
    bad = block_reduce(*r, bad, greater{});
    W = block_reduce(*r, W, add{});
    if (thread() == 0) state[i] = bad ? AG_ROW_RANGE : W == 0 ? AG_ROW_EMPTY : AG_ROW_GOOD;
}

__global__ void __launch_bounds__(MOST_THREADS, 2)
    residuals(rows p, rows q, float *to, uint64_t *W)
{
    take_turn();
    SHARED(room, r);
    const int32_t i = static_cast<int32_t>(blockIdx.x);
    if (p.none(i)) return;
    const float *taken = q[i];
    float *out = to + static_cast<int64_t>(i) * p.l.V;
    u64 sum = 0;
    each_pair(p[i], taken, 0, p.l.V, [&](int32_t k, float a, float b) {
        const float rest = excess(a, b);
        out[k] = rest;
        sum += as_weight(rest);
    });
    sum = block_reduce(*r, sum, add{});
    if (W && thread() == 0) W[i] = sum;
}

__global__ void __launch_bounds__(MOST_THREADS, 2) totals(rows p, rows q, uint64_t *W)
{
    take_turn();
    SHARED(room, r);
    const int32_t i = static_cast<int32_t>(blockIdx.x);
    if (p.none(i)) return;
    const float *other = q.at ? q[i] : p[i];
    u64 sum = 0;
    each_pair(p[i], other, 0, p.l.V,
              [&](int32_t, float a, float b) { sum += as_weight(a < b ? a : b); });
    sum = block_reduce(*r, sum, add{});
    if (thread() == 0) W[i] = sum;
}

/* ---- Draws. ------------------------------------------------------------------------------ */

/* What a draw is of: q.at is NULL for a draw from p. */
struct draw_job {
    rows p, q;
    meeting m;
    const uint64_t *U;
    ag_seeds seeds;
    as_purpose purpose;
    int32_t *token;
};

__global__ void __launch_bounds__(MOST_THREADS, 2) draw(draw_job j)
{
    take_turn();
    SHARED(room, r);
    const int32_t i = j.m.own_case();
    if (j.p.none(i)) return;
    const law_of w = {j.p[i], j.q.at ? j.q[i] : nullptr};
    const layout &l = j.p.l;
    if (j.m.word) leave_sums(l, j.m, 0, w);
    if (!j.m.block_goes_on(*r)) return;
    const uint32_t index = j.seeds.index ? j.seeds.index[i] : 0;
    const uint64_t U =
        j.U ? j.U[i]
            : random_word(seed_of(j.seeds, i), position_of(j.seeds, i), j.purpose, index);
    block_sums_of(*r, l, j.m, 0, w);
    const int32_t id = block_draw_summed(*r, l, w, U);
    if (thread() == 0) j.token[i] = id;
}

/* ---- The served distribution. -------------------------------------------------------------
 *
 * A row is served in passes; each is a look at every entry and a conclusion from the whole row.
 * A block that has a row for itself makes all passes in one launch; blocks that share a row
 * make one pass a launch, and the last of them to arrive concludes. What a filter removes has
 * e = 0, as what is masked has: exp(-inf). */

enum pass_kind : uint8_t {
    LOOK,  /* the greatest logit, and whether the row is good */
    POINT, /* T = 0: all mass on it */
    EXP,   /* DIST-05, DIST-06; the total */
    DIGIT, /* one digit of the key at which the shortest prefix ends */
    TIE,   /* the last id of the prefix among those of that key */
    KEEP,  /* nothing beyond the prefix; the total */
    DIVIDE /* DIST-13 */
};

struct pass {
    pass_kind kind;
    uint8_t digit; /* 0, 1, 2 */
    bool mass;     /* top-p: a prefix is measured by weight; else top-k: by tokens */
    bool final;    /* min-p is applied: the pass makes the e that are divided */
};

enum { MOST_PASSES = 16 };

struct serve_job {
    rows x;
    float *p;
    int32_t *state;
    as_sampling s;
    meeting m;
    pass list[MOST_PASSES];
    int32_t first, passes; /* of this launch */
};

/* What is known of a row after a pass. */
struct known {
    u64 total, need; /* weight of the e; what keys with the bits found have to contribute */
    float max;
    int32_t id;
    int32_t state;
    uint32_t key, fixed; /* the bits found of the last key, and the mask of their places */
    int32_t last;        /* of equal keys the ids up to this one */
};
static_assert(sizeof(known) <= KNOWN * sizeof(u64), "what is known fits the scratch");

/* A histogram of 64-bit measures as two words a bin: shared memory adds 32 bits in one
 * instruction, and 64 only by trying until nobody comes between. */
struct histogram {
    uint32_t low[BINS], high[BINS];
    __device__ void clear()
    {
        for (unsigned b = threadIdx.x; b < BINS; b += blockDim.x) low[b] = high[b] = 0;
    }
    __device__ void count(uint32_t bin, u64 measure)
    {
        const uint32_t part = static_cast<uint32_t>(measure);
        const uint32_t before = atomicAdd(low + bin, part);
        const uint32_t carry = before + part < before;
        const uint32_t rest = static_cast<uint32_t>(measure >> 32) + carry;
        if (rest) atomicAdd(high + bin, rest);
    }
    __device__ u64 of(uint32_t bin) const
    {
        return static_cast<u64>(high[bin]) << 32 | low[bin];
    }
};

struct serve_room {
    known k;
    histogram h;
};

/* One row of a job, as a block sees it. */
struct serving {
    const serve_job &j;
    room &r;
    serve_room &own;
    const layout &l;
    const float *logits;
    float *p;
    int32_t i;
    u64 *word;  /* [ROW_WORDS] of the row, or NULL */
    share mine; /* stretches */
    __device__ int32_t begin() const { return mine.first * l.length; }
    __device__ int32_t end() const { return least(mine.end * l.length, l.V); }
    __device__ u64 *bins() const { return word + STRETCHES; }
    __device__ known *kept() const
    {
        return reinterpret_cast<known *>(word + STRETCHES + BINS);
    }
};

__device__ uint32_t digits_of(int digit)
{
    return digit < 2 ? (1u << 11) - 1 : (1u << 10) - 1;
}

__device__ int shift_of(int digit)
{
    return digit == 0 ? 21 : digit == 1 ? 10 : 0;
}

/* One word of each block of the row, reduced. False: another block concludes. */
template <class Op> __device__ bool block_gather(const serving &v, u64 *word, Op op)
{
    if (!v.word) return true;
    if (thread() == 0) v.word[v.j.m.own_part()] = *word;
    if (!v.j.m.block_goes_on(v.r)) return false;
    u64 all = 0;
    for (int32_t b = thread(); b < v.j.m.parts; b += threads())
        all = op(all, __ldcg(v.word + b));
    *word = block_reduce(v.r, all, op);
    return true;
}

__device__ bool look(const serving &v)
{
    u64 best = block_top(v.r, v.l, v.mine, v.logits);
    if (!block_gather(v, &best, greater{})) return false;
    if (thread() == 0) {
        const top t = top_of(best);
        v.own.k.state = v.j.state[v.i] = t.state;
        v.own.k.id = t.id;
        v.own.k.max = t.state == AG_ROW_GOOD ? v.logits[t.id] : 0.0f;
    }
    return true;
}

__device__ bool point(const serving &v)
{
    const int32_t id = v.own.k.id;
    for (int32_t i = v.begin() + thread(); i < v.end(); i += threads())
        v.p[i] = i == id ? 1.0f : 0.0f;
    return false;
}

/* Concludes a pass that made new e, whose weights this thread has added up. */
__device__ bool conclude_total(const serving &v, u64 W)
{
    W = block_reduce(v.r, W, add{});
    if (!block_gather(v, &W, add{})) return false;
    if (thread() == 0) v.own.k.total = W;
    return true;
}

__device__ bool exponentials(const serving &v, const pass &step)
{
    const float max = v.own.k.max, T = v.j.s.temperature;
    const float min_p = step.final ? v.j.s.min_p : 0.0f;
    float *p = v.p;
    u64 W = 0;
    each_entry(v.logits, v.begin(), v.end(), [&](int32_t i, float x) {
        float e = as_exp_core(__fdiv_rn(__fsub_rn(x, max), T));
        e = e >= min_p ? e : 0.0f; /* DIST-11 */
        p[i] = e;
        W += as_weight(e);
    });
    return conclude_total(v, W);
}

/* DIST-10: the least S with S * 2^32 >= P * W; at least 1, so that the first token of the
 * ranking always stays (DIST-12). */
__device__ u64 mass_needed(float top_p, u64 W)
{
    const as_u128 P = static_cast<uint64_t>(nearbyint(static_cast<double>(top_p) * 0x1p32));
    const u64 S = static_cast<u64>((P * W + 0xffffffffu) >> 32);
    return S ? S : 1;
}

/* Adds the histograms of a row's blocks up in that of the last to arrive. */
__device__ bool block_gather_bins(const serving &v)
{
    histogram &h = v.own.h;
    if (!v.word) return true;
    for (unsigned b = threadIdx.x; b < BINS; b += blockDim.x)
        if (h.of(b)) atomicAdd(v.bins() + b, h.of(b));
    if (!v.j.m.block_goes_on(v.r)) return false;
    for (unsigned b = threadIdx.x; b < BINS; b += blockDim.x) {
        const u64 sum = __ldcg(v.bins() + b);
        h.low[b] = static_cast<uint32_t>(sum);
        h.high[b] = static_cast<uint32_t>(sum >> 32);
        v.bins()[b] = 0;
    }
    __syncthreads();
    return true;
}

/* A radix selection, as the reference's: from a histogram of the measure over the next digit of
 * the keys that share the bits fixed so far, the digit at which the sum downwards first reaches
 * what is needed. */
__device__ bool find_digit(const serving &v, const pass &step)
{
    known &k = v.own.k;
    histogram &h = v.own.h;
    const uint32_t key = step.digit ? k.key : 0, fixed = step.digit ? k.fixed : 0;
    const uint32_t digits = digits_of(step.digit);
    const int shift = shift_of(step.digit);
    const bool mass = step.mass;
    const float *e = mass ? v.p : v.logits;
    h.clear();
    __syncthreads();
    each_pair(v.logits, e, v.begin(), v.end(), [&](int32_t, float x, float part) {
        const uint32_t rank = rank_of(x);
        const u64 measure = mass ? as_weight(part) : 1;
        if ((rank & fixed) == key && measure) h.count(rank >> shift & digits, measure);
    });
    __syncthreads();
    if (!block_gather_bins(v)) return false;
    u64 need = k.need, above;
    if (step.digit == 0)
        need = mass ? mass_needed(v.j.s.top_p, k.total) : static_cast<u64>(v.j.s.top_k);
    const int32_t down = block_find(
        v.r, static_cast<int32_t>(digits) + 1,
        [&](int32_t i) { return h.of(digits - static_cast<uint32_t>(i)); }, need - 1, &above);
    if (thread() == 0) {
        k.need = need - above;
        k.key = key | (digits - static_cast<uint32_t>(down)) << shift;
        k.fixed = fixed | digits << shift;
    }
    return true;
}

/* What the entries of one key add to the measure of a prefix. */
struct law_of_key {
    const float *logits, *p; /* p is NULL where tokens are counted */
    uint32_t key;
    __device__ u64 operator()(int32_t i) const
    {
        return rank_of(logits[i]) != key ? 0 : p ? as_weight(p[i]) : 1;
    }
};

__device__ bool find_last(const serving &v, const pass &step)
{
    const law_of_key law = {v.logits, step.mass ? v.p : nullptr, v.own.k.key};
    if (v.word) leave_sums(v.l, v.j.m, 0, law);
    if (!v.j.m.block_goes_on(v.r)) return false;
    block_sums_of(v.r, v.l, v.j.m, 0, law);
    const int32_t last = block_place(v.r, v.l, law, v.own.k.need - 1);
    if (thread() == 0) v.own.k.last = last;
    return true;
}

__device__ bool keep_prefix(const serving &v, const pass &step)
{
    const uint32_t key = v.own.k.key;
    const int32_t last = v.own.k.last;
    const float min_p = step.final ? v.j.s.min_p : 0.0f;
    float *p = v.p;
    u64 W = 0;
    each_pair(v.logits, p, v.begin(), v.end(), [&](int32_t i, float x, float e) {
        const uint32_t rank = rank_of(x);
        const bool in = rank > key || (rank == key && i <= last);
        e = in && e >= min_p ? e : 0.0f;
        p[i] = e;
        W += as_weight(e);
    });
    return conclude_total(v, W);
}

/* The greatest logit always survives with e = 1, so the total is at least 2^44. */
__device__ bool divide(const serving &v)
{
    const float divisor = __fmul_rn(static_cast<float>(v.own.k.total), 0x1p-44f);
    float *p = v.p;
    each_entry(p, v.begin(), v.end(),
               [=](int32_t i, float e) { p[i] = __fdiv_rn(e, divisor); });
    return false;
}

/* One pass; true for a block that knows what it concluded. */
__device__ bool make(const serving &v, const pass &step)
{
    switch (step.kind) {
    case LOOK:
        return look(v);
    case POINT:
        return point(v);
    case EXP:
        return exponentials(v, step);
    case DIGIT:
        return find_digit(v, step);
    case TIE:
        return find_last(v, step);
    case KEEP:
        return keep_prefix(v, step);
    default:
        return divide(v);
    }
}

__global__ void __launch_bounds__(MOST_THREADS, 2) serve(serve_job j)
{
    take_turn();
    SHARED(room, r);
    serve_room &own = *reinterpret_cast<serve_room *>(r->part() + j.x.l.stretches);
    const int32_t i = j.m.own_case();
    if (j.x.none(i)) return;
    const serving v = {j,
                       *r,
                       own,
                       j.x.l,
                       j.x[i],
                       j.p + static_cast<int64_t>(i) * j.x.l.V,
                       i,
                       j.m.of(i).word,
                       share_of(j.x.l, j.m.own_part(), j.m.parts)};
    if (v.word && j.first > 0) {
        if (thread() == 0) own.k = *v.kept();
        __syncthreads();
    }
    bool knows = true;
    for (int32_t n = j.first; n < j.first + j.passes; n++) {
        if (n > 0 && own.k.state != AG_ROW_GOOD) return;
        knows = make(v, j.list[n]);
        __syncthreads();
    }
    if (v.word && knows && thread() == 0) *v.kept() = own.k;
}

/* The passes that the parameters ask for; returns how many. */
int32_t list_passes(const as_sampling &s, int32_t V, pass *list)
{
    int32_t n = 0;
    const bool top_k = s.top_k > 0 && s.top_k < V, top_p = s.top_p < 1.0f;
    const auto prefix = [&](bool mass, bool final) {
        for (uint8_t d = 0; d < 3; d++) list[n++] = pass{DIGIT, d, mass, false};
        list[n++] = pass{TIE, 0, mass, false};
        list[n++] = pass{KEEP, 0, mass, final};
    };
    list[n++] = pass{LOOK, 0, false, false};
    if (s.temperature == 0.0f) {
        list[n++] = pass{POINT, 0, false, false};
        return n;
    }
    list[n++] = pass{EXP, 0, false, !top_k && !top_p};
    if (top_k) prefix(false, !top_p);
    if (top_p) prefix(true, true);
    list[n++] = pass{DIVIDE, 0, false, false};
    return n;
}

} // namespace

/* ---- What rows.h promises. --------------------------------------------------------------- */

extern "C" as_status ag_scratch_reserve(const ag_device *d, int32_t n, ag_scratch *s,
                                        as_error *e)
{
    if (n <= s->rows) return AS_OK;
    const size_t words = static_cast<size_t>(n) * ROW_WORDS * sizeof(u64);
    const size_t counters = static_cast<size_t>(n) * sizeof(uint32_t);
    void *word = nullptr, *arrived = nullptr;
    as_status status = ag_alloc(d, &word, words, "scratch of rows", e);
    if (status == AS_OK) status = ag_alloc(d, &arrived, counters, "counters of rows", e);
    if (status == AS_OK) status = ag_fill(d, word, 0, words, e);
    if (status == AS_OK) status = ag_fill(d, arrived, 0, counters, e);
    if (status != AS_OK) {
        ag_free(word);
        ag_free(arrived);
        return status;
    }
    ag_scratch_free(s);
    *s = ag_scratch{static_cast<uint64_t *>(word), static_cast<uint32_t *>(arrived), n};
    return AS_OK;
}

extern "C" void ag_scratch_free(ag_scratch *s)
{
    ag_free(s->word);
    ag_free(s->arrived);
    *s = ag_scratch{};
}

extern "C" as_status ag_argmax(const ag_device *d, const float *logits, const int32_t *row,
                               int32_t n, int32_t V, int32_t *id, int32_t *state,
                               const ag_scratch *s, as_error *e)
{
    launch to;
    const as_status status = plan_launch(d, n, 1, V, s, &to, e);
    if (status != AS_OK) return status;
    const rows x = {logits, row, to.l};
    LAUNCH(argmax, to.blocks, to.threads, to.shared, d, x, to.m, id, state);
    return ag_launched("argmax", e);
}

extern "C" as_status ag_check_rows(const ag_device *d, const float *p, const int32_t *row,
                                   int32_t n, int32_t V, int32_t *state, as_error *e)
{
    launch to;
    const as_status status = plan_launch(d, n, 1, V, nullptr, &to, e);
    if (status != AS_OK) return status;
    const rows x = {p, row, to.l};
    LAUNCH(check_rows, to.blocks, to.threads, to.shared, d, x, state);
    return ag_launched("check_rows", e);
}

extern "C" as_status ag_residual(const ag_device *d, const float *p, const float *q,
                                 const int32_t *row, int32_t n, int32_t V, float *r,
                                 uint64_t *W, as_error *e)
{
    launch to;
    const as_status status = plan_launch(d, n, 1, V, nullptr, &to, e);
    if (status != AS_OK) return status;
    const rows from = {p, row, to.l}, taken = {q, row, to.l};
    LAUNCH(residuals, to.blocks, to.threads, to.shared, d, from, taken, r, W);
    return ag_launched("residuals", e);
}

extern "C" as_status ag_totals(const ag_device *d, const float *p, const float *q,
                               const int32_t *row, int32_t n, int32_t V, uint64_t *W,
                               as_error *e)
{
    launch to;
    const as_status status = plan_launch(d, n, 1, V, nullptr, &to, e);
    if (status != AS_OK) return status;
    const rows of = {p, row, to.l}, other = {q, row, to.l};
    LAUNCH(totals, to.blocks, to.threads, to.shared, d, of, other, W);
    return ag_launched("totals", e);
}

extern "C" as_status ag_draw(const ag_device *d, const float *p, const float *q,
                             const int32_t *row, int32_t n, int32_t V, const uint64_t *U,
                             const ag_seeds *seeds, as_purpose purpose, int32_t *token,
                             const ag_scratch *s, as_error *e)
{
    launch to;
    const as_status status = plan_launch(d, n, 1, V, s, &to, e);
    if (status != AS_OK) return status;
    if (!U && !seeds) return as_fail(e, AS_BAD_INPUT, "GPU: a draw without uniforms or seeds");
    const rows from = {p, row, to.l}, taken = {q, row, to.l};
    const draw_job j = {from, taken, to.m, U, seeds ? *seeds : ag_seeds{}, purpose, token};
    LAUNCH(draw, to.blocks, to.threads, to.shared, d, j);
    return ag_launched("draw", e);
}

extern "C" as_status ag_serve(const ag_device *d, const float *logits, const int32_t *row,
                              int32_t n, int32_t V, const as_sampling *sampling, float *p,
                              int32_t *state, const ag_scratch *s, as_error *e)
{
    launch to;
    as_status status = as_check_sampling(sampling, e);
    if (status == AS_OK) status = plan_launch(d, n, 1, V, s, &to, e);
    if (status != AS_OK) return status;
    serve_job j = {{logits, row, to.l}, p, state, *sampling, to.m, {}, 0, 0};
    const int32_t passes = list_passes(*sampling, V, j.list);
    const size_t shared = to.shared + sizeof(serve_room);
    j.passes = to.m.word ? 1 : passes;
    for (; j.first < passes && status == AS_OK; j.first += j.passes) {
        LAUNCH(serve, to.blocks, to.threads, shared, d, j);
        status = ag_launched("serve", e);
    }
    return status;
}
