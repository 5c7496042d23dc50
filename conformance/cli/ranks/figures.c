/* See figures.h. */
#include "conformance/cli/ranks/figures.h"

#include <inttypes.h>

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

void ranks_count(ranks_figures *f, const as_ranks *ranks, const as_step *s, int32_t length)
{
    int32_t largest = 0;
    for (int32_t r = 0; r < ranks->count; r++) {
        const int32_t rows = s->evaluated ? s->evaluated[r] : s->tree->rows;
        f->rows[r] += rows;
        if (rows > largest) largest = rows;
    }
    f->largest += largest;
    f->whole += s->tree->rows;
    f->candidates += (s->tree->rows - s->plan->drafts) / length;
    f->steps++;
}

int32_t ranks_largest_share(int32_t W, int32_t N, int32_t c, int32_t D)
{
    const int32_t share = (W + D - 1) / D, part = (c + D - 1) / D;
    int32_t largest = 0;
    for (int32_t d = 0; d < D; d++) {
        const int32_t from = least(d * share, W), to = least(from + share, W);
        const int32_t candidates = least((d + 1) * part, c) - least(d * part, c);
        const int32_t spine = to > from ? to : 1; /* the root is everybody's */
        const int32_t rows = spine + (to - from) * (N - 2) + candidates * (N - 1);
        if (rows > largest) largest = rows;
    }
    return largest;
}

void ranks_print(FILE *to, const ranks_figures *f, const as_ranks *ranks, as_drafter *lookahead)
{
    int32_t W;
    const int32_t N = as_pool_length(as_lookahead_pool(lookahead)) + 1;
    if (f->steps == 0) return;
    fprintf(to, "ranks: %d; of %" PRId64 " rows they evaluated", (int)ranks->count, f->whole);
    for (int32_t r = 0; r < ranks->count; r++) fprintf(to, "%s %" PRId64, r ? "," : "", f->rows[r]);
    fprintf(to, "; the largest share of each step, %" PRId64 " in all\n", f->largest);
    fprintf(to, "exchanged: rank 0 sent %" PRId64 " bytes in %d steps\n", ranks_bytes(ranks), (int)f->steps);
    if (!as_lookahead_row(lookahead, 0, &W)) return;
    const int32_t c = (int32_t)((f->candidates + f->steps / 2) / f->steps);
    const int32_t alone = ranks_largest_share(W, N, c, 1);
    fprintf(to, "a model of strong scaling: W %d, N %d and %d candidates are %d rows; the largest share of", (int)W,
            (int)N, (int)c, (int)alone);
    for (int32_t D = 2; D <= 16; D *= 2) {
        const int32_t rows = ranks_largest_share(W, N, c, D);
        fprintf(to, "%s %d ranks %d, 1/%.2f", D > 2 ? "," : "", (int)D, (int)rows, (double)alone / rows);
    }
    fputs("\n(a step is so much faster where time goes with rows, and no faster where it goes with weights; "
          "nothing is measured)\n", to);
}
