"""What there is to say to a plan of one's own."""

from importlib import import_module
from importlib.util import find_spec

from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Instance, Solution
from ddlopt.solvers.contracts import Result


def findings(instance: Instance, solution: Solution, result: Result) -> list[str]:
    """What a person asks of a plan of their own: what limits it, how far it is from the best, what would make it fit.

    Parameters
    ----------
    instance : Instance
    solution : Solution
    result : Result
        The best plan that was found, and a bound on all.
    """
    evaluation = problem_of(instance).evaluate(instance, solution)
    found = advice(instance, solution)
    if result.bound is not None:
        found.append(f"no plan takes less than {result.bound:.6g} {instance.objective_unit}")
    if evaluation.feasible and evaluation.objective is not None and result.bound:
        gap = float(evaluation.objective) / result.bound - 1
        found.append(f"this one is {max(0.0, gap):.2%} above that")
    if result.solution is not None and result.objective is not None:
        found.append(
            f"the best that was found takes {result.objective:.6g} {instance.objective_unit} ({result.method})"
        )
    elif result.message:
        found.append(result.message)
    return found


def advice(instance: Instance, solution: Solution) -> list[str]:
    """What a problem has to say to a plan, by ``advice`` of its room in the solvers; nothing where it has none."""
    place = f"ddlopt.solvers.{problem_of(instance).path.replace('/', '.')}.advice"
    found: list[str] = import_module(place).advice(instance, solution) if find_spec(place) else []
    return found
