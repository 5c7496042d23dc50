/* subject.c - the ABI over the rules: claims, panels, batches (subject.h). States, drafts and
 * lengths of a batch are checked here, and that a panel has its arrays. The sizes S and C and
 * the entries of cls and next are trusted: the worker has checked them. */
#include "conformance/subjects/mutants/chain/subject.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/subjects/mutants/chain/served.h"
#include "conformance/subjects/mutants/chain/source.h"
#include "ref/num/fixed.h"

struct subject {
    const char *name;
    model m;
    bool loaded;
    bool *bad_p, *bad_q; /* [S] rows that nothing may be drawn from */
    uint32_t calls;
    char error[240];
};

/* clang-format off */
static const setting settings[SETTING_COUNT] = {
#define SETTING(name, uniforms, bits, input, map, rule, arithmetic, manner) \
    [SETTING_##name] = {#name, IUT_UNIFORMS_##uniforms, bits, IUT_FROM_##input, IUT_MAP_##map, \
                        IUT_RULE_##rule, IUT_ARITH_##arithmetic, \
                        MANNER_##manner},
#include "conformance/subjects/mutants/faults/settings.def"
#undef SETTING
};
/* clang-format on */

const setting *setting_of(setting_name name)
{
    return &settings[name];
}

static subject *self(iut *x)
{
    return (subject *)x;
}

iut_status subject_fail(subject *a, iut_status status, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(a->error, sizeof a->error, format, list);
    va_end(list);
    return status;
}

/* ---- Life ---------------------------------------------------------------------------- */

iut *subject_create(const char *name, variant v, char *error, size_t error_size)
{
    subject *a = calloc(1, sizeof *a);
    if (!a) {
        snprintf(error, error_size, "mutant %s: out of memory", name);
        return NULL;
    }
    a->name = name;
    a->m.fault = v.fault;
    a->m.set = settings[v.setting];
    a->m.filters = served_filters_of(a->m.set.manner);
    a->m.filters.arithmetic = a->m.set.arithmetic;
    return (iut *)a;
}

static void unload(subject *a)
{
    model *m = &a->m;
    if (m->bonus != m->p) free(m->bonus);
    if (m->drafted != m->q) free(m->drafted);
    free(m->p), free(m->q), free(m->p_logit), free(m->q_logit);
    free(m->cls), free(m->next), free(m->scratch), free(a->bad_p), free(a->bad_q);
    const model empty = {.fault = m->fault, .set = m->set, .filters = m->filters};
    *m = empty;
    a->bad_p = a->bad_q = NULL;
    a->loaded = false;
}

void subject_free(subject *a)
{
    if (!a) return;
    unload(a);
    free(a);
}

static void destroy(iut *x)
{
    subject_free(self(x));
}

static const char *last_error(iut *x)
{
    return self(x)->error;
}

static iut_status claims(iut *x, iut_claims *c)
{
    const subject *a = self(x);
    const setting *s = &a->m.set;
    const bool token = s->rule == IUT_RULE_TOKEN;
    const iut_claims all = {
        .size = sizeof all,
        .name = a->name,
        .version = "1",
        .device = "cpu",
        .uniforms = s->uniforms,
        .input = s->input,
        .map = s->map,
        .rule = s->rule,
        .arithmetic = s->arithmetic,
        .uniform_bits = s->bits,
        .tie = s->manner == MANNER_TIES_LAST ? IUT_TIE_LAST : IUT_TIE_FIRST,
        .q_zero = !token ? 0 : s->manner == MANNER_Q_ZERO_REJECT ? IUT_REJECT : IUT_ACCEPT,
        .bad_row = IUT_ERROR,
        .bad_draft = s->manner == MANNER_BAD_DRAFT_REJECT ? IUT_REJECT : IUT_ERROR,
        .empty = !token                              ? 0
                 : s->manner == MANNER_EMPTY_OTHER ? IUT_EMPTY_OTHER
                                                   : IUT_EMPTY_FROM_P,
        .seed_identical = s->rule == IUT_RULE_MATCH && s->uniforms != IUT_UNIFORMS_OWN,
        .greedy_identical = s->manner != MANNER_RELAXED,
        .max_gamma = s->manner == MANNER_MAX_GAMMA_1 ? 1 : RULES_MAX_GAMMA,
        .max_vocab = s->map == IUT_MAP_GUMBEL ? 1024 : 0,
        .coins = s->manner == MANNER_ONE_COIN ? IUT_COINS_ONE : s->manner == MANNER_RACE ? IUT_COINS_RACE : 0,
        .order = a->m.filters.order,
        .top_k_ties = a->m.filters.ties_kept ? IUT_TIES_KEPT : 0,
        .drafts = IUT_DRAFTS_SAMPLED,
        .seed_bits = s->uniforms == IUT_UNIFORMS_OWN ? 0 : s->manner == MANNER_SEED_32 ? 32 : 64,
    };
    *c = all;
    return IUT_OK;
}

/* ---- Panel --------------------------------------------------------------------------- */

static void *copy_of(const void *data, size_t count, size_t size)
{
    void *copy = malloc(count * size);
    if (copy) memcpy(copy, data, count * size);
    return copy;
}

/* Served rows of all states, from the logits. */
static iut_status serve_all(subject *a, const float *logits, const iut_sampling *s,
                            bool of_draft, float *rows, bool *bad)
{
    const model *m = &a->m;
    for (int32_t i = 0; i < m->S; i++) {
        const size_t at = (size_t)i * (size_t)m->V;
        const served_status st = served_row(m->fault, &m->filters, logits + at, m->V, s, of_draft, rows + at);
        if (st == SERVED_NO_MEMORY) return IUT_NO_MEMORY;
        bad[i] = st == SERVED_BAD_ROW;
    }
    return IUT_OK;
}

/* DIST-01, for rows that came as probabilities: each entry in [0, 1], some weight above 0. */
static void mark_bad(const model *m, const float *rows, bool *bad)
{
    for (int32_t i = 0; i < m->S; i++) {
        const float *row = rows + (size_t)i * (size_t)m->V;
        bool within = true, some = false;
        for (int32_t t = 0; t < m->V && within; t++) {
            within = row[t] >= 0 && row[t] <= 1;
            some |= within && as_weight(row[t]) > 0;
        }
        bad[i] = !within || !some;
    }
}

static float median_of(const float *row, int32_t V)
{
    /* The largest threshold that keeps at least half of the tokens, by counting. */
    float best = 0;
    for (int32_t t = 0; t < V && t < 256; t++) {
        int32_t above = 0;
        for (int32_t j = 0; j < V; j++) above += row[j] >= row[t];
        if (2 * above >= V && row[t] > best) best = row[t];
    }
    return best;
}

/* The rows that drafts are really drawn from, under the faults of the draft's law. */
static void distort_drafts(model *m)
{
    for (int32_t i = 0; i < m->S; i++) {
        float *row = m->drafted + (size_t)i * (size_t)m->V;
        const float half = fault(m->fault, DRAFT_TOPK) ? median_of(row, m->V) : 0;
        for (int32_t t = 0; t < m->V; t++) {
            uint32_t bits;
            if (fault(m->fault, DRAFT_T07)) row[t] = powf(row[t], 1 / 0.7f);
            if (fault(m->fault, DRAFT_TOPK) && row[t] < half) row[t] = 0;
            if (!fault(m->fault, DRAFT_BF16)) continue;
            memcpy(&bits, &row[t], sizeof bits);
            bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
            memcpy(&row[t], &bits, sizeof bits);
        }
    }
}

static iut_status fill_rows(subject *a, const iut_panel *panel)
{
    model *m = &a->m;
    const size_t cells = (size_t)m->S * (size_t)m->V;
    if (m->set.input == IUT_FROM_PROBS) {
        mark_bad(m, m->p, a->bad_p);
        mark_bad(m, m->q, a->bad_q);
    } else {
        iut_sampling target = panel->target;
        if (fault(m->fault, MINP_BONUS_ONLY)) target.min_p = 0;
        if (serve_all(a, m->p_logit, &target, false, m->p, a->bad_p) ||
            serve_all(a, m->q_logit, &panel->draft, true, m->q, a->bad_q))
            return IUT_NO_MEMORY;
    }
    m->bonus = m->p;
    m->drafted = m->q;
    const fault_point f = m->fault;
    if (fault(f, MINP_BONUS_ONLY)) {
        m->bonus = copy_of(m->p, cells, sizeof *m->bonus);
        if (!m->bonus || serve_all(a, m->p_logit, &panel->target, false, m->bonus, a->bad_p))
            return IUT_NO_MEMORY;
    }
    if (fault(f, DRAFT_T07) || fault(f, DRAFT_TOPK) || fault(f, DRAFT_BF16)) {
        m->drafted = copy_of(m->q, cells, sizeof *m->drafted);
        if (!m->drafted) return IUT_NO_MEMORY;
        distort_drafts(m);
    }
    return IUT_OK;
}

/* The name of an array that the panel lacks, or NULL. */
static const char *missing_array(const iut_panel *panel)
{
    if (!panel->cls) return "cls";
    if (!panel->next) return "next";
    if (!panel->p) return "p";
    if (!panel->q) return "q";
    if (!panel->p_logit) return "p_logit";
    return panel->q_logit ? NULL : "q_logit";
}

static iut_status load(subject *a, const iut_panel *panel)
{
    model *m = &a->m;
    const size_t S = (size_t)panel->S, V = (size_t)panel->V, C = (size_t)panel->C, rows = S * V;
    const char *wrong = served_bad_parameter(m->fault, &panel->target);
    if (!wrong) wrong = served_bad_parameter(m->fault, &panel->draft);
    if (wrong) return subject_fail(a, IUT_BAD_INPUT, "panel: %s is out of range", wrong);
    if (panel->V < 1 || panel->V >= 1 << 20)
        return subject_fail(a, IUT_BAD_INPUT, "panel: V = %d, give 1 to 2^20 - 1", (int)panel->V);
    const char *missing = missing_array(panel);
    if (missing) return subject_fail(a, IUT_BAD_INPUT, "panel: the array %s is missing", missing);
    if (fault(m->fault, LOADS_SHARE)) a->calls = 0;
    if (fault(m->fault, STALE_PANEL) && a->loaded && panel->S == m->S && panel->V == m->V)
        return IUT_OK;
    unload(a);
    m->S = panel->S, m->V = panel->V, m->C = panel->C;
    m->target = panel->target, m->draft = panel->draft;
    m->cls = copy_of(panel->cls, V, sizeof *m->cls);
    m->next = copy_of(panel->next, S * C, sizeof *m->next);
    m->p = copy_of(panel->p, rows, sizeof *m->p);
    m->q = copy_of(panel->q, rows, sizeof *m->q);
    m->p_logit = copy_of(panel->p_logit, rows, sizeof *m->p_logit);
    m->q_logit = copy_of(panel->q_logit, rows, sizeof *m->q_logit);
    m->scratch = calloc(V, sizeof *m->scratch);
    a->bad_p = calloc(S, sizeof *a->bad_p);
    a->bad_q = calloc(S, sizeof *a->bad_q);
    if (!m->cls || !m->next || !m->p || !m->q || !m->p_logit || !m->q_logit || !m->scratch ||
        !a->bad_p || !a->bad_q || fill_rows(a, panel) != IUT_OK) {
        unload(a);
        return subject_fail(a, IUT_NO_MEMORY, "panel: out of memory");
    }
    a->loaded = true;
    return IUT_OK;
}

static iut_status load_panel(iut *x, const iut_panel *panel)
{
    return load(self(x), panel);
}

/* Is `state` one whose row can be used? DIST-01: the error names the row. */
static iut_status check_state(subject *a, int32_t state, const bool *bad, const char *whose)
{
    if (!a->loaded) return subject_fail(a, IUT_BAD_INPUT, "load a panel first");
    if (state < 0 || state >= a->m.S)
        return subject_fail(a, IUT_BAD_INPUT, "state %d: the panel has %d", (int)state, (int)a->m.S);
    if (bad && bad[state])
        return subject_fail(a, IUT_BAD_INPUT, "the %s row of state %d is no distribution", whose,
                    (int)state);
    return IUT_OK;
}

iut_status subject_check_state(subject *a, int32_t state, bool of_draft)
{
    return of_draft ? check_state(a, state, a->bad_q, "draft") : check_state(a, state, a->bad_p, "target");
}

uint32_t subject_next_call(subject *a)
{
    return ++a->calls;
}

/* ---- Rows ---------------------------------------------------------------------------- */

static iut_status served(iut *x, int32_t n, const int32_t *state, int32_t of_draft, float *prob)
{
    subject *a = self(x);
    const model *m = &a->m;
    for (int32_t i = 0; i < n; i++) {
        const iut_status st = check_state(a, state[i], NULL, "");
        if (st != IUT_OK) return st;
        const float *logits = rule_row(m, of_draft ? m->q_logit : m->p_logit, state[i]);
        const served_status done =
            served_row(m->fault, &m->filters, logits, m->V, of_draft ? &m->draft : &m->target, of_draft != 0,
                       prob + (size_t)i * (size_t)m->V);
        if (done == SERVED_NO_MEMORY) return subject_fail(a, IUT_NO_MEMORY, "served: out of memory");
        if (done == SERVED_BAD_ROW)
            return subject_fail(a, IUT_BAD_INPUT,
                        "served: the logits of state %d have a NaN or +inf, or "
                        "no finite value",
                        (int)state[i]);
    }
    return IUT_OK;
}

static iut_status residual(iut *x, int32_t n, const int32_t *state, float *r)
{
    subject *a = self(x);
    model *m = &a->m;
    for (int32_t i = 0; i < n; i++) {
        iut_status st = check_state(a, state[i], a->bad_p, "target");
        if (st == IUT_OK) st = check_state(a, state[i], a->bad_q, "draft");
        if (st != IUT_OK) return st;
        rule_residual(m, rule_row(m, m->p, state[i]), rule_row(m, m->q, state[i]), m->scratch);
        memcpy(r + (size_t)i * (size_t)m->V, m->scratch, (size_t)m->V * sizeof *r);
    }
    return IUT_OK;
}

/* ---- Batches ------------------------------------------------------------------------- */

/* The source of a batch; a call counts once, so that its own uniforms never come again. */
static source source_of(subject *a, const double *u, uint64_t seed, uint64_t position,
                        bool stream)
{
    source s = {.fault = a->m.fault,
                .uniforms = a->m.set.uniforms,
                .bits = a->m.set.bits,
                .match = a->m.set.rule == IUT_RULE_MATCH,
                .u = u,
                .seed = seed,
                .position = position,
                .short_seed = a->m.set.manner == MANNER_SEED_32 || fault(a->m.fault, SEED_CUT)};
    if (stream && s.uniforms == IUT_UNIFORMS_SUPPLIED) s.uniforms = IUT_UNIFORMS_SEEDED;
    if (s.uniforms == IUT_UNIFORMS_OWN) s.seed = ++a->calls;
    source_init(&s);
    return s;
}

/* Case i of n: seeds count up from that of the batch. */
static void next_case(source *s, uint64_t seed, int32_t i, int32_t n)
{
    source_forget(s);
    s->row = (uint32_t)i;
    if (s->uniforms != IUT_UNIFORMS_SEEDED) return;
    s->seed = seed + (uint32_t)i;
    if (s->short_seed) s->seed = (uint32_t)s->seed;
    if (fault(s->fault, SEED_IGNORED)) s->seed = (uint32_t)i;
    if (fault(s->fault, SEED_BY_PLACE)) s->seed = seed + (uint32_t)(n - 1 - i);
}

static iut_status draw(iut *x, iut_draw_batch *b)
{
    subject *a = self(x);
    model *m = &a->m;
    source s = source_of(a, b->u, b->seed, b->position, false);
    if (s.uniforms == IUT_UNIFORMS_SUPPLIED && !b->u)
        return subject_fail(a, IUT_BAD_INPUT, "draw: uniforms are to be supplied");
    s.gamma = -1;
    for (int32_t i = 0; i < b->n; i++) {
        const iut_status st = check_state(a, b->state[i], a->bad_p, "target");
        if (st != IUT_OK) return st;
        const float *row = rule_row(m, m->p, b->state[i]);
        next_case(&s, b->seed, i, b->n);
        if (b->u) s.u = b->u + i;
        if (fault(m->fault, DRAW_SHARPENED)) {
            for (int32_t t = 0; t < m->V; t++) m->scratch[t] = row[t] * row[t];
            row = m->scratch;
        }
        b->token[i] = rule_draw(m, &s.lane, lane_uniform(LANE_DRAW, 0, 0), row);
    }
    return IUT_OK;
}

/* ACC-08: refuses an id below -1 or beyond V-1 before the first -1. */
static iut_status check_drafts(subject *a, int32_t i, int32_t *draft, int32_t len)
{
    const fault_point f = a->m.fault;
    for (int32_t j = 0; j < len; j++) {
        if (draft[j] == -1 && fault(f, MINUS_ONE_SKIPPED)) continue;
        if (draft[j] == -1) break;
        if (draft[j] >= a->m.V && fault(f, BAD_DRAFT_CLAMPED)) draft[j] = a->m.V - 1;
        const bool bad = draft[j] < -1 || draft[j] >= a->m.V;
        if (bad && a->m.set.manner == MANNER_BAD_DRAFT_REJECT) {
            draft[j] = -1;
            break;
        }
        if (bad)
            return subject_fail(a, IUT_BAD_INPUT, "case %d: draft %d is %d, give 0 to %d, or -1 to end",
                        (int)i, (int)j, (int)draft[j], (int)a->m.V - 1);
    }
    return IUT_OK;
}

/* Drafts and states of case i; all of its rows must be usable, unless they are not looked at.
 */
static iut_status take_case(subject *a, const iut_verify_batch *b, int32_t i, bool greedy,
                            int32_t *state, int32_t *draft)
{
    const size_t rows = (size_t)b->gamma + 1, at = (size_t)i;
    const int32_t len = b->len[i];
    if (len < 0 || len > b->gamma)
        return subject_fail(a, IUT_BAD_INPUT, "case %d: len %d, give 0 to gamma = %d", (int)i, (int)len,
                    (int)b->gamma);
    const size_t from = fault(a->m.fault, ROWS_IN_16_BITS) ? at * rows % (1 << 16) : at * rows;
    memcpy(state, b->state + from, rows * sizeof *state);
    memcpy(draft, b->draft + at * (rows - 1), (rows - 1) * sizeof *draft);
    if (fault(a->m.fault, BATCH_MIXED) && i > 0)
        state[len] = b->state[(at - 1) * rows + rows - 1];
    for (int32_t j = 0; j <= len; j++) {
        iut_status st = check_state(a, state[j], greedy ? NULL : a->bad_p, "target");
        if (st == IUT_OK && j < len)
            st = check_state(a, state[j], greedy ? NULL : a->bad_q, "draft");
        if (st != IUT_OK) return st;
    }
    return check_drafts(a, i, draft, len);
}

/* BON-04. */
static void give_case(const model *m, const iut_verify_batch *b, int32_t i,
                      const int32_t *draft, const int32_t *run, int32_t count)
{
    const int32_t room = b->gamma + 1;
    int32_t *out = b->out + (size_t)i * (size_t)room;
    if (count > room) count = room;
    for (int32_t j = 0; j < room; j++) out[j] = j < count ? run[j] : -1;
    b->out_len[i] = count;
    if (fault(m->fault, TAIL_NOT_CLEARED))
        for (int32_t j = count; j < b->len[i]; j++) out[j] = draft[j];
    if (fault(m->fault, COUNT_SHORT) && count > 1) b->out_len[i] = count - 1;
}

static iut_status verify_with(subject *a, iut_verify_batch *b, bool greedy)
{
    model *m = &a->m;
    int32_t state[RULES_MAX_GAMMA + 1], draft[RULES_MAX_GAMMA], run[RULES_MAX_GAMMA + 2];
    if (b->gamma < 0 || b->gamma > RULES_MAX_GAMMA)
        return subject_fail(a, IUT_UNSUPPORTED, "gamma %d: at most %d", (int)b->gamma, RULES_MAX_GAMMA);
    source s = source_of(a, b->u, b->seed, b->position, false);
    if (!greedy && s.uniforms == IUT_UNIFORMS_SUPPLIED && !b->u)
        return subject_fail(a, IUT_BAD_INPUT, "verify: uniforms are to be supplied");
    if (!greedy && m->set.manner == MANNER_RACE && !b->noise)
        return subject_fail(a, IUT_BAD_INPUT, "verify: the noise of a race is to be supplied");
    s.gamma = b->gamma;
    m->row_bad = false;
    for (int32_t i = 0; i < b->n; i++) {
        const iut_status st = take_case(a, b, i, greedy, state, draft);
        if (st != IUT_OK) return st;
        next_case(&s, b->seed, i, b->n);
        if (b->u) s.u = b->u + (size_t)i * ((size_t)b->gamma + 2);
        const size_t whose = fault(m->fault, RACE_NOISE_OF_FIRST) ? 0 : (size_t)i;
        const float *noise = !greedy && m->set.manner == MANNER_RACE ? b->noise + whose * (size_t)m->V : NULL;
        const int32_t len = fault(m->fault, LENGTH_IGNORED) ? b->gamma : b->len[i];
        const step one = {m, &s.lane, state, draft, len, 0, 0, noise};
        int32_t accepted;
        const int32_t count =
            greedy ? rule_greedy(&one, run, &accepted) : rule_step(&one, run, &accepted);
        if (m->row_bad)
            return subject_fail(a, IUT_BAD_INPUT, "case %d: a logit row has no argmax", (int)i);
        const bool rejected = !greedy && accepted < b->len[i] && draft[accepted] >= 0;
        if (rejected && fault(m->fault, PANEL_CLOBBERED))
            m->p[(size_t)state[accepted] * (size_t)m->V + (size_t)draft[accepted]] = 0;
        if (rejected && fault(m->fault, INPUT_WRITTEN))
            ((int32_t *)b->draft)[(size_t)i * (size_t)b->gamma + (size_t)accepted] = -1;
        give_case(m, b, i, draft, run, count);
    }
    return IUT_OK;
}

static iut_status verify(iut *x, iut_verify_batch *b)
{
    return verify_with(self(x), b, false);
}

static iut_status verify_greedy(iut *x, iut_verify_batch *b)
{
    return verify_with(self(x), b, true);
}

/* A stream may visit every state, so every row must be usable. */
static iut_status check_stream(subject *a, const iut_stream_batch *b)
{
    if (b->gamma < 0 || b->gamma > RULES_MAX_GAMMA || b->k < 0)
        return subject_fail(a, IUT_UNSUPPORTED,
                    "gamma %d, budget %d: gamma at most %d, budget at least 0", (int)b->gamma,
                    (int)b->k, RULES_MAX_GAMMA);
    for (int32_t i = 0; a->loaded && i < a->m.S; i++) {
        if (a->bad_p[i] || (a->bad_q[i] && b->gamma > 0))
            return subject_fail(a, IUT_BAD_INPUT, "stream: a row of state %d is no distribution",
                        (int)i);
    }
    for (int32_t i = 0; i < b->n; i++) {
        const iut_status st = check_state(a, b->start[i], NULL, "");
        if (st != IUT_OK) return st;
    }
    return IUT_OK;
}

static iut_status stream(iut *x, iut_stream_batch *b)
{
    subject *a = self(x);
    const size_t k = b->k > 0 ? (size_t)b->k : 0;
    const iut_status st = check_stream(a, b);
    if (st != IUT_OK) return st;
    source s = source_of(a, NULL, b->seed, 0, true);
    a->m.row_bad = false;
    for (int32_t i = 0; i < b->n; i++) {
        next_case(&s, b->seed, i, b->n);
        b->out_len[i] = rule_stream(&a->m, &s.lane, b->start[i], b->gamma, b->k, b->eos,
                                    b->out + (size_t)i * k, b->accepted + (size_t)i * k);
        if (a->m.row_bad)
            return subject_fail(a, IUT_BAD_INPUT, "stream %d: a logit row has no argmax", (int)i);
    }
    return IUT_OK;
}

const iut_api subject_operations = {
    .abi = IUT_ABI,
    .size = sizeof(iut_api),
    .destroy = destroy,
    .last_error = last_error,
    .claims = claims,
    .panel = load_panel,
    .served = served,
    .residual = residual,
    .draw = draw,
    .verify = verify,
    .verify_greedy = verify_greedy,
    .stream = stream,
};

/* ---- For the exact law --------------------------------------------------------------- */

subject *subject_of_panel(variant v, const iut_panel *panel)
{
    char error[200];
    subject *a = (subject *)subject_create("exact", v, error, sizeof error);
    if (!a || load(a, panel) == IUT_OK) return a;
    subject_free(a);
    return NULL;
}

model *subject_model(subject *a)
{
    return &a->m;
}
