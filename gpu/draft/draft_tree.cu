/* draft_tree.cu - trees of a given shape, of a draft model (draft.h). The twin of the shapes of
 * ref/draft/draft_tree.c. Clauses TDR-01 to TDR-03, TDR-06.
 *
 * A tree grows level by level. What decides where a child stands is how many children the nodes
 * before its parent have, and that is known before any is drawn: as many as the shape gives
 * them, and no more than q has tokens. So all nodes of a level draw their first child at once,
 * then their second, and each has the row and the uniform that the reference gives it.
 *
 * The draft model's cache holds the history; a forward begins behind it, and so has all levels
 * above. What the rule accepts of the last one is committed. */
#include "gpu/draft/draft_step.h"

namespace
{

enum { THREADS = 128, WIDE_THREADS = 256 };

/* TDR-03, STOP-03: whether the tree of a sequence may have this level. One that is over has no
 * tree. */
__device__ __forceinline__ bool allows(const ag_batch &b, int32_t q, int32_t level)
{
    return alive(b.sequence[q]) && level < b.sequence[q].left;
}

__device__ __forceinline__ int32_t *rows_of(const ag_growth &g, int32_t q)
{
    return piece(g.rows, q, g.levels + 1);
}

/* Rows of the tree below the root that are evaluated before this level is drafted, each being a
 * parent that the budget allows. */
__device__ __forceinline__ int32_t evaluated(const ag_drafter &d, int32_t q, int32_t level)
{
    const int32_t above = least(level, d.batch.sequence[q].left - 1) - 1;
    return alive(d.batch.sequence[q]) && above > 0 ? rows_of(d.growth, q)[above] - 1 : 0;
}

/* The row of the tree that a slot stands for; -1: none. */
__device__ __forceinline__ int32_t row_of_slot(const ag_drafter &d, const ag_level &l,
                                               int32_t q, int32_t j)
{
    const int32_t *rows = rows_of(d.growth, q);
    const int32_t row = j + (l.level > 1 ? rows[l.level - 2] : 0);
    return allows(d.batch, q, l.level) && row < rows[l.level - 1] ? row : -1;
}

__device__ __forceinline__ int32_t index()
{
    return static_cast<int32_t>(blockIdx.x) * THREADS + thread();
}

__global__ void tree_propose(const ag_drafter d)
{
    take_turn();
    const int32_t q = static_cast<int32_t>(blockIdx.x);
    const ag_sequence &s = d.batch.sequence[q];
    if (!alive(s)) return lay_nothing(d.batch, q);
    lay_chain(d.batch, q, s, 0, 0, [](int32_t) { return 0; });
    if (thread() > 0) return;
    rows_of(d.growth, q)[0] = 1;
    piece(d.growth.node, q, d.batch.R)[0] = 0;
    piece(d.growth.law, q, d.batch.R)[0] = -1;
}

/* What the draft model's cache lacks of the history. A thread a sequence. */
__global__ void tree_root(const ag_drafter d, const ag_level l)
{
    take_turn();
    const ag_batch &b = d.batch;
    const int32_t q = index();
    if (q >= b.B) return;
    const ag_sequence &s = b.sequence[q];
    const bool fed = allows(b, q, 1);
    const int32_t rows = fed ? s.n - s.held : 0;
    for (int32_t r = 0; r < 2; r++) {
        const int32_t at = 2 * q + r;
        const bool there = r < rows;
        l.row_of[at] = there ? l.number[q] : -1;
        l.row_parent[at] = there && r > 0 ? at - 1 : -1;
        l.row_token[at] = there ? piece(b.history, q, b.H)[s.held + r] : 0;
        d.growth.path[at] = at;
    }
    l.want[q] = 2 * q + (rows > 1);
    l.serve[q] = fed ? q : -1;
    l.broken[q] = 0;
    d.growth.kept[q] = rows;
}

/* The tree so far. A thread a row and, there being no more of them, a slot. */
__global__ void tree_rows(const ag_drafter d, const ag_level l)
{
    take_turn();
    const ag_batch &b = d.batch;
    const int32_t i = index();
    if (i >= b.B * l.share) return;
    const int32_t q = i / l.share, r = i % l.share + 1, parent = piece(b.parent, q, b.R)[r];
    const bool there = r <= evaluated(d, q, l.level);
    l.row_of[i] = there ? l.number[q] : -1;
    l.row_parent[i] = there && parent > 0 ? q * l.share + parent - 1 : -1;
    l.row_token[i] = there ? piece(b.token, q, b.R)[r] : 0;
    if (i >= b.B * l.wide) return;
    const int32_t of = i / l.wide, row = row_of_slot(d, l, of, i % l.wide);
    const bool parents = row > 0 && d.growth.children[piece(d.growth.node, of, b.R)[row]] > 0;
    l.want[i] = of * l.share + (row > 0 ? row - 1 : 0);
    l.serve[i] = parents ? i : -1;
}

/* TDR-02: a node has no more children than q has tokens. A block a slot. */
__global__ void __launch_bounds__(WIDE_THREADS) tree_open(const ag_drafter d, const ag_level l)
{
    take_turn();
    SHARED(u64, shared); /* [LANES] */
    const int32_t i = static_cast<int32_t>(blockIdx.x), q = i / l.wide, V = d.batch.V;
    const int32_t row = row_of_slot(d, l, q, i % l.wide);
    const bool good = l.serve[i] >= 0 && l.state[i] == 0;
    int32_t children = good ? d.growth.children[piece(d.growth.node, q, d.batch.R)[row]] : 0;
    if (good && d.growth.siblings != AS_SIBLINGS_IID) {
        const float *law = piece(l.q, i, V);
        float *left = piece(l.left, i, V);
        u64 tokens = 0;
        for (int32_t x = thread(); x < V; x += threads()) {
            left[x] = law[x];
            tokens += law[x] > 0;
        }
        tokens = block_reduce(shared, tokens, add{});
        if (tokens < static_cast<u64>(children)) children = static_cast<int32_t>(tokens);
    }
    if (thread() == 0) l.count[i] = children;
}

/* A child that was drawn, which is the next of this slot. */
__device__ void add_child(const ag_drafter &d, const ag_level &l, int32_t i, int32_t k,
                          int32_t row)
{
    const ag_batch &b = d.batch;
    const int32_t q = i / l.wide, parent = row_of_slot(d, l, q, i % l.wide), token = l.drawn[i];
    int32_t *node = piece(d.growth.node, q, b.R);
    piece(b.token, q, b.R)[row] = token;
    piece(b.parent, q, b.R)[row] = parent;
    piece(d.growth.law, q, b.R)[row] = l.laws + i;
    node[row] = d.growth.child[node[parent]] + k;
    if (d.growth.siblings != AS_SIBLINGS_IID) piece(l.left, i, b.V)[token] = 0;
}

/* A thread a slot. Its children stand behind those of the slots before it, as far as there are
 * rows (TDR-03). */
__global__ void tree_child(const ag_drafter d, const ag_level l, int32_t k, int32_t last)
{
    take_turn();
    const ag_batch &b = d.batch;
    const int32_t i = index();
    if (i >= b.B * l.wide) return;
    const int32_t q = i / l.wide, first = i - i % l.wide;
    int32_t *rows = rows_of(d.growth, q), row = rows[l.level - 1], all = row;
    for (int32_t j = first; j < first + l.wide; j++) {
        if (j < i) row += l.count[j];
        all += l.count[j];
    }
    const int32_t count = least(l.count[i], b.R - row), above = rows[l.level - 1];
    if (k == 0 && l.serve[i] >= 0 && row < b.R && l.state[i] != 0) l.broken[q] = 1;
    if (k > 0 && k <= count) add_child(d, l, i, k - 1, row + k - 1);
    l.pick[i] = k < count ? i : -1;
    if (k < count)
        l.uniform[i] =
            as_word64(as_random(b.seed[q], b.position[q] + static_cast<uint32_t>(l.level - 1),
                                AS_DRAFT, static_cast<uint32_t>(row + k - above)));
    if (k < last || i > first || !alive(b.sequence[q])) return;
    b.tree[q].rows = rows[l.level] = least(all, b.R);
}

/* TDR-06: the accepted rows that the draft model has evaluated, and whose tokens are out, but
 * for the last of these, the next root. */
__global__ void tree_observe(const ag_drafter d, const ag_answers w, int32_t share)
{
    take_turn();
    const int32_t q = static_cast<int32_t>(blockIdx.x);
    const ag_sequence s = d.batch.sequence[q];
    const bool over = !alive(s);
    if (over && thread() == 0) d.growth.kept[q] = 0;
    if (over) return rest(d.batch, q);
    const ag_tree tree = d.batch.tree[q];
    const outcome k = cut(d.batch, w, q, s);
    emit(d.batch, w, q, s, k);
    __syncthreads();
    if (thread() > 0) return;
    const int32_t *rows = piece(w.path, q, d.batch.R), most = least(k.accepted, k.emitted - 1);
    const int32_t known = evaluated(d, q, d.growth.levels);
    int32_t *path = piece(d.growth.path, q, d.growth.levels + 1), n = 0;
    for (; n < most && rows[n + 1] <= known; n++) path[n] = q * share + rows[n + 1] - 1;
    ag_sequence next = after(s, tree, k);
    next.held = n + (allows(d.batch, q, 1) ? s.n : s.held);
    d.growth.kept[q] = n;
    d.batch.sequence[q] = next;
}

} // namespace

