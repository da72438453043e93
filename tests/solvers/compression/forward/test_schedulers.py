"""Orders of frameworks, the search, and what ``exact`` makes of them, against every plan there is."""

import numpy as np
import pytest
from forward_brute_force import optimum_of, tiny
from volume import for_each, seeds

import ddlopt
from ddlopt.instances.generators.compression import generate
from ddlopt.models.compression import evaluate
from ddlopt.models.compression.forward.bounds import forward_bound
from ddlopt.solvers.compression.forward.forward_search import ForwardSearch
from ddlopt.solvers.compression.forward.schedulers import P3, ByteScheduler, Wfbp
from ddlopt.solvers.contracts import Limits, Status

METHODS = (Wfbp(), Wfbp(compressed=True), P3(), ByteScheduler(), ByteScheduler(compressed=True), ForwardSearch())


@for_each("seed", seeds(5, 40))
def test_none_beats_the_best_plan_and_exact_finds_it(seed):
    instance = tiny(np.random.default_rng(seed), budget=bool(seed % 2))
    best = float(optimum_of(instance))
    for method in METHODS:
        result = method.solve(instance, Limits())
        assert evaluate(instance, result.solution).feasible, method
        assert result.objective >= best * (1 - 1e-9), method
        assert result.bound <= best * (1 + 1e-9), method
    found = ddlopt.solve(instance, accept_error=None if seed % 2 else np.inf)
    assert found.status is Status.OPTIMAL
    assert found.objective == pytest.approx(best, rel=1e-6)


BEST = {6: 22.0, 7: 25.5, 8: 14.0, 11: 19.5, 12: 22.0, 14: 22.0}
"""Optima of tiny instances on which the search has to change the options of the relaxation."""


def hard(seed):
    return tiny(np.random.default_rng(seed), gradients=3, budget=bool(seed % 2))


@pytest.mark.slow
def test_these_optima_are_those_of_brute_force():
    assert {seed: float(optimum_of(hard(seed))) for seed in BEST} == BEST


@for_each("seed", BEST)
def test_the_search_finds_the_best_plan_where_the_relaxation_s_options_are_none(seed):
    found = {method: method.solve(hard(seed), Limits()) for method in METHODS}
    assert min(result.objective for result in found.values()) >= BEST[seed] * (1 - 1e-9)
    assert max(result.bound for result in found.values()) <= BEST[seed] * (1 + 1e-9)
    best = found[ForwardSearch()]
    assert best.objective == pytest.approx(BEST[seed], rel=1e-9)
    assert best.details["changes"] > 0
    assert found[Wfbp()].objective > best.objective
    again = ForwardSearch(passes=0).solve(hard(seed), Limits(), start=best.solution)
    assert again.objective == pytest.approx(BEST[seed], rel=1e-9)


@for_each("seed", seeds(5, 40))
def test_in_the_order_of_the_backward_pass_no_options_are_better(seed):
    instance = tiny(np.random.default_rng(seed), gradients=4, options=3, parts=(1,), budget=bool(seed % 2))
    result = Wfbp(compressed=True).solve(instance, Limits())
    assert result.objective == pytest.approx(float(optimum_of(instance, in_order=True)), rel=1e-9)
    assert result.solution.order == (0, 1, 2, 3)


def test_slices_and_priorities():
    instance = generate("forward-network", model="vgg16", compressors=(), parts=(1, 2, 4, 8))
    sliced = P3(slice_elements=10**6).solve(instance, Limits()).solution
    for gradient, parts in zip(instance.timeline.gradients, sliced.parts, strict=True):
        assert parts == next((k for k in (1, 2, 4) if k * 10**6 >= gradient.elements), 8)
    as_ready, whole, tuned = (
        method.solve(instance, Limits()).objective for method in (Wfbp(), P3(slice_elements=10**9), ByteScheduler())
    )
    assert forward_bound(instance) <= tuned <= whole
    assert tuned < 0.9 * as_ready


def test_the_search_goes_on_from_a_start_and_is_repeatable():
    instance = generate("forward-random", 3, gradients=12)
    first, again = (ForwardSearch().solve(instance, Limits()) for _ in range(2))
    assert first.solution == again.solution
    plain = ByteScheduler().solve(instance, Limits())
    started = ForwardSearch().solve(instance, Limits(), start=first.solution)
    assert started.objective <= first.objective <= plain.objective


def test_other_problems_are_refused():
    timeline = generate("forward-random", 3, gradients=3).timeline
    for method in METHODS:
        assert method.refuses(timeline) == "it answers a forward instance, and this is a compression instance"
