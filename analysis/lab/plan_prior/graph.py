"""What the larger prior sees: groups and device groups as one graph, and a partial plan with its simulated step.

As in TAG's released code, nodes are groups of operators and device groups; edges say what passes between groups, what a
group takes on a device group, and how device groups are linked. A state is a whole plan, some of whose groups are
decided; what the simulator shows of it (spans, waits, use of devices and links, memory) is part of the input.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ddlopt.analysis.lab.plan_prior.features import ACTION_FEATURES, NODE_FEATURES, Figures, features
from ddlopt.analysis.lab.plan_prior.feedback import Feedback, Observer
from ddlopt.solvers.deployment.plan.rater import PlanRater

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_LEAST = 1e-12
"""Divisor in place of 0, far below any time or size."""
FEATURES = {"op": NODE_FEATURES + 10, "device": 9, "place": 5, "link": 2, "passed": 2, "action": ACTION_FEATURES}
"""Columns for each kind of node and edge, and for an action of a group; other numbers need other weights."""


class Inputs(NamedTuple):
    """Of some states (first axis) of one instance; the last axis has :data:`FEATURES`, free of units.

    Parameters
    ----------
    ops : (states, groups, op features) array
    devices : (states, device groups, device features) array
    place : (states, groups, device groups, place features) array
    link : (states, device groups, device groups, link features) array
        Of the link from the second to the first.
    passed : (groups, groups, passed features) array
        From the second to the first; all 0 where nothing passes.
    actions : (groups, actions, action features) array
    chosen : (actions, device groups) array
        1 where an action has the device group.
    """

    ops: Any
    devices: Any
    place: Any
    link: Any
    passed: Any
    actions: Any
    chosen: Any


class Seen(NamedTuple):
    """What changes from state to state: the first four of :class:`Inputs`, of one state."""

    ops: Floats
    devices: Floats
    place: Floats
    link: Floats


class StateGraph:
    """Inputs of an instance's states."""

    def __init__(self, rater: PlanRater) -> None:
        instance = rater.instance
        self.rater, self.figures, self._observer = rater, Figures(instance), Observer(rater.simulator)
        figures, unit_s = self.figures, self.figures.unit_s
        static = features(instance, rater.actions)
        self._nodes, self.actions = static.nodes, static.actions
        self._groups = np.arange(instance.groups)
        size = len(instance.device_groups)
        self.chosen = np.zeros((len(rater.actions), size))
        for number, action in enumerate(rater.actions):
            self.chosen[number, list(action.device_groups)] = 1
        self._memory = np.array([group.memory_bytes for group in instance.device_groups])
        self._at = instance.device_group_of
        self._devices = np.column_stack(
            [
                figures.counts / 8,
                np.log(self._memory * figures.counts / max(figures.resident.sum(), _LEAST)).clip(-9, 9),
                np.log(figures.within),
                np.log(figures.speed / figures.speed.max()),
                figures.counts * figures.speed * unit_s,
            ]
        )
        whole, smallest = figures.time_s[:, :, 0], figures.time_s[:, :, -1]
        self._place = np.stack(
            [
                np.log1p(1e3 * whole / unit_s / size),
                whole / np.maximum(whole.sum(axis=0), _LEAST),
                smallest / np.maximum(whole, _LEAST),
                figures.resident[:, None] / self._memory,
            ],
            axis=2,
        )
        between = instance.bandwidth_bytes_per_s / figures.bandwidth
        np.fill_diagonal(between, 1)
        self._link = np.log(between)
        share = figures.passed / max(figures.passed.sum(), _LEAST)
        self.passed = np.stack([figures.seconds(figures.passed), share], axis=2).swapaxes(0, 1)
        self._baseline_s = rater.rate(rater.baseline()).time_s

    def see(self, row: Ints, decided: Ints) -> Seen:
        """A state: (groups,) actions, of which those of the groups ``decided`` stand."""
        seen = self._observer.see(row)
        fixed = np.zeros(len(row))
        fixed[decided] = 1
        return Seen(self._ops(row, fixed, seen), self._seen_devices(seen), self._places(row), self._links(seen))

    def inputs(self, states: list[Seen]) -> Inputs:
        """Of several states."""
        ops, devices, place, link = (np.stack(each) for each in zip(*states, strict=True))
        return Inputs(ops, devices, place, link, self.passed, self.actions, self.chosen)

    def _ops(self, row: Ints, fixed: Floats, seen: Feedback) -> Floats:
        time_s = max(seen.time_s, _LEAST)
        # Columns 6 to 9 of the actions' features are modes and the split.
        modes = self.actions[self._groups, row, 6:10]
        gain = np.log(max(self._baseline_s, _LEAST) / time_s).clip(-3, 3)
        ones = np.ones(len(row))
        return np.column_stack(
            [
                self._nodes,
                modes,
                np.sqrt(seen.span_s / time_s),
                np.sqrt(seen.idle_after_s / time_s),
                fixed,
                gain * ones,
                float(seen.excess_bytes > 0) * ones,
                fixed.mean() * ones,
            ]
        )

    def _seen_devices(self, seen: Feedback) -> Floats:
        time_s, size = max(seen.time_s, _LEAST), len(self._memory)
        peak, busy = np.zeros(size), np.zeros(size)
        np.maximum.at(peak, self._at, seen.peak_bytes)
        np.add.at(busy, self._at, seen.busy_s)
        used = np.column_stack(
            [
                (peak / self._memory).clip(0, 4),
                busy / self.figures.counts / time_s,
                np.diag(seen.link_s) / time_s,
                np.full(size, seen.channel_s / time_s),
            ]
        )
        return np.concatenate([self._devices, used], axis=1)

    def _places(self, row: Ints) -> Floats:
        return np.concatenate([self._place, self.chosen[row][:, :, None]], axis=2)

    def _links(self, seen: Feedback) -> Floats:
        return np.stack([self._link.T, seen.link_s.T / max(seen.time_s, _LEAST)], axis=2)
