/* The wire format: round trips, and frames that break each rule. FRM-01 to FRM-03, FRM-05. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "conformance/wire/claims.h"
#include "conformance/wire/frames.h"
#include "conformance/wire/layout.h"

/* A frame of the given JSON and tensor bytes, malloc'd to its exact size so that a read beyond
 * it shows under a sanitizer. */
static uint8_t *make(const char *json, const void *data, size_t payload, size_t *size)
{
    const uint32_t header = (uint32_t)strlen(json);
    const uint64_t length = 4 + header + payload;
    *size = FRAME_PREFIX + header + payload;
    uint8_t *bytes = malloc(*size);
    assert_non_null(bytes);
    memcpy(bytes, &length, 8);
    memcpy(bytes + 8, &header, 4);
    memcpy(bytes + FRAME_PREFIX, json, header);
    if (payload) memcpy(bytes + FRAME_PREFIX + header, data, payload);
    return bytes;
}

/* FRM-01: the bytes of a frame, written down by hand from the clause. */
static void known_bytes(void **state)
{
    (void)state;
    static const uint8_t bytes[] = "\x35\0\0\0\0\0\0\0"
                                   "\x2d\0\0\0"
                                   "{\"id\":7,\"op\":\"x\",\"tensors\":[[\"t\",\"i32\",[1]]]}"
                                   "\x04\x03\x02\x01";
    char why[200];
    frame f;
    const size_t size = sizeof bytes - 1;
    assert_int_equal(size, 8 + 0x35);
    assert_true(frame_parse(bytes, size, &f, why, sizeof why));
    assert_int_equal(f.id, 7);
    assert_string_equal(f.op, "x");
    assert_null(f.status);
    assert_int_equal(f.tensors, 1);
    assert_int_equal(f.tensor[0].type, TENSOR_I32);
    assert_int_equal(f.tensor[0].rank, 1);
    int32_t value;
    memcpy(&value, f.tensor[0].data, sizeof value);
    assert_int_equal(value, 0x01020304);
    frame_release(&f);
}

static void round_trip(void **state)
{
    (void)state;
    const uint64_t seed = UINT64_MAX;
    const float nan_bits[2] = {0, 0};
    json_t *args = json_pack("{si}", "n", 3);
    const frame out = {.id = FRAME_MAX_ID,
                       .op = "draw",
                       .args = args,
                       .tensors = 3,
                       .tensor = {{"seed", TENSOR_U64, 1, {1}, 8, &seed},
                                  {"x", TENSOR_F32, 2, {1, 2}, 8, nan_bits},
                                  {"none", TENSOR_F64, 3, {4, 0, 2}, 0, NULL}}};
    size_t head, size = 0;
    uint8_t *start = frame_encode(&out, &head);
    assert_non_null(start);
    uint8_t *bytes = malloc(head + 16);
    memcpy(bytes, start, head);
    memcpy(bytes + head, &seed, 8);
    memcpy(bytes + head + 8, nan_bits, 8);
    size = head + 16;
    frame in;
    char why[200];
    assert_true(frame_parse(bytes, size, &in, why, sizeof why));
    assert_true(in.id == FRAME_MAX_ID);
    assert_int_equal(in.tensors, 3);
    assert_memory_equal(in.tensor[0].data, &seed, 8);
    assert_int_equal(in.tensor[1].shape[1], 2);
    assert_int_equal(in.tensor[2].size, 0);
    int64_t n;
    assert_true(frame_integer(&in, "n", 0, 3, &n));
    assert_int_equal(n, 3);
    assert_false(frame_integer(&in, "n", 0, 2, &n));
    assert_false(frame_integer(&in, "m", 0, 2, &n));
    frame_release(&in);
    /* Every shorter and every longer piece is refused, whatever the cut hits. */
    for (size_t cut = 0; cut < size; cut++) {
        uint8_t *piece = malloc(cut ? cut : 1);
        memcpy(piece, bytes, cut);
        assert_false(frame_parse(piece, cut, &in, why, sizeof why));
        free(piece);
    }
    bytes = realloc(bytes, size + 1);
    bytes[size] = 0;
    assert_false(frame_parse(bytes, size + 1, &in, why, sizeof why));
    free(bytes);
    free(start);
    json_decref(args);
}

