/* engine_faults_tv - how far the faults of an engine's law move the first tokens of a request, exactly, in the cells of
 * engine.pairs whose tokens are few: the total variation of what a bet is on.
 *
 *   engine_faults_tv
 *
 * The rules of a step are written here once more, over laws, not draws. The rows are the oracle's. For each fault it
 * prints the largest distance over the cells, a mean over prompts: from the law of the engine's own plain decoding
 * (LAY-19) and from the model's (LAY-08). Exit 1 if the rules without a fault move anything, or if a fault of at least
 * three times the tolerance of a bet is not planted in bfloat16, or in weights of eight bits. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conformance/checks/model/lm_small.h"
#include "conformance/oracle/arithmetic/folder.h"
#include "conformance/oracle/law/served.h"
#include "conformance/subjects/mutants/mutants.h"
#include "tests/random.h"

enum { V = 6, L = 4, INNER = 1 + V + V * V + V * V * V, NODES = INNER + V * V * V * V, PROMPTS = 4, MOST_PROMPT = 24 };
static const double EPS = 0.02; /* of bfloat16 and of quantised weights */

typedef struct {
    const char *name;
    bool pruned;
    int32_t gamma;
    oracle_sampling sampling;
} cell;

static const cell cells[] = {
    {"few-g2", false, 2, {1, 0, 1, 0}},
    {"few-g4-T0.7", false, 4, {0.7f, 0, 1, 0}},
    {"few-g1-T1.3-topp0.8", false, 1, {1.3f, 0, 0.8f, 0}},
    {"few-g3-top3", false, 3, {1, 3, 1, 0}},
    {"few-g2-minp0.1", false, 2, {1, 0, 1, 0.1f}},
    {"pruned-g2", true, 2, {1, 0, 1, 0}},
    {"pruned-g4-T1.3", true, 4, {1.3f, 0, 1, 0}},
};
enum { CELLS = sizeof cells / sizeof *cells };

/* clang-format off */
typedef struct {
    const char *name;
    fault_point fault;
    bool pruned;
} fault_entry;
#define ENTRY(name, pruned) {#name, FAULT_##name, pruned}
static const fault_entry faults[] = {
    {"no fault", FAULT_NONE, false},
    ENTRY(ENGINE_RATIO_INVERTED, false), ENTRY(ENGINE_ROWS_EXCHANGED, false), ENTRY(ENGINE_DRAFT_ARGMAX, false),
    ENTRY(ENGINE_Q_NEXT, false), ENTRY(ENGINE_SHARED_NOISE, false), ENTRY(ENGINE_FIRST_GREEDY, false),
    ENTRY(ENGINE_CORRECTION_FROM_P, false), ENTRY(ENGINE_Q_AT_T1, false), ENTRY(ENGINE_Q_UNFILTERED, false),
    ENTRY(ENGINE_FILTER_LOST, false), ENTRY(ENGINE_TOP_P_LOST, false), ENTRY(ENGINE_FILTER_ONCE, false),
    ENTRY(ENGINE_T_LAST, false), ENTRY(ENGINE_WARMS_UP, false),
    ENTRY(ENGINE_OWN_UNNORMALISED, true), ENTRY(ENGINE_OWN_RESIDUAL, true), ENTRY(ENGINE_OWN_MASKS_P, true),
    ENTRY(ENGINE_OWN_EXCHANGED, true), ENTRY(ENGINE_OWN_UNMAPPED, true), ENTRY(ENGINE_OWN_OFFSET, true),
};
/* clang-format on */
enum { FAULTS = sizeof faults / sizeof *faults };

static void fail(const char *what)
{
    fprintf(stderr, "engine_faults_tv: %s\n", what);
    exit(3);
}

/* ---- Rows: a node is a path of at most L tokens behind the prompt, the root is 0; INNER ones have fewer. ------ */

typedef double rows[NODES][V];

static float logits[2][NODES][V]; /* target, draft */
static int32_t owns, own[V];      /* the draft's own ids */

static int32_t child(int32_t node, int32_t token)
{
    return node * V + 1 + token;
}

static void walk_model(oracle_path *path, int32_t token, int32_t at, int32_t node, int32_t depth, float (*to)[V])
{
    oracle_path_step(path, token, to[node]);
    for (int32_t x = 0; depth < L && x < V; x++) {
        walk_model(path, x, at + 1, child(node, x), depth + 1, to);
        oracle_path_cut(path, at + 1);
    }
}

