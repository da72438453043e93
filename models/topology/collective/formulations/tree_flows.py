"""Trees of any roots as flows: all-gather, reduce-scatter, broadcast, and all-reduce with both phases at once."""

import itertools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pyomo.environ as pyo
from pyomo.core.expr import LinearExpression

from ddlopt.models.contracts import Instance, Sense
from ddlopt.models.covering import FormulationBase
from ddlopt.models.errors import SolverError
from ddlopt.models.linear import check_range
from ddlopt.models.topology.collective.instance import Arc, CollectiveInstance, CollectivePlan, Path, Tree
from ddlopt.models.units import unit_of, unread

_FAINT = 1e-3
"""Of the unit of time, which one accelerator takes at least: a link with less to do has no row."""
_PHASES = {
    "all-gather": ("spread",),
    "broadcast": ("spread",),
    "reduce-scatter": ("gather",),
    "all-reduce": ("gather", "spread"),
}


@dataclass(frozen=True)
class TreeFlows(FormulationBase):
    r"""Trees as flows of bytes from their roots to each accelerator, which may share what links carry.

    Bytes are in parts of M / N in an all-gather or a reduce-scatter, in parts of M elsewhere, and all are D parts. Of
    these :math:`x_v` have their root at v: one at each v, or all at the root of a broadcast; an all-reduce chooses.
    With :math:`y_e` the bytes that link e carries, and :math:`f_{te}` those of them on their way to t:

    .. math::
        \min T \quad \text{s. t.} \quad
        \sum_{e \text{ into } v} f_{te} - \sum_{e \text{ out of } v} f_{te} = D\,[v = t] - x_v, \qquad
        f_{te} \le y_e, \qquad \sum_v x_v = D,

    .. math::
        \sum_{e \text{ into } w} y_e = \sum_{e \text{ out of } w} y_e \ \text{(each switch w)}, \qquad
        \frac{M}{D} \sum_{\text{phases}} y_e \le B_e T, \qquad f, x \ge 0

    That is for bytes that spread. Where they are gathered all flows go the other way, from t to the roots, and an
    all-reduce has y and f of both phases with one x: trees into and out of common roots that share the links.

    No plan is missing, as the trees of a plan send what they carry. And no bytes are too few: with a source that sends
    :math:`x_v` to each v, all D parts can arrive at each t by itself, so that D parts of spanning trees out of the
    source can be packed into y (Edmonds). They use all that the source sends, so each begins with one v, its root.
    Switches with as much into them as out of them can be split off before that (Mader).

    N variables for each link and phase, and as many rows.

    Ports
    -----
    ``carried[p, i, j]``
        Bytes that the link carries in a phase, ``"gather"`` or ``"spread"``, in parts: y.
    ``rooted[v]``
        Parts whose root is v: x. Fixed by its bounds but in an all-reduce.
    ``flow[p, t, i, j]``
        Those of accelerator t: f.
    ``time``
        T, in units of a power of two of seconds made of data only (:func:`time_unit_s`).
    ``link_carries[i, j]``
        Constraint: a host that lets bandwidths vary replaces it. Links that never bind have none.
    ``objective``
        T, to be minimised.

    References
    ----------
    J. Edmonds, "Edge-disjoint branchings", 1973. L. Zhao et al., "ForestColl", arXiv 2402.06787, for collectives;
    roots that an all-reduce chooses are ours.
    """

    covers: ClassVar[type[Instance]] = CollectiveInstance
    sense: ClassVar[Sense] = "minimize"
    # Where bandwidths are far apart, a solver's tolerance is much of what slow links carry; the plan read has less.
    outer: ClassVar[bool] = True
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.models.topology.collective.kernels",)

    def refuses(self, instance: Any) -> str | None:
        """All-to-all."""
        if instance.step_s:
            return "steps take time, and flows do not know how far bytes go"
        if instance.collective not in _PHASES:
            return f"an {instance.collective} is sent along paths, not trees"
        return None

    def build(self, block: pyo.Block, instance: CollectiveInstance) -> None:
        """Fill ``block``."""
        block.PHASES = pyo.Set(initialize=_PHASES[instance.collective], doc="bytes are gathered, spread, or both")
        block.ACCELERATORS = pyo.RangeSet(0, instance.accelerators - 1, doc="accelerators")
        block.NODES = pyo.RangeSet(0, instance.nodes - 1, doc="accelerators and switches")
        block.LINKS = pyo.Set(initialize=sorted(instance.bandwidth), dimen=2, doc="ordered pairs with a link")
        block.carried = pyo.Var(
            block.PHASES, block.LINKS, domain=pyo.NonNegativeReals, doc="bytes that a link carries in a phase"
        )
        block.flow = pyo.Var(
            block.PHASES, block.ACCELERATORS, block.LINKS, domain=pyo.NonNegativeReals,
            doc="those of them on their way to an accelerator, or from it",
        )  # fmt: skip
        block.rooted = pyo.Var(block.ACCELERATORS, bounds=_bounds(instance), doc="parts whose root is an accelerator")
        block.time = pyo.Var(domain=pyo.NonNegativeReals, doc="seconds for which the busiest link is busy")
        block.objective = pyo.Expression(expr=block.time)
        _flow_rows(block, instance)
        _link_rows(block, instance)
        check_range(block, instance.name)

    def start(self, block: pyo.Block, instance: CollectiveInstance, solution: CollectivePlan) -> None:
        """Set roots, what links carry and flows to those of the plan's trees, and the time to what they take."""
        all_parts = parts(instance)
        rooted: dict[int, Fraction] = defaultdict(Fraction)
        carried: dict[tuple[str, Arc], Fraction] = defaultdict(Fraction)
        flow: dict[tuple[str, int, Arc], Fraction] = defaultdict(Fraction)
        for tree in solution.trees:
            size = Fraction(tree.share) * all_parts
            rooted[tree.root] += size
            for phase in _PHASES[instance.collective]:
                for link in _links(tree.gather if phase == "gather" else tree.spread):
                    carried[phase, link] += size
                for end, ways in _ways(tree, phase):
                    for link in _links(ways):
                        flow[phase, end, link] += size
        for v in block.ACCELERATORS:
            block.rooted[v].set_value(float(rooted[v]))
        for phase, i, j in block.carried:
            block.carried[phase, i, j].set_value(float(carried[phase, (i, j)]))
        for phase, t, i, j in block.flow:
            block.flow[phase, t, i, j].set_value(float(flow[phase, t, (i, j)]))
        part = Fraction(instance.collective_bytes) / all_parts
        busy = (
            part * sum(carried[phase, link] for phase in _PHASES[instance.collective]) / Fraction(each)
            for link, each in instance.bandwidth.items()
        )
        block.time.set_value(float(max(busy)) / time_unit_s(instance))

    def read(self, block: pyo.Block, instance: CollectiveInstance) -> CollectivePlan:
        """Trees, packed into what links carry.

        Raises
        ------
        SolverError
            If they do not fit there; :class:`~ddlopt.models.errors.RangeError` where bandwidths are far apart.
        """
        from ddlopt.models.topology.collective.carried import trees_of

        rooted = [pyo.value(block.rooted[v]) for v in block.ACCELERATORS]
        carried = {
            phase: {link: pyo.value(block.carried[phase, link]) for link in instance.bandwidth}
            for phase in _PHASES[instance.collective]
        }
        try:
            trees = trees_of(instance, rooted, carried)
        except SolverError as problem:
            raise unread(problem, instance.bandwidth.values(), instance.name) from None
        return CollectivePlan(instance=instance.name, instance_digest=instance.digest, trees=tuple(trees))

    def objective_value(self, instance: CollectiveInstance, value: float) -> float:
        """Seconds."""
        return value * time_unit_s(instance)


