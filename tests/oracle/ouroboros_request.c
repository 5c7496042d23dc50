/* ouroboros_request.c - see ouroboros_request.h. */
#include "tests/oracle/ouroboros_request.h"

#include <string.h>

#include "tests/random.h"

void pool_value(oracle_pool *pool, int32_t key, int32_t n, const int32_t *value)
{
    oracle_list list = {0};
    oracle_append(&list, value, n);
    oracle_pool_insert(pool, key, &list);
    oracle_list_free(&list);
}

oracle_ouroboros ouroboros_method(const char *preset, int32_t gamma, int32_t W, int32_t N,
                                  int32_t K)
{
    oracle_ouroboros m = {.gamma = gamma, .W = W, .N = N, .K = K};
    oracle_ouroboros_preset(&m, preset);
    return m;
}

oracle_request greedy_request(const int32_t *prompt, int32_t n, int32_t budget)
{
    return (oracle_request){
        .prompt = prompt, .n = n, .budget = budget, .eos = -1, .sampling = {0, 0, 1, 0}};
}

oracle_instance warm_instance(const oracle_ouroboros *m, int32_t V)
{
    oracle_instance x = {.warm = true, .holds = true, .V = V, .W = m->W, .N = m->N};
    memcpy(x.sw, m->sw, sizeof x.sw);
    x.pool.G = m->W;
    return x;
}

void random_pair_make(random_pair *m, uint64_t *s)
{
    const int32_t V = m->V = 2 + below(s, PAIR_V - 1), S = coin(s) ? V : V * V;
    const int32_t levels = 1 + below(s, 6), differ = below(s, 4), start = below(s, S);
    for (int32_t t = 0; t < V; t++) m->cls[t] = t;
    for (int32_t i = 0; i < S; i++) {
        const bool other = below(s, 8) < differ;
        const int32_t favourite = below(s, 3) ? (i + 1) % V : below(s, V);
        for (int32_t t = 0; t < V; t++) {
            m->next[i * V + t] = S == V ? t : i % V * V + t;
            m->logits[0][i * V + t] = below(s, levels) + 3 * (t == favourite);
            m->logits[1][i * V + t] = other ? below(s, 4) : m->logits[0][i * V + t];
        }
    }
    for (int32_t k = 0; k < 2; k++) {
        m->table[k] = (oracle_table){V, S, V, start, m->cls, m->next, m->logits[k]};
        m->lm[k] = (oracle_lm){V, oracle_table_logits, &m->table[k]};
    }
}

static void make_method(ouroboros_request *r)
{
    uint64_t *s = &r->state;
    oracle_ouroboros *m = &r->m;
    *m = ouroboros_method(coin(s) ? "paper" : "code", below(s, 10), 1 + below(s, 5),
                          2 + below(s, 4), below(s, 4));
    for (int32_t i = 0; i < OUR_SWITCHES; i++)
        if (below(s, 4) == 0)
            m->sw[i] = below(s, oracle_switch_values(&oracle_ouroboros_switch[i]));
    for (int32_t i = 0; i < PAIR_GIVEN; i++) r->given[i] = below(s, r->pair.V);
    m->given = r->given;
    m->given_n = PAIR_GIVEN;
}

static void fill_pool(ouroboros_request *r, oracle_pool *pool)
{
    uint64_t *s = &r->state;
    int32_t value[8];
    for (int32_t n = below(s, 40); n > 0; n--) {
        for (int32_t i = 0; i < r->m.N - 1; i++) value[i] = below(s, r->pair.V);
        pool_value(pool, below(s, r->pair.V), r->m.N - 1, value);
    }
}

void ouroboros_request_make(uint64_t number, ouroboros_request *r, oracle_instance *x)
{
    r->state = number;
    random_pair_make(&r->pair, &r->state);
    make_method(r);
    *x = warm_instance(&r->m, r->pair.V);
    if (coin(&r->state)) fill_pool(r, &x->pool);
    x->warm = below(&r->state, 4) > 0;
}

void ouroboros_request_next(ouroboros_request *r)
{
    uint64_t *s = &r->state;
    oracle_request *q = &r->q;
    *q = greedy_request(r->prompt, 1 + below(s, PAIR_PROMPT), 1 + below(s, 24));
    for (int32_t i = 0; i < PAIR_PROMPT; i++) r->prompt[i] = below(s, r->pair.V);
    q->seed = splitmix(s);
    if (below(s, 3)) q->eos = below(s, r->pair.V);
    if (below(s, 4) == 0) q->sampling.temperature = 0.5f;
    if (below(s, 5) == 0) q->positions = q->n + q->budget - 1 + below(s, 5);
    if (below(s, 5) == 0) q->rows = 1 + below(s, 20);
    r->both = (oracle_pair){&r->pair.lm[0], &r->pair.lm[1], 0, 0};
    if (below(s, 5) == 0) r->both.draft_positions = 1 + below(s, q->n + q->budget);
    if (below(s, 6) == 0) r->both.draft_rows = 1 + below(s, 30);
}
