/* engine_cause.c - see engine_cause.h. A wrong token alone shows little where the vocabulary is small. So all wrong
 * tokens of the call are counted, each behind the stream as it came. */
#include "conformance/checks/engine/engine_cause.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MISTAKES = 19, MOST_PLACES = 24, FEW_PLACES = 4, MOST_DRAFTS = 33, SLACK = 4 };
#define MOST_WORK 4e8 /* multiplications of the oracle */

typedef enum {
    ROW_BEFORE, ROW_AFTER, AGAIN, EQUAL, SIXTEEN, DRAFTED, DRAFT_KEPT, DRAFTS_KEPT, DRAFT_INSTEAD, FURTHER, NEARER,
    AT_ZERO, ALL_FURTHER, ALL_NEARER, GAP, NO_PREFIX, FIRST_REQUEST, REQUEST_BEFORE, REQUEST_BEHIND
} mistake;

static const struct {
    const char *clause, *text;
} mistakes[MISTAKES] = {
    [ROW_BEFORE] = {"GRD-01", "those of the row before"},
    [ROW_AFTER] = {"STOP-04", "one place early: those behind the right token, which is left out"},
    [AGAIN] = {"STOP-04", "the last token again"},
    [EQUAL] = {"GRD-02", "as large as the largest, but not the lowest id"},
    [SIXTEEN] = {"LAY-07", "the right ones, but for what is beyond 16 bits"},
    [DRAFTED] = {"GRD-01", "the draft model's: drafts are accepted that had to be refused"},
    [DRAFT_KEPT] = {"KV-08", "as if a refused draft were still in the cache"},
    [DRAFTS_KEPT] = {"KV-08", "as if all refused drafts were still in the cache"},
    [DRAFT_INSTEAD] = {"STOP-04", "those behind a refused draft, not behind what replaced it"},
    [FURTHER] = {"TREE-02", "as if the last token stood one position too late"},
    [NEARER] = {"TREE-02", "as if the last token stood one position too early"},
    [AT_ZERO] = {"TREE-02", "as if the last token stood at position 0"},
    [ALL_FURTHER] = {"TREE-02", "as if all tokens behind the prompt stood one position too late"},
    [ALL_NEARER] = {"TREE-02", "as if all tokens behind the prompt stood one position too early"},
    [GAP] = {"KV-08", "as if the token before the last were missing in the cache"},
    [NO_PREFIX] = {"KV-02", "as if the last token were all that there is"},
    [FIRST_REQUEST] = {"LAY-15", "those of the call's first request"},
    [REQUEST_BEFORE] = {"LAY-15", "those of the request before it in the call"},
    [REQUEST_BEHIND] = {"LAY-15", "those of the request behind it in the call"}};

typedef struct {
    const engine *e;
    const engine_call *c;
    engine_rows w;
    check_result unsaid; /* of the rows: what fails there changes no verdict */
    oracle_path *shifted[2], *bare, *full; /* of ALL_FURTHER and ALL_NEARER; of NO_PREFIX; of DRAFTS_KEPT */
    double work, row;               /* multiplications so far, and of a row */
    int32_t hits[MISTAKES], places, wrong[MOST_PLACES]; /* wrong tokens */
    /* Of the stream up to here: its length, its last tokens, and what should follow them. */
    int32_t n, last[2];             /* last[0] is the last one; -1: there is none */
    int32_t before, choice, chose;  /* by the row before; the draft model's, and its choice before; -1: none */
    int32_t further[2];             /* by the shifted paths */
    /* The step of the decoding, of chains of drafts alone: its first place, its drafts, and those that were taken. */
    int32_t step, drafts, taken, draft[MOST_DRAFTS], cached; /* of `full` */
    int32_t kept[MOST_DRAFTS + 1]; /* what follows by `full`, place by place */
} search;

/* ---- Rows. ----------------------------------------------------------------------------------- */

