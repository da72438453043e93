"""What every device of a device group does or stands still for, and the way of gradients after that."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.plan.seats import Floats
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, Replica

Bools = npt.NDArray[np.bool_]

_LITTLE = 0.01
"""Of the work that may go on at the same time: an operator with less is not worth its place."""


class ServerWay(NamedTuple):
    """The way of a gradient through its server.

    Parameters
    ----------
    server : int
        Its place among the replicas.
    into_s : (device groups,)
        From when all replicas on a device group have ended, or later, until the server has the last of their gradients:
        those from another device group share its link.
    back_s : float
        From when the server has all until the last replica has the sum.
    """

    server: int
    into_s: Floats
    back_s: float


def server_way(instance: DeploymentInstance, place: int, row: tuple[Replica, ...]) -> ServerWay:
    """Of the gradient of an operator with two replicas or more."""
    server, at = place % len(row), instance.device_group_of
    here, size_bytes = int(at[row[server].device]), instance.operators[place].gradient_bytes
    counts = np.bincount(at[[each.device for each in row]], minlength=len(instance.device_groups)).tolist()
    into_s, back_s = np.zeros(len(counts)), 0.0
    for there, count in enumerate(counts):
        if there == here:
            rates, sent = (instance.device_groups[here].bandwidth_bytes_per_s,) * 2, min(1, count - 1)
        else:
            links, sent = instance.bandwidth_bytes_per_s, count
            rates = float(links[there, here]), float(links[here, there])
        if sent:
            into_s[there] = sent * (size_bytes / rates[0] + instance.latency_s)
            back_s = max(back_s, sent * (size_bytes / rates[1] + instance.latency_s))
    return ServerWay(server, into_s, back_s)


def stops(instance: DeploymentInstance, after: Bools) -> tuple[Bools, Bools]:
    """(operators,) which are counted, all but those with little work beside others; which of these stop all others.

    An operator stops the others if each counted one needs what it makes, directly or not, or is needed for it.
    """
    work = np.array([max(map(max, each.times_s.values())) for each in instance.operators])
    apart = ~(after | after.T | np.eye(len(work), dtype=bool))
    counted: Bools = work >= _LITTLE * (apart @ work)
    alone: Bools = counted & ~(apart & counted).any(axis=1)
    return counted, alone


def common_s(instance: DeploymentInstance, row: tuple[Replica, ...], times: list[float], stop: bool) -> Floats:
    """(device groups,) seconds of a counted operator in which each device of a group does it, or does none of them.

    For one device, let each operator have an interval: if the device has a part of the batch, that of its replica; if
    the operator stops all others and is on one device, that one's, and if several have the whole batch each, that of
    the first of them to end. No two overlap. Replicas on the device do not, nor two operators that stop all others. Let
    o stop all others and have the whole batch. A part of the batch that is needed for o has ended before any replica of
    o begins, and whatever needs o begins after the first replica has ended.
    """
    found, at = np.zeros(len(instance.device_groups)), instance.device_group_of
    if row[0].units < UNITS:
        return _least_there(instance, row, times)
    if stop:
        found[:] = min(times)
    elif len(row) == 1 and instance.device_groups[at[row[0].device]].count == 1:
        found[at[row[0].device]] = times[0]
    return found


def ends_s(
    instance: DeploymentInstance, row: tuple[Replica, ...], times: list[float], least_s: float, into_s: Floats
) -> Floats:
    """(device groups,) seconds from when all counted before an operator is done, for a device of a group, to the end.

    Let a step have the intervals of :func:`common_s` for what is needed for the operator, and ``own_s`` for its replica
    on a device. If on each device of the group this replica is the last of them to end, gradients are on their way for
    ``into_s`` from then on. If another one is, some replica of the operator begins after it, with ``least_s`` from then
    on at least; and so it is where the operator is not on these devices.
    """
    found = np.full(len(instance.device_groups), least_s)
    if len(row) > 1:
        own_s = _least_there(instance, row, times)
        found = np.where(own_s > 0, np.maximum(found, own_s + np.minimum(into_s, least_s)), found)
    return found


def _least_there(instance: DeploymentInstance, row: tuple[Replica, ...], times: list[float]) -> Floats:
    found, at = np.full(len(instance.device_groups), np.inf), instance.device_group_of
    for each, time_s in zip(row, times, strict=True):
        found[at[each.device]] = min(found[at[each.device]], time_s)
    found[np.isinf(found)] = 0.0
    return found
