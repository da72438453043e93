"""Jobs that come and go."""

from typing import Any

import numpy as np
import pytest
from refusals import one_line
from slots_cases import assert_bounds_hold, slots_instance, staying
from volume import for_each

from ddlopt.analysis.simulation.aggregators import through_slots
from ddlopt.models.aggregation import SlotPlan, SlotsInstance, bound, evaluate
from ddlopt.models.aggregation.slots.arrays import SlotArrays, together
from ddlopt.models.errors import InstanceError, NotApplicableError

_JOB = {"gradient_bytes": 100.0, "nic_bytes_per_s": 1e3, "rtt_s": 1.0, "switches": [0], "links": [0]}


def three(*stays: tuple[float, float] | None, **changes: Any) -> SlotsInstance:
    """Jobs a, b, c of 100 bytes at a switch of ten slots, on a link of 12 bytes a second."""
    jobs = [_JOB | {"name": name} for name in "abc"]
    for job, stay in zip(jobs, stays, strict=True):
        if stay is not None:
            job["stay"] = {"begins_s": stay[0], "ends_s": stay[1]}
    data = {
        "name": "three",
        "switches": [{"name": "s", "slots": 10, "payload_bytes": 1.0, "aggregation_bytes_per_s": 11.0}],
        "links": [{"name": "up", "bandwidth_bytes_per_s": 12.0}],
        "jobs": jobs,
    }
    return SlotsInstance.from_data(data | changes)


def plan(*rates: float) -> SlotPlan:
    return SlotPlan(instance="three", slots=[[rate] for rate in rates], rates_bytes_per_s=list(rates))


@for_each(
    ("stays", "rates", "feasible"),
    [
        ((None, None, None), (3.0, 3.0, 4.0), True),
        ((None, None, None), (3.0, 4.0, 4.0), False),
        (((0, 2), (2, 4), (4, 6)), (10.0, 10.0, 10.0), True),  # who leaves makes room for who comes
        (((0, 2.5), (2, 4), (4, 6)), (6.0, 5.0, 5.0), False),
        (((0, 2.5), (2, 4), (4, 6)), (5.0, 5.0, 10.0), True),
        ((None, (2, 4), (4, 6)), (4.0, 6.0, 6.0), True),
        ((None, (2, 4), (3, 6)), (4.0, 4.0, 4.0), False),
    ],
)
def test_slots_are_shared_by_those_that_are_there(stays: Any, rates: Any, feasible: bool) -> None:
    instance = three(*stays)
    found = evaluate(instance, plan(*rates))
    assert found.feasible is feasible
    assert evaluate(instance, plan(*rates), exact=True).feasible is feasible
    assert found.objective == pytest.approx(sum(100 / rate for rate in rates))
    assert (bound(instance) <= found.objective) or not feasible


def test_violations_name_the_time() -> None:
    found = evaluate(three((0, 3), (2, 4), (4, 6)), plan(7.0, 6.0, 1.0))
    assert [(each.kind, each.where, each.lhs) for each in found.violations] == [
        ("switch has the slots", "switch 0 ('s') at 2 s", 13.0),
        ("switch aggregates as fast", "switch 0 ('s') at 2 s", 13.0),
        ("link carries the load", "link 0 ('up') at 2 s", 13.0),
    ]
    assert evaluate(three(None, None, None), plan(7.0, 6.0, 1.0)).violations[0].where == "switch 0 ('s')"


def test_rows_are_the_largest_sets_that_are_there_at_once() -> None:
    assert together(three(None, None, None).jobs, [True] * 3) == [[0, 1, 2]]
    assert together(three((0, 2), (2, 4), (4, 6)).jobs, [True] * 3) == [[0], [1], [2]]
    assert together(three((0, 9), (2, 4), (4, 6)).jobs, [True] * 3) == [[0, 1], [0, 2]]
    assert together(three((0, 9), (2, 4), (4, 6)).jobs, [False, True, True]) == [[1], [2]]
    assert together(three(None, (2, 4), (3, 6)).jobs, [True] * 3) == [[0, 1, 2]]
    assert together(three(None, (2, 4), (3, 6)).jobs, [False] * 3) == [[]]
    names = SlotArrays(three((0, 9), (2, 4), (4, 6))).row_names
    assert names[:2] == ("memory of s at 2 s", "memory of s at 4 s")
    assert len(names) == 6


@for_each("seed", range(20))
def test_rows_allow_what_the_check_allows(seed: int) -> None:
    """Rates that the rows of arrays just allow, and a little more."""
    instance = staying(slots_instance(seed, jobs=8, links=2, whole=False), seed)
    arrays, rng = SlotArrays(instance), np.random.default_rng(seed)
    rates = rng.uniform(0.01, 1.0, arrays.count) * arrays.cap
    rates *= min(1.0, float((arrays.limits / np.maximum(arrays.rows @ rates, 1e-9)).min()))
    fits = arrays.plan(rates, np.ones(arrays.count, dtype=bool))
    assert evaluate(instance, fits).feasible
    if (arrays.rows @ rates >= arrays.limits * (1 - 1e-9)).any():
        more = arrays.plan(rates * (1 + 1e-6), np.ones(arrays.count, dtype=bool))
        assert not evaluate(instance, more).feasible


def test_without_stays_documents_are_as_before() -> None:
    assert "stay" not in three(None, None, None).to_json()
    assert three(None, None, None).digest != three((0, 1), None, None).digest


@for_each(
    ("stay", "message"),
    [
        ((3.0, 3.0), "jobs[0].stay: ends_s is 3, not after begins_s, 3"),
        ((-1.0, 3.0), "jobs[0].stay.begins_s"),
        ((1.0, float("nan")), "jobs[0].stay.ends_s"),
        ((1.0, float("inf")), "jobs[0].stay.ends_s"),
    ],
)
def test_bad_stays_are_one_clear_line(stay: tuple[float, float], message: str) -> None:
    with one_line(InstanceError, message):
        three(stay, None, None)


def test_whole_slots_are_needed_by_those_that_are_there() -> None:
    few = [{"name": "s", "slots": 2, "payload_bytes": 1.0}]
    assert three((0, 2), (2, 4), (3, 6), whole=True, switches=few).whole
    with one_line(InstanceError, "switches[0] ('s') has 2 slots, but 3 jobs"):
        three((0, 4), (2, 4), (3, 6), whole=True, switches=few)


def test_packets_of_jobs_that_come_and_go_are_not_simulated() -> None:
    with one_line(NotApplicableError, "jobs[0] ('a') has a stay"):
        through_slots(three((0, 1), None, None), plan(1.0, 1.0, 1.0))


@for_each("seed", range(6))
def test_bounds_are_below_what_enumeration_finds(seed: int) -> None:
    for goal in ("total", "slowest"):
        instance = staying(slots_instance(seed, jobs=4, back=0.4 * (seed % 2), goal=goal, slots=(4, 7)), seed)
        assert_bounds_hold(instance, seed)
