/* law_sampler.c - see law.h: streams out of verify, stream and draw. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/frame/coins.h"
#include "conformance/checks/law/law.h"
#include "conformance/checks/law/law_speed.h"
#include "conformance/oracle/law/philox.h"
#include "conformance/stats/coupling.h"
#include "conformance/stats/logmath.h"

/* -- Randomness -------------------------------------------------------------------- */

void law_seed(law_random *g, uint64_t seed)
{
    *g = (law_random){.key = {(uint32_t)seed, (uint32_t)(seed >> 32)}, .taken = LAW_WORDS};
}

static void refill(law_random *g)
{
    for (int32_t i = 0; i < LAW_WORDS; i += 2, g->block++) {
        const uint32_t counter[4] = {(uint32_t)g->block, (uint32_t)(g->block >> 32), 17, 0};
        uint32_t w[4];
        oracle_philox(counter, g->key, w);
        g->word[i] = (uint64_t)w[3] << 32 | w[2];
        g->word[i + 1] = (uint64_t)w[1] << 32 | w[0];
    }
    g->taken = 0;
}

uint64_t law_word(law_random *g)
{
    if (g->taken == LAW_WORDS) refill(g);
    return g->word[g->taken++];
}

double law_unit(law_random *g, int32_t bits)
{
    const int64_t k = (int64_t)(law_word(g) >> (64 - bits)), unit = (int64_t)1 << (53 - bits);
    return (double)(k * unit) * 0x1p-53;
}

void law_alias_free(law_alias *a)
{
    free(a->keep);
    free(a->other);
    *a = (law_alias){0};
}

/* Vose's method: columns under the mean are filled up from columns above it. `left` has the
 * mass of each column times V; `stack` holds the short ones from below and the tall ones from
 * above. The masses sum to V, so what rounding strands at the end are columns of mass about 1.
 */
static void alias_row(const double *row, int32_t V, uint32_t *keep, int32_t *other,
                      double *left, int32_t *stack)
{
    int32_t shorts = 0, talls = V;
    for (int32_t t = 0; t < V; t++) {
        left[t] = row[t] * V;
        keep[t] = UINT32_MAX, other[t] = t;
        if (left[t] < 1)
            stack[shorts++] = t;
        else
            stack[--talls] = t;
    }
    while (shorts > 0 && talls < V) {
        int32_t low = stack[--shorts], high = stack[talls];
        keep[low] = (uint32_t)fmin(left[low] * 0x1p32, 0x1p32 - 1);
        other[low] = high;
        left[high] -= 1 - left[low];
        if (left[high] >= 1) continue;
        talls++;
        stack[shorts++] = high;
    }
}

bool law_alias_init(law_alias *a, const double *rows, int32_t count, int32_t V)
{
    size_t n = (size_t)count * (size_t)V;
    *a = (law_alias){.V = V};
    a->keep = malloc(n * sizeof *a->keep);
    a->other = malloc(n * sizeof *a->other);
    double *left = malloc((size_t)V * sizeof *left);
    int32_t *stack = malloc((size_t)V * sizeof *stack);
    bool ok = a->keep && a->other && left && stack;
    for (size_t at = 0; ok && at < n; at += (size_t)V)
        alias_row(rows + at, V, a->keep + at, a->other + at, left, stack);
    free(left);
    free(stack);
    if (!ok) law_alias_free(a);
    return ok;
}

/* -- Claims ------------------------------------------------------------------------ */

static const char *missing_claim(const iut_claims *m, law_op op)
{
    if (m->uniforms == 0) return "the source of uniforms is not declared";
    if (op == LAW_DRAW) return NULL;
    if (m->rule == 0) return "the acceptance rule is not declared";
    if (m->rule == IUT_RULE_NOT_LOSSLESS) return "its rule is declared not lossless";
    return NULL;
}

