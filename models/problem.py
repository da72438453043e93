"""What belongs to one problem, and to a family of them, as data: whoever needs to know asks the record."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any, Self

from ddlopt.models import announced_bounds
from ddlopt.models.contracts import Evaluation, Formulation, Instance, Solution
from ddlopt.models.errors import SolutionError, UnknownNameError, a_or_an

Evaluate = Callable[..., Evaluation]
"""``evaluate(instance, solution, exact=False)``, the independent check."""
Bounding = Callable[[Any], float | None]
"""``bound(instance)``, found without a solver; see :class:`Problem`."""


def later(name: str) -> Callable[..., Any]:
    """The function ``"module:function"``, imported when it is called: what it calculates with takes long to import."""
    module, _, function = name.partition(":")

    def call(*arguments: Any, **options: Any) -> Any:
        return getattr(import_module(module), function)(*arguments, **options)

    return call


def _columns() -> dict[str, str]:
    return {"problem": "problem", "size": "size"}


def always(*modules: str) -> Callable[[Any], tuple[str, ...]]:
    """The same modules whatever the instance."""
    return lambda _: modules


_NO_KERNELS = always()


@dataclass(frozen=True)
class Problem:
    """One statement with one class of instances and one of answers: ``PROBLEM`` of the room's ``problem.py``.

    Parameters
    ----------
    path : str
        The room: ``"aggregation/tree"``, or ``"topology"`` in a family of one problem; the same in every storey.
    title : str
        What is decided, in one line for people.
    counts : str
        What the size of an instance is the number of.
    limited_by : str
        What keeps the objective from being any better, for people.
    instance, solution : type
    evaluate : callable
        The independent check, ``evaluate(instance, solution, exact=False)``.
    bound : callable
        A combinatorial bound on the objective of every solution of an instance, found without a solver: from below
        where the objective is minimised, from above where it is maximised, None where there is none.
    relaxations : mapping
        Formulations over which bounds are proven, by the name that certificates give them, besides those of exact
        methods: each has every solution of the instance, at no more than it costs, and may have more.
    told_exactly : tuple of str
        Details of the check that are shown as fractions beside their digits.
    kernels : callable
        Modules whose kernels ``evaluate`` and ``bound`` call on an instance; see ``ddlopt.models.compilation``.
    columns : mapping
        Which attributes of an instance tables show, by header; of a tuple its length. The first is the size.
    """

    path: str
    title: str
    counts: str
    limited_by: str
    instance: type[Instance]
    solution: type[Solution]
    evaluate: Evaluate
    bound: Bounding
    relaxations: Mapping[str, Callable[[], Formulation]] = field(default_factory=dict)
    told_exactly: tuple[str, ...] = ()
    kernels: Callable[[Any], tuple[str, ...]] = _NO_KERNELS
    columns: Mapping[str, str] = field(default_factory=_columns)

    def tightest_bound(self, instance: Instance) -> float | None:
        """The better of ``bound`` and of those that the frontier announces."""
        return announced_bounds.tightest(instance, self.path, self.bound(instance))

    def kernels_for(self, instance: Instance) -> tuple[str, ...]:
        """What ``evaluate`` and the tightest bound call on an instance."""
        return (*self.kernels(instance), *announced_bounds.kernels(instance, self.path))

    def module(self, storey: str, name: str = "") -> ModuleType | None:
        """What the room has in another storey: ``ddlopt.<storey>.<path>``, or the module ``name`` in that folder.

        Parameters
        ----------
        storey : str
            ``"solvers"``, ``"analysis.pictures"``, ``"instances.library"``.

        Returns
        -------
        module or None
            None where there is none.
        """
        wanted = ".".join(filter(None, ("ddlopt", storey, *self.path.split("/"), name)))
        try:
            return import_module(wanted)
        except ModuleNotFoundError as missing:
            if f"{wanted}.".startswith(f"{missing.name}."):
                return None
            raise  # the module is there, and something that it imports is not


def records(*modules: str) -> tuple[Problem, ...]:
    """The ``PROBLEM`` of each module, by its full name."""
    return tuple(import_module(module).PROBLEM for module in modules)


@dataclass(frozen=True)
class Family:
    """A topic, with one problem or several: ``FAMILY`` of the family's folder.

    Parameters
    ----------
    name, title : str
    instance, solution : type
        Of every problem; reading one gives the class that its field ``problem`` names.
    problems : tuple of Problem
    evaluate, bound : callable
        Those of the instance's problem.
    """

    name: str
    title: str
    instance: type[Instance]
    solution: type[Solution]
    problems: tuple[Problem, ...]
    evaluate: Evaluate
    bound: Bounding

    @classmethod
    def of_one(cls, title: str, problem: Problem) -> Self:
        """The family whose folder is the room of its only problem."""
        told = problem.instance, problem.solution, (problem,), problem.evaluate, problem.tightest_bound
        return cls(problem.path, title, *told)

    @classmethod
    def of_several(
        cls, name: str, title: str, instance: type[Instance], solution: type[Solution], problems: tuple[Problem, ...]
    ) -> Self:
        """A family with a room for each problem."""

        def evaluate(instance: Instance, solution: Solution, exact: bool = False) -> Evaluation:
            """Objective of an answer and every constraint that it violates.

            Parameters
            ----------
            exact : bool
                Calculate in rational numbers, or with proven bounds where the objective is none.

            Returns
            -------
            Evaluation
                The objective as the instance has it (None where the answer names what does not exist). Details: see
                the check of the problem.

            Raises
            ------
            SolutionError
                If the answer says that it answers another instance, or is one to another problem of the family.
            """
            solution.belongs_to(instance)
            problem = _of(problems, instance)
            if not isinstance(solution, problem.solution):
                raise SolutionError(f"{a_or_an(solution.kind)} cannot answer the {instance.kind} '{instance.name}'")
            return problem.evaluate(instance, solution, exact)

        def bound(instance: Instance) -> float | None:
            """The bound of the instance's problem that needs no solver; None where there is none."""
            return _of(problems, instance).tightest_bound(instance)

        return cls(name, title, instance, solution, problems, evaluate, bound)

    def problem_of(self, instance: Instance) -> Problem:
        """The problem that an instance is one of.

        Raises
        ------
        UnknownNameError
            If it is none of the family's.
        """
        return _of(self.problems, instance)


def _of(problems: tuple[Problem, ...], instance: Instance) -> Problem:
    path = path_of(instance)
    for problem in problems:
        if problem.path == path:
            return problem
    raise UnknownNameError(f"there is no problem '{path}'; there are: {', '.join(each.path for each in problems)}")


def path_of(instance: Instance) -> str:
    """The path of an instance's problem: its family, and in a family of several problems its field ``problem``."""
    within: str | None = getattr(instance, "problem", None)
    return instance.family if within is None else f"{instance.family}/{within}"
