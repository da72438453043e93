"""The rows of the makespan bound."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyomo.environ as pyo

from ddlopt.models.deployment.plan.figures import PlanFigures
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS
from ddlopt.models.linear import significant
from ddlopt.models.tolerances import BOUND_MARGIN, let_pass
from ddlopt.models.units import MOST_UNITS

Terms = list[tuple[float, Any]]

_MEMORY = let_pass(1.0)
"""What is kept, as a part of a device's memory."""


class Rows:
    """Variables and rows of :class:`~.MakespanBound` in a block.

    Parameters
    ----------
    block : pyo.Block
    figures : PlanFigures
    unit_s : float
        In which times are measured.
    pairs : bool
        Whether what moves between groups counts.
    least_s : float
        A bound on the time of every plan; 0 if nothing is known.
    most_s : float
        The time of a known plan, if slower ones are not wanted.
    """

    def __init__(
        self,
        block: pyo.Block,
        figures: PlanFigures,
        unit_s: float,
        pairs: bool,
        least_s: float,
        most_s: float = math.inf,
    ) -> None:
        self.block, self.figures, self.unit, self.with_pairs = block, figures, unit_s, pairs
        # Of what takes longer than the known plan, even shared by all devices, it matters only that it does.
        alone_s = float(figures.whole_s.sum(axis=0).min())
        self.largest_units = min(max(MOST_UNITS, 4 * alone_s / unit_s), 2 * figures.instance.devices * most_s / unit_s)
        self.whole, self.part, self.least, self.reduced = map(
            self.units, (figures.whole_s, figures.part_s, figures.least_s, figures.reduce_s)
        )
        most = most_s / unit_s
        self.limits = least_s / unit_s * (1 - BOUND_MARGIN), most if math.isfinite(most) else None
        self.instance: DeploymentInstance = figures.instance
        self.operators = range(len(self.instance.operators))
        self.places = range(len(self.instance.device_groups))
        self.group = [operator.group for operator in self.instance.operators]
        self.links = [(i, j) for i in self.places for j in self.places if i != j]
        self.after, self.before = _descendants(self.instance)

    def units(self, seconds: Any) -> Any:
        """Numbers of units, with an upper bound."""
        return np.minimum(seconds / self.unit, self.largest_units)

    def build(self) -> None:
        """All of it."""
        self._decisions()
        self._figures_of_operators()
        self._pairs()
        self._paths()
        self._sums()
        self._memory()
        self.block.objective = pyo.Expression(expr=self.block.time)

    def _decisions(self) -> None:
        block, figures = self.block, self.figures
        block.GROUPS = pyo.Set(initialize=range(self.instance.groups))
        block.DECISIONS = pyo.Set(initialize=range(len(figures.decisions)))
        block.decided = pyo.Var(block.GROUPS, block.DECISIONS, domain=pyo.Binary, doc="x")
        block.time = pyo.Var(bounds=self.limits, doc="T in units")
        self.by_layout: dict[int, list[int]] = {}
        for a, decision in enumerate(figures.decisions):
            self.by_layout.setdefault(decision.layout, []).append(a)
        self.all_reduce = {d.layout: a for a, d in enumerate(figures.decisions) if d.mode == "all_reduce"}
        self.server = {d.layout: a for a, d in enumerate(figures.decisions) if d.mode == "parameter_server"}
        self.spread = {d.layout: a for a, d in enumerate(figures.decisions) if d.mode == "model_parallel"}
        block.one_decision = pyo.ConstraintList(doc="each group has one")
        for g in block.GROUPS:
            block.one_decision.add(significant((1.0, block.decided[g, a]) for a in block.DECISIONS) == 1)
        keys = [(o, lay) for o in self.operators for lay in figures.split]
        block.duplicated = pyo.Var(keys, domain=pyo.Binary, doc="z")
        block.only_all_reduce_duplicates = pyo.ConstraintList()
        for o, lay in keys:
            block.only_all_reduce_duplicates.add(
                block.duplicated[o, lay] - block.decided[self.group[o], self.all_reduce[lay]] <= 0
            )
        runs = [(o, lay, j) for o in self.operators for lay in self.spread for j in figures.layouts[lay].device_groups]
        block.runs = pyo.Var(runs, domain=pyo.Binary, doc="w")
        block.runs_somewhere = pyo.ConstraintList()
        for o in self.operators:
            for lay, a in self.spread.items():
                parts = [(1.0, block.runs[o, lay, j]) for j in figures.layouts[lay].device_groups]
                block.runs_somewhere.add(significant([*parts, (-1.0, block.decided[self.group[o], a])]) == 0)

    def decided(self, o: int, lay: int) -> Terms:
        """Whether the group of an operator is laid out like this."""
        return [(1.0, self.block.decided[self.group[o], a]) for a in self.by_layout[lay]]

    def _figures_of_operators(self) -> None:
        """Least time, loads and seconds on the channel of every operator, as variables, so that rows stay short."""
        block = self.block
        block.least = pyo.Var(self.operators, bounds=(0, None), doc="d")
        block.place_load = pyo.Var(self.operators, self.places, bounds=(0, None), doc="q, work of o on a place")
        block.lone_load = pyo.Var(self.operators, self.places, bounds=(0, None), doc="q' without what is duplicated")
        self.gradients = [o for o in self.operators if self.instance.operators[o].gradient_bytes]
        block.reduced = pyo.Var(self.gradients, bounds=(0, None), doc="r")
        block.figures_of_operators = pyo.ConstraintList()
        for o in self.operators:
            self._equal(block.least[o], self._least_terms(o))
            for j in self.places:
                load, lone = self._load_terms(o, j)
                self._equal(block.place_load[o, j], load)
                self._equal(block.lone_load[o, j], lone)
        for o in self.gradients:
            self._equal(block.reduced[o], self._reduce_terms(o))

    def _equal(self, variable: Any, terms: Terms) -> None:
        self.block.figures_of_operators.add(significant([*terms, (-1.0, variable)]) == 0)

    def _least_terms(self, o: int) -> Terms:
        figures, block = self.figures, self.block
        terms: Terms = []
        for lay, layout in enumerate(figures.layouts):
            if layout.split is None:
                terms += [(self.whole[o, j], block.runs[o, lay, j]) for j in layout.device_groups]
                continue
            least = self.least[o, lay]
            terms += [(least, variable) for _, variable in self.decided(o, lay)]
            if layout.replicas > 1:
                whole = min(self.whole[o, j] for j in layout.device_groups)
                terms.append((whole - least, block.duplicated[o, lay]))
        return terms

    def _load_terms(self, o: int, j: int) -> tuple[Terms, Terms]:
        """Seconds on a device of group j, and without what is duplicated."""
        figures, block = self.figures, self.block
        terms: Terms = []
        duplicated: Terms = []
        without: Terms = []
        for lay, layout in enumerate(figures.layouts):
            if j not in layout.device_groups:
                continue
            if layout.split is None:
                terms.append((self.whole[o, j] / figures.counts[j], block.runs[o, lay, j]))
                continue
            part = self.part[o, lay, j]
            terms += [(part, variable) for _, variable in self.decided(o, lay)]
            if layout.replicas > 1:
                duplicated.append((self.whole[o, j] - part, block.duplicated[o, lay]))
                without.append((-part, block.duplicated[o, lay]))
        return [*terms, *duplicated], [*terms, *without]

    def _reduce_terms(self, o: int) -> Terms:
        figures, block = self.figures, self.block
        terms: Terms = []
        for lay in figures.split:
            units = self.reduced[o, lay]
            terms.append((units, block.decided[self.group[o], self.all_reduce[lay]]))
            terms.append((-units, block.duplicated[o, lay]))
        return terms

    def _pairs(self) -> None:
        """The local polytope, for operators of two groups with a tensor between them."""
        block, count = self.block, range(len(self.figures.seats))
        edges = self._edges()
        self.crossing = [
            (p, c) for (p, c), size in edges.items() if self.with_pairs and size and self.group[p] != self.group[c]
        ]
        seats = [(*edge, s, t) for edge in self.crossing for s in count for t in count]
        block.pair = pyo.Var(seats, bounds=(0, 1), doc="y: 1 if producer and consumer have these seats")
        block.pairs_agree = pyo.ConstraintList(doc="local polytope")
        for p, c in self.crossing:
            for s in count:
                row = [*((1.0, block.pair[p, c, s, t]) for t in count), *self._seated(p, s)]
                block.pairs_agree.add(significant(row) == 0)
                row = [*((1.0, block.pair[p, c, t, s]) for t in count), *self._seated(c, s)]
                block.pairs_agree.add(significant(row) == 0)

    def _seated(self, o: int, s: int) -> Terms:
        """Whether an operator has a seat, negative."""
        seat = self.figures.seats[s]
        if seat.split is not None:
            return [(-value, variable) for value, variable in self.decided(o, s)]
        j = seat.device_groups[0]
        return [(-1.0, self.block.runs[o, lay, j]) for lay in self.spread if (o, lay, j) in self.block.runs]

    def _edges(self) -> dict[tuple[int, int], float]:
        """Producers and consumers, with the bytes of the largest tensor between them."""
        tensors = self.instance.tensors
        self.largest: dict[tuple[int, int], int] = {}
        for place, tensor in enumerate(tensors):
            for c in tensor.consumers:
                before = self.largest.setdefault((tensor.producer, c), place)
                if tensor.size_bytes > tensors[before].size_bytes:
                    self.largest[tensor.producer, c] = place
        return {edge: tensors[place].size_bytes for edge, place in self.largest.items()}

    def _paths(self) -> None:
        """E and B along the edges."""
        block, edges = self.block, self._edges()
        block.end = pyo.Var(self.operators, bounds=(0, None), doc="E")
        block.tail = pyo.Var(self.operators, bounds=(0, None), doc="B")
        block.paths = pyo.ConstraintList(doc="E and B along the graph")
        block.delay = pyo.Var(self.crossing, bounds=(0, None), doc="D")
        block.chain_delay = pyo.Var(self.crossing, bounds=(0, None), doc="D'")
        transfers = [(*edge, *link) for edge in self.crossing for link in self.links]
        block.busy = pyo.Var(transfers, bounds=(0, None), doc="m: seconds of the link for the tensor")
        self.most_busy: dict[tuple[int, int, tuple[int, int]], npt.NDArray[np.float64]] = {}
        for p, c in self.crossing:
            self._delays(p, c, edges[p, c])
            for link in self.links:
                self._busy(p, c, link, edges[p, c])
        self._count_once()
        for o in self.operators:
            block.paths.add(block.end[o] - block.least[o] >= 0)
            block.paths.add(
                block.tail[o] - block.least[o] - block.reduced[o] >= 0
                if o in block.reduced
                else block.tail[o] - block.least[o] >= 0
            )
        for p, c in edges:
            delay = [(-1.0, block.delay[p, c])] if (p, c) in block.delay else []
            block.paths.add(
                significant([(1.0, block.end[c]), (-1.0, block.end[p]), (-1.0, block.least[c]), *delay]) >= 0
            )
            delay = [(-1.0, block.chain_delay[p, c])] if (p, c) in block.delay else []
            block.paths.add(
                significant([(1.0, block.tail[p]), (-1.0, block.tail[c]), (-1.0, block.least[p]), *delay]) >= 0
            )
        self._servers()

    def _delays(self, p: int, c: int, size: float) -> None:
        """D is the delay of y, less its largest value in a layout where the producer is duplicated."""
        block, latency, count = self.block, self.instance.latency_s, range(len(self.figures.seats))
        delay, chain = np.zeros((len(count), len(count))), np.zeros((len(count), len(count)))
        for lay in count:
            for k in count:
                move = self.figures.moved[lay][k]
                delay[lay, k] = move.delay * size + move.delay_fixed * latency
                chain[lay, k] = move.chain * size + move.chain_fixed * latency
        delay, chain = self.units(delay), self.units(chain)
        terms = [(-delay[lay, k], block.pair[p, c, lay, k]) for lay in count for k in count]
        terms += [(delay[lay].max(), block.duplicated[p, lay]) for lay in self.figures.split]
        block.paths.add(significant([*terms, (1.0, block.delay[p, c])]) >= 0)
        terms = [(-chain[lay, k], block.pair[p, c, lay, k]) for lay in count for k in count]
        block.paths.add(significant([*terms, (1.0, block.chain_delay[p, c])]) >= 0)

    def _busy(self, p: int, c: int, link: tuple[int, int], size: float) -> None:
        """Seconds of a link for one tensor: those of y, less their largest value where the producer is duplicated."""
        block, count = self.block, range(len(self.figures.seats))
        seconds = np.array(
            [
                [move.busy[link] * size + move.busy_fixed[link] * self.instance.latency_s for move in row]
                for row in self.figures.moved
            ]
        )
        seconds = self.units(seconds)
        self.most_busy[p, c, link] = seconds.max(axis=0)
        terms = [(-seconds[lay, k], block.pair[p, c, lay, k]) for lay in count for k in count]
        terms += [(seconds[lay].max(), block.duplicated[p, lay]) for lay in self.figures.split]
        block.paths.add(significant([*terms, (1.0, block.busy[p, c, *link])]) >= 0)

    def _count_once(self) -> None:
        """The consumers for which tensors load links: one for each tensor that is the largest between two operators."""
        self.counted: dict[int, set[int]] = {}
        crossing = set(self.crossing)
        for place, tensor in enumerate(self.instance.tensors):
            found = next((c for c in tensor.consumers if self.largest.get((tensor.producer, c)) == place), None)
            if found is not None and (tensor.producer, found) in crossing:
                self.counted.setdefault(tensor.producer, set()).add(found)

    def _servers(self) -> None:
        """Gradients that go through a server."""
        block = self.block
        keys = [(o, *link) for o in self.gradients for link in self.links] if self.server else []
        block.server_busy = pyo.Var(keys, bounds=(0, None), doc="seconds of links for gradients that have a server")
        for o in self.gradients:
            ways: Terms = []
            back: Terms = []
            busy_terms: dict[tuple[int, int], Terms] = {link: [] for link in self.links}
            for lay, a in self.server.items():
                there_s, back_s, busy = self.figures.server_s(o, lay)
                decided = block.decided[self.group[o], a]
                ways.append((-self.units(there_s + back_s), decided))
                back.append((-self.units(back_s), decided))
                busy = self.units(busy)
                for link in self.links:
                    busy_terms[link].append((busy[link], decided))
            for link, terms in busy_terms.items():
                if self.server:
                    self._equal(block.server_busy[o, *link], terms)
            block.paths.add(significant([(1.0, block.time), (-1.0, block.end[o]), *ways]) >= 0)
            block.paths.add(significant([(1.0, block.tail[o]), (-1.0, block.least[o]), *back]) >= 0)

    def _sums(self) -> None:
        """T is at least what each resource does, with what must come before or after."""
        block = self.block
        block.sums = pyo.ConstraintList(doc="T is at least ...")
        self._at_least([(1.0, block.reduced[o]) for o in self.gradients])
        for j in self.places:
            self._at_least([(1.0, block.place_load[o, j]) for o in self.operators])
        for o in self.operators:
            later = sorted(self.after[o])
            self._at_least([(1.0, block.end[o]), *((1.0, block.reduced[p]) for p in [o, *later] if p in block.reduced)])
            for j in self.places:
                if later:
                    self._at_least([(1.0, block.end[o]), *((1.0, block.place_load[p, j]) for p in later)])
                self._at_least([(1.0, block.tail[o]), *((1.0, block.lone_load[p, j]) for p in sorted(self.before[o]))])
            for link in self.links:
                self._at_least([(1.0, block.end[o]), *self._sent_by([o, *later], link)])
        for link in self.links:
            self._at_least(self._sent_by(self.operators, link))
            for p, c in self.crossing:
                largest = self.most_busy[p, c, link]
                idle = [(-largest[lay], block.duplicated[c, lay]) for lay in self.figures.split]
                if largest.any():
                    busy = (1.0, block.busy[p, c, *link])
                    self._at_least([(1.0, block.end[p]), busy, (1.0, block.tail[c]), *idle])

    def _sent_by(self, operators: Iterable[int], link: tuple[int, int]) -> Terms:
        """Seconds of a link for tensors, each for one consumer, and for gradients of some operators."""
        terms: Terms = []
        for o in operators:
            terms += [(1.0, self.block.busy[o, c, *link]) for c in self.counted.get(o, ())]
            if (o, *link) in self.block.server_busy:
                terms.append((1.0, self.block.server_busy[o, *link]))
        return terms

    def _at_least(self, terms: Terms) -> None:
        self.block.sums.add(
            significant([(1.0, self.block.time), *((-value, variable) for value, variable in terms)]) >= 0
        )

    def _memory(self) -> None:
        """What operators keep fits, in the mean of each device group, with what any one of them reads and makes."""
        block = self.block
        block.kept = pyo.Var(self.places, bounds=(0, _MEMORY), doc="resident bytes per memory")
        block.memory = pyo.ConstraintList(doc="resident bytes, inputs and outputs fit")
        for j, group in enumerate(self.instance.device_groups):
            kept: Terms = []
            for o, operator in enumerate(self.instance.operators):
                part = min(operator.resident_bytes / group.memory_bytes, MOST_UNITS)
                kept += self._bytes_terms(o, j, part, part) if part else []
            block.memory.add(significant([*kept, (-1.0, block.kept[j])]) <= 0)
            most = sum(operator.resident_bytes for operator in self.instance.operators)
            for o, operator in enumerate(self.instance.operators):
                tensors = (*self.instance.inputs[o], *self.instance.outputs[o])
                size = sum(self.instance.tensors[tensor].size_bytes for tensor in tensors)
                if most + size + operator.gradient_bytes > group.memory_bytes:
                    batch, fixed = np.minimum((size, operator.gradient_bytes), MOST_UNITS * group.memory_bytes)
                    batch, fixed = batch / group.memory_bytes, fixed / group.memory_bytes
                    terms = self._bytes_terms(o, j, fixed, batch + fixed, batch)
                    block.memory.add(significant([(1.0, block.kept[j]), *terms]) <= _MEMORY)

    def _bytes_terms(self, o: int, j: int, fixed: float, whole: float, batch: float = 0.0) -> Terms:
        """The least that an operator takes on a device in the mean of a group: as a replica, or for the whole batch."""
        figures, at, terms = self.figures, self.instance.device_group_of, []
        for lay, layout in enumerate(figures.layouts):
            if j not in layout.device_groups:
                continue
            if layout.split is None:
                terms.append((whole / figures.counts[j], self.block.runs[o, lay, j]))
                continue
            units = min(replica.units for replica in layout.parts if at[replica.device] == j)
            terms += [(fixed + batch * units / UNITS, variable) for _, variable in self.decided(o, lay)]
        return terms


def _descendants(instance: DeploymentInstance) -> tuple[list[set[int]], list[set[int]]]:
    """Operators that need what each makes, directly or not, and those that it needs."""
    after: list[set[int]] = [set() for _ in instance.operators]
    before: list[set[int]] = [set() for _ in instance.operators]
    for place in reversed(instance.order):
        for reader in instance.readers[place]:
            after[place] |= {reader} | after[reader]
    for place, later in enumerate(after):
        for reader in later:
            before[reader].add(place)
    return after, before
