"""Ways of the batch through a plan: how long whatever has a sample, or one of several samples, takes and waits for."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.plan.seats import PRIVATE, Floats, Ints
from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.deployment.plan.shares import UNITS, Replica, time_at

Bools = npt.NDArray[np.bool_]

_MOST = 48
"""Samples; between two borders of all splits they are interchangeable."""
_MOST_WITHIN = 240
"""Pairs of a set and one of its samples, between which there are ways."""


class Samples(NamedTuple):
    r"""Figures of sets of samples, by the kind of seat of an operator or by its choice.

    Of a set we follow a time before which *no* replica that has one of its samples ends. The first sets are single
    samples, the others what one device group has under some split. A replica with a sample of the set waits for all
    that it takes from replicas with such a sample, and what goes over one link goes one after the other. So figures are
    the least of all replicas with one of the samples, or the most where nothing reads what they make.

    *Ways* are arcs from an operator to one that reads from it. Each has a lower bound on the time between the two.
    There are six kinds, a block of ``ways`` each, in this order:

    1. *Transfer*, from a set to itself: what a replica takes over a link.
    2. *Last arrival*, from a set of several samples to some one replica of a device group, where that ends a step: all
       that goes there over a link. Some replica takes the last of it.
    3. *Scatter*, from one sample to a set of several that has it: every replica with a sample of the set takes
       something from the replica with that one.
    4. *First transfer*: the first kind for the first reader of a tensor. What the same replicas send to earlier devices
       over the same link goes before (:class:`~ddlopt.models.deployment.plan.simulator.tasks.Expansion` numbers it so).
    5. *First gather*, from a set of several to one of its samples, for the first reader in the same way.
    6. *First scatter*: the third kind for the first reader.

    Kinds 3 and 6 do not hold where some replica takes nothing, nor does kind 2 where none takes anything. There a
    horizon, the step of some known plan, is subtracted, so that such an arc excludes no plan that takes no longer. Sums
    over arcs therefore hold for all plans within the horizon, the best ones among them.

    Parameters
    ----------
    kind : (operators, seats)
        Of each seat, in the other arrays.
    own_s : (operators, seats, sets + device groups)
        Of a replica with one of the samples; of some one replica of a device group, or of any if there is none.
    per_byte_s, fixed_s : (ways, kinds, kinds)
        What comes between, for a byte of the whole tensor and besides.
    size_bytes : (2, pairs)
        Of the largest tensor, and of the largest that the second operator is the first to read.
    sync_s : (operators, choices, sets + device groups)
        From the end of all replicas with one of the samples to that of the gradient; from that of some one replica.
    back_s : (operators, choices, links)
        Work of links with sums of gradients from servers, which wait for all samples.
    source, target : (ways,)
        The sets between which a way goes; some one replica of each device group comes after all sets.
    first : (ways,)
        1 for ways of first readers.
    tied : (ways,)
        Those that a horizon may be taken off.
    """

    kind: Ints
    own_s: Floats
    per_byte_s: Floats
    fixed_s: Floats
    size_bytes: Floats
    sync_s: Floats
    back_s: Floats
    source: Ints
    target: Ints
    first: Ints
    tied: Bools


class Sets(NamedTuple):
    """Sets of samples.

    Parameters
    ----------
    samples : (samples,)
        Each is one unit of the batch.
    member : (sets, samples)
        The first sets are the samples, each alone.
    machine : (devices,)
        Device group of each device.
    """

    samples: Ints
    member: Bools
    machine: Ints

    @property
    def several(self) -> Ints:
        """Those of more than one sample."""
        return np.arange(len(self.samples), len(self.member))

    @property
    def within(self) -> tuple[Ints, Ints]:
        """Sets of several samples, and one of their samples, between which there are ways."""
        several = self.several
        most = max(1, _MOST_WITHIN // max(1, len(several)))
        chosen = []
        for each in several.tolist():
            own = np.flatnonzero(self.member[each])
            chosen.append(own[np.unique(np.linspace(len(own) - 1, 0, min(most, len(own))).astype(np.int64))])
        none = np.zeros(0, np.int64)
        return np.repeat(several, [len(each) for each in chosen]), np.concatenate([none, *chosen])

    @property
    def ways(self) -> Ints:
        """(3, ways) from which set each way goes and to which, and whether it is one of first readers."""
        every, several, within = np.arange(len(self.member)), self.several, self.within
        machines = len(every) + np.arange(self.machine.max() + 1)
        some = np.tile(several, len(machines)), np.repeat(machines, len(several))
        blocks = (every, every), some, within[::-1], (every, every), within, within[::-1]
        first = np.repeat([0, 0, 0, 1, 1, 1], [len(source) for source, _ in blocks])
        return np.stack([*map(np.concatenate, zip(*blocks, strict=True)), first])


def drawn(known: list[tuple[Replica, ...]], device_group_of: Ints) -> Sets:
    """One sample between any two borders of the splits of some seats, some of them where there are many; and sets."""
    borders = np.unique([border for row in known for each in row for border in (each.first, each.last)])
    middles = (borders[:-1] + borders[1:]) // 2
    chosen: Ints = middles[np.unique(np.linspace(0, len(middles) - 1, min(_MOST, len(middles))).astype(np.int64))]
    several: dict[tuple[bool, ...], None] = {}
    for row in known:
        at, holds = device_group_of[[each.device for each in row]], holders(row, chosen)
        for machine in np.unique(at).tolist():
            several.setdefault(tuple(holds[at == machine].any(axis=0).tolist()))
    found = [each for each in several if sum(each) > 1]
    member = np.concatenate([np.eye(len(chosen), dtype=bool), np.array(found, bool).reshape(-1, len(chosen))])
    return Sets(chosen, member, device_group_of)


def holders(row: tuple[Replica, ...], samples: Ints) -> Bools:
    """(replicas, samples) whether a replica has the sample."""
    first, last = np.array([each[1:] for each in row]).T
    found: Bools = (first[:, None] <= samples) & (samples < last[:, None])
    return found


def held(row: tuple[Replica, ...], sets: Sets) -> Bools:
    """(replicas, sets) whether a replica has one of the samples."""
    found: Bools = holders(row, sets.samples) @ sets.member.T
    return found


def own_s(instance: DeploymentInstance, place: int, row: tuple[Replica, ...], sets: Sets) -> Floats:
    """(sets + device groups,) seconds of the quickest replica of an operator with a sample, or of a device group.

    Where all have the whole batch and end a step, it is the most of all with a sample.
    """
    at, times_s = instance.device_group_of, instance.operators[place].times_s
    times = np.array(
        [
            float(time_at(instance.shares, times_s[instance.device_groups[at[each.device]].type], each.units))
            for each in row
        ]
    )
    found: Floats = np.where(held(row, sets), times[:, None], np.inf).min(axis=0)
    if row[0].units == UNITS and not instance.readers[place]:
        found[:] = times.max()
    return np.append(found, least_there(row, times, sets))


def least_there(row: tuple[Replica, ...], each_s: Floats, sets: Sets) -> Floats:
    """(device groups,) the least of the replicas of a device group, or of all where it has none."""
    machine = sets.machine[[each.device for each in row]]
    there = machine == np.arange(sets.machine.max() + 1)[:, None]
    there |= ~there.any(axis=1, keepdims=True)
    found: Floats = np.where(there, each_s, np.inf).min(axis=1)
    return found


def passed_on(
    known: list[tuple[Replica, ...]],
    entries: tuple[Ints, Ints, Ints, Ints, Floats, Floats],
    sets: Sets,
    horizon_s: float,
) -> tuple[Floats, Floats]:
    """(ways, seats, seats) seconds a byte and seconds that come between seat and seat.

    ``entries`` are those of :func:`~ddlopt.frontier.deployment.plan.seats.pairs_of`.
    """
    count, several, (whole, one) = len(known), sets.several, sets.within
    holds = [held(row, sets).T for row in known]
    found = np.zeros((2, sets.ways.shape[1], count, count))
    machines = np.arange(sets.machine.max() + 1)[:, None]
    starts, taken_from, taken_by, link, per_byte_s, fixed_s = entries
    for pair in range(count * count):
        a, b = divmod(pair, count)
        own = slice(starts[pair], starts[pair + 1])
        seconds = np.array([per_byte_s[own], fixed_s[own]])
        source, target, replicas = taken_from[own], taken_by[own], np.arange(len(known[b]))[:, None, None]
        # Within a device group each two devices have a link.
        way = np.where(link[own] == PRIVATE, -3 - target - len(replicas) * source, link[own])
        used, way = np.unique(way, return_inverse=True)
        sends = np.zeros((len(known[a]), len(replicas), len(used)), bool)
        sends[source, target, way] = True
        over = way == np.arange(len(used))[:, None]
        sent = holds[a][:, source]
        machine = sets.machine[[each.device for each in known[b]]]
        takes = sends.any(axis=2)
        back = holds[b][whole]
        # (sets, device groups) of which there are replicas, and none takes anything from one with a sample.
        there = machine[:, None] == machines.T
        apart = ~(holds[a][several] @ takes @ there) & there.any(axis=0)
        astray = (back & ~(holds[a][one] @ takes)).any(axis=1)
        off_s = np.array([[0.0], [horizon_s]])
        all_s = _longest(sent[several], seconds, over & (machine[target] == machines)[:, None])
        taken_s = _longest(sent, seconds, over & (target == replicas))
        later_s = _longest(sent, seconds, over & (target <= replicas) & sends[source].transpose(1, 2, 0))
        blocks = [
            _least(taken_s, holds[b]),
            all_s.transpose(0, 2, 1).reshape(2, -1) - off_s * apart.T.ravel(),
            _least(taken_s[:, one], back) - off_s * astray,
            _least(later_s, holds[b]),
            _least(later_s[:, whole], holds[b][one]),
            _least(later_s[:, one], back) - off_s * astray,
        ]
        found[:, :, a, b] = np.concatenate(blocks, axis=1)
    return found[0], found[1]


def _longest(sent: Bools, seconds: Floats, taken: Bools) -> Floats:
    """(2, sets, replicas) of the links with the most to do for a replica.

    ``sent`` (sets, entries) counts for a set, ``seconds`` (2, entries) a byte and besides, and ``taken`` (replicas,
    links, entries) goes before what a replica takes over a link.
    """
    each_s = (sent * seconds[:, None]).reshape(-1, sent.shape[1])
    work_s = (each_s @ taken.reshape(-1, sent.shape[1]).T).reshape(2, len(sent), *taken.shape[:2])
    found: Floats = np.take_along_axis(work_s, work_s[:1].argmax(axis=3)[..., None], axis=3)[..., 0]
    return found


def _least(waits_s: Floats, holds: Bools) -> Floats:
    """(2, sets) of the replicas (2, sets, replicas) with a sample."""
    found: Floats = np.where(holds, waits_s, np.inf).min(axis=2)
    return found
