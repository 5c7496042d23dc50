/* engine_ties.c - see engine_ties.h. */
#include "conformance/checks/engine/engine_ties.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/engine/engine_cause.h"

/* Has read the prompt and `more` tokens of the list after it. */
static bool read_all(engine_rows *w, const engine *e, const engine_prompt *p,
                     const int32_t *token, int32_t more, int32_t capacity)
{
    if (!engine_rows_open(w, e, false, capacity)) return false;
    const int32_t last = more > 0 ? token[more - 1] : p->token[p->n - 1];
    engine_rows_read(w, p->token, more > 0 ? p->n : p->n - 1);
    engine_rows_read(w, token, more - 1);
    engine_rows_step(w, ROWS_TARGET, last);
    return true;
}

bool engine_plain_is_right(const engine *e, int32_t i, const engine_prompt *prompt,
                           const int32_t *plain, int32_t tokens)
{
    const iut_claims *m = client_claims(e->x->iut);
    const bool canonical = m->lm_arithmetic == IUT_LM_CANONICAL;
    engine_rows w;
    if (m->weights == IUT_WEIGHTS_OWN) return true;
    bool ok = read_all(&w, e, prompt, NULL, 0, prompt->n + tokens);
    for (int32_t t = 0; ok && t < tokens && plain[t] >= 0; t++) {
        const int32_t got = plain[t], due = lm_argmax(w.logits, w.V);
        const double apart = (double)w.logits[due] - (double)w.logits[got],
                     reach = canonical ? 0 : engine_reach(m, &w);
        e->r->compared++;
        ok = got == due || (apart <= reach && (!canonical || m->tie > IUT_TIE_FIRST));
        if (!ok)
            result_set(e->r, STATE_FAIL,
                       "plain decoding, request %d, token %d: %d where the model has %d, whose "
                       "logit is %.3g larger; the declared arithmetic reaches %.3g (LAY-07)",
                       (int)i, (int)t, (int)got, (int)due, apart, reach);
        if (ok && got != due) lm_near_tie(e->r, m, w.logits, w.V, apart);
        if (ok && t + 1 < tokens) engine_rows_step(&w, ROWS_TARGET, got);
    }
    engine_rows_close(&w);
    if (ok) return true;
    int32_t n = 0;
    while (n < tokens && plain[n] >= 0) n++;
    const engine_call call = {{.k = tokens, .eos = -1, .sampling = {0, 0, 1, 0}}, 1, prompt, plain, &n};
    engine_tell_cause(e, &call, plain);
    return false;
}

/* ---- Differences. ---------------------------------------------------------------- */

/* At place `at` stands `got` where plain decoding has `due`. */
typedef struct {
    const engine_beside *of;
    const int32_t *tokens; /* of the other decoding */
    int32_t at, got, due;
    double apart; /* by how much the told log-probabilities of the two differ; NAN: not told */
} difference;

static void fail(const engine *e, const difference *d, double apart, const char *why)
{
    char gap[60] = "";
    if (!isnan(apart)) snprintf(gap, sizeof gap, " (their logits are %.3g apart)", apart);
    result_set(e->r, STATE_FAIL, "%s: request %d, token %d: %d where plain decoding has %d%s; %s (%s)", d->of->what,
               (int)d->of->i, (int)d->at, (int)d->got, (int)d->due, gap, why,
               d->of->processors ? "LAY-22" : "LAY-07, CLM-08");
}

static void note(engine_ties *ties, const difference *d, const char *how)
{
    if (ties->count++ == 0)
        snprintf(ties->text, sizeof ties->text, "%s: request %d, token %d is %d or %d, %s", d->of->what, (int)d->of->i,
                 (int)d->at, (int)d->got, (int)d->due, how);
}

