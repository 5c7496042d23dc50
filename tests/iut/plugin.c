/* Plugins that are wrong in one way each, chosen by VARIANT when this is compiled. The rest of
 * each is a small right implementation that draws token 0. */
#define _POSIX_C_SOURCE 200809L
#include "conformance/iut.h"

#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    NO_SYMBOL,
    OTHER_ABI,
    NO_TABLE,
    NO_CREATE,
    TINY,
    OLDER,
    CREATE_FAILS,
    CREATE_SILENT,
    PRINTS,
    WRITES_INPUT,
    OVERRUNS,
    SKIPS,
    CONSTRUCTOR_CRASHES,
    NULL_NAME,
    OLD_CLAIMS,
    REFUSES_CLAIMS,
    HANGS,
    NULL_WRITE,
    CONSTANT_WRITE,
    UNPROTECTS,   /* and writes to an input */
    OWN_HANDLER,  /* installed by create */
    LATE_HANDLER, /* installed by the first draw */
    SENDS_SEGV    /* to itself */
};

struct iut {
    int calls; /* of verify that are left before one hangs; the options of HANGS */
    int draws; /* of LATE_HANDLER */
};

static sigjmp_buf after_fault;

static void go_on(int signal_number)
{
    (void)signal_number;
    siglongjmp(after_fault, 1);
}

static void install_handler(void)
{
    const struct sigaction action = {.sa_handler = go_on};
    sigaction(SIGSEGV, &action, NULL);
}

static void unprotect(const int32_t *given)
{
    const uintptr_t at = (uintptr_t)given, page = (uintptr_t)sysconf(_SC_PAGESIZE);
    mprotect((void *)(at - at % page), page, PROT_READ | PROT_WRITE);
}

static const int32_t constant = 1;

static void write_to(const int32_t *given)
{
    volatile int32_t *volatile at = (int32_t *)(uintptr_t)given;
    *at = 0;
}

static iut *create(const char *options, char *error, size_t size)
{
    static iut one;
    one.calls = atoi(options);
    if (VARIANT == OWN_HANDLER) install_handler();
    if (VARIANT == CREATE_FAILS) snprintf(error, size, "no card; options are (%s)", options);
    return VARIANT == CREATE_FAILS || VARIANT == CREATE_SILENT ? NULL : &one;
}

static void destroy(iut *x)
{
    (void)x;
}

static const char *last_error(iut *x)
{
    (void)x;
    return "none";
}

static iut_status claims(iut *x, iut_claims *c)
{
    (void)x;
    /* Compiled against an iut_claims that ends here, and sloppy about its padding. */
    if (VARIANT == OLD_CLAIMS) {
        memset(&c->pools + 1, 0xaa,
               offsetof(iut_claims, accepted_total) - offsetof(iut_claims, pools) -
                   sizeof c->pools);
    }
    if (VARIANT == HANGS) c->bad_draft = IUT_REJECT;
    c->name = VARIANT == NULL_NAME ? NULL : "variant";
    c->version = "1";
    c->device = "cpu";
    return VARIANT == REFUSES_CLAIMS ? IUT_BAD_INPUT : IUT_OK;
}

static iut_status panel(iut *x, const iut_panel *p)
{
    (void)x, (void)p;
    return IUT_OK;
}

static iut_status draw(iut *x, iut_draw_batch *b)
{
    (void)x;
    if (VARIANT == PRINTS) printf("drawing %d tokens\n", (int)b->n), fflush(stdout);
    if (VARIANT == UNPROTECTS) unprotect(b->state);
    if (VARIANT == WRITES_INPUT || VARIANT == UNPROTECTS) write_to(b->state);
    if (VARIANT == NULL_WRITE) write_to((const int32_t *)(uintptr_t)64); /* its 17th element */
    if (VARIANT == CONSTANT_WRITE) write_to(&constant);
    if (VARIANT == SENDS_SEGV) raise(SIGSEGV);
    if (VARIANT == LATE_HANDLER && !x->draws++) install_handler();
    if ((VARIANT == OWN_HANDLER || VARIANT == LATE_HANDLER) && sigsetjmp(after_fault, 1) == 0)
        write_to(b->state);
    for (int32_t i = 0; i < b->n && VARIANT != SKIPS; i++) b->token[i] = 0;
    if (VARIANT == OVERRUNS) b->token[b->n] = 0;
    return IUT_OK;
}

/* Accepts every draft, whatever its id. */
static iut_status verify(iut *x, iut_verify_batch *b)
{
    while (x->calls == 0) sleep(1);
    x->calls--;
    for (int32_t i = 0; i < b->n; i++) {
        for (int32_t j = 0; j <= b->gamma; j++)
            b->out[i * (b->gamma + 1) + j] = j < b->len[i] ? b->draft[i * b->gamma + j] : 0;
        b->out_len[i] = b->len[i] + 1;
    }
    return IUT_OK;
}

/* Answers no token; the lengths are how many places of a request arrived as -1. */
static iut_status generate(iut *x, iut_generate_batch *b)
{
    (void)x;
    for (int32_t i = 0; i < b->n; i++) {
        b->out_len[i] = 0;
        for (int32_t t = i * b->k; t < (i + 1) * b->k; t++)
            b->out_len[i] += (b->out[t] == -1) + (b->accepted[t] == -1);
    }
    return IUT_OK;
}

/* The same: keeps nothing, and counts. */
static iut_status pool(iut *x, iut_pool_batch *b)
{
    const int32_t places = b->G * (b->N - 1);
    (void)x;
    for (int32_t i = 0; i < b->n; i++) {
        int32_t empty = b->count[i] == -1;
        for (int32_t t = 0; t < places; t++) empty += b->out[i * places + t] == -1;
        b->count[i] = empty;
    }
    return IUT_OK;
}

#if VARIANT == 12
__attribute__((constructor)) static void at_load(void)
{
    abort();
}
#endif

#if VARIANT == 0
extern const iut_api *other_name(void);
#define iut_entry other_name
#endif

const iut_api *iut_entry(void)
{
    static iut_api api = {.abi = VARIANT == OTHER_ABI ? IUT_ABI + 1 : IUT_ABI,
                          .size = sizeof api,
                          .create = create,
                          .destroy = destroy,
                          .last_error = last_error,
                          .claims = claims,
                          .panel = panel,
                          .draw = draw,
                          .verify = VARIANT == HANGS ? verify : NULL,
                          .generate = generate,
                          .pool = pool};
    if (VARIANT == NO_CREATE) api.create = NULL;
    if (VARIANT == TINY) api.size = 8;
    if (VARIANT == OLDER) api.size = offsetof(iut_api, draw);
    return VARIANT == NO_TABLE ? NULL : &api;
}
