"""Nobody needs the frontier: with it hidden everything works, with weaker bounds."""

import os
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import ddlopt
from ddlopt.instances import index
from ddlopt.models import plugins
from ddlopt.models.catalogue import problems
from ddlopt.solvers import catalogue, chain

ROOT = Path(__file__).resolve().parents[2]
SLICE = ("tests/test_api.py", "tests/solvers/test_exact.py", "tests/solvers/deployment/plan/test_search.py")
"""Default tests that must pass either way."""


@pytest.fixture
def hidden(monkeypatch):
    monkeypatch.setenv(plugins.HIDDEN, "1")


ALONE = """
import os, sys, pytest, ddlopt
for hidden in "1", "0", "1":
    os.environ[{hidden!r}] = hidden
    if ddlopt.solve("topology/tiny-n4-d2", time_limit=20).status != "optimal":
        sys.exit("no optimum")
    print("loaded:", any(name.startswith("ddlopt.frontier") for name in sys.modules))
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_hidden_it_is_not_loaded_and_a_slice_of_the_tests_passes():
    """In a process that has loaded nothing yet."""
    told = [sys.executable, "-c", ALONE.format(hidden=plugins.HIDDEN)]
    asked = ["-q", "-x", "--assert", "plain", "-m", "not slow", "-p", "no:cacheprovider", *SLICE]
    here = os.environ | {"DDLOPT_GUARD": "off"}
    run = subprocess.run(told + asked, cwd=ROOT, env=here, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert run.stdout.splitlines()[:2] == ["loaded: False", "loaded: True"]


def test_its_methods_come_and_go(hidden, monkeypatch):
    without = {(entry.family, entry.name) for entry in catalogue.own_entries()}
    assert chain.links("deployment/plan") == ()
    monkeypatch.delenv(plugins.HIDDEN)
    with_it = {(entry.family, entry.name) for entry in catalogue.own_entries()}
    assert without < with_it
    assert chain.links("deployment/plan") != ()


def test_every_default_is_there_without(hidden):
    met = Counter()
    listed = index.read().instances
    for name in sorted(listed, key=len):
        path = listed[name].problem
        met[path] += 1
        if met[path] <= 2:
            instance = ddlopt.load(name)
            method = catalogue.method(catalogue.default_method(instance), instance.family)
            assert method.refuses(instance) is None, name
    assert met.keys() == set(problems())


def test_what_is_announced_is_there():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for group, points in project["entry-points"].items():
        told = {point.value: point.load() for point in plugins.announced(group)}
        assert all(isinstance(told[value], tuple) for value in points.values())
