"""Weights of gossip as tables."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, label, section
from ddlopt.models.gossip.network import Network
from ddlopt.models.gossip.weights.instance import GossipWeights, WeightsInstance


def table(instance: WeightsInstance, solution: GossipWeights) -> Iterator[Section]:
    """Sections of a set of weights."""
    ends = [edge_names(instance.network, edge) for edge in range(len(instance.network.edges))]
    if solution.matrix is not None:
        rows = [
            (label(i, _name(instance.network, i)), label(j, _name(instance.network, j)), repr(float(weight)))
            for i, row in enumerate(solution.matrix)
            for j, weight in enumerate(row)
            if weight
        ]
        yield section("Entries of the matrix", ("row", "column", "weight"), rows)
    elif instance.goal == "pairwise":
        halves = zip(ends, solution.weights[::2], solution.weights[1::2], strict=True)
        calls = [(one, other, repr(there), repr(back)) for (one, other), there, back in halves]
        yield section("Links", ("one", "other", "one calls other", "other calls one"), calls)
    else:
        rows = [(one, other, repr(weight)) for (one, other), weight in zip(ends, solution.weights, strict=True)]
        yield section("Links", ("one", "other", "weight"), rows)


def edge_names(network: Network, edge: int) -> tuple[str, str]:
    """Number and name of both ends of a link."""
    i, j = network.edges[edge]
    return label(i, _name(network, i)), label(j, _name(network, j))


def _name(network: Network, node: int) -> str:
    return network.names[node] if network.names else ""
