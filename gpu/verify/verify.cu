/* verify.cu - see verify.h. A rule is a few comparisons; its work is the argmax or the sums of
 * rows. Where blocks share the rows of a case, all of them look at their parts first, and the
 * last to arrive applies the rule to what they left. The chain rule sums one row alone, and
 * every block finds out by itself which one: the acceptance tests read two numbers a draft.
 * So each rule is one launch, whatever the shape. */
#include "gpu/num/row.cuh"

#include "gpu/verify/verify.h"

namespace
{

using namespace ag;

enum { MOST_THREADS = 512, MOST_TREE = 3072, MOST_DRAFTS = 2048 };

/* ---- One case of chains. ----------------------------------------------------------------- */

struct chain_job {
    ag_chains c;
    layout l;
    meeting m;
};

/* Case i of a job. */
struct chain {
    const ag_chains &c;
    int32_t i;
    uint64_t seed, position;

    __device__ const int32_t *draft() const
    {
        return c.draft + static_cast<int64_t>(i) * c.gamma;
    }
    __device__ int64_t p_number(int32_t k) const
    {
        const int64_t at = static_cast<int64_t>(i) * (c.gamma + 1) + k;
        return c.state ? c.state[at] : at;
    }
    __device__ int64_t q_number(int32_t k) const
    {
        return c.state ? p_number(k) : static_cast<int64_t>(i) * c.gamma + k;
    }
    __device__ const float *p(int32_t k) const { return c.p + p_number(k) * c.V; }
    __device__ const float *q(int32_t k) const { return c.q + q_number(k) * c.V; }
    __device__ double given(int32_t k) const
    {
        return c.u[static_cast<int64_t>(i) * (c.gamma + 2) + k];
    }
    __device__ double accept_uniform(int32_t k) const
    {
        const uint64_t at = position + static_cast<uint64_t>(k);
        return c.u ? given(k) : as_unit29(as_random(seed, at, AS_ACCEPT, 0));
    }
    /* The word for a draw at position k: number `place` of those given. */
    __device__ uint64_t draw_uniform(int32_t k, as_purpose purpose, int32_t place) const
    {
        return c.u ? word_of_unit(given(place))
                   : random_word(seed, position + static_cast<uint64_t>(k), purpose, 0);
    }
};

__device__ chain chain_of(const chain_job &j)
{
    const int32_t i = j.m.own_case();
    return {j.c, i, seed_of(j.c.seeds, i), position_of(j.c.seeds, i)};
}

/* How many drafts of the case count, or what is wrong with it. */
struct head {
    int32_t length;
    ag_fault fault;
};

__device__ head block_drafts(room &r, const chain &c)
{
    const int32_t n = c.c.len ? c.c.len[c.i] : c.c.gamma, V = c.c.V;
    if (n < 0) return {0, {AG_BAD_DRAFT, -1}};
    const int32_t *draft = c.draft();
    const int32_t length =
        block_first(r, n, [=](int32_t k) { return draft[k] < 0 || draft[k] >= V; });
    if (length < n && draft[length] != -1) return {0, {AG_BAD_DRAFT, length}};
    return {length, {AG_CASE_GOOD, 0}};
}

/* The same, with the states of all its rows: p before q at each position. */
__device__ head block_head(room &r, const chain &c, bool uses_q)
{
    head h = block_drafts(r, c);
    if (h.fault.kind != AG_CASE_GOOD) return h;
    const int32_t rows = 2 * h.length + 1;
    const int32_t bad = block_first(r, rows, [&](int32_t k) {
        return k % 2 ? uses_q && is_bad(c.c.q_state, c.q_number(k / 2))
                     : is_bad(c.c.p_state, c.p_number(k / 2));
    });
    if (bad < rows) h.fault = {bad % 2 ? AG_BAD_Q : AG_BAD_P, bad / 2};
    return h;
}

/* What a case has come to: `accepted` drafts and one token more, or a fault. */
__device__ void block_emit(const chain &c, ag_fault fault, int32_t accepted, int32_t token)
{
    const bool good = fault.kind == AG_CASE_GOOD;
    int32_t *out = c.c.out + static_cast<int64_t>(c.i) * (c.c.gamma + 1);
    for (int32_t k = thread(); good && k < accepted; k += threads()) out[k] = c.draft()[k];
    if (thread() != 0) return;
    if (good) out[accepted] = token;
    c.c.out_len[c.i] = good ? accepted + 1 : 0;
    c.c.fault[c.i] = fault;
}

/* Whether this is the first of the blocks of its case. */
__device__ bool is_first(const meeting &m)
{
    return m.own_slot() == 0 && m.own_part() == 0;
}

/* ---- The chain rule. --------------------------------------------------------------------- */

__global__ void __launch_bounds__(MOST_THREADS, 2) verify_chain(chain_job j)
{
    take_turn();
    SHARED(room, r);
    const chain c = chain_of(j);
    const head h = block_head(*r, c, true);
    if (h.fault.kind != AG_CASE_GOOD) {
        if (is_first(j.m)) block_emit(c, h.fault, 0, 0);
        return;
    }
    const int32_t *draft = c.draft(), gamma = j.c.gamma;
    const int32_t a = block_first(*r, h.length, [&](int32_t k) {
        return !accepts(c.p(k)[draft[k]], c.q(k)[draft[k]], c.accept_uniform(k));
    });
    const bool rejected = a < h.length;
    const law_of w = {c.p(a), rejected ? c.q(a) : nullptr};
    if (j.m.word) leave_sums(j.l, j.m, 0, w);
    if (!j.m.block_goes_on(*r)) return;
    const uint64_t U =
        c.draw_uniform(a, rejected ? AS_RESIDUAL : AS_DRAW, rejected ? gamma : gamma + 1);
    block_sums_of(*r, j.l, j.m, 0, w);
    block_emit(c, {AG_CASE_GOOD, 0}, a, block_draw_summed(*r, j.l, w, U));
}

/* ---- The rules that choose a token from each row and go on while it is the draft. -------- */

/* The token of the row in a slot: its argmax, or a draw by U. -1: it has none. */
template <as_rule RULE>
__device__ int32_t block_choose(room &r, const layout &l, const meeting &m, int32_t slot,
                                const float *row, uint64_t U)
{
    if (RULE == AS_RULE_GREEDY) return top_of(block_top_of(r, l, m, slot, row)).id;
    const law_of w = {row, nullptr};
    block_sums_of(r, l, m, slot, w);
    return block_draw_summed(r, l, w, U);
}

/* This block's part of what block_choose asks for. */
template <as_rule RULE>
__device__ void block_leave(room &r, const layout &l, const meeting &m, int32_t slot,
                            const float *row)
{
    if (RULE == AS_RULE_GREEDY)
        block_leave_top(r, l, m, slot, row);
    else
        leave_sums(l, m, slot, law_of{row, nullptr});
}

/* What a case has come to by such a rule: `token` was chosen at k. */
template <as_rule RULE> __device__ void block_stop(const chain &c, int32_t k, int32_t token)
{
    const bool none = RULE == AS_RULE_GREEDY && token < 0;
    block_emit(c, {none ? AG_BAD_P : AG_CASE_GOOD, none ? k : 0}, k, token);
}

/* The greedy rule on what blocks have left: all drafts are compared at once. */
__device__ void block_follow_tops(room &r, const chain_job &j, const chain &c, int32_t length)
{
    const int32_t *draft = c.draft();
    for (int32_t first = 0;; first += j.l.stretches) {
        const int32_t n = least(length + 1 - first, j.l.stretches);
        block_tops_of(r, j.m, first, n);
        const int32_t i = block_first(r, n, [&](int32_t s) {
            const int32_t k = first + s, token = top_of(r.part()[s]).id;
            return token < 0 || k == length || token != draft[k];
        });
        if (i < n) return block_stop<AS_RULE_GREEDY>(c, first + i, top_of(r.part()[i]).id);
    }
}

/* Asks for this block's part of the row in its slot, so that it is on its way while the drafts
 * are looked at: where no states say which row it is, that takes no memory access. */
__device__ void ask_for_part(const chain_job &j, const chain &c)
{
    enum { LINE = 32 /* floats */ };
    const share s = share_of(j.l, j.m.own_part(), j.m.parts);
    const float *row = c.p(j.m.own_slot());
    for (int32_t i = s.first * j.l.length + thread() * LINE;
         i < least(s.end * j.l.length, j.l.V); i += threads() * LINE)
        prefetch(row + i);
}

template <as_rule RULE>
__global__ void __launch_bounds__(MOST_THREADS, 2) verify_choice(chain_job j)
{
    take_turn();
    SHARED(room, r);
    const chain c = chain_of(j);
    if (j.m.word && !j.c.state) ask_for_part(j, c);
    const head h = RULE == AS_RULE_GREEDY ? block_drafts(*r, c) : block_head(*r, c, false);
    if (h.fault.kind != AG_CASE_GOOD) {
        if (is_first(j.m)) block_emit(c, h.fault, 0, 0);
        return;
    }
    const int32_t slot = j.m.own_slot();
    if (j.m.word && slot <= h.length) block_leave<RULE>(*r, j.l, j.m, slot, c.p(slot));
    if (!j.m.block_goes_on(*r)) return;
    if (RULE == AS_RULE_GREEDY && j.m.word) return block_follow_tops(*r, j, c, h.length);
    for (int32_t k = 0;; k++) {
        const uint64_t U = RULE == AS_RULE_GREEDY ? 0 : c.draw_uniform(k, AS_DRAW, k);
        const int32_t token = block_choose<RULE>(*r, j.l, j.m, k, c.p(k), U);
        if (token >= 0 && k < h.length && token == c.draft()[k]) continue;
        return block_stop<RULE>(c, k, token);
    }
}

/* ---- A walk down a tree. ----------------------------------------------------------------- */

struct walk_job {
    ag_walks w;
    layout l;
    meeting m;
};

/* One tree, and how far the walk has come: `here` [rows] are the rows that spell the tokens
 * accepted so far, the root at first; `next` receives those of the level below. A row may
 * follow iff its parent is here. `refused` holds the tokens that the one-hot rule has refused
 * at this level. All in shared memory. */
struct tree {
    const ag_tree t;
    const int32_t *token, *parent;
    const float *row;
    const int32_t *state;
    int32_t V;
    uint64_t seed, position;
    int32_t *here, *next, *refused;

