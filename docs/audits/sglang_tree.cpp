/* sglang_tree.cpp - SGLang's kernels that verify a tree of drafts, TreeSpeculativeSamplingTargetOnly (rule TARGET) and
 * VerifyTreeGreedy (rule GREEDY), on the grid emulator, as an implementation under test. ci/audit-sglang builds it with
 * the engine's source; sglang-tree.md says what it found.
 *
 * The kernel's arrays are laid out as the engine does: requests of a launch have the same number of nodes, those that
 * are missing hang nowhere; first child and next sibling by number; a row p a node; the row of drafts zero. One coin a
 * node, and one for the last token. What the kernel does not do is done here: lists are checked (TRV-01), and
 * placeholders left out with what is below them (TRV-04). Thresholds are a launch's, and the suite gives them a node.
 * So a launch has the nodes from its root on that share the root's thresholds, and their children. A walk that ends at
 * a child with thresholds of its own goes on there in a launch of its own; the token drawn meanwhile is dropped.
 *
 * Options: threads=64 (default) or 1024, of a block, which the engine always gives 1024; repeats=merge: equal siblings
 * are left out but for the first. */
#include "docs/audits/sglang_cuda.h"

#include "conformance/iut.h"
#include <sgl_kernel/eagle.cuh>
#include <sgl_kernel/sampling.cuh>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

struct iut {
    int32_t V = 0, S = 0;
    std::vector<float> p, logit; /* [S][V] */
    int threads = 64;
    bool merge = false;
    std::string error;
};

