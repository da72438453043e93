"""The least that anything in a step can take, whatever the plan: what bounds are made of."""

import math
from itertools import combinations

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, parts, time_at
from ddlopt.models.deployment.plan.simulator.tasks import all_reduce_s
from ddlopt.models.deployment.plan.solution import Split

SPLITS: tuple[Split, ...] = ("even", "speed")

Floats = npt.NDArray[np.float64]


def least_units(instance: DeploymentInstance) -> npt.NDArray[np.int64]:
    """(device groups,) least part of the batch that any plan gives a device, in ``UNITS``.

    Parts are least where all devices take part: even, or by speed, where a part is its device's speed over the sum of
    all. Borders are rounded, which makes up to one unit here and one in any other plan.
    """
    everywhere = range(len(instance.device_groups))
    found = np.full(len(everywhere), UNITS)
    for split in SPLITS:
        for replica in parts(instance, everywhere, split):
            j = instance.device_group_of[replica.device]
            found[j] = min(found[j], replica.units)
    return (found - 2).clip(min=1)


def least_figures(instance: DeploymentInstance) -> tuple[Floats, Floats]:
    """(operators, device groups): least seconds of a part of the batch, and least seconds of it per batch.

    Both over all parts from ``least_units`` to the whole. Times are straight between the shares that the instance
    gives, so the first is least at one of them or at an end; so is the second, as (a + b s) / s is monotone in s.
    """
    units = least_units(instance)
    size = (len(instance.operators), len(instance.device_groups))
    least, per_batch = np.empty(size), np.empty(size)
    for place, operator in enumerate(instance.operators):
        for j, group in enumerate(instance.device_groups):
            low = int(units[j])
            points = [low, *(round(share * UNITS) for share in instance.shares if share * UNITS > low)]
            times = [float(time_at(instance.shares, operator.times_s[group.type], point)) for point in points]
            least[place, j] = min(times)
            per_batch[place, j] = min(time * UNITS / point for time, point in zip(times, points, strict=True))
    return least, per_batch


def whole_times(instance: DeploymentInstance) -> Floats:
    """(operators, device groups): seconds of the whole batch on one device."""
    return np.array(
        [[operator.times_s[group.type][0] for group in instance.device_groups] for operator in instance.operators]
    )


def least_synchronisation_s(instance: DeploymentInstance, size_bytes: float) -> float:
    """Least seconds to reduce a gradient over any two devices or more; infinite where there is one device only.

    An all-reduce is quickest within the quickest device group, or between the best two; a server needs a transfer in
    and one out.
    """
    several = [j for j, group in enumerate(instance.device_groups) if group.count > 1]
    pairs = list(combinations(range(len(instance.device_groups)), 2))
    choices = [(j,) for j in several] + pairs
    if not choices:
        return math.inf
    reduced = min(float(all_reduce_s(instance, chosen, size_bytes, float)) for chosen in choices)
    rates = [instance.device_groups[j].bandwidth_bytes_per_s for j in several]
    rates += [float(instance.bandwidth_bytes_per_s[i, j]) for a, b in pairs for i, j in ((a, b), (b, a))]
    return min(reduced, 2 * (size_bytes / max(rates) + instance.latency_s))
