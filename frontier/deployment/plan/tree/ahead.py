"""What prices say of all completions of a partial plan: the least sum of a row mix, by elimination of later groups."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np

from ddlopt.frontier.deployment.plan.choices import Choice, Choices
from ddlopt.frontier.deployment.plan.prices.best_prices import BestPrices
from ddlopt.frontier.deployment.plan.prices.kernels import Buckets
from ddlopt.frontier.deployment.plan.seats import Floats, Ints
from ddlopt.models.kernels import leaf

_TURNS = 60
"""Of the prices, before the search."""
_MIXES, _ROWS = 20, 60
"""Prices of the last turns, and rows by themselves, which are what little is left of a plan is about."""
_MOST_NUMBERS = 20_000_000
"""In the tables of all mixes."""

AHEAD = (
    "record(Ahead, i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1], i8[::1],"
    " i8[::1], i8[:, ::1], i8[::1], f8[:, :, ::1], f8[:, ::1], f8[:, ::1], f8[:, :, ::1], f8[::1], f8[::1])"
)


class Ahead(NamedTuple):
    """Mixes of rows, each with the least that it is for what is left of a plan.

    Parameters
    ----------
    order, table_at, chunk_at, one, other, one_table, other_table, before_at, before, before_table : Ints
        Of :class:`~ddlopt.frontier.deployment.plan.prices.kernels.Buckets`.
    counts : (groups,)
        Choices of the prices, of which one stands for all devices of a device group.
    stands : (groups, choices)
        Which of them stands for a choice.
    first : (mixes,)
        Mixes in the order in which they are asked: what left out something, comes sooner.
    cost, tables : (mixes, groups, choices), (mixes, numbers)
        After the elimination.
    sum_s : (groups + 1, mixes)
        The least of all plans with the choices down to a depth.
    more_s : (groups, mixes, choices)
        How much each choice of the next group adds to it.
    least_s, own_s : (choices,), (choices,)
        The largest of all mixes, and of one.
    """

    order: Ints
    table_at: Ints
    chunk_at: Ints
    one: Ints
    other: Ints
    one_table: Ints
    other_table: Ints
    before_at: Ints
    before: Ints
    before_table: Ints
    counts: Ints
    stands: Ints
    first: Ints
    cost: Floats
    tables: Floats
    sum_s: Floats
    more_s: Floats
    least_s: Floats
    own_s: Floats


class Mixes(NamedTuple):
    """What does not depend on which choices are left."""

    buckets: Buckets
    counts: Ints
    known: tuple[tuple[Choice, ...], ...]
    cost: Floats
    tables: Floats
    least_s: Floats


def mixes_of(prices: BestPrices, groups: int) -> Mixes:
    """The last prices, and the rows that had any."""
    figures, buckets = prices.figures, prices.buckets
    while prices.turns < _TURNS and prices.turn():
        pass
    last = prices.late[-_MIXES:]
    weight = np.zeros(prices.rows)
    for each in last:
        weight[: len(each)] += each
    alone = np.eye(prices.rows)[np.argsort(-weight, kind="stable")[:_ROWS]]
    most = max(1, _MOST_NUMBERS // int(buckets.table_at[-1] + figures.counts.max() * groups + 1))
    rows = [np.pad(each, (0, prices.rows - len(each))) for each in last] + list(alone)
    costs, tables, least_s = [], [], []
    for each in rows[:most]:
        bound_s, _ = prices.least(each)
        cost, table = prices.completions
        costs.append(cost)
        tables.append(table)
        least_s.append(bound_s)
    return Mixes(
        buckets, figures.counts, figures.choices.of_groups, np.array(costs), np.array(tables), np.array(least_s)
    )


def ahead_of(mixes: Mixes | None, choices: Choices) -> Ahead:
    """With room for the search; without mixes it says nothing."""
    groups, most = choices.instance.groups, max(map(len, choices.of_groups))
    nothing = np.zeros(0, np.int64)
    stands = np.zeros((groups, most), np.int64)
    if mixes is None:
        return Ahead(
            *(nothing,) * 11, stands, nothing, np.zeros((0, 0, 0)), np.zeros((0, 0)), np.zeros((groups + 1, 0)),
            np.zeros((groups, 0, 0)), np.zeros(0), np.zeros(0),
        )  # fmt: skip
    at = choices.instance.device_group_of.tolist()
    for group, own in enumerate(choices.of_groups):
        place = {each: k for k, each in enumerate(mixes.known[group])}
        for k, each in enumerate(own):
            devices = tuple(at.index(at[device]) if device >= 0 else device for device in each.devices)
            stands[group, k] = place[each._replace(devices=devices)]
    count, _, width = mixes.cost.shape
    sum_s = np.zeros((groups + 1, count))
    sum_s[0] = mixes.least_s
    buckets = mixes.buckets
    return Ahead(
        buckets.order, buckets.table_at, buckets.chunk_at, buckets.one, buckets.other, buckets.one_table,
        buckets.other_table, buckets.before_at, buckets.before, buckets.before_table, mixes.counts, stands,
        np.arange(count), mixes.cost, mixes.tables, sum_s,
        np.zeros((groups, count, width)), np.zeros(width), np.zeros(width),
    )  # fmt: skip


@leaf
def look_ahead(ahead: Ahead, chosen: Ints, depth: int, below_s: float) -> None:
    """What plans with the groups up to a depth decided take at least, by choice of that group, into ``least_s``.

    Choices that need not be looked at any more have some number that is not below the limit.
    """
    mixes = len(ahead.first)
    if depth > 0:
        before = ahead.order[depth - 1]
        place = ahead.stands[before, chosen[before]]
        for k in range(mixes):
            ahead.sum_s[depth, k] = ahead.sum_s[depth - 1, k] + ahead.more_s[depth - 1, k, place]
    size = ahead.counts[ahead.order[depth]]
    left = size
    for c in range(size):
        ahead.least_s[c] = 0.0
    for i in range(mixes):
        k, shut = ahead.first[i], False
        _more(ahead, chosen, depth, k)
        for c in range(size):
            if ahead.least_s[c] < below_s:
                bound_s = ahead.sum_s[depth, k] + ahead.more_s[depth, k, c]
                ahead.least_s[c] = max(ahead.least_s[c], bound_s)
                if not bound_s < below_s:
                    left -= 1
                    shut = True
        if shut:
            ahead.first[i], ahead.first[i // 2] = ahead.first[i // 2], k
        if left == 0:
            return


@leaf
def _more(ahead: Ahead, chosen: Ints, depth: int, k: int) -> None:
    """What each choice of a group adds to the least, into ``more_s``: its own costs less what was counted for it."""
    group = ahead.order[depth]
    size = ahead.counts[group]
    for c in range(size):
        ahead.own_s[c] = ahead.cost[k, group, c]
    for q in range(ahead.before_at[depth], ahead.before_at[depth + 1]):
        earlier = ahead.before[q]
        at = ahead.table_at[ahead.before_table[q]] + ahead.stands[earlier, chosen[earlier]] * size
        for c in range(size):
            ahead.own_s[c] += ahead.tables[k, at + c]
    chunks = ahead.chunk_at[depth + 1] - ahead.chunk_at[depth]
    counted_s = 0.0
    if chunks < 2:
        counted_s = np.inf
        for c in range(size):
            counted_s = min(counted_s, ahead.own_s[c])
    else:
        for chunk in range(ahead.chunk_at[depth], ahead.chunk_at[depth + 1]):
            counted_s += _handed_on(ahead, chosen, chunk, group, 1.0 / chunks, k)
    for c in range(size):
        ahead.more_s[depth, k, c] = ahead.own_s[c] - counted_s


@leaf
def _handed_on(ahead: Ahead, chosen: Ints, chunk: int, group: int, part: float, k: int) -> float:
    """As in the elimination, for the choices of the earlier groups."""
    one, other, size, least_s = ahead.one[chunk], ahead.other[chunk], ahead.counts[group], np.inf
    at = ahead.table_at[ahead.one_table[chunk]] + ahead.stands[one, chosen[one]] * size
    at_other = 0
    if other >= 0:
        at_other = ahead.table_at[ahead.other_table[chunk]] + ahead.stands[other, chosen[other]] * size
    for c in range(size):
        own_s = ahead.cost[k, group, c] * part + ahead.tables[k, at + c]
        if other >= 0:
            own_s += ahead.tables[k, at_other + c]
        least_s = min(least_s, own_s)
    return least_s
