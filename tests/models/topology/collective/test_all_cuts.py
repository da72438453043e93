"""Sparse digraphs with unequal links and switches, up to twelve nodes: bounds against all cuts, and trees at them."""

import random
from fractions import Fraction

import numpy as np
import pytest
from volume import for_each, seeds

from ddlopt.models.topology import CollectiveInstance
from ddlopt.models.topology.collective.bounds import exact_collective_bound, least_hops
from ddlopt.models.topology.collective.evaluate import evaluate_collective
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.collective.forest import Forest

BANDWIDTHS = ((1,), (1, 2, 3), (1, 7, 12, 300), (2, 3, 5, 7, 11), (1, 10**6))


def sparse(seed, collective, balanced):
    """A closed walk over all nodes and a few more links; with ``balanced`` those of switches are the same both ways."""
    draw = random.Random(seed)
    nodes = draw.randrange(3, 13)
    accelerators = nodes - draw.randrange(min(4, nodes - 1))
    values, order = draw.choice(BANDWIDTHS), draw.sample(range(nodes), nodes)
    arcs = list(zip(order, order[1:] + order[:1], strict=True))
    arcs += [tuple(draw.sample(range(nodes), 2)) for _ in range(draw.randrange(nodes))]
    links = {}
    for arc in arcs:
        links[arc] = draw.choice(values)
        if balanced and max(arc) >= accelerators:
            links[arc[::-1]] = links[arc]
    return CollectiveInstance(
        name=f"sparse-{seed}", accelerators=accelerators, switches=nodes - accelerators, collective=collective,
        links=[{"source": i, "target": j, "bytes_per_s": b} for (i, j), b in sorted(links.items())],
        collective_bytes=draw.choice((1, 6, 10**9)),
        root=draw.randrange(accelerators) if collective == "broadcast" else None,
    )  # fmt: skip


def ratios(instance):
    """Of every set with accelerators inside and outside: how many are in it, and what leaves it and what enters it."""
    nodes = instance.nodes
    inside = (np.arange(1 << nodes)[:, None] >> np.arange(nodes) & 1).astype(bool)
    count = inside[:, : instance.accelerators].sum(axis=1)
    kept = (count > 0) & (count < instance.accelerators)
    inside, count = inside[kept], count[kept]
    out, into = np.zeros(len(inside), np.int64), np.zeros(len(inside), np.int64)
    for link in instance.links:
        source, target = inside[:, link.source], inside[:, link.target]
        out += int(link.bytes_per_s) * (source & ~target)
        into += int(link.bytes_per_s) * (target & ~source)
    return inside, count, out, into


@pytest.mark.parametrize("balanced", [True, False])
@for_each("seed", seeds(4, 400))
def test_bounds_are_those_of_the_worst_of_all_cuts(seed, balanced):
    for collective in ("all-gather", "reduce-scatter", "broadcast", "all-reduce"):
        instance = sparse(seed, collective, balanced)
        inside, count, out, into = ratios(instance)
        size, all_of_them = Fraction(instance.collective_bytes), instance.accelerators
        bound = exact_collective_bound(instance)
        if collective == "all-gather":
            worst = int(np.argmax(count / out))
            assert bound == size / all_of_them * Fraction(int(count[worst]), int(out[worst]))
        elif collective == "reduce-scatter":
            worst = int(np.argmax(count / into))
            assert bound == size / all_of_them * Fraction(int(count[worst]), int(into[worst]))
        elif collective == "broadcast":
            assert bound == size / int(out[inside[:, instance.root]].min())
        else:
            assert bound >= size / int(out.min())


@for_each("seed", seeds(4, 400))
def test_trees_are_at_the_worst_of_all_cuts(seed):
    for collective in ("all-gather", "reduce-scatter", "broadcast"):
        instance = sparse(seed, collective, balanced=True)
        found = evaluate_collective(instance, Forest().solve(instance, Limits(60.0)).solution, exact=True)
        assert found.feasible
        assert found.objective == exact_collective_bound(instance)
        assert found.details["hops"] >= least_hops(instance)
