"""What a schedule is good for: each objective as an object that says how it counts."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from ddlopt.models.contracts import Number
from ddlopt.models.scheduling.parts import Job


@dataclass(frozen=True)
class Figures:
    """What comes of a schedule, as far as objectives count it, in one arithmetic.

    Parameters
    ----------
    jobs : sequence of Job
    slot_s : float or Fraction
        Seconds of a slot.
    utility, energy_cost, smallest_part : float or Fraction
        Of all jobs together.
    spans : list of int
        Slots from arrival to end of each job; where jobs need not finish, of those that do.
    fair_s : callable
        Seconds from a job's arrival to its end with its fair share alone.
    """

    jobs: Sequence[Job]
    slot_s: Number
    utility: Number
    energy_cost: Number
    smallest_part: Number
    spans: list[int]
    fair_s: Callable[[int], Number]


class Goal(ABC):
    """One objective.

    Attributes
    ----------
    sense : {"minimize", "maximize"}
    in_seconds : bool
        Whether it is a time.
    counts_utilities, counts_least_part, counts_last_end, counts_ends, counts_ratios : bool
        What it is: the sum of jobs' utilities less that of energy, the smallest part done, the last end, the weighted
        sum of the times from arrival to end, or the largest ratio of such a time to that with a fair share.
    """

    sense: ClassVar[Literal["minimize", "maximize"]] = "minimize"
    in_seconds: ClassVar[bool] = False
    counts_utilities: ClassVar[bool] = False
    counts_least_part: ClassVar[bool] = False
    counts_last_end: ClassVar[bool] = False
    counts_ends: ClassVar[bool] = False
    counts_ratios: ClassVar[bool] = False

    @property
    def must_finish(self) -> bool:
        """Whether every job has to be finished: what is minimised counts ends."""
        return self.sense == "minimize"

    @abstractmethod
    def value(self, of: Figures) -> tuple[Number, dict[str, Number]]:
        """The objective, and details that only it has; where jobs must finish, if all do."""

    def counts_whole(self, job: Job) -> bool:
        """Whether the progress of a job counts only once it is finished."""
        return self.must_finish

    def worth(self, job: Job, part: float) -> float:
        """What the part done of a job is worth, as far as jobs count one by one."""
        return float(job.utility.of(part))

    def of_model(self, value: float, slot_s: float) -> float:
        """The objective, of a model's that is to be maximised and counts slots."""
        if self.sense == "maximize":
            return value
        return -value * slot_s if self.in_seconds else -value


class TotalUtility(Goal):
    """The sum of what the parts done of all jobs are worth, less the energy at its price."""

    sense = "maximize"
    counts_utilities = True

    def value(self, of: Figures) -> tuple[Number, dict[str, Number]]:
        """See :class:`Goal`."""
        return of.utility - of.energy_cost, {}

    def counts_whole(self, job: Job) -> bool:
        """Whether it is worth nothing before."""
        return job.utility.kind == "all_or_nothing"


class SmallestPart(Goal):
    """The smallest part done of all jobs."""

    sense = "maximize"
    counts_least_part = True

    def value(self, of: Figures) -> tuple[Number, dict[str, Number]]:
        """See :class:`Goal`."""
        return of.smallest_part, {}

    def worth(self, job: Job, part: float) -> float:
        """The part itself."""
        return part


class Makespan(Goal):
    """The last end of all jobs."""

    in_seconds = True
    counts_last_end = True

    def value(self, of: Figures) -> tuple[Number, dict[str, Number]]:
        """See :class:`Goal`."""
        return max(job.arrival + span for job, span in zip(of.jobs, of.spans, strict=True)) * of.slot_s, {}


class CompletionTime(Goal):
    """The sum of the times from arrival to end, each times the ``value`` of its job's utility."""

    in_seconds = True
    counts_ends = True

    def value(self, of: Figures) -> tuple[Number, dict[str, Number]]:
        """See :class:`Goal`."""
        number = type(of.slot_s)
        weighted = (number(job.utility.value) * span for job, span in zip(of.jobs, of.spans, strict=True))
        return sum(weighted, start=number(0)) * of.slot_s, {}


class LargestRatio(Goal):
    """The largest ratio of a job's time from arrival to end to that with its fair share of the cluster alone."""

    counts_ratios = True

    def value(self, of: Figures) -> tuple[Number, dict[str, Number]]:
        """See :class:`Goal`; how many ratios are above 1, and their mean."""
        ratios = [span * of.slot_s / of.fair_s(job) for job, span in enumerate(of.spans)]
        mean = sum(ratios, start=type(of.slot_s)(0)) / len(ratios)
        return max(ratios), {"unfair_jobs": sum(ratio > 1 for ratio in ratios), "mean_ratio": mean}


GOALS: dict[str, Goal] = {
    "utility": TotalUtility(),
    "max_min": SmallestPart(),
    "makespan": Makespan(),
    "completion": CompletionTime(),
    "finish_time_fairness": LargestRatio(),
}
"""By the name that instances have."""
