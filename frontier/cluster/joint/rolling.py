"""Jobs that become known when they arrive: what waits is scheduled anew at every moment at which something changes."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Literal

from ddlopt.models.cluster.jobs.instance import JobsInstance, JobsSchedule, Stretch
from ddlopt.models.cluster.joint.instance import JointInstance
from ddlopt.solvers.cluster.jobs.list_exchange import ListSearch, list_starts
from ddlopt.solvers.cluster.joint.apart import planned
from ddlopt.solvers.cluster.joint.refinement import kernels_of_plans, with_plans
from ddlopt.solvers.heuristic import Clock, Heuristic


@dataclass(frozen=True)
class Rolling(Heuristic, uses=("seed",)):
    """The joint problem on a rolling horizon: nothing is known of a job before it arrives.

    Whenever a job arrives or ends, orders and widths of all that wait are searched as if nothing else were to come;
    what then starts at once is started, and never moved. How far it is from a bound on the whole, with every job known
    from the start, is at least its regret.

    Parameters
    ----------
    plans : {"paper", "best"}
        As in ``apart``: plans of a job are known when it arrives.
    seconds : float
    rounds : int
        Of the search at each moment.

    References
    ----------
    Ours.
    """

    plans: Literal["paper", "best"] = "best"
    seconds: float = 2.0
    rounds: int = 1

    name: ClassVar[str] = "rolling"
    covers: ClassVar[type[JointInstance]] = JointInstance
    kernels: ClassVar[tuple[str, ...]] = ("ddlopt.solvers.cluster.jobs.exchange_kernel",)

    def kernels_for(self, instance: JointInstance) -> tuple[str, ...]:
        """Those of the methods that inner problems are solved by."""
        return self.kernels + kernels_of_plans(instance)

    def answer(self, instance: JointInstance, seed: int, clock: Clock, start: Any) -> Any:
        """The schedule with plans.

        Raises
        ------
        NoSolutionError
            If a job has no plan on any number of servers by the time limit.
        """
        plans, high = planned(instance, seed, clock, self.plans == "best", self.seconds)
        schedule, moments = rolled(high, self.rounds, seed, clock)
        return with_plans(plans, schedule), {"plans": float(plans.solves), "moments": float(moments)}


def rolled(high: JobsInstance, rounds: int, seed: int, clock: Clock) -> tuple[JobsSchedule, int]:
    """A schedule that is made while jobs arrive, and at how many moments something was decided."""
    arrivals = [Fraction(job.arrival_s) for job in high.jobs]
    runs: dict[int, Stretch] = {}
    ends: dict[int, Fraction] = {}
    now, moments = min(arrivals), 0
    while len(runs) < len(arrivals):
        ends = {place: end for place, end in ends.items() if end > now}
        waiting = [place for place, arrival in enumerate(arrivals) if arrival <= now and place not in runs]
        free = high.servers - sum(runs[place].servers for place in ends)
        if waiting and free >= min(high.jobs[place].widths[0] for place in waiting):
            moments += 1
            for place, width in _started(high, ends, runs, waiting, now, rounds, seed, clock):
                runs[place] = Stretch(start=str(now), servers=width)
                ends[place] = now + high.jobs[place].length_s(width)
        now = min([*ends.values(), *(arrival for arrival in arrivals if arrival > now)])
    return JobsSchedule(instance=high.name, runs=tuple((runs[place],) for place in range(len(arrivals)))), moments


def _started(
    high: JobsInstance,
    ends: dict[int, Fraction],
    runs: dict[int, Stretch],
    waiting: list[int],
    now: Fraction,
    rounds: int,
    seed: int,
    clock: Clock,
) -> list[tuple[int, int]]:
    """Jobs that start now, with their widths, in the best list of all that are known."""
    known = []
    for place, end in ends.items():
        width = runs[place].servers
        known.append(high.jobs[place].model_dump() | {"iterations": 1.0, "least_s": ()})
        known[-1]["step_s"] = [None] * (width - 1) + [float(end - now)]
    known += [high.jobs[place].model_dump() for place in waiting]
    for job in known:
        # Lateness so far is the same whatever is decided.
        late = None if job["deadline_s"] is None else max(0.0, float(Fraction(job["deadline_s"]) - now))
        job |= {"arrival_s": 0.0, "deadline_s": late}
    instance = high.changed(jobs=known)
    search = ListSearch(instance, seed, len(ends))
    search.run(rounds, clock.left_s)
    widths = search.widths
    starts = list_starts(instance, [int(place) for place in search.order], widths)
    first = len(ends)
    return [(place, widths[first + k]) for k, place in enumerate(waiting) if starts[first + k] == 0]
