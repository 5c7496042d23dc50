/* The event log and the JSON values that it shares with the JSON report. Clause VER-06. */
#include "conformance/suite/events.h"

#include <math.h>

#include "conformance/suite/layers.h"
#include "conformance/suite/verdict.h"
#include "conformance/wire/claims.h"

/* JSON has no infinities and no NaN: they travel as texts. */
static json_t *number(double x)
{
    if (isfinite(x)) return json_real(x);
    return json_string(isnan(x) ? "NaN" : x > 0 ? "Infinity" : "-Infinity");
}

/* What the user typed may be any bytes; JSON holds UTF-8 alone. */
static json_t *text(const char *s)
{
    char copy[4096];
    snprintf(copy, sizeof copy, "%s", s ? s : "");
    make_printable(copy);
    return json_string(copy);
}

static json_t *integer(uint64_t x)
{
    return json_integer((json_int_t)x);
}

/* Its texts and operations stand elsewhere, or are not known. */
static json_t *claims_of(const iut_claims *c)
{
    iut_claims numbers = *c;
    numbers.name = numbers.version = numbers.device = "";
    json_t *claims = claims_encode(&numbers, 0, CLAIMS_SINCE);
    json_object_del(claims, "name");
    json_object_del(claims, "version");
    json_object_del(claims, "device");
    json_object_del(claims, "ops");
    return claims;
}

json_t *json_environment(const run_report *r)
{
    const run_options *o = r->options;
    const char *name = r->claims.name, *version = r->claims.version, *device = r->claims.device;
    char seed[24]; /* 64 bits: more than a JSON reader must keep of a number */
    snprintf(seed, sizeof seed, "%llu", (unsigned long long)o->seed);
    return json_pack("{s:s,s:i,s:o,s:o,s:o,s:{s:o,s:o,s:o,s:o},s:s,s:o,s:s,s:o,s:o,s:i,s:o}",
                     "assay", ASSAY_VERSION, "arithmetic", ASSAY_ARITHMETIC, "iut",
                     text(o->iut ? o->iut : "ref"), "iut_options", text(o->iut_options),
                     "traces", text(o->traces), "identity", "name", text(name), "version",
                     text(version), "device", text(device), "claims", claims_of(&r->claims),
                     "level", level_name(o->level), "samples", integer((uint64_t)o->samples),
                     "seed", seed, "alpha", number(r->alpha), "planned", integer(r->planned),
                     "tables", (int)r->tables, "log_e_fail", number(r->log_e_fail));
}

static json_t *cause_of(const st_cause *c)
{
    char words[160];
    st_cause_text(c, words, sizeof words);
    return json_pack("{s:s?,s:o,s:o,s:s}", "name", c->name, "size", number(c->size), "posterior",
                     number(c->chance), "text", words);
}

/* VER-12. */
static json_t *again_of(const run_case *k)
{
    return json_pack("{s:s,s:s}", "word", again_name(k->again), "why", k->again_why);
}

json_t *json_case(const run_report *r, const run_case *k)
{
    const check_result *x = &k->result;
    json_t *figures = json_object();
    for (int32_t i = 0; i < x->figures; i++) {
        json_object_set_new(figures, x->figure[i].name, number(x->figure[i].value));
    }
    json_t *c = json_pack("{s:s,s:s,s:s,s:s,s:s,s:o,s:o,s:o,s:o}", "case", k->plan->id, "check",
                          k->plan->check->name, "clauses", k->plan->check->clauses, "state",
                          state_name(x->state), "detail", x->detail, "compared",
                          integer((uint64_t)x->compared), "n", integer((uint64_t)k->plan->n),
                          "seconds", number(k->seconds), "figures", figures);
    if (k->plan->statistical && k->claimed) {
        json_object_set_new(c, "log_e", number(x->log_e));
        json_object_set_new(c, "log_p", number(x->log_p));
    }
    if (x->state == STATE_FAIL && x->pool.n > 0) {
        const st_cause cause = st_pool_cause(&x->pool, x->log_e);
        json_object_set_new(c, "cause", cause_of(&cause));
    }
    if (x->speed.drafts > 0)
        json_object_set_new(c, "speed",
                            json_pack("{s:o,s:o,s:b,s:s}", "drafts", integer((uint64_t)x->speed.drafts), "log_e",
                                      number(x->speed.log_e), "ineffective", verdict_ineffective(r, k), "text",
                                      x->speed.text));
    if (k->waived_by) {
        json_object_set_new(c, "waived", json_string(state_name(k->before_waiver)));
        json_object_set_new(c, "issue", text(k->waived_by->issue));
    }
    if (k->again_why) json_object_set_new(c, "again", again_of(k));
    if (!state_stands(x->state)) {
        char line[2048];
        replay_line(r, k, line, sizeof line);
        json_object_set_new(c, "replay", text(line));
    }
    return c;
}

