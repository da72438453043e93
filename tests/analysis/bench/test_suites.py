"""Suites: what they name exists, and every method of theirs answers something."""

import pytest
from volume import slow

from ddlopt import instances
from ddlopt.analysis.bench import plan
from ddlopt.analysis.bench.suites import SUITES, Part, Suite, members
from ddlopt.models.errors import OptionError, UnknownNameError
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.names import split

TINY = "topology/tiny-n4-d2"


@pytest.mark.parametrize("suite", SUITES)
def test_every_family_is_there(suite):
    names, methods = members([suite])
    assert {name.partition("/")[0] for name in names} == {name.partition("/")[0] for name in instances.names()}
    assert set(methods) == set(names)
    for family, part in SUITES[suite].parts.items():
        assert {split(method)[0] for method in part.methods} <= {
            "auto",
            "all-heuristics",
            *catalogue.method_names(family),
        }


def test_sizes_of_suites():
    assert len(members(["quick"])[0]) <= 15
    assert 100 <= len(members(["default"])[0]) <= 145
    assert set(members(["library"])[0]) == set(instances.names())


@pytest.mark.parametrize("suite", ["quick", slow("default")])
def test_all_that_a_suite_names_does_something(suite):
    names, methods = members([suite])
    tasks = plan(names, methods, [0], Limits(1.0))
    answered = {(task.family, task.method) for task in tasks}
    assert {task.instance for task in tasks} == set(names)
    for family, part in SUITES[suite].parts.items():
        assert {(family, method) for method in part.methods if method not in ("auto", "all-heuristics")} <= answered


def test_methods_are_those_of_the_instance(monkeypatch, tmp_path):
    parts = {"topology": Part(("tiny-n4-d2",), ("expander",)), "scheduling": Part(("tiny-star",), ("fifo", "srtf"))}
    monkeypatch.setitem(SUITES, "mine", Suite("for a test", parts))
    file = tmp_path / "own.json"
    file.write_text(instances.load("topology/tiny-n5-d2").to_json())
    names, methods = members(["mine", "topology/tiny-n4-d2*", str(file)])
    assert methods[TINY] == ("expander", "auto")
    assert methods["topology/tiny-n4-d2-duplex"] == methods[str(file)] == ("auto",)
    tasks = plan(names, methods, [0], Limits(1.0))
    assert {(task.instance, task.method) for task in tasks} == {
        (TINY, "expander"), (TINY, "exact"), ("scheduling/tiny-star", "fifo"), ("scheduling/tiny-star", "srtf"),
        ("topology/tiny-n4-d2-duplex", "exact"), (str(file), "exact"),
    }  # fmt: skip


def test_what_is_nothing(monkeypatch):
    with pytest.raises(UnknownNameError, match=r"'nothing/\*' matches no bundled instance and is no file"):
        members(["nothing/*"])
    monkeypatch.setitem(SUITES, "empty", Suite("for a test", {"topology": Part(("gone-*",))}))
    with pytest.raises(UnknownNameError, match=r"'topology/gone-\*' matches no bundled instance"):
        members(["quick", "empty"])
    with pytest.raises(UnknownNameError, match="there is no method 'magic'"):
        plan([TINY], {TINY: ("magic",)}, [0], Limits(1.0))
    with pytest.raises(OptionError, match="nothing to do"):
        plan([TINY], {TINY: ("fifo",)}, [0], Limits(1.0))
    monkeypatch.setitem(SUITES, "void", Suite("for a test", {}))
    names, methods = members(["void"])
    with pytest.raises(OptionError, match="nothing to do"):
        plan(names, methods, [0], Limits(1.0))
