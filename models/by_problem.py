"""Families with several problems: what is asked of one is found in the modules of the problem.

Of a problem ``p`` in family ``f``, ``ddlopt.models.f.p.evaluate`` has ``evaluate_p(instance, solution, exact)``, the
independent check, and ``ddlopt.models.f.p.bounds`` has ``p_bound(instance)``. They are imported when they are needed.
"""

from importlib import import_module
from typing import Any

from ddlopt.models.contracts import Evaluation
from ddlopt.models.errors import SolutionError


def evaluated(instance: Any, solution: Any, exact: bool = False) -> Evaluation:
    """What the check of the instance's problem says.

    Raises
    ------
    SolutionError
        If the answer says that it answers another instance, or is one to another problem of the family.
    """
    solution.belongs_to(instance)
    if solution.problem != instance.problem:
        raise SolutionError(f"a {solution.kind} cannot answer the {instance.kind} '{instance.name}'")
    module = import_module(f"ddlopt.models.{instance.family}.{instance.problem}.evaluate")
    found: Evaluation = getattr(module, f"evaluate_{instance.problem}")(instance, solution, exact)
    return found


def bounded(instance: Any) -> float | None:
    """The bound of the instance's problem that needs no solver; None where there is none."""
    module = import_module(f"ddlopt.models.{instance.family}.{instance.problem}.bounds")
    found: float | None = getattr(module, f"{instance.problem}_bound")(instance)
    return found
