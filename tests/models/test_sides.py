"""Figures that rules say are known to the tests: in a table that every violation is held against."""

import ast

import pytest
from doc_blocks import ROOT
from sides import SIDES

from ddlopt.models.contracts import Violation

MAKERS = {"Violation", "_fail"}


def _called(function):
    return getattr(function, "id", getattr(function, "attr", ""))


def said():
    """Rules, with the sides that they say."""
    for file in sorted((ROOT / "models").rglob("*.py")):
        text = file.read_text(encoding="utf-8")
        for call in ast.walk(ast.parse(text)) if any(f"{name}(" in text for name in MAKERS) else ():
            if isinstance(call, ast.Call) and _called(call.func) in MAKERS and len(call.args) == 4:
                rule, _, *sides = (getattr(each, "value", None) for each in call.args)
                if isinstance(rule, str) and any(isinstance(each, int) for each in sides):
                    yield rule


def test_what_is_in_the_table_is_said_somewhere():
    """What somebody adds may be tested beside the rule, or here."""
    assert set(SIDES) <= set(said())


def test_another_side_is_noticed():
    assert Violation("runs have ranks", "places[0]", 0, 1).rhs == 1
    with pytest.raises(AssertionError, match="0 against 2"):
        Violation("runs have ranks", "places[0]", 0, 2)
