r"""Bounds on rigid jobs of any number: shares of jobs and widths in intervals of time, a linear program.

**Makespan.** With :math:`y_{jw}` the share of job j that has w servers, :math:`\sum_w y_{jw} = 1`,

.. math:: T \ge r_j + \sum_w \ell_{jw} y_{jw}, \qquad
    K (T - \rho) \ge \sum_{j: r_j \ge \rho} \sum_w w\, \ell_{jw} y_{jw} \quad \text{for every arrival } \rho .

**Sums.** :math:`x_{jwI}` is the part of job j that runs on w servers in interval I, of length h:

.. math:: \sum_{w, I} x_{jwI} = 1, \quad \sum_{j, w} w\, \ell_{jw} x_{jwI} \le K h, \quad
    \sum_w \ell_{jw} x_{jwI} \le |I \cap [r_j, \infty)|, \quad
    C_j \ge r_j + \sum_{w, I} \ell_{jw} x_{jwI}, \quad
    C_j \ge \sum_{w, I} \Bigl(\text{mid}_I + \tfrac12 \ell_{jw} - \delta_{jw}\Bigr) x_{jwI} .

The last interval has no end, and its start takes the place of its middle. A job on w servers all the time ends half its
length after the mean of the moments at which it runs. In every interval but the last one that it is in, that mean is at
least the middle, as it runs to the interval's end; in the last one, of which it takes p, it is at least
:math:`(h - p) / 2` less, which moves the mean of all by at most :math:`p (h - p) / (2 \ell)`: that is
:math:`\delta = h^2 / (8 \ell)`, or :math:`(h - \ell) / 2` where :math:`\ell < h / 2`.

**Jobs that are moved**, to other widths too, with :math:`x` parts of a job's iterations: all rows hold but the last
one. With :math:`\hat\ell_j` the least of its lengths a job does at most :math:`1 / \hat\ell_j` of its iterations a
second, so that the mean of the moments at which it does them is at least :math:`\hat\ell_j / 2` before its end, and

.. math:: C_j \ge \sum_{w, I} \max(\text{begin}_I, r_j)\, x_{jwI} + \tfrac12 \hat\ell_j .

**Other resources** that jobs use evenly while they run are rows like those of servers: :math:`a_{jw}` in all of one
that gives b a second, in place of :math:`w\, \ell_{jw}` and K. Neither kind of row asks that a job takes no longer than
:math:`\ell_{jw}`: with x its parts of the time that it does run for, all rows hold as they stand, since
:math:`\ell / 2 - \delta` only grows with :math:`\ell`.

A width is left out if a narrower one takes no longer, and no more of other resources. What the solver's prices prove is
calculated again: :math:`b^\top y` and, for each variable, the least of its reduced cost times what it may be at most.
"""

import math
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog
from scipy.sparse import csr_array

from ddlopt.models.cluster.jobs.instance import ClusterJob, JobsInstance
from ddlopt.models.tolerances import ROUNDING

Floats = npt.NDArray[np.float64]
_MOST_COLUMNS = 30_000
"""Shares of the program for sums: some ten seconds; there are fewer intervals where jobs are many."""
_INTERVALS = (8, 64)
"""At least and at most."""


@dataclass(frozen=True)
class Relaxed:
    """What a relaxation says.

    Parameters
    ----------
    value : float
        No schedule is below.
    shares : tuple of dict of int to float
        Of each job, by width, in the relaxation's optimum.
    ends : tuple of float
        Of each job, about when it ends there; of a makespan when it may begin.
    """

    value: float
    shares: tuple[dict[int, float], ...]
    ends: tuple[float, ...]


class Resource(NamedTuple):
    """What jobs use besides servers.

    Parameters
    ----------
    rate : float
        What there is of it, a second.
    used : tuple of dict of int to float
        Of each job, by width, how much for all of its iterations; a width that is not there uses none.
    alone_s : float
        What all jobs together take longer for it at most if they run one after the other.
    """

    rate: float
    used: tuple[dict[int, float], ...]
    alone_s: float


def useful(job: ClusterJob) -> list[tuple[int, float]]:
    """Widths that take less than every narrower one, and how long all iterations take, from narrow to wide."""
    found: list[tuple[int, float]] = []
    for width in job.widths:
        length = float(job.length_s(width))
        if not found or length < found[-1][1]:
            found.append((width, length))
    return found


