"""Partition for throughput as an integer program."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo

from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.partition.blocks import (
    FULL_MEMORY,
    Blocks,
    blocks_of,
    load_unit_s,
    memory_parts,
    rounded_devices,
    seconds_in_units,
)
from ddlopt.models.deployment.partition.contraction import contracted
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.linear import significant
from ddlopt.models.tolerances import BOUND_MARGIN, FEASIBILITY_TOL, let_pass_at_least

_MOST = 8
"""Blocks of a device up to which packing rows count them: of more the rows say no more than the sum of loads."""


class _Slots(NamedTuple):
    """Where blocks can be: accelerators first, then processors; in a contiguous instance places in the pipeline."""

    accelerators: int
    processors: int

    @property
    def total(self) -> int:
        return self.accelerators + self.processors


@dataclass(frozen=True)
class MaxLoadPartition(FormulationBase):
    r"""Blocks on devices, and the outputs that cross.

    Nodes that must be on one device are one *block* (:func:`~ddlopt.models.deployment.partition.blocks.blocks_of`), and
    so are those that are together in some best partition
    (:func:`~ddlopt.models.deployment.partition.contraction.contracted`). An output h has *pins*, the blocks of the node
    that makes it and of those that need it; outputs with the same pins are added up. With :math:`x_{bd} = 1` if block b
    is on device d,

    .. math::
        \min\ & T \\
        & \textstyle\sum_d x_{bd} = 1, \qquad \sum_b m_b x_{bd} \le M \\
        & s_{hd} \ge x_{bd},\quad y_{hd} \ge s_{hd} - x_{bd} && b \in h,\ d \text{ an accelerator} \\
        & T \ge \textstyle\sum_b p_{bd} x_{bd} + \sum_h c_h y_{hd},

    where y is 1 if an accelerator has some but not all pins; with two pins :math:`y_{hd} \ge |x_{ad} - x_{bd}|`.

    *Packing*. Nothing better is lost if loads are at most ``limit_s``, that of a known partition. Blocks that take
    longer are then not on a device, a device has at most m blocks of more than limit / (m + 1) each, and
    :math:`\sum_b \lfloor (q + 1) p_b / \text{limit} \rfloor x_{bd} \le q` for small q (:func:`packing_rows`).

    *Symmetry*. Accelerators are interchangeable. For the m-th of the k heaviest blocks, those without equals first, all
    accelerators after the m-th are left out.

    *Contiguous*: devices are in an order, and for blocks a before b and every place d
    :math:`\sum_{e \le d} x_{ae} \ge \sum_{e \le d} x_{be}`, which leaves no symmetry. There are k + l places, of which
    l (:math:`t_d = 1`) have a processor and the others an accelerator; x has an index more.

    Passes counted apart have a T each, whose sum is minimised. What takes more than 1e8 units, and four times a simple
    partition, counts as if it took just that.

    *What a host must not couple to.* With ``merged``, which of the nodes without weight is where. With ``ordered``,
    which of the accelerators has what, if they are not interchangeable to the host. With ``limit_s``, partitions of a
    larger load. In a contiguous instance x is by places in the pipeline in any case.

    Parameters
    ----------
    limit_s : float, optional
        Load of a known partition.
    ordered : bool
        Whether accelerators are in the order of *Symmetry*.
    merged : bool
        Whether blocks without weight are one with a neighbour.

    Ports
    -----
    ``on[b, d]``
        x; accelerators (contiguous: places) come first, then as many processors (places).
    ``largest_load[pass]``
        T in units of :func:`~ddlopt.models.deployment.partition.blocks.load_unit_s`.
    ``objective``
        Their sum, to be minimised.

    References
    ----------
    J. Tarnawski et al., "Efficient algorithms for device placement of DNN graph operators", NeurIPS 2020, for the
    problem and for a program by nodes (:class:`~.tarnawski_max_load.Tarnawski2020MaxLoad`). Dual feasible functions:
    S. Fekete, J. Schepers, Mathematical Programming 91, 2001.
    """

    limit_s: float | None = None
    ordered: bool = True
    merged: bool = True

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    # A search that stops at a gap may leave T and y above what x needs.
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Latency."""
        return refusal(instance, "throughput")

    def build(self, block: pyo.Block, instance: PartitionInstance) -> None:
        """Fill ``block``."""
        blocks, slots = self.blocks(instance), _slots(instance)
        block.BLOCKS, block.DEVICES = pyo.RangeSet(0, blocks.count - 1), pyo.RangeSet(0, slots.total - 1)
        block.on = pyo.Var(block.BLOCKS, block.DEVICES, domain=pyo.Binary, doc="1 if the block is on the device")
        on = [[block.on[v, d] for d in range(slots.total)] for v in range(blocks.count)]
        limit_s = math.inf if self.limit_s is None else self.limit_s * (1 + BOUND_MARGIN)
        _fix_what_is_too_long(on, blocks, slots, limit_s)

        @block.Constraint(block.BLOCKS, doc="every block is on one device")
        def blocks_are_placed(b: Any, v: int) -> Any:
            return 1, significant([(1.0, variable) for variable in on[v]]), 1

        if math.fsum(blocks.memory_bytes) > let_pass_at_least(instance.memory_bytes):
            parts = memory_parts(blocks.memory_bytes, instance)

            @block.Constraint(range(slots.accelerators), doc="memory suffices")
            def memory_suffices(b: Any, d: int) -> Any:
                terms = [(part, on[v][d]) for v, part in enumerate(parts)]
                return None, significant(terms), FULL_MEMORY

        _add_outputs(block, on, blocks, slots)
        _add_loads(block, on, blocks, slots, instance, limit_s)
        if math.isfinite(limit_s):
            _add_packing(block, on, blocks, slots, limit_s)
        if instance.contiguous:
            _add_order(block, on, blocks, slots, instance)
        elif self.ordered:
            self._break_symmetry(on, instance)

    def blocks(self, instance: PartitionInstance) -> Blocks:
        """What has a row in ``on``: the nodes of each, and its figures."""
        return contracted(instance) if self.merged else blocks_of(instance)

    def _break_symmetry(self, on: list[list[Any]], instance: PartitionInstance) -> None:
        for place, v in enumerate(self._leading(instance)[: instance.accelerators]):
            for d in range(place + 1, instance.accelerators):
                on[v][d].fix(0)

    def _leading(self, instance: PartitionInstance) -> list[int]:
        """Blocks by their time on an accelerator, of which those without equals come before those that have many."""
        times_s = _accelerator_s(self.blocks(instance))
        _, group, counts = np.unique(times_s.round(12), return_inverse=True, return_counts=True)
        order: list[int] = np.argsort(-times_s / counts[group], kind="stable").tolist()
        return order

    def start(self, block: pyo.Block, instance: PartitionInstance, solution: Partition) -> None:
        """Set ``on``, with devices in the order that the model has them in."""
        blocks, slots = self.blocks(instance), _slots(instance)
        devices = blocks.devices_of_blocks(solution.devices)
        if (blocks.devices_of_nodes(devices)) != solution.devices:
            return
        slot_of = (
            _places(instance, blocks, devices, slots) if instance.contiguous else self._arranged(instance, devices)
        )
        for (v, d), variable in block.on.items():
            if not variable.fixed:
                variable.set_value(int(slot_of[devices[v]] == d))

    def _arranged(self, instance: PartitionInstance, devices: npt.NDArray[np.int64]) -> dict[int, int]:
        """Accelerators in the order in which the leading blocks meet them."""
        if not self.ordered:
            return {device: device for device in range(instance.devices)}
        met = devices[self._leading(instance)].tolist()
        order = list(dict.fromkeys([d for d in met if d < instance.accelerators] + [*range(instance.accelerators)]))
        return {device: place for place, device in enumerate([*order, *range(instance.accelerators, instance.devices)])}

    def read(self, block: pyo.Block, instance: PartitionInstance) -> Partition:
        """The device of each node.

        Raises
        ------
        SolverError
            If a block is on a device in part.
        """
        blocks, slots = self.blocks(instance), _slots(instance)
        devices = rounded_devices(block.on, blocks.count, instance)
        if instance.contiguous:
            used = sorted(set(devices))
            accelerators = [d for d in used if d < slots.accelerators]
            processors = [d for d in used if d >= slots.accelerators]
            number = {d: place for place, d in enumerate(accelerators)}
            number |= {d: instance.accelerators + place for place, d in enumerate(processors)}
            devices = tuple(number[d] for d in devices)
        return Partition(instance=instance.name, devices=blocks.devices_of_nodes(devices))

    def objective_value(self, instance: PartitionInstance, value: float) -> float:
        """Seconds."""
        return value * load_unit_s(instance)


