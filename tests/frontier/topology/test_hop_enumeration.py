"""Links with few hops, listed: against the branch and bound, brute force, and counts that are known."""

import numpy as np
import pytest
from topology_cases import all_to_all, job
from volume import slow

from ddlopt.certificates.topology.hops.listing import least_hops
from ddlopt.frontier.topology.hop_enumeration import _QUICK, HopEnumeration, Search
from ddlopt.instances import load
from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.models.topology import evaluate
from ddlopt.solvers.catalogue import method
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import balance
from ddlopt.solvers.topology.balance.exact import polish


def regular_digraphs(n, degree):
    """All tables of links with so many out of and into each server."""

    def extend(rows):
        if len(rows) == n:
            if (np.sum(rows, axis=0) == degree).all():
                yield np.array(rows)
            return
        for row in ways(n, degree):
            if not row[len(rows)] and (np.sum([*rows, row], axis=0) <= degree).all():
                yield from extend([*rows, row])

    return list(extend([]))


def regular_graphs(n, degree):
    """All symmetric tables with so many links of each server, without loops."""
    pairs = [(i, j) for i in range(n) for j in range(i)]

    def extend(table, place):
        if place == len(pairs):
            if (table.sum(axis=1) == degree).all():
                yield table.copy()
            return
        i, j = pairs[place]
        for count in range(degree + 1 - max(table[i].sum(), table[j].sum())):
            table[i, j] = table[j, i] = count
            yield from extend(table, place + 1)
        table[i, j] = table[j, i] = 0

    return list(extend(np.zeros((n, n), dtype=np.int64), 0))


def ways(n, links):
    """All (n,) numbers with this sum."""
    if n == 1:
        return [(links,)]
    return [(first, *rest) for first in range(links + 1) for rest in ways(n - 1, links - first)]


def hops(table):
    """Sum of all distances; infinite if somebody is out of reach."""
    n = len(table)
    reached, total = np.eye(n, dtype=bool), 0
    for _ in range(n):
        total += n * n - reached.sum()
        reached = reached | (reached @ (table > 0))
    return total if reached.all() else np.inf


def orders_of(table):
    """Its smallest image under all numberings."""
    from itertools import permutations

    return min(table[np.ix_(order, order)].tobytes() for order in map(list, permutations(range(len(table)))))


@pytest.mark.parametrize(
    ("n", "degree", "most", "optics"),
    [
        (4, 2, 9, "one_way"),
        (5, 2, 5, "one_way"),
        slow(5, 2, 12, "one_way"),
        slow(5, 3, 6, "one_way"),
        (4, 3, 9, "duplex"),
        (6, 3, 5, "duplex"),
        slow(6, 3, 99, "duplex"),
        slow(6, 4, 99, "duplex"),
    ],
)
def test_lists_each_digraph_with_few_hops_once(n, degree, most, optics):
    duplex = optics == "duplex"
    search = Search(all_to_all(n, degree, optics=optics), Clock(Limits(), None))
    listed = [np.array([np.bincount(row, minlength=n) for row in heads]) for heads in search._digraphs(most)]
    tables = regular_graphs(n, degree) if duplex else regular_digraphs(n, degree)
    wanted = {orders_of(table) for table in tables if hops(table) - least_hops(n, degree, duplex) <= most}
    assert len(listed) == len(wanted)
    assert {orders_of(table) for table in listed} == wanted


@pytest.mark.parametrize(("n", "degree"), [(4, 2), (6, 2), (4, 3), slow(6, 3)])
@pytest.mark.parametrize(("optics", "reduced"), [("duplex", 0.0), ("duplex", 0.3), ("duplex", 40.0), ("one_way", 0.3)])
def test_agrees_with_the_branch_and_bound_beside_an_all_reduce(n, degree, optics, reduced):
    groups = [(tuple(range(n)), reduced)] if reduced else []
    instance = all_to_all(n, degree, optics=optics, groups=groups)
    listed = HopEnumeration(opening=0.05).solve(instance, Limits())
    proven = method("branch-and-bound", "topology").solve(instance, Limits(time_s=60))
    assert proven.status is listed.status is Status.OPTIMAL
    assert listed.objective == pytest.approx(proven.objective, rel=2e-4)
    assert evaluate(instance, listed.solution, exact=True).feasible


@pytest.mark.parametrize(
    ("n", "optimum"), [(5, 3.0), (6, 4.2), (7, 5.5), (8, 20 / 3), (9, 8.2), slow(12, 12.8), slow(13, 329 / 23)]
)
def test_optima_with_two_ports(n, optimum):
    instance = load(f"all-to-all-n{n}-d2")
    result = HopEnumeration(opening=0.05).solve(instance, Limits())
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(optimum)
    assert optimum * (1 - 1e-4) <= result.bound <= optimum * (1 + 1e-12)
    assert evaluate(instance, result.solution, exact=True).feasible


def test_a_bad_start_is_improved_to_the_optimum():
    instance = load("all-to-all-n6-d2")
    bad = method("topology-finder", "topology").solve(instance, Limits()).solution
    assert evaluate(instance, bad).objective > 4.5
    result = HopEnumeration().solve(instance, Limits(), start=bad)
    assert result.status is Status.OPTIMAL
    assert result.objective == pytest.approx(4.2)


def test_bounds_on_the_way_are_bounds():
    instance = load("all-to-all-n9-d2")
    result = HopEnumeration(opening=0.01).solve(instance, Limits())
    bounds = [point.bound for point in result.trace]
    assert bounds == sorted(bounds)
    assert bounds[0] < bounds[-1] <= 8.2 + 1e-9


def test_links_that_may_not_be_parallel_and_other_bytes():
    instance = all_to_all(6)
    single = instance.model_copy(update={"parallel_links": False, "traffic_bytes": 3 * instance.traffic_bytes})
    result = HopEnumeration(opening=0.05).solve(single, Limits())
    assert result.objective == pytest.approx(12.6)
    assert result.status is Status.OPTIMAL


def test_refuses_other_traffic():
    uneven = 1 - np.eye(4)
    uneven[0, 1] = 2
    for instance, reason in (
        (job(uneven), "not the same"),
        (all_to_all(4, groups=[((0, 1, 2), 3.0)]), "not all servers are symmetric"),
        (all_to_all(5, optics="duplex"), "use all ports"),
        (all_to_all(4, host_forwarding=False), "use all ports"),
        (job(np.zeros((4, 4)), groups=[(range(4), 3.0)]), "not the same"),
        (all_to_all(40, 4), "sets of 4 neighbours"),
    ):
        with pytest.raises(NotApplicableError, match=reason):
            HopEnumeration().solve(instance, Limits())
    with pytest.raises(OptionError):
        HopEnumeration(opening=0.0)


def test_bounds_count_parallel_links_as_one_arc():
    search = Search(all_to_all(4, 2), Clock(Limits(), None))
    heads = np.array([[1, 1], [2, 3], [3, 0], [0, 2]])
    found = polish(balance(search.job, heads, None, _QUICK))
    assert np.isinf(found.length).any()
    assert found.congestion_bytes * 0.999 <= search._metric_bound(found)[0] <= found.congestion_bytes * (1 + 1e-9)
