"""What an instance is made of: servers and jobs."""

from typing import Any

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from ddlopt.models.contracts import Part, without
from ddlopt.models.scheduling.timing import Timing
from ddlopt.models.scheduling.utility import Capped, Utility


class ServerGroup(Part):
    """``count`` equal servers.

    Parameters
    ----------
    count : int
        Servers of the group.
    capacity : mapping
        Resource (``"gpu"``, ``"cpu"``, …) -> amount of it in each server.
    idle_w, worker_w : float
        Power of a server while at least one worker is on it, and of each worker besides.
    type : str
        Of the accelerators, such as ``"v100"``; jobs with ``speeds`` have one for each.
    """

    count: int = Field(default=1, ge=1)
    capacity: dict[str, float]
    idle_w: float = Field(default=0.0, ge=0)
    worker_w: float = Field(default=0.0, ge=0)
    type: str = ""

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "type")


class Job(Part):
    """A training job.

    Parameters
    ----------
    name : str
    arrival : int
        First slot in which it may run.
    deadline : int, optional
        First slot in which it may no longer run; None: the end of the horizon.
    min_workers, max_workers : int
        Its width in a slot is 0 or between the two.
    timing : RingTiming or PolluxTiming
        How fast a ring is, by its number of workers.
    minibatches : float
        Mini-batches wanted, of all workers together: epochs times samples divided by the mini-batch.
    demand : mapping
        Resource -> amount that each worker takes of its server.
    utility : Utility
        Its ``value`` is also the job's weight in the total completion time.
    change_s : float
        Seconds of a slot that are lost when it changes: it goes on after a pause, with another number of workers or on
        other servers. Its first start is no change, nor is another ring or bandwidth. At most a slot: that then does
        nothing. Jobs in one piece never change.
    least_run_slots : int
        Fewest slots from a start or a change to the next: it then goes on with the same workers on every server, unless
        it has finished or its last slot has passed. Preemptive jobs only.
    speeds : mapping
        Type of accelerator -> how fast the job is there, times the mini-batches of its ``timing``: throughputs, as in
        Gavel, so that all of the iteration is scaled, its communication too. Workers on several types all wait for the
        slowest. It has every type of the cluster; 0: the job cannot run there. Empty: types make no difference to it.
    fair_s : float, optional
        Seconds from its arrival to its end if its fair share of the cluster were its own, for the objective
        ``finish_time_fairness``. None: with the N-th part of all resources, N the number of jobs
        (:func:`~ddlopt.models.scheduling.fair_time.fair_s`).
    """

    name: str
    arrival: int = Field(default=0, ge=0)
    deadline: int | None = None
    min_workers: int = Field(default=1, ge=1)
    max_workers: int = Field(ge=1)
    timing: Timing
    minibatches: float = Field(gt=0)
    demand: dict[str, float] = Field(default_factory=lambda: {"gpu": 1.0})
    utility: Utility = Capped()
    change_s: float = Field(default=0.0, ge=0)
    least_run_slots: int = Field(default=1, ge=1)
    speeds: dict[str, float] = Field(default={})
    fair_s: float | None = Field(default=None, gt=0, allow_inf_nan=False)

    @model_serializer(mode="wrap")
    def _data(self, data_of: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return without(self, data_of(self), "change_s", "least_run_slots", "speeds", "fair_s")

    @property
    def widths(self) -> range:
        """The widths it may have in a slot, 0 apart."""
        return range(self.min_workers, self.max_workers + 1)
