"""Shared by all tests: the folders of helpers are importable, and only the installed package is."""

import gc
import os
import signal
import sys
import tomllib
import zlib
from importlib.metadata import distribution
from importlib.util import find_spec
from inspect import isfunction
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

# No test measures time, drawn examples neither: on a busy machine any of them may be slow.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Hypothesis parses every module of ours that is loaded, to draw the numbers that stand in it now and then: several
# seconds a worker, for the nine files that draw anything.
if hasattr(providers, "_get_local_constants"):
    providers._get_local_constants = lambda: providers._local_constants

# Tests run one a core. Threads of linear algebra beside them would wait for each other, a hundred times as long as
# they work; this must be said before NumPy is imported.
for library in ("OPENBLAS", "OMP", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

HERE = Path(__file__).parent
sys.path += [str(HERE), *(str(HERE / folder) for folder in ("helpers", "cases", "references"))]

# Benchmarks are not installed, and the root of the repository must not be searched for modules.
sys.modules["benchmarks"] = ModuleType("benchmarks")
sys.modules["benchmarks"].__path__ = [str(HERE.parent / "benchmarks")]


def stale():
    """What pyproject.toml has and the installation does not: an editable one is as old as the last ``pip install``."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = {(group, name) for group, points in project["project"]["entry-points"].items() for name in points}
    known = {(point.group, point.name) for point in distribution("ddlopt").entry_points}
    packages = project["tool"]["setuptools"]["package-dir"]
    return [f"package {name}" for name in packages if find_spec(name) is None] + sorted(
        f"entry point {name} of {group}" for group, name in wanted - known
    )


def pytest_configure(config):
    """Nothing could be trusted of tests of another ddlopt than this one."""
    if missing := stale():
        told = "pip install --no-deps --no-build-isolation -e ."
        pytest.exit(f"the installation is older than pyproject.toml: no {missing[0]}; run: {told}", returncode=4)
    import volume

    volume.SLOW = config.option.markexpr != "not slow"
    if hasattr(config, "workerinput") or getattr(config.option, "dist", "no") == "no":  # tests run here
        from sides import watch

        watch()
        # What is imported and collected stays until the end: looking for garbage in it finds none, for a second.
        gc.disable()


# A shell that runs a command in the background has it ignore Ctrl-C, which some tests send.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path):
    """Where slow tests are not asked for, files that have no others are not imported, with all that they need."""
    import volume

    if volume.SLOW or collection_path.suffix != ".py":
        return None
    return True if "\npytestmark = pytest.mark.slow\n" in collection_path.read_text(encoding="utf-8") else None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(obj):
    """Nor are thousands of them made to be left out again: of a function that is slow as a whole, none is."""
    import volume

    slow = not volume.SLOW and isfunction(obj) and any(mark.name == "slow" for mark in vars(obj).get("pytestmark", ()))
    return [] if slow else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark the long cases; have workers begin with files that have some, in an order that mixes families.

    Workers beside each other in a family would wait for each other's kernels.
    """
    long = set((HERE / "long_cases.txt").read_text(encoding="utf-8").splitlines())
    for item in items:
        if item.nodeid in long:
            item.add_marker(pytest.mark.slow)
    if hasattr(config, "workerinput"):
        heavy = {name.partition("::")[0] for name in long}
        file_of = {item: item.nodeid.partition("::")[0] for item in items}
        items.sort(key=lambda item: (file_of[item] not in heavy, zlib.crc32(file_of[item].encode())))


def pytest_collection_finish():
    """Look for garbage less often, and never in what was made until now: thousands of tests live until the end."""
    gc.enable()
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)


GUARD = "DDLOPT_GUARD"
FORKED = {"wrappers", "bench", "benchmarks", "test_processes.py", "test_odd_limits.py", "test_lying_methods.py"}
"""Folders and files of tests about the process that a solve is given, and the files beside all folders."""


def pytest_runtest_setup(item):
    """Default tests of what methods answer solve in this process.

    A fork of one with so much in it takes longer, and what it imports every other one imports again.
    """
    parts = item.path.relative_to(HERE).parts
    if len(parts) > 1 and FORKED.isdisjoint(parts) and item.get_closest_marker("slow") is None:
        os.environ[GUARD] = "off"
    else:
        os.environ.pop(GUARD, None)


@pytest.fixture
def call(capsys):
    """Exit code, standard output and standard error of a command line."""

    from ddlopt.cli import run

    def line(*arguments):
        code = run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        # Whether kernels are compiled in a test or were before it depends on the tests that ran earlier.
        said = [line for line in err.splitlines(keepends=True) if not line.startswith("compiling kernels, once")]
        return code, out, "".join(said)

    return line


@pytest.fixture
def refused(call):
    """The one line that a command line says which must be refused as bad input."""

    def line(*arguments):
        code, out, err = call(*arguments)
        assert (code, out) == (2, "")
        assert err.startswith("ddlopt: ")
        assert err.count("\n") == 1
        return err

    return line
