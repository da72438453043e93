"""Instances that ask the same as another one in other words, units, orders or hours, and answers that go with them."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from ddlopt.instances.spelled import spelled_out
from ddlopt.instances.symmetries.extras import EXTRAS
from ddlopt.instances.symmetries.roles import lines_of, objective_unit, roles_in
from ddlopt.instances.symmetries.unsaid import UNSAID, UnfitError
from ddlopt.instances.symmetries.walk import Change, UntranslatedError, changed_data, sizes
from ddlopt.models.catalogue import problem_of
from ddlopt.models.contracts import Instance, Solution
from ddlopt.models.errors import InstanceError

WORDS = ("1", "01", " 1", "a b", "é", "e\u0301", "名前", "0", "-1", "1e0", "None", "name", "*", "a.b", "x" * 60)
"""New names: such as are read as numbers, differ by a blank or a zero, or are written with other letters."""
_NUDGES = (0.0, 0.0, 1e-10, -1e-10, 2e-10, -2e-10, 4e-10, -4e-10)
"""Parts of a figure: two of them are together below ``FEASIBILITY_TOL``."""
KEPT_WORDS = {"", "any", "none", "full"}
"""Texts with a meaning of their own."""

_COUNTED = {
    "gossip/matchings": ("times", "s"),
    "gossip/weights": ("costs", "C"),
    "cluster/placement": ("prices", "NC"),
}
"""A list and its unit: where it is empty, matchings, weights and pairs are counted."""


_DEVICE_GROUP = "device group"


@dataclass
class Twin:
    """An instance that asks the same as another one.

    Parameters
    ----------
    way : str
        How it was made.
    of, instance : Instance
        The one that it was made of, and itself.
    change : Change
        Of answers.
    factor, more : Fraction
        Its objective is ``factor`` times that of the other one, and ``more``.
    exactly : bool
        Whether figures are the same to the last digit, apart from powers of two.
    added : dict of str to Any
        What answers have besides: an entry at the end of a list, by its field.
    alone : bool
        That it asks nearly the same only, so that nothing is to be compared with the other one.
    """

    way: str
    of: Instance
    instance: Instance
    change: Change
    factor: Fraction = Fraction(1)
    more: Fraction = Fraction(0)
    exactly: bool = True
    added: dict[str, Any] | None = None
    alone: bool = False

    def solution(self, solution: Solution) -> Solution:
        """The same answer to this instance.

        Raises
        ------
        UntranslatedError
            If the answer names places in lists that came into another order.
        """
        path = problem_of(self.of).path
        if self.change.blind:
            raise UntranslatedError(", ".join(sorted(self.change.blind)))
        data = changed_data(
            solution.model_dump(mode="json"),
            lines_of(path, spelled_out(self.of), answer=True),
            self.change,
            answer=True,
        )
        for field, entry in (self.added or {}).items():
            if data[field]:  # what an answer leaves out stays out
                data[field] = [*data[field], entry]
        data |= {"instance": self.instance.name, "instance_digest": None}
        return problem_of(self.instance).solution.from_data(data, path)

    def objective(self, value: Any) -> Fraction:
        """What the objective of an answer to the other instance is here."""
        return Fraction(value) * self.factor + self.more

    def back(self, value: Any) -> Fraction:
        """What an objective or a bound here says of the other instance."""
        return (Fraction(value) - self.more) / self.factor


def twins(instance: Instance, seed: int) -> Iterator[Twin | str]:
    """Instances that ask the same as one.

    Parameters
    ----------
    instance : Instance
    seed : int
        Of new names, orders, factors.

    Yields
    ------
    Twin or str
        Or which way made no instance, and why.
    """
    ways: list[tuple[str, Callable[[random.Random], Twin]]] = [
        ("renamed", lambda draw: renamed(instance, draw)),
        ("reordered", lambda draw: reordered(instance, draw)),
        ("in powers of two", lambda draw: scaled(instance, draw, 2.0, 20)),
        ("in powers of ten", lambda draw: scaled(instance, draw, 10.0, 6)),
        ("later", lambda draw: later(instance)),
        ("nudged", lambda draw: nudged(instance, draw)),
        ("regrouped", lambda draw: regrouped(instance, draw)),
    ]
    for name in _more(instance):
        ways.append((name, lambda _, name=name: extended(instance, name)))  # type: ignore[misc]
    for way, make in ways:
        try:
            yield make(random.Random(f"{way} {seed}"))
        except UnfitError:
            pass
        except InstanceError as problem:
            yield f"{way}: {problem}"


def _made(way: str, instance: Instance, change: Change, data: dict[str, Any] | None = None, **more: Any) -> Twin:
    path = problem_of(instance).path
    data = spelled_out(instance) if data is None else data
    made = changed_data(data, lines_of(path, data), change)
    return Twin(way, instance, type(instance).from_data(made, way), change, **more)


def renamed(instance: Instance, draw: random.Random) -> Twin:
    """Everything that has a name has another one."""
    names: dict[str, dict[str, str]] = {}

    def word(kind: str, old: str) -> str:
        known = names.setdefault(kind, {})
        if old in KEPT_WORDS:
            return old
        if old not in known:
            left = [each for each in WORDS if each not in known.values()]
            known[old] = draw.choice(left) if left else f"{draw.choice(WORDS)} {len(known)}"
        return known[old]

    return _made("renamed", instance, Change(word=word))


def reordered(instance: Instance, draw: random.Random) -> Twin:
    """Everything comes in another order, as far as order has no meaning, and numbers of things with it."""
    data, path = spelled_out(instance), problem_of(instance).path
    if path == "scheduling":  # servers are numbered through their kinds
        data["servers"] = [each | {"count": 1} for each in data["servers"] for _ in range(each["count"])]
    orders = {}
    for entity, blocks in sizes(data, lines_of(path, data)).items():
        order: list[int] = []
        for size in blocks:
            order += draw.sample(range(len(order), len(order) + size), size)
        orders[entity] = order
    orders.pop(_DEVICE_GROUP, None)
    return _made("reordered", instance, Change(orders, shuffle=draw), data)


def regrouped(instance: Instance, draw: random.Random) -> Twin:
    """Groups of devices in another order, which has a meaning: parts of a batch and ties go by it."""
    if problem_of(instance).path != "deployment/plan":
        raise UnfitError
    data = spelled_out(instance)
    counts = [each["count"] for each in data["device_groups"]]
    order = draw.sample(range(len(counts)), len(counts))
    before = [sum(counts[old] for old, place in enumerate(order) if place < new) for new in order]
    devices = [first + place for first, count in zip(before, counts, strict=True) for place in range(count)]
    return _made("regrouped", instance, Change({_DEVICE_GROUP: order, "device": devices}), data, alone=True)


def scaled(instance: Instance, draw: random.Random, base: float, most: int) -> Twin:
    """Times, bytes and what else has a unit in units that are some power of ``base`` as large."""
    data, path = spelled_out(instance), problem_of(instance).path
    units = [each.unit for each in roles_in(lines_of(path, data)).values()]
    named = ({name for each in units for name, _ in each} | {"s", "B", "F"}) - {"slot", "step"}
    if path in _COUNTED and not data[_COUNTED[path][0]]:
        named -= {_COUNTED[path][1]}
    factors = {}
    for name in sorted(named):
        power = draw.choice((-most, -most // 2, most // 2, most))
        factors[name] = base ** (abs(power) // 4 if name.startswith("N") else power)
    change = Change(factors=factors)
    factor = Fraction(change.factor(objective_unit(path, data)))
    return _made(f"in powers of {base:g}", instance, change, factor=factor, exactly=base == 2)


def nudged(instance: Instance, draw: random.Random) -> Twin:
    """Figures a little larger or smaller: by less than what a check lets pass, and more than what rounding changes."""

    def walk(data: Any) -> Any:
        if isinstance(data, dict):
            return {name: walk(each) for name, each in data.items()}
        if isinstance(data, list):
            return [walk(each) for each in data]
        return data * (1 + draw.choice(_NUDGES)) if isinstance(data, float) else data

    made = type(instance).from_data(walk(spelled_out(instance)), "nudged")
    return Twin("nudged", instance, made, Change(), exactly=False, alone=True)


def later(instance: Instance, steps: int = 1_000_000) -> Twin:
    """The same at a later time."""
    data, path = spelled_out(instance), problem_of(instance).path
    if not any(each.kind == "moment" for each in roles_in(lines_of(path, data)).values()):
        raise UnfitError
    seconds, more = float(steps), Fraction(0)
    if path == "scheduling":
        steps = 3
        if data["objective"] == "makespan":
            more = steps * Fraction(data["slot_s"])
    if path == "cluster/jobs" and data["mode"] == "slots":
        steps = 1000  # a schedule has no more than ten times as many
        seconds = steps * data["slot_s"]
    if path in ("cluster/jobs", "cluster/joint"):
        weights = {"makespan": 1, "weighted_tardiness": 0}
        total = sum(Fraction(job["weight"]) for job in data["jobs"])
        more = Fraction(seconds) * weights.get(data["objective"], total)
    change = Change(later={"s": seconds, "slot": steps, "step": steps})
    return _made("later", instance, change, more=more, exactly=False)


def _more(instance: Instance) -> dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]]:
    path = problem_of(instance).path
    return EXTRAS.get(path, {}) | UNSAID.get(path, {})


def extended(instance: Instance, way: str) -> Twin:
    """With something besides that does not matter, in two parts, or said; see :mod:`.extras`, :mod:`.unsaid`."""
    data = spelled_out(instance)
    added = _more(instance)[way](data)
    change = Change() if added is not None else Change(blind={way})
    twin = _made(way, instance, change, data)
    twin.added = added
    return twin