/* CLM-08. */
static bool by_logits(const engine *e, engine_ties *ties, const difference *d, const char *promise)
{
    char how[60];
    engine_rows w;
    const bool ok = read_all(&w, e, d->of->prompt, d->of->plain, d->at, d->of->prompt->n + d->at);
    const iut_claims *m = client_claims(e->x->iut);
    const double apart = ok ? fabs((double)w.logits[d->due] - (double)w.logits[d->got]) : NAN;
    const bool any = m->tie > IUT_TIE_FIRST || (d->of->warm && m->lm_arithmetic != IUT_LM_CANONICAL),
               near = ok && (promise ? any && apart == 0 : apart <= engine_reach(m, &w));
    if (near) lm_near_tie(e->r, m, w.logits, w.V, apart);
    engine_rows_close(&w);
    if (!ok) return false;
    snprintf(how, sizeof how, "whose logits are %.3g apart", apart);
    if (near) return note(ties, d, how), true;
    fail(e, d, apart, promise ? promise : "more than the declared arithmetic explains");
    engine_tell_cause(e, &e->last, d->tokens);
    return false;
}

enum { COMPANY = 8 };

/* CLM-15: behind the tokens before it as a prompt. LAY-22: behind the same tokens, decoded anew, for penalties tell
 * prompt and output apart. */
static bool gives_the_other_among(engine *e, const difference *d, int32_t n, bool *gives)
{
    const bool anew = d->of->processors != NULL;
    const int32_t k = anew ? d->at + 1 : 1;
    const size_t before = anew ? (size_t)d->at * sizeof *d->of->plain : 0;
    engine_request q = {.k = k, .eos = -1, .sampling = {0, 0, 1, 0}};
    engine_prompt from = *d->of->prompt;
    iut_processors same[COMPANY];
    int32_t length[COMPANY], *out = malloc((size_t)n * (size_t)k * sizeof *out);
    if (!out) return result_set(e->r, STATE_ERROR, "the suite is short of memory"), false;
    if (anew) {
        for (int32_t i = 0; i < n; i++) same[i] = *d->of->processors;
        q.processors = same;
    } else {
        memcpy(from.token + from.n, d->of->plain, (size_t)d->at * sizeof *d->of->plain);
        from.n += d->at;
    }
    const bool ok = engine_repeat(e, &q, &from, n, out, length);
    for (int32_t i = 0; ok && i < n; i++) {
        const int32_t *stream = out + (int64_t)i * k;
        *gives |= memcmp(stream, d->of->plain, before) == 0 && stream[k - 1] == d->got;
    }
    free(out);
    return ok;
}

/* CLM-15: the same prompt, its last tokens in a chunk of their own where the engine keeps a cache. */
static bool gives_the_other_behind(engine *e, const difference *d, int32_t rest, bool *gives)
{
    const engine_request q = {.k = 1, .eos = -1, .sampling = {0, 0, 1, 0}};
    engine_prompt from = *d->of->prompt;
    int32_t token, length;
    memcpy(from.token + from.n, d->of->plain, (size_t)d->at * sizeof *d->of->plain);
    from.n += d->at;
    if (rest >= from.n) return true;
    if (!engine_generate_behind(e, &q, &from, rest, &token, &length)) return false;
    *gives = token == d->got;
    return true;
}

/* Does plain decoding give the other token, too, alone or among equals, or in other chunks? */
static bool gives_the_other(engine *e, const difference *d, bool *gives)
{
    static const int32_t among[] = {1, 3, COMPANY}, rest[] = {1, 2, 3, 5, 9};
    *gives = false;
    if (!d->of->processors && d->of->prompt->n + d->at > ENGINE_PROMPT) return true;
    for (int i = 0; i < 3 && !*gives; i++)
        if (!gives_the_other_among(e, d, among[i], gives)) return false;
    for (int i = 0; i < 5 && !*gives && !d->of->processors; i++)
        if (!gives_the_other_behind(e, d, rest[i], gives)) return false;
    return true;
}

double engine_logprob_reach(const iut_claims *claims)
{
    switch (claims->arithmetic) {
    case IUT_ARITH_F64: /* what travels is binary32 */
        return 1e-6;
    case IUT_ARITH_F32:
    case IUT_ARITH_CANONICAL:
        return 1e-4;
    case IUT_ARITH_F16:
        return 0x1p-4;
    default:
        return 0x1p-2;
    }
}

