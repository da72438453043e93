"""Branch and price: cases in which pairs of blocks are together or apart, and blocks on one kind of device."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.certificates.deployment.partition.device_sets.cases import ONE, Case, Figures, figures_of
from ddlopt.frontier.deployment.partition.device_sets.master import Column
from ddlopt.frontier.deployment.partition.device_sets.relaxation import Relaxation, Relaxed, load_of
from ddlopt.models.deployment.partition.blocks import Blocks
from ddlopt.models.deployment.partition.contraction import contracted
from ddlopt.models.deployment.partition.instance import PartitionInstance
from ddlopt.models.errors import NotApplicableError
from ddlopt.models.tolerances import BOUND_MARGIN, INTEGRALITY_TOL, SOLVER_TOL
from ddlopt.solvers.heuristic import Clock

Floats = npt.NDArray[np.float64]
Node = tuple[str, int] | tuple[str, int, int]

_KIND = 0.7
"""Weight of a kind of device against that of a pair with the same work."""


@dataclass
class _Open:
    case: Case
    bound: float
    """Seconds of all accelerators together, or of one where there is none."""
    columns: list[Column]
    prices: Floats | None = None


@dataclass
class Tree:
    """A search for partitions with all loads below a limit.

    Parameters
    ----------
    instance : PartitionInstance
    limit_s : float
        More than 0; :meth:`lower` makes it less.
    clock : Clock
    told : callable
        Of every case that is divided or closed, in the order of a walk, by what.
    """

    instance: PartitionInstance
    limit_s: float
    clock: Clock
    told: Callable[[Case, Node | Relaxed], None] = lambda case, how: None
    cases: int = 0
    sets: int = 0
    _open: list[_Open] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.blocks: Blocks = contracted(self.instance)
        self._figures: Figures = figures_of(self.instance, self.blocks.members, Fraction(self.limit_s))
        self._open = [self._all([(kind, each) for kind in (False, True) for each in self._intervals(kind)])]

    def _intervals(self, processor: bool) -> Iterator[frozenset[int]]:
        """Of the line of blocks, with half the limit of work and more, as long as one device has them."""
        times = self._figures.processor if processor else self._figures.accelerator
        for first in range(self.blocks.count):
            work, own = 0, set[int]()
            for block in range(first, self.blocks.count):
                time = times[block]
                if time is None or work + time > ONE:
                    break
                work += time
                own.add(block)
                if 2 * work >= ONE and load_of(self._figures, frozenset(own), processor) <= ONE:
                    yield frozenset(own)

    def _all(self, columns: list[Column], bound: float = 0.0) -> _Open:
        return _Open(Case(tuple(range(self.blocks.count))), bound, columns)

    def lower(self, limit_s: float) -> None:
        """Search below another limit, from all partitions on: it may close cases that were divided."""
        bound, columns = self.bound_s, self._open[-1].columns if self._open else []
        self.limit_s = limit_s
        self._figures = figures_of(self.instance, self.blocks.members, Fraction(limit_s))
        self._open = [self._all(columns, bound)]

    def use(self, devices: npt.NDArray[np.int64]) -> None:
        """Let the relaxation know the sets of a partition, by the device of each block."""
        for device in np.unique(devices).tolist():
            own = frozenset(np.flatnonzero(devices == device).tolist())
            self._open[-1].columns.append((device >= self.instance.accelerators, own))

    @property
    def done(self) -> bool:
        """Whether every case is closed."""
        return not self._open

    @property
    def bound_s(self) -> float:
        """Seconds that every partition's largest load takes."""
        return min([self.limit_s, *(each.bound for each in self._open)]) * (1 - BOUND_MARGIN)

    def next(self) -> tuple[int, ...] | None:
        """The device of each block in a partition below the limit; None where there is none, or the time is up.

        Raises
        ------
        NotApplicableError
            If a relaxation is too large.
        """
        while self._open:
            here = self._open[-1]
            relaxation = Relaxation(self._figures, here.case, here.columns, here.prices)
            relaxed = relaxation.solve(self.clock)
            if self.instance.accelerators:
                here.bound = max(here.bound, relaxation.bound * self.limit_s / self.instance.accelerators)
            if relaxed is None:
                return None
            self.cases += 1
            self.sets = max(self.sets, len(relaxed.columns))
            if relaxed.closed:
                self._open.pop()
                self.told(here.case, relaxed)
                continue
            parts = [(part, column) for part, column in zip(relaxed.parts.tolist(), relaxed.columns, strict=True)]
            used = [(part, column) for part, column in parts if part > SOLVER_TOL]
            here.columns, here.prices = relaxed.columns, relaxed.prices
            if all(part > 1 - INTEGRALITY_TOL for part, _ in used):
                return self._devices([column for _, column in used])
            node = self._branch(here.case, used)
            self._open.pop()
            self.told(here.case, node)
            self._open += [_Open(each, here.bound, here.columns, here.prices) for each in here.case.parts(node)]
        return None

    def _devices(self, columns: list[Column]) -> tuple[int, ...]:
        devices, following = [0] * self.blocks.count, [0, self.instance.accelerators]
        for processor, blocks in columns:
            for block in blocks:
                devices[block] = following[processor]
            following[processor] += 1
        return tuple(devices)

    def _branch(self, case: Case, used: list[tuple[float, Column]]) -> Node:
        """On what is decided least, of blocks with much work."""
        times = [0 if each is None else each for each in self._figures.accelerator]
        # One unit more, for those that only processors have.
        work = np.sqrt(np.bincount(case.group, times, minlength=self.blocks.count) + 1)
        node: Node | None = None
        best = 0.0
        groups = case.groups
        for place, one in enumerate(groups):
            with_one = [(part, column) for part, column in used if one in column[1]]
            share = sum(part for part, (processor, _) in with_one if processor)
            score = _KIND * work[one] * min(share, 1 - share)
            if score > best and share > SOLVER_TOL and share < 1 - SOLVER_TOL:
                best, node = score, ("kind", one)
            for other in groups[place + 1 :]:
                share = sum(part for part, (_, blocks) in with_one if other in blocks)
                score = min(work[one], work[other]) * min(share, 1 - share)
                if score > best and share > SOLVER_TOL and share < 1 - SOLVER_TOL:
                    best, node = score, ("pair", one, other)
        if node is None:
            raise NotApplicableError("a relaxation is divided in no pair of blocks")
        return node