static double multiplications(const oracle_model *m)
{
    const oracle_config *c = &m->config;
    const double heads = (double)c->heads * c->head_dim, kv = (double)c->kv_heads * c->head_dim;
    return (double)c->V * c->hidden + c->layers * (double)c->hidden * (2 * heads + 2 * kv + 3.0 * c->ffn);
}

static bool open_rows(search *s)
{
    const engine *e = s->e;
    const engine_call *c = s->c;
    const engine_request *q = &c->q;
    const bool drafts = engine_drafts(q->method) && (q->gamma > 0 || q->method == IUT_OUROBOROS) && !q->itself;
    int32_t longest = 0;
    for (int32_t i = 0; i < c->n; i++) {
        const int32_t n = c->prompt[i].n;
        if (n > longest) longest = n;
    }
    longest += q->k + SLACK;
    engine quiet = *e;
    s->unsaid.tested = e->x->iut;
    quiet.r = &s->unsaid;
    if (!engine_rows_open(&s->w, &quiet, drafts, longest)) return false;
    const oracle_model *m = oracle_folder_model(s->w.folder[ROWS_TARGET]);
    for (int i = 0; i < 2; i++) s->shifted[i] = oracle_path_new(&oracle_fast, m, longest);
    s->bare = oracle_path_new(&oracle_fast, m, longest);
    s->full = oracle_path_new(&oracle_fast, m, longest + q->k * (MOST_DRAFTS + 1));
    s->row = multiplications(m);
    return s->shifted[0] && s->shifted[1] && s->bare && s->full;
}

static void close_rows(search *s)
{
    for (int i = 0; i < 2; i++) oracle_path_free(s->shifted[i]);
    oracle_path_free(s->bare);
    oracle_path_free(s->full);
    engine_rows_close(&s->w);
}

/* The largest logit behind a token more on a path, at a position; -1: there is no such position. */
static int32_t next(search *s, oracle_path *p, int32_t token, int32_t position)
{
    s->work += s->row;
    if (position < 0 || token < 0) return -1;
    oracle_path_step_at(p, token, position, s->w.logits);
    return lm_argmax(s->w.logits, s->w.V);
}

/* The stream goes on by a token; w.logits are those of the target behind it. */
static void go_on(search *s, int32_t token, bool behind_prompt)
{
    static const int32_t off[] = {1, -1};
    s->chose = s->choice;
    if (s->w.path[ROWS_DRAFT]) s->choice = next(s, s->w.path[ROWS_DRAFT], token, s->n);
    for (int i = 0; i < 2; i++)
        s->further[i] = next(s, s->shifted[i], token, s->n + (behind_prompt ? off[i] : 0));
    next(s, s->w.path[ROWS_TARGET], token, s->n++);
    s->last[1] = s->last[0], s->last[0] = token;
}

/* A step begins at place t: the drafts of a draft model, as many as the stream then has, and a cache that keeps all. */
static void begin_step(search *s, int32_t t, const int32_t *out, int32_t length)
{
    oracle_path *p = s->w.path[ROWS_DRAFT];
    const int32_t left = length - t - 1, gamma = s->c->q.gamma < MOST_DRAFTS ? s->c->q.gamma : MOST_DRAFTS;
    s->step = t;
    s->drafts = p && s->c->q.method == 0 ? (gamma < left ? gamma : left) : 0;
    for (int32_t i = 0; i < s->drafts; i++) s->draft[i] = i ? next(s, p, s->draft[i - 1], s->n + i - 1) : s->choice;
    if (s->drafts) oracle_path_cut(p, s->n);
    for (s->taken = 0; s->taken < s->drafts && s->draft[s->taken] == out[t + s->taken]; s->taken++) continue;
    s->kept[0] = next(s, s->full, s->last[0], s->cached++);
    for (int32_t i = 0; i < s->drafts; i++) s->kept[i + 1] = next(s, s->full, s->draft[i], s->cached++);
}

/* ---- What each mistake gives. ---------------------------------------------------------------- */

