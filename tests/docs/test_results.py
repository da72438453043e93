"""Pages say of results what the library's records and the kept runs say."""

import re
import statistics
import subprocess
import sys

import pytest
from doc_blocks import ROOT

sys.path.append(str(ROOT / "docs/results"))

import figures
import from_records as command

from benchmarks import quoted
from benchmarks.harness import SHORT_S
from benchmarks.suite import gaps, pairs
from ddlopt.instances.odd import SETTINGS
from ddlopt.models.catalogue import FAMILY_NAMES, problems
from ddlopt.solvers import catalogue

PAGES = [page for page in command.pages() if command.MARK.search(page.read_text(encoding="utf-8"))]
TOLERANCE = 1e-6
"""Part of an objective by which solvers may miss."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_says_what_the_data_say(page):
    text = page.read_text(encoding="utf-8")
    assert command.written(text) == text, "run: python docs/results/from_records.py"
    assert list(command.untrue(text)) == []


def test_every_family_has_its_table():
    texts = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    blocks = command.BLOCK.findall(texts)
    assert {family for _, kind, family, chosen, _ in blocks if kind == "gaps" and not chosen} == set(FAMILY_NAMES)
    assert [pattern for _, kind, pattern, _, _ in blocks if kind == "open"] == ["*"]


def test_every_open_instance_has_its_reason():
    assert set(figures.unproven("*")) <= set(figures.open_reasons()) <= set(figures.names("*"))


@pytest.mark.parametrize("page", sorted((ROOT / "docs/results").glob("*.md")), ids=lambda page: page.stem)
def test_tables_say_when_they_were_made_and_in_which_time(page):
    text = command.BLOCK.sub(
        lambda found: "" if found[2].endswith("open") else found[0], page.read_text(encoding="utf-8")
    )
    if "\n|---" in text or "\n| ---" in text:
        assert re.search(r"\b20\d\d-\d\d-\d\d\b", text)
        limits = [float(limit) for limit in re.findall(r"[Tt]ime limit(?: of a run:)? ([\d.]+)", text)]
        assert limits or "no time limit" in text
        assert min(limits, default=SHORT_S) >= SHORT_S or " not what " in text


BEST = "best('topology/tiny-n4-d2')"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"It takes 1 s<!-- = {BEST} -->.", f"It takes 12 s<!-- = {BEST} -->."),
        (f"It takes 1.00 ms<!-- = {BEST} -->.", f"It takes 11500.00 ms<!-- = {BEST} -->."),
        (f"lost 3.0 %<!-- = {BEST} / 23 -->", f"lost 50.0 %<!-- = {BEST} / 23 -->"),
        (f"2.0<!-- = {BEST} /\n23 --> times", f"0.5<!-- = {BEST} /\n23 --> times"),
        (f"−2.0<!-- = -{BEST} -->", f"−11.5<!-- = -{BEST} -->"),
        (f"2 and 3<!-- = {BEST} --> s", f"2 and 12<!-- = {BEST} --> s"),
    ],
)
def test_a_figure_is_written_in_the_unit_that_it_has(before, after):
    assert command.written(before) == after
    assert command.written(after) == after


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"fast<!-- holds: {BEST} < 1 -->", f"does not hold: {BEST} < 1"),
        ("some<!-- = best('topology/tiny-n4-d2') --> s", "a mark is not understood"),
        ("<!-- from records: gaps topology -->\n", "a mark is not understood"),
    ],
)
def test_what_does_not_hold_is_told(text, problem):
    assert [told[: len(problem)] for told in command.untrue(text)] == [problem]


def test_a_table_of_problems_has_those_of_the_pattern():
    text = command.written("<!-- from records: problems topology/tiny-n4-* gossip/pendant-* -->\n<!-- end -->")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| ")][2:]
    assert [row[0] for row in rows] == ["| topology", "| gossip/weights"]
    small = figures.names("topology/tiny-n4-*")
    assert rows[0][2:] == [str(len(small)), str(figures.proven(*small)), "4 servers |"]


def test_a_table_of_losses_is_that_of_the_runs():
    (line,) = figures.loss_table("scheduling/gadget").splitlines()[2:]
    lost = {name: figures.loss("gadget", name) for name in figures.names("scheduling/*") if ran("gadget", name)}
    worst = max(lost, key=lost.get)
    assert line.split(" | ")[2:] == [
        str(len(lost)),
        str(sum(each <= 1e-4 for each in lost.values())),
        f"{statistics.median(lost.values()):.1%}",
        f"{lost[worst]:.1%}",
        f"{worst.partition('/')[2]} |",
    ]
    with pytest.raises(figures.FigureError, match="no run of topology/gadget is kept"):
        figures.loss_table("topology/gadget")


def ran(method, name):
    try:
        return figures.run(name, method) is not None
    except figures.FigureError:
        return False


def test_what_holds_is_not():
    assert list(command.untrue(f"fast<!-- holds: 11 < {BEST} < 12 --> indeed")) == []


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("best('topology/nothing')", "there is no instance"),
        ("run('topology/tiny-n4-d2', 'nothing')", "no run of nothing on topology/tiny-n4-d2 is kept"),
        ("losses('nothing', 'topology/*')", "no run of nothing"),
        ("gaps('nothing/*')", "no instance is called nothing"),
        ("cell('results/topoopt_attribution', 'split', {'instance': 'nothing'})", "0 rows have"),
        ("1 +", "1 +: "),
    ],
)
def test_what_there_are_no_data_for_is_one_line(expression, problem):
    with pytest.raises(figures.FigureError) as told:
        command.value(expression)
    assert problem in str(told.value)
    assert "\n" not in str(told.value)


def test_a_cell_of_a_table():
    row = {"job": "dlrm", "Gb/s": "100"}
    assert figures.cell("results/codesign_bandwidth", "ideal-switch", row, "n = 128") == 46.79
    assert figures.cell("results/topoopt_attribution", "TopoOpt", {"instance": "vgg16-n64-d4"}) == pytest.approx(
        0.102275
    )
    assert figures.over_fat_tree("candle", 10) == 2.67
    assert figures.over_fat_tree("candle", 10, 16, which=1) == 2.95
    assert figures.attribution("geometric mean", "everything", 1) == 1.228
    assert figures.cell("results/topoopt_attribution", "communicating", {"instance": "bert-n12-d4"}) == pytest.approx(
        0.36
    )
    with pytest.raises(figures.FigureError, match="2 rows have"):
        figures.cell("results/codesign_bandwidth", "ideal-switch", row)


# The kept runs -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_records_are_never_worse_than_kept_runs(family):
    """Whatever was run for a page is in the records: `ddlopt submit --store`, which `suite/gaps` does by itself."""
    for run in quoted.read(family):
        sense = quoted.instance_of(f"{family}/{run.instance}").sense
        best, bound = gaps.known(f"{family}/{run.instance}")
        up = 1 if sense == "minimize" else -1
        if run.answered:
            assert up * (run.objective - best) >= -TOLERANCE * abs(best), run
        if run.answered and run.bound is not None:
            assert up * (run.bound - bound) <= 2 * gaps.SAME * abs(bound), run


@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_kept_runs_are_of_methods_that_there_are(family):
    for method in {run.method for run in quoted.read(family)}:
        catalogue.method(method.partition(" (")[0], family)


def test_what_is_kept_is_sorted(tmp_path):
    named = quoted.origins()
    for family in FAMILY_NAMES:
        quoted.write(family, quoted.read(family), tmp_path)
        kept = (quoted.FOLDER / f"{family}.csv").read_text()
        assert (tmp_path / f"{family}.csv").read_text() == kept
        assert {run.origin for run in quoted.read(family)} <= set(named)


@pytest.mark.slow
def test_the_command_has_nothing_to_write():
    run = subprocess.run(
        [sys.executable, ROOT / "docs/results/from_records.py"], capture_output=True, text=True, cwd=ROOT
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_page_of_pairs_is_that_of_its_rows_and_has_every_problem():
    rows = pairs.read()
    assert (pairs.FOLDER / "pairs.md").read_text(encoding="utf-8") == pairs.page(rows), (
        "run: python benchmarks suite/pairs --kept --write docs/results"
    )
    missing = {(path, setting) for path in problems() for setting in SETTINGS} - {
        (row["problem"], row["setting"]) for row in rows
    }
    assert not missing, (
        f"run: python benchmarks suite/pairs {' '.join(sorted({p for p, _ in missing}))} --write docs/results"
    )
    for row in rows:
        where = row["problem"], row["setting"]
        assert row["instances"] >= 30, where
        assert row["methods"] >= 2, where
        assert row["pairs"] >= row["answers"] > 0, where
        assert row["contradictions"] == row["late"] == 0, where
        assert len(row["remarks"]) == row["broken"], where
        assert not row["broken"], where
