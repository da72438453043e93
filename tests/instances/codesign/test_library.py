"""The bundled co-design instances: all that were asked for, and the features of the tiny ones."""

import pytest

from ddlopt.instances import load, names
from ddlopt.models.codesign import job_of
from ddlopt.models.codesign.tables import tables_of

TINY = tuple(name for name in names("codesign") if name.startswith("codesign/tiny-"))


def test_what_the_library_must_hold():
    jobs = ("dlrm", "bert", "candle", "ncf", "resnet50", "vgg16")
    sizes = ("n12-d4", "n16-d4", "n32-d4", "n64-d4", "n128-d4", "n128-d8")
    wanted = {f"codesign/{job}-{size}" for job in jobs for size in sizes}
    assert set(names("codesign")) == wanted | set(TINY)
    assert len(TINY) == 7


def test_links_are_those_of_the_clusters():
    for job in ("vgg16", "ncf"):
        assert load(f"codesign/{job}-n12-d4").link_bandwidth_bytes_per_s == 25e9 / 8
        assert load(f"codesign/{job}-n128-d8").link_bandwidth_bytes_per_s == 100e9 / 8
        assert load(f"codesign/{job}-n128-d8").degree == 8


def test_a_bare_name_is_still_the_topology_instance():
    assert load("dlrm-n12-d4").family == "topology"
    assert load("codesign/dlrm-n12-d4").family == "codesign"


def test_the_tables_of_the_example_may_be_anywhere():
    example = load("codesign/dlrm-n12-d4")
    tables = [layer for layer in example.layers if layer.name.startswith("table")]
    assert len(tables) == 16
    assert len({layer.model_copy(update={"name": ""}) for layer in tables}) == 1
    assert {f"whole-{server}" for server in range(12)} < {each.name for each in tables[0].strategies}


def test_tiny_instances_have_every_feature():
    tiny = [load(name) for name in TINY]
    assert {(each.optics, each.overlap) for each in tiny} >= {
        ("duplex", "none"),
        ("one_way", "full"),
        ("one_way", "none"),
    }
    assert {each.parallel_links for each in tiny} == {True, False}
    strategies = [strategy for each in tiny for layer in each.layers for strategy in layer.strategies]
    assert (
        {bool(each.traffic) for each in strategies} == {each.measured_s is None for each in strategies} == {True, False}
    )
    kinds = {each.name.split("-")[0] for each in strategies}
    assert kinds >= {"data", "column", "row", "sliced", "owner", "whole", "columns", "rows", "replicated"}
    cosets = {groups for each in tiny for groups in each.group_sets if len(groups) > 1 and groups[0] != (0, 1)}
    assert ((0, 2, 4), (1, 3, 5)) in cosets
    assert max(len(each.layers) for each in tiny) <= 8


@pytest.mark.parametrize("name", ["tiny-memory-n4-d2", "tiny-drawn-n5-d2"])
def test_memory_binds(name):
    instance = load(f"codesign/{name}")
    tables = tables_of(instance)
    largest = [int(memory.argmax()) for memory in tables.memory_bytes]
    leanest = [int(memory.argmin()) for memory in tables.memory_bytes]
    assert not tables.fits(largest)
    assert tables.fits(leanest)
    assert job_of(instance, leanest) is not None
