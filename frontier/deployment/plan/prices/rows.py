"""Sums that no step takes less than: a path to an operator, work of a resource after it, and a path to the end."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.plan.prices.kernels import Weights, follow
from ddlopt.frontier.deployment.plan.prices.quantities import Quantities
from ddlopt.frontier.deployment.plan.seats import Floats, Ints

NONE = -1
"""No resource, no operator."""


class Row(NamedTuple):
    """Of a resource (a column, or ``NONE``): a path to ``first`` and one from ``last``, where there are these.

    ``head`` are the pairs on the path to ``first``, which says what operators are on it; ``tail`` the operators from
    ``last`` to the end, or none where a column of the resource has the time from there to the end. With a set of
    ``samples`` the path to ``first``, over ``ways``, one for each pair, is that of all that has one of these samples of
    the batch, and what comes after it waits for all samples: gradients and what the channel does with them, or sums
    from servers.
    """

    resource: int
    first: int
    last: int
    head: tuple[int, ...]
    tail: tuple[int, ...]
    samples: int = NONE
    ways: tuple[int, ...] = ()


class Counted(NamedTuple):
    """What a row counts that is not 0: places in the figures of a plan one after the other, and weights."""

    place: Ints
    weight: Floats


def counted(weights: Weights) -> Counted:
    """Without zeros."""
    flat = np.concatenate([each.ravel() for each in weights])
    place = np.flatnonzero(flat)
    return Counted(place, flat[place])


def summed(figures: Quantities, rows: Iterable[tuple[float, Counted]]) -> Weights:
    """Rows times their prices."""
    found = nothing(figures)
    ends = np.cumsum([each.size for each in found])
    flat = np.zeros(ends[-1])
    for price, row in rows:
        flat[row.place] += price * row.weight
    parts = zip(np.split(flat, ends[:-1]), found, strict=True)
    return Weights(*(part.reshape(each.shape) for part, each in parts))


def nothing(figures: Quantities) -> Weights:
    """No weights."""
    operators, columns = len(figures.group), figures.load_s.shape[2]
    machines, links = figures.machines, figures.carried_s.shape[1]
    pairs, sets, ways = len(figures.pairs), figures.samples.own_s.shape[2], len(figures.samples.per_byte_s)
    return Weights(
        np.zeros((operators, columns)),
        np.zeros((operators, machines)),
        np.zeros(operators),
        np.zeros(pairs),
        np.zeros((pairs, links)),
        np.zeros((pairs, links)),
        np.zeros((operators, sets)),
        np.zeros((operators, sets)),
        np.zeros((pairs, ways)),
        np.zeros((operators, links)),
    )


def weights_of(figures: Quantities, row: Row) -> Weights:
    """What a row counts. Work that is followed by a path is that of replicas which something waits for."""
    found, machines = nothing(figures), figures.machines
    if row.samples != NONE:
        _weigh_samples(figures, row, found)
        return found
    found.delay[list(row.head)] = 1.0
    if row.first != NONE:
        found.least[row.first] = 1.0
        found.least[figures.pairs[list(row.head), 0]] = 1.0
    for place in row.tail:
        found.least[place] += 1.0
    after = np.ones(len(figures.group), bool) if row.first == NONE else figures.after[row.first].copy()
    if machines <= row.resource < figures.common and row.first != NONE:
        # The transfers and gradients of an operator come after it, too.
        after[row.first] = True
    if row.resource >= figures.common:
        # The way from the last operator to the end is a figure of its own.
        if row.last != NONE:
            after &= figures.after[:, row.last]
            found.load[row.last, row.resource + machines] = 1.0
        found.load[after, row.resource] = 1.0
        return found
    if row.tail:
        found.load[row.tail[-1], -1] = 1.0
        before = figures.after[:, row.last].copy()
        if row.resource < machines:
            found.lone[after & before, row.resource] = 1.0
            return found
        before[row.last] = True
        of_row = after[figures.pairs[:, 0]] & before[figures.pairs[:, 1]]
        # The step waits for each replica of an operator that ends it, also where all have the whole batch.
        ends = of_row & (figures.pairs[:, 1] == row.last) & (len(row.tail) == 1)
        found.carried[ends, row.resource - machines - 1] = 1.0
        found.lone_carried[of_row & ~ends, row.resource - machines - 1] = 1.0
        return found
    if row.resource == NONE:
        found.load[row.first, -2] = 1.0
        return found
    found.load[after, row.resource] = 1.0
    if row.resource > machines:
        found.carried[after[figures.pairs[:, 0]], row.resource - machines - 1] = 1.0
    return found


def _weigh_samples(figures: Quantities, row: Row, found: Weights) -> None:
    found.passed[list(row.head), list(row.ways)] = 1.0
    found.sample[row.first, row.samples] = 1.0
    found.sample[figures.pairs[list(row.head), 0], figures.samples.source[list(row.ways)]] = 1.0
    if row.resource == NONE:
        found.sync[row.first, row.samples] = 1.0
        return
    after = figures.after[row.first].copy()
    after[row.first] = True
    if row.resource == figures.machines:
        found.load[after, row.resource] = 1.0
    else:
        found.back[after, row.resource - figures.machines - 1] = 1.0


class OfPlan:
    """The figures of one plan, given as a choice for each group: rows by their value, and the largest rows."""

    def __init__(self, figures: Quantities, plan: Ints) -> None:
        self.figures = figures
        chosen, places = plan[figures.group], np.arange(len(figures.group))
        self.load_s, self.least_s = figures.load_s[places, chosen], figures.least_s[places, chosen]
        self.lone_s = self.load_s[:, : figures.machines] * ~figures.copied[places, chosen][:, None]
        one, other = figures.pairs.T
        pairs = np.arange(len(figures.pairs))
        seats = figures.seat[one, chosen[one]], figures.seat[other, chosen[other]]
        self.delay_s, self.carried_s = figures.delay_s[pairs, *seats], figures.carried_s[pairs, :, *seats]
        self.lone_carried_s = self.carried_s * ~figures.copies[other, seats[1]][:, None]
        samples, seat = figures.samples, figures.seat[places, chosen]
        self.sample_s, self.sync_s = samples.own_s[places, seat], samples.sync_s[places, chosen]
        self.back_s, kind = samples.back_s[places, chosen], samples.kind[places, seat]
        per_byte_s, fixed_s = (each[:, kind[one], kind[other]].T for each in (samples.per_byte_s, samples.fixed_s))
        size_bytes = samples.size_bytes[samples.first].T
        self.passed_s = size_bytes * per_byte_s + (size_bytes > 0) * fixed_s

    def value_s(self, weights: Weights) -> float:
        """Of a row, or of a sum of rows."""
        return float(sum((weight * own).sum() for weight, own in zip(weights, self._figures_s, strict=True)))

    @property
    def flat_s(self) -> npt.NDArray[np.float32]:
        """All figures that rows count, one after the other, with few digits."""
        return np.concatenate([each.ravel() for each in self._figures_s], dtype=np.float32, casting="same_kind")

    @property
    def _figures_s(self) -> Weights:
        """In the order of weights."""
        return Weights(
            self.load_s,
            self.lone_s,
            self.least_s,
            self.delay_s,
            self.carried_s,
            self.lone_carried_s,
            self.sample_s,
            self.sync_s,
            self.passed_s,
            self.back_s,
        )

    def largest(self) -> Iterator[tuple[float, Row]]:
        """The largest rows of each kind and resource, the largest first."""
        figures, machines = self.figures, self.figures.machines
        to_s, via = self._heads()
        from_s, onward = self._tails()
        before = figures.after.astype(float)
        within = (figures.after | np.eye(len(to_s), dtype=bool)).astype(float)
        makers, readers = within[:, figures.pairs[:, 0]], within[figures.pairs[:, 1]]
        found: list[tuple[float, int, int, int]] = []

        def add(values: Floats, resource: int, kind: str) -> None:
            place = int(values.argmax())
            first, last = place if kind == "first" else NONE, place if kind == "last" else NONE
            if kind == "both":
                first, last = divmod(place, len(to_s))
            found.append((float(values.flat[place]), resource, first, last))

        add(to_s + self.load_s[:, -2], NONE, "first")
        for resource in range(figures.common, figures.common + machines):
            own_s, end_s = self.load_s[:, resource], self.load_s[:, resource + machines]
            found.append((float(own_s.sum()), resource, NONE, NONE))
            add(to_s + before @ own_s, resource, "first")
            add(before.T @ own_s + end_s, resource, "last")
            if figures.after.any():
                both_s = to_s[:, None] + (before * own_s) @ before + end_s
                add(np.where(figures.after, both_s, -1.0), resource, "both")
        for resource in range(figures.common):
            own_s = self.load_s[:, resource]
            if resource < machines:
                add(to_s + before @ own_s, resource, "first")
                work_s = (before * self.lone_s[:, resource]) @ before
            else:
                if resource > machines:
                    link = resource - machines - 1
                    own_s = own_s + np.bincount(figures.pairs[:, 0], self.carried_s[:, link], len(to_s))
                add(to_s + within @ own_s, resource, "first")
                work_s = before * 0
                if resource > machines:
                    before_end_s = self._before_end_s(link, onward, readers)
                    work_s = makers @ before_end_s
            found.append((float(own_s.sum()), resource, NONE, NONE))
            if work_s.any():
                add(np.where(work_s > 0, to_s[:, None] + work_s + from_s, 0.0), resource, "both")
                all_s = before.T @ self.lone_s[:, resource] if resource < machines else before_end_s.sum(axis=0)
                add(np.where(all_s > 0, all_s + from_s, 0.0), resource, "last")
        of_samples = {tied: self._of_samples(within, tied) for tied in (False, True)}
        every = [*((*each, NONE, False) for each in found)]
        every += [(*each, tied) for tied, (rows, _) in of_samples.items() for each in rows]
        for value_s, resource, first, last, samples, tied in sorted(every, key=lambda each: -each[0]):
            if samples != NONE:
                head, ways = _way(figures, of_samples[tied][1], first, samples)
                if tied and not figures.samples.tied[list(ways)].any():
                    continue
                yield value_s, Row(resource, first, last, head, (), samples, ways)
                continue
            tail = () if resource >= figures.common else _tail(onward, last)
            yield value_s, Row(resource, first, last, _head(figures, via, first), tail)

    def _before_end_s(self, link: int, onward: Ints, readers: Floats) -> Floats:
        """(pairs, operators) work of a link that something waits for before it can do an operator.

        The step itself waits for each replica of one that ends it.
        """
        ends = (self.figures.pairs[:, 1:] == np.arange(len(onward))) & (onward == NONE)
        found: Floats = np.where(ends, self.carried_s[:, link, None], self.lone_carried_s[:, link, None] * readers)
        return found

    def _of_samples(self, within: Floats, tied: bool) -> tuple[list[tuple[float, int, int, int, int]], Ints]:
        """The largest rows of paths of samples, and what :meth:`_sample_heads` says."""
        machines = self.figures.machines
        to_s, via = self._sample_heads(tied)
        works = [(NONE, self.sync_s), (machines, (within @ self.load_s[:, machines])[:, None])]
        for link in range(self.back_s.shape[1]):
            work_s = (within @ self.back_s[:, link])[:, None]
            if work_s.any():
                works.append((machines + 1 + link, np.where(work_s > 0, work_s, -to_s)))
        found = []
        for resource, work_s in works:
            values = to_s + work_s
            first, samples = divmod(int(values.argmax()), to_s.shape[1])
            found.append((float(values[first, samples]), resource, first, NONE, samples))
        return found, via

    def _sample_heads(self, tied: bool) -> tuple[Floats, Ints]:
        """When all that has a sample of a set ends at least, and (2, operators, sets + .) the pair and way."""
        figures, samples = self.figures, self.figures.samples
        to_s = np.zeros_like(self.sample_s)
        via = np.full((2, *to_s.shape), NONE)
        ends = np.bincount(figures.pairs[:, 0], minlength=len(figures.group)) == 0
        some = samples.target >= to_s.shape[1] - figures.machines
        # Of what sends nothing it is not known who takes something from whom.
        closed = (samples.tied & ((samples.size_bytes[samples.first].T == 0) | (not tied))) | (
            some & ~ends[figures.pairs[:, 1:]]
        )
        rank = np.empty(len(figures.order), np.int64)
        rank[figures.order] = np.arange(len(rank))
        by_reader = np.argsort(rank[figures.pairs[:, 1]], kind="stable")
        follow(
            figures.order,
            figures.pairs[by_reader],
            samples.source,
            samples.target,
            closed[by_reader],
            np.ascontiguousarray(self.sample_s),
            np.ascontiguousarray(self.passed_s[by_reader]),
            to_s,
            via,
        )
        found = via[0] != NONE
        via[0, found] = by_reader[via[0, found]]
        to_s[~ends, -figures.machines :] = 0.0
        return to_s, via

    def _heads(self) -> tuple[Floats, Ints]:
        """When the first replica of each operator ends at least, and the pair that says so."""
        figures = self.figures
        to_s, via = np.zeros(len(figures.group)), np.full(len(figures.group), NONE)
        incoming: list[list[int]] = [[] for _ in figures.group]
        for pair, reader in enumerate(figures.pairs[:, 1].tolist()):
            incoming[reader].append(pair)
        for place in figures.order.tolist():
            for pair in incoming[place]:
                there_s = to_s[figures.pairs[pair, 0]] + self.delay_s[pair]
                if there_s > to_s[place]:
                    to_s[place], via[place] = there_s, pair
            to_s[place] += self.least_s[place]
        return to_s, via

    def _tails(self) -> tuple[Floats, Ints]:
        """What comes at least from the start of any replica of an operator on, and the operator after it."""
        figures = self.figures
        from_s, onward = self.load_s[:, -1].copy(), np.full(len(figures.group), NONE)
        readers: list[list[int]] = [[] for _ in figures.group]
        for maker, reader in figures.pairs.tolist():
            readers[maker].append(reader)
        for place in reversed(figures.order.tolist()):
            for reader in readers[place]:
                if from_s[reader] > from_s[place]:
                    from_s[place], onward[place] = from_s[reader], reader
            from_s[place] += self.least_s[place]
        return from_s, onward


def _head(figures: Quantities, via: Ints, first: int) -> tuple[int, ...]:
    path = []
    while first != NONE and via[first] != NONE:
        path.append(int(via[first]))
        first = int(figures.pairs[path[-1], 0])
    return tuple(path)


def _way(figures: Quantities, via: Ints, first: int, samples: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    path, ways = [], []
    while via[0, first, samples] != NONE:
        pair, way = via[:, first, samples].tolist()
        path.append(pair)
        ways.append(way)
        first, samples = int(figures.pairs[pair, 0]), int(figures.samples.source[way])
    return tuple(path), tuple(ways)


def _tail(onward: Ints, last: int) -> tuple[int, ...]:
    path = []
    while last != NONE:
        path.append(last)
        last = int(onward[last])
    return tuple(path)
