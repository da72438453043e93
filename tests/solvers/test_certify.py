"""Nothing is reported that the check has not passed: false claims, broken designs and impossible bounds are refused."""

import dataclasses
from typing import ClassVar

import numpy as np
import pytest
from gate_cases import finish
from volume import for_each

from ddlopt.models.contracts import Bound, Evidence
from ddlopt.models.errors import NotApplicableError, SolverError
from ddlopt.models.topology import Route, TopologyDesign, TopologyInstance
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.certified import withdrawn
from ddlopt.solvers.certify import Gate, MethodOutput, leaf_of
from ddlopt.solvers.contracts import Limits, Method, Result, Status, TracePoint, relative_gap
from ddlopt.solvers.heuristic import Heuristic


def pair(bandwidth=1.0):
    return TopologyInstance(
        name="pair",
        servers=2,
        degree=1,
        link_bandwidth_bytes_per_s=bandwidth,
        traffic_bytes=np.array([[0.0, 3.0], [1.0, 0.0]]),
    )


def design(**changes):
    routes = [
        Route(source=0, target=1, paths=[(0, 1)], fractions=[1]),
        Route(source=1, target=0, paths=[(1, 0)], fractions=[1]),
    ]
    return TopologyDesign(**{"instance": "pair", "links": [(0, 1, 1), (1, 0, 1)], "routes": routes, **changes})


def finished(**changes):
    return finish(pair(), "test", design(), **{"runtime_s": 0.5, "limits": Limits(), **changes})


def test_a_design_that_meets_the_combinatorial_bound_is_optimal():
    result = finished()
    assert (result.objective, result.bound, result.gap) == (3.0, 3.0, 0.0)
    assert result.status is Status.OPTIMAL
    assert result.checked
    assert result.details["max_link_load_bytes"] == 3


@pytest.mark.parametrize(
    ("method", "bound", "names"),
    [
        ("test", None, ("test", "combinatorial")),
        ("test", 2.0, ("test", "combinatorial")),
        ("test", 2.0 * (1 + 1e-9), ("test", "combinatorial")),
        ("test", 2.5, ("test", "test")),
        ("exact", 2.5, ("RingsAndRoutes", "RingsAndRoutes")),
    ],
)
def test_a_result_names_what_found_and_what_proved(monkeypatch, method, bound, names):
    known = Bound(2.0, Evidence.COMBINATORIAL)
    monkeypatch.setattr(Gate, "_combinatorial", lambda gate: known)
    leaf = leaf_of(method, RingsAndRoutes())
    gate = Gate(pair(), method, Limits(), runtime_s=0.5, leaf=leaf)
    result = gate.certify(MethodOutput(design(), bound=bound))
    assert (result.found_by, result.proved_by) == names
    nothing = gate.without_solution(MethodOutput(None, bound=bound))
    assert (nothing.found_by, nothing.proved_by) == (None, names[1])


def test_a_false_claim_is_an_error():
    with pytest.raises(SolverError, match=r"claims 2\.9, but evaluate finds 3"):
        finished(claimed=2.9)


def test_a_bound_above_the_checked_objective_is_an_error():
    with pytest.raises(SolverError, match=r"bound 3\.1 exceeds the checked objective 3"):
        finished(bound=3.1)
    with pytest.raises(SolverError, match="bound within its scope"):
        finished(scope="half", scope_bound=3.1)


def test_no_point_of_a_trace_has_a_bound_beyond_that_of_the_result():
    """It may be one for a scope, or one that a solver said too early."""
    told = [TracePoint(0.1, None, 1.0), TracePoint(0.2, 9.0, 9.0), TracePoint(0.3, 3.0, None)]
    result = finished(trace=tuple(told))
    assert [(point.incumbent, point.bound) for point in result.trace] == [(None, 1.0), (9.0, None), (3.0, None)]
    gate = Gate(pair(), "test", Limits(), trace=tuple(told))
    assert [point.bound for point in gate.without_solution(MethodOutput(None)).trace] == [1.0]
    assert all(point.bound is None for point in withdrawn(result, Status.FEASIBLE).trace)


