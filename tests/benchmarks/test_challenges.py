"""Bringing records up to date: what is tried on what, what is kept, and what is left alone the next time."""

import pytest
from library_cases import TINY, library_of_one, ring_design

from benchmarks.suite import records
from ddlopt import instances
from ddlopt.instances.library.records import Run
from ddlopt.instances.library.store_best import store_best
from ddlopt.models.errors import UnknownNameError
from ddlopt.solvers import catalogue


@pytest.fixture
def own_library(tmp_path, monkeypatch):
    folder = library_of_one(tmp_path, monkeypatch)
    store_best(TINY, ring_design(1), Run.now("by-hand"))
    return folder


def run(capsys, *words):
    records.BENCH.run(list(words), "suite/records", "")
    return capsys.readouterr().out.split("\n\n")[:-1]


def test_records_are_challenged_once(own_library, capsys):
    methods = records.methods_for(instances.load(TINY))
    first, name, *news = run(capsys, "--time-limit", "20")
    assert first == "1 of 1 instances are to be challenged, 0.0 h at most."
    assert name == f"1/1 {TINY}: {', '.join(methods)}"
    assert methods[0] == "exact"
    assert news[0].startswith(f"  {TINY}: 11.5 s by ")
    known = instances.record(TINY)
    assert (known.found.objective, known.bound.value) == (11.5, 11.5)
    assert (known.challenged.methods, known.challenged.seconds) == (tuple(methods), 20.0)
    assert (own_library.parent / "INDEX.md").exists()
    assert run(capsys, "--time-limit", "20") == ["0 of 1 instances are to be challenged, 0.0 h at most."]
    assert len(run(capsys, "--again", "--look")) == 1


def test_open_instances_come_first(monkeypatch):
    names = [f"topology/tiny-n4-d{each}" for each in ("2", "2-duplex", "3-direct")]
    monkeypatch.setattr(records, "is_open", lambda name: name == names[2])
    assert records.wanted(["topology/tiny-n4-d2*", names[2]], open_only=False) == [names[2], names[0], names[1]]
    assert records.wanted(["topology/tiny-n4-*"], open_only=True) == [names[2]]
    with pytest.raises(UnknownNameError, match="'topology/nothing' matches no bundled instance"):
        records.wanted(["topology/nothing"], open_only=True)


@pytest.mark.parametrize(
    ("name", "heuristic"),
    [
        ("topology/tiny-n4-d2", "link-exchange"),
        ("topology/danoint", "link-exchange"),
        ("deployment/vgg19-testbed-g6", "plan-search"),
        ("scheduling/gangs-j38-g32", "gang-search"),
    ],
)
def test_the_best_heuristic_is_the_one_that_loses_least(name, heuristic):
    assert records.best_heuristic(instances.load(name)) == heuristic


@pytest.mark.slow
def test_every_problem_has_a_heuristic_to_try():
    """All bundled instances are read for it."""
    from ddlopt.models.catalogue import problem_of

    by_problem = {}
    for name in instances.names():
        by_problem.setdefault(problem_of(records.quoted.instance_of(name)).path, name)
    for name in by_problem.values():
        instance = records.quoted.instance_of(name)
        kinds = {entry.name: entry.kind for entry in catalogue.entries(instance.family)}
        methods = records.methods_for(instance)
        assert len(methods) in (1, 2), name
        assert [kinds[records.bare(method)] for method in methods[1:]] in ([], ["heuristic"]), name
