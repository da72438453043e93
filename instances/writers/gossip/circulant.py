"""Circulant graphs as tables."""

from collections.abc import Iterator

from ddlopt.instances.writers.layout import Section, listed, section
from ddlopt.models.gossip.circulant.instance import CirculantGraph, CirculantInstance


def table(instance: CirculantInstance, solution: CirculantGraph) -> Iterator[Section]:
    """Sections of a graph."""
    weights = [repr(each) for each in solution.weights] or ["1"] * len(solution.generators)
    rows = [
        (generator, instance.links(generator), weight)
        for generator, weight in zip(solution.generators, weights, strict=True)
    ]
    yield section("Generators", ("generator", "links of a worker", "weight"), rows)
    n = instance.nodes
    peers = [
        (worker, listed(sorted({(worker + sign * each) % n for each in solution.generators for sign in (1, -1)})))
        for worker in range(n)
    ]
    yield section("Whom each worker talks to", ("worker", "peers"), peers)
