"""Rings on a tree network without flows: which links separate the workers of a job, in one slot or in many."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple

import pyomo.environ as pyo

from ddlopt.models.linear import linear
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.rings.rings import separating_links
from ddlopt.models.tolerances import NEGLIGIBLE_COEFFICIENT, let_pass

Moment = tuple[int, ...]
"""The end of an index: (slot,) in a model of many slots, () in that of one."""
Terms = list[tuple[float, Any]]


class Cut(NamedTuple):
    """Servers that a link separates from the others, or the whole cluster.

    ``inner`` are the cuts directly within it, by place in their list, and ``own`` its servers in none of them. The
    bandwidth is infinite where there is no one link.
    """

    servers: tuple[int, ...]
    bandwidth_bytes_per_s: float
    inner: tuple[int, ...]
    own: tuple[int, ...]


def scarce_cuts(instance: SchedulingInstance, wanted_bytes_per_s: float) -> list[Cut]:
    """The cuts of a tree network whose links carry less than that, and the whole cluster.

    Any two are nested or disjoint, for each is the side of its link with fewer servers.
    """
    narrowest: dict[tuple[int, ...], float] = {}
    for link in separating_links(instance):
        if wanted_bytes_per_s > let_pass(link.bandwidth_bytes_per_s):
            narrowest[link.below] = min(narrowest.get(link.below, inf), link.bandwidth_bytes_per_s)
    return nested_cuts(narrowest, instance.server_count)


def nested_cuts(bandwidth: Mapping[tuple[int, ...], float], servers: int) -> list[Cut]:
    """Cuts by their servers, smaller ones first, and the whole cluster; any two must be nested or disjoint."""
    found: list[Cut] = []
    outermost: list[int] = []
    everybody = tuple(range(servers))
    for mine in [*sorted(bandwidth, key=lambda cut: (len(cut), cut)), everybody]:
        own = set(mine)
        inner = [cut for cut in outermost if found[cut].servers[0] in own]
        for cut in inner:
            own -= set(found[cut].servers)
        outermost = [cut for cut in outermost if cut not in inner] + [len(found)]
        found.append(Cut(mine, bandwidth.get(mine, inf), tuple(inner), tuple(sorted(own))))
    return found


class TreeCuts:
    """Binaries ``inside[i, u]`` and ``split[i, u]`` of jobs with a ring, for all cuts u but the last, the cluster.

    In a model of many slots they end with the slot, as all that is said here of ``workers[i, s]``.

    Parameters
    ----------
    cuts : sequence of Cut
    rates : mapping
        Job with a ring of several workers -> bytes/s of the ring.
    room : mapping or (I, S) array
        Workers of a job that each server holds, at most its largest width.
    widths : mapping
        Job -> its widths, increasing.
    moments : mapping
        Job -> when it may run.
    """

    def __init__(
        self,
        cuts: Sequence[Cut],
        rates: Mapping[int, float],
        room: Any,
        widths: Mapping[int, Sequence[int]],
        moments: Mapping[int, Sequence[Moment]],
    ) -> None:
        self.cuts, self.rates, self.room, self.widths, self.moments = cuts, rates, room, widths, moments
        self._cluster = len(cuts) - 1
        self._inner = {
            (i, u): own
            for i in rates
            for u, cut in enumerate(cuts)
            if (own := [c for c in cut.inner if self.holds(i, c)])
        }

    def holds(self, job: int, u: int) -> int:
        """Workers of a job that a cut holds, at most its largest width."""
        return min(sum(int(self.room[job][s]) for s in self.cuts[u].servers), self.widths[job][-1])

    def add(self, block: pyo.Block, running: Callable[[int, int, Moment], Any]) -> None:
        """Add the binaries and their rows; ``running`` gives the variable of a job, a width and a moment."""
        pairs = [(i, u) for i in self.rates for u in range(self._cluster) if self.holds(i, u)]
        block.JOB_CUTS = pyo.Set(initialize=self._indexed(pairs), doc="job, cut with room for it")
        block.inside = pyo.Var(block.JOB_CUTS, domain=pyo.Binary, doc="all workers of the job are within the cut")
        block.split = pyo.Var(block.JOB_CUTS, domain=pyo.Binary, doc="some, but not all of them are")
        for i, u, *moment in block.JOB_CUTS:
            if self.rates[i] > let_pass(self.cuts[u].bandwidth_bytes_per_s):
                block.split[i, u, *moment].fix(0)

        @block.Constraint(block.JOB_CUTS, doc="workers within a cut are all of the job, or its link separates them")
        def workers_make_a_cut(b: Any, i: int, u: int, *moment: int) -> Any:
            holds, split = self.holds(i, u), min(self.holds(i, u), self.widths[i][-1] - 1)
            terms = [(1.0, b.workers[i, s, *moment]) for s in self.cuts[u].servers if self.room[i][s]]
            return linear([*terms, (-holds, b.inside[i, u, *moment]), (-split, b.split[i, u, *moment])]) <= 0

        self._add_nesting(block, running)
        self._add_bandwidths(block)

    def _indexed(self, keys: Iterable[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Keys that begin with a job, at all its moments."""
        return [(*key, *moment) for key in keys for moment in self.moments[key[0]]]

    def _add_nesting(self, block: pyo.Block, running: Callable[[int, int, Moment], Any]) -> None:
        """What a cut says of those directly within it; the last cut, the whole cluster, has all workers of its jobs."""
        cluster, inner, widths = self._cluster, self._inner, self.widths

        def touched(b: Any, i: int, u: int, moment: Moment, factor: float) -> Terms:
            """Some workers of job i are within cut u."""
            if u == cluster:
                return [(factor, running(i, w, moment)) for w in widths[i]]
            return [(factor, b.inside[i, u, *moment]), (factor, b.split[i, u, *moment])]

        @block.Constraint(
            self._indexed((i, u, c) for (i, u), own in inner.items() for c in own),
            doc="a job with workers in a cut has some in that around it, and is within no sibling if it is split",
        )
        def cuts_are_nested(b: Any, i: int, u: int, c: int, *moment: int) -> Any:
            terms = [(1.0, b.inside[i, other, *moment]) for other in inner[i, u]]
            return linear([*terms, (1.0, b.split[i, c, *moment]), *touched(b, i, u, moment, -1.0)]) <= 0

        @block.Constraint(
            self._indexed(inner),
            doc="what is within a smaller cut is within the larger one; in the cluster only widths that one holds",
        )
        def inside_is_nested(b: Any, i: int, u: int, *moment: int) -> Any:
            terms = [(1.0, b.inside[i, c, *moment]) for c in inner[i, u]]
            if u < cluster:
                return linear([*terms, (-1.0, b.inside[i, u, *moment])]) <= 0
            largest = max(self.holds(i, c) for c in inner[i, u])
            return linear([*terms, *((-1.0, running(i, w, moment)) for w in widths[i] if w <= largest)]) <= 0

        @block.Constraint(
            self._indexed((i, u) for i, u in inner if not any(self.room[i][s] for s in self.cuts[u].own)),
            doc="a job in several of the cuts within u splits two of them at least, or as many as hold its width",
        )
        def rings_split_several(b: Any, i: int, u: int, *moment: int) -> Any:
            terms = [(2.0, b.inside[i, c, *moment]) for c in inner[i, u]]
            terms += [(1.0, b.split[i, c, *moment]) for c in inner[i, u]]
            if u < cluster:
                return linear([*terms, (-2.0, b.inside[i, u, *moment]), (-1.0, b.split[i, u, *moment])]) >= 0
            return linear([*terms, *((-self._fewest(i, w), running(i, w, moment)) for w in widths[i])]) >= 0

        outside = (
            (i, u, s)
            for i in self.rates
            for u, cut in enumerate(self.cuts)
            for s in cut.own
            if self.room[i][s] and ((i, u) in inner or (u < cluster and len(cut.own) > 1))
        )

        @block.Constraint(
            self._indexed(outside),
            doc="servers in no smaller cut have workers only of jobs that are not all within one",
        )
        def own_servers_are_outside(b: Any, i: int, u: int, s: int, *moment: int) -> Any:
            room = float(self.room[i][s])
            terms = [(room, b.inside[i, c, *moment]) for c in inner.get((i, u), ())]
            return linear([(1.0, b.workers[i, s, *moment]), *terms, *touched(b, i, u, moment, -room)]) <= 0

    def _fewest(self, job: int, width: int) -> float:
        """The least number of outermost cuts that the workers take if not all are in one of them; else 2."""
        fullest = sorted((self.holds(job, c) for c in self._inner[job, self._cluster]), reverse=True)
        return max(2.0, 1.0 + sum(held < width for held in accumulate(fullest)))

    def _add_bandwidths(self, block: pyo.Block) -> None:
        moments = sorted({moment for i in self.rates for moment in self.moments[i]})

        @block.Constraint(
            [(u, *moment) for u in range(self._cluster) for moment in moments],
            doc="a ring takes each separating link once",
        )
        def rings_fit(b: Any, u: int, *moment: int) -> Any:
            limit = let_pass(self.cuts[u].bandwidth_bytes_per_s)
            splits = [(i, b.split[i, u, *moment]) for i in self.rates if (i, u, *moment) in b.JOB_CUTS]
            shares = [(self.rates[i] / limit, variable) for i, variable in splits if not variable.fixed]
            if sum(share for share, _ in shares) <= 1:
                return pyo.Constraint.Skip
            return linear([pair for pair in shares if pair[0] > NEGLIGIBLE_COEFFICIENT]) <= 1

    def start(self, block: pyo.Block, used: Mapping[tuple[int, ...], Iterable[int]]) -> None:
        """Give the binaries their values, for the servers that each job uses at each moment."""
        for i, u, *moment in block.JOB_CUTS:
            mine, servers = set(used.get((i, *moment), ())), set(self.cuts[u].servers)
            block.inside[i, u, *moment].set_value(int(bool(mine) and mine <= servers))
            if not block.split[i, u, *moment].fixed:
                block.split[i, u, *moment].set_value(int(bool(mine & servers) and not mine <= servers))
