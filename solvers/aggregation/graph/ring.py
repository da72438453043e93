"""Ring all-reduce on the same network: a figure to compare aggregation with."""

import time
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

from ddlopt.models.aggregation.graph.instance import GraphInstance, GraphJob
from ddlopt.models.contracts import Instance
from ddlopt.models.covering import Covering
from ddlopt.models.errors import NotApplicableError
from ddlopt.solvers.aggregation.graph.strategies import Paths
from ddlopt.solvers.certify import Gate
from ddlopt.solvers.contracts import Limits, ProgressCallback, Result


@dataclass(frozen=True)
class Ring(Covering):
    """The workers of every job all-reduce in a ring, in the order of their nodes, on shortest routes.

    Each of a job's n workers sends 2 (n - 1) / n times the gradient to the next one, and no server has part in it. The
    instance's goal is then calculated as for messages of that size: what links are busy, the busiest link, or the sum
    of what is left of equal shares. After a ring all workers have the sum; after aggregation only the server has it,
    and sends it back the other way, which full duplex links can do at the same time.
    """

    name: ClassVar[str] = "ring"
    family: ClassVar[str] = "aggregation"
    covers: ClassVar[type[Instance]] = GraphInstance
    uses: ClassVar[frozenset[str]] = frozenset({"seed"})

    def refuses(self, instance: Any) -> str | None:
        """Jobs with one worker only, and workers from which there is no route to the next."""
        for place, job in enumerate(instance.jobs):
            if len(job.workers) < 2:
                return f"jobs[{place}] ('{job.name}') has one worker, which makes no ring"
            for worker, following in _ring(job):
                if not Paths(instance, 0).far(following)[worker][0] < float("inf"):
                    return f"no route leads from worker node {worker} of jobs[{place}] to node {following}"
        return None

    def solve(
        self,
        instance: GraphInstance,
        limits: Limits,
        seed: int = 0,
        progress: ProgressCallback | None = None,
        start: Any = None,
    ) -> Result:
        """The goal's value, with status ``reference`` and no solution."""
        reason = self.refuses(instance)
        if reason is not None:
            raise NotApplicableError(f"{self.name} does not cover '{instance.name}': {reason}")
        began = time.perf_counter()
        paths, loads = Paths(instance, seed), []
        for job in instance.jobs:
            count: Counter[tuple[int, int]] = Counter()
            for worker, following in _ring(job):
                hop = GraphJob(name=job.name, workers=(worker,), server=following, gradient_bytes=_sent_bytes(job))
                count.update(pairwise(paths.of(hop, shared=False)[0]))
            loads.append(count)
        gate = Gate(instance, self.name, limits, seed, time.perf_counter() - began)
        return gate.reference(_goal(instance, loads), {}, "reference: a ring all-reduce among the workers of every job")


def _ring(job: GraphJob) -> list[tuple[int, int]]:
    order = sorted(job.workers)
    return list(zip(order, (*order[1:], order[0]), strict=True))


def _sent_bytes(job: GraphJob) -> float:
    count = len(job.workers)
    return 2 * (count - 1) / count * job.gradient_bytes


def _goal(instance: GraphInstance, loads: list[Counter[tuple[int, int]]]) -> float:
    """The instance's goal, where messages have the ring's size."""
    bandwidth = {arc: instance.links[number // 2].bandwidth_bytes_per_s for number, arc in enumerate(instance.arcs)}
    if instance.goal == "rates":
        together = sum(loads, Counter[tuple[int, int]]())
        return sum(
            min(bandwidth[arc] / together[arc] for arc in count) * job.gradient_bytes / _sent_bytes(job)
            for job, count in zip(instance.jobs, loads, strict=True)
        )
    busy_s: dict[tuple[int, int], float] = {}
    for job, count in zip(instance.jobs, loads, strict=True):
        for arc, number in count.items():
            busy_s[arc] = busy_s.get(arc, 0.0) + number * _sent_bytes(job) / bandwidth[arc]
    return sum(busy_s.values()) if instance.goal == "utilization" else max(busy_s.values())
