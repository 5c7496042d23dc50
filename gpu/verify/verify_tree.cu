/* verify_tree.cu - see verify_tree.h. A request is walked down by a team: a block, or the blocks of a cluster, which
 * share each row by stretches (row.cuh). Each block decides everything for itself, from sums of the whole row; what
 * differs among them is told by shared memory. So all of them take the same way, and one launch does for any rule.
 *
 * Sums are of integers: how many blocks a team has decides no bit.
 *
 * A rule says at a node which child follows, or what is left to draw from. All rules share one sum and one draw of what
 * is left: the code of the kernel is that of all rules together. */
#include "gpu/num/row.cuh"

#include "gpu/verify/verify_tree.h"

namespace
{

using namespace ag;

enum { MOST_THREADS = 512 };

/* ---- Teams. ------------------------------------------------------------------------------ */

/* What a block tells the others. */
struct told {
    u64 a, b;
    int32_t id;
};

/* Every function whose name begins with team_ is called by all threads of all blocks of the team, and gives all of them
 * the same answer. It ends at a barrier of the block. */
struct team {
    room &r;
    const layout &l;
    told *said;         /* [2] in shared memory: by turns, so that one barrier a turn is enough */
    told *best;         /* [LANES] scratch of the block */
    int32_t rank, size; /* of this block; of the team */
    share own;          /* stretches of this block */
    int32_t turn;

    /* Behind it all have told. What they wrote to device memory before is seen, by __ldcg. */
    __device__ void tell(const told &v)
    {
        turn ^= 1;
        if (thread() == 0) said[turn] = v;
        if (size > 1)
            cluster_sync();
        else
            __syncthreads();
    }
    __device__ told of(int32_t who) const { return size > 1 ? *cluster_at(said + turn, who) : said[turn]; }
};

/* Of a law: the sum of the stretches in front of this block's, of its own, and of all. */
struct sums {
    u64 before, own, all;
};

/* Of the sums of stretches that are in the room. */
__device__ sums team_total(team &t)
{
    u64 v = 0;
    for (int32_t i = t.own.first + thread(); i < t.own.end; i += threads()) v += t.r.part()[i];
    sums s = {0, block_reduce(t.r, v, add{}), 0};
    t.tell({s.own, 0, 0});
    UNROLL_BY(1)
    for (int32_t who = 0; who < t.size; who++) {
        const u64 theirs = t.of(who).a;
        s.before += who < t.rank ? theirs : 0;
        s.all += theirs;
    }
    return s;
}

/* Fills the room with the sums of the law. */
template <class L> __device__ sums team_sum(team &t, const L &law)
{
    sum_stretches(t.l, t.own, law, t.r.part());
    __syncthreads();
    return team_total(t);
}

/* DRAW-02 from the law whose sums are in the room; -1 iff they are 0. */
template <class L> __device__ int32_t team_draw(team &t, const sums &s, const L &law, uint64_t U)
{
    if (s.all == 0) return -1;
    const u64 target = as_target(U, s.all);
    int32_t id = -1;
    if (target >= s.before && target - s.before < s.own) {
        const u64 *part = t.r.part() + t.own.first;
        u64 before, unused;
        const int32_t stretch = block_find(
            t.r, t.own.end - t.own.first, [=](int32_t i) { return part[i]; }, target - s.before, &before);
        const int32_t first = (t.own.first + stretch) * t.l.length;
        id = first + block_find(
                         t.r, least(t.l.length, t.l.V - first), [&](int32_t i) { return law(first + i); },
                         target - s.before - before, &unused);
    }
    t.tell({0, 0, id});
    UNROLL_BY(1)
    for (int32_t who = 0; who < t.size; who++) id = t.of(who).id > id ? t.of(who).id : id;
    return id;
}

/* GRD-02; -1: there is none. */
__device__ int32_t team_argmax(team &t, const float *logits)
{
    t.tell({block_top(t.r, t.l, t.own, logits), 0, 0});
    u64 best = 0;
    UNROLL_BY(1)
    for (int32_t who = 0; who < t.size; who++) best = greater{}(best, t.of(who).a);
    return top_of(best).id;
}

/* ---- Requests. --------------------------------------------------------------------------- */

struct tree_job {
    ag_trees t;
    layout l;
};

/* One request. The lists, in shared memory, are of the children of the node at hand: their numbers and tokens; and of
 * their distinct tokens: whose it is first, its weight, the word of its test. */
struct request {
    const ag_trees &t;
    int32_t i, rule, nodes;
    uint64_t seed, position;
    u64 *mass, *word;
    int32_t *child, *option, *token;

