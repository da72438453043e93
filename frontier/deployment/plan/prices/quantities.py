"""What plans load and how long things last, by choice of a group, with one device for any of a device group."""

from itertools import product
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.plan.choices import Choice, Choices
from ddlopt.frontier.deployment.plan.prices.samples import Samples, drawn, held, least_there, own_s, passed_on
from ddlopt.frontier.deployment.plan.prices.waits import ServerWay, common_s, ends_s, server_way, stops
from ddlopt.frontier.deployment.plan.seats import Floats, Ints, Seats, pairs_of, ways
from ddlopt.models.deployment.plan.instance import DeploymentInstance, Tensor
from ddlopt.models.deployment.plan.shares import UNITS, Replica, time_at
from ddlopt.solvers.deployment.plan.actions import Action
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator

Bools = npt.NDArray[np.bool_]


class Quantities(NamedTuple):
    """Figures of all choices.

    Resources, the first columns of ``load_s``, are device groups (the mean of their devices), the channel, links, and
    device groups again: what each of their devices does or stands still for
    (:mod:`~ddlopt.frontier.deployment.plan.prices.waits`). As many columns have the time from when all work before an
    operator is done there to the end of its gradient. The last two have the least time from the end of the first
    replica to that of the gradient, and from the end of any replica.

    Parameters
    ----------
    choices : Choices
    counts : (groups,)
        Choices of each.
    group, order : (operators,)
    seat : (operators, choices)
        What of ``delay_s`` and ``carried_s`` belongs to it.
    copied : (operators, choices)
        Whether several replicas have the whole batch each.
    copies : (operators, seats)
        The same by seat.
    least_s : (operators, choices)
        Of the quickest replica.
    load_s : (operators, choices, columns)
    pairs : (pairs, 2)
        Operators, of which the second needs what the first makes.
    delay_s : (pairs, seats, seats)
        For which all replicas of the second wait at least.
    carried_s : (pairs, links, seats, seats)
        Work of links; of a tensor for its first reader only.
    after : (operators, operators)
        Whether the second needs what the first makes, directly or not.
    machines : int
        Device groups.
    samples : Samples
    """

    choices: Choices
    counts: Ints
    group: Ints
    order: Ints
    seat: Ints
    copied: Bools
    copies: Bools
    least_s: Floats
    load_s: Floats
    pairs: Ints
    delay_s: Floats
    carried_s: Floats
    after: Bools
    machines: int
    samples: Samples

    @property
    def common(self) -> int:
        """The resource that is what every device of the first device group does or stands still for."""
        links: int = self.carried_s.shape[1]
        return self.machines + 1 + links


def representatives(instance: DeploymentInstance) -> Choices:
    """All choices, but for operators on one device the first device of a device group only."""
    known = Choices(instance, True, ((),) * instance.groups).actions
    numbers = {action: number for number, action in enumerate(known)}
    at = instance.device_group_of.tolist()
    firsts = [at.index(machine) for machine in range(len(instance.device_groups))]
    found = []
    for members in instance.members:
        nothing, anywhere = (0,) * len(members), (-1,) * len(members)
        own = []
        for number, action in enumerate(known):
            if action.mode == "model_parallel" or len(instance.devices_of(action.device_groups)) == 1:
                continue
            all_reduce = action.mode == "all_reduce"
            sets = product((0, 1), repeat=len(members)) if all_reduce else (nothing,)
            own += [Choice(number, tuple(duplicated), anywhere) for duplicated in sets]
        for machines in product(range(len(firsts)), repeat=len(members)):
            chosen = tuple(sorted(set(machines)))
            alone = len(instance.devices_of(chosen)) == 1
            number = numbers[Action(chosen, "all_reduce" if alone else "model_parallel")]
            own.append(Choice(number, nothing, anywhere if alone else tuple(firsts[j] for j in machines)))
        found.append(tuple(own))
    return Choices(instance, True, tuple(found))


