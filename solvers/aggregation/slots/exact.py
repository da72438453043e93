"""Exact plans of whole slots and fallback: prices first, then the integer program about them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.formulations.slot_tangents import SlotTangents
from ddlopt.models.contracts import Formulation
from ddlopt.solvers.aggregation.slots.priced import PricedSlots, relaxation
from ddlopt.solvers.backends import backend
from ddlopt.solvers.backends.contracts import uses_of_backend
from ddlopt.solvers.certified import told_anew
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result, compiled
from ddlopt.solvers.exact import Exact
from ddlopt.solvers.limited import known_objective
from ddlopt.solvers.warm_started import WarmStarted

_SHARE = 0.2
"""Part of the gap asked for that tangents may take."""


@dataclass(frozen=True)
class Tangents:
    """The integer program with tangents where a better plan than the start can be.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "slot-tangents"
    family: ClassVar[str] = "aggregation"

    def refuses(self, instance: Any) -> str | None:
        """What the formulation refuses."""
        return SlotTangents().refuses(instance)

    def uses_for(self, instance: Any) -> frozenset[str] | None:
        """A start, and what the solver can be told."""
        return uses_of_backend(backend(self.solver))

    def formulation_for(self, instance: Any) -> Formulation | None:
        """The formulation."""
        return SlotTangents()

    def solver_for(self, instance: Any) -> str | None:
        """The one behind the formulation."""
        return self.solver

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """Answer ``instance``; see :class:`~ddlopt.solvers.contracts.Method`."""
        compile_s = compiled(self, instance)
        # Coarser tangents leave too much to add, finer ones than a solver's tolerance cannot be told apart.
        tolerance = min(1e-3, max(1e-7, _SHARE * limits.gap))
        formulation = SlotTangents(tolerance)
        known = known_objective(instance, start)
        if known is not None and self.refuses(instance) is None:
            prices = tuple(relaxation(SlotArrays(instance)).prices.tolist())
            formulation = SlotTangents(tolerance, known, prices)
        result = Exact(self.name, self.family, formulation, backend(self.solver)).solve(
            instance, limits, seed, progress, start
        )
        return told_anew(result, compile_s=compile_s + result.compile_s)


def opened(solver: str = "highs", name: str = "exact") -> WarmStarted:
    """Prices, then :class:`Tangents` from their plan."""
    return WarmStarted(name, "aggregation", PricedSlots(), lambda _: Tangents(solver))