def parts(instance: CollectiveInstance) -> int:
    """D, how many parts all M bytes are."""
    return instance.accelerators if instance.collective in ("all-gather", "reduce-scatter") else 1


def time_unit_s(instance: CollectiveInstance) -> float:
    """The unit of ``time``: of what the accelerator with the least bandwidth takes for bytes of others."""
    ways = []
    if "spread" in _PHASES[instance.collective]:
        ways += [(node, sum(instance.bandwidth[u, node] for u in tails)) for node, tails in instance.tails.items()]
    if "gather" in _PHASES[instance.collective]:
        ways += [(node, sum(instance.bandwidth[node, u] for u in heads)) for node, heads in instance.heads.items()]
    least = min(each for node, each in ways if node < instance.accelerators and node != instance.root)
    return unit_of(instance.collective_bytes / least, parts=1.0)


def _bounds(instance: CollectiveInstance) -> Any:
    def bounds(_: pyo.Block, v: int) -> tuple[float, float]:
        if instance.collective == "all-reduce":
            return 0.0, 1.0
        return (1.0, 1.0) if instance.root in (None, v) else (0.0, 0.0)

    return bounds


def _flow_rows(block: pyo.Block, instance: CollectiveInstance) -> None:
    all_parts = float(parts(instance))

    @block.Constraint(doc="all bytes have a root")
    def bytes_have_roots(b: pyo.Block) -> Any:
        return LinearExpression(linear_coefs=[1.0] * len(b.rooted), linear_vars=[*b.rooted.values()]) == all_parts

    @block.Constraint(block.PHASES, block.ACCELERATORS, block.NODES, doc="all bytes arrive at each accelerator")
    def flow_is_conserved(b: pyo.Block, p: str, t: int, v: int) -> Any:
        if v == t:
            return pyo.Constraint.Skip  # what arrives there is what all others send
        into = [b.flow[p, t, u, v] for u in sorted(instance.tails.get(v, ()))]
        out = [b.flow[p, t, v, u] for u in sorted(instance.heads.get(v, ()))]
        own = [b.rooted[v]] if v < instance.accelerators else []
        sign = 1.0 if p == "spread" else -1.0
        coefficients = [sign] * len(into) + [-sign] * len(out) + [1.0] * len(own)
        if not coefficients:
            return pyo.Constraint.Skip  # a switch without links
        return LinearExpression(linear_coefs=coefficients, linear_vars=into + out + own) == 0.0

    @block.Constraint(block.PHASES, block.ACCELERATORS, block.LINKS, doc="what is on its way to one is carried")
    def flow_is_carried(b: pyo.Block, p: str, t: int, i: int, j: int) -> Any:
        return LinearExpression(linear_coefs=[1.0, -1.0], linear_vars=[b.flow[p, t, i, j], b.carried[p, i, j]]) <= 0


