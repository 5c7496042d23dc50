/* verify_test.c - the acceptance rules and whole streams on the grid emulator against the
 * reference, token for token: random panels with bad rows and bad drafts, uniforms on the
 * borders of acceptance, random trees with candidates that repeat and share prefixes; cases
 * with a block each and cases whose rows blocks share, several orders of blocks and threads.
 * ACC, RES, BON, GRD, MAT, ONEH, LAH-18 to LAH-21, STOP-01 to STOP-04. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "conformance/subjects/ref/subject.h"
#include "gpu/emu/control.h"
#include "gpu/verify/verify.h"
#include "ref/dist/draw.h"
#include "tests/gpu/on_device.h"
#include "tests/gpu/rows.h"
#include "tests/random.h"
#include "tests/ref/suite.h"
#include "tests/scale.h"

/* A device that shares rows (many processors) or does not (one). */
static void open_device(int processors)
{
    emu_processors(processors);
    ok(ag_device_open(&device, 0, &why));
}

/* ---- Panels. --------------------------------------------------------------------------- */

/* A panel on both sides. Rows may be bad, and the reference says which. */
typedef struct {
    iut_panel host;
    int32_t *cls, *next;
    float *p, *q, *logits;
    ag_panel on;
    float *d_logits;
} panel;

/* A row of probabilities of one of several kinds. */
static void some_row(float *p, int32_t V, uint64_t *seed)
{
    const as_sampling how = {1.0f, below(seed, 3) ? 0 : 3, 1.0f, 0.0f};
    float *x = malloc((size_t)V * sizeof *x);
    some_logits(x, V, (form)below(seed, FORMS), seed);
    ok(as_serve(x, V, &how, p, &why));
    for (int32_t i = 0; i < V; i++) /* eighths: acceptance borders that uniforms can meet */
        if (V > 1 && V < 6) p[i] = (float)(1 + below(seed, 3)) * 0.125f;
    free(x);
}

static panel make_panel(int32_t V, int32_t S, bool bad, uint64_t seed)
{
    const size_t v = (size_t)V, s = (size_t)S, bytes = v * s * sizeof(float);
    const int32_t C = V < 3 ? V : 3;
    panel x = {.p = malloc(bytes), .q = malloc(bytes), .logits = malloc(bytes)};
    x.cls = malloc(v * sizeof *x.cls);
    x.next = malloc(s * (size_t)C * sizeof *x.next);
    for (int32_t i = 0; i < V; i++) x.cls[i] = below(&seed, C);
    for (int32_t i = 0; i < S * C; i++) x.next[i] = below(&seed, S);
    for (int32_t i = 0; i < S; i++) {
        float *p = x.p + (size_t)i * v, *q = x.q + (size_t)i * v;
        some_row(p, V, &seed);
        some_row(q, V, &seed);
        if (i % 4 == 1) memcpy(q, p, v * sizeof *q);
        some_logits(x.logits + (size_t)i * v, V, (form)(i % FORMS), &seed);
    }
    if (bad) {
        x.p[2 * v] = NAN;
        memset(x.q + 3 * v, 0, v * sizeof *x.q);
        x.q[4 * v + v - 1] = 1.5f;
        x.logits[5 * v + v / 2] = INFINITY;
        for (size_t i = 0; i < v; i++) x.logits[6 * v + i] = -INFINITY;
    }
    x.host = (iut_panel){.size = sizeof x.host,
                         .V = V,
                         .S = S,
                         .C = C,
                         .cls = x.cls,
                         .next = x.next,
                         .p = x.p,
                         .q = x.q,
                         .p_logit = x.logits,
                         .q_logit = x.logits,
                         .target = {1.0f, 0, 1.0f, 0.0f},
                         .draft = {1.0f, 0, 1.0f, 0.0f}};
    int32_t *p_state = on_device(NULL, s * sizeof *p_state),
            *q_state = on_device(NULL, s * sizeof *q_state);
    x.d_logits = on_device(x.logits, bytes);
    x.on = (ag_panel){V,
                      S,
                      C,
                      on_device(x.cls, v * sizeof *x.cls),
                      on_device(x.next, s * (size_t)C * sizeof *x.next),
                      on_device(x.p, bytes),
                      on_device(x.q, bytes),
                      p_state,
                      q_state};
    ok(ag_check_rows(&device, x.on.p, NULL, S, V, p_state, &why));
    ok(ag_check_rows(&device, x.on.q, NULL, S, V, q_state, &why));
    return x;
}

