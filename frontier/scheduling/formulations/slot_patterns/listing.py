"""All patterns of a slot that matter: how fast each job can be at once, and the places where it is."""

import itertools
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.scheduling.formulations.slot_patterns.options import Option, TooManyError, options
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.rings.rings import ring_rate
from ddlopt.models.tolerances import let_pass

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST_ROWS = 500_000
"""Choices of some of the jobs that are kept at a time."""
_ROUNDING = 1e-10
"""Part of a gain by which sums may be off."""


class Listing(NamedTuple):
    """The patterns of a slot in which given jobs may run; none is as fast for all jobs, and as cheap, as another.

    ``gains`` (P, J) are mini-batches by pattern and job, no more than the job wants; ``cost`` (P,) the price of the
    energy; ``chosen[p]`` is the option of each job, None where it does not run.
    """

    jobs: tuple[int, ...]
    gains: Floats
    cost: Floats
    chosen: list[tuple[Option | None, ...]]

    def no_slower(self, gains: Floats, cost: float) -> int | None:
        """A pattern with at least the gains (J,), of those the cheapest; None where there is none."""
        fits = (self.gains >= gains * (1 - _ROUNDING)).all(axis=1)
        return int(np.argmin(np.where(fits, self.cost, np.inf))) if fits.any() else None


def listing(instance: SchedulingInstance, jobs: tuple[int, ...]) -> Listing:
    r"""The patterns of a slot in which ``jobs`` may run.

    With contention, all limits :math:`c_s` on the split jobs of each server are gone through. Within a limit, a split
    job has the speed of the largest :math:`c_s` of its servers, and no less in truth; with the limit that the schedule
    itself reaches, it has just that.

    Raises
    ------
    TooManyError
        If there are too many to be listed.
    """
    found = _known(instance, jobs)
    if isinstance(found, str):
        raise TooManyError(found)
    return found


@lru_cache(maxsize=256)
def _known(instance: SchedulingInstance, jobs: tuple[int, ...]) -> Listing | str:
    """The listing, or why there is none."""
    try:
        return _listed(instance, jobs)
    except TooManyError as error:
        return str(error)


def _listed(instance: SchedulingInstance, jobs: tuple[int, ...]) -> Listing:
    everything = [options(instance, job) for job in jobs]
    parts = [_Slot(instance, jobs, everything, limits) for limits in _limits(instance, jobs, everything)]
    gains, cost, chosen = _joined([part.patterns() for part in parts])
    kept = undominated(np.column_stack((gains, -cost)))
    return Listing(jobs, gains[kept], cost[kept], [chosen[p] for p in kept.tolist()])


Found = tuple[Floats, Floats, list[tuple[Option | None, ...]]]


def _joined(found: Sequence[Found]) -> Found:
    gains, cost, chosen = zip(*found, strict=True)
    return np.concatenate(gains), np.concatenate(cost), list(itertools.chain(*chosen))


def _alike(instance: SchedulingInstance) -> list[list[int]]:
    """Servers that can be exchanged for each other."""
    if instance.needs_rings:
        return [[server] for server in range(instance.server_count)]
    kinds: dict[tuple[float, ...], list[int]] = {}
    for server, row in enumerate(np.column_stack((instance.capacity, instance.idle_w, instance.worker_w)).tolist()):
        kinds.setdefault(tuple(row), []).append(server)
    return list(kinds.values())


def _limits(
    instance: SchedulingInstance, jobs: Sequence[int], everything: Sequence[Sequence[Option]]
) -> Iterator[tuple[int, ...]]:
    """Split jobs that each server may have: of equal servers, the first have most."""
    if instance.contention is None:
        yield ()
        return
    groups = _alike(instance)
    levels: list[list[int]] = []
    for group in groups:
        most = sum(any(o.split and any(s == group[0] for s, _ in o.workers) for o in each) for each in everything)
        speeds = [tuple(instance.rate(job, 2, 2, level) for job in jobs) for level in range(1, most + 2)]
        # Of levels that are as slow as each other, the highest stands for all.
        levels.append([k for k in range(most, 0, -1) if k == most or speeds[k - 1] != speeds[k]] + [0])
    each_group = [itertools.combinations_with_replacement(k, len(g)) for k, g in zip(levels, groups, strict=True)]
    for parts in itertools.product(*each_group):
        limits = [0] * instance.server_count
        for group, part in zip(groups, parts, strict=True):
            for server, limit in zip(group, part, strict=True):
                limits[server] = limit
        # Nobody is split on one server alone.
        if sum(limit > 0 for limit in limits) != 1:
            yield tuple(limits)