    __device__ int32_t drafts() const { return t.all ? t.rows - 1 : t.rows - t.drafts; }
    /* The draft row of rank i: drafts first, then the rows before them. */
    __device__ int32_t ranked(int32_t i) const
    {
        const int32_t n = t.rows - t.drafts;
        return i < n ? t.drafts + i : 1 + i - n;
    }
    __device__ bool follows(int32_t r) const { return here[parent[r]] != 0; }
    /* Where the row stands among the wanted ones. */
    __device__ int32_t slot_of(int32_t r) const { return r == 0 ? 0 : r - t.wanted + 1; }
    __device__ const float *law(int32_t slot) const
    {
        return row + static_cast<int64_t>(slot) * V;
    }
    __device__ bool good(int32_t slot) const { return !is_bad(state, slot); }
};

__device__ tree tree_of(const walk_job &j, int32_t i, int32_t *shared)
{
    const int32_t n = j.w.capacity;
    const int64_t at = static_cast<int64_t>(i) * n;
    return {j.w.tree[i],
            j.w.token + at,
            j.w.parent + at,
            j.w.row + static_cast<int64_t>(i) * j.w.wants * j.w.V,
            j.w.row_state ? j.w.row_state + static_cast<int64_t>(i) * j.w.wants : nullptr,
            j.w.V,
            seed_of(j.w.seeds, i),
            position_of(j.w.seeds, i),
            shared,
            shared + n,
            shared + 2 * n};
}

/* The first rank whose row may follow with a token for which the predicate holds; the number of
 * draft rows when there is none. */
template <class P> __device__ int32_t block_rank(room &r, const tree &t, const P &holds)
{
    return block_first(r, t.drafts(), [&](int32_t i) {
        const int32_t row = t.ranked(i);
        return t.follows(row) && holds(t.token[row]);
    });
}

__device__ bool among(int32_t token, const int32_t *list, int32_t n)
{
    while (n > 0 && list[n - 1] != token) n--;
    return n > 0;
}

/* ONEH-04: takes n refused tokens out of the sums in the room. */
__device__ void block_take_out(room &r, const layout &l, const float *p, const int32_t *token,
                               int32_t n)
{
    if (thread() == 0)
        for (int32_t k = 0; k < n; k++) r.part()[token[k] / l.length] -= as_weight(p[token[k]]);
    __syncthreads();
}

/* The token after row `slot` by the one-hot rule; live: the candidates are asked. */
__device__ int32_t block_onehot(room &r, const layout &l, const meeting &m, const tree &t,
                                int32_t slot, int32_t depth, bool live)
{
    const uint64_t at = t.position + static_cast<uint64_t>(depth);
    const float *p = t.law(slot);
    const law_of all = {p, nullptr};
    block_sums_of(r, l, m, slot, all);
    u64 W = block_total(r, l);
    int32_t n = 0;
    for (; live; n++) {
        const int32_t i =
            block_rank(r, t, [&](int32_t token) { return !among(token, t.refused, n); });
        if (i == t.drafts()) break;
        const int32_t token = t.token[t.ranked(i)];
        const u64 w = as_weight(p[token]);
        const uint64_t U = random_word(t.seed, at, AS_ACCEPT, static_cast<uint32_t>(n));
        if (as_target(U, W) < w) return token;
        W -= w;
        if (thread() == 0) t.refused[n] = token;
        __syncthreads();
    }
    if (n == 0) return block_draw_summed(r, l, all, random_word(t.seed, at, AS_DRAW, 0));
    if (W == 0) return t.refused[n - 1];
    block_take_out(r, l, p, t.refused, n);
    return block_draw_summed(r, l, law_without{p, t.refused, n},
                             random_word(t.seed, at, AS_RESIDUAL, 0));
}

template <as_rule RULE>
__device__ int32_t block_follow(room &r, const layout &l, const meeting &m, const tree &t,
                                int32_t slot, int32_t depth, bool live)
{
    if (RULE == AS_RULE_ONEHOT) return block_onehot(r, l, m, t, slot, depth, live);
    const uint64_t at = t.position + static_cast<uint64_t>(depth);
    const uint64_t U = RULE == AS_RULE_GREEDY ? 0 : random_word(t.seed, at, AS_DRAW, 0);
    return block_choose<RULE>(r, l, m, slot, t.law(slot), U);
}

/* Lets the rows that follow with the token be here. */
__device__ void block_descend(tree &t, int32_t token)
{
    for (int32_t i = thread(); i < t.t.rows; i += threads())
        t.next[i] = i > 0 && t.follows(i) && t.token[i] == token;
    __syncthreads();
    int32_t *const above = t.here;
    t.here = t.next;
    t.next = above;
}

__device__ void block_start(const tree &t)
{
    for (int32_t i = thread(); i < t.t.rows; i += threads()) t.here[i] = i == 0;
    __syncthreads();
}

__device__ void finish_walk(const ag_walks &w, const tree &t, int32_t i, ag_fault fault,
                            int32_t length, int32_t accepted, int32_t row)
{
    if (thread() != 0) return;
    const bool good = fault.kind == AG_CASE_GOOD;
    int32_t *path = w.path + static_cast<int64_t>(i) * w.capacity;
    w.fault[i] = fault;
    w.length[i] = good ? length : 0;
    w.accepted[i] = good ? accepted : -1;
    for (int32_t k = accepted; good && k >= 0; k--, row = t.parent[row]) path[k] = row;
}

template <as_rule RULE>
__device__ void walk_tree(room &r, const walk_job &j, tree &t, int32_t i)
{
    int32_t *run = j.w.run + static_cast<int64_t>(i) * j.w.capacity;
    int32_t row = 0, length = 0, accepted = 0;
    ag_fault fault = {AG_CASE_GOOD, 0};
    block_start(t);
    while (accepted < t.t.most || t.t.bonus) {
        const bool live = accepted < t.t.most;
        const int32_t slot = t.slot_of(row);
        const int32_t token = RULE == AS_RULE_GREEDY || t.good(slot)
                                  ? block_follow<RULE>(r, j.l, j.m, t, slot, accepted, live)
                                  : -1;
        if (token < 0) {
            fault = {AG_BAD_P, row};
            break;
        }
        if (thread() == 0) run[length] = token;
        length++;
        const int32_t rank =
            live ? block_rank(r, t, [=](int32_t x) { return x == token; }) : t.drafts();
        if (rank == t.drafts()) break;
        row = t.ranked(rank);
        accepted++;
        block_descend(t, token);
    }
    finish_walk(j.w, t, i, fault, length, accepted, row);
}

template <as_rule RULE> __global__ void __launch_bounds__(MOST_THREADS, 2) walk(walk_job j)
{
    take_turn();
    SHARED(room, r);
    const int32_t i = j.m.own_case(), slot = j.m.own_slot();
    tree t = tree_of(j, i, reinterpret_cast<int32_t *>(r->part() + j.l.stretches));
    if (t.t.rows < 1) {
        if (is_first(j.m)) finish_walk(j.w, t, i, {AG_CASE_GOOD, 0}, 0, -1, 0);
        return;
    }
    /* Nobody comes to rows beyond the tree, or to wanted rows that are no drafts. */
    const int32_t own = slot == 0 ? 0 : t.t.wanted + slot - 1;
    const bool visited = own == 0 || (own < t.t.rows && (t.t.all || own >= t.t.drafts));
    const bool good = RULE == AS_RULE_GREEDY || t.good(slot);
    if (j.m.word && visited && good) block_leave<RULE>(*r, j.l, j.m, slot, t.law(slot));
    if (j.m.block_goes_on(*r)) walk_tree<RULE>(*r, j, t, i);
}

/* ---- Streams over a panel. --------------------------------------------------------------- */

struct stream_job {
    ag_panel x;
    ag_streams s;
    layout l;
    int32_t most; /* drafts of a step */
};

/* One stream. The lists are in shared memory. */
struct stream {
    const ag_panel &x;
    uint64_t seed;
    int32_t *state; /* [most+1] of the rows of a step */
    int32_t *draft; /* [most] */

