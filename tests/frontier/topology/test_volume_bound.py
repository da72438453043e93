"""Hops of the links that are laid: bounds below every design, and above those that need no solver."""

import itertools

import numpy as np
import pyomo.environ as pyo
import pytest
from brute_force import brute_force
from topology_cases import DANOINT, all_to_all, job
from volume import for_each, some

import ddlopt
from ddlopt.frontier.topology.formulations.min_volume import MinVolume
from ddlopt.frontier.topology.methods import bound_first, link
from ddlopt.frontier.topology.volume_bound import VolumeBound
from ddlopt.models.topology.bounds import congestion_bounds, lower_bound
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model


def danoint():
    return job(DANOINT, parallel_links=False)


def random_instance(n, seed, density=0.7, **options):
    rng = np.random.default_rng(seed)
    traffic = rng.integers(1, 10, (n, n)) * (rng.random((n, n)) < density)
    np.fill_diagonal(traffic, 0)
    traffic[0, 1] += 3
    return job(traffic, **options)


@pytest.mark.slow
def test_volume_bound_of_danoint_and_its_optimum():
    model = build_model("topology", MinVolume(), danoint())
    outcome = Highs().solve(model, Limits(gap=1e-6))
    assert MinVolume().objective_value(danoint(), outcome.bound) == pytest.approx(64.6875, rel=1e-5)


@pytest.mark.parametrize(("hops", "bound"), [("moore", 62.6875), ("between", 63.580211)])
def test_relaxation_of_danoint(hops, bound):
    model = build_model("topology", MinVolume(hops=hops), danoint())
    pyo.TransformationFactory("core.relax_integer_vars").apply_to(model)
    outcome = Highs().solve(model, Limits())
    assert MinVolume().objective_value(danoint(), outcome.objective) == pytest.approx(bound, rel=1e-6)


@for_each(("n", "optics", "hops"), some(itertools.product([4, 5], ["one_way", "duplex"], ["moore", "between"]), 4))
def test_volume_bound_is_one(n, optics, hops):
    instance = random_instance(n, n, optics=optics)
    program = MinVolume(hops=hops)
    bound = program.objective_value(instance, Highs().solve(build_model("topology", program, instance), Limits()).bound)
    assert max(congestion_bounds(instance).values()) * (1 - 1e-7) <= bound <= brute_force(instance) * (1 + 1e-6)


def test_method_keeps_the_design_and_raises_the_bound():
    instance = ddlopt.load("danoint")
    start = ddlopt.instances.best("danoint")
    found = VolumeBound().solve(instance, Limits(), start=start)
    assert found.solution == start
    assert lower_bound(instance) * 1.016 < found.bound < found.objective
    without = VolumeBound().solve(instance, Limits())
    assert without.solution is None
    assert without.bound == pytest.approx(found.bound, rel=1e-9)


def test_which_instances_it_is_for():
    grouped = job(np.zeros((3, 3)), groups=[((0, 1, 2), 1)])
    assert "rings" in MinVolume().refuses(grouped)
    assert "forward" in MinVolume().refuses(all_to_all(3, host_forwarding=False))
    assert "at most" in VolumeBound().refuses(all_to_all(17, 4))
    assert bound_first(grouped, "highs") is None
    assert bound_first(all_to_all(5), "highs") is None  # listed links prove more
    assert bound_first(danoint(), "highs") is not None
    assert bound_first(danoint(), "scip") is None


def test_few_sets_of_neighbours_are_branched_on_beside_groups():
    pairs = [((0, 1, 2, 3, 4, 5, 6, 7), 9.0), ((0, 3), 5.0)]
    few = job(random_instance(8, 1, 0.2).traffic_bytes, groups=pairs, degree=2, optics="duplex")
    assert link(few, "highs").name == "branch-and-bound"
    assert link(few.model_copy(update={"degree": 3}), "highs") is None