static void hostile_headers(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
        size_t payload;
    } bad[] = {
        {"{}", "has neither", 0},
        {"[]", "must be a JSON object", 0},
        {"{\"id\":1,\"op\":\"x\"", "no JSON", 0},
        {"{\"id\":1,\"op\":\"x\"}}", "no JSON", 0},
        {"{\"id\":1,\"id\":2,\"op\":\"x\"}", "no JSON", 0},
        {"{\"id\":1,\"op\":\"\xff\"}", "no JSON", 0},
        {"{\"id\":1,\"op\":\"x\",\"status\":\"ok\"}", "has both", 0},
        {"{\"id\":1,\"op\":2}", "must be strings", 0},
        {"{\"id\":1,\"op\":\"x\\u0000\"}", "must be strings", 0},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\\u0000\",\"i32\",[1]]]}", "a tensor must be",
         4},
        {"{\"id\":1,\"status\":\"failed\",\"error\":2}", "must be strings", 0},
        {"{\"op\":\"x\"}", "`id`", 0},
        {"{\"id\":-1,\"op\":\"x\"}", "`id`", 0},
        {"{\"id\":1.0,\"op\":\"x\"}", "`id`", 0},
        {"{\"id\":9007199254740993,\"op\":\"x\"}", "`id`", 0},
        {"{\"id\":1,\"op\":\"x\",\"args\":[]}", "`args`", 0},
        {"{\"id\":1,\"op\":\"x\",\"frames\":0}", "`frames`", 0},
        {"{\"id\":1,\"op\":\"x\",\"frames\":\"1\"}", "`frames`", 0},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":{}}", "must be a list", 0},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[1]}", "a tensor must be", 0},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\",\"i32\"]]}", "a tensor must be", 0},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\",\"i64\",[1]]]}", "has type i64", 8},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\",\"i32\",[1,1,1,1]]]}", "dimensions", 4},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\",\"i32\",[-1]]]}", "dimension 0", 4},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\",\"i32\",[1,\"2\"]]]}", "dimension 1", 4},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\",\"i32\",[2147483648]]]}", "dimension 0",
         4},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\",\"i32\",[2147483647,2147483647,4]]]}",
         "too large", 4},
        {"{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\",\"i32\",[2]]]}", "lists 8 bytes", 4},
        {"{\"id\":1,\"op\":\"x\"}", "lists 0 bytes", 4},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char why[200] = "";
        size_t size;
        frame f;
        uint8_t *bytes = make(bad[i].json, "01234567", bad[i].payload, &size);
        if (frame_parse(bytes, size, &f, why, sizeof why))
            fail_msg("accepted: %s", bad[i].json);
        if (!strstr(why, bad[i].says)) fail_msg("%s: says \"%s\"", bad[i].json, why);
        free(bytes);
    }
}

/* An error is any text, a NUL in it included (FRM-03). */
static void error_with_a_nul(void **state)
{
    (void)state;
    char why[200];
    size_t size;
    frame f;
    uint8_t *bytes =
        make("{\"id\":1,\"status\":\"failed\",\"error\":\"ab\\u0000c\"}", NULL, 0, &size);
    assert_true(frame_parse(bytes, size, &f, why, sizeof why));
    assert_string_equal(f.error, "ab");
    frame_release(&f);
    free(bytes);
}

static void too_many_tensors(void **state)
{
    (void)state;
    char json[1000] = "{\"id\":1,\"op\":\"x\",\"tensors\":[[\"t\",\"i32\",[0]]", why[200];
    for (int i = 0; i < FRAME_MAX_TENSORS; i++) strcat(json, ",[\"t\",\"i32\",[0]]");
    strcat(json, "]}");
    size_t size;
    frame f;
    uint8_t *bytes = make(json, NULL, 0, &size);
    assert_false(frame_parse(bytes, size, &f, why, sizeof why));
    assert_non_null(strstr(why, "more than 32"));
    free(bytes);
}

static void prefixes(void **state)
{
    (void)state;
    static const struct {
        uint64_t length;
        uint32_t header;
        bool good;
    } set[] = {{6, 2, true},
               {5, 2, false},
               {4, 0, false},
               {0, 0, false},
               {5, 1, false},
               {3, 2, false},
               {UINT64_MAX, 2, false},
               {UINT64_C(1) << 60, 64, false},
               {4 + FRAME_MAX_HEADER, FRAME_MAX_HEADER, true},
               {5 + FRAME_MAX_HEADER, FRAME_MAX_HEADER + 1, false},
               {6 + FRAME_MAX_PAYLOAD, 2, true},
               {7 + FRAME_MAX_PAYLOAD, 2, false},
               {UINT64_MAX, UINT32_MAX, false}};
    for (size_t i = 0; i < sizeof set / sizeof *set; i++) {
        uint8_t bytes[FRAME_PREFIX];
        char why[200];
        size_t header, payload;
        memcpy(bytes, &set[i].length, 8);
        memcpy(bytes + 8, &set[i].header, 4);
        assert_int_equal(frame_prefix(bytes, &header, &payload, why, sizeof why), set[i].good);
        if (set[i].good) assert_true(4 + header + payload == set[i].length);
    }
}

/* What cannot travel is refused when it is encoded: text that is not UTF-8, a header beyond the
 * limit. */
static void encode_limits(void **state)
{
    (void)state;
    size_t size;
    static char large[FRAME_MAX_HEADER + 1];
    memset(large, 'x', FRAME_MAX_HEADER);
    const frame not_utf8 = {.id = 1, .status = "failed", .error = "\xff"};
    const frame too_large = {.id = 1, .status = "failed", .error = large};
    assert_null(frame_encode(&not_utf8, &size));
    assert_null(frame_encode(&too_large, &size));
}

static const layout_array *array_of(iut_op op, const char *name)
{
    const layout_array *a = layout[op].array;
    while (a->name && strcmp(a->name, name) != 0) a++;
    assert_non_null(a->name);
    return a;
}

/* FRM-04: an array's shape follows from the integers, and the limits hold before anything is
 * allocated. */
