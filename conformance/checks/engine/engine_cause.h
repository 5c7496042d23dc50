/* engine_cause.h - which mistake the wrong tokens of a call at temperature 0 look like: those of the row before, of a
 * refused draft, of another position, of another request. No verdict rests on it. Clauses LAY-07, STOP-04, KV-08. */
#ifndef ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_CAUSE_H
#define ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_CAUSE_H

#include "conformance/checks/engine/engine_rows.h"

/* After a FAIL of the request whose tokens stand at `tokens`, among the answers to a call: its wrong tokens, and those
 * of the requests behind it, against what each mistake would give. Appends to the result what it finds; if `tokens`
 * stands elsewhere, nothing. */
void engine_tell_cause(const engine *e, const engine_call *c, const int32_t *tokens);

#endif
