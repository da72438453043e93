"""How fast a job can be at best, wherever its workers are: for bounds."""

from fractions import Fraction
from typing import overload

import numpy as np
import numpy.typing as npt

from ddlopt.models.contracts import Number
from ddlopt.models.scheduling.instance import Job, SchedulingInstance, most_workers


@overload
def fastest_rates(instance: SchedulingInstance, place: int) -> list[float]: ...


@overload
def fastest_rates(
    instance: SchedulingInstance, place: int, number: type[float] | type[Fraction]
) -> list[float] | list[Number]: ...


def fastest_rates(
    instance: SchedulingInstance, place: int, number: type[float] | type[Fraction] = float
) -> list[float] | list[Number]:
    """Mini-batches per slot of a job at each of its widths, at the placement and bandwidth that suit it best.

    Parameters
    ----------
    number : type
        Arithmetic: floats or rational numbers.
    """
    job, slot_s = instance.jobs[place], number(instance.slot_s)
    if instance.widths_decide_speed:
        return [job.timing.minibatches_per_s(width, None, number) * slot_s for width in job.widths]
    room = np.sort(most_workers(instance.capacity, instance.demand[place]))[::-1]
    held = np.cumsum(room)
    least = [int(np.searchsorted(held, width)) + 1 for width in job.widths]
    return [_fastest(instance, place, w, n, number) * slot_s for w, n in zip(job.widths, least, strict=True)]


def _fastest(
    instance: SchedulingInstance, place: int, width: int, servers: int, number: type[float] | type[Fraction]
) -> Number:
    """Mini-batches per second of a width that needs at least ``servers`` servers."""
    timing, rules = instance.jobs[place].timing, instance.contention
    if rules is None:
        assert instance.network is not None
        bandwidths: list[float | None] = [None] if servers == 1 else []
        if width > 1 and instance.server_count > 1:
            bandwidths.append(max(instance.network.arcs.values()))
        return max(timing.minibatches_per_s(width, bandwidth, number) for bandwidth in bandwidths)
    found = []
    if servers == 1:
        found.append(rules.minibatches_per_s(timing, width, 1, 0, number))
    if width > 1 and instance.server_count > 1:
        found.append(rules.minibatches_per_s(timing, width, max(2, servers), 1, number))
    return max(found)


def least_energy_j(instance: SchedulingInstance, among: npt.NDArray[np.bool_] | None = None) -> float:
    """Energy of a worker in a slot that no schedule gets below: its own, and its part of a full server's idle power.

    ``among`` (S,) says on which servers; 0 where no worker fits on any of them.
    """
    usable = np.zeros(instance.server_count, dtype=bool)
    for demand in np.unique(instance.demand, axis=0):
        usable |= most_workers(instance.capacity, demand) > 0
    if among is not None:
        usable &= among
        if not usable.any():
            return 0.0
    least = instance.demand.min(axis=0)
    power = instance.worker_w[usable]
    if (least > 0).any():  # a resource that every worker takes says how many there can be
        power = power + instance.idle_w[usable] / (instance.capacity[usable][:, least > 0] / least[least > 0]).min(
            axis=1
        )
    return float(power.min()) * instance.slot_s


def upper_envelope(widths: npt.NDArray[np.int64], rates: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Places of the corners of the concave envelope of (width, rate), up to the largest rate; widths increase."""
    corners = [0]
    for place in range(1, int(np.argmax(rates)) + 1):
        while len(corners) > 1:
            a, b = corners[-2], corners[-1]
            if (rates[b] - rates[a]) * (widths[place] - widths[a]) > (rates[place] - rates[a]) * (
                widths[b] - widths[a]
            ):
                break
            corners.pop()
        if rates[place] > rates[corners[-1]]:
            corners.append(place)
    return np.array(corners, dtype=np.int64)


def corner_widths(job: Job) -> tuple[int, ...]:
    """Widths at the corners of the concave envelope of a job's progress at its own bandwidth, 0 first, increasing.

    A relaxation, in which a job may divide a slot among several widths, needs no others. With ring timing and without
    latency progress is convex in the width, so that the corners are among 0, the least and the largest width
    (``docs/families/scheduling/proofs.md``).
    """
    widths = np.array([0, *job.widths])
    rates = np.array([float(job.timing.minibatches_per_s(int(width))) for width in widths])
    return tuple(widths[upper_envelope(widths, rates)].tolist())