static void read_model(const char *name, const int32_t *prompt, int32_t n, float (*to)[V])
{
    char why[300] = "";
    const char *path_of = lm_small_folder(name, why, sizeof why);
    oracle_folder *folder = path_of ? oracle_folder_open(path_of, why, sizeof why) : NULL;
    if (!folder) fail(why);
    oracle_path *path = oracle_path_new(&oracle_fast, oracle_folder_model(folder), n + L);
    if (!path) fail("out of memory");
    for (int32_t i = 0; i + 1 < n; i++) oracle_path_step(path, prompt[i], NULL);
    walk_model(path, prompt[n - 1], n - 1, 0, 0, to);
    oracle_path_free(path);
    oracle_folder_close(folder);
}

static void find_own(void)
{
    owns = 0;
    for (int32_t t = 0; t < V; t++)
        if (logits[1][0][t] > -INFINITY) own[owns++] = t;
}

static void serve(float (*from)[V], int32_t nodes, const oracle_sampling *s, bool filters_first, double (*to)[V])
{
    static const oracle_filters last = {{ORACLE_TOP_K, ORACLE_TOP_P, ORACLE_MIN_P, ORACLE_TEMPERATURE}, false};
    for (int32_t node = 0; node < nodes; node++)
        if (oracle_served64(from[node], V, s, filters_first ? &last : NULL, to[node], NULL, 0) != ORACLE_OK)
            fail("a bad row");
}

/* ---- The rules of a step ------------------------------------------------------------ */

static rows right[2], p[L], q, tested; /* served without a fault; p: of a step that begins behind so many tokens */

typedef struct {
    fault_point f;
    const cell *of;
    int32_t gamma, k;
    double law[NODES];
} job;

/* The same of INNER nodes, or what was served so before. */
static void serve_of(const job *j, int which, oracle_sampling s, double (*to)[V])
{
    const bool first = fault(j->f, ENGINE_T_LAST);
    if (!first && memcmp(&s, &j->of->sampling, sizeof s) == 0)
        memcpy(to, right[which], sizeof right[which]);
    else
        serve(logits[which], INNER, &s, first, to);
}

static int32_t place_of(int32_t token)
{
    int32_t i = 0;
    while (i < owns - 1 && own[i] != token) i++;
    return i;
}

static bool is_own(int32_t token)
{
    return own[place_of(token)] == token;
}

/* Drafts of a step behind m tokens. */
static int32_t drafts_at(const job *j, int32_t m)
{
    const int32_t useful = j->k - m - 1;
    return j->gamma < useful ? j->gamma : useful;
}

/* What a drafted token is taken for. */
static int32_t mapped(const job *j, int32_t token)
{
    const int32_t i = place_of(token);
    if (fault(j->f, ENGINE_OWN_UNMAPPED)) return i;
    if (fault(j->f, ENGINE_OWN_OFFSET)) return token - i;
    if (!fault(j->f, ENGINE_OWN_EXCHANGED) || i < owns - 3) return token;
    return i + 1 < owns ? own[i + 1] : own[owns > 2 ? owns - 3 : 0];
}

static int32_t largest(const double *row)
{
    int32_t best = 0;
    for (int32_t t = 1; t < V; t++)
        if (row[t] > row[best]) best = t;
    return best;
}

/* The rows that judge a step of g drafts behind m tokens. */
static void serve_target(const job *j, int32_t m)
{
    oracle_sampling s = j->of->sampling;
    if (fault(j->f, ENGINE_FILTER_LOST)) s.min_p = 0, s.top_k = 0;
    if (fault(j->f, ENGINE_TOP_P_LOST)) s.top_p = 1;
    if (fault(j->f, ENGINE_FILTER_ONCE) && m > 0) s.top_k = 0, s.top_p = 1, s.min_p = 0;
    if (fault(j->f, ENGINE_WARMS_UP)) s.temperature *= 1 + (float)m / 25;
    serve_of(j, 0, s, p[m]);
    for (int32_t node = 0; fault(j->f, ENGINE_OWN_MASKS_P) && drafts_at(j, m) > 0 && node < INNER; node++) {
        double sum = 0;
        for (int32_t t = 0; t < V; t++) sum += is_own(t) ? p[m][node][t] : 0;
        for (int32_t t = 0; t < V; t++) p[m][node][t] = is_own(t) ? p[m][node][t] / sum : 0;
    }
}