    __device__ int64_t at(int32_t node) const { return static_cast<int64_t>(i) * t.capacity + node; }
    __device__ int32_t token_of(int32_t node) const { return t.token[at(node)]; }
    __device__ int32_t parent_of(int32_t node) const { return t.parent[at(node)]; }
    __device__ bool is_child(int32_t node, int32_t of) const { return parent_of(node) == of && token_of(node) >= 0; }
    /* Not at the root, which has no token. */
    __device__ bool uses_q() const
    {
        return rule == AS_TREE_RECURSIVE || rule == AS_TREE_SINGLE || rule == AS_TREE_KSEQ || rule == AS_TREE_BLOCK ||
               rule == AS_TREE_LENIENT;
    }
    __device__ const float *p(int32_t node) const
    {
        return (rule == AS_TREE_GREEDY ? t.logits : t.p) + static_cast<int64_t>(t.p_row[at(node)]) * t.V;
    }
    __device__ const float *q(int32_t node) const { return t.q + static_cast<int64_t>(t.q_row[at(node)]) * t.V; }
    __device__ bool without(int32_t node) const { return t.without && t.without[at(node)] != 0; }
    __device__ double parameter(int32_t node, int32_t which) const
    {
        const bool one = rule == AS_TREE_TARGET || rule == AS_TREE_TYPICAL || rule == AS_TREE_LENIENT;
        return t.parameter ? t.parameter[2 * at(node) + which] : one ? 1.0 : rule == AS_TREE_CONSTANT ? 2.0 : 0.0;
    }
    /* LEN-01; 1 under other rules. */
    __device__ float lenience(int32_t node) const
    {
        return rule == AS_TREE_LENIENT ? static_cast<float>(parameter(node, 0)) : 1.0f;
    }
    __device__ u64 *scratch(int32_t which) const
    {
        return reinterpret_cast<u64 *>(t.work) + (2 * static_cast<int64_t>(i) + which) * t.V;
    }

