"""Parts of all plans, by where groups lie, each with prices of its own."""

import itertools
import math
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.frontier.deployment.plan.prices.best_prices import BestPrices, Bools
from ddlopt.frontier.deployment.plan.seats import Floats, Ints
from ddlopt.frontier.engines.best_first import OpenNodes
from ddlopt.models.tolerances import BOUND_MARGIN, let_pass_at_most
from ddlopt.solvers.deployment.plan.actions import forward_order
from ddlopt.solvers.deployment.plan.simulator.fast import Simulator


@dataclass(frozen=True)
class Effort:
    """What a search spends, and why so much."""

    turns: int = 5
    """Of a part between looks at the others: its bound may no longer be the least."""
    most_turns: int = 15
    """Of a part before it is parted again."""
    whole: float = 1e-6
    """Of a mixture: what may lie elsewhere in a group that is not divided, for the solver's rounding."""
    most_twins: int = 50_000
    """Plans that differ in devices of a group alone: for this number it is looked up in no time which fit."""
    most_simulated: int = 2000
    """Those that fit of which all are simulated: a fraction of a second."""
    much: float = 0.8
    """Of what lies elsewhere in the most divided group: a group with this part of it counts as well. The one in the
    middle of the longest run of these parts the plans."""


_EFFORT = Effort()


@dataclass
class _Part:
    """The plans of the choices that are left, with the prices of a larger part until it has turns of its own.

    One that is ``simulated`` is a single plan up to devices of a group, and its bound is the last word on it.
    """

    left: Bools
    prices: BestPrices
    ended: bool = False
    simulated: bool = False


