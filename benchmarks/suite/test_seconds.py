"""Processor seconds of the default tests, by file and case, from an empty cache of kernels.

    python benchmarks/test_seconds.py [--write] [--most SECONDS]

With ``--write`` cases that take more than ``--most`` seconds are put into ``tests/long_cases.txt``, the first two of
each test function excepted; what is named there is among the slow tests.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST = ROOT / "tests/long_cases.txt"
KEPT = 2
WHOLE = "tests/test_cli", "tests/instances/test_bundled.py", "tests/models/test_kernels.py"
"""Files whose cases have no siblings: each is about another problem."""
HEAD = f"""\
# Cases of the slow tests: they take longer than others of their function, of which {KEPT} or more are default tests.
# Written by `python benchmarks/test_seconds.py --write`.
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


def measured() -> tuple[float, dict[str, float]]:
    """Processor seconds of the whole run, and of each case."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "seconds_plugin.py").write_text(PLUGIN)
        (Path(folder) / "found").mkdir()
        added = {"PYTHONPATH": folder, "NUMBA_CACHE_DIR": folder, "TEST_SECONDS": f"{folder}/found"}
        words = ["-q", "-n", "2", "--dist", "loadfile", "-p", "seconds_plugin", "-m", "not slow"]
        subprocess.run([Path(sys.executable).parent / "pytest", *words], cwd=ROOT, env=os.environ | added, check=True)
        rows = [
            line.split("\t", 1) for file in Path(folder, "found").iterdir() for line in file.read_text().splitlines()
        ]
    whole = sum(float(seconds) for seconds, name in rows if name == "all")
    return whole, {name: float(seconds) for seconds, name in rows if name != "all"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put long cases into tests/long_cases.txt")
    parser.add_argument("--most", type=float, default=0.06, help="processor seconds that a case may take")
    options = parser.parse_args()
    whole, cases = measured()
    by_file: Counter[str] = Counter()
    functions: dict[str, list[str]] = defaultdict(list)
    for name, seconds in cases.items():
        by_file[name.partition("::")[0]] += seconds
        functions[name.partition("[")[0]].append(name)
    print(f"| {whole:.0f} in all, {len(cases)} cases | processor s |\n|---|---:|")
    for file, seconds in by_file.most_common(25):
        print(f"| {file} | {seconds:.1f} |")
    if options.write:
        known = {line for line in LIST.read_text().splitlines() if line and not line.startswith("#")}
        more = [name for names in functions.values() for name in names[KEPT:]]
        long = {name for name in more if cases[name] > options.most and not name.startswith(WHOLE)}
        LIST.write_text(HEAD + "".join(f"{name}\n" for name in sorted(known | long)))


if __name__ == "__main__":
    main()
