"""The linear program over trees, paths or rings, by column generation: how much of the bytes each has, and prices."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from ddlopt.models.errors import NoSolutionError
from ddlopt.models.topology.collective.instance import Arc

DENOMINATORS = (60, 1000, 10**5)
"""Of single numbers of the linear program: optima have small ones; what they have in common is sought among these."""
FINE = 10**9
"""Parts to which numbers are rounded where they have no common denominator up to :data:`_MOST`."""
SAME = 1e-9
"""Relative difference of two floating-point numbers that are taken for the same; what is claimed is exact."""
_MOST = 10**7
"""Common denominator that is worth trying."""
_MOST_SOLVED = 80
"""Columns whose weights are solved for as fractions: some seconds."""
_TIGHT = 1e-7
"""Part of the time by which a link may be idle that counts as busy throughout."""
_FEW = 1e-3
"""Rate below which numbers are measured anew."""
_PLENTY = 1e6
"""Bandwidth beyond which a link never binds, in units of a rate that nothing exceeds."""


@dataclass(frozen=True)
class Column:
    """Something that carries a part of the bytes.

    Parameters
    ----------
    part : hashable
        Which part: those of a root, of a pair, or all.
    load : mapping
        Bytes on each link for each byte of it.
    """

    part: Hashable
    load: Mapping[Arc, float | Fraction]


@dataclass(frozen=True)
class Shares:
    """An optimum in floating point.

    Parameters
    ----------
    weights : mapping
        Bytes of each column that has any, by place, for each byte of the collective.
    prices : mapping
        Of each link, so that all bandwidth is worth 1.
    seconds : float
        For each byte of the collective.
    """

    weights: dict[int, float]
    prices: dict[Arc, float]
    seconds: float


Pricing = Callable[[Mapping[Arc, float]], tuple[float, bool, Mapping[Hashable, Column]]]
"""What a byte costs at least under prices of links, whether that is proven, and columns that cost so little, by key."""


@dataclass
class Generation:
    """Column generation with prices between the best ones so far and the last ones, which needs fewer rounds.

    Parameters
    ----------
    bandwidth : mapping
        Bytes per second of each link.
    parts : mapping
        Of the bytes, by name: they add up to all.
    columns : mapping
        Known at the beginning, by key.
    smoothing : float
        Weight of the best prices.

    Attributes
    ----------
    shares : Shares
        Of the last linear program.
    prices : mapping
        With the best bound; all bandwidth is worth 1.
    proven : float
        Seconds for each byte below which no shares of any columns are, as far as floating point knows.
    rounds : int

    References
    ----------
    P. Wentges, "Weighted Dantzig-Wolfe decomposition for linear mixed-integer programming", International Transactions
    in Operational Research 4(2), 1997.
    """

    bandwidth: Mapping[Arc, float]
    parts: Mapping[Hashable, Fraction]
    columns: dict[Hashable, Column] = field(default_factory=dict)
    smoothing: float = 0.6
    shares: Shares | None = None
    prices: Mapping[Arc, float] = field(default_factory=dict)
    proven: float = 0.0
    rounds: int = 0
    _best: float = 0.0

    def run(self, pricing: Pricing, most: int, floor: float, stop: Callable[[], bool]) -> Shares:
        """Rounds until nothing new is found, ``floor`` seconds a byte are met, or it is to stop; one at least."""
        tried: Mapping[Arc, float] = {link: 1 / each for link, each in self.bandwidth.items()}
        while self.rounds < most and not (self.shares is not None and stop()):
            self.rounds += 1
            cost, exact, found = pricing(tried)
            self._keep(tried, cost, exact)
            new = found.keys() - self.columns.keys()
            self.columns |= {key: found[key] for key in found if key in new}
            if self.shares is None or new:
                self.shares = best_shares(self.bandwidth, self.parts, list(self.columns.values()), floor)
            elif tried == self.shares.prices:
                break
            if self.shares.seconds <= max(self.proven, floor) * (1 + SAME):
                break
            last = self.shares.prices
            share = self.smoothing if new else 0.0
            tried = {link: share * self.prices[link] + (1 - share) * each for link, each in last.items()}
        assert self.shares is not None
        return self.shares

    def _keep(self, prices: Mapping[Arc, float], cost: float, exact: bool) -> None:
        worth = sum(each * prices[link] for link, each in self.bandwidth.items())
        if cost / worth > self._best or not self.prices:
            self._best = cost / worth
            self.prices = {link: each / worth for link, each in prices.items()}
        self.proven = max(self.proven, cost / worth) if exact else self.proven


def best_shares(
    bandwidth: Mapping[Arc, float], parts: Mapping[Hashable, Fraction], columns: Sequence[Column], floor: float
) -> Shares:
    """Bytes on columns so that each part has its own and the busiest link is busy for as short as possible.

    Parameters
    ----------
    bandwidth : mapping
        Bytes per second of each link.
    parts : mapping
        Of the bytes, by name.
    columns : sequence of Column
    floor : float
        Seconds for each byte below which no shares are: numbers are measured by it.

    Raises
    ------
    NoSolutionError
        If the solver does not answer.
    """
    count = len(columns)
    links = {link: place for place, link in enumerate(bandwidth)}
    entries = [
        (links[link], place, float(each)) for place, column in enumerate(columns) for link, each in column.load.items()
    ]
    rows, places, values = zip(*entries, strict=True)
    loads = sparse.csr_array((values, (rows, places)), shape=(len(links), count + 1))
    numbers = {part: place for place, part in enumerate(parts)}
    equal = sparse.csr_array(
        (
            [1.0] * count + [-float(each) for each in parts.values()],
            ([numbers[each.part] for each in columns] + [*range(len(parts))], [*range(count)] + [count] * len(parts)),
        ),
        shape=(len(parts), count + 1),
    )
    goal = np.zeros(count + 1)
    goal[-1] = -1.0
    unit = floor
    while True:
        room = np.array([min(each * unit, _PLENTY) for each in bandwidth.values()])
        found = linprog(goal, A_ub=loads, b_ub=room, A_eq=equal, b_eq=np.zeros(len(parts)), method="highs")
        if found.status != 0:
            raise NoSolutionError(f"the linear program over shares was not solved: {found.message}")
        if found.x[-1] >= _FEW:
            break
        # These columns take far longer than that: a solver's tolerance would be much of what they carry.
        unit /= max(float(found.x[-1]), _FEW / 10)
    prices = {link: max(0.0, -float(found.ineqlin.marginals[place])) for link, place in links.items()}
    worth = sum(each * prices[link] for link, each in bandwidth.items())
    rate = float(found.x[-1])
    weights = {place: float(each) / rate for place, each in enumerate(found.x[:-1]) if each > SAME * rate}
    return Shares(weights, {link: each / worth for link, each in prices.items()}, unit / rate)


def fractions(weights: Mapping[int, float], part_of: Mapping[int, Hashable], common: int) -> dict[int, Fraction]:
    """Weights as whole numbers over ``common``, relative to their part; the largest of each takes what that leaves."""
    members: dict[Hashable, list[int]] = defaultdict(list)
    for place in weights:
        members[part_of[place]].append(place)
    found: dict[int, Fraction] = {}
    for places in members.values():
        total = sum(weights[place] for place in places)
        whole = {place: round(weights[place] / total * common) for place in places}
        whole[max(whole, key=lambda place: whole[place])] += common - sum(whole.values())
        found |= {place: Fraction(number, common) for place, number in whole.items() if number > 0}
    return found


def roundings(
    columns: Sequence[Column], bandwidth: Mapping[Arc, float], parts: Mapping[Hashable, Fraction], shares: Shares
) -> Iterable[dict[int, Fraction]]:
    """Ways to make fractions of weights, relative to their parts: with a common denominator, or as equations have them.

    Parameters
    ----------
    columns : sequence of Column
        With loads as fractions or whole numbers.
    bandwidth, parts : mapping
        As of :func:`best_shares`.
    shares : Shares
    """
    part_of = {place: columns[place].part for place in shares.weights}
    relative = [each / float(parts[part_of[place]]) for place, each in shares.weights.items()]
    commons = list(common_denominators(relative))
    if len(commons) == 1:
        exact = _solved([columns[place] for place in part_of], bandwidth, parts, shares)
        if exact is not None:
            yield {place: each / parts[part_of[place]] for place, each in zip(part_of, exact, strict=True) if each > 0}
    for common in commons:
        yield fractions(shares.weights, part_of, common)


def _solved(
    columns: Sequence[Column], bandwidth: Mapping[Arc, float], parts: Mapping[Hashable, Fraction], shares: Shares
) -> list[Fraction] | None:
    """The weights for which busy links are equally busy and parts have what they should; None where that is not one."""
    if len(columns) > _MOST_SOLVED:
        return None
    weights = list(shares.weights.values())
    carried: dict[Arc, float] = defaultdict(float)
    for weight, column in zip(weights, columns, strict=True):
        for link, each in column.load.items():
            carried[link] += weight * float(each)
    tight = [link for link, each in carried.items() if each >= shares.seconds * bandwidth[link] * (1 - _TIGHT)]
    rows = [
        [Fraction(column.load.get(link, 0)) for column in columns] + [-Fraction(bandwidth[link]), Fraction(0)]
        for link in tight
    ]
    rows += [
        [Fraction(column.part == part) for column in columns] + [Fraction(0), each] for part, each in parts.items()
    ]
    found = _only_solution(rows)
    return None if found is None or min(found) < 0 else found[:-1]


def _only_solution(rows: list[list[Fraction]]) -> list[Fraction] | None:
    """Of linear equations, right sides last, by Gauss and Jordan; None where there is not exactly one."""
    unknowns = len(rows[0]) - 1
    for column in range(unknowns):
        pivot = next((place for place in range(column, len(rows)) if rows[place][column]), None)
        if pivot is None:
            return None
        rows[column], rows[pivot] = rows[pivot], rows[column]
        head = rows[column][column]
        rows[column] = [each / head for each in rows[column]]
        for place, row in enumerate(rows):
            factor = row[column]
            if place != column and factor:
                rows[place] = [a - factor * b if b else a for a, b in zip(row, rows[column], strict=True)]
    return [row[-1] for row in rows[:unknowns]] if not any(row[-1] for row in rows[unknowns:]) else None


def common_denominators(numbers: Iterable[float]) -> Iterable[int]:
    """Denominators that the numbers may have in common, and :data:`FINE`."""
    known = list(numbers)
    for most in DENOMINATORS:
        near = [Fraction(each).limit_denominator(most) for each in known]
        found = lcm(*(each.denominator for each in near))
        if found <= _MOST and all(abs(a - b) <= SAME for a, b in zip(near, known, strict=True)):
            yield found
    yield FINE