static void discard_panel(panel *x)
{
    free(x->cls), free(x->next), free(x->p), free(x->q), free(x->logits);
    ag_free((void *)x->on.cls), ag_free((void *)x->on.next);
    ag_free((void *)x->on.p), ag_free((void *)x->on.q);
    ag_free((void *)x->on.p_state), ag_free((void *)x->on.q_state);
    ag_free(x->d_logits);
}

/* The reference as an implementation under test, with the panel. */
static iut *reference(const char *options, const panel *x)
{
    char error[200] = "";
    iut *r = ref_api()->create(options, error, sizeof error);
    ck_assert_msg(r != NULL, "%s", error);
    ck_assert_int_eq(ref_api()->panel(r, &x->host), IUT_OK);
    return r;
}

/* What an answer of the reference is called here. */
static ag_fault_kind kind_of(iut *r, iut_status s)
{
    if (s == IUT_OK) return AG_CASE_GOOD;
    const char *text = ref_api()->last_error(r);
    return strstr(text, "drafts:")     ? AG_BAD_DRAFT
           : strstr(text, "draft row") ? AG_BAD_Q
                                       : AG_BAD_P;
}

/* ---- Chains. --------------------------------------------------------------------------- */

/* A batch of cases on the host. */
typedef struct {
    int32_t n, gamma;
    int32_t *len, *state, *draft, *out, *out_len;
    double *u;
} batch;

/* Where acceptance of a draft begins or ends, if there is such a place. */
static double border(float p, float q, uint64_t *seed)
{
    const double at = q > p ? (double)p / (double)q : 1.0;
    const double u = floor(at * 0x1p29) * 0x1p-29 + (double)(below(seed, 3) - 1) * 0x1p-29;
    return u < 0.0 ? 0.0 : u >= 1.0 ? 1.0 - 0x1p-29 : u;
}

static batch make_batch(const panel *x, int32_t n, int32_t gamma, bool bad, uint64_t seed)
{
    const int32_t V = x->on.V, S = x->on.S;
    const size_t g = (size_t)gamma, c = (size_t)n;
    batch b = {n,
               gamma,
               malloc(c * 4),
               malloc(c * (g + 1) * 4),
               malloc((c * g + 1) * 4),
               malloc(c * (g + 1) * 4),
               malloc(c * 4),
               malloc(c * (g + 2) * sizeof(double))};
    for (int32_t i = 0; i < n; i++) {
        int32_t *state = b.state + (size_t)i * (g + 1), *draft = b.draft + (size_t)i * g;
        double *u = b.u + (size_t)i * (g + 2);
        b.len[i] = below(&seed, 4) ? gamma : below(&seed, gamma + 1);
        for (int32_t k = 0; k <= gamma; k++) state[k] = below(&seed, S);
        for (int32_t k = 0; k < gamma + 2; k++) u[k] = (double)between(&seed, 0.0f, 1.0f);
        for (int32_t k = 0; k < gamma; k++) {
            const float *p = x->p + (size_t)state[k] * (size_t)V,
                        *q = x->q + (size_t)state[k] * (size_t)V,
                        *logits = x->logits + (size_t)state[k] * (size_t)V;
            /* Of many drafts most are greedy ones. */
            const bool greedy = gamma > 10 && below(&seed, 20) > 0;
            const int32_t kind = greedy ? 3 : below(&seed, 5);
            draft[k] = below(&seed, V);
            if (kind < 2) draft[k] = as_draw(q, V, splitmix(&seed));
            if (kind == 2) draft[k] = as_draw(p, V, (uint64_t)ldexp(u[k], 64));
            if (kind == 3) (void)as_argmax(logits, V, &draft[k], NULL);
            if (draft[k] < 0 || below(&seed, 40) == 0) draft[k] = -1;
            if (bad && below(&seed, 60) == 0) draft[k] = coin(&seed) ? V : -2;
            if (below(&seed, 3) == 0 && draft[k] >= 0 && draft[k] < V && kind != 2)
                u[k] = border(p[draft[k]], q[draft[k]], &seed);
        }
    }
    return b;
}

