"""SiP-ML's programs against other ways to the same optimum: bisection, enumeration, linear programming."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog
from volume import for_each, seeds

from ddlopt.frontier.topology.formulations.sip_ml import MaxMinCircuits, assignment_circuits, max_min_circuits
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.formulations.rings_and_routes import RingsAndRoutes
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.exact import Exact


def sparse_demand(rng, n, degree, high=9):
    """Whole bytes for at most ``degree`` partners of each server, in both directions."""
    demand = np.zeros((n, n))
    for _ in range(degree):
        order = rng.permutation(n)
        demand[np.arange(n), order] = rng.integers(0, high + 1, n)
    np.fill_diagonal(demand, 0)
    return demand


def instance_of(demand, degree, **options):
    fabric = {"servers": len(demand), "degree": degree, "link_bandwidth_bytes_per_s": 1.0}
    return TopologyInstance(name="circuits", traffic_bytes=demand, **fabric, **options)


def solved(formulation, instance):
    return Exact("exact", "topology", formulation).solve(instance, Limits(time_s=60, gap=1e-6))


@for_each("seed", seeds(2, 6))
def test_bisection_is_the_optimum_of_the_program(seed):
    rng = np.random.default_rng(seed)
    degree = 2 + seed % 2
    demand = sparse_demand(rng, 5, degree)
    circuits, busiest = max_min_circuits(demand, degree)
    assert max(circuits.sum(axis=0).max(), circuits.sum(axis=1).max()) <= degree
    assert np.array_equal(circuits > 0, demand > 0)
    assert (demand[demand > 0] / circuits[demand > 0]).max() == pytest.approx(busiest, rel=1e-12)
    instance = instance_of(demand, degree, host_forwarding=False)
    result = solved(MaxMinCircuits(), instance)
    assert result.status is Status.OPTIMAL
    assert result.checked
    assert result.scope is None
    assert result.objective == pytest.approx(busiest, rel=1e-6)
    assert result.objective == pytest.approx(solved(RingsAndRoutes(), instance).objective, rel=1e-4)


def test_many_partners_cannot_be_served():
    demand = np.ones((4, 4)) - np.eye(4)
    assert max_min_circuits(demand, 2) is None
    assert max_min_circuits(demand, 3)[1] == 1.0
    assert max_min_circuits(np.zeros((4, 4)), 2)[1] == 0.0


def test_a_pair_gets_all_switches():
    demand = np.zeros((3, 3))
    demand[0, 2] = 12.0
    assert max_min_circuits(demand, 4)[0][0, 2] == 4
    assert max_min_circuits(demand, 4)[1] == 3.0


def test_with_forwarding_direct_circuits_are_a_scope():
    demand = np.zeros((3, 3))
    demand[0, 1], demand[0, 2] = 10.0, 2.0
    result = solved(MaxMinCircuits(), instance_of(demand, 2))
    assert (result.scope, result.objective) == ("direct circuits", 10.0)
    assert result.scope_bound == pytest.approx(10.0, rel=1e-6)
    assert result.bound < 10.0


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"optics": "duplex"}, "duplex"),
        ({"parallel_links": False}, "parallel"),
        ({"allreduce_groups": [{"members": (0, 1, 2), "gradient_bytes": 3.0}]}, "all-reduce"),
    ],
)
def test_what_it_refuses(options, word):
    assert word in MaxMinCircuits().refuses(instance_of(np.ones((3, 3)) - np.eye(3), 2, **options))


@for_each("seed", range(4))
def test_the_linear_program_is_one_assignment_d_times(seed):
    rng = np.random.default_rng(seed)
    n, d = 4, 3
    demand = rng.gamma(1.0, size=(n, n))
    np.fill_diagonal(demand, 0)
    if seed % 2:
        demand[rng.random((n, n)) < 0.5] = 0
    found = assignment_circuits(demand, d)
    assert max(found.sum(axis=0).max(), found.sum(axis=1).max()) <= d
    rows = [np.kron(np.eye(d), np.kron(np.eye(n), np.ones(n))), np.kron(np.eye(d), np.kron(np.ones(n), np.eye(n)))]
    relaxed = linprog(-np.tile(demand.ravel(), d), A_eq=np.vstack(rows), b_eq=np.ones(2 * n * d), bounds=(0, 1))
    best = d * max(demand[range(n), order].sum() for order in itertools.permutations(range(n)))
    assert (found * demand).sum() == pytest.approx(best)
    assert -relaxed.fun == pytest.approx(best)


def test_faint_traffic_is_refused():
    demand = np.zeros((3, 3))
    demand[0, 1], demand[0, 2] = 1e9, 1.0
    assert "tolerances" in MaxMinCircuits().refuses(instance_of(demand, 2))
