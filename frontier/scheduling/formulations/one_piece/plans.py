"""All that one job may do if it runs in one piece: where, from which slot on, and how long."""

import itertools
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ddlopt.frontier.scheduling.formulations.slot_patterns.options import Option, TooManyError, options
from ddlopt.models.scheduling.instance import SchedulingInstance
from ddlopt.models.scheduling.solution import Run
from ddlopt.models.scheduling.utility import DONE

MOST_PLANS = 40_000
"""Of all jobs together."""


class Plan(NamedTuple):
    """A job on one placement in slots ``first .. last - 1``; without contention it does ``part`` of what it wants."""

    job: int
    option: Option
    first: int
    last: int
    part: float


def is_contended(instance: SchedulingInstance, option: Option) -> bool:
    """Whether the speed depends on others."""
    return instance.contention is not None and option.split


@lru_cache(maxsize=8)
def plans(instance: SchedulingInstance, symmetry: bool = True) -> tuple[Plan, ...] | str:
    """Every plan of every job that can be of use, or why there are too many.

    None goes on after the job has finished, and none that has to finish stops before. Equal servers can be exchanged,
    so that on them the workers of the widest job do not increase, with ``symmetry``.
    """
    found: list[Plan] = []
    widest = _widest(instance) if symmetry else -1
    for i in range(len(instance.jobs)):
        try:
            each = options(instance, i)
        except TooManyError as error:
            return str(error)
        for option in each:
            if i == widest and not _is_first(instance, option):
                continue
            found += _of(instance, i, option)
            if len(found) > MOST_PLANS:
                return f"there are more than {MOST_PLANS} plans of jobs"
    return tuple(found)


def _of(instance: SchedulingInstance, job: int, option: Option) -> list[Plan]:
    contended, finishing = is_contended(instance, option), instance.goal.counts_whole(instance.jobs[job])
    part = instance.rate(job, option.width, len(option.workers), int(contended)) / instance.jobs[job].minibatches
    wanted = float(DONE) if finishing else 1.0
    begin, end = instance.jobs[job].arrival, instance.last_slot(job)
    found = []
    for first in range(begin, end):
        for last in range(first + 1, end + 1):
            slots = last - first
            if finishing and slots * part < wanted:
                continue
            # A slot more than it takes; contention may ask for any number.
            if not contended and (slots - 1) * part >= wanted:
                break
            found.append(Plan(job, option, first, last, min(1.0, slots * part)))
    return found


def _is_first(instance: SchedulingInstance, option: Option) -> bool:
    """Whether workers do not increase over equal servers."""
    held = dict(option.workers)
    each = ([held.get(server, 0) for server in alike] for alike in _alike(instance))
    return all(a >= b for counts in each for a, b in itertools.pairwise(counts))


def _alike(instance: SchedulingInstance) -> list[list[int]]:
    """Servers that can be exchanged for each other."""
    if instance.needs_rings:
        return []
    kinds: dict[tuple[float, ...], list[int]] = {}
    for server, row in enumerate(np.column_stack((instance.capacity, instance.idle_w, instance.worker_w)).tolist()):
        kinds.setdefault(tuple(row), []).append(server)
    return list(kinds.values())


def _widest(instance: SchedulingInstance) -> int:
    return max(range(len(instance.jobs)), key=lambda i: instance.jobs[i].max_workers)


def renumbered(instance: SchedulingInstance, runs: Sequence[Run]) -> list[Run]:
    """The same runs with equal servers exchanged such that the widest job is as :func:`plans` has it."""
    held = next((dict(run.workers) for run in runs if run.job == _widest(instance)), {})
    number = {server: server for server in range(instance.server_count)}
    for alike in _alike(instance):
        number |= dict(zip(sorted(alike, key=lambda server: (-held.get(server, 0), server)), alike, strict=True))
    return [
        run.model_copy(update={"workers": tuple(sorted((number[server], count) for server, count in run.workers))})
        for run in runs
    ]
