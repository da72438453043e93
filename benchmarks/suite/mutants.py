"""Which changes of a file the default tests do not see: constants, comparisons, operators and indices, one at a time.

Each change is made in a copy of the package, and the default tests of the file's room run until the first failure. What
none of them fails on has survived: a bound, a checker or an ``evaluate`` of which that can be said is not tested there.
Numbers that steer a search or stand for a tolerance are module constants with a capital name, and are left alone, as
are the words of errors. Some changes change nothing (a ``<=`` where equality never happens): they survive too, and a
reader tells them apart.
"""

import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness import ROOT, Benchmark, Option

EVERYWHERE = "tests/models/test_no_bound_passes_a_solution.py::test_closed_forms_hold_for_the_best_known_solutions"
"""What holds every bound of a family against its library."""
COMPARED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
}  # fmt: skip
CALCULATED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
NAMED = {"min": "max", "max": "min", "any": "all", "all": "any", "floor": "ceil", "ceil": "floor"}


class Mutant(NamedTuple):
    """A changed file, the line of the change, and what became of what."""

    text: str
    line: int
    change: str


def mutants(text: str) -> Iterator[Mutant]:
    """Each of the changes of a file."""
    for number in range(len(list(_places(ast.parse(text))))):
        tree = ast.parse(text)
        node, key = list(_places(tree))[number]
        before = ast.unparse(node)
        _change(node, key)
        yield Mutant(ast.unparse(tree), node.lineno, f"{_short(before)} → {_short(ast.unparse(node))}")


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
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    yield node
    if isinstance(node, ast.FunctionDef):
        children: Sequence[ast.AST] = [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]
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


def tests_of(file: Path) -> list[str]:
    """The default tests of a file: those of its own name first, then of its room, then of a bound the library's."""
    room = ROOT / "tests" / file.parent
    while not room.is_dir():
        room = room.parent
    of_name = sorted(room.glob(f"test_{file.stem}*.py"))
    family = file.parts[1] if len(file.parts) > 2 else ""
    everywhere = [f"{EVERYWHERE}[True-{family}]"] if "bound" in file.stem and family else []
    return [str(each.relative_to(ROOT)) for each in (*of_name, room)] + everywhere


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
        cached = {"NUMBA_CACHE_DIR": str(self.kernels)} if "numba" in text or "kernel" in text else {}
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


def survivors(asked):
    """Mutants by file, and those that no test fails on."""
    for path in asked.paths:
        file = Path(path).resolve().relative_to(ROOT) if Path(path).is_absolute() else Path(path)
        text = (ROOT / file).read_text(encoding="utf-8")
        every = list(mutants(text))
        drawn = random.Random(asked.seed).sample(every, min(asked.most, len(every)))
        tests = asked.tests or tests_of(file)
        left = []
        with tempfile.TemporaryDirectory() as folder:
            changed = Copy(Path(folder), file)
            if changed.fails(text, tests, 10 * asked.seconds):
                yield f"{file}: tests fail, or take too long, before anything is changed: {' '.join(tests)}"
                continue
            for each in sorted(drawn, key=lambda mutant: mutant.line):
                if not changed.fails(each.text, tests, asked.seconds):
                    left.append(each)
        killed = len(drawn) - len(left)
        share = f"{killed / len(drawn):.0%}" if drawn else None
        yield {"file": str(file), "changes": len(every), "tried": len(drawn), "killed": killed, "share": share}
        for each in left:
            yield f"survives: line {each.line}: {each.change}"


BENCH = Benchmark(
    survivors,
    in_all=False,
    paths=Option([], "files of the package", ["models/aggregation/tree/bounds.py"], str, positional=True),
    most=Option(40, "changes of a file that are tried, drawn", quick=2),
    seed=Option(0, "of the draw"),
    seconds=Option(120.0, "for the tests of one change; a change that makes them take longer is seen"),
    tests=Option([], "files or folders of tests, in place of those of the room", type=str),
)
