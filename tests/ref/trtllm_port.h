/* trtllm_port.h - the lookahead decoding of TensorRT-LLM, one request, in plain C: an
 * independent witness for the preset `trtllm`.
 *
 * A port of NVIDIA/TensorRT-LLM, cpp/tensorrt_llm/layers/:
 *   lookaheadAlgorithm.cpp at commit 22d9513520c9c9c07a17633479f41e94ec1b9ad6, which asks the
 *   pool for G n-grams where 2a9abd9536aa62ad3e4b9314be9286b1b1be523b asks for W;
 *   lookaheadAlgorithm.h at commit 2a9abd9536aa62ad3e4b9314be9286b1b1be523b;
 *   lookaheadPoolManager.cpp at commit 1bfd8aab42b9e9d61a75f076436673e1932dfcd2;
 *   lookaheadPoolManager.h at commit 3585984b32cded5cc002d3087d3da4b0fd9fb8a5.
 * It was written from that source and the engine's own unit tests alone. Nothing of this
 * project's specification, reference or oracle went into it.
 *
 * Replaced:
 *   - The engine draws the first guesses from the prompt with srand and rand. Here the caller
 *     gives them.
 *   - treeEncode merges rows with equal paths from the root, and reorders the rows. Here every
 *     row is reported with its parent and the row that it merges with. The engine's order
 *     changes no result: of merged rows at most one path repeats the answers.
 *   - Tensors are arrays. Where a check of the engine would throw, the port aborts and
 *     says why.
 *   - For N = 1 update reads one element before its array and drops it. The port does not read
 *     it.
 */
#ifndef ASSAY_TESTS_REF_TRTLLM_PORT_H
#define ASSAY_TESTS_REF_TRTLLM_PORT_H

#include <stdint.h>

/* The greatest W, N and G, and the most rows of a step for them. */
enum { TRT_MAX = 32, TRT_MAX_ROWS = TRT_MAX - 2 + (TRT_MAX - 1 + TRT_MAX) * (TRT_MAX - 1) };

typedef struct trt_port trt_port;

/* A row of a step: a draft token. It sees the whole sequence, whose last token is the root; the
 * rows from the root down to its parent; and itself. */
typedef struct {
    int32_t token;
    int32_t parent;    /* an earlier row; -1: the root */
    int32_t depth;     /* its position less that of the root, at least 1 */
    int32_t same;      /* the first row with this path, maybe itself: one row to the engine */
    int32_t candidate; /* of the pool, from 0, the oldest first; -1: a row of the window */
    int32_t column;    /* of the window; below 0: a prefill, -1 the last; of a candidate: -1 */
    int32_t level;     /* of the window from 0, prefills have level 0; or index in the n-gram */
} trt_row;

/* A request's state: a window of W columns, n-grams of N tokens with their key, at most G
 * n-grams per key. The draft token end_id is never accepted; -1: there is none.
 * Returns NULL without memory, and unless 1 <= W, N <= TRT_MAX and 0 <= G <= TRT_MAX. For N = 1
 * it also returns NULL unless W = 1 and G = 0. */
trt_port *trt_open(int32_t W, int32_t N, int32_t G, int32_t end_id);
void trt_close(trt_port *port); /* port may be NULL */

/* How many guesses trt_setup needs: N - 2 prefills and W columns; 0 for N = 1. */
int32_t trt_guesses(const trt_port *port);

/* Starts a request anew. prompt[n] is the sequence so far; its last token is the root of the
 * first step. n must be at least 1 and at least N - 1: the engine reads before a shorter
 * prompt. guess[guesses] is what the engine would draw, in its order: the N - 2 prefills, then
 * level 0 of the W columns. The engine never uses the first prefill. guesses must be
 * trt_guesses(port). */
void trt_setup(trt_port *port, const int32_t *prompt, int32_t n, const int32_t *guess,
               int32_t guesses);

/* Appends length tokens, 0 to N, that do not come from trt_update. The engine's decoding layer
 * does so with the first token after the prompt. After a step without rows the layer calls
 * accept in the place of update, too. */
void trt_accept(trt_port *port, const int32_t *token, int32_t length);

/* The rows of the next step, those of the window first. Returns their number; *rows holds until
 * the next call of trt_prepare or trt_setup. */
int32_t trt_prepare(trt_port *port, const trt_row **rows);

/* Ends the step of the last trt_prepare. answer[0] is the argmax after the root, answer[1 + r]
 * that after row r. The answer to a row with same < r is not read. Writes the accepted tokens
 * to run[N] and returns their number, 1 to N. The last of them is the root of the next step. */
int32_t trt_update(trt_port *port, const int32_t *answer, int32_t *run);

/* How many levels of the window hold tokens: 1 to N - 1, then it is full; 0 for N = 1. */
int32_t trt_filling(const trt_port *port);

/* The token of the window at a column, 0 to W - 1, and a level, 0 to N - 2; -1: none yet. */
int32_t trt_window(const trt_port *port, int32_t column, int32_t level);

/* The n-grams of a key, oldest first, each N - 1 tokens without the key. Returns their number;
 * *ngrams holds until the pool changes. */
int32_t trt_pool(const trt_port *port, int32_t key, const int32_t **ngrams);

#endif