static void count(search *s, mistake m, int32_t got, int32_t gives)
{
    if (got == gives) s->hits[m]++;
}

/* With a tail of its own behind the first s->n - cut tokens: two tokens, or one after a -1. Then the path is as it was.
 */
static int32_t with_tail(search *s, int32_t cut, int32_t first, int32_t second, int32_t position)
{
    oracle_path *p = s->w.path[ROWS_TARGET];
    const int32_t keep = s->n - cut;
    if (keep < 0) return -1;
    oracle_path_cut(p, keep);
    if (first >= 0) oracle_path_step(p, first, NULL);
    const int32_t gives = next(s, p, second, position);
    oracle_path_cut(p, keep);
    for (int32_t i = cut; i > 0; i--) oracle_path_step(p, s->last[i - 1], NULL);
    s->work += s->row * (cut + 1);
    return gives;
}

/* A wrong token, at place t of request i; `equal`: its logit is the largest, too. The logits are lost. */
static void weigh(search *s, int32_t i, int32_t t, int32_t got, int32_t due, bool equal)
{
    const engine_call *c = s->c;
    const int32_t k = c->q.k, last = s->last[0], n = s->n;
    const int32_t others[] = {i > 0 ? 0 : -1, i > 1 ? i - 1 : -1, i + 1 < c->n ? i + 1 : -1};
    s->wrong[s->places++] = got;
    if (equal) s->hits[EQUAL]++;
    count(s, SIXTEEN, got, due & 0xffff);
    count(s, DRAFTS_KEPT, got, s->kept[t - s->step]);
    count(s, ROW_BEFORE, got, s->before);
    count(s, AGAIN, got, last);
    count(s, DRAFTED, got, s->choice);
    for (int m = 0; m < 2; m++) count(s, ALL_FURTHER + m, got, t > 0 ? s->further[m] : -1);
    for (int m = 0; m < 3; m++)
        if (others[m] >= 0 && t < c->length[others[m]])
            count(s, FIRST_REQUEST + m, got, c->out[(int64_t)others[m] * k + t]);
    count(s, ROW_AFTER, got, with_tail(s, 0, -1, due, n));
    count(s, FURTHER, got, with_tail(s, 1, -1, last, n));
    count(s, NEARER, got, with_tail(s, 1, -1, last, n - 2));
    count(s, AT_ZERO, got, n > 1 ? with_tail(s, 1, -1, last, 0) : -1);
    count(s, GAP, got, n > 1 ? with_tail(s, 2, -1, last, n - 1) : -1);
    if (t > 0 && s->chose >= 0 && s->chose != last) {
        count(s, DRAFT_KEPT, got, with_tail(s, 1, s->chose, last, n));
        count(s, DRAFT_INSTEAD, got, with_tail(s, 1, -1, s->chose, n - 1));
    }
    oracle_path_cut(s->bare, 0);
    count(s, NO_PREFIX, got, n > 1 ? next(s, s->bare, last, n - 1) : -1);
}

static bool spent(const search *s)
{
    return s->work > MOST_WORK || s->places >= MOST_PLACES;
}

/* Are the tokens of request i the largest logits? */
static bool is_greedy(const engine_call *c, int32_t i)
{
    const iut_sampling *own = c->q.each ? &c->q.each[i].sampling : NULL;
    return !own || own->temperature == 0 || own->top_k == 1;
}

