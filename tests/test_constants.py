"""Constants say why they have their value: tolerances wherever they stand, and all numbers at module level."""

import ast
import contextlib
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
BESIDE = re.compile(r"[^'\"#]*#")
"""A line with a comment, whatever comes before it: quotes could have the sign in them."""


class Explained:
    """Which statements of a file have a comment on their lines or just above, or a text just below."""

    def __init__(self, text):
        self.lines = ["", *text.split("\n")]

    def above(self, line):
        """Whether a comment of its own is above a line."""
        return self.lines[line - 1].lstrip().startswith("#")

    def beside(self, first, last):
        """The lines with a comment from the first one of a statement to another one; it may go on after that."""
        text, found = "\n".join(self.lines[first : last + 1]), set()
        if "#" in text:
            with contextlib.suppress(tokenize.TokenError):
                for token in tokenize.generate_tokens(io.StringIO(text).readline):
                    if token.type == tokenize.COMMENT:
                        found.add(first - 1 + token.start[0])
        return found

    def at_a_glance(self, found):
        """Whether all that was found in the text is on lines with a comment, or below one."""
        lines = [found.string.count("\n", 0, found.start()) + 1 for found in found]
        return all(self.above(line) or BESIDE.match(self.lines[line]) for line in lines)


def documented(statements):
    """Statements with a text just below."""
    return {one for one, other in pairwise(statements) if is_text(other)}


def is_text(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def small_floats(node, lines, statement=None, told=False):
    """Small floats on these lines, with the statements that they are in, and whether a text is below."""
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and 0 < node.value <= LARGEST_TOLERANCE:
        yield node, statement, told
    below = documented(getattr(node, "body", None)) if isinstance(getattr(node, "body", None), list) else ()
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            first = min((each.lineno for each in getattr(child, "decorator_list", ())), default=child.lineno)
            if any(first <= line <= child.end_lineno for line in lines):
                yield from small_floats(child, lines, child, child in below)
        else:
            yield from small_floats(child, lines, statement, told)


def bare_tolerances(text, tree=None):
    """Lines with a small float that nothing explains."""
    file = Explained(text)
    lines = [line for line, words in enumerate(file.lines) if SMALL.search(words)]
    return [
        node.lineno
        for node, statement, told in small_floats(tree or ast.parse(text), lines)
        if not (told or file.above(statement.lineno) or file.above(node.lineno))
        and node.lineno not in file.beside(min(statement.lineno, node.lineno), node.lineno)
    ]


def bare_constants(text, tree=None):
    """Lines of numbers at module level, and tuples of numbers, that nothing explains."""
    tree, file = tree or ast.parse(text), Explained(text)
    told = documented(tree.body)
    return [
        node.lineno
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and is_numeric(node.value)
        and not (node in told or file.above(node.lineno) or file.beside(node.lineno, node.end_lineno))
    ]


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
        read = Explained(text)
        # Most numbers say why on their line: only the others are worth a look at the code.
        small = [] if file == TOLERANCES else [*SMALL.finditer(text)]
        named = [*AT_MODULE_LEVEL.finditer(text)]
        if read.at_a_glance(small) and read.at_a_glance(named):
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
