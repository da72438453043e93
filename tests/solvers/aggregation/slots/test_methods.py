"""Methods for jobs that share switches: rules, prices, rounding and the integer program."""

from collections.abc import Callable
from itertools import product
from typing import get_args

import numpy as np
import pytest
from slots_cases import delivered, optimum_by_enumeration, overlapped, slots_instance, staying
from volume import for_each, slow

from ddlopt.instances.generators.aggregation import generate
from ddlopt.instances.library import load
from ddlopt.models.aggregation import SlotPlan, SlotsInstance, evaluate
from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.formulations.slot_shares import SlotShares
from ddlopt.models.aggregation.slots.prices import price_bound
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.aggregation.slots.exact import Tangents, opened
from ddlopt.solvers.aggregation.slots.interior_point import Costs, best_rates
from ddlopt.solvers.aggregation.slots.methods import best
from ddlopt.solvers.aggregation.slots.priced import PricedSlots, SlowestSlots, relaxation
from ddlopt.solvers.aggregation.slots.rates import max_min_rates, whole_shares
from ddlopt.solvers.aggregation.slots.rules import RuleName, SlotRule, _shared
from ddlopt.solvers.backends.convex import Convex
from ddlopt.solvers.contracts import Limits, Status

RULES = get_args(RuleName)
Extended = Callable[[SlotsInstance, int], SlotsInstance]


@pytest.mark.parametrize("seed", range(10))
def test_exact_is_what_enumeration_finds(seed: int) -> None:
    instance = slots_instance(seed, back=0.35 * (seed % 4))
    result = best(instance, "highs").solve(instance, Limits(gap=1e-5))
    optimum = optimum_by_enumeration(instance)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1.1e-5)
    assert result.bound is not None
    assert result.bound <= optimum * (1 + 1e-9)


@for_each(("extended", "seed", "goal"), product((delivered, overlapped, staying), range(2), ("total", "slowest")))
def test_late_packets_buckets_and_stays_are_known_to_every_method(extended: Extended, seed: int, goal: str) -> None:
    instance = extended(slots_instance(seed, back=0.35 * (seed % 4), goal=goal), seed)
    result = best(instance, "highs").solve(instance, Limits(gap=1e-5))
    optimum = optimum_by_enumeration(instance)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum, rel=1.1e-5)
    assert result.bound is not None
    assert result.bound <= optimum * (1 + 1e-9)
    for method in (*([PricedSlots()] if goal == "total" else []), *map(SlotRule, RULES)):
        found = method.solve(instance, Limits())
        assert isinstance(found.solution, SlotPlan)
        assert evaluate(instance, found.solution, exact=True).feasible, method.name
        assert found.objective >= optimum * (1 - 1e-9)


@pytest.mark.parametrize("name", ["late-n3", "overlap-n3", "stays-n4"])
def test_the_bundled_tiny_ones_are_what_enumeration_finds(name: str) -> None:
    instance = load(f"aggregation/slots-tiny-{name}")
    result = opened().solve(instance, Limits(gap=1e-6))
    assert result.objective == pytest.approx(optimum_by_enumeration(instance), rel=1.1e-6)


@for_each("seed", [0, *(slow(seed) for seed in range(1, 6))])
def test_prices_and_tangents_agree_about_buckets(seed: int) -> None:
    instance = overlapped(slots_instance(seed, jobs=5, links=2, whole=False, slots=(8, 20)), seed)
    conic, tangents = PricedSlots().solve(instance, Limits()), Tangents().solve(instance, Limits(gap=1e-6))
    assert conic.gap is not None
    assert conic.gap < 1e-7
    assert tangents.objective == pytest.approx(conic.objective, rel=2e-6)


@for_each(("extended", "seed"), product((delivered, staying), range(3)))
def test_the_convex_program_knows_late_packets_and_stays(extended: Extended, seed: int) -> None:
    instance = extended(slots_instance(seed, jobs=6, links=2, whole=False, slots=(4, 20)), seed)
    ours, conic = (PricedSlots(solver).solve(instance, Limits()) for solver in ("interior", "clarabel"))
    assert ours.gap < 1e-9
    assert conic.objective == pytest.approx(ours.objective, rel=1e-6)


