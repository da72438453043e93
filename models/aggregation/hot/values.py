"""What each parameter saves on each switch, and parameters sorted into groups of which the hottest go first."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ddlopt.models.aggregation.hot.instance import HotInstance, HotJob, Reals, Whole

_FEW = 0.1
"""Expected messages below which the difference of the formula cancels digits, and its series is short."""
# Terms shrink by a factor of the largest argument at least, so that the last is below the last bit of the sum.
_TERMS = 13


def saved_messages(frequencies: Reals, workers: int) -> Reals:
    """Messages saved in an iteration, m p - [1 - (1 - p)^m], to about 14 digits at any p.

    Parameters
    ----------
    frequencies : (P,) array
        p, in 0..1.
    workers : int
        m.

    Returns
    -------
    (P,) array
    """
    with np.errstate(divide="ignore"):
        saved = workers * frequencies + (np.expm1(workers * np.log1p(-frequencies)) if workers else 0.0)
    few = frequencies * workers < _FEW
    p = frequencies[few]
    series = np.zeros_like(p)
    for power in reversed(range(2, _TERMS)):
        series = math.comb(workers, power) * (-1.0) ** power + p * series
    saved[few] = p * p * series
    return np.asarray(np.maximum(saved, 0.0))


def job_values(job: HotJob, workers: int) -> Reals:
    """What each parameter of a job saves in a second where messages of ``workers`` workers pass, (P,)."""
    if not workers:
        return np.zeros(len(job.frequencies))
    saved = job.saved_messages if job.saved_messages is not None else saved_messages(job.frequencies, workers)
    return np.asarray(job.iterations_per_s * job.widths * saved)


@dataclass(frozen=True, eq=False)
class Group:
    """Parameters of one job that take equally many registers, the hottest first.

    Parameters
    ----------
    job, width : int
    parameters : (K,) array
        Numbers of those that save something somewhere.
    levels : tuple of int
        The different numbers of passing workers that switches have for the job, ascending, without 0 and 1 where
        nothing is saved.
    values : (levels, K) array
        What each saves at each level; non-increasing in K.
    level_of : tuple of int
        For each switch its place in ``levels``, or -1.

    Notes
    -----
    *The hottest go first.* f(p, m) grows with p, and so does f(p, m) - f(p, m') for m > m', as its derivative is
    m [1 - (1 - p)^(m-1)] less the same for m'. So two parameters of a group can be swapped without loss until the
    hotter one is where more workers pass, and until no parameter off the switches is hotter than one on them.
    """

    job: int
    width: int
    parameters: Whole
    levels: tuple[int, ...]
    values: Reals
    level_of: tuple[int, ...]

    @cached_property
    def sums(self) -> Reals:
        """What the first k save together at each level, (levels, K + 1)."""
        return np.concatenate([np.zeros((len(self.levels), 1)), np.cumsum(self.values, axis=1)], axis=1)


def groups_of(instance: HotInstance, frequencies: tuple[Reals, ...] | None = None) -> list[Group]:
    """Groups of an instance, by job and width.

    Parameters
    ----------
    instance : HotInstance
    frequencies : tuple of (P,) arrays, optional
        Of each job, instead of those of the instance, as measured in a sample; what was measured is then left out.
    """
    groups = []
    for number, job in enumerate(instance.jobs):
        if frequencies is not None:
            job = job.model_copy(update={"frequencies": frequencies[number], "saved_messages": None})
        passing = [own[number] for own in instance.passing]
        levels = tuple(sorted({workers for workers in passing if workers > 1}))
        if not levels:
            continue
        level_of = tuple(levels.index(workers) if workers > 1 else -1 for workers in passing)
        values = np.stack([job_values(job, workers) for workers in levels])
        order = np.argsort(-values[-1], kind="stable")
        order = order[values[-1][order] > 0]
        widths = job.widths[order]
        for width in np.unique(widths).tolist():
            own = order[widths == width]
            groups.append(Group(number, width, own, levels, np.ascontiguousarray(values[:, own]), level_of))
    return groups
