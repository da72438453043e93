"""Our search: some gangs give their hosts back and are placed anew, over and over."""

import random
from dataclasses import dataclass
from typing import Any, ClassVar

from ddlopt.models.cluster.placement.bounds import placement_bound
from ddlopt.models.cluster.placement.instance import Gang, PlacementInstance
from ddlopt.models.errors import InfeasibleError, NoSolutionError
from ddlopt.solvers.cluster.placement.free import Counts, Free, answer_of, cost
from ddlopt.solvers.cluster.placement.rules import HivedCells, Kueue
from ddlopt.solvers.heuristic import Clock, Heuristic


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    most_at_a_time: int = 4
    """Gangs that give their hosts back; more, and what was good about the places is gone."""
    as_they_come: float = 0.3
    """How often leaves are taken in any order, as best fit alone comes back to the same places."""
    by_size: float = 0.5
    """How often the largest of them is placed first, not any."""


_EFFORT = Effort()


@dataclass(frozen=True)
class GangExchange(Heuristic, uses=("start",)):
    """Ruin and recreate: up to four gangs, one of them at random and others that share leaves with it or not.

    Each is placed anew by best fit: the smallest domain that holds it, of the innermost level that has one; inside, the
    fullest way or leaves in any order. The result is kept unless more gangs (by weight) are left out, or it costs more.
    It begins with the best of Kueue's rule and HiveD's cells, gangs as listed and the largest first, and ends at the
    bound.

    Parameters
    ----------
    rounds : int
        Times a gang; 60 by default.

    References
    ----------
    Ours; the scheme is that of G. Schrimpf et al., "Record breaking optimization results using the ruin and recreate
    principle", J. Comput. Phys. 159 (2000).
    """

    rounds: int = 60

    name: ClassVar[str] = "gang-exchange"
    covers: ClassVar[type[PlacementInstance]] = PlacementInstance

    def answer(self, instance: PlacementInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The places.

        Raises
        ------
        NoSolutionError
            If a gang that has to be placed finds no place.
        """
        try:
            goal = placement_bound(instance)
        except InfeasibleError as proof:
            raise NoSolutionError(str(proof)) from None
        rng = random.Random(seed)
        best = min((_State(instance, rule.counts(instance, clock)) for rule in _RULES), key=lambda state: state.value)
        if start is not None:
            given = _State(instance, [_counts(runs) for runs in start.places])
            best = min(best, given, key=lambda state: state.value)
        done = 0
        for _ in range(self.rounds * len(instance.gangs)):
            if clock.expired or best.reaches(goal):
                break
            done += 1
            before = best.value
            best.change(rng, before)
            if best.value < before and not (best.value[0] and instance.sense == "minimize"):
                clock.report(best.objective)
        return answer_of(instance, best.counts), {"rounds": float(done)}


_RULES = (Kueue(), Kueue(order="largest"), HivedCells(), HivedCells(order="largest"))


class _State:
    """Places, what is left, and what they cost: weight that is left out, then pairs or crossings."""

    def __init__(self, instance: PlacementInstance, counts: list[Counts | None]) -> None:
        self.instance, self.counts, self.free = instance, counts, Free(instance)
        for own in counts:
            self.free.take(own or {})
        self.value = self._value()

    @property
    def objective(self) -> float:
        """As the instance has it, once what has to be placed is."""
        out, paid = self.value
        if self.instance.objective == "fits":
            return float(not out)
        return float(paid if self.instance.sense == "minimize" else sum(g.weight for g in self.instance.gangs) - out)

    def reaches(self, goal: float) -> bool:
        """Whether nothing can be better."""
        if self.instance.sense == "maximize":
            return self.objective >= goal
        return not self.value[0] and self.objective <= goal

    def change(self, rng: random.Random, limit: tuple[int, int]) -> None:
        """Place some gangs anew; as before where this is worse than the limit."""
        gangs = self.instance.gangs
        chosen = rng.sample(range(len(gangs)), min(len(gangs), rng.randint(1, _EFFORT.most_at_a_time)))
        missing = [g for g, own in enumerate(self.counts) if not own and g not in chosen]
        chosen += missing[:1]
        before = [self.counts[g] for g in chosen]
        for own in before:
            self.free.take(own or {}, -1)
        order = list(range(len(chosen)))
        if rng.random() < _EFFORT.by_size:
            order.sort(key=lambda n: -gangs[chosen[n]].hosts)
        else:
            rng.shuffle(order)
        for n in order:
            g = chosen[n]
            self.counts[g] = self._placed(gangs[g], rng)
            self.free.take(self.counts[g] or {})
        value = self._value()
        if value > limit:
            for g, own in zip(chosen, before, strict=True):
                self.free.take(self.counts[g] or {}, -1)
                self.counts[g] = own
            for own in before:
                self.free.take(own or {})
        else:
            self.value = value

    def _value(self) -> tuple[int, int]:
        out, paid = 0, 0
        minimised = self.instance.sense == "minimize"
        for gang, own in zip(self.instance.gangs, self.counts, strict=True):
            if not own:
                out += gang.weight
            elif minimised:
                paid += cost(self.instance, gang, own)
        return out, paid

    def _placed(self, gang: Gang, rng: random.Random) -> Counts | None:
        instance, free, hosts = self.instance, self.free, gang.hosts
        own = instance.level(gang)
        if rng.random() >= _EFFORT.as_they_come:
            return _KUEUE.place(free, gang)
        rooms = [room for room in free.rooms(gang) if free.hosts(room) >= hosts]
        if not rooms:
            return None
        room = [leaf for leaf in rng.choice(rooms) if free.left[leaf]]
        rng.shuffle(room)
        if own < len(instance.levels) - 1 and rng.random() < _EFFORT.by_size:
            room.sort(key=instance.path)  # neighbours, from a random one on
            first = rng.randrange(len(room))
            room = room[first:] + room[:first]
        found: Counts = {}
        for leaf in room:
            taken = min(hosts, free.left[leaf])
            found[leaf] = taken
            hosts -= taken
            if not hosts:
                break
        return found


_KUEUE = Kueue()


def _counts(runs: tuple[tuple[int, int], ...]) -> Counts | None:
    found: Counts = {}
    for leaf, count in runs:
        found[leaf] = found.get(leaf, 0) + count
    return found or None
