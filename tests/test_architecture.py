"""Rules of the house that a tool does not know; import arrows are import-linter's (`make arrows`)."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("ddlopt", "models", "certificates", "solvers", "instances", "analysis", "frontier")
SOURCES = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))
LONGEST_FILE = 430


IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)|import[ \t]+([^\n#]+))", re.MULTILINE
)
"""Also of an example in a docstring. Parsing all files takes thirty times as long."""
COMMENT = re.compile(r"#[^\n]*")


def imports_of(file):
    """What a file imports, wherever in it: a module, and a name in it; None where it is imported as a whole."""
    for module, names, modules in IMPORT.findall(file.read_text(encoding="utf-8")):
        for each in (COMMENT.sub("", names).strip("() \n") or modules).split(","):
            if each.strip():
                yield (module, each.split()[0]) if module else (each.split()[0], None)


def test_imports_are_found_wherever_they_are(tmp_path):
    file = tmp_path / "some.py"
    file.write_text(
        "import a, b.c as d  # e\nfrom . import f\n"
        "if g:\n    from h.i import (\n        j,  # k, l\n        m as n,\n    )\n"
    )
    assert list(imports_of(file)) == [("a", None), ("b.c", None), (".", "f"), ("h.i", "j"), ("h.i", "m")]
    for source in SOURCES[:: len(SOURCES) // 40]:
        parsed = set()
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                parsed |= {(each.name, None) for each in node.names}
            elif isinstance(node, ast.ImportFrom):
                parsed |= {(node.module, each.name) for each in node.names}
        assert parsed <= set(imports_of(source)), source


def test_imports_are_written_from_ddlopt():
    wrong = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in SOURCES
        for name, _ in imports_of(file)
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


def name_of(file):
    """``models/gossip/weights/evaluate.py`` is ``ddlopt.models.gossip.weights.evaluate``."""
    parts = file.relative_to(ROOT).with_suffix("").parts
    parts = parts if parts[0] == "ddlopt" else ("ddlopt", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules_imported(file, known):
    """Modules of ours that a file imports, wherever in it; ``from package import module`` is the module."""
    for module, name in imports_of(file):
        if (found := full if (full := f"{module}.{name}") in known else module) in known:
            yield found


@pytest.fixture(scope="module")
def imports():
    """Who imports whom."""
    files = {name_of(file): file for file in SOURCES}
    arrows = nx.DiGraph()
    arrows.add_nodes_from(files)
    arrows.add_edges_from((name, other) for name, file in files.items() for other in modules_imported(file, files))
    assert arrows.has_edge("ddlopt.models.codesign.evaluate", "ddlopt.models.topology.evaluate")
    return arrows


def test_there_are_no_circles(imports):
    """Not even of imports within functions, or for types only."""
    assert [sorted(circle) for circle in nx.strongly_connected_components(imports) if len(circle) > 1] == []


CHECKED_WITH = {
    "aggregation.table": {"table.values"},  # functions of binary floats, correctly rounded
    "cluster.joint": {"catalogue", "jobs.evaluate"},  # a plan is checked by its problem, the schedule as one of jobs
    "codesign": {"topology.evaluate", "topology.instance"},  # a plan has a design, which is checked as one
    "compression.forward": {"lanes"},  # budgets
    "compression.levels": {"lanes"},  # what is sent, and when
    "compression.timeline": {"lanes"},
    "deployment.plan": {"plan.check", "plan.simulator.simulate"},  # the statement of the problem is the simulation
    "deployment.step": {"step.places"},  # which blocks, and which members of a group, are where: part of the statement
    "gossip.circulant": {"spectral.verified"},  # eigenvalues with proven bounds
    "gossip.matchings": {"spectral.verified"},
    "gossip.period": {"spectral.verified", "period.stragglers"},  # expected maxima, rounded to the proven side
    "gossip.weights": {"spectral.verified"},
    # Peaks of what overlaps; what is enough of a job, and how an objective counts, are part of the statement.
    "scheduling": {"scheduling.sweep", "scheduling.utility", "scheduling.fair_time", "scheduling.variants.goals"},
}
"""What a check imports besides instances, solutions, contracts and errors, by room."""

CHECKS = sorted(name_of(file) for file in (ROOT / "models").rglob("evaluate.py"))


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_knows_only_its_room(imports, check):
    room = check.removesuffix(".evaluate").removeprefix("ddlopt.models.")
    family = room.partition(".")[0]
    common = {
        "ddlopt.models.contracts",
        "ddlopt.models.errors",
        "ddlopt.models.tolerances",
        f"ddlopt.models.{family}.family",
    }
    usual = common | {f"ddlopt.models.{room}.{name}" for name in ("instance", "solution")}
    others = set(imports.successors(check)) - usual
    allowed = CHECKED_WITH.get(room, set())
    assert {other for other in others if not any(other.endswith(f".{each}") for each in allowed)} == set()
    assert len(others) == len(allowed), "an exception that is none any more"


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_shares_no_code_with_what_it_checks(imports, check):
    reached = nx.descendants(imports, check)
    assert {name for name in reached if ".formulations" in name or name.endswith(".bounds")} == set()
    helpers = {
        name for name in imports.successors(check) if name.endswith((".sweep", ".lanes", ".simulate", ".verified"))
    }
    users = {user for helper in helpers for user in imports.predecessors(helper)}
    assert {user for user in users if ".formulations" in user} == set()
