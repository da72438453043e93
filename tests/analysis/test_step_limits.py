"""What limits a step: the lines say what the independent check says, for every kind of limit."""

from pathlib import Path

import pytest

import ddlopt
from ddlopt import instances
from ddlopt.analysis.step_limits import explained
from ddlopt.cli import run
from ddlopt.instances import convert, generate
from ddlopt.instances.writers.layout import size
from ddlopt.models.compression import CompressionPlan

RECORDED = Path(__file__).parents[1] / "cases" / "profile.json"


def plan(instance, label):
    """All gradients with that compressor where there is it, else with none."""
    choices = []
    for gradient in instance.gradients:
        labels = [option.label for option in instance.menus[gradient.menu]]
        choices.append(labels.index(label) if label in labels else 0)
    return CompressionPlan(instance=instance.name, choices=tuple(choices))


def test_a_slow_network_limits_from_the_gradient_after_which_it_never_waits():
    """At a megabit a second a bias and the weight behind it take longer than what is left of the backward pass."""
    job = convert(RECORDED, "profile", nodes=2, gpus_per_node=1, network_gigabit_per_s=1e-3)
    limit, change, error = explained(job, plan(job, "none"))
    assert "limit: the network" in limit
    assert "without a pause since gradient '4.bias'; longest of these takes '4.weight', 4.194 s" in limit
    assert change.startswith("change: 0 of 8 gradients are compressed; ")
    assert change.endswith("0% less with it")
    assert error == "error: 0 of the energy of all gradients is lost"


def test_a_fast_network_leaves_computation_and_a_needless_loss_is_warned_of():
    job = convert(RECORDED, "profile", nodes=2, gpus_per_node=1, network_gigabit_per_s=100.0)
    limit, change, error = explained(job, plan(job, "dgc 1 %"))
    assert limit.startswith("limit: computation; the backward pass with compression takes 298.8 ms of 298.9 ms")
    assert "8 of 8 gradients are compressed (8 x dgc 1 %)" in change
    assert "more with it" in change
    assert "nothing limits it: training may not get over that; set error_budget_part" in error


def test_a_budget_is_told_and_nothing_is_warned_of():
    job = convert(RECORDED, "profile", nodes=2, gpus_per_node=1, error_budget_part=0.95)
    *_, error = explained(job, plan(job, "dgc 1 %"))
    assert error.endswith("of 0.95 allowed")


@pytest.mark.parametrize("name", ["topology/tiny-n4-d2", "topology/tiny-n5-d3-duplex", "codesign/tiny-overlap-n4-d2"])
def test_the_busiest_link_has_the_load_of_the_check(name):
    instance, solution = instances.load(name), instances.best(name)
    found = ddlopt.check(instance, solution)
    load = float(f"{float(found.details['max_link_load_bytes']):.4g}")
    assert f"({size(load)}, " in explained(instance, solution)[0]


def test_deployments_tell_the_busiest_resource():
    instance = generate("deployment", "random", groups=2, memory=100.0)
    found = ddlopt.solve(instance, "data-parallel")
    limit, memory = explained(instance, found.solution)
    busiest = max(found.details[key] for key in ("compute_s", "transfer_s", "collective_s"))
    assert f" {1e3 * busiest:.4g} ms of {1e3 * found.objective:.4g} ms" in limit
    assert memory.endswith("of what the fullest device has")


def test_other_problems_have_no_steps():
    assert explained(instances.load("gossip/matcha-n8-50"), instances.best("gossip/matcha-n8-50")) == []


def test_solve_tells_of_files_and_where_it_is_asked_to(tmp_path, capsys):
    path = tmp_path / "job.json"
    path.write_text(convert(RECORDED, "profile", nodes=2, gpus_per_node=1).to_json())
    for arguments, expected in (
        ([str(path)], True),
        ([str(path), "--no-explain"], False),
        (["topology/tiny-n4-d2"], False),
        (["topology/tiny-n4-d2", "--explain"], True),
    ):
        method = "espresso" if arguments[0] == str(path) else "topology-finder"
        assert run(["solve", *arguments, "--method", method]) == 0
        assert ("limit: " in capsys.readouterr().err) == expected