static void discard_batch(batch *b)
{
    free(b->len), free(b->state), free(b->draft), free(b->out), free(b->out_len), free(b->u);
}

/* One case of the reference's; greedy: verify_greedy. */
static ag_fault_kind ask(iut *r, bool greedy, const batch *b, int32_t i, bool given,
                         uint64_t seed, uint64_t position)
{
    const size_t g = (size_t)b->gamma, c = (size_t)i;
    iut_verify_batch one = {.size = sizeof one,
                            .n = 1,
                            .gamma = b->gamma,
                            .len = b->len + c,
                            .state = b->state + c * (g + 1),
                            .draft = b->draft + c * g,
                            .u = given ? b->u + c * (g + 2) : NULL,
                            .seed = seed,
                            .position = position,
                            .out = b->out + c * (g + 1),
                            .out_len = b->out_len + c};
    for (int32_t k = 0; k <= b->gamma; k++) one.out[k] = -1;
    one.out_len[0] = 0;
    const iut_status s =
        greedy ? ref_api()->verify_greedy(r, &one) : ref_api()->verify(r, &one);
    return kind_of(r, s);
}

/* Cases first to first + n of the batch on the device, against the reference's answers. */
static void check_chains(const panel *x, iut *r, as_rule rule, bool given, const batch *b,
                         int32_t first, int32_t n, const ag_scratch *scratch)
{
    const size_t g = (size_t)b->gamma, c = (size_t)n, at = (size_t)first;
    const uint64_t seed = 1000, position = UINT64_C(0xfffffffe);
    int32_t *out = malloc(c * (g + 1) * 4), *out_len = malloc(c * 4);
    ag_fault *fault = malloc(c * sizeof *fault);
    memset(out, 0xff, c * (g + 1) * 4);
    void *len = on_device(b->len + at, c * 4),
         *state = on_device(b->state + at * (g + 1), c * (g + 1) * 4),
         *draft = on_device(b->draft + at * g, c * g * 4),
         *u = on_device(b->u + at * (g + 2), c * (g + 2) * sizeof(double)),
         *d_out = on_device(out, c * (g + 1) * 4), *d_len = on_device(NULL, c * 4),
         *d_fault = on_device(NULL, c * sizeof *fault);
    const ag_chains on = {n,
                          b->gamma,
                          x->on.V,
                          rule == AS_RULE_GREEDY ? x->d_logits : x->on.p,
                          x->on.q,
                          x->on.p_state,
                          x->on.q_state,
                          state,
                          len,
                          draft,
                          given ? u : NULL,
                          {NULL, NULL, seed + at, position, NULL},
                          d_out,
                          d_len,
                          d_fault};
    ok(ag_verify(&device, rule, &on, scratch, &why));
    fetch(out, d_out, c * (g + 1) * 4);
    fetch(out_len, d_len, c * 4);
    fetch(fault, d_fault, c * sizeof *fault);
    for (int32_t i = 0; i < n; i++) {
        const ag_fault_kind kind = ask(r, rule == AS_RULE_GREEDY, b, first + i, given,
                                       seed + at + (uint64_t)i, position);
        char what[300];
        snprintf(what, sizeof what, "V %d, rule %d, given %d, case %d of %d, fault %d at %d",
                 (int)x->on.V, (int)rule, given, (int)i, (int)n, (int)fault[i].kind,
                 (int)fault[i].at);
        ck_assert_msg((int)fault[i].kind == (int)kind, "%s: not %d: %s", what, (int)kind,
                      ref_api()->last_error(r));
        ck_assert_msg(out_len[i] == (kind == AG_CASE_GOOD ? b->out_len[first + i] : 0),
                      "%s: length %d, not %d", what, (int)out_len[i],
                      (int)b->out_len[first + i]);
        if (kind != AG_CASE_GOOD) continue;
        for (size_t k = 0; k <= g; k++)
            ck_assert_msg(out[(size_t)i * (g + 1) + k] ==
                              b->out[(at + (size_t)i) * (g + 1) + k],
                          "%s: token %d", what, (int)k);
    }
    ag_free(len), ag_free(state), ag_free(draft), ag_free(u);
    free(out), free(out_len), free(fault);
}

