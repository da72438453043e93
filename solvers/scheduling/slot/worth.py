"""What progress in one slot is worth: utilities of many jobs at once, and gains in place of those that mislead."""

from dataclasses import dataclass

import numpy as np

from ddlopt.models.scheduling.fair_time import fair_slots
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.utility import DONE, Fair, Utility
from ddlopt.models.tolerances import ROUNDING
from ddlopt.solvers.scheduling.online.engine import State
from ddlopt.solvers.scheduling.slot.rates import Floats, Ints

FAIREST = Fair(alpha=8.0, epsilon=0.05)
"""Stands for max-min fairness in a slot: the job that is least far gains most by far."""


class Utilities:
    """Utilities of jobs as functions of the part of their mini-batches that is done, vectorised.

    Parameters
    ----------
    utilities : sequence of Utility
    envelope : bool
        Whether ``all_or_nothing`` is taken for its concave envelope, ``value · p``.
    """

    def __init__(self, utilities: list[Utility], envelope: bool = False) -> None:
        self.value: Floats = np.array([one.value for one in utilities])
        kinds = ["capped" if envelope and one.kind == "all_or_nothing" else one.kind for one in utilities]
        self._kinds = {kind: number for number, kind in enumerate(sorted(set(kinds)))}
        self._kind: Ints = np.array([self._kinds[kind] for kind in kinds])
        self._first = np.array([_parameters(one)[0] for one in utilities])
        self._second = np.array([_parameters(one)[1] for one in utilities])

    def of(self, jobs: Ints, parts: Floats) -> Floats:
        """Utility of each of ``jobs`` at its part, both of one shape; parts above 1 are worth no more than 1."""
        parts = np.minimum(parts, 1.0)
        if len(self._kinds) == 1:
            return self._of_kind(next(iter(self._kinds)), jobs, parts)
        worth = np.empty(parts.shape)
        for kind, number in self._kinds.items():
            mine = self._kind[jobs] == number
            worth[mine] = self._of_kind(kind, jobs[mine], parts[mine])
        return worth

    def _of_kind(self, kind: str, jobs: Ints, p: Floats) -> Floats:
        first, second = self._first[jobs], self._second[jobs]
        relative: Floats
        match kind:
            case "capped":
                relative = p
            case "logarithmic":
                relative = np.log1p(first * p) / np.log1p(first)
            case "loss_curve":
                relative = first * p / (1 + first * p)
            case "fair":
                power = 1 - first
                safe = np.where(power == 0, 1.0, power)
                powers = ((second + p) ** safe - second**safe) / safe
                relative = np.where(power == 0, np.log1p(p / second), powers)
            case "all_or_nothing":
                relative = (p >= float(DONE)).astype(np.float64)
            case _:
                raise ValueError(f"there is no utility '{kind}'")
        return self.value[jobs] * relative


def _parameters(utility: Utility) -> tuple[float, float]:
    match utility.kind:
        case "logarithmic":
            return utility.curvature, 0.0
        case "loss_curve":
            return utility.rate, 0.0
        case "fair":
            return utility.alpha, utility.epsilon
    return 0.0, 0.0


@dataclass(frozen=True)
class Gains:
    """Gains of jobs by width: width w of ``jobs[k]`` gains ``values[starts[k] + w]``, -inf where it may not have it."""

    jobs: Ints
    starts: Ints
    values: Floats

    @property
    def lengths(self) -> Ints:
        """Widths of each of the jobs, 0 included."""
        return np.diff(self.starts)

    def row(self, place: int) -> Floats:
        """(N + 1,) gains of ``jobs[place]`` by width."""
        return self.values[self.starts[place] : self.starts[place + 1]]

    def of_places(self, places: Ints) -> "Gains":
        """The same of some of the jobs."""
        lengths = self.lengths[places]
        starts = np.concatenate(([0], np.cumsum(lengths)))
        shift = np.repeat(self.starts[places] - starts[:-1], lengths)
        return Gains(self.jobs[places], starts, self.values[np.arange(starts[-1]) + shift])

    def total(self, widths: Ints) -> float:
        """Gain of one width for each of the jobs."""
        return float(self.values[self.starts[:-1] + widths].sum())