static void layouts(void **state)
{
    (void)state;
    char why[200];
    frame_tensor t, other;
    int64_t value[VALUES] = {[VALUE_N] = 3, [VALUE_GAMMA] = 4};
    const layout_array *u = array_of(OP_VERIFY, "u");
    assert_true(layout_tensor(u, value, &t));
    assert_int_equal(t.shape[0], 3);
    assert_int_equal(t.shape[1], 6);
    assert_int_equal(t.size, 3 * 6 * 8);
    other = t;
    assert_true(layout_matches(&t, &other, why, sizeof why));
    other.shape[1] = 5;
    assert_false(layout_matches(&t, &other, why, sizeof why));
    assert_string_equal(why, "tensor u f64 [3, 5] where u f64 [3, 6] is due");
    value[VALUE_N] = value[VALUE_GAMMA] = INT32_MAX;
    assert_false(layout_tensor(u, value, &t));
    value[VALUE_GAMMA] = 4;
    assert_false(layout_tensor(u, value, &t));
    value[VALUE_K] = 5, value[VALUE_PROMPTS] = 7;
    assert_true(layout_tensor(array_of(OP_GENERATE, "prompt"), value, &t));
    assert_true(t.type == TENSOR_I32 && t.rank == 1 && t.shape[0] == 7);
    value[VALUE_N] = 3;
    assert_true(layout_tensor(array_of(OP_GENERATE, "accepted"), value, &t));
    assert_true(t.rank == 2 && t.shape[0] == 3 && t.shape[1] == 5);
    value[VALUE_NGRAM] = 4, value[VALUE_G] = 2;
    assert_true(layout_tensor(array_of(OP_POOL, "out"), value, &t));
    assert_true(t.rank == 3 && t.shape[0] == 3 && t.shape[1] == 2 && t.shape[2] == 3);
    assert_string_equal(layout[OP_GENERATE].text[1].name, "draft");
    assert_int_equal(iut_op_find("generate"), OP_GENERATE);
    assert_int_equal(iut_op_find("verify_greedy"), OP_VERIFY_GREEDY);
    assert_int_equal(iut_op_find("verif"), OP_COUNT);
}

/* Every byte of a batch belongs to a field that the table names, or is padding: bytes of a
 * pattern come back from its parts where a field is, and 0 elsewhere. The sizes are those of
 * the ABI on a machine of 64 bits. */
static void batches(void **state)
{
    (void)state;
    static const struct {
        iut_op op;
        size_t size, named; /* bytes of the batch, and of its fields but `size` */
    } due[] = {{OP_PANEL, 128, 12 + 6 * 8 + 32 + 4 + 3 * 8},
               {OP_SERVED, 32, 4 + 8 + 4 + 8},
               {OP_RESIDUAL, 32, 4 + 8 + 8},
               {OP_DRAW, 48, 4 + 2 * 8 + 2 * 8 + 8},
               {OP_VERIFY, 96, 8 + 4 * 8 + 2 * 8 + 2 * 8 + 4 + 8},
               {OP_VERIFY_GREEDY, 96, 8 + 4 * 8 + 2 * 8 + 2 * 8 + 4 + 8},
               {OP_STREAM, 64, 16 + 8 + 8 + 3 * 8},
               {OP_MODEL, 40, 8 + 16 + 8},
               {OP_FORWARD, 72, 12 + 7 * 8},
               {OP_COMMIT, 48, 8 + 4 * 8},
               {OP_TRUNCATE, 32, 4 + 3 * 8},
               {OP_CACHE_READ, 48, 4 + 5 * 8},
               {OP_CACHE_POISON, 4, 0},
               {OP_GENERATE, 200, 2 * 8 + 9 * 4 + 2 * 8 + 16 + 8 + 3 * 8 + 5 * 8 + 4 + 8 + 4 + 8},
               {OP_POOL, 64, 20 + 5 * 8},
               {OP_VERIFY_TREE, 184, 20 + 15 * 8 + 2 * 8 + 3 * 8}};
    for (size_t i = 0; i < sizeof due / sizeof *due; i++) {
        uint64_t before[32], after[32];
        size_t same = 0;
        layout_parts parts = {.value = {0}};
        memset(before, 0x5A, sizeof before), memset(after, 0, sizeof after);
        assert_int_equal(layout[due[i].op].size, due[i].size);
        layout_take_apart(due[i].op, before, &parts);
        layout_put_together(due[i].op, &parts, after);
        assert_memory_equal(after, &layout[due[i].op].size, 4);
        for (size_t b = 4; b < due[i].size; b++) {
            const uint8_t x = ((const uint8_t *)after)[b];
            assert_true(x == 0x5A || x == 0);
            same += x == 0x5A;
        }
        if (same != due[i].named) fail_msg("%s: %zu bytes named", iut_op_name(due[i].op), same);
    }
}

/* A copy has what the batch had, and nothing of it in common. */
static void copies(void **state)
{
    (void)state;
    int32_t cls[3] = {0, 1, 0}, next[4] = {1, 0, 0, 1};
    float rows[4][6];
    for (int i = 0; i < 24; i++) rows[i / 6][i % 6] = (float)i;
    char folder[] = "a folder";
    const iut_panel panel = {.size = sizeof panel,
                             .V = 3,
                             .S = 2,
                             .C = 2,
                             .cls = cls,
                             .next = next,
                             .p = rows[0],
                             .q = rows[1],
                             .p_logit = rows[2],
                             .q_logit = rows[3],
                             .target = {0.5F, 1, 0.25F, 0.125F},
                             .draft = {2, 3, 4, 5}};
    const iut_model model = {sizeof model, folder, 2, 8, 4, 0xFFFFFFFFu, cls};
    iut_panel *p = layout_copy(OP_PANEL, &panel);
    iut_model *m = layout_copy(OP_MODEL, &model);
    assert_true(p && m);
    assert_true(p->V == 3 && p->S == 2 && p->C == 2 && p->size == sizeof panel);
    assert_true(p->cls != cls && p->next != next && p->p != rows[0]);
    assert_memory_equal(p->cls, cls, sizeof cls);
    assert_memory_equal(p->next, next, sizeof next);
    assert_memory_equal(p->p, rows[0], sizeof rows[0]);
    assert_memory_equal(p->q, rows[1], sizeof rows[0]);
    assert_memory_equal(p->p_logit, rows[2], sizeof rows[0]);
    assert_memory_equal(p->q_logit, rows[3], sizeof rows[0]);
    assert_memory_equal(&p->target, &panel.target, sizeof panel.target);
    assert_memory_equal(&p->draft, &panel.draft, sizeof panel.draft);
    assert_true(m->folder != folder && m->shape == cls);
    assert_string_equal(m->folder, folder);
    assert_true(m->sequences == 2 && m->positions == 8 && m->rows == 4 &&
                m->layout_seed == 0xFFFFFFFFu);
    free(p), free(m);
}

