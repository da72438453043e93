"""The master of the decomposition: the choice of strategies that a certified bound likes best."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ddlopt.frontier.codesign.formulations.whole_ports import WholePorts
from ddlopt.models.codesign.instance import CodesignInstance
from ddlopt.solvers.backends.contracts import Backend
from ddlopt.solvers.backends.highs import Highs
from ddlopt.solvers.codesign.half_rounds import best_strategies, nothing_fits
from ddlopt.solvers.contracts import Limits, Status
from ddlopt.solvers.heuristic import Clock

Choices = tuple[int, ...]


@dataclass(frozen=True)
class Proposal:
    """What the master says when it takes some loads for granted.

    Parameters
    ----------
    choices : tuple of int or None
        The most promising ones; None if the time was up before any were found.
    bound_s : float
        On the iteration time of every plan, if no design for the choices in ``assumed`` has less load.
    assumed : mapping of choices to bytes
    interrupted : bool
        Somebody pressed Ctrl-C.
    """

    choices: Choices | None
    bound_s: float
    assumed: Mapping[Choices, float]
    interrupted: bool = False

    def certified_s(self, known: Mapping[Choices, float], bandwidth_bytes_per_s: float) -> float:
        """The bound without assumptions, given bytes that every design for these choices has on its busiest link.

        A load assumed δ bytes too large lifts the iteration time of a choice by at most δ over the bandwidth, so the
        optimum of the program is at most as much too large as that of the worst assumption.
        """
        excess = max((value - known[choices] for choices, value in self.assumed.items()), default=0.0)
        return self.bound_s - max(0.0, excess) / bandwidth_bytes_per_s


@dataclass(frozen=True)
class Master:
    """:class:`~ddlopt.frontier.codesign.formulations.whole_ports.WholePorts`, with cuts for choices known better.

    Parameters
    ----------
    instance : CodesignInstance
    backend : Backend
    """

    instance: CodesignInstance
    backend: Backend = field(default_factory=Highs)

    def propose(
        self,
        assumed: Mapping[Choices, float],
        limits: Limits,
        seed: int,
        start: Choices | None = None,
        most_s: float | None = None,
        detour_hops: float = 2.0,
        nodes: int | None = None,
    ) -> Proposal:
        """The choices of least bound if those ``assumed`` have at least the bytes given on their busiest link.

        Plans that take longer than ``most_s`` are of no interest, and it is a bound if there are no others. With
        ``detour_hops`` above 2 there is no bound, see
        :class:`~ddlopt.frontier.codesign.formulations.whole_ports.WholePorts`. HiGHS stops after ``nodes`` nodes, so
        that what it finds does not depend on how fast the machine is.

        Raises
        ------
        InfeasibleError
            If no choice fits into memory, or none can be sent, and no plan's time was assumed. Every plan is a solution
            of the program: its choices fit, and its own links, with what they carry, keep all rows, which hold for any
            links of the degree. With ``most_s`` a program without solution says that no plan is faster, which is a
            bound.
        """
        formulation = WholePorts(cuts=tuple(assumed.items()), most_s=most_s, detour_hops=detour_hops)
        clock = Clock(limits, None)
        found = best_strategies(self.instance, formulation, clock, seed, start, nodes, backend=self.backend)
        if found.status is Status.INFEASIBLE and most_s is None:
            raise nothing_fits(self.instance)
        bound_s = most_s if found.status is Status.INFEASIBLE else found.bound_s
        # With more hops than the least it is no bound.
        certified_s = (bound_s or 0.0) if detour_hops <= 2 else 0.0
        return Proposal(found.choices, certified_s, dict(assumed), found.outcome.interrupted)
