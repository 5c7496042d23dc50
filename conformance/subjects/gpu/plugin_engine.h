/* plugin_engine.h - `generate` of the plugin (plugin.c): the requests of a batch in the loop on
 * the device, several at once: those that stand side by side and share their sampling. Ouroboros
 * goes through the reference's loop, one request after the other.
 *
 * The models' caches have room for what requests ask for, not for all the positions that a
 * model was made for, which may be far more than a device has memory for. The room grows
 * between batches: the model is loaded anew with twice as much, or more. */
#ifndef ASSAY_CONFORMANCE_SUBJECTS_GPU_PLUGIN_ENGINE_H
#define ASSAY_CONFORMANCE_SUBJECTS_GPU_PLUGIN_ENGINE_H

#include "conformance/subjects/ours/engine_ops.h"
#include "gpu/device/device.h"

/* As engine_ops_generate says, with the same tokens and steps. how: sequences, rows and
 * positions are set here. AS_LIMIT, with the numbers, where the caches do not fit beside the
 * weights, even for one sequence at a time. */
as_status plugin_generate(const ag_device *device, engine_ops *x, const iut_generate_batch *b,
                          const engine_ops_manner *how, as_error *e);

#endif
