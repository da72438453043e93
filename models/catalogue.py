"""The families and problems there are: a new family is a new folder and one name here."""

from functools import cache
from importlib import import_module
from pathlib import Path

from ddlopt.models.contracts import Evaluation, Instance, Solution
from ddlopt.models.errors import SolutionError, UnknownNameError, a_or_an
from ddlopt.models.problem import Family, Problem

FAMILY_NAMES = ("topology", "scheduling", "compression", "codesign", "deployment", "aggregation", "gossip", "cluster")
"""Names of the families, which are folders."""


@cache
def family(name: str) -> Family:
    """The family of that name: ``FAMILY`` of its folder, imported on first use.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    if name not in FAMILY_NAMES:
        raise unknown_family(name)
    found: Family = import_module(f"ddlopt.models.{name}").FAMILY
    return found


def unknown_family(name: str) -> UnknownNameError:
    """What to say where no family has that name; a problem may have it."""
    around = name.partition("/")[0]
    if around in FAMILY_NAMES and name in problems():
        return UnknownNameError(f"there is no family '{name}', which is a problem of the family '{around}'")
    return UnknownNameError(f"there is no family '{name}'; there are: {', '.join(FAMILY_NAMES)}")


@cache
def problems() -> dict[str, Problem]:
    """All problems by path, in the order in which they are listed."""
    return {problem.path: problem for name in FAMILY_NAMES for problem in family(name).problems}


def problem(path: str) -> Problem:
    """The problem of that path: ``"aggregation/tree"``.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    found = next((each for each in family(path.partition("/")[0]).problems if each.path == path), None)
    if found is None:
        raise UnknownNameError(f"there is no problem '{path}'; there are: {', '.join(problems())}")
    return found


def problem_of(instance: Instance) -> Problem:
    """The problem that an instance is one of."""
    return family(instance.family).problem_of(instance)


def outside_of_room(answering: object, instance: Instance) -> str | None:
    """Why a formulation or a method does not cover an instance of another family, or of a room within its own room.

    A family's folder may be the room of a problem, with rooms of others inside it: what stands there is of that one.

    Returns
    -------
    str or None
        None where this says nothing.
    """
    package, *folders = type(answering).__module__.split(".")
    if package != "ddlopt" or len(folders) < 2 or folders[1] not in FAMILY_NAMES:
        return None
    if folders[1] != instance.family:
        return f"it is of {folders[1]}, and this is {a_or_an(instance.kind)}"
    room, where = problem_of(instance).path, "/".join((*folders[1:], ""))
    around = next((each.path for each in family(instance.family).problems if room.startswith(f"{each.path}/")), None)
    if around is None or not where.startswith(f"{around}/") or where.startswith(f"{room}/"):
        return None
    return f"it is of {around}, and this is {a_or_an(instance.kind)}"


def other_kind(instance: Instance, answered: type[Instance]) -> str | None:
    """Why a formulation or a method does not cover an instance of another problem; None for one of its own."""
    return (
        None
        if isinstance(instance, answered)
        else f"it answers {a_or_an(answered.kind)}, and this is {a_or_an(instance.kind)}"
    )


def solution_of(instance: Instance, solution: Solution | str | Path) -> Solution:
    """A solution of an instance, or from its file.

    Raises
    ------
    SolutionError
        If it cannot be read, or says that it answers another instance.
    """
    if not isinstance(solution, Solution):
        solution = family(instance.family).solution.from_file(solution)
    solution.belongs_to(instance)
    return solution


def require_feasible(instance: Instance, solution: Solution) -> Evaluation:
    """What the check says of a solution that is feasible.

    Raises
    ------
    SolutionError
        If it violates a constraint, or is of another instance or problem.
    """
    found = problem_of(instance)
    solution.belongs_to(instance)
    if not isinstance(solution, found.solution):
        raise SolutionError(f"{a_or_an(solution.kind)} cannot answer the {instance.kind} '{instance.name}'")
    evaluation = found.evaluate(instance, solution)
    if not evaluation.feasible or evaluation.objective is None:
        first, *others = [str(each) for each in evaluation.violations] or ["it has no objective"]
        more = f" (and {len(others)} more: ddlopt check)" if others else ""
        raise SolutionError(f"the {solution.kind} is infeasible for '{instance.name}': {first}{more}")
    return evaluation
