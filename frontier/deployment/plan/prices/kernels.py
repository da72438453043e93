"""Numba kernels of prices: what choices and pairs of them cost, and the least of all plans by elimination of groups."""

# mypy: disable-error-code="untyped-decorator, no-any-return"

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.kernels import kernel, leaf

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Weights(NamedTuple):
    """What each figure counts: rows of a program, or sums of rows by their prices.

    Parameters
    ----------
    load : (operators, columns)
    lone : (operators, device groups)
        Loads where the operator is not copied.
    least : (operators,)
    delay : (pairs,)
    carried, lone_carried : (pairs, links)
        The second where the reader is not copied.
    sample, sync : (operators, sets + device groups)
        A replica that has a sample of the set, or some one replica, and what its gradient takes after it.
    passed : (pairs, ways)
    back : (operators, links)
        Sums of gradients from servers.
    """

    load: Floats
    lone: Floats
    least: Floats
    delay: Floats
    carried: Floats
    lone_carried: Floats
    sample: Floats
    sync: Floats
    passed: Floats
    back: Floats


class Figures(NamedTuple):
    """Arrays of :class:`~ddlopt.frontier.deployment.plan.prices.quantities.Quantities`, with flags as numbers.

    Those from ``kind`` on are of its :class:`~ddlopt.frontier.deployment.plan.prices.samples.Samples`.
    """

    counts: Ints
    group: Ints
    seat: Ints
    copied: Ints
    copies: Ints
    least_s: Floats
    load_s: Floats
    pairs: Ints
    delay_s: Floats
    carried_s: Floats
    kind: Ints
    own_s: Floats
    per_byte_s: Floats
    fixed_s: Floats
    size_bytes: Floats
    sync_s: Floats
    back_s: Floats
    first: Ints


class Buckets(NamedTuple):
    """In which order groups are eliminated, the last first, and what is handed on.

    Parameters
    ----------
    order : (groups,)
    table_at : (tables + 1,)
        Where the costs of two groups begin, (choices of the earlier, choices of the later).
    of_pair, turned : (pairs,)
        Table of two operators, -1 within a group; whether the second operator's group comes first.
    chunk_at, one, other : (groups + 1,), (chunks,), (chunks,)
        Earlier groups that a group hands its least cost on to, one or two at a time; -1 for none.
    one_table, other_table, both_table : (chunks,)
    before_at, before, before_table : (groups + 1,), (.,), (.,)
        All earlier neighbours of a group.
    """

    order: Ints
    table_at: Ints
    of_pair: Ints
    turned: Ints
    chunk_at: Ints
    one: Ints
    other: Ints
    one_table: Ints
    other_table: Ints
    both_table: Ints
    before_at: Ints
    before: Ints
    before_table: Ints


_WEIGHTS = "record(Weights, f8[:, ::1], f8[:, ::1], f8[::1], f8[::1]" + ", f8[:, ::1]" * 6 + ")"
_FIGURES = (
    "record(Figures, i8[::1], i8[::1], i8[:, ::1], i8[:, ::1], i8[:, ::1], f8[:, ::1], f8[:, :, ::1], i8[:, ::1],"
    " f8[:, :, ::1], f8[:, :, :, ::1], i8[:, ::1], f8[:, :, ::1], f8[:, :, ::1], f8[:, :, ::1], f8[:, ::1],"
    " f8[:, :, ::1], f8[:, :, ::1], i8[::1])"
)
_BUCKETS = "record(Buckets" + ", i8[::1]" * 13 + ")"


