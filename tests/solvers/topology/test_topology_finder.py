import itertools

import numpy as np
import pytest

from ddlopt.models.errors import NotApplicableError, OptionError
from ddlopt.models.topology import AllReduceGroup, TopologyInstance
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.topology.topoopt.topology_finder import TopologyFinder, allreduce_degree, released_degree

PAPER, RELEASED = TopologyFinder(), TopologyFinder(variant="released")


def instance(n, degree, groups=(), traffic=None, **options):
    """Groups as (members, gradient bytes); unit bandwidth, so that objectives are bytes."""
    return TopologyInstance(
        name="test",
        servers=n,
        degree=degree,
        link_bandwidth_bytes_per_s=1,
        allreduce_groups=tuple(AllReduceGroup(members=tuple(m), gradient_bytes=size) for m, size in groups),
        traffic_bytes=np.zeros((n, n)) if traffic is None else traffic,
        **options,
    )


def all_to_all(n, amount=1.0):
    return amount * (np.ones((n, n)) - np.eye(n))


def solve(method, problem, seed=0):
    return method.solve(problem, Limits(), seed=seed)


class TestDegreeSplit:
    """A group of 4 with gradient S puts 6S on wires; twelve pairs with S/2 each put 6S there too."""

    HALF = instance(4, 3, [(range(4), 2.0)], all_to_all(4))

    def test_paper(self):
        assert allreduce_degree(self.HALF) == 2  # ceil(1.5)
        assert allreduce_degree(self.HALF.model_copy(update={"degree": 2})) == 1
        assert allreduce_degree(instance(4, 3, [(range(4), 2.0)])) == 3
        assert allreduce_degree(instance(4, 3, traffic=all_to_all(4))) == 1

    def test_paper_needs_pairs_of_ports_for_duplex_rings(self):
        assert allreduce_degree(self.HALF.model_copy(update={"degree": 2, "optics": "duplex"})) == 2
        assert allreduce_degree(instance(4, 3, [(range(4), 2.0)], optics="duplex")) == 2  # 3 is odd, 4 too many
        assert allreduce_degree(instance(4, 3, [((0, 1), 2.0)], optics="duplex")) == 3  # two members: one port a ring
        assert allreduce_degree(instance(2, 1, [((0, 1), 2.0)], optics="duplex")) == 1

    def test_released(self):
        assert [released_degree(self.HALF.model_copy(update={"degree": d})) for d in (1, 2, 3)] == [1, 2, 2]
        assert released_degree(instance(8, 6, traffic=all_to_all(8)), "two") == 2
        # The code counts (2k - 1) S = 14 against 14: lround(0.5 * 6) = 3, made even.
        traffic = np.zeros((8, 8))
        traffic[0, 1] = 14
        assert released_degree(instance(8, 6, [(range(4), 2.0)], traffic), "rounded") == 4
        assert released_degree(instance(8, 6, traffic=traffic), "rounded") == 2


