"""Constants say why they have their value: tolerances wherever they stand, and all numbers at module level."""

import ast
import io
import re
import tokenize
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCES = sorted(
    file
    for room in ("ddlopt", "models", "certificates", "solvers", "instances", "analysis", "frontier")
    for file in (ROOT / room).rglob("*.py")
)
TOLERANCES = ROOT / "models" / "tolerances.py"
LARGEST_TOLERANCE = 1e-5
SMALL = re.compile(r"\de-\d|\.0000")
"""What is in the text of a file with such numbers."""
AT_MODULE_LEVEL = re.compile(r"^[A-Za-z_][^\n(=]*=\s*[-~+\w(]*\d", re.MULTILINE)
"""And of one that may give a number a name."""


class Explained:
    """Which statements of a file have a comment on their lines or just above, or a text just below."""

    def __init__(self, text, tree):
        self.beside, self.alone = set(), set()
        if "#" in text:
            for token in tokenize.generate_tokens(io.StringIO(text).readline):
                if token.type == tokenize.COMMENT:
                    self.beside.add(token.start[0])
                    if not token.line[: token.start[1]].strip():
                        self.alone.add(token.start[0])
        self.documented = set()
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                self.documented |= {one for one, other in pairwise(body) if is_text(other)}

    def statement(self, node):
        lines = range(node.lineno, node.end_lineno + 1)
        return node in self.documented or node.lineno - 1 in self.alone or any(line in self.beside for line in lines)

    def line(self, line):
        return line in self.beside or line - 1 in self.alone


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def small_floats(node, statement=None):
    """Small floats with the statements that they are in."""
    statement = node if isinstance(node, ast.stmt) else statement
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value <= LARGEST_TOLERANCE:
        yield node, statement
    for child in ast.iter_child_nodes(node):
        yield from small_floats(child, statement)


def bare_tolerances(text, tree=None):
    """Lines with a small float that nothing explains."""
    tree = tree or ast.parse(text)
    if not (small := list(small_floats(tree))):
        return []
    file = Explained(text, tree)
    return [
        node.lineno
        for node, statement in small
        if not (statement.lineno - 1 in file.alone or statement in file.documented or file.line(node.lineno))
    ]


def bare_constants(text, tree=None):
    """Lines of numbers at module level, and tuples of numbers, that nothing explains."""
    tree = tree or ast.parse(text)
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and is_numeric(node.value)]
    if not assigned:
        return []
    file = Explained(text, tree)
    return [node.lineno for node in assigned if not file.statement(node)]


def is_numeric(node):
    match node:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(operand=operand):
            return is_numeric(operand)
        case ast.BinOp(left=left, right=right):
            return is_numeric(left) and is_numeric(right)
        case ast.Tuple(elts=elements):
            return any(map(is_numeric, elements))
    return False


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("if x < 1e-9:\n    pass", [1]),
        ("x = 1e-9 * y  # why", []),
        ("# why\nx = f(\n    1e-9,\n)", []),
        ("x = 1\n\nx = f(\n    1e-9,\n)", [4]),
        ("EPS = 1e-9\n'''Why.'''", []),
        ("x = 1  # other\nif x < 1e-9:\n    pass", [2]),
    ],
)
def test_what_a_bare_tolerance_is(text, bare):
    assert bare_tolerances(text) == bare


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ("A = 3", [1]),
        ("A, B = -3, 1 << 4", [1]),
        ("A = 3  # why", []),
        ("# why\nA = 3", []),
        ("A = 3\n'''Why.'''", []),
        ("A = True\nB = 'text'\nC = f(3)", []),
        ("def f():\n    a = 3", []),
    ],
)
def test_what_a_bare_constant_is(text, bare):
    assert bare_constants(text) == bare


@pytest.fixture(scope="module")
def bare():
    """What nothing explains, in all sources: tolerances, numbers at module level."""
    tolerances, numbers = [], []
    for file in SOURCES:
        text = file.read_text(encoding="utf-8")
        small = file != TOLERANCES and SMALL.search(text)
        if not small and not AT_MODULE_LEVEL.search(text):
            continue
        tree = ast.parse(text)
        name = file.relative_to(ROOT).as_posix()
        numbers += [f"{name}:{line}" for line in bare_constants(text, tree)]
        if small:
            tolerances += [f"{name}:{line}" for line in bare_tolerances(text, tree)]
    return tolerances, numbers


def test_tolerances_are_shared_or_explained(bare):
    """Use a name of ``ddlopt.models.tolerances``, or say beside it why this one differs."""
    assert bare[0] == []


def test_numbers_at_module_level_are_explained(bare):
    assert bare[1] == []