/* At most so many of its wrong tokens. */
static void look_at(search *s, int32_t i, int32_t most)
{
    const engine_call *c = s->c;
    const iut_claims *claims = client_claims(s->e->x->iut);
    const engine_prompt *p = &c->prompt[i];
    const int32_t *out = c->out + (int64_t)i * c->q.k;
    engine_rows_cut(&s->w, 0);
    for (int m = 0; m < 2; m++) oracle_path_cut(s->shifted[m], 0);
    s->n = 0, s->before = s->choice = s->chose = -1;
    s->last[0] = s->last[1] = -1;
    oracle_path_cut(s->full, 0);
    s->cached = p->n - 1, s->step = -1, s->taken = 0;
    for (int32_t t = 0; t < p->n; t++) {
        if (t + 1 == p->n && t > 0) s->before = lm_argmax(s->w.logits, s->w.V);
        if (t + 1 < p->n) oracle_path_step(s->full, p->token[t], NULL);
        go_on(s, p->token[t], false);
    }
    const int32_t end = s->places + most;
    for (int32_t t = 0; t < c->length[i] && s->places < end && !spent(s); t++) {
        const int32_t due = lm_argmax(s->w.logits, s->w.V);
        const double below = (double)s->w.logits[due] - (double)s->w.logits[out[t]];
        const double reach = claims->lm_arithmetic == IUT_LM_CANONICAL ? 0 : engine_reach(claims, &s->w);
        if (t > s->step + s->taken) begin_step(s, t, out, c->length[i]); /* the logits are lost */
        if (below > reach || (out[t] != due && reach == 0)) weigh(s, i, t, out[t], due, below == 0);
        s->before = due;
        if (t + 1 < c->length[i]) go_on(s, out[t], true);
    }
}

/* ---- What is said. --------------------------------------------------------------------------- */

/* How many of the wrong tokens are the commonest one. */
static int32_t commonest(const search *s)
{
    int32_t most = 0;
    for (int32_t i = 0; i < s->places; i++) {
        int32_t n = 0;
        for (int32_t k = 0; k < s->places; k++) n += s->wrong[k] == s->wrong[i];
        if (n > most) most = n;
    }
    return most;
}

/* Of three wrong tokens of four, and of more than fall together by chance, as they do where one token stands again and
 * again; -1: none. */
static int32_t likeliest(const search *s)
{
    int32_t best = 0;
    if (s->places == 0) return -1;
    for (int32_t m = 1; m < MISTAKES; m++)
        if (s->hits[m] > s->hits[best]) best = m;
    const double alike = fmax(1.0 / s->w.V, (commonest(s) - 1.0) / s->places);
    return 4 * s->hits[best] >= 3 * s->places && MISTAKES * pow(alike, s->hits[best]) <= 0.1 ? best : -1;
}

static void say(const search *s)
{
    check_result *r = s->e->r;
    const int32_t best = likeliest(s);
    const size_t used = strlen(r->detail);
    const int32_t alike = commonest(s);
    char same[40] = "";
    if (alike > 1) snprintf(same, sizeof same, ", of which %d are the same", (int)alike);
    if (best < 0)
        snprintf(r->detail + used, sizeof r->detail - used, "; none of the usual mistakes shows in %d wrong token%s%s",
                 (int)s->places, s->places == 1 ? "" : "s", same);
    else
        snprintf(r->detail + used, sizeof r->detail - used, "; %s: %d of %d wrong tokens are %s",
                 mistakes[best].clause, (int)s->hits[best], (int)s->places, mistakes[best].text);
}

void engine_tell_cause(const engine *e, const engine_call *c, const int32_t *tokens)
{
    const uintptr_t out = (uintptr_t)c->out, at = (uintptr_t)tokens,
                    stream = (uintptr_t)c->q.k * sizeof *tokens;
    if (e->r->state != STATE_FAIL || e->x->again || at < out || at >= out + (uintptr_t)c->n * stream) return;
    search *s = calloc(1, sizeof *s);
    if (!s) return;
    s->e = e, s->c = c;
    const bool ok = open_rows(s);
    const int32_t first = (int32_t)((at - out) / stream), share = MOST_PLACES / (c->n - first),
                  most = share > FEW_PLACES ? share : FEW_PLACES;
    for (int32_t i = first; ok && i < c->n && !spent(s); i++)
        if (is_greedy(c, i)) look_at(s, i, most);
    if (ok) say(s);
    close_rows(s);
    free(s);
}
