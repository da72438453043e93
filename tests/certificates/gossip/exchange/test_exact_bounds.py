"""The exact bound of exchange times is the optimum: of every set of times, tried one by one."""

import itertools
import random
from fractions import Fraction

import pytest

from ddlopt import instances
from ddlopt.certificates.gossip.exchange import exact_bounds
from ddlopt.certificates.gossip.exchange.exact_bounds import exact_exchange_bound
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.gossip.exchange.bounds import exchange_bound
from ddlopt.models.gossip.exchange.evaluate import evaluate_exchange
from ddlopt.models.gossip.exchange.instance import ExchangeInstance, ExchangeTimes


def drawn(rng):
    steps, width = rng.randrange(1, 8), rng.randrange(1, 3)
    # Steps back and forth, so that often no price leads to the number of sends that is allowed.
    points = [[rng.choice((0.0, 0.1, rng.uniform(-3, 3), 1e-3)) for _ in range(width)] for _ in range(steps)]
    limit = {"sends": rng.randrange(steps)} if rng.random() < 0.6 else {"send_cost": rng.choice((0.1, 1.0, 7.3))}
    return ExchangeInstance(name="drawn", points=points, norm=rng.choice(("squared", "plain")), **limit)


def optimum(instance):
    choices = range(1, instance.size)
    most = instance.most_sends
    return min(
        evaluate_exchange(instance, ExchangeTimes(instance="drawn", times=times), exact=True).objective
        for count in range(most + 1)
        for times in itertools.combinations(choices, count)
    )


def test_it_is_the_optimum():
    rng, exact = random.Random(3), 0
    for _ in range(150):
        instance = drawn(rng)
        bound, best = exact_exchange_bound(instance), optimum(instance)
        # A norm is rounded in its last digits, downwards here and upwards in the check, a price to the common unit.
        allowed = Fraction(1, 2**20) * instance.size if instance.plain or instance.send_cost else 0
        assert 0 <= best - bound <= allowed, instance.to_json()
        assert bound >= Fraction(exchange_bound(instance)) - allowed
        exact += best == bound
    assert exact > 80


def test_a_price_is_a_bound_where_paths_are_too_many_to_be_counted(monkeypatch):
    monkeypatch.setattr(exact_bounds, "_MOST_COUNTED", 0)
    rng, below = random.Random(4), 0
    for _ in range(80):
        instance = drawn(rng)
        bound, best = exact_exchange_bound(instance), optimum(instance)
        assert bound <= best, instance.to_json()
        below += bound < best
    assert below > 0  # the price says less than the optimum somewhere


def test_trajectories_of_any_size_are_refused_or_bounded(monkeypatch):
    instance = instances.load("gossip/exchange-tiny-t12")
    far = instance.model_copy(update={"points": instance.points * 1e-300})
    assert exact_exchange_bound(far) > 0
    monkeypatch.setattr(exact_bounds, "_MOST_STEPS", 5)
    with pytest.raises(NotApplicableError, match="12 steps; exactly bounded are 5"):
        exact_exchange_bound(instance)