/* Each claim has its number by its word in iut.h, which is written down here anew. */
static void claims_have_words(void **state)
{
    (void)state;
    static const struct {
        const char *claim, *word;
        int32_t number;
    } due[] = {{"uniforms", "own", IUT_UNIFORMS_OWN},
               {"input", "logits", IUT_FROM_LOGITS},
               {"map", "gumbel", IUT_MAP_GUMBEL},
               {"rule", "not lossless", IUT_RULE_NOT_LOSSLESS},
               {"rule", "onehot", IUT_RULE_ONEHOT},
               {"arithmetic", "bf16", IUT_ARITH_BF16},
               {"tie", "any", IUT_TIE_ANY},
               {"q_zero", "reject", IUT_REJECT},
               {"bad_row", "error", IUT_ERROR},
               {"bad_draft", "reject", IUT_REJECT},
               {"bad_draft", "error", IUT_ERROR},
               {"empty", "other", IUT_EMPTY_OTHER},
               {"lm_arithmetic", "self consistent", IUT_LM_SELF_CONSISTENT},
               {"lm_architectures", "qwen3", IUT_QWEN3},
               {"methods", "lookup", IUT_LOOKUP},
               {"greedy_methods", "lookahead", IUT_LOOKAHEAD},
               {"methods", "ouroboros", IUT_OUROBOROS},
               {"greedy_methods", "ouroboros", IUT_OUROBOROS},
               {"pools", "ring", IUT_POOL_RING},
               {"top_k_ties", "kept", IUT_TIES_KEPT},
               {"weights", "own", IUT_WEIGHTS_OWN},
               {"per_request", "sampling", IUT_PER_SAMPLING},
               {"per_request", "ends", IUT_PER_ENDS},
               {"logprobs", "served", IUT_LOGPROB_SERVED},
               {"processors", "repetition", IUT_REPETITION},
               {"processors", "frequency", IUT_FREQUENCY},
               {"draft_vocab", "panel", IUT_VOCAB_PANEL},
               {"draft_vocab", "folder", IUT_VOCAB_FOLDER},
               {"coins", "two", IUT_COINS_TWO},
               {"tree_coins", "one", IUT_COINS_ONE},
               {"coins", "race", IUT_COINS_RACE},
               {"tree_rules", "target", IUT_TREE_TARGET},
               {"tree_rules", "recursive", IUT_TREE_RECURSIVE},
               {"tree_rules", "match", IUT_TREE_MATCH},
               {"tree_rules", "greedy", IUT_TREE_GREEDY},
               {"tree_rules", "kseq", IUT_TREE_KSEQ},
               {"tree_rules", "block", IUT_TREE_BLOCK},
               {"lossless_any", "onehot", IUT_TREE_ONEHOT},
               {"lossless_drawn", "single", IUT_TREE_SINGLE},
               {"tree_rules", "typical", IUT_TREE_TYPICAL},
               {"tree_rules", "lenient", IUT_TREE_LENIENT},
               {"tree_rules", "constant", IUT_TREE_CONSTANT},
               {"tree_rules", "other", IUT_TREE_OTHER},
               {"tree_drawn", "fixed", IUT_DRAWN_FIXED},
               {"tree_drawn", "iid", IUT_DRAWN_IID},
               {"tree_drawn", "without", IUT_DRAWN_WITHOUT},
               {"tree_drawn", "mixed", IUT_DRAWN_MIXED},
               {"tree_bonus", "drawn", IUT_BONUS_DRAWN},
               {"tree_bonus", "given", IUT_BONUS_GIVEN},
               {"drafts", "sampled", IUT_DRAFTS_SAMPLED},
               {"drafts", "argmax", IUT_DRAFTS_ARGMAX}};
    for (size_t i = 0; i < sizeof due / sizeof *due; i++) {
        const claim_row *row = claim_table;
        while (row->name && strcmp(row->name, due[i].claim) != 0) row++;
        assert_non_null(row->name);
        const char *word = strstr(row->words, due[i].word);
        assert_non_null(word);
        int32_t place = 0;
        for (const char *c = row->words; c < word; c++) place += *c == '|';
        assert_int_equal(row->kind == CLAIM_SET ? 1 << place : place + 1, due[i].number);
        assert_true(due[i].number <= claim_most(row));
    }
    size_t size = sizeof(uint32_t);
    for (const claim_row *row = claim_table; row->name; row++) size += row->width;
    /* 4 bytes before the texts, and one and two before the numbers of 4, are padding; five times 4 are reserved. */
    assert_int_equal(size + 4 + 3 + 3 + 20, sizeof(iut_claims));
    assert_int_equal(sizeof(iut_claims), 184);
}