/* All rules over one batch: at once, and a few cases at a time. */
static void check_rules(const panel *x, const batch *b, const ag_scratch *s)
{
    static const struct {
        const char *options;
        as_rule rule;
        bool given;
    } how[] = {{"uniforms=supplied rule=token", AS_RULE_CHAIN, true},
               {"uniforms=seeded rule=token", AS_RULE_CHAIN, false},
               {"uniforms=supplied rule=match", AS_RULE_MATCH, true},
               {"uniforms=seeded rule=match", AS_RULE_MATCH, false},
               {"uniforms=seeded rule=match", AS_RULE_GREEDY, false}};
    for (size_t i = 0; i < sizeof how / sizeof *how; i += (size_t)thinned(2)) {
        iut *r = reference(how[i].options, x);
        emu_order(i % 4);
        check_chains(x, r, how[i].rule, how[i].given, b, 0, b->n, s);
        for (int32_t first = 0; first < 4 && first < b->n; first += 1 + first) {
            emu_order((uint64_t)first + i);
            const int32_t n = b->n - first < 1 + first ? b->n - first : 1 + first;
            check_chains(x, r, how[i].rule, how[i].given, b, first, n, s);
        }
        ref_api()->destroy(r);
    }
}

static const int processors[] = {1, 4, 400};

START_TEST(chains)
{
    static const struct {
        int32_t V, n, gamma;
    } size[] = {{1, 20, 2},   {2, 100, 5},   {5, 150, 4},  {63, 60, 9},
                {300, 20, 0}, {1500, 7, 30}, {4099, 6, 4}, {7000, 4, 7}};
    open_device(processors[_i]);
    ag_scratch s = {0};
    ok(ag_scratch_reserve(&device, 130, &s, &why));
    for (size_t i = 0; i < sizeof size / sizeof *size; i += (size_t)thinned(2))
        for (int bad = 0; bad < 2; bad++) {
            panel x = make_panel(size[i].V, 12, bad, i);
            batch b = make_batch(&x, size[i].n, size[i].gamma, bad, i + 100);
            check_rules(&x, &b, &s);
            discard_batch(&b);
            discard_panel(&x);
        }
    ag_scratch_free(&s);
    ag_device_close(&device);
}
END_TEST

/* One launch does for a step over a large vocabulary, whatever the rule; without states and
 * lengths, as a loop on the device has it. */
