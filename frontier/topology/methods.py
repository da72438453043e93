"""Special exact methods for topologies, and when ``exact`` asks them."""

from math import comb

from ddlopt.frontier.topology.branch_and_bound.branch_and_bound import BranchAndBound
from ddlopt.frontier.topology.hop_enumeration import HopEnumeration
from ddlopt.models.topology import TopologyInstance
from ddlopt.models.topology.symmetry.server_symmetry import interchangeable
from ddlopt.solvers.backends import backend
from ddlopt.solvers.contracts import Method

_BRANCHED_SERVERS, _BRANCHED_SETS, _ALIKE_SERVERS = 8, 100, 11
"""What the branch and bound searches to the end, where a general model does not: sizes with traffic of any kind, and
with servers that can all be exchanged."""
_REDUCING_SERVERS = 6
"""With all-reduce groups, where the bound of a node is weak; without forwarding the model is small and ends at once."""


def link(instance: TopologyInstance, solver: str) -> Method | None:
    """The special method that ends where a formulation does not."""
    if instance.allreduce_groups and instance.servers <= _REDUCING_SERVERS and instance.host_forwarding:
        return BranchAndBound()
    listing = HopEnumeration()
    if listing.refuses(instance) is None:
        return listing
    return BranchAndBound() if not instance.allreduce_groups and _few_neighbours(instance) else None


def _few_neighbours(instance: TopologyInstance) -> bool:
    """Whether the branch and bound ends, in seconds or minutes: few servers with few ports, or more that are alike."""
    n, d = instance.servers, instance.degree
    alike = n <= _ALIKE_SERVERS and any(len(twins) == n for twins in interchangeable(instance))
    return alike or (n <= _BRANCHED_SERVERS and comb(n + d - 2, d) <= _BRANCHED_SETS)


def circulant(solver: str) -> Method:
    """The method ``circulant``, with a solver behind it."""
    from ddlopt.frontier.topology.circulant import Circulant
    from ddlopt.frontier.topology.formulations.circulant import CirculantDesign

    return Circulant("circulant", "topology", CirculantDesign(), backend(solver))