def _slots(instance: PartitionInstance) -> _Slots:
    if not instance.contiguous:
        return _Slots(instance.accelerators, instance.processors)
    places = instance.accelerators + instance.processors
    return _Slots(places if instance.accelerators else 0, places if instance.processors else 0)


def _accelerator_s(blocks: Blocks) -> npt.NDArray[np.float64]:
    """Time of each block on an accelerator; 0 where it cannot run there."""
    times_s: npt.NDArray[np.float64] = blocks.accelerator_s.sum(axis=0)
    return np.where(np.isfinite(times_s), times_s, 0.0)


def _fix_what_is_too_long(on: list[list[Any]], blocks: Blocks, slots: _Slots, limit_s: float) -> None:
    for times, first, end in (
        (blocks.accelerator_s, 0, slots.accelerators),
        (blocks.processor_s, slots.accelerators, slots.total),
    ):
        total = times.sum(axis=0)
        for v in np.flatnonzero(~np.isfinite(total) | (total > limit_s)).tolist():
            for d in range(first, end):
                on[v][d].fix(0)


def _add_outputs(block: pyo.Block, on: list[list[Any]], blocks: Blocks, slots: _Slots) -> None:
    """``moved``: whether an accelerator has some pins of an output, but not all."""
    outputs = [(h, d) for h in range(len(blocks.pins)) for d in range(slots.accelerators)]
    block.OUTPUTS = pyo.Set(dimen=2, initialize=outputs)
    block.WIDE = pyo.Set(dimen=2, initialize=[(h, d) for h, d in outputs if len(blocks.pins[h]) > 2])
    block.moved = pyo.Var(block.OUTPUTS, bounds=(0, 1), doc="1 if the accelerator fetches or sends the output")
    block.some = pyo.Var(block.WIDE, bounds=(0, 1), doc="1 if the accelerator has a pin of the output")
    rows: list[list[tuple[float, Any]]] = []
    for h, d in outputs:
        moved = block.moved[h, d]
        if len(blocks.pins[h]) == 2:
            one, other = (on[v][d] for v in blocks.pins[h])
            rows += [[(1.0, moved), (sign, one), (-sign, other)] for sign in (1.0, -1.0)]
            continue
        some = block.some[h, d]
        for v in blocks.pins[h]:
            rows += [[(1.0, some), (-1.0, on[v][d])], [(1.0, moved), (-1.0, some), (1.0, on[v][d])]]

    @block.Constraint(range(len(rows)), doc="outputs with pins on an accelerator and elsewhere move")
    def outputs_move(b: Any, row: int) -> Any:
        return 0, significant(rows[row]), None