class SlotGains:
    r"""What widths gain in one slot.

    ``utility``: :math:`u_i(Z_i + \varphi_i(w)) - u_i(Z_i)`. The other objectives are not sums of concave utilities,
    and gains of our own stand for them:

    * ``all_or_nothing`` utilities gain as their concave envelope, v p, since nothing is gained before the end, and
      nothing once the end is out of reach;
    * ``max_min``: as with :data:`FAIREST` utilities;
    * ``completion``: v times the part of what is left that gets done, so that short remainders go first;
    * ``finish_time_fairness``: the same part, divided by the slots with a fair share alone;
    * ``makespan``: with :math:`r_i = (F_i - Z_i) / \varphi_i(N_i)`, the slots left at full width,
      :math:`N_i (r_i^2 - (r_i - \delta)^2)`, :math:`\delta` what r falls by: the longest remainders go first.

    What a job loses now by a change of its width counts; that it may lose as much in the next slot does not, nor does a
    move at the same width.

    Where jobs are not preemptive, a start binds their workers until the end, and its gain is that of the whole run
    divided by its slots.

    Parameters
    ----------
    instance : SchedulingInstance
    """

    def __init__(self, instance: SchedulingInstance) -> None:
        self.instance = instance
        utilities = [job.utility for job in instance.jobs]
        if instance.goal.counts_least_part:
            utilities = [FAIREST] * len(utilities)
        self.utilities = Utilities(utilities, envelope=True)
        self._fair: Floats = np.array(fair_slots(instance) if instance.goal.counts_ratios else [])
        self._only_finished = np.array([one.kind == "all_or_nothing" for one in utilities])

    def of(self, state: State) -> Gains:
        """Gains of the active jobs."""
        return self.after(state, state.active, state.done, state.slot)

    def after(self, state: State, jobs: Ints, done: Floats, slot: int) -> Gains:
        """Gains of any ``jobs`` in a slot, after ``done`` (I,) mini-batches."""
        lengths = state.rates.widest[jobs] + 1
        starts = np.concatenate(([0], np.cumsum(lengths)))
        each = np.repeat(jobs, lengths)
        widths = np.arange(starts[-1]) - np.repeat(starts[:-1], lengths)
        rates = state.progress(each, widths)
        wanted, before = state.wanted[each], done[each]
        slots = np.ones(len(each))
        if not self.instance.preemptive:
            needed = np.divide(wanted - before, rates, out=np.ones(len(each)), where=rates > 0)
            slots = np.clip(np.ceil(needed * (1 - ROUNDING)), 1, np.maximum(1, state.last[each] - slot))
        values = self._gain(state, each, before, before + rates * slots) / slots
        if self.instance.goal.counts_utilities and self._only_finished[jobs].any():
            left = wanted * float(DONE) - before
            values[self._only_finished[each] & (left > state.rates.fastest[each] * (state.last[each] - slot))] = 0.0
        values[(widths > 0) & (widths < state.rates.narrowest[each])] = -np.inf
        return Gains(jobs, starts, values)

    def _gain(self, state: State, jobs: Ints, before: Floats, after: Floats) -> Floats:
        wanted = state.wanted[jobs]
        # A job that is done but for rounding has no worth without end.
        left = np.maximum(wanted - before, 1e-9 * wanted)
        goal = self.instance.goal
        if goal.counts_ends:
            return self.utilities.value[jobs] * np.minimum(1.0, (after - before) / left)
        if goal.counts_ratios:
            return np.minimum(1.0, (after - before) / left) / self._fair[jobs]
        if goal.counts_last_end:
            widest = state.rates.widest[jobs]
            rate = state.rates(jobs, widest)
            left = np.maximum(wanted - before, 0.0) / rate
            then = np.maximum(wanted - after, 0.0) / rate
            return widest * (left**2 - then**2)
        return self.utilities.of(jobs, after / wanted) - self.utilities.of(jobs, before / wanted)
