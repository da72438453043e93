"""Strategies of operators: training graphs of repeated layers, and trees, with layouts of tensors drawn at random.

A strategy is a layout, which splits a tensor into a number of parts: layout 0 keeps it whole on every device, the last
one splits it the most. Costs and usages are whole numbers: usages in units of memory, costs of computing, of
collectives within the operator, which grow with the parts, and of changing a layout in units of time. All nodes have
the first and the last layout, and two neighbours may always have the same, so the last layout everywhere is a choice
with least memory.
"""

import numpy as np
import numpy.typing as npt

from ddlopt.instances.options import at_least, part
from ddlopt.models.deployment.strategies.instance import StrategyInstance

Floats = npt.NDArray[np.float64]

# A unit; usages are drawn from a twentieth of it up.
_LARGEST_BYTES = 2000
# Of the cost of a size; collectives cost about as much, so that neither decides alone.
_COMPUTE = 3.0
_COLLECTIVE = 0.5, 8.0
"""Time for each unit of memory of what is made: to compute it on one device, and to exchange it between many."""


class _Layouts:
    """Layouts and what it takes to change one into another.

    Parameters
    ----------
    rng : numpy.random.Generator
    count : int
    forbidden : float
        Part of the ordered pairs of different layouts that may not meet.
    """

    def __init__(self, rng: np.random.Generator, count: int, forbidden: float) -> None:
        self.parts = np.sort(2 ** rng.integers(0, 4, count))
        self.parts[0], self.parts[-1] = 1, 8
        self.change = np.round(rng.uniform(0.2, 2.0, (count, count)), 2)
        self.change[rng.random((count, count)) < forbidden] = np.inf
        np.fill_diagonal(self.change, 0.0)

    def choice(self, rng: np.random.Generator) -> list[int]:
        """Layouts of a node: the first, the last, and some between."""
        count = len(self.parts)
        between = np.flatnonzero(rng.random(count) < 0.6)
        return sorted({0, count - 1, *between.tolist()})

    def costs(self, rng: np.random.Generator, menu: list[int], size: int) -> list[float]:
        """Costs of a node with such a menu: what is computed in parts, and a collective between them."""
        parts = self.parts[menu]
        collective = rng.uniform(*_COLLECTIVE) * rng.uniform(0.5, 1.5, len(menu))
        found: list[float] = np.round(size * (_COMPUTE / parts + collective * (parts - 1) / parts)).tolist()
        return found


class _Drawn:
    """Nodes and edges as they are drawn."""

    def __init__(self, layouts: _Layouts) -> None:
        self.layouts = layouts
        self.menus: list[list[int]] = []
        self.sizes: list[int] = []
        self.costs: list[list[float]] = []
        self.intervals: list[list[int]] = []
        self.edges: list[list[int]] = []
        self._tables: dict[tuple[float | None, ...], int] = {}
        self.table_of: list[int] = []

    def node(self, menu: list[int], size: int, costs: list[float], begin: int, end: int) -> int:
        """Add a node and give its number."""
        self.menus.append(menu)
        self.sizes.append(size)
        self.costs.append(costs)
        self.intervals.append([begin, end])
        return len(self.menus) - 1

    def edge(self, i: int, j: int) -> None:
        """Add an edge over which what i makes is handed to j."""
        change = self.layouts.change[np.ix_(self.menus[i], self.menus[j])] * self.sizes[i]
        table = tuple(None if np.isinf(each) else float(round(each)) for each in change.ravel().tolist())
        self.edges.append([i, j])
        self.table_of.append(self._tables.setdefault(table, len(self._tables)))

    def instance(self, name: str, source: str, memory: float | None, aliases: list[list[int]]) -> StrategyInstance:
        """The instance; ``memory``: what the limit leaves of the way from least to largest peak."""
        layouts = self.layouts
        usages = [np.ceil(size / layouts.parts[menu]) for size, menu in zip(self.sizes, self.menus, strict=True)]
        least, most = self._peak([each.min() for each in usages]), self._peak([each.max() for each in usages])
        return StrategyInstance.from_data(
            {
                "name": name,
                "source": source,
                "costs": self.costs,
                "usages": [each.tolist() for each in usages],
                "intervals": self.intervals,
                "edges": self.edges,
                "tables": [list(table) for table in self._tables],
                "table_of": self.table_of,
                "usage_limit": None if memory is None else float(round(least + memory * (most - least))),
                "aliases": aliases,
            }
        )

    def _peak(self, usages: list[float]) -> float:
        last = max(end for _, end in self.intervals)
        change = np.zeros(last + 1)
        for (begin, end), usage in zip(self.intervals, usages, strict=True):
            if begin < end:
                change[begin] += usage
                change[end] -= usage
        return float(np.cumsum(change).max())


