"""What the catalogue makes, and when it looks for methods of other packages."""

import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest
from volume import slow

import ddlopt
from ddlopt.instances import index, names
from ddlopt.models import plugins
from ddlopt.models.catalogue import problem_of
from ddlopt.models.errors import NotApplicableError, UnknownNameError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Entry, kernels_of


class Plugin:
    """Solves everything."""

    name = "plugin"
    family = "topology"


@pytest.fixture
def scans(monkeypatch):
    """Each search for entry points adds to the list; one package announces a method."""
    found = []

    def entry_points(group):
        found.append(group)
        return [SimpleNamespace(value="plugin:Plugin", load=lambda: Plugin)]

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    catalogue._announced.cache_clear()
    yield found
    catalogue._announced.cache_clear()


def test_other_packages_are_looked_for_once_on_a_search_path(scans, monkeypatch):
    for _ in range(3):
        assert "plugin" in catalogue.method_names("topology")
        assert "plugin" not in catalogue.method_names("scheduling")
    assert catalogue.method("plugin", "topology").name == "plugin"
    assert scans == ["ddlopt.methods"]
    monkeypatch.setattr(sys, "path", [*sys.path, "elsewhere"])
    assert "plugin" in catalogue.method_names("topology")
    assert len(scans) == 2


def test_a_broken_package_is_warned_of_once(monkeypatch):
    monkeypatch.setattr(plugins, "entry_points", lambda group: [SimpleNamespace(value="odd:Odd", load=lambda: 1 / 0)])
    catalogue._announced.cache_clear()
    with pytest.warns(UserWarning, match=r"'odd:Odd' of another package cannot be used: division by zero"):
        catalogue.entries("topology")
    catalogue.entries("topology")
    catalogue._announced.cache_clear()


@pytest.mark.parametrize(("name", "family", "told"), [
    ("all-exact", "topology", "its name is 'all-exact'"),
    ("mine, fast", "topology", "its name is 'mine, fast'"),
    ("mine", "compression/sfb", "its family is 'compression/sfb'; the families are: topology"),
])  # fmt: skip
def test_a_method_that_nobody_could_ask_is_told(monkeypatch, name, family, told):
    point = SimpleNamespace(value="odd:Odd", load=lambda: lambda: SimpleNamespace(name=name, family=family))
    monkeypatch.setattr(plugins, "entry_points", lambda group: [point])
    catalogue._announced.cache_clear()
    with pytest.warns(UserWarning, match=told):
        assert all(entry.name != name for entry in catalogue.entries())
    catalogue._announced.cache_clear()


def test_a_formulation_is_made_without_the_others(monkeypatch):
    def make(solver):
        raise AssertionError("made although nobody asked for it")

    others = [Entry("other", "topology", "exact", "", make), Entry("switch", "topology", "reference", "", make)]
    own = [entry for entry in catalogue.entries("topology") if entry.name == "rings-and-routes"]
    monkeypatch.setattr(catalogue, "entries", lambda family: [*others, *own])
    assert (
        type(catalogue.formulation_named("rings-and-routes", ddlopt.load("topology/tiny-n4-d2"))).__name__
        == "RingsAndRoutes"
    )


def test_what_is_no_formulation_is_told_what_is():
    instance = ddlopt.load("topology/tiny-n4-d2")
    with pytest.raises(
        NotApplicableError, match=r"expander is no formulation of 'tiny-n4-d2'; methods that are: "
    ) as told:
        catalogue.formulation_named("expander", instance)
    known = str(told.value).partition("that are: ")[2].split(", ")
    assert "rings-and-routes" in known
    for each in known:
        assert catalogue.formulation_named(each, instance) is not None
    with pytest.raises(
        UnknownNameError, match="'tiny-n4-d2' has no formulation 'no-such'; methods that are: rings-and-routes"
    ):
        catalogue.formulation_named("no-such", instance)
    with pytest.raises(NotApplicableError, match="circulant does not cover 'tiny-n4-d2'"):
        catalogue.formulation_named("circulant", instance)


FOR_SEVERAL = {
    "aggregation": {"exact", "milp", "none", "level", "top", "max"},
    "compression": {
        *("exact", "none", "all", "overlap-timeline", "label-setting"),
        *("espresso", "secopa", "lgreco"),
    },
    "deployment": {"exact"},
    "gossip": {"exact"},
    "cluster": {"exact"},
}
"""Methods that answer more than one problem of their family, whatever a name in a room stands for."""


@pytest.mark.parametrize("family", FOR_SEVERAL)
def test_a_method_refuses_the_other_problems_in_one_line(family):
    by_size = sorted(index.read().instances.values(), key=lambda each: -each.size)
    smallest = {each.problem: ddlopt.load(each.name) for each in by_size if each.name.startswith(f"{family}/")}
    covers_several = set()
    for entry in catalogue.own_entries(family):
        method = catalogue.method(entry.name, family)
        reasons = [method.refuses(instance) for instance in smallest.values()]
        said = [reason for reason in reasons if reason is not None]
        assert all(len(reason) > 10 and reason.isprintable() for reason in said), entry.name
        if len(said) < len(reasons) - 1:
            covers_several.add(entry.name)
    assert covers_several == FOR_SEVERAL[family]


@pytest.mark.parametrize("step", [12, slow(1)])
def test_modules_with_kernels_are_where_methods_say(step):
    told = {}
    for name in names()[::step]:
        instance = ddlopt.load(name)
        told |= dict.fromkeys(problem_of(instance).kernels_for(instance), name)
        for entry in catalogue.own_entries(instance.family):
            method = catalogue.method(entry.name, instance.family)
            if method.refuses(instance) is None:
                told |= dict.fromkeys(kernels_of(method, instance), f"{entry.name} on {name}")
    assert len(told) > 30
    assert {module: who for module, who in told.items() if find_spec(module) is None} == {}