def quantities(instance: DeploymentInstance, horizon_s: float | None = None) -> Quantities:
    """Those of :func:`representatives`; where it matters which device of a group it is, the least of all.

    Sums hold for plans whose step takes at most ``horizon_s``, by default that of a plan with the same action for all
    groups.
    """
    choices = representatives(instance)
    seats = Seats(choices)
    known = [*seats.numbers]
    singles = [(Replica(device, 0, UNITS),) for device in range(instance.devices)]
    known += [row for row in singles if row not in seats.numbers]
    at, group = instance.device_group_of, np.array([operator.group for operator in instance.operators])
    kinds = _Kinds(instance, seats, known, _horizon_s(choices) if horizon_s is None else horizon_s)
    counts = np.array([len(own) for own in choices.of_groups])
    operators, machines = len(group), len(instance.device_groups)
    most, common = int(counts.max()), machines + 1 + len(kinds.links)
    columns = common + 2 * machines + 2
    seat, copied = np.zeros((operators, most), np.int64), np.zeros((operators, most), bool)
    least_s, load_s = np.zeros((operators, most)), np.zeros((operators, most, columns))
    sets, links = kinds.sets, len(kinds.links)
    sync_s, back_s = np.zeros((operators, most, len(sets.member) + machines)), np.zeros((operators, most, links))
    after, own_kinds = _after(instance), []
    counts_in, stop = stops(instance, after)
    for place, operator in enumerate(instance.operators):
        rows = seats.seat[place, : counts[group[place]]]
        own, seat[place, : len(rows)] = np.unique(kinds.of[rows], return_inverse=True)
        own_kinds.append(own)
        reduce_s = seats.reduce_s[place, : len(rows)]
        for column in (machines, columns - 2, columns - 1):
            load_s[place, : len(rows), column] = reduce_s
        sync_s[place, : len(rows)] = reduce_s[:, None]
        for number in set(rows.tolist()):
            row, here = known[number], np.flatnonzero(rows == number)
            kinds_of = [instance.device_groups[at[each.device]] for each in row]
            times = [
                float(time_at(instance.shares, operator.times_s[kind.type], each.units))
                for each, kind in zip(row, kinds_of, strict=True)
            ]
            copied[place, here] = len(row) > 1 and all(each.units == UNITS for each in row)
            least_s[place, here] = min(times)
            # Where nothing reads what replicas with the whole batch make, the step waits for all of them.
            last_s = max(times) if copied[place, here[0]] and not instance.readers[place] else min(times)
            for each, kind, time_s in zip(row, kinds_of, times, strict=True):
                load_s[place, here, at[each.device]] += time_s / kind.count
            if counts_in[place]:
                load_s[place, here, common : common + machines] = common_s(instance, row, times, bool(stop[place]))
            for choice in here.tolist():
                own, into_s = load_s[place, choice], np.full(machines, reduce_s[choice])
                if seats.server[place, choice]:
                    way = server_way(instance, place, row)
                    into_s = way.into_s + way.back_s
                    own[-2:] = into_s.max(), way.back_s
                    sync_s[place, choice], back_s[place, choice] = kinds.serve(place, row, way, own)
                own[-2] += last_s - min(times)
                own[common + machines : -2] = ends_s(instance, row, times, last_s + float(own[-1]), into_s)
    copies = np.zeros((operators, max(map(len, own_kinds))), bool)
    for place in range(operators):
        copies[place, seat[place][copied[place]]] = True
    pairs, delay_s, carried_s, size_bytes = kinds.between(own_kinds, copies.shape[1])
    kind, sample_s = np.zeros(copies.shape, np.int64), np.zeros((*copies.shape, len(sets.member) + machines))
    for place, own in enumerate(own_kinds):
        kind[place, : len(own)] = own
        for seat_of, each in enumerate(own):
            row = known[int(kinds.first[each])]
            sample_s[place, seat_of] = own_s(instance, place, row, sets)
    ways_of = np.ascontiguousarray(sets.ways)
    return Quantities(
        choices=choices,
        counts=counts,
        group=group,
        order=np.array(instance.order),
        seat=seat,
        copied=copied,
        copies=copies,
        least_s=least_s,
        load_s=load_s,
        pairs=pairs,
        delay_s=delay_s,
        carried_s=carried_s,
        after=after,
        machines=machines,
        samples=Samples(
            kind=kind,
            own_s=sample_s,
            per_byte_s=kinds.sample_per_byte_s,
            fixed_s=kinds.sample_fixed_s,
            size_bytes=size_bytes,
            sync_s=sync_s,
            back_s=back_s,
            source=ways_of[0],
            target=ways_of[1],
            first=ways_of[2],
            tied=ways_of[1] > ways_of[0],
        ),
    )