def training(
    rng: np.random.Generator,
    layers: int = 12,
    kinds: int = 3,
    layouts: int = 6,
    leaves: int = 2,
    forbidden: float = 0.3,
    memory: float | None = 0.3,
    alike: bool = False,
) -> StrategyInstance:
    """A training step: weights, forward and backward operators of layers, gradients, and operators that hang on them.

    Activations are kept until their layer's backward pass, weights always. There are residual connections.

    Parameters
    ----------
    rng : numpy.random.Generator
    layers : int
    kinds : int
        Kinds of layers, which take turns; layers of a kind have the same figures.
    layouts : int
        At most of a node.
    leaves : int
        Operators on each forward operator that have no other neighbour.
    forbidden : float
        Part of the pairs of different layouts.
    memory : float, optional
        What the limit leaves of the way from the least to the largest peak; None: no limit.
    alike : bool
        All layers of a kind must make the same choice.
    """
    at_least("layers", layers, 1)
    at_least("kinds", kinds, 1)
    at_least("layouts", layouts, 2)
    at_least("leaves", leaves, 0)
    part("forbidden", forbidden)
    if memory is not None:
        part("memory", memory)
    drawn = _Drawn(_Layouts(rng, layouts, forbidden))
    roles = 4 + leaves
    menus = [[drawn.layouts.choice(rng) for _ in range(roles)] for _ in range(kinds)]
    sizes = rng.integers(_LARGEST_BYTES // 20, _LARGEST_BYTES, (kinds, roles))
    costs = [
        [drawn.layouts.costs(rng, menus[kind][role], int(sizes[kind, role])) for role in range(roles)]
        for kind in range(kinds)
    ]
    last = 2 * layers + 1
    members: dict[tuple[int, int], list[int]] = {}
    forward: list[int] = []
    backward: dict[int, int] = {}
    for layer in range(layers):
        kind, back = layer % kinds, 2 * layers - layer
        spans = [(0, last), (layer, back + 1), (back, back + 2), (back, last + 1)] + [(layer, layer + 2)] * leaves
        nodes = [
            drawn.node(menus[kind][role], int(sizes[kind, role]), costs[kind][role], *span)
            for role, span in zip(range(roles), spans, strict=True)
        ]
        for role, node in enumerate(nodes):
            members.setdefault((kind, role), []).append(node)
        weight, ahead, behind, gradient, *others = nodes
        pairs = [(weight, ahead), (ahead, behind), (weight, behind), (behind, gradient), (gradient, weight)]
        if layer:
            pairs += [(forward[-1], ahead), (behind, backward[layer - 1])]
        if layer > 1 and layer % 2 == 0:
            pairs.append((forward[-2], ahead))
        for i, j in pairs + [(ahead, other) for other in others]:
            drawn.edge(i, j)
        forward.append(ahead)
        backward[layer] = behind
    aliases = [nodes for nodes in members.values() if len(nodes) > 1] if alike else []
    name = f"strategies-training-l{layers}x{layouts}" + ("-alike" if alike else "")
    return drawn.instance(name, "layouts, sizes and costs are assumed", memory, aliases)


def tree(
    rng: np.random.Generator,
    nodes: int = 40,
    branching: int = 3,
    layouts: int = 6,
    forbidden: float = 0.3,
    memory: float | None = None,
) -> StrategyInstance:
    """A random tree of operators; with ``branching`` 1 a chain.

    Parameters
    ----------
    rng : numpy.random.Generator
    nodes : int
    branching : int
        Each node hangs on one of this many before it.
    layouts, forbidden, memory
        As in :func:`training`.
    """
    at_least("nodes", nodes, 1)
    at_least("branching", branching, 1)
    at_least("layouts", layouts, 2)
    part("forbidden", forbidden)
    if memory is not None:
        part("memory", memory)
    drawn = _Drawn(_Layouts(rng, layouts, forbidden))
    for i in range(nodes):
        size = int(rng.integers(_LARGEST_BYTES // 20, _LARGEST_BYTES))
        menu = drawn.layouts.choice(rng)
        drawn.node(menu, size, drawn.layouts.costs(rng, menu, size), i, i + int(rng.integers(1, 6)))
        if i:
            drawn.edge(max(0, i - 1 - int(rng.integers(branching))), i)
    return drawn.instance(f"strategies-tree-n{nodes}x{layouts}", "layouts, sizes and costs are assumed", memory, [])
