"""Special exact methods for topologies, and when ``exact`` asks them."""

from dataclasses import dataclass
from math import comb

from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.frontier.topology.hop_enumeration import HopEnumeration
from ddlopt.models.topology import TopologyInstance
from ddlopt.solvers.contracts import Method


@dataclass(frozen=True)
class Effort:
    """Sizes at which the special methods are asked, and why these."""

    branched_servers: int = 8
    """With traffic of any kind the branch and bound ends up to this size in minutes, where a general model does not."""
    branched_sets: int = 100
    """Multisets of neighbours a server may have: with more of them a level of the tree is too wide for that."""
    interchangeable_servers: int = 11
    """The same where all servers are interchangeable: few of their orders are left."""
    reducing_servers: int = 6
    """Beside all-reduce groups the bound of a node is weak, so that few servers are branched on."""
    reducing_sets: int = 30
    """Beside groups up to the eight servers, too, if so few sets of neighbours lead to leaves soon."""
    bound_first: int = 7
    """Servers below which the tree of neighbours ends before a program for a bound is built."""


_EFFORT = Effort()


def bound_first(instance: TopologyInstance, solver: str) -> Method | None:
    """A bound from hops alone, where it takes seconds and no listing of links or short tree gives a better one."""
    if instance.servers < _EFFORT.bound_first:
        return None
    from ddlopt.frontier.topology.volume_bound import VolumeBound  # with Pyomo and HiGHS

    method = VolumeBound()
    listed = HopEnumeration().refuses(instance) is None
    return None if listed or solver != "highs" or method.refuses(instance) is not None else method


def link(instance: TopologyInstance, solver: str) -> Method | None:
    """The special method that ends where a formulation does not."""
    listing = HopEnumeration()
    if listing.refuses(instance) is None and not _few_with_groups(instance):
        return listing
    few = _few_with_groups(instance) if instance.allreduce_groups else _few_neighbours(instance)
    return BranchAndBound() if few else None


def _few_with_groups(instance: TopologyInstance) -> bool:
    """Whether the branch and bound ends although there are all-reduce groups."""
    if not instance.allreduce_groups or not instance.host_forwarding:
        return False
    few_sets = instance.servers <= _EFFORT.branched_servers and _sets(instance) <= _EFFORT.reducing_sets
    return few_sets or instance.servers <= _EFFORT.reducing_servers


def _few_neighbours(instance: TopologyInstance) -> bool:
    """Whether the branch and bound ends, in seconds or minutes: few servers and ports, or more that are symmetric."""
    n = instance.servers
    symmetric = n <= _EFFORT.interchangeable_servers and instance.servers_are_interchangeable
    return symmetric or (n <= _EFFORT.branched_servers and _sets(instance) <= _EFFORT.branched_sets)


def _sets(instance: TopologyInstance) -> int:
    """Multisets of neighbours that a server may have."""
    return comb(instance.servers + instance.degree - 2, instance.degree)
