"""Bounds of collectives: cuts against all cuts, prices against all trees, and closed forms."""

import math
import random
from fractions import Fraction
from itertools import product

import pytest
from networks_drawn import all_sides, several
from volume import for_each, slow

import ddlopt
from ddlopt.frontier.topology.collective.arborescence import least_arborescence
from ddlopt.frontier.topology.collective.prices import price_bound
from ddlopt.instances import generators
from ddlopt.models.topology import CollectiveInstance
from ddlopt.models.topology.collective.bounds import collective_bound, exact_collective_bound, parts
from ddlopt.models.topology.collective.cuts import capacities, narrowest_cut, out_of, worst_gather_cut


def out(instance, side):
    return sum((Fraction(b) for (i, j), b in instance.bandwidth.items() if i in side and j not in side), Fraction(0))


def into(instance, side):
    return sum((Fraction(b) for (i, j), b in instance.bandwidth.items() if i not in side and j in side), Fraction(0))


@for_each("seed", range(60))
def test_the_worst_cut_is_that_of_all_cuts(seed):
    instance = several(seed + 1)[seed]
    part = Fraction(instance.collective_bytes) / instance.accelerators
    worst = max(inside / out(instance, side) for side, inside in all_sides(instance))
    assert exact_collective_bound(instance) == part * worst
    assert collective_bound(instance) <= part * worst
    cut = worst_gather_cut(instance)
    assert sum(v < instance.accelerators for v in cut.side) / out_of(cut.side, capacities(instance)) == worst


@for_each("seed", range(40))
def test_other_collectives_have_the_cuts_that_bound_them(seed):
    size, count = None, None
    for collective in ("reduce-scatter", "broadcast", "all-reduce"):
        instance = several(seed + 1, collective)[seed]
        size, count = Fraction(instance.collective_bytes), instance.accelerators
        sides = list(all_sides(instance))
        if collective == "reduce-scatter":
            wanted = size / count * max(inside / into(instance, side) for side, inside in sides)
        elif collective == "broadcast":
            wanted = size / min(out(instance, side) for side, _ in sides if 0 in side)
        else:
            narrow = size / min(out(instance, side) for side, _ in sides)
            assert exact_collective_bound(instance) >= narrow
            wanted = max(narrow, *(size * price_of(instance, each) for each in parts(instance)))
        assert exact_collective_bound(instance) == wanted, collective


def price_of(instance, each):
    """The bound of prices of 1 on the links out of parts, or into them."""
    place = {node: number for number, part in enumerate(each) for node in part}
    crossing = [link for link in instance.bandwidth if place.get(link[0]) != place.get(link[1])]
    size = Fraction(instance.collective_bytes)
    return max(
        price_bound(instance, {link: Fraction(1) for link in crossing if link[end] in place}) / size for end in (0, 1)
    )


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"network": "ring", "accelerators": 5}, Fraction(4, 5)),
        ({"network": "two-way-ring", "accelerators": 5}, Fraction(2, 5)),
        ({"network": "complete", "accelerators": 8}, Fraction(1, 8)),
        ({"network": "hypercube", "accelerators": 8}, Fraction(7, 24)),
        ({"network": "torus", "dimensions": "3x3"}, Fraction(2, 9)),
        ({"network": "kautz", "accelerators": 12}, Fraction(11, 24)),
        ({"network": "dgx-a100"}, Fraction(7, 2400)),
        ({"network": "dgx-a100", "boxes": 2}, Fraction(3, 1040)),
        ({"network": "mi250"}, Fraction(7, 2400)),
    ],
)
def test_closed_forms_and_published_values(options, wanted):
    """A vertex of least degree d and unit links: (N - 1) / (N d); boxes as ForestColl has them, GB/s."""
    instance = generators.generate("topology", "collective", **options)
    assert exact_collective_bound(instance) == wanted


def trees_out_of(root, count):
    """Parents of all spanning trees out of a root."""
    others = [node for node in range(count) if node != root]
    for parents in product(range(count), repeat=len(others)):
        before = dict(zip(others, parents, strict=True))
        for node in others:
            seen, at = set(), node
            while at != root and at not in seen:
                seen.add(at)
                at = before[at]
            if at != root:
                break
        else:
            yield before