/* CLM-14: four steps, each once. */
static void orders_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint8_t step[4];
    } good[] = {{NULL, {1, 2, 3, 4}},
                {"transformers", {1, 2, 3, 4}},
                {"vllm", {1, 4, 2, 3}},
                {"llamacpp", {2, 3, 4, 1}},
                {"mlx", {3, 4, 2, 1}},
                {"min_p top_p top_k temperature", {4, 3, 2, 1}}};
    static const char *const bad[] = {"",
                                      "temperature",
                                      "temperature top_k top_p",
                                      "temperature top_k top_p top_p",
                                      "temperature top_k top_p min_p ",
                                      " temperature top_k top_p min_p",
                                      "temperature  top_k top_p min_p",
                                      "temperature top_k top_p min_p mlx",
                                      "Temperature top_k top_p min_p",
                                      "mlx ",
                                      "temperature top_k top_p min_pp"};
    uint8_t step[4];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(claims_order(good[i].text, step));
        assert_memory_equal(step, good[i].step, 4);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(claims_order(bad[i], step));
}

/* FRM-08, CLM-04, CLM-18: penalties are claimed to a suite that knows of them, and of three kinds. */
static void penalties_travel(void **state)
{
    (void)state;
    char why[300];
    unsigned ops;
    iut_claims in, out = {.size = sizeof out, .name = "n", .version = "v", .device = "d", .processors = 5};
    json_t *args = claims_encode(&out, 0, 4), *older = claims_encode(&out, 0, 3);
    assert_true(claims_decode(args, &in, &ops, why, sizeof why));
    assert_int_equal(in.processors, IUT_REPETITION | IUT_FREQUENCY);
    assert_null(claims_difference(&in, &out));
    assert_null(json_object_get(older, "processors"));
    assert_true(claims_decode(older, &in, &ops, why, sizeof why));
    assert_string_equal(claims_difference(&in, &out), "processors");
    json_object_set_new(args, "processors", json_integer(8));
    assert_false(claims_decode(args, &in, &ops, why, sizeof why));
    json_decref(args);
    json_decref(older);
}

/* FRM-08, CLM-14, CLM-15: what is told of rows and weights travels to a suite that knows of it, and no other. */
static void later_claims_travel(void **state)
{
    (void)state;
    char why[300];
    unsigned ops;
    iut_claims in, out = {.size = sizeof out, .name = "n", .version = "v", .device = "d", .order = "vllm",
                          .arithmetic = IUT_ARITH_F32, .top_k_ties = IUT_TIES_KEPT, .weights = IUT_WEIGHTS_OWN, .per_request = 15};
    json_t *args = claims_encode(&out, 0, 2), *first = claims_encode(&out, 0, 1), *older = claims_encode(&out, 0, 0);
    assert_true(claims_decode(args, &in, &ops, why, sizeof why));
    assert_string_equal(in.order, "vllm");
    assert_int_equal(in.top_k_ties, IUT_TIES_KEPT);
    assert_int_equal(in.weights, IUT_WEIGHTS_OWN);
    assert_null(claims_difference(&in, &out));
    in.order = "mlx";
    assert_string_equal(claims_difference(&in, &out), "order");
    in.order = NULL;
    assert_string_equal(claims_difference(&in, &out), "order");
    assert_int_equal(in.per_request, 15);
    assert_int_equal(in.draft_vocab, 0);
    out.draft_vocab = IUT_VOCAB_FOLDER;
    assert_string_equal(claims_difference(&in, &out), "order");
    out.draft_vocab |= IUT_VOCAB_PANEL; /* a bit of group 6 */
    json_t *fifth = claims_encode(&out, 0, 5), *third = claims_encode(&out, 0, 3);
    assert_null(json_object_get(third, "draft_vocab"));
    assert_true(claims_decode(fifth, &in, &ops, why, sizeof why) && in.draft_vocab == IUT_VOCAB_FOLDER);
    for (int bits = 0; bits < 6; bits++) { /* CLM-04 */
        json_object_set_new(fifth, "draft_vocab", json_integer(bits));
        assert_int_equal(claims_decode(fifth, &in, &ops, why, sizeof why), bits < 4);
    }
    json_decref(fifth);
    json_decref(third);
    assert_non_null(json_object_get(first, "order"));
    assert_null(json_object_get(first, "per_request"));
    json_decref(first);
    assert_null(json_object_get(older, "order"));
    assert_null(json_object_get(older, "top_k_ties"));
    assert_null(json_object_get(older, "weights"));
    assert_true(claims_decode(older, &in, &ops, why, sizeof why) && !in.order);
    json_object_set_new(args, "order", json_integer(1));
    assert_false(claims_decode(args, &in, &ops, why, sizeof why));
    json_object_set_new(args, "order", json_string("top_k"));
    assert_false(claims_decode(args, &in, &ops, why, sizeof why));
    json_decref(args);
    json_decref(older);
    const iut_claims canonical = {.size = sizeof canonical, .name = "n", .version = "v", .device = "d",
                                  .arithmetic = IUT_ARITH_CANONICAL, .uniform_bits = 29, .order = "transformers",
                                  .top_k_ties = IUT_TIES_CUT, .weights = IUT_WEIGHTS_FOLDER};
    assert_true(claims_check(&canonical, why, sizeof why));
    for (int i = 0; i < 3; i++) {
        iut_claims wrong = canonical;
        if (i == 0) wrong.order = "vllm";
        if (i == 1) wrong.top_k_ties = IUT_TIES_KEPT;
        if (i == 2) wrong.weights = IUT_WEIGHTS_OWN;
        assert_false(claims_check(&wrong, why, sizeof why));
        wrong.arithmetic = IUT_ARITH_F32;
        assert_true(claims_check(&wrong, why, sizeof why));
    }
}

