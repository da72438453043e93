"""Which instances are tried again, and by which methods."""

from types import SimpleNamespace

import pytest

from ddlopt.analysis import records
from ddlopt.models.contracts import Evaluation
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Status, empty_result


@pytest.mark.parametrize(
    ("sense", "objective", "bound", "settled"),
    [
        ("minimize", 4.0, 4.0, True),
        ("minimize", 4.0, 3.9, False),
        ("maximize", 4.0, 4.0, True),
        ("maximize", 4.0, 4.1, False),
        ("maximize", 4.0, None, False),
        ("minimize", None, 4.0, False),
    ],
)
def test_an_instance_is_settled_where_its_best_meets_the_bound(
    monkeypatch, instance, design, sense, objective, bound, settled
):
    told = SimpleNamespace(evaluate=lambda *_: Evaluation(objective), bound=lambda _: bound)
    monkeypatch.setattr(TopologyInstance, "sense", sense)
    monkeypatch.setattr(records, "family", lambda name: told)
    monkeypatch.setattr(records.instances, "best", lambda name: design)
    assert records.is_settled("topology/square", instance) is settled
    monkeypatch.setattr(records.instances, "best", lambda name: None)
    assert not records.is_settled("topology/square", instance)


@pytest.mark.parametrize(("methods", "asked"), [(["exact", "expander"], ["exact", "expander"]), (None, None)])
def test_every_heuristic_is_asked_unless_methods_are_named(monkeypatch, methods, asked):
    seen = []

    def attempt(instance, method, limits, seed):
        seen.append(method.name)
        return empty_result(instance, method.name, Status.NO_SOLUTION)

    monkeypatch.setattr(records, "attempt", attempt)
    monkeypatch.setattr(records, "is_settled", lambda name, instance: False)
    assert list(records.improve(["topology/tiny-n4-d2"], methods, Limits(), [0])) == []
    heuristics = [entry.name for entry in catalogue.entries("topology") if entry.kind == "heuristic"]
    assert seen == (asked or heuristics)
    assert "link-exchange" in heuristics
    assert "exact" not in heuristics