@for_each("seed", range(8))
def test_one_switch_with_whole_slots_needs_no_model(seed: int) -> None:
    instance = slots_instance(seed, jobs=4, switches=1, slots=(6, 14))
    result = PricedSlots().solve(instance, Limits(gap=1e-9))
    assert result.objective == pytest.approx(optimum_by_enumeration(instance), rel=1e-10)
    assert result.gap is not None
    assert result.gap < 1e-9


@for_each("seed", range(6))
def test_bisection_is_what_enumeration_finds(seed: int) -> None:
    instance = slots_instance(seed, back=0.5, goal="slowest")
    result = best(instance, "highs").solve(instance, Limits())
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum_by_enumeration(instance), rel=1e-10)


@for_each("seed", range(6))
def test_both_solvers_of_the_relaxation_agree(seed: int) -> None:
    instance = slots_instance(seed, jobs=8, switches=3, links=3, whole=False, slots=(10, 60))
    ours, conic = (PricedSlots(solver).solve(instance, Limits()) for solver in ("interior", "clarabel"))
    assert ours.gap is not None
    assert ours.gap < 1e-9
    assert conic.objective == pytest.approx(ours.objective, rel=1e-6)
    assert conic.method == "slot-prices:solver=clarabel"


@for_each("seed", range(4))
def test_links_whole_slots_and_fallback_together(seed: int) -> None:
    instance = slots_instance(seed, jobs=6, switches=2, links=2, back=0.5, slots=(7, 20))
    result = opened().solve(instance, Limits())
    first = PricedSlots().solve(instance, Limits())
    assert result.status is Status.OPTIMAL
    assert first.objective is not None
    assert result.objective is not None
    assert result.objective <= first.objective
    assert first.bound is not None
    assert result.objective >= first.bound * (1 - 1e-9)
    assert first.objective <= 1.05 * result.objective


@pytest.mark.parametrize("goal", ["total", "slowest"])
@pytest.mark.parametrize("seed", range(3))
def test_plans_hold_in_exact_arithmetic(seed: int, goal: str) -> None:
    for whole in (False, True):
        instance = slots_instance(seed, jobs=6, links=2, back=0.4, whole=whole, goal=goal, slots=(6, 12))
        own = PricedSlots() if goal == "total" else SlowestSlots()
        reference = best(instance, "highs").solve(instance, Limits()).objective
        assert reference is not None
        for method in (own, *map(SlotRule, RULES)):
            result = method.solve(instance, Limits())
            assert isinstance(result.solution, SlotPlan)
            assert evaluate(instance, result.solution, exact=True).feasible, method.name
            assert result.objective is not None
            assert result.objective >= reference * (1 - 1e-4)


def test_a_price_is_what_one_more_slot_saves() -> None:
    data = generate("slots", 3, jobs=10, racks=2, spread=0.7).model_dump(mode="json")
    arrays = SlotArrays(SlotsInstance.from_data(data))
    found = relaxation(arrays)
    row = int(np.argmax(found.prices[:3]))
    data["switches"][row]["slots"] += 1
    more = SlotArrays(SlotsInstance.from_data(data))
    saved = float((arrays.cost / found.rates).sum() - (more.cost / relaxation(more).rates).sum())
    assert saved == pytest.approx(found.prices[row], rel=2e-3)


@for_each("seed", range(10))
def test_interior_point_copes_with_any_scale(seed: int) -> None:
    rng = np.random.default_rng(seed)
    jobs, count = int(rng.choice([1, 3, 10, 60])), int(rng.choice([1, 3, 20]))
    rows = np.where(rng.random((count, jobs)) < 0.4, 10 ** rng.uniform(-8, -4, (count, jobs)), 0)
    cap, cost = 10 ** rng.uniform(8, 11, jobs), 10 ** rng.uniform(5, 12, jobs)
    limits = np.maximum(rows @ cap, 1e-9) * rng.uniform(0.02, 1.5, count)
    found = best_rates(cost, cap, rows, limits, np.zeros(jobs))
    assert (found.rates <= cap * (1 + 1e-12)).all()
    assert (rows @ found.rates <= limits * (1 + 1e-12)).all()
    asked = found.prices @ rows
    with np.errstate(divide="ignore"):
        best_at = np.minimum(cap, np.sqrt(cost / asked))
    proven = (cost / best_at + asked * best_at).sum() - found.prices @ limits
    assert (cost / found.rates).sum() == pytest.approx(proven, rel=1e-9)


