"""Processor seconds of the default tests, by file and case, from an empty cache of kernels; and what cases cover alone.

With ``--update`` ``tests`` puts cases that take more than ``--most`` seconds into ``tests/long_cases.txt``, the first
one of each test function excepted, and those of models and certificates. ``covered`` puts those there that take more
than ``--long`` seconds and run no branch of the code that the other default tests leave out: coverage.py notes the
branches of each case, and long cases are taken again one by one, the most branches a second first. Compiled code and
other processes are not looked into, so that tests of commands and processes stay, as do those whose matter is figures
and not branches: of bounds, checkers and relaxations. What is in the file is among the slow tests.
"""

import heapq
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

from benchmarks.harness import ROOT, Benchmark, Option, Skipped

LIST = ROOT / "tests/long_cases.txt"
KEPT = 1
WHOLE = (
    "tests/cli/", "tests/benchmarks/test_pairs.py", "tests/certificates/", "tests/docs/", "tests/embedding/",
    "tests/instances/test_bundled.py", "tests/instances/test_certificates.py", "tests/instances/test_checkers.py",
    "tests/models/", "tests/robustness/test_forged_every_kind.py",
)  # fmt: skip
"""Files whose cases have no siblings: each is about another problem, or kills other changes of bounds and checkers."""
STAY = (
    *WHOLE, "tests/analysis/bench/", "tests/benchmarks/", "tests/frontier/test_the_wall.py", "tests/robustness/",
    "tests/solvers/wrappers/",
)  # fmt: skip
"""Tests of processes, and of figures: that they cover no branch alone says little about what they find. Those of models
and certificates are what changes of bounds and checkers are held against (``suite/mutants``)."""
STAY_NAMED = (
    "agree", "best_of_all", "bound", "brute_force", "certif", "check", "enumeration", "evaluat", "forged", "optim",
    "proof", "proven",
)  # fmt: skip
"""Words in names of such tests."""
FOLDERS = "models", "solvers", "certificates", "frontier", "instances", "analysis", "ddlopt"
HEAD = """\
# Cases of the slow tests: they take longer than others of their function, of which one is a default test, or
# run no branch that default tests leave out. Written by `python benchmarks suite/test_seconds`, with --update.
"""
PLUGIN = """
import os, pytest
file = open(os.path.join(os.environ["TEST_FOUND"], str(os.getpid())), "w")

def spent():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    before = spent()
    result = yield
    print(f"{spent() - before:.3f}", item.nodeid, sep="\\t", file=file, flush=True)
    return result
"""
COVER = """
import os, pytest, coverage
cover = None

def pytest_sessionstart(session):
    global cover
    if hasattr(session.config, "workerinput"):
        file = os.path.join(os.environ["TEST_FOUND"], str(os.getpid()))
        cover = coverage.Coverage(file, branch=True, config_file=False, source=os.environ["TEST_SOURCE"].split(":"))
        cover.start()

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    if cover:
        cover.switch_context(item.nodeid)
    return (yield)

def pytest_sessionfinish():
    if cover:
        cover.stop()
        cover.save()
"""
BIN = Path(sys.executable).parent