static void serve_draft(const job *j)
{
    oracle_sampling s = j->of->sampling;
    serve_of(j, 1, s, q);
    if (fault(j->f, ENGINE_Q_AT_T1)) s.temperature = 1;
    if (fault(j->f, ENGINE_Q_UNFILTERED)) s.top_k = 0, s.top_p = 1, s.min_p = 0;
    serve_of(j, 1, s, tested);
    for (int32_t node = 0; fault(j->f, ENGINE_OWN_UNNORMALISED) && node < INNER; node++) {
        double sum = 0;
        for (int32_t t = 0; t < V; t++)
            sum += exp(is_own(t) ? (double)logits[1][node][t] / (double)s.temperature : 0);
        for (int32_t t = 0; t < V; t++)
            tested[node][t] = is_own(t) ? exp((double)logits[1][node][t] / (double)s.temperature) / sum : 0;
    }
}

/* Adds mass times what stands in for a refused draft. */
static void replace(const job *j, const double *from, const double *less, double mass, double *follow)
{
    double left[V], sum = 0;
    for (int32_t t = 0; t < V; t++) {
        const int32_t at = fault(j->f, ENGINE_OWN_RESIDUAL) && j->of->pruned ? (t < owns ? own[t] : -1) : t;
        left[t] = fmax(0, from[t] - (at >= 0 ? less[at] : 0));
        sum += left[t];
    }
    const bool plain = sum == 0 || fault(j->f, ENGINE_CORRECTION_FROM_P);
    for (int32_t t = 0; t < V; t++) follow[t] += mass * (plain ? from[t] : left[t] / sum);
}

/* The i-th of g drafts is x: with what probability it stands; the rest goes to what follows. */
static double judge(const job *j, int32_t node, int32_t m, int32_t i, int32_t g, int32_t x, double mass, double *follow)
{
    const double *pn = p[m][node], *qn = tested[node];
    if (fault(j->f, ENGINE_Q_NEXT) && i + 1 < g) qn = tested[child(node, x)];
    double stands = qn[x] > 0 ? fmin(1, pn[x] / qn[x]) : pn[x] > 0;
    if (fault(j->f, ENGINE_RATIO_INVERTED)) {
        stands = 0;
        for (int32_t y = 0; y < V; y++) {
            const double some = pn[y] > 0 ? fmin(1, qn[x] / pn[y]) : 0;
            stands += pn[y] * some;
            follow[y] += mass * pn[y] * (1 - some);
        }
        return stands;
    }
    if (fault(j->f, ENGINE_ROWS_EXCHANGED)) {
        stands = pn[x] > 0 ? fmin(1, qn[x] / pn[x]) : qn[x] > 0;
        const double *swap = pn;
        pn = qn, qn = swap;
    }
    if (fault(j->f, ENGINE_SHARED_NOISE)) {
        double before = 0;
        for (int32_t t = 0; t < x; t++) before += qn[t];
        stands = fmin(1, fmax(0, (pn[x] / qn[x] - before) / qn[x]));
    }
    if (stands < 1) {
        if (fault(j->f, ENGINE_FIRST_GREEDY) && m == 0 && i == 0)
            follow[largest(pn)] += mass * (1 - stands);
        else
            replace(j, pn, qn, mass * (1 - stands), follow);
    }
    return stands;
}

static void begin_step(job *j, int32_t node, int32_t m, double mass);

/* Behind i drafts that stand of a step that began behind m tokens. */
static void go_on(job *j, int32_t node, int32_t m, int32_t i, int32_t g, double mass)
{
    double follow[V] = {0}, drawn[V] = {0};
    if (m + i == L) {
        j->law[node] += mass;
        return;
    }
    for (int32_t t = 0; i < g && t < V; t++)
        if (q[node][t] > 0) drawn[j->of->pruned ? mapped(j, t) : t] += q[node][t];
    if (i < g && fault(j->f, ENGINE_DRAFT_ARGMAX)) {
        memset(drawn, 0, sizeof drawn);
        drawn[largest(q[node])] = 1;
    }
    for (int32_t x = 0; x < V; x++) {
        const double some = mass * drawn[x];
        if (some > 0) go_on(j, child(node, x), m, i + 1, g, some * judge(j, node, m, i, g, x, some, follow));
    }
    if (i == g && node == 0 && fault(j->f, ENGINE_FIRST_GREEDY))
        follow[largest(p[0][0])] = mass;
    else if (i == g)
        for (int32_t t = 0; t < V; t++) follow[t] = mass * p[m][node][t];
    for (int32_t t = 0; t < V; t++) begin_step(j, child(node, t), m + i + 1, follow[t]);
}

