/* actor.c - one rank of a decoding under mpirun, which goes wrong at a step of its own choice.
 *
 * usage: mpirun -n D actor RANK STEP none|kill|stop|leave|alter
 *
 * After step STEP (-1: the last) rank RANK writes "acts" to standard error. It is then killed, stands still, leaves
 * with exit code 0, or alters its pool. Exit code 0: the decoding has ended well. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conformance/cli/ranks/ranks.h"
#include "ref/decode.h"
#include "ref/draft/lookahead.h"
#include "ref/lm/hash_lm.h"

enum { V = 5, BUDGET = 30, N = 4 };

typedef struct {
    as_drafter *drafter;
    const char *act;
    int32_t step, emitted; /* when it acts; tokens so far */
} role;

static void watch(void *data, const as_step *s)
{
    static const int32_t odd[N - 1] = {1, 2, 3};
    role *x = data;
    x->emitted += s->emitted;
    if (x->step < 0 ? x->emitted < BUDGET : s->step != x->step) return;
    if (strcmp(x->act, "none") != 0) fputs("acts\n", stderr);
    if (strcmp(x->act, "kill") == 0) raise(SIGKILL);
    if (strcmp(x->act, "stop") == 0) raise(SIGSTOP);
    if (strcmp(x->act, "leave") == 0) _exit(0);
    if (strcmp(x->act, "alter") == 0) as_pool_insert(as_lookahead_pool(x->drafter), 0, odd, NULL);
}

static as_status decode(as_ranks *ranks, role *x, as_error *e)
{
    static const int32_t prompt[] = {1, 2, 3, 1, 2, 4};
    const as_hash_law law = {.V = V, .levels = 256, .seed = 1};
    int32_t out[BUDGET];
    as_lookahead o = *as_lookahead_preset("paper");
    as_lm *lm = NULL;
    as_result result;
    o.W = 5, o.N = N, o.G = 5;
    as_status s = as_hash_lm(&law, &lm, e);
    if (s == AS_OK) s = as_draft_lookahead(&o, V, &x->drafter, e);
    const as_request q = {.target = lm,
                          .drafter = x->drafter,
                          .rule = AS_RULE_GREEDY,
                          .sampling = {.top_p = 1},
                          .prompt = prompt,
                          .prompts = sizeof prompt / sizeof *prompt,
                          .budget = BUDGET,
                          .trace = watch,
                          .trace_data = x,
                          .ranks = ranks};
    if (s == AS_OK) s = as_decode(&q, out, &result, e);
    as_drafter_free(x->drafter);
    as_lm_free(lm);
    return s;
}

int main(int argc, char **argv)
{
    as_ranks *ranks;
    as_error e;
    char why[300];
    if (argc != 4 || !ranks_open(&ranks, why, sizeof why) || !ranks) {
        fputs("usage: mpirun -n D actor RANK STEP none|kill|stop|leave|alter\n", stderr);
        return 2;
    }
    role x = {.act = ranks->rank == atoi(argv[1]) ? argv[3] : "none", .step = atoi(argv[2])};
    const as_status s = decode(ranks, &x, &e);
    if (s != AS_OK) fprintf(stderr, "%s\n", e.text);
    ranks_close(ranks, s == AS_OK ? 0 : 1);
    return s == AS_OK ? 0 : 1;
}