@kernel(f"void({_FIGURES}, {_WEIGHTS}, b1[:, ::1], i8[::1], i8[::1], i8[::1], f8[:, ::1], f8[::1])")
def weigh(
    figures: Figures,
    weights: Weights,
    left: Bools,
    table_at: Ints,
    of_pair: Ints,
    turned: Ints,
    cost: Floats,
    tables: Floats,
) -> None:
    """Costs (groups, choices) of the choices that are left, infinite for others; of two neighbours into ``tables``."""
    operators, _, columns = figures.load_s.shape
    links, seats = weights.carried.shape[1], figures.delay_s.shape[1]
    sets, ways = weights.sample.shape[1], weights.passed.shape[1]
    for group in range(len(cost)):
        for c in range(cost.shape[1]):
            cost[group, c] = 0.0 if left[group, c] else np.inf
    tables[:] = 0.0
    for place in range(operators):
        group = figures.group[place]
        for c in range(figures.counts[group]):
            cost[group, c] += weights.least[place] * figures.least_s[place, c]
        for q in range(columns):
            weight = weights.load[place, q]
            lone = weights.lone[place, q] if q < weights.lone.shape[1] else 0.0
            if weight != 0.0 or lone != 0.0:
                for c in range(figures.counts[group]):
                    cost[group, c] += (weight + lone * (1 - figures.copied[place, c])) * figures.load_s[place, c, q]
        for q in range(links):
            if weights.back[place, q] != 0.0:
                for c in range(figures.counts[group]):
                    cost[group, c] += weights.back[place, q] * figures.back_s[place, c, q]
        for k in range(sets):
            sample, sync = weights.sample[place, k], weights.sync[place, k]
            if sample != 0.0 or sync != 0.0:
                for c in range(figures.counts[group]):
                    own_s = figures.own_s[place, figures.seat[place, c], k]
                    cost[group, c] += sample * own_s + sync * figures.sync_s[place, c, k]
    between, lies = np.empty((seats, seats)), np.empty((2, seats), np.bool_)
    for pair in range(len(figures.pairs)):
        maker, reader = figures.pairs[pair, 0], figures.pairs[pair, 1]
        one, other = figures.group[maker], figures.group[reader]
        lies[:] = False
        for c in range(figures.counts[one]):
            lies[0, figures.seat[maker, c]] |= left[one, c]
        for c in range(figures.counts[other]):
            lies[1, figures.seat[reader, c]] |= left[other, c]
        between[:], any_s = weights.delay[pair] * figures.delay_s[pair], weights.delay[pair] != 0.0
        for k in range(links):
            carried, lone = weights.carried[pair, k], weights.lone_carried[pair, k]
            if carried == 0.0 and lone == 0.0:
                continue
            any_s = True
            for a in range(seats):
                if lies[0, a]:
                    for b in range(seats):
                        here = carried + lone * (1 - figures.copies[reader, b])
                        between[a, b] += here * figures.carried_s[pair, k, a, b]
        for k in range(ways):
            weight, size_bytes = weights.passed[pair, k], figures.size_bytes[figures.first[k], pair]
            if weight == 0.0 or size_bytes == 0.0:
                continue
            any_s = True
            for a in range(seats):
                if lies[0, a]:
                    x = figures.kind[maker, a]
                    for b in range(seats):
                        y = figures.kind[reader, b]
                        each_s = figures.per_byte_s[k, x, y] * size_bytes + figures.fixed_s[k, x, y]
                        between[a, b] += weight * each_s
        if not any_s:
            continue
        if one == other:
            for c in range(figures.counts[one]):
                if left[one, c]:
                    cost[one, c] += between[figures.seat[maker, c], figures.seat[reader, c]]
            continue
        at = table_at[of_pair[pair]]
        step_one, step_other = (1, figures.counts[one]) if turned[pair] else (figures.counts[other], 1)
        for a in range(figures.counts[one]):
            if left[one, a]:
                for b in range(figures.counts[other]):
                    if left[other, b]:
                        sum_s = between[figures.seat[maker, a], figures.seat[reader, b]]
                        tables[at + a * step_one + b * step_other] += sum_s