extern "C" void ag_tree_propose(const ag_drafter *d)
{
    LAUNCH(tree_propose, blocks_of(d), 32, 0, d->device, *d);
}

extern "C" as_status ag_tree_rows(const ag_drafter *d, const ag_level *l, as_error *e)
{
    if (l->level == 1)
        LAUNCH(tree_root, ag::blocks_for(d->batch.B, THREADS), THREADS, 0, d->device, *d, *l);
    else
        LAUNCH(tree_rows, ag::blocks_for(d->batch.B * l->share, THREADS), THREADS, 0, d->device,
               *d, *l);
    return ag_launched("tree_rows", e);
}

extern "C" as_status ag_tree_open(const ag_drafter *d, const ag_level *l, as_error *e)
{
    LAUNCH(tree_open, static_cast<unsigned>(d->batch.B * l->wide), WIDE_THREADS,
           LANES * sizeof(u64), d->device, *d, *l);
    return ag_launched("tree_open", e);
}

extern "C" as_status ag_tree_child(const ag_drafter *d, const ag_level *l, int32_t k,
                                   as_error *e)
{
    LAUNCH(tree_child, ag::blocks_for(d->batch.B * l->wide, THREADS), THREADS, 0, d->device, *d,
           *l, k, d->growth.most[l->level]);
    return ag_launched("tree_child", e);
}

extern "C" void ag_tree_observe(const ag_drafter *d, const ag_answers *w)
{
    ag_level l;
    ag_tree_size(d, d->growth.levels, &l);
    LAUNCH(tree_observe, blocks_of(d), 64, 0, d->device, *d, *w, l.share);
}
