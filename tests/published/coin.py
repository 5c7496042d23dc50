"""Coins that remember how near to a bound they fell, and the one tree that programs and reference walk."""

import numpy as np

NEAR = 2.0**-20


class Coins:
    """The comparisons of one step. `near` becomes true if a coin lay within 2^-20 of its bound.

    A row of which refusals left `mass` has rounded entries (RES-01), off by 2^-24 of what it had. So below a mass of
    1/8 a coin within 2^-23 / mass is near, too."""

    def __init__(self):
        self.near = False
        self.refused = 0  # tests in vain

    def note(self, distance, mass=1.0):
        self.near |= bool(distance < max(NEAR, 2.0**-23 / mass if mass > 0 else 1.0))

    def below(self, u, bound, mass=1.0):
        """u < bound."""
        self.note(abs(u - bound), mass)
        self.refused += not u < bound
        return u < bound

    def draw(self, weights, u, mass=1.0):
        """The first id whose running sum exceeds u times the total; mass: of the weights, as shares of a row."""
        sums = np.cumsum(weights)
        total = sums[-1]
        if not total > 0:
            self.near = True  # nothing is left but rounding
            return -1
        x = u * total
        token = int(np.searchsorted(sums, x, side="right"))
        if token == len(sums):
            token = int(np.flatnonzero(weights)[-1])
        below = sums[token] - weights[token]
        self.note((sums[token] - x) / total, mass)
        if below > 0:
            self.note((x - below) / total, mass)
        return token


class Tree:
    """A request of verify_tree (iut_tree_batch of iut.h). Arrays have an entry a node; rows are float64 copies."""

    def __init__(self, panel, **values):
        self.panel = panel
        self.__dict__.update(values)
        self.below = [[] for _ in self.token]
        for node, (token, parent) in enumerate(zip(self.token, self.parent)):
            if node and token >= 0:
                self.below[parent].append(node)

    def children(self, node):
        """The nodes below it in the order in which they are tried, without placeholders."""
        return self.below[node]

    def p(self, node):
        return self.panel.p[self.state[node]].astype(np.float64)

    def q(self, node):
        return self.panel.q[self.q_state[node]].astype(np.float64)

    def logits(self, node):
        return self.panel.logits[self.state[node]]

    def without_twins(self):
        """The tree in which a sibling whose token another one before it has is a placeholder."""
        values = {name: value for name, value in self.__dict__.items() if name not in ("panel", "below")}
        values["token"] = self.token.copy()
        for siblings in self.below:
            seen = set()
            for node in siblings:
                if self.token[node] in seen:
                    values["token"][node] = -1
                seen.add(int(self.token[node]))
        return Tree(self.panel, **values)

    def paths(self):
        """The root paths of all leaves, in the order of the leaves: lists of nodes, the root first."""
        found, reached = [], [0]
        while reached:
            node = reached.pop()
            reached += self.below[node]
            if not self.below[node]:
                path = [node]
                while path[0]:
                    path.insert(0, int(self.parent[path[0]]))
                found.append(path)
        return sorted(found, key=lambda path: path[-1])


def emitted(tree, nodes, last):
    """What a step answers: tokens, the last one included, and nodes."""
    return [*(int(tree.token[node]) for node in nodes), last], nodes
