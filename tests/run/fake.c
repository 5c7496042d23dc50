#include "tests/run/fake.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

script fake_script[SCRIPT_MAX];
uint64_t fake_seeds[SCRIPT_MAX];

static const struct timespec nap = {.tv_nsec = 20000000};
static atomic_int met;

/* However busy the machine is, two threads pass here; ten seconds, if there is no second one. */
static void meet(void)
{
    met++;
    for (int i = 0; i < 500 && met < 2; i++) nanosleep(&nap, NULL);
}

/* -- The IUT ----------------------------------------------------------------------------- */

static iut *create(const char *options, char *error, size_t error_size)
{
    if (strcmp(options, "refuse") == 0) {
        snprintf(error, error_size, "refused on request");
        return NULL;
    }
    static atomic_int changing;
    char *first = malloc(1); /* of the options: all that an instance is */
    if (first) *first = strcmp(options, "changing") == 0 && changing++ ? 'C' : *options;
    if (first && *first == 'C') meet();
    return (iut *)first;
}

static void destroy(iut *i)
{
    free(i);
}

static const char *last_error(iut *i)
{
    (void)i;
    return "it \"said\" <so>";
}

static iut_status claims(iut *i, iut_claims *c)
{
    const uint32_t size = c->size;
    if (*(const char *)i == 'n') return IUT_NO_DEVICE;
    *c = (iut_claims){.size = size, .name = "fake", .version = "1", .device = "none"};
    if (*(const char *)i == 'C') c->max_gamma = 2;
    if (*(const char *)i == 's') c->uniforms = IUT_UNIFORMS_SEEDED;
    if (*(const char *)i == 'g') c->uniforms = IUT_UNIFORMS_SUPPLIED;
    return IUT_OK;
}

/* Refuses with the status that the first state names: how a test makes a refusal. */
static iut_status draw(iut *i, iut_draw_batch *b)
{
    (void)i;
    return (iut_status)b->state[0];
}

static iut_status panel(iut *i, const iut_panel *p)
{
    (void)i, (void)p;
    return IUT_OK;
}

const iut_api fake_api = {.abi = IUT_ABI,
                          .size = sizeof(iut_api),
                          .create = create,
                          .destroy = destroy,
                          .last_error = last_error,
                          .claims = claims,
                          .panel = panel,
                          .draw = draw};

/* -- The check --------------------------------------------------------------------------- */

extern const check fake;

static void plan(check_plan *p, check_level level)
{
    (void)level;
    for (int i = 0; i < SCRIPT_MAX && fake_script[i].name; i++) {
        check_case *c = plan_case(p, &fake, "%s", fake_script[i].name);
        c->variant = i;
        c->tables = 2;
        c->n = 1000;
        c->statistical = fake_script[i].statistical;
        c->pooled = fake_script[i].pooled;
    }
}

static bool claimed(const check_case *c, const client *iut_client, char *why, size_t why_size)
{
    (void)iut_client;
    snprintf(why, why_size, "needs `nothing`");
    return !fake_script[c->variant].unclaimed;
}

static void run(const check_case *c, const check_context *x, check_result *r)
{
    const script *s = &fake_script[c->variant];
    fake_seeds[c->variant] = check_seed(x, c, 0);
    if (s->slow) nanosleep(&nap, NULL);
    if (s->meets) meet();
    r->compared = s->compared;
    r->log_e = s->log_e;
    r->log_p = s->log_p;
    for (int m = 0; s->pooled && m < ST_POOL_LAWS; m++)
        for (int i = 0; i < ST_POOL_SIZES; i++) r->pool.term[m][i] = s->dictionary;
    r->pool.n = s->pooled ? 100 : 0;
    r->nats = s->nats;
    r->pool_own = s->own;
    if (s->speed != 0) r->speed = (check_speed){1000, s->speed, "it accepted 0.3 of 1000 drafts, 0.6 expected"};
    if (s->eps > 0) result_figure(r, "eps", s->eps);
    result_figure(r, "seven", 7);
    if (s->tv_power > 0) result_figure(r, "tv_power", s->tv_power);
    if (s->tv_any > 0) result_figure(r, "tv_power_any", s->tv_any);
    if (s->call != CALL_OK) {
        result_call(r, x, "draw", s->call);
    } else {
        result_set(r, s->state, "%s", s->detail ? s->detail : "seen");
    }
}

const check fake = {.name = "fake",
                    .clauses = "ACC-01 ACC-02 LAY-01",
                    .summary = "scripted results",
                    .plan = plan,
                    .claimed = claimed,
                    .run = run};
const check *const fake_checks[] = {&fake, NULL};

/* -- Running ----------------------------------------------------------------------------- */

int fake_run(const script *cases, size_t count, run_options *o, run_report *report)
{
    static run_options none;
    memset(&none, 0, sizeof none);
    if (!o) o = &none;
    met = 0;
    memset(fake_script, 0, sizeof fake_script);
    memcpy(fake_script, cases, count * sizeof *cases);
    o->api = &fake_api;
    o->checks = fake_checks;
    if (!o->iut) o->iut = "fake";
    return run_suite(o, report);
}

const run_case *fake_case(const run_report *report, const char *name)
{
    for (size_t i = 0; i < report->planned; i++) {
        if (strcmp(report->cases[i].plan->id + strlen("fake/"), name) == 0)
            return &report->cases[i];
    }
    return NULL;
}