def _undominated(job: ClusterJob, used: list[dict[int, float]]) -> list[tuple[int, float]]:
    """Widths that take less than every narrower one, or less of some resource."""
    found: list[tuple[int, float]] = []
    for width in job.widths:
        own = (float(job.length_s(width)), *(each.get(width, 0.0) for each in used))
        if not any(
            length <= own[0] and all(each.get(other, 0.0) <= mine for each, mine in zip(used, own[1:], strict=True))
            for other, length in found
        ):
            found.append((width, own[0]))
    return found


def relaxed(
    instance: JobsInstance,
    end_s: float,
    seconds: float = math.inf,
    others: tuple[Resource, ...] = (),
    moved: bool = False,
) -> Relaxed:
    """The bound of rigid jobs, or of jobs that may be moved.

    Parameters
    ----------
    instance : JobsInstance
    end_s : float
        About when the last job ends in a good schedule: intervals go so far. Any positive number gives a bound.
    seconds : float
        For the solver; a bound of nothing, without shares, where it needs more.
    others : tuple of Resource
        That jobs use besides servers.
    moved : bool
        Whether jobs may be interrupted, and go on elsewhere with other widths.
    """
    menus = [_undominated(job, [each.used[place] for each in others]) for place, job in enumerate(instance.jobs)]
    if instance.objective == "makespan":
        made = _makespan(instance, menus, others)
    else:
        made = _sums(instance, menus, end_s, others, moved)
    value, x = made.solved(seconds)
    shares: list[dict[int, float]] = [{} for _ in menus]
    ends = [0.0 if made.values else job.arrival_s for job in instance.jobs]
    for column, ((job, width), share) in enumerate(zip(made.names, x, strict=False)):
        if share > ROUNDING:
            shares[job][width] = shares[job].get(width, 0.0) + float(share)
            ends[job] += float(share) * (made.values[column] if made.values else 0.0)
    return Relaxed(value, tuple(shares), tuple(ends))


@dataclass
class _Program:
    """min c x with A x ≤ b, x between 0 and u, and shares of each job that add up to one."""

    cost: list[float]
    most: list[float]
    names: list[tuple[int, int]]
    jobs: int
    rows: list[tuple[list[int], list[float], float]]
    values: list[float] = field(default_factory=list)
    """Of a share, the middle of its time."""

    def solved(self, seconds: float) -> tuple[float, Floats]:
        """A number that no solution is below, and a solution."""
        size = len(self.cost)
        less = _sparse([(columns, values) for columns, values, _ in self.rows], size)
        right = np.array([side for _, _, side in self.rows])
        owners: list[tuple[list[int], list[float]]] = [([], []) for _ in range(self.jobs)]
        for column, (job, _) in enumerate(self.names):
            owners[job][0].append(column)
            owners[job][1].append(1.0)
        equal, cost, most = _sparse(owners, size), np.array(self.cost), np.array(self.most)
        found: Any = linprog(
            cost,
            A_ub=less,
            b_ub=right,
            A_eq=equal,
            b_eq=np.ones(self.jobs),
            bounds=(0, None),
            method="highs-ipm",
            options={"time_limit": max(seconds, 0.01)},
        )
        if found.x is None or found.status != 0:
            return 0.0, np.zeros(size)
        prices, level = np.minimum(0.0, found.ineqlin.marginals), found.eqlin.marginals
        reduced = cost - less.T @ prices - equal.T @ level
        value = float(right @ prices + level.sum() + np.minimum(0.0, reduced) @ most)
        room = ROUNDING * float(np.abs(right) @ np.abs(prices) + np.abs(level).sum())
        return max(0.0, value - room), found.x


def _sparse(rows: list[tuple[list[int], list[float]]], size: int) -> Any:
    pointers = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    columns = np.array([column for own, _ in rows for column in own], dtype=np.int64)
    values = np.array([value for _, own in rows for value in own])
    return csr_array((values, columns, pointers), shape=(len(rows), size))


Menus = list[list[tuple[int, float]]]


