"""A special exact method for the problem ``matchings``, and when ``exact`` asks it."""

from ddlopt.frontier.gossip.matchings.branch_and_bound import MatchingsBranchAndBound
from ddlopt.models.gossip.matchings.instance import MatchingsInstance
from ddlopt.solvers.contracts import Method


def link(instance: MatchingsInstance, _: str) -> Method | None:
    """Branch and bound, where it covers the instance."""
    tree = MatchingsBranchAndBound()
    return tree if tree.refuses(instance) is None else None
