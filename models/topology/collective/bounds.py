"""Times below which no plan for a collective is, from cuts and from how far bytes have to go."""

from collections import deque
from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import networkx as nx

from ddlopt.models.remembered import remembered
from ddlopt.models.tolerances import ROUNDING
from ddlopt.models.topology.collective.cuts import (
    Cut,
    broadcast_cut,
    capacities,
    narrowest_cut,
    out_of,
    worst_gather_cut,
    worst_scatter_cut,
)
from ddlopt.models.topology.collective.instance import CollectiveInstance

_BANDWIDTHS = 16
"""Largest ones that are tried as what joins parts; networks have a few kinds of links."""


def collective_bound(instance: CollectiveInstance) -> float:
    """:func:`exact_collective_bound`, rounded down."""
    return float(exact_collective_bound(instance)) * (1 - ROUNDING)


def exact_collective_bound(instance: CollectiveInstance) -> Fraction:
    """Seconds below which no plan is: :func:`bandwidth_bound`, and :func:`latency_bound` besides.

    A plan takes the sum of both kinds of time, and neither is less than its bound.
    """
    return bandwidth_bound(instance) + latency_bound(instance)


def latency_bound(instance: CollectiveInstance) -> Fraction:
    """Seconds that the steps of the longest way take at least: some bytes have to get from each root to the farthest.

    In an all-reduce some tree has its sum at one root, which parts of it have to reach from everywhere, and from there
    it has to get everywhere: the root for which both ways are shortest.
    """
    return least_hops(instance) * Fraction(instance.step_s) if instance.step_s else Fraction(0)


@remembered
def least_hops(instance: CollectiveInstance) -> int:
    """Links of the longest way of any plan at least."""
    roots = range(instance.accelerators) if instance.root is None else (instance.root,)
    if instance.collective == "reduce-scatter":
        return max(max(_far(instance.tails, instance.accelerators, root)) for root in roots)
    out = [max(_far(instance.heads, instance.accelerators, root)) for root in roots]
    if instance.collective == "all-reduce":
        return min(
            a + max(_far(instance.tails, instance.accelerators, root)) for a, root in zip(out, roots, strict=True)
        )
    return max(out)


@remembered
def bandwidth_bound(instance: CollectiveInstance) -> Fraction:
    r"""Seconds for which the busiest link carries bytes in any plan, at least.

    * all-gather, reduce-scatter: the worst cut (:mod:`~ddlopt.models.topology.collective.cuts`), which trees attain
      wherever as much leads into each switch as out of it;
    * broadcast: M over the narrowest cut between the root and an accelerator, which trees attain likewise (Edmonds);
    * all-reduce: all M bytes have to leave each set that has accelerators inside and outside, as part of sums or as
      sums. And of b parts with accelerators all but one send each byte's sum out and get it back: it leaves parts
      2 (b - 1) times, and enters them as often. Parts are single accelerators, and what fast links join;
    * all-to-all: of each such set with k accelerators, k (N - k) M / N bytes leave, for the sets found for all-gather
      and reduce-scatter and these parts; and bytes times links on shortest paths, over all bandwidth.
    """
    size, count = Fraction(instance.collective_bytes), instance.accelerators
    if instance.collective == "all-gather":
        return size / count * worst_gather_cut(instance).value
    if instance.collective == "reduce-scatter":
        return size / count * worst_scatter_cut(instance).value
    if instance.collective == "broadcast":
        return size / broadcast_cut(instance).value
    if instance.collective == "all-reduce":
        return size * max(1 / narrowest_cut(instance).value, *map(partial(_passed, instance), parts(instance)))
    return size / count * max(_least_sent(instance), _bytes_times_links(instance))


def parts(instance: CollectiveInstance) -> list[list[frozenset[int]]]:
    """Single accelerators, and the nodes that links of at least some bandwidth join, for a few bandwidths.

    Of each such partition the parts with accelerators, two or more.
    """
    found = [[frozenset({node}) for node in range(instance.accelerators)]]
    for least in sorted(set(instance.bandwidth.values()), reverse=True)[:_BANDWIDTHS]:
        graph = nx.Graph()
        graph.add_nodes_from(range(instance.nodes))
        graph.add_edges_from(link for link, each in instance.bandwidth.items() if each >= least)
        with_some = [frozenset(part) for part in nx.connected_components(graph) if min(part) < instance.accelerators]
        if len(with_some) > 1:
            found.append(with_some)
    return found


def _passed(instance: CollectiveInstance, parts: list[frozenset[int]]) -> Fraction:
    """How often an all-reduce has to leave parts, or enter them, over bytes per second out of them, or into them."""
    place = {node: number for number, part in enumerate(parts) for node in part}
    between = {link: each for link, each in capacities(instance).items() if place.get(link[0]) != place.get(link[1])}
    out = sum((each for (i, _), each in between.items() if i in place), Fraction(0))
    into = sum((each for (_, j), each in between.items() if j in place), Fraction(0))
    return 2 * (len(parts) - 1) / min(out, into)


def sets(instance: CollectiveInstance) -> Iterator[list[frozenset[int]]]:
    """The sets of nodes by which :func:`bandwidth_bound` bounds, one or the parts of an all-reduce at a time."""
    match instance.collective:
        case "all-gather":
            yield [worst_gather_cut(instance).side]
        case "reduce-scatter":
            yield [worst_scatter_cut(instance).side]
        case "broadcast":
            yield [broadcast_cut(instance).side]
        case "all-reduce":
            yield [narrowest_cut(instance).side]
            yield from parts(instance)
        case "all-to-all":
            for side in _sides(instance):
                yield [side]


def _least_sent(instance: CollectiveInstance) -> Fraction:
    """The largest of pairs that a set separates over its bytes per second, over a few sets."""
    network, best = capacities(instance), Fraction(0)
    for side in _sides(instance):
        inside = sum(node < instance.accelerators for node in side)
        best = max(best, inside * (instance.accelerators - inside) / out_of(side, network))
    return best


def _sides(instance: CollectiveInstance) -> list[frozenset[int]]:
    """Sets with accelerators inside and outside, for an all-to-all."""
    everything = frozenset(range(instance.nodes))
    cuts: list[Cut] = [worst_gather_cut(instance), worst_scatter_cut(instance)]
    found = {cut.side for cut in cuts} | {part for each in parts(instance) for part in each}
    found |= {everything - side for side in found}
    some = [side for side in found if 0 < sum(node < instance.accelerators for node in side) < instance.accelerators]
    return sorted(some, key=sorted)


def _bytes_times_links(instance: CollectiveInstance) -> Fraction:
    """Links on shortest paths between all pairs, over all bandwidth."""
    everybody = range(instance.accelerators)
    hops = sum(sum(_far(instance.heads, instance.accelerators, source)) for source in everybody)
    return hops / sum(capacities(instance).values(), Fraction(0))


def _far(heads: dict[int, list[int]], accelerators: int, source: int) -> list[int]:
    """Links on shortest paths from one accelerator to each that it reaches."""
    far, waiting = {source: 0}, deque([source])
    while waiting:
        node = waiting.popleft()
        for other in heads.get(node, ()):
            if other not in far:
                far[other] = far[node] + 1
                waiting.append(other)
    return [links for node, links in far.items() if node < accelerators]
