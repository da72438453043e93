"""What all benchmarks share: arguments and ``--quick``, tables printed and written, pairs, rows that are kept."""

import math
import re
import sys

import pytest

from benchmarks.harness import (
    Benchmark,
    Kept,
    Option,
    Skipped,
    cell,
    clocked,
    command,
    data,
    made_by,
    paired,
    ratio,
    shown,
)
from ddlopt.solvers.contracts import Limits


def growth(asked):
    """Seconds by size."""
    for size in asked.sizes:
        yield {"size": size, "s": size / 3, "proven": size < 3}


def notes(asked):
    """Text between tables."""
    yield {"a": None}
    yield {"a": math.nan}
    yield f"Limit {asked.limits.time_s:g}."
    yield {"b": "x"}


BENCH = Benchmark(
    growth,
    notes,
    sizes=Option([1, 2, 4], quick=[1]),
    time_limit=Option(60.0, quick=2.0),
    kinds=Option(["all"], choices=["all", "some"]),
    exact=Option(False),
)


def test_quick_changes_defaults_and_nothing_that_is_said():
    assert BENCH.asked([]).sizes == [1, 2, 4]
    quick = BENCH.asked(["--quick", "--time-limit", "7"])
    assert (quick.sizes, quick.time_limit, quick.kinds, quick.exact) == ([1], 7.0, ["all"], False)
    assert quick.limits == Limits(7.0)
    asked = BENCH.asked(["notes", "--exact", "--sizes", "8", "9", "--kinds", "some"])
    assert (asked.tables, asked.exact, asked.sizes, asked.kinds) == (["notes"], True, [8, 9], ["some"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nets"], "there is no table nets, only growth, notes"),
        (["--kinds", "none"], "kinds: there is no none; there are all, some"),
        (["--time-limit", "soon"], "--time-limit: invalid float value: 'soon'"),
        (["--sizes", "many"], "--sizes: invalid int value: 'many'"),
    ],
)
def test_bad_arguments_are_told(words, told, capsys):
    with pytest.raises(SystemExit) as ended:
        BENCH.asked(words)
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_tables_are_printed_and_written(tmp_path, capsys):
    BENCH.run(["--quick", "--write", str(tmp_path / "new")], "family/name", "")
    expected = [
        *("## growth: Seconds by size.", "", "| size | s | proven |", "|---|---:|---:|", "| 1 | 0.3333 | yes |", ""),
        *("## notes: Text between tables.", "", "| a |", "|---|", "| – |", "| – |", "", "Limit 2.", ""),
        *("| b |", "|---|", "| x |"),
    ]
    assert capsys.readouterr().out.splitlines() == expected
    assert (tmp_path / "new/family-name.md").read_text().splitlines() == expected


def test_pages_have_their_name_and_head(tmp_path):
    Benchmark(growth, page="page", head="# Head\n\n", sizes=Option([1])).run(["--write", str(tmp_path)], "a/b", "")
    told, table = (tmp_path / "page.md").read_text().removeprefix("# Head\n\n").split("\n\n")
    assert re.fullmatch(r"`python benchmarks a/b`, \d{4}-\d\d-\d\d, ddlopt [\w.+]+, 1 thread a solve\.", told)
    assert table.startswith("| size | s | proven |\n")
    Benchmark(growth, pages=False, sizes=Option([1])).run(["--write", str(tmp_path)], "a/b", "")
    assert [file.name for file in tmp_path.iterdir()] == ["page.md"]


@pytest.mark.parametrize(("seconds", "short"), [("29", True), ("30", False)])
def test_a_page_says_its_limits_and_what_a_short_one_means(seconds, short):
    benchmark = Benchmark(growth, time_limit=Option(60.0), threads=Option(1))
    words = ["--time-limit", seconds, "--write", "folder", "--threads", "2"]
    told = made_by("a/b", words, benchmark.asked(words))
    assert told.startswith(f"`python benchmarks a/b --time-limit {seconds} --threads 2`, ")
    assert f"time limit {seconds} s, 2 threads a solve." in told
    assert told.endswith("not what a method can do.") is short


def test_pictures_are_drawn_only_if_they_are_saved(tmp_path):
    def figure():
        from matplotlib.figure import Figure

        return Figure()

    def never():
        raise AssertionError

    BENCH.asked([]).save(never, "picture.png")
    BENCH.asked(["--write", str(tmp_path)]).save(figure, "picture.png")
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_cells():
    assert [cell(each) for each in (None, True, 3, 1234.56, "a")] == ["–", "yes", "3", "1235", "a"]
    assert (shown(None), shown(0.0), shown(0.5, ".1%")) == (None, "0", "50.0%")


def test_pairs_alternate():
    order = []
    runs = paired(3, {"one": lambda: order.append("one"), "two": lambda: order.append("two")})
    assert order == ["one", "two", "two", "one", "one", "two"]
    assert [len(each) for each in runs.values()] == [3, 3]


def test_ratios_are_geometric_means():
    assert ratio([2.0, 8.0], [1.0, 1.0]) == pytest.approx(4.0)


def test_solves_are_timed_and_refusals_are_no_results():
    result, spent = clocked("topology-finder", "topology/tiny-n4-d2", Limits())
    assert result.checked
    assert 0 < spent.wall_s < 60
    nothing, spent = clocked("branch-and-bound", "topology/dlrm-n128-d4", Limits(1.0))
    assert nothing is None
    assert math.isnan(spent.wall_s)


def test_kept_rows_are_measured_once(tmp_path):
    file = tmp_path / "new" / "rows.jsonl"

    def never():
        raise AssertionError

    assert Kept(file).row("a", lambda: {"s": 1.5}) == {"s": 1.5}
    again = Kept(file)
    assert again.row("a", never) == {"s": 1.5}
    assert again.row("a", lambda: {"s": 2.5}, again=True) == {"s": 2.5}
    assert Kept(file).row("a", never) == {"s": 2.5}


def test_data_that_are_not_here_are_named():
    with pytest.raises(Skipped, match="set DDLOPT_SHARED_DATA to the folder that holds no/such/file"):
        data("no/such/file")


def test_commands_are_measured_and_their_failures_told(capfd):
    spent = command([sys.executable, "-c", "print('unseen')"])
    assert spent.processor_s > 0
    assert spent.peak_bytes > 1e6
    assert "unseen" not in capfd.readouterr().out
    with pytest.raises(SystemExit, match=r"(?s)no good.*failed, exit code 3"):
        command([sys.executable, "-c", "import sys; print('no good', file=sys.stderr); sys.exit(3)"])
