"""The combinatorial bound of aggregating switches in a tree in rational numbers."""

from fractions import Fraction

from ddlopt.models.aggregation.tree.instance import TreeInstance


def exact_tree_bound(instance: TreeInstance) -> Fraction:
    """Seconds below which no answer is: see :func:`~ddlopt.models.aggregation.tree.bounds.tree_bound`."""
    rates = [Fraction(each) for each in instance.seconds_per_message]
    path = list(rates)
    for node in instance.order[1:]:
        path[node] += path[_above(instance, node)]
    busy, nothing = [Fraction(0)] * instance.size, Fraction(0)
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
            if instance.parents[node] is not None:
                count[_above(instance, node)] += count[node]
                below[_above(instance, node)] += below[node]
        kept += sorted(savings, reverse=True)[: job.budget]
    if instance.goal == "congestion":
        return max(busy)
    most = sum(sorted(kept, reverse=True)[: instance.budget], Fraction(0))
    return max(sum(busy, Fraction(0)), nothing - most)


def _above(instance: TreeInstance, node: int) -> int:
    above = instance.parents[node]
    assert above is not None
    return above
