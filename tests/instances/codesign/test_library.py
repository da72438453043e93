"""Co-design jobs that are bundled, and drawn ones: reproducible, feasible, and with every feature asked for."""

import itertools
from collections import Counter

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances import generate, load, names
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import job_of
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InstanceError

TINY = tuple(name for name in names("codesign") if name.startswith("codesign/tiny-"))


def test_what_the_library_must_hold():
    jobs = ("dlrm", "bert", "candle", "ncf", "resnet50", "vgg16")
    sizes = ("n12-d4", "n16-d4", "n32-d4", "n64-d4", "n128-d4", "n128-d8")
    wanted = {f"codesign/{job}-{size}" for job in jobs for size in sizes}
    duplex = {f"codesign/{job}-n{n}-d4-duplex" for job in ("bert", "dlrm", "ncf") for n in (16, 32, 128)}
    assert set(names("codesign")) == wanted | duplex | set(TINY) | {"codesign/vgg16-n16-d4-compressed"}
    assert all(load(name).optics == "duplex" for name in duplex)
    assert len(TINY) == 8


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
    assert {each.error_budget is None for each in tiny} == {each.error == 0 for each in strategies} == {True, False}


@pytest.mark.parametrize("name", ["tiny-memory-n4-d2", "tiny-drawn-n5-d2"])
def test_memory_binds(name):
    instance = load(f"codesign/{name}")
    tables = tables_of(instance)
    largest = [int(memory.argmax()) for memory in tables.memory_bytes]
    leanest = [int(memory.argmin()) for memory in tables.memory_bytes]
    assert not tables.fits(largest)
    assert tables.fits(leanest)
    assert job_of(instance, leanest) is not None


def drawn(seed, **options):
    return random_job(np.random.default_rng(seed), **options)


def choices(instance):
    return itertools.product(*(range(size) for size in tables_of(instance).sizes))


@for_each("seed", range(6))
def test_same_seed_same_job_and_some_plan_fits(seed):
    options = {"servers": (3, 4, 6)[seed % 3], "layers": 3, "memory_slack": 1.0, "traffic": 0.5, "measured": 0.5}
    job = drawn(seed, **options)
    assert job == drawn(seed, **options)
    assert job != drawn(seed + 1, **options)
    assert any(tables_of(job).fits(each) for each in choices(job))


def test_memory_binds_in_some_jobs():
    tight = [drawn(seed, layers=3, memory_slack=1.0) for seed in range(6)]
    assert any(not tables_of(job).fits(each) for job in tight for each in choices(job))


def test_every_feature_is_there_when_asked_for():
    jobs = [drawn(seed, servers=6, layers=6, traffic=0.5, measured=0.5) for seed in range(5)]
    strategies = [each for job in jobs for layer in job.layers for each in layer.strategies]
    assert (
        {bool(each.traffic) for each in strategies} == {each.measured_s is None for each in strategies} == {True, False}
    )
    assert {len(each.reductions) for each in strategies} == {0, 1, 2}
    assert {layer.convolution for job in jobs for layer in job.layers} == {True, False}
    shapes = {(layout.batch_parts, layout.channel_parts) for layout in jobs[0].layouts}
    assert shapes == {(6, 1), (3, 2), (2, 3), (1, 6), (2, 1), (3, 1), (1, 1)}
    assert ((0, 2, 4), (1, 3, 5)) in jobs[0].group_sets
    assert ((0, 2, 4),) in jobs[0].group_sets
    plain = drawn(0, servers=6, reduction=0, density=0)
    assert not plain.edges
    assert not any(each.traffic or each.reductions for layer in plain.layers for each in layer.strategies)


def test_options_reach_the_instance():
    job = generate("codesign", "random", 3, servers=5, optics="duplex", overlap="full", host_forwarding=False)
    assert (job.servers, job.optics, job.overlap, job.host_forwarding) == (5, "duplex", "full", False)
    assert "seed 3" in job.source


def test_twins_differ_in_name_alone():
    job = drawn(1, layers=4, twins=2, density=0.8)
    assert len(job.layers) == 6

    def around(place):
        return (
            {source for source, target in job.edges if target == place and source < 4},
            {target for source, target in job.edges if source == place and target < 4},
        )

    def like(place, other):
        return job.layers[place] == job.layers[other].model_copy(update={"name": job.layers[place].name})

    for twin in (4, 5):
        assert any(like(twin, model) and around(twin) == around(model) for model in range(4))
    assert Counter(layer.name for layer in job.layers).most_common(1)[0][1] == 1


def test_a_degree_too_large_is_refused_by_the_instance():
    with pytest.raises(InstanceError, match="degree is 4, but 4 servers have at most 3 neighbours"):
        drawn(0, degree=4)
