"""A special method for collectives, and when ``exact`` asks it."""

from ddlopt.frontier.topology.collective.shifted import Shifted
from ddlopt.models.topology.collective.instance import CollectiveInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.topology.collective.methods import first, opened, packed

_FEW = 64
"""Accelerators up to which trees are packed at once: shallower than shifted ones, and there in a second."""
_SHARE = 0.5
"""Part of the time for shifted trees; what they leave open packed ones have the rest for."""


def link(instance: CollectiveInstance, solver: str) -> Method | None:
    """Where accelerators are many and alike, trees of a few of them are shifted to all."""
    if instance.accelerators <= _FEW or instance.collective == "all-to-all":
        return None
    return opened(instance, first(Shifted(), _SHARE, packed(instance, solver)), solver)
