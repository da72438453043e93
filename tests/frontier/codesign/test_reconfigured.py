"""Simulations of networks that are set anew: closed forms, conservation of bytes, and the ideal switch below them."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
from volume import for_each

from ddlopt.frontier.codesign.reconfigured.kernels import times_on_trees
from ddlopt.frontier.codesign.reconfigured.reconfigured import OcsReconfig, SipMl
from ddlopt.frontier.codesign.reconfigured.windows import Windows, greedy_circuits
from ddlopt.instances.generators.codesign.random import random_job
from ddlopt.models.errors import NoSolutionError, OptionError
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.codesign.switches import IdealSwitch
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.topology.draft import Draft
from ddlopt.solvers.topology.ocs_greedy import _serve

LIMITS = Limits(time_s=60, gap=1e-7)


def never():
    return False


def job(traffic=None, groups=(), servers=4, degree=2, bandwidth=2.0):
    traffic = np.zeros((servers, servers)) if traffic is None else traffic
    return TopologyInstance(
        name="job",
        servers=servers,
        degree=degree,
        link_bandwidth_bytes_per_s=bandwidth,
        traffic_bytes=traffic,
        allreduce_groups=[{"members": members, "gradient_bytes": amount} for members, amount in groups],
    )


def one_pair(amount, servers=4):
    traffic = np.zeros((servers, servers))
    traffic[0, 2] = amount
    return traffic


def pauses(sending_s, live_s):
    return math.ceil(round(sending_s / live_s, 9)) - 1


@for_each("amount", [4.0, 40.0, 41.0, 80.0, 400.0, 444.4])
@for_each("held", [0.0, 0.1])
def test_one_demand_over_all_circuits(amount, held):
    # Circuits of 2 · 2 bytes/s, live for 10 s and set anew for 2.5 s.
    sent = SipMl(2.5, 4.0, held).deliver(job(one_pair(amount)), 0, never)
    sending_s = amount / 4
    assert sent.seconds == pytest.approx(sending_s + 2.5 * pauses(sending_s, 10.0), rel=1e-9)
    assert held > 0 or sent.settings == pauses(sending_s, 10.0) + 1


@for_each("amount", [4.0, 20.0, 21.0, 300.0])
def test_one_demand_where_servers_must_stay_connected(amount):
    # The greedy gives the pair both circuits, but one is taken away again to join the third server.
    sent = OcsReconfig(2.5, 4.0).deliver(job(one_pair(amount, 3), servers=3), 0, never)
    sending_s = amount / 2
    assert sent.seconds == pytest.approx(sending_s + 2.5 * pauses(sending_s, 10.0), rel=1e-9)


def test_one_all_reduce_takes_all_links():
    reduced = job(groups=[(range(8), 24.0)], servers=8, degree=4)
    hop = 2 * 7 / 8 * 24.0
    assert SipMl(100.0).deliver(reduced, 0, never).seconds == pytest.approx(hop / (4 * 2.0))
    assert OcsReconfig(100.0).deliver(reduced, 0, never).seconds == pytest.approx(hop / (4 * 2.0))


def test_the_first_circuits_serve_every_pair_that_they_can():
    traffic = np.zeros((4, 4))
    traffic[0, 1], traffic[0, 2] = 12.0, 4.0
    sent = SipMl(1.0).deliver(job(traffic, degree=3), 0, never)
    # 12 bytes over two circuits, 4 over the third: 3 s, less than a window.
    assert (sent.seconds, sent.settings) == (pytest.approx(3.0), 1)
    # With two circuits a server, three partners have to take turns.
    traffic[0, 3] = 4.0
    assert SipMl(0.25).deliver(job(traffic, degree=2), 0, never).settings > 1


def recorded(method, instance):
    """What was left before every window of a delivery, and what is left after the last: nothing."""
    seen = []
    deliver = Windows.deliver

    def watching(self, demand, serve, expired):
        def noting(left):
            times, kept = serve(left)
            seen.append((left.copy(), kept))
            return times, kept

        return deliver(self, demand, noting, expired)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Windows, "deliver", watching)
        sent = method.deliver(instance, 0, never)
    return [*seen, (np.zeros_like(seen[0][0]), 1)], sent


@for_each("method", [OcsReconfig(0.3), SipMl(0.3), SipMl(0.01)])
@for_each("seed", range(3))
def test_bytes_are_conserved(method, seed):
    rng = np.random.default_rng(seed)
    traffic = rng.gamma(0.5, 20.0, (6, 6))
    np.fill_diagonal(traffic, 0)
    instance = job(traffic, [(range(6), 30.0), ((0, 2, 4), 11.0)], servers=6)
    windows, sent = recorded(method, instance)
    first = windows[0][0]
    assert first.sum(axis=1) == pytest.approx(instance.node_bytes[0])
    assert first.sum(axis=0) == pytest.approx(instance.node_bytes[1])
    assert len(windows) == sent.settings + 1
    ports = instance.degree * instance.link_bandwidth_bytes_per_s
    for (before, kept), (after, _) in itertools.pairwise(windows):
        went = before - after
        assert went.min() >= -1e-9
        most = ports * method.live_windows * method.reconfiguration_s * kept * (1 + 1e-9)
        assert max(went.sum(axis=0).max(), went.sum(axis=1).max()) <= most
    assert sent.seconds >= instance.node_bytes.max() / ports


@pytest.mark.parametrize("seed", range(4))
def test_never_faster_than_the_ideal_switch(seed):
    instance = random_job(
        np.random.default_rng(seed), servers=6, layers=4, traffic=0.3, overlap="full" if seed % 2 else "none"
    )
    ideal = IdealSwitch().solve(instance, LIMITS)
    for method in (OcsReconfig(0.5), SipMl(0.05)):
        result = method.solve(instance, LIMITS)
        assert result.status is Status.REFERENCE
        assert result.objective >= ideal.objective * (1 - 1e-9)
        assert (result.bound, result.solution) == (None, None)
        figures = result.details["compute_s"], result.details["communication_s"]
        assert result.objective == pytest.approx(max(figures) if instance.overlap == "full" else sum(figures))


def test_more_bandwidth_takes_less_time():
    traffic = np.random.default_rng(2).gamma(1.0, 10.0, (5, 5))
    np.fill_diagonal(traffic, 0)
    for method in (OcsReconfig(0.2), SipMl(0.2)):
        times = [method.deliver(job(traffic, servers=5, bandwidth=b), 0, never).seconds for b in (1.0, 4.0, 16.0)]
        assert times == sorted(times, reverse=True)
        assert times[0] > 1.5 * times[-1]


def test_circuits_held_for_many_windows_are_about_as_good():
    traffic = np.random.default_rng(3).gamma(1.0, 100.0, (6, 6))
    np.fill_diagonal(traffic, 0)
    anew, held = (SipMl(0.02, 4.0, part).deliver(job(traffic, servers=6), 0, never) for part in (0.0, 0.1))
    assert held.settings < anew.settings / 3
    assert held.seconds == pytest.approx(anew.seconds, rel=0.1)


@for_each("seed", range(4))
def test_the_greedy_is_that_of_ocs_greedy(seed):
    rng = np.random.default_rng(seed)
    demand = np.triu(rng.gamma(0.5, 1.0, (7, 7)), 1)
    demand += demand.T
    draft = Draft(job(demand, servers=7, degree=3).model_copy(update={"optics": "duplex"}))
    _serve(draft, demand, np.random.default_rng(0))
    expected = np.zeros((7, 7), dtype=int)
    for (i, j), count in draft.links.items():
        expected[i, j] = expected[j, i] = count
    assert np.array_equal(greedy_circuits(demand, 3, rng), expected)


def test_shares_of_links_against_paths_by_hand():
    rng = np.random.default_rng(5)
    # A tree has one path for each pair.
    graph = nx.random_labeled_tree(8, seed=5)
    circuits = np.zeros((8, 8), dtype=np.int64)
    for i, j in graph.edges:
        circuits[i, j] = circuits[j, i] = rng.integers(1, 4)
    waiting = rng.random((8, 8)) * (rng.random((8, 8)) < 0.7)
    np.fill_diagonal(waiting, 0)
    paths = dict(nx.all_pairs_shortest_path(graph))
    load = np.zeros((8, 8))
    for s, t in itertools.permutations(range(8), 2):
        for hop in itertools.pairwise(paths[s][t]):
            load[hop] += waiting[s, t]
    times = times_on_trees(circuits, rng.integers(0, 8, (8, 8)), waiting)
    for s, t in itertools.permutations(range(8), 2):
        slowest = max(load[hop] / circuits[hop] for hop in itertools.pairwise(paths[s][t]))
        assert times[s, t] == pytest.approx(slowest)


def test_paths_are_shortest_and_what_has_none_waits():
    circuits = np.zeros((5, 5), dtype=np.int64)
    for i, j in ((0, 1), (1, 2), (2, 3), (3, 0)):
        circuits[i, j] = circuits[j, i] = 1
    waiting = np.zeros((5, 5))
    waiting[0, 2] = waiting[0, 4] = 1.0
    times = times_on_trees(circuits, np.zeros((5, 5), dtype=np.int64), waiting)
    assert (times[0, 2], times[0, 4]) == (1.0, np.inf)


def test_time_that_is_up():
    with pytest.raises(NoSolutionError, match="bytes are left"):
        SipMl().deliver(job(one_pair(5.0)), 0, lambda: True)
    instance = random_job(np.random.default_rng(0), servers=6, layers=4)
    result = OcsReconfig().solve(instance, Limits(time_s=1e-6))
    assert (result.status, result.objective) == (Status.NO_SOLUTION, None)


@for_each(
    ("kind", "options"),
    [
        (OcsReconfig, {"reconfiguration_s": 0.0}),
        (OcsReconfig, {"live_windows": 0.0}),
        (SipMl, {"reconfiguration_s": -1.0}),
        (SipMl, {"held": 1.0}),
    ],
)
def test_odd_options(kind, options):
    with pytest.raises(OptionError, match=next(iter(options))):
        kind(**options)
