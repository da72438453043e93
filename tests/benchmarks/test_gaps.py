"""The tables of gaps, and the runs that the repository keeps for them, of a store whose figures are known."""

import json

import pytest
from report_cases import instance_row, run_row

from benchmarks import quoted
from benchmarks.suite import gaps
from ddlopt import instances
from ddlopt.analysis.bench import Store
from ddlopt.analysis.tables import objective_text

TINY, JOB = "topology/tiny-n4-d2", "codesign/tiny-drawn-n5-d2"
OPTIMUM_S = 11.5
"""Of the first."""


def described(name):
    return instance_row(instances.load(name).digest, name.partition("/")[2], name.partition("/")[0])


@pytest.fixture
def store(tmp_path):
    tiny, odd = described(TINY), instance_row("b" * 64, "odd")
    path = tmp_path / "r.sqlite"
    with Store(path) as opened:
        for instance, run in (
            (tiny, run_row(tiny, "exact", 0, "optimal", 11.5, 11.5, 2.0)),
            (tiny, run_row(tiny, "expander", 0, "feasible", 12.65, 11.5, 0.5)),
            (tiny, run_row(tiny, "expander", 1, "feasible", 23.0, 11.5, 0.5, solver="cbc", time_limit_s=20.0)),
            (tiny, run_row(tiny, "expander", 2, "feasible", 12.65, 11.5, 0.5, time_limit_s=20.0)),
            (tiny, run_row(tiny, "expander", 3, "feasible", 23.0, 11.5, 0.5)),
            (tiny, run_row(tiny, "ideal-switch", 0, "reference", 5.0)),
            (tiny, run_row(tiny, "crash", 0, "crashed", runtime_s=3.0)),
            (odd, run_row(odd, "exact", 0, "feasible", 150.0, 50.0, 10.0)),
        ):
            opened.add(run, instance)
    return path


def kept(store, folder, note="Mine."):
    with Store(store, write=False) as opened:
        return quoted.take(opened, note, folder)


def test_by_hand(store, tmp_path, capsys):
    folder = tmp_path / "runs"
    gaps.BENCH.run([str(store), "--into", str(folder), "--note", "Mine."], "suite/gaps", "")
    told, short, table = gaps.text_of("topology", folder).split("\n\n")
    assert f"# topology\n\n{told}" in capsys.readouterr().out
    limits = "Time limit of a run: 20 to 60 s, gap 0.0001, 1 thread"
    assert told == f"{limits}. Runs of 2026-02-02, ddlopt 0.1.0. Abacus 3, 2 cores. Mine."
    assert short.startswith("Some of the runs had 20 s: ")
    # Of expander's three runs, 10 %, 10 % and 100 % above the best known, the median; other networks do not count.
    assert table.splitlines() == [
        "| instance | n | d | best known | bound | gap left | exact | expander | expander (cbc) |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| tiny-n4-d2 | 4 | 2 | 11.5 s | 11.5 s | 0 % | 0 % | 10.00 % | 100.00 % |",
    ]


def test_runs_are_kept_as_they_were(store, tmp_path):
    assert kept(store, tmp_path) == {"topology": 7}
    runs = quoted.read("topology", tmp_path)
    assert [(run.method, run.seed, run.status, run.objective) for run in runs] == [
        ("crash", 0, "crashed", None),
        ("exact", 0, "optimal", 11.5),
        ("expander", 0, "feasible", 12.65),
        ("expander", 2, "feasible", 12.65),
        ("expander", 3, "feasible", 23.0),
        ("expander (cbc)", 1, "feasible", 23.0),
        ("ideal-switch", 0, "reference", 5.0),
    ]
    (origin,) = quoted.origins(tmp_path).values()
    assert origin["date"] == "2026-02-02"
    assert origin["numpy"] == "2.0"
    before = (tmp_path / "topology.csv").read_text()
    kept(store, tmp_path)
    assert (tmp_path / "topology.csv").read_text() == before
    assert list(quoted.origins(tmp_path)) == ["2026-02-02-a"]


def test_a_run_takes_the_place_of_an_older_one(store, tmp_path):
    digest = quoted.digest_of(TINY)
    old = [
        quoted.Run("tiny-n4-d2", digest, method, seed, "feasible", 40.0, None, None, 10.0, None, None, "old")
        for method, seed in (("exact", 0), ("exact", 5), ("ocs-greedy", 0))
    ]
    quoted.write("topology", old, tmp_path)
    (tmp_path / "origins.json").write_text(json.dumps({"old": {"date": "2026-01-01"}}))
    kept(store, tmp_path)
    runs = {(run.method, run.seed): run for run in quoted.read("topology", tmp_path)}
    assert runs["exact", 0].objective == OPTIMUM_S
    assert runs["exact", 5].objective == runs["ocs-greedy", 0].objective == 40.0
    assert set(quoted.origins(tmp_path)) == {"old", "2026-02-02-a"}
    assert "Time limit of a run: 10 to 60 s" in gaps.text_of("topology", tmp_path)


def test_runs_on_other_data_are_left_alone(tmp_path):
    quoted.write(
        "topology",
        [quoted.Run("tiny-n4-d2", "0" * 12, "exact", 0, "optimal", 1.0, 1.0, 1.0, 1.0, None, None, "a")],
        tmp_path,
    )
    assert quoted.read("topology", tmp_path) == []


def test_bounds_have_their_parts(tmp_path):
    objective, bound = gaps.known(JOB)
    parts = {"gap_of_topology": 0.04, "gap_of_strategies": 0.01}
    job = described(JOB)
    with Store(tmp_path / "r.sqlite") as store:
        store.add(run_row(job, "joint", 0, "feasible", objective, bound, details=parts), job)
        store.add(run_row(job, "expander", 0, "feasible", 2 * objective, 0.5 * bound, details={}), job)
    kept(tmp_path / "r.sqlite", tmp_path, note="")
    row = gaps.row_of("codesign", "tiny-drawn-n5-d2", quoted.read("codesign", tmp_path))
    assert row["best known"] == objective_text(objective, "s")
    assert (row["of topology"], row["of strategies"]) == ("4.00 %", "1.00 %")
    assert (row["joint"], row["expander"]) == ("0 %", "100.00 %")


@pytest.mark.parametrize(("sense", "objective", "lost"), [("topology", 23.0, 1.0), ("scheduling", 5.0, 0.5)])
def test_losses_are_parts_of_the_best_known(sense, objective, lost):
    name = {"topology": TINY, "scheduling": "scheduling/tiny-general"}[sense]
    best = {"topology": 11.5, "scheduling": 10.0}[sense]
    assert gaps.loss(objective, best, instances.load(name)) == pytest.approx(lost)
    assert gaps.loss(objective, 0.0, instances.load(name)) is None
