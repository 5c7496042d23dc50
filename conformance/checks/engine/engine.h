/* engine.h - what the checks of a whole engine share: a pair of models, prompts, and calls of
 * `generate`. Clauses LAY-01, LAY-07, LAY-08, STOP-01, STOP-02, and of the methods JAC-02,
 * LAH-29, LKP-05, OUR-23.
 *
 * Functions that return false have decided the case: the result says how. */
#ifndef ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_H
#define ASSAY_CONFORMANCE_CHECKS_ENGINE_ENGINE_H

#include "conformance/checks/model/lm.h"
#include "conformance/checks/model/lm_small.h"

extern const check check_engine_greedy, check_engine_law, check_engine_late,
    check_engine_facts, check_engine_company, check_engine_top1, check_engine_mixed, check_engine_pairs,
    check_engine_logprob, check_engine_processors, check_engine_models, check_engine_seeds;

/* "few": six tokens, target and draft with weights of their own; "self": the trained draft
 * model, drafting for itself; "trained": the pair; "pruned": few's target, and a draft model with a vocabulary of its
 * own (VOC-01, CLM-19), for cases of drafts alone. */
typedef enum { PAIR_FEW, PAIR_SELF, PAIR_TRAINED, PAIR_PRUNED, PAIRS } engine_pair;
extern const char *const engine_pair_name[PAIRS];
extern const int32_t engine_pair_V[PAIRS];

enum { ENGINE_PROMPT = 640 }; /* tokens of a prompt at most */

typedef struct {
    int32_t n, token[ENGINE_PROMPT];
} engine_prompt;

typedef struct engine engine;

bool engine_claimed(const client *tested, engine_pair pair, int32_t gamma, char *why,
                    size_t size);
/* Chains of a draft model's, 0, and the methods. */
enum { ENGINE_METHODS = 5 };
extern const int32_t engine_methods[ENGINE_METHODS];

/* IUT_JACOBI ...; 0 is claimed by every engine. */
bool engine_claims_method(const client *tested, int32_t method, char *why, size_t size);

/* And above temperature 0 (CLM-09)? */
bool engine_claims_samples(const client *tested, int32_t method, char *why, size_t size);

/* Does the method sample by a rule and in an arithmetic whose law the suite knows? */
bool engine_claims_law(const client *tested, int32_t method, char *why, size_t size);

/* Does top_k = 1 leave several tokens at times? Of ties that are kept it does, where logits are coarse. */
bool engine_keeps_equals(const iut_claims *claims);

/* LAY-15: are its tokens a function of request and seed, whatever else is in the call? */
bool engine_is_exact(const iut_claims *claims);

/* Is F32 or a finer arithmetic declared? In a coarser one other tokens are as close by chance. */
bool engine_is_fine(const iut_claims *claims);

/* Does it draft from a model? Only then is gamma more than 0, and a draft model named. */
bool engine_drafts(int32_t method);

/* CLM-09: is the method claimed for temperature 0 alone? */
bool engine_is_greedy(const client *tested, int32_t method);
const char *engine_method_name(int32_t method); /* "jacobi" ... */

/* A case of a pair, whose id tells drafts a step, or the method with its sizes, and `more`: "few-g2-top4",
 * "few-jacobi-m4". V and gamma are set. */
check_case *engine_plan_case(check_plan *p, const check *of, engine_pair pair, int32_t gamma, int32_t method,
                             const int32_t *sizes /* [3] */, const char *more);

bool engine_open(engine *e, const check_context *x, check_result *r, engine_pair pair);
/* Two models of one vocabulary. */
bool engine_open_forms(engine *e, const check_context *x, check_result *r, const lm_form *target, const lm_form *draft);
/* Another draft model of the pruned pair: the number of its own ids and the ids are drawn from `seed`. */
bool engine_draw_head(engine *e, uint64_t seed);

/* n tokens, 1 to ENGINE_PROMPT: that text, repeated, or random ids. */
void engine_fill_prompt(const engine *e, int32_t text, int32_t n, uint64_t *rng,
                        engine_prompt *p);

/* Prompt number i, 1 to 200 tokens: text that the pair knows, or random ids. The
 * lengths cross chunks of attention, one prompt is a token alone, and the first two differ
 * where the first has its 64th position: what a cache keeps of one request shows in another. */
