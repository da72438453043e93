"""The dynamic program for utilization in trees, as a method."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance, refusal
from ddlopt.models.aggregation.tree.tables import Floats, TreeTables, budgets, coupled, tables
from ddlopt.models.errors import NoSolutionError, NotApplicableError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.aggregation.tree.dynamic_program import JobTree, TreeProgram
from ddlopt.solvers.aggregation.tree.greedy import TreeGreedy
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock


def job_program(
    instance: TreeInstance, figures: TreeTables, job: int, useful: npt.NDArray[np.bool_], limit: int | None
) -> TreeProgram:
    """The program of one job, for at most ``limit`` of the ``useful`` switches; None: prices alone hold them down."""
    if limit == 0:
        useful = np.zeros_like(useful)
    path = instance.jobs[job].message_size * figures.path_s
    loads = np.array(instance.jobs[job].loads, dtype=np.float64)
    return TreeProgram(JobTree(figures.parents, figures.order, path, loads, useful, limit or 0))


@dataclass(frozen=True)
class Soar(CertifiedMethod, uses=("seed",)):
    r"""The switches that make utilization least, by dynamic programming.

    :math:`X_v(a, i)` is the least cost of the messages that enter below v until they reach a, the next switch above v
    that aggregates (or the destination), with at most i switches that aggregate at v or below:

    .. math::
        X_v(a, i) = \min\Bigl\{\ell_v P_{va} + \bigoplus_c X_c(a, \cdot)\,(i),\quad
        P_{va} + \bigoplus_c X_c(v, \cdot)\,(i - 1)\Bigr\}

    where :math:`\oplus` splits i among the children in the best way. Arbitrary rates, loads and switches without memory
    are covered. Ours: a subtree with s useful switches has min(s, k) columns, so that all splits together take
    :math:`O(n h k)` for n switches of depth at most h, not :math:`O(n h k^2)`; a table lives until the parent has it,
    the largest child first, so at most :math:`\log_2 n` of :math:`O(h k)` entries wait; whether v aggregates is one
    threshold for each i, as it pays at a if it pays at a farther a; and splits are kept for a part of the tree at a
    time (:class:`~ddlopt.solvers.aggregation.tree.dynamic_program.TreeProgram`).

    Several jobs are covered where memory is enough for all that could use it: each has the curve of its optimum by
    number of switches, and one more program splits the budget among them.

    References
    ----------
    R. Segal, C. Avin, G. Scalosub, "SOAR: Minimizing network utilization with bounded in-network computing", CoNEXT
    2021.
    """

    name: ClassVar[str] = "soar"
    covers: ClassVar[type[TreeInstance]] = TreeInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.tree.kernels.dynamic_program",)

    def refuses(self, instance: Any) -> str | None:
        """Congestion, jobs that compete for memory."""
        reason = refusal(instance, "utilization")
        if reason is not None:
            return reason
        short = coupled(instance, tables(instance).useful)
        if short:
            return f"jobs compete for the memory of switch {instance.label(short[0])}; use tree or tree-prices"
        return None

    def find(self, instance: TreeInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum; the greedy's answer where time or room for the tables is short."""
        figures = tables(instance)
        total, each = budgets(instance, figures.useful)
        programs, curves = [], []
        try:
            for job, most in enumerate(each):
                program = job_program(instance, figures, job, figures.useful[job], min(most, total))
                programs.append(program)
                curves.append(program.run(np.zeros(instance.size), clock))
        except (NoSolutionError, NotApplicableError) as late:
            greedy = TreeGreedy()
            solution, _ = greedy.answer(instance, seed, Clock(Limits(), None), None)
            bound = greedy.certificate(instance, solution, clock)
            return MethodOutput(solution, bound=bound, message=f"{late}: {greedy.name}")
        value, shares = shared(curves, total)
        switches = tuple(tuple(p.nodes(share).tolist()) for p, share in zip(programs, shares, strict=True))
        clock.report(value, value)
        details = {
            "depth": float(max(p.plan.rows.max() for p in programs)),
            "parts": float(max(p.parts for p in programs)),
        }
        return MethodOutput(
            AggregatingSwitches(instance=instance.name, switches=switches), details, bound=value * (1 - ROUNDING)
        )


def shared(curves: list[Floats], total: int) -> tuple[float, list[int]]:
    """Least sum of one entry of each curve whose indices add up to at most ``total``; the sum and the indices.

    Curves do not increase.
    """
    best, choices = np.zeros(1), []
    for curve in curves:
        length = min(total, len(best) + len(curve) - 2) + 1
        padded = np.concatenate((best, np.full(max(0, length - len(best)), best[-1])))[:length]
        new, choice = np.full(length, np.inf), np.zeros(length, dtype=np.int64)
        for share in range(min(len(curve), length)):
            cost = padded[: length - share] + curve[share]
            better = cost < new[share:]
            new[share:][better] = cost[better]
            choice[share:][better] = share
        choices.append(choice)
        best = new
    left, shares = len(best) - 1, []
    for choice in reversed(choices):
        left = min(left, len(choice) - 1)
        shares.append(int(choice[left]))
        left -= shares[-1]
    return float(best[-1]), shares[::-1]
