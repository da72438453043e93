"""Special methods for collectives, and when ``exact`` asks them."""

from ddlopt.frontier.topology.collective.columns import TreeColumns
from ddlopt.frontier.topology.collective.shifted import Shifted
from ddlopt.models.topology.collective.instance import CollectiveInstance
from ddlopt.solvers.contracts import Method
from ddlopt.solvers.topology.collective.methods import first, opened, packed

_FEW = 64
"""Accelerators up to which trees are packed at once: shallower than shifted ones, and there in a second."""
_MOST_COLUMNS = 512
"""Accelerators up to which columns are generated: a round looks for a tree of each in a dense matrix."""
_SHARE = 0.5
"""Part of the time for shifted trees; what they leave open packed ones have the rest for."""


def link(instance: CollectiveInstance, solver: str) -> Method | None:
    """Column generation behind packed trees; where accelerators are many, trees of a few are shifted to all."""
    pairs = instance.collective == "all-to-all"
    columns = TreeColumns() if pairs or instance.accelerators <= _MOST_COLUMNS else None
    usual = packed(instance, solver, columns)
    if pairs or instance.accelerators <= _FEW:
        return opened(instance, usual, solver)
    return opened(instance, first(Shifted(), _SHARE, usual), solver)
