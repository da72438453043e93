"""The path of stages: its relaxation, starts, ports, and two builds alike."""

import io

import pyomo.environ as pyo
import pytest
from pipeline_cases import best_of_all, drawn

from ddlopt.instances import library
from ddlopt.instances.generators.deployment import generate
from ddlopt.models.deployment.pipeline.bounds import pipeline_bound
from ddlopt.models.deployment.pipeline.evaluate import evaluate_pipeline
from ddlopt.models.deployment.pipeline.formulations.stage_path import StagePath
from ddlopt.models.deployment.pipeline.instance import PipelineInstance
from ddlopt.models.errors import InfeasibleError
from ddlopt.solvers.backends import Highs
from ddlopt.solvers.contracts import Limits


def built(instance):
    host = pyo.ConcreteModel()
    host.plan = pyo.Block()
    StagePath().build(host.plan, instance)
    host.least = pyo.Objective(expr=host.plan.objective)
    return host


def text(host):
    out = io.StringIO()
    host.pprint(out)
    return out.getvalue()


def test_two_builds_are_alike():
    assert text(built(drawn(3))) == text(built(drawn(3)))


def test_the_relaxation_is_pinned():
    instance = library.load("deployment/pipeline-tiny-l4-k4")
    host = built(instance)
    for variable in host.plan.stage.values():
        variable.domain = pyo.NonNegativeReals
    relaxed = StagePath().objective_value(instance, Highs().solve(host, Limits()).objective)
    assert relaxed == pytest.approx(RELAXED, rel=1e-6)
    assert relaxed <= evaluate_pipeline(instance, library.best("deployment/pipeline-tiny-l4-k4")).objective * (1 + 1e-6)


RELAXED = 0.017633


def test_a_start_is_read_back():
    name = "deployment/pipeline-tiny-l4-k4"
    instance, plan = library.load(name), library.best(name)
    host = built(instance)
    StagePath().start(host.plan, instance, plan)
    found = StagePath().read(host.plan, instance)
    assert evaluate_pipeline(instance, found).objective == evaluate_pipeline(instance, plan).objective


def test_a_host_wants_another_plan():
    """Not all stages of the fastest plan, by a row over the port."""
    name = "deployment/pipeline-tiny-l4-k4"
    instance, plan = library.load(name), library.best(name)
    host = built(instance)
    StagePath().start(host.plan, instance, plan)
    its = [variable for variable in host.plan.stage.values() if variable.value]
    assert len(its) == len(plan.stages)
    host.another = pyo.Constraint(expr=sum(its) <= len(its) - 1)
    found = Highs().solve(host, Limits())
    other = StagePath().read(host.plan, instance)
    value = evaluate_pipeline(instance, other).objective
    assert value == pytest.approx(StagePath().objective_value(instance, found.objective), rel=1e-6)
    assert value > evaluate_pipeline(instance, plan).objective


def test_what_cannot_be_is_infeasible():
    refused = 0
    for instance in map(drawn, range(12)):
        if best_of_all(instance) is None:
            try:
                assert Highs().solve(built(instance), Limits()).objective is None
            except InfeasibleError:
                refused += 1
    assert refused


def test_large_ones_are_refused():
    assert "columns; use pipeline-ideals" in StagePath().refuses(generate("pipeline", 1, layers=100, devices=64))


def test_times_have_a_unit_where_each_layer_alone_may_take_none():
    """The bound is 0, and plans take nanoseconds all the same, which are nothing in units of a second."""
    options = [{"name": "kept", "time_s": 0, "kept_bytes": 3}, {"name": "again", "time_s": 1.3e-8, "kept_bytes": 1}]
    layer = {"name": "a", "menus": [{"tensor": 1, "options": options}]}
    more = {"edges": [{"maker": 0, "user": 1, "size_bytes": 0}], "devices": 1, "memory_bytes": 4, "micro_batches": 2}
    given = {"family": "deployment", "problem": "pipeline", "name": "a", "bandwidth_bytes_per_s": 1}
    instance = PipelineInstance.from_data({**given, **more, "layers": [layer, {**layer, "name": "b"}]})
    assert pipeline_bound(instance) == 0
    assert 1000 * StagePath().unit_s(instance) <= StagePath().achievable_s(instance) == 1.3e-8