bool law_claimed(const check_case *c, const client *subject, law_op op, char *why,
                 size_t why_size)
{
    static const iut_op need[] = {OP_VERIFY, OP_STREAM, OP_DRAW};
    const iut_claims *m = client_claims(subject);
    const char *missing = missing_claim(m, op);
    if (!check_has(subject, need[op], why, why_size)) return false;
    if (missing)
        snprintf(why, why_size, "%s", missing);
    else if (m->max_vocab > 0 && c->V > m->max_vocab)
        snprintf(why, why_size, "max_vocab is %d", m->max_vocab);
    else if (op != LAW_DRAW && m->max_gamma > 0 && c->gamma > m->max_gamma)
        snprintf(why, why_size, "max_gamma is %d", m->max_gamma);
    else
        return true;
    return false;
}

/* -- Opening ----------------------------------------------------------------------- */

/* Arrays of one call, shaped as in iut.h, and where each stream stands. */
struct law_room {
    int32_t *len, *state, *draft, *out, *out_len, *accepted;
    double *u;
    int32_t *who;       /* [n] stream of a case */
    int32_t *have, *at; /* [n] tokens so far, state after them */
};

static void room_free(struct law_room *m)
{
    if (!m) return;
    free(m->len);
    free(m->state);
    free(m->draft);
    free(m->out);
    free(m->out_len);
    free(m->accepted);
    free(m->u);
    free(m->who);
    free(m->have);
    free(m->at);
    free(m);
}

static struct law_room *room_new(size_t n, size_t gamma, size_t k)
{
    struct law_room *m = calloc(1, sizeof *m);
    if (!m) return NULL;
    const size_t i = sizeof(int32_t);
    m->len = malloc(n * i);
    m->state = malloc(n * (gamma + 1) * i);
    m->draft = malloc(n * (gamma + 1) * i);
    m->out = malloc(n * (gamma + 1 > k ? gamma + 1 : k) * i);
    m->out_len = malloc(n * i);
    m->accepted = malloc(n * k * i);
    m->u = malloc(n * (gamma + 2) * sizeof *m->u);
    m->who = malloc(n * i);
    m->have = malloc(n * i);
    m->at = malloc(n * i);
    if (m->len && m->state && m->draft && m->out && m->out_len && m->accepted && m->u &&
        m->who && m->have && m->at)
        return m;
    room_free(m);
    return NULL;
}

int32_t law_bits(const iut_claims *m)
{
    int32_t bits = m->uniform_bits == 0 ? 24 : m->uniform_bits > 53 ? 53 : m->uniform_bits;
    bool fine = m->arithmetic == IUT_ARITH_CANONICAL || m->arithmetic == IUT_ARITH_F64;
    return m->uniforms == IUT_UNIFORMS_SUPPLIED && !fine && bits > 24 ? 24 : bits;
}

static law_round verify_round, draw_round;

bool law_sampler_open(law_sampler *s, const check_case *c, const check_context *x,
                      const panel *a, law_op op, int32_t k, check_result *r)
{
    return law_sampler_open_for(s, c, x, a, op, LAW_CHUNK, k, r);
}

/* Where it is known what is accepted. False: no memory. */
static bool open_speed(law_sampler *s)
{
    const iut_claims *m = client_claims(s->x->iut);
    if (s->gamma == 0 || !law_speed_known(s->a, s->op, m->rule, m->drafts)) return true;
    s->speed = calloc(1, sizeof *s->speed);
    return s->speed && law_speed_open(s->speed, s->a, s->op, m->rule, m->drafts);
}

bool law_sampler_open_for(law_sampler *s, const check_case *c, const check_context *x,
                          const panel *a, law_op op, int32_t n, int32_t k, check_result *r)
{
    size_t S = (size_t)a->view.S;
    if (a->view.S > LAW_STATES) {
        result_set(r, STATE_ERROR, "the panel has %d states, a law case takes %d at most",
                   a->view.S, LAW_STATES);
        return false;
    }
    *s = (law_sampler){.x = x,
                       .a = a,
                       .op = op,
                       .gamma = c->gamma,
                       .k = k,
                       .eos = -1,
                       .bits = law_bits(client_claims(x->iut)),
                       .coins = coins_of_verify(client_claims(x->iut)),
                       .round = op == LAW_VERIFY ? verify_round : draw_round,
                       .seed = check_seed(x, c, 1)};
    law_seed(&s->g, check_seed(x, c, 2));
    law_seed(&s->stale, check_seed(x, c, 2) + 1);
    s->room = room_new((size_t)n, (size_t)c->gamma, (size_t)k);
    s->trials = calloc(S, sizeof *s->trials);
    s->first = calloc(S, sizeof *s->first);
    s->accepts = calloc((size_t)c->gamma + 1, sizeof *s->accepts);
    bool ok = s->room && s->trials && s->first && s->accepts && open_speed(s) &&
              ((op != LAW_VERIFY && op != LAW_TREE) || law_alias_init(&s->q, a->q64, a->view.S, a->view.V));
    if (!ok) result_set(r, STATE_ERROR, "out of memory");
    return ok && result_call(r, x, "panel", client_panel(x->iut, &a->view));
}

