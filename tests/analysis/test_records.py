"""Which instances are tried again and by which methods, what a store gives to the library, and the index."""

import datetime
import json

import pytest
from gate_cases import finish
from library_cases import TINY, library_of_one, ring_design
from report_cases import instance_row, run_row

from ddlopt import instances
from ddlopt.analysis import records
from ddlopt.analysis.bench import Store
from ddlopt.analysis.index import index_file, index_text, run_text, write_index
from ddlopt.instances.library.records import UNKNOWN, Bound, Challenge, Found, Record, Run
from ddlopt.instances.library.store_best import store_best, store_bound, store_challenge
from ddlopt.models.catalogue import FAMILY_NAMES, family
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers import catalogue
from ddlopt.solvers.contracts import Limits, Result, Status

RUN = Run(method="by-hand", version="0.0.1", date=datetime.date(2026, 1, 2))


@pytest.fixture
def own_library(tmp_path, monkeypatch):
    """The family's folder of a library of one instance, whose best known solution nobody noted."""
    folder = library_of_one(tmp_path, monkeypatch)
    store_best(TINY, ring_design(1))
    return folder


def known(objective, bound, method="m", prover="m"):
    return Record(
        instance_digest="0",
        found=None if objective is None else Found(objective=objective, digest="0", method=method),
        bound=None if bound is None else Bound(value=bound, method=prover),
    )


@pytest.mark.parametrize(
    ("sense", "record", "settled"),
    [
        ("minimize", known(4.0, 4.0), True),
        ("minimize", known(4.0, 3.9), False),
        ("maximize", known(4.0, 4.0), True),
        ("maximize", known(4.0, 4.1), False),
        ("maximize", known(4.0, None), False),
        ("minimize", known(None, 4.0), False),
        ("minimize", known(4.0, 4.0, UNKNOWN), False),
        ("minimize", known(4.0, 4.0, "exact"), False),
        ("minimize", known(4.0, 4.0, prover="exact"), False),
        ("minimize", None, False),
    ],
)
def test_an_instance_is_settled_where_its_best_meets_the_bound(monkeypatch, instance, sense, record, settled):
    monkeypatch.setattr(TopologyInstance, "sense", sense)
    assert records.is_settled(record, instance) is settled


@pytest.mark.parametrize(("methods", "asked"), [(["exact", "expander"], ["exact", "expander"]), (None, None)])
def test_every_heuristic_is_asked_unless_methods_are_named(monkeypatch, methods, asked):
    seen = []

    def attempt(instance, method, limits, seed):
        seen.append(method.name)
        return Result(instance.name, instance.digest, instance.family, method.name, Status.NO_SOLUTION)

    monkeypatch.setattr(records, "attempt", attempt)
    monkeypatch.setattr(records, "is_settled", lambda record, instance: False)
    assert list(records.improve(["topology/tiny-n4-d2"], methods, Limits(), [0])) == []
    heuristics = [entry.name for entry in catalogue.entries("topology") if entry.kind == "heuristic"]
    assert seen == (asked or heuristics)
    assert "link-exchange" in heuristics
    assert "exact" not in heuristics


def test_runs_improve_the_library_until_it_is_settled(own_library, monkeypatch):
    counts = {"expander": 1, "link-exchange": 2}

    def attempt(instance, method, limits, seed):
        seen.append((method.name, seed))
        design = ring_design(counts[method.name.partition(":")[0]])
        return finish(instance, method.name, design, runtime_s=1.5, limits=limits, seed=seed, bound=11.5)

    seen = []
    monkeypatch.setattr(records, "attempt", attempt)
    news = list(records.improve([TINY], ["expander", "link-exchange:effort=2"], Limits(), [0, 7]))
    assert seen == [("expander", 0), ("expander", 7), ("link-exchange:effort=2", 0)]
    assert [each.text for each in news] == [
        f"{TINY}: 23 s is what expander finds",
        f"{TINY}: 11.5 s by link-exchange:effort=2 is the best known now, before 23 s",
    ]
    assert instances.record(TINY).found.seconds == 1.5


# Stores ---------------------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path):
    with Store(tmp_path / "r.sqlite") as opened:
        yield opened


