/* What the tests of this folder share: a small panel and clients of given specs. */
#ifndef ASSAY_TESTS_IUT_SUPPORT_H
#define ASSAY_TESTS_IUT_SUPPORT_H

#include "conformance/wire/client.h"

enum { V = 4, S = 2, C = 2 };

/* Dyadic rows with integer logits; next state = class of the token. */
iut_panel small_panel(void);

/* A client with the tests' worker program; *f as of client_open. timeout in seconds. */
client *open_spec(const char *spec, const char *options, double timeout, client_failure *f);

/* One draw of four tokens from state 1 with u = 0. */
call_result draw_four(client *c, int32_t token[4]);

/* Fails the test with both texts unless `text` contains `part`. */
void assert_says(const char *text, const char *part);

#endif
