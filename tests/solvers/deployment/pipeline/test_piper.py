"""The values that Piper's released code finds, on its own inputs, proven."""

import pytest
from shared_data import shared_data

import ddlopt
from ddlopt.instances.readers import convert

PUBLISHED = [(8, 8, 0.16585575), (32, 8, 0.0415154504417), (64, 2, 0.0320300812349)]
"""Devices, memory in GiB, and seconds a sample; 1920 samples, 25 GiB/s."""


UNLIKE = [("resnet", 8, 8, 63.4335366048352), ("resnet", 128, 1, 19.8563285510133), ("gnmt", 8, 1.2, 68.5655639757663)]
"""The same of networks with many unlike layers, and with 17 914 ideals; as many samples as their files say."""


@pytest.mark.slow
@pytest.mark.parametrize(("devices", "memory", "value"), PUBLISHED)
def test_published_values_are_optimal(devices, memory, value):
    settings = {"micro_batches": 1920, "bandwidth_gib_per_s": 25}
    path = shared_data("piper/bert32a100.json")
    found = ddlopt.solve(convert(path, "piper", devices=devices, memory_gib=memory, **settings), gap=0)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(value, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "devices", "memory", "value"), UNLIKE)
def test_unlike_layers_and_many_ideals_are_proven(name, devices, memory, value):
    path = shared_data(f"piper/{name}.json")
    found = ddlopt.solve(convert(path, "piper", devices=devices, memory_gib=memory, bandwidth_gib_per_s=25), gap=0)
    assert found.status == "optimal"
    assert found.objective == pytest.approx(value, rel=1e-9)
