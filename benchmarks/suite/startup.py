"""How long quick commands take, each in processes of its own, from a warm disk.

    python benchmarks/startup.py [--times 9]

Medians of wall-clock seconds, which count other work on the machine too, and of processor time, which does not, beside
the seconds that each may take on a quiet one. The last column is what is imported of the large libraries. Where the
processor time is above what is allowed the modules that cost most are printed.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TINY = "topology/tiny-n4-d2"
RUN = "import sys; from ddlopt.cli import run; code = run({}); {}sys.exit(code)"
TELL = "print('loaded', *(name for name in {} if name in sys.modules), file=sys.stderr); "
HEAVY = (
    "numpy",
    "pydantic",
    "scipy",
    "numba",
    "pyomo",
    "highspy",
    "networkx",
    "sympy",
    "cvxpy",
    "pandas",
    "matplotlib",
)
COMMANDS = {
    "--help": 0.3,
    "bench --help": 0.3,
    "list": 0.5,
    "list topology": 0.5,
    "list --open --json": 0.5,
    "list topology --methods": 0.5,
    "show topology/danoint": 1.0,
    "show aggregation/fat-tree-k8-congestion": 1.0,
    f"check {TINY} FILE": 1.0,
    f"solve {TINY}": 1.5,
}
"""Command lines, and the seconds that they may take."""
SHOWN = 12


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--times", type=int, default=9, help="processes of each kind")
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "solution.json"
        once(code_of(f"solve {TINY} --out {file}"))  # also compiles what is not compiled yet
        measured: dict[str, tuple[str, float | None]] = {"python": ("", None), "import ddlopt": ("import ddlopt", 0.2)}
        measured |= {f"ddlopt {line}": (code_of(line.replace("FILE", str(file))), s) for line, s in COMMANDS.items()}
        print(f"{'':45} {'seconds':>8} {'CPU s':>7} {'allowed':>8}  imports")
        slow = []
        for name, (code, allowed) in measured.items():
            wall_s, cpu_s = (statistics.median(each) for each in zip(*(once(code) for _ in range(times)), strict=True))
            limit = "" if allowed is None else f"{allowed:.1f}"
            print(f"{name:45} {wall_s:8.3f} {cpu_s:7.3f} {limit:>8}  {imported(code)}", flush=True)
            if allowed is not None and cpu_s > allowed:
                slow.append((name, code))
        for name, code in slow:
            print(f"\n{name}: modules by their own import time")
            print("".join(slowest_imports(code)))


def code_of(line: str) -> str:
    """Python that runs a command line and tells what it imported."""
    return RUN.format(line.split(), TELL.format(HEAVY))


def once(code: str) -> tuple[float, float]:
    """Wall-clock seconds and seconds of processor time of one process."""
    began = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-I", "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if status:
        raise SystemExit(f"python -c {code!r} failed")
    return time.perf_counter() - began, used.ru_utime + used.ru_stime


def imported(code: str) -> str:
    """The large libraries that are loaded at the end."""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    told = next((line for line in done.stderr.splitlines() if line.startswith("loaded")), "")
    return told.removeprefix("loaded").strip()


def slowest_imports(code: str) -> list[str]:
    """Lines on the modules that cost most by themselves."""
    command = [sys.executable, "-I", "-X", "importtime", "-c", code]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    parts = [line.removeprefix("import time:").split("|") for line in lines if line.count("|") == 2]
    costs = [(int(own), name.strip()) for own, _, name in parts if own.strip().isdigit()]
    return [f"{own / 1e6:8.3f} s  {name}\n" for own, name in sorted(costs, reverse=True)[:SHOWN]]


if __name__ == "__main__":
    main()