    __device__ const float *p(int32_t k) const
    {
        return x.p + static_cast<int64_t>(state[k]) * x.V;
    }
    __device__ const float *q(int32_t k) const
    {
        return x.q + static_cast<int64_t>(state[k]) * x.V;
    }
    __device__ int32_t after(int32_t from, int32_t token) const
    {
        return x.next[static_cast<int64_t>(from) * x.C + x.cls[token]];
    }
    __device__ uint64_t word(int32_t position, as_purpose purpose) const
    {
        return random_word(seed, static_cast<uint64_t>(position), purpose, 0);
    }
};

/* Draws n drafts after `state`, the first of them for position m. */
__device__ ag_fault block_propose(room &r, const layout &l, const stream &s, int32_t state,
                                  int32_t n, int32_t m)
{
    for (int32_t i = 0;; i++) {
        if (thread() == 0) s.state[i] = state;
        __syncthreads();
        if (is_bad(s.x.p_state, state)) return {AG_BAD_P, state};
        if (i == n) return {AG_CASE_GOOD, 0};
        if (is_bad(s.x.q_state, state)) return {AG_BAD_Q, state};
        const int32_t token =
            block_draw(r, l, law_of{s.q(i), nullptr}, s.word(m + i, AS_DRAFT));
        if (thread() == 0) s.draft[i] = token;
        state = s.after(state, token);
    }
}

/* How many of the n drafts stand, and the token after them. */
template <as_rule RULE>
__device__ int32_t block_step(room &r, const layout &l, const stream &s, int32_t n, int32_t m,
                              int32_t *token)
{
    if (RULE == AS_RULE_MATCH) {
        for (int32_t k = 0;; k++) {
            *token = block_draw(r, l, law_of{s.p(k), nullptr}, s.word(m + k, AS_DRAW));
            if (k == n || *token != s.draft[k]) return k;
        }
    }
    const int32_t a = block_first(r, n, [&](int32_t k) {
        const double u =
            as_unit29(as_random(s.seed, static_cast<uint64_t>(m + k), AS_ACCEPT, 0));
        return !accepts(s.p(k)[s.draft[k]], s.q(k)[s.draft[k]], u);
    });
    *token = block_draw(r, l, law_of{s.p(a), a < n ? s.q(a) : nullptr},
                        s.word(m + a, a < n ? AS_RESIDUAL : AS_DRAW));
    return a;
}

/* Writes the accepted drafts and the token; returns how many up to the end of the stream. */
__device__ int32_t block_write(room &r, const stream &s, int32_t accepted, int32_t token,
                               int32_t eos, int32_t *out)
{
    const int32_t end = block_first(r, accepted, [&](int32_t k) { return s.draft[k] == eos; });
    const int32_t n = end < accepted ? end + 1 : accepted + 1;
    for (int32_t k = thread(); k < n; k += threads())
        out[k] = k < accepted ? s.draft[k] : token;
    __syncthreads(); /* the lists may be written again */
    return n;
}

template <as_rule RULE>
__global__ void __launch_bounds__(MOST_THREADS, 2) run_stream(stream_job j)
{
    take_turn();
    SHARED(room, r);
    const int32_t i = static_cast<int32_t>(blockIdx.x), k = j.s.k;
    int32_t *const list = reinterpret_cast<int32_t *>(r->part() + j.l.stretches);
    const stream s = {j.x, j.s.seed + static_cast<uint64_t>(i), list, list + j.most + 1};
    int32_t *out = j.s.out + static_cast<int64_t>(i) * k;
    int32_t *accepted = j.s.accepted + static_cast<int64_t>(i) * k;
    int32_t state = j.s.start[i], m = 0;
    ag_fault fault = {AG_CASE_GOOD, 0};
    for (int32_t step = 0; m < k; step++) {
        const int32_t n = least(j.s.gamma, k - m - 1);
        fault = block_propose(*r, j.l, s, state, n, m);
        if (fault.kind != AG_CASE_GOOD) break;
        int32_t token;
        const int32_t a = block_step<RULE>(*r, j.l, s, n, m, &token);
        state = s.after(s.state[a], token);
        if (thread() == 0) accepted[step] = a;
        const int32_t written = block_write(*r, s, a, token, j.s.eos, out + m);
        m += written;
        if (written <= a || token == j.s.eos) break;
    }
    if (thread() != 0) return;
    j.s.out_len[i] = fault.kind == AG_CASE_GOOD ? m : 0;
    j.s.fault[i] = fault;
}

as_status refuse_rule(as_rule rule, const char *what, as_error *e)
{
    return as_fail(e, AS_BAD_INPUT, "GPU: rule %d does not go with %s", static_cast<int>(rule),
                   what);
}

} // namespace