@for_each("seed", range(80))
def test_least_arborescences_are_those_of_all_trees(seed):
    draw = random.Random(seed)
    count = draw.randrange(2, 6)
    costs = [[draw.choice((0, 1, 2, 3, Fraction(1, 3), 50)) for _ in range(count)] for _ in range(count)]
    root = draw.randrange(count)
    value, before = least_arborescence(costs, root)
    assert value == min(sum(costs[u][v] for v, u in tree.items()) for tree in trees_out_of(root, count))
    assert before[root] == -1
    assert {v: u for v, u in enumerate(before) if v != root} in list(trees_out_of(root, count))


def star(out_of, into_):
    """Three accelerators around a switch."""
    links = [(v, 3, out_of) for v in range(3)] + [(3, v, into_) for v in range(3)]
    return {"name": "star", "accelerators": 3, "switches": 1, "links": links}


RING = {"name": "ring", "accelerators": 4, "links": [(v, (v + 1) % 4, 1.0) for v in range(4)]}


def test_switches_of_a_side_send_nothing():
    """Two and two around switches of their own, of which one sends to the other at half the speed of the way back."""
    around = [link for v, switch in ((0, 4), (1, 4), (2, 5), (3, 5)) for link in ((v, switch, 10), (switch, v, 10))]
    links = [{"source": i, "target": j, "bytes_per_s": b} for i, j, b in (*around, (4, 5, 1), (5, 4, 2))]
    data = {"name": "two", "accelerators": 4, "switches": 2, "links": links, "collective_bytes": 1.0}
    instance = CollectiveInstance.from_data({**data, "collective": "all-to-all"})
    assert exact_collective_bound(instance) == Fraction(1, 4) * 2 * 2 / 1  # 0, 1 and their switch to 2 and 3


@pytest.mark.parametrize(
    ("network", "collective", "wanted"),
    [
        (star(3, 1), "reduce-scatter", Fraction(1, 3)),
        (star(3, 1), "all-gather", Fraction(2, 3)),  # what two have leaves the switch for the third over one link
        (star(1, 3), "reduce-scatter", Fraction(2, 3)),  # what one has to add to the sums of two leaves it over one
        (star(1, 3), "broadcast", 1),
        (star(1, 3), "all-reduce", Fraction(4, 3)),  # two send sums, and two of these are sent back
        (star(3, 1), "all-reduce", Fraction(4, 3)),
        (star(1, 3), "all-to-all", Fraction(2, 3)),
        (star(5, 5), "all-to-all", Fraction(2, 15)),  # 12 links of paths over 30 bytes a second, as at each accelerator
        (RING, "all-to-all", Fraction(3, 2)),  # 24 links of paths; no set has more than 4 pairs to send out
        (RING, "all-reduce", Fraction(3, 2)),
        (RING, "broadcast", 1),
    ],
)
def test_bounds_by_hand(network, collective, wanted):
    links = [{"source": i, "target": j, "bytes_per_s": b} for i, j, b in network["links"]]
    root = {"root": 0} if collective == "broadcast" else {}
    data = {**network, "links": links, "collective": collective, "collective_bytes": 1.0, **root}
    instance = CollectiveInstance.from_data(data)
    assert exact_collective_bound(instance) == wanted
    if (network, collective) != (star(3, 1), "reduce-scatter"):  # more leads into its switch than out of it
        assert ddlopt.solve(instance, time_limit=60).objective == pytest.approx(float(wanted))
    assert 0 < wanted - Fraction(collective_bound(instance)) < 1e-9 * wanted


