"""Jobs that share switches: data, check, bounds and formulations."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyomo.environ as pyo
import pytest
from refusals import one_line
from slots_cases import optimum_by_enumeration, slots_instance
from volume import for_each, seeds

from ddlopt.certificates.aggregation.slots.exact_bounds import exact_slots_bound
from ddlopt.models.aggregation import AggregationProblem, SlotPlan, SlotsInstance, bound, evaluate
from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.formulations.slot_shares import SlotShares
from ddlopt.models.aggregation.slots.formulations.slot_tangents import SlotTangents
from ddlopt.models.aggregation.slots.prices import price_bound
from ddlopt.models.errors import InstanceError, NotApplicableError, SolutionError, SolverError
from ddlopt.models.ports import ports_of
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model

_JOB: dict[str, Any] = {
    "name": "a",
    "gradient_bytes": 1e6,
    "nic_bytes_per_s": 1e9,
    "rtt_s": 1e-5,
    "switches": [0],
    "links": [0, 0],
}
_DATA: dict[str, Any] = {
    "problem": "slots",
    "family": "aggregation",
    "name": "two",
    "switches": [{"name": "tor", "slots": 10, "payload_bytes": 100.0, "aggregation_bytes_per_s": 9e7}],
    "links": [{"name": "up", "bandwidth_bytes_per_s": 1.6e8}],
    "jobs": [
        _JOB | {"compute_s": 0.5, "iterations": 2, "weight": 3},
        _JOB | {"name": "b", "fallback_bytes_per_s": 1e7},
    ],
}


def _instance(**changes: Any) -> SlotsInstance:
    return SlotsInstance.from_data(_DATA | changes)


def _plan(instance: SlotsInstance, slots: Any, rates: Any) -> SlotPlan:
    return SlotPlan(instance=instance.name, slots=slots, rates_bytes_per_s=rates)


def test_a_plan_is_priced_as_by_hand() -> None:
    instance = _instance()
    found = evaluate(instance, _plan(instance, [[5], [0]], [4e7, None]))
    assert found.feasible
    assert found.objective == pytest.approx(3 * 2 * (0.5 + 1e6 / 4e7) + 1e6 / 1e7)
    assert found.details["slowest_s"] == pytest.approx(6 * 0.525)
    assert found.details["fallbacks"] == 1
    assert found.details["memory_share"] == pytest.approx(0.5)
    assert found.details["link_share"] == pytest.approx(2 * 4e7 / 1.6e8)
    slowest = _instance(goal="slowest")
    assert evaluate(slowest, _plan(slowest, [[5], [0]], [4e7, None])).objective == pytest.approx(3.15)
    assert isinstance(AggregationProblem.from_json(instance.to_json()), SlotsInstance)


def test_exact_check_is_rational() -> None:
    instance = _instance()
    found = evaluate(instance, _plan(instance, [[5], [0]], [4e7, None]), exact=True)
    assert isinstance(found.objective, Fraction)
    assert float(found.objective) == pytest.approx(6 * 0.525 + 0.1)


@for_each(
    ("slots", "rates", "kind"),
    [
        ([[5]], [5e7, None], "every job has slots and a rate"),
        ([[5], [0]], [5e7], "every job has slots and a rate"),
        ([[5, 1], [0]], [5e7, None], "slots are given at every switch"),
        ([[5], [-1]], [5e7, None], "slots are not negative"),
        ([[5], [0]], [None, None], "job that falls back has a server"),
        ([[5], [1]], [5e7, 0.0], "rate is positive"),
        ([[5.5], [0]], [5e7, None], "slots are whole"),
        ([[200], [0]], [1.5e9, None], "rate within the network card's"),
        ([[4], [0]], [5e7, None], "slots hold what is in flight"),
        ([[6], [5]], [1e7, 1e7], "switch has the slots"),
        ([[5], [5]], [5e7, 4.5e7], "switch aggregates as fast"),
        ([[5], [5]], [4.5e7, 4e7], "link carries the load"),
    ],
)
def test_what_a_plan_violates_is_told(slots: Any, rates: Any, kind: str) -> None:
    instance = _instance(whole=True)
    found = evaluate(instance, _plan(instance, slots, rates))
    assert kind in {violation.kind for violation in found.violations}
    assert not found.feasible


@for_each(
    ("changes", "message"),
    [
        ({"jobs": [_JOB | {"switches": [1]}]}, "names switches[1], but there are 1 switches"),
        ({"jobs": [_JOB | {"links": [3]}]}, "names links[3], but there are 1 links"),
        ({"jobs": [_JOB | {"switches": [0, 0]}]}, "names switches[0] twice"),
        ({"switches": [{"name": "tor", "slots": 0, "payload_bytes": 1}]}, "switches[0].slots"),
        (
            {"whole": True, "switches": [{"name": "tor", "slots": 1, "payload_bytes": 1}], "jobs": [_JOB, _JOB]},
            "has 1 slots, but 2 jobs without fallback_bytes_per_s need a whole one there",
        ),
    ],
)
def test_bad_data_is_one_clear_line(changes: dict[str, Any], message: str) -> None:
    with one_line(InstanceError, message):
        _instance(**changes)


def test_an_answer_to_another_problem_is_refused() -> None:
    instance = _instance()
    other = instance.model_copy(update={"name": "other", "whole": True})
    plan = _plan(instance, [[5], [0]], [5e7, None]).model_copy(update={"instance_digest": instance.digest})
    with pytest.raises(SolutionError):
        evaluate(other, plan)


@for_each("seed", seeds(4, 8))
def test_prices_never_pass_the_optimum(seed: int) -> None:
    instance = slots_instance(seed, back=0.5 * (seed % 3))
    arrays, optimum = SlotArrays(instance), optimum_by_enumeration(instance)
    assert bound(instance) <= optimum * (1 + 1e-12)
    rng = np.random.default_rng(seed)
    unit = optimum / arrays.limits
    for _ in range(30):
        prices = unit * 10 ** rng.uniform(-3, 1, len(unit))
        assert price_bound(arrays, prices) <= optimum * (1 + 1e-12)
        assert price_bound(arrays, prices, whole=False) <= price_bound(arrays, prices) + 1e-9 * optimum


def test_whole_slots_sharpen_a_price() -> None:
    instance = slots_instance(4, switches=1)
    arrays = SlotArrays(instance)
    prices = (np.sqrt(arrays.rows * arrays.cost).sum(axis=1) / arrays.limits) ** 2
    assert price_bound(arrays, prices) > price_bound(arrays, prices, whole=False) * (1 + 1e-4)


@for_each("seed", range(6))
def test_slowest_is_bounded_by_its_optimum(seed: int) -> None:
    instance = slots_instance(seed, back=0.5, goal="slowest")
    assert bound(instance) == pytest.approx(optimum_by_enumeration(instance), rel=1e-9)


@for_each("seed", range(6))
def test_slowest_is_bounded_without_rounding(seed: int) -> None:
    for whole in (True, False):
        instance = slots_instance(seed, back=0.5, goal="slowest", whole=whole, links=seed % 3)
        found = exact_slots_bound(instance)
        assert isinstance(found, Fraction)
        assert float(found) == pytest.approx(bound(instance), rel=1e-8)
        assert found <= Fraction(bound(instance)) * (1 + Fraction(1, 10**10))


def test_a_sum_of_times_is_not_bounded_without_rounding() -> None:
    with pytest.raises(NotApplicableError, match="cannot be recomputed in rational numbers, because it is a sum"):
        exact_slots_bound(slots_instance(1))


def _square_root(arrays: SlotArrays) -> float:
    """One switch, no caps: slots in proportion to the roots of what they are worth (Cauchy and Schwarz)."""
    return arrays.compute_total_s + float(np.sqrt(arrays.rows[0] * arrays.cost).sum() ** 2 / arrays.limits[0])


@pytest.mark.parametrize("solver", ["clarabel", "scs"])
def test_one_switch_is_shared_by_square_roots(solver: str) -> None:
    instance = slots_instance(2, jobs=6, switches=1, whole=False, slots=(3, 4))
    arrays, model = SlotArrays(instance), SlotShares()
    problem = model.problem(instance)
    outcome = Convex(solver).solve(problem, Limits())
    assert outcome.status is Status.OPTIMAL
    wanted = _square_root(arrays)
    close = 1e-7 if solver == "clarabel" else 1e-3
    assert model.value(problem, instance) == pytest.approx(wanted, rel=close)
    assert price_bound(arrays, model.prices(problem, instance)) == pytest.approx(wanted, rel=close)
    roots = np.sqrt(arrays.memory[0] * arrays.cost)
    shares = arrays.memory[0] * model.read(problem, instance)
    assert shares / shares.sum() == pytest.approx(roots / roots.sum(), rel=1e-3 if solver == "clarabel" else 0.05)


def test_the_program_of_the_slowest_job_is_right() -> None:
    instance = slots_instance(3, jobs=5, links=2, whole=False, goal="slowest")
    problem = SlotShares().problem(instance)
    Convex().solve(problem, Limits())
    assert SlotShares().value(problem, instance) == pytest.approx(bound(instance), rel=1e-6)


def test_the_relaxation_of_fallback_is_below_the_optimum_and_tight_without_competition() -> None:
    instance = slots_instance(5, back=1.0)
    problem = SlotShares().problem(instance)
    Convex().solve(problem, Limits())
    assert SlotShares().value(problem, instance) <= optimum_by_enumeration(instance) * (1 + 1e-8)
    alone = slots_instance(6, jobs=1, switches=1, whole=False, back=1.0, slots=(100, 101))
    problem = SlotShares().problem(alone)
    Convex().solve(problem, Limits())
    best = min(alone.jobs[0].gradient_bytes / rate for rate in (1.25e8, alone.jobs[0].fallback_bytes_per_s or math.inf))
    job = alone.jobs[0]
    wanted = job.weight * job.iterations * (job.compute_s + best)
    assert SlotShares().value(problem, alone) == pytest.approx(wanted, rel=1e-7)


def test_unsolved_programs_have_nothing_to_read() -> None:
    instance = slots_instance(0)
    problem = SlotShares().problem(instance)
    with pytest.raises(SolverError):
        SlotShares().read(problem, instance)
    assert not SlotShares().prices(problem, instance).any()


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_tangents_find_the_optimum_by_themselves(seed: int) -> None:
    instance = slots_instance(seed, back=0.6)
    optimum = optimum_by_enumeration(instance)
    exact = Exact("slot-tangents", "aggregation", SlotTangents(), Highs())
    result = exact.solve(instance, Limits(gap=2e-5))
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=3e-5)
    assert result.bound is not None
    assert result.bound <= optimum * (1 + 1e-9)


def test_tangents_keep_a_better_plan_within_their_range() -> None:
    instance = slots_instance(1, back=0.6)
    optimum = optimum_by_enumeration(instance)
    arrays = SlotArrays(instance)
    prices = tuple((0.3 * optimum / arrays.limits).tolist())
    limited = SlotTangents(limit_s=1.2 * optimum, prices=prices)
    assert sum(map(len, limited.points(arrays))) < sum(map(len, SlotTangents().points(arrays)))
    result = Exact("slot-tangents", "aggregation", limited, Highs()).solve(instance, Limits(gap=2e-5))
    assert result.objective == pytest.approx(optimum, rel=3e-5)


def test_ports_are_there() -> None:
    instance = slots_instance(1, back=1.0)
    block = build_model("aggregation", SlotTangents(), instance).aggregation
    for port in ports_of(SlotTangents):
        assert hasattr(block, port.name)
    assert isinstance(block.objective, pyo.Expression)
    names = set(SlotShares().problem(instance).var_dict)
    assert names == {port.name for port in ports_of(SlotShares)} - {"constraints", "objective"}
    assert SlotTangents().refuses(slots_instance(1, goal="slowest")) is not None


def test_a_host_model_can_take_slots_away_and_start_from_a_plan() -> None:
    instance = slots_instance(2, switches=1)
    optimum = optimum_by_enumeration(instance)
    model = build_model("aggregation", SlotTangents(), instance)
    block = model.aggregation
    most = max(block.slots, key=lambda pair: instance.jobs[pair[0]].gradient_bytes)
    block.slots[most].setub(1)
    outcome = Highs().solve(model, Limits(gap=1e-6))
    assert outcome.status is Status.OPTIMAL
    plan = SlotTangents().read(block, instance)
    assert plan.slots[most[0]][0] == 1
    limited = evaluate(instance, plan)
    assert limited.feasible
    assert limited.objective is not None
    assert limited.objective > optimum * (1 + 1e-3)
    started = Exact("slot-tangents", "aggregation", SlotTangents(), Highs()).solve(instance, Limits(), start=plan)
    assert started.objective == pytest.approx(optimum, rel=2e-4)


def test_the_slowest_of_one_job_is_as_fast_as_its_link() -> None:
    """Twice over a link of 1.6e8; slots would do for 1e8, and the switch adds up 9e7."""
    alone = _instance(goal="slowest", jobs=[_JOB | {"compute_s": 0.5, "iterations": 2, "weight": 3}])
    least = 3 * 2 * (0.5 + 1e6 / 8e7)
    assert bound(alone) < least == pytest.approx(bound(alone), rel=1e-6)


def test_the_bound_of_one_row_is_that_of_square_roots() -> None:
    instance = slots_instance(2, jobs=6, switches=1, whole=False, slots=(3, 4))
    assert bound(instance) == pytest.approx(_square_root(SlotArrays(instance)), rel=1e-10)


def test_every_aggregated_job_of_the_model_has_a_slot() -> None:
    data = slots_instance(2, jobs=3, switches=1).model_dump(mode="json")
    data["switches"][0]["slots"] = 2
    data["jobs"][1]["fallback_bytes_per_s"] = data["jobs"][2]["fallback_bytes_per_s"] = 1e4
    instance = SlotsInstance.from_data(data)
    result = Exact("slot-tangents", "aggregation", SlotTangents(), Highs()).solve(instance, Limits())
    assert result.objective == pytest.approx(optimum_by_enumeration(instance), rel=1e-4)
