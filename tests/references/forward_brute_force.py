"""The optimum of tiny forward instances by trying every option, every number of parts and every order of the wire.

It knows the problem statement only, and calculates in rational numbers.
"""

import itertools
from fractions import Fraction
from functools import cache

from ddlopt.models.compression import CompressionInstance, ForwardInstance, Gradient, Option

exactly = cache(Fraction)
"""Of the few figures of an instance."""


def sequences(left):
    """Every order of parts, of which gradient i has ``left[i]``."""
    if not any(left):
        yield ()
    for i, count in enumerate(left):
        if count:
            for rest in sequences((*left[:i], count - 1, *left[i + 1 :])):
                yield (i, *rest)


def step_of(instance, options, parts, order):
    """When the next forward pass ends."""
    encoded, spent = [], Fraction(0)
    for gradient, option in zip(instance.timeline.gradients, options, strict=True):
        spent += exactly(option.encode_s)
        encoded.append(exactly(gradient.ready_s) + spent)
    there, wire = {}, Fraction(0)
    for i in order:
        wire = max(wire, encoded[i]) + exactly(options[i].launch_s)
        wire += (exactly(options[i].wire_s) + exactly(options[i].decode_s)) / parts[i]
        there[i] = wire
    after = list(itertools.accumulate(map(exactly, instance.forward_s)))
    return max(there[i] + after[i] for i in there)


def optimum_of(instance, parts_allowed=None, in_order=False):
    """The least time within the budget; with ``in_order`` of plans that send whole gradients as they are ready."""
    timeline, best = instance.timeline, None
    menus = [timeline.menus[gradient.menu] for gradient in timeline.gradients]
    for options in itertools.product(*menus):
        error = sum(Fraction(option.error) for option in options)
        if timeline.error_budget is not None and error > Fraction(timeline.error_budget):
            continue
        for parts in itertools.product(parts_allowed or instance.parts, repeat=instance.size):
            for order in [tuple(range(instance.size))] if in_order else sequences(parts):
                time = step_of(instance, options, parts, order)
                best = time if best is None else min(best, time)
    return best


def tiny(rng, gradients=3, options=2, parts=(1, 2), budget=False, least=1):
    """A forward instance of small whole figures, so that many times are equal; with ``least`` 0 parts may take none."""

    def figure(low, high):
        return float(rng.integers(low, high + 1))

    menus = [
        tuple(
            Option(
                label=f"o{place}", compressor="fp16" if place else "none", encode_s=place * figure(0, 2),
                launch_s=figure(0, 1), wire_s=figure(least, 8) * figure(least, 1), decode_s=figure(0, 1),
                error=place * figure(1, 3),
            )
            for place in range(options)
        )
        for _ in range(gradients)
    ]  # fmt: skip
    ready = sorted(figure(0, 6) for _ in range(gradients))
    timeline = CompressionInstance(
        name="tiny",
        gradients=tuple(Gradient(name=f"g{i}", shape=(8,), ready_s=at, menu=i) for i, at in enumerate(ready)),
        menus=tuple(menus),
        error_budget=figure(1, 4) if budget else None,
    )
    return ForwardInstance(name="tiny", timeline=timeline, forward_s=tuple(figure(0, 5) for _ in ready), parts=parts)