    /* RNG-09: a word for the tokens below a node at this depth. */
    __device__ as_words random(int32_t depth, as_purpose purpose, int32_t index) const
    {
        return as_random(seed, position + static_cast<uint64_t>(depth), purpose, static_cast<uint32_t>(index));
    }
    /* Of the test of a node, the child number k. */
    __device__ double test(int32_t depth, int32_t node, int32_t k) const
    {
        return t.u ? t.u[at(node)] : as_unit29(random(depth, AS_ACCEPT, k));
    }
    /* The same as a word. */
    __device__ uint64_t word_of_test(int32_t depth, int32_t node, int32_t k) const
    {
        return t.u ? word_of_unit(t.u[at(node)]) : as_word64(random(depth, AS_ACCEPT, k));
    }
    /* Of the draw behind a node with n children: of the token that ends the step, but for MATCH. */
    __device__ uint64_t word_of_draw(int32_t depth, int32_t node, int32_t n) const
    {
        const bool drawn = n == 0 || rule == AS_TREE_MATCH;
        if (!t.u) return as_word64(random(depth, drawn ? AS_DRAW : AS_RESIDUAL, 0));
        if (rule == AS_TREE_MATCH) return word_of_unit(t.u[at(node)]);
        return t.last[2 * static_cast<int64_t>(i) + (n == 0)];
    }
};

/* ---- What a request may be. -------------------------------------------------------------- */

/* TRV-04. Parents in front of the first bad one are good; behind it, it does not matter. */
__device__ bool is_absent(const request &x, int32_t node)
{
    while (node > 0 && x.token_of(node) >= 0) {
        const int32_t parent = x.parent_of(node);
        if (parent >= node) return false;
        node = parent;
    }
    return node > 0;
}

__device__ bool in_unit(double v)
{
    return v > 0 && v <= 1;
}

/* Of a node with n children. */
__device__ bool is_parameter(const request &x, int32_t node, int32_t n)
{
    const double v = x.parameter(node, 0), rho = v / 65536;
    if (x.rule == AS_TREE_TARGET) return in_unit(v) && in_unit(x.parameter(node, 1));
    if (x.rule == AS_TREE_LENIENT) return in_unit(v);
    if (x.rule == AS_TREE_TYPICAL) return v >= 0;
    if (x.rule == AS_TREE_CONSTANT) return v > 0;
    if (x.rule == AS_TREE_KSEQ && n > 1 && v != 0)
        return rho >= 1 && rho <= n && v == static_cast<double>(static_cast<int64_t>(v));
    return true;
}

__device__ ag_tree_fault_kind fault_of_children(const request &x, int32_t node)
{
    int32_t n = 0, row = 0;
    bool several = false;
    for (int32_t k = node + 1; k < x.nodes; k++) {
        if (!x.is_child(k, node)) continue;
        if (x.uses_q() && n > 0) several |= x.t.q_row[x.at(k)] != row;
        if (x.uses_q()) row = x.t.q_row[x.at(k)];
        n++;
    }
    if (x.rule == AS_TREE_BLOCK && n > 1) return AG_TREE_CHILDREN;
    if (several && x.without(node)) return AG_TREE_ROWS;
    if (n > 0 && !is_parameter(x, node, n)) return AG_TREE_PARAMETER;
    const bool keeps = x.rule == AS_TREE_RECURSIVE || x.rule == AS_TREE_LENIENT;
    return keeps && n > 1 && !x.t.work ? AG_TREE_WORK : AG_TREE_GOOD;
}

/* TRV-07. */
__device__ bool is_heavy(const uint64_t *total, int32_t row)
{
    return total[row] >> 45 != 0;
}

__device__ ag_tree_fault_kind fault_of_rows(const request &x, int32_t node)
{
    const bool greedy = x.rule == AS_TREE_GREEDY, has_q = node > 0 && x.uses_q();
    const int32_t p = x.t.p_row[x.at(node)], q = has_q ? x.t.q_row[x.at(node)] : 0;
    if (p < 0) return AG_TREE_NO_P;
    if (q < 0) return AG_TREE_NO_Q;
    if (is_bad(greedy ? x.t.logit_state : x.t.p_state, p)) return AG_TREE_BAD_P;
    if (has_q && is_bad(x.t.q_state, q)) return AG_TREE_BAD_Q;
    if (!greedy && is_heavy(x.t.p_total, p)) return AG_TREE_HEAVY_P;
    return has_q && is_heavy(x.t.q_total, q) ? AG_TREE_HEAVY_Q : AG_TREE_GOOD;
}

/* Of a node, if those in front of it have none. */
__device__ ag_tree_fault_kind fault_of(const request &x, int32_t node)
{
    const int32_t parent = x.parent_of(node), token = x.token_of(node);
    const bool root = node == 0;
    if (root != (parent < 0) || parent >= node) return AG_TREE_PARENT;
    if (token < -1 || token >= x.t.V || (root && token != -1)) return AG_TREE_TOKEN;
    if (is_absent(x, node)) return AG_TREE_GOOD;
    const ag_tree_fault_kind fault = fault_of_rows(x, node);
    return fault == AG_TREE_GOOD ? fault_of_children(x, node) : fault;
}

__device__ ag_tree_fault block_check(room &r, const request &x)
{
    enum { KINDS = 256 };
    if (x.rule < 0 || x.rule >= AS_TREE_RULES) return {AG_TREE_RULE, 0};
    if (x.nodes < 1 || x.nodes > x.t.capacity) return {AG_TREE_NODES, 0};
    u64 first = 0; /* greater is earlier */
    UNROLL_BY(1)
    for (int32_t node = thread(); node < x.nodes && first == 0; node += threads()) {
        const ag_tree_fault_kind kind = fault_of(x, node);
        if (kind != AG_TREE_GOOD) first = static_cast<u64>(x.nodes - node) * KINDS + kind;
    }
    first = block_reduce(r, first, greater{});
    if (first == 0) return {AG_TREE_GOOD, 0};
    return {static_cast<int32_t>(first % KINDS), x.nodes - static_cast<int32_t>(first / KINDS)};
}

/* ---- The children of a node. ------------------------------------------------------------- */

/* Writes the numbers below n for which the predicate holds, in their order; returns how many. */
template <class P> __device__ int32_t block_keep(room &r, int32_t n, const P &holds, int32_t *to)
{
    if (warp() == 0) {
        int32_t kept = 0;
        for (int32_t first = 0; first < n; first += LANES) {
            const int32_t i = first + lane();
            const bool own = i < n && holds(i);
            const uint32_t all = __ballot_sync(FULL, own);
            if (own) to[kept + __popc(all & ((1u << lane()) - 1))] = i;
            kept += __popc(all);
        }
        if (lane() == 0) r.id = kept;
    }
    __syncthreads();
    const int32_t kept = r.id;
    __syncthreads();
    return kept;
}

/* A node whose children are to be tried. */
struct branch {
    int32_t at, depth, n;
};

/* TRV-01, TRV-04: how many there are; they are then in the lists. */
__device__ int32_t block_children(room &r, const request &x, int32_t at)
{
    const int32_t n = block_keep(r, x.nodes, [&](int32_t k) { return k > at && x.is_child(k, at); }, x.child);
    for (int32_t k = thread(); k < n; k += threads()) x.token[k] = x.token_of(x.child[k]);
    __syncthreads();
    return n;
}

/* The first of n children that has the token; n: there is none. */
__device__ int32_t block_with(room &r, const request &x, int32_t n, int32_t token)
{
    return block_first(r, n, [&](int32_t k) { return x.token[k] == token; });
}

/* How many distinct tokens there are; they are then in the lists, with their weights and words. */
__device__ int32_t block_options(room &r, const request &x, const branch &b, const float *p)
{
    const int32_t n = block_keep(
        r, b.n,
        [&](int32_t k) {
            int32_t first = 0;
            while (x.token[first] != x.token[k]) first++;
            return first == k;
        },
        x.option);
    for (int32_t k = thread(); k < n; k += threads()) {
        x.mass[k] = as_weight(p[x.token[x.option[k]]]);
        x.word[k] = x.word_of_test(b.depth, x.child[x.option[k]], k);
    }
    __syncthreads();
    return n;
}

/* ---- Exact comparisons and quotients. ---------------------------------------------------- */

/* u * b < a: a and b at most 2^98, u a multiple of 2^-29. */
__device__ bool passes(double u, as_u128 b, as_u128 a)
{
    return static_cast<uint64_t>(u * 0x1p29) * b < a << 29;
}

/* rn(Q * Z / W) for Q <= W and Z < 2^45. The quotient in binary64 is below 2^45 and less than 2^-6 off, so its
 * integer part is the wrong one only near an integer. What is left over, exact modulo 2^64, is then next to 0 or to
 * W, and rounds to that integer as well. */
__device__ u64 nearest_share(u64 Q, u64 Z, u64 W)
{
    const double quotient = static_cast<double>(Q) * static_cast<double>(Z) / static_cast<double>(W);
    const u64 whole = static_cast<u64>(quotient);
    const int64_t left = static_cast<int64_t>(Q * Z - whole * W), all = static_cast<int64_t>(W);
    return whole + (2 * left > all || (2 * left == all && (whole & 1)));
}

/* rn(a / (d * 2^s)) for d < 2^32, s < 64, a quotient below 2^64: by digits of 32 bits. */
__device__ u64 nearest_quotient(as_u128 a, u64 d, int s)
{
    u64 whole = 0, left = 0;
    UNROLL_BY(1)
    for (int digit = 3; digit >= 0; digit--) {
        const u64 next = left << 32 | static_cast<uint32_t>((a >> s) >> 32 * digit);
        whole = whole << 32 | next / d;
        left = next % d;
    }
    const as_u128 behind = a & ((static_cast<as_u128>(1) << s) - 1);
    const as_u128 twice = (static_cast<as_u128>(left) << s | behind) << 1, all = static_cast<as_u128>(d) << s;
    return whole + (twice > all || (twice == all && (whole & 1)));
}

/* ---- What is left to draw from. ---------------------------------------------------------- */

/* M of KSQ-03. */
struct in_both {
    const float *p, *q;
    u64 rho;
    __device__ u64 operator()(int32_t i) const
    {
        const as_u128 scaled = static_cast<as_u128>(rho) * as_weight(q[i]);
        const u64 most = as_weight(p[i]) << 16;
        return scaled < most ? static_cast<u64>(scaled) : most;
    }
};

/* BLK-03, BLK-04: what is left of c * p when q is taken out. */
struct block_residual {
    double c;
    const float *p, *q;
    __device__ u64 operator()(int32_t i) const
    {
        const u64 P = static_cast<u64>(rint(c * static_cast<double>(as_weight(p[i])))), Q = as_weight(q[i]);
        return P > Q ? P - Q : 0;
    }
};

enum law_kind {
    LAW_ROW,     /* p */
    LAW_WITHOUT, /* p without the tokens of the node's children */
    LAW_LEFT,    /* RES-01 */
    LAW_KEPT,    /* a residual in scratch, before the last multiplication of SIB-02: no draw depends on it */
    LAW_KSEQ,    /* R of KSQ-03 */
    LAW_BLOCK    /* BLK-04 */
};

struct law {
    law_kind kind;
    const float *p, *q;
    const u64 *kept;
    float lenience;       /* LEFT */
    u64 rho, G;           /* KSEQ */
    double c;             /* BLOCK */
    const int32_t *token; /* [n] WITHOUT */
    int32_t n, options;   /* of them, and of the distinct ones */

