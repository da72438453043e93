"""Metric inequalities separated at the root: solve a relaxation, add what its optimum breaks, repeat."""

import itertools
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import floor, inf

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from ddlopt.frontier.topology.metric.cuts import (
    cut_set_lengths,
    disjunctive_cut,
    least_length_cut,
    neighbourhoods,
    rounded_cut,
)
from ddlopt.frontier.topology.metric.root_relaxation import RootRelaxation
from ddlopt.models.tolerances import BOUND_MARGIN, ROUNDING, WHOLE_TOL
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.formulations.rows.link_cut import Arc, Kind, LinkCut

Lengths = npt.NDArray[np.int64]

_VIOLATED = 1e-4
"""Cuts are added that the congestion breaks by more than this part of it."""
_FRACTIONAL = 0.02
"""A whole number of links is taken for one within this distance."""
# A thousand sets, each a row of the separation.
_ENUMERATED_CUT_SETS = 10
# Rounds of cuts at the root: it ends earlier where they gain nothing.
_PASSES = 20
_GRAIN = 2.0**-16
"""Weights are whole multiples of this many units, so that none is small enough to drown."""
# A tenth above the relaxation: higher ones bind nowhere near.
_HIGH_ENOUGH = 1.1
# Metrics that give facets mostly have small whole lengths.
_METRIC_SCALES = (1, 2, 3, 4)


@dataclass(frozen=True)
class RootRound:
    """What is known after a round: the kind of its cuts, how many were added, and the bound of the relaxation."""

    kind: Kind
    added: int
    bound_bytes: float
    time_s: float


@dataclass(frozen=True)
class RootCuts:
    """The cuts that are tight in the end, and how the bound rose.

    Parameters
    ----------
    cuts : tuple of LinkCut
    first_bound_bytes, bound_bytes : float
        Bounds on the congestion by the relaxation before and after, safe from rounding.
    rounds : tuple of RootRound
    programs : int
        Linear programs solved.
    """

    cuts: tuple[LinkCut, ...]
    first_bound_bytes: float
    bound_bytes: float
    rounds: tuple[RootRound, ...]
    programs: int


@dataclass(frozen=True)
class MetricSeparation:
    r"""Root loop: solve a relaxation, add the inequalities of ``metric_cuts`` that its optimum breaks, repeat.

    The relaxation is that of :class:`MinVolume` or of :class:`MinCongestion`. In dense traffic both have the same
    bound, and the former is several times as fast.

    *Rounded:* lengths are those of cut sets (all of them up to 10 servers, single servers and pairs beyond) and the
    ones by which the metric inequality is most broken or nearest to it, :math:`\max D_\ell` with
    :math:`\sum_a \hat n_a \ell_a = 1` over all metrics, scaled to whole numbers up to 4.

    *Split:* the cut sets. The bounds are those of the relaxation with :math:`y \le k` and with :math:`y \ge k + 1`
    added, and w is their difference.

    *Neighbourhood:* for every server, once for links out and once for links in (duplex: out only), a bound for each
    neighbourhood. The weights are those of the lower convex envelope of the bounds at the current point.

    Every bound of a linear program is the value of its dual solution, made feasible by the bounds of the variables and
    lowered by the most that rounding can matter (Neumaier and Shcherbina), so that cuts may be weaker than need be but
    not stronger.

    Parameters
    ----------
    kinds : tuple of {"rounded", "split", "neighbourhood"}
        In the order in which they are separated.
    rounds : int
        How often each kind is separated; bounds of neighbourhoods are computed afresh in each round.
    most_neighbourhoods : int
        Servers with more choices than this are left out.
    achievable_bytes : float, optional
        A congestion that some design has; cuts may then exclude worse designs.
    flows : bool
        Whether the relaxation is that of :class:`MinCongestion`; without host forwarding it always is.

    References
    ----------
    A. Neumaier, O. Shcherbina, "Safe bounds in linear and mixed-integer linear programming", Math. Program. 99, 2004.
    """

    kinds: tuple[Kind, ...] = ("rounded", "neighbourhood")
    rounds: int = 1
    most_neighbourhoods: int = 400
    achievable_bytes: float | None = None
    flows: bool = False

    def run(self, instance: TopologyInstance, time_s: float | None = None) -> RootCuts:
        """Separate until nothing is broken, the rounds are done or the time is up."""
        return _Loop(self, instance, time_s).run()


