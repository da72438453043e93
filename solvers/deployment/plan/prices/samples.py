"""Ways of single samples of the batch through a plan: how long whatever has a sample takes, and waits for it."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, Replica, time_at
from ddlopt.solvers.deployment.plan.seats import Floats, Ints

Bools = npt.NDArray[np.bool_]

_MOST = 48
"""Samples; between two borders of all splits they are alike."""


class Samples(NamedTuple):
    """Figures of samples, by the kind of seat of an operator or by its choice.

    A replica that has a sample waits for one of each input that has it. Of replicas with the whole batch each, a figure
    is the least of all, or the most where nothing reads what they make.

    Parameters
    ----------
    kind : (operators, seats)
        Of each seat, in the other arrays.
    own_s : (operators, seats, samples)
        Of the replica with the sample.
    per_byte_s, fixed_s : (samples, kinds, kinds)
        What it takes to pass on the sample, for a byte of the whole tensor and besides.
    size_bytes : (pairs,)
        Of the largest tensor.
    sync_s : (operators, choices, samples)
        From the end of the replica with the sample to that of the gradient.
    back_s : (operators, choices, links)
        Work of links with sums of gradients from servers, which wait for all samples.
    """

    kind: Ints
    own_s: Floats
    per_byte_s: Floats
    fixed_s: Floats
    size_bytes: Floats
    sync_s: Floats
    back_s: Floats


def drawn(known: list[tuple[Replica, ...]]) -> Ints:
    """One sample between any two borders of the splits of some seats, some of them where there are many."""
    borders = np.unique([border for row in known for each in row for border in (each.first, each.last)])
    middles = (borders[:-1] + borders[1:]) // 2
    chosen: Ints = middles[np.unique(np.linspace(0, len(middles) - 1, min(_MOST, len(middles))).astype(np.int64))]
    return chosen


def holders(row: tuple[Replica, ...], samples: Ints) -> Bools:
    """(replicas, samples) whether a replica has the sample."""
    return np.array([[each.first <= sample < each.last for sample in samples.tolist()] for each in row])


def own_s(instance: DeploymentInstance, place: int, row: tuple[Replica, ...], samples: Ints) -> Floats:
    """(samples,) seconds of the replica of an operator that has the sample; the most of all where they end a step."""
    at, times_s = instance.device_group_of, instance.operators[place].times_s
    times = [
        float(time_at(instance.shares, times_s[instance.device_groups[at[each.device]].type], each.units))
        for each in row
    ]
    if row[0].units == UNITS and not instance.readers[place]:
        return np.full(len(samples), max(times))
    found: Floats = np.where(holders(row, samples), np.array(times)[:, None], np.inf).min(axis=0)
    return found


def passed_on(
    known: list[tuple[Replica, ...]],
    entries: tuple[Ints, Ints, Ints, Ints, Floats, Floats],
    samples: Ints,
) -> tuple[Floats, Floats]:
    """(samples, seats, seats) seconds a byte and seconds that each sample needs from seat to seat.

    ``entries`` are those of :func:`~ddlopt.solvers.deployment.plan.seats.pairs_of`.
    """
    count = len(known)
    holds = np.concatenate([holders(row, samples) for row in known])
    offset = np.cumsum([0, *map(len, known)])
    starts, taken_from, taken_by, _, per_byte_s, fixed_s = entries
    pair = np.repeat(np.arange(count * count), np.diff(starts))
    there = holds[offset[pair // count] + taken_from] & holds[offset[pair % count] + taken_by]
    found = []
    for figures in (per_byte_s, fixed_s):
        least = np.minimum.reduceat(np.where(there, figures[:, None], np.inf), starts[:-1], axis=0)
        found.append(np.ascontiguousarray(least.T.reshape(len(samples), count, count)))
    return found[0], found[1]
