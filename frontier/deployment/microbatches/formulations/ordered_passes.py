"""An order of micro-batches by which pass of a device is before which other one, and when passes begin."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import pyomo.environ as pyo

from ddlopt.models.contracts import Instance
from ddlopt.models.covering import FormulationBase
from ddlopt.models.deployment.microbatches.bounds import require_room, ticks_bound
from ddlopt.models.deployment.microbatches.instance import MicroBatchInstance
from ddlopt.models.deployment.microbatches.simple_order import simple_words, starts_of
from ddlopt.models.deployment.microbatches.solution import MicroBatchOrder
from ddlopt.models.deployment.microbatches.ticks import F, Kind, Ticks, Words, exact_ticks, order_of, words_of
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.linear import linear
from ddlopt.models.tolerances import INTEGRALITY_TOL
from ddlopt.models.units import between, unit_of

MOST_PAIRS = 30_000
"""Of passes whose order is open; more take minutes to hand over, and the relaxation tells next to nothing of them."""
_LEAST_PART = 1e-4
"""Of the horizon that every pass takes at least: a hundred times what a binary variable hides that is off by 1e-6."""
_UNITS = 256.0
"""In which the objective is counted, at least; rows are held to 1e-6 of one."""
Node = tuple[int, int, int]
"""A pass: chunk, F, B or W, and micro-batch."""
Terms = list[tuple[float, Any]]


@dataclass(frozen=True)
class OrderedPasses(FormulationBase):
    r"""Which pass of a device is before which other one, with big-M rows between their starts.

    A kind k is F, B or W of a chunk, with time :math:`p_k`; micro-batches :math:`0 \le j < n` have the passes of every
    kind in their order, by which nothing is lost (see :mod:`~ddlopt.models.deployment.microbatches.ticks`). With
    :math:`s_{kj}` when the pass begins, :math:`y_{ki,lj} = 1` if (k, i) is before (l, j) on their device and
    :math:`y_{lj,ki} = 1 - y_{ki,lj}`,

    .. math::
        \min\ & T \\
        & s_{kj} \ge s_{lj} + p_l + \ell_{lk} && \text{where k waits for l, after the transfer } \ell \\
        & s_{k,j+1} \ge s_{kj} + p_k \\
        & s_{lj} \ge s_{ki} + p_k - M_{ki,lj} (1 - y_{ki,lj}), \quad
          s_{ki} \ge s_{lj} + p_l - M_{lj,ki}\, y_{ki,lj} \\
        & y_{ki,lj} \le y_{ki,l,j+1}, \qquad y_{k,i+1,lj} \le y_{ki,lj} \\
        & \textstyle m^+_k (j + 1) + \sum_{l \ne k,\, i} m^+_l y_{li,kj} - \sum_{l,\, i} m^-_l y_{li,kj} \le M_d
          && \text{memory, when F begins: F take, B and W give back} \\
        & y_{ki,lj} \in \{0, 1\} .

    *M.* Let U be the makespan or the span of a simple order, 1F1B with as few micro-batches in flight as fit, or one
    after another. In some best schedule everything ends by H: H = U for makespans. For spans the device of a chain's
    first chunk works for U at most, and between its first F and its first B each device of the chain works at some
    moment; so times of devices that chains connect make one interval, of length U for each device. Of one chain
    nothing begins before its first F, so that H = 2 U is enough. With
    :math:`a_{kj}` what must pass before (k, j) can begin and :math:`b_{kj} = H - q_{kj}`, where :math:`q_{kj}` must
    follow its beginning, :math:`M_{ki,lj} = \max(0, b_{ki} + p_k - a_{lj})`. Where :math:`a_{lj} + p_l > b_{ki}`, and
    where l waits for k and :math:`i \le j`, (k, i) is the first of the two, and y is a constant.

    *Objective.* For makespans :math:`T \ge s_{k,n-1} + p_k + q_k`, with :math:`q_k` what must follow; for spans
    :math:`T \ge s_{k,n-1} + p_k - s_{l0}` for all kinds k and l of a device that may be its last and its first. T is
    at least the combinatorial bound, which a relaxation with these rows hardly ever is above.

    Parameters
    ----------
    bounded : bool
        Whether T is at least the combinatorial bound, for those who want to see the relaxation itself.

    Ports
    -----
    ``begins[c, k, j]``
        s, of chunk c, where k is 0 for F, 1 for B, 2 for W, and micro-batch j; in units, a power of two seconds of
        which the objective has 256 to 512 by an estimate.
    ``is_before[c, k, i, d, l, j]``
        y, of pairs whose order is open.
    ``length``
        T, in units.
    ``objective``
        The same, to be minimised.

    References
    ----------
    A. S. Manne, "On the job-shop scheduling problem", Operations Research 8(2), 1960, for the disjunctive rows; P. Qi
    et al., "Zero bubble (almost) pipeline parallelism", ICLR 2024, appendix G, for a program of this kind, which tells
    micro-batches apart. Orders of micro-batches that are given, memory in y alone and M are ours.
    """

    bounded: bool = True

    covers: ClassVar[type[Instance]] = MicroBatchInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Many passes; passes that take no time, or next to none."""
        ticks = exact_ticks(instance)
        if instance.micro_batches**2 * sum(len(own) ** 2 for own in ticks.on) > 4 * MOST_PAIRS:
            return f"more than {MOST_PAIRS} pairs of passes share a device; use exact"
        try:
            require_room(instance)
        except InfeasibleError:  # which is an answer, and no reason not to ask
            return None
        least = min(ticks.time.values())
        if least <= _LEAST_PART * _horizon(ticks):
            return (
                f"a pass takes {float(ticks.unit_s) * least:g} s, less than {_LEAST_PART:g} of the whole: rows with a "
                "big-M do not tell what is before it; use exact"
            )
        return None

    def build(self, block: pyo.Block, instance: MicroBatchInstance) -> None:
        """Fill ``block``.

        Raises
        ------
        InfeasibleError
            If a device cannot hold one micro-batch.
        """
        require_room(instance)
        _Model(block, exact_ticks(instance), self.bounded).build()

    def start(self, block: pyo.Block, instance: MicroBatchInstance, solution: MicroBatchOrder) -> None:
        """Set ``begins`` and ``is_before`` to a timing of the order, as early as it can be."""
        ticks = exact_ticks(instance)
        words, scale = words_of(ticks, solution), _scale(ticks)
        places: dict[Node, int] = {}
        for word, starts in zip(words, starts_of(ticks, words), strict=True):
            count: dict[Kind, int] = {}
            for place, (kind, start) in enumerate(zip(word, starts, strict=True)):
                j = count[kind] = count.get(kind, -1) + 1
                places[*kind, j] = place
                block.begins[*kind, j].set_value(start * scale)
        for index, variable in block.is_before.items():
            variable.set_value(int(places[index[:3]] < places[index[3:]]))

    def read(self, block: pyo.Block, instance: MicroBatchInstance) -> MicroBatchOrder:
        """The order that ``is_before`` says.

        Raises
        ------
        SolverError
            If a pass is before another one in part, or passes are before each other in a circle.
        """
        ticks = exact_ticks(instance)
        pairs = _Pairs(ticks)
        ahead = {node: 0 for own in ticks.on for node in _nodes(ticks, own)}
        for _, other in pairs.known():
            ahead[other] += 1
        for index, variable in block.is_before.items():
            found = pyo.value(variable)
            if abs(found - round(found)) > INTEGRALITY_TOL:
                raise SolverError(f"is_before[{', '.join(map(str, index))}] is {found:.6g}, not 0 or 1")
            ahead[index[3:] if round(found) else index[:3]] += 1
        words: list[tuple[Kind, ...]] = []
        for own in ticks.on:
            nodes = sorted(_nodes(ticks, own), key=lambda node: (ahead[node], node))
            if [ahead[node] for node in nodes] != list(range(len(nodes))):
                raise SolverError("passes of a device are before each other in a circle")
            words.append(tuple(node[:2] for node in nodes))
        return order_of(ticks, words)

    def objective_value(self, instance: MicroBatchInstance, value: float) -> float:
        """Seconds."""
        ticks = exact_ticks(instance)
        return value * float(_unit_s(ticks)) + float(ticks.beyond_s)


