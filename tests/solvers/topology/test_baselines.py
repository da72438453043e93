"""Expander, OCS greedy, the references; and what holds for every heuristic on any instance."""

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from topology_cases import job

from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.models.topology import AllReduceGroup, TopologyInstance, evaluate
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.topology.draft import Draft
from ddlopt.solvers.topology.expander import Expander
from ddlopt.solvers.topology.ocs_greedy import OcsGreedy, join_all
from ddlopt.solvers.topology.references import FatTree, IdealSwitch
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder

HEURISTICS = (
    TopologyFinder(),
    TopologyFinder("paper", primes_only=True, paths_per_pair=1),
    TopologyFinder("released"),
    TopologyFinder("released", released_split="two"),
    TopologyFinder("released", released_split="rounded"),
    Expander(),
    OcsGreedy(),
)


def instance(n, degree, traffic, groups=(), **options):
    return TopologyInstance(
        name="test",
        servers=n,
        degree=degree,
        link_bandwidth_bytes_per_s=1,
        allreduce_groups=tuple(AllReduceGroup(members=tuple(m), gradient_bytes=size) for m, size in groups),
        traffic_bytes=traffic,
        **options,
    )


def matrix(n, values):
    traffic = np.zeros((n, n))
    for pair, value in values.items():
        traffic[pair] = value
    return traffic


