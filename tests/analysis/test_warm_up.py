"""A module that cannot be compiled is named in one line, whatever it does to the process that tries."""

import pytest

from ddlopt.analysis.warm_up import kernel_modules, warm_up
from ddlopt.models import plugins
from ddlopt.models.errors import SolverError

HEAD = """
import sys
import os
from ddlopt.models.kernels import kernel

print("noise" * 50_000)
print("noise" * 50_000, file=sys.stderr)
{first}

@kernel("(i8,)")
def answer(value):
    {body}
"""
IN_A_COMPILER = "if 'pytest' not in sys.modules:\n    {statement}"


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Makes a module of kernels of a name of its own, which this process and its children find."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))

    def made(name, first="", body="return value + 1"):
        (tmp_path / f"{name}.py").write_text(HEAD.format(first=first, body=body))
        return name

    return made


def test_modules_may_print(module):
    told = []
    assert warm_up([module("talks"), module("talks_too")], 1, tell_nobody, told.append) == 2
    assert told == ["1 of 2: talks", "2 of 2: talks_too"] or told == ["1 of 2: talks_too", "2 of 2: talks"]


def test_what_cannot_be_compiled_is_named(module):
    with pytest.raises(SolverError, match=r"the kernels of untyped cannot be compiled: TypingError") as refused:
        warm_up([module("untyped", body="return no_such_thing(value)"), module("typed")], 1, tell_nobody)
    assert "\n" not in str(refused.value)


def test_a_compiler_that_ends_is_told(module):
    ends = module("ends", IN_A_COMPILER.format(statement="os._exit(7)"))
    with pytest.raises(SolverError, match="kernels of ends cannot be compiled: the compiler ended with exit code 7"):
        warm_up([ends], 1, tell_nobody)


def test_everything_is_what_any_method_needs(monkeypatch):
    found = set(kernel_modules())
    assert set(kernel_modules(["topology/link-exchange"])) < found
    assert {name.split(".")[1] for name in found} == {"models", "certificates", "solvers", "frontier"}
    monkeypatch.setenv(plugins.HIDDEN, "1")
    assert set(kernel_modules()) == {name for name in found if not name.startswith("ddlopt.frontier.")}


def tell_nobody(_):
    """Takes a line."""
