/* lm_explain.h - which mistake explains a wrong answer: the logits of a row that was not wanted, of another parent, of
 * another sequence, of a prefix that is too short or too long, of another position, of another view of the rows. It
 * says so where the answer is at least eight times as close to those as to what is due. No verdict rests on it. */
#ifndef ASSAY_CONFORMANCE_CHECKS_MODEL_LM_EXPLAIN_H
#define ASSAY_CONFORMANCE_CHECKS_MODEL_LM_EXPLAIN_H

#include "conformance/checks/model/lm_paths.h"
#include "conformance/checks/model/lm_script.h"

/* What was wrong, and the answer. */
typedef struct {
    enum { LM_NO_ANSWER, LM_WRONG_LENGTH, LM_WRONG_LOGITS, LM_WRONG_ENTRIES } what;
    int32_t step; /* of the script; -1: nothing failed */
    int32_t part, row, position; /* the latter two of LM_WRONG_LOGITS */
    int32_t n;  /* of `got`: V, or KV heads * head_dim */
    float *got; /* logits, or keys and then values */
} lm_found;

void lm_found_none(lm_found *f);
void lm_found_length(lm_found *f, int32_t step, int32_t part);
/* False: the memory is short. */
bool lm_found_logits(lm_found *f, int32_t step, int32_t part, int32_t row, int32_t position, const float *got,
                     int32_t V);
bool lm_found_entries(lm_found *f, int32_t step, int32_t part, const float *key, const float *value, int32_t n);

/* `m` may be asked for plain runs: the script is over. */
lm_cause lm_explain(const lm_found *f, const lm_script *s, lm_paths *paths, lm *m);

/* "operation 3, sequence 1, row 2, position 9" */
void lm_found_text(const lm_found *f, const lm_script *s, char *text, size_t size);

#endif