class _Loop:
    """One run of the separation."""

    def __init__(self, options: MetricSeparation, instance: TopologyInstance, time_s: float | None) -> None:
        self.options, self.instance = options, instance
        self.started = time.perf_counter()
        self.deadline = inf if time_s is None else self.started + time_s
        self.worst = options.achievable_bytes or inf
        self.relaxation = RootRelaxation(instance, options.flows, deadline=self.deadline)
        self.rounds: list[RootRound] = []

    @property
    def expired(self) -> bool:
        return time.perf_counter() >= self.deadline

    def run(self) -> RootCuts:
        relaxation = self.relaxation
        first = relaxation.solve()
        separate = {"rounded": self.rounded, "split": self.split, "neighbourhood": self.neighbourhood}
        for _ in range(self.options.rounds):
            for kind in self.options.kinds:
                if self.expired:
                    break
                added = separate[kind]()
                self.rounds.append(RootRound(kind, added, relaxation.solve(), time.perf_counter() - self.started))
        last = max([first, relaxation.solve(), *(each.bound_bytes for each in self.rounds)])
        return RootCuts(relaxation.tight_cuts(), first, last, tuple(self.rounds), relaxation.programs)

    def add(self, cuts: list[LinkCut]) -> int:
        """Add those that the present optimum breaks; how many they were."""
        value, counts = self.relaxation.congestion_bytes, self.relaxation.counts
        arcs = {(i, j): float(x) for (i, j), x in np.ndenumerate(counts)}
        broken = []
        for cut in cuts:
            scale = value if cut.bounds_congestion else max(1.0, abs(cut.least))
            if cut.violation(value, arcs) > _VIOLATED * scale:
                broken.append(cut)
        self.relaxation.add(broken)
        return len(broken)

    def rounded(self) -> int:
        total = 0
        for _ in range(_PASSES):
            cuts = []
            for lengths in [*self.cut_sets(), *self.worst_metrics()]:
                k = max(1, floor(float((lengths * self.relaxation.counts).sum()) + WHOLE_TOL))
                cuts.append(rounded_cut(self.instance, lengths, k))
                if self.worst < inf:
                    cuts.append(least_length_cut(self.instance, lengths, self.worst))
            added = self.add([cut for cut in cuts if cut is not None])
            total += added
            if not added or self.expired:
                break
            self.relaxation.solve()
        return total

    def cut_sets(self) -> Iterator[Lengths]:
        n = self.instance.servers
        if n <= _ENUMERATED_CUT_SETS:
            masks = (np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1 == 1
        else:
            single = np.eye(n, dtype=bool)
            pairs = [single[i] | single[j] for i in range(n) for j in range(i)]
            masks = np.concatenate([single, ~single, pairs, ~np.array(pairs)])
        for mask in masks:
            yield cut_set_lengths(mask)

    def worst_metrics(self) -> list[Lengths]:
        """The metric whose inequality is nearest to being broken, in whole numbers of several sizes."""
        n = self.instance.servers
        arcs = list(itertools.permutations(range(n), 2))
        if n > _ENUMERATED_CUT_SETS or not self.instance.host_forwarding:
            return []
        place = {arc: k for k, arc in enumerate(arcs)}
        rows = np.zeros((n * (n - 1) * (n - 2), len(arcs)))
        triples = ((i, k, j) for i, j in arcs for k in range(n) if k not in (i, j))
        for row, (i, k, j) in zip(rows, triples, strict=True):
            row[place[i, j]], row[place[i, k]], row[place[k, j]] = 1, -1, -1
        traffic = np.array([self.instance.traffic_bytes[arc] for arc in arcs])
        capacity = np.array([self.relaxation.counts[arc] for arc in arcs])
        found = linprog(
            -traffic, A_ub=rows, b_ub=np.zeros(len(rows)), A_eq=capacity[None, :], b_eq=[1.0], method="highs"
        )
        if found.x is None or not found.x.any():
            return []
        metrics = []
        for scale in _METRIC_SCALES:
            lengths = np.zeros((n, n), dtype=np.int64)
            lengths[tuple(zip(*arcs, strict=True))] = np.rint(found.x / found.x.max() * scale).astype(np.int64)
            metrics.append(lengths)
        return metrics

    def split(self) -> int:
        cuts = []
        for lengths in self.cut_sets():
            y = float((lengths * self.relaxation.counts).sum())
            k = floor(y)
            if not _FRACTIONAL < y - k < 1 - _FRACTIONAL:
                continue
            if self.expired:
                break
            cut = self.split_cut(lengths, k)
            if cut is not None:
                cuts.append(cut)
        return self.add(cuts)

    def split_cut(self, lengths: Lengths, k: int) -> LinkCut | None:
        relaxation = self.relaxation
        ranges = ((-inf, float(k)), (float(k + 1), inf))
        low, high = (relaxation.bound_within(lengths, *y) for y in ranges)
        if high < low - self.worst or low == high:
            return None
        grain = relaxation.unit * _GRAIN
        slope = round((high - low) / grain) * grain
        bounds = [relaxation.bound_within(lengths, *y, slope=slope) for y in ranges]
        weights = {(int(i), int(j)): slope * int(lengths[i, j]) for i, j in np.argwhere(lengths)}
        return disjunctive_cut("split", weights, bounds)

    def neighbourhood(self) -> int:
        sides = (True,) if self.instance.optics == "duplex" else (True, False)
        tables = {}
        for server in range(self.instance.servers):
            for outwards in sides:
                table = self.bounds_of_neighbourhoods(server, outwards)
                if table:
                    tables[server, outwards] = table
        self.relaxation.solve()
        total = 0
        for _ in range(_PASSES):
            before = self.relaxation.congestion_bytes
            cuts = [self.neighbourhood_cut(*where, table) for where, table in tables.items()]
            added = self.add([cut for cut in cuts if cut is not None])
            total += added
            if not added:
                break
            self.relaxation.solve()
            if self.relaxation.congestion_bytes < before * (1 + _VIOLATED / 10):
                break
        return total

    def bounds_of_neighbourhoods(self, server: int, outwards: bool) -> dict[tuple[int, ...], float]:
        """Bound on the congestion for each neighbourhood that may be as good as known; none if time is up."""
        own = float(self.instance.node_bytes[0 if outwards else 1][server])
        choices = list(neighbourhoods(self.instance, server))
        bounds = {}
        if len(choices) > self.options.most_neighbourhoods:
            return {}
        for choice in choices:
            if self.expired:
                return {}
            by_links = own * (1 - ROUNDING) / len(choice) if choice else (inf if own else 0.0)
            # Where these links alone cannot carry it, a better bound is of no use.
            if by_links < min(self.worst * (1 + BOUND_MARGIN), 2 * self.relaxation.congestion_bytes):
                by_links = max(by_links, self.relaxation.bound_with(server, choice, outwards))
            if by_links <= self.worst * (1 + BOUND_MARGIN):
                bounds[choice] = by_links
        return bounds

    def neighbourhood_cut(self, server: int, outwards: bool, bounds: Mapping[tuple[int, ...], float]) -> LinkCut | None:
        """The cut of the convex envelope of the bounds at the present point; None if it is not broken."""
        relaxation, unit = self.relaxation, self.relaxation.unit
        others = [j for j in range(self.instance.servers) if j != server]
        arcs: list[Arc] = [(server, j) if outwards else (j, server) for j in others]
        present = np.array([relaxation.counts[arc] for arc in arcs])
        finite = {choice: bound for choice, bound in bounds.items() if bound < inf}
        if not finite:
            return None
        members = np.array([[choice.count(j) for j in others] for choice in finite], dtype=float)
        # Bounds far above the present point would only make the weights large.
        values = np.minimum(list(finite.values()), _HIGH_ENOUGH * relaxation.congestion_bytes)
        rows = np.hstack([np.ones((len(members), 1)), members])
        # Where all have d links, weights are free up to a constant: they are kept as small as the bounds differ.
        most = float(values.max() - values.min()) / unit
        found = linprog(
            -np.concatenate([[1.0], present]),
            A_ub=rows,
            b_ub=values / unit,
            bounds=[(None, None), *[(-most, most)] * len(others)],
            method="highs",
        )
        if found.x is None:
            return None
        weights = np.rint(found.x[1:] / _GRAIN) * _GRAIN * unit
        rest = values - members @ weights
        # Fifty units in the last place of a sum over some tens of arcs.
        slack = float(np.abs(members @ np.abs(weights)).max() + values.max()) * 1e-14
        return disjunctive_cut(
            "neighbourhood", dict(zip(arcs, weights.tolist(), strict=True)), [float(rest.min()) - slack]
        )
