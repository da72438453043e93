"""What a solution is worth that somebody gives, apart from methods so that a guard need not load their solvers."""

from typing import Any

from ddlopt.models.catalogue import family as family_of
from ddlopt.models.errors import SolutionError


def known_objective(instance: Any, start: Any) -> float | None:
    """The objective of a start, as the check of its family finds it; None without a feasible one."""
    if start is None:
        return None
    try:
        found = family_of(instance.family).evaluate(instance, start)
    except SolutionError:
        return None
    return float(found.objective) if found.feasible and found.objective is not None else None
