/* clauses.h - the clauses of spec/, embedded at build time by embed_spec. */
#ifndef ASSAY_CONFORMANCE_CLI_CLAUSES_H
#define ASSAY_CONFORMANCE_CLI_CLAUSES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *id;      /* "ACC-01" */
    const char *kind;    /* "MUST" or "MAY" */
    const char *chapter; /* "05-chain-speculative-decoding.md" */
    const char *section; /* "Acceptance (claim: verify or stream, rule TOKEN)" */
    const char *text;
    const char *places; /* in ref/ and the oracle: "FILE:LINE,LINE FILE ..." */
} clause;

extern const clause clause_list[]; /* ends with an id of NULL; in the order of the chapters */

const clause *clause_find(const char *id); /* NULL: there is none */

/* Does `list`, ids with blanks between, name this one? */
bool clause_named(const char *list, const char *id);

#endif
