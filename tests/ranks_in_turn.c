/* ranks_in_turn.c - see ranks_in_turn.h. */
#include "tests/ranks_in_turn.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

enum { STACK = 1 << 20, ROOM = 1 << 14 };

/* A rank can be one round ahead of the slowest, never two: a round ends when all have told. So two rooms do. */
typedef struct {
    as_ranks base;
    void (*run)(as_ranks *, void *);
    void *data;
    bool gone;
    int32_t told, size[2], room[2][ROOM];
    ucontext_t context;
    void *stack;
} member;

static member *ranks; /* [count] of the call of run_as_ranks */
static member *turn;  /* whose turn it is */
static int32_t live;  /* ranks whose run has not returned */
static ucontext_t scheduler;

static member *waits_for(int32_t count, int32_t round)
{
    for (member *m = ranks; m < ranks + count; m++)
        if (m->told <= round) return m;
    return NULL;
}

static as_status gather(as_ranks *base, int32_t step, const int32_t *mine, int32_t n, int32_t *all, as_error *e)
{
    member *own = (member *)base, *late;
    const int32_t round = own->told++, side = round % 2;
    if (n > ROOM) abort();
    memcpy(own->room[side], mine, (size_t)n * sizeof *mine);
    own->size[side] = n;
    while ((late = waits_for(base->count, round))) {
        if (late->gone) return as_fail(e, AS_PEER, "step %d: rank %d is gone", (int)step, (int)late->base.rank);
        swapcontext(&own->context, &scheduler);
    }
    for (member *m = ranks; m < ranks + base->count; m++) {
        if (m->size[side] != n)
            return as_fail(e, AS_PEER, "step %d: rank %d told %d numbers of %d", (int)step, (int)m->base.rank,
                           (int)m->size[side], (int)n);
        memcpy(all + (size_t)m->base.rank * (size_t)n, m->room[side], (size_t)n * sizeof *all);
    }
    return AS_OK;
}

static void start(void)
{
    member *own = turn;
    own->run(&own->base, own->data);
    own->gone = true;
    live--;
}

static void make_context(member *m)
{
    if (!m->stack || getcontext(&m->context) != 0) abort();
    m->context.uc_stack = (stack_t){.ss_sp = m->stack, .ss_size = STACK};
    m->context.uc_link = &scheduler;
    makecontext(&m->context, start, 0);
}

static void take_turn(member *m)
{
    turn = m;
    swapcontext(&scheduler, &m->context);
}

void run_as_ranks(int32_t count, void (*run)(as_ranks *, void *), void *data)
{
    ranks = calloc((size_t)count, sizeof *ranks);
    if (!ranks || count > RANKS_IN_TURN) abort();
    live = count;
    for (int32_t r = 0; r < count; r++) {
        ranks[r] = (member){.base = {r, count, gather}, .run = run, .data = data, .stack = malloc(STACK)};
        make_context(&ranks[r]);
    }
    for (int32_t r = 0; live > 0; r = (r + 1) % count)
        if (!ranks[r].gone) take_turn(&ranks[r]);
    for (int32_t r = 0; r < count; r++) free(ranks[r].stack);
    free(ranks);
}
