"""Sufficient factor broadcasting without budgets: a minimum cut."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.compression import SfbInstance, SfbSelection
from ddlopt.models.compression.sfb.cut_network import CutNetwork
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic


@dataclass(frozen=True)
class MinCut(Heuristic, uses=()):
    r"""Sufficient factor broadcasting as a minimum cut, with a certificate.

    With x = 1 on the source's side, a selection is a cut of the network

    - source -> i, capacity :math:`s_i`: not duplicating i costs its all-reduce,
    - i -> sink, capacity :math:`e_i + \alpha`, endless where i cannot be duplicated,
    - consumer -> producer, capacity :math:`w_t`, for each edge that pays its own broadcast; where a tensor with several
      consumers is paid once, it has a node t, with consumer -> t endless and t -> producer of capacity :math:`w_t`,

    and the objective is its capacity (J.-C. Picard, "Maximal closure of a graph and applications to combinatorial
    problems", Management Science 22(11), 1976, with costs on the precedences). Costs are rounded down to a grid of
    :math:`2^{-60}` of the all-reduces, about, and the flow on the grid is exact, so it is a bound on every selection.
    Of the optimal selections it finds the one with the fewest duplicated operators.

    Notes
    -----
    SciPy's Dinic goes through the network once for every length of paths that flow takes. Where gradients are spread
    over the graph these are short, and 100 000 operators take less than a second. One gradient that pays for a chain of
    30 000 operators takes it a minute, during which no time limit is heeded.
    """

    covers: ClassVar[type[SfbInstance]] = SfbInstance

    @property
    def name(self) -> str:
        """``min-cut``."""
        return "min-cut"

    def refuses(self, instance: SfbInstance) -> str | None:
        """Budgets."""
        return "a minimum cut knows no budgets; use milp or parametric-cut" if instance.budgeted else None

    def answer(self, instance: SfbInstance, seed: int, clock: Clock, start: Any) -> Answer[SfbSelection]:
        """The selection; its bound goes to the clock."""
        network = CutNetwork(instance)
        found = network.cut()
        clock.report(None, found.bound_s)
        duplicated = np.flatnonzero(found.duplicated).tolist()
        return SfbSelection(instance=instance.name, duplicated=tuple(duplicated)), network.figures

    def certificate(self, instance: SfbInstance, solution: SfbSelection, clock: Clock) -> float | None:
        """Value of the maximum flow."""
        return clock.best_bound(instance.sense)