def run(store, count, **changed):
    """Add a run that found the ring design of so many links a hop."""
    instance = instances.load(TINY)
    solution = ring_design(count)
    row = run_row(
        instance_row(instance.digest, instance.name),
        "m",
        len(store.keys()),
        "feasible",
        **{
            "objective": float(family("topology").evaluate(instance, solution).objective),
            "bound": 9.0,
            "finished": "2026-02-03T04:05:06+00:00",
            "versions": {"ddlopt": "0.0.9"},
            "solution": json.loads(solution.to_json()),
        },
    )
    store.add(row | {"seed": 0} | changed, instance_row(instance.digest, instance.name))


def test_the_best_of_a_store_is_taken_over(own_library, store, monkeypatch):
    told = family("topology")
    monkeypatch.setattr("ddlopt.instances.library.store_best._combinatorial", lambda instance: None)
    (own_library / "records.json").unlink()
    run(store, 1, method="worse", bound=None)
    run(store, 2, method="slow", seed=1, runtime_s=3.0)
    run(store, 2, method="quick", seed=2, runtime_s=2.0, solver="cbc")
    run(store, 1, method="tight", bound=10.0, runtime_s=9.0)
    assert told.bound(instances.load(TINY)) == 11.5
    assert [each.text for each in records.take_over(store)] == [
        f"{TINY}: 11.5 s by quick (cbc), seed 2 is the best known now",
        f"{TINY}: bound 10 s by tight, gap 13.04 %",
    ]
    found = instances.record(TINY).found
    assert (found.seconds, found.version, found.date) == (2.0, "0.0.9", datetime.date(2026, 2, 3))
    assert instances.best(TINY).links == ring_design(2).links
    assert list(records.take_over(store)) == []


def test_who_found_the_best_known_solution_is_taken_over(own_library, store):
    run(store, 1, method="again", bound=None)
    assert [each.text for each in records.take_over(store)] == [f"{TINY}: 23 s is what again finds"]
    run(store, 1, method="sooner", bound=None, runtime_s=0.1)
    assert list(records.take_over(store)) == []


def test_records_name_what_answered_and_not_only_who_was_asked(own_library, store, monkeypatch):
    monkeypatch.setattr("ddlopt.instances.library.store_best._combinatorial", lambda instance: None)
    (own_library / "records.json").unlink()
    run(store, 2, method="exact", bound=11.0)
    list(records.take_over(store))
    assert instances.record(TINY).found.is_vague
    run(store, 2, method="exact", bound=11.0, found_by="quick", proved_by="milp", runtime_s=0.1)
    assert [each.text for each in records.take_over(store)] == [
        f"{TINY}: 11.5 s is what quick, asked by exact finds",
        f"{TINY}: bound 11 s by milp, asked by exact, gap 4.35 %",
    ]
    run(store, 2, method="exact", bound=11.0, found_by="later", proved_by="combinatorial", runtime_s=0.05)
    assert list(records.take_over(store)) == []
    run(store, 2, method="exact", bound=11.2, found_by="later", proved_by="combinatorial", runtime_s=0.05)
    list(records.take_over(store))
    known = instances.record(TINY).bound
    assert (known.by, known.seed, known.seconds) == ("combinatorial", None, None)


@pytest.mark.parametrize(
    "change", [{"status": "killed"}, {"status": "no_solution"}, {"status": "reference"}, {"checked": False}]
)
def test_runs_without_a_checked_solution_do_not_count(own_library, store, change):
    before = instances.record(TINY)
    run(store, 2, **change)
    assert list(records.take_over(store)) == []
    assert instances.record(TINY) == before


@pytest.mark.parametrize("change", [{"status": "no_solution"}, {"status": "reference"}, {"checked": False}])
def test_a_bound_with_evidence_counts_without_a_solution(own_library, store, monkeypatch, change):
    monkeypatch.setattr("ddlopt.instances.library.store_best._combinatorial", lambda instance: None)
    (own_library / "records.json").unlink()
    store_best(TINY, ring_design(1), RUN)
    run(store, 2, evidence="solver", **change)
    run(store, 2, evidence=None, **change | {"bound": 10.0})
    run(store, 2, evidence="solver", **change | {"bound": 10.5, "status": "error"})
    assert [each.text for each in records.take_over(store)] == [f"{TINY}: bound 9 s by m, gap 60.87 %"]
    assert instances.record(TINY).found.objective == 23.0


def test_a_bound_that_a_solution_refutes_is_refused(own_library, store):
    store_best(TINY, ring_design(2), RUN)
    run(store, 1, bound=12.0)
    (news,) = records.take_over(store)
    assert news.refused
    both = "a solution of 11.5 (by-hand, 2026-01-02) is better than the bound 12 (m, 2026-02-03)"
    assert f"{both}; one of the two is wrong" in news.text
    assert instances.record(TINY).bound.value == 11.5


