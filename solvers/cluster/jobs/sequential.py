"""Widths first, then the best schedule with them: what deciding one after the other loses."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from ddlopt.models.cluster.jobs.instance import JobsInstance
from ddlopt.solvers.cluster.jobs.lists import WIDTHS
from ddlopt.solvers.cluster.jobs.start_order import Search, with_widths
from ddlopt.solvers.heuristic import Clock, Heuristic


@dataclass(frozen=True)
class Sequential(Heuristic, uses=()):
    """Each job's width by itself, as a planner that does not know of the others; then the best schedule with these.

    Parameters
    ----------
    widths : {"efficient", "fastest", "narrowest"}
        The fewest server-seconds, the least time, or as few servers as can be; the narrowest of several.

    References
    ----------
    Ours, for comparison: systems that take a job's speed as given decide so.
    """

    widths: Literal["efficient", "fastest", "narrowest"] = "efficient"

    name: ClassVar[str] = "sequential"
    covers: ClassVar[type[JobsInstance]] = JobsInstance

    def answer(self, instance: JobsInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The schedule; at the time limit the best known one."""
        search = Search(with_widths(instance, WIDTHS[self.widths]), clock)
        search.run()
        return search.best, {"states": float(search.states)}
