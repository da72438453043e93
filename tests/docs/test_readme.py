"""What README and reference say of methods, examples and results is the truth; code blocks and links: ``test_docs``."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import ddlopt
from ddlopt.analysis.tables import gap_text
from ddlopt.solvers.names import split

ROOT = Path(__file__).resolve().parents[2]
DRAWN = (("tag", "sfb-bert-base-b4-w2-25g"), ("espresso", "espresso-resnet101-dgc-pcie"))
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("script", ["own_instance", "own_heuristic"])
def test_examples_run(script, tmp_path):
    words = [sys.executable, ROOT / "examples" / f"{script}.py"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout


@pytest.mark.slow
def test_the_example_that_trains_runs(tmp_path):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn: pip install 'ddlopt[train]'")
    words = [sys.executable, ROOT / "examples" / "run_plan.py", "--steps", "1", "--train", "2"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "error of the whole gradient over 1 steps" in run.stdout
    assert "accuracy after 2 steps with the plan and error feedback" in run.stdout


@pytest.mark.slow
def test_the_demo_has_a_table_and_a_picture_for_each_pillar(tmp_path):
    """The pillar that solves quickest; the table fits on a terminal, and what is called proven is."""
    words = [sys.executable, ROOT / "examples" / "demo.py", "--only", "compression"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert [file.name for file in (tmp_path / "demo").iterdir()] == ["compression.png"]
    assert max(len(line.rstrip()) for line in run.stdout.splitlines()) <= 80
    rows = re.findall(r"(tag|min-cut|espresso|exact) +[\d.]+ ms +(optimal, proven|[\d.]+ %) ", run.stdout)
    tag, espresso = (losses("compression_gap", method, instance) for method, instance in DRAWN)
    expected = ["optimal, proven"] * 6
    expected[2], expected[4] = (gap_text(loss / (100 + loss)) for (loss,) in (tag.values(), espresso.values()))
    assert [verdict for _, verdict in rows] == expected


def test_the_demo_asks_for_what_there_is():
    demo = runpy.run_path(str(ROOT / "examples/demo.py"), run_name="demo")
    cases = [case for pillar in demo["PILLARS"] for case in pillar.cases] + list(demo["OTHERS"])
    assert {name.partition("/")[0] for name, _, _ in cases} == set(ddlopt.families())
    assert {name for name, _, _ in cases} | set(demo["LIMITS_S"]) <= set(ddlopt.names())
    for name, _, methods in cases:
        assert {split(method)[0] for method in methods} <= set(ddlopt.methods(name.partition("/")[0]))
    assert all(page.exists() for page in map(ROOT.joinpath, re.findall(r"docs/[\w/]+\.md", demo["READ_ON"])))


def test_the_page_of_methods_is_what_the_catalogue_says():
    script = runpy.run_path(str(ROOT / "docs/reference/methods.py"))
    page = script["page"]()
    assert page == script["PAGE"].read_text(encoding="utf-8"), "run: python docs/reference/methods.py"
    for family, part in zip(ddlopt.families(), re.split(r"^## .*\n", page, flags=re.MULTILINE)[1:], strict=True):
        rows = re.findall(r"^\| `([a-z0-9-]+)` \| (\w+) \| ", part, re.MULTILINE)
        assert set(rows) == {(name, kind) for name, kind, _ in ddlopt.describe(family)}


def test_the_front_page_stays_short():
    """What is longer belongs into the documentation."""
    assert len(README.splitlines()) <= 180


def losses(page, method, instances):
    """Percent that a method loses against the best known solution, by the generated table of a family."""
    found = {}
    text = (ROOT / f"docs/results/{page}.md").read_text(encoding="utf-8")
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        header, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
        for row in rows:
            if method in header and re.fullmatch(instances, row[0]):
                found[row[0]] = float(re.sub(r"[<% ]", "", row[header.index(method)]))
    assert found
    return found
