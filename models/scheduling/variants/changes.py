"""Changes of a job's workers: what they cost, and how soon one may follow another."""

from collections.abc import Sequence
from fractions import Fraction
from typing import overload

from ddlopt.models.contracts import Number
from ddlopt.models.scheduling.parts import Job


class Changes:
    """What jobs lose where they go on after a pause, with other workers or on other servers.

    Parameters
    ----------
    jobs : sequence of Job
    slots : int
    slot_s : float
    preemptive : bool
        If not, jobs run in one piece and never change.

    Attributes
    ----------
    cost_time : bool
        Whether some job may change, and loses time when it does.
    must_wait : bool
        Whether some job may not change in every slot.
    """

    def __init__(self, jobs: Sequence[Job], slots: int, slot_s: float, preemptive: bool) -> None:
        self._jobs, self._slot_s, self._preemptive = jobs, slot_s, preemptive
        self.cost_time = preemptive and slots > 1 and any(job.change_s for job in jobs)
        self.must_wait = slots > 1 and any(job.least_run_slots > 1 for job in jobs)

    @property
    def matter(self) -> bool:
        """Whether a job's best slots depend on which of them follow each other."""
        return self.cost_time or self.must_wait

    def matter_to(self, job: int) -> bool:
        """The same of one job."""
        return self.least(job) > 1 or self.cost(job)

    def cost(self, job: int) -> bool:
        """Whether a job loses time when it changes."""
        return self._preemptive and self._jobs[job].change_s > 0

    @overload
    def left(self, job: int) -> float: ...

    @overload
    def left(self, job: int, number: type[float] | type[Fraction]) -> Number: ...

    def left(self, job: int, number: type[float] | type[Fraction] = float) -> Number:
        """The part of a slot that a job works in which it changes."""
        if not self._preemptive:
            return number(1)
        return 1 - number(self._jobs[job].change_s) / number(self._slot_s)

    def least(self, job: int) -> int:
        """Fewest slots from a start or a change of a job to the next."""
        return self._jobs[job].least_run_slots

    def check(self, job: int, place: str) -> None:
        """Raise ValueError if what is said of a job makes no sense; ``place`` says where it stands."""
        lost, least, slot_s = self._jobs[job].change_s, self.least(job), self._slot_s
        if lost > slot_s:
            raise ValueError(
                f"{place}: change_s is {lost:g}, longer than a slot of {slot_s:g} s; lower it, or use longer slots"
            )
        if least > 1 and not self._preemptive:
            raise ValueError(
                f"{place}: least_run_slots is {least}, but jobs run in one piece and never change; leave it out"
            )