def _nodes(ticks: Ticks, own: tuple[Kind, ...]) -> Iterator[Node]:
    for kind in own:
        for j in range(ticks.instance.micro_batches):
            yield (*kind, j)


def _simple(ticks: Ticks) -> tuple[Words, int]:
    """A simple order, and its makespan or span in ticks."""
    words = simple_words(ticks)
    most = 0
    for word, starts in zip(words, starts_of(ticks, words), strict=True):
        first = starts[0] if ticks.instance.objective == "span" else 0
        most = max(most, starts[-1] + ticks.time[word[-1]] - first)
    return words, most


def _horizon(ticks: Ticks) -> int:
    """H, in ticks."""
    most = _simple(ticks)[1]
    if ticks.instance.objective != "span":
        return most
    devices = ticks.instance.devices
    return most * (min(devices, 2) if len(ticks.instance.chains) == 1 else devices)


def _unit_s(ticks: Ticks) -> float:
    """A power of two; of work and of a simple order, which no better bound moves."""
    low, high = max(ticks.work), _simple(ticks)[1]
    return unit_of(between(float(ticks.unit_s * low), float(ticks.unit_s * high)), parts=_UNITS)


def _scale(ticks: Ticks) -> float:
    """Units in a tick."""
    return float(ticks.unit_s) / _unit_s(ticks)