/* ---- What verify.h promises. ------------------------------------------------------------- */

extern "C" as_status ag_verify(const ag_device *d, as_rule rule, const ag_chains *c,
                               const ag_scratch *s, as_error *e)
{
    launch to;
    if (rule == AS_RULE_ONEHOT) return refuse_rule(rule, "chains", e);
    if (c->gamma < 0) return as_fail(e, AS_BAD_INPUT, "GPU: chains of %d drafts", c->gamma);
    const int32_t slots = rule == AS_RULE_CHAIN ? 1 : c->gamma + 1;
    const as_status status = plan_launch(d, c->n, slots, c->V, s, &to, e);
    if (status != AS_OK) return status;
    const chain_job j = {*c, to.l, to.m};
    if (rule == AS_RULE_CHAIN)
        LAUNCH(verify_chain, to.blocks, to.threads, to.shared, d, j);
    else if (rule == AS_RULE_MATCH)
        LAUNCH(verify_choice<AS_RULE_MATCH>, to.blocks, to.threads, to.shared, d, j);
    else
        LAUNCH(verify_choice<AS_RULE_GREEDY>, to.blocks, to.threads, to.shared, d, j);
    return ag_launched("verify", e);
}

extern "C" as_status ag_walk(const ag_device *d, as_rule rule, const ag_walks *w,
                             const ag_scratch *s, as_error *e)
{
    launch to;
    if (rule == AS_RULE_CHAIN) return refuse_rule(rule, "a walk", e);
    if (w->capacity > MOST_TREE)
        return as_fail(e, AS_LIMIT, "GPU: trees of %d rows; a walk takes %d", w->capacity,
                       static_cast<int>(MOST_TREE));
    const as_status status = plan_launch(d, w->n, w->wants, w->V, s, &to, e);
    if (status != AS_OK) return status;
    const walk_job j = {*w, to.l, to.m};
    const size_t shared = to.shared + 3 * static_cast<size_t>(w->capacity) * sizeof(int32_t);
    if (rule == AS_RULE_ONEHOT)
        LAUNCH(walk<AS_RULE_ONEHOT>, to.blocks, to.threads, shared, d, j);
    else if (rule == AS_RULE_MATCH)
        LAUNCH(walk<AS_RULE_MATCH>, to.blocks, to.threads, shared, d, j);
    else
        LAUNCH(walk<AS_RULE_GREEDY>, to.blocks, to.threads, shared, d, j);
    return ag_launched("walk", e);
}

