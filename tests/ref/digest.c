/* digest.c - one number over what the reference computes: exp, dense arithmetic, rotary tables,
 * a transformer, served rows, verification, whole decodings. same_bits.sh compares it across
 * compilers, optimisation, machine levels and threads. */
#include <inttypes.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ref/decode.h"
#include "ref/dist/residual.h"
#include "ref/draft/lookahead.h"
#include "ref/lm/hash_lm.h"
#include "ref/lm/llama.h"
#include "ref/num/dense.h"
#include "ref/num/exp.h"
#include "ref/num/rope.h"
#include "ref/num/rows.h"
#include "ref/num/uniform.h"
#include "ref/verify/verify.h"

/* FNV-1a over bytes. */
static uint64_t digest = UINT64_C(0xcbf29ce484222325);

static void add(const void *data, size_t size)
{
    const unsigned char *byte = data;
    for (size_t i = 0; i < size; i++) digest = (digest ^ byte[i]) * UINT64_C(0x100000001b3);
}

static void must(as_status s, const as_error *e)
{
    if (s == AS_OK) return;
    fprintf(stderr, "digest: %s\n", e->text);
    exit(1);
}

/* Inputs over the whole range where exp is neither 0 nor infinite, subnormal results
 * included. */
static void add_exp(void)
{
    for (uint32_t i = 0; i < 4000; i++) {
        const as_words r = as_random(1, i, AS_INIT, 0);
        const float y = as_exp((float)((double)r.w[0] * 0x1p-32 * 193.0 - 104.0));
        add(&y, sizeof y);
    }
}

static void random_floats(float *x, uint64_t n, uint32_t purpose)
{
    for (uint64_t i = 0; i < n; i++)
        x[i] = (float)(int32_t)as_random(3, i, AS_INIT, purpose).w[0] * 0x1p-33f;
}

/* A block of a small transformer, on as many threads as there are. */
static void add_dense(void)
{
    enum { N = 96, K = 1300, R = 11, D = N / 3 };
    static float w[N * K], x[R * K], y[R * N], gain[N], c[D / 2], s[D / 2], f[D / 2], o[R * D],
        m[R], l[R];
    const as_rope rope = {5e5, 1, 8.0f, 1.0f, 4.0f, 8192.0f};
    const as_dense_ops *ops = as_dense();
    as_error e;
    as_matrix matrix;
    random_floats(w, N * K, 0);
    random_floats(x, R * K, 1);
    random_floats(gain, N, 2);
    must(as_rope_frequencies(&rope, D, f, &e), &e);
    add(f, sizeof f);
    must(as_matrix_pack(&matrix, w, N, K, AS_F32, &e), &e);
    as_product(&matrix, gain, x, R, y, omp_get_max_threads());
    as_matrix_free(&matrix);
    add(y, sizeof y);
    ops->norm(y, R, N, gain, 1e-6f, y);
    for (int32_t r = 0; r < R; r++) {
        as_rope_table(f, D / 2, 1000 * r, 1, c, s);
        ops->rotate(y + r * N, D, c, s);
        ops->attend(y + r * N, D, 0.1767767f, w, w + D * 64, 5 * r + 1, &m[r], &l[r],
                    o + r * D);
    }
    ops->combine(m, l, o, R, D, y + N);
    ops->silu(y, x, R * N);
    add(y, sizeof y);
}

/* A transformer whose tensors all begin somewhere in one random block: the logits of a prompt
 * and of a tree behind it, more rows than a tile has. No larger than that needs: without
 * hardware fma it takes seconds. */
static void add_transformer(void)
{
    enum { V = 200, H = 136, FFN = 200, PROMPT = 70, ROWS = 140 };
    static float w[FFN * H + 4096], logits[ROWS * V];
    as_llama_config c = {V, 2, H, 6, 2, 32, FFN, 256, 1e-5f, {10000, 1, 8, 1, 4, 64}, 1, 1, 1};
    as_llama_layer layer[2];
    as_row row[ROWS];
    int32_t each[ROWS], sequence, at = 0;
    as_error e;
    as_lm *lm;
    random_floats(w, sizeof w / sizeof *w, 4);
    as_tensor *tensor = (as_tensor *)layer; /* nothing but tensors */
    for (size_t i = 0; i < sizeof layer / (sizeof *tensor); i++)
        tensor[i] = (as_tensor){w + 97 * i % 4096, AS_F32};
    const as_llama_weights weights = {{w, AS_F32}, {w + 5, AS_F32}, {NULL, AS_F32}, layer};
    must(as_llama(&c, &weights, &(as_llama_options){.rows = ROWS}, &lm, &e), &e);
    must(as_lm_open(lm, &sequence, &e), &e);
    for (int32_t i = 0; i < ROWS; i++) {
        each[i] = i;
        row[i] = (as_row){i * 7 % V, i - 1};
    }
    must(as_lm_forward(lm, &(as_forward){sequence, PROMPT, 0, row, each, NULL}, 1, &e), &e);
    must(as_lm_commit(lm, sequence, each, PROMPT, &e), &e);
    for (int32_t i = 0; i < ROWS; i++) row[i].parent = i % 5 == 4 ? at++ : i - 1;
    must(as_lm_forward(lm, &(as_forward){sequence, ROWS, ROWS, row, each, logits}, 1, &e), &e);
    add(logits, sizeof logits);
    as_lm_free(lm);
}

