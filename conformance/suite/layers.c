/* layers.c - see layers.h. */
#include "conformance/suite/layers.h"

#include <string.h>

const char *layer_name(layer l)
{
    static const char *const names[LAYERS] = {"hard facts",    "replay",      "certificates",
                                              "law",           "metamorphic", "model bits",
                                              "engine tokens", "engine law",  "traces"};
    return names[l];
}

static bool same_words(const char *given, const char *name)
{
    for (; *given && (*given == *name || (*given == '-' && *name == ' ')); given++) name++;
    return *given == *name;
}

layer layer_find(const char *name)
{
    int i = 0;
    while (i < LAYERS && !same_words(name, layer_name((layer)i))) i++;
    return (layer)i;
}

static bool is_of(const run_case *k, const char *clause)
{
    return strstr(k->plan->check->clauses, clause) != NULL;
}

static bool was_judged(const run_case *k)
{
    return k->claimed && k->result.compared > 0 && k->result.state != STATE_WAIVED;
}

/* The reason that most cases of the layer give for not having been judged. */
static const char *main_reason(const run_report *r, const char *clause)
{
    const char *reason = "not selected";
    size_t most = 0;
    for (size_t i = 0; i < r->planned; i++) {
        const run_case *a = &r->cases[i];
        size_t same = 0;
        if (!is_of(a, clause) || was_judged(a)) continue;
        for (size_t j = i; j < r->planned; j++) {
            const run_case *b = &r->cases[j];
            same += is_of(b, clause) && !was_judged(b) &&
                    strcmp(a->result.detail, b->result.detail) == 0;
        }
        if (same <= most) continue;
        most = same;
        reason = a->result.detail;
    }
    return reason;
}

void count_layers(const run_report *r, layer_summary layers[LAYERS])
{
    for (int i = 0; i < LAYERS; i++) {
        const char clause[] = {'L', 'A', 'Y', '-', '0', (char)('1' + i), '\0'};
        layers[i] =
            (layer_summary){.name = layer_name((layer)i), .why = main_reason(r, clause)};
        for (size_t j = 0; j < r->planned; j++) {
            const run_case *k = &r->cases[j];
            layers[i].planned += is_of(k, clause);
            layers[i].judged += is_of(k, clause) && was_judged(k);
        }
        layers[i].applied = 10 * layers[i].judged > layers[i].planned;
    }
}
