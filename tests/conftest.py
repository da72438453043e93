"""Shared by all tests: the folder of helpers is importable, and only the installed package is."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parent))


@pytest.fixture
def call(capsys):
    """Exit code, standard output and standard error of a command line."""

    from ddlopt.cli import run

    def line(*arguments):
        code = run([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    return line