def _add_loads(
    block: pyo.Block, on: list[list[Any]], blocks: Blocks, slots: _Slots, instance: PartitionInstance, limit_s: float
) -> None:
    passes = len(blocks.accelerator_s)
    most = limit_s / load_unit_s(instance) if math.isfinite(limit_s) else None
    block.largest_load = pyo.Var(range(passes), bounds=(0, most), doc="largest load, of each pass")
    transfers = seconds_in_units(blocks.transfer_s, instance)

    @block.Constraint(range(passes), block.DEVICES, doc="no load exceeds the largest")
    def loads_are_bounded(b: Any, number: int, d: int) -> Any:
        accelerator = d < slots.accelerators
        own_s = (blocks.accelerator_s if accelerator else blocks.processor_s)[number]
        may, own = np.isfinite(own_s), seconds_in_units(own_s, instance)
        terms = [(1.0, b.largest_load[number]), *((-own[v], on[v][d]) for v in np.flatnonzero(may).tolist())]
        if accelerator:
            own_outputs = np.flatnonzero(blocks.of_pass == number).tolist()
            terms += [(-transfers[h], b.moved[h, d]) for h in own_outputs]
        return 0, significant(terms), None

    loads = list(block.largest_load.values())
    if most is not None and passes > 1:
        block.limit_is_kept = pyo.Constraint(
            expr=(None, significant([(1.0, load) for load in loads]), most), doc="the load is at most the limit"
        )
    block.objective = pyo.Expression(expr=significant([(1.0, load) for load in loads]))


