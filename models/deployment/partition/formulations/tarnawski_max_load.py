"""The largest load as the literature formulates it, for comparison."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.partition.blocks import (
    FULL_MEMORY,
    load_unit_s,
    memory_parts,
    rounded_devices,
    seconds_in_units,
)
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.linear import significant


@dataclass(frozen=True)
class Tarnawski2020MaxLoad(FormulationBase):
    r"""Every node by itself, and transfers of every node on every accelerator.

    With :math:`x_{vd} = 1` if node v is on device d, and for accelerators d, nodes u and edges (u, v),

    .. math::
        i_{ud} \ge x_{vd} - x_{ud}, \qquad o_{ud} \ge x_{ud} - x_{vd},

    the load of an accelerator is :math:`\sum_v p_v x_{vd} + \sum_u c_u (i_{ud} + o_{ud})`. Nodes of one colour have
    equal rows of x. A device is convex, which is less than the order that a contiguous instance asks for, with
    :math:`z_{vd} \ge x_{vd}`, :math:`z_{vd} \le z_{ud}` and :math:`z_{vd} \le x_{vd} - x_{ud} + 1` for forward edges;
    so such instances are refused here. What takes more than 1e8 units, and four times a simple partition, counts as
    if it took just that.

    Ports
    -----
    ``on[v, d]``
        x; devices as in :class:`~ddlopt.models.deployment.partition.instance.Partition`.
    ``largest_load[pass]``
        The largest load of each pass, in units of :func:`~ddlopt.models.deployment.partition.blocks.load_unit_s`.
    ``objective``
        The same, to be minimised.

    References
    ----------
    J. Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020, and the
    released program (throughput-ip).
    """

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    # The largest load need not be tight at a gap.
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Latency, contiguous partitions."""
        reason = refusal(instance, "throughput")
        return "it has no order of devices; use max-load" if reason is None and instance.contiguous else reason

    def build(self, block: pyo.Block, instance: PartitionInstance) -> None:
        """Fill ``block``."""
        nodes = instance.nodes
        block.NODES, block.DEVICES = pyo.RangeSet(0, len(nodes) - 1), pyo.RangeSet(0, instance.devices - 1)
        block.ACCELERATORS = pyo.Set(initialize=range(instance.accelerators))
        block.on = pyo.Var(block.NODES, block.DEVICES, domain=pyo.Binary, doc="1 if the node is on the device")
        block.fetched = pyo.Var(block.NODES, block.ACCELERATORS, bounds=(0, None), doc="i")
        block.sent = pyo.Var(block.NODES, block.ACCELERATORS, bounds=(0, None), doc="o")
        x = block.on
        for v, d in x:
            node = nodes[v]
            if (node.accelerator_s if d < instance.accelerators else node.processor_s) is None:
                x[v, d].fix(0)

        @block.Constraint(block.NODES, doc="every node is on one device")
        def nodes_are_placed(b: Any, v: int) -> Any:
            return 1, significant([(1.0, x[v, d]) for d in b.DEVICES]), 1

        @block.Constraint(block.ACCELERATORS, doc="memory suffices")
        def memory_suffices(b: Any, d: int) -> Any:
            parts = memory_parts([node.memory_bytes for node in nodes], instance)
            terms = [(part, x[v, d]) for v, part in enumerate(parts)]
            return None, significant(terms), FULL_MEMORY

        edges = [(u, v, d) for u, users in enumerate(instance.consumers) for v in users for d in block.ACCELERATORS]
        block.EDGES = pyo.Set(dimen=3, initialize=edges)

        add_transfers(block)
        together = [(pair, d) for pair in _neighbours(instance) for d in block.DEVICES]

        @block.Constraint(range(len(together)), doc="nodes of one colour are on one device")
        def colours_stay_together(b: Any, row: int) -> Any:
            (one, other), d = together[row]
            return 0, significant([(1.0, x[one, d]), (-1.0, x[other, d])]), 0

        passes = (False, True) if instance.separate_passes else (None,)
        own = seconds_in_units([node.processor_s or 0.0 for node in nodes], instance)
        there = seconds_in_units([node.accelerator_s or 0.0 for node in nodes], instance)
        moves = seconds_in_units([node.transfer_s for node in nodes], instance)
        block.largest_load = pyo.Var(range(len(passes)), bounds=(0, None), doc="largest load, of each pass")

        @block.Constraint(range(len(passes)), block.DEVICES, doc="no load exceeds the largest")
        def loads_are_bounded(b: Any, number: int, d: int) -> Any:
            terms = [(1.0, b.largest_load[number])]
            for v, node in enumerate(nodes):
                if passes[number] not in (None, node.backward):
                    continue
                terms.append((-(there if d < instance.accelerators else own)[v], x[v, d]))
                if d < instance.accelerators:
                    terms += [(-moves[v], moved[v, d]) for moved in (b.fetched, b.sent)]
            return 0, significant(terms), None

        block.objective = pyo.Expression(expr=significant([(1.0, load) for load in block.largest_load.values()]))

    def start(self, block: pyo.Block, instance: PartitionInstance, solution: Partition) -> None:
        """Set ``on``; the rest follows."""
        for (v, d), variable in block.on.items():
            variable.set_value(int(solution.devices[v] == d))

    def read(self, block: pyo.Block, instance: PartitionInstance) -> Partition:
        """The device of each node.

        Raises
        ------
        SolverError
            If a node is on a device in part.
        """
        return Partition(instance=instance.name, devices=rounded_devices(block.on, len(instance.nodes), instance))

    def objective_value(self, instance: PartitionInstance, value: float) -> float:
        """Seconds."""
        return value * load_unit_s(instance)


def add_transfers(block: pyo.Block) -> None:
    """What is fetched and sent by ``EDGES``: nodes u and v, and a device."""
    x = block.on

    @block.Constraint(block.EDGES, doc="what a node needs is fetched")
    def inputs_are_fetched(b: Any, u: int, v: int, d: int) -> Any:
        return 0, significant([(1.0, b.fetched[u, d]), (-1.0, x[v, d]), (1.0, x[u, d])]), None

    @block.Constraint(block.EDGES, doc="what others need is sent")
    def outputs_are_sent(b: Any, u: int, v: int, d: int) -> Any:
        return 0, significant([(1.0, b.sent[u, d]), (1.0, x[v, d]), (-1.0, x[u, d])]), None


def _neighbours(instance: PartitionInstance) -> list[tuple[int, int]]:
    return [pair for nodes in instance.colours for pair in pairwise(nodes)]
