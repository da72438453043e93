"""Annealing of placements in register arrays."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.registers.batches import merged
from ddlopt.models.aggregation.registers.bounds import registers_bound
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.aggregation.registers.dealing import by_heat, placement
from ddlopt.solvers.aggregation.registers.kernels import annealing as kernels
from ddlopt.solvers.aggregation.registers.work import work_of
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    first: int = 50_000
    """Steps of the first walk; each later one has twice as many, so that no length has to be guessed."""
    longest: int = 51_200_000
    """Half a minute. Full packets of 200 parameters: walks of 3 million steps end at 319, of 30 million at 310 to
    314."""
    largest: int = 120
    """Parameters up to which the relaxation takes seconds."""
    hot: float = 1.0
    """First temperature, in mean weights of a batch: one batch more is accepted now and then."""
    cold: float = 0.05
    """Last temperature, in the same unit: next to nothing is accepted."""
    surplus: tuple[float, ...] = (1.0, 0.1, 0.3)
    """What a parameter too many in an array counts beside the packet of its batch, in one walk after the other (see
    :class:`RegisterSearch`)."""


_EFFORT = Effort()


@dataclass(frozen=True)
class RegisterSearch(Heuristic, uses=("seed", "start")):
    r"""Simulated annealing by moves and swaps (ours).

    A step takes the batches of one or two parameters, not all of them. Under goal ``packets`` most steps change no
    maximum; so :math:`\sum_t w_t \sum_r (|S_t \cap B_r| - f_t)^+`, where batch t cannot do with fewer than :math:`f_t`
    packets, counts a little too. Walks begin at the best placement so far, in a temperature that leaves little of it,
    and each is twice as long as the one before.

    Parameters
    ----------
    steps : int
        Of all walks together, where neither the time limit nor a bound ends them.
    relaxation : bool
        With the bound of the semidefinite relaxation, which is solved in the end, for up to 120 parameters.
    """

    steps: int = 6_000_000
    relaxation: bool = False

    name: ClassVar[str] = "register-search"
    covers: ClassVar[type[Instance]] = RegisterInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.registers.kernels.annealing",)

    def answer(self, instance: RegisterInstance, seed: int, clock: Clock, start: Any) -> Answer[Solution]:
        """The best of all walks."""
        batches = merged(instance)
        arrays = start.arrays if isinstance(start, Placement) else by_heat(instance)
        best = np.array(arrays, dtype=np.int64)
        if not batches.batches:
            return placement(instance, best.tolist()), {"steps": 0.0}
        target = registers_bound(instance) - batches.constant
        rng, scale = np.random.default_rng(seed), float(batches.weights.mean())
        value, done, length, walk = np.inf, 0, _EFFORT.first, 0
        while True:
            work = work_of(instance, batches, _EFFORT.surplus[walk % len(_EFFORT.surplus)])
            found, found_value = kernels.anneal(
                work, best, length, _EFFORT.hot * scale, _EFFORT.cold * scale, target + IMPROVEMENT_TOL, rng
            )
            if found_value < value - IMPROVEMENT_TOL:
                best, value = found, found_value
                clock.report(float(value) + batches.constant)
            done, walk = done + length, walk + 1
            length = min(2 * length, _EFFORT.longest)
            if math.isfinite(clock.left_s):
                length = min(length, max(_EFFORT.first, int(clock.left_s * done / clock.elapsed_s)))
            if value <= target + IMPROVEMENT_TOL or clock.expired or done >= self.steps:
                return placement(instance, best.tolist()), {"steps": float(done)}

    def certificate(self, instance: RegisterInstance, solution: Any, clock: Clock) -> float | None:
        """The bound of the relaxation, where it is asked for and the time is not up."""
        from ddlopt.models.aggregation.registers.relaxation import PlacementRelaxation
        from ddlopt.solvers.aggregation.registers.rounding import relaxed

        if not self.relaxation or clock.expired or instance.parameters > _EFFORT.largest:
            return None
        if PlacementRelaxation().refuses(instance) is not None:
            return None
        return relaxed(instance, clock)[2]
