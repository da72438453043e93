"""Rules of the house that a tool does not know; import arrows are import-linter's (`make arrows`)."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("ddlopt", "models", "solvers", "instances", "analysis")
SOURCES = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
LONGEST_FILE = 430


def imported(file):
    """Names of the modules that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_imports_are_written_from_ddlopt():
    wrong = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in SOURCES
        for name in imported(file)
        if name.startswith(".") or name.split(".")[0] in ROOMS[1:]
    ]
    assert wrong == []


def test_what_is_compiled_is_declared():
    """Numba's own decorators would compile within a clock; ``preload`` of sweeps wakes the compiler up."""
    allowed = {ROOT / "models" / "kernels.py", ROOT / "analysis" / "bench" / "processes" / "preload.py"}
    compilers = {"njit", "jit", "vectorize", "guvectorize", "cfunc", "stencil", "jitclass"}
    used = {
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in set(SOURCES) - allowed
        if "numba" in (text := file.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if compilers & {getattr(node, "attr", ""), getattr(node, "id", ""), getattr(node, "name", "")}
        if isinstance(node, ast.Attribute | ast.Name | ast.alias)
    }
    assert used == set()


def test_a_file_can_be_held_in_mind():
    lengths = {file: len(file.read_text(encoding="utf-8").splitlines()) for file in SOURCES}
    assert len(lengths) > 500
    assert {file.as_posix(): lines for file, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_the_front_door_is_light():
    """``import ddlopt`` must not load anything heavy before it is asked for."""
    code = "import ddlopt, sys; assert ddlopt.__version__; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "pyomo", "pydantic", "matplotlib", "numba", "scipy", "sympy", "networkx", "typer", "rich"}
    assert {name.partition(".")[0] for name in run.stdout.split()} & heavy == set()


def test_the_help_loads_no_solver():
    code = "from ddlopt.cli import run; import sys; run(['--help']); print(*sys.modules)"
    run = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True)
    heavy = {"numpy", "pyomo", "pydantic", "matplotlib", "numba", "scipy", "sympy", "networkx", "highspy"}
    assert {name.partition(".")[0] for name in run.stdout.split()} & heavy == set()
