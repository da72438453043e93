"""Which changes of a file the default tests do not see: constants, comparisons, operators and indices, one at a time.

Each change is put into the functions of a process in which the tests of the file's room are collected, and those that
come to its line run until the first failure. What is outside of functions, and kernels, are changed in a copy of the
package, and all tests of the room run anew. What none of them fails on has survived: a bound, a checker or an
``evaluate`` of which that can be said is not tested there. Numbers that steer a search or stand for a tolerance are
module constants with a capital name, and are left alone, as are the words of errors. Some changes change nothing (a
``<=`` where equality never happens): they survive too, and a reader tells them apart.
"""

import ast
import copy
import functools
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import ROOT, Benchmark, Option
from benchmarks.suite import forks

EVERYWHERE = "tests/models/test_no_bound_passes_a_solution.py::test_closed_forms_hold_for_the_best_known_solutions"
"""What holds every bound of a family against its library."""
FRONT_DOOR = ("tests/test_api.py", "tests/cli")
KERNELS = "from ddlopt.models.kernels import"
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
CALCULATED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
STYLES = {"strict", "copy", "check"}
"""Arguments that look for errors of the programmer, or save time."""
NAMED = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}


class Mutant(NamedTuple):
    """A changed file, the line of the change, and what became of what."""

    tree: ast.Module
    line: int
    change: str


def drawing(text: str, most: int, seed: int) -> tuple[int, list[Mutant]]:
    """How many changes a file has, and some of them, drawn, by line."""
    count = sum(1 for _ in _places(ast.parse(text)))
    chosen = random.Random(seed).sample(range(count), min(most, count))
    return count, sorted((_mutant(text, number) for number in chosen), key=lambda mutant: mutant.line)


def _mutant(text: str, number: int) -> Mutant:
    """One of the changes of a file."""
    tree = ast.parse(text)
    node, key = list(_places(tree))[number]
    before = ast.unparse(node)
    _change(node, key)
    return Mutant(tree, node.lineno, f"{_short(before)} → {_short(ast.unparse(node))}")


def _places(tree: ast.AST) -> Iterator[tuple[ast.expr, int]]:
    """What may be changed: a node, and which of its operators."""
    for node in _computing(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            yield node, 0
        elif isinstance(node, ast.Compare):
            yield from ((node, key) for key, op in enumerate(node.ops) if type(op) in COMPARED)
        elif isinstance(node, ast.BinOp):
            if type(node.op) in CALCULATED and not _is_text(node):
                yield node, 0
        elif isinstance(node, ast.Call) and _called(node) in NAMED:
            yield node, 0


def _computing(node: ast.AST) -> Iterator[ast.AST]:
    """Nodes outside of errors, assertions, annotations, text, decorators and named constants."""
    if isinstance(node, ast.keyword) and node.arg in STYLES:
        return
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    yield node
    if isinstance(node, ast.FunctionDef):
        children: Sequence[ast.AST] = [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]
    elif isinstance(node, ast.ClassDef):
        children = node.body
    elif isinstance(node, ast.AnnAssign):
        children = [] if node.value is None else [node.value]
    elif isinstance(node, ast.Module):
        children = [each for each in node.body if not isinstance(each, ast.Assign | ast.AnnAssign | ast.Expr)]
    else:
        children = list(ast.iter_child_nodes(node))
    for child in children:
        yield from _computing(child)


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(each, ast.JoinedStr) or isinstance(getattr(each, "value", None), str)
        for each in (node.left, node.right)
    )


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _change(node: ast.expr, key: int) -> None:
    if isinstance(node, ast.Constant):
        value = node.value
        node.value = (
            not value if isinstance(value, bool) else value + 1 if isinstance(value, int) else 1.5 * value or 0.5
        )
    elif isinstance(node, ast.Compare):
        node.ops[key] = COMPARED[type(node.ops[key])]()
    elif isinstance(node, ast.BinOp):
        node.op = CALCULATED[type(node.op)]()
    elif isinstance(node, ast.Call):
        func = copy.copy(node.func)
        setattr(func, "id" if isinstance(func, ast.Name) else "attr", NAMED[_called(node)])
        node.func = func


def _short(code: str, most: int = 60) -> str:
    return f"`{code if len(code) <= most else code[: most - 1] + '…'}`"


def files_of(path: Path) -> list[Path]:
    """A file, or the bounds, checks and ``evaluate`` in a folder."""
    if path.is_file():
        return [path]
    every = sorted(path.rglob("*.py"))
    if "certificates" in path.relative_to(ROOT).parts:
        return [each for each in every if each.name != "__init__.py"]
    return [each for each in every if each.name in ("bounds.py", "evaluate.py")]


