"""What the README says runs, and says the truth."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import ddlopt
from ddlopt.cli import app

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", README, re.DOTALL), ids=lambda code: f"{len(code)}")
def test_python_blocks_run(code, tmp_path):
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout


@pytest.mark.parametrize(
    "script",
    ["own_instance", "own_heuristic", "embed_formulation", "embed_scheduling", "embed_compression", "embed_codesign"],
)
def test_examples_run(script, tmp_path):
    words = [sys.executable, ROOT / "examples" / f"{script}.py"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert run.stdout


def test_the_example_that_trains_runs(tmp_path):
    pytest.importorskip("sklearn", reason="the digits come with scikit-learn: pip install 'ddlopt[train]'")
    words = [sys.executable, ROOT / "examples" / "run_plan.py", "--steps", "1", "--train", "2"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "error of the whole gradient over 1 steps" in run.stdout
    assert "accuracy after 2 steps with the plan and error feedback" in run.stdout


def test_the_demo_draws_its_pictures(tmp_path):
    words = [sys.executable, ROOT / "examples" / "demo.py", "--time-limit", "2", "--instances", "topology/tiny-n4-d2"]
    run = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert "error" not in run.stdout
    assert sorted(file.name for file in (tmp_path / "demo").iterdir()) == ["comparison.png", "tiny-n4-d2.png"]


def test_commands_exist():
    """Every `ddlopt …` of a console block names a command, and known instances and methods."""
    commands = {command.name or command.callback.__name__ for command in app.registered_commands}
    lines = re.findall(r"^\$ ddlopt (.*)$", README, re.MULTILINE)
    assert lines
    for line in lines:
        command, *words = shlex.split(line, comments=True)
        assert command in commands
        named = {word for word in words if word.split("/")[0] in ddlopt.families() and "/" in word}
        assert named <= set(ddlopt.names())
        if "--methods" in words:
            asked = {name.split("/")[0] for name in named} or ddlopt.families()  # a file may be of any family
            known = {name for family in asked for name in ddlopt.methods(family)}
            assert set(words[words.index("--methods") + 1].split(",")) <= {*known, "auto"}


def test_every_method_is_in_the_table_of_its_family():
    """A table headed `FAMILY method` for each family, its rows as `ddlopt list` has them."""
    head = r"^\| (\w+) method \| kind \| what it does \|\n\|---\|---\|---\|\n((?:\|.*\n)+)"
    tables = {
        family: re.findall(r"^\| `([a-z-]+)` \| (\w+) \| (.*) \|$", rows, re.MULTILINE)
        for family, rows in re.findall(head, README, re.MULTILINE)
    }
    assert tables == {family: list(ddlopt.describe(family)) for family in ddlopt.families()}


def test_files_that_it_links_to_exist():
    links = [target for target in re.findall(r"\]\(([^)]+)\)", README) if "://" not in target]
    assert links
    assert [target for target in links if not (ROOT / target.partition("#")[0]).exists()] == []


def test_make_targets_that_it_names_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"(?:`|\$ )make ([a-z-]+)", README))
    assert {"demo", "test"} <= named <= targets
