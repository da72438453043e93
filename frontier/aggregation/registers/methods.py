"""A special exact method for the problem ``registers``, and when ``exact`` asks it."""

from ddlopt.frontier.aggregation.registers.enumeration import RegisterTree
from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.solvers.aggregation.registers.methods import opened
from ddlopt.solvers.contracts import Method


def link(instance: RegisterInstance, solver: str) -> Method | None:
    """For packets the enumeration, after an annealing."""
    if instance.goal != "packets":
        return None
    return opened(instance, "exact", lambda _: RegisterTree(), solver, relaxation=True)
