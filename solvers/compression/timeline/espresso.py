"""Espresso's greedy: gradients in decreasing size, each compressed if the iteration ends earlier for it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ddlopt.models.compression import (
    CompressionAnswer,
    CompressionInstance,
    CompressionPlan,
    CompressionProblem,
    Option,
)
from ddlopt.models.compression.timeline.choices import Choices, answer_of, as_timeline, choices_of, why_no_timeline
from ddlopt.models.errors import NoSolutionError
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.compression.timeline.espresso_lanes import LaneState
from ddlopt.solvers.heuristic import Answer, Clock, Heuristic
from ddlopt.solvers.names import spelled

Floats = npt.NDArray[np.float64]

HALVED = 2**17
"""Elements above which Espresso takes fp16."""
COMPRESSED = {"pcie": (2**20, 2**23), "nvlink": (2**19, 2**22)}
"""Elements above which it compresses between nodes, and on both levels."""


@dataclass(frozen=True)
class Espresso(Heuristic, uses=()):
    """Espresso's greedy for options on a timeline.

    Gradients before the last gap in communication cannot end the iteration earlier. Those after it take fp16 if they
    have more than 2^17 elements. Then, of those after the last gap that is left, each in decreasing size (of equals the
    later one first) takes compression if the iteration ends earlier. Which compression depends on its size: on both
    levels above 2^23 elements (2^22 where GPUs have NVLink), where the menu has that; between nodes above 2^20 (2^19).

    Ours: several options of a kind are all tried; where none is between nodes, those that compress everything count as
    such; where there is no cluster, NVLink is taken for granted. Gradients that cannot be left as they are begin at
    their least error. A step that would exceed the error budget is not taken, which the original does not know; with
    goal ``error`` it ends as soon as the time budget is kept. Gradients are not fused.

    Where there are several lanes, options on CPUs are left for the end: of the compressed gradients of each size some
    are moved to CPUs, the first ones, and all combinations of their numbers are tried (one size after the other where
    they are more than 20 000). The original's evaluation with CPUs leaves out that encoding on the GPU delays the
    backward pass; here it does. ``thresholds=False`` may move any gradient.

    Parameters
    ----------
    thresholds : bool
        False: size says nothing (ours); gradients after the last gap take fp16 if the iteration ends earlier, and then
        any option.

    References
    ----------
    Z. Wang et al., "Hi-speed DNN training with Espresso: unleashing the full potential of gradient compression with
    near-optimal usage strategies", EuroSys 2023; order and sizes as in the authors' simulator_espresso.py
    (zhuangwang93/Espresso).
    """

    thresholds: bool = True

    @property
    def name(self) -> str:
        """As in the catalogue."""
        return spelled("espresso", self, "thresholds")

    def refuses(self, instance: CompressionProblem) -> str | None:
        """Other problems of the family."""
        return why_no_timeline(instance)

    def answer(self, instance: CompressionProblem, seed: int, clock: Clock, start: Any) -> Answer[CompressionAnswer]:
        """See :class:`~ddlopt.solvers.heuristic.Heuristic`."""
        timeline = as_timeline(instance)
        state = LaneState(timeline, _begin(timeline)) if timeline.lanes else _State(timeline)
        kinds = _kinds(timeline)
        first = state.last_gap()
        for i in range(first, timeline.size):
            if not state.done and (not self.thresholds or state.elements[i] > HALVED):
                state.improve(i, kinds[i] == _FP16, always=self.thresholds)
        first = state.last_gap()
        places = np.arange(first, timeline.size)
        for i in places[np.lexsort((-places, -state.elements[first:]))].tolist():
            if state.done or clock.expired:
                break
            state.improve(i, self._wanted(timeline, kinds[i], state.elements[i]))
        if isinstance(state, LaneState) and not state.done:
            state.offload((kinds[np.arange(timeline.size), state.chosen] >= _BETWEEN) | (not self.thresholds))
        if timeline.time_budget_s is not None and state.time_s > timeline.time_budget_s:
            raise NoSolutionError(f"it ends at {state.time_s:g} s, after time_budget_s, {timeline.time_budget_s:g}")
        plan = CompressionPlan(instance=timeline.name, choices=tuple(state.chosen.tolist()))
        return answer_of(instance, plan), {}

    def _wanted(
        self, timeline: CompressionInstance, kinds: npt.NDArray[np.int64], elements: float
    ) -> npt.NDArray[np.bool_]:
        """Which options of a gradient may be tried."""
        one, both = COMPRESSED["nvlink" if timeline.cluster is None else timeline.cluster.intra]
        wanted: npt.NDArray[np.bool_] = kinds > _ABSENT
        if not self.thresholds:
            return wanted
        if elements > both and (kinds == _BOTH).any():
            wanted = kinds == _BOTH
        else:
            wanted = (kinds == _BETWEEN) & (elements > one)
        return wanted


# Kinds of options as numbers; those below 0 are never wanted.
_ABSENT, _OTHER, _NONE, _FP16, _BETWEEN, _BOTH = -2, -1, 0, 1, 2, 3


def _kinds(timeline: CompressionInstance) -> npt.NDArray[np.int64]:
    """(n, m) what the options of each gradient are to Espresso."""
    kinds = np.full((len(timeline.menus), timeline.most_options), _ABSENT)
    for place, menu in enumerate(timeline.menus):
        levels = any(o.scope == "inter" and o.compressor not in ("none", "fp16") for o in menu)
        whole = _BOTH if levels else _BETWEEN
        of_scope = {"inter": _BETWEEN, "all": whole, "intra": _OTHER}
        for choice, o in enumerate(menu):
            plain = {"none": _NONE, "fp16": _FP16}.get(o.compressor)
            kinds[place, choice] = of_scope[o.scope] if plain is None else plain
    return kinds[[gradient.menu for gradient in timeline.gradients]]


class _State:
    """Choices so far, and when all would be sent if the wire had been free until each gradient was encoded.

    The latest of these n ends, R_i + (encoding up to i) + (occupation from i on), is the time. An option of gradient j
    moves those from j on by what it encodes longer, and those up to j by what it occupies longer.
    """

    def __init__(self, timeline: CompressionInstance) -> None:
        self.elements = np.array([gradient.elements for gradient in timeline.gradients])
        self._options: Choices = choices_of(timeline)
        self._encode, self._error = self._options.encode_s, self._options.error
        self._occupation = self._options.occupation_s
        self._time_budget_s = timeline.time_budget_s
        self._budget = np.inf if timeline.error_budget is None else timeline.error_budget
        self.chosen = _start(timeline, self._error, self._budget)
        self._rows = np.arange(timeline.size)
        self._spent = float(self._of(self._error).sum())
        self._refresh()

    def _of(self, figures: Floats) -> Floats:
        chosen: Floats = figures[self._rows, self.chosen]
        return chosen

    def _refresh(self) -> None:
        self._ends = self._options.paths_s(self.chosen)
        self._before = np.concatenate(([-np.inf], np.maximum.accumulate(self._ends)[:-1]))
        self._after = np.concatenate((np.maximum.accumulate(self._ends[::-1])[::-1][1:], [-np.inf]))

    @property
    def time_s(self) -> float:
        """When all is sent."""
        return float(self._ends.max())

    @property
    def done(self) -> bool:
        """Whether there is a time budget, and it is kept."""
        return self._time_budget_s is not None and self.time_s <= self._time_budget_s

    def last_gap(self) -> int:
        """The last gradient that does not wait for the wire."""
        return int(np.flatnonzero(self._ends >= np.maximum(self._before, self._after) * (1 - ROUNDING))[-1])

    def improve(self, j: int, wanted: npt.NDArray[np.bool_], always: bool = False) -> None:
        """Take the best of the wanted options of gradient j within the budget, if it improves (or always)."""
        old = self.chosen[j]
        allowed = wanted & (self._spent - self._error[j, old] + self._error[j] <= self._budget)
        choices = np.flatnonzero(allowed)
        if not len(choices):
            return
        longer = self._encode[j, choices] - self._encode[j, old]
        busier = self._occupation[j, choices] - self._occupation[j, old]
        before, after = self._before[j] + busier, self._after[j] + longer
        times = np.maximum(np.maximum(before, after), self._ends[j] + longer + busier)
        best = int(times.argmin())
        if not always and times[best] >= self.time_s * (1 - ROUNDING):
            return
        self.chosen[j] = choices[best]
        self._spent += float(self._error[j, choices[best]] - self._error[j, old])
        self._refresh()


def _begin(timeline: CompressionInstance) -> npt.NDArray[np.int64]:
    budget = np.inf if timeline.error_budget is None else timeline.error_budget
    return _start(timeline, choices_of(timeline).error, budget)


def _start(timeline: CompressionInstance, error: Floats, budget: float) -> npt.NDArray[np.int64]:
    """Nothing compressed, as quickly as may be; the least error where there is no such option, or all lose too much."""

    def plain(menu: tuple[Option, ...]) -> int:
        found = [(o.encode_s + o.occupation_s, k) for k, o in enumerate(menu) if o.compressor == "none"]
        return min(found)[1] if found else -1

    least = error.argmin(axis=1)
    places = np.array([plain(menu) for menu in timeline.menus])[[gradient.menu for gradient in timeline.gradients]]
    start: npt.NDArray[np.int64] = np.where(places >= 0, places, least)
    return start if error[np.arange(len(start)), start].sum() <= budget else least
