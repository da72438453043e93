"""Exact plans of whole slots and fallback: prices first, then the integer program about them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.aggregation.slots.arrays import SlotArrays
from ddlopt.models.aggregation.slots.formulations.slot_tangents import SlotTangents
from ddlopt.models.contracts import Formulation
from ddlopt.solvers.aggregation.slots.priced import PricedSlots, relaxation
from ddlopt.solvers.wrappers.known import known_objective
from ddlopt.solvers.wrappers.limited import FromStart
from ddlopt.solvers.wrappers.warm_started import WarmStarted

_SHARE = 0.2
"""Part of the gap asked for that tangents may take."""


@dataclass(frozen=True)
class Tangents(FromStart):
    """The integer program with tangents where a better plan than the start can be.

    Parameters
    ----------
    solver : str
    """

    solver: str = "highs"

    name: ClassVar[str] = "slot-tangents"
    family: ClassVar[str] = "aggregation"

    def made(self, instance: Any, start: Any = None, gap: float | None = None) -> Formulation:
        """Tangents as dense as the gap asks for, and only where a better plan than the start can be."""
        # Coarser tangents leave too much to add, finer ones than a solver's tolerance cannot be told apart.
        tolerance = SlotTangents().tolerance if gap is None else min(1e-3, max(1e-7, _SHARE * gap))
        known = known_objective(instance, start)
        if known is None:
            return SlotTangents(tolerance)
        return SlotTangents(tolerance, known, tuple(relaxation(SlotArrays(instance)).prices.tolist()))


def opened(solver: str = "highs", name: str = "exact") -> WarmStarted:
    """Prices, then :class:`Tangents` from their plan."""
    return WarmStarted(name, "aggregation", PricedSlots(), lambda _: Tangents(solver))
