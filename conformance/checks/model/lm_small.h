/* lm_small.h - small models that show what the trained pair does not: long inputs, biases,
 * norms of single heads, Llama-3 scaling, half formats and their subnormals, separate output
 * matrices, heads wider than the stream. Their weights are procedural and random, so that only
 * bits can be said of them. Written as folders that anybody's loader reads. */
#ifndef ASSAY_CONFORMANCE_CHECKS_MODEL_LM_SMALL_H
#define ASSAY_CONFORMANCE_CHECKS_MODEL_LM_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LM_F32, LM_BF16, LM_F16 };

/* What a small model is like. */
typedef struct {
    char name[32];        /* of its folder: two forms of one name are the same */
    uint8_t architecture; /* IUT_LLAMA ...: Qwen2 has biases, Qwen3 norms of each head */
    uint8_t stored;       /* LM_F32 ...: the format of the weights */
    int32_t V, layers, hidden, heads, kv_heads, head_dim, ffn;
    int32_t positions; /* that its config.json allows */
    bool tied, llama3;
    bool faint;   /* rows of subnormal weights */
    bool flat;    /* logits of size 1, not 2: laws in which every token counts; the small ones that are exported */
    bool crowded; /* if not tied: half of the output matrix repeats rows near by, and its last sixteenth is larger */
    double noise; /* share of each weight that is the form's own; the rest is that of the form
                     whose seed is one less. 0: all */
    int32_t owns;      /* ids of the draft's own vocabulary (VOC-01), 64 at most, not tied; 0: it has V */
    uint64_t own_seed; /* of these ids */
    const char *eps, *theta; /* as config.json has them */
    uint64_t seed;           /* of the weights */
} lm_form;

/* Sizes of drawn vocabularies: the least, few, and more than 16 bits count. */
enum { LM_LEAST = 3, LM_FEW = 24, LM_MANY = 70001, LM_MOST = 131073 };

/* A form of that architecture: one to five KV heads, groups of one to seven, and odd sizes. It has at most `most_V` ids
 * unless that is 0; less than LM_LEAST is no limit to draw within. */
lm_form lm_form_draw(uint64_t *rng, uint8_t architecture, int32_t positions, int32_t most_V);

/* A target for engines: 6 to 32,003 tokens, or `wide` LM_MANY to LM_MOST; within `most_V` as above. It has
 * heads of 8 to 256, weights in binary32, and few positions, which requests can fill. */
lm_form lm_form_draw_target(uint64_t *rng, uint8_t architecture, bool wide, int32_t most_V);
/* A draft model that is like such a target. */
lm_form lm_form_draft(const lm_form *target);

/* "pruned" with other ids of its own, one to five of six; two or more have a gap. */
lm_form lm_form_pruned(uint64_t seed);

/* One line for the reader of a failure. */
void lm_form_text(const lm_form *f, char *text, size_t size);

/* The folder of the form, written at the first call. That of a drawn form is removed when the program ends; that of a
 * small model is kept from run to run (lm_files.h). Thread-safe. NULL: `why` says why. */
const char *lm_form_folder(const lm_form *f, char *why, size_t why_size);

/* The folder of the small model of that name ("long", "biased", "normed", "few", "fewer", "pruned"),
 * as lm_form_folder gives it. */
const char *lm_small_folder(const char *name, char *why, size_t why_size);

/* Writes the small model of that name into `folder`, which is made if it is not there. False: errno says why. */
bool lm_small_write(const char *name, const char *folder);

/* The form of the small model of that name; NULL: there is none. */
const lm_form *lm_small_form(const char *name);

#endif