void engine_make_prompt(const engine *e, int32_t i, uint64_t *rng, engine_prompt *p);

/* A temperature of the list, which has ENGINE_TEMPERATURES; the filters that the bits of `filters`
 * name, each as strong as `rng` says. */
enum { ENGINE_TEMPERATURES = 7, ENGINE_TOP_K = 1, ENGINE_TOP_P = 2, ENGINE_MIN_P = 4, ENGINE_FILTERS = 8 };
iut_sampling engine_sampling(int32_t temperature, int32_t filters, uint64_t *rng);
/* Any of them. */
iut_sampling engine_draw_sampling(uint64_t *rng);
/* Often with the temperature of the request before, and then at times with all filters but one of it: what serves one
 * may not serve the other. Temperature 0 stays. */
void engine_share_sampling(iut_sampling *s, const iut_sampling *before, uint64_t *rng);
/* Drafts a step: 1 to 8, of four requests one up to 33, within the declared limit. */
int32_t engine_draw_gamma(const client *tested, uint64_t *rng);
/* Sizes of a method. */
void engine_draw_sizes(int32_t method, uint64_t *rng, int32_t *sizes /* [3] */);

/* What a request is asked for, where the requests of a call differ (CLM-16). What `per_request` does not name is that
 * of the call. */
enum { ENGINE_ENDS = 3 };
typedef struct {
    iut_sampling sampling;
    uint64_t seed;
    int32_t budget;
    int32_t ends, end[ENGINE_ENDS]; /* besides eos */
} engine_each;

/* What a call is asked for. */
typedef struct {
    int32_t gamma, k, eos;
    iut_sampling sampling;
    uint64_t seed;
    int32_t method, sizes[3]; /* as of iut_generate_batch */
    const engine_each *each;  /* [n] of the call; NULL: its requests do not differ */
    const iut_processors *processors; /* [n] of the call, as claimed (CLM-18); NULL: all are off */
    float *logprob;           /* [n][k] to be told, NaN behind the end (CLM-17); NULL: not asked for */
    bool itself;              /* the draft model is the target */
    int32_t *accepted;        /* [n][k] as told (CLM-11), after a call that was right; NULL: of no interest */
} engine_request;

/* A call and its answers, which are the caller's. */
typedef struct {
    engine_request q;
    int32_t n; /* 0: its hard facts were wrong */
    const engine_prompt *prompt;
    const int32_t *out, *length; /* [n][k], [n] */
} engine_call;

struct engine {
    const check_context *x;
    check_result *r;
    engine_pair pair; /* PAIRS: two forms */
    int32_t V;
    lm target, draft; /* their folders */
    int32_t end;      /* CLM-12: the end of every stream; -1: as the request says */
    /* Of drafted requests, as far as they are told: step by step, or as totals. */
    int64_t steps, totals, accepted, tokens;
    engine_call last; /* of engine_generate() */
};

/* One call with n prompts, and the hard facts of its answer (LAY-01): ids in range, counts that
 * end by STOP-01 or STOP-02, -1 behind them, accepted counts that add up to the tokens
 * (CLM-11). Under CLM-12 the request's eos is not asked for, but e->end. Prompts and answers stay until they are
 * compared (engine_ties.h). */
bool engine_generate(engine *e, const engine_request *q, const engine_prompt *prompt, int32_t n,
                     int32_t *out /* [n][k] */, int32_t *length /* [n] */);
/* A call with one prompt that has to be refused, and for a reason. */
bool engine_refuses(engine *e, const engine_request *q, const engine_prompt *prompt,
                    const char *what);
/* The same prompt n times. */
bool engine_repeat(engine *e, const engine_request *q, const engine_prompt *prompt, int32_t n,
                   int32_t *out /* [n][k] */, int32_t *length /* [n] */);
/* One request, right behind a call with its prompt but for the last `rest` tokens, 1 <= rest < prompt->n. An engine
 * that keeps its cache from call to call then reads these in a chunk of their own. q->each and q->accepted are NULL. */
bool engine_generate_behind(engine *e, const engine_request *q, const engine_prompt *prompt, int32_t rest,
                            int32_t *out /* [k] */, int32_t *length);

#endif
