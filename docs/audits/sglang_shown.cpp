/* sglang_shown.cpp - what sglang-tree.md found, shown without the suite: SGLang's own code and a few numbers.
 * `ci/audit-sglang shown` builds and runs it. All between a request's tokens and the emitted one is the engine's: its
 * n-gram corpus, reconstructIndicesFromTreeMask and TreeSpeculativeSamplingTargetOnly; kernels on the grid emulator. */
#include "docs/audits/sglang_cuda.h"

#include <sgl_kernel/ngram.cuh>
#include <sgl_kernel/sampling.cuh>

#include <algorithm>
#include <cstdio>
#include <vector>

#include "ngram.h"

namespace
{

constexpr int THREADS = 64, DRAFTS = 12; /* the engine's: 1024, and 12 by default */

/* A tree of drafts as the kernel takes it, one request. */
struct tree {
    std::vector<int64_t> candidates, index, next_token, next_sibling;
};

/* Children of the root, in order. */
tree fan(const std::vector<int64_t> &tokens)
{
    const size_t n = tokens.size() + 1;
    tree t{{0}, {}, std::vector<int64_t>(n, -1), std::vector<int64_t>(n, -1)};
    t.candidates.insert(t.candidates.end(), tokens.begin(), tokens.end());
    for (size_t i = 0; i < n; i++) {
        t.index.push_back(static_cast<int64_t>(i));
        if (i > 0 && i + 1 < n) t.next_sibling[i] = static_cast<int64_t>(i + 1);
    }
    if (n > 1) t.next_token[0] = 1;
    return t;
}

/* What the engine's n-gram drafter makes of the context of a request, and its kernel of that. */
tree drafted(sglang::ngram::Ngram &corpus, int64_t request, const std::vector<int32_t> &context)
{
    const sglang::ngram::Result r = corpus.batchMatch({request}, {context}, {context.size()});
    const size_t n = r.token.size();
    std::vector<uint8_t> mask = r.mask;
    std::vector<int64_t> positions(n), length{static_cast<int64_t>(context.size())};
    tree t{{r.token.begin(), r.token.end()}, std::vector<int64_t>(n), std::vector<int64_t>(n), std::vector<int64_t>(n)};
    emu_run(nullptr, "reconstructIndicesFromTreeMask", dim3(1), dim3(static_cast<unsigned>(n)), 0, 1, [&] {
        emu_await_turn();
        sglang::speculative::reconstructIndicesFromTreeMask(reinterpret_cast<bool *>(mask.data()), length.data(),
                                                            positions.data(), t.index.data(), t.next_token.data(),
                                                            t.next_sibling.data(), 1, static_cast<int>(n));
    });
    return t;
}

/* The first token that is emitted, every row being p. */
int32_t emitted(tree t, const std::vector<float> &p, float coin, float last)
{
    using namespace flashinfer::sampling;
    using namespace sglang::speculative_sampling;
    constexpr auto kernel =
        &TreeSpeculativeSamplingTargetOnly<THREADS, SCAN_ALGO, REDUCE_ALGO, 4, true, float, int32_t, int64_t>;
    const uint32_t n = static_cast<uint32_t>(t.candidates.size()), V = static_cast<uint32_t>(p.size());
    std::vector<int32_t> predicts(n), accepted(n, -1), number(1);
    std::vector<float> coins(n, coin), final_coins{last}, target, draft(n * V, 0);
    for (uint32_t i = 0; i < n; i++) target.insert(target.end(), p.begin(), p.end());
    emu_run(nullptr, "TreeSpeculativeSamplingTargetOnly", dim3(1), dim3(THREADS),
            sizeof(SamplingTempStorage<THREADS, SCAN_ALGO, REDUCE_ALGO>), 1, [&] {
                emu_await_turn();
                kernel(predicts.data(), accepted.data(), number.data(), t.candidates.data(), t.index.data(),
                       t.next_token.data(), t.next_sibling.data(), coins.data(), final_coins.data(), target.data(),
                       draft.data(), 1, n, n, V, 1.0f, 1.0f);
            });
    return predicts[0];
}

/* The law of the first token, by 64 x 64 coins at the middles of equal parts. */
void print_law(const char *what, const tree &t, const std::vector<float> &p)
{
    constexpr int parts = 64;
    std::vector<int> count(p.size(), 0);
    for (int i = 0; i < parts * parts; i++)
        count[static_cast<size_t>(emitted(t, p, static_cast<float>(i / parts + 0.5) / parts,
                                          static_cast<float>(i % parts + 0.5) / parts))]++;
    std::printf("%-44s", what);
    double distance = 0;
    for (size_t x = 0; x < p.size(); x++) {
        const double f = count[x] / static_cast<double>(parts * parts);
        std::printf(" %.4f", f);
        distance += std::max(0.0, f - p[x]);
    }
    std::printf("   TV %.3f\n", distance);
}

} // namespace

int main()
{
    const std::vector<float> p{0.03125f, 0.5f, 0.25f, 0.21875f};
    std::printf("1. Repeated siblings: p is 0.0312 0.5000 0.2500 0.2188; how often each is emitted\n");
    print_law("no children", fan({}), p);
    print_law("children 1 2", fan({1, 2}), p);
    print_law("children 1 1", fan({1, 1}), p);
    print_law("children 2 2 2", fan({2, 2, 2}), p);

    sglang::ngram::Param param{};
    param.min_bfs_breadth = 1, param.max_bfs_breadth = 10, param.max_trie_depth = 18, param.draft_token_num = DRAFTS;
    param.match_type = "BFS";
    sglang::ngram::Ngram corpus(1000, param);
    std::printf("\n2. N-gram drafts of the engine, %d nodes, the same p\n", DRAFTS);
    print_law("nothing in the corpus", drafted(corpus, 0, {3, 2, 1}), p);
    corpus.asyncInsert({{3, 2, 1, 2, 3, 1, 1}});
    corpus.synchronize();
    const tree t = drafted(corpus, 1, {3, 2, 1});
    std::printf("   3 2 1 2 3 1 1 in the corpus, 3 2 1 the context: tokens");
    for (int64_t token : t.candidates) std::printf(" %d", static_cast<int>(token));
    std::printf("; children of the root");
    for (int64_t k = t.next_token[0]; k >= 0; k = t.next_sibling[static_cast<size_t>(k)])
        std::printf(" %d", static_cast<int>(k));
    std::printf("\n");
    print_law("   the law", t, p);

    const std::vector<float> all{0.45f, 0.35f, 0.2f, 0, 0, 0, 0, 0};
    const float coin = 1 - 0x1p-24f;
    const int32_t token = emitted(fan({0, 1, 2}), all, coin, 0.5f);
    std::printf("\n3. V = 8, p is 0.45 0.35 0.2 0 0 0 0 0, the children 0 1 2, the coin 1 - 2^-24\n");
    std::printf("the running sum in binary32 is 1 - %g * 2^-24; emitted: %d, whose p is %g\n",
                static_cast<double>((1 - (all[0] + all[1] + all[2])) * 0x1p24f), static_cast<int>(token),
                static_cast<double>(all[static_cast<size_t>(token)]));
    return 0;
}