START_TEST(one_launch)
{
    enum { V = 152064, GAMMA = 3 };
    open_device(40);
    ag_scratch s = {0};
    ok(ag_scratch_reserve(&device, GAMMA + 1, &s, &why));
    panel x = make_panel(V, GAMMA + 1, false, 9);
    batch b = make_batch(&x, 1, GAMMA, false, 3);
    for (int32_t k = 0; k <= GAMMA; k++) b.state[k] = k;
    b.len[0] = GAMMA;
    void *draft = on_device(b.draft, sizeof(int32_t) * GAMMA),
         *out = on_device(NULL, sizeof(int32_t) * (GAMMA + 1)), *len = on_device(NULL, 4),
         *fault = on_device(NULL, sizeof(ag_fault));
    const uint64_t seed = 77, position = 5, earlier = 3;
    void *d_seed = on_device(&seed, 8), *d_position = on_device(&earlier, 8);
    for (int rule = AS_RULE_GREEDY; rule <= AS_RULE_MATCH; rule++) {
        int32_t got[GAMMA + 1], n;
        const ag_chains c = {.n = 1,
                             .gamma = GAMMA,
                             .V = V,
                             .p = rule == AS_RULE_GREEDY ? x.d_logits : x.on.p,
                             .q = x.on.q,
                             .draft = draft,
                             .seeds = {d_seed, d_position, 9, position - earlier, NULL},
                             .out = out,
                             .out_len = len,
                             .fault = fault};
        iut *r = reference(rule == AS_RULE_CHAIN ? "uniforms=seeded rule=token"
                                                 : "uniforms=seeded rule=match",
                           &x);
        const uint64_t before = emu_launches();
        ok(ag_verify(&device, (as_rule)rule, &c, &s, &why));
        ck_assert_uint_eq(emu_launches(), before + 1);
        ok(ag_download(&device, got, out, sizeof got, &why));
        ok(ag_download(&device, &n, len, sizeof n, &why));
        ck_assert_int_eq(ask(r, rule == AS_RULE_GREEDY, &b, 0, false, seed, position),
                         AG_CASE_GOOD);
        ck_assert_int_eq(n, b.out_len[0]);
        ck_assert_mem_eq(got, b.out, (size_t)n * sizeof *got);
        ref_api()->destroy(r);
    }
    ag_free(draft), ag_free(out), ag_free(len), ag_free(fault), ag_free(d_seed),
        ag_free(d_position);
    discard_batch(&b);
    discard_panel(&x);
    ag_scratch_free(&s);
    ag_device_close(&device);
}
END_TEST

/* ---- Trees. ---------------------------------------------------------------------------- */

enum { CAPACITY = 40, WANTS = 43, TREES = 12 };

/* Trees on the host, their wanted rows as ag_walks has them. One is not there. */
enum { NO_TREE = 4 };

typedef struct {
    int32_t V;
    ag_tree tree[TREES];
    int32_t token[TREES][CAPACITY], parent[TREES][CAPACITY];
    float *row;    /* [TREES][WANTS][V] logits */
    float *served; /* the same rows served */
    int32_t state[TREES][WANTS];
} forest;

static float *row_in(const forest *f, float *at, int32_t t, int32_t slot)
{
    return at + ((size_t)t * WANTS + (size_t)slot) * (size_t)f->V;
}

/* One of the few tokens of the trees, far from each other. */
static int32_t common(int32_t V, int32_t k)
{
    return V < 3 ? k : k * (V / 3);
}

/* Candidates repeat and share prefixes: tokens are few. A row favours one of its children. */
static void make_tree(forest *f, int32_t t, uint64_t *seed)
{
    const as_sampling how = {1.0f, 0, 1.0f, 0.0f};
    const int32_t R = t == 0 ? 1 : 2 + below(seed, CAPACITY - 1);
    const int32_t few = f->V < 3 ? f->V : 3;
    int32_t *token = f->token[t], *parent = f->parent[t];
    for (int32_t r = 0; r < R; r++) {
        token[r] = below(seed, 8) ? common(f->V, below(seed, few)) : below(seed, f->V);
        parent[r] = r == 0 ? -1 : below(seed, 3) ? below(seed, r < 4 ? r : 4) : r - 1;
    }
    const int32_t drafts = below(seed, 3) ? 1 : 1 + below(seed, R), all = below(seed, 3) == 0;
    const int32_t wanted = all ? 1 : 1 + below(seed, drafts);
    f->tree[t] = (ag_tree){R, wanted, drafts, all, 1 + below(seed, 5), coin(seed)};
    for (int32_t s = 0; s < WANTS; s++) {
        const int32_t r = s == 0 ? 0 : wanted + s - 1;
        float *x = row_in(f, f->row, t, s);
        some_logits(x, f->V, (form)(below(seed, 4) ? ORDINARY : TIES), seed);
        for (int32_t k = 0; k < few; k++) x[common(f->V, k)] += 7.0f;
        for (int32_t k = 1; k < R; k++)
            if (parent[k] == r && below(seed, 3) == 0) x[token[k]] += 2.0f;
        if (below(seed, 5) == 0) x[common(f->V, below(seed, few))] = -INFINITY;
        if (f->V < 3) x[0] = 0.0f;
        if (below(seed, 40) == 0) x[below(seed, f->V)] = NAN;
        f->state[t][s] = as_serve(x, f->V, &how, row_in(f, f->served, t, s), NULL) == AS_OK
                             ? AG_ROW_GOOD
                             : AG_ROW_NAN;
    }
}

