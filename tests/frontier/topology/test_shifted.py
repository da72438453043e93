"""Trees of a few roots, shifted to all others: shifts that keep links, and times at the bound of the cut."""

import json
import random
from fractions import Fraction
from math import gcd

import numpy as np
import pytest
from volume import for_each, seeds, slow

import ddlopt
from ddlopt.frontier.topology.collective.arborescence import least_arborescence
from ddlopt.frontier.topology.collective.rings import Rings
from ddlopt.frontier.topology.collective.shares import Column, best_shares
from ddlopt.frontier.topology.collective.shifted import Shifted
from ddlopt.frontier.topology.collective.shifts import shifts
from ddlopt.instances import generators
from ddlopt.models.topology import CollectiveInstance
from ddlopt.models.topology.collective.bounds import exact_collective_bound
from ddlopt.models.topology.collective.evaluate import evaluate_collective
from ddlopt.models.topology.collective.paths import loads, shortest
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.collective.forest import Forest
from ddlopt.solvers.topology.collective.spanning import least_spanning

LIMITS = Limits(time_s=60.0, gap=0.0)


def made(network, collective, **options):
    return generators.generate("topology", "collective", network=network, collective=collective, **options)


def boxes_drawn(seed, collective):
    """Boxes that are the same inside, joined by a switch or by rings of boxes; links differ by direction."""
    draw = random.Random(seed)
    boxes, size, values = draw.randrange(2, 5), draw.randrange(1, 4), draw.choice(((1.0,), (1.0, 2.0, 3.0)))
    count, switch = boxes * size, draw.random() < 0.5
    inside = [(i, (i + 1) % size) for i in range(size) if size > 1]
    inside += [(i, j) for i in range(size) for j in range(size) if i != j and draw.random() < 0.4]
    each = {arc: draw.choice(values) for arc in inside}
    links = {(b * size + i, b * size + j): value for b in range(boxes) for (i, j), value in each.items()}
    for place in range(size):
        if place and draw.random() < 0.5:
            continue
        value, further = draw.choice(values), draw.randrange(1, boxes)
        for box in range(boxes):
            node = box * size + place
            if switch:
                links[node, count] = links[count, node] = value
            else:
                links[node, (node + size) % count] = value
                links[node, (node + further * size) % count] = value
    told = [{"source": i, "target": j, "bytes_per_s": value} for (i, j), value in links.items()]
    return CollectiveInstance(
        name=f"boxes-{seed}", accelerators=count, switches=int(switch), links=told, collective=collective,
        collective_bytes=draw.choice((1.0, 6.0)),
    ), boxes  # fmt: skip


def seconds(instance, plan):
    found = evaluate_collective(instance, plan, exact=True)
    assert found.feasible
    return found.objective


@for_each("seed", seeds(8, 200))
def test_boxes_that_are_alike(seed):
    """All shifts keep all links, and shifted trees are as fast as any; an all-reduce at least as those of columns."""
    for collective in ("all-gather", "reduce-scatter", "all-reduce"):
        instance, boxes = boxes_drawn(seed, collective)
        known = shifts(instance)
        assert len(known.images) >= boxes
        assert len(known.images) * len(known.roots) == instance.accelerators
        for image in known.images.tolist():
            assert sorted(image) == list(range(instance.nodes))
            for (i, j), each in instance.bandwidth.items():
                assert instance.bandwidth[image[i], image[j]] == each
                assert known.orbits[image[i], image[j]] == known.orbits[i, j]
        assert sorted({row[root] for row in known.images.tolist() for root in known.roots}) == list(
            range(instance.accelerators)
        )
        found = seconds(instance, Shifted().solve(instance, LIMITS).solution)
        if collective == "all-reduce":
            assert float(found) == pytest.approx(ddlopt.solve(instance, "tree-columns").objective, rel=1e-6)
        else:
            assert found == exact_collective_bound(instance)


@pytest.mark.parametrize(
    ("network", "options", "many"),
    [
        ("torus", {"dimensions": "3x4"}, 12),
        ("torus", {"dimensions": "2x3x4"}, 24),
        ("torus", {"dimensions": "4x8", "twist": 4}, 8),
        ("hypercube", {"accelerators": 8}, 8),
        ("circulant", {"accelerators": 10, "offsets": "1,3"}, 10),
        ("dgx-a100", {"boxes": 3}, 24),
        ("rails", {"boxes": 2}, 16),
        ("fat-tree", {"degree": 4}, 16),
        ("ndv2", {"boxes": 3}, 3),
        ("mi250", {}, 2),
    ],
)
def test_networks_have_the_shifts_that_they_are_made_of(network, options, many):
    instance = made(network, "all-gather", **options)
    assert len(shifts(instance).images) == many
    plan = Shifted().solve(instance, LIMITS).solution
    assert seconds(instance, plan) == exact_collective_bound(instance)