def _makespan(instance: JobsInstance, menus: Menus, others: tuple[Resource, ...]) -> _Program:
    names = [(job, width) for job, menu in enumerate(menus) for width, _ in menu]
    lengths = np.array([length for menu in menus for _, length in menu])
    arrivals = np.array([job.arrival_s for job in instance.jobs])
    last = len(names)
    longest = sum(max(length for _, length in menu) for menu in menus) + float(arrivals.max())
    longest += sum(other.alone_s for other in others)
    made = _Program([0.0] * last + [1.0], [1.0] * last + [longest], names, len(menus), [])
    first = 0
    for menu, arrival in zip(menus, arrivals, strict=True):
        columns = list(range(first, first + len(menu)))
        made.rows.append(([*columns, last], [*lengths[columns], -1.0], -float(arrival)))
        first += len(menu)
    for begin in np.unique(arrivals):
        columns = [place for place, (job, _) in enumerate(names) if arrivals[job] >= begin]
        areas = [names[place][1] * lengths[place] / instance.servers for place in columns]
        made.rows.append(([*columns, last], [*areas, -1.0], -float(begin)))
        for other in others:
            parts = [other.used[names[place][0]].get(names[place][1], 0.0) / other.rate for place in columns]
            made.rows.append(([*columns, last], [*parts, -1.0], -float(begin)))
    return made


def _sums(instance: JobsInstance, menus: Menus, end_s: float, others: tuple[Resource, ...], moved: bool) -> _Program:
    many = sum(map(len, menus))
    count = int(np.clip(_MOST_COLUMNS // many, *_INTERVALS))
    h = end_s / count
    begins = h * np.arange(count + 1)
    centre = np.append(begins[:-1] + h / 2, begins[-1])
    names, lengths, where, values = list[tuple[int, int]](), list[float](), list[int](), list[float]()
    own: dict[tuple[int, int], list[int]] = {}
    for place, (job, menu) in enumerate(zip(instance.jobs, menus, strict=True)):
        fastest = min(length for _, length in menu)
        for width, length in menu:
            lost = h * h / (8 * length) if length >= h / 2 else (h - length) / 2
            for interval in range(min(count, int(job.arrival_s / h)), count + 1):
                own.setdefault((place, interval), []).append(len(names))
                names.append((place, width))
                lengths.append(length)
                where.append(interval)
                values.append(
                    max(begins[interval], job.arrival_s) + fastest / 2
                    if moved
                    else centre[interval] + length / 2 - lost
                )
    return _rows_of_sums(instance, _Shares(names, lengths, where, values, own, count, h), others)


@dataclass
class _Shares:
    names: list[tuple[int, int]]
    lengths: list[float]
    where: list[int]
    values: list[float]
    own: dict[tuple[int, int], list[int]]
    count: int
    h: float


def _rows_of_sums(instance: JobsInstance, shares: _Shares, others: tuple[Resource, ...]) -> _Program:
    jobs, size, late = instance.jobs, len(shares.names), instance.objective == "weighted_tardiness"
    longest = sum(max(float(job.length_s(w)) for w in job.widths) for job in jobs) + max(job.arrival_s for job in jobs)
    longest = max(longest + sum(other.alone_s for other in others), 2 * shares.count * shares.h)
    cost = [0.0] * size + [job.weight for job in jobs]
    made = _Program(cost, [1.0] * size + [longest] * len(jobs), shares.names, len(jobs), [], shares.values)
    loads: list[list[int]] = [[] for _ in range(shares.count)]
    for column, interval in enumerate(shares.where):
        if interval < shares.count:
            loads[interval].append(column)
    for columns in loads:
        areas = [shares.names[column][1] * shares.lengths[column] / shares.h for column in columns]
        made.rows.append((columns, areas, float(instance.servers)))
        for other in others:
            used = [other.used[job].get(width, 0.0) for job, width in (shares.names[column] for column in columns)]
            made.rows.append((columns, [amount / (shares.h * other.rate) for amount in used], 1.0))
    ended: list[list[int]] = [[] for _ in jobs]
    for (place, interval), columns in shares.own.items():
        ended[place] += columns
        if interval < shares.count:
            room = min(1.0, (interval + 1) - jobs[place].arrival_s / shares.h)
            made.rows.append((columns, [shares.lengths[column] / shares.h for column in columns], max(0.0, room)))
    for place, (job, columns) in enumerate(zip(jobs, ended, strict=True)):
        due = (job.deadline_s or 0.0) if late else 0.0
        end = size + place
        made.rows.append(([*columns, end], [*(shares.lengths[each] for each in columns), -1.0], due - job.arrival_s))
        made.rows.append(([*columns, end], [*(shares.values[each] for each in columns), -1.0], due))
    return made