static forest make_forest(int32_t V, uint64_t seed)
{
    const size_t bytes = (size_t)TREES * WANTS * (size_t)V * sizeof(float);
    forest f = {.V = V, .row = malloc(bytes), .served = malloc(bytes)};
    for (int32_t t = 0; t < TREES; t++) make_tree(&f, t, &seed);
    f.tree[NO_TREE].rows = 0;
    return f;
}

/* What the reference's walk chooses by. */
typedef struct {
    const forest *f;
    int32_t t;
    as_rule rule;
    uint64_t seed, position;
    int32_t bad; /* the row at which it failed */
} walker;

static as_status choose(void *data, int32_t row, int32_t depth, const int32_t *option,
                        int32_t n, int32_t *token, as_error *e)
{
    walker *w = data;
    const forest *f = w->f;
    const int32_t slot = row == 0 ? 0 : row - f->tree[w->t].wanted + 1;
    const float *p = row_in(f, f->served, w->t, slot);
    const uint64_t at = w->position + (uint64_t)depth;
    w->bad = row;
    if (f->state[w->t][slot] != AG_ROW_GOOD) return AS_BAD_INPUT;
    if (w->rule == AS_RULE_GREEDY)
        return as_argmax(row_in(f, f->row, w->t, slot), f->V, token, e);
    if (w->rule == AS_RULE_MATCH)
        *token = as_draw(p, f->V, as_word64(as_random(w->seed, at, AS_DRAW, 0)));
    else {
        float *rest = malloc((size_t)f->V * sizeof *rest);
        *token = as_onehot_seeded(p, f->V, option, n, w->seed, at, rest);
        free(rest);
    }
    return AS_OK;
}

typedef struct {
    int32_t run[TREES][CAPACITY], path[TREES][CAPACITY], length[TREES], accepted[TREES];
    ag_fault fault[TREES];
} walked;

static void check_walk(const forest *f, as_rule rule, int32_t t, uint64_t seed,
                       uint64_t position, const walked *got, int32_t i)
{
    as_row rows[CAPACITY];
    int32_t run[CAPACITY], path[CAPACITY], option[CAPACITY];
    const ag_tree *a = &f->tree[t];
    if (t == NO_TREE) {
        ck_assert_int_eq(got->fault[i].kind, AG_CASE_GOOD);
        ck_assert_int_eq(got->length[i], 0);
        ck_assert_int_eq(got->accepted[i], -1);
        return;
    }
    for (int32_t r = 0; r < a->rows; r++) rows[r] = (as_row){f->token[t][r], f->parent[t][r]};
    const as_tree tree = {.rows = a->rows, .row = rows};
    const as_plan plan = {.wanted = a->wanted,
                          .drafts = a->drafts,
                          .all = a->all,
                          .most = a->most,
                          .bonus = a->bonus};
    walker w = {f, t, rule, seed, position, 0};
    as_walk walk = {run, 0, path, 0, option};
    const as_status s = as_walk_tree(&tree, &plan, choose, &w, &walk, NULL);
    const int32_t length = s == AS_OK ? walk.length : 0;
    char what[120];
    snprintf(what, sizeof what, "V %d, rule %d, tree %d", (int)f->V, (int)rule, (int)t);
    ck_assert_msg(got->length[i] == length, "%s: length %d, not %d", what, (int)got->length[i],
                  (int)length);
    ck_assert_msg((got->fault[i].kind == AG_CASE_GOOD) == (length > 0), "%s: fault", what);
    if (length == 0) {
        ck_assert_int_eq(got->fault[i].kind, AG_BAD_P);
        ck_assert_int_eq(got->fault[i].at, w.bad);
        return;
    }
    ck_assert_msg(got->accepted[i] == walk.accepted, "%s: accepted", what);
    ck_assert_msg(memcmp(got->run[i], run, (size_t)length * 4) == 0, "%s: run", what);
    ck_assert_msg(memcmp(got->path[i], path, (size_t)(walk.accepted + 1) * 4) == 0, "%s: path",
                  what);
}

