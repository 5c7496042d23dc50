/* batch.c - see batch.h. */
#include "conformance/checks/law/batch.h"

#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/coins.h"

panel *batch_panel(const check_context *x, const panel_form *form, check_result *r)
{
    char why[200];
    panel *a = panel_make(form, why, sizeof why);
    if (!a)
        result_set(r, STATE_ERROR, "%s (STA-03)", why);
    else if (result_call(r, x, "panel", client_panel(x->iut, &a->view)))
        return a;
    panel_free(a);
    return NULL;
}

void batch_close(batch *b)
{
    void *all[] = {b->len,      b->state,        b->draft,        b->u,          b->out,
                   b->out_len,  b->call.len,     b->call.state,   b->call.draft, b->call.u,
                   b->call.out, b->call.out_len, b->call.accepted};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

bool batch_open(batch *b, const check_context *x, const panel *a, iut_op op, int32_t N,
                int32_t gamma, int32_t k)
{
    size_t n = (size_t)N, g = (size_t)gamma, i = sizeof(int32_t), d = sizeof(double);
    *b = (batch){.x = x,
                 .a = a,
                 .op = op,
                 .N = N,
                 .gamma = gamma,
                 .k = k,
                 .supplied = client_claims(x->iut)->uniforms == IUT_UNIFORMS_SUPPLIED,
                 .coins = coins_of_verify(client_claims(x->iut))};
    b->len = calloc(n, i), b->call.len = malloc(n * i);
    b->state = calloc(n * (g + 1), i), b->call.state = malloc(n * (g + 1) * i);
    b->draft = calloc(n * (g + 1), i), b->call.draft = malloc(n * (g + 1) * i);
    b->u = calloc(n * (g + 2), d), b->call.u = malloc(n * (g + 2) * d);
    b->out = malloc(n * (size_t)k * i), b->call.out = malloc(n * (size_t)k * i);
    b->out_len = malloc(n * i), b->call.out_len = malloc(n * i);
    b->call.accepted = malloc(n * (size_t)k * i);
    return b->len && b->call.len && b->state && b->call.state && b->draft && b->call.draft &&
           b->u && b->call.u && b->out && b->call.out && b->out_len && b->call.out_len &&
           b->call.accepted;
}

void batch_fill(batch *b, const law_alias *q, law_random *g, bool whole)
{
    int32_t bits = law_bits(client_claims(b->x->iut));
    for (int32_t i = 0; i < b->N; i++) {
        int32_t *state = b->state + i * (b->gamma + 1), *draft = b->draft + i * b->gamma;
        b->len[i] = whole ? b->gamma : (int32_t)(law_word(g) % (uint64_t)(b->gamma + 1));
        state[0] = (int32_t)(law_word(g) % (uint64_t)b->a->view.S);
        for (int32_t j = 0; j < b->gamma; j++) {
            draft[j] = law_alias_draw(q, state[j], g);
            state[j + 1] = panel_next(b->a, state[j], draft[j]);
            if (!whole && law_word(g) % 16 == 0) draft[j] = -1;
        }
        for (int32_t j = 0; j < b->gamma + 2; j++) {
            uint64_t kind = law_word(g) % 8;
            double u = law_unit(g, bits), most = 1 - 1.0 / (double)((uint64_t)1 << bits);
            b->u[i * (b->gamma + 2) + j] = kind == 0 ? 0 : kind == 1 ? most : u;
        }
        if (b->coins == IUT_COINS_ONE) b->u[i * (b->gamma + 2) + b->gamma + 1] = b->u[i * (b->gamma + 2) + b->gamma];
    }
}

/* Row i of `from` becomes row j of `to`. */
static void copy_row(void *to, const void *from, int32_t j, int32_t i, int32_t width,
                     size_t size)
{
    size_t row = (size_t)width * size;
    memcpy((char *)to + (size_t)j * row, (const char *)from + (size_t)i * row, row);
}

static call_result send(batch *b, int32_t n, uint64_t seed)
{
    client *iut_client = b->x->iut;
    const double *u = b->supplied ? b->call.u : NULL;
    iut_verify_batch v = {.size = sizeof v,
                          .n = n,
                          .gamma = b->gamma,
                          .len = b->call.len,
                          .state = b->call.state,
                          .draft = b->call.draft,
                          .u = u,
                          .seed = seed,
                          .out = b->call.out,
                          .out_len = b->call.out_len,
                          .coins = b->coins};
    iut_draw_batch d = {.size = sizeof d,
                        .n = n,
                        .state = b->call.state,
                        .u = u,
                        .seed = seed,
                        .token = b->call.out};
    iut_stream_batch s = {.size = sizeof s,
                          .n = n,
                          .gamma = b->gamma,
                          .k = b->k,
                          .eos = -1,
                          .start = b->call.state,
                          .seed = seed,
                          .out = b->call.out,
                          .out_len = b->call.out_len,
                          .accepted = b->call.accepted};
    switch (b->op) {
    case OP_VERIFY:
        return client_verify(iut_client, &v);
    case OP_VERIFY_GREEDY:
        v.u = NULL;
        v.coins = 0;
        return client_verify_greedy(iut_client, &v);
    case OP_DRAW:
        return client_draw(iut_client, &d);
    default:
        return client_stream(iut_client, &s);
    }
}

bool batch_ask(batch *b, int32_t from, int32_t count, bool reverse, check_result *r)
{
    /* draw and stream need one state and one uniform a case: their gamma here is 0 or unused.
     */
    int32_t states = b->op == OP_STREAM || b->op == OP_DRAW ? 1 : b->gamma + 1;
    int32_t uniforms = b->op == OP_DRAW ? 1 : b->gamma + 2;
    for (int32_t j = 0; j < count; j++) {
        int32_t i = reverse ? from + count - 1 - j : from + j;
        copy_row(b->call.len, b->len, j, i, 1, sizeof(int32_t));
        for (int32_t t = 0; t < states; t++)
            b->call.state[j * states + t] = b->state[i * (b->gamma + 1) + t];
        copy_row(b->call.draft, b->draft, j, i, b->gamma, sizeof(int32_t));
        for (int32_t t = 0; t < uniforms; t++)
            b->call.u[j * uniforms + t] = b->u[i * (b->gamma + 2) + t];
        b->call.out_len[j] = 1;
    }
    memset(b->call.out, 0xff, (size_t)count * (size_t)b->k * sizeof(int32_t));
    memset(b->call.accepted, 0xff, (size_t)count * (size_t)b->k * sizeof(int32_t));
    if (!result_call(r, b->x, iut_op_name(b->op), send(b, count, b->seed + (uint64_t)from)))
        return false;
    for (int32_t j = 0; j < count; j++) {
        int32_t i = reverse ? from + count - 1 - j : from + j;
        copy_row(b->out, b->call.out, i, j, b->k, sizeof(int32_t));
        b->out_len[i] = b->call.out_len[j];
    }
    return true;
}
