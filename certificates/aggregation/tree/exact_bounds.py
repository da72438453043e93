"""The combinatorial bound of aggregating switches in a tree in rational numbers, with states of subtrees."""

from fractions import Fraction

from ddlopt.certificates.aggregation.tree.exact_congestion import least_congestion
from ddlopt.certificates.aggregation.tree.exact_utilization import least_utilization
from ddlopt.models.aggregation.tree.instance import TreeInstance


def exact_tree_bound(instance: TreeInstance) -> Fraction:
    """Seconds below which no answer is.

    That of :func:`~ddlopt.models.aggregation.tree.bounds.tree_bound`, and, where it is more,
    :func:`~ddlopt.certificates.aggregation.tree.exact_congestion.least_congestion` or
    :func:`~ddlopt.certificates.aggregation.tree.exact_utilization.least_utilization`.
    """
    closed, nothing = closed_bounds(instance)
    if instance.goal == "congestion":
        return least_congestion(instance, closed, nothing)
    return max(closed, least_utilization(instance) or closed)


def closed_bounds(instance: TreeInstance) -> tuple[Fraction, Fraction]:
    """The bound that needs no states, and the objective without any aggregation."""
    rates = [Fraction(each) for each in instance.seconds_per_message]
    path = list(rates)
    for node in instance.order[1:]:
        path[node] += path[_above(instance, node)]
    busy, plain, nothing = [Fraction(0)] * instance.size, [Fraction(0)] * instance.size, Fraction(0)
    kept: list[Fraction] = []
    for job in instance.jobs:
        size, count, below = Fraction(job.message_size), list(job.loads), list(job.loads)
        nothing += size * sum(load * far for load, far in zip(job.loads, path, strict=True))
        savings = []
        for node in reversed(instance.order):
            if instance.memory is None or instance.memory[node] >= job.memory:
                savings.append(size * max(0, below[node] - 1) * path[node])
                count[node] = min(1, count[node])
            busy[node] += rates[node] * size * count[node]
            plain[node] += rates[node] * size * below[node]
            if instance.parents[node] is not None:
                count[_above(instance, node)] += count[node]
                below[_above(instance, node)] += below[node]
        kept += sorted(savings, reverse=True)[: job.budget]
    if instance.goal == "congestion":
        return max(busy), max(plain)
    most = sum(sorted(kept, reverse=True)[: instance.budget], Fraction(0))
    return max(sum(busy, Fraction(0)), nothing - most), nothing


def _above(instance: TreeInstance, node: int) -> int:
    above = instance.parents[node]
    assert above is not None
    return above
