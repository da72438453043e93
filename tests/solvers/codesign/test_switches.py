"""Iteration times on switches against closed forms, enumeration, and each other."""

import itertools

import numpy as np
import pytest
from volume import for_each

from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.codesign import CodesignInstance
from ddlopt.models.codesign.evaluate import _job
from ddlopt.models.codesign.tables import tables_of
from ddlopt.models.errors import OptionError
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.codesign.switches import FatTree, IdealSwitch, OversubscribedFatTree
from ddlopt.solvers.contracts import Limits, Status

LIMITS = Limits(time_s=60, gap=1e-7)
PAIRS = OversubscribedFatTree(rack_servers=2, oversubscription=3.0)


def one_layer(strategies, servers=4, degree=2, **more):
    """A layer of the given strategies; links of 2 bytes/s; layouts: everybody, and each server alone."""
    layouts = [{"batch_parts": servers, "servers": list(range(servers))}]
    data = {
        "name": "one-layer",
        "servers": servers,
        "degree": degree,
        "link_bandwidth_bytes_per_s": 2.0,
        "device": {"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0},
        "layouts": layouts,
        "group_sets": [[list(range(servers))]],
        "layers": [{"name": "layer", "strategies": strategies}],
    }
    return CodesignInstance.from_data(data | more)


DATA = {"name": "data", "writes": 0, "flops": 3.0, "reductions": [{"groups": 0, "bytes": 40.0}]}
ALL_TO_ALL = {
    "name": "all-to-all",
    "writes": 0,
    "flops": 3.0,
    "traffic": [(s, t, 2.0) for s, t in itertools.permutations(range(4), 2)],
}


def by_hand(instance, choices, port_links, racks=(), uplink_part=1.0):
    """Iteration time from the job that ``evaluate`` makes of the strategies, server by server and rack by rack."""
    chosen = [layer.strategies[a] for layer, a in zip(instance.layers, choices, strict=True)]
    compute = tables_of(instance).compute_of(choices)
    job = _job(instance, chosen, compute)
    if job is None:
        return compute
    out = [0.0] * job.servers
    back = [0.0] * job.servers
    up = [0.0] * len(racks)
    down = [0.0] * len(racks)
    rack_of = {server: place for place, rack in enumerate(racks) for server in rack}
    for s, t in itertools.permutations(range(job.servers), 2):
        out[s] += job.traffic_bytes[s, t]
        back[t] += job.traffic_bytes[s, t]
        if racks and rack_of[s] != rack_of[t]:
            up[rack_of[s]] += job.traffic_bytes[s, t]
            down[rack_of[t]] += job.traffic_bytes[s, t]
    for group in job.allreduce_groups:
        k = len(group.members)
        hop = 2 * (k - 1) * group.gradient_bytes / k
        for s in group.members:
            out[s] += hop
            back[s] += hop
        spanned = {rack_of[s] for s in group.members} if racks else set()
        for rack in spanned if len(spanned) > 1 else ():
            up[rack] += hop
            down[rack] += hop
    rate = port_links * instance.link_bandwidth_bytes_per_s
    times = [bytes_ / rate for bytes_ in out + back]
    for rack, loads in zip(racks * 2, up + down, strict=True):
        times.append(loads / (rate * len(rack) * uplink_part))
    communication = max(times)
    return max(compute, communication) if instance.overlap == "full" else compute + communication


def test_data_parallelism_alone():
    instance = one_layer([DATA])
    sent = 2 * 3 / 4 * 40.0 / (2 * 2.0)
    assert IdealSwitch().solve(instance, LIMITS).objective == pytest.approx(3 + sent)
    assert FatTree().solve(instance, LIMITS).objective == pytest.approx(3 + 3.2 * sent)
    assert FatTree(cost_ratio=2.0).solve(instance, LIMITS).objective == pytest.approx(3 + 2 * sent)
    # A ring leaves a rack once: racks of as many servers as they are oversubscribed do not slow it down.
    assert OversubscribedFatTree(2, 2.0).solve(instance, LIMITS).objective == pytest.approx(3 + sent)
    assert OversubscribedFatTree(1, 2.0).solve(instance, LIMITS).objective == pytest.approx(3 + 2 * sent)
    assert OversubscribedFatTree(2, 8.0).solve(instance, LIMITS).objective == pytest.approx(3 + 4 * sent)


def test_all_to_all_between_racks():
    instance = one_layer([ALL_TO_ALL])
    assert IdealSwitch().solve(instance, LIMITS).objective == pytest.approx(3 + 6 / 4)
    # 2 · 2 pairs of 2 bytes leave a rack over uplinks of 2 · 4 / 3 bytes/s.
    assert PAIRS.solve(instance, LIMITS).objective == pytest.approx(3 + 8 / (8 / 3))
    narrow = OversubscribedFatTree(2, 3.0, links_per_port=0.5)
    assert narrow.solve(instance, LIMITS).objective == pytest.approx(3 + 2 * 3)


def test_what_comes_into_a_rack():
    gathered = {"name": "gathered", "writes": 0, "traffic": [(s, 4, 2.0) for s in range(4)]}
    instance = one_layer([gathered], servers=6)
    assert IdealSwitch().solve(instance, LIMITS).objective == pytest.approx(8 / 4)
    assert PAIRS.solve(instance, LIMITS).objective == pytest.approx(8 / (8 / 3))


def test_nothing_to_send():
    result = IdealSwitch().solve(one_layer([DATA | {"reductions": []}]), LIMITS)
    assert (result.objective, result.bound, result.details["communication_s"]) == (3.0, 3.0, 0.0)


@pytest.mark.parametrize("seed", range(6))
def test_strategies_are_the_best_there_are(seed):
    rng = np.random.default_rng(seed)
    instance = random_job(
        rng,
        servers=4,
        layers=4,
        traffic=0.3,
        overlap="full" if seed % 3 == 2 else "none",
        memory_slack=1.1 if seed % 2 else None,
    )
    pairs = ((0, 1), (2, 3))
    fitting = [choices for choices in itertools.product(range(3), repeat=4) if tables_of(instance).fits(choices)]
    for reference, network in ((IdealSwitch(), (2.0,)), (FatTree(), (2 / 3.2,)), (PAIRS, (2.0, pairs, 1 / 3))):
        best = min(by_hand(instance, choices, *network) for choices in fitting)
        result = reference.solve(instance, LIMITS)
        assert result.status is Status.REFERENCE
        assert result.objective == pytest.approx(best, rel=1e-6)
        assert result.scope_bound == pytest.approx(best, rel=1e-6)
        names = [layer.strategies for layer in instance.layers]
        choices = [
            [each.name for each in listed].index(name)
            for listed, name in zip(names, result.details["strategies"], strict=True)
        ]
        assert by_hand(instance, choices, *network) == pytest.approx(result.objective)


def test_only_the_ideal_switch_bounds_the_instance():
    instance = random_job(np.random.default_rng(5), servers=6, layers=4)
    ideal, tree = (reference.solve(instance, LIMITS) for reference in (IdealSwitch(), FatTree()))
    assert ideal.bound == pytest.approx(ideal.objective, rel=1e-6)
    assert ideal.bound <= method("data-parallel", "codesign").solve(instance, LIMITS).objective
    assert tree.bound is None
    assert tree.scope is not None


@pytest.mark.parametrize("seed", range(3))
def test_slower_networks_take_longer_and_by_no_more_than_their_bandwidth(seed):
    instance = random_job(np.random.default_rng(seed), servers=6, layers=4)
    ideal = IdealSwitch().solve(instance, LIMITS)
    before = ideal.objective
    for ratio in (1.5, 2.0, 3.2, 10.0):
        tree = FatTree(cost_ratio=ratio).solve(instance, LIMITS).objective
        assert before - 1e-9 <= tree
        assert tree <= ideal.details["compute_s"] + ratio * ideal.details["communication_s"] + 1e-6
        before = tree


def test_racks_of_k_ary_fat_trees():
    sizes = {16: 2, 17: 3, 128: 4, 432: 6, 1024: 8}
    for servers, size in sizes.items():
        racks = OversubscribedFatTree().network(servers).racks
        assert {len(rack) for rack in racks[:-1]} == {size}
        assert [server for rack in racks for server in rack] == list(range(servers))


def test_what_is_known_when_time_is_up():
    instance = random_job(np.random.default_rng(1), servers=6, layers=5)
    result = FatTree().solve(instance, Limits(time_s=1e-6))
    assert result.status is Status.REFERENCE
    assert "not proven" in result.message
    assert result.objective >= FatTree().solve(instance, LIMITS).objective


def test_too_little_memory():
    tight = one_layer(
        [DATA | {"memory_bytes": 5.0}],
        device={"flops_per_s": 1.0, "convolution_flops_per_s": 1.0, "memory_bytes_per_s": 1.0, "memory_bytes": 3.0},
    )
    result = FatTree().solve(tight, LIMITS)
    assert result.status is Status.INFEASIBLE
    assert "layer 'layer'" in result.message
    assert "2 bytes are missing" in result.message


@for_each(
    ("kind", "options"),
    [
        (FatTree, {"cost_ratio": 0.0}),
        (OversubscribedFatTree, {"rack_servers": 0}),
        (OversubscribedFatTree, {"oversubscription": 0.5}),
        (OversubscribedFatTree, {"links_per_port": 0.0}),
    ],
)
def test_odd_options(kind, options):
    with pytest.raises(OptionError, match=next(iter(options))):
        kind(**options)