def test_nobody_sends_below_twice_the_rate_of_its_server() -> None:
    instance = generate("slots", 7, jobs=24, racks=1, memory=0.1, servers=1.0)
    arrays = SlotArrays(instance)
    result = PricedSlots().solve(instance, Limits())
    assert isinstance(result.solution, SlotPlan)
    rates = np.array([rate or 0.0 for rate in result.solution.rates_bytes_per_s])
    sending = rates[rates > 0] / np.minimum(arrays.cap, 2 * arrays.fallback)[rates > 0]
    # One row is in the way, so at most one job is between.
    assert (sending < 1 - 1e-6).sum() <= 1
    assert 0 < len(sending) < arrays.count


def test_max_min_rates_fill_a_row_or_a_cap() -> None:
    rng = np.random.default_rng(5)
    rows = (rng.random((4, 9)) < 0.5) * 1.0
    limits, caps = rng.uniform(1, 3, 4), rng.uniform(0.2, 2, 9)
    rates = max_min_rates(rows, limits, caps)
    full = rows @ rates >= limits * (1 - 1e-9)
    assert (rows @ rates <= limits * (1 + 1e-9)).all()
    for j in range(9):
        greedy = any(full[k] and rates[j] >= rates[rows[k] > 0].max() - 1e-9 for k in range(4) if rows[k, j])
        assert rates[j] == pytest.approx(caps[j]) or greedy
    assert whole_shares(np.array([2.6, 0.1, 3.3]), 6).tolist() == [2.0, 1.0, 3.0]


def test_rules_share_as_they_say() -> None:
    instance = generate("slots", 3, jobs=8, racks=1, memory=0.05)
    shares = {
        rule: np.array([slots[0] for slots in SlotRule(rule).solve(instance, Limits()).solution.slots])
        for rule in RULES
    }
    arrays = SlotArrays(instance)
    total = arrays.slots[0]
    assert np.ptp(shares["equal"]) < 1e-6 * total
    roots = np.sqrt(arrays.cost * arrays.memory[0])
    demand = arrays.cap * arrays.memory[0]
    free = shares["square-root"] < demand * (1 - 1e-9)
    ratio = (shares["square-root"] / roots)[free]
    assert free.sum() > 2
    assert np.ptp(ratio) < 1e-6 * ratio.max()
    assert shares["first-come"] == pytest.approx([total - 7] + 7 * [1])
    rates = shares["max-min"] / arrays.memory[0]
    assert np.ptp(rates) < 1e-6 * rates.max()
    for rule in ("gradient", "demand", "square-root", "max-min"):
        assert shares[rule].sum() == pytest.approx(total)


def test_rules_are_told_by_the_switch_that_is_shared_alone() -> None:
    instance = generate("slots", 3, jobs=8, racks=1, memory=0.05)
    objective = PricedSlots().solve(instance, Limits()).objective
    assert SlotRule("square-root").solve(instance, Limits()).objective == pytest.approx(objective, rel=1e-8)
    assert SlotRule("equal").solve(instance, Limits()).objective > 1.02 * objective


def test_too_many_jobs_for_whole_slots_fall_back() -> None:
    data = slots_instance(2, jobs=3, switches=1).model_dump(mode="json")
    data["switches"][0]["slots"] = 2
    data["jobs"][1]["fallback_bytes_per_s"] = data["jobs"][2]["fallback_bytes_per_s"] = 1e4
    instance = SlotsInstance.from_data(data)
    optimum = optimum_by_enumeration(instance)
    for method in (PricedSlots(), best(instance, "highs")):
        assert method.solve(instance, Limits()).objective == pytest.approx(optimum, rel=1e-4)
    for rule in RULES:
        assert SlotRule(rule).solve(instance, Limits()).objective >= optimum * (1 - 1e-12)


