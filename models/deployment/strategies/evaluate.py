"""The independent check of a choice of strategies."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import accumulate
from math import fsum

import numpy as np

from ddlopt.models.contracts import Evaluation, Number, Violation
from ddlopt.models.deployment.strategies.instance import StrategyAssignment, StrategyInstance
from ddlopt.models.tolerances import let_pass


def evaluate_strategies(instance: StrategyInstance, solution: StrategyAssignment, exact: bool = False) -> Evaluation:
    """Cost, and moments at which memory does not suffice.

    Memory is checked at every time; a violation stands for all times from the one that it names up to the next change.
    """
    chosen = solution.strategies
    broken = tuple(_unreadable(instance, chosen))
    if broken:
        return Evaluation(None, broken)
    violations = [*_wrong_choices(instance, chosen)]
    total, forbidden = _cost(instance, chosen, exact)
    violations += forbidden
    peak, excess = _memory(instance, chosen, exact)
    violations += excess
    return Evaluation(None if forbidden else total, tuple(violations), {"peak_usage": peak})


def _unreadable(instance: StrategyInstance, chosen: tuple[int, ...]) -> Iterator[Violation]:
    if len(chosen) != instance.size:
        yield Violation("number of strategies", "strategies", len(chosen), instance.size)
        return
    for node, (strategy, count) in enumerate(zip(chosen, instance.costs.sizes.tolist(), strict=True)):
        if not 0 <= strategy < count:
            yield Violation("no such strategy", f"node {node}", strategy, count - 1)


def _wrong_choices(instance: StrategyInstance, chosen: tuple[int, ...]) -> Iterator[Violation]:
    for node, strategy in instance.pins:
        if chosen[node] != strategy:
            yield Violation("pinned strategy", f"node {node}", chosen[node], strategy)
    for nodes in instance.aliases:
        for node in nodes[1:]:
            if chosen[node] != chosen[nodes[0]]:
                yield Violation("strategies alike", f"nodes {nodes[0]} and {node}", chosen[node], chosen[nodes[0]])


def _cost(instance: StrategyInstance, chosen: tuple[int, ...], exact: bool) -> tuple[Number, list[Violation]]:
    """The sum of what is not forbidden, and what is."""
    strategies = np.array(chosen, dtype=np.int64)
    own = instance.costs.values[instance.costs.starts[:-1] + strategies]
    first, second = strategies[instance.edges[:, 0]], strategies[instance.edges[:, 1]]
    places = instance.tables.starts[instance.table_of] + first * instance.table_shapes[:, 1] + second
    joint = instance.tables.values[places]
    violations = [
        Violation("forbidden strategy", f"node {node}", chosen[node], np.inf)
        for node in np.flatnonzero(np.isinf(own)).tolist()
    ]
    for e in np.flatnonzero(np.isinf(joint)).tolist():
        i, j = instance.edges[e].tolist()
        where = f"edge {e} from node {i} (strategy {chosen[i]}) to node {j} (strategy {chosen[j]})"
        violations.append(Violation("forbidden pair", where, 1, 0))
    terms = [*own[np.isfinite(own)].tolist(), *joint[np.isfinite(joint)].tolist()]
    return sum(map(Fraction, terms), Fraction(0)) if exact else fsum(terms), violations


def _memory(instance: StrategyInstance, chosen: tuple[int, ...], exact: bool) -> tuple[Number, list[Violation]]:
    """The largest usage, and where it exceeds the limit."""
    alive = [
        (*interval, node) for node, interval in enumerate(instance.intervals.tolist()) if interval[0] < interval[1]
    ]
    moments = sorted({time for begin, end, _ in alive for time in (begin, end)})
    place = {time: k for k, time in enumerate(moments)}
    usages = instance.usages
    used = usages.values[usages.starts[:-1] + np.array(chosen, dtype=np.int64)]
    kept: list[Number] = [Fraction(each) for each in used.tolist()] if exact else used.tolist()
    change: list[Number] = [0] * len(moments)
    for begin, end, node in alive:
        change[place[begin]] += kept[node]
        change[place[end]] -= kept[node]
    load = list(accumulate(change))
    peak = max(load, default=0)
    limit = instance.usage_limit
    if limit is None:
        return peak, []
    number = Fraction if exact else float
    most = number(limit) if instance.usages_are_whole else let_pass(number(limit))
    return peak, [
        Violation("memory", f"time {time}", usage, limit)
        for time, usage in zip(moments, load, strict=True)
        if usage > most
    ]