extern "C" as_status ag_stream(const ag_device *d, as_rule rule, const ag_panel *panel,
                               const ag_streams *s, as_error *e)
{
    launch to;
    if (rule != AS_RULE_CHAIN && rule != AS_RULE_MATCH)
        return refuse_rule(rule, "streams over a panel", e);
    if (s->gamma < 0 || s->k < 0)
        return as_fail(e, AS_BAD_INPUT, "GPU: streams of %d tokens, %d drafts a step", s->k,
                       s->gamma);
    const int32_t most = s->gamma < s->k ? s->gamma : s->k;
    if (most > MOST_DRAFTS)
        return as_fail(e, AS_LIMIT, "GPU: %d drafts a step; a stream takes %d", most,
                       static_cast<int>(MOST_DRAFTS));
    const as_status status = plan_launch(d, s->n, 1, panel->V, nullptr, &to, e);
    if (status != AS_OK) return status;
    const stream_job j = {*panel, *s, to.l, most};
    const size_t lists = (2 * static_cast<size_t>(most) + 1) * sizeof(int32_t);
    if (rule == AS_RULE_CHAIN)
        LAUNCH(run_stream<AS_RULE_CHAIN>, to.blocks, to.threads, to.shared + lists, d, j);
    else
        LAUNCH(run_stream<AS_RULE_MATCH>, to.blocks, to.threads, to.shared + lists, d, j);
    return ag_launched("stream", e);
}