def _link_rows(block: pyo.Block, instance: CollectiveInstance) -> None:
    part, unit = instance.collective_bytes / parts(instance), time_unit_s(instance)
    most = 2 * instance.accelerators * parts(instance)

    @block.Constraint(block.PHASES, block.NODES, doc="what enters a switch leaves it")
    def switch_forwards(b: pyo.Block, p: str, w: int) -> Any:
        into = [b.carried[p, u, w] for u in sorted(instance.tails.get(w, ()))]
        out = [b.carried[p, w, u] for u in sorted(instance.heads.get(w, ()))]
        if w < instance.accelerators or not into + out:
            return pyo.Constraint.Skip
        return LinearExpression(linear_coefs=[1.0] * len(into) + [-1.0] * len(out), linear_vars=into + out) == 0

    @block.Constraint(block.LINKS, doc="a link carries no more than its bandwidth for the time")
    def link_carries(b: pyo.Block, i: int, j: int) -> Any:
        seconds = part / instance.bandwidth[i, j] / unit
        if seconds * most < _FAINT:
            return pyo.Constraint.Skip  # all bytes of all trees take it a fraction of what one accelerator takes
        each = [b.carried[p, i, j] for p in b.PHASES]
        return LinearExpression(linear_coefs=[seconds] * len(each) + [-1.0], linear_vars=[*each, b.time]) <= 0


def _links(paths: Iterable[Path]) -> Iterable[Arc]:
    """All links of paths, as often as they are used."""
    return (link for path in paths for link in itertools.pairwise(path))


def _ways(tree: Tree, phase: str) -> Iterable[tuple[int, list[Path]]]:
    """Of each accelerator but the root, the paths between it and the root."""
    paths = tree.gather if phase == "gather" else tree.spread
    near, far = (-1, 0) if phase == "gather" else (0, -1)
    last = {path[far]: path for path in paths}
    for end in last:
        ways, node = [], end
        while node != tree.root:
            ways.append(last[node])
            node = last[node][near]
        yield end, ways
