"""What searches choose from: the actions of a group, which devices operators have when split over several, plans.

An *action* is a choice of device groups, a mode and a split of the batch; all groups of an instance have the same list
of actions, so that a plan is a row of numbers, one a group (``chosen``). With ``model_parallel`` a rule says which
device each operator has (:func:`spread`), so that rows are fewer than deployments.
"""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.solution import Deployment, GroupPlan, Mode, Split

Ints = npt.NDArray[np.int64]

# Fifty halvings are exact to a double, but for a few bits.
_HALVINGS = 50
MOST_SETS = 255
"""Of device groups: all sets of 8, which searches try one by one; of 9 and more there are some."""
MOST_SEATS = 8_000_000
"""Times that the simulator looks up, of operators on the devices of sets: 64 MB, and some seconds to fill."""


class Action(NamedTuple):
    """What may be decided for a group; ``model_parallel`` by the rule of :func:`spread`."""

    device_groups: tuple[int, ...]
    mode: Mode
    split: Split = "even"


def lists_all_sets(instance: DeploymentInstance) -> bool:
    """Whether :func:`device_sets` are all sets of device groups; if not, what holds for actions holds in a scope."""
    return (1 << len(instance.device_groups)) - 1 <= MOST_SETS


def device_sets(instance: DeploymentInstance) -> tuple[tuple[int, ...], ...]:
    """Sets of device groups that actions choose from, by size, then in lexicographic order.

    All of them where these are at most :data:`MOST_SETS`. Otherwise the single ones, all together, all of a type, all
    of a number of devices, and aligned runs of 2, 4, 8 … in the order of the instance and in that of types: where
    groups are interchangeable, as they mostly are where they are many, it matters how many a set has and little which.
    Of these, as many as keep :data:`MOST_SEATS` places of operators on devices; the smaller runs are left out last.
    """
    count = len(instance.device_groups)
    known = tuple(range(count))
    if lists_all_sets(instance):
        return tuple(mask for size in range(1, count + 1) for mask in itertools.combinations(known, size))
    kinds = [(group.type, group.count) for group in instance.device_groups]
    by_type = tuple(sorted(known, key=lambda j: kinds[j]))
    needed = [(j,) for j in known] + [known]
    same = [
        tuple(j for j in known if kinds[j][place] == value) for place in (0, 1) for value in {k[place] for k in kinds}
    ]
    runs = [
        tuple(sorted(order[first : first + size]))
        for size in _doublings(count)
        for order in dict.fromkeys((known, by_type))
        for first in range(0, count, size)
    ]
    left = MOST_SEATS // len(instance.operators)
    found: dict[tuple[int, ...], None] = {}
    for chosen in (*needed, *sorted(same), *runs):
        left -= 0 if chosen in found else len(instance.devices_of(chosen))
        if left < 0 and len(found) >= len(needed):
            break
        found[chosen] = None
    return tuple(sorted(found, key=lambda chosen: (len(chosen), chosen)))


def _doublings(count: int) -> list[int]:
    """2, 4, 8 … below the count."""
    return [1 << k for k in range(1, count.bit_length()) if 1 << k < count]


def actions(instance: DeploymentInstance, splits: Sequence[Split] = ("even", "speed")) -> tuple[Action, ...]:
    """Actions, the same for every group: one or more for each of :func:`device_sets`.

    Of each set: ``all_reduce`` and ``parameter_server`` with every split that differs (by speed only where device types
    do), then ``model_parallel``; of a single device only ``all_reduce``.
    """
    found: list[Action] = []
    for chosen in device_sets(instance):
        if len(instance.devices_of(chosen)) == 1:
            found.append(Action(chosen, "all_reduce"))
            continue
        one_type = len({instance.device_groups[j].type for j in chosen}) == 1
        here: tuple[Split, ...] = ("even",) if one_type else tuple(splits)
        modes: tuple[Mode, ...] = ("all_reduce", "parameter_server")
        found += [Action(chosen, mode, split) for mode in modes for split in here]
        found.append(Action(chosen, "model_parallel"))
    return tuple(found)


