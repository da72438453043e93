"""Every benchmark can be imported, tells its arguments, is what the documentation says it is, and runs."""

import re
import runpy
import shlex
import subprocess
import sys
from importlib import import_module

import pytest
from doc_blocks import ROOT

from benchmarks.harness import quoted_in

BENCHMARKS = ROOT / "benchmarks"
NAMES = sorted(
    f"{path.parent.name}/{path.stem}" for path in BENCHMARKS.glob("*/*.py") if "\nBENCH = " in path.read_text()
)
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMAND = re.compile(r"python benchmarks ([a-z_0-9]+/[a-z_0-9]+)([^`\n]*)")


def module_of(name):
    return import_module(f"benchmarks.{name.replace('/', '.')}")


def test_all_tell_their_arguments(capsys):
    for name in NAMES:
        module = module_of(name)
        with pytest.raises(SystemExit) as ended:
            module.BENCH.run(["--help"], name, module.__doc__)
        assert ended.value.code == 0
        said = capsys.readouterr().out
        assert f"usage: python benchmarks {name}" in said
        assert "--quick" in said
        assert module.BENCH.asked(["--quick"], name).quick


def test_commands_of_the_documentation_are_understood():
    met = set()
    for page in PAGES:
        for name, words in COMMAND.findall(page.read_text(encoding="utf-8")):
            met.add(name)
            assert name in NAMES, page
            given = [word for word in shlex.split(words) if word != "…"]
            assert module_of(name).BENCH.asked(given, name), page
    assert len(met) > 40


def test_nearly_all_are_quoted():
    """What is in none of the pages is for those who change the program; only ever make this smaller."""
    unquoted = {name for name in NAMES if not quoted_in(name)}
    assert unquoted == {"scheduling/time_indexed"}


def test_what_there_is(monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", list(sys.path))  # it takes the place of the script's folder
    main = runpy.run_path(str(BENCHMARKS))["main"]
    assert main([]) == 0
    said = capsys.readouterr().out
    assert all(f"\n{name} " in said for name in NAMES)
    assert main(["topology/nothing"]) == 2
    assert "there is no benchmark topology/nothing; there are aggregation/gain," in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_runs(name, tmp_path):
    """What needs data that are not part of the project, and are not here, says so."""
    words = [sys.executable, str(BENCHMARKS), name, "--quick", "--write", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = re.search(r"^\| ?---|\d kills, |^\d+ of \d+ instances ", done.stdout, re.MULTILINE)
    assert told or "left out" in done.stderr, done.stdout
