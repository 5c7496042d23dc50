/* seeds.h - what the answers to two calls show of a bit in which their seeds differ (CLM-29). Nothing is assumed of the
 * answers' law: the n requests of a call are the same but for their seeds. */
#ifndef ASSAY_CONFORMANCE_CHECKS_FRAME_SEEDS_H
#define ASSAY_CONFORMANCE_CHECKS_FRAME_SEEDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conformance/wire/client.h"

/* The first of the bits that are asked for, how many there are at most, and log10 of the chance from which on equal
 * answers are a proof. */
enum { SEEDS_FIRST = 32, SEEDS_MOST = 64 - SEEDS_FIRST, SEEDS_LINE = -12 };

/* Are there bits to ask for? If not, `why` says so. */
bool seeds_claimed(const client *tested, char *why, size_t size);

/* A seed whose additions stay below bit 32. */
uint64_t seeds_start(uint64_t any);

/* `most` of the bits to ask for, or all of them: the last, in which every seed that was cut shows; the first; and drawn
 * ones. Their number. */
int32_t seeds_bits(const client *tested, int32_t most, uint64_t *rng, int32_t *bit /* [most] */);

/* log10 of the chance that n answers come in the order of n given ones which are, all together, the same: the answers
 * are independent of these, and every order is as likely. So it is the product of m! over the groups of m equal ones,
 * over n!. 1: the answers are not the same, one by one. */
double seeds_log10(const int32_t *a, const int32_t *b, int32_t width, int32_t n); /* [n][width] each */

#endif
