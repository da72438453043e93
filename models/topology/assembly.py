"""From the figures of an optimizer (link counts, ring shares, arc flows) to a design that a person can read."""

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from ddlopt.models.errors import SolverError
from ddlopt.models.topology.instance import TopologyInstance
from ddlopt.models.topology.permutations import hops_of
from ddlopt.models.topology.planes import colour_planes
from ddlopt.models.topology.solution import Path, Ring, Route, TopologyDesign

NEGLIGIBLE = 1e-9
"""Fractions of a pair's traffic or of a group's gradient below this are dropped and the others scaled up."""

Pair = tuple[int, int]
PathFlows = Mapping[Pair, Sequence[tuple[Path, float]]]


def decompose(arcs: Sequence[Pair], flow: npt.ArrayLike, demand: npt.ArrayLike) -> dict[Pair, list[tuple[Path, float]]]:
    """Path flows of every ordered pair from a source-aggregated arc flow.

    For each source paths are peeled off backwards from each target along the arc with most flow left; cycles met on the
    way are cancelled. Each peel empties an arc or serves a demand, so a source has at most arcs + targets of them.

    Parameters
    ----------
    arcs : sequence of (int, int)
        m ordered pairs of servers.
    flow : (n, m) array
        Flow of each source on each arc, conserved up to solver tolerance.
    demand : (n, n) array
        What each source sends to each target, in the unit of ``flow``.

    Returns
    -------
    dict (source, target) -> list of (path, amount)
        For every positive demand; the amounts sum to the demand, whatever the noise in ``flow``.

    Raises
    ------
    SolverError
        If a target with demand cannot be reached over ``arcs``.
    """
    flow, demand = np.asarray(flow, dtype=float), np.asarray(demand, dtype=float)
    flows: dict[Pair, list[tuple[Path, float]]] = {}
    for source in range(len(demand)):
        targets = [int(t) for t in np.flatnonzero(demand[source] > 0) if t != source]
        if not targets:
            continue
        peeled = _peel(source, arcs, flow[source], {t: float(demand[source, t]) for t in targets})
        for target in targets:
            paths, wanted = peeled[target], float(demand[source, target])
            found = sum(paths.values())
            if found <= 0:
                # All of it drowned in the solver's tolerance: any path will do.
                paths, found = {_shortest_path(source, target, arcs): 1.0}, 1.0
            flows[source, target] = [(path, amount * wanted / found) for path, amount in paths.items()]
    return flows


def _peel(
    source: int, arcs: Sequence[Pair], flow: npt.NDArray[np.float64], demand: Mapping[int, float]
) -> dict[int, dict[Path, float]]:
    """Paths of one source by target, with the amounts found in ``flow``."""
    tolerance = NEGLIGIBLE * sum(demand.values())
    into: dict[int, dict[int, float]] = defaultdict(dict)
    for (i, j), amount in zip(arcs, flow.tolist(), strict=True):
        if amount > tolerance and j != source:
            into[j][i] = into[j].get(i, 0.0) + amount

    def take(walk: Sequence[int], amount: float) -> None:
        """Lower the flow of every arc of a walk that is listed backwards."""
        for j, i in pairwise(walk):
            into[j][i] -= amount
            if into[j][i] <= tolerance:
                del into[j][i]

    def least(walk: Sequence[int]) -> float:
        return min(into[j][i] for j, i in pairwise(walk))

    peeled: dict[int, dict[Path, float]] = {target: {} for target in demand}
    for target, wanted in demand.items():
        walk, left = [target], wanted
        while left > tolerance:
            here = walk[-1]
            if here == source:
                amount = min(left, least(walk))
                path = tuple(reversed(walk))
                peeled[target][path] = peeled[target].get(path, 0.0) + amount
                take(walk, amount)
                left, walk = left - amount, [target]
            elif not into[here]:
                if here == target:
                    break
                # What leaves this server never came in: noise.
                del into[walk[-2]][here]
                walk.pop()
            else:
                before = max(into[here], key=into[here].__getitem__)
                if before in walk:
                    start = walk.index(before)
                    cycle = [*walk[start:], before]
                    take(cycle, least(cycle))
                    del walk[start + 1 :]
                else:
                    walk.append(before)
    return peeled


def _shortest_path(source: int, target: int, arcs: Sequence[Pair]) -> Path:
    following: dict[int, list[int]] = defaultdict(list)
    for i, j in arcs:
        following[i].append(j)
    before, queue = {source: source}, deque([source])
    while queue and target not in before:
        here = queue.popleft()
        for j in following[here]:
            if j not in before:
                before[j] = here
                queue.append(j)
    if target not in before:
        raise SolverError(
            f"server {target} must get traffic from server {source}, but no links lead from one to the other"
        )
    path = [target]
    while path[-1] != source:
        path.append(before[path[-1]])
    return tuple(reversed(path))