def tests_of(file: Path) -> tuple[str, ...]:
    """The default tests of a file: of its room in the storeys that state, prove and solve; of a bound the library's."""
    storey, *rooms = file.relative_to(ROOT).parent.parts
    if storey == "ddlopt":
        return FRONT_DOOR
    found = []
    for each in dict.fromkeys((storey, "models", "certificates", "solvers")):
        room = ROOT / "tests" / each / "/".join(rooms)
        while each == storey and not room.is_dir():
            room = room.parent
        if room.is_dir():
            found.append(str(room.relative_to(ROOT)))
    return (*found, f"{EVERYWHERE}[True-{rooms[0]}]") if "bound" in file.stem and rooms else tuple(found)


class Copy:
    """The package with one storey copied, in which a file may be changed; the others are those of the repository."""

    def __init__(self, folder: Path, file: Path) -> None:
        package, storey = folder / "ddlopt", file.parts[0]
        shutil.copytree(ROOT / "ddlopt", package)
        for each in ("models", "certificates", "solvers", "instances", "frontier", "analysis"):
            if each == storey:
                shutil.copytree(ROOT / each, package / each)
            elif (ROOT / each).is_dir():
                (package / each).symlink_to(ROOT / each)
        self.file = package / file if storey != "ddlopt" else folder / file
        self.kernels = folder / "kernels"
        self.path = folder

    def fails(self, text: str, tests: Sequence[str], seconds: float) -> bool:
        """Whether some test fails, or takes for ever, with this text in the place of the file's."""
        self.file.write_text(text, encoding="utf-8")
        cached = {"NUMBA_CACHE_DIR": str(self.kernels)} if "kernel" in text else {}
        shutil.rmtree(self.kernels, ignore_errors=True)  # what was compiled with another mutant in it
        words = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", *tests]
        added = {"PYTHONPATH": str(self.path), "PYTHONDONTWRITEBYTECODE": "1", **cached}
        pytest = subprocess.Popen(
            [Path(sys.executable).parent / "pytest", *words],
            cwd=ROOT, env=os.environ | added, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            return pytest.wait(seconds) != 0
        except subprocess.TimeoutExpired:
            pytest.kill()
            pytest.wait()
            return True


def _apart(file: Path, changes: Sequence[Mutant], tests: Sequence[str], seconds: float) -> list[str]:
    """What becomes of changes that only a new process can have."""
    with tempfile.TemporaryDirectory() as folder:
        changed = Copy(Path(folder), file.relative_to(ROOT))
        return [
            forks.KILLED if changed.fails(ast.unparse(each.tree), tests, seconds) else forks.SURVIVED
            for each in changes
        ]


def survivors(asked):
    """Mutants by file, and those that no test fails on."""
    drawn: dict[Path, list[Mutant]] = {}
    groups: dict[tuple[str, ...], list[Path]] = defaultdict(list)
    every = {}
    for file in dict.fromkeys(file for path in asked.paths for file in files_of(ROOT / path)):
        every[file], drawn[file] = drawing(file.read_text(encoding="utf-8"), asked.most, asked.seed)
        groups[tuple(asked.tests) or tests_of(file)].append(file)
    for tests, files in groups.items():
        # Kernels are compiled when they are first called, and not again: a change of one needs a new process.
        forked = {file: drawn[file] for file in files if KERNELS not in file.read_text(encoding="utf-8")}
        told = forks.in_fork(functools.partial(_forked, forked, tests, asked.seconds)) if forked else ({}, [])
        if told is None:
            yield f"{' '.join(tests)}: cannot be collected, or end before anything is changed"
            continue
        if told[1]:
            yield f"left out, failing before anything is changed: {' '.join(told[1])}"
        for file in files:
            fates = told[0].get(str(file), [forks.APART] * len(drawn[file]))
            apart = [each for each, fate in zip(drawn[file], fates, strict=True) if fate == forks.APART]
            later = iter(_apart(file, apart, tests, 10 * asked.seconds) if apart else [])
            fates = [next(later) if fate == forks.APART else fate for fate in fates]
            killed, tried = fates.count(forks.KILLED), len(fates)
            yield {
                "file": str(file.relative_to(ROOT)), "changes": every[file], "tried": tried, "killed": killed,
                "share": f"{killed / tried:.0%}" if tried else None,
            }  # fmt: skip
            for each, fate in zip(drawn[file], fates, strict=True):
                if fate != forks.KILLED:
                    yield f"{fate}: line {each.line}: {each.change}"


def _forked(files: dict[Path, list[Mutant]], tests: Sequence[str], seconds: float) -> Any:
    changes = {file: [(each.tree, each.line) for each in every] for file, every in files.items()}
    found, broken = forks.fates(changes, tests, seconds)
    return {str(file): fates for file, fates in found.items()}, broken


BENCH = Benchmark(
    survivors,
    in_all=False,
    paths=Option(
        [], "files of the package, and folders of bounds, checks and evaluate",
        ["models/aggregation/tree/bounds.py"], str, positional=True,
    ),
    most=Option(40, "changes of a file that are tried, drawn", quick=2),
    seed=Option(0, "of the draw"),
    seconds=Option(40.0, "processor seconds of the tests that a change must outlive, short tests first"),
    tests=Option([], "files or folders of tests, in place of those of the room", type=str),
)  # fmt: skip
