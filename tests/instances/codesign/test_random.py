"""Drawn co-design jobs: reproducible, feasible, and with every feature asked for."""

import itertools
from collections import Counter

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances import generate
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import InstanceError


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
