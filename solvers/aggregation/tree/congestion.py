"""Least congestion of one job in a tree: the fewest switches for each largest load."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.models.aggregation.tree.evaluate import messages
from ddlopt.models.aggregation.tree.instance import AggregatingSwitches, TreeInstance, refusal
from ddlopt.models.aggregation.tree.tables import Floats, Ints, budgets, tables
from ddlopt.models.sizes import LARGEST_COUNT
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.aggregation.tree.kernels.congestion import fewest
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

# Width at which two congestions are one: far less than of two different counts of messages.
_NARROW = 1e-9


@dataclass(frozen=True)
class TreeCongestion(CertifiedMethod, uses=()):
    r"""The switches that make congestion least, by bisection over it; for one job.

    With a largest load t, the link above v may carry :math:`c_v = \lfloor t / \rho_v \rfloor` messages. From the leaves
    up, where more arrive at v, some must be added up at v or below. If v may aggregate, that is the best choice: one
    switch, and one message leaves. If not, switches below are chosen, always the one that saves the most.

    *This takes the fewest switches.* Let :math:`f_v(i)` be the fewest messages that leave v with i aggregating switches
    at v or below. It is convex from its first feasible i on, by induction: sums over children with the best split are,
    a limit cuts the first entries off, and where v may aggregate, f is 1, the least there is, from the second entry on.
    So steps can be taken one by one, the largest first, and what a switch above v needs of the subtree is only its
    fewest switches and then its largest steps, which is what the method keeps.

    The least t is found by bisection; each answer found gives a new t, and the last test, for less than what is found,
    proves it.

    References
    ----------
    The problem: "Constrained in-network computing with low congestion in datacenter networks", arXiv 2201.04344. The
    method and its proof are ours.
    """

    name: ClassVar[str] = "tree-congestion"
    covers: ClassVar[type[TreeInstance]] = TreeInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.aggregation.tree.kernels.congestion",)

    def refuses(self, instance: Any) -> str | None:
        """Utilization, several jobs."""
        reason = refusal(instance, "congestion")
        if reason is None and len(instance.jobs) > 1:
            return f"it has one job, and the instance {len(instance.jobs)}; use tree"
        return reason

    def find(self, instance: TreeInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum, or what is found when the time is up."""
        figures = tables(instance)
        useful, rates = figures.useful[0], instance.jobs[0].message_size * np.array(instance.seconds_per_message)
        loads = np.array(instance.jobs[0].loads, dtype=np.int64)
        most, _ = budgets(instance, figures.useful)
        chosen: tuple[int, ...] = ()
        value = float((rates * messages(instance, 0, ())).max())
        # No switch adds messages to a link, so nothing is below what all give.
        low = float((rates * messages(instance, 0, np.flatnonzero(useful))).max())
        tests, proven = 0, value <= low
        target = low
        while not proven and not clock.expired:
            last = target >= value * (1 - _NARROW)
            limit = _below(value, rates) if last else _within(target, rates)
            count, found = fewest(figures.parents, figures.order, loads, useful, limit, most)
            tests += 1
            if count >= 0:
                chosen = tuple(np.flatnonzero(found).tolist())
                value = float((rates * messages(instance, 0, chosen)).max())
                clock.report(value, low)
                proven = value <= low
            elif last:
                low, proven = value, True
            else:
                low = max(low, target)
            target = (low + value) / 2
        answer = AggregatingSwitches(instance=instance.name, switches=(chosen,))
        return MethodOutput(answer, {"tests": float(tests)}, bound=low * (1 - ROUNDING))


def _within(limit: float, rates: Floats) -> Ints:
    """Most messages on each link that take at most ``limit``."""
    count = np.floor(np.minimum(limit / rates, LARGEST_COUNT)).astype(np.int64)
    count += (count + 1) * rates <= limit
    count -= count * rates > limit
    return count


def _below(limit: float, rates: Floats) -> Ints:
    """Most messages on each link that take less than ``limit``."""
    count = _within(limit, rates)
    return count - (count * rates >= limit)
