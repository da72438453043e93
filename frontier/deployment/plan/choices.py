"""All that may be decided for each group: by the rule of ``model_parallel``, or every device of every operator."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.models.deployment.plan.instance import DeploymentInstance
from ddlopt.models.sizes import LARGEST_INTEGER
from ddlopt.solvers.certify import MethodOutput
from ddlopt.solvers.deployment.plan.actions import Action, actions, device_sets, lists_all_sets

Ints = npt.NDArray[np.int64]

RULE = "model parallel by consecutive pieces, nothing duplicated"
"""The scope of choices that are not all."""


class Choice(NamedTuple):
    """Of one group: the action, and of its operators which are duplicated and what device each has, -1 by the rule."""

    action: int
    duplicated: tuple[int, ...]
    devices: tuple[int, ...]


@dataclass(frozen=True)
class Choices:
    """What groups choose from.

    Parameters
    ----------
    instance : DeploymentInstance
    every : bool
        Every device for every operator that has but one, and every set of operators that may be duplicated, so that
        every deployment is there once, up to names for the same thing; otherwise the actions of
        :func:`~ddlopt.solvers.deployment.plan.actions.actions`.
    given : tuple of tuple of Choice, optional
        Of each group those that are left of them.
    """

    instance: DeploymentInstance
    every: bool
    given: tuple[tuple[Choice, ...], ...] | None = None

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """That choices count."""
        return actions(self.instance)

    @cached_property
    def of_groups(self) -> tuple[tuple[Choice, ...], ...]:
        """Of each group."""
        if self.given is not None:
            return self.given
        return tuple(self._of(len(members)) for members in self.instance.members)

    @property
    def scope(self) -> str | None:
        """None where every deployment is there."""
        if self.every:
            return None
        return RULE if lists_all_sets(self.instance) else f"{RULE}, {len(device_sets(self.instance))} sets of devices"

    def output(self, best: Any, details: dict[str, float], bound: float | None) -> MethodOutput:
        """What a method hands over; its bound is one of the instance only if every deployment is there."""
        if self.every:
            return MethodOutput(best, details, bound=bound)
        return MethodOutput(best, details, scope=self.scope, scope_bound=bound)

    @property
    def log_plans(self) -> float:
        """Natural logarithm of how many plans there are."""
        return sum(math.log(number_of_choices(self.instance, len(own), self.every)) for own in self.instance.members)

    def rows(self, chosen: Ints) -> tuple[Ints, Ints, Ints]:
        """Actions (plans, groups), duplicated and devices (plans, operators) of plans, given as places of choices."""
        plans, operators = len(chosen), len(self.instance.operators)
        action = np.empty((plans, self.instance.groups), np.int64)
        duplicated, device = np.zeros((plans, operators), np.int64), np.full((plans, operators), -1)
        for group, members in enumerate(self.instance.members):
            own = self._arrays[group]
            action[:, group] = own[0][chosen[:, group]]
            duplicated[:, list(members)] = own[1][chosen[:, group]]
            device[:, list(members)] = own[2][chosen[:, group]]
        return action, duplicated, device

    @cached_property
    def _arrays(self) -> tuple[tuple[Ints, Ints, Ints], ...]:
        return tuple(
            (
                np.array([each.action for each in own], np.int64),
                np.array([each.duplicated for each in own], np.int64),
                np.array([each.devices for each in own], np.int64),
            )
            for own in self.of_groups
        )

    def _of(self, members: int) -> tuple[Choice, ...]:
        nothing, anywhere = (0,) * members, (-1,) * members
        if not self.every:
            return tuple(Choice(number, nothing, anywhere) for number in range(len(self.actions)))
        numbers = {action: number for number, action in enumerate(self.actions)}
        at, found = self.instance.device_group_of.tolist(), []
        for number, action in enumerate(self.actions):
            if action.mode == "model_parallel" or len(self.instance.devices_of(action.device_groups)) == 1:
                continue
            sets = itertools.product((0, 1), repeat=members) if action.mode == "all_reduce" else (nothing,)
            found += [Choice(number, tuple(duplicated), anywhere) for duplicated in sets]
        for devices in itertools.product(range(self.instance.devices), repeat=members):
            chosen = tuple(sorted({at[device] for device in devices}))
            alone = len(self.instance.devices_of(chosen)) == 1
            number = numbers[Action(chosen, "all_reduce" if alone else "model_parallel")]
            found.append(Choice(number, nothing, anywhere if alone else devices))
        return tuple(found)


def number_of_choices(instance: DeploymentInstance, members: int, every: bool) -> int:
    """Of a group with ``members`` operators, unlisted; far too many where there are more sets than actions."""
    if every and not lists_all_sets(instance):
        return LARGEST_INTEGER
    known = actions(instance)
    if not every:
        return len(known)
    split = [each.mode for each in known if len(instance.devices_of(each.device_groups)) > 1]
    whole = int(instance.devices**members)
    return whole + (split.count("all_reduce") << members) + split.count("parameter_server")


def fewest(instance: DeploymentInstance, most: float) -> Choices | None:
    """All choices if they make at most ``most`` plans, else those by the rule, else None."""
    for every in (True, False):
        choices = Choices(instance, every)
        # Sums of logarithms are rounded.
        if choices.log_plans <= math.log(most) + 1e-9:
            return choices
    return None
