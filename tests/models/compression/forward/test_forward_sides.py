"""Orders by what is sent before and after the last gradient, and the model of them: against every plan there is."""

from fractions import Fraction

import numpy as np
import pytest
from forward_brute_force import optimum_of, sequences, step_of, tiny
from volume import for_each, seeds

from ddlopt.models.compression import ForwardInstance, evaluate
from ddlopt.models.compression.forward.formulations.forward_sides import ForwardSides
from ddlopt.models.compression.forward.sides import best_sides, ordered
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import Exact


def solved(instance, **options):
    method = Exact("forward-sides", "compression", ForwardSides(**options), backend("highs"))
    return method.solve(instance, Limits(30.0, 1e-7))


def alike(rng, gradients, parts, budget):
    """All gradients have the first one's options."""
    drawn = tiny(rng, gradients=gradients, options=2, parts=parts, budget=budget)
    timeline = drawn.timeline
    same = tuple(gradient.model_copy(update={"menu": 0}) for gradient in timeline.gradients)
    timeline = timeline.model_copy(update={"gradients": same, "menus": timeline.menus[:1]})
    return ForwardInstance(name="alike", timeline=timeline, forward_s=drawn.forward_s, parts=parts)


@for_each("seed", seeds(2, 100))
def test_two_sides_are_all_there_is_to_an_order(seed):
    rng = np.random.default_rng(seed)
    instance = tiny(rng, gradients=4, parts=(1, 2, 3))
    choices, parts = (tuple(rng.integers(low, high, 4).tolist()) for low, high in ((0, 2), (1, 3)))
    options = [instance.timeline.option(i, choice) for i, choice in enumerate(choices)]
    best = min(step_of(instance, options, parts, order) for order in sequences(parts))
    found = best_sides(instance, choices, parts)
    assert found.time_s == pytest.approx(float(best))
    assert float(evaluate(instance, ordered(instance, choices, parts, found.before)).objective) == pytest.approx(
        float(best)
    )


@for_each("seed", seeds(2, 60))
def test_where_all_are_single_and_cut_in_two_at_most_the_model_is_exact(seed):
    rng = np.random.default_rng(seed)
    instance = alike(rng, 3, (1, 2) if seed % 2 else (1,), bool(seed % 3))
    result, best = solved(instance), float(optimum_of(instance))
    assert result.objective == pytest.approx(best, rel=1e-6)
    assert result.bound == pytest.approx(best, rel=1e-6)


@for_each("seed", seeds(2, 60))
def test_counts_of_alike_gradients_bound_every_plan(seed):
    rng = np.random.default_rng(seed)
    instance = alike(rng, 2, (1, 3), False) if seed % 3 == 0 else alike(rng, 4, (1,), bool(seed % 2))
    best = float(optimum_of(instance))
    for options in ({"first": 1, "last": 1, "every": 0}, {"first": 4}):
        result = solved(instance, **options)
        assert result.bound <= best * (1 + 1e-6)
        assert best <= result.objective * (1 + 1e-9)


def test_more_labels_than_sums_lose_nothing_and_few_still_make_a_plan():
    instance = tiny(np.random.default_rng(3), gradients=6, options=1, parts=(1,))
    best = min(
        step_of(instance, [instance.timeline.option(i, 0) for i in range(6)], (1,) * 6, order)
        for order in sequences((1,) * 6)
    )
    assert best_sides(instance, (0,) * 6, (1,) * 6).time_s == pytest.approx(float(best))
    few = best_sides(instance, (0,) * 6, (1,) * 6, 2)
    told = evaluate(instance, ordered(instance, (0,) * 6, (1,) * 6, few.before), exact=True).objective
    assert isinstance(told, Fraction)
    assert float(told) == pytest.approx(few.time_s)
    assert best <= told
