"""Timeline problems as arrays, and problems of levels as timeline problems: what formulations and methods share."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.family import CompressionAnswer, CompressionProblem
from ddlopt.models.compression.levels.instance import GradedGradient, LevelInstance, LevelPlan, error_at
from ddlopt.models.compression.timeline.instance import CompressionInstance, CompressionPlan, Gradient, Option
from ddlopt.models.errors import a_or_an

Floats = npt.NDArray[np.float64]


class Choices(NamedTuple):
    """The options of n gradients, padded to the longest menu of m.

    Parameters
    ----------
    ready_s : (n,) array
    encode_s, wire_s, launch_s, error : (n, m) arrays
        Infinite where there is no option; ``wire_s`` has the decoding, and not the launching. Of several lanes they
        are sums over these.
    counts : (n,) array of int
        Options that there are.
    labels : (n, m) array of int
        Numbers of the labels, in the order of their first appearance; -1 where there is no option.
    bytes : (n,) array
        4 an element.
    """

    ready_s: Floats
    encode_s: Floats
    wire_s: Floats
    launch_s: Floats
    error: Floats
    counts: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    bytes: Floats

    @property
    def occupation_s(self) -> Floats:
        """(n, m) how long a gradient sent by itself keeps the wire busy."""
        return self.wire_s + self.launch_s

    def paths_s(self, chosen: npt.NDArray[np.int64]) -> Floats:
        """(n,) what the time of (n,) options is the largest of, where nothing is fused."""
        picked = np.arange(len(chosen)), chosen
        return paths(self.ready_s, self.encode_s[picked], self.occupation_s[picked])


def paths(ready_s: Floats, encode_s: Floats, occupation_s: Floats) -> Floats:
    """(n,) ready, encoded up to there, sent from there on; the time is the largest."""
    found: Floats = ready_s + np.cumsum(encode_s) + np.cumsum(occupation_s[::-1])[::-1]
    return found


def choices_of(instance: CompressionInstance) -> Choices:
    """The options of an instance as arrays."""
    numbers: dict[str, int] = {}
    for menu in instance.menus:
        for option in menu:
            numbers.setdefault(option.label, len(numbers))
    shape = len(instance.menus), instance.most_options
    figures = np.full((4, *shape), np.inf)
    labels = np.full(shape, -1)
    for place, menu in enumerate(instance.menus):
        for choice, o in enumerate(menu):
            wire_s = o.wire_s + o.decode_s + sum(stage.busy_s for stage in o.stages)
            launch_s = o.launch_s + sum(stage.launch_s for stage in o.stages)
            figures[:, place, choice] = o.encode_s, wire_s, launch_s, o.error
            labels[place, choice] = numbers[o.label]
    menus = np.array([gradient.menu for gradient in instance.gradients])
    counts = np.array([len(menu) for menu in instance.menus])[menus]
    size = 4.0 * np.array([gradient.elements for gradient in instance.gradients])
    encode, wire, launch, error = figures[:, menus]
    return Choices(instance.ready_s, encode, wire, launch, error, counts, labels[menus], size)


def plain_option(menu: Sequence[Option]) -> int | None:
    """Place of the option without compression that keeps the wire busy for the shortest time; None if there is none."""
    plain = [place for place, option in enumerate(menu) if option.compressor == "none"]
    return min(plain, key=lambda place: menu[place].occupation_s, default=None)


def is_timeline(instance: CompressionProblem) -> bool:
    """Whether :func:`as_timeline` takes the instance."""
    return isinstance(instance, CompressionInstance | LevelInstance)


def why_no_timeline(instance: CompressionProblem) -> str | None:
    """Why :func:`as_timeline` does not take the instance; None if it does."""
    return None if is_timeline(instance) else f"it is {a_or_an(instance.kind)}, which has no timeline"


def why_no_wire(instance: CompressionProblem) -> str | None:
    """Why methods for one wire do not cover the instance; None if they do."""
    if isinstance(instance, CompressionInstance) and instance.lanes:
        return f"it knows one wire, and there are lanes {', '.join(instance.lanes)}; use lane-timeline or lane-search"
    return why_no_timeline(instance)


def as_timeline(instance: CompressionProblem) -> CompressionInstance:
    """The same problem with a menu of options; every level that is allowed is one, in increasing order."""
    if isinstance(instance, CompressionInstance):
        return instance
    if not isinstance(instance, LevelInstance):
        raise TypeError(f"{a_or_an(instance.kind)} has no timeline")
    gradients = tuple(
        Gradient(name=each.name, shape=each.shape, ready_s=each.ready_s, menu=place)
        for place, each in enumerate(instance.gradients)
    )
    menus = tuple(tuple(_option(each, level) for level in each.curve.allowed) for each in instance.gradients)
    return CompressionInstance(
        name=instance.name,
        source=instance.source,
        gradients=gradients,
        menus=menus,
        goal=instance.goal,
        error_budget=instance.error_budget,
        time_budget_s=instance.kept_time_s,
    )


def _option(gradient: GradedGradient, level: int) -> Option:
    return Option(
        label=f"{gradient.compressor} {level}",
        compressor=gradient.compressor,
        encode_s=gradient.encode_s + gradient.encode_s_per_level * level,
        launch_s=gradient.launch_s,
        wire_s=gradient.wire_s_per_level * level,
        error=error_at(gradient.curve, level),
        rank=level if gradient.compressor == "powersgd" and level > 0 else None,
    )


def plan_of(instance: CompressionProblem, answer: CompressionAnswer) -> CompressionPlan:
    """The answer to ``as_timeline(instance)`` that an answer to the instance is."""
    if isinstance(answer, CompressionPlan):
        return answer
    if not (isinstance(instance, LevelInstance) and isinstance(answer, LevelPlan)):
        raise TypeError(f"{a_or_an(answer.kind)} is no plan")
    pairs = zip(instance.gradients, answer.levels, strict=True)
    choices = tuple(gradient.curve.allowed.index(level) for gradient, level in pairs)
    return CompressionPlan(instance=instance.name, choices=choices)


def answer_of(instance: CompressionProblem, plan: CompressionPlan) -> CompressionAnswer:
    """The answer to the instance that an answer to ``as_timeline(instance)`` is."""
    if isinstance(instance, LevelInstance):
        pairs = zip(instance.gradients, plan.choices, strict=True)
        levels = tuple(gradient.curve.allowed[choice] for gradient, choice in pairs)
        return LevelPlan(instance=instance.name, instance_digest=instance.digest, levels=levels)
    assert isinstance(instance, CompressionInstance)
    return plan.named(instance).model_copy(update={"instance": instance.name, "instance_digest": instance.digest})
