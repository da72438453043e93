"""What a port means is a matter of the instance: no bound that gets better changes it, and its unit is the one told."""

import contextlib
import importlib
import inspect
import pkgutil
import random

import embedding_cases
import pyomo.environ as pyo
import pytest
from feasible_cases import forward, lanes, pieces, scheduling, sfb, table, timeline, topology, tree
from feasible_walks import walked
from kept_solutions import Model
from topology_cases import all_to_all
from volume import for_each, seeds

import ddlopt
import ddlopt.models
from ddlopt.frontier.scheduling.formulations.configurations import Configurations
from ddlopt.frontier.scheduling.formulations.one_piece.one_piece import OnePiece
from ddlopt.frontier.scheduling.formulations.slot_patterns.slot_patterns import SlotPatterns
from ddlopt.frontier.topology.collapse import Collapse
from ddlopt.frontier.topology.formulations.circulant import CirculantDesign
from ddlopt.models.aggregation.table.formulations.table_path import TablePath, error_unit
from ddlopt.models.aggregation.tree.formulations.tree_aggregation import TreeAggregation, unit_s
from ddlopt.models.compression.forward.formulations.forward_order import ForwardOrder
from ddlopt.models.compression.sfb.formulations.sfb_milp import SfbMilp
from ddlopt.models.compression.timeline.formulations.lane_timeline import LaneTimeline
from ddlopt.models.compression.timeline.formulations.overlap_timeline import OverlapTimeline
from ddlopt.models.scheduling.formulations.time_indexed.time_indexed import TimeIndexed
from ddlopt.models.scheduling.units import objective_unit
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.models.topology.formulations.rows.throughput import proven_bytes
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.exact import build_model

KINDS = {kind.__name__: kind for _, kind in embedding_cases.classes("build")}
KEPT = {
    "ForwardOrder": (ForwardOrder, forward),
    "LaneTimeline": (LaneTimeline, lanes),
    "OverlapTimeline": (OverlapTimeline, timeline),
    "SfbMilp": (SfbMilp, sfb),
}
BETTER = 1.0625
"""Times a bound: what a better one might be, and no more than most instances have room for."""


def _better(bound):
    """A bound that is said to be better than the one of the library is."""

    def improved(*given, **more):
        found = bound(*given, **more)
        if isinstance(found, dict):
            return {name: value * BETTER for name, value in found.items()}
        return found * BETTER if isinstance(found, float) else found

    return improved


def _bounds_of_formulations():
    """(module, name) of the functions that formulations have from modules of bounds."""
    for place in pkgutil.walk_packages(ddlopt.models.__path__, "ddlopt.models."):
        if ".formulations" not in place.name:
            continue
        module = importlib.import_module(place.name)
        for name, value in vars(module).items():
            if inspect.isfunction(value) and "bound" in value.__module__.rpartition(".")[2]:
                yield module, name


@pytest.fixture
def better_bounds(monkeypatch):
    found = list(_bounds_of_formulations())
    assert len(found) >= 5
    for module, name in found:
        monkeypatch.setattr(module, name, _better(getattr(module, name)))
    least = inspect.getattr_static(Collapse, "least_load_bytes").func
    monkeypatch.setattr(Collapse, "least_load_bytes", property(lambda this: least(this) * BETTER))


def _units(formulation, instance):
    found = []
    for value in (1.0, -1.0):
        with contextlib.suppress(ZeroDivisionError):
            found.append(float(formulation.objective_value(instance, value)))
    return found


def test_no_unit_is_a_bound(request):
    named = {kind.__name__: kind for kind in KINDS.values() if hasattr(kind, "objective_value")}
    cases = {case.kind: case for case in embedding_cases.cases()}
    made = {name: embedding_cases.smallest(cases[kind]) for name, kind in named.items()}
    before = {name: _units(*each) for name, each in made.items()}
    request.getfixturevalue("better_bounds")
    assert {name: _units(*each) for name, each in made.items()} == before


