/* support.c - see support.h. */
#include "tests/iut/support.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

iut_panel small_panel(void)
{
    static const int32_t cls[V] = {0, 1, 0, 1}, next[S * C] = {0, 1, 0, 1};
    static const float p[S * V] = {0.5f, 0.25f, 0.25f, 0, 0.125f, 0.125f, 0.25f, 0.5f};
    static const float q[S * V] = {0.25f, 0.25f, 0.25f, 0.25f, 0.5f, 0, 0.25f, 0.25f};
    static const float p_logit[S * V] = {3, 2, 2, -INFINITY, 1, 1, 2, 3};
    static const float q_logit[S * V] = {2, 2, 2, 2, 3, -INFINITY, 2, 2};
    return (iut_panel){.size = sizeof(iut_panel),
                       .V = V,
                       .S = S,
                       .C = C,
                       .cls = cls,
                       .next = next,
                       .p = p,
                       .q = q,
                       .p_logit = p_logit,
                       .q_logit = q_logit,
                       .target = {1, 0, 1, 0},
                       .draft = {1, 0, 1, 0}};
}

client *open_spec(const char *spec, const char *options, double timeout, client_failure *f)
{
    const client_options o = {
        .spec = spec, .options = options, .assay = WORKER, .timeout = timeout};
    return client_open(&o, f);
}

call_result draw_four(client *c, int32_t token[4])
{
    static const int32_t state[4] = {1, 1, 1, 1};
    static const double u[4] = {0};
    iut_draw_batch b = {.size = sizeof b, .n = 4, .state = state, .u = u, .token = token};
    return client_draw(c, &b);
}

void assert_says(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("\"%s\" does not say \"%s\"", text, part);
    if (strchr(text, '\n')) fail_msg("more than one line: %s", text);
}