class _Kinds:
    """Seats, of which those on one device of a device group are of one kind."""

    def __init__(
        self, instance: DeploymentInstance, seats: Seats, known: list[tuple[Replica, ...]], horizon_s: float
    ) -> None:
        self.instance = instance
        self.rate, link = ways(instance)
        machines, at = len(instance.device_groups), instance.device_group_of.tolist()
        self.link = np.where(link >= 0, link - instance.devices, -1)
        self.links = [a * machines + b for a in range(machines) for b in range(machines) if a != b]
        names: dict[int, int] = {}
        keys = [-1 - at[row[0].device] if len(row) == 1 else number for number, row in enumerate(known)]
        self.of = np.array([names.setdefault(key, len(names)) for key in keys])
        entries, self._per_byte_s, self._fixed_s = pairs_of(seats, known, self.rate, self.link, instance.latency_s)
        size = len(known)
        shape = (machines**2, size * size)
        self._busy_per_byte_s, self._busy_s = np.zeros(shape), np.zeros(shape)
        row, there = np.repeat(np.arange(size * size), np.diff(entries[0])), entries[3] >= 0
        np.add.at(self._busy_per_byte_s, (entries[3][there], row[there]), entries[4][there])
        np.add.at(self._busy_s, (entries[3][there], row[there]), entries[5][there])
        self._size = size
        self._sorted = np.argsort(self.of, kind="stable")
        self._starts = np.searchsorted(self.of[self._sorted], np.arange(len(names)))
        self.first = self._sorted[self._starts]
        self.sets = drawn(known, instance.device_group_of)
        of_rows = passed_on(known, entries, self.sets, horizon_s)
        self.sample_per_byte_s, self.sample_fixed_s = map(self._least, of_rows)

    def serve(self, place: int, row: tuple[Replica, ...], way: ServerWay, load_s: Floats) -> tuple[Floats, Floats]:
        """Add the work of links with a gradient on its way through its server.

        Returns ``Samples.sync_s`` (sets + device groups,), and work of links with sums (links,).
        """
        size_bytes, latency_s = self.instance.operators[place].gradient_bytes, self.instance.latency_s
        server, first = row[way.server].device, len(self.instance.device_groups) + 1
        back_s, own_s = np.zeros(len(self.links)), np.full(len(row), way.back_s)
        for k, each in enumerate(row):
            if k == way.server:
                continue
            own_s[k] += size_bytes / self.rate[each.device, server] + latency_s
            for ends in ((each.device, server), (server, each.device)):
                if self.link[ends] >= 0:
                    link, time_s = self.links.index(self.link[ends]), size_bytes / self.rate[ends] + latency_s
                    load_s[first + link] += time_s
                    back_s[link] += time_s * (ends[0] == server)
        of_sets = np.where(held(row, self.sets), own_s[:, None], 0.0).max(axis=0)
        return np.append(of_sets, least_there(row, own_s, self.sets)), back_s

    def between(self, kinds: list[Ints], most: int) -> tuple[Ints, Floats, Floats, Floats]:
        """Pairs of operators, delays between their seats, work of links, and ``Samples.size_bytes``."""
        rank = {place: k for k, place in enumerate(self.instance.order)}
        delays: dict[tuple[int, int], Floats] = {}
        carried: dict[tuple[int, int], Floats] = {}
        size_bytes: dict[tuple[int, int], tuple[float, float]] = {}
        for tensor in self.instance.tensors:
            readers = sorted(tensor.consumers, key=rank.__getitem__)
            delay_s, busy_s = self._of(tensor)
            for place, reader in enumerate(readers):
                pair = tensor.producer, reader
                own = np.ix_(kinds[pair[0]], kinds[pair[1]])
                delays[pair] = np.maximum(delays[pair], delay_s[own]) if pair in delays else delay_s[own]
                any_bytes, first_bytes = size_bytes.get(pair, (0.0, 0.0))
                read_bytes = tensor.size_bytes if place == 0 else 0.0
                size_bytes[pair] = max(any_bytes, tensor.size_bytes), max(first_bytes, read_bytes)
                work = busy_s[:, kinds[pair[0]]][:, :, kinds[pair[1]]] * (place == 0)
                carried[pair] = carried[pair] + work if pair in carried else work
        pairs = np.array([*delays], np.int64).reshape(-1, 2)
        all_delays, all_work = np.zeros((len(pairs), most, most)), np.zeros((len(pairs), len(self.links), most, most))
        for k, pair in enumerate(delays):
            size = delays[pair].shape
            all_delays[k, : size[0], : size[1]] = delays[pair]
            all_work[k, :, : size[0], : size[1]] = carried[pair]
        return pairs, all_delays, all_work, np.array([*size_bytes.values()]).reshape(-1, 2).T.copy()

    def _of(self, tensor: Tensor) -> tuple[Floats, Floats]:
        """Delays (kinds, kinds) and work (links, kinds, kinds)."""
        size = (len(self.links), self._size, self._size)
        if tensor.size_bytes == 0:
            return self._least(np.zeros(size[1:])), self._least(np.zeros(size))
        work = self._busy_per_byte_s[self.links] * tensor.size_bytes + self._busy_s[self.links]
        return self._least(self._per_byte_s * tensor.size_bytes + self._fixed_s), self._least(work.reshape(size))

    def _least(self, each: Floats) -> Floats:
        """Of kinds, from those of seats: the least."""
        rows = each[..., self._sorted, :][..., self._sorted]
        found: Floats = np.minimum.reduceat(np.minimum.reduceat(rows, self._starts, axis=-2), self._starts, axis=-1)
        return found


def _horizon_s(choices: Choices) -> float:
    """The least step of all groups with the same action."""
    actions, groups = choices.actions, choices.instance.groups
    same = np.repeat(np.arange(len(actions))[:, None], groups, axis=1)
    times_s, _ = Simulator(choices.instance, actions).run_all(same)
    return float(times_s.min())


def _after(instance: DeploymentInstance) -> Bools:
    after = np.zeros((len(instance.operators),) * 2, bool)
    for place in reversed(instance.order):
        for reader in instance.readers[place]:
            after[place] |= after[reader]
            after[place, reader] = True
    return after