/* Of a prompt the first difference alone. */
static void list(engine_ties *ties, const difference *d)
{
    char one[200];
    const size_t used = strlen(ties->unexplained), room = sizeof ties->unexplained - used;
    if (ties->open_now >> d->of->i & 1) return;
    snprintf(one, sizeof one, "%s%s: request %d, token %d: %d where plain decoding has %d", used ? "; " : "",
             d->of->what, (int)d->of->i, (int)d->at, (int)d->got, (int)d->due);
    if (strlen(one) < room) strcpy(ties->unexplained + used, one);
}

/* In an arithmetic that is not fine log-probabilities excuse nothing; and company need not show what the penalties of
 * an honest engine round. */
static bool by_itself(engine *e, engine_ties *ties, const difference *d)
{
    const bool fine = engine_is_fine(client_claims(e->x->iut));
    bool gives;
    char how[80];
    if (fine && d->apart <= engine_logprob_reach(client_claims(e->x->iut))) {
        snprintf(how, sizeof how, "whose log-probabilities are %.3g apart, as it tells them", d->apart);
        return note(ties, d, how), true;
    }
    if (!gives_the_other(e, d, &gives)) return false;
    if (gives) return note(ties, d, "as plain decoding's own is, by company and chunk"), true;
    list(ties, d);
    ties->open_now |= 1u << d->of->i;
    ties->coarse |= d->of->processors && !fine;
    return true;
}

static bool judge(engine *e, engine_ties *ties, const difference *d)
{
    const iut_claims *m = client_claims(e->x->iut);
    const char *promise = m->lm_arithmetic                   ? "lm_arithmetic is claimed"
                          : m->greedy_identical && !d->of->warm ? "greedy_identical is claimed"
                                                             : NULL;
    if (m->weights != IUT_WEIGHTS_OWN && !d->of->processors) return by_logits(e, ties, d, promise);
    if (!promise) return by_itself(e, ties, d);
    fail(e, d, NAN, promise);
    return false;
}

bool engine_ties_compare(engine *e, engine_ties *ties, const engine_beside *b, const int32_t *tokens, int32_t n)
{
    int32_t at = 0;
    ties->asked_now |= 1u << b->i;
    while (at < n && tokens[at] == b->plain[at]) at++;
    if (at == n) return true;
    difference d = {b, tokens, at, tokens[at], b->plain[at], NAN};
    if (b->due && b->logprob) d.apart = fabs((double)b->logprob[at] - (double)b->due[at]);
    return judge(e, ties, &d);
}

static int32_t ones(uint32_t bits)
{
    int32_t n = 0;
    for (; bits; bits &= bits - 1) n++;
    return n;
}

void engine_ties_next(engine_ties *ties)
{
    ties->asked += ones(ties->asked_now), ties->open += ones(ties->open_now);
    ties->asked_now = ties->open_now = 0;
}

/* With the present prompts. */
static engine_ties whole(const engine_ties *ties)
{
    engine_ties all = *ties;
    engine_ties_next(&all);
    return all;
}

/* CLM-15 (c). */
static bool too_many(const engine_ties *all)
{
    enum { SOME = 3, SHARE = 20 };
    return all->open >= SOME && all->open * SHARE > all->asked;
}

bool engine_ties_undecided(const engine_ties *ties)
{
    const engine_ties all = whole(ties);
    return all.open && !all.coarse && !too_many(&all);
}

void engine_ties_conclude(const engine *e, const engine_ties *ties)
{
    const engine_ties all = whole(ties);
    if (all.open)
        result_set(e->r, too_many(&all) && !all.coarse ? STATE_FAIL : STATE_INCONCLUSIVE,
                   "%d of %d prompts have a token that plain decoding does not give there, in any company "
                   "(CLM-15); %s",
                   (int)all.open, (int)all.asked, ties->unexplained);
    else if (ties->count)
        result_set(e->r, STATE_ACCEPTABLE, "near-tie: %s", ties->text);
}
