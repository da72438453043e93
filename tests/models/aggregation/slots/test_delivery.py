"""Packets that are late or lost: what the last of some workers takes, and what follows for plans."""

import math
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from refusals import one_line
from slots_cases import delivered, optimum_by_enumeration, slots_instance
from volume import for_each

from ddlopt.certificates.aggregation.slots.exact_bounds import exact_slots_bound
from ddlopt.models.aggregation import SlotPlan, SlotsInstance, bound, evaluate
from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.delivery import Delivery, wait_exact, wait_s
from ddlopt.models.aggregation.slots.prices import price_bound
from ddlopt.models.errors import InstanceError
from ddlopt.solvers.aggregation.slots.rules import SlotRule
from ddlopt.solvers.contracts import Limits


def geometric_maximum(loss: Fraction, workers: int) -> Fraction:
    """How often the slowest of some workers has lost its packet, on average, by inclusion and exclusion."""
    terms = ((-1) ** (i + 1) * math.comb(workers, i) * loss**i / (1 - loss**i) for i in range(1, workers + 1))
    return sum(terms, Fraction(0))


@for_each(("loss", "workers"), product((0.5, 0.25, 0.01), (1, 2, 7, 40)))
def test_losses_alone_are_the_slowest_of_geometric_variables(loss: float, workers: int) -> None:
    delivery = Delivery(workers=(workers,), loss=loss, timeout_s=0.125)
    wanted = geometric_maximum(Fraction(loss), workers) / 8
    low, high = (wait_exact(delivery, workers, up) for up in (False, True))
    assert low <= wanted <= high <= low * (1 + Fraction(1, 10**30))
    assert wait_s(delivery, workers) == pytest.approx(float(wanted), rel=1e-13)


@for_each("workers", (1, 3, 6))
def test_delays_alone_are_those_of_an_enumeration(workers: int) -> None:
    delays, chances = (0.0, 2.0, 3.0, 7.0), (0.5, 0.25, 0.125, 0.125)
    delivery = Delivery(workers=(workers,), delays_s=delays[1:], chances=chances[1:])
    wanted = sum(
        max(delays[k] for k in each) * math.prod(Fraction(chances[k]) for k in each)
        for each in product(range(4), repeat=workers)
    )
    assert wait_exact(delivery, workers, True) == wait_exact(delivery, workers, False) == wanted
    assert wait_s(delivery, workers) == pytest.approx(float(wanted), rel=1e-14)


def test_a_fine_table_is_an_exponential_delay() -> None:
    steps = np.arange(1, 4001) / 200
    chances = np.exp(-(steps - 1 / 200)) - np.exp(-steps)
    delivery = Delivery(workers=(9,), delays_s=tuple(steps.tolist()), chances=tuple((chances * (1 - 1e-13)).tolist()))
    assert wait_s(delivery, 9) == pytest.approx(sum(1 / k for k in range(1, 10)), abs=1 / 200)


def test_late_and_lost_together_are_those_of_an_enumeration() -> None:
    # Delays beyond the timeout, which no closed form of losses knows.
    delivery = Delivery(workers=(2,), delays_s=(1.5, 5.0), chances=(0.25, 0.125), loss=0.25, timeout_s=2.0)
    single = {
        (k, d): Fraction(f) * Fraction(3, 4) * Fraction(1, 4) ** k
        for k in range(24)
        for d, f in ((0.0, 0.625), (1.5, 0.25), (5.0, 0.125))
    }
    times = {key: 2 * key[0] + Fraction(key[1]) for key in single}
    wanted = sum(f * g * max(times[a], times[b]) for a, f in single.items() for b, g in single.items())
    low, high = (wait_exact(delivery, 2, up) for up in (False, True))
    assert high - low < Fraction(1, 10**30)
    assert float(high) == pytest.approx(float(wanted), rel=1e-11)
    assert wait_s(delivery, 2) == pytest.approx(float(high), rel=1e-14)


def test_floats_are_what_exact_arithmetic_says() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        delays = np.sort(rng.uniform(1e-5, 5e-3, 3))
        loss, workers = float(rng.choice([0.0, 1e-4, 0.03, 0.3])), int(rng.integers(1, 65))
        chances = rng.dirichlet(np.ones(4))[:3] * rng.choice([1e-3, 1.0])
        delivery = Delivery(
            workers=(workers,), delays_s=tuple(delays.tolist()), chances=tuple(chances.tolist()), loss=loss
        )
        low, high = (wait_exact(delivery, workers, up) for up in (False, True))
        assert low <= high <= low * (1 + Fraction(1, 10**25))
        assert wait_s(delivery, workers) == pytest.approx(float(high), rel=1e-12)


def job(**delivery: Any) -> SlotsInstance:
    """One job on a rack and a switch above it; payloads of 100 bytes, round trips of 10 us."""
    data = {
        "name": "one",
        "switches": [{"name": name, "slots": 10, "payload_bytes": 100.0} for name in ("rack", "spine")],
        "jobs": [
            {"name": "a", "gradient_bytes": 1e6, "nic_bytes_per_s": 1e8, "rtt_s": 1e-5, "switches": [0, 1]}
            | ({"delivery": delivery} if delivery else {})
        ],
    }
    return SlotsInstance.from_data(data)


