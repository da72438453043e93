"""``exact``: the method that fits, on three of the problems."""

import numpy as np
import pytest
from timeline_brute_force import brute_force, random_levels_case, random_timeline_case
from volume import for_each, slow

from ddlopt.models.compression import Operator, SfbInstance, Tensor
from ddlopt.models.errors import SolverMissingError, UnknownNameError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.compression.best import Best
from ddlopt.solvers.contracts import Limits, Status

SFB = {
    "name": "fc",
    "operators": (
        Operator(name="forward", time_s=1.0, replicas=2, bandwidth_bytes_per_s=1.0),
        Operator(name="a", time_s=2.0, replicas=2, bandwidth_bytes_per_s=1.0, gradient_bytes=30.0, memory_bytes=5.0),
        Operator(name="b", time_s=2.0, replicas=2, bandwidth_bytes_per_s=1.0, gradient_bytes=20.0, memory_bytes=5.0),
    ),
    "tensors": (Tensor(producer=0, consumers=(1, 2), size_bytes=8.0),),
}


@for_each("fusion", [False, True])
@for_each(("goal", "budget"), [("time", False), ("time", True), ("error", False)])
@for_each("cases", [2, slow(6)])
def test_timelines(goal, budget, fusion, cases):
    rng = np.random.default_rng([11, budget, fusion])
    for _ in range(cases):
        instance = random_timeline_case(rng, fusion=fusion, goal=goal, budget=budget)
        best, _ = brute_force(instance)
        result = Best().solve(instance, Limits(gap=1e-9))
        assert result.method == "exact"
        assert result.objective == pytest.approx(best, rel=1e-6, abs=1e-9)
        assert result.bound == pytest.approx(best, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("goal", ["time", "error"])
def test_levels(goal):
    rng = np.random.default_rng(12)
    for _ in range(6):
        instance = random_levels_case(rng, goal=goal)
        result = Best().solve(instance, Limits(gap=1e-9))
        assert result.objective == pytest.approx(brute_force(instance)[0], rel=1e-6)


def test_sufficient_factors_with_and_without_budget():
    # All duplicated: half of 5 s more in place of 50 bytes; 9 bytes of memory are enough for one of the two.
    free = Best().solve(SfbInstance(**SFB), Limits())
    assert (free.method, free.status, free.message) == ("exact", Status.OPTIMAL, "by min-cut")
    assert (free.objective, free.solution.duplicated) == (2.5, (0, 1, 2))
    tight = Best().solve(SfbInstance(**SFB, memory_budget_bytes=9.0), Limits())
    assert (tight.status, tight.objective, tight.solution.duplicated) == (Status.OPTIMAL, 21.5, (0, 1))


def test_a_time_budget_below_all_times_is_infeasible():
    rng = np.random.default_rng(13)
    for fusion in (False, True):
        instance = random_timeline_case(rng, gradients=4, options=3, fusion=fusion, goal="error", whole=False)
        data = instance.model_dump() | {"goal": "time", "time_budget_s": None}
        fastest, _ = brute_force(type(instance)(**data))
        late = type(instance)(**instance.model_dump() | {"time_budget_s": 0.99 * fastest})
        assert Best().solve(late, Limits()).status is Status.INFEASIBLE


def test_the_solver_named_is_the_one_behind_the_models():
    assert method("exact", "compression", "highs").solver == "highs"
    with pytest.raises((UnknownNameError, SolverMissingError)):
        method("exact", "compression", "abacus").solve(SfbInstance(**SFB, memory_budget_bytes=9.0), Limits())
