"""All that may be decided for a group of operators, each once up to names for the same thing."""

import itertools
from collections.abc import Iterator
from itertools import combinations, product
from typing import Literal, NamedTuple

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, Replica, parts
from ddlopt.models.deployment.plan.solution import GroupPlan, Split
from ddlopt.models.errors import NotApplicableError

Seat = tuple[Replica, ...]
"""Where an operator lies: its replicas, with their parts of the batch."""
Sync = Literal["none", "reduce", "server"]

MOST_CHOICES = 2_000
"""Of a group: all pairs of seats are listed."""
_SPLITS: tuple[Split, ...] = ("even", "speed")


class Choice(NamedTuple):
    """What is decided for a group, and what the simulator makes of it.

    Parameters
    ----------
    seats : tuple of Seat
        Of the group's operators, in the order of ``DeploymentInstance.members``.
    syncs : tuple of Sync
        What happens to their gradients.
    plan : GroupPlan
    duplicated : tuple of int
        Operators.
    """

    seats: tuple[Seat, ...]
    syncs: tuple[Sync, ...]
    plan: GroupPlan
    duplicated: tuple[int, ...]


def choices_of(instance: DeploymentInstance, group: int) -> tuple[Choice, ...]:
    """All choices of a group; of several that do the same, the first.

    Raises
    ------
    NotApplicableError
        If there are too many.
    """
    members, known = instance.members[group], len(instance.device_groups)
    count = instance.devices ** len(members) + (2**known - 1) * len(_SPLITS) * (2 ** len(members) + 1)
    if count > MOST_CHOICES:
        raise NotApplicableError(
            f"group {group} of '{instance.name}' has {count} choices; {MOST_CHOICES} are looked at at most"
        )
    found: dict[tuple[tuple[Seat, ...], tuple[Sync, ...]], Choice] = {}
    for choice in (*_replicated(instance, members), *_on_single_devices(instance, members)):
        found.setdefault((choice.seats, choice.syncs), choice)
    return tuple(found.values())


def _replicated(instance: DeploymentInstance, members: tuple[int, ...]) -> Iterator[Choice]:
    known = range(len(instance.device_groups))
    for chosen in (mask for size in range(1, len(known) + 1) for mask in combinations(known, size)):
        for split in _SPLITS:
            seat = parts(instance, chosen, split)
            whole = tuple(Replica(replica.device, 0, UNITS) for replica in seat)
            several = len(seat) > 1

            def synced(place: int, way: Sync, several: bool = several) -> Sync:
                return way if several and instance.operators[place].gradient_bytes else "none"

            served = GroupPlan(device_groups=chosen, mode="parameter_server", split=split)
            yield Choice((seat,) * len(members), tuple(synced(place, "server") for place in members), served, ())
            reduced = GroupPlan(device_groups=chosen, mode="all_reduce", split=split)
            for copied in product((False, True), repeat=len(members)) if several else ((False,) * len(members),):
                whole_ones = tuple(itertools.compress(members, copied))
                seats = tuple(whole if place in whole_ones else seat for place in members)
                syncs: list[Sync] = ["none" if each in whole_ones else synced(each, "reduce") for each in members]
                yield Choice(seats, tuple(syncs), reduced, whole_ones)


def _on_single_devices(instance: DeploymentInstance, members: tuple[int, ...]) -> Iterator[Choice]:
    everywhere = tuple(range(len(instance.device_groups)))
    for devices in product(range(instance.devices), repeat=len(members)):
        plan = GroupPlan(device_groups=everywhere, mode="model_parallel", devices=devices)
        seats = tuple((Replica(device, 0, UNITS),) for device in devices)
        nothing: list[Sync] = ["none" for _ in members]
        yield Choice(seats, tuple(nothing), plan, ())
