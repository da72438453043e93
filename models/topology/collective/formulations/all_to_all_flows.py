"""All-to-all as flows by source."""

import itertools
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ddlopt.models.contracts import Instance, Sense
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import check_range
from ddlopt.models.tolerances import SOLVER_TOL
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, CollectivePlan, Path, Tree
from ddlopt.models.units import unit_of, unread

_PARTS = 10**9
"""Of a pair's bytes, to which shares of its paths are rounded."""
_NOTHING = 1e-9
"""Part of a pair's bytes that counts as none: solvers hold rows to some 1e-9."""
_FAINT = 1e-3
"""Of the unit of time, which one accelerator takes at least: a link with less to do has no row."""


@dataclass(frozen=True)
class AllToAllFlows(FormulationBase):
    r"""All-to-all as one flow for each source, to all other accelerators at once.

    With :math:`f_{se}` the bytes of source s on link e, in parts of M / N:

    .. math::
        \min T \quad \text{s. t.} \quad
        \sum_{e \text{ into } v} f_{se} - \sum_{e \text{ out of } v} f_{se} = [v \text{ is an accelerator}] \quad
        (v \ne s), \qquad
        \frac{M}{N} \sum_s f_{se} \le B_e T, \qquad f \ge 0

    N variables for each link, and as many rows as nodes for each source. Its dual prices links; shortest paths under
    these are what column generation counts (:func:`~ddlopt.frontier.topology.collective.prices.price_bound`).

    Ports
    -----
    ``flow[s, i, j]``
        Bytes of source s on the link, in parts of M / N.
    ``time``
        T, in units of a power of two of seconds made of data only (:func:`time_unit_s`).
    ``link_carries[i, j]``
        Constraint: a host that lets bandwidths vary replaces it. Links that never bind have none.
    ``objective``
        T, to be minimised.

    References
    ----------
    F. Shahrokhi, D. W. Matula, "The maximum concurrent flow problem", Journal of the ACM 37(2), 1990.
    """

    covers: ClassVar[type[Instance]] = CollectiveInstance
    sense: ClassVar[Sense] = "minimize"
    # Where bandwidths are far apart, a solver's tolerance is much of what slow links carry; the plan read has less.
    outer: ClassVar[bool] = True

    def refuses(self, instance: Any) -> str | None:
        """Other collectives."""
        if instance.step_s:
            return "steps take time, and flows do not know how far bytes go"
        if instance.collective != "all-to-all":
            return f"it has flows of all-to-all, and this is an {instance.collective}"
        return None

    def build(self, block: pyo.Block, instance: CollectiveInstance) -> None:
        """Fill ``block``."""
        block.SOURCES = pyo.RangeSet(0, instance.accelerators - 1, doc="accelerators")
        block.NODES = pyo.RangeSet(0, instance.nodes - 1, doc="accelerators and switches")
        block.LINKS = pyo.Set(initialize=sorted(instance.bandwidth), dimen=2, doc="ordered pairs with a link")
        block.flow = pyo.Var(block.SOURCES, block.LINKS, domain=pyo.NonNegativeReals, doc="bytes of a source on a link")
        block.time = pyo.Var(domain=pyo.NonNegativeReals, doc="seconds for which the busiest link is busy")
        block.objective = pyo.Expression(expr=block.time)
        _conserve(block, instance)
        _limit(block, instance)
        check_range(block, instance.name)

    def start(self, block: pyo.Block, instance: CollectiveInstance, solution: CollectivePlan) -> None:
        """Set flows to what the plan's paths carry, and the time to what they take."""
        flow: dict[tuple[int, Arc], Fraction] = dict.fromkeys(
            ((s, link) for s in range(instance.accelerators) for link in instance.bandwidth), Fraction(0)
        )
        for tree in solution.trees:
            for path in tree.spread:
                for link in itertools.pairwise(path):
                    flow[tree.root, link] += Fraction(tree.share) * instance.accelerators
        for (source, link), value in flow.items():
            block.flow[source, link].set_value(float(value))
        part = Fraction(instance.collective_bytes) / instance.accelerators
        busy = [
            part * sum(flow[s, link] for s in range(instance.accelerators)) / Fraction(each)
            for link, each in instance.bandwidth.items()
        ]
        block.time.set_value(float(max(busy)) / time_unit_s(instance))

    def read(self, block: pyo.Block, instance: CollectiveInstance) -> CollectivePlan:
        """Paths of each pair, by taking flow away path by path.

        Raises
        ------
        SolverError
            If flows do not bring each target its bytes.
        """
        trees = []
        for source in range(instance.accelerators):
            left = {link: pyo.value(block.flow[source, link]) for link in instance.bandwidth}
            for target in range(instance.accelerators):
                if target != source:
                    trees += _paths(instance, left, source, target)
        return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(trees))

    def objective_value(self, instance: CollectiveInstance, value: float) -> float:
        """Seconds."""
        return value * time_unit_s(instance)