/* Trees first to first + n by one rule. */
static void check_walks(const forest *f, as_rule rule, int32_t first, int32_t n,
                        const ag_scratch *s)
{
    const size_t at = (size_t)first, c = (size_t)n, row = WANTS * (size_t)f->V;
    const uint64_t seed = 50 + at, position = 3;
    walked got;
    const float *rows = rule == AS_RULE_GREEDY ? f->row : f->served;
    void *tree = on_device(f->tree + at, c * sizeof *f->tree),
         *token = on_device(f->token + at, c * sizeof *f->token),
         *parent = on_device(f->parent + at, c * sizeof *f->parent),
         *law = on_device(rows + at * row, c * row * sizeof(float)),
         *state = on_device(f->state + at, c * sizeof *f->state),
         *run = on_device(NULL, sizeof got.run), *path = on_device(NULL, sizeof got.path),
         *length = on_device(NULL, sizeof got.length),
         *accepted = on_device(NULL, sizeof got.accepted),
         *fault = on_device(NULL, sizeof got.fault);
    const ag_walks w = {n,
                        f->V,
                        CAPACITY,
                        WANTS,
                        tree,
                        token,
                        parent,
                        law,
                        rule == AS_RULE_GREEDY ? NULL : state,
                        {NULL, NULL, seed, position, NULL},
                        run,
                        path,
                        length,
                        accepted,
                        fault};
    ok(ag_walk(&device, rule, &w, s, &why));
    fetch(got.run, run, sizeof got.run);
    fetch(got.path, path, sizeof got.path);
    fetch(got.length, length, sizeof got.length);
    fetch(got.accepted, accepted, sizeof got.accepted);
    fetch(got.fault, fault, sizeof got.fault);
    for (int32_t i = 0; i < n; i++)
        check_walk(f, rule, first + i, seed + (uint64_t)i, position, &got, i);
    ag_free(tree), ag_free(token), ag_free(parent), ag_free(law), ag_free(state);
}

START_TEST(walks)
{
    static const int32_t V[] = {1, 2, 7, 7, 7, 40, 40, 1100, 4099};
    static const as_rule rule[] = {AS_RULE_GREEDY, AS_RULE_MATCH, AS_RULE_ONEHOT};
    open_device(processors[_i]);
    ag_scratch s = {0};
    ok(ag_scratch_reserve(&device, 3 * WANTS, &s, &why));
    for (size_t i = 0; i < sizeof V / sizeof *V; i++) {
        forest f = make_forest(V[i], i);
        for (size_t k = 0; k < 3; k++) {
            emu_order(i + k);
            if (V[i] < 100) check_walks(&f, rule[k], 0, TREES, &s);
            for (int32_t t = 0; V[i] > 100 && t + 3 <= TREES; t += 3)
                check_walks(&f, rule[k], t, 3, &s);
        }
        free(f.row), free(f.served);
    }
    ag_scratch_free(&s);
    ag_device_close(&device);
}
END_TEST

/* ---- Streams. --------------------------------------------------------------------------- */