class _Slot:
    """Choices of jobs one after the other, with what is left of everything."""

    def __init__(
        self,
        instance: SchedulingInstance,
        jobs: tuple[int, ...],
        everything: Sequence[Sequence[Option]],
        limits: tuple[int, ...],
    ) -> None:
        self.instance, self.jobs, self.limits = instance, jobs, limits
        network = instance.network if instance.needs_rings else None
        self.arcs = [] if network is None else sorted(network.arcs)
        bandwidth = [] if network is None else [network.arcs[arc] for arc in self.arcs]
        self.room: Floats = np.concatenate((instance.capacity.ravel(), np.array(bandwidth), np.array(limits, float)))
        self.price = instance.energy_price_per_j * instance.slot_s
        choices = [self._choices(place, each) for place, each in enumerate(everything)]
        self.options, self.gains, self.takes, self.costs = zip(*choices, strict=True)
        self.speeds = [np.unique(gains, return_inverse=True) for gains in self.gains]

    def _choices(self, place: int, each: Sequence[Option]) -> tuple[list[Option | None], Floats, Floats, Floats]:
        """The options of a job that no other one is better than in all respects, to be idle first."""
        job, kept, rows = self.jobs[place], [], []
        wanted = self.instance.jobs[job].minibatches
        for option in each:
            level = 0
            if self.limits and option.split:
                level = max(self.limits[server] for server, _ in option.workers)
                if min(self.limits[server] for server, _ in option.workers) == 0:
                    continue
            gain = min(wanted, self.instance.rate(job, option.width, len(option.workers), level))
            watts = sum(count * self.instance.worker_w[server] for server, count in option.workers)
            rows.append((gain, -float(watts) * self.price, *(-self._takes(job, option)).tolist()))
            kept.append(option)
        rows.append((0.0,) * (2 + len(self.room)))
        table = np.array(rows)
        good = undominated(table)
        good = good[np.argsort(table[good, 0], kind="stable")]
        chosen: list[Option | None] = [None if p == len(kept) else kept[p] for p in good.tolist()]
        return chosen, table[good, 0], -table[good, 2:], -table[good, 1]

    def _takes(self, job: int, option: Option) -> Floats:
        taken = np.zeros((self.instance.server_count, len(self.instance.resources)))
        split = np.zeros(len(self.limits))
        for server, count in option.workers:
            taken[server] = count * self.instance.demand[job]
            if self.limits and option.split:
                split[server] = 1.0
        rate, passes = ring_rate(self.instance.jobs[job]), dict(option.passes)
        return np.concatenate((taken.ravel(), [rate * passes.get(arc, 0) for arc in self.arcs], split))

    def patterns(self) -> Found:
        """All patterns, but those that are slower than another one for one job and no faster for the others.

        Raises
        ------
        TooManyError
            If there are too many.
        """
        left, cost = self.room[None, :], np.zeros(1)
        picks: Ints = np.zeros((1, 0), dtype=np.int64)
        fast: Ints = np.zeros((1, 0), dtype=np.int64)
        # Patterns are all that there are: what the check lets pass is one of them.
        least = self.room - let_pass(self.room)
        for place, (_, speed_of) in enumerate(self.speeds):
            parts, count = [], 0
            for pick, takes in enumerate(self.takes[place]):
                after = left - takes
                fits = (after >= least).all(axis=1)
                count += int(fits.sum())
                if count > 4 * MOST_ROWS:
                    raise TooManyError(f"there are more than {MOST_ROWS} patterns of a slot")
                parts.append((after[fits], cost[fits] + self.costs[place][pick], np.flatnonzero(fits), pick))
            picked = np.concatenate([np.full(len(part[2]), part[3]) for part in parts])
            before = np.concatenate([part[2] for part in parts])
            left, cost = np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
            picks = np.column_stack((picks[before], picked))
            fast = np.column_stack((fast[before], speed_of[picked]))
            kept = self._different(fast, left, cost)
            left, cost, picks, fast = left[kept], cost[kept], picks[kept], fast[kept]
            if len(kept) > MOST_ROWS:
                raise TooManyError(f"there are more than {MOST_ROWS} patterns of a slot")
        cost = cost + self._idle(left)
        best = _best_of_equals(fast, cost)
        picks, fast, cost = picks[best], fast[best], cost[best]
        if not self.price:
            raised = _cannot_be_raised(fast, [len(values) for values, _ in self.speeds])
            picks, fast, cost = picks[raised], fast[raised], cost[raised]
        gains = np.column_stack([values[fast[:, place]] for place, (values, _) in enumerate(self.speeds)])
        kept = undominated(np.column_stack((gains, -cost)))
        chosen = [tuple(self.options[j][p] for j, p in enumerate(row)) for row in picks[kept].tolist()]
        return gains[kept], cost[kept], chosen

    def _idle(self, left: Floats) -> Floats:
        """Price of the power of servers that somebody is on."""
        if not (self.price and self.instance.idle_w.any()):
            return np.zeros(len(left))
        shape = self.instance.capacity.shape
        used = (left[:, : shape[0] * shape[1]] < self.room[: shape[0] * shape[1]]).reshape(-1, *shape).any(axis=2)
        price: Floats = used @ self.instance.idle_w * self.price
        return price

    def _different(self, fast: Ints, left: Floats, cost: Floats) -> Ints:
        """One of all that only exchange equal servers, or places that leave the same."""
        shape, marks = self.instance.capacity.shape, left.copy()
        resources = shape[0] * shape[1]
        for group in _alike(self.instance):
            if len(group) < 2:
                continue
            columns = [list(range(s * shape[1], (s + 1) * shape[1])) for s in group]
            if self.limits:
                columns = [[*row, resources + len(self.arcs) + s] for row, s in zip(columns, group, strict=True)]
                same = [list(g) for _, g in itertools.groupby(range(len(group)), key=lambda p: self.limits[group[p]])]
            else:
                same = [list(range(len(group)))]
            for members in same:
                chosen = np.array([columns[place] for place in members])
                block = left[:, chosen]
                order = np.zeros(block.shape[:2], dtype=np.int64)
                order += np.lexsort(np.moveaxis(block, 2, 0)[::-1], axis=1)
                marks[:, chosen] = np.take_along_axis(block, order[:, :, None], axis=1)
        return _unique(np.column_stack((fast, marks, cost)) if self.price else np.column_stack((fast, marks)))