@for_each("seed", [5, 13, 20, *map(slow, range(40))])
def test_links_that_carry_less_in_one_direction(seed):
    """More may lead out of a set than into it: which of both counts depends on the collective."""
    draw = random.Random(seed)
    count, switches = draw.randint(2, 4), draw.choice((0, 0, 1))
    nodes = count + switches
    ring = [(node, (node + 1) % nodes) for node in range(nodes)]
    more = [(i, j) for i in range(nodes) for j in range(nodes) if i != j and draw.random() < 0.4]
    data = {
        "name": "uneven",
        "accelerators": count,
        "switches": switches,
        "links": [
            {"source": i, "target": j, "bytes_per_s": draw.choice((0.1, 1.0, 3.0, 50.0))}
            for i, j in dict.fromkeys((*ring, *more))
        ],
        "collective_bytes": draw.choice((1.0, 0.3, 1e12)),
    }
    for collective in ("all-gather", "reduce-scatter", "all-reduce", "all-to-all"):
        instance = CollectiveInstance.from_data({**data, "collective": collective})
        size, sides = Fraction(instance.collective_bytes), list(all_sides(instance))
        bound = exact_collective_bound(instance)
        if collective == "all-gather":
            assert bound == size / count * max(inside / out(instance, side) for side, inside in sides)
        elif collective == "reduce-scatter":
            assert bound == size / count * max(inside / into(instance, side) for side, inside in sides)
        elif collective == "all-reduce":
            narrow = size / min(out(instance, side) for side, _ in sides)
            assert bound == max(narrow, *(size * price_of(instance, each) for each in parts(instance)))
        else:
            of_cuts = max(inside * (count - inside) / out(instance, side) for side, inside in sides)
            over_all = price_bound(instance, dict.fromkeys(instance.bandwidth, Fraction(1)))
            single = max((count - 1) / min(out(instance, {node}), into(instance, {node})) for node in range(count))
            assert max(size / count * single, over_all) <= bound <= max(size / count * of_cuts, over_all)


def test_prices_of_a_cut_are_the_bound_of_the_cut():
    for instance in several(12):
        cut = worst_gather_cut(instance).side
        prices = {link: Fraction(1) for link in instance.bandwidth if link[0] in cut and link[1] not in cut}
        assert price_bound(instance, prices) == exact_collective_bound(instance)
    with pytest.raises(ValueError, match="no link has a price"):
        price_bound(instance, {})


@pytest.mark.parametrize("seed", [3, *map(slow, range(4, 16))])
def test_cuts_of_up_to_twelve_nodes_are_those_of_all_cuts(seed):
    """All 4 094 sets, in whole numbers."""
    instance = several(seed + 1, most=10)[seed]
    unit = min(map(Fraction, instance.bandwidth.values()))
    capacity = {link: Fraction(each) / unit for link, each in instance.bandwidth.items()}
    below = math.lcm(*(each.denominator for each in capacity.values()))
    whole = [(1 << i, 1 << j, int(each * below)) for (i, j), each in capacity.items()]
    accelerators = (1 << instance.accelerators) - 1
    worst, narrowest = Fraction(0), None
    for side in range(1, (1 << instance.nodes) - 1):
        inside = (side & accelerators).bit_count()
        if 0 < inside < instance.accelerators:
            leaves = sum(each for i, j, each in whole if side & i and not side & j)
            worst = max(worst, Fraction(inside, leaves))
            narrowest = leaves if narrowest is None else min(narrowest, leaves)
    assert worst_gather_cut(instance).value == worst * below / unit
    assert narrowest_cut(instance).value == narrowest * unit / below


def test_parts_are_joined_by_links_of_a_bandwidth_or_more():
    """Two boxes of two, a thin link between them, and a switch beside one of them, which is no part by itself."""
    pairs = [(0, 1, 4.0), (2, 3, 4.0), (1, 2, 1.0), (3, 4, 2.0)]
    both = [(j, i, b) for i, j, b in pairs]
    links = [{"source": i, "target": j, "bytes_per_s": b} for i, j, b in pairs + both]
    instance = CollectiveInstance(
        name="boxes", accelerators=4, switches=1, links=links, collective="all-reduce", collective_bytes=1.0
    )
    single = [frozenset({node}) for node in range(4)]
    boxes = [frozenset({0, 1}), frozenset({2, 3})]
    assert parts(instance) == [single, boxes, [boxes[0], frozenset({2, 3, 4})]]


def test_switches_have_no_pairs():
    """Two accelerators on each of two switches: all four pairs that way cross the link between them."""
    pairs = [(0, 4, 10.0), (1, 4, 10.0), (2, 5, 10.0), (3, 5, 10.0), (4, 5, 1.0)]
    links = [{"source": i, "target": j, "bytes_per_s": b} for a, c, b in pairs for i, j in ((a, c), (c, a))]
    instance = CollectiveInstance(
        name="boxes", accelerators=4, switches=2, links=links, collective="all-to-all", collective_bytes=8.0
    )
    assert exact_collective_bound(instance) == 8 / 4 * 4
