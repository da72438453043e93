"""Every way to place a few gangs, and every order of the ranks of one, from the statement of the problem alone."""

import itertools
import random

from ddlopt.models.cluster import PlacementInstance


def ways(hosts, room):
    """Every vector of hosts by leaf."""
    if not room:
        if not hosts:
            yield ()
        return
    for taken in range(min(hosts, room[0]) + 1):
        for rest in ways(hosts - taken, room[1:]):
            yield (taken, *rest)


def brute_force(instance):
    """The optimum; None if gangs have to be placed and cannot be."""
    paths = [(*leaf.inside, leaf.name) for leaf in instance.leaves]
    prices = instance.prices or (0,) * (len(instance.levels) - 1) + (1,)

    def paid(gang, way):
        used = [path for path, taken in zip(paths, way, strict=True) if taken]
        found = 0
        for level, price in enumerate(prices):
            domains = len({path[level] for path in used})
            found += price * (0 if instance.objective == "crossings" and domains == 1 else domains)
        return gang.weight * found

    def within(gang, way):
        if gang.within == "any":
            return True
        level = instance.levels.index(gang.within)
        return len({path[level] for path, taken in zip(paths, way, strict=True) if taken}) == 1

    states = {(tuple(leaf.hosts for leaf in instance.leaves), 0, 0, 0)}  # free hosts, gangs and weight left out, cost
    for gang in instance.gangs:
        after = set()
        for room, out, weight, cost in states:
            after.add((room, out + 1, weight + gang.weight, cost))
            for way in ways(gang.hosts, room):
                if within(gang, way):
                    left = tuple(had - taken for had, taken in zip(room, way, strict=True))
                    after.add((left, out, weight, cost + paid(gang, way)))
        states = after
    if instance.objective == "max_gangs":
        return sum(gang.weight for gang in instance.gangs) - min(weight for _, _, weight, _ in states)
    if instance.objective == "fits":
        return int(any(not out for _, out, _, _ in states))
    return min((cost for _, out, _, cost in states if not out), default=None)


def fewest_crossings(ring):
    """Of all orders of ranks, whose domains are given."""
    return min(
        sum(a != b for a, b in zip(order, order[1:] + order[:1], strict=True))
        for order in set(itertools.permutations(ring))
    )


def drawn(seed):
    """An odd instance: few leaves, some empty, gangs that share them tightly, one level to three, any objective."""
    draw = random.Random(f"placement {seed}")
    depth = draw.choice((1, 2, 2, 3))
    levels = ("pod", "block", "rack")[-depth:]
    leaves, count = [], draw.randint(1, 5)
    for place in range(count):
        inside = {1: (), 2: (f"b{place // 2}",), 3: (f"p{place // 4}", f"b{place // 2}")}[depth]
        leaves.append({"name": f"r{place}", "inside": inside, "hosts": draw.choice((0, 1, 1, 2, 3, 4))})
    gangs = [
        {
            "name": f"g{place}",
            "hosts": draw.choice((1, 2, 2, 3, 4)),
            "within": draw.choice(("any", "any", *levels)),
            "weight": draw.choice((1, 1, 3)),
        }
        for place in range(draw.randint(1, 4))
    ]
    prices = draw.choice(((), tuple(draw.choice((0, 1, 4)) for _ in levels)))
    return PlacementInstance.from_data(
        {
            "name": f"drawn-{seed}",
            "levels": levels,
            "leaves": leaves,
            "gangs": gangs,
            "objective": draw.choice(("pairs", "crossings", "max_gangs", "fits")),
            "prices": prices,
        }
    )