void law_sampler_close(law_sampler *s)
{
    room_free(s->room);
    law_alias_free(&s->q);
    if (s->speed) law_speed_close(s->speed);
    free(s->speed);
    free(s->trials);
    free(s->first);
    free(s->accepts);
}

/* -- Sampling ---------------------------------------------------------------------- */

int32_t law_have(const law_sampler *s, int32_t i)
{
    return s->room->have[i];
}

int32_t law_at(const law_sampler *s, int32_t i)
{
    return s->room->at[i];
}

bool law_append(law_sampler *s, int32_t i, int32_t token, int32_t *tokens, check_result *r)
{
    struct law_room *m = s->room;
    int32_t state = m->at[i], position = m->have[i];
    if (token < 0 || token >= s->a->view.V) {
        result_set(r, STATE_FAIL, "token %d at position %d is no id below V = %d (LAY-01)",
                   token, position, s->a->view.V);
        return false;
    }
    if (panel_p(s->a, state)[token] == 0) {
        result_set(
            r, STATE_FAIL,
            "impossible token: %d at position %d, where its target probability is exactly 0 "
            "(panel state %d) (LAW-05)",
            token, position, state);
        return false;
    }
    tokens[i * s->k + position] = token;
    m->have[i]++;
    m->at[i] = panel_next(s->a, state, token);
    return true;
}

/* Case j: stream i verifies `len` drafts of the suite. */
static void write_case(law_sampler *s, int32_t j, int32_t i, int32_t len, bool supplied)
{
    struct law_room *m = s->room;
    int32_t gamma = s->gamma, *state = m->state + j * (gamma + 1),
            *draft = m->draft + j * gamma;
    double *u = m->u + j * (gamma + 2);
    m->who[j] = i;
    m->len[j] = len;
    state[0] = m->at[i];
    for (int32_t d = 0; d < gamma; d++) {
        draft[d] = law_alias_draw(&s->q, state[d], d < len ? &s->g : &s->stale);
        state[d + 1] = panel_next(s->a, state[d], draft[d]);
    }
    for (int32_t d = 0; supplied && d < gamma + 2; d++) u[d] = law_unit(&s->g, s->bits);
    if (supplied && s->coins == IUT_COINS_ONE) u[gamma + 1] = u[gamma];
}

static void count_accepts(law_sampler *s, int32_t j, bool opening)
{
    const struct law_room *m = s->room;
    int32_t gamma = s->gamma, state = m->state[j * (gamma + 1)];
    const int32_t *draft = m->draft + j * gamma, *out = m->out + j * (gamma + 1);
    if (m->len[j] == 0) return;
    bool one = out[0] == draft[0];
    s->trials[state]++;
    s->first[state] += one;
    if (!opening) return;
    s->accepts[m->out_len[j] - 1]++;
    if (gamma < 2) return;
    s->trials2++;
    s->first2 += one && m->out_len[j] >= 2 && out[1] == draft[1];
}

/* A step examines its drafts up to the first that it refuses. */
static void count_speed(law_sampler *s, int32_t j)
{
    const struct law_room *m = s->room;
    const int32_t accepted = m->out_len[j] - 1, *state = m->state + j * (s->gamma + 1);
    for (int32_t d = 0; s->speed && d < m->len[j] && d <= accepted; d++)
        law_speed_examined(s->speed, s->asked + m->who[j], state[d], d < accepted);
}

