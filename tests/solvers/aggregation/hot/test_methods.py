"""Methods for the hot set: agreement with enumeration and with each other, theorems, refusals."""

from dataclasses import replace
from itertools import pairwise

import hot_cases
import numpy as np
import pytest
from volume import for_each, seeds, slow

from ddlopt.instances.generators import generate
from ddlopt.instances.library import load
from ddlopt.models.aggregation import HotInstance, evaluate
from ddlopt.models.aggregation.hot.formulations.hot_parameters import HotParameters
from ddlopt.models.aggregation.hot.prices import best_prices
from ddlopt.models.aggregation.hot.values import groups_of
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.solvers.aggregation.hot.exact import opened
from ddlopt.solvers.aggregation.hot.greedy import HotDensity, HotFrequency, HotPrices, HotSampled
from ddlopt.solvers.aggregation.hot.knapsack import HotKnapsack
from ddlopt.solvers.aggregation.hot.methods import ENTRIES, best, milp
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, build_model, lp_relaxation

TIGHT = Limits(gap=1e-9)
METHODS = {"milp": opened("highs"), **{entry.name: entry.make("highs") for entry in ENTRIES}}
EXACT = ("hot-knapsack", "milp", "hot-plain")


@pytest.mark.parametrize("seed", seeds(6, 16))
def test_exact_methods_find_the_best_by_enumeration(seed: int) -> None:
    instance = hot_cases.drawn(seed, jobs=1 + seed % 3, switches=1 + seed % 2, most=4 if seed % 2 else 5)
    optimum = float(hot_cases.best_by_enumeration(instance))
    for name in EXACT:
        if METHODS[name].refuses(instance) is None:
            result = METHODS[name].solve(instance, TIGHT)
            assert result.status is Status.OPTIMAL
            assert hot_cases.exact_value(instance, result.solution) == pytest.approx(optimum, rel=1e-9, abs=1e-9)
    for name, method in METHODS.items():
        if method.refuses(instance) is not None:
            continue
        result = method.solve(instance, Limits(), seed=seed)
        assert result.objective <= optimum * (1 + 1e-9) + 1e-9, name
        assert result.bound >= optimum * (1 - 1e-9) - 1e-9, name


@for_each("seed", range(12))
def test_the_knapsack_is_as_good_as_the_whole_dynamic_program(seed: int) -> None:
    instance = hot_cases.drawn(seed, jobs=3, switches=1, most=60, widest=2 + seed % 7)
    instance = with_registers(instance, 20 + 3 * seed)
    capacity = instance.switches[0].registers
    best_with = np.zeros(capacity + 1)
    for group in groups_of(instance):
        for value in group.values[group.level_of[0]] if group.level_of[0] >= 0 else []:
            if group.width <= capacity:
                shifted = best_with[: capacity + 1 - group.width] + value
                best_with[group.width :] = np.maximum(best_with[group.width :], shifted)
    result = HotKnapsack().solve(instance, TIGHT)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(best_with[-1], rel=1e-12)


def with_registers(instance: HotInstance, registers: int) -> HotInstance:
    data = instance.model_dump(mode="json")
    data["switches"][0]["registers"] = registers
    return HotInstance.from_data(data)


