"""The answer to a scheduling problem: which workers each job has in each slot, and how its ring is routed."""

from typing import ClassVar, Literal

from pydantic import Field

from ddlopt.models.contracts import Part, Solution


class Run(Part):
    """One job with the same workers and ring over consecutive slots.

    Parameters
    ----------
    job : int
        Place in the instance's ``jobs``.
    start, slots : int
        It runs in slots start .. start + slots - 1.
    workers : tuple of (int, int)
        (server, number of workers on it), numbers at least 1, each server once.
    ring : tuple of int
        Nodes of a closed walk through the network that visits every server with workers; the first node is not
        repeated at the end. Empty where all workers are on one server, or there is no network.
    bandwidth_bytes_per_s : float, optional
        Of every link of the ring, where the instance's bandwidth is ``shared``; None otherwise.
    """

    job: int = Field(ge=0)
    start: int = Field(ge=0)
    slots: int = Field(ge=1)
    workers: tuple[tuple[int, int], ...]
    ring: tuple[int, ...] = ()
    bandwidth_bytes_per_s: float | None = Field(default=None, gt=0)

    @property
    def width(self) -> int:
        """Workers in all."""
        return sum(count for _, count in self.workers)

    @property
    def end(self) -> int:
        """First slot after the run."""
        return self.start + self.slots


class Schedule(Solution):
    """Runs for a :class:`~ddlopt.models.scheduling.instance.SchedulingInstance`; a job may have none or many.

    Parameters
    ----------
    runs : tuple of Run
        Jobs with their workers and rings over consecutive slots.
    """

    kind: ClassVar[str] = "schedule"

    family: Literal["scheduling"] = "scheduling"
    runs: tuple[Run, ...] = ()
