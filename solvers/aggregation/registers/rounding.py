"""Placements from the semidefinite relaxation, by random directions, with the bound that it proves."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.registers.batches import Merged, merged
from ddlopt.models.aggregation.registers.instance import RegisterInstance
from ddlopt.models.aggregation.registers.relaxation import PlacementRelaxation, RelaxationArrays, relaxation_bound
from ddlopt.models.contracts import Instance
from ddlopt.models.errors import NoSolutionError
from ddlopt.solvers.aggregation.registers.dealing import by_heat, placement
from ddlopt.solvers.aggregation.registers.kernels.annealing import state_of, value_of
from ddlopt.solvers.aggregation.registers.work import work_of
from ddlopt.solvers.backends.convex import Convex, ConvexOutcome
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_SMALL = 30
"""Parameters up to which the interior-point method is the quicker one."""


@dataclass(frozen=True)
class RelaxationRounding(CertifiedMethod, uses=("seed",)):
    """Frieze and Jerrum's rounding: every array has a random direction, every parameter the array nearest to its own.

    Where the nearest array is full, a parameter takes the nearest one that has room; those that are surest choose
    first. Parameters in no batch that matters fill what is left. The bound is made of the solver's multipliers by
    :func:`~ddlopt.models.aggregation.registers.relaxation.relaxation_bound` and rounded up where weights are whole.

    Parameters
    ----------
    draws : int
        Of directions; the best placement counts.
    solver : str, optional
        ``"clarabel"`` or ``"scs"``; without, the first for few parameters.
    """

    draws: int = 200
    solver: str | None = None

    name: ClassVar[str] = "sdp-rounding"
    covers: ClassVar[type[Instance]] = RegisterInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.registers.kernels.annealing",)

    def refuses(self, instance: Any) -> str | None:
        """What the relaxation refuses."""
        return PlacementRelaxation().refuses(instance)

    def find(self, instance: RegisterInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The best of all draws, and the bound."""
        arrays, batches = RelaxationArrays(instance), merged(instance)
        outcome, gram, bound = relaxed(instance, clock, self.solver)
        if gram is None:
            raise NoSolutionError(f"the relaxation was not solved: {outcome.message}")
        vectors = _vectors(gram)
        rng, work = np.random.default_rng(seed), work_of(instance, batches)
        best, best_value = np.array(by_heat(instance), dtype=np.int64), math.inf
        for draw in range(self.draws):
            if draw and clock.expired:
                break
            directions = rng.standard_normal((vectors.shape[1], instance.arrays))
            found = _nearest(vectors @ directions, arrays.touched, instance)
            table, top = value_of(work, state_of(work, found))
            value = work.of_table * table + work.of_top * top
            if value < best_value:
                best, best_value = found, value
                clock.report(float(value) + batches.constant, bound)
        versions = {"solver": outcome.solver}
        details = {"relaxation": (outcome.value or 0.0) + batches.constant, "relaxation_s": outcome.runtime_s}
        return MethodOutput(placement(instance, best.tolist()), details, bound, versions=versions)


def relaxed(
    instance: RegisterInstance, clock: Clock, solver: str | None = None
) -> tuple[ConvexOutcome, npt.NDArray[np.float64] | None, float | None]:
    """How the relaxation was solved; its inner products and the bound, None where a limit stopped the solver."""
    model = PlacementRelaxation()
    problem = model.problem(instance)
    name = solver or ("clarabel" if len(RelaxationArrays(instance).touched) <= _SMALL else "scs")
    outcome = Convex(name).solve(problem, Limits(clock.part()))
    if outcome.status not in (Status.OPTIMAL, Status.FEASIBLE):
        return outcome, None, None
    bound = whole(relaxation_bound(instance, model.prices(problem, instance)), merged(instance))
    return outcome, model.read(problem, instance), bound


def whole(bound: float, batches: Merged) -> float:
    """The next multiple of the weights' greatest common divisor above a bound, where weights are whole."""
    if not all(weight.is_integer() for weight in batches.weights.tolist()) or not batches.constant.is_integer():
        return bound
    unit = math.gcd(*map(int, batches.weights.tolist()))
    # The bound is a solver's, right to ``SOLVER_TOL``: just above a multiple it proves no more than that multiple.
    return batches.constant + unit * math.ceil((bound - batches.constant) / unit - 1e-6)


def _vectors(gram: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """(n, n) vectors with these inner products, up to what is not positive semidefinite in them."""
    values, columns = np.linalg.eigh(gram)
    return np.asarray(columns * np.sqrt(np.maximum(0.0, values)))


def _nearest(
    nearness: npt.NDArray[np.float64], touched: npt.NDArray[np.int64], instance: RegisterInstance
) -> npt.NDArray[np.int64]:
    """Array of each parameter, the surest of ``touched`` first."""
    left = np.array(instance.capacities)
    found = np.full(instance.parameters, -1, dtype=np.int64)
    for place in np.argsort(-nearness.max(axis=1), kind="stable"):
        chosen = int(np.argmax(np.where(left > 0, nearness[place], -np.inf)))
        found[touched[place]] = chosen
        left[chosen] -= 1
    for parameter in np.flatnonzero(found < 0):
        chosen = int(np.argmax(left))
        found[parameter] = chosen
        left[chosen] -= 1
    return found
