"""How long quick commands take, each in processes of its own, from a warm disk.

Medians of wall-clock seconds, which count other work on the machine too, and of processor time, which does not, beside
the seconds that each may take on a quiet one. The last column is what is imported of the large libraries. Where the
processor time is above what is allowed the modules that cost most are told.
"""

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.harness import Benchmark, Option, command

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


def commands(asked):
    """A row for each command."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "solution.json"
        command(python(code_of(f"solve {TINY} --out {file}")))  # also compiles what is not compiled yet
        measured: dict[str, tuple[str, float | None]] = {"python": ("", None), "import ddlopt": ("import ddlopt", 0.2)}
        measured |= {f"ddlopt {line}": (code_of(line.replace("FILE", str(file))), s) for line, s in COMMANDS.items()}
        slow = {}
        for name, (code, allowed) in list(measured.items())[: asked.most]:
            runs = [command(python(code)) for _ in range(asked.repeat)]
            wall_s, cpu_s = (statistics.median(getattr(run, of) for run in runs) for of in ("wall_s", "processor_s"))
            yield {"command": name, "seconds": f"{wall_s:.3f}", "CPU s": f"{cpu_s:.3f}", "allowed": allowed,
                   "imports": imported(code)}  # fmt: skip
            if allowed is not None and cpu_s > allowed:
                slow[name] = code
        for name, code in slow.items():
            yield f"{name}: modules by their own import time"
            yield from slowest_imports(code)


def code_of(line: str) -> str:
    """Python that runs a command line and tells what it imported."""
    return RUN.format(line.split(), TELL.format(HEAVY))


def python(code: str) -> list[str]:
    """The command that runs it."""
    return [sys.executable, "-I", "-c", code]


def imported(code: str) -> str:
    """The large libraries that are loaded at the end."""
    done = subprocess.run(python(code), capture_output=True, text=True, check=True)
    told = next((line for line in done.stderr.splitlines() if line.startswith("loaded")), "")
    return told.removeprefix("loaded").strip()


def slowest_imports(code: str) -> list[dict[str, object]]:
    """Rows on the modules that cost most by themselves."""
    command = [sys.executable, "-I", "-X", "importtime", "-c", code]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    parts = [line.removeprefix("import time:").split("|") for line in lines if line.count("|") == 2]
    costs = [(int(own), name.strip()) for own, _, name in parts if own.strip().isdigit()]
    return [{"module": name, "s": f"{own / 1e6:.3f}"} for own, name in sorted(costs, reverse=True)[:SHOWN]]


BENCH = Benchmark(
    commands,
    repeat=Option(9, "processes of each kind", quick=1),
    most=Option(100, "how many commands", quick=4),
)