def _add_packing(block: pyo.Block, on: list[list[Any]], blocks: Blocks, slots: _Slots, limit_s: float) -> None:
    rows = []
    for times, first, end in (
        (blocks.accelerator_s, 0, slots.accelerators),
        (blocks.processor_s, slots.accelerators, slots.total),
    ):
        total = times.sum(axis=0)
        sizes = np.where(np.isfinite(total) & (total <= limit_s), total, 0.0) / limit_s
        rows += [(row, most, d) for row, most in packing_rows(sizes) for d in range(first, end)]

    @block.Constraint(range(len(rows)), doc="heavy blocks fit within the limit")
    def heavy_blocks_fit(b: Any, number: int) -> Any:
        row, most, d = rows[number]
        return None, significant([(value, on[v][d]) for v, value in enumerate(row.tolist()) if value]), most


def packing_rows(sizes: npt.NDArray[np.float64]) -> list[tuple[npt.NDArray[np.float64], float]]:
    r"""Rows of coefficients and right sides that hold for all blocks which fit together into 1.

    Of blocks larger than 1 / (m + 1) there are at most m; and with the dual feasible functions
    :math:`u_q(x) = \lfloor (q + 1) x \rfloor / q`, which take no more than 1 together wherever sizes do (at whole
    numbers (q + 1) x, where u would be x, sizes are rounded down). Sizes may be off by rounding.
    """
    found: dict[tuple[float, ...], tuple[npt.NDArray[np.float64], float]] = {}
    for size in np.unique(sizes[sizes > 1 / (_MOST + 1)]).tolist():
        count = int((1 + FEASIBILITY_TOL) / size)
        row = np.where(sizes >= size * (1 - FEASIBILITY_TOL), 1.0, 0.0)
        found.setdefault(tuple((row / count).tolist()), (row, float(count)))
    for q in range(1, _MOST + 1):
        row = np.floor((q + 1) * sizes * (1 - FEASIBILITY_TOL))
        if row.any():
            found.setdefault(tuple((row / q).round(9).tolist()), (row, float(q)))
    return list(found.values())


def _add_order(
    block: pyo.Block, on: list[list[Any]], blocks: Blocks, slots: _Slots, instance: PartitionInstance
) -> None:
    """Earlier blocks are not at later places; each place has an accelerator or a processor."""
    places = instance.accelerators + instance.processors
    kinds = (slots.total + places - 1) // places

    def until(v: int, place: int, sign: float) -> list[tuple[float, Any]]:
        return [(sign, on[v][kind * places + e]) for kind in range(kinds) for e in range(place + 1)]

    rows = [(a, b, place) for a, b in blocks.order for place in range(places - 1)]

    @block.Constraint(range(len(rows)), doc="what comes before is on the same or an earlier device")
    def order_is_kept(b: Any, row: int) -> Any:
        before, after, place = rows[row]
        return 0, significant([*until(before, place, 1.0), *until(after, place, -1.0)]), None

    if kinds == 1:
        return
    block.processor = pyo.Var(range(places), domain=pyo.Binary, doc="1 if a processor is at the place")
    block.processors_are_placed = pyo.Constraint(
        expr=(instance.processors, significant([(1.0, t) for t in block.processor.values()]), instance.processors),
        doc="every processor has a place",
    )

    @block.Constraint(range(blocks.count), range(places), doc="accelerators are where no processor is")
    def accelerators_are_there(b: Any, v: int, place: int) -> Any:
        return None, significant([(1.0, on[v][place]), (1.0, b.processor[place])]), 1

    @block.Constraint(range(blocks.count), range(places), doc="processors are where they are")
    def processors_are_there(b: Any, v: int, place: int) -> Any:
        return None, significant([(1.0, on[v][places + place]), (-1.0, b.processor[place])]), 0


def _places(
    instance: PartitionInstance, blocks: Blocks, devices: npt.NDArray[np.int64], slots: _Slots
) -> dict[int, int]:
    """The place of each device, in an order that suits."""
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(instance.devices))
    graph.add_edges_from((int(devices[a]), int(devices[b])) for a, b in blocks.order if devices[a] != devices[b])
    order: Sequence[int] = list(nx.topological_sort(graph)) if nx.is_directed_acyclic_graph(graph) else []
    places = instance.accelerators + instance.processors
    both = bool(instance.accelerators and instance.processors)
    return {
        device: place + (places if both and device >= instance.accelerators else 0)
        for place, device in enumerate(order)
    }
