"""Generators: what they promise, reproducibly."""

import numpy as np
import pytest
from refusals import one_line
from volume import for_each

from ddlopt.instances import generators
from ddlopt.instances.generators import kinds, options_of
from ddlopt.instances.workloads import JOBS
from ddlopt.models.errors import InstanceError, OptionError, UnknownNameError


def generate(kind, servers, degree, seed=0, **options):
    return generators.generate("topology", kind, seed, servers=servers, degree=degree, **options)


@for_each("kind", kinds("topology"))
def test_every_kind_is_reproducible_and_says_how(kind):
    instance = generate(kind, 12, 3, seed=7)
    assert instance == generate(kind, 12, 3, seed=7)
    assert (instance.servers, instance.degree, instance.optics) == (12, 3, "one_way")
    told = "TopoOpt's prototype" if kind in JOBS else f"generated: kind {kind}, servers 12, degree 3, seed 7"
    assert instance.source.startswith(told)
    assert instance.name.startswith(f"{kind}-n12-d3")


@pytest.mark.parametrize("kind", ["random", "permutation", "hybrid"])
def test_seeds_matter_and_are_recorded(kind):
    one, two = generate(kind, 9 if kind != "hybrid" else 8, 2, 1), generate(kind, 9 if kind != "hybrid" else 8, 2, 2)
    assert not np.array_equal(one.traffic_bytes, two.traffic_bytes)
    assert one.name.endswith("-s1")
    assert "seed 1" in one.source


def test_all_to_all_is_uniform():
    traffic = generate("all-to-all", 6, 2, bytes_per_pair=3.0).traffic_bytes
    assert np.array_equal(traffic, 3 * (1 - np.eye(6)))


def test_ring_and_permutation():
    ring = generate("ring", 5, 1, stride=2).traffic_bytes
    assert all(ring[i, (i + 2) % 5] == 1 for i in range(5))
    assert ring.sum() == 5
    for seed in range(20):
        traffic = generate("permutation", 5, 1, seed).traffic_bytes
        assert (traffic.sum(axis=0) == 1).all()
        assert (traffic.sum(axis=1) == 1).all()


@pytest.mark.parametrize(("density", "pairs"), [(1.0, 90), (0.5, 45), (0.001, 1)])
def test_density_is_the_part_of_the_pairs(density, pairs):
    traffic = generate("random", 10, 3, 4, density=density).traffic_bytes
    assert np.count_nonzero(traffic) == pairs
    assert np.array_equal(traffic, np.rint(traffic))


def test_random_has_the_moments_asked_for():
    amounts = generate("random", 60, 3, 5, mean_bytes=1e6, shape=4.0).traffic_bytes[~np.eye(60, dtype=bool)]
    assert amounts.mean() == pytest.approx(1e6, rel=0.05)
    assert amounts.std() == pytest.approx(1e6 / 2, rel=0.05)


def test_hybrid_groups_are_all_servers_and_the_cosets():
    groups = generate("hybrid", 12, 4, 1, group_size=4, gradient_bytes=8.0, group_gradient_bytes=2.0).allreduce_groups
    assert [group.members for group in groups] == [tuple(range(12)), (0, 3, 6, 9), (1, 4, 7, 10), (2, 5, 8, 11)]
    assert [group.gradient_bytes for group in groups] == [8.0, 2.0, 2.0, 2.0]


def test_fields_of_the_instance_can_be_given():
    instance = generate("dlrm", 12, 4, optics="duplex", overlap="full", compute_s=0.5, name="mine")
    assert (instance.optics, instance.overlap, instance.compute_s, instance.name) == ("duplex", "full", 0.5, "mine")
    assert generate("all-to-all", 6, 3, optics="duplex").name == "all-to-all-n6-d3-duplex"


def test_unknown_kind_lists_them():
    with pytest.raises(UnknownNameError, match="no kind of instance 'star'; there are: all-to-all, random, ring"):
        generate("star", 4, 2)
    with pytest.raises(UnknownNameError, match="no kind of instance 'star'"):
        options_of("topology", "star")


@for_each(
    ("error", "message", "arguments", "options"),
    [
        (InstanceError, "servers is 1; a topology needs at least 2", ("all-to-all", 1, 1), {}),
        (InstanceError, "servers is -3", ("random", -3, 1), {}),
        (InstanceError, "degree is 0, but 4 servers need a degree of 1..3", ("ring", 4, 0), {}),
        (InstanceError, "degree is 4, but 4 servers need a degree of 1..3", ("dlrm", 4, 4), {}),
        (InstanceError, r"traffic_bytes\[0\]\[1\] = -1 is negative", ("all-to-all", 4, 2), {"bytes_per_pair": -1.0}),
        (InstanceError, r"traffic_bytes\[0\]\[1\] = nan is not finite", ("ring", 4, 2), {"bytes_per_pair": np.nan}),
        (InstanceError, "optics: Input should be 'one_way' or 'duplex'", ("ring", 4, 2), {"optics": "both"}),
        (OptionError, "seed is -1; it must be a whole number of 0 to", ("random", 4, 2, -1), {}),
        (OptionError, "density is 0; the part of the pairs", ("random", 4, 2), {"density": 0}),
        (OptionError, "density is 1.5", ("random", 4, 2), {"density": 1.5}),
        (OptionError, "shape is -1.0; it must be positive", ("random", 4, 2), {"shape": -1.0}),
        (OptionError, "mean_bytes is inf", ("random", 4, 2), {"mean_bytes": np.inf}),
        (OptionError, "stride is 8, which leads each of 4 servers to itself; use 1..3", ("ring", 4, 2), {"stride": 8}),
        (OptionError, "group_size is 3, but equal groups of 8 servers", ("hybrid", 8, 2), {"group_size": 3}),
        (OptionError, "group_size is 1, but", ("hybrid", 8, 2), {"group_size": 1}),
        (
            OptionError,
            "kind 'ring' takes no option 'colour'; it takes: servers, degree, b",
            ("ring", 4, 2),
            {"colour": 1},
        ),
        (OptionError, "kind 'dlrm' takes no option 'density'", ("dlrm", 8, 2), {"density": 1}),
        (OptionError, "kind 'ring' takes no option 'servers_'", ("ring", 4, 2), {"servers_": 1}),
        (OptionError, "kind 'ring' takes no option 'jobs'", ("ring", 4, 2), {"jobs": 3}),
        (OptionError, "kind 'ring' of a topology instance needs servers and degree", ("ring", None, None), {}),
        (OptionError, "kind 'ring' of a topology instance needs degree", ("ring", 4, None), {}),
        (OptionError, r"servers is 4\.5; it must be a whole number", ("ring", 4.5, 2), {}),
        (OptionError, "degree is 'two'; it must be a whole number", ("ring", 4, "two"), {}),
        (OptionError, "density is 'high'; it must be a number", ("random", 4, 2), {"density": "high"}),
        (OptionError, "shape is None; it must be a number", ("random", 4, 2), {"shape": None}),
    ],
)
def test_bad_arguments_get_one_line(error, message, arguments, options):
    with one_line(error, match=message):
        generate(*arguments, **options)


def test_unknown_family():
    for call in (kinds, lambda name: options_of(name, "random"), lambda name: generators.generate(name, "random")):
        with pytest.raises(UnknownNameError, match="no family 'poetry'; there are: topology"):
            call("poetry")


def test_an_option_of_none_may_be_given_as_such():
    assert generate("hybrid", 8, 3, group_size=None) == generate("hybrid", 8, 3)
