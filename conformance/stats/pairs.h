/* pairs.h - two samples of one implementation: evidence against "both sides have one law, within eps total
 * variation a token", where no law is known. Clause STAT-17; docs/statistics.md, "Two samples".
 *
 * A round is one prompt with a completion of side A and one of side B, from different seeds. The rounds of a block
 * share a coin, which says which side is asked first. Bets are on the first L tokens, once a block. What a bet needs
 * to know it learns from earlier blocks. The same rounds in the same order give the same bits. */
#ifndef ASSAY_STATS_PAIRS_H
#define ASSAY_STATS_PAIRS_H
#include <stdbool.h>
#include <stdint.h>

enum { ST_PAIRS_LONGEST = 16, ST_PAIRS_BLOCK = 64 };

typedef struct st_pairs st_pairs;

/* K >= 2 tokens, L in 1..ST_PAIRS_LONGEST, prompts >= 1, `block` rounds a coin in 1..ST_PAIRS_BLOCK, eps >= 0 with
 * L eps < 1, and (K + 1) L prompts < 2^31. Takes 10 MB at most. NULL: an argument out of range, or no memory. */
st_pairs *st_pairs_new(int K, int L, int prompts, int block, double eps);
void st_pairs_free(st_pairs *t); /* NULL: nothing */

/* One round; each `block` of them are a block, and E changes at its end. Tokens behind the first L are not read. A
 * completion of fewer than L has ended: its end is judged like a token. False, and nothing is counted: a prompt, a
 * token or a length out of range. */
bool st_pairs_add(st_pairs *t, int prompt, const int32_t *a /* [a_length] */, int a_length,
                  const int32_t *b /* [b_length] */, int b_length);

int64_t st_pairs_rounds(const st_pairs *t);
/* ln E over all whole blocks: against eps; against eps = 0, which gates nothing. */
double st_pairs_log_e(const st_pairs *t);
double st_pairs_log_strict(const st_pairs *t);

/* -- For the reader; nothing here gates -- */

/* What sees most: the witness and the first `span` tokens with the largest ln E against eps. `distance` is the mean
 * over the blocks of what it saw A and B differ by. It estimates from below how far apart the laws of these tokens
 * are in total variation, and `least` is a lower bound of that. The interval covers what the bets on average had to
 * see with probability at least 1 - delta, 0 < delta < 1. No block: 0, -1, 1. */
typedef struct {
    const char *witness; /* static */
    int span;
    double log_e, distance, least, most;
} st_pairs_sight;
st_pairs_sight st_pairs_best(const st_pairs *t, double delta);

/* The token whose counts on A and B differ most, in standard deviations: its place in the completion, its prompt,
 * and its share of that prompt's completions. Token K is the end. False: no block yet. Where (K + 1) L prompts is
 * above 2^18, a few tokens share a count. */
typedef struct {
    int32_t token, place, prompt;
    double a, b, deviations;
} st_pairs_token;
bool st_pairs_most(const st_pairs *t, st_pairs_token *most);

/* The smallest total variation of the first `span` tokens that so many rounds see with 90 % probability, whatever its
 * direction, by the line ln E = `line`. `cells` are what it may be spread over: tokens that a row has, times prompts.
 * A fit; docs/statistics.md has its error. rounds > 0, cells >= 1. At most 1. */
double st_pairs_tv90(double rounds, double cells, int span, double eps, double line);
#endif
