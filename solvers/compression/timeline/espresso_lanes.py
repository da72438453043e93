"""What Espresso's greedy does where there are several lanes: times by its simulator's rules, and offloading to CPUs."""

import itertools

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression.timeline.instance import CompressionInstance
from ddlopt.models.compression.timeline.lane_arrays import lane_arrays_of
from ddlopt.models.tolerances import ROUNDING

Places = npt.NDArray[np.int64]

_COMBINATIONS = 20_000
"""Counts of gradients on CPUs that are tried all together; where there are more, one size after the other."""


class LaneState:
    """Choices so far, and their time; as ``_State`` of the greedy on one wire, with every trial timed from scratch."""

    def __init__(self, timeline: CompressionInstance, chosen: Places) -> None:
        self.elements = np.array([gradient.elements for gradient in timeline.gradients])
        self.chosen = chosen
        self._arrays = lane_arrays_of(timeline)
        self._menus = [timeline.menus[gradient.menu] for gradient in timeline.gradients]
        self._rows = np.arange(timeline.size)
        self._time_budget_s = timeline.time_budget_s
        self._budget = np.inf if timeline.error_budget is None else timeline.error_budget
        self.on_cpu = np.zeros(self._arrays.error.shape, dtype=np.bool_)
        for i, menu in enumerate(self._menus):
            self.on_cpu[i, : len(menu)] = [option.device == "cpu" for option in menu]
        self.time_s = self._times(chosen[None])[0]

    def _times(self, plans: Places) -> npt.NDArray[np.float64]:
        return self._arrays.times_s(plans)

    def _within(self, plans: Places) -> npt.NDArray[np.bool_]:
        """(b,) whether plans keep the error budget."""
        error: npt.NDArray[np.float64] = self._arrays.error[self._rows, plans].sum(axis=1)
        within: npt.NDArray[np.bool_] = error <= self._budget * (1 + ROUNDING)
        return within

    @property
    def done(self) -> bool:
        """Whether there is a time budget, and it is kept."""
        return self._time_budget_s is not None and self.time_s <= self._time_budget_s

    def last_gap(self) -> int:
        """The last gradient that does not wait for its first lane."""
        arrays, free, encoded, gap = self._arrays, np.zeros(self._arrays.used.shape[2]), 0.0, 0
        for i, choice in enumerate(self.chosen.tolist()):
            encoded += arrays.encode_s[i, choice]
            at = arrays.ready_s[i] + encoded
            lanes = np.flatnonzero(arrays.used[i, choice])
            if len(lanes) and free[lanes[0]] <= at * (1 + ROUNDING):
                gap = i
            for lane in lanes.tolist():
                at = free[lane] = max(at, free[lane]) + arrays.stage_s[i, choice, lane]
        return gap

    def improve(self, j: int, wanted: npt.NDArray[np.bool_], always: bool = False) -> None:
        """Take the best of the wanted options of gradient j within the budget, if it improves (or always); no CPUs."""
        choices = np.flatnonzero(wanted & ~self.on_cpu[j])
        plans = np.repeat(self.chosen[None], len(choices), axis=0)
        plans[:, j] = choices
        self._take(plans[self._within(plans)] if len(plans) else plans, always)

    def _take(self, plans: Places, always: bool = False) -> None:
        """The best of the plans, if it improves (or always)."""
        if not len(plans):
            return
        times = self._times(plans)
        best = int(times.argmin())
        if always or times[best] < self.time_s * (1 - ROUNDING):
            self.chosen, self.time_s = plans[best], times[best]

    def offload(self, allowed: npt.NDArray[np.bool_]) -> None:
        """Move compressed gradients to CPUs: a number of each size, from the first in the backward pass on.

        Parameters
        ----------
        allowed : (n,) array of bool
            Which gradients may be moved.
        """
        groups: dict[int, list[int]] = {}
        for i in np.flatnonzero(allowed & self.on_cpu.any(axis=1)).tolist():
            groups.setdefault(int(self.elements[i]), []).append(i)
        members = list(groups.values())
        counts = [range(len(each) + 1) for each in members]
        if np.prod([float(len(each)) for each in counts]) <= _COMBINATIONS:
            self._take(self._moved(members, np.array(list(itertools.product(*counts)))))
            return
        for group in members:
            self._take(self._moved([group], np.arange(len(group) + 1)[:, None]))

    def _moved(self, groups: list[list[int]], counts: Places) -> Places:
        """(b, n) the choices with the first of each group on CPUs, as (b, groups) ``counts`` say; within the budget."""
        plans = np.repeat(self.chosen[None], len(counts), axis=0)
        for place, group in enumerate(groups):
            for number, i in enumerate(group):
                plans[counts[:, place] > number, i] = int(self.on_cpu[i].argmax())
        return plans[self._within(plans)]
