"""No method or bound contradicts another one on odd instances: a slice by default, most of it in the slow tests."""

import json
from fractions import Fraction

import pytest
from doc_blocks import ROOT
from volume import slow

from benchmarks.suite import pairs
from benchmarks.suite.pairs import Compared, compared
from ddlopt.instances.odd import SETTINGS, odd_instance
from ddlopt.models.catalogue import problems
from ddlopt.models.errors import ContradictionError, InfeasibleError, NotApplicableError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status

SEEDS = 30
QUICK = {"aggregation/tree", "gossip/exchange"}
"""Problems of which one instance of each setting is in the default tests."""
KNOWN: dict[tuple[str, str, int], str] = {}
"""What is wrong and not mended yet, by problem, setting and seed: a word of it."""


def cases():
    for path in problems():
        for setting in SETTINGS:
            first = pytest.param if path in QUICK else slow
            yield first(path, setting, range(1), id=f"{path}-{setting}-first")
            yield slow(path, setting, range(1, SEEDS), id=f"{path}-{setting}-rest")


@pytest.mark.parametrize(("path", "setting", "seeds"), list(cases()))
@pytest.mark.filterwarnings("ignore")
def test_methods_and_bounds_agree(path, setting, seeds):
    for seed in seeds:
        found = compared(odd_instance(path, setting, seed), Limits(time_s=1.0))
        wrong = found.contradictions() + found.broken
        assert [line for line in wrong if KNOWN.get((path, setting, seed), "\n") not in line] == [], (setting, seed)


def test_in_every_setting_there_is_something_to_contradict():
    """Where nearly all that is drawn is infeasible, no contradiction means little."""
    rows = list(map(json.loads, (ROOT / "docs/results/runs/pairs.jsonl").read_text(encoding="utf-8").splitlines()))
    assert {(row["problem"], row["setting"]) for row in rows} == {
        (path, each) for path in problems() for each in SETTINGS
    }
    assert [row for row in rows if row["answers"] < row["instances"]] == []


def made(**said):
    return Compared(odd_instance("aggregation/tree", None, 0), 1e-4, **said)


def test_a_bound_above_an_objective_shows():
    told = made(objectives={"a": Fraction(3), "b": Fraction(2)}, bounds={"c": Fraction(5, 2), "d": Fraction(2)})
    assert told.contradictions() == ["bound 2.5 of c, 2 of b"]
    assert told.pairs == 4


def test_two_optima_show():
    told = made(objectives={"a": Fraction(3), "b": Fraction(2)}, optimal=["a", "b"])
    assert told.contradictions() == ["optima 3 of a, 2 of b"]
    near = made(objectives={"a": Fraction(2), "b": Fraction(20001, 10000)}, optimal=["a", "b"])
    assert near.contradictions() == []


def test_infeasible_beside_a_solution_shows():
    told = made(objectives={"a": Fraction(3)}, infeasible=["b"])
    assert told.contradictions() == ["infeasible says b, a has a solution"]


def test_of_what_is_maximised_a_bound_is_above():
    told = Compared(odd_instance("aggregation/hot", None, 0), 1e-4, {"a": Fraction(3)}, [], {"b": Fraction(2)})
    assert told.contradictions() == ["bound 2 of b, 3 of a"]


@pytest.mark.parametrize(
    ("problem", "says"),
    [
        (ContradictionError("both"), {"broken": 1}),
        (ZeroDivisionError("nought"), {"broken": 1}),
        (InfeasibleError("none"), {"infeasible": 1}),
        (NotApplicableError("not this"), {}),
    ],
)
def test_what_methods_raise_is_noted(monkeypatch, problem, says):
    def raises(*_):
        raise problem

    monkeypatch.setattr(pairs, "_solved", raises)
    monkeypatch.setattr(pairs, "entries", lambda family: [type("Entry", (), {"name": "x", "make": print})])
    found = compared(odd_instance("aggregation/tree", None, 0), Limits(time_s=1.0))
    assert {name: len(getattr(found, name)) for name in ("broken", "infeasible") if getattr(found, name)} == says


FOUND = {"who": ["a", "b"], "answers": 2, "bounds": 1, "pairs": 3, "contradictions": 0, "broken": 0, "late": 0}


def run(folder, *words):
    where = ["--keep", str(folder / "kept.jsonl"), "--write", str(folder)]
    pairs.BENCH.run([*words, *where], "suite/pairs", pairs.__doc__)
    return pairs.read(folder)


def test_a_run_goes_on_where_it_was_and_begins_anew_with_other_code(monkeypatch, tmp_path):
    asked = []

    def figures(*what):
        asked.append(what[:3])
        if len(asked) == 3:
            raise KeyboardInterrupt
        return FOUND | {"remarks": []}

    monkeypatch.setattr(pairs, "figures", figures)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, "aggregation/tree", "--seeds", "2")
    rows = run(tmp_path, "aggregation/tree", "--seeds", "2")
    each = [("aggregation/tree", setting, seed) for setting in SETTINGS for seed in range(2)]
    assert asked == [*each[:3], *each[2:]]
    assert [(row["instances"], row["methods"], row["pairs"]) for row in rows] == [(2, 2, 6)] * 3
    assert run(tmp_path, "aggregation/tree", "--seeds", "2") == rows
    assert len(asked) == 7
    monkeypatch.setattr(pairs, "state", lambda: "other")
    assert {row["state"] for row in run(tmp_path, "aggregation/tree", "--seeds", "2")} == {"other"}
    assert len(asked) == 13


def test_rows_of_a_problem_take_the_place_of_older_ones(monkeypatch, tmp_path):
    monkeypatch.setattr(pairs, "figures", lambda *_: FOUND | {"remarks": []})
    run(tmp_path, "gossip/period", "--seeds", "2")
    rows = run(tmp_path, "aggregation/tree", "--seeds", "2")
    assert [row["problem"] for row in rows] == ["aggregation/tree"] * 3 + ["gossip/period"] * 3
    wrong = FOUND | {"broken": 1, "remarks": ["gossip/period ties 0: tag: ZeroDivisionError"]}
    monkeypatch.setattr(pairs, "figures", lambda *_: wrong)
    (tmp_path / "kept.jsonl").unlink()
    rows = run(tmp_path, "gossip/period", "--seeds", "1")
    page = (tmp_path / "pairs.md").read_text(encoding="utf-8")
    assert "| gossip/period | ties | 1 | 2 | 2 | 1 | 3 | 0 | 1 | 0 |" in page
    assert "* gossip/period ties 0: tag: ZeroDivisionError\n" in page
    assert "27 pairs." in page
    (tmp_path / "pairs.md").unlink()
    assert run(tmp_path, "--kept") == rows
    assert (tmp_path / "pairs.md").read_text(encoding="utf-8") == page


@pytest.mark.parametrize("name", ["list-scheduling", "order-search", "counted-starts"])
def test_of_memory_for_no_micro_batch_methods_say_infeasible(name):
    instance = odd_instance("deployment/microbatches", "zeros", 3)
    chunks = [{**chunk.model_dump(), "held_bytes": 1.0, "freed_bytes": 0.0} for chunk in instance.chunks]
    instance = instance.changed(memory_bytes=[0.0 for _ in instance.memory_bytes], chunks=chunks, objective="makespan")
    with pytest.raises(InfeasibleError, match="memory_bytes"):
        problems()["deployment/microbatches"].bound(instance)
    assert _status(name, instance) is Status.INFEASIBLE


def _status(name, instance):
    try:
        return method(name, "deployment").solve(instance, Limits(5.0)).status
    except InfeasibleError:
        return Status.INFEASIBLE