static void begin_step(job *j, int32_t node, int32_t m, double mass)
{
    if (mass <= 0) return;
    if (m == L)
        j->law[node] += mass;
    else
        go_on(j, node, m, 0, drafts_at(j, m), mass);
}

/* ---- Distances ---------------------------------------------------------------------- */

static void find_law(job *j, const cell *c, fault_point f, int32_t gamma)
{
    *j = (job){.f = f, .of = c, .gamma = gamma, .k = c->gamma + 2 > L ? c->gamma + 2 : L};
    for (int32_t m = 0; m < L; m++)
        if (m == 0 || fault(f, ENGINE_FILTER_ONCE) || fault(f, ENGINE_WARMS_UP) || fault(f, ENGINE_OWN_MASKS_P))
            serve_target(j, m);
        else
            memcpy(p[m], p[0], sizeof p[m]);
    if (gamma > 0) serve_draft(j);
    begin_step(j, 0, 0, 1);
}

static double distance(const job *a, const job *b)
{
    double sum = 0;
    for (int32_t node = 0; node < NODES; node++) sum += fabs(a->law[node] - b->law[node]);
    return sum / 2;
}

static void measure(double (*own_tv)[CELLS], double (*model_tv)[CELLS])
{
    static job model, plain, drafted;
    uint64_t rng = 1;
    for (int32_t n = 0; n < PROMPTS; n++) {
        int32_t prompt[MOST_PROMPT];
        const int32_t length = 1 + below(&rng, MOST_PROMPT);
        for (int32_t t = 0; t < length; t++) prompt[t] = below(&rng, V);
        read_model("few", prompt, length, logits[0]);
        for (int32_t c = 0; c < CELLS; c++) {
            if (c == 0 || cells[c].pruned != cells[c - 1].pruned)
                read_model(cells[c].pruned ? "pruned" : "fewer", prompt, length, logits[1]);
            find_own();
            for (int i = 0; i < 2; i++) serve(logits[i], NODES, &cells[c].sampling, false, right[i]);
            find_law(&model, &cells[c], FAULT_NONE, 0);
            for (int32_t f = 0; f < FAULTS; f++) {
                if (faults[f].pruned && !cells[c].pruned) continue;
                find_law(&drafted, &cells[c], faults[f].fault, cells[c].gamma);
                find_law(&plain, &cells[c], faults[f].fault, 0);
                own_tv[f][c] += distance(&drafted, &plain) / PROMPTS;
                model_tv[f][c] += distance(&drafted, &model) / PROMPTS;
            }
        }
    }
}

static bool has_filters(const cell *c)
{
    return c->sampling.top_k > 0 || c->sampling.top_p < 1 || c->sampling.min_p > 0;
}

static int32_t best_of(const double *tv, bool filters)
{
    int32_t best = 0;
    for (int32_t c = 1; c < CELLS; c++)
        if ((filters || !has_filters(&cells[c])) && tv[c] > tv[best]) best = c;
    return best;
}

static bool is_planted(const char *name, const char *in)
{
    char entry[100];
    snprintf(entry, sizeof entry, "%s_%s", name, in);
    const mutant *m = mutant_find(entry);
    return m && strcmp(m->check, "engine.pairs") == 0;
}

int main(void)
{
    static double own_tv[FAULTS][CELLS], model_tv[FAULTS][CELLS];
    const double due = 3 * L * EPS;
    bool ok = true;
    measure(own_tv, model_tv);
    printf("%-24s %-28s %-28s %s\n", "", "drafts against none", "without filters", "against the model");
    for (int32_t f = 0; f < FAULTS; f++) {
        const int32_t a = best_of(own_tv[f], true), b = best_of(own_tv[f], false), c = best_of(model_tv[f], true);
        const bool bf16 = own_tv[f][a] < due || is_planted(faults[f].name, "ENGINE_BF16"),
                   q8 = own_tv[f][b] < due || is_planted(faults[f].name, "ENGINE_Q8");
        printf("%-24s %.4f %-21s %.4f %-21s %.4f %s%s%s\n", faults[f].name, own_tv[f][a], cells[a].name, own_tv[f][b],
               cells[b].name, model_tv[f][c], cells[c].name, bf16 ? "" : "  NOT PLANTED IN BF16",
               q8 ? "" : "  NOT PLANTED IN Q8");
        ok &= bf16 && q8;
    }
    for (int32_t c = 0; c < CELLS; c++) ok &= own_tv[0][c] < 1e-9 && model_tv[0][c] < 1e-9;
    printf("three times the tolerance of a bet: %g\n", due);
    return ok ? 0 : 1;
}
