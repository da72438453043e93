"""Buckets that are sent while the backward pass goes on."""

from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from refusals import one_line
from slots_cases import assert_bounds_hold, iteration_s, overlapped, slots_instance
from volume import for_each

from ddlopt.models.aggregation import SlotPlan, SlotsInstance, bound, evaluate
from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.formulations.slot_tangents import SlotTangents, _with_kinks
from ddlopt.models.errors import InstanceError


def job(*buckets: tuple[float, float], **fields: Any) -> SlotsInstance:
    """One job of 100 bytes that computes for 8 s; buckets of (bytes, seconds)."""
    data = {
        "name": "one",
        "switches": [{"name": "s", "slots": 1000, "payload_bytes": 1.0}],
        "jobs": [
            {"name": "a", "compute_s": 8.0, "gradient_bytes": 100.0, "nic_bytes_per_s": 1e3, "rtt_s": 1.0}
            | {"switches": [0], "buckets": [{"size_bytes": size, "ready_s": ready} for size, ready in buckets]}
            | fields
        ],
    }
    return SlotsInstance.from_data(data)


def plan(rate: float) -> SlotPlan:
    return SlotPlan(instance="one", slots=[[rate]], rates_bytes_per_s=[rate])


@for_each(
    ("rate", "time"),
    [
        (10.0, 12.0),  # all 100 bytes from second 2 on
        (20.0, 9.0),  # 60 from second 6 on
        (40.0, 8.25),  # the last 10 after the computation
        (0.5, 202.0),
    ],
)
def test_times_are_those_by_hand(rate: float, time: float) -> None:
    instance = job((40.0, 2.0), (50.0, 6.0), (10.0, 8.0))
    assert iteration_s(instance.jobs[0], rate) == time
    found = evaluate(instance, plan(rate))
    assert found.feasible
    assert found.objective == time
    assert evaluate(instance, plan(rate), exact=True).objective == Fraction(time)


def test_what_is_ready_early_is_hidden_behind_the_computation() -> None:
    instance = job((40.0, 2.0), (60.0, 4.0))
    assert evaluate(instance, plan(50.0)).objective == 8.0
    assert evaluate(instance, plan(30.0)).objective == 8.0
    assert evaluate(instance, plan(15.0)).objective == pytest.approx(2 + 100 / 15)
    assert bound(instance) == pytest.approx(8.0)


def test_one_bucket_at_the_end_is_the_gradient_after_the_pass() -> None:
    plain, one = job(), job((100.0, 8.0))
    assert evaluate(plain, plan(7.0)).objective == evaluate(one, plan(7.0)).objective
    assert SlotArrays(one).costs.tolist() == SlotArrays(plain).costs.tolist()
    assert not SlotArrays(one).overlaps


def test_without_buckets_documents_are_as_before() -> None:
    assert "buckets" not in job().to_json()
    assert job().digest != job((100.0, 8.0)).digest


@for_each(
    ("buckets", "message"),
    [
        ([(99.0, 8.0)], "'a': buckets have 99 bytes together, but gradient_bytes is 100"),
        ([(50.0, 3.0), (50.0, 2.0)], "'a': buckets[0] is ready at 3 s, later than buckets[1], which is sent behind it"),
        ([(100.0, 9.0)], "'a': buckets[0] is ready at 9 s, later than compute_s, 8"),
        ([(100.0, -1.0)], "jobs[0].buckets[0].ready_s"),
        ([(100.0, float("nan"))], "jobs[0].buckets[0].ready_s"),
        ([(100.0, 1.0), (0.0, 2.0)], "jobs[0].buckets[1].size_bytes"),
    ],
)
def test_bad_buckets_are_one_clear_line(buckets: list[tuple[float, float]], message: str) -> None:
    with one_line(InstanceError, message):
        job(*buckets)


@for_each("seed", range(20))
def test_lines_are_what_sending_bucket_by_bucket_takes(seed: int) -> None:
    instance = overlapped(slots_instance(seed, jobs=6, whole=False), seed)
    arrays = SlotArrays(instance)
    for rate in np.geomspace(1e5, 1e9, 30).tolist():
        lost = arrays.lost(np.full(arrays.count, rate))
        own = [each.weight * each.iterations * iteration_s(each, rate) for each in instance.jobs]
        assert lost + arrays.weight * arrays.compute_s == pytest.approx(own, rel=1e-12)
    for begins, ends in zip(arrays.begins.T, arrays.ends.T, strict=True):
        real = int(np.isfinite(begins).sum())
        assert begins[0] == 0
        assert all(a < b for a, b in pairwise(begins[:real]))
        assert ends[: real - 1].tolist() == begins[1:real].tolist()
        assert ends[real - 1] == np.inf


@for_each("seed", range(20))
def test_best_rates_are_those_of_a_fine_grid(seed: int) -> None:
    arrays = SlotArrays(overlapped(slots_instance(seed, jobs=6, whole=False), seed))
    rng = np.random.default_rng(seed)
    asked = arrays.cost / arrays.cap**2 * 10 ** rng.uniform(-2, 3, arrays.count)
    asked[0] = 0.0
    best = arrays.best_rates(asked)
    assert (best <= arrays.cap).all()
    grid = np.geomspace(1e-4, 1.0, 4001)[:, None] * arrays.cap
    costs = np.array([arrays.lost(rates) + asked * rates for rates in grid])
    least, ours = costs.min(axis=0), arrays.lost(best) + asked * best
    assert (ours <= least + 1e-9 * arrays.cost / arrays.cap).all()
    assert ours == pytest.approx(least, rel=1e-3, abs=1e-3 * float((arrays.cost / arrays.cap).max()))


@for_each("seed", range(6))
def test_bounds_are_below_what_enumeration_finds(seed: int) -> None:
    for goal in ("total", "slowest"):
        instance = overlapped(slots_instance(seed, back=0.4 * (seed % 2), goal=goal), seed)
        assert_bounds_hold(instance, seed)


def test_tangents_touch_at_kinks() -> None:
    """From 10.25 bytes per second on the third bucket decides, from 29.5 on the last; the one of 1 byte never does."""
    instance = job((40.0, 2.0), (1.0, 3.0), (59.0, 6.0), (20.0, 8.0), gradient_bytes=120.0)
    arrays = SlotArrays(instance)
    assert arrays.begins[:, 0].tolist() == [0.0, 10.25, 29.5]
    tolerance = 1e-3
    (points,) = SlotTangents(tolerance).points(arrays)
    tangents = _with_kinks(arrays, 0, points)
    assert {(0.01025, 0), (0.01025, 1), (0.0295, 1), (0.0295, 2)} <= {(round(p, 9), k) for p, k in tangents}
    for rate in np.geomspace(points[0] * arrays.cap[0], arrays.cap[0], 500).tolist():
        z = rate / arrays.cap[0]
        below = max(arrays.costs[k, 0] / arrays.cap[0] * (2 / p - z / p**2) - arrays.hidden[k, 0] for p, k in tangents)
        lost = float(arrays.lost(np.array([rate]))[0])
        assert max(below, 0.0) <= lost + 1e-9
        assert lost - max(below, 0.0) <= 1.01 * tolerance * 120.0 / rate
