/* claims.h - the claims of an IUT as `args` of a reply, and what makes them coherent. Clauses
 * CLM-04, CLM-05 and FRM-03.
 *
 * In `args`: name, version, device and, if it is claimed, order (strings), the other fields of iut_claims as integers
 * under their own names, and `ops`, the names of the claimed operations with a blank between. */
#ifndef ASSAY_CONFORMANCE_WIRE_CLAIMS_H
#define ASSAY_CONFORMANCE_WIRE_CLAIMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "conformance/wire/operations.h"

typedef enum {
    CLAIM_TEXT,
    CLAIM_ORDER,  /* a text that may be missing: an order of filters (CLM-14) */
    CLAIM_CHOICE, /* the number of one of the words, from 1 on */
    CLAIM_SET,    /* the sum of 1, 2, 4 ... of some of them */
    CLAIM_NUMBER  /* 0 to `most` */
} claim_kind;

/* A field of iut_claims. */
typedef struct {
    const char *name; /* NULL behind the last */
    claim_kind kind;
    uint8_t width; /* bytes: 1 or 4, 8 of a text */
    size_t at;
    int32_t most;
    const char *words;    /* with | between; "-" where a number means nothing here */
    int32_t since;        /* the group of docs/abi-next.md that it came with; 0: none */
    const char *unsaid;   /* what holds if it is not said: words with | between, a number, an order; NULL: nothing */
    const char *question; /* that it answers */
    int32_t later, later_since; /* bits of a set that came with a later group, and which; 0: none */
} claim_row;

/* All of them, in the order of the struct's sense. */
extern const claim_row claim_table[];

int32_t claim_words(const claim_row *row); /* of a choice or a set: how many */
int32_t claim_most(const claim_row *row);  /* the largest number that it may have */

int32_t claim_unsaid(const claim_row *row); /* `unsaid` as a number; 0: there is none */

/* A field that is a number, and what holds in its place if it is not said. */
#define CLAIMED(claims, field) claims_number(claims, offsetof(iut_claims, field))
int32_t claims_number(const iut_claims *claims, size_t field);

enum { CLAIMS_SINCE = 9 }; /* the last group that is known here */

/* A new object with the claims of the groups up to `since`, or NULL if memory runs out or a text is not UTF-8. */
json_t *claims_encode(const iut_claims *claims, unsigned ops, int32_t since);

/* The four steps of an order, numbered as the fields of iut_sampling: 1 is the temperature. False: the text is none
 * of CLM-14. NULL is the order that holds if none is said. */
bool claims_order(const char *text, uint8_t step[4]);

/* Reads `args` of a reply. The texts belong to `args`. Refuses what claims_check
 * refuses, and an unknown name or type of a field. */
bool claims_decode(const json_t *args, iut_claims *claims, unsigned *ops, char *why,
                   size_t why_size);

/* The first field in which two claims differ, name, version and device left out; NULL: none (CLM-13). */
const char *claims_difference(const iut_claims *a, const iut_claims *b);

/* CLM-04, CLM-14, CLM-15, CLM-21, CLM-29: known values, no negative limit (0 says that none is known), strings present,
 * greedy methods among the methods, lossless rules among the rules. Canonical arithmetic has uniforms of 29 bits or
 * more, the rows of chapter 3, the folder's weights and whole seeds. */
bool claims_check(const iut_claims *claims, char *why, size_t why_size);

/* CLM-05: model, forward, commit and truncate go together, and what reads or poisons the cache
 * goes with them. */
bool claims_check_ops(unsigned ops, char *why, size_t why_size);

#endif