static bool read_case(law_sampler *s, int32_t j, bool opening, int32_t *tokens, check_result *r)
{
    const struct law_room *m = s->room;
    const int32_t *out = m->out + j * (s->gamma + 1), i = m->who[j];
    int32_t len = m->out_len[j];
    if (len < 1 || len > m->len[j] + 1) {
        result_set(r, STATE_FAIL, "a step of %d drafts emitted %d tokens, not 1 .. %d (BON-02)",
                   m->len[j], len, m->len[j] + 1);
        return false;
    }
    for (int32_t t = 0; t < len && m->have[i] < s->k; t++)
        if (!law_append(s, i, out[t], tokens, r)) return false;
    count_accepts(s, j, opening);
    count_speed(s, j);
    return true;
}

static bool ask_verify(law_sampler *s, int32_t cases, int32_t position, bool supplied,
                       check_result *r)
{
    struct law_room *m = s->room;
    memset(m->out, 0xff, (size_t)cases * (size_t)(s->gamma + 1) * sizeof *m->out);
    iut_verify_batch b = {.size = sizeof b,
                          .n = cases,
                          .gamma = s->gamma,
                          .len = m->len,
                          .state = m->state,
                          .draft = m->draft,
                          .u = supplied ? m->u : NULL,
                          .seed = s->seed,
                          .position = (uint64_t)position,
                          .out = m->out,
                          .out_len = m->out_len,
                          .coins = s->coins};
    return result_call(r, s->x, "verify", client_verify(s->x->iut, &b));
}

/* One call for all streams that have `position` tokens: a call has one stream position. Seeded
 * uniforms belong to a stream, whose case must keep its place: then all streams go along. */
static bool verify_round(law_sampler *s, int32_t n, int32_t position, int32_t *tokens,
                         check_result *r)
{
    struct law_room *m = s->room;
    uint8_t source = client_claims(s->x->iut)->uniforms;
    bool seeded = source == IUT_UNIFORMS_SEEDED, supplied = source == IUT_UNIFORMS_SUPPLIED;
    int32_t cases = 0;
    for (int32_t i = 0; i < n; i++)
        if (seeded || m->have[i] == position)
            write_case(s, cases++, i, m->have[i] == position ? s->gamma : 0, supplied);
    if (cases == 0) return true;
    if (!ask_verify(s, cases, position, supplied, r)) return false;
    for (int32_t j = 0; j < cases; j++)
        if (m->have[m->who[j]] == position && !read_case(s, j, position == 0, tokens, r))
            return false;
    return true;
}

static bool draw_round(law_sampler *s, int32_t n, int32_t position, int32_t *tokens,
                       check_result *r)
{
    struct law_room *m = s->room;
    bool supplied = client_claims(s->x->iut)->uniforms == IUT_UNIFORMS_SUPPLIED;
    for (int32_t i = 0; supplied && i < n; i++) m->u[i] = law_unit(&s->g, s->bits);
    memset(m->out, 0xff, (size_t)n * sizeof *m->out);
    iut_draw_batch b = {.size = sizeof b,
                        .n = n,
                        .state = m->at,
                        .u = supplied ? m->u : NULL,
                        .seed = s->seed,
                        .position = (uint64_t)position,
                        .token = m->out};
    if (!result_call(r, s->x, "draw", client_draw(s->x->iut, &b))) return false;
    for (int32_t i = 0; i < n; i++)
        if (!law_append(s, i, m->out[i], tokens, r)) return false;
    return true;
}

/* A place of a stream without an end of sequence: the step that an end cuts may be told without the draft that ended
 * it, and what is told then has another law. `room`: there may be a draft. */
static void count_draft(law_sampler *s, int32_t i, int32_t state, int32_t token, bool room, bool accepted)
{
    if (room) law_speed_examined(s->speed, s->asked + i, state, accepted);
    if (accepted) law_speed_accepted(s->speed, s->asked + i, state, token);
}

/* Accept counts of a stream, where the IUT tells them: `accepted` ends with a -1 or its last
 * step. */