def spent_s() -> float:
    """Processor seconds of all processes that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def run_tests(folder: str, paths: list[str], name: str, plugin: str, **environment: str) -> list[Path]:
    """Run the default tests with a plugin in a folder; gives the files that it wrote."""
    Path(folder, f"{name}.py").write_text(plugin)
    Path(folder, "found").mkdir()
    words = ["-q", "-n", "2", "--dist", "loadfile", "--assert", "plain", "-p", name, "-m", "not slow", *paths]
    added = {"PYTHONPATH": folder, "TEST_FOUND": f"{folder}/found"}
    subprocess.run([BIN / "pytest", *words], cwd=ROOT, env=os.environ | added | environment, check=True)
    return sorted(Path(folder, "found").iterdir())


def measured(paths: list[str]) -> tuple[float, float, dict[str, float]]:
    """Processor seconds of compiling, of the whole run after it, and of each case."""
    with tempfile.TemporaryDirectory() as folder:
        cache, begun = {"NUMBA_CACHE_DIR": folder}, spent_s()
        subprocess.run([BIN / "ddlopt", "warm-up"], cwd=ROOT, env=os.environ | cache, check=True)
        compiled = spent_s()
        files = run_tests(folder, paths, "seconds_plugin", PLUGIN, **cache)
        whole = spent_s() - compiled
        rows = [line.split("\t", 1) for file in files for line in file.read_text().splitlines()]
    return compiled - begun, whole, {name: float(seconds) for seconds, name in rows}


def noted(names: set[str]) -> None:
    """Add cases to those of the slow tests."""
    known = {line for line in LIST.read_text().splitlines() if line and not line.startswith("#")}
    LIST.write_text(HEAD + "".join(f"{name}\n" for name in sorted(known | names)))


def tests(asked):
    """The files that take longest."""
    compiled, whole, cases = measured(asked.paths)
    by_file: Counter[str] = Counter()
    functions: dict[str, list[str]] = defaultdict(list)
    for name, seconds in cases.items():
        by_file[name.partition("::")[0]] += seconds
        functions[name.partition("[")[0]].append(name)
    yield {"file": "kernels", "processor s": f"{compiled:.0f}"}
    yield {"file": f"the rest, {len(cases)} cases", "processor s": f"{whole:.0f}"}
    for file, seconds in by_file.most_common(25):
        yield {"file": file, "processor s": f"{seconds:.1f}"}
    if asked.update:
        more = [name for names in functions.values() for name in names[KEPT:]]
        noted({name for name in more if cases[name] > asked.most and not name.startswith(WHOLE)})


def branches_of(files: list[Path]) -> dict[str, set[int]]:
    """What each case runs: numbers of branches, of a file from a line to another one."""
    numbers: dict[tuple[str, int, int], int] = {}
    found: dict[str, set[int]] = defaultdict(set)
    query = """
        SELECT context.context, file.path, fromno, tono FROM arc
        JOIN context ON context.id = context_id JOIN file ON file.id = file_id
    """
    for file in files:
        with closing(sqlite3.connect(file)) as data:
            for case, *branch in data.execute(query):
                found[case].add(numbers.setdefault(tuple(branch), len(numbers)))
    return found


def alone(cases: dict[str, float], branches: dict[str, set[int]], long_s: float) -> tuple[list[str], list[str]]:
    """Long cases that run something which no other case runs that stays, and those that do not."""
    long, known = set(), set(branches.get("", ()))
    for name, seconds in cases.items():
        stays = name.startswith(STAY) or name.count("/") < 2 or any(word in name for word in STAY_NAMED)
        if seconds > long_s and name in branches and not stays:
            long.add(name)
        else:
            known |= branches.get(name, set())
    queue = [(-len(branches[name] - known) / cases[name], name) for name in long]
    heapq.heapify(queue)
    needed: list[str] = []
    while queue:
        worth, name = heapq.heappop(queue)
        now = -len(branches[name] - known) / cases[name]
        if now > worth:  # others have covered some of it since
            if now < 0:
                heapq.heappush(queue, (now, name))
            continue
        if now < 0:
            needed.append(name)
            known |= branches[name]
    return needed, sorted(long - set(needed))


def covered(asked):
    """Long cases, and how many of them cover nothing alone."""
    if find_spec("coverage") is None:
        raise Skipped("coverage.py is not installed: pip install coverage")
    cases = measured(asked.paths)[2]
    source = ":".join(str(ROOT / name) for name in FOLDERS)
    with tempfile.TemporaryDirectory() as folder:
        branches = branches_of(run_tests(folder, asked.paths, "cover_plugin", COVER, TEST_SOURCE=source))
    needed, others = alone(cases, branches, asked.long)
    for kind, names in (("with branches of their own", needed), ("without", others)):
        yield {"long cases": kind, "cases": len(names), "processor s": f"{sum(cases[name] for name in names):.0f}"}
    if asked.update:
        noted(set(others))


BENCH = Benchmark(
    tests, covered,
    paths=Option([], "of tests; all by default", ["tests/models/test_files.py"], str, positional=True),
    update=Option(False, "put long cases into tests/long_cases.txt"),
    most=Option(0.06, "processor seconds that a case may take"),
    long=Option(0.06, "processor seconds beyond which a case has to cover something that no other does"),
)  # fmt: skip
