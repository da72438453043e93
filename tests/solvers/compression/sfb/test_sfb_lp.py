"""The linear relaxation of sufficient factor broadcasting, and the bound of any prices."""

import numpy as np
import pyomo.environ as pyo
import pytest
from sfb_brute_force import all_best

from ddlopt.instances.generators.compression.sfb_random import random_graph
from ddlopt.models.compression.sfb.cut_network import minimum_cut
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.solvers.compression.sfb import sfb_lp
from ddlopt.solvers.compression.sfb.sfb_lp import SfbLp, priced_bound
from ddlopt.solvers.contracts import Limits, Status


def graph(seed, operators=8, **options):
    return random_graph(np.random.default_rng(seed), operators, "any", network_gigabit_per_s=2.0, **options)


@pytest.mark.parametrize("broadcast", ["per_tensor", "per_edge"])
def test_optimum_is_that_of_enumeration(broadcast):
    chosen = 0
    for seed in range(6):
        instance = graph(seed, broadcast=broadcast, fixed_part=0.2)
        result = SfbLp().solve(instance, Limits(gap=0))
        best, selections = all_best(instance)
        assert result.status is Status.OPTIMAL
        assert result.objective == pytest.approx(best, rel=1e-12)
        assert set(result.solution.duplicated) in selections
        assert result.bound == pytest.approx(best, rel=1e-9)
        chosen += len(result.solution.duplicated)
    assert chosen > 0


@pytest.mark.parametrize("broadcast", ["per_tensor", "per_edge"])
def test_any_prices_give_a_bound(broadcast):
    rng = np.random.default_rng(0)
    instance = graph(2, operators=60, broadcast=broadcast)
    best = minimum_cut(instance).bound_s
    edges = np.array([
        (t, j) for t, tensor in enumerate(instance.tensors) for j in tensor.consumers if instance.eligible[j]
    ])  # fmt: skip
    for scale in (1e-8, 1e-6, 1e-4, 1e-2, 1.0):
        prices = rng.normal(scale=scale, size=len(edges))
        found = priced_bound(instance, edges, prices)
        assert found < best
        assert found == priced_bound(instance, edges, np.maximum(0, prices))


def test_bound_survives_a_sloppy_solver(monkeypatch):
    """The bound rests on the prices, whatever the solver says of its optimum."""
    instance = graph(2, operators=60)
    true = SfbLp().solve(instance, Limits())
    solve = sfb_lp.Highs.solve

    def sloppy(self, *arguments, **options):
        outcome = solve(self, *arguments, **options)
        for row in outcome.duals:
            outcome.duals[row] *= 1.01
        return outcome

    monkeypatch.setattr(sfb_lp.Highs, "solve", sloppy)
    result = SfbLp().solve(instance, Limits())
    assert result.objective == true.objective
    (priced,) = (point.bound for point in result.trace)
    assert 0 < priced < true.objective * (1 - 1e-6)


def test_a_fractional_vertex_is_told(monkeypatch):
    build = SfbMilp.build

    def with_half(self, block, instance):
        build(self, block, instance)
        block.half = pyo.Constraint(expr=sum(block.duplicated.values()) == 1.5)

    monkeypatch.setattr(SfbMilp, "build", with_half)
    with pytest.raises(SolverError, match=r"has a value 0\.5 from an integer"):
        SfbLp().solve(graph(2), Limits())


def test_no_time():
    result = SfbLp().solve(graph(2), Limits(time_s=1e-9))
    assert result.status is Status.NO_SOLUTION
    assert "time limit" in result.message
    assert result.bound > 0


def test_what_it_does_not_cover_is_refused():
    for budget in ("memory_part", "compute_part"):
        with pytest.raises(NotApplicableError, match="under a budget the linear relaxation is not integral"):
            SfbLp().solve(graph(0, **{budget: 0.5}), Limits())