static bool read_accepted(law_sampler *s, int32_t i, int32_t state, const int32_t *tokens,
                          check_result *r)
{
    const int32_t *accepted = s->room->accepted + i * s->k, length = s->room->have[i];
    int32_t position = 0, j = 0;
    for (; position < length && accepted[j] != -1; j++) {
        if (accepted[j] < 0 || accepted[j] > s->gamma) {
            result_set(r, STATE_FAIL, "step %d is said to have accepted %d of %d drafts", j,
                       accepted[j], s->gamma);
            return false;
        }
        if (s->gamma > 0) s->trials[state]++, s->first[state] += accepted[j] > 0;
        if (j == 0 && !s->drawn) {
            s->accepts[accepted[j]]++;
            if (s->gamma >= 2) s->trials2++, s->first2 += accepted[j] > 1;
        }
        const int32_t room = length - position - 1, drafts = room < s->gamma ? room : s->gamma;
        for (int32_t t = 0; t <= accepted[j] && position < length; t++, position++) {
            const int32_t token = tokens[i * s->k + position];
            if (s->speed && s->eos < 0) count_draft(s, i, state, token, t < drafts, t < accepted[j]);
            state = panel_next(s->a, state, token);
        }
    }
    if (!s->drawn || j == 0) return true;
    if (position == length && (j == s->k || accepted[j] == -1)) return true;
    result_set(r, STATE_FAIL, "its steps do not end where a stream of %d tokens does (BON-02)",
               length);
    return false;
}

/* A stream ends with its budget or, before that, with its first end of sequence. */
static bool ends_where_it_must(const law_sampler *s, int32_t i, check_result *r)
{
    const int32_t *out = s->room->out + i * s->k, said = s->room->out_len[i];
    int32_t length = 0;
    while (length < s->k && length < said)
        if (out[length++] == s->eos && s->eos >= 0) break;
    const bool ends = length == s->k || (s->eos >= 0 && length > 0 && out[length - 1] == s->eos);
    if (!ends || said != length) {
        result_set(r, STATE_FAIL, "a stream with a budget of %d tokens has %d%s (STOP-02)", s->k,
                   said, s->eos >= 0 ? ", and its end of sequence is elsewhere (STOP-01)" : "");
        return false;
    }
    for (int32_t t = length; t < s->k; t++) {
        if (out[t] == -1) continue;
        result_set(r, STATE_FAIL, "token %d is written behind the end of a stream (STOP-01)",
                   out[t]);
        return false;
    }
    return true;
}

static bool read_stream(law_sampler *s, int32_t i, int32_t *tokens, check_result *r)
{
    const struct law_room *m = s->room;
    const int32_t start = m->at[i];
    if (!ends_where_it_must(s, i, r)) return false;
    for (int32_t t = 0; t < m->out_len[i]; t++)
        if (!law_append(s, i, m->out[i * s->k + t], tokens, r)) return false;
    return read_accepted(s, i, start, tokens, r);
}

static bool stream_round(law_sampler *s, int32_t n, int32_t *tokens, check_result *r)
{
    struct law_room *m = s->room;
    size_t size = (size_t)n * (size_t)s->k;
    memset(m->out, 0xff, size * sizeof *m->out);
    memset(m->accepted, 0xff, size * sizeof *m->accepted);
    iut_stream_batch b = {.size = sizeof b,
                          .n = n,
                          .gamma = s->gamma,
                          .k = s->k,
                          .eos = s->eos,
                          .start = m->at,
                          .seed = s->seed,
                          .out = m->out,
                          .out_len = m->out_len,
                          .accepted = m->accepted};
    if (!result_call(r, s->x, "stream", client_stream(s->x->iut, &b))) return false;
    for (int32_t i = 0; i < n; i++)
        if (!read_stream(s, i, tokens, r)) return false;
    return true;
}

bool law_sample(law_sampler *s, int32_t n, int32_t *tokens, check_result *r)
{
    memset(s->room->have, 0, (size_t)n * sizeof *s->room->have);
    memset(s->room->at, 0, (size_t)n * sizeof *s->room->at);
    bool ok = true;
    if (s->op == LAW_STREAM)
        ok = stream_round(s, n, tokens, r);
    else
        for (int32_t i = 0; ok && i < s->k; i++)
            ok = s->round(s, n, i, tokens, r);
    s->seed += (uint64_t)n;
    s->asked += n;
    return ok;
}