/* CLM-20 to CLM-24: what is claimed of trees travels to a suite that knows of them, and is coherent. */
static void tree_claims_travel(void **state)
{
    (void)state;
    char why[300];
    unsigned ops;
    iut_claims in, out = {.size = sizeof out, .name = "n", .version = "v", .device = "d", .draft_vocab = 3, .coins = 5,
                          .tree_rules = 0xFFF, .tree_drawn = 15, .tree_bonus = 2, .tree_coins = 3, .lossless_any = 13,
                          .lossless_drawn = 2, .max_nodes = 65, .max_children = 4, .tree_sampling = 1};
    json_t *args = claims_encode(&out, 0, 6), *older = claims_encode(&out, 0, 5);
    assert_true(claims_decode(args, &in, &ops, why, sizeof why));
    assert_null(claims_difference(&in, &out));
    assert_true(in.tree_rules == 0xFFF && in.coins == 5 && in.max_nodes == 65 && in.draft_vocab == 3);
    assert_true(claims_decode(older, &in, &ops, why, sizeof why));
    assert_int_equal(in.draft_vocab, IUT_VOCAB_FOLDER);
    assert_true(in.coins == 0 && in.tree_rules == 0 && in.tree_sampling == 0);
    for (int i = 0; i < 2; i++) {
        iut_claims wrong = out;
        wrong.tree_rules = IUT_TREE_MATCH;
        wrong.lossless_any = i ? IUT_TREE_MATCH : IUT_TREE_TARGET;
        wrong.lossless_drawn = i ? IUT_TREE_RECURSIVE : IUT_TREE_MATCH;
        assert_false(claims_check(&wrong, why, sizeof why));
        wrong.lossless_any = wrong.lossless_drawn = IUT_TREE_MATCH;
        assert_true(claims_check(&wrong, why, sizeof why));
    }
    json_object_set_new(args, "tree_rules", json_integer(4096));
    assert_false(claims_decode(args, &in, &ops, why, sizeof why));
    json_decref(args);
    json_decref(older);
}

