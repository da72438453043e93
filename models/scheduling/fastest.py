"""How fast a job can be at best, wherever its workers are: for bounds."""

import numpy as np
import numpy.typing as npt

from ddlopt.models.scheduling.instance import SchedulingInstance, most_workers


def fastest_rates(instance: SchedulingInstance, place: int) -> list[float]:
    """Mini-batches per slot of a job at each of its widths, at the placement and bandwidth that suit it best."""
    job = instance.jobs[place]
    if instance.contention is None and instance.bandwidth == "reserved":
        return [instance.progress(place, width) for width in job.widths]
    room = np.sort(most_workers(instance.capacity, instance.demand[place]))[::-1]
    held = np.cumsum(room)
    return [_fastest(instance, place, width, int(np.searchsorted(held, width)) + 1) for width in job.widths]


def _fastest(instance: SchedulingInstance, place: int, width: int, servers: int) -> float:
    """The fastest of a width that needs at least ``servers`` servers."""
    timing, rules = instance.jobs[place].timing, instance.contention
    if rules is None:
        assert instance.network is not None
        bandwidths: list[float | None] = [None] if servers == 1 else []
        if width > 1 and instance.server_count > 1:
            bandwidths.append(max(instance.network.arcs.values()))
        return max(float(timing.minibatches_per_s(width, bandwidth)) for bandwidth in bandwidths) * instance.slot_s
    iterations = []
    if servers == 1:
        within = float(timing.iteration_s(width, rules.within_server_bytes_per_s))
        iterations.append(within + rules.server_overhead_s)
    if width > 1 and instance.server_count > 1:
        between = float(timing.iteration_s(width, rules.between_servers_bytes_per_s))
        iterations.append(between + max(2, servers) * rules.server_overhead_s)
    return width / min(iterations) * instance.slot_s


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