/* -- Calls of a drawn shape -------------------------------------------------------- */

/* Drafts of the next step. */
static int32_t drafts_of(law_sampler *s, bool ragged)
{
    return ragged ? (int32_t)(law_word(&s->g) % (uint64_t)(s->gamma + 1)) : s->gamma;
}

/* One call with all n streams, so that none changes its place. Seeded uniforms belong to one
 * position: then it is the turn of the streams that stand there. */
static bool verify_all(law_sampler *s, int32_t n, int32_t position, bool ragged,
                       int32_t *tokens, check_result *r)
{
    struct law_room *m = s->room;
    const uint8_t source = client_claims(s->x->iut)->uniforms;
    const bool seeded = source == IUT_UNIFORMS_SEEDED;
    bool any = false;
    for (int32_t i = 0; i < n; i++) {
        const bool turn = seeded ? m->have[i] == position : m->have[i] < s->k;
        write_case(s, i, i, turn ? drafts_of(s, ragged) : 0,
                   source == IUT_UNIFORMS_SUPPLIED);
        if (!turn) m->who[i] = -1;
        any |= turn;
    }
    if (!any) return true;
    if (!ask_verify(s, n, seeded ? position : 0, source == IUT_UNIFORMS_SUPPLIED, r))
        return false;
    for (int32_t i = 0; i < n; i++)
        if (m->who[i] >= 0 && !read_case(s, i, false, tokens, r)) return false;
    return true;
}

bool law_sample_call(law_sampler *s, const law_call *call, int32_t *tokens, int32_t *length,
                     check_result *r)
{
    struct law_room *m = s->room;
    bool ok = true;
    s->drawn = true;
    s->gamma = call->gamma, s->k = call->k;
    s->eos = s->op == LAW_STREAM ? call->eos : -1;
    memset(m->have, 0, (size_t)call->n * sizeof *m->have);
    memcpy(m->at, call->start, (size_t)call->n * sizeof *m->at);
    if (s->op == LAW_STREAM)
        ok = stream_round(s, call->n, tokens, r);
    else
        for (int32_t i = 0; ok && i < s->k; i++)
            ok = s->op == LAW_VERIFY ? verify_all(s, call->n, i, call->ragged, tokens, r)
                                     : draw_round(s, call->n, i, tokens, r);
    s->seed += (uint64_t)call->n;
    s->asked += call->n;
    memcpy(length, m->have, (size_t)call->n * sizeof *length);
    return ok;
}

/* -- Coupling bound ---------------------------------------------------------------- */

enum { ENUMERABLE = 1024 };

/* STAT-05. In `stream` the one-hot and the match rule judge a draft by p alone. One that does
 * not depend on the target's draw, like the argmax of q, is that draw with probability max p at
 * most; a draft for match may also be drawn from q by the same uniforms. */
static double bound(const law_sampler *s, double overlap, double peak)
{
    const uint8_t rule = client_claims(s->x->iut)->rule;
    if (s->op != LAW_STREAM) return overlap;
    if (rule == IUT_RULE_ONEHOT) return peak;
    return rule == IUT_RULE_MATCH ? fmax(overlap, peak) : overlap;
}

double law_bound(const law_sampler *s, int32_t state)
{
    return bound(s, panel_overlap(s->a, state), panel_peak(s->a, state));
}

double law_bound2(const law_sampler *s, int32_t state)
{
    return bound(s, panel_overlap2(s->a, state), panel_peak2(s->a, state));
}

/* The steps of one token and those of two are two e-processes on the same draws: averaged. */
double law_coupling(const law_sampler *s)
{
    double most[LAW_STATES] = {0}, log_e[2] = {0, 0};
    int32_t S = s->a->view.S;
    for (int32_t i = 0; i < S; i++) most[i] = law_bound(s, i);
    log_e[0] = st_coupling_log_e(most, s->first, s->trials, S);
    if (s->trials2 == 0 || s->a->view.V > ENUMERABLE) return log_e[0];
    double most2 = law_bound2(s, 0);
    log_e[1] = st_coupling_log_e(&most2, &s->first2, &s->trials2, 1);
    return st_log_mean(log_e, NULL, 2);
}
