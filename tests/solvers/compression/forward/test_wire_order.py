"""Carlier's search against every order, and where priorities are not the best."""

import itertools

import numpy as np
import pytest
from volume import for_each, seeds

from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression.forward.schedule import Sent, sent_by, served
from ddlopt.solvers.compression.forward.wire_order import best_order


def drawn(seed):
    """A few parts on the wire, encoded in order."""
    rng = np.random.default_rng(seed)
    gradients = int(rng.integers(2, 6))
    instance = generate("forward-random", seed, gradients=gradients, parts=(1, 2))
    whole = bool(rng.integers(2))
    heads = np.cumsum(rng.integers(0, 6, gradients) if whole else rng.uniform(0, 6, gradients))
    lengths = rng.integers(1, 9, gradients) if whole else rng.uniform(0, 9, gradients)
    tails = rng.integers(0, 9, gradients) if whole else rng.uniform(0, 9, gradients)
    instance = instance.model_copy(update={"forward_s": tuple(map(float, tails))})
    sent = Sent(heads.tolist(), [0.5] * gradients, lengths.tolist())
    parts = [1] * gradients
    parts[int(rng.integers(gradients))] = 1 + seed % 2
    return instance, sent, parts


def time_of(instance, sent, parts, order):
    wire, there = 0.0, {}
    for place in order:
        wire = max(wire, sent.encoded_s[place]) + sent.launch_s[place] + sent.payload_s[place] / parts[place]
        there[place] = wire
    return max(end + instance.tails_s[place] for place, end in there.items())


@for_each("seed", seeds(40, 400))
def test_no_order_is_better(seed):
    instance, sent, parts = drawn(seed)
    jobs = [place for place, cut in enumerate(parts) for _ in range(cut)]
    best = min(time_of(instance, sent, parts, order) for order in set(itertools.permutations(jobs)))
    found = best_order(instance, sent, parts, 10_000)
    assert found.time_s == pytest.approx(best, rel=1e-12)
    assert time_of(instance, sent, parts, found.order) == pytest.approx(best, rel=1e-12)
    assert sorted(found.order) == jobs
    assert found.bound_s <= best * (1 + 1e-12)
    cut_short = best_order(instance, sent, parts, 1)
    assert cut_short.bound_s <= best * (1 + 1e-12)
    assert best <= cut_short.time_s * (1 + 1e-12)
    assert best_order(instance, sent, parts, 10_000, below_s=best * (1 - 1e-9)) is None


def test_priorities_are_not_always_best():
    """The wire waits for the second, or sends the long one before it is passed over for good."""
    beaten = 0
    for seed in range(40):
        instance, sent, parts = drawn(seed)
        beaten += best_order(instance, sent, parts, 10_000).time_s < served(instance, sent, parts, "needed")[0] - 1e-9
    assert beaten > 3


def test_too_many_parts_are_left():
    instance = generate("forward-random", 1, gradients=12, parts=(1, 64))
    assert best_order(instance, sent_by(instance, (0,) * 12), (64,) * 12, 10) is None
