"""The gallery of embeddings: every example runs and prints what the page shows, and the page lists every port."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import embedding_cases
import pytest
from volume import for_each

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/howto/embedding.md").read_text(encoding="utf-8")
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("embed_*.py"))
QUICK = ("embed_aggregation.py", "embed_compression.py")
"""Examples that the default tests run, in their own process."""


def words(text):
    """Without what other versions of a solver may find a little different: figures, lists of them, ties."""
    lines = (line.partition("; most taken")[0] for line in text.strip().splitlines())
    return [re.sub(r"\[[^]]*\]|[\d.]+", "#", line).split() for line in lines]


def shown(name):
    """What the page says that an example prints."""
    found = re.search(rf"\(\.\./\.\./examples/{name}\) prints\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert found, f"docs/howto/embedding.md does not show what examples/{name} prints"
    return words(found[1])


@pytest.mark.parametrize("name", QUICK)
def test_quick_example_prints_what_the_page_shows(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")
    assert words(capsys.readouterr().out) == shown(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_example_prints_what_the_page_shows(name, tmp_path):
    run = subprocess.run([sys.executable, ROOT / "examples" / name], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr
    assert words(run.stdout) == shown(name)


@for_each("name", EXAMPLES)
def test_the_page_shows_what_every_example_prints(name):
    assert shown(name)


def test_the_table_has_every_port_of_every_formulation():
    table = re.findall(r"^\| \w+ \| `\w+` \| .*\|$", PAGE, re.MULTILINE)
    assert table == embedding_cases.table_of_ports(), "python tests/helpers/embedding_cases.py prints the table"


def test_lines_that_the_page_includes_are_there():
    """So that nothing is shown cut off where an example has changed."""
    included = re.findall(r"```\{literalinclude\} \.\./examples/(\w+\.py)\n(.*?)```", PAGE, re.DOTALL)
    assert {name for name, _ in included} <= set(EXAMPLES)
    for name, options in included:
        lines = (ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()
        for bound in re.findall(r"^:(?:start-at|end-at): (.+)$", options, re.MULTILINE):
            assert len([line for line in lines if bound in line]) >= 1, f"{name}: {bound}"