    __device__ u64 operator()(int32_t i) const
    {
        switch (kind) {
        case LAW_ROW:
            return as_weight(p[i]);
        case LAW_WITHOUT:
            return law_without{p, token, n}(i);
        case LAW_LEFT:
            return as_weight(excess(p[i], __fmul_rn(lenience, q[i])));
        case LAW_KEPT:
            return kept[i];
        case LAW_KSEQ: {
            const u64 P = as_weight(p[i]), M = in_both{p, q, rho}(i);
            const u64 out = nearest_quotient(static_cast<as_u128>(M) * G, rho, 40);
            return P > out ? P - out : 0;
        }
        default:
            return block_residual{c, p, q}(i);
        }
    }
};

__device__ law row_law(const float *p)
{
    law w = {};
    w.kind = LAW_ROW, w.p = p;
    return w;
}

__device__ law law_left(law_kind kind, const float *p, const float *q)
{
    law w = row_law(p);
    w.kind = kind, w.q = q;
    return w;
}

/* What a rule says at a node: the place of the child that the step goes to; or -1, and what is left to draw from. */
struct choice {
    int32_t next;
    law left;
};

__device__ choice go_to(int32_t next)
{
    return {next, {}};
}

/* ---- RECURSIVE: SIB-01 to SIB-06; LENIENT. ------------------------------------------------ */

/* RES-01, kept. */
struct first_residual {
    law left;
    u64 *to;
    __device__ u64 operator()(int32_t i) const
    {
        return to[i] = as_weight(excess(left.p[i], __fmul_rn(left.lenience, left.q[i])));
    }
};

/* SIB-03, LEN-01: the residual when a child with Q = weight(lenience * q) was refused. */
struct next_residual {
    const u64 *from;
    int32_t shift;
    u64 Z, W;
    float lenience;
    const float *q;
    u64 *to;
    __device__ u64 operator()(int32_t i) const
    {
        const u64 R = from[i] << shift, Q = as_weight(__fmul_rn(lenience, q[i]));
        const u64 out = R > 0 && W > 0 ? nearest_share(Q, Z, W) : 0;
        return to[i] = R > out ? R - out : 0;
    }
};

/* SIB-02. */
__device__ int32_t shift_of(u64 total)
{
    int32_t s = 0;
    UNROLL_BY(1)
    while (total << (s + 1) < u64{1} << 45) s++;
    return s;
}

/* The children behind the first, whose refusal left what is in scratch 0, with this total. Where a token was refused
 * R is 0 from then on, so SIB-04 need not take its Q, but its part of W. */
__device__ choice team_siblings(team &t, const request &x, const branch &b, u64 total)
{
    const bool without = x.without(b.at);
    const float lenience = x.lenience(b.at);
    u64 W = 0, *from = x.scratch(0), *to = x.scratch(1);
    UNROLL_BY(1)
    for (int32_t k = 1; k < b.n; k++) {
        const int32_t token = x.token[k], node = x.child[k], gone = x.token[k - 1], shift = shift_of(total);
        const float *q = x.q(node);
        if (!without || k == 1) W = x.t.q_total[x.t.q_row[x.at(node)]];
        if (without && block_with(t.r, x, b.n, gone) == k - 1 && as_weight(__fmul_rn(lenience, q[gone])) > 0)
            W -= as_weight(q[gone]); /* SIB-04 */
        const u64 R = __ldcg(from + token) << shift, Z = total << shift, Q = as_weight(__fmul_rn(lenience, q[token]));
        const double u = x.test(b.depth, node, k);
        if (Q == 0 ? R > 0 : passes(u, static_cast<as_u128>(Q) * Z, static_cast<as_u128>(R) * W)) return go_to(k);
        const u64 after = team_sum(t, next_residual{from, shift, Z, W, lenience, q, to}).all;
        if (after == 0) break; /* SIB-05 */
        total = after;
        u64 *const above = from;
        from = to;
        to = above;
    }
    choice c = {-1, row_law(nullptr)};
    c.left.kind = LAW_KEPT, c.left.kept = from;
    return c;
}

/* REC-01, REC-02. */
__device__ choice team_recursive(team &t, const request &x, const branch &b)
{
    const int32_t token = x.token[0], node = x.child[0];
    const float *p = x.p(b.at), *q = x.q(node);
    choice c = {-1, law_left(LAW_LEFT, p, q)};
    c.left.lenience = x.lenience(b.at);
    if (accepts(p[token], __fmul_rn(c.left.lenience, q[token]), x.test(b.depth, node, 0))) return go_to(0);
    if (b.n == 1) return c;
    const u64 total = team_sum(t, first_residual{c.left, x.scratch(0)}).all;
    return total > 0 ? team_siblings(t, x, b, total) : choice{-1, row_law(p)}; /* SIB-05 */
}

/* ---- TARGET and ONEHOT. ------------------------------------------------------------------ */

/* TGT-03: coin * alpha < S. */
__device__ bool is_within(u64 coin, float alpha, u64 S)
{
    int exponent;
    const u64 digits = static_cast<u64>(frexpf(alpha, &exponent) * 0x1p24f);
    const int shift = 24 - exponent;
    return shift >= 80 ? S > 0 : static_cast<as_u128>(coin) * digits < static_cast<as_u128>(S) << shift;
}

/* Tries the distinct tokens of the children: by one coin (TGT-01), or each by its own (ONEH-07). */
__device__ choice block_among(room &r, const request &x, const branch &b)
{
    const bool one = x.rule == AS_TREE_TARGET;
    const float *p = x.p(b.at);
    const float alpha = static_cast<float>(x.parameter(b.at, 0)), sigma = static_cast<float>(x.parameter(b.at, 1));
    const int32_t n = block_options(r, x, b, p);
    u64 W = x.t.p_total[x.t.p_row[x.at(b.at)]], S = 0;
    const u64 coin = as_target(x.word_of_test(b.depth, b.at, 0), W);
    UNROLL_BY(1)
    for (int32_t k = 0; k < n; k++) {
        const u64 w = x.mass[k];
        S += w;
        if (one ? is_within(coin, alpha, S) || (sigma < 1 && p[x.token[x.option[k]]] >= sigma)
                : as_target(x.word[k], W) < w)
            return go_to(x.option[k]);
        W -= w; /* ONEH-02 */
    }
    choice c = {-1, row_law(p)};
    c.left.kind = LAW_WITHOUT, c.left.token = x.token, c.left.n = b.n, c.left.options = n;
    return c;
}

/* ---- SINGLE. ----------------------------------------------------------------------------- */

/* NIR-01: the id of larger P/Q, P > 0; of equals the lower. A P of 0 is below all. */
__device__ told steeper(const told &x, const told &y)
{
    const as_u128 left = static_cast<as_u128>(x.a) * y.b, right = static_cast<as_u128>(y.a) * x.b;
    return left > right || (left == right && x.id < y.id) ? x : y;
}

__device__ told warp_steepest(told v)
{
    UNROLL_BY(1)
    for (int d = LANES / 2; d > 0; d /= 2)
        v = steeper(v, told{__shfl_xor_sync(FULL, v.a, d), __shfl_xor_sync(FULL, v.b, d),
                            __shfl_xor_sync(FULL, v.id, d)});
    return v;
}

__device__ told team_steepest(team &t, const float *p, const float *q)
{
    const told none = {0, 1, 0};
    told v = none;
    each_pair(p, q, t.own.first * t.l.length, least(t.own.end * t.l.length, t.l.V), [&](int32_t i, float a, float b) {
        if (as_weight(a) > 0) v = steeper(v, told{as_weight(a), as_weight(b), i});
    });
    v = warp_steepest(v);
    if (lane() == 0) t.best[warp()] = v;
    __syncthreads();
    t.tell(warp_steepest(lane() < warps() ? t.best[lane()] : none));
    v = none;
    UNROLL_BY(1)
    for (int32_t who = 0; who < t.size; who++) v = steeper(v, t.of(who));
    return v;
}

__device__ choice team_single(team &t, const request &x, const branch &b)
{
    const float *p = x.p(b.at), *seen = nullptr;
    told most = {};
    UNROLL_BY(1)
    for (int32_t k = 0; k < b.n; k++) {
        const int32_t token = x.token[k], node = x.child[k];
        const float *q = x.q(node);
        if (q != seen) most = team_steepest(t, p, q);
        seen = q;
        if (passes(x.test(b.depth, node, k), static_cast<as_u128>(as_weight(q[token])) * most.a,
                   static_cast<as_u128>(as_weight(p[token])) * most.b))
            return go_to(k);
    }
    return {-1, row_law(p)};
}

/* ---- KSEQ. ------------------------------------------------------------------------------- */

/* KSQ-03: G after K children. */
__device__ u64 growth(u64 rho, u64 B, int32_t K)
{
    const as_u128 D = static_cast<as_u128>(rho) << 44, rest = D > B ? D - B : 0;
    const u64 one = u64{1} << 40;
    u64 G = one;
    UNROLL_BY(1)
    for (int32_t k = 1; k < K; k++) G = one + nearest_quotient(rest * G, rho, 44);
    return G;
}

/* From two children on. */
__device__ choice team_kseq(team &t, const request &x, const branch &b)
{
    const float *p = x.p(b.at);
    const u64 given = static_cast<u64>(x.parameter(b.at, 0)), rho = given ? given : static_cast<u64>(b.n) << 16;
    const int32_t next = block_first(t.r, b.n, [&](int32_t k) { /* KSQ-02 */
        const int32_t token = x.token[k], node = x.child[k];
        return passes(x.test(b.depth, node, k), static_cast<as_u128>(rho) * as_weight(x.q(node)[token]),
                      static_cast<as_u128>(as_weight(p[token])) << 16);
    });
    if (next < b.n) return go_to(next);
    choice c = {-1, law_left(LAW_KSEQ, p, x.q(x.child[0]))};
    c.left.rho = rho, c.left.G = growth(rho, team_sum(t, in_both{p, c.left.q, rho}).all, b.n);
    return c;
}

/* ---- BLOCK. ------------------------------------------------------------------------------ */

/* BLK-02: c of a draft from c of the one before. */
__device__ double carry(double c, float p, float q)
{
    const double P = static_cast<double>(as_weight(p)), Q = static_cast<double>(as_weight(q));
    if (P == 0 || c == 0) return 0;
    return Q == 0 ? 1 : fmin(1.0, c * P / Q);
}

/* The next node of the chain; 0 behind its end. */
__device__ int32_t block_below(room &r, const request &x, int32_t at)
{
    const int32_t n = x.nodes - at - 1, k = block_first(r, n, [&](int32_t i) { return x.is_child(at + 1 + i, at); });
    return k < n ? at + 1 + k : 0;
}

/* BLK-02 to BLK-04: sets the node behind the drafts that are kept, whose children are the next draft or none. */
__device__ choice team_block(team &t, const request &x, branch *b)
{
    double c = 1, carried = 1; /* carried: c of the last draft that stands */
    int32_t at = 0, next = block_below(t.r, x, 0), then = next;
    UNROLL_BY(1)
    for (int32_t i = 0; next; i++) {
        const int32_t token = x.token_of(next);
        c = carry(c, x.p(at)[token], x.q(next)[token]);
        at = next;
        next = block_below(t.r, x, at);
        const double u = x.test(0, at, i); /* BLK-05 */
        bool stands = u < c;
        if (next) { /* BLK-03 */
            const u64 S = team_sum(t, block_residual{c, x.p(at), x.q(next)}).all;
            stands = passes(u, S + static_cast<u64>(rint((1 - c) * 0x1p44)), S);
        }
        if (stands) *b = {at, i + 1, 0}, carried = c, then = next;
    }
    b->n = then != 0;
    if (!then) return {-1, row_law(x.p(b->at))};
    choice chosen = {-1, law_left(LAW_BLOCK, x.p(b->at), x.q(then))};
    chosen.left.c = carried;
    return chosen;
}

/* ---- TYPICAL and CONSTANT. --------------------------------------------------------------- */

/* CST-01. */
__device__ choice block_likely(room &r, const request &x, const branch &b)
{
    const float *p = x.p(b.at), least = static_cast<float>(x.parameter(b.at, 0));
    const int32_t next = block_first(r, b.n, [&](int32_t k) { return p[x.token[k]] >= least; });
    return next < b.n ? go_to(next) : choice{-1, row_law(p)};
}

/* TYP-01: the depth of a node that is accepted with all above it; 0 of others. */
__device__ int32_t accepted_depth(const request &x, int32_t node)
{
    int32_t depth = 0;
    if (is_absent(x, node)) return 0;
    for (int32_t above; node > 0; node = above, depth++) {
        above = x.parent_of(node);
        if (!(x.p(above)[x.token_of(node)] > static_cast<float>(x.parameter(above, 0)))) return 0;
    }
    return depth;
}

/* TYP-01: sets the node that is accepted deepest, of several the first. */
__device__ choice block_deepest(room &r, const request &x, branch *b)
{
    u64 best = 0; /* greater is deeper, then earlier */
    UNROLL_BY(1)
    for (int32_t node = 1 + thread(); node < x.nodes; node += threads()) {
        const int32_t depth = accepted_depth(x, node);
        if (depth > 0) best = greater{}(best, static_cast<u64>(depth) << 32 | static_cast<u64>(x.nodes - node));
    }
    best = block_reduce(r, best, greater{});
    if (best > 0) b->at = x.nodes - static_cast<int32_t>(best), b->depth = static_cast<int32_t>(best >> 32);
    b->n = block_children(r, x, b->at);
    return {-1, row_law(x.p(b->at))};
}

/* ---- The walk. --------------------------------------------------------------------------- */

__device__ choice team_choose(team &t, const request &x, branch *at)
{
    if (x.rule == AS_TREE_BLOCK) return team_block(t, x, at);
    if (x.rule == AS_TREE_TYPICAL) return block_deepest(t.r, x, at);
    at->n = block_children(t.r, x, at->at);
    const branch &b = *at;
    if (b.n > 0) switch (x.rule) {
        case AS_TREE_TARGET:
        case AS_TREE_ONEHOT:
            return block_among(t.r, x, b);
        case AS_TREE_SINGLE:
            return team_single(t, x, b);
        case AS_TREE_KSEQ:
            if (b.n > 1) return team_kseq(t, x, b);
            return team_recursive(t, x, b); /* KSQ-01 */
        case AS_TREE_RECURSIVE:
        case AS_TREE_LENIENT:
            return team_recursive(t, x, b);
        case AS_TREE_CONSTANT:
            return block_likely(t.r, x, b);
        }
    return {-1, row_law(x.p(b.at))}; /* TRV-05, MAT-03, GRD-04 */
}

/* Fills the room with the sums of what is left. Tokens that are left out are taken out of the sums of p: few have
 * them. */
__device__ sums team_sum_left(team &t, const request &x, const law &left)
{
    law w = left;
    if (w.kind == LAW_WITHOUT) w.kind = LAW_ROW;
    sum_stretches(t.l, t.own, w, t.r.part());
    __syncthreads();
    if (left.kind == LAW_WITHOUT && thread() == 0)
        UNROLL_BY(1)
        for (int32_t k = 0; k < left.options; k++) {
            const int32_t stretch = x.token[x.option[k]] / t.l.length;
            if (stretch >= t.own.first && stretch < t.own.end) t.r.part()[stretch] -= x.mass[k];
        }
    __syncthreads();
    return team_total(t);
}

/* The token drawn from what is left or, if that has no mass, from p. */
__device__ int32_t team_last(team &t, const request &x, const branch &b, law left)
{
    sums s;
    UNROLL_BY(1)
    for (;; left = row_law(x.p(b.at))) {
        s = team_sum_left(t, x, left);
        if (s.all > 0 || left.kind == LAW_ROW) break;
    }
    return team_draw(t, s, left, x.word_of_draw(b.depth, b.at, b.n));
}

/* How a step ends: at which node, how deep it is, and with which token. */
struct ending {
    int32_t at, depth, last;
};

/* TRV-02. BLOCK and TYPICAL are at the end of their path at once. */
__device__ ending team_walk(team &t, const request &x)
{
    UNROLL_BY(1)
    for (branch b = {0, 0, 0};; b.depth++) {
        choice c = team_choose(t, x, &b);
        if (c.next < 0) {
            const bool greedy = x.rule == AS_TREE_GREEDY;
            const int32_t last = greedy ? team_argmax(t, x.p(b.at)) : team_last(t, x, b, c.left);
            c.next = greedy || x.rule == AS_TREE_MATCH ? block_with(t.r, x, b.n, last) : b.n;
            if (c.next == b.n) return {b.at, b.depth, last};
        }
        b.at = x.child[c.next];
        __syncthreads(); /* the lists may be written again */
    }
}

/* ---- A request. -------------------------------------------------------------------------- */

/* TRV-02, TRV-03. */
__device__ void finish(const request &x, ag_tree_fault fault, const ending &end)
{
    const bool good = fault.kind == AG_TREE_GOOD;
    x.t.fault[x.i] = fault;
    x.t.length[x.i] = good ? end.depth + 1 : 0;
    if (good) x.t.out[x.at(end.depth)] = end.last;
    for (int32_t k = end.depth - 1, node = end.at; good && k >= 0; k--, node = x.parent_of(node)) {
        x.t.path[x.at(k)] = node;
        x.t.out[x.at(k)] = x.token_of(node);
    }
}

__global__ void __launch_bounds__(MOST_THREADS, 1) verify_trees(tree_job j)
{
    take_turn();
    SHARED(room, r);
    told *const said = reinterpret_cast<told *>(r->part() + j.l.stretches), *const best = said + 2;
    u64 *const mass = reinterpret_cast<u64 *>(best + LANES), *const word = mass + j.t.capacity;
    int32_t *const list = reinterpret_cast<int32_t *>(word + j.t.capacity);
    const int32_t i = static_cast<int32_t>(blockIdx.x), rank = static_cast<int32_t>(blockIdx.z);
    const int32_t size = static_cast<int32_t>(gridDim.z);
    const request x = {j.t,
                       i,
                       j.t.rule[i],
                       j.t.nodes[i],
                       seed_of(j.t.seeds, i),
                       position_of(j.t.seeds, i),
                       mass,
                       word,
                       list,
                       list + j.t.capacity,
                       list + 2 * j.t.capacity};
    team t = {*r, j.l, said, best, rank, size, share_of(j.l, rank, size), 0};
    const ag_tree_fault fault = block_check(*r, x);
    ending end = {};
    if (fault.kind == AG_TREE_GOOD) end = team_walk(t, x);
    if (thread() == 0 && rank == 0) finish(x, fault, end);
    if (size > 1) cluster_end();
}

/* As many blocks a request as the device has clusters and processors for, each with stretches enough. */
unsigned blocks_of_team(const ag_device *d, const ag_trees *t, const layout &l)
{
    enum { ENOUGH = 8 };
    int32_t size = 1;
    while (2 * size <= d->cluster && static_cast<int64_t>(2 * size) * t->n <= d->processors &&
           2 * size * ENOUGH <= l.stretches)
        size *= 2;
    return static_cast<unsigned>(size);
}

} // namespace

