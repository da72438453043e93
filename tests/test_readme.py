"""What the README says of methods and examples is the truth; its code blocks and links are those of ``test_docs``."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ddlopt

ROOT = Path(__file__).resolve().parents[1]
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
def test_the_demo_draws_its_pictures(tmp_path):
    words = [sys.executable, ROOT / "examples" / "demo.py", "--time-limit", "2", "--instances", "topology/tiny-n4-d2"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "error" not in run.stdout
    assert sorted(file.name for file in (tmp_path / "demo").iterdir()) == ["comparison.png", "tiny-n4-d2.png"]


def test_every_method_is_in_the_table_of_its_family():
    """A table headed `FAMILY method` for each family, its rows as `ddlopt list` has them."""
    head = r"^\| (\w+) method \| kind \| what it does \|\n\|---\|---\|---\|\n((?:\|.*\n)+)"
    tables = {
        family: re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.*) \|$", rows, re.MULTILINE)
        for family, rows in re.findall(head, README, re.MULTILINE)
    }
    assert tables == {family: list(ddlopt.describe(family)) for family in ddlopt.families()}


def test_the_front_page_stays_short():
    """Apart from the tables of methods; what is longer belongs into the documentation."""
    assert len([line for line in README.splitlines() if not line.startswith("| `")]) <= 200
