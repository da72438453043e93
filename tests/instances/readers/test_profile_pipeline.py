"""Measured jobs as pipelines: by hand, and one line for bad input."""

import json
from pathlib import Path

import pytest
from refusals import one_line

import ddlopt
from ddlopt.instances.readers import convert
from ddlopt.models.errors import InstanceError, OptionError


def layer(name, forward, backward, given):
    return {"name": name, "kind": "Linear", "forward_s": forward, "backward_s": backward, "output_bytes": given}


def gradient(name, owner, shape, ready):
    return {"name": name, "layer": owner, "shape": shape, "ready_s": ready}


PROFILE = {
    "format": "ddlopt-profile/1",
    "model": "Tiny",
    "device": "cpu",
    "samples": 4,
    "forward_s": 1.0,
    "backward_s": 2.0,
    "layers": [
        layer("words", 0.0, 0.1, 400),
        layer("block.0.first", 0.2, 0.4, 800),
        layer("block.0.then", 0.2, 0.3, 200),
        layer("head", 0.1, 0.2, 100),
    ],
    "gradients": [
        gradient("head.weight", "head", [10, 20], 0.1),
        gradient("block.0.then.weight", "block.0.then", [5], 0.3),
        gradient("block.0.first.more", None, [7], 0.4),
        gradient("block.0.first.weight", "block.0.first", [2, 50], 0.5),
        gradient("words.weight", "words", [1000], 1.0),
    ],
    "unused": [],
}


def written(tmp_path, **changes):
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(PROFILE | changes), encoding="utf-8")
    return path


def read(path, **options):
    settings = {"global_batch": 16, "servers": 2, "gpus_per_server": 2, "memory_gigabytes": 1e-4}
    return convert(path, "profile-pipeline", **settings | options)


def test_modules_by_hand(tmp_path):
    found = read(written(tmp_path))
    assert [each.name for each in found.layers] == ["words", "block.0.first", "block.0.then", "head"]
    assert (found.devices, found.micro_batches, found.bandwidth_bytes_per_s) == (4, 4, 400e9 / 8 / 2)
    assert [(edge.maker, edge.user, edge.size_bytes) for edge in found.edges] == [(0, 1, 400), (1, 2, 800), (2, 3, 200)]
    (kept,) = found.layers[1].menus[0].options
    # Half of the time is between modules.
    assert kept.time_s == pytest.approx(0.2 * 1.0 / 0.5 + 0.4 * 2.0 / 1.0)
    assert (kept.kept_bytes, kept.fixed_bytes, kept.weight_bytes) == (800, 16 * 107, 4 * 107 / 2)
    assert sum(each.menus[0].options[0].time_s for each in found.layers) == pytest.approx(3.0)
    assert ddlopt.solve(found).status == "optimal"


def test_modules_of_one_block_are_a_layer(tmp_path):
    found = read(written(tmp_path), depth=2)
    assert [each.name for each in found.layers] == ["words", "block.0", "head"]
    kept, again = found.layers[1].menus[0].options
    assert (kept.name, again.name) == ("kept", "recomputed")
    assert (kept.kept_bytes, kept.fixed_bytes) == (1000, 16 * 112)
    assert (again.kept_bytes, again.fixed_bytes) == (200, 16 * 112 + 800)
    assert again.time_s == pytest.approx(kept.time_s + 0.4 * 1.0 / 0.5)
    assert [edge.size_bytes for edge in found.edges] == [400, 200]
    # The one thing that runs before and behind a block makes two layers.
    twice = [*PROFILE["layers"][1:], layer("block.0.late", 0.1, 0.1, 50)]
    assert [each.name for each in read(written(tmp_path, layers=twice), depth=2).layers] == [
        "block.0",
        "head",
        "block.0#2",
    ]


BAD = {
    "no outputs": ({"layers": [{**PROFILE["layers"][0], "output_bytes": None}]}, {}, InstanceError, "measure with"),
    "odd outputs": ({"layers": [layer("a", 0, 0, -1)]}, {}, InstanceError, "layers[0].output_bytes ('a') is -1"),
    "0 layers": ({"layers": []}, {}, InstanceError, "layers is empty"),
    "a part of a micro-batch": ({}, {"global_batch": 6}, OptionError, "no multiple of the 4 samples"),
    "no memory": ({}, {"memory_gigabytes": 0.0}, OptionError, "memory_gigabytes is 0"),
    "no devices": ({}, {"servers": 0}, OptionError, "servers is 0"),
    "no depth": ({}, {"depth": 0}, OptionError, "depth is 0"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_line(case, tmp_path):
    changes, options, error, told = BAD[case]
    with one_line(error, told):
        read(written(tmp_path, **changes), **options)


def test_a_file_of_an_old_script_says_what_to_do():
    with one_line(InstanceError, "layers[0].output_bytes ('0') is missing; measure with the script as it is now"):
        read(Path(__file__).parents[2] / "cases" / "profile.json")


def test_a_cluster_gives_devices(tmp_path):
    found = read(written(tmp_path), cluster="dgx-h100", servers=2)
    assert (found.devices, found.bandwidth_bytes_per_s) == (4, 50e9 * 4)