def _unique(rows: Floats) -> Ints:
    """Places of one row of each kind, rounding errors apart."""
    scale = np.abs(rows).max(axis=0)
    whole = np.round(rows / np.where(scale > 0, scale, 1.0) * 2**30).astype(np.int64)
    # Rows of equal hashes stand together; if different rows share one, some duplicates are left, and that is all.
    with np.errstate(over="ignore"):
        factors = np.random.default_rng(0).integers(1, 2**62, whole.shape[1]) * 2 + 1
        order = np.argsort((whole * factors).sum(axis=1), kind="stable")
    whole = whole[order]
    fresh = np.concatenate(([True], (whole[1:] != whole[:-1]).any(axis=1)))
    return np.sort(order[fresh])


def _codes(picks: Ints, counts: Sequence[int]) -> tuple[Ints, Ints]:
    """A number for every row, and what one more in each column adds to it."""
    steps = np.cumprod([1, *counts[:-1]])
    return picks @ steps, steps


def _best_of_equals(picks: Ints, cost: Floats) -> Ints:
    """The cheapest of each kind of row."""
    codes, _ = _codes(picks, (picks.max(axis=0) + 1).tolist())
    order = np.lexsort((cost, codes))
    fresh = np.concatenate(([True], codes[order][1:] != codes[order][:-1]))
    return order[fresh]


def _cannot_be_raised(picks: Ints, counts: Sequence[int]) -> npt.NDArray[np.bool_]:
    """Which rows have no other row that is larger in one place and the same in all others."""
    codes, steps = _codes(picks, counts)
    ordered = np.sort(codes)
    kept = np.ones(len(codes), dtype=bool)
    for place, count in enumerate(counts):
        for more in range(1, count):
            asked = codes + more * steps[place]
            found = ordered[np.minimum(np.searchsorted(ordered, asked), len(ordered) - 1)] == asked
            kept &= ~(found & (picks[:, place] + more < count))
    return kept


def undominated(rows: Floats) -> Ints:
    """Places of the rows that no other one is at least as large as everywhere; of equal ones the first."""
    order = np.lexsort((np.arange(len(rows)), -rows.sum(axis=1)))
    rest, kept = order, []
    while len(rest):
        best = rest[0]
        kept.append(best)
        rest = rest[1:]
        rest = rest[(rows[rest] > rows[best]).any(axis=1)]
    return np.sort(np.array(kept, dtype=np.int64))
