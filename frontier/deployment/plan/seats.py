"""Where operators may lie, and what passes between any two such seats."""

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.plan.choices import Choices
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, Replica, parts
from ddlopt.models.deployment.plan.simulator.tasks import all_reduce_s
from ddlopt.solvers.deployment.plan.actions import spread

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Seat = tuple[Replica, ...]

HERE, PRIVATE = -2, -1
"""Links of what stays on its device, and of what moves within a device group."""


class Seats:
    """All seats that choices name, by number."""

    def __init__(self, choices: Choices) -> None:
        instance = choices.instance
        self.instance, self.choices = instance, choices
        self.numbers: dict[Seat, int] = {}
        rows = [parts(instance, action.device_groups, action.split) for action in choices.actions]
        whole = [tuple(Replica(replica.device, 0, UNITS) for replica in row) for row in rows]
        most = max(map(len, choices.of_groups))
        size = len(instance.operators), most
        self.seat, self.server = np.zeros(size, np.int64), np.zeros(size, np.int64)
        self.reduce_s = np.zeros(size)
        for group, members in enumerate(instance.members):
            for c, choice in enumerate(choices.of_groups[group]):
                action = choices.actions[choice.action]
                rule = spread(instance, group, action.device_groups) if action.mode == "model_parallel" else ()
                for k, place in enumerate(members):
                    row = rows[choice.action]
                    if action.mode == "model_parallel":
                        row = (Replica(rule[k] if choice.devices[k] < 0 else choice.devices[k], 0, UNITS),)
                    elif choice.duplicated[k]:
                        row = whole[choice.action]
                    self.seat[place, c] = self.numbers.setdefault(row, len(self.numbers))
                    size_bytes = instance.operators[place].gradient_bytes
                    if not size_bytes or len(row) < 2 or choice.duplicated[k]:
                        continue
                    if action.mode == "all_reduce":
                        self.reduce_s[place, c] = all_reduce_s(instance, action.device_groups, size_bytes, float)
                    else:
                        self.server[place, c] = 1

    def entries(self, one: Seat, other: Seat) -> list[tuple[int, int, int]]:
        """Replica of one that replica of the other takes units of the batch from."""
        at, found = self.instance.device_group_of, []
        for x, reader in enumerate(other):
            if all(holder.units == UNITS for holder in one):
                near = [k for k, holder in enumerate(one) if holder.device == reader.device] or [
                    k for k, holder in enumerate(one) if at[holder.device] == at[reader.device]
                ]
                found.append(((near or [0])[0], x, reader.units))
                continue
            for k, holder in enumerate(one):
                units = min(holder.last, reader.last) - max(holder.first, reader.first)
                if units > 0:
                    found.append((k, x, units))
        return found


def ways(instance: DeploymentInstance) -> tuple[Floats, Ints]:
    """Bytes a second and the link, from each device to each other one; links go on where devices end."""
    at, groups = instance.device_group_of, len(instance.device_groups)
    within = np.array([group.bandwidth_bytes_per_s for group in instance.device_groups])
    rate = np.where(at[:, None] == at, within[at][:, None], instance.bandwidth_bytes_per_s[np.ix_(at, at)])
    link = np.where(at[:, None] == at, PRIVATE, instance.devices + at[:, None] * groups + at)
    np.fill_diagonal(link, HERE)
    return rate, link


def pairs_of(
    seats: Seats, known: list[Seat], rate: Floats, link: Ints, latency_s: float
) -> tuple[tuple[Ints, Ints, Ints, Ints, Floats, Floats], Floats, Floats]:
    """What replicas of each seat take from those of each other one, and what all of them wait for at least.

    Entries of the pair (a, b) are those from ``starts[a * seats + b]`` on: replicas of a and of b, the link, seconds a
    byte, and seconds. For all replicas of b the delay from a is at least (seats, seats) seconds a byte, and seconds.
    """
    count = len(known)
    starts, rows = [0], []
    per_byte_s, fixed_s = np.zeros((count, count)), np.zeros((count, count))
    for a, one in enumerate(known):
        for b, other in enumerate(known):
            slowest = np.zeros(len(other))
            sent = np.zeros(len(other), bool)
            for k, x, units in seats.entries(one, other):
                source, target = one[k].device, other[x].device
                moves = source != target
                slowness = units / UNITS / rate[source, target] if moves else 0.0
                rows.append((k, x, link[source, target], slowness, latency_s if moves else 0.0))
                slowest[x], sent[x] = max(slowest[x], slowness), sent[x] or moves
            starts.append(len(rows))
            if sent.all():
                per_byte_s[a, b], fixed_s[a, b] = slowest.min(), latency_s
    columns = list(zip(*rows, strict=True))
    taken_from, taken_by, links = (np.array(column, np.int64) for column in columns[:3])
    pairs = np.array(starts), taken_from, taken_by, links, np.array(columns[3]), np.array(columns[4])
    return pairs, per_byte_s, fixed_s