def assemble(
    instance: TopologyInstance,
    links: Mapping[Pair, int],
    rings: Sequence[tuple[int, tuple[int, ...], float]],
    paths: PathFlows,
) -> TopologyDesign:
    """Put a design together.

    A ring whose hops are split over several paths becomes several rings of one path per hop: the hops' path
    distributions are laid side by side over [0, 1] and cut wherever one of them changes path (comonotone coupling).
    Each hop keeps its distribution, hence every link its load, with at most (number of paths - hops + 1) rings.

    Parameters
    ----------
    instance : TopologyInstance
    links : mapping (i, j) -> count
        Ordered pairs for one-way optics; each undirected pair once with i < j for duplex.
    rings : sequence of (group, members in ring order, share)
        Shares are relative within a group.
    paths : mapping (source, target) -> sequence of (path, relative weight)
        For pairs with model-parallel traffic and for ring hops; a pair without entry takes its direct link.

    Raises
    ------
    SolverError
        If a pair has neither path nor link, a group no ring, or duplex links cannot be spread over ``degree`` planes.
    """
    laid = {pair: int(count) for pair, count in sorted(links.items()) if count > 0}
    joined = set(laid) | ({(j, i) for i, j in laid} if instance.optics == "duplex" else set())

    def distribution(pair: Pair) -> list[tuple[Path, float]]:
        """Paths of a pair with fractions that sum to one, the largest first."""
        given = paths.get(pair) or ([(pair, 1.0)] if pair in joined else [])
        total = sum(weight for _, weight in given)
        if not total > 0:
            raise SolverError(f"'{instance.name}': server {pair[0]} has neither a path nor a link to server {pair[1]}")
        kept = [(tuple(path), weight) for path, weight in given if weight > NEGLIGIBLE * total]
        rest = sum(weight for _, weight in kept)
        return sorted(((path, weight / rest) for path, weight in kept), key=lambda item: (-item[1], item[0]))

    routes = []
    for source, target in zip(*np.nonzero(instance.traffic_bytes), strict=True):
        spread = distribution((int(source), int(target)))
        routes.append(
            Route(
                source=int(source),
                target=int(target),
                paths=tuple(path for path, _ in spread),
                fractions=tuple(fraction for _, fraction in spread),
            )
        )
    planes: tuple[tuple[Pair, ...], ...] = ()
    if instance.optics == "duplex":
        coloured = colour_planes(instance.servers, laid, instance.degree)
        if coloured is None:
            count = sum(laid.values())
            raise SolverError(
                f"'{instance.name}': no {instance.degree} matchings were found that hold all {count} links"
            )
        planes = coloured
    return TopologyDesign(
        instance=instance.name,
        instance_digest=instance.digest,
        links=tuple((i, j, count) for (i, j), count in laid.items()),
        planes=planes,
        rings=_coupled(instance, rings, distribution),
        routes=tuple(routes),
    )


def _coupled(
    instance: TopologyInstance,
    rings: Sequence[tuple[int, tuple[int, ...], float]],
    distribution: Callable[[Pair], list[tuple[Path, float]]],
) -> tuple[Ring, ...]:
    """Rings with one path per hop, equal ones merged, shares of each group scaled to sum to one."""
    shares: list[dict[tuple[tuple[int, ...], tuple[Path, ...]], float]] = [{} for _ in instance.allreduce_groups]
    for group, members, share in rings:
        if share <= NEGLIGIBLE:
            continue
        hops = [distribution(hop) for hop in hops_of(members)]
        for taken, width in _couple(hops):
            key = tuple(members), taken
            shares[group][key] = shares[group].get(key, 0.0) + share * width
    found = []
    for group, by_ring in enumerate(shares):
        kept = {key: share for key, share in by_ring.items() if share > NEGLIGIBLE * sum(by_ring.values())}
        if not kept:
            raise SolverError(f"'{instance.name}': allreduce_groups[{group}] got no ring")
        total = sum(kept.values())
        for (ring, taken), share in kept.items():
            found.append(Ring(group=group, members=ring, share=share / total, paths=taken))
    return tuple(found)


def _couple(distributions: Sequence[Sequence[tuple[Path, float]]]) -> list[tuple[tuple[Path, ...], float]]:
    """Comonotone coupling: joint choices of one path per hop with probabilities that keep every marginal."""
    ends = [np.cumsum([weight for _, weight in spread]) for spread in distributions]
    cuts = np.unique(np.concatenate(ends).clip(0, 1))
    cuts = cuts[np.diff(cuts, append=2.0) > NEGLIGIBLE]
    lows, highs = np.concatenate([[0.0], cuts[:-1]]), cuts
    pieces = []
    for low, high in zip(lows.tolist(), highs.tolist(), strict=True):
        middle = (low + high) / 2
        taken = tuple(
            spread[min(int(np.searchsorted(end, middle)), len(spread) - 1)][0]
            for spread, end in zip(distributions, ends, strict=True)
        )
        pieces.append((taken, high - low))
    return pieces
