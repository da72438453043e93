"""What plans need of the memory of device groups, by choice of a group of operators: shares that all of them have."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.plan.choices import Choices
from ddlopt.frontier.deployment.plan.seats import Floats
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, Replica, parts
from ddlopt.models.tolerances import let_pass_at_most


class Memory(NamedTuple):
    """Shares of memory.

    Parameters
    ----------
    shares : (groups, choices, rows)
        Of every plan that fits, the sum over groups is at most 1 in each row: of bytes in each device group, then of
        bytes of each device at a moment of its own.
    fits : (groups, choices)
        Whether a device has room for what it has of a group by itself.
    """

    shares: Floats
    fits: npt.NDArray[np.bool_]


def memory_of(choices: Choices) -> Memory:
    r"""What choices need at least.

    *Bytes.* A device has the resident bytes of its operators all the time. Let x be an operator, and s a sample of the
    batch. At the first start of a replica of x that has s, every operator that x needs has ended for s, and none that
    needs x has begun for s, other than where it is duplicated. So a tensor from the one to the other, of operators of
    one group, is held for the part of the batch with s on the device that has both, or on one of the two if they have a
    device each. Both are there if they are in one device group. In the mean over all s, of a part :math:`\sigma` of the
    batch so much is held for :math:`\sigma` of the time. What a device group holds in the mean is no more than it has.

    *Moments of their own.* The same for one sample of each device, which is in as many of its parts as possible: then
    a part with it counts in full, and a tensor of operators with a device each only where there is no other device.
    """
    instance = choices.instance
    held_bytes, machines = _held(instance), len(instance.device_groups)
    most = max(map(len, choices.of_groups))
    shares = np.zeros((instance.groups, most, 2 * machines))
    fits = np.zeros((instance.groups, most), bool)
    at = instance.device_group_of.tolist()
    room = [let_pass_at_most(group.memory_bytes) for group in instance.device_groups]
    everywhere = [parts(instance, action.device_groups, action.split) for action in choices.actions]
    moments = _moments(instance, everywhere)
    for group, members in enumerate(instance.members):
        for c, choice in enumerate(choices.of_groups[group]):
            rows = {
                place: everywhere[choice.action] if device < 0 else (Replica(device, 0, UNITS),)
                for place, device in zip(members, choice.devices, strict=True)
            }
            resident = _resident(instance, rows)
            own = shares[group, c]
            for device, sizes in resident.items():
                j = at[device]
                own[j] += sum(sizes) / room[j] / instance.device_groups[j].count
                own[j - machines] += sum(sizes) / room[j] / instance.device_groups[j].count
            # One that stands for every device of its group may be apart from the others.
            apart = choice.devices[0] >= 0
            alone = {device: max(sizes) if apart else sum(sizes) for device, sizes in resident.items()}
            whole = {place for place, own_whole in zip(members, choice.duplicated, strict=True) if own_whole}
            for (maker, reader), size_bytes in held_bytes.get(group, {}).items():
                if maker in whole or reader in whole or at[rows[maker][0].device] != at[rows[reader][0].device]:
                    continue
                for each in rows[maker]:
                    j, part = at[each.device], each.units / UNITS
                    held = size_bytes * part / room[j] / instance.device_groups[j].count
                    own[j] += held * part
                    known = instance.device_groups[j].count == 1 if apart else True
                    if known and each.first <= moments[each.device] < each.last:
                        own[j - machines] += held
                    if not apart:
                        alone[each.device] += size_bytes * part
            fits[group, c] = all(size <= room[at[device]] for device, size in alone.items())
    return Memory(shares, fits)


def _resident(instance: DeploymentInstance, rows: dict[int, tuple[Replica, ...]]) -> dict[int, list[float]]:
    """By device what stays there: one figure for replicas of a group, or one for each operator."""
    found: dict[int, list[float]] = {}
    for place, row in rows.items():
        for each in row:
            size_bytes = instance.operators[place].resident_bytes
            known = found.setdefault(each.device, [])
            if len(row) > 1 and known:
                known[0] += size_bytes
            else:
                known.append(size_bytes)
    return found


def _moments(instance: DeploymentInstance, everywhere: list[tuple[Replica, ...]]) -> list[int]:
    """For each device a sample that most of its parts have."""
    found = []
    for device in range(instance.devices):
        own = {(each.first, each.last) for row in everywhere for each in row if each.device == device}
        middles = sorted({(first + last) // 2 for first, last in own})
        found.append(max(middles, key=lambda sample: sum(first <= sample < last for first, last in own)))
    return found


def _held(instance: DeploymentInstance) -> dict[int, dict[tuple[int, int], float]]:
    """By group, operators and bytes of tensors from what one operator needs to what needs it, for the best of these."""
    count = len(instance.operators)
    after = np.zeros((count, count), bool)
    for place in reversed(instance.order):
        for reader in instance.readers[place]:
            after[place] |= after[reader]
            after[place, reader] = True
    group = [operator.group for operator in instance.operators]
    best: dict[int, dict[tuple[int, int], float]] = {}
    most_bytes = 0.0
    for x in range(count):
        found: dict[int, dict[tuple[int, int], float]] = {}
        total_bytes = 0.0
        for tensor in instance.tensors:
            maker = tensor.producer
            readers = [each for each in tensor.consumers if group[each] == group[maker] and after[x, each]]
            if not readers or not after[maker, x]:
                continue
            pairs = found.setdefault(group[maker], {})
            # Of several readers one is enough, and the tensor is held once.
            pairs[maker, readers[0]] = pairs.get((maker, readers[0]), 0.0) + tensor.size_bytes
            total_bytes += tensor.size_bytes
        if total_bytes > most_bytes:
            best, most_bytes = found, total_bytes
    return best
