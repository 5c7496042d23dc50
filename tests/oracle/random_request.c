/* random_request.c - see random_request.h. */
#include "tests/oracle/random_request.h"
#include "tests/random.h"

#include <string.h>

const char *const request_kind_name[KINDS] = {"paper",        "lade",   "llamacpp", "trtllm",
                                              "any switches", "jacobi", "original", "hf"};

/* ---- Models ----------------------------------------------------------------------- */

/* States are the last token, or the last two. */
static void make_table(random_request *r, int32_t V, bool two, uint64_t *s)
{
    const int32_t S = two ? V * V : V, levels = 2 + below(s, 6), cycle = below(s, 3) ? 0 : 8;
    for (int32_t t = 0; t < V; t++) r->cls[t] = t;
    for (int32_t state = 0; state < S; state++) {
        for (int32_t t = 0; t < V; t++) {
            r->next[state * V + t] = two ? state % V * V + t : t;
            r->logits[state * V + t] = below(s, levels);
        }
        r->logits[state * V + (state + 1) % V] += cycle;
    }
    r->toy.automaton = true;
    r->toy.table = (oracle_table){V, S, V, below(s, S), r->cls, r->next, r->logits};
}

/* Mostly of the last tokens, so that n-grams recur; some of the whole path, where a single row
 * or position too many or too few shows. */
static int32_t make_model(random_request *r, uint64_t *s)
{
    int32_t V = 2 + below(s, below(s, 3) ? 4 : REQUEST_V - 1);
    const int32_t kind = below(s, 8);
    if (kind >= 4 && below(s, 32) == 0) V = 90 + below(s, 40); /* about 100, as LAH-04 counts */
    if (kind < 4)
        make_table(r, V, kind >= 2, s);
    else
        r->toy.hash = (oracle_hash){splitmix(s), V, kind == 7 ? 0 : 1 + below(s, 3),
                                    coin(s) ? 256 : 1 + below(s, 12)};
    return V;
}

/* ---- Methods ---------------------------------------------------------------------- */

static void any_switches(oracle_method *m, uint64_t *s)
{
    int32_t n;
    const oracle_switch *sw = oracle_method_switches(m->name, &n);
    for (int32_t i = 0; i < n; i++) m->sw[i] = below(s, oracle_switch_values(&sw[i]));
    if (m->name == ORACLE_LOOKAHEAD && m->sw[LAH_KEY] == LAH_KEY_STALE && below(s, 16))
        m->sw[LAH_WARMUP] = 0; /* or it is refused */
}

static void make_lookahead(random_request *r, uint64_t *s)
{
    oracle_method *m = &r->m;
    m->name = ORACLE_LOOKAHEAD;
    if (r->kind == ANY)
        any_switches(m, s);
    else
        oracle_preset(m, request_kind_name[r->kind]);
    m->size[0] = 1 + below(s, below(s, 4) ? 4 : 15);
    m->size[1] = 2 + below(s, below(s, 16) ? 4 : 6);
    m->size[2] = below(s, 8) ? 1 + below(s, below(s, 4) ? 4 : 15) : 0;
    if (below(s, 8) == 0) m->sw[LAH_INIT] = LAH_INIT_GIVEN;
}

static void make_method(random_request *r, int32_t V, uint64_t *s)
{
    oracle_method *m = &r->m;
    if (r->kind <= ANY) {
        make_lookahead(r, s);
    } else if (r->kind == JACOBI) {
        m->name = ORACLE_JACOBI;
        any_switches(m, s);
        m->size[0] = 1 + below(s, 12);
        m->size[1] = below(s, V);
    } else {
        m->name = ORACLE_LOOKUP;
        any_switches(m, s);
        if (below(s, 4)) oracle_preset(m, request_kind_name[r->kind]);
        if (m->size[0] == 0 || coin(s)) m->size[0] = 1 + below(s, 4);
        if (m->size[1] == 0 || coin(s)) m->size[1] = 1 + below(s, 6);
    }
    m->given = r->given;
    m->given_n = 1 + below(s, REQUEST_GIVEN);
    for (int32_t i = 0; i < m->given_n; i++) r->given[i] = below(s, V);
}

