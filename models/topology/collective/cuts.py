r"""The worst cut of a network for all-gather, and the narrowest one, as fractions.

A set S of nodes that holds k accelerators and leaves one out has to send out what these k have: with
:math:`B^+(S)` bytes per second of all links out of S, an all-gather of M bytes over N accelerators takes at least
:math:`\frac{M}{N} \cdot \frac{k}{B^+(S)}`. The worst S is found by Newton's method on cuts (Dinkelbach): at the
ratio U of the best S so far, a source sends 1 / U to each accelerator. If N / U do not arrive at an accelerator v, the
nodes on the source's side of a minimum cut are a set without v with a larger ratio; otherwise no set without v has.
Ratios only grow, so accelerators are looked at once each. A maximum flow for each of N accelerators and each of the few
improvements: :math:`O(N)` flows.

Where the numbers fit into 64 bits, flows are exact and the set is the worst one. Elsewhere capacities are rounded, and
the ratio, which is calculated from the set in fractions, still is that of a set: a valid bound.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import gcd, lcm

import numpy as np

from ddlopt.models.max_flow import LARGEST_TOTAL, FlowNetwork
from ddlopt.models.remembered import remembered
from ddlopt.models.topology.collective.instance import CollectiveInstance

Capacities = Mapping[tuple[int, int], Fraction]


@dataclass(frozen=True)
class Cut:
    """Nodes on one side, and what their links out can carry.

    Parameters
    ----------
    side : frozenset of int
    value : Fraction
        What the cut is judged by: the ratio U, or bytes per second out of it.
    """

    side: frozenset[int]
    value: Fraction


def capacities(instance: CollectiveInstance, backwards: bool = False) -> dict[tuple[int, int], Fraction]:
    """Bytes per second of each pair of nodes, or of the network with all links turned round."""
    return {((j, i) if backwards else (i, j)): Fraction(each) for (i, j), each in instance.bandwidth.items()}


def whole(figures: Iterable[Fraction]) -> tuple[list[int], Fraction]:
    """The least whole numbers in the same proportions, and what each is multiplied with to have the figure."""
    known = list(figures)
    below = lcm(*(each.denominator for each in known))
    scaled = [int(each * below) for each in known]
    shared = gcd(*scaled) or 1
    return [each // shared for each in scaled], Fraction(shared, below)


@remembered
def worst_gather_cut(instance: CollectiveInstance) -> Cut:
    """The set with the largest ratio U, of accelerators in it to bytes per second out of it."""
    return worst_cut(instance.nodes, instance.accelerators, capacities(instance))


@remembered
def worst_scatter_cut(instance: CollectiveInstance) -> Cut:
    """The same with all links turned round: reduce-scatter is an all-gather backwards."""
    return worst_cut(instance.nodes, instance.accelerators, capacities(instance, backwards=True))


@remembered
def narrowest_cut(instance: CollectiveInstance) -> Cut:
    """The set with accelerators inside and outside whose links out have the fewest bytes per second."""
    forward, backward, found = capacities(instance), capacities(instance, backwards=True), []
    for node in range(1, instance.accelerators):
        found.append(_least(instance.nodes, forward, 0, node))
        side, value = _least(instance.nodes, backward, 0, node)
        found.append((frozenset(range(instance.nodes)) - side, value))
    return Cut(*min(found, key=lambda each: (each[1], sorted(each[0]))))


@remembered
def broadcast_cut(instance: CollectiveInstance) -> Cut:
    """The narrowest set with the root inside and an accelerator outside."""
    return least_out(instance.nodes, instance.accelerators, capacities(instance), instance.root or 0)


def least_out(nodes: int, accelerators: int, network: Capacities, root: int) -> Cut:
    """The set with the root inside and an accelerator outside whose links out have the fewest bytes per second."""
    found = (_least(nodes, network, root, node) for node in range(accelerators) if node != root)
    return Cut(*min(found, key=lambda each: (each[1], sorted(each[0]))))


def out_of(side: frozenset[int], network: Capacities) -> Fraction:
    """Bytes per second of all links out of a set."""
    return sum((each for (i, j), each in network.items() if i in side and j not in side), Fraction(0))


def worst_cut(nodes: int, accelerators: int, network: Capacities) -> Cut:
    """The set of nodes with the largest ratio; see the module."""
    everything = frozenset(range(nodes))
    arriving = [
        sum((each for (_, j), each in network.items() if j == node), Fraction(0)) for node in range(accelerators)
    ]
    order = sorted(range(accelerators), key=lambda node: (arriving[node], node))
    best = Cut(everything - {order[0]}, (accelerators - 1) / arriving[order[0]])
    flows = _Flows(nodes, network)
    for node in order:
        while True:
            side = flows.short_side(node, accelerators, 1 / best.value)
            if side is None:
                break
            ratio = Fraction(sum(each < accelerators for each in side)) / out_of(side, network)
            if ratio <= best.value:
                break
            best = Cut(side, ratio)
    return best


class _Flows:
    """Flows from a source that sends as much to each accelerator."""

    def __init__(self, nodes: int, network: Capacities) -> None:
        self._nodes = nodes
        self._numbers, self._unit = whole(network.values())
        self._pairs = list(network)

    def short_side(self, sink: int, accelerators: int, sent: Fraction) -> frozenset[int] | None:
        """The source's side of a minimum cut where not all arrives at the sink; None where all does."""
        ratio = sent / self._unit
        numbers, supply = [each * ratio.denominator for each in self._numbers], ratio.numerator
        # Capacities beyond all that is sent never bind and tie with nothing; what is left may be too much for 64 bits.
        shift = max(0, (supply * accelerators).bit_length() - LARGEST_TOTAL.bit_length() + 1)
        numbers = [min(each, supply * accelerators + 1) >> shift for each in numbers]
        supply >>= shift
        tails = np.array([i for i, _ in self._pairs] + [self._nodes] * accelerators)
        heads = np.array([j for _, j in self._pairs] + list(range(accelerators)))
        flows = FlowNetwork(self._nodes + 1, tails, heads, self._nodes, sink)
        cut = flows.minimum_cut(np.array(numbers + [supply] * accelerators, dtype=np.int64))
        if cut.value >= supply * accelerators:
            return None
        return frozenset(np.flatnonzero(cut.source_side[:-1]).tolist())


def _least(nodes: int, network: Capacities, source: int, sink: int) -> tuple[frozenset[int], Fraction]:
    """A minimum cut between two nodes, and its capacity as a fraction."""
    numbers, _ = whole(network.values())
    tails, heads = np.array([i for i, _ in network]), np.array([j for _, j in network])
    # No more arrives than leads out of the source or into the sink. What can carry more is in no minimum cut, and has
    # one unit more, so that it ties with none; what then is left may be too much for 64 bits.
    ends = ((tails, source), (heads, sink))
    least = min(sum(each for each, end in zip(numbers, which, strict=True) if end == node) for which, node in ends)
    shift = max(0, (least * len(numbers)).bit_length() - LARGEST_TOTAL.bit_length() + 1)
    kept = np.array([min(each, least + 1) >> shift for each in numbers], dtype=np.int64)
    cut = FlowNetwork(nodes, tails, heads, source, sink).minimum_cut(kept)
    side = frozenset(np.flatnonzero(cut.source_side).tolist())
    return side, out_of(side, network)
