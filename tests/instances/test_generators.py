"""Generators: what they promise, reproducibly."""

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances import generators
from ddlopt.instances.generators import kinds, options_of
from ddlopt.instances.workloads import JOBS
from ddlopt.models.catalogue import FAMILY_NAMES
from ddlopt.models.errors import UnknownNameError


def generate(kind, servers, degree, seed=0, **options):
    return generators.generate("topology", kind, seed, servers=servers, degree=degree, **options)


MEASURED = ("measured", "levels-measured", "exchange-digits")
"""Kinds that train a network; tests of their own make them again."""
KINDS = [(family, kind) for family in FAMILY_NAMES for kind in kinds(family) if kind not in MEASURED]
SIZES = {"topology": {"servers": 12, "degree": 3}}
ALIKE = {
    *("topology all-to-all", "topology ring", "topology collective", *(f"topology {job}" for job in JOBS)),
    *(
        "scheduling departures",
        "scheduling caps",
        "compression sfb-network",
        "compression forward-network",
        "compression network",
        "codesign job",
    ),
    *("deployment network", "deployment microbatches", "aggregation table", "gossip period", "gossip circulant"),
}
"""Kinds that have nothing random, or only if they are asked for it."""


@for_each(("family", "kind"), KINDS)
def test_every_kind_is_reproducible_and_says_how(family, kind):
    size = {} if kind == "collective" else SIZES.get(family, {})
    instance = generators.generate(family, kind, 7, **size)
    assert instance == generators.generate(family, kind, 7, **size)
    assert type(instance).from_json(instance.to_json()) == instance
    if kind not in JOBS:
        told = options_of(family, kind) | size
        assert instance.source.startswith(f"generated: kind {kind}, ")
        assert "seed 7" in instance.source
        assert all(f"{name} {value}" in instance.source for name, value in told.items() if value is not None)
    one, other = (
        generators.generate(family, kind, seed, **size).model_dump(mode="json", exclude={"name", "source"})
        for seed in (7, 8)
    )
    assert (one == other) == (f"{family} {kind}" in ALIKE)


def test_names_tell_kind_size_and_seed():
    assert generate("random", 12, 3, seed=7).name == "random-n12-d3-s7"
    assert generate("bert", 12, 3).name == "bert-n12-d3"
    assert generate("bert", 12, 3).source.startswith("TopoOpt's prototype")
    assert generators.generate("scheduling", "elastic", 7).name.startswith("elastic-")


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


def test_unknown_family():
    for call in (kinds, lambda name: options_of(name, "random"), lambda name: generators.generate(name, "random")):
        with pytest.raises(UnknownNameError, match="no family 'poetry'; there are: topology"):
            call("poetry")


def test_an_option_of_none_may_be_given_as_such():
    assert generate("hybrid", 8, 3, group_size=None) == generate("hybrid", 8, 3)
