"""Small networks for collectives: with and without switches, unequal, tied, of one and of both directions."""

import random
from itertools import chain, combinations

from ddlopt.models.errors import InstanceError
from ddlopt.models.topology import CollectiveInstance

BANDWIDTHS = ((1.0,), (1.0, 2.0, 3.0), (0.1, 0.3, 7.0), (1e-9, 1.0, 1e9))


def drawn(seed, collective="all-gather", balanced=True, most=5):
    """A network whose accelerators reach each other; None for a seed that makes none."""
    draw = random.Random(seed)
    count, switches = draw.randrange(2, most + 1), draw.choice((0, 0, 1, 2))
    nodes, values = count + switches, draw.choice(BANDWIDTHS)
    links = {}
    for i in range(nodes):
        for j in range(i):
            if draw.random() < 0.6:
                there = draw.choice(values)
                switch = max(i, j) >= count
                links[i, j] = there
                if switch and balanced:
                    links[j, i] = there
                elif draw.random() < 0.7:
                    links[j, i] = draw.choice(values)
    try:
        return CollectiveInstance(
            name=f"drawn-{seed}", accelerators=count, switches=switches, collective=collective,
            links=[{"source": i, "target": j, "bytes_per_s": b} for (i, j), b in links.items()],
            collective_bytes=draw.choice((1.0, 6.0, 1e9, 1e-3)), root=0 if collective == "broadcast" else None,
        )  # fmt: skip
    except InstanceError:
        return None
    except ValueError:
        return None


def several(count, collective="all-gather", **more):
    """A number of networks that there are."""
    found, seed = [], 0
    while len(found) < count:
        made = drawn(seed, collective, **more)
        seed += 1
        if made is not None:
            found.append(made)
    return found


def all_sides(instance):
    """All sets of nodes with accelerators inside and outside."""
    nodes = range(instance.nodes)
    for side in chain.from_iterable(combinations(nodes, size) for size in range(1, instance.nodes)):
        inside = sum(node < instance.accelerators for node in side)
        if 0 < inside < instance.accelerators:
            yield frozenset(side), inside
