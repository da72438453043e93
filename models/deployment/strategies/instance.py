"""One strategy for each node of a graph, with costs of nodes and edges and memory over time."""

from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from ddlopt.models.deployment.family import DeploymentAnswer, DeploymentProblem
from ddlopt.models.deployment.strategies.ragged import EXACT, Costs, Indices, Ints, Pairs, Usages


class StrategyInstance(DeploymentProblem):
    r"""How each operator of a training step is sharded: one strategy for every node of its graph.

    .. math:: \min_s \sum_i c_i(s_i) + \sum_{(i, j)} C_{ij}(s_i, s_j) \quad \text{so that} \quad
       \sum_{i:\ b_i \le t < e_i} u_i(s_i) \le U \ \text{ at all times } t.

    The cost of a node is that of computing and of communication within the operator, that of an edge the cost of
    changing the layout of what is handed on; some pairs are forbidden. A node keeps memory while what it makes is
    alive, from its time b up to, but not at, e. Costs have no unit here; where they are seconds, so is the objective.

    Parameters
    ----------
    costs : Ragged
        c, for each node a cost for each of its strategies; null: forbidden.
    usages : Ragged
        u, memory of the same strategies.
    intervals : (n, 2) array
        b and e of each node in steps; e at most b: it never keeps any.
    edges : (m, 2) array
        Two nodes each; several edges may join the same two.
    tables : Ragged
        Matrices of costs of edges, row by row, each once; null: forbidden. Rows are strategies of the edge's first
        node, columns of its second.
    table_of : (m,) array
        Which of the tables each edge has.
    usage_limit : float, optional
        U; None: there is enough memory.
    pins : tuple of (int, int)
        Nodes whose strategy is given.
    aliases : tuple of tuple of int
        Sets of nodes that must choose the same strategy, as the same layer in repeated blocks. A node is in one at
        most.

    References
    ----------
    L. Zheng et al., "Alpa: Automating inter- and intra-operator parallelism for distributed deep learning", OSDI 2022,
    section 4; M. D. Moffitt, P. Fegade, "The ASPLOS 2025 / EuroSys 2025 contest on intra-operator parallelism for
    distributed deep learning", 2025, for memory over time and the public instances.
    """

    kind: ClassVar[str] = "strategy instance"

    problem: Literal["strategies"] = "strategies"
    costs: Costs
    usages: Usages
    intervals: Pairs
    edges: Pairs = Field(default=(), validate_default=True)
    tables: Costs = Field(default=(), validate_default=True)
    table_of: Indices = Field(default=(), validate_default=True)
    usage_limit: float | None = Field(default=None, ge=0)
    pins: tuple[tuple[int, int], ...] = ()
    aliases: tuple[tuple[int, ...], ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        self._check_nodes()
        self._check_edges()
        self._check_choices()
        return self

    def _check_nodes(self) -> None:
        size = len(self.costs)
        if not size:
            raise ValueError("costs is empty; there must be a node")
        for field in ("usages", "intervals"):
            if len(getattr(self, field)) != size:
                raise ValueError(f"{field} has {len(getattr(self, field))} nodes, but costs has {size}")
        counts, others = self.costs.sizes, self.usages.sizes
        for i in np.flatnonzero((counts == 0) | (counts != others))[:1].tolist():
            if not counts[i]:
                raise ValueError(f"costs[{i}] is empty; a node needs a strategy")
            raise ValueError(f"usages[{i}] has {others[i]} strategies, but costs[{i}] has {counts[i]}")
        for place in np.flatnonzero(~np.isfinite(self.usages.values))[:1].tolist():
            node = int(np.searchsorted(np.cumsum(others), place, side="right"))
            raise ValueError(f"usages[{node}] has {self.usages.values[place]}; every usage must be finite")
        largest = max(_largest(self.costs.values), _largest(self.usages.values), _largest(self.tables.values))
        if largest >= EXACT / 2:
            raise ValueError(
                f"a cost or usage is {largest:g}; give a larger unit, or null where it stands for forbidden"
            )

    def _check_edges(self) -> None:
        edges, tables, size, counts = self.edges, self.table_of, self.size, self.costs.sizes
        if len(edges) != len(tables):
            raise ValueError(f"table_of has {len(tables)} entries, but there are {len(edges)} edges")
        for e in np.flatnonzero(((edges < 0) | (edges >= size)).any(axis=1))[:1].tolist():
            raise ValueError(f"edges[{e}] joins {edges[e].tolist()}, but there are {size} nodes (0..{size - 1})")
        for e in np.flatnonzero(edges[:, 0] == edges[:, 1])[:1].tolist():
            raise ValueError(f"edges[{e}] joins node {edges[e, 0]} with itself; add its diagonal to the node's costs")
        for e in np.flatnonzero((tables < 0) | (tables >= len(self.tables)))[:1].tolist():
            raise ValueError(f"table_of[{e}] is {tables[e]}, but there are {len(self.tables)} tables")
        rows, columns = counts[edges[:, 0]], counts[edges[:, 1]]
        for e in np.flatnonzero(self.tables.sizes[tables] != rows * columns)[:1].tolist():
            i, j = edges[e].tolist()
            raise ValueError(
                f"edges[{e}] has {self.tables.sizes[tables[e]]} costs (tables[{tables[e]}]), but nodes {i} and {j} "
                f"have {rows[e]} and {columns[e]} strategies: {rows[e] * columns[e]} are needed"
            )

    def _check_choices(self) -> None:
        counts, size = self.costs.sizes, self.size
        pinned: dict[int, int] = {}
        for place, (node, strategy) in enumerate(self.pins):
            if not 0 <= node < size:
                raise ValueError(f"pins[{place}] names node {node}, but there are {size} nodes (0..{size - 1})")
            if not 0 <= strategy < counts[node]:
                raise ValueError(f"pins[{place}] gives node {node} strategy {strategy}, but it has {counts[node]}")
            if pinned.setdefault(node, strategy) != strategy:
                raise ValueError(f"pins[{place}] gives node {node} strategy {strategy}, after {pinned[node]}")
        seen: set[int] = set()
        for place, nodes in enumerate(self.aliases):
            for node in nodes:
                if not 0 <= node < size:
                    raise ValueError(f"aliases[{place}] names node {node}, but there are {size} nodes (0..{size - 1})")
                if node in seen:
                    raise ValueError(f"aliases[{place}] names node {node} again; a node is in one set at most, once")
                if counts[node] != counts[nodes[0]]:
                    raise ValueError(
                        f"aliases[{place}] joins nodes {nodes[0]} and {node}, but they have {counts[nodes[0]]} and "
                        f"{counts[node]} strategies"
                    )
                seen.add(node)

    @cached_property
    def usages_are_whole(self) -> bool:
        """Whether all usages are whole numbers: their sums are exact, and the check then lets nothing pass."""
        return bool((self.usages.values == np.floor(self.usages.values)).all())

    @property
    def size(self) -> int:
        """Number of nodes."""
        return len(self.costs)

    @property
    def objective_unit(self) -> str:
        """None: costs are as the user has them."""
        return ""

    @cached_property
    def table_shapes(self) -> Ints:
        """(m, 2) strategies of both nodes of each edge."""
        shapes: Ints = self.costs.sizes[self.edges]
        return shapes

    @cached_property
    def whole(self) -> bool:
        """Whether all costs are whole numbers; then so is every objective."""
        return all(_are_whole(each.values) for each in (self.costs, self.tables))


def _largest(values: object) -> float:
    array = np.asarray(values)
    return float(array[np.isfinite(array)].max(initial=0.0))


def _are_whole(values: object) -> bool:
    array = np.asarray(values)
    finite = array[np.isfinite(array)]
    return bool((finite == np.floor(finite)).all())


class StrategyAssignment(DeploymentAnswer):
    """The strategy of every node.

    Parameters
    ----------
    strategies : tuple of int
        Counted from 0, in the order of the nodes.
    """

    kind: ClassVar[str] = "strategy assignment"

    problem: Literal["strategies"] = "strategies"
    strategies: tuple[int, ...]