class TestPaper:
    def test_sixteen_servers(self):
        """Rings +1, +3, +7 share the gradient: 2 * 15/16 * 48 / 3 bytes on every link, which is optimal."""
        result = solve(PAPER, instance(16, 3, [(range(16), 48.0)]))
        assert result.details["generators"] == {"0": [1, 3, 7]}
        assert result.objective == pytest.approx(30.0)
        assert result.gap == pytest.approx(0)
        assert {(j - i) % 16 for i, j, _ in result.solution.links} == {1, 3, 7}

    def test_duplex_rings_carry_both_directions(self):
        """Degree 4 on 16 servers: two rings, each both ways, a quarter of 2 * 15/16 * 64 each."""
        result = solve(PAPER, instance(16, 4, [(range(16), 64.0)], optics="duplex"))
        assert result.details["generators"] == {"0": [1, 3]}
        assert len(result.solution.rings) == 4
        assert result.objective == pytest.approx(30.0)

    def test_groups_without_links_ride_on_the_coins_of_others(self):
        """Rings +1 and +3; the even servers' rings need 2 = 1 + 1 or 6 = 3 + 3, two hops each."""
        result = solve(PAPER, instance(16, 2, [(range(16), 1e6), (range(0, 16, 2), 1.0)]))
        assert result.details["generators"] == {"0": [1, 3], "1": [1, 3]}
        rings = [ring for ring in result.solution.rings if ring.group == 1]
        steps = {tuple((j - i) % 16 for i, j in itertools.pairwise(path)) for ring in rings for path in ring.paths}
        assert steps == {(1, 1), (3, 3)}
        assert [ring.share for ring in rings] == [0.5, 0.5]

    def test_disjoint_groups_do_not_share_a_budget(self):
        result = solve(PAPER, instance(8, 2, [(range(4), 4.0), (range(4, 8), 4.0)]))
        assert result.details["generators"] == {"0": [1, 3], "1": [1, 3]}
        assert result.objective == pytest.approx(2 * 3 / 4 * 4 / 2)

    def test_generators_are_used_again_where_they_run_out(self):
        """Four members have the rings +1 and +3 only; three ports make one of them double."""
        problem = instance(4, 3, [(range(4), 4.0)])
        result = solve(PAPER, problem)
        assert result.details["generators"] == {"0": [1, 3, 1]}
        assert result.objective == pytest.approx(2.0)
        single = solve(PAPER, problem.model_copy(update={"parallel_links": False}))
        assert single.details["generators"] == {"0": [1, 3]}

    def test_members_that_are_no_coset_make_rings_by_position(self):
        result = solve(PAPER, instance(8, 1, [((0, 1, 5), 3.0)]))
        assert result.solution.rings[0].members == (0, 1, 5)
        assert result.solution.links == ((0, 1, 1), (1, 5, 1), (5, 0, 1))

    def test_without_groups_one_ring_joins_everybody(self):
        result = solve(PAPER, instance(6, 2, traffic=all_to_all(6)))
        counts = {(i, j) for i, j, _ in result.solution.links}
        assert {(v, (v + 1) % 6) for v in range(6)} <= counts
        assert result.details["allreduce_degree"] == 1

    def test_a_ring_over_all_servers_repairs_what_groups_leave_apart(self):
        """Degree 1: the group's own ring would cut off server 3, so the group rides on the ring over all."""
        traffic = np.zeros((4, 4))
        traffic[3, 0] = 1.0
        result = solve(PAPER, instance(4, 1, [((0, 1, 2), 9.0)], traffic))
        assert result.solution.links == ((0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1))
        # 2 * 2/3 * 9 bytes a hop; the hop 2 -> 0 runs over server 3.
        assert result.objective == pytest.approx(13.0)

    def test_traffic_avoids_the_links_that_rings_fill(self):
        """Routes are balanced on top of the rings' load: a matched pair keeps to its own doubled link."""
        traffic = np.zeros((4, 4))
        traffic[0, 2] = traffic[2, 0] = 6.0
        result = solve(PAPER, instance(4, 2, [(range(4), 2.0)], traffic))
        assert result.solution.links == ((0, 1, 1), (0, 2, 1), (1, 2, 1), (2, 0, 1), (2, 3, 1), (3, 0, 1))
        assert result.objective == pytest.approx(6.0)

    def test_an_odd_duplex_ring_goes_without_a_link(self):
        result = solve(PAPER, instance(5, 2, [(range(5), 5.0)], optics="duplex"))
        assert result.details["dropped_links"] == 1
        assert result.objective == pytest.approx(8.0)  # both directions of half the 8 bytes a hop, twice


