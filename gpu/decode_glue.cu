/* decode_glue.cu - what a step needs between the launches of drafter, model and rule
 * (decode.h): lists of rows, and a verdict that also knows of the draft model's faults. A
 * thread an entry, a few loads and stores each: their time is that of a launch. */
#include "gpu/decode.h"
#include "gpu/draft/draft_step.h"

namespace
{

enum { THREADS = 128 };

__device__ __forceinline__ int32_t index()
{
    return static_cast<int32_t>(blockIdx.x) * THREADS + thread();
}

__global__ void glue_prompt(const ag_glue g, int32_t b, int32_t number, int32_t at, int32_t n)
{
    take_turn();
    const int32_t i = thread();
    if (i == 0) g.piece[4 * AG_PIECE] = n;
    if (i >= n) return;
    g.piece[i] = piece(g.batch.history, b, g.batch.H)[at + i];
    g.piece[AG_PIECE + i] = i - 1;
    g.piece[2 * AG_PIECE + i] = number;
    g.piece[3 * AG_PIECE + i] = i;
}

__device__ __forceinline__ int32_t slots_of(const ag_tree &t)
{
    return t.rows > 0 ? 1 + t.rows - t.wanted : 0;
}

__global__ void glue_slots(const ag_glue g)
{
    take_turn();
    const ag_batch &b = g.batch;
    const int32_t i = index(), q = i / b.wants, k = i % b.wants;
    if (q >= b.B) return;
    const ag_tree &t = b.tree[q];
    const int32_t place = g.chain ? k * b.B + q : i;
    g.want[place] = b.want[i];
    g.serve[place] = k < slots_of(t) ? place : -1;
    if (!g.chain) return;
    if (k == 0)
        g.drafts[q] = t.rows > 0 ? t.rows - 1 : 0;
    else
        piece(g.draft, q, b.R - 1)[k - 1] = k < t.rows ? piece(b.token, q, b.R)[k] : -1;
}

/* A row that is not good has given no token; 0 is one that a forward can take. */
__global__ void glue_drawn(const ag_glue g, const ag_feed f, const int32_t *state,
                           int32_t *drawn, int32_t i)
{
    take_turn();
    const int32_t q = index();
    if (q >= g.batch.B || g.batch.tree[q].rows == 0) return;
    const bool bad = f.kept[q] > 0 && state[q] != AG_ROW_GOOD;
    if (bad) drawn[q] = 0;
    g.broken[q] = bad || (i > 0 && g.broken[q]);
}

__global__ void glue_asks(const ag_glue g)
{
    take_turn();
    const ag_batch &b = g.batch;
    const int32_t i = index(), q = i / b.wants, k = i % b.wants;
    if (q >= b.B) return;
    const ag_tree &t = b.tree[q];
    const ag_asked &a = b.asked[q];
    const int32_t row = k > 0 ? t.wanted + k - 1 : 0;
    const bool asked = k < slots_of(t) && row >= a.first && row < a.first + a.rows;
    g.ask[i] = asked && (!a.drawn || g.state[i] == AG_ROW_GOOD) ? i : -1;
    g.answer[i] = -1;
}

/* The root of a tree has no token there. */
__global__ void glue_nodes(const ag_glue g)
{
    take_turn();
    const ag_batch &b = g.batch;
    const int32_t i = index(), q = i / b.R, r = i % b.R;
    if (q >= b.B) return;
    if (r == 0) g.nodes[q] = b.tree[q].rows;
    g.node[i] = r > 0 && r < b.tree[q].rows ? b.token[i] : -1;
}

__global__ void glue_verdict(const ag_glue g)
{
    take_turn();
    const ag_batch &b = g.batch;
    const int32_t q = index();
    if (q >= b.B || b.tree[q].rows == 0) return;
    if (g.broken[q]) g.length[q] = 0;
    const int32_t step = b.sequence[q].steps;
    if (g.chain || g.nodes) g.accepted[q] = g.length[q] - 1;
    if (g.chain)
        for (int32_t r = 0; r < b.tree[q].rows; r++) piece(g.path, q, b.R)[r] = r;
    piece(g.lengths, q, b.H)[step] = g.length[q];
    piece(g.accepts, q, b.H)[step] = g.accepted[q];
}

} // namespace

static_assert(static_cast<int>(AG_PIECE) <= static_cast<int>(THREADS), "a thread a row");

extern "C" void ag_glue_prompt(const ag_glue *g, int32_t b, int32_t number, int32_t at,
                               int32_t n)
{
    LAUNCH(glue_prompt, 1, THREADS, 0, g->device, *g, b, number, at, n);
}

extern "C" void ag_glue_slots(const ag_glue *g)
{
    LAUNCH(glue_slots, ag::blocks_for(g->batch.B * g->batch.wants, THREADS), THREADS, 0,
           g->device, *g);
}

extern "C" void ag_glue_drawn(const ag_glue *g, const ag_feed *f, const int32_t *state,
                              int32_t *drawn, int32_t i)
{
    LAUNCH(glue_drawn, ag::blocks_for(g->batch.B, THREADS), THREADS, 0, g->device, *g, *f,
           state, drawn, i);
}

extern "C" void ag_glue_asks(const ag_glue *g)
{
    LAUNCH(glue_asks, ag::blocks_for(g->batch.B * g->batch.wants, THREADS), THREADS, 0,
           g->device, *g);
}

extern "C" void ag_glue_nodes(const ag_glue *g)
{
    LAUNCH(glue_nodes, ag::blocks_for(g->batch.B * g->batch.R, THREADS), THREADS, 0, g->device,
           *g);
}

extern "C" void ag_glue_verdict(const ag_glue *g)
{
    LAUNCH(glue_verdict, ag::blocks_for(g->batch.B, THREADS), THREADS, 0, g->device, *g);
}