static json_t *layers_of(const run_report *r)
{
    layer_summary layers[LAYERS];
    json_t *list = json_array();
    count_layers(r, layers);
    for (int i = 0; i < LAYERS; i++) {
        json_array_append_new(list, json_pack("{s:s,s:o,s:o}", "layer", layers[i].name,
                                              "planned", integer(layers[i].planned), "judged",
                                              integer(layers[i].judged)));
    }
    return list;
}

/* STAT-07. */
static json_t *pool_of(const run_report *r)
{
    const run_pool *p = &r->pool;
    return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o}", "average", number(p->average),
                     "dictionary", number(p->dictionary), "transform", number(p->pit), "tokens",
                     integer((uint64_t)p->sum.n), "cases", integer(p->cases), "left_out",
                     integer(p->left_out), "nats", number(p->nats), "cause",
                     p->caused ? cause_of(&p->cause) : json_null());
}

json_t *json_verdict(const run_report *r)
{
    json_t *tally = json_object(), *findings = json_array(), *slow = json_array();
    char line[4096];
    run_line(r, line, sizeof line);
    for (int s = 0; s < STATE_COUNT; s++) {
        json_object_set_new(tally, state_name((check_state)s), integer(r->tally[s]));
    }
    for (size_t i = 0; i < r->findings; i++) {
        json_array_append_new(findings, json_pack("{s:s,s:s,s:o}", "state",
                                                  state_name(r->finding[i].state), "text",
                                                  r->finding[i].text, "replay", text(line)));
    }
    for (size_t i = 0; i < r->planned; i++)
        if (verdict_ineffective(r, &r->cases[i])) json_array_append_new(slow, json_string(r->cases[i].plan->id));
    static const char *const cause[] = {NULL, "signal", "budget", "failures"};
    return json_pack("{s:s,s:i,s:s?,s:o,s:o,s:o,s:o,s:o*,s:o,s:o,s:o,s:o,s:o,s:b,s:o}", "verdict", verdict_name(r),
                     "exit_code", r->exit_code, "stopped", cause[r->stopped], "planned",
                     integer(r->planned), "reported", integer(r->reported), "seconds",
                     number(r->seconds), "log_e", number(r->log_e), "pool",
                     r->pooled ? pool_of(r) : NULL, "tally", tally, "layers", layers_of(r), "findings", findings,
                     "statistical", integer(r->statistical), "nats", number(r->nats),
                     "own_noise", r->own_noise, "ineffective", slow);
}

/* -- Lines ------------------------------------------------------------------------------- */

static void event(FILE *log, const char *name, json_t *fields)
{
    json_t *line = json_pack("{s:s}", "event", name);
    json_object_update(line, fields);
    json_decref(fields);
    if (json_dumpf(line, log, JSON_COMPACT | JSON_PRESERVE_ORDER) == 0) fputc('\n', log);
    fflush(log);
    json_decref(line);
}

void event_start(FILE *log, const run_report *report)
{
    if (log) event(log, "start", json_environment(report));
}

void event_begin(FILE *log, const run_case *c)
{
    if (log) event(log, "begin", json_pack("{s:s}", "case", c->plan->id));
}

void event_case(FILE *log, const run_report *report, const run_case *c)
{
    if (log) event(log, "case", json_case(report, c));
}

void event_again(FILE *log, const run_case *c)
{
    if (log) event(log, "again", json_pack("{s:s,s:o}", "case", c->plan->id, "again", again_of(c)));
}

void event_end(FILE *log, const run_report *report)
{
    if (log) event(log, "end", json_verdict(report));
}
