"""What a back end takes and gives: a Pyomo model in, variable values and an :class:`Outcome` out."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from ddlopt.solvers.contracts import Limits, ProgressCallback, Status, TracePoint

if TYPE_CHECKING:
    import pyomo.environ as pyo


@dataclass(frozen=True)
class Outcome:
    """How the solve of a Pyomo model ended, in the model's own objective and sense.

    Parameters
    ----------
    status : Status
        ``OPTIMAL``: the solver proved its incumbent optimal within the gap asked for.
    objective : float or None
        Objective of the incumbent, whose values the model's variables now have; None where there is none.
    bound : float or None
        Dual bound: below the optimum of a minimisation, above that of a maximisation; None where there is none.
    runtime_s : float
        Wall-clock seconds around the solve, handing the model over included.
    trace : tuple of TracePoint
        Incumbent and dual bound over time, in the model's objective.
    message : str
        One line for people: which limit, which error.
    solver : str
        Name and version of the solver.
    figures : mapping
        Nodes, iterations, size of the model.
    duals : mapping
        Shadow price of each constraint of an LP, by constraint data; empty unless it was asked for.
    interrupted : bool
        Somebody pressed Ctrl-C.
    """

    status: Status
    objective: float | None = None
    bound: float | None = None
    runtime_s: float = 0.0
    trace: tuple[TracePoint, ...] = ()
    message: str = ""
    solver: str = ""
    figures: Mapping[str, float] = field(default_factory=dict)
    duals: Mapping[Any, float] = field(default_factory=dict)
    interrupted: bool = False

    def in_unit(self, unit: float) -> "Outcome":
        """The same of a model whose objective was divided by ``unit``, in what it was before; no trace."""
        objective, bound = (None if each is None else each * unit for each in (self.objective, self.bound))
        return replace(self, objective=objective, bound=bound, trace=())


@runtime_checkable
class Backend(Protocol):
    """Anything that solves a Pyomo model."""

    @property
    def name(self) -> str:
        """Name of the solver."""

    @property
    def options(self) -> Mapping[str, Any]:
        """The solver's own options."""

    def solve(
        self,
        model: "pyo.ConcreteModel",
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        warm: bool = False,
    ) -> Outcome:
        """Solve ``model`` and load the incumbent's values into its variables.

        With ``warm`` the values that the variables have are a start; variables without a value are left to the solver.
        """


def uses_of_backend(backend: Backend) -> frozenset[str] | None:
    """Which of ``threads``, ``seed`` and ``start`` a model with this solver behind it uses; None if it does not say.

    A back end says by an attribute ``uses`` whether its solver has threads and a seed; a start always counts, for the
    answer is never worse.
    """
    said: frozenset[str] | None = getattr(backend, "uses", None)
    return None if said is None else said | {"start"}
