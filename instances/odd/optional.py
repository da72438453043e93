"""What is optional in an instance: left out, or drawn."""

import random

PLAIN, RARE = 0.5, 0.3
"""How likely something optional is left out, or there."""


def some(draw: random.Random, count: int, *values: float) -> tuple[float, ...]:
    """None, or one for each of some things, drawn from a few values."""
    return () if draw.random() < PLAIN else tuple(draw.choice(values) for _ in range(count))
