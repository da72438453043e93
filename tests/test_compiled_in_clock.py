"""Nothing is compiled or loaded within a clock, and a first solve answers as all later ones do."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ddlopt.models.catalogue import FAMILY_NAMES

SCRIPT = Path(__file__).parent / "helpers" / "compiled_in_clock.py"
PART = 0.5
"""Of the time limit: what took longer may have been cut off by it."""


def solves(family, cache):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache)}
    run = subprocess.run([sys.executable, SCRIPT, family], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
    lines = map(json.loads, run.stdout.splitlines())
    return {(line["problem"], line["method"]): line for line in lines}, run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILY_NAMES)
def test_first_solves_are_like_later_ones(family, tmp_path):
    """Every method on a small instance, with an empty cache and then with a full one."""
    first, _ = solves(family, tmp_path)
    later, told = solves(family, tmp_path)
    assert "compiling" not in told
    assert first.keys() == later.keys() != set()
    late = {pair: line["late"] for pair, line in (*first.items(), *later.items()) if line["late"]}
    assert late == {}
    failed = {pair: line["error"] for pair, line in (*first.items(), *later.items()) if "error" in line}
    assert failed == {}
    for pair, line in first.items():
        whole = all(each.get("runtime_s", 0) < PART * 4 for each in (line, later[pair]))
        if whole:
            assert (line.get("status"), line.get("objective")) == (
                later[pair].get("status"),
                later[pair].get("objective"),
            )
