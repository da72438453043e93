"""Ports that are whole: servers of a class together are worth what each of them is by itself."""

import random

import pytest
from volume import for_each

import ddlopt
from ddlopt.frontier.codesign.formulations import whole_ports
from ddlopt.frontier.codesign.formulations.whole_ports import ServerClass, WholePorts, server_classes
from ddlopt.frontier.codesign.joint.joint import Joint
from ddlopt.models.codesign import CodesignInstance, job_of
from ddlopt.models.codesign.iteration_time import time_unit_s
from ddlopt.models.codesign.tables import tables_of
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import build_model

MOST_S = 1e3
"""More than any plan of these takes."""


def one_layer(servers, sets, reduced, traffic=()):
    """One layer with one strategy, which reduces in every set: groups of any sizes, servers in none."""
    strategy = {
        "name": "only",
        "writes": 0,
        "measured_s": 0.0,
        "reductions": [{"groups": q, "bytes": size} for q, size in enumerate(reduced)],
        "traffic": list(traffic),
    }
    return CodesignInstance.from_data(
        {
            "name": "any groups",
            "servers": servers,
            "degree": 2,
            "link_bandwidth_bytes_per_s": 1.0,
            "device": {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0},
            "layouts": [{"batch_parts": servers, "servers": list(range(servers))}],
            "group_sets": sets,
            "layers": [{"name": "layer", "strategies": [strategy]}],
        }
    )


def drawn(seed):
    """Pairs around a circle, other pairs, and groups of four and of two across: alike but for the last, if for that.

    Servers are renumbered at random, and every other time one more is in no group.
    """
    draw = random.Random(seed)
    sets = [[(0, 1), (2, 3), (4, 5), (6, 7)], [(1, 2), (3, 4), (5, 6), (0, 7)], [(0, 2, 4, 6), (1, 5), (3, 7)]]
    servers = 8 + seed % 2
    name = draw.sample(range(servers), servers)
    sets = [[sorted(name[s] for s in group) for group in groups] for groups in sets]
    return one_layer(servers, sets, [float(draw.randint(5, 9)) for _ in sets])


def optimum_s(instance, most_s=MOST_S):
    outcome = Highs().solve(build_model("codesign", WholePorts(most_s=most_s), instance), Limits(gap=1e-6))
    assert outcome.status is Status.OPTIMAL
    return outcome.objective * time_unit_s(instance)


def each_by_itself(tables, parallel_links):
    """The classes, taken apart, with the sizes of each server's own groups."""
    sets = tables.instance.group_sets
    return tuple(
        ServerClass((s,), one.kinds, {q: len(g) for q, groups in enumerate(sets) for g in groups if s in g})
        for one in server_classes(tables, parallel_links)
        for s in one.servers
    )


@for_each("seed", range(12))
def test_a_class_is_worth_its_servers(seed, monkeypatch):
    instance = drawn(seed)
    assert sorted(len(each.servers) for each in server_classes(tables_of(instance), parallel_links=True)) == [4, 4]
    together_s = optimum_s(instance)
    with monkeypatch.context() as patch:
        patch.setattr(whole_ports, "server_classes", each_by_itself)
        assert together_s == pytest.approx(optimum_s(instance), rel=1e-5)


def test_servers_whose_groups_are_of_two_sizes_are_of_two_classes():
    pairs = [[0, 1], [2, 3], [4, 5]]
    instance = one_layer(7, [pairs, [[0, 2, 4], [1, 3]]], [1.0, 1.0])
    classes = {each.servers: dict(each.sizes) for each in server_classes(tables_of(instance), parallel_links=True)}
    assert classes == {(0, 2, 4): {0: 2, 1: 3}, (1, 3): {0: 2, 1: 2}, (5,): {0: 2}}


def test_a_server_in_no_group_has_no_rows():
    instance = one_layer(5, [[[0, 1], [2, 3]]], [8.0], [(0, 4, 1.0)])
    result = Joint().solve(instance, Limits())
    assert result.status is Status.OPTIMAL
    assert optimum_s(instance) <= result.objective * (1 + 1e-6)


def test_sets_without_groups_have_no_ports():
    instance = one_layer(3, [[], []], [8.0, 1.0], [(0, 1, 1.0)])
    assert Joint().solve(instance, Limits()).objective == pytest.approx(0.5)
    assert optimum_s(instance) <= 0.5 * (1 + 1e-6)


def test_what_is_reduced_in_a_set_without_groups_is_no_job():
    instance = one_layer(3, [[], []], [8.0, 1.0])
    assert job_of(instance, (0,)) is None
    assert ddlopt.solve(instance, "joint").objective == 0
