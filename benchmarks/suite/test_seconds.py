"""Processor seconds of the default tests, by file and case, from an empty cache of kernels.

With ``--update`` cases that take more than ``--most`` seconds are put into ``tests/long_cases.txt``, the first two of
each test function excepted; what is named there is among the slow tests.
"""

import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

from benchmarks.harness import ROOT, Benchmark, Option

LIST = ROOT / "tests/long_cases.txt"
KEPT = 2
WHOLE = "tests/cli/", "tests/instances/test_bundled.py", "tests/models/test_kernels.py"
"""Files whose cases have no siblings: each is about another problem."""
HEAD = f"""\
# Cases of the slow tests: they take longer than others of their function, of which {KEPT} or more are default tests.
# Written by `python benchmarks suite/test_seconds --update`.
"""
PLUGIN = """
import os, pytest
file = open(os.path.join(os.environ["TEST_SECONDS"], str(os.getpid())), "w")

def spent():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    before = spent()
    result = yield
    print(f"{spent() - before:.3f}", item.nodeid, sep="\\t", file=file, flush=True)
    return result

def pytest_sessionfinish():
    print(f"{spent():.3f}", "all", sep="\\t", file=file, flush=True)
"""


def measured(paths: list[str]) -> tuple[float, dict[str, float]]:
    """Processor seconds of the whole run, and of each case."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "seconds_plugin.py").write_text(PLUGIN)
        (Path(folder) / "found").mkdir()
        added = {"PYTHONPATH": folder, "NUMBA_CACHE_DIR": folder, "TEST_SECONDS": f"{folder}/found"}
        words = ["-q", "-n", "2", "--dist", "loadfile", "--assert", "plain", "-p", "seconds_plugin", "-m", "not slow"]
        subprocess.run(
            [Path(sys.executable).parent / "pytest", *words, *paths], cwd=ROOT, env=os.environ | added, check=True
        )
        rows = [
            line.split("\t", 1) for file in Path(folder, "found").iterdir() for line in file.read_text().splitlines()
        ]
    whole = sum(float(seconds) for seconds, name in rows if name == "all")
    return whole, {name: float(seconds) for seconds, name in rows if name != "all"}


def tests(asked):
    """The files that take longest."""
    whole, cases = measured(asked.paths)
    by_file: Counter[str] = Counter()
    functions: dict[str, list[str]] = defaultdict(list)
    for name, seconds in cases.items():
        by_file[name.partition("::")[0]] += seconds
        functions[name.partition("[")[0]].append(name)
    yield {"file": f"{whole:.0f} in all, {len(cases)} cases", "processor s": ""}
    for file, seconds in by_file.most_common(25):
        yield {"file": file, "processor s": f"{seconds:.1f}"}
    if asked.update:
        known = {line for line in LIST.read_text().splitlines() if line and not line.startswith("#")}
        more = [name for names in functions.values() for name in names[KEPT:]]
        long = {name for name in more if cases[name] > asked.most and not name.startswith(WHOLE)}
        LIST.write_text(HEAD + "".join(f"{name}\n" for name in sorted(known | long)))


BENCH = Benchmark(
    tests,
    paths=Option([], "of tests; all by default", ["tests/models/test_files.py"], str, positional=True),
    update=Option(False, "put long cases into tests/long_cases.txt"),
    most=Option(0.06, "processor seconds that a case may take"),
)