static void add_rows(int32_t V)
{
    static const as_sampling sampling[] = {{1.0f, 0, 1.0f, 0.0f},
                                           {0.7f, 40, 1.0f, 0.0f},
                                           {1.3f, 0, 0.9f, 0.0f},
                                           {2.0f, 50, 0.8f, 0.01f}};
    as_error e;
    float *x = malloc((size_t)V * 9 * sizeof *x);
    const float *row[8];
    if (!x) exit(1);
    for (uint32_t k = 0; k < 8; k++) {
        for (int32_t i = 0; i < V; i++)
            x[i] = (float)(as_random(2, (uint64_t)i, AS_INIT, k).w[0] >> 8) * 0x1p-20f;
        must(as_serve(x, V, &sampling[k % 4], x + (size_t)(k + 1) * (size_t)V, &e), &e);
        row[k] = x + (size_t)(k + 1) * (size_t)V;
    }
    add(x, (size_t)V * 9 * sizeof *x);
    for (uint64_t seed = 0; seed < 200; seed++) {
        int32_t out[5];
        const int32_t draft[] = {(int32_t)(seed % (uint64_t)V), 0, V - 1, V / 2};
        const int32_t n = as_verify_chain_seeded(row, row + 4, draft, 3, V, seed, seed, out);
        add(out, (size_t)n * sizeof *out);
        const double overlap = as_overlap(row[seed % 8], row[seed / 8 % 8], V);
        add(&overlap, sizeof overlap);
    }
    free(x);
}

static void add_decodings(void)
{
    const as_sampling sampling = {2.0f, 0, 0.95f, 0.0f};
    const int32_t prompt[] = {1, 2, 3};
    as_error e;
    as_lm *target, *draft;
    as_drafter *drafter;
    must(as_hash_lm(&(as_hash_law){3000, 12, 0, 5, 0}, &target, &e), &e);
    must(as_hash_lm(&(as_hash_law){3000, 12, 3, 5, 6}, &draft, &e), &e);
    must(as_draft_lm(draft, &sampling, 4, &drafter, &e), &e);
    for (int rule = AS_RULE_GREEDY; rule <= AS_RULE_MATCH; rule++) {
        int32_t out[24];
        as_result result;
        const as_request r = {.target = target,
                              .drafter = drafter,
                              .rule = (as_rule)rule,
                              .sampling = sampling,
                              .seed = 7,
                              .prompt = prompt,
                              .prompts = 3,
                              .budget = 24};
        must(as_decode(&r, out, &result, &e), &e);
        add(out, sizeof out);
    }
    as_drafter_free(drafter);
    as_lm_free(target);
    as_lm_free(draft);
}

/* Every preset of lookahead: its tokens, its steps and the window it ends with. */
static void add_lookaheads(void)
{
    static const char *const preset[] = {"paper", "lade", "llamacpp", "trtllm"};
    const as_sampling sampling = {2.0f, 0, 0.95f, 0.0f};
    const int32_t prompt[] = {1, 2, 3};
    as_error e;
    as_lm *lm;
    must(as_hash_lm(&(as_hash_law){12, 4, 0, 5, 0}, &lm, &e), &e);
    for (int i = 0; i < 8; i++) {
        as_lookahead o = *as_lookahead_preset(preset[i / 2]);
        as_drafter *drafter;
        int32_t out[60], n;
        as_result result;
        o.W = 4, o.N = 3, o.G = 3;
        must(as_draft_lookahead(&o, 12, &drafter, &e), &e);
        const as_request r = {.target = lm,
                              .drafter = drafter,
                              .rule = i % 2 ? o.rule : AS_RULE_GREEDY,
                              .sampling = sampling,
                              .seed = 7,
                              .prompt = prompt,
                              .prompts = 3,
                              .budget = 60};
        must(as_decode(&r, out, &result, &e), &e);
        add(out, sizeof out);
        add(&result.steps, sizeof result.steps);
        for (int32_t l = 0; as_lookahead_row(drafter, l, &n); l++)
            add(as_lookahead_row(drafter, l, &n), (size_t)n * sizeof *out);
        as_drafter_free(drafter);
    }
    as_lm_free(lm);
}

int main(void)
{
    add_exp();
    add_dense();
    add_transformer();
    add_rows(7);
    add_rows(1000);
    add_decodings();
    add_lookaheads();
    printf("%016" PRIx64 " %s\n", digest, as_rows()->name);
    return 0;
}