namespace
{

/* ---- Device memory. -------------------------------------------------------------------- */

/* What a launch gets or gives; ends with it. */
template <class T> class device
{
  public:
    explicit device(const std::vector<T> &from) : n(from.size())
    {
        void *memory = nullptr;
        cudaMalloc(&memory, n * sizeof(T));
        at = static_cast<T *>(memory);
        cudaMemcpyAsync(at, from.data(), n * sizeof(T), cudaMemcpyHostToDevice, nullptr);
    }
    device(const device &) = delete;
    device &operator=(const device &) = delete;
    ~device()
    {
        cudaFree(at);
    }
    std::vector<T> back() const
    {
        std::vector<T> to(n);
        cudaMemcpyAsync(to.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost, nullptr);
        return to;
    }
    T *at;

  private:
    size_t n;
};

/* ---- Walks. ---------------------------------------------------------------------------- */

constexpr size_t TOGETHER = 32; /* walks of a launch at most */

/* A request on its way: at a node, behind `n` tokens. */
struct walk {
    int32_t first, nodes; /* of the request, among all nodes */
    int32_t at, n;
    const double *last;
    int32_t *out, *out_node, *out_len;
};

/* The nodes of a launch, parents before children; [0] is the walk's. Links are numbers of the list. */
struct part {
    std::vector<int32_t> node, next_token, next_sibling;
    int32_t depth = 0;
};

/* A launch's arrays, as the engine calls them. */
struct arrays {
    std::vector<int64_t> candidates, retrive_index, next_token, next_sibling, target_predict;
    std::vector<float> coins, final_coins, target, draft;
};

bool same_thresholds(const iut_tree_batch &b, int32_t i, int32_t j)
{
    return !b.parameter || std::equal(b.parameter + 2 * i, b.parameter + 2 * i + 2, b.parameter + 2 * j);
}

bool has_sibling(const iut_tree_batch &b, const walk &w, const part &p, int32_t k)
{
    return std::any_of(p.node.begin(), p.node.end(), [&](int32_t i) {
        return b.parent[w.first + i] == b.parent[w.first + k] && b.token[w.first + i] == b.token[w.first + k];
    });
}

/* The list of a walk's launch. GREEDY has no thresholds. */
part part_of(const iut &x, const iut_tree_batch &b, const walk &w, bool greedy)
{
    std::vector<int32_t> number(static_cast<size_t>(w.nodes), -1), last(number), level(static_cast<size_t>(w.nodes), 0);
    part p;
    p.node.push_back(w.at);
    number[static_cast<size_t>(w.at)] = 0;
    for (int32_t k = w.at + 1; k < w.nodes; k++) {
        const int32_t above = b.parent[w.first + k];
        const size_t a = static_cast<size_t>(above), i = static_cast<size_t>(k);
        if (number[a] < 0 || b.token[w.first + k] < 0) continue;
        if (!greedy && !same_thresholds(b, w.first + w.at, w.first + above)) continue;
        if (x.merge && has_sibling(b, w, p, k)) continue;
        number[i] = static_cast<int32_t>(p.node.size());
        level[i] = level[a] + 1;
        p.depth = std::max(p.depth, level[i]);
        p.node.push_back(k);
    }
    p.next_token.assign(p.node.size(), -1), p.next_sibling.assign(p.node.size(), -1);
    for (size_t i = 1; i < p.node.size(); i++) {
        const size_t a = static_cast<size_t>(b.parent[w.first + p.node[i]]);
        if (last[a] < 0)
            p.next_token[static_cast<size_t>(number[a])] = static_cast<int32_t>(i);
        else
            p.next_sibling[static_cast<size_t>(last[a])] = static_cast<int32_t>(i);
        last[a] = static_cast<int32_t>(i);
    }
    return p;
}

int32_t argmax(const float *logit, int32_t V)
{
    return static_cast<int32_t>(std::max_element(logit, logit + V) - logit);
}

arrays arrays_of(const iut &x, const iut_tree_batch &b, const std::vector<walk> &walks, const std::vector<part> &parts,
                 size_t N)
{
    const size_t n = walks.size(), V = static_cast<size_t>(x.V);
    arrays a;
    a.candidates.assign(n * N, 0), a.target_predict.assign(n * N, 0);
    a.next_token.assign(n * N, -1), a.next_sibling.assign(n * N, -1);
    a.retrive_index.resize(n * N);
    std::iota(a.retrive_index.begin(), a.retrive_index.end(), 0);
    a.coins.assign(n * N, 0), a.final_coins.assign(n, 0);
    a.target.assign(n * N * V, 0), a.draft.assign(n * N * V, 0);
    for (size_t w = 0; w < n; w++) {
        a.final_coins[w] = static_cast<float>(walks[w].last[0]);
        for (size_t i = 0; i < parts[w].node.size(); i++) {
            const int32_t k = walks[w].first + parts[w].node[i];
            const size_t at = w * N + i, row = static_cast<size_t>(b.state[k]) * V;
            a.candidates[at] = std::max(b.token[k], 0);
            a.target_predict[at] = argmax(&x.logit[row], x.V);
            a.next_token[at] = parts[w].next_token[i], a.next_sibling[at] = parts[w].next_sibling[i];
            a.coins[at] = static_cast<float>(b.u[k]);
            std::copy_n(&x.p[row], V, &a.target[at * V]);
        }
    }
    return a;
}

/* ---- Launches. ------------------------------------------------------------------------- */

/* The emulator wants every thread to wait for its turn first. */
template <auto KERNEL, class... A> void in_turn(A... a)
{
    emu_await_turn();
    KERNEL(a...);
}

template <auto KERNEL, class... A> void launch(const char *name, size_t blocks, unsigned threads, size_t shared, A... a)
{
    emu_launch(&in_turn<KERNEL, A...>, name, dim3(static_cast<unsigned>(blocks)), dim3(threads), shared, a...);
}

using namespace flashinfer::sampling;
template <uint32_t THREADS, uint32_t VEC>
constexpr auto tree_kernel =
    &sglang::speculative_sampling::TreeSpeculativeSamplingTargetOnly<THREADS, SCAN_ALGO, REDUCE_ALGO, VEC, true, float,
                                                                    int32_t, int64_t>;
template <uint32_t THREADS> constexpr size_t tree_shared = sizeof(SamplingTempStorage<THREADS, SCAN_ALGO, REDUCE_ALGO>);

struct outcome {
    std::vector<int32_t> predicts, accept_index, accept_token_num;
};

template <uint32_t THREADS, uint32_t VEC>
outcome sample_by(const arrays &a, size_t n, uint32_t N, uint32_t steps, uint32_t V, float single, float acc)
{
    device<int32_t> predicts(std::vector<int32_t>(n * N, -1)), index(std::vector<int32_t>(n * steps, -1)),
        number(std::vector<int32_t>(n, -1));
    device<int64_t> candidates(a.candidates), retrive(a.retrive_index), token(a.next_token), sibling(a.next_sibling);
    device<float> coins(a.coins), final_coins(a.final_coins), target(a.target), draft(a.draft);
    launch<tree_kernel<THREADS, VEC>>(
        "TreeSpeculativeSamplingTargetOnly", n, THREADS, tree_shared<THREADS>, predicts.at, index.at, number.at,
        candidates.at, retrive.at, token.at, sibling.at, coins.at, final_coins.at, target.at, draft.at,
        static_cast<uint32_t>(n), steps, N, V, single, std::max(acc, 1e-9f));
    return {predicts.back(), index.back(), number.back()};
}

/* VEC as the engine has it. */
template <uint32_t THREADS>
outcome sample(const arrays &a, size_t n, uint32_t N, uint32_t steps, uint32_t V, float single, float acc)
{
    switch (std::gcd(4u, V)) {
    case 1:
        return sample_by<THREADS, 1>(a, n, N, steps, V, single, acc);
    case 2:
        return sample_by<THREADS, 2>(a, n, N, steps, V, single, acc);
    default:
        return sample_by<THREADS, 4>(a, n, N, steps, V, single, acc);
    }
}

outcome greedy(const arrays &a, size_t n, uint32_t N, uint32_t steps)
{
    device<int32_t> predicts(std::vector<int32_t>(n * N, -1)), index(std::vector<int32_t>(n * steps, -1)),
        number(std::vector<int32_t>(n, -1));
    device<int64_t> candidates(a.candidates), retrive(a.retrive_index), token(a.next_token), sibling(a.next_sibling),
        predict(a.target_predict);
    launch<&sglang::speculative::VerifyTreeGreedy<int32_t, int64_t>>(
        "VerifyTreeGreedy", n, 1, 0, predicts.at, index.at, number.at, candidates.at, retrive.at, token.at, sibling.at,
        predict.at, static_cast<uint32_t>(n), steps, N);
    return {predicts.back(), index.back(), number.back()};
}

/* ---- From launch to launch. ------------------------------------------------------------ */

/* The walks go on by what the kernel told; those that are over get their last token. True: it is over. */
bool go_on(const iut_tree_batch &b, walk &w, const part &p, const outcome &o, size_t at, size_t N, size_t steps,
           bool is_greedy)
{
    const int32_t accepted = o.accept_token_num[at], *index = &o.accept_index[at * steps];
    const auto local = [&](int32_t k) { return static_cast<size_t>(index[k]) - at * N; };
    int32_t here = w.at;
    for (int32_t k = 0; k < accepted; k++) {
        here = p.node[local(k + 1)];
        w.out[w.n] = o.predicts[static_cast<size_t>(index[k])];
        w.out_node[w.n++] = here;
    }
    const bool other = !is_greedy && !same_thresholds(b, w.first + w.at, w.first + here);
    const int32_t *parent = b.parent + w.first;
    w.at = here;
    if (other && std::find(parent + here + 1, parent + w.nodes, here) != parent + w.nodes) return false;
    w.out[w.n++] = o.predicts[static_cast<size_t>(index[accepted])];
    *w.out_len = w.n;
    return true;
}

/* One launch for walks of one rule and one pair of thresholds. Returns those that are not over. */
std::vector<walk> step(const iut &x, const iut_tree_batch &b, std::vector<walk> walks, bool is_greedy)
{
    std::vector<part> parts;
    size_t N = 1;
    int32_t depth = 0;
    for (const walk &w : walks) {
        parts.push_back(part_of(x, b, w, is_greedy));
        N = std::max(N, parts.back().node.size());
        depth = std::max(depth, parts.back().depth);
    }
    const arrays a = arrays_of(x, b, walks, parts, N);
    const uint32_t nodes = static_cast<uint32_t>(N), steps = static_cast<uint32_t>(depth) + 1,
                   V = static_cast<uint32_t>(x.V);
    const double *pair = b.parameter ? &b.parameter[2 * (walks[0].first + walks[0].at)] : nullptr;
    const float acc = pair ? static_cast<float>(pair[0]) : 1, single = pair ? static_cast<float>(pair[1]) : 1;
    const outcome o = is_greedy           ? greedy(a, walks.size(), nodes, steps)
                      : x.threads == 1024 ? sample<1024>(a, walks.size(), nodes, steps, V, single, acc)
                                          : sample<64>(a, walks.size(), nodes, steps, V, single, acc);
    std::vector<walk> left;
    for (size_t i = 0; i < walks.size(); i++)
        if (!go_on(b, walks[i], parts[i], o, i, N, steps, is_greedy)) left.push_back(walks[i]);
    return left;
}

void walk_all(const iut &x, const iut_tree_batch &b, std::vector<walk> walks, bool is_greedy)
{
    while (!walks.empty()) {
        const walk head = walks[0];
        const auto rest = std::stable_partition(walks.begin(), walks.end(), [&](const walk &w) {
            return is_greedy || same_thresholds(b, head.first + head.at, w.first + w.at);
        });
        const auto end = walks.begin() + std::min<std::ptrdiff_t>(TOGETHER, rest - walks.begin());
        std::vector<walk> left = step(x, b, {walks.begin(), end}, is_greedy);
        walks.erase(walks.begin(), end);
        walks.insert(walks.end(), left.begin(), left.end());
    }
}

/* ---- The operation. -------------------------------------------------------------------- */

iut_status refuse(iut *x, const std::string &why)
{
    x->error = why;
    return IUT_BAD_INPUT;
}

/* TRV-01, TGT-03; GREEDY has no thresholds. */
bool is_good(const iut &x, const iut_tree_batch &b, int32_t first, int32_t k, bool is_greedy)
{
    const int32_t at = first + k;
    const auto share = [](double v) { return v > 0 && v <= 1; };
    if (k == 0 ? b.parent[at] != -1 || b.token[at] != -1 : b.parent[at] < 0 || b.parent[at] >= k) return false;
    if (b.token[at] < -1 || b.token[at] >= x.V || b.state[at] < 0 || b.state[at] >= x.S) return false;
    return is_greedy || !b.parameter || (share(b.parameter[2 * at]) && share(b.parameter[2 * at + 1]));
}

iut_status verify_tree(iut *x, iut_tree_batch *b)
{
    std::vector<walk> target, argmaxed;
    int32_t first = 0;
    for (int32_t i = 0; i < b->n; first += b->node_count[i++]) {
        const bool is_greedy = b->rule[i] == IUT_TREE_GREEDY;
        for (int32_t k = 0; k < b->node_count[i]; k++)
            if (!is_good(*x, *b, first, k, is_greedy))
                return refuse(x, "request " + std::to_string(i) + ": bad node " + std::to_string(k));
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(i) * (b->depth + 1);
        (is_greedy ? argmaxed : target)
            .push_back({first, b->node_count[i], 0, 0, b->last + 2 * i, b->out + at, b->out_node + at, b->out_len + i});
    }
    walk_all(*x, *b, target, false);
    walk_all(*x, *b, argmaxed, true);
    return IUT_OK;
}

/* ---- Life, claims, panel. -------------------------------------------------------------- */

bool take_option(iut &x, const std::string &word)
{
    if (word == "threads=64" || word == "threads=1024")
        x.threads = word == "threads=64" ? 64 : 1024;
    else if (word == "repeats=merge")
        x.merge = true;
    else
        return word.empty();
    return true;
}

iut *create(const char *options, char *error, size_t error_size)
{
    iut *x = new iut;
    std::string rest = options;
    while (!rest.empty()) {
        const size_t comma = std::min(rest.find(','), rest.size());
        if (!take_option(*x, rest.substr(0, comma))) {
            std::snprintf(error, error_size, "sglang_tree: options are threads=64, threads=1024, repeats=merge");
            delete x;
            return nullptr;
        }
        rest.erase(0, comma + 1);
    }
    return x;
}

void destroy(iut *x)
{
    delete x;
}

const char *last_error(iut *x)
{
    return x->error.c_str();
}

iut_status claims(iut *x, iut_claims *c)
{
    c->name = "SGLang, tree verification";
    c->version = "0.5.23";
    c->device = x->threads == 64 ? "the grid emulator, 64 threads a block" : "the grid emulator, 1024 threads a block";
    c->uniforms = IUT_UNIFORMS_SUPPLIED;
    c->uniform_bits = 24;
    c->input = IUT_FROM_PROBS;
    c->map = IUT_MAP_CDF_BY_ID;
    c->arithmetic = IUT_ARITH_F32;
    c->tie = IUT_TIE_FIRST;
    c->bad_draft = IUT_ERROR;
    c->max_vocab = 1024;
    c->tree_rules = c->lossless_any = IUT_TREE_TARGET | IUT_TREE_GREEDY;
    c->tree_drawn = IUT_DRAWN_FIXED;
    c->tree_coins = IUT_COINS_ONE;
    return IUT_OK;
}

iut_status panel(iut *x, const iut_panel *given)
{
    const size_t cells = static_cast<size_t>(given->S) * static_cast<size_t>(given->V);
    x->V = given->V, x->S = given->S;
    x->p.assign(given->p, given->p + cells);
    x->logit.assign(given->p_logit, given->p_logit + cells);
    return IUT_OK;
}

} // namespace

extern "C" const iut_api *iut_entry(void)
{
    static const iut_api api = [] {
        iut_api a{};
        a.abi = IUT_ABI, a.size = sizeof a;
        a.create = create, a.destroy = destroy, a.last_error = last_error, a.claims = claims, a.panel = panel;
        a.verify_tree = verify_tree;
        return a;
    }();
    return &api;
}
