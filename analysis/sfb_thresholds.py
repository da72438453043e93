"""Below which bandwidth and below which batch sufficient factors pay, exactly, for every gradient."""

from math import inf
from typing import Literal, NamedTuple

import numpy as np

from ddlopt.analysis.sfb_nested_cuts import breakpoints
from ddlopt.models.compression import Operator, SfbInstance, Tensor
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.compression.sfb.costs import CostGraph, Costs, costs_of

Quantity = Literal["bandwidth", "batch"]


class Threshold(NamedTuple):
    """Up to which multiple of the instance's own bandwidth or batch an operator's gradient is sent as factors.

    Parameters
    ----------
    operator : int
    scale : float
        0: never; infinite: always.
    """

    operator: int
    scale: float


class Price(NamedTuple):
    """What an operator's gradient would have to cost more to be worth sending as factors.

    Parameters
    ----------
    operator : int
    price_s : float
        Of its all-reduce, in the instance's cost model; negative where it is sent as factors, and would be up to so
        much less.
    """

    operator: int
    price_s: float


def thresholds(instance: SfbInstance, quantity: Quantity) -> tuple[Threshold, ...]:
    r"""The largest bandwidth, or the largest batch, at which each gradient is worth sending as factors.

    **Bandwidth.** Let :math:`E(x) = \sum_i (e_i + \alpha) x_i` and :math:`C(x)` the all-reduces and broadcasts. With
    all bandwidths multiplied by :math:`\beta`, every cost model has :math:`E(x) + C(x) / \beta`: the same optima as
    :math:`\beta E(x) + C(x)`, where :math:`\beta` multiplies nothing but prices of single operators. So optimal
    selections shrink as the bandwidth grows (see :func:`~ddlopt.analysis.sfb_nested_cuts.breakpoints`), and
    each gradient has one bandwidth up to which it is sent as factors and above which it is all-reduced.

    **Batch.** With the batch of all devices multiplied by :math:`\gamma`, so are times and tensors, and gradients stay:
    :math:`\gamma (E(x) + W(x)) + S(x)` with broadcasts W and all-reduces S, the same optima as
    :math:`E(x) + W(x) + S(x) / \gamma`. What not duplicating costs is all that changes, and falls: again optimal
    selections shrink. So SFB pays *below* a batch, one for each gradient. The penalty counts as computation here and
    grows with the batch; were it constant, an operator could come back (it is meant to break ties).

    In ``per_link`` everything has the factor (M-1)/M if all operators have M replicas. Then the threshold is on the
    batch of all devices together (devices times samples on each), whatever the number of devices.

    **Thresholds are dual prices.** :math:`\beta` is the multiplier of a limit on E in :math:`\min C(x)`: a second of
    computation is worth :math:`\beta` seconds of communication at the instance's bandwidth. The linear relaxation has
    integral optima at every :math:`\beta`, so its optimal value as a function of the limit is convex and piecewise
    linear with the slopes :math:`-\beta_g`, and these are the thresholds. At a given bandwidth :func:`prices` says by
    how much a gradient misses; that price is 0 at the threshold, where it has its one change of sign.

    Parameters
    ----------
    instance : SfbInstance
        Without budgets, under which optimal selections need not be nested.
    quantity : {"bandwidth", "batch"}

    Returns
    -------
    tuple of Threshold
        For all operators whose gradient is all-reduced, by place. A threshold is where two lines cross, whose
        coefficients are sums over what changes.

    Raises
    ------
    NotApplicableError
        If the instance has budgets.
    """
    _refuse_budgets(instance)
    graph, costs = CostGraph(instance), costs_of(instance)
    if quantity == "bandwidth":
        growing, fixed = costs.only("extra"), costs.only("sync", "broadcast")
        first = graph.cheapest(fixed).duplicated
    else:
        growing, fixed = costs.only("extra", "broadcast"), costs.only("sync")
        forcing = np.where(costs.sync > 0, costs.sync + 2 * graph.alone(costs), 0.0)
        first = graph.cheapest(Costs(costs.extra, forcing, costs.broadcast)).duplicated
    last = graph.cheapest(fixed.plus(growing.endless())).duplicated
    scale = np.where(last, inf, 0.0)
    for point in breakpoints(graph, growing, fixed, first, last):
        scale[point.leaving] = point.parameter
    return tuple(Threshold(node, float(scale[node])) for node in _gradients(instance))


def prices(instance: SfbInstance) -> tuple[Price, ...]:
    """How far every gradient is from the change between all-reduce and factors, at the instance's own bandwidth.

    That is the least cost with its operator duplicated, less the least cost without. In the maximum flow: where the
    operator is not duplicated, how much more could flow from the source over it to the sink. One minimum cut for each
    gradient.

    Raises
    ------
    NotApplicableError
        If the instance has budgets.
    """
    _refuse_budgets(instance)
    graph, costs = CostGraph(instance), costs_of(instance)
    best = graph.cheapest(costs).duplicated
    alone = graph.alone(costs)
    found = []
    for node in _gradients(instance):
        other = Costs(costs.extra.copy(), costs.sync.copy(), costs.broadcast)
        if best[node]:
            other.extra[node] = inf
        elif instance.eligible[node]:
            other.sync[node] += 2 * alone[node]
        difference = graph.change(costs, best, graph.cheapest(other).duplicated)
        price = -difference if best[node] else difference
        found.append(Price(node, price if instance.eligible[node] else inf))
    return tuple(found)


def scaled(instance: SfbInstance, quantity: Quantity, scale: float) -> SfbInstance:
    """The instance with all bandwidths, or the batch, multiplied.

    A batch multiplies the times, the tensors and the penalty, and no gradient.
    """
    bandwidth, batch = (scale, 1.0) if quantity == "bandwidth" else (1.0, scale)
    operators = [
        Operator(
            **each.model_dump(exclude={"time_s", "bandwidth_bytes_per_s"}),
            time_s=each.time_s * batch,
            bandwidth_bytes_per_s=each.bandwidth_bytes_per_s * bandwidth,
        )
        for each in instance.operators
    ]
    tensors = [
        Tensor(producer=each.producer, consumers=each.consumers, size_bytes=each.size_bytes * batch)
        for each in instance.tensors
    ]
    return SfbInstance(
        name=f"{instance.name}, {scale:g} of its {quantity}",
        source=instance.source,
        operators=tuple(operators),
        tensors=tuple(tensors),
        cost_model=instance.cost_model,
        broadcast=instance.broadcast,
        duplication_penalty_s=instance.duplication_penalty_s * batch,
        memory_budget_bytes=instance.memory_budget_bytes,
        compute_budget_s=instance.compute_budget_s,
    )


def _gradients(instance: SfbInstance) -> list[int]:
    """Operators whose gradient is all-reduced."""
    return [int(node) for node in np.flatnonzero(instance.sync_s > 0)]


def _refuse_budgets(instance: SfbInstance) -> None:
    if instance.budgeted:
        raise NotApplicableError(
            f"'{instance.name}' has budgets, under which a gradient need not have one threshold; leave them out"
        )