/* ---- What verify_tree.h promises. -------------------------------------------------------- */

extern "C" as_status ag_verify_trees(const ag_device *d, const ag_trees *t, as_error *e)
{
    launch to;
    if (t->capacity < 1) return as_fail(e, AS_BAD_INPUT, "GPU: trees of %d nodes", t->capacity);
    if (t->capacity > AG_TREE_CAPACITY)
        return as_fail(e, AS_LIMIT, "GPU: trees of %d nodes; at most %d", t->capacity,
                       static_cast<int>(AG_TREE_CAPACITY));
    const as_status status = plan_launch(d, t->n, 1, t->V, nullptr, &to, e);
    if (status != AS_OK) return status;
    const size_t lists = static_cast<size_t>(t->capacity) * (2 * sizeof(u64) + 3 * sizeof(int32_t));
    const size_t shared = to.shared + (2 + LANES) * sizeof(told) + lists;
    const tree_job j = {*t, to.l};
    const unsigned size = blocks_of_team(d, t, to.l);
    const dim3 grid(to.blocks, 1, size);
    if (size > 1)
        LAUNCH_CLUSTERS(size, verify_trees, grid, to.threads, shared, d, j);
    else
        LAUNCH(verify_trees, grid, to.threads, shared, d, j);
    return ag_launched("verify_trees", e);
}
