"""Special exact methods for topologies, and when ``exact`` asks them."""

from math import comb

from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.frontier.topology.hop_enumeration import HopEnumeration
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.formulations.rows.numbering import interchangeable
from ddlopt.solvers.contracts import Method

_BRANCHED_SERVERS, _BRANCHED_SETS, _ALIKE_SERVERS = 8, 100, 11
"""What the branch and bound searches to the end, where a general model does not: sizes with traffic of any kind, and
with servers that can all be exchanged."""
_REDUCING_SERVERS, _REDUCING_SETS = 6, 30
"""With all-reduce groups, where the bound of a node is weak: few servers, or up to the eight with so few sets of
neighbours that leaves are soon met. Without forwarding the model is small and ends at once."""


_BOUND_FIRST = 7
"""Servers below which the tree of neighbours ends before a program for a bound is built."""


def bound_first(instance: TopologyInstance, solver: str) -> Method | None:
    """A bound from hops alone, where it takes seconds and no listing of links or short tree gives a better one."""
    if instance.servers < _BOUND_FIRST:
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
    few_sets = instance.servers <= _BRANCHED_SERVERS and _sets(instance) <= _REDUCING_SETS
    return few_sets or instance.servers <= _REDUCING_SERVERS


def _few_neighbours(instance: TopologyInstance) -> bool:
    """Whether the branch and bound ends, in seconds or minutes: few servers and ports, or more that are symmetric."""
    n = instance.servers
    alike = n <= _ALIKE_SERVERS and any(len(twins) == n for twins in interchangeable(instance))
    return alike or (n <= _BRANCHED_SERVERS and _sets(instance) <= _BRANCHED_SETS)


def _sets(instance: TopologyInstance) -> int:
    """Multisets of neighbours that a server may have."""
    return comb(instance.servers + instance.degree - 2, instance.degree)
