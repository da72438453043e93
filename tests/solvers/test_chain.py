"""The chain behind ``exact``: links of other packages, in the order of their priority."""

import re
from types import SimpleNamespace

import pytest

import ddlopt
from ddlopt.models import plugins
from ddlopt.models.contracts import Evidence
from ddlopt.models.errors import OptionError, SolverError
from ddlopt.solvers import chain
from ddlopt.solvers.chain import Link, Step
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.plan.data_parallel import DataParallel
from ddlopt.solvers.external import ExternalMethod
from ddlopt.solvers.wrappers.warm_started import WarmStarted

PROBLEM = "deployment/plan"


class Mine(DataParallel):
    """Of another package: a class that ddlopt does not know."""


@pytest.fixture
def announce(monkeypatch):
    """Have packages announce links, by the name of the package."""
    chain._announced.cache_clear()
    real = plugins.entry_points

    def told(**packages):
        points = [
            SimpleNamespace(value=f"{name}:LINKS", load=lambda links=links: links) for name, links in packages.items()
        ]
        monkeypatch.setattr(
            plugins, "entry_points", lambda group: points if group == "ddlopt.exact" else real(group=group)
        )
        chain._announced.cache_clear()

    yield told
    chain._announced.cache_clear()


@pytest.fixture
def instance():
    return ddlopt.load("deployment/tiny-g3-m2-s2")


def asked(instance):
    own = SimpleNamespace(name="own")
    return chain.exact(PROBLEM, instance, "highs", lambda *_: own)


def test_without_links_the_problem_has_its_own(announce, instance):
    announce()
    assert asked(instance).name == "own"
    announce(others=[Link("topology", lambda *_: Mine())])
    assert asked(instance).name == "own"


def test_the_largest_priority_is_asked_first(announce, instance):
    low, high = Link(PROBLEM, lambda *_: Mine(), -1), Link(PROBLEM, lambda *_: None, 5)
    announce(one=low, two=(high, Link(PROBLEM, lambda *_: DataParallel(), 3)))
    assert [link.priority for link in chain.links(PROBLEM)] == [5, 3, -1]
    assert type(asked(instance)) is DataParallel


def test_what_another_package_makes_is_not_believed(announce, instance):
    announce(other=Link(PROBLEM, lambda *_: Mine()))
    assert isinstance(asked(instance), ExternalMethod)


def test_a_link_with_a_share_hands_on_to_the_rest(announce, instance):
    announce(other=Link(PROBLEM, lambda *_: Mine(), share=0.25))
    method = asked(instance)
    assert isinstance(method, WarmStarted)
    assert isinstance(method.opening, ExternalMethod)
    assert method.share(instance) == 0.25
    assert method.model(instance).name == "own"


class Failing(Mine):
    """Of another package, and broken."""

    def solve(self, *_):
        raise RuntimeError("boom")


class Ours(DataParallel):
    """One that fails as only a method of ours may."""

    def solve(self, *_):
        raise SolverError("boom")


def test_where_a_link_of_another_package_fails_the_rest_goes_on(announce, instance):
    announce(other=Link(PROBLEM, lambda *_: Failing(), share=0.25))
    method = chain.exact(PROBLEM, instance, "highs", lambda *_: DataParallel())
    found = method.solve(instance, Limits())
    assert found.checked
    assert found.method == "exact"
    assert re.match(r"data-parallel failed: .*RuntimeError: boom; then data-parallel", found.message)
    with pytest.raises(SolverError, match="boom"):
        WarmStarted("exact", instance.family, Ours(), lambda _: DataParallel()).solve(instance, Limits())
    announce(other=Link(PROBLEM, lambda *_: Failing()))
    with pytest.raises(SolverError, match="boom"):
        asked(instance).solve(instance, Limits())


def test_exact_of_the_catalogue_asks_it(announce, instance):
    announce(other=Link(PROBLEM, lambda *_: Mine(), share=0.1))
    with_rest = ddlopt.solve(instance, "exact", time_limit=20)
    announce(other=Link(PROBLEM, lambda *_: Mine()))
    alone = ddlopt.solve(instance, "exact", time_limit=20)
    assert alone.message.startswith("by data-parallel")
    assert alone.evidence is Evidence.COMBINATORIAL
    assert with_rest.bound > alone.bound
    assert with_rest.objective <= alone.objective


@pytest.mark.parametrize("fault", ["loads", "is none", "makes"])
def test_a_broken_package_is_warned_of_and_left_out(announce, instance, monkeypatch, fault):
    def broken(*_):
        raise OptionError("out of order")

    announce(odd={"loads": None, "is none": ["a word"], "makes": [Link(PROBLEM, broken)]}[fault])
    with pytest.warns(UserWarning, match="of another package cannot be used"):
        assert asked(instance).name == "own"


def test_limits_are_those_of_the_method(announce, instance):
    """A link that answers alone answers within the same limits as any method."""
    announce(other=Link(PROBLEM, lambda *_: DataParallel()))
    result = asked(instance).solve(instance, Limits(time_s=5), seed=0)
    assert result.checked


def test_a_search_has_the_steps_that_are_announced_for_it(announce, instance):
    first = Step("topology/link-exchange", "links", lambda *_: iter(()), ("kernels",), lambda asked: asked is instance)
    announce(one=[first, Link(PROBLEM, lambda *_: None)], two=Step("topology/link-exchange", "designs", max))
    assert [step.kind for step in chain.steps("topology/link-exchange")] == ["links", "designs"]
    assert chain.steps("topology/link-exchange", "links") == (first,)
    assert chain.steps("topology/other") == ()
    for asked, expected in ((instance, ("kernels",)), ("another", ()), (None, ("kernels",))):
        assert chain.kernels_of_steps("topology/link-exchange", asked) == expected
    assert [link.problem for link in chain.links(PROBLEM)] == [PROBLEM]