def time_unit_s(instance: CollectiveInstance) -> float:
    """The unit of ``time``: of what the accelerator with the least bandwidth takes to send its own bytes."""
    out = [sum(instance.bandwidth[v, other] for other in instance.heads[v]) for v in range(instance.accelerators)]
    part = instance.collective_bytes / instance.accelerators
    return unit_of(part * (instance.accelerators - 1) / min(out), parts=1.0)


def _conserve(block: pyo.Block, instance: CollectiveInstance) -> None:
    @block.Constraint(block.SOURCES, block.NODES, doc="each accelerator keeps its part of each source's bytes")
    def flow_is_conserved(b: pyo.Block, s: int, v: int) -> Any:
        if s == v:
            return pyo.Constraint.Skip
        into = [b.flow[s, u, v] for u in sorted(instance.tails.get(v, ()))]
        out = [b.flow[s, v, u] for u in sorted(instance.heads.get(v, ()))]
        if not into and not out:
            return pyo.Constraint.Skip  # a switch without links
        coefficients = [1.0] * len(into) + [-1.0] * len(out)
        return LinearExpression(linear_coefs=coefficients, linear_vars=into + out) == float(v < instance.accelerators)


def _limit(block: pyo.Block, instance: CollectiveInstance) -> None:
    part, unit = instance.collective_bytes / instance.accelerators, time_unit_s(instance)
    pairs = instance.accelerators * (instance.accelerators - 1)

    @block.Constraint(block.LINKS, doc="a link carries no more than its bandwidth for the time")
    def link_carries(b: pyo.Block, i: int, j: int) -> Any:
        seconds = part / instance.bandwidth[i, j] / unit
        if seconds * pairs < _FAINT:
            return pyo.Constraint.Skip  # all bytes of all pairs take it a fraction of what one accelerator takes
        flows = [b.flow[s, i, j] for s in b.SOURCES]
        return LinearExpression(linear_coefs=[seconds] * len(flows) + [-1.0], linear_vars=[*flows, b.time]) <= 0


def _paths(instance: CollectiveInstance, left: dict[Arc, float], source: int, target: int) -> list[Tree]:
    """Paths for a pair's bytes, which are taken from what is left of the flow."""
    amounts: list[tuple[Path, float]] = []
    wanted = 1.0
    while wanted > _NOTHING:
        path = _open_path(instance, left, source, target)
        if path is None:
            break
        links = list(itertools.pairwise(path))
        amount = min(wanted, *(left[link] for link in links))
        for link in links:
            left[link] -= amount
        amounts.append((path, amount))
        wanted -= amount
    if wanted > SOLVER_TOL or not amounts:
        told = f"flow[{source}, …] brings accelerator {target} {1 - wanted:.9f} of its part, not 1"
        raise unread(SolverError(told), instance.bandwidth.values(), instance.name)
    whole = [round(amount / (1 - wanted) * _PARTS) for _, amount in amounts]
    whole[0] += _PARTS - sum(whole)  # the first path is the widest or nearly so: rounding never makes it negative
    share = Fraction(1, instance.accelerators)
    return [
        Tree(share=str(share * Fraction(number, _PARTS)), root=source, spread=(path,))
        for (path, _), number in zip(amounts, whole, strict=True)
        if number > 0
    ]


def _open_path(instance: CollectiveInstance, left: dict[Arc, float], source: int, target: int) -> Path | None:
    """The path of fewest links that still have flow."""
    before, waiting = {source: source}, deque([source])
    while waiting and target not in before:
        node = waiting.popleft()
        for other in sorted(instance.heads.get(node, ())):
            if other not in before and left[node, other] > _NOTHING:
                before[other] = node
                waiting.append(other)
    if target not in before:
        return None
    path = [target]
    while path[-1] != source:
        path.append(before[path[-1]])
    return tuple(path[::-1])
