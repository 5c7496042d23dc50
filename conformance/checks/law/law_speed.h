/* law_speed.h - are drafts accepted as the clauses say? A verifier that refuses more than its rule, and a drafter that
 * reads stale rows, keep the law and lose the speed. Clauses STAT-14, STAT-15; docs/statistics.md, "Speed".
 *
 * In `verify` the suite knows every draft, so it is known how many are accepted. In `stream` nobody says how many
 * drafts a step has: to draft less is no fault. But a draft that is accepted under the token rule has the law
 * min(p, q) / sum min(p, q), however many there are; under match and one-hot, if drafts are sampled, p q / sum p q. So
 * both are bet on there, that too few are accepted if each step has all its drafts, and that those accepted were not
 * drawn from q; what counts is the smaller e-value. Of likeliest tokens as drafts the accepted ones are these. */
#ifndef ASSAY_CONFORMANCE_CHECKS_LAW_LAW_SPEED_H
#define ASSAY_CONFORMANCE_CHECKS_LAW_LAW_SPEED_H

#include "conformance/checks/law/law.h"

/* Requests of a case in ranges: 0 to 7, 8 to 63, 64 to 511, and all behind. */
enum { LAW_RANGES = 4 };

typedef struct law_speed {
    const panel *a;
    bool verify;     /* else `stream` */
    bool argmax;     /* stream: drafts are the likeliest tokens of q (CLM-30) */
    uint8_t rule;
    double *due;     /* [S] chance that a draft of the state is accepted */
    double *law;     /* stream: [S][V] the law of an accepted draft; p where none can be */
    int64_t *drafts; /* [LAW_RANGES][S] that were examined; stream: if each step has all that it may have */
    int64_t *stood;  /* [LAW_RANGES][S] of them accepted */
    int32_t *tokens; /* stream: [LAW_RANGES][S][V] accepted drafts */
} law_speed;

/* Is it known for this operation, rule and claim `drafts` what is accepted? If drafts are likeliest tokens, only where
 * the panel has one in each state, ahead by more than rounding. */
bool law_speed_known(const panel *a, law_op op, uint8_t rule, int32_t drafts);

/* False: no memory; `t` may be closed in any case. */
bool law_speed_open(law_speed *t, const panel *a, law_op op, uint8_t rule, int32_t drafts);
void law_speed_close(law_speed *t);

/* Request number of the case, from 0 on. */
static inline int32_t law_range(int64_t request)
{
    return request < 8 ? 0 : request < 64 ? 1 : request < 512 ? 2 : 3;
}

/* A draft that was examined in this state. */
static inline void law_speed_examined(law_speed *t, int64_t request, int32_t state, bool accepted)
{
    const int32_t at = law_range(request) * t->a->view.S + state;
    t->drafts[at]++, t->stood[at] += accepted;
}

/* stream: a token that was drafted in this state and accepted. */
static inline void law_speed_accepted(law_speed *t, int64_t request, int32_t state, int32_t token)
{
    const size_t at = (size_t)(law_range(request) * t->a->view.S + state);
    t->tokens[at * (size_t)t->a->view.V + (size_t)token]++;
}

/* ln E against "what is accepted is what the clauses say". Once, at the end of a case. NAN: no memory. */
double law_speed_log_e(const law_speed *t);

/* What the sampler saw, into r->speed. Only where the strict null holds (STAT-03). */
void law_tell_speed(const law_sampler *s, check_result *r);

#endif
