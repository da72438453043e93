r"""Least utilization of a tree by dynamic programming in whole numbers.

:math:`X_v(a, i)` is the least cost of the messages that enter at v or below until they reach a, the next switch above
v that aggregates or the destination, with at most i switches that aggregate at v or below (Segal et al., "SOAR", 2021):

.. math::
    X_v(a, i) = \min\Bigl\{\ell_v P_{va} + \bigoplus_c X_c(a, \cdot)\,(i),\quad
    P_{va} + \bigoplus_c X_c(v, \cdot)\,(i - 1)\Bigr\}

Several jobs share the budget; that they share memory is left out, so that the sum is no more than any answer has. The
time of each link is rounded down.
"""

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from ddlopt.models.aggregation.tree.instance import TreeInstance

_MOST_ENTRIES = 20_000_000
"""Of the tables of all jobs: some seconds."""
_BITS = 60
"""Of costs in whole numbers: two of them are added up."""

Ints = npt.NDArray[np.int64]


def least_utilization(instance: TreeInstance) -> Fraction | None:
    """A bound on the seconds for which links are busy; None where tables were too large."""
    above = [-1 if parent is None else parent for parent in instance.parents]
    depth = [1] * instance.size
    for node in instance.order[1:]:
        depth[node] = depth[above[node]] + 1
    pairs = instance.size * len(instance.jobs)
    total = pairs if instance.budget is None else min(instance.budget, pairs)
    most = min(total, instance.size)
    if sum(depth) * (most + 1) * len(instance.jobs) > _MOST_ENTRIES:
        return None
    times = [Fraction(rate) for rate in instance.seconds_per_message]
    path = list(times)
    for node in instance.order[1:]:
        path[node] += path[above[node]]
    cost = sum(Fraction(job.message_size) * sum(job.loads) for job in instance.jobs) * max(path)
    exponent = _BITS - 2 - (cost.numerator.bit_length() - cost.denominator.bit_length())
    unit = Fraction(2) ** exponent
    best = np.zeros(1, dtype=np.int64)
    for place, job in enumerate(instance.jobs):
        rates = [int(Fraction(job.message_size) * time * unit) for time in times]
        limit = most if job.budget is None else min(job.budget, most)
        best = _split(best[np.newaxis], _job_curve(instance, place, rates, limit)[np.newaxis], total)[0]
    return Fraction(int(best[-1])) / unit


def _job_curve(instance: TreeInstance, place: int, rates: list[int], limit: int) -> Ints:
    """Least cost of a job with at most 0, 1, … switches."""
    loads = instance.jobs[place].loads
    tables: dict[int, Ints] = {}
    # Of each switch, what a message takes to the destination and to the switches on its way there, from the root on.
    ways: dict[int, Ints] = {}
    for node in instance.order:
        parent = instance.parents[node]
        before = np.zeros(0, np.int64) if parent is None else ways[parent]
        ways[node] = np.append(before, 0) + rates[node]
    for node in reversed(instance.order):
        way = ways.pop(node)
        # Rows: the next switch that aggregates, from the destination down to this one; columns: how many do below.
        found = np.zeros((len(way) + 1, 1), dtype=np.int64)
        for child in instance.children[node]:
            found = _split(found, tables.pop(child), limit)
        passed = loads[node] * way[:, np.newaxis] + found[:-1]
        if limit and instance.may_aggregate(place, node):
            own = np.broadcast_to(way[:, np.newaxis] + found[-1], passed.shape)
            most = min(limit, passed.shape[1])
            wider = np.pad(passed, ((0, 0), (0, most + 1 - passed.shape[1])), mode="edge")
            wider[:, 1:] = np.minimum(wider[:, 1:], own[:, :most])
            passed = wider
        tables[node] = passed
    curve: Ints = tables[instance.order[0]][0]
    return curve


def _split(one: Ints, other: Ints, limit: int) -> Ints:
    """The least sums, row by row, with at most 0, 1, … ``limit`` in both; rows do not increase."""
    if one.shape[1] < other.shape[1]:
        one, other = other, one
    columns = min(limit, one.shape[1] + other.shape[1] - 2) + 1
    wider = np.pad(one, ((0, 0), (0, max(0, columns - one.shape[1]))), mode="edge")[:, :columns]
    found = wider + other[:, :1]
    for share in range(1, min(other.shape[1], columns)):
        np.minimum(found[:, share:], wider[:, : columns - share] + other[:, share : share + 1], out=found[:, share:])
    return found
