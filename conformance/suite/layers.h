/* layers.h - the layers of chapter 6 (LAY-01 to LAY-09), and how many cases of a run each judged. */
#ifndef ASSAY_CONFORMANCE_SUITE_LAYERS_H
#define ASSAY_CONFORMANCE_SUITE_LAYERS_H

#include "conformance/suite/run.h"

/* In the order of the clauses. */
typedef enum {
    LAYER_HARD_FACTS, LAYER_REPLAY, LAYER_CERTIFICATES, LAYER_LAW, LAYER_METAMORPHIC, LAYER_MODEL_BITS,
    LAYER_ENGINE_TOKENS, LAYER_ENGINE_LAW, LAYER_TRACES, LAYERS
} layer;

/* Judged: claimed, and something was compared. */
typedef struct {
    const char *name;
    size_t planned, judged;
    bool applied;    /* to more than a tenth of its cases */
    const char *why; /* what most of those not judged say, or that none was selected */
} layer_summary;

void count_layers(const run_report *report, layer_summary layers[LAYERS]);

const char *layer_name(layer l); /* "engine law" */

/* The layer of a name, in which '-' may stand for a blank. LAYERS: there is none. */
layer layer_find(const char *name);

#endif