class Parts:
    """The plans in parts, and a bound: the least of theirs.

    The bound by prices (:class:`~.BestPrices`) is that of the best *mixture* of plans, with each sum in the mean. A
    mixture that has everything on some devices and everything on others shares out all work, and sends nothing between
    them. So plans are parted by the device groups of one group of operators. Every part has prices of its own, and its
    mixtures agree on this group; what lies elsewhere has to send to it. The part with the least bound is parted next,
    by the group in the middle of the longest run of those that its mixture divides most. Where all lie on the same
    device groups in all of a mixture, it is parted by a split of the batch, by what is duplicated or on which device,
    and then by how gradients are synchronised, which mostly makes no difference. A mixture of one plan is parted into
    this plan, which is simulated, and those that are first unlike it in one group after the other (Murty, "An
    algorithm for ranking all the assignments in order of increasing cost", Operations Research 16(3), 1968). A choice
    of a device stands for all of its group, and of plans that it stands for the quickest counts, where they are not too
    many; so the bound ends at the best of all plans.

    Parameters
    ----------
    prices : BestPrices
        Of all plans, after their last turn.

    Attributes
    ----------
    bound_s : float
    plans : list of (groups,) arrays
        All plans found.
    parted : int
        How many parts have been parted.
    found, found_s : (action, duplicated, device) arrays or None, float
        The quickest plan that fits of those that were simulated, one row of each.
    """

    def __init__(self, prices: BestPrices) -> None:
        self.bound_s, self.plans, self.parted = prices.bound_s, list(prices.plans), 0
        self._levels = _levels(prices)
        self._choices = prices.figures.choices
        instance = self._choices.instance
        self._order = forward_order(instance)
        self._simulator = Simulator(instance, self._choices.actions)
        self.found: tuple[Ints, Ints, Ints] | None = None
        self.found_s = math.inf
        self._open: OpenNodes[_Part] = OpenNodes()
        self._open.push(prices.bound_s, _Part(prices.left, prices, ended=True))

    def step(self) -> bool:
        """Turns for the part with the least bound, or part it; False if there is no more to be had."""
        bound_s, part = self._open.pop()
        if part.simulated:
            self._open.push(bound_s, part)
            return False
        if part.ended:
            self._divide(part)
            return True
        if part.prices.left is not part.left:
            part.prices = part.prices.part(part.left)
        known = len(part.prices.plans)
        for _ in range(_EFFORT.turns):
            part.ended = part.ended or not part.prices.turn() or part.prices.turns >= _EFFORT.most_turns
        self.plans += part.prices.plans[known:]
        self._open.push(part.prices.bound_s, part)
        self.bound_s = self._open.least
        return True

    def _divide(self, part: _Part) -> None:
        plans, weights = part.prices.mixture()
        found = ((each, self._divided(each, plans, weights)) for each in self._levels)
        level, group = next((each for each in found if each[1] >= 0), (self._levels[0], -1))
        if group < 0:
            self._take_out(plans[int(weights.argmax())], part)
        else:
            for name in np.unique(level[group, part.left[group]]).tolist():
                left = part.left.copy()
                left[group] &= level[group] == name
                self._open.push(part.prices.bound_of(left)[0], _Part(left, part.prices))
        self.parted += 1
        self.bound_s = self._open.least

    def _take_out(self, plan: Ints, part: _Part) -> None:
        """Part by a plan: it alone, and for each group the plans that are first unlike it there."""
        left = part.left.copy()
        for group in self._order.tolist():
            own = np.arange(left.shape[1]) == plan[group]
            if (left[group] & ~own).any():
                others = left.copy()
                others[group] &= ~own
                self._open.push(part.prices.bound_of(others)[0], _Part(others, part.prices))
            left[group] &= own
        alone = _Part(left, part.prices, ended=True, simulated=True)
        self._open.push(max(part.prices.bound_s, self._simulated_s(plan)), alone)

    def _simulated_s(self, plan: Ints) -> float:
        """The least step of all plans that fit which one stands for, infinite where none does; 0 for too many."""
        action, duplicated, device = self._choices.rows(plan[None])
        places = [range(first, end) if end - first > 1 else (own,) for own, (first, end) in self._twins(device[0])]
        if math.prod(map(len, places)) > _EFFORT.most_twins:
            return 0.0
        each = np.array(list(itertools.product(*places)))
        each = each[self._fits(action[0], each)]
        if len(each) > _EFFORT.most_simulated:
            return 0.0
        if not len(each):
            return math.inf
        rows = np.repeat(action, len(each), axis=0), np.repeat(duplicated, len(each), axis=0), each
        times, excess = self._simulator.run_all(*rows)
        times[excess > 0] = math.inf
        least = int(times.argmin())
        if times[least] < self.found_s:
            self.found, self.found_s = (rows[0][least], rows[1][least], rows[2][least]), float(times[least])
        return float(times[least]) * (1.0 - BOUND_MARGIN)

    def _fits(self, action: Ints, device: Ints) -> npt.NDArray[np.bool_]:
        """Whether what stays on the devices all the time does, for rows of devices of operators that have but one."""
        instance = self._choices.instance
        used = np.zeros((len(device), instance.devices))
        for place, operator in enumerate(instance.operators):
            if device[0, place] < 0:
                own = instance.devices_of(self._choices.actions[action[operator.group]].device_groups)
                used[:, list(own)] += operator.resident_bytes
            else:
                used[np.arange(len(device)), device[:, place]] += operator.resident_bytes
        room = np.array([instance.device_groups[j].memory_bytes for j in instance.device_group_of])
        return np.asarray((used <= let_pass_at_most(room)).all(axis=1), np.bool_)

    def _twins(self, device: Ints) -> list[tuple[int, tuple[int, int]]]:
        """The device of each operator, and the first and the end of those that it stands for."""
        of_group = self._choices.instance.device_group_of
        first, end = np.searchsorted(of_group, of_group, "left"), np.searchsorted(of_group, of_group, "right")
        return [(own, (own, own + 1) if own < 0 else (int(first[own]), int(end[own]))) for own in device.tolist()]

    def _divided(self, level: Ints, plans: list[Ints], weights: Floats) -> int:
        """A group by which to part; -1 if the mixture divides none."""
        share: Floats = np.zeros((len(level), level.max() + 1))
        groups = np.arange(len(share))
        for plan, weight in zip(plans, weights.tolist(), strict=True):
            share[groups, level[groups, plan]] += weight
        elsewhere = (share.sum(axis=1) - share.max(axis=1))[self._order]
        if elsewhere.max() <= _EFFORT.whole:
            return -1
        runs, place = [], 0
        for much, run in groupby(elsewhere >= _EFFORT.much * elsewhere.max()):
            length = len(list(run))
            if much:
                runs.append((length, -place))
            place += length
        length, first = max(runs)
        return int(self._order[-first + length // 2])


def _levels(prices: BestPrices) -> tuple[Ints, ...]:
    """(groups, choices) numbers of device groups, of those with a split, of what operators have, and of choices."""
    choices = prices.figures.choices
    known: tuple[dict[Any, int], ...] = {}, {}, {}
    found = np.zeros((4, *prices.left.shape), np.int64)
    for group, own in enumerate(choices.of_groups):
        for c, choice in enumerate(own):
            action = choices.actions[choice.action]
            seat = action.device_groups, action.split, action.mode == "model_parallel"
            keys = seat[0], seat, (seat, choice.duplicated, choice.devices)
            found[:, group, c] = *(names.setdefault(key, len(names)) for names, key in zip(known, keys, strict=True)), c
    return tuple(found)
