/* liars.c - what an IUT may do to the suite (liars.h). Each puts one bad function into an
 * otherwise honest table. */
#include "conformance/subjects/mutants/liars.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "conformance/subjects/mutants/chain/subject.h"

static iut_status exits(iut *x, int32_t n, const int32_t *state, float *r)
{
    (void)x, (void)n, (void)state, (void)r;
    _exit(0);
}
void LIAR_EXIT(iut_api *table)
{
    table->residual = exits;
}

static iut_status faults(iut *x, int32_t n, const int32_t *state, float *r)
{
    static const float *volatile nowhere; /* NULL, as far as anybody can tell */
    (void)x, (void)n, (void)state;
    r[0] = *nowhere;
    return IUT_OK;
}
void LIAR_SEGV(iut_api *table)
{
    table->residual = faults;
}

static iut_status hangs(iut *x, int32_t n, const int32_t *state, float *r)
{
    (void)x, (void)n, (void)state, (void)r;
    for (;;) pause();
    return IUT_OK;
}
void LIAR_HANG(iut_api *table)
{
    table->residual = hangs;
}

static iut *aborts(const char *options, char *error, size_t size)
{
    (void)options, (void)error, (void)size;
    abort();
}
void LIAR_ABORT_CREATE(iut_api *table)
{
    table->create = aborts;
}

static iut *declines(const char *options, char *error, size_t size)
{
    (void)options;
    snprintf(error, size, "the moon is not full; wait for it");
    return NULL;
}
void LIAR_REFUSES_CREATE(iut_api *table)
{
    table->create = declines;
}

static iut_status gives_nan(iut *x, int32_t n, const int32_t *state, float *r)
{
    const iut_status s = subject_operations.residual(x, n, state, r);
    const int32_t V = subject_model((subject *)x)->V;
    for (int64_t i = 0; i < (int64_t)n * V; i++) r[i] = NAN;
    return s;
}
void LIAR_NAN(iut_api *table)
{
    table->residual = gives_nan;
}

static iut_status says_nothing(iut *x, iut_verify_batch *b)
{
    (void)x;
    for (int32_t i = 0; i < b->n; i++) b->out_len[i] = 0;
    return IUT_OK;
}
void LIAR_SILENT(iut_api *table)
{
    table->verify = says_nothing;
}

static iut_status stops_halfway(iut *x, iut_verify_batch *b)
{
    iut_verify_batch half = *b;
    half.n = b->n / 2;
    return subject_operations.verify(x, &half);
}
void LIAR_HALF(iut_api *table)
{
    table->verify = stops_halfway;
}

static iut_status counts_wildly(iut *x, iut_verify_batch *b)
{
    const iut_status s = subject_operations.verify(x, b);
    for (int32_t i = 0; i < b->n; i++) b->out_len[i] = i % 2 ? -(1 << 30) : 1 << 30;
    return s;
}
void LIAR_WILD_COUNT(iut_api *table)
{
    table->verify = counts_wildly;
}

static iut_status writes_beyond(iut *x, iut_verify_batch *b)
{
    const iut_status s = subject_operations.verify(x, b);
    b->out_len[b->n] = 1;
    return s;
}
void LIAR_OVERRUN(iut_api *table)
{
    table->verify = writes_beyond;
}

static iut_status refuses(iut *x, int32_t n, const int32_t *state, float *r)
{
    (void)x, (void)n, (void)state, (void)r;
    return IUT_UNSUPPORTED;
}
void LIAR_UNSUPPORTED(iut_api *table)
{
    table->residual = refuses;
}

static iut_status fails(iut *x, int32_t n, const int32_t *state, float *r)
{
    (void)x, (void)n, (void)state, (void)r;
    return IUT_FAILED;
}
static const char *no_text(iut *x)
{
    (void)x;
    return NULL;
}
void LIAR_NO_TEXT(iut_api *table)
{
    table->residual = fails;
    table->last_error = no_text;
}

static iut_status off_the_list(iut *x, int32_t n, const int32_t *state, float *r)
{
    (void)x, (void)n, (void)state, (void)r;
    return (iut_status)99;
}
void LIAR_STATUS(iut_api *table)
{
    table->residual = off_the_list;
}

static iut_status declares_nonsense(iut *x, iut_claims *c)
{
    const iut_status s = subject_operations.claims(x, c);
    c->uniforms = 77;
    c->max_vocab = -3;
    return s;
}
void LIAR_CLAIMS(iut_api *table)
{
    table->claims = declares_nonsense;
}

static iut_status chats(iut *x, int32_t n, const int32_t *state, float *r)
{
    printf("computing %d residuals, please hold the line\n", (int)n);
    fflush(stdout);
    return subject_operations.residual(x, n, state, r);
}
void LIAR_STDOUT(iut_api *table)
{
    table->residual = chats;
}