/* CLM-25 to CLM-27: a suite that knows of group 7 alone hears of Ouroboros, of pools that stay and of ranks. */
static void method_claims_travel(void **state)
{
    (void)state;
    char why[300];
    unsigned ops;
    iut_claims in, out = {.size = sizeof out, .name = "n", .version = "v", .device = "d",
                          .methods = IUT_LOOKUP | IUT_OUROBOROS, .greedy_methods = IUT_OUROBOROS, .warm = 1, .ranks = 8};
    json_t *args = claims_encode(&out, 0, 7), *older = claims_encode(&out, 0, 6);
    assert_true(claims_decode(args, &in, &ops, why, sizeof why));
    assert_null(claims_difference(&in, &out));
    assert_true(in.methods == 12 && in.greedy_methods == 8 && in.warm == 1 && in.ranks == 8);
    assert_true(claims_decode(older, &in, &ops, why, sizeof why));
    assert_true(in.methods == IUT_LOOKUP && in.greedy_methods == 0 && in.warm == 0 && in.ranks == 0);
    assert_null(json_object_get(older, "warm"));
    static const iut_claims bad[] = {{.methods = 16}, {.warm = 2}, {.warm = -1}, {.ranks = -1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        iut_claims wrong = bad[i];
        wrong.name = wrong.version = wrong.device = "x";
        assert_false(claims_check(&wrong, why, sizeof why));
    }
    json_decref(args);
    json_decref(older);
}

/* CLM-28: a suite that knows of group 7 alone hears nothing of it. */
static void models_travel(void **state)
{
    (void)state;
    char why[300];
    unsigned ops;
    iut_claims in, out = {.size = sizeof out, .name = "n", .version = "v", .device = "d", .models = IUT_MODELS_EXPORTED};
    json_t *args = claims_encode(&out, 0, 8), *older = claims_encode(&out, 0, 7);
    assert_true(claims_decode(args, &in, &ops, why, sizeof why));
    assert_null(claims_difference(&in, &out));
    assert_int_equal(in.models, IUT_MODELS_EXPORTED);
    assert_true(claims_decode(older, &in, &ops, why, sizeof why));
    assert_int_equal(in.models, 0);
    out.models = 3;
    assert_false(claims_check(&out, why, sizeof why));
    json_decref(args);
    json_decref(older);
}

/* CLM-29, CLM-30: a suite that knows of group 8 alone hears nothing of them. */
static void expectations_travel(void **state)
{
    (void)state;
    char why[300];
    unsigned ops;
    iut_claims in, out = {.size = sizeof out, .name = "n", .version = "v", .device = "d",
                          .drafts = IUT_DRAFTS_ARGMAX, .seed_bits = 53};
    json_t *args = claims_encode(&out, 0, 9), *older = claims_encode(&out, 0, 8);
    assert_true(claims_decode(args, &in, &ops, why, sizeof why));
    assert_null(claims_difference(&in, &out));
    assert_true(in.drafts == IUT_DRAFTS_ARGMAX && in.seed_bits == 53);
    assert_true(claims_decode(older, &in, &ops, why, sizeof why));
    assert_true(in.drafts == 0 && in.seed_bits == 0);
    out.drafts = 3;
    assert_false(claims_check(&out, why, sizeof why));
    out.drafts = 0, out.seed_bits = 65;
    assert_false(claims_check(&out, why, sizeof why));
    out.arithmetic = IUT_ARITH_CANONICAL, out.uniform_bits = 29, out.seed_bits = 63;
    assert_true(claims_check(&out, why, sizeof why));
    out.uniforms = IUT_UNIFORMS_SEEDED;
    assert_false(claims_check(&out, why, sizeof why));
    assert_string_equal(why, "claims: canonical arithmetic with seeds of 63 bits; they have 64 (RNG-02)");
    out.seed_bits = 64;
    assert_true(claims_check(&out, why, sizeof why));
    json_decref(args);
    json_decref(older);
}

/* What the table says of claims that are not made is what iut.h says. */
static void what_is_not_said_is_in_the_table(void **state)
{
    (void)state;
    const iut_claims none = {.size = sizeof none}, some = {.size = sizeof some, .coins = IUT_COINS_RACE, .ranks = 4};
    uint8_t step[4];
    assert_int_equal(CLAIMED(&none, lm_architectures), IUT_LLAMA | IUT_QWEN2 | IUT_QWEN3);
    assert_int_equal(CLAIMED(&none, top_k_ties), IUT_TIES_CUT);
    assert_int_equal(CLAIMED(&none, weights), IUT_WEIGHTS_FOLDER);
    assert_int_equal(CLAIMED(&none, coins), IUT_COINS_TWO);
    assert_int_equal(CLAIMED(&none, tree_coins), IUT_COINS_TWO);
    assert_int_equal(CLAIMED(&none, tree_bonus), IUT_BONUS_DRAWN);
    assert_int_equal(CLAIMED(&none, ranks), 1);
    assert_int_equal(CLAIMED(&none, models), IUT_MODELS_ANY);
    assert_int_equal(CLAIMED(&none, rule), 0);
    assert_int_equal(CLAIMED(&none, seed_bits), 0);
    assert_int_equal(CLAIMED(&some, coins), IUT_COINS_RACE);
    assert_int_equal(CLAIMED(&some, ranks), 4);
    assert_true(claims_order(NULL, step) && step[0] == 1 && step[1] == 2 && step[2] == 3 && step[3] == 4);
}

/* Claims survive the wire field by field, and what is incoherent is refused. CLM-04. */
static void claims_travel(void **state)
{
    (void)state;
    char why[200];
    unsigned ops;
    iut_claims in, out = {.size = sizeof out,
                          .name = "n",
                          .version = "v",
                          .device = "d",
                          .uniforms = 3,
                          .input = 2,
                          .map = 2,
                          .rule = 5,
                          .arithmetic = 1,
                          .uniform_bits = 29,
                          .tie = 2,
                          .q_zero = 1,
                          .bad_row = 3,
                          .bad_draft = 2,
                          .empty = 1,
                          .seed_identical = 1,
                          .greedy_identical = 1,
                          .max_vocab = INT32_MAX,
                          .max_gamma = 7,
                          .lm_arithmetic = 2,
                          .lm_architectures = IUT_LLAMA | IUT_QWEN3,
                          .methods = IUT_JACOBI | IUT_LOOKUP,
                          .greedy_methods = IUT_LOOKUP,
                          .pools = IUT_POOL_RING,
                          .accepted_total = 1,
                          .eos_always = 1};
    const unsigned some = 1u << OP_CLAIMS | 1u << OP_DRAW | 1u << OP_GENERATE;
    json_t *args = claims_encode(&out, some, CLAIMS_SINCE);
    assert_true(claims_decode(args, &in, &ops, why, sizeof why));
    assert_int_equal(ops, some);
    assert_string_equal(in.device, "d");
    assert_int_equal(in.uniforms, 3);
    assert_int_equal(in.greedy_identical, 1);
    assert_int_equal(in.max_vocab, INT32_MAX);
    assert_int_equal(in.max_gamma, 7);
    assert_int_equal(in.lm_arithmetic, 2);
    assert_int_equal(in.lm_architectures, 5);
    assert_int_equal(in.methods, 5);
    assert_int_equal(in.greedy_methods, 4);
    assert_int_equal(in.pools, 2);
    assert_true(in.accepted_total == 1 && in.eos_always == 1);
    json_t *again = claims_encode(&in, ops, CLAIMS_SINCE);
    assert_true(json_equal(args, again));
    json_decref(again);
    json_decref(args);
    out.uniform_bits = 28;
    assert_false(claims_check(&out, why, sizeof why));
    out.arithmetic = IUT_ARITH_F64;
    assert_true(claims_check(&out, why, sizeof why));
    out.max_vocab = -1;
    assert_false(claims_check(&out, why, sizeof why));
    out.max_vocab = 0;
    out.tie = 4;
    assert_false(claims_check(&out, why, sizeof why));
    out.tie = 0;
    out.lm_arithmetic = 3;
    assert_false(claims_check(&out, why, sizeof why));
    out.lm_arithmetic = 1;
    assert_true(claims_check(&out, why, sizeof why));
    out.lm_architectures = 8;
    assert_false(claims_check(&out, why, sizeof why));
    out.lm_architectures = 0;
    assert_true(claims_check(&out, why, sizeof why));
    out.pools = 4;
    assert_false(claims_check(&out, why, sizeof why));
    out.pools = 3;
    out.greedy_methods = IUT_LOOKAHEAD;
    assert_false(claims_check(&out, why, sizeof why));
    assert_string_equal(why, "claims: greedy_methods = 2 names what is not in methods = 5");
    out.greedy_methods = out.methods;
    assert_true(claims_check(&out, why, sizeof why));
    out.eos_always = 2;
    assert_false(claims_check(&out, why, sizeof why));
    assert_string_equal(why, "claims: eos_always = 2; it must be 0 to 1");
    out.eos_always = 1;
    out.accepted_total = -1;
    assert_false(claims_check(&out, why, sizeof why));
    out.accepted_total = 0;
    assert_true(claims_check(&out, why, sizeof why));
    out.device = NULL;
    assert_false(claims_check(&out, why, sizeof why));
}

/* CLM-05: the operations on a model come together, or not at all. */
static void model_operations_come_together(void **state)
{
    (void)state;
    char why[200] = "";
    const unsigned four =
        1u << OP_MODEL | 1u << OP_FORWARD | 1u << OP_COMMIT | 1u << OP_TRUNCATE;
    assert_true(claims_check_ops(1u << OP_DRAW, why, sizeof why));
    assert_true(claims_check_ops(four, why, sizeof why));
    assert_true(claims_check_ops(four | 1u << OP_CACHE_READ, why, sizeof why));
    for (iut_op op = OP_MODEL; op <= OP_TRUNCATE; op++)
        assert_false(claims_check_ops(four & ~(1u << op), why, sizeof why));
    assert_false(claims_check_ops(1u << OP_CACHE_POISON, why, sizeof why));
    assert_non_null(strstr(why, "go together"));
    const iut_claims claims = {
        .size = sizeof claims, .name = "n", .version = "v", .device = "d"};
    iut_claims in;
    unsigned ops;
    json_t *args = claims_encode(&claims, 1u << OP_CLAIMS | 1u << OP_FORWARD, CLAIMS_SINCE);
    assert_false(claims_decode(args, &in, &ops, why, sizeof why));
    json_decref(args);
}

/* A case of a call by itself has what it had there: its own entries, its own part of lists, its own seed. */
static void a_case_alone(void **unused)
{
    static const uint64_t seeds[] = {7, 8, 9};
    static const iut_sampling each[] = {{1, 2, 1, 0}, {0.5f, 3, 1, 0}, {0, 4, 1, 0}};
    static const int32_t counts[] = {2, 3, 1}, prompt[] = {10, 11, 20, 21, 22, 30}, budgets[] = {4, 5, 6},
                         end_count[] = {1, 0, 2}, ends[] = {1, 2, 3};
    static const iut_processors processors[] = {{1, 2, 3}, {4, 5, 6}, {7, 8, 9}};
    int32_t out[3][6], out_len[3], accepted[3][6];
    float logprob[3][6];
    const iut_generate_batch b = {.size = sizeof b, .target = "t", .draft = "", .n = 3, .k = 6, .prompts = 6, .eos = -1,
        .seed = 100, .prompt_count = counts, .prompt = prompt, .out = *out, .out_len = out_len, .accepted = *accepted,
        .samplings = each, .seeds = seeds, .budgets = budgets, .end_count = end_count, .ends = ends, .end_total = 3,
        .processors = processors, .logprob = *logprob, .tell = 1};
    iut_generate_batch one;
    layout_parts whole = {.value = {0}}, part;
    (void)unused;
    layout_take_apart(OP_GENERATE, &b, &whole);
    for (int32_t i = 0, at = 0, end = 0; i < 3; at += counts[i], end += end_count[i], i++) {
        layout_case(OP_GENERATE, &whole, i, &part);
        layout_put_together(OP_GENERATE, &part, &one);
        assert_true(one.n == 1 && one.k == 6 && one.eos == -1 && one.seed == 100 + (uint64_t)i && one.tell == 1);
        assert_true(one.prompts == counts[i] && one.prompt_count == counts + i && one.prompt == prompt + at);
        assert_true(one.end_total == end_count[i] && one.end_count == end_count + i && one.ends == ends + end);
        assert_true(one.samplings == each + i && one.seeds == seeds + i && one.budgets == budgets + i);
        assert_true(one.processors == processors + i && one.logprob == logprob[i]);
        assert_true(one.out == out[i] && one.out_len == out_len + i && one.accepted == accepted[i]);
        assert_string_equal(one.target, "t");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(known_bytes),
                                       cmocka_unit_test(round_trip),
                                       cmocka_unit_test(hostile_headers),
                                       cmocka_unit_test(too_many_tensors),
                                       cmocka_unit_test(prefixes),
                                       cmocka_unit_test(encode_limits),
                                       cmocka_unit_test(layouts),
                                       cmocka_unit_test(batches),
                                       cmocka_unit_test(copies),
                                       cmocka_unit_test(a_case_alone),
                                       cmocka_unit_test(error_with_a_nul),
                                       cmocka_unit_test(claims_have_words),
                                       cmocka_unit_test(orders_are_read),
        cmocka_unit_test(penalties_travel),
        cmocka_unit_test(later_claims_travel),
        cmocka_unit_test(tree_claims_travel),
        cmocka_unit_test(method_claims_travel),
        cmocka_unit_test(models_travel),
        cmocka_unit_test(expectations_travel),
        cmocka_unit_test(what_is_not_said_is_in_the_table),
        cmocka_unit_test(claims_travel),
                                       cmocka_unit_test(model_operations_come_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