class _Pairs:
    """Pairs of passes of a device: those whose order is known from data, and those that are open."""

    def __init__(self, ticks: Ticks) -> None:
        self.ticks, self.n = ticks, ticks.instance.micro_batches
        self.horizon = _horizon(ticks)
        self.ahead = {kind: self._waited(kind) for kind in ticks.kinds}

    def _waited(self, kind: Kind) -> set[Kind]:
        """All kinds that a pass of the same micro-batch comes after, on any device."""
        found: set[Kind] = set()
        left = [kind]
        while left:
            for one, _ in self.ticks.waits[left.pop()]:
                if one not in found:
                    found.add(one)
                    left.append(one)
        return found

    def earliest(self, node: Node) -> int:
        """a, in ticks."""
        return self.ticks.head[node[:2]] + node[2] * self.ticks.time[node[:2]]

    def latest(self, node: Node) -> int:
        """b, in ticks."""
        kind, j = node[:2], node[2]
        return self.horizon - self.ticks.tail[kind] - (self.n - j) * self.ticks.time[kind]

    def waits(self, one: Node, other: Node) -> bool:
        """Whether the other is after the one in every schedule, by rows of passes that wait."""
        return one[2] < other[2] if one[:2] == other[:2] else one[:2] in self.ahead[other[:2]] and one[2] <= other[2]

    def first(self, one: Node, other: Node) -> bool:
        """Whether the one is before the other in every schedule that is looked for."""
        return self.waits(one, other) or self.earliest(other) + self.ticks.time[other[:2]] > self.latest(one)

    def all(self) -> Iterator[tuple[Node, Node]]:
        """Each of a device once, the kind that comes earlier in the instance first."""
        for own in self.ticks.on:
            nodes = list(_nodes(self.ticks, own))
            for place, one in enumerate(nodes):
                for other in nodes[place + 1 :]:
                    yield one, other

    def known(self) -> Iterator[tuple[Node, Node]]:
        """Those whose order is known, the first one first."""
        for one, other in self.all():
            if self.first(one, other):
                yield one, other
            elif self.first(other, one):
                yield other, one

    def open(self) -> Iterator[tuple[Node, Node]]:
        """The others."""
        for one, other in self.all():
            if not (self.first(one, other) or self.first(other, one)):
                yield one, other