def test_no_point_of_a_trace_has_an_incumbent_better_than_the_checked_objective():
    """Nobody has checked it; it may be one of a relaxation, or of a part."""
    told = tuple(TracePoint(0.1, worth, None) for worth in (9.0, 2.9, 3.0 - 1e-9, None))
    assert [point.incumbent for point in finished(trace=told).trace] == [9.0, 3.0 - 1e-9]
    assert Gate(pair(), "test", Limits(), trace=told).without_solution(MethodOutput(None)).trace == ()
    assert Gate(pair(), "test", Limits(), trace=told).failed("it fell over").trace == ()


def test_of_what_is_maximised_an_incumbent_above_the_objective_is_left_out(monkeypatch):
    monkeypatch.setattr(type(pair()), "sense", "maximize")
    told = tuple(TracePoint(0.1, worth, None) for worth in (9.0, 2.9))
    gate = Gate(pair(), "test", Limits(), trace=told)
    assert [point.incumbent for point in gate.reference(3.0, {}, "").trace] == [2.9]


def test_a_design_that_fails_the_check_is_an_error():
    with pytest.raises(SolverError, match="fails the check: traffic_is_routed at traffic 1 -> 0"):
        finish(pair(), "test", design(routes=design().routes[:1]), runtime_s=0, limits=Limits())


def test_the_bound_of_a_scope_proves_nothing_about_the_whole(monkeypatch):
    from ddlopt.models import catalogue

    weak = dataclasses.replace(catalogue.family("topology"), bound=lambda instance: 1.0)
    monkeypatch.setattr("ddlopt.solvers.certify.family", lambda name: weak)
    result = finished(scope="one pair", scope_bound=3.0)
    assert result.status is Status.FEASIBLE
    assert result.bound == 1.0
    assert result.gap == pytest.approx(2 / 3)
    assert result.scope_gap == 0.0


def test_gap_of_nothing_is_nothing():
    assert relative_gap(None, 1.0) is None
    assert relative_gap(1.0, None) is None
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(4.0, 3.0) == 0.25


@for_each(
    ("bad", "message"),
    [
        ({"time_s": 0}, "time limit"),
        ({"time_s": float("nan")}, "time limit"),
        ({"gap": 1}, "gap"),
        ({"gap": -1e-9}, "gap"),
        ({"threads": 0}, "threads"),
    ],
)
def test_limits_refuse_what_makes_no_sense(bad, message):
    with pytest.raises(ValueError, match=message):
        Limits(**bad)


@dataclasses.dataclass(frozen=True)
class Direct(Heuristic):
    """Answers the pair; stands for any heuristic."""

    family: ClassVar[str] = "topology"
    name: ClassVar[str] = "direct"

    def refuses(self, instance):
        return None if instance.servers == 2 else f"it knows 2 servers, not {instance.servers}"

    def answer(self, instance, seed, clock, start):
        clock.report(3.0)
        return design(), {"seed seen": seed}


def test_a_heuristic_is_a_method_and_its_result_is_checked():
    seen = []
    result = Direct().solve(pair(), Limits(), seed=7, progress=seen.append)
    assert isinstance(Direct(), Method)
    assert isinstance(result, Result)
    assert result.checked
    assert [point.incumbent for point in seen] == [3.0] == [point.incumbent for point in result.trace]
    assert result.details["seed seen"] == 7
    assert result.provenance["seed"] == 7
    assert result.instance_digest == pair().digest


def test_a_heuristic_refuses_what_it_does_not_cover():
    traffic = np.ones((3, 3)) - np.eye(3)
    three = TopologyInstance(name="three", servers=3, degree=1, link_bandwidth_bytes_per_s=1, traffic_bytes=traffic)
    with pytest.raises(NotApplicableError, match="it knows 2 servers, not 3"):
        Direct().solve(three, Limits())
