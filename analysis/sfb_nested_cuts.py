"""Selections of sufficient factors that are optimal as one parameter of their costs grows: they are nested."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import Operator, SfbInstance, Tensor
from ddlopt.solvers.compression.sfb.costs import CostGraph, Costs

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

_NO_GAIN = 1e-13
"""A selection that is better by less than this part of what changes is no other one: the figures are rounded."""
_FREE = Operator(name="to decide", time_s=0.0, replicas=2, bandwidth_bytes_per_s=1.0)
_OUTSIDE = Operator(name="not duplicated", time_s=0.0, replicas=2, bandwidth_bytes_per_s=1.0, can_duplicate=False)


class Contraction(NamedTuple):
    """What is left of a graph where most operators are decided: the others, and one that is never duplicated.

    Parameters
    ----------
    graph : CostGraph
        Its operators are the members, and last the one that stands for all that are not duplicated.
    members : (k,) int array
        Operators of the whole graph.
    kept : int array
        Tensors of the whole graph that are left.
    tensors, owners : int arrays
        Tensors of the whole graph that are broadcast unless their producer is duplicated, and the place of that
        producer among the members; once for each time.
    """

    graph: CostGraph
    members: Ints
    kept: Ints
    tensors: Ints
    owners: Ints

    @property
    def everything(self) -> Bools:
        """(k + 1,) all members."""
        return np.arange(len(self.members) + 1) < len(self.members)

    def costs(self, costs: Costs) -> Costs:
        """Costs of the whole graph as costs of this one; they differ by a constant."""
        added = np.bincount(self.owners, costs.broadcast[self.tensors], len(self.members))
        extra, sync = costs.extra[self.members], costs.sync[self.members] + added
        return Costs(np.append(extra, 0.0), np.append(sync, 0.0), costs.broadcast[self.kept])


def contract(graph: CostGraph, inside: Bools, duplicated: Bools) -> Contraction:
    """Decide on all operators but those ``inside``, which must be eligible: these are duplicated, others are not."""
    tensor, consumer = graph.instance.edges
    members = np.flatnonzero(inside)
    place = np.full(len(inside), len(members))
    place[members] = np.arange(len(members))
    times = np.bincount(tensor[duplicated[consumer]], minlength=len(graph.instance.producers))
    settled = duplicated[graph.instance.producers]
    if graph.instance.broadcast == "per_tensor":
        times = np.minimum(times, 1)
        settled |= times > 0
    own = np.flatnonzero(inside[graph.instance.producers])
    tensors = np.repeat(own, times[own])
    live = inside[consumer] & ~settled[tensor]
    kept, starts = np.unique(tensor[live], return_index=True)
    consumers = np.split(place[consumer[live]], starts[1:])[: len(kept)]
    instance = SfbInstance(
        name=graph.instance.name,
        operators=(_FREE,) * len(members) + (_OUTSIDE,),
        tensors=tuple(
            Tensor(producer=producer, consumers=tuple(each.tolist()), size_bytes=0.0)
            for producer, each in zip(place[graph.instance.producers[kept]].tolist(), consumers, strict=True)
        ),
        broadcast=graph.instance.broadcast,
    )
    return Contraction(CostGraph(instance), members, kept, tensors, place[graph.instance.producers[tensors]])


class Breakpoint(NamedTuple):
    """The operators that the optimal selection loses where the parameter passes a value."""

    parameter: float
    leaving: Ints


def breakpoints(graph: CostGraph, growing: Costs, fixed: Costs, first: Bools, last: Bools) -> list[Breakpoint]:
    r"""All changes of the selection that is optimal for :math:`\theta A + R`, by increasing :math:`\theta`.

    Let :math:`A` (``growing``) and :math:`R` (``fixed``) be such that for :math:`\theta < \theta'`, after a division by
    a positive number each, :math:`F_{\theta'} - F_\theta` is a sum over the duplicated operators of figures that are
    not negative, up to a constant. That is so if A has only ``extra``, or R only ``sync``.

    *Optimal selections are nested:* with X optimal at :math:`\theta` and Y at :math:`\theta'`, and the sum called m,

    .. math::
        F_\theta(X \cup Y) + F_{\theta'}(X \cap Y) = F_\theta(X \cup Y) + F_\theta(X \cap Y) + m(X \cap Y)
        \le F_\theta(X) + F_\theta(Y) + m(X \cap Y) = F_\theta(X) + F_{\theta'}(Y) - m(Y \setminus X),

    as all costs are submodular: :math:`w \max(0, x_j - x_i)` and the maximum of such terms are. The left-hand side is
    at least :math:`F_\theta(X) + F_{\theta'}(Y)`, hence :math:`X \cap Y` is optimal at :math:`\theta'`, and the
    smallest optimal selection there lies within every one that is optimal at :math:`\theta`. So there are at most n
    changes, every operator leaves once and never comes back, and the least cost is concave and piecewise linear in
    :math:`\theta`.

    *Divide and conquer:* the lines of two selections cross at :math:`(R(Y) - R(X)) / (A(X) - A(Y))`. If no selection
    is cheaper there, they are neighbours, and this is where one changes into the other; else the cheaper one lies
    between them, and the two halves are problems of their own on what they have to decide. Takes two minimum cuts a
    change at most, of ever smaller graphs (D. Eisner, D. Severance, "Mathematical techniques for
    efficient record segmentation in large shared databases", J. ACM 23(4), 1976; G. Gallo, M. Grigoriadis, R. Tarjan,
    "A fast parametric maximum flow algorithm and applications", SIAM J. Comput. 18(1), 1989, do it in the time of one).

    Parameters
    ----------
    graph : CostGraph
    growing, fixed : Costs
        A and R.
    first, last : (n,) bool arrays
        Optimal for small and for large parameters.

    Returns
    -------
    list of Breakpoint
        By increasing parameter.
    """
    found = []
    spans = [_span(graph, growing, fixed, np.arange(len(first)), first & ~last, last)]
    while spans:
        span = spans.pop()
        everything = span.whole.everything
        nothing = np.zeros_like(everything)
        whole, here = span.whole.graph, span.operators
        grown = whole.change(span.growing, nothing, everything)
        if grown <= 0:
            continue
        parameter = max(0.0, whole.change(span.fixed, everything, nothing) / grown)
        costs = span.fixed.plus(span.growing, parameter)
        between = everything if len(here) == 1 else whole.cheapest(costs).duplicated
        if whole.change(costs, between, everything) > _NO_GAIN * parameter * grown:
            for inside, duplicated in ((between, nothing), (everything & ~between, between)):
                spans.append(_span(whole, span.growing, span.fixed, here, inside, duplicated))
        else:
            found.append(Breakpoint(parameter, here))
    return sorted(found, key=lambda point: point.parameter)


class _Span(NamedTuple):
    """Operators that leave one after another, and what it costs to have or not to have them."""

    whole: Contraction
    operators: Ints
    growing: Costs
    fixed: Costs


def _span(graph: CostGraph, growing: Costs, fixed: Costs, operators: Ints, inside: Bools, duplicated: Bools) -> _Span:
    """``operators`` are the numbers in the first graph of those here."""
    whole = contract(graph, inside, duplicated)
    return _Span(whole, operators[whole.members], whole.costs(growing), whole.costs(fixed))
