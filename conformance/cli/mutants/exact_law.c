/* exact_law.c - see exact_law.h. The stream that serves the ABI is run by the enumerator of the
 * oracle (enumerate.h); the target is the row that the same declarations serve without a fault.
 */
#include "conformance/cli/mutants/exact_law.h"

#include <string.h>

#include "conformance/oracle/law/enumerate.h"
#include "conformance/panel/panel.h"
#include "conformance/subjects/mutants/chain/subject.h"
#include "conformance/subjects/mutants/model/engine_subject.h"
#include "conformance/subjects/mutants/model/lm_subject.h"
#include "conformance/subjects/mutants/model/pool_subject.h"
#include "conformance/subjects/mutants/model/trace_subject.h"
#include "conformance/subjects/mutants/tree/subject.h"

typedef struct {
    const char *name;
    int32_t gamma;
    panel_form form;
} exact_panel;

/* Residuals with several tokens, rows that differ by position and by previous token; and what
 * some faults need to show at all: masks, or logits that are processed. */
static const exact_panel panels[EXACT_PANELS] = {
    {"V4 g1", 1, {.V = 4, .classes = 2, .seed = 5, .acceptance = 0.7}},
    {"V4 g2", 2, {.V = 4, .classes = 2, .seed = 6, .acceptance = 0.6}},
    {"V6 g1 masked", 1, {.V = 6, .classes = 2, .seed = 7, .variant = PANEL_MASKED}},
    {"V7 g1 top",
     1,
     {.V = 7,
      .classes = 2,
      .seed = 8,
      .acceptance = 0.7,
      .target = {1.3f, 5, 0.8f, 0},
      .draft = {0.8f, 0, 1, 0}}},
    {"V6 g1 min-p",
     1,
     {.V = 6,
      .classes = 2,
      .seed = 9,
      .acceptance = 0.7,
      .target = {1.3f, 0, 1, 0.25f},
      .draft = {1, 0, 1, 0}}},
};

const char *exact_panel_name(int index)
{
    return panels[index].name;
}

typedef struct {
    model *m;
    int32_t gamma;
} stream_job;

/* A run keeps nothing: what a faulty rule leaves in its scratch row is wiped. */
static void run_stream(lane *l, void *arg, int32_t *tokens, int32_t *count)
{
    const stream_job *j = arg;
    memset(j->m->scratch, 0, (size_t)j->m->V * sizeof *j->m->scratch);
    *count = rule_stream(j->m, l, 0, j->gamma, j->gamma + 2, -1, tokens, NULL);
    if (*count > j->gamma + 2) *count = j->gamma + 2;
}

static double distance(const model *plain, const stream_job *job)
{
    const oracle_panel target = {plain->V,    plain->S, plain->C, plain->cls,
                                 plain->next, plain->p, plain->q};
    return oracle_program_tv(run_stream, (void *)job, &target, 0, job->gamma + 2, 0, 2000000);
}

double exact_tv(const mutant *m, int index)
{
    const exact_panel *e = &panels[index];
    const variant plain_variant = {FAULT_NONE, m->variant.setting};
    char why[200];
    double tv = -1;
    if (setting_of(m->variant.setting)->map == IUT_MAP_GUMBEL) return tv;
    const setting_name s = m->variant.setting;
    if (lm_setting(s) || pool_setting(s) || trace_setting(s) || engine_setting(s)) return tv;
    if (tree_setting(setting_of(s)->manner)) return tv;
    panel *a = panel_make(&e->form, why, sizeof why);
    subject *plain = a ? subject_of_panel(plain_variant, &a->view) : NULL;
    subject *faulty = a ? subject_of_panel(m->variant, &a->view) : NULL;
    if (plain && faulty) {
        const stream_job job = {subject_model(faulty), e->gamma};
        tv = distance(subject_model(plain), &job);
    }
    subject_free(plain);
    subject_free(faulty);
    if (a) panel_free(a);
    return tv;
}