class _Model:
    """The rows of :class:`OrderedPasses`."""

    def __init__(self, block: pyo.Block, ticks: Ticks, bounded: bool) -> None:
        self.block, self.ticks, self.n = block, ticks, ticks.instance.micro_batches
        self.scale, self.pairs = _scale(ticks), _Pairs(ticks)
        self.span = ticks.instance.objective == "span"
        self.low = ticks_bound(ticks) if bounded else 0
        self.known = set(self.pairs.known())

    def build(self) -> None:
        block, ticks, scale = self.block, self.ticks, self.scale
        passes = list(_nodes(ticks, ticks.kinds))
        block.PASSES = pyo.Set(initialize=passes, dimen=3, doc="chunk, F (0), B (1) or W (2), micro-batch")
        pairs = [(*one, *other) for one, other in self.pairs.open()]
        block.PAIRS = pyo.Set(initialize=pairs, dimen=6, doc="of passes of a device whose order is open")
        windows = {
            node: (self.pairs.earliest(node) * scale, max(self.pairs.earliest(node), self.pairs.latest(node)) * scale)
            for node in passes
        }
        block.begins = pyo.Var(block.PASSES, bounds=windows, doc="when a pass begins")
        block.is_before = pyo.Var(block.PAIRS, domain=pyo.Binary, doc="y: the one is before the other")
        block.length = pyo.Var(bounds=(self.low * scale, None), doc="makespan or span")
        for name, rows, doc in (
            ("passes_wait", self._waits(), "of a micro-batch, and of the one before it"),
            ("one_at_a_time", self._apart(), "a device runs one pass at a time"),
            ("order_is_kept", self._kept(), "what is before a pass is before those of later micro-batches"),
            ("memory_suffices", self._memory(), "no more is held than there is"),
            ("length_is_bounded", self._length(), "the length is at least what each device or pass needs"),
        ):
            added = pyo.ConstraintList(doc=doc)
            setattr(block, name, added)
            for terms, high in rows:
                if terms:
                    added.add((None, linear(terms), high))
        block.objective = pyo.Expression(expr=linear([(1.0, block.length)]))

    def _behind(self, one: Node, other: Node, lag: int = 0) -> tuple[Terms, float]:
        """The other begins after the end of the one."""
        begins = self.block.begins
        return [(1.0, begins[one]), (-1.0, begins[other])], -(self.ticks.time[one[:2]] + lag) * self.scale

    def _waits(self) -> Iterator[tuple[Terms, float]]:
        for kind in self.ticks.kinds:
            for j in range(self.n):
                for one, lag in self.ticks.waits[kind]:
                    yield self._behind((*one, j), (*kind, j), lag)
                if j + 1 < self.n:
                    yield self._behind((*kind, j), (*kind, j + 1))

    def _apart(self) -> Iterator[tuple[Terms, float]]:
        for one, other in self.pairs.known():
            if not self.pairs.waits(one, other):
                yield self._behind(one, other)
        for index, variable in self.block.is_before.items():
            one, other = index[:3], index[3:]
            big = self._big(one, other)
            terms, high = self._behind(one, other)
            yield [*terms, (big, variable)], high + big
            big = self._big(other, one)
            terms, high = self._behind(other, one)
            yield [*terms, (-big, variable)], high

    def _big(self, one: Node, other: Node) -> float:
        last = self.pairs.latest(one) + self.ticks.time[one[:2]]
        return max(0, last - self.pairs.earliest(other)) * self.scale

    def _kept(self) -> Iterator[tuple[Terms, float]]:
        is_before = self.block.is_before
        for index, variable in is_before.items():
            *one, i = index[:3]
            *other, j = index[3:]
            later, next_one = (*one, i, *other, j + 1), (*one, i + 1, *other, j)
            if later in is_before:
                yield [(1.0, variable), (-1.0, is_before[later])], 0.0
            if next_one in is_before:
                yield [(1.0, is_before[next_one]), (-1.0, variable)], 0.0

    def _is_before(self, one: Node, other: Node) -> tuple[Terms, float]:
        """Value of y for two passes of a device, as terms and a constant."""
        if (one, other) in self.known:
            return [], 1.0
        if (other, one) in self.known:
            return [], 0.0
        if (*one, *other) in self.block.is_before:
            return [(1.0, self.block.is_before[*one, *other])], 0.0
        return [(-1.0, self.block.is_before[*other, *one])], 1.0

    def _memory(self) -> Iterator[tuple[Terms, float]]:
        ticks = self.ticks
        for device, own in enumerate(ticks.on):
            room = ticks.loose_room[device]
            forwards = [kind for kind in own if kind[1] == F]
            if not room or self.n * sum(ticks.cells[kind] for kind in forwards) <= room:
                continue
            for new in _nodes(ticks, tuple(forwards)):
                terms: Terms = []
                held = ticks.cells[new[:2]] / room
                for one in _nodes(ticks, own):
                    size = ticks.cells[one[:2]] / room * (1 if one[1] == F else -1)
                    if size and one != new:
                        found, constant = self._is_before(one, new)
                        terms += [(size * factor, variable) for factor, variable in found]
                        held += size * constant
                yield terms, 1.0 - held

    def _length(self) -> Iterator[tuple[Terms, float]]:
        block, ticks, last = self.block, self.ticks, self.n - 1
        for own in ticks.on:
            for kind in own:
                behind = ticks.time[kind] * self.scale
                terms = [(1.0, block.begins[*kind, last]), (-1.0, block.length)]
                if not self.span:
                    yield terms, -behind - ticks.tail[kind] * self.scale
                    continue
                for first in own:
                    if first[1] == F:
                        yield [*terms, (-1.0, block.begins[*first, 0])], -behind
