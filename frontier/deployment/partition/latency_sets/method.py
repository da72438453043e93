"""Latency by what parts of the graph take at least, and by branch and bound over the sets that run as one."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ddlopt.frontier.deployment.partition.latency_sets.kernels import with_each
from ddlopt.frontier.deployment.partition.latency_sets.parts import GraphParts, Ints, least_times, parts_of
from ddlopt.frontier.deployment.partition.latency_sets.search_kernels import (
    BETTER,
    DONE,
    PAUSED,
    Offers,
    Room,
    Tree,
    search,
)
from ddlopt.frontier.deployment.partition.opening import opening
from ddlopt.models.deployment.partition.instance import Partition, PartitionInstance, refusal
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.models.tolerances import IMPROVEMENT_TOL, ROUNDING
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.deployment.partition.latency_search import LatencySearch
from ddlopt.solvers.deployment.partition.linear import objective_of
from ddlopt.solvers.heuristic import CertifiedMethod, Clock

_PORTION = 1000
"""Partial partitions between looks at the clock."""


@dataclass(frozen=True)
class LatencySets(CertifiedMethod, uses=("start",)):
    r"""The best partition for latency, with one set an accelerator, where the graph has few ideals.

    *Bound.* A part X of the graph is what one ideal has more than another. Let :math:`V_m(X)` be a bound on the time
    from the first start to the last end of all that has a node of X, if at most m accelerators have some. On X, a set
    S of nodes takes at least its work and the transfers of outputs that have a pin in S and another in X. With no set,
    V is the longest path on processors, with one the least over all sets, exactly. With more, every node v of X is on
    a processor or in some set S, and all that S needs has ended before S begins, all that needs S begins after it, by
    sets of their own:

    .. math::
        V_m(X) \ge \max_v \min_{S \ni v} \max \{ \min_{a + b = m - 1} V_a(\text{before } S) + p_S
            + V_b(\text{after } S),\ V_{m - 1}(\text{not after S}),\ V_{m - 1}(\text{not before S}) \}

    where the last two leave S itself out, and for v on a processor :math:`\min_{a + b = m}` of what is before v, its
    time, and what is after it.

    *Search.* Node by node is put on a processor or into a set, beginning with the one for which fewest sets are left.
    Left are sets of nodes that are free for which the bound above, on everything, is below the best latency known; the
    last set has all nodes that would be too late on a processor. With the sets taken, the longest path through them is
    the bound, with the least time of what is free.

    Parameters
    ----------
    most : int, optional
        Partial partitions to look at; then it gives up, and has the bound alone.
    """

    most: int | None = None

    name: ClassVar[str] = "latency-sets"
    proves_infeasible: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = (
        "ddlopt.frontier.deployment.partition.latency_sets.kernels",
        "ddlopt.frontier.deployment.partition.latency_sets.search_kernels",
        *LatencySearch.kernels,
    )

    def refuses(self, instance: Any) -> str | None:
        """Throughput; several sets an accelerator, colours of several nodes, too many parts."""
        reason = refusal(instance, "latency")
        if reason is not None:
            return reason
        if instance.subgraphs > 1:
            return "it has one set an accelerator, and the instance allows several; use latency-tree"
        if len(instance.colours) < len(instance.nodes):
            return "it takes nodes one by one, and the instance has colours with several; use latency-tree"
        return None if parts_of(instance) is not None else "the graph has too many parts; use latency-search"

    def find(self, instance: PartitionInstance, limits: Limits, seed: int, clock: Clock, start: Any) -> MethodOutput:
        """The optimum, or the best partition found until the time is up and the bound.

        Raises
        ------
        InfeasibleError
            If there is no partition: the search ended before its time.
        """
        best, value_s = opening(instance, seed, clock, start, LatencySearch())
        below_s = math.inf if value_s is None else value_s
        parts = parts_of(instance)
        assert parts is not None
        least_s = least_times(parts, instance.accelerators, lambda: clock.expired)
        if least_s is None:
            if best is None:
                raise NoSolutionError("the time is up before the least times of all parts are known")
            return MethodOutput(best, {})
        bound_s = float(least_s[-1, 0, -1]) * (1 - ROUNDING)
        clock.report(None if best is None else below_s, bound_s if math.isfinite(bound_s) else None)
        offers = _offers(parts, instance.accelerators, least_s)
        tree, room = _tree(len(parts.order), len(offers.bits), instance.accelerators)
        looked, code = 0, PAUSED
        while code != DONE and not clock.expired and (self.most is None or looked < self.most):
            code = search(parts.graph, offers, tree, room, below_s * (1 - IMPROVEMENT_TOL), _PORTION)
            looked += _PORTION if code == PAUSED else 0
            if code == BETTER:
                found = _partition(instance, parts.order, tree.slot)
                found_s = objective_of(instance, found)
                # The search adds up in floating point; where the check sees more than a device holds, it goes on.
                if found_s is not None and found_s < below_s:
                    best, below_s = found, found_s
                    clock.report(below_s, bound_s)
        if best is None and code == DONE:
            raise InfeasibleError(f"'{instance.name}' has no partition that fits, whatever is tried")
        if best is None:
            raise NoSolutionError(f"no partition that fits among {looked} partial ones")
        if code == DONE:
            bound_s = below_s * (1 - IMPROVEMENT_TOL)
        return MethodOutput(best, {"looked_at": float(looked), "sets": float(len(offers.bits))}, bound=bound_s)


def _offers(parts: GraphParts, accelerators: int, least_s: np.ndarray[Any, np.dtype[np.float64]]) -> Offers:
    """Sets, those with the least bound first."""
    sets, ideals = parts.sets, parts.ideals.bits
    found_s = np.full(len(sets.bits), np.inf)
    loads_s = np.zeros(len(sets.bits))
    if accelerators:
        with_each(parts.graph, parts.ideals, sets, accelerators, least_s, found_s, loads_s)
    first = np.argsort(found_s, kind="stable")
    return Offers(sets.bits[first], ideals[sets.needed[first]], loads_s[first], found_s[first])


def _tree(nodes: int, sets: int, accelerators: int) -> tuple[Tree, Room]:
    depths = nodes + 1
    tree = Tree(
        np.zeros(1, np.int64),
        np.full(depths, -1),
        np.zeros(depths, np.int64),
        np.zeros(depths, np.int64),
        np.zeros((depths, sets), np.int32),
        np.full(nodes, -1),
        np.zeros(accelerators, np.int64),
        np.zeros(1, np.int64),
    )
    by_node = (np.zeros(nodes), np.zeros(nodes))
    by_set = (np.zeros(accelerators), np.zeros(accelerators))
    return tree, Room(*by_node, *by_set, np.zeros(nodes), np.zeros(nodes, np.int64))


def _partition(instance: PartitionInstance, order: Ints, slot: Ints) -> Partition:
    devices = np.empty(len(order), np.int64)
    devices[order] = np.where(slot >= 0, slot, instance.accelerators)
    return Partition(instance=instance.name, devices=tuple(devices.tolist()))
