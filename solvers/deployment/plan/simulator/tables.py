"""What the fast simulator looks up: replicas, times and reductions for every action, links between devices."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, Replica, parts
from ddlopt.models.deployment.plan.solution import Split
from ddlopt.models.tolerances import let_pass
from ddlopt.solvers.deployment.plan.actions import Action, spread
from ddlopt.solvers.deployment.plan.simulator.ticks import Words, ticks_of

Slot = tuple[tuple[int, ...], Split]


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ALL_REDUCE, PARAMETER_SERVER, MODEL_PARALLEL = range(3)
_MODES = {"all_reduce": ALL_REDUCE, "parameter_server": PARAMETER_SERVER, "model_parallel": MODEL_PARALLEL}


class Tables(NamedTuple):
    """An instance as arrays.

    A *slot* is a choice of device groups with a split of the batch; its replicas are ``seat[slot] .. seat[slot + 1]``.
    A *work* is a device type with a part of the batch. Durations are
    :mod:`~ddlopt.solvers.deployment.plan.simulator.ticks`, in two words each.

    Parameters
    ----------
    order, group : (operators,)
    inputs_at, inputs, outputs_at, outputs : (operators + 1,), (.,), (operators + 1,), (.,)
        Tensors of each operator, one row after the other.
    producer, consumers, size_bytes : (tensors,)
        Who makes it, how many read it.
    gradient_bytes, resident_bytes : (operators,)
    device_group, room_bytes : (devices,)
        Memory, with what the check lets pass of it.
    slot, mode : (actions,)
    seat : (slots + 1,)
    device : (seats,)
    first, last : (seats,)
        Parts of the batch, as places in ``cut``.
    cut : (cuts,)
        Where parts begin or end, in ``UNITS``, in order; the whole batch is from the first to the last.
    parts : (slots,)
        A number that is the same where devices and parts are.
    work, whole : (seats,), (devices,)
        Which one a seat is, and a device with the whole batch.
    spread : (operators, slots)
        Device with ``model_parallel``.
    link, rate_of : (devices, devices)
        The resource that a transfer takes, and which of the bandwidths it has: devices are 0 .. devices - 1, links
        follow, and the collective channel is the last.
    time, reduce, moved, sent, latency, scale_s, slack
        As in :class:`~ddlopt.solvers.deployment.plan.simulator.ticks.Ticks`, by works, slots and bandwidths.
    resources : int
    units : float
        ``UNITS``.
    """

    order: Ints
    group: Ints
    inputs_at: Ints
    inputs: Ints
    outputs_at: Ints
    outputs: Ints
    producer: Ints
    consumers: Ints
    size_bytes: Floats
    gradient_bytes: Floats
    resident_bytes: Floats
    device_group: Ints
    room_bytes: Floats
    slot: Ints
    mode: Ints
    seat: Ints
    device: Ints
    first: Ints
    last: Ints
    cut: Floats
    parts: Ints
    work: Ints
    whole: Ints
    spread: Ints
    link: Ints
    rate_of: Ints
    time: Words
    reduce: Words
    moved: Words
    sent: Words
    latency: Words
    resources: int
    units: float
    scale_s: float
    slack: np.uint64


def tables(instance: DeploymentInstance, actions: tuple[Action, ...]) -> Tables:
    """The arrays of an instance for a list of actions."""
    slots = list(dict.fromkeys((action.device_groups, action.split) for action in actions))
    seats = [instance.devices_of(chosen) for chosen, _ in slots]
    seat = np.concatenate(([0], np.cumsum([len(devices) for devices in seats])))
    first, last, same_parts = _parts(instance, slots)
    device = np.concatenate(seats)
    inputs_at, inputs = rows_of(instance.inputs)
    outputs_at, outputs = rows_of(instance.outputs)
    cut = np.unique(np.concatenate(([0, UNITS], first, last)))
    rate, link, resources = _links(instance)
    rates, rate_of = np.unique(rate, return_inverse=True)
    works, work, whole = _works(instance, device, last - first)
    ticks = ticks_of(instance, works, [chosen for chosen, _ in slots], rates.tolist())
    return Tables(
        order=np.array(instance.order),
        group=np.array([operator.group for operator in instance.operators]),
        inputs_at=inputs_at,
        inputs=inputs,
        outputs_at=outputs_at,
        outputs=outputs,
        producer=np.array([tensor.producer for tensor in instance.tensors], np.int64),
        consumers=np.array([len(tensor.consumers) for tensor in instance.tensors], np.int64),
        size_bytes=np.array([tensor.size_bytes for tensor in instance.tensors], np.float64),
        gradient_bytes=np.array([operator.gradient_bytes for operator in instance.operators]),
        resident_bytes=np.array([operator.resident_bytes for operator in instance.operators]),
        device_group=instance.device_group_of,
        room_bytes=np.array([let_pass(instance.device_groups[j].memory_bytes) for j in instance.device_group_of]),
        slot=np.array([slots.index((action.device_groups, action.split)) for action in actions]),
        mode=np.array([_MODES[action.mode] for action in actions]),
        seat=seat,
        device=device,
        first=np.searchsorted(cut, first),
        last=np.searchsorted(cut, last),
        cut=cut.astype(np.float64),
        parts=same_parts,
        work=work,
        whole=whole,
        spread=_spreads(instance, slots),
        link=link,
        rate_of=rate_of.reshape(rate.shape),
        **ticks._asdict(),
        resources=resources,
        units=float(UNITS),
    )


def rows_of(rows: Sequence[Sequence[int]]) -> tuple[Ints, Ints]:
    """Where each row begins, with where the last one ends, and all rows one after the other."""
    ends = np.cumsum([len(row) for row in rows])
    return np.concatenate(([0], ends)).astype(np.int64), np.array([place for row in rows for place in row], np.int64)


def _parts(instance: DeploymentInstance, slots: Sequence[Slot]) -> tuple[Ints, Ints, Ints]:
    rows = [parts(instance, chosen, split) for chosen, split in slots]
    numbers: dict[tuple[Replica, ...], int] = {}
    same_parts = np.array([numbers.setdefault(row, len(numbers)) for row in rows])
    replicas = [replica for row in rows for replica in row]
    first, last = (np.array([getattr(replica, name) for replica in replicas]) for name in ("first", "last"))
    return first, last, same_parts


def _works(instance: DeploymentInstance, device: Ints, units: Ints) -> tuple[list[tuple[str, int]], Ints, Ints]:
    """Device types with parts of the batch, and the places there of seats, and of devices with all of it."""
    kinds = [instance.device_groups[group].type for group in instance.device_group_of]
    numbers: dict[tuple[str, int], int] = {}
    work = [numbers.setdefault((kinds[d], part), len(numbers)) for d, part in zip(device, units.tolist(), strict=True)]
    whole = [numbers.setdefault((kind, UNITS), len(numbers)) for kind in kinds]
    return list(numbers), np.array(work), np.array(whole)


def _spreads(instance: DeploymentInstance, slots: Sequence[Slot]) -> Ints:
    found = np.empty((len(instance.operators), len(slots)), np.int64)
    masks = {chosen for chosen, _ in slots}
    for group, members in enumerate(instance.members):
        rule = {chosen: spread(instance, group, chosen) for chosen in masks}
        for k, (chosen, _) in enumerate(slots):
            found[list(members), k] = rule[chosen]
    return found


def _links(instance: DeploymentInstance) -> tuple[Floats, Ints, int]:
    devices, at = instance.devices, instance.device_group_of
    within = np.array([group.bandwidth_bytes_per_s for group in instance.device_groups])
    same = at[:, None] == at
    rate = np.where(same, within[at][:, None], instance.bandwidth_bytes_per_s[np.ix_(at, at)])
    own = devices + np.arange(devices)[:, None] * devices + np.arange(devices)
    shared = devices + devices**2 + at[:, None] * len(within) + at
    return rate, np.where(same, own, shared), devices + devices**2 + len(within) ** 2 + 1
