"""An order of micro-batches by the moments at which passes begin; micro-batches are counted, not told apart."""

from collections import Counter
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
from ddlopt.models.deployment.microbatches.ticks import (
    F,
    Kind,
    Ticks,
    exact_ticks,
    near_ticks,
    order_of,
    words_of,
)
from ddlopt.models.errors import InfeasibleError, SolverError
from ddlopt.models.linear import linear
from ddlopt.models.tolerances import INTEGRALITY_TOL, ROUNDING

MOST_COLUMNS = 40_000
"""More take longer to hand over than anybody waits for the answer."""
_MOST_COEFFICIENTS = 10_000_000
"""Of a model that takes a few gigabytes: rows count all passes that have begun, and their lengths add up."""
Terms = list[tuple[float, Any]]


@dataclass(frozen=True)
class CountedStarts(FormulationBase):
    r"""When passes of each kind begin, tick by tick, without saying of which micro-batch.

    A kind k is F, B or W of a chunk, with time :math:`p_k`. Nothing is lost if micro-batches have the passes of every
    kind in one order (see :mod:`~ddlopt.models.deployment.microbatches.ticks`), so that counts say all. With
    :math:`x_{kt} = 1` if a pass of kind k begins at t, :math:`X_k(t) = \sum_{s \le t} x_{ks}` and :math:`K_d` the kinds
    of device d,

    .. math::
        \min\ & T \\
        & X_k(\infty) = n && \text{for every kind} \\
        & X_k(t) \le X_j(t - p_j - \ell_{jk}) && \text{where k waits for j, after the transfer } \ell \\
        & \textstyle\sum_{k \in K_d} (X_k(t) - X_k(t - p_k)) \le b_d(t) && \text{one pass at a time} \\
        & \textstyle\sum_{k \in K_d} (m^+_k X_k(t) - m^-_k X_k(t - p_k)) \le M_d
          && \text{memory: F takes, B and W give back} \\
        & x_{kt} \in \{0, 1\} .

    For a makespan :math:`b = 1` and :math:`T \ge L + \sum_t e_t` with L the combinatorial bound, :math:`x_{kt} \le e_s`
    for every tick s from L on before that pass and what must follow it have ended. For spans
    :math:`b_d(t) = u_d(t) + v_d(t) - 1`, where u turns from 0 to 1 when the device begins and v from 1 to 0 when it
    ends, and :math:`T \ge \sum_t (u_d(t) + v_d(t) - 1)` for every device. Variables are there only where
    a pass can begin in an order that takes no longer than a simple one does. Of passes without any time x counts up to
    n; they begin where no other one is under way, within u and v, and :math:`x_{kt} \le n e_s`. Programs that tell
    micro-batches apart have n times as many variables and n!
    solutions for each one of these; their relaxation is no stronger.

    Ports
    -----
    ``begins[c, k, t]``
        x, for chunk c; k is 0 for F, 1 for B, 2 for W; in ticks, the largest unit of which all times are multiples.
    ``length``
        T, in ticks.
    ``objective``
        The same, to be minimised.

    References
    ----------
    Ours. A program that tells micro-batches apart is in P. Qi et al., "Zero bubble (almost) pipeline parallelism",
    ICLR 2024, appendix G.
    """

    covers: ClassVar[type[Instance]] = MicroBatchInstance
    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"

    def refuses(self, instance: Any) -> str | None:
        """Too many ticks; fractions of a tick in spans; memory that changes hands in no time."""
        ticks = ticks_for(instance)
        if instance.objective == "span" and not instance.in_line:
            return "spans with transfers, or with devices not in line, may be fractions of a tick; use exact"
        try:
            horizon = ticks_bound(ticks)
        except InfeasibleError:  # which is an answer, and no reason not to ask
            return None
        if len(ticks.kinds) * horizon > MOST_COLUMNS:
            return f"it would have more than {MOST_COLUMNS} columns; use exact"
        if _coefficients(ticks, horizon) > _MOST_COEFFICIENTS:
            return f"its rows would have more than {_MOST_COEFFICIENTS} coefficients; use exact"
        for device, own in enumerate(ticks.on):
            if _is_tight(ticks, device):
                instant = {each[1] == F for each in own if not ticks.time[each] and ticks.cells[each]}
                if len(instant) == 2:
                    return (
                        f"device {device} takes memory in no time, and gives it back in no time: whether it suffices "
                        "is up to the order within a tick; use exact"
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
        _Model(block, ticks_for(instance)).build()

    def start(self, block: pyo.Block, instance: MicroBatchInstance, solution: MicroBatchOrder) -> None:
        """Set ``begins`` to a timing of the order, as early as it can be; the rest follows."""
        ticks = ticks_for(instance)
        words = words_of(ticks, solution)
        begun = Counter(
            (*kind, t) for word, starts in zip(words, starts_of(ticks, words), strict=True)
            for kind, t in zip(word, starts, strict=True)
        )  # fmt: skip
        for index, variable in block.begins.items():
            variable.set_value(begun[index])

    def read(self, block: pyo.Block, instance: MicroBatchInstance) -> MicroBatchOrder:
        """The order in which the passes begin.

        Raises
        ------
        SolverError
            If one begins in part.
        """
        ticks = ticks_for(instance)
        begun: list[tuple[int, bool, int, Kind]] = []
        for (c, k, t), variable in block.begins.items():
            found = pyo.value(variable)
            if abs(found - round(found)) > INTEGRALITY_TOL:
                raise SolverError(f"begins[{c}, {k}, {t}] is {found:.6g}, not a whole number")
            begun += [(t, ticks.time[c, k] > 0, ticks.depth[c, k], (c, k))] * round(found)
        words: list[list[Kind]] = [[] for _ in ticks.on]
        # Passes without any time come before the one that then takes some, in the order of a micro-batch's life.
        for *_, kind in sorted(begun):
            words[ticks.device[kind[0]]].append(kind)
        return order_of(ticks, words)

    def objective_value(self, instance: MicroBatchInstance, value: float) -> float:
        """Seconds."""
        ticks = ticks_for(instance)
        return (value * float(ticks.unit_s) + float(ticks.beyond_s)) * (1 if ticks.exact else 1 - ROUNDING)


def ticks_for(instance: MicroBatchInstance) -> Ticks:
    """Those in which all times are whole, or where these are too many those of times as decimals."""
    ticks = exact_ticks(instance)
    if len(ticks.kinds) * max(ticks.work) <= MOST_COLUMNS:
        return ticks
    near = near_ticks(instance)
    return near if max(near.work) < max(ticks.work) else ticks


def _coefficients(ticks: Ticks, horizon: int) -> int:
    """About how many coefficients rows of prefixes have: those of passes that wait, and those of memory."""
    waits = sum(2 * len(ticks.waits[kind]) for kind in ticks.kinds)
    held = sum(len(own) for device, own in enumerate(ticks.on) if _is_tight(ticks, device))
    return (waits + held) * horizon**2 // 2


def _is_tight(ticks: Ticks, device: int) -> bool:
    """Whether a device cannot hold all micro-batches at once."""
    return (
        ticks.instance.micro_batches * sum(ticks.cells[each] for each in ticks.on[device] if each[1] == F)
        > (ticks.loose_room[device])
    )


class _Model:
    """The rows of :class:`CountedStarts`."""

    def __init__(self, block: pyo.Block, ticks: Ticks) -> None:
        self.block, self.ticks = block, ticks
        self.n = ticks.instance.micro_batches
        self.span = ticks.instance.objective == "span"
        self.low = ticks_bound(ticks)
        words = simple_words(ticks)
        self.most = max(
            start + ticks.time[kind]
            for word, starts in zip(words, starts_of(ticks, words), strict=True)
            for kind, start in zip(word, starts, strict=True)
        )
        # The last tick at which a pass of each kind may begin.
        self.last = {kind: self.most - ticks.tail[kind] - ticks.time[kind] for kind in ticks.kinds}
        self.horizon = max(self.last[kind] + ticks.time[kind] for kind in ticks.kinds)

    def build(self) -> None:
        block, ticks, n = self.block, self.ticks, self.n
        starts = [(*kind, t) for kind in ticks.kinds for t in range(ticks.head[kind], self.last[kind] + 1)]
        if len(starts) > 2 * MOST_COLUMNS:
            raise SolverError(f"'{ticks.instance.name}': the model would have {len(starts)} columns")
        block.STARTS = pyo.Set(initialize=starts, dimen=3, doc="chunk, F (0), B (1) or W (2), tick")
        block.DEVICES = pyo.RangeSet(0, ticks.instance.devices - 1)
        whole = {index: (0, 1 if ticks.time[index[:2]] else n) for index in starts}
        block.begins = pyo.Var(
            block.STARTS, domain=pyo.Integers, bounds=whole, doc="how many passes of the kind begin then, at most one"
        )
        block.length = pyo.Var(bounds=(self.low, None), doc="makespan or span, in ticks")
        self.x: dict[Kind, dict[int, Any]] = {kind: {} for kind in ticks.kinds}
        for (c, k, t), variable in block.begins.items():
            self.x[c, k][t] = variable
        for kind in ticks.kinds:
            if len(self.x[kind]) < (n if ticks.time[kind] else 1):
                raise InfeasibleError(f"'{ticks.instance.name}': no order takes {self.most} ticks or fewer")
        rows: list[Any] = [(n, self.begun(kind, self.horizon), n) for kind in ticks.kinds]
        block.all_begin = pyo.ConstraintList(doc="every micro-batch has every pass")
        self._add(block.all_begin, rows)
        block.passes_wait = pyo.ConstraintList(doc="of a kind no more begin than there are passes that they wait for")
        self._add(block.passes_wait, self._waits())
        self._windows()
        block.one_at_a_time = pyo.ConstraintList(doc="a device runs one pass at a time")
        self._add(block.one_at_a_time, self._busy())
        self._add(block.one_at_a_time, self._instant())
        block.memory_suffices = pyo.ConstraintList(doc="no more is held than there is")
        self._add(block.memory_suffices, self._memory())
        block.objective = pyo.Expression(expr=linear([(1.0, block.length)]))

    def _add(self, rows: Any, found: Any) -> None:
        for low, terms, high in found:
            if terms:
                rows.add((low, linear(terms), high))
            elif (low or 0) > 0 or (high is not None and high < 0):
                raise InfeasibleError(f"'{self.ticks.instance.name}': no order takes {self.most} ticks or fewer")

    def begun(self, kind: Kind, t: int, factor: float = 1.0) -> Terms:
        """X: how many passes of a kind have begun by t."""
        return [(factor, variable) for s, variable in self.x[kind].items() if s <= t]

    def _waits(self) -> Iterator[tuple[None, Terms, float]]:
        ticks = self.ticks
        for kind in ticks.kinds:
            for one, lag in ticks.waits[kind]:
                behind = ticks.time[one] + lag
                for t in self.x[kind]:
                    yield None, [*self.begun(kind, t), *self.begun(one, t - behind, -1.0)], 0.0

    def _windows(self) -> None:
        """What says when devices begin and end, and what bounds the length."""
        block, ticks = self.block, self.ticks
        block.TICKS = pyo.RangeSet(0, self.horizon)
        if self.span:
            block.has_begun = pyo.Var(block.DEVICES, block.TICKS, domain=pyo.Binary, doc="u: the device has begun")
            later = [
                (None, [(1.0, block.has_begun[d, t]), (-1.0, block.has_begun[d, t + 1])], 0.0)
                for d in block.DEVICES for t in range(self.horizon)
            ]  # fmt: skip
            block.devices_begin_once = pyo.ConstraintList(doc="u never falls")
            self._add(block.devices_begin_once, later)
            first = ticks.device[ticks.instance.chains[0][0]]
            if len(ticks.instance.chains) == 1 and ticks.on[first]:
                block.has_begun[first, 0].fix(1)
        block.length_is_bounded = pyo.ConstraintList(doc="the length is at least what each device or pass needs")
        if self.span:
            self._until()
        else:
            self._late()

    def _until(self) -> None:
        block = self.block
        block.has_more = pyo.Var(block.DEVICES, block.TICKS, domain=pyo.Binary, doc="v: the device has not ended")
        fallen = [
            (None, [(1.0, block.has_more[d, t + 1]), (-1.0, block.has_more[d, t])], 0.0)
            for d in block.DEVICES for t in range(self.horizon)
        ]  # fmt: skip
        block.devices_end_once = pyo.ConstraintList(doc="v never rises")
        self._add(block.devices_end_once, fallen)
        for d in block.DEVICES:
            both = [(1.0, var[d, t]) for t in range(self.horizon) for var in (block.has_begun, block.has_more)]
            self._add(block.length_is_bounded, [(None, [*both, (-1.0, block.length)], float(self.horizon))])

    def _late(self) -> None:
        block, ticks = self.block, self.ticks
        block.LATE = pyo.RangeSet(self.low, self.most - 1)
        block.is_late = pyo.Var(block.LATE, domain=pyo.Binary, doc="e: it takes longer than that")
        for (c, k, t), variable in block.begins.items():
            end = t + ticks.time[c, k] + ticks.tail[c, k]
            if end > self.low:
                pair = [(1.0, variable), (-float(variable.ub), block.is_late[end - 1])]
                self._add(block.length_is_bounded, [(None, pair, 0.0)])
        for t in range(self.low, self.most - 1):
            pair = [(1.0, block.is_late[t + 1]), (-1.0, block.is_late[t])]
            self._add(block.length_is_bounded, [(None, pair, 0.0)])
        late = [(1.0, block.is_late[t]) for t in block.LATE]
        self._add(block.length_is_bounded, [(None, [*late, (-1.0, block.length)], -float(self.low))])

    def _busy(self) -> Iterator[tuple[None, Terms, float]]:
        block, ticks = self.block, self.ticks
        for device, own in enumerate(ticks.on):
            for t in range(self.horizon):
                running = [
                    (1.0, self.x[kind][s])
                    for kind in own
                    for s in range(t - ticks.time[kind] + 1, t + 1)
                    if s in self.x[kind]
                ]
                if not running:
                    continue
                if not self.span:
                    yield None, running, 1.0
                    continue
                window = [(-1.0, block.has_begun[device, t]), (-1.0, block.has_more[device, t])]
                yield None, [*running, *window], -1.0

    def _instant(self) -> Iterator[tuple[None, Terms, float]]:
        """Passes without any time are in no pass of their device, and within its span."""
        block, n = self.block, float(self.n)
        for device, own in enumerate(self.ticks.on):
            for each in own:
                for t, variable in self.x[each].items() if not self.ticks.time[each] else ():
                    terms = [(1.0, variable)]
                    for other in own:
                        under_way = range(t - self.ticks.time[other] + 1, t)
                        terms += [(n, self.x[other][s]) for s in under_way if s in self.x[other]]
                    if not self.span:
                        yield None, terms, n
                        continue
                    yield None, [*terms, (-n, block.has_begun[device, t])], 0.0
                    if t:
                        yield None, [(1.0, variable), (-n, block.has_more[device, t - 1])], 0.0

    def _memory(self) -> Iterator[tuple[None, Terms, float]]:
        ticks = self.ticks
        for device, own in enumerate(ticks.on):
            room = ticks.loose_room[device]
            if not (room and _is_tight(ticks, device)):
                continue
            for t in range(self.horizon):
                if not any(t in self.x[each] for each in own if each[1] == F):
                    continue
                terms: Terms = []
                for each in own:
                    size = ticks.cells[each] / room
                    if each[1] == F:
                        terms += self.begun(each, t, size)
                    elif size:
                        terms += self.begun(each, t - ticks.time[each], -size)
                yield None, terms, 1.0