@st.composite
def instances(draw, most=9):
    n = draw(st.integers(2, most))
    amounts = st.sampled_from([0.0, 0.0, 1.0, 2.5, 1e9])
    traffic = np.array(draw(st.lists(amounts, min_size=n * n, max_size=n * n))).reshape(n, n)
    np.fill_diagonal(traffic, 0)
    divisors = [k for k in range(2, n + 1) if n % k == 0]
    cosets = st.sampled_from(divisors).map(lambda k: tuple(range(n // k - 1, n, n // k)))
    subsets = st.sets(st.integers(0, n - 1), min_size=2).map(lambda members: tuple(sorted(members)))
    groups = draw(st.lists(st.tuples(cosets | subsets, st.sampled_from([1.0, 40.0, 1e9])), max_size=3))
    if not groups and not traffic.any():
        groups = [((0, n - 1), 1.0)]
    return instance(
        n,
        draw(st.integers(1, min(n - 1, 5))),
        traffic,
        groups,
        optics=draw(st.sampled_from(["one_way", "duplex"])),
        parallel_links=draw(st.booleans()),
        host_forwarding=draw(st.sampled_from([True, True, True, False])),
        overlap=draw(st.sampled_from(["none", "full"])),
    )


def must_answer(method, problem):
    """Whether servers forward and the links that the method lays can join everybody."""
    two_way = problem.optics == "duplex" or method.name == "ocs-greedy"
    return problem.host_forwarding and (problem.degree > 1 or problem.servers == 2 or not two_way)


def check(method, problem, seed):
    """A design that passes the check (``solve`` raises otherwise), in floats and fractions, above what is possible."""
    try:
        result = method.solve(problem, Limits(), seed=seed)
    except NotApplicableError:
        assert not must_answer(method, problem)
        return
    exact = evaluate(problem, result.solution, exact=True)
    assert exact.feasible
    assert float(exact.objective) == pytest.approx(result.objective)
    assert result.objective >= IdealSwitch().solve(problem, Limits()).objective * (1 - 1e-9)
    if not problem.host_forwarding:
        assert {len(path) for route in result.solution.routes for path in route.paths} <= {2}


@pytest.mark.parametrize("method", HEURISTICS, ids=repr)
@given(problem=instances(), seed=st.integers(0, 5))
@settings(deadline=None, max_examples=5, suppress_health_check=[HealthCheck.too_slow])
def test_any_instance(method, problem, seed):
    check(method, problem, seed)


@pytest.mark.slow
@pytest.mark.parametrize("method", HEURISTICS, ids=repr)
@given(problem=instances(most=24), seed=st.integers(0, 5))
@settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
def test_any_larger_instance(method, problem, seed):
    check(method, problem, seed)


@pytest.mark.parametrize("method", HEURISTICS, ids=repr)
def test_the_seed_decides(method):
    rng = np.random.default_rng(0)
    traffic = rng.random((20, 20)) * (1 - np.eye(20))
    problem = instance(20, 3, traffic, [(range(0, 20, 2), 9.0), ((1, 2, 5), 4.0)])
    one, same, other = (method.solve(problem, Limits(), seed=seed).solution for seed in (1, 1, 2))
    assert one == same
    assert one.routes != other.routes


class TestExpander:
    @pytest.mark.parametrize("degree", [1, 2, 3, 4])
    def test_one_way_degrees(self, degree):
        traffic = np.ones((11, 11)) - np.eye(11)
        links = Expander().solve(instance(11, degree, traffic), Limits(), seed=3).solution.links
        graph = nx.DiGraph([(i, j) for i, j, _ in links])
        assert len(graph.edges) == 11 * degree  # no link is doubled
        assert nx.is_strongly_connected(graph)
        assert {d for _, d in graph.in_degree} == {d for _, d in graph.out_degree} == {degree}

    @pytest.mark.parametrize(("n", "degree"), [(12, 2), (12, 3), (12, 5), (11, 2), (11, 4), (4, 3), (2, 1)])
    def test_duplex_planes_are_as_full_as_can_be(self, n, degree):
        problem = instance(n, degree, np.ones((n, n)) - np.eye(n), optics="duplex")
        design = Expander().solve(problem, Limits(), seed=3).solution
        assert [len(plane) for plane in design.planes] == [n // 2] * degree
        assert all(count == 1 for _, _, count in design.links)
        assert nx.is_connected(nx.Graph([(i, j) for i, j, _ in design.links]))

    def test_seeds_differ(self):
        problem = instance(12, 3, np.ones((12, 12)) - np.eye(12))
        designs = [Expander().solve(problem, Limits(), seed=seed).solution.links for seed in (0, 0, 1)]
        assert designs[0] == designs[1] != designs[2]

    def test_rings_may_take_several_hops(self):
        problem = instance(9, 2, np.zeros((9, 9)), [(range(9), 9.0)])
        design = Expander().solve(problem, Limits()).solution
        assert max(len(path) for ring in design.rings for path in ring.paths) > 2


class TestOcsGreedy:
    def test_by_hand(self):
        """01 at 8 (then 4), 02 at 5, 13 at 4.5, 23 at 1; half of 01's sum of directions, 7.5, would have won."""
        traffic = matrix(4, {(0, 1): 8.0, (1, 0): 7.0, (2, 0): 5.0, (1, 3): 4.5, (3, 2): 1.0, (0, 3): 0.5})
        design = OcsGreedy().solve(instance(4, 2, traffic, optics="duplex"), Limits()).solution
        assert design.links == ((0, 1, 1), (0, 2, 1), (1, 3, 1), (2, 3, 1))

    def test_halved_demand_may_win_again(self):
        """01 at 8 and at its half, 4, before 02 at 3."""
        traffic = matrix(4, {(0, 1): 8.0, (0, 2): 3.0, (2, 3): 2.0})
        design = OcsGreedy().solve(instance(4, 3, traffic), Limits()).solution
        assert {(i, j): count for i, j, count in design.links}[0, 1] == 2

    def test_components_are_joined_through_their_cheapest_links(self):
        """Two pairs with double links and no port free: each gives one up."""
        traffic = matrix(4, {(0, 1): 8.0, (2, 3): 6.0, (0, 3): 0.1})
        design = OcsGreedy().solve(instance(4, 2, traffic, optics="duplex"), Limits()).solution
        assert [count for _, _, count in design.links] == [1, 1, 1, 1]
        assert nx.is_connected(nx.Graph([(i, j) for i, j, _ in design.links]))

    def test_rings_are_demands(self):
        """The +1 ring of the only group is laid, in both directions, which splits the gradient."""
        design = OcsGreedy().solve(instance(8, 2, np.zeros((8, 8)), [(range(8), 8.0)]), Limits()).solution
        assert {(j - i) % 8 for i, j, _ in design.links} == {1, 7}
        assert [ring.share for ring in design.rings] == [0.5, 0.5]


class TestReferences:
    TRAFFIC = matrix(4, {(0, 1): 6.0, (2, 1): 4.0})
    PROBLEM = instance(4, 2, TRAFFIC, [(range(4), 8.0)], compute_s=1.5)

    def test_ideal_switch_by_hand(self):
        """Server 1 receives 6 + 4 and 2 * 3/4 * 8 = 12 of the ring: 22 bytes over two links' bandwidth."""
        result = IdealSwitch().solve(self.PROBLEM, Limits())
        assert result.objective == pytest.approx(1.5 + 11.0)
        assert (result.status, result.solution, result.bound, result.checked) == (Status.REFERENCE, None, None, False)
        assert result.method == "ideal-switch"

    def test_fat_tree_costs_as_much_at_less_bandwidth(self):
        assert FatTree().solve(self.PROBLEM, Limits()).objective == pytest.approx(1.5 + 11.0 * 3.2)
        assert FatTree(cost_ratio=1.0).solve(self.PROBLEM, Limits()).objective == pytest.approx(12.5)

    def test_overlap_hides_what_it_can(self):
        hidden = self.PROBLEM.model_copy(update={"overlap": "full", "compute_s": 40.0})
        assert FatTree().solve(hidden, Limits()).objective == 40.0

    def test_ratio_out_of_range(self):
        with pytest.raises(OptionError, match="cost_ratio"):
            FatTree(cost_ratio=0.0)


def test_components_are_joined_by_the_links_of_least_demand():
    demand = np.zeros((6, 6))
    for pair, bytes_ in {(0, 1): 5, (0, 2): 2, (1, 2): 7, (3, 4): 6, (3, 5): 8, (4, 5): 3}.items():
        demand[pair] = demand[pair[::-1]] = bytes_
    draft = Draft(job(demand, optics="duplex"))
    draft.add(draft.two_way([(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]))
    join_all(draft, demand, np.random.default_rng(0))
    laid = {(i, j) for (i, j), count in draft.links.items() if count > 0 and i < j}
    assert laid == {(0, 1), (1, 2), (3, 4), (3, 5), (0, 4), (2, 5)}
