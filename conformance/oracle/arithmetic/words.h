/* words.h - the law of a whole compiled program, measured: a verification, or a stream of
 * them, as a function of 64-bit words. bisect.h does it for one step whose parts can be called
 * one by one; here the program asks.
 *
 * Words have names (lane.h); the program asks for a word when it needs one, and emits tokens.
 * The first word that it asks for is cut into the intervals on which it does the same; below
 * each of them the next word is cut, and so on. What a word decides must show in the tokens or
 * in the names asked for, all later words being 0, and each outcome must be one interval; else
 * the answer is false. Words of positions that the law does not reach are 0: what they decide
 * is cut off, and a token that they decided by mistake would have another law.
 *
 * How far the law may be from a target's. Let a word U be floor(2^64 u), u uniform. A question
 * "floor(U W / 2^64) < C" is "U < ceil(C 2^64 / W)" and differs from "u W < C" on less than
 * 2^-64 of all u, not at all when W divides C 2^64. To emit one token from a row of m positive
 * weights the one-hot rule asks such a question for each candidate it tries, of which those of
 * positive weight, n say, count (C = 0 and C = W are exact), and then draws from m - n weights
 * with m - n - 1 boundaries between them: at most m - 1 questions. A draw asks m - 1. So one
 * token is within (m - 1) 2^-64 of its row, and by the chain rule k tokens are within
 * k (V - 1) 2^-64 of the target in total variation; where all the quotients are integers there
 * is no difference at all. Clauses ONEH-01 to ONEH-05, LAH-21, DRAW-02, DRAW-06, LAW-01. */
#ifndef ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_WORDS_H
#define ASSAY_CONFORMANCE_ORACLE_ARITHMETIC_WORDS_H

#include <stdbool.h>
#include <stdint.h>
#include "conformance/oracle/law/enumerate.h"

typedef struct oracle_words oracle_words;

/* The word of that name. */
uint64_t oracle_word(oracle_words *w, uint32_t uniform);

/* The word if it was asked for in this run, else 0; does not ask. */
uint64_t oracle_word_seen(const oracle_words *w, uint32_t uniform);

/* As a lane program (lane.h), emits at most ORACLE_WORD_TOKENS tokens and keeps no state. */
enum { ORACLE_WORD_TOKENS = 12, ORACLE_WORD_NAMES = 64 };
typedef void (*oracle_word_program)(oracle_words *w, void *arg, int32_t *tokens,
                                    int32_t *count);

/* Called for each boundary: from `first` on the word has another outcome. */
typedef void (*oracle_word_cut)(void *arg, uint32_t uniform, uint64_t first);

/* Adds the law of the program. `cut` may be NULL. About 64 calls for each boundary. */
bool oracle_law_add_words(oracle_law *law, oracle_word_program program, void *arg,
                          oracle_word_cut cut, void *cut_arg);

/* A lane that answers with words: it makes a word program of a lane program whose questions are
 * about integers. */
typedef struct {
    lane base;
    oracle_words *words;
} oracle_word_lane;
oracle_word_lane oracle_lane_of_words(oracle_words *w);

#endif