@pytest.mark.parametrize("change", [{"instance_digest": "0" * 64}, {"instance": "other"}])
def test_runs_on_other_instances_are_only_counted(own_library, store, change):
    before = instances.record(TINY)
    run(store, 2, **change)
    assert [each.text for each in records.take_over(store)] == [
        "1 runs are on instances that the library does not have, or has with other data"
    ]
    assert instances.record(TINY) == before


def test_what_contradicts_the_library_is_refused(own_library, store):
    store_bound(TINY, 23.0, RUN)
    run(store, 2, bound=None)
    (news,) = records.take_over(store)
    assert news.refused
    both = "a solution of 11.5 (m, 2026-02-03) is better than the bound 23 (by-hand, 2026-01-02)"
    assert f"{both}; one of the two is wrong" in news.text
    assert instances.best(TINY).links == ring_design(1).links


# The index ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_index_is_what_the_records_say():
    committed = index_file().read_text(encoding="utf-8")
    assert committed == index_text(), "run python -m ddlopt.analysis.records --index"
    for name in FAMILY_NAMES:
        assert (f"\n## {name}\n" in committed) == bool(instances.names(name))


def test_a_line_of_the_index(own_library):
    store_best(TINY, ring_design(2), RUN.model_copy(update={"seed": 5}))
    row = "| [tiny-n4-d2](topology/tiny-n4-d2.json) | 4 | 2 | min | 11.5 s | 11.5 s | 0 % | by-hand, seed 5 | 0.0.1 | "
    assert f"\n{row}2026-01-02 | combinatorial | combinatorial, exact | – |\n" in index_text()
    store_challenge(TINY, Challenge(methods=("a",), seconds=1.0, version="0", code="0", date=datetime.date(2026, 3, 4)))
    assert "| combinatorial | combinatorial, exact | 2026-03-04 |\n" in index_text()
    assert "1 instances: optical links" in index_text()
    assert "1 of the solutions are proven optimal to 0.01 %." in index_text()


def test_an_instance_without_a_record_has_a_line(own_library):
    (own_library / "records.json").unlink()
    assert f"| [tiny-n4-d2](topology/tiny-n4-d2.json) | 4 | 2 | min |{9 * ' – |'}\n" in index_text()
    assert "0 of the solutions" in index_text()


def test_the_index_is_written_where_it_changed(own_library):
    assert write_index()
    assert not write_index()
    assert index_file() == own_library.parent / "INDEX.md"
    store_best(TINY, ring_design(2), RUN)
    assert write_index()


@pytest.mark.parametrize(
    ("run", "text"),
    [
        (Run(method="m", seed=0), "m"),
        (Run(method="m", seed=3, version="1.0", date=datetime.date(2026, 1, 2)), "m, seed 3, ddlopt 1.0, 2026-01-02"),
    ],
)
def test_a_run_in_words(run, text):
    assert run_text(run) == text


def command(monkeypatch, capsys, *words):
    monkeypatch.setattr("sys.argv", ["records", *words])
    records.main()
    return capsys.readouterr().out.splitlines()


def test_the_command_brings_the_library_in_line(own_library, monkeypatch, capsys):
    (own_library / "records.json").unlink()
    lines = command(monkeypatch, capsys, "--index", TINY)
    assert lines == [
        f"{TINY}: 23 s by unknown is the best known now",
        f"{TINY}: bound 11.5 s by combinatorial, gap 50.00 %",
        f"written: {index_file()}",
    ]
    assert command(monkeypatch, capsys, "--index", TINY) == []


def test_the_command_runs_methods(own_library, monkeypatch, capsys):
    lines = command(monkeypatch, capsys, TINY, "--methods", "expander,link-exchange", "--time-limit", "5")
    assert f"written: {index_file()}" == lines[-1]
    assert instances.record(TINY).found.objective < 23
    assert instances.record(TINY).found.method in ("expander", "link-exchange")


@pytest.mark.parametrize("words", [["topology/tiny-n4"], [TINY, "--methods", "no-such"], [TINY, "--time-limit", "0"]])
def test_a_mistake_is_one_line(own_library, monkeypatch, capsys, words):
    with pytest.raises(SystemExit):
        command(monkeypatch, capsys, *words)
    assert "records: error: " in capsys.readouterr().err.splitlines()[-1]
