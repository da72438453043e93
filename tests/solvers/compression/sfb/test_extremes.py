"""Nothing and everything: on the three problems, and where budgets stand in the way."""

import numpy as np
from timeline_brute_force import brute_force, random_levels_case, random_timeline_case
from volume import for_each

from ddlopt.models.compression import CompressionInstance, Gradient, Operator, Option, SfbInstance, Tensor, evaluate
from ddlopt.solvers.compression.trivial_plans import Everything, Nothing
from ddlopt.solvers.contracts import Limits, Status

MENU = (
    Option(label="slow", wire_s=9.0),
    Option(label="plain", wire_s=8.0),
    Option(label="exact", compressor="sfb", encode_s=1.0, wire_s=7.0),
    Option(label="late", compressor="sign", encode_s=3.0, wire_s=1.0, error=1.0),
    Option(label="soon", compressor="onebit", encode_s=2.0, wire_s=1.0, error=2.0),
)


def timeline(menu=MENU, **more):
    sizes = (3, 5, 4)
    gradients = tuple(Gradient(name=f"g{i}", shape=(size,), ready_s=float(i), menu=0) for i, size in enumerate(sizes))
    return CompressionInstance(name="x", gradients=gradients, menus=(menu,), **more)


@for_each(
    ("menu", "more", "nothing", "everything"),
    [
        (MENU, {}, (1, 1, 1), (4, 4, 4)),
        (MENU, {"fusion": True}, (1, 1, 1), (4, 4, 4)),
        # The largest first; each leaves the others an option.
        (MENU, {"error_budget": 5.0}, (1, 1, 1), (3, 4, 4)),
        (MENU, {"error_budget": 2.5}, (1, 1, 1), (2, 4, 2)),
        (MENU, {"goal": "error", "time_budget_s": 24.0}, (1, 1, 1), (4, 4, 4)),
        (MENU[3:], {}, (0, 0, 0), (1, 1, 1)),
        (MENU[3:], {"error_budget": 4.0}, (0, 0, 0), (0, 1, 0)),
        ((MENU[3], Option(label="lossy", wire_s=8.0, error=1.5)), {}, (1, 1, 1), (0, 0, 0)),
        ((MENU[3], Option(label="lossy", wire_s=8.0, error=1.5)), {"error_budget": 4.0}, (0, 0, 0), (0, 0, 0)),
    ],
)
def test_timelines(menu, more, nothing, everything):
    case = timeline(menu, **more)
    assert Nothing().solve(case, Limits()).solution.choices == nothing
    assert Everything().solve(case, Limits()).solution.choices == everything


def test_a_time_budget_in_the_way_leaves_no_solution():
    slow = Nothing().solve(timeline(goal="error", time_budget_s=23.9), Limits())
    assert (slow.status, slow.solution, slow.bound) == (Status.NO_SOLUTION, None, 0.0)
    assert slow.message == "it takes 24 s, but time_budget_s is 23.9"
    # Encoded at 2, 5, 8 and then sent.
    assert Everything().solve(timeline(goal="error", time_budget_s=8.9), Limits()).status is Status.NO_SOLUTION


def test_levels_are_the_highest_and_the_lowest():
    rng = np.random.default_rng(4)
    for _ in range(20):
        case = random_levels_case(rng, goal="time")
        allowed = [gradient.curve.allowed for gradient in case.gradients]
        assert Nothing().solve(case, Limits()).solution.levels == tuple(levels[-1] for levels in allowed)
        free = type(case)(**case.model_dump() | {"error_budget": 1e9})
        assert Everything().solve(free, Limits()).solution.levels == tuple(levels[0] for levels in allowed)


def test_never_better_than_the_optimum():
    rng = np.random.default_rng(5)
    answered = 0
    for number in range(60):
        case = random_levels_case(rng) if number % 3 == 0 else random_timeline_case(rng)
        for method in (Nothing(), Everything()):
            result = method.solve(case, Limits())
            if result.status is Status.NO_SOLUTION:
                assert case.goal == "error"
                continue
            answered += 1
            assert result.objective >= brute_force(case)[0] * (1 - 1e-12)
    assert answered > 60


def operator(name, size=0.0, **more):
    settings = {"time_s": 2.0, "replicas": 2, "bandwidth_bytes_per_s": 1.0, "gradient_bytes": size, "memory_bytes": 4.0}
    return Operator(name=name, **settings | more)


@for_each(
    ("budgets", "duplicated"),
    [
        ({}, (1, 2, 4)),
        ({"memory_budget_bytes": 8.0}, (2, 4)),
        ({"compute_budget_s": 1.0}, (2,)),
        # The largest does not fit, smaller ones do.
        ({"memory_budget_bytes": 3.0}, (4,)),
    ],
)
def test_sufficient_factors(budgets, duplicated):
    operators = (
        operator("forward"),
        operator("small", 3.0),
        operator("large", 9.0),
        operator("fixed", 99.0, can_duplicate=False),
        operator("middle", 5.0, memory_bytes=2.0),
    )
    case = SfbInstance(
        name="x", operators=operators, tensors=(Tensor(producer=0, consumers=(1, 2), size_bytes=1.0),), **budgets
    )
    nothing, everything = (method.solve(case, Limits()) for method in (Nothing(), Everything()))
    assert nothing.solution.duplicated == ()
    assert nothing.objective == sum(each.gradient_bytes for each in operators)
    assert everything.solution.duplicated == duplicated
    assert evaluate(case, everything.solution).feasible