class TestReleased:
    def test_generators_with_their_reverses(self):
        result = solve(RELEASED, instance(16, 4, [(range(16), 64.0)]))
        assert result.details["generators"] == {"0": [1, 5]}
        assert {(j - i) % 16 for i, j, _ in result.solution.links} == {1, 15, 5, 11}
        assert result.objective == pytest.approx(30.0)

    def test_duplex_and_one_way_are_the_same_network(self):
        problem = instance(16, 4, [(range(16), 64.0)], all_to_all(16))
        duplex = problem.model_copy(update={"optics": "duplex"})
        assert solve(RELEASED, problem).objective == solve(RELEASED, duplex).objective

    def test_the_largest_size_takes_all_ports_in_all_cosets_but_for_one_ring(self):
        result = solve(RELEASED, instance(16, 4, [(range(0, 16, 2), 8.0), (range(16), 1.0)]))
        assert {(j - i) % 16 for i, j, _ in result.solution.links} == {1, 15, 2, 14}
        assert result.details["generators"] == {"0": [1], "1": [1]}

    def test_other_sizes_take_one_shortest_ring_and_its_reverse(self):
        """Coins 1, 15, 5, 11; groups of four need 4 or 12: 5 + 15 and its reverse."""
        result = solve(RELEASED, instance(16, 4, [(range(16), 1e6), (range(0, 16, 4), 1.0)]))
        rings = [ring for ring in result.solution.rings if ring.group == 1]
        assert [ring.members for ring in rings] == [(0, 4, 8, 12), (0, 12, 8, 4)]
        assert {len(path) for ring in rings for path in ring.paths} == {3}

    def test_no_matching_runs_unless_the_split_is_a_historic_one(self):
        problem = instance(8, 4, [(range(8), 1.0)], all_to_all(8, 10.0))
        latest = solve(RELEASED, problem)
        assert {(j - i) % 8 for i, j, _ in latest.solution.links} <= {1, 3, 5, 7}
        assert sum(count for _, _, count in latest.solution.links) == 32
        historic = solve(TopologyFinder("released", released_split="two"), problem)
        assert historic.details["generators"] == {"0": [1]}
        assert historic.details["allreduce_degree"] == 2
        assert sum(count for _, _, count in historic.solution.links) == 32

    def test_matchings_see_the_lower_triangle_only(self):
        """Traffic 0 -> 3 is above the diagonal and counts for nothing; 2 -> 0 is below."""
        traffic = np.zeros((4, 4))
        traffic[0, 3], traffic[2, 0], traffic[3, 1] = 100.0, 1.0, 1.0
        result = solve(TopologyFinder("released", released_split="two"), instance(4, 3, [(range(4), 1.0)], traffic))
        assert {(0, 2), (2, 0), (1, 3), (3, 1)} <= {(i, j) for i, j, _ in result.solution.links}

    def test_degree_one_leaves_one_direction(self):
        result = solve(RELEASED, instance(5, 1, [(range(5), 5.0)]))
        assert result.solution.links == tuple((v, (v + 1) % 5, 1) for v in range(5))


@pytest.mark.parametrize("method", [PAPER, RELEASED], ids=lambda method: method.name)
def test_without_forwarding_a_missing_link_is_a_reason_to_refuse(method):
    with pytest.raises(NotApplicableError, match=r"host_forwarding is off\) to server"):
        solve(method, instance(8, 2, traffic=all_to_all(8), host_forwarding=False))


def test_without_forwarding_direct_links_are_enough():
    traffic = np.zeros((4, 4))
    traffic[0, 1] = traffic[2, 3] = 5.0
    result = solve(PAPER, instance(4, 1, traffic=traffic, host_forwarding=False))
    assert result.objective == 5.0


def test_duplex_degree_one_joins_pairs_only():
    with pytest.raises(NotApplicableError, match="without a path to server"):
        solve(PAPER, instance(4, 1, [(range(4), 1.0)], optics="duplex"))


@pytest.mark.parametrize(
    "options", [{"variant": "draft"}, {"released_split": "half"}, {"paths_per_pair": 0}], ids=lambda o: next(iter(o))
)
def test_options_out_of_range(options):
    with pytest.raises(OptionError, match=next(iter(options))):
        TopologyFinder(**options)


def test_ports_and_generators_may_be_given():
    """One ingredient at a time can be swapped, to see what it costs."""
    problem = instance(16, 4, [(range(16), 100.0), (range(0, 16, 2), 10.0)], all_to_all(16, 0.1))
    usual = solve(TopologyFinder(), problem)
    ports = usual.details["allreduce_degree"]
    same = solve(TopologyFinder(allreduce_ports=ports), problem)
    assert same.solution.links == usual.solution.links
    two = solve(TopologyFinder(allreduce_ports=2, generators=(3, 4, 5)), problem)
    assert two.details["allreduce_degree"] == 2
    # 4 is no generator of 16 servers.
    assert two.details["generators"]["0"] == [3, 5]
    assert two.checked
    none = solve(TopologyFinder(allreduce_ports=0), problem)
    assert none.checked
    with pytest.raises(OptionError):
        TopologyFinder(allreduce_ports=-1)