def violations(instance: SlotsInstance, slots: list[float], rate: float) -> set[str]:
    plan = SlotPlan(instance=instance.name, slots=[slots], rates_bytes_per_s=[rate])
    return {f"{each.kind} {each.where}" for each in evaluate(instance, plan, exact=True).violations}


def test_a_plan_holds_its_slots_for_the_last_of_the_workers_below() -> None:
    # Half of the packets come 16 us late: E of one worker is 8, of two 12 us.
    instance = job(workers=[1, 2], delays_s=[16e-6], chances=[0.5])
    assert instance.jobs[0].hold_s(0) == pytest.approx(18e-6, rel=1e-14)
    assert instance.jobs[0].hold_s(1) == pytest.approx(22e-6, rel=1e-14)
    # At 45 MB/s 8.1 slots are held at the rack, 9.9 above it.
    assert not violations(instance, [8.1001, 9.9001], 4.5e7)
    assert violations(instance, [8.0999, 9.9001], 4.5e7) == {"slots hold what is in flight job 0 ('a') at switch 0"}
    assert violations(instance, [8.1001, 9.8999], 4.5e7) == {"slots hold what is in flight job 0 ('a') at switch 1"}


def test_the_exact_check_rounds_what_is_held_upwards() -> None:
    instance = job(workers=[3, 3], loss=0.3, timeout_s=1e-5)
    plan = SlotPlan(instance=instance.name, slots=[[1, 10]], rates_bytes_per_s=[4e7])
    low, high = (instance.jobs[0].hold_exact(0, up) for up in (False, True))
    (found,) = evaluate(instance, plan, exact=True).violations
    assert low < high
    assert found.lhs == Fraction(4e7) * high / 100


def test_what_is_lost_takes_from_the_network_card() -> None:
    instance = job(workers=[1, 1], loss=0.25, timeout_s=1e-9)
    assert not violations(instance, [10, 10], 0.75e8)
    assert violations(instance, [10, 10], 0.751e8) == {"rate within the network card's job 0 ('a')"}
    assert SlotArrays(instance).cap == pytest.approx([0.75e8])


@for_each(
    ("delivery", "message"),
    [
        ({"workers": [1]}, "jobs[0] ('a') has 2 switches, but delivery.workers has 1 entries"),
        ({"workers": [1, 0]}, "workers[1] is 0; a slot waits for 1 or more"),
        ({"workers": [1, 1], "loss": 0.6}, "jobs[0].delivery.loss"),
        ({"workers": [1, 1], "delays_s": [1e-5]}, "chances has 0 entries, but delays_s has 1"),
        ({"workers": [1, 1], "delays_s": [0.0], "chances": [0.1]}, "delays_s[0] is 0; expected more than 0"),
        ({"workers": [1, 1], "delays_s": [1.0], "chances": [-0.1]}, "chances[0] is -0.1; expected more than 0"),
        ({"workers": [1, 1], "delays_s": [1, 2], "chances": [0.7, 0.4]}, "chances add up to 1.1; expected at most 1"),
        ({"workers": [1, 1], "delays_s": [2.0], "chances": [0.1], "loss": 0.1}, "delays_s has 2, more than 1000"),
    ],
)
def test_bad_deliveries_are_one_clear_line(delivery: dict[str, Any], message: str) -> None:
    with one_line(InstanceError, message):
        job(**delivery)


def test_without_deliveries_documents_are_as_before() -> None:
    plain, on_time = job(), job(workers=[3, 6])
    assert "delivery" not in plain.to_json()
    assert "delivery" in on_time.to_json()
    assert plain.digest != on_time.digest
    for one, other in zip(SlotArrays(plain).rows, SlotArrays(on_time).rows, strict=True):
        assert one.tolist() == other.tolist()


@for_each("seed", range(6))
def test_bounds_never_pass_the_optimum(seed: int) -> None:
    instance = delivered(slots_instance(seed, back=0.5 * (seed % 3)), seed)
    arrays, optimum = SlotArrays(instance), optimum_by_enumeration(instance)
    assert bound(instance) <= optimum * (1 + 1e-12)
    rng = np.random.default_rng(seed)
    for _ in range(10):
        prices = optimum / arrays.limits * 10 ** rng.uniform(-3, 1, len(arrays.limits))
        assert price_bound(arrays, prices) <= optimum * (1 + 1e-12)


@for_each("seed", range(4))
def test_the_slowest_job_is_bounded_without_rounding(seed: int) -> None:
    instance = delivered(slots_instance(seed, back=0.5, goal="slowest"), seed)
    found, optimum = exact_slots_bound(instance), optimum_by_enumeration(instance)
    assert isinstance(found, Fraction)
    assert float(found) == pytest.approx(optimum, rel=1e-8)
    assert found <= Fraction(optimum) * (1 + Fraction(1, 10**10))


def test_packets_that_are_late_cost_time() -> None:
    plain = slots_instance(1)
    late = delivered(plain, 1)
    assert optimum_by_enumeration(late) > 1.01 * optimum_by_enumeration(plain)
    assert SlotRule("equal").solve(late, Limits()).objective >= optimum_by_enumeration(late) * (1 - 1e-12)
