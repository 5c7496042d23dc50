/* See ouroboros.h. */
#include "conformance/cli/arguments/ouroboros.h"

#include "conformance/cli/arguments/switches.h"
#include "ref/draft/lookahead.h"

static const switch_list switches = {as_ouroboros_switches, 11, true};

bool ouroboros_drafter(const ouroboros_options *o, const method_guesses *given, as_lm *draft, as_drafter **d, char *why,
                       size_t why_size)
{
    const char *name = o->preset ? o->preset : "paper";
    const as_ouroboros *preset = as_ouroboros_preset(name);
    as_error e = {.text = ""};
    if (!preset) {
        snprintf(why, why_size, "--preset %s is unknown; there are paper and code", name);
        return false;
    }
    as_ouroboros x = *preset;
    if (!switches_set(&x, &switches, o->switches, given != NULL, why, why_size)) return false;
    x.gamma = o->gamma;
    x.W = o->W ? o->W : OUROBOROS_W;
    x.N = o->N ? o->N : OUROBOROS_N;
    x.K = o->K;
    x.warm = o->warm;
    if (given) x.given = given->token, x.givens = given->n;
    if (as_draft_ouroboros(draft, &x, d, &e) == AS_OK) return true;
    snprintf(why, why_size, "%s", e.text);
    return false;
}

/* ---- What the rounds did. -------------------------------------------------------------- */

/* Where a round's drafts end and its suffixes begin: at these rows. */
typedef struct {
    int32_t steps, suffixes, end; /* draft steps; the first row of a suffix; behind the last */
    int32_t length;               /* of a suffix */
} round_rows;

static round_rows rows_of(as_drafter *d, const as_step *s)
{
    round_rows r = {.end = s->tree->rows};
    r.suffixes = 1 + as_ouroboros_drafts(d, &r.steps);
    r.length = as_pool_length(as_lookahead_pool(as_ouroboros_lookahead(d)));
    return r;
}

void ouroboros_count(ouroboros_tally *t, as_drafter *d, const as_step *s)
{
    const round_rows r = rows_of(d, s);
    const int32_t drafts = r.suffixes - 1, beyond = s->accepted - drafts;
    int32_t refined;
    t->inspired += as_ouroboros_inspired(d, &refined);
    t->refined += refined;
    t->rounds++;
    t->tokens += s->emitted;
    t->rows += s->tree->rows;
    t->steps += r.steps;
    t->drafts += drafts;
    t->accepted += beyond < 0 ? s->accepted : drafts;
    t->suffixes += (r.end - r.suffixes) / r.length;
    t->reached += beyond >= 0 && r.end > r.suffixes;
    t->hits += beyond > 0;
    t->suffix_tokens += beyond > 0 ? beyond : 0;
}

void ouroboros_print(FILE *to, const ouroboros_tally *t)
{
    fprintf(to, "drafts: %lld in %lld draft steps, accepted %lld; n-grams inspired %lld, suffixes refined %lld\n",
            (long long)t->drafts, (long long)t->steps, (long long)t->accepted, (long long)t->inspired,
            (long long)t->refined);
    fprintf(to, "suffixes: %lld, reached in %lld rounds, taken from in %lld, tokens accepted %lld\n",
            (long long)t->suffixes, (long long)t->reached, (long long)t->hits, (long long)t->suffix_tokens);
}

/* ---- The picture of a round. ----------------------------------------------------------- */

static bool accepted(const as_step *s, int32_t row)
{
    for (int32_t i = 1; i <= s->accepted; i++)
        if (s->path[i] == row) return true;
    return false;
}

static void show_row(const as_step *s, int32_t row, method_show_token *show, const void *data)
{
    const int32_t parent = s->tree->row[row].parent;
    show(data, s->tree->row[row].token);
    fputs(accepted(s, row) ? "+" : parent == 0 || accepted(s, parent) ? "-" : "", stderr);
}

void ouroboros_show(as_drafter *d, const as_step *s, method_show_token *show, const void *data)
{
    const round_rows r = rows_of(d, s);
    fprintf(stderr, "step %d at %llu: root", (int)s->step, (unsigned long long)s->position);
    show(data, s->tree->row[0].token);
    fprintf(stderr, ", %d row%s, drafts", (int)r.end, r.end == 1 ? "" : "s");
    for (int32_t i = 1; i < r.suffixes; i++) show_row(s, i, show, data);
    fprintf(stderr, "%s in %d draft step%s\n  suffixes", r.suffixes == 1 ? " none" : "", (int)r.steps,
            r.steps == 1 ? "" : "s");
    for (int32_t i = r.suffixes; i < r.end; i++) {
        if (i > r.suffixes && (i - r.suffixes) % r.length == 0) fputs(" |", stderr);
        show_row(s, i, show, data);
    }
    fprintf(stderr, "%s, emitted", r.suffixes == r.end ? " none" : "");
    for (int32_t i = 0; i < s->emitted; i++) show(data, s->run[i]);
    fputc('\n', stderr);
}

/* ---- JSON. ----------------------------------------------------------------------------- */

static json_t *row_tokens(const as_step *s, int32_t first, int32_t end)
{
    json_t *list = json_array();
    for (int32_t i = first; i < end; i++) json_array_append_new(list, json_integer(s->tree->row[i].token));
    return list;
}

static json_t *run_tokens(const as_step *s)
{
    json_t *list = json_array();
    for (int32_t i = 0; i < s->length; i++) json_array_append_new(list, json_integer(s->run[i]));
    return list;
}

json_t *ouroboros_json(as_drafter *d, const as_step *s)
{
    const round_rows r = rows_of(d, s);
    json_t *suffixes = json_array();
    int32_t refined;
    const int32_t inspired = as_ouroboros_inspired(d, &refined);
    for (int32_t i = r.suffixes; i < r.end; i += r.length)
        json_array_append_new(suffixes, row_tokens(s, i, i + r.length));
    json_t *step = json_pack("{s:i, s:I, s:i, s:o, s:o, s:i, s:o, s:i, s:i, s:i}", "step", (int)s->step, "position",
                             (json_int_t)s->position, "draft_steps", (int)r.steps, "drafts",
                             row_tokens(s, 1, r.suffixes), "suffixes", suffixes, "accepted", (int)s->accepted, "run",
                             run_tokens(s), "emitted", (int)s->emitted, "inspired", (int)inspired, "refined",
                             (int)refined);
    if (step) method_add_state(step, as_ouroboros_lookahead(d));
    return step;
}
