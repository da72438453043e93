"""Who computes which part of the batch, and how long an operator takes for a part."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate
from typing import NamedTuple

from ddlopt.models.contracts import Number
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment, Split

UNITS = 4 * math.lcm(*range(1, 25))
"""Parts of the batch in which borders between replicas are counted, about 2e10.

Borders are whole numbers, so that two groups either split the batch in the same way or do not, whatever the rounding.
Even splits over up to 24 devices, and over 28, 30, 32, 40, 48 …, are exact.
"""

NumberType = type[Fraction] | type[float]


class Replica(NamedTuple):
    """An operator on one device, for the part ``first .. last`` of the batch, in ``UNITS``."""

    device: int
    first: int
    last: int

    @property
    def units(self) -> int:
        """Its share of the batch."""
        return self.last - self.first


def borders(weights: Sequence[Fraction | int]) -> tuple[int, ...]:
    """Where the batch is cut into parts in proportion to ``weights``: from 0 to ``UNITS``, one more than weights."""
    total = sum(weights)
    return (0, *(round(Fraction(UNITS * reached) / total) for reached in accumulate(weights)))


def step_time_s(instance: DeploymentInstance, device_type: str) -> Fraction:
    """Seconds that a device of that type computes for all operators and the whole batch."""
    return sum((Fraction(operator.times_s[device_type][0]) for operator in instance.operators), Fraction())


def parts(instance: DeploymentInstance, device_groups: Sequence[int], split: Split) -> tuple[Replica, ...]:
    """The replicas of a group over all devices of ``device_groups``, in the order of the devices.

    With ``split="speed"`` parts are in proportion to 1 / ``step_time_s``, even where that is 0 somewhere: the same for
    all groups on the same device groups, so that nothing has to be sent between them.
    """
    devices = instance.devices_of(device_groups)
    weights: list[Fraction | int] = [1] * len(devices)
    if split == "speed":
        times = [step_time_s(instance, instance.device_groups[j].type) for j in device_groups]
        if all(times):
            speed = dict(zip(device_groups, (1 / time for time in times), strict=True))
            weights = [speed[int(instance.device_group_of[device])] for device in devices]
    cuts = borders(weights)
    if len(set(cuts)) <= len(devices):
        cuts = borders([1] * len(devices))
    return tuple(Replica(device, cuts[i], cuts[i + 1]) for i, device in enumerate(devices))


def placed(instance: DeploymentInstance, deployment: Deployment) -> list[tuple[Replica, ...]]:
    """For every operator the replicas that a deployment, which must fit the instance, has of it."""
    where: list[tuple[Replica, ...]] = [()] * len(instance.operators)
    duplicated = set(deployment.duplicated)
    for group, plan in enumerate(deployment.groups):
        if plan.devices is not None:
            for place, device in zip(instance.members[group], plan.devices, strict=True):
                where[place] = (Replica(device, 0, UNITS),)
            continue
        replicas = parts(instance, plan.device_groups, plan.split)
        whole = tuple(Replica(replica.device, 0, UNITS) for replica in replicas)
        for place in instance.members[group]:
            where[place] = whole if place in duplicated else replicas
    return where


def time_at(shares: Sequence[float], times_s: Sequence[float], units: int, number: NumberType = float) -> Number:
    """Seconds for a part of the batch, on straight lines through the times given for ``shares``.

    Below the smallest share the last line goes on, down to 0 at least; with one share only, times are in proportion.
    """
    share = number(units) / UNITS
    if len(shares) == 1:
        return number(times_s[0]) * share
    low = next((k for k in range(1, len(shares)) if share >= number(shares[k])), len(shares) - 1)
    at, above = number(shares[low]), number(shares[low - 1])
    start, end = number(times_s[low]), number(times_s[low - 1])
    return max(number(0), start + (end - start) * ((share - at) / (above - at)))
