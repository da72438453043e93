"""Links, rings and routes for the job that a choice of strategies makes: cheap first, then with growing effort."""

import dataclasses
import math
import time
from dataclasses import dataclass
from functools import cached_property

from ddlopt.frontier.codesign.joint.links import constructed
from ddlopt.frontier.topology.blocks.bounds import congestion_bounds
from ddlopt.models.errors import InfeasibleError, NoSolutionError, NotApplicableError
from ddlopt.models.tolerances import FEASIBILITY_TOL
from ddlopt.models.topology import TopologyDesign, TopologyInstance
from ddlopt.solvers.catalogue import method_names
from ddlopt.solvers.codesign.planes import answer_topology
from ddlopt.solvers.contracts import Limits
from ddlopt.solvers.heuristic import Clock
from ddlopt.solvers.topology.balance.balance import Balance
from ddlopt.solvers.topology.link_exchange.link_exchange import LinkExchange


@dataclass(frozen=True)
class Effort:
    """Which levels of effort a job has."""

    provable_servers: int = 16
    """Servers up to which the exact methods of the topology family are asked as well."""
    tiny_servers: int = 6
    """Servers up to which a proof takes hardly longer than a search, so that nothing is constructed first."""
    first_proof: float = 0.05
    """Part of its time that each exact method has before any has all of it: where one is slow another may not be."""
    searched_rings: int = 2000
    """Servers times groups beyond which each trial of a search over links takes seconds."""


_EFFORT = Effort()

SEARCHED_SERVERS = 160
"""Servers beyond which a search over links takes too long; designs are constructed there."""


@dataclass(frozen=True)
class Answer:
    """The best that is known for one job.

    Parameters
    ----------
    busiest_bytes, bound_bytes : float
        On the busiest link of the best design, infinite where none is known, and of every design.
    found : TopologyDesign, Balance or None
        The design, or routes and shares on its links; large designs are only written down where they are wanted.
    level : int
        Effort spent so far.
    method : str
        What found the design.
    """

    busiest_bytes: float
    bound_bytes: float
    found: TopologyDesign | Balance | None
    level: int
    method: str = ""

    @cached_property
    def design(self) -> TopologyDesign | None:
        """The design; None if there is nothing to send, or none is known."""
        return self.found.design() if isinstance(self.found, Balance) else self.found

    @property
    def proven(self) -> bool:
        """Whether nothing better is possible."""
        return self.bound_bytes >= self.busiest_bytes * (1 - FEASIBILITY_TOL)


def first_answer(job: TopologyInstance | None) -> Answer:
    """What is known of a job without looking for a design.

    A job that no design serves has an infinite bound.
    """
    if job is None:
        return Answer(0.0, 0.0, None, 0)
    try:
        bound = max(congestion_bounds(job).values())
    except InfeasibleError:
        bound = math.inf
    return Answer(math.inf, bound, None, 0)


def levels_left(job: TopologyInstance | None, answer: Answer) -> int:
    """How many levels of effort have not been spent on the job."""
    return 0 if job is None else len(_levels(job)) - answer.level


def next_kind(job: TopologyInstance, answer: Answer) -> str:
    """What the next level of effort is: ``construct``, ``search``, the name of an exact method, or nothing more."""
    levels = _levels(job)
    return levels[answer.level][0] if answer.level < len(levels) else ""


def provable(job: TopologyInstance | None) -> bool:
    """Whether an exact method is among the levels."""
    return job is not None and job.servers <= _EFFORT.provable_servers


def deepened(
    job: TopologyInstance,
    known: Answer,
    limits: Limits,
    seed: int,
    start: TopologyDesign | None = None,
    clock: Clock | None = None,
) -> Answer:
    """The better of what is known and what the next level of effort finds.

    Parameters
    ----------
    job : TopologyInstance
    known : Answer
    limits : Limits
        ``gap`` is that of the iteration time.
    seed : int
    start : TopologyDesign or None
        Links of another job to begin from.
    clock : Clock or None
        Of whoever asks; it is told of Ctrl-C.
    """
    kind, effort = _levels(job)[known.level]
    began = time.perf_counter()
    tried = dataclasses.replace(known, level=known.level + 1)
    given = known.design if job.servers <= SEARCHED_SERVERS else None
    try:
        if kind == "construct":
            fine = effort > 8 or (effort > 2 and job.servers > SEARCHED_SERVERS)
            found, _ = constructed(job, seed, Clock(limits, None), trials=int(effort), fine=fine)
            if found.congestion_bytes >= known.busiest_bytes:
                return tried
            return dataclasses.replace(tried, busiest_bytes=found.congestion_bytes, found=found, method=kind)
        method = LinkExchange(effort) if kind == "search" else kind
        granted = limits
        if limits.time_s is not None and kind != "search":
            granted = dataclasses.replace(limits, time_s=limits.time_s * effort)
        design, busiest, bound = answer_topology(job, method, granted, seed, given or start, clock)
    except InfeasibleError:
        return dataclasses.replace(tried, bound_bytes=math.inf)
    except (NoSolutionError, NotApplicableError):
        # Another level may be cheap enough for what is left of the time.
        return tried if time.perf_counter() - began < (limits.time_s or math.inf) else known
    name = kind if isinstance(method, str) else method.name
    better = busiest < known.busiest_bytes
    return dataclasses.replace(
        tried,
        busiest_bytes=min(busiest, known.busiest_bytes),
        bound_bytes=max(bound, known.bound_bytes),
        found=design if better else known.found,
        method=name if better else known.method,
    )


def _levels(job: TopologyInstance) -> list[tuple[str, float]]:
    """Ways to find a design, each with its effort."""
    servers = job.servers
    if servers > SEARCHED_SERVERS:
        return [("construct", 2), ("construct", 6)]
    levels: list[tuple[str, float]] = [("construct", 8), ("construct", 24), ("search", 0.02), ("search", 0.3)]
    if servers * len(job.allreduce_groups) > _EFFORT.searched_rings:
        return levels[:2]
    if servers > _EFFORT.provable_servers:
        return levels
    if servers <= _EFFORT.tiny_servers:
        levels = [("search", 0.02), ("search", 0.3)]
    proofs = [name for name in ("branch-and-bound", "exact") if name in method_names("topology")]
    return levels + [(name, share) for share in (_EFFORT.first_proof, 1.0) for name in proofs]