/* ---- Requests --------------------------------------------------------------------- */

static bool can_be_warm(const random_request *r)
{
    if (r->m.name == ORACLE_JACOBI) return false;
    if (r->m.name == ORACLE_LOOKUP) return true;
    return r->m.sw[LAH_RULE] != LAH_RULE_NONE && !r->m.sw[LAH_ACCEPT_WINDOW];
}

/* Values without a meaning together. With a second fault, either might be named. */
static bool refused(const random_request *r)
{
    const int32_t *sw = r->m.sw;
    return (r->q.sampling.temperature != 0 && !can_be_warm(r)) ||
           (r->m.name == ORACLE_LOOKAHEAD && sw[LAH_KEY] == LAH_KEY_STALE && sw[LAH_WARMUP]);
}

static void make_sampling(random_request *r, uint64_t *s)
{
    oracle_sampling *p = &r->q.sampling;
    *p = (oracle_sampling){0, 0, 1, 0};
    if (coin(s) || (!can_be_warm(r) && below(s, 32))) return;
    p->temperature = 0.25f * (float)(1 + below(s, 6));
    if (below(s, 3) == 0) p->top_k = 1 + below(s, 4);
    if (below(s, 4) == 0) p->top_p = 0.875f;
    if (below(s, 4) == 0) p->min_p = 0.125f;
}

/* Positions that just suffice or a few more; rows for a part of the trees. */
static void make_limits(random_request *r, uint64_t *s)
{
    const int32_t N = r->m.name == ORACLE_LOOKAHEAD ? r->m.size[1] : 4,
                  tree = (r->m.size[0] + 2) * (N - 1);
    if (below(s, 5) == 0) r->q.positions = r->q.n + r->q.budget - 1 + below(s, 1 + N);
    if (below(s, 6) == 0) r->q.rows = 1 + below(s, tree + 4);
}

/* One thing that must be refused. */
static void spoil(random_request *r, int32_t V, uint64_t *s)
{
    switch (below(s, 6)) {
    case 0:
        r->prompt[below(s, r->q.n)] = coin(s) ? V : -1;
        break;
    case 1:
        r->q.positions = r->q.n + r->q.budget - 2;
        r->q.n += r->q.positions == 0; /* 0 would be no limit */
        r->q.positions += r->q.positions == 0;
        break;
    case 2:
        r->m.size[0] = 0;
        break;
    case 3:
        r->m.size[1] = r->m.name == ORACLE_JACOBI ? V : r->m.name == ORACLE_LOOKUP ? 0 : 1;
        r->m.sw[JACOBI_INIT] = r->m.name == ORACLE_JACOBI ? JACOBI_PAD : r->m.sw[0];
        break;
    case 4:
        if (r->m.name == ORACLE_LOOKUP) break; /* which has no such list */
        r->m.given_n = 0;
        r->m.sw[0] = r->m.name == ORACLE_JACOBI ? JACOBI_GIVEN : LAH_INIT_GIVEN;
        break;
    default:
        if (r->m.name == ORACLE_LOOKAHEAD) r->m.size[2] = -1;
    }
}

void random_request_make(uint64_t number, random_request *r)
{
    uint64_t s = number;
    memset(r, 0, sizeof *r);
    const int32_t turn = (int32_t)(number % 16);
    r->kind = turn < 15 ? (request_kind)(turn % 5) : (request_kind)(JACOBI + number / 16 % 3);
    const int32_t V = make_model(r, &s);
    make_method(r, V, &s);
    r->q = (oracle_request){.prompt = r->prompt,
                            .n = 1 + below(&s, REQUEST_PROMPT),
                            .budget = 1 + below(&s, 48),
                            .eos = below(&s, 3) ? below(&s, V) : -1,
                            .seed = splitmix(&s)};
    for (int32_t i = 0; i < REQUEST_PROMPT; i++) r->prompt[i] = below(&s, V);
    make_sampling(r, &s);
    make_limits(r, &s);
    if (below(&s, 64) == 0 && !refused(r)) spoil(r, V, &s);
}
