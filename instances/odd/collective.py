"""Odd collectives: small networks, some with a switch between two accelerators, some with steps that take time."""

import random

from ddlopt.instances.generators import generate
from ddlopt.instances.odd.optional import RARE
from ddlopt.models.contracts import Instance


def drawn(draw: random.Random, seed: int) -> Instance:
    """A collective on a small network, in half of the cases with a switch between two accelerators.

    In some cases steps take time, about as long as links do or far less.
    """
    collective = draw.choice(("all-gather", "reduce-scatter", "all-reduce", "broadcast", "all-to-all"))
    network = draw.choice(("star", "path", "two-way-ring", "ring", "unequal", "unequal", "random"))
    made = generate(
        "topology", "collective", seed, network=network, collective=collective, accelerators=draw.randint(3, 5),
        gigabytes=draw.choice((1.0, 6.0)), root=draw.randint(0, 2) if collective == "broadcast" else None,
    )  # fmt: skip
    data = made.model_dump(mode="json")
    if draw.random() < 0.5:  # a switch in the middle of some
        count = data["accelerators"]
        ends = draw.sample(range(count), 2)
        links = [{"source": i, "target": j, "bytes_per_s": 1e9} for e in ends for i, j in ((e, count), (count, e))]
        data |= {"switches": 1, "links": data["links"] + links}
    if draw.random() < RARE:
        data |= {"step_s": draw.choice((0.01, 1.0))}
    return type(made).from_data(data)