def spread(instance: DeploymentInstance, group: int, device_groups: Sequence[int]) -> tuple[int, ...]:
    """Devices of a group's operators, in the order of ``DeploymentInstance.members``, for ``model_parallel``.

    The operators are cut into consecutive pieces in topological order, which keeps most tensors on their device. Each
    device in turn takes operators as long as it needs at most T seconds for the whole batch, with the least T for which
    they all find a place (up to 2^-50 of it).
    """
    members, devices = instance.members[group], instance.devices_of(device_groups)
    kinds = [instance.device_groups[instance.device_group_of[device]].type for device in devices]
    of_kind = {kind: [instance.operators[place].times_s[kind][0] for place in members] for kind in dict.fromkeys(kinds)}
    times = [of_kind[kind] for kind in kinds]
    # Added up one by one, as a device does: sum() of Python 3.12 rounds once, and may be less by that.
    low, high = 0.0, max(list(itertools.accumulate(row, initial=0.0))[-1] for row in of_kind.values())
    longest = max(map(min, zip(*of_kind.values(), strict=True)))  # with less one operator has no place
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        fits = middle >= longest and _fill(times, middle) is not None
        low, high = (low, middle) if fits else (middle, high)
    places = _fill(times, high)
    assert places is not None  # With T = the largest sum the first device takes everything.
    return tuple(devices[k] for k in places)


def _fill(times: Sequence[Sequence[float]], most: float) -> list[int] | None:
    """The device, counted among those given, of each operator if none may work for more than ``most``."""
    places: list[int] = []
    k, load = 0, 0.0
    while len(places) < len(times[0]):
        load += times[k][len(places)]
        if load <= most:
            places.append(k)
        else:
            k, load = k + 1, 0.0
            if k == len(times):
                return None
    return places


def forward_order(instance: DeploymentInstance) -> Ints:
    """(groups,) groups by the longest way that is left to the end of the step from any of their operators."""
    left = np.zeros(len(instance.operators), dtype=np.int64)
    for place in reversed(instance.order):
        left[place] = max((left[reader] + 1 for reader in instance.readers[place]), default=0)
    longest = [-max(left[place] for place in members) for members in instance.members]
    return np.argsort(longest, kind="stable")


def group_plan(instance: DeploymentInstance, group: int, action: Action) -> GroupPlan:
    """An action as it stands in a deployment."""
    parallel = action.mode == "model_parallel"
    devices = spread(instance, group, action.device_groups) if parallel else None
    return GroupPlan(device_groups=action.device_groups, mode=action.mode, split=action.split, devices=devices)


def as_deployment(
    instance: DeploymentInstance,
    chosen: Sequence[Action],
    duplicated: Sequence[int] = (),
    devices: Ints | None = None,
) -> Deployment:
    """The deployment of one action a group.

    Parameters
    ----------
    chosen : sequence of Action
        One a group.
    duplicated : sequence of int
        Operators; those of groups that do not all-reduce, or on one device, are left out.
    devices : (operators,) array, optional
        With ``model_parallel`` the device of each operator instead of the rule's; -1 where the rule holds.
    """
    plans = []
    for group, action in enumerate(chosen):
        plan = group_plan(instance, group, action)
        if plan.devices is not None and devices is not None:
            members = instance.members[group]
            wanted = [
                device if devices[place] < 0 else int(devices[place])
                for place, device in zip(members, plan.devices, strict=True)
            ]
            plan = GroupPlan(device_groups=plan.device_groups, mode=plan.mode, split=plan.split, devices=tuple(wanted))
        plans.append(plan)
    may = [action.mode == "all_reduce" and len(instance.devices_of(action.device_groups)) > 1 for action in chosen]
    kept = tuple(place for place in sorted(set(duplicated)) if may[instance.operators[place].group])
    return Deployment(instance=instance.name, instance_digest=instance.digest, groups=tuple(plans), duplicated=kept)
