"""Changes of a file: which are made, and which functions have them."""

import ast
import gc
from pathlib import Path

from benchmarks.suite import forks, mutants
from ddlopt.models.gossip.circulant import bounds

TEXT = '''\
LIMIT = 3

def least(values, most=LIMIT + 0):
    """Of some values."""
    if not values:
        raise ValueError(f"{1 + 1} values")
    return min(
        value * 2
        for value in values
        if value < 5
    )

@dataclass(frozen=True)
class Limit:
    value: int
'''


def test_what_computes_is_changed_and_words_and_named_numbers_are_not():
    told = {(each.line, each.change) for each in mutants.drawing(TEXT, 100, 0)[1]}
    assert {line for line, _ in told} == {3, 7, 8, 10}  # and not that of a decorator
    assert len(told) == mutants.drawing(TEXT, 1, 0)[0]
    assert (8, "`2` → `3`") in told
    assert (8, "`value * 2` → `value / 2`") in told
    assert (10, "`value < 5` → `value <= 5`") in told


def test_a_change_is_in_the_functions_around_it():
    before = compile(TEXT, "text", "exec")
    for each in mutants.drawing(TEXT, 100, 0)[1]:
        changed = forks._changed(before, compile(each.tree, "text", "exec"))
        names = {code.co_name for code in changed}
        # A default is worked out where the function is made, which is over when tests run.
        assert names == (set() if each.line == 3 else {"least", "<genexpr>"} if each.line > 7 else {"least"})


def test_lines_of_a_statement_are_those_without_the_statements_in_it():
    tree = ast.parse(TEXT)
    assert forks._same_statement(tree, 8) == {7, 8, 9, 10, 11}
    assert forks._same_statement(tree, 5) == {5}


def test_files_are_imported_as_whoever_uses_them_does():
    """A file that is imported under another name too is changed in a copy that no test calls."""
    files = {
        "ddlopt/api.py": "ddlopt.api",
        "ddlopt/cli/__init__.py": "ddlopt.cli",
        "models/units.py": "ddlopt.models.units",
    }
    assert {file: forks.module_of(forks.ROOT / file) for file in files} == files
    for file in files:
        assert all((forks.ROOT / test).exists() for test in mutants.tests_of(forks.ROOT / file))


def test_functions_are_found_that_are_frozen():
    """What compiles kernels freezes all objects, and a change that is put into no function is seen by no test."""
    file = Path(bounds.__file__).resolve()
    found = forks.Collected({file: []}, 1.0)
    gc.freeze()
    try:
        found._find()
    finally:
        gc.unfreeze()
    assert bounds.circulant_bound in found.functions[file]