@pytest.mark.parametrize("seed", seeds(1, 5))
def test_for_equal_widths_those_touched_most_are_the_best(seed: int) -> None:
    rng = np.random.default_rng(seed)
    data = {
        "name": "equal",
        "jobs": [{"name": "a", "workers": 7, "frequencies": rng.random(12).tolist(), "registers": 3}],
        "switches": [{"name": "s", "registers": 3 * 5 + 2}],
    }
    instance = HotInstance.from_data(data)
    hottest = HotFrequency().solve(instance, Limits())
    assert sorted(np.argsort(-instance.jobs[0].frequencies)[:5]) == hottest.solution.placed[0][0].tolist()
    assert hottest.objective == pytest.approx(float(hot_cases.best_by_enumeration(instance)), rel=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_reductions_and_order_leave_an_optimum(seed: int) -> None:
    instance = hot_cases.drawn(200 + seed, jobs=2, switches=2 + seed % 2, most=20)
    values = [
        Exact("x", "aggregation", HotParameters(reduced, ordered)).solve(instance, TIGHT).objective
        for reduced in (True, False)
        for ordered in (True, False)
    ]
    assert values == pytest.approx([values[0]] * 4, rel=1e-8, abs=1e-9)


@for_each("seed", range(8))
def test_an_optimum_has_hotter_parameters_where_more_workers_pass(seed: int) -> None:
    instance = hot_cases.drawn(300 + seed, jobs=2, switches=3, most=15, widest=2)
    answer = Exact("x", "aggregation", HotParameters(ordered=True)).solve(instance, TIGHT).solution
    for group in groups_of(instance):
        place = {int(i): s for s, own in enumerate(answer.placed) for i in own[group.job]}
        levels = [group.level_of[place[i]] if i in place else -1 for i in group.parameters.tolist()]
        heat = group.values[-1]
        for one, other in pairwise(range(len(levels))):
            assert levels[one] >= levels[other] or heat[one] == heat[other]


@pytest.mark.parametrize("placed", [[[[1], []], [[], []]], [[[1], []], [[0], []]], [[[], []], [[1], []]]])
def test_order_cuts_off_a_colder_parameter_in_a_better_place(placed: list) -> None:
    # Parameter 1 of the first job is on a rack; parameter 0, hotter, is nowhere or on the one with fewer workers.
    instance = load("aggregation/hot-tiny-p9-s2")
    formulation = HotParameters(reduced=False, ordered=True)
    block = build_model("aggregation", formulation, instance).aggregation
    for sets, kept in ((placed, False), ([[[0], []], [[1], []]], True)):
        formulation.start(block, instance, hot_cases.all_of(instance, placed=sets))
        rows = block.order_is_kept.values()
        assert all(row.lower <= row.body() for row in rows) is kept


def test_equally_good_widths_are_combined_far_from_the_break() -> None:
    data = {
        "name": "sevens",
        "jobs": [{"name": "a", "workers": 2, "frequencies": [0.5] * 20, "registers": [7] * 10 + [5] * 10}],
        "switches": [{"name": "s", "registers": 74}],
    }
    result = HotKnapsack().solve(HotInstance.from_data(data), TIGHT)
    assert result.details["registers"] == 74
    assert result.objective == pytest.approx(74 * 0.25)


def test_parameters_at_home_in_several_racks_choose_last() -> None:
    options = {"jobs": 4, "parameters": 2500, "switches": 4, "racks": True, "widths": (1, 2, 4, 8)}
    instance = generate("aggregation", "hot-zipf", seed=2, **options)
    assert HotPrices().solve(instance, Limits()).gap < 1e-4


def test_prices_leave_few_parameters_open() -> None:
    instance = generate("aggregation", "hot-zipf", seed=1, jobs=2, parameters=3000, switches=3, racks=True)
    reduced = build_model("aggregation", HotParameters(), instance).aggregation
    plain = build_model("aggregation", HotParameters(reduced=False), instance).aggregation
    assert len(plain.on) > 10_000
    assert len(reduced.on) < 200


def test_the_relaxation_is_the_bound_without_a_solver() -> None:
    instance = load("aggregation/hot-racks4-jobs3-p600")
    relaxed = lp_relaxation(HotParameters(reduced=False), instance)
    assert relaxed.objective == pytest.approx(best_prices(instance).bound, rel=1e-6)


def racks(seed: int) -> HotInstance:
    options = {"jobs": 3, "parameters": 60, "switches": 3, "racks": True, "widths": (1, 2, 4, 8)}
    return generate("aggregation", "hot-zipf", seed=seed, **options)


@for_each("seed", [6, slow(1)])
def test_what_each_heuristic_leaves_out_costs_something_on_racks(seed: int) -> None:
    names = ("hot-prices", "hot-density", "hot-frequency", "hot-quota", "hot-random")
    saved = [METHODS[name].solve(racks(seed), Limits()).objective for name in names]
    assert all(more > 1.02 * less for more, less in pairwise(saved))
    assert saved[0] == pytest.approx(best_prices(racks(seed)).bound, rel=1e-6)
    drawn = [METHODS["hot-random"].solve(racks(seed), Limits(), each).solution for each in (0, 1, 1)]
    assert drawn[0] != drawn[1] == drawn[2]


def test_each_job_keeps_to_its_quota() -> None:
    instance = load("aggregation/hot-jobs3-p1000")
    answer = METHODS["hot-quota"].solve(instance, Limits()).solution
    quota = instance.switches[0].registers // 3
    used = [int(job.widths[own].sum()) for job, own in zip(instance.jobs, answer.placed[0], strict=True)]
    assert max(used) <= quota
    assert min(used) > quota - 8


def test_a_larger_sample_captures_more() -> None:
    instance = racks(6)
    few, many, again, other = (
        HotSampled(samples).solve(instance, Limits(), seed) for samples, seed in ((2, 3), (10_000, 3), (2, 3), (2, 4))
    )
    assert few.details["capture"] < 0.9
    assert many.details["capture"] > 0.9999
    oracle = HotDensity().solve(instance, Limits()).objective
    assert few.details["capture"] == pytest.approx(few.objective / oracle, rel=1e-12)
    assert few.solution == again.solution != other.solution


def test_a_start_that_is_best_is_kept() -> None:
    instance = load("aggregation/hot-tiny-p9-s2")
    first = METHODS["hot-plain"].solve(instance, TIGHT)
    again = METHODS["milp"].solve(instance, TIGHT, start=first.solution)
    assert again.objective == pytest.approx(first.objective)
    assert again.status is Status.OPTIMAL


def test_the_methods_that_are_taken_where_none_is_named() -> None:
    one, several = load("aggregation/hot-tiny-p12-s1"), load("aggregation/hot-tiny-p9-s2")
    assert best(one, "highs").name == "hot-knapsack"
    assert best(several, "highs").name == milp(one, "highs").name == "milp"
    with pytest.raises(NotApplicableError, match="it fills one switch, and there are 2"):
        HotKnapsack().solve(several, Limits())
    with pytest.raises(NotApplicableError, match="it answers a hot parameters"):
        HotPrices().solve(load("topology/danoint"), Limits())
    assert (
        HotParameters().refuses(load("topology/danoint"))
        == "it answers a hot parameters, and this is a topology instance"
    )


def test_too_large_a_table_leaves_a_bound() -> None:
    instance = load("aggregation/hot-tiny-p12-s1")
    result = HotKnapsack(most_cells=0).solve(instance, Limits(gap=0))
    assert result.status is Status.FEASIBLE
    assert result.objective <= 22.67087908 + 1e-9 <= result.bound
    assert "too many cells" in result.message


def test_half_a_parameter_is_refused() -> None:
    instance = load("aggregation/hot-tiny-p9-s2")
    formulation = HotParameters(reduced=False)
    block = build_model("aggregation", formulation, instance).aggregation
    formulation.start(block, instance, METHODS["hot-density"].solve(instance, Limits()).solution)
    assert evaluate(instance, formulation.read(block, instance)).feasible
    next(iter(block.on.values())).set_value(0.5)
    with pytest.raises(SolverError, match=r"on switch 0 in part: 0\.5"):
        formulation.read(block, instance)


@pytest.mark.slow
def test_a_million_parameters() -> None:
    instance = generate("aggregation", "hot-zipf", seed=1, jobs=2, parameters=500_000, widths=(1, 2, 4, 8))
    assert instance.size == 1_000_000
    result = HotKnapsack().solve(instance, replace(TIGHT, time_s=60))
    assert result.status is Status.OPTIMAL
