"""Every metric cut holds for every design of tiny instances, says something, and is what the formulation takes."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from brute_force import link_choices, routed_congestion
from volume import for_each, slow

from ddlopt.frontier.topology.metric.cuts import (
    cut_set_lengths,
    demanded_length,
    disjunctive_cut,
    least_length_cut,
    neighbourhoods,
    rounded_cut,
)
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.formulations.min_congestion import MinCongestion
from ddlopt.models.topology.formulations.rows.link_cut import LinkCut
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact, lp_relaxation


def instance_of(n, seed, **options):
    rng = np.random.default_rng(seed)
    traffic = np.where(rng.random((n, n)) < 0.8, rng.integers(1, 12, (n, n)), 0)
    np.fill_diagonal(traffic, 0)
    figures = {"name": "x", "servers": n, "degree": 2, "link_bandwidth_bytes_per_s": 1.0} | options
    return TopologyInstance(traffic_bytes=traffic, **figures)


def lengths_of(n, seed):
    """A few lengths: all cut sets, and random whole numbers."""
    masks = (np.arange(1, 2**n - 1)[:, None] >> np.arange(n)) & 1 == 1
    rng = np.random.default_rng(seed)
    return [*map(cut_set_lengths, masks), *(rng.integers(0, 5, (n, n)) for _ in range(8))]


def designs_of(instance):
    """(links, least congestion) of designs to which no link can be added, and of those with one link less."""
    designs = {}
    for links in link_choices(instance):
        fewer = [{**links, arc: count - 1} for arc, count in links.items()] if instance.optics == "one_way" else []
        for some in (links, *fewer):
            laid = {arc: count for arc, count in sorted(some.items()) if count}
            designs[tuple(laid.items())] = laid
    found = [(laid, routed_congestion(instance, laid)) for laid in designs.values()]
    found = [(laid, load) for laid, load in found if load < np.inf]
    assert found
    return found


SHAPES = [
    (4, 1, {"degree": 1}),
    slow(4, 2, {}),
    slow(4, 3, {"parallel_links": False}),
    (4, 4, {"optics": "duplex"}),
    (3, 5, {"host_forwarding": False}),
]


@for_each(("n", "seed", "options"), SHAPES)
def test_every_design_satisfies_every_rounded_cut(n, seed, options):
    instance = instance_of(n, seed, **options)
    designs = designs_of(instance)
    loads = sorted(load for _, load in designs)
    achievable = loads[len(loads) // 4]
    tight = 0
    for lengths in lengths_of(n, seed):
        used = {sum(int(lengths[arc]) * count for arc, count in links.items()) for links, _ in designs}
        for k in sorted({max(1, y - back) for y in used for back in (0, 1)}):
            cut = rounded_cut(instance, lengths, k)
            if cut is None:
                assert demanded_length(instance, lengths) == 0
                continue
            for links, load in designs:
                gap = load - cut.least - sum(weight * links.get(arc, 0) for arc, weight in cut.weights)
                assert gap >= -1e-9 * load
                assert cut.violation(load, links) == pytest.approx(-gap)
                tight += gap < 1e-6 * load
        cut = least_length_cut(instance, lengths, achievable)
        for links, load in designs:
            if cut is not None and load <= achievable:
                assert cut.violation(load, links) <= 1e-9
                tight += cut.violation(load, links) > -1e-9
    assert tight


def test_figures_are_rounded_to_the_weak_side():
    traffic = np.zeros((3, 3))
    traffic[0, 1], traffic[1, 2], traffic[2, 0] = 0.1, 0.7, 1 / 3
    instance = TopologyInstance(name="x", servers=3, degree=2, link_bandwidth_bytes_per_s=1.0, traffic_bytes=traffic)
    lengths = np.array([[0, 3, 1], [2, 0, 7], [1, 1, 0]])
    demanded = demanded_length(instance, lengths)
    assert demanded == Fraction(0.1) * 2 + Fraction(0.7) * 3 + Fraction(1 / 3) * 1
    for k in range(1, 30):
        cut = rounded_cut(instance, lengths, k)
        assert Fraction(cut.least) <= demanded * Fraction(2 * k + 1, k * (k + 1))
        for (i, j), weight in cut.weights:
            exact = -demanded * int(lengths[i, j]) / (k * (k + 1))
            assert Fraction(weight) <= exact
            assert weight == pytest.approx(float(exact), rel=1e-15)


def test_chord_meets_the_metric_inequality_at_both_ends():
    instance = instance_of(4, 2)
    lengths = cut_set_lengths(np.array([True, False, True, False]))
    demanded = float(demanded_length(instance, lengths))
    assert demanded == instance.traffic_bytes[np.ix_([0, 2], [1, 3])].sum()
    cut = rounded_cut(instance, lengths, 3)
    for y in range(1, 9):
        counts = {(0, 1): y}
        assert cut.violation(demanded / y, counts) == pytest.approx(0, abs=1e-9) if y in (3, 4) else True
        assert cut.violation(demanded / y, counts) <= 1e-9
    assert cut.violation(demanded / 3.5, {(0, 1): 3.5}) > 0.1


def test_nobody_forwards_so_lengths_are_distances():
    lengths = np.array([[0, 1, 9], [9, 0, 1], [9, 9, 0]])
    traffic = np.array([[0, 0, 2], [0, 0, 0], [0, 0, 0]])
    figures = {"name": "x", "servers": 3, "degree": 2, "link_bandwidth_bytes_per_s": 1.0, "traffic_bytes": traffic}
    assert demanded_length(TopologyInstance(**figures), lengths) == 4
    assert demanded_length(TopologyInstance(host_forwarding=False, **figures), lengths) == 18


def test_without_demand_there_is_no_cut():
    traffic = np.array([[0, 1], [0, 0]])
    instance = TopologyInstance(name="x", servers=2, degree=1, link_bandwidth_bytes_per_s=1.0, traffic_bytes=traffic)
    lengths = np.array([[0, 0], [1, 0]])
    assert rounded_cut(instance, lengths, 1) is None
    assert least_length_cut(instance, lengths, 1.0) is None


@pytest.mark.parametrize("lengths", [np.ones((2, 2), dtype=int), -np.ones((4, 4), dtype=int), np.ones((4, 4))])
def test_lengths_that_are_none_are_refused(lengths):
    with pytest.raises(ValueError, match="whole numbers"):
        demanded_length(instance_of(4, 2), lengths)


@pytest.mark.parametrize("parallel_links", [True, False])
def test_neighbourhoods_are_those_of_the_designs(parallel_links):
    instance = instance_of(4, 3, parallel_links=parallel_links)
    known = set(neighbourhoods(instance, 1))
    assert len(known) == len(list(neighbourhoods(instance, 1)))
    met = {tuple(j for j in range(4) for _ in range(links.get((1, j), 0))) for links in link_choices(instance)}
    assert met <= known
    assert {choice for choice in known if len(choice) == 2} <= met
    assert {len(choice) for choice in known} == {0, 1, 2}
    assert ((2, 2) in known) == parallel_links


def test_least_of_the_bounds_counts():
    cut = disjunctive_cut("split", {(1, 0): 2.0, (0, 1): 0.0}, [5.0, 4.0])
    assert cut == LinkCut("split", True, 4.0, (((1, 0), 2.0),))
    assert cut.violation(7.0, {(1, 0): 2}) == 1.0


@pytest.mark.parametrize("optics", ["one_way", "duplex"])
def test_formulation_takes_cuts(optics):
    """Unit scaling, the meaning of counts, and both kinds of cuts."""
    instance = instance_of(4, 6, optics=optics)
    best = min(routed_congestion(instance, links) for links in link_choices(instance))
    options = {"hops": "none", "numbering": False}
    plain = lp_relaxation(MinCongestion(**options), instance).objective
    out = tuple(((0, j), -1.0) for j in range(1, 4))
    fewer = LinkCut("rounded", True, best + 20.0, tuple((arc, 10.0 * w) for arc, w in out))  # z >= best + 20 - 10 out
    solved = Exact("x", "topology", MinCongestion(cuts=(fewer,), **options)).solve(instance, Limits(gap=1e-7))
    assert solved.status is Status.OPTIMAL
    assert solved.objective == pytest.approx(best)
    lifted = LinkCut("rounded", True, best + 20.5, fewer.weights)
    raised = lp_relaxation(MinCongestion(cuts=(lifted,), **options), instance).objective
    assert raised == pytest.approx(best + 0.5)
    assert raised > plain
    none = LinkCut("rounded", False, 2.5, tuple((arc, -w) for arc, w in out))  # 0 >= 2.5 + out
    refused = Exact("x", "topology", MinCongestion(cuts=(none,), **options)).solve(instance, Limits())
    assert refused.status is Status.INFEASIBLE


def test_cuts_leave_the_optimum():
    instance = instance_of(4, 7)
    best = Exact("x", "topology", MinCongestion()).solve(instance, Limits(gap=1e-7)).objective
    cuts = []
    for lengths, k in itertools.product(lengths_of(4, 7), (2, 5)):
        cuts += [rounded_cut(instance, lengths, k), least_length_cut(instance, lengths, best)]
    known = MinCongestion(cuts=tuple(cut for cut in cuts if cut is not None), achievable_bytes=best)
    assert Exact("x", "topology", known).solve(instance, Limits(gap=1e-7)).objective == pytest.approx(best, rel=1e-6)
