"""Figures that are told as fractions: the bandwidth of a collective, by ``solve`` and by ``check --exact``."""

import json
from fractions import Fraction

import pytest

from ddlopt.cli.shared.display import quantity


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("bandwidth_bytes_per_s", Fraction(10**9 * 1040, 3), "346.667 GB/s (2773.33 Gb/s), exactly 1040/3 GB/s"),
        ("link_bytes", Fraction(10**6, 3), "333.333 kB, exactly 1000/3 kB"),
        ("busy_s", Fraction(1, 3), "333.333 ms, exactly 1/3 s"),
        ("tax", Fraction(4, 3), "1.33333, exactly 4/3"),
        ("tax", Fraction(2), "2"),
        ("tax", Fraction(2**90 + 1, 3**50), "1724.4"),
    ],
)
def test_fractions_stand_beside_digits_where_they_are_short(name, value, told):
    assert quantity(name, value) == told


@pytest.mark.parametrize(
    ("options", "bandwidth"),
    [(["network=dgx-a100"], "2400/7"), (["network=dgx-a100", "boxes=2"], "1040/3"), (["network=mi250"], "2400/7")],
)
def test_the_best_bandwidth_is_told_as_a_fraction(call, tmp_path, options, bandwidth):
    file, plan = str(tmp_path / "gather.json"), str(tmp_path / "plan.json")
    settings = [part for option in options for part in ("--set", option)]
    call("generate", "topology", "--kind", "collective", *settings, "--set", "gigabytes=1", "-o", file)
    assert f"exactly {bandwidth} GB/s" in call("solve", file, "--out", plan)[1]
    assert f"exactly {bandwidth} GB/s" in call("check", file, plan, "--exact")[1]
    told = json.loads(call("solve", file, "--json")[1])["exact"]["bandwidth_bytes_per_s"]
    assert Fraction(told) == 10**9 * Fraction(bandwidth)
