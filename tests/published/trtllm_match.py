"""MATCH.

Read: NVIDIA/TensorRT-LLM 04a2cac, cpp/tensorrt_llm/kernels/speculativeDecoding/common.cu,
acceptDraftTokensByIdsWithPaths (Apache 2.0). Hugging Face's assisted generation draws and compares as well, but on
chains alone.

The engine draws a target token for each node, then takes the longest path whose drafts equal the target tokens of the
nodes before them; its length counts the target token behind the last draft. Drawing is another kernel's: here it is
the draw by running sum with u of the node. Ends of sequence are left out. It computes no number.

Of equal siblings it goes to the one with the longest match behind it, where MAT-03 goes to the first."""

from coin import emitted


def step(tree, coins):
    drawn = {}

    def target(node):
        if node not in drawn:
            drawn[node] = coins.draw(tree.p(node), tree.u[node])
        return drawn[node]

    best, length = None, -1
    for path in tree.paths():
        accepted = len(path)
        for place in range(1, len(path)):
            if tree.token[path[place]] != target(path[place - 1]):
                accepted = place
                coins.refused += 1
                break
        if accepted > length:
            best, length = path[:accepted], accepted
    return emitted(tree, best[1:], target(best[-1]))


def amended(tree, coins):
    """As MAT-03: of equal siblings the first is gone to."""
    return step(tree.without_twins(), coins)