static void check_streams(const panel *x, as_rule rule, int32_t gamma, int32_t k, int32_t eos)
{
    enum { N = 12 };
    const size_t bytes = (size_t)N * (size_t)k * 4;
    int32_t start[N], length[N], *out = malloc(bytes + 4), *accepted = malloc(bytes + 4),
                                 *wanted = malloc(bytes + 4), *steps = malloc(bytes + 4);
    ag_fault fault[N];
    for (int32_t i = 0; i < N; i++) start[i] = i % x->on.S;
    memset(out, 0xff, bytes);
    void *d_start = on_device(start, sizeof start), *d_out = on_device(out, bytes),
         *d_accepted = on_device(out, bytes), *d_length = on_device(NULL, sizeof length),
         *d_fault = on_device(NULL, sizeof fault);
    const uint64_t seed = UINT64_MAX - 3;
    const ag_streams on = {N,    gamma, k,        eos,        d_start,
                           seed, d_out, d_length, d_accepted, d_fault};
    ok(ag_stream(&device, rule, &x->on, &on, &why));
    fetch(out, d_out, bytes);
    fetch(accepted, d_accepted, bytes);
    fetch(length, d_length, sizeof length);
    fetch(fault, d_fault, sizeof fault);
    iut *r = reference(
        rule == AS_RULE_CHAIN ? "uniforms=seeded rule=token" : "uniforms=seeded rule=match", x);
    for (int32_t i = 0; i < N; i++) {
        int32_t n;
        memset(wanted, 0xff, (size_t)k * 4);
        memset(steps, 0xff, (size_t)k * 4);
        iut_stream_batch one = {sizeof one,         1,      gamma, k,    eos, start + i,
                                seed + (uint64_t)i, wanted, &n,    steps};
        const ag_fault_kind kind = kind_of(r, ref_api()->stream(r, &one));
        ck_assert_int_eq(fault[i].kind, (int)kind);
        ck_assert_int_eq(length[i], kind == AG_CASE_GOOD ? n : 0);
        ck_assert_mem_eq(out + (size_t)i * (size_t)k, wanted, (size_t)k * 4);
        ck_assert_mem_eq(accepted + (size_t)i * (size_t)k, steps, (size_t)k * 4);
    }
    ref_api()->destroy(r);
    ag_free(d_start);
    free(out), free(accepted), free(wanted), free(steps);
}

START_TEST(streams)
{
    static const struct {
        int32_t V, gamma, k, eos;
    } size[] = {{1, 2, 5, -1},  {2, 3, 20, -1},  {5, 4, 17, 2},    {63, 0, 9, -1},
                {63, 2, 12, 3}, {300, 50, 6, 1}, {2100, 1, 4, -1}, {5, 1, 0, -1}};
    open_device(processors[_i]);
    for (size_t i = 0; i < sizeof size / sizeof *size; i++)
        for (int bad = 0; bad < 2; bad++) {
            panel x = make_panel(size[i].V, 9, bad, i + 20);
            emu_order(i + (uint64_t)bad);
            check_streams(&x, AS_RULE_CHAIN, size[i].gamma, size[i].k, size[i].eos);
            check_streams(&x, AS_RULE_MATCH, size[i].gamma, size[i].k, size[i].eos);
            discard_panel(&x);
        }
    ag_device_close(&device);
}
END_TEST

START_TEST(errors)
{
    const ag_chains c = {.n = 1, .gamma = -1, .V = 8};
    const ag_walks w = {.n = 1, .V = 8, .capacity = 4000, .wants = 8};
    const ag_panel x = {.V = 8, .S = 1, .C = 1};
    const ag_streams s = {.n = 1, .gamma = 3000, .k = 3000};
    open_device(4);
    ck_assert_int_eq(ag_verify(&device, AS_RULE_ONEHOT, &c, NULL, &why), AS_BAD_INPUT);
    ck_assert_int_eq(ag_verify(&device, AS_RULE_CHAIN, &c, NULL, &why), AS_BAD_INPUT);
    ck_assert_ptr_nonnull(strstr(why.text, "-1 drafts"));
    ck_assert_int_eq(ag_walk(&device, AS_RULE_CHAIN, &w, NULL, &why), AS_BAD_INPUT);
    ck_assert_int_eq(ag_walk(&device, AS_RULE_MATCH, &w, NULL, &why), AS_LIMIT);
    ck_assert_int_eq(ag_stream(&device, AS_RULE_GREEDY, &x, &s, &why), AS_BAD_INPUT);
    ck_assert_int_eq(ag_stream(&device, AS_RULE_CHAIN, &x, &s, &why), AS_LIMIT);
    ag_device_close(&device);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("verify");
    tcase_add_loop_test(tests, chains, 0, 3);
    tcase_add_test(tests, one_launch);
    tcase_add_loop_test(tests, walks, 0, 3);
    tcase_add_loop_test(tests, streams, 0, 3);
    tcase_add_test(tests, errors);
    return suite_main("gpu verify", tests);
}
