"""Small instances of clusters to begin with."""

import random

from ddlopt.instances.generators import generate
from ddlopt.instances.odd.optional import PLAIN
from ddlopt.models.contracts import Instance


def jobs(draw: random.Random, seed: int) -> Instance:
    """A few jobs with tables of step times, of either mode and every objective."""
    return generate(
        "cluster",
        "jobs",
        seed,
        jobs=draw.randint(1, 3),
        servers=draw.randint(1, 4),
        mode=draw.choice(("rigid", "rigid", "slots")),
        objective=draw.choice(("makespan", "weighted_completion", "weighted_tardiness")),
        spread=draw.choice((0.0, 0.5)),
        known=draw.choice((1.0, 0.8)),
    )


def placement(draw: random.Random, seed: int) -> Instance:
    """A few hosts in racks and blocks, some busy, for every objective."""
    pods = draw.choice((0, 0, 2))
    return generate(
        "cluster",
        "placement",
        seed,
        pods=pods,
        blocks=draw.randint(1, 2),
        racks=draw.randint(1, 2),
        hosts=draw.randint(1, 4),
        busy=draw.choice((0.0, 0.4)),
        asked=draw.choice((0.7, 1.0)),
        largest=draw.randint(1, 5),
        bound_to_block=draw.choice((0.0, 0.3)),
        bound_to_rack=draw.choice((0.0, 0.3)),
        objective=draw.choice(("pairs", "crossings", "max_gangs", "fits")),
        prices=() if draw.random() < PLAIN else (4, 2, 1)[-(3 if pods else 2) :],
    )


def joint(draw: random.Random, seed: int) -> Instance:
    """A few jobs whose plans take an instant, on a few servers."""
    return generate(
        "cluster",
        "joint",
        seed,
        jobs=draw.randint(1, 3),
        servers=draw.randint(3, 5),
        workloads=draw.choice((("tiny-step",), ("tiny-codesign",), ("tiny-step", "tiny-codesign"))),
        widths=draw.choice(((2, 3), (2,), (3,))),
        spread=draw.choice((0.0, 0.5)),
        objective=draw.choice(("makespan", "weighted_completion", "weighted_tardiness")),
    )