@pytest.mark.parametrize("goal", ["total", "slowest"])
def test_who_is_left_no_whole_slot_falls_back(goal: str) -> None:
    data = slots_instance(2, jobs=2, switches=1, goal=goal).model_dump(mode="json") | {"whole": True}
    data["switches"][0]["slots"] = 1
    data["jobs"][0]["fallback_bytes_per_s"], data["jobs"][1]["fallback_bytes_per_s"] = None, 1e4
    instance = SlotsInstance.from_data(data)
    result = best(instance, "highs").solve(instance, Limits())
    assert result.objective == pytest.approx(optimum_by_enumeration(instance), rel=1e-4)
    assert result.solution.rates_bytes_per_s[1] is None


def test_refusals_and_the_bound_of_the_answer() -> None:
    slowest, total = slots_instance(1, goal="slowest"), slots_instance(1)
    for method, instance in ((PricedSlots(), slowest), (SlowestSlots(), total)):
        with pytest.raises(NotApplicableError):
            method.solve(instance, Limits())
    result = PricedSlots().solve(total, Limits())
    prices = relaxation(SlotArrays(total)).prices
    assert result.bound is not None
    assert result.bound >= price_bound(SlotArrays(total), prices) * (1 - 1e-12)
    assert any(name.startswith("price of memory") for name in result.details)


def test_same_answer_twice() -> None:
    instance = generate("slots", 5, jobs=12, memory=0.02, servers=0.5, whole=True)
    one, other = (PricedSlots().solve(instance, Limits()).solution for _ in range(2))
    assert one == other


@pytest.mark.parametrize(("seed", "back", "links"), [(9, 0.7, 0), (34, 0.0, 2), (17, 0.7, 0), (40, 0.7, 0)])
def test_moving_slots_and_turning_choices_is_worth_it(seed: int, back: float, links: int) -> None:
    slots = (4, 9) if back else (7, 20)
    instance = slots_instance(seed, jobs=6, links=links, back=back, slots=slots)
    optimum = opened().solve(instance, Limits()).objective
    assert PricedSlots().solve(instance, Limits()).objective == pytest.approx(optimum, rel=2e-4)


def certified(arrays: SlotArrays) -> tuple[float, float]:
    """What the prices of the relaxation prove, and what the envelope of its costs is at its rates."""
    found, inside = relaxation(arrays), arrays.fallback < arrays.cap
    envelope = Costs(arrays.cost[inside] / arrays.cap[inside], arrays.fallback[inside] / arrays.cap[inside])
    back = float((arrays.cost[~inside] / arrays.fallback[~inside]).sum())
    attained = envelope.value(found.rates[inside] / arrays.cap[inside]) + back + arrays.compute_total_s
    return price_bound(arrays, found.prices), attained


@pytest.mark.parametrize("seed", range(3))
def test_relaxation_with_fallback_is_that_of_the_convex_program(seed: int) -> None:
    instance = slots_instance(seed, jobs=8, links=2, whole=False, back=0.8, slots=(4, 10))
    proven, attained = certified(SlotArrays(instance))
    problem = SlotShares().problem(instance)
    Convex().solve(problem, Limits())
    assert proven * (1 - 1e-4) <= SlotShares().value(problem, instance) <= attained * (1 + 1e-4)


def test_relaxation_with_fallback_always_reaches_its_gap() -> None:
    for seed in range(60):
        proven, attained = certified(
            SlotArrays(slots_instance(seed, jobs=8, links=2, whole=False, back=0.8, slots=(4, 10)))
        )
        assert proven <= attained <= proven * (1 + 1e-9), seed


def test_shares_in_proportion_stop_at_demand() -> None:
    weights, demand = np.array([1.0, 2.0, 3.0]), np.array([10.0, 4.0, 10.0])
    # The second wants 4 only; the others have 8 in the ratio of 1 to 3.
    assert _shared(weights, demand, 12.0) == pytest.approx([2, 4, 6])
    assert _shared(weights, demand, 30.0) == pytest.approx(demand)
    assert _shared(weights, np.array([1.0, 9.0, 9.0]), 10.0) == pytest.approx([1, 3.6, 5.4])
