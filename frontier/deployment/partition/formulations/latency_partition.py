"""Partition for latency by the sets that accelerators run as one."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import networkx as nx
import numpy as np
import pyomo.environ as pyo

from ddlopt.frontier.deployment.partition.formulations.convex_sets import MOST_IDEALS, MOST_SETS, Pieces, pieces_of
from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.partition.blocks import load_unit_s, longest_s, seconds_in_units
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import significant
from ddlopt.models.tolerances import FEASIBILITY_TOL, INTEGRALITY_TOL
from ddlopt.models.units import check_big_m

_SOME = 1e-6
"""Units that a set takes at least, so that none waits for itself."""


@dataclass(frozen=True)
class LatencyPartition(FormulationBase):
    r"""Which sets run as one, and when every node is done.

    On an accelerator runs a set S of nodes that is *convex* (no path leads out of it and back) and fits into memory;
    it takes :math:`p_S`, with what it fetches and sends. With :math:`z_S = 1` if S is chosen, :math:`x_v = 1` if node v
    is on a processor, where it takes :math:`q_v`, and :math:`t_v` when v is done, with all of its set,

    .. math::
        \min\ & L \ge t_v \\
        & x_v + \textstyle\sum_{S \ni v} z_S = 1, \qquad \sum_S z_S \le k \\
        & t_v \ge t_u + q_v x_v + \textstyle\sum_{S \ni v,\ S \not\ni u} p_S z_S && u \to v \\
        & t_v \ge q_v x_v + \textstyle\sum_{S \ni v} p_S z_S && \text{v first in S.}

    There is no big-M in these rows: v is in one set or on a processor, and where u is in the same set, both are
    done together. They say all, but that a node of S also waits for what other nodes of S need. Where that comes from
    a node u from which no path leads to v, and v is first in S,

    .. math:: t_v \ge t_u + \textstyle\sum_{S} (p_S + H) z_S - H,

    over the sets with both, where H is ``limit_s``, or a time in which every partition has done everything
    (:func:`~ddlopt.models.deployment.partition.blocks.longest_s`). On a chain of nodes there are no such rows, and the
    relaxation is that of covering a line by intervals.

    What takes more than 1e8 units, and four times a simple partition, counts as if it took just that. Sets that take no
    time count 1e-6 units, so that none waits for itself; ``limit_s`` and the objective allow for that.

    Sets come from pairs of ideals, so there must not be too many (:func:`~.convex_sets.pieces_of`). Where nodes of
    one colour are several, sets are convex in the graph of colours: then that is the scope.

    Parameters
    ----------
    limit_s : float, optional
        Latency of a known partition. A host model must not couple to one that is slower.

    Ports
    -----
    ``chosen[s]``
        z, by place in :func:`~ddlopt.frontier.deployment.partition.formulations.convex_sets.pieces_of`.
    ``done[v]``
        t in units of :func:`~ddlopt.models.deployment.partition.blocks.load_unit_s`.
    ``objective``
        L in these units, to be minimised.

    References
    ----------
    The problem: J. Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020,
    whose program has x by node and accelerator
    (:class:`~ddlopt.models.deployment.partition.formulations.tarnawski_latency.Tarnawski2020Latency`). The model is
    ours.
    """

    limit_s: float | None = None

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    outer: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.models.deployment.partition.ideals.kernels",
        "ddlopt.frontier.deployment.partition.formulations.convex_sets_kernel",
    )

    def refuses(self, instance: Any) -> str | None:
        """Throughput, several subgraphs an accelerator, too many sets."""
        reason = refusal(instance, "latency")
        if reason is not None:
            return reason
        if instance.subgraphs > 1:
            return "it has one set an accelerator, and the instance allows several; use latency-plain"
        if pieces_of(instance) is None:
            return f"there are more than {MOST_IDEALS} ideals or {MOST_SETS} convex sets that fit; use latency-search"
        return None

    def scope(self, instance: PartitionInstance) -> str | None:
        """All partitions if every node has a colour of its own."""
        return None if len(instance.colours) == len(instance.nodes) else "sets convex in the graph of colours"

    def build(self, block: pyo.Block, instance: PartitionInstance) -> None:
        """Fill ``block``."""
        pieces, unit_s = _pieces(instance), load_unit_s(instance)
        nodes, processors = instance.nodes, instance.processors > 0
        block.NODES, block.SETS = pyo.RangeSet(0, len(nodes) - 1), pyo.RangeSet(0, len(pieces.members) - 1)
        block.chosen = pyo.Var(block.SETS, domain=pyo.Binary, doc="1 if an accelerator runs the set")
        block.on_processor = pyo.Var(block.NODES, bounds=(0, 1), doc="1 if the node is on a processor")
        charged = _SOME * instance.accelerators
        limit = None if self.limit_s is None else self.limit_s / unit_s * (1 + FEASIBILITY_TOL) + charged
        block.done = pyo.Var(block.NODES, bounds=(0, limit), doc="when the node is done")
        block.latency = pyo.Var(bounds=(0, limit), doc="when all are done")
        z, x, t = list(block.chosen.values()), list(block.on_processor.values()), list(block.done.values())
        for v, node in enumerate(nodes):
            if node.processor_s is None or not processors:
                x[v].fix(0)
        sets = _Sets(instance, pieces)

        @block.Constraint(range(pieces.blocks.count), doc="a block is in one set, or on processors")
        def blocks_are_placed(b: Any, number: int) -> Any:
            first = pieces.blocks.members[number][0]
            return 1, significant([(1.0, x[first]), *((1.0, z[s]) for s in sets.with_block[number])]), 1

        apart = [(m[0], v) for m in pieces.blocks.members for v in m[1:]]

        @block.Constraint(range(len(apart)), doc="nodes of one block have one choice")
        def blocks_stay_together(b: Any, row: int) -> Any:
            one, other = apart[row]
            return 0, significant([(1.0, x[one]), (-1.0, x[other])]), 0

        block.accelerators_suffice = pyo.Constraint(
            expr=(None, significant([(1.0, variable) for variable in z]), instance.accelerators),
            doc="no more sets than accelerators",
        )
        times = np.maximum(_SOME, seconds_in_units(pieces.load_s, instance)).tolist()
        own = seconds_in_units([node.processor_s or 0.0 for node in nodes], instance)
        edges = [(u, v) for u, users in enumerate(instance.consumers) for v in users]

        @block.Constraint(range(len(edges)), doc="a node is done after what it needs")
        def edges_take_time(b: Any, row: int) -> Any:
            u, v = edges[row]
            terms = [(1.0, t[v]), (-1.0, t[u]), (-own[v], x[v])]
            return 0, significant(terms + [(-times[s], z[s]) for s in sets.entered(u, v)]), None

        @block.Constraint(block.NODES, doc="and after its own set")
        def sets_take_time(b: Any, v: int) -> Any:
            return 0, significant([(1.0, t[v]), (-own[v], x[v]), *((-times[s], z[s]) for s in sets.first[v])]), None

        waiting = list(sets.waiting.items())
        big = longest_s(instance) / unit_s + charged if limit is None else limit
        if waiting and limit is None:
            # A latency is about a thousand units.
            check_big_m(big, 1e3, instance.name, "the latency of a partition")

        @block.Constraint(range(len(waiting)), doc="a set waits for what any of its nodes needs")
        def sets_wait(b: Any, row: int) -> Any:
            (u, v), own_sets = waiting[row]
            terms = [(1.0, t[v]), (-1.0, t[u])]
            return -big, significant(terms + [(-times[s] - big, z[s]) for s in own_sets]), None

        @block.Constraint(block.NODES, doc="all are done")
        def latency_is_last(b: Any, v: int) -> Any:
            return (
                (0, significant([(1.0, b.latency), (-1.0, t[v])]), None)
                if not instance.consumers[v]
                else (pyo.Constraint.Skip)
            )

        block.objective = pyo.Expression(expr=significant([(1.0, block.latency)]))

    def start(self, block: pyo.Block, instance: PartitionInstance, solution: Partition) -> None:
        """Set ``chosen``; the rest follows."""
        pieces = _pieces(instance)
        number = {members: place for place, members in enumerate(pieces.members)}
        devices = pieces.blocks.devices_of_blocks(solution.devices).tolist()
        for variable in block.chosen.values():
            variable.set_value(0)
        for device in range(instance.accelerators):
            members = tuple(each for each, own in enumerate(devices) if own == device)
            if members in number:
                block.chosen[number[members]].set_value(1)

    def read(self, block: pyo.Block, instance: PartitionInstance) -> Partition:
        """The sets chosen, on accelerators in this order.

        Raises
        ------
        SolverError
            If a set is chosen in part.
        """
        pieces = _pieces(instance)
        devices = [instance.accelerators] * pieces.blocks.count
        used = 0
        for s, variable in block.chosen.items():
            if INTEGRALITY_TOL < variable.value < 1 - INTEGRALITY_TOL:
                raise SolverError(f"'{instance.name}': set {s} is chosen in part: {variable.value:g}")
            if variable.value > 0.5:
                for each in pieces.members[s]:
                    devices[each] = used
                used += 1
        return Partition(instance=instance.name, devices=pieces.blocks.devices_of_nodes(devices))

    def objective_value(self, instance: PartitionInstance, value: float) -> float:
        """Seconds; less what sets without work were given."""
        return (value - _SOME * instance.accelerators) * load_unit_s(instance)


class _Sets:
    """Which sets hold, enter at, and wait for which nodes."""

    def __init__(self, instance: PartitionInstance, pieces: Pieces) -> None:
        block_of = {node: number for number, nodes in enumerate(pieces.blocks.members) for node in nodes}
        self._block_of = block_of
        self.with_block: list[list[int]] = [[] for _ in range(pieces.blocks.count)]
        for s, members in enumerate(pieces.members):
            for each in members:
                self.with_block[each].append(s)
        self._holds = [set(members) for members in pieces.members]
        graph = nx.DiGraph()
        graph.add_nodes_from(range(len(instance.nodes)))
        graph.add_edges_from(instance.edges)
        needs = [sorted(graph.predecessors(node)) for node in graph]
        before = {node: nx.ancestors(graph, node) for node in graph}
        self.first: list[list[int]] = [[] for _ in instance.nodes]
        self.waiting: dict[tuple[int, int], list[int]] = defaultdict(list)
        for s, members in enumerate(pieces.members):
            inside = {node for each in members for node in pieces.blocks.members[each]}
            fetched = {u for node in inside for u in needs[node] if u not in inside}
            firsts = [node for node in sorted(inside) if not inside.intersection(needs[node])]
            for v in firsts:
                self.first[v].append(s)
                for u in sorted(fetched - before[v]):
                    self.waiting[u, v].append(s)

    def entered(self, u: int, v: int) -> list[int]:
        """Sets that hold node v but not node u."""
        one = self._block_of[u]
        return [s for s in self.with_block[self._block_of[v]] if one not in self._holds[s]]


def _pieces(instance: PartitionInstance) -> Pieces:
    pieces = pieces_of(instance)
    assert pieces is not None
    return pieces