@pytest.mark.parametrize("name", ["ForwardOrder", "LaneTimeline", "OverlapTimeline", "SfbMilp"])
def test_a_solution_has_its_time_in_the_same_units_under_better_bounds(name, request):
    kind, draw = KEPT[name]
    drawn, answers = draw(6)
    solutions = walked(drawn, answers, random.Random(0), 4)
    assert solutions

    def values():
        instance = type(drawn).from_data(drawn.model_dump(mode="json"))
        model = Model(kind(), instance)
        return [(model.of(each).value, model.formulation.objective_value(instance, 1.0)) for each, _ in solutions]

    before = values()
    assert any(value is not None for value, _ in before)
    request.getfixturevalue("better_bounds")
    assert values() == before


def _solved(formulation, instance):
    model = build_model(instance.family, formulation, instance)
    outcome = Highs().solve(model, Limits(time_s=60, gap=1e-7))
    assert outcome.objective is not None
    return model.component(instance.family)


def _load(instance, design):
    found = ddlopt.check(instance, design)
    assert found.feasible
    return float(found.details["max_link_load_bytes"])


@pytest.mark.parametrize("improved", [False, True])
@for_each("seed", seeds(2, 8))
def test_throughput_is_the_busiest_server_over_the_busiest_link(seed, improved, request):
    """Whatever bound is known of the busiest link: it cuts ports off, and is no unit of them."""
    instance, _ = topology(seed, groups=True, servers=4)
    if improved:
        request.getfixturevalue("better_bounds")
    unit = float(instance.node_bytes.max()) / instance.degree
    for form, port in (("throughput", "throughput"), ("congestion", "congestion")):
        formulation = RingsAndRoutes(rings="all", form=form)
        try:
            block = _solved(formulation, instance)
        except AssertionError:
            assert improved, "the bound that is said to hold may exclude all designs"
            continue
        load, value = _load(instance, formulation.read(block, instance)), pyo.value(block.component(port))
        load = max(load, proven_bytes(instance))
        assert (unit / value if form == "throughput" else unit * value) == pytest.approx(load, rel=1e-5)
        links = tuple((i, j, round(pyo.value(each))) for (i, j), each in block.link.items() if pyo.value(each) > 0.5)
        fixed = RingsAndRoutes(links=links, rings="all")
        block = _solved(fixed, instance)
        assert unit / pyo.value(block.throughput) == pytest.approx(
            _load(instance, fixed.read(block, instance)), rel=1e-5
        )


def test_throughput_of_circulants_and_congestion_of_traffic():
    instance = all_to_all(6, 2)
    unit = float(instance.node_bytes.max()) / instance.degree
    circulant = CirculantDesign()
    block = _solved(circulant, instance)
    assert unit / pyo.value(block.throughput) == pytest.approx(_load(instance, circulant.read(block, instance)))
    design = RingsAndRoutes(form="congestion")
    block = _solved(design, instance)
    assert unit * pyo.value(block.congestion) == pytest.approx(_load(instance, design.read(block, instance)))


@for_each("seed", seeds(2, 10))
def test_smallest_parts_and_errors_and_times(seed):
    """Ports in units are what the check finds, divided by the unit that their class names."""
    instance, _ = scheduling(seed, ({"objective": "max_min"},))
    for formulation in (TimeIndexed(), SlotPatterns(), Configurations()):
        if formulation.refuses(instance) is None:
            block = _solved(formulation, instance)
            part = float(ddlopt.check(instance, formulation.read(block, instance)).objective)
            assert pyo.value(block.smallest) * objective_unit(instance) == pytest.approx(part, rel=1e-6)
    instance, _ = pieces(seed)
    instance = type(instance).from_data(instance.model_dump(mode="json") | {"objective": "max_min"})
    block = _solved(OnePiece(), instance)
    part = float(ddlopt.check(instance, OnePiece().read(block, instance)).objective)
    assert pyo.value(block.smallest) * objective_unit(instance) == pytest.approx(part, rel=1e-6)
    instance, _ = table(seed)
    block = _solved(TablePath(), instance)
    found = ddlopt.check(instance, TablePath().read(block, instance))
    errors = [pyo.value(each) * error_unit(instance) for each in block.error.values()]
    combined = sum(errors) if instance.goal == "sum" else max(errors)
    assert combined == pytest.approx(float(found.objective), rel=1e-5)
    instance, _ = tree(seed)
    if instance.goal == "congestion":
        block = _solved(TreeAggregation(), instance)
        busiest = TreeAggregation().objective_value(instance, pyo.value(block.objective))
        assert pyo.value(block.busiest) * unit_s(instance) == pytest.approx(busiest)
