"""The integer program, without a start."""

from dataclasses import dataclass
from typing import Any

from ddlopt.solvers.contracts import Limits, ProgressCallback, Result
from ddlopt.solvers.exact import Exact


@dataclass(frozen=True)
class Unstarted(Exact):
    """A formulation that is solved from nothing, whatever is known.

    HiGHS 1.16 knows that pairs are whole numbers and ends where a bound leaves no whole number below what it has found
    itself, but not below a start: with one it went on for a minute where it needs a second without.
    """

    def uses_for(self, instance: Any) -> frozenset[str] | None:
        """What the solver can be told, but no start."""
        uses = super().uses_for(instance)
        return None if uses is None else uses - {"start"}

    def solve(
        self,
        instance: Any,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """As any exact method, but for the start."""
        return super().solve(instance, limits, seed, progress, None)