@kernel(f"f8({_BUCKETS}, i8[::1], f8[:, ::1], f8[::1], i8[::1])")
def eliminate(buckets: Buckets, count: Ints, cost: Floats, tables: Floats, chosen: Ints) -> float:
    """At most the least cost of all plans, that of a plan if no group has several chunks; costs are overwritten.

    Choices of infinite cost are left out.

    ``chosen`` (groups,) gets the plan that is least as far as seen from one group after the other.
    """
    groups, sum_s = len(buckets.order), 0.0
    left = np.empty(count.max(), np.int64)
    for place in range(groups - 1, -1, -1):
        group = buckets.order[place]
        chunks = buckets.chunk_at[place + 1] - buckets.chunk_at[place]
        if chunks == 0:
            sum_s += cost[group, : count[group]].min()
            continue
        part = 1.0 / chunks
        for chunk in range(buckets.chunk_at[place], buckets.chunk_at[place + 1]):
            _hand_on(buckets, chunk, group, part, count, cost, tables, left)
    for place in range(groups):
        group, least_s = buckets.order[place], np.inf
        for c in range(count[group]):
            own_s = cost[group, c]
            for k in range(buckets.before_at[place], buckets.before_at[place + 1]):
                own_s += tables[
                    buckets.table_at[buckets.before_table[k]] + chosen[buckets.before[k]] * count[group] + c
                ]
            if own_s < least_s:
                least_s, chosen[group] = own_s, c
    return sum_s


@leaf
def _hand_on(
    buckets: Buckets, chunk: int, group: int, part: float, count: Ints, cost: Floats, tables: Floats, left: Ints
) -> None:
    """The least cost of a group, or a part of it, to one or two earlier ones; ``left`` (choices,) is overwritten."""
    one, other, size, most = buckets.one[chunk], buckets.other[chunk], count[group], 0
    for c in range(size):
        if cost[group, c] < np.inf:
            left[most] = c
            most += 1
    at = buckets.table_at[buckets.one_table[chunk]]
    for a in range(count[one]):
        if cost[one, a] == np.inf:
            continue
        if other < 0:
            least_s = np.inf
            for i in range(most):
                c = left[i]
                least_s = min(least_s, cost[group, c] * part + tables[at + a * size + c])
            cost[one, a] += least_s
            continue
        at_other = buckets.table_at[buckets.other_table[chunk]]
        at_both = buckets.table_at[buckets.both_table[chunk]] + a * count[other]
        for b in range(count[other]):
            if cost[other, b] == np.inf:
                continue
            least_s = np.inf
            for i in range(most):
                c = left[i]
                own_s = cost[group, c] * part + tables[at + a * size + c] + tables[at_other + b * size + c]
                least_s = min(least_s, own_s)
            tables[at_both + b] += least_s


@kernel("void(i8[::1], i8[:, ::1], i8[::1], i8[::1], b1[:, ::1], f8[:, ::1], f8[:, ::1], f8[:, ::1], i8[:, :, ::1])")
def follow(
    order: Ints,
    pairs: Ints,
    source: Ints,
    target: Ints,
    closed: Bools,
    own_s: Floats,
    passed_s: Floats,
    to_s: Floats,
    via: Ints,
) -> None:
    """When all that has a sample of a set ends at least: into ``to_s`` (operators, sets), all 0 before.

    Pairs (pairs, 2) are in the order of their second operators; ``closed`` (pairs, ways) are not used. The pair and the
    way before are in ``via`` (2, operators, sets), which is left where there are none.
    """
    pair = 0
    for place in order:
        while pair < len(pairs) and pairs[pair, 1] == place:
            for way in range(len(source)):
                there_s = to_s[pairs[pair, 0], source[way]] + passed_s[pair, way]
                if there_s > to_s[place, target[way]] and not closed[pair, way]:
                    to_s[place, target[way]] = there_s
                    via[0, place, target[way]], via[1, place, target[way]] = pair, way
            pair += 1
        for own in range(own_s.shape[1]):
            to_s[place, own] += own_s[place, own]
