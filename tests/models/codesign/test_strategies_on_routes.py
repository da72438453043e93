"""Strategies where everything is sent over given routes: against every choice there is."""

import itertools

import numpy as np
import pytest
from volume import for_each, seeds

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign.demand import heaviest_rows
from ddlopt.models.codesign.formulations.strategies_on_routes import StrategiesOnRoutes
from ddlopt.models.codesign.solution import CodesignPlan
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.topology import TopologyDesign
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model


def drawn_loads(instance, seed, arcs=12):
    rng = np.random.default_rng(seed)
    tables = tables_of(instance)
    return rng.random((arcs, len(tables.groups_of))), rng.random((arcs, len(tables.patterns)))


def solve(instance, loads):
    formulation = StrategiesOnRoutes(loads)
    model = build_model("codesign", formulation, instance)
    outcome = Highs().solve(model, Limits(gap=1e-9))
    if outcome.status is not Status.OPTIMAL:
        return outcome.status, None
    return formulation.objective_value(instance, outcome.objective), formulation.read(model.codesign, instance)


def by_enumeration(instance, loads):
    """Least time over all choices of strategies that fit; infinitely long where something cannot be sent."""
    tables = tables_of(instance)
    best = np.inf
    for choices in itertools.product(*map(range, tables.sizes)):
        if tables.fits(choices):
            busiest = np.zeros(len(loads[0]))
            for part, amounts in zip(loads, tables.bytes_of(choices), strict=True):
                busiest += part[:, amounts > 0] @ amounts[amounts > 0]
            best = min(best, instance.iteration_time_s(tables.compute_of(choices), busiest.max()))
    return best


@for_each("seed", seeds(4, 6))
def test_equals_enumeration(seed):
    options = {"overlap": ("none", "full")[seed % 2], "traffic": 0.3, "memory_slack": 1.0 if seed % 3 == 0 else None}
    instance = random_job(np.random.default_rng(seed), **options)
    loads = drawn_loads(instance, seed)
    time, choices = solve(instance, loads)
    assert time == pytest.approx(by_enumeration(instance, loads), rel=1e-7)
    assert tables_of(instance).fits(choices)


def test_what_cannot_be_sent_is_not():
    """Forbid one after another what the best choice sends."""
    instance = random_job(np.random.default_rng(3))
    loads = drawn_loads(instance, 3)
    times = []
    for _ in range(3):
        time, choices = solve(instance, loads)
        assert time == pytest.approx(by_enumeration(instance, loads), rel=1e-7)
        times.append(time)
        reduced, moved = tables_of(instance).bytes_of(choices)
        part, column = max(((0, reduced.argmax()), (1, moved.argmax())), key=lambda at: (reduced, moved)[at[0]][at[1]])
        loads[part][5, column] = np.inf
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_a_choice_or_a_plan_is_a_start():
    instance = random_job(np.random.default_rng(1))
    choices = (2, 0, 1, 2)
    names = tuple(layer.strategies[a].name for layer, a in zip(instance.layers, choices, strict=True))
    plan = CodesignPlan(instance=instance.name, strategies=names, design=TopologyDesign(instance="x", links=()))
    formulation = StrategiesOnRoutes(drawn_loads(instance, 1))
    for given in (choices, plan):
        block = build_model("codesign", formulation, instance).codesign
        formulation.start(block, instance, given)
        assert formulation.read(block, instance) == choices
        for variable in (*block.strategy.values(), *block.transition.values()):
            assert variable.value is not None


def test_only_arcs_that_may_be_the_busiest_have_rows():
    loads = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [2.0, 1.0 + 1e-15], [0.0, 0.0], [0.0, 2.0]])
    assert sorted(heaviest_rows(loads).tolist()) == [[1.0, 2.0], [2.0, 1.0]]
    assert heaviest_rows(np.zeros((3, 2))).shape == (0, 2)
    instance = random_job(np.random.default_rng(0))
    reduced, moved = drawn_loads(instance, 0)
    twice = (np.vstack([reduced, reduced / 2]), np.vstack([moved, moved / 2]))
    rows = [
        len(build_model("codesign", StrategiesOnRoutes(each), instance).codesign.BUSIEST)
        for each in ((reduced, moved), twice)
    ]
    assert rows[0] == rows[1] <= 12


def test_loads_of_another_instance_are_refused():
    instance = random_job(np.random.default_rng(0))
    reduced, moved = drawn_loads(instance, 0)
    assert StrategiesOnRoutes((reduced, moved)).refuses(instance) is None
    assert "group sets" in StrategiesOnRoutes((reduced[:, 1:], moved)).refuses(instance)
    assert "shapes" in StrategiesOnRoutes((reduced[1:], moved)).refuses(instance)
    assert "at least 0" in StrategiesOnRoutes((reduced, -moved)).refuses(instance)


def test_without_anything_to_compute_times_have_a_unit():
    instance = random_job(np.random.default_rng(0), reduction=0.0)
    data = instance.model_dump(mode="json")
    for layer in data["layers"]:
        for strategy in layer["strategies"]:
            strategy |= {"flops": 0.0, "moved_bytes": 0.0, "measured_s": None}
    idle = type(instance).from_data(data)
    loads = drawn_loads(idle, 0)
    assert solve(idle, loads)[0] == pytest.approx(by_enumeration(idle, loads), abs=1e-9)
