"""Bounds that packages announce: those of the frontier count, those of others are shown."""

from types import SimpleNamespace

import pytest

import ddlopt
from ddlopt.models import announced_bounds, plugins
from ddlopt.models.announced_bounds import Bound
from ddlopt.models.catalogue import family
from ddlopt.models.contracts import Evidence

NAME = "topology/tiny-n4-d2"


@pytest.fixture
def announce(monkeypatch):
    """Have packages announce bounds, by what their entry points say."""

    def told(value, bounds):
        point = SimpleNamespace(value=value, load=lambda: bounds)
        monkeypatch.setattr(plugins, "entry_points", lambda group: [point] if group == "ddlopt.bounds" else [])
        announced_bounds._announced.cache_clear()

    yield told
    announced_bounds._announced.cache_clear()


@pytest.fixture
def instance():
    return ddlopt.load(NAME)


def scaled(factor):
    own = ddlopt.load(NAME)
    value = family("topology").problems[0].bound(own) * factor
    return Bound("topology", "scaled", lambda _: value), value


@pytest.mark.parametrize(("factor", "counts"), [(1.001, True), (0.9, False)])
def test_the_tightest_of_the_frontier_counts(announce, instance, factor, counts):
    bound, value = scaled(factor)
    before = family("topology").bound(instance)
    announce("ddlopt.frontier.bounds:BOUNDS", (bound, Bound("codesign", "of another", lambda _: 1e9)))
    assert family("topology").bound(instance) == (value if counts else before)


def test_kernels_may_depend_on_the_instance(announce, instance):
    each = Bound("topology", "calls one", lambda _: None, lambda asked: (f"kernels.of.{asked.name}",))
    announce("ddlopt.frontier.bounds:BOUNDS", (each, Bound("topology", "calls another", lambda _: None, ("others",))))
    assert announced_bounds.kernels(instance, "topology") == (f"kernels.of.{instance.name}", "others")


def test_that_of_another_package_is_shown_and_serves_for_nothing(announce, instance):
    bound, value = scaled(1e6)
    before = ddlopt.solve(instance, "topology-finder")
    announce("other:BOUND", bound)
    result = ddlopt.solve(instance, "topology-finder")
    assert result.details["claimed_bound"] == value
    assert (result.bound, result.evidence) == (before.bound, Evidence.COMBINATORIAL)
    assert "claimed_bound" not in before.details
    assert before.message == ""
    assert result.message.endswith(f"exceeds the checked objective {result.objective:.12g}, and is false")


@pytest.mark.parametrize(("sense", "tight"), [("minimize", 3.0), ("maximize", 2.0)])
def test_of_several_claims_the_tightest_is_shown(announce, sense, tight):
    said = [("topology", 2.0), ("topology", None), ("topology", 3.0), ("codesign", 1.0), ("codesign", 9.0)]
    bounds = [Bound(problem, f"says {value}", lambda _, value=value: value) for problem, value in said]
    asked = SimpleNamespace(sense=sense)
    announce("other:BOUNDS", bounds)
    assert announced_bounds.claimed(asked, "topology") == tight
    assert announced_bounds.tightest(asked, "topology", 2.5) == 2.5
    announce("ddlopt.frontier.bounds:BOUNDS", bounds)
    assert announced_bounds.claimed(asked, "topology") is None
    for own in (None, 2.5):
        assert announced_bounds.tightest(asked, "topology", own) == tight


def test_nothing_of_another_package_is_compiled_before_a_solve(announce, instance):
    announce("other:BOUND", Bound("topology", "odd", lambda _: None, ("no.such.module",)))
    assert announced_bounds.kernels(instance, "topology") == ()


def test_a_problem_that_does_not_exist_is_told(announce, instance):
    announce("other:BOUNDS", [Bound("topologie", "odd", lambda _: 1.0)])
    with pytest.warns(UserWarning, match="there is no problem 'topologie'"):
        assert announced_bounds.claimed(instance, "topology") is None


@pytest.mark.parametrize("fault", ["is none", "fails", "is endless"])
def test_a_broken_package_is_left_out(announce, instance, fault):
    value = {"fails": lambda _: 1 / 0, "is endless": lambda _: float("inf")}.get(fault)
    announce("other:BOUNDS", ["a word"] if value is None else Bound("topology", "odd", value))
    if fault == "is endless":
        assert announced_bounds.claimed(instance, "topology") is None
        return
    with pytest.warns(UserWarning, match="of another package cannot be used"):
        assert announced_bounds.claimed(instance, "topology") is None
