"""Rows of rings: all that fits into a slot keeps to them, and on racks they say what fits."""

import itertools

import numpy as np
import pytest
from scheduling_brute_force import _actions, random_instance
from volume import for_each

from ddlopt import load
from ddlopt.certificates.scheduling.ring_rows import ring_rows
from ddlopt.models.scheduling.network import Network

SHAPES = (("star", (2, 2)), ("mesh", (2, 1, 1)), ("tree", (2, 1, 2, 1)), ("star", (3, 2)), ("tree", (1, 2, 1)))


@for_each("seed", range(60))
def test_whatever_fits_keeps_to_them(seed):
    network, places = SHAPES[seed % len(SHAPES)]
    rng = np.random.default_rng(seed)
    instance = random_instance(
        rng, jobs=3, slots=1, places=places, network=network, pollux=seed % 4 == 0, arrivals=False
    )
    rows = ring_rows(instance)
    for chosen, _, _ in _actions(instance, 0):
        widths = [each.width if each else 0 for each in chosen]
        for row in rows:
            assert sum(row.units[job, width] for job, width in enumerate(widths)) <= row.capacity
    for row in rows:
        assert (np.diff(row.units, axis=1) >= 0).all()
        assert row.units.max() <= row.capacity


def test_racks_of_two_servers_that_a_ring_each_leaves():
    """Four racks of two servers with two places: counted by hand for each width."""
    instance = load("scheduling/leaf-spine-j20-t10-s8")
    servers, racks = ring_rows(instance)
    assert servers.capacity == 8
    assert racks.capacity == 4
    assert (servers.units == [0, 0, 1, 2, 2, 3, 3, 4, 4]).all()  # a server each, and more than two across servers
    assert (racks.units == [0, 0, 0, 1, 1, 2, 2, 2, 2]).all()  # three take both servers' links; five take two racks

    def fits(*widths):
        return all(sum(row.units[0, width] for width in widths) <= row.capacity for row in (servers, racks))

    assert fits(6, 6, 2, 2)
    assert fits(4, 4, 4, 4)
    assert not fits(6, 6, 3)
    assert not fits(5, 5, 5)
    assert not fits(3, 3, 3, 3, 3)


@pytest.mark.parametrize("change", [{"network": None}, {"bandwidth": "shared"}])
def test_without_reserved_bandwidth_there_are_none(change):
    assert ring_rows(load("scheduling/leaf-spine-j20-t10-s8").model_copy(update=change)) == []


def test_workers_that_take_different_amounts_have_none():
    for seed in range(5):
        instance = random_instance(np.random.default_rng(seed), uneven=True, places=(2, 2), network="star")
        alike = len({tuple(row) for row in instance.demand.tolist()}) == 1
        assert alike or ring_rows(instance) == []


def test_links_in_parallel_let_more_rings_out():
    instance = load("scheduling/leaf-spine-j20-t10-s8")
    network = instance.network
    twice = Network(switches=network.switches, links=tuple(itertools.chain(network.links, network.links[:8])))
    (racks,) = ring_rows(instance.model_copy(update={"network": twice}))
    assert racks.capacity == 4  # of servers' two places both may be in rings, so that no row is of them
    assert (racks.units == [0, 0, 0, 0, 1, 2, 2, 2, 2]).all()