def test_one_link_that_differs_is_seen():
    ring = made("two-way-ring", "all-gather", accelerators=6)
    data = json.loads(ring.to_json())
    data["links"][0]["bytes_per_s"] = 1e8
    other = CollectiveInstance.from_data(data)
    assert shifts(other) is None
    assert "can be shifted" in Shifted().refuses(other)
    for collective in ("broadcast", "all-to-all"):
        assert collective in Shifted().refuses(made("two-way-ring", collective, accelerators=6))


@for_each("seed", seeds(80, 1000))
def test_least_trees_in_floating_point_are_those_in_fractions(seed):
    draw = random.Random(seed)
    count = draw.randrange(2, 9)
    costs = [[float(draw.choice((0, 1, 2, 3, 0.5, 50))) for _ in range(count)] for _ in range(count)]
    root = draw.randrange(count)
    before = least_spanning(np.array(costs), root)
    assert before[root] == -1
    for node in range(count):
        way = [node]
        while way[-1] != root:
            way.append(before[way[-1]])
            assert len(way) <= count
    cost = sum(costs[near][node] for node, near in enumerate(before) if near >= 0)
    assert cost == least_arborescence(costs, root)[0]


@pytest.mark.parametrize(("twist", "hops"), [(0, 6), (4, 4)])
def test_a_twisted_torus_is_rounder(twist, hops):
    """4 x 8: the farthest of 32 is 2 + 4 steps away, and 4 where the way around shifts by 4 (Camara et al. 2010)."""
    torus = made("torus", "all-gather", dimensions="4x8", twist=twist)
    costs, _ = shortest(torus, dict.fromkeys(torus.bandwidth, 1.0))
    assert round(max(max(row) for row in costs)) == hops
    assert sorted(len(torus.heads[v]) for v in range(32)) == [4] * 32


def test_a_fat_tree_is_a_fat_tree():
    """k = 4: sixteen accelerators, eight switches above them, eight above these, four on top; no narrow cut."""
    instance = made("fat-tree", "all-to-all", degree=4)
    assert (instance.accelerators, instance.switches, len(instance.links)) == (16, 20, 2 * 48)
    assert all(len(instance.heads[switch]) == 4 for switch in range(16, 36))
    assert exact_collective_bound(instance) == Fraction(15, 16)  # each sends 15/16 GB over its own link


@for_each("seed", range(12))
def test_rings_of_generators_are_the_best_mixture_of_these(seed):
    instance, _ = boxes_drawn(seed, "all-gather")
    count = instance.accelerators
    if instance.switches or count < 3:
        return
    rings = [[(v, (v + p) % count) for v in range(count)] for p in range(1, count) if gcd(p, count) == 1]
    rings = [each for each in rings if all(hop in instance.bandwidth for hop in each)]
    result = Rings(orders="generators", forwarding=False).solve(instance, LIMITS)
    if not rings:
        assert result.solution is None
        return
    around = (count - 1) / count
    columns = [Column((), {link: n * around for link, n in loads(each).items()}) for each in rings]
    floor = float(exact_collective_bound(instance)) / instance.collective_bytes
    wanted = best_shares(instance.bandwidth, {(): Fraction(1)}, columns, floor).seconds * instance.collective_bytes
    assert result.objective == pytest.approx(wanted, rel=1e-6)
    assert result.scope_bound == pytest.approx(wanted, rel=1e-6)


def test_a_circulant_is_made_for_its_generators():
    instance = made("circulant", "all-gather", accelerators=16, offsets="1,3,5")
    assert seconds(instance, ddlopt.solve(instance, "generator-rings").solution) == Fraction(15, 48)
    assert seconds(instance, ddlopt.solve(instance, "ring-in-order").solution) == Fraction(15, 16)


@pytest.mark.parametrize(
    ("network", "options"),
    [
        ("torus", {"dimensions": "8x16"}),
        slow("torus", {"dimensions": "32x32"}),
        slow("dgx-a100", {"boxes": 128}),
    ],
)
def test_many_accelerators_at_the_bound(network, options):
    instance = made(network, "all-gather", **options)
    result = ddlopt.solve(instance, time_limit=600)
    assert "by shifted" in result.message
    assert seconds(instance, result.solution) == exact_collective_bound(instance)


def test_packing_takes_over_where_nothing_can_be_shifted():
    instance = made("random", "all-gather", accelerators=66, degree=2)
    result = ddlopt.solve(instance, time_limit=60)
    assert "by forest" in result.message
    assert result.objective == Forest().solve(instance, LIMITS).objective == float(exact_collective_bound(instance))
