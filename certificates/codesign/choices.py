r"""All choices of strategies that whole numbers do not exclude, layer by layer.

Units are :math:`2^{-40}` of the claim, and everything that a strategy adds is rounded down to whole ones. A *row* is a
sum that the time of every plan is no less than: with times that add up, the work of one server plus what one bound on
the busiest link says (:meth:`.ExactFigures.loads`); with full overlap either of these by itself. The bytes that a
server has in memory are another row, in units of a little more than what there is, and so is what compression loses of
its budget. Once a row's sum over the layers
that have a strategy, with the least that the others and their edges add, reaches the claim, so does every plan with
these strategies.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.codesign.exact import ExactFigures
from ddlopt.models.tolerances import let_pass_at_most

Ints = npt.NDArray[np.int64]
_WHOLE = 2**40
"""Units of the claim; one part counts as twice as many at most, so that sums of 2^20 parts are below 2^63."""
_NUMBERS = 2**20
"""Sums that are looked at between two looks at the clock: a fraction of a second."""


class Choices:
    """The choices that are left for a claim.

    Parameters
    ----------
    figures : ExactFigures
    claim : Fraction
        Seconds, more than 0.
    """

    def __init__(self, figures: ExactFigures, claim: Fraction) -> None:
        self.figures, self.instance = figures, figures.instance
        self.unit = claim / _WHOLE
        limit = self.instance.device.memory_bytes
        self.memory_unit = None if limit is None else let_pass_at_most(Fraction(limit)) / _WHOLE
        budget = self.instance.error_budget
        self.error_unit = None if budget is None else let_pass_at_most(Fraction(budget)) / _WHOLE
        self.cases = 0
        layers = range(len(figures.sizes))
        self.own = [np.stack([self._alone(layer, a) for a in range(figures.sizes[layer])]) for layer in layers]
        self.edges = [self._along(edge) for edge in range(len(self.instance.edges))]
        least = np.zeros((len(layers) + 1, self.own[0].shape[1]), np.int64)
        for layer in reversed(layers):
            least[layer] = least[layer + 1] + self.own[layer].min(axis=0)
            for ends, table in zip(self.instance.edges, self.edges, strict=True):
                if max(ends) == layer:
                    least[layer] += table.min(axis=(0, 1))
        self.least = least

    def left(self, expired: Callable[[], bool]) -> Iterator[tuple[int, ...]]:
        """Those that no row excludes, a few at a time; where the time has ``expired`` it ends at once."""
        rows = self.own[0].shape[1]
        stack = [(np.zeros((1, 0), np.int64), np.zeros((1, rows), np.int64))]
        while stack and not expired():
            chosen, sums = stack.pop()
            layer = chosen.shape[1]
            if layer == len(self.own):
                yield from (tuple(each) for each in chosen.tolist())
                continue
            size = len(self.own[layer])
            step = max(1, _NUMBERS // (size * rows))
            if len(chosen) > step:
                stack.append((chosen[step:], sums[step:]))
                chosen, sums = chosen[:step], sums[:step]
            self.cases += len(chosen) * size
            more = sums[:, None] + self.own[layer]
            for (source, target), table in zip(self.instance.edges, self.edges, strict=True):
                if max(source, target) == layer:
                    more += table[chosen[:, source]] if target == layer else table[:, chosen[:, target]].swapaxes(0, 1)
            which, a = np.nonzero((more + self.least[layer + 1]).max(axis=2) < _WHOLE)
            if len(which):
                stack.append((np.column_stack([chosen[which], a]), more[which, a]))

    def _rows(self, busy: list[Fraction], loads: list[Fraction], memory: list[Fraction], error: Fraction) -> Ints:
        """What a part adds to each row, in units."""
        works, links = self._whole(busy, self.unit), self._whole(loads, self.unit)
        together = np.add.outer(works, links).ravel()
        rows = [works, links] if self.instance.overlap == "full" else [together]
        if self.memory_unit is not None:
            rows.append(self._whole(memory, self.memory_unit))
        if self.error_unit is not None:
            rows.append(self._whole([error], self.error_unit))
        return np.concatenate(rows)

    @staticmethod
    def _whole(amounts: list[Fraction], unit: Fraction) -> Ints:
        if not unit:  # nothing may be taken
            return np.array([_WHOLE if amount else 0 for amount in amounts], np.int64)
        return np.array([min(_WHOLE, amount // unit) for amount in amounts], np.int64)

    def _alone(self, layer: int, a: int) -> Ints:
        figures, where = self.figures, set(self.figures.servers(layer, a))
        chosen = self.instance.layers[layer].strategies[a]
        time, size = figures.time(layer, a), Fraction(chosen.memory_bytes)
        servers = range(self.instance.servers)
        busy, memory = ([each if s in where else Fraction(0) for s in servers] for each in (time, size))
        return self._rows(busy, figures.loads(figures.own(layer, a)), memory, Fraction(chosen.error))

    def _along(self, edge: int) -> Ints:
        """(strategies of the source, of the target, rows); what moves between the same layouts is the same."""
        source, target = (self.instance.layers[end].strategies for end in self.instance.edges[edge])
        nothing = [Fraction(0)] * self.instance.servers
        known: dict[tuple[int, int | None], Ints] = {}
        for a, before in enumerate(source):
            for b, after in enumerate(target):
                if (before.writes, after.reads) not in known:
                    loads = self.figures.loads(self.figures.along(edge, a, b))
                    known[before.writes, after.reads] = self._rows(nothing, loads, nothing, Fraction(0))
        return np.array([[known[before.writes, after.reads] for after in target] for before in source])
