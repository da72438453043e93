"""Enumeration of placements in register arrays, from the floor up."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.aggregation.registers import enumeration_kernels as kernels
from ddlopt.models.aggregation.registers.batches import Merged, merged
from ddlopt.models.aggregation.registers.bounds import registers_bound
from ddlopt.models.aggregation.registers.instance import Placement, RegisterInstance
from ddlopt.models.contracts import Instance
from ddlopt.models.tolerances import IMPROVEMENT_TOL
from ddlopt.solvers.aggregation.registers.dealing import placement
from ddlopt.solvers.aggregation.registers.kernels.annealing import Work, state_of, value_of
from ddlopt.solvers.aggregation.registers.search import RegisterSearch
from ddlopt.solvers.aggregation.registers.work import work_of
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits, relative_gap
from ddlopt.solvers.heuristic import CertifiedMethod, Clock
from ddlopt.solvers.names import spelled
from ddlopt.solvers.wrappers.warm_started import OPENING_SHARE

_NODES = 500
"""Between looks at the clock."""
# A short search first: the enumeration goes on from there, and prunes with what it found.
_OPENING_STEPS = 1_000_000
_LEAP = 0.1
"""Part of what lies between bound and objective by which goals rise at least, where weights are not whole."""


@dataclass(frozen=True)
class RegisterTree(CertifiedMethod, uses=("seed", "start")):
    r"""Iterative deepening (ours): is there a placement at the bound? If none, the bound rises; and so on.

    A node is a partial placement. Its bound is what the placed parameters cost, and what parameters that are not placed
    add in the best array for each, counted for such as have no batch in common. The next parameter is the one that adds
    the most, and of those one with the fewest arrays to choose from, as in DSATUR, which this is for colouring. Of
    arrays that are empty and equally large the first is tried. The enumeration for a bound ends with a placement, which
    is optimal, or with the least bound of the branches cut, which holds for all placements.

    It begins with an annealing, and ends where the two meet. With batches of at most R parameters and K = R, goal
    ``collisions``, or a floor of one packet each, the first enumeration decides whether a graph can be coloured.

    Parameters
    ----------
    only_floor : bool
        Stop after the first enumeration (method ``colouring``): the floor is reached, or no placement reaches it.

    References
    ----------
    D. Brélaz, "New methods to color the vertices of a graph", Communications of the ACM 22(4), 1979, for the order;
    R. Korf, "Depth-first iterative-deepening", Artificial Intelligence 27, 1985.
    """

    only_floor: bool = False

    covers: ClassVar[type[Instance]] = RegisterInstance
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.solvers.aggregation.registers.kernels.annealing",
        "ddlopt.frontier.aggregation.registers.enumeration_kernels",
    )

    @property
    def name(self) -> str:
        """``register-tree``, with its option."""
        return spelled("register-tree", self, "only_floor")

    def find(self, instance: RegisterInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The placement found and the bound that is proven."""
        batches = merged(instance)
        best = self._opening(instance, seed, clock, start)
        run = _Run(instance, batches, clock, best)
        if batches.batches:
            run.deepen(limits.gap, once=self.only_floor)
        return MethodOutput(
            placement(instance, run.best.tolist()), {"nodes": float(run.nodes)}, run.bound + batches.constant
        )

    def _opening(self, instance: RegisterInstance, seed: int, clock: Clock, start: Any) -> Placement:
        share = None if math.isinf(clock.left_s) else max(1e-3, OPENING_SHARE * clock.left_s)
        search = RegisterSearch(steps=_OPENING_STEPS)
        found, _ = search.answer(instance, seed, Clock(Limits(time_s=share), None), start)
        assert isinstance(found, Placement)
        return found


class _Run:
    """Bound and best placement while goals rise; both without the constant of the batches left out."""

    def __init__(self, instance: RegisterInstance, batches: Merged, clock: Clock, best: Placement) -> None:
        self._constant, self._clock = batches.constant, clock
        self._step = _step(batches)
        self.best: npt.NDArray[np.int64] = np.array(best.arrays, dtype=np.int64)
        self.bound = registers_bound(instance) - batches.constant
        self.nodes = 0
        if not batches.batches:
            return
        self._work = work_of(instance, batches)
        self._rising, self._least = _rising(instance, batches)
        self._value = _value(self._work, self.best)
        clock.report(self._value + self._constant, self.bound + self._constant)

    def deepen(self, gap: float, once: bool) -> None:
        """Raise the bound until it meets the best placement, or the time is up."""
        while not self._clock.expired:
            distance = relative_gap(self._value + self._constant, self.bound + self._constant)
            if self._value <= self.bound + IMPROVEMENT_TOL or (distance is not None and distance <= gap):
                return
            if not self._enumerate() or once:
                return

    def _enumerate(self) -> bool:
        """See all placements up to a goal; False where the time is up before."""
        goal = self.bound
        if not self._step:
            goal += _LEAP * (self._value - self.bound)
        goal = min(goal, self._value - max(self._step, IMPROVEMENT_TOL))
        tree, depth, left = kernels.empty_tree(self._work, self._rising, self._least), 0, goal
        found = self.best.copy()
        while depth >= 0:
            if self._clock.expired:
                break
            depth, left = kernels.explore(
                self._work, tree, depth, left, found, max(self._step, IMPROVEMENT_TOL * self._value), _NODES
            )
            self.nodes += _NODES
        if left < goal:
            self.best, self._value = found, _value(self._work, found)
        if depth >= 0:
            return False
        self.bound = min(self._value, max(self.bound, float(tree.beyond[0])))
        self._clock.report(self._value + self._constant, self.bound + self._constant)
        return True


def _step(batches: Merged) -> float:
    """By how much two different objectives differ at least: the greatest common divisor of whole weights, or 0."""
    weights = batches.weights.tolist()
    return float(math.gcd(*map(int, weights))) if weights and all(weight.is_integer() for weight in weights) else 0.0


def _rising(instance: RegisterInstance, batches: Merged) -> tuple[npt.NDArray[np.float64], float]:
    r"""What an array of each batch adds by its count, and what all batches cost at least.

    Pairs of c are at least :math:`qc - q(q + 1)/2`, and equal to it for c = q and q + 1. With
    :math:`q = \lceil |S| / R \rceil - 1` these lines add up to the floor of the batch; what pairs are above the line
    comes on top. Packets are counted by the largest counts alone.
    """
    counts = np.arange(max(map(len, batches.batches)) + 2)
    if instance.goal == "packets":
        return np.zeros((len(batches.batches), len(counts))), float(batches.weights @ batches.floors)
    sizes = np.array([len(batch) for batch in batches.batches])
    arrays = sum(1 for capacity in instance.capacities if capacity)
    q = (-(-sizes // arrays) - 1)[:, None]
    above = np.where(counts > q, counts * (counts - 1) / 2 - q * counts + q * (q + 1) / 2, 0.0)
    line = q[:, 0] * sizes - arrays * q[:, 0] * (q[:, 0] + 1) / 2
    return batches.weights[:, None] * above, float(batches.weights @ line)


def _value(work: Work, arrays: npt.NDArray[np.int64]) -> float:
    table, top = value_of(work, state_of(work, arrays))
    return float(work.of_table * table + work.of_top * top)
