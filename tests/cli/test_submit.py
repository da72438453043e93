"""``ddlopt submit``: what it keeps, what it says, and what it refuses; and the records that ``show`` prints."""

import json
import os

import pytest
from library_cases import TINY, library_of_one, ring_design
from report_cases import instance_row, run_row

from ddlopt import instances
from ddlopt.analysis.bench import Store
from ddlopt.instances.library.records import Run
from ddlopt.instances.library.store_best import store_bound


@pytest.fixture
def own_library(tmp_path, monkeypatch):
    """The folder of a library of one instance without a solution."""
    return library_of_one(tmp_path, monkeypatch).parent


@pytest.fixture
def submit(call, tmp_path):
    """Submit the ring design of so many links a hop: exit code, output, errors."""

    def submitted(count, *more, name="tiny-n4-d2"):
        file = tmp_path / "design.json"
        file.write_text(ring_design(count).to_json())
        return call("submit", name, file, *more)

    return submitted


def test_a_better_solution_is_kept_recorded_and_listed(own_library, submit):
    assert submit(1) == (
        0, f"{TINY}: 23 s by unknown is the best known now\n{TINY}: bound 11.5 s by combinatorial, gap 50.00 %\n", ""
    )  # fmt: skip
    code, out, err = submit(2, "--method", "a ring of pairs", name=TINY)
    assert (code, out, err) == (0, f"{TINY}: 11.5 s by a ring of pairs is the best known now, before 23 s\n", "")
    assert instances.best(TINY).links == ring_design(2).links
    assert "| 11.5 s | 11.5 s | 0 % | a ring of pairs |" in (own_library / "INDEX.md").read_text()


def test_what_is_not_better_is_refused(own_library, submit):
    submit(2, "--method", "first")
    before = (own_library / "INDEX.md").read_text()
    for count in (1, 2):
        code, out, err = submit(count, "--method", "second")
        assert (code, out) == (1, "")
        assert err == f"{TINY}: the solution is not better than the best known one, in exact arithmetic\n"
    assert (own_library / "INDEX.md").read_text() == before


def test_who_found_it_can_be_said_later(own_library, submit):
    submit(2)
    assert submit(2, "--method", "a ring") == (0, f"{TINY}: 11.5 s is what a ring finds\n", "")


def test_after_a_crash_before_the_index_it_is_written_by_the_next_call(own_library, submit):
    submit(2)
    (own_library / "INDEX.md").unlink()
    assert submit(2)[0] == 1
    assert (own_library / "INDEX.md").exists()


def test_bad_solutions_are_one_line(own_library, submit, refused, tmp_path):
    code, out, err = submit(3)
    assert (code, out) == (1, "")
    assert err.startswith(f"'{TINY}': the solution is not feasible: out_degree at ")
    assert err.count("\n") == 1
    assert instances.store_best(TINY, ring_design(1))
    store_bound(TINY, 23.0, Run(method="wrong"))
    code, out, err = submit(2)
    assert (code, out) == (1, "")
    assert "a solution of 11.5 (unknown, " in err
    assert ") is better than the bound 23 (wrong); one of the two is wrong" in err
    (tmp_path / "odd.json").write_text("{}")
    err = refused("submit", TINY, tmp_path / "odd.json")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "give NAME and SOLUTION, or --store FILE"),
        (["tiny-n4-d2"], "give NAME and SOLUTION, or --store FILE"),
        (["tiny-n4-d2", "x.json", "--store", "r.sqlite"], "give NAME and SOLUTION, or --store FILE alone"),
        (["--method", "m", "--store", "r.sqlite"], "give NAME and SOLUTION, or --store FILE alone"),
        (["tiny-n4", "x.json"], "there is no instance or file 'tiny-n4'; do you mean topology/tiny-n4-d2"),
        (["tiny-n4-d2", "x.json"], "x.json: cannot be read: No such file"),
        (["--store", "none.sqlite"], "none.sqlite: there is no such store"),
    ],
)
def test_mistakes_are_one_line(own_library, refused, words, message):
    err = refused("submit", *words)
    assert message in err


def test_a_library_that_cannot_be_written_to_is_one_line(own_library, submit, monkeypatch):
    monkeypatch.setattr("os.access", lambda path, mode, **_: mode != os.W_OK)
    code, out, err = submit(2)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "is read-only" in err


def test_a_store_is_taken_over_in_one_go(own_library, call, tmp_path):
    path = tmp_path / "r.sqlite"
    instance = instances.load(TINY)
    row = instance_row(instance.digest, instance.name)
    with Store(path) as opened:
        for count, objective, bound in ((1, 23.0, 11.5), (2, 11.5, None)):
            solution = json.loads(ring_design(count).to_json())
            opened.add(run_row(row, f"m{count}", 0, "feasible", objective, bound, solution=solution), row)
    code, out, err = call("submit", "--store", path)
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{TINY}: 11.5 s by m2 is the best known now",
        f"{TINY}: bound 11.5 s by combinatorial, gap 0 %",
    ]
    assert "| m2 |" in (own_library / "INDEX.md").read_text()
    assert call("submit", "--store", path) == (0, f"nothing in {path} is better than what the library has\n", "")
    store_bound(TINY, 11.5, Run())
    with Store(path) as opened:
        opened.add(run_row(row, "mad", 0, "feasible", 9.0, 9.0, solution=solution | {"links": []}), row)
    code, out, err = call("submit", "--store", path)
    assert (code, out) == (1, "")
    assert err.startswith(f"'{TINY}': the solution is not feasible: ")


def test_show_tells_what_is_recorded(call):
    code, out, _ = call("show", "topology/tiny-n4-d2")
    assert code == 0
    lines = {line[:27].strip(): line[27:].strip() for line in out.splitlines()}
    known = instances.record("topology/tiny-n4-d2")
    assert lines["best known"].startswith(f"11.5 s by {known.found.method}")
    assert known.found.version in lines["best known"]
    assert lines["bound"].startswith(f"11.5 s by {known.bound.method}")
    assert lines["gap"] == "0 %"
