"""Our own heuristic: local search on links, with routes and rings balanced anew for every trial."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.errors import InfeasibleError, NoSolutionError, NotApplicableError, OptionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL, ROUNDING
from ddlopt.models.topology import TopologyDesign, TopologyInstance, evaluate
from ddlopt.models.topology.bounds import lower_bound
from ddlopt.models.topology.hop_bytes import least_hop_bytes
from ddlopt.solvers import chain
from ddlopt.solvers.heuristic import Answer, Asked, Clock, Heuristic
from ddlopt.solvers.topology.balance.balance import Balance, Effort, Job, balance
from ddlopt.solvers.topology.balance.path_kernels import seed_kernels
from ddlopt.solvers.topology.expander import Expander
from ddlopt.solvers.topology.link_exchange.annealing import anneal_congestion, anneal_volume
from ddlopt.solvers.topology.link_exchange.moves import hop_volume
from ddlopt.solvers.topology.link_exchange.starts import (
    LinkStart,
    circulant_starts,
    closed_rings,
    design_start,
    finder_starts,
    kautz_start,
    random_start,
    ring_traffic,
    spanning_groups,
)

_QUICK = Effort(sweeps=24, sharpest=300.0, kicks=2, columns=32, tolerance=1e-3)
"""Balance by which starts are told apart: a thousandth decides among them."""
_FINAL = Effort(sweeps=100, sharpest=3000.0, kicks=20, columns=128, tolerance=1e-6)
"""Balance of the answer: to a tenth of the gap at which methods stop by default."""


@dataclass(frozen=True)
class Budgets:
    """What a search spends, and why so much."""

    final_share: float = 5.0
    """Times as long as the longest quick balance the final one takes."""
    late_s: float = 0.3
    """After the time is up the final balance is left out if it would take more."""
    rounds: tuple[tuple[float, bool], ...] = ((0.3, False), (0.3, False), (0.2, True), (0.2, True))
    """Parts of the trials on congestion, each from the best start of the pool, and whether fine: the later ones begin
    at links that are good already."""
    promising: float = 1.01
    """Links this close to the incumbent, as quickly balanced, are worth an accurate balance."""
    symmetric_trials: int = 500
    """Sets of generators that are judged, for jobs that look the same from every server."""
    few_servers: int = 8
    """Servers up to which other starts are as good as symmetric ones."""
    many_servers: int = 128
    """Beyond them the first step may take longer than people wait; up to as many it takes a second or two."""
    opening: float = 0.2
    """Part of a short time for lifts, and for symmetric rings: one of them is a start as good as others."""
    hop_moves: int = 60_000
    """Moves that exchange ends, judged by hops: on few servers more of them find nothing."""
    hop_work: float = 8e8
    """Moves times squared servers, about what a second or two is enough for."""
    trials: float = 1.5e5
    """Moves judged by congestion at eight servers, for some ten seconds."""
    ringed_trials: float = 3e4
    """The same with rings, whose balance takes five times as long."""
    polished_flows: int = 2500
    """Flows times arcs up to which a linear program routes in a second."""
    reached: float = 1e-5
    """Relative distance from the bound at which there is nothing left to search for."""


_BUDGETS = Budgets()


STEPS = "topology/link-exchange"
"""What packages add: *designs*, a balance and how many were judged, and *links* to start from."""


@dataclass(frozen=True)
class LinkExchange(Heuristic, uses=("seed", "start")):
    r"""Search over links whose every state is realisable and is judged by near-optimal routes and ring shares.

    1. *Symmetry*: for jobs with all-reduces that look the same from every server the design of
       the method ``symmetric-rings``, which often meets the bound.
    2. *Starts*: all-reduce rings closed over all servers on every number of the d ports with random links on the
       others, circulants, a generalised Kautz graph, TopologyFinder's designs, the design given and, in dense traffic
       over one-way links, links with a group of symmetries. Both are the frontier's.
    3. *Hops*: simulated annealing of the traffic's hop count (:func:`.hop_volume`), which over the number of links
       bounds the congestion from below and, in dense traffic on many servers, is nearly attained. Rings that are kept
       closed cost nothing: any ring of n servers loads n links.
    4. *Congestion*: simulated annealing of the congestion itself as :func:`.balance_kernel` estimates it, from the
       best starts.
    5. *Routes*: the best links are balanced accurately, by linear programming (:func:`.polish`) where that is small.

    Moves exchange the ends of two links (three, in a closed one-way ring) or the places of two servers; degrees, planes
    and closed rings stay as they are. Budgets are counts, so that a seed gives the same design every time unless a time
    limit strikes.

    Parameters
    ----------
    effort : float
        Factor on all budgets; 1 is some ten seconds at 16 servers and a minute at 128.
    """

    effort: float = 1.0

    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.topology.balance.kernel",
        "ddlopt.solvers.topology.balance.ring_kernels",
        "ddlopt.solvers.topology.balance.path_kernels",
        "ddlopt.solvers.topology.link_exchange.moves",
        "ddlopt.solvers.topology.routing",
    )

    def __post_init__(self) -> None:
        if not self.effort > 0:
            raise OptionError(f"effort must be positive, got {self.effort}")

    @property
    def name(self) -> str:
        """``link-exchange``."""
        return "link-exchange"

    def kernels_for(self, instance: TopologyInstance) -> tuple[str, ...]:
        """Without all-reduce groups there are no rings to be made; lifts are for dense traffic over one-way links."""
        unused = set() if instance.allreduce_groups else {"ddlopt.solvers.topology.balance.ring_kernels"}
        own = (module for module in self.kernels if module not in unused)
        return (*own, *chain.kernels_of_steps(STEPS, instance))

    def answer(self, instance: TopologyInstance, seed: int, clock: Clock, start: Any) -> Answer[TopologyDesign]:
        """The best design found, also after Ctrl-C; details: starts and moves tried, the routing gap on its links."""
        seed_kernels(seed)
        search = _Search(Job(instance), np.random.default_rng(seed), clock, self.effort)
        search.run(seed, start)
        return search.finished()


class _Search:
    """The state of one run: the incumbent and the counts."""

    def __init__(self, job: Job, rng: np.random.Generator, clock: Clock, effort: float) -> None:
        self.job, self.rng, self.clock, self.effort = job, rng, clock, effort
        self.instance = job.instance
        self.bound_s = lower_bound(self.instance)
        self.best: Balance | None = None
        self.first: TopologyDesign | None = None
        self.pool: list[tuple[float, LinkStart]] = []
        self.starts = self.hop_moves = self.trials = 0
        self.longest_s = 0.0
        n, d = self.instance.servers, self.instance.degree
        flows = np.count_nonzero(job.traffic.any(axis=1)) * n * d
        self.polishable = flows <= _BUDGETS.polished_flows
        duplex = self.instance.optics == "duplex"
        self.least_volume = least_hop_bytes(job.traffic, d, duplex) * (1 + ROUNDING)

    @property
    def done(self) -> bool:
        """Whether the bound is reached or the time is up; never before there is a design."""
        if self.best is None:
            return self.first is not None and self.clock.expired
        time_s = self.instance.iteration_time_s(self.best.congestion_bytes)
        return self.clock.expired or time_s <= self.bound_s * (1 + _BUDGETS.reached)

    def run(self, seed: int, given: TopologyDesign | None) -> None:
        """All steps, until the bound is reached or the time is up."""
        if self.instance.servers > _BUDGETS.many_servers and given is None:
            self._begin_somehow(seed)
        if self.instance.allreduce_groups and self.instance.servers > _BUDGETS.few_servers:
            self._begin_alike(seed)
            if self.done:
                return
        for start in self._starts(seed, given):
            self.starts += 1
            self._judge(start)
            if self.done:
                return
            fewer = self._fewer_hops(start)
            if fewer is not start:
                self._judge(fewer)
            if self.done:
                return
        for share, fine in _BUDGETS.rounds:
            if not self.pool:
                break
            _, start = self.pool.pop(0)
            self._less_congestion(start, share, fine)
            if self.done:
                return

    def _begin_somehow(self, seed: int) -> None:
        """Tell a design that takes no search: of a few hundred servers with dense traffic the first step takes long."""
        with suppress(NotApplicableError):
            self.first, _ = Expander().answer(self.instance, seed, self.clock, None)
            checked = evaluate(self.instance, self.first)
            if checked.feasible and checked.objective is not None:
                self.clock.report(float(checked.objective), self.bound_s, self.first)

    def _opening(self) -> Callable[[], bool]:
        """Whether the part of the time for a first step, from now on, is up."""
        until = self.clock.elapsed_s + _BUDGETS.opening * self.clock.left_s
        return lambda: self.clock.expired or self.clock.elapsed_s >= until

    def _begin_alike(self, seed: int) -> None:
        """Keep a design that looks the same from every server, where the job does."""
        trials = max(1, round(_BUDGETS.symmetric_trials * self.effort))
        for step in chain.steps(STEPS, "designs"):
            found, _ = step.make(self.instance, seed, Asked(self._opening()), trials)
            if found is not None:
                self._keep(found)

    def _starts(self, seed: int, given: TopologyDesign | None) -> Iterator[LinkStart]:
        instance, d = self.instance, self.instance.degree
        duplex = instance.optics == "duplex"
        if given is not None:
            start = design_start(instance, given, "given")
            if start is not None:
                yield start
        if is_dense(instance):
            for step in chain.steps(STEPS, "links"):
                # Draws of its own: the other starts of a seed stay as they are.
                rng = np.random.default_rng([seed, instance.servers])
                yield from step.make(instance, rng, self.effort, self._opening())
        closed = []
        if spanning_groups(instance) and not (duplex and instance.servers % 2):
            closed = [k for k in range(d, 0, -1) if not duplex or k > 1]
            if instance.servers > 32:
                closed = closed[:1] + closed[-1:] * (len(closed) > 1)
        yield from self._random_starts([*closed, 0])
        yield from finder_starts(instance, seed)
        yield from circulant_starts(self.job, self.rng)
        kautz = kautz_start(instance)
        if kautz is not None:
            yield kautz
        for _ in range(3 if instance.servers <= 32 else 0):
            yield from self._random_starts([*closed, 0])

    def _random_starts(self, closed: Sequence[int]) -> Iterator[LinkStart]:
        for k in closed:
            start = random_start(self.instance, k, self.rng)
            if start is not None:
                yield start

    def _known_rings(self, start: LinkStart) -> dict[int, list[tuple[int, ...]]]:
        rings = dict(start.rings)
        if len(start.cycles):
            closed = closed_rings(start.heads, start.cycles, self.instance.optics == "duplex")
            rings.update(dict.fromkeys(spanning_groups(self.instance), closed))
        return rings

    def _judge(self, start: LinkStart, effort: Effort = _QUICK) -> None:
        """Balance the links of ``start`` and note them, as incumbent if they are."""
        began = self.clock.elapsed_s
        try:
            found = balance(self.job, start.heads, self.job.orders(self._known_rings(start), effort.columns), effort)
        except InfeasibleError:
            return
        self.longest_s = max(self.longest_s, self.clock.elapsed_s - began)
        rings: dict[int, list[tuple[int, ...]]] = {}
        for group, members, _, _ in sorted(found.rings, key=lambda ring: -ring[2]):
            rings.setdefault(group, []).append(members)
        self.pool.append((found.congestion_bytes, replace(start, rings=rings)))
        self.pool.sort(key=lambda entry: entry[0])
        promising = self.best is None or found.congestion_bytes < self.best.congestion_bytes * _BUDGETS.promising
        self._keep(self._accurate(found) if promising else found)

    def _accurate(self, found: Balance) -> Balance:
        """The same links with rings and routes as good as they are found, by linear programming where that is small."""
        if self.polishable:
            return self._polished(found)
        if self.instance.iteration_time_s(found.congestion_bytes) <= self.bound_s * (1 + _BUDGETS.reached):
            return found
        rings: dict[int, list[tuple[int, ...]]] = {}
        for group, members, _, _ in found.rings:
            rings.setdefault(group, []).append(members)
        accurate = balance(self.job, found.heads, self.job.orders(rings, _FINAL.columns), _FINAL)
        return min(found, accurate, key=lambda each: each.congestion_bytes)

    def _polished(self, found: Balance) -> Balance:
        """The same, routed by linear programming, which is imported with its first use."""
        from ddlopt.solvers.topology.balance.exact import polish

        return polish(found, done=lambda: self.clock.expired)

    def _keep(self, found: Balance) -> None:
        if self.best is not None and found.congestion_bytes >= self.best.congestion_bytes * (1 - IMPROVEMENT_TOL):
            return
        self.best = found
        self.clock.report(self.instance.iteration_time_s(found.congestion_bytes), self.bound_s, found.design)

    def _fewer_hops(self, start: LinkStart) -> LinkStart:
        if hop_volume(start.heads, self.job.traffic, self.instance.host_forwarding) <= self.least_volume:
            return start
        moves = int(self.effort * min(_BUDGETS.hop_moves, _BUDGETS.hop_work / self.instance.servers**2))
        heads, moved = anneal_volume(self.job, start, ring_traffic(self.job, start), moves, self.clock)
        self.hop_moves += moved
        return replace(start, name=f"{start.name}, fewer hops", heads=heads, rings=start.rings)

    def _less_congestion(self, start: LinkStart, share: float, fine: bool) -> None:
        # Trials cost about n^2.35, and more with rings; very small networks have too few neighbours to need many.
        size, ringed = self.instance.servers / 8, bool(len(self.job.sizes))
        budget = _BUDGETS.ringed_trials if ringed else _BUDGETS.trials
        trials = int(self.effort * share * budget * min(size**4, size**-2.35))
        rings = self._known_rings(start)
        heads, tried = anneal_congestion(self.job, start, rings, trials, fine, self.bound_s, self.rng, self.clock)
        self.trials += tried
        self._judge(replace(start, name=f"{start.name}, less congestion", heads=heads))

    def finished(self) -> tuple[TopologyDesign, Mapping[str, Any]]:
        """The design on the best links, accurately routed, and the figures of the run."""
        if self.best is None and self.first is not None:
            return self.first, {"starts": 0}
        if self.best is None:
            raise NoSolutionError(f"'{self.instance.name}': no links were found over which everything can be sent")
        if not self.clock.expired or self.polishable or _BUDGETS.final_share * self.longest_s < _BUDGETS.late_s:
            self._keep(self._accurate(self.best))
        best = self.best
        details = {
            "starts": self.starts,
            "hop_moves": self.hop_moves,
            "congestion_trials": self.trials,
            "routing_gap": 1 - best.bound_bytes / best.congestion_bytes,
        }
        return best.design(), details


def is_dense(instance: TopologyInstance) -> bool:
    """Whether hops of all pairs together stand for those of the traffic: at least half of the pairs have some."""
    n = instance.servers
    return 2 * int(np.count_nonzero(instance.traffic_bytes)) >= n * (n - 1)
