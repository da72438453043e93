"""The latency of a partition as the literature formulates it, for comparison."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.partition.blocks import (
    FULL_MEMORY,
    load_unit_s,
    longest_s,
    memory_parts,
    rounded_devices,
    seconds_in_units,
)
from ddlopt.models.deployment.partition.formulations.tarnawski_max_load import add_transfers
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.linear import significant
from ddlopt.models.units import check_big_m


@dataclass(frozen=True)
class Tarnawski2020Latency(FormulationBase):
    r"""Nodes on slots, with times of slots behind big-M rows.

    Each accelerator has as many slots as it may run subgraphs, one after the other; slot 0 is the pool of processors.
    With x, i and o as in
    :class:`~ddlopt.models.deployment.partition.formulations.tarnawski_max_load.Tarnawski2020MaxLoad` for slots d,
    :math:`t_v` when node v is done, :math:`s_d, f_d` the start and end of a slot and H a time in which every partition
    has done everything (:func:`~ddlopt.models.deployment.partition.blocks.longest_s`),

    .. math::
        & s_d \ge t_u - (1 - i_{ud}) H, \quad f_d = s_d + \textstyle\sum_v p_v x_{vd} + \sum_u c_u (i_{ud} + o_{ud}), \\
        & t_v \ge f_d - (1 - x_{vd}) H, \qquad t_v \ge t_u + q_v x_{v0}\ (u \to v), \qquad t_v \ge q_v x_{v0},

    :math:`s_{d+1} \ge f_d` for slots of one accelerator, and convex slots by :math:`z_{vd} \ge x_{vd}`,
    :math:`z_{vd} \le z_{ud}`, :math:`z_{vd} \le x_{vd} - x_{ud} + 1`. The published H lacks transfers and accelerators,
    which can cut off partitions that are slower than all nodes on processors: an output is sent once, and fetched by
    every accelerator that needs it. What takes more than 1e8 units, and four times a simple partition, counts as
    if it took just that.

    Ports
    -----
    ``on[v, d]``
        x; slots of accelerators in order, the pool last.
    ``done[v]``
        t in units of :func:`~ddlopt.models.deployment.partition.blocks.load_unit_s`.
    ``objective``
        The largest t, to be minimised.

    References
    ----------
    J. Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020, appendix, and
    the released program (latency-ip).
    """

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Throughput."""
        return refusal(instance, "latency")

    def build(self, block: pyo.Block, instance: PartitionInstance) -> None:
        """Fill ``block``."""
        nodes, unit_s, slots = instance.nodes, load_unit_s(instance), instance.accelerators * instance.subgraphs
        block.NODES, block.SLOTS = pyo.RangeSet(0, len(nodes) - 1), pyo.Set(initialize=range(slots))
        block.on = pyo.Var(block.NODES, range(slots + 1), domain=pyo.Binary, doc="1 if the node is on the slot")
        edges = [(u, v) for u, users in enumerate(instance.consumers) for v in users]
        block.EDGES = pyo.Set(dimen=3, initialize=[(u, v, d) for u, v in edges for d in range(slots)])
        for name in ("fetched", "sent", "reached"):
            block.add_component(name, pyo.Var(block.NODES, block.SLOTS, bounds=(0, 1)))
        block.done = pyo.Var(block.NODES, bounds=(0, None), doc="when the node is done")
        block.begin = pyo.Var(block.SLOTS, bounds=(0, None), doc="s")
        block.end = pyo.Var(block.SLOTS, bounds=(0, None), doc="f")
        x = block.on
        for v, d in x:
            time_s = nodes[v].accelerator_s if d < slots else nodes[v].processor_s
            if time_s is None or (d == slots and not instance.processors):
                x[v, d].fix(0)

        @block.Constraint(block.NODES, doc="every node is on one slot")
        def nodes_are_placed(b: Any, v: int) -> Any:
            return 1, significant([(1.0, x[v, d]) for d in range(slots + 1)]), 1

        @block.Constraint(range(instance.accelerators), doc="memory suffices")
        def memory_suffices(b: Any, a: int) -> Any:
            own = range(a * instance.subgraphs, (a + 1) * instance.subgraphs)
            parts = memory_parts([node.memory_bytes for node in nodes], instance)
            return None, significant([(part, x[v, d]) for v, part in enumerate(parts) for d in own]), FULL_MEMORY

        together = [(pair, d) for own in instance.colours for pair in pairwise(own) for d in range(-1, slots)]

        @block.Constraint(range(len(together)), doc="nodes of one colour are on one device")
        def colours_stay_together(b: Any, row: int) -> Any:
            (one, other), d = together[row]
            if d < 0:
                return 0, significant([(1.0, x[one, slots]), (-1.0, x[other, slots])]), 0
            if d % instance.subgraphs:
                return pyo.Constraint.Skip
            own = range(d, d + instance.subgraphs)
            return 0, significant([(sign, x[v, e]) for v, sign in ((one, 1.0), (other, -1.0)) for e in own]), 0

        _add_crossings(block)
        _add_times(block, instance, unit_s)
        block.latency = pyo.Var(bounds=(0, None), doc="when all are done")

        @block.Constraint(block.NODES, doc="all are done")
        def latency_is_last(b: Any, v: int) -> Any:
            return 0, significant([(1.0, b.latency), (-1.0, b.done[v])]), None

        block.objective = pyo.Expression(expr=significant([(1.0, block.latency)]))

    def start(self, block: pyo.Block, instance: PartitionInstance, solution: Partition) -> None:
        """Set ``on``; the rest follows."""
        numbers = solution.subgraphs or (0,) * len(solution.devices)
        for (v, d), variable in block.on.items():
            device = solution.devices[v]
            slot = instance.accelerators * instance.subgraphs
            if device < instance.accelerators:
                slot = device * instance.subgraphs + numbers[v]
            if not variable.fixed:
                variable.set_value(int(slot == d))

    def read(self, block: pyo.Block, instance: PartitionInstance) -> Partition:
        """The device of each node, and its subgraph.

        Raises
        ------
        SolverError
            If a node is on a slot in part.
        """
        slots = rounded_devices(block.on, len(instance.nodes), instance)
        pool = instance.accelerators * instance.subgraphs
        numbers = tuple(slot % instance.subgraphs if slot < pool else 0 for slot in slots)
        return Partition(
            instance=instance.name,
            devices=tuple(slot // instance.subgraphs for slot in slots),
            subgraphs=numbers if any(numbers) else (),
        )

    def objective_value(self, instance: PartitionInstance, value: float) -> float:
        """Seconds."""
        return value * load_unit_s(instance)


def _add_crossings(block: pyo.Block) -> None:
    """What is fetched and sent, and that slots are convex."""
    x = block.on
    add_transfers(block)

    @block.Constraint(block.NODES, block.SLOTS, doc="a node on the slot is reached")
    def own_nodes_are_reached(b: Any, v: int, d: int) -> Any:
        return 0, significant([(1.0, b.reached[v, d]), (-1.0, x[v, d])]), None

    @block.Constraint(block.EDGES, doc="what comes before a reached node is reached")
    def reached_from_before(b: Any, u: int, v: int, d: int) -> Any:
        return 0, significant([(1.0, b.reached[u, d]), (-1.0, b.reached[v, d])]), None

    @block.Constraint(block.EDGES, doc="nothing is reached across an edge that leaves")
    def leaving_ends_it(b: Any, u: int, v: int, d: int) -> Any:
        return None, significant([(1.0, b.reached[v, d]), (-1.0, x[v, d]), (1.0, x[u, d])]), 1


def _add_times(block: pyo.Block, instance: PartitionInstance, unit_s: float) -> None:
    nodes, x, t = instance.nodes, block.on, block.done
    pool = instance.accelerators * instance.subgraphs
    # A latency is about a thousand units.
    big = check_big_m(longest_s(instance) / unit_s, 1e3, instance.name, "the latency of a partition")
    own = seconds_in_units([node.processor_s or 0.0 for node in nodes], instance)
    there = seconds_in_units([node.accelerator_s or 0.0 for node in nodes], instance)
    moves = seconds_in_units([node.transfer_s for node in nodes], instance)

    @block.Constraint(block.NODES, block.SLOTS, doc="a slot starts after what it fetches")
    def slots_start(b: Any, u: int, d: int) -> Any:
        return -big, significant([(1.0, b.begin[d]), (-1.0, t[u]), (-big, b.fetched[u, d])]), None

    @block.Constraint(block.SLOTS, doc="and takes the time of its load")
    def slots_take_time(b: Any, d: int) -> Any:
        terms = [(1.0, b.end[d]), (-1.0, b.begin[d])]
        for v in b.NODES:
            terms.append((-there[v], x[v, d]))
            terms += [(-moves[v], moved[v, d]) for moved in (b.fetched, b.sent)]
        return 0, significant(terms), None

    @block.Constraint(block.NODES, block.SLOTS, doc="nodes are done when their slot is")
    def nodes_end_with_slots(b: Any, v: int, d: int) -> Any:
        return -big, significant([(1.0, t[v]), (-1.0, b.end[d]), (-big, x[v, d])]), None

    @block.Constraint(block.NODES, doc="nodes on processors take their time")
    def nodes_take_time(b: Any, v: int) -> Any:
        return 0, significant([(1.0, t[v]), (-own[v], x[v, pool])]), None

    edges = [(u, v) for u, users in enumerate(instance.consumers) for v in users]

    @block.Constraint(range(len(edges)), doc="after what they need")
    def edges_take_time(b: Any, row: int) -> Any:
        u, v = edges[row]
        return 0, significant([(1.0, t[v]), (-1.0, t[u]), (-own[v], x[v, pool])]), None

    @block.Constraint(block.SLOTS, doc="slots of one accelerator follow each other")
    def slots_follow(b: Any, d: int) -> Any:
        if d % instance.subgraphs == 0:
            return pyo.Constraint.Skip
        return 0, significant([(1.0, b.begin[d]), (-1.0, b.end[d - 1])]), None
