"""Jobs that lose time when they change: what they keep from slot to slot, and where they start for the first time."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyomo.environ as pyo

from ddlopt.models.linear import linear
from ddlopt.models.scheduling.formulations.time_indexed.runs import Choices, slot_progress_terms
from ddlopt.models.tolerances import ROUNDING

Where = Mapping[int, Any]
"""Where a job's workers are by slot; one constant for all slots where that makes no difference."""


def add_changes(block: pyo.Block, jobs: Sequence[Choices]) -> None:
    """``kept[i, w, t]``, ``starts[i, w, t]`` and ``begun[i, t]`` of the jobs that lose time when they change.

    Where ``running`` is whole, most progress is made at whole values of these: without places they need not be integer.
    """
    changing = {c.job: c for c in jobs if c.changing}
    if not changing:
        return
    runs = [(c.job, w, t) for c in changing.values() for t in range(c.first, c.last) for w in c.widths]
    stays = [(i, w, t) for i, w, t in runs if t > changing[i].first]
    slots = [(c.job, t) for c in changing.values() for t in range(c.first, c.last)]
    block.STAYS = pyo.Set(dimen=3, initialize=stays)
    block.kept = pyo.Var(block.STAYS, bounds=(0, 1), doc="job goes on as in the slot before")
    block.FIRST_STARTS = pyo.Set(dimen=3, initialize=runs)
    block.starts = pyo.Var(block.FIRST_STARTS, bounds=(0, 1), doc="job runs for the first time")
    block.begun = pyo.Var(slots, bounds=(0, 1), doc="job has started in the slot or before")

    @block.Constraint(block.STAYS, doc="what is kept was there in the slot before")
    def kept_was_running(b: Any, i: int, w: int, t: int) -> Any:
        return linear([(1.0, b.kept[i, w, t]), (-1.0, b.running[i, w, t - 1])]) <= 0

    @block.Constraint(block.FIRST_STARTS, doc="what is kept or starts is running")
    def kept_is_running(b: Any, i: int, w: int, t: int) -> Any:
        kept = [(1.0, b.kept[i, w, t])] if (i, w, t) in b.kept else []
        return linear([*kept, (1.0, b.starts[i, w, t]), (-1.0, b.running[i, w, t])]) <= 0

    @block.Constraint(slots, doc="a job has begun from its first start on")
    def starts_once(b: Any, i: int, t: int) -> Any:
        before = [(-1.0, b.begun[i, t - 1])] if t > changing[i].first else []
        started = [(-1.0, b.starts[i, w, t]) for w in changing[i].widths]
        return linear([(1.0, b.begun[i, t]), *before, *started]) == 0

    @block.Constraint(slots, doc="only a job that has begun runs, at one width")
    def running_has_begun(b: Any, i: int, t: int) -> Any:
        running = [(1.0, b.running[i, w, t]) for w in changing[i].widths]
        return linear([*running, (-1.0, b.begun[i, t])]) <= 0


def add_long_runs(block: pyo.Block, jobs: Sequence[Choices]) -> None:
    """Jobs with least runs: where one starts or changes it is kept in the slots after, unless it is ``over[i, t]``."""
    holding = {c.job: c for c in jobs if c.changing and c.least > 1}
    if not holding:
        return
    ends = [(c.job, t) for c in holding.values() for t in range(c.first, c.last - 1)]
    block.over = pyo.Var(ends, domain=pyo.Binary, doc="job has done all that it wants with the slot")
    rows = [
        (c.job, w, t, later)
        for c in holding.values()
        for t in range(c.first, c.last)
        for w in c.widths
        for later in range(t + 1, min(t + c.least, c.last))
    ]

    @block.Constraint(ends, doc="what is over is done")
    def over_is_done(b: Any, i: int, t: int) -> Any:
        c = holding[i]
        done = [term for s in range(c.first, t + 1) for term in slot_progress_terms(b, c, s)]
        return linear([*done, (-c.wanted, b.over[i, t])]) >= 0

    @block.Constraint(rows, doc="a job that starts or changes is kept for a while, or it is over")
    def run_is_long_enough(b: Any, i: int, w: int, t: int, later: int) -> Any:
        row = [(1.0, b.kept[i, w, later]), (1.0, b.over[i, later - 1]), (-1.0, b.running[i, w, t])]
        if (i, w, t) in b.kept:
            row.append((1.0, b.kept[i, w, t]))
        return linear(row) >= 0


def set_over(block: pyo.Block, c: Choices, gains: Mapping[int, float]) -> None:
    """Values of ``over`` for a job with these gains by slot."""
    if not (c.changing and c.least > 1):
        return
    done = 0.0
    for t in range(c.first, c.last - 1):
        done += gains.get(t, 0.0)
        block.over[c.job, t].set_value(int(done >= c.wanted * (1 - ROUNDING)), skip_validation=True)


def gains_of(c: Choices, widths: Mapping[int, int], where: Where) -> dict[int, tuple[int, float]]:
    """(width, gain) by slot of a job that has these choices by slot, less where it changes."""
    found: dict[int, tuple[int, float]] = {}
    before: int | None = None
    for t in sorted(t for t, width in widths.items() if width and c.first <= t < c.last):
        found[t] = widths[t], c.gain(widths[t], changed=before is not None and not _stays(before, t, widths, where))
        before = t
    return found


def _stays(before: int, slot: int, widths: Mapping[int, int], where: Where) -> bool:
    return before == slot - 1 and widths[before] == widths[slot] and where[before] == where[slot]


def set_changes(block: pyo.Block, c: Choices, widths: Mapping[int, int], where: Where) -> None:
    """Values for a job with positive ``widths`` by slot, which are among the choices."""
    if not c.changing:
        return
    first = min(widths, default=c.last)
    for t in range(c.first, c.last):
        block.begun[c.job, t].set_value(int(t >= first), skip_validation=True)
        for w in c.widths:
            block.starts[c.job, w, t].set_value(int(t == first and widths[t] == w), skip_validation=True)
            if t > c.first:
                kept = widths.get(t) == w and t - 1 in widths and _stays(t - 1, t, widths, where)
                block.kept[c.job, w, t].set_value(int(kept), skip_validation=True)
